//! Models written in Rust: states are ordinary structs and enums, steps are methods.
//!
//! In: a [`Model`], and what is asked of it. Out: a [`ModelSystem`] that every search
//! and every store takes, or a [`ModelReport`] with decoded states.
//! What stays true: an action's number is its place in the list that
//! [`Model::actions`] gives for the source state, disabled ones included; a step that
//! faults, panics, or gives a state that does not fit its bits is a fault of the model
//! with a trace, never a lost state. (Rust's panic hook still prints a panic when it
//! happens; a program built with `panic = "abort"` ends there.)

use crate::check::{Check, CheckError};
use crate::ends::FinalStates;
use crate::pack::{self, Pack, Packer};
use crate::report::Report;
use deltamark_core::portable::{read_slots, write_slots};
use deltamark_core::property::Undefined;
use deltamark_core::varint::Reader;
use deltamark_core::{
    Action, Batch, Block, Cancel, Describe, Fired, Goal, Limits, Listener, Misread, Portable, Predicate, Property,
    ReplayError, Scratch, Slot, System, Value, Verdict, Widen, Width,
};
use deltamark_search::Search;
use deltamark_store::{SpecError, StoreSpec};
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// A model: where it starts, what can happen, and what then becomes of the state.
///
/// All three methods depend on their arguments alone: called again, they give the same.
pub trait Model: Send + Sync {
    /// A state: `#[derive(Clone, Debug, Pack)]`.
    type State: Pack + Clone;
    /// What can happen. Traces show it by its `Debug`.
    type Action: Debug;

    /// The initial states, at least one.
    fn initial(&self) -> Vec<Self::State>;

    /// Appends what might happen in `state`. Listing too much does no harm:
    /// [`next`](Self::next) may say that an action is disabled.
    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>);

    /// Changes `state`, a copy of the source, to what it is after `action`.
    fn next(&self, state: &mut Self::State, action: Self::Action) -> Step;
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
    /// The limits cannot be kept.
    Limit(CheckError),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::NoInitial => f.write_str("the model has no initial state"),
            ModelError::Initial(number, why) => write!(f, "initial state {number} cannot be packed: {why}"),
            ModelError::Store(error) => fmt::Display::fmt(error, f),
            ModelError::Limit(error) => fmt::Display::fmt(error, f),
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

    fn listed(&self, state: &M::State) -> Vec<M::Action> {
        let mut actions = Vec::new();
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
        Scratch::new(Packer::new())
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
        // Where even listing the actions fails, the state is at fault and no action is.
        let listed = guarded(|| self.listed(&source)).unwrap_or_default();
        let Some(action) = listed.into_iter().nth(action.0 as usize) else {
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

/// The most slots of a state that is read.
const MOST_SLOTS: usize = 1 << 24;

impl<M: Model> Describe for ModelSystem<M> {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        pack::unpack::<M::State>(state).fields()
    }

    fn action(&self, source: &[Slot], action: Action) -> String {
        let source: M::State = pack::unpack(source);
        let listed = guarded(|| self.listed(&source)).unwrap_or_default();
        listed.get(action.0 as usize).map_or_else(|| format!("action {}", action.0), |action| format!("{action:?}"))
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
                Err(message) => return Err(Undefined { state: index, message }),
            }
        }
        Ok(word)
    }
}

/// A predicate over the states of a model.
pub fn predicate<S: Pack + 'static>(holds: impl Fn(&S) -> bool + Send + Sync + 'static) -> Box<dyn Predicate> {
    Box::new(Closure { holds, state: PhantomData })
}

/// Starts a check of a model: say what is asked, then [`run`](ModelCheck::run).
pub fn check<M: Model>(model: M) -> ModelCheck<M> {
    ModelCheck {
        model,
        properties: Vec::new(),
        finals: Vec::new(),
        store: StoreSpec::default().name,
        search: Search::default(),
        threads: None,
        explore_all: false,
        limits: Limits::default(),
        cancel: Cancel::new(),
        listener: Arc::new(deltamark_core::Silent),
    }
}

/// A model and what is asked of it. Made by [`check`].
///
/// Whatever else is asked, the model is checked for faults too, because a step that
/// faults leads to no state and could hide others. With nothing asked, it is checked
/// for deadlocks and faults.
#[must_use = "nothing happens before `run`"]
pub struct ModelCheck<M> {
    model: M,
    properties: Vec<Property>,
    finals: Vec<FinalStates>,
    store: String,
    search: Search,
    threads: Option<usize>,
    explore_all: bool,
    limits: Limits,
    cancel: Cancel,
    listener: Arc<dyn Listener>,
}

impl<M: Model> ModelCheck<M>
where
    M::State: 'static,
{
    /// Asks that `holds` is true in every reachable state.
    pub fn invariant(self, name: &str, holds: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        self.property(name, Goal::Invariant(predicate(holds)))
    }

    /// Asks that `holds` is true in some reachable state.
    pub fn reachable(self, name: &str, holds: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        self.property(name, Goal::Reachable(predicate(holds)))
    }

    /// Asks that every reachable state has a successor. Its name is `deadlock-free`.
    pub fn deadlock_free(mut self) -> Self {
        self.properties.push(Property::deadlock_free());
        self
    }

    /// Says that a run may end in states for which `is_final` is true: a deadlock there does not violate deadlock freedom. Several
    /// say so each.
    pub fn ends_in(mut self, is_final: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        self.finals.push(FinalStates { text: "it is final".into(), predicate: predicate(is_final) });
        self
    }

    fn property(mut self, name: &str, goal: Goal) -> Self {
        self.properties.push(Property { name: name.into(), text: name.into(), goal });
        self
    }

    /// Uses this store, by its name on the command line, with options if need be:
    /// `NAME[:option=value,…]`. `auto` unless said otherwise, which chooses one.
    pub fn store(mut self, spec: &str) -> Self {
        self.store = spec.into();
        self
    }

    /// Uses this search; breadth-first unless said otherwise. A sweep needs a progress measure, which Rust code has none of:
    ///
    /// ```compile_fail
    /// # use deltamark::search::Strategy;
    /// # fn sweep(check: deltamark::ModelCheck<impl deltamark::Model>) {
    /// check.search(Strategy::Sweep).run();
    /// # }
    /// ```
    pub fn search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// Searches with so many threads; with as many as the machine runs at once unless said
    /// otherwise, where store and search allow it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Goes on when every property has its answer, so that the counts are of the whole
    /// state space.
    pub fn explore_all(mut self) -> Self {
        self.explore_all = true;
        self
    }

    /// Lets the process hold at most this many bytes; nine tenths of what the machine has
    /// left unless said otherwise.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.limits.memory = Some(bytes);
        self
    }

    /// Stops after this time.
    pub fn time(mut self, time: Duration) -> Self {
        self.limits.time = Some(time);
        self
    }

    /// Stops at this many states.
    pub fn max_states(mut self, states: u64) -> Self {
        self.limits.states = Some(states);
        self
    }

    /// Looks no further than this from the initial states.
    pub fn depth(mut self, depth: u64) -> Self {
        self.limits.depth = Some(depth);
        self
    }

    /// Stops when this flag is set.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Tells this listener how the run goes.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Runs the check.
    pub fn run(mut self) -> Result<ModelReport<M>, ModelError> {
        if self.properties.is_empty() {
            self.properties.push(Property::deadlock_free());
        }
        self.properties.push(Property::fault_free());
        for (index, property) in self.properties.iter().enumerate() {
            if self.properties[..index].iter().any(|earlier| earlier.name == property.name) {
                return Err(ModelError::SameName(property.name.clone()));
            }
        }
        let spec: StoreSpec = self.store.parse().map_err(ModelError::Store)?;
        // Final states are of no concern to whoever does not ask for deadlock freedom.
        if !self.properties.iter().any(|property| matches!(property.goal, Goal::DeadlockFree)) {
            self.finals.clear();
        }
        let system = ModelSystem::new(self.model)?;
        let mut check = Check::new(&system);
        (check.properties, check.finals, check.threads) = (self.properties, self.finals, self.threads);
        let check = check.store(spec).search(self.search).explore_all(self.explore_all);
        let check = check.limits(self.limits).cancel(self.cancel).listener(self.listener);
        let report = check.make(None).map_err(|error| match error {
            CheckError::Store(error) => ModelError::Store(error),
            error => ModelError::Limit(error),
        })?;
        Ok(ModelReport { system, report })
    }
}

/// What came out of a check of a model.
pub struct ModelReport<M: Model> {
    system: ModelSystem<M>,
    report: Report,
}

impl<M: Model> ModelReport<M> {
    /// Whether every property holds.
    pub fn holds(&self) -> bool {
        self.report.answers.iter().all(|answer| matches!(answer.verdict, Verdict::Holds(_)))
    }

    /// Panics with the whole report unless every property holds: for tests.
    ///
    /// # Panics
    /// When a property does not hold, or could not be decided.
    #[track_caller]
    pub fn assert_holds(&self) {
        assert!(self.holds(), "\n{self}");
    }

    /// The store that states were kept in.
    pub fn store(&self) -> &StoreSpec {
        &self.report.store
    }

    /// How many states were found.
    pub fn states(&self) -> u64 {
        self.report.statistics.states
    }

    /// How many pairs of an expanded state and an action that can happen in it.
    pub fn edges(&self) -> u64 {
        self.report.statistics.edges
    }

    /// How many expanded states have no successor.
    pub fn deadlocks(&self) -> u64 {
        self.report.statistics.deadlocks
    }

    /// The largest distance from an initial state, for breadth-first search.
    pub fn depth(&self) -> u64 {
        self.report.statistics.depth
    }

    /// Whether every reachable state was expanded.
    pub fn complete(&self) -> bool {
        self.report.stopped_by.is_none()
    }

    /// The answer to the property of this name, if there is one.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.report.answers.iter().find(|answer| answer.name == name).map(|answer| &answer.verdict)
    }

    /// The trace that comes with the answer to the property of this name, if there is one.
    pub fn trace(&self, name: &str) -> Option<Path<M::State>> {
        self.path(self.verdict(name)?).ok()?
    }

    /// All that is known of the run: answers, statistics, bytes.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The model as a system, for whoever wants to look further.
    pub fn system(&self) -> &ModelSystem<M> {
        &self.system
    }

    fn path(&self, verdict: &Verdict) -> Result<Option<Path<M::State>>, ReplayError> {
        let Some(trace) = verdict.trace() else { return Ok(None) };
        let replay = trace.replay(&self.system)?;
        let names = replay.actions.iter().zip(&replay.states).map(|(&action, from)| self.system.action(from, action));
        let mut names: Vec<String> = names.collect();
        let cycle = replay.cycle;
        let fault = replay.fault.and_then(|message| Some((names.pop()?, message)));
        let mut states = replay.states.iter().map(|slots| pack::unpack::<M::State>(slots));
        let initial = states.next().expect("a replayed trace has an initial state");
        Ok(Some(Path { initial, steps: names.into_iter().zip(states).collect(), fault, cycle }))
    }
}

impl<M: Model> fmt::Display for ModelReport<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistics = &self.report.statistics;
        write!(f, "{} states, {} edges, depth {}", statistics.states, statistics.edges, statistics.depth)?;
        match self.report.stopped_by {
            None => writeln!(f, ", all explored")?,
            Some(stop) => writeln!(f, ", stopped: {}", stop.word())?,
        }
        for answer in &self.report.answers {
            writeln!(f, "{}: {}", answer.name, answer.verdict.word())?;
            if let Some(message) = answer.message() {
                writeln!(f, "  {message}")?;
            }
            match self.path(&answer.verdict) {
                Ok(Some(path)) => write!(f, "{path}")?,
                Ok(None) => {}
                Err(error) => writeln!(f, "  {error}")?,
            }
        }
        Ok(())
    }
}

impl<M: Model> Debug for ModelReport<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A trace with the model's own states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<S> {
    /// Where it starts.
    pub initial: S,
    /// What happens, and the state after it.
    pub steps: Vec<(String, S)>,
    /// What happens last and what the model says of it, when that is a fault.
    pub fault: Option<(String, String)>,
    /// The number of steps before the cycle, when the last state is the one after these.
    pub cycle: Option<usize>,
}

impl<S> Path<S> {
    /// The state it ends in.
    pub fn last(&self) -> &S {
        self.steps.last().map_or(&self.initial, |(_, state)| state)
    }
}

impl<S: Pack> fmt::Display for Path<S> {
    /// The initial state in full, then each action with what it changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = self.initial.fields();
        write!(f, "  initially")?;
        before.iter().try_for_each(|(name, value)| write!(f, "  {name} = {value}"))?;
        writeln!(f)?;
        for (index, (action, state)) in self.steps.iter().enumerate() {
            let after = state.fields();
            if self.cycle == Some(index) {
                writeln!(f, "       the cycle begins here")?;
            }
            write!(f, "  {:>3}. {action}", index + 1)?;
            for changed in after.iter().filter(|field| !before.contains(field)) {
                write!(f, "  {} = {}", changed.0, changed.1)?;
            }
            writeln!(f)?;
            before = after;
        }
        if let Some((action, message)) = &self.fault {
            writeln!(f, "  {:>3}. {action}  fault: {message}", self.steps.len() + 1)?;
        }
        Ok(())
    }
}
