//! Models in DVE: native code against the interpreter, and against SPIN.
//!
//! In: models of the outside corpus, or files; a folder with Promela sources of the same names. Out: a table. What
//! stays true: every run is a process of its own, times are processor times, the fastest of several runs is shown;
//! a run with wrong counts is no result.
//!
//! ```text
//! cargo run --release -p deltamark-bench -- dve
//! cargo run --release -p deltamark-bench -- dve --models at.3,peterson.4 --promela crates/deltamark-bench/systems
//! ```
//!
//! Edges a second are those of the model, as counted. A breadth-first search follows only some of them, because of
//! sleep sets (see `sleep.rs` of the crate `deltamark-core`); the rate of followed edges is shown beside.
//!
//! SPIN is run if it is installed and the folder has `NAME.pm` or `NAME.pml`, as described in `tools.rs`. The
//! sources in `systems` have the states and transitions of BEEM's models, one for one; if a source has others, its
//! states are shown. The comparison is in transitions a second.

use crate::nets::Counts;
use crate::once::Record;
use crate::process::{Failure, append, measure};
use crate::tools;
use comfy_table::{CellAlignment, Table};
use deltamark_dve::DveSystem;
use deltamark_dve::native::Native;
use deltamark_reproduce::thread_time;
use deltamark_testkit::Corpus;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What to measure.
#[derive(clap::Args)]
pub struct DveOptions {
    /// Models of the corpus, or files [default: all of the corpus with 1 to 20 million states]
    #[arg(long, value_delimiter = ',')]
    models: Vec<String>,
    /// The store
    #[arg(long, default_value = "plain")]
    store: String,
    /// Runs of each, of which the quickest is shown
    #[arg(long, default_value_t = 2)]
    repeat: u32,
    /// Leave the interpreter out
    #[arg(long)]
    native_only: bool,
    /// Only compile native code and print how long that takes, for all models of the corpus
    #[arg(long)]
    code_only: bool,
    /// A folder with Promela sources, `NAME.pm` or `NAME.pml`
    #[arg(long)]
    promela: Option<PathBuf>,
    /// Where one line of JSON a run is appended
    #[arg(long, default_value = "bench-history.jsonl")]
    history: String,
}

/// The text of a model of the corpus, or of a file, and its counts if they are known.
pub fn text(model: &str) -> Result<(Vec<u8>, Option<Counts>), String> {
    if [".dve", ".mdve"].iter().any(|ending| model.ends_with(ending)) {
        return Ok((std::fs::read(model).map_err(|error| format!("{model}: {error}"))?, None));
    }
    let corpus = Corpus::find(model).ok_or_else(|| format!("`{model}` is no file, and there is no corpus"))?;
    let path = corpus.file("dve", &format!("{model}.dve"));
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rows = corpus.expected("dve");
    let row = rows.iter().find(|row| row.text("model") == Some(model));
    Ok((text, row.and_then(|row| Some((row.number("states")?, row.number("edges")?)))))
}

/// The models of the corpus whose number of states is in this range.
fn models(states: std::ops::RangeInclusive<u64>) -> Vec<String> {
    let Some(corpus) = Corpus::find("models in DVE of the outside corpus") else { return Vec::new() };
    let rows = corpus.expected("dve");
    let wanted = rows.iter().filter(|row| row.number("states").is_some_and(|count| states.contains(&count)));
    wanted.filter_map(|row| row.text("model").map(str::to_string)).collect()
}

/// Measures and prints.
pub fn run(options: &DveOptions) -> Result<(), Failure> {
    let mut names = options.models.clone();
    if names.is_empty() {
        names = models(if options.code_only { 0..=u64::MAX } else { 1_000_000..=20_000_000 });
    }
    if options.code_only {
        return code(&names);
    }
    let mut table = Table::new();
    let header = ["model", "states", "M states/s", "M edges/s", "followed M edges/s", "bytes/state", "ready ms"];
    let others = ["interpreter M states/s", "times slower", "SPIN M edges/s", "ratio", "ratio of followed"];
    table.set_header(header.into_iter().chain(others));
    let mut means = Means::default();
    for name in &names {
        let native = best(options, &format!("dve:{name}@native"))?;
        let ready = make(name)?.ready();
        let interpreted =
            if options.native_only { None } else { Some(best(options, &format!("dve:{name}@interpreter"))?) };
        let spin = options.promela.as_deref().and_then(|folder| spin(folder, name, &native));
        let rate = |count: u64, time: f64| count as f64 / time / 1e6;
        let (states, edges) = (rate(native.states, native.time()), rate(native.edges, native.time()));
        let followed = rate(native.edges - native.left_out, native.time());
        let slower = interpreted.as_ref().map(|record| record.time() / native.time());
        means.states.push(states);
        means.edges.push(edges);
        means.followed.push(followed);
        means.bytes.push(native.per_state(native.total()));
        means.slower.extend(slower);
        means.spin.extend(spin.map(|spin| edges / spin));
        means.spin_followed.extend(spin.map(|spin| followed / spin));
        let or_dash = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.2}"));
        table.add_row([
            name.clone(),
            native.states.to_string(),
            format!("{states:.2}"),
            format!("{edges:.2}"),
            format!("{followed:.2}"),
            format!("{:.1}", native.per_state(native.total())),
            format!("{ready:.1}"),
            or_dash(interpreted.as_ref().map(|record| rate(record.states, record.time()))),
            or_dash(slower),
            or_dash(spin),
            or_dash(spin.map(|spin| edges / spin)),
            or_dash(spin.map(|spin| followed / spin)),
        ]);
    }
    let or_dash = |values: &[f64]| geometric(values).map_or("-".to_string(), |mean| format!("{mean:.2}"));
    table.add_row([
        "geometric mean".to_string(),
        String::new(),
        or_dash(&means.states),
        or_dash(&means.edges),
        or_dash(&means.followed),
        or_dash(&means.bytes),
        String::new(),
        String::new(),
        or_dash(&means.slower),
        String::new(),
        or_dash(&means.spin),
        or_dash(&means.spin_followed),
    ]);
    let count = means.bytes.len().max(1) as f64;
    let bytes = format!("{:.2}", means.bytes.iter().sum::<f64>() / count);
    table.add_row(["arithmetic mean", "", "", "", "", &bytes]);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    println!("{table}");
    Ok(())
}

#[derive(Default)]
struct Means {
    states: Vec<f64>,
    edges: Vec<f64>,
    followed: Vec<f64>,
    bytes: Vec<f64>,
    slower: Vec<f64>,
    spin: Vec<f64>,
    spin_followed: Vec<f64>,
}

/// The geometric mean, if there are values.
fn geometric(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

/// The fastest of several runs.
fn best(options: &DveOptions, net: &str) -> Result<Record, Failure> {
    let mut quickest: Option<Record> = None;
    for _ in 0..options.repeat.max(1) {
        let record = measure(net, &options.store, "bfs", &[], None)?;
        append(&options.history, &record)?;
        if quickest.as_ref().is_none_or(|best| record.time() < best.time()) {
            quickest = Some(record);
        }
    }
    quickest.ok_or_else(|| Failure::Broken("nothing was run".into()))
}

/// The time until a model can run, in milliseconds of processor time.
struct Making {
    /// From its text to the intermediate representation.
    read: f64,
    /// Native code for all its locations.
    code: f64,
    /// Names, and the facts about its steps.
    rest: f64,
    functions: u32,
}

impl Making {
    fn ready(&self) -> f64 {
        self.read + self.code + self.rest
    }
}

/// Prepares a model to run, including the code of all locations.
fn make(name: &str) -> Result<Making, String> {
    let (text, _) = text(name)?;
    let started = Instant::now();
    let before = thread_time();
    // Processor time if the system reports it, as for runs.
    let now = || before.zip(thread_time()).map_or(started.elapsed().as_secs_f64(), |(before, now)| now - before) * 1e3;
    let program = deltamark_dve::parse(&text).map_err(|problems| format!("{name}: {}", problems[0].message))?;
    let read = now();
    let native = Native::new(&program)?;
    let functions = native.make_all(&program).functions;
    let code = now();
    let system = DveSystem::with_engine(program, Box::new(native));
    let rest = now();
    drop(system);
    Ok(Making { read, code: code - read, rest: rest - code, functions })
}

/// Prints compile times.
fn code(names: &[String]) -> Result<(), Failure> {
    let mut table = Table::new();
    table.set_header(["model", "read ms", "code ms", "rest ms", "ready ms", "functions"]);
    for name in names {
        let made = make(name)?;
        let times = [made.read, made.code, made.rest, made.ready()].map(|time| format!("{time:.1}"));
        table.add_row([name.clone()].into_iter().chain(times).chain([made.functions.to_string()]));
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    println!("{table}");
    Ok(())
}

/// Millions of transitions a second of SPIN on the Promela source of this name, if both exist; beside our own run.
fn spin(folder: &Path, name: &str, own: &Record) -> Option<f64> {
    let source = ["pm", "pml"].into_iter().map(|ending| folder.join(format!("{name}.{ending}")));
    let source = source.into_iter().find(|path| path.is_file())?;
    let reading = tools::spin(&source).inspect_err(|why| eprintln!("SKIPPED: SPIN on {name}: {why}")).ok()?;
    if reading.states != own.states {
        eprintln!("SPIN on {name}: {} states, not {}", reading.states, own.states);
    }
    Some(reading.transitions as f64 / reading.seconds / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric(&[]), None);
        assert!((geometric(&[2.0, 8.0]).expect("a mean") - 4.0).abs() < 1e-9);
    }
}
