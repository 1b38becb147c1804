//! Strongly connected components.
//!
//! In: a graph. Out: the number of components, of trivial ones (single states without a self-loop), of bottom ones
//! (that no edge leaves), and the set of states in bottom components. What stays true: nothing is recursive;
//! memory is granted by the budget.
//!
//! R. Tarjan, *Depth-first search and linear graph algorithms*, SIAM J. Comput. 1972, in the form of D. Pearce, *A
//! space-efficient algorithm for finding strongly connected components*, Inf. Process. Lett. 2016: one array of
//! numbers replaces index, low link and membership of the stack.

use crate::block::STATES;
use crate::graph::Graph;
use crate::meta::{FileError, damaged, go_on};
use crate::packed::Packed;
use crate::trail::Trail;
use deltamark_core::BitSet;
use deltamark_core::{Control, Edge, Stop};

/// The components of a graph.
#[derive(Debug)]
pub struct Components {
    /// The number of components.
    pub count: u64,
    /// The number of trivial components: a single state without a self-loop.
    pub trivial: u64,
    /// The number of bottom components, which no edge leaves: every infinite or maximal run ends up in one.
    pub bottom: u64,
    /// The number of states of the largest one.
    pub largest: u64,
    /// The states of bottom components.
    pub in_bottom: BitSet,
}

impl Components {
    /// Whether there is a single bottom component, reachable from everywhere, whose states are home states.
    pub fn has_home(&self) -> bool {
        self.bottom == 1
    }
}

/// The call stack of Tarjan's search and its stack of states in one array: together they never hold more than all
/// states.
struct TarjanStacks {
    /// 0 for an unvisited state; while it is on a stack its rank, from 1; afterwards, the largest numbers, for
    /// states whose component is known.
    rank: Packed,
    /// The call stack, from the front; states that wait for their component, from the back.
    stacks: Packed,
    way: u64,
    waiting: u64,
}

/// Finds the components.
pub fn components(graph: &Graph, control: &Control) -> Result<Components, FileError> {
    let states = graph.states();
    let budget = &control.budget;
    let no_room = || FileError::from(Stop::Memory);
    let done = states + 1;
    let mut rows = TarjanStacks {
        rank: Packed::new(states, done, budget).ok_or_else(no_room)?,
        stacks: Packed::new(states + 1, states, budget).ok_or_else(no_room)?,
        way: 0,
        waiting: states + 1,
    };
    // The next edge of each state of the call stack; degrees are small, so this is usually short.
    let mut next: Vec<u32> = Vec::new();
    let mut granted = 0;
    let mut found = Components {
        count: 0,
        trivial: 0,
        bottom: 0,
        largest: 0,
        in_bottom: BitSet::new(states, budget).ok_or_else(no_room)?,
    };
    // States of which an edge, or one of whose component, leads to another component.
    let mut leaves = BitSet::new(states, budget).ok_or_else(no_room)?;
    let mut roots = BitSet::new(states, budget).ok_or_else(no_room)?;
    let mut edges: Vec<Edge> = Vec::new();
    let mut trail = Trail::new(graph);
    let mut index = 1;
    let mut result = Ok(());
    // Steps down and back until the next poll of `control`.
    let mut until_asked = 0;
    'all: for &root in &graph.meta().initial {
        if rows.rank.get(root) != 0 {
            continue;
        }
        let mut state = root;
        let mut edge = 0;
        let mut entering = true;
        let mut read = graph.edges(state, &mut edges);
        loop {
            if until_asked == 0 {
                until_asked = STATES;
                read = read.and(go_on(control).map_err(FileError::from));
            }
            until_asked -= 1;
            if let Err(error) = read {
                result = Err(error);
                break 'all;
            }
            if entering {
                rows.rank.set(state, index);
                index += 1;
                roots.insert(state);
            }
            // Follows the edges, and descends at the first unvisited state.
            let mut down = None;
            while let Some(found_edge) = edges.get(edge) {
                let target = found_edge.target;
                let rank = rows.rank.get(target);
                if rank == 0 {
                    down = Some(target);
                    break;
                }
                edge += 1;
                if rank == done {
                    leaves.insert(state);
                } else if rank < rows.rank.get(state) {
                    rows.rank.set(state, rank);
                    roots.remove(state);
                }
            }
            if let Some(target) = down {
                if next.len() == next.capacity() {
                    let more = next.capacity().max(1 << 12);
                    if !budget.request(4 * more as u64) {
                        result = Err(no_room());
                        break 'all;
                    }
                    granted += 4 * more as u64;
                    next.reserve_exact(more);
                }
                next.push(edge as u32);
                rows.stacks.set(rows.way, state);
                read = trail.down(rows.way, state, target, &mut edges);
                rows.way += 1;
                (state, edge, entering) = (target, 0, true);
                continue;
            }
            // All edges have been followed.
            let mut left = leaves.contains(state);
            let finished = roots.contains(state);
            if finished {
                // All waiting states not above it belong to its component.
                let rank = rows.rank.get(state);
                let from = rows.waiting;
                let mut size = 1;
                while rows.waiting <= states && rows.rank.get(rows.stacks.get(rows.waiting)) >= rank {
                    left |= leaves.contains(rows.stacks.get(rows.waiting));
                    rows.waiting += 1;
                    size += 1;
                }
                for place in from..rows.waiting {
                    let member = rows.stacks.get(place);
                    rows.rank.set(member, done);
                    if !left {
                        found.in_bottom.insert(member);
                    }
                }
                index -= size;
                rows.rank.set(state, done);
                found.count += 1;
                found.bottom += u64::from(!left);
                found.largest = found.largest.max(size);
                found.trivial += u64::from(size == 1 && edges.iter().all(|edge| edge.target != state));
                if !left {
                    found.in_bottom.insert(state);
                }
            } else {
                rows.waiting -= 1;
                if rows.waiting < rows.way {
                    result = Err(damaged("it changed while it was read"));
                    break 'all;
                }
                rows.stacks.set(rows.waiting, state);
            }
            let Some(before) = next.pop() else { break };
            rows.way -= 1;
            let child = state;
            state = rows.stacks.get(rows.way);
            read = trail.back(rows.way, state, &mut edges);
            edge = before as usize;
            entering = false;
            // The edge that led down is visited again, now that its target has a rank.
            debug_assert!(rows.rank.get(child) != 0);
        }
    }
    budget.release(granted);
    result.map(|()| found)
}
