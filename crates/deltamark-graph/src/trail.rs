//! The edges of the states that a depth-first search has left and will come back to.
//!
//! In: edges, when the search goes down from a state. Out: the same, when it comes back. What stays true: those of the last
//! states of the way are at hand, a few kilobytes; of others they are read again. Most ways down are short, so most are at hand.

use crate::graph::Graph;
use crate::meta::FileError;
use deltamark_core::Edge;

/// How many states of the way have their edges at hand.
const AT_HAND: usize = 256;

/// Edges by the place of their state on the way.
pub(crate) struct Trail<'g> {
    graph: &'g Graph,
    rows: Vec<(u64, Vec<Edge>)>,
}

impl<'g> Trail<'g> {
    pub fn new(graph: &'g Graph) -> Self {
        Trail { graph, rows: (0..AT_HAND).map(|_| (u64::MAX, Vec::new())).collect() }
    }

    /// Goes down from the state of this number, at this place of the way, to another; `edges` are replaced by those of that.
    #[inline]
    pub fn down(&mut self, place: u64, number: u64, to: u64, edges: &mut Vec<Edge>) -> Result<(), FileError> {
        let row = &mut self.rows[place as usize % AT_HAND];
        std::mem::swap(&mut row.1, edges);
        row.0 = number;
        self.graph.edges(to, edges)
    }

    /// Comes back to the state of this number at this place of the way; `edges` are replaced by its.
    #[inline]
    pub fn back(&mut self, place: u64, number: u64, edges: &mut Vec<Edge>) -> Result<(), FileError> {
        let row = &mut self.rows[place as usize % AT_HAND];
        if row.0 != number {
            return self.graph.edges(number, edges);
        }
        row.0 = u64::MAX;
        std::mem::swap(&mut row.1, edges);
        Ok(())
    }
}
