//! States as differences: Tables 1 and 2 of the paper, and far beyond them.
//!
//! The paper stores the first 500 states of nets that move tokens at random: each δ-th state of a path in full,
//! the others as differences. Its figures are bytes and milliseconds. Ours are `plain` for δ = 0 and `difference`
//! with `every=δ` for the others.

use crate::measure::{Bounds, figure, measure};
use crate::pair::memory_against_time;
use crate::study::{Cell, Grid, Ours, Row, Study, Unit};
use crate::{Extent, StudyOptions, Tokens};
use deltamark_core::System;
use deltamark_search::Search;
use std::time::Duration;

const DISTANCES: [u64; 6] = [0, 1, 2, 3, 7, 20];

/// A net of the tables: its size, bytes (Table 1) and milliseconds (Table 2) for each distance.
struct Published {
    places: u32,
    tokens: u32,
    bytes: [f64; 6],
    /// 0 if the paper calls it negligible.
    milliseconds: [f64; 6],
}

const TABLES: [Published; 6] = [
    Published {
        places: 4,
        tokens: 5,
        bytes: [9980., 9980., 5996., 4668., 3148., 2396.],
        milliseconds: [0., 20., 90., 160., 430., 1490.],
    },
    Published {
        places: 60,
        tokens: 90,
        bytes: [179_640., 179_640., 90_996., 61_448., 27_628., 10_896.],
        milliseconds: [20., 40., 80., 100., 210., 570.],
    },
    Published {
        places: 200,
        tokens: 400,
        bytes: [798_400., 798_400., 400_996., 268_528., 116_908., 41_896.],
        milliseconds: [80., 130., 170., 200., 320., 680.],
    },
    Published {
        places: 400,
        tokens: 700,
        bytes: [1_397_200., 1_397_200., 700_996., 468_928., 203_308., 71_896.],
        milliseconds: [140., 220., 260., 290., 410., 770.],
    },
    Published {
        places: 800,
        tokens: 1000,
        bytes: [1_996_000., 1_996_000., 1_000_996., 669_328., 289_708., 101_896.],
        milliseconds: [200., 310., 350., 380., 500., 850.],
    },
    Published {
        places: 1500,
        tokens: 2000,
        bytes: [3_992_000., 3_992_000., 2_000_996., 1_337_328., 577_708., 201_896.],
        milliseconds: [400., 620., 660., 680., 820., 1200.],
    },
];

/// States of the tables.
const FIRST: u64 = 500;

fn store(distance: u64) -> String {
    if distance == 0 { "plain".into() } else { format!("difference:every={distance}") }
}

fn label(places: u32, tokens: u32) -> String {
    format!("{places} places, {tokens} tokens")
}

pub(crate) fn run(options: &StudyOptions<'_>) -> Study {
    let columns = DISTANCES.iter().map(|distance| format!("δ={distance}")).collect::<Vec<_>>();
    let grid = |title: &str, unit| Grid { title: title.into(), unit, columns: columns.clone(), rows: Vec::new() };
    let mut bytes = grid("Table 1: the first 500 states, alone", Unit::Bytes);
    let mut all = grid("Table 1 again: all that the store holds for them", Unit::Bytes);
    let mut time = grid("Table 2: the first 500 states", Unit::Milliseconds);
    let mut overhead = grid("Table 2 again: time against δ=0", Unit::Percent);
    for net in &TABLES {
        let make = move || Ok(Box::new(Tokens::new(net.places, net.tokens)) as Box<dyn System>);
        let runs: Vec<_> = DISTANCES
            .iter()
            .map(|&distance| {
                (options.tell)(&format!("{}, {}", label(net.places, net.tokens), store(distance)));
                let bounds = Bounds { states: Some(FIRST), time: Duration::from_secs(60) };
                measure(options, &make, &store(distance), Search::Bfs, bounds)
            })
            .collect();
        let states = runs[0].as_ref().ok().map(|run| run.states);
        let row = |cells| Row {
            label: label(net.places, net.tokens),
            published_states: Some(FIRST),
            states,
            same_model: states == Some(FIRST),
            cells,
        };
        let cells = |published: &[f64; 6], of: &dyn Fn(usize) -> Ours| -> Vec<Cell> {
            let known = |value: f64| Some(value).filter(|&value| value > 0.0);
            (0..DISTANCES.len()).map(|index| Cell::new(known(published[index]), of(index))).collect()
        };
        bytes.rows.push(row(cells(&net.bytes, &|index| figure(&runs[index], |run| run.alone as f64))));
        all.rows.push(row(cells(&[0.0; 6], &|index| figure(&runs[index], |run| run.bytes as f64))));
        time.rows.push(row(cells(&net.milliseconds, &|index| figure(&runs[index], |run| run.seconds * 1000.0))));
        let against = net.milliseconds.map(|value| 100.0 * value / net.milliseconds[0]);
        let against = if net.milliseconds[0] > 0.0 { against } else { [0.0; 6] };
        overhead.rows.push(row(cells(&against, &|index| {
            figure(&runs[index], |run| run.seconds)
                .with(&figure(&runs[0], |run| run.seconds), |one, two| 100.0 * one / two)
        })));
    }
    let beyond = beyond(options);
    let title = "Differences: memory against time for the first 500 states, in times of δ=0";
    let figure = memory_against_time("tables-1-and-2", title, &time, &bytes);
    Study {
        paper: "difference",
        title: "Memory Efficient State-Space Analysis in Software Model-Checking",
        source: "Mukherjee, Tari, Bertok, RMIT University",
        machine: "Pentium D, 2.8 GHz, 1 GB, C",
        complete: !options.cancel.is_cancelled(),
        grids: vec![bytes, all, time, overhead, beyond],
        figures: vec![figure],
        notes: vec![
            "The paper does not say which moves its states have; ours have four at most, chosen by chance.".into(),
            "The paper counts the bytes of states alone, and so does our first table. Our hash table and what the store \
             keeps ready come on top: the second table. For so few states they outweigh them."
                .into(),
        ],
    }
}

/// The same nets with as many states as memory allows.
fn beyond(options: &StudyOptions<'_>) -> Grid {
    let (states, nets): (u64, &[(u32, u32)]) = match options.extent {
        Extent::Quick => (200_000, &[(60, 90), (200, 400)]),
        Extent::Full => (5_000_000, &[(60, 90), (200, 400), (1500, 2000)]),
    };
    // The maximum size of a vector of `plain`.
    const LARGEST: usize = 128;
    let mut grid = Grid {
        title: format!("Beyond the paper: the first {} states", Unit::Count.show(states as f64)),
        unit: Unit::BytesPerState,
        columns: ["plain", "δ=7", "δ=20", "seconds plain", "seconds δ=7", "seconds δ=20"].map(String::from).into(),
        rows: Vec::new(),
    };
    for &(places, tokens) in nets {
        let make = move || Ok(Box::new(Tokens::new(places, tokens)) as Box<dyn System>);
        let runs = [0, 7, 20].map(|distance| {
            if distance == 0 && Tokens::new(places, tokens).slots_of_a_state() > LARGEST {
                return Err("too large".into());
            }
            (options.tell)(&format!("{}, {}", label(places, tokens), store(distance)));
            let bounds = Bounds { states: Some(states), time: Duration::from_secs(600) };
            measure(options, &make, &store(distance), Search::Bfs, bounds)
        });
        let bytes = runs.iter().map(|run| figure(run, |run| run.bytes as f64 / run.states as f64));
        let seconds = runs.iter().map(|run| figure(run, |run| run.seconds));
        grid.rows.push(Row {
            label: label(places, tokens),
            published_states: None,
            states: runs[2].as_ref().ok().map(|run| run.states),
            same_model: false,
            cells: bytes.chain(seconds).map(|ours| Cell::new(None, ours)).collect(),
        });
    }
    grid
}
