//! A layer that appends to the state: the same system, in which one action is taken a bounded number of times.
//!
//! ```text
//! state     [ state of the system below | taken ]     one slot more: how often the action was taken
//! ```
//!
//! It changes the layout of states, their hashes and which steps there are, so it overrides all methods that the head
//! of `layer.rs` lists for these. Successors go through a batch of their own: what such a batch holds beside
//! successors (faults, sources that were cut off, why it is incomplete) is passed on too.

use deltamark_core::{
    Action, BLOCK, Batch, Block, Bound, Components, Control, Exchange, Facts, Fired, Layer, Misread, NoValue,
    Observable, Observe, Portable, Recoding, Reversible, Scratch, Slot, States, Stop, System, Value, Widen, Width,
    hash::mix, survey_by_reading, varint,
};

/// The same system, in which `action` is taken at most `most` times.
pub struct AtMost<'s> {
    inner: &'s dyn System,
    action: Action,
    most: Slot,
}

/// The state of the system below, and how often the action was taken.
fn split(state: &[Slot]) -> (&[Slot], Slot) {
    let (&taken, below) = state.split_last().expect("a state ends in the count");
    (below, taken)
}

/// The hash of a state, from that of the system below. It is mixed, and what is added is no [`coefficient`]: the hash of a
/// net is a sum of these, so that one more token in a place would look like another count.
///
/// [`coefficient`]: deltamark_core::hash::coefficient
fn joined(hash: u64, taken: Slot) -> u64 {
    mix(hash.wrapping_add(taken.into()))
}

impl AtMost<'_> {
    fn allows(&self, action: Action, taken: Slot) -> bool {
        action != self.action || taken < self.most
    }

    fn after(&self, action: Action, taken: Slot) -> Slot {
        taken + Slot::from(action == self.action)
    }

    /// Appends what `append` finds in the system below, where `after` allows an action and returns the count after it.
    fn lifted(
        &self,
        out: &mut Batch,
        append: impl FnOnce(&mut Batch) -> Result<(), Widen>,
        after: impl Fn(Action) -> Option<Slot>,
    ) -> Result<(), Widen> {
        let mut below = Batch::new(self.inner.width());
        if let Some(control) = out.control() {
            below = below.under(control);
        }
        append(&mut below)?;
        if let Some(stop) = below.stop() {
            out.halt(stop);
            return Ok(());
        }
        if below.cut_off_sources() != 0 {
            out.cut_off(1 << out.current());
        }
        for index in 0..below.len() {
            let action = below.action(index);
            if let Some(taken) = after(action) {
                let target = [below.target(index), &[taken]].concat();
                out.push_hashed(action, &target, joined(below.hash(index), taken));
            }
        }
        for fault in below.faults() {
            if fault.action.is_none_or(|action| after(action).is_some()) {
                out.fault(fault.action, fault.message.clone());
            }
        }
        Ok(())
    }

    fn below(&self) -> &dyn Observe {
        self.inner.observe().expect("the layer has observables where the system below has some")
    }
}

impl Layer for AtMost<'_> {
    fn inner(&self) -> &dyn System {
        self.inner
    }

    fn width(&self) -> Width {
        match self.inner.width() {
            Width::Fixed(slots) => Width::Fixed(slots + 1),
            Width::Varies => Width::Varies,
        }
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        self.lifted(out, |below| self.inner.initial(scratch, below), |_| Some(0))
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let (state, taken) = split(source);
        let after = |action| self.allows(action, taken).then(|| self.after(action, taken));
        self.lifted(out, |below| self.inner.successors(scratch, state, below), after)
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        for (index, state) in block.states().iter().enumerate() {
            out.begin(index);
            Layer::successors(self, scratch, state, out)?;
        }
        Ok(())
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let (state, taken) = split(source);
        if !self.allows(action, taken) {
            return Ok(Fired::Disabled);
        }
        let fired = self.inner.fire(scratch, state, action, target)?;
        if fired == Fired::Done {
            target.push(self.after(action, taken));
        }
        Ok(fired)
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        let mut target = Vec::new();
        for (source, &action) in sources.iter().zip(actions) {
            let fired = Layer::fire(self, scratch, source, action, &mut target);
            assert_eq!(fired, Ok(Fired::Done), "a step that was taken can be taken again");
            targets.push(&target);
        }
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        let (state, taken) = split(state);
        joined(self.inner.hash(scratch, state), taken)
    }

    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        out.extend(states.iter().map(|state| Layer::hash(self, scratch, state)));
    }

    fn widen(&self) -> Recoding {
        self.inner.widen().with_tail(1)
    }

    fn describe_state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let (state, taken) = split(state);
        let mut values = self.inner.describe().state(state);
        // Each variable is shown once, and the system below may be such a layer for another action.
        values.push((format!("how often action {} was taken", self.action.0), Value::Int(taken.into())));
        values
    }

    fn describe_action(&self, source: &[Slot], action: Action) -> String {
        self.inner.describe().action(split(source).0, action)
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        self.below().read(scratch, split(state).0, observable)
    }

    fn why_undefined(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> NoValue {
        self.below().why_undefined(scratch, split(state).0, observable)
    }

    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; BLOCK]) {
        for (state, value) in block.states().iter().zip(out) {
            *value = Layer::read(self, scratch, state, observable);
        }
    }

    fn survey_block(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        observables: &[Observable],
        bounds: &mut [Bound],
    ) -> i64 {
        survey_by_reading(block.len(), observables, bounds, |observable, values| {
            Layer::read_block(self, scratch, block, observable, values);
        })
    }

    fn fireable(&self, _: &str) -> Option<Observable> {
        None
    }

    fn action_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        None
    }

    /// Where an action has another number in the next run, `action` is another one there, and so are the states.
    fn portable(&self) -> Option<&dyn Portable> {
        let below = self.inner.portable()?;
        below.actions().is_none().then_some(self as &dyn Portable)
    }

    fn facts(&self, _: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(None)
    }

    fn exchange(&self) -> Option<&dyn Exchange> {
        None
    }

    fn components(&self) -> Option<&dyn Components> {
        self.inner.components().map(|_| self as &dyn Components)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

impl Portable for AtMost<'_> {
    fn write_state(&self, scratch: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        let (state, taken) = split(state);
        self.inner.portable().expect("as the system below").write_state(scratch, state, out);
        varint::write(taken.into(), out);
    }

    fn read_state(
        &self,
        scratch: &mut Scratch,
        bytes: &mut varint::Reader<'_>,
        out: &mut Vec<Slot>,
    ) -> Result<(), Misread> {
        self.inner.portable().expect("as the system below").read_state(scratch, bytes, out)?;
        out.push(bytes.at_most(self.most.into()).ok_or(Misread::SHORT)? as Slot);
        Ok(())
    }
}

impl Components for AtMost<'_> {
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>) {
        let (state, _) = split(state);
        self.inner.components().expect("as the system below").boundaries(state, out);
        out.push(state.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Without;
    use deltamark_nets::{NetSystem, generate::generate};
    use deltamark_testkit::systems::{Counters, Odometer, Workers};
    use deltamark_testkit::{RandomGraph, check_portable, check_system, explore};

    #[test]
    fn the_layer_passes_the_suite() {
        let systems: [&dyn System; 6] = [
            &Workers::new(2, 2, 2),
            // A layout that widens, and states of varying width.
            &Counters::new(3, 9),
            &RandomGraph::of_width(3, Width::Varies, 60),
            &Odometer::new(&[5, 4], 1),
            &NetSystem::new(generate("kanban", 1).expect("a family")),
            &NetSystem::new(generate("philosophers", 3).expect("a family")),
        ];
        for (number, inner) in systems.into_iter().enumerate() {
            for (action, most) in [(Action(0), 0), (Action(1), 2)] {
                println!("system {number}, {action:?} at most {most} times");
                check_system(&AtMost { inner, action, most });
            }
        }
    }

    #[test]
    fn layers_stack() {
        for inner in [&Counters::new(3, 9) as &dyn System, &Workers::new(2, 2, 2)] {
            let once = AtMost { inner, action: Action(0), most: 2 };
            check_system(&AtMost { inner: &once, action: Action(1), most: 1 });
        }
    }

    #[test]
    fn states_mean_the_same_in_every_run() {
        // A layer borrows the system below, and each run has its own.
        fn fresh(inner: impl System + 'static) -> AtMost<'static> {
            AtMost { inner: Box::leak(Box::new(inner)), action: Action(1), most: 2 }
        }
        check_portable(|| fresh(Counters::new(3, 9)));
        check_portable(|| fresh(NetSystem::new(generate("philosophers", 3).expect("a family"))));
    }

    #[test]
    fn an_action_that_is_never_taken_is_an_action_removed() {
        let net = NetSystem::new(generate("philosophers", 3).expect("a family"));
        let size = |system: &dyn System| (explore(system).states.len(), explore(system).edges.len());
        for forbidden in (0..3).map(Action) {
            let layer = |most| AtMost { inner: &net, action: forbidden, most };
            assert_eq!(size(&layer(0)), size(&Without { inner: &net, forbidden }));
            assert!(size(&layer(0)) < size(&layer(1)) && size(&layer(1)) < size(&layer(2)));
        }
    }
}
