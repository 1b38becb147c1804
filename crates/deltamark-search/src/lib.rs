//! The searches: orders in which reachable states are visited.
//!
//! In: a [`Task`]: system, store, properties, limits. Out: an [`Outcome`]. Invariants: searches
//! name no language and no store; every returned trace has been replayed.
//!
//! ```text
//! frontier ─take─▶ Block ─expand─▶ Batch ─insert─▶ answers ─▶ frontier
//!                    └──────── properties, observer, limits ────────┘
//! ```

mod accepting;
mod arrivals;
mod bfs;
mod checkpoint;
mod cndfs;
mod crew;
mod dfs;
mod fair;
mod frontier;
mod guided;
pub mod learn;
pub mod linear;
mod log;
mod owcty;
mod partition;
mod path;
mod probe;
mod quota;
#[cfg(test)]
mod recipe;
mod retrace;
mod run;
mod sample;
mod separate;
mod stored;
mod sweep;
pub mod trial;
mod unfolding;

pub use accepting::{Acceptance, Accepted, run_accepting, unfit};
pub use checkpoint::{Keeper, Keeping, Kept, Unresumed};
pub use cndfs::run_cndfs;
pub use fair::{Fairness, Strength};
pub use owcty::run_owcty;
pub use partition::{Partitioned, owner, run_partitioned};
pub use probe::Probing;
pub use sample::SAMPLERS;
pub use sweep::{SweepTask, Swept, run_sweep};
pub use unfolding::{Unfolding, unfit_for_unfolding};

use deltamark_core::{Batch, Block, Control, Insert, Order, Outcome, Property, Scratch, Store, System};

/// The order in which states are visited that a store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Search {
    /// Level by level; traces are shortest.
    #[default]
    Bfs,
    /// Deep paths first; finds deep errors early.
    Dfs,
}

impl Search {
    /// All searches over a store that visit every reachable state: tests compare the counts of each with those of the others.
    pub const ALL: &[Search] = &[Search::Bfs, Search::Dfs];

    /// In what order states reach the store.
    pub fn order(self) -> Order {
        match self {
            Search::Bfs => Order::Levels,
            Search::Dfs => Order::Any,
        }
    }

    /// Whether its traces are shortest and its `depth` is the largest distance from an
    /// initial state.
    pub fn is_shortest(self) -> bool {
        self.order() == Order::Levels
    }

    /// Whether it runs with several threads.
    pub fn shares_work(self) -> bool {
        self == Search::Bfs
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Search::Bfs => "bfs",
            Search::Dfs => "dfs",
        }
    }
}

/// How a state space is explored: what `--search` names.
///
/// A sweep is no [`Search`], because it takes a window instead of a store: [`run`] cannot be asked for one.
///
/// ```compile_fail
/// # use deltamark_search::{Search, Task, run};
/// fn sweep(task: Task<'_>) {
///     run(Search::Sweep, task);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Over a store, which keeps every state.
    Over(Search),
    /// In the order of progress, forgetting what is behind: see [`run_sweep`].
    Sweep,
}

impl Strategy {
    /// All of them.
    pub const ALL: &[Strategy] = &[Strategy::Over(Search::Bfs), Strategy::Over(Search::Dfs), Strategy::Sweep];

    /// As [`Search::is_shortest`].
    pub fn is_shortest(self) -> bool {
        matches!(self, Strategy::Over(search) if search.is_shortest())
    }

    /// As [`Search::shares_work`].
    pub fn shares_work(self) -> bool {
        matches!(self, Strategy::Over(search) if search.shares_work())
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Over(search) => search.name(),
            Strategy::Sweep => "sweep",
        }
    }
}

impl Default for Strategy {
    fn default() -> Self {
        Search::default().into()
    }
}

impl From<Search> for Strategy {
    fn from(search: Search) -> Self {
        Strategy::Over(search)
    }
}

/// How many threads search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// How many, at most; they are started when there is work for them.
    pub count: usize,
    /// Levels of fewer states are expanded by one thread: waking the others costs more than
    /// they bring.
    pub small: u64,
}

impl Threads {
    /// One thread.
    pub const ONE: Threads = Threads::new(1);

    /// So many threads, for levels that are worth it.
    pub const fn new(count: usize) -> Self {
        // Some fifty microseconds of work.
        Threads { count, small: 512 }
    }
}

impl Default for Threads {
    fn default() -> Self {
        Threads::ONE
    }
}

/// Sees every expanded block with its successors and what became of them. In a run of several
/// threads it is called by any of them, one at a time.
pub trait Observer: Send {
    /// Takes a block. `answers[i]` belongs to successor `i` of `batch`.
    fn expanded(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
    );

    /// Takes a block that was expanded and counted although some of its successors are not in the store and have no
    /// number, as at the depth limit. An observer of edges between numbered states leaves it out.
    fn expanded_last(&mut self, _system: &dyn System, _scratch: &mut Scratch, _block: &Block, _batch: &Batch) {}
}

/// What to search.
pub struct Task<'a> {
    /// The model.
    pub system: &'a dyn System,
    /// Where visited states go; empty at the beginning.
    pub store: &'a dyn Store,
    /// What is asked.
    pub properties: &'a [Property],
    /// Limits and listeners.
    pub control: &'a Control,
    /// Go on when every property has its answer.
    pub explore_all: bool,
    /// Who else wants to see the expanded states.
    pub observer: Option<&'a mut dyn Observer>,
}

/// Searches.
///
/// # Panics
/// When a trace does not replay: a bug of the search, the store or the system, which must
/// not be taken for an answer.
pub fn run(search: Search, task: Task<'_>) -> Outcome {
    run_on(Threads::ONE, search, task)
}

/// Searches with several threads, where the search [can](Search::shares_work); others use one.
/// The store must take insertions of several threads at once, and must not rely on the order in
/// which the parents of a level come.
///
/// # Panics
/// As [`run`].
pub fn run_on(threads: Threads, search: Search, task: Task<'_>) -> Outcome {
    match search {
        Search::Bfs => bfs::run(task, threads),
        Search::Dfs => dfs::run(task),
    }
}

/// As [`run_on`], but a breadth-first search spends a small part of its work on probes, which look for errors that are deep.
/// A trace that a probe finds need not be a shortest one; the outcome [says so](deltamark_core::PropertyOutcome::probed).
///
/// # Panics
/// As [`run`].
pub fn run_probing(probing: Probing, threads: Threads, search: Search, task: Task<'_>) -> Outcome {
    match search {
        Search::Bfs => bfs::run_probing(task, threads, probing),
        Search::Dfs => dfs::run(task),
    }
}

/// As [`run_on`], breadth-first, for a run that keeps checkpoints, or goes on from one. See [`Keeping`] for what it asks of
/// system and store.
///
/// # Panics
/// As [`run`].
pub fn run_kept(keeping: Keeping<'_>, threads: Threads, task: Task<'_>) -> Result<Outcome, Unresumed> {
    bfs::run_kept(task, threads, keeping)
}
