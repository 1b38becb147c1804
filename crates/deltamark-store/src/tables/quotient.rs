//! # The idea
//! A quotient hash table: it stores of each hash only what its position does not determine, and
//! grows in place without rehashing the keyed items.
//!
//! In: a key, the top `H` bits of a mixed hash, and a payload of some bits. Out: the payloads
//! inserted under a key. The table distinguishes keys exactly; collisions of keys are resolved by
//! the caller. Quotienting is due to Cleary (1984). Homes follow the order of the keys, so growing
//! is one sequential pass; this makes small growth steps cheap and keeps the load factor between
//! 0.8 and 0.9.
//!
//! # Layout in memory
//! ```text
//! line j   own foreign | t t t t t … | v v v v v …      64 or 128 bytes
//!          1 B   1 B     1 B a slot    w bits a slot
//!          the top bit of each: some of these had to go elsewhere
//! slot     remainder of the key, then the payload: the low 8 bits are t, the others v
//! ```
//! A line is one cache line, for small payloads, or two, for large ones: more slots share it, so
//! fewer stay empty. The tags of a line are in its first 64 bytes; if no tag matches, the rest is
//! not read.
//!
//! There are `m·2^e` lines, `m` being 8, 10, 12 or 14; where lines have 128 bytes, 16, 18, … or
//! 30. The key `x` has its home in line `x·m >> (H-e)`; of the bits shifted out all but the lowest
//! three (four) are the remainder. Keys of one home differ there by multiples of `m`, so home and
//! remainder say which key it is: the only `x` with `x·m` in the eight (sixteen) numbers they
//! leave open.
//!
//! A slot whose home is full goes to the next line, where such foreign slots are at the end; if
//! that is full too, it goes to the stash, a small table beside it.
//!
//! Homes, slots and the stash are those of `pairs.rs` (`quotient/shape.rs`, `quotient/stash.rs`).
//! Lines are not: here one thread writes at a time, so lines are plain bytes.
//!
//! # Growth
//! From `m·2^e` to the next size, lines are read from last to first, and every entry is written to
//! its new line, which is never before the old one: nothing is overwritten before it was read.
//!
//! # Invariants
//! * I1: an entry is in its home line; or in the next one, and then its home is marked; or in
//!   the stash, and then both are. Entries are taken out by writing all lines anew.
//! * I2: lines behind the last are zero.
//!
//! # When to choose it
//! For tables whose entries must be small. A look-up touches one line, seldom two.

mod line;
pub(crate) mod shape;
pub(crate) mod stash;

use crate::memory::arena::Arena;
use deltamark_core::Budget;
use deltamark_core::packed::bits_of;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use line::has_avx512;
use line::{OVERFLOWN, QuotientLine, bits, equal_bytes, prefetch_line, scan};
use shape::QuotientShape;
use stash::Stash;
use std::sync::Arc;

/// New lines that wait to be written when a table is rearranged: more than one old line and
/// those beside it can lead to, growth by a few steps at once included.
const WAITING: usize = 64;
/// The most bits of a key; two fewer where lines have 128 bytes.
pub(crate) const MOST_KEY_BITS: u32 = 56;

/// Entries of a line that is not written yet.
struct Waiting {
    len: usize,
    values: [u64; 128],
    /// Entries of keys that more share than the array holds.
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
    shape: QuotientShape,
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
        // Tables of small entries grow in four steps to twice their size, those of large ones in
        // eight. With steps half as large tables are a twentieth smaller, and filling them takes
        // longer.
        let least = if N == 64 { 3 } else { 4 };
        let shape = QuotientShape::new(N as u32, least, key_bits, payload_bits, 1 << least, 0);
        let mut table = Quotient {
            budget,
            shape,
            lines: Arena::new(N / 4),
            stash: Stash::new(payload_bits),
            len: 0,
            granted: 0,
            last: false,
        };
        let bytes = shape.line_bytes();
        if table.budget.request(bytes) {
            if table.lines.extend(shape.lines() + 1) {
                table.granted = bytes;
            } else {
                table.budget.release(bytes);
            }
        }
        table
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

    /// How many bits of a key are not implied by the position when there are `more` entries.
    pub fn remainder_bits(&self, more: u64, payload_bits: u32) -> u32 {
        self.shape_for(self.len + more, payload_bits).remainder_bits
    }

    /// The shape for this many entries, as far as the key has bits for it; the rest goes to the
    /// stash.
    fn shape_for(&self, wanted: u64, payload_bits: u32) -> QuotientShape {
        self.shape.with_bits(self.shape.key_bits, payload_bits).with_room(wanted)
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
        self.reserve(more, payload_bits) && self.stash.reserve(more as usize, &self.budget)
    }

    #[cold]
    fn grow(&mut self, wanted: u64, payload_bits: u32) -> bool {
        debug_assert!(payload_bits >= self.shape.payload_bits);
        let wider = self.shape.with_bits(self.shape.key_bits, payload_bits);
        let new = self.shape_for(wanted, payload_bits);
        let missing = new.line_bytes() - self.granted;
        if missing == 0 && payload_bits == self.shape.payload_bits {
            return true;
        }
        if self.budget.request(missing) {
            if self.lines.extend(new.lines() + 1) {
                self.granted += missing;
                // By no more at once than lines can wait.
                while new.lines() / self.shape.lines() >= WAITING as u64 / 2 {
                    let QuotientShape { bytes, least, key_bits, m, e, .. } = self.shape;
                    self.rearrange(QuotientShape::new(
                        bytes,
                        least,
                        key_bits,
                        payload_bits,
                        m,
                        e + WAITING.ilog2() - 1,
                    ));
                }
                self.rearrange(new);
                return true;
            }
            self.budget.release(missing);
        }
        self.last = true;
        // Without memory to grow, the lines are filled completely.
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
    fn rearrange(&mut self, new: QuotientShape) {
        let old = std::mem::replace(&mut self.shape, new);
        let stash = std::mem::replace(&mut self.stash, Stash::new(new.payload_bits));
        let mut stashed: Vec<u64> = stash.words().collect();
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
        self.budget.release(stash.granted);
    }

    /// Writes a line anew with these entries of its own, and empties the list; those that find
    /// no room go where [`place`](Self::place) would put them.
    fn write_line(&mut self, home: u64, waiting: &mut Waiting) {
        let shape = self.shape;
        let fitting = waiting.len.min(shape.slots as usize);
        let mut line = QuotientLine([0; N]);
        line.fill(&shape, &waiting.values[..fitting]);
        if fitting < waiting.len {
            line.0[0] |= OVERFLOWN;
        }
        *self.line_mut(home) = line;
        for &value in waiting.values[fitting..waiting.len].iter().chain(&waiting.more) {
            if !self.line_mut(home + 1).put_foreign(&shape, value) {
                let key = shape.join(home, value & shape.remainder_mask);
                self.stash.push(key, shape.payload(value), &self.budget, true);
            }
        }
        waiting.len = 0;
        waiting.more.clear();
    }

    #[inline(always)]
    fn line(&self, number: u64) -> &QuotientLine<N> {
        debug_assert!(number <= self.shape.lines());
        // SAFETY: the arena was extended to one line more than the shape has, its items are
        // lines of `N` bytes at multiples of 64, and any bytes are a line; `&self` means that
        // nobody writes.
        unsafe { &*self.lines.address(number).cast::<QuotientLine<N>>() }
    }

    #[inline(always)]
    fn line_mut(&mut self, number: u64) -> &mut QuotientLine<N> {
        debug_assert!(number <= self.shape.lines());
        // SAFETY: as above, and `&mut self` means that nobody else reads or writes.
        unsafe { &mut *self.lines.address(number).cast::<QuotientLine<N>>() }
    }

    /// Puts an entry into its place (I1). `false` means that there is none.
    #[inline(always)]
    fn place(&mut self, key: u64, payload: u64) -> bool {
        let shape = self.shape;
        let (home, remainder) = shape.split(key);
        let value = shape.value(remainder, payload);
        self.line_mut(home).put_own(&shape, value)
            || self.line_mut(home + 1).put_foreign(&shape, value)
            || self.stash.push(key, payload, &self.budget, false)
    }

    /// Takes out all entries whose payloads are not kept, and gives back lines that the others do not need.
    ///
    /// Lines are read from the first to the last, and each is written when all that can belong to it has been read: a home
    /// of the new shape is that of the old one, shifted, so no line is written before it was read.
    pub fn retain(&mut self, mut keep: impl FnMut(u64) -> bool) {
        if self.granted == 0 {
            return;
        }
        let old = self.shape;
        let payload_of = |word: u64| word & ((1 << old.payload_bits) - 1);
        let mut left = self.stash.words().filter(|&word| keep(payload_of(word))).count() as u64;
        for number in 0..=old.lines() {
            let line = self.line(number);
            let slots = (0..line.own()).chain(old.slots - line.foreign()..old.slots);
            left += slots.filter(|&slot| keep(old.payload(line.get(&old, slot)))).count() as u64;
        }
        let mut new = old;
        while new.e > 0 {
            let half = QuotientShape::new(old.bytes, old.least, old.key_bits, old.payload_bits, old.m, new.e - 1);
            if half.room(false) < left + left / 8 {
                break;
            }
            new = half;
        }
        let stash = std::mem::replace(&mut self.stash, Stash::new(old.payload_bits));
        let mut stashed: Vec<u64> = stash.words().filter(|&word| keep(payload_of(word))).collect();
        stashed.sort_unstable_by(|one, two| two.cmp(one));
        let (mut own, mut excess) = (Vec::with_capacity(128), Vec::new());
        for number in 0..new.lines() {
            own.clear();
            for home in number << (old.e - new.e)..(number + 1) << (old.e - new.e) {
                let mut put = |key: u64, payload: u64| {
                    let (at, remainder) = new.split(key);
                    debug_assert_eq!(at, number, "homes follow the order of keys");
                    own.push(new.value(remainder, payload));
                };
                let (line, next) = (self.line(home), self.line(home + 1));
                let values = (0..line.own()).map(|slot| line.get(&old, slot));
                let foreign = (old.slots - next.foreign()..old.slots).map(|slot| next.get(&old, slot));
                for value in values.chain(foreign).filter(|&value| keep(old.payload(value))) {
                    put(old.join(home, value & old.remainder_mask), old.payload(value));
                }
                while let Some(word) = stashed.pop_if(|word| old.split(*word >> old.payload_bits).0 == home) {
                    put(word >> old.payload_bits, payload_of(word));
                }
            }
            self.rewrite_line(&new, number, &own, &mut excess);
        }
        self.rewrite_line(&new, new.lines(), &[], &mut excess);
        debug_assert!(stashed.is_empty() && excess.is_empty());
        self.budget.release(stash.granted);
        self.shape = new;
        self.len = left;
        self.last = false;
        self.lines.truncate(new.lines() + 1);
        let given_back = self.granted.saturating_sub(new.line_bytes());
        self.granted -= given_back;
        self.budget.release(given_back);
    }

    /// Writes a line of a shape that is not yet that of the table: entries of its own, then those in excess in the line before.
    /// What is in excess here replaces those.
    fn rewrite_line(&mut self, shape: &QuotientShape, number: u64, own: &[u64], excess: &mut Vec<u64>) {
        let fitting = own.len().min(shape.slots as usize);
        let mut line = QuotientLine([0; N]);
        line.fill(shape, &own[..fitting]);
        if fitting < own.len() {
            line.0[0] |= OVERFLOWN;
        }
        for value in excess.drain(..) {
            if !line.put_foreign(shape, value) {
                let key = shape.join(number - 1, value & shape.remainder_mask);
                self.stash.push(key, shape.payload(value), &self.budget, true);
            }
        }
        *self.line_mut(number) = line;
        excess.extend_from_slice(&own[fitting..]);
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
                self.stash.probe(key, found);
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
                    self.stash.probe(key, |payload| found(group * GROUP + index, payload));
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
        debug_assert!(self.shape.payload_bits >= bits_of(payload));
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
            width = width.max(bits_of(payload(number)));
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
        let stashed = table.stash.len() as f64 / count as f64;
        drop(table);
        assert_eq!(budget.used(), 0);
        stashed
    }

    #[test]
    fn everything_entered_is_found_under_its_key_and_nothing_else() {
        // With few entries of two sizes under Miri: the larger ones make it grow.
        let count = if cfg!(miri) { 70 } else { 20_000 };
        let (key_sizes, payload_sizes): (&[u32], &[u32]) =
            if cfg!(miri) { (&[16, 56], &[8]) } else { (&[12, 16, 20, 28, 40, 56], &[0, 1, 4, 9, 20]) };
        for &key_bits in key_sizes {
            for &payload_bits in payload_sizes {
                if key_bits + payload_bits <= 64 {
                    check(key_bits, |number| mix(number ^ 77) & ((1 << payload_bits) - 1), count);
                }
            }
            if key_bits <= 48 && !cfg!(miri) {
                check(key_bits, |number| number, count);
            }
        }
    }

    #[test]
    fn few_keys_make_long_lists() {
        for key_bits in if cfg!(miri) { 3..4 } else { 1..8 } {
            check(key_bits, |number| number, if cfg!(miri) { 40 } else { 1500 });
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
        let small = [3, 8, 13, 40, 56].map(|key_bits| QuotientShape::new(64, 3, key_bits, 0, 8, 0));
        let large = [3, 8, 13, 40, 54].map(|key_bits| QuotientShape::new(128, 4, key_bits, 0, 16, 0));
        for first in small.into_iter().chain(large) {
            let key_bits = first.key_bits;
            let mut shape = Some(first);
            while let Some(now) = shape {
                let keys = (0..if cfg!(miri) { 2 } else { 200 }).map(|step| mix(step) >> (64 - key_bits));
                for key in keys.chain([0, 1, (1 << key_bits) - 1]) {
                    let (home, remainder) = now.split(key);
                    assert!(home < now.lines() && remainder < 1 << now.remainder_bits.max(1));
                    assert_eq!(now.join(home, remainder), key, "{now:?}");
                    if let Some(next) = now.next() {
                        assert!(next.split(key).0 >= home);
                    }
                }
                shape = now.next();
            }
        }
    }

    fn check_retained<const N: usize>(key_bits: u32, count: u64) {
        let budget = Arc::new(Budget::unlimited());
        let mut table: Quotient<N> = Quotient::new(key_bits, 20, Arc::clone(&budget));
        let mut held: Vec<u64> = Vec::new();
        let mut random = 1;
        for round in 0..6 {
            let more = (held.len() as u64 + (round << 14)..).take(count as usize);
            for number in more {
                assert!(table.reserve(1, 20) && table.insert(mix(number), number % (1 << 20)));
                held.push(number);
            }
            random = mix(random);
            let kept = |payload: u64| mix(payload ^ random) % 8 < [8, 0, 5, 1, 7, 2][round as usize];
            let before = table.bytes();
            table.retain(kept);
            held.retain(|&number| kept(number % (1 << 20)));
            assert_eq!(table.len(), held.len() as u64);
            assert_eq!((table.bytes(), table.shape.line_bytes()), (budget.used(), table.granted));
            assert!(table.bytes() <= before + table.stash.granted);
            let mut model: HashMap<u64, Vec<u64>> = HashMap::new();
            for &number in &held {
                model.entry(table.key(mix(number))).or_default().push(number % (1 << 20));
            }
            for (number, step) in (0..held.len() as u64 + 50).zip((0..).step_by(3)) {
                for number in [held.get(number as usize).copied().unwrap_or(number), step] {
                    let mut expected = model.get(&table.key(mix(number))).cloned().unwrap_or_default();
                    expected.sort_unstable();
                    assert_eq!(probed(&table, mix(number)), expected, "{number}, round {round}");
                }
            }
        }
    }

    #[test]
    fn what_is_taken_out_is_gone_and_everything_else_is_there() {
        let count = if cfg!(miri) { 60 } else { 6_000 };
        // Keys that few share, and keys that so many share that the stash is used.
        for key_bits in if cfg!(miri) { &[4, 24][..] } else { &[6, 10, 16, 24, 40] } {
            let count = if *key_bits < 12 { count / 10 } else { count };
            check_retained::<64>(*key_bits, count);
            check_retained::<128>(*key_bits, count);
        }
    }

    #[test]
    fn a_small_budget_ends_growth_and_loses_nothing() {
        for &limit in if cfg!(miri) { &[0, 600, 700][..] } else { &[0, 600, 700, 5_000, 40_000] } {
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
