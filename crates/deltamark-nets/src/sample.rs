//! An estimate of the largest counts.
//!
//! In: a net. Out: the largest count of each place on a few walks from the initial marking. What stays true: this
//! is an estimate that saves widenings; nothing relies on it. On a bounded net it never exceeds a bound, because
//! the walks are real.

use crate::Net;
use crate::walk::MarkingWalk;

/// The maximum work of all walks: about a millisecond.
const EFFORT: usize = 200_000;
/// The number of walks that share the work.
const WALKS: u64 = 4;

/// The largest count of each place on a few walks.
pub(crate) fn largest_counts(net: &Net, effects: &[Vec<(u32, i64)>]) -> Vec<u64> {
    let mut largest: Vec<u64> = net.places.iter().map(|place| u64::from(place.initial)).collect();
    if net.declared_safe {
        return largest;
    }
    for number in 0..WALKS {
        let mut walk = MarkingWalk::new(net, effects, number);
        while walk.effort < EFFORT / WALKS as usize {
            let Some(chosen) = walk.step() else { break };
            for &(place, _) in &effects[chosen] {
                let place = place as usize;
                largest[place] = largest[place].max(walk.marking[place]);
            }
        }
    }
    largest
}
