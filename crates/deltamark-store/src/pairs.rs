//! # The idea
//! A set of numbers that keeps of each only what its place does not say, for several threads:
//! the roots of `compact` where pairs are too sparse for a bitmap.
//!
//! In: numbers (codes of pairs) of up to 62 bits. Out: whether each was there. Quotienting is
//! due to Cleary (1984); a tree store with such roots to Laarman (2019). What is done
//! differently: entries are as wide as the run needs now and widen in place; growing is in place
//! too, one pass from the last line to the first; there is no size to be given.
//!
//! # Layout in memory
//! ```text
//! number     [ upper bits | lower 32 bits ]
//! key        mix(lower) + spread(upper)  modulo 2^32
//! line j     head | t t t t t … | v v v v v …       128 bytes, as 16 atomic words
//! head       own and foreign entries, three marks   2 bytes
//! entry      remainder of the key, then the upper bits: the low 8 bits are t, the others v
//! ```
//! From key and upper bits the number follows, so nothing is lost. There are `m·2^e` lines, `m`
//! being 8, 10, 12 or 14; key `x` has its home in line `x·m >> (32-e)`, and of the bits shifted
//! out all but the lowest three are the remainder: keys of one home differ there by multiples
//! of `m >= 8`. Upper bits are no part of the key, so that numbers may get longer without any
//! entry getting another home. An entry that finds its home full goes to the next line, where
//! such foreign entries stand at the end; one that finds that full too goes to the stash.
//!
//! # Invariants
//! * I1: an entry is in its home line; or in the next one, and then its home is marked
//!   overflown; or in the stash, and then that next line is marked too. Entries are never taken
//!   out, and a line that is full stays full.
//! * I2: who changes a line has claimed it, and writes its first word last: see `enter.rs`, which
//!   is why look-ups need no lock and two threads never enter the same number.
//! * I3: growing, and everything that takes `&mut self`, is done by one thread alone.

use crate::arena::Arena;
use crate::bucket::prefetch;
use crate::enter::{Place, enter};
use crate::tiles::Added;
use deltamark_core::{Budget, hash::mix};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Words of a line.
const WORDS: usize = 16;
/// Bytes of a line.
const LINE_BYTES: u64 = 8 * WORDS as u64;
/// The bits of a line in front of its tags.
const HEAD: u32 = 16;
/// The most entries of a line: their tags are in its first 64 bytes.
const MOST_SLOTS: u32 = 62;
/// Bits of a key.
const KEY_BITS: u32 = 32;
/// The head: entries of its own, foreign ones, and the marks.
const COUNT: u64 = 0x3f;
const FOREIGN_SHIFT: u32 = 6;
/// Entries of its own are elsewhere.
const OVERFLOWN: u64 = 1 << 12;
/// Entries of the line before are in the stash.
const STASHED: u64 = 1 << 13;
/// Somebody is changing the line.
const BUSY: u64 = 1 << 14;

/// One line, two lines of the cache.
#[repr(C, align(64))]
struct Line([AtomicU64; WORDS]);

/// What follows from the number of lines and the width of the upper bits.
#[derive(Clone, Copy, Debug)]
struct Shape {
    m: u64,
    e: u32,
    /// Upper bits of a number that an entry holds.
    upper_bits: u32,
    remainder_bits: u32,
    /// Entries of a line.
    slots: u32,
    /// Bits of an entry beyond its tag.
    more_bits: u32,
}

impl Shape {
    fn new(m: u64, e: u32, upper_bits: u32) -> Self {
        let remainder_bits = (KEY_BITS - e).saturating_sub(3);
        let more_bits = (remainder_bits + upper_bits).saturating_sub(8);
        let slots = ((8 * LINE_BYTES as u32 - HEAD) / (8 + more_bits)).min(MOST_SLOTS);
        Shape { m, e, upper_bits, remainder_bits, slots, more_bits }
    }

    fn lines(&self) -> u64 {
        self.m << self.e
    }

    /// The bytes of the lines, and of one behind them for what the last does not hold.
    fn bytes(&self) -> u64 {
        (self.lines() + 1) * LINE_BYTES
    }

    /// How many entries are let in before it grows: so many that about one in a hundred has to
    /// go to the stash; when the budget does not let it grow, nearly all slots are filled.
    fn room(&self, last: bool) -> u64 {
        let slots = f64::from(self.slots);
        let fill = if last { slots * 0.96 } else { slots - 0.6 * slots.sqrt() };
        (self.lines() as f64 * fill) as u64
    }

    /// The next larger size, if keys have bits for it.
    fn next(&self) -> Option<Shape> {
        let (m, e) = if self.m == 14 { (8, self.e + 1) } else { (self.m + 2, self.e) };
        (e + 3 <= KEY_BITS).then(|| Shape::new(m, e, self.upper_bits))
    }

    /// Line and entry of a number.
    #[inline(always)]
    fn split(&self, number: u64) -> (u64, u64) {
        let upper = number >> KEY_BITS;
        let product = u64::from(key(number as u32, upper)) * self.m;
        let shift = KEY_BITS - self.e;
        let remainder = (product & ((1 << shift) - 1)) >> 3;
        (product >> shift, remainder | upper << self.remainder_bits)
    }

    /// The number of this line and entry.
    #[inline(always)]
    fn join(&self, home: u64, entry: u64) -> u64 {
        let shift = KEY_BITS - self.e;
        let upper = entry >> self.remainder_bits;
        let remainder = entry & ((1 << self.remainder_bits) - 1);
        let least = home << shift | remainder << 3;
        // The only key whose product lies in the eight numbers left open.
        let key = least.div_ceil(self.m) as u32;
        upper << KEY_BITS | u64::from(unmix(key.wrapping_sub(mix(upper) as u32)))
    }
}

/// The key of a number: mixed, so that homes are used alike.
#[inline(always)]
fn key(lower: u32, upper: u64) -> u32 {
    mix32(lower).wrapping_add(mix(upper) as u32)
}

/// A bijection that spreads every bit over all others (constants by C. Wellons, 2018).
#[inline(always)]
const fn mix32(word: u32) -> u32 {
    let mut x = word ^ (word >> 16);
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// The way back.
#[inline(always)]
const fn unmix(word: u32) -> u32 {
    let mut x = word ^ (word >> 16);
    x = x.wrapping_mul(0x4302_1123);
    x ^= x >> 15 ^ x >> 30;
    x = x.wrapping_mul(0x1d69_e2a5);
    x ^ (x >> 16)
}

impl Line {
    /// What a slot holds.
    #[inline(always)]
    fn get(&self, shape: &Shape, slot: u32) -> u64 {
        let tag = self.read(HEAD + slot * 8, 8);
        if shape.more_bits == 0 {
            return tag;
        }
        tag | self.read(HEAD + shape.slots * 8 + slot * shape.more_bits, shape.more_bits) << 8
    }

    #[inline(always)]
    fn read(&self, bit: u32, bits: u32) -> u64 {
        let (word, shift) = (bit as usize / 64, bit % 64);
        let mut value = self.0[word].load(Ordering::Relaxed) >> shift;
        if shift + bits > 64 {
            value |= self.0[word + 1].load(Ordering::Relaxed) << (64 - shift);
        }
        value & (u64::MAX >> (64 - bits))
    }

    /// Fills a slot that was empty, of a line that is busy for others (I2). What goes to the
    /// first word is given back, to be written last.
    #[inline(always)]
    fn put(&self, shape: &Shape, slot: u32, entry: u64, first: u64) -> u64 {
        let first = first | self.write(HEAD + slot * 8, entry & 0xff);
        if shape.more_bits == 0 {
            return first;
        }
        first | self.write(HEAD + shape.slots * 8 + slot * shape.more_bits, entry >> 8)
    }

    /// Sets bits; those of the first word are given back instead.
    #[inline(always)]
    fn write(&self, bit: u32, value: u64) -> u64 {
        let (word, shift) = (bit as usize / 64, bit % 64);
        let beyond = if shift == 0 { 0 } else { value >> (64 - shift) };
        if beyond != 0 {
            let there = self.0[word + 1].load(Ordering::Relaxed);
            self.0[word + 1].store(there | beyond, Ordering::Relaxed);
        }
        if word == 0 {
            return value << shift;
        }
        let there = self.0[word].load(Ordering::Relaxed);
        self.0[word].store(there | value << shift, Ordering::Relaxed);
        0
    }

    /// The slots that hold an entry, own ones or foreign ones, as `first` counts them.
    #[inline(always)]
    fn slots(shape: &Shape, first: u64, foreign: bool) -> u64 {
        if foreign {
            let count = first >> FOREIGN_SHIFT & COUNT;
            ((1 << count) - 1) << (u64::from(shape.slots) - count)
        } else {
            (1 << (first & COUNT)) - 1
        }
    }

    /// Whether an entry is there, among those that `first`, read before, counts.
    #[inline(always)]
    fn holds(&self, shape: &Shape, first: u64, foreign: bool, entry: u64, equal: Equal) -> bool {
        let mut hits = equal(self, entry as u8) & Self::slots(shape, first, foreign);
        while hits != 0 {
            if shape.more_bits == 0 || self.get(shape, hits.trailing_zeros()) == entry {
                return true;
            }
            hits &= hits - 1;
        }
        false
    }

    #[inline(always)]
    fn is_full(shape: &Shape, first: u64) -> bool {
        (first & COUNT) + (first >> FOREIGN_SHIFT & COUNT) >= u64::from(shape.slots)
    }

    /// Searches the line and, if the entry is not there, puts it in (I2). Nothing means that
    /// there is no room, and that the line says so.
    #[inline(always)]
    fn enter(&self, shape: &Shape, foreign: bool, entry: u64, equal: Equal) -> Option<Added> {
        enter(&Slots { line: self, shape, foreign, entry, equal })
    }
}

/// An entry on its way into a line.
struct Slots<'l> {
    line: &'l Line,
    shape: &'l Shape,
    foreign: bool,
    entry: u64,
    equal: Equal,
}

impl Place for Slots<'_> {
    #[inline(always)]
    fn first(&self) -> u64 {
        self.line.0[0].load(Ordering::Acquire)
    }

    #[inline(always)]
    fn holds(&self, first: u64) -> bool {
        self.line.holds(self.shape, first, self.foreign, self.entry, self.equal)
    }

    #[inline(always)]
    fn is_busy(&self, first: u64) -> bool {
        first & BUSY != 0
    }

    #[inline(always)]
    fn marked(&self, first: u64) -> Option<u64> {
        let mark = if self.foreign { STASHED } else { OVERFLOWN };
        Line::is_full(self.shape, first).then_some(first | mark)
    }

    #[inline(always)]
    fn change(&self, from: u64, to: u64) -> bool {
        self.line.0[0].compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline(always)]
    fn busy(&self, first: u64) -> u64 {
        first | BUSY
    }

    #[inline(always)]
    fn publish(&self, first: u64) {
        let (slot, one) = if self.foreign {
            (self.shape.slots - 1 - (first >> FOREIGN_SHIFT & COUNT) as u32, 1 << FOREIGN_SHIFT)
        } else {
            ((first & COUNT) as u32, 1)
        };
        let first = self.line.put(self.shape, slot, self.entry, first);
        self.line.0[0].store(first + one, Ordering::Release);
    }

    #[inline(always)]
    fn wait(&self) {
        std::hint::spin_loop();
    }
}

/// The slots of a line whose tag is this one, a bit each.
type Equal = fn(&Line, u8) -> u64;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn equal(line: &Line, tag: u8) -> u64 {
    use std::arch::x86_64::*;
    let bytes = line.0.as_ptr().cast::<__m128i>();
    // SAFETY: SSE2 is part of x86-64, and the four parts lie within the line. Volatile, because
    // others may write meanwhile: what the first word counts was written before (I2).
    unsafe {
        let tag = _mm_set1_epi8(tag as i8);
        let part =
            |part: usize| u64::from(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes.add(part).read_volatile(), tag)) as u32);
        (part(0) | part(1) << 16 | part(2) << 32 | part(3) << 48) >> (HEAD / 8)
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn equal(line: &Line, tag: u8) -> u64 {
    (0..8).fold(0, |equal, word| {
        let bytes = line.0[word].load(Ordering::Relaxed).to_le_bytes();
        bytes.iter().enumerate().fold(equal, |equal, (at, &byte)| equal | u64::from(byte == tag) << (8 * word + at))
    }) >> (HEAD / 8)
}

/// Numbers that found no line: open addressing, 0 = empty, a number plus one.
#[derive(Default)]
struct Stash {
    table: Vec<u64>,
    len: usize,
}

impl Stash {
    fn place(&self, number: u64) -> Result<usize, usize> {
        let mask = self.table.len() - 1;
        let mut at = mix(number) as usize & mask;
        loop {
            match self.table[at] {
                0 => return Err(at),
                held if held == number + 1 => return Ok(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn contains(&self, number: u64) -> bool {
        !self.table.is_empty() && self.place(number).is_ok()
    }

    /// Adds a number. One that `must` be kept, because it was in the table before, is kept
    /// all the same: a few bytes that nobody counts are better than a state that gets lost.
    fn insert(&mut self, number: u64, budget: &Budget, granted: &mut u64, must: bool) -> Added {
        if self.contains(number) {
            return Added::Seen;
        }
        if 4 * (self.len + 1) > 3 * self.table.len() {
            let capacity = (2 * self.table.len()).max(16);
            // The old and the new one are there at the same time, for a moment.
            let asked = capacity as u64 * 8;
            if !budget.request(asked) && !must {
                return Added::Full;
            }
            let old = std::mem::replace(&mut self.table, vec![0; capacity]);
            for held in old.iter().filter(|&&held| held != 0) {
                if let Err(at) = self.place(held - 1) {
                    self.table[at] = *held;
                }
            }
            budget.release(*granted);
            *granted = asked;
        }
        if let Err(at) = self.place(number) {
            self.table[at] = number + 1;
            self.len += 1;
        }
        Added::New
    }
}

/// A set of numbers.
pub(crate) struct Pairs {
    budget: Arc<Budget>,
    shape: Shape,
    lines: Arena,
    /// Bytes granted for lines.
    granted: u64,
    len: AtomicU64,
    room: u64,
    /// The stash, and the bytes granted for it.
    stash: Mutex<(Stash, u64)>,
}

/// The exponent of the first size.
const FIRST: u32 = 2;

impl Pairs {
    /// An empty set for numbers of this many bits, if the budget allows it.
    pub fn new(bits: u32, budget: &Arc<Budget>) -> Option<Self> {
        let shape = Shape::new(8, FIRST, bits.saturating_sub(KEY_BITS));
        let lines = Arena::new(2 * WORDS);
        if !budget.request(shape.bytes()) {
            return None;
        }
        if !lines.extend(shape.lines() + 1) {
            budget.release(shape.bytes());
            return None;
        }
        let (granted, room) = (shape.bytes(), shape.room(false));
        let stash = Mutex::new((Stash::default(), 0));
        Some(Pairs { budget: Arc::clone(budget), shape, lines, granted, len: AtomicU64::new(0), room, stash })
    }

    /// How many bytes a set of this many numbers of this many bits takes, about.
    pub fn estimate(numbers: u64, bits: u32) -> u64 {
        let upper = bits.saturating_sub(KEY_BITS);
        let mut shape = Shape::new(8, FIRST, upper);
        while shape.room(false) < numbers
            && let Some(next) = shape.next()
        {
            shape = next;
        }
        shape.bytes()
    }

    /// The bytes of lines, and of the stash.
    pub fn bytes(&self) -> (u64, u64) {
        (self.granted, self.stash.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Whether `more` numbers of this many bits can be entered.
    #[inline]
    pub fn has_room(&self, more: u64, bits: u32) -> bool {
        self.len.load(Ordering::Acquire) + more <= self.room && bits <= KEY_BITS + self.shape.upper_bits
    }

    #[inline(always)]
    fn line(&self, at: u64) -> &Line {
        debug_assert!(at <= self.shape.lines());
        // SAFETY: lines up to one behind the last have addresses (see `new` and `rearrange`),
        // aligned, as items of 128 bytes; zero is valid, and they are used as atomics only.
        unsafe { &*self.lines.view().address::<{ 2 * WORDS }>(at).cast::<Line>() }
    }

    /// Asks for the memory in which a number would be found.
    #[inline(always)]
    pub fn prefetch(&self, number: u64) {
        let (home, _) = self.shape.split(number);
        let line = self.line(home);
        prefetch(&line.0[0]);
        prefetch(&line.0[8]);
    }

    /// Whether a number is there.
    #[inline(always)]
    pub fn contains(&self, number: u64) -> bool {
        if number >> KEY_BITS >> self.shape.upper_bits != 0 {
            return false;
        }
        let (home, entry) = self.shape.split(number);
        let line = self.line(home);
        let first = line.0[0].load(Ordering::Acquire);
        if line.holds(&self.shape, first, false, entry, equal) {
            return true;
        }
        if first & OVERFLOWN == 0 {
            return false;
        }
        let next = self.line(home + 1);
        let first = next.0[0].load(Ordering::Acquire);
        next.holds(&self.shape, first, true, entry, equal)
            || first & STASHED != 0 && self.stash.lock().unwrap_or_else(PoisonError::into_inner).0.contains(number)
    }

    /// Enters a number, for which there is room.
    #[inline(always)]
    pub fn insert(&self, number: u64) -> Added {
        let (home, entry) = self.shape.split(number);
        let added = match self.line(home).enter(&self.shape, false, entry, equal) {
            Some(added) => added,
            None => match self.line(home + 1).enter(&self.shape, true, entry, equal) {
                Some(added) => added,
                None => self.insert_stashed(number, false),
            },
        };
        if added == Added::New {
            self.len.fetch_add(1, Ordering::AcqRel);
        }
        added
    }

    #[cold]
    fn insert_stashed(&self, number: u64, must: bool) -> Added {
        let mut guard = self.stash.lock().unwrap_or_else(PoisonError::into_inner);
        let (stash, granted) = &mut *guard;
        stash.insert(number, &self.budget, granted, must)
    }

    /// Makes room for `more` numbers of this many bits (I3). Says whether there was memory.
    #[must_use]
    pub fn make_room(&mut self, more: u64, bits: u32) -> bool {
        let wanted = self.len.load(Ordering::Acquire) + more;
        let upper = bits.saturating_sub(KEY_BITS).max(self.shape.upper_bits);
        let mut shape = Shape::new(self.shape.m, self.shape.e, upper);
        while shape.room(false) < wanted {
            match shape.next() {
                Some(next) => shape = next,
                None => break,
            }
        }
        if shape.room(false) >= wanted && self.rearrange(shape) {
            self.room = shape.room(false);
            return true;
        }
        // No memory to grow: fill the last slots instead.
        if upper == self.shape.upper_bits {
            self.room = self.shape.room(true);
        }
        self.has_room(more, bits)
    }

    /// Puts every entry where it belongs in another shape, of at least as many lines.
    ///
    /// Lines are read from the last to the first. New homes are never before old ones, so what
    /// is written over has been read.
    fn rearrange(&mut self, shape: Shape) -> bool {
        let old = self.shape;
        let more = shape.bytes() - old.bytes();
        if !self.budget.request(more) {
            return false;
        }
        if !self.lines.extend(shape.lines() + 1) {
            self.budget.release(more);
            return false;
        }
        self.granted += more;
        let stashed = {
            let guard = self.stash.get_mut().unwrap_or_else(PoisonError::into_inner);
            guard.0.len = 0;
            guard.0.table.iter_mut().filter(|held| **held != 0).map(|held| std::mem::take(held) - 1).collect::<Vec<_>>()
        };
        self.shape = shape;
        let mut numbers: Vec<u64> = Vec::new();
        let mut foreign: Vec<u64> = Vec::new();
        // One behind the last line: foreign entries of the last one.
        for at in (0..=old.lines()).rev() {
            numbers.clear();
            numbers.append(&mut foreign);
            let line = self.line(at);
            let first = line.0[0].load(Ordering::Relaxed);
            for slot in 0..(first & COUNT) as u32 {
                numbers.push(old.join(at, line.get(&old, slot)));
            }
            for count in 0..(first >> FOREIGN_SHIFT & COUNT) as u32 {
                foreign.push(old.join(at.wrapping_sub(1), line.get(&old, old.slots - 1 - count)));
            }
            line.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            for &number in &numbers {
                self.put_back(number);
            }
        }
        for number in stashed {
            self.put_back(number);
        }
        true
    }

    /// Enters a number that was there before.
    fn put_back(&self, number: u64) {
        let (home, entry) = self.shape.split(number);
        // Nothing equals what is not there: the search is left out.
        let unlike: Equal = |_, _| 0;
        if self.line(home).enter(&self.shape, false, entry, unlike).is_none()
            && self.line(home + 1).enter(&self.shape, true, entry, unlike).is_none()
        {
            self.insert_stashed(number, true);
        }
    }

    /// Calls `visit` with every number there is; nobody else uses the set. On `false` it ends.
    pub fn each(&self, mut visit: impl FnMut(u64) -> bool) -> bool {
        let shape = &self.shape;
        for at in 0..=shape.lines() {
            let line = self.line(at);
            let first = line.0[0].load(Ordering::Acquire);
            let own = (0..(first & COUNT) as u32).map(|slot| (at, slot));
            let foreign =
                (0..(first >> FOREIGN_SHIFT & COUNT) as u32).map(|count| (at.wrapping_sub(1), shape.slots - 1 - count));
            for (home, slot) in own.chain(foreign) {
                if !visit(shape.join(home, line.get(shape, slot))) {
                    return false;
                }
            }
        }
        let guard = self.stash.lock().unwrap_or_else(PoisonError::into_inner);
        guard.0.table.iter().filter(|&&held| held != 0).all(|&held| visit(held - 1))
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        let (lines, stash) = self.bytes();
        self.budget.release(lines + stash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_is_undone() {
        for step in 0..5000u64 {
            let word = mix(step) as u32;
            assert_eq!(unmix(mix32(word)), word);
        }
    }

    #[test]
    fn lines_and_entries_say_which_number_it_is() {
        for (m, e, upper) in [(8, 2, 0), (10, 5, 3), (14, 20, 12), (12, 29, 30)] {
            let shape = Shape::new(m, e, upper);
            for step in 0..3000u64 {
                let number = mix(step) >> (32 - upper);
                let (home, entry) = shape.split(number);
                assert!(home < shape.lines());
                assert_eq!(shape.join(home, entry), number);
            }
        }
    }

    #[test]
    fn numbers_stay_over_growth_and_widening() {
        let budget = Arc::new(Budget::unlimited());
        let mut pairs = Pairs::new(20, &budget).expect("there is no limit");
        let count = if cfg!(miri) { 300 } else { 300_000 };
        // Ever longer numbers.
        let number = |step: u64| (step * step * 31) ^ step << 3;
        let bits = |number: u64| 64 - number.leading_zeros();
        let mut there = std::collections::HashSet::new();
        for step in 0..count {
            let number = number(step);
            if !pairs.has_room(1, bits(number)) {
                assert!(pairs.make_room(1, bits(number)));
            }
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
    fn a_spent_budget_is_told_and_nothing_is_lost() {
        let budget = Arc::new(Budget::new(20_000));
        let mut pairs = Pairs::new(40, &budget).expect("enough for the first");
        let number = |step: u64| mix(step) >> 24;
        let mut there = 0;
        while pairs.has_room(1, 40) || pairs.make_room(1, 40) {
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
        let mut pairs = Pairs::new(40, &budget).expect("there is no limit");
        assert!(pairs.make_room(count, 40));
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
}
