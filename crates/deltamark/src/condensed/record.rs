//! The edges of a run, recorded as it goes on.
//!
//! In: expanded blocks with the ids that a store gave, or states that a search numbers itself. Out: a graph, in a
//! file or in memory. What stays true: the graph of a run that is not complete is not written.

use super::contents;
use crate::check::CheckError;
use crate::load::ModelInfo;
use crate::report::GraphContents;
use crate::run::Watcher;
use deltamark_core::{
    Action, Batch, Block, Budget, Control, Edge, Guarantee, Insert, Outcome, Recorder, Scratch, StateId, Store, System,
};
use deltamark_graph::{About, Graph, ModelId, Recording};
use deltamark_search::Observer;
use deltamark_store::StoreSpec;
use std::path::Path;
use std::sync::Arc;

/// Writes down the edges of a run.
pub(crate) struct EdgeLog {
    recording: Recording,
    numbers: Numbers,
    model: ModelId,
    /// The numbers of the system's initial states, in its order, once the run is complete.
    initial: Option<Vec<u64>>,
    /// The edges of each state of a block.
    rows: Vec<Vec<Edge>>,
    /// States in which the model has a fault.
    faulty: u64,
    error: Option<String>,
    control: Control,
}

/// The numbers of states, by their ids.
enum Numbers {
    /// Ids are numbers.
    Same,
    /// In the order in which they are met.
    Met { pages: Vec<Option<Box<[u64]>>>, next: u64, budget: Arc<Budget>, granted: u64 },
}

/// Ids of a page of numbers.
const PAGE: usize = 4096;
/// The number of a state that was not met.
const NONE: u64 = u64::MAX;

impl Numbers {
    fn of(&mut self, id: StateId) -> Result<u64, String> {
        let Numbers::Met { pages, next, budget, granted } = self else { return Ok(id.get()) };
        if id == StateId::NAMELESS {
            return Err("the store does not tell which state it found, so no graph can be written; `plain` does".into());
        }
        let page = id.index() / PAGE;
        if page >= pages.len() || pages[page].is_none() {
            let more = page.saturating_sub(pages.len()) * 8 + PAGE * 8;
            if !budget.request(more as u64) {
                return Err("the memory limit leaves no room for the numbers of the graph's states".into());
            }
            *granted += more as u64;
            if page >= pages.len() {
                pages.resize_with(page + 1, || None);
            }
            pages[page] = Some(vec![NONE; PAGE].into());
        }
        let Some(number) = pages[page].as_mut().map(|numbers| &mut numbers[id.index() % PAGE]) else { return Ok(NONE) };
        if *number == NONE {
            *number = *next;
            *next += 1;
        }
        Ok(*number)
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        if let Numbers::Met { budget, granted, .. } = self {
            budget.release(*granted);
        }
    }
}

impl EdgeLog {
    /// Prepares to write a file. A search that numbers states itself hands them over as to any [`Recorder`]; one that shows
    /// blocks with ids of a store is [watched](Watcher).
    pub(crate) fn new(path: &str, info: &ModelInfo, control: &Control) -> Result<Self, String> {
        let Some((length, hash)) = info.text else {
            return Err("a graph can be written of models that come from a file".into());
        };
        let recording = Recording::to_file(Path::new(path), Arc::clone(&control.budget))?.under(control);
        let model = ModelId {
            path: info.path.clone().unwrap_or_default(),
            format: info.format.into(),
            options: info.options.clone(),
            length,
            hash,
        };
        Ok(Self::recording(recording, model, control))
    }

    /// Prepares to keep a graph in memory.
    pub(crate) fn in_memory(control: &Control) -> Self {
        let recording = Recording::in_memory(Arc::clone(&control.budget)).under(control);
        Self::recording(recording, ModelId::default(), control)
    }

    fn recording(recording: Recording, model: ModelId, control: &Control) -> Self {
        EdgeLog {
            recording,
            numbers: Numbers::Same,
            model,
            initial: None,
            rows: vec![Vec::new(); deltamark_core::BLOCK],
            faulty: 0,
            error: None,
            control: control.clone(),
        }
    }

    /// Whether something went wrong while edges were recorded.
    pub(crate) fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Takes ids of this store for numbers, or numbers them. Refuses stores without ids.
    fn over(&mut self, spec: &StoreSpec, store: &dyn Store, control: &Control) -> Result<(), String> {
        let recall = store.recall().filter(|recall| recall.whole() && store.guarantee() == Guarantee::Exact);
        let Some(recall) = recall else {
            return Err(format!(
                "the store `{}` does not tell which state is which, so no graph can be written; `plain` and `tree` do",
                spec.name
            ));
        };
        if !recall.sequential() {
            self.numbers = Numbers::Met { pages: Vec::new(), next: 0, budget: Arc::clone(&control.budget), granted: 0 };
        }
        Ok(())
    }

    /// Notes that the run is complete, and that these are the numbers of the system's initial states.
    pub(crate) fn complete(&mut self, initial: Vec<u64>) {
        self.initial = Some(initial);
    }

    /// Whether the run is complete, so that there is a graph.
    pub(crate) fn is_complete(&self) -> bool {
        self.initial.is_some()
    }

    /// Writes the file of a complete run; `None` if it is not complete.
    pub(crate) fn finish(
        self,
        system: &dyn System,
        levels: bool,
        unfolding: bool,
    ) -> Result<Option<GraphContents>, String> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.is_complete() {
            return Ok(None);
        }
        let control = self.control.clone();
        match self.graph_of(system, levels, unfolding) {
            Ok(graph) => Ok(Some(contents(&graph))),
            // The answers are valid without the file.
            Err(_) if control.stop_without_memory().is_some() => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// The graph of a complete run, for questions that are asked at once.
    pub(crate) fn into_graph(self, system: &dyn System) -> Result<Graph, String> {
        self.graph_of(system, false, false)
    }

    fn graph_of(self, system: &dyn System, levels: bool, unfolding: bool) -> Result<Graph, String> {
        let table = |portable: &dyn deltamark_core::PortableActions| {
            (0..self.recording.actions()).map(|action| portable.carry(Action(action))).collect()
        };
        let actions = system.portable().and_then(|portable| portable.actions()).map(table);
        let initial = self.initial.unwrap_or_default();
        let about = About { initial, unfolding, levels, faulty: Some(self.faulty), model: self.model, actions };
        Ok(self.recording.finish(about)?.0)
    }

    /// Records a block; `more` may add edges to those of a state, which it gets with its place in the block and its number.
    pub(crate) fn expanded_with(
        &mut self,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
        more: impl FnMut(usize, &mut Vec<Edge>, u64),
    ) {
        if self.error.is_none()
            && let Err(error) = self.take(block, batch, answers, more)
        {
            self.error = Some(error);
            self.control.cancel.cancel();
        }
    }

    fn take(
        &mut self,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
        mut more: impl FnMut(usize, &mut Vec<Edge>, u64),
    ) -> Result<(), String> {
        for row in &mut self.rows[..block.len()] {
            row.clear();
        }
        for (index, answer) in answers.iter().enumerate() {
            if let Insert::New(id) | Insert::Seen(id) = *answer {
                let target = self.numbers.of(id)?;
                self.rows[batch.source(index)].push(Edge { action: batch.action(index), target });
            }
        }
        for index in 0..block.len() {
            let number = self.numbers.of(block.id(index))?;
            more(index, &mut self.rows[index], number);
            self.recording.record(number, &self.rows[index])?;
        }
        self.faulty += u64::from(fault_mask(batch).count_ones());
        Ok(())
    }
}

/// The states of a block in which the model declares something wrong.
fn fault_mask(batch: &Batch) -> u64 {
    batch.faults().iter().fold(0, |mask, fault| mask | 1 << fault.source)
}

impl Recorder for EdgeLog {
    fn record(&mut self, number: u64, edges: &[Edge]) -> Result<(), String> {
        self.recording.record(number, edges)
    }

    fn fault(&mut self, _number: u64) {
        self.faulty += 1;
    }
}

impl Watcher for EdgeLog {
    fn begin(
        &mut self,
        _: &dyn System,
        spec: &StoreSpec,
        store: &dyn Store,
        control: &Control,
    ) -> Result<(), CheckError> {
        self.over(spec, store, control).map_err(CheckError::Graph)
    }

    fn end(&mut self, system: &dyn System, store: &dyn Store, outcome: &Outcome) {
        if !outcome.complete() {
            return;
        }
        let mut batch = Batch::new(system.width());
        let mut scratch = store.scratch();
        if system.initial(&mut system.scratch(), &mut batch).is_ok() {
            let mut find = |index| store.find(&mut scratch, batch.target(index), batch.hash(index));
            self.initial = (0..batch.len()).map(|index| self.numbers.of(find(index)?).ok()).collect();
        }
    }
}

impl Observer for EdgeLog {
    fn expanded(&mut self, _: &dyn System, _: &mut Scratch, block: &Block, batch: &Batch, answers: &[Insert]) {
        self.expanded_with(block, batch, answers, |_, _, _| {});
    }
}
