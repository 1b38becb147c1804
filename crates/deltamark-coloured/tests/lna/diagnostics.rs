//! Diagnostics of wrong nets: all at once, with spans, types and advice.

use super::{complaints, complaints_of};
use deltamark_coloured::lna::{parse, parse_properties, property_texts};

/// A net with one place and one transition, and something wrong in it.
fn with(declared: &str, transition: &str) -> String {
    format!(
        "n (N := 2) {{\n   type t : range 1 .. N;\n   type col : enum (red, green);\n   {declared}\n   \
         place p {{ dom : t * int; init : <( 1, 0 )>; }}\n   place e {{ dom : epsilon; }}\n   {transition}\n}}"
    )
}

#[test]
fn wrong_text() {
    let rows = [
        "",
        "n",
        "n {",
        "n { place }",
        "n { place p { dom : epsilon } }",
        "n { place p { init : epsilon; } }",
        "n { place p { dom : epsilon; dom : epsilon; capcity : 1; } }",
        "n { plaec p { dom : epsilon; } }",
        "n { place p { dom : epsilon; } } more",
        "n (N = 3) { place p { dom : epsilon; } }",
        "n { type t : rnage 1 .. 2; place p { dom : t; } }",
        "n { type t : int; place p { dom : t; } }",
        "n { type in : mod 3; }",
        "n { type t : range 1 .. 99999999999; place p { dom : t; } }",
        "n { place p { dom : epsilon; } transition t { out { } in { } } }",
        "n { place p { dom : epsilon; } transition t { in { p : epsilon; } } }",
        "n { place p { dom : epsilon; } transition t { in { } out { } guard : true; guard : true; } }",
        "n { place p { dom : int; init : <( 1 ); } }",
        "n { place p { dom : int; init : 1 + 2 * <( 1 )>; } }",
        "n { place p { dom : int; init : || ; } }",
        "n { place p { dom : int; init : <( | )>; } }",
        "n { function f () -> int { } place p { dom : int; } }",
        "n { function f () -> int { return 1; int x := 1; } place p { dom : int; } }",
        "n { function f () -> int { case (1) { default : return 1; 2 : return 2; } } place p { dom : int; } }",
        "n { place p { dom : int; } proposition q : exists (x in p : true); }",
        "n { place p { dom : int; } proposition q : forall (x in p | true); }",
        "n { place p { dom : int; init : <( 1 ≤ 2 )>; } }",
        "n { place p { dom : int; } \"text",
        "n { place p { dom : int; } /* comment",
        "n {\n#ifdef A\nplace p { dom : int; } }",
        "n {\n#include other\nplace p { dom : int; } }",
    ];
    let told: Vec<String> =
        rows.iter().map(|text| format!("{text}\n    {}", complaints(text).join("\n    "))).collect();
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn wrong_names_and_types() {
    let rows = [
        ("", "transition x { in { q : <( a, b )>; } out { } }"),
        ("", "transition x { in { p : <( a, b )>; } out { p : <( a, c )>; } }"),
        ("", "transition x { in { p : <( a )>; } out { e : <( 1 )>; p : epsilon; } }"),
        ("", "transition x { in { p : <( a, b )>; } out { } guard : a; }"),
        ("", "transition x { in { p : <( a, b )>; } out { } guard : a < b; }"),
        ("", "transition x { in { p : <( a, b )>; } out { } guard : b < N and b + true = 2; }"),
        ("", "transition x { in { p : <( a, b )>; } out { } guard : b = red or red < 1; }"),
        ("", "transition x { in { p : <( a, b )>; p : <( a, c )>; } out { } }"),
        ("", "transition x { in { p : <( a, b )>; } out { } } transition x { in { } out { } }"),
        ("", "transition x { in { p : if (true) <( a, b )>; } out { } }"),
        ("", "transition x { in { p : <( t(b), b + 1 )>; } out { } }"),
        ("", "transition x { in { p : <( a, b )>; } out { } inhibit { p : <( c, d + 1 )>; } }"),
        ("", "transition x { in { p : <( a, b )>; } out { } pick { c in p; } }"),
        ("", "transition x { in { p : <( a, b )>; } out { } pick { a in t; } }"),
        ("", "transition x { in { p : <( a, b )>; } out { } guard : p'card > 1; }"),
        ("", "transition x { in { p : <( a, b )>; } out { } guard : exists (i in t | i = a); }"),
        ("", "transition x { in { p : b * <( a, b )>; } out { } }"),
        ("", "transition x { in { p : for (i in t range a .. 2) <( i, b )>; } out { } }"),
        ("", "transition x { in { p : <( a, b )>; } out { } description : \"%d %d\", a; }"),
        ("", "proposition q : p'card > red;"),
        ("", "proposition q : exists (x in p | x->3 = 1);"),
        ("", "proposition q : exists (x in p | x = 1);"),
        ("", "proposition q : mult (x in t) = 1;"),
        ("", "proposition q : p'crad = 1;"),
        ("", "proposition q : t'size = 1;"),
        ("", "proposition q : col'first = 0;"),
        ("type t : mod 3;", ""),
        ("type u : range 3 .. 1; type v : mod 0; type w : range 1 .. 1 / 0;", ""),
        ("subtype u : t range 0 .. 1; subtype v : x; subtype w : bool range false .. true;", ""),
        ("type v : vector [int] of bool; type w : vector [nope] of bool;", ""),
        ("type l : list [nat] of int with capacity 0; type m : set of int with capacity 100000;", ""),
        ("type s : struct { int a; int a; };", ""),
        ("constant t C := 3; constant int D := 1 / 0; constant bool E := 1;", ""),
        ("constant int A := B; constant int B := 1;", ""),
        ("function f (int x) -> int { x := 1; return y; }", ""),
        ("function f (int x) -> int { for (i in t) i := 1; return true; }", ""),
        ("function f (int x) -> int; constant int C := f(1, 2) + g(3);", ""),
        ("function f (int x) -> int { return 1; } function f (int y) -> int { return 2; }", ""),
        ("function f (int x) -> int; function f (bool x) -> int { return 2; }", ""),
        ("function f (int x) -> int { print \"a\", x; return 1; }", ""),
        ("import function f (int x) -> int; constant int C := f(1);", ""),
        ("function f (col c) -> int { case (c) { red : return 1; red : return 2; 3 : return 3; } return 0; }", ""),
        ("type s : struct { int left; int right; }; function f (s x) -> int { return x.lfet + x[1]; }", ""),
        (
            "type a : list [nat] of int with capacity 2; type b : list [nat] of int with capacity 2; constant bool C := empty = empty;",
            "",
        ),
        ("constant t C := t(red); constant col D := col(1);", ""),
        ("place p { dom : int; type : prcess; capacity : -1; }", ""),
        ("constant int C := (((1 + + 2 ; constant int D := 1;", ""),
    ];
    let told: Vec<String> = rows
        .iter()
        .map(|(declared, transition)| {
            let text = with(declared, transition);
            format!("{declared}{transition}\n    {}", complaints(&text).join("\n    "))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn several_mistakes_are_told_at_once_and_in_order() {
    let text = "n {\n  type t : range 1 .. ;\n  place a { dom : t; init : <( 1 }\n  place b { dom : epsilon; int : 1; }\n  \
                transition x {\n    in { a : <( x ) ; b : epsilon }\n    out { b epsilon; }\n    guard : x > ;\n  }\n  \
                proposition p : ;\n  function f () -> int { return }\n}\n";
    insta::assert_snapshot!(complaints(text).join("\n"));
}

#[test]
fn no_more_than_twenty_are_told() {
    let text = format!("n {{ {} }}", "place p { dom : nope; } ".repeat(100));
    assert_eq!(complaints(&text).len(), 20);
}

#[test]
fn wrong_parameters() {
    let text = "n (N := 2) { constant bool B := true; place p { dom : epsilon; } }";
    let told = |name: &str, value: &str| {
        let diagnostics = parse(text.as_bytes(), &[(name.into(), value.into())]).expect_err("refused");
        complaints_of(text, &diagnostics).join("; ")
    };
    let rows = [
        ("N", "x", "the parameter `N` takes a whole number, not `x` (numbers go from -2147483648 to 2147483647)"),
        ("M", "1", "the net has no parameter or numeric constant `M` (its parameters: N)"),
        ("B", "1", "the net has no parameter or numeric constant `B` (its parameters: N)"),
    ];
    for (name, value, expected) in rows {
        assert_eq!(told(name, value), expected);
    }
}

#[test]
fn wrong_properties() {
    let net = || parse(b"n { place p { dom : epsilon; } proposition full : p'card = 1; }", &[]).expect("a net");
    let rows = [
        "state property a : reject ful;",
        "state property a reject full;",
        "state property a : accept full;",
        "property a : reject full;",
        "state property a : reject full; state property a : reject deadlock;",
        "ltl property a : [] (full => <> not full) until nothing;",
        "ltl property a : [] (full;",
        "ltl property a : full and;",
    ];
    let told: Vec<String> = rows
        .iter()
        .map(|text| {
            let diagnostics = parse_properties(&mut net(), text.as_bytes()).expect_err(text);
            format!("{text}\n    {}", complaints_of(text, &diagnostics).join("\n    "))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn temporal_formulas_are_read() {
    let text = "ltl property a : ([] (full => <> (not full)) or true until false) <=> full;";
    let names = ["full".to_string()];
    let told = "((G ((full) implies (F (not (full))))) or ((true) U (false))) iff (full)";
    let expected = vec![("a".to_string(), told.to_string())];
    assert_eq!(property_texts(text.as_bytes(), &names, &[]), Ok((Vec::new(), expected.clone())));
    // Beside a model too, and with state properties.
    let mut net = parse(b"n { place p { dom : epsilon; } proposition full : p'card = 1; }", &[]).expect("a net");
    let both = format!("{text} state property b : reject full; accept deadlock;");
    parse_properties(&mut net, both.as_bytes()).expect("properties");
    assert_eq!(net.temporal, expected);
    assert_eq!(net.property_texts(), [("b".to_string(), "not full or deadlock".to_string())]);
}

/// Loosest first: `or`, `and`, `=>`, `<=>`, `until`, prefixes; all group to the left.
#[test]
fn temporal_operators_have_the_precedence_of_helena() {
    let rows = [
        ("a or b and c", "(a) or ((b) and (c))"),
        ("a and b or c", "((a) and (b)) or (c)"),
        ("a and b => c", "(a) and ((b) implies (c))"),
        ("a => b => c", "((a) implies (b)) implies (c)"),
        ("a => b <=> c until a", "(a) implies ((b) iff ((c) U (a)))"),
        ("[] a until <> not b", "(G (a)) U (F (not (b)))"),
        ("a or b or c or a", "(a) or (b) or (c) or (a)"),
        ("not (a or deadlock) and [](b)", "(not ((a) or (deadlock))) and (G (b))"),
    ];
    let names = ["a", "b", "c"].map(String::from);
    for (text, expected) in rows {
        let file = format!("ltl property x : {text};");
        let found = property_texts(file.as_bytes(), &names, &[]).expect(text).1;
        assert_eq!(strip(&found[0].1), strip(expected), "{text}");
    }
}

/// A formula without parentheses around single names.
fn strip(text: &str) -> String {
    ["a", "b", "c", "deadlock"].iter().fold(text.to_string(), |text, name| text.replace(&format!("({name})"), name))
}

#[test]
fn what_is_often_written_wrongly_is_told_how_to_write() {
    let cases = [
        ("net n (N := 3) { }", "`ring (N := 3) { … }`"),
        ("n { place p { dom : int; } transition x { in { p : i; } out { } } }", "`<( x )>`"),
        ("n () { place p { dom : int; } }", "a net without parameters has no parentheses"),
        ("n { int C := 3; place p { dom : int; } }", "write `constant int C := …;`"),
        ("n { constant C := 3; place p { dom : int; } }", "its type stands before it: `int C := …;`"),
        ("n { constant bool C := 1 == 1; }", "write `=`"),
        ("n { constant bool C := 1 <> 2; }", "write `!=`"),
        ("n { constant bool C := 1 =< 2; }", "write `<=`"),
        ("n { constant bool C := 2 => 1; }", "write `>=`"),
        ("n { constant bool C := true && true; }", "write `and`"),
        ("n { constant bool C := true || true; }", "the operator is written `or`"),
        ("n { constant bool C := !true; }", "write `not`"),
        ("n { place p { dom : int; init : <( 1 ) >; } }", "`)` and `>` stand together"),
        ("n { place p { dom : int; init : <1>; } }", "a token stands in `<(` and `)>`"),
        ("n { }", "declare one: `place p { dom : epsilon; }`"),
        ("n { function f () -> int return 1; place p { dom : int; init : <( f )>; } }", "call it: `f(…)`"),
        ("n { place p { dom : int; } proposition q : p->1 = 1; }", "go over its tokens: `exists (x in p | x->1 = …)`"),
        ("n { place pool { dom : int; } proposition q : poool'card = 1; }", "did you mean `pool`?"),
    ];
    for (text, help) in cases {
        let found = complaints(text);
        assert!(found.len() == 1 && found[0].contains(help), "{text}: {found:?}");
    }
}

#[test]
fn a_type_that_there_is_not_is_told_once() {
    let text = "n { type col : enum (red, green);
        place p { dom : colr * int; init : <( red, 1 )>; }
        transition t { in { p : <( c, n )>; } out { p : <( green, n )> + <( c )>; } } }";
    let told = complaints(text);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("no type `colr`") && told[0].contains("did you mean `col`"), "{told:?}");
    assert!(told[1].contains("have 2 components, not 1"), "{told:?}");
    assert!(!told[1].contains("its domain"), "{told:?}");
}

#[test]
fn operators_of_sets_and_lists_are_suggested() {
    let text = |label: &str| {
        format!(
            "n {{ type id : mod 3; type crowd : set of id with capacity 3; type row : list [nat] of id with capacity 3;
            place p {{ dom : crowd * row; init : <( empty, empty )>; }}
            transition t {{ in {{ p : <( s, l )>; }} out {{ p : <( {label} )>; }} }} }}"
        )
    };
    assert!(parse(text("s or |1|, l & 1").as_bytes(), &[]).is_ok());
    for (label, advice) in [("s + |1|, l", "`a or b`"), ("s, l + l", "`a & b`")] {
        let told = complaints(&text(label));
        assert!(told.len() == 1 && told[0].contains(advice), "{told:?}");
    }
}

#[test]
fn a_token_that_cannot_be_there_initially_is_told_with_what_can() {
    let text = "n { type id : range 0 .. 2; place p { dom : int * id; init : <( 1, 0 )> + <( 9, 7 )>; } }";
    let net = parse(text.as_bytes(), &[]).expect("a net");
    let wrong = deltamark_coloured::ColouredSystem::new(net, text).err().expect("7 is none");
    assert_eq!(wrong.len(), 1);
    assert_eq!(&text[wrong[0].span.expect("a place").start..][..1], "7");
    assert_eq!(wrong[0].help.as_deref(), Some("values of `id` go from 0 to 2"));
}

/// Values that no type of the net has, and parts of what has none.
#[test]
fn values_without_a_type() {
    let rows = [
        ("constant int A := { 1 };", "expected `int`, found a structure"),
        ("constant int A := { 1 }.a;", "no type of the net has a structure like this"),
        ("constant int A := [ 1 ][1];", "no type of the net has a vector like this"),
        ("constant int A := empty'size;", "no type of the net has a list or set like this"),
        ("constant bool A := { 1 } = { 1 };", "no type of the net has a structure like this"),
        ("constant bool A := 1 in | 1 |;", "no type of the net has a list or set like this"),
        ("type s : struct { int a; bool b; }; constant s A := s({ 1 });", "`s` has 2 fields, not 1"),
        ("type s : struct { int a; bool b; }; constant s A := s({ 1, 2 });", "expected `bool`, found a number"),
        (
            "type s : struct { int a; bool b; }; constant s B := { 1, true }; constant s A := B :: (c := 1);",
            "`s` has no field `c`",
        ),
        (
            "type s : struct { int a; bool b; }; constant s B := { 1, true }; constant bool A := B :: (c := 1) = B;",
            "`s` has no field `c`",
        ),
        ("type v : vector [bool] of int; constant v A := v([ 1, 2, 3 ]);", "`v` has 2 elements, not 3"),
        (
            "type v : vector [bool] of int; constant v B := [1]; constant bool A := (B :: ([true, 1] := 2)) = B;",
            "`v` takes 1 index, not 2",
        ),
        ("type l : list [nat] of int with capacity 2; constant l A := l(| true |);", "expected `int`, found `bool`"),
        ("place q { dom : int; } proposition A : sum (x in q : true) = 1;", "`sum` takes numbers"),
    ];
    for (declared, message) in rows {
        let told = complaints(&format!("n {{ {declared} place p {{ dom : epsilon; }} }}"));
        assert!(told.iter().any(|told| told.contains(message)) && told.len() <= 2, "{declared}: {told:?}");
    }
}

/// An error in a part of a place is not reported as a missing part.
#[test]
fn one_mistake_is_told_once() {
    for text in ["n { place p { dom int; } }", "n { place p { dom : ; init : <( 1 )>; } }"] {
        assert_eq!(complaints(text).len(), 1, "{text}");
    }
}
