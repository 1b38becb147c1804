//! The tables of `plain` and the loops over them: looking up and inserting a batch.
//!
//! In: states with their hashes. Out: their numbers. Invariants: see `plain.rs`; insertion follows
//! the protocol of `threads/claim.rs`.

use super::shape::{VectorShape, shaped};
use crate::states::vectors::Vectors;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::bucket::{Lanes, prefetch};
use crate::tables::entrance::{Entrants, NONE, Rounds};
use crate::tables::index::Index;
use crate::threads::claim::{Answer, Claims, GROUP};
use deltamark_core::{Insert, Slot, States};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What changes only while the gate is held alone.
pub(super) struct PlainTables {
    pub vectors: Vectors,
    /// Bytes of vectors that the budget granted.
    pub granted: u64,
    pub index: Index,
    /// Whether many states are new, so that lines of the index are fetched for writing. A hint,
    /// written when it changes.
    pub expects_new: AtomicBool,
}

/// States that are inserted together, and where.
struct Newcomers<'g, 't, S: VectorShape> {
    tables: &'t PlainTables,
    vectors: S::VectorView<'t>,
    len: &'g AtomicU64,
    states: &'g States,
    /// The position, in the list, of the first.
    first: usize,
    answers: &'g mut [MaybeUninit<Insert>],
}

impl<S: VectorShape> Newcomers<'_, '_, S> {
    #[inline(always)]
    fn state(&self, state: usize) -> &[Slot] {
        // SAFETY: a group is made of states that the list has, and of its shape.
        unsafe { S::target(self.states, self.first + state) }
    }
}

impl<S: VectorShape> Entrants for Newcomers<'_, '_, S> {
    #[inline(always)]
    fn take(&self, count: u64) -> u64 {
        self.len.fetch_add(count, Ordering::Relaxed)
    }

    #[inline(always)]
    fn write(&self, first: u64, states: impl Iterator<Item = usize>) {
        for (number, state) in (first..).zip(states) {
            // SAFETY: the state was checked, room for this number was set aside (I3), only this
            // thread has it, and it is in no entry before this is written.
            unsafe { self.tables.vectors.write(number, self.state(state)) };
        }
    }

    #[inline(always)]
    fn same(&self, number: u64, state: usize) -> bool {
        // SAFETY: a settled entry was released after its vector was written (I2).
        unsafe { S::same(self.vectors, number, self.state(state)) }
    }

    #[inline(always)]
    fn hint(&self, number: u64) {
        prefetch(S::hint(self.vectors, number));
    }

    #[inline(always)]
    fn answer(&mut self, state: usize, answer: Answer) {
        self.answers[state].write(answer.into());
    }
}

impl PlainTables {
    /// The number of a state, looked for from its home on.
    #[inline(always)]
    pub fn search<L: Lanes, S: VectorShape>(&self, lanes: L, _shape: S, mixed: u64, state: &[Slot]) -> Option<u64> {
        let (index, vectors) = (self.index.view(), S::view(&self.vectors));
        // SAFETY: a settled entry was released after its vector was written (I2).
        let same = |number: u64| unsafe { S::same(vectors, number, state) };
        index.search(lanes, mixed, index.home(mixed), same).ok()
    }

    /// Appends for each state its number, or [`NONE`] if it is not there.
    #[inline(always)]
    fn find_all<L: Lanes, S: VectorShape>(
        &self,
        lanes: L,
        shape: S,
        states: &States,
        hashes: &[u64],
        out: &mut Vec<u64>,
    ) {
        let (index, vectors) = (self.index.view(), S::view(&self.vectors));
        let mut rounds = Rounds::new();
        for (group, hashes) in hashes.chunks(GROUP).enumerate() {
            rounds.guess(lanes, index, hashes, false, |number| prefetch(S::hint(vectors, number)));
            for slot in 0..hashes.len() {
                // SAFETY: there are as many states as hashes.
                let state = unsafe { S::target(states, group * GROUP + slot) };
                let guess = rounds.guesses[slot];
                // SAFETY: a settled entry was released after its vector was written (I2).
                if guess != NONE && unsafe { S::same(vectors, guess, state) } {
                    out.push(guess);
                    continue;
                }
                out.push(self.search(lanes, shape, rounds.mixed[slot], state).unwrap_or(NONE));
            }
        }
    }

    /// [`find_all`](Self::find_all), made for the width of the states.
    #[inline(always)]
    pub fn find_shaped<L: Lanes>(&self, lanes: L, states: &States, hashes: &[u64], out: &mut Vec<u64>) {
        shaped!(states.width(), shape => self.find_all(lanes, shape, states, hashes, out));
    }

    /// [`find_all`](Self::find_all) with the instructions of AVX-512.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub unsafe fn find_avx512(&self, lanes: x86::Avx512, states: &States, hashes: &[u64], out: &mut Vec<u64>) {
        self.find_shaped(lanes, states, hashes, out);
    }

    /// Inserts many states. Room for them has been set aside (I3).
    ///
    /// In groups, each in three rounds: fetch the buckets; scan them and fetch the vectors
    /// of the first matches; compare, and insert what is new.
    #[inline(always)]
    fn insert_all<L: Lanes, S: VectorShape>(
        &self,
        lanes: L,
        _shape: S,
        len: &AtomicU64,
        states: &States,
        hashes: &[u64],
        out: &mut Vec<Insert>,
    ) {
        let vectors = S::view(&self.vectors);
        // Before anything is claimed: a panic must not leave others waiting.
        assert_eq!(states.len(), hashes.len(), "one hash for each state");
        self.vectors.check_all(states);
        out.reserve(hashes.len());
        let answers = &mut out.spare_capacity_mut()[..hashes.len()];
        let (index, mut rounds, mut claims) = (self.index.view(), Rounds::new(), Claims::new());
        for (group, (hashes, answers)) in hashes.chunks(GROUP).zip(answers.chunks_mut(GROUP)).enumerate() {
            let first = group * GROUP;
            let group: Newcomers<'_, '_, S> = Newcomers { tables: self, vectors, len, states, first, answers };
            rounds.insert(lanes, index, hashes, self.expects_new.load(Ordering::Relaxed), &mut claims, group);
        }
        // SAFETY: every state has its answer: those that were claimed got it when they were
        // settled.
        unsafe { out.set_len(out.len() + hashes.len()) };
    }

    /// [`insert_all`](Self::insert_all), made for the width of the states.
    #[inline(always)]
    pub fn insert_shaped<L: Lanes>(
        &self,
        lanes: L,
        len: &AtomicU64,
        states: &States,
        hashes: &[u64],
        out: &mut Vec<Insert>,
    ) {
        shaped!(states.width(), shape => self.insert_all(lanes, shape, len, states, hashes, out));
    }

    /// [`insert_all`](Self::insert_all) with the instructions of AVX-512.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub unsafe fn insert_avx512(
        &self,
        lanes: x86::Avx512,
        len: &AtomicU64,
        states: &States,
        hashes: &[u64],
        out: &mut Vec<Insert>,
    ) {
        self.insert_shaped(lanes, len, states, hashes, out);
    }

    /// [`insert_all`](Self::insert_all) with the instructions of AVX2.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub unsafe fn insert_avx2(
        &self,
        lanes: x86::Avx2,
        len: &AtomicU64,
        states: &States,
        hashes: &[u64],
        out: &mut Vec<Insert>,
    ) {
        self.insert_shaped(lanes, len, states, hashes, out);
    }
}
