//! States expanded from their records, for sequential access.
//!
//! In: numbers of states. Out: the states. Invariant: the cached states are on one path, each an
//! ancestor of the next, with ascending numbers; so a state with an ancestor among them is expanded
//! from it. Consecutive numbers have equal or neighbouring predecessors, and take a step or two
//! each.

use crate::difference::journal::{Journal, JournalSpot};
use crate::difference::record::{Coder, RecordKind};
use deltamark_core::Slot;

/// The most states it holds.
const PATH: usize = 64;

/// Expanded states of one path: each one is an ancestor of the next.
#[derive(Default)]
pub(crate) struct ExpandedPath {
    numbers: Vec<u64>,
    /// As many states, and perhaps unused ones behind them.
    states: Vec<Vec<Slot>>,
    steps: Vec<(u64, JournalSpot)>,
}

impl ExpandedPath {
    /// Forgets its states.
    pub fn clear(&mut self) {
        self.numbers.clear();
    }

    /// The state of this number. States of the path are used again where they are its ancestors.
    pub fn expand(&mut self, journal: &Journal, coder: &Coder, number: u64) -> &[Slot] {
        self.steps.clear();
        let mut at = number;
        loop {
            while self.numbers.pop_if(|last| *last > at).is_some() {}
            if self.numbers.last() == Some(&at) {
                break;
            }
            let spot = journal.spot(at);
            match Coder::kind(journal.at(spot)) {
                RecordKind::Difference(parent) => {
                    assert!(parent < at, "I1: a predecessor has a smaller number");
                    self.steps.push((at, spot));
                    at = parent;
                }
                RecordKind::Whole => {
                    self.numbers.clear();
                    self.push(at);
                    coder.whole(journal.at(spot), &mut self.states[0]);
                    break;
                }
            }
        }
        while let Some((at, spot)) = self.steps.pop() {
            let last = self.numbers.len() - 1;
            if self.numbers.len() < PATH {
                self.push(at);
                let (before, after) = self.states.split_at_mut(last + 1);
                after[0].clone_from(&before[last]);
            } else {
                self.numbers[last] = at;
            }
            coder.forward(journal.at(spot), &mut self.states[self.numbers.len() - 1]);
        }
        &self.states[self.numbers.len() - 1]
    }

    fn push(&mut self, number: u64) {
        self.numbers.push(number);
        if self.states.len() < self.numbers.len() {
            self.states.push(Vec::new());
        }
    }
}
