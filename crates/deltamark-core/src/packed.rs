//! Integers of one width, packed.
//!
//! In: integers below a power of two. Out: integer `i`. Invariant: integer `i` is in bits `i·w` to
//! `i·w + w` of the words, and one word more than needed follows, so every integer is read from two
//! adjacent words. Integers of no bits take no memory.

/// The number of bits of an integer; none for 0.
#[inline(always)]
pub fn bits_of(number: impl Into<u64>) -> u32 {
    64 - number.into().leading_zeros()
}

/// Integers of a fixed width.
#[derive(Clone, Debug)]
pub struct Packed {
    words: Box<[u64]>,
    width: u32,
}

impl Packed {
    /// `len` zeros, each of `width` bits, 0 to 64. It takes [`Packed::bytes`] of memory.
    ///
    /// # Panics
    /// When that many are more than memory can hold.
    pub fn new(len: usize, width: u32) -> Self {
        let bytes = Self::bytes(len as u64, width).and_then(|bytes| usize::try_from(bytes).ok());
        Packed { words: vec![0; bytes.expect("few enough for memory") / 8].into(), width }
    }

    /// The bytes of `len` integers of `width` bits; `None` if they are too many to count.
    pub fn bytes(len: u64, width: u32) -> Option<u64> {
        let bits = len.checked_mul(width.into())?;
        Some(if bits == 0 { 0 } else { (bits.div_ceil(64) + 1) * 8 })
    }

    /// The bytes it takes.
    pub fn held_bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }

    /// The bits of each.
    #[inline]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The word in which integer `index` begins, for those who fetch it ahead.
    #[inline(always)]
    pub fn word(&self, index: usize) -> Option<&u64> {
        self.words.get(index * self.width as usize / 64)
    }

    /// Integer `index`.
    #[inline(always)]
    pub fn get(&self, index: usize) -> u64 {
        let bit = index * self.width as usize;
        let (word, shift) = (bit / 64, bit % 64);
        let Some(&[low, high]) = self.words.get(word..word + 2).and_then(|pair| pair.first_chunk()) else {
            // Integers of no bits, and nothing else, have no words.
            debug_assert_eq!(self.width, 0);
            return 0;
        };
        (low >> shift | high << 1 << (63 - shift)) & self.mask()
    }

    /// Changes integer `index` to one that has no more bits than the width.
    #[inline]
    pub fn set(&mut self, index: usize, number: u64) {
        debug_assert!(bits_of(number) <= self.width);
        if self.width == 0 {
            return;
        }
        let bit = index * self.width as usize;
        let (word, shift) = (bit / 64, bit % 64);
        let mask = self.mask();
        self.words[word] = self.words[word] & !(mask << shift) | number << shift;
        let (mask, number) = (mask >> 1 >> (63 - shift), number >> 1 >> (63 - shift));
        self.words[word + 1] = self.words[word + 1] & !mask | number;
    }

    #[inline(always)]
    fn mask(&self) -> u64 {
        1u64.checked_shl(self.width).unwrap_or(0).wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn integers_of_all_widths_stay_what_they_are() {
        for width in 0..=64 {
            let mut row = Packed::new(300, width);
            let number = |index: usize| mix(index as u64) & row_mask(width);
            (0..300).rev().for_each(|index| row.set(index, !number(index) & row_mask(width)));
            (0..300).for_each(|index| row.set(index, number(index)));
            assert!((0..300).all(|index| row.get(index) == number(index)), "{width} bits");
            assert_eq!(Some(row.held_bytes()), Packed::bytes(300, width));
        }
        assert_eq!(Packed::bytes(u64::MAX, 3), None);
    }

    fn row_mask(width: u32) -> u64 {
        (0..width).fold(0, |mask, bit| mask | 1 << bit)
    }

    #[test]
    fn bits_are_counted() {
        assert_eq!([0, 1, 2, 255, 256, u64::MAX].map(|number: u64| bits_of(number)), [0, 1, 2, 8, 9, 64]);
    }
}
