//! Native code does what the interpreter does, block by block and action by action.
#![cfg(feature = "native")]

use deltamark_core::{Action, BLOCK, Batch, Block, Fired, Scratch, Slot, StateId, System};
use deltamark_dve::{DveSystem, EngineChoice, parse};
use deltamark_testkit::corpus::Corpus;
use std::collections::HashSet;

/// A successor or a fault of a state of a block.
type Found = (usize, Option<Action>, Result<Vec<Slot>, String>, u64);

fn expanded(system: &DveSystem, scratch: &mut Scratch, block: &Block) -> (Vec<Found>, u64) {
    let mut batch = Batch::new(system.width());
    system.expand(scratch, block, &mut batch).expect("the layout is known");
    (found(&batch), batch.moved())
}

fn found(batch: &Batch) -> Vec<Found> {
    let steps = (0..batch.len()).map(|index| {
        (batch.source(index), Some(batch.action(index)), Ok(batch.target(index).to_vec()), batch.hash(index))
    });
    let faults =
        batch.faults().iter().map(|fault| (fault.source.into(), fault.action, Err(fault.message.clone()), 0));
    let mut all: Vec<Found> = steps.chain(faults).collect();
    all.sort();
    all
}

/// Explores a model by both engines at once; returns states and edges.
fn compare(name: &str, text: &str, most: usize) -> (usize, usize) {
    let program = || parse(text.as_bytes()).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let oracle = DveSystem::run_by(program(), EngineChoice::Interpreter).expect("the interpreter runs everything");
    let native = DveSystem::run_by(program(), EngineChoice::Native).unwrap_or_else(|why| panic!("{name}: {why}"));
    let (mut one, mut other) = (oracle.scratch(), native.scratch());
    let mut batch = Batch::new(oracle.width());
    oracle.initial(&mut one, &mut batch).expect("the layout is known");
    let mut known: HashSet<Vec<Slot>> = HashSet::from([batch.target(0).to_vec()]);
    let mut queue = vec![batch.target(0).to_vec()];
    let (mut next, mut edges) = (0, 0);
    while next < queue.len() && next < most {
        let mut block = Block::new(oracle.width());
        for state in &queue[next..(next + BLOCK).min(queue.len())] {
            block.push(StateId::NAMELESS, state);
        }
        next += block.len();
        let (expected, moved) = expanded(&oracle, &mut one, &block);
        let (actual, native_moved) = expanded(&native, &mut other, &block);
        assert_eq!(actual, expected, "{name}");
        assert_eq!(native_moved, moved, "{name}");
        // Some states alone, and their actions one by one; now and then an action that may not be possible.
        let sample = next % 7 == 0 || next < 500;
        for (index, state) in block.states().iter().enumerate().filter(|(index, _)| sample && index % 9 == 0) {
            batch.reset(native.width());
            batch.begin(index);
            native.successors(&mut other, state, &mut batch).expect("the layout is known");
            let of_state: Vec<Found> = expected.iter().filter(|found| found.0 == index).cloned().collect();
            assert_eq!(found(&batch), of_state, "{name}");
            let (mut target, mut native_target) = (Vec::new(), Vec::new());
            let guess = Action((next * 31 + index) as u32 % native.action_count().unwrap_or(1).max(1));
            for action in of_state.iter().filter_map(|found| found.1).chain([guess]) {
                let fired = oracle.fire(&mut one, state, action, &mut target);
                assert_eq!(native.fire(&mut other, state, action, &mut native_target), fired, "{name} {action:?}");
                if fired == Ok(Fired::Done) {
                    assert_eq!(native_target, target, "{name} {action:?}");
                }
            }
        }
        for (_, _, target, _) in expected {
            let Ok(target) = target else { continue };
            edges += 1;
            if known.insert(target.clone()) {
                queue.push(target);
            }
        }
    }
    (queue.len(), edges)
}

fn corpus(test: &str, sizes: std::ops::Range<u64>, most: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    for row in corpus.expected("dve") {
        let (name, states, edges) = (row.text("model").expect("a name"), row.number("states"), row.number("edges"));
        let (Some(states), Some(edges)) = (states, edges) else { continue };
        if !sizes.contains(&states) {
            continue;
        }
        let text = std::fs::read_to_string(corpus.file("dve", &format!("{name}.dve"))).expect("a model");
        let found = compare(name, &text, most);
        if (states as usize) < most {
            assert_eq!(found, (states as usize, edges as usize), "{name}");
        }
    }
}

#[test]
fn native_code_agrees_with_the_interpreter_on_small_models() {
    corpus("native code on small models", 0..40_000, usize::MAX);
}

#[test]
fn native_code_agrees_with_the_interpreter_at_the_start_of_large_models() {
    corpus("native code on large models", 40_000..u64::MAX, 3_000);
}

#[test]
#[ignore = "long: native code against the interpreter on models up to three million states"]
fn native_code_agrees_with_the_interpreter_on_all_models() {
    corpus("native code on all models", 40_000..3_500_000, usize::MAX);
}
