//! Per-thread reservations in growing tables.
//!
//! In: inserting threads, and tables with a capacity before they must grow. Out: no thread finds a
//! table full. Invariant: tables have room for all reservations.
//!
//! ```text
//! promised   [ what is there │ of thread 0 │ of thread 1 │ … ]   ≤   what the tables have room for
//! ```
//! All threads write that sum, so its cache line is contended. Therefore a thread reserves room for
//! many batches. Only new entries use it, and the thread keeps the rest until the tables grow: then
//! no thread is inserting, all reservations are void, and the sum is the number of entries.
//!
//! `N` is the number of separately counted kinds: the roots and nodes of `tree`, the states of
//! `compact`.

use deltamark_core::Apart;
use std::sync::atomic::{AtomicU64, Ordering};

/// Room is set aside for as many as are there, divided by this, if that is more than is needed now.
const AHEAD: u64 = 16_384;

/// How many there are of each kind, and will be if all room that was set aside is used.
pub(crate) struct Promises<const N: usize>(Apart<[AtomicU64; N]>);

/// What tables behind a gate say of their growth.
#[derive(Clone, Copy, Default)]
pub(crate) struct Growth {
    /// How often they have grown, or might have.
    pub number: u64,
    /// Whether there was no memory for more than was asked for: then nothing is set aside ahead.
    pub tight: bool,
}

/// Room that a thread has set aside.
pub(crate) struct Room<const N: usize> {
    counts: [u64; N],
    /// The growth of the tables after which that was done.
    growth: u64,
}

impl<const N: usize> Default for Promises<N> {
    fn default() -> Self {
        Promises(Apart([const { AtomicU64::new(0) }; N]))
    }
}

impl<const N: usize> Default for Room<N> {
    fn default() -> Self {
        Room { counts: [0; N], growth: 0 }
    }
}

impl<const N: usize> Promises<N> {
    /// Promises room for this many more, and gives all that is promised. Not written to for nothing.
    pub fn add(&self, more: [u64; N]) -> [u64; N] {
        let mut kinds = self.0.iter().zip(more);
        [0; N].map(|_| match kinds.next() {
            Some((promised, 0)) => promised.load(Ordering::Acquire),
            Some((promised, more)) => promised.fetch_add(more, Ordering::AcqRel) + more,
            None => 0,
        })
    }

    /// Takes a promise back.
    pub fn withdraw(&self, more: [u64; N]) {
        for (promised, more) in self.0.iter().zip(more).filter(|&(_, more)| more > 0) {
            promised.fetch_sub(more, Ordering::AcqRel);
        }
    }

    /// Makes all void but what is there. Nobody is inserting.
    pub fn void(&self, lens: [u64; N]) {
        for (promised, len) in self.0.iter().zip(lens) {
            promised.store(len, Ordering::Release);
        }
    }
}

impl Growth {
    /// For how many room should be set aside by a thread that needs it for `n`.
    pub fn ahead<const N: usize>(self, wanted: [u64; N], lens: [u64; N]) -> [u64; N] {
        let mut lens = lens.into_iter();
        wanted.map(|wanted| match lens.next() {
            Some(len) if !self.tight => wanted.max(len / AHEAD),
            _ => wanted,
        })
    }
}

impl<const N: usize> Room<N> {
    /// For how many more a thread must set room aside before it inserts `wanted`, where `lens` are present.
    #[inline]
    pub fn missing(&mut self, growth: Growth, wanted: [u64; N], lens: impl FnOnce() -> [u64; N]) -> [u64; N] {
        if self.growth != growth.number {
            *self = Room { counts: [0; N], growth: growth.number };
        }
        let enough = |kind: usize| self.counts[kind] >= wanted[kind];
        if (0..N).all(enough) {
            return [0; N];
        }
        let ahead = growth.ahead(wanted, lens());
        std::array::from_fn(|kind| if enough(kind) { 0 } else { ahead[kind] - self.counts[kind] })
    }

    /// Notes that room was set aside for this many more.
    pub fn add(&mut self, more: [u64; N]) {
        self.counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
    }

    /// Notes that this many were new.
    #[inline]
    pub fn take(&mut self, new: [u64; N]) {
        self.counts.iter_mut().zip(new).for_each(|(count, new)| *count -= new);
    }

    /// Uses up all of it.
    pub fn forget(&mut self) {
        self.counts = [0; N];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::gate::Gate;

    /// A table of which only the number of entries matters.
    #[derive(Default)]
    struct Counter {
        growth: Growth,
        room: u64,
    }

    #[test]
    fn nobody_finds_a_table_full() {
        const EACH: u64 = if cfg!(miri) { 40 } else { 60_000 };
        let (gate, promises, len) = (Gate::new(Counter::default()), Promises::<1>::default(), AtomicU64::new(0));
        let insert = |room: &mut Room<1>, wanted: u64, new: u64| {
            loop {
                let table = gate.shared();
                let lens = || [len.load(Ordering::Acquire)];
                let missing = room.missing(table.growth, [wanted], lens);
                if missing == [0] || promises.add(missing)[0] <= table.room {
                    room.add(missing);
                    room.take([new]);
                    assert!(len.fetch_add(new, Ordering::AcqRel) + new <= table.room);
                    return;
                }
                promises.withdraw(missing);
                drop(table);
                let Some((_busy, mut table)) = gate.grow() else { continue };
                table.growth.number += 1;
                promises.void(lens());
                // The second half of the way only as far as is needed.
                table.growth.tight = lens()[0] > EACH / 2;
                table.room = lens()[0] + table.growth.ahead([wanted], lens())[0];
            }
        };
        (0..2).for_each(|_| gate.help.enrol());
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let insert = &insert;
                scope.spawn(move || {
                    let mut room = Room::default();
                    for step in 0..EACH {
                        insert(&mut room, 1 + step % 7, (step + thread) % 2);
                    }
                });
            }
        });
        assert_eq!(len.into_inner(), EACH);
    }

    #[test]
    fn room_is_set_aside_ahead_while_there_is_memory_and_void_after_growth() {
        let mut room = Room::<2>::default();
        let many = || [0, 1_000_000];
        let mut growth = Growth::default();
        assert_eq!(room.missing(growth, [5, 7], many), [5, 61]);
        room.add([5, 61]);
        room.take([2, 1]);
        assert_eq!(room.missing(growth, [3, 60], many), [0, 0]);
        assert_eq!(room.missing(growth, [4, 60], many), [1, 0]);
        growth.number = 1;
        growth.tight = true;
        assert_eq!(room.missing(growth, [4, 60], many), [4, 60]);
        let promises = Promises::default();
        assert_eq!(promises.add([4, 0]), [4, 0]);
        promises.withdraw([1, 0]);
        assert_eq!(promises.add([0, 2]), [3, 2]);
        promises.void([1, 1]);
        assert_eq!(promises.add([0, 0]), [1, 1]);
    }
}
