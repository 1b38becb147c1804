//! Formulas asked of a condensed graph.
//!
//! In: a graph that was written before, with its model. Out: a [`Kripke`], and paths as steps of the model. What stays
//! true: the file is the word of whoever wrote it, so each step of a path is looked for among the model's own
//! successors before the path is shown.

use super::Questions;
use super::answer::{Tracer, room_for_actions};
use super::atoms::Lens;
use super::record::{Undefined, Values};
use crate::check::CheckError;
use crate::condensed::{Condensed, confirm};
use deltamark_core::{Action, Batch, Block, Control, Scratch, Stop, System, Trace, Widen};
use deltamark_graph::block::{STATES, Unpacked};
use deltamark_graph::walk::Ended;
use deltamark_graph::{Visitor, WalkError, Way};
use deltamark_logic::kripke::{Edges, Kripke, NumberedPath};

/// The values of atoms, taken in the states of a walk.
struct Taker<'a> {
    system: &'a dyn System,
    questions: &'a Questions,
    lens: Lens,
    values: Values,
    /// Whether states without edges may be such because of faults.
    may_fault: bool,
    batch: Batch,
    stopped: Option<Stop>,
}

impl Visitor for Taker<'_> {
    fn visit(&mut self, scratch: &mut Scratch, block: &Block, ends: u64) -> Result<bool, Widen> {
        let mut dead = ends;
        if self.may_fault && ends != 0 {
            self.batch.reset(self.system.width());
            self.system.expand(scratch, block, &mut self.batch)?;
            if let Some(stop) = self.batch.stop() {
                self.stopped = Some(stop);
                return Ok(false);
            }
            dead &= !self.batch.faults().iter().fold(0u64, |mask, fault| mask | 1 << fault.source);
        }
        let taken = self.values.look(&mut self.lens, self.questions, self.system, scratch, block, (dead, None));
        self.stopped = self.stopped.or(taken.err());
        Ok(self.stopped.is_none())
    }
}

/// What is known of the graph, unless the run must end.
pub(crate) type Read = Result<(Kripke, Vec<Undefined>), Stop>;

/// Reads the edges of a graph and takes the values of atoms along it.
pub(crate) fn read(
    condensed: &Condensed,
    way: Way,
    questions: &Questions,
    system: &dyn System,
    control: &Control,
) -> Result<Read, CheckError> {
    let graph = &condensed.graph;
    let meta = graph.meta();
    let values = match Values::new(questions.atoms.list.len(), control) {
        Ok(values) => values,
        Err(stop) => return Ok(Err(stop)),
    };
    let mut taker = Taker {
        system,
        questions,
        lens: Lens::new(&questions.atoms, system),
        values,
        may_fault: condensed.model.info.can_fault != Some(false) && meta.faulty != Some(0),
        batch: Batch::new(system.width()).under(control),
        stopped: None,
    };
    if !questions.atoms.list.is_empty() {
        let ended = condensed.walk(control)?.run(way, &mut taker).map_err(|error| condensed.wrong(&error))?;
        if let (Some(stop), _) | (None, Ended::Stopped(stop)) = (taker.stopped, ended) {
            return Ok(Err(stop));
        }
    }
    let edges = match edges(condensed, control)? {
        Ok(edges) => edges,
        Err(stop) => return Ok(Err(stop)),
    };
    let Values { mut sets, undefined } = taker.values;
    if sets.iter_mut().any(|set| set.len() < graph.states() && !set.grow(graph.states())) {
        return Ok(Err(Stop::Memory));
    }
    let initial = meta.initial.iter().map(|&number| number as u32).collect();
    Ok(Ok((Kripke { edges, initial, atoms: sets }, undefined)))
}

fn edges(condensed: &Condensed, control: &Control) -> Result<Result<Edges, Stop>, CheckError> {
    let graph = &condensed.graph;
    let mut edges = match Edges::new(&control.budget) {
        Ok(edges) => edges,
        Err(stop) => return Ok(Err(stop)),
    };
    let mut unpacked = Unpacked::default();
    for block in 0..graph.blocks() {
        graph.unpack(block, &mut unpacked).map_err(|error| condensed.broken(error))?;
        let count = (graph.states() - block * STATES as u64).min(STATES as u64) as usize;
        // Within a block they are not sorted by source.
        let list = unpacked.edges().iter().map(|(source, edge)| (*source as usize, edge.target as u32));
        if let Err(stop) = control.ask().and_then(|()| edges.append(count, list)) {
            return Ok(Err(stop));
        }
    }
    Ok(Ok(edges))
}

/// The numbers are those of a file.
pub(crate) struct ByGraph<'a> {
    pub system: &'a dyn System,
    pub condensed: &'a Condensed,
}

impl Tracer for ByGraph<'_> {
    fn trace(&self, path: &NumberedPath, control: &Control) -> Result<Result<Trace, Stop>, CheckError> {
        let graph = &self.condensed.graph;
        let misfit = |what: &str| self.condensed.wrong(&WalkError::Misfit(what.into()));
        let first = graph.meta().initial.iter().position(|&number| number == u64::from(path.states[0]));
        let first = first.ok_or_else(|| misfit("a path begins in no initial state"))?;
        let back = path.back.map(|back| path.states[back]);
        if let Err(stop) = room_for_actions(path, control) {
            return Ok(Err(stop));
        }
        let mut actions: Vec<Action> = Vec::with_capacity(path.states.len());
        let mut row = Vec::new();
        for (&source, &target) in path.states.iter().zip(path.states[1..].iter().chain(&back)) {
            if let Err(stop) = control.ask() {
                return Ok(Err(stop));
            }
            graph.edges(source.into(), &mut row).map_err(|error| self.condensed.broken(error))?;
            let edge = row.iter().find(|edge| edge.target == u64::from(target));
            actions
                .push(self.condensed.action(edge.ok_or_else(|| misfit("a path has a step without an edge"))?.action));
        }
        let trace = match path.back {
            Some(back) => Trace::lasso(first as u32, actions, back),
            None => Trace::path(first as u32, actions),
        };
        match confirm::confirm_steps(self.system, &trace, control) {
            Ok(Ok(())) => Ok(Ok(trace)),
            Ok(Err(stop)) => Ok(Err(stop)),
            Err(what) => Err(misfit(&what)),
        }
    }

    fn refuted(&self, name: &str) -> Result<(), CheckError> {
        let what = format!("the path that is to refute `{name}` does not");
        Err(self.condensed.wrong(&WalkError::Misfit(what)))
    }
}
