//! Measures computed from the effects of actions.
//!
//! In: a system that states its [`Effects`]. Out: weights of its counts such that few actions lower
//! the weighted sum. Invariant: an action adds the same to the sum in every state, its *gain*; gains
//! are computed from the weights, exactly, so a measure is correct however it was found.
//!
//! # The idea
//! A linear measure is a weight `w` for each count; the gain of an action is `w · Δ`, where `Δ` is
//! its effect on the counts (of a net: tokens by place). K. Schmidt (*Automated generation of a
//! progress measure for the sweep-line method*, TACAS 2004) assigns a gain to each transition of a
//! basis of the `Δ`, from which the others follow. We search weights under which *all* actions gain,
//! and give up as few as necessary: see `separate.rs`. Which action of a cycle is given up is a
//! heuristic, and there are several: those that the system proposes (nets: the transition that fires
//! least often in a sample, the one that fires last), the last action, the first. In addition there
//! is the monotone measure, under which actions on cycles do not gain.
//!
//! A [trial](crate::trial) determines which of the measures is best.

use crate::separate::{LARGEST, Separation, divide, monotone, separate};
use deltamark_core::{Control, Effects, Measure, Rank, Stop, System, Weighted};

/// Of more counts and actions, only the first measures are computed.
const MOST_NODES: usize = 6000;

/// Measures worth trying, the most promising first; none if the system states no effects of its
/// actions, or no action can gain. An error if `control` ends the search for them.
pub fn measures(system: &dyn System, control: &Control) -> Result<Vec<Box<dyn Measure>>, Stop> {
    let Some(progress) = system.progress() else { return Ok(Vec::new()) };
    let Some(effects) = progress.effects(control)? else { return Ok(Vec::new()) };
    let (counts, actions) = (effects.counts.len(), effects.changes.len());
    let mut candidates: Vec<Vec<i64>> = Vec::new();
    let mut add = |weights: Option<Vec<i64>>| {
        if let Some(weights) = weights
            && !candidates.contains(&weights)
        {
            candidates.push(weights);
        }
    };
    let ascending: Vec<u64> = (0..actions as u64).collect();
    let descending: Vec<u64> = (0..actions as u64).rev().collect();
    for (number, keep) in effects.estimates.iter().chain([&ascending, &descending]).enumerate() {
        let Separation { weights, cyclic } = separate(counts, &effects.changes, keep, control)?;
        add(weights);
        if number == 0 && cyclic.iter().any(|&cyclic| cyclic) {
            add(monotone(counts, &effects.changes, cyclic, control)?);
        }
        if counts + actions > MOST_NODES {
            break;
        }
    }
    Ok(candidates.into_iter().filter_map(|weights| measure(&effects, weights)).collect())
}

/// The measure of these weights; `None` if no action gains under it.
fn measure(effects: &Effects<'_>, mut weights: Vec<i64>) -> Option<Box<dyn Measure>> {
    if !divide(&mut weights) {
        return None;
    }
    let gains = Effects::gains(&effects.changes, &weights)?;
    if gains.iter().all(|&gain| gain == 0) || weights.iter().any(|weight| weight.abs() > LARGEST) {
        return None;
    }
    let terms = effects.counts.iter().zip(weights).filter(|&(_, weight)| weight != 0);
    let terms = terms.map(|((name, observable), weight)| (name.clone(), *observable, weight));
    Some(Box::new(Weighted::new(terms, Some(gains.into_iter().map(Rank::from).collect()))))
}
