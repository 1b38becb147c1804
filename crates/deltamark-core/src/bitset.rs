//! A set of states: one bit each.
//!
//! In: numbers of states. Out: whether they are in the set. What stays true: the memory was granted by the budget
//! before it was allocated, and is returned when the set is dropped. The value of a formula on a graph is such a
//! set; so is the set of states that a walk has visited.

use crate::Budget;
use std::sync::Arc;

/// A set of numbers below a fixed one.
#[derive(Debug)]
pub struct BitSet {
    words: Vec<u64>,
    len: u64,
    /// Bytes.
    granted: u64,
    budget: Arc<Budget>,
}

impl BitSet {
    /// The empty set of numbers below `len`; `None` if there is no memory for it.
    pub fn new(len: u64, budget: &Arc<Budget>) -> Option<Self> {
        let words = len.div_ceil(64);
        if !budget.request(words * 8) {
            return None;
        }
        Some(BitSet { words: vec![0; words as usize], len, granted: words * 8, budget: Arc::clone(budget) })
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

    /// Makes it a set of numbers below `len`, which is no less than it was; `false` if there is no memory for that.
    #[must_use]
    pub fn grow(&mut self, len: u64) -> bool {
        let words = len.div_ceil(64) as usize;
        if words > self.words.capacity() {
            // By an eighth at a time, so that growing costs little, and little is held too much.
            let more = (words + words / 8).max(64) - self.words.capacity();
            if !self.budget.request(more as u64 * 8) {
                return false;
            }
            self.granted += more as u64 * 8;
            self.words.reserve_exact(self.words.capacity() + more - self.words.len());
        }
        self.words.resize(words, 0);
        self.len = len;
        true
    }

    /// Inserts all numbers.
    pub fn fill(&mut self) {
        self.words.fill(u64::MAX);
        self.trim();
    }

    /// Keeps the numbers that are not in it.
    pub fn complement(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.trim();
    }

    /// Inserts all elements of a set of the same length.
    pub fn unite(&mut self, other: &BitSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(one, &two)| *one |= two);
    }

    /// Keeps the elements of a set of the same length.
    pub fn intersect(&mut self, other: &BitSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(one, &two)| *one &= two);
    }

    /// Removes the elements of a set of the same length.
    pub fn subtract(&mut self, other: &BitSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(one, &two)| *one &= !two);
    }

    /// A set with the same elements; `None` if there is no memory for it.
    pub fn try_clone(&self) -> Option<Self> {
        let mut copy = BitSet::new(self.len, &self.budget)?;
        copy.words.copy_from_slice(&self.words);
        Some(copy)
    }

    /// Whether there is no element.
    pub fn has_none(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Whether every number is an element.
    pub fn has_all(&self) -> bool {
        self.count() == self.len
    }

    /// All words, of 64 numbers each.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// No number beyond the length is an element.
    fn trim(&mut self) {
        if let Some(last) = self.words.last_mut().filter(|_| !self.len.is_multiple_of(64)) {
            *last &= (1 << (self.len % 64)) - 1;
        }
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
        self.budget.release(self.granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_combined_word_by_word_and_hold_nothing_beyond_their_length() {
        let budget = Arc::new(Budget::unlimited());
        let of = |numbers: &[u64]| {
            let mut set = BitSet::new(70, &budget).expect("memory");
            for &number in numbers {
                set.insert(number);
            }
            set
        };
        let (one, two) = (of(&[0, 5, 69]), of(&[5, 64]));
        let with = |change: fn(&mut BitSet, &BitSet)| {
            let mut set = one.try_clone().expect("memory");
            change(&mut set, &two);
            set.iter().collect::<Vec<_>>()
        };
        assert_eq!(with(BitSet::unite), [0, 5, 64, 69]);
        assert_eq!(with(BitSet::intersect), [5]);
        assert_eq!(with(BitSet::subtract), [0, 69]);
        let mut rest = of(&[]);
        assert!(rest.has_none() && !rest.has_all());
        rest.complement();
        assert!(rest.has_all() && rest.count() == 70);
        rest.fill();
        assert_eq!((rest.words()[1], rest.len()), (63, 70));
    }

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
