//! Traces of a sweep, by a second, recorded sweep.
//!
//! In: states that a sweep found, and its parameters. Out: a trace to each. Invariants: the order
//! is that of the first run, so each state is revisited after at most as many states as there; only
//! this run records how each state was reached, a few bytes per number, and it ends when all are
//! found. Nothing depends on equal numbers: states are identified by their contents.

use crate::Task;
use crate::log::Log;
use crate::run::{Plan, Run};
use crate::sweep::{Ranking, Sweep, WindowStore, Witness};
use deltamark_core::{Control, Insert, Limits, Remember, Slot, Stop, System, Trace, Window};
use std::time::Duration;

/// What to look for, and how.
pub(crate) struct Guided<'g, 'a> {
    pub system: &'a dyn System,
    pub make: &'a dyn Fn(Remember) -> Box<dyn Window + 'a>,
    pub ranking: &'g mut Ranking<'a>,
    pub control: &'a Control,
    /// How long the first run took.
    pub elapsed: Duration,
    /// The states, in the layout in use.
    pub sought: Vec<&'g [Slot]>,
}

/// For each state that is sought a trace; nothing, if memory or time did not suffice.
pub(crate) fn traces(guided: Guided<'_, '_>) -> Vec<Option<Trace>> {
    let Guided { system, make, ranking, control, elapsed, sought } = guided;
    let time = control.limits.time.map(|limit| limit.saturating_sub(elapsed));
    let limits = Limits { states: None, time, ..control.limits.clone() };
    let control = Control { limits, ..control.clone() };
    let window = make(Remember { numbers: true, actions: ranking.leaves_out() });
    let shown = WindowStore(&*window);
    let mut run = Run::new(Plan::new(Task {
        system,
        store: &shown,
        properties: &[],
        control: &control,
        explore_all: true,
        observer: None,
    }));
    let mut scratch = system.scratch();
    let mut seeker = Seeker {
        log: Log::default(),
        sought: sought.into_iter().map(|state| (system.hash(&mut scratch, state), state, None)).collect(),
    };
    let mut sweep = Sweep::new(&*window, ranking, None);
    sweep.witness = Some(&mut seeker);
    sweep.explore(&mut run);
    let traces = seeker.sought.iter().map(|&(_, _, number)| number.map(|number| seeker.log.path(number))).collect();
    drop(run.finish(Some(Stop::Answered)));
    traces
}

/// Notes how states are reached, and which numbers those have that are sought.
struct Seeker<'s> {
    log: Log,
    /// Hash, state, and its number once it is found.
    sought: Vec<(u64, &'s [Slot], Option<u64>)>,
}

impl Seeker<'_> {}

impl Witness for Seeker<'_> {
    fn entered(&mut self, run: &mut Run<'_>, initial: bool) -> Result<bool, Stop> {
        if !run.frontier_holds(self.log.held_bytes() + self.log.growth(run.batch.len())) {
            return Err(Stop::Memory);
        }
        for (index, answer) in run.answers.iter().enumerate() {
            let Insert::New(id) = answer else { continue };
            debug_assert_eq!(id.get(), self.log.len());
            let parent = if initial { id.get() } else { run.block.id(run.batch.source(index)).get() };
            self.log.push(parent, run.batch.action(index));
            for (hash, state, number) in &mut self.sought {
                if number.is_none() && *hash == run.batch.hash(index) && *state == run.batch.target(index) {
                    *number = Some(id.get());
                }
            }
        }
        Ok(self.sought.iter().all(|sought| sought.2.is_some()))
    }
}
