//! What a transition does at one place, and what two do one after the other.
//!
//! In: arcs. Out: conditions and gains. What stays true: a list of touches is sorted by place and has none that does nothing; gains and conditions
//! of a transition that is kept fit the arcs of a net.
//!
//! # One after the other
//! Let `h` need `n`, stay below `b` and gain `g` at a place, and `f` need `n'`, `b'` and `g'`. Both can fire, `h` then `f`, where
//! the count is at least `max(n, n' - g)` and below `min(b, b' - g)`; the gain is `g + g'`.

use crate::{Net, Transition};

/// The largest weight that a touch may have, so that sums of two fit an arc.
const MOST: i64 = u32::MAX as i64 / 2;

/// A place and a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Touch {
    pub place: u32,
    /// The least count that lets the transition fire, at least what it takes.
    pub need: u64,
    /// The count that it must stay below, if any.
    pub below: Option<u64>,
    /// What it adds.
    pub gain: i64,
}

impl Touch {
    /// Whether it does not depend on the count.
    pub fn is_free(&self) -> bool {
        self.need == 0 && self.below.is_none()
    }

    /// Whether it takes what it needs, and asks for nothing else.
    pub fn just_takes(&self) -> bool {
        self.gain < 0 && self.need == self.gain.unsigned_abs() && self.below.is_none()
    }
}

/// The touches of a transition.
pub(super) fn touches(net: &Net, transition: &Transition) -> Vec<Touch> {
    let mut touches: Vec<Touch> = Vec::new();
    let nothing = |place| Touch { place, need: 0, below: None, gain: 0 };
    for arc in transition.inputs.iter().chain(&transition.reads) {
        touches.push(Touch { need: arc.weight.into(), ..nothing(arc.place) });
    }
    for arc in &transition.inhibitors {
        touches.push(Touch { below: Some(arc.weight.into()), ..nothing(arc.place) });
    }
    touches.extend(net.effect(transition).into_iter().map(|(place, gain)| Touch { gain, ..nothing(place) }));
    touches.sort_by_key(|touch| touch.place);
    touches.dedup_by(|next, kept| {
        let same = next.place == kept.place;
        if same {
            kept.need = kept.need.max(next.need);
            kept.below = least(kept.below, next.below);
            kept.gain += next.gain;
        }
        same
    });
    touches
}

fn least(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

/// What comes of two transitions, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined {
    Touches(Vec<Touch>),
    /// They can never fire in this order.
    Never,
    /// A weight would be too large.
    TooLarge,
}

/// Both, first `one`, then `two`.
pub(super) fn joined(one: &[Touch], two: &[Touch]) -> Joined {
    let mut touches = Vec::with_capacity(one.len() + two.len());
    let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
    loop {
        let touch = match (one.peek(), two.peek()) {
            (None, None) => return Joined::Touches(touches),
            (Some(first), Some(then)) if first.place == then.place => {
                let (first, then) = (*first, *then);
                one.next();
                two.next();
                let need = (then.need as i64 - first.gain).max(0) as u64;
                let below = match then.below.map(|below| below as i64 - first.gain) {
                    Some(below) if below <= 0 => return Joined::Never,
                    below => below.map(|below| below as u64),
                };
                Touch {
                    place: first.place,
                    need: first.need.max(need),
                    below: least(first.below, below),
                    gain: first.gain + then.gain,
                }
            }
            (Some(first), then) if then.is_none_or(|then| first.place < then.place) => {
                let first = **first;
                one.next();
                first
            }
            (_, Some(then)) => {
                let then = **then;
                two.next();
                then
            }
            (Some(_), None) => unreachable!("it comes before nothing"),
        };
        if touch.below.is_some_and(|below| below <= touch.need) {
            return Joined::Never;
        }
        if touch.gain.abs() > MOST || touch.need > MOST as u64 || touch.below.is_some_and(|below| below > MOST as u64) {
            return Joined::TooLarge;
        }
        if !(touch.is_free() && touch.gain == 0) {
            touches.push(touch);
        }
    }
}

/// One transition this number of times, at least once; `None` if a weight would be too large, or it cannot repeat.
pub(super) fn repeated(touches: &[Touch], times: u64) -> Option<Vec<Touch>> {
    let further = i64::try_from(times).ok()?.checked_sub(1)?;
    let mut result = Vec::with_capacity(touches.len());
    for touch in touches {
        let moved = touch.gain.checked_mul(further)?;
        let need = if moved < 0 { touch.need.checked_add(moved.unsigned_abs())? } else { touch.need };
        let below = match touch.below {
            Some(below) if moved > 0 => Some(below.checked_sub(moved as u64).filter(|&below| below > need)?),
            below => below,
        };
        let gain = touch.gain.checked_add(moved)?;
        if gain.abs() > MOST || need > MOST as u64 {
            return None;
        }
        result.push(Touch { need, below, gain, ..*touch });
    }
    Some(result)
}
