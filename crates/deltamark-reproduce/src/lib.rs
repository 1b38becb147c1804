//! Reproduces the tables of papers.
//!
//! In: the name of a paper, the time available, a folder with models that are not ours. Out: a [`Study`]: the
//! paper's tables, each cell with the published figure and the one measured here and now. What stays true: a
//! figure of ours comes from a run made for it, over the whole state space or the part that the paper states; a
//! cell without such a run states why.
//!
//! ```text
//! paper ─▶ models ─▶ runs (measure) ─▶ Study ─┬─▶ text     tables for a terminal
//!                                             ├─▶ html     a page with its pictures
//!                                             └─▶ JSON
//! ```
//! One file a paper: its figures, its models, its runs. Sometimes the model of a paper is unknown; then the counts
//! of states differ, and the table notes it.

mod comback;
mod delta;
mod difference;
mod html;
mod measure;
mod models;
mod pair;
pub mod plot;
mod study;
mod sweep;
mod text;
mod tokens;
mod tree;

pub use measure::thread_time;
pub use study::{Cell, Figure, Grid, Ours, Published, Row, Study, Unit};
pub use tokens::Tokens;

use deltamark_core::Cancel;
use std::path::{Path, PathBuf};

/// The extent of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Small instances: about a minute a paper.
    #[default]
    Quick,
    /// The paper's own sizes.
    Full,
}

/// What to run, and a listener.
pub struct StudyOptions<'a> {
    /// How much.
    pub extent: Extent,
    /// A folder with models that are not ours.
    pub models: Option<PathBuf>,
    /// Cancellation: cells without a figure by then stay empty.
    pub cancel: Cancel,
    /// Called when a run begins.
    pub tell: &'a dyn Fn(&str),
}

/// A paper whose tables are measured.
#[derive(Debug)]
pub struct Paper {
    /// Its name on the command line: that of the method.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    run: fn(&StudyOptions<'_>) -> Study,
    /// Models that it needs and that do not come with Deltamark: their name, and the names of their files.
    needs: Option<Needs>,
}

/// Models that do not come with Deltamark.
#[derive(Debug)]
struct Needs {
    what: &'static str,
    files: fn() -> Vec<String>,
}

/// Why a paper cannot be measured at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// No folder was named; it should hold these models.
    Folder(&'static str),
    /// The folder holds none of these models; one of the expected files.
    Files(&'static str, String),
}

impl Paper {
    /// All papers.
    pub const ALL: &[Paper] = &[
        Paper {
            name: "difference",
            about: "states as differences, on nets that move tokens",
            run: difference::run,
            needs: None,
        },
        Paper { name: "delta", about: "Δ-markings, on coloured nets", run: delta::run, needs: None },
        Paper {
            name: "comback",
            about: "hash compaction without loss, on coloured nets",
            run: comback::run,
            needs: None,
        },
        Paper {
            name: "sweep",
            about: "sweep-line and condensed graphs, on coloured nets and DVE",
            run: sweep::run,
            needs: None,
        },
        Paper {
            name: "tree",
            about: "tree compression, on models in DVE",
            run: tree::run,
            needs: Some(Needs { what: "the models of BEEM in DVE", files: tree::files }),
        },
    ];

    /// The paper of this name.
    pub fn by_name(name: &str) -> Option<&'static Paper> {
        Self::ALL.iter().find(|paper| paper.name == name)
    }

    /// Why it cannot be measured at all, if so: its models are missing. If only some are missing, the tables note
    /// it.
    pub fn missing(&self, models: Option<&Path>) -> Option<Missing> {
        let needs = self.needs.as_ref()?;
        let Some(folder) = models else { return Some(Missing::Folder(needs.what)) };
        let files = (needs.files)();
        let none = !files.iter().any(|file| folder.join(file).is_file());
        files.into_iter().next().filter(|_| none).map(|file| Missing::Files(needs.what, file))
    }

    /// Measures its tables.
    pub fn reproduce(&self, options: &StudyOptions<'_>) -> Study {
        (self.run)(options)
    }
}
