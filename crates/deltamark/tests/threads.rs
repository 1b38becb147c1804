//! Threads: whatever their number, nets with answers from outside have the same counts, verdicts
//! and lengths of traces, with every store that several threads can use.

use deltamark::{Check, CheckError, load};
use deltamark_core::{Budget, Cancel, Control, Event, Limits, Listener, Property, Stop, System};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_search::{Search, Task, Threads, run_on};
use deltamark_store::{CATALOGUE, StoreInfo, StoreSpec, build};
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The stores that several threads can use.
fn stores() -> impl Iterator<Item = &'static StoreInfo> {
    CATALOGUE.iter().filter(|info| info.threads)
}

/// What must not depend on threads.
#[derive(Debug, PartialEq)]
struct Found {
    counts: [u64; 5],
    stopped_by: Option<Stop>,
    verdict: &'static str,
    trace: Option<usize>,
}

/// Searches a net with threads that share every level, however small; to its end, or until it is
/// known whether there is a deadlock.
fn search(path: &str, store: &str, count: usize, explore_all: bool, depth: Option<u64>) -> Found {
    // Loaded anew: a layout that has widened stays wide.
    let net = load(path, None).unwrap_or_else(|error| panic!("{path}: {error}"));
    let system = net.system.as_ref();
    let control = Control { limits: Limits { depth, ..Limits::default() }, ..Control::new() };
    let spec: StoreSpec = store.parse().expect("a store");
    let store = build(&spec, system, Search::Bfs.order(), Arc::clone(&control.budget)).expect("a store");
    let properties = [Property::deadlock_free()];
    let task = Task { system, store: &*store, properties: &properties, control: &control, explore_all, observer: None };
    let outcome = run_on(Threads { count, small: 0 }, Search::Bfs, task);
    let found = &outcome.statistics;
    let verdict = &outcome.properties[0].verdict;
    match outcome.stopped_by {
        // Some of the next level were found, and do not count.
        Some(Stop::Answered) => assert!(store.len() >= found.states && found.expanded == found.states),
        _ => assert_eq!(store.len(), found.states),
    }
    assert_eq!(
        control.budget.used(),
        store.bytes().total() + store.frontier_bytes(),
        "{spec}, {count} threads: the frontier is given back, the store told"
    );
    Found {
        counts: [found.states, found.edges, found.deadlocks, found.depth, found.expanded],
        stopped_by: outcome.stopped_by,
        verdict: verdict.word(),
        trace: verdict.trace().map(|trace| trace.len()),
    }
}

fn nets(test: &str, sizes: std::ops::RangeInclusive<u64>) -> Vec<(String, String, Row)> {
    let Some(corpus) = Corpus::find(test) else { return Vec::new() };
    let wanted = |row: &Row| {
        row.text("kind") == Some("PT") && row.number("states").is_some_and(|states| sizes.contains(&states))
    };
    let net = |row: Row| {
        let model = row.text("model").expect("every row names its model").to_string();
        let path = corpus.file("pnml", &format!("{model}.pnml"));
        (model, path.to_string_lossy().into_owned(), row)
    };
    corpus.expected("pnml").into_iter().filter(wanted).map(net).collect()
}

fn same_for_all_threads(test: &str, sizes: std::ops::RangeInclusive<u64>, threads: &[usize]) {
    for (model, path, row) in nets(test, sizes) {
        // A lossy array may miss a state of many, and not always the same.
        let few = row.number("states").is_some_and(|states| states <= 6_000);
        for store in stores().filter(|store| few || store.name != "bitstate") {
            // The largest array by default is of 128 MiB, which takes longer to clear than a search.
            let spec = if store.name == "bitstate" { "bitstate:bits=26".into() } else { store.name.to_string() };
            let one = search(&path, &spec, 1, true, None);
            assert_eq!(Some(one.counts[0]), row.number("states"), "{model}, {spec}");
            for &count in threads {
                assert_eq!(search(&path, &spec, count, true, None), one, "{model}, {spec}, {count} threads");
            }
        }
    }
}

#[test]
fn small_nets_are_the_same_for_any_number_of_threads() {
    same_for_all_threads("small_nets_are_the_same_for_any_number_of_threads", 0..=6_000, &[2, 3, 8]);
}

#[test]
fn larger_nets_are_the_same_for_any_number_of_threads() {
    same_for_all_threads("larger_nets_are_the_same_for_any_number_of_threads", 100_000..=160_000, &[2, 8]);
}

#[test]
fn runs_that_end_with_their_answer_or_at_a_depth_are_the_same_for_any_number_of_threads() {
    let test = "runs_that_end_with_their_answer_or_at_a_depth_are_the_same_for_any_number_of_threads";
    let mut ended = [0, 0];
    for (model, path, _) in nets(test, 200..=6_000) {
        for depth in [None, Some(7)] {
            let one = search(&path, "plain", 1, false, depth);
            ended[0] += usize::from(one.stopped_by == Some(Stop::Answered));
            ended[1] += usize::from(one.stopped_by == Some(Stop::Depth));
            for store in ["plain", "tree", "compact", "collapse"] {
                for count in [1, 2, 3] {
                    let found = search(&path, store, count, false, depth);
                    assert_eq!(found, one, "{model}, {store}, {count} threads, {depth:?}");
                }
            }
        }
    }
    assert!(ended.iter().all(|&runs| runs > 5 || Corpus::find(test).is_none()), "{ended:?}");
}

#[test]
#[ignore = "takes minutes: part of scripts/long"]
fn nets_of_more_states_are_the_same_for_any_number_of_threads() {
    let test = "nets_of_more_states_are_the_same_for_any_number_of_threads";
    same_for_all_threads(test, 6_001..=400_000, &[2, 8]);
}

fn kanban(size: u32) -> NetSystem {
    NetSystem::new(generate("kanban", size).expect("a net"))
}

#[test]
fn limits_hold_for_all_threads_together() {
    let net = kanban(3);
    for store in stores().filter(|info| info.name != "bitstate") {
        for threads in [1, 2, 8] {
            let run = |limits: Limits| {
                let spec = store.name.parse().expect("a name");
                let check = Check::new(&net).explore_all(true).deadlock_free().store(spec).threads(threads);
                check.limits(limits).run().expect("a run")
            };
            let report = run(Limits { states: Some(10_000), ..Limits::default() });
            assert_eq!(report.stopped_by, Some(Stop::States), "{}, {threads} threads", store.name);
            assert_eq!(report.statistics.states, 10_000, "{}, {threads} threads: exactly", store.name);
            let report = run(Limits { states: Some(58_400), ..Limits::default() });
            assert_eq!(report.stopped_by, None, "{}, {threads} threads: as many as there are", store.name);
            let report = run(Limits { depth: Some(10), ..Limits::default() });
            assert_eq!(report.stopped_by, Some(Stop::Depth), "{}, {threads} threads", store.name);
            let report = run(Limits { time: Some(Duration::ZERO), ..Limits::default() });
            assert_eq!(report.stopped_by, Some(Stop::Time), "{}, {threads} threads", store.name);
        }
    }
}

#[test]
fn a_small_budget_ends_a_run_of_threads_and_is_kept() {
    let net = kanban(4);
    let system = &net as &dyn System;
    for info in stores().filter(|info| info.name != "bitstate") {
        for count in [2, 8] {
            let budget = Arc::new(Budget::new(1 << 20));
            let control = Control { budget: Arc::clone(&budget), ..Control::new() };
            let spec = info.name.parse().expect("a name");
            let store = build(&spec, system, Search::Bfs.order(), Arc::clone(&budget)).expect("a store");
            let (store, control) = (&*store, &control);
            let task = Task { system, store, properties: &[], control, explore_all: true, observer: None };
            let outcome = run_on(Threads::new(count), Search::Bfs, task);
            let found = &outcome.statistics;
            // Some stores hold it all in a megabyte.
            assert!(matches!(outcome.stopped_by, None | Some(Stop::Memory)), "{}, {count} threads", info.name);
            assert!(budget.peak() <= budget.limit() && found.expanded <= found.states && found.states > 1000);
            assert_eq!(budget.used(), store.bytes().total() + store.frontier_bytes(), "{}, {count} threads", info.name);
        }
    }
}

/// Stops a run in the middle of its work.
struct Impatient {
    cancel: Cancel,
    progress: AtomicU64,
}

impl Listener for Impatient {
    fn event(&self, event: &Event<'_>) {
        if let Event::Progress(snapshot) = event {
            assert!(snapshot.frontier <= snapshot.states);
            self.progress.fetch_add(1, Relaxed);
            self.cancel.cancel();
        }
    }
}

#[test]
fn a_run_of_threads_is_cancelled() {
    let net = kanban(7);
    let cancel = Cancel::new();
    let listener = Arc::new(Impatient { cancel: cancel.clone(), progress: AtomicU64::new(0) });
    let check = Check::new(&net).explore_all(true).threads(3).cancel(cancel);
    let report = check.listener(Arc::clone(&listener) as _).run().expect("a run");
    assert_eq!(report.stopped_by, Some(Stop::Cancelled));
    assert!(listener.progress.load(Relaxed) >= 1 && report.statistics.expanded <= report.statistics.states);
}

#[test]
fn figures_of_the_state_space_do_not_depend_on_threads() {
    let net = kanban(4);
    let stats = |threads: usize| {
        let stats = Check::new(&net).threads(threads).stats().expect("a run");
        (stats.survey, stats.report.statistics.edges)
    };
    assert_eq!(stats(1), stats(4));
}

#[test]
fn what_runs_with_one_thread_says_so() {
    let net = kanban(1);
    let run = |store: &str, search: Search, threads: Option<usize>| {
        let check = Check::new(&net).store(store.parse().expect("a store")).search(search);
        let check = if let Some(threads) = threads { check.threads(threads) } else { check };
        (check.thread_count().0, check.run().map(|report| report.statistics.states))
    };
    assert_eq!(run("delta", Search::Bfs, None), (1, Ok(160)));
    assert_eq!(run("delta", Search::Bfs, Some(1)), (1, Ok(160)));
    assert_eq!(run("plain", Search::Dfs, None), (1, Ok(160)));
    assert_eq!(run("plain", Search::Bfs, Some(5)), (5, Ok(160)));
    for (store, search, words) in [
        ("delta", Search::Bfs, "the store `delta` runs with one thread; several can share plain, "),
        ("plain", Search::Dfs, "the search `dfs` runs with one thread; several can share `--search bfs`"),
    ] {
        match run(store, search, Some(2)).1 {
            Err(CheckError::Threads(message)) => assert!(message.starts_with(words), "{message}"),
            other => panic!("{store}: {other:?}"),
        }
    }
}
