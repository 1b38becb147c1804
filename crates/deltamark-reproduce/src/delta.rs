//! Δ-markings: Tables 1 and 2 of the paper.
//!
//! The paper searches depth-first, with both of its optimisations on, and reports time and memory relative to a
//! search that stores all markings in full. Ours are `plain` and `delta` with the same `k`. The models are ours;
//! if the number of states is that of the paper, they are the same system.

use crate::measure::{Bounds, RunCost, figure, measure, percent};
use crate::models::coloured;
use crate::pair::memory_against_time;
use crate::study::{Cell, Grid, Ours, Row, Study, Unit};
use crate::{Extent, StudyOptions};
use deltamark_search::Search;
use std::time::Duration;

const DISTANCES: [u64; 4] = [5, 10, 20, 50];

/// A row of Table 1.
struct Academic {
    name: &'static str,
    size: u64,
    states: u64,
    model: &'static str,
    /// Ours at the size of the paper, or close to it.
    full: u64,
    quick: u64,
    /// Time and memory, in per cent, for each distance.
    time: [f64; 4],
    memory: [f64; 4],
    /// Bytes of a state stored in full, and with the largest distance, if the text states them.
    bytes: (Option<f64>, Option<f64>),
}

const ACADEMIC: [Academic; 6] = [
    Academic {
        name: "Dbm",
        size: 12,
        states: 2_125_765,
        model: "database-managers",
        full: 12,
        quick: 10,
        time: [109., 119., 171., 173.],
        memory: [24., 16., 5., 4.],
        bytes: (Some(148.), Some(8.)),
    },
    Academic {
        name: "Eratos",
        size: 70,
        states: 3_177_699,
        model: "sieve",
        full: 40,
        quick: 25,
        time: [123., 148., 198., 340.],
        memory: [40., 33., 29., 27.],
        bytes: (None, None),
    },
    Academic {
        name: "Peterson",
        size: 4,
        states: 3_407_946,
        model: "peterson",
        full: 4,
        quick: 3,
        time: [131., 151., 191., 316.],
        memory: [64., 60., 58., 57.],
        bytes: (Some(16.), None),
    },
    Academic {
        name: "Mutex",
        size: 17,
        states: 5_701_632,
        model: "mutual-exclusion",
        full: 17,
        quick: 12,
        time: [130., 148., 176., 249.],
        memory: [58., 53., 50., 48.],
        bytes: (None, None),
    },
    Academic {
        name: "Leader",
        size: 16,
        states: 10_475_430,
        model: "leader-election",
        full: 16,
        quick: 12,
        time: [137., 176., 231., 329.],
        memory: [46., 39., 37., 32.],
        bytes: (None, None),
    },
    Academic {
        name: "Dining",
        size: 13,
        states: 14_741_195,
        model: "philosophers",
        full: 13,
        quick: 10,
        time: [137., 155., 181., 218.],
        memory: [54., 48., 45., 44.],
        bytes: (None, None),
    },
];

/// A row of Table 2: bytes a state for no compression, collapse, Δ (10, 20, 50), Δ with collapse (10, 20, 50); 0
/// if the paper has no figure.
struct Program {
    name: &'static str,
    states: u64,
    model: &'static str,
    full: &'static [(&'static str, u64)],
    quick: &'static [(&'static str, u64)],
    bytes: [f64; 8],
}

const PROGRAMS: [Program; 6] = [
    Program {
        name: "Client/server, N=4",
        states: 34_731,
        model: "client-server",
        full: &[("N", 6), ("M", 4)],
        quick: &[("N", 5), ("M", 3)],
        bytes: [285.17, 41.26, 56.93, 42.71, 34.61, 11.01, 9.10, 8.00],
    },
    Program {
        name: "Client/server, N=5",
        states: 635_463,
        model: "client-server",
        full: &[("N", 7), ("M", 4)],
        quick: &[("N", 6), ("M", 4)],
        bytes: [339.31, 46.82, 60.73, 36.20, 34.59, 11.29, 8.21, 8.00],
    },
    Program {
        name: "Client/server, N=6",
        states: 13_805_931,
        model: "client-server",
        full: &[("N", 8), ("M", 5)],
        quick: &[("N", 7), ("M", 4)],
        bytes: [0., 51.98, 78.62, 73.10, 34.01, 13.44, 12.75, 8.00],
    },
    Program {
        name: "Eratosthene, N=20",
        states: 3_599_634,
        model: "sieve",
        full: &[("N", 35)],
        quick: &[("N", 20)],
        bytes: [203.54, 62.49, 38.06, 29.34, 22.92, 13.44, 10.86, 8.96],
    },
    Program {
        name: "Eratosthene, N=25",
        states: 24_884_738,
        model: "sieve",
        full: &[("N", 40)],
        quick: &[("N", 25)],
        bytes: [0., 0., 39.35, 28.49, 22.73, 14.11, 10.97, 9.30],
    },
    Program {
        name: "Eratosthene, N=30",
        states: 96_566_610,
        model: "sieve",
        full: &[("N", 45)],
        quick: &[("N", 30)],
        bytes: [0., 0., 0., 0., 0., 14.46, 11.15, 9.16],
    },
];

type Runs = Vec<Result<RunCost, String>>;

pub(crate) fn run(options: &StudyOptions<'_>) -> Study {
    let [time, memory, bytes] = academic(options);
    let programs = programs(options);
    let figure = memory_against_time(
        "table-1",
        "Δ-markings, depth-first: memory against time, in times of all markings in full",
        &time,
        &memory,
    );
    Study {
        paper: "delta",
        title: "Memory Efficient State Space Storage in Explicit Software Model Checking",
        source: "Evangelista, Pradat-Peyre, SPIN 2005",
        machine: "Pentium 4, 2.8 GHz, 2 GB, Helena",
        complete: !options.cancel.is_cancelled(),
        grids: vec![time, memory, bytes, programs],
        figures: vec![figure],
        notes: vec![
            "Searches are depth-first, as in the paper. Per cent are of `plain` in the same search; our `plain` takes far \
             fewer bytes a state than the full vectors of the paper, so the same saving is fewer per cent: compare \
             bytes a state."
                .into(),
            "The programs of Table 2 are nets made from Ada programs, which were not published. Ours are models of the \
             same systems, of another size."
                .into(),
        ],
    }
}

fn all_runs(options: &StudyOptions<'_>, model: &str, parameters: &[(&str, u64)], stores: &[String]) -> Runs {
    let values: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let make = || coloured(model, parameters).map(|model| model.system);
    let run = |store: &String| {
        (options.tell)(&format!("{model} {}, {store}", values.join(" ")));
        let bounds = Bounds { states: None, time: Duration::from_secs(600) };
        measure(options, &make, store, Search::Dfs, bounds)
    };
    stores.iter().map(run).collect()
}

fn states_of(runs: &Runs) -> Option<u64> {
    runs.iter().find_map(|run| run.as_ref().ok()).map(|run| run.states)
}

/// Table 1: time, memory, and bytes a state.
fn academic(options: &StudyOptions<'_>) -> [Grid; 3] {
    let columns: Vec<String> = DISTANCES.iter().map(|distance| format!("k={distance}")).collect();
    let grid = |title: &str, unit, columns: &[String]| Grid {
        title: title.into(),
        unit,
        columns: columns.into(),
        rows: Vec::new(),
    };
    let mut with_plain = vec!["plain".to_string()];
    with_plain.extend_from_slice(&columns);
    let mut time = grid("Table 1: time", Unit::Percent, &columns);
    let mut memory = grid("Table 1: memory", Unit::Percent, &columns);
    let mut bytes = grid("Table 1: bytes a state", Unit::BytesPerState, &with_plain);
    let stores: Vec<String> =
        std::iter::once("plain".into()).chain(DISTANCES.iter().map(|k| format!("delta:k={k}"))).collect();
    for published in &ACADEMIC {
        let size = if options.extent == Extent::Full { published.full } else { published.quick };
        let runs = all_runs(options, published.model, &[("N", size)], &stores);
        let states = states_of(&runs);
        let ours = if size == published.size { String::new() } else { format!(" (ours: {size})") };
        let row = |cells| Row {
            label: format!("{}, {}{ours}", published.name, published.size),
            published_states: Some(published.states),
            states,
            same_model: states == Some(published.states),
            cells,
        };
        let relative = |figures: &[f64; 4], of: fn(&RunCost) -> f64| -> Vec<Cell> {
            let cell = |index: usize| Cell::new(Some(figures[index]), percent(&runs[index + 1], &runs[0], of));
            (0..DISTANCES.len()).map(cell).collect()
        };
        time.rows.push(row(relative(&published.time, |run| run.seconds)));
        memory.rows.push(row(relative(&published.memory, |run| run.bytes as f64)));
        let per_state = |run: &Result<RunCost, String>| figure(run, |run| run.bytes as f64 / run.states as f64);
        let known = [published.bytes.0, None, None, None, published.bytes.1];
        bytes.rows.push(row(runs.iter().zip(known).map(|(run, known)| Cell::new(known, per_state(run))).collect()));
    }
    for (grid, means) in [(&mut time, [128., 150., 191., 271.]), (&mut memory, [56., 42., 37., 35.])] {
        let mean = |column: usize| -> Ours {
            let values: Vec<f64> = grid.rows.iter().filter_map(|row| row.cells[column].ours.value()).collect();
            if values.len() < grid.rows.len() {
                return Ours::Missing("–".into());
            }
            Ours::Value(values.iter().sum::<f64>() / values.len() as f64)
        };
        let cells = (0..DISTANCES.len()).map(|column| Cell::new(Some(means[column]), mean(column))).collect();
        grid.rows.push(Row { label: "mean".into(), published_states: None, states: None, same_model: false, cells });
    }
    [time, memory, bytes]
}

/// Table 2.
fn programs(options: &StudyOptions<'_>) -> Grid {
    let kinds = ["", ",base=collapse"];
    let deltas = kinds.iter().flat_map(|base| [10, 20, 50].map(|k| format!("delta:k={k}{base}")));
    let stores: Vec<String> = ["plain".to_string(), "collapse".to_string()].into_iter().chain(deltas).collect();
    let heads = ["none", "collapse", "Δ 10", "Δ 20", "Δ 50", "Δ+c 10", "Δ+c 20", "Δ+c 50"];
    let mut grid = Grid {
        title: "Table 2: bytes a state of programs".into(),
        unit: Unit::BytesPerState,
        columns: heads.map(String::from).into(),
        rows: Vec::new(),
    };
    for published in &PROGRAMS {
        let parameters = if options.extent == Extent::Full { published.full } else { published.quick };
        let runs = all_runs(options, published.model, parameters, &stores);
        let values: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let known = published.bytes.map(|bytes| Some(bytes).filter(|&bytes| bytes > 0.0));
        let cells = runs.iter().zip(known);
        grid.rows.push(Row {
            label: format!("{} (ours: {})", published.name, values.join(", ")),
            published_states: Some(published.states),
            states: states_of(&runs),
            same_model: false,
            cells: cells
                .map(|(run, known)| Cell::new(known, figure(run, |run| run.bytes as f64 / run.states as f64)))
                .collect(),
        });
    }
    grid
}
