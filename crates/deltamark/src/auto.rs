//! Which store to take: `--store auto`.
//!
//! In: a system, a search, how much memory there is, and a way to make the run with a store. Out: the outcome of the
//! run, and a [`StoreChoice`] that names the store and the reason. Invariants: every store that is tried is exact; a run
//! whose outcome is reported was made from its beginning to its end with one store; the time limit covers all that was
//! tried; no decision depends on a clock, so the same run under the same budget makes the same one on a busy machine.
//!
//! # How
//! ```text
//!   the run, in plain ──── ended ──────────────────────────────────► outcome
//!          │ memory is full
//!          ▼
//!   the first states again, in each candidate
//!          │ the rule
//!          ▼
//!   the run, in the store chosen ──── ended ───────────────────────► outcome
//!          │ memory is full
//!          ▼
//!   the run, in the store with most room ──────────────────────────► outcome
//! ```
//!
//! A run that fits into memory as `plain` is a run in `plain`, and costs nothing more.
//!
//! # The rule
//! A store that takes `b` bytes a state has room for `M / b` states in the memory `M`. `plain` had room for `n`, and
//! nobody knows how many there are beyond. So:
//!
//! 1. Of the candidates with room for at least `MUCH` times `n` states, the fastest is taken.
//! 2. If there is none, room decides: of those with nearly the most, the fastest.
//! 3. If memory gets full all the same, the run is made again with what the second rule says. The states that were
//!    found in vain are at most a part in `MUCH` of those that follow, in a store at least as slow.
//!
//! Which of two stores is faster is taken from the order of `CANDIDATES`, not from the trials: a trial of a fraction
//! of a second on a busy machine measures the others on it. For the same reason trials run on one thread, on a number of
//! states that is a power of two: how many states several threads store before memory is full varies a little.
//!
//! # What it is worth
//! The first states need not be like the others: bytes a state may change by a factor of two or so.

use crate::check::traffic;
use deltamark_core::{Control, Limits, Outcome, Silent, Stop, System};
use deltamark_search::{Search, Task, Threads, run_on};
use deltamark_store::{StoreInfo, StoreSpec, build};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The store of every run until memory is full.
const FIRST: &str = "plain";
/// The exact stores that are worth a try when it is, the fastest first: the one with the smallest trees, the one for
/// states of any width, and the two that rebuild states, of which the first is better where actions can be undone.
const CANDIDATES: &[&str] = &["compact", "tree", "breadcrumb", "comback"];
/// The most states that each candidate is tried on.
const SAMPLE: u64 = 1 << 17;
/// How many times the room of `plain` is much.
const MUCH: f64 = 8.0;
/// Up to this factor, room counts as equal.
const NEARLY: f64 = 1.25;

/// What the choice depends on.
pub(crate) struct StoreQuestion<'a> {
    pub system: &'a dyn System,
    pub search: Search,
    /// The threads that the user asked for.
    pub threads: Option<usize>,
    /// What steers the run.
    pub control: &'a Control,
    /// Whether the user wants to see every candidate, needed or not.
    pub explain: bool,
}

/// A store, and why.
#[derive(Clone, Debug)]
pub struct StoreChoice {
    /// The store.
    pub store: StoreSpec,
    /// Why, in a line.
    pub why: String,
    /// What was tried on the first states; empty if there was no need.
    pub trials: Vec<Trial>,
}

/// A store on the first states.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The store.
    pub store: StoreSpec,
    /// What it took, or why that is not known.
    pub taken: Result<TrialCost, String>,
}

/// What a store took.
#[derive(Clone, Copy, Debug)]
pub struct TrialCost {
    /// States that were found.
    pub states: u64,
    /// Bytes of the store for each.
    pub bytes_per_state: f64,
    /// States that were found in a second.
    pub states_per_second: f64,
    /// States for which there is room; `None` if memory is unlimited.
    pub room: Option<f64>,
}

impl TrialCost {
    /// From the number of states and bytes, the time, and the memory available.
    fn new(states: u64, bytes: u64, time: Duration, memory: Option<u64>) -> Self {
        let bytes_per_state = bytes as f64 / states.max(1) as f64;
        let states_per_second = states as f64 / time.as_secs_f64().max(1e-6);
        let room = memory.map(|memory| memory as f64 / bytes_per_state.max(1e-9));
        TrialCost { states, bytes_per_state, states_per_second, room }
    }

    fn figures(&self) -> String {
        let room = self.room.map_or(String::new(), |room| format!(" (room for {})", rounded(room)));
        let speed = self.states_per_second / 1e6;
        format!("{:.2} bytes a state{room} at {speed:.1} million states a second", self.bytes_per_state)
    }

    /// How long memory lasts at that speed, if it has a limit.
    pub fn lasts(&self) -> Option<Duration> {
        // More than some centuries are the same to anybody.
        self.room.map(|room| Duration::from_secs_f64((room / self.states_per_second.max(1e-9)).min(1e10)))
    }
}

/// Makes a run with this store, or, where that is to be chosen, with one of its own choice. `make` makes it with a
/// given one, from the beginning.
pub(crate) fn run<E>(
    question: &StoreQuestion<'_>,
    store: &StoreSpec,
    mut make: impl FnMut(&StoreSpec, &Control) -> Result<Outcome, E>,
) -> Result<(Outcome, Option<StoreChoice>), E> {
    if store.is_auto() {
        let (outcome, choice) = explore(question, make)?;
        Ok((outcome, Some(choice)))
    } else {
        Ok((make(store, question.control)?, None))
    }
}

fn explore<E>(
    question: &StoreQuestion<'_>,
    mut make: impl FnMut(&StoreSpec, &Control) -> Result<Outcome, E>,
) -> Result<(Outcome, StoreChoice), E> {
    let control = question.control;
    let began = Instant::now();
    let first = StoreSpec::named(FIRST);
    let mut outcome = make(&first, control)?;
    let full = |outcome: &Outcome| outcome.stopped_by == Some(Stop::Memory);
    if !full(&outcome) {
        let trials = if question.explain { attempts(question, &outcome) } else { Vec::new() };
        return Ok((
            outcome,
            StoreChoice { store: first, why: "the memory lasts, so no other is needed".into(), trials },
        ));
    }
    // What fills the memory may be tables of the model, which no other store makes smaller.
    if let Some(resident) = (control.resident)() {
        control.budget.observe(resident);
    }
    if memory(control).is_some_and(|limit| control.budget.left() < limit / 4) {
        let why = "there was no memory to try another: what is in use beside it takes most".into();
        return Ok((outcome, StoreChoice { store: first, why, trials: Vec::new() }));
    }
    let trials = attempts(question, &outcome);
    // Whoever interrupts, or whose time is over, gets what was found before.
    let spent =
        control.stop_without_memory().is_some() || control.limits.time.is_some_and(|limit| began.elapsed() >= limit);
    if spent {
        return Ok((outcome, StoreChoice { store: first, why: "there was no time for another".into(), trials }));
    }
    let mut choice = StoreChoice { store: first, why: "nothing else could be tried".into(), trials };
    for rule in [ample, roomy] {
        let Some((trial, why)) = rule(&choice.trials).filter(|(trial, _)| trial.store != choice.store) else {
            continue;
        };
        let full_at = format!("{} was full at {}; ", choice.store, rounded(outcome.statistics.states as f64));
        choice = StoreChoice { store: trial.store.clone(), why: full_at + &why, trials: choice.trials };
        let time = control.limits.time.map(|limit| limit.saturating_sub(began.elapsed()));
        let limits = Limits { time, ..control.limits.clone() };
        outcome = make(&choice.store, &Control { limits, ..control.clone() })?;
        if !full(&outcome) {
            break;
        }
    }
    Ok((outcome, choice))
}

fn memory(control: &Control) -> Option<u64> {
    Some(control.budget.limit()).filter(|&limit| limit < u64::MAX)
}

/// What the run in `plain` took, and what every candidate takes on its first states.
fn attempts(question: &StoreQuestion<'_>, first: &Outcome) -> Vec<Trial> {
    let found = first.statistics.states.max(1);
    let states = SAMPLE.min(1 << found.ilog2());
    let mut trials = vec![Trial { store: StoreSpec::named(FIRST), taken: Ok(taken(first, question.control)) }];
    for &name in CANDIDATES {
        // What rebuilds states by going back is no worse than what only goes forwards.
        let instead = trials.last().filter(|last| name == "comback" && last.taken.is_ok());
        let taken = match instead {
            Some(better) => Err(format!("{} goes before it", better.store)),
            None if question.control.cancel.is_cancelled() => Err("interrupted".into()),
            None if question.control.stop_without_memory().is_some() => Err("no time left".into()),
            None => attempt(question, name, states),
        };
        trials.push(Trial { store: StoreSpec::named(name), taken });
    }
    trials
}

/// What a run took; one that memory ended had no room for more.
fn taken(outcome: &Outcome, control: &Control) -> TrialCost {
    let states = outcome.statistics.states;
    let taken = TrialCost::new(states, outcome.store_bytes.total(), outcome.statistics.search_time, memory(control));
    match outcome.stopped_by {
        Some(Stop::Memory) => TrialCost { room: Some(states as f64), ..taken },
        _ => taken,
    }
}

/// Finds the first states with a store.
fn attempt(question: &StoreQuestion<'_>, name: &str, states: u64) -> Result<TrialCost, String> {
    let StoreQuestion { system, search, control, .. } = question;
    let limits = Limits { states: Some(states), ..control.limits.clone() };
    let control = Control { limits, listener: Arc::new(Silent), ..(*control).clone() };
    let spec = StoreSpec::named(name);
    let info = StoreInfo::by_name(name);
    if info.is_some_and(|info| !info.takes(search.order())) {
        return Err("not for this search".into());
    }
    if info.is_some_and(|info| !info.threads) && question.threads.is_some_and(|asked| asked > 1) {
        return Err("runs with one thread".into());
    }
    let store = build(&spec, *system, traffic(*search, Threads::ONE, &control), control.budget.clone())
        .map_err(|_| "not for this model".to_string())?;
    let task =
        Task { system: *system, store: &*store, properties: &[], control: &control, explore_all: true, observer: None };
    let outcome = run_on(Threads::ONE, *search, task);
    match outcome.stopped_by {
        Some(Stop::Time) => Err("no time left".into()),
        Some(Stop::Cancelled) => Err("interrupted".into()),
        _ => Ok(taken(&outcome, &control)),
    }
}

/// The candidates with their figures.
fn measured(trials: &[Trial]) -> impl Iterator<Item = (&Trial, &TrialCost)> {
    trials.iter().filter_map(|trial| Some((trial, trial.taken.as_ref().ok()?)))
}

fn room(taken: &TrialCost) -> f64 {
    taken.room.unwrap_or(1.0 / taken.bytes_per_state.max(1e-9))
}

/// The fastest of those that have room for at least this many states, which are in the order of their speed.
fn fastest(trials: &[Trial], least: f64) -> Option<(&Trial, &TrialCost)> {
    measured(trials).find(|(_, taken)| room(taken) >= least)
}

/// Of those that have much more room than `plain` had the fastest, and why.
fn ample(trials: &[Trial]) -> Option<(&Trial, String)> {
    let (_, first) = measured(trials).find(|(trial, _)| trial.store.name == FIRST)?;
    let (trial, taken) = fastest(trials, MUCH * room(first))?;
    Some((trial, format!("{}, the fastest with room for {MUCH} times as many", taken.figures())))
}

/// Of those with nearly the most room the fastest, and why.
fn roomy(trials: &[Trial]) -> Option<(&Trial, String)> {
    let most = measured(trials).map(|(_, taken)| room(taken)).max_by(f64::total_cmp)?;
    let (trial, taken) = fastest(trials, most / NEARLY)?;
    Some((trial, format!("{}, which leaves room for most", taken.figures())))
}

fn rounded(states: f64) -> String {
    if states >= 1e7 { format!("{:.0} million states", states / 1e6) } else { format!("{states:.0} states") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Budget;
    use deltamark_search::Threads;
    use deltamark_testkit::systems::Counters;

    fn trial(name: &str, bytes: u64, speed: u64, memory: u64) -> Trial {
        let taken = TrialCost::new(speed, bytes * speed, Duration::from_secs(1), Some(memory));
        Trial { store: StoreSpec::named(name), taken: Ok(taken) }
    }

    #[test]
    fn the_rule() {
        // Store, bytes a state; a trial is worth the same at any speed.
        type Row = (&'static str, u64);
        let usual: &[Row] = &[("plain", 16), ("compact", 4), ("tree", 10), ("breadcrumb", 3)];
        let shared: &[Row] = &[("plain", 16), ("compact", 1), ("tree", 8), ("breadcrumb", 3)];
        let wide: &[Row] = &[("plain", 400), ("compact", 100), ("tree", 20), ("breadcrumb", 4)];
        let cases: [(&[Row], Option<&str>, &str); 5] = [
            (shared, Some("compact"), "compact"),
            // None has eight times the room.
            (usual, None, "breadcrumb"),
            // The first of these is the faster one.
            (wide, Some("tree"), "breadcrumb"),
            (&[("plain", 16)], None, "plain"),
            (&[], None, ""),
        ];
        let name = |found: Option<(&Trial, String)>| found.map(|(trial, _)| trial.store.name.clone());
        for (rows, first, last) in cases {
            for speed in [1, 4_000_000] {
                let trials: Vec<Trial> =
                    rows.iter().map(|&(name, bytes)| trial(name, bytes, speed, 100_000_000)).collect();
                assert_eq!(name(ample(&trials)).as_deref(), first, "{rows:?}");
                assert_eq!(name(roomy(&trials)).unwrap_or_default(), last, "{rows:?}");
            }
        }
        let failed = [Trial { store: StoreSpec::named("compact"), taken: Err("no".into()) }];
        assert!(ample(&failed).is_none() && roomy(&failed).is_none());
    }

    /// Explores a system, and returns the choice, the states, and the stores of all runs.
    fn explored(
        system: &dyn System,
        search: Search,
        control: &Control,
        explain: bool,
    ) -> (StoreChoice, u64, Vec<String>) {
        let mut runs = Vec::new();
        let question = StoreQuestion { system, search, threads: Some(1), control, explain };
        let result: Result<_, String> = explore(&question, |spec, control| {
            runs.push(spec.to_string());
            let traffic = crate::check::traffic(search, Threads::new(1), control);
            let store = build(spec, system, traffic, control.budget.clone()).map_err(|error| error.0)?;
            let task = Task { system, store: &*store, properties: &[], control, explore_all: true, observer: None };
            Ok(run_on(Threads::new(1), search, task))
        });
        let (outcome, choice) = result.expect("stores that can be made");
        (choice, outcome.statistics.states, runs)
    }

    #[test]
    fn a_small_model_is_explored_once() {
        let system = Counters::new(3, 5);
        let (choice, states, runs) = explored(&system, Search::Bfs, &Control::new(), false);
        assert_eq!((choice.store.name.as_str(), states, choice.trials.len()), ("plain", 56, 0));
        assert_eq!(runs, ["plain"]);
        // Who asks sees the others, but nothing is run again.
        let (choice, _, runs) = explored(&system, Search::Bfs, &Control::new(), true);
        assert_eq!((choice.store.name.as_str(), choice.trials.len()), ("plain", 1 + CANDIDATES.len()));
        assert_eq!(runs, ["plain"]);
    }

    #[test]
    fn a_run_that_plain_has_no_room_for_is_made_with_another_store() {
        let system = Counters::new(5, 24);
        let control = Control { budget: Arc::new(Budget::new(700_000)), ..Control::new() };
        let (choice, states, runs) = explored(&system, Search::Bfs, &control, false);
        assert_eq!(states, 118_755, "{choice:?}");
        // The same every time, whatever else the machine does.
        let (again, _, runs_again) = explored(&system, Search::Bfs, &control, false);
        assert_eq!((&again.store, &runs_again), (&choice.store, &runs));
        assert_eq!(runs.first().map(String::as_str), Some("plain"));
        assert_eq!(runs.last(), Some(&choice.store.to_string()));
        assert_ne!(choice.store.name, "plain");
        assert_eq!(control.budget.used(), 0, "all was given back");
    }

    #[test]
    fn stores_that_cannot_be_used_say_why() {
        let system = Counters::new(3, 5);
        let (choice, ..) = explored(&system, Search::Dfs, &Control::new(), true);
        let told = |name: &str| {
            let trial = choice.trials.iter().find(|trial| trial.store.name == name).expect("it is a candidate");
            trial.taken.as_ref().map(|taken| taken.states).map_err(String::as_str)
        };
        assert_eq!(told("plain"), Ok(56));
        assert_eq!(told("breadcrumb"), Err("not for this search"));
    }

    #[test]
    fn who_interrupts_while_stores_are_tried_gets_what_was_found_before() {
        let system = Counters::new(5, 24);
        let control = Control { budget: Arc::new(Budget::new(700_000)), ..Control::new() };
        let question =
            StoreQuestion { system: &system, search: Search::Bfs, threads: Some(1), control: &control, explain: false };
        let mut runs = 0;
        let result: Result<_, String> = explore(&question, |spec, control| {
            runs += 1;
            let store = build(spec, &system, Search::Bfs.order(), control.budget.clone()).map_err(|error| error.0)?;
            let task =
                Task { system: &system, store: &*store, properties: &[], control, explore_all: true, observer: None };
            let outcome = run_on(Threads::new(1), Search::Bfs, task);
            question.control.cancel.cancel();
            Ok(outcome)
        });
        let (outcome, choice) = result.expect("a run");
        assert_eq!((runs, choice.store.name.as_str()), (1, "plain"));
        let found = (outcome.statistics.states, outcome.stopped_by);
        assert!(found.0 > 1000 && found.1.is_some(), "{found:?}");
    }

    #[test]
    fn who_interrupts_gets_the_run_that_was_interrupted() {
        let system = Counters::new(3, 5);
        let control = Control::new();
        control.cancel.cancel();
        let (_, states, runs) = explored(&system, Search::Bfs, &control, false);
        assert!(states < 56);
        assert_eq!(runs, ["plain"]);
    }
}
