//! Symmetric nets that others wrote, coloured and unfolded, against the answers of other tools.

use std::fs;
use std::time::{Duration, Instant};

use deltamark_coloured::{ColouredSystem, NotUnfolded, UnfoldLimits, UnfoldedSystem, pnml};
use deltamark_core::{Control, Property, System};
use deltamark_search::{Search, Task, run};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::Corpus;

/// States, edges and whether there is a deadlock.
fn explored(system: &dyn System) -> (u64, u64, bool) {
    let control = Control::new();
    let store =
        build(&StoreSpec::default(), system, Search::default().order(), control.budget.clone()).expect("a store");
    let properties = [Property::deadlock_free()];
    let task = Task {
        system,
        store: store.as_ref(),
        properties: &properties,
        control: &control,
        explore_all: true,
        observer: None,
    };
    let statistics = run(Search::default(), task).statistics;
    (statistics.states, statistics.edges, statistics.deadlocks > 0)
}

fn check(test: &str, sizes: std::ops::Range<u64>, at_least: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    let mut checked = 0;
    for row in corpus.expected("pnml") {
        let (Some(model), Some("COL"), Some(states)) = (row.text("model"), row.text("kind"), row.number("states"))
        else {
            continue;
        };
        if !sizes.contains(&states) {
            continue;
        }
        let text = fs::read_to_string(corpus.file("pnml", &format!("{model}.pnml"))).expect("the model is there");
        assert!(pnml::is_coloured(&text), "{model}");
        let net = pnml::parse(&text).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}"));
        assert_eq!(Some(net.places.len() as u64), row.number("places"), "{model}");
        assert_eq!(Some(net.transitions.len() as u64), row.number("transitions"), "{model}");
        let expected = (states, row.number("edges").expect("edges"), row.truth("deadlock").expect("deadlock"));
        let system = ColouredSystem::new(net.clone(), &text).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}"));
        assert_eq!(explored(&system), expected, "{model}");
        let start = Instant::now();
        match UnfoldedSystem::new(net, &text, UnfoldLimits::AUTO) {
            Ok(system) => {
                assert!(start.elapsed() < Duration::from_secs(5), "{model} takes {:?} to unfold", start.elapsed());
                assert_eq!(explored(&system), expected, "{model}, unfolded");
            }
            Err(NotUnfolded::Refused(why)) => panic!("{model} is not unfolded: {why}"),
            Err(NotUnfolded::Wrong(wrong)) => panic!("{model}: {wrong:?}"),
        }
        checked += 1;
    }
    assert!(checked >= at_least, "only {checked}");
}

#[test]
fn symmetric_nets_have_the_right_state_space() {
    check("symmetric_nets_have_the_right_state_space", 0..310_000, 20);
}

#[test]
#[ignore = "long: a minute, in release mode"]
fn large_symmetric_nets_have_the_right_state_space() {
    check("large_symmetric_nets_have_the_right_state_space", 310_000..10_000_000, 4);
}
