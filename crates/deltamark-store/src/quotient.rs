//! # The idea
//! A hash table that keeps of each hash only what its place does not say, and that grows in
//! place without ever needing the hashed things again.
//!
//! In: a key, the top `H` bits of a mixed hash, and a payload of some bits. Out: the payloads
//! that were entered under a key. The table tells keys apart exactly; that two things share a
//! key is for the caller to sort out. Cleary (1984) is the source of quotienting; that homes
//! follow the order of the keys, so that growing is one sequential pass, is what makes small
//! steps of growth cheap and keeps the table 80 to 90 per cent full.
//!
//! # Layout in memory
//! ```text
//! line j   own foreign | t t t t t … | v v v v v …      64 or 128 bytes
//!          1 B   1 B     1 B a slot    w bits a slot
//!          the top bit of each: some of these had to go elsewhere
//! slot     remainder of the key, then the payload: the low 8 bits are t, the others v
//! ```
//! Lines are lines of the cache, for small payloads, or two of them, for large ones: more slots
//! share their room, so fewer stay empty. The tags of a line are in its first 64 bytes; who
//! finds no tag that fits need not look at the others.
//!
//! There are `m·2^e` lines, `m` being 8, 10, 12 or 14; where lines have 128 bytes, 16, 18, … or
//! 30. The key `x` has its home in line `x·m >> (H-e)`; of the bits shifted out all but the lowest
//! three (four) are the remainder. Keys of one home differ there by multiples of `m`, so home and
//! remainder say which key it is: the only `x` with `x·m` in the eight (sixteen) numbers they
//! leave open.
//!
//! A slot that finds its home full goes to the next line, where such foreign slots stand at the
//! end; one that finds that full too goes to the stash, a small chained table beside it.
//!
//! # Growth
//! From `m·2^e` to the next size lines are read from the last to the first, and every entry is
//! put into its new line, which is never before the old one: what is overwritten has been read.
//!
//! # Invariants
//! * I1: an entry is in its home line; or in the next one, and then its home is marked; or in
//!   the stash, and then both are. Entries are never taken out.
//! * I2: lines behind the last are zero.
//!
//! # When to choose it
//! For tables whose entries must be small. A look-up touches one line, seldom two.

use crate::arena::Arena;
use crate::bucket::prefetch;
use deltamark_core::{Budget, hash};
use std::sync::Arc;

/// The bytes of a line in front of its slots.
const HEAD: usize = 2;
/// New lines that wait to be written when a table is rearranged: more than one old line and
/// those beside it can lead to, growth by a few steps at once included.
const WAITING: usize = 64;
/// The mark of a line in its first two bytes.
const OVERFLOWN: u8 = 0x80;
/// The most slots of a line: their tags are in its first 64 bytes.
const MOST_SLOTS: u32 = 64 - HEAD as u32;
/// The most bits of a key; two fewer where lines have 128 bytes.
pub(crate) const MOST_KEY_BITS: u32 = 56;

/// The power of two that is the least `m`, for lines of so many bytes: tables of small entries grow in
/// four steps to twice their size, those of large ones in eight. With steps half as large tables
/// are a twentieth smaller, and it takes longer to fill them.
const fn least_m(bytes: u32) -> u32 {
    if bytes == 64 { 3 } else { 4 }
}

/// One or two lines of the cache.
#[repr(C, align(64))]
struct Line<const N: usize>([u8; N]);

/// What follows from the size of the table and the widths of its fields.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Bytes of a line.
    bytes: u32,
    key_bits: u32,
    payload_bits: u32,
    /// The least `m` is this power of two, the largest twice as much less two.
    least: u32,
    /// There are `m << e` lines.
    m: u64,
    e: u32,
    /// A 64th power of two divided by `m`, rounded up.
    reciprocal: u64,
    remainder_bits: u32,
    /// Slots in a line.
    slots: u32,
    /// Bits of a slot beyond its tag.
    more_bits: u32,
    /// How many entries are let into 64 lines.
    fill: u64,
    /// The bits of a slot that hold the remainder, and those of them that are in its tag.
    remainder_mask: u64,
    tag_mask: u8,
}

impl Shape {
    fn new(bytes: u32, key_bits: u32, payload_bits: u32, m: u64, e: u32) -> Self {
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

    fn lines(&self) -> u64 {
        self.m << self.e
    }

    /// How many entries are let in before the table grows: so many that about one in a
    /// hundred has to go to the stash; more would cost more bytes there than it saves. When the
    /// budget does not let it grow, nearly all slots are filled.
    fn room(&self, last: bool) -> u64 {
        self.lines() * if last { u64::from(self.slots) * 61 } else { self.fill } / 64
    }

    /// The next larger size, if the key has bits for it.
    fn next(&self, payload_bits: u32) -> Option<Shape> {
        let (m, e) = if self.m + 2 == 2 << self.least { (1 << self.least, self.e + 1) } else { (self.m + 2, self.e) };
        (e + self.least <= self.key_bits.max(self.least))
            .then(|| Shape::new(self.bytes, self.key_bits, payload_bits, m, e))
    }

    /// The home of a key, and its remainder.
    #[inline(always)]
    fn split(&self, key: u64) -> (u64, u64) {
        let product = key * self.m;
        let shift = self.key_bits - self.e;
        (product >> shift, (product & ((1 << shift) - 1)) >> self.least)
    }

    /// The key of this home and remainder.
    #[inline(always)]
    fn join(&self, home: u64, remainder: u64) -> u64 {
        let shift = self.key_bits - self.e;
        let least = home << shift | remainder << self.least;
        // The only key whose product lies in the numbers left open. The reciprocal divides
        // exactly: its error times the number stays below one part in `m`.
        ((u128::from(least + self.m - 1) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// What a slot holds.
    #[inline(always)]
    fn value(&self, remainder: u64, payload: u64) -> u64 {
        remainder | payload << self.remainder_bits
    }

    /// The payload of what a slot holds.
    #[inline(always)]
    fn payload(&self, value: u64) -> u64 {
        value >> self.remainder_bits
    }
}

impl<const N: usize> Line<N> {
    /// The bytes with the tags.
    #[inline(always)]
    fn tags(&self) -> &[u8; 64] {
        self.0.first_chunk().expect("a line has 64 bytes or more")
    }

    #[inline(always)]
    fn own(&self) -> u32 {
        u32::from(self.0[0] & !OVERFLOWN)
    }

    /// Whether entries of its own are elsewhere.
    #[inline(always)]
    fn is_overflown(&self) -> bool {
        self.0[0] & OVERFLOWN != 0
    }

    #[inline(always)]
    fn foreign(&self) -> u32 {
        u32::from(self.0[1] & !OVERFLOWN)
    }

    /// Whether entries of the line before had to go to the stash.
    #[inline(always)]
    fn is_stashed(&self) -> bool {
        self.0[1] & OVERFLOWN != 0
    }

    #[inline(always)]
    fn is_full(&self, shape: &Shape) -> bool {
        self.own() + self.foreign() >= shape.slots
    }

    /// What a slot holds.
    #[inline(always)]
    fn get(&self, shape: &Shape, slot: u32) -> u64 {
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
    fn put(&mut self, shape: &Shape, slot: u32, value: u64) {
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
    fn fill(&mut self, shape: &Shape, values: &[u64]) {
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
    fn put_own(&mut self, shape: &Shape, value: u64) -> bool {
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
    fn put_foreign(&mut self, shape: &Shape, value: u64) -> bool {
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
fn scan<const N: usize>(
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
fn prefetch_line<const N: usize>(line: &Line<N>) {
    prefetch(line);
    if N > 64 {
        prefetch(&line.0[64]);
    }
}

/// Whether the processor compares 64 bytes at once.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn has_avx512() -> bool {
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
fn equal_bytes(bytes: &[u8; 64], byte: u8, mask: u8) -> u64 {
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
fn equal_bytes(bytes: &[u8; 64], byte: u8, mask: u8) -> u64 {
    bytes.iter().enumerate().fold(0, |equal, (at, held)| equal | u64::from(held & mask == byte) << at)
}

/// Bits `from..to` of a word.
#[inline(always)]
fn bits(from: u32, to: u32) -> u64 {
    ((1u64 << to) - 1) & !((1u64 << from) - 1)
}

/// Entries that found no line.
#[derive(Default)]
struct Stash {
    /// Key and payload, in one word.
    entries: Vec<u64>,
    /// For each hash of a key the first entry plus one; then along `next`.
    heads: Vec<u32>,
    next: Vec<u32>,
    /// The bytes the budget granted.
    granted: u64,
}

impl Stash {
    fn head(&self, key: u64) -> usize {
        // Any spreading will do; the number of heads is no power of two.
        ((u128::from(hash::mix(key)) * self.heads.len() as u128) >> 64) as usize
    }

    /// Appends an entry; `false` means that the budget has no room. An entry that `must` be
    /// kept, because it was in the table before, is kept all the same: a few bytes that nobody
    /// counts are better than a state that gets lost.
    #[cold]
    fn push(&mut self, shape: &Shape, budget: &Budget, key: u64, payload: u64, must: bool) -> bool {
        if self.entries.len() == self.heads.len() && !self.enlarge(shape, budget, 1, must) {
            return false;
        }
        self.link(key, key << shape.payload_bits | payload);
        true
    }

    /// Makes room for `more` entries.
    fn reserve(&mut self, shape: &Shape, budget: &Budget, more: usize) -> bool {
        self.heads.len() - self.entries.len() >= more || self.enlarge(shape, budget, more, false)
    }

    #[cold]
    fn enlarge(&mut self, shape: &Shape, budget: &Budget, more: usize, must: bool) -> bool {
        let capacity = (self.heads.len() * 5 / 4).max(self.entries.len() + more).max(16);
        let wanted = capacity as u64 * 16;
        // The old and the new one are there at the same time, for a moment.
        let granted = capacity <= u32::MAX as usize && budget.request(wanted);
        if !granted && !must {
            return false;
        }
        let mut grown = Stash {
            entries: Vec::with_capacity(capacity),
            heads: vec![0; capacity],
            next: Vec::with_capacity(capacity),
            granted: if granted { wanted } else { 0 },
        };
        for &entry in &self.entries {
            grown.link(entry >> shape.payload_bits, entry);
        }
        budget.release(self.granted);
        *self = grown;
        true
    }

    fn link(&mut self, key: u64, entry: u64) {
        let head = self.head(key);
        self.next.push(std::mem::replace(&mut self.heads[head], self.entries.len() as u32 + 1));
        self.entries.push(entry);
    }

    #[inline]
    fn probe(&self, shape: &Shape, key: u64, mut found: impl FnMut(u64)) {
        let mut at = if self.heads.is_empty() { 0 } else { self.heads[self.head(key)] };
        while at != 0 {
            let entry = self.entries[at as usize - 1];
            if entry >> shape.payload_bits == key {
                found(entry & ((1 << shape.payload_bits) - 1));
            }
            at = self.next[at as usize - 1];
        }
    }
}

/// Entries of a line that is not written yet.
struct Waiting {
    len: usize,
    values: [u64; 128],
    /// Where so many share a few keys that the array does not hold them.
    more: Vec<u64>,
}

impl Waiting {
    #[inline(always)]
    fn push(&mut self, value: u64) {
        if self.len < self.values.len() {
            self.values[self.len] = value;
            self.len += 1;
        } else {
            self.more.push(value);
        }
    }
}

/// The table.
pub(crate) struct Quotient<const N: usize = 64> {
    budget: Arc<Budget>,
    shape: Shape,
    lines: Arena,
    stash: Stash,
    len: u64,
    /// Bytes of lines that the budget granted; none, if it did not even allow the first.
    granted: u64,
    /// Whether the budget has refused to let it grow.
    last: bool,
}

impl<const N: usize> Quotient<N> {
    /// An empty table for keys and payloads of this many bits.
    ///
    /// # Panics
    /// When these are too many.
    pub fn new(key_bits: u32, payload_bits: u32, budget: Arc<Budget>) -> Self {
        assert!((1..=MOST_KEY_BITS).contains(&key_bits));
        let shape = Shape::new(N as u32, key_bits, payload_bits, 1 << least_m(N as u32), 0);
        let mut table = Quotient {
            budget,
            shape,
            lines: Arena::new(N / 4),
            stash: Stash::default(),
            len: 0,
            granted: 0,
            last: false,
        };
        let bytes = Self::line_bytes(&shape);
        if table.budget.request(bytes) {
            if table.lines.extend(shape.lines() + 1) {
                table.granted = bytes;
            } else {
                table.budget.release(bytes);
            }
        }
        table
    }

    /// The bytes of its lines; there is one behind the last for entries that are foreign there.
    fn line_bytes(shape: &Shape) -> u64 {
        (shape.lines() + 1) * N as u64
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.granted + self.stash.granted
    }

    /// How many bits a payload has.
    pub fn payload_bits(&self) -> u32 {
        self.shape.payload_bits
    }

    /// How many bits of a key will not be told by the place when there are `more` entries.
    pub fn remainder_bits(&self, more: u64, payload_bits: u32) -> u32 {
        self.shape_for(self.len + more, payload_bits).remainder_bits
    }

    /// The shape for so many entries, as far as the key has bits for it.
    fn shape_for(&self, wanted: u64, payload_bits: u32) -> Shape {
        let mut shape = Shape::new(N as u32, self.shape.key_bits, payload_bits, self.shape.m, self.shape.e);
        while wanted > shape.room(false) {
            match shape.next(payload_bits) {
                Some(next) => shape = next,
                // No more lines than keys can tell apart: the rest goes to the stash.
                None => break,
            }
        }
        shape
    }

    /// The key of a mixed hash.
    #[inline(always)]
    pub fn key(&self, mixed: u64) -> u64 {
        mixed >> (64 - self.shape.key_bits)
    }

    /// Makes room for `more` entries with payloads of this many bits, no fewer than before.
    /// `false` means that the budget has none.
    #[must_use]
    pub fn reserve(&mut self, more: u64, payload_bits: u32) -> bool {
        let wanted = self.len + more;
        if self.granted == 0 {
            return false;
        }
        if payload_bits == self.shape.payload_bits && wanted <= self.shape.room(self.last) {
            return true;
        }
        self.grow(wanted, payload_bits)
    }

    /// The same, and room for all of them beside the lines: the insertions will not fail, whatever
    /// their keys. For those who give numbers to many entries and cannot stop in the middle.
    #[must_use]
    pub fn reserve_surely(&mut self, more: u64, payload_bits: u32) -> bool {
        self.reserve(more, payload_bits) && self.stash.reserve(&self.shape, &self.budget, more as usize)
    }

    #[cold]
    fn grow(&mut self, wanted: u64, payload_bits: u32) -> bool {
        debug_assert!(payload_bits >= self.shape.payload_bits);
        let wider = Shape::new(N as u32, self.shape.key_bits, payload_bits, self.shape.m, self.shape.e);
        let new = self.shape_for(wanted, payload_bits);
        let missing = Self::line_bytes(&new) - self.granted;
        if missing == 0 && payload_bits == self.shape.payload_bits {
            return true;
        }
        if self.budget.request(missing) {
            if self.lines.extend(new.lines() + 1) {
                self.granted += missing;
                // By no more at once than lines can wait.
                while new.lines() / self.shape.lines() >= WAITING as u64 / 2 {
                    let Shape { key_bits, m, e, .. } = self.shape;
                    self.rearrange(Shape::new(N as u32, key_bits, payload_bits, m, e + WAITING.ilog2() - 1));
                }
                self.rearrange(new);
                return true;
            }
            self.budget.release(missing);
        }
        self.last = true;
        // Without memory to grow, the lines are filled to the last.
        let room = wanted <= wider.room(true);
        if room && payload_bits != self.shape.payload_bits {
            self.rearrange(wider);
        }
        room
    }

    /// Moves all entries to their places in a table of another shape, no smaller.
    ///
    /// Old lines are read from the last to the first; the entries of one go to a few new lines.
    /// A new line is written when no older line can add to it, all slots at once.
    fn rearrange(&mut self, new: Shape) {
        let old = std::mem::replace(&mut self.shape, new);
        let Stash { entries: mut stashed, granted, .. } = std::mem::take(&mut self.stash);
        stashed.sort_unstable();
        // Those that are foreign in the line read last, and belong to the next.
        let mut carried: Vec<u64> = Vec::with_capacity(64);
        // What has come together for new lines that are not written yet, by the line's last bits.
        let mut waiting: Vec<Waiting> =
            (0..WAITING).map(|_| Waiting { len: 0, values: [0; 128], more: Vec::new() }).collect();
        // The first new line that is written.
        let mut written = new.lines() + 1;
        for home in (0..=old.lines()).rev() {
            let mut put = |key: u64, payload: u64| {
                let (home, remainder) = new.split(key);
                waiting[home as usize % WAITING].push(new.value(remainder, payload));
            };
            for value in carried.drain(..) {
                put(old.join(home, value & old.remainder_mask), old.payload(value));
            }
            let line = self.line(home);
            for slot in 0..line.own() {
                let value = line.get(&old, slot);
                put(old.join(home, value & old.remainder_mask), old.payload(value));
            }
            for slot in old.slots - line.foreign()..old.slots {
                carried.push(line.get(&old, slot));
            }
            while let Some(entry) = stashed.pop_if(|entry| old.split(*entry >> old.payload_bits).0 == home) {
                put(entry >> old.payload_bits, entry & ((1 << old.payload_bits) - 1));
            }
            // Keys to come are smaller than all that have this home.
            let least = if home == 0 { 0 } else { new.split(old.join(home, 0)).0 + 1 };
            debug_assert!(written - least <= WAITING as u64 || home == old.lines());
            while written > least {
                written -= 1;
                self.write_line(written, &mut waiting[written as usize % WAITING]);
            }
        }
        debug_assert!(carried.is_empty() && stashed.is_empty());
        self.budget.release(granted);
    }

    /// Writes a line anew with these entries of its own, and empties the list; those that find
    /// no room go where [`place`](Self::place) would put them.
    fn write_line(&mut self, home: u64, waiting: &mut Waiting) {
        let shape = self.shape;
        let fitting = waiting.len.min(shape.slots as usize);
        let mut line = Line([0; N]);
        line.fill(&shape, &waiting.values[..fitting]);
        if fitting < waiting.len {
            line.0[0] |= OVERFLOWN;
        }
        *self.line_mut(home) = line;
        for &value in waiting.values[fitting..waiting.len].iter().chain(&waiting.more) {
            if !self.line_mut(home + 1).put_foreign(&shape, value) {
                let key = shape.join(home, value & shape.remainder_mask);
                self.stash.push(&shape, &self.budget, key, shape.payload(value), true);
            }
        }
        waiting.len = 0;
        waiting.more.clear();
    }

    #[inline(always)]
    fn line(&self, number: u64) -> &Line<N> {
        debug_assert!(number <= self.shape.lines());
        // SAFETY: the arena was extended to one line more than the shape has, its items are
        // lines of `N` bytes at multiples of 64, and any bytes are a line; `&self` says that
        // nobody writes.
        unsafe { &*self.lines.address(number).cast::<Line<N>>() }
    }

    #[inline(always)]
    fn line_mut(&mut self, number: u64) -> &mut Line<N> {
        debug_assert!(number <= self.shape.lines());
        // SAFETY: as above, and `&mut self` says that nobody else reads or writes.
        unsafe { &mut *self.lines.address(number).cast::<Line<N>>() }
    }

    /// Puts an entry into its place (I1). `false` means that there is none.
    #[inline(always)]
    fn place(&mut self, key: u64, payload: u64) -> bool {
        let shape = self.shape;
        let (home, remainder) = shape.split(key);
        let value = shape.value(remainder, payload);
        self.line_mut(home).put_own(&shape, value)
            || self.line_mut(home + 1).put_foreign(&shape, value)
            || self.stash.push(&shape, &self.budget, key, payload, false)
    }

    /// Asks for the line of a mixed hash to be fetched.
    #[inline(always)]
    pub fn prefetch(&self, mixed: u64) {
        if self.granted > 0 {
            prefetch_line(self.line(self.shape.split(self.key(mixed)).0));
        }
    }

    /// Calls `found` with the payload of every entry under the key of this mixed hash.
    #[inline(always)]
    pub fn probe(&self, mixed: u64, mut found: impl FnMut(u64)) {
        if self.granted == 0 {
            return;
        }
        let key = self.key(mixed);
        let (home, remainder) = self.shape.split(key);
        let line = self.line(home);
        scan(&self.shape, line, bits(0, line.own()), remainder, equal_bytes, &mut found);
        if line.is_overflown() {
            let next = self.line(home + 1);
            let foreign = bits(self.shape.slots - next.foreign(), self.shape.slots);
            scan(&self.shape, next, foreign, remainder, equal_bytes, &mut found);
            if next.is_stashed() {
                self.stash.probe(&self.shape, key, found);
            }
        }
    }

    /// Calls `found` with the number of each mixed hash and the payload of every entry under
    /// its key; hashes of a group in order, then again those whose entries went elsewhere.
    #[inline(always)]
    pub fn probe_each(&self, mixed: &[u64], found: impl FnMut(usize, u64)) {
        if self.granted == 0 {
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if has_avx512() {
            // SAFETY: the processor has these instructions.
            unsafe { self.probe_avx512(mixed, found) };
            return;
        }
        self.probe_all(mixed, equal_bytes, found);
    }

    /// [`probe_all`](Self::probe_all) with the instructions of AVX-512.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn probe_avx512(&self, mixed: &[u64], found: impl FnMut(usize, u64)) {
        use std::arch::x86_64::*;
        let equal = |bytes: &[u8; 64], byte: u8, mask: u8| {
            // SAFETY: the 64 bytes are there, and the caller promises the instructions.
            unsafe {
                let loaded = _mm512_loadu_si512(bytes.as_ptr().cast());
                let masked = _mm512_and_si512(loaded, _mm512_set1_epi8(mask as i8));
                _mm512_cmpeq_epi8_mask(masked, _mm512_set1_epi8(byte as i8))
            }
        };
        self.probe_all(mixed, equal, found);
    }

    #[inline(always)]
    fn probe_all(
        &self,
        mixed: &[u64],
        equal: impl Fn(&[u8; 64], u8, u8) -> u64 + Copy,
        mut found: impl FnMut(usize, u64),
    ) {
        /// Keys that are looked up together.
        const GROUP: usize = 64;
        let mut homes = [(0, self.line(0)); GROUP];
        let mut further = [0u8; GROUP];
        let shape = self.shape;
        for (group, hashes) in mixed.chunks(GROUP).enumerate() {
            for (place, &mixed) in homes.iter_mut().zip(hashes) {
                let (home, remainder) = shape.split(self.key(mixed));
                *place = (remainder, self.line(home));
                prefetch_line(place.1);
            }
            let mut overflown = 0;
            for (index, &(remainder, line)) in homes[..hashes.len()].iter().enumerate() {
                // Without a branch: whether a line has overflown cannot be foreseen.
                further[overflown % GROUP] = index as u8;
                overflown += usize::from(line.is_overflown());
                let slots = bits(0, line.own());
                scan(&shape, line, slots, remainder, equal, |payload| found(group * GROUP + index, payload));
            }
            for &index in &further[..overflown] {
                let (home, _) = shape.split(self.key(hashes[index as usize % GROUP]));
                prefetch_line(self.line(home + 1));
            }
            for &index in &further[..overflown] {
                let index = index as usize % GROUP;
                let (home, remainder) = shape.split(self.key(hashes[index]));
                let next = self.line(home + 1);
                let slots = bits(shape.slots - next.foreign(), shape.slots);
                scan(&shape, next, slots, remainder, equal, |payload| found(group * GROUP + index, payload));
                if next.is_stashed() {
                    let key = self.key(hashes[index]);
                    self.stash.probe(&shape, key, |payload| found(group * GROUP + index, payload));
                }
            }
        }
    }

    /// Enters a payload under the key of this mixed hash. Room for it was
    /// [reserved](Self::reserve). `false` means that there was none all the same: too many
    /// entries share a few keys.
    #[must_use]
    #[inline(always)]
    pub fn insert(&mut self, mixed: u64, payload: u64) -> bool {
        debug_assert!(self.shape.payload_bits >= 64 - payload.leading_zeros());
        let placed = self.place(self.key(mixed), payload);
        self.len += u64::from(placed);
        placed
    }
}

impl<const N: usize> Drop for Quotient<N> {
    fn drop(&mut self) {
        self.budget.release(self.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;
    use std::collections::HashMap;

    fn probed<const N: usize>(table: &Quotient<N>, mixed: u64) -> Vec<u64> {
        let mut found = Vec::new();
        table.probe(mixed, |payload| found.push(payload));
        found.sort_unstable();
        let mut again = Vec::new();
        table.probe_each(&[mixed ^ 1, mixed], |index, payload| {
            if index == 1 {
                again.push(payload)
            }
        });
        again.sort_unstable();
        assert_eq!(found, again);
        found
    }

    /// Enters `count` payloads of growing width and compares with a map.
    fn check(key_bits: u32, payload: impl Fn(u64) -> u64 + Copy, count: u64) -> f64 {
        check_lines::<64>(key_bits, payload, count).max(check_lines::<128>(key_bits.min(54), payload, count))
    }

    fn check_lines<const N: usize>(key_bits: u32, payload: impl Fn(u64) -> u64, count: u64) -> f64 {
        let budget = Arc::new(Budget::unlimited());
        let mut table: Quotient<N> = Quotient::new(key_bits, 0, Arc::clone(&budget));
        let mut model: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut width = 0;
        for number in 0..count {
            width = width.max(64 - payload(number).leading_zeros());
            assert!(table.reserve(1, width));
            assert!(table.insert(mix(number), payload(number)));
            model.entry(table.key(mix(number))).or_default().push(payload(number));
            assert_eq!(table.bytes(), budget.used());
            if number.is_power_of_two() {
                for earlier in 0..=number {
                    let mut expected = model[&table.key(mix(earlier))].clone();
                    expected.sort_unstable();
                    assert_eq!(probed(&table, mix(earlier)), expected);
                }
            }
        }
        for number in 0..count {
            let mut expected = model[&table.key(mix(number))].clone();
            expected.sort_unstable();
            assert_eq!(probed(&table, mix(number)), expected, "{number}");
            let absent = mix(number + count);
            let expected = model.get(&table.key(absent)).map_or(0, Vec::len);
            assert_eq!(probed(&table, absent).len(), expected);
        }
        assert_eq!(table.len(), count);
        let stashed = table.stash.entries.len() as f64 / count as f64;
        drop(table);
        assert_eq!(budget.used(), 0);
        stashed
    }

    #[test]
    fn everything_entered_is_found_under_its_key_and_nothing_else() {
        let count = if cfg!(miri) { 300 } else { 20_000 };
        for key_bits in [12, 16, 20, 28, 40, 56] {
            for payload_bits in [0u32, 1, 4, 9, 20] {
                if key_bits + payload_bits <= 64 {
                    check(key_bits, |number| mix(number ^ 77) & ((1 << payload_bits) - 1), count);
                }
            }
            if key_bits <= 48 {
                check(key_bits, |number| number, count);
            }
        }
    }

    #[test]
    fn few_keys_make_long_lists() {
        for key_bits in 1..8 {
            check(key_bits, |number| number, if cfg!(miri) { 100 } else { 1500 });
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn the_stash_stays_small() {
        for (key_bits, payload) in [(28, 6), (24, 21), (20, 0)] {
            let stashed = check(key_bits, |number| mix(number) & ((1 << payload) - 1), 300_000);
            assert!(stashed < 0.02, "{stashed} of all entries with {payload} bits");
        }
    }

    #[test]
    fn homes_follow_the_order_of_keys_and_give_them_back() {
        let small = [3, 8, 13, 40, 56].map(|key_bits| Shape::new(64, key_bits, 0, 8, 0));
        let large = [3, 8, 13, 40, 54].map(|key_bits| Shape::new(128, key_bits, 0, 16, 0));
        for first in small.into_iter().chain(large) {
            let key_bits = first.key_bits;
            let mut shape = Some(first);
            while let Some(now) = shape {
                let keys = (0..200).map(|step| mix(step) >> (64 - key_bits));
                for key in keys.chain([0, 1, (1 << key_bits) - 1]) {
                    let (home, remainder) = now.split(key);
                    assert!(home < now.lines() && remainder < 1 << now.remainder_bits.max(1));
                    assert_eq!(now.join(home, remainder), key, "{now:?}");
                    if let Some(next) = now.next(0) {
                        assert!(next.split(key).0 >= home);
                    }
                }
                shape = now.next(0);
            }
        }
    }

    #[test]
    fn a_small_budget_ends_growth_and_loses_nothing() {
        for limit in [0, 600, 700, 5_000, 40_000] {
            let budget = Arc::new(Budget::new(limit));
            let mut table: Quotient = Quotient::new(30, 12, Arc::clone(&budget));
            let mut entered = 0;
            while table.reserve(1, 12) && table.insert(mix(entered), entered % 4096) {
                entered += 1;
            }
            assert!(entered > 0 || limit < 600, "{limit}");
            for number in 0..entered {
                assert!(probed(&table, mix(number)).contains(&(number % 4096)), "{number} of {entered}");
            }
            assert!(budget.peak() <= limit);
            assert_eq!(table.bytes(), budget.used());
        }
    }
}
