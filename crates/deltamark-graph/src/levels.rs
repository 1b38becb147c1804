//! Breadth-first search on a graph, by numbers alone.
//!
//! In: a graph. Out: its depth, and shortest paths. What stays true: no state is reconstructed. In a graph that is
//! numbered level by level the order of the file is that of the search, and there is no queue.

use crate::BitSet;
use crate::block::{STATES, Unpacked};
use crate::graph::Graph;
use crate::meta::{FileError, damaged, go_on};
use crate::packed::Packed;
use deltamark_core::{Action, Control, Edge, Stop};

/// A path from an initial state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The index of its initial state.
    pub initial: u32,
    /// The file's numbers of the actions, first to last.
    pub actions: Vec<Action>,
    /// The state it ends in.
    pub end: u64,
}

/// The largest distance of a state from the initial ones.
pub fn depth(graph: &Graph, control: &Control) -> Result<u64, FileError> {
    if let Some(depth) = graph.meta().depth {
        return Ok(depth);
    }
    if graph.meta().levels {
        return depth_in_order(graph, control);
    }
    let mut depth = 0;
    search(
        graph,
        control,
        |_, _| {},
        |_, level| {
            depth = level;
            false
        },
    )?;
    Ok(depth)
}

/// The depth of a graph that is numbered level by level: a level ends at the largest target of the level before
/// it.
fn depth_in_order(graph: &Graph, control: &Control) -> Result<u64, FileError> {
    let mut unpacked = Unpacked::default();
    let mut end = graph.meta().initial.iter().max().map_or(0, |&last| last + 1);
    let (mut most, mut depth) = (end, 0);
    for block in 0..graph.blocks() {
        go_on(control)?;
        graph.unpack(block, &mut unpacked)?;
        let first = block * STATES as u64;
        if first + STATES as u64 <= end {
            // The whole block is in one level.
            most = unpacked.edges().iter().fold(most, |most, (_, edge)| most.max(edge.target + 1));
            continue;
        }
        let mut targets = [0; STATES];
        for &(source, edge) in unpacked.edges() {
            targets[source as usize] = edge.target.max(targets[source as usize]);
        }
        let count = (graph.states() - first).min(STATES as u64);
        for (state, &target) in (first..first + count).zip(&targets) {
            if state >= end {
                depth += 1;
                end = most.max(state + 1);
            }
            most = most.max(target + 1);
        }
    }
    Ok(depth)
}

/// A shortest path to one of the states in `goals`; of several at the same distance to the first found. `None` if
/// none is reachable.
pub fn path_to(graph: &Graph, goals: &BitSet, control: &Control) -> Result<Option<Path>, FileError> {
    let initial = &graph.meta().initial;
    if let Some((index, &end)) = initial.iter().enumerate().find(|&(_, &number)| goals.contains(number)) {
        return Ok(Some(Path { initial: index as u32, actions: Vec::new(), end }));
    }
    let mut parents = Packed::new(graph.states(), graph.states(), &control.budget).ok_or(Stop::Memory)?;
    let mut end = None;
    if graph.meta().levels {
        end = goals.iter().next();
        end.map_or(Ok(()), |end| parents_in_order(graph, end, &mut parents, control))?;
    } else {
        search(
            graph,
            control,
            |parent, child| parents.set(child, parent + 1),
            |number, _| {
                end = goals.contains(number).then_some(number);
                end.is_some()
            },
        )?;
    }
    let Some(end) = end else { return Ok(None) };
    let mut actions = Vec::new();
    let mut edges = Vec::new();
    let mut number = end;
    while !initial.contains(&number) {
        if actions.len().is_multiple_of(STATES) {
            go_on(control)?;
        }
        let parent = parents.get(number).checked_sub(1).ok_or_else(|| damaged("a state cannot be reached"))?;
        graph.edges(parent, &mut edges)?;
        let edge = edges.iter().find(|edge| edge.target == number);
        actions.push(edge.ok_or_else(|| damaged("it changed while it was read"))?.action);
        number = parent;
        if actions.len() as u64 > graph.states() {
            return Err(damaged("it changed while it was read"));
        }
    }
    actions.reverse();
    let index = initial.iter().position(|&first| first == number).unwrap_or(0);
    Ok(Some(Path { initial: index as u32, actions, end }))
}

/// The smallest source of an edge to each state up to `end`, plus one, in a graph that is numbered level by level.
/// The smallest number has the least level, so such sources are on shortest paths.
fn parents_in_order(graph: &Graph, end: u64, parents: &mut Packed, control: &Control) -> Result<(), FileError> {
    let mut unpacked = Unpacked::default();
    for block in 0..=end / STATES as u64 {
        go_on(control)?;
        graph.unpack(block, &mut unpacked)?;
        for &(source, edge) in unpacked.edges() {
            let source = block * STATES as u64 + u64::from(source) + 1;
            let parent = parents.get(edge.target);
            if parent == 0 || source < parent {
                parents.set(edge.target, source);
            }
        }
    }
    Ok(())
}

/// Visits all states breadth-first: calls `found` with a state and its predecessor, then `visit` with it and its
/// distance, until that returns false.
fn search(
    graph: &Graph,
    control: &Control,
    mut found: impl FnMut(u64, u64),
    mut visit: impl FnMut(u64, u64) -> bool,
) -> Result<(), FileError> {
    let states = graph.states();
    let mut seen = BitSet::new(states, &control.budget).ok_or(Stop::Memory)?;
    // Every state is queued once, so an array of all of them suffices as queue.
    let mut queue = Packed::new(states, states, &control.budget).ok_or(Stop::Memory)?;
    let mut queued = 0;
    for &number in &graph.meta().initial {
        if seen.insert(number) {
            queue.set(queued, number);
            queued += 1;
            if visit(number, 0) {
                return Ok(());
            }
        }
    }
    let mut edges: Vec<Edge> = Vec::new();
    let (mut next, mut level, mut end) = (0, 0, queued);
    while next < queued {
        if next == end {
            level += 1;
            end = queued;
        }
        if next.is_multiple_of(STATES as u64) {
            go_on(control)?;
        }
        let number = queue.get(next);
        next += 1;
        graph.edges(number, &mut edges)?;
        for edge in &edges {
            if seen.insert(edge.target) {
                queue.set(queued, edge.target);
                queued += 1;
                found(number, edge.target);
                if visit(edge.target, level + 1) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}
