//! A row of numbers of one width, packed.
//!
//! In: how many numbers, and the largest. Out: memory of just enough bits each. What stays true: the
//! memory was granted by the budget, and goes back when the row is dropped.

use crate::bits::bits_of;
use deltamark_core::Budget;
use std::sync::Arc;

/// Numbers of a fixed width.
#[derive(Debug)]
pub struct Packed {
    words: Vec<u64>,
    bits: u32,
    budget: Arc<Budget>,
}

impl Packed {
    /// So many zeros, with room for numbers up to `largest`; nothing, if there is no memory for them.
    pub fn new(len: u64, largest: u64, budget: &Arc<Budget>) -> Option<Self> {
        let bits = bits_of(largest);
        // One word more, so that a number can always be read as two words.
        let words = usize::try_from(len.checked_mul(u64::from(bits))?.div_ceil(64) + 1).ok()?;
        if !budget.request(words as u64 * 8) {
            return None;
        }
        Some(Packed { words: vec![0; words], bits, budget: Arc::clone(budget) })
    }

    /// Number `index`.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        let at = index * u64::from(self.bits);
        let (word, shift) = ((at / 64) as usize, at % 64);
        let both = u128::from(self.words[word]) | u128::from(*self.words.get(word + 1).unwrap_or(&0)) << 64;
        (both >> shift) as u64 & self.mask()
    }

    /// Changes number `index`.
    #[inline]
    pub fn set(&mut self, index: u64, number: u64) {
        debug_assert!(number <= self.mask());
        let at = index * u64::from(self.bits);
        let (word, shift) = ((at / 64) as usize, (at % 64) as u32);
        let mask = self.mask();
        self.words[word] = self.words[word] & !(mask << shift) | number << shift;
        if shift + self.bits > 64 {
            let high = 64 - shift;
            self.words[word + 1] = self.words[word + 1] & !(mask >> high) | number >> high;
        }
    }

    fn mask(&self) -> u64 {
        if self.bits == 64 { u64::MAX } else { (1 << self.bits) - 1 }
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        self.budget.release(self.words.len() as u64 * 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_widths_stay_what_they_are() {
        let budget = Arc::new(Budget::unlimited());
        for bits in 0..=64 {
            let largest = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let mut row = Packed::new(300, largest, &budget).expect("memory");
            let number = |index: u64| deltamark_core::hash::mix(index) & largest;
            (0..300).rev().for_each(|index| row.set(index, !number(index) & largest));
            (0..300).for_each(|index| row.set(index, number(index)));
            assert!((0..300).all(|index| row.get(index) == number(index)), "{bits} bits");
        }
        assert_eq!(budget.used(), 0);
    }
}
