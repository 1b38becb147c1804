//! A set of numbers as a bitmap in tiles: the roots of `compact` where pairs are dense.
//!
//! In: numbers below 2^36. Out: whether each was present. Invariants: an empty tile takes no
//! memory; a look-up is two plain loads, an insertion one atomic or; growing copies nothing.
//!
//! # Layout in memory
//! ```text
//! number   [ top | middle | bit ]       12, 12 and 12 bits
//! top      pointer to a directory, or null          32 KiB, fixed
//! directory  tile + 1, or 0                         4 bytes a tile
//! tiles    #0 [ 4096 bits ] #1 [ 4096 bits ] …      512 bytes each, in the order needed
//! ```
//! The number of a pair interleaves the bits of both ids (see `tables/pair_code.rs`), so a tile is
//! a square of 64 by 64 pairs, and pairs found at about the same time are close.

use crate::memory::arena::Arena;
use crate::memory::region::Region;
use crate::tables::bucket::prefetch_as;
use deltamark_core::Budget;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bits of a number that say which bit of a tile it is.
const TILE_BITS: u32 = 12;
/// Bits that say which entry of a directory.
const DIRECTORY_BITS: u32 = if cfg!(miri) { 6 } else { 12 };
/// Directories there can be.
const TOP: usize = if cfg!(miri) { 1 << 6 } else { 1 << 12 };
/// 32-bit words of a tile.
const TILE_WORDS: usize = 1 << (TILE_BITS - 5);
/// Bytes of a tile.
const TILE_BYTES: u64 = TILE_WORDS as u64 * 4;
/// Bytes of a directory.
const DIRECTORY_BYTES: u64 = 4 << DIRECTORY_BITS;
/// Bytes of the pointers to directories.
const TOP_BYTES: u64 = (TOP * size_of::<AtomicPtr<AtomicU32>>()) as u64;

/// A set of numbers.
pub(crate) struct Tiles {
    budget: Arc<Budget>,
    top: Box<[AtomicPtr<AtomicU32>]>,
    tiles: Arena,
    adding: Mutex<Adding>,
    /// Bytes of tiles in use.
    used_bytes: AtomicU64,
}

/// What changes when a tile is added.
struct Adding {
    directories: Vec<Region>,
    /// Tiles in use, and those granted.
    used: u64,
    granted: u64,
}

/// What became of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    New,
    Seen,
    Full,
}

impl Tiles {
    /// Numbers at and beyond this cannot be held.
    pub const LIMIT: u64 = (TOP as u64) << (DIRECTORY_BITS + TILE_BITS);

    /// An empty set, if the budget allows it.
    pub fn new(budget: &Arc<Budget>) -> Option<Self> {
        if !budget.request(TOP_BYTES) {
            return None;
        }
        let top = (0..TOP).map(|_| AtomicPtr::default()).collect();
        let adding = Mutex::new(Adding { directories: Vec::new(), used: 0, granted: 0 });
        Some(Tiles {
            budget: Arc::clone(budget),
            top,
            tiles: Arena::new(TILE_WORDS),
            adding,
            used_bytes: AtomicU64::new(0),
        })
    }

    /// The bytes it holds: of tiles, and of what leads to them.
    pub fn bytes(&self) -> (u64, u64) {
        let adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        (adding.granted * TILE_BYTES, TOP_BYTES + adding.directories.len() as u64 * DIRECTORY_BYTES)
    }

    /// Bytes of tiles in use.
    #[inline]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// The entry of the directory for a number, if there is a directory.
    #[inline(always)]
    fn entry(&self, number: u64) -> Option<&AtomicU32> {
        debug_assert!(number < Self::LIMIT);
        let directory = self.top[(number >> (DIRECTORY_BITS + TILE_BITS)) as usize & (TOP - 1)].load(Ordering::Acquire);
        if directory.is_null() {
            return None;
        }
        let at = (number >> TILE_BITS) as usize & ((1 << DIRECTORY_BITS) - 1);
        // SAFETY: a directory has this many entries, lives as long as the set, and its memory is
        // used as atomics only.
        Some(unsafe { &*directory.add(at) })
    }

    /// The word that holds a number's bit, if its tile is there.
    #[inline(always)]
    fn word(&self, number: u64) -> Option<&AtomicU64> {
        let tile = self.entry(number)?.load(Ordering::Acquire);
        if tile == 0 {
            return None;
        }
        let words = self.tiles.view().address::<TILE_WORDS>(u64::from(tile - 1)).cast::<AtomicU64>();
        // SAFETY: the entry was released after the tile had its address; a tile has
        // `TILE_WORDS / 2` words of 64 bits, aligned, used as atomics only.
        Some(unsafe { &*words.add((number >> 6) as usize & (TILE_WORDS / 2 - 1)) })
    }

    /// Asks for the memory that holds a number's bit, to write to it if the number is expected to be new.
    #[inline(always)]
    pub fn prefetch(&self, number: u64, expects_new: bool) {
        if let Some(word) = self.word(number) {
            prefetch_as(word, expects_new);
        }
    }

    /// Whether a number is there.
    #[inline(always)]
    pub fn contains(&self, number: u64) -> bool {
        self.word(number).is_some_and(|word| word.load(Ordering::Acquire) >> (number & 63) & 1 == 1)
    }

    /// Enters a number.
    #[inline(always)]
    pub fn insert(&self, number: u64) -> Added {
        let word = match self.word(number) {
            Some(word) => word,
            None => match self.add_tile(number) {
                Some(word) => word,
                None => return Added::Full,
            },
        };
        let bit = 1 << (number & 63);
        // Most are there already: a load keeps their line shared among the processors.
        if word.load(Ordering::Acquire) & bit != 0 || word.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            Added::Seen
        } else {
            Added::New
        }
    }

    /// Adds the tile of a number, unless somebody else was quicker.
    #[cold]
    fn add_tile(&self, number: u64) -> Option<&AtomicU64> {
        let mut adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if self.entry(number).is_none() {
            if !self.budget.request(DIRECTORY_BYTES) {
                return None;
            }
            let Some(region) = Region::zeroed(DIRECTORY_BYTES as usize) else {
                self.budget.release(DIRECTORY_BYTES);
                return None;
            };
            let top = &self.top[(number >> (DIRECTORY_BITS + TILE_BITS)) as usize & (TOP - 1)];
            top.store(region.as_ptr().cast(), Ordering::Release);
            adding.directories.push(region);
        }
        let entry = self.entry(number)?;
        if entry.load(Ordering::Acquire) == 0 {
            if adding.used == adding.granted {
                // A 32nd ahead while there is plenty, one by one when there is not.
                let ahead = (adding.granted / 32).clamp(8, 512);
                let asked = [ahead, 1].into_iter().find(|&tiles| self.budget.request(tiles * TILE_BYTES))?;
                if !self.tiles.extend(adding.granted + asked) || adding.granted + asked >= u64::from(u32::MAX) {
                    self.budget.release(asked * TILE_BYTES);
                    return None;
                }
                adding.granted += asked;
            }
            adding.used += 1;
            self.used_bytes.store(adding.used * TILE_BYTES, Ordering::Relaxed);
            entry.store(adding.used as u32, Ordering::Release);
        }
        self.word(number)
    }

    /// Calls `visit` with every number there is, tile by tile; nobody else uses the set.
    /// On `false` it ends.
    pub fn each(&self, mut visit: impl FnMut(u64) -> bool) -> bool {
        for top in 0..TOP as u64 {
            let first = top << (DIRECTORY_BITS + TILE_BITS);
            if self.entry(first).is_none() {
                continue;
            }
            for tile in 0..1u64 << DIRECTORY_BITS {
                for word in 0..TILE_WORDS as u64 / 2 {
                    let number = first | tile << TILE_BITS | word << 6;
                    let Some(bits) = self.word(number) else { break };
                    let mut rest = bits.load(Ordering::Acquire);
                    while rest != 0 {
                        if !visit(number | u64::from(rest.trailing_zeros())) {
                            return false;
                        }
                        rest &= rest - 1;
                    }
                }
            }
        }
        true
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        let (tiles, directory) = self.bytes();
        self.budget.release(tiles + directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seen_once_and_enumerated() {
        let budget = Arc::new(Budget::unlimited());
        let tiles = Tiles::new(&budget).expect("there is no limit");
        let numbers: Vec<u64> =
            (0..if cfg!(miri) { 30 } else { 3000 }).map(|step| step * step * 911 % Tiles::LIMIT).collect();
        for &number in &numbers {
            assert!(!tiles.contains(number));
            assert_eq!(tiles.insert(number), Added::New);
            assert_eq!(tiles.insert(number), Added::Seen);
        }
        let mut found = Vec::new();
        assert!(tiles.each(|number| {
            found.push(number);
            true
        }));
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(found, sorted);
        let (held, directory) = tiles.bytes();
        assert_eq!(held + directory, budget.used());
        drop(tiles);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_spent_budget_is_told() {
        let budget = Arc::new(Budget::new(TOP_BYTES + DIRECTORY_BYTES + 9 * TILE_BYTES));
        let tiles = Tiles::new(&budget).expect("enough for the first");
        let inserted = (0..20u64).take_while(|tile| tiles.insert(tile << TILE_BITS) == Added::New).count();
        assert_eq!(inserted, 9);
        assert_eq!(tiles.insert(3 << TILE_BITS), Added::Seen);
        assert_eq!(tiles.insert(3 << TILE_BITS | 77), Added::New);
    }
}
