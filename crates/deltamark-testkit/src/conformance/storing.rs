//! A store under test, with a hash map as its model.
//!
//! In: a store, and an order in which to insert the states of a system. Out: panics if store and hash map
//! disagree. What stays true: the map holds exactly the states the store reported as new, under the ids it
//! gave them, in the current layout.

use crate::conformance::store::{Make, is_exact};
use crate::conformance::values::Hung;
use crate::random::Rng;
use deltamark_core::{
    Action, Arrival, BLOCK, Batch, Block, Budget, Insert, Recoding, Scratch, Slot, StateId, States, Store, System,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// How an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoringEnd {
    /// There was nothing left to insert, or the requested number was inserted.
    Done,
    /// The store was full.
    Full,
    /// The layout widened and the store had no room to follow.
    NotRecoded,
}

/// A step whose source is in the store.
struct InsertStep {
    source: Option<(StateId, Vec<Slot>)>,
    action: Action,
    target: Vec<Slot>,
    hash: u64,
}

/// A store under test.
pub struct Storing<'a> {
    label: String,
    system: &'a dyn System,
    store: Box<dyn Store + 'a>,
    budget: Arc<Budget>,
    scratch: Scratch,
    system_scratch: Scratch,
    ids: HashMap<Vec<Slot>, StateId>,
    /// The states in order of insertion.
    order: Vec<Vec<Slot>>,
    /// Those of them that are being expanded.
    level: Range<usize>,
    used_ids: HashSet<StateId>,
    exact: bool,
    /// States that a lossy store has omitted.
    omitted: HashSet<Vec<Slot>>,
    /// The bytes granted by the budget at each widening.
    pub held_at_widening: Vec<u64>,
    /// Values of its states, where they are tested as well.
    values: Option<Hung>,
}

impl<'a> Storing<'a> {
    /// An empty store for this system.
    pub fn new(make: &Make, label: &str, system: &'a dyn System, budget: Budget) -> Self {
        let budget = Arc::new(budget);
        let store = make(system, Arc::clone(&budget));
        Storing {
            label: label.into(),
            system,
            scratch: store.scratch(),
            system_scratch: system.scratch(),
            exact: is_exact(&*store),
            store,
            budget,
            ids: HashMap::new(),
            order: Vec::new(),
            level: 0..0,
            used_ids: HashSet::new(),
            omitted: HashSet::new(),
            held_at_widening: Vec::new(),
            values: None,
        }
    }

    /// The same with values attached to the states, if the store names them.
    pub fn with_values(mut self) -> Self {
        self.values = Hung::new(&self.label, &*self.store);
        self
    }

    /// Whether the store declares itself exact.
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// The bytes granted by the budget.
    pub fn held(&self) -> u64 {
        self.budget.used()
    }

    /// Checks an empty store.
    pub fn nothing_is_there(&self) {
        assert!(self.store.is_empty(), "{}: it is empty", self.label);
        self.check_counts();
        let mut batch = Batch::new(self.system.width());
        self.system.initial(&mut self.system.scratch(), &mut batch).expect("the layout of this system is fixed");
        let found = self.store.find(&mut self.store.scratch(), batch.target(0), batch.hash(0));
        assert_eq!(found, None, "{}: nothing is found in it", self.label);
    }

    /// Inserts states one at a time, along random edges, many of them several times, until nothing is left or
    /// the store is full.
    pub fn one_by_one(&mut self, rng: &mut Rng) -> StoringEnd {
        self.along_edges(rng, usize::MAX, true)
    }

    /// Continues inserting into a store that was full, whatever it answers.
    pub fn some_more(&mut self, rng: &mut Rng) -> StoringEnd {
        self.along_edges(rng, 300, false)
    }

    fn along_edges(&mut self, rng: &mut Rng, most: usize, stop_when_full: bool) -> StoringEnd {
        // A run that ended before continues from the stored states; a new one has none.
        let mut pool = self.roots();
        let mut unexpanded = self.order.clone();
        let mut past: Vec<InsertStep> = Vec::new();
        let mut next_check = 1;
        for _ in 0..most {
            while let Some(state) = unexpanded.pop() {
                let Some(steps) = self.steps_from(&state) else {
                    let Some(recoding) = self.widen() else { return StoringEnd::NotRecoded };
                    let mut lost = vec![state];
                    lost.extend(std::mem::take(&mut unexpanded));
                    unexpanded = lost.iter().map(|state| translated(&recoding, state)).collect();
                    for step in pool.iter_mut().chain(&mut past) {
                        step.translate(&recoding);
                    }
                    continue;
                };
                pool.extend(steps);
            }
            // Now and then a step is repeated.
            if !past.is_empty() && rng.below(4) == 0 {
                let again = &past[rng.below(past.len())];
                let answer = self.insert(again);
                assert!(!self.take(&again.target, answer) || !self.exact, "{}: once is enough", self.label);
                continue;
            }
            if pool.is_empty() {
                break;
            }
            let step = pool.swap_remove(rng.below(pool.len()));
            if rng.below(8) == 0 {
                self.check_find(&step.target, step.hash);
            }
            let answer = self.insert(&step);
            if answer == Insert::Full && stop_when_full {
                self.take(&step.target, answer);
                return StoringEnd::Full;
            }
            if self.take(&step.target, answer) {
                unexpanded.push(step.target.clone());
                if self.order.len() == next_check {
                    next_check *= 2;
                    self.check_all();
                }
            }
            if past.len() < 1000 && answer != Insert::Full {
                past.push(step);
            }
        }
        StoringEnd::Done
    }

    /// Inserts states in breadth-first order, by blocks of random size.
    pub fn in_batches(&mut self, rng: &mut Rng) -> StoringEnd {
        self.breadth_first(rng, false)
    }

    /// The same level by level, marking the end of each.
    pub fn by_levels(&mut self, rng: &mut Rng) -> StoringEnd {
        self.breadth_first(rng, true)
    }

    fn breadth_first(&mut self, rng: &mut Rng, levels: bool) -> StoringEnd {
        for root in self.roots() {
            let answer = self.insert(&root);
            self.take(&root.target, answer);
            if answer == Insert::Full {
                return StoringEnd::Full;
            }
        }
        let (mut block, mut batch) = (Block::new(self.system.width()), Batch::new(self.system.width()));
        let mut next = 0;
        while next < self.order.len() {
            if !levels {
                self.level = 0..self.order.len();
            } else if next == self.level.end {
                if !self.store.end_level() {
                    return StoringEnd::Full;
                }
                self.level = next..self.order.len();
                // A search reads them by their numbers.
                let ids = &self.ids;
                self.order[next..].sort_by_key(|state| ids[state]);
            }
            let count = (1 + rng.below(BLOCK)).min(self.level.end - next);
            block.reset(self.system.width());
            batch.reset(self.system.width());
            for state in &self.order[next..next + count] {
                block.push(self.ids[state], state);
            }
            if self.system.expand(&mut self.system_scratch, &block, &mut batch).is_err() {
                if self.widen().is_none() {
                    return StoringEnd::NotRecoded;
                }
                continue;
            }
            next += count;
            let sentinel = Insert::Seen(StateId::new(u64::MAX - 7));
            let mut answers = vec![sentinel];
            self.store.insert_batch(&mut self.scratch, &block, &batch, &mut answers);
            assert_eq!(answers[0], sentinel, "{}: answers are appended", self.label);
            let full = answers.contains(&Insert::Full);
            assert!(answers.len() <= batch.len() + 1, "{}: there is one answer a state", self.label);
            assert!(full || answers.len() == batch.len() + 1, "{}: every state has an answer", self.label);
            for (index, &answer) in answers[1..].iter().enumerate() {
                self.take(batch.target(index), answer);
            }
            if full {
                return StoringEnd::Full;
            }
        }
        StoringEnd::Done
    }

    /// The initial states as steps without source.
    fn roots(&mut self) -> Vec<InsertStep> {
        loop {
            let mut batch = Batch::new(self.system.width());
            if self.system.initial(&mut self.system_scratch, &mut batch).is_ok() {
                return steps(&batch, None);
            }
            self.widen().expect("an empty store has room to recode");
        }
    }

    /// The steps from a stored state; `None` if the layout must widen.
    fn steps_from(&mut self, state: &[Slot]) -> Option<Vec<InsertStep>> {
        let mut batch = Batch::new(self.system.width());
        self.system.successors(&mut self.system_scratch, state, &mut batch).ok()?;
        Some(steps(&batch, Some((self.ids[state], state.to_vec()))))
    }

    fn insert(&mut self, step: &InsertStep) -> Insert {
        let parent = step.source.as_ref().map(|(id, state)| (*id, state.as_slice()));
        let arrival = Arrival { parent, action: step.action };
        self.store.insert(&mut self.scratch, &step.target, step.hash, &arrival)
    }

    /// Checks an answer and records it; returns whether the state was reported as new.
    fn take(&mut self, state: &[Slot], answer: Insert) -> bool {
        let label = &self.label;
        let known = self.ids.get(state).copied();
        match answer {
            Insert::New(id) => {
                assert_eq!(known, None, "{label}: a state is new once: {state:?}");
                assert!(!self.omitted.contains(state), "{label}: a state once called seen stays seen: {state:?}");
                let named = id != StateId::NAMELESS;
                assert!(named || self.store.recall().is_none(), "{label}: a store that recalls names its states");
                assert!(!named || self.used_ids.insert(id), "{label}: no id is given twice, {id:?} is");
                self.ids.insert(state.to_vec(), id);
                self.order.push(state.to_vec());
                if let Some(values) = &mut self.values {
                    values.touch(label, id, &self.budget);
                }
                return true;
            }
            Insert::Seen(id) => match known {
                Some(known) => {
                    self.same_id(state, known, id);
                    if let Some(values) = &mut self.values {
                        values.touch(&self.label, id, &self.budget);
                    }
                }
                None => {
                    assert!(!self.exact, "{label}: a state that was never inserted is not called seen: {state:?}");
                    self.omitted.insert(state.to_vec());
                }
            },
            Insert::Full => {
                assert_eq!(known, None, "{label}: a state that is there needs no room: {state:?}");
                assert_ne!(self.budget.limit(), u64::MAX, "{label}: without a limit no store is full");
            }
        }
        false
    }

    fn same_id(&self, state: &[Slot], known: StateId, id: StateId) {
        let nameless = id == StateId::NAMELESS && !self.store.recall().is_some_and(|recall| recall.whole());
        assert!(id == known || nameless, "{}: ids are stable: {state:?} was {known:?}, is {id:?}", self.label);
    }

    /// Checks that looking up a state agrees with the insertions.
    fn check_find(&mut self, state: &[Slot], hash: u64) {
        let found = self.store.find(&mut self.scratch, state, hash);
        match (found, self.ids.get(state).copied()) {
            (Some(id), Some(known)) => self.same_id(state, known, id),
            (None, Some(_)) => panic!("{}: what was inserted is found: {state:?}", self.label),
            (Some(_), None) => assert!(!self.exact, "{}: what was not inserted is not found: {state:?}", self.label),
            (None, None) => {}
        }
    }

    /// Lets the system widen and the store follow; `None` if it has no memory for it.
    fn widen(&mut self) -> Option<Recoding> {
        self.held_at_widening.push(self.budget.used());
        let recoding = self.system.widen();
        self.system_scratch = self.system.scratch();
        if !self.store.recode(&recoding) {
            assert_ne!(self.budget.limit(), u64::MAX, "{}: without a limit recoding has room", self.label);
            return None;
        }
        self.ids = self.ids.drain().map(|(state, id)| (translated(&recoding, &state), id)).collect();
        self.omitted = self.omitted.drain().map(|state| translated(&recoding, &state)).collect();
        for state in &mut self.order {
            *state = translated(&recoding, state);
        }
        self.check_all();
        Some(recoding)
    }

    /// Checks that the run was complete and found everything.
    pub fn is_complete(&mut self, end: StoringEnd, expected: usize) {
        assert_eq!(end, StoringEnd::Done, "{}: without a limit everything goes in", self.label);
        if self.exact {
            assert_eq!(self.order.len(), expected, "{}: every state went in", self.label);
        }
        self.check_all();
    }

    /// Checks every stored state: it is found, under its id, and recalled.
    pub fn check_all(&mut self) {
        self.check_counts();
        for index in 0..self.order.len() {
            let state = self.order[index].clone();
            let hash = self.system.hash(&mut self.system_scratch, &state);
            self.check_find(&state, hash);
        }
        let Some(recall) = self.store.recall() else { return };
        let mut states = States::new(self.system.width());
        // Last to first and in chunks, so that the requested order counts, not that of insertion.
        let there = if recall.whole() { 0..self.order.len() } else { self.level.clone() };
        let order: Vec<&Vec<Slot>> = self.order[there].iter().rev().collect();
        for chunk in order.chunks(50) {
            states.reset(self.system.width());
            let ids: Vec<StateId> = chunk.iter().map(|&state| self.ids[state]).collect();
            recall.recall(&mut self.scratch, &ids[..1], &mut states);
            recall.recall(&mut self.scratch, &ids[1..], &mut states);
            assert_eq!(states.len(), ids.len(), "{}: recalled states are appended, one an id", self.label);
            for (recalled, &state) in states.iter().zip(chunk) {
                assert_eq!(recalled, state, "{}: {:?} is recalled as it went in", self.label, self.ids[state]);
            }
        }
    }

    /// Checks the count, the bytes and the budget.
    pub fn check_counts(&self) {
        let label = &self.label;
        assert_eq!(self.store.len(), self.order.len() as u64, "{label}: its length is the number of new states");
        if self.store.recall().is_some_and(|recall| recall.sequential()) {
            let all = (0..self.order.len() as u64).all(|number| self.used_ids.contains(&StateId::new(number)));
            assert!(all, "{label}: sequential ids are 0, 1, 2 …");
        }
        assert_eq!(is_exact(&*self.store), self.exact, "{label}: its guarantee does not change its kind");
        let bytes = self.store.bytes();
        if let Some(values) = &self.values {
            values.check(label, self.used_ids.iter());
            let counted = bytes.parts().iter().find(|part| part.0 == "values").map_or(0, |part| part.1);
            assert_eq!(counted, values.bytes(), "{label}: the bytes of values are among its own");
        }
        let names: HashSet<&str> = bytes.parts().iter().map(|part| part.0).collect();
        assert_eq!(names.len(), bytes.parts().len(), "{label}: each part of its bytes has a name of its own");
        assert!(self.order.len() < 2 || bytes.total() > 0, "{label}: what holds states holds bytes");
        if self.budget.used() > 0 {
            let accounted = bytes.total() + self.store.frontier_bytes();
            assert_eq!(accounted, self.budget.used(), "{label}: it accounts for exactly what it was granted");
        }
        assert!(self.budget.peak() <= self.budget.limit(), "{label}: it stays within its budget");
    }

    /// Ends the test: all granted memory is returned.
    pub fn dropped(self) {
        let Storing { store, budget, label, values, .. } = self;
        drop((values, store));
        assert_eq!(budget.used(), 0, "{label}: a store that is dropped gives back all its memory");
    }
}

impl InsertStep {
    fn translate(&mut self, recoding: &Recoding) {
        self.target = translated(recoding, &self.target);
        if let Some((_, state)) = &mut self.source {
            *state = translated(recoding, state);
        }
    }
}

fn translated(recoding: &Recoding, state: &[Slot]) -> Vec<Slot> {
    let mut new = Vec::new();
    recoding.translate(state, &mut new);
    new
}

fn steps(batch: &Batch, source: Option<(StateId, Vec<Slot>)>) -> Vec<InsertStep> {
    let step = |index| InsertStep {
        source: source.clone(),
        action: batch.action(index),
        target: batch.target(index).to_vec(),
        hash: batch.hash(index),
    };
    (0..batch.len()).map(step).collect()
}
