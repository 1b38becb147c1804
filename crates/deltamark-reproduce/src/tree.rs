//! Tree compression: the DVE rows of Figure 5.5.
//!
//! The models are those of BEEM, which must be in a folder named by the user. Published are megabytes and seconds
//! of DIVINE, without compression and with it; ours are `plain`, `tree` and `compact`, states and queues together.

use crate::measure::{Bounds, RunCost, figure, measure, percent};
use crate::pair::memory_against_time;
use crate::study::{Cell, Grid, Ours, Published, Row, Study, Unit};
use crate::{Extent, StudyOptions};
use deltamark_core::System;
use deltamark_search::Search;
use std::path::Path;
use std::time::Duration;

/// A row of the figure: megabytes and seconds, without and with compression; 0 if there is none.
struct Model {
    name: &'static str,
    memory: [f64; 2],
    time: [f64; 2],
}

const fn row(name: &'static str, memory: [f64; 2], time: [f64; 2]) -> Model {
    Model { name, memory, time }
}

const FIGURE: [Model; 29] = [
    row("anderson.5", [5590., 6847.], [156., 433.]),
    row("anderson.6", [1484., 1510.], [66., 197.]),
    row("anderson.7", [0., 0.], [0., 0.]),
    row("at.5", [2841., 4285.], [153., 312.]),
    row("at.6", [0., 0.], [0., 0.]),
    row("bakery.8", [1706., 1377.], [86., 199.]),
    row("exit.4", [1506., 1493.], [67., 139.]),
    row("firewire_tree.5", [3151., 834.], [195., 452.]),
    row("hanoi.3", [1963., 2920.], [52., 156.]),
    row("hanoi.4", [0., 0.], [0., 0.]),
    row("iprotocol.5", [3403., 2489.], [89., 266.]),
    row("iprotocol.6", [4008., 2483.], [139., 339.]),
    row("iprotocol.7", [6680., 4810.], [244., 499.]),
    row("lamport.7", [2939., 3450.], [122., 367.]),
    row("leader_election.5", [1444., 655.], [44., 173.]),
    row("leader_election.6", [0., 5863.], [0., 1661.]),
    row("leader_filters.6", [1588., 1359.], [44., 133.]),
    row("mcs.5", [5535., 5262.], [198., 614.]),
    row("phils.6", [1054., 935.], [34., 145.]),
    row("phils.7", [0., 0.], [0., 0.]),
    row("phils.8", [2457., 1702.], [127., 430.]),
    row("plc.4", [1092., 825.], [23503., 23647.]),
    row("production_cell.6", [1970., 1428.], [50., 163.]),
    row("sokoban.3", [0., 4831.], [0., 1215.]),
    row("sorter.4", [1674., 1381.], [182., 227.]),
    row("szymanski.5", [6449., 4853.], [334., 1110.]),
    row("telephony.6", [0., 0.], [0., 0.]),
    row("telephony.7", [1658., 1858.], [137., 301.]),
    row("telephony.8", [0., 0.], [0., 0.]),
];

const STORES: [&str; 3] = ["plain", "tree", "compact"];
/// A quick run takes the models that the paper's tool checked within this many seconds.
const QUICK: f64 = 70.0;

fn known(value: f64) -> Option<f64> {
    Some(value).filter(|&value| value > 0.0)
}

/// The files that hold the models.
pub(crate) fn files() -> Vec<String> {
    FIGURE.iter().map(|model| file(model.name)).collect()
}

fn file(name: &str) -> String {
    format!("{name}.dve")
}

fn load(folder: &Path, name: &str) -> Result<Box<dyn System>, String> {
    let path = folder.join(file(name));
    if !path.is_file() {
        return Err("no file".into());
    }
    let loaded = deltamark::load(&path.display().to_string(), None);
    loaded.map(|loaded| loaded.system).map_err(|error| error.to_string())
}

pub(crate) fn run(options: &StudyOptions<'_>) -> Study {
    let grid = |title: &str, unit, columns: &[&str]| Grid {
        title: title.into(),
        unit,
        columns: columns.iter().map(ToString::to_string).collect(),
        rows: Vec::new(),
    };
    let mut memory = grid("Figure 5.5: memory of states and queues", Unit::Megabytes, &["normal", "tree", "compact"]);
    let mut share = grid("Figure 5.5: memory against normal", Unit::Percent, &["tree", "compact"]);
    let mut time = grid("Figure 5.5: time against normal", Unit::Percent, &["tree", "compact"]);
    let limit = Duration::from_secs(if options.extent == Extent::Full { 120 } else { 20 });
    let rows = FIGURE.iter().filter(|model| options.extent == Extent::Full || (0.1..QUICK).contains(&model.time[0]));
    for model in rows {
        let runs: Vec<Result<RunCost, String>> = STORES
            .iter()
            .map(|store| {
                let Some(folder) = &options.models else { return Err("no folder".into()) };
                (options.tell)(&format!("{}, {store}", model.name));
                let make = || load(folder, model.name);
                measure(options, &make, store, Search::Bfs, Bounds { states: None, time: limit })
            })
            .collect();
        let states = runs.iter().find_map(|run| run.as_ref().ok()).map(|run| run.states);
        let row = |cells| Row {
            label: model.name.into(),
            published_states: None,
            states,
            // The files of BEEM are the originals.
            same_model: true,
            cells,
        };
        let megabytes = |index: usize| figure(&runs[index], |run: &RunCost| run.peak as f64 / 1e6);
        memory.rows.push(row(vec![
            Cell::new(known(model.memory[0]), megabytes(0)),
            Cell::new(known(model.memory[1]), megabytes(1)),
            Cell::new(known(model.memory[1]), megabytes(2)),
        ]));
        let relative = |[normal, tree]: [f64; 2], of: fn(&RunCost) -> f64| -> Vec<Cell> {
            let published = known(normal).and(known(tree)).map(|tree| Published::Value(100.0 * tree / normal));
            let ours = |index: usize| -> Ours { percent(&runs[index], &runs[0], of) };
            (1..STORES.len()).map(|index| Cell { published, ours: ours(index) }).collect()
        };
        share.rows.push(row(relative(model.memory, |run| run.peak as f64)));
        time.rows.push(row(relative(model.time, |run| run.seconds)));
    }
    let title = "Tree compression: memory against time, in times of the search without it";
    let figure = memory_against_time("figure-5-5", title, &time, &share);
    let mut notes = vec![
        "Memory of the paper is that of the whole process, ours that of states and queues.".into(),
        "Rows of timed automata (Figures 5.2 and 5.3) and of LLVM programs (5.4) are not there yet: Deltamark does not \
         read these languages so far."
            .into(),
    ];
    if options.models.is_none() {
        notes.insert(0, "Nothing was run: name a folder with the models of BEEM by `--models DIR`.".into());
    }
    Study {
        paper: "tree",
        title: "State space compression for the DIVINE model checker",
        source: "Štill, bachelor's thesis, Masaryk University, 2013",
        machine: "DIVINE, limit of 7 GB",
        complete: !options.cancel.is_cancelled() && options.models.is_some(),
        grids: vec![memory, share, time],
        figures: vec![figure],
        notes,
    }
}
