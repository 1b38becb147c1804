//! Models written in Rust: states are ordinary structs and enums, steps are methods.
//!
//! In: a [`Model`], and what is asked of it. Out: a [`ModelSystem`] that every search
//! and every store takes, or a [`ModelReport`] with decoded states.
//! What stays true: an action's number is its place in the list that
//! [`Model::actions`] gives for the source state, disabled ones included; a step that
//! faults, panics, or gives a state that does not fit its bits is a fault of the model
//! with a trace, never a lost state. (Rust's panic hook still prints a panic when it
//! happens; a program built with `panic = "abort"` ends there.)

mod check;
mod path;
mod report;

pub use check::{ModelCheck, check};
pub use path::Path;
pub use report::ModelReport;

use crate::check::CheckError;
use crate::pack::{self, Pack, Packer};
use deltamark_core::portable::{read_slots, write_slots};
use deltamark_core::property::Undefined;
use deltamark_core::varint::Reader;
use deltamark_core::{
    Action, Batch, Block, Describe, Fired, Misread, Portable, Predicate, Scratch, Slot, Symmetry, System, Unnamed,
    Value, Widen, Width,
};
use deltamark_store::SpecError;
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A model: where it starts, what can happen, and what then becomes of the state.
///
/// All three methods depend on their arguments alone: called again, they return the same.
///
/// ```
/// use deltamark::{Model, Pack, Step};
///
/// /// A semaphore with a bug: `acquire` does not wait for a permit.
/// struct Semaphore;
///
/// #[derive(Clone, Debug, Pack)]
/// struct State {
///     #[pack(bits = 2)]
///     permits: u8,
/// }
///
/// #[derive(Debug, PartialEq)]
/// enum Call {
///     Acquire,
///     Release,
/// }
///
/// impl Model for Semaphore {
///     type State = State;
///     type Action = Call;
///
///     fn initial(&self) -> Vec<State> {
///         vec![State { permits: 1 }]
///     }
///
///     fn actions(&self, state: &State, calls: &mut Vec<Call>) {
///         calls.push(Call::Acquire);
///         if state.permits < 2 {
///             calls.push(Call::Release);
///         }
///     }
///
///     fn next(&self, state: &mut State, call: Call) -> Step {
///         match call {
///             Call::Acquire => match state.permits.checked_sub(1) {
///                 Some(left) => state.permits = left,
///                 None => return Step::fault("there is no permit left"),
///             },
///             Call::Release => state.permits += 1,
///         }
///         Step::Taken
///     }
/// }
///
/// let report = deltamark::check(Semaphore).run()?;
/// let (call, message) = report.trace("fault-free").and_then(|path| path.fault).expect("a fault");
/// assert_eq!((call, message.as_str()), (Call::Acquire, "there is no permit left"));
/// # Ok::<(), deltamark::ModelError>(())
/// ```
pub trait Model: Send + Sync {
    /// A state: `#[derive(Clone, Debug, Pack)]`.
    type State: Pack + Clone;
    /// What can happen. Traces contain it as a value, and print it by its `Debug`.
    type Action: Debug;

    /// The initial states, at least one.
    fn initial(&self) -> Vec<Self::State>;

    /// Appends what might happen in `state`. Listing too much does no harm:
    /// [`next`](Self::next) may say that an action is disabled.
    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>);

    /// Changes `state`, a copy of the source, to what it is after `action`.
    fn next(&self, state: &mut Self::State, action: Self::Action) -> Step;

    /// Replaces `state` by the representative of all states that differ from it by a symmetry of the model alone, mostly by the order
    /// of alike processes. [`ModelCheck::symmetry`] explores these only. Where [`Symmetric`](crate::Symmetric) is derived for the state,
    /// `state.canonise()` does it. It does nothing by default. It should be the same one for all of them: otherwise there are more states, and a
    /// run may end with [`ModelError::Asymmetric`] for want of a trace.
    ///
    /// A symmetry is a permutation of the states that takes steps to steps, faults to faults, initial states to anything, and changes
    /// the truth of no property that is asked.
    fn canonical(&self, _state: &mut Self::State) {}
}

/// What became of a step. `()`, `bool` and `Result<(), impl Display>` turn into it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// The step is taken; the state has been changed.
    Taken,
    /// The action cannot happen here; whatever was done to the state is void.
    Disabled,
    /// The action happens, and that is wrong: a failed assertion, an index out of range.
    Fault(String),
}

impl Step {
    /// A fault with this message.
    pub fn fault(message: impl Into<String>) -> Self {
        Step::Fault(message.into())
    }
}

impl From<()> for Step {
    fn from((): ()) -> Self {
        Step::Taken
    }
}

impl From<bool> for Step {
    /// Whether the action could happen.
    fn from(taken: bool) -> Self {
        if taken { Step::Taken } else { Step::Disabled }
    }
}

impl<E: fmt::Display> From<Result<(), E>> for Step {
    fn from(result: Result<(), E>) -> Self {
        result.map_or_else(|error| Step::Fault(error.to_string()), Step::from)
    }
}

/// Why a model could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelError {
    /// It has no initial state.
    NoInitial,
    /// This initial state cannot be packed: why.
    Initial(usize, String),
    /// There is no such store, or it has no such option.
    Store(SpecError),
    /// Two properties have this name.
    SameName(String),
    /// What the model calls a symmetry is none: how it was found out, with two states.
    Asymmetric(String),
    /// A formula of linear temporal logic is wrong.
    Formula {
        /// What it is called.
        name: String,
        /// Why.
        message: String,
    },
    /// The limits cannot be kept.
    Limit(CheckError),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::NoInitial => f.write_str("the model has no initial state"),
            ModelError::Initial(number, why) => write!(f, "initial state {number} cannot be packed: {why}"),
            ModelError::Store(error) => fmt::Display::fmt(error, f),
            ModelError::Asymmetric(why) => write!(f, "`canonical` is no symmetry of the model: {why}"),
            ModelError::Limit(error) => fmt::Display::fmt(error, f),
            ModelError::Formula { name, message } => write!(f, "the formula `{name}` is wrong: {message}"),
            ModelError::SameName(name) => write!(f, "two properties are called `{name}`"),
        }
    }
}

impl std::error::Error for ModelError {}

/// A model as a system.
pub struct ModelSystem<M: Model> {
    model: M,
    initial: Vec<Vec<Slot>>,
}

impl<M: Model> ModelSystem<M> {
    /// Makes a system of a model.
    pub fn new(model: M) -> Result<Self, ModelError> {
        let mut initial = Vec::new();
        for (number, state) in model.initial().iter().enumerate() {
            let slots = pack::pack(state).map_err(|why| ModelError::Initial(number, why))?;
            // An initial state listed twice is one state.
            if !initial.contains(&slots) {
                initial.push(slots);
            }
        }
        if initial.is_empty() { Err(ModelError::NoInitial) } else { Ok(ModelSystem { model, initial }) }
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The action of this number in a state; `None` if the model lists fewer there.
    pub fn action_in(&self, source: &[Slot], action: Action) -> Option<M::Action> {
        self.numbered(&pack::unpack(source), action)
    }

    fn numbered(&self, source: &M::State, action: Action) -> Option<M::Action> {
        // Where even listing the actions fails, the state is at fault and no action is.
        let listed = guarded(|| self.listed(source)).unwrap_or_default();
        listed.into_iter().nth(action.0 as usize)
    }

    fn listed(&self, state: &M::State) -> Vec<M::Action> {
        // Most models list a dozen: one allocation instead of four.
        let mut actions = Vec::with_capacity(16);
        self.model.actions(state, &mut actions);
        actions
    }

    /// Takes one step and packs its result.
    fn step<'a>(
        &self,
        packer: &'a mut Packer,
        source: &M::State,
        action: M::Action,
    ) -> Result<Option<&'a [Slot]>, String> {
        let mut state = source.clone();
        match guarded(|| self.model.next(&mut state, action))? {
            Step::Taken => {
                packer.clear();
                state.pack(packer);
                packer.finish().map(Some)
            }
            Step::Disabled => Ok(None),
            Step::Fault(message) => Err(message),
        }
    }
}

/// Runs the modeller's code; a panic in it becomes a message.
///
/// Nothing that the code may have left half done is used after a panic: the state it
/// worked on is a copy.
fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| {
        let message = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
        format!("the model panicked: {}", message.unwrap_or("no message"))
    })
}

impl<M: Model> System for ModelSystem<M> {
    fn width(&self) -> Width {
        match M::State::BITS {
            Some(bits) => Width::Fixed(bits.div_ceil(Slot::BITS) as usize),
            None => Width::Varies,
        }
    }

    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        for (number, state) in self.initial.iter().enumerate() {
            out.push(Action(number as u32), state);
        }
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let packer = scratch.get::<Packer>();
        let source: M::State = pack::unpack(source);
        let actions = match guarded(|| self.listed(&source)) {
            Ok(actions) => actions,
            Err(message) => {
                out.fault(None, message);
                return Ok(());
            }
        };
        for (number, action) in actions.into_iter().enumerate() {
            let number = Action(number as u32);
            match self.step(packer, &source, action) {
                Ok(Some(target)) => out.push(number, target),
                Ok(None) => {}
                Err(message) => out.fault(Some(number), message),
            }
        }
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(Packer::of::<M::State>())
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        target.clear();
        let packer = scratch.get::<Packer>();
        let source: M::State = pack::unpack(source);
        let Some(action) = self.numbered(&source, action) else {
            return Ok(Fired::Disabled);
        };
        Ok(match self.step(packer, &source, action) {
            Ok(Some(slots)) => {
                target.extend_from_slice(slots);
                Fired::Done
            }
            Ok(None) => Fired::Disabled,
            Err(message) => Fired::Fault(message),
        })
    }
}

/// States as they are packed. What was read is unpacked and packed again: only what comes out the same is a state.
impl<M: Model> Portable for ModelSystem<M> {
    fn write_state(&self, _: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        write_slots(self.width(), state, out);
    }

    fn read_state(&self, scratch: &mut Scratch, bytes: &mut Reader<'_>, out: &mut Vec<Slot>) -> Result<(), Misread> {
        read_slots(self.width(), MOST_SLOTS, bytes, out).ok_or(Misread::SHORT)?;
        let packer = scratch.get::<Packer>();
        packer.clear();
        // A tag without a variant, or a length beyond the end, is a panic of `unpack`.
        let packed = guarded(|| pack::unpack_checked::<M::State>(out).pack(packer));
        match packed.and_then(|()| packer.finish()) {
            Ok(again) if again == out.as_slice() => Ok(()),
            _ => Err(Misread::Wrong("no state of the model is packed like this")),
        }
    }
}

/// By [`Model::canonical`].
impl<M: Model> Symmetry for ModelSystem<M> {
    fn canonise(&self, scratch: &mut Scratch, state: &mut Vec<Slot>) -> Result<(), Unnamed> {
        let packer = scratch.get::<Packer>();
        let mut unpacked: M::State = pack::unpack(state);
        guarded(|| self.model.canonical(&mut unpacked)).map_err(Unnamed::Wrong)?;
        packer.clear();
        unpacked.pack(packer);
        let packed = packer.finish().map_err(Unnamed::Wrong)?;
        state.clear();
        state.extend_from_slice(packed);
        Ok(())
    }
}

/// The most slots of a state that is read.
const MOST_SLOTS: usize = 1 << 24;

impl<M: Model> Describe for ModelSystem<M> {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        pack::unpack::<M::State>(state).fields()
    }

    fn action(&self, source: &[Slot], action: Action) -> String {
        self.action_in(source, action).map_or_else(|| format!("action {}", action.0), |action| format!("{action:?}"))
    }
}

/// A closure over unpacked states as a predicate.
struct Closure<S, F> {
    holds: F,
    state: PhantomData<fn(S)>,
}

impl<S: Pack, F: Fn(&S) -> bool + Send + Sync> Predicate for Closure<S, F> {
    fn evaluate(&self, _: &dyn System, _: &mut Scratch, block: &Block, _dead: u64) -> Result<u64, Undefined> {
        let mut word = 0;
        for (index, slots) in block.states().iter().enumerate() {
            let state: S = pack::unpack(slots);
            match guarded(|| (self.holds)(&state)) {
                Ok(true) => word |= 1 << index,
                Ok(false) => {}
                Err(message) => return Err(Undefined { state: index, message, limit: false }),
            }
        }
        Ok(word)
    }
}

/// A predicate over the states of a model.
pub fn predicate<S: Pack + 'static>(holds: impl Fn(&S) -> bool + Send + Sync + 'static) -> Box<dyn Predicate> {
    Box::new(Closure { holds, state: PhantomData })
}
