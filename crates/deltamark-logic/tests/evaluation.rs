//! Block-wise evaluation against a naive evaluator that walks the tree state by state.

mod common;

use common::{ACTIONS, Fake, NUMBERS, Random, TRUTHS, VALUES, WIDTH, block};
use deltamark_core::property::Undefined;
use deltamark_core::{Goal, ObservableKind, Observe, Predicate, Scratch, Slot, Span};
use deltamark_logic::{Arithmetic, Comparison, Expr, Name, Node, compile, invariant, parse, reachable};

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Zero,
    Overflow,
}

type State = [Slot; WIDTH];

fn read(state: &State, name: &Name, action: bool) -> i64 {
    let observable = if action { Fake.fireable(&name.text) } else { Fake.resolve(&name.text) };
    Fake.read(&mut Scratch::none(), state, observable.unwrap())
}

fn dull_truth(expr: &Expr, state: &State, dead: bool) -> Result<bool, Wrong> {
    let truth = |expr: &Expr| dull_truth(expr, state, dead);
    Ok(match &expr.node {
        Node::Truth(truth) => *truth,
        Node::Deadlock => dead,
        Node::Name(name) => read(state, name, false) != 0,
        Node::Fireable(names) => names.iter().any(|name| read(state, name, true) != 0),
        Node::Not(inner) => !truth(inner)?,
        Node::And(list) => {
            for operand in list {
                if !truth(operand)? {
                    return Ok(false);
                }
            }
            true
        }
        Node::Or(list) => {
            for operand in list {
                if truth(operand)? {
                    return Ok(true);
                }
            }
            false
        }
        Node::Implies(left, right) => !truth(left)? || truth(right)?,
        Node::Iff(list) => {
            let mut value = truth(&list[0])?;
            for operand in &list[1..] {
                value = value == truth(operand)?;
            }
            value
        }
        Node::Compare(comparison, left, right) => {
            let (left, right) = if is_truth(left) {
                (i64::from(truth(left)?), i64::from(truth(right)?))
            } else {
                (dull_number(left, state)?, dull_number(right, state)?)
            };
            match comparison {
                Comparison::Equal => left == right,
                Comparison::Differ => left != right,
                Comparison::Less => left < right,
                Comparison::AtMost => left <= right,
                Comparison::More => left > right,
                Comparison::AtLeast => left >= right,
            }
        }
        _ => panic!("{expr} is no truth value"),
    })
}

fn dull_number(expr: &Expr, state: &State) -> Result<i64, Wrong> {
    let number = |expr: &Expr| dull_number(expr, state);
    Ok(match &expr.node {
        Node::Number(number) => *number,
        Node::Name(name) => read(state, name, false),
        Node::Tokens(names) => {
            let mut sum = 0i64;
            for name in names {
                sum = sum.checked_add(read(state, name, false)).ok_or(Wrong::Overflow)?;
            }
            sum
        }
        Node::Negate(inner) => number(inner)?.checked_neg().ok_or(Wrong::Overflow)?,
        Node::Arithmetic(first, rest) => {
            let mut value = number(first)?;
            for (operator, right) in rest {
                let right = number(right)?;
                let (a, b) = (i128::from(value), i128::from(right));
                let result = match operator {
                    Arithmetic::Add => a + b,
                    Arithmetic::Subtract => a - b,
                    Arithmetic::Multiply => a * b,
                    Arithmetic::Divide => a.checked_div(b).ok_or(Wrong::Zero)?,
                    Arithmetic::Remainder => a.checked_rem(b).ok_or(Wrong::Zero)?,
                };
                value = i64::try_from(result).map_err(|_| Wrong::Overflow)?;
            }
            value
        }
        _ => panic!("{expr} is no number"),
    })
}

fn is_truth(expr: &Expr) -> bool {
    match &expr.node {
        Node::Name(name) => Fake.resolve(&name.text).unwrap().kind == ObservableKind::Bool,
        Node::Number(_) | Node::Tokens(_) | Node::Negate(_) | Node::Arithmetic(..) => false,
        _ => true,
    }
}

fn expr(node: Node) -> Expr {
    Expr { node, span: Span::at(0) }
}

fn some_name(random: &mut Random, names: &[&str]) -> Name {
    Name { text: random.pick(names).to_string(), span: Span::at(0) }
}

fn some_names(random: &mut Random, names: &[&str]) -> Vec<Name> {
    (0..1 + random.below(3)).map(|_| some_name(random, names)).collect()
}

fn some_truth(random: &mut Random, depth: usize) -> Expr {
    let list = |random: &mut Random| (0..2 + random.below(3)).map(|_| some_truth(random, depth - 1)).collect();
    let one = |random: &mut Random| Box::new(some_truth(random, depth - 1));
    let kinds = if depth == 0 { 4 } else { 12 };
    expr(match random.below(kinds) {
        0 => Node::Truth(random.below(2) == 0),
        1 => Node::Deadlock,
        2 => Node::Name(some_name(random, &TRUTHS)),
        3 => Node::Fireable(some_names(random, &ACTIONS)),
        4 => Node::Not(one(random)),
        5 => Node::And(list(random)),
        6 => Node::Or(list(random)),
        7 => Node::Iff(list(random)),
        8 => Node::Implies(one(random), one(random)),
        9 => Node::Compare(random.pick(&[Comparison::Equal, Comparison::Differ]), one(random), one(random)),
        _ => {
            use Comparison::*;
            let number = |random: &mut Random| Box::new(some_number(random, depth - 1));
            Node::Compare(random.pick(&[Equal, Differ, Less, AtMost, More, AtLeast]), number(random), number(random))
        }
    })
}

fn some_number(random: &mut Random, depth: usize) -> Expr {
    let kinds = if depth == 0 { 3 } else { 8 };
    expr(match random.below(kinds) {
        0 => Node::Number(random.pick(&VALUES)),
        1 => Node::Name(some_name(random, &NUMBERS)),
        2 => Node::Tokens(some_names(random, &NUMBERS)),
        3 => Node::Negate(some_number(random, depth - 1).into()),
        kind => {
            use Arithmetic::*;
            let operators: &[Arithmetic] =
                if kind.is_multiple_of(2) { &[Add, Subtract] } else { &[Multiply, Divide, Remainder] };
            let rest =
                (0..1 + random.below(3)).map(|_| (random.pick(operators), some_number(random, depth - 1))).collect();
            Node::Arithmetic(some_number(random, depth - 1).into(), rest)
        }
    })
}

/// A random block. Most states are tame, so that not every block has an error in it.
fn some_states(random: &mut Random) -> Vec<State> {
    let values = random.pick(&[4, 6, VALUES.len()]);
    (0..random.pick(&[0, 1, 5, 63, 64])).map(|_| std::array::from_fn(|_| random.below(values) as Slot)).collect()
}

/// The result of the naive evaluator for a block.
fn dull(expr: &Expr, states: &[State], dead: u64) -> Result<u64, (usize, Wrong)> {
    let mut word = 0;
    for (index, state) in states.iter().enumerate() {
        match dull_truth(expr, state, dead >> index & 1 == 1) {
            Ok(truth) => word |= u64::from(truth) << index,
            Err(wrong) => return Err((index, wrong)),
        }
    }
    Ok(word)
}

fn fast(predicate: &dyn Predicate, states: &[State], dead: u64) -> Result<u64, Undefined> {
    predicate.evaluate(&Fake, &mut Scratch::none(), &block(states), dead)
}

#[test]
fn random_expressions_agree_with_the_dull_evaluator() {
    let mut random = Random(1);
    let (mut defined, mut zero, mut overflow) = (0, 0, 0);
    for round in 0..6000 {
        let expr = some_truth(&mut random, 1 + round % 4);
        let text = expr.to_string();
        let compiled = compile(&text, &Fake).unwrap_or_else(|findings| panic!("{text}: {findings:?}"));
        for _ in 0..4 {
            let states = some_states(&mut random);
            let dead = random.next();
            match (fast(&compiled, &states, dead), dull(&expr, &states, dead)) {
                (Ok(fast), Ok(dull)) => {
                    assert_eq!(fast, dull, "{text} on {states:?}");
                    defined += 1;
                }
                (Err(fast), Err((state, wrong))) => {
                    assert_eq!(fast.state, state, "{text} on {states:?}");
                    let (why, count) = match wrong {
                        Wrong::Zero => ("division by zero in `", &mut zero),
                        Wrong::Overflow => ("overflow of 64 bits in `", &mut overflow),
                    };
                    assert!(fast.message.starts_with(why), "{text}: {}", fast.message);
                    *count += 1;
                }
                (fast, dull) => panic!("{text} on {states:?}: {fast:?} but {dull:?}"),
            }
        }
    }
    // The test is meaningful only if it saw enough of each kind.
    assert!(defined > 5000 && zero > 500 && overflow > 500, "{defined} {zero} {overflow}");
}

#[test]
fn random_expressions_print_and_parse_back() {
    let mut random = Random(2);
    for round in 0..5000 {
        let expr = some_truth(&mut random, 1 + round % 5);
        let text = expr.to_string();
        assert_eq!(parse(&text).as_ref(), Ok(&expr), "{text}");
    }
}

/// A state with these values of p, q and r.
fn state(p: i64, q: i64, r: i64) -> State {
    let slot = |value| VALUES.iter().position(|&known| known == value).unwrap() as Slot;
    let mut state = [0; WIDTH];
    state[..3].copy_from_slice(&[slot(p), slot(q), slot(r)]);
    state
}

#[test]
fn only_what_matters_must_be_defined() {
    let states = [state(3, 1, 0), state(3, 0, 1), state(7, 2, 0), state(i64::MAX, 1, 0)];
    for (text, expected) in [
        ("q != 0 and p / q > 1", Ok(0b1101)),
        ("q = 0 or p / q > 1", Ok(0b1111)),
        ("q != 0 implies p / q > 3", Ok(0b1010)),
        ("p / q > 1 and q != 0", Err((1, "division by zero in `p / q`"))),
        ("q != 0 and q != 1 and p / q = 3", Ok(0b0100)),
        ("r = 0 and p / (q - r) > 0", Ok(0b1101)),
        ("true or p / 0 = 1", Ok(0b1111)),
        ("p % 2 = 1 iff p / 2 * 2 != p", Ok(0b1111)),
        ("p + 1 > 0", Err((3, "overflow of 64 bits in `p + 1`"))),
        ("p + q - r > 0", Err((3, "overflow of 64 bits in `p + q`"))),
        ("(p * 2) > 0 and p / r > 0", Err((0, "division by zero in `p / r`"))),
        ("p + 1 > 0 and 1 / r > 5", Err((0, "division by zero in `1 / r`"))),
        ("tokens(p, q) > 0", Err((3, "overflow of 64 bits in `tokens(p, q)`"))),
        ("deadlock", Ok(0b0110)),
        ("p = 3 and not deadlock", Ok(0b0001)),
    ] {
        let got = fast(&compile(text, &Fake).unwrap(), &states, 0b0110);
        let expected = expected.map_err(|(state, message): (usize, &str)| Undefined {
            state,
            message: message.into(),
            limit: false,
        });
        assert_eq!(got, expected, "{text}");
    }
}

#[test]
fn properties_carry_name_text_and_goal() {
    let named = invariant(Some("few".into()), " p <= 3 ", &Fake).unwrap();
    assert_eq!((named.name.as_str(), named.text.as_str()), ("few", "p <= 3"));
    let Goal::Invariant(predicate) = named.goal else { panic!("an invariant") };
    assert_eq!(fast(&*predicate, &[state(3, 0, 0), state(7, 0, 0)], 0), Ok(0b01));

    let nameless = reachable(None, "p\n  >= 3", &Fake).unwrap();
    assert_eq!((nameless.name.as_str(), nameless.text.as_str()), ("p >= 3", "p >= 3"));
    assert!(matches!(nameless.goal, Goal::Reachable(_)));
}
