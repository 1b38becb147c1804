//! Layers over systems, which differ from the system below in one thing.
//!
//! In: a system of any kind. Out: the same states and steps. What stays true: everything but the one thing is
//! inherited ([`Layer`]), so that a layer may be used wherever the system below may.
//!
//! * [`PoorHash`] has a hash of few bits: collisions become the rule.
//! * [`Forward`] hides that its steps can be undone.
//! * [`Renamed`] gives every action another name: the least that a layer can be.

use deltamark_core::hash::mix;
use deltamark_core::{Action, Batch, Block, Layer, Reversible, Scratch, Sleep, Slot, States, System, Undone, Widen};

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

    /// Lets the system below append to a batch, with poor hashes.
    fn append<T>(&self, out: &mut Batch, fill: impl FnOnce(&mut Batch) -> T) -> T {
        let start = out.len();
        let filled = fill(out);
        out.rehash(start, |hash| self.poor(hash));
        filled
    }

    /// The hashes of these states in the system below.
    fn whole(&self, scratch: &mut Scratch, states: &States) -> Vec<u64> {
        let mut whole = Vec::new();
        self.inner.hashes(scratch, states, &mut whole);
        whole
    }
}

impl Layer for PoorHash {
    fn inner(&self) -> &dyn System {
        &*self.inner
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        self.append(out, |out| self.inner.initial(scratch, out))
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        self.append(out, |out| self.inner.successors(scratch, source, out))
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.append(out, |out| self.inner.expand(scratch, block, out))
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        self.poor(self.inner.hash(scratch, state))
    }

    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        out.extend(self.whole(scratch, states).into_iter().map(|hash| self.poor(hash)));
    }

    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        sleep: &Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        self.append(out, |out| self.inner.expand_awake(scratch, block, sleep, arrivals, out))
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let below = self.inner.reversible().expect("only a reversible system is asked for predecessors");
        self.append(out, |out| below.predecessors(scratch, target, out));
    }

    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        // The system below may compute with the hashes that it is given, so they must be its own.
        let whole = self.whole(scratch, targets);
        let poor = whole.iter().map(|&hash| self.poor(hash));
        assert!(poor.eq(hashes.iter().copied()), "steps are undone with the hashes of their targets");
        let start = out.hashes.len();
        let below = self.inner.reversible().expect("only a reversible system undoes steps");
        below.unfire_each(scratch, targets, &whole, actions, out);
        out.hashes[start..].iter_mut().for_each(|hash| *hash = self.poor(*hash));
    }
}

/// The same system, without declaring that its steps can be undone.
pub struct Forward {
    inner: Box<dyn System>,
}

impl Forward {
    /// Hides [`System::reversible`] of this system.
    pub fn new(inner: Box<dyn System>) -> Self {
        Forward { inner }
    }
}

impl Layer for Forward {
    fn inner(&self) -> &dyn System {
        &*self.inner
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        None
    }
}

/// The same system, whose actions have other names.
pub struct Renamed {
    inner: Box<dyn System>,
}

impl Renamed {
    /// Renames every action of this system.
    pub fn new(inner: Box<dyn System>) -> Self {
        Renamed { inner }
    }
}

impl Layer for Renamed {
    fn inner(&self) -> &dyn System {
        &*self.inner
    }

    fn describe_action(&self, source: &[Slot], action: Action) -> String {
        format!("renamed {}", self.inner.describe().action(source, action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore;
    use crate::systems::{Counters, Odometer, Workers};
    use deltamark_core::Control;
    use deltamark_nets::{NetSystem, generate::generate};
    use std::collections::HashSet;

    #[test]
    fn a_poor_hash_has_as_many_values_as_its_bits_allow() {
        for (bits, values) in [(0, 1), (2, 4), (6, 64)] {
            let system: &dyn System = &PoorHash::new(Box::new(Odometer::new(&[30, 30], 1)), bits);
            let found = explore(system);
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
            let wrapped: [Box<dyn System>; 3] =
                [Box::new(PoorHash::new(fresh(), 3)), Box::new(Forward::new(fresh())), Box::new(Renamed::new(fresh()))];
            for wrapped in wrapped {
                let found = explore(&*wrapped);
                assert_eq!(found.states, plain.states);
                assert_eq!(found.edges, plain.edges);
                assert_eq!(found.faults, plain.faults);
            }
        }
    }

    #[test]
    fn a_layer_inherits_what_it_does_not_change() {
        let net = || Box::new(NetSystem::new(generate("philosophers", 3).expect("a family")));
        let (below, renamed): (&dyn System, &dyn System) = (&*net(), &Renamed::new(net()));
        let capabilities = |system: &dyn System| {
            let scratch = &mut system.scratch();
            let mut batch = Batch::new(system.width());
            system.initial(scratch, &mut batch).expect("the layout fits");
            let observe = system.observe().expect("nets have places");
            let progress = system.progress().expect("nets state effects");
            let effects = progress.effects(&Control::new()).expect("no limits").expect("transitions have effects");
            let effects = (effects.counts, effects.changes.into_owned(), effects.estimates);
            (
                (
                    system.facts(&Control::new()).expect("no limit").is_some(),
                    system.reversible().is_some(),
                    system.components().is_some(),
                ),
                (system.action_count(), system.table_bytes(), system.dump(), system.as_any().is_some()),
                (observe.names(), observe.action_names(), effects),
                system.describe().state(batch.target(0)),
            )
        };
        assert_eq!(capabilities(below), capabilities(renamed));
        assert_eq!(
            renamed.describe().action(&[], Action(0)),
            "renamed ".to_owned() + &below.describe().action(&[], Action(0))
        );
    }

    #[test]
    fn only_what_is_inside_reversible_is_so() {
        let reversible = |system: &dyn System| system.reversible().is_some();
        assert!(reversible(&PoorHash::new(Box::new(Counters::new(2, 2)), 3)));
        assert!(!reversible(&PoorHash::new(Box::new(Workers::new(2, 1, 1)), 3)));
        assert!(!reversible(&Forward::new(Box::new(Counters::new(2, 2)))));
    }
}
