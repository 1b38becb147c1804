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
//! Vectors never move. The index is a function of the vectors: when it is full it is given
//! back, a larger one is taken, and all numbers are entered again. So growing never needs
//! a second copy of anything, and it may happen in small steps: an index of 2 MB and more
//! grows by a quarter, which keeps it between 72 and 90 per cent full.
//!
//! # Invariants
//! * I1: a number is in the index exactly once, in the first bucket from its hash on that
//!   had an empty entry when it came; a bucket with an empty entry ends every search.
//! * I2: an entry whose number is all ones is being written: its vector is not there yet.
//!   Who meets one with its own tag waits. So two threads never enter the same state twice.
//! * I3: whoever inserts holds the gate shared, and room for what it may insert has been
//!   set aside; growing and recoding hold the gate alone.
//!
//! # When to choose it
//! Whenever the run fits into memory. 4.4 to 5.6 bytes a state for the index; a look-up
//! touches one line of the index and one vector.

use crate::bucket::{Bucket, LANES, Lanes, prefetch};
use crate::region::Region;
use crate::vectors::Vectors;
use deltamark_core::{
    Arrival, Batch, Block, Budget, Bytes, Guarantee, Insert, Recall, Recoding, Scratch, Slot, StateId, Store, States,
    System, Width, hash::mix,
};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
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
    /// How often the states were recoded.
    epoch: u64,
    /// Bytes of vectors that the budget granted.
    granted: u64,
    index: Index,
}

/// The hash table from states to numbers.
struct Index {
    region: Region,
    buckets: u64,
    /// How many low bits of an entry hold the number plus one.
    number_bits: u32,
    /// How many numbers may be entered before it must grow.
    room: u64,
}

/// Successors that are looked up together: enough to keep the memory system busy, few
/// enough for their lines to stay in the first cache.
const GROUP: usize = 32;
/// Vectors are asked for in steps of this many bytes.
const VECTOR_STEP: u64 = 256 << 10;
/// An index of fewer buckets doubles, a larger one grows by a quarter.
const SMALL: u64 = 1 << 15;
/// An index of fewer buckets stays in the cache, where prefetching only costs.
const CACHED: u64 = 1 << 13;

/// How many numbers an index of this many buckets takes: nine tenths of its entries.
const fn room(buckets: u64) -> u64 {
    buckets * LANES as u64 / 10 * 9
}

/// How many it takes when the budget does not allow it to grow.
const fn last_room(buckets: u64) -> u64 {
    buckets * LANES as u64 / 32 * 31
}

impl Index {
    fn bytes(buckets: u64) -> u64 {
        buckets * size_of::<Bucket>() as u64
    }

    fn new(buckets: u64) -> Option<Self> {
        let region = Region::zeroed(Self::bytes(buckets) as usize)?;
        // Numbers plus one, and above them the mark of I2, must be told apart.
        let number_bits = (buckets * LANES as u64 + 2).ilog2() + 1;
        Some(Index { region, buckets, number_bits, room: room(buckets) })
    }

    #[inline(always)]
    fn bucket(&self, number: u64) -> &Bucket {
        debug_assert!(number < self.buckets);
        // SAFETY: the region was made for `buckets` buckets, is aligned to pages, and its
        // zeroes are valid entries.
        unsafe { &*self.region.as_ptr().cast::<Bucket>().add(number as usize) }
    }

    /// The bucket where a search begins: the upper bits of the hash, scaled.
    #[inline(always)]
    fn home(&self, mixed: u64) -> u64 {
        ((u128::from(mixed) * u128::from(self.buckets)) >> 64) as u64
    }

    /// The bits of an entry that hold the tag.
    #[inline(always)]
    fn tag_mask(&self) -> u32 {
        (u64::from(u32::MAX) << self.number_bits) as u32
    }

    /// The tag: the lower bits of the hash, where [`home`](Self::home) does not look.
    #[inline(always)]
    fn tag(&self, mixed: u64) -> u32 {
        (mixed << self.number_bits) as u32 & self.tag_mask()
    }

    #[inline(always)]
    fn next(&self, bucket: u64) -> u64 {
        if bucket + 1 == self.buckets { 0 } else { bucket + 1 }
    }

    /// Enters a number that is not there; nobody else uses the index.
    #[inline]
    fn enter(&mut self, mixed: u64, number: u64) {
        let entry = self.tag(mixed) | (number as u32 + 1);
        let mut home = self.home(mixed);
        loop {
            let scan = FASTEST.scan(self.bucket(home), 0, 0);
            if scan.empty != 0 {
                let lane = scan.empty.trailing_zeros() as usize;
                self.bucket(home).0[lane].store(entry, Ordering::Relaxed);
                return;
            }
            home = self.next(home);
        }
    }
}

/// The comparison every processor of this kind can do.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const FASTEST: crate::bucket::x86::Sse2 = crate::bucket::x86::Sse2;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
const FASTEST: crate::bucket::Scalar = crate::bucket::Scalar;

/// How two states are compared.
trait Shape: Copy {
    /// Whether the stored state is this one.
    ///
    /// # Safety
    /// As for [`Vectors::get`].
    unsafe fn equal(self, vectors: &Vectors, number: u64, state: &[Slot]) -> bool;

    fn same(stored: &[Slot], state: &[Slot]) -> bool;
    fn copy(stored: &mut [Slot], state: &[Slot]);
}

/// States of `W` slots, known to the compiler.
#[derive(Clone, Copy)]
struct Narrow<const W: usize>;

impl<const W: usize> Shape for Narrow<W> {
    #[inline(always)]
    unsafe fn equal(self, vectors: &Vectors, number: u64, state: &[Slot]) -> bool {
        // SAFETY: passed on.
        Self::same(unsafe { vectors.get(number) }, state)
    }

    #[inline(always)]
    fn same(stored: &[Slot], state: &[Slot]) -> bool {
        let (Some(stored), Some(state)) = (stored.first_chunk::<W>(), state.first_chunk::<W>()) else {
            unreachable!("states of a fixed-width system have its width");
        };
        (0..W).fold(0, |difference, slot| difference | (stored[slot] ^ state[slot])) == 0
    }

    #[inline(always)]
    fn copy(stored: &mut [Slot], state: &[Slot]) {
        stored[..W].copy_from_slice(&state[..W]);
    }
}

/// States of any width.
#[derive(Clone, Copy)]
struct Any;

impl Shape for Any {
    #[inline(always)]
    unsafe fn equal(self, vectors: &Vectors, number: u64, state: &[Slot]) -> bool {
        // SAFETY: passed on.
        unsafe { vectors.get(number) == state }
    }

    #[inline(always)]
    fn same(stored: &[Slot], state: &[Slot]) -> bool {
        &stored[..state.len()] == state
    }

    #[inline(always)]
    fn copy(stored: &mut [Slot], state: &[Slot]) {
        stored[..state.len()].copy_from_slice(state);
    }
}

/// Successors whose buckets are being fetched.
#[derive(Default)]
struct Group {
    len: usize,
    positions: [usize; GROUP],
    mixed: [u64; GROUP],
    homes: [u64; GROUP],
}

/// States that this thread has met lately, with their numbers.
///
/// In breadth-first order a state tends to be reached again soon: two steps that do not
/// touch each other lead to it in either order. This small table stays in the cache and
/// answers for most of them without touching index or vectors.
#[derive(Default)]
struct Recent {
    epoch: u64,
    width: usize,
    numbers: Vec<u32>,
    states: Vec<Slot>,
}

impl Recent {
    /// Forgets everything if the states have changed their layout.
    fn prepare(&mut self, epoch: u64, width: Width) {
        let Width::Fixed(width) = width else { return };
        if self.numbers.is_empty() || self.epoch != epoch || self.width != width {
            let places = RECENT / (4 + 4 * width);
            let places = if places < 64 { 0 } else { 1 << places.ilog2() };
            *self = Recent { epoch, width, numbers: vec![0; places], states: vec![0; places * width] };
        }
    }

    #[inline(always)]
    fn get<S: Shape>(&self, _shape: S, mixed: u64, state: &[Slot]) -> Option<u64> {
        if self.numbers.is_empty() { return None; }
        let place = mixed as usize & (self.numbers.len() - 1);
        let number = self.numbers[place];
        if number != 0 && S::same(&self.states[place * state.len()..], state) { Some(u64::from(number) - 1) } else { None }
    }

    #[inline(always)]
    fn put<S: Shape>(&mut self, _shape: S, mixed: u64, state: &[Slot], number: u64) {
        if self.numbers.is_empty() { return; }
        let place = mixed as usize & (self.numbers.len() - 1);
        self.numbers[place] = number as u32 + 1;
        S::copy(&mut self.states[place * state.len()..], state);
    }
}

/// Bytes that recent states may take in each thread: half of a usual second cache.
const RECENT: usize = 512 << 10;

/// Where a search has come to.
enum Found {
    /// The state is there, under this number.
    There(u64),
    /// It is not in any bucket up to this one, which has an empty entry.
    Absent(u64),
}

impl Tables {
    /// Looks for a state from bucket `from` on.
    #[inline(always)]
    fn search<L: Lanes, S: Shape>(&self, lanes: L, shape: S, mixed: u64, from: u64, state: &[Slot]) -> Found {
        let index = &self.index;
        let (tag, mask) = (index.tag(mixed), index.tag_mask());
        let mut at = from;
        loop {
            let bucket = index.bucket(at);
            let scan = lanes.scan(bucket, tag, mask);
            let mut hits = scan.hits;
            while hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize], mask);
                // SAFETY: a settled entry was released after its vector was written (I2).
                if unsafe { shape.equal(&self.vectors, number, state) } {
                    return Found::There(number);
                }
                hits &= hits - 1;
            }
            if scan.empty != 0 {
                return Found::Absent(at);
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
        let index = &self.index;
        let (tag, mask) = (index.tag(mixed), index.tag_mask());
        let mut at = from;
        loop {
            match self.search(lanes, shape, mixed, at, state) {
                Found::There(number) => return Insert::Seen(StateId::new(number)),
                Found::Absent(bucket) => at = bucket,
            }
            let bucket = index.bucket(at);
            let Some(entry) = bucket.0.iter().find(|entry| entry.load(Ordering::Relaxed) == 0) else {
                continue; // Others filled the bucket meanwhile: search on from here.
            };
            // I2: claim the entry first, so that a number is taken only for a state that
            // is surely new. All ones cannot be a number plus one: see `Index::new`.
            let claim = tag | !mask;
            if entry.compare_exchange(0, claim, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                let number = len.fetch_add(1, Ordering::Relaxed);
                // SAFETY: room for this number was set aside (I3), only this thread has it,
                // and it is told to nobody before the entry is released below.
                unsafe { self.vectors.write(number, state) };
                entry.store(tag | (number as u32 + 1), Ordering::Release);
                return Insert::New(StateId::new(number));
            }
        }
    }

    /// Inserts the successors of a batch. Room for them has been set aside (I3).
    #[inline(always)]
    fn insert_all<L: Lanes, S: Shape>(
        &self,
        lanes: L,
        shape: S,
        len: &AtomicU64,
        recent: &mut Recent,
        batch: &Batch,
        out: &mut Vec<Insert>,
    ) {
        let first = out.len();
        out.resize(first + batch.len(), Insert::Full);
        let out = &mut out[first..];
        let mut group = Group::default();
        for (position, &hash) in batch.hashes().iter().enumerate() {
            let mixed = mix(hash);
            if let Some(number) = recent.get(shape, mixed, batch.target(position)) {
                out[position] = Insert::Seen(StateId::new(number));
                continue;
            }
            let home = self.index.home(mixed);
            if self.index.buckets > CACHED {
                prefetch(self.index.bucket(home));
            }
            group.positions[group.len] = position;
            group.mixed[group.len] = mixed;
            group.homes[group.len] = home;
            group.len += 1;
            if group.len == GROUP {
                self.insert_group(lanes, shape, len, recent, &group, batch, out);
                group.len = 0;
            }
        }
        self.insert_group(lanes, shape, len, recent, &group, batch, out);
    }

    /// Looks up the states of a group, whose buckets are on their way, and inserts those
    /// that are new.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn insert_group<L: Lanes, S: Shape>(
        &self,
        lanes: L,
        shape: S,
        len: &AtomicU64,
        recent: &mut Recent,
        group: &Group,
        batch: &Batch,
        out: &mut [Insert],
    ) {
        let index = &self.index;
        let mask = index.tag_mask();
        let mut guesses = [u64::MAX; GROUP];
        for slot in 0..group.len {
            let bucket = index.bucket(group.homes[slot]);
            let scan = lanes.scan(bucket, index.tag(group.mixed[slot]), mask);
            if scan.hits != 0 {
                guesses[slot] = settled(&bucket.0[scan.hits.trailing_zeros() as usize], mask);
                if index.buckets > CACHED {
                    prefetch(self.vectors.hint(guesses[slot]));
                }
            }
        }
        for slot in 0..group.len {
            let state = batch.target(group.positions[slot]);
            let guess = guesses[slot];
            // SAFETY: a settled entry was released after its vector was written (I2).
            let hit = guess != u64::MAX && unsafe { shape.equal(&self.vectors, guess, state) };
            let answer = if hit {
                Insert::Seen(StateId::new(guess))
            } else {
                self.insert(lanes, shape, len, group.mixed[slot], group.homes[slot], state)
            };
            if let Insert::New(id) | Insert::Seen(id) = answer {
                recent.put(shape, group.mixed[slot], state, id.get());
            }
            out[group.positions[slot]] = answer;
        }
    }

    /// [`insert_all`](Self::insert_all), made for the width of the states.
    #[inline(always)]
    fn insert_shaped<L: Lanes>(&self, lanes: L, len: &AtomicU64, recent: &mut Recent, batch: &Batch, out: &mut Vec<Insert>) {
        match batch.targets().width() {
            Width::Fixed(1) => self.insert_all(lanes, Narrow::<1>, len, recent, batch, out),
            Width::Fixed(2) => self.insert_all(lanes, Narrow::<2>, len, recent, batch, out),
            Width::Fixed(3) => self.insert_all(lanes, Narrow::<3>, len, recent, batch, out),
            Width::Fixed(4) => self.insert_all(lanes, Narrow::<4>, len, recent, batch, out),
            Width::Fixed(8) => self.insert_all(lanes, Narrow::<8>, len, recent, batch, out),
            _ => self.insert_all(lanes, Any, len, recent, batch, out),
        }
    }

    /// [`insert_all`](Self::insert_all) with the instructions of AVX2.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn insert_avx2(&self, lanes: crate::bucket::x86::Avx2, len: &AtomicU64, recent: &mut Recent, batch: &Batch, out: &mut Vec<Insert>) {
        self.insert_shaped(lanes, len, recent, batch, out);
    }
}

/// The number in an entry that carries a tag, once it has been written (I2).
#[inline(always)]
fn settled(entry: &AtomicU32, mask: u32) -> u64 {
    loop {
        let number = entry.load(Ordering::Acquire) & !mask;
        if number != !mask {
            return u64::from(number) - 1;
        }
        std::hint::spin_loop();
    }
}

impl<'a> Plain<'a> {
    /// An empty store for the states of `system`, within `budget`.
    ///
    /// # Panics
    /// When the operating system refuses the first few kilobytes.
    pub fn new(system: &'a dyn System, budget: Arc<Budget>) -> Self {
        let buckets = 8;
        let index = Index::new(buckets).expect("a few kilobytes");
        let mut tables = Tables { vectors: Vectors::new(system.width()), epoch: 0, granted: 0, index };
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
        if wanted >= u64::from(u32::MAX >> 1) || old == 0 {
            return false; // An entry has 32 bits.
        }
        let step = if old < SMALL { old * 2 } else { old + old / 4 };
        let needed = (wanted * 10).div_ceil(9 * LANES as u64) + 1;
        for buckets in [step.max(needed), needed] {
            if buckets <= old || !self.budget.request(Index::bytes(buckets) - Index::bytes(old)) {
                continue;
            }
            // The old index is given back before the new one is taken.
            tables.index.region = Region::zeroed(1).expect("one page");
            match Index::new(buckets) {
                Some(index) => tables.index = index,
                None => {
                    self.budget.release(Index::bytes(buckets) - Index::bytes(old));
                    tables.index = Index::new(old).expect("memory that was just given back");
                }
            }
            self.enter_all(tables);
            return wanted <= tables.index.room;
        }
        // No memory to grow: fill the last entries instead.
        tables.index.room = last_room(old);
        wanted <= tables.index.room
    }

    /// Enters every state into an empty index.
    fn enter_all(&self, tables: &mut Tables) {
        /// States that are hashed together.
        const STRETCH: u64 = 256;
        /// How far ahead buckets are fetched.
        const AHEAD: usize = 16;
        let len = self.len.load(Ordering::Acquire);
        let mut scratch = self.system.scratch();
        let mut states = States::new(self.system.width());
        let mut hashes = Vec::new();
        for start in (0..len).step_by(STRETCH as usize) {
            let end = len.min(start + STRETCH);
            states.clear();
            hashes.clear();
            for number in start..end {
                // SAFETY: the gate is held alone and all numbers below `len` are written.
                states.push(unsafe { tables.vectors.get(number) });
            }
            self.system.hashes(&mut scratch, &states, &mut hashes);
            for hash in &mut hashes {
                *hash = mix(*hash);
            }
            for (offset, &mixed) in hashes.iter().enumerate() {
                if let Some(&later) = hashes.get(offset + AHEAD) {
                    prefetch(tables.index.bucket(tables.index.home(later)));
                }
                tables.index.enter(mixed, start + offset as u64);
            }
        }
    }

    fn insert_batch_into(&self, tables: &Tables, recent: &mut Recent, batch: &Batch, out: &mut Vec<Insert>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx2) = crate::bucket::x86::Avx2::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            unsafe { tables.insert_avx2(avx2, &self.len, recent, batch, out) };
            return;
        }
        tables.insert_shaped(FASTEST, &self.len, recent, batch, out);
    }
}

impl Store for Plain<'_> {
    fn insert(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let mixed = mix(hash);
        match self.set_aside(1, state.len() as u64) {
            Some(tables) => {
                let home = tables.index.home(mixed);
                let answer = tables.insert(FASTEST, Any, &self.len, mixed, home, state);
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
        let states = batch.len() as u64;
        if let Some(tables) = self.set_aside(states, batch.targets().slots().len() as u64) {
            let recent: &mut Recent = scratch.get();
            recent.prepare(tables.epoch, batch.targets().width());
            self.insert_batch_into(&tables, recent, batch, out);
            self.pending.fetch_sub(states, Ordering::AcqRel);
            return;
        }
        // Not all of them would fit, but most may be there already: one by one.
        for index in 0..batch.len() {
            let source = batch.source(index);
            let arrival =
                Arrival { parent: Some((block.id(source), block.state(source))), action: batch.action(index) };
            let answer = self.insert(scratch, batch.target(index), batch.hash(index), &arrival);
            out.push(answer);
            if answer == Insert::Full {
                return;
            }
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

    fn scratch(&self) -> Scratch {
        Scratch::new(Recent::default())
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
        if !self.budget.request(more) {
            return false;
        }
        tables.granted += more;
        tables.vectors.recode(len, recoding);
        tables.epoch += 1;
        let buckets = tables.index.buckets;
        let room = tables.index.room;
        tables.index.region = Region::zeroed(1).expect("one page");
        tables.index = Index::new(buckets).expect("memory that was just given back");
        tables.index.room = room;
        self.enter_all(&mut tables);
        true
    }
}

impl Plain<'_> {
    fn find_mixed(&self, state: &[Slot], mixed: u64) -> Option<StateId> {
        let tables = self.shared();
        if tables.index.buckets == 0 {
            return None;
        }
        match tables.search(FASTEST, Any, mixed, tables.index.home(mixed), state) {
            Found::There(number) => Some(StateId::new(number)),
            Found::Absent(_) => None,
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
