//! Measures learnt from a sample.
//!
//! In: the first states of a system and the steps among them, and observables: variables,
//! locations, token counts. Out: measures that are weighted sums of these. Invariant: a learnt
//! measure is a function of the state like any other; steps on which it is wrong, because the
//! sample lacks them, regress.
//!
//! # The idea
//! Every step changes each observable by some amount. Distinct changes are treated as transitions
//! and observables as places of a net, and weights are searched (`separate.rs`) under
//! which most of them gain. A process moves from location to location, so its locations get weights
//! in the order of their succession; a counter that only increases gets a positive weight. Of a
//! cycle, the change that is rarest in the sample is given up.

use crate::separate::{LARGEST, divide, monotone, separate};
use crate::trial::Sample;
use deltamark_core::{Control, Measure, Observable, ObservableKind, Stop, System, Weighted};
use std::collections::HashMap;

/// The most numbers that are looked at.
const MOST_FEATURES: usize = 400;
/// The most values that are held at once: of many numbers fewer states are looked at.
const MOST_VALUES: usize = 4 << 20;
/// The most different changes that are distinguished; the more frequent ones count.
const MOST_CHANGES: usize = 3000;

/// What a change takes in the table of changes, beside its numbers, twice: the table doubles.
const ENTRY: u64 = 160;

/// Measures that the sample suggests, as far as its budget has room for the values of states; an error, if `control` has the search
/// for them end.
pub fn learnt(system: &dyn System, sample: &Sample, control: &Control) -> Result<Vec<Box<dyn Measure>>, Stop> {
    let Some(observe) = system.observe() else { return Ok(Vec::new()) };
    let resolve = |name: String| observe.resolve(&name).map(|found| (name, found));
    let mut features: Vec<(String, Observable)> = observe.names().into_iter().filter_map(resolve).collect();
    features.extend(system.progress().map(|progress| progress.features()).unwrap_or_default());
    features.truncate(MOST_FEATURES);
    let mut memory = sample.more_memory();
    let bytes = |states: usize| (states * features.len() * size_of::<i64>()) as u64;
    let most = sample.len().min(MOST_VALUES / features.len().max(1));
    // As many as there is memory for.
    let fits = |states: &usize| memory.holds(bytes(*states));
    let Some(states) = std::iter::successors(Some(most), |states| (*states > 64).then_some(states / 2)).find(fits)
    else {
        return Ok(Vec::new());
    };
    let held = bytes(states);
    let values = features.iter().map(|feature| sample.values(system, feature.1, states, control));
    let values = values.collect::<Result<Vec<Vec<i64>>, Stop>>()?;
    // What never changes cannot progress.
    let changing = |values: &Vec<i64>| values.windows(2).any(|pair| pair[0] != pair[1]);
    let (features, values): (Vec<_>, Vec<_>) =
        features.into_iter().zip(values).filter(|(_, values)| changing(values)).unzip();
    let mut taken = 0;
    let mut changes: HashMap<Vec<(u32, i64)>, u64> = HashMap::new();
    for (source, target) in sample.edges(states) {
        control.ask()?;
        let change = |values: &Vec<i64>| values[target].saturating_sub(values[source]).clamp(-LARGEST, LARGEST);
        let change: Vec<(u32, i64)> = (0u32..).zip(values.iter().map(change)).filter(|&(_, by)| by != 0).collect();
        if let Some(often) = changes.get_mut(&change) {
            *often += 1;
        } else if !change.is_empty() {
            taken += ENTRY + 2 * (change.len() * size_of::<(u32, i64)>()) as u64;
            // What is rare and found late may be missing.
            if !memory.holds(held + taken) {
                break;
            }
            changes.insert(change, 1);
        }
    }
    let mut changes: Vec<(Vec<(u32, i64)>, u64)> = changes.into_iter().collect();
    // By the change itself last, so that every run learns the same.
    changes.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    changes.truncate(MOST_CHANGES);
    let (vectors, often): (Vec<Vec<(u32, i64)>>, Vec<u64>) = changes.into_iter().unzip();
    let steady = steady(features.len(), &vectors);
    // Contents of buffers and the like jump about, and spoil the search for weights: once more without them.
    let calm: Vec<bool> =
        features.iter().zip(&steady).map(|(of, &sign)| of.1.kind == ObservableKind::Bool || sign != 0).collect();
    let calmed: Vec<Vec<(u32, i64)>> =
        vectors.iter().map(|vector| vector.iter().copied().filter(|&(at, _)| calm[at as usize]).collect()).collect();
    let found = separate(features.len(), &vectors, &often, control)?;
    let quiet = separate(features.len(), &calmed, &often, control)?;
    let still = monotone(features.len(), &vectors, found.cyclic, control)?;
    let calm_still = monotone(features.len(), &calmed, quiet.cyclic, control)?;
    let mut measures: Vec<Box<dyn Measure>> = Vec::new();
    for mut weights in [Some(steady), calm_still, still, quiet.weights, found.weights].into_iter().flatten() {
        if weights.iter().any(|weight| weight.abs() > LARGEST) || !divide(&mut weights) {
            continue;
        }
        let named =
            features.iter().cloned().zip(weights).map(|((name, observable), weight)| (name, observable, weight));
        measures.push(Box::new(Weighted::new(named.filter(|term| term.2 != 0), None)));
    }
    Ok(measures)
}

/// The sum of what never decreases, less what never increases.
fn steady(features: usize, vectors: &[Vec<(u32, i64)>]) -> Vec<i64> {
    let mut signs = vec![(false, false); features];
    for &(at, by) in vectors.iter().flatten() {
        let sign = &mut signs[at as usize];
        *sign = (sign.0 || by > 0, sign.1 || by < 0);
    }
    signs.into_iter().map(|(up, down)| i64::from(up && !down) - i64::from(down && !up)).collect()
}
