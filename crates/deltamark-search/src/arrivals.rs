//! The action by which each state of a level was reached.
//!
//! In: actions, by the state's place in its level, in any order. Out: the same, while the level is
//! expanded. What stays true: an action takes one byte, two or four, as all actions need; pieces
//! are never copied, and those of a level that has been expanded are used for the next.

use deltamark_core::Action;

/// Actions in a piece.
const PIECE: usize = 1 << 12;

/// The actions of the level in hand and of the one under construction.
pub(crate) struct Arrivals {
    /// Bytes an action takes.
    each: usize,
    hand: Vec<Box<[u8]>>,
    later: Vec<Box<[u8]>>,
    /// Pieces that nobody uses.
    spare: Vec<Box<[u8]>>,
}

impl Arrivals {
    /// For actions below `count`, if that is known.
    pub fn new(count: Option<u32>) -> Self {
        // The largest value of an entry stands for none.
        let each = match count {
            Some(0..=0xff) => 1,
            Some(0..=0xffff) => 2,
            _ => 4,
        };
        Arrivals { each, hand: Vec::new(), later: Vec::new(), spare: Vec::new() }
    }

    /// Notes the action that led to state `place` of the level under construction.
    #[inline]
    pub fn set(&mut self, place: u64, action: Action) {
        let (piece, at) = (place as usize / PIECE, place as usize % PIECE * self.each);
        while piece >= self.later.len() {
            let piece = self.spare.pop();
            self.later.push(piece.unwrap_or_else(|| vec![0; PIECE * self.each].into_boxed_slice()));
        }
        let bytes = action.0.to_le_bytes();
        self.later[piece][at..at + self.each].copy_from_slice(&bytes[..self.each]);
    }

    /// Notes that this action leads to state `place` of the level under construction as well. The
    /// one with the smallest number is kept: after it most can be left out.
    #[inline]
    pub fn lower(&mut self, place: u64, action: Action) {
        let (piece, at) = (place as usize / PIECE, place as usize % PIECE * self.each);
        let mut bytes = [0; 4];
        bytes[..self.each].copy_from_slice(&self.later[piece][at..at + self.each]);
        if action.0 < u32::from_le_bytes(bytes) {
            self.set(place, action);
        }
    }

    /// The action that led to state `place` of the level in hand.
    #[inline]
    pub fn get(&self, place: u64) -> Action {
        let (piece, at) = (place as usize / PIECE, place as usize % PIECE * self.each);
        let mut bytes = [0; 4];
        bytes[..self.each].copy_from_slice(&self.hand[piece][at..at + self.each]);
        let number = u32::from_le_bytes(bytes);
        let none = u32::MAX >> (32 - 8 * self.each);
        if number == none { Action::NONE } else { Action(number) }
    }

    /// Goes on to the next level.
    pub fn next_level(&mut self) {
        std::mem::swap(&mut self.hand, &mut self.later);
        self.spare.append(&mut self.later);
    }

    /// The bytes it holds.
    pub fn held_bytes(&self) -> u64 {
        let lists = [&self.hand, &self.later, &self.spare];
        let pieces: usize = lists.iter().map(|list| list.len()).sum();
        let lists: usize = lists.iter().map(|list| list.capacity()).sum();
        (pieces * PIECE * self.each + lists * size_of::<Box<[u8]>>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_led_to_a_state_is_told_while_its_level_is_in_hand() {
        for count in [Some(255), Some(256), Some(65_535), Some(65_536), None] {
            let mut arrivals = Arrivals::new(count);
            let action = |level: u64, place: u64| match (level + place) % 7 {
                0 => Action::NONE,
                rest => Action((count.unwrap_or(u32::MAX) - 1).wrapping_sub(rest as u32)),
            };
            for level in 0..5 {
                let len = [1, 5_000, 100, 9_000, 3][level as usize];
                (0..len).rev().for_each(|place| arrivals.set(place, action(level, place)));
                arrivals.next_level();
                assert!((0..len).all(|place| arrivals.get(place) == action(level, place)), "level {level}");
            }
            assert!(arrivals.held_bytes() >= 3 * (PIECE * arrivals.each) as u64);
        }
    }
}
