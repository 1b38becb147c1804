//! Verdicts of formulas on a graph, with paths that show them.
//!
//! In: formulas, the graph with the values of their atoms; what turns numbers of states into steps of the model. Out:
//! an outcome for each formula. What stays true: a path that refutes a formula of LTL is replayed, and the formula is
//! evaluated on the states of the replay by definition before the path becomes part of a verdict; a limit leaves a
//! formula without an answer, and takes back none.

use super::record::Undefined;
use super::{Question, Questions};
use crate::check::CheckError;
use deltamark_core::{
    Action, Batch, Block, Control, Event, PropertyOutcome, Scratch, Slot, StateId, Stop, Store, System, Trace, Verdict,
    Widen,
};
use deltamark_logic::kripke::{Evaluator, Kripke, NumberedPath};
use deltamark_logic::temporal::{END, Formula, INITIAL, Logic, holds_on_lasso};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// An outcome for each formula, and why some have no answer.
pub(crate) type Answers = (Vec<PropertyOutcome>, Option<Stop>);

/// Turns a path by numbers into one by actions.
pub(crate) trait Tracer: Sync {
    /// The path, unless the run must end before it is found.
    fn trace(&self, path: &NumberedPath, control: &Control) -> Result<Result<Trace, Stop>, CheckError>;

    /// A path was to refute a formula, and on its replay the formula is true: a bug, unless numbers come from a file.
    fn refuted(&self, name: &str) -> Result<(), CheckError> {
        panic!("the path of `{name}` was found by an automaton for its negation, and does not satisfy it")
    }
}

/// The numbers are ids of a store.
pub(crate) struct ByStore<'a> {
    pub system: &'a dyn System,
    pub store: &'a dyn Store,
}

impl Tracer for ByStore<'_> {
    fn trace(&self, path: &NumberedPath, control: &Control) -> Result<Result<Trace, Stop>, CheckError> {
        // All states were reached in this layout, so no step has to widen it.
        Ok(self.attempt(path, control).unwrap_or(Err(Stop::Count)))
    }
}

/// Whether there is memory for the actions of a path.
pub(super) fn room_for_actions(path: &NumberedPath, control: &Control) -> Result<(), Stop> {
    control.ask_for((path.states.len() * size_of::<Action>()) as u64)
}

impl ByStore<'_> {
    fn attempt(&self, path: &NumberedPath, control: &Control) -> Result<Result<Trace, Stop>, Widen> {
        let (mut inner, mut outer) = (self.store.scratch(), self.system.scratch());
        let mut batch = Batch::new(self.system.width()).under(control);
        self.system.initial(&mut outer, &mut batch)?;
        let mut is = |batch: &Batch, index: usize, number: u32| {
            let id = self.store.find(&mut inner, batch.target(index), batch.hash(index));
            id == Some(StateId::new(number.into()))
        };
        let found = (0..batch.len()).find(|&index| is(&batch, index, path.states[0]));
        let Some(initial) = found else { unreachable!("a path begins in an initial state") };
        let mut state: Vec<Slot> = batch.target(initial).to_vec();
        if let Err(stop) = room_for_actions(path, control) {
            return Ok(Err(stop));
        }
        let mut actions: Vec<Action> = Vec::with_capacity(path.states.len());
        let back = path.back.map(|back| path.states[back]);
        for &next in path.states[1..].iter().chain(&back) {
            if let Err(stop) = control.ask() {
                return Ok(Err(stop));
            }
            batch.reset(self.system.width());
            self.system.successors(&mut outer, &state, &mut batch)?;
            if let Some(stop) = batch.stop() {
                return Ok(Err(stop));
            }
            let found = (0..batch.len()).find(|&index| is(&batch, index, next));
            let Some(found) = found else { unreachable!("a path goes along edges") };
            actions.push(batch.action(found));
            state.clear();
            state.extend_from_slice(batch.target(found));
        }
        Ok(Ok(match path.back {
            Some(back) => Trace::lasso(initial as u32, actions, back),
            None => Trace::path(initial as u32, actions),
        }))
    }
}

/// Answers all questions, by several threads if there are several questions.
pub(crate) fn answers(
    questions: &Questions,
    kripke: &Kripke,
    undefined: &[Undefined],
    system: &dyn System,
    tracer: Option<&dyn Tracer>,
    (threads, control): (usize, &Control),
) -> Result<Answers, CheckError> {
    let first = Evaluator::new(kripke, questions.pool.clone(), control);
    let count = questions.list.len();
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let answered: Vec<Mutex<Option<Attempt>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let one = |evaluator: &mut Evaluator<'_>, index: usize| {
        let question = &questions.list[index];
        // The clock is read for each of them: of thousands an automaton copies the pool that all share.
        let attempt = match control.stop_without_memory() {
            Some(stop) => Ok(Err(stop)),
            None => answer(questions, question, evaluator, undefined, system, tracer, control),
        };
        // Time does not come back; memory may suffice for the next formula.
        if matches!(attempt, Err(_) | Ok(Err(Stop::Time | Stop::Cancelled))) {
            over.store(true, Relaxed);
        }
        if let Ok(Ok((verdict, _))) = &attempt {
            control.listener.event(&Event::Answered(&question.name, verdict.word()));
        }
        *answered[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(attempt);
    };
    let work = |mut evaluator: Evaluator<'_>| {
        while !over.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            if index >= count {
                break;
            }
            one(&mut evaluator, index);
        }
    };
    std::thread::scope(|scope| {
        for number in 1..threads.min(count) {
            let evaluator = first.another();
            let builder = Builder::new().name(format!("formulas {number}"));
            // A system that has no thread to give lets us go on with those we have.
            if builder.spawn_scoped(scope, || work(evaluator)).is_err() {
                break;
            }
        }
        work(first.another());
    });
    // What several threads had no memory for at once, one may have.
    let mut alone = first;
    for (index, attempt) in answered.iter().enumerate() {
        let full = matches!(*attempt.lock().unwrap_or_else(PoisonError::into_inner), Some(Ok(Err(Stop::Memory))));
        if full && !over.load(Relaxed) {
            alone.forget();
            one(&mut alone, index);
        }
    }
    let mut stopped: Option<Stop> = None;
    let mut found = Vec::with_capacity(count);
    for (question, attempt) in questions.list.iter().zip(answered) {
        let (verdict, untraced) = match attempt.into_inner().unwrap_or_else(PoisonError::into_inner).transpose()? {
            Some(Ok(answer)) => answer,
            unanswered => {
                if let Some(Err(stop)) = unanswered {
                    stopped = Some(stop);
                }
                control.listener.event(&Event::Answered(&question.name, Verdict::Unknown.word()));
                (Verdict::Unknown, None)
            }
        };
        let (name, text) = (question.name.clone(), question.text.clone());
        found.push(PropertyOutcome { name, text, verdict, untraced, probed: false });
    }
    Ok((found, stopped))
}

/// What came of a question: an answer, a limit, or an error that ends all.
type Attempt = Result<Result<Answered, Stop>, CheckError>;
type Answered = (Verdict, Option<Stop>);

fn answer(
    questions: &Questions,
    question: &Question,
    evaluator: &mut Evaluator<'_>,
    undefined: &[Undefined],
    system: &dyn System,
    tracer: Option<&dyn Tracer>,
    control: &Control,
) -> Result<Result<Answered, Stop>, CheckError> {
    let without_value =
        questions.atoms_of(question.root).into_iter().find_map(|atom| undefined[atom as usize].as_ref());
    if let Some((state, why)) = without_value {
        let message = Some(format!("the property has no value here: {why}"));
        let path = evaluator.path_to(*state);
        return Ok(Ok(match traced(path.map(Some), tracer, control)? {
            Ok(trace) => (Verdict::Violated(trace, message), None),
            Err(stop) => (Verdict::Violated(None, message), Some(stop)),
        }));
    }
    let holds = match evaluator.holds(question.root) {
        Ok(holds) => holds,
        Err(stop) => return Ok(Err(stop)),
    };
    if tracer.is_none() || (holds && question.logic == Logic::Ltl) {
        let verdict = if holds { Verdict::Holds(None) } else { Verdict::Violated(None, None) };
        return Ok(Ok((verdict, None)));
    }
    let path = match question.logic {
        Logic::Ltl => evaluator.counterexample(question.root),
        Logic::Ctl => evaluator.witness(question.root, holds),
    };
    let trace = traced(path, tracer, control)?;
    if let (Logic::Ltl, Ok(Some(trace)), Some(tracer)) = (question.logic, &trace, tracer) {
        match refutes(questions, question, trace, false, system, control)? {
            Ok(true) => {}
            Ok(false) => tracer.refuted(&question.name)?,
            Err(stop) => return Ok(Ok((Verdict::Violated(None, None), Some(stop)))),
        }
    }
    let (trace, untraced) = match trace {
        Ok(trace) => (trace, None),
        Err(stop) => (None, Some(stop)),
    };
    Ok(Ok(match (holds, trace) {
        (true, trace) => (Verdict::Holds(trace), untraced.filter(|_| false)),
        (false, None) if untraced.is_none() => (
            Verdict::Violated(None, Some("it is false in an initial state, and no single path shows that".into())),
            None,
        ),
        (false, trace) => {
            let ends = trace.as_ref().is_some_and(|trace| question.logic == Logic::Ltl && trace.cycle().is_none());
            let message = ends.then(|| "no step is possible here, so the last state repeats for ever".into());
            (Verdict::Violated(trace, message), untraced)
        }
    }))
}

fn traced(
    path: Result<Option<NumberedPath>, Stop>,
    tracer: Option<&dyn Tracer>,
    control: &Control,
) -> Result<Result<Option<Trace>, Stop>, CheckError> {
    let path = match path {
        Ok(path) => path,
        Err(stop) => return Ok(Err(stop)),
    };
    let (Some(path), Some(tracer)) = (path, tracer) else { return Ok(Ok(None)) };
    Ok(tracer.trace(&path, control)?.map(Some))
}

/// What is true in the states of a replay.
#[derive(Default)]
struct ReplayLetters {
    /// The values of the atoms of all states, in their order: as many for each state as the formula has atoms.
    atoms: Vec<bool>,
    initial: Vec<bool>,
    ends: Vec<bool>,
}

/// Whether a formula of LTL is false on the word of a trace, whose last state repeats if it is no lasso. It must have
/// no steps then, unless `repeats` says that it is taken to repeat all the same. A question that is an automaton is
/// refuted by the words that it accepts.
pub(crate) fn refutes(
    questions: &Questions,
    question: &Question,
    trace: &Trace,
    repeats: bool,
    system: &dyn System,
    control: &Control,
) -> Result<Result<bool, Stop>, CheckError> {
    let wrong = |error| CheckError::Replay { property: String::new(), error };
    let root = question.root;
    let atoms = questions.atoms_of(root);
    let mut letters = ReplayLetters::default();
    let mut widens = false;
    let followed = trace.follow(system, |number, state| {
        control.ask()?;
        if number == 0 {
            letters = ReplayLetters::default();
        }
        read(questions, &atoms, system, state, &mut letters, control).unwrap_or_else(|Widen| {
            widens = true;
            Err(Stop::Count)
        })
    });
    match followed.map_err(wrong)? {
        Ok(_) if !widens => {}
        Ok(_) => return Ok(Err(Stop::Count)),
        Err(stop) => return Ok(Err(stop)),
    }
    let path = match *questions.pool.get(root) {
        Formula::All(path) => path,
        _ => root,
    };
    let (length, back) = match trace.cycle() {
        // The last state is the one at the cycle's begin again.
        Some(start) => (trace.len(), start),
        None => (trace.len() + 1, trace.len()),
    };
    if trace.cycle().is_none() && !repeats && !letters.ends[trace.len()] {
        return Ok(Ok(false));
    }
    if let Some(automaton) = &question.automaton {
        let letter = |at: usize| {
            let row = &letters.atoms[at * atoms.len()..(at + 1) * atoms.len()];
            row.iter().rev().fold(0, |letter, &truth| letter << 1 | u64::from(truth))
        };
        let word: Vec<u64> = (0..length).map(letter).collect();
        return Ok(Ok(automaton.accepts_lasso(&word, back)));
    }
    let holds = |atom: u32, at: usize| match atom {
        INITIAL => letters.initial[at],
        END => letters.ends[at],
        _ => atoms.binary_search(&atom).is_ok_and(|place| letters.atoms[at * atoms.len() + place]),
    };
    // A value of each part of the formula in each state.
    if let Err(stop) = control.ask_for((questions.parts_of(root) * length) as u64) {
        return Ok(Err(stop));
    }
    Ok(Ok(holds_on_lasso(&questions.pool, path, length, back, &holds) == Some(false)))
}

fn read(
    questions: &Questions,
    atoms: &[u32],
    system: &dyn System,
    state: &[Slot],
    letters: &mut ReplayLetters,
    control: &Control,
) -> Result<Result<(), Stop>, Widen> {
    let mut scratch: Scratch = system.scratch();
    let mut batch = Batch::new(system.width()).under(control);
    system.initial(&mut scratch, &mut batch)?;
    letters.initial.push((0..batch.len()).any(|index| batch.target(index) == state));
    batch.reset(system.width());
    system.successors(&mut scratch, state, &mut batch)?;
    if let Some(stop) = batch.stop() {
        return Ok(Err(stop));
    }
    letters.ends.push(batch.is_empty());
    let dead = u64::from(batch.is_empty() && batch.faults().is_empty());
    let mut block = Block::new(system.width());
    block.push(StateId::new(0), state);
    for &atom in atoms {
        let atom = &questions.atoms.list[atom as usize];
        match atom.value(system, &mut scratch, &block, dead) {
            Ok(mask) => letters.atoms.push(mask & 1 == 1),
            Err(why) if why.limit => return Ok(Err(Stop::Count)),
            Err(_) => letters.atoms.push(false),
        }
    }
    Ok(Ok(()))
}
