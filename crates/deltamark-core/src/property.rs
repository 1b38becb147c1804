//! Properties of a system.
//!
//! In: predicates over states. Out: [`Property`], a named goal that a search decides.

use crate::{Block, Formula, Scratch, System};

/// A state predicate, evaluated for a block at a time.
pub trait Predicate: Send + Sync {
    /// A word with a bit for each state of the block that satisfies the predicate. `dead` has a bit
    /// for each state without successors. An error gives the reason why the predicate is undefined
    /// (a division by zero, for example) and the state of the block.
    fn evaluate(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, dead: u64) -> Result<u64, Undefined>;

    /// What a state must satisfy for the predicate to be true in it, or not to be true, as `wanted` says; having no
    /// value counts as both. `None` if it cannot say, so that no [reduction](crate::stubborn) can keep it.
    fn formula(&self, _wanted: bool) -> Option<Formula> {
        None
    }
}

/// A predicate is undefined in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The index of the state in the block.
    pub state: usize,
    /// The reason, in a sentence.
    pub message: String,
    /// Whether a bound of the evaluation is the reason: the predicate may have a value there, which
    /// stays unknown.
    pub limit: bool,
}

/// What a property asks for.
#[non_exhaustive]
pub enum Goal {
    /// Every reachable state has a successor.
    DeadlockFree,
    /// No reachable step is declared wrong by the model.
    FaultFree,
    /// The predicate is true in every reachable state.
    Invariant(Box<dyn Predicate>),
    /// The predicate is true in some reachable state.
    Reachable(Box<dyn Predicate>),
}

impl Goal {
    /// The word for reports: `kind` in the JSON contract.
    pub fn word(&self) -> &'static str {
        match self {
            Goal::DeadlockFree => "deadlock-free",
            Goal::FaultFree => "fault-free",
            Goal::Invariant(_) => "invariant",
            Goal::Reachable(_) => "reachable",
        }
    }
}

/// A named question about a system.
pub struct Property {
    /// A short name for reports.
    pub name: String,
    /// The property as the user wrote it.
    pub text: String,
    /// What it requires.
    pub goal: Goal,
}

impl Property {
    /// The property that every reachable state has a successor.
    pub fn deadlock_free() -> Self {
        Property {
            name: "deadlock-free".into(),
            text: "no reachable state is a deadlock".into(),
            goal: Goal::DeadlockFree,
        }
    }

    /// The property that no reachable step is declared wrong by the model.
    pub fn fault_free() -> Self {
        Property {
            name: "fault-free".into(),
            text: "no reachable step is a fault of the model".into(),
            goal: Goal::FaultFree,
        }
    }
}
