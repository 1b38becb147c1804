//! Append-only vectors, read by many threads while one appends.
//!
//! In: items, appended by the holder of the lock of the table that owns the vector. Out: items by their
//! number, without a lock. What stays true: an item never moves, so growing needs no second copy.
//!
//! ```text
//! chunk   0   1   2   3   4   5   6   7   8 …
//! items   16  16  16  16  32  32  32  32  64  …      four of a size, then twice the size
//! ```
//!
//! The first ones are small because every place has five vectors: one step of a net of 10,000 places may put
//! the first token into all of them.
//!
//! So at most a fifth of a long vector is empty, and the chunk of an item takes two shifts to find. Items are
//! atomics. A thread that learns the number of an item has learnt it from the thread that wrote it, through a
//! lock or a store, so relaxed loads see what was written.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use zerocopy::FromZeros;

/// Log2 of the items in the first chunk.
const FIRST: u32 = 4;
/// Enough for 2^32 items.
const CHUNKS: usize = 4 * (32 - FIRST as usize) + 4;

/// Counts the bytes of all vectors and indexes of a net as they grow.
#[derive(Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// The bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn add(&self, items: usize, size: usize) {
        self.0.fetch_add((items * size) as u64, Relaxed);
    }
}

/// An append-only vector.
pub(crate) struct Chunks<T> {
    chunks: Box<[OnceLock<Box<[T]>>]>,
    meter: Meter,
}

/// The chunk of an item, its offset there, and the size of the chunk.
#[inline]
fn locate(index: usize) -> (usize, usize, usize) {
    let shifted = index + (4 << FIRST);
    let exponent = usize::BITS - 1 - shifted.leading_zeros() - (FIRST + 2);
    let size = 1usize << (FIRST + exponent);
    (4 * exponent as usize + (shifted >> (FIRST + exponent) & 3), shifted & (size - 1), size)
}

impl<T: Default + FromZeros> Chunks<T> {
    /// An empty vector, whose bytes are counted by `meter`.
    pub fn new(meter: &Meter) -> Self {
        Chunks { chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(), meter: meter.clone() }
    }

    /// The item of this number, for which room was made.
    #[inline]
    pub fn at(&self, index: usize) -> &T {
        let (chunk, offset, _) = locate(index);
        match self.chunks[chunk].get() {
            Some(items) => &items[offset],
            None => unreachable!("an item is asked for after it was appended"),
        }
    }

    /// `len` items from `start` on, for which room was made together.
    #[inline]
    pub fn slice(&self, start: usize, len: usize) -> &[T] {
        if len == 0 {
            return &[];
        }
        let (chunk, offset, _) = locate(start);
        match self.chunks[chunk].get() {
            Some(items) => &items[offset..offset + len],
            None => unreachable!("items are asked for after they were appended"),
        }
    }

    /// The items from `start` to the end of their chunk.
    #[inline]
    pub fn rest(&self, start: usize) -> &[T] {
        let (chunk, offset, _) = locate(start);
        match self.chunks[chunk].get() {
            Some(items) => &items[offset..],
            None => unreachable!("items are asked for after they were appended"),
        }
    }

    /// Makes room for `len` items in one chunk, at `used` or as soon after it as possible, and returns where;
    /// `None` if the vector is full.
    pub fn room(&self, used: usize, len: usize) -> Option<usize> {
        let mut start = used;
        loop {
            let (chunk, offset, size) = locate(start);
            let items = self.chunks.get(chunk)?;
            if offset + len <= size {
                items.get_or_init(|| {
                    self.meter.add(size, size_of::<T>());
                    // Zeroed by the allocator: pages of a large chunk become resident as they are written to.
                    <[T]>::new_box_zeroed_with_elems(size).unwrap_or_else(|_| (0..size).map(|_| T::default()).collect())
                });
                return Some(start);
            }
            start += size - offset;
        }
    }

    /// The bytes held.
    pub fn bytes(&self) -> u64 {
        let items: usize = self.chunks.iter().filter_map(OnceLock::get).map(|items| items.len()).sum();
        (items * size_of::<T>() + self.chunks.len() * size_of::<OnceLock<Box<[T]>>>()) as u64
    }
}

impl Chunks<AtomicU32> {
    /// The number at this index.
    #[inline]
    pub fn get(&self, index: usize) -> u32 {
        self.at(index).load(Relaxed)
    }
}

impl Chunks<AtomicU64> {
    /// The number at this index.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        self.at(index).load(Relaxed)
    }
}

/// A hash index of numbered items stored elsewhere: open addressing, load factor at most 0.75. Used under the
/// lock of its table.
pub(crate) struct Index {
    /// Numbers plus one; 0 is empty.
    slots: Vec<u32>,
    len: usize,
    meter: Meter,
}

impl Index {
    /// An empty index, whose bytes are counted by `meter`.
    pub fn new(meter: &Meter) -> Self {
        Index { slots: Vec::new(), len: 0, meter: meter.clone() }
    }

    /// The number of the item with this hash that `same` accepts.
    pub fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = spread(hash) as usize & mask;
        loop {
            match self.slots[at] {
                0 => return None,
                found if same(found - 1) => return Some(found - 1),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Adds a number that is not in the index; `hash_of` gives the hash of those that are.
    pub fn add(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            let larger = (self.slots.len() * 2).max(16);
            self.meter.add(larger - self.slots.len(), size_of::<u32>());
            let old = std::mem::replace(&mut self.slots, vec![0; larger]);
            for known in old.into_iter().filter(|&slot| slot != 0) {
                self.put(hash_of(known - 1), known);
            }
        }
        self.len += 1;
        self.put(hash, number + 1);
    }

    fn put(&mut self, hash: u64, slot: u32) {
        let mask = self.slots.len() - 1;
        let mut at = spread(hash) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// The bytes held.
    pub fn bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<u32>()) as u64
    }
}

/// Hashes here may be sums, whose low bits are poor.
#[inline]
fn spread(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_where_they_were_put() {
        let meter = Meter::default();
        let row: Chunks<AtomicU32> = Chunks::new(&meter);
        let mut used = 0;
        let mut kept = Vec::new();
        for len in (0..300).chain([5000, 1, 700]) {
            let start = row.room(used, len).expect("room");
            row.slice(start, len).iter().for_each(|item| item.store(len as u32, Relaxed));
            used = start + len;
            kept.push((start, len));
        }
        for (start, len) in kept {
            assert!(row.slice(start, len).iter().all(|item| item.load(Relaxed) == len as u32));
            if len > 0 {
                assert_eq!(row.get(start + len - 1), len as u32);
            }
        }
        assert!(row.bytes() < 4 * used as u64 * 2 + 4096);
        assert_eq!(meter.bytes() + (CHUNKS * size_of::<OnceLock<Box<[AtomicU32]>>>()) as u64, row.bytes());
    }

    #[test]
    fn an_index_tells_things_of_equal_hash_apart() {
        let mut index = Index::new(&Meter::default());
        for number in 0..1000 {
            assert_eq!(index.find(u64::from(number % 7), |known| known == number), None);
            index.add(u64::from(number % 7), number, |known| u64::from(known % 7));
        }
        for number in 0..1000 {
            assert_eq!(index.find(u64::from(number % 7), |known| known == number), Some(number));
        }
    }
}
