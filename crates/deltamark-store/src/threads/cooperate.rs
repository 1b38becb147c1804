//! Cooperative work: all threads help one that would block them.
//!
//! In: a thread that is about to change shared data (a table that must grow), and then divisible
//! jobs. Out: the jobs done. Invariants: one thread grows at a time; threads that arrive meanwhile
//! only help; they have left when it continues.
//!
//! ```text
//! grower   begin ── gate alone ── new index ── together: work ─ work ─ work ── done ── gate open
//! others     └ batch ends, gate closed …            └──── work ─ work ─ work ── wait ─────┘
//! ```
//! Helpers reach the job through a pointer that the grower publishes and withdraws. A helper
//! registers in a counter before it reads the pointer, and the grower withdraws the pointer before
//! it reads the counter: so the grower waits for every helper that has got the pointer.

use crate::threads::claim::relax;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, Ordering::SeqCst};
use std::time::Duration;

/// Something that several threads can do at once: each claims a part of it, and another, until
/// there is none.
pub(crate) type Job<'j> = &'j (dyn Fn() + Sync);

/// Waits a moment: growing can take long where the processors are busy with other things, and then
/// nobody should spend their time on waiting.
fn wait(rounds: u32) {
    if rounds < 256 {
        relax(rounds);
    } else {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// An offer to help.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Help {
    /// Whether a thread is at it, or about to.
    busy: AtomicBool,
    /// What there is to do; null, while there is nothing to help with.
    job: AtomicPtr<Job<'static>>,
    helpers: AtomicU32,
    /// How many threads there may be.
    threads: AtomicU32,
}

/// Records that nobody is at it any more, when it is dropped.
pub(crate) struct Busy<'h>(&'h Help);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

/// Withdraws an offer when it is dropped, and waits for those who have taken it.
struct Offer<'h>(&'h Help);

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        self.0.job.store(null_mut(), SeqCst);
        let mut rounds = 0;
        while self.0.helpers.load(SeqCst) != 0 {
            wait(rounds);
            rounds += 1;
        }
    }
}

impl Help {
    /// Counts one more thread.
    pub fn enrol(&self) {
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there may be, and no more than the machine runs at once.
    pub fn threads(&self) -> usize {
        let most = std::thread::available_parallelism().map_or(1, |most| most.get());
        (self.threads.load(Ordering::Relaxed) as usize).clamp(1, most)
    }

    /// Whether there may be others.
    pub fn has_others(&self) -> bool {
        self.threads.load(Ordering::Relaxed) > 1
    }

    /// Helps as long as somebody is at it. Call without holding what that thread waits for.
    #[inline(always)]
    pub fn pass(&self) {
        if self.busy.load(Ordering::Acquire) {
            self.help();
        }
    }

    /// Does nothing but help, until a test is done.
    #[cfg(test)]
    pub fn attend(&self, done: &AtomicBool) {
        while !done.load(SeqCst) {
            self.pass();
            std::thread::yield_now();
        }
    }

    /// Begins, unless another thread is at it: then it helps.
    #[must_use]
    pub fn begin(&self) -> Option<Busy<'_>> {
        if self.busy.swap(true, Ordering::AcqRel) {
            self.help();
            return None;
        }
        Some(Busy(self))
    }

    /// Does a job, with all who come meanwhile. For the thread that has begun.
    pub fn together(&self, job: Job<'_>) {
        if !self.has_others() {
            return job();
        }
        self.job.store((&raw const job).cast_mut().cast(), SeqCst);
        let _offer = Offer(self);
        job();
    }

    #[cold]
    fn help(&self) {
        let mut rounds = 0u32;
        while self.busy.load(Ordering::Acquire) {
            // Looked at first, so that who waits does not take the line away from who works.
            if !self.job.load(SeqCst).is_null() {
                self.helpers.fetch_add(1, SeqCst);
                let job = self.job.load(SeqCst);
                if !job.is_null() {
                    // SAFETY: `together` made the pointer from a job that it withdraws before it
                    // ends; it then waits until `helpers` is zero, and this thread was counted
                    // before it loaded the pointer. So the job is there until this call is over.
                    unsafe { (*job)() };
                }
                self.helpers.fetch_sub(1, SeqCst);
            }
            wait(rounds);
            rounds += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::RwLock;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_job_is_done_by_who_comes_meanwhile() {
        let help = Help::default();
        (0..2).for_each(|_| help.enrol());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| help.attend(&done));
            for _ in 0..3 {
                let _busy = help.begin().expect("nobody else begins");
                // Not over before both are at it. On this thread's stack: gone when the round is over.
                let at_it = AtomicU64::new(0);
                help.together(&|| {
                    at_it.fetch_add(1, SeqCst);
                    while at_it.load(SeqCst) < 2 {
                        std::thread::yield_now();
                    }
                });
            }
            done.store(true, SeqCst);
        });
    }

    #[test]
    fn every_part_of_a_job_is_done_once_and_before_it_is_over() {
        const PARTS: u64 = if cfg!(miri) { 20 } else { 2000 };
        let rounds = if cfg!(miri) { 3 } else { 50 };
        let help = Help::default();
        (0..3).for_each(|_| help.enrol());
        let gate = RwLock::new(0);
        let begun = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while begun.load(SeqCst) < rounds {
                        help.pass();
                        drop(gate.read());
                        let Some(_busy) = help.begin() else { continue };
                        let mut total = gate.write().expect("no panic");
                        begun.fetch_add(1, SeqCst);
                        // On this thread's stack: gone when the round is over.
                        let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
                        help.together(&|| {
                            loop {
                                let part = next.fetch_add(1, SeqCst);
                                if part >= PARTS {
                                    return;
                                }
                                sum.fetch_add(part, SeqCst);
                            }
                        });
                        assert_eq!(sum.load(SeqCst), PARTS * (PARTS - 1) / 2);
                        *total += 1;
                    }
                });
            }
        });
        assert_eq!(gate.into_inner().ok(), Some(begun.into_inner()));
    }
}
