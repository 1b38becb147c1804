//! Small nets for every construct, with the size of their state spaces.

use super::{Found, explore};

/// Net, parameters, states, edges, deadlocks.
type Row = (&'static str, &'static str, u64, u64, u64);

fn check(rows: &[Row]) {
    for &(text, given, states, edges, deadlocks) in rows {
        assert_eq!(explore(text, given), Found { states, edges, deadlocks, fault: None }, "{text} with `{given}`");
    }
}

#[test]
fn parameters_reach_everything() {
    let factor = "n (N := 2) { place a { dom : epsilon; init : (N - 1) * epsilon; capacity : N; }
        transition t { in { a : epsilon; } out { } } }";
    let capacity = "n (N := 2) { place a { dom : epsilon; capacity : N; }
        transition t { in { } out { a : epsilon; } priority : a'mult < N ? 1 : 0; }
        transition u { in { a : N * epsilon; } out { } priority : 1; } }";
    let types = "n (N := 2) { type t : range 1 .. N; constant int M := N + 1; type u : mod M;
        type l : list [nat] of t with capacity N; constant l ALL := empty;
        place a { dom : t * u; init : for (i in t) <( i, 0 )>; }
        transition s { in { a : <( i, u )>; } out { a : <( i, succ u )>; } } }";
    let case = "n (N := 2) { function f (int x) -> int { case (x) { N : return 1; default : return 0; } return 0; }
        place a { dom : int; init : <( 3 )>; } transition t { in { a : <( x )>; } out { a : <( f(x) )>; } guard : x > 1; } }";
    let constant = "n { constant int K := 2; place a { dom : epsilon; init : K * epsilon; capacity : K; }
        transition t { in { a : epsilon; } out { } } }";
    check(&[
        (factor, "", 2, 1, 1),
        (factor, "N=6", 6, 5, 1),
        (capacity, "", 3, 3, 0),
        (capacity, "N=5", 6, 6, 0),
        (types, "", 9, 18, 0),
        (types, "N=3", 64, 192, 0),
        (case, "", 2, 1, 1),
        (case, "N=3", 2, 1, 1),
        (constant, "", 3, 2, 1),
        (constant, "K=4", 5, 4, 1),
    ]);
}

#[test]
fn symbols_choose_what_is_there() {
    let text = "n {\n#ifdef LARGE\n constant int K := 5;\n#else\n constant int K := 1;\n#endif
        place a { dom : epsilon; init : K * epsilon; capacity : K; } transition t { in { a : epsilon; } out { } } }";
    check(&[(text, "", 2, 1, 1), (text, "LARGE=1", 6, 5, 1), (text, "LARGE=0", 2, 1, 1)]);
}

#[test]
fn variables_are_bound_and_matched() {
    check(&[
        // Two tokens of one place: (1,2) and (2,1).
        ("n { place a { dom : int; init : <( 1 )> + <( 2 )>; } place b { dom : int * int; }
           transition t { in { a : <( x )> + <( y )>; } out { b : <( x, y )>; } } }", "", 3, 2, 2),
        // The same token twice only where there are two of it.
        ("n { place a { dom : int; init : 2 * <( 1 )> + <( 2 )>; capacity : 2; } place b { dom : int * int; }
           transition t { in { a : <( x )> + <( y )>; } out { b : <( x, y )>; } } }", "", 4, 3, 3),
        // A variable again, an expression of it, a literal, a constant, an enumeration value.
        ("n { place a { dom : int * int; init : <( 1, 1 )> + <( 1, 2 )> + <( 2, 1 )>; }
           transition t { in { a : <( x, x )>; } out { } } }", "", 2, 1, 1),
        ("n { place a { dom : int * int; init : <( 1, 2 )> + <( 2, 4 )> + <( 2, 1 )>; }
           transition t { in { a : <( x, x * 2 )>; } out { } } }", "", 4, 4, 1),
        // Helena misses these matches: the expression is before the variable.
        ("n { place a { dom : int * int; init : <( 2, 1 )> + <( 4, 2 )> + <( 2, 2 )>; }
           transition t { in { a : <( x * 2, x )>; } out { } } }", "", 4, 4, 1),
        ("n { constant int K := 2; type e : enum (u, v); place a { dom : int * e * int; init : <( 2, v, 7 )> + <( 2, u, 7 )> + <( 1, v, 7 )>; }
           transition t { in { a : <( K, v, x )>; } out { } } }", "", 2, 1, 1),
        // From one place to the next.
        ("n { type t : range 0 .. 3; place a { dom : t; init : <( 1 )> + <( 3 )>; } place b { dom : t * t; init : <( 1, 2 )> + <( 3, 0 )>; }
           transition j { in { a : <( x )>; b : <( x, y )>; } out { a : <( y )>; } guard : x != y; }}", "", 4, 4, 1),
        // `if` on an input, a factor, the sum of several.
        ("n { place a { dom : int; init : <( 1 )> + <( 2 )>; } place b { dom : epsilon; init : 3 * epsilon; capacity : 3; }
           transition t { in { a : <( x )>; b : if (x = 1) 2 * epsilon + if (x = 2) epsilon; } out { } } }", "", 4, 4, 1),
        // A factor of 0 takes nothing and still requires the token.
        ("n { place a { dom : int; init : <( 1 )>; } place b { dom : epsilon; init : epsilon; }
           transition t { in { a : 0 * <( 1 )>; b : epsilon; } out { } }
           transition u { in { a : 0 * <( 2 )>; b : epsilon; } out { } } }", "", 2, 1, 1),
        // Neither inputs nor outputs.
        ("n { place a { dom : epsilon; capacity : 3; } transition t { in { } out { a : epsilon; } priority : 1 - a'mult / 3; }
           transition u { in { a : 3 * epsilon; } out { } priority : 1; } }", "", 4, 4, 0),
    ]);
}

#[test]
fn labels_with_for() {
    check(&[
        ("n { type t : mod 4; place a { dom : t; init : for (i in t) if (i != 2) <( i )>; }
           transition u { in { a : for (i in t range 0 .. 1) <( i )>; } out { } } }", "", 2, 1, 1),
        // A variable bound only by tuples with a `for`.
        ("n { type t : range 1 .. 2; place a { dom : int * t; init : for (i in t) <( 7, i )> + <( 8, 1 )>; }
           transition u { in { a : for (i in t) <( x, i )>; } out { } } }", "", 2, 1, 1),
        // Two iterations; an empty one.
        ("n { type t : range 1 .. 3; place a { dom : t * t; init : for (i in t, j in t) if (i < j) <( i, j )>; }
           transition u { in { a : <( i, j )>; } out { a : for (k in t range 2 .. 1) <( k, k )>; } } }", "", 8, 12, 1),
        // The range is what the type has of it.
        ("n { type t : range 1 .. 3; place a { dom : t; init : for (i in t range t'first - 5 .. t'last + 5) <( i )>; }
           transition u { in { a : <( i )>; } out { } } }", "", 8, 12, 1),
    ]);
}

#[test]
fn pick_and_let() {
    check(&[
        ("n { type t : range 1 .. 3; place a { dom : epsilon; init : epsilon; } place b { dom : t; }
           transition u { in { a : epsilon; } out { b : <( x )>; } pick { x in t; } } }", "", 4, 3, 3),
        ("n { type t : range 1 .. 4; place a { dom : t; init : <( 2 )>; } place b { dom : t * t; }
           transition u { in { a : <( y )>; } out { b : <( x, y )>; } pick { x in t range y .. t'last; } } }", "", 4, 3, 3),
        ("n { type s : set of int with capacity 3; place a { dom : s; init : <( | 4, 5, 6 | )>; } place b { dom : int * int; }
           transition u { in { a : <( all )>; } out { b : <( x, y )>; } pick { x in all; y in all - x; } } }", "", 7, 6, 6),
        // A let is not part of the binding.
        ("n { place a { dom : int; init : <( 3 )>; } transition u { in { a : <( x )>; } out { a : <( z )>; }
           let { int y := x - 1; int z := y; } guard : y > 0; } }", "", 3, 2, 1),
        // Picks that come to the same binding are one.
        ("n { type l : list [nat] of int with capacity 3; place a { dom : l; init : <( | 1, 1, 2 | )>; } place b { dom : int; }
           transition u { in { a : <( all )>; } out { b : <( x )>; } pick { x in all; } } }", "", 3, 2, 2),
    ]);
}

#[test]
fn inhibitors() {
    check(&[
        // Blocked while the place holds anything.
        ("n { place a { dom : int; init : <( 1 )>; } place b { dom : epsilon; init : epsilon; }
           transition t { in { b : epsilon; } out { } inhibit { a : <( z )>; } }
           transition u { in { a : <( x )>; } out { } } }", "", 3, 2, 1),
        // At least this many.
        ("n { place a { dom : epsilon; init : epsilon; capacity : 9; } transition t { in { } out { a : epsilon; } inhibit { a : 4 * epsilon; } } }",
            "", 4, 3, 1),
        // Several block only together.
        ("n { place a { dom : int; init : <( 1 )>; } place b { dom : int; } place c { dom : epsilon; init : epsilon; }
           transition t { in { c : epsilon; } out { } inhibit { a : <( 1 )>; b : <( 1 )>; } } }", "", 2, 1, 1),
        ("n { place a { dom : int; init : <( 1 )>; } place b { dom : int; init : <( 1 )>; } place c { dom : epsilon; init : epsilon; }
           transition t { in { c : epsilon; } out { } inhibit { a : <( z )>; b : <( z )>; } } }", "", 1, 0, 1),
        ("n { place a { dom : int; init : <( 1 )>; } place b { dom : int; init : <( 2 )>; } place c { dom : epsilon; init : epsilon; }
           transition t { in { c : epsilon; } out { } inhibit { a : <( z )>; b : <( z )>; } } }", "", 2, 1, 1),
        // The tokens of the inputs are still present.
        ("n { place a { dom : int; init : <( 1 )>; } transition t { in { a : <( x )>; } out { } inhibit { a : <( x )>; } } }", "", 1, 0, 1),
        // With a computed value.
        ("n { place a { dom : int; init : <( 1 )> + <( 3 )>; } transition t { in { a : <( x )>; } out { } inhibit { a : <( y )>; }
           let { int y := x + 2; } } }", "", 3, 2, 1),
    ]);
}

#[test]
fn priorities() {
    check(&[
        ("n { place a { dom : int; init : <( 1 )> + <( 2 )>; } transition t { in { a : <( x )>; } out { } priority : x; } }", "", 3, 2, 1),
        ("n { place a { dom : int; init : <( 1 )> + <( 2 )>; } transition t { in { a : <( x )>; } out { } priority : -x; }
           transition u { in { a : <( x )>; } out { } } }", "", 4, 4, 1),
        // A priority that reads the marking.
        ("n { place a { dom : int; init : <( 1 )> + <( 2 )> + <( 3 )>; }
           transition t { in { a : <( x )>; } out { } priority : x = max (y in a : y->1) ? 1 : 0; } }", "", 4, 3, 1),
    ]);
}

#[test]
fn functions_and_statements() {
    let net = |function: &str, call: &str| {
        format!(
            "n {{ type col : enum (red, green, blue); type ints : list [nat] of int with capacity 8;
              type row : vector [col] of int; type rec : struct {{ row r; int i; }};
              {function} place a {{ dom : int; init : <( 0 )>; }}
              transition t {{ in {{ a : <( x )>; }} out {{ a : <( {call} )>; }} guard : x = 0; }}
              proposition p : exists (y in a | y->1 = 42); transition u {{ in {{ a : <( 42 )>; }} out {{ }} }} }}"
        )
    };
    let rows = [
        ("function f (int x) -> int { if (x > 0) return 1; else return 42; }", "f(x)"),
        ("function f (int x) -> int { if (x = 0) if (x > 0) return 1; else return 42; return 2; }", "f(x)"),
        (
            "function f (col c) -> int { case (c) { red : return 1; green : { return 42; } default : return 3; } }",
            "f(green)",
        ),
        ("function f (col c) -> int { case (c) { red : return 1; } return 42; }", "f(blue)"),
        (
            "function f (int n) -> int { int s := 0; int i := n; while (i > 0) { s := s + i; i := i - 1; } return s - 3; }",
            "f(9)",
        ),
        (
            "function f () -> int { int s := 2; for (c in col, i in int range 1 .. 4) s := s + i; return s + 10; }",
            "f()",
        ),
        ("function f () -> int { int s := 42; for (i in int range 4 .. 1) s := 0; return s; }", "f()"),
        ("function f (ints l) -> int { int s := 0; for (e in l) s := s + e; return s; }", "f(| 40, 2 |)"),
        ("function f (int n) -> int { if (n <= 1) return 1; return n * f(n - 1); }", "f(5) - 78"),
        (
            "function even (int n) -> bool; function odd (int n) -> bool { return n != 0 and even(n - 1); }
          function even (int n) -> bool { return n = 0 or odd(n - 1); }",
            "even(10) ? 42 : 0",
        ),
        (
            "function f () -> int { rec r := { [0], 1 }; r.r[green] := 40; r.i := r.i + 1; return r.r[green] + r.i; }",
            "f()",
        ),
        ("function f () -> int { int x := 1; { int x := 2; x := 3; } return x + 41; }", "f()"),
        ("function f () -> int { constant int k := 40; assert : k > 0; return k + 2; }", "f()"),
        ("function f () -> int { int x; row r; ints l; l := l & 42; x := x + r[red]; return x + l[0]; }", "f()"),
        ("function f (int x) -> int return x + 42;", "f(x)"),
        ("constant int C := 6 * 7; function f () -> int { return C; }", "f()"),
        ("function g (int x) -> int { return x + 2; } constant int C := g(40);", "C"),
    ];
    for (function, call) in rows {
        let found = explore(&net(function, call), "");
        assert_eq!(found, Found { states: 3, edges: 2, deadlocks: 1, fault: None }, "{function}");
    }
}

/// Propositions, each with whether it is true in the one state there is.
#[test]
fn quantifiers_over_types_places_and_containers() {
    let declared =
        "type t : range 1 .. 4; type m : mod 3; type s : set of int with capacity 3; constant s S := | 5, 6 |;
        place a { dom : t * int; init : <( 1, 10 )> + 3 * <( 2, 20 )>; capacity : 3; } place e { dom : t; }";
    let rows = [
        ("a'card = 2 and a'mult = 4", true),
        ("e'card = 0", true),
        ("exists (x in a | x->1 = 2)", true),
        ("exists (x in e)", false),
        ("forall (x in a : x->2 = 10 * int(x->1))", true),
        ("forall (x in e : false)", true),
        ("card (x in a | x->2 > 5) = 2", true),
        ("mult (x in a | x->1 = 2) = 3", true),
        ("min (x in a : x->2) = 10 and max (x in a : x->2) = 20", true),
        ("sum (x in a : x->2) = 30 and product (x in a : x->2) = 200", true),
        // Of nothing at all: the first and the last of the type, 0 and 1.
        ("max (x in e : x->1) = t'first and min (x in e : x->1) = t'last", true),
        ("sum (x in e : int(x->1)) = 0 and product (x in e : int(x->1)) = 1", true),
        ("forall (i in t : exists (j in t | i + j = 5))", true),
        ("card (i in t range 2 .. 3) = 2", true),
        ("sum (i in t range 2 .. 3 : int(i)) = 5", true),
        ("card (i in t, j in t | i < j) = 6", true),
        ("sum (i in m : i) = 0", true),
        ("forall (x in S : x > 4)", true),
        ("exists (x in a, y in a | x->1 < y->1)", true),
    ];
    for (proposition, expected) in rows {
        // The net can take a step exactly if the proposition is true, because priorities may read the marking.
        let text = format!(
            "n {{ {declared} place go {{ dom : epsilon; init : epsilon; }}
              proposition p : {proposition};
              transition yes {{ in {{ go : epsilon; }} out {{ }} priority : {proposition} ? 1 : -1; }}
              transition no {{ in {{ go : epsilon; }} out {{ go : epsilon; }} }} }}"
        );
        let states = if expected { 2 } else { 1 };
        assert_eq!(explore(&text, "").states, states, "{proposition}");
    }
}

#[test]
fn names_have_tables_of_their_own() {
    check(&[
        // A place, a type and a variable of one name.
        (
            "n { type turn : range 0 .. 2; place turn { dom : turn; init : <( 0 )>; }
           transition turn { in { turn : <( turn )>; } out { turn : <( turn + 1 )>; } guard : turn < turn'last; } }",
            "",
            3,
            2,
            1,
        ),
        // Comments, roles, hints; empty sections.
        (
            "/* a net */ n { // here\n place a { dom : epsilon; type : process; init : epsilon; capacity : 1; }
           transition t { in { a : epsilon; } out { } safe; description : \"100%%\"; } }",
            "",
            2,
            1,
            1,
        ),
        // Take and put back where only one fits.
        (
            "n { place a { dom : int; init : <( 1 )>; } transition t { in { a : <( x )>; } out { a : <( x )>; } } }",
            "",
            1,
            1,
            0,
        ),
    ]);
}

/// The same net of four states, written in other ways.
#[test]
fn the_text_in_all_its_forms() {
    let plain = "n { place p { dom : int; init : <( 0 )>; } transition t { in { p : <( x )>; } out { p : <( x + 1 )>; } guard : x < 3; } }";
    let other = [
        plain.to_string(),
        plain.replace(' ', "\n"),
        plain.replace(' ', "\r\n\t"),
        plain.replace(' ', " /* * / // \" */ "),
        plain.replace(' ', " // /* \" '\n"),
        plain.replace(" : ", ":").replace(" { ", "{").replace("; ", ";").replace(" )>", ")>").replace("<( ", "<("),
        format!("\u{feff}{plain}"),
        format!("#define A\n#ifndef A\n \" ' $ @\n#else\n{plain}\n#endif\n// the end"),
        plain.replacen("n {", "n (a := 1, b := -2, c := 4) {", 1).replace("x < 3", "x < a + b + c"),
        plain.replace("x < 3", "x mod 7 < 3 and x % 7 < 3 and x<(3) and (x)>-1"),
        plain.replacen("n {", "n { type four : % 4; constant four LAST := 3;", 1).replace("x < 3", "x < int(LAST)"),
        plain
            .replacen("n {", "n { subtype number : int; subtype small : number range 3 .. 3;", 1)
            .replace("x < 3", "x < small'first"),
        plain.replace("x < 3;", "x < 3; description : \"two\nlines\";"),
    ];
    for text in &other {
        check_text(text);
    }
}

fn check_text(text: &str) {
    assert_eq!(explore(text, ""), Found { states: 4, edges: 3, deadlocks: 1, fault: None }, "{text}");
}
