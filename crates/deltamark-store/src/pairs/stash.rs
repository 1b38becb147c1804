//! Numbers that found no line of a set of pairs: about one in a hundred.
//!
//! In: numbers. Out: whether each was there. What stays true: a number that must be kept is kept.

use crate::tiles::Added;
use deltamark_core::{Budget, hash::mix};

/// Numbers that found no line: open addressing, 0 = empty, a number plus one.
#[derive(Default)]
pub(super) struct Stash {
    pub table: Vec<u64>,
    pub len: usize,
}

impl Stash {
    fn place(&self, number: u64) -> Result<usize, usize> {
        let mask = self.table.len() - 1;
        let mut at = mix(number) as usize & mask;
        loop {
            match self.table[at] {
                0 => return Err(at),
                held if held == number + 1 => return Ok(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    pub fn contains(&self, number: u64) -> bool {
        !self.table.is_empty() && self.place(number).is_ok()
    }

    /// Adds a number. One that `must` be kept, because it was in the table before, is kept
    /// all the same: a few bytes that nobody counts are better than a state that gets lost.
    pub fn insert(&mut self, number: u64, budget: &Budget, granted: &mut u64, must: bool) -> Added {
        if self.contains(number) {
            return Added::Seen;
        }
        if 4 * (self.len + 1) > 3 * self.table.len() {
            let capacity = (2 * self.table.len()).max(16);
            // The old and the new one are there at the same time, for a moment.
            let asked = capacity as u64 * 8;
            if !budget.request(asked) && !must {
                return Added::Full;
            }
            let old = std::mem::replace(&mut self.table, vec![0; capacity]);
            for held in old.iter().filter(|&&held| held != 0) {
                if let Err(at) = self.place(held - 1) {
                    self.table[at] = *held;
                }
            }
            budget.release(*granted);
            *granted = asked;
        }
        if let Err(at) = self.place(number) {
            self.table[at] = number + 1;
            self.len += 1;
        }
        Added::New
    }
}
