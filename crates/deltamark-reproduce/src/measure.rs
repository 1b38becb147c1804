//! One run.
//!
//! In: a system, a store, a search, limits. Out: its cost, or why it did not end. What stays true: one thread;
//! every run has a system of its own, so that no caches are warm from the run before; memory is what the budget
//! granted, at the actual load factor of all tables.

use crate::StudyOptions;
use crate::study::Ours;
use deltamark_core::{Control, Limits, Stop, System};
use deltamark_search::{SAMPLERS, Search, Task, run};
use deltamark_store::{StoreSpec, Traffic, build};
use std::time::{Duration, Instant};

/// The cost of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunCost {
    pub states: u64,
    pub edges: u64,
    pub seconds: f64,
    /// The bytes of the store at the end, with the tables of the system.
    pub bytes: u64,
    /// Of this the states alone: no hash table, and no spare capacity.
    pub alone: u64,
    /// The peak of store and frontier, with the tables of the system.
    pub peak: u64,
}

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// States to find; a run that finds this many is complete.
    pub states: Option<u64>,
    /// Time it may take.
    pub time: Duration,
}

/// Runs, as often as needed to measure the time of a short run, and returns the fastest.
pub(crate) fn measure(
    options: &StudyOptions<'_>,
    make: &dyn Fn() -> Result<Box<dyn System>, String>,
    store: &str,
    search: Search,
    bounds: Bounds,
) -> Result<RunCost, String> {
    quickest(|| once(options, make, store, search, bounds), |taken| taken.seconds)
}

/// The fastest of as many runs as needed to measure the time of a short one.
pub(crate) fn quickest<T>(
    mut run: impl FnMut() -> Result<T, String>,
    seconds: impl Fn(&T) -> f64,
) -> Result<T, String> {
    /// Short runs are repeated for this long, this often.
    const REPEAT: Duration = Duration::from_millis(60);
    const MOST: u32 = 40;
    /// Fewer may all have been disturbed, unless they are long.
    const LEAST: u32 = 5;
    let begun = Instant::now();
    let mut best: Option<T> = None;
    for turn in 0..MOST {
        let taken = run()?;
        if best.as_ref().is_none_or(|best| seconds(&taken) < seconds(best)) {
            best = Some(taken);
        }
        if turn + 1 >= LEAST && begun.elapsed() > REPEAT || begun.elapsed() > 5 * REPEAT {
            break;
        }
    }
    best.ok_or_else(|| "not run".into())
}

/// The result of something on this thread, and the seconds it takes.
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> (T, f64) {
    let before = thread_time();
    let clock = Instant::now();
    let result = act();
    let elapsed = clock.elapsed();
    let seconds = match (before, thread_time()) {
        (Some(before), Some(after)) if elapsed > COARSE => after - before,
        _ => elapsed.as_secs_f64(),
    };
    (result, seconds)
}

/// The system counts processor time in steps of some milliseconds: shorter runs use the wall clock, and the
/// fastest of many was not disturbed.
const COARSE: Duration = Duration::from_millis(100);

fn once(
    options: &StudyOptions<'_>,
    make: &dyn Fn() -> Result<Box<dyn System>, String>,
    store: &str,
    search: Search,
    bounds: Bounds,
) -> Result<RunCost, String> {
    if options.cancel.is_cancelled() {
        return Err("stopped".into());
    }
    let system = make()?;
    let spec: StoreSpec = store.parse().map_err(|error| format!("{error}"))?;
    let limits = Limits {
        states: bounds.states,
        time: Some(bounds.time),
        memory: deltamark::memory::default_limit(),
        depth: None,
    };
    let control =
        Control { limits, cancel: options.cancel.clone(), resident: deltamark::memory::resident, ..Control::new() };
    let traffic = Traffic { samplers: SAMPLERS, ..search.order().into() };
    let store = build(&spec, &*system, traffic, control.budget.clone()).map_err(|error| format!("{error}"))?;
    let task = Task {
        system: &*system,
        store: &*store,
        properties: &[],
        control: &control,
        explore_all: true,
        observer: None,
    };
    let (outcome, seconds) = timed(|| run(search, task));
    match outcome.stopped_by {
        None => {}
        Some(Stop::States) if bounds.states.is_some() => {}
        Some(Stop::Time) => return Err(format!("> {} s", bounds.time.as_secs())),
        Some(Stop::Memory) => return Err("no memory".into()),
        Some(_) => return Err("stopped".into()),
    }
    let tables = system.tables().total();
    let beside = ["index", "places", "reserve"];
    let alone = outcome.store_bytes.parts().iter().filter(|(part, _)| !beside.contains(part)).map(|(_, bytes)| bytes);
    Ok(RunCost {
        states: outcome.statistics.states,
        edges: outcome.statistics.edges,
        seconds,
        bytes: outcome.store_bytes.total() + tables,
        alone: alone.sum(),
        peak: control.budget.peak() + tables,
    })
}

/// Seconds this thread has spent on the processor, if the system reports it.
pub fn thread_time() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<u64>().ok()? as f64 / 1e9)
}

/// A figure of a run.
pub(crate) fn figure(taken: &Result<RunCost, String>, of: impl Fn(&RunCost) -> f64) -> Ours {
    match taken {
        Ok(taken) => Ours::Value(of(taken)),
        Err(why) => Ours::Missing(why.clone()),
    }
}

/// A figure of a run relative to that of another, in per cent.
pub(crate) fn percent(
    taken: &Result<RunCost, String>,
    against: &Result<RunCost, String>,
    of: impl Fn(&RunCost) -> f64,
) -> Ours {
    figure(taken, &of).with(&figure(against, &of), |one, two| 100.0 * one / two)
}
