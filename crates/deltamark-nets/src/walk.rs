//! Deterministic random walks through a net.
//!
//! In: a net. Out: a sequence of markings, by the definition of firing. What stays true: two walks of the same
//! number are equal.

use crate::Net;
use deltamark_core::hash::mix;

/// A walk from the initial marking.
pub(crate) struct MarkingWalk<'a> {
    net: &'a Net,
    effects: &'a [Vec<(u32, i64)>],
    /// The current marking.
    pub marking: Vec<u64>,
    random: u64,
    priorities: bool,
    /// The number of transitions examined, each with its inputs.
    pub effort: usize,
}

impl<'a> MarkingWalk<'a> {
    /// The walk of this number, before its first step.
    pub fn new(net: &'a Net, effects: &'a [Vec<(u32, i64)>], number: u64) -> Self {
        let marking = net.places.iter().map(|place| u64::from(place.initial)).collect();
        MarkingWalk { net, effects, marking, random: mix(number + 1), priorities: net.has_priorities(), effort: 0 }
    }

    /// Fires the first enabled transition from a random one on: cheap, and fair enough. With priorities all are
    /// examined. Returns which, or `None` in a deadlock.
    pub fn step(&mut self) -> Option<usize> {
        self.random = mix(self.random.wrapping_add(1));
        let count = self.net.transitions.len();
        let start = if count == 0 { 0 } else { self.random as usize % count };
        let mut enabled = (start..count).chain(0..start).filter(|&number| {
            let transition = &self.net.transitions[number];
            self.effort += 1 + transition.inputs.len();
            transition.enabled(|place| self.marking[place as usize])
        });
        let chosen = if self.priorities {
            enabled.max_by_key(|&number| self.net.transitions[number].priority)?
        } else {
            enabled.next()?
        };
        for &(place, gain) in &self.effects[chosen] {
            let count = &mut self.marking[place as usize];
            *count = count.saturating_add_signed(gain);
        }
        Some(chosen)
    }
}
