//! Small values attached to the states of a store: colours of a nested search, component numbers,
//! counters.
//!
//! In: ids of a store that names every state. Out: for each id a value of 1 to 64 bits, 0 until it
//! is set. Invariants: a value depends on the id alone, so it survives whatever the store does with
//! the state (growth, recoding); several threads read and write concurrently, no update is lost;
//! memory is requested from the budget before it is allocated, and a value that finds none keeps
//! what it was; every byte is counted in [`Attached::bytes`] and released on drop.
//!
//! # Layout in memory
//! ```text
//! id        ………………┆·····     the upper bits number a 64-bit word, the lower ones the value in it:
//!                           64 values of 1 bit, 32 of 2, 16 of 4, 8 of 8, 4 of 16, 2 of 32, 1 of 64
//! dense     page 0 [ w w w … ]   page 1 [ w w w … ]        1,024 words each, found without a lock
//! sparse    shard 0 { group → w w w w w w w w }  shard 1 { … }      hash tables of groups of words
//! ```
//!
//! # Cost
//! Dense ids: the bits of a value, rounded up to a power of two, for every state of a page in which
//! a value was set, and 24 bytes per page; a look-up takes three dependent loads. Sparse ids: at a
//! load factor of 0.75 to 0.875, 9 to 11 bits per bit of each id of a group in which a value was
//! set; a look-up takes the lock of a shard, shared, and a hash table. Ids that have no neighbours
//! cost up to 96 bytes each, those of a dense region as much as the values themselves and a quarter.

use crate::{Apart, Budget, Bytes, StateId, hash::mix};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Which numbers a store takes as ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// 0, 1, 2 …
    Dense,
    /// Any.
    Sparse,
}

/// What hangs on the states of one store: makes [`Values`] and counts their bytes.
pub struct Attached {
    budget: Arc<Budget>,
    ids: Ids,
    /// The bytes of all values; shared with them, so whoever else holds it is in use.
    held: Arc<AtomicU64>,
}

impl Attached {
    /// Nothing yet, for ids of this kind, within `budget`.
    pub fn new(ids: Ids, budget: &Arc<Budget>) -> Self {
        Attached { budget: Arc::clone(budget), ids, held: Arc::default() }
    }

    /// Values of `bits` bits, one for each present and future state, all 0. Takes no memory until
    /// one is set; dropping them releases it. They may be used by all threads, and outlive the store.
    ///
    /// # Panics
    /// Unless `bits` is 1 to 64.
    pub fn values(&self, bits: u32) -> Values {
        assert!((1..=64).contains(&bits), "a value has 1 to 64 bits, not {bits}");
        let account = Account { budget: Arc::clone(&self.budget), all: Arc::clone(&self.held), own: AtomicU64::new(0) };
        let words = match self.ids {
            Ids::Dense => ValueWords::Dense(Pages(Box::new([const { OnceLock::new() }; SEGMENTS]))),
            Ids::Sparse => ValueWords::Sparse((0..SHARDS).map(|_| Apart::default()).collect()),
        };
        Values { account, width: bits.next_power_of_two().ilog2(), words }
    }

    /// Whether anybody uses values of these states.
    pub fn in_use(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }

    /// The bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Adds them to the bytes of the store, if there are any.
    #[must_use]
    pub fn counted(&self, bytes: Bytes) -> Bytes {
        match self.bytes() {
            0 => bytes,
            held => bytes.with("values", held),
        }
    }
}

/// One value for each state of a store: see [`Attached::values`].
pub struct Values {
    words: ValueWords,
    /// The bits of a value, as a power of two.
    width: u32,
    account: Account,
}

impl Values {
    /// The value of a state.
    pub fn get(&self, state: StateId) -> u64 {
        let (word, shift) = self.place(state);
        self.words.with(word, |word| word.load(Ordering::Acquire) >> shift & self.mask()).unwrap_or(0)
    }

    /// Replaces the value of a state by `new` if it is `old`, atomically. Returns the value before,
    /// so `old` if it was replaced; `None` if there is no memory for it: it is still 0 then.
    ///
    /// # Panics
    /// If `new` has more bits than a value.
    pub fn compare_exchange(&self, state: StateId, old: u64, new: u64) -> Option<u64> {
        assert!(new <= self.mask(), "{new} does not fit a value of {} bits", 1 << self.width);
        let (word, shift) = self.place(state);
        let mask = self.mask() << shift;
        let exchange = |word: &AtomicU64| {
            let replaced = |held: u64| {
                let found = (held & mask) >> shift;
                (found == old && new != old).then_some(held & !mask | new << shift)
            };
            let (Ok(held) | Err(held)) = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, replaced);
            (held & mask) >> shift
        };
        loop {
            if let Some(found) = self.words.with(word, exchange) {
                return Some(found);
            }
            // The value is 0. To keep it so takes no memory.
            if old != 0 || new == 0 {
                return Some(0);
            }
            if !self.words.make(word, &self.account) {
                return None;
            }
        }
    }

    /// Changes the value of a state atomically, and returns the one before. `change` maps it to the
    /// new one, or to `None` to keep it; it is called again after a conflict with another thread.
    /// Returns `None` if there is no memory for the value: it is still 0 then.
    ///
    /// # Panics
    /// If the new value has more bits than a value.
    pub fn update(&self, state: StateId, mut change: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
        let mut old = self.get(state);
        while let Some(new) = change(old) {
            let found = self.compare_exchange(state, old, new)?;
            if found == old {
                break;
            }
            old = found;
        }
        Some(old)
    }

    /// Sets the value of a state, and returns the one before, or `None` if there is no memory for it.
    ///
    /// # Panics
    /// If it has more bits than a value.
    pub fn set(&self, state: StateId, value: u64) -> Option<u64> {
        self.update(state, |_| Some(value))
    }

    /// The bytes of these values.
    pub fn bytes(&self) -> u64 {
        self.account.own.load(Ordering::Relaxed)
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - (1 << self.width))
    }

    /// The word of a state, and where in it its value is.
    fn place(&self, state: StateId) -> (u64, u32) {
        assert_ne!(state, StateId::NAMELESS, "a state without an id has no values");
        let id = state.get();
        let within = 6 - self.width;
        (id >> within, ((id & ((1 << within) - 1)) as u32) << self.width)
    }
}

/// What some values hold.
struct Account {
    budget: Arc<Budget>,
    /// Of all values of the store.
    all: Arc<AtomicU64>,
    /// Of these.
    own: AtomicU64,
}

impl Account {
    #[must_use]
    fn request(&self, bytes: u64) -> bool {
        let granted = self.budget.request(bytes);
        if granted {
            self.all.fetch_add(bytes, Ordering::Relaxed);
            self.own.fetch_add(bytes, Ordering::Relaxed);
        }
        granted
    }

    fn release(&self, bytes: u64) {
        self.all.fetch_sub(bytes, Ordering::Relaxed);
        self.own.fetch_sub(bytes, Ordering::Relaxed);
        self.budget.release(bytes);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.release(self.own.load(Ordering::Relaxed));
    }
}

/// Words by number, 0 until they are set.
enum ValueWords {
    Dense(Pages),
    Sparse(Box<[Apart<RwLock<Shard>>]>),
}

impl ValueWords {
    /// What `use_it` makes of a word, `None` if it is absent.
    fn with<R>(&self, word: u64, use_it: impl FnOnce(&AtomicU64) -> R) -> Option<R> {
        match self {
            ValueWords::Dense(pages) => pages.get(word).map(use_it),
            ValueWords::Sparse(shards) => {
                let shard = shard(shards, word).read().unwrap_or_else(PoisonError::into_inner);
                shard.get(word).map(use_it)
            }
        }
    }

    /// Makes a word, unless another thread has; on `false` there was no memory.
    fn make(&self, word: u64, account: &Account) -> bool {
        match self {
            ValueWords::Dense(pages) => pages.make(word, account),
            ValueWords::Sparse(shards) => {
                shard(shards, word).write().unwrap_or_else(PoisonError::into_inner).make(word, account)
            }
        }
    }
}

/// Words of a page, as a power of two.
const PAGE: u32 = 10;
/// Pages of the first segment of the directory, as a power of two; each of the others has twice as
/// many as the one before.
const FIRST: u32 = 6;

type Page = OnceLock<Box<[AtomicU64]>>;

/// Words in pages, under a directory that never moves.
struct Pages(Box<[OnceLock<Box<[Page]>>; SEGMENTS]>);

/// Segments for every page there may be.
const SEGMENTS: usize = (64 - PAGE - FIRST + 1) as usize;

impl Pages {
    /// The segment of a page, and its place there.
    fn place(word: u64) -> (usize, usize) {
        let page = (word >> PAGE) + (1 << FIRST);
        let segment = page.ilog2() - FIRST;
        (segment as usize, (page - (1 << FIRST << segment)) as usize)
    }

    fn get(&self, word: u64) -> Option<&AtomicU64> {
        let (segment, page) = Self::place(word);
        Some(&self.0[segment].get()?[page].get()?[word as usize & ((1 << PAGE) - 1)])
    }

    fn make(&self, word: u64, account: &Account) -> bool {
        let (segment, page) = Self::place(word);
        make(&self.0[segment], 1 << FIRST << segment, account)
            .and_then(|pages| make(&pages[page], 1 << PAGE, account))
            .is_some()
    }
}

/// What is in a cell, which is filled first if it is empty; `None` if there is no memory.
fn make<'c, T: Default>(cell: &'c OnceLock<Box<[T]>>, len: usize, account: &Account) -> Option<&'c [T]> {
    if cell.get().is_none() {
        let bytes = (len * size_of::<T>()) as u64;
        // Of two threads that come here at once, one takes its memory back.
        if account.request(bytes) && defaults(len).is_none_or(|new| cell.set(new).is_err()) {
            account.release(bytes);
        }
    }
    cell.get().map(|there| &**there)
}

/// Default values, `None` if the allocator has no memory.
fn defaults<T: Default>(len: usize) -> Option<Box<[T]>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).ok()?;
    values.resize_with(len, T::default);
    Some(values.into())
}

/// Hash tables over which sparse words are spread: each grows alone, so growth stops few threads, and the
/// old and the new table of one shard are little memory beside all the others.
const SHARDS: usize = 64;
/// Consecutive words that are kept together, as a power of two.
const GROUP: u32 = 3;

fn shard(shards: &[Apart<RwLock<Shard>>], word: u64) -> &RwLock<Shard> {
    &shards[mix(word >> GROUP) as usize % SHARDS]
}

/// Groups of words by number: linear probing.
#[derive(Default)]
struct Shard {
    /// The number of the group and 1, or 0 where there is none.
    keys: Box<[u64]>,
    /// Those of each place.
    words: Box<[[AtomicU64; 1 << GROUP]]>,
    len: usize,
}

impl Shard {
    /// The place of a group, or the empty one where it would be. There is always an empty one.
    fn probe(&self, group: u64) -> usize {
        // The lower bits of the hash chose the shard.
        let mut at = (((mix(group) >> 32) * self.keys.len() as u64) >> 32) as usize;
        while self.keys[at] != 0 && self.keys[at] != group + 1 {
            at = if at + 1 == self.keys.len() { 0 } else { at + 1 };
        }
        at
    }

    fn get(&self, word: u64) -> Option<&AtomicU64> {
        if self.len == 0 {
            return None;
        }
        let at = self.probe(word >> GROUP);
        (self.keys[at] != 0).then(|| &self.words[at][word as usize & ((1 << GROUP) - 1)])
    }

    fn make(&mut self, word: u64, account: &Account) -> bool {
        if self.get(word).is_some() {
            return true;
        }
        if self.len + 1 > self.keys.len() / 8 * 7 && !self.grow(account) {
            return false;
        }
        let at = self.probe(word >> GROUP);
        self.keys[at] = (word >> GROUP) + 1;
        self.len += 1;
        true
    }

    /// Makes the table larger by a sixth.
    fn grow(&mut self, account: &Account) -> bool {
        const PLACE: u64 = (size_of::<u64>() << GROUP) as u64 + size_of::<u64>() as u64;
        let places = (self.keys.len() + self.keys.len() / 6 + 1).next_multiple_of(8);
        let bytes = |places: usize| places as u64 * PLACE;
        if !account.request(bytes(places)) {
            return false;
        }
        let (Some(keys), Some(words)) = (defaults(places), defaults(places)) else {
            account.release(bytes(places));
            return false;
        };
        let old = std::mem::replace(self, Shard { keys, words, len: self.len });
        account.release(bytes(old.keys.len()));
        for (key, words) in old.keys.iter().zip(old.words) {
            if let Some(group) = key.checked_sub(1) {
                let at = self.probe(group);
                self.keys[at] = *key;
                self.words[at] = words;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const KINDS: [Ids; 2] = [Ids::Dense, Ids::Sparse];

    #[test]
    fn random_operations_agree_with_a_map() {
        for (ids, bits) in KINDS.into_iter().flat_map(|ids| [1, 2, 3, 8, 17, 32, 64].map(|bits| (ids, bits))) {
            let budget = Arc::new(Budget::unlimited());
            let attached = Attached::new(ids, &budget);
            let values = attached.values(bits);
            let mut map = HashMap::new();
            let largest = u64::MAX >> (64 - bits);
            for step in 0..if cfg!(miri) { 300 } else { 100_000u64 } {
                let random = mix(step);
                // Neighbours, distant ones, and for sparse ids the largest there are.
                let id = match random % 8 {
                    0..5 => random >> 8 & 0xfff,
                    5 | 6 => random >> 8 & 0xf_ffff,
                    _ if ids == Ids::Sparse => StateId::NAMELESS.get() - 1 - (random >> 8 & 0xf_ffff),
                    _ => random >> 8 & 0xff_ffff,
                };
                let (state, value) = (StateId::new(id), mix(!random) & largest);
                let known = map.get(&id).copied().unwrap_or(0);
                assert_eq!(values.get(state), known, "{ids:?}, {bits} bits, {id}");
                match random >> 3 & 3 {
                    0 => assert_eq!(values.set(state, value), Some(known)),
                    1 => assert_eq!(values.update(state, |old| Some(old ^ value)), Some(known)),
                    2 => assert_eq!(values.compare_exchange(state, known ^ 1, value), Some(known)),
                    _ => assert_eq!(values.compare_exchange(state, known, value), Some(known)),
                }
                match random >> 3 & 3 {
                    1 => map.insert(id, known ^ value),
                    0 | 3 => map.insert(id, value),
                    _ => None,
                };
            }
            assert!(map.iter().all(|(&id, &value)| values.get(StateId::new(id)) == value), "{ids:?}, {bits} bits");
            assert!(attached.in_use() && attached.bytes() == budget.used() && values.bytes() > 0);
            drop(values);
            assert!(!attached.in_use() && attached.bytes() == 0 && budget.used() == 0);
        }
    }

    #[test]
    fn no_update_of_several_threads_is_lost() {
        for ids in KINDS {
            let attached = Attached::new(ids, &Arc::new(Budget::unlimited()));
            let (mark, count) = (attached.values(1), attached.values(8));
            let states = if cfg!(miri) { 20 } else { 30_000 };
            let run = |thread: u64| {
                let ids = (0..states).map(|state| StateId::new(if thread == 0 { states - 1 - state } else { state }));
                ids.filter(|&state| {
                    assert!(count.update(state, |old| Some(old + 1)).is_some());
                    mark.set(state, 1) == Some(0)
                })
                .count() as u64
            };
            let first: u64 = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || run(thread))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
            });
            assert_eq!(first, states, "{ids:?}: of several threads one sets a mark first");
            assert!((0..states).all(|state| count.get(StateId::new(state)) == 3), "{ids:?}");
        }
    }

    #[test]
    fn threads_that_write_one_word_lose_nothing() {
        for ids in KINDS {
            let values = Attached::new(ids, &Arc::new(Budget::unlimited())).values(32);
            let times = if cfg!(miri) { 50 } else { 100_000 };
            let begin = std::sync::Barrier::new(2);
            let run = |state: u64| {
                begin.wait();
                for time in 0..times {
                    let next = |old| {
                        // Now and then the other thread gets its chance between the look and the exchange.
                        if time % 64 == 0 {
                            std::thread::yield_now();
                        }
                        Some(old + 1)
                    };
                    assert!(values.update(StateId::new(state), next).is_some());
                }
            };
            // Two values that share their word.
            std::thread::scope(|scope| {
                scope.spawn(|| run(0));
                run(1);
            });
            assert_eq!([0, 1].map(|state| values.get(StateId::new(state))), [times; 2], "{ids:?}");
        }
    }

    #[test]
    fn a_spent_budget_refuses_and_loses_nothing() {
        for (ids, limit) in KINDS.into_iter().flat_map(|ids| [0, 100, 20_000, 300_000].map(|limit| (ids, limit))) {
            let budget = Arc::new(Budget::new(limit));
            let attached = Attached::new(ids, &budget);
            let values = attached.values(32);
            let states = if cfg!(miri) { 0..200 } else { 0..200_000u64 };
            let set = states.clone().map(|state| values.set(StateId::new(state), state + 1).is_some());
            let set: Vec<bool> = set.collect();
            assert_eq!(set[0], limit > 100 && !(cfg!(miri) && limit == 20_000 && !set[0]), "{ids:?}, {limit}");
            assert!(cfg!(miri) || !set[199_999], "{ids:?}, {limit}: they do not all fit");
            for (state, set) in states.zip(set) {
                let state = StateId::new(state);
                assert_eq!(values.get(state), if set { state.get() + 1 } else { 0 }, "{ids:?}, {limit}");
                assert_eq!(values.set(state, values.get(state)), Some(values.get(state)), "no change, no memory");
            }
            assert!(budget.peak() <= limit && attached.bytes() == budget.used());
        }
    }

    #[test]
    fn what_values_cost_is_as_documented() {
        for (ids, least, most) in [(Ids::Dense, 32, 33), (Ids::Sparse, 38, 50)] {
            let attached = Attached::new(ids, &Arc::new(Budget::unlimited()));
            let values = attached.values(2);
            let states = if cfg!(miri) { 1 << 10 } else { 1u64 << 20 };
            assert!((0..states).all(|state| values.set(StateId::new(state), 3).is_some()));
            let hundredths = values.bytes() * 128 / states;
            assert!(cfg!(miri) || (least..=most).contains(&hundredths), "{ids:?}: {hundredths}/128 bytes a state");
        }
        let attached = Attached::new(Ids::Sparse, &Arc::new(Budget::unlimited()));
        let values = attached.values(2);
        assert!((0..100_000).all(|state| values.set(StateId::new(state << 20), 3).is_some()));
        assert!(values.bytes() / 100_000 <= 96, "{} bytes", values.bytes());
    }

    #[test]
    #[should_panic(expected = "4 does not fit a value of 2 bits")]
    fn a_value_that_is_too_large_is_refused() {
        let attached = Attached::new(Ids::Dense, &Arc::new(Budget::unlimited()));
        attached.values(2).set(StateId::new(0), 4);
    }
}
