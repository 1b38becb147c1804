//! Wrong models: diagnostics, spans and advice; several at once; never a panic.

use deltamark_core::Control;
use deltamark_core::diagnostic::line_column;
use deltamark_dve::{DveSystem, EngineChoice, parse, parse_under};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// A model around these declarations, this process body and these transitions.
fn model(declarations: &str, transitions: &str) -> String {
    format!("{declarations}\nprocess P {{ byte own; state s, t; init s;\ntrans {transitions}; }}\nsystem async;")
}

/// The diagnostics, as `line:column message | help`.
fn told(text: &str) -> Vec<String> {
    let wrong = parse(text.as_bytes()).err().unwrap_or_default();
    let one = |diagnostic: &deltamark_core::Diagnostic| {
        let place = diagnostic.span.map(|span| line_column(text, span.start)).unwrap_or((0, 0));
        let help = diagnostic.help.as_deref().map(|help| format!(" | {help}")).unwrap_or_default();
        format!("{}:{} {}{help}", place.0, place.1, diagnostic.message)
    };
    wrong.iter().map(one).collect()
}

#[test]
fn the_clock_is_read_while_a_large_model_is_made() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    fn clock() -> Option<Instant> {
        READ.fetch_add(1, Relaxed);
        Some(Instant::now())
    }
    let text = "byte x[100000]; process P { state a; init a; trans a -> a { effect x[x[0]] = 1; }; } system async;";
    let control = Control { clock, ..Control::new() };
    let read = || READ.swap(0, Relaxed);
    let program = parse_under(text.as_bytes(), &control).expect("a model");
    assert!(read() >= 4, "between the passes of the layout");
    let engine = EngineChoice::Interpreter.engine(&program).expect("the interpreter runs everything");
    DveSystem::under(program, engine, &control).expect("nothing stops it");
    assert!(read() >= 1000, "while its numbers are named");
}

#[test]
fn mistakes_are_told_with_place_and_advice() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("", "s -> t { guard x == 1; }", &["3:22 there is no variable or constant `x`"]),
        (
            "byte counter;",
            "s -> t { guard countr == 1; }",
            &["3:22 there is no variable or constant `countr` | did you mean `counter`?"],
        ),
        (
            "byte x;",
            "s -> t { guard x = 1; }",
            &["3:24 `=` assigns, and cannot stand here | compare with `==`; assignments stand behind `effect`"],
        ),
        ("byte x;", "s -> t { effect x == 1; }", &["3:25 `==` compares | assign with `=`"]),
        ("byte x;", "s -> t { guard !x; }", &["3:22 `!` only marks a send | negation is written `not`"]),
        ("", "s -> u {}", &["3:12 process `P` has no state `u` | add it behind `state`"]),
        ("", "s -> t { sync c!; }", &["3:21 there is no channel `c` | declare it: `channel c;`"]),
        (
            "channel c;",
            "s -> t { sync c!1; }, t -> s { sync c?; }",
            &["3:43 `c` has 0 values here | a message over it has 1 value: its first use does"],
        ),
        (
            "channel {byte, int} c[2];",
            "s -> t { sync c!1; }",
            &["3:21 `c` has 1 value here | a message over it has 2 values: its declaration says so"],
        ),
        (
            "channel c;",
            "s -> t { sync c?1 + own; }",
            &[
                "3:23 a value is received into a variable or an element of an array | compare what was received in the guard of the next transition",
            ],
        ),
        (
            "channel c;",
            "s -> t { sync c?(own); }",
            &[
                "3:23 a value is received into a variable or an element of an array | compare what was received in the guard of the next transition",
            ],
        ),
        (
            "channel {byte} c;",
            "s -> t {}",
            &[
                "1:16 the typed channel `c` has no size | write `c[0]` for one without a buffer, `c[4]` for one that holds 4",
            ],
        ),
        ("channel c[3];", "s -> t {}", &["1:11 the channel `c` has a size but no types | write `channel {byte} c[…]`"]),
        ("const byte N = 2;", "s -> t { effect N = 1; }", &["3:23 `N` is a constant and cannot be assigned"]),
        ("const byte N;", "s -> t {}", &["1:12 the constant `N` has no value | write `= value` behind it"]),
        ("byte x; int x;", "s -> t {}", &["1:13 `x` is declared twice | it is a variable already, in line 1"]),
        ("byte P;", "s -> t {}", &["1:6 `P` is declared twice | it is a process already, in line 2"]),
        ("byte x = 256;", "s -> t {}", &["1:10 `x` cannot begin with 256 | a `byte` holds 0 to 255"]),
        ("int x = 40000;", "s -> t {}", &["1:9 `x` cannot begin with 40000 | an `int` holds -32768 to 32767"]),
        ("byte a[0];", "s -> t {}", &["1:8 the size 0 is not between 1 and 1048576"]),
        ("byte a[2000000];", "s -> t {}", &["1:8 the size 2000000 is not between 1 and 1048576"]),
        (
            "byte a[2] = 5;",
            "s -> t {}",
            &["1:13 the array `a` begins with one number | write a list: `{1, 2, 3}`; what it leaves out is 0"],
        ),
        ("byte a = {5};", "s -> t {}", &["1:10 `a` is no array, but begins with a list | write `a[…]` to make it one"]),
        ("byte a = 1 / 0;", "s -> t {}", &["1:10 this divides by zero, or goes outside of an array"]),
        ("byte a = b; byte b = 1;", "s -> t {}", &["1:10 there is no variable or constant `b`"]),
        ("byte x;", "s -> t { guard x[1] == 0; }", &["3:22 `x` is no array"]),
        (
            "",
            "s -> t { guard s; }",
            &["3:22 `s` is a state, not a number | write `P.s` for whether the process is in it"],
        ),
        (
            "channel c;",
            "s -> t { guard c; }",
            &["3:22 `c` is a channel, not a number | an expression cannot look into a channel; use it behind `sync`"],
        ),
        ("", "s -> t { guard P.u; }", &["3:24 process `P` has no state `u`"]),
        ("", "s -> t { guard P.own; }", &["3:24 process `P` has no state `own` | read its variable as `P->own`"]),
        (
            "",
            "s -> t { guard P->s; }",
            &["3:25 process `P` has no variable `s` | write `P.s` for whether it is in that state"],
        ),
        ("", "s -> t { guard Q.s; }", &["3:22 there is no process `Q`"]),
        (
            "",
            "s -> t { effect own = 1; guard own == 0; }",
            &[
                "3:32 `guard` comes too late | a transition has one `guard`, one `sync` and one `effect` at most, in this order",
            ],
        ),
        (
            "",
            "s -> t { guard true; guard true; }",
            &[
                "3:28 `guard` comes twice | a transition has one `guard`, one `sync` and one `effect` at most, in this order",
            ],
        ),
        (
            "",
            "-> t {}",
            &[
                "3:7 the first transition has no state in front of `->` | only a later one may leave it out: it then starts where the one before it starts",
            ],
        ),
        ("", "s -> t {} t -> s {}", &["3:16 expected `,` between transitions, or `;` behind the last"]),
        (
            "",
            "s -> t { guard 99999999999 > 1; }",
            &["3:22 the number 99999999999 is too large | numbers go up to 2147483647"],
        ),
        (
            "",
            "s -> t { guard 1x > 1; }",
            &["3:22 `1x` is neither a number nor a name | a name begins with a letter or `_`"],
        ),
        (
            "byte state;",
            "s -> t {}",
            &[
                "1:6 expected the name of a variable, found the keyword `state` | this word is part of the language and cannot be a name",
            ],
        ),
        ("byte x", "s -> t {}", &["1:7 expected `;` behind the declaration, found the keyword `process`"]),
        ("byte \u{e4};", "s -> t {}", &["1:6 `ä` does not belong in a model"]),
        ("/* open", "s -> t {}", &["1:1 this comment has no end | write `*/` where it ends"]),
        (
            "/* see http://x */",
            "s -> t {}",
            &["1:1 this comment has no end | inside a comment, `//` hides the rest of its line, also the `*/` on it"],
        ),
    ];
    for (declarations, transitions, expected) in cases {
        assert_eq!(told(&model(declarations, transitions)), *expected, "{declarations} {transitions}");
    }
}

#[test]
fn mistakes_of_the_whole_model_are_told() {
    let cases: &[(&str, &[&str])] = &[
        ("byte x;", &["1:8 the model has no `system` line | end it with `system async;` or `system sync;`"]),
        ("system async;", &["0:0 the model has no process | a model has at least one"]),
        (
            "process P { init s; } system async;",
            &[
                "1:18 process `P` has no state `s` | add it behind `state`",
                "1:9 process `P` has no states | list them behind `state`",
            ],
        ),
        (
            "process P { state s; } system async;",
            &["1:9 process `P` has no `init` | name the state it begins in: `init q;`"],
        ),
        ("process P { state s; init s; } system async property Q;", &["1:54 there is no process `Q`"]),
        (
            "process P { state s; init s; } system async; byte x;",
            &["1:46 the keyword `byte` stands behind the `system` line | the `system` line is the last of a model"],
        ),
        (
            "process P { state s; init s; state u; } system async;",
            &["1:30 process `P` has a second `state` | put all of it behind one `state`"],
        ),
        (
            "process P { state s; init s; channel c; } system async;",
            &["1:30 channels are declared outside of processes | move the declaration in front of the first process"],
        ),
        (
            "process P(byte n) { state s; init s; } system async;",
            &[
                "1:10 processes with parameters are not part of the language here | write the process once for each instance, or use macros (`.mdve`)",
            ],
        ),
        (
            "byte g; process Q { state s; init s; trans s -> s { effect g = 1; }; } process P { state s; init s; trans s -> s { guard Q.s; }; } system async property Q;",
            &[
                "1:122 `Q` is the property process, which only watches | other processes cannot depend on it",
                "1:60 the property process assigns the global `g` | it only watches: it may assign its own variables",
            ],
        ),
    ];
    for (text, expected) in cases {
        let mut found = told(text);
        found.sort();
        assert_eq!(found, *expected, "{text}");
    }
}

/// Several errors are reported at once, each with its span.
#[test]
fn reading_goes_on_after_a_mistake() {
    let text = "byte x = ;\nbyte y;\nprocess P { state s; init s;\ntrans s -> s { guard y = 1; },\n s -> s { effect y == 2; },\n s -> s { sync ; };\n}\nprocess Q { state s init s; }\nsystem sometimes;";
    let found = told(text);
    let lines: Vec<&str> = found.iter().map(|one| one.split(':').next().unwrap_or_default()).collect();
    assert_eq!(lines, ["1", "4", "5", "6", "8", "9"], "{found:#?}");
}

#[test]
fn no_more_than_twenty_are_told() {
    let text = model(
        "",
        &(0..100).map(|number| format!("s -> t {{ guard nothing{number}; }}")).collect::<Vec<_>>().join(", "),
    );
    assert_eq!(told(&text).len(), 20);
    let text = format!("byte x; {}", "@ ".repeat(100));
    assert_eq!(told(&text).len(), 20);
}

/// Depth and size are bounded: neither the stack nor memory runs out.
#[test]
fn what_is_too_deep_or_too_large_is_refused() {
    let deep = format!("s -> t {{ guard {}1{}; }}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(told(&model("", &deep)).len(), 1);
    let signs = format!("s -> t {{ guard {}1; }}", "- ".repeat(100_000));
    assert_eq!(told(&model("", &signs)).len(), 1);
    let chain = format!("s -> t {{ guard {}1; }}", "own + ".repeat(100_000));
    assert_eq!(told(&model("", &chain)).len(), 1);
    let indices = format!("s -> t {{ guard {}1{}; }}", "a[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(told(&model("byte a[2];", &indices)).len(), 1);
    // As deep as is allowed.
    let chain = format!("s -> t {{ guard {}1; }}", "own + ".repeat(990));
    assert_eq!(told(&model("", &chain)), [""; 0]);
    let many = "byte a[1000000]; byte b[1000000];";
    assert_eq!(told(&model(many, "s -> t {}")).len(), 1);
    // 300 processes of 200 choices: far too many combinations.
    let process = |number: usize| {
        format!("process P{number} {{ state s; init s; trans {}; }} ", vec!["s -> s {}"; 200].join(", "))
    };
    let text: String = (0..300).map(process).collect::<String>() + "system sync;";
    assert_eq!(told(&text).len(), 1);
    // 6000 senders and 6000 receivers.
    let process = |name: &str, mark: &str| {
        let one = format!("s -> s {{ sync c{mark}; }}");
        format!("process {name} {{ state s; init s; trans {}; }} ", vec![one.as_str(); 6000].join(", "))
    };
    let text = format!("channel c; {}{}system async;", process("S", "!"), process("R", "?"));
    assert_eq!(told(&text).len(), 1);
}

const PIECES: &[&str] = &[
    "byte", "int", "const", "channel", "process", "P", "Q", "state", "s", "t", "init", "trans", "->", "{", "}", "(",
    ")", "[", "]", ";", ",", ":", "guard", "sync", "effect", "x", "a", "c", "!", "?", "=", "==", "0", "1", "255",
    "and", "not", "/", "-", "system", "async", "accept", "commit", "assert", "property", "~", ".", "<<", "imply", "/*",
    "*/", "//", "\n", "rabin",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any words in any order: a model, or diagnostics that point into the text.
    #[test]
    fn any_words_are_read_without_panic(words in proptest::collection::vec(proptest::sample::select(PIECES), 0..120)) {
        sound(&words.join(" "))?;
    }

    /// A valid model with some words changed.
    #[test]
    fn damaged_models_are_read_without_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), proptest::sample::select(PIECES), 0..3u8), 0..6)
    ) {
        let mut words: Vec<&str> = RIGHT.split_whitespace().collect();
        for (place, piece, kind) in changes {
            let place = place.index(words.len());
            match kind {
                0 => words[place] = piece,
                1 => words.insert(place, piece),
                _ => { words.remove(place); }
            }
        }
        sound(&words.join(" "))?;
    }

    /// Any text.
    #[test]
    fn any_text_is_read_without_panic(text in "\\PC{0,200}") {
        sound(&text)?;
    }
}

const RIGHT: &str = "const byte N = 2 ; byte x , a [ N + 1 ] = { 1 , 2 } ; channel c ; channel { byte , int } d [ 2 ] ;
    process P { int i = -1 ; state s , t ; init s ; commit t ; accept s ; assert s : i < 5 , t : true ;
    trans s -> t { guard x == 0 and a [ i ] != 1 ; sync c ! x + 1 ; effect x = ( x + 1 ) % 3 , a [ x ] = 2 ; } ,
    -> s { sync d ! { 1 , i } ; } , t -> s { sync d ? { x , i } ; } ; }
    process Q { state s , t ; init t ; trans t -> s { guard P . s or not P -> i == 3 ; sync c ? x ; } , s -> t { effect x = 0 ; } ; }
    system async ;";

/// Parses, and checks the result; a model that can be run takes a few steps.
fn sound(text: &str) -> Result<(), TestCaseError> {
    match parse(text.as_bytes()) {
        Err(wrong) => {
            prop_assert!((1..=20).contains(&wrong.len()));
            for span in wrong.iter().filter_map(|diagnostic| diagnostic.span) {
                prop_assert!(span.start <= span.end && span.end <= text.len());
            }
        }
        Ok(program) => {
            let system = deltamark_dve::DveSystem::new(program);
            deltamark_testkit::conformance::system::check_system_up_to(&system, 20);
        }
    }
    Ok(())
}

#[test]
fn the_model_that_is_damaged_is_right() {
    assert_eq!(told(RIGHT), [""; 0]);
}
