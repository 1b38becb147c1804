//! Compares a model in the oracle and in all engines, state by state.
//!
//! In: a model. Out: statistics, or the first difference in words. What stays true: states are numbered by the
//! oracle; engines have no access to it.
//!
//! In each state the steps and the faults with their messages are compared: the oracle's, the reference's, those
//! that the interpreter finds in a single state, and those that native code finds in a block, with and without
//! sleep sets. Then every action is fired on its own and described. Finally the model is searched breadth-first,
//! with sleep sets as in a search.

use crate::model::Model;
use crate::oracle::{Behind, Label, Oracle};
use deltamark_core::{Action, BLOCK, Batch, Block, Control, Fired, Scratch, Sleep, Slot, StateId, System};
use deltamark_dve::ir::{Program, Step, TransitionId};
use deltamark_dve::reference::{self, Outcome};
use deltamark_dve::{DveSystem, parse};
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub states: usize,
    pub edges: usize,
    pub faults: usize,
    pub deadlocks: usize,
    /// Models that native code ran too.
    pub native: usize,
}

impl Tried {
    pub fn add(&mut self, other: Tried) {
        self.states += other.states;
        self.edges += other.edges;
        self.faults += other.faults;
        self.deadlocks += other.deadlocks;
        self.native += other.native;
    }
}

/// Which engines run beside the interpreter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Engines {
    Interpreter,
    /// Native code from this many states on.
    Native(u64),
}

/// The lines of the transitions that an action takes.
fn label(program: &Program, state: &[i32], action: u32) -> Option<Label> {
    let line = |id: TransitionId| program.transition(id).place.line;
    if program.radix.is_empty() {
        return Some(match program.steps[action as usize] {
            Step::Alone(id) => vec![line(id)],
            Step::Pair { send, receive, .. } => vec![line(send), line(receive)],
        });
    }
    let mut rest = action;
    let mut lines = Vec::new();
    for (process, &radix) in program.processes.iter().zip(&program.radix).rev() {
        let transitions = process.locations[state[process.location.0 as usize] as usize].transitions.clone();
        let number = transitions.start + rest / radix;
        rest %= radix;
        if number >= transitions.end {
            return None;
        }
        lines.insert(0, line(TransitionId(number)));
    }
    Some(lines)
}

/// The successors of a state in an engine: targets with their hashes, faults with their messages.
type Found = Vec<(Option<Action>, Result<(Vec<Slot>, u64), String>)>;

fn found(batch: &Batch, source: usize) -> Found {
    let targets = (0..batch.len()).filter(|&index| batch.source(index) == source);
    let targets =
        targets.map(|index| (Some(batch.action(index)), Ok((batch.target(index).to_vec(), batch.hash(index)))));
    let faults = batch.faults().iter().filter(|fault| usize::from(fault.source) == source);
    let mut all: Found = targets.chain(faults.map(|fault| (fault.action, Err(fault.message.clone())))).collect();
    all.sort();
    all
}

fn same<T: PartialEq + Debug>(what: &str, state: &[i32], actual: T, expected: T) -> Result<(), String> {
    if actual == expected {
        return Ok(());
    }
    Err(format!("{what} in {state:?}: {actual:?} instead of {expected:?}"))
}

/// Compares a model, up to some states.
pub fn compare(model: &Model, engines: Engines, most: usize) -> Result<Tried, String> {
    let oracle = Oracle::new(model);
    let program = parse(model.to_string().as_bytes()).map_err(|wrong| format!("it is refused: {wrong:?}"))?;
    let interpreter = DveSystem::new(program.clone());
    let native = other_engine(&program, engines)?;
    interpreter.dump().ok_or("there is a dump")?;
    let mut states: Vec<Vec<i32>> = vec![oracle.initial.clone()];
    let mut numbers: HashMap<Vec<i32>, usize> = HashMap::from([(oracle.initial.clone(), 0)]);
    let mut batch = Batch::new(interpreter.width());
    interpreter.initial(&mut interpreter.scratch(), &mut batch).expect("no layout widens");
    let mut packed: Vec<Vec<Slot>> = vec![batch.target(0).to_vec()];
    let mut tried = Tried::default();
    let mut scratch = interpreter.scratch();
    let mut found_by_interpreter: Vec<Found> = Vec::new();
    while tried.states < states.len() && tried.states < most {
        let (state, slots) = (states[tried.states].clone(), packed[tried.states].clone());
        tried.states += 1;
        same("the numbers", &state, reference::unpack(&program, &slots), state.clone())?;
        let steps = oracle.steps(&state);
        let assertions = oracle.assertions(&state);
        tried.deadlocks += usize::from(steps.is_empty() && assertions.is_empty());
        batch.reset(interpreter.width());
        interpreter.successors(&mut scratch, &slots, &mut batch).expect("no layout widens");
        let all = found(&batch, 0);
        let failed: Vec<String> =
            batch.faults().iter().filter(|f| f.action.is_none()).map(|f| f.message.clone()).collect();
        same("assertions", &state, failed, assertions)?;
        let mut by_label: Vec<(Label, Behind)> = Vec::new();
        for (action, result) in all.iter().filter_map(|(action, result)| Some(((*action)?, result))) {
            let behind = result.as_ref().map(|(slots, _)| reference::unpack(&program, slots)).map_err(Clone::clone);
            if let (Ok(numbers_behind), Ok((slots, _))) = (&behind, result)
                && numbers.len() < 4 * most
                && !numbers.contains_key(numbers_behind)
            {
                numbers.insert(numbers_behind.clone(), states.len());
                states.push(numbers_behind.clone());
                packed.push(slots.clone());
            }
            // Also of a fault: a trace shows it.
            interpreter.describe().action(&slots, action);
            by_label.push((label(&program, &state, action.0).ok_or("an action that there is not")?, behind));
        }
        by_label.sort();
        same("the interpreter's steps", &state, &by_label, &steps)?;
        tried.edges += steps.iter().filter(|(_, behind)| behind.is_ok()).count();
        tried.faults += steps.iter().filter(|(_, behind)| behind.is_err()).count();
        for action in 0..program.action_count.min(64) {
            let label = label(&program, &state, action);
            let step = steps.iter().find(|(other, _)| Some(other) == label.as_ref());
            let expected = step.map_or(Outcome::Disabled, |(_, behind)| match behind {
                Ok(numbers) => Outcome::Done(numbers.clone()),
                Err(why) => Outcome::Fault(why.clone()),
            });
            same("the reference's step", &state, reference::step(&program, &state, action), expected.clone())?;
            fire("the interpreter", &interpreter, &mut scratch, (&state, &slots), action, &expected)?;
        }
        found_by_interpreter.push(all);
    }
    for start in (0..tried.states).step_by(BLOCK) {
        let Some(native) = &native else { break };
        let range = start..(start + BLOCK).min(tried.states);
        blocks((&interpreter, native), &states[range.clone()], &packed[range.clone()], &found_by_interpreter[range])?;
    }
    tried.native = usize::from(native.is_some());
    if tried.states == states.len() {
        let by_levels = levels(native.as_ref().unwrap_or(&interpreter), most);
        same("a search by levels", &states[0], by_levels, (tried.states, tried.edges, tried.faults))?;
    }
    Ok(tried)
}

/// States, edges and faults of steps, level by level; each state is expanded with the sleep set of the step that
/// reached it.
fn levels(system: &DveSystem, most: usize) -> (usize, usize, usize) {
    let mut scratch = system.scratch();
    let mut batch = Batch::new(system.width());
    system.initial(&mut scratch, &mut batch).expect("no layout widens");
    let sleep = Sleep::new(system, None, &Control::new()).expect("no limit");
    let mut level = vec![(batch.target(0).to_vec(), Action::NONE)];
    let mut known: HashSet<Vec<Slot>> = level.iter().map(|(state, _)| state.clone()).collect();
    let (mut edges, mut faults) = (0, 0);
    // A wrong system may be infinite.
    while !level.is_empty() && known.len() <= 2 * most {
        let mut next = Vec::new();
        for states in level.chunks(BLOCK) {
            let mut block = Block::new(system.width());
            states.iter().for_each(|(state, _)| block.push(StateId::NAMELESS, state));
            let arrivals: Vec<Action> = states.iter().map(|&(_, arrival)| arrival).collect();
            batch.reset(system.width());
            match &sleep {
                Some(sleep) => system.expand_awake(&mut scratch, &block, sleep, &arrivals, &mut batch),
                None => system.expand(&mut scratch, &block, &mut batch),
            }
            .expect("no layout widens");
            edges += batch.len() + batch.left_out() as usize;
            faults += batch.faults().iter().filter(|fault| fault.action.is_some()).count();
            for (target, &action) in batch.targets().iter().zip(batch.actions()) {
                if known.insert(target.to_vec()) {
                    next.push((target.to_vec(), action));
                }
            }
        }
        level = next;
    }
    (known.len(), edges, faults)
}

#[cfg(feature = "native")]
fn other_engine(program: &Program, engines: Engines) -> Result<Option<DveSystem>, String> {
    use deltamark_dve::native::Native;
    let Engines::Native(after) = engines else { return Ok(None) };
    if !program.radix.is_empty() {
        return Ok(None);
    }
    Ok(Some(DveSystem::with_engine(program.clone(), Box::new(Native::after(program, after)?))))
}

#[cfg(not(feature = "native"))]
fn other_engine(_: &Program, _: Engines) -> Result<Option<DveSystem>, String> {
    Ok(None)
}

/// Fires one action.
fn fire(
    who: &str,
    system: &DveSystem,
    scratch: &mut Scratch,
    (state, slots): (&[i32], &[Slot]),
    action: u32,
    expected: &Outcome,
) -> Result<(), String> {
    let mut target = Vec::new();
    let outcome = match system.fire(scratch, slots, Action(action), &mut target).expect("no layout widens") {
        Fired::Done => Outcome::Done(reference::unpack(system.program(), &target)),
        Fired::Disabled => Outcome::Disabled,
        Fired::Fault(why) => Outcome::Fault(why),
    };
    same(&format!("action {action} fired by {who}"), state, &outcome, expected)
}

/// The successors that native code finds in a block, without sleep sets and with those of two arrivals, and action
/// by action.
fn blocks(
    (interpreter, native): (&DveSystem, &DveSystem),
    states: &[Vec<i32>],
    packed: &[Vec<Slot>],
    expected: &[Found],
) -> Result<(), String> {
    let mut block = Block::new(native.width());
    packed.iter().for_each(|slots| block.push(StateId::NAMELESS, slots));
    let (mut one, mut other) = (interpreter.scratch(), native.scratch());
    let count = native.action_count().unwrap_or(0);
    let sleep = Sleep::new(native, None, &Control::new()).expect("no limit");
    // Twice: with `auto` the first block may be the interpreter's.
    for _ in 0..2 {
        let mut batch = Batch::new(native.width());
        native.expand(&mut other, &block, &mut batch).expect("no layout widens");
        for (number, state) in states.iter().enumerate() {
            same("native steps", state, &found(&batch, number), &expected[number])?;
        }
        let arrivals: Vec<Action> =
            (0..block.len() as u32).map(|n| Action(n.wrapping_mul(2_654_435_761) % count.max(1))).collect();
        let mut batches = [Batch::new(native.width()), Batch::new(native.width())];
        for (system, scratch, batch) in [(interpreter, &mut one, 0), (native, &mut other, 1)] {
            let Some(sleep) = &sleep else { continue };
            system.expand_awake(scratch, &block, sleep, &arrivals, &mut batches[batch]).expect("no layout widens");
        }
        for (number, state) in states.iter().enumerate() {
            same("native steps, some left out", state, found(&batches[1], number), found(&batches[0], number))?;
        }
        let [by_interpreter, by_native] = batches.map(|batch| (batch.moved(), batch.left_out()));
        same("the count of what is left out", &states[0], by_native, by_interpreter)?;
    }
    for ((state, slots), steps) in states.iter().zip(packed).zip(expected) {
        let mut batch = Batch::new(native.width());
        native.successors(&mut other, slots, &mut batch).expect("no layout widens");
        same("native steps of one state", state, &found(&batch, 0), steps)?;
        for action in 0..count.min(64) {
            let step = steps.iter().find(|(other, _)| *other == Some(Action(action)));
            let outcome = step.map_or(Outcome::Disabled, |(_, result)| match result {
                Ok((slots, _)) => Outcome::Done(reference::unpack(native.program(), slots)),
                Err(why) => Outcome::Fault(why.clone()),
            });
            fire("native code", native, &mut other, (state, slots), action, &outcome)?;
        }
    }
    Ok(())
}
