//! Published and measured figures, as plain data.
//!
//! In: figures. Out: the same, for text, HTML and JSON. What stays true: less is better in every grid; a published
//! figure is shown beside ours, never in its place.

use serde::Serialize;

/// A paper, reproduced.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// The name on the command line.
    pub paper: &'static str,
    /// The paper's title.
    pub title: &'static str,
    /// Its authors, where and when it was published.
    pub source: &'static str,
    /// The machine it was measured on, according to the paper.
    pub machine: &'static str,
    /// Its tables.
    pub grids: Vec<Grid>,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// Notes needed to compare.
    pub notes: Vec<String>,
    /// Whether every planned run was made.
    pub complete: bool,
}

impl Study {
    /// The cells of the same model in which our figure is not below the published one: grid, row, column.
    pub fn worse(&self) -> Vec<String> {
        let mut found = Vec::new();
        for grid in &self.grids {
            for row in grid.rows.iter().filter(|row| row.same_model) {
                for (cell, column) in row.cells.iter().zip(&grid.columns) {
                    if cell.is_worse() {
                        found.push(format!("{}: {}, {column}", grid.title, row.label));
                    }
                }
            }
        }
        found
    }
}

/// A table.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// Its subject.
    pub title: String,
    /// The unit of its figures.
    pub unit: Unit,
    /// Column headings, one for each cell of a row.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
}

impl Grid {
    /// Whether the paper has figures for it.
    pub fn has_published(&self) -> bool {
        self.rows.iter().any(|row| row.cells.iter().any(|cell| cell.published.is_some()))
    }
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bytes of all states.
    Bytes,
    /// Bytes a state.
    BytesPerState,
    /// Millions of bytes.
    Megabytes,
    /// Thousandths of a second.
    Milliseconds,
    /// Per cent of what the plain method takes.
    Percent,
    /// A number of things.
    Count,
}

impl Unit {
    /// Its name.
    pub fn words(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::BytesPerState => "bytes a state",
            Unit::Megabytes => "MB",
            Unit::Milliseconds => "ms",
            Unit::Percent => "% of plain",
            Unit::Count => "",
        }
    }

    /// A figure in this unit, with its significant digits.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Bytes | Unit::Count => grouped(value.round() as u64),
            _ if value >= 99.95 => grouped(value.round() as u64),
            _ if value >= 9.995 => format!("{value:.1}"),
            _ if value >= 0.0995 => format!("{value:.2}"),
            _ => format!("{value:.3}"),
        }
    }
}

/// A number with thousands separators.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The model and its size.
    pub label: String,
    /// The paper's number of states.
    pub published_states: Option<u64>,
    /// Our number of states.
    pub states: Option<u64>,
    /// Whether ours is the model of the paper, judging by its number of states.
    pub same_model: bool,
    /// Its figures.
    pub cells: Vec<Cell>,
}

/// A figure of the paper and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The published figure.
    pub published: Option<Published>,
    /// Our figure.
    pub ours: Ours,
}

impl Cell {
    /// A published figure, if there is one, and ours.
    pub fn new(published: Option<f64>, ours: Ours) -> Self {
        Cell { published: published.map(Published::Value), ours }
    }

    /// Whether ours is not below the published one.
    pub fn is_worse(&self) -> bool {
        let Ours::Value(ours) = self.ours else { return false };
        match self.published {
            // Figures that are equal by definition, such as the baseline in per cent, may differ in the last
            // digit.
            Some(Published::Value(value) | Published::Range(_, value)) => ours > value * (1.0 + 1e-9),
            Some(Published::Over(_)) | None => false,
        }
    }
}

/// A figure of a paper.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Published {
    /// An exact figure.
    Value(f64),
    /// From, to: from a text or a picture of the paper.
    Range(f64, f64),
    /// More than this: from a text of the paper.
    Over(f64),
}

impl Published {
    /// As text.
    pub fn show(self, unit: Unit) -> String {
        match self {
            Published::Value(value) => unit.show(value),
            Published::Range(low, high) => format!("{low} to {high}"),
            Published::Over(low) => format!("over {low}"),
        }
    }
}

/// A figure of ours.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ours {
    /// It was measured.
    Value(f64),
    /// It was not measured: why.
    Missing(String),
}

impl Ours {
    /// As text.
    pub fn show(&self, unit: Unit) -> String {
        match self {
            Ours::Value(value) => unit.show(*value),
            Ours::Missing(why) => why.clone(),
        }
    }

    /// The figure, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Ours::Value(value) => Some(*value),
            Ours::Missing(_) => None,
        }
    }

    /// `of` applied to two figures, if both exist.
    pub fn with(&self, other: &Ours, of: impl Fn(f64, f64) -> f64) -> Ours {
        match (self, other) {
            (Ours::Value(one), Ours::Value(two)) => Ours::Value(of(*one, *two)),
            (Ours::Missing(why), _) | (_, Ours::Missing(why)) => Ours::Missing(why.clone()),
        }
    }
}

/// A picture.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The name of its file, without the extension.
    pub name: String,
    /// Its caption.
    pub caption: String,
    /// The picture itself.
    #[serde(skip)]
    pub svg: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_mean_something() {
        let shown = [0.0123, 0.5, 4.2, 23.45, 123.4, 1_234_567.0].map(|value| Unit::Percent.show(value));
        assert_eq!(shown, ["0.012", "0.50", "4.20", "23.4", "123", "1,234,567"]);
        assert_eq!(Unit::Bytes.show(9980.0), "9,980");
    }

    #[test]
    fn a_cell_is_worse_when_ours_is_more_than_was_published() {
        let cell = |published, ours| Cell { published, ours };
        for (published, ours, worse) in [
            (Some(Published::Value(2.0)), Ours::Value(1.0), false),
            (Some(Published::Value(2.0)), Ours::Value(3.0), true),
            (Some(Published::Range(1.0, 4.0)), Ours::Value(3.0), false),
            (Some(Published::Range(1.0, 4.0)), Ours::Value(5.0), true),
            (Some(Published::Value(2.0)), Ours::Missing("late".into()), false),
            (None, Ours::Value(9.0), false),
        ] {
            assert_eq!(cell(published, ours.clone()).is_worse(), worse, "{published:?} {ours:?}");
        }
    }
}
