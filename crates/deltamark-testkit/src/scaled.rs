//! Random nets at the limits of sizes: heavy weights, high counts, very many places, transitions that change
//! most of them.
//!
//! In: a seed. Out: a net, most often one of few markings. What stays true: the same seed gives the same net on every
//! machine, and no transition adds more tokens than it takes, unless an inhibitor arc bounds what it adds.
//!
//! Scaling finds what small numbers hide: fields of many bits, full words, bits that all change together.

use crate::random::Rng;
use deltamark_nets::{Arc, Net, Place, Transition};
use std::collections::BTreeMap;

/// Weights and counts are multiples of these.
pub const SCALES: [u32; 6] = [1, 255, 1 << 16, 1 << 27, 1 << 31, u32::MAX];

/// The tokens of an arc or a place: a small multiple of the scale, often one more or less.
fn scaled(rng: &mut Rng, scale: u32, most: usize) -> u32 {
    let exact = scale.saturating_mul(1 + rng.below(most) as u32);
    match rng.below(8) {
        0 => exact.saturating_add(1),
        1 => (exact - 1).max(1),
        _ => exact,
    }
}

/// Distinct places, in random order.
fn some_places(rng: &mut Rng, places: usize, count: usize) -> Vec<u32> {
    let mut chosen: Vec<u32> = (0..places as u32).collect();
    rng.shuffle(&mut chosen);
    chosen.truncate(count);
    chosen
}

fn arcs(tokens: BTreeMap<u32, u32>) -> Vec<Arc> {
    tokens.into_iter().map(|(place, weight)| Arc { place, weight }).collect()
}

/// A random net of this seed, with 1 to 2,000 places.
pub fn scaled_net(seed: u64) -> Net {
    let mut rng = Rng::new(seed);
    let places = match rng.below(10) {
        0..=5 => 1 + rng.below(8),
        6 | 7 => 20 + rng.below(80),
        8 => 100 + rng.below(400),
        _ => 500 + rng.below(1501),
    };
    let scale = SCALES[rng.below(SCALES.len())];
    let initial =
        (0..places).map(|_| if rng.below(2) == 0 { 0 } else { scaled(&mut rng, scale, 3) }).collect::<Vec<_>>();
    let place = |(index, initial)| Place { id: format!("p{index}"), name: format!("p{index}"), initial };
    let transitions = (0..1 + rng.below(6)).map(|number| transition(&mut rng, places, scale, number)).collect();
    let mut net = Net {
        name: format!("scaled-{seed}"),
        places: initial.into_iter().enumerate().map(place).collect(),
        transitions,
        declared_safe: rng.below(8) == 0,
        ..Net::default()
    };
    if rng.below(2) == 0 {
        add_reverses(&mut rng, &mut net);
    }
    net
}

fn transition(rng: &mut Rng, places: usize, scale: u32, number: usize) -> Transition {
    // Few places, or most of them at once.
    let touched = match rng.below(3) {
        0 => 1 + rng.below(places),
        _ => 1 + rng.below(places.min(4)),
    };
    let chosen = some_places(rng, places, touched);
    let (from, to) = chosen.split_at(chosen.len().div_ceil(2));
    let uniform = (rng.below(2) == 0).then(|| scaled(rng, scale, 2));
    let mut inputs = BTreeMap::new();
    for &place in from {
        inputs.insert(place, uniform.unwrap_or_else(|| scaled(rng, scale, 3)));
    }
    let mut left: u64 = inputs.values().map(|&weight| u64::from(weight)).sum();
    let mut outputs = BTreeMap::new();
    // Some tokens return to where they came from.
    let back = from.iter().copied().filter(|_| rng.below(6) == 0).collect::<Vec<_>>();
    for place in to.iter().copied().chain(back) {
        let weight = uniform.unwrap_or_else(|| scaled(rng, scale, 3)).min(left.try_into().unwrap_or(u32::MAX));
        left -= u64::from(weight);
        if weight > 0 {
            outputs.insert(place, weight);
        }
    }
    let (mut reads, mut inhibitors) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..rng.below(8) / 6 {
        reads.insert(rng.below(places) as u32, scaled(rng, scale, 3));
    }
    for _ in 0..rng.below(8) / 6 {
        inhibitors.insert(rng.below(places) as u32, scaled(rng, scale, 3));
    }
    if rng.below(6) == 0 {
        // A source, as far as an inhibitor arc allows: counts grow beyond every weight.
        let place = rng.below(places) as u32;
        let weight = scaled(rng, scale, 1);
        (inputs, outputs) = (BTreeMap::new(), BTreeMap::from([(place, weight)]));
        inhibitors.insert(place, weight.saturating_mul(1 + rng.below(6) as u32));
    }
    Transition {
        id: format!("t{number}"),
        name: format!("t{number}"),
        label: None,
        inputs: arcs(inputs),
        outputs: arcs(outputs),
        reads: arcs(reads),
        inhibitors: arcs(inhibitors),
        ..Transition::default()
    }
}

/// Adds the reverses of some transitions, so that there are cycles.
fn add_reverses(rng: &mut Rng, net: &mut Net) {
    let total = |arcs: &[Arc]| arcs.iter().map(|arc| u64::from(arc.weight)).sum::<u64>();
    for number in 0..net.transitions.len() {
        let forward = &net.transitions[number];
        if rng.below(2) == 0 && total(&forward.inputs) == total(&forward.outputs) {
            let name = format!("back{number}");
            let (inputs, outputs) = (forward.outputs.clone(), forward.inputs.clone());
            net.transitions.push(Transition { id: name.clone(), name, inputs, outputs, ..Transition::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net_oracle::explore_net;

    #[test]
    fn scaled_nets_reach_every_edge() {
        let (mut finite, mut moving, mut beyond, mut wide, mut many, mut inhibited, mut read) = (0, 0, 0, 0, 0, 0, 0);
        for seed in 0..400 {
            let net = scaled_net(seed);
            assert_eq!(net.validate(), Ok(()), "seed {seed}");
            let found = explore_net(&net, 300);
            finite += usize::from(found.complete);
            moving += usize::from(found.markings.len() > 5);
            beyond += usize::from(found.most_in_place.iter().any(|&most| most > u64::from(u32::MAX)));
            wide += usize::from(net.places.len() > 1000);
            many += usize::from(net.transitions.iter().any(|transition| net.effect(transition).len() > 64));
            inhibited += usize::from(net.transitions.iter().any(|transition| !transition.inhibitors.is_empty()));
            read += usize::from(net.transitions.iter().any(|transition| !transition.reads.is_empty()));
        }
        assert!(finite > 300, "{finite} nets have few markings");
        let reached = [moving, beyond, wide, many, inhibited, read];
        assert!(reached.iter().all(|&count| count >= 15), "{reached:?}");
    }
}
