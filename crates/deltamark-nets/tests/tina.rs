//! The contents of `.net` files, and how they are read.

mod common;

use deltamark_nets::{Net, tina, write};

fn read(text: &str) -> Net {
    let net = tina::parse(text).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}\n{text}"));
    assert_eq!(net.validate(), Ok(()));
    net
}

/// Checks that a text means the same as a plainer one.
#[track_caller]
fn check(text: &str, plain: &str) {
    let lines: Vec<&str> = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let written = write::to_tina(&read(text));
    assert_eq!(written.lines().collect::<Vec<_>>(), lines, "for {text}");
}

#[test]
fn every_kind_of_arc() {
    check(
        "net n\ntr t a b*3 c?2 d?-4 -> e f*2\npl a (7)\n",
        "net n
         pl a (7)
         pl b
         pl c
         pl d
         pl e
         pl f
         tr t a b*3 c?2 d?-4 -> e f*2",
    );
    check(
        "tr source -> p\ntr sink p ->\ntr nothing ->\ntr bare",
        "pl p\n tr source -> p\n tr sink p ->\n tr nothing ->\n tr bare ->",
    );
}

#[test]
fn declarations_add_up() {
    check(
        "tr t p -> q\ntr t p*2 p?1 p?5 p?-9 p?-8 -> q\npl q (1)\npl q (2)\npl p t -> u?3 t\n",
        "pl p
         pl q (3)
         tr t p*4 p?5 p?-8 -> q*2 p
         tr u p?3 ->",
    );
}

#[test]
fn labels_and_intervals() {
    let label = |text: &str| read(text).transitions[0].label.clone();
    assert_eq!(label("tr t : go p -> p"), Some("go".into()));
    assert_eq!(label("tr t : {go on} [0,w[ p -> p"), Some("go on".into()));
    assert_eq!(label("tr t [0,w[ p -> p"), None);
    assert_eq!(label("tr t p -> p\nlb t later"), Some("later".into()));
    assert_eq!(label("lb t early\ntr t : late p -> p"), Some("late".into()));
    assert_eq!(label("tr t : x p -> p\nlb t {}"), None);
    assert_eq!(label("tr t p -> p\nlb p place"), None);
    assert_eq!(label("pl p : here (1)\ntr t p -> p"), None);
}

#[test]
fn names() {
    let names = |text: &str| -> Vec<String> { read(text).places.into_iter().map(|place| place.name).collect() };
    assert_eq!(names(r"pl {a b\}c} (1)"), ["a b}c"]);
    assert_eq!(names(r"pl {\\\{\}}"), [r"\{}"]);
    assert_eq!(names(r"pl {a\b}"), [r"a\b"]);
    assert_eq!(names("pl {tr}\npl x'_1\npl {x'_1}\npl 12\npl é"), ["tr", "x'_1", "12", "é"]);
    assert_eq!(names("pl {# no comment} # a comment\n  # another\npl b"), ["# no comment", "b"]);
}

#[test]
fn numbers() {
    let marking = |text: &str| read(&format!("pl p ({text})")).places[0].initial;
    assert_eq!(marking("0"), 0);
    assert_eq!(marking("5K"), 5000);
    assert_eq!(marking("3M"), 3_000_000);
    assert_eq!(marking("4G"), 4_000_000_000);
    assert_eq!(marking("0T"), 0);
    assert_eq!(marking(" 4294967295 "), u32::MAX);
}

#[test]
fn layout_is_free() {
    let plain = "pl a (1)\n pl b\n tr t a -> b";
    check("pl a (1)\r\ntr t a -> b\r\n", plain);
    check("\u{FEFF}pl a (1) tr t a -> b", plain);
    check("pl a\n\t(1)\n\n  # in between\n# at the margin\n tr t\n  a\n-> b", plain);
    check("pl a(1)\ntr t a->b", plain);
    check("nt n 0 {a note\nover lines}\npl a (1)\nnt m 1 word\ntr t a -> b", plain);
}
