//! A naive explorer of any system.
//!
//! In: a system. Out: every reachable state with its distance from the initial states, and the counts that a
//! search must agree with. What stays true: it uses `System::initial` and `System::successors` of one state
//! at a time and a hash map of whole states, nothing else; when the layout widens it restarts.

use deltamark_core::{Action, Batch, Slot, System, Widen};
use std::collections::HashMap;

/// A step from one state to another, both by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The number of the source.
    pub source: usize,
    /// The action.
    pub action: Action,
    /// The number of the target.
    pub target: usize,
}

/// The reachable part of a system.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// All states, in breadth-first order; the initial ones come first.
    pub states: Vec<Vec<Slot>>,
    /// The number of each state in `states`.
    pub numbers: HashMap<Vec<Slot>, usize>,
    /// The distance of each state from the nearest initial one.
    pub distances: Vec<u64>,
    /// The number of distinct initial states.
    pub initial: usize,
    /// All steps that lead to a state. Faults are not among them.
    pub edges: Vec<Edge>,
    /// The states without successor and without fault.
    pub deadlocks: Vec<usize>,
    /// For each fault its state and its action, if there is one.
    pub faults: Vec<(usize, Option<Action>)>,
    /// The number of widenings of the layout.
    pub widenings: u64,
}

impl Explored {
    /// The largest distance from the initial states.
    pub fn depth(&self) -> u64 {
        self.distances.iter().copied().max().unwrap_or(0)
    }

    /// The distance of the nearest state that `wanted` accepts.
    pub fn nearest(&self, wanted: impl Fn(&[Slot]) -> bool) -> Option<u64> {
        let wanted = self.states.iter().zip(&self.distances).filter(|(state, _)| wanted(state));
        wanted.map(|(_, &distance)| distance).min()
    }

    /// The distance of the nearest deadlock.
    pub fn nearest_deadlock(&self) -> Option<u64> {
        self.deadlocks.iter().map(|&number| self.distances[number]).min()
    }

    /// The distance of the nearest state with a fault.
    pub fn nearest_fault(&self) -> Option<u64> {
        self.faults.iter().map(|&(number, _)| self.distances[number]).min()
    }

    fn add(&mut self, state: &[Slot], distance: u64) -> usize {
        if let Some(&number) = self.numbers.get(state) {
            return number;
        }
        let number = self.states.len();
        self.numbers.insert(state.to_vec(), number);
        self.states.push(state.to_vec());
        self.distances.push(distance);
        number
    }
}

/// Explores all of a system.
pub fn explore(system: &dyn System) -> Explored {
    explore_up_to(system, usize::MAX).expect("no system has so many states")
}

/// Explores all of a system; `None` if it has more than `most` states.
pub fn explore_up_to(system: &dyn System, most: usize) -> Option<Explored> {
    let mut widenings = 0;
    loop {
        match attempt(system, most) {
            Ok(explored) => return explored.map(|explored| Explored { widenings, ..explored }),
            Err(Widen) => {
                system.widen();
                widenings += 1;
            }
        }
    }
}

fn attempt(system: &dyn System, most: usize) -> Result<Option<Explored>, Widen> {
    let mut scratch = system.scratch();
    let mut found = Explored::default();
    let mut batch = Batch::new(system.width());
    system.initial(&mut scratch, &mut batch)?;
    for index in 0..batch.len() {
        found.add(batch.target(index), 0);
    }
    found.initial = found.states.len();
    // States are numbered in the order they are found, so the numbers are the queue.
    let mut source = 0;
    while source < found.states.len() {
        if found.states.len() > most {
            return Ok(None);
        }
        let mut batch = Batch::new(system.width());
        system.successors(&mut scratch, &found.states[source], &mut batch)?;
        for index in 0..batch.len() {
            let target = found.add(batch.target(index), found.distances[source] + 1);
            found.edges.push(Edge { source, action: batch.action(index), target });
        }
        found.faults.extend(batch.faults().iter().map(|fault| (source, fault.action)));
        if batch.is_empty() && batch.faults().is_empty() {
            found.deadlocks.push(source);
        }
        source += 1;
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::{Counters, Workers};

    #[test]
    fn counts_of_counters_are_binomials() {
        // n counters with a sum of at most s have C(s + n, n) states; raising one is possible if the sum is
        // below s, and lowering one if it is above 0.
        for (counters, sum, states) in [(1, 9, 10), (2, 3, 10), (3, 4, 35), (12, 2, 91)] {
            let found = explore(&Counters::new(counters, sum));
            assert_eq!(found.states.len(), states, "{counters} counters, sum {sum}");
            assert_eq!(found.depth(), u64::from(sum));
            assert!(found.deadlocks.is_empty() && found.faults.is_empty());
        }
        assert_eq!(explore(&Counters::new(2, 3)).edges.len(), 6 * 2 + 6 * 2 + 6 * 2);
        assert_eq!(explore(&Counters::new(3, 4)).widenings, 2);
    }

    #[test]
    fn too_many_states_are_no_answer() {
        assert!(explore_up_to(&Counters::new(2, 3), 10).is_some());
        assert!(explore_up_to(&Counters::new(2, 3), 9).is_none());
        assert!(explore_up_to(&Counters::endless(2), 1000).is_none());
    }

    #[test]
    fn workers_have_what_they_promise() {
        let found = explore(&Workers::new(2, 2, 2));
        assert!(found.initial > 1 && !found.deadlocks.is_empty() && !found.faults.is_empty());
        assert!(found.faults.iter().any(|(_, action)| action.is_none()));
        let mut lengths: Vec<usize> = found.states.iter().map(Vec::len).collect();
        lengths.sort_unstable();
        assert!(lengths.first() < lengths.last());
    }
}
