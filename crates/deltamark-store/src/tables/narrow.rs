//! Bit-packed keys of a few words: the roots and nodes of `tree`, the inner nodes of `compact`.
//!
//! In: keys, each written once. Out: the key of a number. Invariants: each word of a key takes as
//! many bits as the largest at its position may currently need; written keys can be read while
//! others are written.
//!
//! # Layout in memory
//! ```text
//! words   [ #0 l r | #1 l r | #2 l  r | … ]      keys side by side, across words of 64 bits
//! ```
//! A chunk of the arena holds a fixed number of keys, with address space for keys of 32 bits per
//! word. So a key is within one chunk and found by one pointer; addresses past the last key are
//! never touched.
//!
//! # Growth
//! When words at a position get a bit longer, all keys are moved apart, from last to first: the new
//! position of a key is past all keys before it, so nothing is overwritten before it was read. No
//! second copy is needed. Numbers get a bit longer when their count doubles, so a key is moved a
//! few times at most.
//!
//! # Invariants
//! * N1: bits of unwritten keys are 0. So a key is written by setting bits, and several threads can
//!   write to one word.
//! * N2: widths change only under exclusive access.

use crate::memory::arena::Arena;
use crate::tables::bucket::prefetch;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::dense::{DenseTable, Keys, extend, key_hash};
use crate::threads::cooperate::Help;
use deltamark_core::Budget;
use deltamark_core::packed::bits_of;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Inner nodes: pairs, each once, numbered.
pub(crate) type Nodes = DenseTable<2, NarrowKeys<2, true>>;

/// Keys of `K` words. The index over them is `TIGHT` or not.
pub(crate) struct NarrowKeys<const K: usize, const TIGHT: bool = false> {
    /// A chunk has this number of keys, however many bits they have.
    keys: Arena,
    /// Bits of the words of a key, as ones, and of them all.
    widths: [u32; K],
    masks: [u64; K],
    bits: u32,
    granted: u64,
    /// Bytes that were given back.
    released: u64,
}

impl<const K: usize, const TIGHT: bool> DenseTable<K, NarrowKeys<K, TIGHT>> {
    /// Makes room for `more` keys, and for keys whose words are below these; nobody else uses the
    /// table but to `help`. Returns whether there was memory.
    #[must_use]
    pub fn keep(&mut self, below: [u64; K], more: u64, budget: &Budget, help: &Help) -> bool {
        let len = self.len();
        (self.keys.covers(below) || self.keys.widen(below, len, budget))
            && (self.has_room(more) || self.make_room(more, budget, help))
    }
}

/// Bytes of this many keys of this many bits. A key of no bits takes a word, so that it has an address.
fn bytes(keys: u64, bits: u32) -> u64 {
    (keys * u64::from(bits)).div_ceil(64).max(keys.min(1)) * 8
}

impl<const K: usize, const TIGHT: bool> NarrowKeys<K, TIGHT> {
    /// Whether keys can be written whose words are below these.
    #[inline]
    pub fn covers(&self, below: [u64; K]) -> bool {
        below.iter().zip(self.widths).all(|(&below, width)| below <= 1 << width)
    }

    /// Makes place for keys whose words are below these, `len` keys being there (N2). Returns whether
    /// there was memory.
    #[must_use]
    pub fn widen(&mut self, below: [u64; K], len: u64, budget: &Budget) -> bool {
        let mut widths = self.widths;
        for (width, below) in widths.iter_mut().zip(below) {
            *width = (*width).max(bits_of(below.saturating_sub(1)));
            debug_assert!(*width <= 32);
        }
        let bits = widths.iter().sum();
        if !self.extend(len, bits, budget) {
            return false;
        }
        self.move_apart_detected(len, widths, bits);
        (self.widths, self.masks, self.bits) = (widths, widths.map(ones), bits);
        true
    }

    /// Moves keys to where they are with these widths; nobody else uses them.
    #[inline(always)]
    fn move_apart(&self, len: u64, widths: [u32; K], bits: u32) {
        for number in (0..len).rev() {
            let (chunk, index) = self.chunk(number);
            let key = self.key(chunk, index);
            // What it leaves behind is in the new place of a key: of this one, or of one before.
            let mut bit = index * u64::from(bits);
            if let &[first, second] = key.as_slice() {
                chunk.change(bit, bits, u64::from(first) | u64::from(second) << widths[0]);
                continue;
            }
            for (word, width) in key.into_iter().zip(widths) {
                chunk.change(bit, width, word.into());
                bit += u64::from(width);
            }
        }
    }

    /// [`move_apart`](Self::move_apart) with instructions that shift by any number of bits at once.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn move_apart_bmi2(&self, len: u64, widths: [u32; K], bits: u32) {
        self.move_apart(len, widths, bits);
    }

    fn move_apart_detected(&self, len: u64, widths: [u32; K], bits: u32) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if x86::Avx2::detect().is_some() {
            // SAFETY: `detect` found that the processor has these instructions.
            return unsafe { self.move_apart_bmi2(len, widths, bits) };
        }
        self.move_apart(len, widths, bits);
    }

    /// Gives back the memory of all keys before this number, which nobody will read again.
    pub fn release_before(&mut self, number: u64, budget: &Budget) {
        let (_, index) = self.keys.view().chunk(number);
        self.keys.release_before(number, index * u64::from(self.bits) / 64 * 8);
        let bytes = (number * u64::from(self.bits) / 64 * 8 - self.released).min(self.granted);
        budget.release(bytes);
        self.granted -= bytes;
        self.released += bytes;
    }

    /// Takes memory for this many keys of this many bits.
    fn extend(&mut self, keys: u64, bits: u32, budget: &Budget) -> bool {
        // Keys have as many bits from now on, or more: all that these bytes will hold have addresses.
        let items = |bytes: u64| bytes * 8 / u64::from(bits.max(1));
        extend(&self.keys, items, &mut self.granted, bytes(keys, bits), budget)
    }

    /// Appends the hashes of keys.
    #[inline(always)]
    fn hash(&self, mut numbers: Range<u64>, out: &mut Vec<u64>) {
        out.reserve((numbers.end - numbers.start) as usize);
        while !numbers.is_empty() {
            let (chunk, index) = self.chunk(numbers.start);
            let count = self.keys.contiguous(numbers.start).min(numbers.end - numbers.start);
            // Not `extend`: what it calls would not be compiled for the same processor.
            for index in index..index + count {
                out.push(key_hash(self.key(chunk, index)));
            }
            numbers.start += count;
        }
    }

    /// [`hash`](Self::hash) with instructions that shift by any number of bits at once.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn hashes_bmi2(&self, numbers: Range<u64>, out: &mut Vec<u64>) {
        self.hash(numbers, out);
    }

    /// The chunk a key is in, and its place there.
    #[inline(always)]
    fn chunk(&self, number: u64) -> (KeyChunk<'_>, u64) {
        let (start, index) = self.keys.view().chunk(number);
        (KeyChunk { start: start.cast(), arena: PhantomData }, index)
    }

    /// A key of a chunk.
    #[inline(always)]
    fn key(&self, chunk: KeyChunk<'_>, index: u64) -> [u32; K] {
        let mut bit = index * u64::from(self.bits);
        if K == 2 {
            // Both words are in the same 64 bits.
            let value = chunk.load(bit, self.bits);
            let mut words = [value, value >> self.widths[0]].into_iter().zip(self.masks);
            return [0; K].map(|_| words.next().map_or(0, |(word, mask)| (word & mask) as u32));
        }
        let mut words = self.widths.into_iter().zip(self.masks);
        [0; K].map(|_| {
            words.next().map_or(0, |(width, mask)| {
                let word = (chunk.load(bit, width) & mask) as u32;
                bit += u64::from(width);
                word
            })
        })
    }
}

/// A chunk of the arena, as words of 64 bits. Only bits of keys that there is room for are asked of
/// it, so what is read and written is within the chunk: it has room for keys of 32 bits a word.
#[derive(Clone, Copy)]
struct KeyChunk<'k> {
    start: *const AtomicU64,
    arena: PhantomData<&'k Arena>,
}

impl<'k> KeyChunk<'k> {
    #[inline(always)]
    fn word(self, at: u64) -> &'k AtomicU64 {
        // SAFETY: the word is in the chunk, as the type says, which is aligned and stays as long as
        // the arena; zero is valid, and words are used as atomics only.
        unsafe { &*self.start.wrapping_add(at as usize) }
    }

    /// So many bits from this one on, and others above them.
    #[inline(always)]
    fn load(self, bit: u64, width: u32) -> u64 {
        let (at, shift) = place(bit);
        // Whether a second word is needed cannot be foreseen: loading one twice is quicker than asking.
        let next = at + u64::from(shift + width > 64);
        let [low, high] = [at, next].map(|at| self.word(at).load(Ordering::Relaxed));
        low >> shift | high << 1 << (63 - shift)
    }

    /// Writes this many bits over what was there; nobody else uses the keys.
    #[inline(always)]
    fn change(self, bit: u64, width: u32, value: u64) {
        let (at, shift) = place(bit);
        let change = |at: u64, clear: u64, value: u64| {
            let word = self.word(at);
            word.store(word.load(Ordering::Relaxed) & !clear | value, Ordering::Relaxed);
        };
        if width == 0 {
            return;
        }
        let ones = u64::MAX >> (64 - width);
        change(at, ones << shift, value << shift);
        if shift + width > 64 {
            change(at + 1, ones >> (64 - shift), value >> (64 - shift));
        }
    }
}

/// Keys of one thread that are written contiguously (N1). Those of other threads are in the
/// first and in the last word only. Others see them once the numbers are published.
struct KeyRun<'k> {
    chunk: KeyChunk<'k>,
    /// The current word, and how many bits of it are full.
    at: u64,
    shift: u32,
    /// What is to be set in that word.
    held: u64,
    /// Whether all of the word is of this run.
    whole: bool,
}

impl<'k> KeyRun<'k> {
    /// From this bit on.
    #[inline(always)]
    fn new(chunk: KeyChunk<'k>, bit: u64) -> Self {
        let (at, shift) = place(bit);
        KeyRun { chunk, at, shift, held: 0, whole: false }
    }

    #[inline(always)]
    fn append(&mut self, value: u64, width: u32) {
        self.held |= value << self.shift;
        let shift = self.shift + width;
        if shift < 64 {
            self.shift = shift;
            return;
        }
        if self.whole {
            self.chunk.word(self.at).store(self.held, Ordering::Relaxed);
        } else {
            self.finish();
        }
        self.held = value >> 1 >> (63 - self.shift);
        (self.at, self.shift, self.whole) = (self.at + 1, shift - 64, true);
    }

    /// Writes the last word.
    #[inline(always)]
    fn finish(&self) {
        if self.held != 0 {
            self.chunk.word(self.at).fetch_or(self.held, Ordering::Relaxed);
        }
    }
}

/// The word a bit is in, and where in it.
#[inline(always)]
fn place(bit: u64) -> (u64, u32) {
    (bit / 64, (bit % 64) as u32)
}

/// So many ones, 32 at most.
#[inline(always)]
fn ones(width: u32) -> u64 {
    (1 << width) - 1
}

impl<const K: usize, const TIGHT: bool> Keys<K> for NarrowKeys<K, TIGHT> {
    const TIGHT: bool = TIGHT;

    fn new() -> Self {
        NarrowKeys { keys: Arena::new(K), widths: [0; K], masks: [0; K], bits: 0, granted: 0, released: 0 }
    }

    fn bytes(&self) -> u64 {
        self.granted
    }

    #[inline(always)]
    fn get(&self, number: u32) -> [u32; K] {
        let (chunk, index) = self.chunk(number.into());
        self.key(chunk, index)
    }

    #[inline(always)]
    fn prefetch(&self, number: u32) {
        let (chunk, index) = self.chunk(number.into());
        prefetch(chunk.start.wrapping_add((index * u64::from(self.bits) / 64) as usize));
    }

    #[inline(always)]
    fn put(&self, number: u64, key: [u32; K]) {
        self.put_all(number, std::iter::once(key));
    }

    #[inline(always)]
    fn put_all(&self, first: u64, keys: impl Iterator<Item = [u32; K]>) {
        let start = |number: u64| {
            let (chunk, index) = self.chunk(number);
            KeyRun::new(chunk, index * u64::from(self.bits))
        };
        let (mut run, mut next_chunk) = (start(first), first + self.keys.contiguous(first));
        for (number, key) in (first..).zip(keys) {
            debug_assert!(key.iter().zip(self.widths).all(|(&word, width)| u64::from(word) >> width == 0));
            if number == next_chunk {
                run.finish();
                run = start(number);
                next_chunk += self.keys.contiguous(number);
            }
            if let &[first, second] = key.as_slice() {
                run.append(u64::from(first) | u64::from(second) << self.widths[0], self.bits);
            } else {
                for (word, width) in key.into_iter().zip(self.widths) {
                    run.append(word.into(), width);
                }
            }
        }
        run.finish();
    }

    fn hashes(&self, numbers: Range<u64>, out: &mut Vec<u64>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if x86::Avx2::detect().is_some() {
            // SAFETY: `detect` found that the processor has these instructions.
            return unsafe { self.hashes_bmi2(numbers, out) };
        }
        self.hash(numbers, out);
    }

    #[inline]
    fn has_room(&self, keys: u64) -> bool {
        bytes(keys, self.bits) <= self.granted
    }

    fn make_room(&mut self, keys: u64, budget: &Budget) -> bool {
        self.extend(keys, self.bits, budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::dense::key_hash;
    use crate::tables::index::BASELINE;
    use crate::threads::cooperate::Help;
    use std::collections::HashMap;

    const COUNT: u64 = if cfg!(miri) { 200 } else { 60_000 };

    /// Pairs whose sides grow by and by, each at its own pace, some of them twice.
    fn pair(step: u64) -> [u32; 2] {
        let step = if step % 5 == 4 { step / 2 } else { step };
        [(step * step * 7 % (step + 1)) as u32, (step % (step / 40 + 1)) as u32]
    }

    /// Makes room for one more pair, and for numbers as long as its own.
    fn make_room(nodes: &mut Nodes, [left, right]: [u32; 2], budget: &Budget) -> bool {
        nodes.keep([u64::from(left) + 1, u64::from(right) + 1], 1, budget, &Help::default())
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

    /// Keys of which each word needs one more bit than the one before, at its own pace.
    fn check_widths<const K: usize>() {
        let budget = Budget::unlimited();
        let mut keys = NarrowKeys::<K>::new();
        let mut written: Vec<[u32; K]> = Vec::new();
        // Of no bits at all, of one, up to 32, and what is just not wider.
        for step in (0..=32u32).step_by(if cfg!(miri) { 8 } else { 1 }) {
            let most = |place: usize| (1u64 << step.min(32 - place as u32 % 3)) - 1;
            for key in [std::array::from_fn(|place| most(place) as u32), [most(0) as u32 / 2; K], [0; K]] {
                let below = key.map(|word| u64::from(word) + 1);
                let len = written.len() as u64;
                assert_eq!(keys.covers(below), below.iter().zip(keys.widths).all(|(&below, bits)| below <= 1 << bits));
                assert!(keys.covers(below) || keys.widen(below, len, &budget));
                assert!(keys.covers(below) && keys.widths.iter().all(|&bits| bits <= step));
                assert!(keys.has_room(len + 1) || keys.make_room(len + 1, &budget));
                assert_eq!(keys.bytes(), budget.used());
                keys.put(len, key);
                written.push(key);
                assert!(written.iter().enumerate().all(|(number, &key)| keys.get(number as u32) == key), "{step}");
            }
        }
        let mut hashes = Vec::new();
        keys.hashes(0..written.len() as u64, &mut hashes);
        assert!(hashes.iter().zip(&written).all(|(&hash, &key)| hash == key_hash(key)));
    }

    #[test]
    fn words_take_as_many_bits_as_they_need_and_keys_stay() {
        check_widths::<2>();
        check_widths::<3>();
        check_widths::<4>();
        check_widths::<9>();
    }

    /// Threads write runs of keys that end in one word, and across two chunks.
    fn check_runs<const K: usize>(widths: [u32; K]) {
        const RUNS: u64 = if cfg!(miri) { 12 } else { 600 };
        const LONGEST: u64 = 7;
        let budget = Budget::unlimited();
        let mut keys = NarrowKeys::<K>::new();
        let key = |number: u64| -> [u32; K] {
            let mut mixed = deltamark_core::hash::mix(number);
            widths.map(|width| {
                mixed = mixed.rotate_left(9);
                (mixed & ones(width)) as u32
            })
        };
        assert!(keys.widen(widths.map(|width| 1 << width), 0, &budget));
        assert!(keys.make_room(1, &budget));
        let first = keys.keys.contiguous(0) - RUNS;
        assert!(keys.make_room(first + RUNS * LONGEST, &budget));
        let next = std::sync::atomic::AtomicU64::new(first);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for run in 0..RUNS / 3 {
                        let count = run % LONGEST + 1;
                        let start = next.fetch_add(count, Ordering::Relaxed);
                        keys.put_all(start, (start..start + count).map(key));
                        assert!((start..start + count).all(|number| keys.get(number as u32) == key(number)));
                    }
                });
            }
        });
        let end = next.into_inner();
        assert!(end > first + RUNS && (first..end).all(|number| keys.get(number as u32) == key(number)));
        let mut hashes = Vec::new();
        keys.hashes(first..end, &mut hashes);
        assert!(hashes.iter().zip(first..).all(|(&hash, number)| hash == key_hash(key(number))));
    }

    #[test]
    fn threads_write_side_by_side() {
        check_runs([13, 15]);
        check_runs([32, 32]);
        check_runs([1, 0]);
        check_runs([3, 21, 20]);
        check_runs([12, 0, 31, 32, 7]);
    }

    #[test]
    fn memory_of_keys_that_nobody_reads_again_is_given_back() {
        const LEN: u64 = if cfg!(miri) { 300 } else { 100_000 };
        let budget = Budget::unlimited();
        let mut keys = NarrowKeys::<2>::new();
        assert!(keys.widen([1 << 20, 1 << 7], 0, &budget) && keys.make_room(LEN, &budget));
        keys.put_all(0, (0..LEN).map(|number| [number as u32, number as u32 % 100]));
        let all = budget.used();
        for number in (0..LEN).step_by(LEN as usize / 10) {
            keys.release_before(number, &budget);
            assert_eq!(keys.get(number as u32), [number as u32, number as u32 % 100]);
            assert_eq!(keys.bytes(), budget.used());
            assert!(budget.used() <= all - number * 27 / 64 * 8);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of entries, which take Miri minutes")]
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
        // Of 17 and 12 bits, so that pairs cross words.
        assert!(nodes.keep([1 << 17, 1 << 12], 3 * COUNT, &budget, &Help::default()));
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
