//! The numbers of a set: which bits are the key, and which others are stored.
//!
//! In: a number. Out: a key, which determines its home, and the rest; and back. Invariants: keys
//! are uniformly distributed; key and rest determine the number; the rest holds no bit that is
//! known to be 0; a number that may get longer keeps its key.
//!
//! ```text
//! code       … 0 l 0 l 0 l r l r l | lower 32 bits     here the left ids go further than the right
//! rest             l   l   l r l r l                   ones: every other bit is 0, and left out
//! key        mix(lower) + spread(upper)  modulo 2^32
//!
//! signature  [ top 32 bits | the others ]              spread as they are: they come from a hash
//! key, rest    key           rest
//! ```

use crate::tables::pair_code::{Reach, gather, spread};
use deltamark_core::hash::mix;
use std::fmt::Debug;

/// The most bits of a key.
const KEY_BITS: u32 = 32;

/// How far the numbers of a set go.
pub(crate) trait Numbers: Copy + Debug + Sync {
    /// How such numbers are cut.
    type Cut: NumberCut;

    fn cut(self) -> Self::Cut;

    /// What covers both.
    fn join(self, other: Self) -> Self;

    /// Whether it goes as far as another.
    fn covers(self, other: Self) -> bool;
}

/// How numbers are cut in two.
pub(crate) trait NumberCut: Copy + Debug + Sync {
    /// Bits of a key.
    fn key_bits(&self) -> u32;

    /// Bits of the rest.
    fn rest_bits(&self) -> u32;

    /// Key and rest of a number.
    fn split(&self, number: u64) -> (u64, u64);

    /// The number of a key and a rest.
    fn join(&self, key: u64, rest: u64) -> u64;

    /// Whether key and rest can say this number.
    fn can_say(&self, number: u64) -> bool;
}

/// Signatures of this many bits: numbers whose bits are all as good as random.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signatures {
    pub bits: u32,
}

impl Numbers for Signatures {
    type Cut = Signatures;

    fn cut(self) -> Signatures {
        self
    }

    fn join(self, other: Self) -> Self {
        Signatures { bits: self.bits.max(other.bits) }
    }

    #[inline]
    fn covers(self, other: Self) -> bool {
        self.bits >= other.bits
    }
}

impl NumberCut for Signatures {
    #[inline(always)]
    fn key_bits(&self) -> u32 {
        self.bits.min(KEY_BITS)
    }

    #[inline(always)]
    fn rest_bits(&self) -> u32 {
        self.bits.saturating_sub(KEY_BITS)
    }

    #[inline(always)]
    fn split(&self, number: u64) -> (u64, u64) {
        let rest = self.rest_bits();
        (number >> rest, number & ((1 << rest) - 1))
    }

    #[inline(always)]
    fn join(&self, key: u64, rest: u64) -> u64 {
        key << self.rest_bits() | rest
    }

    #[inline(always)]
    fn can_say(&self, number: u64) -> bool {
        number.checked_shr(self.bits).unwrap_or(0) == 0
    }
}

impl Numbers for Reach {
    type Cut = Codes;

    fn cut(self) -> Codes {
        Codes::new(self)
    }

    fn join(self, other: Self) -> Self {
        Reach::join(self, other)
    }

    #[inline]
    fn covers(self, other: Self) -> bool {
        Reach::covers(self, other)
    }
}

/// Codes of pairs. Of their upper bits some low ones are kept, and above them every other one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codes {
    low: u32,
    start: u32,
    bits: u32,
}

impl Codes {
    fn new(reach: Reach) -> Self {
        let (left, right) = (reach.left.saturating_sub(reach.skew), reach.right);
        // Up to here ids of both sides have bits; then those of one side alone, beginning with
        // its own place.
        let both = reach.skew + 2 * left.min(right);
        let single = both + u32::from(left < right);
        let below = KEY_BITS.saturating_sub(single).div_ceil(2);
        let count = left.abs_diff(right).saturating_sub(below);
        let low = both.saturating_sub(KEY_BITS);
        let start = if count == 0 { 63 } else { single + 2 * below - KEY_BITS };
        Codes { low, start, bits: low + count }
    }

    #[inline(always)]
    fn compress(self, upper: u64) -> u64 {
        upper & ((1 << self.low) - 1) | gather(upper >> self.start) << self.low
    }

    #[inline(always)]
    fn expand(self, kept: u64) -> u64 {
        kept & ((1 << self.low) - 1) | spread(kept >> self.low) << self.start
    }
}

impl NumberCut for Codes {
    #[inline(always)]
    fn key_bits(&self) -> u32 {
        KEY_BITS
    }

    #[inline(always)]
    fn rest_bits(&self) -> u32 {
        self.bits
    }

    #[inline(always)]
    fn split(&self, number: u64) -> (u64, u64) {
        let upper = number >> KEY_BITS;
        let key = mix32(number as u32).wrapping_add(mix(upper) as u32);
        (u64::from(key), self.compress(upper))
    }

    #[inline(always)]
    fn join(&self, key: u64, rest: u64) -> u64 {
        let upper = self.expand(rest);
        upper << KEY_BITS | u64::from(unmix((key as u32).wrapping_sub(mix(upper) as u32)))
    }

    #[inline(always)]
    fn can_say(&self, number: u64) -> bool {
        let upper = number >> KEY_BITS;
        let kept = self.compress(upper);
        kept >> self.bits == 0 && self.expand(kept) == upper
    }
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

/// The inverse.
#[inline(always)]
const fn unmix(word: u32) -> u32 {
    let mut x = word ^ (word >> 16);
    x = x.wrapping_mul(0x4302_1123);
    x ^= x >> 15 ^ x >> 30;
    x = x.wrapping_mul(0x1d69_e2a5);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_is_undone() {
        for step in 0..if cfg!(miri) { 200 } else { 5000 } {
            let word = mix(step) as u32;
            assert_eq!(unmix(mix32(word)), word);
        }
    }

    #[test]
    fn bits_known_to_be_0_are_left_out() {
        let bits = |skew, left, right| Codes::new(Reach { skew, left, right }).bits;
        assert_eq!(bits(0, 22, 22), 12);
        assert_eq!((bits(0, 22, 16), bits(0, 16, 22)), (6, 6));
        assert_eq!((bits(7, 16, 22), bits(7, 29, 16)), (10, 13));
        assert_eq!(bits(0, 8, 8), 0);
        let bits = |bits| (Signatures { bits }.key_bits(), Signatures { bits }.rest_bits());
        assert_eq!([bits(16), bits(32), bits(56), bits(64)], [(16, 0), (32, 0), (32, 24), (32, 32)]);
    }
}
