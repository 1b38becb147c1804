//! A run that says it is complete has found everything, however tight its limits.

use deltamark_core::{Budget, Control, Limits, Property, Stop, Width};
use deltamark_search::{Search, Task, run};
use deltamark_store::plain::Plain;
use deltamark_testkit::{RandomGraph, explore};
use std::sync::Arc;

#[test]
fn limits_on_states_and_memory_never_lose_a_state() {
    let system = RandomGraph::of_width(0, Width::Fixed(2), 400);
    let all = explore(&system);
    let everything = all.distances.len() as u64;
    let properties = [Property::deadlock_free()];
    let mut stops = [0; 2];
    for bytes in (1000..14_000).step_by(250) {
        for states in (everything - 100..everything + 20).step_by(7) {
            for search in [Search::Bfs, Search::Dfs] {
                let mut control = Control::new();
                control.limits = Limits { states: Some(states), ..Limits::default() };
                // A budget of its own: what the search holds is not the question here.
                let store = Plain::new(&system, Arc::new(Budget::new(bytes)));
                let task = Task {
                    system: &system,
                    store: &store,
                    properties: &properties,
                    control: &control,
                    explore_all: true,
                    observer: None,
                };
                let outcome = run(search, task);
                let found = &outcome.statistics;
                match outcome.stopped_by {
                    None => assert_eq!(
                        (found.states, found.edges),
                        (everything, all.edges.len() as u64),
                        "{bytes} bytes, {states}"
                    ),
                    Some(Stop::Memory) => stops[0] += 1,
                    Some(Stop::States) => stops[1] += 1,
                    Some(other) => panic!("stopped by {other:?}"),
                }
            }
        }
    }
    assert!(stops.iter().all(|&count| count > 50), "both limits were met: {stops:?}");
}
