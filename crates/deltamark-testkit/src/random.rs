//! Random systems and random nets.
//!
//! In: a seed, or proptest's random generator. Out: graphs with arbitrary states, and small nets with every
//! kind of arc. What stays true: the same seed gives the same system on every machine.

use deltamark_core::hash::mix;
use deltamark_core::{Action, Batch, Describe, Fired, Scratch, Slot, System, Value, Widen, Width};
use deltamark_nets::{Arc, Net, Place, Transition};
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, prop_oneof};
use std::collections::{BTreeMap, HashMap};

/// A small pseudo-random number generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Rng(mix(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`, which is above 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}

/// An explicit random graph as a system: fixed or varying width, scrambled states, parallel edges,
/// self-loops, deadlocks, several initial states.
pub struct RandomGraph {
    width: Width,
    states: Vec<Vec<Slot>>,
    numbers: HashMap<Vec<Slot>, usize>,
    edges: Vec<Vec<(Action, usize)>>,
    initial: Vec<usize>,
}

impl RandomGraph {
    /// A graph with `count` states, not all of them reachable, of a width that depends
    /// on the seed: 1 to 5 slots, or varying.
    pub fn new(seed: u64, count: usize) -> Self {
        let mut rng = Rng::new(!seed);
        let width = if rng.below(2) == 0 { Width::Fixed(1 + rng.below(5)) } else { Width::Varies };
        Self::of_width(seed, width, count)
    }

    /// A graph with `count` states of this width, not all of them reachable.
    pub fn of_width(seed: u64, width: Width, count: usize) -> Self {
        assert!(count > 0 && width != Width::Fixed(0), "there is room for as many states");
        let mut rng = Rng::new(seed);
        let mut numbers = HashMap::new();
        let mut states = Vec::new();
        while states.len() < count {
            let slots = match width {
                Width::Fixed(width) => width,
                Width::Varies => rng.below(6),
            };
            // The states of some graphs differ in few bits only, as real states do.
            let mask = if seed.is_multiple_of(3) { 0x0001_00ff } else { Slot::MAX };
            let mut state: Vec<Slot> = (0..slots).map(|_| rng.number() as Slot & mask).collect();
            if let Some(slot) = state.last_mut() {
                *slot ^= (states.len() as Slot) << 4;
            }
            if !numbers.contains_key(&state) {
                numbers.insert(state.clone(), states.len());
                states.push(state);
            }
        }
        let edges = (0..count).map(|number| Self::random_edges(&mut rng, number, count)).collect();
        let initial = (0..1 + rng.below(3).min(count - 1)).collect();
        RandomGraph { width, states, numbers, edges, initial }
    }

    fn random_edges(rng: &mut Rng, number: usize, count: usize) -> Vec<(Action, usize)> {
        // One state in sixteen is a deadlock, but none of the first: most of the graph should be reachable.
        let degree = match rng.below(16) {
            _ if number < 8 => 3,
            0 => 0,
            chance => 1 + chance % 6,
        };
        let mut action = 0;
        let mut edges: Vec<(Action, usize)> = Vec::new();
        for place in 0..degree {
            action += 1 + rng.below(5) as u32;
            let target = match (rng.below(8), edges.last()) {
                (0, _) => number,
                (1, Some(&(_, again))) => again,
                // Near targets give depth.
                _ if place == 0 => (number + 1 + rng.below(2)) % count,
                (2 | 3, _) => (number + rng.below(50)) % count,
                _ => rng.below(count),
            };
            edges.push((Action(action), target));
        }
        edges
    }
}

impl System for RandomGraph {
    fn width(&self) -> Width {
        self.width
    }

    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        for (index, &number) in self.initial.iter().enumerate() {
            out.push(Action(index as u32), &self.states[number]);
        }
        Ok(())
    }

    fn successors(&self, _scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        for &(action, target) in &self.edges[self.numbers[source]] {
            out.push(action, &self.states[target]);
        }
        Ok(())
    }

    /// Stores that reconstruct states call this more often than anything else.
    fn fire(
        &self,
        _scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        target.clear();
        let edge = self.edges[self.numbers[source]].iter().find(|edge| edge.0 == action);
        Ok(match edge {
            Some(&(_, number)) => {
                target.extend_from_slice(&self.states[number]);
                Fired::Done
            }
            None => Fired::Disabled,
        })
    }

    fn describe(&self) -> &dyn Describe {
        self
    }
}

impl Describe for RandomGraph {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        vec![("number".into(), Value::Int(self.numbers[state] as i64))]
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        format!("edge {}", action.0)
    }
}

/// Random nets with up to `places` places and `transitions` transitions: weights, read
/// and inhibitor arcs; many are unbounded. In half of them all weights and counts are multiplied by a large number.
pub fn nets(places: usize, transitions: usize) -> impl Strategy<Value = Net> {
    assert!(places > 0, "a net has at least one place");
    let scale = prop_oneof![3 => Just(1), 1 => Just(255), 1 => Just(1 << 16), 1 => Just(1 << 27)];
    (1..=places, scale).prop_flat_map(move |(places, scale)| {
        let initial = vec(0..4u32, places);
        let transitions = vec(random_transition(places), 0..=transitions);
        (initial, transitions).prop_map(move |(initial, transitions)| multiplied(net(initial, transitions), scale))
    })
}

/// The net whose weights and counts are `scale` times as large.
fn multiplied(mut net: Net, scale: u32) -> Net {
    net.places.iter_mut().for_each(|place| place.initial *= scale);
    for transition in &mut net.transitions {
        let Transition { inputs, outputs, reads, inhibitors, .. } = transition;
        for arc in [inputs, outputs, reads, inhibitors].into_iter().flatten() {
            arc.weight *= scale;
        }
    }
    net
}

/// Random nets in which no transition adds more tokens than it takes, so that every one
/// of them is bounded.
pub fn bounded_nets(places: usize, transitions: usize) -> impl Strategy<Value = Net> {
    nets(places, transitions).prop_map(|mut net| {
        for transition in &mut net.transitions {
            let mut left: u32 = transition.inputs.iter().map(|arc| arc.weight).sum();
            for arc in &mut transition.outputs {
                arc.weight = arc.weight.min(left);
                left -= arc.weight;
            }
            transition.outputs.retain(|arc| arc.weight > 0);
        }
        net
    })
}

/// The same nets, in which some transitions have priority over others.
pub fn with_priorities(nets: impl Strategy<Value = Net>) -> impl Strategy<Value = Net> {
    (nets, vec(0..3u32, 16)).prop_map(|(mut net, priorities)| {
        for (transition, priority) in net.transitions.iter_mut().zip(priorities.into_iter().cycle()) {
            transition.priority = priority;
        }
        net
    })
}

fn random_transition(places: usize) -> impl Strategy<Value = [Vec<Arc>; 4]> {
    // Rare kinds of arcs are tried often enough, and do not disable everything.
    (arcs(places, 0..3), arcs(places, 0..3), rarely(arcs(places, 1..2)), rarely(arcs(places, 1..2)))
        .prop_map(|(inputs, outputs, reads, inhibitors)| [inputs, outputs, reads, inhibitors])
}

fn rarely(arcs: impl Strategy<Value = Vec<Arc>>) -> impl Strategy<Value = Vec<Arc>> {
    (0..4u8, arcs).prop_map(|(chance, arcs)| if chance == 0 { arcs } else { Vec::new() })
}

fn arcs(places: usize, count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Arc>> {
    // A map, because no place may occur twice in a list of arcs.
    btree_map(0..places as u32, (0..6u8, 1..4u32), count).prop_map(|arcs: BTreeMap<u32, (u8, u32)>| {
        let weight = |chance, weight| if chance == 0 { weight } else { 1 };
        arcs.into_iter().map(|(place, (chance, high))| Arc { place, weight: weight(chance, high) }).collect()
    })
}

fn net(initial: Vec<u32>, transitions: Vec<[Vec<Arc>; 4]>) -> Net {
    let place = |(index, initial)| Place { id: format!("p{index}"), name: format!("p{index}"), initial };
    let transition = |(index, [inputs, outputs, reads, inhibitors]): (usize, [Vec<Arc>; 4])| Transition {
        id: format!("t{index}"),
        name: format!("t{index}"),
        label: None,
        inputs,
        outputs,
        reads,
        inhibitors,
        priority: 0,
    };
    Net {
        name: "random".into(),
        places: initial.into_iter().enumerate().map(place).collect(),
        transitions: transitions.into_iter().enumerate().map(transition).collect(),
        ..Net::default()
    }
}

/// Seeds for [`RandomGraph`], and a size of up to `most` states.
pub fn graphs(most: usize) -> impl Strategy<Value = (u64, usize)> {
    (proptest::num::u64::ANY, Just(most)).prop_flat_map(|(seed, most)| (Just(seed), 1..=most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore;
    use crate::net_oracle::explore_net;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn random_nets_are_well_formed(net in nets(5, 5)) {
            prop_assert_eq!(net.validate(), Ok(()));
        }

        #[test]
        fn bounded_nets_are_bounded(net in bounded_nets(4, 4)) {
            prop_assert_eq!(net.validate(), Ok(()));
            let tokens: u64 = net.places.iter().map(|place| u64::from(place.initial)).sum();
            let found = explore_net(&net, 100_000);
            prop_assert!(found.complete);
            prop_assert!(found.most_in_marking <= tokens);
        }
    }

    #[test]
    fn graphs_have_all_that_makes_searching_hard() {
        let (mut fixed, mut varying, mut loops, mut twins, mut deadlocks) = (0, 0, 0, 0, 0);
        for seed in 0..20 {
            let graph = RandomGraph::new(seed, 300);
            match graph.width {
                Width::Fixed(_) => fixed += 1,
                Width::Varies => varying += 1,
            }
            let found = explore(&graph);
            assert!(found.states.len() > 1, "seed {seed}");
            deadlocks += found.deadlocks.len();
            loops += found.edges.iter().filter(|edge| edge.source == edge.target).count();
            twins +=
                found.edges.windows(2).filter(|w| (w[0].source, w[0].target) == (w[1].source, w[1].target)).count();
        }
        assert!([fixed, varying, loops, twins, deadlocks].iter().all(|&count| count > 0));
    }
}
