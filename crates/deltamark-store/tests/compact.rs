//! What `compact` promises beyond what every store does.

use deltamark_core::{Budget, Order};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::RandomGraph;
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
