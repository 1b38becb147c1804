//! Property files: their contents, and the diagnostics of wrong ones.

mod common;

use common::{Fake, all_rendered};
use deltamark_core::Goal;
use deltamark_logic::{Asked, MAX_FILE_LENGTH, parse_file};

/// The properties as `kind name: text`.
fn listed(text: &str) -> Vec<String> {
    let properties = parse_file(text, &Fake).unwrap_or_else(|findings| panic!("{}", all_rendered(text, &findings)));
    let line = |asked: &Asked| {
        let property = match asked {
            Asked::State(property) => property,
            Asked::Temporal(name, formula) => return format!("{} {name}: {}", formula.logic.word(), formula.text),
        };
        let kind = match &property.goal {
            Goal::Reachable(_) => "reach",
            other => other.word(),
        };
        format!("{kind} {}: {}", property.name, property.text)
    };
    properties.iter().map(line).collect()
}

fn bad(text: &str, expected: &str) {
    let findings = parse_file(text, &Fake).err().unwrap_or_else(|| panic!("{text} is accepted"));
    let got = all_rendered(text, &findings);
    assert_eq!(got, expected.trim_start_matches('\n').trim_end(), "\n--- got ---\n{got}\n---");
}

#[test]
fn files_hold_properties() {
    let dead = "no reachable state is a deadlock";
    for (text, expected) in [
        ("", vec![]),
        ("# nothing\n\n   # here\n", vec![]),
        ("invariant mutex: p + q <= 1", vec!["invariant mutex: p + q <= 1".into()]),
        ("\u{feff}reach: b\r\n", vec!["reach b: b".into()]),
        (
            "reach both: p = 1 # first\n# between\n\n\tand q = 1\ninvariant A-PT-2: b",
            vec!["reach both: p = 1 and q = 1".into(), "invariant A-PT-2: b".into()],
        ),
        ("reach far:\n  p = 3\n", vec!["reach far: p = 3".into()]),
        ("invariant: b # always\nreach: (b)", vec!["invariant b: b".into(), "reach (b): (b)".into()]),
        ("invariant: b\nreach: b", vec!["invariant b: b".into(), "reach b: b".into()]),
        ("ltl fair: G F b\nctl: AG\n EF b", vec!["ltl fair: G F b".into(), "ctl A G E F b: A G E F b".into()]),
        ("deadlock-free", vec![format!("deadlock-free deadlock-free: {dead}")]),
        ("deadlock-free live # really\n\n", vec![format!("deadlock-free live: {dead}")]),
        ("invariant: \"odd name-1\" >= 0", vec!["invariant \"odd name-1\" >= 0: \"odd name-1\" >= 0".into()]),
    ] {
        assert_eq!(listed(text), expected, "{text:?}");
    }
}

#[test]
fn wrong_files_are_pointed_at() {
    for (text, expected) in [
        (
            "# two mistakes in one run\ninvariant a: p + = 1\nreach b: qq\n   = 2 and pp = 1\n",
            "
invariant a: p + = 1
                 ^
expected a name, a number, `not` or `(`, found `=`
reach b: qq
         ^^
the model has nothing called `qq`
= did you mean `q`?
   = 2 and pp = 1
           ^^
the model has nothing called `pp`
= did you mean `p`?",
        ),
        (
            "ltl fair: G F qq\nCTL: AG b",
            "
ltl fair: G F qq
              ^^
the model has nothing called `qq`
= did you mean `q`?
CTL: AG b
^^^
a property cannot begin with `CTL`
= write `ctl`, in small letters",
        ),
        (
            "invarient x: b\nreachable: b\np = 1",
            "
invarient x: b
^^^^^^^^^
a property cannot begin with `invarient`
= did you mean `invariant`?
reachable: b
^^^^^^^^^
a property cannot begin with `reachable`
= did you mean `reach`?
p = 1
^
a property cannot begin with `p`
= properties begin with `invariant`, `reach`, `ltl`, `ctl` or `deadlock-free`; indented lines continue the property above",
        ),
        (
            "invariant p = 1\ninvariant \"a:b\" = 1\ninvariant p >= 1: b",
            "
invariant p = 1
         ^
a `:` is missing behind `invariant`
= write `invariant NAME: EXPRESSION` or `invariant: EXPRESSION`
invariant \"a:b\" = 1
         ^
a `:` is missing behind `invariant`
= write `invariant NAME: EXPRESSION` or `invariant: EXPRESSION`
invariant p >= 1: b
            ^
`>` cannot be part of a property's name
= a name is plain words; an expression stands behind a `:`",
        ),
        (
            "  p = 1\n  q = 1\ninvariant x: b\nreach x: b",
            "
  p = 1
  ^^^^^
this line continues nothing
= a property begins at the left edge; indented lines continue it
reach x: b
      ^
there are two properties called `x`
= give each property a name of its own",
        ),
        (
            "deadlock-free: b\ndeadlock-free x\n  more",
            "
deadlock-free: b
             ^
`deadlock-free` takes no expression
= write `deadlock-free` or `deadlock-free NAME`
  more
  ^^^^
`deadlock-free` does not go on over several lines
= a property of its own begins at the left edge",
        ),
        (
            "invariant x:\nreach y: b",
            "
invariant x:
            ^
the expression is empty
= an expression reads like `p >= 1 and not deadlock`",
        ),
    ] {
        bad(text, expected);
    }
    let long = "#".repeat(MAX_FILE_LENGTH + 1);
    bad(&long, "the file is 16777217 bytes long; at most 16777216 are accepted");
}
