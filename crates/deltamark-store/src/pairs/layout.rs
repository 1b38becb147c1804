//! What follows from the size of a set of pairs: where a number belongs, and what is kept of it.
//!
//! In: how many lines there are, and how far the ids of both sides go. Out: line and entry of a
//! number, and the number of a line and an entry. What stays true: the line depends on the number
//! and on how many lines there are, and on nothing else; an entry holds no bit that is known to
//! be 0.
//!
//! ```text
//! number   … 0 l 0 l 0 l r l r l | lower 32 bits      here the left ids go further than the right
//! kept           l   l   l r l r l                    ones: every other bit is 0, and left out
//! ```

use super::line::{HEAD, LINE_BYTES, MOST_SLOTS};
use crate::code::{Reach, gather, spread};
use deltamark_core::hash::mix;

/// Bits of a key.
pub(super) const KEY_BITS: u32 = 32;

/// What follows from the number of lines and the reach of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    m: u64,
    e: u32,
    /// What numbers there may be.
    pub reach: Reach,
    upper: Upper,
    remainder_bits: u32,
    /// Entries of a line.
    pub slots: u32,
    /// Bits of an entry beyond its tag.
    pub more_bits: u32,
}

/// Which of the upper bits of a number are kept: so many low ones, and behind them every other
/// one from some bit on.
#[derive(Clone, Copy, Debug)]
struct Upper {
    low: u32,
    start: u32,
    bits: u32,
}

impl Upper {
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
        Upper { low, start, bits: low + count }
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

impl Shape {
    pub fn new(m: u64, e: u32, reach: Reach) -> Self {
        let upper = Upper::new(reach);
        let remainder_bits = (KEY_BITS - e).saturating_sub(3);
        let more_bits = (remainder_bits + upper.bits).saturating_sub(8);
        let slots = ((8 * LINE_BYTES as u32 - HEAD) / (8 + more_bits)).min(MOST_SLOTS);
        Shape { m, e, reach, upper, remainder_bits, slots, more_bits }
    }

    /// The first size.
    pub fn first(reach: Reach) -> Self {
        Shape::new(8, 2, reach)
    }

    /// The same size for numbers that go further.
    pub fn reaching(&self, reach: Reach) -> Self {
        Shape::new(self.m, self.e, self.reach.join(reach))
    }

    /// The first size from this one on that has room for so many entries, or the largest there is.
    pub fn with_room(mut self, entries: u64) -> Self {
        while self.room(false) < entries
            && let Some(next) = self.next()
        {
            self = next;
        }
        self
    }

    pub fn lines(&self) -> u64 {
        self.m << self.e
    }

    /// The bytes of the lines, and of one behind them for what the last does not hold.
    pub fn bytes(&self) -> u64 {
        (self.lines() + 1) * LINE_BYTES
    }

    /// How many entries are let in before it grows: so many that about one in a hundred has to
    /// go to the stash; when the budget does not let it grow, nearly all slots are filled.
    pub fn room(&self, last: bool) -> u64 {
        let slots = f64::from(self.slots);
        let fill = if last { slots * 0.96 } else { slots - 0.6 * slots.sqrt() };
        (self.lines() as f64 * fill) as u64
    }

    /// The next larger size, if keys have bits for it.
    fn next(&self) -> Option<Shape> {
        let (m, e) = if self.m == 14 { (8, self.e + 1) } else { (self.m + 2, self.e) };
        (e + 3 <= KEY_BITS).then(|| Shape::new(m, e, self.reach))
    }

    /// Whether an entry can say this number.
    #[inline(always)]
    pub fn can_hold(&self, number: u64) -> bool {
        let upper = number >> KEY_BITS;
        let kept = self.upper.compress(upper);
        kept >> self.upper.bits == 0 && self.upper.expand(kept) == upper
    }

    /// Line and entry of a number.
    #[inline(always)]
    pub fn split(&self, number: u64) -> (u64, u64) {
        let upper = number >> KEY_BITS;
        let product = u64::from(key(number as u32, upper)) * self.m;
        let shift = KEY_BITS - self.e;
        let remainder = (product & ((1 << shift) - 1)) >> 3;
        (product >> shift, remainder | self.upper.compress(upper) << self.remainder_bits)
    }

    /// The number of this line and entry.
    #[inline(always)]
    pub fn join(&self, home: u64, entry: u64) -> u64 {
        let shift = KEY_BITS - self.e;
        let upper = self.upper.expand(entry >> self.remainder_bits);
        let remainder = entry & ((1 << self.remainder_bits) - 1);
        let least = home << shift | remainder << 3;
        // The only key whose product lies in the eight numbers left open.
        let key = least.div_ceil(self.m) as u32;
        upper << KEY_BITS | u64::from(unmix(key.wrapping_sub(mix(upper) as u32)))
    }
}

/// The key of a number: mixed, so that homes are used alike.
#[inline(always)]
fn key(lower: u32, upper: u64) -> u32 {
    mix32(lower).wrapping_add(mix(upper) as u32)
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

/// The way back.
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
    use crate::code::encode;

    #[test]
    fn mixing_is_undone() {
        for step in 0..if cfg!(miri) { 200 } else { 5000 } {
            let word = mix(step) as u32;
            assert_eq!(unmix(mix32(word)), word);
        }
    }

    #[test]
    fn lines_and_entries_say_which_number_it_is() {
        let reaches =
            [(0, 10, 10), (0, 31, 31), (0, 30, 8), (0, 8, 30), (7, 16, 22), (7, 30, 20), (5, 31, 3), (16, 9, 1)];
        for (skew, left, right) in reaches {
            let reach = Reach { skew, left, right };
            for (m, e) in [(8, 2), (10, 5), (14, 20), (12, 29)] {
                let shape = Shape::new(m, e, reach);
                for step in 0..if cfg!(miri) { 5 } else { 1000u64 } {
                    let id = |bits: u32, salt: u64| (mix(step ^ salt) >> (64 - bits)) as u32;
                    let number = encode(skew, id(left, 1 << 40), id(right, 1 << 41));
                    let (home, entry) = shape.split(number);
                    assert!(home < shape.lines() && shape.can_hold(number));
                    assert_eq!(shape.join(home, entry), number, "{reach:?} {shape:?}");
                    assert_eq!(entry >> (8 + shape.more_bits), 0, "{reach:?} {shape:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_reach_are_told() {
        let shape = Shape::first(Reach { skew: 0, left: 24, right: 18 });
        for (left, right, held) in [(23, 17, true), (24, 0, false), (0, 18, false), (30, 30, false), (16, 16, true)] {
            assert_eq!(shape.can_hold(encode(0, 1 << left, 1 << right)), held, "{left} {right}");
        }
    }

    #[test]
    fn bits_known_to_be_0_are_left_out() {
        let bits = |skew, left, right| Upper::new(Reach { skew, left, right }).bits;
        assert_eq!(bits(0, 22, 22), 12);
        assert_eq!((bits(0, 22, 16), bits(0, 16, 22)), (6, 6));
        assert_eq!((bits(7, 16, 22), bits(7, 29, 16)), (10, 13));
        assert_eq!(bits(0, 8, 8), 0);
    }
}
