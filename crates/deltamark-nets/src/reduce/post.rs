//! Post-agglomeration: a transition follows at once.
//!
//! ```text
//!   h ──▶ (p) ──▶ f ──▶ …        becomes        h f ──▶ …
//! ```
//!
//! # Rule
//! At a place `p` that is not visible. `F`, not empty, are the transitions that take from `p`; each takes `w` and needs `w` there, has no other condition, and
//! changes no visible place and no place with an upper bound (an inhibitor arc) of any transition. All others that touch `p`, `H`, add multiples of `w` and have no condition there. There is one
//! transition in `F`; or several, each `h` adds `w`, and `m0(p) < w`. Then `p` is removed, `f` of `F` is fired at first as often as it can be, and instead of each `h` that adds `k·w`
//! there is `h f^k`, for each `f`.
//!
//! # Proof
//! The count of `p` stays the same modulo `w`, say `r`. In the reduced net it is taken to be `r`.
//!
//! K1: words are paths, as each `f` needs nothing but what `h`, or the initial marking, has put into `p`. If `m'` is a deadlock, then with `p = r < w` no `f` can fire; and no `h`, as
//! `h f^k` has the conditions of `h`. Other transitions do not look at `p`. If it is none, the first letter of what can fire there can.
//!
//! K2: let a path lead to `m`. Append `f` as often as `p` allows: that changes no view. Now each `f` takes `w` tokens that were there at first, or that some `h`
//! put there; move it there. It needs nothing else. Between its new and its old position `p` has fewer tokens, but those were not taken by anybody else; other
//! places have more, and no transition has an upper bound there, so all can still fire. The path that we have now consists of words. If `m` is a deadlock, nothing was appended, since `p < w`; and
//! as before the marking of the reduced net is a deadlock. ∎

use super::draft::Draft;
use super::touch::{Joined, joined, repeated};
use deltamark_core::Stop;

/// By how much the number of transitions may grow.
const MORE: usize = 2;
/// The most tokens, in multiples of `w`, that one transition may put there.
const MOST_TIMES: u64 = 1 << 10;

pub(super) fn apply(draft: &mut Draft<'_>, place: u32) -> Result<bool, Stop> {
    if draft.visible[place as usize] {
        return Ok(false);
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let users = draft.users(place)?;
    for &user in &users {
        let touch = draft.touch(user, place);
        match touch.gain {
            gain if gain > 0 && touch.is_free() => before.push((user, touch.gain as u64)),
            _ if touch.just_takes() => after.push(user),
            _ => return Ok(false),
        }
    }
    let Some(&first) = after.first() else { return Ok(false) };
    let weight = draft.touch(first, place).need;
    let single = after.len() == 1;
    let initial = draft.initial[place as usize];
    let fits = |&(_, gain): &(u32, u64)| gain % weight == 0 && gain / weight <= if single { MOST_TIMES } else { 1 };
    if after.iter().any(|&user| draft.touch(user, place).need != weight)
        || !before.iter().all(fits)
        || !single && initial >= weight
        || before.len() * after.len() > before.len() + after.len() + MORE
    {
        return Ok(false);
    }
    for &user in &after {
        for touch in draft.touches(user).to_vec() {
            if touch.place != place && (!touch.is_free() || draft.visible[touch.place as usize]) {
                return Ok(false);
            }
            if touch.place != place && draft.is_bounded_above(touch.place)? {
                return Ok(false);
            }
        }
    }
    let mut made = Vec::new();
    for &(one, gain) in &before {
        let times = gain / weight;
        for &two in &after {
            let Some(follow) = repeated(draft.touches(two), times) else { return Ok(false) };
            draft.spend(draft.touches(one).len() + follow.len())?;
            match joined(draft.touches(one), &follow) {
                Joined::Touches(touches) => made.push((touches, one, two, times)),
                Joined::Never => {}
                Joined::TooLarge => return Ok(false),
            }
        }
    }
    let mut words = Vec::new();
    for (touches, one, two, times) in made {
        let [one, two] = [one, two].map(|number| draft.transitions[number as usize].as_ref().expect("it is used").word);
        let Some(word) = draft.words.join([(one, 1), (two, times)]) else { return Ok(false) };
        words.push((touches, word));
    }
    let times = initial / weight;
    if times > 0 && !fire_at_first(draft, place, first, times) {
        return Ok(false);
    }
    for user in users {
        draft.remove_transition(user);
    }
    for (mut touches, word) in words {
        touches.retain(|touch| touch.place != place);
        draft.add_transition(touches, word);
    }
    draft.remove_place(place)?;
    draft.used("post-agglomeration");
    Ok(true)
}

/// Fires a transition before everything else; whether counts stay in range.
fn fire_at_first(draft: &mut Draft<'_>, place: u32, number: u32, times: u64) -> bool {
    let Some(transition) = &draft.transitions[number as usize] else { return false };
    let mut after = Vec::new();
    for touch in transition.touches.iter().filter(|touch| touch.place != place) {
        let count = (touch.gain as u64)
            .checked_mul(times)
            .and_then(|more| more.checked_add(draft.initial[touch.place as usize]));
        match count.filter(|&count| count <= u32::MAX.into()) {
            Some(count) => after.push((touch.place, count)),
            None => return false,
        }
    }
    after.into_iter().for_each(|(place, count)| draft.initial[place as usize] = count);
    draft.prefix.push((transition.word, times));
    true
}
