//! Probes find deep errors long before a search by levels does, and change nothing else.

use deltamark_core::{Budget, Control, Goal, Outcome, Property, System, Verdict};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_search::{Probing, Search, Task, Threads, run, run_probing};
use deltamark_testkit::stores::KINDS;

fn net(family: &str, size: u32) -> NetSystem {
    NetSystem::new(generate(family, size).expect("there is such a family"))
}

fn explored(system: &dyn System, properties: &[Property], probing: Option<Probing>, control: &Control) -> Outcome {
    let store = KINDS[0].1(system, Budget::unlimited().into());
    let task = Task { system, store: &*store, properties, control, explore_all: false, observer: None };
    match probing {
        Some(probing) => run_probing(probing, Threads::ONE, Search::Bfs, task),
        None => run(Search::Bfs, task),
    }
}

#[test]
fn a_deep_deadlock_is_found_among_few_states() {
    for size in [12, 30, 60] {
        let outcome = explored(
            &net("philosophers", size),
            &[Property::deadlock_free()],
            Some(Probing::default()),
            &Control::new(),
        );
        let [answer] = &outcome.properties[..] else { panic!("one was asked") };
        let Verdict::Violated(Some(trace), _) = &answer.verdict else { panic!("{size}: {:?}", answer.verdict) };
        assert!(answer.probed && trace.len() >= size as usize, "{size}: {} steps", trace.len());
        assert!(outcome.statistics.states < 300_000, "{size}: {} states", outcome.statistics.states);
    }
}

#[test]
fn what_holds_is_explored_as_without_probes() {
    let plain = explored(&net("kanban", 2), &[Property::deadlock_free()], None, &Control::new());
    for first in [0, 10, 1000] {
        let probing = Some(Probing { first });
        let outcome = explored(&net("kanban", 2), &[Property::deadlock_free()], probing, &Control::new());
        let figures = |outcome: &Outcome| {
            let counted = &outcome.statistics;
            (counted.states, counted.edges, counted.left_out, counted.depth, counted.expanded, counted.widenings)
        };
        assert_eq!(figures(&outcome), figures(&plain), "from {first} states on");
        assert!(matches!(outcome.properties[0].verdict, Verdict::Holds(None)) && !outcome.properties[0].probed);
    }
}

#[test]
fn probes_keep_to_the_limit_on_depth() {
    let mut control = Control::new();
    control.limits.depth = Some(5);
    let goal = Goal::DeadlockFree;
    let property = Property { name: goal.word().into(), text: String::new(), goal };
    let outcome = explored(&net("philosophers", 12), &[property], Some(Probing { first: 3 }), &control);
    assert!(matches!(outcome.properties[0].verdict, Verdict::Unknown), "the nearest deadlock has a path of 12 steps");
}
