//! Edges between numbered states, without actions.
//!
//! In: the targets of each state, in the order of numbers. Out: the targets of any state; the same backwards. Four
//! bytes an edge and four a state. What stays true: there are fewer than 2^32 edges; more are taken for a lack of
//! memory.

use super::vector::Counted;
use super::{Control, Stop};
use deltamark_core::Budget;
use std::sync::Arc;

/// The edges of a graph.
#[derive(Debug)]
pub struct Edges {
    /// Where the targets of each state begin, and where the last ones end.
    starts: Counted<u32>,
    targets: Counted<u32>,
}

impl Edges {
    /// No states yet.
    pub fn new(budget: &Arc<Budget>) -> Result<Self, Stop> {
        let mut starts = Counted::new(budget);
        starts.push(0)?;
        Ok(Edges { starts, targets: Counted::new(budget) })
    }

    /// The number of states.
    pub fn states(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The number of edges.
    pub fn count(&self) -> usize {
        self.targets.len()
    }

    /// The targets of a state; parallel edges are several.
    #[inline]
    pub fn of(&self, state: u32) -> &[u32] {
        &self.targets[self.starts[state as usize] as usize..self.starts[state as usize + 1] as usize]
    }

    /// Appends states with these targets: `(source, target)`, sources counted from the first new state, in any order.
    pub fn append(&mut self, states: usize, edges: impl Iterator<Item = (usize, u32)> + Clone) -> Result<(), Stop> {
        let (first, begin) = (self.starts.len() - 1, self.targets.len());
        self.starts.extend_zeroed(states)?;
        let mut count = 0;
        for (source, _) in edges.clone() {
            self.starts[first + 1 + source] += 1;
            count += 1;
        }
        if (begin + count) as u64 >= u64::from(u32::MAX) || self.starts.len() as u64 >= u64::from(u32::MAX) {
            return Err(Stop::Memory);
        }
        self.targets.extend_zeroed(count)?;
        // Each entry is first where the targets of the state before it begin, and moves to where they end.
        let mut at = begin as u32;
        for entry in &mut self.starts[first + 1..] {
            at += std::mem::replace(entry, at);
        }
        for (source, target) in edges {
            let place = &mut self.starts[first + 1 + source];
            self.targets[*place as usize] = target;
            *place += 1;
        }
        Ok(())
    }

    /// The same edges backwards.
    pub(super) fn reversed(&self, control: &Control) -> Result<Edges, Stop> {
        let states = self.states() as usize;
        let mut starts: Counted<u32> = Counted::zeroed(states + 1, &control.budget)?;
        let mut sources: Counted<u32> = Counted::zeroed(self.targets.len(), &control.budget)?;
        control.ask()?;
        for &target in self.targets.iter() {
            starts[target as usize] += 1;
        }
        control.ask()?;
        let mut at = 0;
        for entry in starts.iter_mut() {
            at += *entry;
            *entry = at;
        }
        control.ask()?;
        // Filled from the end, so that each entry comes to where its sources begin.
        for source in (0..states as u32).rev() {
            for &target in self.of(source) {
                let place = &mut starts[target as usize];
                *place -= 1;
                sources[*place as usize] = source;
            }
        }
        control.ask()?;
        Ok(Edges { starts, targets: sources })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_come_in_any_order_within_a_block_and_can_be_reversed() {
        let control = Control::new();
        let mut edges = Edges::new(&control.budget).expect("memory");
        edges.append(3, [(2, 0), (0, 1), (2, 3), (0, 2)].into_iter()).expect("memory");
        edges.append(0, [].into_iter()).expect("memory");
        edges.append(2, [(1, 1), (1, 1), (0, 4)].into_iter()).expect("memory");
        let rows = |edges: &Edges| (0..edges.states()).map(|state| edges.of(state).to_vec()).collect::<Vec<_>>();
        assert_eq!(rows(&edges), [vec![1, 2], vec![], vec![0, 3], vec![4], vec![1, 1]]);
        let back = edges.reversed(&control).expect("memory");
        assert_eq!(rows(&back), [vec![2], vec![0, 4, 4], vec![0], vec![2], vec![3]]);
        assert_eq!((edges.states(), edges.count(), back.count()), (5, 7, 7));
    }
}
