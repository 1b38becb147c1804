//! Progress measures of nets, from the effects of transitions.
//!
//! In: a net. Out: weights of places such that few transitions lower the weighted sum of tokens. What stays true:
//! a transition adds the same to the sum wherever it fires, its *gain*; the gains are computed from the weights,
//! exactly, so a measure is correct however it was found.
//!
//! # The idea
//! A linear measure is a weight `w` for each place; the gain of a transition is `w · Δ`, where `Δ` is its effect
//! on each place. K. Schmidt (*Automated generation of a progress measure for the sweep-line method*, TACAS 2004)
//! assigns a gain to each transition of a basis of the `Δ`, from which the others follow. We search weights under
//! which *all* transitions gain, and give up as few as necessary; the search is the perceptron of
//! [`deltamark_core::separate`]. Which transition of a cycle is given up is a heuristic, and there are several:
//! the one that fires least often in a sample, the one that fires last, the last of the file, the first. In
//! addition there is the monotone measure, under which transitions on cycles do not gain.
//!
//! A trial run determines which of the measures is best.

use crate::{Net, NetSystem};
use deltamark_core::separate::{LARGEST, Separation, gcd, monotone, separate};
use deltamark_core::{Control, Kind, Measure, Observable, Progress, Rank, Stop, Weighted};

/// Larger nets get only the simplest measures.
const MOST_NODES: usize = 6000;

/// The measure of these weights of places; `None` if no transition gains under it. Places are observed as numbers
/// from `first` on.
fn linear(net: &Net, effects: &[Vec<(u32, i64)>], mut weights: Vec<i64>, first: u32) -> Option<Box<dyn Measure>> {
    let divisor = weights.iter().fold(0, |divisor, &weight| gcd(divisor, weight.unsigned_abs()));
    if divisor == 0 {
        return None;
    }
    weights.iter_mut().for_each(|weight| *weight /= divisor as i64);
    let gains = gains(effects, &weights)?;
    if gains.iter().all(|&gain| gain == 0) || weights.iter().any(|weight| weight.abs() > LARGEST) {
        return None;
    }
    let terms = (first..).zip(&net.places).zip(weights).filter(|&(_, weight)| weight != 0);
    let terms =
        terms.map(|((index, place), weight)| (quoted(&place.name), Observable { index, kind: Kind::Int }, weight));
    Some(Box::new(Weighted::new(terms, Some(gains.into_iter().map(Rank::from).collect()))))
}

/// The gain of each transition under these weights; `None` on overflow.
fn gains(effects: &[Vec<(u32, i64)>], weights: &[i64]) -> Option<Vec<i64>> {
    let gain = |effect: &Vec<(u32, i64)>| {
        effect
            .iter()
            .try_fold(0i64, |sum, &(place, count)| sum.checked_add(weights[place as usize].checked_mul(count)?))
    };
    effects.iter().map(gain).collect()
}

/// A name in the syntax of the property language.
fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !["true", "false", "deadlock", "and", "or", "not", "implies", "iff", "fireable", "tokens"].contains(&name);
    if plain { name.into() } else { format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")) }
}

impl NetSystem {
    /// Measures worth trying, for a system that runs this net and observes its places as numbers from `first` on.
    pub fn measures_from(&self, first: u32, control: &Control) -> Result<Vec<Box<dyn Measure>>, Stop> {
        let (net, effects) = (self.net(), self.effects());
        let mut candidates: Vec<Vec<i64>> = Vec::new();
        let mut add = |weights: Option<Vec<i64>>| {
            if let Some(weights) = weights
                && !candidates.contains(&weights)
            {
                candidates.push(weights);
            }
        };
        let count = effects.len();
        let model: Vec<u64> = (0..count as u64).collect();
        let reversed: Vec<u64> = (0..count as u64).rev().collect();
        let (often, late) = fired(self, control)?;
        for taste in [&often, &late, &model, &reversed] {
            let Separation { weights, cyclic } = separate(net.places.len(), effects, taste, control)?;
            add(weights);
            if std::ptr::eq(taste, &often) && cyclic.iter().any(|&cyclic| cyclic) {
                add(monotone(net.places.len(), effects, cyclic, control)?);
            }
            if net.places.len() + count > MOST_NODES {
                break;
            }
        }
        Ok(candidates.into_iter().filter_map(|weights| linear(net, effects, weights, first)).collect())
    }
}

impl Progress for NetSystem {
    fn measures(&self, control: &Control) -> Result<Vec<Box<dyn Measure>>, Stop> {
        self.measures_from(0, control)
    }

    fn gains_of(&self, terms: &[(Observable, i64)]) -> Option<Vec<i64>> {
        let mut weights = vec![0i64; self.net().places.len()];
        for &(observable, factor) in terms {
            // Whether a transition can fire is no count of tokens.
            let weight = weights.get_mut(observable.index as usize).filter(|_| observable.kind == Kind::Int)?;
            *weight = weight.checked_add(factor)?;
        }
        gains(self.effects(), &weights)
    }
}

/// For each transition how often it fires in short walks, and when it first does: the smaller, the sooner it is
/// given up.
fn fired(system: &NetSystem, control: &Control) -> Result<(Vec<u64>, Vec<u64>), Stop> {
    let (net, effects) = (system.net(), system.effects());
    let count = net.transitions.len();
    let (mut often, mut first) = (vec![0u64; count], vec![u64::MAX; count]);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let work = (count + 1) as u64;
    let walks = (20_000_000 / work / 100).clamp(2, 200);
    for _ in 0..walks {
        let mut marking: Vec<u64> = net.places.iter().map(|place| u64::from(place.initial)).collect();
        for step in 0..100u64 {
            control.check()?;
            let enabled: Vec<usize> =
                (0..count).filter(|&t| net.transitions[t].enabled(|place| marking[place as usize])).collect();
            if enabled.is_empty() {
                break;
            }
            seed = deltamark_core::hash::mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
            let chosen = enabled[(seed % enabled.len() as u64) as usize];
            for &t in &enabled {
                often[t] += 1;
                first[t] = first[t].min(step);
            }
            for &(place, gain) in &effects[chosen] {
                marking[place as usize] = marking[place as usize].saturating_add_signed(gain);
            }
        }
    }
    // Those that fire late are given up first.
    Ok((often, first.iter().map(|&step| u64::MAX - step).collect()))
}
