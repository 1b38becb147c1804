//! A stack of ids in as few bytes as the largest of them needs.
//!
//! In: ids. Out: the same, from the end or by position. What stays true: every id takes
//! the same number of bytes, which grows (once for all) when a larger id comes.

use deltamark_core::StateId;

/// A stack of ids.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    bytes: Vec<u8>,
    /// Bytes an id takes, 1 to 8.
    each: usize,
}

impl Ids {
    pub fn new() -> Self {
        Ids { bytes: Vec::new(), each: 1 }
    }

    pub fn len(&self) -> usize {
        self.bytes.len() / self.each
    }

    /// The bytes it holds on to.
    pub fn held_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }

    /// How many more bytes are needed, for a moment, to make room for `more` ids; nothing if
    /// there is room. Lists grow by a quarter, and the old one is there until it is copied.
    pub fn growth(&self, more: usize) -> u64 {
        let needed = self.bytes.len() + more * self.each;
        if needed <= self.bytes.capacity() { 0 } else { self.next_capacity(needed) as u64 }
    }

    /// Makes room for `more` ids.
    pub fn reserve(&mut self, more: usize) {
        let needed = self.bytes.len() + more * self.each;
        if needed > self.bytes.capacity() {
            self.bytes.reserve_exact(self.next_capacity(needed) - self.bytes.len());
        }
    }

    fn next_capacity(&self, needed: usize) -> usize {
        needed.max(self.bytes.capacity() / 4 * 5).max(64)
    }

    pub fn push(&mut self, id: StateId) {
        let number = id.get();
        if self.each < 8 && number >> (8 * self.each) != 0 {
            self.widen(number);
        }
        self.bytes.extend_from_slice(&number.to_le_bytes()[..self.each]);
    }

    pub fn get(&self, index: usize) -> StateId {
        let mut number = [0; 8];
        number[..self.each].copy_from_slice(&self.bytes[index * self.each..(index + 1) * self.each]);
        StateId::new(u64::from_le_bytes(number))
    }

    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len * self.each);
    }

    #[cold]
    fn widen(&mut self, number: u64) {
        let each = (64 - number.leading_zeros()).div_ceil(8) as usize;
        let mut wide = Vec::with_capacity((self.len() + 1) * each * 5 / 4);
        for index in 0..self.len() {
            wide.extend_from_slice(&self.get(index).get().to_le_bytes()[..each]);
        }
        self.bytes = wide;
        self.each = each;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_the_bytes_they_need_grow() {
        let mut ids = Ids::new();
        let numbers: Vec<u64> = (0..64).map(|bit| (1u64 << bit) - 1).chain([u64::MAX, 3]).collect();
        for &number in &numbers {
            ids.push(StateId::new(number));
        }
        assert_eq!(ids.len(), numbers.len());
        for (index, &number) in numbers.iter().enumerate() {
            assert_eq!(ids.get(index).get(), number);
        }
        ids.truncate(2);
        assert_eq!((ids.len(), ids.get(1).get()), (2, 1));
    }
}
