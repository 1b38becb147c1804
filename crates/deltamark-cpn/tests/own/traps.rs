//! The traps of the language page, in its order; those that other tests show are not repeated.

use crate::*;

fn net(ml: &str, marking: &str, guard: &str, label: &str) -> String {
    file(&format!("{BASE} {ml}"), &[("P", "INT", marking)], &[("T", guard, "")], &[("PtoT", "T", "P", label)])
}

fn message(text: &str) -> String {
    load(text).err().map(|wrong| wrong[0].message.clone()).unwrap_or_default()
}

#[test]
fn layout_is_not_the_text() {
    let text =
        net("", "1`1", "", "n").replace("var n, m : INT;", "var n, m : INT;<layout>var n, m : INT; ) rubbish</layout>");
    assert_eq!(counts(&text), (2, 1));
}

#[test]
fn converted_files_have_errordecl_and_old_names() {
    let ml =
        "val n = 3; color PH = index ph with 1..n declare ms; color PR = product PH * PH declare mult; var p : PH;";
    let text = file(
        ml,
        &[("P", "PH", "PH"), ("Q", "PR", "mult'PR(1`ph 1, PH--1`ph 1)")],
        &[("T", "", "")],
        &[("ptot", "T", "P", "p")],
    );
    // Three of three are taken in any order.
    assert_eq!(counts(&text.replace("<ml>", "<errordecl>").replace("</ml>", "</errordecl>")), (8, 12));
}

#[test]
fn at_signs_are_time_and_append_is_two_carets() {
    let found = message(&net("colset L = list INT; fun f (a : L) = a @ [1];", "hd (f [1])", "", "n"));
    assert!(found.contains("appended with `^^`"), "{found}");
    assert_eq!(counts(&net("", "hd ([1]^^[2])", "", "n")), (2, 1));
}

#[test]
fn size_is_of_multisets() {
    assert!(message(&net("", "size \"abc\"", "", "n")).contains("expected the type"));
    assert_eq!(counts(&net("", "size (1`1++2`2)", "n = 3", "n")), (2, 1));
}

#[test]
fn constructors_are_not_variables_in_patterns() {
    let ml = "colset E = with e | f; var x : E; fun isE e = true | isE _ = false;";
    let text =
        file(&format!("{BASE} {ml}"), &[("P", "E", "1`e++1`f")], &[("T", "isE x", "")], &[("PtoT", "T", "P", "x")]);
    assert_eq!(counts(&text), (2, 1));
}

#[test]
fn fields_may_be_called_as_variables() {
    let ml = "colset R = record n:INT * m:INT;";
    let text = file(
        &format!("{BASE} {ml}"),
        &[("P", "R", "{m=2,n=1}"), ("Q", "INT", "")],
        &[("T", "", "")],
        &[("PtoT", "T", "P", "{n=n,m=m}"), ("TtoP", "T", "Q", "#n {n=n,m=m}")],
    );
    assert_eq!(counts(&text), (2, 1));
}

#[test]
fn what_is_not_used_may_be_of_any_kind() {
    let ml = "colset R = real; colset T = time; colset I = intinf; var lost : NOWHERE; val pi = 3.14; \
              fun log k = TextIO.print k; fun wait 0 = () | wait k = while true do (); globref g = 1; fun set () = g := 2;";
    assert_eq!(counts(&net(ml, "1`1", "", "n")), (2, 1));
    for (guard, why) in [
        ("n < floor pi", "numbers with a point are not supported"),
        ("log \"a\" = ()", "output is not supported"),
        ("set () = ()", "references that are written"),
        ("lost = n", "there is no colour set `NOWHERE`"),
    ] {
        let found = message(&net(ml, "1`1", guard, "n"));
        assert!(found.contains(why) && found.contains("Top'T 1"), "{guard}: {found}");
    }
}

#[test]
fn an_unbounded_net_ends_incomplete() {
    let text =
        file(BASE, &[("P", "UNIT", "()")], &[("T", "", "")], &[("PtoT", "T", "P", "()"), ("TtoP", "T", "P", "2`()")]);
    let system = load(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let limits = deltamark_core::Limits { states: Some(100), ..deltamark_core::Limits::default() };
    let control = Control { limits, ..Control::new() };
    let outcome = explore_under(&system, &control);
    assert_eq!(outcome.stopped_by, Some(deltamark_core::Stop::States));
}

#[test]
fn an_apostrophe_is_a_letter_and_symbols_are_matched_as_long_as_possible() {
    assert_eq!(counts(&net("fun f' x' = x' + 1; val ac'k = f' 1;", "ac'k", "n = 2", "n")), (2, 1));
    for wrong in ["1`~1", "1`(1+~)"] {
        assert!(!message(&net("", wrong, "", "n")).is_empty(), "{wrong}");
    }
    assert!(!message(&net("", "1`1", "n=~1", "n")).is_empty());
    assert_eq!(counts(&net("", "1`(~1)", "n= ~1", "n")), (2, 1));
    // Nested comments.
    assert_eq!(counts(&net("", "1`1 (* a (* b *) c *)", "", "n")), (2, 1));
}

#[test]
fn functions_have_no_equality() {
    let found = message(&net("fun same (x, y) = x = y;", "1`1", "same (fn k => k, fn k => k)", "n"));
    assert!(found.contains("''a"), "{found}");
    assert!(message(&net("", "1`1", "mem [hd] hd", "n")).contains("expected the type"));
    assert_eq!(counts(&net("fun same (x, y) = x = y;", "1`1", "same (1, 1) andalso same (\"a\", \"a\")", "n")), (2, 1));
}

#[test]
fn exceptions_are_faults_and_tokens_stay_in_their_colour_sets() {
    let fault = |ml: &str, label: &str| {
        let text = file(
            &format!("{BASE} {ml}"),
            &[("P", "INT", "1`1"), ("Q", "S", "")],
            &[("T", "", "")],
            &[("PtoT", "T", "P", "n"), ("TtoP", "T", "Q", label)],
        );
        let system = load(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        explored::explore_system(&system, "plain").fault.map(|fault| fault.0).unwrap_or_default()
    };
    let ml = "colset S = int with 0..3;";
    assert!(fault(ml, "n + 7").contains("outside the colour set `S`"));
    assert!(fault(ml, "n div 0").contains("exception Div is raised"));
    assert!(fault(ml, "n").is_empty());
}
