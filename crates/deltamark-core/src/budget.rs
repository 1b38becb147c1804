//! The memory budget.
//!
//! In: requests before memory is allocated, releases after it is freed. Out: yes or no. Invariants:
//! the sum of granted bytes never exceeds the limit, regardless of the number of threads; nothing
//! is granted once the process has [run out of memory](run_out).
//!
//! # Long work on what was granted
//! A table that grows is filled again from all states, which may take longer than the run may. Whoever does
//! such work asks [`Budget::is_over`] now and then, and gives up.
//!
//! # Memory outside of the budget
//! Scratch memory, the allocator's slack and machine code are resident but not granted. The
//! resident size of the process is reported from time to time ([`Budget::observe`]). The part of it
//! beyond the grants, and beyond the amount reserved for it, is not granted to others.

use crate::Cancel;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Whether an allocation has failed.
static RAN_OUT: AtomicBool = AtomicBool::new(false);

/// Records that the process has no more memory: budgets grant nothing from now on, and searches
/// end. Called by an allocator that kept a reserve for this.
pub fn run_out() {
    RAN_OUT.store(true, Relaxed);
}

/// Whether the process has [run out](run_out) of memory.
#[inline]
pub fn ran_out() -> bool {
    RAN_OUT.load(Relaxed)
}

thread_local! {
    /// Whether the thread can do without what it allocates.
    static OPTIONAL: Cell<bool> = const { Cell::new(false) };
}

/// Allocates optional memory (`try_reserve` of something that only makes a run faster): an
/// allocator with a reserve need not spend it on this.
pub fn optional<R>(take: impl FnOnce() -> R) -> R {
    let before = OPTIONAL.replace(true);
    let taken = take();
    OPTIONAL.set(before);
    taken
}

/// Whether the current allocation of this thread is [`optional`].
pub fn is_optional() -> bool {
    OPTIONAL.try_with(Cell::get).unwrap_or(false)
}

/// A counter of bytes with an upper limit, shared by all owners of large memory.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
    /// What the process may hold beside what is granted.
    beside: u64,
    /// What it holds beyond that.
    unasked: AtomicU64,
    /// What the tables of the system held at first, and what was granted to them since.
    tables_before: OnceLock<u64>,
    tables: AtomicU64,
    end: Option<RunEnd>,
}

/// When a run must end.
#[derive(Debug)]
struct RunEnd {
    cancel: Cancel,
    deadline: Option<Instant>,
    clock: fn() -> Option<Instant>,
    /// Whether it was found so: what was given up is not taken up again.
    over: AtomicBool,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self::beside(limit, u64::MAX)
    }

    /// A budget of `limit` bytes for a process that may hold `beside` additional bytes.
    pub fn beside(limit: u64, beside: u64) -> Self {
        let zero = AtomicU64::default;
        Budget {
            limit,
            used: zero(),
            peak: zero(),
            beside,
            unasked: zero(),
            tables_before: OnceLock::new(),
            tables: zero(),
            end: None,
        }
    }

    /// The same for a run that must end on request, or at a deadline: as its
    /// [`Control`](crate::Control) says.
    pub fn until(mut self, cancel: Cancel, deadline: Option<Instant>, clock: fn() -> Option<Instant>) -> Self {
        self.end = Some(RunEnd { cancel, deadline, clock, over: AtomicBool::new(false) });
        self
    }

    /// Whether the run must end, for reasons other than memory. Once it is over it stays so. Reads the clock: to be
    /// asked every hundred microseconds or so.
    pub fn is_over(&self) -> bool {
        let Some(end) = &self.end else { return false };
        let late = || end.deadline.is_some_and(|deadline| (end.clock)().is_some_and(|now| now >= deadline));
        let over = end.over.load(Relaxed) || end.cancel.is_cancelled() || late();
        if over {
            end.over.store(true, Relaxed);
        }
        over
    }

    /// The same, asked once in many, for a loop over states that is at `number`.
    #[inline]
    pub fn is_over_at(&self, number: u64) -> bool {
        const EVERY: u64 = 1024;
        number.is_multiple_of(EVERY) && self.is_over()
    }

    /// A budget that grants every request, and counts.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Requests `bytes` more. On `false` they must not be allocated. A request of 0 bytes is always
    /// granted.
    #[must_use]
    pub fn request(&self, bytes: u64) -> bool {
        if bytes == 0 {
            return true;
        }
        let limit = if ran_out() { 0 } else { self.limit.saturating_sub(self.unasked.load(Relaxed)) };
        let granted =
            self.used.fetch_update(Relaxed, Relaxed, |used| used.checked_add(bytes).filter(|&sum| sum <= limit));
        match granted {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    /// Releases `bytes` that were granted.
    pub fn release(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "released more than was granted");
    }

    /// Records the resident size of the process.
    pub fn observe(&self, resident: u64) {
        let expected = self.beside.saturating_add(self.used());
        self.unasked.store(resident.saturating_sub(expected), Relaxed);
    }

    /// Requests the growth of the system's tables, which now take `bytes`, since the first call.
    /// They persist from run to run, so nothing is released.
    #[must_use]
    pub fn tables(&self, bytes: u64) -> bool {
        let bytes = bytes.saturating_sub(*self.tables_before.get_or_init(|| bytes));
        loop {
            let before = self.tables.load(Relaxed);
            if bytes <= before {
                return true;
            }
            // Who is quicker asks; the other looks again.
            if self.tables.compare_exchange(before, bytes, Relaxed, Relaxed).is_err() {
                continue;
            }
            let granted = self.request(bytes - before);
            if !granted {
                self.tables.fetch_sub(bytes - before, Relaxed);
            }
            return granted;
        }
    }

    /// The bytes granted now.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// The bytes that could be granted now.
    pub fn left(&self) -> u64 {
        if ran_out() { 0 } else { self.limit.saturating_sub(self.unasked.load(Relaxed)).saturating_sub(self.used()) }
    }

    /// The peak of granted bytes.
    pub fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }

    /// The upper limit.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}

/// Bytes granted by a budget to one owner, released when it is dropped.
#[derive(Debug)]
pub struct Grant {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Grant {
    /// Nothing yet, of this budget.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Grant { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Requests more.
    #[must_use]
    pub fn ask(&mut self, bytes: u64) -> bool {
        let granted = self.budget.request(bytes);
        self.bytes += if granted { bytes } else { 0 };
        granted
    }

    /// Releases some of it.
    pub fn give_back(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.budget.release(bytes);
    }

    /// The budget that granted it.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The bytes granted.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_grants_up_to_its_limit_and_remembers_the_peak() {
        let budget = Budget::new(100);
        assert!(budget.request(60));
        assert!(!budget.request(41));
        assert!(budget.request(40));
        budget.release(70);
        assert!(budget.request(10));
        assert_eq!((budget.used(), budget.peak()), (40, 100));
        assert!(!budget.request(u64::MAX));
    }

    #[test]
    fn what_nobody_asked_for_is_not_granted_to_others() {
        let budget = Budget::beside(100, 50);
        assert!(budget.request(40));
        // Resident bytes, and what can be had then.
        for (resident, more) in [(0, 60), (90, 60), (91, 59), (150, 0), (1000, 0), (100, 50)] {
            budget.observe(resident);
            assert!(!budget.request(more + 1), "{resident}");
            assert_eq!(budget.left(), more, "{resident}");
            assert!(budget.request(more), "{resident}");
            budget.release(more);
        }
    }

    #[test]
    fn a_run_is_over_on_request_or_at_its_deadline() {
        let clock: fn() -> Option<Instant> = || Some(Instant::now());
        let (past, later) = (Instant::now(), Instant::now() + std::time::Duration::from_secs(3600));
        assert!(!Budget::unlimited().is_over());
        let cancel = Cancel::new();
        for (deadline, clock, over) in
            [(None, clock, false), (Some(later), clock, false), (Some(past), clock, true), (Some(past), || None, false)]
        {
            assert_eq!(Budget::unlimited().until(cancel.clone(), deadline, clock).is_over(), over, "{deadline:?}");
        }
        let budget = Budget::unlimited().until(cancel.clone(), None, clock);
        cancel.cancel();
        assert!(budget.is_over());
    }

    #[test]
    fn tables_are_asked_for_once_and_stay() {
        let budget = Budget::new(100);
        for (bytes, granted, used) in [(9, true, 0), (39, true, 30), (29, true, 30), (110, false, 30), (79, true, 70)] {
            assert_eq!((budget.tables(bytes), budget.used()), (granted, used), "{bytes}");
        }
    }
}
