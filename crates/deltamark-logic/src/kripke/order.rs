//! The strongly connected components of a graph, in reverse topological order.
//!
//! R. Tarjan, *Depth-first search and linear graph algorithms*, 1972. In: the edges. Out: all states, those of one
//! component contiguous, and each component after those that it leads to. With them backward reachability is one pass
//! without backward edges, and only over states that an edge of another component leaves. Nine bytes a state, of which
//! four stay.

use super::edges::Edges;
use super::sets::StateSet;
use super::vector::Counted;
use super::{Pulse, set};
use deltamark_core::{BitSet, Control, Stop};

/// States by component.
pub(super) struct Order {
    states: Counted<u32>,
    /// The places at which a component begins.
    begins: BitSet,
    /// The states with an edge into another component.
    leaving: BitSet,
    /// The states that are on some cycle; one without edges repeats, so it is.
    cyclic: BitSet,
    components: u64,
}

const CLOSED: u32 = u32::MAX;

impl Order {
    pub fn new(edges: &Edges, control: &Control) -> Result<Self, Stop> {
        let count = edges.states();
        let mut order = Order {
            states: Counted::new(&control.budget),
            begins: set(count, control)?,
            leaving: set(count, control)?,
            cyclic: set(count, control)?,
            components: 0,
        };
        // 0 for new states, else their place in the search, the least one that is reached from them, or closed.
        let mut low: Counted<u32> = Counted::zeroed(count as usize, &control.budget)?;
        let mut live: Counted<u32> = Counted::new(&control.budget);
        let mut calls: Counted<(u32, u32, u32)> = Counted::new(&control.budget);
        let mut next = 1;
        let mut pulse = Pulse::new(control);
        for root in 0..count {
            if low[root as usize] != 0 {
                continue;
            }
            (low[root as usize], next) = (next, next + 1);
            live.push(root)?;
            calls.push((root, 0, next - 1))?;
            while let Some(&(state, at, number)) = calls.last() {
                pulse.beat()?;
                let row = edges.of(state);
                if let Some(&target) = row.get(at as usize) {
                    if let Some(call) = calls.last_mut() {
                        call.1 += 1;
                    }
                    match low[target as usize] {
                        0 => {
                            low[target as usize] = next;
                            live.push(target)?;
                            calls.push((target, 0, next))?;
                            next += 1;
                        }
                        CLOSED => {
                            order.leaving.insert(state.into());
                        }
                        other => low[state as usize] = low[state as usize].min(other),
                    }
                    continue;
                }
                calls.pop();
                let least = low[state as usize];
                if let Some(&(caller, ..)) = calls.last() {
                    if least == number {
                        order.leaving.insert(caller.into());
                    } else {
                        low[caller as usize] = low[caller as usize].min(least);
                    }
                }
                if least == number {
                    let begin = order.states.len();
                    order.begins.insert(begin as u64);
                    while let Some(member) = live.pop() {
                        low[member as usize] = CLOSED;
                        order.states.push(member)?;
                        if member == state {
                            break;
                        }
                    }
                    order.components += 1;
                    let several = order.states.len() - begin > 1;
                    if several || row.is_empty() || row.contains(&state) {
                        for &member in &order.states[begin..] {
                            order.cyclic.insert(member.into());
                        }
                    }
                }
            }
        }
        Ok(order)
    }

    /// The states from which some state of `goals` can be reached.
    pub fn reaching(&self, edges: &Edges, goals: &BitSet, control: &Control) -> Result<StateSet, Stop> {
        if self.components == 1 {
            return Ok(if goals.has_none() { StateSet::None } else { StateSet::All });
        }
        let mut found = set(edges.states(), control)?;
        let mut pulse = Pulse::new(control);
        let mut begin = 0;
        while begin < self.states.len() {
            let mut end = begin + 1;
            while end < self.states.len() && !self.begins.contains(end as u64) {
                end += 1;
            }
            let members = &self.states[begin..end];
            let leads = |&state: &u32| {
                self.leaving.contains(state.into())
                    && edges.of(state).iter().any(|&target| found.contains(target.into()))
            };
            if members.iter().any(|&state| goals.contains(state.into())) || members.iter().any(leads) {
                for &state in members {
                    found.insert(state.into());
                }
            }
            pulse.beat()?;
            begin = end;
        }
        Ok(StateSet::of(found))
    }

    /// The states on cycles.
    pub fn cyclic(&self) -> &BitSet {
        &self.cyclic
    }
}
