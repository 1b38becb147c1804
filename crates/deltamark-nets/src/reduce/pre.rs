//! Pre-agglomeration: a transition precedes at the last moment.
//!
//! ```text
//!   (q) ──▶ h ──▶ (p) ──▶ f          becomes        (q) ──▶ h f
//! ```
//!
//! # Rule
//! At a place `p` that is not visible and holds fewer than `w` tokens at first. `H`, not empty, are the transitions that add to `p`: each adds `w` there, has no condition there, and adds nowhere else; from each other place `q` that
//! it touches, at least one, it takes what it needs; `q` is not visible, and no transition has an upper bound there. If deadlocks matter, no other transition has a condition on `q`. All others that touch
//! `p`, `F`, take `w` from it and need `w`. Then `p` is removed, and instead of `H` and `F` there is `h f` for all of them.
//!
//! # Proof
//! K1: words are paths. K2: let a path lead to `m`. Each `f` takes the `w` tokens that some `h` has put into `p`. Leave out each `h` whose tokens are still
//! there, and move each other one to just before its `f`. Then places of `h` have more tokens in between, which harms nobody, as they have no upper bounds; and
//! when its turn comes, `h` finds there what it took before, since others take what they took. It has no other condition. So the path is one of the reduced net, and `h` changes no visible
//! place.
//!
//! K3: let `m` be a deadlock, and `m'` that marking of K2. If some `h f` could fire in `m'`, then `f` finds at other places in `m`
//! what it needs, since `H` and `m'` differ from `m` in `p` and in places on which `f` has no condition. Were `p ≥ w` in `m`, then `f` could fire; were `p < w`, then nothing was left out, `m = m'`, and `h` could. Other transitions have no condition on places in
//! which both differ. Conversely, let `m'` be a deadlock of the reduced net. The *completion* fires transitions of `H` as often as possible; it ends,
//! as each takes tokens from places to which none of them adds. Then no `h` can fire. If some `h` could fire in `m'`, each `f` lacks something at another place, and still does;
//! if none could, `p < w`. Others see no difference. ∎ If `m'` is no deadlock, the first letter of a word can fire.

use super::draft::Draft;
use super::touch::{Joined, joined};
use deltamark_core::Stop;

/// By how much the number of transitions may grow.
const MORE: usize = 2;

pub(super) fn apply(draft: &mut Draft<'_>, place: u32) -> Result<bool, Stop> {
    if draft.visible[place as usize] {
        return Ok(false);
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let users = draft.users(place)?;
    for &user in &users {
        let touch = draft.touch(user, place);
        match touch.gain {
            gain if gain > 0 && touch.is_free() => before.push(user),
            _ if touch.just_takes() => after.push(user),
            _ => return Ok(false),
        }
    }
    let (Some(&first), false) = (before.first(), after.is_empty()) else { return Ok(false) };
    let weight = draft.touch(first, place).gain;
    if users.iter().any(|&user| draft.touch(user, place).gain.abs() != weight)
        || draft.initial[place as usize] >= weight.unsigned_abs()
        || before.len() * after.len() > before.len() + after.len() + MORE
    {
        return Ok(false);
    }
    for &user in &before {
        let others: Vec<_> = draft.touches(user).iter().copied().filter(|touch| touch.place != place).collect();
        if others.is_empty() || !others.iter().all(|touch| touch.just_takes() && !draft.visible[touch.place as usize]) {
            return Ok(false);
        }
        for touch in others {
            if draft.is_bounded_above(touch.place)? {
                return Ok(false);
            }
            if draft.deadlocks {
                let rivals = draft.users(touch.place)?;
                if rivals.iter().any(|&rival| rival != user && !draft.touch(rival, touch.place).is_free()) {
                    return Ok(false);
                }
            }
        }
    }
    let word = |draft: &Draft<'_>, number: u32| draft.transitions[number as usize].as_ref().expect("it is used").word;
    let mut made = Vec::new();
    for &one in &before {
        for &two in &after {
            draft.spend(draft.touches(one).len() + draft.touches(two).len())?;
            match joined(draft.touches(one), draft.touches(two)) {
                Joined::Touches(touches) => {
                    let parts = [one, two].map(|number| (word(draft, number), 1));
                    let Some(word) = draft.words.join(parts) else { return Ok(false) };
                    made.push((touches, word));
                }
                Joined::Never => {}
                Joined::TooLarge => return Ok(false),
            }
        }
    }
    if draft.deadlocks {
        let group = before.iter().map(|&number| word(draft, number)).collect();
        draft.completions.push(group);
    }
    for user in users {
        draft.remove_transition(user);
    }
    for (mut touches, word) in made {
        touches.retain(|touch| touch.place != place);
        draft.add_transition(touches, word);
    }
    draft.remove_place(place)?;
    draft.used("pre-agglomeration");
    Ok(true)
}
