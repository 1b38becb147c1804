//! Concurrent insertion into one line of `pairs`: the protocol.
//!
//! In: a line, and a value. Out: whether it is new, a duplicate, or finds no room. Invariant: under
//! every interleaving, no value is inserted twice, and a search of a line never reads unwritten
//! data.
//!
//! ```text
//! first word   counts, marks ──claim──▶ the same, busy ──publish──▶ one more
//!                     └──mark──▶ full, and values went elsewhere
//! ```
//! * E1: a line is claimed by a compare-and-swap on the first word as of the search of the line. If
//!   another thread has changed the line since, the claim fails and the line is searched again: so
//!   a value that was not found is absent.
//! * E2: the first word is written last, with the new count. A thread that reads it first sees all
//!   values it counts, and needs no lock.
//! * E3: values are never removed. A full line stays full, and it is marked before any of its
//!   values goes elsewhere; so a search that finds it not full, or not marked, ends there.
//!
//! The protocol is independent of the memory layout: it is written against [`EntryLine`], so that a
//! test can run it on atomics whose schedule it controls.

use crate::tables::tiles::Added;

/// A line in which a value is entered.
pub(crate) trait EntryLine {
    /// The first word, and with it all that it counts.
    fn first(&self) -> u64;

    /// Whether the value is among those that `first` counts.
    fn holds(&self, first: u64) -> bool;

    /// Whether somebody is changing the line.
    fn is_busy(&self, first: u64) -> bool;

    /// What the first word is with the mark that values went elsewhere; nothing, if there is
    /// room for the value.
    fn marked(&self, first: u64) -> Option<u64>;

    /// Changes the first word, if it is still what it was.
    fn change(&self, from: u64, to: u64) -> bool;

    /// The first word of a line that is busy.
    fn busy(&self, first: u64) -> u64;

    /// Writes the value behind those that `first` counts, then the first word with one more.
    fn publish(&self, first: u64);

    /// Lets others go on.
    fn wait(&self);
}

/// Enters a value into a line. Nothing means that it is not there and that there is no room, and
/// that the line says so.
#[inline(always)]
pub(crate) fn enter<P: EntryLine>(place: &P) -> Option<Added> {
    loop {
        let first = place.first();
        if place.holds(first) {
            return Some(Added::Seen);
        }
        if place.is_busy(first) {
            place.wait();
            continue;
        }
        match place.marked(first) {
            // E3.
            Some(marked) if marked == first || place.change(first, marked) => return None,
            // E1.
            None if place.change(first, place.busy(first)) => {
                place.publish(first);
                return Some(Added::New);
            }
            _ => {}
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    //! The protocol under a scheduler that tries many orders.

    use super::*;
    use shuttle::sync::Mutex;
    use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::collections::HashSet;
    use std::sync::Arc;

    /// Values of a line.
    const SLOTS: u64 = 2;
    const MARK: u64 = 1 << 8;
    const BUSY: u64 = 1 << 9;

    /// Lines that all values have as their home, next line and stash, as in `pairs`.
    struct Board {
        lines: [(AtomicU64, [AtomicU64; SLOTS as usize]); 2],
        stash: Mutex<HashSet<u64>>,
    }

    struct At<'b> {
        line: &'b (AtomicU64, [AtomicU64; SLOTS as usize]),
        value: u64,
    }

    impl EntryLine for At<'_> {
        fn first(&self) -> u64 {
            self.line.0.load(SeqCst)
        }

        fn holds(&self, first: u64) -> bool {
            (0..(first & 0xff) as usize).any(|slot| {
                let held = self.line.1[slot].load(SeqCst);
                assert_ne!(held, 0, "what is counted is written");
                held == self.value
            })
        }

        fn is_busy(&self, first: u64) -> bool {
            first & BUSY != 0
        }

        fn marked(&self, first: u64) -> Option<u64> {
            (first & 0xff == SLOTS).then_some(first | MARK)
        }

        fn change(&self, from: u64, to: u64) -> bool {
            self.line.0.compare_exchange(from, to, SeqCst, SeqCst).is_ok()
        }

        fn busy(&self, first: u64) -> u64 {
            first | BUSY
        }

        fn publish(&self, first: u64) {
            let before = self.line.1[(first & 0xff) as usize].swap(self.value, SeqCst);
            assert_eq!(before, 0, "a slot is written once");
            self.line.0.store(first + 1, SeqCst);
        }

        fn wait(&self) {
            shuttle::thread::yield_now();
        }
    }

    impl Board {
        fn new() -> Self {
            let line = || (AtomicU64::new(0), [AtomicU64::new(0), AtomicU64::new(0)]);
            Board { lines: [line(), line()], stash: Mutex::new(HashSet::new()) }
        }

        fn insert(&self, value: u64) -> bool {
            let lines = self.lines.iter().find_map(|line| enter(&At { line, value }));
            lines.map_or_else(|| self.stash.lock().expect("no panic").insert(value), |added| added == Added::New)
        }

        /// As `Pairs::contains`.
        fn contains(&self, value: u64) -> bool {
            for line in &self.lines {
                let at = At { line, value };
                let first = at.first();
                if at.holds(first) {
                    return true;
                }
                if first & MARK == 0 {
                    return false;
                }
            }
            self.stash.lock().expect("no panic").contains(&value)
        }
    }

    /// Has a thread insert each of these lists and checks their answers.
    fn insert(lists: &[&[u64]]) {
        let board = Arc::new(Board::new());
        let threads: Vec<_> = lists
            .iter()
            .map(|values| {
                let (board, values) = (Arc::clone(&board), values.to_vec());
                shuttle::thread::spawn(move || {
                    let new: Vec<u64> = values.iter().copied().filter(|&value| board.insert(value)).collect();
                    assert!(values.iter().all(|&value| board.contains(value)), "what was inserted is found");
                    new
                })
            })
            .collect();
        let mut new: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
        new.sort_unstable();
        let mut expected: Vec<u64> = lists.concat();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(new, expected, "each value is new to one thread");
    }

    #[test]
    fn no_value_is_entered_twice_in_any_order_tried() {
        let cases: [&[&[u64]]; 5] = [
            &[&[1], &[1], &[1]],
            &[&[1, 2], &[2, 1]],
            &[&[1, 2, 3], &[3, 2, 1]],
            &[&[1, 2, 3, 4, 5], &[5, 4, 3, 2, 1]],
            &[&[1, 2, 3], &[3, 4, 5], &[5, 1, 6]],
        ];
        for case in cases {
            shuttle::check_random(move || insert(case), 400);
            shuttle::check_pct(move || insert(case), 200, 3);
        }
    }
}
