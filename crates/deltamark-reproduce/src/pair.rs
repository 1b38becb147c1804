//! Two tables of a study as one picture: memory against time.
//!
//! In: a table of times and one of memory, of the same rows. Out: a [`Figure`] in which each column that both have
//! is drawn twice, with our figures and with the published ones. What stays true: figures are relative to the
//! plain method: per cent of it, or multiples of the first column.

use crate::plot::{Point, Scatter, Series};
use crate::study::{Cell, Figure, Grid, Published, Row, Unit};

/// Draws memory against time.
pub(crate) fn memory_against_time(name: &str, title: &str, time: &Grid, memory: &Grid) -> Figure {
    let mut series = Vec::new();
    for (at_time, column) in time.columns.iter().enumerate() {
        let Some(at_memory) = memory.columns.iter().position(|other| other == column) else { continue };
        for (whose, of) in [("ours", ours as fn(&Cell) -> Option<f64>), ("paper", published)] {
            let rows = time.rows.iter().zip(&memory.rows);
            let points: Vec<Point> = rows
                .filter_map(|(of_time, of_memory)| {
                    Some(Point {
                        net: of_time.label.clone(),
                        time: share(time, of_time, at_time, of)?,
                        bytes: share(memory, of_memory, at_memory, of)?,
                        per_state: None,
                    })
                })
                .collect();
            if !points.is_empty() {
                series.push(Series { name: format!("{column}, {whose}"), points });
            }
        }
    }
    let scatter = Scatter { title, below: "Small marks are models, large ones the geometric mean." };
    Figure { name: name.into(), caption: title.into(), svg: scatter.draw(&series) }
}

/// A figure relative to that of the plain method.
fn share(grid: &Grid, row: &Row, column: usize, of: fn(&Cell) -> Option<f64>) -> Option<f64> {
    let value = of(row.cells.get(column)?)?;
    let plain = if grid.unit == Unit::Percent { 100.0 } else { of(row.cells.first()?)? };
    Some(value / plain)
}

fn ours(cell: &Cell) -> Option<f64> {
    cell.ours.value()
}

fn published(cell: &Cell) -> Option<f64> {
    match cell.published {
        Some(Published::Value(value)) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Ours;

    #[test]
    fn columns_of_both_are_drawn_against_the_plain_method() {
        let grid = |unit, columns: &[&str], cells: &[(Option<f64>, f64)]| Grid {
            title: String::new(),
            unit,
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: vec![Row {
                label: "net".into(),
                published_states: None,
                states: None,
                same_model: true,
                cells: cells.iter().map(|&(paper, ours)| Cell::new(paper, Ours::Value(ours))).collect(),
            }],
        };
        let time = grid(Unit::Percent, &["k"], &[(Some(150.0), 120.0)]);
        let memory = grid(Unit::Bytes, &["plain", "k"], &[(None, 200.0), (Some(10.0), 50.0)]);
        let figure = memory_against_time("name", "title", &time, &memory);
        assert!(figure.svg.contains("k, ours on net: 1.2 × time, 0.25 × memory"), "{}", figure.svg);
        // The paper has no figure for the plain method to compare with.
        assert!(!figure.svg.contains("k, paper"));
    }
}
