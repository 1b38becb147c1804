//! Random coloured nets: the engine and the unfolding against a naive explorer.

mod common;

use std::collections::BTreeSet;

use common::{Counts, Features, explore_dully, random_net};

#[path = "common/explore.rs"]
mod explore;
use deltamark_coloured::{ColouredSystem, Net, NotUnfolded, UnfoldLimits, UnfoldedSystem};
use deltamark_core::{Stop, System};
use deltamark_testkit::{check_portable, check_system, explore_up_to};

const MOST: usize = 400;

fn counts(system: &dyn System) -> Counts {
    let found = explore_up_to(system, MOST).expect("as few states as the dull explorer found");
    Counts {
        states: found.states.len(),
        edges: found.edges.len(),
        deadlocks: found.deadlocks.len(),
        faults: found.faults.iter().filter(|(_, action)| action.is_some()).count(),
        wrong: found
            .faults
            .iter()
            .filter_map(|(state, action)| action.is_none().then_some(*state))
            .collect::<BTreeSet<_>>()
            .len(),
    }
}

/// Whether the labels of a transition have more tokens of a place than are counted.
fn refused(net: &Net) -> bool {
    net.transitions.iter().any(|transition| {
        [&transition.inputs, &transition.outputs].into_iter().any(|arcs| {
            let unlimited = |place: &usize| net.places[*place].capacity.is_none_or(|most| most > i32::MAX as u32);
            (0..net.places.len()).filter(unlimited).any(|place| {
                let here = arcs.iter().filter(|arc| arc.place.0 as usize == place).flat_map(|arc| &arc.label);
                here.map(|term| common::times(term) * term.factor).sum::<i64>() > i32::MAX.into()
            })
        })
    })
}

/// Compares on random nets; returns how many were compared, and how many of them unfolded.
fn compare(seeds: std::ops::Range<u64>, features: Features, suite_every: usize) -> (usize, usize) {
    let (mut compared, mut unfolded) = (0, 0);
    for seed in seeds {
        let net = random_net(seed, features);
        let Some((expected, beyond)) = explore_dully(&net, MOST) else { continue };
        let system = match ColouredSystem::new(net.clone(), "") {
            Ok(system) => system,
            Err(wrong) if refused(&net) && wrong[0].message.contains("more than 2147483647 tokens") => continue,
            Err(wrong) => panic!("seed {seed}: {wrong:?}"),
        };
        assert!(!refused(&net), "seed {seed}: {net:?}");
        if beyond {
            // Never a wrapped count, and never a verdict.
            assert_eq!(explore::stopped(&system), Some(Stop::Count), "seed {seed}: {net:?}");
        } else {
            assert_eq!(counts(&system), expected, "seed {seed}: {net:?}");
        }
        compared += 1;
        if compared % suite_every == 0 && !beyond {
            check_system(&system);
            check_portable(|| ColouredSystem::new(net.clone(), "").unwrap_or_else(|wrong| panic!("{wrong:?}")));
        }
        match UnfoldedSystem::new(net.clone(), "", UnfoldLimits::DEMANDED) {
            Ok(system) => {
                assert_eq!(counts(&system), expected, "seed {seed}, unfolded: {net:?}");
                unfolded += 1;
                if unfolded % suite_every == 0 {
                    check_system(&system);
                    let again = || UnfoldedSystem::new(net.clone(), "", UnfoldLimits::DEMANDED);
                    check_portable(|| again().unwrap_or_else(|_| panic!("it was unfolded before")));
                }
            }
            Err(NotUnfolded::Refused(_)) => {}
            Err(NotUnfolded::Wrong(wrong)) => panic!("seed {seed}: {wrong:?}"),
            Err(NotUnfolded::Stopped(stop)) => panic!("seed {seed}: {stop:?}"),
        }
    }
    (compared, unfolded)
}

#[test]
fn plain_nets_agree_with_the_dull_explorer() {
    let features = Features { capacities: false, priorities: false, inhibitors: false, divisions: false, edges: false };
    let (compared, unfolded) = compare(0..600, features, 20);
    assert!(compared > 200 && unfolded > 200, "{compared} nets compared, {unfolded} unfolded");
}

#[test]
fn nets_with_capacities_and_inhibitors_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: false, inhibitors: true, divisions: false, edges: false };
    let (compared, unfolded) = compare(1000..1600, features, 20);
    assert!(compared > 200 && unfolded > 150, "{compared} nets compared, {unfolded} unfolded");
}

#[test]
fn nets_with_priorities_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: true, inhibitors: true, divisions: false, edges: false };
    let (compared, _) = compare(2000..2600, features, 20);
    assert!(compared > 200, "{compared} nets compared");
}

/// A guard that divides by zero is a fault exactly if there are tokens for all inputs.
#[test]
fn nets_whose_guards_go_wrong_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: false, inhibitors: true, divisions: true, edges: false };
    let (compared, unfolded) = compare(3000..3600, features, 20);
    assert!(compared > 200 && unfolded > 20, "{compared} nets compared, {unfolded} unfolded");
}

/// Numbers, factors and capacities at the limits: both forms find the same states and the same faults.
#[test]
fn nets_at_the_edges_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: false, inhibitors: true, divisions: false, edges: true };
    // Here a step exceeds both a capacity and the counting range of a place without one: it is a fault.
    compare(124_170..124_171, features, 40);
    let (compared, unfolded) = compare(4000..5500, features, 40);
    assert!(compared > 400 && unfolded > 200, "{compared} nets compared, {unfolded} unfolded");
}

/// Compares on random nets, a part of them on each processor.
fn compare_by_threads(seeds: std::ops::Range<u64>, features: Features) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let part = (seeds.end - seeds.start).div_ceil(threads);
    std::thread::scope(|scope| {
        for start in seeds.clone().step_by(part as usize) {
            let part = start..(start + part).min(seeds.end);
            scope.spawn(move || compare(part, features, 200));
        }
    });
}

/// Many more, for the long run.
#[test]
#[ignore = "long: a few minutes"]
fn very_many_nets_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: false, inhibitors: true, divisions: false, edges: false };
    compare_by_threads(10_000..60_000, features);
    compare_by_threads(60_000..80_000, Features { priorities: true, ..features });
    compare_by_threads(80_000..100_000, Features { divisions: true, ..features });
    compare_by_threads(100_000..150_000, Features { edges: true, ..features });
    compare_by_threads(150_000..170_000, Features { edges: true, priorities: true, ..features });
}
