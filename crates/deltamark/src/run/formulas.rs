//! A run that answers formulas of temporal logic on the graph of all states.
//!
//! In: formulas, and properties of single states, which the same run answers. Out: the outcome of the search, and a
//! verdict for each formula. What stays true: formulas are answered if and only if every reachable state was expanded.

use super::fly::OnTheFly;
use super::store::{NUMBERING, OverStore};
use super::walk::AlongGraph;
use super::{GraphTarget, Ran, Run};
use crate::check::{CheckError, threads};
use crate::condensed::Condensed;
use crate::plan::merged;
use crate::report::{Route, RouteKind};
use crate::temporal::Questions;
use crate::temporal::answer::answers;
use crate::temporal::offline::{self, ByGraph};
use crate::temporal::record::KripkeLog;
use deltamark_core::{Control, Outcome, Property, PropertyOutcome, Stop, System, Verdict};
use deltamark_graph::Way;
use deltamark_logic::temporal::Logic;
use deltamark_search::Search;
use deltamark_store::StoreSpec;
use std::sync::Arc;

/// A run over `plain`, whose ids are numbers, by one thread, which expands them in order; several threads answer the
/// formulas.
pub(crate) struct OnGraph {
    pub questions: Arc<Questions>,
    pub properties: Arc<[Property]>,
    /// Whether answers come with paths.
    pub traces: bool,
    pub graph: Option<GraphTarget>,
    /// How many threads the user asked for: formulas are shared among them.
    pub threads: Option<usize>,
    /// Whether formulas of LTL are answered on the fly where the graph does not fit into memory.
    pub falls_back: bool,
    /// Why they are to be answered on the graph: a clause.
    pub why: String,
}

impl Run for OnGraph {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        // The recorder ends the run where it has no room, without ending what comes after.
        let inner = Control { cancel: control.cancel.below(), ..control.clone() };
        let OnGraph { questions, properties, traces, graph, threads: asked, falls_back, why } = *self;
        let plain = StoreSpec::named(NUMBERING);
        let sharing = threads(asked, &plain, Search::Bfs)?.count;
        let falls_back = falls_back && graph.is_none();
        let mut log = KripkeLog::new(Arc::clone(&questions), traces, sharing, &inner);
        let run = OverStore {
            properties: Arc::clone(&properties),
            threads: Some(1),
            explore_all: true,
            watchers: vec![&mut log],
            graph,
            ..OverStore::new(plain, Search::Bfs)
        };
        let mut ran = Box::new(run).make(system, &inner)?;
        if let Some(stop) = log.failed().filter(|_| !control.cancel.is_cancelled()) {
            ran.outcome.stopped_by = Some(stop);
        }
        match log.answers(system)? {
            Some((answers, stopped)) => {
                ran.outcome.properties.extend(answers);
                ran.outcome.stopped_by = ran.outcome.stopped_by.or(stopped).or_else(|| log.failed());
            }
            None => {
                ran.outcome.properties.extend(unanswered(&questions));
                ran.outcome.stopped_by = ran.outcome.stopped_by.or(log.failed()).or(Some(Stop::Memory));
            }
        }
        drop(log);
        ran.route = Some(Route { kind: RouteKind::Graph, why });
        if falls_back && ran.outcome.stopped_by == Some(Stop::Memory) {
            return fallen_back(ran, &questions, &properties, system, control);
        }
        Ok(ran)
    }
}

/// Answers on the fly what the graph did not answer for a lack of memory.
fn fallen_back(
    mut ran: Ran,
    questions: &Arc<Questions>,
    properties: &Arc<[Property]>,
    system: &dyn System,
    control: &Control,
) -> Result<Ran, CheckError> {
    let is_open = |outcome: &PropertyOutcome| matches!(outcome.verdict, Verdict::Unknown);
    let answered = |outcome: &PropertyOutcome| !is_open(outcome);
    let mut found = std::mem::take(&mut ran.outcome.properties);
    let (states, formulas) = found.split_at_mut(properties.len());
    if states.iter().any(is_open) {
        let run = OverStore { properties: Arc::clone(properties), ..OverStore::new(StoreSpec::default(), Search::Bfs) };
        let mut further = Box::new(run).make(system, control)?;
        for (outcome, new) in states.iter_mut().zip(std::mem::take(&mut further.outcome.properties)) {
            if is_open(outcome) {
                *outcome = new;
            }
        }
        ran = merged(Ran { outcome: Outcome { stopped_by: None, ..ran.outcome }, ..ran }, further);
    }
    for (index, outcome) in formulas.iter_mut().enumerate() {
        if !is_open(outcome) || questions.list[index].logic != Logic::Ltl || control.stop_without_memory().is_some() {
            continue;
        }
        let run = OnTheFly {
            questions: Arc::clone(questions),
            index,
            store: StoreSpec::default(),
            search: Search::Bfs,
            ordered: false,
            threads: None,
            explain: false,
            fair: None,
            why: "the graph of all states did not fit into memory".into(),
        };
        let mut further = Box::new(run).make(system, control)?;
        if let Some(new) = further.outcome.properties.pop() {
            *outcome = new;
        }
        ran = merged(Ran { outcome: Outcome { stopped_by: None, ..ran.outcome }, ..ran }, further);
    }
    let stopped_by = control.stop_without_memory().or(ran.outcome.stopped_by).unwrap_or(Stop::Memory);
    let complete = found.iter().all(answered);
    ran.outcome.stopped_by = if complete { Some(Stop::Answered) } else { Some(stopped_by) };
    ran.outcome.properties = found;
    Ok(ran)
}

/// No answer to any formula.
fn unanswered(questions: &Questions) -> impl Iterator<Item = PropertyOutcome> + '_ {
    questions.list.iter().map(|question| PropertyOutcome {
        name: question.name.clone(),
        text: question.text.clone(),
        verdict: Verdict::Unknown,
        untraced: None,
        probed: false,
    })
}

/// The same along a graph that was written before, instead of a search.
pub(crate) struct OnWrittenGraph<'r> {
    pub graph: &'r Condensed,
    pub way: Way,
    pub questions: Arc<Questions>,
    pub properties: Vec<Property>,
    /// How many threads share the formulas.
    pub threads: usize,
}

impl Run for OnWrittenGraph<'_> {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let OnWrittenGraph { graph, way, questions, properties, threads } = *self;
        let along = AlongGraph { graph, way, properties, surveyor: None };
        let mut ran = Box::new(along).make(system, control)?;
        let stopped = match offline::read(graph, way, &questions, system, control)? {
            Ok((kripke, undefined)) => {
                let tracer = ByGraph { system, condensed: graph };
                let (found, stopped) =
                    answers(&questions, &kripke, &undefined, system, Some(&tracer), (threads, control))?;
                ran.outcome.properties.extend(found);
                stopped
            }
            Err(stop) => {
                ran.outcome.properties.extend(unanswered(&questions));
                Some(stop)
            }
        };
        ran.outcome.stopped_by = ran.outcome.stopped_by.or(stopped);
        Ok(ran)
    }
}
