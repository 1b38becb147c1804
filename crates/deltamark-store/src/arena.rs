//! Numbered items of one size, in memory that never moves.
//!
//! In: items, written once each. Out: a pointer to item number `i`. What stays true: the
//! address of an item never changes, so it can be read while others are added; growing
//! copies nothing.
//!
//! # Layout in memory
//! ```text
//! chunk 0 [ 1024 items ]  chunk 1 [ 2048 items ]  chunk 2 [ 4096 items ] …
//! ```
//! Chunks double, so a handful of pointers (which stay in the cache) lead to any number
//! of items; pages of a chunk that hold no item yet are not resident.

use crate::region::Region;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, PoisonError};

/// The first chunk holds two to the power of this many items.
const FIRST: u32 = 10;
/// Enough for 2^40 items.
const CHUNKS: usize = 31;

/// Numbered items of one size.
pub(crate) struct Arena {
    /// Words of 32 bits an item takes.
    item: usize,
    pointers: [AtomicPtr<u32>; CHUNKS],
    regions: Mutex<Vec<Region>>,
}

/// Which chunk an item is in, and which item of the chunk it is.
#[inline]
fn locate(index: u64) -> (usize, usize) {
    let shifted = index + (1 << FIRST);
    let chunk = shifted.ilog2() - FIRST;
    (chunk as usize, (shifted - (1 << (FIRST + chunk))) as usize)
}

/// How many items a chunk holds.
fn chunk_len(chunk: usize) -> usize {
    1 << (FIRST as usize + chunk)
}

impl Arena {
    /// No items, each of `item` words.
    pub fn new(item: usize) -> Self {
        Arena { item, pointers: std::array::from_fn(|_| AtomicPtr::default()), regions: Mutex::new(Vec::new()) }
    }

    /// Words an item takes.
    #[inline]
    pub fn item(&self) -> usize {
        self.item
    }

    /// Makes sure that items up to but not including `end` have an address. Says whether
    /// the system had the memory.
    #[must_use]
    pub fn extend(&self, end: u64) -> bool {
        let Some(last) = end.checked_sub(1) else { return true };
        let (last_chunk, _) = locate(last);
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        while regions.len() <= last_chunk {
            let chunk = regions.len();
            let Some(region) = Region::zeroed(chunk_len(chunk) * self.item * 4) else { return false };
            self.pointers[chunk].store(region.as_ptr(), Release);
            regions.push(region);
        }
        true
    }

    /// The address of an item below what was [extended](Self::extend) to. Its words may
    /// be written before the item's number is told to anybody else, and read after.
    #[inline]
    pub fn address(&self, index: u64) -> *mut u32 {
        let (chunk, offset) = locate(index);
        let pointer = self.pointers[chunk].load(Acquire);
        debug_assert!(!pointer.is_null());
        // The chunk was made for `chunk_len` items, and `offset` is below that.
        pointer.wrapping_add(offset * self.item)
    }

    /// The number of the first item of the next chunk after the one `index` is in.
    pub fn next_chunk(index: u64) -> u64 {
        let (chunk, offset) = locate(index);
        index + (chunk_len(chunk) - offset) as u64
    }

    /// Rewrites `len` items to `new_item` words each, last chunk first, by
    /// `translate(old, new)`. Old pages are given back as it goes, so that old and new are
    /// never both there in full.
    ///
    /// # Panics
    /// When the system refuses memory: the caller has asked its budget before.
    pub fn rewrite(&mut self, new_item: usize, len: u64, mut translate: impl FnMut(&[u32], &mut [u32])) {
        /// How many items are rewritten before old pages are given back.
        const PIECE: usize = 1 << 15;
        let old_item = self.item;
        let mut regions = std::mem::take(&mut *self.regions.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut start = 0;
        for (chunk, region) in regions.iter_mut().enumerate() {
            let used = (len.saturating_sub(start) as usize).min(chunk_len(chunk));
            start += chunk_len(chunk) as u64;
            let new = Region::zeroed(chunk_len(chunk) * new_item * 4).expect("memory that the budget granted");
            for first in (0..used).step_by(PIECE) {
                for index in first..(first + PIECE).min(used) {
                    // SAFETY: `&mut self`: nobody else uses the arena. Both chunks were made
                    // for `chunk_len` items of their size, `index` is below that, and the two
                    // regions are different memory.
                    let (old, new) = unsafe {
                        (
                            std::slice::from_raw_parts(region.as_ptr().add(index * old_item), old_item),
                            std::slice::from_raw_parts_mut(new.as_ptr().add(index * new_item), new_item),
                        )
                    };
                    translate(old, new);
                }
                region.release_front((first + PIECE).min(used) * old_item * 4);
            }
            *self.pointers[chunk].get_mut() = new.as_ptr();
            *region = new;
        }
        *self.regions.get_mut().unwrap_or_else(PoisonError::into_inner) = regions;
        self.item = new_item;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_addresses_of_their_own_across_chunks() {
        assert_eq!(locate(0), (0, 0));
        assert_eq!(locate(1023), (0, 1023));
        assert_eq!(locate(1024), (1, 0));
        assert_eq!(locate(3071), (1, 2047));
        assert_eq!(locate(3072), (2, 0));
        assert_eq!(Arena::next_chunk(1023), 1024);
        assert_eq!(Arena::next_chunk(1024), 3072);
    }

    #[test]
    fn rewriting_keeps_items_and_changes_their_size() {
        let mut arena = Arena::new(2);
        let len = 5000;
        assert!(arena.extend(len));
        for index in 0..len {
            // SAFETY: the item lies below what was extended to, and this is the only thread.
            unsafe { arena.address(index).write(index as u32) };
        }
        arena.rewrite(3, len, |old, new| new[2] = old[0] + 1);
        for index in 0..len {
            // SAFETY: as above; the item now has three words.
            assert_eq!(unsafe { arena.address(index).add(2).read() }, index as u32 + 1);
        }
    }
}
