//! The edges of a run, recorded as it goes on.
//!
//! In: expanded blocks with the ids that a store gave, or states that a search numbers itself. Out: a graph, in a
//! file or in memory. What stays true: the graph of a run that is not complete is not written; a graph that cannot be
//! recorded is given up with its memory, and takes nothing from the run beside it.

use super::contents;
use crate::check::CheckError;
use crate::load::ModelInfo;
use crate::report::GraphContents;
use crate::run::Watcher;
use deltamark_core::{
    Action, Batch, Block, Budget, Control, Edge, Guarantee, Insert, Outcome, Recorder, Scratch, StateId, Store, System,
};
use deltamark_graph::{About, Graph, ModelId, Recording, Unwritten};
use deltamark_search::Observer;
use deltamark_store::StoreSpec;
use std::path::Path;
use std::sync::Arc;

/// Writes down the edges of a run.
pub(crate) struct EdgeLog {
    /// `None` once it is given up.
    recording: Option<Recording>,
    /// Whether the run is of no use without the graph.
    needed: bool,
    numbers: Numbers,
    model: ModelId,
    /// The numbers of the system's initial states, in its order, once the run is complete.
    initial: Option<Vec<u64>>,
    /// The edges of each state of a block.
    rows: Vec<Vec<Edge>>,
    /// States in which the model has a fault.
    faulty: u64,
    error: Option<Unwritten>,
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
    fn of(&mut self, id: StateId) -> Result<u64, Unwritten> {
        let Numbers::Met { pages, next, budget, granted } = self else { return Ok(id.get()) };
        if id == StateId::NAMELESS {
            let why = "the store does not tell which state it found, so no graph can be written; `plain` does";
            return Err(why.to_string().into());
        }
        let page = id.index() / PAGE;
        if page >= pages.len() || pages[page].is_none() {
            let more = page.saturating_sub(pages.len()) * 8 + PAGE * 8;
            if !budget.request(more as u64) {
                let why = "the memory limit leaves no room for the numbers of the graph's states".into();
                return Err(Unwritten { why, room: true });
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
    /// blocks with ids of a store is [watched](Watcher). If there is no memory for it, the run goes on without it.
    pub(crate) fn new(path: &str, info: &ModelInfo, control: &Control) -> Result<Self, String> {
        let Some((length, hash)) = info.text else {
            return Err("a graph can be written of models that come from a file".into());
        };
        let (recording, error) = match Recording::to_file(Path::new(path), Arc::clone(&control.budget)) {
            Ok(recording) => (Some(recording.under(control)), None),
            Err(error) if error.room => (None, Some(error)),
            Err(error) => return Err(error.why),
        };
        let model = ModelId {
            path: info.path.clone().unwrap_or_default(),
            format: info.format.into(),
            options: info.options.clone(),
            length,
            hash,
        };
        Ok(EdgeLog { error, needed: false, ..Self::recording(recording, model, control) })
    }

    /// Prepares to keep a graph in memory.
    pub(crate) fn in_memory(control: &Control) -> Self {
        let recording = Recording::in_memory(Arc::clone(&control.budget)).under(control);
        Self::recording(Some(recording), ModelId::default(), control)
    }

    fn recording(recording: Option<Recording>, model: ModelId, control: &Control) -> Self {
        EdgeLog {
            recording,
            needed: true,
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

    /// Writes the file of a complete run. If there is none: why, unless it is that the run had to end.
    pub(crate) fn finish(
        mut self,
        system: &dyn System,
        levels: bool,
        unfolding: bool,
    ) -> Result<GraphContents, Option<Unwritten>> {
        if let Some(error) = self.error.take() {
            return Err(Some(error));
        }
        if !self.is_complete() {
            return Err(None);
        }
        let control = self.control.clone();
        let graph = self.graph_of(system, levels, unfolding);
        graph.map(|graph| contents(&graph)).map_err(|error| control.stop_without_memory().is_none().then_some(error))
    }

    /// The graph of a complete run, for questions that are asked at once.
    pub(crate) fn into_graph(self, system: &dyn System) -> Result<Graph, Unwritten> {
        self.graph_of(system, false, false)
    }

    fn graph_of(mut self, system: &dyn System, levels: bool, unfolding: bool) -> Result<Graph, Unwritten> {
        let recording = self.recording.take().ok_or_else(|| "the graph was given up".to_string())?;
        let table = |portable: &dyn deltamark_core::PortableActions| {
            (0..recording.actions()).map(|action| portable.carry(Action(action))).collect()
        };
        let actions = system.portable().and_then(|portable| portable.actions()).map(table);
        let initial = self.initial.take().unwrap_or_default();
        let about = About { initial, unfolding, levels, faulty: Some(self.faulty), model: self.model, actions };
        // The last pass needs no numbers of ids.
        self.numbers = Numbers::Same;
        Ok(recording.finish(about)?.0)
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
            self.give_up(error);
        }
    }

    /// Releases what was recorded, and ends the run if nothing else is wanted of it.
    fn give_up(&mut self, error: Unwritten) {
        self.error = Some(error);
        self.recording = None;
        self.numbers = Numbers::Same;
        if self.needed {
            self.control.cancel.cancel();
        }
    }

    fn write_down(&mut self, number: u64, edges: &[Edge]) -> Result<(), Unwritten> {
        let Some(recording) = &mut self.recording else { return Ok(()) };
        recording.record(number, edges).map_err(|why| Unwritten { why, room: recording.is_refused() })
    }

    fn take(
        &mut self,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
        mut more: impl FnMut(usize, &mut Vec<Edge>, u64),
    ) -> Result<(), Unwritten> {
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
            let row = std::mem::take(&mut self.rows[index]);
            let written = self.write_down(number, &row);
            self.rows[index] = row;
            written?;
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
        if let Err(error) = self.write_down(number, edges) {
            self.give_up(error);
        }
        Ok(())
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
        if !outcome.complete() || self.failed() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::store::OverStore;
    use crate::run::{GraphTarget, Run};
    use deltamark_search::Search;

    /// Such runs lost their verdicts, and were said to be wrong input.
    #[test]
    fn a_graph_that_finds_no_room_leaves_the_run_as_it_is() {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/philosophers-5.pnml");
        let loaded = crate::load::load(model, None).expect("a model");
        let folder = std::env::temp_dir().join(format!("deltamark-no-room-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for store in ["plain", "tree", "compact"] {
            let (mut written, mut given_up) = (0, 0);
            for kibibytes in (16..2048).step_by(16) {
                let control = Control { budget: Arc::new(Budget::new(kibibytes << 10)), ..Control::new() };
                let path = folder.join("graph.dmg").to_string_lossy().into_owned();
                let graph = Some(GraphTarget { path, model: loaded.info.clone() });
                let run =
                    OverStore { graph, explore_all: true, ..OverStore::new(StoreSpec::named(store), Search::Bfs) };
                let label = format!("{store}, {kibibytes} KiB");
                let ran =
                    Box::new(run).make(&*loaded.system, &control).unwrap_or_else(|error| panic!("{label}: {error}"));
                let file = ran.graph.expect("it was asked for");
                match (ran.outcome.complete(), file.contents, file.unwritten) {
                    (true, Some(contents), None) => {
                        assert_eq!(contents.states, 243, "{label}");
                        written += 1;
                    }
                    (true, None, Some(unwritten)) => {
                        assert!(unwritten.room && unwritten.why.contains("leaves no room"), "{label}: {unwritten:?}");
                        assert_eq!(ran.outcome.statistics.states, 243, "{label}");
                        given_up += 1;
                    }
                    // The store was the first to find no room.
                    (false, None, _) => {}
                    other => panic!("{label}: {other:?}"),
                }
            }
            assert!(written > 10 && given_up > 10, "{store}: {written} written, {given_up} given up");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
}
