//! The ComBack method: Table 1 and Figure 5 of the paper.
//!
//! The paper compares six methods depth-first and breadth-first, and reports time and memory relative to the
//! standard method, depth-first. What is left of its table are the rectangles of Figure 5, which the text
//! describes; these ranges serve as the published figures. Memory is that of the states and of the waiting set
//! together, as in the paper.

use crate::measure::{Bounds, RunCost, measure, percent};
use crate::models::{coloured, published, with_markings};
use crate::plot::{Point, Scatter, Series};
use crate::study::{Cell, Figure, Grid, Published, Row, Study, Unit};
use crate::{Extent, StudyOptions};
use deltamark_search::Search;
use deltamark_store::bitstate::Bitstate;
use std::time::Duration;

/// A method: its name, our store, and the paper's results, depth-first and breadth-first.
struct Method {
    name: &'static str,
    store: &'static str,
    time: [Option<Published>; 2],
    memory: [Option<Published>; 2],
}

/// The text says "near".
const NEAR: Option<Published> = Some(Published::Value(100.0));

const METHODS: [Method; 6] = [
    Method { name: "standard", store: "plain", time: [NEAR, NEAR], memory: [NEAR, NEAR] },
    Method {
        name: "hash compaction",
        store: "compaction",
        time: [NEAR, NEAR],
        memory: [Some(Published::Range(2.0, 100.0)), Some(Published::Range(20.0, 40.0))],
    },
    Method {
        name: "bit-state",
        store: "bitstate",
        time: [Some(Published::Over(100.0)); 2],
        memory: [Some(Published::Range(15.0, 150.0)); 2],
    },
    Method {
        name: "ComBack",
        store: "comback",
        time: [Some(Published::Over(150.0)); 2],
        memory: [Some(Published::Range(10.0, 100.0)), Some(Published::Range(25.0, 40.0))],
    },
    Method { name: "ComBack 100", store: "comback:cache=100", time: [None; 2], memory: [None; 2] },
    Method { name: "ComBack 1000", store: "comback:cache=1000", time: [None; 2], memory: [None; 2] },
];

/// A system: the name in the paper, and ours.
struct PaperModel {
    name: &'static str,
    model: &'static str,
    full: &'static [(&'static str, u64)],
    quick: &'static [(&'static str, u64)],
    /// The net that the authors published, if they did.
    net: Option<PublishedNet>,
}

/// A net for CPN Tools, in the folder that the user names.
struct PublishedNet {
    file: &'static str,
    /// Places and their initial markings.
    full: &'static [(&'static str, &'static str)],
    quick: &'static [(&'static str, &'static str)],
    /// The nodes of the full size, where the paper states them.
    nodes: Option<u64>,
}

/// Telephones, as a multiset.
const PHONES: &str = "1`0++1`1++1`2++1`3++1`4";

const MODELS: [PaperModel; 5] = [
    PaperModel { name: "DP (philosophers)", model: "philosophers", full: &[("N", 12)], quick: &[("N", 9)], net: None },
    PaperModel {
        name: "DB (database managers)",
        model: "database-managers",
        full: &[("N", 12)],
        quick: &[("N", 10)],
        net: Some(PublishedNet { file: "database.cpn", full: &[("p", "10")], quick: &[("p", "8")], nodes: None }),
    },
    PaperModel {
        name: "SW (stop and wait)",
        model: "stop-and-wait",
        full: &[("N", 7), ("K", 4)],
        quick: &[("N", 7), ("K", 3)],
        net: Some(PublishedNet {
            file: "protocol.cpn",
            full: &[("no", "7"), ("Limit", "4`e")],
            quick: &[],
            nodes: Some(215_196),
        }),
    },
    PaperModel {
        name: "TS (telephones)",
        model: "telephones",
        full: &[("N", 5)],
        quick: &[("N", 4)],
        net: Some(PublishedNet {
            file: "telephones.cpn",
            full: &[("Phone'Inactive 1", PHONES), ("Dialing'All 1", PHONES)],
            quick: &[],
            nodes: None,
        }),
    },
    // There is none of ours: the industrial protocol is known by its net alone.
    PaperModel {
        name: "ER (ERDP)",
        model: "",
        full: &[],
        quick: &[],
        net: Some(PublishedNet {
            file: "erdp.cpn",
            full: &[("Config'prefixes", "6"), ("Config'capacity", "2`()"), ("Config'allowloss", "true")],
            quick: &[],
            nodes: None,
        }),
    },
];

const SEARCHES: [(Search, &str); 2] = [(Search::Dfs, "depth-first"), (Search::Bfs, "breadth-first")];

/// The store with an array of some 16 bits a state, if it has one.
fn sized(store: &str, states: Option<u64>) -> String {
    match states {
        Some(states) if store == "bitstate" => {
            let bits = (16 * states).next_power_of_two().ilog2().max(*Bitstate::BITS.start() as u32);
            format!("{store}:bits={bits}")
        }
        _ => store.into(),
    }
}

pub(crate) fn run(options: &StudyOptions<'_>) -> Study {
    let columns: Vec<String> = METHODS.iter().map(|method| method.name.to_string()).collect();
    let mut grids: Vec<Grid> = Vec::new();
    let mut series: [Vec<Series>; 2] = [(); 2]
        .map(|()| METHODS.iter().map(|method| Series { name: method.name.into(), points: Vec::new() }).collect());
    for (_, words) in SEARCHES {
        for what in ["time", "memory"] {
            let title = format!("Table 1 and Figure 5: {what}, {words}, against the standard method depth-first");
            grids.push(Grid { title, unit: Unit::Percent, columns: columns.clone(), rows: Vec::new() });
        }
    }
    let mut counts = Grid {
        title: "Nodes and arcs".into(),
        unit: Unit::Count,
        columns: ["nodes", "arcs"].map(String::from).into(),
        rows: Vec::new(),
    };
    for kind in &MODELS {
        let whole = options.extent == Extent::Full;
        let parameters = if whole { kind.full } else { kind.quick };
        let net =
            kind.net.as_ref().and_then(|net| published(options.models.as_deref(), net.file).map(|file| (net, file)));
        if net.is_none() && kind.model.is_empty() {
            continue;
        }
        let markings = |net: &PublishedNet| -> Vec<(&str, String)> {
            let markings = if whole { net.full } else { net.quick };
            markings.iter().map(|&(place, value)| (place, value.to_string())).collect()
        };
        let label = match &net {
            Some((net, _)) => format!("{}, {}", kind.name, net.file),
            None => {
                let values: Vec<String> = parameters.iter().map(|(_, value)| value.to_string()).collect();
                format!("{} {}", kind.name, values.join(","))
            }
        };
        let make = || {
            let model = match &net {
                Some((net, file)) => with_markings(file, &markings(net)),
                None => coloured(kind.model, parameters),
            };
            model.map(|model| model.system)
        };
        let mut known = None;
        let runs = SEARCHES.map(|(search, words)| {
            METHODS.each_ref().map(|method| {
                let store = sized(method.store, known);
                (options.tell)(&format!("{label}, {store}, {words}"));
                let bounds = Bounds { states: None, time: Duration::from_secs(300) };
                let run = measure(options, &make, &store, search, bounds);
                // The standard method comes first.
                known = known.or(run.as_ref().ok().map(|run| run.states));
                run
            })
        });
        let standard = &runs[0][0];
        let states = standard.as_ref().ok().map(|run| run.states);
        let published_states = net.as_ref().and_then(|(net, _)| net.nodes.filter(|_| whole));
        let same_model = net.is_some();
        let row = |cells| Row { label: label.clone(), published_states, states, same_model, cells };
        for (at, runs) in runs.iter().enumerate() {
            let cells = |of: fn(&RunCost) -> f64, published: fn(&Method) -> &[Option<Published>; 2]| -> Vec<Cell> {
                let cell = |(run, method)| Cell { published: published(method)[at], ours: percent(run, standard, of) };
                runs.iter().zip(&METHODS).map(cell).collect()
            };
            grids[2 * at].rows.push(row(cells(|run| run.seconds, |method| &method.time)));
            grids[2 * at + 1].rows.push(row(cells(|run| run.peak as f64, |method| &method.memory)));
            for (run, series) in runs.iter().zip(&mut series[at]) {
                if let (Ok(run), Ok(standard)) = (run, standard) {
                    series.points.push(Point {
                        net: label.clone(),
                        time: run.seconds / standard.seconds,
                        bytes: run.peak as f64 / standard.peak as f64,
                        per_state: Some(run.peak as f64 / run.states as f64),
                    });
                }
            }
        }
        let count = |of: fn(&RunCost) -> f64| Cell::new(None, crate::measure::figure(standard, of));
        counts.rows.push(row(vec![count(|run| run.states as f64), count(|run| run.edges as f64)]));
    }
    grids.insert(0, counts);
    let figure = |at: usize| {
        let title = format!("Memory against time, {}, in times of the standard method depth-first", SEARCHES[at].1);
        let scatter =
            Scatter { title: &title, below: "Small marks are systems, large ones the geometric mean of a method." };
        Figure { name: format!("figure-5-{}", SEARCHES[at].1), caption: title.clone(), svg: scatter.draw(&series[at]) }
    };
    Study {
        paper: "comback",
        title: "The ComBack Method: Extending Hash Compaction with Backtracking",
        source: "Westergaard, Kristensen, Brodal, Arge, ICATPN 2007",
        machine: "CPN Tools, Standard ML",
        complete: !options.cancel.is_cancelled(),
        figures: vec![figure(0), figure(1)],
        grids,
        notes: vec![
            "Published figures are the ranges of Figure 5 as the text gives them. Our `plain` is small already: of a \
             state of 20 bytes a method cannot save as many per cent as of one of 2,000."
                .into(),
            "The size of the paper's bit-state array is not known; ours has 16 to 32 bits a state.".into(),
            "The nets of four systems were published for CPN Tools (`database.cpn`, `protocol.cpn`, `telephones.cpn`, \
             `erdp.cpn`). They are measured if `--models` names a folder that has them, and otherwise our models of the same \
             systems; ERDP has none of ours. The sizes of the paper are not known but for 215,196 nodes of stop and wait."
                .into(),
        ],
    }
}
