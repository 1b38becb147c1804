//! A run that answers one formula of CTL while states are found.
//!
//! In: a formula that [is local](deltamark_logic::local). Out: a verdict, with a path as far as one shows it, and the
//! figures of the states that were found. What stays true: the answer depends on no state that was not found; where an
//! atom may lack a value, which violates a formula wherever it is, all states would have to be found, so the graph
//! answers.

use super::fly::{refused, serves, unanswered};
use super::store::NUMBERING;
use super::{Ran, Run, growth};
use crate::check::{CheckError, threads, traffic};
use crate::report::{Route, RouteKind};
use crate::temporal::Questions;
use crate::temporal::answer::{ByStore, Tracer};
use crate::temporal::fly::may_lack_values;
use deltamark_core::{Control, Event, PropertyOutcome, Stop, Verdict};
use deltamark_logic::local::{Local, OnDemand};
use deltamark_search::{Search, Task, Unfolding, unfit_for_unfolding};
use deltamark_store::StoreSpec;
use std::sync::Arc;

/// A local evaluation of one formula.
pub(crate) struct Locally {
    pub questions: Arc<Questions>,
    pub index: usize,
    pub store: StoreSpec,
    /// Why the formula is answered this way: a clause.
    pub why: String,
}

/// The states of a model, for a formula.
struct Space<'s, 'a> {
    unfolding: Unfolding<'a>,
    questions: &'s Questions,
    initial: Vec<u32>,
}

impl OnDemand for Space<'_, '_> {
    fn successor(&mut self, state: u32, index: usize) -> Result<Option<u32>, Stop> {
        self.unfolding.successor(state, index)
    }

    fn atom(&mut self, atom: u32, state: u32) -> Result<bool, Stop> {
        let atom = &self.questions.atoms.list[atom as usize];
        let look = |system: &dyn deltamark_core::System, scratch: &mut _, block: &_, dead: bool| {
            atom.value(system, scratch, block, u64::from(dead))
        };
        // What has no value here may only have reached a bound: others were looked for beforehand.
        self.unfolding.look(state, look)?.map(|mask| mask & 1 == 1).map_err(|_| Stop::Count)
    }

    fn is_initial(&self, state: u32) -> bool {
        self.initial.contains(&state)
    }

    fn states(&self) -> u32 {
        u32::try_from(self.unfolding.states()).unwrap_or(u32::MAX)
    }
}

impl Run for Locally {
    fn make(self: Box<Self>, system: &dyn deltamark_core::System, control: &Control) -> Result<Ran, CheckError> {
        let question = &self.questions.list[self.index];
        let spec = if self.store.is_auto() { StoreSpec::named(NUMBERING) } else { self.store.clone() };
        let route = Some(Route { kind: RouteKind::Fly, why: self.why.clone() });
        let none = |stop| {
            let ran = unanswered(&self.questions, self.index, stop);
            Ran { store: spec.clone(), search: Search::Dfs.into(), route: route.clone(), ..ran }
        };
        let atoms: Vec<usize> = self.questions.atoms_of(question.root).into_iter().map(|atom| atom as usize).collect();
        match may_lack_values(&self.questions, &atoms, system, control) {
            Ok(false) => {}
            Ok(true) => {
                return Err(CheckError::Misfit {
                    message: format!(
                        "`{}` may have no value in some state, so all of them must be seen",
                        question.text
                    ),
                    help: "choose `--route graph`".into(),
                });
            }
            Err(stop) => return Ok(none(stop)),
        }
        if !serves(&spec.name) {
            return Err(refused(&spec, "it does not give back every state by its id"));
        }
        let one = threads(Some(1), &spec, Search::Dfs)?;
        let store = deltamark_store::build(&spec, system, traffic(Search::Dfs, one, control), control.budget.clone())
            .map_err(CheckError::Store)?;
        if let Some(why) = unfit_for_unfolding(store.as_ref()) {
            return Err(CheckError::Misfit {
                message: format!("the store `{spec}` cannot serve a formula of CTL on the fly: {why}"),
                help: "leave `--store` out".into(),
            });
        }
        let store = store.as_ref();
        let task = Task { system, store, properties: &[], control, explore_all: true, observer: None };
        let mut space = Space { unfolding: Unfolding::new(task), questions: &self.questions, initial: Vec::new() };
        let evaluated = evaluate(&mut space, &self.questions, self.index, control);
        let (verdict, untraced, stopped_by) = match evaluated {
            Err(stop) => (Verdict::Unknown, None, stop),
            Ok((holds, path)) => {
                let traced = match path {
                    Ok(Some(path)) => ByStore { system, store }.trace(&path, control)?.map(Some),
                    Ok(None) => Ok(None),
                    Err(stop) => Err(stop),
                };
                let untraced = traced.as_ref().err().copied().filter(|_| !holds);
                let trace = traced.unwrap_or_default();
                let verdict = match holds {
                    true => Verdict::Holds(trace),
                    false => {
                        let message = (trace.is_none() && untraced.is_none())
                            .then(|| "it is false in an initial state, and no single path shows that".into());
                        Verdict::Violated(trace, message)
                    }
                };
                (verdict, untraced, Stop::Answered)
            }
        };
        control.listener.event(&Event::Answered(&question.name, verdict.word()));
        let mut outcome = space.unfolding.finish(stopped_by);
        let (name, text) = (question.name.clone(), question.text.clone());
        outcome.properties = vec![PropertyOutcome { name, text, verdict, untraced, probed: false }];
        let ran = none(stopped_by);
        Ok(Ran { growth: growth(system, outcome.stopped_by), outcome, ..ran })
    }
}

/// Whether a formula holds, and what shows it or why that was not found.
type Evaluated = (bool, Result<Option<deltamark_logic::kripke::NumberedPath>, Stop>);

fn evaluate(
    space: &mut Space<'_, '_>,
    questions: &Questions,
    index: usize,
    control: &Control,
) -> Result<Evaluated, Stop> {
    space.initial = space.unfolding.begin()?;
    let initial = space.initial.clone();
    let local = Local::new(&questions.pool, questions.list[index].root, space, control)?;
    let mut local = local.expect("only what is local is evaluated so");
    let mut shown = initial[0];
    let mut holds = true;
    for state in initial {
        holds = local.holds(state)?;
        if !holds {
            shown = state;
            break;
        }
    }
    Ok((holds, local.witness(shown, holds)))
}
