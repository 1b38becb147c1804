//! Checks the header of a file against its blocks.
//!
//! In: a graph whose checksums are correct. Out: an error if its header and its blocks contradict each other. What
//! stays true: a checksum shows that a file was not damaged, not that its writer was honest; what is reported of a
//! graph without a walk (edges, states without edges, depth) and what walks rely on (the order of the numbers) is
//! recomputed here.
//!
//! What cannot be checked without exploring the model again is whether edges are missing, and in how many states
//! the model has a fault.

use crate::BitSet;
use crate::block::{STATES, Unpacked};
use crate::graph::Graph;
use crate::meta::{FileError, damaged, go_on};
use deltamark_core::{Control, Stop};

impl Graph {
    /// Compares the header with the blocks: one pass over all edges, and one bit a state.
    pub fn audit(&self, control: &Control) -> Result<(), FileError> {
        let meta = self.meta();
        let mut reached = BitSet::new(self.states(), &control.budget).ok_or(Stop::Memory)?;
        meta.initial.iter().for_each(|&number| _ = reached.insert(number));
        let mut levels = Levels::begin(self, &reached)?;
        let (mut edges, mut ends) = (0, 0);
        let mut unpacked = Unpacked::default();
        let mut rows: Vec<(u8, u64)> = Vec::new();
        for block in 0..self.blocks() {
            go_on(control)?;
            self.unpack(block, &mut unpacked)?;
            let first = block * STATES as u64;
            let count = (self.states() - first).min(STATES as u64);
            edges += unpacked.edges().len() as u64;
            ends += count - u64::from(unpacked.moved().count_ones());
            if first + count <= levels.end || !meta.levels {
                // All states are of one level, so that their order makes no difference.
                for (_, edge) in unpacked.edges() {
                    reached.insert(edge.target);
                    levels.most = levels.most.max(edge.target + 1);
                }
                continue;
            }
            rows.clear();
            rows.extend(unpacked.edges().iter().map(|(source, edge)| (*source, edge.target)));
            rows.sort_unstable();
            let mut rows = rows.iter().peekable();
            for place in 0..count {
                levels.enter(first + place, &reached)?;
                while let Some((_, target)) = rows.next_if(|(source, _)| u64::from(*source) == place) {
                    reached.insert(*target);
                    levels.most = levels.most.max(target + 1);
                }
            }
        }
        let depth = if meta.levels { Some(levels.depth) } else { None };
        match () {
            _ if edges != meta.edges => Err(damaged("its head gives another number of edges than it has")),
            _ if ends != meta.ends => Err(damaged("its head gives another number of states without edges than it has")),
            _ if meta.depth.is_some_and(|told| Some(told) != depth) => {
                Err(damaged("its head gives another depth than it has"))
            }
            _ if reached.count() != self.states() => Err(damaged("no edge leads to some of its states")),
            _ => Ok(()),
        }
    }
}

/// The levels of a graph whose header claims that states are numbered level by level.
struct Levels {
    /// The first number after the current level.
    end: u64,
    /// The first number after the next level, as far as its states are known.
    most: u64,
    depth: u64,
}

impl Levels {
    /// The level of the initial states, which are in `reached`.
    fn begin(graph: &Graph, reached: &BitSet) -> Result<Self, FileError> {
        let end = graph.meta().initial.iter().max().map_or(0, |&last| last + 1);
        if graph.meta().levels && reached.count() != end {
            return Err(out_of_order());
        }
        Ok(Levels { end, most: end, depth: 0 })
    }

    /// Advances to this state. All edges of earlier states have been visited; so at the end of a level `reached`
    /// holds the states of the next one and none beyond it.
    fn enter(&mut self, state: u64, reached: &BitSet) -> Result<(), FileError> {
        if state < self.end {
            return Ok(());
        }
        if (self.end..self.most.max(state + 1)).any(|number| !reached.contains(number)) {
            return Err(out_of_order());
        }
        self.depth += 1;
        self.end = self.most;
        Ok(())
    }
}

fn out_of_order() -> FileError {
    damaged("its states are not numbered level by level, as its head says")
}
