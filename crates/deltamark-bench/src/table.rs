//! A table over many nets.
//!
//! In: nets, stores, searches. Out: a table, and one line of JSON a run appended to the
//! history. Rates are by processor time, where the system tells it, and the best of several
//! runs is shown: what is slower was disturbed from outside.

use crate::nets;
use crate::once::Record;
use comfy_table::{CellAlignment, Table};
use deltamark_testkit::Corpus;
use std::io::Write;
use std::process::Command;

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    /// Nets to measure, instead of the fixed list
    #[arg(long, value_delimiter = ',')]
    nets: Vec<String>,
    /// Stores to measure
    #[arg(long, value_delimiter = ';', default_value = "plain")]
    stores: Vec<String>,
    /// Searches to measure
    #[arg(long, value_delimiter = ',', default_value = "bfs,dfs")]
    searches: Vec<String>,
    /// Runs of each, of which the quickest is shown
    #[arg(long, default_value_t = 2)]
    repeat: u32,
    /// Nets of up to 44 million states too
    #[arg(long)]
    long: bool,
    /// Where one line of JSON a run is appended
    #[arg(long, default_value = "bench-history.jsonl")]
    history: String,
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), String> {
    let mut names = options.nets.clone();
    if names.is_empty() {
        names.extend(nets::GENERATED.iter().map(ToString::to_string));
        if Corpus::find("nets of the outside corpus").is_some() {
            names.extend(nets::CORPUS.iter().map(ToString::to_string));
            if options.long {
                names.extend(nets::LONG.iter().map(ToString::to_string));
            }
        }
    }
    let mut table = Table::new();
    table.set_header([
        "net",
        "store",
        "search",
        "states",
        "M states/s",
        "M edges/s",
        "bytes/state",
        "by part",
        "frontier/state",
        "resident/state",
    ]);
    for column in 3..10 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for net in &names {
        for store in &options.stores {
            for search in &options.searches {
                let record = best(options, net, store, search)?;
                table.add_row(row(&record));
                eprintln!("{net} {store} {search}: {:.2} s", record.seconds);
            }
        }
    }
    println!("{table}");
    Ok(())
}

fn best(options: &Options, net: &str, store: &str, search: &str) -> Result<Record, String> {
    let mut best: Option<Record> = None;
    for _ in 0..options.repeat.max(1) {
        let record = measure(net, store, search)?;
        append(&options.history, &record)?;
        if best.as_ref().is_none_or(|best| record.time() < best.time()) {
            best = Some(record);
        }
    }
    best.ok_or_else(|| "at least one run".into())
}

/// Runs one net in a process of its own.
fn measure(net: &str, store: &str, search: &str) -> Result<Record, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["once", net, "--store", store, "--search", search])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_string());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn append(path: &str, record: &Record) -> Result<(), String> {
    let line = serde_json::to_string(record).map_err(|error| error.to_string())?;
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{line}")).map_err(|error| format!("{path}: {error}"))
}

fn row(record: &Record) -> Vec<String> {
    let states = record.states as f64;
    let per_state = |bytes: u64| format!("{:.2}", bytes as f64 / states);
    let parts: Vec<String> =
        record.store_bytes.iter().map(|(part, &bytes)| format!("{part} {}", per_state(bytes))).collect();
    vec![
        record.net.clone(),
        record.store.clone(),
        record.search.clone(),
        record.states.to_string(),
        format!("{:.2}", states / record.time() / 1e6),
        format!("{:.1}", record.edges as f64 / record.time() / 1e6),
        per_state(record.store_bytes.values().sum()),
        parts.join(", "),
        per_state(record.frontier_bytes),
        record.resident_bytes.map_or("?".into(), per_state),
    ]
}
