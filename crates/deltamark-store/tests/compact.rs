//! What `compact` promises beyond what every store does.

use deltamark_core::{Action, Arrival, Budget, Insert, Layout, Order, Recoding, StateId, States, Width};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::RandomGraph;
use std::collections::HashSet;
use std::sync::Arc;

#[test]
fn states_of_varying_width_are_refused() {
    let system = RandomGraph::of_width(1, deltamark_core::Width::Varies, 50);
    let spec: StoreSpec = "compact".parse().expect("a store");
    let error = build(&spec, &system, Order::Any, Arc::new(Budget::unlimited())).err().expect("it is refused");
    assert_eq!(
        error.to_string(),
        "the store `compact` takes states of fixed width, and those of this model vary; use `tree`"
    );
}

/// Numbers in two fields of this many bits, and in more after a change.
fn packed(number: u64, bits: u32) -> Vec<u32> {
    let (low, high) = (number % 1000, number / 1000);
    let word = low | high << bits;
    vec![word as u32, (word >> 32) as u32]
}

const WIDTH: Width = Width::Fixed(2);

/// From fields of `from` bits to such of `to` bits.
fn recoding(from: u32, to: u32) -> Recoding {
    let [old, new] = [from, to].map(|bits| Layout::in_words([(bits as u8, 0), (30, 0)]));
    Recoding::between(&old, &new, "for the test".into())
}

/// Sparse, so that roots are no bitmap.
fn number(step: u64) -> u64 {
    step * 7919 % 100_000_007
}

/// Ids are kept as long as values hang on them, however many they are; afterwards they are not.
#[test]
fn ids_with_values_outlive_every_layout() {
    let system = RandomGraph::of_width(1, WIDTH, 2);
    let spec: StoreSpec = "compact".parse().expect("a store");
    let arrival = Arrival { parent: None, action: Action(0) };
    let budget = Arc::new(Budget::unlimited());
    let store = build(&spec, &system, Order::Any, Arc::clone(&budget)).expect("a store");
    let mut scratch = store.scratch();
    let values = store.attached().expect("all states have ids").values(16);
    let layouts = [10, 12, 17, 20];
    let mut ids = Vec::new();
    for step in 0..80_000 {
        let layout = (step / 25_000) as usize;
        if step == 25_000 || step == 50_000 {
            assert!(store.recode(&recoding(layouts[layout - 1], layouts[layout])));
        }
        match store.insert(&mut scratch, &packed(number(step), layouts[layout.min(2)]), 0, &arrival) {
            Insert::New(id) => ids.push(id),
            other => panic!("{step}: {other:?}"),
        }
        assert_eq!(values.set(ids[step as usize], step % 65_521), Some(0));
    }
    let different: HashSet<StateId> = ids.iter().copied().collect();
    assert_eq!(different.len(), ids.len());
    for (step, &id) in (0..).zip(&ids) {
        let found = store.insert(&mut scratch, &packed(number(step), 17), 0, &arrival);
        assert_eq!((found, values.get(id)), (Insert::Seen(id), step % 65_521), "{step}");
    }
    assert_eq!(store.bytes().total(), budget.used());
    drop(values);
    assert!(store.recode(&recoding(17, 20)));
    assert!(store.attached().is_none(), "states from before the change have no ids any more");
    drop(store);
    assert_eq!(budget.used(), 0);
}

/// Layouts that change early and late, for tables of ids and for trees of before.
#[test]
fn a_layout_that_changes_takes_no_second_copy_and_old_ids_stay_good() {
    let system = RandomGraph::of_width(1, WIDTH, 2);
    let spec: StoreSpec = "compact".parse().expect("a store");
    let arrival = Arrival { parent: None, action: Action(0) };
    let layouts = [10, 12, 17, 20];
    for changes in [&[3000u64, 1_000_000][..], &[500_000, 900_000, 1_000_000]] {
        let budget = Arc::new(Budget::unlimited());
        let store = build(&spec, &system, Order::Any, Arc::clone(&budget)).expect("a store");
        let mut scratch = store.scratch();
        let mut ids = Vec::new();
        let mut layout = 0;
        for step in 0..1_100_000 {
            if changes.get(layout) == Some(&step) {
                let before = budget.used();
                assert!(store.recode(&recoding(layouts[layout], layouts[layout + 1])));
                layout += 1;
                assert_eq!(store.bytes().total(), budget.used());
                // The look at the system when the store is made takes some memory, too.
                let most = if step < 10_000 { 3 << 20 } else { before.max(budget.used()) / 3 };
                assert!(
                    budget.peak() <= before.max(budget.used()) + most,
                    "{step}: {} of {before}, {}",
                    budget.peak(),
                    budget.used()
                );
            }
            match store.insert(&mut scratch, &packed(number(step), layouts[layout]), 0, &arrival) {
                Insert::New(id) => ids.push(id),
                other => panic!("{step}: {other:?}"),
            }
        }
        let different: HashSet<StateId> = ids.iter().copied().collect();
        assert_eq!((different.len(), store.len()), (ids.len(), ids.len() as u64));
        let mut states = States::new(WIDTH);
        store.recall().expect("it recalls").recall(&mut scratch, &ids, &mut states);
        for (step, &id) in (0..).zip(&ids) {
            let state = packed(number(step), layouts[layout]);
            assert_eq!(states.get(step as usize), state, "{step}");
            let found = store.find(&mut scratch, &state, 0).expect("it is there");
            assert!(found == id || found == StateId::NAMELESS, "{step}");
            assert_eq!(store.insert(&mut scratch, &state, 0, &arrival), Insert::Seen(found), "{step}");
        }
        assert_eq!(store.bytes().total(), budget.used());
        // Two levels later nobody waits under an old id.
        let old_ids = || store.bytes().parts().iter().any(|part| part.0 == "old ids");
        assert!(old_ids());
        assert!(store.end_level() && old_ids() && store.end_level());
        assert!(!old_ids());
        assert_eq!(store.bytes().total(), budget.used());
        states.clear();
        store.recall().expect("it recalls").recall(&mut scratch, &ids[1_000_000..], &mut states);
        assert_eq!(states.get(77), packed(number(1_000_077), layouts[layout]));
        drop(store);
        assert_eq!(budget.used(), 0);
    }
    // Without the memory for it, all is counted and given back.
    let budget = Arc::new(Budget::new(3 << 20));
    let store = build(&spec, &system, Order::Any, Arc::clone(&budget)).expect("a store");
    let mut scratch = store.scratch();
    let filled =
        (0..).take_while(|&step| store.insert(&mut scratch, &packed(number(step), 10), 0, &arrival) != Insert::Full);
    let filled = filled.count() as u64;
    assert!(filled > 20_000 && !store.recode(&recoding(10, 12)), "{filled}");
    assert_eq!((store.len(), store.bytes().total()), (filled, budget.used()));
    drop(store);
    assert_eq!(budget.used(), 0);
}
