//! A fault at run time is a verdict, with its trace and its span in the text.

use super::explore;

/// A net that counts to three, and whose third step evaluates an expression that is a fault.
fn counting(declared: &str, expression: &str) -> String {
    format!(
        "n {{\n   type r : range 0 .. 3;\n   type m3 : mod 3;\n   type ints : list [nat] of int with capacity 2;\n   \
         type some : set of int with capacity 2;\n   type row : vector [r] of int;\n   {declared}\n   \
         place a {{ dom : int; init : <( 0 )>; }}\n   \
         transition t {{ in {{ a : <( x )>; }} out {{ a : <( x + 1 )>; }} guard : x < 2; }}\n   \
         transition f {{ in {{ a : <( x )>; }} out {{ a : <( {expression} )>; }} guard : x = 2; }}\n}}"
    )
}

#[test]
fn every_fault_has_its_message_its_steps_and_its_place() {
    let two = "function two (int x) -> int { return x; }";
    let list = "function seq (int x) -> ints { return | x, x |; }";
    let rows = [
        ("", "1 / (x - 2)", "division by zero in transition `f` (line 10, column 52)"),
        ("", "1 % (x - 2)", "division by zero in transition `f` (line 10, column 52)"),
        (two, "two(2147483647 + x)", "expression out of range in transition `f` (line 10, column 56)"),
        (
            "function f (r x) -> int { return 1; }",
            "f(r(x) + 2)",
            "expression out of range in transition `f` (line 10, column 54)",
        ),
        (
            "function f (int x) -> r { r y := 3; y := y + 1; return y; }",
            "int(f(x))",
            "expression out of range in transition `f` (line 7, column 45)",
        ),
        (
            "function f (int x) -> r return r(x) * 2;",
            "int(f(x))",
            "expression out of range in transition `f` (line 7, column 35)",
        ),
        ("", "int(m3(x + 1))", "cast failed in transition `f` (line 10, column 56)"),
        ("constant row ROW := [7];", "ROW[r(x) + 2]", "invalid index in transition `f` (line 10, column 52)"),
        (list, "seq(x)[x]", "invalid index in transition `f` (line 10, column 52)"),
        (list, "seq(x)[0 .. x]'size", "invalid first or last index of a slice in transition `f` (line 10, column 52)"),
        (list, "(seq(x) & 1)'size", "list overflow in transition `f` (line 10, column 52)"),
        (
            list,
            "seq(x)[1 .. 0]'first",
            "an element of an empty list is asked for in transition `f` (line 10, column 52)",
        ),
        (
            list,
            "seq(x)[1 .. 0]'suffix'size",
            "an element of an empty list is asked for in transition `f` (line 10, column 52)",
        ),
        (
            "function bag (int x) -> some { return | x, x + 1 |; }",
            "(bag(x) or 7)'size",
            "container capacity exceeded in transition `f` (line 10, column 52)",
        ),
        (
            "function bag (int x) -> some { return | x, x + 1, x + 2 |; }",
            "bag(x)'size",
            "container capacity exceeded in transition `f` (line 7, column 42)",
        ),
        (
            "function f (int x) -> int { assert : x < 2; return x; }",
            "f(x)",
            "assertion failed in transition `f` (line 7, column 41)",
        ),
        (
            "function f (int x) -> int { if (x < 2) return x; }",
            "f(x)",
            "no value returned in transition `f` (line 10, column 52)",
        ),
    ];
    for (declared, expression, expected) in rows {
        let found = explore(&counting(declared, expression), "");
        let (message, steps) = found.fault.unwrap_or_else(|| panic!("no fault: {expression}"));
        assert!(message.starts_with(expected), "{expression}: {message}");
        assert_eq!((steps, found.states), (3, 3), "{expression}: two steps and the one that fails");
    }
}

#[test]
fn a_place_that_overflows() {
    let text = "n {\n   place a { dom : int; capacity : 2; }\n   transition t { in { } out { a : <( 1 )>; } }\n}";
    let found = explore(text, "");
    assert_eq!(found.fault, Some(("capacity of place `a` exceeded (line 2, column 10)".into(), 3)));
    assert_eq!(found.states, 3);
}

#[test]
fn a_fault_of_a_guard_or_a_priority_is_one_too() {
    let net = |attribute: &str| {
        format!(
            "n {{ place a {{ dom : int; init : <( 0 )>; }} transition t {{ in {{ a : <( x )>; }} out {{ }} {attribute} }} }}"
        )
    };
    for attribute in ["guard : 1 / x = 0;", "priority : 1 / x;", "let { int y := 1 / x; }"] {
        let fault = explore(&net(attribute), "").fault.unwrap_or_else(|| panic!("no fault: {attribute}"));
        assert!(fault.0.starts_with("division by zero"), "{attribute}: {}", fault.0);
    }
    // What is not reached is no fault.
    assert_eq!(explore(&net("guard : x != 0 and 1 / x = 0;"), "").fault, None);
}

/// A fault counts only if there are tokens for all inputs, wherever the plan evaluates it.
#[test]
fn a_binding_that_is_not_there_is_no_fault() {
    // Places a and b hold 0 and 5; c and d are empty.
    let net = |transition: &str| {
        format!(
            "n {{ type l : list [nat] of int with capacity 3;
              function half (int x) -> int {{ assert : x > 0; return x / 2; }}
              place a {{ dom : int; init : <( 0 )>; }} place b {{ dom : int; init : <( 5 )>; }}
              place c {{ dom : int; }} place d {{ dom : epsilon; }} place e {{ dom : int * int; init : <( 1, 1 )>; }}
              transition t {{ {transition} }}
              place go {{ dom : bool; init : <( true )>; }} transition u {{ in {{ go : <( true )>; }} out {{ go : <( false )>; }} }} }}"
        )
    };
    let rows = [
        ("in { a : <( x )>; } out { } guard : 1 / x = 0;", true),
        ("in { a : <( x )>; c : <( y )>; } out { } guard : 1 / x = 0;", false),
        ("in { c : <( y )>; a : <( x )>; } out { } guard : 1 / x = y;", false),
        ("in { a : <( x )>; b : <( y )>; } out { } guard : 1 / x = 0;", true),
        ("in { a : <( x )>; d : epsilon; } out { } guard : 1 / x = 0;", false),
        ("in { d : epsilon; } out { } guard : 1 / 0 = 0;", false),
        ("in { a : <( x )>; d : epsilon; } out { } guard : half(x) = 0;", false),
        ("in { a : <( x )>; b : <( x )>; } out { } guard : half(x) = 0;", false),
        ("in { a : <( x )> + <( y )>; } out { } guard : half(x) = 0;", false),
        ("in { a : 2 * <( x )>; } out { } guard : half(x) = 0;", false),
        ("in { a : <( x )>; e : <( 1, y )>; } out { } guard : half(x) = 0;", true),
        ("in { a : <( x )>; e : <( x, y )>; } out { } guard : half(x) = 0;", false),
        ("in { a : <( x )>; c : if (x = 1) <( 1 )>; } out { } guard : half(x) = 0;", true),
        // The order is that of the text, even if a later conjunct is known first.
        ("in { a : <( x )>; b : <( y )>; } out { } guard : half(x) = 0 and y = 6;", true),
        ("in { a : <( x )>; b : <( y )>; } out { } guard : y = 6 and half(x) = 0;", false),
        ("in { a : <( x )>; b : <( y )>; } out { } guard : half(y - 5) = 0 and x = 1;", true),
        ("in { a : <( x )>; b : <( y )>; } out { } guard : x = 1 and half(y - 5) = 0;", false),
        // A let, a pick, and expressions of the inputs.
        ("in { a : <( x )>; } out { } let { int z := 1 / x; }", true),
        ("in { a : <( x )>; c : <( y )>; } out { } let { int z := 1 / x; }", false),
        ("in { a : <( x )>; c : <( z + 0 )>; } out { } let { int z := 1 / x; }", false),
        ("in { a : <( x )>; e : <( 2, z + 1 )>; } out { } let { int z := 1 / x; }", false),
        ("in { a : <( x )>; e : <( 1, z + 1 )>; } out { } let { int z := 1 / x; }", true),
        ("in { a : <( x )>; } out { } let { int z := 1 / x; } guard : x != 0;", false),
        ("in { a : <( x )>; } out { } pick { y in int range 1 / x .. 2; }", true),
        ("in { a : <( x )>; d : epsilon; } out { } pick { y in int range 1 / x .. 2; }", false),
        ("in { a : <( x )>; d : epsilon; } out { } pick { y in int; }", false),
        ("in { d : epsilon; } out { } pick { y in int; }", false),
        ("in { a : <( x )>; } out { } pick { y in int range 2 .. 1; } guard : half(x) = 0;", false),
        ("in { a : <( x )>; b : <( 1 / x )>; } out { }", true),
        ("in { a : <( x )>; c : <( 1 / x )>; } out { }", false),
        ("in { a : <( x )>; e : <( 1 / x, 1 )>; } out { }", true),
        ("in { a : <( x )>; e : <( 1 / x, 2 )>; } out { }", false),
        ("in { a : <( x )>; e : <( y, y / x )>; d : epsilon; } out { }", false),
        ("in { a : <( x )>; e : <( y, y / x )>; } out { }", true),
        // Outputs and priority are evaluated only if the step can be taken.
        ("in { a : <( x )>; d : epsilon; } out { c : <( 1 / x )>; }", false),
        ("in { a : <( x )>; d : epsilon; } out { } priority : 1 / x;", false),
    ];
    for (transition, expected) in rows {
        let text = net(transition);
        assert_eq!(explore(&text, "").fault.is_some(), expected, "{transition}");
        // A net without faults can be unfolded, and has the same states; but unfolding counts no tokens.
        let unfolded = deltamark_coloured::UnfoldedSystem::new(
            deltamark_coloured::lna::parse(text.as_bytes(), &[]).expect("a net"),
            &text,
            deltamark_coloured::UnfoldLimits::DEMANDED,
        );
        match unfolded {
            Ok(system) => assert_eq!(super::explore_system(&system, "plain"), explore(&text, ""), "{transition}"),
            Err(_) => {
                let counts = ["priority", "<( x )> + <( y )>", "2 *"].iter().any(|part| transition.contains(part));
                assert!(expected || counts, "{transition}");
            }
        }
    }
}

#[test]
fn bounds_of_evaluations_are_no_faults() {
    let functions = [
        "function f (int x) -> int { return f(x + 1 - 1) + 1; }",
        "function f (int x) -> int { while (x = 2) { int y := 0; y := 1; } return 0; }",
    ];
    for function in functions {
        let system = super::system(&counting(function, "f(x)"), "");
        assert_eq!(super::explored::stopped(&system), Some(deltamark_core::Stop::Count), "{function}");
    }
}
