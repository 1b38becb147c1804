//! What a reader does not understand, it refuses: a keyword that is misspelt or missing never changes what a model means in silence.
//! Each keyword of each text is renamed, and dropped, one at a time: the text is refused, or the model is as before.

use deltamark::Check;
use deltamark::load::{self, Format, LoadOptions};
use deltamark_core::Limits;

const TINA: &str = "net n
pl p : {a label} (2) -> t
tr t : u [0,w[ p -> q*2
tr s q*2 r?-3 -> p
lb t v
nt note 0 {any text}
";

const DVE: &str = "
const byte N = 2;
byte x = 0, a[2] = {1, 0};
int y = -1;
channel {byte} c[1];
channel d;
process A { byte z = 1; state q, r, e; init q; commit e; assert q: x < 9; trans
    q -> r { guard x < N, y < 0; sync c!x + z; effect x = x + 1, a[0] = 0; },
    r -> q { sync d!; },
    -> e { guard a[0] == 1; }; }
process B { state w, v; init w; trans w -> v { sync c?a[1]; }, v -> w { sync d?; }; }
process M { state m; init m; accept m; trans m -> m { guard x == 2; }; }
system async property M;
";

const LNA: &str = "
net (K := 2) {
    type id : range 1 .. K;
    subtype some : id range 1 .. 1;
    type colour : enum (red, green);
    type both : struct { id who; colour what; };
    constant int TWO := 2;
    function next (colour c) -> colour { if (c = red) return green; else return red; }
    place p { dom: id * colour; init: for (i in id) <( i, red )>; capacity: 2; }
    place q { dom: id; }
    place done { dom: epsilon; capacity: 9; }
    transition t { in { p: <( i, c )>; } out { p: <( i, next (c) )>; done: epsilon; } inhibit { done: TWO * epsilon; }
        pick { k in some; } let { colour d := next (c); } guard: d = green or k = 1; priority: 1; safe; description: \"go %d\", i; }
    proposition full: done'card = 2;
}
";

/// The language, a text in it, and its words that say what follows.
const TEXTS: &[(&str, &str, &[&str])] = &[
    ("tina", TINA, &["net", "pl", "tr", "lb", "nt"]),
    (
        "dve",
        DVE,
        &[
            "const", "byte", "int", "channel", "process", "state", "init", "commit", "accept", "assert", "trans",
            "guard", "sync", "effect", "system", "async", "property",
        ],
    ),
    (
        "lna",
        LNA,
        &[
            "type",
            "subtype",
            "range",
            "enum",
            "struct",
            "constant",
            "function",
            "if",
            "return",
            "else",
            "place",
            "dom",
            "init",
            "capacity",
            "for",
            "in",
            "transition",
            "out",
            "inhibit",
            "pick",
            "let",
            "guard",
            "priority",
            "safe",
            "description",
            "proposition",
            "epsilon",
        ],
    ),
];

/// States, edges and deadlocks, and what is said beside them; nothing, if the text is refused.
fn answer(format: &str, text: &str) -> Option<(u64, u64, u64, Vec<String>)> {
    let format = Format::by_name(format).expect("a known format");
    let model = load::parse("model", format, text.as_bytes(), &LoadOptions::default()).ok()?;
    let limits = Limits { states: Some(500), ..Limits::default() };
    let report = Check::loaded(&model).limits(limits).threads(1).explore_all(true).run().expect("it runs");
    let statistics = report.statistics;
    Some((statistics.states, statistics.edges, statistics.deadlocks, report.notes))
}

/// Where a word is in a text, as a whole word.
fn places(text: &str, word: &str) -> Vec<usize> {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = text.as_bytes();
    let whole =
        |at: usize| !is_part(at.checked_sub(1).and_then(|at| bytes.get(at))) && !is_part(bytes.get(at + word.len()));
    text.match_indices(word).map(|(at, _)| at).filter(|&at| whole(at)).collect()
}

#[test]
fn a_misspelt_or_missing_keyword_is_refused_or_means_nothing() {
    for &(format, text, words) in TEXTS {
        let expected = answer(format, text).unwrap_or_else(|| panic!("the {format} text is right"));
        assert!(expected.0 > 2, "{format}: {expected:?}");
        let mut refused = 0;
        for word in words {
            let found = places(text, word);
            assert!(!found.is_empty(), "{format}: `{word}` is not in the text");
            for at in found {
                let (before, after) = (&text[..at], &text[at + word.len()..]);
                let changed = [format!("{word}x"), word[1..].to_string(), String::new()];
                // Another keyword is another model: `sync` for `async`.
                for new in changed.into_iter().filter(|new| !words.contains(&new.as_str())) {
                    // A line that loses its first word stays a line of its own.
                    let after = if new.is_empty() { after.strip_prefix(' ').unwrap_or(after) } else { after };
                    match answer(format, &format!("{before}{new}{after}")) {
                        None => refused += 1,
                        found => assert_eq!(found, Some(expected.clone()), "{format}: `{word}` at {at} became `{new}`"),
                    }
                }
            }
        }
        assert!(refused > 2 * words.len(), "{format}: {refused} refused");
    }
}

#[test]
fn a_misspelt_word_of_a_property_file_is_refused() {
    let model =
        load::parse("model", Format::by_name("tina").expect("a format"), TINA.as_bytes(), &LoadOptions::default());
    let model = model.unwrap_or_else(|wrong| panic!("{wrong}"));
    let text = "invariant few: p + q <= 9\nreach full: q >= 2\ndeadlock-free alive\n";
    let asked = |text: &str| Check::loaded(&model).properties("file", text).map(|check| check.property_count()).ok();
    assert_eq!(asked(text), Some(3));
    for word in ["invariant", "reach", "deadlock-free"] {
        for new in [format!("{word}s"), word[1..].to_string(), word.to_uppercase(), String::new()] {
            let changed = text.replacen(word, &new, 1);
            // Without its word a line is indented, and would go on with the line above.
            assert_eq!(asked(&changed), None, "{changed}");
        }
    }
    let wrong =
        ["invariant a: p > 0 q", "invariant a: p > 0; reach b: q > 0", "deadlock-free: p", "invariant a: p >\nreach"];
    for text in wrong.iter().chain(&["invariant a: p > 0\nreach a: q > 0", "# only a comment\n  p > 0"]) {
        assert_eq!(asked(text), None, "{text}");
    }
}
