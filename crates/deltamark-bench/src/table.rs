//! A table over many nets.
//!
//! In: nets, stores, searches. Out: a table, and one line of JSON a run appended to the history. Rates are by
//! processor time, if the system reports it, and the best of several runs is shown: slower ones were disturbed
//! from outside.

use crate::nets;
use crate::once::Record;
use crate::process::{append, measure};
use comfy_table::{CellAlignment, Table};
use deltamark_testkit::Corpus;

/// What to measure.
#[derive(clap::Args)]
pub struct TableOptions {
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
pub fn run(options: &TableOptions) -> Result<(), String> {
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
        "peak/state",
        "resident/state",
    ]);
    for column in 3..11 {
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

fn best(options: &TableOptions, net: &str, store: &str, search: &str) -> Result<Record, String> {
    let mut best: Option<Record> = None;
    for _ in 0..options.repeat.max(1) {
        let record = measure(net, store, search, &[], None).map_err(|failure| failure.to_string())?;
        append(&options.history, &record)?;
        if best.as_ref().is_none_or(|best| record.time() < best.time()) {
            best = Some(record);
        }
    }
    best.ok_or_else(|| "at least one run".into())
}

fn row(record: &Record) -> Vec<String> {
    let states = record.states as f64;
    let per_state = |bytes: u64| format!("{:.2}", record.per_state(bytes));
    let parts: Vec<String> =
        record.store_bytes.iter().map(|(part, &bytes)| format!("{part} {}", per_state(bytes))).collect();
    vec![
        record.net.clone(),
        record.store.clone(),
        record.search.clone(),
        record.states.to_string(),
        format!("{:.2}", states / record.time() / 1e6),
        format!("{:.1}", record.edges as f64 / record.time() / 1e6),
        per_state(record.total()),
        parts.join(", "),
        per_state(record.frontier_bytes),
        per_state(record.peak_bytes),
        record.resident_bytes.map_or("?".into(), per_state),
    ]
}
