//! The layout of a set of a given size: the line of a number, and its stored bits.
//!
//! In: the number of lines, and the range of numbers. Out: line and entry of a number, and the
//! number of a line and an entry. Invariants: the line depends only on the number and on the number
//! of lines; an entry holds no bit that is known to be 0.

use super::line::{HEAD, MOST_SLOTS};
use super::numbers::{Cut, Numbers};

/// Bits of a product that are left out: keys of one home differ there by `m` at least.
const LEFT_OUT: u32 = 3;

/// What follows from the number of lines, of `W` words each, and the reach of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<R: Numbers, const W: usize> {
    m: u64,
    e: u32,
    /// A 64th power of two divided by `m`, rounded up.
    reciprocal: u64,
    /// What numbers there may be.
    pub reach: R,
    cut: R::Cut,
    remainder_bits: u32,
    /// Entries of a line.
    pub slots: u32,
    /// Bits of an entry beyond its tag.
    pub more_bits: u32,
}

impl<R: Numbers, const W: usize> Shape<R, W> {
    const LINE_BYTES: u64 = 8 * W as u64;

    pub fn new(m: u64, e: u32, reach: R) -> Self {
        let cut = reach.cut();
        let remainder_bits = (cut.key_bits() - e).saturating_sub(LEFT_OUT);
        let more_bits = (remainder_bits + cut.rest_bits()).saturating_sub(8);
        let slots = ((8 * Self::LINE_BYTES as u32 - HEAD) / (8 + more_bits)).min(MOST_SLOTS);
        let reciprocal = (1u128 << 64).div_ceil(u128::from(m)) as u64;
        Shape { m, e, reciprocal, reach, cut, remainder_bits, slots, more_bits }
    }

    /// The first size.
    pub fn first(reach: R) -> Self {
        Shape::new(8, 2, reach)
    }

    /// The same size for numbers that go further.
    pub fn reaching(&self, reach: R) -> Self {
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
        (self.lines() + 1) * Self::LINE_BYTES
    }

    /// How many entries are let in before it grows: so many that about one in a hundred has to
    /// go to the stash; when the budget does not let it grow, nearly all slots are filled.
    pub fn room(&self, last: bool) -> u64 {
        let slots = f64::from(self.slots);
        let fill = if last { slots * 0.96 } else { slots - 0.6 * slots.sqrt() };
        (self.lines() as f64 * fill) as u64
    }

    /// The next larger size, if keys have bits for it.
    fn next(&self) -> Option<Self> {
        let (m, e) = if self.m == 14 { (8, self.e + 1) } else { (self.m + 2, self.e) };
        (e + LEFT_OUT <= self.cut.key_bits()).then(|| Shape::new(m, e, self.reach))
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
        let product = key * self.m;
        let shift = self.cut.key_bits() - self.e;
        let remainder = (product & ((1 << shift) - 1)) >> LEFT_OUT;
        (product >> shift, remainder | rest << self.remainder_bits)
    }

    /// The number of this line and entry.
    #[inline(always)]
    pub fn join(&self, home: u64, entry: u64) -> u64 {
        let shift = self.cut.key_bits() - self.e;
        let (remainder, rest) = (entry & ((1 << self.remainder_bits) - 1), entry >> self.remainder_bits);
        let least = home << shift | remainder << LEFT_OUT;
        // The only key whose product lies in the eight numbers left open. The reciprocal divides
        // exactly: its error times the number, which has 36 bits, stays below one part in `m`.
        let key = (u128::from(least + self.m - 1) * u128::from(self.reciprocal)) >> 64;
        self.cut.join(key as u64, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Signatures;
    use super::*;
    use crate::tables::pair_code::{Reach, encode};
    use deltamark_core::hash::mix;

    fn check<R: Numbers, const W: usize>(shape: Shape<R, W>, number: u64) {
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
                    check(Shape::<_, 16>::new(m, e, reach), number);
                }
            }
        }
    }

    #[test]
    fn lines_and_entries_say_which_signature_it_is() {
        for bits in [16, 17, 31, 32, 33, 40, 56, 61, 62, 63, 64] {
            for (m, e) in [(8, 2), (10, 5), (12, 13), (14, bits.min(32) - LEFT_OUT)] {
                let numbers = (0..if cfg!(miri) { 5 } else { 1000u64 }).map(|step| mix(step) >> (64 - bits));
                for number in numbers.chain([0, 1, u64::MAX >> (64 - bits)]) {
                    check(Shape::<_, 16>::new(m, e, Signatures { bits }), number);
                    check(Shape::<_, 8>::new(m, e, Signatures { bits }), number);
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_reach_are_told() {
        let shape = Shape::<_, 16>::first(Reach { skew: 0, left: 24, right: 18 });
        for (left, right, held) in [(23, 17, true), (24, 0, false), (0, 18, false), (30, 30, false), (16, 16, true)] {
            assert_eq!(shape.can_hold(encode(0, 1 << left, 1 << right)), held, "{left} {right}");
        }
        for (bits, held) in [(16, false), (62, false), (63, true), (64, true)] {
            assert_eq!(Shape::<_, 16>::first(Signatures { bits }).can_hold(1 << 62), held, "{bits}");
        }
    }
}
