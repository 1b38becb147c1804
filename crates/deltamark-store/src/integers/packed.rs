//! A growing list of integers in as few bits as they need, in memory that the budget granted.
//!
//! In: integers, appended. Out: integer `i`. Invariant: all memory was granted before it is
//! allocated. The layout is that of [`Numbers`].

use crate::tables::bucket::prefetch;
use deltamark_core::{Budget, Grant, Numbers};
use std::sync::Arc;

/// A list of integers in as few bits as they need.
pub(crate) struct Packed {
    numbers: Numbers<2048>,
    grant: Grant,
}

impl Packed {
    /// An empty list.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Packed { numbers: Numbers::new(), grant: Grant::new(budget) }
    }

    /// The number of integers.
    #[inline]
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.grant.bytes()
    }

    /// Makes room for `more` integers of at most `most`. `false` means that the budget has none.
    #[must_use]
    pub fn reserve(&mut self, more: u64, most: u64) -> bool {
        let growth = self.numbers.growth(more as usize, most);
        growth == 0 || self.grow(growth, |numbers| numbers.reserve(more as usize, most))
    }

    /// Makes a change that takes at most `growth` more bytes, if the budget has them.
    #[cold]
    fn grow(&mut self, growth: u64, change: impl FnOnce(&mut Numbers<2048>)) -> bool {
        if !self.grant.ask(growth) {
            return false;
        }
        change(&mut self.numbers);
        self.grant.give_back(self.grant.bytes() - self.numbers.held_bytes());
        true
    }

    /// Appends an integer for which room was [made](Self::reserve).
    #[inline]
    pub fn push(&mut self, value: u64) {
        self.numbers.push(value);
    }

    /// Integer `index`.
    #[inline(always)]
    pub fn get(&self, index: u64) -> u64 {
        self.numbers.get(index as usize)
    }

    /// Changes integer `index`. `false` means that it needs more bits than the budget grants.
    #[must_use]
    pub fn set(&mut self, index: u64, value: u64) -> bool {
        let growth = self.numbers.growth_of_set(index as usize, value);
        if growth == 0 {
            self.numbers.set(index as usize, value);
            return true;
        }
        self.grow(growth, |numbers| numbers.set(index as usize, value))
    }

    /// Asks for integer `index` to be fetched.
    #[inline(always)]
    pub fn prefetch(&self, index: u64) {
        if let Some(word) = self.numbers.word(index as usize) {
            prefetch(word);
        }
    }

    /// The number of integers at the front, of an ascending list, that `before` is true of.
    pub fn partition_point(&self, before: impl Fn(u64) -> bool) -> u64 {
        self.numbers.partition_point(before) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    #[test]
    fn numbers_of_all_widths_come_back_and_can_be_changed() {
        let budget = Arc::new(Budget::unlimited());
        let mut list = Packed::new(&budget);
        let mut model = Vec::new();
        let count: u64 = if cfg!(miri) { 500 } else { 20_000 };
        for step in 0..count {
            let value = mix(step) >> (1 + (mix(!step) + step * 66 / count) % 63);
            assert!(list.reserve(1, value));
            list.push(value);
            model.push(value);
            if step % 3 == 0 {
                let (index, value) = (mix(step * 7) % model.len() as u64, mix(step * 5) >> (1 + step % 63));
                assert!(list.set(index, value));
                model[index as usize] = value;
            }
        }
        assert_eq!(list.len(), count);
        assert!((0..list.len()).all(|index| list.get(index) == model[index as usize]));
        assert_eq!(list.bytes(), budget.used());
        drop(list);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn numbers_take_the_bits_they_need() {
        let budget = Arc::new(Budget::unlimited());
        let count: u64 = if cfg!(miri) { 500 } else { 200_000 };
        for (most, width) in [(0, 0), (1, 1), (2, 2), (255, 8), (256, 9), (1 << 40, 41)] {
            let mut list = Packed::new(&budget);
            for value in 0..count {
                assert!(list.reserve(1, value % (most + 1)));
                list.push(value % (most + 1));
            }
            assert!(list.reserve(1, most));
            list.push(most);
            let needed = count * width / 8;
            assert!(list.bytes() <= needed + needed / 50 + 8192, "{most}: {} for {needed}", list.bytes());
        }
    }

    #[test]
    fn what_the_budget_refuses_changes_nothing() {
        let budget = Arc::new(Budget::new(3000));
        let mut list = Packed::new(&budget);
        let mut pushed = 0;
        while list.reserve(1, pushed % 500) {
            list.push(pushed % 500);
            pushed += 1;
        }
        assert!(pushed > 1000 && !list.set(3, 1 << 50));
        assert!((0..list.len()).all(|index| list.get(index) == index % 500));
        assert_eq!(list.bytes(), budget.used());
    }
}
