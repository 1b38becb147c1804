//! The tokens and the local markings that a place has had so far, each under a number.
//!
//! In: tokens, and multisets of tokens. Out: their numbers. What stays true: numbers are
//! given once and for ever; marking 0 is the empty one; equal markings have equal numbers.
//!
//! ```text
//! token k      components  [ code | code ]          hash: of the components and the place
//! marking m    list        [ k | k | k+MANY | n ]   ascending; a token that lies there n > 1 times
//!                                                   is marked and followed by n
//!              filter      bit (k mod 64) set for each token: most absences are told by it
//!              hash        sum over tokens of n · hash(k), so a step adds to it
//!              head        [ start | len ]
//! ```
//!
//! Reading takes no lock. Appending does, one for the tokens and one for the markings of a place.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use deltamark_core::hash::mix;

use crate::chunks::{Chunks, Index};
use crate::values::{Code, Values};

/// Marks a token that is followed by its multiplicity.
const MANY: u32 = 1 << 31;
const LENGTH_BITS: u32 = 28;

/// The tokens and markings of one place.
pub(crate) struct PlaceTable {
    arity: usize,
    seed: u64,
    components: Chunks<AtomicU64>,
    token_hashes: Chunks<AtomicU64>,
    tokens: Mutex<Tokens>,
    heads: Chunks<AtomicU64>,
    lists: Chunks<AtomicU32>,
    filters: Chunks<AtomicU64>,
    hashes: Chunks<AtomicU64>,
    markings: Mutex<Markings>,
    token_count: AtomicU32,
    marking_count: AtomicU32,
}

#[derive(Default)]
struct Tokens {
    index: Index,
}

#[derive(Default)]
struct Markings {
    used: usize,
    index: Index,
    words: Vec<u32>,
}

impl PlaceTable {
    /// The table of a place whose tokens have this many components, with the empty marking.
    pub fn new(number: usize, arity: usize) -> Self {
        let table = PlaceTable {
            arity,
            seed: mix(number as u64 + 1),
            components: Chunks::new(),
            token_hashes: Chunks::new(),
            tokens: Mutex::default(),
            heads: Chunks::new(),
            lists: Chunks::new(),
            filters: Chunks::new(),
            hashes: Chunks::new(),
            markings: Mutex::default(),
            token_count: AtomicU32::new(0),
            marking_count: AtomicU32::new(0),
        };
        assert_eq!(table.marking(&[]), 0);
        table
    }

    /// How many components a token has.
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// How many tokens have a number.
    #[inline]
    pub fn token_count(&self) -> u32 {
        self.token_count.load(Relaxed)
    }

    /// How many markings have a number.
    #[inline]
    pub fn marking_count(&self) -> u32 {
        self.marking_count.load(Relaxed)
    }

    /// The number of the token with these components.
    pub fn token(&self, values: &Values, components: &[Code]) -> u32 {
        debug_assert_eq!(components.len(), self.arity);
        let hash = mix(values.hash_elements(components) ^ self.seed);
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |number: u32| self.components(number).zip(components).all(|(one, &other)| one == other);
        if let Some(number) = tokens.index.find(hash, same) {
            return number;
        }
        let number = self.token_count.load(Relaxed);
        assert!(number < MANY, "memory ends before the tokens of a place");
        let first = number as usize * self.arity;
        for (offset, &code) in components.iter().enumerate() {
            self.components.room(first + offset, 1).expect("memory ends before the tokens of a place");
            self.components.at(first + offset).store(code as u64, Relaxed);
        }
        self.token_hashes.room(number as usize, 1).expect("memory ends before the tokens of a place");
        self.token_hashes.at(number as usize).store(hash, Relaxed);
        tokens.index.add(hash, number, |known| self.token_hashes.get(known as usize));
        self.token_count.store(number + 1, Relaxed);
        number
    }

    /// The components of a token.
    pub fn components(&self, token: u32) -> impl Iterator<Item = Code> + '_ {
        let first = token as usize * self.arity;
        (first..first + self.arity).map(|at| self.components.get(at) as Code)
    }

    /// One component of a token.
    #[inline]
    pub fn component(&self, token: u32, index: usize) -> Code {
        self.components.get(token as usize * self.arity + index) as Code
    }

    /// What one such token adds to the hash of a state.
    #[inline]
    pub fn token_hash(&self, token: u32) -> u64 {
        self.token_hashes.get(token as usize)
    }

    /// The number of the marking with these tokens, ascending, each at least once.
    pub fn marking(&self, tokens: &[(u32, u32)]) -> u32 {
        let mut markings = self.markings.lock().unwrap_or_else(PoisonError::into_inner);
        let (hash, filter) = self.describe(tokens, &mut markings.words);
        if let Some(number) = self.known(&markings, hash) {
            return number;
        }
        let Markings { used, index, words } = &mut *markings;
        let number = self.marking_count.load(Relaxed);
        assert!(number < u32::MAX, "memory ends before the markings of a place");
        let start = self.lists.room(*used, words.len()).expect("memory ends before the markings of a place");
        for (word, &value) in self.lists.slice(start, words.len()).iter().zip(words.iter()) {
            word.store(value, Relaxed);
        }
        *used = start + words.len();
        let head = (start as u64) << LENGTH_BITS | words.len() as u64;
        for (row, value) in [(&self.heads, head), (&self.filters, filter), (&self.hashes, hash)] {
            row.room(number as usize, 1).expect("memory ends before the markings of a place");
            row.at(number as usize).store(value, Relaxed);
        }
        index.add(hash, number, |known| self.hashes.get(known as usize));
        self.marking_count.store(number + 1, Relaxed);
        number
    }

    /// The number of the marking with these tokens, if it has one.
    pub fn find_marking(&self, tokens: &[(u32, u32)]) -> Option<u32> {
        let mut markings = self.markings.lock().unwrap_or_else(PoisonError::into_inner);
        let (hash, _) = self.describe(tokens, &mut markings.words);
        self.known(&markings, hash)
    }

    /// Writes the list of a marking, and says its hash and filter.
    fn describe(&self, tokens: &[(u32, u32)], words: &mut Vec<u32>) -> (u64, u64) {
        words.clear();
        let (mut hash, mut filter) = (0u64, 0);
        for &(token, count) in tokens {
            debug_assert!(count > 0);
            hash = hash.wrapping_add(self.token_hash(token).wrapping_mul(u64::from(count)));
            filter |= 1 << (token & 63);
            if count == 1 { words.push(token) } else { words.extend([token | MANY, count]) }
        }
        (hash, filter)
    }

    fn known(&self, markings: &Markings, hash: u64) -> Option<u32> {
        let words = &markings.words;
        markings.index.find(hash, |number| {
            let known = self.list(number);
            known.len() == words.len() && known.iter().zip(words).all(|(one, &other)| one.load(Relaxed) == other)
        })
    }

    #[inline]
    fn list(&self, marking: u32) -> &[AtomicU32] {
        let head = self.heads.get(marking as usize);
        self.lists.slice((head >> LENGTH_BITS) as usize, (head & ((1 << LENGTH_BITS) - 1)) as usize)
    }

    /// The tokens of a marking with how often each lies there, ascending by token.
    #[inline]
    pub fn tokens(&self, marking: u32) -> TokenIter<'_> {
        TokenIter { words: self.list(marking).iter() }
    }

    /// An upper bound for how many distinct tokens a marking has.
    #[inline]
    pub fn length(&self, marking: u32) -> usize {
        (self.heads.get(marking as usize) & ((1 << LENGTH_BITS) - 1)) as usize
    }

    /// How often a token lies in a marking.
    #[inline]
    pub fn count(&self, marking: u32, token: u32) -> u32 {
        if self.filters.get(marking as usize) >> (token & 63) & 1 == 0 {
            return 0;
        }
        self.count_in_list(marking, token)
    }

    /// Whether a token lies in a marking at least so often, which is at least once.
    #[inline]
    pub fn holds(&self, marking: u32, token: u32, count: u32) -> bool {
        if self.filters.get(marking as usize) >> (token & 63) & 1 == 0 {
            return false;
        }
        // With few tokens a bit stands for one of them only.
        (count <= 1 && self.token_count() <= 64) || self.count_in_list(marking, token) >= count
    }

    fn count_in_list(&self, marking: u32, token: u32) -> u32 {
        for (known, count) in self.tokens(marking) {
            if known >= token {
                return if known == token { count } else { 0 };
            }
        }
        0
    }

    /// What a marking adds to the hash of a state.
    #[inline]
    pub fn hash(&self, marking: u32) -> u64 {
        self.hashes.get(marking as usize)
    }

    /// The bytes of the tokens, and of the markings.
    pub fn bytes(&self) -> (u64, u64) {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner).index.bytes();
        let markings = self.markings.lock().unwrap_or_else(PoisonError::into_inner).index.bytes();
        (
            tokens + self.components.bytes() + self.token_hashes.bytes(),
            markings + self.heads.bytes() + self.lists.bytes() + self.filters.bytes() + self.hashes.bytes(),
        )
    }
}

/// Walks along the tokens of a marking.
pub(crate) struct TokenIter<'a> {
    words: std::slice::Iter<'a, AtomicU32>,
}

impl Iterator for TokenIter<'_> {
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        let word = self.words.next()?.load(Relaxed);
        if word & MANY == 0 {
            return Some((word, 1));
        }
        let count = self.words.next().map_or(1, |count| count.load(Relaxed));
        Some((word & !MANY, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markings_are_numbered_once_and_read_back() {
        let values = Values::new();
        let table = PlaceTable::new(3, 2);
        let tokens: Vec<u32> = (0..200).map(|k| table.token(&values, &[k, -k])).collect();
        assert_eq!(tokens, (0..200).collect::<Vec<_>>());
        assert_eq!(table.components(77).collect::<Vec<_>>(), [77, -77]);
        let lists: Vec<Vec<(u32, u32)>> =
            (1..100u32).map(|n| (0..n).map(|k| (k * 2, 1 + (k * n) % 3)).collect()).collect();
        let numbers: Vec<u32> = lists.iter().map(|list| table.marking(list)).collect();
        for (list, &number) in lists.iter().zip(&numbers) {
            assert_eq!(table.marking(list), number);
            assert_eq!(table.tokens(number).collect::<Vec<_>>(), *list);
            for &(token, count) in list {
                assert_eq!(table.count(number, token), count);
                assert_eq!(table.count(number, token + 1), 0);
            }
        }
        assert_eq!(table.marking_count(), 100);
    }

    #[test]
    fn the_hash_of_a_marking_is_the_sum_of_its_tokens() {
        let values = Values::new();
        let table = PlaceTable::new(0, 1);
        let (a, b) = (table.token(&values, &[7]), table.token(&values, &[8]));
        let marking = table.marking(&[(a, 2), (b, 1)]);
        let sum = table.token_hash(a).wrapping_mul(2).wrapping_add(table.token_hash(b));
        assert_eq!(table.hash(marking), sum);
    }

    #[test]
    fn threads_that_meet_the_same_markings_get_the_same_numbers() {
        let values = Values::new();
        let table = PlaceTable::new(1, 1);
        let numbers: Vec<Vec<(u32, u32)>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u32)
                .map(|thread| {
                    let (values, table) = (&values, &table);
                    scope.spawn(move || {
                        let work = |step: u32| {
                            // Each thread in an order of its own.
                            let which = (step * (2 * thread + 1)) % 1024;
                            let mut tokens: Vec<u32> = [which % 97, 100 + which / 97]
                                .iter()
                                .map(|&k| table.token(values, &[i64::from(k)]))
                                .collect();
                            tokens.sort_unstable();
                            let list: Vec<(u32, u32)> =
                                tokens.into_iter().map(|token| (token, 1 + which % 2)).collect();
                            let number = table.marking(&list);
                            assert_eq!(table.tokens(number).collect::<Vec<_>>(), list);
                            (which, number)
                        };
                        (0..1024).map(work).collect()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread fails")).collect()
        });
        let sorted = |list: &Vec<(u32, u32)>| {
            let mut list = list.clone();
            list.sort_unstable();
            list
        };
        assert!(numbers.iter().all(|list| sorted(list) == sorted(&numbers[0])));
        assert_eq!(table.marking_count(), 1025);
    }
}
