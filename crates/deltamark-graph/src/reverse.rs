//! Reverse edges.
//!
//! In: a graph. Out: for each state its predecessors. What stays true: it is built on demand, in memory that the
//! budget granted; a number takes as many bits as the largest needs. Actions are omitted: they are found among the
//! edges of the source. Parallel edges count once each.
//!
//! # Layout in memory
//! ```text
//! starts    [ where the sources of state 0 begin | of state 1 | … ]   ⌈log2 edges⌉ bits each
//! sources   [ … ]                                                      ⌈log2 states⌉ bits each
//! ```

use crate::block::{STATES, Unpacked};
use crate::graph::Graph;
use crate::meta::{FileError, go_on};
use crate::{BitSet, Packed};
use deltamark_core::{Control, Stop};

/// The sources of all edges, by target.
#[derive(Debug)]
pub struct Reverse {
    starts: Packed,
    sources: Packed,
}

impl Reverse {
    /// Reverses the edges of a graph.
    pub fn new(graph: &Graph, control: &Control) -> Result<Self, FileError> {
        let (states, edges) = (graph.states(), graph.meta().edges);
        let mut starts = Packed::new(states + 1, edges, &control.budget).ok_or(Stop::Memory)?;
        let mut sources = Packed::new(edges, states.saturating_sub(1), &control.budget).ok_or(Stop::Memory)?;
        let mut count = 0;
        each_edge(graph, control, |_, target| {
            count += 1;
            if count <= edges {
                starts.set(target, starts.get(target) + 1);
            }
        })?;
        if count != edges {
            return Err(crate::meta::damaged("it has not as many edges as its head says"));
        }
        // From counts to ends; filling backwards turns ends into starts.
        let mut sum = 0;
        for state in 0..=states {
            sum += starts.get(state);
            starts.set(state, sum);
        }
        each_edge(graph, control, |source, target| {
            let place = starts.get(target) - 1;
            starts.set(target, place);
            sources.set(place, source);
        })?;
        Ok(Reverse { starts, sources })
    }

    /// The sources of the edges that lead to a state.
    pub fn sources(&self, state: u64) -> impl Iterator<Item = u64> + '_ {
        (self.starts.get(state)..self.starts.get(state + 1)).map(|place| self.sources.get(place))
    }

    /// Adds to a set all states from which one of it is reachable.
    pub fn close(&self, set: &mut BitSet, control: &Control) -> Result<(), FileError> {
        let states = set.len();
        let mut queue = Packed::new(states, states, &control.budget).ok_or(Stop::Memory)?;
        let mut queued = 0;
        for state in set.iter() {
            queue.set(queued, state);
            queued += 1;
        }
        let mut next = 0;
        while next < queued {
            if next.is_multiple_of(STATES as u64) {
                go_on(control)?;
            }
            let state = queue.get(next);
            next += 1;
            for source in self.sources(state) {
                if set.insert(source) {
                    queue.set(queued, source);
                    queued += 1;
                }
            }
        }
        Ok(())
    }
}

/// Calls `each` with source and target of every edge.
fn each_edge(graph: &Graph, control: &Control, mut each: impl FnMut(u64, u64)) -> Result<(), FileError> {
    let mut unpacked = Unpacked::default();
    for block in 0..graph.blocks() {
        go_on(control)?;
        graph.unpack(block, &mut unpacked)?;
        unpacked
            .edges()
            .iter()
            .for_each(|(source, edge)| each(block * STATES as u64 + u64::from(*source), edge.target));
    }
    Ok(())
}
