//! A naive explorer of P/T nets.
//!
//! In: a net as data. Out: the counts that the packed, block-wise net system must agree with. What stays
//! true: markings are vectors of `u64`, firing follows the definition literally, and nothing is shared with
//! the compiler of nets.

use deltamark_nets::{Arc, Net, Transition};
use std::collections::HashMap;

/// The reachable part of a net.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExploredNet {
    /// Whether all markings were explored; if not, the counts are partial.
    pub complete: bool,
    /// The markings in breadth-first order.
    pub markings: Vec<Vec<u64>>,
    /// Pairs of a marking and a transition enabled in it.
    pub edges: u64,
    /// Markings in which no transition is enabled.
    pub deadlocks: u64,
    /// The largest distance from the initial marking.
    pub depth: u64,
    /// The largest count of each place.
    pub most_in_place: Vec<u64>,
    /// The largest number of tokens of a marking.
    pub most_in_marking: u64,
}

/// Explores a net, and stops when it has found more than `most` markings.
pub fn explore_net(net: &Net, most: usize) -> ExploredNet {
    let initial: Vec<u64> = net.places.iter().map(|place| u64::from(place.initial)).collect();
    let mut seen = HashMap::from([(initial.clone(), 0)]);
    let mut found = ExploredNet {
        complete: true,
        most_in_place: initial.clone(),
        most_in_marking: initial.iter().sum(),
        markings: vec![initial],
        edges: 0,
        deadlocks: 0,
        depth: 0,
    };
    let mut next = 0;
    while next < found.markings.len() {
        if found.markings.len() > most {
            found.complete = false;
            break;
        }
        let marking = found.markings[next].clone();
        let distance: u64 = seen[&marking];
        let mut dead = true;
        let enabled = |transition: &&Transition| fire(transition, &marking).is_some();
        let highest = net.transitions.iter().filter(enabled).map(|transition| transition.priority).max();
        for transition in net.transitions.iter().filter(|transition| Some(transition.priority) == highest) {
            let Some(successor) = fire(transition, &marking) else { continue };
            dead = false;
            found.edges += 1;
            if seen.contains_key(&successor) {
                continue;
            }
            for (most, &tokens) in found.most_in_place.iter_mut().zip(&successor) {
                *most = (*most).max(tokens);
            }
            found.most_in_marking = found.most_in_marking.max(successor.iter().sum());
            found.depth = found.depth.max(distance + 1);
            seen.insert(successor.clone(), distance + 1);
            found.markings.push(successor);
        }
        found.deadlocks += u64::from(dead);
        next += 1;
    }
    found
}

/// The marking after the transition, if it is enabled, priorities aside.
pub fn fire(transition: &Transition, marking: &[u64]) -> Option<Vec<u64>> {
    let tokens = |arc: &Arc| marking[arc.place as usize];
    let enough = |arc: &Arc| tokens(arc) >= u64::from(arc.weight);
    let enabled = transition.inputs.iter().all(enough)
        && transition.reads.iter().all(enough)
        && !transition.inhibitors.iter().any(enough);
    enabled.then(|| {
        let mut next = marking.to_vec();
        for arc in &transition.inputs {
            next[arc.place as usize] -= u64::from(arc.weight);
        }
        for arc in &transition.outputs {
            next[arc.place as usize] += u64::from(arc.weight);
        }
        next
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_nets::Place;

    /// A net from its initial marking and, for each transition, its inputs, outputs,
    /// reads and inhibitors.
    fn net(initial: &[u32], transitions: &[[&[(u32, u32)]; 4]]) -> Net {
        let arcs = |arcs: &[(u32, u32)]| arcs.iter().map(|&(place, weight)| Arc { place, weight }).collect();
        Net {
            places: initial.iter().map(|&initial| Place { id: String::new(), name: String::new(), initial }).collect(),
            transitions: transitions
                .iter()
                .map(|[inputs, outputs, reads, inhibitors]| Transition {
                    inputs: arcs(inputs),
                    outputs: arcs(outputs),
                    reads: arcs(reads),
                    inhibitors: arcs(inhibitors),
                    ..Transition::default()
                })
                .collect(),
            ..Net::default()
        }
    }

    #[test]
    fn small_nets_have_the_counts_one_finds_by_hand() {
        // (net, states, edges, deadlocks, depth, most in each place)
        let cases = [
            (net(&[1], &[]), 1, 0, 1, 0, vec![1]),
            (net(&[3, 0], &[[&[(0, 1)], &[(1, 1)], &[], &[]]]), 4, 3, 1, 3, vec![3, 3]),
            (net(&[3, 0], &[[&[(0, 2)], &[(1, 1)], &[], &[]]]), 2, 1, 1, 1, vec![3, 1]),
            // It may fire only while the read place holds two.
            (net(&[3, 0], &[[&[(0, 1)], &[(1, 1)], &[(0, 2)], &[]]]), 3, 2, 1, 2, vec![3, 2]),
            // It may fire only while the inhibitor place holds fewer than two.
            (net(&[3, 0], &[[&[(0, 1)], &[(1, 1)], &[], &[(1, 2)]]]), 3, 2, 1, 2, vec![3, 2]),
            // A loop: one state, one edge, no deadlock.
            (net(&[1], &[[&[(0, 1)], &[(0, 1)], &[], &[]]]), 1, 1, 0, 0, vec![1]),
        ];
        for (number, (net, states, edges, deadlocks, depth, most)) in cases.into_iter().enumerate() {
            let found = explore_net(&net, 100);
            assert!(found.complete);
            let counts = (found.markings.len(), found.edges, found.deadlocks, found.depth, found.most_in_place);
            assert_eq!(counts, (states, edges, deadlocks, depth, most), "net {number}");
        }
    }

    #[test]
    fn an_unbounded_net_is_cut_off() {
        let found = explore_net(&net(&[0], &[[&[], &[(0, 1)], &[], &[]]]), 50);
        assert!(!found.complete && found.markings.len() == 51);
    }
}
