//! Bytes granted to a part of a store.
//!
//! In: requests, made before memory is allocated. Out: yes or no, and the sum. Invariant: grants
//! are returned when the part is dropped.

use deltamark_core::Budget;
use std::sync::Arc;

/// Bytes granted by a budget, given back on drop.
pub(crate) struct Grant {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Grant {
    /// Nothing yet, of this budget.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Grant { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Asks for more.
    #[must_use]
    pub fn ask(&mut self, bytes: u64) -> bool {
        let granted = self.budget.request(bytes);
        self.bytes += if granted { bytes } else { 0 };
        granted
    }

    /// Gives some of it back.
    pub fn give_back(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.budget.release(bytes);
    }

    /// Who granted it.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}
