//! The stores that rebuild states, with every option, against the suite and the oracle.

use deltamark_core::{Control, Limits, Order, Property, Stop, System, Verdict, Width};
use deltamark_search::{Search, Task, run};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::systems::{Counters, Workers};
use deltamark_testkit::{PoorHash, RandomGraph, check_store, explore};

fn spec(text: &str) -> StoreSpec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

type Fresh = fn() -> Box<dyn System>;

/// Systems of a few hundred states: with steps that can be undone and without, of fixed, varying
/// and widening layout, with good and with poor hashes.
const SYSTEMS: &[(&str, Fresh)] = &[
    ("counters 4, 5", || Box::new(Counters::new(4, 5))),
    ("counters 9, 2", || Box::new(Counters::new(9, 2))),
    ("counters 3, 6, poor hash", || Box::new(PoorHash::new(Box::new(Counters::new(3, 6)), 4))),
    ("workers 2, 1, 1", || Box::new(Workers::new(2, 1, 1))),
    ("random 3", || Box::new(RandomGraph::of_width(3, Width::Fixed(2), 150))),
    ("random 4", || Box::new(RandomGraph::of_width(4, Width::Varies, 150))),
    ("random 6, poor hash", || Box::new(PoorHash::new(Box::new(RandomGraph::of_width(6, Width::Fixed(1), 90)), 2))),
];

/// Runs both searches with this store over all small systems; counts, depths and traces agree
/// with the oracle's, also when a limit on states or memory ends the run, and when it does not quite.
fn agrees(store: &str) {
    for (label, fresh) in SYSTEMS {
        let all = explore(&*fresh());
        let (states, edges) = (all.states.len() as u64, all.edges.len() as u64);
        for &search in Search::ALL {
            for limit in [None, Some(states / 2), Some(states - 1), Some(states + 3)] {
                let system = fresh();
                let mut control = Control::new();
                control.limits = Limits { states: limit, ..Limits::default() };
                let store_of = build(&spec(store), &*system, search.order(), control.budget.clone());
                let built = store_of.unwrap_or_else(|error| panic!("{store}: {error}"));
                let properties = [Property::deadlock_free()];
                let outcome = run(
                    search,
                    Task {
                        system: &*system,
                        store: &*built,
                        properties: &properties,
                        control: &control,
                        explore_all: true,
                        observer: None,
                    },
                );
                let what = format!("{store}, {label}, {}, limit {limit:?}", search.name());
                let found = &outcome.statistics;
                match outcome.stopped_by {
                    None => {
                        assert_eq!((found.states, found.edges), (states, edges), "{what}");
                        let dead = matches!(outcome.properties[0].verdict, Verdict::Violated(..));
                        assert_eq!(dead, found.deadlocks > 0, "{what}");
                    }
                    Some(Stop::States) => {
                        assert_eq!(Some(found.states), limit, "{what}");
                        assert!(limit < Some(states), "{what}");
                    }
                    Some(other) => panic!("{what}: stopped by {other:?}"),
                }
                let accounted = built.bytes().total() + built.frontier_bytes();
                assert_eq!(accounted, control.budget.used(), "{what}");
            }
        }
    }
}

fn conforms(store: &str) {
    for order in [Order::Any, Order::Levels] {
        check_store(order, |system, budget| build(&spec(store), system, order, budget).expect("a store"));
    }
}

#[test]
fn delta_agrees_with_the_oracle_whatever_its_options() {
    for k in [1, 2, 3, 50] {
        for update in ["on", "off"] {
            for backward in ["on", "off"] {
                agrees(&format!("delta:k={k},update={update},backward={backward}"));
            }
        }
    }
}

#[test]
fn they_conform_with_other_options_than_the_usual_ones() {
    let stores = ["delta:k=1", "comback:signature=20,cache=50,full=1"];
    std::thread::scope(|scope| {
        for store in stores {
            scope.spawn(move || conforms(store));
        }
    });
}

#[test]
fn comback_agrees_with_the_oracle_whatever_its_signature() {
    for signature in ["2", "4", "8", "24", "auto"] {
        for cache in [0, 1, 16] {
            for backward in ["on", "off"] {
                agrees(&format!("comback:signature={signature},cache={cache},backward={backward}"));
            }
        }
    }
}

#[test]
fn comback_agrees_with_the_oracle_whatever_its_switches() {
    for waiting in ["ids", "states"] {
        for delayed in ["on", "off"] {
            for full in ["1", "2", "auto", "off"] {
                for paths in ["on", "off"] {
                    agrees(&format!(
                        "comback:signature=8,waiting={waiting},delayed={delayed},full={full},paths={paths}"
                    ));
                }
            }
        }
    }
}

#[test]
fn comback_agrees_with_the_oracle_when_actions_are_ambiguous() {
    for signature in ["1", "5", "auto"] {
        for (bits, waiting) in [(1, "ids"), (2, "states"), (5, "states")] {
            agrees(&format!("comback:signature={signature},actions={bits},waiting={waiting},cache=3"));
        }
    }
}

#[test]
fn options_without_meaning_are_refused() {
    let system = Counters::new(2, 2);
    let cases = [
        ("delta:k=0", "`0` is no value for the option `k` of the store `delta`; it takes a number from 1 to 1000000"),
        (
            "delta:base=zip",
            "`zip` is no value for the option `base` of the store `delta`; it takes `plain` or `collapse`",
        ),
        (
            "comback:signature=40",
            "`40` is no value for the option `signature` of the store `comback`; it takes `auto` or a number from 1 to 32",
        ),
        (
            "comback:full=0",
            "`0` is no value for the option `full` of the store `comback`; it takes `auto`, `off` or a number from \
             1 to 1000000",
        ),
        (
            "comback:waiting=no",
            "`no` is no value for the option `waiting` of the store `comback`; it takes `auto` or `ids` or `states`",
        ),
        (
            "comback:actions=3,backward=on",
            "the store `comback` with `actions=3` rebuilds forwards along the first path, so `backward=on` means \
             nothing to it",
        ),
        ("delta:update=yes", "`yes` is no value for the option `update` of the store `delta`; it takes `on` or `off`"),
    ];
    for (text, message) in cases {
        let budget = Control::new().budget.clone();
        let refused = build(&spec(text), &system, Order::Any, budget).err().map(|error| error.to_string());
        assert_eq!(refused.as_deref(), Some(message));
    }
}
