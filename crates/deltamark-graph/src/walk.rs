//! Walks along a graph, reconstructing the states.
//!
//! In: a graph, its system, and a visitor of the states. Out: every state of the graph, in blocks, each at least
//! once. What stays true: a state is reconstructed by firing along one edge that leads to it, so a walk takes
//! about one step a state where a search takes one an edge, compares nothing and stores nothing.
//!
//! Two orders:
//! * File order (`by_file`): blocks in the order of the file. States that were reached and not shown yet wait in a
//!   window, which is as large as the frontier of the search was. It is the faster one: steps are fired from
//!   neighbours, and blocks are decoded once.
//! * Depth first (`by_depth`): one current state, fired forwards and undone backwards, and a stack of eight bytes an
//!   entry. If a system cannot undo steps, every 64th state of the stack is kept and the others between
//!   are fired again when the walk returns to them: one step for each that is left, on average.
//!
//! [`Walk::run`] uses file order as long as the budget has room for the window, and restarts depth-first when it
//! has not, or when a state has no edge from one before it (which a graph recorded by a search always has).

mod by_depth;
mod by_file;

use crate::graph::Graph;
use crate::meta::FileError;
use deltamark_core::{
    Action, Batch, Block, Control, Event, Fired, Recoding, Scratch, Slot, Snapshot, Stop, System, Widen,
};
use std::fmt;
use std::time::{Duration, Instant};

/// A visitor of states.
pub trait Visitor {
    /// Takes a block of states; their ids are their numbers in the graph, and `ends` has a bit for each that has
    /// no edge. Returns whether to go on. May see a state more than once: after a change of the layout, or when
    /// the walk had to restart.
    ///
    /// # Errors
    /// When the layout must be widened first; the same states are shown again.
    fn visit(&mut self, scratch: &mut Scratch, block: &Block, ends: u64) -> Result<bool, Widen>;

    /// The layout has changed, and states read differently from now on.
    fn widened(&mut self, _recoding: &Recoding) {}
}

/// The order of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// In file order, and depth-first if there is no memory for that.
    #[default]
    Auto,
    /// In the order of the blocks in the file.
    File,
    /// Depth first.
    Depth,
}

impl Way {
    /// All orders.
    pub const ALL: &[Way] = &[Way::Auto, Way::File, Way::Depth];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Way::Auto => "auto",
            Way::File => "file",
            Way::Depth => "depth",
        }
    }
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All states were seen.
    Whole,
    /// The visitor stopped it.
    Enough,
    /// A limit was reached.
    Stopped(Stop),
}

/// Why a walk cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WalkError {
    /// An error in the file.
    File(FileError),
    /// The model cannot take a step that the graph has: they do not belong together.
    Misfit(String),
}

impl From<FileError> for WalkError {
    fn from(error: FileError) -> Self {
        WalkError::File(error)
    }
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalkError::File(error) => error.fmt(f),
            WalkError::Misfit(what) => write!(f, "the graph does not belong to this model: {what}"),
        }
    }
}

impl std::error::Error for WalkError {}

/// Why one order fails.
enum Blocked {
    Error(WalkError),
    /// There is no memory for the waiting states.
    Memory,
    /// A state has no edge from one before it.
    Order,
}

impl From<WalkError> for Blocked {
    fn from(error: WalkError) -> Self {
        Blocked::Error(error)
    }
}

impl From<FileError> for Blocked {
    fn from(error: FileError) -> Self {
        Blocked::Error(error.into())
    }
}

/// How often the listener is called.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// A walk along a graph.
pub struct Walk<'a> {
    graph: &'a Graph,
    system: &'a dyn System,
    /// The system's numbers of the file's actions; `None` if they are the same.
    actions: Option<&'a [Action]>,
    control: &'a Control,
    started: Instant,
    told: Duration,
    seen: u64,
    widenings: u64,
    peak: u64,
}

impl<'a> Walk<'a> {
    /// A walk with the system of the graph. `actions` are its numbers of the file's actions, if these differ from
    /// run to run.
    pub fn new(
        graph: &'a Graph,
        system: &'a dyn System,
        actions: Option<&'a [Action]>,
        control: &'a Control,
    ) -> Result<Self, WalkError> {
        let known = match actions {
            Some(actions) => actions.len() as u64,
            None => system.action_count().map_or(u64::MAX, u64::from),
        };
        if u64::from(graph.meta().actions) > known {
            let what = format!("it has {} actions, the model {known}", graph.meta().actions);
            return Err(WalkError::Misfit(what));
        }
        let started = Instant::now();
        let told = Duration::ZERO;
        Ok(Walk { graph, system, actions, control, started, told, seen: 0, widenings: 0, peak: 0 })
    }

    /// The number of widenings of the layout.
    pub fn widenings(&self) -> u64 {
        self.widenings
    }

    /// The maximum number of bytes held for states.
    pub fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// Shows every state to the visitor.
    pub fn run(&mut self, way: Way, visitor: &mut dyn Visitor) -> Result<Ended, WalkError> {
        if way != Way::Depth {
            match by_file::run(self, visitor) {
                Ok(ended) => return Ok(ended),
                Err(Blocked::Error(error)) => return Err(error),
                Err(Blocked::Memory) if way == Way::File => return Ok(Ended::Stopped(Stop::Memory)),
                Err(Blocked::Memory | Blocked::Order) => self.seen = 0,
            }
        }
        match by_depth::run(self, visitor) {
            Ok(ended) => Ok(ended),
            Err(Blocked::Error(error)) => Err(error),
            Err(Blocked::Memory) => Ok(Ended::Stopped(Stop::Memory)),
            Err(Blocked::Order) => Err(WalkError::Misfit("a state cannot be reached from an initial one".into())),
        }
    }

    #[inline]
    fn action(&self, action: Action) -> Action {
        self.actions.map_or(action, |actions| actions[action.0 as usize])
    }

    /// The initial states, in the current layout.
    fn initial(&mut self, scratch: &mut Scratch) -> Result<Batch, WalkError> {
        let mut batch = Batch::new(self.system.width());
        while self.system.initial(scratch, &mut batch).is_err() {
            drop(self.system.widen());
            self.widenings += 1;
            batch.reset(self.system.width());
        }
        // Equal ones were found once.
        if batch.len() < self.graph.meta().initial.len() {
            return Err(WalkError::Misfit("it has more initial states than the model".into()));
        }
        Ok(batch)
    }

    /// Takes a step that the graph has.
    #[inline]
    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Result<(), Widen>, WalkError> {
        match self.system.fire(scratch, source, self.action(action), target) {
            Ok(Fired::Done) => Ok(Ok(())),
            Ok(Fired::Disabled | Fired::Fault(_)) => Err(WalkError::Misfit("a step cannot be taken".into())),
            Err(Widen) => Ok(Err(Widen)),
        }
    }

    /// Why to stop now, if so. Called once a block.
    fn check(&mut self, block: &Block) -> Option<Stop> {
        self.seen += block.len() as u64;
        if self.control.cancel.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        let elapsed = self.started.elapsed();
        if self.control.limits.time.is_some_and(|limit| elapsed >= limit) {
            return Some(Stop::Time);
        }
        if let Some(stop) = self.control.stop_without_memory() {
            return Some(stop);
        }
        if elapsed - self.told >= TELL_EVERY {
            self.told = elapsed;
            let resident_bytes = (self.control.resident)();
            let edges = self.graph.meta().edges;
            let snapshot = Snapshot { states: self.seen, edges, resident_bytes, elapsed, ..Snapshot::default() };
            self.control.listener.event(&Event::Progress(&snapshot));
        }
        None
    }

    fn note_peak(&mut self, bytes: u64) {
        self.peak = self.peak.max(bytes);
    }
}
