//! The partitioned search finds what the oracle finds, whatever the number of parts.

use deltamark_core::{Budget, Cancel, Control, Limits, Property, Stop, Store, System, Verdict};
use deltamark_search::{Partitioned, owner, run_partitioned};
use deltamark_testkit::stores::ReferenceStore;
use deltamark_testkit::systems::{Counters, Still, Workers};
use deltamark_testkit::{RandomGraph, explore};
use std::sync::Arc;

type Fresh = Box<dyn Fn() -> Box<dyn System>>;

fn systems() -> Vec<(String, Fresh)> {
    let mut systems: Vec<(String, Fresh)> = vec![
        ("still".into(), Box::new(|| Box::new(Still))),
        ("workers".into(), Box::new(|| Box::new(Workers::new(2, 2, 2)))),
        ("counters 3, 9".into(), Box::new(|| Box::new(Counters::new(3, 9)))),
        ("counters 12, 4".into(), Box::new(|| Box::new(Counters::new(12, 4)))),
    ];
    for (seed, count) in [(0, 1), (1, 40), (2, 300), (3, 900), (4, 2000)] {
        systems.push((format!("random {seed}"), Box::new(move || Box::new(RandomGraph::new(seed, count)))));
    }
    systems
}

fn search(
    system: &dyn System,
    parts: usize,
    properties: &[Property],
    control: &Control,
    explore_all: bool,
) -> deltamark_core::Outcome {
    let stores: Vec<ReferenceStore> = (0..parts).map(|_| ReferenceStore::new(Arc::clone(&control.budget))).collect();
    let stores: Vec<&dyn Store> = stores.iter().map(|store| store as &dyn Store).collect();
    run_partitioned(Partitioned { system, stores: &stores, properties, control, explore_all })
}

#[test]
fn parts_find_what_the_oracle_finds() {
    for (name, fresh) in systems() {
        let expected = explore(&*fresh());
        for parts in [1, 2, 3, 5] {
            let system = fresh();
            let control = Control::new();
            let outcome = search(&*system, parts, &[], &control, true);
            let found = &outcome.statistics;
            let counts = (found.states, found.edges, found.deadlocks, found.depth, found.expanded);
            let states = expected.states.len() as u64;
            let (edges, deadlocks) = (expected.edges.len() as u64, expected.deadlocks.len() as u64);
            assert_eq!(counts, (states, edges, deadlocks, expected.depth(), states), "{name}, {parts} parts");
            assert_eq!((outcome.stopped_by, found.widenings), (None, expected.widenings), "{name}, {parts} parts");
            assert_eq!(control.budget.used(), 0, "{name}, {parts} parts: all that was held is given back");
        }
    }
}

#[test]
fn answers_and_the_lengths_of_traces_do_not_depend_on_the_parts() {
    for (name, fresh) in systems() {
        let answers = |parts: usize, explore_all: bool| {
            let properties = [Property::deadlock_free(), Property::fault_free()];
            let outcome = search(&*fresh(), parts, &properties, &Control::new(), explore_all);
            let answer = |verdict: &Verdict| (verdict.word(), verdict.trace().map(|trace| trace.len()));
            outcome.properties.iter().map(|property| answer(&property.verdict)).collect::<Vec<_>>()
        };
        let expected = answers(1, true);
        for parts in [2, 3, 5] {
            assert_eq!(answers(parts, true), expected, "{name}, {parts} parts");
            assert_eq!(answers(parts, false), expected, "{name}, {parts} parts, until answered");
        }
    }
}

#[test]
fn limits_end_a_run_of_parts() {
    let count = explore(&RandomGraph::new(4, 2000)).states.len() as u64;
    let cancelled = Cancel::new();
    cancelled.cancel();
    let limits = |limits| Control { limits, ..Control::new() };
    let cases = [
        (Control { cancel: cancelled, ..Control::new() }, Some(Stop::Cancelled)),
        (limits(Limits { states: Some(count / 2), ..Limits::default() }), Some(Stop::States)),
        (limits(Limits { states: Some(count), ..Limits::default() }), None),
        (limits(Limits { depth: Some(2), ..Limits::default() }), Some(Stop::Depth)),
        (limits(Limits { time: Some(std::time::Duration::ZERO), ..Limits::default() }), Some(Stop::Time)),
        (Control { budget: Arc::new(Budget::new(60_000)), ..Control::new() }, Some(Stop::Memory)),
    ];
    for (number, (control, expected)) in cases.iter().enumerate() {
        for parts in [1, 3] {
            let outcome = search(&RandomGraph::new(4, 2000), parts, &[], control, true);
            assert_eq!(outcome.stopped_by, *expected, "case {number}, {parts} parts");
        }
    }
}

#[test]
fn the_limit_on_states_is_kept_to_exactly() {
    let count = explore(&RandomGraph::new(4, 2000)).states.len() as u64;
    for round in 0..20 {
        for parts in [1, 2, 3, 5] {
            for limit in [1, 2, count / 2, count - 1, count, count + 1] {
                let control = Control { limits: Limits { states: Some(limit), ..Limits::default() }, ..Control::new() };
                let outcome = search(&RandomGraph::new(4, 2000), parts, &[], &control, true);
                let found = (outcome.statistics.states, outcome.stopped_by);
                let expected = (limit.min(count), (limit < count).then_some(Stop::States));
                assert_eq!(found, expected, "at most {limit}, {parts} parts, round {round}");
            }
        }
    }
}

#[test]
fn every_part_owns_about_as_many_states() {
    for parts in [1, 2, 3, 7] {
        let mut owned = vec![0usize; parts];
        // Hashes that are sums of few coefficients, as those of nets are.
        for number in 0..7000u64 {
            owned[owner(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), parts)] += 1;
        }
        let even = 7000 / parts;
        assert!(owned.iter().all(|&owned| owned.abs_diff(even) <= even / 10), "{owned:?}");
    }
}
