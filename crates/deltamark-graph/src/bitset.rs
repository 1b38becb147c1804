//! A set of states: one bit each.
//!
//! In: numbers of states. Out: whether they are in the set. What stays true: the memory was granted by the budget
//! before it was allocated, and is returned when the set is dropped. The value of a formula on a graph is such a
//! set; so is the set of states that a walk has visited.

use deltamark_core::Budget;
use std::sync::Arc;

/// A set of numbers below a fixed one.
#[derive(Debug)]
pub struct BitSet {
    words: Vec<u64>,
    len: u64,
    budget: Arc<Budget>,
}

impl BitSet {
    /// The empty set of numbers below `len`; `None` if there is no memory for it.
    pub fn new(len: u64, budget: &Arc<Budget>) -> Option<Self> {
        let words = len.div_ceil(64);
        if !budget.request(words * 8) {
            return None;
        }
        Some(BitSet { words: vec![0; words as usize], len, budget: Arc::clone(budget) })
    }

    /// One more than the largest number it can hold.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it can hold no number at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a number is in the set.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.words[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    /// Inserts a number; returns whether it is new.
    #[inline]
    pub fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = (&mut self.words[(number / 64) as usize], 1 << (number % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Removes a number.
    #[inline]
    pub fn remove(&mut self, number: u64) {
        self.words[(number / 64) as usize] &= !(1 << (number % 64));
    }

    /// The numbers `64 * index` and following, as a word.
    #[inline]
    pub fn word(&self, index: u64) -> u64 {
        self.words[index as usize]
    }

    /// Inserts the numbers `64 * index` and following whose bit in `word` is set.
    #[inline]
    pub fn insert_word(&mut self, index: u64, word: u64) {
        self.words[index as usize] |= word;
    }

    /// The number of elements.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The numbers in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| u64::from(rest.trailing_zeros()))?;
                rest &= rest - 1;
                Some(64 * index as u64 + bit)
            })
        })
    }
}

impl Drop for BitSet {
    fn drop(&mut self) {
        self.budget.release(self.words.len() as u64 * 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_there_in_order() {
        let budget = Arc::new(Budget::new(100));
        let mut set = BitSet::new(200, &budget).expect("memory");
        let numbers = [0, 63, 64, 127, 199];
        assert!(numbers.iter().rev().all(|&number| set.insert(number)));
        assert!(!set.insert(64));
        assert_eq!(set.iter().collect::<Vec<_>>(), numbers);
        assert_eq!((set.count(), set.word(1)), (5, 1 | 1 << 63));
        set.remove(63);
        assert!(!set.contains(63) && set.contains(64));
        assert_eq!(budget.used(), 32);
        assert!(BitSet::new(1000, &budget).is_none());
        drop(set);
        assert_eq!(budget.used(), 0);
    }
}
