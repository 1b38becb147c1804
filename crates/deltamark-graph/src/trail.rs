//! The edges of the states on the stack of a depth-first search.
//!
//! In: edges, when the search descends from a state. Out: the same, when it returns. What stays true: those of the
//! last states of the stack are cached, a few kilobytes; of others they are decoded again. Most descents are
//! short, so most are cached.

use crate::graph::Graph;
use crate::meta::FileError;
use deltamark_core::Edge;

/// The number of states of the stack whose edges are cached.
const CACHED: usize = 256;

/// Edges by the depth of their state on the stack.
pub(crate) struct Trail<'g> {
    graph: &'g Graph,
    rows: Vec<(u64, Vec<Edge>)>,
}

impl<'g> Trail<'g> {
    pub fn new(graph: &'g Graph) -> Self {
        Trail { graph, rows: (0..CACHED).map(|_| (u64::MAX, Vec::new())).collect() }
    }

    /// Descends from the state of this number at this depth to another; `edges` are replaced by those of the
    /// latter.
    #[inline]
    pub fn down(&mut self, place: u64, number: u64, to: u64, edges: &mut Vec<Edge>) -> Result<(), FileError> {
        let row = &mut self.rows[place as usize % CACHED];
        std::mem::swap(&mut row.1, edges);
        row.0 = number;
        self.graph.edges(to, edges)
    }

    /// Returns to the state of this number at this depth; `edges` are replaced by its edges.
    #[inline]
    pub fn back(&mut self, place: u64, number: u64, edges: &mut Vec<Edge>) -> Result<(), FileError> {
        let row = &mut self.rows[place as usize % CACHED];
        if row.0 != number {
            return self.graph.edges(number, edges);
        }
        row.0 = u64::MAX;
        std::mem::swap(&mut row.1, edges);
        Ok(())
    }
}
