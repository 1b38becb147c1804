//! The contract of searches.
//!
//! In: a function that searches. Out: nothing, or a panic that names the system, the store and the promise
//! broken. What stays true: every verdict is compared with the oracle's, with every kind of store; states are
//! identified by their hash, which survives a recoding; a run that was stopped may report only what it saw.

use crate::conformance::question::{self, Question};
use crate::oracle::{Explored, explore};
use crate::random::RandomGraph;
use crate::stores::{KINDS, Maker};
use crate::systems::{Counters, Still, Workers};
use crate::wrappers::{Forward, Renamed};
use deltamark_core::{
    Batch, Block, Budget, Cancel, Control, Event, Goal, Guarantee, Insert, Limits, Listener, Order, Outcome, Property,
    Scratch, Stop, System, Trace, Verdict,
};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_search::{Observer, Task};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Searches; takes what `deltamark_search::run` takes.
pub type Run<'r> = dyn Fn(Task<'_>) -> Outcome + 'r;

/// Checks a search on systems of all kinds with stores of all kinds. In breadth-first order traces are
/// shortest and `depth` is the largest distance.
pub fn check_search(order: Order, run: impl Fn(Task<'_>) -> Outcome) {
    let run: &Run = &run;
    for (name, fresh) in systems() {
        let oracle_system = fresh();
        let expected = explore(&*oracle_system);
        for &(store_name, maker) in KINDS {
            let label = format!("{name}, {store_name} store");
            let case = Case { label, order, run, fresh: &*fresh, maker, expected: &expected, oracle: &*oracle_system };
            case.whole();
            case.answers();
            case.limits();
        }
    }
    for &(store_name, maker) in KINDS {
        endless(run, &format!("endless counters, {store_name} store"), maker);
    }
}

type Fresh = dyn Fn() -> Box<dyn System>;

/// Systems, created anew for every run, because a layout that has widened stays wide.
fn systems() -> Vec<(String, Box<Fresh>)> {
    let mut systems: Vec<(String, Box<Fresh>)> = vec![
        ("still".into(), Box::new(|| Box::new(Still))),
        ("workers 2, 1, 1".into(), Box::new(|| Box::new(Workers::new(2, 1, 1)))),
        ("workers 2, 2, 2".into(), Box::new(|| Box::new(Workers::new(2, 2, 2)))),
        ("counters 3, 9".into(), Box::new(|| Box::new(Counters::new(3, 9)))),
        ("counters 12, 4".into(), Box::new(|| Box::new(Counters::new(12, 4)))),
        // Steps of these can be exchanged, so most edges are not followed.
        ("philosophers 4".into(), Box::new(|| net("philosophers", 4))),
        ("kanban 1, renamed".into(), Box::new(|| Box::new(Renamed::new(net("kanban", 1))))),
        ("database managers 4, forward".into(), Box::new(|| Box::new(Forward::new(net("database-managers", 4))))),
    ];
    for (seed, count) in [(0, 1), (1, 40), (2, 300), (3, 900), (4, 900), (5, 2000)] {
        let fresh = move || Box::new(RandomGraph::new(seed, count)) as Box<dyn System>;
        systems.push((format!("random graph {seed}"), Box::new(fresh)));
    }
    systems
}

fn net(family: &str, size: u32) -> Box<dyn System> {
    Box::new(NetSystem::new(generate(family, size).expect("a known family")))
}

/// One system with one kind of store.
struct Case<'a> {
    label: String,
    order: Order,
    run: &'a Run<'a>,
    fresh: &'a Fresh,
    maker: Maker,
    expected: &'a Explored,
    /// The system the oracle explored: its layout is that of `expected`.
    oracle: &'a dyn System,
}

/// Counts what an observer sees.
#[derive(Default)]
struct Counting {
    states: u64,
    edges: u64,
    new: u64,
}

impl Observer for Counting {
    fn expanded(&mut self, _: &dyn System, _: &mut Scratch, block: &Block, batch: &Batch, answers: &[Insert]) {
        assert_eq!(answers.len(), batch.len(), "an observer sees an answer for each successor");
        self.states += block.len() as u64;
        self.edges += batch.len() as u64;
        self.new += answers.iter().filter(|answer| matches!(answer, Insert::New(_))).count() as u64;
    }
}

/// Counts events.
#[derive(Default)]
struct Hearing {
    widened: AtomicU64,
    answered: AtomicU64,
}

impl Listener for Hearing {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Widened(_) => self.widened.fetch_add(1, Relaxed),
            Event::Answered(..) => self.answered.fetch_add(1, Relaxed),
            Event::Progress(_) => 0,
        };
    }
}

impl Case<'_> {
    /// Runs the search on a fresh system; also returns the system, for replaying traces.
    fn search(&self, properties: &[Property], control: &Control, explore_all: bool) -> (Box<dyn System>, Outcome) {
        let system = (self.fresh)();
        let store = (self.maker)(&*system, Arc::clone(&control.budget));
        let observer = None;
        let task = Task { system: &*system, store: &*store, properties, control, explore_all, observer };
        let outcome = (self.run)(task);
        let names: Vec<&str> = outcome.properties.iter().map(|property| property.name.as_str()).collect();
        let asked: Vec<&str> = properties.iter().map(|property| property.name.as_str()).collect();
        assert_eq!(names, asked, "{}: each property has its answer, in order", self.label);
        drop(store);
        (system, outcome)
    }

    /// Whether this outcome rests on a store that may omit states.
    fn lossy(outcome: &Outcome) -> bool {
        matches!(outcome.guarantee, Guarantee::Omission(_))
    }

    /// The whole state space, without properties.
    fn whole(&self) {
        let label = &self.label;
        let system = (self.fresh)();
        let hearing = Arc::new(Hearing::default());
        let control = Control { listener: Arc::clone(&hearing) as _, ..Control::new() };
        let store = (self.maker)(&*system, Arc::clone(&control.budget));
        let mut counting = Counting::default();
        let outcome = (self.run)(Task {
            system: &*system,
            store: &*store,
            properties: &[],
            control: &control,
            explore_all: true,
            observer: Some(&mut counting),
        });
        let (statistics, expected) = (&outcome.statistics, self.expected);
        assert_eq!(outcome.stopped_by, None, "{label}: without limits the run is complete");
        // 40-bit signatures do not collide among so few states.
        assert_eq!(statistics.states, expected.states.len() as u64, "{label}: it finds all states");
        assert_eq!(statistics.expanded, statistics.states, "{label}: it expands all states");
        assert_eq!(statistics.edges, expected.edges.len() as u64, "{label}: it counts all edges");
        assert_eq!(statistics.deadlocks, expected.deadlocks.len() as u64, "{label}: it counts all deadlocks");
        match self.order {
            Order::Levels => assert_eq!(statistics.depth, expected.depth(), "{label}: depth is the distance"),
            Order::Any => assert!(statistics.depth >= expected.depth(), "{label}: depth is at least the distance"),
        }
        assert_eq!(statistics.widenings, expected.widenings, "{label}: it counts widenings");
        assert_eq!(hearing.widened.load(Relaxed), expected.widenings, "{label}: it tells of widenings");
        assert_eq!(counting.states, statistics.states, "{label}: the observer sees all states");
        assert_eq!(counting.edges, statistics.edges, "{label}: the observer sees all edges");
        assert_eq!(counting.new + expected.initial as u64, statistics.states, "{label}: it sees each state come once");
        assert_eq!(outcome.store_bytes, store.bytes(), "{label}: the outcome has the store's bytes");
        assert_eq!(outcome.guarantee, store.guarantee(), "{label}: the outcome has the store's guarantee");
    }

    /// The questions that make sense for this system.
    fn questions(&self) -> Vec<Question> {
        let mut scratch = self.oracle.scratch();
        let mut questions = vec![
            question::deadlock_free(self.expected),
            question::fault_free(self.expected),
            question::never_dead(self.expected),
            question::always(),
            question::nowhere(),
        ];
        // An initial state, one in the middle, and the farthest.
        let count = self.expected.states.len();
        for number in [0, count / 2, count - 1] {
            let hash = self.oracle.hash(&mut scratch, &self.expected.states[number]);
            let distance = self.expected.distances[number];
            questions.extend(question::about(hash, distance));
        }
        questions
    }

    /// All questions at once, then each alone.
    fn answers(&self) {
        let (properties, checks): (Vec<_>, Vec<_>) = self.questions().into_iter().map(Question::split).unzip();
        let hearing = Arc::new(Hearing::default());
        let control = Control { listener: Arc::clone(&hearing) as _, ..Control::new() };
        let (system, outcome) = self.search(&properties, &control, true);
        assert_eq!(outcome.stopped_by, None, "{}: asked to explore all, it does", self.label);
        let states = outcome.statistics.states;
        assert_eq!(states, self.expected.states.len() as u64, "{}: it finds all states", self.label);
        let edges = outcome.statistics.edges;
        assert_eq!(edges, self.expected.edges.len() as u64, "{}: edges that are not followed are counted", self.label);
        let mut traces = 0;
        for ((answer, check), property) in outcome.properties.iter().zip(&checks).zip(&properties) {
            self.right(&*system, &outcome, &answer.verdict, check, property);
            traces += u64::from(answer.verdict.trace().is_some());
        }
        assert!(hearing.answered.load(Relaxed) >= traces, "{}: it tells of answers", self.label);
        for (property, check) in properties.iter().zip(&checks) {
            let alone = std::slice::from_ref(property);
            let (system, outcome) = self.search(alone, &Control::new(), false);
            let verdict = &outcome.properties[0].verdict;
            self.right(&*system, &outcome, verdict, check, property);
            let answered = verdict.trace().is_some();
            assert!(
                outcome.stopped_by.is_none_or(|stop| stop == Stop::Answered && answered),
                "{}: it stops early only when all is answered, `{}`",
                self.label,
                property.name
            );
        }
    }

    /// Checks one verdict of a run without limits.
    fn right(
        &self,
        system: &dyn System,
        outcome: &Outcome,
        verdict: &Verdict,
        check: &question::Expected,
        of: &Property,
    ) {
        let place = format!("{}, `{}`", self.label, of.name);
        let reachable = matches!(of.goal, Goal::Reachable(_));
        let Some(distance) = check.distance else {
            // Only the end of the state space decides the question.
            match verdict {
                Verdict::Holds(None) => assert!(!reachable && !Self::lossy(outcome), "{place}: holds is certain"),
                Verdict::Violated(None, _) => {
                    assert!(reachable && !Self::lossy(outcome), "{place}: a violation without trace is certain");
                }
                Verdict::NoViolationFound(chance) => {
                    assert!(Self::lossy(outcome) && !reachable, "{place}: an exact store gives a certain answer");
                    assert!((0.0..=1.0).contains(chance), "{place}: a probability lies between 0 and 1");
                }
                Verdict::Unknown => {
                    assert!(Self::lossy(outcome) && reachable, "{place}: a complete run knows the answer");
                }
                other => panic!("{place}: there is nothing to find, but the verdict is {other:?}"),
            }
            return;
        };
        let trace = match (verdict, check.holds) {
            (Verdict::Holds(Some(trace)), true) => trace,
            (Verdict::Violated(Some(trace), message), false) => {
                let told = message.as_deref().unwrap_or_default();
                assert!(told.contains(check.message), "{place}: the message `{told}` says `{}`", check.message);
                trace
            }
            _ => panic!("{place}: there is something to find at distance {distance}, but the verdict is {verdict:?}"),
        };
        self.leads(system, &place, trace, distance, check);
    }

    /// Checks that a trace replays to a state that decides the question.
    fn leads(&self, system: &dyn System, place: &str, trace: &Trace, distance: u64, check: &question::Expected) {
        let replay = match trace.replay(system) {
            Ok(replay) => replay,
            Err(error) => panic!("{place}: the trace replays: {error}"),
        };
        let last = replay.states.last().expect("a replayed trace has an initial state");
        assert!((check.ends)(system, last, replay.fault.as_deref()), "{place}: the trace ends where it should");
        let steps = replay.states.len() as u64 - 1;
        match self.order {
            Order::Levels => assert_eq!(steps, distance, "{place}: the trace is shortest"),
            Order::Any => assert!(steps >= distance, "{place}: no trace is shorter than the shortest"),
        }
    }

    /// Runs with limits.
    fn limits(&self) {
        let label = &self.label;
        let (count, depth) = (self.expected.states.len() as u64, self.expected.depth());
        let cancelled = Cancel::new();
        cancelled.cancel();
        let stop = |control: Control| self.cut_short(&control);
        assert_eq!(stop(Control { cancel: cancelled, ..Control::new() }), Some(Stop::Cancelled), "{label}: cancelled");
        let limits = |limits| stop(Control { limits, ..Control::new() });
        let no_time = Limits { time: Some(Duration::ZERO), ..Limits::default() };
        assert_eq!(limits(no_time), Some(Stop::Time), "{label}: no time");
        let plenty = Limits {
            states: Some(count + 1),
            depth: Some(u64::MAX),
            time: Some(Duration::from_secs(600)),
            memory: None,
        };
        assert_eq!(limits(plenty), None, "{label}: limits that are not reached stop nothing");
        if count > self.expected.initial as u64 {
            let few = Limits { states: Some(count - 1), ..Limits::default() };
            assert_eq!(limits(few), Some(Stop::States), "{label}: one state too few");
            let one = Limits { states: Some(1), ..Limits::default() };
            assert_eq!(limits(one), Some(Stop::States), "{label}: one state only");
            // The cheapest reference store takes 16 bytes a state.
            let budget = Arc::new(Budget::new((count - 1) * 16));
            assert_eq!(stop(Control { budget, ..Control::new() }), Some(Stop::Memory), "{label}: too little memory");
        }
        if depth > 0 && self.order == Order::Levels {
            let shallow = Limits { depth: Some(depth - 1), ..Limits::default() };
            assert_eq!(limits(shallow), Some(Stop::Depth), "{label}: one level too few");
            let deep = Limits { depth: Some(depth), ..Limits::default() };
            assert_eq!(limits(deep), None, "{label}: as deep as the system is");
        }
    }

    /// Runs with limits, checks that its report is sound, and returns why it stopped.
    fn cut_short(&self, control: &Control) -> Option<Stop> {
        let label = &self.label;
        let (properties, checks): (Vec<_>, Vec<_>) = self.questions().into_iter().map(Question::split).unzip();
        let (system, outcome) = self.search(&properties, control, true);
        let statistics = &outcome.statistics;
        assert!(statistics.states <= self.expected.states.len() as u64, "{label}: it finds no state twice");
        assert!(statistics.edges <= self.expected.edges.len() as u64, "{label}: it counts no edge twice");
        if let Some(limit) = control.limits.states {
            assert!(statistics.states <= limit, "{label}: it keeps to the limit of {limit} states");
        }
        if let Some(limit) = control.limits.depth {
            assert!(statistics.depth <= limit, "{label}: it keeps to the limit of depth {limit}");
            if self.order == Order::Levels {
                let within = self.expected.distances.iter().filter(|&&distance| distance <= limit).count() as u64;
                assert_eq!(statistics.states, within, "{label}: it finds all states up to depth {limit}");
            }
        }
        for ((answer, check), property) in outcome.properties.iter().zip(&checks).zip(&properties) {
            match (&answer.verdict, outcome.stopped_by) {
                (Verdict::Unknown, Some(_)) => {}
                // The answer is known, but there was no memory for a second search.
                (Verdict::Holds(None) | Verdict::Violated(None, _), Some(stop))
                    if stop == Stop::Memory && answer.untraced == Some(stop) => {}
                (Verdict::Holds(Some(_)) | Verdict::Violated(Some(_), _), Some(_)) | (_, None) => {
                    self.right(&*system, &outcome, &answer.verdict, check, property);
                }
                (other, Some(stop)) => {
                    panic!("{label}, `{}`: a run stopped by {} cannot say {other:?}", property.name, stop.word())
                }
            }
        }
        outcome.stopped_by
    }
}

/// An infinite system is stopped by a limit, over any number of widenings.
fn endless(run: &Run, label: &str, maker: Maker) {
    let states = Limits { states: Some(3_000), ..Limits::default() };
    let controls = [
        (Control { limits: states, ..Control::new() }, Stop::States),
        (Control { budget: Arc::new(Budget::new(200_000)), ..Control::new() }, Stop::Memory),
    ];
    for (control, expected) in controls {
        let system = Counters::endless(2);
        let store = maker(&system, Arc::clone(&control.budget));
        let properties = [Property::deadlock_free()];
        let outcome = run(Task {
            system: &system,
            store: &*store,
            properties: &properties,
            control: &control,
            explore_all: false,
            observer: None,
        });
        assert_eq!(outcome.stopped_by, Some(expected), "{label}: it is stopped");
        assert!(matches!(outcome.properties[0].verdict, Verdict::Unknown), "{label}: nothing is known of what is left");
        assert!(outcome.statistics.widenings > 2, "{label}: it widens on the way");
    }
}
