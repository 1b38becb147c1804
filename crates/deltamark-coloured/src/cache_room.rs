//! CacheRoom for the caches of threads to grow.
//!
//! In: the bytes of a larger table. Out: a grant for the time in which the old table and the larger one are both there,
//! or nothing: then the table keeps its size. Invariants: a cache grows only if as much again is left for the visited
//! states, whoever fills it: the search, or a store that takes steps again and has no control. What it takes
//! afterwards is counted with the system's tables.

use deltamark_core::{Budget, Control, Grant};
use std::sync::{Arc, PoisonError, RwLock};

/// The budget of the run in which caches are used.
pub(crate) struct CacheRoom(RwLock<Arc<Budget>>);

impl CacheRoom {
    /// That of this run.
    pub fn new(control: &Control) -> Self {
        CacheRoom(RwLock::new(Arc::clone(&control.budget)))
    }

    /// From now on that of this run.
    #[inline]
    pub fn of(&self, control: Option<&Control>) {
        let Some(control) = control else { return };
        let current = Arc::ptr_eq(&self.0.read().unwrap_or_else(PoisonError::into_inner), &control.budget);
        if !current {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&control.budget);
        }
    }

    /// Grants `bytes` bytes as long as the result lives.
    pub fn lend(&self, bytes: usize) -> Option<Grant> {
        let mut grant = Grant::new(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        if !grant.ask(2 * bytes as u64) {
            return None;
        }
        grant.give_back(bytes as u64);
        Some(grant)
    }
}
