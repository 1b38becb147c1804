//! Transitions that can never fire.
//!
//! # Rule
//! Let `E` be the least set of transitions such that `t` is in `E` if, at each place that it touches, either the initial
//! count satisfies its conditions, or for a count that is too small a member of `E` adds there, and for one that is too large a member of `E`
//! takes there. Transitions outside of `E` are removed.
//!
//! # Proof
//! No transition outside of `E` ever fires: take the first one of a path. Members of `E` alone have fired before. Where its conditions
//! do not hold at first, one of these must have changed the count in the right direction, so it is in `E`. ∎ The reachable graph stays as
//! it is: K1, K2, K3.

use super::draft::Draft;
use deltamark_core::Stop;

pub(super) fn apply(draft: &mut Draft<'_>) -> Result<(), Stop> {
    let places = draft.places().len();
    // Whether members add to, or take from, a place.
    let (mut grows, mut shrinks) = (vec![false; places], vec![false; places]);
    let all = draft.all_transitions();
    // For each transition how many conditions are not met; for each place whose they are.
    let mut unmet = vec![0u32; draft.transitions.len()];
    let (mut wait_more, mut wait_less) = (vec![Vec::new(); places], vec![Vec::new(); places]);
    let mut ready = Vec::new();
    for &number in &all {
        draft.spend(draft.touches(number).len())?;
        for touch in draft.touches(number) {
            let (place, initial) = (touch.place as usize, draft.initial[touch.place as usize]);
            if initial < touch.need {
                unmet[number as usize] += 1;
                wait_more[place].push(number);
            }
            if touch.below.is_some_and(|below| initial >= below) {
                unmet[number as usize] += 1;
                wait_less[place].push(number);
            }
        }
        if unmet[number as usize] == 0 {
            ready.push(number);
        }
    }
    let mut fires = vec![false; draft.transitions.len()];
    while let Some(number) = ready.pop() {
        fires[number as usize] = true;
        draft.spend(draft.touches(number).len())?;
        for touch in draft.touches(number) {
            let place = touch.place as usize;
            let (known, waiting) = match touch.gain {
                0 => continue,
                1.. => (&mut grows[place], &mut wait_more[place]),
                ..0 => (&mut shrinks[place], &mut wait_less[place]),
            };
            if std::mem::replace(known, true) {
                continue;
            }
            for waiter in std::mem::take(waiting) {
                unmet[waiter as usize] -= 1;
                if unmet[waiter as usize] == 0 {
                    ready.push(waiter);
                }
            }
        }
    }
    for number in all {
        if !fires[number as usize] {
            draft.remove_transition(number);
            draft.used("dead transitions");
        }
    }
    Ok(())
}
