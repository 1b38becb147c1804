//! A list of numbers that never decrease, in about two bits each.
//!
//! In: numbers, one behind the other, none below the one before. Out: number `i`. What stays
//! true: nothing that was written moves.
//!
//! # Layout in memory
//! ```text
//! numbers   0 0 2 3 3 3
//! bits      1 1 0 0 1 0 1 1 1          for each step up a 0, for each number a 1
//! samples   position of every 128th 1
//! ```
//! Number `i` is the position of the `i`-th one less `i` (Jacobson 1989, *Space-efficient static
//! trees and graphs*; there, as here, the list of the parents of a tree in level order). As many
//! ones as there are numbers, as many zeros as the last number says, and a quarter of a bit for
//! the samples.

use crate::bucket::prefetch;
use crate::grant::Grant;
use crate::packed::Packed;
use deltamark_core::Budget;
use std::sync::Arc;

/// Words of a chunk of bits.
const CHUNK: u64 = 512;
/// Ones from one sample to the next.
const SAMPLE: u64 = 128;

type Words = Box<[u64; CHUNK as usize]>;

/// Numbers that never decrease.
pub(crate) struct Unary {
    chunks: Vec<Words>,
    /// Positions of ones number 0, 128, 256 …
    samples: Packed,
    len: u64,
    last: u64,
    grant: Grant,
}

impl Unary {
    /// An empty list.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Unary { chunks: Vec::new(), samples: Packed::new(budget), len: 0, last: 0, grant: Grant::new(budget) }
    }

    /// The last number, or 0.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.grant.bytes() + self.samples.bytes()
    }

    /// Makes room for `more` numbers of at most `most`. `false` means that the budget has none.
    #[must_use]
    pub fn reserve(&mut self, more: u64, most: u64) -> bool {
        let end = self.len + more + most.max(self.last);
        while self.chunks.len() as u64 * CHUNK * 64 < end + 1 {
            if self.chunks.len() == self.chunks.capacity() {
                let more = self.chunks.capacity().max(4);
                if !self.grant.ask((more * size_of::<Words>()) as u64) {
                    return false;
                }
                self.chunks.reserve_exact(more);
            }
            if !self.grant.ask(CHUNK * 8) {
                return false;
            }
            self.chunks.push(Box::new([0; CHUNK as usize]));
        }
        self.samples.reserve(more / SAMPLE + 1, end)
    }

    /// Appends a number, not below the last, for which room was [made](Self::reserve).
    pub fn push(&mut self, value: u64) {
        assert!(value >= self.last, "numbers never decrease");
        let position = self.len + value;
        if self.len.is_multiple_of(SAMPLE) {
            self.samples.push(position);
        }
        let word = position / 64;
        self.chunks[(word / CHUNK) as usize][(word % CHUNK) as usize] |= 1 << (position % 64);
        self.len += 1;
        self.last = value;
    }

    #[inline(always)]
    fn word(&self, word: u64) -> u64 {
        self.chunks[(word / CHUNK) as usize][(word % CHUNK) as usize]
    }

    /// Number `index`.
    #[inline(always)]
    pub fn get(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let start = self.samples.get(index / SAMPLE);
        let mut left = (index % SAMPLE) as u32;
        let mut at = start / 64;
        let mut word = self.word(at) & u64::MAX << (start % 64);
        loop {
            let ones = word.count_ones();
            if left < ones {
                return at * 64 + u64::from(select(word, left)) - index;
            }
            left -= ones;
            at += 1;
            word = self.word(at);
        }
    }

    /// Asks for what number `index` is read from to be fetched: the sample has to be there.
    #[inline(always)]
    pub fn prefetch(&self, index: u64) {
        let word = self.samples.get(index / SAMPLE) / 64;
        prefetch(&self.chunks[(word / CHUNK) as usize][(word % CHUNK) as usize]);
    }
}

/// The position of one number `rank` of a word that has more ones than that.
#[inline(always)]
fn select(word: u64, rank: u32) -> u32 {
    let (mut word, mut rank, mut position) = (word, rank, 0);
    for half in [32, 16, 8] {
        let ones = (word & ((1 << half) - 1)).count_ones();
        let upper = u32::from(rank >= ones);
        rank -= ones * upper;
        position += half * upper;
        word >>= half * upper;
    }
    for _ in 0..rank {
        word &= word - 1;
    }
    position + word.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    #[test]
    fn numbers_come_back_whatever_the_steps() {
        for (seed, seldom, far) in [(1, 1, 2), (2, 3, 7), (3, 500, 9000), (4, 1, 1), (5, 1, 400)] {
            let budget = Arc::new(Budget::unlimited());
            let mut list = Unary::new(&budget);
            let mut model: Vec<u64> = Vec::new();
            let mut value = 0;
            for step in 0..30_000u64 {
                if mix(step ^ seed << 40) % seldom == 0 {
                    value += mix(!step) % far;
                }
                assert!(list.reserve(1, value));
                list.push(value);
                model.push(value);
            }
            assert_eq!((list.len, list.last()), (30_000, value));
            assert!((0..list.len).all(|index| list.get(index) == model[index as usize]), "{seed}");
            assert_eq!(list.bytes(), budget.used());
            assert!(list.bytes() * 8 <= (30_000 + value) * 101 / 100 + 30_000 * 3 / 8 + 70_000);
        }
    }

    #[test]
    fn ones_of_a_word_are_found() {
        for word in [1, u64::MAX, 1 << 63, 0x8000_0001_0010_0f01, mix(3)] {
            let ones = (0..64).filter(|bit| word >> bit & 1 == 1);
            for (rank, bit) in ones.enumerate() {
                assert_eq!(select(word, rank as u32), bit);
            }
        }
    }
}
