//! The limit on the number of states, kept to exactly by any number of threads.
//!
//! In: how many states a thread is about to insert. Out: whether all of them may be new
//! without the limit being passed. What stays true: states that are there and states that
//! somebody may be inserting are never more than the limit together, so a run that is ended
//! by it holds exactly as many states as were allowed.
//!
//! A thread first adds to `pending` what it may insert and then reads the store's length, so
//! of two threads at least one sees the other. Nobody pays for this where there is no limit.

use deltamark_core::Store;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// The limit on the number of states.
pub(crate) struct Quota {
    limit: Option<u64>,
    /// States that somebody may be inserting now.
    pending: AtomicU64,
    /// Held by the one thread that counts states one by one.
    one_by_one: Mutex<()>,
}

impl Quota {
    pub fn new(limit: Option<u64>) -> Self {
        Quota { limit, pending: AtomicU64::new(0), one_by_one: Mutex::new(()) }
    }

    /// Calls `insert` if `count` more states are surely allowed, and says whether it did.
    #[must_use]
    #[inline]
    pub fn take_all(&self, store: &dyn Store, count: u64, insert: impl FnOnce()) -> bool {
        let Some(limit) = self.limit else {
            insert();
            return true;
        };
        let pending = self.pending.fetch_add(count, SeqCst) + count;
        let allowed = store.len() + pending <= limit;
        if allowed {
            insert();
        }
        self.pending.fetch_sub(count, SeqCst);
        allowed
    }

    /// Calls `insert(true)`, which may insert one state, or `insert(false)`, which must not, if
    /// there are as many states as are allowed.
    pub fn take_one<T>(&self, store: &dyn Store, mut insert: impl FnMut(bool) -> Option<T>) -> Option<T> {
        let _alone = self.one_by_one.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut result = None;
            if self.take_all(store, 1, || result = insert(true)) {
                return result;
            }
            // Others may have set more aside than they will need: then there is room later. Looked
            // at before the state is: nobody is inserting it meanwhile.
            let no_room = self.pending.load(SeqCst) == 0 && self.limit.is_some_and(|limit| store.len() >= limit);
            let found = insert(false);
            if found.is_some() || no_room {
                return found;
            }
            std::thread::yield_now();
        }
    }
}
