//! The stash of a quotient table: entries that found no line, chained by a hash of their key.
//!
//! In: keys and payloads that found no line. Out: the payloads of a key. Invariant: no entry of the
//! table is lost, even if the budget has no room.

use super::line::Shape;
use deltamark_core::{Budget, hash};

/// Entries that found no line.
#[derive(Default)]
pub(super) struct Stash {
    /// Key and payload, in one word.
    pub entries: Vec<u64>,
    /// For each hash of a key the first entry plus one; then along `next`.
    pub heads: Vec<u32>,
    pub next: Vec<u32>,
    /// The bytes the budget granted.
    pub granted: u64,
}

impl Stash {
    pub fn head(&self, key: u64) -> usize {
        // Any spreading will do; the number of heads is no power of two.
        ((u128::from(hash::mix(key)) * self.heads.len() as u128) >> 64) as usize
    }

    /// Appends an entry; `false` means that the budget has no room. An entry that `must` be
    /// kept, because it was in the table before, is kept all the same: a few bytes that nobody
    /// counts are better than a state that gets lost.
    #[cold]
    pub fn push(&mut self, shape: &Shape, budget: &Budget, key: u64, payload: u64, must: bool) -> bool {
        if self.entries.len() == self.heads.len() && !self.enlarge(shape, budget, 1, must) {
            return false;
        }
        self.link(key, key << shape.payload_bits | payload);
        true
    }

    /// Makes room for `more` entries.
    pub fn reserve(&mut self, shape: &Shape, budget: &Budget, more: usize) -> bool {
        self.heads.len() - self.entries.len() >= more || self.enlarge(shape, budget, more, false)
    }

    #[cold]
    pub fn enlarge(&mut self, shape: &Shape, budget: &Budget, more: usize, must: bool) -> bool {
        let capacity = (self.heads.len() * 5 / 4).max(self.entries.len() + more).max(16);
        let wanted = capacity as u64 * 16;
        // The old and the new one are there at the same time, for a moment.
        let granted = capacity <= u32::MAX as usize && budget.request(wanted);
        if !granted && !must {
            return false;
        }
        let mut grown = Stash {
            entries: Vec::with_capacity(capacity),
            heads: vec![0; capacity],
            next: Vec::with_capacity(capacity),
            granted: if granted { wanted } else { 0 },
        };
        for &entry in &self.entries {
            grown.link(entry >> shape.payload_bits, entry);
        }
        budget.release(self.granted);
        *self = grown;
        true
    }

    pub fn link(&mut self, key: u64, entry: u64) {
        let head = self.head(key);
        self.next.push(std::mem::replace(&mut self.heads[head], self.entries.len() as u32 + 1));
        self.entries.push(entry);
    }

    #[inline]
    pub fn probe(&self, shape: &Shape, key: u64, mut found: impl FnMut(u64)) {
        let mut at = if self.heads.is_empty() { 0 } else { self.heads[self.head(key)] };
        while at != 0 {
            let entry = self.entries[at as usize - 1];
            if entry >> shape.payload_bits == key {
                found(entry & ((1 << shape.payload_bits) - 1));
            }
            at = self.next[at as usize - 1];
        }
    }
}
