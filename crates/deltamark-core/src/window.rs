//! The states ahead of a sweep line.
//!
//! In: states with their rank. Out: for each, whether it is new; those that wait, by rank. What
//! stays true: a state at the line or ahead of it that was entered is known until the line has
//! passed; one that is entered behind the line is known for good; nothing is forgotten before it
//! was handed out; and no memory is taken that the budget refuses.

use crate::{Action, Block, Bytes, Insert, Rank, Recoding, States};

/// States to be entered, each with its hash, its rank and the action that led to it.
#[derive(Clone, Copy)]
pub struct Entrants<'a> {
    /// The states.
    pub states: &'a States,
    /// Their hashes.
    pub hashes: &'a [u64],
    /// Their ranks.
    pub ranks: &'a [Rank],
    /// How they were reached; looked at only by a window that was made to keep it.
    pub actions: &'a [Action],
}

/// What a window is to remember beside the states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remember {
    /// The number of each state: answers then carry it.
    pub numbers: bool,
    /// An action that led to it. States of a rank are then handed out level by level: see [`Window::fill`].
    pub actions: bool,
}

/// The states ahead of a sweep line, and those kept for good behind it.
pub trait Window: Send + Sync {
    /// Moves the line: what has a lower rank and is not kept for good is forgotten. All of it
    /// must have been handed out. `closed` promises that no state of this rank will be entered
    /// from now on, so that those that are there need not be known any more.
    fn advance(&self, line: Rank, closed: bool);

    /// Enters states and appends an answer for each; ids are numbers in the order of entry, from 0,
    /// or nameless where numbers are not remembered and the state was there. States behind the
    /// line are kept for good. At most `room` states may be new: the first that
    /// would be one too many ends the call without an answer. After [`Insert::Full`] the rest is left out.
    fn enter(&self, entrants: Entrants<'_>, room: u64, out: &mut Vec<Insert>);

    /// The lowest rank from this one on at which a state waits.
    fn waiting(&self, from: Rank) -> Option<Rank>;

    /// Appends the first states that wait at a rank to the block, `most` at most, with their
    /// actions, if these are remembered. They wait until they are [passed](Self::pass).
    ///
    /// With actions, no more are appended than belong to one level: a level of a rank holds the states that were entered while the level
    /// before it was handed out; the first, those that were there before. The action of a state is the smallest of those that led to it
    /// before its level was handed out.
    fn fill(&self, rank: Rank, most: usize, block: &mut Block, actions: &mut Vec<Action>);

    /// Says that the first `count` states that wait at this rank have been expanded.
    fn pass(&self, rank: Rank, count: usize);

    /// Forgets everything, and gives its memory back.
    fn clear(&self);

    /// How many states it holds.
    fn len(&self) -> u64;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of them are kept for good.
    fn kept(&self) -> u64;

    /// The bytes it holds.
    fn held_bytes(&self) -> u64;

    /// The bytes it holds, by part.
    fn bytes(&self) -> Bytes;

    /// Translates every state it holds. On `false` the budget had no room: it can be counted and
    /// dropped, nothing else.
    #[must_use]
    fn recode(&self, recoding: &Recoding) -> bool;
}
