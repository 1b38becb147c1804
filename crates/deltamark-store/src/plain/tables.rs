//! The tables of `plain` and the loops over them: looking up and inserting a batch.
//!
//! In: states with their hashes. Out: their numbers. Invariants: see `plain.rs`; insertion follows
//! the protocol of `threads/claim.rs`.

use super::shape::{Any, Narrow, Shape};
use crate::states::vectors::Vectors;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::bucket::{LANES, Lanes, prefetch, prefetch_as, prefetch_to_write};
use crate::tables::index::{Index, IndexView, settled};
use crate::threads::claim::{Answer, Claims, GROUP, Site, relax};
use deltamark_core::{Insert, Slot, StateId, States, Width, hash::mix};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// No number.
pub(crate) const NONE: u64 = u64::MAX;

/// What changes only while the gate is held alone.
pub(super) struct Tables {
    pub vectors: Vectors,
    /// Bytes of vectors that the budget granted.
    pub granted: u64,
    pub index: Index,
    /// Whether many states are new, so that lines of the index are fetched for writing. A hint,
    /// written when it changes.
    pub expects_new: AtomicBool,
}

/// States that are inserted together, and where.
struct Group<'g, 't, L: Lanes, S: Shape> {
    lanes: L,
    index: IndexView<'t>,
    tables: &'t Tables,
    vectors: S::View<'t>,
    len: &'g AtomicU64,
    states: &'g States,
    /// The number, in the list, of the first.
    first: usize,
    mixed: &'g [u64; GROUP],
    answers: &'g mut [MaybeUninit<Insert>],
}

impl<L: Lanes, S: Shape> Group<'_, '_, L, S> {
    #[inline(always)]
    fn state(&self, state: usize) -> &[Slot] {
        // SAFETY: a group is made of states that the list has, and of its shape.
        unsafe { S::target(self.states, self.first + state) }
    }
}

impl<L: Lanes, S: Shape> Site for Group<'_, '_, L, S> {
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
        self.len.fetch_add(count, Ordering::Relaxed)
    }

    #[inline(always)]
    fn settle(&self, bucket: u64, lane: usize, state: usize, number: u64) {
        // SAFETY: the state was checked, room for this number was set aside (I3), only this
        // thread has it, and it is told to nobody before the entry is released below.
        unsafe { self.tables.vectors.write(number, self.state(state)) };
        self.index.settle(bucket, lane, self.mixed[state % GROUP], number);
    }

    #[inline(always)]
    fn same(&self, number: u64, state: usize) -> bool {
        // SAFETY: a settled entry was released after its vector was written (I2).
        unsafe { S::same(self.vectors, number, self.state(state)) }
    }

    #[inline(always)]
    fn answer(&mut self, state: usize, answer: Answer) {
        self.answers[state].write(match answer {
            Answer::New(number) => Insert::New(StateId::new(number)),
            Answer::Seen(number) => Insert::Seen(StateId::new(number)),
        });
    }

    #[inline(always)]
    fn wait(&self, rounds: u32) {
        relax(rounds);
    }
}

impl Tables {
    /// The number of a state, looked for from its home on.
    #[inline(always)]
    pub fn search<L: Lanes, S: Shape>(&self, lanes: L, _shape: S, mixed: u64, state: &[Slot]) -> Option<u64> {
        let index = self.index.view();
        let (tag, mask) = (index.tag(mixed), index.mask);
        let mut at = index.home(mixed);
        loop {
            let bucket = index.bucket(at);
            let (mut hits, empty) = lanes.scan(bucket, tag, mask);
            while hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], mask);
                // SAFETY: a settled entry was released after its vector was written (I2).
                if unsafe { S::same(S::view(&self.vectors), number, state) } {
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

    /// The first two rounds for a group of states: mixes their hashes, and finds for each the
    /// number of the first vector of its tag, whose memory is on its way, or [`NONE`].
    #[inline(always)]
    fn guess<L: Lanes, S: Shape>(
        &self,
        lanes: L,
        hashes: &[u64],
        expects_new: bool,
        mixed: &mut [u64; GROUP],
        guesses: &mut [u64; GROUP],
    ) {
        let index = self.index.view();
        let vectors = S::view(&self.vectors);
        let mut further = [0u8; GROUP];
        for (slot, &hash) in hashes.iter().enumerate() {
            mixed[slot] = mix(hash);
            let bucket = index.bucket(index.home(mixed[slot]));
            prefetch_as(bucket, expects_new);
        }
        let mut overflown = 0;
        for slot in 0..hashes.len() {
            let home = index.home(mixed[slot]);
            let bucket = index.bucket(home);
            let hits = lanes.hits(bucket, index.tag(mixed[slot]), index.mask);
            guesses[slot] = NONE;
            if hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], index.mask);
                guesses[slot] = number;
                prefetch(S::hint(vectors, number));
            } else if bucket.0[LANES - 1].load(Ordering::Relaxed) == 0 {
                // Most probably it is new.
                if !expects_new {
                    prefetch_to_write(bucket);
                }
            } else {
                prefetch(index.bucket(index.next(home)));
                further[overflown] = slot as u8;
                overflown += 1;
            }
        }
        for &slot in &further[..overflown] {
            let slot = slot as usize % GROUP;
            let bucket = index.bucket(index.next(index.home(mixed[slot])));
            let hits = lanes.hits(bucket, index.tag(mixed[slot]), index.mask);
            if hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], index.mask);
                guesses[slot] = number;
                prefetch(S::hint(vectors, number));
            }
        }
    }

    /// Appends for each state its number, or [`NONE`] if it is not there.
    #[inline(always)]
    fn find_all<L: Lanes, S: Shape>(&self, lanes: L, shape: S, states: &States, hashes: &[u64], out: &mut Vec<u64>) {
        let vectors = S::view(&self.vectors);
        let (mut mixed, mut guesses) = ([0; GROUP], [NONE; GROUP]);
        for (group, hashes) in hashes.chunks(GROUP).enumerate() {
            self.guess::<L, S>(lanes, hashes, false, &mut mixed, &mut guesses);
            for slot in 0..hashes.len() {
                // SAFETY: there are as many states as hashes.
                let state = unsafe { S::target(states, group * GROUP + slot) };
                let guess = guesses[slot];
                // SAFETY: a settled entry was released after its vector was written (I2).
                if guess != NONE && unsafe { S::same(vectors, guess, state) } {
                    out.push(guess);
                    continue;
                }
                out.push(self.search(lanes, shape, mixed[slot], state).unwrap_or(NONE));
            }
        }
    }

    /// [`find_all`](Self::find_all), made for the width of the states.
    #[inline(always)]
    pub fn find_shaped<L: Lanes>(&self, lanes: L, states: &States, hashes: &[u64], out: &mut Vec<u64>) {
        match states.width() {
            Width::Fixed(1) => self.find_all(lanes, Narrow::<1>, states, hashes, out),
            Width::Fixed(2) => self.find_all(lanes, Narrow::<2>, states, hashes, out),
            Width::Fixed(3) => self.find_all(lanes, Narrow::<3>, states, hashes, out),
            Width::Fixed(4) => self.find_all(lanes, Narrow::<4>, states, hashes, out),
            Width::Fixed(8) => self.find_all(lanes, Narrow::<8>, states, hashes, out),
            _ => self.find_all(lanes, Any, states, hashes, out),
        }
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
    fn insert_all<L: Lanes, S: Shape>(
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
        let (mut mixed, mut guesses) = ([0; GROUP], [NONE; GROUP]);
        let mut claims = Claims::new();
        for (group, (hashes, answers)) in hashes.chunks(GROUP).zip(answers.chunks_mut(GROUP)).enumerate() {
            self.guess::<L, S>(lanes, hashes, self.expects_new.load(Ordering::Relaxed), &mut mixed, &mut guesses);
            let index = self.index.view();
            let first = group * GROUP;
            let mut site: Group<'_, '_, L, S> =
                Group { lanes, index, tables: self, vectors, len, states, first, mixed: &mixed, answers };
            for (state, &guess) in guesses[..hashes.len()].iter().enumerate() {
                if guess != NONE && site.same(guess, state) {
                    site.answer(state, Answer::Seen(guess));
                } else {
                    claims.insert(&mut site, state);
                }
            }
            claims.settle(&mut site);
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
        match states.width() {
            Width::Fixed(1) => self.insert_all(lanes, Narrow::<1>, len, states, hashes, out),
            Width::Fixed(2) => self.insert_all(lanes, Narrow::<2>, len, states, hashes, out),
            Width::Fixed(3) => self.insert_all(lanes, Narrow::<3>, len, states, hashes, out),
            Width::Fixed(4) => self.insert_all(lanes, Narrow::<4>, len, states, hashes, out),
            Width::Fixed(8) => self.insert_all(lanes, Narrow::<8>, len, states, hashes, out),
            _ => self.insert_all(lanes, Any, len, states, hashes, out),
        }
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
