//! The smaller net that answers what is asked of a P/T net.
//!
//! In: a net's system, and properties. Out: the system of the [reduced net](deltamark_nets::reduce), and its outcome as one of the original. What stays true:
//! every trace of that outcome is expanded, replayed in the original, and ends in a state that decides its property there: a wrong rule
//! ends the run instead of being believed.

use crate::check::CheckError;
use crate::reduction::Reduction;
use deltamark_core::{
    Batch, Block, Control, Formula, Goal, Observable, Outcome, Property, Slot, StateId, Stop, System, Trace, Verdict,
    Widen,
};
use deltamark_nets::reduce::{KEEP_STATES, Kept, ReducedSystem, reduce};
use deltamark_nets::{Net, NetSystem};

/// A net and the smaller one.
pub(crate) struct Smaller<'s> {
    original: &'s Net,
    pub system: ReducedSystem<'s>,
}

/// The net that a system is.
pub(crate) fn net_of(system: &dyn System) -> Option<&NetSystem> {
    let net = system.as_any().and_then(|any| any.downcast_ref::<NetSystem>());
    // A layer over a net hands on the net's queries, and may have other steps.
    net.filter(|net| std::ptr::addr_eq(system, std::ptr::from_ref(*net)))
}

/// What the properties need of a net; or, as a sentence without a full stop, why nothing is known that suffices.
pub(crate) fn kept(system: &NetSystem, properties: &[Property], work: u64) -> Result<Kept, String> {
    let mut kept = Kept { visible: Vec::new(), deadlocks: false, work };
    for property in properties {
        let formula = match &property.goal {
            Goal::DeadlockFree => Some(Formula::Deadlock(true)),
            // No step of a net is a fault.
            Goal::FaultFree => continue,
            Goal::Invariant(predicate) => predicate.formula(false),
            Goal::Reachable(predicate) => predicate.formula(true),
            _ => None,
        };
        let Some(formula) = formula else {
            return Err(format!("it is not known what `{}` depends on", property.name));
        };
        let (mut deadlock, mut opaque, mut alive) = (false, false, false);
        let mut see = |observable: Observable| kept.visible.extend(system.places_of(observable));
        formula.each_atom(&mut |atom| match atom {
            Formula::AtLeast(terms, _) => terms.iter().for_each(|term| see(term.0)),
            Formula::Is(observable, _) => see(*observable),
            Formula::Of(observables) => {
                opaque = true;
                observables.iter().for_each(|&observable| see(observable));
            }
            Formula::Deadlock(truth) => (deadlock, alive) = (true, alive || !truth),
            Formula::All(_) | Formula::Some(_) => {}
        });
        // It must be monotone in being a deadlock.
        if alive || deadlock && opaque {
            return Err(format!("`{}` is about states that are no deadlocks", property.name));
        }
        kept.deadlocks |= deadlock;
    }
    kept.visible.sort_unstable();
    kept.visible.dedup();
    Ok(kept)
}

impl<'s> Smaller<'s> {
    /// The smaller net, or why there is none.
    pub fn of(
        system: &'s dyn System,
        properties: &[Property],
        work: u64,
        control: &Control,
    ) -> Result<Result<Self, String>, Stop> {
        let Some(net_system) = net_of(system) else {
            return Ok(Err("this model is no P/T net".into()));
        };
        let kept = match kept(net_system, properties, work) {
            Ok(kept) => kept,
            Err(why) => return Ok(Err(why)),
        };
        let original = net_system.net();
        if original.has_priorities() {
            return Ok(Err("some transitions of this net have priority over others".into()));
        }
        let Some(reduced) = reduce(original, &kept, control)? else {
            return Ok(Err("no rule applies to this net".into()));
        };
        Ok(Ok(Smaller { original, system: ReducedSystem::under(original, reduced, control)? }))
    }

    /// The smaller net itself.
    pub fn net(&self) -> &Net {
        &self.system.reduced().net
    }

    /// The same system once more, for whoever must leave the first one alone.
    pub fn another(&self, control: &Control) -> Result<ReducedSystem<'s>, Stop> {
        ReducedSystem::under(self.original, self.system.reduced().clone(), control)
    }

    /// How often a rule was used that may leave states away.
    pub fn left_out(&self) -> usize {
        let rules = self.system.reduced().rules.iter();
        rules.filter(|(rule, _)| !KEEP_STATES.contains(rule)).map(|(_, times)| *times as usize).sum()
    }

    /// Has the traces of an outcome be those of the original.
    pub fn tell(
        &self,
        outcome: &mut Outcome,
        whole: &dyn System,
        properties: &[Property],
        control: &Control,
    ) -> Result<(), CheckError> {
        for (found, property) in outcome.properties.iter_mut().zip(properties) {
            let (Verdict::Holds(trace) | Verdict::Violated(trace, _)) = &mut found.verdict else { continue };
            let Some(path) = trace else { continue };
            match self.system.reduced().expanded(self.original, &path.actions, control) {
                Ok(actions) => *path = Trace::path(path.initial, actions),
                Err(stop) => {
                    *trace = None;
                    found.untraced = Some(stop);
                    continue;
                }
            }
            match decides(whole, property, path, control) {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => panic!(
                    "the trace of `{}` ends in a state of the original net that does not decide it: a rule is wrong",
                    property.name
                ),
                Ok(Err(stop)) => {
                    *trace = None;
                    found.untraced = Some(stop);
                }
                Err(error) => return Err(CheckError::Replay { property: property.name.clone(), error }),
            }
        }
        Ok(())
    }

    /// What was done to the net.
    pub fn describe(&self, reduction: &mut Reduction) {
        let reduced = self.system.reduced();
        reduction.rules.extend(reduced.rules.iter().copied());
        reduction.places = Some((self.original.places.len(), reduced.net.places.len()));
        reduction.transitions = Some((self.original.transitions.len(), reduced.net.transitions.len()));
        reduction.decides = reduced.is_decided();
    }
}

/// Whether a trace ends in a state that decides a property.
pub(crate) fn decides(
    system: &dyn System,
    property: &Property,
    trace: &Trace,
    control: &Control,
) -> Result<Result<bool, Stop>, deltamark_core::ReplayError> {
    loop {
        let mut last: Vec<Slot> = Vec::new();
        let followed = trace.follow(system, |_, state| {
            control.ask()?;
            state.clone_into(&mut last);
            Ok(())
        })?;
        if let Err(stop) = followed {
            return Ok(Err(stop));
        }
        let mut block = Block::new(system.width());
        block.push(StateId::NAMELESS, &last);
        let (mut scratch, mut batch) = (system.scratch(), Batch::new(system.width()));
        if let Err(Widen) = system.expand(&mut scratch, &block, &mut batch) {
            drop(system.widen());
            continue;
        }
        let dead = block.mask() & !batch.moved();
        let decided = property.goal.look(system, &mut scratch, &block, dead, batch.faults());
        return Ok(Ok((decided.states | decided.undefined) & 1 == 1 || decided.unknown));
    }
}
