//! The index: the position of each block.
//!
//! In: positions of blocks, ascending. Out: bytes, and the positions again. What stays true: an entry takes as
//! many bytes as the position of the last block needs, at most five bits a state for files below a gigabyte.
//!
//! ```text
//! [ position of block 0 ] [ position of block 1 ] … [ end of the last ] [ crc: 4 ]     relative to the first block
//! ```

use crate::meta::{FileError, damaged};

/// The size of an entry in bytes, if blocks take `length` bytes in all.
fn width(length: u64) -> usize {
    (deltamark_core::packed::bits_of(length).div_ceil(8) as usize).max(1)
}

/// The index of blocks that begin at these positions; the first at `start`, the last ends at `end`.
pub(crate) fn encode(places: &[u64], start: u64, end: u64) -> Vec<u8> {
    let width = width(end - start);
    let mut out = Vec::with_capacity((places.len() + 1) * width + 4);
    for place in places.iter().chain([&end]) {
        out.extend_from_slice(&(place - start).to_le_bytes()[..width]);
    }
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

/// The position of an index and how it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index {
    /// Where blocks begin.
    start: usize,
    /// Where the index begins, which is where blocks end.
    at: usize,
    width: usize,
}

impl Index {
    /// The index at `at` of `blocks` blocks, the first of which begins at `start`. Also returns where it ends.
    pub fn new(bytes: &[u8], start: usize, at: u64, blocks: u64) -> Result<(Self, usize), FileError> {
        let wrong = || damaged("its index is not where it should be");
        let at = usize::try_from(at).ok().filter(|&at| at >= start && at <= bytes.len()).ok_or_else(wrong)?;
        let width = width((at - start) as u64);
        let length = usize::try_from(blocks).ok().and_then(|blocks| (blocks.checked_add(1)?).checked_mul(width));
        let end = length.and_then(|length| at.checked_add(length)?.checked_add(4)).ok_or_else(wrong)?;
        let (body, sum) = bytes.get(at..end).ok_or_else(wrong)?.split_at(end - at - 4);
        if crc32fast::hash(body).to_le_bytes() != *sum {
            return Err(damaged("the checksum of its index is wrong"));
        }
        Ok((Index { start, at, width }, end))
    }

    #[inline]
    fn entry(&self, bytes: &[u8], number: u64) -> usize {
        let place = self.at + number as usize * self.width;
        let word = crate::bits::read(&bytes[place..], 0, 8 * self.width as u32);
        self.start + word as usize
    }

    /// A block, with the checksum after it.
    #[inline]
    pub fn block<'a>(&self, bytes: &'a [u8], number: u64) -> Result<(&'a [u8], [u8; 4]), FileError> {
        let (start, end) = (self.entry(bytes, number), self.entry(bytes, number + 1));
        let block = bytes.get(start..end).filter(|_| end <= self.at).and_then(|block| block.split_last_chunk::<4>());
        let (block, sum) = block.ok_or_else(|| damaged("its index leads outside of it"))?;
        Ok((block, *sum))
    }
}
