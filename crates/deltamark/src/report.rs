//! What a run came to, ready to be shown.
//!
//! In: the outcome of a search, its traces replayed and put into words. Out: a
//! [`Report`], which owns all it says; [`Report::to_json`] for scripts, and whatever a
//! front end makes of it for people. What stays true: every trace in a report was
//! replayed, and "holds" is reported only where the search returned it.

use crate::auto::StoreChoice;
use crate::certificate::CertificateFile;
use crate::checkpoint::{CheckpointReport, Resumed};
use crate::load::{Format, LoadError, ModelInfo};
use crate::memory;
use crate::reduction::Reduction;
use crate::story::Story;
use crate::sweep::SweepReport;
pub use deltamark_core::Growth;
use deltamark_core::{Bytes, Goal, Guarantee, Statistics, Stop, Verdict};
pub use deltamark_graph::Unwritten;
use deltamark_search::Strategy;
use deltamark_store::{StoreInfo, StoreSpec};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// What a property asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PropertyKind {
    /// That every reachable state has a successor.
    DeadlockFree,
    /// That no reachable step is declared wrong by the model.
    FaultFree,
    /// That an expression is true in every reachable state.
    Invariant,
    /// That an expression is true in some reachable state.
    Reachable,
    /// One of the three questions of the soundness of a workflow net.
    Soundness,
    /// Something else, by its word.
    Other(&'static str),
}

impl PropertyKind {
    /// The word for reports.
    pub fn word(self) -> &'static str {
        match self {
            PropertyKind::DeadlockFree => "deadlock-free",
            PropertyKind::FaultFree => "fault-free",
            PropertyKind::Invariant => "invariant",
            PropertyKind::Reachable => "reachable",
            PropertyKind::Soundness => "soundness",
            PropertyKind::Other(word) => word,
        }
    }
}

impl From<&Goal> for PropertyKind {
    fn from(goal: &Goal) -> Self {
        match goal {
            Goal::DeadlockFree => PropertyKind::DeadlockFree,
            Goal::FaultFree => PropertyKind::FaultFree,
            Goal::Invariant(_) => PropertyKind::Invariant,
            Goal::Reachable(_) => PropertyKind::Reachable,
            other => PropertyKind::Other(other.word()),
        }
    }
}

/// The answer to one property.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What the property asks for.
    pub kind: PropertyKind,
    /// The property's name.
    pub name: String,
    /// The property as the user wrote it.
    pub text: String,
    /// The answer as the search gave it.
    pub verdict: Verdict,
    /// The trace that comes with it, in words.
    pub story: Option<Story>,
    /// Why there is no trace, where there would be one: memory or time did not suffice, or the user asked to stop.
    pub untraced: Option<Stop>,
    /// Whether the trace was found by a probe, aside from the search, so that it need not be a shortest one.
    pub probed: bool,
}

impl Answer {
    /// What went wrong, where the trace alone does not say it.
    pub fn message(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Violated(_, message) => message.as_deref(),
            _ => None,
        }
    }
}

/// How formulas of temporal logic are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteKind {
    /// As the run decides.
    #[default]
    Auto,
    /// On the graph of all states.
    Graph,
    /// While states are found, in the product with an automaton.
    Fly,
}

impl RouteKind {
    /// All of them.
    pub const ALL: &[RouteKind] = &[RouteKind::Auto, RouteKind::Graph, RouteKind::Fly];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RouteKind::Auto => "auto",
            RouteKind::Graph => "graph",
            RouteKind::Fly => "fly",
        }
    }
}

impl fmt::Display for RouteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RouteKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = RouteKind::ALL.iter().copied().find(|kind| kind.name() == text);
        known.ok_or_else(|| "it is `auto`, `graph` or `fly`".into())
    }
}

/// How they were, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The way, which is never [`RouteKind::Auto`].
    pub kind: RouteKind,
    /// Why this one: a clause.
    pub why: String,
}

/// What all answers come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overall {
    /// All properties hold.
    Hold,
    /// At least one is violated.
    Violated,
    /// None is violated, and at least one has no certain answer.
    NoAnswer,
}

/// What a run found.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use deltamark::{Check, Overall, load};
///
/// let model = load("../../models/philosophers-5.pnml", None)?;
/// let report = Check::loaded(&model).deadlock_free().explore_all(true).run()?;
/// assert_eq!((report.overall(), report.stopped_by), (Overall::Violated, None));
/// assert_eq!((report.statistics.states, report.statistics.deadlocks), (243, 2));
///
/// // Each answer has its verdict and, where there is one, its trace in the words of the model.
/// let answer = &report.answers[0];
/// assert_eq!((answer.name.as_str(), answer.verdict.word()), ("deadlock-free", "violated"));
/// for step in answer.story.as_ref().expect("a violation has a trace").walk() {
///     println!("{}: {} places change", step.action, step.changes.len());
/// }
///
/// // The same for scripts.
/// assert!(report.to_json().contains(r#""states":243"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    /// The model.
    pub model: ModelInfo,
    /// The answers, in the order the properties were given.
    pub answers: Vec<Answer>,
    /// Why the run ended before every reachable state was expanded, if it did.
    pub stopped_by: Option<Stop>,
    /// What was being done then, if it was not the search: "loading" or "unfolding" the model, reading its "properties",
    /// "measuring", which is the search for a progress measure, or "preparing" a reduction.
    pub stopped_while: Option<&'static str>,
    /// What the search counted.
    pub statistics: Statistics,
    /// The store that was used.
    pub store: StoreSpec,
    /// Why that one, where the run was to choose.
    pub choice: Option<StoreChoice>,
    /// What answers that rest on the store are worth.
    pub guarantee: Guarantee,
    /// What makes them worth less than that, if the store knows of anything.
    pub warning: Option<String>,
    /// What the store held at the end, by part.
    pub store_bytes: Bytes,
    /// What the model's own tables held at the end, by part.
    pub tables: Bytes,
    /// The search that was used.
    pub search: Strategy,
    /// The memory limit the run was under, given or not.
    pub memory_limit: Option<u64>,
    /// The most bytes the process has had resident, where that is known.
    pub peak_resident: Option<u64>,
    /// The time from the beginning, loading included, to this report.
    pub total_time: Duration,
    /// What grows without end, or seems to, where the run ended early.
    pub growth: Option<Growth>,
    /// What is to be said of a sweep.
    pub sweep: Option<SweepReport>,
    /// What was left away, if the figures are those of a reduced system.
    pub reduction: Option<Reduction>,
    /// How formulas of temporal logic were answered, where any were asked.
    pub route: Option<Route>,
    /// The file of the graph that was written or walked, if there was to be one.
    pub graph: Option<GraphFile>,
    /// The certificate, if there was to be one.
    pub certificate: Option<CertificateFile>,
    /// Which checkpoint the run went on from, if it did.
    pub resumed: Option<Resumed>,
    /// What became of its checkpoints, if it was to keep any.
    pub checkpoint: Option<CheckpointReport>,
    /// What else a reader must know to read the answers: sentences without full stops.
    pub notes: Vec<String>,
}

/// What became of the file of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphFile {
    /// Its path.
    pub path: String,
    /// Whether it was there before and the answers come from it; otherwise the run was to write it.
    pub walked: bool,
    /// What is in it; `None` if it was not written.
    pub contents: Option<GraphContents>,
    /// Why it was not written, if it is not that the run ended early.
    pub unwritten: Option<Unwritten>,
}

/// What is in the file of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphContents {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of packed edges and their index: all but the head and the table of actions.
    pub packed: u64,
    /// States of the graph.
    pub states: u64,
    /// Edges of the graph.
    pub edges: u64,
    /// Whether it is an unfolding of the real graph.
    pub unfolding: bool,
}

impl GraphContents {
    /// Bits an edge takes, all that belongs to states included.
    pub fn bits_per_edge(&self) -> f64 {
        8.0 * self.packed as f64 / self.edges.max(1) as f64
    }
}

impl Report {
    /// A run that ended before there was a model to search; `None` if something else went wrong with loading it. `memory_limit`
    /// is the limit it was under, and `since` when it began.
    pub fn of_loading(error: &LoadError, memory_limit: Option<u64>, since: Instant) -> Option<Report> {
        let LoadError::Stopped { path, format, phase, stop } = error else { return None };
        let format = format.unwrap_or_else(|| Format::of_path(path).map_or("unknown", |format| format.name));
        let model = ModelInfo { path: Some(path.clone()), format, ..ModelInfo::code() };
        Some(Self::before_search(model, phase, *stop, memory_limit, since))
    }

    /// A run that ended before its search began, while doing what [`stopped_while`](Self::stopped_while) lists.
    pub fn before_search(
        model: ModelInfo,
        phase: &'static str,
        stop: Stop,
        memory_limit: Option<u64>,
        since: Instant,
    ) -> Report {
        let blank = Report::blank(model, memory_limit, since);
        Report { stopped_by: Some(stop), stopped_while: Some(phase), ..blank }
    }

    /// Whether its figures are those of products with automata, not of the model.
    pub fn is_of_products(&self) -> bool {
        self.route.as_ref().is_some_and(|route| route.kind == RouteKind::Fly)
    }

    /// Whether its traces are shortest ones of the model.
    pub fn is_shortest(&self) -> bool {
        // A path may be the shortest among the states that were not missed, and not among all.
        let exact = self.guarantee == Guarantee::Exact;
        exact && self.search.is_shortest() && self.reduction.as_ref().is_none_or(|reduction| reduction.keeps_distances)
    }

    /// A report of nothing: what every report begins as. It is made when all is done, because it reads the clock.
    pub(crate) fn blank(model: ModelInfo, memory_limit: Option<u64>, since: Instant) -> Report {
        Report {
            model,
            answers: Vec::new(),
            stopped_by: None,
            stopped_while: None,
            statistics: Statistics::default(),
            store: StoreSpec::default(),
            choice: None,
            guarantee: Guarantee::Exact,
            warning: None,
            store_bytes: Bytes::new(),
            tables: Bytes::new(),
            search: Strategy::default(),
            memory_limit,
            peak_resident: memory::peak(),
            total_time: since.elapsed(),
            growth: None,
            sweep: None,
            reduction: None,
            route: None,
            graph: None,
            certificate: None,
            resumed: None,
            checkpoint: None,
            notes: Vec::new(),
        }
    }

    /// What all answers come to. A run without properties has its answer when it is
    /// complete.
    pub fn overall(&self) -> Overall {
        let count = |test: fn(&Verdict) -> bool| self.answers.iter().filter(|answer| test(&answer.verdict)).count();
        let all_hold = count(|verdict| matches!(verdict, Verdict::Holds(_))) == self.answers.len();
        if count(|verdict| matches!(verdict, Verdict::Violated(..))) > 0 {
            Overall::Violated
        } else if !all_hold || (self.answers.is_empty() && self.stopped_by.is_some()) {
            Overall::NoAnswer
        } else {
            Overall::Hold
        }
    }

    /// What the store held per state.
    pub fn bytes_per_state(&self) -> f64 {
        self.store_bytes.total() as f64 / self.statistics.states.max(1) as f64
    }

    /// The name of the search, or of what took its place.
    pub fn search_name(&self) -> &'static str {
        if self.graph.as_ref().is_some_and(|graph| graph.walked) { "graph" } else { self.search.name() }
    }

    /// States found per second of search.
    pub fn states_per_second(&self) -> f64 {
        let seconds = self.statistics.search_time.as_secs_f64();
        if seconds > 0.0 { self.statistics.states as f64 / seconds } else { 0.0 }
    }

    /// Every option of the store with the value it had, given or not.
    pub fn store_options(&self) -> Vec<(&str, &str)> {
        let known = StoreInfo::by_name(&self.store.name).map_or(&[][..], |info| info.options);
        known.iter().map(|option| (option.name, self.store.value(option.name))).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample(verdicts: &[Verdict], stopped_by: Option<Stop>) -> Report {
        let answer = |verdict: &Verdict| Answer {
            kind: PropertyKind::DeadlockFree,
            name: "deadlock-free".into(),
            text: "no reachable state is a deadlock".into(),
            verdict: verdict.clone(),
            story: None,
            untraced: None,
            probed: false,
        };
        Report {
            answers: verdicts.iter().map(answer).collect(),
            stopped_by,
            statistics: Statistics { states: 10, search_time: Duration::from_millis(500), ..Statistics::default() },
            store: StoreSpec::named("plain"),
            store_bytes: Bytes::new().with("table", 25),
            ..Report::blank(ModelInfo::code(), None, Instant::now())
        }
    }

    #[test]
    fn one_violation_outweighs_all_and_one_doubt_outweighs_the_rest() {
        use Verdict::{Holds, NoViolationFound, Unknown, Violated};
        let cases: [(&[Verdict], Option<Stop>, Overall); 7] = [
            (&[], None, Overall::Hold),
            (&[], Some(Stop::Time), Overall::NoAnswer),
            (&[Holds(None)], None, Overall::Hold),
            (&[Holds(None)], Some(Stop::Answered), Overall::Hold),
            (&[Holds(None), Unknown], Some(Stop::Memory), Overall::NoAnswer),
            (&[NoViolationFound(0.1)], None, Overall::NoAnswer),
            (&[Unknown, Violated(None, None), Holds(None)], Some(Stop::Time), Overall::Violated),
        ];
        for (verdicts, stopped_by, expected) in cases {
            assert_eq!(sample(verdicts, stopped_by).overall(), expected, "{verdicts:?}");
        }
    }

    #[test]
    fn rates_are_worked_out() {
        let report = sample(&[], None);
        assert_eq!((report.bytes_per_state(), report.states_per_second()), (2.5, 20.0));
    }
}
