//! What a search returns.
//!
//! In: the findings of a search. Out: verdicts, statistics, and why the run ended. Invariant:
//! "holds" for all states is reported only for a complete run with an exact store; every other
//! verdict states its reliability.

use crate::{Bytes, Guarantee, Trace};
use std::time::Duration;

/// Why a run ended before every reachable state was expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Every property was answered.
    Answered,
    /// The memory limit.
    Memory,
    /// The time limit.
    Time,
    /// The limit on the number of states.
    States,
    /// The limit on the depth.
    Depth,
    /// A count exceeded its range, or an evaluation its bounds.
    Count,
    /// The user requested it.
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

/// The verdict on one property.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// It holds. A reachability goal has a witness, the trace that reaches it.
    Holds(Option<Trace>),
    /// It does not hold. A counterexample shows why, except for a goal that no state reaches. The
    /// message gives the reason if the trace alone does not.
    Violated(Option<Trace>, Option<String>),
    /// No violation was found, but the store may have missed states: with this probability, see
    /// [`Guarantee::Omission`].
    NoViolationFound(f64),
    /// The run ended before a verdict.
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

    /// Its trace.
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Verdict::Holds(trace) | Verdict::Violated(trace, _) => trace.as_ref(),
            Verdict::NoViolationFound(_) | Verdict::Unknown => None,
        }
    }
}

/// A property's name, text and verdict.
#[derive(Clone, Debug)]
pub struct PropertyOutcome {
    /// Its name.
    pub name: String,
    /// The property as the user wrote it.
    pub text: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why a trace could not be found although one exists: memory or time did not suffice, or the
    /// user requested a stop.
    pub untraced: Option<Stop>,
    /// Whether its trace was found by a probe, so that it need not be a shortest one, whatever the search.
    pub probed: bool,
}

/// How often states were expanded again that the store [had forgotten](crate::Store::forgets).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// So often; what else was counted is counted once for each state.
    Counted(u64),
    /// That was not found out: all counts may have states several times.
    Unknown,
}

impl Default for Again {
    fn default() -> Self {
        Again::Counted(0)
    }
}

impl std::ops::Add for Again {
    type Output = Again;

    fn add(self, other: Again) -> Again {
        match (self, other) {
            (Again::Counted(one), Again::Counted(two)) => Again::Counted(one + two),
            _ => Again::Unknown,
        }
    }
}

/// What the search counted.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// States found.
    pub states: u64,
    /// Pairs of an expanded state and an action that leads from it to a state; a fault leads to
    /// none.
    pub edges: u64,
    /// Edges that were counted but skipped, because other states lead to the same targets; those of states that were
    /// expanded [again](Self::again) included.
    pub left_out: u64,
    /// Expanded states without successors.
    pub deadlocks: u64,
    /// The largest distance from an initial state, for breadth-first search; the
    /// longest path that was on the stack, for depth-first search.
    pub depth: u64,
    /// Expanded states. All states, after a complete run.
    pub expanded: u64,
    /// How often states were expanded again.
    pub again: Again,
    /// The number of times the layout was widened.
    pub widenings: u64,
    /// The peak of the bytes of the frontier.
    pub frontier_peak_bytes: u64,
    /// The time the search itself took.
    pub search_time: Duration,
}

/// What a search returns.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The verdicts, in the order the properties were given.
    pub properties: Vec<PropertyOutcome>,
    /// Why the run ended early; `None` if every reachable state was expanded.
    pub stopped_by: Option<Stop>,
    /// What the search counted.
    pub statistics: Statistics,
    /// The bytes of the store at the end, by part.
    pub store_bytes: Bytes,
    /// What verdicts based on the store guarantee.
    pub guarantee: Guarantee,
    /// A reason to doubt that guarantee, if the store knows one.
    pub warning: Option<String>,
}

impl Outcome {
    /// Whether every reachable state was expanded.
    pub fn complete(&self) -> bool {
        self.stopped_by.is_none()
    }

    /// The bytes of the store per state.
    pub fn bytes_per_state(&self) -> f64 {
        self.store_bytes.total() as f64 / self.statistics.states.max(1) as f64
    }
}
