//! Numbers of one width, packed, in memory that the budget granted.
//!
//! In: how many numbers, and the largest. Out: memory of just enough bits each. Invariant: the
//! memory was granted by the budget, and is released when the numbers are dropped.

use deltamark_core::packed::{self, bits_of};
use deltamark_core::{Budget, Grant};
use std::sync::Arc;

/// Numbers of a fixed width.
#[derive(Debug)]
pub struct Packed {
    numbers: packed::Packed,
    _grant: Grant,
}

impl Packed {
    /// `len` zeros, with room for numbers up to `largest`; `None` if there is no memory for them.
    pub fn new(len: u64, largest: u64, budget: &Arc<Budget>) -> Option<Self> {
        let mut grant = Grant::new(budget);
        let granted = grant.ask(packed::Packed::bytes(len, bits_of(largest))?);
        let numbers = packed::Packed::new(usize::try_from(len).ok().filter(|_| granted)?, bits_of(largest));
        Some(Packed { numbers, _grant: grant })
    }

    /// Number `index`.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        self.numbers.get(index as usize)
    }

    /// Changes number `index`.
    #[inline]
    pub fn set(&mut self, index: u64, number: u64) {
        self.numbers.set(index as usize, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_granted_and_released() {
        let budget = Arc::new(Budget::new(1000));
        assert!(Packed::new(1000, 255, &budget).is_none() && Packed::new(u64::MAX, 8, &budget).is_none());
        let mut numbers = Packed::new(300, 1000, &budget).expect("memory");
        (0..300).for_each(|index| numbers.set(index, 3 * index));
        assert!((0..300).all(|index| numbers.get(index) == 3 * index));
        assert!(budget.used() >= 300 * 10 / 8);
        drop(numbers);
        assert_eq!(budget.used(), 0);
    }
}
