//! The size of a quotient table: homes of keys, and the contents of a slot.
//!
//! In: a key and a payload. Out: a home and a word for a slot, and back. Invariant: home and
//! remainder determine the key. Two tables have this shape: `quotient.rs`, which one thread changes
//! at a time, and `pairs.rs`, which all threads insert into. Their lines are read and written in
//! different ways (bytes here, atomic words there), and so they have a file each.

/// The bytes of a line in front of its slots.
pub(crate) const HEAD: usize = 2;
/// The most slots of a line: their tags are in its first 64 bytes.
pub(crate) const MOST_SLOTS: u32 = 64 - HEAD as u32;

/// What follows from the size of the table and the widths of its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotientShape {
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
    /// How many entries are let into 1024 lines.
    pub fill: u64,
    /// The bits of a slot that hold the remainder, and those of them that are in its tag.
    pub remainder_mask: u64,
    pub tag_mask: u8,
}

impl QuotientShape {
    pub fn new(bytes: u32, least: u32, key_bits: u32, payload_bits: u32, m: u64, e: u32) -> Self {
        let remainder_bits = (key_bits - e).saturating_sub(least);
        assert!(key_bits + payload_bits <= 64, "key and payload fit into one word");
        assert!(key_bits + 2 * (least + 1) <= 64, "products of keys are divided exactly");
        let more_bits = (remainder_bits + payload_bits).saturating_sub(8);
        let reciprocal = (1u128 << 64).div_ceil(u128::from(m)) as u64;
        let slots = ((bytes - HEAD as u32) * 8 / (8 + more_bits)).min(MOST_SLOTS);
        let fill = (1024.0 * (f64::from(slots) - 0.6 * f64::from(slots).sqrt())) as u64;
        let remainder_mask = (1 << remainder_bits) - 1;
        let tag_mask = remainder_mask as u8;
        QuotientShape {
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

    /// The number of entries that are let in before the table grows, such that about one in a
    /// hundred has to go to the stash; more would cost more bytes there than it saves. When the
    /// budget does not let it grow, nearly all slots are filled.
    pub fn room(&self, last: bool) -> u64 {
        self.lines() * if last { u64::from(self.slots) * 983 } else { self.fill } / 1024
    }

    /// The next larger size, if the key has bits for it.
    pub fn next(&self) -> Option<QuotientShape> {
        let (m, e) = if self.m + 2 == 2 << self.least { (1 << self.least, self.e + 1) } else { (self.m + 2, self.e) };
        (e + self.least <= self.key_bits.max(self.least))
            .then(|| QuotientShape::new(self.bytes, self.least, self.key_bits, self.payload_bits, m, e))
    }

    /// The same size for keys and payloads of other widths.
    pub fn with_bits(&self, key_bits: u32, payload_bits: u32) -> QuotientShape {
        QuotientShape::new(self.bytes, self.least, key_bits, payload_bits, self.m, self.e)
    }

    /// The first size from this one on with room for this many entries, or the largest there is:
    /// there are no more lines than keys can distinguish.
    pub fn with_room(mut self, entries: u64) -> QuotientShape {
        while self.room(false) < entries
            && let Some(next) = self.next()
        {
            self = next;
        }
        self
    }

    /// The bytes of the lines, and of one behind them for what the last does not hold.
    pub fn line_bytes(&self) -> u64 {
        (self.lines() + 1) * u64::from(self.bytes)
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
        // The only key whose product is among the numbers left open. The reciprocal divides
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
