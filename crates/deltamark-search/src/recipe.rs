//! The recipe of CONTRIBUTING.md for a search: the newest state first, one at a time.
//!
//! Compiled for tests only, so that the recipe cannot go stale; it passes the suite for searches.
//!
//! # Requirements
//! Any system and any store: states wait in full, so nothing has to be recalled.
//!
//! # Guarantees
//! Every reachable state is expanded once (with an exact store). Traces are rarely shortest. `depth` is
//! the length of the longest path by which a state was found.
//!
//! # The loop
//! Take the newest state that waits; expand it; answer what it decides; insert its successors; those
//! that are new wait. How each state was found is appended to a log, from which traces are read.

use crate::Task;
use crate::log::Log;
use crate::run::{Plan, Recode, Run};
use deltamark_core::{Action, Insert, Outcome, Recoding, Slot, Snapshot, StateId, States, Stop};

/// The states to be expanded.
struct Waiting {
    states: States,
    /// Of each state its id in the store, its number in the log, and the length of the path to it.
    found: Vec<(StateId, u64, u64)>,
    /// How each state was found, waiting or not.
    log: Log,
}

impl Waiting {
    fn push(&mut self, id: StateId, state: &[Slot], parent: u64, action: Action, depth: u64) {
        self.states.push(state);
        self.found.push((id, self.log.len(), depth));
        self.log.push(parent, action);
    }

    fn pop(&mut self) {
        self.found.pop();
        self.states.truncate(self.found.len());
    }

    /// Fills the block of the run with the newest state, under the id that the store gave it: a store that rebuilds
    /// states would have to look up a nameless parent by its state.
    fn fill(&self, run: &mut Run<'_>) {
        run.block.reset(run.system.width());
        let newest = self.found.len() - 1;
        run.block.push(self.found[newest].0, self.states.get(newest));
    }

    fn held_bytes(&self) -> u64 {
        let found = self.found.capacity() * size_of::<(StateId, u64, u64)>();
        self.states.held_bytes() + found as u64 + self.log.held_bytes()
    }

    /// Bytes that it may hold, for a moment, while it takes the batch of the run.
    fn growth(&self, run: &Run<'_>) -> u64 {
        let more = run.batch.len();
        let found = 2 * (self.found.len() + more) * size_of::<(StateId, u64, u64)>();
        self.states.growth(more, run.batch.targets().slots().len()) + found as u64 + self.log.growth(more)
    }
}

impl Recode for Waiting {
    fn recode(&mut self, recoding: &Recoding) {
        recoding.translate_all(&mut self.states);
    }
}

/// Searches, newest state first.
pub(crate) fn run(task: Task<'_>) -> Outcome {
    let mut run = Run::new(Plan::new(task));
    let mut waiting = Waiting { states: States::new(run.system.width()), found: Vec::new(), log: Log::default() };
    let stop = explore(&mut run, &mut waiting);
    run.finish(stop)
}

fn explore(run: &mut Run<'_>, waiting: &mut Waiting) -> Option<Stop> {
    let mut roots = Vec::new();
    let begun = run.begin(waiting, &mut roots);
    // A layout that was widened by the first states is that of the list from now on.
    waiting.states = States::new(run.system.width());
    for root in &roots {
        waiting.push(root.id, &root.state, waiting.log.len(), root.action, 0);
    }
    if let Err(stop) = begun {
        return Some(stop);
    }
    let mut beyond = false;
    while let Some(&(_, number, depth)) = waiting.found.last() {
        run.statistics.depth = run.statistics.depth.max(depth);
        // Memory, time, cancellation and progress.
        let (frontier, frontier_bytes) = (waiting.found.len() as u64, waiting.held_bytes());
        if !run.frontier_holds(frontier_bytes) {
            return Some(Stop::Memory);
        }
        if let Some(stop) = run.check(|run| Snapshot { frontier, frontier_bytes, ..run.snapshot() }) {
            return Some(stop);
        }
        // Expand; where the layout is too narrow, widen it and fill the block again.
        waiting.fill(run);
        while run.expand().is_err() {
            if let Err(stop) = run.widen(waiting) {
                return Some(stop);
            }
            waiting.fill(run);
        }
        if let Some(stop) = run.batch.stop() {
            return Some(stop);
        }
        waiting.pop();
        // Answer before anything is inserted: what is expanded is looked at, even if the run ends here.
        for finding in run.findings() {
            let state = run.block.state(finding.state).to_vec();
            run.answer(finding, Some(waiting.log.path(number)), &state);
        }
        if depth >= run.depth_limit() {
            beyond |= run.count_at_depth_limit();
            continue;
        }
        if !run.frontier_holds(waiting.held_bytes() + waiting.growth(run)) {
            return Some(Stop::Memory);
        }
        // Insert; what is new waits. The block counts once all its successors are in the store.
        let step = run.insert();
        for (index, answer) in run.answers.iter().enumerate() {
            if let Insert::New(id) = *answer {
                run.statistics.states += 1;
                waiting.push(id, run.batch.target(index), number, run.batch.action(index), depth + 1);
            }
        }
        if let Err(stop) = step {
            return Some(stop);
        }
        run.count();
    }
    beyond.then_some(Stop::Depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Observer;
    use deltamark_core::{Batch, Block, Order, Scratch, System};
    use deltamark_testkit::check_search;

    /// A function as an observer. The test kit was built with another copy of this crate, whose
    /// observers are of another type.
    struct Shown<F>(F);

    impl<F: FnMut(&dyn System, &mut Scratch, &Block, &Batch, &[Insert]) + Send> Observer for Shown<F> {
        fn expanded(
            &mut self,
            system: &dyn System,
            scratch: &mut Scratch,
            block: &Block,
            batch: &Batch,
            answers: &[Insert],
        ) {
            (self.0)(system, scratch, block, batch, answers);
        }
    }

    #[test]
    fn the_search_passes_the_suite() {
        check_search(Order::Any, |task| {
            let mut observer = task.observer.map(|observer| {
                Shown(
                    move |system: &dyn System,
                          scratch: &mut Scratch,
                          block: &Block,
                          batch: &Batch,
                          answers: &[Insert]| {
                        observer.expanded(system, scratch, block, batch, answers);
                    },
                )
            });
            run(Task {
                system: task.system,
                store: task.store,
                properties: task.properties,
                control: task.control,
                explore_all: task.explore_all,
                observer: observer.as_mut().map(|observer| observer as &mut dyn Observer),
            })
        });
    }
}
