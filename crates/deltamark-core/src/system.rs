//! A model that can be run.
//!
//! In: a model, compiled by a front end. Out: initial states, successors, and further capabilities.
//! Invariant: a system is shared by all threads; mutable data is in a [`Scratch`] per thread.
//!
//! A front end must implement four methods; the others are provided. A front end with a faster
//! batch implementation overrides [`System::expand`] and [`System::hashes`].
//!
//! # Layouts that widen
//! A system whose fields have no known bound starts with narrow fields. When a count overflows its
//! field, a method returns [`Widen`]; the search then pauses all threads, calls [`System::widen`]
//! once, translates the store and its own queues by the returned [`Recoding`], and repeats the
//! call. A scratch remains valid: it adopts the new layout at the next call. Systems with a known
//! layout never return `Widen`.

use crate::{
    Action, Batch, Block, Bytes, Components, Control, Describe, Exchange, Facts, Observe, Portable, Progress, Recoding,
    Reversible, Scratch, Sleep, Slot, States, Stop, Width, hash, sleep,
};
use std::any::Any;

/// The current layout cannot represent a state that the call encountered. Any output of the call is
/// invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widen;

/// The result of [`System::fire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// The target has been written.
    Done,
    /// The action is not enabled in this source.
    Disabled,
    /// The action is enabled, and the model declares it a fault.
    Fault(String),
}

/// A model that can be run: the interface between languages and searches.
pub trait System: Send + Sync {
    /// The current number of slots of a state.
    fn width(&self) -> Width;

    /// Appends the initial states (at least one), each with [`Action`] 0, 1, 2 … in order.
    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen>;

    /// Appends all successors of `source`, in an order determined by `source` alone.
    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen>;

    /// States and actions in the terms of the model.
    fn describe(&self) -> &dyn Describe;

    /// New working memory for one thread.
    fn scratch(&self) -> Scratch {
        Scratch::none()
    }

    /// Appends all successors of all states of `block`, in any order determined by the block alone.
    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        for (index, state) in block.states().iter().enumerate() {
            out.begin(index);
            self.successors(scratch, state, out)?;
        }
        Ok(())
    }

    /// Appends the successors of the states of `block`, but for those that `sleep` skips, which are
    /// [counted](Batch::leave_out). `arrivals` holds for each state the action that reached it, [`Action::NONE`] for
    /// initial states; `sleep` was built for this system. Faults are never skipped.
    ///
    /// Provided by skipping what was expanded; worth overriding where a successor that is skipped need not be made.
    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        sleep: &Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        sleep::expand_then_skip(self, scratch, block, sleep, arrivals, out)
    }

    /// Appends the successors of the states of `block` by the actions that are chosen for them: `chosen` has for each
    /// action a word with a bit for each state. A state all of whose successors are left away is
    /// [marked](Batch::leave_away) as one that has some. Faults may be reported of any action. For systems whose actions are numbered
    /// beforehand.
    ///
    /// Provided by removing the others; worth overriding where they need not be made.
    fn expand_chosen(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        chosen: &[u64],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        self.expand(scratch, block, out)?;
        out.keep_where(|source, action| chosen[action.0 as usize] >> source & 1 == 1);
        Ok(())
    }

    /// Writes the successor of `source` under `action` to `target`, replacing what it held.
    ///
    /// The default searches the successors. Override it if single actions can be fired directly:
    /// stores that rebuild states depend on it.
    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let mut batch = Batch::new(self.width());
        self.successors(scratch, source, &mut batch)?;
        target.clear();
        if let Some(fault) = batch.faults().iter().find(|fault| fault.action == Some(action)) {
            return Ok(Fired::Fault(fault.message.clone()));
        }
        match batch.actions().iter().position(|&found| found == action) {
            Some(index) => {
                target.extend_from_slice(batch.target(index));
                Ok(Fired::Done)
            }
            None => Ok(Fired::Disabled),
        }
    }

    /// Appends, for each of `sources`, the successor under the action of the same index. All these
    /// actions were enabled before, so they are enabled again. Override it if a batch is cheaper
    /// than single calls.
    ///
    /// # Panics
    /// If an action is not enabled: a bug of the caller.
    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        let mut target = Vec::new();
        for (source, &action) in sources.iter().zip(actions) {
            let fired = self.fire(scratch, source, action, &mut target);
            assert_eq!(fired, Ok(Fired::Done), "a step that was taken can be taken again");
            targets.push(&target);
        }
    }

    /// The hash of a state: a function of the meaning of the state, not of its layout, so it
    /// survives a [`Recoding`]. Batches contain the same value.
    fn hash(&self, _scratch: &mut Scratch, state: &[Slot]) -> u64 {
        hash::slots(state)
    }

    /// Appends the hashes of many states.
    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        out.extend(states.iter().map(|state| self.hash(scratch, state)));
    }

    /// Changes the layout so that the state that did not fit will fit. Called by one thread while
    /// no other thread uses the system.
    fn widen(&self) -> Recoding {
        unreachable!("a system that never returns Widen is never asked to widen")
    }

    /// The bytes that [`widen`](Self::widen) takes while it works, beside what the system holds: about those of what is
    /// compiled for a layout, and of the way there. Requested from the budget before it is called; the default suits
    /// systems for which it is little.
    fn widening_bytes(&self) -> u64 {
        0
    }

    /// The bytes of tables that grow during a run (values, bindings), by part, for reports.
    fn tables(&self) -> Bytes {
        Bytes::new()
    }

    /// The current bytes of such tables, at least of those that grow with the states. Must be
    /// cheap: searches charge them to the budget after every block. The default suits systems whose
    /// tables stay small.
    fn table_bytes(&self) -> u64 {
        0
    }

    /// The compiled model as readable text; `None` if the language has none.
    fn dump(&self) -> Option<String> {
        None
    }

    /// The largest action number plus one, if the set of actions is known in advance.
    fn action_count(&self) -> Option<u32> {
        None
    }

    /// `Some` if actions can be undone.
    fn reversible(&self) -> Option<&dyn Reversible> {
        None
    }

    /// `Some` if states and actions can be written as bytes that mean the same in every run.
    fn portable(&self) -> Option<&dyn Portable> {
        None
    }

    /// What it can state about its actions, worked out now, unless `control` has it end before. `None` for systems
    /// whose actions are not numbered beforehand, and for those that know nothing.
    fn facts(&self, _control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(None)
    }

    /// The same about [parts](crate::facts#parts) of actions, which may be more exact; by default the same.
    fn refined_facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        self.facts(control)
    }

    /// Which actions can be exchanged, where no facts are stated.
    fn exchange(&self) -> Option<&dyn Exchange> {
        None
    }

    /// `Some` if the system provides progress measures.
    fn progress(&self) -> Option<&dyn Progress> {
        None
    }

    /// Component boundaries of states.
    fn components(&self) -> Option<&dyn Components> {
        None
    }

    /// The observables that properties can refer to.
    fn observe(&self) -> Option<&dyn Observe> {
        None
    }

    /// The concrete type of the system, for queries specific to one language, such as whether a net
    /// is a workflow net.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}
