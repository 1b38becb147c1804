//! What the language accepts, how it groups, and its diagnostics.

mod common;

use common::{Fake, all_rendered};
use deltamark_logic::{MAX_LENGTH, compile, parse};

/// Compares the printed form, in which the grouping shows.
fn groups(text: &str, expected: &str) {
    let same = parse(text).unwrap_or_else(|findings| panic!("{text}: {}", all_rendered(text, &findings)));
    assert_eq!(same, parse(expected).unwrap(), "{text} reads as {same}");
    assert_eq!(parse(&same.to_string()).unwrap(), same, "{same} reads back as itself");
}

fn good(text: &str) {
    if let Err(findings) = compile(text, &Fake) {
        panic!("{}", all_rendered(text, &findings));
    }
}

fn bad(text: &str, expected: &str) {
    let findings = compile(text, &Fake).expect_err(text);
    let got = all_rendered(text, &findings);
    assert_eq!(got, expected.trim_start_matches('\n').trim_end(), "\n--- got ---\n{got}\n---");
}

#[test]
fn operators_bind_as_documented() {
    for (text, expected) in [
        ("a or b and c", "a or (b and c)"),
        ("a and b or c", "(a and b) or c"),
        ("a implies b implies c", "a implies (b implies c)"),
        ("a or b implies c", "(a or b) implies c"),
        ("a iff b implies c", "a iff (b implies c)"),
        ("a implies b iff c", "(a implies b) iff c"),
        ("not a and b", "(not a) and b"),
        ("not p = 1", "not (p = 1)"),
        ("!p = 1 | b", "(not (p = 1)) or b"),
        ("not not a", "not (not a)"),
        ("p + q * r = 1", "(p + (q * r)) = 1"),
        ("p * q % r / 2 = 1", "p * q % r / 2 = 1"),
        ("p - q - r = 1", "p - q - r = 1"),
        ("-p * q = 1", "(-p) * q = 1"),
        ("p - -1 = 1", "p - (-1) = 1"),
        ("p = 1 and q < 2 or r >= 3", "((p = 1) and (q < 2)) or (r >= 3)"),
        ("a && b || !c", "a and b or not c"),
        ("a & b | !c", "a and b or not c"),
        ("a -> b => c", "a implies b implies c"),
        ("a <-> b <=> c", "a iff b iff c"),
        ("p == q and p <> q", "p = q and p != q"),
        ("p<-1", "p < -1"),
        ("\"a\"->b", "a implies b"),
        ("deadlock->b", "deadlock implies b"),
        ("fireable(t)->b", "fireable(t) implies b"),
        ("p=1->q=1", "p = 1 implies q = 1"),
        ("p # a comment\n = 1", "p = 1"),
    ] {
        groups(text, expected);
    }
    assert_ne!(parse("(a and b) and c"), parse("a and (b and c)"));
    assert_ne!(parse("p - (q - r) = 1"), parse("p - q - r = 1"));
    assert_ne!(parse("a->b"), parse("a -> b"));
}

#[test]
fn expressions_print_with_the_fewest_parentheses() {
    for text in [
        "(a or b) and c",
        "not (a and b)",
        "(a implies b) implies c",
        "-(5) = -5",
        "--5 = - 5",
        "p - --q = ---r",
        "-9223372036854775808 <= p",
        "(p = q) = b",
        "(not a) = b",
        "p * (q + r) - (p - q) > tokens(p, \"odd name-1\")",
        "fireable(t, \"go \\\"on\\\"\") or P_0.CS + a[0][12] + P->x.y > 0",
        "\"true\" or \"fireable\" or \"a\\\\b\\n\" or \"\" or \"3d\" or \"a[x]\" or ß_1 or P.not",
    ] {
        let expected = text.replace("- 5", "-5");
        assert_eq!(parse(text).unwrap().to_string(), expected);
    }
}

#[test]
fn well_formed_expressions_compile() {
    for text in [
        "true",
        "not deadlock",
        "\"deadlock\" and not deadlock",
        "p >= 1",
        "P_0.CS + a[0] + P->x <= 3",
        "\"odd name-1\" = 'odd name-1'",
        "fireable(t)",
        "fireable(t, u, 'go \"on\"')",
        "tokens(p, q, P_0.CS) = 3",
        "b = c and b != (p = 1)",
        "(p) = ((1))",
    ] {
        good(text);
    }
}

#[test]
fn wrong_syntax_is_pointed_at() {
    for (text, expected) in [
        (
            "1 <= p <= 3",
            "
1 <= p <= 3
       ^^
comparisons cannot be chained
= write `1 <= p and p <= 3`",
        ),
        (
            "p +",
            "
p +
   ^
expected a name, a number, `not` or `(`, found the end",
        ),
        (
            "(p = 1 and (q = 2)",
            "
(p = 1 and (q = 2)
^
this parenthesis is never closed
= put a `)` where it should end",
        ),
        (
            "p = 1) and b",
            "
p = 1) and b
     ^
this parenthesis closes nothing
= remove it, or open one further left",
        ),
        (
            "p = 1 AND b",
            "
p = 1 AND b
      ^^^
expected an operator or the end, found `AND`
= write `and` in small letters",
        ),
        (
            "p =< 1",
            "
p =< 1
   ^
expected a name, a number, `not` or `(`, found `<`
= the comparisons are = != < <= > >=",
        ),
        (
            "p = not b",
            "
p = not b
    ^^^
`not` needs parentheses here
= write `(not …)`",
        ),
        (
            "p ; q ? 1",
            "
p ; q ? 1
  ^
`;` does not belong in an expression
= a name with unusual characters can be written in quotes: \"any name\"
p ; q ? 1
      ^
`?` does not belong in an expression
= a name with unusual characters can be written in quotes: \"any name\"",
        ),
        (
            "\"p = 1",
            "
\"p = 1
^^^^^^
the quoted name has no end
= inside quotes, write a line break as \\n, a quote as \\\" and a backslash as \\\\",
        ),
        (
            "'a\\b' = 1",
            "
'a\\b' = 1
  ^^
`\\b` is no escape
= write a backslash as \\\\; the escapes are \\\" \\' \\\\ \\n \\r \\t",
        ),
        (
            "p = 9223372036854775808",
            "
p = 9223372036854775808
    ^^^^^^^^^^^^^^^^^^^
the number is too large
= numbers lie between -9223372036854775808 and 9223372036854775807",
        ),
        (
            "3p = 1",
            "
3p = 1
^^
`3p` is no number
= if it is a name, put it in quotes: \"3p\"",
        ),
        (
            "p = 0.5",
            "
p = 0.5
    ^^^
numbers here are whole numbers",
        ),
        (
            "a [0] = 1",
            "
a [0] = 1
  ^
expected an operator or the end, found `[`
= a name such as `a[0]` or `P.x` is written without spaces, or in quotes: \"a[0]\"",
        ),
        (
            "firable(t)",
            "
firable(t)
^^^^^^^
there is no function `firable`
= did you mean `fireable`?",
        ),
        (
            "EF(p = 1)",
            "
EF(p = 1)
^^
temporal formulas are not available
= a reach property already asks for some reachable state: write `(p = 1)` there",
        ),
        (
            "AG p <= 1",
            "
AG p <= 1
^^
temporal formulas are not available
= an invariant already speaks of all reachable states: write `p <= 1`",
        ),
        (
            "[] (p <= 1)",
            "
[] (p <= 1)
^^
temporal formulas are not available
= an invariant already speaks of all reachable states: write `(p <= 1)`",
        ),
        (
            "<> not b",
            "
<> not b
^^
temporal formulas are not available
= a reach property already asks for some reachable state: write `not b` there",
        ),
        (
            "G F b",
            "
G F b
^^^
temporal formulas are not available
= an expression speaks of one state; it can be an invariant (true in all reachable states) or a goal to reach",
        ),
        (
            "b and EF b",
            "
b and EF b
      ^^
temporal formulas are not available
= an expression speaks of one state; it can be an invariant (true in all reachable states) or a goal to reach",
        ),
        (
            "p ≤ 1 ∧ q := 2",
            "
p ≤ 1 ∧ q := 2
  ^
`≤` is not part of the language
= write `<=`
p ≤ 1 ∧ q := 2
      ^
`∧` is not part of the language
= write `and`
p ≤ 1 ∧ q := 2
          ^^
`:=` is not part of the language
= write `=`",
        ),
        (
            "fireable t and b",
            "
fireable t and b
         ^
expected an operator or the end, found `t`
= write `fireable(t)`",
        ),
        (
            "fireable(and)",
            "
fireable(and)
         ^^^
`and` is a word of the language, not a name
= if it is a name, put it in quotes: \"and\"",
        ),
        (
            "fireable()",
            "
fireable()
         ^
expected a name, found `)`",
        ),
        (
            "  ",
            "
  
^^
the expression is empty
= an expression reads like `p >= 1 and not deadlock`",
        ),
    ] {
        bad(text, expected);
    }
}

#[test]
fn wrong_names_and_kinds_are_pointed_at() {
    for (text, expected) in [
        (
            "p and q",
            "
p and q
^
this is a number, but a truth value is needed here
= did you mean `p >= 1`?
p and q
      ^
this is a number, but a truth value is needed here
= did you mean `q >= 1`?",
        ),
        (
            "not (p + q)",
            "
not (p + q)
    ^^^^^^^
this is a number, but a truth value is needed here
= did you mean `(p + q) >= 1`?",
        ),
        (
            "b = 0",
            "
b = 0
^
this is a truth value, but a number is needed here
= did you mean `not b`?",
        ),
        (
            "1 = fireable(t)",
            "
1 = fireable(t)
    ^^^^^^^^^^^
this is a truth value, but a number is needed here
= did you mean `fireable(t)`?",
        ),
        (
            "p + b > tokens(c, q)",
            "
p + b > tokens(c, q)
    ^
this is a truth value, but a number is needed here
= truth values are joined by `and`, `or`, `not`, and compared by `=` and `!=` only
p + b > tokens(c, q)
               ^
this is a truth value, but a number is needed here
= truth values are joined by `and`, `or`, `not`, and compared by `=` and `!=` only",
        ),
        (
            "p => 1",
            "
p => 1
  ^^
`=>` means `implies`, which joins truth values
= for \"at least\" write `>=`",
        ),
        (
            "P_0.Cs = 1 or x_y = 2 or x_y = 3 or t",
            "
P_0.Cs = 1 or x_y = 2 or x_y = 3 or t
^^^^^^
the model has nothing called `P_0.Cs`
= did you mean `P_0.CS`?
P_0.Cs = 1 or x_y = 2 or x_y = 3 or t
              ^^^
the model has nothing called `x_y`
= `deltamark stats MODEL --all` lists the names
P_0.Cs = 1 or x_y = 2 or x_y = 3 or t
                                    ^
the model has nothing called `t`
= it is a transition: did you mean `fireable(t)`?",
        ),
        (
            "Q = cs or cs != Q or Q != cs",
            "
Q = cs or cs != Q or Q != cs
^^^^^^
a process has no value to compare; whether it is in a state is a truth value
= did you mean `Q.cs`?
Q = cs or cs != Q or Q != cs
          ^^
the model has nothing called `cs`
= did you mean `Q.cs`?
Q = cs or cs != Q or Q != cs
                ^
the model has nothing called `Q`
= what belongs to it is named with a dot, for instance `Q.cs`
Q = cs or cs != Q or Q != cs
                     ^^^^^^^
a process has no value to compare; whether it is in a state is a truth value
= did you mean `not Q.cs`?",
        ),
        // A number, not a state.
        (
            "P_0 = CS",
            "
P_0 = CS
^^^
the model has nothing called `P_0`
= what belongs to it is named with a dot, for instance `P_0.CS`
P_0 = CS
      ^^
the model has nothing called `CS`
= did you mean `P_0.CS`?",
        ),
        (
            "fireable(p, 'go on')",
            "
fireable(p, 'go on')
         ^
the model has no transition called `p`
= it has a value, but it is no transition
fireable(p, 'go on')
            ^^^^^^^
the model has no transition called `go on`
= did you mean `\"go \\\"on\\\"\"`?",
        ),
        (
            "odd name-1 = 1 or b->c",
            "
odd name-1 = 1 or b->c
    ^^^^
expected an operator or the end, found `name`
= a name with spaces is written in quotes: \"any name\"",
        ),
        (
            "x-1 = 1 or b->c",
            "
x-1 = 1 or b->c
^
the model has nothing called `x`
= the name `x-1` needs quotes: \"x-1\"
x-1 = 1 or b->c
           ^^^^
the model has nothing called `b->c`
= if it is an implication, put spaces around the arrow: `b -> c`",
        ),
    ] {
        bad(text, expected);
    }
}

#[test]
fn deep_and_long_texts_get_a_diagnostic() {
    let deep = |open: &str| format!("{}true{}", open.repeat(100_000), ")".repeat(100_000));
    for text in [
        deep("("),
        deep("not ("),
        "not ".repeat(100_000) + "b",
        "- ".repeat(100_000) + "p = 1",
        "b implies ".repeat(90_000) + "b",
        "b and (".repeat(100_000),
        "p + (".repeat(100_000),
    ] {
        let findings = compile(&text, &Fake).expect_err("too deep");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].message, "the expression nests deeper than 250 levels");
    }
    let findings = compile(&" ".repeat(MAX_LENGTH + 1), &Fake).expect_err("too long");
    assert_eq!(findings[0].message, "the expression is 1048577 bytes long; at most 1048576 are accepted");
}

#[test]
fn long_flat_chains_are_fine() {
    for text in [
        "b and ".repeat(100_000) + "b",
        "b iff ".repeat(100_000) + "b",
        "p + ".repeat(100_000) + "p = 1",
        format!("tokens(p{}) > 1", ", q".repeat(100_000)),
        format!("{}b{}", "(".repeat(240), ")".repeat(240)),
    ] {
        good(&text);
    }
}

#[test]
fn findings_are_no_more_than_people_read() {
    let unknown: Vec<String> = (0..1000).map(|n| format!("unknown_{n}")).collect();
    for text in [unknown.join(" and "), "1 < p < 2 and ".repeat(1000) + "b", "?".repeat(1000)] {
        assert_eq!(compile(&text, &Fake).expect_err("wrong").len(), 20);
    }
}

#[test]
fn the_deepest_expressions_fit_into_a_small_stack() {
    // The shape with the most calls a level, nested as deeply as is accepted.
    let nested = |open: &str, atom: &str, times: usize| open.repeat(times) + atom + &")".repeat(times);
    let deepest = move |open: &str, atom: &str| {
        let accepted = |times: &usize| parse(&nested(open, atom, *times)).is_ok();
        (1..500).take_while(accepted).last().map(|times| nested(open, atom, times)).expect("one level is accepted")
    };
    let work = move || {
        for (open, atom) in [("(", "b"), ("b iff b implies b or b and not (", "b"), ("-(", "p"), ("b = (not ", "b")] {
            let text = deepest(open, atom);
            let _ = compile(&text, &Fake);
            if let Ok(expr) = parse(&text) {
                assert_eq!(parse(&expr.to_string()).unwrap(), expr.clone());
            }
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}
