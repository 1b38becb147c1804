//! Nets with answers from outside: every one of up to three million states agrees.
//!
//! The figures were found by other tools. Larger nets are checked by the long run (see
//! `scripts/long`). The tests are split by the size of the nets, so that two processors have
//! about as much to do.

use deltamark::stats::Stats;
use deltamark::{Check, Loaded, load};
use deltamark_search::Search;
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use std::ops::RangeInclusive;

/// Nets up to this many states are searched depth-first too.
const TWICE: u64 = 300_000;

fn net(corpus: &Corpus, folder: &str, model: &str) -> Loaded {
    let path = corpus.file(folder, &format!("{model}.pnml"));
    load(&path.to_string_lossy(), None).unwrap_or_else(|error| panic!("{model}: {error}"))
}

fn stats(net: &Loaded, search: Search) -> Stats {
    Check::loaded(net).deadlock_free().search(search).stats().expect("a run")
}

/// What is wrong, as `column: found …, expected …`. Columns that the table leaves empty ask
/// nothing.
fn differences(row: &Row, stats: &Stats) -> Vec<String> {
    let Stats { report, survey } = stats;
    let found = [
        ("states", Some(report.statistics.states)),
        ("edges", Some(report.statistics.edges)),
        ("deadlock_states", Some(report.statistics.deadlocks)),
        ("max_tokens_in_place", survey.max_tokens_in_place.map(|tokens| tokens as u64)),
        ("max_tokens_in_marking", survey.max_tokens_in_marking.map(|tokens| tokens as u64)),
    ];
    let numbers = found.into_iter().filter_map(|(column, found)| {
        let expected = row.number(column)?;
        (found != Some(expected)).then(|| format!("{column}: found {found:?}, expected {expected}"))
    });
    let dead = report.statistics.deadlocks > 0;
    let verdict = report.answers[0].verdict.word();
    let deadlock = row
        .truth("deadlock")
        .filter(|&expected| expected != dead || verdict != if expected { "violated" } else { "holds" });
    let deadlock = deadlock.map(|expected| format!("deadlock: found {dead} ({verdict}), expected {expected}"));
    let ended = report.stopped_by.map(|stop| format!("stopped by {}", stop.word()));
    numbers.chain(deadlock).chain(ended).collect()
}

fn check(corpus: &Corpus, folder: &str, row: &Row) -> Vec<String> {
    let model = row.text("model").expect("every row names its model");
    let net = net(corpus, folder, model);
    let states = row.number("states").expect("every row has its states");
    let searches: &[Search] = if states <= TWICE { &[Search::Bfs, Search::Dfs] } else { &[Search::Bfs] };
    let tell = |search: &Search| {
        let wrong = differences(row, &stats(&net, *search));
        wrong.into_iter().map(|wrong| format!("{model}, {}: {wrong}", search.name())).collect::<Vec<_>>()
    };
    searches.iter().flat_map(tell).collect()
}

/// Checks all P/T nets with this many states, of which there must be `count`.
fn agree(test: &str, sizes: RangeInclusive<u64>, count: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    let wanted = |row: &Row| {
        row.text("kind") == Some("PT") && row.number("states").is_some_and(|states| sizes.contains(&states))
    };
    let rows: Vec<Row> = corpus.expected("pnml").into_iter().filter(wanted).collect();
    assert!(rows.len() >= count, "only {} nets with {sizes:?} states", rows.len());
    let wrong: Vec<String> = rows.iter().flat_map(|row| check(&corpus, "pnml", row)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn small_nets_agree() {
    agree("small_nets_agree", 0..=TWICE, 50);
}

#[test]
fn nets_below_a_million_and_a_half_agree() {
    agree("nets_below_a_million_and_a_half_agree", TWICE + 1..=1_500_000, 5);
}

#[test]
fn nets_below_three_million_agree() {
    agree("nets_below_three_million_agree", 1_500_001..=3_000_000, 5);
}

#[test]
fn generated_nets_agree() {
    let Some(corpus) = Corpus::find("generated_nets_agree") else { return };
    let rows = corpus.expected("bench");
    assert!(rows.len() >= 4, "only {} nets", rows.len());
    let wrong: Vec<String> = rows.iter().flat_map(|row| check(&corpus, "bench", row)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
