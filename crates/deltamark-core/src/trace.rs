//! A path through the state space.
//!
//! In: the index of an initial state and actions, from a search. Out: the states on the path, by
//! replay. Invariant: a trace holds no states, so it can only be shown after replaying it through
//! the system from the initial state.

use crate::{Action, Batch, Fired, Scratch, Slot, Stop, System, Widen};
use std::fmt;

/// A path: the index of its initial state, and its actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The index of the initial state among the system's initial states.
    pub initial: u32,
    /// The actions, first to last.
    pub actions: Vec<Action>,
    /// Whether the last action is a fault of the model, which leads to no state.
    pub ends_in_fault: bool,
}

/// Why a trace could not be replayed: always a bug of Deltamark or of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// There is no initial state with that index.
    NoSuchInitial(u32),
    /// The action of this step (from 0) is not enabled there.
    Disabled(usize),
    /// This step should be a fault and is not, or vice versa.
    FaultExpected(usize),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::NoSuchInitial(number) => {
                write!(f, "the trace starts in initial state {number}, which does not exist")
            }
            ReplayError::Disabled(step) => write!(f, "step {} of the trace cannot happen", step + 1),
            ReplayError::FaultExpected(step) => write!(f, "step {} of the trace ends differently", step + 1),
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
}

/// Whoever looks at the states of a replay, each with its place, and may end it.
type Watch<'a> = dyn FnMut(usize, &[Slot]) -> Result<(), Stop> + 'a;

impl Trace {
    /// The number of steps.
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
        Ok(Replay { states, actions: self.actions.clone(), fault: fault.unwrap_or_default() })
    }

    /// Replays the trace through the system and passes each of its states to `see`, with its index.
    /// If the layout must be widened, it restarts at index 0. Returns the model's message for the
    /// last action, if that is a fault; or the reason why `see` ended it.
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
        let mut scratch: Scratch = system.scratch();
        let mut batch = Batch::new(system.width());
        system.initial(&mut scratch, &mut batch)?;
        if self.initial as usize >= batch.len() {
            return Ok(Err(ReplayError::NoSuchInitial(self.initial)));
        }
        let mut state = batch.target(self.initial as usize).to_vec();
        let mut target = Vec::new();
        let mut fault = None;
        if let Err(stop) = see(0, &state) {
            return Ok(Ok(Err(stop)));
        }
        for (step, &action) in self.actions.iter().enumerate() {
            let last = step + 1 == self.actions.len();
            target.clear();
            match system.fire(&mut scratch, &state, action, &mut target)? {
                Fired::Done if last && self.ends_in_fault => return Ok(Err(ReplayError::FaultExpected(step))),
                Fired::Done => {
                    std::mem::swap(&mut state, &mut target);
                    if let Err(stop) = see(step + 1, &state) {
                        return Ok(Ok(Err(stop)));
                    }
                }
                Fired::Disabled => return Ok(Err(ReplayError::Disabled(step))),
                Fired::Fault(message) if last && self.ends_in_fault => fault = Some(message),
                Fired::Fault(_) => return Ok(Err(ReplayError::FaultExpected(step))),
            }
        }
        Ok(Ok(Ok(fault)))
    }
}
