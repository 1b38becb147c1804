//! Room for the caches of threads to grow.
//!
//! In: the bytes of a larger table. Out: a grant for the time in which the old table and the larger one are both there,
//! or nothing: then the table keeps its size. Invariant: a cache grows only if as much again is left for the visited
//! states. What it takes afterwards is counted with the system's tables.

use deltamark_core::{Budget, Control, Grant};
use std::sync::Arc;

/// The budget of the run in which a cache is used.
pub(crate) struct Room(Arc<Budget>);

impl Room {
    /// Without a limit.
    pub fn unlimited() -> Self {
        Room(Arc::new(Budget::unlimited()))
    }

    /// From now on that of this run.
    #[inline]
    pub fn of(&mut self, control: Option<&Control>) {
        if let Some(control) = control
            && !Arc::ptr_eq(&self.0, &control.budget)
        {
            self.0 = Arc::clone(&control.budget);
        }
    }

    /// Grants this number of bytes as long as the result lives.
    pub fn lend(&self, bytes: usize) -> Option<Grant> {
        let mut grant = Grant::new(&self.0);
        if !grant.ask(2 * bytes as u64) {
            return None;
        }
        grant.give_back(bytes as u64);
        Some(grant)
    }
}
