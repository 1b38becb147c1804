//! Sweeps beside `plain`.
//!
//! In: nets. Out: a table: the number of transitions that the measure found moves forwards and back, the fraction
//! of the state space that a sweep holds at once, and its time relative to breadth-first search over `plain`, with
//! sleep sets and without. What stays true: counts of a sweep that reports that it explored nothing twice are
//! compared with the known ones.

use crate::nets;
use crate::process::Failure;
use deltamark_core::{Batch, Block, Control, Insert, Measure, Remember, Scratch, System, Window};
use deltamark_search::{Observer, Search, SweepTask, Swept, Task, run, run_sweep, trial};
use deltamark_store::plain::Plain;
use deltamark_store::sweep::layers::Layers;
use deltamark_testkit::Corpus;

/// What to run.
#[derive(clap::Args)]
pub struct SweepOptions {
    /// Nets: generated ones such as `kanban-5`, nets of the outside corpus, or models such as `dve:lamport.5`; all P/T nets of the corpus without any
    nets: Vec<String>,
    /// Leave out nets with more states than this
    #[arg(long, default_value = "3000000")]
    most: u64,
    /// States of the sample by which a measure is chosen
    #[arg(long, default_value = "20000")]
    sample: usize,
    /// Runs of which the fastest counts
    #[arg(long, default_value = "1")]
    runs: usize,
}

/// Runs and prints.
pub fn run_all(options: &SweepOptions) -> Result<(), Failure> {
    let names = if options.nets.is_empty() { corpus(options.most)? } else { options.nets.clone() };
    println!(
        "{:<34} {:>10} {:>5} {:>7} {:>10} {:>6} {:>6} {:>7} {:>9} {:>7} {:>7} {:>7} {:>7}",
        "net",
        "states",
        "moves",
        "regress",
        "peak",
        "%",
        "trial%",
        "sweeps",
        "numbered",
        "kept",
        "s",
        "plain s",
        "all s"
    );
    let (mut below, mut all) = (0, 0);
    for name in &names {
        match one(name, options) {
            Ok(share) => {
                all += 1;
                below += u32::from(share < 0.5);
            }
            Err(why) => println!("{name:<34} {why}"),
        }
    }
    println!("{below} of {all} below 50 %");
    Ok(())
}

/// The P/T nets of the outside corpus, the small ones first.
fn corpus(most: u64) -> Result<Vec<String>, String> {
    let corpus = Corpus::find("sweep").ok_or("there is no corpus")?;
    let mut rows: Vec<(u64, String)> = corpus
        .expected("pnml")
        .iter()
        .filter(|row| row.text("kind") == Some("PT"))
        .filter_map(|row| Some((row.text("states")?.parse().ok()?, row.text("model")?.to_string())))
        .filter(|&(states, _)| states <= most)
        .collect();
    rows.sort();
    Ok(rows.into_iter().map(|(_, name)| name).collect())
}

fn one(name: &str, options: &SweepOptions) -> Result<f64, String> {
    let (system, known) = nets::system(name)?;
    let best = trial::best(&*system, options.sample, &Control::new());
    let (measure, trial) = best.ok().flatten().ok_or("no measure")?;
    let [plain, all] =
        [false, true].map(|all| (0..options.runs).map(|_| plain(&*system, all)).fold(f64::MAX, f64::min));
    let runs = (0..options.runs).map(|_| swept(&*system, &*measure));
    let (time, states, swept) = runs.min_by(|one, other| one.0.total_cmp(&other.0)).ok_or("no run")?;
    let total = known.map_or(states, |known| known.0);
    if !swept.unfolding && states != total {
        return Err(format!("WRONG: {states} states instead of {total}"));
    }
    let directions = measure.directions().unwrap_or_default();
    let share = swept.peak_states as f64 / total as f64;
    println!(
        "{:<34} {:>10} {:>5} {:>7} {:>10} {:>6.1} {:>6.1} {:>7} {:>9} {:>7} {:>7.3} {:>7.3} {:>7.3}",
        name,
        total,
        directions.advance,
        directions.regress,
        swept.peak_states,
        100.0 * share,
        100.0 * trial.share(),
        swept.sweeps,
        states,
        swept.persistent,
        time,
        plain,
        all
    );
    Ok(share)
}

/// The processor time of a sweep, the number of states it numbered, and its counts.
fn swept(system: &dyn System, measure: &dyn Measure) -> (f64, u64, Swept) {
    let control = Control::new();
    let window = |remember: Remember| Box::new(Layers::new(system, &control.budget, remember)) as Box<dyn Window>;
    let before = deltamark_reproduce::thread_time();
    let (outcome, swept) = run_sweep(SweepTask {
        system,
        window: &window,
        measure,
        properties: &[],
        control: &control,
        explore_all: true,
        observer: None,
        recorder: None,
    });
    let time = deltamark_reproduce::thread_time().zip(before).map_or(0.0, |(after, before)| after - before);
    (time, outcome.statistics.states, swept)
}

/// An observer that requires all edges, and reads none.
struct Idle;

impl Observer for Idle {
    fn expanded(&mut self, _: &dyn System, _: &mut Scratch, _: &Block, _: &Batch, _: &[Insert]) {}
}

/// The processor time of a search over `plain`, with all edges or with sleep sets.
fn plain(system: &dyn System, all: bool) -> f64 {
    let control = Control::new();
    let store = Plain::new(system, control.budget.clone());
    let before = deltamark_reproduce::thread_time();
    run(
        Search::Bfs,
        Task {
            system,
            store: &store,
            properties: &[],
            control: &control,
            explore_all: true,
            observer: all.then_some(&mut Idle as &mut dyn Observer),
        },
    );
    deltamark_reproduce::thread_time().zip(before).map_or(0.0, |(after, before)| after - before)
}
