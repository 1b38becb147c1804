//! Places that say the same as another one.
//!
//! # Rule
//! Let `g(t)` be what `t` adds to `p`, `h(t)` what it adds to `q`, and `g(t) = k·h(t)` for all `t` and an integer `k ≥ 1`. Let `c = m0(p) - k·m0(q)`. A
//! condition `p ≥ n` becomes `q ≥ ⌈(n - c) / k⌉`, and `p < n` becomes `q < ⌈(n - c) / k⌉`; then `p` is removed. `p` must not be visible.
//!
//! # Proof
//! In every reachable marking `p = k·q + c`, so `p ≥ n` if and only if `q ≥ (n - c) / k`, and `q` is an integer. The count of `p` is a function of
//! that of `q`, so markings stay as many. ∎ The reachable graph stays as it is: K1, K2, K3.

use super::draft::Draft;
use super::touch::Touch;
use deltamark_core::Stop;
use std::collections::HashMap;

/// Transitions, and what each adds to a place.
type Gains = Vec<(u32, i64)>;

/// The largest number in a condition that is made here.
const MOST: i64 = u32::MAX as i64 / 2;

pub(super) fn apply(draft: &mut Draft<'_>) -> Result<(), Stop> {
    // Places by their gains, divided by the greatest common divisor.
    let mut by_gains: HashMap<Gains, Vec<(u32, i64)>> = HashMap::new();
    for place in draft.places() {
        if !draft.has_place(place) || draft.is_spent() {
            continue;
        }
        let users = draft.users(place)?;
        let mut gains: Vec<(u32, i64)> = users.iter().map(|&user| (user, draft.touch(user, place).gain)).collect();
        gains.retain(|&(_, gain)| gain != 0);
        if gains.is_empty() {
            continue;
        }
        gains.sort_unstable();
        let divisor = gains.iter().fold(0, |divisor, &(_, gain)| common(divisor, gain.abs()));
        gains.iter_mut().for_each(|(_, gain)| *gain /= divisor);
        by_gains.entry(gains).or_default().push((place, divisor));
    }
    let mut groups: Vec<Vec<(u32, i64)>> = by_gains.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    for mut group in groups {
        // The one that changes least stays, if possible a visible one.
        group.sort_by_key(|&(place, divisor)| (divisor, !draft.visible[place as usize], place));
        let (base, least) = group[0];
        for &(place, divisor) in &group[1..] {
            if !draft.visible[place as usize] && divisor % least == 0 {
                merge(draft, place, base, divisor / least)?;
            }
        }
    }
    Ok(())
}

fn common(one: i64, two: i64) -> i64 {
    if two == 0 { one } else { common(two, one % two) }
}

/// Moves all conditions at `place` to `base`, which says the same.
fn merge(draft: &mut Draft<'_>, place: u32, base: u32, factor: i64) -> Result<(), Stop> {
    let [count, other] = [place, base].map(|place| draft.initial[place as usize] as i64);
    let constant = count - factor * other;
    let bound = |number: u64| -> i64 {
        let rest = number as i64 - constant;
        rest.div_euclid(factor) + i64::from(rest.rem_euclid(factor) != 0)
    };
    let users = draft.users(place)?;
    let mut moved = Vec::new();
    for &user in &users {
        let old = draft.touch(user, place);
        if old.is_free() {
            continue;
        }
        let found = draft.touches(user).iter().find(|touch| touch.place == base);
        let mut new = found.copied().unwrap_or(Touch { place: base, need: 0, below: None, gain: 0 });
        if old.need > 0 {
            new.need = new.need.max(bound(old.need).max(0) as u64);
        }
        if let Some(below) = old.below {
            // A bound of nothing never holds: such a transition is dead, and is left to that rule.
            let Some(below) = u64::try_from(bound(below)).ok().filter(|&below| below > 0) else { return Ok(()) };
            new.below = Some(new.below.map_or(below, |known| known.min(below)));
        }
        if new.need > MOST as u64 || new.below.is_some_and(|below| below > MOST as u64) {
            return Ok(());
        }
        moved.push((user, new));
    }
    moved.into_iter().for_each(|(user, new)| draft.set_touch(user, new));
    draft.remove_place(place)?;
    draft.used("equal places");
    Ok(())
}
