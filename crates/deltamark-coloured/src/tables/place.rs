//! The tokens and the local markings of a place that have occurred so far, numbered.
//!
//! In: tokens, and multisets of tokens. Out: their numbers. What stays true: a number never changes its
//! meaning; marking 0 is the empty one; equal markings have equal numbers.
//!
//! ```text
//! token k      components  [ code | code ]
//! marking m    list        [ bytes | gap·2 | gap·2+1 n | gap·2 ]    ascending; a gap is the number of tokens skipped
//!                                                                   since the last one, and n > 1 the multiplicity
//!              filter      bit (k mod 64) set for each token k: rules out most absent tokens
//!              start       of the list
//!              hash        sum of count × coefficient over all tokens
//! ```
//! All numbers of a list are varints. So a token mostly takes a byte, and a marking 24 to 28 bytes more, the hash index
//! included. Hashes are of what tokens are, not of their numbers: they are the same in every run.
//!
//! Reads take no lock. Appending takes one: one for the tokens and one for the markings of a place.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use deltamark_core::hash::mix;
use deltamark_core::varint;

use crate::tables::chunks::{Chunks, Index, Meter};
use crate::tables::values::{Code, Values};

/// The maximum number of tokens of a place, so that a doubled gap fits in 32 bits.
const MOST_TOKENS: u32 = 1 << 31;

/// The tokens and markings of one place.
pub(crate) struct PlaceTable {
    arity: usize,
    seed: u64,
    components: Chunks<AtomicU64>,
    token_hashes: Chunks<AtomicU64>,
    tokens: Mutex<Tokens>,
    starts: Chunks<AtomicU32>,
    lists: Chunks<AtomicU8>,
    /// Filter and hash of each marking.
    summaries: Chunks<AtomicU64>,
    markings: Mutex<Markings>,
    token_count: AtomicU32,
    marking_count: AtomicU32,
}

struct Tokens {
    index: Index,
}

struct Markings {
    used: usize,
    index: Index,
    list: Vec<u8>,
}

impl PlaceTable {
    /// The table of a place whose tokens have this many components, with the empty marking.
    pub fn new(number: usize, arity: usize, meter: &Meter) -> Self {
        let table = PlaceTable {
            arity,
            seed: mix(number as u64 + 1),
            components: Chunks::new(meter),
            token_hashes: Chunks::new(meter),
            tokens: Mutex::new(Tokens { index: Index::new(meter) }),
            starts: Chunks::new(meter),
            lists: Chunks::new(meter),
            summaries: Chunks::new(meter),
            markings: Mutex::new(Markings { used: 0, index: Index::new(meter), list: Vec::new() }),
            token_count: AtomicU32::new(0),
            marking_count: AtomicU32::new(0),
        };
        assert_eq!(table.marking(&[]), 0);
        table
    }

    /// The number of components of a token.
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// The number of tokens so far.
    #[inline]
    pub fn token_count(&self) -> u32 {
        self.token_count.load(Relaxed)
    }

    /// The number of markings so far.
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
        assert!(number < MOST_TOKENS, "memory ends before the tokens of a place");
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

    /// What each token of this number adds to the hash of a marking and of a state: odd, so that no count is lost.
    #[inline]
    pub fn coefficient(&self, token: u32) -> u64 {
        self.token_hashes.get(token as usize) | 1
    }

    #[inline]
    fn filter(&self, marking: u32) -> u64 {
        self.summaries.get(2 * marking as usize)
    }

    /// What a marking adds to the hash of a state.
    #[inline]
    pub fn marking_hash(&self, marking: u32) -> u64 {
        self.summaries.get(2 * marking as usize + 1)
    }

    /// The number of the marking with these tokens, ascending, each at least once.
    pub fn marking(&self, tokens: &[(u32, u32)]) -> u32 {
        let hash = tokens.iter().fold(0, |hash: u64, &(token, count)| {
            hash.wrapping_add(self.coefficient(token).wrapping_mul(u64::from(count)))
        });
        self.marking_of_hash(tokens, hash)
    }

    /// The same for tokens whose hash is known.
    pub fn marking_of_hash(&self, tokens: &[(u32, u32)], hash: u64) -> u32 {
        let mut markings = self.markings.lock().unwrap_or_else(PoisonError::into_inner);
        let filter = describe(tokens, &mut markings.list);
        if let Some(number) = self.known(&markings, hash) {
            return number;
        }
        let Markings { used, index, list } = &mut *markings;
        let number = self.marking_count.load(Relaxed);
        assert!(number < u32::MAX, "memory ends before the markings of a place");
        let mut bytes = Vec::with_capacity(5);
        varint::write(list.len() as u64, &mut bytes);
        let len = bytes.len() + list.len();
        let start = self.lists.room(*used, len).expect("memory ends before the markings of a place");
        for (byte, &value) in self.lists.slice(start, len).iter().zip(bytes.iter().chain(list.iter())) {
            byte.store(value, Relaxed);
        }
        *used = start + len;
        let start = u32::try_from(start).expect("memory ends before the markings of a place");
        self.starts.room(number as usize, 1).expect("memory ends before the markings of a place");
        self.starts.at(number as usize).store(start, Relaxed);
        self.summaries.room(2 * number as usize, 2).expect("memory ends before the markings of a place");
        self.summaries.at(2 * number as usize).store(filter, Relaxed);
        self.summaries.at(2 * number as usize + 1).store(hash, Relaxed);
        index.add(hash, number, |known| self.marking_hash(known));
        self.marking_count.store(number + 1, Relaxed);
        number
    }

    /// The number of the marking with these tokens, whose hash is known, if it has one.
    pub fn find_marking(&self, tokens: &[(u32, u32)], hash: u64) -> Option<u32> {
        let mut markings = self.markings.lock().unwrap_or_else(PoisonError::into_inner);
        describe(tokens, &mut markings.list);
        self.known(&markings, hash)
    }

    fn known(&self, markings: &Markings, hash: u64) -> Option<u32> {
        let list = &markings.list;
        markings.index.find(hash, |number| {
            let known = self.list(number);
            known.len() == list.len() && known.iter().zip(list).all(|(one, &other)| one.load(Relaxed) == other)
        })
    }

    #[inline]
    fn list(&self, marking: u32) -> &[AtomicU8] {
        self.list_of(self.starts.get(marking as usize))
    }

    /// What the search for bindings reads of a marking.
    #[inline]
    pub fn view(&self, marking: u32) -> View {
        let (set, start) = (self.filter(marking), self.starts.get(marking as usize));
        View { set, start, exact: self.token_count() <= 64 }
    }

    /// Loads a byte of a marking's list, so that it is in the cache when it is read; returns the byte so that
    /// the load is not optimised away.
    #[inline]
    pub fn touch(&self, view: View) -> u8 {
        self.lists.at(view.start as usize).load(Relaxed)
    }

    #[inline]
    fn list_of(&self, start: u32) -> &[AtomicU8] {
        let mut bytes = self.lists.rest(start as usize).iter();
        let len = read_number(&mut bytes).unwrap_or(0);
        &bytes.as_slice()[..len as usize]
    }

    /// The tokens of a viewed marking, as [`tokens`](Self::tokens) gives them.
    #[inline]
    pub fn tokens_of(&self, view: View) -> TokenIter<'_> {
        TokenIter { bytes: self.list_of(view.start).iter(), next: 0 }
    }

    /// An upper bound on the number of distinct tokens.
    #[inline]
    pub fn length_of(&self, view: View) -> usize {
        self.list_of(view.start).len()
    }

    /// The multiplicity of a token.
    #[inline]
    pub fn count_of(&self, view: View, token: u32) -> u32 {
        count_among(self.tokens_of(view), token)
    }

    /// The tokens of a marking with their multiplicities, ascending by token.
    #[inline]
    pub fn tokens(&self, marking: u32) -> TokenIter<'_> {
        TokenIter { bytes: self.list(marking).iter(), next: 0 }
    }

    /// An upper bound on the number of distinct tokens of a marking.
    #[inline]
    pub fn length(&self, marking: u32) -> usize {
        self.list(marking).len()
    }

    /// The multiplicity of a token in a marking.
    #[inline]
    pub fn count(&self, marking: u32, token: u32) -> u32 {
        if self.filter(marking) >> (token & 63) & 1 == 0 {
            return 0;
        }
        self.count_in_list(marking, token)
    }

    /// Whether a marking holds at least `count` copies of a token, `count` being positive.
    #[inline]
    pub fn holds(&self, marking: u32, token: u32, count: u32) -> bool {
        if self.filter(marking) >> (token & 63) & 1 == 0 {
            return false;
        }
        // With at most 64 tokens each bit is that of one token.
        (count <= 1 && self.token_count() <= 64) || self.count_in_list(marking, token) >= count
    }

    /// The multiplicity of a token in a marking, bypassing the filter.
    fn count_in_list(&self, marking: u32, token: u32) -> u32 {
        count_among(self.tokens(marking), token)
    }

    /// The bytes of the tokens, and of the markings.
    pub fn bytes(&self) -> (u64, u64) {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner).index.bytes();
        let markings = self.markings.lock().unwrap_or_else(PoisonError::into_inner).index.bytes();
        (
            tokens + self.components.bytes() + self.token_hashes.bytes(),
            markings + self.starts.bytes() + self.lists.bytes() + self.summaries.bytes(),
        )
    }
}

/// The filter of a marking, and where its list begins.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Its tokens, modulo 64.
    pub set: u64,
    /// Where its list begins.
    start: u32,
    /// Whether the set is exact: no token of the place has a number above 63.
    pub exact: bool,
}

/// The multiplicity of a token in a list.
#[inline]
fn count_among(tokens: TokenIter<'_>, token: u32) -> u32 {
    for (known, count) in tokens {
        if known >= token {
            return if known == token { count } else { 0 };
        }
    }
    0
}

/// Writes the list of a marking, and returns its filter.
fn describe(tokens: &[(u32, u32)], list: &mut Vec<u8>) -> u64 {
    list.clear();
    let (mut next, mut filter) = (0, 0);
    for &(token, count) in tokens {
        debug_assert!(count > 0);
        filter |= 1 << (token & 63);
        varint::write(u64::from((token - next) << 1 | u32::from(count > 1)), list);
        if count > 1 {
            varint::write(u64::from(count), list);
        }
        next = token + 1;
    }
    filter
}

/// Takes a varint off the front; `None` at the end.
#[inline]
fn read_number(bytes: &mut std::slice::Iter<'_, AtomicU8>) -> Option<u32> {
    let first = u32::from(bytes.next()?.load(Relaxed));
    if first < 128 {
        return Some(first);
    }
    let (mut number, mut shift) = (first & 127, 7);
    for byte in bytes {
        let byte = u32::from(byte.load(Relaxed));
        number |= (byte & 127) << shift;
        if byte < 128 {
            break;
        }
        shift += 7;
    }
    Some(number)
}

/// Iterates over the tokens of a marking.
pub(crate) struct TokenIter<'a> {
    bytes: std::slice::Iter<'a, AtomicU8>,
    /// The token that a gap of 0 denotes.
    next: u32,
}

impl Iterator for TokenIter<'_> {
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        let word = read_number(&mut self.bytes)?;
        let token = self.next + (word >> 1);
        self.next = token + 1;
        let count = if word & 1 == 0 { 1 } else { read_number(&mut self.bytes).unwrap_or(1) };
        Some((token, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markings_are_numbered_once_and_read_back() {
        let values = Values::new(&Meter::default());
        let table = PlaceTable::new(3, 2, &Meter::default());
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
    fn long_gaps_and_large_counts_are_read_back() {
        let values = Values::new(&Meter::default());
        let table = PlaceTable::new(0, 1, &Meter::default());
        for token in 0..40_000 {
            assert_eq!(table.token(&values, &[token]), token as u32);
        }
        let lists: [&[(u32, u32)]; 4] = [
            &[(0, 1), (63, 1), (64, 127), (127, 128), (128, 16_383)],
            &[(127, 16_384), (20_000, 1), (39_999, u32::MAX)],
            &[(39_998, 2), (39_999, 3)],
            &[],
        ];
        for list in lists {
            let number = table.marking(list);
            assert_eq!(table.tokens(number).collect::<Vec<_>>(), list);
            assert_eq!(table.find_marking(list, table.marking_hash(number)), Some(number));
            assert!(list.iter().all(|&(token, count)| table.count(number, token) == count));
        }
    }

    #[test]
    fn threads_that_meet_the_same_markings_get_the_same_numbers() {
        let values = Values::new(&Meter::default());
        let table = PlaceTable::new(1, 1, &Meter::default());
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
