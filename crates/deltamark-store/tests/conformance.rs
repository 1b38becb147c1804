//! Every store of the catalogue passes the suite for stores.

use deltamark_core::{Budget, Order};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_search::SAMPLERS;
use deltamark_store::bitstate::Bitstate;
use deltamark_store::compaction::Compaction;
use deltamark_store::{CATALOGUE, Need, StoreInfo, StoreSpec, Traffic, build};
use deltamark_testkit::{RandomGraph, check_fixed_store, check_reversible_store, check_store, is_chosen_store};
use std::sync::Arc;

/// States in this order, and samples of the system beforehand.
fn sampled(order: Order) -> Traffic {
    Traffic { samplers: SAMPLERS, ..order.into() }
}

/// Checks every store that is made for this order.
fn conform(order: Order) {
    // `build` refuses a bitstate store that does not get its array, and the default is large: it
    // has a test of its own.
    let chosen = |info: &&StoreInfo| info.name != "bitstate" && info.takes(order) && is_chosen_store(info.name);
    for info in CATALOGUE.iter().filter(chosen) {
        println!("{}", info.name);
        let spec: StoreSpec = info.name.parse().expect("a name of the catalogue");
        if info.needs.contains(&Need::Undo) {
            check_reversible_store(order, |system, budget| {
                build(&spec, system, sampled(order), budget).expect("a store")
            });
        } else if info.needs.contains(&Need::FixedWidth) {
            check_fixed_store(order, |system, budget| build(&spec, system, sampled(order), budget).expect("a store"));
        } else {
            check_store(order, |system, budget| build(&spec, system, sampled(order), budget).expect("a store"));
        }
    }
}

#[test]
fn every_store_of_the_catalogue_conforms_in_any_order() {
    conform(Order::Any);
}

#[test]
fn every_store_of_the_catalogue_conforms_level_by_level() {
    conform(Order::Levels);
}

#[test]
fn stores_recall_all_states_as_the_catalogue_has_it() {
    let system = NetSystem::new(generate("kanban", 1).expect("a known family"));
    for info in CATALOGUE {
        let spec: StoreSpec =
            if info.name == "bitstate" { "bitstate:bits=13" } else { info.name }.parse().expect("a store");
        for order in [Order::Any, Order::Levels].into_iter().filter(|&order| info.takes(order)) {
            let store = build(&spec, &system, order, Arc::new(Budget::unlimited())).expect("a store");
            assert_eq!(store.recall().is_some_and(|recall| recall.whole()), info.recalls, "{}", info.name);
        }
    }
}

#[test]
fn bitstate_conforms_with_arrays_of_all_kinds() {
    for (bits, hashes) in [(13, 1), (20, 3), (24, 16)] {
        for order in [Order::Any, Order::Levels] {
            check_store(order, |_, budget| Box::new(Bitstate::new(bits, hashes, budget)));
        }
    }
}

#[test]
fn compaction_conforms_with_signatures_of_all_lengths() {
    for bits in [16, 24, 32, 40, 62, 63, 64] {
        check_store(Order::Any, |_, budget| Box::new(Compaction::new(bits, budget)));
    }
}

#[test]
fn options_without_meaning_are_refused() {
    let cases = [
        (
            "compaction:bits=15",
            "`15` is no value for the option `bits` of the store `compaction`; it takes a number from 16 to 64",
        ),
        (
            "bitstate:bits=many",
            "`many` is no value for the option `bits` of the store `bitstate`; it takes a number from 13 to 43",
        ),
        (
            "bitstate:hashes=0",
            "`0` is no value for the option `hashes` of the store `bitstate`; it takes a number from 1 to 16",
        ),
        (
            "bitstate:bits=30",
            "the store `bitstate` takes its array of 128 MiB at once, and there is not as much memory; \
             give it a smaller `bits` than 30, or the run a larger `--memory`",
        ),
        ("collapse:bits=3", "the store `collapse` has no options, so `bits` means nothing to it"),
        ("bitstate:hashs=3", "the store `bitstate` has no option `hashs`; did you mean `hashes`?"),
        ("breadcrumb", "the store `breadcrumb` works level by level; search with `--search bfs`"),
        ("breadcrumb:tag=0", "the store `breadcrumb` works level by level; search with `--search bfs`"),
    ];
    let system = RandomGraph::new(1, 10);
    for (text, message) in cases {
        let built = text
            .parse::<StoreSpec>()
            .and_then(|spec| build(&spec, &system, Order::Any, Arc::new(Budget::new(1 << 20))).map(|_| ()));
        assert_eq!(built.expect_err(text).to_string(), message);
    }
}

#[test]
fn wrong_specifications_say_what_is_known() {
    let names: Vec<&str> = CATALOGUE.iter().map(|info| info.name).collect();
    let known = format!("there is no store `zzz`; known stores: {}, auto", names.join(", "));
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
