//! Pairs of numbers in just enough bits: the keys of inner nodes of `compact`.
//!
//! In: pairs, each written once. Out: the pair of a number. What stays true: a pair takes as many
//! bits as the largest number of either side needs now; pairs that were written can be read while
//! others are.
//!
//! # Layout in memory
//! ```text
//! words   [ #0 l r | #1 l r | #2 l  r | … ]      pairs side by side, across words of 64 bits
//! ```
//!
//! # Growth
//! When numbers of a side get a bit longer, all pairs are moved apart, from the last to the first: the
//! new place of a pair lies behind all pairs before it, so nothing is written over that was not
//! read. No second copy is needed.
//!
//! # Invariants
//! * N1: bits of pairs that were not written are 0. So one is written by setting bits, and several
//!   threads can write to one word.
//! * N2: widths change while nobody else uses the pairs.

use crate::arena::Arena;
use crate::dense::{Keys, Table, extend};
use deltamark_core::Budget;
use std::sync::atomic::{AtomicU64, Ordering};

/// Inner nodes: pairs, each once, numbered.
pub(crate) type Nodes = Table<2, Narrow>;

/// Pairs of numbers.
pub(crate) struct Narrow {
    words: Arena,
    /// Bits of the numbers on either side.
    left: u32,
    right: u32,
    granted: u64,
}

/// Bytes of so many pairs of so many bits, and of a word behind them that reads may touch.
fn bytes(pairs: u64, bits: u32) -> u64 {
    (pairs * u64::from(bits)).div_ceil(64) * 8 + 8
}

impl Narrow {
    /// Whether pairs of numbers below these can be written.
    #[inline]
    pub fn covers(&self, lefts: u64, rights: u64) -> bool {
        lefts <= 1 << self.left && rights <= 1 << self.right
    }

    /// Makes place for pairs of numbers below these, `len` pairs being there (N2). Says whether
    /// there was memory.
    #[must_use]
    pub fn widen(&mut self, lefts: u64, rights: u64, len: u64, budget: &Budget) -> bool {
        let bits = |count: u64| count.max(1).next_power_of_two().ilog2();
        let (left, right) = (self.left.max(bits(lefts)), self.right.max(bits(rights)));
        debug_assert!(left <= 32 && right <= 32);
        if !extend(&self.words, 8, &mut self.granted, bytes(len, left + right), budget) {
            return false;
        }
        for number in (0..len).rev() {
            let [first, second] = self.get(number as u32);
            // What it leaves behind is in the new place of a pair: of this one, or of one before.
            self.write(number, left + right, u64::from(first) | u64::from(second) << left);
        }
        (self.left, self.right) = (left, right);
        true
    }

    #[inline(always)]
    fn word(&self, at: u64) -> &AtomicU64 {
        // SAFETY: words up to one behind the last pair have addresses, aligned, as items of 8
        // bytes; zero is valid, and they are used as atomics only.
        unsafe { &*self.words.view().address::<2>(at).cast::<AtomicU64>() }
    }

    /// Writes a pair of so many bits over what was there; nobody else uses the pairs.
    fn write(&self, number: u64, bits: u32, value: u64) {
        if bits == 0 {
            return;
        }
        let ones = u64::MAX >> (64 - bits);
        let (at, shift) = place(number, bits);
        let change = |at: u64, clear: u64, value: u64| {
            let word = self.word(at);
            word.store(word.load(Ordering::Relaxed) & !clear | value, Ordering::Relaxed);
        };
        change(at, ones << shift, value << shift);
        if shift + bits > 64 {
            change(at + 1, ones >> (64 - shift), value >> (64 - shift));
        }
    }
}

/// The word in which a pair of so many bits begins, and where in it.
#[inline(always)]
fn place(number: u64, bits: u32) -> (u64, u32) {
    let bit = number * u64::from(bits);
    (bit / 64, (bit % 64) as u32)
}

impl Keys<2> for Narrow {
    const TIGHT: bool = true;

    fn new() -> Self {
        Narrow { words: Arena::new(2), left: 0, right: 0, granted: 0 }
    }

    fn bytes(&self) -> u64 {
        self.granted
    }

    #[inline(always)]
    fn get(&self, number: u32) -> [u32; 2] {
        let bits = self.left + self.right;
        let (at, shift) = place(number.into(), bits);
        let mut value = self.word(at).load(Ordering::Relaxed) >> shift;
        if shift + bits > 64 {
            value |= self.word(at + 1).load(Ordering::Relaxed) << (64 - shift);
        }
        [
            value as u32 & ((1u64 << self.left) - 1) as u32,
            (value >> self.left) as u32 & ((1u64 << self.right) - 1) as u32,
        ]
    }

    #[inline(always)]
    fn put(&self, number: u64, [first, second]: [u32; 2]) {
        let bits = self.left + self.right;
        debug_assert!(u64::from(first) >> self.left == 0 && u64::from(second) >> self.right == 0);
        let value = u64::from(first) | u64::from(second) << self.left;
        let (at, shift) = place(number, bits);
        // N1. Others see the bits once they are told the number.
        self.word(at).fetch_or(value << shift, Ordering::Relaxed);
        if shift + bits > 64 {
            self.word(at + 1).fetch_or(value >> (64 - shift), Ordering::Relaxed);
        }
    }

    #[inline]
    fn has_room(&self, keys: u64) -> bool {
        bytes(keys, self.left + self.right) <= self.granted
    }

    fn make_room(&mut self, keys: u64, budget: &Budget) -> bool {
        extend(&self.words, 8, &mut self.granted, bytes(keys, self.left + self.right), budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::key_hash;
    use crate::help::Help;
    use crate::index::BASELINE;
    use std::collections::HashMap;

    const COUNT: u64 = if cfg!(miri) { 200 } else { 60_000 };

    /// Pairs whose sides grow by and by, each at its own pace, some of them twice.
    fn pair(step: u64) -> [u32; 2] {
        let step = if step % 5 == 4 { step / 2 } else { step };
        [(step * step * 7 % (step + 1)) as u32, (step % (step / 40 + 1)) as u32]
    }

    /// Makes room for one more pair, and for numbers as long as its own.
    fn make_room(nodes: &mut Nodes, [left, right]: [u32; 2], budget: &Budget) -> bool {
        let (lefts, rights, len) = (u64::from(left) + 1, u64::from(right) + 1, nodes.len());
        (nodes.keys.covers(lefts, rights) || nodes.keys.widen(lefts, rights, len, budget))
            && (nodes.has_room(1) || nodes.make_room(1, budget, &Help::default()))
    }

    #[test]
    fn numbers_and_pairs_stay_while_both_sides_widen() {
        let budget = Budget::unlimited();
        let mut nodes = Nodes::new(&budget).expect("there is no limit");
        let mut there: HashMap<[u32; 2], u32> = HashMap::new();
        let mut order = Vec::new();
        for step in 0..COUNT {
            let pair = pair(step);
            assert!(make_room(&mut nodes, pair, &budget));
            let expected = *there.entry(pair).or_insert_with(|| {
                order.push(pair);
                order.len() as u32 - 1
            });
            let before = nodes.len();
            let (number, new) = nodes.intern(BASELINE, pair, key_hash(pair));
            assert_eq!((number, new), (expected, nodes.len() > before));
            assert_eq!(nodes.bytes(), budget.used());
        }
        for (number, &pair) in order.iter().enumerate() {
            assert_eq!(nodes.get(number as u32), pair);
            assert_eq!(nodes.find(BASELINE, pair), Some(number as u32));
        }
        assert_eq!(nodes.find(BASELINE, [u32::MAX, 1]), None);
        if !cfg!(miri) {
            // 16 and 11 bits, and index entries of 4 bytes at seven tenths or more.
            let each = nodes.bytes() as f64 / order.len() as f64;
            assert!(each < 10.0, "{each} bytes a pair");
        }
    }

    #[test]
    fn without_memory_nothing_is_added_and_all_is_found() {
        let budget = Budget::new(20_000);
        let mut nodes = Nodes::new(&budget).expect("a few bytes");
        let pair = |step: u64| [step as u32, (step / 3) as u32];
        let mut added = 0;
        while make_room(&mut nodes, pair(added), &budget) {
            nodes.intern(BASELINE, pair(added), key_hash(pair(added)));
            added += 1;
        }
        assert!(added > 1000 && budget.used() <= 20_000, "{added}");
        assert!((0..added).all(|number| nodes.find(BASELINE, pair(number)) == Some(number as u32)));
    }

    #[test]
    fn threads_give_every_pair_one_number() {
        let budget = Budget::unlimited();
        let mut nodes = Nodes::new(&budget).expect("there is no limit");
        // Of 17 and 12 bits, so that pairs lie across words.
        assert!(
            nodes.keys.widen(1 << 17, 1 << 12, 0, &budget) && nodes.make_room(3 * COUNT, &budget, &Help::default())
        );
        let begin = std::sync::Barrier::new(3);
        let told: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let (nodes, begin) = (&nodes, &begin);
            let intern = move |start: u64| {
                begin.wait();
                let number = |step: u64| {
                    let pair = pair((start + step) % COUNT);
                    let (number, _) = nodes.intern(BASELINE, pair, key_hash(pair));
                    assert_eq!(nodes.get(number), pair);
                    number
                };
                let mut told: Vec<u32> = (0..COUNT).map(number).collect();
                told.rotate_right(start as usize);
                told
            };
            let threads: Vec<_> = (0..3).map(|start| scope.spawn(move || intern(start / 2 * 5))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(told[0] == told[1] && told[1] == told[2]);
        let different: std::collections::HashSet<u32> = told[0].iter().copied().collect();
        assert_eq!(different.len() as u64, nodes.len());
    }
}
