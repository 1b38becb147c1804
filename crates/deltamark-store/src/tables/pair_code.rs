//! Pair codes that are stable as both sides grow, and bit extraction.
//!
//! In: two ids. Out: one number, and back. Invariant: the number of a pair depends on the pair
//! alone; as long as ids on both sides stay below a power of two (the left ones below one that is
//! larger by the skew), so do the numbers below their product.
//!
//! ```text
//! left   …cba|zyx      the lowest `skew` bits of the left id stay together,
//! right  …CBA          the others take turns with those of the right one
//! code   …CcBbAazyx
//! ```
//! Interleaving is due to Morton (1966). Row-major order would require the row length in advance.

use deltamark_core::packed::bits_of;

/// Moves bit i to bit 2i.
#[inline(always)]
pub(crate) fn spread(word: u64) -> u64 {
    let mut word = word & 0xffff_ffff;
    word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    word = (word | word << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    word = (word | word << 2) & 0x3333_3333_3333_3333;
    (word | word << 1) & 0x5555_5555_5555_5555
}

/// Moves bit 2i to bit i.
#[inline(always)]
pub(crate) fn gather(word: u64) -> u64 {
    let mut word = word & 0x5555_5555_5555_5555;
    word = (word | word >> 1) & 0x3333_3333_3333_3333;
    word = (word | word >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    word = (word | word >> 4) & 0x00ff_00ff_00ff_00ff;
    word = (word | word >> 8) & 0x0000_ffff_0000_ffff;
    (word | word >> 16) & 0xffff_ffff
}

/// The number of a pair that [`fits`].
#[inline(always)]
pub(crate) fn encode(skew: u32, left: u32, right: u32) -> u64 {
    let (low, high) = (u64::from(left) & ((1 << skew) - 1), u64::from(left) >> skew);
    (spread(high) | spread(u64::from(right)) << 1) << skew | low
}

/// The pair of a number.
#[inline(always)]
pub(crate) fn decode(skew: u32, code: u64) -> (u32, u32) {
    let high = code >> skew;
    let low = code & ((1 << skew) - 1);
    ((gather(high) << skew | low) as u32, gather(high >> 1) as u32)
}

/// Whether pairs of ids below these have numbers, below 2^62.
pub(crate) fn fits(skew: u32, left: u64, right: u64) -> bool {
    let most = 62 - skew;
    left < 1 << 31 && left >> skew < 1 << most.div_ceil(2).min(31) && right < 1 << (most / 2).min(31)
}

/// How far the ids of both sides go, and so which bits of a code may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub skew: u32,
    /// Bits of the ids on the left, and on the right.
    pub left: u32,
    pub right: u32,
}

impl Reach {
    /// That of ids below these.
    pub fn new(skew: u32, left: u64, right: u64) -> Self {
        let bits = |count: u64| bits_of(count.saturating_sub(1)).min(32);
        Reach { skew, left: bits(left), right: bits(right) }
    }

    /// Codes are below this.
    pub fn limit(self) -> u64 {
        let most = |bits: u32| ((1u64 << bits) - 1) as u32;
        encode(self.skew, most(self.left), most(self.right)) + 1
    }

    /// One that covers both.
    pub fn join(self, other: Reach) -> Reach {
        Reach { skew: self.skew, left: self.left.max(other.left), right: self.right.max(other.right) }
    }

    /// Whether it goes as far as another.
    #[inline]
    pub fn covers(self, other: Reach) -> bool {
        self.left >= other.left && self.right >= other.right
    }
}

/// A way to pick bits out of a word.
pub(crate) trait Pick: Copy {
    /// The bits of `word` that `mask` names, side by side.
    fn pick(self, word: u64, mask: u64) -> u64;

    /// The other way: the low bits of `bits` to where `mask` says.
    fn place(self, bits: u64, mask: u64) -> u64;
}

/// Bit by bit.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Pick for Portable {
    #[inline(always)]
    fn pick(self, word: u64, mask: u64) -> u64 {
        let (mut rest, mut picked, mut at) = (mask, 0, 0);
        while rest != 0 {
            // A run of ones at a time: fields of a state are adjacent.
            let start = rest.trailing_zeros();
            let length = (rest >> start).trailing_ones();
            let ones = u64::MAX >> (64 - length);
            picked |= (word >> start & ones) << at;
            at += length;
            rest &= !(ones << start);
        }
        picked
    }

    #[inline(always)]
    fn place(self, bits: u64, mask: u64) -> u64 {
        let (mut rest, mut placed, mut at) = (mask, 0, 0);
        while rest != 0 {
            let start = rest.trailing_zeros();
            let length = (rest >> start).trailing_ones();
            let ones = u64::MAX >> (64 - length);
            placed |= (bits >> at & ones) << start;
            at += length;
            rest &= !(ones << start);
        }
        placed
    }
}

/// With the instructions made for it. Only made where the processor has them.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[derive(Clone, Copy)]
pub(crate) struct Bmi2(());

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Bmi2 {
    /// Whether the processor has the instructions.
    pub fn detect() -> Option<Bmi2> {
        is_x86_feature_detected!("bmi2").then_some(Bmi2(()))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Pick for Bmi2 {
    #[inline(always)]
    fn pick(self, word: u64, mask: u64) -> u64 {
        // SAFETY: a `Bmi2` exists only where the processor has BMI2.
        unsafe { std::arch::x86_64::_pext_u64(word, mask) }
    }

    #[inline(always)]
    fn place(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: as above.
        unsafe { std::arch::x86_64::_pdep_u64(bits, mask) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    #[test]
    fn pairs_come_back_and_numbers_stay_below_the_product() {
        for skew in [0, 1, 5, 16] {
            for step in 0..if cfg!(miri) { 30 } else { 1000 } {
                let (left, right) =
                    (mix(step) as u32 >> 1, (mix(step + 9999) as u32 >> 1) & ((1 << ((62 - skew) / 2).min(31)) - 1));
                if !fits(skew, u64::from(left), u64::from(right)) {
                    continue;
                }
                let code = encode(skew, left, right);
                assert_eq!(decode(skew, code), (left, right), "{skew}");
                assert!(code < 1 << 62);
            }
            for bits in 1..12 {
                let code = encode(skew, (1 << (bits + skew)) - 1, (1 << bits) - 1);
                assert_eq!(code, (1 << (2 * bits + skew)) - 1);
            }
        }
    }

    #[test]
    fn all_ways_of_picking_agree() {
        for step in 0..if cfg!(miri) { 50 } else { 1000 } {
            let (word, mask) = (mix(step), mix(step + 77) & mix(step + 7777));
            let picked = Portable.pick(word, mask);
            assert_eq!(Portable.place(picked, mask), word & mask);
            assert_eq!(picked.checked_shr(mask.count_ones()).unwrap_or(0), 0);
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if let Some(bmi2) = Bmi2::detect() {
                assert_eq!(bmi2.pick(word, mask), picked);
                assert_eq!(bmi2.place(picked, mask), word & mask);
            }
        }
        assert_eq!(Portable.pick(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(Portable.pick(5, 0), 0);
    }
}
