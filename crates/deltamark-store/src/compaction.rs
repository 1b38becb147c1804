//! # The idea
//! Stores only a signature of a state, some bits of its hash. Two states with equal signatures are
//! treated as equal, so the second is missed, with everything reachable only through it; the
//! probability of that is known. Hash compaction is due to P. Wolper and D. Leroy, *Reliable
//! Hashing without Collision Detection*, CAV 1993; U. Stern and D. L. Dill, *Improved Probabilistic
//! Verification by Hash Compaction*, CHARME 1995, make signature and position in the table
//! independent. Better here: the position determines the upper bits of the signature, so only the
//! remainder is stored (see `pairs.rs`), and the table grows.
//!
//! # Layout in memory
//! ```text
//! hash, mixed   [ signature: the top `bits` bits | not used ]
//!               [ place | remainder: stored      ]
//! ```
//! A table of n signatures stores about `bits − log2 n` bits of each at a load factor of 0.8 to
//! 0.9: with a million states or two about 4 bytes per state at 40 bits, 6 to 7 at 56.
//!
//! # Guarantee
//! The hash is assumed uniform and independent, as in the papers. With `i` signatures present, the
//! next state is missed with probability `i / 2^b`. So no state of a run that ends with `n`
//! signatures was missed with probability `∏ (1 − i/2^b)`, `i < n` (Wolper and Leroy; about
//! `exp(−n²/2^(b+1))`), and the store reports one minus that: the probability that *any* state is
//! missing. It counts the states that were found; missed states, and those reachable only through
//! them, are not in `n`, which matters only once several are expected. That one given state, for
//! example an erroneous one, is missing is far less probable (Stern and Dill, *A New Scheme for
//! Memory-Efficient Probabilistic Verification*, FORTE 1996, bound it along a shortest path).
//!
//! # Invariants
//! * I1: every signature is in the set once. Which states are missed depends on signatures alone, not on threads.
//! * I2: an inserting thread holds the gate shared, and the set has room for its insertions;
//!   growing holds the gate exclusively, and all threads help. Look-ups take no lock, and a new
//!   signature is inserted by claiming its line (`pairs/insert.rs`).
//!
//! # When to choose it
//! When no exact store fits, to search for errors rather than prove their absence. States cannot be
//! recalled: the search keeps unexpanded states in full.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::pair_code::Bmi2;
use crate::tables::pairs::{Set, Signatures};
use crate::tables::tiles::Added;
use crate::threads::cooperate::Help;
use crate::threads::gate::{Gate, Shared};
use crate::threads::reserve::{Growth, Promises, Room};
use deltamark_core::{
    Apart, Arrival, Batch, Block, Budget, Bytes, Guarantee, Insert, Recoding, Scratch, Slot, StateId, Store, hash::mix,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The set of signatures.
pub struct Compaction {
    bits: u32,
    len: Apart<AtomicU64>,
    promises: Promises<1>,
    gate: Gate<Table>,
}

/// What changes only while the gate is held alone.
struct Table {
    /// `None` if the budget did not even allow the first lines.
    set: Option<Box<dyn Held>>,
    growth: Growth,
}

/// A set of signatures, in lines of one length or another.
trait Held: Send + Sync {
    fn bytes(&self) -> u64;
    fn has_room(&self, signatures: u64) -> bool;
    fn make_room(&mut self, signatures: u64, help: &Help) -> bool;
    fn contains(&self, signature: u64) -> bool;
    fn insert(&self, signature: u64) -> Added;

    /// Enters signatures, up to the first that finds no room; `which` of the answers each has. Gives how many are
    /// new, and which answer found no room.
    fn enter(&self, signatures: &[u64], which: &[u32], new: bool, answers: &mut [Insert]) -> (u64, Option<usize>);
}

/// Signatures of up to this many bits are in lines of 64 bytes, which hold 62 of them at most; longer ones in lines of
/// 128, of which less stays empty.
const SHORT: u32 = 32;
/// How many signatures before its turn the line of one is asked for: enough to hide memory latency.
const FAR: usize = 32;
/// And the line behind it, if that is needed: when the first has come.
const NEAR: usize = 8;
/// Signatures for which room is set aside together.
const TOGETHER: usize = 1024;
/// How many recent hashes are kept, a power of two: as many as stay in the second cache.
const RECENT: usize = 1 << 14;

/// What a thread needs for a batch.
struct CompactionScratch {
    room: Room<1>,
    /// Whether many of its last signatures were new, so that lines are fetched for writing.
    expects_new: bool,
    /// Hashes that are surely there, each at the place its low bits name.
    recent: Vec<u64>,
    /// The signatures of the batch that must be looked up.
    signatures: Vec<u64>,
    /// Which successor each of these is.
    which: Vec<u32>,
}

impl CompactionScratch {
    fn new() -> Self {
        let (recent, signatures, which) = (Vec::new(), Vec::new(), Vec::new());
        let mut work = CompactionScratch { room: Room::default(), expects_new: false, recent, signatures, which };
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
        let reach = Signatures { bits };
        let set: Option<Box<dyn Held>> = if bits <= SHORT {
            Set::<_, 8>::new(reach, &budget).map(|set| Box::new(set) as _)
        } else {
            Set::<_, 16>::new(reach, &budget).map(|set| Box::new(set) as _)
        };
        let table = Table { set, growth: Growth::default() };
        Compaction { bits, len: Apart::default(), promises: Promises::default(), gate: Gate::new(table) }
    }

    /// The signature of a mixed hash.
    #[inline(always)]
    fn signature(&self, mixed: u64) -> u64 {
        mixed >> (64 - self.bits)
    }

    /// Sets room aside for `more` signatures and hands out the table, growing it first if need
    /// be (I2). `None` if the budget is spent.
    fn set_aside(&self, room: &mut Room<1>, more: u64) -> Option<Shared<'_, Table>> {
        loop {
            let table = self.gate.shared();
            let missing = room.missing(table.growth, [more], || [self.len()]);
            if missing == [0] {
                return Some(table);
            }
            let [promised] = self.promises.add(missing);
            if table.set.as_ref()?.has_room(promised) {
                room.add(missing);
                return Some(table);
            }
            self.promises.withdraw(missing);
            drop(table);
            let Some((_busy, mut table)) = self.gate.grow() else { continue };
            let Table { set: Some(set), growth } = &mut *table else { return None };
            growth.number += 1;
            let (len, help) = (self.len(), &self.gate.help);
            self.promises.void([len]);
            let mut make_room = |more: u64| set.has_room(len + more) || set.make_room(len + more, help);
            // For all threads, so that they do not come here in turn.
            let [each] = growth.ahead([more], [len]);
            if growth.tight || !make_room(each * help.threads() as u64) {
                growth.tight = true;
                if !make_room(more) {
                    return None;
                }
            }
        }
    }

    /// Counts signatures that are new, and takes them from the room that was set aside. Before the
    /// table is given back: who makes it grow must know how many there are.
    fn count(&self, room: &mut Room<1>, new: u64) {
        if new > 0 {
            room.take([new]);
            self.len.fetch_add(new, Ordering::AcqRel);
        }
    }
}

impl Table {
    fn contains(&self, signature: u64) -> bool {
        self.set.as_ref().is_some_and(|set| set.contains(signature))
    }
}

impl<const W: usize> Held for Set<Signatures, W> {
    fn bytes(&self) -> u64 {
        let (lines, stash) = Set::bytes(self);
        lines + stash
    }

    fn has_room(&self, signatures: u64) -> bool {
        Set::has_room(self, signatures, self.reach())
    }

    fn make_room(&mut self, signatures: u64, help: &Help) -> bool {
        Set::make_room(self, signatures, self.reach(), help)
    }

    fn contains(&self, signature: u64) -> bool {
        Set::contains(self, signature)
    }

    fn insert(&self, signature: u64) -> Added {
        Set::insert(self, signature)
    }

    fn enter(&self, signatures: &[u64], which: &[u32], new: bool, answers: &mut [Insert]) -> (u64, Option<usize>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if Bmi2::detect().is_some() {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { enter_bmi2(self, signatures, which, new, answers) };
        }
        enter(self, signatures, which, new, answers)
    }
}

/// [`enter`] with the instructions of BMI2, which shift by any number of bits at once.
///
/// # Safety
/// The processor has them.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "bmi1,bmi2")]
unsafe fn enter_bmi2<const W: usize>(
    set: &Set<Signatures, W>,
    signatures: &[u64],
    which: &[u32],
    expects_new: bool,
    answers: &mut [Insert],
) -> (u64, Option<usize>) {
    enter(set, signatures, which, expects_new, answers)
}

/// See [`Held::enter`].
#[inline(always)]
fn enter<const W: usize>(
    set: &Set<Signatures, W>,
    signatures: &[u64],
    which: &[u32],
    expects_new: bool,
    answers: &mut [Insert],
) -> (u64, Option<usize>) {
    for &signature in signatures.iter().take(FAR) {
        set.prefetch(signature, expects_new);
    }
    let mut new = 0;
    for (at, (&signature, &index)) in signatures.iter().zip(which).enumerate() {
        if let Some(&far) = signatures.get(at + FAR) {
            set.prefetch(far, expects_new);
        }
        if let Some(&near) = signatures.get(at + NEAR) {
            set.prefetch_further(near);
        }
        match set.insert(signature) {
            Added::New => {
                new += 1;
                answers[index as usize] = Insert::New(StateId::NAMELESS);
            }
            Added::Seen => {}
            Added::Full => return (new, Some(index as usize)),
        }
    }
    (new, None)
}

impl Store for Compaction {
    fn insert(&self, scratch: &mut Scratch, _state: &[Slot], hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let signature = self.signature(mix(hash));
        let room = &mut scratch.get::<CompactionScratch>().room;
        let table = self.set_aside(room, 1);
        let Some(set) = table.as_ref().and_then(|table| table.set.as_ref()) else {
            // No room, but it may be there.
            let seen = self.gate.shared().contains(signature);
            return if seen { Insert::Seen(StateId::NAMELESS) } else { Insert::Full };
        };
        match set.insert(signature) {
            Added::New => {
                self.count(room, 1);
                Insert::New(StateId::NAMELESS)
            }
            Added::Seen => Insert::Seen(StateId::NAMELESS),
            Added::Full => Insert::Full,
        }
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let work = scratch.get::<CompactionScratch>();
        let CompactionScratch { room, expects_new, recent, signatures, which } = work;
        signatures.clear();
        which.clear();
        let first = out.len();
        out.resize(first + batch.len(), Insert::Seen(StateId::NAMELESS));
        for (index, &hash) in batch.hashes().iter().enumerate() {
            let hash = mix(hash);
            let place = &mut recent[hash as usize % RECENT];
            if *place != hash {
                *place = hash;
                signatures.push(self.signature(hash));
                which.push(index as u32);
            }
        }
        let answers = &mut out[first..];
        for start in (0..signatures.len()).step_by(TOGETHER) {
            let end = signatures.len().min(start + TOGETHER);
            let table = self.set_aside(room, (end - start) as u64);
            let Some(set) = table.as_ref().and_then(|table| table.set.as_ref()) else {
                // Not all of them would fit, but most may be there already. What was noted is not.
                let begin = which[start] as usize;
                out.truncate(first + begin);
                work.forget();
                for index in begin..batch.len() {
                    let arrival = batch.arrival(block, index);
                    out.push(self.insert(scratch, batch.target(index), batch.hash(index), &arrival));
                    if out.last() == Some(&Insert::Full) {
                        return;
                    }
                }
                return;
            };
            let (new, full) = set.enter(&signatures[start..end], &which[start..end], *expects_new, answers);
            self.count(room, new);
            // Of several threads each should take a line it will write to at once.
            *expects_new = new * 4 > (end - start) as u64 && self.gate.help.has_others();
            if let Some(index) = full {
                answers[index] = Insert::Full;
                out.truncate(first + index + 1);
                // Not all that was noted has come in.
                work.forget();
                return;
            }
        }
    }

    fn find(&self, _scratch: &mut Scratch, _state: &[Slot], hash: u64) -> Option<StateId> {
        self.gate.shared().contains(self.signature(mix(hash))).then_some(StateId::NAMELESS)
    }

    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn bytes(&self) -> Bytes {
        Bytes::new().with("signatures", self.gate.shared().set.as_ref().map_or(0, |set| set.bytes()))
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
        self.gate.help.enrol();
        Scratch::new(CompactionScratch::new())
    }

    fn recode(&self, _recoding: &Recoding) -> bool {
        // Hashes outlive a recoding.
        true
    }
}

/// The probability that of `n` states one was missed, with signatures of this many bits:
/// `1 − ∏ (1 − i/2^b)`, `i < n`, by the first two terms of the logarithm of each factor. What
/// is omitted matters only where the probability is 1 for all practical purposes.
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
