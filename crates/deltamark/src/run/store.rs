//! A run over a store.
//!
//! In: properties, a search, a store or the wish that one be chosen. Out: the outcome of the search.
//! What stays true: the outcome is that of one search, from its beginning to its end, over one store;
//! whoever watches has seen that search and no other.

use super::{GraphTarget, Ran, Run, Watcher, Watchers, growth};
use crate::auto::{self, StoreChoice, StoreQuestion};
use crate::check::{CheckError, threads, traffic};
use crate::checkpoint::{CheckpointError, Checkpoints};
use crate::load::ModelInfo;
use deltamark_core::{Control, Outcome, Property, Stop, System};
use deltamark_search::{Keeping, Observer, Probing, Search, Task, Threads, Unresumed};
use deltamark_store::StoreSpec;
use std::sync::Arc;

/// The store whose ids number states in the order in which they are found.
pub(crate) const NUMBERING: &str = "plain";

/// Why it is taken where the store is to be chosen and checkpoints are kept.
const CHOSEN_WITH_CHECKPOINTS: &str = "the memory lasts, so no other is needed";
/// The stores in which such a run goes on when memory is full, the first that takes the model.
const MORE_ROOM: [&str; 2] = ["compact", "tree"];

/// A search over a store.
pub(crate) struct OverStore<'r> {
    /// Shared: a run may be made several times.
    pub properties: Arc<[Property]>,
    pub store: StoreSpec,
    pub search: Search,
    /// The threads that the user asked for.
    pub threads: Option<usize>,
    /// Whether every candidate is tried where the store is to be chosen.
    pub explain: bool,
    /// Whether it goes on when every property has its answer.
    pub explore_all: bool,
    /// Whether a small part of it may look for errors that are deep.
    pub probes: bool,
    /// Whether it is a sample, of which nobody asks what grows where it ends.
    pub sample: bool,
    pub watchers: Vec<&'r mut dyn Watcher>,
    /// Where the graph goes.
    pub graph: Option<GraphTarget>,
    /// Why the ids of states must be numbers, if they must: where the store is to be chosen it is `plain`, which gives
    /// them.
    pub numbered: Option<&'static str>,
    /// Where checkpoints go, and the model they are of. Where the store is to be chosen it is `plain`.
    pub checkpoints: Option<(&'r mut Checkpoints, ModelInfo)>,
}

impl OverStore<'_> {
    /// A run that asks nothing.
    pub fn new(store: StoreSpec, search: Search) -> Self {
        OverStore {
            properties: Arc::new([]),
            store,
            search,
            threads: None,
            explain: false,
            explore_all: false,
            probes: false,
            sample: false,
            watchers: Vec::new(),
            graph: None,
            numbered: None,
            checkpoints: None,
        }
    }
}

impl Run for OverStore<'_> {
    fn make(mut self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        // What tables hold now, the process holds beside its budget.
        let _ = control.budget.tables(system.table_bytes());
        let mut log = self.graph.as_ref().map(|graph| graph.log(control)).transpose()?;
        let mut watchers: Vec<&mut dyn Watcher> = Vec::new();
        watchers.extend(self.watchers.iter_mut().map(|watcher| &mut **watcher as &mut dyn Watcher));
        watchers.extend(log.as_mut().map(|log| log as &mut dyn Watcher));
        let mut checkpoints = self.checkpoints.take();
        let numbered = self.numbered.or(checkpoints.as_ref().map(|_| CHOSEN_WITH_CHECKPOINTS));
        let numbered = numbered.filter(|_| self.store.is_auto());
        if numbered.is_some() {
            self.store = StoreSpec::named(NUMBERING);
        }
        let (search, asked) = (self.search, self.threads);
        let question = StoreQuestion { system, search, threads: asked, control, explain: self.explain };
        let ran = auto::run(&question, &self.store, |spec, control| {
            let threads = threads(asked, spec, search)?;
            let traffic = traffic(search, threads, control);
            let store =
                deltamark_store::build(spec, system, traffic, control.budget.clone()).map_err(CheckError::Store)?;
            if store.forgets() && watchers.iter().any(|watcher| watcher.sees_each_once()) {
                return Err(CheckError::Misfit {
                    message: "statistics and graphs need every state once, and this store forgets states".into(),
                    help: "leave out `forget`".into(),
                });
            }
            for watcher in &mut watchers {
                watcher.begin(system, spec, store.as_ref(), control)?;
            }
            let mut all = Watchers(&mut watchers);
            let task = Task {
                system,
                store: store.as_ref(),
                properties: &self.properties,
                control,
                explore_all: self.explore_all,
                // What nobody sees need not be shown: edges can be skipped then.
                observer: if all.0.is_empty() { None } else { Some(&mut all as &mut dyn Observer) },
            };
            if let Some((checkpoints, model)) = &mut checkpoints {
                checkpoints.keep_in(if numbered.is_some() { StoreSpec::default() } else { spec.clone() }.to_string());
                return kept(checkpoints, model, spec, threads, task);
            }
            let outcome = match self.probes {
                true => deltamark_search::run_probing(Probing::default(), threads, search, task),
                false => deltamark_search::run_on(threads, search, task),
            };
            watchers.iter_mut().for_each(|watcher| watcher.end(system, store.as_ref(), &outcome));
            Ok(outcome)
        });
        drop(watchers);
        let (outcome, choice) = match (&mut checkpoints, numbered) {
            (Some(kept), Some(_)) => self.moved(kept, ran, system, control)?,
            _ => ran?,
        };
        let by_number = |why: &str| StoreChoice { store: self.store.clone(), why: why.into(), trials: Vec::new() };
        let choice = choice.or_else(|| numbered.map(by_number));
        let graph = match (self.graph, log) {
            (Some(graph), Some(log)) => Some(graph.finish(log, system, search.is_shortest(), false)),
            _ => None,
        };
        Ok(Ran {
            growth: if self.sample { None } else { growth(system, outcome.stopped_by) },
            outcome,
            store: choice.as_ref().map_or(self.store, |choice| choice.store.clone()),
            choice,
            search: search.into(),
            sweep: None,
            reduction: None,
            graph,
            route: None,
        })
    }
}

impl OverStore<'_> {
    /// Goes on in a smaller store from the newest checkpoint, if there is one and memory was full in the first store, be it
    /// as that checkpoint was read. What that comes to takes the place of what the first one came to, unless there was
    /// no room to read it again.
    fn moved(
        &self,
        (checkpoints, model): &mut (&mut Checkpoints, ModelInfo),
        ran: Result<(Outcome, Option<StoreChoice>), CheckError>,
        system: &dyn System,
        control: &Control,
    ) -> Result<(Outcome, Option<StoreChoice>), CheckError> {
        let why = match &ran {
            Ok((outcome, _)) if outcome.stopped_by == Some(Stop::Memory) => {
                let full = outcome.statistics.states;
                format!("{NUMBERING} was full at {full} states, and the run went on from a checkpoint")
            }
            Err(CheckError::Stopped(Stop::Memory)) => {
                format!("{NUMBERING} has no room for what is in the checkpoint")
            }
            _ => return ran,
        };
        for spec in MORE_ROOM.map(StoreSpec::named) {
            let threads = threads(self.threads, &spec, self.search)?;
            let traffic = traffic(self.search, threads, control);
            let Ok(store) = deltamark_store::build(&spec, system, traffic, control.budget.clone()) else { continue };
            let (store, properties) = (store.as_ref(), &self.properties[..]);
            let task = Task { system, store, properties, control, explore_all: self.explore_all, observer: None };
            if !checkpoints.move_to(spec.to_string()) {
                return ran;
            }
            match kept(checkpoints, model, &spec, threads, task) {
                Ok(further) => return Ok((further, Some(StoreChoice { store: spec, why, trials: Vec::new() }))),
                Err(CheckError::Stopped(_)) => {
                    // With other limits the first store may do.
                    checkpoints.move_to(StoreSpec::default().to_string());
                    return ran;
                }
                Err(error) => return Err(error),
            }
        }
        ran
    }
}

/// A search that keeps checkpoints, or goes on from one.
fn kept(
    checkpoints: &mut Checkpoints,
    model: &ModelInfo,
    spec: &StoreSpec,
    threads: Threads,
    task: Task<'_>,
) -> Result<Outcome, CheckError> {
    if let Some(why) = Keeping::unfit(task.system, task.store) {
        let able: Vec<&str> = KEPT.to_vec();
        let instead = if checkpoints.resumed().is_some() { "--store" } else { "--checkpoint" };
        return Err(CheckError::Misfit {
            message: format!("the store `{spec}` cannot keep checkpoints of this run: {why}"),
            help: format!("choose one of {}, or leave `{instead}` out", able.join(", ")),
        });
    }
    checkpoints.begin(model, task.control).map_err(|error| match error {
        CheckpointError::Stopped(stop) => CheckError::Stopped(stop),
        CheckpointError::Unusable { message, help } => CheckError::Misfit { message, help },
    })?;
    let (mut image, from) = (checkpoints.image(), checkpoints.resumed().map(|resumed| resumed.from.clone()));
    let keeping = checkpoints.keeping(image.as_mut());
    deltamark_search::run_kept(keeping, threads, task).map_err(|error| match error {
        Unresumed::Stopped(stop) => CheckError::Stopped(stop),
        why => CheckError::Misfit {
            message: format!("the checkpoint `{}` cannot be used: {why}", from.unwrap_or_default()),
            help: "another `--store` may go on with it; `--older` goes on from the one before, if there is one".into(),
        },
    })
}

/// The stores that keep checkpoints.
const KEPT: &[&str] = &["plain", "collapse", "tree", "compact"];
