//! A growing list of integers in as few bits as they need.
//!
//! In: integers, pushed. Out: the same, from the end or by position. Invariant: integers are in
//! pieces of `PIECE`, and those of a piece have one width, the bits of the largest of them. Only
//! one piece at a time is ever copied, so growing takes at most one additional piece.
//!
//! ```text
//! piece 0 [ PIECE integers of 5 bits ]  piece 1 [ PIECE of 9 bits ]  piece 2 [ PIECE of 9 bits ] …
//! ```
//! A single growing array was tried: with the copies that the allocator keeps for a while, the
//! process took three times the counted bytes.

use crate::packed::{Packed, bits_of};

/// A list of integers in pieces of `PIECE`, a multiple of 64.
#[derive(Clone, Debug, Default)]
pub struct Numbers<const PIECE: usize = 512> {
    /// All full, but for the last in use; those after it were [reserved](Self::reserve), or one is
    /// left from a list that was longer.
    pieces: Vec<Packed>,
    len: usize,
    /// Bytes of all pieces.
    held: u64,
}

impl<const PIECE: usize> Numbers<PIECE> {
    /// An empty list.
    pub fn new() -> Self {
        Numbers { pieces: Vec::new(), len: 0, held: 0 }
    }

    /// The number of integers.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes it holds.
    pub fn held_bytes(&self) -> u64 {
        self.held + (self.pieces.capacity() * size_of::<Packed>()) as u64
    }

    fn piece_bytes(width: u32) -> u64 {
        Packed::bytes(PIECE as u64, width).unwrap_or(u64::MAX)
    }

    /// How many more bytes it will hold, at most, with `more` integers, none above `largest`. While
    /// a piece of narrower ones is replaced by a wider one, both are there for a moment.
    #[inline]
    pub fn growth(&self, more: usize, largest: u64) -> u64 {
        let (first, end) = (self.len / PIECE, (self.len + more).div_ceil(PIECE));
        let wide = Self::piece_bytes(bits_of(largest));
        let held = |at: usize| self.pieces.get(at).map_or(0, Packed::held_bytes);
        let pieces: u64 = (first..end).map(|at| wide.saturating_sub(held(at))).sum();
        let capacity = self.pieces.capacity();
        let list = if end > capacity { (self.enlarged(end) - capacity) * size_of::<Packed>() } else { 0 };
        pieces + list as u64
    }

    /// The capacity of a list of pieces that must hold this many.
    fn enlarged(&self, pieces: usize) -> usize {
        pieces.max(2 * self.pieces.capacity()).max(4)
    }

    /// Makes room for `more` integers, none above `largest`, so that pushing them takes no more
    /// memory.
    pub fn reserve(&mut self, more: usize, largest: u64) {
        for at in self.len / PIECE..(self.len + more).div_ceil(PIECE) {
            self.fit(at, bits_of(largest));
        }
    }

    /// Makes sure that a piece, the one after the last at most, has this width.
    #[inline]
    fn fit(&mut self, at: usize, width: u32) {
        if self.pieces.get(at).is_none_or(|piece| piece.width() < width) {
            self.replace(at, width);
        }
    }

    #[cold]
    fn replace(&mut self, at: usize, width: u32) {
        let mut wide = Packed::new(PIECE, width);
        self.held += wide.held_bytes();
        let Some(piece) = self.pieces.get_mut(at) else {
            if self.pieces.len() == self.pieces.capacity() {
                let capacity = self.enlarged(at + 1);
                self.pieces.reserve_exact(capacity - self.pieces.len());
            }
            self.pieces.push(wide);
            return;
        };
        let used = self.len.saturating_sub(at * PIECE).min(PIECE);
        (0..used).for_each(|index| wide.set(index, piece.get(index)));
        self.held -= piece.held_bytes();
        *piece = wide;
    }

    /// Appends an integer.
    #[inline]
    pub fn push(&mut self, number: u64) {
        let at = self.len / PIECE;
        self.fit(at, bits_of(number));
        self.pieces[at].set(self.len % PIECE, number);
        self.len += 1;
    }

    /// Integer `index`.
    #[inline(always)]
    pub fn get(&self, index: usize) -> u64 {
        debug_assert!(index < self.len);
        self.pieces[index / PIECE].get(index % PIECE)
    }

    /// How many more bytes it holds when integer `index` changes to `number`.
    pub fn growth_of_set(&self, index: usize, number: u64) -> u64 {
        Self::piece_bytes(bits_of(number)).saturating_sub(self.pieces[index / PIECE].held_bytes())
    }

    /// Changes integer `index`.
    pub fn set(&mut self, index: usize, number: u64) {
        debug_assert!(index < self.len);
        self.fit(index / PIECE, bits_of(number));
        self.pieces[index / PIECE].set(index % PIECE, number);
    }

    /// The word in which integer `index` begins, for those who fetch it ahead; `None` if it is not
    /// there.
    #[inline(always)]
    pub fn word(&self, index: usize) -> Option<&u64> {
        self.pieces.get(index / PIECE)?.word(index % PIECE)
    }

    /// The last integer.
    pub fn last(&self) -> Option<u64> {
        self.len.checked_sub(1).map(|index| self.get(index))
    }

    /// The number of integers before the first that is not `below`, where those that are come
    /// first.
    pub fn partition_point(&self, below: impl Fn(u64) -> bool) -> usize {
        let (mut start, mut end) = (0, self.len);
        while start < end {
            let middle = start.midpoint(end);
            if below(self.get(middle)) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    /// Drops all integers from position `len` on.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        let in_use = len.div_ceil(PIECE);
        // One empty piece is kept, so that a stack that goes up and down allocates nothing.
        for piece in self.pieces.drain((in_use + 1).min(self.pieces.len())..) {
            self.held -= piece.held_bytes();
        }
        self.len = len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 512;

    fn held(numbers: &Numbers) -> u64 {
        numbers.pieces.iter().map(Packed::held_bytes).sum()
    }

    #[test]
    fn numbers_come_back_as_the_bits_they_need_grow() {
        let mut numbers: Numbers = Numbers::new();
        let pushed: Vec<u64> = (0..64).map(|bit| (1u64 << bit) - 1).chain([u64::MAX, 3]).collect();
        pushed.iter().for_each(|&number| numbers.push(number));
        assert_eq!(numbers.len(), pushed.len());
        for (index, &number) in pushed.iter().enumerate() {
            assert_eq!(numbers.get(index), number);
        }
        assert_eq!((numbers.last(), held(&numbers)), (Some(3), PIECE as u64 * 8 + 8));
        numbers.truncate(2);
        assert_eq!((numbers.len(), numbers.last()), (2, Some(1)));
    }

    #[test]
    fn a_stack_goes_up_and_down_across_pieces_and_counts_what_it_holds() {
        let mut numbers: Numbers = Numbers::new();
        let mut model: Vec<u64> = Vec::new();
        for round in 0..40u64 {
            // Lengths around the ends of pieces; numbers of one byte to eight.
            let up = round as usize * 7919 % (3 * PIECE) + 1;
            let number = |index: u64| (index * 31) << (round % 8 * 7);
            let largest = (0..up as u64).map(number).max().unwrap();
            let (before, growth) = (numbers.held_bytes(), numbers.growth(up, largest));
            if round % 2 == 0 {
                numbers.reserve(up, largest);
                assert_eq!(numbers.growth(up, largest), 0, "round {round}");
            }
            (0..up as u64).map(number).for_each(|number| {
                numbers.push(number);
                model.push(number);
            });
            assert!(numbers.held_bytes() <= before + growth, "round {round}");
            assert_eq!(held(&numbers), numbers.held, "round {round}");
            let down = [0, 1, PIECE, 2 * PIECE, PIECE - 1][round as usize % 5].max(model.len() / 3);
            numbers.truncate(down);
            model.truncate(down);
            if let Some(changed) = model.first_mut() {
                let (before, growth) = (numbers.held_bytes(), numbers.growth_of_set(0, round << round));
                *changed = round << round;
                numbers.set(0, round << round);
                assert!(numbers.held_bytes() <= before + growth, "round {round}");
            }
            assert_eq!(numbers.len(), model.len());
            assert_eq!(held(&numbers), numbers.held, "round {round}");
            assert!((0..model.len()).step_by(97).all(|index| numbers.get(index) == model[index]), "round {round}");
            assert_eq!(numbers.last(), model.last().copied());
        }
    }

    #[test]
    fn ascending_numbers_are_searched() {
        let mut numbers: Numbers = Numbers::new();
        (0..2 * PIECE as u64).for_each(|number| numbers.push(3 * number));
        for limit in [0, 1, 3, 5_000, 6 * PIECE as u64] {
            let expected = (limit as usize).div_ceil(3).min(2 * PIECE);
            assert_eq!(numbers.partition_point(|number| number < limit), expected, "{limit}");
        }
    }
}
