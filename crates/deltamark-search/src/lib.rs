//! The searches: orders in which reachable states are visited.
//!
//! In: a [`Task`]: system, store, properties, limits. Out: an
//! [`Outcome`]. What stays true: searches name no language and
//! no store; every trace they return has been replayed.
//!
//! ```text
//! frontier ─take─▶ Block ─expand─▶ Batch ─insert─▶ answers ─▶ frontier
//!                    └──────── properties, observer, limits ────────┘
//! ```

mod arrivals;
mod bfs;
mod dfs;
mod log;
mod numbers;
mod path;
mod run;

use deltamark_core::{Batch, Block, Control, Insert, Order, Outcome, Property, Scratch, Store, System};

/// The order in which states are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Search {
    /// Level by level; traces are shortest.
    #[default]
    Bfs,
    /// Deep paths first; finds deep errors early.
    Dfs,
}

impl Search {
    /// All searches there are.
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

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Search::Bfs => "bfs",
            Search::Dfs => "dfs",
        }
    }
}

/// Sees every expanded block with its successors and what became of them.
pub trait Observer {
    /// Takes a block. `answers[i]` belongs to successor `i` of `batch`.
    fn expanded(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
    );
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
    match search {
        Search::Bfs => bfs::run(task),
        Search::Dfs => dfs::run(task),
    }
}
