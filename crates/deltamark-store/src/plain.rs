//! # The idea
//! Every state in full, packed, in the order found; beside the vectors an index, a hash
//! table of 32-bit entries that leads from a state to its number. The yardstick of every
//! ratio we print, so it is made as strong as we can: buckets of one cache line compared
//! with vector instructions, look-ups a batch at a time with prefetch, large pages.
//!
//! # Layout in memory
//! ```text
//! vectors   #0 [7|0|3] #1 [7|1|3] #2 [6|1|3] …         width × 4 bytes a state
//!                          ▲
//! index     bucket  [ tag|1  tag|0  tag|2  0  0 … ]    16 entries × 4 bytes, 0 = empty
//! ```
//! An entry holds the number plus one in its low bits, as many as the index can count to,
//! and bits of the hash above them, the tag. Entries of a full bucket overflow into the
//! next one.
//!
//! # Growth
//! Vectors never move. The index is a function of the vectors: when it is full it is
//! enlarged and emptied, and all numbers are entered again. So growing never needs
//! a second copy of anything. An index of half a megabyte and more grows by half, which
//! keeps it between 57 and 85 per cent full. (Growth by a quarter was tried: .5 bytes a
//! state less, and 15 per cent slower.)
//!
//! # Invariants
//! * I1: a number is in the index exactly once, in the first bucket from its hash on that
//!   had an empty entry when it came; a bucket with an empty entry ends every search.
//! * I2: an entry whose number is all ones is being written: its vector is not there yet.
//!   Who meets one with its own tag waits. A bucket is read once, and what is claimed is the
//!   entry that was the first empty one in that reading, so two threads never enter the same
//!   state twice.
//! * I3: whoever inserts holds the gate shared, and room for what it may insert has been
//!   set aside; growing and recoding hold the gate alone.
//!
//! # When to choose it
//! Whenever the run fits into memory. 4.7 to 7.1 bytes a state for the index; a look-up
//! touches one line of the index, sometimes the next, and one vector.

use crate::arena;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::bucket::x86;
use crate::bucket::{LANES, Lanes, prefetch};
use crate::index::{BASELINE, Index, settled};
use crate::vectors::Vectors;
use deltamark_core::{
    Arrival, Batch, Block, Budget, Bytes, Guarantee, Insert, Recall, Recoding, Scratch, Slot, StateId, States, Store,
    System, Width, hash::mix, store::insert_one_by_one,
};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Full packed vectors with an index.
pub struct Plain<'a> {
    system: &'a dyn System,
    budget: Arc<Budget>,
    len: AtomicU64,
    /// Insertions that room was set aside for and that are not finished (I3).
    pending: AtomicU64,
    gate: RwLock<Tables>,
}

/// What changes only while the gate is held alone.
struct Tables {
    vectors: Vectors,
    /// Bytes of vectors that the budget granted.
    granted: u64,
    index: Index,
}

/// How far vectors that are rewritten may run ahead of the pages that are given back.
const REWRITE_AHEAD: u64 = 4 << 20;
/// Vectors are asked for in steps of this many bytes.
const VECTOR_STEP: u64 = 256 << 10;
/// How states lie in a batch and among the vectors, and how they are compared. Known to
/// the compiler for narrow states, so that the loops below hold all they need in registers.
trait Shape: Copy {
    /// What leads to a vector.
    type View<'v>: Copy;

    /// What leads to these vectors.
    fn view(vectors: &Vectors) -> Self::View<'_>;

    /// The address to prefetch before a vector is read.
    fn hint(view: Self::View<'_>, number: u64) -> *const u32;

    /// Whether the vector of this number is this state.
    ///
    /// # Safety
    /// As for [`Vectors::get`].
    unsafe fn same(view: Self::View<'_>, number: u64, state: &[Slot]) -> bool;

    /// State `index` of a list.
    ///
    /// # Safety
    /// There is one, and the shape is that of the list.
    unsafe fn target(states: &States, index: usize) -> &[Slot];
}

/// States of `W` slots.
#[derive(Clone, Copy)]
struct Narrow<const W: usize>;

impl<const W: usize> Shape for Narrow<W> {
    type View<'v> = arena::View<'v>;

    #[inline(always)]
    fn view(vectors: &Vectors) -> arena::View<'_> {
        match vectors {
            Vectors::Fixed(arena) if arena.item() == W => arena.view(),
            _ => unreachable!("the shape is that of the vectors"),
        }
    }

    #[inline(always)]
    fn hint(view: arena::View<'_>, number: u64) -> *const u32 {
        view.address::<W>(number)
    }

    #[inline(always)]
    unsafe fn same(view: arena::View<'_>, number: u64, state: &[Slot]) -> bool {
        // SAFETY: the caller's promise, and `view` was made for items of `W` slots.
        let stored = unsafe { &*view.address::<W>(number).cast::<[Slot; W]>() };
        let Some(state) = state.first_chunk::<W>() else { return false };
        (0..W).fold(0, |sum, slot| sum | (stored[slot] ^ state[slot])) == 0
    }

    #[inline(always)]
    unsafe fn target(states: &States, index: usize) -> &[Slot] {
        // SAFETY: the caller's promise: the list holds more than `index` states of `W` slots.
        unsafe { states.slots().get_unchecked(index * W..index * W + W) }
    }
}

/// States of any width.
#[derive(Clone, Copy)]
struct Any;

impl Shape for Any {
    type View<'v> = &'v Vectors;

    #[inline(always)]
    fn view(vectors: &Vectors) -> &Vectors {
        vectors
    }

    #[inline(always)]
    fn hint(view: &Vectors, number: u64) -> *const u32 {
        view.hint(number)
    }

    #[inline(always)]
    unsafe fn same(view: &Vectors, number: u64, state: &[Slot]) -> bool {
        // SAFETY: the caller's promise.
        unsafe { view.get(number) == state }
    }

    #[inline(always)]
    unsafe fn target(states: &States, index: usize) -> &[Slot] {
        states.get(index)
    }
}

/// Where a search has come to.
enum Found {
    /// The state is there, under this number.
    There(u64),
    /// It is not in any bucket up to this one, nor before its first empty entry, this one.
    Absent(u64, usize),
}

/// Successors that are looked up together: enough to hide the way to memory, few enough
/// for their lines to stay in the first cache.
const GROUP: usize = 64;

/// No number.
pub(crate) const NONE: u64 = u64::MAX;

impl Tables {
    /// Looks for a state from bucket `from` on.
    #[inline(always)]
    fn search<L: Lanes, S: Shape>(&self, lanes: L, _shape: S, mixed: u64, from: u64, state: &[Slot]) -> Found {
        let index = self.index.view();
        let (tag, mask) = (index.tag(mixed), index.mask);
        let mut at = from;
        loop {
            let bucket = index.bucket(at);
            let (mut hits, empty) = lanes.scan(bucket, tag, mask);
            while hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], mask);
                // SAFETY: a settled entry was released after its vector was written (I2).
                if unsafe { S::same(S::view(&self.vectors), number, state) } {
                    return Found::There(number);
                }
                hits &= hits - 1;
            }
            if empty != 0 {
                return Found::Absent(at, empty.trailing_zeros() as usize);
            }
            at = index.next(at);
        }
    }

    /// Inserts a state that was not there when bucket `from` was last searched. Room for
    /// it has been set aside (I3).
    #[inline(always)]
    fn insert<L: Lanes, S: Shape>(
        &self,
        lanes: L,
        shape: S,
        len: &AtomicU64,
        mixed: u64,
        from: u64,
        state: &[Slot],
    ) -> Insert {
        let index = self.index.view();
        let (tag, mask) = (index.tag(mixed), index.mask);
        self.vectors.check(state);
        let mut at = from;
        loop {
            let entry = match self.search(lanes, shape, mixed, at, state) {
                Found::There(number) => return Insert::Seen(StateId::new(number)),
                Found::Absent(bucket, lane) => {
                    at = bucket;
                    &index.bucket(bucket).0[lane % LANES]
                }
            };
            // All entries before this one were looked at, and entries are filled in order: if
            // it is still empty, the state is in no other. If others were quicker, search on
            // from here.
            // I2: claim the entry first, so that a number is taken only for a state that
            // is surely new. All ones cannot be a number plus one: see `Index::new`.
            if entry.compare_exchange(0, tag | !mask, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                let number = len.fetch_add(1, Ordering::Relaxed);
                // SAFETY: room for this number was set aside (I3), only this thread has it,
                // and it is told to nobody before the entry is released below.
                unsafe { self.vectors.write(number, state) };
                entry.store(tag | (number as u32 + 1), Ordering::Release);
                return Insert::New(StateId::new(number));
            }
        }
    }

    /// The first two rounds for a group of states: mixes their hashes, and finds for each the
    /// number of the first vector of its tag, whose memory is on its way, or [`NONE`].
    #[inline(always)]
    fn guess<L: Lanes, S: Shape>(
        &self,
        lanes: L,
        hashes: &[u64],
        mixed: &mut [u64; GROUP],
        guesses: &mut [u64; GROUP],
    ) {
        let index = self.index.view();
        let vectors = S::view(&self.vectors);
        let mut further = [0u8; GROUP];
        for (slot, &hash) in hashes.iter().enumerate() {
            mixed[slot] = mix(hash);
            prefetch(index.bucket(index.home(mixed[slot])));
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
            } else if bucket.0[LANES - 1].load(Ordering::Relaxed) != 0 {
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
            self.guess::<L, S>(lanes, hashes, &mut mixed, &mut guesses);
            for slot in 0..hashes.len() {
                // SAFETY: there are as many states as hashes.
                let state = unsafe { S::target(states, group * GROUP + slot) };
                let guess = guesses[slot];
                // SAFETY: a settled entry was released after its vector was written (I2).
                if guess != NONE && unsafe { S::same(vectors, guess, state) } {
                    out.push(guess);
                    continue;
                }
                match self.search(lanes, shape, mixed[slot], self.index.view().home(mixed[slot]), state) {
                    Found::There(number) => out.push(number),
                    Found::Absent(..) => out.push(NONE),
                }
            }
        }
    }

    /// [`find_all`](Self::find_all), made for the width of the states.
    #[inline(always)]
    fn find_shaped<L: Lanes>(&self, lanes: L, states: &States, hashes: &[u64], out: &mut Vec<u64>) {
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
    unsafe fn find_avx512(&self, lanes: x86::Avx512, states: &States, hashes: &[u64], out: &mut Vec<u64>) {
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
        shape: S,
        len: &AtomicU64,
        states: &States,
        hashes: &[u64],
        out: &mut Vec<Insert>,
    ) {
        let index = self.index.view();
        let vectors = S::view(&self.vectors);
        out.reserve(hashes.len());
        let answers = &mut out.spare_capacity_mut()[..hashes.len()];
        let (mut mixed, mut guesses) = ([0; GROUP], [NONE; GROUP]);
        for (group, (hashes, answers)) in hashes.chunks(GROUP).zip(answers.chunks_mut(GROUP)).enumerate() {
            self.guess::<L, S>(lanes, hashes, &mut mixed, &mut guesses);
            for (slot, answer) in answers.iter_mut().enumerate() {
                // SAFETY: there are as many states as hashes.
                let state = unsafe { S::target(states, group * GROUP + slot) };
                let guess = guesses[slot];
                // SAFETY: a settled entry was released after its vector was written (I2).
                let seen = guess != NONE && unsafe { S::same(vectors, guess, state) };
                answer.write(if seen {
                    Insert::Seen(StateId::new(guess))
                } else {
                    self.insert(lanes, shape, len, mixed[slot], index.home(mixed[slot]), state)
                });
            }
        }
        // SAFETY: the loop has written an answer for every hash, behind those that were there.
        unsafe { out.set_len(out.len() + hashes.len()) };
    }

    /// [`insert_all`](Self::insert_all), made for the width of the states.
    #[inline(always)]
    fn insert_shaped<L: Lanes>(
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
    unsafe fn insert_avx512(
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
    unsafe fn insert_avx2(
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

impl<'a> Plain<'a> {
    /// An empty store for the states of `system`, within `budget`.
    ///
    /// # Panics
    /// When the operating system refuses the first few kilobytes.
    pub fn new(system: &'a dyn System, budget: Arc<Budget>) -> Self {
        Self::for_about(0, system, budget)
    }

    /// The same, with an index for about as many states, if the budget allows it.
    pub(crate) fn for_about(states: u64, system: &'a dyn System, budget: Arc<Budget>) -> Self {
        let least = 8;
        let buckets = Some(Index::buckets_for(states)).filter(|&buckets| Index::bytes(buckets) < budget.limit() / 16);
        let buckets = buckets.unwrap_or(least);
        let index = Index::new(buckets).expect("a few kilobytes");
        let mut tables = Tables { vectors: Vectors::new(system.width()), granted: 0, index };
        // States of no slots never ask for memory, but need an address.
        if system.width() == Width::Fixed(0) {
            assert!(tables.vectors.extend(0, 1, 0), "one page");
        }
        // A budget too small even for this leaves no room at all: the first state is `Full`.
        if !budget.request(Index::bytes(buckets)) {
            tables.index.room = 0;
            tables.index.buckets = 0;
        }
        Plain { system, budget, len: AtomicU64::new(0), pending: AtomicU64::new(0), gate: RwLock::new(tables) }
    }

    fn shared(&self) -> RwLockReadGuard<'_, Tables> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Tables> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets room aside for `states` more states of `slots` slots in all and hands out the
    /// tables, growing them first if need be (I3). Nothing, if the budget is spent.
    fn set_aside(&self, states: u64, slots: u64) -> Option<RwLockReadGuard<'_, Tables>> {
        loop {
            let tables = self.shared();
            let before = self.pending.fetch_add(states, Ordering::AcqRel);
            let wanted = self.len.load(Ordering::Acquire) + before + states;
            let fixed = matches!(tables.vectors, Vectors::Fixed(_));
            if fixed && wanted <= tables.index.room && tables.vectors.used_bytes(wanted) <= tables.granted {
                return Some(tables);
            }
            self.pending.fetch_sub(states, Ordering::AcqRel);
            drop(tables);
            // Vectors of varying width are few and small enough to take the gate each time.
            let mut tables = self.alone();
            if !self.grow(&mut tables, states, slots) {
                return None;
            }
            if !fixed {
                self.pending.fetch_add(states, Ordering::AcqRel);
                return Some(RwLockWriteGuard::downgrade(tables));
            }
        }
    }

    /// Makes room for `states` more states of `slots` slots in all.
    fn grow(&self, tables: &mut Tables, states: u64, slots: u64) -> bool {
        let len = self.len.load(Ordering::Acquire);
        let used = tables.vectors.used_bytes(len) + tables.vectors.needed_bytes(states, slots);
        if used > tables.granted {
            // In large steps while there is plenty, by the page when there is not.
            let missing = used - tables.granted;
            let step = if used > VECTOR_STEP { VECTOR_STEP } else { 4096 };
            let asked = [missing.next_multiple_of(step), missing].into_iter().find(|&bytes| self.budget.request(bytes));
            let Some(asked) = asked else { return false };
            tables.granted += asked;
        }
        // All that is granted may be used without coming back here.
        let states_ahead = states.max(tables.vectors.fitting(tables.granted).saturating_sub(len));
        if !tables.vectors.extend(len, states_ahead, slots) {
            return false;
        }
        len + states <= tables.index.room || self.grow_index(tables, len + states)
    }

    /// Replaces the index by one with room for `wanted` numbers.
    fn grow_index(&self, tables: &mut Tables, wanted: u64) -> bool {
        let old = tables.index.buckets;
        if old == 0 {
            return false;
        }
        for buckets in tables.index.next_sizes(wanted).into_iter().flatten() {
            if !self.budget.request(Index::bytes(buckets) - Index::bytes(old)) {
                continue;
            }
            if !tables.index.resize(buckets) {
                self.budget.release(Index::bytes(buckets) - Index::bytes(old));
            }
            self.enter_all(tables);
            return wanted <= tables.index.room;
        }
        // No memory to grow: fill the last entries instead.
        tables.index.fill_up();
        wanted <= tables.index.room
    }

    /// Enters every state into an empty index.
    fn enter_all(&self, tables: &mut Tables) {
        /// States that are hashed together.
        const STRETCH: u64 = 256;
        let len = self.len.load(Ordering::Acquire);
        let mut scratch = self.system.scratch();
        let mut states = States::new(self.system.width());
        let mut hashes = Vec::new();
        let mut start = 0;
        while start < len {
            states.clear();
            hashes.clear();
            // SAFETY: the gate is held alone and all numbers below `len` are written.
            unsafe { tables.vectors.read(start..len.min(start + STRETCH), &mut states) };
            self.system.hashes(&mut scratch, &states, &mut hashes);
            for hash in &mut hashes {
                *hash = mix(*hash);
                prefetch(tables.index.view().bucket(tables.index.view().home(*hash)));
            }
            for (number, &mixed) in (start..).zip(&hashes) {
                tables.index.enter(mixed, number);
            }
            start += hashes.len() as u64;
        }
    }

    /// Appends for each state its number, or [`NONE`] if it is not there.
    pub(crate) fn find_each(&self, states: &States, hashes: &[u64], out: &mut Vec<u64>) {
        debug_assert_eq!(states.len(), hashes.len());
        let tables = self.shared();
        if self.len() == 0 {
            out.resize(out.len() + hashes.len(), NONE);
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            unsafe { tables.find_avx512(avx512, states, hashes, out) };
            return;
        }
        tables.find_shaped(BASELINE, states, hashes, out);
    }

    /// Inserts many states and appends an answer for each; or nothing at all, and then it says
    /// `false`, if there is no room for all of them.
    pub(crate) fn insert_each(&self, states: &States, hashes: &[u64], out: &mut Vec<Insert>) -> bool {
        debug_assert_eq!(states.len(), hashes.len());
        let count = states.len() as u64;
        let Some(tables) = self.set_aside(count, states.slots().len() as u64) else { return false };
        self.insert_into(&tables, states, hashes, out);
        self.pending.fetch_sub(count, Ordering::AcqRel);
        true
    }

    fn insert_into(&self, tables: &Tables, states: &States, hashes: &[u64], out: &mut Vec<Insert>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            unsafe { tables.insert_avx512(avx512, &self.len, states, hashes, out) };
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx2) = x86::Avx2::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            unsafe { tables.insert_avx2(avx2, &self.len, states, hashes, out) };
            return;
        }
        tables.insert_shaped(BASELINE, &self.len, states, hashes, out);
    }
}

impl Store for Plain<'_> {
    fn insert(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let mixed = mix(hash);
        match self.set_aside(1, state.len() as u64) {
            Some(tables) => {
                let home = tables.index.view().home(mixed);
                let answer = tables.insert(BASELINE, Any, &self.len, mixed, home, state);
                self.pending.fetch_sub(1, Ordering::AcqRel);
                answer
            }
            None => match self.find_mixed(state, mixed) {
                Some(id) => Insert::Seen(id),
                None => Insert::Full,
            },
        }
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        if !self.insert_each(batch.targets(), batch.hashes(), out) {
            // Not all of them would fit, but most may be there already.
            insert_one_by_one(self, scratch, block, batch, out);
        }
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        self.find_mixed(state, mix(hash))
    }

    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn bytes(&self) -> Bytes {
        let tables = self.shared();
        let used = tables.vectors.used_bytes(self.len());
        Bytes::new()
            .with("vectors", used)
            .with("index", Index::bytes(tables.index.buckets))
            .with("reserve", tables.granted.saturating_sub(used))
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut tables = self.alone();
        let len = self.len();
        let old = tables.vectors.used_bytes(len);
        let new = match (recoding.from, recoding.to) {
            (Width::Fixed(_), Width::Fixed(to)) => len * to as u64 * 4,
            // How long each will be is known only when it is translated: both are there.
            _ => 3 * old,
        };
        let more = new.saturating_sub(tables.granted);
        // New pages, which may be large ones, are there before old ones are given back.
        let meanwhile = old.min(REWRITE_AHEAD);
        if !self.budget.request(more + meanwhile) {
            return false;
        }
        let recoded = tables.vectors.recode(len, recoding);
        self.budget.release(if recoded { meanwhile } else { more + meanwhile });
        if !recoded {
            return false;
        }
        tables.granted += more;
        // What is granted and not used has addresses in the new layout too, or is given back (I3).
        let ahead = tables.vectors.fitting(tables.granted).saturating_sub(len);
        if !tables.vectors.extend(len, ahead, 0) {
            let used = tables.vectors.used_bytes(len);
            self.budget.release(tables.granted - used);
            tables.granted = used;
        }
        // Numbers stay, and so do hashes: the index is as true as before.
        true
    }
}

impl Plain<'_> {
    fn find_mixed(&self, state: &[Slot], mixed: u64) -> Option<StateId> {
        let tables = self.shared();
        if tables.index.buckets == 0 {
            return None;
        }
        match tables.search(BASELINE, Any, mixed, tables.index.view().home(mixed), state) {
            Found::There(number) => Some(StateId::new(number)),
            Found::Absent(..) => None,
        }
    }
}

impl Recall for Plain<'_> {
    fn recall(&self, _scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let tables = self.shared();
        let len = self.len();
        for id in ids {
            assert!(id.get() < len, "{id:?} is not one of {len} states");
            // SAFETY: the caller has the id from an insertion that has finished, so its
            // vector was written before.
            out.push(unsafe { tables.vectors.get(id.get()) });
        }
    }

    fn recall_range(&self, _scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        let tables = self.shared();
        let len = self.len();
        assert!(ids.end <= len, "{ids:?} are not among {len} states");
        let mut next = ids.start;
        while next < ids.end {
            let before = out.len();
            // SAFETY: as above.
            unsafe { tables.vectors.read(next..ids.end, out) };
            next += (out.len() - before) as u64;
        }
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl Drop for Plain<'_> {
    fn drop(&mut self) {
        let tables = self.gate.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.budget.release(tables.granted + Index::bytes(tables.index.buckets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Action;
    use deltamark_testkit::RandomGraph;

    const ROOT: Arrival<'static> = Arrival { parent: None, action: Action(0) };

    /// State `number` of these tests.
    fn state(number: u64) -> [Slot; 2] {
        [number as Slot, !(number as Slot)]
    }

    /// All states hash to few values, so that buckets overflow and tags collide (I1).
    fn poor_hash(number: u64) -> u64 {
        number % 5
    }

    #[test]
    fn states_of_the_same_hash_are_kept_apart() {
        let system = RandomGraph::of_width(1, Width::Fixed(2), 2);
        let plain = Plain::new(&system, Arc::new(Budget::unlimited()));
        let mut scratch = plain.scratch();
        // Fewer than the smallest index holds: growing would enter them by the system's hash.
        for round in 0..2 {
            for number in 0..100 {
                let answer = plain.insert(&mut scratch, &state(number), poor_hash(number), &ROOT);
                let id = StateId::new(number);
                assert_eq!(answer, if round == 0 { Insert::New(id) } else { Insert::Seen(id) });
            }
        }
        assert_eq!(plain.find(&mut scratch, &state(100), poor_hash(100)), None);
    }

    #[test]
    fn threads_never_enter_a_state_twice() {
        // Two threads start together and run in loose step: they meet at every state.
        let states = if cfg!(miri) { 60 } else { 200_000 };
        let system = RandomGraph::of_width(1, Width::Fixed(2), 2);
        let plain = Plain::new(&system, Arc::new(Budget::unlimited()));
        let begin = std::sync::Barrier::new(3);
        let insert_all = |start: u64| {
            begin.wait();
            let (mut system_scratch, mut scratch) = (system.scratch(), plain.scratch());
            let mut new = 0;
            for step in 0..states {
                let state = state((start + step * 7) % states);
                let hash = system.hash(&mut system_scratch, &state);
                match plain.insert(&mut scratch, &state, hash, &ROOT) {
                    Insert::New(_) => new += 1,
                    Insert::Seen(id) => {
                        let mut recalled = States::new(Width::Fixed(2));
                        Recall::recall(&plain, &mut scratch, &[id], &mut recalled);
                        assert_eq!(recalled.get(0), state);
                    }
                    Insert::Full => panic!("there is no limit"),
                }
            }
            new
        };
        let new: u64 = std::thread::scope(|scope| {
            let insert_all = &insert_all;
            let threads: Vec<_> = (0..3).map(|start| scope.spawn(move || insert_all(start / 2 * 11))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!((new, plain.len()), (states, states));
    }

    #[test]
    fn what_is_held_is_what_the_budget_granted() {
        let budget = Arc::new(Budget::unlimited());
        let system = RandomGraph::of_width(1, Width::Fixed(2), 2);
        let plain = Plain::new(&system, Arc::clone(&budget));
        let (mut system_scratch, mut scratch) = (system.scratch(), plain.scratch());
        for number in 0..if cfg!(miri) { 300 } else { 300_000 } {
            let hash = system.hash(&mut system_scratch, &state(number));
            plain.insert(&mut scratch, &state(number), hash, &ROOT);
            if number % 1000 == 0 {
                assert_eq!(plain.bytes().total(), budget.used());
            }
        }
        assert_eq!(budget.peak(), budget.used(), "growing never holds more than the result");
        drop(plain);
        assert_eq!(budget.used(), 0);
    }
}
