//! Stratified caching: `delta:forget=…` counts what a look at all states counts, finds shortest traces, ends within its limits, and
//! tells how many states it explored again.

use deltamark_core::{Again, Budget, Control, Limits, Outcome, Property, Stop, System, Verdict, Width};
use deltamark_nets::NetSystem;
use deltamark_nets::generate::generate;
use deltamark_search::{Search, Task, run};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::oracle::{Explored, explore};
use deltamark_testkit::random::{RandomGraph, Rng};
use deltamark_testkit::systems::{Counters, Workers};
use deltamark_testkit::{Forward, PoorHash};
use std::sync::Arc;

fn search(system: &dyn System, spec: &str, control: &Control, explore_all: bool) -> Outcome {
    let spec: StoreSpec = spec.parse().expect("a store");
    let store = build(&spec, system, Search::Bfs.order(), Arc::clone(&control.budget)).expect("a store");
    let properties = [Property::deadlock_free(), Property::fault_free()];
    let task = Task { system, store: &*store, properties: &properties, control, explore_all, observer: None };
    run(Search::Bfs, task)
}

fn steps(verdict: &Verdict) -> Option<u64> {
    verdict.trace().map(|trace| trace.len() as u64)
}

/// Compares a run that has explored everything with a look at all states; returns how many were explored again.
fn compare(outcome: &Outcome, all: &Explored, label: &str) -> u64 {
    assert_eq!(outcome.stopped_by, None, "{label}");
    let found = &outcome.statistics;
    let counts = (found.states, found.edges, found.deadlocks, found.depth, found.expanded);
    let states = all.states.len() as u64;
    assert_eq!(counts, (states, all.edges.len() as u64, all.deadlocks.len() as u64, all.depth(), states), "{label}");
    let [deadlock, fault] = [0, 1].map(|property| steps(&outcome.properties[property].verdict));
    assert_eq!((deadlock, fault), (all.nearest_deadlock(), all.nearest_fault()), "{label}");
    match found.again {
        Again::Counted(again) => again,
        Again::Unknown => panic!("{label}: there was room to count"),
    }
}

/// A name, and how a system is made anew: layouts widen.
type Fresh = (String, Box<dyn Fn() -> Box<dyn System>>);

fn systems() -> Vec<Fresh> {
    let mut systems: Vec<Fresh> = vec![
        ("counters".into(), Box::new(|| Box::new(Counters::new(4, 6)))),
        ("forward counters".into(), Box::new(|| Box::new(Forward::new(Box::new(Counters::new(3, 5)))))),
        ("workers".into(), Box::new(|| Box::new(Workers::new(2, 2, 2)))),
        ("poor hash".into(), Box::new(|| Box::new(PoorHash::new(Box::new(Counters::new(3, 5)), 3)))),
    ];
    for (family, size) in [("philosophers", 5), ("kanban", 1), ("slotted-ring", 2)] {
        if let Ok(net) = generate(family, size) {
            systems.push((family.into(), Box::new(move || Box::new(NetSystem::new(net.clone())))));
        }
    }
    for seed in 0..20 {
        let width = if seed % 3 == 0 { Width::Varies } else { Width::Fixed(1 + seed as usize % 4) };
        let states = 30 + 40 * seed as usize;
        systems.push((format!("graph {seed}"), Box::new(move || Box::new(RandomGraph::of_width(seed, width, states)))));
    }
    // Rings of several lengths that share states: few successors, many levels, edges that lead far back.
    for seed in 0..20 {
        systems.push((format!("net {seed}"), Box::new(move || Box::new(NetSystem::new(rings(seed))))));
    }
    systems
}

/// A net of tokens that go round, some faster than others, and back to the beginning now and then.
fn rings(seed: u64) -> deltamark_nets::Net {
    use std::fmt::Write;
    let mut rng = Rng::new(seed);
    let mut text = String::new();
    for ring in 0..2 + seed % 2 {
        let length = 3 + rng.below(5);
        writeln!(text, "pl r{ring}_0 (1)").expect("text");
        for at in 0..length {
            writeln!(text, "tr go{ring}_{at} r{ring}_{at} -> r{ring}_{}", (at + 1) % length).expect("text");
            if rng.below(3) == 0 {
                writeln!(text, "tr jump{ring}_{at} r{ring}_{at} -> r{ring}_{}", rng.below(length)).expect("text");
            }
        }
    }
    deltamark_nets::tina::parse(&text).expect("a net")
}

#[test]
fn counts_and_distances_are_those_of_a_look_at_all_states() {
    let mut explored_again = 0;
    for (name, fresh) in systems() {
        let all = explore(&*fresh());
        for (k, forget) in [(2, 1), (3, 1), (3, 2), (5, 2), (5, 4), (7, 6), (50, 49)] {
            for options in ["", ",update=off", ",backward=off", ",base=collapse"] {
                let spec = format!("delta:k={k},forget={forget}{options}");
                let outcome = search(&*fresh(), &spec, &Control::new(), true);
                explored_again += compare(&outcome, &all, &format!("{name}, {spec}"));
            }
        }
    }
    assert!(explored_again > 10_000, "{explored_again} states were explored again");
}

#[test]
fn answers_end_the_run_with_the_counts_of_whole_levels() {
    let mut again = 0;
    for (name, fresh) in systems() {
        let of = |spec: &str| {
            let outcome = search(&*fresh(), spec, &Control::new(), false);
            let found = outcome.statistics;
            let verdicts: Vec<_> =
                outcome.properties.iter().map(|found| (found.verdict.word(), steps(&found.verdict))).collect();
            (found.again, (found.states, found.edges, found.deadlocks, found.expanded, verdicts, outcome.stopped_by))
        };
        let (none, expected) = of("plain");
        let (counted, found) = of("delta:k=4,forget=3");
        assert_eq!((none, found), (Again::Counted(0), expected), "{name}");
        again += match counted {
            Again::Counted(again) => again,
            Again::Unknown => panic!("{name}"),
        };
    }
    assert!(again > 0);
}

#[test]
fn limits_are_kept_and_the_counts_of_runs_that_end_early_are_not_called_exact() {
    let system = NetSystem::new(rings(1));
    let all = explore(&system).states.len() as u64;
    let limits = Limits { states: Some(all - 5), ..Limits::default() };
    let outcome = search(&system, "delta:k=3,forget=2", &Control { limits, ..Control::new() }, true);
    assert_eq!((outcome.stopped_by, outcome.statistics.again), (Some(Stop::States), Again::Unknown));
    assert_eq!(outcome.statistics.states, all - 5);
    let limits = Limits { states: Some(all - 5), ..Limits::default() };
    let unneeded = search(&system, "delta:forget=short", &Control { limits, ..Control::new() }, true);
    assert_eq!((unneeded.stopped_by, unneeded.statistics.again), (Some(Stop::States), Again::Counted(0)));
    let limits = Limits { depth: Some(4), ..Limits::default() };
    let control = Control { limits, ..Control::new() };
    let [few, plain] = ["delta:k=3,forget=2", "plain"].map(|spec| search(&system, spec, &control, true));
    assert_eq!(few.stopped_by, Some(Stop::Depth));
    assert_eq!((few.statistics.states, few.statistics.edges), (plain.statistics.states, plain.statistics.edges));
}

#[test]
fn less_memory_is_enough_and_its_limit_is_kept() {
    for is_undone in [true, false] {
        let family = if is_undone { "steps are undone" } else { "states are rebuilt" };
        let run = |spec: &str, bytes: u64| {
            let net = NetSystem::new(generate("kanban", 3).expect("a family"));
            let system: Box<dyn System> = if is_undone { Box::new(net) } else { Box::new(Forward::new(Box::new(net))) };
            let budget = Arc::new(Budget::new(bytes));
            let outcome = search(&*system, spec, &Control { budget: Arc::clone(&budget), ..Control::new() }, true);
            assert!(budget.peak() <= bytes, "{spec}: {} of {bytes}", budget.peak());
            (outcome, budget.peak())
        };
        let (whole, most) = run("delta", u64::MAX);
        let (mut helped, mut ended, mut again) = (0, 0, 0);
        for part in (20..=100).rev().step_by(8) {
            let bytes = most * part / 100;
            let (with, _) = run("delta:forget=short", bytes);
            let without = run("delta", bytes).0;
            if with.stopped_by.is_some() {
                assert_eq!(with.stopped_by, Some(Stop::Memory));
                assert!(without.stopped_by.is_some(), "forgetting takes no more memory");
                ended += 1;
                continue;
            }
            helped += u64::from(without.stopped_by.is_some());
            match with.statistics.again {
                Again::Counted(more) => {
                    again += more;
                    let counts = |outcome: &Outcome| {
                        let found = &outcome.statistics;
                        (found.states, found.edges, found.deadlocks, found.depth, found.expanded)
                    };
                    assert_eq!(counts(&with), counts(&whole), "{family}, {bytes} bytes");
                }
                Again::Unknown => assert!(with.statistics.states >= whole.statistics.states),
            }
        }
        println!("{family}: {helped} limits more, {ended} too small, {again} states again");
        assert!(helped >= 2 && ended > 0 && again > 0, "{family}: {helped}, {ended}, {again}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let system = NetSystem::new(rings(1));
    let made = |spec: &str, search: Search| {
        let spec: StoreSpec = spec.parse().expect("a store");
        build(&spec, &system, search.order(), Control::new().budget).map(|_| ()).map_err(|error| error.0)
    };
    for spec in ["delta:k=1,forget=short", "delta:k=3,forget=3", "delta:k=3,forget=0", "delta:forget=yes"] {
        let error = made(spec, Search::Bfs).expect_err(spec);
        assert!(error.contains("`forget`"), "{error}");
    }
    assert!(made("delta:forget=short", Search::Dfs).is_err_and(|error| error.contains("breadth-first")));
    assert_eq!(made("delta:k=3,forget=2", Search::Bfs), Ok(()));
    assert_eq!(made("delta:forget=off", Search::Dfs), Ok(()));
}
