//! Has the budget count what the tables of a system take while a search runs.
//!
//! In: a system that says how many bytes its tables hold. Out: whether the budget has them. What stays true: all threads of
//! a run together ask for every byte once, and all are given back at the end.
//!
//! A system cannot refuse to number a value in the midst of a step, so the tables are asked for once a block, right
//! after they have grown; a run whose budget does not grant them ends there.

use deltamark_core::{Budget, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// What the tables of a system took since a run began.
pub(crate) struct Tables {
    budget: Arc<Budget>,
    /// What they held at the beginning: the process had it when its budget was made.
    before: u64,
    /// What the budget has granted; it grows while `asking` is held.
    granted: AtomicU64,
    asking: Mutex<()>,
}

impl Tables {
    pub fn new(system: &dyn System, budget: &Arc<Budget>) -> Self {
        let (before, granted) = (system.table_bytes(), AtomicU64::new(0));
        Tables { budget: Arc::clone(budget), before, granted, asking: Mutex::new(()) }
    }

    /// Asks for what the tables have grown by. Says whether it is granted.
    #[must_use]
    pub fn hold(&self, system: &dyn System) -> bool {
        let wanted = system.table_bytes().saturating_sub(self.before);
        if wanted <= self.granted.load(Relaxed) {
            return true;
        }
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = self.granted.load(Relaxed);
        let more = wanted.saturating_sub(granted);
        let enough = more == 0 || self.budget.request(more);
        if enough {
            self.granted.store(granted + more, Relaxed);
        }
        enough
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.budget.release(*self.granted.get_mut());
    }
}
