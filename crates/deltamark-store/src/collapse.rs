//! # The idea
//! States are made of components (processes, channels, groups of places), and a component
//! takes few values compared with the state as a whole. So each value is kept once, in a table
//! for its component, and a state is the tuple of its numbers there, in just as many bits as
//! the numbers need. After SPIN's COLLAPSE (G. J. Holzmann, *State Compression in SPIN:
//! Recursive Indexing and Compression Training Runs*, 1997) and the collapsing scheme of
//! Evangelista and Pradat-Peyre's work on Δ-markings. What is done differently: fields are as
//! wide as the tables need at the time and widen without a copy; a component whose values
//! hardly repeat is kept as it is; no table has a size that must be given; and a state is not
//! cut up and looked up component by component to be found, but found by its own hash and
//! compared with the tuple, so that only new states touch the tables.
//!
//! # Layout in memory
//! ```text
//! components  #0 [7] [6] [12] …   #1 [0|3] [1|3] …     one table a component
//!                 └──────┐  ┌──────────┘
//! tuples      #0 (0,0) #1 (0,1) #2 (1,1) …             bits, one tuple behind the other
//!                         ▲
//! index       bucket [ tag|1  tag|0  tag|2  0 … ]      as in `plain`
//! ```
//! Components are where the system says they are; where it says nothing, each slot is one.
//! How tuples lie and widen: see `tuples.rs`; the tables: see `intern.rs`.
//!
//! # Growth
//! Tuples and values never move. The index is entered again when it is full, from the states
//! that the tuples give back, as in `plain`.
//!
//! # Invariants
//! * I1: a number is in the index exactly once, in the first bucket from its hash on that had
//!   an empty entry when it came; a bucket with an empty entry ends every search.
//! * I2: everything is behind one lock. A batch is looked up while others look up theirs; only
//!   what was not found, nearly all of it new, is added alone. Ids are 0, 1, 2 … in the order of
//!   insertion.
//!
//! # When to choose it
//! When states are wide, or made of parts that repeat, and must be given back at once: at most
//! 80 per cent of `plain`'s memory on the nets we measured, index included, in 1.3 to 2.3 times its
//! time; 4 per cent for states of 200 slots, in three times its time. Where nothing repeats it packs
//! the slots as tightly as their values allow.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::bucket::x86;
use crate::bucket::{Bucket, LANES, Lanes, prefetch};
use crate::index::{BASELINE, Index, IndexView, settled};
use crate::tuples::{GROUP, Group, Tuples};
use deltamark_core::{
    Arrival, Batch, Block, Budget, Bytes, Guarantee, Insert, Recall, Recoding, Scratch, Slot, StateId, States, Store,
    System, Width, hash::mix, store::insert_one_by_one,
};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Components interned, a state as the tuple of their numbers.
pub struct Collapse<'a> {
    system: &'a dyn System,
    budget: Arc<Budget>,
    inner: RwLock<Inner>,
}

struct Inner {
    tuples: Tuples,
    index: Index,
    len: u64,
    width: Width,
}

/// Working memory of a thread.
struct Work {
    /// For each successor of a batch its number, or [`NONE`].
    numbers: Vec<u64>,
}

/// No number.
const NONE: u64 = u64::MAX;
/// The index begins with this many buckets.
const BUCKETS: u64 = Index::FEWEST;
/// States that are recoded before the memory of the old ones is given back.
const PIECE: u64 = 1 << 14;

impl<'a> Collapse<'a> {
    /// An empty store for the states of `system`, within `budget`.
    ///
    /// # Panics
    /// When the operating system refuses the first few kilobytes.
    pub fn new(system: &'a dyn System, budget: Arc<Budget>) -> Self {
        let mut index = Index::new(BUCKETS).expect("a few kilobytes");
        // A budget too small even for this leaves no room at all: the first state is `Full`.
        if !budget.request(Index::bytes(BUCKETS)) {
            index.room = 0;
            index.buckets = 0;
        }
        let width = system.width();
        let tuples = Tuples::new(width, Arc::clone(&budget));
        Collapse { system, budget, inner: RwLock::new(Inner { tuples, index, len: 0, width }) }
    }

    fn shared(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room in the index for `wanted` numbers.
    #[must_use]
    fn make_room(&self, inner: &mut Inner, wanted: u64) -> bool {
        wanted <= inner.index.room || self.grow_index(inner, wanted)
    }

    #[cold]
    fn grow_index(&self, inner: &mut Inner, wanted: u64) -> bool {
        let old = inner.index.buckets;
        if old == 0 {
            return false;
        }
        for buckets in inner.index.next_sizes(wanted).into_iter().flatten() {
            if !self.budget.request(Index::bytes(buckets) - Index::bytes(old)) {
                continue;
            }
            if !inner.index.resize(buckets) {
                self.budget.release(Index::bytes(buckets) - Index::bytes(old));
            }
            self.enter_all(inner);
            return wanted <= inner.index.room;
        }
        // No memory to grow: fill the last entries instead.
        inner.index.fill_up();
        wanted <= inner.index.room
    }

    /// Enters every state into an empty index.
    fn enter_all(&self, inner: &mut Inner) {
        /// States that are hashed together.
        const STRETCH: u64 = 256;
        let mut scratch = self.system.scratch();
        let mut states = States::new(inner.width);
        let mut hashes = Vec::new();
        for start in (0..inner.len).step_by(STRETCH as usize) {
            states.clear();
            hashes.clear();
            inner.read(start..inner.len.min(start + STRETCH), &mut states);
            self.system.hashes(&mut scratch, &states, &mut hashes);
            for hash in &mut hashes {
                *hash = mix(*hash);
                prefetch(inner.index.view().bucket(inner.index.view().home(*hash)));
            }
            for (number, &mixed) in (start..).zip(&hashes) {
                inner.index.enter(mixed, number);
            }
        }
    }

    /// Inserts a state that may be there.
    fn insert_one(&self, inner: &mut Inner, state: &[Slot], mixed: u64) -> Insert {
        inner.check(state);
        // Growing moves buckets, so it comes before the search for one.
        let room = self.make_room(inner, inner.len + 1);
        if inner.index.buckets == 0 {
            return Insert::Full;
        }
        match inner.search(BASELINE, mixed, state) {
            Ok(number) => Insert::Seen(StateId::new(number)),
            Err(_) if !room => Insert::Full,
            Err(place) => inner.add(self.system, state, mixed, place),
        }
    }

    /// Appends for each successor of a batch the number of the first state that may be it and
    /// is, or [`NONE`]: then it is new, most probably.
    fn look_up(&self, inner: &Inner, batch: &Batch, out: &mut Vec<u64>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            unsafe { inner.look_up_avx512(avx512, batch, out) };
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx2) = x86::Avx2::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            unsafe { inner.look_up_avx2(avx2, batch, out) };
            return;
        }
        inner.look_up(BASELINE, batch, out);
    }
}

impl Inner {
    /// Makes sure that a state can be kept.
    #[inline(always)]
    fn check(&self, state: &[Slot]) {
        if let Width::Fixed(width) = self.width {
            assert_eq!(state.len(), width, "a state of a fixed-width system has its width");
        }
    }

    /// The number of a state, or the bucket and lane where it would be entered (I1).
    #[inline(always)]
    fn search<L: Lanes>(&self, lanes: L, mixed: u64, state: &[Slot]) -> Result<u64, (u64, usize)> {
        let index = self.index.view();
        let tag = index.tag(mixed);
        let mut at = index.home(mixed);
        loop {
            let bucket = index.bucket(at);
            let (mut hits, empty) = lanes.scan(bucket, tag, index.mask);
            while hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], index.mask);
                if self.tuples.same(number, state) {
                    return Ok(number);
                }
                hits &= hits - 1;
            }
            if empty != 0 {
                return Err((at, empty.trailing_zeros() as usize));
            }
            at = index.next(at);
        }
    }

    /// Adds a state that a search has not found, at the place it named. The index has room.
    #[inline(always)]
    fn add(&mut self, system: &dyn System, state: &[Slot], mixed: u64, (bucket, lane): (u64, usize)) -> Insert {
        if self.tuples.add(system, state).is_err() {
            return Insert::Full;
        }
        let view = self.index.view();
        let entry = view.tag(mixed) | (self.len as u32 + 1);
        view.bucket(bucket).0[lane % LANES].store(entry, Relaxed);
        self.len += 1;
        Insert::New(StateId::new(self.len - 1))
    }

    /// Looks the successors of a batch up.
    ///
    /// In groups, each in three rounds: fetch the buckets; scan them and fetch the tuples of
    /// the first matches; compare.
    #[inline(always)]
    fn look_up<L: Lanes>(&self, lanes: L, batch: &Batch, out: &mut Vec<u64>) {
        let hashes = batch.hashes();
        assert_eq!(batch.targets().width(), self.width, "successors have the width of the system");
        out.reserve(hashes.len());
        let mut mixed = [0; GROUP];
        let mut guesses = [NONE; GROUP];
        let mut further = [0u8; GROUP];
        for (group, hashes) in hashes.chunks(GROUP).enumerate() {
            let index = self.index.view();
            for (slot, &hash) in hashes.iter().enumerate() {
                mixed[slot] = mix(hash);
                prefetch(index.bucket(index.home(mixed[slot])));
            }
            // One thing at a time: the shorter a loop, the more of its misses overlap.
            let mut overflown = 0;
            for slot in 0..hashes.len() {
                let home = index.home(mixed[slot]);
                let bucket = index.bucket(home);
                guesses[slot] = guess(lanes, index, bucket, mixed[slot]);
                if guesses[slot] == NONE && bucket.0[LANES - 1].load(Relaxed) != 0 {
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
            self.confirm(&mut guesses[..hashes.len()], batch.targets(), group * GROUP);
            out.extend_from_slice(&guesses[..hashes.len()]);
        }
    }

    /// Compares states, from number `start` on, with their guesses, and strikes out those that
    /// are wrong.
    #[inline(always)]
    fn confirm(&self, guesses: &mut [u64], states: &States, start: usize) {
        let mut together = Group::new(&self.tuples);
        for (slot, guess) in guesses.iter_mut().enumerate() {
            if *guess == NONE {
                continue;
            }
            // Nearly all are of the last run, and are compared together when all are fetched.
            if let Some(group) = &mut together
                && group.push(*guess, slot)
            {
                continue;
            }
            if !self.tuples.same(*guess, states.get(start + slot)) {
                *guess = NONE;
            }
        }
        if let (Some(group), Width::Fixed(width)) = (&together, self.width) {
            group.compare(&states.slots()[start * width..], |slot| guesses[slot] = NONE);
        }
    }

    /// Inserts a state that was not found at first sight. The index has room.
    #[inline(always)]
    fn insert_at_last<L: Lanes>(&mut self, lanes: L, system: &dyn System, state: &[Slot], mixed: u64) -> Insert {
        match self.search(lanes, mixed, state) {
            Ok(number) => Insert::Seen(StateId::new(number)),
            Err(place) => self.add(system, state, mixed, place),
        }
    }

    /// [`look_up`](Self::look_up) with the instructions of AVX-512.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn look_up_avx512(&self, lanes: x86::Avx512, batch: &Batch, out: &mut Vec<u64>) {
        self.look_up(lanes, batch, out);
    }

    /// [`look_up`](Self::look_up) with the instructions of AVX2.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn look_up_avx2(&self, lanes: x86::Avx2, batch: &Batch, out: &mut Vec<u64>) {
        self.look_up(lanes, batch, out);
    }

    /// Appends states to `out`.
    fn read(&self, numbers: Range<u64>, out: &mut States) {
        if let Width::Fixed(_) = self.width {
            return self.tuples.read_range(numbers, out);
        }
        let mut state = Vec::new();
        for number in numbers {
            state.clear();
            self.tuples.read(number, &mut state);
            out.push(&state);
        }
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

impl Store for Collapse<'_> {
    fn insert(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64, _arrival: &Arrival<'_>) -> Insert {
        self.insert_one(&mut self.alone(), state, mix(hash))
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let Work { numbers } = scratch.get();
        numbers.clear();
        let inner = self.shared();
        if inner.index.buckets == 0 {
            out.push(Insert::Full);
            return;
        }
        self.look_up(&inner, batch, numbers);
        drop(inner);
        let absent = numbers.iter().filter(|&&number| number == NONE).count() as u64;
        let first = out.len();
        out.extend(numbers.iter().map(|&number| Insert::Seen(StateId::new(number))));
        if absent == 0 {
            return;
        }
        let mut inner = self.alone();
        let wanted = inner.len + absent;
        if !self.make_room(&mut inner, wanted) {
            // Not all of them would fit, but most may be there already.
            drop(inner);
            out.truncate(first);
            return insert_one_by_one(self, scratch, block, batch, out);
        }
        for (index, _) in numbers.iter().enumerate().filter(|(_, number)| **number == NONE) {
            // It may have come with this batch, or from another thread.
            let mixed = mix(batch.hash(index));
            let answer = inner.insert_at_last(BASELINE, self.system, batch.target(index), mixed);
            out[first + index] = answer;
            if answer == Insert::Full {
                out.truncate(first + index + 1);
                return;
            }
        }
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        let inner = self.shared();
        inner.check(state);
        if inner.index.buckets == 0 {
            return None;
        }
        inner.search(BASELINE, mix(hash), state).ok().map(StateId::new)
    }

    fn len(&self) -> u64 {
        self.shared().len
    }

    fn bytes(&self) -> Bytes {
        let inner = self.shared();
        inner.tuples.bytes().with("index", Index::bytes(inner.index.buckets))
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(Work { numbers: Vec::new() })
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut inner = self.alone();
        // What was interned in the old layout means nothing in the new: all is built again, and
        // the memory of the old tuples is given back as it goes.
        let mut old = std::mem::replace(&mut inner.tuples, Tuples::new(recoding.to, Arc::clone(&self.budget)));
        inner.width = recoding.to;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for number in 0..inner.len {
            before.clear();
            old.read(number, &mut before);
            recoding.translate(&before, &mut after);
            if inner.tuples.add(self.system, &after).is_err() {
                return false;
            }
            if number % PIECE == PIECE - 1 {
                old.release_before(number);
            }
        }
        // Numbers stay, and so do hashes: the index is as true as before.
        true
    }
}

impl Recall for Collapse<'_> {
    fn recall(&self, _scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let inner = self.shared();
        ids.iter().for_each(|id| inner.read(id.get()..id.get() + 1, out));
    }

    fn recall_range(&self, _scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        self.shared().read(ids, out);
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl Drop for Collapse<'_> {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.budget.release(Index::bytes(inner.index.buckets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::{Action, Components, Describe, Value, Widen};

    /// Components of one slot, of one, and of two or more; steps are none of its business.
    struct Parts(Width);

    impl Parts {
        /// Few values, as many as there are states, and few pairs.
        fn state(&self, number: u64) -> Vec<Slot> {
            let number = number as Slot;
            // So few that interning pays after a hundred states.
            let few = number % if cfg!(miri) { 2 } else { 7 };
            let mut state = vec![few << 20, number * 3, few << 9, few % 3];
            if self.0 == Width::Varies {
                state.resize(4 + number as usize % 4, few);
            }
            state
        }
    }

    impl System for Parts {
        fn width(&self) -> Width {
            self.0
        }

        fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
            out.push_hashed(Action(0), &self.state(0), 0);
            Ok(())
        }

        fn successors(&self, _scratch: &mut Scratch, _source: &[Slot], _out: &mut Batch) -> Result<(), Widen> {
            Ok(())
        }

        /// Of what another layout has too.
        fn hash(&self, _scratch: &mut Scratch, state: &[Slot]) -> u64 {
            state[1].into()
        }

        fn components(&self) -> Option<&dyn Components> {
            Some(self)
        }

        fn describe(&self) -> &dyn Describe {
            self
        }
    }

    impl Components for Parts {
        fn boundaries(&self, _state: &[Slot], out: &mut Vec<usize>) {
            out.extend([0, 1, 2]);
        }
    }

    impl Describe for Parts {
        fn state(&self, _state: &[Slot]) -> Vec<(String, Value)> {
            Vec::new()
        }

        fn action(&self, _source: &[Slot], _action: Action) -> String {
            String::new()
        }
    }

    #[test]
    fn states_come_back_whatever_is_interned() {
        let count: u64 = if cfg!(miri) { 100 } else { 30_000 };
        for width in [Width::Fixed(4), Width::Varies] {
            let system = Parts(width);
            let budget = Arc::new(Budget::unlimited());
            let store = Collapse::new(&system, Arc::clone(&budget));
            let mut scratch = store.scratch();
            let mut next = 0;
            for start in (0..=count).step_by(10) {
                // Some of an early run, some of the last, new ones but at the end; at the beginning some twice.
                let numbers = (start / 2..start / 2 + 5).chain(start.saturating_sub(15)..count.min(start + 10));
                let (mut block, mut batch, mut answers) = (Block::new(width), Batch::new(width), Vec::new());
                block.push(StateId::new(0), &system.state(0));
                numbers.clone().for_each(|number| batch.push_hashed(Action(0), &system.state(number), number * 3));
                store.insert_batch(&mut scratch, &block, &batch, &mut answers);
                for (answer, number) in answers.into_iter().zip(numbers) {
                    let id = StateId::new(number);
                    assert_eq!(answer, if number < next { Insert::Seen(id) } else { Insert::New(id) });
                    next = next.max(number + 1);
                }
            }
            assert!(store.bytes().parts().iter().any(|&(part, bytes)| part == "components" && bytes > 0));
            assert_eq!(store.bytes().total(), budget.used());
            let mut all = States::new(width);
            store.recall_range(&mut scratch, 0..count, &mut all);
            for (held, number) in all.iter().zip(0..) {
                assert_eq!(held, system.state(number));
                assert_eq!(store.find(&mut scratch, held, number * 3), Some(StateId::new(number)));
                // Another state of the same hash.
                let other = [&[1], &held[1..]].concat();
                assert_eq!(store.find(&mut scratch, &other, number * 3), None);
            }
            let wider = if width == Width::Varies { width } else { Width::Fixed(5) };
            let widen = |old: &[Slot], new: &mut Vec<Slot>| *new = [old, &[9]].concat();
            assert!(store.recode(&Recoding::new(width, wider, String::new(), widen)));
            let mut again = States::new(wider);
            store.recall_range(&mut scratch, 0..count, &mut again);
            assert!(again.iter().eq(all.iter().map(|state| [state, &[9]].concat())));
        }
    }
}
