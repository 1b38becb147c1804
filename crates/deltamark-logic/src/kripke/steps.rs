//! The operators of CTL on sets of states.
//!
//! In: edges, sets of states. Out: sets of states. E. Clarke, E. Emerson, A. Sistla, *Automatic verification of
//! finite-state concurrent systems using temporal logic specifications*, TOPLAS 1986: each operator takes time in
//! proportion to the edges. A state without edges is its own successor.

use super::edges::Edges;
use super::vector::Counted;
use super::{Pulse, set};
use deltamark_core::{BitSet, Control, Stop};

/// The states with a successor in `goals`.
pub(super) fn before(edges: &Edges, goals: &BitSet, control: &Control) -> Result<BitSet, Stop> {
    let mut found = set(edges.states(), control)?;
    let mut pulse = Pulse::new(control);
    for state in 0..edges.states() {
        pulse.beat()?;
        let row = edges.of(state);
        let leads = match row {
            [] => goals.contains(state.into()),
            _ => row.iter().any(|&target| goals.contains(target.into())),
        };
        if leads {
            found.insert(state.into());
        }
    }
    Ok(found)
}

/// The states from which a path through `through` leads to `goals`.
pub(super) fn until(reverse: &Edges, through: &BitSet, goals: &BitSet, control: &Control) -> Result<BitSet, Stop> {
    let mut found = goals.try_clone().ok_or(Stop::Memory)?;
    // What may still be found: fewer bits to look at for an edge.
    let mut open = through.try_clone().ok_or(Stop::Memory)?;
    open.subtract(goals);
    let mut waiting: Counted<u32> = Counted::new(&control.budget);
    let mut pulse = Pulse::new(control);
    for goal in goals.iter() {
        waiting.push(goal as u32)?;
        while let Some(state) = waiting.pop() {
            pulse.beat()?;
            for &source in reverse.of(state) {
                if open.contains(source.into()) {
                    open.remove(source.into());
                    found.insert(source.into());
                    waiting.push(source)?;
                }
            }
        }
    }
    Ok(found)
}

/// The states from which some path stays in `inside` for ever, or until it ends.
pub(super) fn always(edges: &Edges, reverse: &Edges, inside: &BitSet, control: &Control) -> Result<BitSet, Stop> {
    let mut kept = inside.try_clone().ok_or(Stop::Memory)?;
    // How many edges of each state lead inside.
    let mut degrees: Counted<u32> = Counted::zeroed(edges.states() as usize, &control.budget)?;
    let mut waiting: Counted<u32> = Counted::new(&control.budget);
    let mut pulse = Pulse::new(control);
    for state in inside.iter() {
        pulse.beat()?;
        let row = edges.of(state as u32);
        let degree = row.iter().filter(|&&target| inside.contains(target.into())).count();
        degrees[state as usize] = degree as u32;
        if degree == 0 && !row.is_empty() {
            waiting.push(state as u32)?;
        }
    }
    while let Some(state) = waiting.pop() {
        pulse.beat()?;
        kept.remove(state.into());
        for &source in reverse.of(state) {
            if kept.contains(source.into()) && degrees[source as usize] > 0 {
                degrees[source as usize] -= 1;
                if degrees[source as usize] == 0 {
                    waiting.push(source)?;
                }
            }
        }
    }
    Ok(kept)
}
