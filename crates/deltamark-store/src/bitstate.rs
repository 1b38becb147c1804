//! # The idea
//! A state is represented only by some bits set in one large array, at positions given by its hash.
//! A state whose bits are all set already counts as visited, and may be missed. G. J. Holzmann, *An
//! Analysis of Bitstate Hashing*, Formal Methods in System Design 13, 1998; the array is a Bloom
//! filter. The positions are computed by enhanced double hashing after P. C. Dillinger and P.
//! Manolios, *Bloom Filters in Probabilistic Verification*, FMCAD 2004: two hashes for any number
//! of positions, and hardly more misses than with independent hashes.
//!
//! # Layout in memory
//! ```text
//! array   …0100010000100000…      2^bits bits
//!            x   x+y  x+2y+1 …    modulo 2^bits: the places of one state
//! ```
//!
//! # Growth
//! None: set bits cannot be rehashed. The array is allocated at once and is never full; only its
//! guarantee degrades.
//!
//! # Guarantee
//! When a state is inserted while a fraction `f` of the array is set, it is missed with probability
//! `f^k` for `k` positions, as if they were independent (Holzmann; Dillinger and Manolios show that
//! for enhanced double hashing this is close). Two states with equal pairs `(x, y)` share all
//! positions, so with `i` states present, `i/m²` is added for an array of `m` bits, and `i/2^64`
//! for equal hashes. The store sums `−ln(1 − f^k − i/m² − i/2^64)` over all new states, with `f` as
//! of just after each, and reports `1 − exp` of minus that: the probability that any state was
//! missed. It is an estimate; missed states are not counted among those inserted, which matters
//! only once several are expected.
//!
//! # Invariants
//! * I1: all positions of every inserted state are set, so no state is reported new twice. Threads
//!   that insert the same state concurrently agree on which of them it is new to: a thread that
//!   finds a position unset takes the lock of the state, one of many by its hash, before it sets
//!   any.
//! * I2: bits are set by atomic exchanges; counters are updated once per batch.
//!
//! # When to choose it
//! When even signatures do not fit: a fixed amount of memory for any number of states. States
//! cannot be recalled: the search keeps unexpanded states in full.

use crate::memory::region::Region;
use crate::tables::bucket::prefetch;
use deltamark_core::{
    Arrival, Batch, Block, Budget, Bytes, Guarantee, Insert, Recoding, Scratch, Slot, StateId, Store, hash::mix,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits in an array.
pub struct Bitstate {
    bits: u32,
    hashes: u32,
    budget: Arc<Budget>,
    /// `None` if the budget does not allow it.
    region: Option<Region>,
    /// For states that are new, by their hash.
    locks: Box<[Mutex<()>]>,
    tally: Mutex<Tally>,
}

/// What is counted.
#[derive(Default)]
struct Tally {
    /// States that were new.
    len: u64,
    /// Bits that are set.
    set: u64,
    /// The sum of `−ln(1 − p)` over all new states, where `p` is the probability to be missed.
    doubt: f64,
    /// How many states were missed, probably.
    missed: f64,
}

/// How many locks there are, a power of two, large enough that two threads seldom want the same.
const LOCKS: usize = 256;

/// Successors whose places are fetched together.
const GROUP: usize = 32;
/// The most places of a state.
const PLACES: usize = 16;

impl Bitstate {
    /// How large the array may be, as a power of two: from a kilobyte to a terabyte.
    pub const BITS: std::ops::RangeInclusive<u64> = 13..=43;
    /// How many bits a state may set.
    pub const HASHES: std::ops::RangeInclusive<u64> = 1..=PLACES as u64;

    /// An empty array of `2^bits` bits, of which a state sets `hashes`. If `budget` does not
    /// allow it, the store is full from the beginning.
    ///
    /// # Panics
    /// When these are not in [`BITS`](Self::BITS) and [`HASHES`](Self::HASHES).
    pub fn new(bits: u32, hashes: u32, budget: Arc<Budget>) -> Self {
        assert!(Self::BITS.contains(&bits.into()) && Self::HASHES.contains(&hashes.into()));
        let bytes = Self::array_bytes(bits);
        let region = if budget.request(bytes) {
            let region = Region::zeroed(bytes as usize);
            if region.is_none() {
                budget.release(bytes);
            }
            region
        } else {
            None
        };
        let locks = (0..LOCKS).map(|_| Mutex::new(())).collect();
        Bitstate { bits, hashes, budget, region, locks, tally: Mutex::default() }
    }

    /// The bytes of an array of `2^bits` bits.
    pub fn array_bytes(bits: u32) -> u64 {
        1 << (bits - 3)
    }

    /// Whether it has its array.
    pub fn is_open(&self) -> bool {
        self.region.is_some()
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places of a state, the first [`hashes`](Self::hashes) of them.
    #[inline(always)]
    fn places(&self, mixed: u64) -> [u64; PLACES] {
        let mask = (1 << self.bits) - 1;
        let (mut x, mut y) = (mixed & mask, mix(mixed ^ 0x9e37_79b9_7f4a_7c15) & mask);
        let mut places = [0; PLACES];
        for (step, place) in places[..self.hashes as usize].iter_mut().enumerate() {
            *place = x;
            x = (x + y) & mask;
            y = (y + step as u64 + 1) & mask;
        }
        places
    }

    /// The probability that a state that comes now is missed.
    fn omission(&self, tally: &Tally) -> f64 {
        let (all, len) = (2f64.powi(self.bits as i32), tally.len as f64);
        let pairs = if self.hashes > 1 { len / all / all } else { 0.0 };
        ((tally.set as f64 / all).powi(self.hashes as i32) + pairs + len / 2f64.powi(64)).min(1.0)
    }

    /// Counts `new` states that have set `set` bits since the last call.
    fn count(&self, new: u64, set: u64) {
        if new > 0 {
            let mut tally = self.tally();
            tally.len += new;
            tally.set += set;
            // With the array as it is after all of them: a little too much rather than too little.
            let p = self.omission(&tally);
            tally.doubt -= new as f64 * (-p).ln_1p();
            tally.missed += new as f64 * p / (1.0 - p);
        }
    }

    /// The word of an array that holds a place, and its bit there.
    #[inline(always)]
    fn word<'r>(&self, region: &'r Region, place: u64) -> (&'r AtomicU64, u64) {
        debug_assert!(place >> self.bits == 0);
        // SAFETY: places are below the number of bits that the region has; it is aligned to 64
        // bytes, lives as long as the reference, and is read and written as these atomics only.
        let word = unsafe { &*region.as_ptr().cast::<AtomicU64>().add((place / 64) as usize) };
        (word, 1 << (place % 64))
    }

    /// Whether all of these places are set.
    #[inline(always)]
    fn contains(&self, region: &Region, places: &[u64]) -> bool {
        places.iter().all(|&place| {
            let (word, bit) = self.word(region, place);
            word.load(Relaxed) & bit != 0
        })
    }

    /// Sets the places of a state, and returns how many were not set before.
    #[inline(always)]
    fn set(&self, region: &Region, mixed: u64, places: &[u64]) -> u64 {
        if self.contains(region, places) {
            return 0;
        }
        let _lock = self.locks[mixed as usize % LOCKS].lock().unwrap_or_else(PoisonError::into_inner);
        places.iter().fold(0, |set, &place| {
            let (word, bit) = self.word(region, place);
            set + u64::from(word.fetch_or(bit, Relaxed) & bit == 0)
        })
    }
}

fn answer(set: u64) -> Insert {
    if set == 0 { Insert::Seen(StateId::NAMELESS) } else { Insert::New(StateId::NAMELESS) }
}

impl Store for Bitstate {
    fn insert(&self, _scratch: &mut Scratch, _state: &[Slot], hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let Some(region) = &self.region else { return Insert::Full };
        let mixed = mix(hash);
        let set = self.set(region, mixed, &self.places(mixed)[..self.hashes as usize]);
        self.count(u64::from(set > 0), set);
        answer(set)
    }

    fn insert_batch(&self, _scratch: &mut Scratch, _block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let Some(region) = &self.region else {
            out.push(Insert::Full);
            return;
        };
        let mut places = [[0; PLACES]; GROUP];
        for hashes in batch.hashes().chunks(GROUP) {
            for (places, &hash) in places.iter_mut().zip(hashes) {
                *places = self.places(mix(hash));
                places[..self.hashes as usize].iter().for_each(|&place| prefetch(self.word(region, place).0));
            }
            let (mut new, mut set) = (0, 0);
            for (places, &hash) in places.iter().zip(hashes) {
                let more = self.set(region, mix(hash), &places[..self.hashes as usize]);
                out.push(answer(more));
                new += u64::from(more > 0);
                set += more;
            }
            self.count(new, set);
        }
    }

    fn find(&self, _scratch: &mut Scratch, _state: &[Slot], hash: u64) -> Option<StateId> {
        let places = self.places(mix(hash));
        let there = |region| self.contains(region, &places[..self.hashes as usize]);
        self.region.as_ref().is_some_and(there).then_some(StateId::NAMELESS)
    }

    fn len(&self) -> u64 {
        self.tally().len
    }

    fn bytes(&self) -> Bytes {
        Bytes::new().with("array", if self.is_open() { Self::array_bytes(self.bits) } else { 0 })
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Omission((-(-self.tally().doubt).exp_m1()).clamp(0.0, 1.0))
    }

    fn warning(&self) -> Option<String> {
        let tally = self.tally();
        let full = tally.set as f64 / 2f64.powi(self.bits as i32);
        (full > 0.5 || tally.missed >= 1.0).then(|| {
            let missed = match tally.missed {
                missed if missed < 1e15 => format!("about {:.0} states or more", missed.max(1.0)),
                _ => "nearly all states".into(),
            };
            let advice = if u64::from(self.bits) < *Self::BITS.end() { "; choose a larger `bits`" } else { "" };
            format!(
                "the array of 2^{} bits is {:.1} per cent full, too full to mean much: {missed} were missed{advice}",
                self.bits,
                full * 100.0
            )
        })
    }

    fn recode(&self, _recoding: &Recoding) -> bool {
        // Hashes outlive a recoding.
        true
    }
}

impl Drop for Bitstate {
    fn drop(&mut self) {
        if self.region.is_some() {
            self.budget.release(Self::array_bytes(self.bits));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Action;

    const ROOT: Arrival<'static> = Arrival { parent: None, action: Action(0) };

    /// How many of `states` states were missed, and the store.
    fn missed(bits: u32, hashes: u32, states: u64, seed: u64) -> (u64, Bitstate) {
        let store = Bitstate::new(bits, hashes, Arc::new(Budget::unlimited()));
        for number in 0..states {
            let hash = mix(number.wrapping_add(seed << 32));
            store.insert(&mut Scratch::none(), &[], hash, &ROOT);
        }
        (states - store.len(), store)
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts many states")]
    fn as_many_states_are_missed_as_it_expects() {
        for (bits, hashes, states) in
            [(16, 1, 3_000), (16, 2, 6_000), (18, 3, 30_000), (18, 5, 30_000), (20, 8, 100_000)]
        {
            let (mut found, mut expected) = (0, 0.0);
            for seed in 0..10 {
                let (missed, store) = missed(bits, hashes, states, seed);
                found += missed;
                expected += store.tally().missed;
            }
            let (found, spread) = (found as f64, expected.sqrt());
            assert!((found - expected).abs() < 5.0 * spread + 0.05 * expected, "{bits}, {hashes}: {found}, {expected}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts many states")]
    fn runs_that_miss_a_state_are_as_frequent_as_it_says() {
        let runs = 300;
        let (mut with_misses, mut probability) = (0, 0.0);
        for seed in 0..runs {
            let (missed, store) = missed(16, 3, 1_700, seed);
            with_misses += u64::from(missed > 0);
            let Guarantee::Omission(p) = store.guarantee() else { panic!("it is lossy") };
            probability += p;
        }
        let spread = (runs as f64 / 4.0).sqrt();
        assert!(probability > 50.0 && probability < 250.0, "the test tells something: {probability}");
        assert!((with_misses as f64 - probability).abs() < 4.0 * spread, "{with_misses} and {probability}");
    }

    #[test]
    fn it_warns_when_it_is_too_full() {
        let warned = |states| missed(13, 3, states, 0).1.warning();
        assert_eq!(warned(50), None);
        let warning = warned(if cfg!(miri) { 1_500 } else { 5_000 }).expect("it is nearly full");
        assert!(warning.contains("too full to mean much"), "{warning}");
        assert!(warning.contains("choose a larger `bits`"), "{warning}");
    }

    #[test]
    fn without_its_array_it_is_full_from_the_beginning() {
        let budget = Arc::new(Budget::new(1000));
        let store = Bitstate::new(13, 3, Arc::clone(&budget));
        assert!(!store.is_open());
        assert_eq!(store.insert(&mut Scratch::none(), &[], 1, &ROOT), Insert::Full);
        assert_eq!((store.find(&mut Scratch::none(), &[], 1), store.bytes().total(), budget.used()), (None, 0, 0));
    }
}
