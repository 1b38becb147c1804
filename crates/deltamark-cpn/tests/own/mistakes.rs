//! What people get wrong, and what they are told: each message points at the part that is wrong and names page and arc.

use crate::*;

const ML: &str = "colset INT = int; colset STRING = string; colset BOOL = bool; colset LIST = list INT; \
                  colset E = with red | green; var n, m : INT; var s : STRING; var b : BOOL; \
                  fun f (x, y) = x + y;";

/// The text at the position, the message and the advice for a net with one mistake.
fn told(text: &str) -> (String, String, String) {
    let wrong = load(text).err().unwrap_or_else(|| panic!("it loads: {text}"));
    let first = &wrong[0];
    let at = first.span.map_or("", |span| &text[span.start..]);
    (at.into(), first.message.clone(), first.help.clone().unwrap_or_default())
}

#[test]
fn inscriptions_of_arcs() {
    // The inscription, what is pointed at, and parts of message and advice.
    for (label, at, message, help) in [
        ("\"a\"", "\"a\"", "expected the type int of the colour set `INT`, or a multiset of it; found string", ""),
        ("nn", "nn", "there is no `nn`", "did you mean `n`?"),
        ("2`n+1", "`n+1", "the left side of `+`: expected the type int, found int list", "in parentheses"),
        ("n + s", "s<", "the right side of `+`: expected the type int, found string", ""),
        ("f (n, s)", "s)<", "part 2 of the argument of `f`: expected the type int, found string", ""),
        ("f n", "n<", "the argument of `f`: expected the type int * int, found int", ""),
        ("f", "f<", "found (int * int) -> int", ""),
        ("n 3", "n 3<", "`n` is no function: it has the type int", ""),
        ("f (n, m) 3", "f (n, m) 3<", "this is no function: it has the type int", ""),
        ("1`n++m", "m<", "the right side of `++`: expected the type int list, found int", "1`TOKEN"),
        ("n--1`m", "n--", "the left side of `--`", "1`TOKEN"),
        ("1`n++1`s", "`s<", "the right side of `++`: expected the type int list, found string list", ""),
        ("if b then 1`n else n", "n<", "`then` and `else` give different types: expected the type int list", ""),
        ("if n then n else m", "n then", "expected the type bool, found int", ""),
        ("[n, s]", "s]<", "the elements have different types: expected the type int, found string", ""),
        ("1`red", "`red<", "found E list", ""),
        ("1`-1", "`-1<", "\"`-\" is not expected here", "read as one name"),
        ("n, m", ", m<", "`,` is not expected here", ""),
        ("(n", "<", "expected `)`, found the end of the text", ""),
        ("if b then n", "<", "expected `else`, found the end of the text", ""),
        ("n^^[m]", "n^^", "the left side of `^^`: expected the type 'a list, found int", ""),
        ("#a n", "#a n<", "no fitting field `a` in the type int", ""),
        ("1.5", "1.5<", "numbers with a point are not supported", ""),
        ("case n of 0 => n | _ => s", "s<", "the rules give different types: expected the type int, found string", ""),
    ] {
        let text = file(ML, &[("P", "INT", "1`1")], &[("T", "", "")], &[("PtoT", "T", "P", label)]);
        let found = told(&text);
        let start = found.0.starts_with(at);
        assert!(start && found.1.contains(message) && found.2.contains(help), "{label}: {:.20} {found:?}", found.0);
        assert!(found.1.ends_with("in the arc between transition `Top'T 1` and place `Top'P 1`"), "{}", found.1);
    }
}

#[test]
fn guards_types_and_markings() {
    let net = |of: &str, marking: &str, guard: &str| {
        file(ML, &[("P", of, marking)], &[("T", guard, "")], &[("PtoT", "T", "P", "n")])
    };
    for (of, marking, guard, message, help) in [
        ("INT", "1`1", "n", "expected the type bool, found int, in the guard of transition `Top'T 1`", ""),
        ("INT", "1`1", "n == 1", "the left side of `==`: expected", "tokens are compared with `=`"),
        ("INT", "1`1", "[n = 1, s]", "expected the type bool, found string, in the guard", ""),
        ("INT", "1`1", "n = 1 and m = 2", "`and` is not expected here, in the guard", ""),
        ("INT", "1`1", "s = s", "transition `Top'T 1` cannot bind the variable `s` from the large", "an input arc"),
        ("int", "1`1", "", "there is no colour set `int`, in the type of place `Top'P 1`", "did you mean `INT`?"),
        ("STRNG", "", "", "there is no colour set `STRNG`, in the type of place `Top'P 1`", "did you mean `STRING`?"),
        ("INT", "1`red", "", "found E list, in the initial marking of place `Top'P 1`", ""),
        ("INT", "n", "", "variables have no value in the initial marking of place `Top'P 1`", ""),
        ("INT", "hd []", "", "the exception Empty is raised, in the initial marking of place `Top'P 1`", ""),
    ] {
        let found = told(&net(of, marking, guard));
        assert!(found.1.contains(message) && found.2.contains(help), "{of} {marking} {guard}: {found:?}");
        assert!(found.1.matches("in the ").count() <= 1, "{}", found.1);
    }
}
