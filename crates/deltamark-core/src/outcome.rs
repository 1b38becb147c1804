//! What a search returns.
//!
//! In: what the search found. Out: verdicts, statistics, and why the run ended. What
//! stays true: "holds" for all states is said only of a complete run with an exact
//! store; everything else says what it is worth.

use crate::{Bytes, Guarantee, Trace};
use std::time::Duration;

/// Why a run ended before every reachable state was expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Every property had its answer.
    Answered,
    /// The memory limit.
    Memory,
    /// The time limit.
    Time,
    /// The limit on the number of states.
    States,
    /// The limit on the depth.
    Depth,
    /// A count grew beyond what the system counts.
    Count,
    /// The user asked to stop.
    Cancelled,
}

impl Stop {
    /// The word for reports: `stopped_by` in the JSON contract.
    pub fn word(self) -> &'static str {
        match self {
            Stop::Answered => "answered",
            Stop::Memory => "memory",
            Stop::Time => "time",
            Stop::States => "states",
            Stop::Depth => "depth",
            Stop::Count => "count",
            Stop::Cancelled => "cancelled",
        }
    }
}

/// The answer to one property.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// It holds. A reachability goal comes with the trace that reaches it.
    Holds(Option<Trace>),
    /// It does not hold. A trace shows why, except for a goal that no state reaches.
    /// The message says what went wrong where the trace alone does not.
    Violated(Option<Trace>, Option<String>),
    /// Nothing speaks against it, but the store may have missed states: with this
    /// probability, see [`Guarantee::Omission`].
    NoViolationFound(f64),
    /// The run ended too early to tell.
    Unknown,
}

impl Verdict {
    /// The word for reports: `verdict` in the JSON contract.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Holds(_) => "holds",
            Verdict::Violated(..) => "violated",
            Verdict::NoViolationFound(_) => "no violation found",
            Verdict::Unknown => "unknown",
        }
    }

    /// The trace that comes with it.
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Verdict::Holds(trace) | Verdict::Violated(trace, _) => trace.as_ref(),
            Verdict::NoViolationFound(_) | Verdict::Unknown => None,
        }
    }
}

/// A property's name, text and answer.
#[derive(Clone, Debug)]
pub struct PropertyOutcome {
    /// Its name.
    pub name: String,
    /// The property as the user wrote it.
    pub text: String,
    /// The answer.
    pub verdict: Verdict,
    /// Why the answer has no trace, where one was to be found: memory or time did not suffice, or the user asked to stop.
    pub untraced: Option<Stop>,
}

/// What the search counted.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// States found.
    pub states: u64,
    /// Pairs of an expanded state and an action that leads from it to a state; a fault
    /// leads to none.
    pub edges: u64,
    /// Edges among these that were counted and not followed, because other states were known
    /// to lead to the same ones.
    pub left_out: u64,
    /// Expanded states without successors.
    pub deadlocks: u64,
    /// The largest distance from an initial state, for breadth-first search; the
    /// longest path that was on the stack, for depth-first search.
    pub depth: u64,
    /// States that were expanded. All of them, after a complete run.
    pub expanded: u64,
    /// How often the layout was widened.
    pub widenings: u64,
    /// The most bytes the frontier held.
    pub frontier_peak_bytes: u64,
    /// The time the search itself took.
    pub search_time: Duration,
}

/// What a search returns.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The answers, in the order the properties were given.
    pub properties: Vec<PropertyOutcome>,
    /// Why the run ended early; nothing when every reachable state was expanded.
    pub stopped_by: Option<Stop>,
    /// What the search counted.
    pub statistics: Statistics,
    /// What the store held at the end, by part.
    pub store_bytes: Bytes,
    /// What answers that rest on the store are worth.
    pub guarantee: Guarantee,
    /// What makes them worth less than that, if the store knows of anything.
    pub warning: Option<String>,
}

impl Outcome {
    /// Whether every reachable state was expanded.
    pub fn complete(&self) -> bool {
        self.stopped_by.is_none()
    }

    /// What the store held per state.
    pub fn bytes_per_state(&self) -> f64 {
        self.store_bytes.total() as f64 / self.statistics.states.max(1) as f64
    }
}
