//! How much memory may still be taken.
//!
//! In: requests before memory is taken, releases after it is given back. Out: yes or
//! no. What stays true: the sum of granted bytes never exceeds the limit, whatever the
//! number of threads that ask.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter of bytes with an upper limit, shared by all who hold large memory.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Budget { limit, used: AtomicU64::new(0), peak: AtomicU64::new(0) }
    }

    /// A budget that always says yes, and counts.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Asks for `bytes` more. `false` means: do not take them.
    #[must_use]
    pub fn request(&self, bytes: u64) -> bool {
        let granted =
            self.used.fetch_update(Relaxed, Relaxed, |used| used.checked_add(bytes).filter(|&sum| sum <= self.limit));
        match granted {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    /// Gives back `bytes` that were granted before.
    pub fn release(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "released more than was granted");
    }

    /// The bytes granted now.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// The most bytes that were granted at one time.
    pub fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }

    /// The upper limit.
    pub fn limit(&self) -> u64 {
        self.limit
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
}
