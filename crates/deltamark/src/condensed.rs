//! Condensed graphs: written beside a run, and used instead of one.
//!
//! In: the edges of a run; later a file `.dmg` and the model it names. Out: the file; and from it the same answers,
//! figures and drawings as from a run, without exploring again. What stays true: a graph is written when a run is
//! complete, and otherwise not at all; it is walked with the very text it was made from, or with none.
//!
//! ```text
//! record       edges of a run ──▶ FILE.dmg
//! open         FILE.dmg ──▶ Condensed          components   of its graph
//! run/walk     Condensed, properties ──▶ answers            confirm      whether a path from a file is one of the model
//! ```

mod components;
pub(crate) mod confirm;
mod open;
mod record;

pub use components::ComponentsReport;
pub use open::{CondensedError, OpenOptions, is_graph};
pub(crate) use record::EdgeLog;

use crate::check::CheckError;
use crate::load::Loaded;
use crate::report::GraphContents;
use deltamark_core::{Action, Control, Stop};
pub use deltamark_core::{Edge, Recorder};
pub use deltamark_graph::{FileError, Graph, Way, unfinished};
use deltamark_graph::{Walk, WalkError};
use std::io::{self, Write};
use std::path::Path;

/// A condensed graph with its model.
pub struct Condensed {
    /// The graph.
    pub graph: Graph,
    /// The model, loaded as it was when the graph was made.
    pub model: Loaded,
    path: String,
    /// The system's numbers of the file's actions, where they differ from run to run.
    actions: Option<Vec<Action>>,
}

fn contents(graph: &Graph) -> GraphContents {
    GraphContents {
        bytes: graph.bytes(),
        packed: graph.packed_bytes(),
        states: graph.states(),
        edges: graph.meta().edges,
        unfolding: graph.meta().unfolding,
    }
}

impl Condensed {
    /// The path of the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where the model was read from, if the file led to a place that is neither in its own folder nor below it.
    pub fn led_away(&self) -> Option<&str> {
        use std::path::Component;
        let read = self.model.info.path.as_deref()?;
        let away = |path: &str| {
            !Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        let recorded = &self.graph.meta().model.path;
        let beside = Path::new(&self.path).with_file_name(Path::new(recorded).file_name()?);
        (away(recorded) && Path::new(read) != beside).then_some(read)
    }

    /// What is in the file.
    pub fn contents(&self) -> GraphContents {
        contents(&self.graph)
    }

    /// The system's number of one of the file's actions.
    pub fn action(&self, action: Action) -> Action {
        self.actions.as_ref().map_or(action, |actions| actions[action.0 as usize])
    }

    /// A walk along the graph.
    pub fn walk<'a>(&'a self, control: &'a Control) -> Result<Walk<'a>, CheckError> {
        Walk::new(&self.graph, self.model.system.as_ref(), self.actions.as_deref(), control)
            .map_err(|error| self.wrong(&error))
    }

    pub(crate) fn wrong(&self, error: &WalkError) -> CheckError {
        let message = format!("`{}` cannot be used: {error}", self.path);
        match error {
            WalkError::File(FileError::Stopped(Stop::Memory)) => CheckError::GraphTooLarge(message),
            WalkError::File(FileError::Stopped(stop)) => CheckError::Stopped(*stop),
            _ => CheckError::Graph(message),
        }
    }

    pub(crate) fn broken(&self, error: FileError) -> CheckError {
        self.wrong(&WalkError::File(error))
    }

    /// Writes what the file says of itself as one JSON object.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let (meta, contents) = (self.graph.meta(), self.contents());
        let value = serde_json::json!({
            "schema": crate::json::SCHEMA,
            "graph": self.path,
            "model": { "path": meta.model.path, "format": meta.model.format },
            "states": meta.states,
            "edges": meta.edges,
            "actions": meta.actions,
            "states_without_edges": meta.ends,
            "unfolding": meta.unfolding,
            "bytes": contents.bytes,
            "packed_bytes": contents.packed,
            "bits_per_edge": contents.bits_per_edge(),
        });
        Ok(serde_json::to_writer(out, &value)?)
    }
}
