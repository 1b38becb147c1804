//! `tree` with other arities than two, and what it promises beyond what every store does.

use deltamark_core::{Action, Arrival, Budget, Field, Insert, Order, Recoding, StateId, States, Store, System, Width};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::{RandomGraph, check_store};
use std::sync::Arc;

fn make<'a>(text: &str, system: &'a dyn System, order: Order, budget: Arc<Budget>) -> Box<dyn Store + 'a> {
    let spec: StoreSpec = text.parse().expect("a store");
    build(&spec, system, order, budget).expect("any system")
}

#[test]
fn trees_of_arity_three_conform() {
    check_store(Order::Any, |system, budget| make("tree:arity=3", system, Order::Any, budget));
}

#[test]
#[ignore = "long: the whole suite for each arity"]
fn trees_of_every_arity_conform() {
    for text in ["tree:arity=4", "tree:arity=8"] {
        for order in [Order::Any, Order::Levels] {
            check_store(order, |system, budget| make(text, system, order, budget));
        }
    }
}

#[test]
fn other_arities_are_refused() {
    let system = RandomGraph::new(1, 10);
    let spec: StoreSpec = "tree:arity=5".parse().expect("an option that there is");
    let error = build(&spec, &system, Order::Any, Arc::new(Budget::unlimited())).err().expect("it is refused");
    assert_eq!(
        error.to_string(),
        "`5` is no value for the option `arity` of the store `tree`; it takes `2` or `3` or `4` or `8`"
    );
}

/// States of `width` slots that differ in one slot, far from each other.
fn spread(width: usize, number: u32) -> Vec<u32> {
    let mut state = vec![7; width];
    state[(number as usize * 31) % width] = number;
    state
}

#[test]
fn a_layout_that_changes_late_takes_no_second_copy() {
    let width = Width::Fixed(2);
    let system = RandomGraph::of_width(1, width, 2);
    let arrival = Arrival { parent: None, action: Action(0) };
    let count = 300_000;
    let fill = |budget: &Arc<Budget>| {
        let store = make("tree", &system, Order::Any, Arc::clone(budget));
        let mut scratch = store.scratch();
        let numbers = (0..count).take_while(|&number| {
            store.insert(&mut scratch, &[number, number / 7], 0, &arrival) == Insert::New(StateId::new(number.into()))
        });
        let filled = numbers.count() as u32;
        (store, scratch, filled)
    };
    let one_more = |slot| (Field::new(slot, 0, 32, 0), Field::new(slot, 0, 32, -1));
    let recoding = Recoding::new(2, 2, "for the test".into(), [0, 1].map(one_more));
    let budget = Arc::new(Budget::unlimited());
    let (store, mut scratch, filled) = fill(&budget);
    assert_eq!(filled, count);
    assert!(store.recode(&recoding));
    let held = store.bytes().total();
    assert_eq!(held, budget.used());
    assert!(budget.peak() <= held * 13 / 10, "{} bytes at the peak, {held} at the end", budget.peak());
    for number in (0..count).step_by(997) {
        let found = store.find(&mut scratch, &[number + 1, number / 7 + 1], 0);
        assert_eq!(found, Some(StateId::new(number.into())));
    }
    // Without the memory for it, all is counted and given back.
    let budget = Arc::new(Budget::new(2 << 20));
    let (store, _, filled) = fill(&budget);
    assert!(filled < count && !store.recode(&recoding));
    assert_eq!((store.len(), store.bytes().total()), (filled.into(), budget.used()));
    drop(store);
    assert_eq!(budget.used(), 0);
}

#[test]
fn states_that_differ_in_one_slot_add_a_node_a_level() {
    let width = 1024;
    let system = RandomGraph::of_width(1, Width::Fixed(width), 2);
    let store = make("tree", &system, Order::Any, Arc::new(Budget::unlimited()));
    let mut scratch = store.scratch();
    let arrival = Arrival { parent: None, action: Action(0) };
    let count = 20_000;
    for number in 0..count {
        let answer = store.insert(&mut scratch, &spread(width, number + 8), 0, &arrival);
        assert_eq!(answer, Insert::New(StateId::new(number.into())));
    }
    // Ten levels, of which the root is one; 8 bytes a node and up to 7.1 for the index.
    let bytes = store.bytes().total();
    assert!(bytes < u64::from(count) * 10 * 16, "{bytes}");
    let mut states = States::new(Width::Fixed(width));
    store.recall().expect("it recalls").recall(&mut scratch, &[StateId::new(77)], &mut states);
    assert_eq!(states.get(0), spread(width, 77 + 8));
}

/// States whose slots need more and more bits, each at its own pace.
fn growing(width: usize, number: u32) -> Vec<u32> {
    (0..width as u32).map(|slot| number.wrapping_mul(slot * slot + 1) << (slot * 7 % 18)).collect()
}

#[test]
fn words_widen_with_what_comes() {
    let arrival = Arrival { parent: None, action: Action(0) };
    for (text, width) in [("tree", 2), ("tree", 3), ("tree", 9), ("tree:arity=3", 5), ("tree:arity=8", 8)] {
        let system = RandomGraph::of_width(1, Width::Fixed(width), 2);
        let budget = Arc::new(Budget::unlimited());
        let store = make(text, &system, Order::Any, Arc::clone(&budget));
        let mut scratch = store.scratch();
        let ids = (0..20_000).map(StateId::new);
        for answer in [Insert::New, Insert::Seen] {
            for id in ids.clone() {
                let state = growing(width, id.get() as u32);
                assert_eq!(store.insert(&mut scratch, &state, 0, &arrival), answer(id), "{text} {state:?}");
            }
        }
        assert_eq!(store.bytes().total(), budget.used());
        let mut states = States::new(Width::Fixed(width));
        for ids in ids.clone().collect::<Vec<_>>().chunks(37) {
            store.recall().expect("it recalls").recall(&mut scratch, ids, &mut states);
        }
        assert!(states.iter().zip(0..).all(|(state, number)| state == growing(width, number)), "{text}");
        // Wider than all that there are: compared in full.
        assert_eq!(store.find(&mut scratch, &vec![u32::MAX; width], 0), None);
    }
}

#[test]
fn without_memory_wider_states_are_refused_and_no_other_is_taken_for_them() {
    let system = RandomGraph::of_width(1, Width::Fixed(2), 2);
    let arrival = Arrival { parent: None, action: Action(0) };
    let budget = Arc::new(Budget::new(40_000));
    let store = make("tree", &system, Order::Any, Arc::clone(&budget));
    let mut scratch = store.scratch();
    let state = |number: u32| [number % 64, number / 64];
    let filled = (0..).take_while(|&number| {
        store.insert(&mut scratch, &state(number), 0, &arrival) == Insert::New(StateId::new(number.into()))
    });
    let filled = filled.count() as u32;
    assert!(filled > 2000, "{filled}");
    for wide in [[u32::MAX, 0], [1 << 6, 3], [5, 1 << 31]] {
        assert_eq!(store.insert(&mut scratch, &wide, 0, &arrival), Insert::Full);
        assert_eq!(store.find(&mut scratch, &wide, 0), None);
    }
    for number in 0..filled {
        assert_eq!(store.insert(&mut scratch, &state(number), 0, &arrival), Insert::Seen(StateId::new(number.into())));
    }
    assert_eq!((store.len(), store.bytes().total()), (filled.into(), budget.used()));
}

#[test]
fn short_states_are_all_root() {
    let system = RandomGraph::of_width(1, Width::Varies, 2);
    let store = make("tree:arity=4", &system, Order::Any, Arc::new(Budget::unlimited()));
    let mut scratch = store.scratch();
    let arrival = Arrival { parent: None, action: Action(0) };
    let empty = store.bytes().parts().iter().find(|part| part.0 == "nodes").map(|part| part.1);
    let states: [&[u32]; 6] = [&[], &[0], &[0, 0], &[1, 2, 3], &[0, 0, 0, 0], &[1]];
    for (number, state) in states.iter().enumerate() {
        assert_eq!(store.insert(&mut scratch, state, 0, &arrival), Insert::New(StateId::new(number as u64)));
        assert_eq!(store.insert(&mut scratch, state, 0, &arrival), Insert::Seen(StateId::new(number as u64)));
    }
    assert_eq!(store.bytes().parts().iter().find(|part| part.0 == "nodes").map(|part| part.1), empty);
}
