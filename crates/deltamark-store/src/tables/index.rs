//! The index of `plain`: a hash table from states to their numbers.
//!
//! In: a mixed hash and a number. Out: buckets to search. Invariants: those of
//! [`plain`](crate::plain); an index is a function of the vectors, so it can be cleared and
//! refilled at any time.
//!
//! # Layout in memory
//! ```text
//! bucket  [ tag|1  tag|0  tag|2  0  0 … ]    16 entries × 4 bytes, 0 = empty
//! ```
//! An entry holds the number plus one in its low bits, as many as the capacity of the index needs,
//! and bits of the hash above them, the tag.

use crate::memory::region::Region;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::bucket::{Bucket, LANES, Lanes, prefetch_to_write};
use crate::threads::claim::relax;
use crate::threads::cooperate::Help;
use deltamark_core::packed::bits_of;
use deltamark_core::{Apart, Budget};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The hash table from states to numbers.
pub(crate) struct Index {
    region: Region,
    /// How many buckets it has; none, if the budget did not even allow the first.
    pub buckets: u64,
    /// How many low bits of an entry hold the number plus one.
    number_bits: u32,
    /// How many numbers may be entered before it must grow.
    pub room: u64,
}

/// An index of fewer buckets doubles, a larger one grows by half.
const SMALL: u64 = 1 << 13;
/// The most buckets: numbers then take 31 bits of an entry and leave one for the tag. Room
/// for 1,825 million states.
const LARGEST: u64 = (1 << 27) - 1;

/// How many numbers an index of this many buckets takes: 17 of 20 entries. Beyond that
/// buckets overflow so often that look-ups get slow.
const fn room(buckets: u64) -> u64 {
    buckets * LANES as u64 / 20 * 17
}

/// The size after this one.
const fn step(buckets: u64) -> u64 {
    if buckets < SMALL { buckets * 2 } else { buckets + buckets / 2 }
}

/// How many it takes when the budget does not allow it to grow.
const fn last_room(buckets: u64) -> u64 {
    buckets * LANES as u64 / 32 * 31
}

impl Index {
    /// The buckets of the smallest index.
    pub const FEWEST: u64 = if cfg!(miri) { 2 } else { 8 };

    /// How many buckets an index has that has grown to hold this many numbers.
    pub fn buckets_for(numbers: u64) -> u64 {
        let mut buckets = Self::FEWEST;
        while room(buckets) < numbers && buckets < LARGEST {
            buckets = step(buckets).min(LARGEST);
        }
        buckets
    }

    /// The bytes that this many buckets take.
    pub fn bytes(buckets: u64) -> u64 {
        buckets * size_of::<Bucket>() as u64
    }

    /// An empty index of this many buckets, if the system has the memory.
    pub fn new(buckets: u64) -> Option<Self> {
        let region = Region::zeroed(Self::bytes(buckets) as usize)?;
        let mut index = Index { region, buckets: 0, number_bits: 0, room: 0 };
        index.set_size(buckets);
        Some(index)
    }

    /// Empties the index and gives it this many buckets. If the system does not have the
    /// memory, it says so and the index is as large as it was.
    #[must_use]
    pub fn resize(&mut self, buckets: u64) -> bool {
        // The old memory is given back before the new is taken. (Moving the old pages along
        // with `mremap` was tried: large pages get lost, and it was slower.)
        self.region = Region::indispensable(1);
        let region = Region::zeroed(Self::bytes(buckets) as usize);
        let resized = region.is_some();
        // Memory that was just given back is there, unless another thread was quicker.
        self.region = region.unwrap_or_else(|| Region::indispensable(Self::bytes(self.buckets) as usize));
        self.set_size(if resized { buckets } else { self.buckets });
        resized
    }

    /// Empties the index, which keeps its size.
    pub fn clear(&mut self) {
        // SAFETY: the region was made for this many bytes, and `&mut self`: nobody reads or writes it meanwhile.
        unsafe { self.region.as_ptr().cast::<u8>().write_bytes(0, Self::bytes(self.buckets) as usize) };
        self.room = room(self.buckets);
    }

    /// The sizes it may grow to, to hold `wanted` numbers: the usual one, and a smaller one
    /// for a budget that does not allow it. Not smaller still: every step enters all numbers
    /// again. Nothing, where a size would not do.
    pub fn next_sizes(&self, wanted: u64) -> [Option<u64>; 2] {
        let enough = |buckets: &u64| room(*buckets) >= wanted && *buckets <= LARGEST;
        // Always sizes of the same sequence, whatever was asked for when.
        let usual = std::iter::successors(Some(step(self.buckets)), |&buckets| {
            (room(buckets) < wanted && buckets <= LARGEST).then(|| step(buckets))
        });
        let small = self.buckets + self.buckets / 8;
        [usual.last().map(|buckets| buckets.min(LARGEST)).filter(enough), Some(small).filter(enough)]
    }

    /// A size a quarter larger, or larger still by as much as `wanted` needs, where memory matters
    /// more than the work of entering all numbers again. Nothing while it is small.
    pub fn next_quarter(&self, wanted: u64) -> Option<u64> {
        let mut buckets = self.buckets;
        while room(buckets) < wanted {
            buckets += (buckets / 4).max(1);
        }
        (self.buckets >= SMALL / 8 && buckets <= LARGEST).then_some(buckets)
    }

    /// Allows a load factor of 1, for want of memory.
    pub fn fill_up(&mut self) {
        self.room = last_room(self.buckets);
    }

    fn set_size(&mut self, buckets: u64) {
        debug_assert!(buckets <= LARGEST);
        self.buckets = buckets;
        // Numbers plus one, and above them the mark of I2, must be distinguished.
        self.number_bits = bits_of(buckets * LANES as u64 + 2);
        self.room = room(buckets);
    }

    /// What look-ups need, for loops that keep it in registers.
    #[inline(always)]
    pub fn view(&self) -> IndexView<'_> {
        // SAFETY: the region was made for `buckets` buckets, is aligned to cache lines, and
        // its zeroes are valid entries; they are changed as atomics only.
        let buckets = unsafe { std::slice::from_raw_parts(self.region.as_ptr().cast(), self.buckets as usize) };
        IndexView { buckets, number_bits: self.number_bits, mask: (u64::from(u32::MAX) << self.number_bits) as u32 }
    }

    /// Enters the numbers below `len` into an empty index, with all threads that help. Each makes
    /// itself a function by `hashes` that appends the mixed hashes of a range of numbers.
    ///
    /// Where the run that `budget` is for is over before all are entered, it says so by `false`. There is no room left
    /// then, and what is not found may be there all the same.
    #[must_use]
    pub fn fill<H: FnMut(Range<u64>, &mut Vec<u64>)>(
        &mut self,
        len: u64,
        budget: &Budget,
        help: &Help,
        hashes: impl Fn() -> H + Sync,
    ) -> bool {
        let whole = self.fill_while(len, &|start| !budget.is_over_at(start), help, hashes);
        if !whole {
            self.room = 0;
        }
        whole
    }

    fn fill_while<H: FnMut(Range<u64>, &mut Vec<u64>)>(
        &mut self,
        len: u64,
        goes_on: &(dyn Fn(u64) -> bool + Sync),
        help: &Help,
        hashes: impl Fn() -> H + Sync,
    ) -> bool {
        if !help.has_others() {
            // Nobody can help, so entries need no atomic exchange.
            self.view().touch(0..self.buckets);
            let (mut hashes, mut mixed) = (hashes(), Vec::new());
            for start in (0..len).step_by(STRETCH as usize) {
                if !goes_on(start) {
                    return false;
                }
                self.view().approach(start..len.min(start + STRETCH), &mut hashes, &mut mixed);
                for (number, &mixed) in (start..).zip(&mixed) {
                    self.enter(mixed, number);
                }
            }
            return true;
        }
        let given_up = AtomicBool::new(false);
        // The first number that nobody has taken upon himself to enter, and the first bucket whose
        // page nobody has taken upon himself to touch; and how many were touched.
        let (next, untouched) = (Apart(AtomicU64::new(0)), Apart(AtomicU64::new(0)));
        let touched = Apart(AtomicU64::new(0));
        let view = self.view();
        // Large pages are touched by one thread each.
        let together = if view.len() < 2 * TOUCHED { (view.len() / 16).max(PAGE) } else { TOUCHED };
        help.together(&|| {
            if next.load(Ordering::Relaxed) >= len {
                return;
            }
            while untouched.load(Ordering::Relaxed) < view.len() {
                let start = untouched.fetch_add(together, Ordering::Relaxed);
                if start < view.len() {
                    view.touch(start..start + together);
                    touched.fetch_add(together, Ordering::Relaxed);
                }
            }
            // Nobody reads a page that another one is about to touch.
            let mut rounds = 0;
            while touched.load(Ordering::Relaxed) < view.len() {
                relax(rounds);
                rounds += 1;
            }
            let (mut hashes, mut mixed) = (hashes(), Vec::new());
            loop {
                let start = next.fetch_add(STRETCH, Ordering::Relaxed);
                if start >= len || given_up.load(Ordering::Relaxed) {
                    return;
                }
                if !goes_on(start) {
                    given_up.store(true, Ordering::Relaxed);
                    return;
                }
                view.approach(start..len.min(start + STRETCH), &mut hashes, &mut mixed);
                for (number, &mixed) in (start..).zip(&mixed) {
                    view.enter_among_others(mixed, number);
                }
            }
        });
        !given_up.into_inner()
    }

    /// Enters a number that is not there; nobody else uses the index.
    #[inline]
    pub fn enter(&mut self, mixed: u64, number: u64) {
        let view = self.view();
        let entry = view.tag(mixed) | (number as u32 + 1);
        let mut at = view.home(mixed);
        loop {
            let empty = BASELINE.empty(view.bucket(at));
            if empty != 0 {
                view.bucket(at).0[empty.trailing_zeros() as usize % LANES].store(entry, Ordering::Relaxed);
                return;
            }
            at = view.next(at);
        }
    }
}

/// Numbers that are entered together when an index is filled.
const STRETCH: u64 = if cfg!(miri) { 16 } else { 256 };
/// Buckets whose pages are made together: two megabytes.
const TOUCHED: u64 = 1 << 15;
/// Buckets on a page of memory.
const PAGE: u64 = 4096 / size_of::<Bucket>() as u64;

impl IndexView<'_> {
    /// Writes to the pages of these buckets, and changes nothing. The system gives a page when
    /// it is first written to; if it is read before that, it takes two faults, and the second
    /// one interrupts all processors that run a thread of this process.
    fn touch(self, buckets: Range<u64>) {
        for bucket in (buckets.start..buckets.end.min(self.buckets.len() as u64)).step_by(PAGE as usize) {
            // An exchange of nothing for nothing. (Compilers make a read of adding or or-ing 0.)
            let _ = self.bucket(bucket).0[0].compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// How many buckets there are.
    pub fn len(self) -> u64 {
        self.buckets.len() as u64
    }

    /// Finds the hashes of a range of numbers, and asks for their buckets.
    #[inline]
    fn approach(self, numbers: Range<u64>, hashes: &mut impl FnMut(Range<u64>, &mut Vec<u64>), mixed: &mut Vec<u64>) {
        mixed.clear();
        hashes(numbers, mixed);
        for &mixed in mixed.iter() {
            prefetch_to_write(self.bucket(self.home(mixed)));
        }
    }

    /// Enters a number that is not there, while others enter other numbers and nobody searches.
    #[inline]
    fn enter_among_others(self, mixed: u64, number: u64) {
        let entry = self.tag(mixed) | (number as u32 + 1);
        let mut at = self.home(mixed);
        loop {
            let mut empty = BASELINE.empty(self.bucket(at));
            while empty != 0 {
                let place = &self.bucket(at).0[empty.trailing_zeros() as usize % LANES];
                if place.compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    return;
                }
                // Entries are filled in order: the next one may be empty still.
                empty &= empty - 1;
            }
            at = self.next(at);
        }
    }
}

/// The comparison every processor of this kind can do.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) const BASELINE: x86::Sse2 = x86::Sse2;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) const BASELINE: crate::tables::bucket::Scalar = crate::tables::bucket::Scalar;

/// An index as look-ups see it.
#[derive(Clone, Copy)]
pub(crate) struct IndexView<'a> {
    buckets: &'a [Bucket],
    number_bits: u32,
    /// The bits of an entry that hold the tag.
    pub mask: u32,
}

impl<'a> IndexView<'a> {
    /// Buckets that somebody else holds, as an index of numbers that take `number_bits` bits when
    /// one is added to them.
    #[inline(always)]
    pub fn over(buckets: &'a [Bucket], number_bits: u32) -> Self {
        IndexView { buckets, number_bits, mask: (u64::from(u32::MAX) << number_bits) as u32 }
    }

    #[inline(always)]
    pub fn bucket(self, number: u64) -> &'a Bucket {
        debug_assert!((number as usize) < self.buckets.len());
        // SAFETY: numbers come from `home` and `next`, which stay below the length.
        unsafe { self.buckets.get_unchecked(number as usize) }
    }

    /// The bucket where a search begins: the upper bits of the hash, scaled.
    #[inline(always)]
    pub fn home(self, mixed: u64) -> u64 {
        ((u128::from(mixed) * self.buckets.len() as u128) >> 64) as u64
    }

    /// The tag: the lower bits of the hash, where [`home`](Self::home) does not look.
    /// Never 0, so that no empty entry carries it.
    #[inline(always)]
    pub fn tag(self, mixed: u64) -> u32 {
        let tag = (mixed as u32).wrapping_shl(self.number_bits);
        if tag == 0 { 1 << self.number_bits } else { tag }
    }

    #[inline(always)]
    pub fn next(self, bucket: u64) -> u64 {
        if bucket + 1 == self.buckets.len() as u64 { 0 } else { bucket + 1 }
    }

    /// The number of which `same` is true, among those in entries that carry the tag of a hash,
    /// searched from bucket `from` on; or the bucket and lane of the first empty entry. Call with
    /// no claims of one's own.
    #[inline(always)]
    pub fn search<L: Lanes>(
        self,
        lanes: L,
        mixed: u64,
        from: u64,
        same: impl Fn(u64) -> bool,
    ) -> Result<u64, (u64, usize)> {
        let mut at = from;
        loop {
            let bucket = self.bucket(at);
            let (mut hits, empty) = lanes.scan(bucket, self.tag(mixed), self.mask);
            while hits != 0 {
                let number = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], self.mask);
                if same(number) {
                    return Ok(number);
                }
                hits &= hits - 1;
            }
            if empty != 0 {
                return Err((at, empty.trailing_zeros() as usize % LANES));
            }
            at = self.next(at);
        }
    }

    // What the protocol of `threads/claim.rs` does with entries.

    /// Entries of a bucket that carry the tag of a hash, and empty ones, a bit each.
    #[inline(always)]
    pub fn scan<L: Lanes>(self, lanes: L, bucket: u64, mixed: u64) -> (u32, u32) {
        lanes.scan(self.bucket(bucket), self.tag(mixed), self.mask)
    }

    #[inline(always)]
    fn entry(self, bucket: u64, lane: usize) -> &'a AtomicU32 {
        &self.bucket(bucket).0[lane % LANES]
    }

    /// The number in an entry that carries a tag, unless it is being written.
    #[inline(always)]
    pub fn number(self, bucket: u64, lane: usize) -> Option<u64> {
        settled_now(self.entry(bucket, lane), self.mask)
    }

    /// Claims an entry, if it is empty.
    #[inline(always)]
    pub fn claim(self, bucket: u64, lane: usize, mixed: u64) -> bool {
        // All ones cannot be a number plus one: see `Index::new`.
        let claimed = self.tag(mixed) | !self.mask;
        self.entry(bucket, lane).compare_exchange(0, claimed, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Writes a number into an entry that was claimed, and releases what was written before.
    #[inline(always)]
    pub fn settle(self, bucket: u64, lane: usize, mixed: u64, number: u64) {
        let settled = self.tag(mixed) | (number as u32 + 1);
        self.entry(bucket, lane).store(settled, Ordering::Release);
    }
}

/// The number in an entry that carries a tag, once it has been written (I2). Call with no
/// claims of one's own.
#[inline(always)]
pub(crate) fn settled(entry: &AtomicU32, mask: u32) -> u64 {
    let mut rounds = 0;
    loop {
        if let Some(number) = settled_now(entry, mask) {
            return number;
        }
        relax(rounds);
        rounds += 1;
    }
}

/// The number in an entry that carries a tag, unless it is being written.
#[inline(always)]
pub(crate) fn settled_now(entry: &AtomicU32, mask: u32) -> Option<u64> {
    let number = entry.load(Ordering::Acquire) & !mask;
    (number != !mask).then(|| u64::from(number) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    #[test]
    fn sizes_do_not_depend_on_how_growth_was_asked_for() {
        let grow = |wanted: &[u64]| {
            let mut index = Index::new(8).expect("a page");
            for &wanted in wanted {
                if wanted > index.room {
                    let [Some(size), _] = index.next_sizes(wanted) else { panic!("{wanted} is not too many") };
                    assert!(room(size) >= wanted);
                    assert!(index.resize(size));
                }
            }
            index.buckets
        };
        let slowly: Vec<u64> = (1..3000).map(|step| step * 100).collect();
        assert_eq!(grow(&slowly), grow(&[700, 90_000, 299_900]));
        assert_eq!(grow(&[2_546_432]), 209_952);
    }

    #[test]
    fn threads_fill_an_index_together() {
        let count: u64 = if cfg!(miri) { 150 } else { 100_000 };
        let mut index = Index::new(Index::buckets_for(count)).expect("a few pages");
        let (help, done) = (Help::default(), std::sync::atomic::AtomicBool::new(false));
        (0..3).for_each(|_| help.enrol());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| help.attend(&done));
            }
            let busy = help.begin().expect("nobody else grows");
            let hashes = || |numbers: Range<u64>, hashes: &mut Vec<u64>| hashes.extend(numbers.map(mix));
            assert!(index.fill(count, &Budget::unlimited(), &help, hashes));
            drop(busy);
            done.store(true, Ordering::Relaxed);
        });
        let view = index.view();
        let entered: u32 = (0..view.len()).map(|at| LANES as u32 - BASELINE.empty(view.bucket(at)).count_ones()).sum();
        assert_eq!(u64::from(entered), count);
        for number in 0..count {
            let found = view.search(BASELINE, mix(number), view.home(mix(number)), |held| held == number);
            assert_eq!(found, Ok(number));
        }
    }

    #[test]
    fn there_is_a_largest_size() {
        let index = Index { buckets: LARGEST - 5, ..Index::new(8).expect("a page") };
        assert_eq!(index.next_sizes(room(LARGEST))[0], Some(LARGEST));
        assert_eq!(index.next_sizes(room(LARGEST) + 1), [None, None]);
    }
}
