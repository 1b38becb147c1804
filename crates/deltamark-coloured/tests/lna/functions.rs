//! Functions: their values, their faults, and what is refused.

use super::explored::stopped;
use super::guards::DECLARED;
use super::{Found, complaints, explore, unfolded};
use deltamark_core::{Stop, System};

/// A net whose guard calls a function; `z` is 0 there.
fn net(function: &str, expression: &str) -> String {
    format!(
        "n {{ {DECLARED} {function}
        place g {{ dom : int; init : <( 0 )>; }} place h {{ dom : bool; init : <( false )>; }}
        transition t {{ in {{ g : <( z )>; }} out {{ g : <( 1 )>; }} guard : z = 0 and ({expression}); }}
        transition u {{ in {{ h : <( false )>; }} out {{ h : <( true )>; }} }} }}"
    )
}

#[test]
fn functions_compute() {
    let rows = [
        ("function f (int x) -> int return x;", "f(z) = 0"),
        ("function f (int x) -> int { return x; }", "f(3) = 3"),
        ("function f (int x) -> int { { { return x; } } }", "f(3)=3"),
        ("function f (int x) -> int if (x = 0) return 1; else return 2;", "f(z) = 1 and f(1) = 2"),
        (
            "function f (int x) -> int { if (x > 0) if (x > 5) return 1; else return 2; return 3; }",
            "f(6)=1 and f(1)=2 and f(z)=3",
        ),
        (
            "function f (int x) -> int { if (x > 0) { if (x > 5) return 1; } else return 2; return 3; }",
            "f(6)=1 and f(1)=3 and f(z)=2",
        ),
        (
            "function f (int x) -> int case (x) { 0 : return 7; 1 : { return 8; } -1 : return 9; 1+1 : return 10; default : return 11; }",
            "f(z)=7 and f(1)=8 and f(-1)=9 and f(2)=10 and f(5)=11",
        ),
        (
            "function f (int x) -> int { int y := 1; case (x) { 0 : y := 2; 1 : y := y + 5; } return y; }",
            "f(z)=2 and f(1)=6 and f(2)=1",
        ),
        ("function f (int x) -> int { case (x) { } return 4; }", "f(z)=4"),
        ("function f (int x) -> int { case (x) { default : return 4; } }", "f(z)=4"),
        (
            "function f (col c) -> int { case (c) { green : return 1; blue : return 2; } return 0; }",
            "f(red)=0 and f(green)=1 and f(blue)=2",
        ),
        ("function f (warm c) -> int { case (c) { green : return 1; blue : return 2; } return 0; }", "f(green)=1"),
        ("function f (bool c) -> int { case (c) { true : return 1; false : return 2; } }", "f(z=0)=1 and f(z=1) = 2"),
        ("function f (m5 c) -> int { case (c) { 1 : return 1; 7 : return 2; } return 0; }", "f(1)=1 and f(2)=2"),
        (
            "function f (int x) -> int { int i := 0; int s := 0; while (i < x) { i := i + 1; s := s + i; } return s; }",
            "f(4)=10 and f(z)=0",
        ),
        ("function f (int x) -> int { while (true) { return x; } return 1; }", "f(4)=4"),
        ("function f (int x) -> int { int i := 0; while (i < 3) i := i + 1; return i; }", "f(4)=3"),
        ("function f (int x) -> int { int s := 0; for (i in small) s := s + int(i); return s; }", "f(4)=6"),
        (
            "function f (int x) -> int { int s := 0; for (i in small range 1 .. 2) s := s + int(i); return s; }",
            "f(4)=3",
        ),
        (
            "function f (int x) -> int { int s := 0; for (i in int range 1 .. x) s := s + i; return s; }",
            "f(4)=10 and f(0)=0 and f(-5)=0",
        ),
        (
            "function f (int x) -> int { int s := 0; for (i in int range 1 .. 3, j in int range i .. 3) s := s + 10*i+j; return s; }",
            "f(4)=11+12+13+22+23+33",
        ),
        (
            "function f (int x) -> int { ints l := empty; for (i in bool, j in small range 1..2) l := l & int(j); return l'size*1000 + l[0]*100 + l[1]*10+l[2]; }",
            "f(4)=4121",
        ),
        (
            "function f (int x) -> int { int s := 0; for (c in col range green .. blue) if (c = red) s := 100; else s := s + 1; return s; }",
            "f(4)=2",
        ),
        ("function f (int x) -> int { int s := 0; for (c in warm) s := s + 1; return s; }", "f(4)=2"),
        (
            "function f (int x) -> int { int s := 0; some b := | 5, 3, x |; for (e in b) s := s * 10 + e; return s; }",
            "f(4)=345",
        ),
        (
            "function f (int x) -> int { int s := 0; ints b := | 5, 3, x |; for (e in b) s := s * 10 + e; return s; }",
            "f(4)=534",
        ),
        (
            "function f (int x) -> int { int s := 0; ll b := | ints(|1,2|), |3| |; for (e in b, i in e) s := s * 10 + i; return s; }",
            "f(4)=123",
        ),
        ("function f (int x) -> int { for (e in some(| 5, 3, x |)) return e; return 0; }", "f(4)=3"),
        ("function f (int x) -> int { int x := 3; { int x := 4; x := 5; } return x; }", "f(9)=3"),
        ("function f (int x) -> int { int y; y := y + 1; return y; }", "f(9)=1"),
        ("function f (int x) -> int { tiny y; return int(y); }", "f(9)=1"),
        ("function f (int x) -> int { col c; if (c = red) return 1; return 0; }", "f(9)=1"),
        ("function f (int x) -> int { cold c; if (c = green) return 1; return 0; }", "f(9)=1"),
        (
            "function f (int x) -> int { deep d; vv v; d.p.a := 3; v[true][red,true] := 4; return d.p.a + v[true][red,true] + v[false][red,true]; }",
            "f(9)=7",
        ),
        (
            "function f (int x) -> int { srow s; s.l := s.l & 4; s.s := s.s or 5; s.v[3] := blue; if (s.v[3] = blue and s.v[2] = red) return s.l[0] + s.s'size; return 0; }",
            "f(9)=5",
        ),
        ("function f (int x) -> int { vp v; v[green].a := 7; return v[green].a + v[red].a; }", "f(9)=7"),
        ("function f (int x) -> int { ints l := |1,2,3|; l[1] := 9; return l[1]; }", "f(9)=9"),
        ("function f (int x) -> int { m5 y := 4; y := succ y; y := y + 8; return int(y); }", "f(7)=3"),
        ("function f (int x) -> int { constant int k := x + 1; return k * 2; }", "f(7)=16"),
        ("function f (int x) -> int { assert : x > 0; return x; }", "f(7)=7"),
        ("function f (int x) -> int { if (x > 3) return 1; }", "f(7)=1"),
        ("function f (int x) -> int { return x; return x + 1; }", "f(7)=7"),
        ("function f (int x) -> int return x > 1 ? x * f(x - 1) : 1;", "f(5)=120"),
        ("function f (int x) -> int return x > 0 ? 1 + f(x - 1) : 0;", "f(300)=300"),
        ("function fib (int n) -> int { if (n < 2) return n; return fib(n-1) + fib(n-2); }", "fib(20)=6765"),
        ("function a (int n) -> int; function a (int m) -> int { return m; }", "a(4)=4"),
        ("function a (int n) -> int; function a (int m) -> int; function a (int m) -> int { return m; }", "a(4)=4"),
        ("function a (int n) -> int { return 1; } function a (int n) -> int;", "a(4)=1"),
        ("function a () -> int { return 1; }", "a()=1"),
        ("function int (int x) -> int { return x + 1; }", "int(1)=2"),
        ("function m5 (int x) -> int { return x + 10; }", "m5(9)=19"),
        ("function f (m5 x) -> int { return int(x); }", "f(9)=4"),
        ("function f (r x) -> small { return x; }", "f(3)=3"),
        ("function f (pair p) -> pair { return p :: (a := p.a + 1); }", "f(f({1,true})) = {3,true}"),
        (
            "function f (ints l) -> ints { if (l'size > 1) return l'suffix & l'first; return l; }",
            "f(|1,2,3|) = |2,3,1|",
        ),
    ];
    for (function, expression) in rows {
        let (text, found) = (net(function, expression), Found { states: 4, edges: 4, deadlocks: 1, fault: None });
        assert_eq!(explore(&text, ""), found, "{function}: {expression}");
        assert_eq!(unfolded(&text), Some(found), "{function}: {expression}");
    }
}

#[test]
fn functions_go_wrong() {
    let rows = [
        (
            "function f (int x) -> int { int y := 0; while (true) y := 1; return 1; }",
            "f(4)=3",
            "takes more than 50 million steps",
        ),
        (
            "function f (int x) -> int { int y := 0; while (true) { y := y + 1; } return y; }",
            "f(4)=3",
            "takes more than 50 million steps",
        ),
        (
            "function f (int x) -> int { int y := 0; for (i in int) y := y + 1; return y; }",
            "f(4)=3",
            "takes more than 50 million steps",
        ),
        (
            "function f (int x) -> int { int y := 0; for (i in ushort, j in ushort) y := 1; return y; }",
            "f(4)=3",
            "takes more than 50 million steps",
        ),
        ("function f (int x) -> int { ints l := |1,2,3|; l[3] := 9; return l[1]; }", "f(9)=9", "invalid index"),
        ("function f (int x) -> int { row v; v[r(x)] := 1; return 0; }", "f(8)=9", "cast failed"),
        ("function f (int x) -> int { r y := 7; y := y + 1; return 1; }", "f(8)=1", "out of range"),
        ("function f (int x) -> int { r y := r(x); y := succ y; return int(y); }", "f(7)=1", "out of range"),
        ("function f (int x) -> int { assert : x > 0; return x; }", "f(z)=7", "assertion failed"),
        ("function f (int x) -> int { if (x > 3) return 1; }", "f(z)=1", "no value returned"),
        ("function f (int x) -> int { int y := 0; y := 1; }", "f(z)=1", "no value returned"),
        ("function f (int x) -> int return 1 + f(x + 1);", "f(0)=300", "nested too deeply"),
        ("function f (int x) -> int return f(x);", "f(0)=300", "nested too deeply"),
        (
            "function a (int n) -> int; function b (int n) -> int { return a(n); } function a (int n) -> int { return b(n); }",
            "a(0)=300",
            "nested too deeply",
        ),
        (
            "function fib (int n) -> int { if (n < 2) return n; return fib(n-1) + fib(n-2); }",
            "fib(50)=6765",
            "takes more than 50 million steps",
        ),
        ("function f (r x) -> int { return 1; }", "f(r(z)+8)=1", "out of range"),
        ("function f (r x) -> int { return 1; }", "f(9)=1", "out of range"),
        ("function f (r x) -> small { return x; }", "f(4)=4", "out of range"),
        ("function f (r x) -> small { return x; }", "f(4)=4 or true", "out of range"),
        ("function f () -> int { return 1/0; }", "f()=4", "division by zero"),
        ("function f (int x) -> int { return x / 0; }", "f(1)=4", "division by zero"),
    ];
    for (function, expression, message) in rows {
        let text = net(function, expression);
        // A bound of the evaluation says nothing about the model.
        if ["50 million steps", "nested too deeply"].iter().any(|bound| message.contains(bound)) {
            assert_eq!(stopped(&super::system(&text, "")), Some(Stop::Count), "{function}");
            continue;
        }
        let (told, _) = explore(&text, "").fault.unwrap_or_else(|| panic!("no fault: {function}"));
        assert!(told.contains(message), "{function}: {told}");
    }
}

#[test]
fn functions_are_refused() {
    let rows = [
        ("function f (m5 c) -> int { case (c) { 2 : return 1; 7 : return 2; } return 0; }", "f(1)=1", "listed before"),
        ("function f (int x) -> int { case (x) { x : return 1; } return 0; }", "f(1)=1", "known before the net runs"),
        ("function f (int x) -> int { while (true) ; return 1; }", "f(4)=4", "a statement"),
        ("function f (int x) -> int { for (e in | 5, 3, x |) return e; return 0; }", "f(4)=3", "not clear"),
        ("function f (int x) -> int { for (e in g) return 1; return 0; }", "f(4)=3", "there is no"),
        ("function f (int x) -> int { constant int k := x + 1; k := 2; return k * 2; }", "f(7)=16", "it is a constant"),
        ("function f (int x) -> int { constant int k; return 1; }", "f(7)=16", "has no value"),
        ("function f (int x) -> int { x := 2; return x; }", "f(7)=16", "a parameter"),
        ("function f (int x) -> int { for (i in small) i := 1; return x; }", "f(7)=16", "variable of a `for`"),
        ("function f (int x) -> int { assert x > 0; return x; }", "f(z)=7", "expected `:`"),
        ("function a (int n) -> int;", "a(4)=4", "has no body"),
        ("function a (int n) -> int; function a (int n, int m) -> int { return 1; }", "a(4)=4", "other types"),
        ("function a (int n) -> int; function a (nat n) -> int { return 1; }", "a(4)=4", "other types"),
        ("function a (int n, int n) -> int { return 1; }", "a(4,4)=1", "already a parameter"),
        ("function a () -> int { return 1; }", "a=1", "is a function, not a value"),
        ("function a () -> int { return 1; }", "a(1)=1", "takes 0 arguments"),
        ("function f (r x) -> int { return 1; }", "f(z)=1", "expected `r`"),
        ("function f (int x) -> small { return x; }", "f(9)=4", "expected `r`"),
        ("function f (int x) -> int { print \"a\"; return x; }", "f(4)=4", "`print` is not supported"),
        ("function f (int x) -> int { print x; return x; }", "f(4)=4", "`print` is not supported"),
        ("function f (int x) -> int { print \"a\", x, x; return x; }", "f(4)=4", "`print` is not supported"),
        ("import function f (int x) -> int;", "f(4)=4", "not supported"),
        ("function f (int x) -> int { return forall (i in small : true) ? 1 : 0; }", "f(4)=4", "cannot be used here"),
        ("function f (int x) -> int { return h'card; }", "f(4)=4", "there is no"),
        ("function f (int x) -> int { }", "f(4)=4", "at least one statement"),
        ("function f (int x) -> int { int y := 2; }", "f(4)=4", "at least one statement"),
        ("function f (int x) -> int { return x }", "f(4)=4", "expected `;`"),
        ("function f (int x) -> int { return; }", "f(4)=4", "expected an expression"),
        ("function f (int x) -> int { y := 1; return x; }", "f(4)=4", "no variable `y`"),
        ("function f (int x) -> int { f(x); return x; }", "f(4)=4", "expected `:=`"),
        ("function f (int x) -> int { int y := 1; y = 2; return x; }", "f(4)=4", "expected `:=`"),
        ("function f (int x) -> int { else return x; }", "f(4)=4", "a statement"),
        ("function f (int x) -> int { case (x) { default : return 1; default : return 2; } }", "f(4)=4", "default"),
        ("function f (int x) -> int { case (x > 1 ? empty : empty) { } return 1; }", "f(4)=4", "discrete"),
        ("function f (int x) -> int { case (pair({1,true})) { } return 1; }", "f(4)=4", "discrete"),
        ("function f (int x) -> int { nope y := 1; return x; }", "f(4)=4", "no type `nope`"),
        ("function f (int x) -> int { int y := 1; int y := 2; return x; }", "f(4)=4", "already a variable"),
        ("function f (int x) -> int { if x > 1 return x; }", "f(4)=4", "expected `(`"),
        ("function f (int x) -> int { if (x) return x; return 1; }", "f(4)=4", "expected `bool`"),
        ("function f (int x) -> int { while (x) return x; return 1; }", "f(4)=4", "expected `bool`"),
        ("function f (int x) -> int { assert : x; return 1; }", "f(4)=4", "expected `bool`"),
        ("function f (int x) -> int { for (i in x) return 1; return 1; }", "f(4)=4", "a type, a list or a set"),
        ("function f (int x) -> int { for (i in pair) return 1; return 1; }", "f(4)=4", "not discrete"),
        (
            "function f (int x) -> int { for (i in ints(|1|) range 1 .. 2) return 1; return 1; }",
            "f(4)=4",
            "only a type",
        ),
        ("function f (int x) -> int { for (i of small) return 1; return 1; }", "f(4)=4", "expected `in`"),
        ("function f (nope x) -> none { return 1; }", "f(4)=4", "no type `nope`"),
        ("function f (int x) { return 1; }", "f(4)=4", "expected `->`"),
        ("function f (int) -> int { return 1; }", "f(4)=4", "name of the parameter"),
        ("function f -> int { return 1; }", "f()=4", "expected `(`"),
        ("constant int C := 1; function f () -> int { C := 2; return C; }", "f()=4", "constant of the net"),
    ];
    for (function, expression, message) in rows {
        let told = complaints(&net(function, expression));
        assert!(told.iter().any(|told| told.contains(message)), "{function}: {told:?}");
    }
}

/// Calls outside guards: the expression, and the message for a net that has it there.
#[test]
fn assertions_of_functions_called_from_everywhere() {
    let net = |declared: &str, initial: &str, transition: &str| {
        format!(
            "n {{ type s : range 1 .. 3; function f (int x) -> int {{ assert : x > 5; return x; }} {declared}
            place p {{ dom : int; init : {initial}; }} place q {{ dom : int; init : <( 5 )>; }}
            transition t {{ {transition} }} }}"
        )
    };
    let faults = [
        "in { p : <( x )>; } out { } guard : f(x) = 5;",
        "in { p : <( x )>; } out { p : <( f(x) )>; }",
        "in { p : <( x )>; } out { p : if (f(x) = 5) <( 1 )>; }",
        "in { p : <( x )>; } out { p : for (i in s) <( f(int(i)) )>; }",
        "in { p : <( x )>; } out { p : for (i in s) if (f(int(i)) = 1) <( int(i) )>; }",
        "in { p : <( x )>; q : <( f(x) )>; } out { }",
        "in { p : <( x )>; q : if (f(x) = 5) <( 5 )>; } out { }",
        "in { p : <( x )>; } out { } inhibit { q : <( f(x) )>; }",
        "in { p : <( x )>; } out { } pick { y in int range 1 .. f(x); }",
        "in { p : <( x )>; } out { } let { int y := f(x); }",
        "in { p : <( x )>; } out { } priority : f(x);",
    ];
    for transition in faults {
        let fault = explore(&net("", "<( 5 )>", transition), "").fault;
        let (message, _) = fault.unwrap_or_else(|| panic!("no fault: {transition}"));
        assert!(
            message.starts_with("assertion failed in transition `t` (line 1, column 65)"),
            "{transition}: {message}"
        );
        // With 6 all is well.
        if !transition.contains("for") {
            let fault = explore(&net("", "<( 6 )>", transition), "").fault;
            assert!(fault.is_none_or(|(message, _)| !message.contains("assertion")), "{transition}");
        }
    }
    let nothing = "in { } out { p : <( 1 )>; }";
    let refused = [
        ("constant int K := f(4);", "<( 1 )>", "the value of this constant cannot be computed: assertion failed"),
        ("", "<( f(4) )>", "assertion failed, in the initial marking of place `p`"),
        ("", "for (i in s) <( f(int(i)) )>", "assertion failed, in the initial marking of place `p`"),
        ("", "for (i in s) if (f(int(i)) = 1) <( 1 )>", "assertion failed, in the initial marking of place `p`"),
    ];
    for (declared, initial, message) in refused {
        let text = net(declared, initial, nothing);
        let told = super::refused(&text);
        assert!(told.len() == 1 && told[0].contains(message), "{declared} {initial}: {told:?}");
    }
}

/// An endless loop reaches its bound before it takes much memory, whatever it allocates.
#[test]
fn loops_without_end_take_little() {
    let loops = [
        "big v; int i := 0; while (true) { i := i + 1; v[ushort(i % 60000)] := i; }",
        "ints l := empty; int i := 0; while (true) { i := (i + 1) % 1000; l := | i, i + 1 |; }",
        "some b := | 1, 2 |; int i := 0; while (true) { if (i in b) i := 1; else i := 2; }",
        "big v; int i := 0; while (true) { big w := v; i := w[ushort(i)]; }",
        "int i := 0; while (true) { i := LARGE[ushort(1)]; }",
        "int i := 0; for (a in ushort, b in ushort) i := 1;",
    ];
    for body in loops {
        let text = format!(
            "n {{ {DECLARED} type big : vector [ushort] of int; constant big LARGE := [7];
            function f (int x) -> int {{ {body} return 1; }} place p {{ dom : int; init : <( 0 )>; }}
            transition t {{ in {{ p : <( x )>; }} out {{ p : <( f(x) )>; }} }} }}"
        );
        let system = super::system(&text, "");
        assert_eq!(stopped(&system), Some(Stop::Count), "{body}");
        let bytes = system.table_bytes();
        assert!(bytes < 8 << 20, "{body}: {bytes} bytes");
    }
}

/// Only the values of tokens are kept: here one list for each of 200 numbers, of the hundred that each call
/// makes.
#[test]
fn what_functions_make_on_the_way_is_not_kept() {
    let text = "n { type long : list [nat] of int with capacity 100;
        function f (int x) -> long { long l := empty; for (i in int range 1 .. 100) l := l & (x * 1000 + i); return l; }
        place p { dom : int; init : <( 0 )>; } place q { dom : long; }
        transition t { in { p : <( x )>; } out { p : <( x + 1 )>; q : <( f(x) )>; } guard : x < 200; } }";
    let system = super::system(text, "");
    assert_eq!(super::explore_system(&system, "plain"), Found { states: 201, edges: 200, deadlocks: 1, fault: None });
    // The temporary lists would come to 200 * 5050 numbers, 8 MiB.
    let bytes = system.table_bytes();
    assert!(bytes < 2 << 20, "{bytes} bytes");
}
