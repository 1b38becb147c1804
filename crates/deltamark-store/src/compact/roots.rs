//! The roots of `compact`: a set of codes of pairs, as a bitmap or a quotient set, whichever is
//! smaller.
//!
//! In: codes of pairs (see `tables/pair_code.rs`). Out: whether each was present. Invariant: codes
//! do not depend on the representation, so it can be changed whenever no other thread uses the
//! roots.
//!
//! # Which is smaller
//! A bitmap takes one bit for each pair of every tile that contains a state; a quotient set one to
//! four bytes per state. Roots begin as a bitmap. Whenever the bitmap has grown by a quarter, its
//! size is compared with that of the set; whenever the set has to grow, its size is compared with a
//! bitmap of all pairs, an upper bound. A change must save a third, so that it does not alternate.

use crate::tables::pair_code::Reach;
use crate::tables::pairs::Pairs;
use crate::tables::tiles::{Added, Tiles};
use crate::threads::cooperate::Help;
use deltamark_core::{Budget, Bytes};
use std::sync::Arc;

/// Roots that are smaller than this stay a bitmap.
const SMALL: u64 = 256 << 10;

/// A set of codes.
pub(crate) enum Roots {
    /// Dense: and the size from which on it is looked at again.
    Tiles(Tiles, u64),
    /// Sparse.
    Pairs(Pairs),
}

impl Roots {
    /// No codes, if the budget allows it.
    pub fn new(budget: &Arc<Budget>) -> Option<Self> {
        Some(Roots::Tiles(Tiles::new(budget)?, SMALL))
    }

    /// The bytes it holds, by part.
    pub fn bytes(&self) -> Bytes {
        match self {
            Roots::Tiles(tiles, _) => {
                let (tiles, directory) = tiles.bytes();
                Bytes::new().with("roots", tiles).with("directory", directory)
            }
            Roots::Pairs(pairs) => {
                let (lines, stash) = pairs.bytes();
                Bytes::new().with("roots", lines).with("stash", stash)
            }
        }
    }

    /// Asks for the memory in which a code would be found, or entered if it is expected to be new.
    #[inline(always)]
    pub fn prefetch(&self, code: u64, expects_new: bool) {
        match self {
            Roots::Tiles(tiles, _) => tiles.prefetch(code, expects_new),
            Roots::Pairs(pairs) => pairs.prefetch(code, expects_new),
        }
    }

    /// Whether a code is there.
    #[inline(always)]
    pub fn contains(&self, code: u64) -> bool {
        match self {
            Roots::Tiles(tiles, _) => code < Tiles::LIMIT && tiles.contains(code),
            Roots::Pairs(pairs) => pairs.contains(code),
        }
    }

    /// Enters a code, for which there is room.
    #[inline(always)]
    pub fn insert(&self, code: u64) -> Added {
        match self {
            Roots::Tiles(tiles, _) => tiles.insert(code),
            Roots::Pairs(pairs) => pairs.insert(code),
        }
    }

    /// Whether there is room for `codes` codes of this reach in all, and no reason to look whether
    /// the roots should change.
    #[inline]
    pub fn has_room(&self, codes: u64, reach: Reach) -> bool {
        match self {
            Roots::Tiles(tiles, next) => reach.limit() <= Tiles::LIMIT && tiles.used_bytes() <= *next,
            Roots::Pairs(pairs) => pairs.has_room(codes, reach),
        }
    }

    /// Makes room for `codes` codes of this reach in all, where there are `pairs` pairs; nobody else
    /// uses the roots but to `help`. Says whether there was memory.
    #[must_use]
    pub fn make_room(&mut self, codes: u64, reach: Reach, pairs: u64, budget: &Arc<Budget>, help: &Help) -> bool {
        let limit = reach.limit();
        match self {
            Roots::Tiles(tiles, next) => {
                let held = tiles.used_bytes();
                // Not before it is time again: a change for which there is no memory takes a while to find out.
                let sparse = held > *next && held > SMALL && held / 4 * 3 > Pairs::estimate(codes, reach);
                if limit > Tiles::LIMIT || sparse {
                    if let Some(pairs) = quotiented(tiles, codes, reach, budget) {
                        *self = Roots::Pairs(pairs);
                        return true;
                    }
                    if limit > Tiles::LIMIT {
                        return false;
                    }
                }
                *next = (*next).max(held + held / 4);
                true
            }
            Roots::Pairs(set) => {
                let (lines, _) = set.bytes();
                if limit <= Tiles::LIMIT
                    && pairs / 8 < lines / 4 * 3
                    && let Some(tiles) = bitmap(set, budget)
                {
                    let next = tiles.used_bytes() * 5 / 4;
                    *self = Roots::Tiles(tiles, next.max(SMALL));
                    return true;
                }
                set.make_room(codes, reach, help)
            }
        }
    }

    /// The same, and gives back memory on the way: what was visited is not there any more.
    pub fn drain(&mut self, visit: impl FnMut(u64) -> bool) -> bool {
        match self {
            // A bitmap is small.
            Roots::Tiles(tiles, _) => tiles.each(visit),
            Roots::Pairs(pairs) => pairs.drain(visit),
        }
    }

    /// Calls `visit` with every code there is; nobody else uses the roots. On `false` it ends.
    pub fn each(&self, visit: impl FnMut(u64) -> bool) -> bool {
        match self {
            Roots::Tiles(tiles, _) => tiles.each(visit),
            Roots::Pairs(pairs) => pairs.each(visit),
        }
    }
}

/// The same codes, quotiented.
fn quotiented(tiles: &Tiles, codes: u64, reach: Reach, budget: &Arc<Budget>) -> Option<Pairs> {
    let mut pairs = Pairs::new(reach, budget)?;
    if !pairs.make_room(codes, reach, &Help::default()) {
        return None;
    }
    tiles.each(|code| pairs.insert(code) != Added::Full).then_some(pairs)
}

/// The same codes as a bitmap.
fn bitmap(pairs: &Pairs, budget: &Arc<Budget>) -> Option<Tiles> {
    let tiles = Tiles::new(budget)?;
    pairs.each(|code| tiles.insert(code) != Added::Full).then_some(tiles)
}
