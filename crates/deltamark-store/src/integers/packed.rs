//! A list of unsigned numbers in as few bits as they need.
//!
//! In: numbers below 2^63, appended. Out: number `i`. Invariants: growing moves only the current
//! chunk; all memory was granted before it is allocated.
//!
//! # Layout in memory
//! ```text
//! chunk 0 [ 2048 numbers of 5 bits ]  chunk 1 [ 2048 of 9 bits ]  chunk 2 [ 2048 of 9 bits ] …
//! ```
//! A chunk has the width of its largest number; a larger number rewrites that chunk alone. It ends
//! with one word more than needed, so every number is read from two adjacent words without a bounds
//! check.

use crate::memory::grant::Grant;
use crate::tables::bucket::prefetch;
use deltamark_core::Budget;
use std::sync::Arc;

/// Numbers in a chunk.
const CHUNK: u64 = 2048;
/// What a chunk costs in the list of chunks.
const ENTRY: u64 = size_of::<Chunk>() as u64;

struct Chunk {
    words: Box<[u64]>,
    width: u32,
}

impl Chunk {
    /// The bytes of a chunk of this width.
    fn bytes(width: u32) -> u64 {
        Self::words(width) * 8
    }

    fn words(width: u32) -> u64 {
        CHUNK / 64 * u64::from(width) + 1
    }

    fn new(width: u32) -> Self {
        Chunk { words: vec![0; Self::words(width) as usize].into_boxed_slice(), width }
    }

    #[inline(always)]
    fn get(&self, index: u64) -> u64 {
        let bit = index as usize * self.width as usize;
        let (word, shift) = (bit / 64, bit % 64);
        let Some(&[low, high]) = self.words.get(word..word + 2).and_then(|pair| pair.first_chunk()) else {
            // Numbers of no bits, and nothing else, have no second word.
            return 0;
        };
        (low >> shift | high << 1 << (63 - shift)) & ((1 << self.width) - 1)
    }

    fn set(&mut self, index: u64, value: u64) {
        debug_assert!(bits(value) <= self.width);
        if self.width == 0 {
            return;
        }
        let bit = index as usize * self.width as usize;
        let (word, shift) = (bit / 64, bit % 64);
        let mask = (1u64 << self.width) - 1;
        self.words[word] = self.words[word] & !(mask << shift) | value << shift;
        let (mask, value) = (mask >> 1 >> (63 - shift), value >> 1 >> (63 - shift));
        self.words[word + 1] = self.words[word + 1] & !mask | value;
    }
}

/// The bits of a number.
#[inline]
pub(crate) fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// A list of unsigned numbers in as few bits as they need.
pub(crate) struct Packed {
    chunks: Vec<Chunk>,
    len: u64,
    grant: Grant,
}

impl Packed {
    /// An empty list.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Packed { chunks: Vec::new(), len: 0, grant: Grant::new(budget) }
    }

    /// How many numbers there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.grant.bytes()
    }

    /// Makes room for `more` numbers of at most `most`. `false` means that the budget has none.
    #[must_use]
    pub fn reserve(&mut self, more: u64, most: u64) -> bool {
        let width = bits(most);
        debug_assert!(width < 64);
        let mut number = self.len / CHUNK;
        let end = (self.len + more).div_ceil(CHUNK);
        while number < end {
            let known = self.chunks.get(number as usize).map(|chunk| chunk.width);
            let granted = match known {
                Some(known) => known >= width || self.widen(number as usize, width),
                None => self.append(width),
            };
            if !granted {
                return false;
            }
            number += 1;
        }
        true
    }

    fn append(&mut self, width: u32) -> bool {
        if self.chunks.len() == self.chunks.capacity() {
            let more = self.chunks.capacity().max(4);
            if !self.grant.ask(more as u64 * ENTRY) {
                return false;
            }
            self.chunks.reserve_exact(more);
            // The allocator may give more than was asked for; it does not for such sizes.
            debug_assert_eq!(self.chunks.capacity() % 4, 0);
        }
        if !self.grant.ask(Chunk::bytes(width)) {
            return false;
        }
        self.chunks.push(Chunk::new(width));
        true
    }

    /// Writes a chunk again with wider numbers.
    #[cold]
    fn widen(&mut self, number: usize, width: u32) -> bool {
        let chunk = &mut self.chunks[number];
        if !self.grant.ask(Chunk::bytes(width) - Chunk::bytes(chunk.width)) {
            return false;
        }
        let mut wider = Chunk::new(width);
        let used = (self.len.saturating_sub(number as u64 * CHUNK)).min(CHUNK);
        for index in 0..used {
            wider.set(index, chunk.get(index));
        }
        *chunk = wider;
        true
    }

    /// Appends a number for which room was [made](Self::reserve).
    #[inline]
    pub fn push(&mut self, value: u64) {
        self.chunks[(self.len / CHUNK) as usize].set(self.len % CHUNK, value);
        self.len += 1;
    }

    /// Number `index`.
    #[inline(always)]
    pub fn get(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        self.chunks[(index / CHUNK) as usize].get(index % CHUNK)
    }

    /// Changes number `index`. `false` means that it needs more bits than the budget grants.
    #[must_use]
    pub fn set(&mut self, index: u64, value: u64) -> bool {
        let number = (index / CHUNK) as usize;
        if bits(value) > self.chunks[number].width && !self.widen(number, bits(value)) {
            return false;
        }
        self.chunks[number].set(index % CHUNK, value);
        true
    }

    /// Asks for number `index` to be fetched.
    #[inline(always)]
    pub fn prefetch(&self, index: u64) {
        if let Some(chunk) = self.chunks.get((index / CHUNK) as usize) {
            let word = (index % CHUNK) as usize * chunk.width as usize / 64;
            prefetch(chunk.words.as_ptr().wrapping_add(word));
        }
    }

    /// How many numbers at the front, of an ascending list, `before` is true of.
    pub fn partition_point(&self, before: impl Fn(u64) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    #[test]
    fn numbers_of_all_widths_come_back_and_can_be_changed() {
        let budget = Arc::new(Budget::unlimited());
        let mut list = Packed::new(&budget);
        let mut model = Vec::new();
        let count: u64 = if cfg!(miri) { 500 } else { 20_000 };
        for step in 0..count {
            let value = mix(step) >> (1 + (mix(!step) + step * 66 / count) % 63);
            assert!(list.reserve(1, value));
            list.push(value);
            model.push(value);
            if step % 3 == 0 {
                let (index, value) = (mix(step * 7) % model.len() as u64, mix(step * 5) >> (1 + step % 63));
                assert!(list.set(index, value));
                model[index as usize] = value;
            }
        }
        assert_eq!(list.len(), count);
        assert!((0..list.len()).all(|index| list.get(index) == model[index as usize]));
        assert_eq!(list.bytes(), budget.used());
        drop(list);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn numbers_take_the_bits_they_need() {
        let budget = Arc::new(Budget::unlimited());
        let count: u64 = if cfg!(miri) { 500 } else { 200_000 };
        for (most, width) in [(0, 0), (1, 1), (2, 2), (255, 8), (256, 9), (1 << 40, 41)] {
            let mut list = Packed::new(&budget);
            for value in 0..count {
                assert!(list.reserve(1, value % (most + 1)));
                list.push(value % (most + 1));
            }
            assert!(list.reserve(1, most));
            list.push(most);
            let needed = count * width / 8;
            assert!(list.bytes() <= needed + needed / 50 + 8192, "{most}: {} for {needed}", list.bytes());
        }
    }

    #[test]
    fn what_the_budget_refuses_changes_nothing() {
        let budget = Arc::new(Budget::new(3000));
        let mut list = Packed::new(&budget);
        let mut pushed = 0;
        while list.reserve(1, pushed % 500) {
            list.push(pushed % 500);
            pushed += 1;
        }
        assert!(pushed > 1000 && !list.set(3, 1 << 50));
        assert!((0..list.len()).all(|index| list.get(index) == index % 500));
        assert_eq!(list.bytes(), budget.used());
    }

    #[test]
    fn ascending_numbers_are_searched() {
        let budget = Arc::new(Budget::unlimited());
        let mut list = Packed::new(&budget);
        let count = if cfg!(miri) { 100 } else { 5000 };
        for value in 0..count {
            assert!(list.reserve(1, value * 3));
            list.push(value * 3);
        }
        for value in 0..3 * count {
            assert_eq!(list.partition_point(|held| held <= value), value / 3 + 1);
        }
    }
}
