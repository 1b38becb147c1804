//! The examinations of the Model Checking Contest.
//!
//! In: a net, the name of an examination, the contest's property file where it has one. Out: an [`Answer`] for each
//! formula or figure, and the lines that the contest reads ([`Answer::line`]). What stays true: every answer rests on
//! what was explored; where a limit was reached first there is none.
//!
//! | examination | how |
//! |---|---|
//! | `StateSpace`, `OneSafe`, `QuasiLiveness`, `StableMarking` | figures of all states |
//! | `ReachabilityDeadlock`, `ReachabilityCardinality`, `ReachabilityFireability` | a search that ends when all is answered |
//! | `UpperBounds` | the largest sums in all states |
//! | `CTL…`, `LTL…`, `Liveness` | the graph of all states, once for all formulas |
//!
//! In coloured nets a place counts all its tokens, and a transition can fire if some binding can.

use crate::check::{CheckError, parsed, stopped_reading};
use crate::control::control;
use crate::load::Loaded;
use crate::run::formulas::OnGraph;
use crate::run::store::{NUMBERING, OverStore};
use crate::run::{Run, Watcher};
use crate::stats::{Survey, Surveyor};
use crate::temporal::atoms::{Atom, StateFormula};
use crate::temporal::contest::{self, Bound};
use crate::temporal::record::KripkeLog;
use crate::temporal::{Questions, simple};
use deltamark_core::{
    BLOCK, Batch, Block, Cancel, Control, Goal, Insert, Limits, Listener, Outcome, Property, PropertyOutcome, Scratch,
    Statistics, Stop, Store, System, Verdict,
};
use deltamark_logic::kripke::Evaluator;
use deltamark_logic::temporal::{Formula, FormulaId, Pool};
use deltamark_search::{Observer, Search};
use deltamark_store::StoreSpec;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// What the contest asks of a net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examination {
    /// How many states and steps there are, and the most tokens.
    StateSpace,
    /// Whether a deadlock can be reached.
    ReachabilityDeadlock,
    /// Formulas of a file, about single states.
    Reachability(&'static str),
    /// The largest sums of tokens.
    UpperBounds,
    /// Formulas of a file in CTL or LTL.
    Temporal(&'static str),
    /// Whether no place ever has two tokens.
    OneSafe,
    /// Whether every transition can fire at least once.
    QuasiLiveness,
    /// Whether some place always has the same number of tokens.
    StableMarking,
    /// Whether every transition can always fire again.
    Liveness,
}

impl Examination {
    /// All, by the contest's names.
    pub const ALL: [(&'static str, Examination); 13] = [
        ("StateSpace", Examination::StateSpace),
        ("ReachabilityDeadlock", Examination::ReachabilityDeadlock),
        ("ReachabilityCardinality", Examination::Reachability("ReachabilityCardinality")),
        ("ReachabilityFireability", Examination::Reachability("ReachabilityFireability")),
        ("UpperBounds", Examination::UpperBounds),
        ("CTLCardinality", Examination::Temporal("CTLCardinality")),
        ("CTLFireability", Examination::Temporal("CTLFireability")),
        ("LTLCardinality", Examination::Temporal("LTLCardinality")),
        ("LTLFireability", Examination::Temporal("LTLFireability")),
        ("OneSafe", Examination::OneSafe),
        ("QuasiLiveness", Examination::QuasiLiveness),
        ("StableMarking", Examination::StableMarking),
        ("Liveness", Examination::Liveness),
    ];

    /// That of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, examination)| examination)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// Whether it reads formulas from a file.
    pub fn reads_file(self) -> bool {
        matches!(self, Examination::Reachability(_) | Examination::Temporal(_) | Examination::UpperBounds)
    }
}

/// What is known of a formula or a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is true or false.
    Truth(bool),
    /// It is this number.
    Number(u64),
    /// A limit was reached first.
    Nothing,
}

/// The answer to one formula, or one figure of the state space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The formula's id, or the name of the figure.
    pub id: String,
    /// Whether it is a figure of the state space.
    pub figure: bool,
    /// The answer.
    pub known: Known,
}

impl Answer {
    fn truth(id: impl Into<String>, truth: Option<bool>) -> Self {
        Answer { id: id.into(), figure: false, known: truth.map_or(Known::Nothing, Known::Truth) }
    }

    /// The line of the contest.
    pub fn line(&self) -> String {
        let kind = if self.figure { "STATE_SPACE" } else { "FORMULA" };
        match self.known {
            Known::Truth(truth) => {
                let truth = if truth { "TRUE" } else { "FALSE" };
                format!("{kind} {} {truth} {TECHNIQUES}", self.id)
            }
            Known::Number(number) => format!("{kind} {} {number} {TECHNIQUES}", self.id),
            Known::Nothing => format!("{kind} {} CANNOT_COMPUTE", self.id),
        }
    }
}

const TECHNIQUES: &str = "TECHNIQUES EXPLICIT SEQUENTIAL_PROCESSING";

/// A net that is examined, and how.
pub struct Exam<'a> {
    /// The net.
    pub model: &'a Loaded,
    /// What is asked.
    pub examination: Examination,
    /// The id of the answer, where no file gives one.
    pub id: String,
    /// The name and the text of the property file.
    pub file: Option<(&'a str, &'a str)>,
    /// When to give up.
    pub limits: Limits,
    /// When the user wants it to end.
    pub cancel: Cancel,
    /// Who is notified of progress.
    pub listener: Arc<dyn Listener>,
    /// When it all began.
    pub since: Instant,
}

impl fmt::Debug for Exam<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exam").field("examination", &self.examination).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Exam<'_> {
    /// Answers all formulas.
    pub fn run(self) -> Result<Vec<Answer>, CheckError> {
        let (control, _) = control(self.limits.clone(), self.cancel.clone(), Arc::clone(&self.listener), self.since)?;
        let system: &dyn System = self.model.system.as_ref();
        let mut questions = Questions::default();
        let mut bounds = Vec::new();
        if let (Some((name, text)), true) = (self.file, self.examination.reads_file()) {
            let read = |observe: &dyn deltamark_core::Observe| contest::read(text, observe, &mut questions, &control);
            bounds = parsed(name, text, system, read).map_err(stopped_reading)?;
            let numbers = self.examination == Examination::UpperBounds;
            let other = match numbers {
                true => questions.list.first().map(|question| (&question.name, "whether something is true")),
                false => bounds.first().map(|bound| (&bound.name, "for a number")),
            };
            if let Some((id, what)) = other {
                return Err(CheckError::Misfit {
                    message: format!("`{id}` of {name} asks {what}, which `{}` does not", self.examination.name()),
                    help: "leave it out of the file, or choose another examination".into(),
                });
            }
        }
        match self.examination {
            Examination::StateSpace => self.state_space(system, &control),
            Examination::ReachabilityDeadlock => {
                let found = over_store(system, vec![Property::deadlock_free()], &control)?;
                Ok(vec![Answer::truth(self.id, truth(&found[0]).map(|free| !free))])
            }
            Examination::Reachability(_) => reachability(questions, system, &control),
            Examination::Temporal(_) => on_graph(questions, system, &control),
            Examination::UpperBounds => upper_bounds(bounds, system, &control),
            Examination::OneSafe | Examination::QuasiLiveness | Examination::StableMarking => {
                let (survey, statistics) = self.survey(system, &control)?;
                let seen = statistics.is_some();
                let violates = |holds: bool| if seen { Some(holds) } else { Some(false).filter(|_| !holds) };
                let truth = match self.examination {
                    Examination::OneSafe => violates(survey.bounds.iter().all(|(_, bound)| bound.most <= 1)),
                    Examination::QuasiLiveness => {
                        survey.dead_transitions.as_ref().and_then(|dead| match dead.is_empty() {
                            true => Some(true),
                            false => Some(false).filter(|_| seen),
                        })
                    }
                    _ => violates(survey.bounds.iter().any(|(_, bound)| bound.least == bound.most)),
                };
                Ok(vec![Answer::truth(self.id, truth)])
            }
            Examination::Liveness => Ok(vec![Answer::truth(self.id, liveness(system, &control)?)]),
        }
    }

    fn survey(&self, system: &dyn System, control: &Control) -> Result<(Survey, Option<Statistics>), CheckError> {
        let mut surveyor = Surveyor::new(system, self.model.info.counts_tokens);
        let outcome = watched(system, &mut surveyor, control)?;
        Ok((surveyor.survey(system), outcome.complete().then_some(outcome.statistics)))
    }

    fn state_space(&self, system: &dyn System, control: &Control) -> Result<Vec<Answer>, CheckError> {
        let (survey, statistics) = self.survey(system, control)?;
        // Of a coloured place the largest count of one colour, which is a place of the unfolded net.
        let coloured = |name: &str| survey.token_bounds.iter().find(|(known, _)| known == name);
        let largest = |(name, bound): &(String, deltamark_core::Bound)| match coloured(name) {
            Some((_, tokens)) => tokens.iter().map(|&(_, most)| most).max().unwrap_or(0),
            None => bound.most as u64,
        };
        let in_place = survey.bounds.iter().map(largest).max();
        let in_marking = survey.max_tokens_in_marking.map(|most| most as u64);
        let number = |id: &str, number: Option<u64>| {
            let known = number.filter(|_| statistics.is_some()).map_or(Known::Nothing, Known::Number);
            Answer { id: id.into(), figure: true, known }
        };
        Ok(vec![
            number("STATES", statistics.as_ref().map(|found| found.states)),
            number("TRANSITIONS", statistics.as_ref().map(|found| found.edges)),
            number("MAX_TOKEN_PER_MARKING", in_marking),
            number("MAX_TOKEN_IN_PLACE", in_place),
        ])
    }
}

fn truth(outcome: &PropertyOutcome) -> Option<bool> {
    match outcome.verdict {
        Verdict::Holds(_) => Some(true),
        Verdict::Violated(..) => Some(false),
        _ => None,
    }
}

fn over_store(
    system: &dyn System,
    properties: Vec<Property>,
    control: &Control,
) -> Result<Vec<PropertyOutcome>, CheckError> {
    let run = OverStore { properties: properties.into(), ..OverStore::new(StoreSpec::default(), Search::Bfs) };
    Ok(Box::new(run).make(system, control)?.outcome.properties)
}

/// Explores all states, watched.
fn watched(system: &dyn System, watcher: &mut dyn Watcher, control: &Control) -> Result<Outcome, CheckError> {
    let run =
        OverStore { explore_all: true, watchers: vec![watcher], ..OverStore::new(StoreSpec::default(), Search::Bfs) };
    Ok(Box::new(run).make(system, control)?.outcome)
}

/// The goal of a formula that asks whether some state satisfies another one, or whether all do.
fn goal(pool: &Pool, root: FormulaId) -> Option<(bool, FormulaId)> {
    let is = |id: FormulaId, truth: bool| *pool.get(id) == Formula::Truth(truth);
    let (reach, path) = match *pool.get(root) {
        Formula::Exists(path) => (true, path),
        Formula::All(path) => (false, path),
        _ => return None,
    };
    let inner = match *pool.get(path) {
        Formula::Until(through, goal) if reach && is(through, true) => goal,
        Formula::Release(end, inside) if !reach && is(end, false) => inside,
        _ => return None,
    };
    simple(pool, inner).then_some((reach, inner))
}

fn reachability(questions: Questions, system: &dyn System, control: &Control) -> Result<Vec<Answer>, CheckError> {
    let goals: Option<Vec<(bool, FormulaId)>> =
        questions.list.iter().map(|question| goal(&questions.pool, question.root)).collect();
    let Some(goals) = goals else { return on_graph(questions, system, control) };
    let Questions { atoms, pool, list } = questions;
    let (atoms, pool) = (Arc::new(atoms), Arc::new(pool));
    let property = |(question, (reach, root)): (&crate::temporal::Question, (bool, FormulaId))| {
        let formula = Box::new(StateFormula { atoms: Arc::clone(&atoms), pool: Arc::clone(&pool), root });
        let goal = if reach { Goal::Reachable(formula) } else { Goal::Invariant(formula) };
        Property { name: question.name.clone(), text: question.text.clone(), goal }
    };
    let properties = list.iter().zip(goals).map(property).collect();
    let found = over_store(system, properties, control)?;
    Ok(found.iter().map(|outcome| Answer::truth(outcome.name.clone(), truth(outcome))).collect())
}

fn on_graph(questions: Questions, system: &dyn System, control: &Control) -> Result<Vec<Answer>, CheckError> {
    let run = OnGraph {
        questions: Arc::new(questions),
        properties: Arc::new([]),
        traces: false,
        graph: None,
        threads: None,
        falls_back: true,
        why: String::new(),
    };
    let found = Box::new(run).make(system, control)?.outcome.properties;
    Ok(found.iter().map(|outcome| Answer::truth(outcome.name.clone(), truth(outcome))).collect())
}

/// Whether from every state every transition can fire some day.
fn liveness(system: &dyn System, control: &Control) -> Result<Option<bool>, CheckError> {
    let Some(observe) = system.observe() else { return Ok(None) };
    let mut questions = Questions::default();
    for name in observe.action_names() {
        let Some(fires) = observe.fireable(&name) else { continue };
        questions.atoms.add(Atom::Fireable(vec![fires]));
    }
    let count = questions.atoms.list.len() as u32;
    let inner = Control { cancel: control.cancel.below(), ..control.clone() };
    let mut log = KripkeLog::new(Arc::new(questions), false, 1, &inner);
    let run = OverStore {
        threads: Some(1),
        explore_all: true,
        watchers: vec![&mut log],
        ..OverStore::new(StoreSpec::named(NUMBERING), Search::Bfs)
    };
    Box::new(run).make(system, &inner)?;
    let Some((kripke, _)) = log.kripke() else { return Ok(None) };
    let mut pool = Pool::new();
    let mut roots = Vec::new();
    for atom in 0..count {
        let fires = pool.atom(atom);
        let some_day = pool.finally(fires);
        let can = pool.exists(some_day);
        let always = pool.always(can);
        roots.push(pool.all(always));
    }
    let mut evaluator = Evaluator::new(&kripke, pool, control);
    for root in roots {
        match evaluator.holds(root) {
            Ok(true) => evaluator.forget(),
            Ok(false) => return Ok(Some(false)),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(true))
}

/// Keeps the largest sums.
struct Largest {
    bounds: Vec<Bound>,
    most: Vec<i64>,
}

impl Observer for Largest {
    fn expanded(&mut self, system: &dyn System, scratch: &mut Scratch, block: &Block, batch: &Batch, _: &[Insert]) {
        self.expanded_last(system, scratch, block, batch);
    }

    fn expanded_last(&mut self, system: &dyn System, scratch: &mut Scratch, block: &Block, _: &Batch) {
        let Some(observe) = system.observe() else { return };
        let mut values = [0; BLOCK];
        for (bound, most) in self.bounds.iter().zip(&mut self.most) {
            let mut sums = [0i64; BLOCK];
            for &place in &bound.places {
                observe.read_block(scratch, block, place, &mut values);
                sums.iter_mut().zip(&values).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
            }
            *most = sums[..block.len()].iter().copied().fold(*most, i64::max);
        }
    }
}

impl Watcher for Largest {
    fn begin(&mut self, _: &dyn System, _: &StoreSpec, _: &dyn Store, _: &Control) -> Result<(), CheckError> {
        self.most = vec![0; self.bounds.len()];
        Ok(())
    }
}

fn upper_bounds(bounds: Vec<Bound>, system: &dyn System, control: &Control) -> Result<Vec<Answer>, CheckError> {
    let mut largest = Largest { most: Vec::new(), bounds };
    let outcome = watched(system, &mut largest, control)?;
    let complete = outcome.stopped_by.is_none_or(|stop| stop == Stop::Answered);
    let known = |most: i64| if complete { Known::Number(most as u64) } else { Known::Nothing };
    let answers = largest.bounds.iter().zip(&largest.most);
    Ok(answers.map(|(bound, &most)| Answer { id: bound.name.clone(), figure: false, known: known(most) }).collect())
}
