//! How `--reduce auto` decides.
//!
//! In: a run over a store. Out: its outcome, reduced or not. What stays true: it is decided by counts, not by time, so the same run decides the same again; what is spent on deciding
//! is bounded by a part of what loading the model and exploring it has taken until then, beside a few milliseconds.
//!
//! # Nets
//! ```text
//!   the whole net ──── `n` states ──► make the net smaller, look at stubborn sets ─┬─ no gain ─► go on
//!                                                                                   └─ a gain ──► begin again, reduced
//! ```
//! The whole net is explored as if nothing were to be decided. Once it has as many states as [`FIRST`], and as many as it takes for the cost of a step to be
//! a [`PART`] of what was spent, the step is made, in the middle of the run, which waits. Where it finds no gain the run goes on, and has lost nothing; where it finds
//! one the run is given up for a reduced one, over which stubborn sets are looked at in the same way. Costs are in units of about a nanosecond,
//! and known before: from the number of arcs, or as a limit on the entries of lists that are looked at.
//!
//! # DVE models
//! Their layout never changes, so that samples can be taken while they are explored: stubborn sets are looked at in the course of the run, as over a net.
//!
//! # Other systems
//! The system is in use while it is explored, and there is no second one. So the first states are explored as a sample; then stubborn sets are looked at; then the run is made.
//!
//! # Which is better
//! A smaller net has at most as many states as the whole one, and fewer places. It is always taken where little would be lost, elsewhere if rules that leave states away were used at
//! many places. Stubborn sets are taken if what they leave of all states up to some distance is few enough for what a state with them costs. They leave a larger part of the first levels than of all states, as a rule.

use super::{Candidate, Reduced};
use crate::check::CheckError;
use crate::run::paced::Paced;
use crate::run::smaller::{Smaller, net_of};
use crate::run::store::OverStore;
use crate::run::{Ran, Run, growth};
use deltamark_core::{Allowance, Cancel, Control, Limits, Manner, Silent, Stop, Stubborn, System};
use deltamark_dve::DveSystem;
use deltamark_nets::{Net, NetSystem};
use deltamark_search::Search;
use deltamark_store::StoreSpec;
use std::sync::Arc;

/// The states that are explored before anything is decided.
const FIRST: u64 = 2_048;
/// The most pairs of dependent actions where nobody has asked for stubborn sets.
pub(super) const PAIRS: usize = 100_000;
/// What a state costs beside one unit for each action.
const COST: u64 = 150;
/// What it costs to look at an entry when sets are found, comparing keys above all.
const ENTRY: f64 = 10.0;
/// Finding sets in a sample may look at this part of the entries that the states of one cost, at most.
const SHARE: u64 = 5;
/// Stubborn sets are taken if a run with them is expected to take this part of the time, at most.
const GAIN: f64 = 1.0;
/// What may be spent whatever the run has taken.
const FREE: u64 = 3_000_000;
/// What may be spent beside that is this part of what the run has taken.
const PART: u64 = 8;
/// What loading takes, an arc.
const LOAD: u64 = 1_000;
/// What making a net smaller takes, an arc; and what an entry takes that it looks at.
const REDUCE: u64 = 1_000;
const REDUCE_ENTRY: u64 = 5;
/// What finding out what the transitions of a net need and change takes, an arc.
const FACTS: u64 = 300;
/// What it takes for a DVE model, a step.
const STEP_FACTS: u64 = 10_000;
/// A smaller net is taken late if a rule that skips states was used at least once for this number of places.
const RARE: usize = 8;

/// What is spent on a run, and on deciding.
struct Ledger {
    /// What a state costs.
    state: u64,
    loading: u64,
    spent: u64,
}

/// What is to be found out next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextQuestion {
    Structure,
    Sets,
    None,
}

/// What was found out.
enum Discovery<'s> {
    Nothing,
    /// A smaller net.
    Smaller(Box<Smaller<'s>>),
    /// That stubborn sets are better, and why.
    Sets(String),
    /// A run with stubborn sets, which has ended; and whether it keeps deadlocks.
    Ended(Box<Ran>, bool),
}

fn arcs(net: &Net) -> u64 {
    let of = |transition: &deltamark_nets::Transition| {
        transition.inputs.len() + transition.outputs.len() + transition.reads.len() + transition.inhibitors.len()
    };
    net.transitions.iter().map(|transition| 1 + of(transition) as u64).sum()
}

impl Ledger {
    fn of(net: &Net) -> Self {
        // Wide states take long to hash and to copy.
        let state = COST + net.transitions.len() as u64 / 8 + net.places.len() as u64;
        Ledger { state, loading: LOAD * arcs(net), spent: 0 }
    }

    /// How many states must have been explored before this may be spent.
    fn when(&self, more: u64) -> u64 {
        let taken = (self.spent + more).saturating_sub(FREE).saturating_mul(PART);
        (taken.saturating_sub(self.loading) / self.state).max(FIRST)
    }
}

/// Whether samples of a system can be taken while it is explored.
fn has_one_layout(system: &dyn System) -> bool {
    let model = system.as_any().and_then(|any| any.downcast_ref::<DveSystem>());
    model.is_some_and(|model| std::ptr::addr_eq(system, std::ptr::from_ref(model)))
}

/// Whether a run ended by itself, so that nothing else would end otherwise.
fn has_ended(ran: &Ran) -> bool {
    matches!(ran.outcome.stopped_by, None | Some(Stop::Answered | Stop::Depth))
}

impl Reduced {
    /// A run of its own choice.
    pub(super) fn decide(&self, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        // A run of few states needs no decision.
        if control.limits.states.is_some_and(|most| most <= FIRST) {
            return self.again(false).make(system, control);
        }
        // Other stores than this one may look at states before the run, and trials after it, which would count.
        if self.explain || !self.store.is_auto() && self.store != StoreSpec::named("plain") {
            let ran = self.again(true).make(system, &first(control, Arc::clone(&control.listener)))?;
            if ran.outcome.stopped_by != Some(Stop::States) {
                return Ok(Ran { growth: growth(system, ran.outcome.stopped_by), ..ran });
            }
        }
        match net_of(system) {
            Some(net) if !net.net().has_priorities() => self.decide_on_net(system, net.net(), control),
            None if has_one_layout(system) => self.decide_in_its_course(system, control),
            _ => self.decide_beforehand(system, control),
        }
    }

    /// The run over a net.
    fn decide_on_net(&self, system: &dyn System, net: &Net, control: &Control) -> Result<Ran, CheckError> {
        let mut ledger = Ledger::of(net);
        let mut smaller: Option<Smaller<'_>> = None;
        let mut question = NextQuestion::Structure;
        loop {
            let (ran, found) = self.look(system, smaller.as_ref(), &mut ledger, question, control)?;
            let base = Candidate { smaller: smaller.as_ref(), stubborn: false };
            let with_sets = Candidate { stubborn: true, ..base };
            let large = || format!("auto: the model has more than {FIRST} states");
            match found {
                Discovery::Nothing if smaller.is_none() => return Ok(ran),
                Discovery::Nothing => return self.reported(ran, &base, system, true, large(), control),
                Discovery::Ended(ran, keeps) => {
                    return self.reported(*ran, &with_sets, system, keeps, large(), control);
                }
                Discovery::Sets(why) => {
                    return match self.over(&with_sets, system, why, control)? {
                        Ok(ran) => Ok(ran),
                        Err(_) => {
                            self.over(&base, system, large(), control)?.map_err(|_| unreachable!("there are no sets"))
                        }
                    };
                }
                Discovery::Smaller(found) => {
                    smaller = Some(*found);
                    question = NextQuestion::Sets;
                }
            }
        }
    }

    /// The run over a net, or the smaller one, as far as it is made; and what was found out in its course.
    fn look<'s>(
        &self,
        system: &'s dyn System,
        smaller: Option<&Smaller<'s>>,
        ledger: &mut Ledger,
        mut question: NextQuestion,
        control: &Control,
    ) -> Result<(Ran, Discovery<'s>), CheckError> {
        let base: &dyn System = smaller.map_or(system, |smaller| &smaller.system);
        let ask = |expanded| self.ask(system, smaller, ledger, &mut question, expanded, control);
        self.explore(base, FIRST, ask, control)
    }

    /// A run, as far as it is made, and what was found out in its course: `ask` is called once this number of states was expanded.
    fn explore<'s>(
        &self,
        base: &dyn System,
        first: u64,
        mut ask: impl FnMut(u64) -> Result<Result<Discovery<'s>, u64>, CheckError> + Send,
        control: &Control,
    ) -> Result<(Ran, Discovery<'s>), CheckError> {
        let end = control.cancel.below();
        let (mut found, mut failed) = (Discovery::Nothing, None);
        let paced = Paced::new(base, first, |expanded| {
            match ask(expanded) {
                Ok(Ok(answer)) => {
                    if !matches!(answer, Discovery::Nothing) {
                        end.cancel();
                    }
                    found = answer;
                    u64::MAX
                }
                Ok(Err(later)) => later,
                // The run meets what stopped this, if it goes on.
                Err(CheckError::Stopped(_)) => u64::MAX,
                Err(error) => {
                    end.cancel();
                    failed = Some(error);
                    u64::MAX
                }
            }
        });
        // What grows is asked of a run that is not given up.
        let mut run = self.again(true);
        run.probes = self.probes;
        let ran = run.make(&paced, &Control { cancel: end.clone(), ..control.clone() });
        drop(paced);
        if let Some(error) = failed {
            return Err(error);
        }
        let mut ran = ran?;
        if matches!(found, Discovery::Nothing) {
            ran.growth = growth(base, ran.outcome.stopped_by);
        }
        Ok((ran, found))
    }

    /// Finds out what is asked; or after how many states it is to be asked again.
    fn ask<'s>(
        &self,
        system: &'s dyn System,
        smaller: Option<&Smaller<'s>>,
        ledger: &mut Ledger,
        question: &mut NextQuestion,
        expanded: u64,
        control: &Control,
    ) -> Result<Result<Discovery<'s>, u64>, CheckError> {
        let net = net_of(system).expect("a net").net();
        if *question == NextQuestion::Structure {
            let cost = REDUCE * arcs(net);
            if ledger.when(cost) > expanded {
                return Ok(Err(ledger.when(cost)));
            }
            ledger.spent += cost;
            *question = NextQuestion::Sets;
            let work = (cost / REDUCE_ENTRY).max(FREE / REDUCE_ENTRY);
            if let Ok(smaller) = self.smaller(system, work, control)? {
                let early = expanded * ledger.state <= FREE;
                if early || smaller.left_out() * RARE >= net.places.len() {
                    return Ok(Ok(Discovery::Smaller(Box::new(smaller))));
                }
            }
        }
        if *question == NextQuestion::Sets {
            let net = smaller.map_or(net, |smaller| smaller.net());
            let state = COST + net.transitions.len() as u64;
            // Samples of the states with sets, of those without, and of both up to a distance.
            let cost = FACTS * arcs(net) + 4 * FIRST * COST;
            if ledger.when(cost) > expanded {
                return Ok(Err(ledger.when(cost)));
            }
            ledger.spent += cost;
            *question = NextQuestion::None;
            let own: Box<dyn System> = match smaller {
                Some(smaller) => Box::new(smaller.another(control).map_err(CheckError::Stopped)?),
                None => Box::new(NetSystem::under(net.clone(), control).map_err(CheckError::Stopped)?),
            };
            return self.sets(own.as_ref(), state, None, control).map(Ok);
        }
        Ok(Ok(Discovery::Nothing))
    }

    /// The run over a system whose layout never changes.
    fn decide_in_its_course(&self, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let actions = u64::from(system.action_count().unwrap_or_default());
        let ledger = Ledger { state: COST + actions, loading: 0, spent: 0 };
        let when = ledger.when(STEP_FACTS * actions + 4 * FIRST * ledger.state);
        let ask = |_| self.sets(system, ledger.state, None, control).map(Ok);
        let (ran, found) = self.explore(system, when, ask, control)?;
        match found {
            Discovery::Nothing => Ok(ran),
            found => self.over_found(found, when, system, control),
        }
    }

    /// The run over a system that is no net.
    fn decide_beforehand(&self, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let full = self.again(true).make(system, &first(control, Arc::clone(&control.listener)))?;
        if full.outcome.stopped_by != Some(Stop::States) {
            return Ok(Ran { growth: growth(system, full.outcome.stopped_by), ..full });
        }
        let depth = full.outcome.statistics.depth;
        drop(full);
        let state = COST + u64::from(system.action_count().unwrap_or_default());
        let found = self.sets(system, state, Some(depth), control)?;
        self.over_found(found, FIRST, system, control)
    }

    /// The run over a system that is no net, after what was found out once this number of states was explored.
    fn over_found(
        &self,
        found: Discovery<'_>,
        states: u64,
        system: &dyn System,
        control: &Control,
    ) -> Result<Ran, CheckError> {
        let with_sets = Candidate { smaller: None, stubborn: true };
        let why = match found {
            Discovery::Ended(ran, keeps) => {
                let large = format!("auto: the model has more than {states} states");
                return self.reported(*ran, &with_sets, system, keeps, large, control);
            }
            Discovery::Sets(why) => why,
            _ => return self.again(false).make(system, control),
        };
        match self.over(&with_sets, system, why, control)? {
            Ok(ran) => Ok(ran),
            Err(_) => self.again(false).make(system, control),
        }
    }

    /// What stubborn sets over a system are worth, if a state costs `state`; `depth` is how far as many states reach as are looked at, if that is known.
    fn sets<'s>(
        &self,
        system: &dyn System,
        state: u64,
        depth: Option<u64>,
        control: &Control,
    ) -> Result<Discovery<'s>, CheckError> {
        let quiet = first(control, Arc::new(Silent));
        let manner = Manner { pairs: PAIRS, ..Manner::default() };
        let made = Stubborn::new(system, &self.properties, manner, &quiet).map_err(CheckError::Stopped)?;
        let Ok(layer) = made else { return Ok(Discovery::Nothing) };
        let within = |control: &Control, end: &Cancel| Control { cancel: end.clone(), ..control.clone() };
        let allowance = |end: &Cancel| Allowance { work: FIRST * state / SHARE, end: end.clone() };
        let end = control.cancel.below();
        let layer = layer.with(allowance(&end));
        let mut run = self.again(true);
        run.threads = Some(1);
        let ran = run.make(&layer, &within(&quiet, &end))?;
        if !end.is_cancelled() && has_ended(&ran) {
            return Ok(Discovery::Ended(Box::new(ran), layer.keeps_deadlocks()));
        }
        drop(ran);
        let survey = |system: &dyn System, limits: Limits, end: &Cancel| {
            let store = StoreSpec::named("plain");
            let run = OverStore {
                properties: Arc::clone(&self.properties),
                threads: Some(1),
                explore_all: true,
                sample: true,
                ..OverStore::new(store, Search::Bfs)
            };
            let control = Control { limits, ..within(&quiet, end) };
            Box::new(run).make(system, &control).map(|ran| ran.outcome.statistics)
        };
        let depth = match depth {
            Some(depth) => depth,
            None => survey(system, quiet.limits.clone(), &control.cancel)?.depth,
        };
        let limits = Limits { states: None, depth: Some(depth.saturating_sub(1).max(1)), ..control.limits.clone() };
        let end = control.cancel.below();
        let layer = layer.with(allowance(&end));
        let few = survey(&layer, limits.clone(), &end)?;
        if end.is_cancelled() {
            return Ok(Discovery::Nothing);
        }
        let all = survey(system, limits, &control.cancel)?.states;
        let work = ENTRY * layer.work() as f64 / few.expanded.max(1) as f64;
        let times = 1.0 + work / state as f64;
        let few = few.states;
        Ok(if few as f64 * times < GAIN * all as f64 {
            Discovery::Sets(format!(
                "auto: up to some distance {few} of {all} states are left, each at {times:.1} times the cost"
            ))
        } else {
            Discovery::Nothing
        })
    }
}

/// The control of a sample.
fn first(control: &Control, listener: Arc<dyn deltamark_core::Listener>) -> Control {
    let limits = Limits { states: Some(FIRST), ..control.limits.clone() };
    Control { limits, listener, ..control.clone() }
}
