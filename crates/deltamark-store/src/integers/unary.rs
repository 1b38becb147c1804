//! A non-decreasing sequence in about two bits per number.
//!
//! In: numbers, appended, none below the previous one. Out: number `i`. Invariant: written data
//! never moves.
//!
//! # Layout in memory
//! ```text
//! numbers   0 0 2 3 3 3
//! bits      1 1 0 0 1 0 1 1 1          for each step up a 0, for each number a 1
//! samples   position of every 64th 1
//! ```
//! Number `i` is the position of the `i`-th one (select) minus `i` (Jacobson 1989, *Space-efficient
//! static trees and graphs*; there, as here, the parents of a tree in level order). There is a one
//! per number, a zero per unit of the last number, and a third of a bit for the samples.

use crate::integers::packed::Packed;
use crate::tables::bucket::prefetch;
use deltamark_core::{Budget, Grant};
use std::sync::Arc;

/// Words of a chunk of bits.
const CHUNK: u64 = 512;
/// Ones from one sample to the next.
const SAMPLE: u64 = 64;

type UnaryChunk = Box<[u64; CHUNK as usize]>;

/// Numbers that never decrease.
pub(crate) struct Unary {
    chunks: Vec<UnaryChunk>,
    /// Positions of ones number 0, 64, 128 …
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
                if !self.grant.ask((more * size_of::<UnaryChunk>()) as u64) {
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

/// The position of one number `rank` of a word that has more ones than that: first the byte, by the
/// sums of ones up to each byte, all compared at once; then within the byte, by a table (Vigna,
/// *Broadword implementation of rank/select queries*, 2008).
#[inline(always)]
fn select(word: u64, rank: u32) -> u32 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let sums = ((fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(ONES);
    // Of each byte the top bit: whether the ones up to its end are no more than `rank`.
    let before = (((u64::from(rank) * ONES) | TOPS) - sums) & TOPS;
    let place = before.count_ones() * 8;
    let within = u64::from(rank) - (sums << 8 >> place & 0xff);
    place + u32::from(IN_BYTE[(within as usize & 7) << 8 | (word >> place & 0xff) as usize])
}

/// For a rank and a byte the position of the one of that rank.
static IN_BYTE: [u8; 8 * 256] = {
    let mut table = [0; 8 * 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut rank, mut bit) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[rank << 8 | byte] = bit as u8;
                rank += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    #[test]
    fn numbers_come_back_whatever_the_steps() {
        let count: u64 = if cfg!(miri) { 600 } else { 30_000 };
        for (seed, seldom, far) in [(1, 1, 2), (2, 3, 7), (3, 500, 9000), (4, 1, 1), (5, 1, 400)] {
            let budget = Arc::new(Budget::unlimited());
            let mut list = Unary::new(&budget);
            let mut model: Vec<u64> = Vec::new();
            let mut value = 0;
            for step in 0..count {
                if mix(step ^ seed << 40).is_multiple_of(seldom) {
                    value += mix(!step) % far;
                }
                assert!(list.reserve(1, value));
                list.push(value);
                model.push(value);
            }
            assert_eq!((list.len, list.last()), (count, value));
            assert!((0..list.len).all(|index| list.get(index) == model[index as usize]), "{seed}");
            assert_eq!(list.bytes(), budget.used());
            assert!(list.bytes() * 8 <= (count + value) * 101 / 100 + count / 2 + 70_000);
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
