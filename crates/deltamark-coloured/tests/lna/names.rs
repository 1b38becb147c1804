//! Reserved words, and what a name denotes if it has several meanings.

use super::{Found, complaints, explore};

#[test]
fn reserved_words_are_no_names() {
    let words = "assert and capacity card case constant default description dom else empty enum epsilon exists for forall \
        function guard if import in inhibit init let list max min mod mult not of or out pick place pred print priority \
        product proposition range return safe set struct subtype succ sum transition type vector while with";
    assert_eq!(words.split_ascii_whitespace().count(), 53);
    for word in words.split_ascii_whitespace() {
        let told = complaints(&format!("n {{ place {word} {{ dom : epsilon; }} }}"));
        assert!(told[0].contains(&format!("`{word}` is reserved")), "{word}: {told:?}");
        // Another case is another word.
        let other: String = word[..1].to_ascii_uppercase() + &word[1..];
        explore(&format!("n {{ constant int {other} := 1; place p {{ dom : int; init : <( {other} )>; }} }}"), "");
    }
    // Those of property files are names of a net, and so are those of predefined types and attributes.
    for word in ["accept", "deadlock", "ltl", "property", "reject", "state", "until", "int", "bool", "size", "first"] {
        let text = format!(
            "{word} {{ function {word} (nat {word}) -> nat {{ return {word}; }} place {word} {{ dom : nat; init : <( 0 )>; }}
            transition {word} {{ in {{ {word} : <( {word} )>; }} out {{ }} guard : {word}({word}) = 0; }} }}"
        );
        assert_eq!(explore(&text, "").states, 2, "{word}");
    }
}

/// A place `p` of numbers with the token 0, and a transition whose one step leads to the value of an
/// expression.
#[test]
fn the_innermost_name_is_meant() {
    let rows = [
        // A constant comes before a constant of an enumeration, a variable of any kind before both.
        ("type e : enum (a, b); constant int a := 42;", "", "a"),
        ("constant int x := 1;", "let { int y := 42; int x := y; }", "x"),
        ("constant int a := 1; type s : range 42 .. 42;", "pick { a in s; }", "int(a)"),
        ("type e : enum (a, b);", "let { int a := 42; }", "a"),
        ("constant int a := 1; function f (int a) -> int { return a; }", "", "f(42)"),
        ("function f (int a) -> int { int a := a + 2; return a; }", "", "f(40)"),
        ("function f (int a) -> int { { int a := 7; a := 8; } return a; }", "", "f(42)"),
        (
            "type s : range 40 .. 42; function f (s i) -> int { s m := 40; for (i in s) m := i; return int(m); }",
            "",
            "f(41)",
        ),
        // A function comes before a cast.
        ("type m : mod 3; function m (int a) -> int { return a + 40; }", "", "m(2)"),
        // A type has its attributes although there is a variable of its name.
        ("type z : range 0 .. 42;", "", "int(z'last)"),
        // A name alone in an output is no variable of its own.
        ("type e : enum (a, b); constant int c := 42;", "", "c"),
    ];
    for (declared, section, expression) in rows {
        let text = format!(
            "n {{ {declared} place p {{ dom : int; init : <( 0 )>; }}
            transition t {{ in {{ p : <( z )>; }} out {{ p : <( {expression} )>; }} {section} guard : z = 0; }}
            transition u {{ in {{ p : <( 42 )>; }} out {{ }} }} }}"
        );
        assert_eq!(
            explore(&text, ""),
            Found { states: 3, edges: 2, deadlocks: 1, fault: None },
            "{declared} {expression}"
        );
    }
}

/// Propositions of the one state of a net with a place and a type of the same name.
#[test]
fn places_types_and_containers_of_one_name() {
    let rows = [
        // `'card` is that of the place, `'last` that of the type.
        ("both'card = 2", true),
        ("both'mult = 3", true),
        ("both'last = 7", true),
        // An iteration goes over the type.
        ("card (i in both) = 7", true),
        ("forall (i in both : i < 8)", true),
        // A variable of an iteration hides a constant, and ends with it.
        ("sum (k in both : int(k)) = 28 and k = 100", true),
        // A constant set, and a place that has no type beside it.
        ("card (i in bag) = 2 and card (i in only) = 1", true),
        ("exists (i in only | i->1 = 5) and exists (i in bag | i = 9)", true),
    ];
    for (proposition, expected) in rows {
        let text = format!(
            "n {{ type both : range 1 .. 7; place both {{ dom : both; init : <( 1 )> + 2 * <( 2 )>; capacity : 2; }}
            constant int k := 100; type some : set of int with capacity 3; constant some bag := | 8, 9 |;
            place only {{ dom : int; init : <( 5 )>; }} place go {{ dom : epsilon; init : epsilon; }}
            transition yes {{ in {{ go : epsilon; }} out {{ }} priority : {proposition} ? 1 : -1; }}
            transition no {{ in {{ go : epsilon; }} out {{ go : epsilon; }} }} }}"
        );
        assert_eq!(explore(&text, "").states, if expected { 2 } else { 1 }, "{proposition}");
    }
}

#[test]
fn what_is_declared_later_or_twice() {
    let rows = [
        ("place p { dom : t; } type t : mod 3;", "no type `t` (it is declared further down"),
        (
            "transition t { in { q : epsilon; } out { } } place q { dom : epsilon; }",
            "no place `q` (it is declared further",
        ),
        ("function f () -> int return g(); function g () -> int return 1;", "no function or type `g` (it is declared"),
        ("constant int a := b; constant int b := 1;", "value `b` (it is declared further down"),
        ("type a : mod 2; subtype a : int;", "already a type `a`"),
        ("type int : mod 2;", "already a type `int`"),
        ("constant int a := 1; constant bool a := true;", "already a constant `a`"),
        ("place p { dom : epsilon; } place p { dom : int; }", "already a place `p`"),
        ("proposition q : true; proposition q : true;", "already a proposition `q`"),
        ("function f () -> int return 1; function f () -> int return 1;", "already a function `f`"),
        ("function f (int a, int a) -> int return 1;", "already a parameter `a`"),
        ("function f () -> int { int a := 1; int a := 2; return a; }", "already a variable `a`"),
        ("function f () -> int;", "function `f` has no body"),
        ("function f () -> int; function f () -> nat return 1;", "declared with other types"),
    ];
    for (declared, expected) in rows {
        let told = complaints(&format!("n {{ {declared} place z {{ dom : epsilon; }} }}"));
        assert!(told.len() == 1 && told[0].contains(expected), "{declared}: {told:?}");
    }
}
