//! Chooses the order of an unfolded net's places.
//!
//! In: a P/T net, and the token that each place represents. Out: a permutation of the places. What stays
//! true: every place occurs once; a poor order costs memory and nothing else.
//!
//! # Why
//! Stores that share parts of states (`tree`, `collapse`) cut a state in the middle, and the halves again.
//! Parts repeat if they are parts of the model: the tokens of one site, of one process, in whatever place.
//! Unfolded place by place, these would be spread over the whole state.
//!
//! # How
//! There are three candidates: place by place, by owner (`owners.rs`), and by joint changes (`arrange.rs`). A
//! random walk samples some states, from which the number of distinct halves, quarters and so on is estimated. A
//! later candidate is chosen over an earlier one only if it has at least a tenth fewer.

use std::collections::HashMap;

use deltamark_core::hash::{coefficient, mix};
use deltamark_core::{Control, Stop};
use deltamark_nets as pt;

use crate::unfolding::arrange::{SLOT, arrange};
use crate::unfolding::owners::Belongings;

/// The maximum number of arc ends; larger nets are not reordered.
const MOST_PINS: usize = 60_000;
/// States of the sample.
const SAMPLE: usize = 2048;
/// Steps between two samples.
const APART: usize = 3;
/// The maximum number of transitions examined to get them.
const EFFORT: usize = 5_000_000;

/// The places of a net in a better order, unless `control` stops it; `tokens` gives the coloured place and
/// the token's components for each.
pub(crate) fn order(net: &pt::Net, tokens: &[(u32, Vec<i64>)], control: &Control) -> Result<Vec<u32>, Stop> {
    let mut best: Vec<u32> = (0..net.places.len() as u32).collect();
    let concerns = |transition: &pt::Transition| -> Vec<u32> {
        let mut places: Vec<u32> = transition.inputs.iter().chain(&transition.outputs).map(|arc| arc.place).collect();
        places.sort_unstable();
        places.dedup();
        places
    };
    let transitions: Vec<Vec<u32>> = net.transitions.iter().map(concerns).collect();
    let pins: usize = transitions.iter().map(Vec::len).sum();
    // A state of two slots has no halves to share.
    if pins > MOST_PINS || net.places.len() <= 2 * SLOT {
        return Ok(best);
    }
    let sample = walk(net);
    let mut least = parts(&sample, &best);
    let candidates: [&dyn Fn() -> Vec<u32>; 2] =
        [&|| Belongings { tokens, transitions: &transitions }.order(), &|| {
            arrange(net.places.len(), &transitions, control)
        }];
    for candidate in candidates {
        control.ask_for(0)?;
        let candidate = candidate();
        let found = parts(&sample, &candidate);
        if found < least / 10 * 9 {
            (least, best) = (found, candidate);
        }
    }
    control.ask_for(0)?;
    Ok(best)
}

/// Markings sampled by a random walk: the marked places and their counts.
fn walk(net: &pt::Net) -> Vec<Vec<(u32, u32)>> {
    let initial: Vec<u64> = net.places.iter().map(|place| u64::from(place.initial)).collect();
    let mut marking = initial.clone();
    let mut sample = Vec::new();
    let (mut random, mut effort, mut stuck) = (1u64, 0, 0);
    while sample.len() < SAMPLE && effort < EFFORT && stuck < 64 {
        for _ in 0..APART {
            // An enabled transition, uniformly at random.
            let mut enabled = None;
            let mut others = 0;
            for transition in &net.transitions {
                effort += 1;
                if transition.enabled(|place| marking[place as usize]) {
                    others += 1;
                    random = mix(random.wrapping_add(1));
                    if random % others == 0 {
                        enabled = Some(transition);
                    }
                }
            }
            let Some(transition) = enabled else {
                marking.clone_from(&initial);
                stuck += 1;
                break;
            };
            for arc in &transition.inputs {
                marking[arc.place as usize] -= u64::from(arc.weight);
            }
            for arc in &transition.outputs {
                marking[arc.place as usize] += u64::from(arc.weight);
            }
        }
        sample.push(
            (0..).zip(&marking).filter(|(_, count)| **count > 0).map(|(place, &count)| (place, count as u32)).collect(),
        );
    }
    sample
}

/// Estimates the number of distinct classes from how often each was seen (A. Chao, *Nonparametric Estimation
/// of the Number of Classes in a Population*, 1984): many singletons indicate many unseen classes.
fn estimate(seen: &HashMap<u64, u64>) -> u64 {
    let times = |wanted: u64| seen.values().filter(|&&times| times == wanted).count() as u64;
    let (once, twice) = (times(1), times(2));
    seen.len() as u64 + once * once.saturating_sub(1) / (2 * (twice + 1))
}

/// The estimated number of distinct contents of halves of states, and their halves, down to single slots.
fn parts(sample: &[Vec<(u32, u32)>], order: &[u32]) -> u64 {
    let mut slot = vec![0; order.len()];
    for (at, &place) in order.iter().enumerate() {
        slot[place as usize] = at / SLOT;
    }
    let slots = order.len().div_ceil(SLOT);
    // For each state the prefix sums of its tokens' hashes, up to each slot.
    let mut sums: Vec<u64> = Vec::with_capacity(sample.len() * (slots + 1));
    for marked in sample {
        let start = sums.len();
        sums.resize(start + slots + 1, 0);
        for &(place, count) in marked {
            let token = coefficient(u64::from(place)).wrapping_mul(u64::from(count));
            let sum = &mut sums[start + 1 + slot[place as usize]];
            *sum = sum.wrapping_add(mix(token));
        }
        for at in start + 1..start + slots + 1 {
            sums[at] = sums[at].wrapping_add(sums[at - 1]);
        }
    }
    let mut total = 0;
    let mut nodes = vec![(0, slots)];
    while let Some((from, to)) = nodes.pop() {
        if to - from < 2 {
            continue;
        }
        if to - from < slots {
            let mut seen: HashMap<u64, u64> = HashMap::new();
            for sums in sums.chunks_exact(slots + 1) {
                *seen.entry(sums[to].wrapping_sub(sums[from])).or_default() += 1;
            }
            total += estimate(&seen);
        }
        let middle = from + (to - from) / 2;
        nodes.extend([(from, middle), (middle, to)]);
    }
    total
}
