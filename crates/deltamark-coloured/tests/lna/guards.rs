//! Expressions at run time: what is true, what is false, what is a fault and what is refused, in a guard where the
//! variable `z` is 0.

use super::{Found, complaints, explore, unfolded};

/// Types that the rows use.
pub const DECLARED: &str = "
   type r    : range -2 .. 7;
   type r2   : range -2 .. 7;
   type m5   : mod 5;
   type m7   : mod 7;
   type col  : enum (red, green, blue);
   type sig  : enum (stop, green, go);
   subtype warm : col range red .. green;
   subtype cold : col range green .. blue;
   subtype w2 : warm;
   subtype small : r range 0 .. 3;
   subtype tiny : small range 1 .. 2;
   subtype m5s : m5 range 1 .. 3;
   type pair : struct { int a; bool b; };
   type deep : struct { pair p; col c; };
   type row  : vector [r] of int;
   type grid : vector [col, bool] of int;
   type vm : vector [m5] of col;
   type vv : vector [bool] of grid;
   type vp : vector [col] of pair;
   type ints : list [nat] of int with capacity 4;
   type from : list [r] of int with capacity 3;
   type lcol : list [col] of col with capacity 5;
   type ll : list [m5] of ints with capacity 2;
   type lp : list [nat] of pair with capacity 3;
   type some : set of int with capacity 4;
   type cols : set of col with capacity 3;
   type sp : set of pair with capacity 3;
   type ss : set of some with capacity 3;
   type srow : struct { some s; ints l; vm v; };
";

fn net(expression: &str) -> String {
    format!(
        "n {{ {DECLARED} place g {{ dom : int; init : <( 0 )>; }} place h {{ dom : bool; init : <( false )>; }}
        transition t {{ in {{ g : <( z )>; }} out {{ g : <( 1 )>; }} guard : z = 0 and ({expression}); }}
        transition u {{ in {{ h : <( false )>; }} out {{ h : <( true )>; }} }} }}"
    )
}

#[test]
fn these_are_true() {
    let rows = [
        "-z-1*2 = -2",
        "-(z+2)*3 = -6",
        "-2*3+7 = 1",
        "2+3*4-5 = 9",
        "10-3-2 = 5",
        "24/4/2 = 3",
        "24/4*2 = 12",
        "20 % 7 % 4 = 2",
        "7-z-3 = 4",
        "2*7 mod 4 = 2",
        "- 7 / 2 = -3",
        "(-7)/2 = -3",
        "-7 % 3 = -1",
        "7 % -3 = 1",
        "- - 3 = 3",
        "+ - + 3 = -3",
        "2 - - 3 = 5",
        "2 + - 3 * 2 = -4",
        "2 * - 3 + 1 = -5",
        "2 * - 3 * 2 = -12",
        "not not true",
        "not true or true",
        "true or false and false",
        "false = false != false",
        "1 < 2 = true",
        "1 < 2 = (2 > 1)",
        "1 + 1 < 3",
        "z = 0 ? true : false",
        "z = 1 ? false : z = 0 ? true : false",
        "(z = 0 ? 1 : 2) = 1",
        "z = 0 or z = 1 ? true : false",
        "ints(|1,2|) & 3 = |1,2,3|",
        "1 & ints(|2|) & 3 = |1,2,3|",
        "(ints(|1|) & 2)'size * 2 = 4",
        "2 * ints(|1|)'size = 2",
        "succ pred 3 = 3",
        "succ 3 * 2 = 8",
        "pred succ red = red",
        "succ red < blue",
        "- succ 3 = -4",
        "succ -3 = -2",
        "3 in ints(|1,2|) or true",
        "(3 in ints(|1,2|)) = false",
        "1 + 2 in ints(|3|)",
        "{1,true}.a = 1",
        "pair({1,true}).a + 1 = 2",
        "pair({1,true}) :: (a := 2).a = 2",
        "(pair({1,true}) :: (a := 2)).a = 2",
        "pair({1,true}) :: (a := 2) :: (b := false) = {2,false}",
        "succ pair({1,true}).a = 2",
        "-pair({1,true}).a = -1",
        "int'first = -2147483648",
        "int'last = 2147483647",
        "nat'first = 0 and nat'last = int'last",
        "short'first = -32768 and short'last = 32767 and short'card = 65536",
        "ushort'first = 0 and ushort'last = 65535",
        "bool'first = false and bool'last = true and bool'card = 2",
        "m5(1)-m5(3) = 3",
        "-m5(2) = 3",
        "m5(4)+1 = 0",
        "m5(4)*m5(4) = 1",
        "m5(z+1) - 3 = 3",
        "m5(3) / 2 = 1",
        "m5(3) % 2 = 1",
        "m5'last = 4 and m5'card = 5",
        "m5(0) - 1 = m5'last",
        "m5s(1) - 3 = 3",
        "m5(2) < 3",
        "m5(2) = 7",
        "m5(z+2) = 7",
        "r'first = -2 and r'last = 7 and r'card = 10",
        "r(7)+1 = 8",
        "r(z+7)+1 = 8",
        "r(z)-100 < 5",
        "r(z)=r(r2(z))",
        "int(r(3)) = 3",
        "r(m5(3)) = 3",
        "m5(r(3)) = 3",
        "small'first = 0 and small'last = 3",
        "tiny'first=1 and tiny'last = 2",
        "tiny(1) = small(1)",
        "tiny(1) = r(1)",
        "small(z) < tiny(1)",
        "tiny(z+1)+5 = 6",
        "small(3)+1 = 4",
        "short(z) = 0",
        "short(5) = nat(5)",
        "ushort(z) = short(z)",
        "red < green and green < blue",
        "blue > red",
        "blue >= blue and red <= red",
        "col'first = red and col'last = blue",
        "warm'last = green and warm'card = 2",
        "cold'first = green",
        "col(green) != blue",
        "warm(red) < blue",
        "w2(red) = warm(red)",
        "w2'last = green",
        "w2'card = 2",
        "green = sig'last ? true : true",
        "sig(green) < go",
        "green > red",
        "green > stop",
        "stop < green",
        "succ blue = red",
        "pred red = blue",
        "succ warm(green) = blue",
        "succ col(green) = blue",
        "pred cold(green) = red",
        "succ true = false and pred false = true",
        "succ m5(4) = 0",
        "pred m5(0) = 4",
        "succ r(6) = 7",
        "succ r(7) = 8",
        "pred r(-2) = -3",
        "succ z = 1",
        "true and (false or true)",
        "true > false",
        "row([1])[r(7)] = 1",
        "row([1,2])[-2] = 1",
        "row([1,2])[-1] = 2 and row([1,2])[7] = 2",
        "grid([1,2,3,4,5,6])[red,true] = 2",
        "grid([1,2,3])[blue,true] = 3",
        "grid([1,2,3])[green,false] = 3",
        "vm([red,green,blue])[m5(z+4)] = blue",
        "row([1]) = row([1,1])",
        "row([1]) != row([1,2])",
        "vv([grid([1]),[2]])[true][red,false] = 2",
        "vv([[1],[2]])[true][red,false] = 2",
        "(row([1]) :: ([3] := 5))[3] = 5",
        "(grid([0]) :: ([green,true] := 9)) = [0,0,0,9,0]",
        "(vv([[1],[2]]) :: ([true] := [7]))[true][blue,true] = 7",
        "vp([{1,true},{2,false}])[blue].a = 2",
        "(vp([{1,true}]) :: ([red] := {9,false}))[red].a = 9",
        "pair({1,true}) = {1,true}",
        "pair({1,true}) != {2,true}",
        "deep({{1,true},red}).p.a = 1",
        "(deep({{1,true},red}) :: (p := {2,false})).p.b = false",
        "deep({{1,true},red}) :: (p := deep({{1,true},red}).p :: (a := 5)) = {{5,true},red}",
        "{1,true} = {1,true}",
        "ints(|1,2|)'size = 2",
        "ints(empty)'empty",
        "not ints(|1|)'empty",
        "ints(|1,2,3,4|)'full",
        "ints(|1|)'space = 3",
        "ints(|1|)'capacity = 4",
        "ints(|5,6,7|)'first = 5",
        "ints(|5,6,7|)'last = 7",
        "ints(|5,6,7|)'prefix = |5,6|",
        "ints(|5,6,7|)'suffix = |6,7|",
        "ints(|5,6,7|)'first_index = 0",
        "ints(|5,6,7|)'last_index = 2",
        "from(|5,6|)'first_index = -2",
        "from(|5,6|)'last_index = -1",
        "lcol(|red,blue|)'last_index = green",
        "lcol(|red,blue|)[green] = blue",
        "lcol(|red,red,red,red|)[blue] = red",
        "ints(|5,6,7|)[z+1] = 6",
        "from(|5,6|)[-2] = 5",
        "ints(|5,6,7|)[1..2] = |6,7|",
        "ints(|5,6,7|)[0..2]'size = 3",
        "ints(|5,6,7|)[2..1] = empty",
        "ints(|5,6,7|)[9..8] = empty",
        "ints(empty)'first_index = 0",
        "(ints(|5,6|) :: ([1] := 9)) = |5,9|",
        "ints(|1|) & |2| = |1,2|",
        "ints(|1|) & 2 & 3 = |1,2,3|",
        "0 & ints(|1|) = |0,1|",
        "ll(| ints(|1,2|), |3| |)[m5(0)][1] = 2",
        "(ll(| |1,2| |) & ints(|3|))'size = 2",
        "lp(|{1,true}|)[0].a = 1",
        "(lp(|{1,true}|) & {2,false})'last.a = 2",
        "2 in ints(|1,2|)",
        "not (3 in ints(|1,2|))",
        "z+2 in ints(|1,2|)",
        "int(2) in ints(|1,2|)",
        "{1,true} in lp(|{1,true}|)",
        "red in lcol(|red|)",
        "not (red in lcol(empty))",
        "some(|3,1,2,1|)'size = 3",
        "some(|3,1|) = |1,3,3|",
        "(some(|1|) or 2) = |1,2|",
        "(2 or some(|1|)) = |1,2|",
        "(some(|1,2|) and some(|2,3|)) = |2|",
        "(some(|1,2|) and 2) = |2|",
        "(2 and some(|1,2|)) = |2|",
        "(some(|1,2|) - 2) = |1|",
        "some(|1,2|) - |2,3| = |1|",
        "some(|1,1,1,1,1|)'size=1",
        "some(|1|) < |1,2|",
        "some(|1|) <= |1|",
        "some(|1,2|) > |1|",
        "some(|1,2|) >= |1,2|",
        "some(empty) < |1|",
        "some(empty)'empty",
        "some(|1,2,3,4|)'full",
        "some(|1|)'space = 3",
        "some(|1|)'capacity=4",
        "1 in some(|1|)",
        "cols(|blue,red|) = |red,blue|",
        "sp(|{2,true},{1,false}|)'size = 2",
        "{1,false} in sp(|{1,false}|)",
        "(sp(|{1,false}|) or {1,false})'size = 1",
        "(ss(| |1|,|1| |))'size = 1",
        "some(|1|) in ss(| |1|,|2| |)",
        "srow({|1|,|2|,[red]}).s = |1|",
        "(srow({|1|,|2|,[red]}) :: (l := |3|)).l[0] = 3",
        "cols(|red|)'size = m5(1)",
        "r(ints(|1|)'size) = 1",
        "r(1) = ints(|1|)'size",
        "m5(2) = ints(|1,2|)'size",
        "int(r(1)) + z = 1",
        "2147483647 + z + 1 > 0",
        "2147483647 * 2147483647 > 0",
        "true or 1/z = 0",
        "z = 0 or 1/z = 0",
        "z = 0 ? true : 1/z = 0",
        "(-2147483647-1) / (z-1) > 0",
        "row([1])[r(z)+7] = 1",
        "vm([red])[m5(z)+7] = red",
        "||1,2|,|3|| = ll(| |1,2|, |3| |)",
        "ll(||1,2|,|3||)[m5(0)][1] = 2",
    ];
    for expression in rows {
        let found = Found { states: 4, edges: 4, deadlocks: 1, fault: None };
        assert_eq!(unfolded(&net(expression)).as_ref(), Some(&found), "{expression}");
        assert_eq!(explore(&net(expression), ""), found, "{expression}");
    }
}

#[test]
fn these_are_false() {
    let rows = [
        "not false = false",
        "not (false = false)",
        "not false and false",
        "(true or false) and false",
        "false = false = false",
        "z = 1 ? true : z = 2 ? true : false",
        "true ? false : true or true",
        "not succ false",
        "not pair({1,true}).b",
        "m5(4) + 1 > m5(4)",
        "succ warm(green) = red",
        "some(|1|) < |1|",
        "some(|1,3|) <= |1,2|",
        "false and 1/z = 0",
        "z != 0 and 1/z=0",
    ];
    for expression in rows {
        let found = Found { states: 2, edges: 1, deadlocks: 1, fault: None };
        assert_eq!(unfolded(&net(expression)).as_ref(), Some(&found), "{expression}");
        assert_eq!(explore(&net(expression), ""), found, "{expression}");
    }
}

#[test]
fn these_are_faults() {
    let rows = [
        ("m5s(m5(z) - 1) = 4", "cast failed"),
        ("m5(5) = 0", "cast failed"),
        ("m5(z+5) = 0", "cast failed"),
        ("m5(-1) = 4", "cast failed"),
        ("r(8) = 8", "cast failed"),
        ("m5(r(7))=2", "cast failed"),
        ("tiny(z)=0", "cast failed"),
        ("short(z+32768) = 0", "cast failed"),
        ("nat(z-1) = 0", "cast failed"),
        ("warm(blue) = blue", "cast failed"),
        ("row([1])[8] = 1", "invalid index"),
        ("lcol(|red,blue|)[blue] = blue", "invalid index"),
        ("ints(|5,6,7|)[1..3] = empty", "slice"),
        ("ints(|5,6,7|)[z-1..1] = empty", "slice"),
        ("ints(|5,6,7|)[3] = 1", "invalid index"),
        ("ints(empty)'first = 1", "empty list"),
        ("ints(empty)'last = 1", "empty list"),
        ("ints(empty)'prefix = empty", "empty list"),
        ("ints(empty)'suffix = empty", "empty list"),
        ("ints(empty)'last_index = 0", "empty list"),
        ("(ints(|5,6|) :: ([2] := 9)) = |5,9|", "invalid index"),
        ("ints(|1,2|) & |3,4,5| = |1|", "list overflow"),
        ("ints(|1,2,3,4,5|) = empty", "container capacity"),
        ("ints(|1,2,3,z|) & 5 = empty", "list overflow"),
        ("(some(|1,2|) or |3,4,5|)'size=5", "container capacity"),
        ("some(|1,2,3,4,5|)'size=5", "container capacity"),
        ("2147483647 * 2147483647 * 2147483647 > 0", "out of range"),
        ("(z+2147483647) * (z+2147483647) * (z+2147483647) > 0", "out of range"),
        ("int(2147483647 + z + 1) > 0", "cast failed"),
        ("1 / z = 0", "division by zero"),
        ("1 % z = 0", "division by zero"),
        ("m5(1) / m5(z) = 0", "division by zero"),
        ("row([1])[r(z)+8] = 1", "invalid index"),
        ("row([1])[r(z)-3] = 1", "invalid index"),
        ("row([1]) :: ([r(z)+8] := 5) = row([1])", "invalid index"),
        ("grid([1])[red, z > 5] = 1 and vp([{1,true}])[col'last].a / z = 1", "division by zero"),
    ];
    for (expression, message) in rows {
        let found = explore(&net(expression), "");
        let (told, _) = found.fault.unwrap_or_else(|| panic!("no fault: {expression}"));
        assert!(told.contains(message) && told.contains("line 32, column"), "{expression}: {told}");
        assert_eq!(unfolded(&net(expression)), None, "{expression}");
    }
}

#[test]
fn these_are_refused() {
    let rows = [
        ("int'card > 0", "more than an"),
        ("nat'card > 0", "more than an"),
        ("r(z)=r2(z)", "compares values of one type"),
        ("green = green", "not clear"),
        ("sig(green) = col(green)", "compares values"),
        ("red + 1 = green", "does not apply"),
        ("-red = red", "does not apply"),
        ("red and true", "expected `bool`"),
        ("int(red) = 0", "cannot be cast"),
        ("col(0) = red", "cannot be cast"),
        ("red = 0", "compares values"),
        ("grid([1])[red] = 1", "takes 2 indices, not 1"),
        ("row([1])[1,2] = 1", "takes 1 index"),
        ("row([1,2,3,4,5,6,7,8,9,10,11]) = row([1])", "has 10 elements"),
        ("row([1]) < row([2])", "no order"),
        ("row([true]) = row([1])", "expected `int`"),
        ("row(1) = row(1)", "cannot be cast"),
        ("pair({1}) = {1,true}", "has 2 fields"),
        ("pair({1,true}).c = 1", "no field `c`"),
        ("pair({1,2}) = {1,true}", "expected `bool`"),
        ("pair({1,true}) :: (c := 1) = {1,true}", "no field `c`"),
        ("z.a = 1", "not a structure"),
        ("pair({1,true}) < {2,true}", "no order"),
        ("ints(|1|) < ints(|2|)", "no order"),
        ("ints(|1|)'length = 1", "'size`"),
        ("ints(|1|)'foo = 1", "no attribute"),
        ("ints(|1|)'card = 1", "lists and sets have `'size`"),
        ("z'size = 1", "expected a list or set"),
        ("some(|1|)'first = 1", "expected a list"),
        ("some(|1|) or some(|2|) = |1,2|", "expected `bool`"),
        ("(2 - some(|1|)) = |1|", "does not apply"),
        ("some(|1|)[0] = 1", "neither a vector nor a list"),
        ("some(|1|) + |2| = |1|", "`a or b`"),
        ("some(|true|)'size = 1", "expected `int`"),
        ("r(1) + m5(1) = 2", "does not apply"),
        ("r(1) + z = 1", "does not apply"),
    ];
    for (expression, message) in rows {
        let told = complaints(&net(expression));
        assert!(told[0].contains(message) && told[0].starts_with("32:"), "{expression}: {told:?}");
    }
}
