//! Paths to states by a second search.
//!
//! In: a system and one of its reachable states. Out: a shortest path to it. Invariant: nothing was
//! stored for it; every byte of the second search is granted by the budget, and released.
//!
//! A store whose ids do not follow the order of discovery would need a back edge per state for
//! traces: one to three bytes, more than `compact` takes for the state. Violations end most runs,
//! so it is cheaper to search again up to that state, this time recording back edges of about a
//! byte per state (see `spanning.rs`). As many threads as used the store expand a round of blocks
//! together; then one records the edges.

use crate::compact::Compact;
use crate::compact::sample;
use crate::integers::packed::Packed;
use crate::rebuilding::spanning::{From, NONE, Spanning};
use deltamark_core::{
    Action, Arrival, BLOCK, Batch, Block, Budget, Control, Insert, Order, Recall, Scratch, Sleep, Slot, StateId, Store,
    System, Trace,
};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, scope};

/// Blocks that are expanded before it is noted what they yield.
const ROUND: usize = 128;
/// Successors of a round, about: with more of a state than four there are fewer blocks, or smaller ones.
const ROUND_YIELD: usize = ROUND * BLOCK * 4;
/// The bytes that this takes until it is noted, about.
const ROUND_BYTES: u64 = (ROUND_YIELD * size_of::<Found>()) as u64;
/// Fewer blocks are not worth starting a thread for.
const FEW: usize = 8;

/// A shortest path to a state, with the help of a store in which nothing is, by so many threads;
/// `None` if there is no memory to find it, or no time by the word of `control`.
pub(crate) fn retrace(
    system: &dyn System,
    store: &Compact<'_>,
    budget: &Arc<Budget>,
    state: &[Slot],
    threads: usize,
    control: &Control,
) -> Option<Trace> {
    let granted = budget.request(ROUND_BYTES);
    let sleep = Sleep::new(system, None, control).unwrap_or_default();
    let search = Search { system, store, state, round: if granted { ROUND } else { 1 }, control, sleep };
    let trace = search.run(budget, threads);
    if granted {
        budget.release(ROUND_BYTES);
    }
    trace
}

/// The second search.
struct Search<'a> {
    system: &'a dyn System,
    store: &'a Compact<'a>,
    /// What is looked for.
    state: &'a [Slot],
    /// Blocks of a round.
    round: usize,
    control: &'a Control,
    /// Which edges are skipped.
    sleep: Option<Sleep>,
}

/// A state that was not there before.
struct Found {
    id: StateId,
    parent: u64,
    action: Action,
    /// Whether it is the one that is looked for.
    is_it: bool,
}

/// What a block has yielded; nothing, if there was no memory.
type Yield = Mutex<Option<Vec<Found>>>;

impl Search<'_> {
    fn run(&self, budget: &Arc<Budget>, threads: usize) -> Option<Trace> {
        let mut notes = Notes { edges: Spanning::new(Order::Levels, budget), later: Packed::new(budget) };
        let mut walkers: Vec<Walker> = (0..threads.max(1)).map(|_| Walker::new(self)).collect();
        if let Some(trace) = self.begin(&mut notes, &mut walkers[0])? {
            return Some(trace);
        }
        let yields: Vec<Yield> = (0..self.round).map(|_| Mutex::new(None)).collect();
        let mut first = 0;
        loop {
            let level = std::mem::replace(&mut notes.later, Packed::new(budget));
            if level.len() == 0 {
                return None;
            }
            let mut start = 0;
            while start < level.len() {
                let (size, most) = self.sizes(walkers.iter().filter_map(|walker| walker.fan_out).max());
                let count = ((level.len() - start).div_ceil(size as u64) as usize).min(most);
                let next = AtomicUsize::new(0);
                let work = |walker: &mut Walker| {
                    loop {
                        let at = next.fetch_add(1, Relaxed);
                        let Some(yielded) = yields[..count].get(at) else { return };
                        if self.control.stop_without_memory().is_some() {
                            // The others find nothing of theirs either, and the search ends after the round.
                            *yielded.lock().unwrap_or_else(PoisonError::into_inner) = None;
                            continue;
                        }
                        let found = walker.expand(self, &notes, &level, first, start + (at * size) as u64, size);
                        *yielded.lock().unwrap_or_else(PoisonError::into_inner) = found;
                    }
                };
                scope(|scope| {
                    let (own, others) = walkers.split_first_mut().expect("one at least");
                    for other in others.iter_mut().filter(|_| count >= FEW) {
                        // A system that has no thread to give lets us go on with those we have.
                        let work = &work;
                        drop(Builder::new().spawn_scoped(scope, move || work(other)));
                    }
                    work(own);
                });
                // In the order of the blocks, so that parents never decrease.
                for yielded in &yields[..count] {
                    for found in yielded.lock().unwrap_or_else(PoisonError::into_inner).take()? {
                        notes.take(Insert::New(found.id), found.parent, found.action)?;
                        if found.is_it {
                            return Some(notes.path());
                        }
                    }
                }
                start += (count * size) as u64;
            }
            first += level.len();
        }
    }

    /// How many states make a block, and how many blocks a round, where states have had up to so many successors; before any was
    /// expanded, they may have all actions that there are.
    fn sizes(&self, fan_out: Option<usize>) -> (usize, usize) {
        let fan_out = fan_out.unwrap_or_else(|| self.system.action_count().unwrap_or(1) as usize);
        let size = sample::expanded_together(self.state.len(), fan_out);
        (size, (ROUND_YIELD / (size * fan_out.max(4))).clamp(1, self.round))
    }

    /// Inserts the initial states; gives the path, if the state is one of them.
    fn begin(&self, notes: &mut Notes, walker: &mut Walker) -> Option<Option<Trace>> {
        let Walker { system_scratch, scratch, batch, .. } = walker;
        self.system.initial(system_scratch, batch).ok()?;
        for index in 0..batch.len() {
            let action = batch.action(index);
            let arrival = Arrival { parent: None, action };
            let answer = self.store.insert(scratch, batch.target(index), batch.hash(index), &arrival);
            notes.take(answer, NONE, action)?;
            if batch.target(index) == self.state {
                return Some(Some(Trace::path(action.0, Vec::new())));
            }
        }
        Some(None)
    }
}

/// One thread of the search.
struct Walker {
    system_scratch: Scratch,
    scratch: Scratch,
    block: Block,
    batch: Batch,
    answers: Vec<Insert>,
    /// The most successors of a state, in the average of a block, of all that were expanded.
    fan_out: Option<usize>,
}

impl Walker {
    fn new(search: &Search<'_>) -> Self {
        let width = search.system.width();
        Walker {
            fan_out: None,
            system_scratch: search.system.scratch(),
            scratch: search.store.scratch(),
            block: Block::new(width),
            batch: Batch::new(width).under(search.control),
            answers: Vec::new(),
        }
    }

    /// Expands the block that begins with this state of the level, whose first state has the
    /// number `first`. Gives what is new, in the order of the parents: so they take two bits each.
    fn expand(
        &mut self,
        search: &Search<'_>,
        notes: &Notes,
        level: &Packed,
        first: u64,
        start: u64,
        size: usize,
    ) -> Option<Vec<Found>> {
        let Walker { system_scratch, scratch, block, batch, answers, fan_out } = self;
        let Search { system, store, state, .. } = *search;
        let ids = (start..level.len().min(start + size as u64)).map(|index| StateId::new(level.get(index)));
        block.reset(system.width());
        block.fill(ids, |ids, states| Recall::recall(store, scratch, ids, states));
        batch.reset(system.width());
        match &search.sleep {
            // The same edges are skipped as in the search before.
            Some(sleep) => {
                let numbers = first + start..first + start + block.len() as u64;
                let arrivals: Vec<Action> = numbers.map(|number| notes.arrival(number)).collect();
                system.expand_awake(system_scratch, block, sleep, &arrivals, batch).ok()?;
            }
            None => system.expand(system_scratch, block, batch).ok()?,
        }
        if batch.stop().is_some() {
            return None;
        }
        *fan_out = (*fan_out).max(Some(batch.len() / block.len().max(1) + 1));
        answers.clear();
        store.insert_batch(scratch, block, batch, answers);
        let mut found = Vec::new();
        for (index, answer) in answers.iter().enumerate() {
            match answer {
                Insert::New(id) => found.push(Found {
                    id: *id,
                    parent: first + start + batch.source(index) as u64,
                    action: batch.action(index),
                    is_it: batch.target(index) == state,
                }),
                Insert::Seen(_) => {}
                Insert::Full => return None,
            }
        }
        found.sort_by_key(|found| found.parent);
        Some(found)
    }
}

/// What the second search takes note of.
struct Notes {
    /// For each state, in the order found, how it was reached.
    edges: Spanning,
    /// The ids of the next level.
    later: Packed,
}

impl Notes {
    /// Notes a state; nothing, if there is no memory for it.
    fn take(&mut self, answer: Insert, parent: u64, action: Action) -> Option<()> {
        let id = match answer {
            Insert::New(id) => id,
            Insert::Seen(_) => return Some(()),
            Insert::Full => return None,
        };
        let most_parent = if parent == NONE { 0 } else { parent };
        if !self.edges.reserve(1, most_parent, action) || !self.later.reserve(1, id.get()) {
            return None;
        }
        self.edges.push(From::Parent(parent), action);
        self.later.push(id.get());
        Some(())
    }

    /// The action by which a state was reached.
    fn arrival(&self, number: u64) -> Action {
        match self.edges.first_edge(number) {
            Some((parent, action)) if parent != NONE => action,
            _ => Action::NONE,
        }
    }

    /// The path to the state that came last.
    fn path(&self) -> Trace {
        let mut actions = Vec::new();
        let mut number = self.edges.len() - 1;
        loop {
            let (parent, action) = self.edges.first_edge(number).expect("edges in level order are kept");
            if parent == NONE {
                actions.reverse();
                return Trace::path(action.0, actions);
            }
            actions.push(action);
            number = parent;
        }
    }
}
