//! Numbers that found no line of a set: about one in a hundred.
//!
//! In: numbers. Out: whether each was present. Invariant: no number is lost.

use crate::tables::tiles::Added;
use deltamark_core::{Budget, hash::mix};

/// Numbers that found no line: open addressing, 0 = empty, a number plus one.
#[derive(Default)]
pub(super) struct Stash {
    table: Vec<u64>,
    len: usize,
    /// Whether the largest number is there, which plus one would be 0.
    holds_largest: bool,
}

impl Stash {
    fn place(&self, number: u64) -> Result<usize, usize> {
        let len = self.table.len();
        let mut at = ((u128::from(mix(number)) * len as u128) >> 64) as usize;
        loop {
            match self.table[at] {
                0 => return Err(at),
                held if held == number + 1 => return Ok(at),
                _ => at = if at + 1 == len { 0 } else { at + 1 },
            }
        }
    }

    pub fn contains(&self, number: u64) -> bool {
        if number == u64::MAX {
            return self.holds_largest;
        }
        !self.table.is_empty() && self.place(number).is_ok()
    }

    /// Adds a number. One that `must` be kept, because it was in the table before, is kept
    /// all the same: a few bytes that nobody counts are better than a state that gets lost.
    pub fn insert(&mut self, number: u64, budget: &Budget, granted: &mut u64, must: bool) -> Added {
        if self.contains(number) {
            return Added::Seen;
        }
        if number == u64::MAX {
            self.holds_largest = true;
            return Added::New;
        }
        if 4 * (self.len + 1) > 3 * self.table.len() {
            let capacity = (self.table.len() / 2 * 3).max(16);
            // The old and the new one are there at the same time, for a moment.
            let asked = capacity as u64 * 8;
            let counted = budget.request(asked);
            if !counted && !must {
                return Added::Full;
            }
            let old = std::mem::replace(&mut self.table, vec![0; capacity]);
            for held in old.iter().filter(|&&held| held != 0) {
                if let Err(at) = self.place(held - 1) {
                    self.table[at] = *held;
                }
            }
            budget.release(*granted);
            *granted = if counted { asked } else { 0 };
        }
        if let Err(at) = self.place(number) {
            self.table[at] = number + 1;
            self.len += 1;
        }
        Added::New
    }

    /// The numbers that are there.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        let held = self.table.iter().filter(|&&held| held != 0).map(|&held| held - 1);
        held.chain(self.holds_largest.then_some(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_number_can_be_kept() {
        let (mut stash, mut granted, budget) = (Stash::default(), 0, Budget::unlimited());
        let numbers: Vec<u64> = (0..20).chain((0..20).map(|below| u64::MAX - below)).collect();
        for expected in [Added::New, Added::Seen] {
            for &number in &numbers {
                assert_eq!(stash.contains(number), expected == Added::Seen, "{number}");
                assert_eq!(stash.insert(number, &budget, &mut granted, false), expected, "{number}");
            }
        }
        assert_eq!(stash.numbers().collect::<HashSet<u64>>(), numbers.iter().copied().collect());
        assert_eq!(granted, budget.used());
    }
}
