//! What is asked and how to look for the answer, turned into a plan of runs.
//!
//! In: a system, properties, the choice of store and search, limits. Out: a
//! [`Report`]. What stays true: this file and its neighbours are the only place that
//! names language, store and search together; the process's memory limit is always
//! set, by the user or from what the machine has. The kinds of runs are in `run`, how
//! they become one report in `plan.rs`.
//!
//! ```text
//! questions  what is asked, as values or as text
//! refusals   what does not go together, and how many threads there are
//! error      why a run could not be made
//! ```

mod error;
mod questions;
mod refusals;

pub use error::CheckError;
pub(crate) use questions::{compiled, parsed, stopped_reading};
pub(crate) use refusals::threads;
use refusals::{refuse_large, thread_count};

use crate::certificate::{CertificateLog, CertificateTarget};
use crate::checkpoint::Checkpoints;
use crate::condensed::Condensed;
use crate::control::{OnProgress, control};
use crate::ends::{Ends, FinalStates};
use crate::load::{Loaded, ModelInfo};
use crate::plan::{Plan, Setting};
use crate::reduction::Reduce;
use crate::report::{PropertyKind, Report, RouteKind};
use crate::run::fly::{FirstOnTheFly, OnTheFly};
use crate::run::formulas::{OnGraph, OnWrittenGraph};
use crate::run::local::Locally;
use crate::run::quotient::{OverAutomorphisms, OverQuotient};
use crate::run::reduced::Reduced;
use crate::run::store::{NUMBERING, OverStore};
use crate::run::sweep::BySweep;
use crate::run::walk::AlongGraph;
use crate::run::{GraphTarget, Watcher};
use crate::stats::{Stats, Surveyor};
use crate::temporal::fly::fairness::Fair;
use crate::temporal::{Question, Questions};
use deltamark_core::{
    Cancel, Control, Goal, Limits, Listener, Measure, Property, Recorder, Silent, Snapshot, Symmetry, System, Verdict,
};
use deltamark_dve::{DveSystem, PropertyProcess};
use deltamark_graph::Way;
use deltamark_logic::temporal::Logic;
use deltamark_search::{Observer, SAMPLERS, Search, Strategy, Threads};
use deltamark_store::{StoreSpec, Traffic};
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
    /// Formulas of temporal logic, and of each its place among all that is asked.
    pub(crate) formulas: (Questions, Vec<usize>),
    /// The formulas that a person wrote, by their places among all formulas, and where.
    written: Vec<(usize, String)>,
    pub(crate) store: StoreSpec,
    /// The order over a store, if it is not a sweep.
    pub(crate) search: Search,
    /// Whether that order was chosen.
    ordered: bool,
    pub(crate) sweeps: bool,
    pub(crate) threads: Option<usize>,
    pub(crate) limits: Limits,
    pub(crate) cancel: Cancel,
    pub(crate) listener: Arc<dyn Listener>,
    /// Under which texts are read.
    reading: Control,
    explore_all: bool,
    pub(crate) explain: bool,
    reduce: Reduce,
    /// The symmetry by whose quotient it explores.
    symmetry: Option<&'a dyn Symmetry>,
    route: RouteKind,
    fair: Option<Fair>,
    shortest: bool,
    probes: bool,
    pub(crate) since: Instant,
    /// Where the graph goes.
    pub(crate) graph: Option<String>,
    /// Where the certificate goes.
    certificate: Option<CertificateTarget>,
    /// The graph that takes the place of a search.
    pub(crate) walked: Option<(&'a Condensed, Way)>,
    measure: Option<Box<dyn Measure>>,
    recorder: Option<&'a mut dyn Recorder>,
    /// Where a run may end.
    pub(crate) finals: Vec<FinalStates>,
    pub(crate) checkpoints: Option<&'a mut Checkpoints>,
}

impl<'a> Check<'a> {
    /// A run of a system that is Rust code.
    pub fn new(system: &'a dyn System) -> Self {
        Check {
            system,
            info: ModelInfo::code(),
            properties: Vec::new(),
            formulas: Default::default(),
            written: Vec::new(),
            store: StoreSpec::default(),
            search: Search::default(),
            ordered: false,
            sweeps: false,
            threads: None,
            limits: Limits::default(),
            cancel: Cancel::new(),
            listener: Arc::new(Silent),
            reading: Control::new(),
            explore_all: false,
            explain: false,
            reduce: Reduce::Off,
            symmetry: None,
            route: RouteKind::Auto,
            fair: None,
            shortest: false,
            probes: false,
            since: Instant::now(),
            graph: None,
            certificate: None,
            walked: None,
            measure: None,
            recorder: None,
            finals: Vec::new(),
            checkpoints: None,
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

    /// Asks whether the model's property process accepts no path, if it has one that is an automaton.
    fn ask_property_process(&mut self) {
        let Some(Ok(process)) = property_process(self.system) else { return };
        let (name, place) = (process.name.clone(), self.property_count());
        match self.formulas.0.add_process(process) {
            Ok(()) => self.formulas.1.push(place),
            Err(why) => self.info.remarks.push(format!("the property process `{name}` is left out: {why}")),
        }
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
    /// traces, unless a smaller net is explored; counts are then those of the reduced system, and the [report](Report::reduction) says
    /// so. A run that is to explore all, or to write a graph, is never reduced.
    pub fn reduce(mut self, reduce: Reduce) -> Self {
        self.reduce = reduce;
        self
    }

    /// Explores the quotient of the system by this symmetry of it and of all that is asked. Verdicts and the lengths of shortest traces
    /// stay the same; counts are those of the quotient, and the [report](Report::reduction) says so, even if all of it is to be explored.
    pub fn symmetry(mut self, symmetry: &'a dyn Symmetry) -> Self {
        self.symmetry = Some(symmetry);
        self
    }

    /// How formulas of temporal logic are answered. Without it the run decides.
    pub fn route(mut self, route: RouteKind) -> Self {
        self.route = route;
        self
    }

    /// Has formulas of LTL speak of fair paths alone: a violation is one of them.
    pub fn fair(mut self, fair: Fair) -> Self {
        self.fair = Some(fair);
        self
    }

    /// Has every trace be a shortest one, so that nothing is reduced that does not keep their lengths.
    pub fn shortest(mut self, shortest: bool) -> Self {
        self.shortest = shortest;
        self
    }

    /// Has a breadth-first search spend a small part of its work on probes, which look for errors that are deep. A trace that a
    /// probe finds need not be a shortest one ([`Answer::probed`](crate::Answer::probed)). Not where traces must be [shortest](Self::shortest).
    pub fn probes(mut self, probes: bool) -> Self {
        self.probes = probes;
        self
    }

    /// Visits states in this order.
    pub fn search(mut self, strategy: impl Into<Strategy>) -> Self {
        self.ordered = true;
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
        self.measure = Some(crate::sweep::given(self.system, name, text, &self.reading)?);
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

    /// Writes a [certificate](crate::certificate) of the answers to this file, as far as they can be certified. `unread` is why the
    /// model cannot be read by the program that checks it, if that is known: then nothing is written. The run is not reduced, and
    /// nothing is probed.
    pub fn certificate(mut self, path: impl Into<String>, unread: Option<String>) -> Self {
        self.certificate = Some(CertificateTarget { path: path.into(), unread });
        self
    }

    /// Keeps checkpoints, or goes on from one. Then nothing is reduced that would be by default, no probes look for deep errors,
    /// and a store that the run is to choose is `plain` and, when memory is full, a smaller one; what cannot be kept is refused.
    pub fn checkpoints(mut self, checkpoints: &'a mut Checkpoints) -> Self {
        self.checkpoints = Some(checkpoints);
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
        let by_default = self.property_count() == 0;
        if by_default {
            // Who asks nothing asks for deadlocks and faults, and what the model itself brings.
            self.properties.push(Property::deadlock_free());
            if self.info.can_fault != Some(false) {
                self.properties.push(Property::fault_free());
            }
            for (name, text) in self.info.properties.clone() {
                self = self.named_invariant(&name, &text)?;
            }
            // A search that cannot answer formulas answers the rest.
            if self.may_ask_formulas() {
                for (name, text) in self.info.formulas.clone() {
                    self = self.named_ltl(&name, &text)?;
                }
                self.ask_property_process();
            } else {
                let formulas = self.info.formulas.iter().map(|(name, _)| name.clone());
                let processes = property_process(self.system).and_then(Result::ok).map(|process| process.name);
                let left_out = |name| format!("`{name}` asks for temporal logic, which this run leaves out");
                let skipped: Vec<String> = formulas.chain(processes).map(left_out).collect();
                self.info.remarks.extend(skipped);
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
        self.refuse_with_formulas()?;
        let way = self.way_of_formulas()?;
        let certificate = self.certificate.take();
        if certificate.is_some() {
            self.refuse_with_certificate()?;
            (self.reduce, self.probes) = (Reduce::Off, false);
        }
        let ends = self.right_ends();
        let mut notes = self.info.remarks.clone();
        notes.extend(self.consider_final_states()?);
        if self.symmetry.is_some() {
            self.refuse_with_symmetry(surveyor.is_some())?;
        }
        notes.extend(self.fair.map(|fair| fair.sentence(self.system)));
        let checkpoints = self.checkpoints.take();
        if checkpoints.is_some() {
            self.refuse_with_checkpoints(surveyor.is_some())?;
            notes.extend((self.reduce != Reduce::Off).then(|| UNREDUCED.to_string()));
            (self.reduce, self.probes) = (Reduce::Off, false);
        }
        if self.walked.is_none() {
            // Several threads search depth-first for cycles.
            let only_paths = self.formulas.0.list.iter().all(|question| question.logic == Logic::Ltl);
            if self.formulas.0.list.is_empty() || !only_paths || way.0 != RouteKind::Fly {
                threads(self.threads, &self.store, self.strategy())?;
            }
            self.refuse_mixtures()?;
        }
        let answers = self.room_for_answers();
        let (control, memory_limit) = control(self.limits, self.cancel, self.listener, self.since)?;
        if let Err(stop) = control.ask_for(answers) {
            return Ok(Report::before_search(self.info, "properties", stop, memory_limit, self.since));
        }
        refuse_large(&self.formulas.0, &self.written, &control)?;
        let sweeps = self.sweeps && self.walked.is_none();
        let mut log = certificate.map(|target| CertificateLog::new(target, &self.info, self.system, &control));
        if let Some(log) = log.as_mut() {
            if !self.formulas.0.list.is_empty() {
                log.without_states("formulas of temporal logic are asked in the same run");
            } else if sweeps {
                log.without_states("a sweep does not keep the states");
            }
        }
        let setting = Setting { model: self.info.clone(), control, memory_limit, since: self.since, notes };
        let properties = self.properties;
        let graph = self.graph.map(|path| GraphTarget { path, model: self.info.clone() });
        let mut checkpoints = checkpoints;
        let (questions, places) = self.formulas;
        let plan = if !questions.list.is_empty() {
            // Answers come in the order in which they were asked.
            let mut others = (0..).filter(|place| !places.contains(place));
            let mut asked: Vec<(usize, PropertyKind)> =
                kinds.into_iter().map(|kind| (others.next().unwrap_or_default(), kind)).collect();
            let kind = |question: &Question| PropertyKind::Other(question.logic.word());
            asked.extend(places.iter().copied().zip(questions.list.iter().map(kind)));
            let questions = Arc::new(questions);
            match self.walked {
                Some((graph, way)) => {
                    let (threads, _) = thread_count(self.threads, &StoreSpec::named(NUMBERING), Search::Bfs.into());
                    let run = OnWrittenGraph { graph, way, questions, properties, threads };
                    Plan::new().and(self.system, asked, run)
                }
                None if way.0 == RouteKind::Fly => {
                    let formulas = asked.split_off(properties.len());
                    let mut plan = Plan::new();
                    if !asked.is_empty() {
                        let run = OverStore {
                            properties: properties.into(),
                            threads: self.threads,
                            explain: self.explain,
                            explore_all: self.explore_all,
                            probes: self.probes && !self.shortest,
                            ..OverStore::new(self.store.clone(), self.search)
                        };
                        plan = match self.reduce != Reduce::Off && !self.explore_all {
                            true => {
                                let run = Reduced::new(run, self.reduce, self.shortest);
                                plan.and(self.system, asked, run)
                            }
                            false => plan.and(self.system, asked, run),
                        };
                    }
                    for (index, place) in formulas.into_iter().enumerate() {
                        if questions.list[index].logic == Logic::Ctl {
                            let (store, why) = (self.store.clone(), way.1.clone());
                            let run = Locally { questions: Arc::clone(&questions), index, store, why };
                            plan = plan.and(self.system, vec![place], run);
                            continue;
                        }
                        let run = OnTheFly {
                            questions: Arc::clone(&questions),
                            index,
                            store: self.store.clone(),
                            search: self.search,
                            ordered: self.ordered,
                            threads: self.threads,
                            explain: self.explain,
                            fair: self.fair,
                            why: way.1.clone(),
                        };
                        plan = plan.and(self.system, vec![place], run);
                    }
                    plan
                }
                None => {
                    let falls_back = self.route == RouteKind::Auto;
                    let fly = (way.0 == RouteKind::Auto).then(|| OnTheFly {
                        questions: Arc::clone(&questions),
                        index: 0,
                        store: self.store.clone(),
                        search: self.search,
                        // What is near is found at once by one thread, depth-first.
                        ordered: false,
                        threads: None,
                        explain: false,
                        fair: None,
                        why: way.1.clone(),
                    });
                    let why = match fly {
                        Some(_) => "the first states did not decide it on the fly, and the graph is faster".into(),
                        None => way.1,
                    };
                    let properties = properties.into();
                    let threads = self.threads;
                    let then = OnGraph { questions, properties, traces: true, graph, threads, falls_back, why };
                    match fly {
                        Some(fly) => Plan::new().and(self.system, asked, FirstOnTheFly { fly, then }),
                        None => Plan::new().and(self.system, asked, then),
                    }
                }
            }
        } else if let Some((graph, way)) = self.walked {
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
        } else if let Some(symmetry) = self.symmetry {
            let run = OverStore {
                properties: properties.into(),
                threads: self.threads,
                explain: self.explain,
                explore_all: self.explore_all,
                ..OverStore::new(self.store, self.search)
            };
            let run = OverQuotient { run, symmetry, decided_by: "the user".into(), rules: Vec::new() };
            Plan::single(self.system, kinds, run)
        } else if self.reduce != Reduce::Off && !self.explore_all && surveyor.is_none() && graph.is_none() {
            let run = OverStore {
                properties: properties.into(),
                threads: self.threads,
                explain: self.explain,
                probes: self.probes && !self.shortest,
                ..OverStore::new(self.store, self.search)
            };
            if self.reduce == Reduce::Symmetry {
                // Its traces are shortest ones.
                Plan::single(self.system, kinds, OverAutomorphisms { run: OverStore { probes: false, ..run } })
            } else {
                Plan::single(self.system, kinds, Reduced::new(run, self.reduce, self.shortest))
            }
        } else {
            let run = OverStore {
                properties: properties.into(),
                threads: self.threads,
                explain: self.explain,
                explore_all: self.explore_all,
                probes: self.probes && !self.shortest && surveyor.is_none() && graph.is_none(),
                watchers: {
                    let surveyor = surveyor.into_iter().map(|surveyor| surveyor as &mut dyn Watcher);
                    surveyor.chain(log.as_mut().map(|log| log as &mut dyn Watcher)).collect()
                },
                // A graph is written as the run goes on.
                numbered: graph.is_some().then_some("the file of the graph takes the numbers that it gives"),
                graph,
                checkpoints: checkpoints.as_deref_mut().map(|checkpoints| (checkpoints, self.info.clone())),
                ..OverStore::new(self.store, self.search)
            };
            Plan::single(self.system, kinds, run)
        };
        let made = plan.make(setting);
        let about = checkpoints.map(|checkpoints| {
            let store = checkpoints.store().parse().unwrap_or_default();
            (store, checkpoints.resumed().cloned(), checkpoints.report())
        });
        let made = match about.clone() {
            Some((_, resumed, report)) => made.map(|made| Report { resumed, checkpoint: Some(report), ..made }),
            None => made,
        };
        match made {
            // A run can be stopped before it begins to search: while a sweep looks for a measure, while a reduction is prepared.
            Err(CheckError::Stopped(stop)) => {
                let phase = if sweeps { "measuring" } else { "preparing" };
                let blank = Report::before_search(self.info, phase, stop, memory_limit, self.since);
                // The checkpoint that was not read to its end.
                Ok(match about.filter(|(_, resumed, _)| resumed.is_some()) {
                    Some((store, resumed, report)) => Report { store, resumed, checkpoint: Some(report), ..blank },
                    None => blank,
                })
            }
            Ok(report) => {
                let certificate = log.map(|log| log.finish(&report, &ends, self.system));
                Ok(Report { certificate, ..report })
            }
            made => made,
        }
    }

    /// The expressions of which one is true where a deadlock is a right end.
    fn right_ends(&self) -> Vec<String> {
        let given = self.finals.iter().map(|one| &one.text);
        given.chain(&self.info.final_markings).cloned().collect()
    }

    /// The bytes that answers take, from the search to the report; of formulas, what their answering takes is asked for
    /// elsewhere.
    fn room_for_answers(&self) -> u64 {
        /// An answer in the search, in its outcome and in the report, about.
        const ANSWER: usize = 640;
        /// Copies of its name and its text.
        const COPIES: usize = 3;
        let states = self.properties.iter().map(|property| (&property.name, &property.text));
        let formulas = self.formulas.0.list.iter().map(|question| (&question.name, &question.text));
        let each = |(name, text): (&String, &String)| (ANSWER + COPIES * (name.len() + text.len())) as u64;
        states.chain(formulas).map(each).sum()
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
}

/// What is said of a run that keeps checkpoints.
const UNREDUCED: &str = "every state is explored, because checkpoints are kept of runs that reduce nothing";

/// The property process of a model in DVE.
fn property_process(system: &dyn System) -> Option<Result<PropertyProcess, String>> {
    system.as_any()?.downcast_ref::<DveSystem>()?.property_process()
}

/// What a store has to expect of such a search.
pub(crate) fn traffic(search: Search, threads: Threads, control: &Control) -> Traffic {
    Traffic { order: search.order(), threads: threads.count, samplers: SAMPLERS, control: control.clone() }
}
