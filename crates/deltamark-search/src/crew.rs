//! Threads that work in step.
//!
//! In: a job. Out: the job executed once by each thread of the crew, including the calling one.
//! Invariants: when [`Crew::together`] returns, no other thread is working, and all their writes
//! are visible; a thread that panics makes the others panic instead of leaving them waiting.
//!
//! A barrier costs a few microseconds: waiting threads spin for a while before they sleep.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};

/// How often a waiting thread looks before it sleeps: some hundred microseconds, about as long as it may take to wake it.
const PATIENCE: u32 = 10_000;

/// Something to wait for: a number that changes.
#[derive(Default)]
struct Signal {
    value: AtomicU32,
    sleepers: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// Wakes all who wait. Call after `value` has changed.
    fn wake(&self) {
        // Who is about to sleep has counted itself before it looks at the value for the last
        // time, so either it sees the change or it is seen here.
        if self.sleepers.load(SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_all();
        }
    }

    /// Waits until `enough` is true of the value, and gives it.
    fn wait(&self, enough: impl Fn(u32) -> bool) -> u32 {
        for _ in 0..PATIENCE {
            let value = self.value.load(SeqCst);
            if enough(value) {
                return value;
            }
            std::hint::spin_loop();
        }
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, SeqCst);
        let value = loop {
            let value = self.value.load(SeqCst);
            if enough(value) {
                break value;
            }
            guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, SeqCst);
        value
    }
}

/// Threads that work in step.
#[derive(Default)]
pub(crate) struct Crew {
    /// The number of the current job.
    job: Signal,
    /// Helpers that have not finished it.
    busy: Signal,
    dismissed: AtomicBool,
    failed: AtomicBool,
}

impl Crew {
    /// What a helper's thread does: every job once, until the crew is dismissed.
    pub fn help(&self, job: impl Fn()) {
        let mut done = 0;
        loop {
            done = self.job.wait(|number| number != done);
            if self.dismissed.load(SeqCst) {
                return;
            }
            let finish = Finish(self);
            job();
            drop(finish);
        }
    }

    /// Does a job together with all `helpers`, whose threads were started.
    ///
    /// # Panics
    /// When a helper has.
    pub fn together(&self, helpers: u32, job: impl FnOnce()) {
        self.busy.value.store(helpers, SeqCst);
        self.job.value.fetch_add(1, SeqCst);
        self.job.wake();
        job();
        self.busy.wait(|busy| busy == 0);
        assert!(!self.failed.load(SeqCst), "a thread of the search has failed");
    }

    /// Ends all helpers when it is dropped.
    pub fn dismissal(&self) -> impl Drop + '_ {
        Dismissal(self)
    }
}

/// Records that a helper has finished, even if it panics.
struct Finish<'a>(&'a Crew);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, SeqCst);
        }
        self.0.busy.value.fetch_sub(1, SeqCst);
        self.0.busy.wake();
    }
}

struct Dismissal<'a>(&'a Crew);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.dismissed.store(true, SeqCst);
        self.0.job.value.fetch_add(1, SeqCst);
        self.0.job.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Has three helpers do jobs, and gives what the last one left behind.
    fn work(jobs: u32, job: impl Fn(u32) + Sync) {
        let crew = Crew::default();
        let number = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let _dismissal = crew.dismissal();
            for _ in 0..3 {
                scope.spawn(|| crew.help(|| job(number.load(SeqCst))));
            }
            for round in 0..jobs {
                number.store(round, SeqCst);
                crew.together(3, || job(round));
            }
        });
    }

    #[test]
    fn every_job_is_done_once_by_each() {
        let rounds = if cfg!(miri) { 5 } else { 2000 };
        let done: Vec<AtomicU32> = (0..rounds).map(|_| AtomicU32::new(0)).collect();
        work(rounds, |round| {
            // All of the round before have finished when one begins.
            assert!(round == 0 || done[round as usize - 1].load(SeqCst) == 4);
            done[round as usize].fetch_add(1, SeqCst);
            if round % 500 == 7 {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        assert!(done.iter().all(|done| done.load(SeqCst) == 4));
    }

    #[test]
    fn a_helper_that_panics_ends_all() {
        let caller = std::thread::current().id();
        let result = catch_unwind(AssertUnwindSafe(|| {
            work(5, |round| assert!(round < 3 || std::thread::current().id() == caller, "on purpose"));
        }));
        assert!(result.is_err());
    }
}
