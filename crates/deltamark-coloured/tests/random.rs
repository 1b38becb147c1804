//! Random coloured nets: the engine and the unfolding against a dull explorer.

mod common;

use std::collections::BTreeSet;

use common::{Counts, Features, explore_dully, random_net};
use deltamark_coloured::{ColouredSystem, NotUnfolded, UnfoldLimits, UnfoldedSystem};
use deltamark_core::System;
use deltamark_testkit::{check_system, explore_up_to};

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

/// Compares on random nets; says how many were compared, and how many of them unfolded.
fn compare(seeds: std::ops::Range<u64>, features: Features, suite_every: usize) -> (usize, usize) {
    let (mut compared, mut unfolded) = (0, 0);
    for seed in seeds {
        let net = random_net(seed, features);
        let Some(expected) = explore_dully(&net, MOST) else { continue };
        let system = ColouredSystem::new(net.clone(), "").unwrap_or_else(|wrong| panic!("seed {seed}: {wrong:?}"));
        assert_eq!(counts(&system), expected, "seed {seed}: {net:?}");
        compared += 1;
        if compared % suite_every == 0 {
            check_system(&system);
        }
        match UnfoldedSystem::new(net.clone(), "", UnfoldLimits::DEMANDED) {
            Ok(system) => {
                assert_eq!(counts(&system), expected, "seed {seed}, unfolded: {net:?}");
                unfolded += 1;
                if unfolded % suite_every == 0 {
                    check_system(&system);
                }
            }
            Err(NotUnfolded::Refused(_)) => {}
            Err(NotUnfolded::Wrong(wrong)) => panic!("seed {seed}: {wrong:?}"),
        }
    }
    (compared, unfolded)
}

#[test]
fn plain_nets_agree_with_the_dull_explorer() {
    let features = Features { capacities: false, priorities: false, inhibitors: false, divisions: false };
    let (compared, unfolded) = compare(0..600, features, 20);
    assert!(compared > 200 && unfolded > 200, "{compared} nets compared, {unfolded} unfolded");
}

#[test]
fn nets_with_capacities_and_inhibitors_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: false, inhibitors: true, divisions: false };
    let (compared, unfolded) = compare(1000..1600, features, 20);
    assert!(compared > 200 && unfolded > 150, "{compared} nets compared, {unfolded} unfolded");
}

#[test]
fn nets_with_priorities_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: true, inhibitors: true, divisions: false };
    let (compared, _) = compare(2000..2600, features, 20);
    assert!(compared > 200, "{compared} nets compared");
}

/// A guard that divides by zero is a fault exactly where there are tokens for all inputs.
#[test]
fn nets_whose_guards_go_wrong_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: false, inhibitors: true, divisions: true };
    let (compared, unfolded) = compare(3000..3600, features, 20);
    assert!(compared > 200 && unfolded > 20, "{compared} nets compared, {unfolded} unfolded");
}

/// Many more, for the long run.
#[test]
#[ignore = "long: a few minutes"]
fn very_many_nets_agree_with_the_dull_explorer() {
    let features = Features { capacities: true, priorities: false, inhibitors: true, divisions: false };
    compare(10_000..60_000, features, 200);
    compare(60_000..80_000, Features { priorities: true, ..features }, 200);
    compare(80_000..100_000, Features { divisions: true, ..features }, 200);
}
