//! Parts that come to rest by themselves.
//!
//! ```text
//!   others ──read by──▶ [ (a) ⇄ (b) ]          becomes          others
//! ```
//!
//! # Rule
//! Only where deadlocks matter. Let `Q` be places, none of them visible, and `U` the transitions that change one of them. Those of `U` change places of `Q` alone, no other
//! transition has a condition on a place of `Q`, and each of `U` is *finite*: the finite ones are the least set such that `u` is in it if there is a place of `Q` from which `u` takes, and every transition
//! that adds there is in it or *contradicts* `u`. Then `Q` and `U` are removed.
//!
//! Two transitions contradict each other if no reachable marking satisfies what both ask of places outside of `Q`: at least `n` tokens of a place, of which the other one asks for at most
//! as many as `n - 1`; or `n` of `p` and `n'` of `p'`, where `p / d + p' / d' = c` in all reachable markings, and `n / d + n' / d' > c`.
//!
//! # Proof
//! *Lemma.* Where nothing outside of `Q` changes, `U` fires finitely often. Suppose it fired for ever, and let `I` be those that occur infinitely often. What they ask
//! of places outside of `Q` always holds, so no two of them contradict each other. Of `I`, let `u` be the one that was first found to be finite, by a place `q`. It takes from `q` infinitely often, so
//! a member `v` of `I` adds there. `v` does not contradict `u`, so it was found to be finite before. ∎
//!
//! K1: paths of the reduced net are paths of the net, which leave `Q` alone. K2: from a path of the net leave out `U`; nobody else looks at `Q`, and `U` changes nothing else. K3: a
//! deadlock stays one when transitions are removed that changed nothing that others see. Let `m'` be a deadlock of the reduced net. The *completion* fires `U` as often as possible: it ends, by
//! the lemma, where no transition of `U` can fire, and no other one, since they do not look at `Q`. If `m'` is none, the transition that can fire there can fire in the net. ∎

use super::draft::Draft;
use super::parts::{Node, parts};
use super::touch::Touch;
use deltamark_core::Stop;
use std::collections::HashMap;

/// The most transitions of a part.
const MOST: usize = 256;

/// Two places of which a weighted sum is constant: `factor·place + other_factor·other = sum`.
#[derive(Clone, Copy)]
struct Balance {
    factor: i128,
    other: u32,
    other_factor: i128,
    sum: i128,
}

/// For each place that was asked for the one that it is balanced by, if any.
type Balances = HashMap<u32, Option<Balance>>;

pub(super) fn apply(draft: &mut Draft<'_>) -> Result<(), Stop> {
    let (mut places_stay, mut transitions_stay) =
        (vec![false; draft.places().len()], vec![false; draft.transitions.len()]);
    let mut balances = Balances::new();
    // What a part is seen by comes before it.
    for part in parts(draft)? {
        let (mut places, mut movers, mut stays) = (Vec::new(), Vec::new(), draft.is_spent());
        for node in part {
            match node {
                Node::Place(place) => {
                    stays |= draft.visible[place as usize];
                    stays |= draft.users(place)?.iter().any(|&user| transitions_stay[user as usize]);
                    places.push(place);
                }
                Node::Transition(number) => {
                    let mut changed = draft.touches(number).iter().filter(|touch| touch.gain != 0).peekable();
                    // One that changes nothing can fire for ever.
                    stays |= changed.peek().is_none() || changed.any(|touch| places_stay[touch.place as usize]);
                    movers.push(number);
                }
            }
        }
        stays = stays || !comes_to_rest(draft, &places, &movers, &mut balances)?;
        if stays {
            places.iter().for_each(|&place| places_stay[place as usize] = true);
            movers.iter().for_each(|&mover| transitions_stay[mover as usize] = true);
        } else if !movers.is_empty() {
            let word = |&mover: &u32| draft.transitions[mover as usize].as_ref().expect("it is there").word;
            let group = movers.iter().map(word).collect();
            draft.completions.push(group);
            movers.into_iter().for_each(|mover| draft.remove_transition(mover));
            for place in places {
                draft.remove_place(place)?;
            }
            draft.used("parts that come to rest");
        }
    }
    Ok(())
}

/// Whether all of `movers`, the transitions that change `places`, are finite.
fn comes_to_rest(draft: &mut Draft<'_>, places: &[u32], movers: &[u32], balances: &mut Balances) -> Result<bool, Stop> {
    if movers.len() > MOST {
        return Ok(false);
    }
    let mut open = movers.to_vec();
    loop {
        let before = open.len();
        for index in (0..open.len()).rev() {
            if is_finite(draft, places, open[index], &open, balances)? {
                open.swap_remove(index);
            }
        }
        if open.is_empty() {
            return Ok(true);
        }
        if open.len() == before || draft.is_spent() {
            return Ok(false);
        }
    }
}

/// Whether a transition is finite, if all but those of `open` are.
fn is_finite(
    draft: &mut Draft<'_>,
    places: &[u32],
    mover: u32,
    open: &[u32],
    balances: &mut Balances,
) -> Result<bool, Stop> {
    for touch in draft.touches(mover).to_vec() {
        if touch.gain >= 0 {
            continue;
        }
        let mut ends = true;
        for rival in draft.users(touch.place)? {
            if draft.touch(rival, touch.place).gain > 0 && open.contains(&rival) {
                ends = contradict(draft, places, [mover, rival], balances)?;
            }
            if !ends {
                break;
            }
        }
        if ends {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether two transitions ask of places outside of a part what no reachable marking satisfies.
fn contradict(draft: &mut Draft<'_>, part: &[u32], pair: [u32; 2], balances: &mut Balances) -> Result<bool, Stop> {
    let [one, two] = pair.map(|number| draft.touches(number).to_vec());
    draft.spend(one.len() + two.len())?;
    let at = |touches: &[Touch], place: u32| -> Option<Touch> {
        touches.binary_search_by_key(&place, |touch| touch.place).ok().map(|at| touches[at])
    };
    for touch in one.iter().filter(|touch| !touch.is_free() && !part.contains(&touch.place)) {
        if let Some(other) = at(&two, touch.place) {
            let apart = |one: &Touch, two: &Touch| one.below.is_some_and(|below| below <= two.need);
            if apart(touch, &other) || apart(&other, touch) {
                return Ok(true);
            }
        }
        if touch.need == 0 {
            continue;
        }
        let balance = match balances.get(&touch.place) {
            Some(&known) => known,
            None => {
                let found = balance(draft, touch.place)?;
                balances.insert(touch.place, found);
                found
            }
        };
        let Some(balance) = balance.filter(|balance| !part.contains(&balance.other)) else { continue };
        let other = at(&two, balance.other).map_or(0, |other| other.need);
        if balance.factor * i128::from(touch.need) + balance.other_factor * i128::from(other) > balance.sum {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A place of which a weighted sum with this one is constant.
fn balance(draft: &mut Draft<'_>, place: u32) -> Result<Option<Balance>, Stop> {
    let gains = |draft: &mut Draft<'_>, place: u32| -> Result<Vec<(u32, i64)>, Stop> {
        let users = draft.users(place)?;
        let all = users.into_iter().map(|user| (user, draft.touch(user, place).gain));
        Ok(all.filter(|&(_, gain)| gain != 0).collect())
    };
    let own = gains(draft, place)?;
    let Some(&(first, gain)) = own.first() else { return Ok(None) };
    for touch in draft.touches(first).to_vec() {
        if touch.gain == 0 || touch.gain.signum() == gain.signum() {
            continue;
        }
        let other = gains(draft, touch.place)?;
        let balanced = |&(user, own): &(u32, i64)| {
            let there = other.iter().find(|found| found.0 == user);
            there
                .is_some_and(|there| i128::from(own) * i128::from(touch.gain) == i128::from(there.1) * i128::from(gain))
        };
        draft.spend(own.len() * other.len())?;
        if own.len() == other.len() && own.iter().all(balanced) {
            let [factor, other_factor] = [touch.gain, gain].map(|gain| i128::from(gain.unsigned_abs()));
            let initial = |place: u32| i128::from(draft.initial[place as usize]);
            let sum = factor * initial(place) + other_factor * initial(touch.place);
            return Ok(Some(Balance { factor, other: touch.place, other_factor, sum }));
        }
    }
    Ok(None)
}
