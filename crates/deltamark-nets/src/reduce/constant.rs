//! Places that never change, and conditions that always hold.
//!
//! # Rule
//! Where no transition takes from a place, its count is never below the initial one: a need of at most that is dropped. Where none adds, the count is never
//! above: a bound above that is dropped. A place that no transition changes is removed, unless it is visible.
//!
//! # Proof
//! The conditions hold in every reachable marking. In a place that does not change, conditions that do not hold belong to transitions
//! that can never fire, which are gone ([`dead`](super::dead)); without conditions it is the same number in every reachable marking. ∎ The reachable graph
//! stays as it is: K1, K2, K3.

use super::draft::Draft;
use super::touch::Touch;
use deltamark_core::Stop;

pub(super) fn apply(draft: &mut Draft<'_>) -> Result<(), Stop> {
    for place in draft.places() {
        if !draft.has_place(place) {
            continue;
        }
        let users = draft.users(place)?;
        let gains = |sign: i64| users.iter().any(|&user| draft.touch(user, place).gain.signum() == sign);
        let (grows, shrinks) = (gains(1), gains(-1));
        if grows && shrinks {
            continue;
        }
        let initial = draft.initial[place as usize];
        for &user in &users {
            let old = draft.touch(user, place);
            let need = if !shrinks && old.need <= initial { 0 } else { old.need };
            let below = old.below.filter(|&below| grows || initial >= below);
            let new = Touch { need, below, ..old };
            if new != old {
                draft.set_touch(user, new);
                draft.used("constant places");
            }
        }
        if !grows && !shrinks && !draft.visible[place as usize] && draft.users(place)?.is_empty() {
            draft.remove_place(place)?;
            draft.used("constant places");
        }
    }
    Ok(())
}
