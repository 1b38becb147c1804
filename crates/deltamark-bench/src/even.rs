//! Every store on every model: how even speed and memory are.
//!
//! In: the models of the outside corpus with known numbers of states, stores, numbers of threads, limits. Out: for
//! each store and number of threads a summary and its worst models, against `plain` with as many threads. What stays
//! true: `plain` runs in the same round as the stores it is compared with, and a ratio is the median over rounds, so
//! that varying load changes it little; times are processor times and include what a store does before the search; a
//! wrong count, or a ratio past a limit that was given, makes the command fail.
//!
//! ```text
//! cargo run --release -p deltamark-bench -- even                                  all up to a million states
//! cargo run --release -p deltamark-bench -- even --sample 12 --stores "compact;tree" --times compact=4,tree=3
//! ```

use crate::once::Record;
use crate::process::{Failure, append, measure};
use crate::stores::{markdown, table, thousands};
use deltamark_store::{CATALOGUE, StoreInfo, StoreSpec};
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use std::time::Duration;

/// What to measure.
#[derive(clap::Args)]
pub struct EvenOptions {
    /// Folders of the corpus
    #[arg(long, value_delimiter = ',', default_value = "pnml,dve,lna")]
    folders: Vec<String>,
    /// Models whose names contain one of these words, instead of all
    #[arg(long, value_delimiter = ',')]
    models: Vec<String>,
    /// Models of at least this many states
    #[arg(long, default_value_t = 20_000)]
    least: u64,
    /// Models of at most this many states
    #[arg(long, default_value_t = 1_000_000)]
    most: u64,
    /// Only this many models, at regular intervals from the smallest to the largest
    #[arg(long)]
    sample: Option<usize>,
    /// Stores to measure, `a;b:option=value;c`, instead of all with their defaults
    #[arg(long, value_delimiter = ';')]
    stores: Vec<String>,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Seconds a run may take
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Limits: at most this many times the time of `plain`, and a margin, `compact=4,tree=3`
    #[arg(long, value_delimiter = ',', value_parser = limit_of)]
    times: Vec<(String, f64)>,
    /// Seconds past a limit that are no offence
    #[arg(long, default_value_t = 0.03)]
    margin: f64,
    /// How many of the worst models are shown
    #[arg(long, default_value_t = 10)]
    worst: usize,
    /// Print the tables as Markdown
    #[arg(long)]
    markdown: bool,
    /// Where one line of JSON a run is appended
    #[arg(long, default_value = "bench-history.jsonl")]
    history: String,
}

fn limit_of(text: &str) -> Result<(String, f64), String> {
    let (store, times) = text.split_once('=').ok_or("write STORE=TIMES")?;
    let times: f64 = times.parse().map_err(|_| format!("`{times}` is no number"))?;
    StoreInfo::by_name(store).ok_or_else(|| format!("there is no store `{store}`"))?;
    if times > 0.0 { Ok((store.into(), times)) } else { Err("a limit is above 0".into()) }
}

/// A model of the corpus and its known counts.
struct Model {
    name: String,
    states: u64,
    edges: Option<u64>,
}

/// A store with a number of threads, and its results.
struct Column {
    store: String,
    threads: usize,
    results: Vec<(usize, Result<Compared, Failure>)>,
}

/// A store on a model.
struct Compared {
    /// The median of its times in times of `plain`'s, and of its own in seconds.
    times: f64,
    seconds: f64,
    /// The median over rounds of what it took beyond `plain`.
    beyond: f64,
    bytes: f64,
    plain_bytes: f64,
}

/// Measures and prints.
pub fn run(options: &EvenOptions) -> Result<(), Failure> {
    let Some(corpus) = Corpus::find("deltamark-bench even") else {
        return Err(Failure::Refused("there is no corpus".into()));
    };
    let models = models(options, &corpus);
    if models.is_empty() {
        return Err(Failure::Refused("no model of the corpus is wanted".into()));
    }
    let mut columns = columns(options)?;
    for (number, model) in models.iter().enumerate() {
        for &threads in &options.threads {
            let mut of_model: Vec<&mut Column> =
                columns.iter_mut().filter(|column| column.threads == threads).collect();
            compare(options, model, number, threads, &mut of_model)?;
        }
        eprintln!("{}/{} {}", number + 1, models.len(), model.name);
    }
    print_summary(options, models.len(), &columns);
    columns.iter().for_each(|column| print_worst(options, &models, column));
    verdict(options, &models, &columns)
}

/// The models that are wanted, from the smallest to the largest.
fn models(options: &EvenOptions, corpus: &Corpus) -> Vec<Model> {
    let mut models: Vec<Model> = Vec::new();
    for folder in &options.folders {
        models.extend(corpus.expected(folder).iter().filter_map(|row| model(folder, row)));
    }
    let wanted = |name: &str| options.models.is_empty() || options.models.iter().any(|word| name.contains(word));
    models.retain(|model| (options.least..=options.most).contains(&model.states) && wanted(&model.name));
    models.sort_by(|one, other| (one.states, &one.name).cmp(&(other.states, &other.name)));
    if let Some(sample) = options.sample.filter(|&sample| sample < models.len()) {
        let (count, mut number) = (models.len(), 0);
        models.retain(|_| {
            number += 1;
            number * sample / count != (number - 1) * sample / count
        });
    }
    models
}

/// The model of a row; `None` if it has no number of states.
fn model(folder: &str, row: &Row) -> Option<Model> {
    let parameters = row.text("parameters").map_or(String::new(), |parameters| format!("?{parameters}"));
    let name = format!("corpus:{folder}/{}{parameters}", row.text("model")?);
    Some(Model { name, states: row.number("states")?, edges: row.number("edges") })
}

fn columns(options: &EvenOptions) -> Result<Vec<Column>, String> {
    let mut specs: Vec<StoreSpec> = Vec::new();
    for text in &options.stores {
        specs.push(text.trim().parse::<StoreSpec>().map_err(|error| error.to_string())?);
    }
    if options.stores.is_empty() {
        let all = CATALOGUE.iter().filter(|info| info.name != PLAIN);
        specs.extend(all.filter_map(|info| info.name.parse::<StoreSpec>().ok()));
    }
    let several = |spec: &StoreSpec| StoreInfo::by_name(&spec.name).is_some_and(|info| info.threads);
    let column = |spec: &StoreSpec, threads| Column { store: spec.to_string(), threads, results: Vec::new() };
    Ok(options
        .threads
        .iter()
        .flat_map(|&threads| {
            specs.iter().filter(move |spec| threads == 1 || several(spec)).map(move |spec| column(spec, threads))
        })
        .collect())
}

const PLAIN: &str = "plain";

/// Runs `plain` and all stores on a model, round by round.
fn compare(
    options: &EvenOptions,
    model: &Model,
    number: usize,
    threads: usize,
    columns: &mut [&mut Column],
) -> Result<(), Failure> {
    let mut rounds: Vec<Vec<(Record, Record)>> = columns.iter().map(|_| Vec::new()).collect();
    let mut failures: Vec<Option<Failure>> = columns.iter().map(|_| None).collect();
    for _ in 0..options.repeat {
        let plain = match once(options, model, PLAIN, threads)? {
            Ok(plain) => plain,
            // Without a yardstick there is nothing to compare; a wrong one is a fault of every column.
            Err(failure) => {
                failures.iter_mut().for_each(|kept| *kept = Some(failure.clone()));
                break;
            }
        };
        for ((column, rounds), failure) in columns.iter().zip(&mut rounds).zip(&mut failures) {
            if failure.is_some() {
                continue;
            }
            match once(options, model, &column.store, threads)? {
                Ok(record) => rounds.push((plain.clone(), record)),
                Err(why) => *failure = Some(why),
            }
        }
    }
    for ((column, rounds), failure) in columns.iter_mut().zip(rounds).zip(failures) {
        column.results.push((number, failure.map_or_else(|| Ok(compared(&rounds)), Err)));
    }
    Ok(())
}

/// One run, its counts checked.
fn once(options: &EvenOptions, model: &Model, store: &str, threads: usize) -> Result<Result<Record, Failure>, String> {
    let (threads, limit) = (threads.to_string(), Duration::from_secs(options.limit));
    let result = measure(&model.name, store, "bfs", &["--threads", &threads], Some(limit)).and_then(|record| {
        append(&options.history, &record)?;
        let lossy = record.omission.is_some();
        let right = |found: u64, known: u64| if lossy { found <= known } else { found == known };
        if right(record.states, model.states) && model.edges.is_none_or(|edges| right(record.edges, edges)) {
            return Ok(record);
        }
        let (states, edges) = (record.states, record.edges);
        let known = model.edges.map_or("unknown".into(), |edges| edges.to_string());
        Err(Failure::Wrong(format!("{states} states and {edges} edges, there are {} and {known}", model.states)))
    });
    if let Err(failure) = &result {
        eprintln!("{} {store}: {}: {failure}", model.name, failure.word());
    }
    Ok(result)
}

/// What rounds of `plain` and a store show.
fn compared(rounds: &[(Record, Record)]) -> Compared {
    let over = |of: &dyn Fn(&Record, &Record) -> f64| median(rounds.iter().map(|(plain, own)| of(plain, own)));
    Compared {
        // The clock of several threads goes in steps of ten milliseconds.
        times: over(&|plain, own| {
            let least = if own.threads > 1 { 0.01 } else { 0.001 };
            own.whole_time().max(least) / plain.whole_time().max(least)
        }),
        seconds: over(&|_, own| own.whole_time()),
        beyond: over(&|plain, own| own.whole_time() - plain.whole_time()),
        bytes: over(&|_, own| own.per_state(own.total())),
        plain_bytes: over(&|plain, _| plain.per_state(plain.total())),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    if values.is_empty() { f64::NAN } else { values[values.len() / 2] }
}

impl Column {
    fn compared(&self) -> impl Iterator<Item = (usize, &Compared)> {
        self.results.iter().filter_map(|(model, result)| Some((*model, result.as_ref().ok()?)))
    }

    fn failed(&self, which: impl Fn(&Failure) -> bool) -> usize {
        self.results.iter().filter(|(_, result)| result.as_ref().is_err_and(&which)).count()
    }

    /// The limit on its time that was given.
    fn limit(&self, options: &EvenOptions) -> Option<f64> {
        let name = self.store.split(':').next();
        options.times.iter().rev().find(|(store, _)| Some(store.as_str()) == name).map(|&(_, times)| times)
    }
}

fn show(options: &EvenOptions, header: &[&str], rows: Vec<Vec<String>>) {
    if options.markdown {
        println!("{}", markdown(header, &rows));
    } else {
        println!("{}", table(header, rows));
    }
}

fn print_summary(options: &EvenOptions, models: usize, columns: &[Column]) {
    let header = [
        "store",
        "threads",
        "models",
        "median time",
        "nine in ten",
        "worst",
        "median bytes",
        "refused",
        "late",
        "wrong",
    ];
    let rows = columns.iter().map(|column| {
        let mut times: Vec<f64> = column.compared().map(|(_, compared)| compared.times).collect();
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times.get(times.len().saturating_sub(1) * share / 100);
        let times_at = |share| at(share).map_or("–".into(), |times| format!("{times:.2}"));
        let bytes = median(column.compared().map(|(_, compared)| compared.bytes / compared.plain_bytes));
        vec![
            column.store.clone(),
            column.threads.to_string(),
            times.len().to_string(),
            times_at(50),
            times_at(90),
            times_at(100),
            format!("{bytes:.2}"),
            column.failed(|failure| matches!(failure, Failure::Refused(_))).to_string(),
            column.failed(|failure| matches!(failure, Failure::Late(_))).to_string(),
            column.failed(Failure::is_fault).to_string(),
        ]
    });
    println!("{models} models; times and bytes in those of `plain`\n");
    show(options, &header, rows.collect());
}

fn print_worst(options: &EvenOptions, models: &[Model], column: &Column) {
    let mut worst: Vec<(usize, &Compared)> = column.compared().collect();
    worst.sort_by(|(_, one), (_, other)| other.times.total_cmp(&one.times));
    worst.truncate(options.worst);
    if worst.is_empty() {
        return;
    }
    let header = ["model", "states", "seconds", "time", "bytes/state", "plain's"];
    let row = |(model, compared): (usize, &Compared)| {
        let model = &models[model];
        vec![
            model.name.trim_start_matches("corpus:").to_string(),
            thousands(model.states),
            format!("{:.3}", compared.seconds),
            format!("{:.2}", compared.times),
            format!("{:.2}", compared.bytes),
            format!("{:.2}", compared.plain_bytes),
        ]
    };
    let threads = if column.threads == 1 { "one thread".into() } else { format!("{} threads", column.threads) };
    println!("### {}, {threads}: the worst\n", column.store);
    show(options, &header, worst.into_iter().map(row).collect());
}

/// A fault, or a limit that was passed.
fn verdict(options: &EvenOptions, models: &[Model], columns: &[Column]) -> Result<(), Failure> {
    for column in columns {
        for (model, result) in &column.results {
            let name = &models[*model].name;
            match result {
                Err(failure) if failure.is_fault() => {
                    return Err(Failure::Wrong(format!("{name}, {}: {failure}", column.store)));
                }
                Err(_) => {}
                Ok(compared) => {
                    if let Some(limit) = column.limit(options)
                        && offends(compared, limit, options.margin)
                    {
                        return Err(Failure::Wrong(format!(
                            "{name}, {}, threads: {}: {:.1} times the time of plain, more than {limit}",
                            column.store, column.threads, compared.times
                        )));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether a store took more than `limit` times the time of `plain` and the margin.
fn offends(compared: &Compared, limit: f64, margin: f64) -> bool {
    let plain = compared.seconds - compared.beyond;
    compared.times > limit && compared.seconds > limit * plain + margin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_margin() {
        let compared = |seconds: f64, plain: f64| Compared {
            times: seconds / plain,
            seconds,
            beyond: seconds - plain,
            bytes: 1.0,
            plain_bytes: 1.0,
        };
        assert!(offends(&compared(0.5, 0.1), 4.0, 0.03));
        assert!(!offends(&compared(0.42, 0.1), 4.0, 0.03));
        assert!(!offends(&compared(0.04, 0.005), 4.0, 0.03));
    }

    #[test]
    fn limits_are_of_stores_that_exist() {
        assert_eq!(limit_of("compact=4"), Ok(("compact".into(), 4.0)));
        for wrong in ["compact", "compact=", "compact=-1", "nothing=3"] {
            assert!(limit_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert!(median(std::iter::empty()).is_nan());
    }
}
