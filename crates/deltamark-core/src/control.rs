//! What steers a run from outside, and what it tells while it goes on.
//!
//! In: limits, a cancel flag, a listener. Out: [`Event`]s that a front end of any kind
//! can show. What stays true: a run looks at its limits at least every few thousand
//! states, and telling costs nothing when nobody listens.

use crate::{Budget, Bytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// When to give up.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The most bytes the process may hold.
    pub memory: Option<u64>,
    /// The longest the search may take.
    pub time: Option<Duration>,
    /// The most states to find.
    pub states: Option<u64>,
    /// The largest distance from an initial state to look at.
    pub depth: Option<u64>,
}

/// A flag by which a run can be asked to stop, from a signal handler for instance.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// A flag that counts as well.
    above: Option<Arc<Cancel>>,
}

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the run to stop soon.
    pub fn cancel(&self) {
        self.flag.store(true, Relaxed);
    }

    /// A flag for a part of the run: it is set when this one is set, and can be set by itself.
    pub fn below(&self) -> Self {
        Cancel { flag: Arc::default(), above: Some(Arc::new(self.clone())) }
    }

    /// Whether the run was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Relaxed) || self.above.as_ref().is_some_and(|above| above.is_cancelled())
    }
}

/// How far a run has come.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// States found.
    pub states: u64,
    /// Edges seen.
    pub edges: u64,
    /// States found but not expanded.
    pub frontier: u64,
    /// The present distance from the initial states.
    pub depth: u64,
    /// What the store holds, by part.
    pub store_bytes: Bytes,
    /// What the frontier holds.
    pub frontier_bytes: u64,
    /// What the process holds, where that is known.
    pub resident_bytes: Option<u64>,
    /// Time since the search began.
    pub elapsed: Duration,
}

/// What a run tells.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The run goes on. Sent several times a second.
    Progress(&'a Snapshot),
    /// The system changed its layout: why.
    Widened(&'a str),
    /// A property got its answer: its name and the word for it.
    Answered(&'a str, &'static str),
}

/// Whoever wants to be told.
pub trait Listener: Send + Sync {
    /// Takes an event. Called from the search's own threads: be quick.
    fn event(&self, event: &Event<'_>);
}

/// A listener that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Listener for Silent {
    fn event(&self, _event: &Event<'_>) {}
}

/// All that steers a run.
#[derive(Clone)]
pub struct Control {
    /// When to give up.
    pub limits: Limits,
    /// How to be asked to stop.
    pub cancel: Cancel,
    /// Who is told.
    pub listener: Arc<dyn Listener>,
    /// Where large memory is asked for.
    pub budget: Arc<Budget>,
    /// Tells what the process holds. This crate does no input or output, so the front
    /// end brings the function that asks the operating system.
    pub resident: fn() -> Option<u64>,
}

impl Control {
    /// No limits, nobody listening.
    pub fn new() -> Self {
        Control {
            limits: Limits::default(),
            cancel: Cancel::new(),
            listener: Arc::new(Silent),
            budget: Arc::new(Budget::unlimited()),
            resident: || None,
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}
