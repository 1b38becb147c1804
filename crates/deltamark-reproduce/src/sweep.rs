//! The sweep-line method with condensed graphs: Tables 1 and 2 of the paper, and larger instances.
//!
//! Published are states, the maximum number held in full at one time, and bytes: four for each state of the graph
//! and the full vectors of those held at once, without edges. Ours are the bytes of the whole condensed graph,
//! including edges, and the peak of everything held.

use crate::measure::{Bounds, figure, measure, quickest, timed};
use crate::models::{coloured, process, published, with_markings};
use crate::pair::memory_against_time;
use crate::study::{Cell, Grid, Ours, Row, Study, Unit};
use crate::{Extent, StudyOptions};
use deltamark::{Check, Loaded, Report};
use deltamark_core::Limits;
use deltamark_search::{Search, Strategy};
use std::path::PathBuf;
use std::time::Duration;

/// A row: the size, states of the full graph and its bytes, states numbered by the sweep, the maximum held at
/// once, bytes, and time relative to the full graph in per cent, if the paper states it.
type Published = (u64, u64, f64, u64, f64, f64, Option<f64>);

const MANAGERS: [Published; 6] = [
    (4, 110, 13_420., 219, 14., 2_584., None),
    (5, 407, 59_422., 813, 33., 8_070., None),
    (6, 1_460, 246_740., 2_919, 88., 26_548., None),
    (7, 5_105, 975_055., 10_209, 251., 88_777., Some(275.)),
    (8, 17_498, 3_744_572., 34_995, 738., 297_912., Some(222.)),
    (9, 59_051, 13_995_087., 118_101, 2_197., 993_093., Some(218.)),
];

const PACKETS: [Published; 5] = [
    (20, 5_286, 766_470., 5_286, 287., 62_759., Some(141.)),
    (40, 10_706, 1_563_076., 10_706, 287., 84_726., Some(143.)),
    (60, 16_126, 2_354_396., 16_126, 287., 106_406., Some(145.)),
    (80, 21_546, 3_145_716., 21_546, 287., 128_086., Some(145.)),
    (100, 26_966, 3_937_036., 26_966, 287., 149_766., Some(145.)),
];

/// Sizes beyond the paper.
const MORE_MANAGERS: [u64; 4] = [10, 11, 12, 13];
const MORE_PACKETS: [u64; 3] = [1_000, 10_000, 100_000];

struct PaperTable {
    title: &'static str,
    /// The name of its picture.
    figure: &'static str,
    published: &'static [Published],
    more: &'static [u64],
    /// The number of sizes beyond the paper in a quick run.
    quick: usize,
    progress: &'static str,
    make: fn(u64) -> Result<Loaded, String>,
    /// The model of the paper, if it was published: its file, the place whose marking is the size, and a measure.
    published_model: Option<(&'static str, &'static str, &'static str)>,
}

impl PaperTable {
    /// The file of the published model, if the user has it.
    fn file(&self, options: &StudyOptions<'_>) -> Option<PathBuf> {
        published(options.models.as_deref(), self.published_model?.0)
    }

    /// The model of this size: the published one, else ours.
    fn model(&self, options: &StudyOptions<'_>, size: u64) -> Result<Loaded, String> {
        match (self.file(options), self.published_model) {
            (Some(file), Some((_, place, _))) => with_markings(&file, &[(place, size.to_string())]),
            _ => (self.make)(size),
        }
    }

    fn measure(&self, options: &StudyOptions<'_>) -> &'static str {
        match (self.file(options), self.published_model) {
            (Some(_), Some((_, _, measure))) => measure,
            _ => self.progress,
        }
    }
}

const TABLES: [PaperTable; 2] = [
    PaperTable {
        title: "Table 1: database managers",
        figure: "table-1",
        published: &MANAGERS,
        more: &MORE_MANAGERS,
        quick: 1,
        progress: "(messages->1, messages->3)",
        make: |size| coloured("database-managers", &[("N", size)]),
        published_model: Some((
            "database.cpn",
            "p",
            "size (Mark Active) + size (Mark Received) + 2 * size (Mark Acknowledged)",
        )),
    },
    PaperTable {
        title: "Table 2: stop and wait",
        figure: "table-2",
        published: &PACKETS,
        more: &MORE_PACKETS,
        quick: 1,
        progress: "Sender.packet + Receiver.expected",
        make: |size| process("stop-and-wait", &[("N", size)]),
        published_model: None,
    },
];

pub(crate) fn run(options: &StudyOptions<'_>) -> Study {
    let measured: Vec<[Grid; 3]> = TABLES.iter().map(|kind| grids(options, kind)).collect();
    let figures = TABLES.iter().zip(&measured).map(|(kind, [_, memory, time])| {
        let title = format!("{}: memory against time of a sweep, in times of a search of all states", kind.title);
        memory_against_time(kind.figure, &title, time, memory)
    });
    let figures = figures.collect();
    Study {
        paper: "sweep",
        title: "Obtaining Memory-Efficient Reachability Graph Representations Using the Sweep-Line Method",
        source: "Mailund, Westergaard, TACAS 2004",
        machine: "Pentium III, 500 MHz, 128 MB, Design/CPN",
        grids: measured.into_iter().flatten().collect(),
        complete: !options.cancel.is_cancelled(),
        figures,
        notes: vec![
            "Database managers of the paper have one state more than ours for each size: a step makes the initial marking. \
             The paper's own net (`database.cpn`) is measured if `--models` names a folder that has it. Ours has a measure \
             under which no state is met twice; that of the paper met all but one again, which is why it numbered twice \
             as many."
                .into(),
            "The paper's stop-and-wait model was not published; ours has as many states a packet, nearly.".into(),
            "Bytes of the paper leave out the edges of the graph. Ours are those of the whole graph, edges included, and of \
             all that was held at once."
                .into(),
        ],
    }
}

/// What was held and written.
struct Swept {
    states: u64,
    peak: f64,
    bytes: f64,
    seconds: f64,
}

fn sweep(options: &StudyOptions<'_>, kind: &PaperTable, size: u64) -> Result<Swept, String> {
    if options.cancel.is_cancelled() {
        return Err("stopped".into());
    }
    let file = std::env::temp_dir().join(format!("deltamark-{}-{size}.dmg", std::process::id()));
    let limits = Limits { time: Some(Duration::from_secs(600)), ..Limits::default() };
    let check = |model: &Loaded, graph: bool| -> Result<Report, String> {
        let check = Check::loaded(model).search(Strategy::Sweep).limits(limits.clone()).cancel(options.cancel.clone());
        let check = check.progress("--progress", kind.measure(options)).map_err(|error| error.to_string())?;
        let check = if graph { check.graph(file.display().to_string()) } else { check };
        check.explore().map_err(|error| error.to_string())
    };
    // The time is that of the search alone: writing a graph is measured separately.
    let alone = || {
        // A model of its own, as every run has.
        let model = kind.model(options, size)?;
        let (report, seconds) = timed(|| check(&model, false));
        report.map(|_| seconds)
    };
    let seconds = quickest(alone, |&seconds| seconds)?;
    let report = check(&kind.model(options, size)?, true);
    let _ = std::fs::remove_file(&file);
    let report = report?;
    let contents = report.graph.as_ref().and_then(|graph| graph.contents).ok_or("stopped")?;
    let swept = report.sweep.as_ref().and_then(|sweep| sweep.swept.as_ref()).ok_or("stopped")?;
    Ok(Swept {
        states: contents.states,
        peak: swept.peak_states as f64,
        bytes: (contents.packed + swept.peak_bytes) as f64,
        seconds,
    })
}

/// The most held at once, bytes, and time.
fn grids(options: &StudyOptions<'_>, kind: &PaperTable) -> [Grid; 3] {
    let grid = |what: &str, unit, columns: &[&str]| Grid {
        title: format!("{}: {what}", kind.title),
        unit,
        columns: columns.iter().map(ToString::to_string).collect(),
        rows: Vec::new(),
    };
    let mut peaks = grid("states", Unit::Count, &["numbered", "held at once"]);
    let mut bytes = grid("memory", Unit::Bytes, &["all states in full", "sweep"]);
    let mut time = grid("time", Unit::Percent, &["sweep"]);
    let more = if options.extent == Extent::Full { kind.more } else { &kind.more[..kind.quick] };
    let sizes = kind.published.iter().map(|row| row.0).chain(more.iter().copied());
    for size in sizes {
        let published = kind.published.iter().find(|row| row.0 == size);
        (options.tell)(&format!("{}, {size}", kind.title));
        let bounds = Bounds { states: None, time: Duration::from_secs(600) };
        let full =
            measure(options, &|| kind.model(options, size).map(|model| model.system), "plain", Search::Bfs, bounds);
        let swept = sweep(options, kind, size);
        let ours = |of: fn(&Swept) -> f64| match &swept {
            Ok(swept) => Ours::Value(of(swept)),
            Err(why) => Ours::Missing(why.clone()),
        };
        let states = full.as_ref().ok().map(|full| full.states);
        let row = |cells| Row {
            label: size.to_string(),
            published_states: published.map(|row| row.1),
            states,
            // A state more or less: the same system, counted differently.
            same_model: published.zip(states).is_some_and(|(row, states)| row.1.abs_diff(states) <= states / 100 + 1),
            cells,
        };
        peaks.rows.push(row(vec![
            Cell::new(published.map(|row| row.3 as f64), ours(|swept| swept.states as f64)),
            Cell::new(published.map(|row| row.4), ours(|swept| swept.peak)),
        ]));
        bytes.rows.push(row(vec![
            Cell::new(published.map(|row| row.2), figure(&full, |full| full.bytes as f64)),
            Cell::new(published.map(|row| row.5), ours(|swept| swept.bytes)),
        ]));
        let percent =
            ours(|swept| swept.seconds).with(&figure(&full, |full| full.seconds), |one, two| 100.0 * one / two);
        time.rows.push(row(vec![Cell::new(published.and_then(|row| row.6), percent)]));
    }
    [peaks, bytes, time]
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Cancel;

    #[test]
    fn a_small_instance_of_each_table_is_swept_and_its_graph_written() {
        let options = StudyOptions { extent: Extent::Quick, models: None, cancel: Cancel::new(), tell: &|_| {} };
        for (kind, size, states) in [(&TABLES[0], 4, 109), (&TABLES[1], 4, 928)] {
            let swept = sweep(&options, kind, size).unwrap_or_else(|why| panic!("{}: {why}", kind.title));
            assert_eq!(swept.states, states, "{}", kind.title);
            assert!(swept.peak < states as f64 && swept.bytes > 0.0, "{}", kind.title);
        }
    }
}
