//! The state window of a sweep.
//!
//! In: states with their rank. Out: for each, whether it is new; the unexpanded ones, by rank.
//! Invariants: an inserted state at or ahead of the line is known until the line has passed it; a
//! state inserted behind the line is persistent; no state is deleted before it was returned for
//! expansion; no memory is allocated that the budget refuses.

use crate::{Action, Block, Bytes, Insert, Rank, Recoding, States};

/// States to be inserted, each with its hash, its rank and the action that led to it.
#[derive(Clone, Copy)]
pub struct Entrants<'a> {
    /// The states.
    pub states: &'a States,
    /// Their hashes.
    pub hashes: &'a [u64],
    /// Their ranks.
    pub ranks: &'a [Rank],
    /// The actions that led to them; used only by a window that stores them.
    pub actions: &'a [Action],
}

/// What a window stores beside the states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remember {
    /// The number of each state, which answers then contain.
    pub numbers: bool,
    /// An action that led to it. States of a rank are then returned level by level: see
    /// [`Window::fill`].
    pub actions: bool,
}

/// The states ahead of a sweep line, and the persistent ones behind it.
pub trait Window: Send + Sync {
    /// Moves the line: states of lower rank that are not persistent are deleted. All of them must
    /// have been returned for expansion. `closed` promises that no state of this rank will be
    /// inserted from now on, so its states need not be recognised any more.
    fn advance(&self, line: Rank, closed: bool);

    /// Inserts states and appends an answer for each; ids are numbers in the order of insertion,
    /// from 0, or nameless if numbers are not stored and the state is a duplicate. States behind
    /// the line become persistent. At most `room` states may be new: the first one beyond ends the
    /// call without an answer. After [`Insert::Full`] the rest is omitted.
    fn enter(&self, entrants: Entrants<'_>, room: u64, out: &mut Vec<Insert>);

    /// The lowest rank, starting from this one, with an unexpanded state.
    fn waiting(&self, from: Rank) -> Option<Rank>;

    /// Appends the first unexpanded states of a rank to the block, at most `most`, with their
    /// actions, if these are stored. They remain unexpanded until they are [passed](Self::pass).
    ///
    /// With actions, only states of one level are appended: a level of a rank consists of the
    /// states inserted while the previous level was returned; the first level, of those inserted
    /// before. The action of a state is the smallest of those that led to it before its level was
    /// returned.
    fn fill(&self, rank: Rank, most: usize, block: &mut Block, actions: &mut Vec<Action>);

    /// Marks the first `count` unexpanded states of this rank as expanded.
    fn pass(&self, rank: Rank, count: usize);

    /// Deletes everything and frees its memory.
    fn clear(&self);

    /// The number of states.
    fn len(&self) -> u64;

    /// Whether there are no states.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of persistent states.
    fn kept(&self) -> u64;

    /// The bytes allocated.
    fn held_bytes(&self) -> u64;

    /// The bytes allocated, by part.
    fn bytes(&self) -> Bytes;

    /// Translates every state. On `false` the budget had no room: the window can only be counted
    /// and dropped.
    #[must_use]
    fn recode(&self, recoding: &Recoding) -> bool;
}
