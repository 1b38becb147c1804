//! # The idea
//! Of a state only a signature is kept, some bits of its hash. Two states of one signature are
//! taken for one, so the second is missed, with all that only it leads to; how probable that
//! is, is known. Hash compaction is due to P. Wolper and D. Leroy, *Reliable Hashing without
//! Collision Detection*, CAV 1993; U. Stern and D. L. Dill, *Improved Probabilistic
//! Verification by Hash Compaction*, CHARME 1995, keep signature and place in the table apart.
//! What is done better here: the place says the upper bits of the signature, so only the rest
//! is stored (see `quotient.rs`), and the table grows.
//!
//! # Layout in memory
//! ```text
//! hash, mixed   [ signature: the top `bits` bits | not used ]
//!               [ place | remainder: stored      ]
//! ```
//! A table of n signatures keeps about `bits − log2 n` bits of each and is 80 to 90 per cent
//! full: with a million states or two about 4 bytes a state at 40 bits, 7 at 56.
//!
//! # What an answer is worth
//! The hash is taken as uniform and independent, as in the papers. When `i` signatures are
//! there, the next state is missed with probability `i / 2^b`. So no state of a run that ends
//! with `n` signatures was missed with probability `∏ (1 − i/2^b)`, `i < n` (Wolper and Leroy;
//! about `exp(−n²/2^(b+1))`), and the store tells one minus that: the probability that *any*
//! state is missing. It counts the states that were found; those that are missing, and what
//! only they lead to, are not in `n`, which matters only once several are expected. That one
//! given state, say an erroneous one, is missing is far less probable (Stern and Dill, *A New
//! Scheme for Memory-Efficient Probabilistic Verification*, FORTE 1996, bound it along a
//! shortest path).
//!
//! # Invariants
//! * I1: every signature is in the table once.
//! * I2: the table is behind one lock. A batch is looked up while others look up theirs; only
//!   what was not found is entered alone, in lines that are in the cache by then.
//!
//! # When to choose it
//! When nothing exact fits and bugs are looked for rather than their absence proved. States
//! cannot be given back: the search keeps those it has yet to expand in full.

use crate::quotient::{MOST_KEY_BITS, Quotient};
use deltamark_core::{
    Arrival, Batch, Block, Budget, Bytes, Guarantee, Insert, Recoding, Scratch, Slot, StateId, Store, hash::mix,
    store::insert_one_by_one,
};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The set of signatures.
pub struct Compaction {
    bits: u32,
    table: RwLock<Quotient>,
}

/// What a thread needs for a batch.
struct Work {
    /// Hashes that are surely there, each at the place its low bits name.
    recent: Vec<u64>,
    /// Those of the batch that must be looked up, and whether they were found.
    mixed: Vec<u64>,
    seen: Vec<bool>,
    /// Which successor each of these is.
    which: Vec<u32>,
}

/// How many recent hashes are kept, a power of two: as many as stay in the second cache.
const RECENT: usize = 1 << 14;

impl Work {
    fn new() -> Self {
        let mut work = Work { recent: Vec::new(), mixed: Vec::new(), seen: Vec::new(), which: Vec::new() };
        work.forget();
        work
    }

    /// Empties the list of recent hashes: every place holds one that does not belong there.
    fn forget(&mut self) {
        self.recent.clear();
        self.recent.resize(RECENT, 0);
        self.recent[0] = 1;
    }
}

impl Compaction {
    /// The numbers of bits a signature may have.
    pub const BITS: std::ops::RangeInclusive<u64> = 16..=64;

    /// An empty store of signatures of this many bits, within `budget`.
    ///
    /// # Panics
    /// When the bits are not in [`BITS`](Self::BITS).
    pub fn new(bits: u32, budget: Arc<Budget>) -> Self {
        assert!(Self::BITS.contains(&bits.into()), "a signature has {:?} bits", Self::BITS);
        // What the table does not take as a key is entered as payload.
        let key_bits = bits.min(MOST_KEY_BITS);
        Compaction { bits, table: RwLock::new(Quotient::new(key_bits, bits - key_bits, budget)) }
    }

    fn shared(&self) -> RwLockReadGuard<'_, Quotient> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Quotient> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bits of a signature that are entered as payload, and how many they are.
    #[inline(always)]
    fn payload(&self, mixed: u64) -> (u64, u32) {
        let bits = self.bits - self.bits.min(MOST_KEY_BITS);
        (mixed >> (64 - self.bits) & ((1 << bits) - 1), bits)
    }

    #[inline(always)]
    fn contains(&self, table: &Quotient, mixed: u64) -> bool {
        let (payload, _) = self.payload(mixed);
        let mut found = false;
        table.probe(mixed, |other| found |= other == payload);
        found
    }

    /// Enters a signature that is not there and for which there is room.
    #[inline(always)]
    fn enter(&self, table: &mut Quotient, mixed: u64) -> Insert {
        if table.insert(mixed, self.payload(mixed).0) { Insert::New(StateId::NAMELESS) } else { Insert::Full }
    }
}

impl Store for Compaction {
    fn insert(&self, _scratch: &mut Scratch, _state: &[Slot], hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let mixed = mix(hash);
        let mut table = self.alone();
        if self.contains(&table, mixed) {
            Insert::Seen(StateId::NAMELESS)
        } else if !table.reserve(1, self.payload(mixed).1) {
            Insert::Full
        } else {
            self.enter(&mut table, mixed)
        }
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let work: &mut Work = scratch.get();
        let Work { recent, mixed, seen, which } = work;
        mixed.clear();
        which.clear();
        let first = out.len();
        out.resize(first + batch.len(), Insert::Seen(StateId::NAMELESS));
        for (index, &hash) in batch.hashes().iter().enumerate() {
            let hash = mix(hash);
            let place = &mut recent[hash as usize % RECENT];
            if *place != hash {
                *place = hash;
                mixed.push(hash);
                which.push(index as u32);
            }
        }
        seen.clear();
        seen.resize(mixed.len(), false);
        self.shared().probe_each(mixed, |index, other| seen[index] |= other == self.payload(mixed[index]).0);
        let absent = seen.iter().filter(|&&seen| !seen).count() as u64;
        if absent == 0 {
            return;
        }
        let mut table = self.alone();
        if !table.reserve(absent, self.payload(0).1) {
            // Not all of them would fit, but most may be there already.
            drop(table);
            out.truncate(first);
            work.forget();
            return insert_one_by_one(self, scratch, block, batch, out);
        }
        for ((&mixed, &seen), &index) in mixed.iter().zip(&*seen).zip(&*which) {
            // What was not there may have come with this batch, or from another thread (I1).
            if seen || self.contains(&table, mixed) {
                continue;
            }
            let answer = self.enter(&mut table, mixed);
            out[first + index as usize] = answer;
            if answer == Insert::Full {
                out.truncate(first + index as usize + 1);
                // Not all that was noted has come in.
                work.forget();
                return;
            }
        }
    }

    fn find(&self, _scratch: &mut Scratch, _state: &[Slot], hash: u64) -> Option<StateId> {
        self.contains(&self.shared(), mix(hash)).then_some(StateId::NAMELESS)
    }

    fn len(&self) -> u64 {
        self.shared().len()
    }

    fn bytes(&self) -> Bytes {
        Bytes::new().with("signatures", self.shared().bytes())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Omission(omission(self.len(), self.bits))
    }

    fn warning(&self) -> Option<String> {
        let (n, bits) = (self.len() as f64, self.bits);
        let missed = n * n / 2f64.powi(bits as i32 + 1);
        (missed >= 1.0).then(|| {
            let advice = if bits < 64 { "; choose a larger `bits`" } else { "" };
            format!("signatures of {bits} bits are too short for so many states: about {missed:.0} or more were missed{advice}")
        })
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(Work::new())
    }

    fn recode(&self, _recoding: &Recoding) -> bool {
        // Hashes outlive a recoding.
        true
    }
}

/// The probability that of `n` states one was missed, with signatures of this many bits:
/// `1 − ∏ (1 − i/2^b)`, `i < n`, by the first two terms of the logarithm of each factor. What
/// is left out matters only where the probability is 1 for all practical purposes.
fn omission(n: u64, bits: u32) -> f64 {
    let (n, all) = (n as f64, 2f64.powi(bits as i32));
    let first = n * (n - 1.0) / 2.0 / all;
    let second = n * (n - 1.0) * (2.0 * n - 1.0) / 12.0 / all / all;
    (-(-first - second).exp_m1()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Action;

    const ROOT: Arrival<'static> = Arrival { parent: None, action: Action(0) };

    /// The same probability, factor by factor.
    fn product(n: u64, bits: u32) -> f64 {
        let all = 2f64.powi(bits as i32);
        let logarithm: f64 = (0..n).map(|there| (-(there as f64) / all).ln_1p()).sum();
        -logarithm.exp_m1()
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri rounds logarithms now up, now down")]
    fn the_probability_is_that_of_the_product() {
        for (n, bits) in [(0, 40), (1, 40), (2, 16), (100, 16), (1000, 20), (100_000, 40), (2_000_000, 64)] {
            let (ours, theirs) = (omission(n, bits), product(n, bits));
            assert!((ours - theirs).abs() <= 1e-6 * theirs, "{n} states, {bits} bits: {ours} and {theirs}");
        }
        // Small ones do not get lost: a pair in 2^64.
        assert!((omission(2, 64) * 2f64.powi(64) - 1.0).abs() < 1e-9);
        assert_eq!(omission(u64::MAX, 16), 1.0);
    }

    #[test]
    fn as_many_states_are_missed_as_the_formula_says() {
        let (states, sizes): (u64, &[u32]) =
            if cfg!(miri) { (380, &[16, 57]) } else { (30_000, &[16, 24, 40, 56, 57, 64]) };
        for &bits in sizes {
            let store = Compaction::new(bits, Arc::new(Budget::unlimited()));
            let mut scratch = store.scratch();
            for number in 0..states {
                store.insert(&mut scratch, &[], number * number, &ROOT);
            }
            // As many different signatures as balls in bins.
            let all = 2f64.powi(bits as i32);
            let expected = -all * (states as f64 * (-1.0 / all).ln_1p()).exp_m1();
            let (found, spread) = (store.len() as f64, (states as f64 - expected).max(1.0).sqrt());
            assert!((found - expected).abs() <= 5.0 * spread + 0.5, "{bits} bits: {found}, expected {expected}");
            assert_eq!(store.warning().is_some(), bits <= 24, "{bits} bits");
        }
    }
}
