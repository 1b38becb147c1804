//! The lines of a quotient table: homes of keys, and the contents of a slot.
//!
//! In: a key and a payload. Out: a home and a word for a slot; a line reads and writes such words.
//! Invariant: home and remainder determine the key; the layout is drawn in `quotient.rs`.

use crate::tables::bucket::prefetch;

/// The bytes of a line in front of its slots.
pub(super) const HEAD: usize = 2;
/// The mark of a line in its first two bytes.
pub(super) const OVERFLOWN: u8 = 0x80;
/// The most slots of a line: their tags are in its first 64 bytes.
pub(super) const MOST_SLOTS: u32 = 64 - HEAD as u32;

/// The power of two that is the least `m`, for lines of so many bytes: tables of small entries grow in
/// four steps to twice their size, those of large ones in eight. With steps half as large tables
/// are a twentieth smaller, and it takes longer to fill them.
pub(super) const fn least_m(bytes: u32) -> u32 {
    if bytes == 64 { 3 } else { 4 }
}

/// One or two lines of the cache.
#[repr(C, align(64))]
pub(super) struct Line<const N: usize>(pub [u8; N]);

/// What follows from the size of the table and the widths of its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Bytes of a line.
    pub bytes: u32,
    pub key_bits: u32,
    pub payload_bits: u32,
    /// The least `m` is this power of two, the largest twice as much less two.
    pub least: u32,
    /// There are `m << e` lines.
    pub m: u64,
    pub e: u32,
    /// A 64th power of two divided by `m`, rounded up.
    pub reciprocal: u64,
    pub remainder_bits: u32,
    /// Slots in a line.
    pub slots: u32,
    /// Bits of a slot beyond its tag.
    pub more_bits: u32,
    /// How many entries are let into 64 lines.
    pub fill: u64,
    /// The bits of a slot that hold the remainder, and those of them that are in its tag.
    pub remainder_mask: u64,
    pub tag_mask: u8,
}

impl Shape {
    pub fn new(bytes: u32, key_bits: u32, payload_bits: u32, m: u64, e: u32) -> Self {
        let least = least_m(bytes);
        let remainder_bits = (key_bits - e).saturating_sub(least);
        assert!(key_bits + payload_bits <= 64, "key and payload fit into one word");
        assert!(key_bits + 2 * (least + 1) <= 64, "products of keys are divided exactly");
        let more_bits = (remainder_bits + payload_bits).saturating_sub(8);
        let reciprocal = (1u128 << 64).div_ceil(u128::from(m)) as u64;
        let slots = ((bytes - HEAD as u32) * 8 / (8 + more_bits)).min(MOST_SLOTS);
        let fill = (64.0 * (f64::from(slots) - 0.6 * f64::from(slots).sqrt())) as u64;
        let remainder_mask = (1 << remainder_bits) - 1;
        let tag_mask = remainder_mask as u8;
        Shape {
            bytes,
            key_bits,
            payload_bits,
            least,
            m,
            e,
            reciprocal,
            remainder_bits,
            slots,
            more_bits,
            fill,
            remainder_mask,
            tag_mask,
        }
    }

    pub fn lines(&self) -> u64 {
        self.m << self.e
    }

    /// How many entries are let in before the table grows: so many that about one in a
    /// hundred has to go to the stash; more would cost more bytes there than it saves. When the
    /// budget does not let it grow, nearly all slots are filled.
    pub fn room(&self, last: bool) -> u64 {
        self.lines() * if last { u64::from(self.slots) * 61 } else { self.fill } / 64
    }

    /// The next larger size, if the key has bits for it.
    pub fn next(&self, payload_bits: u32) -> Option<Shape> {
        let (m, e) = if self.m + 2 == 2 << self.least { (1 << self.least, self.e + 1) } else { (self.m + 2, self.e) };
        (e + self.least <= self.key_bits.max(self.least))
            .then(|| Shape::new(self.bytes, self.key_bits, payload_bits, m, e))
    }

    /// The home of a key, and its remainder.
    #[inline(always)]
    pub fn split(&self, key: u64) -> (u64, u64) {
        let product = key * self.m;
        let shift = self.key_bits - self.e;
        (product >> shift, (product & ((1 << shift) - 1)) >> self.least)
    }

    /// The key of this home and remainder.
    #[inline(always)]
    pub fn join(&self, home: u64, remainder: u64) -> u64 {
        let shift = self.key_bits - self.e;
        let least = home << shift | remainder << self.least;
        // The only key whose product lies in the numbers left open. The reciprocal divides
        // exactly: its error times the number stays below one part in `m`.
        ((u128::from(least + self.m - 1) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// What a slot holds.
    #[inline(always)]
    pub fn value(&self, remainder: u64, payload: u64) -> u64 {
        remainder | payload << self.remainder_bits
    }

    /// The payload of what a slot holds.
    #[inline(always)]
    pub fn payload(&self, value: u64) -> u64 {
        value >> self.remainder_bits
    }
}

impl<const N: usize> Line<N> {
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
    pub fn is_full(&self, shape: &Shape) -> bool {
        self.own() + self.foreign() >= shape.slots
    }

    /// What a slot holds.
    #[inline(always)]
    pub fn get(&self, shape: &Shape, slot: u32) -> u64 {
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
    pub fn put(&mut self, shape: &Shape, slot: u32, value: u64) {
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
    pub fn fill(&mut self, shape: &Shape, values: &[u64]) {
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
    pub fn put_own(&mut self, shape: &Shape, value: u64) -> bool {
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
    pub fn put_foreign(&mut self, shape: &Shape, value: u64) -> bool {
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
    shape: &Shape,
    line: &Line<N>,
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
pub(super) fn prefetch_line<const N: usize>(line: &Line<N>) {
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
