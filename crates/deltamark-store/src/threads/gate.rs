//! The gate to the tables of a concurrent store.
//!
//! In: threads that use tables, and occasionally one that changes them. Out: shared or exclusive
//! access. Invariant: no thread uses tables that are being changed, except to help.
//!
//! ```text
//! shared   ── pass ── my lock ──▶ tables            a lock for each thread, on a line of its own
//! alone    ── begin ── all locks ──▶ tables, and helpers (`threads/cooperate.rs`)
//! ```
//! Threads pass once per batch, which takes some microseconds. A single lock would be a cache line
//! that every thread writes twice per batch: this contention was a tenth of the time of two threads
//! without a shared cache.

use crate::threads::claim::relax;
use crate::threads::cooperate::{Busy, Help};
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use deltamark_core::Apart;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

/// How often somebody who wants the tables alone looks whether they are free before it sleeps: others leave them when
/// their batch is done, which is sooner than they could wake it.
const PATIENCE: u32 = 2000;

/// Tables behind a gate.
pub(crate) struct Gate<T> {
    /// On lines of their own, so that what is beside them takes nothing away from those who read them.
    tables: ShardedLock<Apart<T>>,
    pub help: Help,
}

/// Tables that others use too.
pub(crate) struct Shared<'g, T>(ShardedLockReadGuard<'g, Apart<T>>);

/// Tables that nobody else uses.
pub(crate) struct Alone<'g, T>(ShardedLockWriteGuard<'g, Apart<T>>);

impl<T> Gate<T> {
    pub fn new(tables: T) -> Self {
        Gate { tables: ShardedLock::new(Apart(tables)), help: Help::default() }
    }

    /// The tables, for all who do not change them. Who comes while they grow helps.
    #[inline]
    pub fn shared(&self) -> Shared<'_, T> {
        self.help.pass();
        Shared(self.tables.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tables, for one who changes them.
    pub fn alone(&self) -> Alone<'_, T> {
        for rounds in 0..PATIENCE {
            if let Ok(tables) = self.tables.try_write() {
                return Alone(tables);
            }
            relax(rounds);
        }
        Alone(self.tables.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tables for one who makes them grow, with the help of all who come meanwhile; nothing, if another thread is at
    /// it: then it was helped.
    pub fn grow(&self) -> Option<(Busy<'_>, Alone<'_, T>)> {
        let busy = self.help.begin()?;
        Some((busy, self.alone()))
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.tables.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for Shared<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T> Deref for Alone<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T> DerefMut for Alone<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn nobody_sees_tables_that_are_being_changed() {
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let gate = Gate::new([0u64; 2]);
        let (grown, seen) = (AtomicU64::new(0), AtomicU64::new(0));
        (0..3).for_each(|_| gate.help.enrol());
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (gate, grown, seen) = (&gate, &grown, &seen);
                scope.spawn(move || {
                    for round in 0..rounds {
                        if (round + thread) % 7 == 0
                            && let Some((_busy, mut tables)) = gate.grow()
                        {
                            tables[0] += 1;
                            let (done, parts) = (AtomicU64::new(0), AtomicU64::new(0));
                            gate.help.together(&|| {
                                while parts.fetch_add(1, Relaxed) < 4 {
                                    done.fetch_add(1, Relaxed);
                                }
                            });
                            assert_eq!(done.into_inner(), 4);
                            tables[1] += 1;
                            grown.fetch_add(1, Relaxed);
                        }
                        let tables = gate.shared();
                        assert_eq!(tables[0], tables[1]);
                        seen.fetch_max(tables[0], Relaxed);
                    }
                });
            }
        });
        let mut gate = gate;
        assert_eq!(*gate.get_mut(), [grown.load(Relaxed); 2]);
        assert!(seen.into_inner() > 0);
    }
}
