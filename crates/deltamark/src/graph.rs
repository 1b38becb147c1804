//! The state space as a graph, for other tools and for small pictures.
//!
//! In: a system and a largest number of states. Out: a [`Graph`], written as DOT,
//! Aldebaran or JSON. What stays true: a graph is the whole state space or there is
//! none; its states are numbered in breadth-first order; its memory comes out of the
//! run's budget.

use crate::check::CheckError;
use crate::condensed::Condensed;
use crate::control::control;
use crate::json::{ModelJson, SCHEMA, StateJson};
use crate::load::Loaded;
use crate::run::store::NUMBERING;
use deltamark_core::{
    Action, Batch, Block, Budget, Cancel, Insert, Limits, Listener, Recoding, Scratch, StateId, States, Stop, System,
    Widen, Width,
};
use deltamark_graph::walk::Ended;
use deltamark_graph::{Visitor, Way};
use deltamark_search::{Observer, Search, Task};
use deltamark_store::StoreSpec;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

/// A way to write a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFormat {
    /// Graphviz.
    Dot,
    /// Aldebaran, the format of CADP and mCRL2.
    Aut,
    /// JSON, with every state in full.
    Json,
}

impl GraphFormat {
    /// All there are.
    pub const ALL: &[GraphFormat] = &[GraphFormat::Dot, GraphFormat::Aut, GraphFormat::Json];

    /// Its name, which is also the ending of its files' names.
    pub fn name(self) -> &'static str {
        match self {
            GraphFormat::Dot => "dot",
            GraphFormat::Aut => "aut",
            GraphFormat::Json => "json",
        }
    }

    /// The format of this name.
    pub fn by_name(name: &str) -> Option<GraphFormat> {
        Self::ALL.iter().copied().find(|format| format.name() == name.to_ascii_lowercase())
    }

    /// The most states that are written unless the user asks for more: pictures become
    /// useless much earlier than lists.
    pub fn max_states(self) -> u64 {
        match self {
            GraphFormat::Dot => 10_000,
            GraphFormat::Aut | GraphFormat::Json => 1_000_000,
        }
    }
}

/// Why there is no graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// There are more states than this.
    TooManyStates(u64),
    /// The run ended early for another reason, after this many states.
    Stopped(Stop, u64),
    /// The run could not be made.
    Check(CheckError),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::TooManyStates(limit) => write!(f, "the state space has more than {limit} states"),
            GraphError::Stopped(stop, states) => {
                write!(f, "the run was stopped ({}) after {states} states", stop.word())
            }
            GraphError::Check(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GraphError {}

pub(crate) struct Edge {
    pub from: u32,
    pub action: Action,
    pub to: u32,
}

/// A whole state space.
pub struct Graph<'a> {
    pub(crate) model: &'a Loaded,
    pub(crate) states: States,
    initial: Vec<u32>,
    pub(crate) edges: Vec<Edge>,
}

impl<'a> Graph<'a> {
    /// Explores a model of at most `max_states` states.
    pub fn explore(
        model: &'a Loaded,
        max_states: u64,
        limits: Limits,
        cancel: Cancel,
        listener: Arc<dyn Listener>,
    ) -> Result<Self, GraphError> {
        let max_states = max_states.min(u64::from(u32::MAX) - 1);
        let system = model.system.as_ref();
        // One more, so that a space of exactly `max_states` states is seen to its end.
        let limits = Limits { states: Some(max_states + 1), ..limits };
        let (control, _) = control(limits, cancel, listener, Instant::now()).map_err(GraphError::Check)?;
        let spec = StoreSpec::named(NUMBERING);
        let store = deltamark_store::build(&spec, system, Search::Bfs.order(), control.budget.clone())
            .map_err(|error| GraphError::Check(CheckError::Store(error)))?;
        let mut edges =
            Edges { list: Vec::new(), budget: control.budget.clone(), cancel: control.cancel.clone(), full: false };
        let outcome = deltamark_search::run(
            Search::Bfs,
            Task {
                system,
                store: store.as_ref(),
                properties: &[],
                control: &control,
                explore_all: true,
                observer: Some(&mut edges),
            },
        );
        let found = outcome.statistics.states;
        match outcome.stopped_by {
            _ if edges.full => return Err(GraphError::Stopped(Stop::Memory, found)),
            _ if found > max_states => return Err(GraphError::TooManyStates(max_states)),
            Some(Stop::States) => return Err(GraphError::TooManyStates(max_states)),
            Some(stop) => return Err(GraphError::Stopped(stop, found)),
            None => {}
        }
        let (Some(recall), mut scratch) = (store.recall(), store.scratch()) else {
            unreachable!("a store that numbers states recalls them");
        };
        let ids: Vec<StateId> = (0..found).map(StateId::new).collect();
        let mut states = States::new(system.width());
        recall.recall(&mut scratch, &ids, &mut states);
        let initial = initial(system, &states);
        Ok(Graph { model, states, initial, edges: edges.list })
    }

    /// Rebuilds a graph of at most `max_states` states from its condensed form.
    pub fn rebuild(
        condensed: &'a Condensed,
        max_states: u64,
        limits: Limits,
        cancel: Cancel,
        listener: Arc<dyn Listener>,
    ) -> Result<Self, GraphError> {
        let graph = &condensed.graph;
        if graph.states() > max_states.min(u64::from(u32::MAX) - 1) {
            return Err(GraphError::TooManyStates(max_states));
        }
        let (control, _) = control(limits, cancel, listener, Instant::now()).map_err(GraphError::Check)?;
        let system = condensed.model.system.as_ref();
        let slots = match system.width() {
            Width::Fixed(slots) => slots as u64,
            Width::Varies => 16,
        };
        let bytes = graph.states() * (4 * slots + 8) + graph.meta().edges * size_of::<Edge>() as u64;
        if !control.budget.request(bytes) {
            return Err(GraphError::Stopped(Stop::Memory, 0));
        }
        let mut collector = Collector { numbers: Vec::new(), states: States::new(system.width()) };
        let mut walk = condensed.walk(&control).map_err(GraphError::Check)?;
        let wrong = |error| GraphError::Check(condensed.wrong(&error));
        // In file order every state is shown once and in its place, unless the walk has to start over.
        match walk.run(Way::Auto, &mut collector).map_err(wrong)? {
            Ended::Whole | Ended::Enough => {}
            Ended::Stopped(stop) => return Err(GraphError::Stopped(stop, collector.numbers.len() as u64)),
        }
        let mut edges = Vec::with_capacity(graph.meta().edges as usize);
        let mut row = Vec::new();
        for from in 0..graph.states() {
            graph.edges(from, &mut row).map_err(|error| wrong(error.into()))?;
            edges.extend(row.iter().map(|edge| Edge {
                from: from as u32,
                action: condensed.action(edge.action),
                to: edge.target as u32,
            }));
        }
        let mut initial: Vec<u32> = graph.meta().initial.iter().map(|&number| number as u32).collect();
        initial.dedup();
        Ok(Graph { model: &condensed.model, states: collector.sorted(), initial, edges })
    }

    /// How many states it has.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// How many edges it has.
    pub fn edges(&self) -> usize {
        self.edges.len()
    }

    /// Writes the graph.
    pub fn write(&self, format: GraphFormat, out: &mut dyn Write) -> io::Result<()> {
        match format {
            GraphFormat::Dot => self.write_dot(out),
            GraphFormat::Aut => self.write_aut(out),
            GraphFormat::Json => self.write_json(out),
        }
    }

    fn action(&self, edge: &Edge) -> String {
        self.model.system.describe().action(self.states.get(edge.from as usize), edge.action)
    }

    fn write_dot(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut moves = vec![false; self.states.len()];
        self.edges.iter().for_each(|edge| moves[edge.from as usize] = true);
        writeln!(out, "digraph states {{\n  node [shape=box];")?;
        for (number, state) in self.states.iter().enumerate() {
            let words = self.model.system.describe().state(state);
            let lines: Vec<String> = words.iter().map(|(name, value)| quoted(&format!("{name}={value}"))).collect();
            let label = if lines.is_empty() { "empty".into() } else { lines.join("\\n") };
            // What a reader looks for first: where it begins and where it is stuck.
            let begins = if self.initial.contains(&(number as u32)) { ", penwidth=2" } else { "" };
            let stuck = if moves[number] { "" } else { ", color=red" };
            writeln!(out, "  {number} [label=\"{number}\\n{label}\"{begins}{stuck}];")?;
        }
        for edge in &self.edges {
            writeln!(out, "  {} -> {} [label=\"{}\"];", edge.from, edge.to, quoted(&self.action(edge)))?;
        }
        writeln!(out, "}}")
    }

    /// Aldebaran knows one initial state only. Where there are several, one more state
    /// leads to each of them by the action `i`, which its tools take for invisible.
    fn write_aut(&self, out: &mut dyn Write) -> io::Result<()> {
        let (first, extra) = match self.initial.as_slice() {
            &[only] => (only as usize, &[][..]),
            several => (self.states.len(), several),
        };
        let states = self.states.len() + usize::from(!extra.is_empty());
        writeln!(out, "des ({first}, {}, {states})", self.edges.len() + extra.len())?;
        for target in extra {
            writeln!(out, "({first}, i, {target})")?;
        }
        for edge in &self.edges {
            writeln!(out, "({}, \"{}\", {})", edge.from, quoted(&self.action(edge)), edge.to)?;
        }
        Ok(())
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let model = serde_json::to_string(&ModelJson(&self.model.info))?;
        let initial = serde_json::to_string(&self.initial)?;
        write!(out, "{{\"schema\":{SCHEMA},\"model\":{model},\"initial\":{initial},\"states\":[")?;
        for (number, state) in self.states.iter().enumerate() {
            let words = self.model.system.describe().state(state);
            let state = StateJson(words.iter().map(|(name, value)| (name.as_str(), value)).collect());
            write!(out, "{}", if number == 0 { "\n" } else { ",\n" })?;
            serde_json::to_writer(&mut *out, &state)?;
        }
        write!(out, "],\n\"edges\":[")?;
        for (index, edge) in self.edges.iter().enumerate() {
            write!(out, "{}", if index == 0 { "\n" } else { ",\n" })?;
            let action = serde_json::to_string(&self.action(edge))?;
            write!(out, "{{\"from\":{},\"action\":{action},\"to\":{}}}", edge.from, edge.to)?;
        }
        writeln!(out, "]}}")
    }
}

/// Collects the states of a walk.
struct Collector {
    numbers: Vec<u32>,
    states: States,
}

impl Collector {
    /// The states by number; of one that was shown twice the last.
    fn sorted(self) -> States {
        if self.numbers.iter().enumerate().all(|(place, &number)| place == number as usize) {
            return self.states;
        }
        let count = self.numbers.iter().max().map_or(0, |&last| last as usize + 1);
        let mut places = vec![0; count];
        for (place, &number) in (0..).zip(&self.numbers) {
            places[number as usize] = place;
        }
        let mut states = States::new(self.states.width());
        states.gather(&self.states, &places);
        states
    }
}

impl Visitor for Collector {
    fn visit(&mut self, _: &mut Scratch, block: &Block, _: u64) -> Result<bool, Widen> {
        for (index, state) in block.states().iter().enumerate() {
            self.numbers.push(block.id(index).get() as u32);
            self.states.push(state);
        }
        Ok(true)
    }

    fn widened(&mut self, recoding: &Recoding) {
        recoding.translate_all(&mut self.states);
    }
}

/// The numbers of the initial states.
fn initial(system: &dyn System, states: &States) -> Vec<u32> {
    let mut batch = Batch::new(system.width());
    if system.initial(&mut system.scratch(), &mut batch).is_err() {
        unreachable!("a layout that held every state holds the initial ones");
    }
    // They were inserted first, so they are among the first states.
    let number = |target| (0..states.len().min(batch.len())).find(|&number| states.get(number) == target);
    let mut numbers: Vec<u32> =
        (0..batch.len()).filter_map(|index| number(batch.target(index))).map(|n| n as u32).collect();
    numbers.dedup();
    numbers
}

/// For text between double quotes, in DOT as in Aldebaran.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// Collects the edges of a run, as far as the budget goes.
struct Edges {
    list: Vec<Edge>,
    budget: Arc<Budget>,
    cancel: Cancel,
    full: bool,
}

impl Observer for Edges {
    fn expanded(&mut self, _: &dyn System, _: &mut Scratch, block: &Block, batch: &Batch, answers: &[Insert]) {
        let more = self.list.len() + answers.len();
        if more > self.list.capacity() && !self.full {
            // While the list moves to its new place, old and new are both held.
            let capacity = (self.list.capacity() * 2).max(more).max(1024);
            if !self.budget.request((capacity * size_of::<Edge>()) as u64) {
                self.full = true;
                self.cancel.cancel();
                return;
            }
            let before = self.list.capacity();
            self.list.reserve_exact(capacity - self.list.len());
            self.budget.release((before * size_of::<Edge>()) as u64);
        }
        if self.full {
            return;
        }
        for (index, answer) in answers.iter().enumerate() {
            if let Insert::New(to) | Insert::Seen(to) = answer {
                let from = block.id(batch.source(index)).get() as u32;
                self.list.push(Edge { from, action: batch.action(index), to: to.get() as u32 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_line_ends_do_not_leave_a_label() {
        assert_eq!(quoted("a\"b\\c\nd"), "a\\\"b\\\\c d");
    }
}
