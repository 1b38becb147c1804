//! The long run: nets with known results from outside that are too large for every day.
//!
//! In: the P/T nets of the corpus above three million states. Out: a line a net, with its cost. Each net has
//! a process of its own, so that its resident size is its own. `scripts/long` runs it.

mod common;

use common::run;
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use serde_json::Value;

/// The fields of a report and the corresponding columns of the table.
const SAME: &[(&str, &str)] = &[
    ("/states", "states"),
    ("/edges", "edges"),
    ("/deadlocks", "deadlock_states"),
    ("/max_tokens_in_place", "max_tokens_in_place"),
    ("/max_tokens_in_marking", "max_tokens_in_marking"),
];

/// What is wrong with a report.
fn differences(row: &Row, report: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, column) in SAME {
        let found = report.pointer(path).and_then(Value::as_u64);
        if let Some(expected) = row.number(column).filter(|&expected| found != Some(expected)) {
            wrong.push(format!("{column}: found {found:?}, expected {expected}"));
        }
    }
    let dead = report["deadlocks"].as_u64().map(|deadlocks| deadlocks > 0);
    if let Some(expected) = row.truth("deadlock").filter(|&expected| dead != Some(expected)) {
        wrong.push(format!("deadlock: found {dead:?}, expected {expected}"));
    }
    if !report["stopped_by"].is_null() {
        wrong.push(format!("stopped by {}", report["stopped_by"]));
    }
    wrong
}

/// Explores a net, prints its line, and returns what is wrong.
fn check(corpus: &Corpus, row: &Row) -> Vec<String> {
    let model = row.text("model").expect("every row names its model");
    let path = corpus.file("pnml", &format!("{model}.pnml"));
    let path = path.canonicalize().expect("the net is there").to_string_lossy().into_owned();
    let run = run(&["stats", &path, "--json"]);
    let Ok(report) = serde_json::from_str::<Value>(&run.stdout) else {
        return vec![format!("{model}: exit {}: {}", run.exit, run.stderr)];
    };
    let wrong = differences(row, &report);
    let figure = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    println!(
        "{model:<34} {:>10} {:>12} {:>8.2} {:>8.2} {:>8.2} {:>9.0}  {}",
        figure("/states"),
        figure("/edges"),
        figure("/seconds/search"),
        figure("/states_per_second") / 1e6,
        figure("/store/bytes_per_state"),
        figure("/peak_rss_bytes") / f64::from(1 << 20),
        if wrong.is_empty() { "OK" } else { "WRONG" },
    );
    wrong.into_iter().map(|wrong| format!("{model}: {wrong}")).collect()
}

#[test]
#[ignore = "takes minutes and gigabytes; run by scripts/long"]
fn large_nets_agree() {
    let Some(corpus) = Corpus::find("large_nets_agree") else { return };
    let large = |row: &Row| row.text("kind") == Some("PT") && row.number("states") > Some(3_000_000);
    let rows: Vec<Row> = corpus.expected("pnml").into_iter().filter(large).collect();
    assert!(rows.len() >= 20, "only {} large nets", rows.len());
    println!(
        "{:<34} {:>10} {:>12} {:>8} {:>8} {:>8} {:>9}",
        "net", "states", "edges", "seconds", "M/s", "B/state", "MiB held"
    );
    let wrong: Vec<String> = rows.iter().flat_map(|row| check(&corpus, row)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
