//! Interned keys of a few words, numbered 0, 1, 2 …: the nodes of `tree` and `compact`.
//!
//! In: keys of `K` words: the bits of a leaf, or the numbers of children. Out: the number of a key,
//! and the key of a number. Invariant: numbers are dense; numbers and keys are permanent.
//!
//! # Layout in memory
//! ```text
//! keys    #0 [ key ] #1 [ key ] …                  in the order found: just enough bits
//!                                                  (`narrow.rs`), or 4·K bytes each (`WholeWords`)
//! index   bucket [ tag|1  tag|0  tag|2  0 … ]      as in `plain`
//! ```
//!
//! # Growth
//! Keys never move, or only under exclusive access. The index is refilled from the keys when it is
//! full.
//!
//! # Invariants
//! Those of [`plain`](crate::plain) with a key in place of a vector: a number is in the index once
//! (I1); an entry whose number is all ones is being written (I2); an interning thread has reserved
//! room, and growth is exclusive (I3). So look-ups are plain loads, and an insertion is one
//! compare-and-swap.

mod group;

use crate::memory::arena::Arena;
use crate::tables::bucket::{Lanes, prefetch, prefetch_as};
use crate::tables::index::Index;
use crate::threads::cooperate::Help;
use deltamark_core::{
    Apart, Budget,
    hash::{mix, slots},
};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The index begins with this many buckets.
const BUCKETS: u64 = Index::FEWEST;

/// Memory for keys is asked for in steps of this many bytes.
const PAGE: u64 = if cfg!(miri) { 64 } else { 4096 };

/// How keys of `K` words are kept, by their numbers.
pub(crate) trait Keys<const K: usize>: Sync {
    /// Whether the index grows in small steps: less memory, and more work.
    const TIGHT: bool;

    /// No keys.
    fn new() -> Self;

    /// The bytes they hold.
    fn bytes(&self) -> u64;

    /// The key of a number that was given out.
    fn get(&self, number: u32) -> [u32; K];

    /// Asks for the memory of the key of a number that may have been given out.
    fn prefetch(&self, number: u32);

    /// Writes the key of a number that only this thread has, and that is not published yet.
    /// There is room for it.
    fn put(&self, number: u64, key: [u32; K]);

    /// The same for keys whose numbers count up from `first`.
    #[inline(always)]
    fn put_all(&self, first: u64, keys: impl Iterator<Item = [u32; K]>) {
        for (number, key) in (first..).zip(keys) {
            self.put(number, key);
        }
    }

    /// Appends the hashes of keys whose numbers were given out.
    fn hashes(&self, numbers: Range<u64>, out: &mut Vec<u64>) {
        out.extend(numbers.map(|number| key_hash(self.get(number as u32))));
    }

    /// Whether there is memory for this many keys.
    fn has_room(&self, keys: u64) -> bool;

    /// Takes memory for this many keys; nobody else uses them.
    fn make_room(&mut self, keys: u64, budget: &Budget) -> bool;
}

/// Keys side by side, a word of 32 bits for each of theirs.
pub(crate) struct WholeWords<const K: usize> {
    keys: Arena,
    /// Bytes granted for them.
    granted: u64,
}

impl<const K: usize> WholeWords<K> {
    /// Bytes of a key.
    const BYTES: u64 = 4 * K as u64;
}

impl<const K: usize> Keys<K> for WholeWords<K> {
    const TIGHT: bool = false;

    fn new() -> Self {
        WholeWords { keys: Arena::new(K), granted: 0 }
    }

    fn bytes(&self) -> u64 {
        self.granted
    }

    #[inline(always)]
    fn get(&self, number: u32) -> [u32; K] {
        // SAFETY: the number was given out, so its key was written before, and is never
        // written again (I2).
        unsafe { self.keys.view().address::<K>(u64::from(number)).cast::<[u32; K]>().read() }
    }

    #[inline(always)]
    fn prefetch(&self, number: u32) {
        prefetch(self.keys.view().address::<K>(number.into()));
    }

    #[inline(always)]
    fn put(&self, number: u64, key: [u32; K]) {
        // SAFETY: room for this number was set aside (I3), only this thread has it, and it is
        // published only after this is written.
        unsafe { self.keys.view().address::<K>(number).cast::<[u32; K]>().write(key) };
    }

    #[inline]
    fn has_room(&self, keys: u64) -> bool {
        keys * Self::BYTES <= self.granted
    }

    fn make_room(&mut self, keys: u64, budget: &Budget) -> bool {
        extend(&self.keys, |bytes| bytes.div_ceil(Self::BYTES), &mut self.granted, keys * Self::BYTES, budget)
    }
}

/// Takes memory so that `granted` bytes of an arena become `wanted` at least; `items` is the number
/// of items in a number of bytes.
pub(crate) fn extend(
    arena: &Arena,
    items: impl Fn(u64) -> u64,
    granted: &mut u64,
    wanted: u64,
    budget: &Budget,
) -> bool {
    if wanted <= *granted {
        return true;
    }
    let missing = wanted - *granted;
    // An eighth ahead while there is plenty, by the byte when there is not.
    let ahead = missing.max(*granted / 8).next_multiple_of(PAGE);
    let Some(asked) = [ahead, missing].into_iter().find(|&bytes| budget.request(bytes)) else { return false };
    if !arena.extend(items(*granted + asked)) {
        budget.release(asked);
        return false;
    }
    *granted += asked;
    true
}

/// Keys, each once.
pub(crate) struct DenseTable<const K: usize, S> {
    index: Index,
    pub keys: S,
    /// Written with every new key, beside what every look-up reads.
    len: Apart<AtomicU64>,
}

/// Keys of `K` words.
pub(crate) type Dense<const K: usize> = DenseTable<K, WholeWords<K>>;

/// What a key is looked up by.
#[inline(always)]
pub(crate) fn key_hash<const K: usize>(key: [u32; K]) -> u64 {
    match key.as_slice() {
        &[low, high] => mix(word([low, high])),
        words => mix(slots(words)),
    }
}

impl<const K: usize, S: Keys<K>> DenseTable<K, S> {
    /// An empty table, if the budget and the system have the few bytes.
    pub fn new(budget: &Budget) -> Option<Self> {
        if !budget.request(Index::bytes(BUCKETS)) {
            return None;
        }
        let Some(index) = Index::new(BUCKETS) else {
            budget.release(Index::bytes(BUCKETS));
            return None;
        };
        Some(DenseTable { index, keys: S::new(), len: Apart::default() })
    }

    /// How many keys there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.keys.bytes() + Index::bytes(self.index.buckets)
    }

    /// Asks for the memory in which a key would be found, or would be entered if it is expected to be new.
    #[inline(always)]
    pub fn prefetch(&self, mixed: u64, expects_new: bool) {
        let index = self.index.view();
        prefetch_as(index.bucket(index.home(mixed)), expects_new);
    }

    /// The key of a number that was given out.
    #[inline(always)]
    pub fn get(&self, number: u32) -> [u32; K] {
        debug_assert!(u64::from(number) < self.len());
        self.keys.get(number)
    }

    /// The number of a key, or where it would be entered.
    #[inline(always)]
    fn search<L: Lanes>(&self, lanes: L, key: [u32; K], mixed: u64, from: u64) -> Result<u32, (u64, usize)> {
        let found = self.index.view().search(lanes, mixed, from, |number| self.get(number as u32) == key);
        found.map(|number| number as u32)
    }

    /// The number of a key that is there.
    #[inline(always)]
    pub fn find<L: Lanes>(&self, lanes: L, key: [u32; K]) -> Option<u32> {
        let mixed = key_hash(key);
        self.search(lanes, key, mixed, self.index.view().home(mixed)).ok()
    }

    /// The number of a key, which is given one if it has none, and whether it had none. Room has
    /// been set aside (I3).
    #[inline(always)]
    pub fn intern<L: Lanes>(&self, lanes: L, key: [u32; K], mixed: u64) -> (u32, bool) {
        let index = self.index.view();
        let mut at = index.home(mixed);
        loop {
            let lane = match self.search(lanes, key, mixed, at) {
                Ok(number) => return (number, false),
                Err((bucket, lane)) => {
                    at = bucket;
                    lane
                }
            };
            // I2: all entries before this one were looked at; if it is still empty, the key is
            // in no other.
            if index.claim(at, lane, mixed) {
                let number = self.len.fetch_add(1, Ordering::AcqRel);
                self.keys.put(number, key);
                index.settle(at, lane, mixed, number);
                return (number as u32, true);
            }
        }
    }

    /// Whether `more` keys can be interned.
    #[inline]
    pub fn has_room(&self, more: u64) -> bool {
        let wanted = self.len() + more;
        wanted <= self.index.room && self.keys.has_room(wanted)
    }

    /// Makes room for `more` keys; nobody else uses the table but to `help`. Returns whether there was
    /// memory.
    #[must_use]
    pub fn make_room(&mut self, more: u64, budget: &Budget, help: &Help) -> bool {
        let wanted = self.len() + more;
        (self.keys.has_room(wanted) || self.keys.make_room(wanted, budget))
            && (wanted <= self.index.room || self.grow_index(wanted, budget, help))
    }

    /// Gives the index back: from now on keys are identified by their numbers, and nothing else.
    pub fn shed_index(&mut self, budget: &Budget) {
        let held = Index::bytes(self.index.buckets);
        if self.index.resize(BUCKETS) {
            budget.release(held - Index::bytes(BUCKETS));
        }
    }

    fn grow_index(&mut self, wanted: u64, budget: &Budget, help: &Help) -> bool {
        if budget.is_over() {
            return false;
        }
        let old = self.index.buckets;
        let tight = if S::TIGHT { self.index.next_quarter(wanted) } else { None };
        let [usual, small] = self.index.next_sizes(wanted);
        for buckets in [tight, usual, small].into_iter().flatten() {
            let more = Index::bytes(buckets) - Index::bytes(old);
            if !budget.request(more) {
                continue;
            }
            if !self.index.resize(buckets) {
                budget.release(more);
            }
            let (len, keys) = (self.len(), &self.keys);
            let hashes = || |numbers: Range<u64>, hashes: &mut Vec<u64>| keys.hashes(numbers, hashes);
            return self.index.fill(len, budget, help, hashes) && wanted <= self.index.room;
        }
        // No memory to grow: fill the last entries instead.
        self.index.fill_up();
        wanted <= self.index.room
    }
}

/// A key of two words as one.
#[inline(always)]
pub(crate) const fn word([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The inverse.
#[inline(always)]
pub(crate) const fn pair(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::index::BASELINE;

    fn key<const K: usize>(number: u64) -> [u32; K] {
        std::array::from_fn(|at| (number as u32).wrapping_mul(at as u32 * 0x1_0003 + 1))
    }

    fn check<const K: usize>() {
        let budget = Budget::unlimited();
        let mut dense = Dense::<K>::new(&budget).expect("there is no limit");
        let count = if cfg!(miri) { 110 } else { 100_000 };
        for round in 0..2 {
            for number in 0..count {
                assert!(dense.has_room(1) || dense.make_room(1, &budget, &Help::default()));
                let (found, new) = dense.intern(BASELINE, key(number), key_hash(key::<K>(number)));
                assert_eq!((u64::from(found), new), (number, round == 0));
                assert_eq!(dense.bytes(), budget.used());
            }
        }
        for number in 0..count {
            assert_eq!(dense.get(number as u32), key(number));
            assert_eq!(dense.find(BASELINE, key(number)), Some(number as u32));
        }
        assert_eq!((dense.len(), dense.find(BASELINE, key(count))), (count, None));
    }

    #[test]
    fn numbers_are_dense_and_stay() {
        check::<2>();
        check::<3>();
        check::<8>();
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of entries, which take Miri minutes")]
    fn without_memory_nothing_is_added_and_all_is_found() {
        let budget = Budget::new(30_000);
        let mut dense = Dense::<2>::new(&budget).expect("a few bytes");
        let mut added = 0;
        while dense.make_room(1, &budget, &Help::default()) {
            dense.intern(BASELINE, key(added), key_hash(key::<2>(added)));
            added += 1;
        }
        assert!(added > 1000 && budget.used() <= 30_000);
        assert!((0..added).all(|number| dense.find(BASELINE, key(number)) == Some(number as u32)));
    }
}
