//! What no visible place depends on.
//!
//! # Rule
//! Only where deadlocks do not matter. Let `R` be the least set of places with all visible ones, and with each place that a transition has
//! a condition on that changes a place of `R`. Transitions that change no place of `R` are removed; then places outside of `R` are.
//!
//! # Proof
//! K1: paths of the reduced net are paths of the net. K2: from a path of the net leave out the transitions that are removed. They change no place of
//! `R`, and the others look at no other place; so these can still fire, and lead to the same counts in `R`. ∎

use super::draft::Draft;
use deltamark_core::Stop;

pub(super) fn apply(draft: &mut Draft<'_>) -> Result<(), Stop> {
    let mut relevant: Vec<bool> =
        draft.places().map(|place| draft.has_place(place) && draft.visible[place as usize]).collect();
    let mut open: Vec<u32> = draft.places().filter(|&place| relevant[place as usize]).collect();
    let mut kept = vec![false; draft.transitions.len()];
    while let Some(place) = open.pop() {
        for user in draft.users(place)? {
            if kept[user as usize] || draft.touch(user, place).gain == 0 {
                continue;
            }
            kept[user as usize] = true;
            draft.spend(draft.touches(user).len())?;
            for touch in draft.touches(user) {
                if !touch.is_free() && !std::mem::replace(&mut relevant[touch.place as usize], true) {
                    open.push(touch.place);
                }
            }
        }
    }
    for number in draft.all_transitions() {
        if !kept[number as usize] {
            draft.remove_transition(number);
            draft.used("irrelevant parts");
        }
    }
    for place in draft.places() {
        if draft.has_place(place) && !relevant[place as usize] {
            draft.remove_place(place)?;
            draft.used("irrelevant parts");
        }
    }
    Ok(())
}
