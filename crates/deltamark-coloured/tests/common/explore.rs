//! Explores systems, several at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use deltamark_core::{Budget, Cancel, Control, Limits, Outcome, Property, Silent, Stop, System, Verdict};
use deltamark_search::{Search, Task, run};

/// The result of an exploration.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of states.
    pub states: u64,
    /// The number of edges.
    pub edges: u64,
    /// The number of deadlocks.
    pub deadlocks: u64,
    /// The first fault, and the number of steps to it.
    pub fault: Option<(String, usize)>,
}

/// Explores a system breadth-first with this store.
#[allow(dead_code)]
pub fn explore_system(system: &dyn System, store: &str) -> Found {
    let outcome = explored(system, store);
    let fault = match &outcome.properties[0].verdict {
        Verdict::Violated(trace, message) => {
            let steps = trace.as_ref().map_or(0, |trace| trace.actions.len());
            Some((message.clone().unwrap_or_default(), steps))
        }
        _ => None,
    };
    let statistics = outcome.statistics;
    Found { states: statistics.states, edges: statistics.edges, deadlocks: statistics.deadlocks, fault }
}

/// What stopped the exploration of a system; `None` if it was complete.
#[allow(dead_code)]
pub fn stopped(system: &dyn System) -> Option<Stop> {
    explored(system, "plain").stopped_by
}

fn explored(system: &dyn System, store: &str) -> Outcome {
    let budget = Arc::new(Budget::unlimited());
    let spec = store.parse().expect("a store");
    let store = deltamark_store::build(&spec, system, Search::Bfs.order(), budget.clone()).expect("a store");
    let limits = Limits::default();
    let control = Control { limits, cancel: Cancel::new(), listener: Arc::new(Silent), budget, ..Control::new() };
    let properties = [Property::fault_free()];
    let task = Task {
        system,
        store: store.as_ref(),
        properties: &properties,
        control: &control,
        explore_all: true,
        observer: None,
    };
    run(Search::Bfs, task)
}

/// Checks each case, the last ones first: they take longest. All processors take part.
#[allow(dead_code)]
pub fn for_each<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(case) = cases.len().checked_sub(1 + next.fetch_add(1, Relaxed)) {
                    check(&cases[case]);
                }
            });
        }
    });
}
