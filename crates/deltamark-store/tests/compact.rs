//! `compact` alone: the suite for stores of fixed width, and what it promises beyond it.

use deltamark_core::{Budget, Order, Store, System};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::{RandomGraph, check_fixed_store};
use std::sync::Arc;

fn make<'a>(system: &'a dyn System, order: Order, budget: Arc<Budget>) -> Box<dyn Store + 'a> {
    let spec: StoreSpec = "compact".parse().expect("a store");
    build(&spec, system, order, budget).expect("a system of fixed width")
}

#[test]
fn compact_conforms_in_any_order() {
    check_fixed_store(Order::Any, |system, budget| make(system, Order::Any, budget));
}

#[test]
fn compact_conforms_level_by_level() {
    check_fixed_store(Order::Levels, |system, budget| make(system, Order::Levels, budget));
}

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
