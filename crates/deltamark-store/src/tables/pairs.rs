//! # The idea
//! A concurrent quotient set: it stores of each number only what its position does not determine.
//! It holds the roots of `compact` where pairs are too sparse for a bitmap, and the signatures of
//! `compaction`.
//!
//! In: numbers of up to 64 bits. Out: whether each was present. Quotienting is due to Cleary
//! (1984); a tree store with such roots to Laarman (2019). Differences: entries are as wide as
//! currently needed and widen in place; growing is in place too, one pass from the last line to the
//! first, by all threads (`pairs/rearrange.rs`); no size must be given.
//!
//! # Layout in memory
//! ```text
//! number     [ key: 32 bits | rest ]                cut as `pairs/numbers.rs` says
//! line j     head | t t t t t … | v v v v v …       64 or 128 bytes, as 8 or 16 atomic words
//! head       own and foreign entries, three marks   2 bytes
//! entry      remainder of the key, then the rest: the low 8 bits are t, the others v
//! ```
//! From key and rest the number follows, so nothing is lost. There are `m·2^e` lines, `m`
//! being 8, 10, 12 or 14; key `x` has its home in line `x·m >> (32-e)`, and of the bits shifted
//! out all but the lowest three are the remainder: keys of one home differ there by multiples
//! of `m >= 8`. Of the rest, bits that are known to be 0 are omitted; it
//! is no part of the key, so that numbers may get longer without any
//! entry getting another home. An entry that finds its home full goes to the next line, where
//! such foreign entries are at the end; one that finds that full too goes to the stash.
//!
//! # Invariants
//! * I1: an entry is in its home line; or in the next one, and then its home is marked
//!   overflown; or in the stash, and then that next line is marked too. Entries are never taken
//!   out, and a line that is full stays full.
//! * I2: a thread that changes a line has claimed it, and writes its first word last: see
//!   `pairs/insert.rs`, which is why look-ups need no lock and two threads never insert the same
//!   number.
//! * I3: growing, and everything that takes `&mut self`, is exclusive to one thread and its
//!   helpers.

mod insert;
mod layout;
mod line;
mod numbers;
mod rearrange;

use crate::memory::arena::Arena;
use crate::tables::bucket::{prefetch, prefetch_as};
use crate::tables::pair_code::Reach;
use crate::tables::quotient::stash::Stash;
use crate::tables::tiles::Added;
use crate::threads::cooperate::Help;
use deltamark_core::Budget;
use layout::PairsShape;
use line::{COUNT, FOREIGN_SHIFT, OVERFLOWN, PairLine, STASHED};
use numbers::Numbers;
pub(crate) use numbers::Signatures;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A set of numbers of some reach, in lines of `W` words, 8 or 16.
pub(crate) struct Set<R: Numbers, const W: usize> {
    budget: Arc<Budget>,
    shape: PairsShape<R, W>,
    lines: Arena,
    /// Bytes granted for lines.
    granted: u64,
    /// How many numbers are let in.
    room: u64,
    stash: Mutex<Stash>,
}

/// A set of codes of pairs.
pub(crate) type Pairs = Set<Reach, 16>;

impl<R: Numbers, const W: usize> Set<R, W> {
    const LINE_BYTES: u64 = {
        assert!(W == 8 || W == 16, "one or two lines of the cache");
        size_of::<PairLine<W>>() as u64
    };

    /// An empty set for numbers of this reach, if the budget allows it.
    pub fn new(reach: R, budget: &Arc<Budget>) -> Option<Self> {
        let shape = PairsShape::first(reach);
        let lines = Arena::new(2 * W);
        if !budget.request(shape.line_bytes()) {
            return None;
        }
        if !lines.extend(shape.lines() + 1) {
            budget.release(shape.line_bytes());
            return None;
        }
        let (granted, room) = (shape.line_bytes(), shape.room(false));
        let stash = Mutex::new(Stash::default());
        Some(Set { budget: Arc::clone(budget), shape, lines, granted, room, stash })
    }

    /// How many bytes a set of this many numbers takes, about.
    pub fn estimate(numbers: u64, reach: R) -> u64 {
        PairsShape::<R, W>::first(reach).with_room(numbers).line_bytes()
    }

    /// How far its numbers go.
    pub fn reach(&self) -> R {
        self.shape.reach
    }

    /// The bytes of lines, and of the stash.
    pub fn bytes(&self) -> (u64, u64) {
        (self.granted, self.stashed().granted)
    }

    /// Whether there is room for this many numbers of this reach in all.
    #[inline]
    pub fn has_room(&self, numbers: u64, reach: R) -> bool {
        numbers <= self.room && self.shape.reach.covers(reach)
    }

    #[inline(always)]
    fn line(&self, at: u64) -> &PairLine<W> {
        debug_assert!(at <= self.shape.lines());
        let view = self.lines.view();
        // Known when this is compiled.
        let address = if W == 16 { view.address::<32>(at) } else { view.address::<16>(at) };
        // SAFETY: lines up to one behind the last have addresses (see `new` and `rearrange`),
        // aligned, as items of 64 or 128 bytes; zero is valid, and they are used as atomics only.
        unsafe { &*address.cast::<PairLine<W>>() }
    }

    /// Asks for the memory in which a number would be found, or entered if it is expected to be new.
    #[inline(always)]
    pub fn prefetch(&self, number: u64, expects_new: bool) {
        let (home, _) = self.shape.split(number);
        let line = self.line(home);
        prefetch_as(&line.0[0], expects_new);
        if let Some(second) = line.0.get(8) {
            prefetch(second);
        }
    }

    /// Whether a number is there.
    #[inline(always)]
    pub fn contains(&self, number: u64) -> bool {
        if !self.shape.can_hold(number) {
            return false;
        }
        let (home, entry) = self.shape.split(number);
        let line = self.line(home);
        let first = line.0[0].load(Ordering::Acquire);
        if line.holds(&self.shape, first, false, entry) {
            return true;
        }
        if first & OVERFLOWN == 0 {
            return false;
        }
        let next = self.line(home + 1);
        let first = next.0[0].load(Ordering::Acquire);
        next.holds(&self.shape, first, true, entry) || first & STASHED != 0 && self.stashed().contains(number)
    }

    /// The same for the line behind, if a number may be there; its home has been asked for before.
    #[inline(always)]
    pub fn prefetch_further(&self, number: u64) {
        let (home, _) = self.shape.split(number);
        let overflown = self.line(home).0[0].load(Ordering::Relaxed) & OVERFLOWN != 0;
        // Without a branch: which lines these are cannot be predicted.
        prefetch(self.line(home + u64::from(overflown)));
    }

    /// Enters a number, for which there is room.
    #[inline(always)]
    pub fn insert(&self, number: u64) -> Added {
        let (home, entry) = self.shape.split(number);
        match self.line(home).enter(&self.shape, false, entry) {
            Some(added) => added,
            None => match self.line(home + 1).enter(&self.shape, true, entry) {
                Some(added) => added,
                None => self.insert_stashed(number, false),
            },
        }
    }

    #[cold]
    fn insert_stashed(&self, number: u64, must: bool) -> Added {
        let mut stash = self.stashed();
        if stash.contains(number) {
            Added::Seen
        } else if stash.push(number, 0, &self.budget, must) {
            Added::New
        } else {
            Added::Full
        }
    }

    fn stashed(&self) -> MutexGuard<'_, Stash> {
        self.stash.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for this many numbers of this reach in all (I3). Returns whether there was memory.
    #[must_use]
    pub fn make_room(&mut self, numbers: u64, reach: R, help: &Help) -> bool {
        let shape = self.shape.reaching(reach).with_room(numbers);
        if shape.room(false) >= numbers && self.rearrange(shape, help) {
            self.room = shape.room(false);
            return true;
        }
        // No memory to grow: fill the last slots instead.
        if self.shape.reach.covers(reach) {
            self.room = self.shape.room(true);
        }
        self.has_room(numbers, reach)
    }

    /// Calls `visit` with every number there is; nobody else uses the set. On `false` it ends.
    pub fn each(&self, mut visit: impl FnMut(u64) -> bool) -> bool {
        (0..=self.shape.lines()).all(|at| self.each_of(at, &mut visit)) && self.each_stashed(&mut visit)
    }

    /// The same, and gives back memory on the way: what was visited is not there any more.
    pub fn drain(&mut self, mut visit: impl FnMut(u64) -> bool) -> bool {
        /// Lines after which memory is given back: 256 KiB.
        const PIECE: u64 = 2048;
        let lines = self.shape.lines();
        for at in 0..=lines {
            if !self.each_of(at, &mut visit) {
                return false;
            }
            if (at + 1).is_multiple_of(PIECE) && at < lines {
                let within = self.lines.contiguous(0) - self.lines.contiguous(at + 1);
                self.lines.release_before(at + 1, within * Self::LINE_BYTES);
                let bytes = PIECE * Self::LINE_BYTES;
                self.granted -= bytes;
                self.budget.release(bytes);
            }
        }
        self.each_stashed(&mut visit)
    }

    /// Calls `visit` with every number of a line.
    fn each_of(&self, at: u64, visit: &mut impl FnMut(u64) -> bool) -> bool {
        let (shape, line) = (&self.shape, self.line(at));
        let first = line.0[0].load(Ordering::Acquire);
        let own = (0..(first & COUNT) as u32).map(|slot| (at, slot));
        let foreign =
            (0..(first >> FOREIGN_SHIFT & COUNT) as u32).map(|count| (at.wrapping_sub(1), shape.slots - 1 - count));
        own.chain(foreign).all(|(home, slot)| visit(shape.join(home, line.get(shape, slot))))
    }

    fn each_stashed(&self, visit: &mut impl FnMut(u64) -> bool) -> bool {
        self.stashed().words().all(visit)
    }
}

impl<R: Numbers, const W: usize> Drop for Set<R, W> {
    fn drop(&mut self) {
        let (lines, stash) = self.bytes();
        self.budget.release(lines + stash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;
    use deltamark_core::packed::bits_of;

    /// Numbers of this many bits.
    fn bits(bits: u32) -> Reach {
        Reach { skew: 0, left: bits.div_ceil(2), right: bits.div_ceil(2) }
    }

    #[test]
    fn numbers_stay_over_growth_and_widening() {
        let help = Help::default();
        let budget = Arc::new(Budget::unlimited());
        let mut pairs = Pairs::new(bits(20), &budget).expect("there is no limit");
        let count = if cfg!(miri) { 300 } else { 300_000 };
        // Ever longer numbers.
        let number = |step: u64| (step * step * 31) ^ step << 3;
        let reach = |number: u64| bits(bits_of(number));
        let mut there = std::collections::HashSet::new();
        for step in 0..count {
            let number = number(step);
            let wanted = there.len() as u64 + 1;
            assert!(pairs.has_room(wanted, reach(number)) || pairs.make_room(wanted, reach(number), &help));
            let new = there.insert(number);
            assert_eq!(pairs.contains(number), !new);
            assert_eq!(pairs.insert(number) == Added::New, new, "{step}");
            if step % 1000 == 0 {
                let (lines, stash) = pairs.bytes();
                assert_eq!(lines + stash, budget.used());
            }
        }
        let mut found = std::collections::HashSet::new();
        assert!(pairs.each(|number| found.insert(number)));
        assert_eq!(found, there);
        assert!(!pairs.contains(number(count + 1)));
        drop(pairs);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn threads_that_help_lose_nothing() {
        let count: u64 = if cfg!(miri) { 400 } else { 400_000 };
        let budget = Arc::new(Budget::unlimited());
        let mut pairs = Pairs::new(bits(40), &budget).expect("there is no limit");
        let (help, done) = (Help::default(), std::sync::atomic::AtomicBool::new(false));
        (0..3).for_each(|_| help.enrol());
        let number = |step: u64| mix(step) >> 24;
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| help.attend(&done));
            }
            let mut reach = bits(40);
            for step in 0..count {
                if step % (count / 3) == 7 {
                    // Widened at the same size, too.
                    reach = bits(40 + 6 * (step * 3 / count) as u32);
                }
                if !pairs.has_room(step + 1, reach) {
                    let _busy = help.begin().expect("nobody else grows");
                    assert!(pairs.make_room(step + 1, reach, &help));
                }
                assert_eq!(pairs.insert(number(step)), Added::New);
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!((0..count).all(|step| pairs.contains(number(step))));
        let mut found = std::collections::HashSet::new();
        assert!(pairs.each(|number| found.insert(number)));
        assert_eq!(found.len() as u64, count);
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of entries, which take Miri minutes")]
    fn a_spent_budget_is_told_and_nothing_is_lost() {
        let budget = Arc::new(Budget::new(20_000));
        let mut pairs = Pairs::new(bits(40), &budget).expect("enough for the first");
        let number = |step: u64| mix(step) >> 24;
        let mut there = 0;
        let help = Help::default();
        while pairs.has_room(there + 1, bits(40)) || pairs.make_room(there + 1, bits(40), &help) {
            match pairs.insert(number(there)) {
                Added::New => there += 1,
                Added::Full => break,
                Added::Seen => panic!("it was not there"),
            }
        }
        assert!(there > 2000 && budget.used() <= 20_000, "{there}");
        assert!((0..there).all(|step| pairs.contains(number(step))));
    }

    #[test]
    fn threads_never_enter_a_number_twice() {
        let count = if cfg!(miri) { 100 } else { 200_000 };
        let budget = Arc::new(Budget::unlimited());
        let mut pairs = Pairs::new(bits(40), &budget).expect("there is no limit");
        assert!(pairs.make_room(count, bits(40), &Help::default()));
        let begin = std::sync::Barrier::new(3);
        let new: u64 = std::thread::scope(|scope| {
            let (pairs, begin) = (&pairs, &begin);
            let insert = move |start: u64| {
                begin.wait();
                (0..count).filter(|step| pairs.insert(mix((start + step) % count) >> 24) == Added::New).count() as u64
            };
            let threads: Vec<_> = (0..3).map(|start| scope.spawn(move || insert(start / 2 * 5))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        let mut found = std::collections::HashSet::new();
        assert!(pairs.each(|number| found.insert(number)));
        assert_eq!(found.len() as u64, new);
    }

    /// Signatures of this many bits, the least and the largest among them, inserted by one thread while another helps.
    fn check_signatures<const W: usize>(bits: u32) {
        let budget = Arc::new(Budget::unlimited());
        let mut set = Set::<_, W>::new(Signatures { bits }, &budget).expect("there is no limit");
        let (help, done) = (Help::default(), std::sync::atomic::AtomicBool::new(false));
        (0..2).for_each(|_| help.enrol());
        let largest = u64::MAX >> (64 - bits);
        // So many close to the ends that some find no line.
        let near = if cfg!(miri) { 20 } else { 200 };
        let count = if cfg!(miri) { 100 } else { 20_000 };
        let numbers =
            (0..near).flat_map(|step| [step, largest - step]).chain((0..count).map(|step| mix(step) & largest));
        let mut there = std::collections::HashSet::new();
        std::thread::scope(|scope| {
            scope.spawn(|| help.attend(&done));
            for number in numbers {
                let wanted = there.len() as u64 + 1;
                if !set.has_room(wanted, set.reach()) {
                    let _busy = help.begin().expect("nobody else grows");
                    assert!(set.make_room(wanted, set.reach(), &help));
                }
                assert_eq!(set.contains(number), there.contains(&number), "{bits} bits, {number}");
                let expected = if there.insert(number) { Added::New } else { Added::Seen };
                assert_eq!(set.insert(number), expected, "{bits} bits, {number}");
            }
            done.store(true, Ordering::Relaxed);
        });
        let (lines, stash) = set.bytes();
        assert_eq!(lines + stash, budget.used());
        let mut found = std::collections::HashSet::new();
        assert!(set.each(|number| found.insert(number)));
        assert_eq!(found, there);
    }

    #[test]
    fn signatures_of_every_length_are_kept() {
        let lengths: &[u32] = if cfg!(miri) { &[16, 64] } else { &[16, 20, 31, 32, 33, 56, 62, 63, 64] };
        for &bits in lengths {
            check_signatures::<8>(bits);
            check_signatures::<16>(bits);
        }
    }
}
