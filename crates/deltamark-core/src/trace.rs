//! A path through the state space, or a path into a cycle.
//!
//! In: an initial state's number and actions, from a search. Out: the states on the
//! way, by replay. What stays true: a trace holds no states, so whoever shows one has
//! replayed it through the system, from the initial state, first; and a replay of a
//! lasso has compared the states at both ends of its cycle.
//!
//! ```text
//! path     s0 ─a0─▶ s1 ─a1─▶ s2 ─a2─▶ s3              Ending::State
//! fault    s0 ─a0─▶ s1 ─a1─▶ s2 ─a2─▶ ✗               Ending::Fault
//! lasso    s0 ─a0─▶ s1 ─a1─▶ s2 ─a2─▶ s3 = s1         Ending::Cycle(1): a1, a2 repeat for ever
//! ```

use crate::{Action, Batch, Fired, Scratch, Slot, Stop, System, Widen};
use std::fmt;

/// A path: which initial state it starts in, the actions that follow, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The index of the initial state among the system's initial states.
    pub initial: u32,
    /// The actions, first to last.
    pub actions: Vec<Action>,
    /// How it ends.
    pub ending: Ending,
}

/// How a trace ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// In a state.
    #[default]
    State,
    /// The last action is the one that the model declares wrong, so that it leads to no state.
    Fault,
    /// In the state that the path is in after this number of steps: what follows from there on is a
    /// cycle of at least one step. Such a trace is called a lasso.
    Cycle(usize),
}

/// Why a trace could not be replayed: always a bug of Deltamark or of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// There is no initial state with that index.
    NoSuchInitial(u32),
    /// The action of this step (from 0) is not enabled there.
    Disabled(usize),
    /// This step should be a fault and is not, or vice versa.
    FaultExpected(usize),
    /// The cycle is said to begin after this number of steps, and no step follows.
    NoCycle(usize),
    /// The last state is another one than that after this number of steps, where the cycle is said to begin.
    Open(usize),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::NoSuchInitial(number) => {
                write!(f, "the trace starts in initial state {number}, which does not exist")
            }
            ReplayError::Disabled(step) => write!(f, "step {} of the trace cannot happen", step + 1),
            ReplayError::FaultExpected(step) => write!(f, "step {} of the trace ends differently", step + 1),
            ReplayError::NoCycle(start) => {
                write!(f, "the cycle of the trace begins after step {start}, and no step follows")
            }
            ReplayError::Open(start) => {
                write!(f, "the trace does not return to the state after step {start}, where its cycle begins")
            }
        }
    }
}

impl std::error::Error for ReplayError {}

/// A trace with its states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The states, one more than steps (as many as steps if the last is a fault).
    pub states: Vec<Vec<Slot>>,
    /// The actions, first to last.
    pub actions: Vec<Action>,
    /// The model's message for the last action, if that is a fault.
    pub fault: Option<String>,
    /// The place, among the states, of the one that a lasso returns to.
    pub cycle: Option<usize>,
}

/// Whoever looks at the states of a replay, each with its place, and may end it.
type Watch<'a> = dyn FnMut(usize, &[Slot]) -> Result<(), Stop> + 'a;

impl Trace {
    /// A path that ends in a state.
    pub fn path(initial: u32, actions: Vec<Action>) -> Self {
        Trace { initial, actions, ending: Ending::State }
    }

    /// A path whose last state is the one after `start` steps.
    pub fn lasso(initial: u32, actions: Vec<Action>, start: usize) -> Self {
        Trace { initial, actions, ending: Ending::Cycle(start) }
    }

    /// The same path and one step more, which is a fault.
    #[must_use]
    pub fn with_fault(mut self, action: Action) -> Self {
        self.actions.push(action);
        self.ending = Ending::Fault;
        self
    }

    /// After how many steps the cycle begins, if it is a lasso.
    pub fn cycle(&self) -> Option<usize> {
        match self.ending {
            Ending::Cycle(start) => Some(start),
            Ending::State | Ending::Fault => None,
        }
    }

    /// Whether the last action is a fault.
    pub fn ends_in_fault(&self) -> bool {
        self.ending == Ending::Fault
    }

    /// How many steps it has.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether it consists of an initial state only.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Replays the trace through the system and returns its states.
    pub fn replay(&self, system: &dyn System) -> Result<Replay, ReplayError> {
        let mut states: Vec<Vec<Slot>> = Vec::new();
        let fault = self.follow(system, |step, state| {
            // A layout that had to widen voids the states met so far.
            states.truncate(step);
            states.push(state.to_vec());
            Ok(())
        })?;
        let fault = fault.unwrap_or_default();
        Ok(Replay { states, actions: self.actions.clone(), fault, cycle: self.cycle() })
    }

    /// Runs the trace through the system and shows each of its states to `see`, with its number. Where the layout must be widened,
    /// it begins again with number 0, so the states since the last number 0 are of one layout. Gives what the model says of the
    /// last action, if that is a fault; or why `see` had it end.
    pub fn follow(
        &self,
        system: &dyn System,
        mut see: impl FnMut(usize, &[Slot]) -> Result<(), Stop>,
    ) -> Result<Result<Option<String>, Stop>, ReplayError> {
        loop {
            match self.attempt(system, &mut see) {
                Ok(result) => return result,
                Err(Widen) => drop(system.widen()),
            }
        }
    }

    fn attempt(
        &self,
        system: &dyn System,
        see: &mut Watch<'_>,
    ) -> Result<Result<Result<Option<String>, Stop>, ReplayError>, Widen> {
        if let Some(start) = self.cycle().filter(|&start| start >= self.actions.len()) {
            return Ok(Err(ReplayError::NoCycle(start)));
        }
        let mut scratch: Scratch = system.scratch();
        let mut batch = Batch::new(system.width());
        system.initial(&mut scratch, &mut batch)?;
        if self.initial as usize >= batch.len() {
            return Ok(Err(ReplayError::NoSuchInitial(self.initial)));
        }
        let mut state = batch.target(self.initial as usize).to_vec();
        let mut target = Vec::new();
        let mut fault = None;
        // A layout that widens makes this attempt void, so both ends of a cycle are compared in one layout, in which
        // equal states are equal slots.
        let mut returns_to = None;
        if let Err(stop) = see(0, &state) {
            return Ok(Ok(Err(stop)));
        }
        for (step, &action) in self.actions.iter().enumerate() {
            let faulty = self.ends_in_fault() && step + 1 == self.actions.len();
            if self.ending == Ending::Cycle(step) {
                returns_to = Some(state.clone());
            }
            target.clear();
            match system.fire(&mut scratch, &state, action, &mut target)? {
                Fired::Done if faulty => return Ok(Err(ReplayError::FaultExpected(step))),
                Fired::Done => {
                    std::mem::swap(&mut state, &mut target);
                    if let Err(stop) = see(step + 1, &state) {
                        return Ok(Ok(Err(stop)));
                    }
                }
                Fired::Disabled => return Ok(Err(ReplayError::Disabled(step))),
                Fired::Fault(message) if faulty => fault = Some(message),
                Fired::Fault(_) => return Ok(Err(ReplayError::FaultExpected(step))),
            }
        }
        match (self.ending, returns_to) {
            (Ending::Cycle(start), Some(first)) if first != state => Ok(Err(ReplayError::Open(start))),
            (Ending::Fault, _) if fault.is_none() => Ok(Err(ReplayError::FaultExpected(0))),
            _ => Ok(Ok(Ok(fault))),
        }
    }
}
