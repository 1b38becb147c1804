//! A first guess of how large counts get.
//!
//! In: a net. Out: the largest count of each place on a few walks from the initial
//! marking. What stays true: this is a guess that saves widenings; nothing relies on it.

use crate::Net;
use deltamark_core::hash::mix;

/// How many arcs the walks may look at in all: about a millisecond.
const EFFORT: usize = 200_000;
/// How many walks share the effort.
const WALKS: u64 = 4;

/// The largest count of each place on a few random walks that always take the same turns.
pub(crate) fn largest_counts(net: &Net, effects: &[Vec<(u32, i64)>]) -> Vec<u64> {
    let initial: Vec<u64> = net.places.iter().map(|place| u64::from(place.initial)).collect();
    let mut largest = initial.clone();
    if net.declared_safe {
        return largest;
    }
    let mut random = 0u64;
    for walk in 1..=WALKS {
        let mut marking = initial.clone();
        let mut effort = 0;
        while effort < EFFORT / WALKS as usize {
            random = mix(random.wrapping_add(walk));
            // The first enabled transition from a random one on: cheap, and fair enough.
            let count = net.transitions.len();
            let start = if count == 0 { 0 } else { random as usize % count };
            let chosen = (start..count).chain(0..start).find(|&number| {
                let transition = &net.transitions[number];
                effort += 1 + transition.inputs.len();
                let holds = |place: u32, weight: u32| marking[place as usize] >= u64::from(weight);
                transition.inputs.iter().chain(&transition.reads).all(|arc| holds(arc.place, arc.weight))
                    && !transition.inhibitors.iter().any(|arc| holds(arc.place, arc.weight))
            });
            let Some(chosen) = chosen else { break };
            for &(place, gain) in &effects[chosen] {
                let count = &mut marking[place as usize];
                *count = count.saturating_add_signed(gain);
                largest[place as usize] = largest[place as usize].max(*count);
            }
        }
    }
    largest
}
