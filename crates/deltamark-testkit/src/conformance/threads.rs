//! Stores under concurrent insertion.
//!
//! In: an empty store. Out: a panic if two threads got answers that cannot both be true. What stays true:
//! every thread explores the whole system alone, in its own order, and learns ids only from its own
//! insertions, so arrivals are true.

use crate::conformance::store::{Make, is_exact};
use crate::random::Rng;
use crate::{Explored, explore};
use deltamark_core::{Action, Arrival, Batch, Block, Budget, Insert, Slot, StateId, States, Store, System, Values};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The number of concurrent threads.
const THREADS: u64 = if cfg!(miri) { 2 } else { 4 };

/// The answers that one thread got.
#[derive(Default)]
struct Told {
    new: Vec<(Vec<Slot>, StateId)>,
    ids: HashMap<Vec<Slot>, StateId>,
    /// How often it has counted each id.
    counted: HashMap<StateId, u64>,
    full: bool,
}

/// Checks the store with and without enough memory.
pub fn check(make: &Make, label: &str, system: &dyn System) {
    // Afterwards the layout is wide enough, so that no thread has to pause the others.
    let expected = explore(system);
    let held = run(make, &format!("{label}, threads"), system, &expected, Budget::unlimited());
    // More would show Miri nothing new.
    if held > 0 && !cfg!(miri) {
        run(make, &format!("{label}, threads, little memory"), system, &expected, Budget::new(held / 4));
    }
}

/// Runs the threads and compares their answers; returns the bytes granted.
fn run(make: &Make, label: &str, system: &dyn System, expected: &Explored, budget: Budget) -> u64 {
    let budget = Arc::new(budget);
    let store = make(system, Arc::clone(&budget));
    let counts = store.attached().map(|attached| attached.values(16));
    let told: Vec<Told> = std::thread::scope(|scope| {
        let (store, counts) = (&*store, counts.as_ref());
        let threads: Vec<_> =
            (0..THREADS).map(|seed| scope.spawn(move || wander(seed, system, store, counts))).collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(told) => told,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    });
    let mut ids: HashMap<&[Slot], StateId> = HashMap::new();
    let mut used = HashSet::new();
    for (state, id) in told.iter().flat_map(|told| &told.new) {
        assert!(ids.insert(state, *id).is_none(), "{label}: of all threads one is told that {state:?} is new");
        assert!(*id == StateId::NAMELESS || used.insert(*id), "{label}: no id is given twice, {id:?} is");
    }
    let exact = is_exact(&*store);
    for (state, id) in told.iter().flat_map(|told| &told.ids) {
        match ids.get(state.as_slice()) {
            Some(known) => assert!(
                known == id || *id == StateId::NAMELESS && store.recall().is_none(),
                "{label}: all threads know {state:?} by the same id, not {known:?} and {id:?}"
            ),
            None => assert!(!exact, "{label}: what one thread was told is seen, another was told is new: {state:?}"),
        }
    }
    if exact && !told.iter().any(|told| told.full) {
        assert_eq!(ids.len(), expected.states.len(), "{label}: every state is new to one thread");
    }
    assert_eq!(store.len(), ids.len() as u64, "{label}: its length is the number of new states");
    if store.recall().is_some_and(|recall| recall.sequential()) {
        let dense = used.iter().all(|id| id.index() < ids.len());
        assert!(dense, "{label}: sequential ids leave no gaps");
    }
    for &id in used.iter().filter(|_| counts.is_some()) {
        let expected: u64 = told.iter().filter_map(|told| told.counted.get(&id)).sum();
        let count = counts.as_ref().map(|counts| counts.get(id));
        assert_eq!(count, Some(expected), "{label}: {id:?} was counted by all threads, and no count was lost");
    }
    still_there(label, system, &*store, &ids);
    let held = budget.used();
    assert!(held == 0 || held == store.bytes().total(), "{label}: it accounts for exactly what it was granted");
    assert!(budget.peak() <= budget.limit(), "{label}: it stays within its budget");
    held
}

/// Checks that the states of every thread are found.
fn still_there(label: &str, system: &dyn System, store: &dyn Store, ids: &HashMap<&[Slot], StateId>) {
    let (mut scratch, mut system_scratch) = (store.scratch(), system.scratch());
    let mut recalled = States::new(system.width());
    for (&state, &id) in ids {
        let hash = system.hash(&mut system_scratch, state);
        let found = store.find(&mut scratch, state, hash);
        let right = found == Some(id) || found == Some(StateId::NAMELESS) && store.recall().is_none();
        assert!(right, "{label}: what any thread inserted is found: {state:?} is {id:?}, found {found:?}");
        if let Some(recall) = store.recall() {
            recalled.clear();
            recall.recall(&mut scratch, &[id], &mut recalled);
            assert_eq!(recalled.get(0), state, "{label}: {id:?} is recalled as it went in");
        }
    }
}

/// Explores the system in an order of its own: half of the threads insert states one
/// by one, the others in batches.
fn wander(seed: u64, system: &dyn System, store: &dyn Store, counts: Option<&Values>) -> Told {
    const FITS: &str = "the layout holds every reachable state";
    let mut rng = Rng::new(seed);
    let (mut scratch, mut system_scratch) = (store.scratch(), system.scratch());
    let mut told = Told::default();
    let mut waiting: Vec<Vec<Slot>> = Vec::new();
    let (mut block, mut batch) = (Block::new(system.width()), Batch::new(system.width()));
    system.initial(&mut system_scratch, &mut batch).expect(FITS);
    for index in 0..batch.len() {
        let arrival = Arrival { parent: None, action: Action(index as u32) };
        let answer = store.insert(&mut scratch, batch.target(index), batch.hash(index), &arrival);
        told.note(batch.target(index), answer, &mut waiting);
        told.count(counts, answer);
    }
    while !waiting.is_empty() && !told.full {
        let state = waiting.swap_remove(rng.below(waiting.len()));
        block.reset(system.width());
        batch.reset(system.width());
        block.push(told.ids[&state], &state);
        system.expand(&mut system_scratch, &block, &mut batch).expect(FITS);
        let mut answers = Vec::new();
        if seed.is_multiple_of(2) {
            store.insert_batch(&mut scratch, &block, &batch, &mut answers);
        } else {
            for index in 0..batch.len() {
                let arrival = Arrival { parent: Some((told.ids[&state], &state)), action: batch.action(index) };
                answers.push(store.insert(&mut scratch, batch.target(index), batch.hash(index), &arrival));
            }
        }
        for (index, &answer) in answers.iter().enumerate() {
            told.note(batch.target(index), answer, &mut waiting);
            told.count(counts, answer);
        }
    }
    told
}

impl Told {
    /// Adds one to the value of the state, as far as there is memory for it.
    fn count(&mut self, counts: Option<&Values>, answer: Insert) {
        if let (Some(counts), Insert::New(id) | Insert::Seen(id)) = (counts, answer)
            && counts.update(id, |count| Some(count + 1)).is_some()
        {
            *self.counted.entry(id).or_default() += 1;
        }
    }

    /// Records an answer; a state new to this thread is queued for expansion.
    fn note(&mut self, state: &[Slot], answer: Insert, waiting: &mut Vec<Vec<Slot>>) {
        let id = match answer {
            Insert::New(id) => {
                self.new.push((state.to_vec(), id));
                id
            }
            Insert::Seen(id) => id,
            Insert::Full => {
                self.full = true;
                return;
            }
        };
        match self.ids.insert(state.to_vec(), id) {
            None => waiting.push(state.to_vec()),
            Some(before) => assert_eq!(before, id, "ids are stable within a thread: {state:?}"),
        }
    }
}
