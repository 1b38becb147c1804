//! The tables of `collapse` and the loops over them: looking up and inserting successors.
//!
//! In: states with their hashes. Out: their numbers. Invariants: see `collapse.rs`; insertion
//! follows the protocol of `threads/claim.rs`.

use super::fresh::Fresh;
use crate::collapse::tuples::{GROUP, Group, Tuples};
use crate::plain::shape::{Any, Narrow, Shape};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::bucket::{Bucket, LANES, Lanes, prefetch, prefetch_as};
use crate::tables::index::{BASELINE, Index, IndexView, settled};
use crate::threads::claim::{Answer, Claims, Site, relax};
use crate::threads::reserve::Growth;
use deltamark_core::{Insert, Slot, StateId, States, Width, hash::mix};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// No number.
const NONE: u64 = u64::MAX;

/// What changes only while the gate is held alone, but for fresh states and entries of the index.
pub(super) struct Tables {
    pub tuples: Tuples,
    pub fresh: Fresh,
    pub index: Index,
    pub width: Width,
    pub growth: Growth,
    /// Whether a change of the layout found no memory: some states are gone then, and nothing may
    /// lead to them.
    pub lost: bool,
}

/// Successors that are inserted, and where.
#[derive(Clone, Copy)]
pub(super) struct Successors<'s> {
    pub states: &'s States,
    pub hashes: &'s [u64],
    /// How many states there are in the store.
    pub len: &'s AtomicU64,
    /// Whether many are expected to be new, so that lines are fetched for writing.
    pub expects_new: bool,
}

/// Some of them that are inserted together.
struct Together<'g, 't, L: Lanes, S: Shape> {
    lanes: L,
    index: IndexView<'t>,
    tables: &'t Tables,
    fresh: S::View<'t>,
    successors: Successors<'g>,
    /// The number, in the list, of the first.
    first: usize,
    mixed: &'g [u64; GROUP],
    answers: &'g mut [Insert],
    /// How many were new.
    new: &'g Cell<u64>,
}

impl<L: Lanes, S: Shape> Together<'_, '_, L, S> {
    #[inline(always)]
    fn state(&self, state: usize) -> &[Slot] {
        // SAFETY: successors that are inserted together are in the list, and of its shape.
        unsafe { S::target(self.successors.states, self.first + state) }
    }
}

impl<L: Lanes, S: Shape> Site for Together<'_, '_, L, S> {
    #[inline(always)]
    fn home(&self, state: usize) -> u64 {
        self.index.home(self.mixed[state % GROUP])
    }

    #[inline(always)]
    fn next(&self, bucket: u64) -> u64 {
        self.index.next(bucket)
    }

    #[inline(always)]
    fn scan(&self, bucket: u64, state: usize) -> (u32, u32) {
        self.index.scan(self.lanes, bucket, self.mixed[state % GROUP])
    }

    #[inline(always)]
    fn number(&self, bucket: u64, lane: usize) -> Option<u64> {
        self.index.number(bucket, lane)
    }

    #[inline(always)]
    fn claim(&self, bucket: u64, lane: usize, state: usize) -> bool {
        self.index.claim(bucket, lane, self.mixed[state % GROUP])
    }

    #[inline(always)]
    fn take(&self, count: u64) -> u64 {
        self.new.set(self.new.get() + count);
        self.successors.len.fetch_add(count, Ordering::Relaxed)
    }

    #[inline(always)]
    fn settle(&self, bucket: u64, lane: usize, state: usize, number: u64) {
        let fresh = &self.tables.fresh;
        // SAFETY: the state was checked, room for this number was set aside (I3), only this
        // thread has it, and it is told to nobody before the entry is released below.
        unsafe { fresh.vectors.write(number - fresh.first, self.state(state)) };
        self.index.settle(bucket, lane, self.mixed[state % GROUP], number);
    }

    #[inline(always)]
    fn same(&self, number: u64, state: usize) -> bool {
        // SAFETY: the number is from a settled entry (I2).
        unsafe { self.tables.same::<S>(self.fresh, number, self.state(state)) }
    }

    #[inline(always)]
    fn answer(&mut self, state: usize, answer: Answer) {
        self.answers[state] = match answer {
            Answer::New(number) => Insert::New(StateId::new(number)),
            Answer::Seen(number) => Insert::Seen(StateId::new(number)),
        };
    }

    #[inline(always)]
    fn wait(&self, rounds: u32) {
        relax(rounds);
    }
}

impl Tables {
    /// Whether the state of a number is `state`.
    ///
    /// # Safety
    /// The number is from a settled entry of the index, which was released after its state was
    /// written (I2).
    #[inline(always)]
    unsafe fn same<S: Shape>(&self, fresh: S::View<'_>, number: u64, state: &[Slot]) -> bool {
        if number < self.tuples.len() {
            self.tuples.same(number, state)
        } else {
            // SAFETY: the caller's promise.
            unsafe { S::same(fresh, number - self.fresh.first, state) }
        }
    }

    /// The number of a state, looked for from its home on.
    pub fn search(&self, mixed: u64, state: &[Slot]) -> Option<u64> {
        if self.index.buckets == 0 || self.lost {
            return None;
        }
        let index = self.index.view();
        let tag = index.tag(mixed);
        let mut at = index.home(mixed);
        loop {
            let bucket = index.bucket(at);
            let (mut hits, empty) = BASELINE.scan(bucket, tag, index.mask);
            while hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], index.mask);
                // SAFETY: the number is from a settled entry.
                if unsafe { self.same::<Any>(Any::view(&self.fresh.vectors), number, state) } {
                    return Some(number);
                }
                hits &= hits - 1;
            }
            if empty != 0 {
                return None;
            }
            at = index.next(at);
        }
    }

    /// Inserts the successors of a range, and says how many are new. Room for them has been set
    /// aside (I3).
    ///
    /// In groups, each in three rounds: fetch the buckets; scan them and fetch the tuples of
    /// the first matches; compare, and insert what is new.
    #[inline(always)]
    fn insert<L: Lanes, S: Shape>(
        &self,
        lanes: L,
        _shape: S,
        successors: Successors<'_>,
        range: Range<usize>,
        out: &mut Vec<Insert>,
    ) -> u64 {
        // Before anything is claimed: a panic must not leave others waiting.
        assert!(range.end <= successors.states.len() && range.end <= successors.hashes.len());
        let fresh = S::view(&self.fresh.vectors);
        let new = Cell::new(0);
        let answered = out.len();
        out.resize(answered + range.len(), Insert::Full);
        let answers = &mut out[answered..];
        let (mut mixed, mut guesses) = ([0; GROUP], [NONE; GROUP]);
        let mut claims = Claims::new();
        for (answers, first) in answers.chunks_mut(GROUP).zip(range.step_by(GROUP)) {
            let count = answers.len();
            let hashes = &successors.hashes[first..first + count];
            self.guess(lanes, hashes, successors.expects_new, &mut mixed, &mut guesses);
            self.confirm::<S>(fresh, &mut guesses[..count], successors.states, first);
            let (index, mixed, new) = (self.index.view(), &mixed, &new);
            let mut site: Together<'_, '_, L, S> =
                Together { lanes, index, tables: self, fresh, successors, first, mixed, answers, new };
            for (state, &guess) in guesses[..count].iter().enumerate() {
                if guess != NONE {
                    site.answer(state, Answer::Seen(guess));
                } else {
                    claims.insert(&mut site, state);
                }
            }
            claims.settle(&mut site);
        }
        new.get()
    }

    /// Mixes hashes, and finds for each the first number that carries its tag, or [`NONE`].
    #[inline(always)]
    fn guess<L: Lanes>(
        &self,
        lanes: L,
        hashes: &[u64],
        expects_new: bool,
        mixed: &mut [u64; GROUP],
        guesses: &mut [u64; GROUP],
    ) {
        let index = self.index.view();
        let mut further = [0u8; GROUP];
        for (slot, &hash) in hashes.iter().enumerate() {
            mixed[slot] = mix(hash);
            prefetch_as(index.bucket(index.home(mixed[slot])), expects_new);
        }
        // One thing at a time: the shorter a loop, the more of its misses overlap.
        let mut overflown = 0;
        for slot in 0..hashes.len() {
            let home = index.home(mixed[slot]);
            let bucket = index.bucket(home);
            guesses[slot] = guess(lanes, index, bucket, mixed[slot]);
            if guesses[slot] == NONE && bucket.0[LANES - 1].load(Ordering::Relaxed) != 0 {
                prefetch(index.bucket(index.next(home)));
                further[overflown] = slot as u8;
                overflown += 1;
            }
        }
        for &slot in &further[..overflown] {
            let slot = slot as usize % GROUP;
            let bucket = index.bucket(index.next(index.home(mixed[slot])));
            guesses[slot] = guess(lanes, index, bucket, mixed[slot]);
        }
    }

    /// Compares states, from number `start` on, with their guesses, and strikes out those that
    /// are wrong.
    #[inline(always)]
    fn confirm<S: Shape>(&self, fresh: S::View<'_>, guesses: &mut [u64], states: &States, start: usize) {
        let packed = self.tuples.len();
        let mut together = Group::new(&self.tuples);
        for (slot, guess) in guesses.iter_mut().enumerate() {
            if *guess == NONE {
                continue;
            }
            // Most that are not fresh are of the last run, and are compared together when all are fetched.
            if *guess < packed
                && let Some(group) = &mut together
                && group.push(*guess, slot)
            {
                continue;
            }
            // SAFETY: the number is from a settled entry; and `insert` has looked that there are as many states.
            if !unsafe { self.same::<S>(fresh, *guess, S::target(states, start + slot)) } {
                *guess = NONE;
            }
        }
        if let (Some(group), Width::Fixed(width)) = (&together, self.width) {
            group.compare(&states.slots()[start * width..], |slot| guesses[slot] = NONE);
        }
    }

    /// [`insert`](Self::insert), made for the width of the states.
    #[inline(always)]
    fn insert_shaped<L: Lanes>(
        &self,
        lanes: L,
        successors: Successors<'_>,
        range: Range<usize>,
        out: &mut Vec<Insert>,
    ) -> u64 {
        match successors.states.width() {
            Width::Fixed(1) => self.insert(lanes, Narrow::<1>, successors, range, out),
            Width::Fixed(2) => self.insert(lanes, Narrow::<2>, successors, range, out),
            Width::Fixed(3) => self.insert(lanes, Narrow::<3>, successors, range, out),
            Width::Fixed(4) => self.insert(lanes, Narrow::<4>, successors, range, out),
            Width::Fixed(8) => self.insert(lanes, Narrow::<8>, successors, range, out),
            _ => self.insert(lanes, Any, successors, range, out),
        }
    }

    /// [`insert`](Self::insert) with the best instructions there are.
    pub fn insert_detected(&self, successors: Successors<'_>, range: Range<usize>, out: &mut Vec<Insert>) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { self.insert_avx512(avx512, successors, range, out) };
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx2) = x86::Avx2::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { self.insert_avx2(avx2, successors, range, out) };
        }
        self.insert_shaped(BASELINE, successors, range, out)
    }

    /// [`insert`](Self::insert) with the instructions of AVX-512.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn insert_avx512(
        &self,
        lanes: x86::Avx512,
        successors: Successors<'_>,
        range: Range<usize>,
        out: &mut Vec<Insert>,
    ) -> u64 {
        self.insert_shaped(lanes, successors, range, out)
    }

    /// [`insert`](Self::insert) with the instructions of AVX2.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn insert_avx2(
        &self,
        lanes: x86::Avx2,
        successors: Successors<'_>,
        range: Range<usize>,
        out: &mut Vec<Insert>,
    ) -> u64 {
        self.insert_shaped(lanes, successors, range, out)
    }
}

/// The first number of a bucket that carries the tag. (Not a closure: closures are not
/// compiled for the instructions chosen.)
#[inline(always)]
fn guess<L: Lanes>(lanes: L, index: IndexView<'_>, bucket: &Bucket, mixed: u64) -> u64 {
    let hits = lanes.hits(bucket, index.tag(mixed), index.mask);
    if hits == 0 {
        return NONE;
    }
    settled(&bucket.0[hits.trailing_zeros() as usize % LANES], index.mask)
}

/// Appends states that were inserted.
///
/// # Safety
/// The caller learned of each of them from an insertion that has ended.
pub(super) unsafe fn read(tuples: &Tuples, fresh: &Fresh, numbers: Range<u64>, out: &mut States) {
    let packed = numbers.start..numbers.end.min(tuples.len());
    match out.width() {
        Width::Fixed(_) if !packed.is_empty() => tuples.read_range(packed.clone(), out),
        Width::Fixed(_) => {}
        Width::Varies => {
            let mut state = Vec::new();
            for number in packed.clone() {
                state.clear();
                tuples.read(number, &mut state);
                out.push(&state);
            }
        }
    }
    let rest = packed.end.max(numbers.start)..numbers.end;
    if !rest.is_empty() {
        // SAFETY: the caller's promise; numbers that are not packed are fresh (I1).
        unsafe { fresh.read(rest, out) };
    }
}
