//! Numbered items of one size, in memory that never moves.
//!
//! In: items, written once each. Out: a pointer to item number `i`. Invariants: the address of an
//! item never changes, so it can be read while others are added; growing copies nothing.
//!
//! # Layout in memory
//! ```text
//! chunk 0 [ 2^k items ]  chunk 1 [ 2^k items ]  chunk 2 [ 2^k items ] …
//! ```
//! A chunk takes 32 to 64 MiB of address space, less if the process is limited; its pages are
//! resident only once they are written. The few pointers to chunks stay in the cache.

use crate::memory::region::{Region, chunk_bytes};
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, PoisonError};

/// The most bytes a chunk takes.
#[cfg(not(miri))]
const CHUNK_BYTES: usize = 64 << 20;
#[cfg(miri)]
const CHUNK_BYTES: usize = 1 << 10;
/// Enough for 2^40 bytes.
#[cfg(not(miri))]
const CHUNKS: usize = 1 << 14;
/// Miri looks at all of them each time.
#[cfg(miri)]
const CHUNKS: usize = 1 << 5;

/// Numbered items of one size.
pub(crate) struct Arena {
    /// Words of 32 bits an item takes.
    item: usize,
    /// A chunk holds two to the power of this many items.
    shift: u32,
    /// [`CHUNKS`] of them, of which few are ever touched.
    pointers: Region,
    regions: Mutex<Vec<Region>>,
}

impl Arena {
    /// No items, each of `item` words.
    pub fn new(item: usize) -> Self {
        Self::in_chunks(item, chunk_bytes(CHUNK_BYTES))
    }

    /// Words, of which many must be in one chunk.
    pub fn of_words() -> Self {
        Self::in_chunks(1, CHUNK_BYTES.min(4 * chunk_bytes(CHUNK_BYTES)))
    }

    fn in_chunks(item: usize, bytes: usize) -> Self {
        let shift = (bytes / (4 * item).max(1)).max(1).ilog2();
        let pointers = Region::indispensable(CHUNKS * size_of::<AtomicPtr<u32>>());
        Arena { item, shift, pointers, regions: Mutex::new(Vec::new()) }
    }

    #[inline(always)]
    fn pointers(&self) -> &[AtomicPtr<u32>] {
        // SAFETY: the region was made for as many, is aligned to cache lines, and its zeroes are
        // null pointers; it is used as atomics only.
        unsafe { std::slice::from_raw_parts(self.pointers.as_ptr().cast(), CHUNKS) }
    }

    /// Words an item takes.
    #[inline]
    pub fn item(&self) -> usize {
        self.item
    }

    /// Items of a chunk.
    pub fn chunk_items(&self) -> usize {
        1 << self.shift
    }

    /// Makes sure that items up to but not including `end` have an address. Returns whether
    /// the system had the memory.
    #[must_use]
    pub fn extend(&self, end: u64) -> bool {
        let Some(last) = end.checked_sub(1) else { return true };
        let last_chunk = (last >> self.shift) as usize;
        if last_chunk >= CHUNKS {
            return false;
        }
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        while regions.len() <= last_chunk {
            let chunk = regions.len();
            let Some(region) = Region::filled_slowly(self.chunk_items() * self.item * 4) else { return false };
            self.pointers()[chunk].store(region.as_ptr(), Release);
            regions.push(region);
        }
        true
    }

    /// The address of an item below what was [extended](Self::extend) to. Its words may
    /// be written before the item's number is published, and read after.
    #[inline(always)]
    pub fn address(&self, index: u64) -> *mut u32 {
        let pointer = self.pointers()[(index >> self.shift) as usize & (CHUNKS - 1)].load(Acquire);
        debug_assert!(!pointer.is_null());
        pointer.wrapping_add((index as usize & (self.chunk_items() - 1)) * self.item)
    }

    /// What [`address`](Self::address) needs, for loops that keep it in registers. Valid
    /// until the arena is [rewritten](Self::rewrite).
    #[inline(always)]
    pub fn view(&self) -> ArenaView<'_> {
        ArenaView { pointers: self.pointers(), shift: self.shift }
    }

    /// How many items are contiguous from `index` on.
    #[inline]
    pub fn contiguous(&self, index: u64) -> u64 {
        self.chunk_items() as u64 - (index & (self.chunk_items() as u64 - 1))
    }

    /// Rewrites `len` items to `new_item` words each, first to last, by
    /// `translate(old, new)`. Old pages are given back as it goes, so that old and new are
    /// never both there in full. Returns whether the system had the addresses; if not, nothing
    /// has changed. `translate` returns whether to go on; where it does not, `false` is returned too, and the items
    /// are lost.
    #[must_use]
    pub fn rewrite(
        &mut self,
        new_item: usize,
        len: u64,
        mut translate: impl FnMut(&[u32], &mut [u32]) -> bool,
    ) -> bool {
        /// How many items are rewritten before old pages are given back, at most.
        const PIECE: usize = if cfg!(miri) { 1 << 6 } else { 1 << 15 };
        /// At most this number of bytes: `PIECE` wide items could be all there are, twice.
        const PIECE_BYTES: usize = 1 << 20;
        let piece = (PIECE_BYTES / (4 * self.item.max(new_item).max(1))).clamp(1, PIECE);
        let new = Arena::new(new_item);
        if !new.extend(len) {
            return false;
        }
        let mut old = std::mem::replace(self, new);
        let mut regions = std::mem::take(&mut *old.regions.get_mut().unwrap_or_else(PoisonError::into_inner));
        let old_chunk = old.chunk_items() as u64;
        for start in (0..len).step_by(piece) {
            let end = len.min(start + piece as u64);
            for index in start..end {
                // SAFETY: `&mut self`: nobody else uses the arena. Both arenas have addresses
                // for this item, and their regions are different memory.
                let (from, to) = unsafe {
                    (
                        std::slice::from_raw_parts(old.address(index), old.item),
                        std::slice::from_raw_parts_mut(self.address(index), new_item),
                    )
                };
                if !translate(from, to) {
                    return false;
                }
            }
            // What was translated is no longer needed.
            release(&mut regions, end / old_chunk, (end % old_chunk) as usize * old.item * 4);
        }
        true
    }

    /// Gives back the items from this one on; until the arena is [extended](Self::extend) to them again those up to the
    /// end of its chunk are zero.
    pub fn truncate(&mut self, end: u64) {
        let item_bytes = self.item * 4;
        let items = self.chunk_items() as u64;
        let chunks = end.div_ceil(items).max(1);
        let within = end - (chunks - 1) * items;
        let regions = self.regions.get_mut().unwrap_or_else(PoisonError::into_inner);
        let there = regions.len();
        regions.truncate(chunks as usize);
        if let Some(last) = regions.last_mut()
            && there as u64 >= chunks
            && within < items
        {
            last.clear_from(within as usize * item_bytes);
        }
        for chunk in chunks as usize..there {
            self.pointers()[chunk].store(std::ptr::null_mut(), Release);
        }
    }

    /// Gives back all chunks before the one of this item, and the first bytes of that one.
    pub fn release_before(&mut self, index: u64, bytes: u64) {
        let regions = self.regions.get_mut().unwrap_or_else(PoisonError::into_inner);
        release(regions, index >> self.shift, bytes as usize);
    }
}

/// Gives back whole chunks, and the first bytes of the next.
fn release(regions: &mut [Region], chunks: u64, bytes: usize) {
    let (before, rest) = regions.split_at_mut((chunks as usize).min(regions.len()));
    for region in before {
        *region = Region::indispensable(1);
    }
    if let Some(region) = rest.first_mut() {
        region.release_front(bytes);
    }
}

/// An arena whose item size the compiler knows.
#[derive(Clone, Copy)]
pub(crate) struct ArenaView<'a> {
    pointers: &'a [AtomicPtr<u32>],
    shift: u32,
}

impl ArenaView<'_> {
    /// Where the chunk of an item begins, and how many items of the chunk are before it.
    #[inline(always)]
    pub fn chunk(self, index: u64) -> (*mut u32, u64) {
        let within = index & ((1 << self.shift) - 1);
        (self.address::<0>(index), within)
    }

    /// [`Arena::address`] for items of `W` words.
    #[inline(always)]
    pub fn address<const W: usize>(self, index: u64) -> *mut u32 {
        debug_assert!(self.pointers.len() == CHUNKS);
        // SAFETY: there are `CHUNKS` pointers, and the mask keeps the index below that.
        let pointer = unsafe { self.pointers.get_unchecked((index >> self.shift) as usize & (CHUNKS - 1)) };
        pointer.load(Acquire).wrapping_add((index as usize & ((1 << self.shift) - 1)) * W)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_addresses_of_their_own_across_chunks() {
        let arena = Arena::new(3);
        let len = 3 * arena.chunk_items() as u64;
        assert!(arena.extend(len));
        let mut addresses: Vec<usize> =
            (0..len).step_by(arena.chunk_items() / 7).map(|index| arena.address(index) as usize).collect();
        addresses.sort_unstable();
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= 12));
        assert_eq!(arena.contiguous(1), arena.chunk_items() as u64 - 1);
    }

    #[test]
    fn what_is_truncated_is_zero_when_it_is_there_again() {
        let mut arena = Arena::new(16);
        let items = arena.chunk_items() as u64;
        for end in [0, 3, items - 1, items, items + 1, 2 * items + 5] {
            let len = 3 * items;
            assert!(arena.extend(len));
            // Far more would take long: the ends of chunks, and what is around the cut.
            let some = |from: u64| {
                let near = [0, items, 2 * items, end];
                let around = near.into_iter().flat_map(|at| at.saturating_sub(2)..at + 40);
                around.chain(len - 2..len).filter(move |index| (from..len).contains(index))
            };
            for index in some(0) {
                // SAFETY: the item is below what was extended to, and this is the only thread.
                unsafe { arena.address(index).write(1 + index as u32) };
            }
            arena.truncate(end);
            assert!(arena.extend(len));
            for index in some(0) {
                let expected = if index < end { 1 + index as u32 } else { 0 };
                // SAFETY: as above.
                assert_eq!(unsafe { arena.address(index).read() }, expected, "{index} of {end}");
            }
        }
    }

    #[test]
    fn rewriting_keeps_items_and_changes_their_size() {
        let mut arena = Arena::new(2);
        let len = if cfg!(miri) { 700 } else { 5000 };
        assert!(arena.extend(len));
        for index in 0..len {
            // SAFETY: the item is below what was extended to, and this is the only thread.
            unsafe { arena.address(index).write(index as u32) };
        }
        let next = |old: &[u32], new: &mut [u32]| {
            new[2] = old[0] + 1;
            true
        };
        assert!(arena.rewrite(3, len, next));
        for index in 0..len {
            // SAFETY: as above; the item now has three words.
            assert_eq!(unsafe { arena.address(index).add(2).read() }, index as u32 + 1);
        }
    }
}
