//! Every store of the catalogue passes the suite for stores.

use deltamark_core::Order;
use deltamark_store::{CATALOGUE, StoreSpec, build};
use deltamark_testkit::check_store;

#[test]
fn every_store_of_the_catalogue_conforms() {
    for info in CATALOGUE {
        let spec: StoreSpec = info.name.parse().expect("a name of the catalogue");
        for order in [Order::Any, Order::Levels] {
            check_store(order, |system, budget| build(&spec, system, order, budget).expect("a store of the catalogue"));
        }
    }
}

#[test]
fn wrong_specifications_say_what_is_known() {
    let names: Vec<&str> = CATALOGUE.iter().map(|info| info.name).collect();
    let known = format!("there is no store `zzz`; known stores: {}", names.join(", "));
    let cases = [
        ("plane", "there is no store `plane`; did you mean `plain`?"),
        ("zzz", known.as_str()),
        ("plain:k=3", "the store `plain` has no options, so `k` means nothing to it"),
        ("plain,k=3", "the store `plain` has no options, so `k` means nothing to it"),
        ("plain,k", "`k` is not an option of a store; write `plain:option=value`"),
        ("plain:k", "`k` is not an option of a store; write `plain:option=value`"),
        ("plain:", "`` is not an option of a store; write `plain:option=value`"),
    ];
    for (text, message) in cases {
        assert_eq!(text.parse::<StoreSpec>().expect_err(text).to_string(), message);
    }
}
