//! Transitions with the effect of another one.
//!
//! # Rule
//! If two transitions have the same gains, and all conditions of the second are implied by those of the first, the first is removed. If deadlocks do not
//! matter, one that changes nothing is removed.
//!
//! # Proof
//! Where the first can fire the second can, and leads to the same marking. So the reachable markings stay what they are, and a marking in which the second cannot fire is
//! one in which the first cannot. ∎ K1, K2, K3. A transition that changes nothing leads to no other marking. ∎ K1, K2.

use super::draft::Draft;
use super::touch::Touch;
use deltamark_core::Stop;
use std::collections::HashMap;

/// The most transitions of the same gains that are compared with each other.
const MOST: usize = 32;

pub(super) fn apply(draft: &mut Draft<'_>) -> Result<(), Stop> {
    let mut by_gains: HashMap<Vec<(u32, i64)>, Vec<u32>> = HashMap::new();
    for number in draft.all_transitions() {
        draft.spend(draft.touches(number).len())?;
        let gains = draft.touches(number).iter().filter(|touch| touch.gain != 0);
        let gains: Vec<(u32, i64)> = gains.map(|touch| (touch.place, touch.gain)).collect();
        if gains.is_empty() && !draft.deadlocks {
            draft.remove_transition(number);
            draft.used("equal transitions");
            continue;
        }
        let known = by_gains.entry(gains).or_default();
        let mut redundant = false;
        let mut index = 0;
        while index < known.len() && !redundant {
            let other = known[index];
            draft.spend(draft.touches(number).len())?;
            if implies(draft.touches(number), draft.touches(other)) {
                redundant = true;
            } else if implies(draft.touches(other), draft.touches(number)) {
                known.swap_remove(index);
                draft.remove_transition(other);
                draft.used("equal transitions");
            } else {
                index += 1;
            }
        }
        if redundant {
            draft.remove_transition(number);
            draft.used("equal transitions");
        } else if known.len() < MOST {
            known.push(number);
        }
    }
    Ok(())
}

/// Whether the conditions of `one` imply those of `other`.
fn implies(one: &[Touch], other: &[Touch]) -> bool {
    other.iter().filter(|touch| !touch.is_free()).all(|wanted| {
        one.binary_search_by_key(&wanted.place, |touch| touch.place).is_ok_and(|at| {
            let given = one[at];
            let stays = |below: u64| given.below.is_some_and(|given| given <= below);
            given.need >= wanted.need && wanted.below.is_none_or(stays)
        })
    })
}
