//! No text makes the reader panic, hang, overflow the stack or take much memory.

use super::{explore, refused};
use deltamark_coloured::ColouredSystem;
use deltamark_coloured::lna::{parse, parse_properties, property_texts};
use proptest::prelude::*;

/// A net or diagnostics that point into the text; a net is one that can be run or is refused again.
fn reads(text: &str) {
    match parse(text.as_bytes(), &[]) {
        Ok(net) => {
            assert_eq!(net.validate(), Ok(()));
            if let Err(diagnostics) = ColouredSystem::new(net, text) {
                assert!(!diagnostics.is_empty());
            }
        }
        Err(diagnostics) => {
            assert!((1..=20).contains(&diagnostics.len()), "{text}");
            for span in diagnostics.iter().filter_map(|diagnostic| diagnostic.span) {
                assert!(span.start <= span.end && span.end <= text.len(), "{span:?} in {text}");
                assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{span:?} in {text}");
            }
        }
    }
}

#[test]
fn deep_nesting_is_refused() {
    let expression = |inner: String| format!("n {{ constant int C := {inner}; place p {{ dom : epsilon; }} }}");
    let many = 100_000;
    let texts = [
        expression("(".repeat(many)),
        expression("-".repeat(many) + "1"),
        expression("not ".repeat(many) + "true"),
        expression("1 + ".repeat(many) + "1"),
        expression("1 & ".repeat(many) + "1"),
        expression("true ? 1 : ".repeat(many) + "1"),
        expression("f(".repeat(many)),
        expression("[".repeat(many)),
        expression("{".repeat(many)),
        expression("|".repeat(many)),
        expression("a".to_string() + &".b".repeat(many)),
        expression("a".to_string() + &"[0]".repeat(many)),
        expression("a".to_string() + &" :: (b := 1)".repeat(many)),
        expression("a".to_string() + &"'first".repeat(many)),
        expression("sum (i in t : ".repeat(many)),
        format!("n {{ function f () -> int {} }}", "{".repeat(many)),
        format!("n {{ function f () -> int {} return 1; }}", "if (true) ".repeat(many)),
        format!("n {{ function f () -> int {} return 1; }}", "while (true) ".repeat(many)),
        format!("n {{ {} }}", "transition t { in { ".repeat(many)),
        "#ifdef A\n".repeat(many),
        format!("n {{ place p {{ dom : {} int; }} }}", "int * ".repeat(many)),
    ];
    for text in &texts {
        reads(text);
    }
    let deep = format!("ltl property a : {} p;", "( [] not".repeat(many));
    assert!(property_texts(deep.as_bytes(), &[], &[]).is_err());
}

#[test]
fn the_deepest_that_is_read_can_be_run() {
    let texts = [
        format!("n {{ place p {{ dom : int; init : <( {}1{} )>; }} }}", "(".repeat(90), ")".repeat(90)),
        format!("n {{ place p {{ dom : int; init : <( {}1 )>; }} }}", "1 + ".repeat(190)),
        format!(
            "n {{ function f (int x) -> int {{ return {}x; }} place p {{ dom : int; init : <( f(1) )>; }} }}",
            "x + ".repeat(190)
        ),
        format!(
            "n {{ function f () -> int {} return 1; place p {{ dom : int; init : <( f() )>; }} }}",
            "if (true) ".repeat(90)
        ),
    ];
    for text in &texts {
        parse(text.as_bytes(), &[]).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
        reads(text);
    }
}

#[test]
fn what_would_be_huge_is_refused() {
    let texts = [
        "n { place p { dom : int; init : for (i in int) <( i )>; } }",
        "n { place p { dom : int * int; init : for (i in ushort, j in ushort) <( i, j )>; } }",
        "n { type v : vector [ushort] of int; type w : vector [ushort] of v; place p { dom : w; init : <( [[1]] )>; } }",
        "n { type v : vector [ushort, ushort] of int; place p { dom : v; } }",
        "n { type r : range 1 .. 60000; type v : vector [r] of int; type s : struct { v a; v b; v c; };
            type w : struct { s a; s b; s c; s d; s e; s f; s g; s h; }; type x : struct { w a; w b; w c; w d; };
            function f () -> int { x y; return 1; } place p { dom : int; init : <( f() )>; } }",
    ];
    for text in texts {
        assert!(parse(text.as_bytes(), &[]).is_err(), "{text}");
    }
}

/// Each of these is walked recursively, and overflowed the stack.
#[test]
fn very_long_rows_are_refused() {
    let row = |count: usize, separator: &str, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(separator)
    };
    let net = |initial: &str, rest: &str| {
        format!(
            "n {{ type u : range 0 .. 0; place p {{ dom : u; init : {initial}<( 0 )>; }}
              transition t {{ in {{ p : <( x )>; }} out {{ p : <( x )>; }} {rest} }} }}"
        )
    };
    let iterations = |count| format!("for ({}) ", row(count, ", ", &|at| format!("i{at} in u")));
    let picks = |count| format!("pick {{ {}; }}", row(count, "; ", &|at| format!("i{at} in u")));
    let inhibitors = |count| format!("inhibit {{ p : {}; }}", row(count, " + ", &|at| format!("<( z{at} )>")));
    let cases = [
        (net(&iterations(100_000), ""), "this goes over 100000 variables at once; the most is 256"),
        (net("", &picks(20_000)), "transition `t` has 20000 picks; the most is 256"),
        (net("", &inhibitors(20_000)), "transition `t` has 20000 terms of inhibitors; the most is 1024"),
    ];
    for (text, message) in cases {
        let told = refused(&text);
        assert!(told.len() == 1 && told[0].ends_with(message), "{told:?}");
    }
    for text in [net(&iterations(256), ""), net("", &picks(256)), net("", &inhibitors(1024))] {
        assert!(explore(&text, "").states == 1);
    }
}

/// Pieces of nets, so that a random sequence of them is often nearly valid.
const PIECES: [&str; 60] = [
    "n",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<(",
    ")>",
    ";",
    ":",
    ":=",
    "::",
    "..",
    "->",
    "'",
    "|",
    "&",
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "<",
    "?",
    ",",
    "1",
    "42",
    "x",
    "y",
    "p",
    "t",
    "int",
    "bool",
    "true",
    "type",
    "range",
    "mod",
    "enum",
    "vector",
    "struct",
    "list",
    "set",
    "of",
    "with",
    "capacity",
    "place",
    "dom",
    "init",
    "transition",
    "in",
    "out",
    "guard",
    "for",
    "if",
    "epsilon",
    "empty",
    "proposition",
    "function",
];

const WHOLE: &str = "n (N := 2) { type t : range 1 .. N; type l : list [nat] of t with capacity 3; type s : set of t with capacity 2;
    type v : vector [t] of bool; type c : enum (red, green); type r : struct { t a; bool b; };
    function f (t x) -> int { int y := 0; for (i in t) y := y + int(i); if (x > 1) return y; return int(x); }
    place a { dom : t * c; init : for (i in t) <( i, red )>; capacity : 2; } place b { dom : l; init : <( empty )>; }
    place d { dom : v; init : <( [true] )>; } place e { dom : epsilon; init : 2 * epsilon; capacity : 2; }
    transition x { in { a : <( i, k )>; b : <( q )>; } out { a : <( i, succ k )>; b : <( q & i )>; } guard : not q'full; }
    transition y { in { d : <( w )>; e : epsilon; } out { d : <( w :: ([j] := false) )>; } pick { j in t; } let { int z := f(j); }
       priority : z; description : \"%d\", z; }
    proposition p : exists (m in a | m->2 = green) and sum (m in a : int(m->1)) > 2; }
    state property q : reject p; accept deadlock;";

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_characters(text in "\\PC{0,200}") {
        reads(&text);
    }

    #[test]
    fn any_row_of_pieces(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..80)) {
        reads(&format!("n {{ {} }}", pieces.join(" ")));
    }

    /// A valid net with a few tokens omitted, repeated, or replaced.
    #[test]
    fn nearly_right_nets(changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3u8, prop::sample::select(&PIECES[..])), 1..4)) {
        let mut words: Vec<&str> = WHOLE.split_inclusive([' ', '\n']).collect();
        for (index, how, piece) in &changes {
            let at = index.index(words.len());
            match how {
                0 => { words.remove(at); }
                1 => words.insert(at, words[at]),
                _ => words[at] = piece,
            }
        }
        reads(&words.concat());
    }

    #[test]
    fn any_property_file(pieces in prop::collection::vec(prop::sample::select(&["state", "property", "ltl", "a", ":", ";", "reject", "accept", "deadlock", "[]", "<>", "(", ")", "not", "and", "=>", "<=>", "until"][..]), 0..30)) {
        let mut net = parse(WHOLE.as_bytes(), &[]).expect("a net");
        let _ = parse_properties(&mut net, pieces.join(" ").as_bytes());
    }
}

#[test]
fn the_net_that_is_changed_above_is_right() {
    let net = parse(WHOLE.as_bytes(), &[]).expect("a net");
    assert!(ColouredSystem::new(net, WHOLE).is_ok());
}
