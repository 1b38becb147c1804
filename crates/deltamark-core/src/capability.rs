//! What a system may be able to do beyond running.
//!
//! In: nothing. Out: one small trait a capability; [`System`] hands them
//! out as options, so that a search or a store can ask and say clearly what it misses.

use crate::{Action, Batch, Block, Scratch, Slot, States, System, Width};

/// Steps can be undone.
pub trait Reversible: System {
    /// Writes to `source` the one state from which `action` leads to `target`, and says
    /// whether there is one that the layout in use can hold. One that does not fit
    /// cannot be in any store, so for confirming a visit it does not exist.
    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool;

    /// Appends every (action, source) that leads to `target`: the batch's targets are
    /// the sources. Sources need not be reachable.
    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch);

    /// Undoes in each of `targets`, whose hashes are given, the action of the same number,
    /// and appends those sources that there are, in order. Worth overriding: stores that keep
    /// no states check with it whether they know one.
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

/// Sources found by undoing steps.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The sources.
    pub states: States,
    /// The hash of each.
    pub hashes: Vec<u64>,
    /// The number of the target each comes from, ascending.
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

/// Actions whose numbers are given as they come, and differ from run to run, can be carried over to another run of the same
/// model. Systems that number an action alike in every run need nothing of the kind.
pub trait Portable {
    /// What an action is, in bytes that mean the same in every run.
    fn carry(&self, action: Action) -> Vec<u8>;

    /// The number of the action that these bytes stand for, which it gets now unless it has one. Nothing, if they stand for
    /// none; whatever the bytes are.
    fn receive(&self, bytes: &[u8]) -> Option<Action>;
}

/// States fall into components (a process, a channel, a group of places).
pub trait Components {
    /// Appends the slot indices at which a component of `state` begins, ascending; the
    /// first is 0 and all are below the state's length.
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>);
}

/// A value in the modeller's words.
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

/// What grows in a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// What grows, as a sentence without a full stop.
    pub sentence: String,
    /// Whether it is proved that there is no end to it, so that no limit is large enough.
    pub proved: bool,
}

/// States and actions in the modeller's words.
pub trait Describe {
    /// The state's variables and values, in the order of the model. What is at rest
    /// (an empty place) may be left out.
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)>;

    /// The value of a variable that [`state`](Self::state) leaves out.
    fn rest(&self) -> Value {
        Value::Int(0)
    }

    /// What grows without end, or seems to, for the report of a run that ended early.
    fn growth(&self) -> Option<Growth> {
        None
    }

    /// The action's name, as it happens in `source`.
    fn action(&self, source: &[Slot], action: Action) -> String;
}

/// What kind of value an [`Observable`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An integer.
    Int,
    /// A truth value, read as 0 or 1.
    Bool,
}

/// Something about a state that a property can speak of: the count of a place, the
/// value of a variable, whether a transition can fire. The number is the system's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Observable {
    /// The system's own number for it.
    pub index: u32,
    /// The kind of its values.
    pub kind: Kind,
}

/// What properties may speak of.
pub trait Observe {
    /// The observable of this name.
    fn resolve(&self, name: &str) -> Option<Observable>;

    /// Whether the transition of this name can fire, as an observable.
    fn fireable(&self, name: &str) -> Option<Observable>;

    /// The names by which the things are known that the model's file calls by this one name, if it does so with several: whoever
    /// says the name must be asked which is meant.
    fn namesakes(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// The same for transitions.
    fn action_namesakes(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// The names [`resolve`](Self::resolve) knows, for suggestions and reports.
    fn names(&self) -> Vec<String>;

    /// The names [`fireable`](Self::fireable) knows, for suggestions and reports.
    fn action_names(&self) -> Vec<String>;

    /// Whether several actions may have one name: the bindings of a transition. Actions then need not be numbered
    /// beforehand.
    fn groups_actions(&self) -> bool {
        false
    }

    /// The number of an action's name among [`action_names`](Self::action_names), where actions are
    /// [grouped](Self::groups_actions) or there are as many of them as names.
    fn name_of_action(&self, action: Action) -> usize {
        action.0 as usize
    }

    /// Its value in one state. A truth value that cannot be computed there is [`UNDEFINED`].
    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64;

    /// Why a truth value is [`UNDEFINED`] in a state, in a sentence without a full stop.
    fn why_undefined(&self, _scratch: &mut Scratch, _state: &[Slot], _observable: Observable) -> String {
        "it has no value".into()
    }

    /// Its values in all states of a block, written to the first places of `out`.
    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; crate::BLOCK]) {
        for (state, value) in block.states().iter().zip(out) {
            *value = self.read(scratch, state, observable);
        }
    }

    /// Widens `bounds[i]` to the values of `observables[i]` in all states of a block, for
    /// each `i`, and says what the values of all observables come to in the state where that
    /// is most. The block holds at least one state. Worth overriding where many values can be
    /// looked at together: a survey calls this for every block.
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

/// What [`Observe::read`] gives for a truth value that has no value in a state.
pub const UNDEFINED: i64 = i64::MIN;

/// The least and the largest value something had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The least value.
    pub least: i64,
    /// The largest value.
    pub most: i64,
}

impl Bound {
    /// The bound of no value: less than the least, more than the largest.
    pub const NONE: Bound = Bound { least: i64::MAX, most: i64::MIN };

    /// Takes this value in.
    #[inline]
    pub fn widen(&mut self, value: i64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }
}
