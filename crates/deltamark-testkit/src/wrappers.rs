//! Systems around systems, which differ from what they hold in one thing.
//!
//! In: a system of any kind. Out: the same states and steps. What stays true: everything but
//! the one thing is passed on, working memory included, so that each wrapper may stand
//! wherever the system inside may.
//!
//! * [`PoorHash`] has a hash of few bits: collisions become the rule.
//! * [`Forward`] does not tell that its steps can be undone.

use deltamark_core::hash::mix;
use deltamark_core::{
    Action, Batch, Block, Components, Describe, Fired, Observe, Portable, Recoding, Reversible, Scratch, Slot, States,
    System, Undone, Widen, Width,
};

/// The same system with a hash of few bits.
pub struct PoorHash {
    inner: Box<dyn System>,
    bits: u32,
}

impl PoorHash {
    /// Keeps `bits` bits, at most 63, of the hash. It is mixed before, so that all of it counts.
    pub fn new(inner: Box<dyn System>, bits: u32) -> Self {
        assert!(bits < 64, "a poor hash is poorer than the one it is made of");
        PoorHash { inner, bits }
    }

    fn poor(&self, hash: u64) -> u64 {
        mix(hash) & ((1 << self.bits) - 1)
    }

    /// Hands on a batch of the system inside, with poor hashes.
    fn hand_on(&self, from: &Batch, out: &mut Batch) {
        for index in 0..from.len() {
            out.begin(from.source(index));
            out.push_hashed(from.action(index), from.target(index), self.poor(from.hash(index)));
        }
        for fault in from.faults() {
            out.begin(fault.source.into());
            out.fault(fault.action, fault.message.clone());
        }
    }

    /// The same for what comes from one source, which `out` knows already.
    fn hand_on_one(&self, from: &Batch, out: &mut Batch) {
        for index in 0..from.len() {
            out.push_hashed(from.action(index), from.target(index), self.poor(from.hash(index)));
        }
        for fault in from.faults() {
            out.fault(fault.action, fault.message.clone());
        }
    }

    fn undoing(&self) -> &dyn Reversible {
        self.inner.reversible().expect("only a system that is reversible is handed out as one")
    }
}

impl System for PoorHash {
    fn width(&self) -> Width {
        self.inner.width()
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let mut batch = Batch::new(self.width());
        self.inner.initial(scratch, &mut batch)?;
        self.hand_on_one(&batch, out);
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let mut batch = Batch::new(self.width());
        self.inner.successors(scratch, source, &mut batch)?;
        self.hand_on_one(&batch, out);
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self.inner.describe()
    }

    fn scratch(&self) -> Scratch {
        self.inner.scratch()
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        let mut batch = Batch::new(self.width());
        self.inner.expand(scratch, block, &mut batch)?;
        self.hand_on(&batch, out);
        Ok(())
    }

    fn fire(&self, scratch: &mut Scratch, source: &[Slot], action: Action, to: &mut Vec<Slot>) -> Result<Fired, Widen> {
        self.inner.fire(scratch, source, action, to)
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        self.inner.fire_each(scratch, sources, actions, targets);
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        self.poor(self.inner.hash(scratch, state))
    }

    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        let start = out.len();
        self.inner.hashes(scratch, states, out);
        out[start..].iter_mut().for_each(|hash| *hash = self.poor(*hash));
    }

    fn widen(&self) -> Recoding {
        self.inner.widen()
    }

    fn action_count(&self) -> Option<u32> {
        self.inner.action_count()
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        self.inner.reversible().map(|_| self as _)
    }

    fn portable(&self) -> Option<&dyn Portable> {
        self.inner.portable()
    }

    fn components(&self) -> Option<&dyn Components> {
        self.inner.components()
    }

    fn observe(&self) -> Option<&dyn Observe> {
        self.inner.observe()
    }
}

impl Reversible for PoorHash {
    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        self.undoing().unfire(scratch, target, action, source)
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let mut batch = Batch::new(self.width());
        self.undoing().predecessors(scratch, target, &mut batch);
        self.hand_on_one(&batch, out);
    }

    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        // The system inside may work on from the hashes it is given, so they must be its own.
        let mut whole = Vec::new();
        self.inner.hashes(scratch, targets, &mut whole);
        let poor = whole.iter().map(|&hash| self.poor(hash));
        assert!(poor.eq(hashes.iter().copied()), "steps are undone with the hashes of their targets");
        let start = out.hashes.len();
        self.undoing().unfire_each(scratch, targets, &whole, actions, out);
        out.hashes[start..].iter_mut().for_each(|hash| *hash = self.poor(*hash));
    }
}

/// The same system, which does not tell that its steps can be undone.
pub struct Forward {
    inner: Box<dyn System>,
}

impl Forward {
    /// Hides what [`System::reversible`] of this system says.
    pub fn new(inner: Box<dyn System>) -> Self {
        Forward { inner }
    }
}

impl System for Forward {
    fn width(&self) -> Width {
        self.inner.width()
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        self.inner.initial(scratch, out)
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        self.inner.successors(scratch, source, out)
    }

    fn describe(&self) -> &dyn Describe {
        self.inner.describe()
    }

    fn scratch(&self) -> Scratch {
        self.inner.scratch()
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.inner.expand(scratch, block, out)
    }

    fn fire(&self, scratch: &mut Scratch, source: &[Slot], action: Action, to: &mut Vec<Slot>) -> Result<Fired, Widen> {
        self.inner.fire(scratch, source, action, to)
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        self.inner.fire_each(scratch, sources, actions, targets);
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        self.inner.hash(scratch, state)
    }

    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        self.inner.hashes(scratch, states, out);
    }

    fn widen(&self) -> Recoding {
        self.inner.widen()
    }

    fn action_count(&self) -> Option<u32> {
        self.inner.action_count()
    }

    fn portable(&self) -> Option<&dyn Portable> {
        self.inner.portable()
    }

    fn components(&self) -> Option<&dyn Components> {
        self.inner.components()
    }

    fn observe(&self) -> Option<&dyn Observe> {
        self.inner.observe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore;
    use crate::systems::{Counters, Odometer, Workers};
    use std::collections::HashSet;

    #[test]
    fn a_poor_hash_has_as_many_values_as_its_bits_allow() {
        for (bits, values) in [(0, 1), (2, 4), (6, 64)] {
            let system = PoorHash::new(Box::new(Odometer::new(&[30, 30], 1)), bits);
            let found = explore(&system);
            let mut scratch = system.scratch();
            let hashes: HashSet<u64> = found.states.iter().map(|state| system.hash(&mut scratch, state)).collect();
            assert_eq!((found.states.len(), hashes.len()), (900, values));
        }
    }

    #[test]
    fn wrappers_change_no_state_and_no_step() {
        let inside: [fn() -> Box<dyn System>; 2] =
            [|| Box::new(Workers::new(2, 2, 1)), || Box::new(Counters::new(3, 6))];
        for fresh in inside {
            let plain = explore(&*fresh());
            for wrapped in [Box::new(PoorHash::new(fresh(), 3)) as Box<dyn System>, Box::new(Forward::new(fresh()))] {
                let found = explore(&*wrapped);
                assert_eq!(found.states, plain.states);
                assert_eq!(found.edges, plain.edges);
                assert_eq!(found.faults, plain.faults);
            }
        }
    }

    #[test]
    fn only_what_is_inside_reversible_is_so() {
        let reversible = |system: &dyn System| system.reversible().is_some();
        assert!(reversible(&PoorHash::new(Box::new(Counters::new(2, 2)), 3)));
        assert!(!reversible(&PoorHash::new(Box::new(Workers::new(2, 1, 1)), 3)));
        assert!(!reversible(&Forward::new(Box::new(Counters::new(2, 2)))));
    }
}
