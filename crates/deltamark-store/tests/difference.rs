//! The store `difference`: for every δ, in both orders, whatever the hash.

use deltamark_core::{
    Arrival, Attached, Batch, Block, Budget, Bytes, Control, Guarantee, Insert, Limits, Order, Recall, Recoding,
    Scratch, Slot, StateId, Stop, Store, System, Width,
};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_search::{Search, Task, run};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::systems::{Cells, Counters, Workers};
use deltamark_testkit::{RandomGraph, check_store, explore};
use std::sync::Arc;

const EVERY: [u64; 4] = [1, 2, 3, 20];

fn make<'a>(every: u64, system: &'a dyn System, order: Order, budget: Arc<Budget>) -> Box<dyn Store + 'a> {
    let spec: StoreSpec = format!("difference:every={every}").parse().expect("a store with an option");
    build(&spec, system, order, budget).expect("a number in range")
}

#[test]
fn it_conforms_for_every_delta_in_both_orders() {
    for every in EVERY {
        for order in [Order::Any, Order::Levels] {
            check_store(order, |system, budget| make(every, system, order, budget));
        }
    }
}

/// A store that receives hashes of few different values.
struct Poor<'a> {
    store: Box<dyn Store + 'a>,
    hashes: u64,
}

impl Store for Poor<'_> {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert {
        self.store.insert(scratch, state, hash % self.hashes, arrival)
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let mut poor = Batch::new(batch.targets().width());
        for index in 0..batch.len() {
            poor.begin(batch.source(index));
            poor.push_hashed(batch.action(index), batch.target(index), batch.hash(index) % self.hashes);
        }
        self.store.insert_batch(scratch, block, &poor, out);
    }

    fn find(&self, scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        self.store.find(scratch, state, hash % self.hashes)
    }

    fn len(&self) -> u64 {
        self.store.len()
    }

    fn bytes(&self) -> Bytes {
        self.store.bytes()
    }

    fn attached(&self) -> Option<&Attached> {
        self.store.attached()
    }

    fn guarantee(&self) -> Guarantee {
        self.store.guarantee()
    }

    fn scratch(&self) -> Scratch {
        self.store.scratch()
    }

    fn recall(&self) -> Option<&dyn Recall> {
        self.store.recall()
    }

    fn end_level(&self) -> bool {
        self.store.end_level()
    }

    fn frontier_bytes(&self) -> u64 {
        self.store.frontier_bytes()
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        self.store.recode(recoding)
    }
}

#[test]
fn it_conforms_when_most_states_share_their_hash_with_others() {
    for order in [Order::Any, Order::Levels] {
        check_store(order, |system, budget| Box::new(Poor { store: make(3, system, order, budget), hashes: 10_007 }));
    }
}

/// Systems of all kinds: wide, of varying width, with layouts that widen.
fn systems() -> Vec<(&'static str, Box<dyn System>)> {
    vec![
        ("cells", Box::new(Cells::new(83, 5))),
        ("workers", Box::new(Workers::new(2, 3, 2))),
        ("counters", Box::new(Counters::new(5, 9))),
        ("graph", Box::new(RandomGraph::of_width(4, Width::Varies, 3000))),
        ("narrow graph", Box::new(RandomGraph::of_width(3, Width::Fixed(2), 3000))),
    ]
}

#[test]
fn searches_find_what_the_oracle_finds() {
    let names = systems().len();
    for number in 0..names {
        let (name, system) = systems().swap_remove(number);
        let expected = explore(&*system);
        let expected = (expected.states.len() as u64, expected.edges.len() as u64);
        for every in EVERY {
            for &search in Search::ALL {
                for hashes in [u64::MAX, 50] {
                    let (_, system) = systems().swap_remove(number);
                    let control = Control::new();
                    let store = Poor { store: make(every, &*system, search.order(), control.budget.clone()), hashes };
                    let task = Task {
                        system: &*system,
                        store: &store,
                        properties: &[],
                        control: &control,
                        explore_all: true,
                        observer: None,
                    };
                    let found = run(search, task).statistics;
                    let label = format!("{name}, every {every}, {}, {hashes} hashes", search.name());
                    assert_eq!((found.states, found.edges), expected, "{label}");
                }
            }
        }
    }
}

#[test]
fn a_run_that_stops_in_the_middle_says_so() {
    let system = Cells::new(83, 4);
    let (states, edges) = system.counts();
    let mut stops = 0;
    for bytes in (1_000..70_000).step_by(1_500) {
        for limit in [states - 1, states] {
            for &search in Search::ALL {
                let mut control = Control::new();
                control.limits = Limits { states: Some(limit), ..Limits::default() };
                let store = make(5, &system, search.order(), Arc::new(Budget::new(bytes)));
                let task = Task {
                    system: &system,
                    store: &*store,
                    properties: &[],
                    control: &control,
                    explore_all: true,
                    observer: None,
                };
                let outcome = run(search, task);
                let found = &outcome.statistics;
                match outcome.stopped_by {
                    None => assert_eq!((found.states, found.edges), (states, edges), "{bytes} bytes"),
                    Some(Stop::Memory) => stops += 1,
                    Some(Stop::States) => assert_eq!((found.states, limit), (limit, states - 1)),
                    Some(other) => panic!("stopped by {other:?}"),
                }
                assert_eq!(found.states, store.len());
            }
        }
    }
    assert!(stops > 20, "memory ran out {stops} times");
}

#[test]
fn layouts_that_widen_in_the_middle_change_nothing() {
    let net = generate("kanban", 3).expect("a known family");
    for &search in Search::ALL {
        let system = NetSystem::new(net.clone());
        let control = Control::new();
        let store = make(20, &system, search.order(), control.budget.clone());
        let (system, store) = (&system, &*store);
        let task = Task { system, store, properties: &[], control: &control, explore_all: true, observer: None };
        let found = run(search, task).statistics;
        assert_eq!((found.states, found.edges), (58_400, 446_400));
    }
}

#[test]
fn wide_states_take_a_twentieth_of_their_size() {
    for width in [200, 400] {
        let system = Cells::new(width, 9);
        for &search in Search::ALL {
            let control = Control::new();
            let store = make(20, &system, search.order(), control.budget.clone());
            let (system, store) = (&system, &*store);
            let task = Task { system, store, properties: &[], control: &control, explore_all: true, observer: None };
            let outcome = run(search, task);
            let bytes = outcome.store_bytes.total() / outcome.statistics.states;
            assert!(bytes < 24, "{bytes} bytes a state of {width} slots, {}", search.name());
        }
    }
}

#[test]
fn a_delta_that_makes_no_sense_is_refused() {
    let system = Cells::new(83, 2);
    for text in ["difference:every=0", "difference:every=5000", "difference:every=x"] {
        let spec: StoreSpec = text.parse().expect("a store with an option");
        let refused = build(&spec, &system, Order::Any, Arc::new(Budget::unlimited())).err().expect(text).to_string();
        assert!(refused.contains("it takes a number from 1 to 4096"), "{refused}");
    }
}
