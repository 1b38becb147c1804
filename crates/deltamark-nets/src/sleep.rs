//! Which steps of a search by levels may be left out.
//!
//! In: a net, and for each state of a block the transition that led to it. Out: for each
//! transition the states of the block in which it need not be fired. What stays true: every
//! state at distance `d + 1` is still the successor of a state at distance `d` that is not left
//! out.
//!
//! # The idea
//! ```text
//!         p                level d - 1
//!     a  / \  b
//!       s   s'             level d
//!     b  \ /  a
//!         t
//! ```
//! Let `s` have been reached from `p` by `a`. If `b` can fire in `p` as well, and after it still
//! `a`, then `t` is reached from `s'` too: one of the two ways is enough. We leave out `b` in `s`
//! if `a` has the smaller number.
//!
//! *Why nothing is lost.* Let `t` be at distance `d + 1`. Of all steps that lead to it from states
//! at distance `d` take one whose transition has the smallest number, `b` from `s`. Were it left
//! out, `s` would have been reached by some `a < b` from a `p` at distance `d - 1`, and there is
//! an `s'` as above. It is at distance `d` at most, and as `t` is not nearer than `d + 1`, at
//! distance `d`. So `a` leads to `t` from a state at distance `d`, and has a smaller number than
//! `b`. That was not so. Hence levels, and with them shortest paths, are what they were; edges that
//! were left out are counted all the same. The argument rests on levels: depth-first search must
//! fire everything.
//!
//! Left-out steps are what the literature calls sleep sets (Godefroid, *Using partial orders to
//! improve automatic verification methods*, CAV 1990), here by one step back and without a set in
//! memory: the transition that led to a state is all that the search has to keep.
//!
//! # What is looked at
//! Whether `b` could fire in `p`, and then `a`, is decided from the net alone: `a` adds nothing where
//! `b` needs something, `b` takes nothing where `a` needs something, and neither touches what the
//! other's inhibitors look at. For nets with one token a place that misses nothing.

use crate::Net;
use deltamark_core::Action;

/// The most pairs of transitions that are listed, a transition. Nets with more have places
/// that most of their transitions use, so that little could be left out.
const MOST_PAIRS: usize = 256;

/// For each transition the later ones that may not be exchanged with it.
#[derive(Debug)]
pub(crate) struct Sleep {
    starts: Vec<u32>,
    dependent: Vec<u32>,
}

impl Sleep {
    /// What depends on what; nothing if that is nearly everything.
    pub fn new(net: &Net, effects: &[Vec<(u32, i64)>]) -> Option<Self> {
        let places = net.places.len();
        let [mut gains, mut losses, mut needs, mut inhibits] = [(); 4].map(|()| vec![Vec::new(); places]);
        for (number, (transition, effect)) in (0u32..).zip(net.transitions.iter().zip(effects)) {
            for &(place, gain) in effect {
                let list = if gain > 0 { &mut gains } else { &mut losses };
                list[place as usize].push(number);
            }
            for arc in transition.inputs.iter().chain(&transition.reads) {
                needs[arc.place as usize].push(number);
            }
            for arc in &transition.inhibitors {
                inhibits[arc.place as usize].push(number);
            }
        }
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for place in 0..places {
            let of = [(&gains, &needs), (&needs, &losses), (&losses, &inhibits), (&inhibits, &gains)];
            for (first, second) in of {
                for &a in &first[place] {
                    let later = second[place].partition_point(|&b| b <= a);
                    pairs.extend(second[place][later..].iter().map(|&b| (a, b)));
                }
                if pairs.len() > 4 * MOST_PAIRS * net.transitions.len() {
                    return None;
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        if pairs.len() > MOST_PAIRS * net.transitions.len() {
            return None;
        }
        let starts =
            (0..=net.transitions.len() as u32).map(|a| pairs.partition_point(|pair| pair.0 < a) as u32).collect();
        Some(Sleep { starts, dependent: pairs.into_iter().map(|pair| pair.1).collect() })
    }

    /// Writes to `asleep[b]`, for each transition `b`, the states of the block in which it is left
    /// out. `arrivals` holds for each state the transition that led to it; a number that no
    /// transition has stands for none.
    pub fn fill(&self, arrivals: &[Action], runs: &mut Vec<(u32, u64)>, asleep: &mut Vec<u64>) {
        let count = self.starts.len() - 1;
        runs.clear();
        for (index, &Action(action)) in arrivals.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.0 == action => run.1 |= 1 << index,
                _ => runs.push((action, 1 << index)),
            }
        }
        runs.sort_unstable_by_key(|run| run.0);
        asleep.clear();
        let mut states = 0;
        for &(action, lanes) in runs.iter() {
            if action as usize >= count {
                break;
            }
            asleep.resize(action as usize + 1, states);
            states |= lanes;
        }
        asleep.resize(count, states);
        for &(action, lanes) in runs.iter() {
            if action as usize >= count {
                break;
            }
            let range = self.starts[action as usize] as usize..self.starts[action as usize + 1] as usize;
            for &later in &self.dependent[range] {
                asleep[later as usize] &= !lanes;
            }
        }
    }
}
