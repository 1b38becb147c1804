//! A level of states in full.
//!
//! In: states, with the actions that led to them. Out: which of them are new in this level. Invariant: memory was
//! granted by the budget before it was taken.

use crate::plain::Plain;
use deltamark_core::{Action, Arrival, Budget, Insert, States, Store, System};
use std::sync::Arc;

/// A level in full.
pub(super) struct Level<'a> {
    pub states: Plain<'a>,
    /// The action that led to each.
    pub actions: Vec<u32>,
    /// The number of its first state.
    pub first: u64,
    /// Bytes of `actions` that the budget granted.
    pub granted: u64,
}

impl<'a> Level<'a> {
    pub fn new(about: u64, first: u64, system: &'a dyn System, budget: &Arc<Budget>) -> Self {
        let states = Plain::for_about(about, system, Arc::clone(budget));
        Level { states, actions: Vec::new(), first, granted: 0 }
    }

    /// Forgets its states and is another level, in the same memory, if that suits one of `about` states.
    #[must_use]
    pub fn reuse(&mut self, about: u64, first: u64) -> bool {
        let reused = self.states.clear(about);
        if reused {
            self.actions.clear();
            self.first = first;
        }
        reused
    }

    /// Gives back what only a level under construction, or one that is being expanded, needs.
    pub fn drop_actions(&mut self, budget: &Budget) {
        self.actions = Vec::new();
        budget.release(std::mem::take(&mut self.granted));
    }

    pub fn len(&self) -> u64 {
        self.states.len()
    }

    pub fn bytes(&self) -> u64 {
        self.states.bytes().total() + self.granted
    }

    /// Inserts states, up to the first that finds no room.
    pub fn insert(&mut self, states: &States, hashes: &[u64], budget: &Budget, out: &mut Vec<Insert>) {
        if self.reserve(states.len(), budget) && self.states.insert_each(states, hashes, out) {
            return;
        }
        let root = Arrival { parent: None, action: Action(0) };
        let mut scratch = self.states.scratch();
        for (done, (state, &hash)) in states.iter().zip(hashes).enumerate() {
            let answer = match self.states.find(&mut scratch, state, hash) {
                Some(id) => Insert::Seen(id),
                None if !self.reserve(done + 1, budget) => Insert::Full,
                None => Store::insert(&self.states, &mut scratch, state, hash, &root),
            };
            out.push(answer);
            if answer == Insert::Full {
                return;
            }
        }
    }

    /// Makes room for `more` actions.
    pub fn reserve(&mut self, more: usize, budget: &Budget) -> bool {
        let wanted = self.actions.len() + more;
        if wanted > self.actions.capacity() {
            let capacity = wanted.max(self.actions.len() * 5 / 4).max(64);
            let bytes = capacity as u64 * 4;
            // The old list and the new one are there together for a moment.
            if !budget.request(bytes) {
                return false;
            }
            let mut longer = Vec::with_capacity(capacity);
            longer.extend_from_slice(&self.actions);
            self.actions = longer;
            budget.release(std::mem::replace(&mut self.granted, bytes));
        }
        true
    }
}
