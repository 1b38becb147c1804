//! Whether a trace from a graph is one of the model.
//!
//! In: a trace that a graph led to, and what it is to show. Out: why it does not show it, if it does not. What stays true:
//! a graph is the word of whoever wrote the file, so nothing of it is relied on here. Every step is looked for among the
//! successors that the model itself has, because the actions of coloured nets are in the file too; and the last state is
//! asked for what the answer says of it.

use deltamark_core::{Batch, Block, Ending, Goal, Replay, Scratch, StateId, System, Trace, Verdict, Widen};

/// Confirms that the trace of a verdict ends in a state that decides the property as the verdict does.
pub(crate) fn confirm(system: &dyn System, goal: &Goal, verdict: &Verdict) -> Result<(), String> {
    let Some(trace) = verdict.trace() else { return Ok(()) };
    let holds = matches!(verdict, Verdict::Holds(_));
    loop {
        // A layout that had to widen voids the states of the replay: start over.
        let replay = trace.replay(system).map_err(|error| error.to_string())?;
        match attempt(system, goal, trace, holds, &replay) {
            Ok(confirmed) => return confirmed,
            Err(Widen) => drop(system.widen()),
        }
    }
}

fn attempt(
    system: &dyn System,
    goal: &Goal,
    trace: &Trace,
    holds: bool,
    replay: &Replay,
) -> Result<Result<(), String>, Widen> {
    let mut scratch = system.scratch();
    let mut batch = Batch::new(system.width());
    for (index, &action) in replay.actions.iter().enumerate() {
        batch.reset(system.width());
        system.successors(&mut scratch, &replay.states[index], &mut batch)?;
        let found = match replay.states.get(index + 1) {
            Some(target) => (0..batch.len()).any(|one| batch.action(one) == action && batch.target(one) == target),
            None => batch.faults().iter().any(|fault| fault.action == Some(action)),
        };
        if !found {
            return Ok(Err(format!("step {} of a path is none of the model's", index + 1)));
        }
    }
    match trace.ending {
        Ending::State => {}
        Ending::Fault if matches!(goal, Goal::FaultFree) => return Ok(Ok(())),
        Ending::Fault => return Ok(Err("a path ends in a fault".into())),
        Ending::Cycle(_) => return Ok(Err("a path ends in a cycle".into())),
    }
    let Some(last) = replay.states.last() else { return Ok(Err("a path has no states".into())) };
    batch.reset(system.width());
    system.successors(&mut scratch, last, &mut batch)?;
    let dead = batch.is_empty() && batch.faults().is_empty();
    let shows = match goal {
        Goal::DeadlockFree => dead,
        Goal::FaultFree => batch.faults().iter().any(|fault| fault.action.is_none()),
        Goal::Invariant(predicate) | Goal::Reachable(predicate) => {
            let mut scratch: Scratch = system.scratch();
            let mut block = Block::new(system.width());
            block.push(StateId::new(0), last);
            // Where a predicate has no value an invariant is violated and a goal is not reached.
            let truth = predicate.evaluate(system, &mut scratch, &block, dead.into()).is_ok_and(|mask| mask & 1 == 1);
            truth == holds
        }
        _ => return Ok(Err(format!("no graph answers a property of the kind `{}`", goal.word()))),
    };
    Ok(if shows { Ok(()) } else { Err("a path ends in another state than the graph says".into()) })
}
