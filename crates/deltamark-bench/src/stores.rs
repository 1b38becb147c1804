//! All stores side by side.
//!
//! In: nets and stores. Out: a table for each net, the means over all of them, a picture, and one line of JSON a
//! run appended to the history. What stays true: `plain` is measured right before each run of a store, and times
//! are compared with those runs only, so that varying load of the machine does not change a ratio much; a store
//! that cannot run, or does not end in time, is shown as such and ends nothing; one with a wrong result is shown,
//! and makes the command fail.

use crate::nets;
use crate::once::{Record, search_named};
use crate::process::{Failure, append, history, measure};
use comfy_table::{CellAlignment, Table, presets::ASCII_FULL_CONDENSED};
use deltamark_reproduce::plot::{Point, Scatter, Series};
use deltamark_store::{CATALOGUE, StoreSpec};
use deltamark_testkit::Corpus;
use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(clap::Args)]
pub struct StoresOptions {
    /// Nets to measure, instead of the fixed list
    #[arg(long, value_delimiter = ',')]
    nets: Vec<String>,
    /// Stores to measure, `a;b:option=value;c`, instead of all with their defaults
    #[arg(long, value_delimiter = ';')]
    stores: Vec<String>,
    /// The search
    #[arg(long, default_value = "bfs")]
    search: String,
    /// Runs of each, of which the quickest is shown
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Seconds a run may take
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Nets of up to 44 million states too
    #[arg(long)]
    long: bool,
    /// Print the tables as Markdown
    #[arg(long)]
    markdown: bool,
    /// Where a picture of memory against time is written
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Take the last runs from the history where it has them, and measure only what is missing
    #[arg(long)]
    recorded: bool,
    /// Where one line of JSON a run is appended
    #[arg(long, default_value = "bench-history.jsonl")]
    history: String,
}

/// The baseline.
const PLAIN: &str = "plain";

/// A store on a net.
struct StoreRow {
    store: String,
    result: Result<Measured, Failure>,
}

/// The measurements of a store on a net.
struct Measured {
    record: Record,
    /// The best time of `plain` among the runs right before its own.
    plain_time: Option<f64>,
}

/// Measures and prints.
pub fn run(options: &StoresOptions) -> Result<(), Failure> {
    search_named(&options.search)?;
    let stores = stores(&options.stores)?;
    // A typing error should not show after half an hour.
    for net in &options.nets {
        nets::system(net)?;
    }
    let mut series: Vec<Series> = stores.iter().map(|name| Series { name: name.clone(), points: Vec::new() }).collect();
    let recorded = if options.recorded { history(&options.history)? } else { Vec::new() };
    let mut faults = Vec::new();
    for net in &names(options) {
        let rows = rows(options, net, &stores, &recorded)?;
        print_net(options, net, &rows);
        for (series, row) in series.iter_mut().zip(&rows) {
            series.points.extend(point(net, row, &rows[0]));
            faults.extend(row.result.as_ref().err().filter(|failure| failure.is_fault()).cloned());
        }
        // The picture so far: a path that cannot be written to is reported early.
        if let Some(path) = &options.svg {
            let scatter = Scatter {
                title: "Memory against time, both in times of plain's",
                below: "Small marks are nets, large ones the geometric mean of a store.",
            };
            std::fs::write(path, scatter.draw(&series)).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    print_means(options, &series);
    match faults.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(first),
    }
}

/// The stores to measure, `plain` first.
fn stores(given: &[String]) -> Result<Vec<String>, String> {
    let mut stores = vec![PLAIN.to_string()];
    if given.is_empty() {
        stores.extend(CATALOGUE.iter().map(|info| info.name.to_string()));
    }
    for text in given {
        stores.push(text.trim().parse::<StoreSpec>().map_err(|error| error.to_string())?.to_string());
    }
    let mut seen = std::collections::BTreeSet::new();
    stores.retain(|store| seen.insert(store.clone()));
    Ok(stores)
}

fn names(options: &StoresOptions) -> Vec<String> {
    let mut names: Vec<&str> = options.nets.iter().map(String::as_str).collect();
    if names.is_empty() {
        names.extend(nets::COMPARED);
        if Corpus::find("nets of the outside corpus").is_some() {
            names.extend(nets::COMPARED_CORPUS);
            if options.long {
                names.extend(nets::LONG);
            }
        }
    }
    names.into_iter().map(str::to_string).collect()
}

/// All stores on one net, `plain` first.
fn rows(options: &StoresOptions, net: &str, stores: &[String], recorded: &[Record]) -> Result<Vec<StoreRow>, String> {
    let mut plain: Option<Result<Record, Failure>> = None;
    let mut rows = Vec::new();
    for store in stores.iter().filter(|store| *store != PLAIN) {
        let mut times = Vec::new();
        let mut best: Option<Result<Record, Failure>> = None;
        let before = last_runs(recorded, net, store, &options.search, options.repeat as usize);
        for (yardstick, record) in &before {
            times.push(yardstick.time());
            keep(&mut plain, Ok((*yardstick).clone()));
            keep(&mut best, Ok((*record).clone()));
        }
        let missing = if before.is_empty() { options.repeat } else { 0 };
        for _ in 0..missing {
            // A failure of the baseline is not retried for each store.
            if !matches!(plain, Some(Err(_))) {
                times.extend(again(options, net, PLAIN, &mut plain)?);
            }
            if again(options, net, store, &mut best)?.is_none() {
                break;
            }
        }
        let plain_time = times.into_iter().reduce(f64::min);
        let result = best.unwrap_or(Err(Failure::Broken("no run".into())));
        rows.push(StoreRow { store: store.clone(), result: result.map(|record| Measured { record, plain_time }) });
    }
    if rows.is_empty() {
        // Only the baseline is requested.
        for _ in 0..options.repeat {
            again(options, net, PLAIN, &mut plain)?;
        }
    }
    let result = plain.unwrap_or(Err(Failure::Broken("no run".into())));
    let result = result.map(|record| Measured { plain_time: Some(record.time()), record });
    rows.insert(0, StoreRow { store: PLAIN.into(), result });
    Ok(rows)
}

/// Runs once more and keeps the fastest result, or the failure. Returns the time, if it ran.
fn again(
    options: &StoresOptions,
    net: &str,
    store: &str,
    best: &mut Option<Result<Record, Failure>>,
) -> Result<Option<f64>, String> {
    let result = measure(net, store, &options.search, &[], Some(Duration::from_secs(options.limit)));
    match &result {
        Ok(record) => {
            append(&options.history, record)?;
            eprintln!("{net} {store}: {:.2} s", record.time());
        }
        Err(failure) => eprintln!("{net} {store}: {}: {failure}", failure.word()),
    }
    let time = result.as_ref().ok().map(Record::time);
    keep(best, result);
    Ok(time)
}

/// Keeps the faster result. A failure takes precedence.
fn keep(best: &mut Option<Result<Record, Failure>>, result: Result<Record, Failure>) {
    let better = match (&best, &result) {
        (Some(Ok(best)), Ok(record)) => record.time() < best.time(),
        (Some(Err(_)), _) => false,
        (Some(Ok(_)) | None, _) => true,
    };
    if better {
        *best = Some(result);
    }
}

/// The last `most` runs of a store in the history, each with the run of `plain` before it.
fn last_runs<'a>(
    history: &'a [Record],
    net: &str,
    store: &str,
    search: &str,
    most: usize,
) -> Vec<(&'a Record, &'a Record)> {
    let is = |record: &Record, store: &str| record.net == net && record.store == store && record.search == search;
    let runs = history.iter().enumerate().rev().filter(|(_, record)| is(record, store));
    let pairs = runs.filter_map(|(index, record)| {
        let yardstick = history[..index].iter().rev().find(|record| is(record, PLAIN))?;
        Some((yardstick, record))
    });
    pairs.take(most).collect()
}

/// The position of the store relative to `plain`, if both ran.
fn point(net: &str, row: &StoreRow, plain: &StoreRow) -> Option<Point> {
    let (Measured { record, plain_time }, plain) = (row.result.as_ref().ok()?, &plain.result.as_ref().ok()?.record);
    Some(Point {
        net: net.into(),
        time: record.time() / (*plain_time)?,
        bytes: record.total() as f64 / plain.total() as f64,
        per_state: Some(record.per_state(record.total())),
    })
}

const HEADER: [&str; 9] =
    ["store", "bytes/state", "by part", "frontier", "peak", "resident", "seconds", "time", "missed"];

fn print_net(options: &StoresOptions, net: &str, rows: &[StoreRow]) {
    let plain = rows[0].result.as_ref().ok().map(|measured| &measured.record);
    let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row, plain)).collect();
    let what = plain.map_or(String::new(), |plain| {
        let numbers = [plain.states, plain.edges, plain.depth].map(thousands);
        format!("{} states, {} edges, depth {}; ", numbers[0], numbers[1], numbers[2])
    });
    let what = format!("{what}`--search {}`", options.search);
    if options.markdown {
        println!("### {net}\n\n{what}\n");
        print!("{}", markdown(&HEADER, &cells));
    } else {
        println!("{net}: {what}");
        println!("{}", table(&HEADER, cells));
    }
    let reasons = rows.iter().filter_map(|row| match &row.result {
        Err(failure @ (Failure::Refused(_) | Failure::Wrong(_) | Failure::Broken(_))) => Some((&row.store, failure)),
        _ => None,
    });
    let reasons: Vec<String> = reasons.map(|(store, failure)| format!("`{store}`: {failure}")).collect();
    if !reasons.is_empty() {
        println!("{}{}", if options.markdown { "\n" } else { "" }, reasons.join("\n"));
    }
    println!();
}

fn cells(row: &StoreRow, plain: Option<&Record>) -> Vec<String> {
    let Measured { record, plain_time } = match &row.result {
        Ok(measured) => measured,
        Err(failure) => {
            let mut cells = vec![row.store.clone(), "–".into(), failure.word()];
            cells.resize(HEADER.len(), "–".into());
            return cells;
        }
    };
    let per_state = |bytes: u64| format!("{:.2}", record.per_state(bytes));
    let mut parts: Vec<(&String, &u64)> = record.store_bytes.iter().collect();
    parts.sort_by_key(|&(name, bytes)| (std::cmp::Reverse(bytes), name));
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(part, &bytes)| (part, per_state(bytes)))
        .filter(|(_, bytes)| bytes != "0.00")
        .map(|(part, bytes)| format!("{part} {bytes}"))
        .collect();
    let missed = record.omission.map_or("–".into(), |omission| {
        let count = plain.map_or("?".into(), |plain| thousands(plain.states.saturating_sub(record.states)));
        format!("{count} (p {})", probability(omission))
    });
    vec![
        row.store.clone(),
        per_state(record.total()),
        parts.join(", "),
        per_state(record.frontier_bytes),
        per_state(record.peak_bytes),
        record.resident_bytes.map_or("?".into(), per_state),
        format!("{:.2}", record.time()),
        plain_time.map_or("?".into(), |plain| format!("{:.2}", record.time() / plain)),
        missed,
    ]
}

/// A probability, in its significant digits.
fn probability(value: f64) -> String {
    match value {
        value if value >= 0.95 => "> 0.9".into(),
        value if value >= 0.095 => format!("= {value:.1}"),
        value if value >= 0.0095 => format!("= {value:.2}"),
        value => format!("= {value:.0e}"),
    }
}

fn print_means(options: &StoresOptions, series: &[Series]) {
    const HEADER: [&str; 6] = ["store", "nets", "memory", "at most", "time", "at most"];
    let rows: Vec<Vec<String>> = series
        .iter()
        .filter_map(|series| {
            let (time, bytes, nets) = series.mean()?;
            let most = |of: fn(&Point) -> f64| series.points.iter().map(of).fold(0.0, f64::max);
            Some(vec![
                series.name.clone(),
                nets.to_string(),
                format!("{bytes:.3}"),
                format!("{:.3}", most(|point| point.bytes)),
                format!("{time:.2}"),
                format!("{:.2}", most(|point| point.time)),
            ])
        })
        .collect();
    let what = "Memory and time against `plain`: geometric means over the nets a store ran on, and the most on any.";
    if options.markdown {
        print!("### All nets\n\n{what}\n\n{}", markdown(&HEADER, &rows));
    } else {
        println!("{what}\n{}", table(&HEADER, rows));
    }
}

/// Whether a column contains text.
fn is_text(header: &str) -> bool {
    matches!(header, "store" | "by part")
}

pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_FULL_CONDENSED).set_header(header);
    for (column, name) in header.iter().enumerate() {
        if let Some(column) = table.column_mut(column).filter(|_| !is_text(name)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.add_rows(rows);
    table
}

pub fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let rule: Vec<&str> = header.iter().map(|name| if is_text(name) { "---" } else { "---:" }).collect();
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("| {} |\n|{}|\n", header.join(" | "), rule.join("|"));
    for row in rows {
        // Names of stores are code.
        let mut row: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        row[0] = format!("`{}`", row[0]);
        text.push_str(&line(&row));
    }
    text
}

/// A number in groups of three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(store: &str, bytes: u64, seconds: f64) -> Record {
        Record {
            net: "n".into(),
            store: store.into(),
            threads: 1,
            partitioned: false,
            search: "bfs".into(),
            states: 100,
            edges: 300,
            left_out: 0,
            deadlocks: 0,
            depth: 7,
            seconds: 9.0,
            cpu_seconds: Some(seconds),
            whole_seconds: Some(seconds),
            store_bytes: [("index".to_string(), bytes / 4), ("vectors".to_string(), bytes - bytes / 4)].into(),
            frontier_bytes: 50,
            peak_bytes: 2 * bytes,
            resident_bytes: None,
            widenings: 0,
            omission: None,
            version: String::new(),
        }
    }

    fn row(record: Record, plain_time: f64) -> StoreRow {
        StoreRow { store: record.store.clone(), result: Ok(Measured { record, plain_time: Some(plain_time) }) }
    }

    #[test]
    fn plain_comes_first_and_every_store_once() {
        let given = |texts: &[&str]| stores(&texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        let all = given(&[]).expect("the catalogue");
        assert_eq!((all[0].as_str(), all.len()), ("plain", CATALOGUE.len()));
        let some = given(&["breadcrumb:k=3", "plain", " difference", "difference"]).expect("stores");
        assert_eq!(some, ["plain", "breadcrumb:k=3", "difference"]);
        assert!(given(&["plane"]).is_err());
    }

    #[test]
    fn a_row_tells_bytes_by_part_and_time_against_plain() {
        let (plain, other) = (row(record("plain", 1200, 2.0), 2.0), row(record("other", 300, 3.0), 2.5));
        let reference = plain.result.as_ref().ok().map(|measured| &measured.record);
        assert_eq!(
            cells(&other, reference).join(" | "),
            "other | 3.00 | vectors 2.25, index 0.75 | 0.50 | 6.00 | ? | 3.00 | 1.20 | –"
        );
        let point = point("n", &other, &plain).expect("both ran");
        assert_eq!((point.time, point.bytes, point.per_state), (1.2, 0.25, Some(3.0)));
        let mut lossy = record("lossy", 100, 1.0);
        (lossy.states, lossy.omission) = (98, Some(0.25));
        assert_eq!(cells(&row(lossy, 2.0), reference)[8], "2 (p = 0.2)");
    }

    #[test]
    fn what_did_not_run_has_a_row_and_no_point() {
        let plain = row(record("plain", 1200, 2.0), 2.0);
        let late = StoreRow { store: "slow".into(), result: Err(Failure::Late(Duration::from_secs(3))) };
        let cells = cells(&late, None);
        assert_eq!((cells.len(), &cells[..3]), (HEADER.len(), &["slow", "–", "not done in 3 s"].map(String::from)[..]));
        assert!(point("n", &late, &plain).is_none() && point("n", &plain, &late).is_none());
    }

    /// Every store has a section, and every option a row.
    #[test]
    fn the_page_on_stores_explains_every_store_and_option() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/stores.md");
        let page = std::fs::read_to_string(path).expect("docs/stores.md");
        for info in CATALOGUE {
            let heading = format!("\n## `{}`\n", info.name);
            let (_, rest) = page.split_once(&heading).unwrap_or_else(|| panic!("docs/stores.md lacks {heading:?}"));
            let section = rest.split("\n## ").next().unwrap_or(rest);
            for option in info.options {
                let rows = ["", "`"].map(|quote| format!("| `{}` | {quote}{}{quote} |", option.name, option.default));
                assert!(rows.iter().any(|row| section.contains(row)), "the section of {} lacks {rows:?}", info.name);
            }
        }
    }

    #[test]
    fn the_last_runs_come_with_the_yardstick_before_them() {
        let times = [("plain", 1.0), ("a", 9.0), ("plain", 2.0), ("a", 3.0), ("b", 4.0), ("plain", 5.0), ("a", 6.0)];
        let history: Vec<Record> = times.iter().map(|&(store, seconds)| record(store, 1, seconds)).collect();
        let last = |store, most| -> Vec<(f64, f64)> {
            let runs = last_runs(&history, "n", store, "bfs", most);
            runs.into_iter().map(|(plain, record)| (plain.time(), record.time())).collect()
        };
        assert_eq!(last("a", 2), [(5.0, 6.0), (2.0, 3.0)]);
        assert_eq!(last("b", 2), [(2.0, 4.0)]);
        assert_eq!(last("c", 2), []);
        assert!(last_runs(&history, "n", "a", "dfs", 2).is_empty());
    }

    #[test]
    fn probabilities_are_short() {
        assert_eq!(
            [1.0, 0.87, 0.031, 0.002, 4.4e-7, 0.0].map(probability),
            ["> 0.9", "= 0.9", "= 0.03", "= 2e-3", "= 4e-7", "= 0e0"]
        );
    }

    #[test]
    fn markdown_has_a_line_for_each_row() {
        let rows = vec![vec!["a:k=1".to_string(), "x|y".into()]];
        assert_eq!(markdown(&["store", "time"], &rows), "| store | time |\n|---|---:|\n| `a:k=1` | x\\|y |\n");
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
