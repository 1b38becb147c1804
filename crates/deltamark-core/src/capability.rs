//! Optional capabilities of a system.
//!
//! In: nothing. Out: one small trait per capability; [`System`] returns them as options, so a
//! search or a store can query them and report precisely what is missing.

use crate::{Action, Batch, Block, Diagnostic, Scratch, Slot, States, System, Width};

/// Actions can be undone.
pub trait Reversible: System {
    /// Writes to `source` the unique state from which `action` leads to `target`, and returns
    /// whether it exists and fits the current layout. A state that does not fit cannot be in any
    /// store, so for confirming a visit it does not exist.
    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool;

    /// Appends every (action, source) that leads to `target`: the batch's targets are
    /// the sources. Sources need not be reachable.
    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch);

    /// Undoes, in each of `targets`, whose hashes are given, the action of the same index, and
    /// appends the sources that exist, in order. Override it for speed: stores without state
    /// vectors confirm visits with it.
    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        debug_assert!(targets.len() == hashes.len() && targets.len() == actions.len());
        let mut source = Vec::new();
        for (number, (target, &action)) in targets.iter().zip(actions).enumerate() {
            if self.unfire(scratch, target, action, &mut source) {
                out.states.push(&source);
                out.hashes.push(self.hash(scratch, &source));
                out.from.push(number as u32);
            }
        }
    }
}

/// Which actions can be exchanged, for systems that number actions while they run and so cannot state
/// [facts](crate::Facts) about all of them.
pub trait Exchange {
    /// Whether, wherever `a` leads from `p` to `s` and `b` from `s` to `t`, `b` leads from `p` to a state from which `a` leads to
    /// `t`. Both were found before. `false` if that is not known.
    fn exchangeable(&self, a: Action, b: Action) -> bool;
}

/// Sources found by undoing actions.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The sources.
    pub states: States,
    /// The hash of each.
    pub hashes: Vec<u64>,
    /// The index of the target of each, ascending.
    pub from: Vec<u32>,
}

impl Undone {
    /// An empty list for states of this width.
    pub fn new(width: Width) -> Self {
        Undone { states: States::new(width), hashes: Vec::new(), from: Vec::new() }
    }

    /// Empties the list, keeping its memory, for states of this width.
    pub fn reset(&mut self, width: Width) {
        self.states.reset(width);
        self.hashes.clear();
        self.from.clear();
    }
}

/// States consist of components (a process, a channel, a group of places).
pub trait Components {
    /// Appends the slot indices at which a component of `state` begins, ascending; the first is 0
    /// and all are less than the state's length.
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>);
}

/// A value in the terms of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Int(i64),
    /// Anything else.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// Unbounded growth in a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// What grows, as a sentence without a full stop.
    pub sentence: String,
    /// Whether unboundedness is proved, so that no limit is large enough.
    pub proved: bool,
}

/// States and actions in the terms of the model.
pub trait Describe {
    /// The state's variables and values, in the order of the model. Default values (an empty place)
    /// may be omitted.
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)>;

    /// The value of a variable that [`state`](Self::state) omits.
    fn rest(&self) -> Value {
        Value::Int(0)
    }

    /// Proved or apparent unbounded growth, for the report of a run that ended early.
    fn growth(&self) -> Option<Growth> {
        None
    }

    /// The name of the action in `source`.
    fn action(&self, source: &[Slot], action: Action) -> String;
}

/// The type of an [`Observable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObservableKind {
    /// An integer.
    Int,
    /// A truth value, read as 0 or 1.
    Bool,
}

/// A term over states that a property can refer to: the count of a place, the value of a variable,
/// whether a transition is enabled. The number is assigned by the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Observable {
    /// The number that the system assigned.
    pub index: u32,
    /// The kind of its values.
    pub kind: ObservableKind,
}

/// The observables that properties can refer to.
pub trait Observe {
    /// The observable of this name.
    fn resolve(&self, name: &str) -> Option<Observable>;

    /// The text as an expression of the model's own language, as an observable, or what is wrong with it; `None` if the
    /// text is none. [`resolve`](Self::resolve) takes it as a name.
    fn own_expression(&self, _text: &str) -> Option<Result<Observable, Vec<Diagnostic>>> {
        None
    }

    /// Whether the transition of this name is enabled, as an observable.
    fn fireable(&self, name: &str) -> Option<Observable>;

    /// The observable of this id in the model's file. Where the format has no ids, names are ids.
    fn resolve_id(&self, id: &str) -> Option<Observable> {
        self.resolve(id)
    }

    /// Whether the transition of this id in the model's file is enabled, as an observable.
    fn fireable_id(&self, id: &str) -> Option<Observable> {
        self.fireable(id)
    }

    /// If the model's file uses this name for several things, the unambiguous names of each; a
    /// property that uses the name is refused.
    fn namesakes(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// The same for transitions.
    fn action_namesakes(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// The names that [`resolve`](Self::resolve) accepts, for suggestions and reports.
    fn names(&self) -> Vec<String>;

    /// The names that [`fireable`](Self::fireable) accepts, for suggestions and reports.
    fn action_names(&self) -> Vec<String>;

    /// Whether several actions may share one name, as the bindings of a transition do. Actions then
    /// need not be numbered in advance.
    fn groups_actions(&self) -> bool {
        false
    }

    /// The index of an action's name among [`action_names`](Self::action_names), if actions are
    /// [grouped](Self::groups_actions) or correspond to names one to one.
    fn name_of_action(&self, action: Action) -> usize {
        action.0 as usize
    }

    /// Its value in one state. One that cannot be computed there is [`UNDEFINED`], which is no other value.
    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64;

    /// Why a value is [`UNDEFINED`] in a state.
    fn why_undefined(&self, _scratch: &mut Scratch, _state: &[Slot], _observable: Observable) -> NoValue {
        NoValue { message: "it has no value".into(), limit: false }
    }

    /// Its values in all states of a block, written to the start of `out`.
    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; crate::BLOCK]) {
        for (state, value) in block.states().iter().zip(out) {
            *value = self.read(scratch, state, observable);
        }
    }

    /// Extends `bounds[i]` to the values of `observables[i]` in all states of a block, for each
    /// `i`, and returns the maximum over the states of the sum of all observables. The block holds
    /// at least one state. Override it if many values can be read together: a survey calls this for
    /// every block.
    fn survey_block(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        observables: &[Observable],
        bounds: &mut [Bound],
    ) -> i64 {
        let read = |observable, values: &mut _| self.read_block(scratch, block, observable, values);
        survey_by_reading(block.len(), observables, bounds, read)
    }
}

/// [`Observe::survey_block`] by `read`, which writes the values of one observable in the `states` states of the block.
pub fn survey_by_reading(
    states: usize,
    observables: &[Observable],
    bounds: &mut [Bound],
    mut read: impl FnMut(Observable, &mut [i64; crate::BLOCK]),
) -> i64 {
    let mut sums = [0i64; crate::BLOCK];
    let mut values = [0; crate::BLOCK];
    for (observable, bound) in observables.iter().zip(bounds) {
        read(*observable, &mut values);
        for (&value, sum) in values[..states].iter().zip(&mut sums) {
            bound.widen(value);
            *sum = sum.saturating_add(value);
        }
    }
    sums[..states].iter().copied().max().unwrap_or(0)
}

/// Why a truth value is [`UNDEFINED`] in a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoValue {
    /// The reason, as a sentence without a full stop.
    pub message: String,
    /// Whether a bound of the evaluation is the reason, so that the value is unknown rather than absent.
    pub limit: bool,
}

/// Returned by [`Observe::read`] for a value that is undefined in a state.
pub const UNDEFINED: i64 = i64::MIN;

/// The minimum and maximum of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The least value.
    pub least: i64,
    /// The largest value.
    pub most: i64,
}

impl Bound {
    /// The empty bound: minimum above maximum.
    pub const NONE: Bound = Bound { least: i64::MAX, most: i64::MIN };

    /// Extends the bound to this value.
    #[inline]
    pub fn widen(&mut self, value: i64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }
}
