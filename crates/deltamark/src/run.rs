//! The kinds of runs.
//!
//! In: a system, and what steers the run. Out: a [`Ran`]: the outcome, and what the run was made
//! with. What stays true: a run answers its properties in the order in which it was given them, and
//! when it returns, its store is gone.
//!
//! ```text
//! fly      a formula of temporal logic in the product with its automaton
//! local    a formula of CTL, in the states that decide it
//! formulas a search that sees all states, and formulas of temporal logic on its graph
//! store    a search over a store, which the run may choose itself
//! reduced  the same, over a reduced system
//! quotient the same, over the quotient by a symmetry
//! sweep    by the sweep-line method, over a window
//! walk     along a condensed graph, instead of a search
//! ```
//!
//! `crate::soundness` has a run of its own, over `store`. A [`Plan`](crate::plan::Plan) is
//! made of one or several.

pub(crate) mod fly;
pub(crate) mod formulas;
pub(crate) mod local;
mod paced;
pub(crate) mod quotient;
pub(crate) mod reduced;
pub(crate) mod smaller;
pub(crate) mod store;
pub(crate) mod sweep;
pub(crate) mod walk;

use crate::auto::StoreChoice;
use crate::check::CheckError;
use crate::condensed::EdgeLog;
use crate::load::ModelInfo;
use crate::reduction::Reduction;
use crate::report::{GraphFile, Route};
use crate::stats::Surveyor;
use crate::sweep::SweepReport;
use deltamark_core::{Batch, Block, Control, Growth, Insert, Outcome, Scratch, Stop, Store, System};
use deltamark_search::{Observer, Strategy};
use deltamark_store::StoreSpec;

/// A run to be made.
pub(crate) trait Run {
    /// Makes the run.
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError>;
}

/// A run that was made.
pub(crate) struct Ran {
    pub outcome: Outcome,
    /// The store that was used.
    pub store: StoreSpec,
    /// Why that one, where the run was to choose.
    pub choice: Option<StoreChoice>,
    pub search: Strategy,
    /// What grows without end, or seems to.
    pub growth: Option<Growth>,
    pub sweep: Option<SweepReport>,
    /// What was left away, and why.
    pub reduction: Option<Reduction>,
    /// The file of the graph that was written or walked.
    pub graph: Option<GraphFile>,
    /// How formulas of temporal logic were answered, and why so.
    pub route: Option<Route>,
}

/// What grows without end in a run that ended for this reason. Only one that a limit or the user
/// ended raises the question whether it has an end at all.
pub(crate) fn growth(system: &dyn System, stopped_by: Option<Stop>) -> Option<Growth> {
    stopped_by.filter(|&stop| stop != Stop::Answered).and_then(|_| system.describe().growth())
}

/// Watches a run over a store: sees its blocks, and the store before and after.
pub(crate) trait Watcher: Observer {
    /// A run begins over this store. What was seen before is void: a run that chooses its store may
    /// begin several times.
    fn begin(
        &mut self,
        system: &dyn System,
        spec: &StoreSpec,
        store: &dyn Store,
        control: &Control,
    ) -> Result<(), CheckError>;

    /// Whether it needs to see each state once, and not more often.
    fn sees_each_once(&self) -> bool {
        true
    }

    /// The run has ended; the store is still there.
    fn end(&mut self, _system: &dyn System, _store: &dyn Store, _outcome: &Outcome) {}
}

/// All that watch a run.
struct Watchers<'w, 'r>(&'w mut [&'r mut dyn Watcher]);

impl Observer for Watchers<'_, '_> {
    fn expanded(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
    ) {
        self.0.iter_mut().for_each(|watcher| watcher.expanded(system, scratch, block, batch, answers));
    }

    fn expanded_last(&mut self, system: &dyn System, scratch: &mut Scratch, block: &Block, batch: &Batch) {
        self.0.iter_mut().for_each(|watcher| watcher.expanded_last(system, scratch, block, batch));
    }
}

impl Watcher for Surveyor {
    fn begin(&mut self, system: &dyn System, _: &StoreSpec, _: &dyn Store, _: &Control) -> Result<(), CheckError> {
        self.restart(system);
        Ok(())
    }
}

/// The file that the graph of a run goes to.
pub(crate) struct GraphTarget {
    pub path: String,
    /// The model that the file names.
    pub model: ModelInfo,
}

impl GraphTarget {
    fn log(&self, control: &Control) -> Result<EdgeLog, CheckError> {
        EdgeLog::new(&self.path, &self.model, control).map_err(CheckError::Graph)
    }

    /// Writes the file, if the run came to its end. The answers are valid without it.
    fn finish(self, log: EdgeLog, system: &dyn System, levels: bool, unfolding: bool) -> GraphFile {
        let (contents, unwritten) = match log.finish(system, levels, unfolding) {
            Ok(contents) => (Some(contents), None),
            Err(unwritten) => (None, unwritten),
        };
        GraphFile { path: self.path, walked: false, contents, unwritten }
    }
}
