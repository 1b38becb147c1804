//! A stack of numbers in as few bits as they need.
//!
//! In: ids of states, or positions. Out: the same, from the end or by position. Invariants: numbers
//! are in pieces of [`PIECE`], and all numbers of a piece have the same width, as many bits as the
//! largest of them needs. Only the last piece is ever copied, so growing takes at most one
//! additional piece.
//!
//! A single growing list was tried: with the copies that the allocator keeps for a while, the
//! process took three times the counted bytes.

/// How many numbers a piece holds: a multiple of 64.
const PIECE: usize = 1 << 9;

/// A stack of numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    /// All full, but for the last in use and one empty piece that may follow it.
    pieces: Vec<Piece>,
    len: usize,
    held: usize,
}

#[derive(Clone, Debug)]
struct Piece {
    /// One word more than needed, so that every number is read from two neighbouring words.
    words: Box<[u64]>,
    /// Bits a number takes, 1 to 64.
    each: usize,
}

impl Piece {
    fn new(each: usize) -> Self {
        Piece { words: vec![0; Self::bytes(each) / 8].into(), each }
    }

    /// The bytes of a piece whose numbers take this many bits.
    fn bytes(each: usize) -> usize {
        (PIECE / 64 * each + 1) * 8
    }

    #[inline]
    fn get(&self, index: usize) -> u64 {
        let (word, shift) = (index * self.each / 64, index * self.each % 64);
        let pair = u128::from(self.words[word]) | u128::from(self.words[word + 1]) << 64;
        (pair >> shift) as u64 & (u64::MAX >> (64 - self.each))
    }

    #[inline]
    fn put(&mut self, index: usize, number: u64) {
        let (word, shift) = (index * self.each / 64, index * self.each % 64);
        let mask = u128::from(u64::MAX >> (64 - self.each)) << shift;
        let value = u128::from(number) << shift;
        // What a stack that went down has left behind is overwritten.
        self.words[word] = self.words[word] & !(mask as u64) | value as u64;
        self.words[word + 1] = self.words[word + 1] & !((mask >> 64) as u64) | (value >> 64) as u64;
    }
}

/// How many bits a number needs.
fn bits_for(number: u64) -> usize {
    (64 - number.leading_zeros()).max(1) as usize
}

impl Numbers {
    pub fn new() -> Self {
        Numbers::default()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The bytes it holds on to.
    pub fn held_bytes(&self) -> u64 {
        (self.held + self.pieces.capacity() * size_of::<Piece>()) as u64
    }

    /// How many more bytes it will hold, at most, with `more` numbers, none above `largest`.
    pub fn growth(&self, more: usize, largest: u64) -> u64 {
        let each = bits_for(largest);
        let touched = self.len / PIECE..(self.len + more).div_ceil(PIECE);
        // A piece of narrower numbers is replaced by a wider one, and both are there for a moment.
        let fit = |at: &usize| self.pieces.get(*at).is_some_and(|piece| piece.each >= each);
        (touched.filter(|at| !fit(at)).count() * Piece::bytes(each)) as u64
    }

    pub fn push(&mut self, number: u64) {
        let at = self.len / PIECE;
        if at == self.pieces.len() {
            self.add_piece(bits_for(number));
        }
        if bits_for(number) > self.pieces[at].each {
            self.widen(bits_for(number));
        }
        self.pieces[at].put(self.len % PIECE, number);
        self.len += 1;
    }

    pub fn get(&self, index: usize) -> u64 {
        self.pieces[index / PIECE].get(index % PIECE)
    }

    pub fn last(&self) -> Option<u64> {
        self.len.checked_sub(1).map(|index| self.get(index))
    }

    /// How many numbers there are before the first that is not `below`, where those that are
    /// come first.
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

    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        let in_use = len.div_ceil(PIECE);
        // One empty piece is kept, so that a stack that goes up and down allocates nothing.
        for piece in self.pieces.drain((in_use + 1).min(self.pieces.len())..) {
            self.held -= Piece::bytes(piece.each);
        }
        self.len = len;
    }

    #[cold]
    fn add_piece(&mut self, each: usize) {
        self.held += Piece::bytes(each);
        self.pieces.push(Piece::new(each));
    }

    /// Gives the piece in use, the last but for an empty one, wider numbers.
    #[cold]
    fn widen(&mut self, each: usize) {
        let at = self.len / PIECE;
        let mut wide = Piece::new(each);
        (0..self.len % PIECE).for_each(|index| wide.put(index, self.pieces[at].get(index)));
        self.held = self.held + Piece::bytes(each) - Piece::bytes(self.pieces[at].each);
        self.pieces[at] = wide;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(numbers: &Numbers) -> usize {
        numbers.pieces.iter().map(|piece| piece.words.len() * 8).sum()
    }

    #[test]
    fn numbers_come_back_as_the_bits_they_need_grow() {
        let mut numbers = Numbers::new();
        let pushed: Vec<u64> = (0..64).map(|bit| (1u64 << bit) - 1).chain([u64::MAX, 3]).collect();
        pushed.iter().for_each(|&number| numbers.push(number));
        assert_eq!(numbers.len(), pushed.len());
        for (index, &number) in pushed.iter().enumerate() {
            assert_eq!(numbers.get(index), number);
        }
        assert_eq!((numbers.last(), held(&numbers)), (Some(3), PIECE * 8 + 8));
        numbers.truncate(2);
        assert_eq!((numbers.len(), numbers.last()), (2, Some(1)));
    }

    #[test]
    fn a_stack_goes_up_and_down_across_pieces_and_counts_what_it_holds() {
        let mut numbers = Numbers::new();
        let mut model: Vec<u64> = Vec::new();
        for round in 0..40u64 {
            // Lengths around the ends of pieces; numbers of one byte to eight.
            let up = round as usize * 7919 % (3 * PIECE) + 1;
            let number = |index: u64| (index * 31) << (round % 8 * 7);
            let largest = (0..up as u64).map(number).max().unwrap();
            let (before, growth) = (held(&numbers), numbers.growth(up, largest));
            (0..up as u64).map(number).for_each(|number| {
                numbers.push(number);
                model.push(number);
            });
            assert!(held(&numbers) <= before + growth as usize, "round {round}");
            assert_eq!(held(&numbers), numbers.held, "round {round}");
            let down = [0, 1, PIECE, 2 * PIECE, PIECE - 1][round as usize % 5].max(model.len() / 3);
            numbers.truncate(down);
            model.truncate(down);
            assert_eq!(numbers.len(), model.len());
            assert_eq!(held(&numbers), numbers.held, "round {round}");
            assert!((0..model.len()).step_by(97).all(|index| numbers.get(index) == model[index]), "round {round}");
            assert_eq!(numbers.last(), model.last().copied());
        }
    }

    #[test]
    fn ascending_numbers_are_searched() {
        let mut numbers = Numbers::new();
        (0..2 * PIECE as u64).for_each(|number| numbers.push(3 * number));
        for limit in [0, 1, 3, 5_000, 6 * PIECE as u64] {
            let expected = (limit as usize).div_ceil(3).min(2 * PIECE);
            assert_eq!(numbers.partition_point(|number| number < limit), expected, "{limit}");
        }
    }
}
