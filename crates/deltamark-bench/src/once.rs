//! One run, in a process of its own.
//!
//! In: a net, a store, a search. Out: one line of JSON on standard output. What stays true: over an exact store, a
//! run with other counts than the known ones, or that was stopped, is no result; over a store that may miss
//! states, one that found more than there are.

use crate::nets::{self, Counts};
use crate::process::Failure;
use deltamark_core::{Control, Guarantee, Property, Store};
use deltamark_reproduce::thread_time;
use deltamark_search::{Partitioned, SAMPLERS, Search, Task, Threads, run_on, run_partitioned};
use deltamark_store::{StoreInfo, StoreSpec, Traffic, build};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What to run.
#[derive(clap::Args)]
pub struct OnceOptions {
    /// A generated net such as `kanban-5`, states of many slots such as `cells-200`, a net of the outside corpus, or a
    /// model in DVE such as `dve:lamport.5@native` (or `@interpreter`), or any model of the corpus such as
    /// `corpus:lna/dbm?N=10`
    net: String,
    /// The store
    #[arg(long, default_value = "plain")]
    store: String,
    /// The search
    #[arg(long, default_value = "bfs")]
    search: String,
    /// How many threads search
    #[arg(long, default_value = "1")]
    threads: usize,
    /// Give each thread the states that fall to it and a store of its own
    #[arg(long)]
    partitioned: bool,
}

/// The measurements of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub net: String,
    pub store: String,
    pub search: String,
    #[serde(default = "one")]
    pub threads: usize,
    #[serde(default)]
    pub partitioned: bool,
    pub states: u64,
    pub edges: u64,
    /// Edges counted and not followed: those skipped by sleep sets.
    #[serde(default)]
    pub left_out: u64,
    pub deadlocks: u64,
    pub depth: u64,
    pub seconds: f64,
    /// Processor time, if the system reports it: it excludes what other processes take on a busy machine.
    pub cpu_seconds: Option<f64>,
    /// The same, with what the store did before the search.
    #[serde(default)]
    pub whole_seconds: Option<f64>,
    pub store_bytes: BTreeMap<String, u64>,
    /// The peak of the frontier.
    pub frontier_bytes: u64,
    /// The peak of what the budget granted, store and frontier together: only here temporary allocations show.
    pub peak_bytes: u64,
    pub resident_bytes: Option<u64>,
    pub widenings: u64,
    /// The probability that a state was missed, of stores that may.
    pub omission: Option<f64>,
    pub version: String,
}

impl Record {
    /// Processor time if it is known, else wall-clock time.
    pub fn time(&self) -> f64 {
        self.cpu_seconds.unwrap_or(self.seconds)
    }

    /// Processor time, if it is known, of the search and of what the store did before it.
    pub fn whole_time(&self) -> f64 {
        self.whole_seconds.unwrap_or_else(|| self.time())
    }

    /// The bytes of the store at the end.
    pub fn total(&self) -> u64 {
        self.store_bytes.values().sum()
    }

    /// Bytes a state.
    pub fn per_state(&self, bytes: u64) -> f64 {
        bytes as f64 / self.states.max(1) as f64
    }
}

/// The search of this name.
pub fn search_named(name: &str) -> Result<Search, String> {
    let found = Search::ALL.iter().find(|search| search.name() == name);
    found.copied().ok_or_else(|| format!("there is no search `{name}`"))
}

/// Runs and prints.
pub fn run(options: &OnceOptions) -> Result<(), Failure> {
    let (system, known) = nets::system(&options.net)?;
    let order = search_named(&options.search)?;
    let spec: StoreSpec = options.store.parse().map_err(|error| format!("{error}"))?;
    let control = Control::new();
    let several = options.threads > 1 || options.partitioned;
    if several && !(order.shares_work() && StoreInfo::by_name(&spec.name).is_some_and(|info| info.threads)) {
        return Err(Failure::Refused(format!("{spec} and {} run with one thread", options.search)));
    }
    let parts = if options.partitioned { options.threads.max(1) } else { 1 };
    let traffic =
        Traffic { order: order.order(), threads: options.threads, samplers: SAMPLERS, control: Control::new() };
    let cpu_time = if several { process_time } else { thread_time };
    let began = cpu_time();
    let make = |_| build(&spec, &*system, traffic.clone(), control.budget.clone()).map_err(|error| format!("{error}"));
    let stores = (0..parts).map(make).collect::<Result<Vec<_>, _>>()?;
    let stores: Vec<&dyn Store> = stores.iter().map(|store| &**store).collect();
    // There is a property, as in every real run; it does not end the search.
    let properties = [Property::deadlock_free()];
    let before = cpu_time();
    let (system, store) = (&*system, stores[0]);
    let (control, properties, explore_all) = (&control, &properties[..], true);
    let outcome = if options.partitioned {
        if !store.recall().is_some_and(|recall| recall.sequential() && recall.whole()) {
            return Err(Failure::Refused(format!("{spec} does not number its states")));
        }
        run_partitioned(Partitioned { system, stores: &stores, properties, control, explore_all })
    } else {
        let task = Task { system, store, properties, control, explore_all, observer: None };
        run_on(Threads::new(options.threads), order, task)
    };
    let since = |before: Option<f64>| before.and_then(|before| Some(cpu_time()? - before));
    let (cpu_seconds, whole_seconds) = (since(before), since(began));
    let found = &outcome.statistics;
    let omission = match outcome.guarantee {
        Guarantee::Exact => None,
        Guarantee::Omission(probability) => Some(probability),
    };
    if let Some(stop) = outcome.stopped_by {
        return Err(Failure::Refused(format!("{}: ended before its time, by {}", options.net, stop.word())));
    }
    let counts = (found.states, found.edges);
    if let Some((states, edges)) = known.filter(|&known| !fits(counts, known, omission.is_some())) {
        return Err(Failure::Wrong(format!(
            "{}: found {} states and {} edges, there are {states} and {edges}",
            options.net, counts.0, counts.1
        )));
    }
    let record = Record {
        net: options.net.clone(),
        store: spec.to_string(),
        search: options.search.clone(),
        threads: options.threads,
        partitioned: options.partitioned,
        states: found.states,
        edges: found.edges,
        left_out: found.left_out,
        deadlocks: found.deadlocks,
        depth: found.depth,
        seconds: found.search_time.as_secs_f64(),
        cpu_seconds,
        whole_seconds,
        store_bytes: outcome.store_bytes.parts().iter().map(|&(part, bytes)| (part.to_string(), bytes)).collect(),
        frontier_bytes: found.frontier_peak_bytes,
        peak_bytes: control.budget.peak(),
        resident_bytes: peak_resident(),
        widenings: found.widenings,
        omission,
        version: env!("CARGO_PKG_VERSION").into(),
    };
    println!("{}", serde_json::to_string(&record).map_err(|error| error.to_string())?);
    Ok(())
}

/// Whether these counts are right: the known ones, or at most those if states may be missed.
fn fits(found: Counts, known: Counts, lossy: bool) -> bool {
    if lossy { found.0 <= known.0 && found.1 <= known.1 } else { found == known }
}

fn one() -> usize {
    1
}

/// Seconds all threads have spent on the processor, including those that have ended, if the system reports it: in
/// steps of ten milliseconds.
fn process_time() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in brackets and may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / 100.0)
}

/// The peak resident size of the process, if the system reports it.
fn peak_resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_right_when_they_are_known_or_when_states_may_be_missed() {
        for (found, lossy, right) in [
            ((10, 20), false, true),
            ((9, 18), false, false),
            ((10, 20), true, true),
            ((9, 18), true, true),
            ((11, 20), true, false),
            ((10, 21), true, false),
        ] {
            assert_eq!(fits(found, (10, 20), lossy), right, "{found:?}, lossy: {lossy}");
        }
    }
}
