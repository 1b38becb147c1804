//! Whether a trace from a graph is one of the model.
//!
//! In: a trace that a graph led to, and what it is to show. Out: why it does not show it, if it does not. What stays true:
//! a graph is the word of whoever wrote the file, so nothing of it is relied on here. Every step is looked for among the
//! successors that the model itself has, because the actions of coloured nets are in the file too; and the last state is
//! asked for what the answer says of it.

use deltamark_core::{
    Action, Batch, Block, Control, Ending, Goal, Scratch, Slot, StateId, Stop, System, Trace, Verdict, Widen,
};

/// Confirms that the trace of a verdict ends in a state that decides the property as the verdict does, unless the run must end
/// before.
pub(crate) fn confirm(
    system: &dyn System,
    goal: &Goal,
    verdict: &Verdict,
    control: &Control,
) -> Result<Result<(), Stop>, String> {
    let Some(trace) = verdict.trace() else { return Ok(Ok(())) };
    let holds = matches!(verdict, Verdict::Holds(_));
    loop {
        // A layout that had to widen voids the states of the replay: start over.
        match attempt(system, goal, trace, holds, control) {
            Ok(confirmed) => return confirmed,
            Err(Widen) => drop(system.widen()),
        }
    }
}

/// Confirms that each step of a trace is one of the model, unless the run must end before.
pub(crate) fn confirm_steps(system: &dyn System, trace: &Trace, control: &Control) -> Result<Result<(), Stop>, String> {
    loop {
        match steps(system, trace, control) {
            Ok(Ok(Ok(_))) => return Ok(Ok(())),
            Ok(Ok(Err(stop))) => return Ok(Err(stop)),
            Ok(Err(what)) => return Err(what),
            Err(Widen) => drop(system.widen()),
        }
    }
}

/// Replays a trace; the last state.
type Replayed = Result<Result<Vec<Slot>, Stop>, String>;

fn steps(system: &dyn System, trace: &Trace, control: &Control) -> Result<Replayed, Widen> {
    let mut scratch = system.scratch();
    let mut batch = Batch::new(system.width()).under(control);
    let mut last: Vec<Slot> = Vec::new();
    // Why the replay was ended, if it was not the control.
    let mut found: Result<Option<usize>, Widen> = Ok(None);
    let followed = trace.follow(system, |number, state| {
        control.ask()?;
        if number > 0 {
            match is_successor(system, &mut scratch, &mut batch, &last, trace.actions[number - 1], Some(state)) {
                Ok(true) => {}
                Ok(false) => found = Ok(Some(number)),
                Err(Widen) => found = Err(Widen),
            }
            if let Some(stop) = batch.stop() {
                found = Ok(None);
                return Err(stop);
            }
            if found != Ok(None) {
                return Err(Stop::Answered);
            }
        }
        last.clear();
        last.extend_from_slice(state);
        Ok(())
    });
    Ok(match (found?, followed) {
        (Some(step), _) => Err(format!("step {step} of a path is none of the model's")),
        (None, Err(error)) => Err(error.to_string()),
        (None, Ok(Err(stop))) => Ok(Err(stop)),
        (None, Ok(Ok(_))) => Ok(Ok(last)),
    })
}

fn attempt(
    system: &dyn System,
    goal: &Goal,
    trace: &Trace,
    holds: bool,
    control: &Control,
) -> Result<Result<Result<(), Stop>, String>, Widen> {
    let last = match steps(system, trace, control)? {
        Ok(Ok(last)) => last,
        Ok(Err(stop)) => return Ok(Ok(Err(stop))),
        Err(what) => return Ok(Err(what)),
    };
    let none = |step: usize| Err(format!("step {step} of a path is none of the model's"));
    let mut scratch = system.scratch();
    let mut batch = Batch::new(system.width()).under(control);
    if let (true, Some(&action)) = (trace.ends_in_fault(), trace.actions.last()) {
        let is_fault = is_successor(system, &mut scratch, &mut batch, &last, action, None)?;
        if let Some(stop) = batch.stop() {
            return Ok(Ok(Err(stop)));
        }
        if !is_fault {
            return Ok(none(trace.actions.len()));
        }
    }
    match trace.ending {
        Ending::State => {}
        Ending::Fault if matches!(goal, Goal::FaultFree) => return Ok(Ok(Ok(()))),
        Ending::Fault => return Ok(Err("a path ends in a fault".into())),
        Ending::Cycle(_) => return Ok(Err("a path ends in a cycle".into())),
    }
    batch.reset(system.width());
    system.successors(&mut scratch, &last, &mut batch)?;
    if let Some(stop) = batch.stop() {
        return Ok(Ok(Err(stop)));
    }
    let dead = batch.is_empty() && batch.faults().is_empty();
    let shows = match goal {
        Goal::DeadlockFree => dead,
        Goal::FaultFree => batch.faults().iter().any(|fault| fault.action.is_none()),
        Goal::Invariant(predicate) | Goal::Reachable(predicate) => {
            let mut scratch: Scratch = system.scratch();
            let mut block = Block::new(system.width());
            block.push(StateId::new(0), &last);
            // Where a predicate has no value an invariant is violated and a goal is not reached.
            let truth = predicate.evaluate(system, &mut scratch, &block, dead.into()).is_ok_and(|mask| mask & 1 == 1);
            truth == holds
        }
        _ => return Ok(Err(format!("no graph answers a property of the kind `{}`", goal.word()))),
    };
    Ok(if shows { Ok(Ok(())) } else { Err("a path ends in another state than the graph says".into()) })
}

/// Whether the model has this step: to a target, or into a fault.
fn is_successor(
    system: &dyn System,
    scratch: &mut Scratch,
    batch: &mut Batch,
    source: &[Slot],
    action: Action,
    target: Option<&[Slot]>,
) -> Result<bool, Widen> {
    batch.reset(system.width());
    system.successors(scratch, source, batch)?;
    Ok(match target {
        Some(target) => (0..batch.len()).any(|one| batch.action(one) == action && batch.target(one) == target),
        None => batch.faults().iter().any(|fault| fault.action == Some(action)),
    })
}
