//! The lines of a quotient table that one thread changes at a time.
//!
//! In: words for slots. Out: the same. The layout is drawn in `quotient.rs`. Lines are bytes: a slot
//! is read by one unaligned load, and all tags are compared at once.

use super::shape::{HEAD, QuotientShape};
use crate::tables::bucket::prefetch;

/// The mark of a line in its first two bytes.
pub(super) const OVERFLOWN: u8 = 0x80;
/// One or two lines of the cache.
#[repr(C, align(64))]
pub(super) struct QuotientLine<const N: usize>(pub [u8; N]);

impl<const N: usize> QuotientLine<N> {
    /// The bytes with the tags.
    #[inline(always)]
    pub fn tags(&self) -> &[u8; 64] {
        self.0.first_chunk().expect("a line has 64 bytes or more")
    }

    #[inline(always)]
    pub fn own(&self) -> u32 {
        u32::from(self.0[0] & !OVERFLOWN)
    }

    /// Whether entries of its own are elsewhere.
    #[inline(always)]
    pub fn is_overflown(&self) -> bool {
        self.0[0] & OVERFLOWN != 0
    }

    #[inline(always)]
    pub fn foreign(&self) -> u32 {
        u32::from(self.0[1] & !OVERFLOWN)
    }

    /// Whether entries of the line before had to go to the stash.
    #[inline(always)]
    pub fn is_stashed(&self) -> bool {
        self.0[1] & OVERFLOWN != 0
    }

    #[inline(always)]
    pub fn is_full(&self, shape: &QuotientShape) -> bool {
        self.own() + self.foreign() >= shape.slots
    }

    /// What a slot holds.
    #[inline(always)]
    pub fn get(&self, shape: &QuotientShape, slot: u32) -> u64 {
        let tag = u64::from(self.0[HEAD + slot as usize]);
        if shape.more_bits == 0 {
            return tag;
        }
        let bit = (HEAD as u32 + shape.slots) * 8 + slot * shape.more_bits;
        // The last words of a line are read from its end, so that nothing behind it is.
        let byte = (bit / 8).min(N as u32 - 8);
        let word = u64::from_le_bytes(self.0[byte as usize..byte as usize + 8].try_into().expect("eight bytes"));
        let more = word >> (bit - byte * 8) & ((1 << shape.more_bits) - 1);
        tag | more << 8
    }

    /// Fills a slot that was empty.
    #[inline(always)]
    pub fn put(&mut self, shape: &QuotientShape, slot: u32, value: u64) {
        self.0[HEAD + slot as usize] = value as u8;
        if shape.more_bits == 0 {
            return;
        }
        let bit = (HEAD as u32 + shape.slots) * 8 + slot * shape.more_bits;
        let byte = (bit / 8).min(N as u32 - 8) as usize;
        let word = &mut self.0[byte..byte + 8];
        let before = u64::from_le_bytes((&*word).try_into().expect("eight bytes"));
        word.copy_from_slice(&(before | (value >> 8) << (bit - byte as u32 * 8)).to_le_bytes());
    }

    /// Fills an empty line with entries of its own.
    #[inline(always)]
    pub fn fill(&mut self, shape: &QuotientShape, values: &[u64]) {
        self.0[0] = values.len() as u8;
        for (tag, &value) in self.0[HEAD..].iter_mut().zip(values) {
            *tag = value as u8;
        }
        if shape.more_bits == 0 {
            return;
        }
        // The other bits are put together in words, so that no byte is written twice.
        let mut byte = HEAD + shape.slots as usize;
        let (mut word, mut filled) = (0u64, 0);
        for &value in values {
            let more = value >> 8;
            word |= more << filled;
            filled += shape.more_bits;
            if filled >= 64 {
                self.0[byte..byte + 8].copy_from_slice(&word.to_le_bytes());
                byte += 8;
                filled -= 64;
                word = more.checked_shr(shape.more_bits - filled).unwrap_or(0);
            }
        }
        for (at, byte) in self.0[byte..].iter_mut().enumerate().take(filled.div_ceil(8) as usize) {
            *byte = (word >> (8 * at)) as u8;
        }
    }

    /// Appends an entry of its own, if there is room.
    #[inline(always)]
    pub fn put_own(&mut self, shape: &QuotientShape, value: u64) -> bool {
        let room = !self.is_full(shape);
        if room {
            self.put(shape, self.own(), value);
            self.0[0] += 1;
        } else {
            self.0[0] |= OVERFLOWN;
        }
        room
    }

    /// Appends an entry of the line before, if there is room.
    #[inline(always)]
    pub fn put_foreign(&mut self, shape: &QuotientShape, value: u64) -> bool {
        let room = !self.is_full(shape);
        if room {
            self.put(shape, shape.slots - 1 - self.foreign(), value);
            self.0[1] += 1;
        } else {
            self.0[1] |= OVERFLOWN;
        }
        room
    }
}

/// Calls `found` with the payload of every slot of a line among `slots` that has this
/// remainder.
#[inline(always)]
pub(super) fn scan<const N: usize>(
    shape: &QuotientShape,
    line: &QuotientLine<N>,
    slots: u64,
    remainder: u64,
    equal: impl Fn(&[u8; 64], u8, u8) -> u64,
    mut found: impl FnMut(u64),
) {
    let mut hits = equal(line.tags(), remainder as u8 & shape.tag_mask, shape.tag_mask) >> HEAD & slots;
    while hits != 0 {
        let value = line.get(shape, hits.trailing_zeros());
        if value & shape.remainder_mask == remainder {
            found(shape.payload(value));
        }
        hits &= hits - 1;
    }
}

/// Asks for a line to be fetched.
#[inline(always)]
pub(super) fn prefetch_line<const N: usize>(line: &QuotientLine<N>) {
    prefetch(line);
    if N > 64 {
        prefetch(&line.0[64]);
    }
}

/// Whether the processor compares 64 bytes at once.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// The bytes that equal `byte` under `mask`, a bit each.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) fn equal_bytes(bytes: &[u8; 64], byte: u8, mask: u8) -> u64 {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of x86-64, and the four parts lie within the 64 bytes.
    unsafe {
        let (byte, mask) = (_mm_set1_epi8(byte as i8), _mm_set1_epi8(mask as i8));
        let part = |part: usize| {
            let loaded = _mm_loadu_si128(bytes.as_ptr().add(16 * part).cast());
            u64::from(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(loaded, mask), byte)) as u32)
        };
        part(0) | part(1) << 16 | part(2) << 32 | part(3) << 48
    }
}

/// The bytes that equal `byte` under `mask`, a bit each.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
pub(super) fn equal_bytes(bytes: &[u8; 64], byte: u8, mask: u8) -> u64 {
    bytes.iter().enumerate().fold(0, |equal, (at, held)| equal | u64::from(held & mask == byte) << at)
}

/// Bits `from..to` of a word.
#[inline(always)]
pub(super) fn bits(from: u32, to: u32) -> u64 {
    ((1u64 << to) - 1) & !((1u64 << from) - 1)
}
