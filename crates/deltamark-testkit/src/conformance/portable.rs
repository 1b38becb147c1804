//! What every system promises whose states can be written as bytes.
//!
//! In: a way to load a model anew. Out: nothing, or a panic that names the promise broken. What stays true: states are
//! written by one instance and read by others, which number and lay out what they meet in an order of their own.

use super::system::{check_width, faults_of, reach, sorted};
use crate::random::Rng;
use deltamark_core::varint::Reader;
use deltamark_core::{Action, Batch, Misread, Portable, Recoding, Scratch, Slot, System, Value};
use std::collections::HashSet;

/// The most states that are carried from one instance to another.
const MOST: usize = 400;
/// How often bytes are changed at random, within one instance.
const LIES: usize = 200;
/// How often a layout may widen before all states fit.
const WIDENINGS: usize = 200;

/// Checks that the states of a model mean the same in all instances that `load` makes of it.
pub fn check_portable<S: System>(load: impl Fn() -> S) {
    let (first, second) = (load(), load());
    let bytes = written(&first, &reach(&first, MOST).states);
    // Another instance meets them in another order and starts from the first layout.
    let mut shuffled = bytes.clone();
    Rng::new(11).shuffle(&mut shuffled);
    received(&second, &shuffled);
    for bytes in &shuffled {
        let (one, other) = (told(&first, bytes), told(&second, bytes));
        assert_eq!(one.shown, other.shown, "a state is shown alike in every run");
        assert_eq!(one.hash, other.hash, "a state has the same hash in every run: {:?}", one.shown);
        assert_eq!(one.faults, other.faults, "a state has the same faults in every run: {:?}", one.shown);
        assert_eq!(one.steps, other.steps, "a state has the same steps in every run: {:?}", one.shown);
    }
    // A third has the layout of all its states before it reads any.
    let third = load();
    reach(&third, MOST);
    received(&third, &shuffled);
    lies(&load(), &bytes, 10 * LIES, 5);
}

/// Checks the bytes of these states within one instance, if they can be written.
pub(super) fn check_bytes(system: &dyn System, states: &[Vec<Slot>]) {
    if system.portable().is_none() {
        return;
    }
    let bytes = written(system, states);
    let (mut scratch, mut read) = (system.scratch(), Vec::new());
    for (state, bytes) in states.iter().zip(&bytes) {
        let result = portable(system).read_state(&mut scratch, &mut Reader::new(bytes), &mut read);
        assert_eq!(result, Ok(()), "the layout in use holds {state:?}");
        assert_eq!(&read, state, "a state is read as it was written");
    }
    lies(system, &bytes, LIES, 0);
}

/// Checks that a recoding is the same after it was written and read.
pub(super) fn check_written(recoding: &Recoding, states: &[Vec<Slot>]) {
    let mut bytes = Vec::new();
    recoding.write(&mut bytes);
    let mut reader = Reader::new(&bytes);
    let read = Recoding::read(&mut reader).unwrap_or_else(|wrong| panic!("a recoding can be read: {wrong}"));
    assert!(reader.is_empty(), "a recoding says where it ends");
    assert_eq!(&read, recoding, "a recoding is read as it was written");
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for state in states {
        recoding.translate(state, &mut one);
        read.translate(state, &mut other);
        assert_eq!(one, other, "a recoding that was read translates alike");
    }
}

fn portable(system: &dyn System) -> &dyn Portable {
    system.portable().expect("the system says that its states can be written")
}

fn written_one(system: &dyn System, scratch: &mut Scratch, state: &[Slot]) -> Vec<u8> {
    let mut bytes = vec![42];
    portable(system).write_state(scratch, state, &mut bytes);
    assert_eq!(bytes[0], 42, "bytes are appended");
    bytes.split_off(1)
}

fn written(system: &dyn System, states: &[Vec<Slot>]) -> Vec<Vec<u8>> {
    let mut seen = HashSet::new();
    let mut scratch = system.scratch();
    let bytes: Vec<Vec<u8>> = states.iter().map(|state| written_one(system, &mut scratch, state)).collect();
    for (state, bytes) in states.iter().zip(&bytes) {
        assert!(seen.insert(bytes), "different states have different bytes: {state:?}");
    }
    bytes
}

/// All states as the system reads them, one after the other, in the layout in use at the end.
fn received(system: &dyn System, bytes: &[Vec<u8>]) -> Vec<Vec<Slot>> {
    let all = bytes.concat();
    'widened: for _ in 0..WIDENINGS {
        let mut scratch = system.scratch();
        let mut reader = Reader::new(&all);
        let mut states = Vec::new();
        for bytes in bytes {
            let (mut state, before) = (vec![9; 9], reader.rest().len());
            match portable(system).read_state(&mut scratch, &mut reader, &mut state) {
                Ok(()) => {}
                Err(Misread::Widen) => {
                    check_written(&system.widen(), &states);
                    continue 'widened;
                }
                Err(wrong) => panic!("what was written is read in another run: {wrong}: {bytes:?}"),
            }
            check_width(system, &state);
            let read = before - reader.rest().len();
            assert_eq!(read, bytes.len(), "bytes say where they end: {bytes:?}");
            let again = written_one(system, &mut scratch, &state);
            assert_eq!(&again, bytes, "a state has the same bytes in every run");
            states.push(state);
        }
        return states;
    }
    panic!("a layout is widened for what was read");
}

/// What can be reported of a state and its steps without numbers of the run.
#[derive(Debug, PartialEq)]
struct Told {
    shown: Vec<(String, Value)>,
    hash: u64,
    steps: Vec<(Vec<u8>, String, Vec<u8>, u64)>,
    faults: Vec<String>,
}

fn told(system: &dyn System, bytes: &[u8]) -> Told {
    loop {
        let [state] = &received(system, &[bytes.to_vec()])[..] else { unreachable!("one state was written") };
        let (mut scratch, mut batch) = (system.scratch(), Batch::new(system.width()));
        if system.successors(&mut scratch, state, &mut batch).is_err() {
            system.widen();
            continue;
        }
        let describe = system.describe();
        let action = |action: Action| match portable(system).actions() {
            Some(actions) => {
                let bytes = actions.carry(action);
                assert_eq!(actions.receive(&bytes), Some(action), "an action that was carried is the same action");
                bytes
            }
            None => action.0.to_le_bytes().to_vec(),
        };
        let step = |index: usize| {
            let name = describe.action(state, batch.action(index));
            let target = written_one(system, &mut scratch, batch.target(index));
            (action(batch.action(index)), name, target, batch.hash(index))
        };
        let steps = sorted((0..batch.len()).map(step).collect());
        return Told {
            shown: describe.state(state),
            hash: system.hash(&mut scratch, state),
            steps,
            faults: sorted(faults_of(&batch, 0).into_iter().map(|fault| fault.1).collect()),
        };
    }
}

/// Bytes that were damaged are an error or a state that can be expanded. For the first `believable` that need a wider
/// layout it is made.
fn lies(system: &dyn System, bytes: &[Vec<u8>], rounds: usize, mut believable: usize) {
    let (mut rng, mut scratch) = (Rng::new(12), system.scratch());
    for round in 0..rounds {
        let right = &bytes[rng.below(bytes.len())];
        let mut bytes = right.clone();
        match round % 4 {
            0 if !bytes.is_empty() => bytes.truncate(rng.below(bytes.len())),
            1 => bytes = (0..rng.below(2 * right.len() + 2)).map(|_| rng.number() as u8).collect(),
            2 => bytes.insert(rng.below(right.len() + 1), rng.number() as u8),
            _ if !bytes.is_empty() => {
                for _ in 0..1 + rng.below(3) {
                    let at = rng.below(bytes.len());
                    bytes[at] ^= 1 << rng.below(8);
                }
            }
            _ => continue,
        }
        let mut read = bytes.as_slice();
        let mut result = read_one(system, &mut scratch, &mut read);
        if result == Err(Misread::Widen) && believable > 0 {
            believable -= 1;
            for _ in 0..WIDENINGS {
                system.widen();
                read = bytes.as_slice();
                result = read_one(system, &mut scratch, &mut read);
                if result != Err(Misread::Widen) {
                    break;
                }
            }
            assert_ne!(result, Err(Misread::Widen), "a layout is widened for what was read: {bytes:?}");
        }
        if let Ok(state) = result {
            assert!(read.len() >= right.len() || !right.starts_with(read), "half a state is no state: {right:?}");
            believed(system, &mut scratch, &state, read);
        }
    }
}

/// The state that bytes begin with; `bytes` is then what was read of them.
fn read_one(system: &dyn System, scratch: &mut Scratch, bytes: &mut &[u8]) -> Result<Vec<Slot>, Misread> {
    let (mut reader, mut state) = (Reader::new(bytes), vec![9; 9]);
    portable(system).read_state(scratch, &mut reader, &mut state)?;
    *bytes = &bytes[..bytes.len() - reader.rest().len()];
    Ok(state)
}

/// A state that was read from any bytes is one like all others.
fn believed(system: &dyn System, scratch: &mut Scratch, state: &[Slot], read: &[u8]) {
    check_width(system, state);
    assert_eq!(written_one(system, scratch, state), read, "a state has one form, and this is another");
    let mut batch = Batch::new(system.width());
    system.hash(scratch, state);
    assert!(!system.describe().state(state).iter().any(|(name, _)| name.is_empty()), "variables have names");
    // Where its successors do not fit the layout, that is an answer as well.
    let _ = system.successors(scratch, state, &mut batch);
}
