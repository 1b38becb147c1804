//! One line of a set: entries in as few bits as they need, entered by several threads.
//!
//! ```text
//! line   head | t t t t t … | v v v v v …     t: the low 8 bits of an entry, v: the others
//! ```
//! In: an entry. Out: whether it is a duplicate, or that there is no room. Invariants: see
//! `pairs/insert.rs`, whose protocol this implements.

use super::layout::PairsShape;
use super::numbers::Numbers;
use crate::tables::pairs::insert::{EntryLine, enter};
use crate::tables::quotient::shape;
use crate::tables::tiles::Added;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bits of a line in front of its tags.
const HEAD: u32 = 8 * shape::HEAD as u32;
/// The head: entries of its own, foreign ones, and the marks.
pub(super) const COUNT: u64 = 0x3f;
pub(super) const FOREIGN_SHIFT: u32 = 6;
/// Entries of its own are elsewhere.
pub(super) const OVERFLOWN: u64 = 1 << 12;
/// Entries of the line before are in the stash.
pub(super) const STASHED: u64 = 1 << 13;
/// Somebody is changing the line.
const BUSY: u64 = 1 << 14;

/// One line of `W` words: one or two lines of the cache.
#[repr(C, align(64))]
pub(super) struct PairLine<const W: usize>(pub [AtomicU64; W]);

impl<const W: usize> PairLine<W> {
    /// What a slot holds.
    #[inline(always)]
    pub fn get<R: Numbers>(&self, shape: &PairsShape<R, W>, slot: u32) -> u64 {
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

    /// Fills a slot that was empty, of a line that is busy for others (see `pairs/insert.rs`). What goes to the
    /// first word is given back, to be written last.
    #[inline(always)]
    fn put<R: Numbers>(&self, shape: &PairsShape<R, W>, slot: u32, entry: u64, first: u64) -> u64 {
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

    /// Writes an empty line anew with these entries of its own, as many as there are slots at most; nobody
    /// else uses it.
    #[inline(always)]
    pub fn fill<R: Numbers>(&self, shape: &PairsShape<R, W>, entries: &[u64], overflown: bool) {
        let mut words = [0u64; W];
        words[0] = entries.len() as u64 | if overflown { OVERFLOWN } else { 0 };
        let mut bit = HEAD;
        for &entry in entries {
            words[bit as usize / 64] |= (entry & 0xff) << (bit % 64);
            bit += 8;
        }
        if shape.more_bits > 0 {
            let mut bit = HEAD + shape.slots * 8;
            for &entry in entries {
                let (word, shift, value) = (bit as usize / 64, bit % 64, entry >> 8);
                words[word] |= value << shift;
                if shift + shape.more_bits > 64 {
                    words[word + 1] |= value >> (64 - shift);
                }
                bit += shape.more_bits;
            }
        }
        self.0.iter().zip(words).for_each(|(held, word)| held.store(word, Ordering::Relaxed));
    }

    /// The slots that hold an entry, own ones or foreign ones, as `first` counts them.
    #[inline(always)]
    fn slots<R: Numbers>(shape: &PairsShape<R, W>, first: u64, foreign: bool) -> u64 {
        if foreign {
            let count = first >> FOREIGN_SHIFT & COUNT;
            ((1 << count) - 1) << (u64::from(shape.slots) - count)
        } else {
            (1 << (first & COUNT)) - 1
        }
    }

    /// Whether an entry is there, among those that `first`, read before, counts.
    #[inline(always)]
    pub fn holds<R: Numbers>(&self, shape: &PairsShape<R, W>, first: u64, foreign: bool, entry: u64) -> bool {
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
    fn is_full<R: Numbers>(shape: &PairsShape<R, W>, first: u64) -> bool {
        (first & COUNT) + (first >> FOREIGN_SHIFT & COUNT) >= u64::from(shape.slots)
    }

    /// Searches the line and, if the entry is not there, puts it in (see `pairs/insert.rs`). Nothing means that
    /// there is no room, and that the line says so.
    #[inline(always)]
    pub fn enter<R: Numbers>(&self, shape: &PairsShape<R, W>, foreign: bool, entry: u64) -> Option<Added> {
        enter(&Slots { line: self, shape, foreign, entry })
    }

    /// Puts an entry in that is not there; nobody else uses the line. `false` means that there is
    /// no room, and that the line says so.
    #[inline(always)]
    pub fn add<R: Numbers>(&self, shape: &PairsShape<R, W>, foreign: bool, entry: u64) -> bool {
        let slots = Slots { line: self, shape, foreign, entry };
        let first = self.0[0].load(Ordering::Relaxed);
        match slots.marked(first) {
            Some(marked) => self.0[0].store(marked, Ordering::Relaxed),
            None => slots.publish(first),
        }
        !Self::is_full(shape, first)
    }
}

/// An entry on its way into a line.
struct Slots<'l, R: Numbers, const W: usize> {
    line: &'l PairLine<W>,
    shape: &'l PairsShape<R, W>,
    foreign: bool,
    entry: u64,
}

impl<R: Numbers, const W: usize> EntryLine for Slots<'_, R, W> {
    #[inline(always)]
    fn first(&self) -> u64 {
        self.line.0[0].load(Ordering::Acquire)
    }

    #[inline(always)]
    fn holds(&self, first: u64) -> bool {
        self.line.holds(self.shape, first, self.foreign, self.entry)
    }

    #[inline(always)]
    fn is_busy(&self, first: u64) -> bool {
        first & BUSY != 0
    }

    #[inline(always)]
    fn marked(&self, first: u64) -> Option<u64> {
        let mark = if self.foreign { STASHED } else { OVERFLOWN };
        PairLine::<W>::is_full(self.shape, first).then_some(first | mark)
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
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn equal<const W: usize>(line: &PairLine<W>, tag: u8) -> u64 {
    use std::arch::x86_64::*;
    let bytes = line.0.as_ptr().cast::<__m128i>();
    // SAFETY: SSE2 is part of x86-64, and the four parts lie within the line, which has 64 bytes
    // or more. Volatile, because
    // others may write meanwhile: what the first word counts was written before (see `pairs/insert.rs`).
    unsafe {
        let tag = _mm_set1_epi8(tag as i8);
        let part =
            |part: usize| u64::from(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes.add(part).read_volatile(), tag)) as u32);
        (part(0) | part(1) << 16 | part(2) << 32 | part(3) << 48) >> (HEAD / 8)
    }
}

/// The slots of a line whose tag is this one, a bit each.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn equal<const W: usize>(line: &PairLine<W>, tag: u8) -> u64 {
    (0..8).fold(0, |equal, word| {
        let bytes = line.0[word].load(Ordering::Relaxed).to_le_bytes();
        bytes.iter().enumerate().fold(equal, |equal, (at, &byte)| equal | u64::from(byte == tag) << (8 * word + at))
    }) >> (HEAD / 8)
}
