//! A growing bit string that never moves.
//!
//! In: numbers of up to 32 bits, appended. Out: the same, by the position of their first bit.
//! Invariants: written bits never move, so growing copies nothing; every byte was granted by the
//! budget before it was written.
//!
//! # Layout in memory
//! ```text
//! chunk 0 [ 32 MiB ]  chunk 1 [ 32 MiB ]  …      bit i is bit i%8 of byte i/8
//! ```
//! A number may cross the end of a chunk. Pages are resident once they are written.

use crate::memory::region::Region;
use deltamark_core::Budget;

/// Bytes in a chunk, a power of two.
#[cfg(not(miri))]
const CHUNK: u64 = 4 << 20;
#[cfg(miri)]
const CHUNK: u64 = 1 << 10;
/// Beyond this size memory is asked for in steps of it.
const STEP: u64 = 256 << 10;
/// Bytes that reading or writing a number touches at most, beyond its first.
const BEYOND: u64 = 8;

/// A string of bits.
#[derive(Default)]
pub(crate) struct Bits {
    chunks: Vec<Region>,
    /// Bits in use.
    len: u64,
    /// Bytes granted, counted from the first bit on.
    granted: u64,
    /// Bytes of them, at the front, that were given back.
    released: u64,
}

impl Bits {
    /// How many bits there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes in use, and those granted beyond them.
    pub fn bytes(&self) -> (u64, u64) {
        let held = self.granted - self.released;
        let used = self.len.div_ceil(8).saturating_sub(self.released).min(held);
        (used, held - used)
    }

    /// Makes sure that `more` bits can be appended. Returns whether there was memory for them.
    #[must_use]
    #[inline]
    pub fn reserve(&mut self, more: u64, budget: &Budget) -> bool {
        let end = (self.len + more).div_ceil(8) + BEYOND;
        end <= self.granted || self.grow(end, budget)
    }

    #[cold]
    fn grow(&mut self, end: u64, budget: &Budget) -> bool {
        let missing = end - self.granted;
        // In large steps while there is plenty, by the byte when there is not.
        let step = if end > STEP { STEP } else { 4096 };
        let asked = [missing.next_multiple_of(step), missing].into_iter().find(|&bytes| budget.request(bytes));
        let Some(asked) = asked else { return false };
        while (self.chunks.len() as u64) * CHUNK < self.granted + asked {
            let Some(region) = Region::zeroed(CHUNK as usize) else {
                budget.release(asked);
                return false;
            };
            self.chunks.push(region);
        }
        self.granted += asked;
        true
    }

    /// Appends the low `bits` bits of `value`, for which room was [reserved](Self::reserve).
    #[inline]
    pub fn push(&mut self, value: u32, bits: u32) {
        self.push_long(value.into(), bits);
    }

    /// The same for up to 56 bits.
    #[inline]
    pub fn push_long(&mut self, value: u64, bits: u32) {
        let at = self.len;
        self.len += u64::from(bits);
        self.write(at, value, bits);
    }

    /// Appends `count` bits that hold anything, for which room was reserved.
    #[inline]
    pub fn skip(&mut self, count: u64) {
        self.len += count;
    }

    /// Writes the low `bits` bits of `value`, up to 56, to bits that are in use.
    #[inline]
    pub fn write(&mut self, at: u64, value: u64, bits: u32) {
        assert!(bits <= 56 && at + u64::from(bits) <= self.len && self.len.div_ceil(8) + BEYOND <= self.granted);
        let (byte, shift) = (at / 8, at % 8);
        let mask = ((1u64 << bits) - 1) << shift;
        let new = value << shift & mask;
        if byte % CHUNK <= CHUNK - 8 {
            let address = self.address(byte).cast::<[u8; 8]>();
            // SAFETY: eight bytes of one chunk, which `reserve` has made; `&mut self`.
            unsafe {
                let old = u64::from_le_bytes(address.read());
                address.write((old & !mask | new).to_le_bytes());
            }
        } else {
            for place in 0..8 {
                let (mask, new) = ((mask >> (8 * place)) as u8, (new >> (8 * place)) as u8);
                if mask != 0 {
                    let address = self.address(byte + place);
                    // SAFETY: a byte that holds bits in use, so its chunk is there; `&mut self`.
                    unsafe { address.write(address.read() & !mask | new) };
                }
            }
        }
    }

    /// The number of as many bits as `mask` has, all low ones, at `at`.
    #[inline]
    pub fn read(&self, at: u64, mask: u32) -> u32 {
        let byte = at / 8;
        assert!(at + u64::from(mask.count_ones()) <= self.len && byte >= self.released);
        if mask == 0 {
            return 0;
        }
        if byte % CHUNK <= CHUNK - 8 {
            // SAFETY: eight bytes of a chunk that is there, because it holds a bit in use.
            let word = unsafe { self.address(byte).cast::<[u8; 8]>().read() };
            return (u64::from_le_bytes(word) >> (at % 8)) as u32 & mask;
        }
        let mut word = 0;
        for place in 0..=(at % 8 + u64::from(mask.count_ones()) - 1) / 8 {
            // SAFETY: a byte that holds bits in use, so its chunk is there.
            word |= u64::from(unsafe { self.address(byte + place).read() }) << (8 * place);
        }
        (word >> (at % 8)) as u32 & mask
    }

    /// The address of the byte that holds bit `at`, from which on [`peek`] may read `bits`
    /// bits; null, if they cross the end of a chunk, or are none.
    #[inline(always)]
    pub fn window(&self, at: u64, bits: u32) -> *const u8 {
        let (byte, end) = (at / 8, at + u64::from(bits));
        let inside = byte % CHUNK + u64::from(bits) / 8 + BEYOND + 2 <= CHUNK;
        if inside && end <= self.len && byte >= self.released && bits > 0 {
            self.address(byte).cast_const()
        } else {
            std::ptr::null()
        }
    }

    #[inline(always)]
    fn address(&self, byte: u64) -> *mut u8 {
        self.chunks[(byte / CHUNK) as usize].as_ptr().cast::<u8>().wrapping_add((byte % CHUNK) as usize)
    }

    /// Gives back the memory of the bits before `at`: they are not read again.
    pub fn release_before(&mut self, at: u64, budget: &Budget) {
        let end = (at / 8).min(self.granted);
        let (chunk, rest) = ((end / CHUNK) as usize, end % CHUNK / STEP * STEP);
        let end = chunk as u64 * CHUNK + rest;
        if end <= self.released {
            return;
        }
        for region in &mut self.chunks[(self.released / CHUNK) as usize..chunk] {
            *region = Region::indispensable(1);
        }
        if let Some(region) = self.chunks.get_mut(chunk) {
            region.release_front(rest as usize);
        }
        budget.release(end - self.released);
        self.released = end;
    }

    /// Gives everything back.
    pub fn clear(&mut self, budget: &Budget) {
        budget.release(self.granted - self.released);
        *self = Bits::default();
    }
}

/// The number of as many bits as `mask` has, all low ones, `offset` bits from `address` on.
///
/// # Safety
/// `address` is that of a [`Bits::window`] that holds these bits, or at least the first of
/// them or the one before.
#[inline(always)]
pub(crate) unsafe fn peek(address: *const u8, offset: u32, mask: u32) -> u32 {
    // SAFETY: the caller's promise: from a bit of a window on eight bytes may be read.
    let word = unsafe { address.add(offset as usize / 8).cast::<[u8; 8]>().read() };
    (u64::from_le_bytes(word) >> (offset % 8)) as u32 & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_come_back_across_chunks() {
        let budget = Budget::unlimited();
        let mut bits = Bits::default();
        let count = if cfg!(miri) { 1000 } else { 20_000_000 };
        let number = |index: u64| deltamark_core::hash::mix(index) as u32;
        let size = |index: u64| (index * 7 % 33) as u32;
        let mask = |size: u32| ((1u64 << size) - 1) as u32;
        let mut places = Vec::new();
        for index in 0..count {
            assert!(bits.reserve(size(index).into(), &budget));
            if index % 997 == 0 || bits.len() / 8 % CHUNK > CHUNK - 16 {
                places.push((index, bits.len()));
            }
            bits.push(number(index), size(index));
        }
        assert!(bits.len() / 8 > CHUNK, "a chunk is filled");
        for &(index, at) in &places {
            let mask = mask(size(index));
            assert_eq!(bits.read(at, mask), number(index) & mask, "{index}");
            let window = bits.window(at, size(index));
            if !window.is_null() {
                // SAFETY: a window of these bits.
                assert_eq!(unsafe { peek(window, (at % 8) as u32, mask) }, number(index) & mask, "{index}");
            }
        }
        let (used, reserve) = bits.bytes();
        assert_eq!(used + reserve, budget.used());
        bits.release_before(places[places.len() / 2].1, &budget);
        for &(index, at) in &places[places.len() / 2..] {
            assert_eq!(bits.read(at, mask(size(index))), number(index) & mask(size(index)), "{index}");
        }
        let (used, reserve) = bits.bytes();
        assert_eq!(used + reserve, budget.used());
        bits.clear(&budget);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_budget_that_is_spent_changes_nothing() {
        let budget = Budget::new(100);
        let mut bits = Bits::default();
        assert!(bits.reserve(500, &budget));
        bits.push(77, 7);
        assert!(!bits.reserve(1000, &budget));
        assert_eq!((bits.read(0, 127), bits.len()), (77, 7));
        assert!(budget.used() <= 100);
    }
}
