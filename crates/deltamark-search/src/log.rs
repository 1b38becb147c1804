//! Back edges, for stores that keep none.
//!
//! In: for each new state, in order of discovery, the number of its parent in that order and the
//! action. Out: the path to any of them. Invariants: an entry takes a few bytes (delta-encoded
//! varints, LEB128), and the position of every [`STRETCH`]th entry is known, so a look-up reads at
//! most that many entries.

use deltamark_core::{Action, Trace};

/// Entries from one known place to the next.
const STRETCH: u64 = 1024;
/// The most bytes of an entry: a parent of 64 bits and an action of 32, seven bits a byte.
const LONGEST: usize = 10 + 5;
/// Bytes of a piece. An entry is within one, and pieces never move.
const PIECE: usize = 2 << 10;

/// Where an entry begins: the piece, and the byte of it.
type EntryStart = (u32, u32);

/// How each state was first reached.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pieces: Vec<Vec<u8>>,
    /// For each stretch: where it begins, and the parent before it.
    places: Vec<(EntryStart, u64)>,
    len: u64,
    last_parent: u64,
}

/// Initial states have themselves as parents: they are identified by their number.
impl Log {
    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Appends the next state. An initial state is its own parent, and its action is its
    /// number among the initial states.
    pub fn push(&mut self, parent: u64, action: Action) {
        if self.pieces.last().is_none_or(|piece| piece.len() + LONGEST > PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let at = self.pieces.len() - 1;
        let piece = &mut self.pieces[at];
        if self.len.is_multiple_of(STRETCH) {
            self.places.push(((at as u32, piece.len() as u32), self.last_parent));
        }
        let difference = parent.wrapping_sub(self.last_parent) as i64;
        write(piece, ((difference << 1) ^ (difference >> 63)) as u64);
        write(piece, u64::from(action.0));
        self.last_parent = parent;
        self.len += 1;
    }

    /// The bytes it holds on to.
    pub fn held_bytes(&self) -> u64 {
        let pieces = self.pieces.len() * PIECE + self.pieces.capacity() * size_of::<Vec<u8>>();
        (pieces + self.places.capacity() * size_of::<(EntryStart, u64)>()) as u64
    }

    /// How many more bytes it may hold, for a moment, with `more` entries: the short lists
    /// copy to larger memory when they grow, and both are there meanwhile.
    pub fn growth(&self, more: usize) -> u64 {
        let grown = |len: usize, capacity: usize| if len > capacity { 2 * len.max(8) } else { 0 };
        let room = self.pieces.last().map_or(0, |piece| PIECE - piece.len());
        // As much as an entry may be lost at the end of each piece.
        let pieces = (more * LONGEST).saturating_sub(room).div_ceil(PIECE - LONGEST) + usize::from(room < LONGEST);
        let pieces = if more == 0 { 0 } else { pieces };
        let lists = grown(self.pieces.len() + pieces, self.pieces.capacity()) * size_of::<Vec<u8>>();
        let places = grown(self.places.len() + more.div_ceil(STRETCH as usize), self.places.capacity());
        (pieces * PIECE + lists + places * size_of::<(EntryStart, u64)>()) as u64
    }

    /// The path to the state of this number, from the initial state that is its own parent.
    pub fn path(&self, mut number: u64) -> Trace {
        let mut actions = Vec::new();
        loop {
            let (parent, action) = self.entry(number);
            if parent == number {
                actions.reverse();
                return Trace::path(action.0, actions);
            }
            actions.push(action);
            number = parent;
        }
    }

    /// The number of the state's parent, and the action that led from it.
    pub fn entry(&self, number: u64) -> (u64, Action) {
        assert!(number < self.len);
        let ((mut piece, mut at), mut parent) = self.places[(number / STRETCH) as usize];
        let mut action = 0;
        for _ in 0..=number % STRETCH {
            if at as usize == self.pieces[piece as usize].len() {
                (piece, at) = (piece + 1, 0);
            }
            let bytes = &self.pieces[piece as usize];
            let zigzag = read(bytes, &mut at);
            parent = parent.wrapping_add(((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)) as u64);
            action = read(bytes, &mut at);
        }
        (parent, Action(action as u32))
    }
}

fn write(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read(bytes: &[u8], at: &mut u32) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let byte = bytes[*at as usize];
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return value;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_any_order() {
        let mut log = Log::default();
        let parent = |number: u64| if number == 0 { 0 } else { number * 7919 % number };
        let action = |number: u64| Action((number * 2_654_435_761 % 5000) as u32);
        for number in 0..50_000 {
            let (before, growth) = (log.held_bytes(), log.growth(1));
            log.push(parent(number), action(number));
            assert!(log.held_bytes() <= before + growth, "{number}");
        }
        for number in (0..50_000).rev().step_by(7) {
            assert_eq!(log.entry(number), (parent(number), action(number)));
        }
    }
}
