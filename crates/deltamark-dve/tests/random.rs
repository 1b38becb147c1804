//! Random expressions and random models: the engines, the reference and a naive evaluation of the text agree.

#[path = "models/arithmetic.rs"]
mod arithmetic;

use deltamark_core::{Batch, Observe, System};
use deltamark_dve::reference::{self, Outcome};
use deltamark_dve::{DveSystem, EngineChoice, parse};
use deltamark_testkit::Rng;
use std::collections::HashSet;

/// An expression as an independent tree, with its text and its value.
enum Tree {
    Number(i32),
    Variable(&'static str, i32),
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    Element(Box<Tree>),
}

/// The values of the model's variables.
const VARIABLES: [(&str, i32); 5] = [("zero", 0), ("one", 1), ("big", 255), ("low", -32768), ("three", 3)];
const ARRAY: [i32; 4] = [7, -1, 0, 300];
/// Loosest first.
const LEVELS: [&[&str]; 11] = [
    &["imply"],
    &["or", "||"],
    &["and", "&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

fn tree(rng: &mut Rng, depth: usize) -> Tree {
    match rng.below(if depth == 0 { 2 } else { 9 }) {
        0 => Tree::Number([0, 1, 2, 3, 31, 32, 255, 256, 65536, i32::MAX][rng.below(10)]),
        1 => {
            let (name, value) = VARIABLES[rng.below(VARIABLES.len())];
            Tree::Variable(name, value)
        }
        2 => Tree::Unary(["-", "~", "not"][rng.below(3)], tree(rng, depth - 1).into()),
        3 => Tree::Element(tree(rng, depth - 1).into()),
        _ => {
            let level = LEVELS[rng.below(LEVELS.len())];
            Tree::Binary(level[rng.below(level.len())], tree(rng, depth - 1).into(), tree(rng, depth - 1).into())
        }
    }
}

impl Tree {
    fn level(&self) -> usize {
        match self {
            Tree::Binary(operator, ..) => {
                LEVELS.iter().position(|level| level.contains(operator)).expect("an operator")
            }
            Tree::Unary(..) => LEVELS.len(),
            _ => LEVELS.len() + 1,
        }
    }

    /// The text with as few parentheses as the precedences allow.
    fn text(&self) -> String {
        let inside = |tree: &Tree, least: usize| {
            if tree.level() < least { format!("({})", tree.text()) } else { tree.text() }
        };
        match self {
            Tree::Number(value) => value.to_string(),
            Tree::Variable(name, _) => name.to_string(),
            Tree::Unary(operator, operand) => format!("{operator} {}", inside(operand, LEVELS.len())),
            // All are left-associative: the right operand binds tighter.
            Tree::Binary(operator, left, right) => {
                format!("{} {operator} {}", inside(left, self.level()), inside(right, self.level() + 1))
            }
            Tree::Element(index) => format!("arr[{}]", index.text()),
        }
    }

    /// The value by plain 64-bit arithmetic truncated to 32 bits; `None` for a fault.
    fn value(&self) -> Option<i32> {
        match self {
            Tree::Number(value) | Tree::Variable(_, value) => Some(*value),
            Tree::Unary(operator, operand) => Some(arithmetic::unary(operator, operand.value()?)),
            Tree::Element(index) => ARRAY.get(usize::try_from(index.value()?).ok()?).copied(),
            Tree::Binary(operator, left, right) => {
                let left = left.value()?;
                match arithmetic::decided(operator, left) {
                    Some(value) => Some(value),
                    None => arithmetic::binary(operator, left, right.value()?),
                }
            }
        }
    }
}

/// Each expression is the guard of a transition, split so that its value is observable: equal to the expected one,
/// or a fault. The variables change elsewhere in the model, so that nothing is folded.
#[test]
fn random_expressions_have_the_expected_value() {
    let mut rng = Rng::new(7);
    let (mut faults, mut values) = (0, 0);
    for round in 0..1500 {
        let tree = tree(&mut rng, 5);
        let (text, expected) = (tree.text(), tree.value());
        for fixed in [true, false] {
            let others = "s -> u { effect zero = 5, one = 6, big = 7, low = 8, three = 9, arr[zero - 3] = 1; },";
            let others = if fixed { "" } else { others };
            let shown = expected.unwrap_or(0);
            // The least number cannot be written as such.
            let shown = if shown == i32::MIN { "(-2147483647 - 1)".into() } else { shown.to_string() };
            let model = format!(
                "byte zero, one = 1, big = 255, three = 3; int low = -32768; int arr[4] = {{7, -1, 0, 300}};
                 process P {{ state s, t, u; init s; trans {others} s -> t {{ guard ({text}) == {shown}; }}; }} system async;"
            );
            let program = parse(model.as_bytes()).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}"));
            let action = program.action_count - 1;
            // Compiling native code takes longer than all the rest, so one in three is tried with it.
            let native = cfg!(feature = "native") && round % 3 == 0;
            let choice = if native { EngineChoice::Native } else { EngineChoice::Interpreter };
            let system = DveSystem::run_by(program, choice).unwrap_or_else(|why| panic!("{model}: {why}"));
            let mut batch = Batch::new(system.width());
            let mut first = Batch::new(system.width());
            system.initial(&mut system.scratch(), &mut first).expect("no layout widens");
            system.successors(&mut system.scratch(), first.target(0), &mut batch).expect("no layout widens");
            let taken = batch.actions().iter().any(|found| found.0 == action);
            let failed = batch.faults().iter().any(|fault| fault.action.is_some_and(|found| found.0 == action));
            assert_eq!((taken, failed), (expected.is_some(), expected.is_none()), "{text} is {expected:?}");
            if expected.is_some() { values += 1 } else { faults += 1 }
        }
    }
    assert!(values > 500 && faults > 200, "{values} values and {faults} faults: both are tried");
}

/// A random model: a few processes over shared variables, arrays and channels of all kinds.
fn model(rng: &mut Rng) -> String {
    let pick = |rng: &mut Rng, list: &[&str]| list[rng.below(list.len())].to_string();
    let reads = ["x", "y", "a[y]", "a[0]", "own", "loc[own % 2]", "P0.s", "P1.t", "P0->own", "3", "1", "0", "k[x % 3]"];
    let expr = |rng: &mut Rng| {
        let (one, other) = (pick(rng, &reads), pick(rng, &reads));
        let sign = pick(rng, &["+", "-", "*", "%", "/", "&", "|", "^", "==", "<", "and", "or", ">>", "imply"]);
        match rng.below(4) {
            0 => one,
            1 | 2 => format!("(({one} {sign} {other}) & 3)"),
            _ => format!("({one} {sign} {other})"),
        }
    };
    let places = ["x", "y", "a[y]", "a[x % 3]", "own", "loc[own]", "a"];
    let mut text = String::from(
        "byte x, y = 1; int a[3] = {1, 2, 3}; const byte k[3] = {2, 0, 1};
         channel c, n; channel {byte} q[2]; channel {int, byte} r[0];\n",
    );
    let processes = 2 + rng.below(2);
    for process in 0..processes {
        let commit = if rng.below(4) == 0 { "commit t;" } else { "" };
        let assert = if rng.below(4) == 0 { "assert t: own < 3, s: x + 1;" } else { "" };
        let mut transitions = Vec::new();
        for _ in 0..4 + rng.below(7) {
            let (from, to) = (pick(rng, &["s", "t", "u"]), pick(rng, &["s", "t", "u"]));
            let guard = if rng.below(3) == 0 { format!("guard {};", expr(rng)) } else { String::new() };
            let sync = match rng.below(12) {
                0 => format!("sync c!{};", expr(rng)),
                1 => format!("sync c?{};", pick(rng, &places)),
                2 => format!("sync q!{};", expr(rng)),
                3 => format!("sync q?{};", pick(rng, &places)),
                4 => format!("sync r!{{{}, {}}};", expr(rng), expr(rng)),
                5 => format!("sync r?{{{}, {}}};", pick(rng, &places), pick(rng, &places)),
                6 => format!("sync n{};", pick(rng, &["!", "?"])),
                _ => String::new(),
            };
            let effects: Vec<String> =
                (0..rng.below(3)).map(|_| format!("{} = {}", pick(rng, &places), expr(rng))).collect();
            let effect = if effects.is_empty() { String::new() } else { format!("effect {};", effects.join(", ")) };
            transitions.push(format!("{from} -> {to} {{ {guard} {sync} {effect} }}"));
        }
        text += &format!(
            "process P{process} {{ byte own; int loc[2] = {{-1, 1}}; state s, t, u; init s; {commit} {assert} trans {}; }}\n",
            transitions.join(",\n  ")
        );
    }
    let timing = if rng.below(4) == 0 { "sync" } else { "async" };
    text + &format!("system {timing};")
}

/// The first states of a system, breadth-first.
fn reach(system: &DveSystem, most: usize) -> Vec<Vec<u32>> {
    let mut batch = Batch::new(system.width());
    let mut scratch = system.scratch();
    system.initial(&mut scratch, &mut batch).expect("no layout widens");
    let mut states = vec![batch.target(0).to_vec()];
    let mut seen: HashSet<Vec<u32>> = states.iter().cloned().collect();
    let mut next = 0;
    while next < states.len() && states.len() < most {
        batch.reset(system.width());
        system.successors(&mut scratch, &states[next], &mut batch).expect("no layout widens");
        for target in batch.targets().iter() {
            if seen.insert(target.to_vec()) {
                states.push(target.to_vec());
            }
        }
        next += 1;
    }
    states
}

/// The engines and the reference agree on every action in the first states of random models; so do the narrow
/// layout and the numbers it holds (the interpreter asserts that nothing is truncated).
#[test]
fn random_models_agree_with_the_reference() {
    let mut rng = Rng::new(11);
    let (mut steps, mut faults, mut by_native) = (0, 0, 0);
    for round in 0..700 {
        let text = model(&mut rng);
        let program = parse(text.as_bytes()).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        let native = if round % 3 == 0 { DveSystem::run_by(program.clone(), EngineChoice::Native).ok() } else { None };
        by_native += usize::from(native.is_some());
        let system = native.unwrap_or_else(|| DveSystem::new(program));
        let program = system.program();
        let states = reach(&system, 200);
        let mut scratch = system.scratch();
        for state in &states {
            let mut batch = Batch::new(system.width());
            system.successors(&mut scratch, state, &mut batch).expect("no layout widens");
            let mut found: Vec<(u32, Outcome)> = (0..batch.len())
                .map(|index| (batch.action(index).0, Outcome::Done(reference::unpack(program, batch.target(index)))))
                .collect();
            steps += found.len();
            let wrong = batch.faults().iter();
            found.extend(wrong.filter_map(|fault| Some((fault.action?.0, Outcome::Fault(fault.message.clone())))));
            faults += batch.faults().len();
            found.sort_by_key(|(action, _)| *action);
            let values = reference::unpack(program, state);
            let all = (0..program.action_count).map(|action| (action, reference::step(program, &values, action)));
            let expected: Vec<(u32, Outcome)> = all.filter(|(_, outcome)| *outcome != Outcome::Disabled).collect();
            assert_eq!(found, expected, "round {round}\n{text}");
            for (cell, &value) in program.state_cells().iter().zip(&values) {
                assert!(cell.values.0 <= value && value <= cell.values.1, "round {round}: I4\n{text}");
            }
        }
        if round % 8 == 0 {
            deltamark_testkit::conformance::system::check_system_up_to(&system, 60);
            assert!(system.names().iter().all(|name| system.resolve(name).is_some()));
        }
    }
    assert!(steps > 20_000 && faults > 2_000, "{steps} steps and {faults} faults: both are tried");
    assert!(by_native > 100 || !cfg!(feature = "native"), "{by_native} models are run by native code");
}
