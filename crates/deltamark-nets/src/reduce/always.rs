//! A transition that can always fire.
//!
//! # Rule
//! Only where deadlocks matter, and no place is visible. If a transition has no condition, all places and all other transitions are removed.
//!
//! # Proof
//! It can fire in every marking, so neither net has a deadlock; and all views are empty. ∎ K1, K2, K3.

use super::draft::Draft;
use deltamark_core::Stop;

pub(super) fn apply(draft: &mut Draft<'_>) -> Result<(), Stop> {
    if draft.places().any(|place| draft.visible[place as usize]) {
        return Ok(());
    }
    let all = draft.all_transitions();
    let is_free = |&&number: &&u32| draft.touches(number).iter().all(|touch| touch.is_free());
    let Some(&free) = all.iter().find(is_free) else { return Ok(()) };
    if all.len() == 1 && draft.touches(free).is_empty() {
        return Ok(());
    }
    for number in all.into_iter().filter(|&number| number != free) {
        draft.remove_transition(number);
    }
    for place in draft.places() {
        if draft.has_place(place) {
            draft.remove_place(place)?;
        }
    }
    draft.used("a transition that can always fire");
    Ok(())
}
