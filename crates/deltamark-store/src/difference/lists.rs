//! Deduplicated lists of changes.
//!
//! In: the bytes of a list. Out: its number, and from the number the bytes. Invariants: a list has
//! one number, which never changes; numbers are 0, 1, 2 …; all memory was granted by the budget.
//!
//! An action mostly adds the same to the same slots everywhere, so a model has few lists, and a
//! state needs a byte or two to refer to its own.
//!
//! # Layout in memory
//! ```text
//! bytes   [list 0][list 1][list 2] … slack
//! ends           ▲       ▲       ▲            8 bytes a list
//! changes [changes of list 0][of list 1] …    read beforehand, 8 bytes each
//! table   . 2 . . 0 1 .                       hash -> number plus one, half full at most
//! ```
//! Decoding a list depends on the length of states. It is decoded in advance only if all states
//! have the same length.

use crate::difference::patch::{Change, Changes, SLACK};
use deltamark_core::{Budget, hash::mix};
use std::sync::Arc;

/// The longest list that is worth it.
const LONGEST: usize = 64;
/// The most lists: a varint of two bytes names one.
const MOST: usize = 1 << 14;

/// Numbered lists of changes.
pub(crate) struct Lists {
    budget: Arc<Budget>,
    bytes: Vec<u8>,
    /// Where the bytes and the changes of each list end.
    ends: Vec<(u32, u32)>,
    changes: Vec<Change>,
    table: Vec<u16>,
    /// Bytes that the budget granted.
    granted: u64,
}

impl Lists {
    /// No lists.
    pub fn new(budget: Arc<Budget>) -> Self {
        Lists { budget, bytes: Vec::new(), ends: Vec::new(), changes: Vec::new(), table: Vec::new(), granted: 0 }
    }

    /// The bytes it holds.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    fn hash(list: &[u8]) -> u64 {
        list.chunks(8).fold(list.len() as u64, |hash, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(hash ^ u64::from_le_bytes(word)).wrapping_add(hash)
        })
    }

    /// Where the list is in the table, or where it would be.
    fn place(&self, list: &[u8]) -> usize {
        let mask = self.table.len() - 1;
        let mut at = mix(Self::hash(list)) as usize & mask;
        while self.table[at] != 0 {
            let (held, len) = self.get(u64::from(self.table[at]) - 1);
            if held[..len] == *list {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    /// The number of a list. One that is new gets one if there are fewer than `most` lists, the
    /// budget has room, and the list is not too long. `slots` is the length of all states, if
    /// they have the same.
    pub fn number(&mut self, list: &[u8], most: u64, slots: Option<usize>) -> Option<u64> {
        if list.len() > LONGEST {
            return None;
        }
        if !self.table.is_empty() {
            let number = self.table[self.place(list)];
            if number != 0 {
                return Some(u64::from(number) - 1);
            }
        }
        let number = self.ends.len();
        if number as u64 >= most || number >= MOST || !self.make_room(list.len()) {
            return None;
        }
        let place = self.place(list);
        self.bytes.truncate(self.bytes.len().saturating_sub(SLACK));
        self.bytes.extend_from_slice(list);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(&[0; SLACK]);
        if let Some(slots) = slots {
            self.changes.extend(Changes::new(&self.bytes[end - list.len()..], list.len(), slots));
        }
        self.ends.push((end as u32, self.changes.len() as u32));
        self.table[place] = number as u16 + 1;
        Some(number as u64)
    }

    /// Makes room for one more list. `false` means that the budget has none.
    fn make_room(&mut self, len: usize) -> bool {
        let bytes = self.bytes.len().max(SLACK) + len;
        // A change takes a byte at least.
        let changes = self.changes.len() + len;
        let lists = self.ends.len() + 1;
        let (byte_room, change_room) = (self.bytes.capacity(), self.changes.capacity());
        if bytes <= byte_room && changes <= change_room && lists * 2 <= self.table.len() {
            return true;
        }
        let byte_room = if bytes <= byte_room { byte_room } else { (bytes * 3 / 2).max(256) };
        let change_room = if changes <= change_room { change_room } else { (changes * 3 / 2).max(64) };
        let places = if lists * 2 <= self.table.len() { self.table.len() } else { (self.table.len() * 2).max(64) };
        let wanted = (byte_room + change_room * size_of::<Change>() + places / 2 * 8 + places * 2) as u64;
        // Old and new ones are there at the same time, for a moment.
        if !self.budget.request(wanted) {
            return false;
        }
        self.budget.release(self.granted);
        self.granted = wanted;
        self.bytes.reserve_exact(byte_room - self.bytes.len());
        self.changes.reserve_exact(change_room - self.changes.len());
        self.ends.reserve_exact(places / 2 - self.ends.len());
        if places != self.table.len() {
            self.table = vec![0; places];
            for number in 0..self.ends.len() {
                let (list, len) = self.get(number as u64);
                let place = self.place(&list[..len]);
                self.table[place] = number as u16 + 1;
            }
        }
        true
    }

    /// The bytes from the beginning of a list on, with [`SLACK`] behind it, and its length.
    #[inline(always)]
    pub fn get(&self, number: u64) -> (&[u8], usize) {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1].0 as usize };
        (&self.bytes[start..], self.ends[number].0 as usize - start)
    }

    /// The changes of a list that was read beforehand.
    #[inline(always)]
    pub fn changes(&self, number: u64) -> &[Change] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1].1 as usize };
        &self.changes[start..self.ends[number].1 as usize]
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        self.budget.release(self.granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_one_number_and_comes_back() {
        let budget = Arc::new(Budget::unlimited());
        let mut lists = Lists::new(Arc::clone(&budget));
        let list = |number: u64| -> Vec<u8> { (0..number % 7).map(|byte| (number >> (byte * 3)) as u8).collect() };
        let mut known: Vec<Vec<u8>> = Vec::new();
        let count = if cfg!(miri) { 60 } else { 4000 };
        for number in (0..count).chain(0..count) {
            let list = list(number);
            let expected = known.iter().position(|held| *held == list).unwrap_or_else(|| {
                known.push(list.clone());
                known.len() - 1
            });
            assert_eq!(lists.number(&list, u64::MAX, Some(9)), Some(expected as u64));
            let (held, len) = lists.get(expected as u64);
            assert_eq!(held[..len], list);
            assert!(held.len() >= len + SLACK);
            let read: Vec<Change> = Changes::new(held, len, 9).collect();
            assert_eq!(lists.changes(expected as u64), read);
            assert_eq!(lists.granted(), budget.used());
        }
        let held = lists.bytes.capacity()
            + (lists.changes.capacity() + lists.ends.capacity()) * 8
            + lists.table.capacity() * 2;
        assert_eq!(held as u64, budget.used());
        drop(lists);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn there_are_only_as_many_as_wanted() {
        let mut lists = Lists::new(Arc::new(Budget::unlimited()));
        for number in 0..if cfg!(miri) { 30 } else { 20_000u32 } {
            let listed = lists.number(&number.to_le_bytes(), if number < 10 { 5 } else { u64::MAX }, None);
            assert_eq!(listed.is_some(), number < 5 || (10..10 + MOST as u32 - 5).contains(&number), "{number}");
        }
        assert_eq!(lists.number(&[0; LONGEST + 1], u64::MAX, None), None);
        let mut refused = Lists::new(Arc::new(Budget::new(100)));
        assert_eq!((refused.number(&[1], u64::MAX, None), refused.granted()), (None, 0));
    }
}
