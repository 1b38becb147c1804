//! Speed-up by several threads.
//!
//! In: nets, stores, a number of threads. Out: a table: one thread, several that share a store, and several that
//! have a store each. What stays true: times are wall-clock times, since that is the purpose of threads, and
//! processor time is shown beside them, so that a busy machine is noticed; the variants are measured in turn, so
//! that all see the same disturbances, and the best of several runs counts.

use crate::nets;
use crate::once::Record;
use crate::process::{Failure, append, measure};
use comfy_table::{CellAlignment, Table};
use deltamark_testkit::Corpus;

/// What to measure.
#[derive(clap::Args)]
pub struct ThreadsOptions {
    /// Nets to measure, instead of those above two million states
    #[arg(long, value_delimiter = ',')]
    nets: Vec<String>,
    /// Stores to measure
    #[arg(long, value_delimiter = ';', default_value = "plain")]
    stores: Vec<String>,
    /// How many threads
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Runs of each, of which the quickest is shown
    #[arg(long, default_value_t = 5)]
    repeat: u32,
    /// Where one line of JSON a run is appended
    #[arg(long, default_value = "bench-history.jsonl")]
    history: String,
}

/// Measures and prints.
pub fn run(options: &ThreadsOptions) -> Result<(), Failure> {
    let mut names = options.nets.clone();
    if names.is_empty() {
        names.extend(["kanban-5", "kanban-6", "philosophers-15"].map(String::from));
        if Corpus::find("nets of the outside corpus").is_some() {
            names.extend(nets::CORPUS.iter().chain(nets::LONG).map(ToString::to_string));
        }
    }
    let mut table = Table::new();
    table.set_header(["net", "store", "way", "seconds", "times as fast", "processor seconds", "bytes/state"]);
    for column in 3..7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for net in &names {
        for store in &options.stores {
            let threads = options.threads.to_string();
            let ways: [(String, Vec<&str>); 3] = [
                ("one thread".into(), vec![]),
                (format!("{threads} share a store"), vec!["--threads", &threads]),
                (format!("{threads} parts"), vec!["--threads", &threads, "--partitioned"]),
            ];
            let best = best(options, net, store, &ways)?;
            let one = best[0].as_ref().map_or(f64::NAN, |record| record.seconds);
            for ((way, _), record) in ways.iter().zip(&best) {
                let row = match record {
                    Some(record) => vec![
                        format!("{:.3}", record.seconds),
                        format!("{:.2}", one / record.seconds),
                        record.cpu_seconds.map_or("?".into(), |seconds| format!("{seconds:.2}")),
                        format!("{:.2}", record.per_state(record.total())),
                    ],
                    None => vec!["refused".into()],
                };
                table.add_row([vec![net.clone(), store.clone(), way.clone()], row].concat());
            }
            eprintln!("{net} {store}");
        }
    }
    println!("{table}");
    Ok(())
}

/// The fastest run of each variant; `None` if it does not work.
fn best(
    options: &ThreadsOptions,
    net: &str,
    store: &str,
    ways: &[(String, Vec<&str>)],
) -> Result<Vec<Option<Record>>, Failure> {
    let mut best: Vec<Option<Record>> = ways.iter().map(|_| None).collect();
    for _ in 0..options.repeat.max(1) {
        for ((_, arguments), best) in ways.iter().zip(&mut best) {
            match measure(net, store, "bfs", arguments, None) {
                Ok(record) => {
                    append(&options.history, &record)?;
                    if best.as_ref().is_none_or(|best| record.seconds < best.seconds) {
                        *best = Some(record);
                    }
                }
                Err(Failure::Refused(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(best)
}
