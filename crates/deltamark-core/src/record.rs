//! Recording of the state graph during a search.
//!
//! In: states by number, each with its edges, as the search completes them. Out: determined by the
//! [`Recorder`]. Invariants: numbers are contiguous from 0, every number is recorded once, and a
//! target may be recorded before or after its sources.

use crate::Action;

/// An edge of the state that is being recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The action.
    pub action: Action,
    /// The number of the target.
    pub target: u64,
}

/// Records the graph during a search.
pub trait Recorder {
    /// Records that the state of this number has exactly these edges.
    ///
    /// # Errors
    /// The reason, in a sentence, if writing fails; the search ends.
    fn record(&mut self, number: u64, edges: &[Edge]) -> Result<(), String>;

    /// Records a fault in the state of this number, of the state itself or of an action from it,
    /// which is no edge.
    fn fault(&mut self, _number: u64) {}
}
