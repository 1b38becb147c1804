//! Keys of a few words, each kept once and numbered 0, 1, 2 …: the nodes of `tree` and `compact`.
//!
//! In: keys of `K` words: a leaf's bits, or the numbers of children. Out: the number of a key,
//! and the key of a number. What stays true: numbers are dense, and they and the keys stay for
//! ever.
//!
//! # Layout in memory
//! ```text
//! keys    #0 [ key ] #1 [ key ] …                  4·K bytes each, in the order found
//! index   bucket [ tag|1  tag|0  tag|2  0 … ]      as in `plain`
//! ```
//!
//! # Growth
//! Keys never move. The index is entered again from the keys when it is full.
//!
//! # Invariants
//! Those of [`plain`](crate::plain) with a key in place of a vector: a number is in the index
//! once (I1); an entry whose number is all ones is being written (I2); whoever interns has had
//! room set aside, and growth is done by one thread alone (I3). So look-ups are plain loads,
//! and an insertion is one compare-and-swap.

use crate::arena::Arena;
use crate::bucket::{LANES, Lanes, prefetch};
use crate::index::{Index, settled};
use deltamark_core::{
    Budget,
    hash::{mix, slots},
};
use std::sync::atomic::{AtomicU64, Ordering};

/// The index begins with this many buckets.
const BUCKETS: u64 = 8;

/// Keys, each once.
pub(crate) struct Dense<const K: usize> {
    index: Index,
    keys: Arena,
    len: AtomicU64,
    /// Bytes granted for keys.
    granted: u64,
}

impl<const K: usize> Dense<K> {
    /// Bytes of a key.
    const BYTES: u64 = 4 * K as u64;

    /// An empty table, if the budget and the system have the few bytes.
    pub fn new(budget: &Budget) -> Option<Self> {
        if !budget.request(Index::bytes(BUCKETS)) {
            return None;
        }
        let Some(index) = Index::new(BUCKETS) else {
            budget.release(Index::bytes(BUCKETS));
            return None;
        };
        Some(Dense { index, keys: Arena::new(K), len: AtomicU64::new(0), granted: 0 })
    }

    /// How many keys there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.granted + Index::bytes(self.index.buckets)
    }

    /// What a key is looked up by.
    #[inline(always)]
    pub fn hash(key: [u32; K]) -> u64 {
        match key.as_slice() {
            &[low, high] => mix(word([low, high])),
            words => mix(slots(words)),
        }
    }

    /// Asks for the memory in which a key would be found.
    #[inline(always)]
    pub fn prefetch(&self, mixed: u64) {
        let index = self.index.view();
        prefetch(index.bucket(index.home(mixed)));
    }

    /// The key of a number that was given out.
    #[inline(always)]
    pub fn get(&self, number: u32) -> [u32; K] {
        debug_assert!(u64::from(number) < self.len());
        // SAFETY: the number was given out, so its key was written before, and is never
        // written again (I2).
        unsafe { self.keys.view().address::<K>(u64::from(number)).cast::<[u32; K]>().read() }
    }

    /// The number of a key, or where it would be entered.
    #[inline(always)]
    fn search<L: Lanes>(&self, lanes: L, key: [u32; K], mixed: u64, from: u64) -> Result<u32, (u64, usize)> {
        let index = self.index.view();
        let (tag, mask) = (index.tag(mixed), index.mask);
        let mut at = from;
        loop {
            let bucket = index.bucket(at);
            let (mut hits, empty) = lanes.scan(bucket, tag, mask);
            while hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], mask) as u32;
                if self.get(number) == key {
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

    /// The number of a key that is there.
    #[inline(always)]
    pub fn find<L: Lanes>(&self, lanes: L, key: [u32; K]) -> Option<u32> {
        let mixed = Self::hash(key);
        self.search(lanes, key, mixed, self.index.view().home(mixed)).ok()
    }

    /// The number of a key, which is given one if it has none, and whether it had none. Room has
    /// been set aside (I3).
    #[inline(always)]
    pub fn intern<L: Lanes>(&self, lanes: L, key: [u32; K], mixed: u64) -> (u32, bool) {
        let index = self.index.view();
        let (tag, mask) = (index.tag(mixed), index.mask);
        let mut at = index.home(mixed);
        loop {
            let entry = match self.search(lanes, key, mixed, at) {
                Ok(number) => return (number, false),
                Err((bucket, lane)) => {
                    at = bucket;
                    &index.bucket(bucket).0[lane % LANES]
                }
            };
            // I2: all entries before this one were looked at; if it is still empty, the key is
            // in no other.
            if entry.compare_exchange(0, tag | !mask, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                let number = self.len.fetch_add(1, Ordering::AcqRel);
                // SAFETY: room for this number was set aside (I3), only this thread has it, and
                // it is told to nobody before the entry is released below.
                unsafe { self.keys.view().address::<K>(number).cast::<[u32; K]>().write(key) };
                entry.store(tag | (number as u32 + 1), Ordering::Release);
                return (number as u32, true);
            }
        }
    }

    /// Whether `more` keys can be interned.
    #[inline]
    pub fn has_room(&self, more: u64) -> bool {
        let wanted = self.len() + more;
        wanted <= self.index.room && wanted * Self::BYTES <= self.granted
    }

    /// Makes room for `more` keys; nobody else uses the table. Says whether there was memory.
    #[must_use]
    pub fn make_room(&mut self, more: u64, budget: &Budget) -> bool {
        let wanted = self.len() + more;
        if wanted * Self::BYTES > self.granted {
            let missing = wanted * Self::BYTES - self.granted;
            // An eighth ahead while there is plenty, by the byte when there is not.
            let ahead = missing.max(self.granted / 8).next_multiple_of(4096);
            let asked = [ahead, missing].into_iter().find(|&bytes| budget.request(bytes));
            let Some(asked) = asked else { return false };
            if !self.keys.extend((self.granted + asked).div_ceil(Self::BYTES)) {
                budget.release(asked);
                return false;
            }
            self.granted += asked;
        }
        wanted <= self.index.room || self.grow_index(wanted, budget)
    }

    fn grow_index(&mut self, wanted: u64, budget: &Budget) -> bool {
        let old = self.index.buckets;
        for buckets in self.index.next_sizes(wanted).into_iter().flatten() {
            let more = Index::bytes(buckets) - Index::bytes(old);
            if !budget.request(more) {
                continue;
            }
            if !self.index.resize(buckets) {
                budget.release(more);
            }
            for number in 0..self.len() {
                self.index.enter(Self::hash(self.get(number as u32)), number);
            }
            return wanted <= self.index.room;
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

/// The way back.
#[inline(always)]
pub(crate) const fn pair(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::BASELINE;

    fn key<const K: usize>(number: u64) -> [u32; K] {
        std::array::from_fn(|at| (number as u32).wrapping_mul(at as u32 * 0x1_0003 + 1))
    }

    fn check<const K: usize>() {
        let budget = Budget::unlimited();
        let mut dense = Dense::<K>::new(&budget).expect("there is no limit");
        let count = if cfg!(miri) { 300 } else { 100_000 };
        for round in 0..2 {
            for number in 0..count {
                assert!(dense.has_room(1) || dense.make_room(1, &budget));
                let (found, new) = dense.intern(BASELINE, key(number), Dense::hash(key::<K>(number)));
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
    fn without_memory_nothing_is_added_and_all_is_found() {
        let budget = Budget::new(30_000);
        let mut dense = Dense::<2>::new(&budget).expect("a few bytes");
        let mut added = 0;
        while dense.make_room(1, &budget) {
            dense.intern(BASELINE, key(added), Dense::hash(key::<2>(added)));
            added += 1;
        }
        assert!(added > 1000 && budget.used() <= 30_000);
        assert!((0..added).all(|number| dense.find(BASELINE, key(number)) == Some(number as u32)));
    }
}
