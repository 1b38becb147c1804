//! What is asked and how to look for the answer, turned into a plan of runs.
//!
//! In: a system, properties, the choice of store and search, limits. Out: a
//! [`Report`]. What stays true: this file and its neighbours are the only place that
//! names language, store and search together; the process's memory limit is always
//! set, by the user or from what the machine has. The kinds of runs are in `run`, how
//! they become one report in `plan.rs`.

use crate::condensed::Condensed;
use crate::control::{OnProgress, control};
use crate::ends::{Ends, FinalStates};
use crate::load::{Loaded, ModelInfo, Source};
use crate::memory::AddressSpace;
use crate::plan::{Plan, Setting};
use crate::reduction::Reduce;
use crate::report::{PropertyKind, Report};
use crate::run::reduced::Reduced;
use crate::run::store::OverStore;
use crate::run::sweep::{self, BySweep};
use crate::run::walk::AlongGraph;
use crate::run::{GraphTarget, Watcher};
use crate::stats::{Stats, Surveyor};
use deltamark_core::{
    Cancel, Control, Diagnostic, Goal, Limits, Listener, Measure, Observe, Property, Recorder, ReplayError, Silent,
    Snapshot, Stop, System, Verdict,
};
use deltamark_graph::Way;
use deltamark_search::{Observer, SAMPLERS, Search, Strategy, Threads};
use deltamark_store::{CATALOGUE, SpecError, StoreInfo, StoreSpec, Traffic};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// A run to be made: what is asked, and how to look for the answer.
///
/// Without a property, a run looks for deadlocks and for faults of the model.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use deltamark::{Check, Overall, Search, load};
///
/// let model = load("../../models/mutex.net", None)?;
/// let report = Check::loaded(&model)
///     .deadlock_free()
///     .invariant("critical_1 + critical_2 <= 1")?
///     .store("compact".parse()?)
///     .search(Search::Bfs)
///     .run()?;
/// assert_eq!(report.overall(), Overall::Hold);
///
/// // Text that is wrong is reported with its place.
/// let wrong = Check::loaded(&model).invariant("critical_3 = 0").err().expect("there is no such place");
/// println!("{wrong}");
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Check<'a> {
    pub(crate) system: &'a dyn System,
    pub(crate) info: ModelInfo,
    pub(crate) properties: Vec<Property>,
    pub(crate) store: StoreSpec,
    /// The order over a store, if it is not a sweep.
    pub(crate) search: Search,
    pub(crate) sweeps: bool,
    pub(crate) threads: Option<usize>,
    pub(crate) limits: Limits,
    pub(crate) cancel: Cancel,
    pub(crate) listener: Arc<dyn Listener>,
    explore_all: bool,
    pub(crate) explain: bool,
    reduce: Reduce,
    pub(crate) since: Instant,
    /// Where the graph goes.
    pub(crate) graph: Option<String>,
    /// The graph that takes the place of a search.
    pub(crate) walked: Option<(&'a Condensed, Way)>,
    measure: Option<Box<dyn Measure>>,
    recorder: Option<&'a mut dyn Recorder>,
    /// Where a run may end.
    pub(crate) finals: Vec<FinalStates>,
}

/// Why a run could not be made, or its result not be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    /// The store cannot be made.
    Store(SpecError),
    /// What was chosen does not run with several threads.
    Threads(String),
    /// What was chosen does not go with a sweep, or a sweep not with the model.
    Sweep {
        /// Why.
        message: String,
        /// What to do; empty, if there is nothing.
        help: String,
    },
    /// The memory limit is below what the process holds before the search begins.
    MemoryTooSmall {
        /// The limit.
        limit: u64,
        /// What the process holds.
        held: u64,
        /// The smallest limit that leaves room to search.
        least: u64,
    },
    /// What was asked does not go with the model, or with what else was asked.
    Misfit {
        /// Why.
        message: String,
        /// What to do.
        help: String,
    },
    /// The process may map so little memory more that not even the smallest tables fit.
    AddressSpaceTooSmall {
        /// The limit.
        limit: u64,
        /// What is mapped.
        mapped: u64,
    },
    /// A property is wrong.
    Property {
        /// Its text.
        source: Source,
        /// What is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The graph cannot be written or walked: a sentence.
    Graph(String),
    /// The memory limit has no room for what a walk over the graph needs: a sentence.
    GraphTooLarge(String),
    /// The run had to end before there was anything to report.
    Stopped(Stop),
    /// A trace could not be replayed: a bug of Deltamark or of the system.
    Replay {
        /// The property it belongs to.
        property: String,
        /// What went wrong.
        error: ReplayError,
    },
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::Store(error) => error.fmt(f),
            CheckError::Threads(message)
            | CheckError::Graph(message)
            | CheckError::GraphTooLarge(message)
            | CheckError::Sweep { message, .. }
            | CheckError::Misfit { message, .. } => f.write_str(message),
            CheckError::MemoryTooSmall { limit, held, least } => write!(
                f,
                "a memory limit of {limit} bytes leaves no room to search: the process holds {held} bytes \
                 with the model loaded; at least {least} bytes are needed"
            ),
            CheckError::AddressSpaceTooSmall { limit, mapped } => write!(
                f,
                "the address space of this process is limited to {limit} bytes, of which {mapped} are in use \
                 with the model loaded: that leaves no room to search"
            ),
            CheckError::Property { source, diagnostics } => {
                for (index, diagnostic) in diagnostics.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{}: {}", source.name, diagnostic.message)?;
                }
                Ok(())
            }
            CheckError::Stopped(stop) => f.write_str(match stop {
                Stop::Memory => "the memory limit was reached",
                Stop::Time => "the time limit was reached",
                _ => "the run was ended",
            }),
            CheckError::Replay { property, error } => {
                write!(f, "the trace of `{property}` does not replay ({error}), so its answer is not to be trusted")
            }
        }
    }
}

impl std::error::Error for CheckError {}

impl<'a> Check<'a> {
    /// A run of a system that is Rust code.
    pub fn new(system: &'a dyn System) -> Self {
        Check {
            system,
            info: ModelInfo::code(),
            properties: Vec::new(),
            store: StoreSpec::default(),
            search: Search::default(),
            sweeps: false,
            threads: None,
            limits: Limits::default(),
            cancel: Cancel::new(),
            listener: Arc::new(Silent),
            explore_all: false,
            explain: false,
            reduce: Reduce::Off,
            since: Instant::now(),
            graph: None,
            walked: None,
            measure: None,
            recorder: None,
            finals: Vec::new(),
        }
    }

    /// A run along a graph that was written before, instead of a search.
    pub fn along(graph: &'a Condensed, way: Way) -> Self {
        Check { walked: Some((graph, way)), ..Check::loaded(&graph.model) }
    }

    /// A run of a model that was loaded.
    pub fn loaded(model: &'a Loaded) -> Self {
        Check { info: model.info.clone(), ..Check::new(model.system.as_ref()) }
    }

    /// What is known of the model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Asks for this property too.
    pub fn property(mut self, property: Property) -> Self {
        self.properties.push(property);
        self
    }

    /// How many properties were asked for so far.
    pub fn property_count(&self) -> usize {
        self.properties.len()
    }

    /// Asks whether every reachable state has a successor.
    pub fn deadlock_free(self) -> Self {
        self.property(Property::deadlock_free())
    }

    /// Asks whether an expression is true in every reachable state.
    pub fn invariant(self, text: &str) -> Result<Self, CheckError> {
        self.expression("--invariant", text, |observe| deltamark_logic::invariant(None, text, observe))
    }

    /// Asks whether an expression is true in every reachable state, and calls that by a name.
    pub fn named_invariant(self, name: &str, text: &str) -> Result<Self, CheckError> {
        self.expression(name, text, |observe| deltamark_logic::invariant(Some(name.into()), text, observe))
    }

    /// Asks whether an expression is true in some reachable state.
    pub fn reachable(self, text: &str) -> Result<Self, CheckError> {
        self.expression("--reach", text, |observe| deltamark_logic::reachable(None, text, observe))
    }

    /// Says that a run may end where this expression is true: a deadlock there does not violate deadlock freedom. Several say so each. The
    /// model's own [final markings](ModelInfo::final_markings) count too.
    pub fn ends_in(mut self, text: &str) -> Result<Self, CheckError> {
        let predicate = Box::new(compiled("--final", text, self.system)?);
        self.finals.push(FinalStates { text: text.into(), predicate });
        Ok(self)
    }

    /// Asks for all properties of a text; `name` is how errors call it.
    pub fn properties(self, name: &str, text: &str) -> Result<Self, CheckError> {
        self.properties_under(name, text, &Control::new())
    }

    /// The same, as far as `control` lets it.
    pub fn properties_under(self, name: &str, text: &str, control: &Control) -> Result<Self, CheckError> {
        let parse = |observe: &dyn Observe| deltamark_logic::parse_file_under(text, observe, control);
        let found = parsed(name, text, self.system, parse).map_err(|error| match &error {
            CheckError::Property { diagnostics, .. } => {
                diagnostics.iter().find_map(|one| one.stop).map_or(error, CheckError::Stopped)
            }
            _ => error,
        })?;
        Ok(found.into_iter().fold(self, Check::property))
    }

    /// Asks for all properties of a text in Helena's language, in which temporal formulas are
    /// refused; `name` is how errors call it.
    pub fn helena_properties(self, name: &str, text: &str) -> Result<Self, CheckError> {
        let places = self.system.observe().map_or_else(Vec::new, |observe| observe.names());
        let source = || Source { name: name.into(), text: text.into() };
        let found = deltamark_coloured::lna::property_texts(text.as_bytes(), &self.info.propositions, &places)
            .map_err(|diagnostics| CheckError::Property { source: source(), diagnostics })?;
        found.iter().try_fold(self, |check, (name, text)| check.named_invariant(name, text))
    }

    fn expression(
        self,
        name: &str,
        text: &str,
        parse: impl FnOnce(&dyn Observe) -> Result<Property, Vec<Diagnostic>>,
    ) -> Result<Self, CheckError> {
        let property = parsed(name, text, self.system, parse)?;
        Ok(self.property(property))
    }

    /// Keeps visited states in this store. Without it, or with [`StoreSpec::default`], the run chooses one.
    pub fn store(mut self, store: StoreSpec) -> Self {
        self.store = store;
        self
    }

    /// Has every candidate tried when the run chooses its store, whether that is needed or not.
    pub fn explain(mut self, explain: bool) -> Self {
        self.explain = explain;
        self
    }

    /// Lets the run leave states away that its properties do not need. Verdicts stay the same, and so do the lengths of shortest
    /// traces; counts are then those of the reduced system, and the [report](Report::reduction) says so. A run that is to explore
    /// all, or to write a graph, is never reduced.
    pub fn reduce(mut self, reduce: Reduce) -> Self {
        self.reduce = reduce;
        self
    }

    /// Visits states in this order.
    pub fn search(mut self, strategy: impl Into<Strategy>) -> Self {
        match strategy.into() {
            Strategy::Over(search) => (self.search, self.sweeps) = (search, false),
            Strategy::Sweep => self.sweeps = true,
        }
        self
    }

    fn strategy(&self) -> Strategy {
        if self.sweeps { Strategy::Sweep } else { self.search.into() }
    }

    /// Sweeps by this measure: a number, or several in parentheses, of which the first counts most. `name` is how errors
    /// call it. Without it a sweep looks for a measure of its own.
    pub fn progress(mut self, name: &str, text: &str) -> Result<Self, CheckError> {
        self.measure = Some(crate::sweep::given(self.system, name, text)?);
        Ok(self)
    }

    /// Has the graph of a sweep taken down.
    pub fn recorder(mut self, recorder: &'a mut dyn Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Searches with this number of threads. Without this, with as many as the machine runs at once,
    /// where store and search allow it, and with one elsewhere.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// How many threads will search, and why they are not more, if store, search or the address space are the reason.
    pub fn thread_count(&self) -> (usize, Option<String>) {
        thread_count(self.threads, &self.store, self.strategy())
    }

    /// Gives up at these limits. The time counts from [`since`](Self::since), and covers all that is done. Where no memory limit is given, it is what the process
    /// holds plus nine tenths of what the machine and the container have available.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Stops when this flag is set.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sends this listener the events of the run: progress, answers, changes of the layout.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Calls this function several times a second with the progress of the run: a
    /// [`listener`](Self::listener) for progress alone, which it replaces.
    pub fn on_progress(self, show: impl Fn(&Snapshot) + Send + Sync + 'static) -> Self {
        self.listener(Arc::new(OnProgress(show)))
    }

    /// Goes on when every property has its answer.
    pub fn explore_all(mut self, explore_all: bool) -> Self {
        self.explore_all = explore_all;
        self
    }

    /// Writes the graph of all reachable states to this file, if the run comes to its end. All of them are explored then,
    /// whatever is answered on the way.
    pub fn graph(mut self, path: impl Into<String>) -> Self {
        self.graph = Some(path.into());
        self.explore_all = true;
        self
    }

    /// Counts the total time, and the time that [`limits`](Self::limits) allow, from this moment, usually one before the model
    /// was loaded. Without this it is when the check was made.
    pub fn since(mut self, since: Instant) -> Self {
        self.since = since;
        self
    }

    /// Makes the run.
    pub fn run(mut self) -> Result<Report, CheckError> {
        let by_default = self.properties.is_empty();
        if by_default {
            // Who asks nothing asks for deadlocks and faults, and what the model itself brings.
            self.properties.push(Property::deadlock_free());
            if self.info.can_fault != Some(false) {
                self.properties.push(Property::fault_free());
            }
            for (name, text) in self.info.properties.clone() {
                self = self.named_invariant(&name, &text)?;
            }
        }
        // Nobody asked about faults of a model that may not know any.
        let hide_faults = by_default && self.info.can_fault.is_none();
        let mut report = self.make(None)?;
        if hide_faults && report.answers.len() == 2 && !matches!(report.answers[1].verdict, Verdict::Violated(..)) {
            report.answers.pop();
        }
        Ok(report)
    }

    /// Explores everything, and asks nothing but what was asked for.
    pub fn explore(mut self) -> Result<Report, CheckError> {
        self.explore_all = true;
        self.make(None)
    }

    /// Explores everything and gives figures of the state space beside the report.
    pub fn stats(mut self) -> Result<Stats, CheckError> {
        self.explore_all = true;
        let mut surveyor = Surveyor::new(self.system, self.info.counts_tokens);
        let system = self.system;
        let report = self.make(Some(&mut surveyor))?;
        Ok(Stats { report, survey: surveyor.survey(system) })
    }

    /// Makes the plan for what was asked, and carries it out.
    pub(crate) fn make(mut self, surveyor: Option<&mut Surveyor>) -> Result<Report, CheckError> {
        let kinds: Vec<PropertyKind> = self.properties.iter().map(|property| (&property.goal).into()).collect();
        let mut notes = self.info.remarks.clone();
        notes.extend(self.consider_final_states()?);
        if self.walked.is_none() {
            threads(self.threads, &self.store, self.strategy())?;
            self.refuse_mixtures()?;
        }
        let (control, memory_limit) = control(self.limits, self.cancel, self.listener, self.since)?;
        let sweeps = self.sweeps && self.walked.is_none();
        let setting = Setting { model: self.info.clone(), control, memory_limit, since: self.since, notes };
        let properties = self.properties;
        let graph = self.graph.map(|path| GraphTarget { path, model: self.info.clone() });
        let plan = if let Some((graph, way)) = self.walked {
            Plan::single(self.system, kinds, AlongGraph { graph, way, properties, surveyor })
        } else if sweeps {
            let run = BySweep {
                properties,
                measure: self.measure,
                explore_all: self.explore_all,
                observer: surveyor.map(|surveyor| surveyor as &mut dyn Observer),
                recorder: self.recorder.map(|recorder| recorder as &mut dyn Recorder),
                graph,
            };
            Plan::single(self.system, kinds, run)
        } else if self.reduce != Reduce::Off && !self.explore_all && surveyor.is_none() && graph.is_none() {
            let run = OverStore {
                properties: properties.into(),
                threads: self.threads,
                explain: self.explain,
                ..OverStore::new(self.store, self.search)
            };
            Plan::single(self.system, kinds, Reduced { run, reduce: self.reduce })
        } else {
            let run = OverStore {
                properties: properties.into(),
                threads: self.threads,
                explain: self.explain,
                explore_all: self.explore_all,
                watchers: surveyor.into_iter().map(|surveyor| surveyor as &mut dyn Watcher).collect(),
                // A graph is written as the run goes on.
                numbered: graph.is_some().then_some("the file of the graph takes the numbers that it gives"),
                graph,
                ..OverStore::new(self.store, self.search)
            };
            Plan::single(self.system, kinds, run)
        };
        match plan.make(setting) {
            // A sweep can be stopped before it begins, while it looks for a measure.
            Err(CheckError::Stopped(stop)) if sweeps => {
                Ok(Report::before_search(self.info, "measuring", stop, memory_limit, self.since))
            }
            made => made,
        }
    }

    /// Has deadlock freedom look at where a run may end, and says so.
    fn consider_final_states(&mut self) -> Result<Option<String>, CheckError> {
        let asked = self.properties.iter().any(|property| matches!(property.goal, Goal::DeadlockFree));
        if !asked && !self.finals.is_empty() {
            return Err(CheckError::Misfit {
                message: "`--final` says where a deadlock is no violation, and deadlock freedom is not asked for"
                    .into(),
                help: "add `--deadlock`, or leave `--final` out".into(),
            });
        }
        let mut finals = std::mem::take(&mut self.finals);
        for text in self.info.final_markings.iter().filter(|_| asked) {
            let predicate = Box::new(compiled("the final marking of the file", text, self.system)?);
            finals.push(FinalStates { text: text.clone(), predicate });
        }
        if finals.is_empty() {
            return Ok(None);
        }
        let ends = Ends(finals.into());
        let ended = |property: Property| match property.goal {
            Goal::DeadlockFree => ends.property(property),
            _ => property,
        };
        self.properties = std::mem::take(&mut self.properties).into_iter().map(ended).collect();
        Ok(Some(ends.note()))
    }

    /// Refuses options that do not go with each other.
    fn refuse_mixtures(&self) -> Result<(), CheckError> {
        if self.reduce == Reduce::Stubborn && (self.sweeps || self.explore_all) {
            let what = if self.sweeps { "a sweep" } else { "a run that is to explore every state" };
            return Err(CheckError::Misfit {
                message: format!("`--reduce stubborn` leaves states away, which {what} does not allow"),
                help: "leave one of them out".into(),
            });
        }
        if self.sweeps {
            return sweep::refuse(&self.store, self.limits.depth);
        }
        if self.measure.is_some() || self.recorder.is_some() {
            let what = if self.measure.is_some() { "a progress measure is" } else { "numbered states are" };
            return Err(CheckError::Sweep {
                message: format!("{what} of no use to the search `{}`", self.search.name()),
                help: "add `--search sweep`, or leave it out".into(),
            });
        }
        Ok(())
    }
}

/// How many threads search, of those that were asked for or of those the machine runs at once; and
/// why they are not more, if store, search or the address space are the reason.
fn thread_count(asked: Option<usize>, store: &StoreSpec, strategy: Strategy) -> (usize, Option<String>) {
    if let Some(reason) = one_thread_only(store, strategy) {
        return (1, Some(reason));
    }
    let wanted = asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    match AddressSpace::of_this_process() {
        Some(space) if space.threads() < wanted => {
            let count = space.threads();
            (count, Some(format!("searching with {count} of {wanted} threads: the address space has no room for more")))
        }
        _ => (wanted, None),
    }
}

/// What runs with one thread only, and what to choose instead.
fn one_thread_only(store: &StoreSpec, strategy: Strategy) -> Option<String> {
    if !strategy.shares_work() {
        let name = strategy.name();
        return Some(format!("the search `{name}` runs with one thread; several can share `--search bfs`"));
    }
    let info = StoreInfo::by_name(&store.name).filter(|info| !info.threads)?;
    let others: Vec<&str> = CATALOGUE.iter().filter(|info| info.threads).map(|info| info.name).collect();
    let (last, others) = others.split_last().expect("some store runs with several threads");
    let others = others.join(", ");
    Some(format!("the store `{}` runs with one thread; several can share {others} and {last}", info.name))
}

/// The threads to search with; an error, if several were asked for and cannot be.
pub(crate) fn threads(
    asked: Option<usize>,
    store: &StoreSpec,
    strategy: impl Into<Strategy>,
) -> Result<Threads, CheckError> {
    let strategy = strategy.into();
    match one_thread_only(store, strategy) {
        Some(reason) if asked.is_some_and(|asked| asked > 1) => Err(CheckError::Threads(reason)),
        _ => Ok(Threads::new(thread_count(asked, store, strategy).0)),
    }
}

/// What a store has to expect of such a search.
pub(crate) fn traffic(search: Search, threads: Threads, control: &Control) -> Traffic {
    Traffic { order: search.order(), threads: threads.count, samplers: SAMPLERS, control: control.clone() }
}

/// An expression over the states of a system; `name` is how errors call it.
pub(crate) fn compiled(name: &str, text: &str, system: &dyn System) -> Result<deltamark_logic::Compiled, CheckError> {
    parsed(name, text, system, |observe| deltamark_logic::compile(text, observe))
}

fn parsed<T>(
    name: &str,
    text: &str,
    system: &dyn System,
    parse: impl FnOnce(&dyn Observe) -> Result<T, Vec<Diagnostic>>,
) -> Result<T, CheckError> {
    let result = match system.observe() {
        Some(observe) => parse(observe),
        None => Err(vec![Diagnostic::new("this model has no names that a property could speak of")]),
    };
    let source = || Source { name: name.into(), text: text.into() };
    result.map_err(|diagnostics| CheckError::Property { source: source(), diagnostics })
}
