//! Ids that states had before their layout changed: a side table of `compact`.
//!
//! In: for each state that was there, its id and its code in the new tree. Out: either by the
//! other. What stays true: ids given before the change stay good, and no new one equals any of
//! them.
//!
//! ```text
//! by id    (id, code) (id, code) …        sorted, 16 bytes a state each
//! by code  (code, id) (code, id) …
//! ```
//! A state that came after the change has the id `base + code`.

use deltamark_core::Budget;
use std::sync::Arc;

/// Ids from before.
#[derive(Default)]
pub(crate) struct Past {
    by_id: Vec<(u64, u64)>,
    by_code: Vec<(u64, u64)>,
    /// New ids begin here.
    base: u64,
    granted: u64,
}

impl Past {
    /// The bytes that this many states take.
    pub fn cost(states: u64) -> u64 {
        states * 2 * size_of::<(u64, u64)>() as u64
    }

    /// A table of these pairs of id and code; new ids begin behind all old ones. The budget has
    /// granted what it [costs](Self::cost).
    pub fn new(mut by_id: Vec<(u64, u64)>, base: u64) -> Self {
        let granted = Self::cost(by_id.len() as u64);
        let mut by_code: Vec<(u64, u64)> = by_id.iter().map(|&(id, code)| (code, id)).collect();
        by_id.sort_unstable();
        by_code.sort_unstable();
        Past { by_id, by_code, base, granted }
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.granted
    }

    /// Gives its bytes back.
    pub fn release(&mut self, budget: &Arc<Budget>) {
        budget.release(self.granted);
        *self = Past::default();
    }

    /// The id of a state by its code.
    #[inline(always)]
    pub fn id(&self, code: u64) -> u64 {
        // Codes of early states are small: most are beyond the last.
        match self.by_code.last() {
            Some(&(last, _)) if code <= last => self.old_id(code),
            _ => self.base + code,
        }
    }

    fn old_id(&self, code: u64) -> u64 {
        match self.by_code.binary_search_by_key(&code, |&(code, _)| code) {
            Ok(at) => self.by_code[at].1,
            Err(_) => self.base + code,
        }
    }

    /// The code of a state by its id.
    ///
    /// # Panics
    /// When the id was never given.
    #[inline(always)]
    pub fn code(&self, id: u64) -> u64 {
        if id >= self.base {
            return id - self.base;
        }
        match self.by_id.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(at) => self.by_id[at].1,
            Err(_) => panic!("no state has the id {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_codes_lead_to_each_other() {
        let past = Past::new(vec![(7, 3), (2, 90), (5, 0)], 8);
        for (id, code) in [(7, 3), (2, 90), (5, 0), (9, 1), (12, 4), (8 + 1000, 1000)] {
            assert_eq!((past.id(code), past.code(id)), (id, code));
        }
        let none = Past::default();
        assert_eq!((none.id(5), none.code(5)), (5, 5));
    }
}
