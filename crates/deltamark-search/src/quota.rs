//! The exact limit on the number of states, for any number of threads.
//!
//! In: the number of states a thread is about to insert, and the total. Out: whether all of them
//! may be new without exceeding the limit. Invariants: stored states and pending insertions
//! together never exceed the limit, so a run ended by it holds exactly the permitted number of
//! states; and no run is ended by an unused reservation.
//!
//! A thread first adds its possible insertions to `pending` and then reads the total, so of two
//! threads at least one sees the other. Without a limit this costs nothing.

use deltamark_core::{Batch, Block, Insert, Scratch, Store};
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

    /// Inserts a batch as far as the limit allows, and returns whether it ended there. `found` returns
    /// the number of states in all stores that the limit is for.
    #[must_use]
    #[inline]
    pub fn insert(
        &self,
        found: impl Fn() -> u64,
        store: &dyn Store,
        scratch: &mut Scratch,
        (block, batch): (&Block, &Batch),
        answers: &mut Vec<Insert>,
    ) -> bool {
        let whole = self.take_all(&found, batch.len() as u64, || store.insert_batch(scratch, block, batch, answers));
        !whole && self.insert_one_by_one(found, store, scratch, (block, batch), answers)
    }

    #[cold]
    fn insert_one_by_one(
        &self,
        found: impl Fn() -> u64,
        store: &dyn Store,
        scratch: &mut Scratch,
        (block, batch): (&Block, &Batch),
        answers: &mut Vec<Insert>,
    ) -> bool {
        for index in 0..batch.len() {
            let (state, hash) = (batch.target(index), batch.hash(index));
            let answer = self.take_one(&found, |take| match take {
                true => Some(store.insert(scratch, state, hash, &batch.arrival(block, index))),
                false => store.find(scratch, state, hash).map(Insert::Seen),
            });
            let Some(answer) = answer else { return true };
            answers.push(answer);
            if answer == Insert::Full {
                break;
            }
        }
        false
    }

    /// Calls `insert` if `count` more states are surely allowed, and returns whether it did.
    #[must_use]
    #[inline]
    fn take_all(&self, found: impl Fn() -> u64, count: u64, insert: impl FnOnce()) -> bool {
        let Some(limit) = self.limit else {
            insert();
            return true;
        };
        let pending = self.pending.fetch_add(count, SeqCst) + count;
        let allowed = found() + pending <= limit;
        if allowed {
            insert();
        }
        self.pending.fetch_sub(count, SeqCst);
        allowed
    }

    /// Calls `insert(true)`, which may insert one state, or `insert(false)`, which must not, if
    /// there are as many states as are allowed.
    fn take_one<T>(&self, found: impl Fn() -> u64, mut insert: impl FnMut(bool) -> Option<T>) -> Option<T> {
        let _alone = self.one_by_one.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut result = None;
            if self.take_all(&found, 1, || result = insert(true)) {
                return result;
            }
            // Others may have set more aside than they will need: then there is room later. Looked
            // at before the state is: nobody is inserting it meanwhile.
            let no_room = self.pending.load(SeqCst) == 0 && self.limit.is_some_and(|limit| found() >= limit);
            let known = insert(false);
            if known.is_some() || no_room {
                return known;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::mpsc::channel;

    #[test]
    fn as_many_are_allowed_as_the_limit_says() {
        let quota = Quota::new(Some(10));
        let allowed = |found, count| quota.take_all(|| found, count, || ());
        assert!(allowed(0, 10) && allowed(9, 1) && allowed(10, 0));
        assert!(!allowed(0, 11) && !allowed(10, 1) && !allowed(4, 7));
        assert!(Quota::new(None).take_all(|| u64::MAX, u64::MAX, || ()));
        assert_eq!(quota.take_one(|| 9, Some), Some(true));
        assert_eq!(quota.take_one(|| 10, Some), Some(false));
    }

    #[test]
    fn room_that_somebody_set_aside_and_did_not_need_is_waited_for() {
        let (quota, set_aside) = (&Quota::new(Some(10)), &Barrier::new(2));
        let (refuse, refused) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let wait = || {
                    set_aside.wait();
                    refused.recv().expect("the other one is refused at first");
                };
                assert!(quota.take_all(|| 9, 1, wait));
            });
            set_aside.wait();
            let mut answers = Vec::new();
            let insert = |take: bool| {
                answers.push(take);
                let _ = refuse.send(());
                take.then_some("new")
            };
            assert_eq!(quota.take_one(|| 9, insert), Some("new"));
            assert_eq!((answers.first(), answers.last()), (Some(&false), Some(&true)));
        });
    }
}
