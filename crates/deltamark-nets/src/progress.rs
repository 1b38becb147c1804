//! What a net states of its progress: the effects of transitions on places.
//!
//! In: a net. Out: for each transition how it changes the number of tokens of each place, which is the
//! same wherever it fires; and estimates of which transitions matter, from short random walks.

use crate::NetSystem;
use deltamark_core::{Control, Effects, Observable, ObservableKind, Progress, Stop};
use std::borrow::Cow;

/// A name in the syntax of the property language.
fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !["true", "false", "deadlock", "and", "or", "not", "implies", "iff", "fireable", "tokens"].contains(&name);
    if plain { name.into() } else { format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")) }
}

impl Progress for NetSystem {
    fn effects(&self, control: &Control) -> Result<Option<Effects<'_>>, Stop> {
        let (often, late) = fired(self, control)?;
        let places = (0..).zip(&self.net().places);
        Ok(Some(Effects {
            counts: places.map(|(number, place)| (quoted(&place.name), NetSystem::tokens(number))).collect(),
            changes: Cow::Borrowed(self.changes()),
            estimates: vec![often, late],
        }))
    }

    fn gains_of(&self, terms: &[(Observable, i64)]) -> Option<Vec<i64>> {
        let mut weights = vec![0i64; self.net().places.len()];
        for &(observable, factor) in terms {
            // Whether a transition can fire is no count of tokens.
            let weight =
                weights.get_mut(observable.index as usize).filter(|_| observable.kind == ObservableKind::Int)?;
            *weight = weight.checked_add(factor)?;
        }
        Effects::gains(self.changes(), &weights)
    }
}

/// For each transition how often it fires in short walks, and when it first does: the smaller, the sooner it is
/// given up.
fn fired(system: &NetSystem, control: &Control) -> Result<(Vec<u64>, Vec<u64>), Stop> {
    let (net, changes) = (system.net(), system.changes());
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
            for &(place, gain) in &changes[chosen] {
                marking[place as usize] = marking[place as usize].saturating_add_signed(gain);
            }
        }
    }
    // Those that fire late are given up first.
    Ok((often, first.iter().map(|&step| u64::MAX - step).collect()))
}
