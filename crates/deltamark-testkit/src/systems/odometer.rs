//! A ring of counters that wrap around, like the wheels of an odometer.
//!
//! In: the number of values of each wheel, and a seed. Out: a system with cycles, many levels and back edges
//! to much older ones; every step can be undone. What stays true: a step turns one wheel by a constant,
//! modulo its size; whether it is enabled depends on its value and on that of the wheel before, so a target
//! has at most one source. The first wheel turns freely, each other one from each of its values at one value
//! of the wheel before, so all combinations are reachable: as many states as the product of the sizes, and no
//! deadlock. To turn a wheel around, the one before it turns many times.

use crate::random::Rng;
use deltamark_core::{
    Action, Batch, Components, Describe, Fired, Reversible, Scratch, Slot, System, Value, Widen, Width,
};

/// A ring of wheels. Action `2i` turns wheel `i` by one, action `2i + 1` by its leap.
pub struct Odometer {
    wheels: Vec<Wheel>,
}

struct Wheel {
    size: Slot,
    /// Whether it turns by one whatever the wheel before it.
    free: bool,
    /// For each of its values, the value of the wheel before it at which it turns by one.
    turns_at: Vec<Slot>,
    /// The size of its leap.
    leap: Slot,
    /// The one value from which it leaps, and the required value of the wheel before it.
    leaps_at: (Slot, Slot),
}

impl Odometer {
    /// Wheels of these sizes; the seed determines when they turn and how far they leap.
    pub fn new(sizes: &[Slot], seed: u64) -> Self {
        assert!(!sizes.is_empty() && sizes.iter().all(|&size| size > 0), "each wheel has a value");
        let mut rng = Rng::new(seed);
        let mut below = |size: Slot| rng.below(size as usize) as Slot;
        let wheel = |(index, &size): (usize, &Slot)| {
            let before = sizes[(index + sizes.len() - 1) % sizes.len()];
            let turns_at = (0..size).map(|_| below(before)).collect();
            Wheel { size, free: index == 0, turns_at, leap: below(size), leaps_at: (below(size), below(before)) }
        };
        Odometer { wheels: sizes.iter().enumerate().map(wheel).collect() }
    }

    /// The same with wheels that all turn freely: fewer levels, with many states each.
    pub fn loose(sizes: &[Slot], seed: u64) -> Self {
        let mut system = Self::new(sizes, seed);
        system.wheels.iter_mut().for_each(|wheel| wheel.free = true);
        system
    }

    /// One to five wheels with up to `most` states in all.
    pub fn random(seed: u64, most: usize) -> Self {
        let mut rng = Rng::new(!seed);
        let (mut sizes, mut states) = (Vec::new(), 1);
        for _ in 0..1 + rng.below(5) {
            let size = (2 + rng.below(16)).min(most / states);
            if size > 1 {
                sizes.push(size as Slot);
                states *= size;
            }
        }
        let make = if rng.below(3) == 0 { Self::loose } else { Self::new };
        make(if sizes.is_empty() { &[1] } else { &sizes }, seed)
    }

    /// The number of states.
    pub fn states(&self) -> usize {
        self.wheels.iter().map(|wheel| wheel.size as usize).product()
    }

    /// The wheel that an action turns, and how far.
    fn turn(&self, action: Action) -> Option<(usize, &Wheel, Slot)> {
        let number = action.0 as usize / 2;
        let wheel = self.wheels.get(number)?;
        Some((number, wheel, if action.0 % 2 == 1 { wheel.leap } else { 1 % wheel.size }))
    }

    /// Whether the action is enabled in `state`, where the wheel it turns has the value `own`.
    fn may(&self, state: &[Slot], action: Action, number: usize, own: Slot) -> bool {
        // The wheel before is never the one that turns: a single wheel turns and leaps freely.
        let before = (number != 0 || state.len() > 1).then(|| state[(number + state.len() - 1) % state.len()]);
        let wheel = &self.wheels[number];
        match (before, action.0 % 2) {
            (Some(before), 1) => (own, before) == wheel.leaps_at,
            (Some(before), _) => wheel.free || before == wheel.turns_at[own as usize],
            (None, _) => true,
        }
    }

    fn all_actions(&self) -> impl Iterator<Item = Action> {
        (0..2 * self.wheels.len() as u32).map(Action)
    }
}

impl System for Odometer {
    fn width(&self) -> Width {
        Width::Fixed(self.wheels.len())
    }

    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push(Action(0), &vec![0; self.wheels.len()]);
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let mut target = Vec::new();
        for action in self.all_actions() {
            if self.fire(scratch, source, action, &mut target)? == Fired::Done {
                out.push(action, &target);
            }
        }
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn fire(
        &self,
        _scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let turn = self.turn(action).filter(|&(number, _, _)| self.may(source, action, number, source[number]));
        let Some((number, wheel, far)) = turn else { return Ok(Fired::Disabled) };
        target.clear();
        target.extend_from_slice(source);
        target[number] = (source[number] + far) % wheel.size;
        Ok(Fired::Done)
    }

    fn action_count(&self) -> Option<u32> {
        Some(2 * self.wheels.len() as u32)
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        Some(self)
    }

    fn components(&self) -> Option<&dyn Components> {
        Some(self)
    }
}

impl Reversible for Odometer {
    fn unfire(&self, _scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        let Some((number, wheel, far)) = self.turn(action) else { return false };
        let own = (target[number] + wheel.size - far) % wheel.size;
        if !self.may(target, action, number, own) {
            return false;
        }
        source.clear();
        source.extend_from_slice(target);
        source[number] = own;
        true
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let mut source = Vec::new();
        for action in self.all_actions() {
            if self.unfire(scratch, target, action, &mut source) {
                out.push(action, &source);
            }
        }
    }
}

impl Components for Odometer {
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>) {
        out.extend(0..state.len());
    }
}

impl Describe for Odometer {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        state.iter().enumerate().map(|(index, &value)| (format!("wheel{index}"), Value::Int(value.into()))).collect()
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        format!("{}{}", if action.0 % 2 == 1 { "leap" } else { "turn" }, action.0 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore;

    #[test]
    fn all_combinations_are_reachable() {
        for seed in 0..30 {
            let system = Odometer::random(seed, 600);
            let found = explore(&system);
            assert_eq!(found.states.len(), system.states(), "seed {seed}");
            assert_eq!(found.deadlocks, [], "seed {seed}");
        }
    }

    #[test]
    fn levels_are_many_and_steps_lead_far_back() {
        let found = explore(&Odometer::new(&[11, 9, 8], 1));
        assert!(found.depth() > 100, "depth {}", found.depth());
        let back =
            |edge: &crate::oracle::Edge| found.distances[edge.source].saturating_sub(found.distances[edge.target]);
        let far = found.edges.iter().filter(|edge| back(edge) >= 8).count();
        assert!(far * 50 > found.edges.len(), "{far} of {} steps", found.edges.len());
    }
}
