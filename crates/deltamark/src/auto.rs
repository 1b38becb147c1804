//! Which store to take, by trying some.
//!
//! In: a system, a search, how much memory and time there is. Out: a [`Choice`] and what it was made
//! from. What stays true: the same search is run over the same first states with each candidate,
//! one after the other, on one thread; a model small enough to be explored by the way gets `plain`;
//! candidates are exact.
//!
//! # The rule
//! A store that takes `b` bytes a state and finds `s` states a second fills the memory `M` after
//! `M / (b · s)` seconds. The quickest store is taken whose memory lasts as long as the run may take;
//! if there is none, the one with room for most states.
//!
//! # What it is worth
//! Nobody knows how many states there will be, and the first ones need not be like the others: bytes
//! a state and time may change by a factor of two or so. Stores differ by more than that.

use deltamark_core::{Budget, Cancel, Control, Limits, Silent, Stop, System};
use deltamark_search::{Search, Task, run};
use deltamark_store::{StoreInfo, StoreSpec, build};
use std::sync::Arc;
use std::time::Duration;

/// The exact stores that are worth a try, the quickest first.
const CANDIDATES: &[&str] = &["plain", "compact", "tree", "breadcrumb", "comback"];
/// How long `plain` is tried; the others get the states that it found.
const TRIAL: Duration = Duration::from_millis(150);
/// A candidate that takes so many times as long is given up.
const SLOWEST: u32 = 12;
/// How long memory should last where the user names no time.
const HORIZON: Duration = Duration::from_secs(600);

/// What is to be decided.
pub(crate) struct Question<'a> {
    pub system: &'a dyn System,
    pub search: Search,
    /// Threads that will search, where a store can be shared.
    pub threads: usize,
    /// Whether the user insists on several.
    pub several: bool,
    /// Bytes for store and frontier; nothing where that is unlimited.
    pub memory: Option<u64>,
    /// Limits of the run.
    pub limits: Limits,
    pub cancel: Cancel,
}

/// A store, and why.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The store.
    pub store: StoreSpec,
    /// Why, in a line.
    pub why: String,
    /// What was tried.
    pub trials: Vec<Trial>,
}

/// A store on the first states.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The store.
    pub store: StoreSpec,
    /// What it took, or why it was not tried to the end.
    pub taken: Result<Taken, String>,
}

/// What a store took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// States that were found.
    pub states: u64,
    /// Bytes of the store for each.
    pub bytes_per_state: f64,
    /// States that all threads together would find in a second.
    pub states_per_second: f64,
    /// States for which there is room.
    pub room: Option<f64>,
    /// How long memory lasts at that speed.
    pub lasts: Option<Duration>,
}

/// Chooses.
pub(crate) fn choose(question: &Question<'_>) -> Choice {
    let mut trials = Vec::new();
    let first = attempt(question, "plain", TRIAL, None);
    let found = match &first {
        Ok((taken, None)) => {
            let why = format!("all {} states were found in a moment", taken.states);
            let store = StoreSpec::default();
            trials.push(Trial { store: store.clone(), taken: Ok(*taken) });
            return Choice { store, why, trials };
        }
        Ok((taken, Some(_))) => taken.states,
        Err(_) => 0,
    };
    trials.push(Trial { store: StoreSpec::default(), taken: first.map(|(taken, _)| taken) });
    for &name in &CANDIDATES[1..] {
        let store = StoreSpec { name: name.into(), options: Vec::new() };
        let info = StoreInfo::by_name(name).filter(|info| info.takes(question.search.order()));
        let taken = match info {
            None => Err("not for this search".into()),
            Some(info) if question.several && !info.threads => Err("runs with one thread".into()),
            Some(_) => attempt(question, name, TRIAL * SLOWEST, Some(found)).map(|(taken, _)| taken),
        };
        let late = taken.as_ref().is_ok_and(|taken: &Taken| taken.states < found);
        trials.push(Trial { store, taken: if late { Err("too slow".into()) } else { taken } });
    }
    decide(trials, question.limits.time.unwrap_or(HORIZON))
}

/// Applies the rule.
fn decide(trials: Vec<Trial>, horizon: Duration) -> Choice {
    let taken = || trials.iter().filter_map(|trial| Some((trial, trial.taken.as_ref().ok()?)));
    let speed = |one: &(&Trial, &Taken), two: &(&Trial, &Taken)| one.1.states_per_second.total_cmp(&two.1.states_per_second);
    let lasting = taken().filter(|(_, taken)| taken.lasts.is_none_or(|lasts| lasts >= horizon)).max_by(speed);
    let roomy = || taken().max_by(|one, two| one.1.room.unwrap_or(0.0).total_cmp(&two.1.room.unwrap_or(0.0)));
    let Some((trial, taken)) = lasting.or_else(roomy) else {
        return Choice { store: StoreSpec::default(), why: "nothing could be tried".into(), trials };
    };
    let figures = format!(
        "{:.2} bytes a state at {:.1} million states a second",
        taken.bytes_per_state,
        taken.states_per_second / 1e6
    );
    let why = match (lasting.is_some(), taken.room) {
        (true, Some(_)) => format!("{figures}; the quickest of those whose memory lasts {}", words(horizon)),
        (true, None) => format!("{figures}; the quickest"),
        (false, _) => format!("{figures}; has room for {:.0} million states, more than others", taken.room.unwrap_or(0.0) / 1e6),
    };
    Choice { store: trial.store.clone(), why, trials }
}

fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds => format!("{} minutes", seconds / 60),
    }
}

/// Runs the search with a store over the first states, and says what ended it, if anything did.
fn attempt(question: &Question<'_>, name: &str, time: Duration, states: Option<u64>) -> Result<(Taken, Option<Stop>), String> {
    let Question { system, search, .. } = question;
    let most = [question.limits.states, states].into_iter().flatten().min();
    let limits = Limits { states: most, time: Some(time), memory: None, depth: question.limits.depth };
    let budget = Arc::new(question.memory.map_or_else(Budget::unlimited, Budget::new));
    let control =
        Control { limits, cancel: question.cancel.clone(), listener: Arc::new(Silent), budget, resident: || None };
    let spec = StoreSpec { name: name.into(), options: Vec::new() };
    let store = build(&spec, *system, search.order(), control.budget.clone()).map_err(|_| "not for this model".to_string())?;
    let task = Task {
        system: *system,
        store: &*store,
        properties: &[],
        control: &control,
        explore_all: true,
        observer: None,
    };
    let outcome = run(*search, task);
    let found = outcome.statistics.states.max(1);
    let stop = match outcome.stopped_by {
        // The user's own limits: there is no more to be found.
        Some(Stop::States) if states.is_none() => None,
        Some(Stop::Depth) | None => None,
        Some(Stop::Memory) => return Err("no memory".into()),
        stop => stop,
    };
    let shared = StoreInfo::by_name(name).is_some_and(|info| info.threads);
    let threads = if shared { question.threads } else { 1 };
    let bytes_per_state = outcome.store_bytes.total() as f64 / found as f64;
    let seconds = outcome.statistics.search_time.as_secs_f64().max(1e-6);
    let states_per_second = threads as f64 * found as f64 / seconds;
    let room = question.memory.map(|memory| memory as f64 / bytes_per_state.max(1e-9));
    let lasts = room.map(|room| Duration::from_secs_f64((room / states_per_second).min(1e9)));
    Ok((Taken { states: found, bytes_per_state, states_per_second, room, lasts }, stop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_testkit::systems::Counters;

    fn trial(name: &str, bytes: f64, speed: f64, memory: f64) -> Trial {
        let room = memory / bytes;
        let lasts = Duration::from_secs_f64(room / speed);
        let taken = Taken {
            states: 1,
            bytes_per_state: bytes,
            states_per_second: speed,
            room: Some(room),
            lasts: Some(lasts),
        };
        Trial { store: StoreSpec { name: name.into(), options: Vec::new() }, taken: Ok(taken) }
    }

    #[test]
    fn the_quickest_whose_memory_lasts_is_taken_and_else_the_one_with_most_room() {
        let all = |memory: f64| vec![trial("plain", 16.0, 4e6, memory), trial("small", 2.0, 3e6, memory), trial("least", 1.0, 1e6, memory)];
        let horizon = Duration::from_secs(100);
        for (memory, expected) in [(1e10, "plain"), (1e9, "small"), (2e8, "least"), (1e6, "least")] {
            assert_eq!(decide(all(memory), horizon).store.name, expected, "{memory}");
        }
        let failed = vec![Trial { store: StoreSpec::default(), taken: Err("no".into()) }];
        assert_eq!(decide(failed, horizon).store.name, "plain");
    }

    #[test]
    fn a_small_model_gets_plain_and_nothing_else_is_tried() {
        let system = Counters::new(3, 5);
        let question = Question {
            system: &system,
            search: Search::Bfs,
            threads: 2,
            several: false,
            memory: Some(1 << 30),
            limits: Limits::default(),
            cancel: Cancel::new(),
        };
        let choice = choose(&question);
        assert_eq!((choice.store.name.as_str(), choice.trials.len()), ("plain", 1));
        assert!(choice.why.contains("125"), "{}", choice.why);
    }

    #[test]
    fn of_a_large_model_several_stores_are_tried_and_those_that_cannot_say_so() {
        let system = Counters::new(8, 20);
        let question = Question {
            system: &system,
            search: Search::Dfs,
            threads: 1,
            several: false,
            memory: Some(1 << 30),
            limits: Limits::default(),
            cancel: Cancel::new(),
        };
        let choice = choose(&question);
        assert_eq!(choice.trials.len(), CANDIDATES.len());
        let breadcrumb = choice.trials.iter().find(|trial| trial.store.name == "breadcrumb");
        assert!(breadcrumb.is_some_and(|trial| trial.taken.is_err()), "it needs levels");
        assert!(choice.trials.iter().filter(|trial| trial.taken.is_ok()).count() >= 3);
    }
}
