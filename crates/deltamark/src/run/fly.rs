//! A run that answers one formula of LTL on the fly, in the product of the model and an automaton.
//!
//! In: a formula, a store or the wish that one be chosen. Out: a verdict, and the figures of the product. What stays
//! true: the formula "holds" only if every reachable state of the product was expanded over an exact store and no
//! accepted path was found; a path is one of the model.
//!
//! | automaton of the negation | search | stores |
//! |---|---|---|
//! | accepts in states that accept everything | the one that was asked for, with its threads | all |
//! | any other | for accepting cycles, depth-first or in passes | those that recall every state by its id |
//!
//! Depth-first ends at the first cycle, but expands states one by one; in passes blocks are expanded, several times as
//! fast, and nothing is found before all states are. So it goes depth-first for the first [`NEAR`] states, and then in
//! passes; over the stores that rebuild states in passes from the beginning, since to rebuild one by one is slow. Who
//! chooses the search gets that one. Where there is no memory for all states, the rest is searched depth-first. Fair
//! cycles are searched for depth-first.

use super::formulas::OnGraph;
use super::store::{NUMBERING, OverStore};
use super::{Ran, Run, growth};
use crate::auto::StoreChoice;
use crate::check::{CheckError, threads, traffic};
use crate::report::{Route, RouteKind};
use crate::temporal::Questions;
use crate::temporal::fly::Fly;
use crate::temporal::fly::fairness::Fair;
use deltamark_core::{
    Control, Event, Limits, Outcome, Property, PropertyOutcome, Silent, Slot, Statistics, Stop, System, Verdict,
};
use deltamark_search::{
    Acceptance, Accepted, Fairness, Search, Task, Threads, run_accepting, run_cndfs, run_owcty, unfit,
};
use deltamark_store::{CATALOGUE, StoreInfo, StoreSpec};
use std::sync::Arc;

/// The stores that are tried in turn where one is to be chosen and cycles are searched for: the fastest, and the one
/// with most room.
const FOR_CYCLES: [&str; 2] = [NUMBERING, "compact"];

/// The most states of the product that are found depth-first, before all are explored in passes.
const NEAR: u64 = 1 << 17;

/// A search for accepting cycles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CycleSearch {
    /// Depth-first, by one thread.
    Components,
    /// Depth-first, by all threads.
    Nested,
    Passes,
}

impl CycleSearch {
    /// The order in which states are found.
    fn order(self) -> Search {
        match self {
            CycleSearch::Components | CycleSearch::Nested => Search::Dfs,
            CycleSearch::Passes => Search::Bfs,
        }
    }
}

/// A run over the product for one formula.
pub(crate) struct OnTheFly {
    pub questions: Arc<Questions>,
    pub index: usize,
    pub store: StoreSpec,
    pub search: Search,
    /// Whether the user chose the search.
    pub ordered: bool,
    pub threads: Option<usize>,
    pub explain: bool,
    /// Which paths count; all, if there is none.
    pub fair: Option<Fair>,
    /// Why the formula is answered this way: a clause.
    pub why: String,
}

/// A verdict that a cycle shows, and why it comes without one.
type FoundByCycle = (Verdict, Option<Stop>);

impl Run for OnTheFly {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let fly = match Fly::new(system, &self.questions, self.index, self.fair, control)? {
            Ok(fly) => fly,
            Err(stop) => {
                let (store, search) = (self.store.clone(), self.search.into());
                let route = Some(Route { kind: RouteKind::Fly, why: self.why.clone() });
                return Ok(Ran { store, search, route, ..unanswered(&self.questions, self.index, stop) });
            }
        };
        let faults = Property { name: fly.question().name.clone(), ..Property::fault_free() };
        // Several threads are depth-first in the search for cycles alone, which finds faults too.
        let several = self.threads.is_some_and(|threads| threads > 1) && self.search == Search::Dfs;
        let (mut ran, mut answered) = if fly.needs_cycles || several {
            self.by_cycles(&fly, [faults], control)?
        } else {
            let run = OverStore {
                properties: Arc::new([faults]),
                threads: self.threads,
                explain: self.explain,
                ..OverStore::new(self.store.clone(), self.search)
            };
            (Box::new(run).make(&fly.product, control)?, None)
        };
        let Some(PropertyOutcome { verdict, untraced, .. }) = ran.outcome.properties.pop() else {
            unreachable!("one property was asked")
        };
        if let Verdict::Violated(trace, message) = &verdict {
            let (verdict, further) = fly.faulty(trace.as_ref(), message.clone(), control)?;
            answered = Some((verdict, untraced.or(further)));
        }
        let (verdict, untraced) = answered.unwrap_or((verdict, untraced));
        let verdict = if matches!(verdict, Verdict::Holds(_)) { Verdict::Holds(None) } else { verdict };
        if !matches!(verdict, Verdict::Violated(..)) {
            control.listener.event(&Event::Answered(&fly.question().name, verdict.word()));
        }
        let question = fly.question();
        let (name, text) = (question.name.clone(), question.text.clone());
        ran.outcome.properties = vec![PropertyOutcome { name, text, verdict, untraced, probed: false }];
        ran.route.get_or_insert(Route { kind: RouteKind::Fly, why: self.why });
        Ok(ran)
    }
}

impl OnTheFly {
    /// A search for accepting cycles. What is found by a cycle is the second part.
    fn by_cycles(
        &self,
        fly: &Fly<'_>,
        properties: [Property; 1],
        control: &Control,
    ) -> Result<(Ran, Option<FoundByCycle>), CheckError> {
        if self.fair.is_some() && self.threads.is_some_and(|threads| threads > 1) {
            return Err(CheckError::Threads(format!(
                "fair cycles are searched for by one thread, and the violation of `{}` is such a one",
                fly.question().text
            )));
        }
        let attempts = self.attempts(control);
        for (number, Attempt { spec, way, states }) in attempts.iter().enumerate() {
            let limits = Limits { states: states.or(control.limits.states), ..control.limits.clone() };
            let limited = Control { limits, ..control.clone() };
            let accepted = search(fly, spec, (*way, self.threads), &properties, &limited)?;
            let full = match accepted.outcome.stopped_by {
                Some(Stop::Memory) => true,
                Some(Stop::States) => states.is_some(),
                _ => false,
            };
            if full && number + 1 < attempts.len() {
                continue;
            }
            let mut route = self.why.clone();
            if attempts[0].states.is_some() && number > 0 {
                route.push_str(match way {
                    CycleSearch::Passes => "; in passes, since the first states did not decide it depth-first",
                    _ => "; depth-first, since there is no memory for all states",
                });
            }
            let found = match &accepted.lasso {
                Some(Ok(trace)) => Some(fly.refuted(fly.below(trace), control)?),
                Some(Err(stop)) => Some((Verdict::Violated(None, None), Some(*stop))),
                None => None,
            };
            if found.is_some() {
                control.listener.event(&Event::Answered(&fly.question().name, "violated"));
            }
            let why = match spec.name.as_str() {
                NUMBERING => "the product fits into memory, and nothing is faster",
                _ => "the product did not fit into memory in a faster store",
            };
            let choice = StoreChoice { store: spec.clone(), why: why.into(), trials: Vec::new() };
            let ran = Ran {
                growth: growth(&fly.product, accepted.outcome.stopped_by),
                outcome: accepted.outcome,
                store: spec.clone(),
                choice: self.store.is_auto().then_some(choice),
                search: way.order().into(),
                sweep: None,
                reduction: None,
                graph: None,
                route: Some(Route { kind: RouteKind::Fly, why: route }),
            };
            return Ok((ran, found));
        }
        unreachable!("the last store that is tried is taken")
    }

    /// What is tried in turn.
    fn attempts(&self, control: &Control) -> Vec<Attempt> {
        let candidates = match self.store.is_auto() {
            true => FOR_CYCLES.map(StoreSpec::named).to_vec(),
            false => vec![self.store.clone()],
        };
        let attempt = |spec: &StoreSpec, way| Attempt { spec: spec.clone(), way, states: None };
        let (first, last) = (&candidates[0], &candidates[candidates.len() - 1]);
        let way = self.way(first);
        // A limit of the user's own that is reached first ends the run.
        let may_go_on = control.limits.states.is_none_or(|most| most > NEAR);
        if way == CycleSearch::Passes || self.ordered || self.fair.is_some() || !may_go_on {
            return candidates.iter().map(|spec| attempt(spec, self.way(spec))).collect();
        }
        let mut attempts = vec![Attempt { states: Some(NEAR), ..attempt(first, way) }];
        attempts.extend(candidates.iter().map(|spec| attempt(spec, CycleSearch::Passes)));
        // Where there is no memory for all states, a cycle may still be near enough.
        attempts.push(attempt(last, way));
        attempts
    }

    /// How cycles are searched for over a store at first.
    fn way(&self, store: &StoreSpec) -> CycleSearch {
        let several = self.threads.is_some_and(|threads| threads > 1);
        match self.search {
            _ if self.fair.is_some() => CycleSearch::Components,
            Search::Bfs if rebuilds(store) || self.ordered => CycleSearch::Passes,
            _ if several => CycleSearch::Nested,
            _ => CycleSearch::Components,
        }
    }
}

/// A search over a store, up to this many states.
struct Attempt {
    spec: StoreSpec,
    way: CycleSearch,
    states: Option<u64>,
}

/// No answer to a question, for this reason.
pub(super) fn unanswered(questions: &Questions, index: usize, stop: Stop) -> Ran {
    let question = &questions.list[index];
    let (name, text) = (question.name.clone(), question.text.clone());
    let properties = vec![PropertyOutcome { name, text, verdict: Verdict::Unknown, untraced: None, probed: false }];
    Ran {
        outcome: Outcome {
            properties,
            stopped_by: Some(stop),
            statistics: Statistics::default(),
            store_bytes: deltamark_core::Bytes::new(),
            guarantee: deltamark_core::Guarantee::Exact,
            warning: None,
        },
        store: StoreSpec::default(),
        choice: None,
        search: Search::default().into(),
        growth: None,
        sweep: None,
        reduction: None,
        graph: None,
        route: None,
    }
}

/// The most states of the product that are found before the graph is explored instead.
const FIRST: u64 = 1 << 16;

/// A run that answers one formula on the fly while that is cheap, and then on the graph: a violation that is near is
/// found at once, and where all states must be seen the graph, whose states are expanded in blocks, is several times as
/// fast. What was found in vain is a part of what follows, and is not counted.
pub(crate) struct FirstOnTheFly {
    pub fly: OnTheFly,
    pub then: OnGraph,
}

impl Run for FirstOnTheFly {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let FirstOnTheFly { fly, then } = *self;
        if control.limits.states.is_some_and(|most| most <= FIRST) {
            return Box::new(then).make(system, control);
        }
        let limits = Limits { states: Some(FIRST), ..control.limits.clone() };
        let first = Control { limits, listener: Arc::new(Silent), ..control.clone() };
        let ran = Box::new(fly).make(system, &first)?;
        // Its automaton may be too large as a whole; on the graph the parts of a conjunction are answered one by one.
        if !matches!(ran.outcome.stopped_by, Some(Stop::States | Stop::Memory | Stop::Count)) {
            for answer in &ran.outcome.properties {
                control.listener.event(&Event::Answered(&answer.name, answer.verdict.word()));
            }
            return Ok(ran);
        }
        drop(ran);
        Box::new(then).make(system, control)
    }
}

/// Searches the product for accepting cycles over a store, in a way and by the threads that were asked for.
fn search(
    fly: &Fly<'_>,
    spec: &StoreSpec,
    (way, asked): (CycleSearch, Option<usize>),
    properties: &[Property],
    control: &Control,
) -> Result<Accepted, CheckError> {
    if !serves(&spec.name) {
        return Err(refused(spec, "it does not give back every state by its id"));
    }
    // A store takes as many threads depth-first as it does breadth-first, if it does not rely on levels.
    let asked_of = if way == CycleSearch::Components || rebuilds(spec) { way.order() } else { Search::Bfs };
    let threads: Threads = threads(asked.or(Some(1)), spec, asked_of)?;
    let store =
        deltamark_store::build(spec, &fly.product, traffic(way.order(), threads, control), control.budget.clone())
            .map_err(CheckError::Store)?;
    if let Some(why) = unfit(store.as_ref()) {
        return Err(refused(spec, why));
    }
    let product = &fly.product;
    let of = |action| product.sets(action);
    let groups = |action, groups: &mut Vec<u32>| {
        if let (Some(grouping), Some(below)) = (&fly.fairness, fly.product.below(action)) {
            grouping.append(below, groups);
        }
    };
    let fairness = fly.fairness.as_ref().map(|grouping| Fairness {
        strength: grouping.strength,
        groups: grouping.groups,
        of: &groups,
    });
    let recurs = |state: &[Slot]| product.recurs(state);
    let acceptance = Acceptance { all: fly.product.all_sets(), of: &of, recurs: &recurs, fairness };
    let task =
        Task { system: &fly.product, store: store.as_ref(), properties, control, explore_all: false, observer: None };
    Ok(match way {
        CycleSearch::Passes => run_owcty(task, &acceptance, threads),
        CycleSearch::Nested => run_cndfs(task, &acceptance, threads),
        CycleSearch::Components => run_accepting(task, &acceptance),
    })
}

/// Whether a store rebuilds states when they are asked for.
fn rebuilds(store: &StoreSpec) -> bool {
    StoreInfo::by_name(&store.name).is_some_and(|info| info.rebuilds && info.recalls)
}

/// A store that cannot serve a search for cycles, and why.
pub(super) fn refused(spec: &StoreSpec, why: &str) -> CheckError {
    let able: Vec<&str> = CATALOGUE.iter().filter(|info| info.recalls).map(|info| info.name).collect();
    CheckError::Misfit {
        message: format!("the store `{spec}` cannot serve this formula on the fly: {why}"),
        help: format!("choose one of {}, or leave `--store` out", able.join(", ")),
    }
}

/// Whether a store recalls every state by its id, in any order of insertion.
pub(super) fn serves(name: &str) -> bool {
    StoreInfo::by_name(name).is_some_and(|info| info.recalls)
}
