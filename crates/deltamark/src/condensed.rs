//! Condensed graphs: written beside a run, and used instead of one.
//!
//! In: the edges of a run; later a file `.dmg` and the model it names. Out: the file; and from it the same answers,
//! figures and drawings as from a run, without exploring again. What stays true: a graph is written when a run is
//! complete, and otherwise not at all; it is walked with the very text it was made from, or with none.

mod confirm;

use crate::check::{CheckError, control};
use crate::load::{Format, LARGEST_FILE, LoadError, LoadOptions, Loaded, ModelInfo, load_same};
use crate::memory;
use crate::report::{Answer, GraphContents, GraphFile, Report};
use crate::stats::Surveyor;
use crate::story::Story;
use deltamark_core::{
    Action, Batch, Block, Budget, Bytes, Cancel, Control, Edge, Guarantee, Insert, Limits, Listener, Predicate,
    Property, Recorder, Scratch, StateId, Statistics, Stop, Store, System, Trace, Verdict, Widen,
};
use deltamark_graph::block::{STATES, Unpacked};
use deltamark_graph::walk::Ended;
use deltamark_graph::{About, BitSet, FileError, Graph, ModelId, Recording, Visitor, Walk, WalkError, Way, levels};
use deltamark_search::{Observer, Search};
use deltamark_store::StoreSpec;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Writes down the edges of a run.
pub(crate) struct EdgeLog {
    recording: Recording,
    numbers: Numbers,
    model: ModelId,
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
    Met { pages: Vec<Option<Box<[u64]>>>, next: u64, budget: Arc<deltamark_core::Budget>, granted: u64 },
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
    /// blocks with ids of a store needs [`over`](Self::over).
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

    /// Takes ids of this store for numbers, or numbers them. Refuses stores that do not tell which state is which.
    pub(crate) fn over(&mut self, spec: &StoreSpec, store: &dyn Store, control: &Control) -> Result<(), String> {
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

    /// The numbers of the initial states, whose ids the store tells. Asked for while the store is there.
    pub(crate) fn initial_in(&mut self, system: &dyn System, store: &dyn Store) -> Option<Vec<u64>> {
        let mut batch = Batch::new(system.width());
        system.initial(&mut system.scratch(), &mut batch).ok()?;
        let mut scratch = store.scratch();
        let mut find = |index| store.find(&mut scratch, batch.target(index), batch.hash(index));
        (0..batch.len()).map(|index| self.numbers.of(find(index)?).ok()).collect()
    }

    /// Writes the file of a complete run; without one there is none. `initial` are the numbers of the system's initial states, in its
    /// order.
    pub(crate) fn finish(
        self,
        system: &dyn System,
        initial: Option<Vec<u64>>,
        levels: bool,
        unfolding: bool,
    ) -> Result<Option<GraphContents>, String> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let Some(initial) = initial else { return Ok(None) };
        let control = self.control.clone();
        match self.graph_of(system, initial, levels, unfolding) {
            Ok(graph) => Ok(Some(contents(&graph))),
            // The answers stand without the file.
            Err(_) if control.stop_without_memory().is_some() => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// The graph of a complete run, for questions that are asked at once.
    pub(crate) fn into_graph(self, system: &dyn System, initial: Vec<u64>) -> Result<Graph, String> {
        self.graph_of(system, initial, false, false)
    }

    fn graph_of(self, system: &dyn System, initial: Vec<u64>, levels: bool, unfolding: bool) -> Result<Graph, String> {
        let table = |portable: &dyn deltamark_core::Portable| {
            (0..self.recording.actions()).map(|action| portable.carry(Action(action))).collect()
        };
        let actions = system.portable().map(table);
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

impl Observer for EdgeLog {
    fn expanded(&mut self, _: &dyn System, _: &mut Scratch, block: &Block, batch: &Batch, answers: &[Insert]) {
        self.expanded_with(block, batch, answers, |_, _, _| {});
    }
}

/// Two who want to see the same.
pub(crate) struct Both<'a, 'b>(pub &'a mut Surveyor, pub &'b mut EdgeLog);

impl Observer for Both<'_, '_> {
    fn expanded(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
    ) {
        self.0.expanded(system, scratch, block, batch, answers);
        self.1.expanded(system, scratch, block, batch, answers);
    }

    fn expanded_last(&mut self, system: &dyn System, scratch: &mut Scratch, block: &Block, batch: &Batch) {
        self.0.expanded_last(system, scratch, block, batch);
    }
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

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CondensedError {
    /// Something is wrong with the file.
    File {
        /// Its path.
        path: String,
        /// What is wrong.
        error: FileError,
    },
    /// Its model cannot be loaded.
    Model(LoadError),
    /// It belongs to another text.
    Changed {
        /// The path of the graph.
        path: String,
        /// The path of the model.
        model: String,
    },
    /// The file says that its model is a shared library, which is code, and nobody asked to run that.
    Code {
        /// The path of the graph.
        path: String,
        /// The path of the library, as the file has it.
        model: String,
    },
    /// The model is not where the file says.
    Gone {
        /// The path of the graph.
        path: String,
        /// The path of the model, as the file has it.
        model: String,
    },
    /// The model cannot be run as the graph has it.
    Misfit(String),
}

impl fmt::Display for CondensedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CondensedError::File { path, error: FileError::Unreadable(reason) } => {
                write!(f, "cannot read `{path}`: {reason}")
            }
            CondensedError::File { path, error } => write!(f, "`{path}` cannot be used: {error}"),
            CondensedError::Model(error) => error.fmt(f),
            CondensedError::Changed { path, model } => {
                write!(f, "`{path}` belongs to another text than `{model}` holds now")
            }
            CondensedError::Code { path, model } => {
                write!(f, "the model of `{path}` is a shared library, `{model}`, which is code that would be run")
            }
            CondensedError::Gone { path, model } => write!(f, "`{model}`, the model of `{path}`, is not there"),
            CondensedError::Misfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for CondensedError {}

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

/// Whether a file begins as a graph does.
pub fn is_graph(path: &Path) -> bool {
    let mut start = [0; deltamark_graph::meta::MAGIC.len()];
    // What is no regular file gives its bytes once.
    let file = std::fs::File::open(path).ok().filter(|_| path.is_file());
    file.is_some_and(|mut file| io::Read::read_exact(&mut file, &mut start).is_ok())
        && start == deltamark_graph::meta::MAGIC
}

/// What the user says about a graph, beside its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Where its model is now; nothing, if it is beside the graph or where it was.
    pub model: Option<String>,
    /// The format of its model, which the file has as well; code is loaded only if it is named here.
    pub format: Option<String>,
    /// The most bytes of the model that are read, and the most memory for the numbers of states.
    pub limit: Option<u64>,
}

impl Condensed {
    /// Opens a file, and loads the model that it names: from the file's own folder, or from where it was; or from where
    /// the user says it is.
    ///
    /// A file is the word of whoever wrote it. So its numbers are compared with its edges; of the model nothing is parsed,
    /// and no library loaded, before the text is known to be the one; and a library is loaded only if the user names the format.
    pub fn open(path: &str, asked: &OpenOptions) -> Result<Self, CondensedError> {
        Self::open_under(path, asked, &Control::new())
    }

    /// The same, as far as `control` lets it.
    pub fn open_under(path: &str, asked: &OpenOptions, control: &Control) -> Result<Self, CondensedError> {
        let limit = asked.limit.unwrap_or(LARGEST_FILE);
        let wrong = |error| CondensedError::File { path: path.into(), error };
        let misfit = |what: String| CondensedError::Misfit(format!("`{path}` cannot be used: {what}"));
        let graph = Graph::open(Path::new(path), control).map_err(wrong)?;
        let within = Control { budget: Arc::new(Budget::new(limit)), ..control.clone() };
        graph.audit(&within).map_err(wrong)?;
        let id = &graph.meta().model;
        let Some(format) = Format::by_name(&id.format).filter(|format| format.name == id.format) else {
            return Err(misfit(format!("its model is in a format `{}`, which this program does not know", id.format)));
        };
        match asked.format.as_deref() {
            Some(given) if Format::by_name(given).map(|format| format.name) != Some(format.name) => {
                return Err(misfit(format!("its model is in the format `{}`, not `{given}`", format.name)));
            }
            None if format.is_code() => {
                return Err(CondensedError::Code { path: path.into(), model: id.path.clone() });
            }
            _ => {}
        }
        let options = LoadOptions { format: Some(format.name.into()), limit, ..LoadOptions::default() };
        let options = options
            .with_words(&id.options)
            .ok_or_else(|| misfit("it was made with options that this program does not know".into()))?;
        let model = match &asked.model {
            Some(given) => given.clone(),
            None if id.path == "-" => {
                return Err(CondensedError::Misfit(format!(
                    "the model of `{path}` came from standard input; `--model FILE` tells where it is now"
                )));
            }
            None => found_model(path, &id.path)
                .ok_or_else(|| CondensedError::Gone { path: path.into(), model: id.path.clone() })?,
        };
        let loaded = load_same(&model, &options, (id.length, id.hash), control).map_err(|error| match error {
            LoadError::Changed { path: model } => CondensedError::Changed { path: path.into(), model },
            LoadError::Unreadable { .. } | LoadError::TooBig { .. } | LoadError::Stopped { .. } => {
                CondensedError::Model(error)
            }
            error => {
                let told = error.to_string();
                let words: String = id.options.iter().map(|(name, value)| format!(" --{name} {value}")).collect();
                misfit(format!(
                    "its model cannot be loaded as it says, by `--format {}{words}`: {}",
                    format.name,
                    told.lines().next().unwrap_or_default()
                ))
            }
        })?;
        let actions = match (loaded.system.portable(), graph.actions().map_err(wrong)?) {
            (Some(portable), Some(table)) => {
                let actions = table.iter().map(|bytes| portable.receive(bytes)).collect::<Option<Vec<Action>>>();
                Some(actions.ok_or_else(|| misfit("it has actions that the model does not know".into()))?)
            }
            (None, None) => None,
            _ => return Err(misfit("it was made by a version of this program that runs its model differently".into())),
        };
        Ok(Condensed { graph, model: loaded, path: path.into(), actions })
    }

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

    fn broken(&self, error: FileError) -> CheckError {
        self.wrong(&WalkError::File(error))
    }
}

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
    /// The states that can be reached from every state; nothing where an unfolding does not tell, because several of its
    /// components may stand for one.
    pub home_states: Option<u64>,
    /// Whether all initial states are among them.
    pub initial_is_home: Option<bool>,
    /// Whether the graph is an unfolding of the real one, in which a component may stand for a part of one.
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

/// Where the model of a graph is: beside it, or where it was. What is no regular file (a pipe, a device) is not opened.
fn found_model(graph: &str, model: &str) -> Option<String> {
    let folder = Path::new(graph).parent().unwrap_or(Path::new(""));
    let name = Path::new(model).file_name().map(PathBuf::from).unwrap_or_default();
    let candidates = [folder.join(model), PathBuf::from(model), folder.join(name)];
    candidates.iter().find(|path| path.is_file()).map(|path| path.display().to_string())
}

/// Questions to a graph.
pub(crate) struct Walked<'a, 'p> {
    pub graph: &'a Condensed,
    pub way: Way,
    pub properties: &'p [Property],
    pub limits: Limits,
    pub cancel: Cancel,
    pub listener: Arc<dyn Listener>,
    pub since: Instant,
}

/// What was found about a property: states, by their numbers.
struct Found {
    /// Where it is decided: an invariant is false, a goal is true, a state is dead, a step is wrong.
    states: BitSet,
    /// Where it has no value; for faults, where the state itself is wrong.
    others: BitSet,
    any: bool,
    any_other: bool,
}

/// Asks all properties in the states of a walk.
struct Asker<'a, 's> {
    system: &'a dyn System,
    properties: &'a [Property],
    found: Vec<Found>,
    surveyor: Option<&'s mut Surveyor>,
    /// Whether states without edges may be such because of faults.
    may_fault: bool,
    /// Whether the first that is found is as good as any.
    in_order: bool,
    deadlocks: u64,
    /// Blocks are shown in any order, perhaps twice; dead states are counted once.
    batch: Batch,
    dead: BitSet,
}

impl Asker<'_, '_> {
    /// The states of the block in which something is wrong: in the state itself, and in a step.
    fn faults(&mut self, scratch: &mut Scratch, block: &Block) -> Result<(u64, u64), Widen> {
        self.batch.reset(self.system.width());
        self.system.expand(scratch, block, &mut self.batch)?;
        let mask = |step: bool| {
            let faults = self.batch.faults().iter().filter(|fault| fault.action.is_some() == step);
            faults.fold(0u64, |mask, fault| mask | 1 << fault.source)
        };
        Ok((mask(false), mask(true)))
    }
}

/// The states of a block for which a bit is set, into a set.
fn note(set: &mut BitSet, any: &mut bool, block: &Block, mask: u64) {
    let mut rest = mask;
    while rest != 0 {
        set.insert(block.id(rest.trailing_zeros() as usize).get());
        rest &= rest - 1;
    }
    *any |= mask != 0;
}

impl Visitor for Asker<'_, '_> {
    fn visit(&mut self, scratch: &mut Scratch, block: &Block, ends: u64) -> Result<bool, Widen> {
        use deltamark_core::Goal;
        let asks_faults = self.properties.iter().any(|property| matches!(property.goal, Goal::FaultFree));
        let (in_state, in_step) =
            if self.may_fault && (asks_faults || ends != 0) { self.faults(scratch, block)? } else { (0, 0) };
        let dead = ends & !(in_state | in_step);
        let mut any = false;
        note(&mut self.dead, &mut any, block, dead);
        for (property, found) in self.properties.iter().zip(&mut self.found) {
            if self.in_order && found.any {
                continue;
            }
            match &property.goal {
                Goal::DeadlockFree => note(&mut found.states, &mut found.any, block, dead),
                Goal::FaultFree => {
                    note(&mut found.states, &mut found.any, block, in_step);
                    note(&mut found.others, &mut found.any_other, block, in_state);
                }
                Goal::Invariant(predicate) | Goal::Reachable(predicate) => {
                    let wanted = matches!(property.goal, Goal::Reachable(_));
                    let (truths, undefined) = evaluate(&**predicate, self.system, scratch, block, dead);
                    let decided = if wanted { truths } else { block.mask() & !truths & !undefined };
                    note(&mut found.states, &mut found.any, block, decided);
                    note(&mut found.others, &mut found.any_other, block, undefined);
                }
            }
        }
        if let Some(surveyor) = &mut self.surveyor {
            surveyor.look(self.system, scratch, block);
        }
        let settled = |(property, found): (&Property, &Found)| match property.goal {
            Goal::Reachable(_) => found.any,
            _ => found.any || found.any_other,
        };
        let answered = !self.properties.is_empty() && self.properties.iter().zip(&self.found).all(settled);
        Ok(!(self.in_order && answered && self.surveyor.is_none() && !self.may_fault))
    }
}

/// Where a predicate is true, and where it has no value.
fn evaluate(
    predicate: &dyn Predicate,
    system: &dyn System,
    scratch: &mut Scratch,
    block: &Block,
    dead: u64,
) -> (u64, u64) {
    if let Ok(mask) = predicate.evaluate(system, scratch, block, dead) {
        return (mask & block.mask(), 0);
    }
    let mut single = Block::new(system.width());
    let (mut truths, mut undefined) = (0, 0);
    for (index, state) in block.states().iter().enumerate() {
        single.reset(system.width());
        single.push(block.id(index), state);
        match predicate.evaluate(system, scratch, &single, dead >> index & 1) {
            Ok(mask) => truths |= (mask & 1) << index,
            Err(_) => undefined |= 1 << index,
        }
    }
    (truths, undefined)
}

impl Walked<'_, '_> {
    /// Makes the walk and reports.
    pub(crate) fn report(self, surveyor: Option<&mut Surveyor>) -> Result<Report, CheckError> {
        let Walked { graph: condensed, way, properties, .. } = self;
        let (graph, system) = (&condensed.graph, condensed.model.system.as_ref());
        let (control, memory_limit) = control(self.limits, self.cancel, self.listener, self.since)?;
        let started = Instant::now();
        let meta = graph.meta();
        let may_fault = condensed.model.info.can_fault != Some(false) && meta.faulty != Some(0);
        let no_room = || condensed.broken(Stop::Memory.into());
        let set = || BitSet::new(graph.states(), &control.budget).ok_or_else(no_room);
        let mut found = Vec::new();
        for _ in properties {
            found.push(Found { states: set()?, others: set()?, any: false, any_other: false });
        }
        let surveyed = surveyor.is_some();
        let mut asker = Asker {
            system,
            properties,
            found,
            surveyor,
            may_fault,
            in_order: meta.levels && way != Way::Depth,
            deadlocks: 0,
            batch: Batch::new(system.width()),
            dead: set()?,
        };
        let needs_states = surveyed
            || may_fault
            || properties.iter().any(|property| {
                matches!(property.goal, deltamark_core::Goal::Invariant(_) | deltamark_core::Goal::Reachable(_))
            });
        let mut walk = condensed.walk(&control)?;
        let ended = if needs_states {
            walk.run(way, &mut asker).map_err(|error| condensed.wrong(&error))?
        } else {
            scan(condensed, &mut asker, &control)?
        };
        let mut stopped_by = match ended {
            Ended::Whole | Ended::Enough => None,
            Ended::Stopped(stop) => Some(stop),
        };
        if let Some(surveyor) = &mut asker.surveyor {
            let mut unpacked = Unpacked::default();
            for block in 0..graph.blocks() {
                if let Some(stop) = control.stop_without_memory() {
                    stopped_by.get_or_insert(stop);
                    break;
                }
                graph.unpack(block, &mut unpacked).map_err(|error| condensed.broken(error))?;
                unpacked.edges().iter().for_each(|(_, edge)| surveyor.happens(condensed.action(edge.action)));
            }
        }
        asker.deadlocks = if may_fault { asker.dead.count() } else { meta.ends };
        let (deadlocks, found) = (asker.deadlocks, asker.found);
        let mut answers = Vec::with_capacity(properties.len());
        for (property, found) in properties.iter().zip(found) {
            let mut verdict = verdict(condensed, property, found, stopped_by, &control)?;
            let misfit = |what: String| condensed.wrong(&WalkError::Misfit(what));
            if let Err(stop) = confirm::confirm(system, &property.goal, &verdict, &control).map_err(misfit)? {
                // What was not confirmed is the word of the file alone.
                stopped_by.get_or_insert(stop);
                verdict = Verdict::Unknown;
            }
            let story = verdict.trace().map(|trace| Story::tell_under(system, trace, &control)).transpose();
            let story = story.map_err(|error| misfit(error.to_string()))?;
            let untold = story.as_ref().and_then(|story| story.as_ref().err().copied());
            let story = story.and_then(Result::ok);
            let untraced = untold.or_else(|| {
                let goal = matches!(property.goal, deltamark_core::Goal::Reachable(_));
                let wants =
                    matches!((&verdict, goal), (Verdict::Violated(None, _), false) | (Verdict::Holds(None), true));
                wants.then(|| control.stop_without_memory().unwrap_or(Stop::Memory))
            });
            control.listener.event(&deltamark_core::Event::Answered(&property.name, verdict.word()));
            let (kind, name, text) = ((&property.goal).into(), property.name.clone(), property.text.clone());
            answers.push(Answer { kind, name, text, verdict, story, untraced });
        }
        let depth = match levels::depth(graph, &control) {
            // As of any run that ended early, it is the depth that is known.
            Err(FileError::Stopped(stop)) => {
                stopped_by.get_or_insert(stop);
                0
            }
            depth => depth.map_err(|error| condensed.broken(error))?,
        };
        let statistics = Statistics {
            states: meta.states,
            edges: meta.edges,
            left_out: 0,
            deadlocks,
            depth,
            expanded: meta.states,
            widenings: walk.widenings(),
            frontier_peak_bytes: walk.peak_bytes(),
            search_time: started.elapsed(),
        };
        Ok(Report {
            model: condensed.model.info.clone(),
            answers,
            stopped_by,
            stopped_while: None,
            statistics,
            store: StoreSpec::named("graph"),
            choice: None,
            guarantee: Guarantee::Exact,
            warning: None,
            store_bytes: Bytes::new().with("file", graph.bytes()),
            tables: system.tables(),
            search: Search::Bfs.into(),
            memory_limit,
            peak_resident: memory::peak(),
            total_time: self.since.elapsed(),
            growth: None,
            sweep: None,
            graph: Some(GraphFile { path: condensed.path.clone(), walked: true, contents: Some(condensed.contents()) }),
            notes: Vec::new(),
        })
    }
}

/// Finds states without edges, where nothing else is asked and nothing need be rebuilt.
fn scan(condensed: &Condensed, asker: &mut Asker<'_, '_>, control: &Control) -> Result<Ended, CheckError> {
    let graph = &condensed.graph;
    let mut unpacked = Unpacked::default();
    for block in 0..graph.blocks() {
        if let Err(stop) = control.ask() {
            return Ok(Ended::Stopped(stop));
        }
        graph.unpack(block, &mut unpacked).map_err(|error| condensed.broken(error))?;
        let count = (graph.states() - block * STATES as u64).min(STATES as u64);
        let all = if count == STATES as u64 { u64::MAX } else { (1 << count) - 1 };
        let dead = all & !unpacked.moved();
        asker.dead.insert_word(block, dead);
        for (property, found) in asker.properties.iter().zip(&mut asker.found) {
            if matches!(property.goal, deltamark_core::Goal::DeadlockFree) {
                found.states.insert_word(block, dead);
                found.any |= dead != 0;
            }
        }
    }
    Ok(Ended::Whole)
}

/// The answer to a property, of a walk that ended like this.
fn verdict(
    condensed: &Condensed,
    property: &Property,
    found: Found,
    stopped_by: Option<Stop>,
    control: &Control,
) -> Result<Verdict, CheckError> {
    use deltamark_core::Goal;
    let trace_to = |goals: &BitSet| -> Result<Option<Trace>, CheckError> {
        if control.stop_without_memory().is_some() {
            return Ok(None);
        }
        let path = match levels::path_to(&condensed.graph, goals, control) {
            Ok(path) => path,
            // The answer stands without a trace.
            Err(FileError::Stopped(_)) => return Ok(None),
            Err(error) => return Err(condensed.broken(error)),
        };
        let path = path.ok_or_else(|| condensed.broken(FileError::Damaged("a state cannot be reached".into())))?;
        let actions = path.actions.iter().map(|&action| condensed.action(action)).collect();
        Ok(Some(Trace { initial: path.initial, actions, ends_in_fault: false }))
    };
    let undecided = |otherwise: Verdict| if stopped_by.is_some() { Verdict::Unknown } else { otherwise };
    match &property.goal {
        Goal::Reachable(predicate) => {
            if found.any {
                return Ok(Verdict::Holds(trace_to(&found.states)?));
            }
            if found.any_other && stopped_by.is_none() {
                let trace = trace_to(&found.others)?;
                let message = no_value(condensed, &**predicate, trace.as_ref(), control);
                return Ok(Verdict::Violated(trace, message));
            }
            Ok(undecided(Verdict::Violated(None, None)))
        }
        Goal::Invariant(predicate) => {
            // A state without a value violates it too; the nearer of both kinds is shown.
            let bad = if found.any { trace_to(&found.states)? } else { None };
            let none = if found.any_other { trace_to(&found.others)? } else { None };
            let nearer = |trace: &Option<Trace>| trace.as_ref().map_or(usize::MAX, Trace::len);
            if found.any_other && (!found.any || nearer(&none) < nearer(&bad)) {
                let message = no_value(condensed, &**predicate, none.as_ref(), control);
                return Ok(Verdict::Violated(none, message));
            }
            Ok(if found.any { Verdict::Violated(bad, None) } else { undecided(Verdict::Holds(None)) })
        }
        Goal::DeadlockFree if found.any => Ok(Verdict::Violated(trace_to(&found.states)?, None)),
        Goal::FaultFree if found.any || found.any_other => {
            let step = if found.any { trace_to(&found.states)? } else { None };
            let state = if found.any_other { trace_to(&found.others)? } else { None };
            let nearer = |trace: &Option<Trace>| trace.as_ref().map_or(usize::MAX, Trace::len);
            // The step itself makes its trace one longer.
            let of_state = found.any_other && (!found.any || nearer(&state) <= nearer(&step));
            Ok(fault(condensed, if of_state { state } else { step }, of_state, control))
        }
        Goal::DeadlockFree | Goal::FaultFree => Ok(undecided(Verdict::Holds(None))),
    }
}

/// The last state of a trace, as a block; `None` also if the run must end before.
fn last_state(system: &dyn System, trace: &Trace, control: &Control) -> Option<Block> {
    let mut last = Vec::new();
    let seen = trace.follow(system, |_, state| {
        control.ask()?;
        last.clear();
        last.extend_from_slice(state);
        Ok(())
    });
    seen.ok()?.ok()?;
    let mut block = Block::new(system.width());
    block.push(StateId::new(0), &last);
    Some(block)
}

/// Why a predicate has no value at the end of a trace.
fn no_value(
    condensed: &Condensed,
    predicate: &dyn Predicate,
    trace: Option<&Trace>,
    control: &Control,
) -> Option<String> {
    let system = condensed.model.system.as_ref();
    let told = trace.and_then(|trace| last_state(system, trace, control)).and_then(|block| {
        predicate.evaluate(system, &mut system.scratch(), &block, 0).err().map(|undefined| undefined.message)
    });
    Some(match told {
        Some(why) => format!("the property has no value here: {why}"),
        None => "the property has no value in some state".into(),
    })
}

/// The verdict on a fault at the end of a trace.
fn fault(condensed: &Condensed, trace: Option<Trace>, of_state: bool, control: &Control) -> Verdict {
    let system = condensed.model.system.as_ref();
    let Some(mut trace) = trace else { return Verdict::Violated(None, Some("the model has a fault".into())) };
    let mut batch = Batch::new(system.width());
    loop {
        let Some(block) = last_state(system, &trace, control) else { return Verdict::Violated(Some(trace), None) };
        batch.reset(system.width());
        match system.expand(&mut system.scratch(), &block, &mut batch) {
            Ok(()) => break,
            Err(Widen) => drop(system.widen()),
        }
    }
    let found = batch.faults().iter().find(|fault| fault.action.is_none() == of_state);
    let message = found.map(|fault| fault.message.clone());
    if let Some(action) = found.and_then(|fault| fault.action) {
        trace.actions.push(action);
        trace.ends_in_fault = true;
    }
    Verdict::Violated(Some(trace), message)
}
