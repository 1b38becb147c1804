//! A path to a state by a second search.
//!
//! In: a state of the current level of a run whose store keeps no back edges, nor lets the search
//! keep any. Out: a shortest path to it. Invariants: nothing was stored for it; every byte of the
//! second search is granted by the budget, and released; only states of earlier levels are expanded
//! again, so the layout is wide enough and stays as it is.
//!
//! A store whose ids do not follow the order of discovery would need a back edge per state for
//! traces: one to three bytes, more than `compact` takes for the state. Violations end most runs,
//! so it is cheaper to search again up to the level before, this time with a log of back edges, in
//! an empty store of the same kind ([`Store::twin`](deltamark_core::Store::twin)). It is the same
//! breadth-first search, by as many threads.

use crate::path::initial_number;
use crate::run::Run;
use crate::{Task, Threads, bfs};
use deltamark_core::{Control, Limits, Silent, Slot, Trace};
use std::sync::Arc;

/// A shortest path to a state of the current level; `None` if there is no memory to find it, or if
/// the run must end before.
pub(crate) fn retrace(run: &Run<'_>, state: &[Slot], threads: usize) -> Option<Trace> {
    let Some(before) = run.statistics.depth.checked_sub(1) else {
        return Some(Trace::path(initial_number(run.system, &mut run.system.scratch(), state), Vec::new()));
    };
    let twin = run.store.twin()?;
    let control = run.control();
    // Other limits are those of the run, and the deadline is that of both.
    let limits = Limits { depth: Some(before), memory: control.limits.memory, ..Limits::default() };
    let control = Control { limits, listener: Arc::new(Silent), ..control.clone() };
    let task = Task {
        system: run.system,
        store: &*twin,
        properties: &[],
        control: &control,
        explore_all: true,
        observer: None,
    };
    bfs::path_to(state, task, Threads::new(threads))
}
