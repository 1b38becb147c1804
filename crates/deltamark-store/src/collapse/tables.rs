//! The tables of `collapse` and the loops over them: looking up and inserting successors.
//!
//! In: states with their hashes. Out: their numbers. Invariants: see `collapse.rs`; insertion
//! follows the protocol of `threads/claim.rs`.

use super::fresh::Fresh;
use crate::collapse::tuples::{self, Tuples};
use crate::plain::shape::{AnyWidth, VectorShape, shaped};
use crate::tables::bucket::Lanes;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::entrance::{Entrants, NONE, Rounds};
use crate::tables::index::{BASELINE, Index};
use crate::threads::claim::{Answer, Claims, GROUP};
use crate::threads::reserve::Growth;
use deltamark_core::{Insert, Slot, States, Width};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// What changes only while the gate is held alone, but for fresh states and entries of the index.
pub(super) struct CollapseTables {
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
struct Newcomers<'g, 't, S: VectorShape> {
    tables: &'t CollapseTables,
    fresh: S::VectorView<'t>,
    successors: Successors<'g>,
    /// The position, in the list, of the first.
    first: usize,
    answers: &'g mut [Insert],
    /// How many were new.
    new: &'g Cell<u64>,
}

impl<S: VectorShape> Newcomers<'_, '_, S> {
    #[inline(always)]
    fn state(&self, state: usize) -> &[Slot] {
        // SAFETY: successors that are inserted together are in the list, and of its shape.
        unsafe { S::target(self.successors.states, self.first + state) }
    }
}

impl<S: VectorShape> Entrants for Newcomers<'_, '_, S> {
    #[inline(always)]
    fn take(&self, count: u64) -> u64 {
        self.new.set(self.new.get() + count);
        self.successors.len.fetch_add(count, Ordering::Relaxed)
    }

    #[inline(always)]
    fn write(&self, first: u64, states: impl Iterator<Item = usize>) {
        let fresh = &self.tables.fresh;
        for (number, state) in (first - fresh.first..).zip(states) {
            // SAFETY: the state was checked, room for this number was set aside (I3), only this
            // thread has it, and it is in no entry before this is written.
            unsafe { fresh.vectors.write(number, self.state(state)) };
        }
    }

    #[inline(always)]
    fn same(&self, number: u64, state: usize) -> bool {
        // SAFETY: the number is from a settled entry (I2).
        unsafe { self.tables.same::<S>(self.fresh, number, self.state(state)) }
    }

    #[inline(always)]
    fn answer(&mut self, state: usize, answer: Answer) {
        self.answers[state] = answer.into();
    }

    const TOGETHER: bool = true;

    #[inline(always)]
    fn confirm(&self, guesses: &mut [u64]) {
        let CollapseTables { tuples, width, .. } = self.tables;
        let mut together = tuples::TupleGroup::new(tuples);
        for (slot, guess) in guesses.iter_mut().enumerate() {
            if *guess == NONE {
                continue;
            }
            // Most that are not fresh are of the last run, and are compared together when all are fetched.
            if *guess < tuples.len()
                && let Some(group) = &mut together
                && group.push(*guess, slot)
            {
                continue;
            }
            if !self.same(*guess, slot) {
                *guess = NONE;
            }
        }
        if let (Some(group), &Width::Fixed(width)) = (&together, width) {
            group.compare(&self.successors.states.slots()[self.first * width..], |slot| guesses[slot] = NONE);
        }
    }
}

impl CollapseTables {
    /// Whether the state of a number is `state`.
    ///
    /// # Safety
    /// The number is from a settled entry of the index, which was released after its state was
    /// written (I2).
    #[inline(always)]
    unsafe fn same<S: VectorShape>(&self, fresh: S::VectorView<'_>, number: u64, state: &[Slot]) -> bool {
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
        // SAFETY: the number is from a settled entry.
        let same = |number: u64| unsafe { self.same::<AnyWidth>(AnyWidth::view(&self.fresh.vectors), number, state) };
        index.search(BASELINE, mixed, index.home(mixed), same).ok()
    }

    /// Inserts the successors of a range, and returns how many are new. Room for them has been set
    /// aside (I3).
    ///
    /// In groups, each in three rounds: fetch the buckets; scan them and fetch the tuples of
    /// the first matches; compare, and insert what is new.
    #[inline(always)]
    fn insert<L: Lanes, S: VectorShape>(
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
        let (index, mut rounds, mut claims) = (self.index.view(), Rounds::new(), Claims::new());
        for (answers, first) in answers.chunks_mut(GROUP).zip(range.step_by(GROUP)) {
            let hashes = &successors.hashes[first..first + answers.len()];
            let group: Newcomers<'_, '_, S> = Newcomers { tables: self, fresh, successors, first, answers, new: &new };
            rounds.insert(lanes, index, hashes, successors.expects_new, &mut claims, group);
        }
        new.get()
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
        shaped!(successors.states.width(), shape => self.insert(lanes, shape, successors, range, out))
    }

    /// [`insert`](Self::insert) with the best instructions there are.
    pub fn insert_detected(&self, successors: Successors<'_>, range: Range<usize>, out: &mut Vec<Insert>) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` found that the processor has these instructions.
            return unsafe { self.insert_avx512(avx512, successors, range, out) };
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx2) = x86::Avx2::detect() {
            // SAFETY: `detect` found that the processor has these instructions.
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
