//! A set of states.
//!
//! In: states, as many as was said before, whose values are within bounds that were said before. Out: whether a state is
//! among them. What stays true: states are compared value by value; a hash only says where to look, and is another
//! one in each process, so nobody can prepare states that collide.
//!
//! ```text
//! rows    [ cell ]…        1, 2, 4 or 8 bytes each, as the bounds need; one row a state
//! index   number + 1       open addressing, at most half full
//! ```

use std::hash::{BuildHasher, RandomState};

/// A set of states.
pub(crate) struct StateSet {
    cells: usize,
    /// Bytes of a cell.
    width: usize,
    rows: Vec<u8>,
    index: Vec<u32>,
    count: usize,
    /// A hash is the sum over the cells of value times coefficient.
    coefficients: Vec<u64>,
}

impl StateSet {
    /// The bytes of a cell that holds all numbers between these.
    pub fn width_of(least: i64, most: i64) -> usize {
        [1, 2, 4].into_iter().find(|&width| fits(least, width) && fits(most, width)).unwrap_or(8)
    }

    /// The bytes of a set; `None` if no set is that large.
    pub fn bytes(cells: usize, width: usize, states: usize) -> Option<u64> {
        let row = cells.checked_mul(width)?.checked_add(16)?;
        let rows = row.checked_mul(states)?.checked_add(cells.checked_mul(16)?)?;
        (states < u32::MAX as usize).then(|| rows as u64 + 4096)
    }

    /// An empty set with room for this number of states, for which there must be [memory](Self::bytes).
    pub fn new(cells: usize, width: usize, states: usize) -> Self {
        let seed = RandomState::new();
        StateSet {
            cells,
            width,
            rows: Vec::with_capacity(cells * width * states),
            index: vec![0; (2 * states).next_power_of_two().max(2)],
            count: 0,
            coefficients: (0..cells).map(|cell| seed.hash_one(cell) | 1).collect(),
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// The hash of a state.
    pub fn hash(&self, state: &[i64]) -> u64 {
        let terms = state.iter().zip(&self.coefficients);
        terms.fold(0, |sum, (&value, &coefficient)| sum.wrapping_add((value as u64).wrapping_mul(coefficient)))
    }

    /// What the change of a cell adds to the hash.
    pub fn hash_change(&self, cell: usize, before: i64, after: i64) -> u64 {
        (after.wrapping_sub(before) as u64).wrapping_mul(self.coefficients[cell])
    }

    /// Writes a value into a row; `false` if it does not fit, so that no state of the set has it.
    pub fn put(&self, row: &mut [u8], cell: usize, value: i64) -> bool {
        let place = cell * self.width;
        row[place..place + self.width].copy_from_slice(&value.to_le_bytes()[..self.width]);
        fits(value, self.width)
    }

    /// A state as a row; `None` if it does not fit.
    pub fn row(&self, state: &[i64]) -> Option<Vec<u8>> {
        let mut row = vec![0; self.cells * self.width];
        (0..).zip(state).all(|(cell, &value)| self.put(&mut row, cell, value)).then_some(row)
    }

    /// The row of the state of this number.
    pub fn row_of(&self, number: usize) -> &[u8] {
        let length = self.cells * self.width;
        &self.rows[number * length..(number + 1) * length]
    }

    /// The values of the state of this number.
    pub fn read(&self, number: usize, state: &mut Vec<i64>) {
        state.clear();
        state.extend(self.row_of(number).chunks_exact(self.width).map(|cell| {
            let sign = if cell[cell.len() - 1] & 0x80 == 0 { 0 } else { 0xff };
            let mut bytes = [sign; 8];
            bytes[..cell.len()].copy_from_slice(cell);
            i64::from_le_bytes(bytes)
        }));
    }

    /// The place in the index where a row is, or would be.
    fn place(&self, row: &[u8], hash: u64) -> usize {
        let mask = self.index.len() - 1;
        let mut place = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 8 & mask;
        loop {
            match self.index[place] {
                0 => return place,
                number if self.row_of(number as usize - 1) == row => return place,
                _ => place = (place + 1) & mask,
            }
        }
    }

    /// Whether a row is in the set.
    pub fn has(&self, row: &[u8], hash: u64) -> bool {
        self.index[self.place(row, hash)] != 0
    }

    /// Adds a row, unless it is there.
    pub fn insert(&mut self, row: &[u8], hash: u64) {
        let place = self.place(row, hash);
        if self.index[place] == 0 {
            self.rows.extend_from_slice(row);
            self.count += 1;
            self.index[place] = self.count as u32;
        }
    }
}

fn fits(value: i64, width: usize) -> bool {
    width == 8 || value >> (8 * width - 1) == 0 || value >> (8 * width - 1) == -1
}
