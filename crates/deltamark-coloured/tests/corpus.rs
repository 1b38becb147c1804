//! Symmetric nets that others wrote, coloured and unfolded, against the answers of other tools.

#[path = "common/explore.rs"]
mod explored;

use std::fs;
use std::time::{Duration, Instant};

use deltamark_coloured::{ColouredSystem, NotUnfolded, UnfoldLimits, UnfoldedSystem, pnml};
use deltamark_core::System;
use deltamark_testkit::Corpus;
use explored::{explore_system, for_each};

/// States, edges and whether there is a deadlock.
fn explored(system: &dyn System, store: &str) -> (u64, u64, bool) {
    let found = explore_system(system, store);
    (found.states, found.edges, found.deadlocks > 0)
}

/// Compares all nets with a number of states in `sizes` with the expected counts, unfolded, and up to
/// `coloured` states also as coloured.
fn check(test: &str, sizes: std::ops::Range<u64>, coloured: u64, at_least: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    let mut rows = corpus.expected("pnml");
    rows.retain(|row| {
        row.text("kind") == Some("COL") && row.number("states").is_some_and(|states| sizes.contains(&states))
    });
    rows.sort_by_key(|row| row.number("states"));
    for_each(&rows, |row| {
        let model = row.text("model").expect("a model");
        let text = fs::read_to_string(corpus.file("pnml", &format!("{model}.pnml"))).expect("the model is there");
        assert!(pnml::is_coloured(&text), "{model}");
        let net = pnml::parse(&text).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}"));
        assert_eq!(Some(net.places.len() as u64), row.number("places"), "{model}");
        assert_eq!(Some(net.transitions.len() as u64), row.number("transitions"), "{model}");
        let states = row.number("states").expect("states");
        let expected = (states, row.number("edges").expect("edges"), row.truth("deadlock").expect("deadlock"));
        let store = if states > 10_000_000 { "compact" } else { "plain" };
        if states <= coloured {
            let begin = Instant::now();
            let system = ColouredSystem::new(net.clone(), &text).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}"));
            assert_eq!(explored(&system, store), expected, "{model}");
            println!("{model}, coloured, {store}: {states} states, {:.1?}", begin.elapsed());
        }
        let begin = Instant::now();
        match UnfoldedSystem::new(net, &text, UnfoldLimits::AUTO) {
            Ok(system) => {
                let ready = begin.elapsed();
                // A machine may be busy: in release mode and alone, all of them take well below a second.
                assert!(ready < Duration::from_secs(10), "{model} takes {ready:?} to unfold");
                assert_eq!(explored(&system, store), expected, "{model}, unfolded");
                println!("{model}, unfolded in {ready:.1?}, {store}: {states} states, {:.1?}", begin.elapsed());
            }
            Err(NotUnfolded::Refused(why)) => panic!("{model} is not unfolded: {why}"),
            Err(NotUnfolded::Wrong(wrong)) => panic!("{model}: {wrong:?}"),
            Err(NotUnfolded::Stopped(stop)) => panic!("{model}: {stop:?}"),
        }
    });
    assert!(rows.len() >= at_least, "only {}", rows.len());
}

#[test]
fn symmetric_nets_have_the_right_state_space() {
    check("symmetric_nets_have_the_right_state_space", 0..3_000_000, 310_000, 25);
}

#[test]
#[ignore = "long: two minutes, in release mode"]
fn large_symmetric_nets_have_the_right_state_space() {
    check("large_symmetric_nets_have_the_right_state_space", 310_000..u64::MAX, u64::MAX, 5);
}
