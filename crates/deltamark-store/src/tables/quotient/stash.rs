//! Entries that found no line of a quotient table: about one in a hundred.
//!
//! In: keys and payloads. Out: the payloads of a key. Invariant: no entry is lost, even if the
//! budget has no room.

use deltamark_core::{Budget, hash::mix};

/// Entries that found no line: open addressing by their keys, with a load factor of at most 3/4.
#[derive(Default)]
pub(crate) struct Stash {
    /// Key and payload in one word, plus one; 0 is empty.
    table: Vec<u64>,
    len: usize,
    /// How often the largest word is there, which plus one would be 0.
    largest: usize,
    /// Bits of a payload.
    payload_bits: u32,
    /// The bytes the budget granted.
    pub granted: u64,
}

impl Stash {
    /// No entries, of payloads of this many bits.
    pub fn new(payload_bits: u32) -> Self {
        Stash { payload_bits, ..Stash::default() }
    }

    /// The number of entries.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len + self.largest
    }

    fn home(&self, key: u64) -> usize {
        // The number of slots is no power of two.
        ((u128::from(mix(key)) * self.table.len() as u128) >> 64) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.table.len() { 0 } else { at + 1 }
    }

    /// Calls `found` with every payload of a key.
    #[inline]
    pub fn probe(&self, key: u64, mut found: impl FnMut(u64)) {
        let mask = (1 << self.payload_bits) - 1;
        if key == u64::MAX >> self.payload_bits {
            (0..self.largest).for_each(|_| found(mask));
        }
        if self.table.is_empty() {
            return;
        }
        let mut at = self.home(key);
        while let Some(word) = self.table[at].checked_sub(1) {
            if word >> self.payload_bits == key {
                found(word & mask);
            }
            at = self.next(at);
        }
    }

    /// Whether a key has an entry.
    pub fn contains(&self, key: u64) -> bool {
        let mut held = false;
        self.probe(key, |_| held = true);
        held
    }

    /// Adds an entry; `false` means that the budget has no room. An entry that `must` be kept,
    /// because it was in the table before, is kept all the same: a few uncounted bytes are better
    /// than a lost state.
    #[cold]
    pub fn push(&mut self, key: u64, payload: u64, budget: &Budget, must: bool) -> bool {
        let word = key << self.payload_bits | payload;
        if word == u64::MAX {
            self.largest += 1;
            return true;
        }
        if !self.fits(1) && !self.enlarge(1, budget) {
            if !must {
                return false;
            }
            self.resize(self.capacity(1));
        }
        self.place(word);
        true
    }

    /// Makes room for `more` entries. Returns whether the budget has it.
    pub fn reserve(&mut self, more: usize, budget: &Budget) -> bool {
        self.fits(more) || self.enlarge(more, budget)
    }

    fn fits(&self, more: usize) -> bool {
        4 * (self.len + more) <= 3 * self.table.len()
    }

    fn capacity(&self, more: usize) -> usize {
        (self.table.len() / 2 * 3).max((self.len + more) * 4 / 3 + 1).max(16)
    }

    #[cold]
    fn enlarge(&mut self, more: usize, budget: &Budget) -> bool {
        // The old and the new one are there at the same time, for a moment.
        let capacity = self.capacity(more);
        let granted = budget.request(capacity as u64 * 8);
        if granted {
            budget.release(self.granted);
            self.granted = capacity as u64 * 8;
            self.resize(capacity);
        }
        granted
    }

    fn resize(&mut self, capacity: usize) {
        let old = std::mem::replace(&mut self.table, vec![0; capacity]);
        self.len = 0;
        old.iter().filter_map(|held| held.checked_sub(1)).for_each(|word| self.place(word));
    }

    fn place(&mut self, word: u64) {
        let mut at = self.home(word >> self.payload_bits);
        while self.table[at] != 0 {
            at = self.next(at);
        }
        self.table[at] = word + 1;
        self.len += 1;
    }

    /// Key and payload of every entry, in one word.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let held = self.table.iter().filter_map(|held| held.checked_sub(1));
        held.chain(std::iter::repeat_n(u64::MAX, self.largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_kept() {
        let budget = Budget::unlimited();
        for payload_bits in [0, 3, 32] {
            let mut stash = Stash::new(payload_bits);
            let mut words: Vec<u64> = (0..20).chain((0..20).map(|below| u64::MAX - below)).collect();
            for &word in &words {
                let (key, payload) = (word >> payload_bits, word & ((1 << payload_bits) - 1));
                assert_eq!(
                    stash.contains(key),
                    payload_bits > 0 && stash.words().any(|held| held >> payload_bits == key)
                );
                assert!(stash.push(key, payload, &budget, false) && stash.contains(key));
            }
            let mut held: Vec<u64> = stash.words().collect();
            held.sort_unstable();
            words.sort_unstable();
            assert_eq!((stash.len(), held), (words.len(), words));
            assert_eq!(stash.granted, budget.used());
            budget.release(stash.granted);
        }
    }

    #[test]
    fn what_must_be_kept_is_kept_without_a_budget() {
        let (mut stash, budget) = (Stash::new(8), Budget::new(0));
        assert!(!stash.push(1, 2, &budget, false) && !stash.reserve(1, &budget));
        assert!((0..100).all(|key| stash.push(key, key, &budget, true)));
        assert!((0..100).all(|key| stash.contains(key)));
        assert_eq!((stash.len(), stash.granted), (100, 0));
    }
}
