//! Every store on nets with answers from outside: all exact ones agree in states and edges,
//! breadth-first and depth-first.
//!
//! The small nets are part of every test run; the others, up to three million states, are part
//! of the long run (see `scripts/long`).

use deltamark::{Check, load};
use deltamark_search::Search;
use deltamark_store::{CATALOGUE, StoreInfo};
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use std::ops::RangeInclusive;

/// Nets up to this many states are searched depth-first too.
const TWICE: u64 = 300_000;

/// The stores beside `plain` that never take a state for another.
fn exact() -> impl Iterator<Item = &'static StoreInfo> {
    CATALOGUE.iter().filter(|store| store.name != "plain" && store.guarantee.starts_with("exact"))
}

/// What is wrong with a net, a line each.
fn check(corpus: &Corpus, row: &Row) -> Vec<String> {
    let model = row.text("model").expect("every row names its model");
    let path = corpus.file("pnml", &format!("{model}.pnml"));
    let net = load(&path.to_string_lossy(), None).unwrap_or_else(|error| panic!("{model}: {error}"));
    let states = row.number("states").expect("every row has its states");
    let expected = (Some(states), row.number("edges"));
    let searches = if states <= TWICE { Search::ALL } else { &[Search::Bfs] };
    let mut wrong = Vec::new();
    for store in exact() {
        for &search in searches.iter().filter(|search| store.takes(search.order())) {
            let spec = store.name.parse().expect("a name of the catalogue");
            let run = Check::loaded(&net).deadlock_free().explore_all(true).store(spec).search(search).run();
            let report = run.unwrap_or_else(|error| panic!("{model}, {}: {error}", store.name));
            let found = &report.statistics;
            let edges = expected.1.map(|_| found.edges);
            if (Some(found.states), edges) != expected {
                wrong.push(format!(
                    "{model}, {}, {}: found {} states and {} edges, expected {expected:?}",
                    store.name,
                    search.name(),
                    found.states,
                    found.edges
                ));
            }
            let dead = report.answers[0].verdict.word() == "violated";
            if row.truth("deadlock").is_some_and(|expected| expected != dead) {
                wrong.push(format!("{model}, {}, {}: deadlock is {dead}", store.name, search.name()));
            }
        }
    }
    wrong
}

/// Checks all P/T nets with this many states, of which there must be `count`, on two threads.
fn agree(test: &str, sizes: RangeInclusive<u64>, count: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    let wanted = |row: &Row| {
        row.text("kind") == Some("PT") && row.number("states").is_some_and(|states| sizes.contains(&states))
    };
    corpus.check_rows("pnml", count, wanted, |row| check(&corpus, row));
}

#[test]
fn every_store_agrees_on_small_nets() {
    agree("every_store_agrees_on_small_nets", 0..=20_000, 30);
}

#[test]
#[ignore = "takes minutes: part of scripts/long"]
fn every_store_agrees_on_nets_up_to_three_million() {
    agree("every_store_agrees_on_nets_up_to_three_million", 20_001..=3_000_000, 30);
}
