//! A study for a terminal.
//!
//! In: a study. Out: its tables as text, each figure of the paper beside ours.

use crate::study::{Grid, Study};
use comfy_table::{CellAlignment, Table};
use std::fmt::Write;

impl Study {
    /// The whole study, for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}; measured on: {}\n", self.title, self.source, self.machine);
        for grid in &self.grids {
            let unit = match (grid.unit.words(), grid.has_published()) {
                ("", _) => String::new(),
                (words, true) => format!(" ({words}; paper | ours)"),
                (words, false) => format!(" ({words})"),
            };
            let _ = writeln!(text, "\n{}{unit}\n{}", grid.title, table(grid));
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nnote: {note}");
        }
        let worse = self.worse();
        if !worse.is_empty() {
            let _ = writeln!(text, "\nNot below the published figure:");
            for cell in worse {
                let _ = writeln!(text, "  {cell}");
            }
        }
        text
    }
}

fn table(grid: &Grid) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::ASCII_MARKDOWN);
    let mut head = vec!["model".to_string(), "states: paper | ours".into()];
    head.extend(grid.columns.iter().cloned());
    table.set_header(head);
    for row in &grid.rows {
        let count = |states: Option<u64>| states.map_or("?".into(), |states| crate::Unit::Count.show(states as f64));
        let states = match (row.published_states, row.states) {
            (None, None) => String::new(),
            (None, ours) => count(ours),
            (published, ours) => format!("{} | {}", count(published), count(ours)),
        };
        let mut line = vec![row.label.clone(), states];
        line.extend(row.cells.iter().map(|cell| {
            let ours = cell.ours.show(grid.unit);
            cell.published.map_or(ours.clone(), |published| format!("{} | {ours}", published.show(grid.unit)))
        }));
        table.add_row(line);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
