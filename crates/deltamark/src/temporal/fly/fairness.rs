//! Fairness of a model's paths: which groups of actions must not be passed over for ever.
//!
//! In: what the user asks for, and a system. Out: the groups of each action ([`Grouping`]), for the search
//! ([`deltamark_search::Fairness`], which says what is fair, with the proof); and whether a lasso is fair, by definition.
//! What stays true: a group is a transition of a net, whatever its binding, or a process of a DVE model; a step that is
//! a fault does not count as enabled.

use crate::check::CheckError;
use deltamark_core::{Action, Batch, Control, Observe, Slot, Stop, System, Trace, Widen};
use deltamark_dve::DveSystem;
use deltamark_dve::ir::{Step, Timing};
use deltamark_search::Strength;
use std::fmt;
use std::str::FromStr;

/// What is to be treated fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Each process of a DVE model.
    Process,
    /// Each transition.
    Transition,
}

/// Which paths count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fair {
    /// Whether what is always enabled must happen, or what is enabled again and again.
    pub strength: Strength,
    /// To what; `None` for processes where a model has them, else transitions.
    pub by: Option<By>,
}

impl FromStr for Fair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (strength, by) = text.split_once(':').map_or((text, None), |(strength, by)| (strength, Some(by)));
        let strength = match strength {
            "weak" => Strength::Weak,
            "strong" => Strength::Strong,
            _ => return Err("it is `weak` or `strong`, alone or with `:process` or `:transition`".into()),
        };
        let by = match by {
            None => None,
            Some("process") => Some(By::Process),
            Some("transition") => Some(By::Transition),
            Some(other) => return Err(format!("`{other}` is neither `process` nor `transition`")),
        };
        Ok(Fair { strength, by })
    }
}

impl fmt::Display for Fair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.strength == Strength::Weak { "weak" } else { "strong" })?;
        f.write_str(match self.by {
            None => "",
            Some(By::Process) => ":process",
            Some(By::Transition) => ":transition",
        })
    }
}

impl Fair {
    /// What it means for the paths of a system: a sentence without a full stop.
    pub(crate) fn sentence(self, system: &dyn System) -> String {
        let strength = if self.strength == Strength::Weak { "weakly" } else { "strongly" };
        let is_dve = system.as_any().is_some_and(|any| any.is::<DveSystem>());
        let by_default = if is_dve { By::Process } else { By::Transition };
        let to = if self.by.unwrap_or(by_default) == By::Process { "process" } else { "transition" };
        format!("of formulas of LTL, only paths that are {strength} fair to every {to} count")
    }
}

enum Of<'s> {
    /// An action is a transition.
    Itself,
    /// An action has the name of one.
    Named(&'s dyn Observe),
    /// Of each action its processes.
    Processes(Vec<Vec<u32>>),
}

/// The groups of a system's actions.
pub(crate) struct Grouping<'s> {
    pub strength: Strength,
    /// How many there are.
    pub groups: usize,
    of: Of<'s>,
}

fn processes(system: &DveSystem) -> (usize, Vec<Vec<u32>>) {
    let program = system.program();
    let of = |id: deltamark_dve::ir::TransitionId| program.transition(id).process.0;
    let step = |step: &Step| match *step {
        Step::Alone(one) => vec![of(one)],
        Step::Pair { send, receive, .. } => vec![of(send), of(receive)],
    };
    match program.timing {
        Timing::Asynchronous => (program.processes.len(), program.steps.iter().map(step).collect()),
        // Every process takes part in every step, so no path is unfair.
        Timing::Synchronous => (0, Vec::new()),
    }
}

impl<'s> Grouping<'s> {
    /// The groups of a system, or why it has none of that kind.
    pub fn new(system: &'s dyn System, fair: Fair) -> Result<Self, CheckError> {
        let dve = system.as_any().and_then(|any| any.downcast_ref::<DveSystem>());
        let refused = |message: &str, help: &str| CheckError::Misfit { message: message.into(), help: help.into() };
        let (groups, of) = match (fair.by, dve) {
            (Some(By::Process) | None, Some(dve)) => {
                let (groups, of) = processes(dve);
                (groups, Of::Processes(of))
            }
            (Some(By::Process), None) => {
                return Err(refused("fairness to processes is for models in DVE", "write `:transition`"));
            }
            (Some(By::Transition) | None, _) => {
                let observe = system.observe();
                let names = observe.map_or(0, |observe| observe.action_names().len());
                match observe {
                    Some(observe) if observe.groups_actions() => (names, Of::Named(observe)),
                    Some(_) if names > 0 && system.action_count() == Some(names as u32) => (names, Of::Itself),
                    _ => {
                        let message = "fairness speaks of transitions, and this model does not name its steps";
                        return Err(refused(message, "leave `--fair` out"));
                    }
                }
            }
        };
        Ok(Grouping { strength: fair.strength, groups, of })
    }

    /// Appends the groups of an action.
    pub fn append(&self, action: Action, groups: &mut Vec<u32>) {
        match &self.of {
            Of::Itself => groups.push(action.0),
            Of::Named(observe) => groups.push(observe.name_of_action(action) as u32),
            Of::Processes(of) => groups.extend(of.get(action.0 as usize).into_iter().flatten()),
        }
    }

    /// Whether a path is fair, by definition. One that ends is.
    pub fn is_fair(
        &self,
        trace: &Trace,
        system: &dyn System,
        control: &Control,
    ) -> Result<Result<bool, Stop>, CheckError> {
        let Some(start) = trace.cycle() else { return Ok(Ok(true)) };
        let mut taken = vec![false; self.groups];
        let mut groups = Vec::new();
        for &action in &trace.actions[start..] {
            groups.clear();
            self.append(action, &mut groups);
            groups.iter().for_each(|&group| taken[group as usize] = true);
        }
        // In how many states of the cycle each is enabled.
        let mut enabled = vec![0; self.groups];
        let mut widens = false;
        let length = trace.len() - start;
        let followed = trace.follow(system, |number, state| {
            if number == 0 {
                enabled.fill(0);
            }
            if (start..trace.len()).contains(&number) {
                match self.enabled(system, state, control) {
                    Ok(found) => found?.into_iter().for_each(|group| enabled[group as usize] += 1),
                    Err(Widen) => widens = true,
                }
            }
            control.ask()
        });
        match followed.map_err(|error| CheckError::Replay { property: String::new(), error })? {
            Ok(_) if widens => return Ok(Err(Stop::Count)),
            Ok(_) => {}
            Err(stop) => return Ok(Err(stop)),
        }
        let owed = |&count: &usize| match self.strength {
            Strength::Weak => count == length,
            Strength::Strong => count > 0,
        };
        Ok(Ok(enabled.iter().zip(&taken).all(|(count, &taken)| taken || !owed(count))))
    }

    /// The groups that are enabled in a state, each once.
    fn enabled(&self, system: &dyn System, state: &[Slot], control: &Control) -> Result<Result<Vec<u32>, Stop>, Widen> {
        let mut batch = Batch::new(system.width()).under(control);
        system.successors(&mut system.scratch(), state, &mut batch)?;
        if let Some(stop) = batch.stop() {
            return Ok(Err(stop));
        }
        let mut groups = Vec::new();
        batch.actions().iter().for_each(|&action| self.append(action, &mut groups));
        groups.sort_unstable();
        groups.dedup();
        Ok(Ok(groups))
    }
}
