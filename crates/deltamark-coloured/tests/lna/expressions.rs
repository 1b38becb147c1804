//! The value of every kind of expression, known beforehand and computed at run time.

use super::system;
use deltamark_core::{Batch, System, Value};

/// Types and functions that the rows below use. `id` and the like keep an expression from being
/// evaluated before the net runs.
const DECLARED: &str = "
   type r    : range -2 .. 7;
   type m5   : mod 5;
   type col  : enum (red, green, blue);
   type sig  : enum (stop, green, go);
   subtype warm : col range red .. green;
   type pair : struct { int a; bool b; };
   type row  : vector [r] of int;
   type grid : vector [col, bool] of int;
   type ints : list [nat] of int with capacity 4;
   type from : list [r] of int with capacity 3;
   type some : set of int with capacity 4;
   type cols : set of col with capacity 3;
   type bools : set of bool with capacity 2;
   constant int TEN := 10;
   constant pair P := { 1, true };
   constant some BAG := | 1, 2 |;
   function id (int x) -> int { return x; }
   function truth (bool b) -> bool { return b; }
   function colour (col c) -> col { return c; }
   function seq (int a, int b) -> ints { return | a, b |; }
   function bag (int a, int b) -> some { return | a, b |; }
   function later (int x) -> from { return | x, x + 1 |; }
   function mk (int a, bool b) -> pair { return { a, b }; }
   function all (int x) -> row { return [ x ]; }
   function grid_of (int x) -> grid { return [ x, x + 1, x + 2 ]; }
";

/// The value of an expression of a type, as the one token of a place.
fn value(of: &str, expression: &str) -> String {
    let text = format!("n {{ {DECLARED} place p {{ dom : {of}; init : <( {expression} )>; }} }}");
    let system = system(&text, "");
    let mut batch = Batch::new(system.width());
    system.initial(&mut system.scratch(), &mut batch).expect("it fits");
    match system.describe().state(batch.target(0)).as_slice() {
        [(_, Value::Text(shown))] => shown.trim_start_matches("1'").to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers() {
    let rows = [
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 2", "-1"),
        ("7 mod 3", "1"),
        ("id(-7) / 2", "-3"),
        ("id(-7) % 2", "-1"),
        ("2 + 3 * 4", "14"),
        ("-2 * 3", "-6"),
        ("-id(2) + 5", "3"),
        ("+3 - 2 - 1", "0"),
        ("2 * -3 * 2", "-12"),
        ("id(1) < 2 ? 10 : 20", "10"),
        ("false ? 1 : true ? 2 : 3", "2"),
        ("TEN - 1", "9"),
        ("-2147483648", "-2147483648"),
        ("int(r'last) + 1", "8"),
        ("r'card", "10"),
        ("col'card", "3"),
        ("int(m5(3) + m5(4))", "2"),
        ("P.a", "1"),
    ];
    for (expression, expected) in rows {
        assert_eq!(value("int", expression), expected, "{expression}");
    }
}

#[test]
fn modular_numbers_wrap_and_ranges_do_not() {
    let rows = [
        ("m5", "m5(1) - m5(3)", "3"),
        ("m5", "-m5(2)", "3"),
        ("m5", "m5(id(1)) - m5(id(3))", "3"),
        ("m5", "m5(id(3)) * 4", "2"),
        ("m5", "succ m5(4)", "0"),
        ("m5", "pred m5(id(0))", "4"),
        // A literal is reduced to the type.
        ("m5", "7", "2"),
        ("r", "succ r(6)", "7"),
        ("r", "pred r(id(-1))", "-2"),
        // Only the whole is checked, not its parts.
        ("r", "r(7) + 5 - 6", "6"),
        ("col", "succ blue", "red"),
        ("col", "pred colour(red)", "blue"),
        ("col", "succ succ colour(red)", "blue"),
        // The successor in a part of a type is that of the whole type.
        ("bool", "succ warm(green) = red", "false"),
        ("bool", "succ warm(colour(green)) = blue", "true"),
        // A name of two enumerations has the expected type.
        ("col", "green", "green"),
        ("sig", "succ green", "go"),
        ("col", "col'first", "red"),
        ("warm", "warm'last", "green"),
    ];
    for (of, expression, expected) in rows {
        assert_eq!(value(of, expression), expected, "{expression}");
    }
}

#[test]
fn truth_and_precedence() {
    let rows = [
        ("not false = false", "false"),
        ("not truth(false) and true", "true"),
        ("true or 1 / 0 = 1", "true"),
        ("truth(false) and 1 / 0 = 1", "false"),
        ("1 + 1 = 2 and 3 > 2 or false", "true"),
        ("false and false or true", "true"),
        ("1 < 2 = true", "true"),
        ("colour(red) < blue", "true"),
        ("1 <= 1 and 2 >= 3", "false"),
        ("2 in bag(1, 2)", "true"),
        ("id(3) in seq(1, 2)", "false"),
        // A literal without a type is a number of the elements' type.
        ("(3 in bag(1, id(3))) = false", "false"),
        // `in` is looser than `=`.
        ("true in | 1 = 2, truth(true) |", "true"),
        ("id(1) <(2)", "true"),
        ("(id(1))>2", "false"),
        ("mk(1, true) = P", "true"),
        ("all(3) != [3]", "false"),
        ("r(3) - 6 < 5", "true"),
    ];
    for (expression, expected) in rows {
        assert_eq!(value("bool", expression), expected, "{expression}");
    }
}

#[test]
fn structures_and_vectors() {
    let rows = [
        ("pair", "{ 2 + 3, not true }", "{5,false}"),
        ("pair", "mk(1, true) :: (a := 7)", "{7,true}"),
        ("pair", "P :: (a := 7) :: (b := false)", "{7,false}"),
        ("bool", "mk(1, true).b", "true"),
        ("row", "[ 1, id(2) ]", "[1,2,2,2,2,2,2,2,2,2]"),
        ("int", "[ 1, 2 ][r(-2)]", "1"),
        ("int", "all(4)[r(7)]", "4"),
        ("row", "all(0) :: ([r(id(-1))] := 9)", "[0,9,0,0,0,0,0,0,0,0]"),
        // The last index varies fastest.
        ("int", "grid_of(10)[red, true]", "11"),
        ("int", "grid_of(10)[colour(green), false]", "12"),
        ("grid", "grid_of(0) :: ([green, truth(true)] := 7)", "[0,1,2,7,2,2]"),
    ];
    for (of, expression, expected) in rows {
        assert_eq!(value(of, expression), expected, "{expression}");
    }
}

#[test]
fn lists() {
    let rows = [
        ("ints", "empty", "empty"),
        ("ints", "| 1, 2 |", "|1,2|"),
        ("ints", "seq(1, 2) & 3", "|1,2,3|"),
        ("ints", "0 & seq(1, 2)", "|0,1,2|"),
        ("ints", "seq(1, 2) & seq(3, 4)", "|1,2,3,4|"),
        ("ints", "id(1) & id(2)", "|1,2|"),
        ("ints", "seq(1, 2) :: ([1] := 9)", "|1,9|"),
        ("ints", "seq(5, 6)[0 .. 0]", "|5|"),
        ("ints", "seq(5, 6)[1 .. 0]", "empty"),
        ("ints", "seq(5, 6)'prefix", "|5|"),
        ("ints", "seq(5, 6)'suffix", "|6|"),
        ("int", "seq(5, 6)[1]", "6"),
        ("int", "seq(5, 6)'first", "5"),
        ("int", "seq(5, 6)'last", "6"),
        ("int", "seq(5, 6)'size", "2"),
        ("int", "seq(5, 6)'space", "2"),
        ("int", "seq(5, 6)'capacity", "4"),
        ("bool", "seq(5, 6)'full", "false"),
        ("bool", "seq(5, 6)'empty", "false"),
        ("bool", "seq(5, 6)[1 .. 0]'empty", "true"),
        // Elements are counted from the first value of the index type.
        ("int", "later(5)[r(-1)]", "6"),
        ("r", "later(5)'first_index", "-2"),
        ("r", "later(5)'last_index", "-1"),
    ];
    for (of, expression, expected) in rows {
        assert_eq!(value(of, expression), expected, "{expression}");
    }
}

#[test]
fn sets() {
    let rows = [
        ("some", "| 3, 1, 3, 2 |", "|1,2,3|"),
        ("some", "bag(3, 1) or 2", "|1,2,3|"),
        ("some", "0 or bag(3, 1)", "|0,1,3|"),
        ("some", "bag(3, 1) or bag(1, 2)", "|1,2,3|"),
        ("some", "bag(3, 1) and bag(1, 2)", "|1|"),
        ("some", "bag(3, 1) and 3", "|3|"),
        ("some", "bag(3, 1) - 1", "|3|"),
        ("some", "bag(3, 1) - | 1, id(3) |", "empty"),
        ("cols", "| blue, colour(red) |", "|red,blue|"),
        ("bool", "bag(1, 2) < bag(2, 1)", "false"),
        ("bool", "bag(1, 2) <= bag(2, 1)", "true"),
        ("bool", "bag(1, 1) < bag(2, 1)", "true"),
        ("bool", "bag(1, 2) > bag(2, 2)", "true"),
        ("bool", "bag(1, 2) >= bag(3, 3)", "false"),
        ("int", "bag(4, 4)'size", "1"),
        ("bool", "bag(4, 4)'empty", "false"),
        ("bool", "int(4) in bag(4, 4)", "true"),
    ];
    for (of, expression, expected) in rows {
        assert_eq!(value(of, expression), expected, "{expression}");
    }
}

#[test]
fn what_is_known_beforehand_is_what_the_net_computes() {
    // Each pair is equivalent, once with constants and once with calls.
    let rows = [
        ("int", "7 / -2 + 3 % -2", "id(7) / id(-2) + id(3) % id(-2)"),
        ("m5", "m5(4) * 4 - 3", "m5(id(4)) * m5(id(4)) - m5(id(3))"),
        ("ints", "| 1, 2 | & 3", "seq(1, 2) & id(3)"),
        ("some", "| 2, 1 | or 3", "bag(2, 1) or id(3)"),
        ("some", "| 2, 1 | - 2", "bag(2, 1) - id(2)"),
        ("bool", "BAG <= BAG and not (BAG < BAG)", "bag(1, 2) <= bag(2, 1) and not (bag(1, 2) < bag(1, 2))"),
        ("pair", "{ 1, true } :: (a := 2)", "mk(1, true) :: (a := id(2))"),
        ("col", "pred red", "pred colour(red)"),
    ];
    for (of, known, computed) in rows {
        assert_eq!(value(of, known), value(of, computed), "{known}");
    }
}
