//! The layout of a set of a given size: the line of a number, and its stored bits.
//!
//! In: the number of lines, and the range of numbers. Out: line and entry of a number, and the
//! number of a line and an entry. Invariants: the line depends only on the number and on the number
//! of lines; an entry holds no bit that is known to be 0.

use super::numbers::{NumberCut, Numbers};
use crate::tables::quotient::shape::QuotientShape;
use std::ops::Deref;

/// The least `m` is this power of two, whatever the length of a line.
const LEAST: u32 = 3;

/// What follows from the number of lines, of `W` words each, and the reach of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairsShape<R: Numbers, const W: usize> {
    shape: QuotientShape,
    /// What numbers there may be.
    pub reach: R,
    cut: R::Cut,
}

impl<R: Numbers, const W: usize> Deref for PairsShape<R, W> {
    type Target = QuotientShape;

    #[inline(always)]
    fn deref(&self) -> &QuotientShape {
        &self.shape
    }
}

impl<R: Numbers, const W: usize> PairsShape<R, W> {
    pub fn new(m: u64, e: u32, reach: R) -> Self {
        let cut = reach.cut();
        let shape = QuotientShape::new(8 * W as u32, LEAST, cut.key_bits(), cut.rest_bits(), m, e);
        PairsShape { shape, reach, cut }
    }

    /// The first size.
    pub fn first(reach: R) -> Self {
        PairsShape::new(8, 2, reach)
    }

    /// The same size for numbers that go further.
    pub fn reaching(&self, reach: R) -> Self {
        PairsShape::new(self.m, self.e, self.reach.join(reach))
    }

    /// The first size from this one on that has room for this many entries, or the largest there is.
    pub fn with_room(self, entries: u64) -> Self {
        PairsShape { shape: self.shape.with_room(entries), ..self }
    }

    /// Whether an entry can say this number.
    #[inline(always)]
    pub fn can_hold(&self, number: u64) -> bool {
        self.cut.can_say(number)
    }

    /// Line and entry of a number.
    #[inline(always)]
    pub fn split(&self, number: u64) -> (u64, u64) {
        let (key, rest) = self.cut.split(number);
        let (home, remainder) = self.shape.split(key);
        (home, self.shape.value(remainder, rest))
    }

    /// The number of this line and entry.
    #[inline(always)]
    pub fn join(&self, home: u64, entry: u64) -> u64 {
        let key = self.shape.join(home, entry & self.remainder_mask);
        self.cut.join(key, self.payload(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Signatures;
    use super::*;
    use crate::tables::pair_code::{Reach, encode};
    use deltamark_core::hash::mix;

    fn check<R: Numbers, const W: usize>(shape: PairsShape<R, W>, number: u64) {
        let (home, entry) = shape.split(number);
        assert!(home < shape.lines() && shape.can_hold(number));
        assert_eq!(shape.join(home, entry), number, "{shape:?}");
        assert_eq!(entry >> (8 + shape.more_bits), 0, "{shape:?}");
    }

    #[test]
    fn lines_and_entries_say_which_pair_it_is() {
        let reaches =
            [(0, 10, 10), (0, 31, 31), (0, 30, 8), (0, 8, 30), (7, 16, 22), (7, 30, 20), (5, 31, 3), (16, 9, 1)];
        for (skew, left, right) in reaches {
            let reach = Reach { skew, left, right };
            for (m, e) in [(8, 2), (10, 5), (14, 20), (12, 29)] {
                for step in 0..if cfg!(miri) { 5 } else { 1000u64 } {
                    let id = |bits: u32, salt: u64| (mix(step ^ salt) >> (64 - bits)) as u32;
                    let number = encode(skew, id(left, 1 << 40), id(right, 1 << 41));
                    check(PairsShape::<_, 16>::new(m, e, reach), number);
                }
            }
        }
    }

    #[test]
    fn lines_and_entries_say_which_signature_it_is() {
        for bits in [16, 17, 31, 32, 33, 40, 56, 61, 62, 63, 64] {
            for (m, e) in [(8, 2), (10, 5), (12, 13), (14, bits.min(32) - LEAST)] {
                let numbers = (0..if cfg!(miri) { 5 } else { 1000u64 }).map(|step| mix(step) >> (64 - bits));
                for number in numbers.chain([0, 1, u64::MAX >> (64 - bits)]) {
                    check(PairsShape::<_, 16>::new(m, e, Signatures { bits }), number);
                    check(PairsShape::<_, 8>::new(m, e, Signatures { bits }), number);
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_reach_are_told() {
        let shape = PairsShape::<_, 16>::first(Reach { skew: 0, left: 24, right: 18 });
        for (left, right, held) in [(23, 17, true), (24, 0, false), (0, 18, false), (30, 30, false), (16, 16, true)] {
            assert_eq!(shape.can_hold(encode(0, 1 << left, 1 << right)), held, "{left} {right}");
        }
        for (bits, held) in [(16, false), (62, false), (63, true), (64, true)] {
            assert_eq!(PairsShape::<_, 16>::first(Signatures { bits }).can_hold(1 << 62), held, "{bits}");
        }
    }
}
