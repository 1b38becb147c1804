//! The strongly connected components of a graph, for reports.
//!
//! In: a condensed graph. Out: a [`ComponentsReport`]: how many components there are, and which states are home states.

use super::Condensed;
use crate::check::CheckError;
use crate::control::control;
use deltamark_core::{Cancel, Limits};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

/// The strongly connected components of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentsReport {
    /// The path of the graph.
    pub path: String,
    /// How many there are.
    pub count: u64,
    /// How many are a single state without an edge to itself.
    pub trivial: u64,
    /// How many no edge leaves.
    pub bottom: u64,
    /// States of the largest one.
    pub largest: u64,
    /// The states that can be reached from every state; `None` for an unfolding, because several of its
    /// components may be parts of one.
    pub home_states: Option<u64>,
    /// Whether all initial states are among them.
    pub initial_is_home: Option<bool>,
    /// Whether the graph is an unfolding of the real one, in which a component may be a part of one.
    pub unfolding: bool,
}

impl ComponentsReport {
    /// Writes it as one JSON object.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let value = serde_json::json!({
            "schema": crate::json::SCHEMA,
            "graph": self.path,
            "components": self.count,
            "trivial": self.trivial,
            "bottom": self.bottom,
            "largest": self.largest,
            "home_states": self.home_states,
            "initial_is_home": self.initial_is_home,
            "unfolding": self.unfolding,
        });
        Ok(serde_json::to_writer(out, &value)?)
    }
}

impl Condensed {
    /// Finds the strongly connected components, and the home states: a state is one if it can be reached from every
    /// state, so they are the only component that no edge leaves, if there is only one.
    pub fn components(&self, limits: Limits, cancel: Cancel) -> Result<ComponentsReport, CheckError> {
        let (control, _) = control(limits, cancel, Arc::new(deltamark_core::Silent), Instant::now())?;
        let found = deltamark_graph::components(&self.graph, &control).map_err(|error| self.broken(error))?;
        let (home, initial) = (found.has_home(), &self.graph.meta().initial);
        let known = !self.graph.meta().unfolding;
        Ok(ComponentsReport {
            path: self.path.clone(),
            count: found.count,
            trivial: found.trivial,
            bottom: found.bottom,
            largest: found.largest,
            home_states: known.then(|| if home { found.in_bottom.count() } else { 0 }),
            initial_is_home: known.then(|| home && initial.iter().all(|&number| found.in_bottom.contains(number))),
            unfolding: self.graph.meta().unfolding,
        })
    }
}
