//! Which store to take, by trying some: `--store auto`.
//!
//! In: a system, a search, how much memory and time there is, and a way to make the run with a
//! store. Out: the outcome of the run, and a [`Choice`] that says what it was made with and why.
//! What stays true: stores that are tried are exact; a run whose outcome is reported was made from
//! its beginning to its end with one store; the time limit covers all that was tried.
//!
//! # How
//! ```text
//!   the run, in plain ──── ended, or its memory will last ─────────► outcome
//!          │ after a moment
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
//! Most runs are short: they are over before any choice is worth its time, and lose nothing.
//!
//! # The rule
//! A store that takes `b` bytes a state and finds `s` states a second has room for `M / b` states
//! in the memory `M`, and fills it after `M / (b · s)` seconds. Nobody knows how many states there
//! will be. So:
//!
//! 1. What is full within a minute is left aside. Of the others those are considered that take at most a
//!    quarter more time than the quickest, and of these the one with most room is taken.
//! 2. If all are full within a minute, room decides: of those with nearly the most, the quickest.
//! 3. If memory gets full all the same, the run is made again with what the second rule says. Its first
//!    part was in vain, but took less time than the second will: a quick store that turns out too large costs
//!    less than a slow one that was not needed.
//!
//! # What it is worth
//! The first states need not be like the others: bytes a state and time may change by a factor of two
//! or so. Stores that rebuild states get slower as the ways back get longer, which the first states
//! do not show; their speed is taken for half of what it was.

use crate::check::{threads, traffic};
use deltamark_core::{Cancel, Control, Event, Limits, Listener, Outcome, Silent, Stop, System};
use deltamark_search::{Search, Task, run_on};
use deltamark_store::{StoreInfo, StoreSpec, build};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The exact stores that are worth a try: the yardstick, the one with the smallest trees, the
/// one for states of any width, and the two that rebuild states, of which the first is better where
/// steps can be undone.
const CANDIDATES: &[&str] = &["plain", "compact", "tree", "breadcrumb", "comback"];
/// When a run is looked at.
const MOMENT: Duration = Duration::from_millis(200);
/// The most states that each candidate is tried on.
const SAMPLE: u64 = 200_000;
/// A candidate that takes this many times as long as `plain` is given up, but not before [`FAIR`].
const SLOWEST: u32 = 12;
/// What every candidate is given: on a busy machine it may wait for the processor longer than it works.
const FAIR: Duration = Duration::from_secs(1);
/// Memory that is full sooner than this is too small for a store.
const SOON: Duration = Duration::from_secs(60);
/// Memory that lasts so long needs no other store.
const LONG: Duration = Duration::from_secs(600);
/// Up to this factor, times count as equal, and so does room.
const NEARLY: f64 = 1.25;
/// How much slower stores that rebuild states are than on the first states.
const REBUILDING: f64 = 2.0;

/// What is to be decided.
pub(crate) struct Question<'a> {
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
pub struct Choice {
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
    pub taken: Result<Taken, String>,
}

/// What a store took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// States that were found.
    pub states: u64,
    /// Bytes of the store for each.
    pub bytes_per_state: f64,
    /// States that were found in a second.
    pub states_per_second: f64,
    /// States for which there is room; `None` if memory is unlimited.
    pub room: Option<f64>,
}

impl Taken {
    /// From the number of states and bytes, the time, and the memory available.
    fn new(states: u64, bytes: u64, time: Duration, memory: Option<u64>) -> Self {
        let bytes_per_state = bytes as f64 / states.max(1) as f64;
        let states_per_second = states as f64 / time.as_secs_f64().max(1e-6);
        let room = memory.map(|memory| memory as f64 / bytes_per_state.max(1e-9));
        Taken { states, bytes_per_state, states_per_second, room }
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
    question: &Question<'_>,
    store: &StoreSpec,
    mut make: impl FnMut(&StoreSpec, &Control) -> Result<Outcome, E>,
) -> Result<(Outcome, Option<Choice>), E> {
    if store.is_auto() {
        let (outcome, choice) = explore(question, make)?;
        Ok((outcome, Some(choice)))
    } else {
        Ok((make(store, question.control)?, None))
    }
}

fn explore<E>(
    question: &Question<'_>,
    mut make: impl FnMut(&StoreSpec, &Control) -> Result<Outcome, E>,
) -> Result<(Outcome, Choice), E> {
    let control = question.control;
    let began = Instant::now();
    let watch = Arc::new(Watch {
        listener: Arc::clone(&control.listener),
        stop: control.cancel.below(),
        memory: memory(control),
        long: control.limits.time.map_or(LONG, |limit| limit.min(LONG)),
        explain: question.explain,
        looked: AtomicBool::new(false),
    });
    let plain = StoreSpec::named("plain");
    let watched = Control { cancel: watch.stop.clone(), listener: watch.clone(), ..control.clone() };
    let mut outcome = make(&plain, &watched)?;
    let given_up = outcome.stopped_by == Some(Stop::Cancelled) && !control.cancel.is_cancelled();
    let full = |outcome: &Outcome| outcome.stopped_by == Some(Stop::Memory);
    let found = outcome.statistics.states;
    if !given_up && !full(&outcome) {
        let trials = if question.explain { attempts(question, found) } else { Vec::new() };
        return Ok((outcome, Choice { store: plain, why: "the memory lasts, so no other is needed".into(), trials }));
    }
    let mut again = |store: &StoreSpec| {
        let time = control.limits.time.map(|limit| limit.saturating_sub(began.elapsed()));
        make(store, &Control { limits: Limits { time, ..control.limits.clone() }, ..control.clone() })
    };
    // What fills the memory may be tables of the model, which no other store makes smaller.
    if let Some(resident) = (control.resident)() {
        control.budget.observe(resident);
    }
    if memory(control).is_some_and(|limit| control.budget.left() < limit / 4) {
        if given_up {
            outcome = again(&plain)?;
        }
        let why = "there was no memory to try another: what is in use beside it takes most".into();
        return Ok((outcome, Choice { store: plain, why, trials: Vec::new() }));
    }
    let trials = attempts(question, found);
    // Whoever interrupts, or whose time is over, gets what was found before.
    let spent = control.stop_without_memory() == Some(Stop::Time)
        || control.limits.time.is_some_and(|limit| began.elapsed() >= limit);
    if spent || control.cancel.is_cancelled() {
        if given_up && !control.cancel.is_cancelled() {
            outcome.stopped_by = Some(Stop::Time);
        }
        return Ok((outcome, Choice { store: plain, why: "there was no time for another".into(), trials }));
    }
    let mut choice = Choice { store: plain, why: "nothing else could be tried".into(), trials };
    if given_up {
        let soon = control.limits.time.map_or(SOON, |limit| limit.min(SOON));
        choice = choice.taking(quick(&choice.trials, soon).or_else(|| roomy(&choice.trials)), "");
        outcome = again(&choice.store)?;
    }
    if full(&outcome)
        && let Some((trial, why)) = roomy(&choice.trials)
        && trial.store != choice.store
    {
        let full = format!("{} was full at {}; ", choice.store, rounded(outcome.statistics.states as f64));
        choice = choice.taking(Some((trial, why)), &full);
        outcome = again(&choice.store)?;
    }
    Ok((outcome, choice))
}

impl Choice {
    /// The same with this store, if there is one, and with a reason that begins so.
    fn taking(&self, taken: Option<(&Trial, String)>, begin: &str) -> Self {
        match taken {
            Some((trial, why)) => {
                Choice { store: trial.store.clone(), why: format!("{begin}{why}"), trials: self.trials.clone() }
            }
            None => self.clone(),
        }
    }
}

/// Looks once at how a run in `plain` goes, and stops it where its memory will not last.
struct Watch {
    listener: Arc<dyn Listener>,
    stop: Cancel,
    memory: Option<u64>,
    long: Duration,
    explain: bool,
    looked: AtomicBool,
}

impl Listener for Watch {
    fn event(&self, event: &Event<'_>) {
        self.listener.event(event);
        let Event::Progress(now) = event else { return };
        if now.elapsed < MOMENT || self.looked.swap(true, Relaxed) {
            return;
        }
        let taken = Taken::new(now.states, now.store_bytes.total(), now.elapsed, self.memory);
        if self.explain || taken.lasts().is_some_and(|lasts| lasts < self.long) {
            self.stop.cancel();
        }
    }
}

fn memory(control: &Control) -> Option<u64> {
    Some(control.budget.limit()).filter(|&limit| limit < u64::MAX)
}

/// Tries every candidate on the first of `found` states.
fn attempts(question: &Question<'_>, found: u64) -> Vec<Trial> {
    let states = found.clamp(1, SAMPLE);
    let mut trials: Vec<Trial> = Vec::new();
    let mut time = FAIR;
    for &name in CANDIDATES {
        // What rebuilds states by going back is no worse than what only goes forwards.
        let instead = trials.last().filter(|last| name == "comback" && last.taken.is_ok());
        let taken = match instead {
            Some(better) => Err(format!("{} goes before it", better.store)),
            None if question.control.cancel.is_cancelled() => Err("interrupted".into()),
            None if question.control.stop_without_memory().is_some() => Err("no time left".into()),
            None => attempt(question, name, states, (time * SLOWEST).max(FAIR)),
        };
        if let (true, Ok(taken)) = (trials.is_empty(), &taken) {
            time = Duration::from_secs_f64(taken.states as f64 / taken.states_per_second.max(1.0));
        }
        trials.push(Trial { store: StoreSpec::named(name), taken });
    }
    trials
}

/// Finds the first states with a store.
fn attempt(question: &Question<'_>, name: &str, states: u64, time: Duration) -> Result<Taken, String> {
    let Question { system, search, control, .. } = question;
    let limits = Limits { states: Some(states), time: Some(time), ..control.limits.clone() };
    let control = Control { limits, listener: Arc::new(Silent), ..(*control).clone() };
    let spec = StoreSpec::named(name);
    if StoreInfo::by_name(name).is_some_and(|info| !info.takes(search.order())) {
        return Err("not for this search".into());
    }
    let threads = threads(question.threads, &spec, *search).map_err(|_| "runs with one thread".to_string())?;
    let store = build(&spec, *system, traffic(*search, threads, &control), control.budget.clone())
        .map_err(|_| "not for this model".to_string())?;
    let outcome = run_on(
        threads,
        *search,
        Task { system: *system, store: &*store, properties: &[], control: &control, explore_all: true, observer: None },
    );
    let found = outcome.statistics.states;
    let mut taken = Taken::new(found, outcome.store_bytes.total(), outcome.statistics.search_time, memory(&control));
    match outcome.stopped_by {
        Some(Stop::Time) => return Err("too slow".into()),
        Some(Stop::Cancelled) => return Err("interrupted".into()),
        // There was no room for more.
        Some(Stop::Memory) => taken.room = Some(found as f64),
        _ => {}
    }
    Ok(taken)
}

/// The candidates with their figures.
fn measured(trials: &[Trial]) -> impl Iterator<Item = (&Trial, &Taken)> {
    trials.iter().filter_map(|trial| Some((trial, trial.taken.as_ref().ok()?)))
}

/// How many states a second a candidate will find.
fn speed((trial, taken): &(&Trial, &Taken)) -> f64 {
    let rebuilds = matches!(trial.store.name.as_str(), "breadcrumb" | "comback");
    taken.states_per_second / if rebuilds { REBUILDING } else { 1.0 }
}

fn room((_, taken): &(&Trial, &Taken)) -> f64 {
    taken.room.unwrap_or(1.0 / taken.bytes_per_state.max(1e-9))
}

/// Of those whose memory lasts and that are nearly the quickest the one with most room, and why.
fn quick(trials: &[Trial], soon: Duration) -> Option<(&Trial, String)> {
    let lasting = || measured(trials).filter(|(_, taken)| taken.lasts().is_none_or(|lasts| lasts >= soon));
    let quickest = lasting().map(|one| speed(&one)).max_by(f64::total_cmp)?;
    let nearly = lasting().filter(|one| speed(one) * NEARLY >= quickest);
    let (trial, taken) = nearly.max_by(|one, two| room(one).total_cmp(&room(two)))?;
    let what = if speed(&(trial, taken)) < quickest { "smaller than what is little quicker" } else { "the quickest" };
    let lasts = if taken.lasts().is_some() { " of those whose memory lasts" } else { "" };
    Some((trial, format!("{}, {what}{lasts}", taken.figures())))
}

/// Of those with nearly the most room the quickest, and why.
fn roomy(trials: &[Trial]) -> Option<(&Trial, String)> {
    let most = measured(trials).map(|one| room(&one)).max_by(f64::total_cmp)?;
    let nearly = measured(trials).filter(|one| room(one) * NEARLY >= most);
    let (trial, taken) = nearly.max_by(|one, two| speed(one).total_cmp(&speed(two)))?;
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
        let taken = Taken::new(speed, bytes * speed, Duration::from_secs(1), Some(memory));
        Trial { store: StoreSpec::named(name), taken: Ok(taken) }
    }

    #[test]
    fn the_rule() {
        // Store, bytes a state, states a second.
        type Row = (&'static str, u64, u64);
        let usual: &[Row] = &[
            ("plain", 16, 4_000_000),
            ("compact", 2, 3_000_000),
            ("tree", 10, 2_500_000),
            ("breadcrumb", 3, 4_000_000),
        ];
        let shared: &[Row] = &[("plain", 16, 4_000_000), ("compact", 1, 3_900_000), ("tree", 8, 4_000_000)];
        let cases: [(&[Row], u64, Option<&str>, &str); 6] = [
            (usual, 10_000_000_000, Some("plain"), "compact"),
            // Plain would be full after 50 seconds.
            (usual, 3_200_000_000, Some("compact"), "compact"),
            (usual, 400_000_000, Some("compact"), "compact"),
            // All are full within a minute.
            (usual, 100_000_000, None, "compact"),
            // The same speed for less.
            (shared, 10_000_000_000, Some("compact"), "compact"),
            (&[], 10_000_000_000, None, ""),
        ];
        for (rows, memory, first, last) in cases {
            let trials: Vec<Trial> =
                rows.iter().map(|&(name, bytes, speed)| trial(name, bytes, speed, memory)).collect();
            let name = |found: Option<(&Trial, String)>| found.map(|(trial, _)| trial.store.name.clone());
            assert_eq!(name(quick(&trials, SOON)).as_deref(), first, "{memory}");
            assert_eq!(name(roomy(&trials)).unwrap_or_default(), last, "{memory}");
        }
        let failed = [Trial { store: StoreSpec::named("compact"), taken: Err("no".into()) }];
        assert!(quick(&failed, SOON).is_none() && roomy(&failed).is_none());
    }

    /// Explores a system, and returns the choice, the states, and the stores of all runs.
    fn explored(system: &dyn System, search: Search, control: &Control, explain: bool) -> (Choice, u64, Vec<String>) {
        let mut runs = Vec::new();
        let question = Question { system, search, threads: Some(1), control, explain };
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
        assert_eq!((choice.store.name.as_str(), choice.trials.len()), ("plain", CANDIDATES.len()));
        assert_eq!(runs, ["plain"]);
    }

    #[test]
    fn a_run_that_plain_has_no_room_for_is_made_with_another_store() {
        let system = Counters::new(5, 24);
        let control = Control { budget: Arc::new(Budget::new(700_000)), ..Control::new() };
        let (choice, states, runs) = explored(&system, Search::Bfs, &control, false);
        assert_eq!(states, 118_755, "{choice:?}");
        // Which store that is, and whether one was tried in vain before, depends on how quick each was.
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
            Question { system: &system, search: Search::Bfs, threads: Some(1), control: &control, explain: false };
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
