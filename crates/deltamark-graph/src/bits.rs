//! A sequence of numbers of few bits each.
//!
//! In: numbers and how many bits each takes. Out: bytes, and the numbers again by the place of
//! their first bit. What stays true: bit `i` is bit `i % 8` of byte `i / 8`; reading beyond the end
//! gives zeros and never panics, so that a damaged file cannot lead outside of it.

use deltamark_core::packed::bits_of;

/// The most bits a number may take: what one unaligned word holds wherever it begins.
pub const MOST_BITS: u32 = 56;

/// Appends numbers.
#[derive(Clone, Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    word: u64,
    /// Bits of `word` in use, fewer than 64.
    used: u32,
}

impl BitWriter {
    /// Appends the low `bits` bits of a number, at most [`MOST_BITS`].
    #[inline]
    pub fn push(&mut self, number: u64, bits: u32) {
        debug_assert!(bits <= MOST_BITS && bits_of(number) <= bits);
        self.word |= number << self.used;
        self.used += bits;
        if self.used >= 64 {
            self.bytes.extend_from_slice(&self.word.to_le_bytes());
            self.used -= 64;
            // What did not fit: the high bits of the number, of which some did.
            self.word = number >> (bits - self.used);
        }
    }

    /// How many bits were appended.
    pub fn bits(&self) -> u64 {
        8 * self.bytes.len() as u64 + u64::from(self.used)
    }

    /// Fills up the last byte and hands over all of them.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(&self.word.to_le_bytes()[..self.used.div_ceil(8) as usize]);
        self.bytes.clear();
        (self.word, self.used) = (0, 0);
    }
}

/// The number of `bits` bits that begins at bit `at`.
#[inline]
pub fn read(bytes: &[u8], at: u64, bits: u32) -> u64 {
    debug_assert!(bits <= MOST_BITS);
    let byte = (at / 8) as usize;
    let word = match bytes.get(byte..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => near_end(bytes, byte),
    };
    (word >> (at % 8)) & ((1 << bits) - 1)
}

#[cold]
fn near_end(bytes: &[u8], byte: usize) -> u64 {
    let mut chunk = [0; 8];
    let rest = bytes.get(byte..).unwrap_or_default();
    chunk[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(chunk)
}

/// Reads numbers one after the other.
#[derive(Clone, Copy, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> BitReader<'a> {
    /// Reads from the first bit on.
    pub fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, at: 0 }
    }

    /// The next number of this many bits.
    #[inline]
    pub fn next(&mut self, bits: u32) -> u64 {
        let number = read(self.bytes, self.at, bits);
        self.at += u64::from(bits);
        number
    }

    /// Where the next number begins.
    #[inline]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Skips this many bits.
    #[inline]
    pub fn skip(&mut self, bits: u64) {
        self.at += bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_widths_come_back() {
        let number = |index: u64, bits: u32| deltamark_core::hash::mix(index) & ((1 << bits) - 1);
        let widths = || (0..2000).map(|index| index % (MOST_BITS + 1));
        let mut writer = BitWriter::default();
        widths().enumerate().for_each(|(index, bits)| writer.push(number(index as u64, bits), bits));
        let mut bytes = Vec::new();
        writer.finish(&mut bytes);
        let mut reader = BitReader::new(&bytes);
        for (index, bits) in widths().enumerate() {
            assert_eq!(reader.next(bits), number(index as u64, bits), "number {index} of {bits} bits");
        }
        assert_eq!(reader.at().div_ceil(8), bytes.len() as u64);
    }

    #[test]
    fn beyond_the_end_there_are_zeros() {
        assert_eq!(read(&[0xff], 4, 30), 0xf);
        assert_eq!(read(&[0xff], 8, 30), 0);
        assert_eq!(read(&[], 1 << 60, MOST_BITS), 0);
    }
}
