//! Models with known results from outside.
//!
//! In: the folder named by the environment variable `DELTAMARK_MODELS`, or `../shared/models` beside the
//! workspace. Out: rows of its tables of expected results with their files. What stays true: if the folder is
//! absent nothing fails, but a line on standard error reports what was skipped, bypassing the test runner,
//! which would capture it.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A folder of models.
#[derive(Clone, Debug)]
pub struct Corpus {
    root: PathBuf,
}

/// A row of a table of expected results, by column name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    cells: HashMap<String, String>,
}

impl Corpus {
    /// The folder of models, or `None`, with a note that `test` is skipped.
    pub fn find(test: &str) -> Option<Self> {
        let root = Self::folder();
        if root.is_dir() {
            return Some(Corpus { root });
        }
        skipped(test, "no models from outside (DELTAMARK_MODELS)");
        None
    }

    /// Where the folder of models should be.
    pub fn folder() -> PathBuf {
        match std::env::var_os("DELTAMARK_MODELS") {
            Some(folder) => PathBuf::from(folder),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/models"),
        }
    }

    /// The corpus in this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Corpus { root: root.into() }
    }

    /// A file of a sub-folder.
    pub fn file(&self, folder: &str, name: &str) -> PathBuf {
        self.root.join(folder).join(name)
    }

    /// Calls `check` for those rows of a sub-folder that are `wanted`, of which there must be `count`, on two
    /// threads, the last rows first. It returns what is wrong with a model, a line each.
    ///
    /// # Panics
    /// If something is wrong, or there are fewer rows.
    pub fn check_rows(
        &self,
        folder: &str,
        count: usize,
        wanted: impl Fn(&Row) -> bool,
        check: impl Fn(&Row) -> Vec<String> + Sync,
    ) {
        let rows: Vec<Row> = self.expected(folder).into_iter().filter(wanted).collect();
        assert!(rows.len() >= count, "only {} models are wanted, not {count}", rows.len());
        let (rows, wrong) = (Mutex::new(rows), Mutex::new(Vec::new()));
        let next = || rows.lock().expect("no panic").pop();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(row) = next() {
                        let found = check(&row);
                        wrong.lock().expect("no panic").extend(found);
                    }
                });
            }
        });
        let wrong: Vec<String> = wrong.into_inner().expect("no panic");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// The rows of `expected.tsv` in a sub-folder. Empty, with a note, if there is none.
    pub fn expected(&self, folder: &str) -> Vec<Row> {
        let path = self.file(folder, "expected.tsv");
        match std::fs::read_to_string(&path) {
            Ok(text) => rows(&text),
            Err(error) => {
                skipped(&path.display().to_string(), &error.to_string());
                Vec::new()
            }
        }
    }
}

/// Reports that a test is skipped. The test runner captures what the macros print and shows nothing of a test
/// that passes; this must be visible nevertheless, so it is written to the stream itself.
pub fn skipped(test: &str, why: &str) {
    // Without standard error it cannot be reported.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
}

impl Row {
    /// The cell of this column; `None` if it is empty or there is no such column.
    pub fn text(&self, column: &str) -> Option<&str> {
        self.cells.get(column).map(String::as_str).filter(|cell| !cell.is_empty())
    }

    /// The cell of this column as a number.
    ///
    /// # Panics
    /// If the cell holds something else: the table is broken, and a test that skipped the row silently would
    /// prove nothing.
    pub fn number(&self, column: &str) -> Option<u64> {
        let cell = self.text(column)?;
        Some(cell.parse().unwrap_or_else(|_| panic!("column `{column}` holds `{cell}`, which is no number")))
    }

    /// The cell of this column, `y` or `n`, as a truth value.
    pub fn truth(&self, column: &str) -> Option<bool> {
        match self.text(column)? {
            "y" => Some(true),
            "n" => Some(false),
            other => panic!("column `{column}` holds `{other}`, neither `y` nor `n`"),
        }
    }
}

/// The rows of a table: cells between tabs, the first line naming the columns.
fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(header) = lines.next() else { return Vec::new() };
    let columns: Vec<&str> = header.split('\t').collect();
    let row = |line: &str| Row {
        cells: columns.iter().zip(line.split('\t')).map(|(&name, cell)| (name.into(), cell.trim().into())).collect(),
    };
    lines.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_by_column() {
        let rows = rows("model\tstates\tdeadlock\tmore\na\t12\ty\t\n\nb\t\tn\n");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].text("model"), rows[0].number("states")), (Some("a"), Some(12)));
        assert_eq!((rows[0].truth("deadlock"), rows[1].truth("deadlock")), (Some(true), Some(false)));
        assert_eq!((rows[1].number("states"), rows[0].text("more"), rows[0].text("none")), (None, None, None));
    }

    #[test]
    fn every_expected_net_is_there() {
        let Some(corpus) = Corpus::find("every_expected_net_is_there") else { return };
        for row in corpus.expected("pnml") {
            let model = row.text("model").expect("every row names its model");
            assert!(corpus.file("pnml", &format!("{model}.pnml")).is_file(), "{model}");
            assert!(row.number("states").is_some(), "{model}");
        }
    }
}
