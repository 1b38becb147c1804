//! What a check of a model found.
//!
//! In: a report of a run over packed states. Out: a [`ModelReport`], whose traces are values of the
//! model's own types. Invariant: a trace is returned only after it was replayed.

use super::{Model, ModelSystem, Path};
use crate::pack;
use crate::reduction::Reduction;
use crate::report::Report;
use deltamark_core::{ReplayError, Verdict};
use deltamark_store::StoreSpec;
use std::fmt::{self, Debug};
use std::io::{self, Write};

/// What a check of a model found. Made by [`ModelCheck::run`](super::ModelCheck::run).
///
/// ```
/// # use deltamark::{Model, Step};
/// # struct Counter;
/// # impl Model for Counter {
/// #     type State = (u8,);
/// #     type Action = &'static str;
/// #     fn initial(&self) -> Vec<(u8,)> { vec![(0,)] }
/// #     fn actions(&self, _: &(u8,), actions: &mut Vec<&'static str>) { actions.push("tick"); }
/// #     fn next(&self, state: &mut (u8,), _: &'static str) -> Step {
/// #         state.0 = (state.0 + 1) % 5;
/// #         Step::Taken
/// #     }
/// # }
/// let report = deltamark::check(Counter).invariant("below 3", |state| state.0 < 3).run()?;
/// assert!(!report.holds());
/// assert_eq!(report.verdict("below 3").expect("it was asked").word(), "violated");
/// let trace = report.trace("below 3").expect("a violation has a trace");
/// assert_eq!(trace.steps, [("tick", (1,)), ("tick", (2,)), ("tick", (3,))]);
///
/// // For people, and for scripts: docs/json.md describes the fields.
/// println!("{report}");
/// assert!(report.to_json().starts_with(r#"{"schema":1,"tool":{"name":"deltamark""#));
/// # Ok::<(), deltamark::ModelError>(())
/// ```
pub struct ModelReport<M: Model> {
    system: ModelSystem<M>,
    report: Report,
}

/// A trace of a model `M`.
type PathOf<M> = Path<<M as Model>::State, <M as Model>::Action>;

impl<M: Model> ModelReport<M> {
    pub(super) fn new(system: ModelSystem<M>, report: Report) -> Self {
        ModelReport { system, report }
    }
}

impl<M: Model> ModelReport<M> {
    /// Whether every property holds.
    pub fn holds(&self) -> bool {
        self.report.answers.iter().all(|answer| matches!(answer.verdict, Verdict::Holds(_)))
    }

    /// Panics with the whole report unless every property holds: for tests.
    ///
    /// # Panics
    /// When a property does not hold, or could not be decided.
    #[track_caller]
    pub fn assert_holds(&self) {
        assert!(self.holds(), "\n{self}");
    }

    /// The report as one JSON object, the same as `deltamark check --json` prints.
    pub fn to_json(&self) -> String {
        self.report.to_json()
    }

    /// Writes the report as one JSON object.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        self.report.write_json(out)
    }

    /// The store that held the states.
    pub fn store(&self) -> &StoreSpec {
        &self.report.store
    }

    /// What was left away, if the run [explored a quotient](super::ModelCheck::symmetry): all counts are then those of the quotient.
    pub fn reduction(&self) -> Option<&Reduction> {
        self.report.reduction.as_ref()
    }

    /// The number of states found; of a [quotient](Self::reduction), the number of its states.
    pub fn states(&self) -> u64 {
        self.report.statistics.states
    }

    /// The number of pairs of an expanded state and an action that can happen in it.
    pub fn edges(&self) -> u64 {
        self.report.statistics.edges
    }

    /// The number of expanded states without a successor.
    pub fn deadlocks(&self) -> u64 {
        self.report.statistics.deadlocks
    }

    /// The largest distance from an initial state, for breadth-first search.
    pub fn depth(&self) -> u64 {
        self.report.statistics.depth
    }

    /// Whether every reachable state was expanded.
    pub fn complete(&self) -> bool {
        self.report.stopped_by.is_none()
    }

    /// The answer to the property of this name, if there is one.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.report.answers.iter().find(|answer| answer.name == name).map(|answer| &answer.verdict)
    }

    /// The trace that comes with the answer to the property of this name, if there is one.
    pub fn trace(&self, name: &str) -> Option<PathOf<M>> {
        self.path(self.verdict(name)?).ok()?
    }

    /// The report of the run: answers, statistics, bytes.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The model as a system.
    pub fn system(&self) -> &ModelSystem<M> {
        &self.system
    }

    fn path(&self, verdict: &Verdict) -> Result<Option<PathOf<M>>, ReplayError> {
        let Some(trace) = verdict.trace() else { return Ok(None) };
        let replay = trace.replay(&self.system)?;
        let mut actions = Vec::with_capacity(replay.actions.len());
        for (step, (&number, source)) in replay.actions.iter().zip(&replay.states).enumerate() {
            actions.push(self.system.action_in(source, number).ok_or(ReplayError::Disabled(step))?);
        }
        let fault = replay.fault.and_then(|message| Some((actions.pop()?, message)));
        let mut states = replay.states.iter().map(|slots| pack::unpack::<M::State>(slots));
        let initial = states.next().expect("a replayed trace has an initial state");
        Ok(Some(Path { initial, steps: actions.into_iter().zip(states).collect(), fault, cycle: replay.cycle }))
    }
}

impl<M: Model> fmt::Display for ModelReport<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistics = &self.report.statistics;
        let of = if self.reduction().is_some() { " of the quotient by symmetry" } else { "" };
        write!(f, "{} states, {} edges, depth {}{of}", statistics.states, statistics.edges, statistics.depth)?;
        match self.report.stopped_by {
            None => writeln!(f, ", all explored")?,
            Some(stop) => writeln!(f, ", stopped: {}", stop.word())?,
        }
        for answer in &self.report.answers {
            writeln!(f, "{}: {}", answer.name, answer.verdict.word())?;
            if let Some(message) = answer.message() {
                writeln!(f, "  {message}")?;
            }
            match self.path(&answer.verdict) {
                Ok(Some(path)) => write!(f, "{path}")?,
                Ok(None) => {}
                Err(error) => writeln!(f, "  {error}")?,
            }
        }
        Ok(())
    }
}

impl<M: Model> Debug for ModelReport<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
