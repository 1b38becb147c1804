//! A model that can be run.
//!
//! In: a model, compiled by a front end. Out: initial states, successors, and what
//! else the model can do (its capabilities). What stays true: a system is shared by
//! all threads; what changes from call to call lives in a [`Scratch`].
//!
//! A front end must implement four methods; the others are provided. One that can do
//! better on many states at once overrides [`System::expand`] and [`System::hashes`].
//!
//! # Layouts that widen
//! A system whose fields have no known bound starts with narrow ones. When a count
//! does not fit, a method returns [`Widen`]; the search then pauses all threads, calls
//! [`System::widen`] once, has the store and its own queues translated by the returned
//! [`Recoding`], and repeats the call. A scratch stays good: it learns of the new layout at
//! the next call. Systems of known layout never return `Widen`.

use crate::{
    Action, Batch, Block, Bytes, Components, Control, Describe, Exchange, Facts, Observe, Portable, Progress,
    Reversible, Scratch, Sleep, Slot, States, Stop, Width, hash, sleep,
};
use std::any::Any;
use std::sync::Arc;

/// The layout in use cannot hold a state that the call has met. Whatever the call has
/// written is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widen;

/// What [`System::fire`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// The target has been written.
    Done,
    /// The action cannot happen in this source.
    Disabled,
    /// The action happens, and the model declares it wrong.
    Fault(String),
}

/// A model that can be run: the one interface between languages and searches.
pub trait System: Send + Sync {
    /// How many slots its states take at present.
    fn width(&self) -> Width;

    /// Appends the initial states (at least one), each with [`Action`] 0, 1, 2 … in order.
    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen>;

    /// Appends all successors of `source`, in an order that depends on `source` alone.
    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen>;

    /// States and actions in the modeller's words.
    fn describe(&self) -> &dyn Describe;

    /// New working memory for one thread.
    fn scratch(&self) -> Scratch {
        Scratch::none()
    }

    /// Appends all successors of all states of `block`. Successors may come in any
    /// order that depends on the block alone.
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

    /// Writes the successor of `source` under `action` to `target`, replacing what it held.
    ///
    /// Provided by searching the successors; worth overriding wherever one step can be
    /// taken alone, because rebuilding stores live on it.
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

    /// Appends for each of `sources` the successor under the action of the same number.
    /// All these steps were taken before, so they can be taken again. Worth overriding where
    /// many steps are cheaper than one at a time.
    ///
    /// # Panics
    /// When a step cannot be taken: the caller made it up.
    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        let mut target = Vec::new();
        for (source, &action) in sources.iter().zip(actions) {
            let fired = self.fire(scratch, source, action, &mut target);
            assert_eq!(fired, Ok(Fired::Done), "a step that was taken can be taken again");
            targets.push(&target);
        }
    }

    /// The hash of a state: a function of what the state means, not of its layout, so
    /// that it outlives a [`Recoding`]. Batches carry the same value.
    fn hash(&self, _scratch: &mut Scratch, state: &[Slot]) -> u64 {
        hash::slots(state)
    }

    /// Appends the hashes of many states.
    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        out.extend(states.iter().map(|state| self.hash(scratch, state)));
    }

    /// Changes the layout so that the state that did not fit will fit. Called by one
    /// thread while no other uses the system.
    fn widen(&self) -> Recoding {
        unreachable!("a system that never returns Widen is never asked to widen")
    }

    /// The bytes of tables that grow while the system runs (values, bindings), by part, for reports.
    fn tables(&self) -> Bytes {
        Bytes::new()
    }

    /// The bytes that such tables hold now, at least those that grow with the states. Cheap: searches have the budget
    /// count them after every block. A system whose tables stay small need not tell.
    fn table_bytes(&self) -> u64 {
        0
    }

    /// What the model was compiled to, as text for people; nothing for languages that have none to show.
    fn dump(&self) -> Option<String> {
        None
    }

    /// The largest action number plus one, where the set of actions is known beforehand.
    fn action_count(&self) -> Option<u32> {
        None
    }

    /// Whether steps can be undone.
    fn reversible(&self) -> Option<&dyn Reversible> {
        None
    }

    /// How actions are carried over to another run, where their numbers are not the same.
    fn portable(&self) -> Option<&dyn Portable> {
        None
    }

    /// What it can state about its actions, worked out now, unless `control` has it end before. `None` for systems
    /// whose actions are not numbered beforehand, and for those that know nothing.
    fn facts(&self, _control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(None)
    }

    /// Which actions can be exchanged, where there are no facts to tell it by.
    fn exchange(&self) -> Option<&dyn Exchange> {
        None
    }

    /// Whether it knows measures of its own progress.
    fn progress(&self) -> Option<&dyn Progress> {
        None
    }

    /// Where states may be cut.
    fn components(&self) -> Option<&dyn Components> {
        None
    }

    /// What properties may speak of.
    fn observe(&self) -> Option<&dyn Observe> {
        None
    }

    /// The system as the type it is, where questions are asked that belong to one language only: whether a net is a workflow net, say.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// How states in the old layout read in the new one.
///
/// The translation is injective and keeps [`System::hash`]. A state may become longer or, when
/// the new layout happens to pack better, shorter.
#[derive(Clone)]
pub struct Recoding {
    /// The width before.
    pub from: Width,
    /// The width from now on.
    pub to: Width,
    /// What was widened, for the log: one line.
    pub reason: String,
    translate: Translation,
}

type Translation = Arc<dyn Fn(&[Slot], &mut Vec<Slot>) + Send + Sync>;

impl Recoding {
    /// A recoding that replaces the contents of its second argument by the
    /// translation of the first.
    pub fn new(
        from: Width,
        to: Width,
        reason: String,
        translate: impl Fn(&[Slot], &mut Vec<Slot>) + Send + Sync + 'static,
    ) -> Self {
        Recoding { from, to, reason, translate: Arc::new(translate) }
    }

    /// Replaces the contents of `new` by the translation of `old`.
    pub fn translate(&self, old: &[Slot], new: &mut Vec<Slot>) {
        (self.translate)(old, new);
    }

    /// Translates a whole list.
    pub fn translate_all(&self, states: &mut States) {
        let mut translated = States::new(self.to);
        let mut state = Vec::new();
        for old in states.iter() {
            self.translate(old, &mut state);
            translated.push(&state);
        }
        *states = translated;
    }
}
