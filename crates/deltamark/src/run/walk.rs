//! A run along a condensed graph, instead of a search.
//!
//! In: a graph that was written before, with its model; properties. Out: the answers that a search would
//! give. What stays true: a graph is the word of whoever wrote the file, so every trace is confirmed by the
//! model's own successors before it becomes part of an answer.

use super::{Ran, Run};
use crate::check::CheckError;
use crate::condensed::{Condensed, confirm};
use crate::report::GraphFile;
use crate::stats::Surveyor;
use deltamark_core::{
    Again, Batch, Block, Bytes, Control, Event, Evidence, Goal, Guarantee, Outcome, Predicate, Property,
    PropertyOutcome, Scratch, StateId, Statistics, Stop, System, Trace, Verdict, Widen, Witness,
};
use deltamark_graph::block::{STATES, Unpacked};
use deltamark_graph::walk::Ended;
use deltamark_graph::{BitSet, FileError, Visitor, WalkError, Way, levels};
use deltamark_search::Search;
use deltamark_store::StoreSpec;
use std::time::Instant;

/// A walk along a graph.
pub(crate) struct AlongGraph<'r> {
    pub graph: &'r Condensed,
    pub way: Way,
    pub properties: Vec<Property>,
    pub surveyor: Option<&'r mut Surveyor>,
}

/// What was found about a property: states, by their numbers.
struct FoundStates {
    /// Those that [decide](deltamark_core::Decided::states) it.
    states: BitSet,
    /// Those in which it [has no value](deltamark_core::Decided::undefined).
    undefined: BitSet,
    any: bool,
    any_undefined: bool,
}

/// Asks all properties in the states of a walk.
struct Asker<'a, 's> {
    system: &'a dyn System,
    properties: &'a [Property],
    found: Vec<FoundStates>,
    surveyor: Option<&'s mut Surveyor>,
    /// Whether states without edges may be such because of faults.
    may_fault: bool,
    /// Whether the first that is found is as good as any.
    in_order: bool,
    batch: Batch,
    /// Why a block was not looked at.
    stopped_by: Option<Stop>,
    /// Blocks are shown in any order, perhaps twice; dead states are counted once.
    dead: BitSet,
}

/// The states of a block for which a bit is set, into a set.
fn note(set: &mut BitSet, any: &mut bool, block: &Block, mask: u64) {
    let mut rest = mask;
    while rest != 0 {
        set.insert(block.id(rest.trailing_zeros() as usize).get());
        rest &= rest - 1;
    }
    *any |= mask != 0;
}

impl Visitor for Asker<'_, '_> {
    fn visit(&mut self, scratch: &mut Scratch, block: &Block, ends: u64) -> Result<bool, Widen> {
        let asks_faults = self.properties.iter().any(|property| matches!(property.goal, Goal::FaultFree));
        self.batch.reset(self.system.width());
        if self.may_fault && (asks_faults || ends != 0) {
            self.system.expand(scratch, block, &mut self.batch)?;
            if let Some(stop) = self.batch.stop() {
                self.stopped_by = Some(stop);
                return Ok(false);
            }
        }
        let faults = self.batch.faults();
        let dead = ends & !faults.iter().fold(0u64, |mask, fault| mask | 1 << fault.source);
        let mut any = false;
        note(&mut self.dead, &mut any, block, dead);
        for (property, found) in self.properties.iter().zip(&mut self.found) {
            if self.in_order && found.any {
                continue;
            }
            let decided = property.goal.look(self.system, scratch, block, dead, faults);
            note(&mut found.states, &mut found.any, block, decided.states);
            note(&mut found.undefined, &mut found.any_undefined, block, decided.undefined);
            if decided.unknown {
                self.stopped_by = Some(Stop::Count);
            }
        }
        if self.stopped_by.is_some() {
            return Ok(false);
        }
        if let Some(surveyor) = &mut self.surveyor {
            surveyor.look(self.system, scratch, block);
        }
        let settled = |(property, found): (&Property, &FoundStates)| {
            found.any || (found.any_undefined && !property.goal.is_existential())
        };
        let answered = !self.properties.is_empty() && self.properties.iter().zip(&self.found).all(settled);
        Ok(!(self.in_order && answered && self.surveyor.is_none() && !self.may_fault))
    }
}

impl Run for AlongGraph<'_> {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let AlongGraph { graph: condensed, way, properties, surveyor } = *self;
        let graph = &condensed.graph;
        let started = Instant::now();
        let meta = graph.meta();
        let may_fault = condensed.model.info.can_fault != Some(false) && meta.faulty != Some(0);
        let no_room = || condensed.broken(Stop::Memory.into());
        let set = || BitSet::new(graph.states(), &control.budget).ok_or_else(no_room);
        let mut found = Vec::new();
        for _ in &properties {
            found.push(FoundStates { states: set()?, undefined: set()?, any: false, any_undefined: false });
        }
        let by_numbers = |property: &Property| matches!(property.goal, Goal::DeadlockFree | Goal::FaultFree);
        let needs_states = surveyor.is_some() || may_fault || !properties.iter().all(by_numbers);
        let mut asker = Asker {
            system,
            properties: &properties,
            found,
            surveyor,
            may_fault,
            in_order: meta.levels && way != Way::Depth,
            batch: Batch::new(system.width()).under(control),
            stopped_by: None,
            dead: set()?,
        };
        let mut walk = condensed.walk(control)?;
        let ended = if needs_states {
            walk.run(way, &mut asker).map_err(|error| condensed.wrong(&error))?
        } else {
            scan(condensed, &mut asker, control)?
        };
        let mut stopped_by = match ended {
            Ended::Whole | Ended::Enough => asker.stopped_by,
            Ended::Stopped(stop) => Some(stop),
        };
        if let Some(surveyor) = &mut asker.surveyor {
            let mut unpacked = Unpacked::default();
            for block in 0..graph.blocks() {
                if let Some(stop) = control.stop_without_memory() {
                    stopped_by.get_or_insert(stop);
                    break;
                }
                graph.unpack(block, &mut unpacked).map_err(|error| condensed.broken(error))?;
                unpacked.edges().iter().for_each(|(_, edge)| surveyor.happens(condensed.action(edge.action)));
            }
        }
        let deadlocks = if may_fault { asker.dead.count() } else { meta.ends };
        let found = asker.found;
        let mut answers: Vec<PropertyOutcome> = Vec::with_capacity(properties.len());
        for (property, found) in properties.iter().zip(found) {
            let evidence = evidence(condensed, system, &property.goal, &found, control)?;
            let mut outcome = property.outcome(evidence, stopped_by, Guarantee::Exact);
            let confirmed = confirm::confirm(system, &property.goal, &outcome.verdict, control)
                .map_err(|what| condensed.wrong(&WalkError::Misfit(what)))?;
            if let Err(stop) = confirmed {
                // What was not confirmed is the word of the file alone.
                stopped_by.get_or_insert(stop);
                outcome.verdict = Verdict::Unknown;
            }
            control.listener.event(&Event::Answered(&property.name, outcome.verdict.word()));
            answers.push(outcome);
        }
        let depth = match levels::depth(graph, control) {
            // As of any run that ended early, it is the depth that is known.
            Err(FileError::Stopped(stop)) => {
                stopped_by.get_or_insert(stop);
                0
            }
            depth => depth.map_err(|error| condensed.broken(error))?,
        };
        let statistics = Statistics {
            states: meta.states,
            edges: meta.edges,
            left_out: 0,
            deadlocks,
            depth,
            expanded: meta.states,
            again: Again::default(),
            widenings: walk.widenings(),
            frontier_peak_bytes: walk.peak_bytes(),
            search_time: started.elapsed(),
        };
        let contents = Some(condensed.contents());
        Ok(Ran {
            outcome: Outcome {
                properties: answers,
                stopped_by,
                statistics,
                store_bytes: Bytes::new().with("file", graph.bytes()),
                guarantee: Guarantee::Exact,
                warning: None,
            },
            store: StoreSpec::named("graph"),
            choice: None,
            search: Search::Bfs.into(),
            // A graph that was written has an end.
            growth: None,
            sweep: None,
            reduction: None,
            graph: Some(GraphFile { path: condensed.path().into(), walked: true, contents, unwritten: None }),
            route: None,
        })
    }
}

/// Finds states without edges, where nothing else is asked and nothing need be rebuilt.
fn scan(condensed: &Condensed, asker: &mut Asker<'_, '_>, control: &Control) -> Result<Ended, CheckError> {
    let graph = &condensed.graph;
    let mut unpacked = Unpacked::default();
    for block in 0..graph.blocks() {
        if let Err(stop) = control.ask() {
            return Ok(Ended::Stopped(stop));
        }
        graph.unpack(block, &mut unpacked).map_err(|error| condensed.broken(error))?;
        let count = (graph.states() - block * STATES as u64).min(STATES as u64);
        let all = if count == STATES as u64 { u64::MAX } else { (1 << count) - 1 };
        let dead = all & !unpacked.moved();
        asker.dead.insert_word(block, dead);
        for (property, found) in asker.properties.iter().zip(&mut asker.found) {
            if matches!(property.goal, Goal::DeadlockFree) {
                found.states.insert_word(block, dead);
                found.any |= dead != 0;
            }
        }
    }
    Ok(Ended::Whole)
}

/// The states that were found, each with a shortest path to one of them.
fn evidence(
    condensed: &Condensed,
    system: &dyn System,
    goal: &Goal,
    found: &FoundStates,
    control: &Control,
) -> Result<Evidence, CheckError> {
    let trace_to = |goals: &BitSet| -> Result<Result<Trace, Stop>, CheckError> {
        if let Some(stop) = control.stop_without_memory() {
            return Ok(Err(stop));
        }
        let path = match levels::path_to(&condensed.graph, goals, control) {
            Ok(path) => path,
            // The answer is valid without a trace.
            Err(FileError::Stopped(stop)) => return Ok(Err(stop)),
            Err(error) => return Err(condensed.broken(error)),
        };
        let path = path.ok_or_else(|| condensed.broken(FileError::Damaged("a state cannot be reached".into())))?;
        let actions = path.actions.iter().map(|&action| condensed.action(action)).collect();
        Ok(Ok(Trace::path(path.initial, actions)))
    };
    let mut evidence = Evidence::default();
    if found.any {
        let trace = trace_to(&found.states)?;
        evidence.decided = Some(match goal {
            Goal::FaultFree => faulty(system, trace, false, control),
            _ => Witness { trace, message: None },
        });
    }
    // A goal that is reached is answered, wherever else it has no value.
    if found.any_undefined && !(found.any && goal.is_existential()) {
        let trace = trace_to(&found.undefined)?;
        evidence.undefined = Some(match goal {
            Goal::FaultFree => faulty(system, trace, true, control),
            Goal::Invariant(predicate) | Goal::Reachable(predicate) => {
                let message = no_value(system, &**predicate, trace.as_ref().ok(), control);
                Witness { trace, message: Some(message) }
            }
            _ => Witness { trace, message: None },
        });
    }
    Ok(evidence)
}

/// The last state of a trace, as a block; `None` also if the run must end before.
fn last_state(system: &dyn System, trace: &Trace, control: &Control) -> Option<Block> {
    let mut last = Vec::new();
    let seen = trace.follow(system, |_, state| {
        control.ask()?;
        last.clear();
        last.extend_from_slice(state);
        Ok(())
    });
    seen.ok()?.ok()?;
    let mut block = Block::new(system.width());
    block.push(StateId::new(0), &last);
    Some(block)
}

/// Why a predicate has no value at the end of a trace.
fn no_value(system: &dyn System, predicate: &dyn Predicate, trace: Option<&Trace>, control: &Control) -> String {
    let why = trace.and_then(|trace| last_state(system, trace, control)).and_then(|block| {
        predicate.evaluate(system, &mut system.scratch(), &block, 0).err().map(|undefined| undefined.message)
    });
    match why {
        Some(why) => format!("the property has no value here: {why}"),
        None => "the property has no value in some state".into(),
    }
}

/// The fault at the end of a trace: of the state itself, or of a step from there.
fn faulty(system: &dyn System, trace: Result<Trace, Stop>, of_state: bool, control: &Control) -> Witness {
    let trace = match trace {
        Ok(trace) => trace,
        Err(stop) => return Witness { trace: Err(stop), message: Some("the model has a fault".into()) },
    };
    let mut batch = Batch::new(system.width()).under(control);
    loop {
        let Some(block) = last_state(system, &trace, control) else {
            return Witness { trace: Ok(trace), message: None };
        };
        batch.reset(system.width());
        match system.expand(&mut system.scratch(), &block, &mut batch) {
            Ok(()) => break,
            Err(Widen) => drop(system.widen()),
        }
    }
    if let Some(stop) = batch.stop() {
        return Witness { trace: Err(stop), message: Some("the model has a fault".into()) };
    }
    let found = batch.faults().iter().find(|fault| fault.action.is_none() == of_state);
    let message = found.map(|fault| fault.message.clone());
    let trace = match found.and_then(|fault| fault.action) {
        Some(action) => trace.with_fault(action),
        None => trace,
    };
    Witness { trace: Ok(trace), message }
}
