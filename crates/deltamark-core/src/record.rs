//! The graph of a run, as it comes out of a search.
//!
//! In: states by number, each with its edges, as the search finishes them. Out: whatever a
//! [`Recorder`] makes of them. What stays true: numbers are given out from 0 without gaps, every
//! number is recorded once, and a target may be recorded before or after its sources.

use crate::Action;

/// A step from the state that is being recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// What is done.
    pub action: Action,
    /// The number of the state it leads to.
    pub target: u64,
}

/// Takes down the graph while a search finds it.
pub trait Recorder {
    /// The state of this number has these edges and no others.
    ///
    /// # Errors
    /// What went wrong, in a sentence, when there is no place left to write to; the search ends.
    fn record(&mut self, number: u64, edges: &[Edge]) -> Result<(), String>;

    /// The model declares something wrong in the state of this number: in the state itself, or in a step from it, which is no edge.
    fn fault(&mut self, _number: u64) {}
}
