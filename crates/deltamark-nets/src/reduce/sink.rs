//! Places that nothing looks at.
//!
//! # Rule
//! A place that is not visible, and on which no condition depends, is removed.
//!
//! # Proof
//! A transition takes what it needs, so none takes from the place. What can fire does not depend on it, nor does a view. So paths of both nets
//! are the same, through markings that differ in this place alone. ∎ K1, K2, K3.

use super::draft::Draft;
use deltamark_core::Stop;

pub(super) fn apply(draft: &mut Draft<'_>, place: u32) -> Result<bool, Stop> {
    if draft.visible[place as usize] {
        return Ok(false);
    }
    let users = draft.users(place)?;
    if !users.iter().all(|&user| draft.touch(user, place).is_free()) {
        return Ok(false);
    }
    draft.remove_place(place)?;
    draft.used("sink places");
    Ok(true)
}
