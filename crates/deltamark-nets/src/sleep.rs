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
//! other's inhibitors look at. For nets with one token a place that misses nothing. Where transitions have
//! priority over others this does not do: any transition can enable one that keeps `b` from firing. Such nets fire everything.

use crate::Net;
use deltamark_core::{Action, Control, Stop};

/// The most pairs of transitions that are listed, a transition. Nets with more have places
/// that most of their transitions use, so that little could be left out.
const MOST_PAIRS: usize = 256;

/// For each transition the later ones that may not be exchanged with it.
#[derive(Debug)]
pub(crate) struct Sleep {
    /// The order of the transitions, unless it is that of their numbers.
    order: Option<Order>,
    /// Where the list of a transition begins in `dependent`, by its turn; and an end.
    starts: Vec<u32>,
    dependent: Vec<u32>,
}

/// An order of the transitions.
#[derive(Debug)]
struct Order {
    /// The transitions, the first one first.
    transitions: Vec<u32>,
    /// For each transition its place among them.
    turns: Vec<u32>,
}

impl Order {
    fn new(count: usize, first: &dyn Fn(Action) -> bool) -> Self {
        let mut transitions: Vec<u32> = (0..count as u32).collect();
        transitions.sort_by_key(|&transition| !first(Action(transition)));
        let mut turns = vec![0; count];
        (0..).zip(&transitions).for_each(|(turn, &transition)| turns[transition as usize] = turn);
        Order { transitions, turns }
    }
}

impl Sleep {
    /// What depends on what; `None` if that is nearly everything or the net has priorities. Those transitions come before all others for which
    /// `first` says so.
    pub fn new(net: &Net, effects: &[Vec<(u32, i64)>], first: Option<&dyn Fn(Action) -> bool>) -> Option<Self> {
        Self::under(net, effects, first, &Control::new()).unwrap_or_default()
    }

    /// The same, unless `control` has it end before.
    pub fn under(
        net: &Net,
        effects: &[Vec<(u32, i64)>],
        first: Option<&dyn Fn(Action) -> bool>,
        control: &Control,
    ) -> Result<Option<Self>, Stop> {
        if net.has_priorities() {
            return Ok(None);
        }
        let (places, count) = (net.places.len(), net.transitions.len());
        let order = first.map(|first| Order::new(count, first));
        control.ask_for((4 * places * size_of::<Vec<u32>>()) as u64)?;
        let [mut gains, mut losses, mut needs, mut inhibits] = [(); 4].map(|()| vec![Vec::new(); places]);
        let number = |turn: usize| order.as_ref().map_or(turn, |order| order.transitions[turn] as usize);
        for turn in 0..count {
            control.ask()?;
            let number = number(turn);
            let (transition, turn) = (&net.transitions[number], turn as u32);
            for &(place, gain) in &effects[number] {
                let list = if gain > 0 { &mut gains } else { &mut losses };
                list[place as usize].push(turn);
            }
            for arc in transition.inputs.iter().chain(&transition.reads) {
                needs[arc.place as usize].push(turn);
            }
            for arc in &transition.inhibitors {
                inhibits[arc.place as usize].push(turn);
            }
        }
        let (mut starts, mut dependent) = (vec![0], Vec::new());
        // The last transition that was found to depend on each.
        let mut found_by = vec![u32::MAX; count];
        let mut looked_at = 0;
        for turn in 0..count {
            control.ask()?;
            let number = number(turn);
            let (transition, turn) = (&net.transitions[number], turn as u32);
            let mut later = |list: &[Vec<u32>], place: u32| {
                let list = &list[place as usize];
                let list = &list[list.partition_point(|&other| other <= turn)..];
                looked_at += list.len();
                for &other in list {
                    if std::mem::replace(&mut found_by[other as usize], turn) != turn {
                        dependent.push(other);
                    }
                }
            };
            for &(place, gain) in &effects[number] {
                later(if gain > 0 { &needs } else { &inhibits }, place);
            }
            transition.inputs.iter().chain(&transition.reads).for_each(|arc| later(&losses, arc.place));
            transition.inhibitors.iter().for_each(|arc| later(&gains, arc.place));
            if looked_at > 4 * MOST_PAIRS * count || dependent.len() > MOST_PAIRS * count {
                return Ok(None);
            }
            starts.push(dependent.len() as u32);
        }
        if let Some(order) = &order {
            dependent.iter_mut().for_each(|turn| *turn = order.transitions[*turn as usize]);
        }
        Ok(Some(Sleep { order, starts, dependent }))
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
        if let Some(order) = &self.order {
            runs.iter_mut().for_each(|run| run.0 = order.turns.get(run.0 as usize).copied().unwrap_or(u32::MAX));
        }
        runs.sort_unstable_by_key(|run| run.0);
        asleep.clear();
        let mut states = 0;
        match &self.order {
            None => {
                for &(turn, lanes) in runs.iter().take_while(|run| (run.0 as usize) < count) {
                    asleep.resize(turn as usize + 1, states);
                    states |= lanes;
                }
                asleep.resize(count, states);
            }
            Some(order) => {
                asleep.resize(count, 0);
                let mut begun = 0;
                let mut fill = |end: usize, states: u64| {
                    order.transitions[begun..end].iter().for_each(|&later| asleep[later as usize] = states);
                    begun = end;
                };
                for &(turn, lanes) in runs.iter().take_while(|run| (run.0 as usize) < count) {
                    fill(turn as usize + 1, states);
                    states |= lanes;
                }
                fill(count, states);
            }
        }
        for &(turn, lanes) in runs.iter().take_while(|run| (run.0 as usize) < count) {
            let range = self.starts[turn as usize] as usize..self.starts[turn as usize + 1] as usize;
            for &later in &self.dependent[range] {
                asleep[later as usize] &= !lanes;
            }
        }
    }
}
