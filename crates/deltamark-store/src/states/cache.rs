//! A few full states by their number.
//!
//! In: states with their numbers. Out: the state of a number, if cached. Invariant: direct-mapped:
//! a number has one position, `number mod size`, and the last state stays.

use deltamark_core::{Budget, Grant, Slot};
use std::sync::Arc;

/// A few full states, direct-mapped.
pub(crate) struct Cache {
    /// The number plus one, or 0.
    numbers: Vec<u64>,
    states: Vec<Vec<Slot>>,
    grant: Grant,
}

impl Cache {
    /// Room for `size` states, or for none if the budget does not grant the list.
    pub fn new(size: u64, budget: &Arc<Budget>) -> Self {
        let mut grant = Grant::new(budget);
        let entry = (size_of::<u64>() + size_of::<Vec<Slot>>()) as u64;
        let size = if grant.ask(size * entry) { size as usize } else { 0 };
        Cache { numbers: vec![0; size], states: vec![Vec::new(); size], grant }
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.grant.bytes()
    }

    /// The state of this number, if it is there.
    #[inline(always)]
    pub fn get(&self, number: u64) -> Option<&[Slot]> {
        if self.numbers.is_empty() {
            return None;
        }
        let at = (number % self.numbers.len() as u64) as usize;
        (self.numbers[at] == number + 1).then(|| self.states[at].as_slice())
    }

    /// Puts a state in, if the budget has room for it.
    #[inline]
    pub fn put(&mut self, number: u64, state: &[Slot]) {
        if self.numbers.is_empty() {
            return;
        }
        let at = (number % self.numbers.len() as u64) as usize;
        let held = &mut self.states[at];
        let missing = state.len().saturating_sub(held.capacity());
        if missing > 0 && !self.grant.ask((missing * size_of::<Slot>()) as u64) {
            return;
        }
        held.clear();
        held.reserve_exact(state.len());
        held.extend_from_slice(state);
        self.numbers[at] = number + 1;
    }

    /// Forgets all states.
    pub fn clear(&mut self) {
        self.numbers.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_state_of_a_place_is_there() {
        let budget = Arc::new(Budget::unlimited());
        let mut cache = Cache::new(10, &budget);
        for number in 0..35 {
            cache.put(number, &vec![7; number as usize]);
        }
        let there: Vec<u64> = (0..40).filter(|&number| cache.get(number).is_some()).collect();
        assert_eq!(there, (25..35).collect::<Vec<_>>());
        assert_eq!(cache.get(33), Some(&[7; 33][..]));
        assert_eq!(cache.bytes(), budget.used());
        cache.clear();
        assert_eq!(cache.get(33), None);
        assert_eq!(Cache::new(0, &budget).get(0), None);
    }
}
