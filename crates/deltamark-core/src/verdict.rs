//! What a run found about a property, and the verdict that follows from it.
//!
//! In: a block of states and a goal; later the states that decide it. Out: which states decide it,
//! and a [`PropertyOutcome`]. What stays true: this file alone knows what a goal asks of a state and
//! which answer a state, or the absence of one, gives. Searches, graphs and whatever else visits
//! states ask [`Goal::look`] and [`Property::outcome`].

use crate::property::Undefined;
use crate::{
    Block, Fault, Goal, Guarantee, Predicate, Property, PropertyOutcome, Scratch, Stop, System, Trace, Verdict,
};

/// The states of a block that say something about a goal.
pub struct Decided<'b> {
    /// A bit for each state that decides it: a deadlock, a source of a faulty step, a state in which
    /// an invariant is false, or in which a reachability goal is true.
    pub states: u64,
    /// A bit for each state in which it has no value; of faults, where the state itself is wrong.
    pub undefined: u64,
    /// Of faults, the one that the shortest trace leads to.
    pub fault: Option<&'b Fault>,
    /// Why it has no value, in the first of these states.
    pub why: Option<Undefined>,
    /// Whether some state was left undecided because its evaluation reached a bound: the run must
    /// end, and what it did not find stays unknown.
    pub unknown: bool,
}

impl Goal {
    /// Whether one state suffices for it to hold. Of such a goal a state without a value decides
    /// nothing; any other is violated there.
    pub fn is_existential(&self) -> bool {
        match self {
            Goal::Reachable(_) => true,
            Goal::DeadlockFree | Goal::FaultFree | Goal::Invariant(_) => false,
        }
    }

    /// What the states of a block say about this goal. `dead` has a bit for each state without
    /// successors, `faults` are those of the block.
    pub fn look<'b>(
        &self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        dead: u64,
        faults: &'b [Fault],
    ) -> Decided<'b> {
        let found = |states: u64| Decided { states, undefined: 0, fault: None, why: None, unknown: false };
        match self {
            Goal::DeadlockFree => found(dead),
            Goal::FaultFree => {
                let sources = |of_step: bool| {
                    let faults = faults.iter().filter(|fault| fault.action.is_some() == of_step);
                    faults.fold(0u64, |mask, fault| mask | 1 << fault.source)
                };
                let fault = faults.iter().min_by_key(|fault| fault.action.is_some());
                Decided { undefined: sources(false), fault, ..found(sources(true)) }
            }
            Goal::Invariant(predicate) | Goal::Reachable(predicate) => {
                let single = match predicate.evaluate(system, scratch, block, dead) {
                    Ok(truths) => Singles { truths: truths & block.mask(), ..Singles::default() },
                    Err(_) => one_by_one(&**predicate, system, scratch, block, dead),
                };
                let Singles { truths, undefined, unknown, why } = single;
                let falsehoods = block.mask() & !truths & !undefined & !unknown;
                let decided = if self.is_existential() { truths } else { falsehoods };
                Decided { undefined, why, unknown: unknown != 0, ..found(decided) }
            }
        }
    }

    /// The verdict where a state decides it.
    pub fn decided(&self, trace: Option<Trace>, message: Option<String>) -> Verdict {
        if self.is_existential() { Verdict::Holds(trace) } else { Verdict::Violated(trace, message) }
    }
}

/// The values of a predicate in the states of a block, a bit each.
#[derive(Default)]
struct Singles {
    truths: u64,
    undefined: u64,
    unknown: u64,
    /// Why it has no value in the first state that is undefined.
    why: Option<Undefined>,
}

/// The values of a predicate, if it has none in some state of the block.
#[cold]
fn one_by_one(
    predicate: &dyn Predicate,
    system: &dyn System,
    scratch: &mut Scratch,
    block: &Block,
    dead: u64,
) -> Singles {
    let mut single = Block::new(system.width());
    let mut found = Singles::default();
    for (index, state) in block.states().iter().enumerate() {
        single.reset(system.width());
        single.push(block.id(index), state);
        match predicate.evaluate(system, scratch, &single, dead >> index & 1) {
            Ok(mask) => found.truths |= (mask & 1) << index,
            Err(why) if why.limit => {
                // Each further state may take as long again, and the run ends here anyway.
                found.unknown |= block.mask() & u64::MAX << index;
                break;
            }
            Err(why) => {
                found.undefined |= 1 << index;
                found.why.get_or_insert(Undefined { state: index, ..why });
            }
        }
    }
    found
}

/// A state that says something about a property.
#[derive(Clone, Debug)]
pub struct Witness {
    /// The path to it, or why none was found: memory or time did not suffice, or the user asked to
    /// stop.
    pub trace: Result<Trace, Stop>,
    /// What the trace alone does not show.
    pub message: Option<String>,
}

impl Witness {
    fn steps(&self) -> usize {
        self.trace.as_ref().map_or(usize::MAX, Trace::len)
    }
}

/// What a run found about one property.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// A state that [decides](Decided::states) it.
    pub decided: Option<Witness>,
    /// A state in which it [has no value](Decided::undefined).
    pub undefined: Option<Witness>,
    /// Whether one of them was found by a probe, so that its path need not be a shortest one.
    pub probed: bool,
}

impl Property {
    /// The answer that follows from what was found by a run that ended for this reason, over a store
    /// of this guarantee.
    pub fn outcome(&self, found: Evidence, stopped_by: Option<Stop>, guarantee: Guarantee) -> PropertyOutcome {
        let existential = self.goal.is_existential();
        let all_seen = stopped_by.is_none() && matches!(guarantee, Guarantee::Exact);
        let Evidence { decided, undefined, probed } = found;
        let witness = match (decided, undefined) {
            (Some(decided), undefined) => {
                // The nearer of both is shown.
                let nearer = undefined.filter(|undefined| !existential && undefined.steps() < decided.steps());
                Some((self.goal.decided(None, None), nearer.unwrap_or(decided)))
            }
            // A state in which a goal has no value settles nothing while it may be true in another one.
            (None, undefined) => undefined
                .filter(|_| !existential || all_seen)
                .map(|undefined| (Verdict::Violated(None, None), undefined)),
        };
        let (verdict, untraced) = match witness {
            Some((verdict, Witness { trace, message })) => {
                let untraced = trace.as_ref().err().copied();
                match verdict {
                    Verdict::Holds(_) => (Verdict::Holds(trace.ok()), untraced),
                    _ => (Verdict::Violated(trace.ok(), message), untraced),
                }
            }
            None => (without_witness(existential, stopped_by, guarantee), None),
        };
        PropertyOutcome { name: self.name.clone(), text: self.text.clone(), verdict, untraced, probed }
    }
}

/// The answer where no state says anything about a property.
fn without_witness(existential: bool, stopped_by: Option<Stop>, guarantee: Guarantee) -> Verdict {
    match (stopped_by, guarantee) {
        (Some(_), _) => Verdict::Unknown,
        (None, Guarantee::Omission(_)) if existential => Verdict::Unknown,
        (None, Guarantee::Omission(probability)) => Verdict::NoViolationFound(probability),
        (None, Guarantee::Exact) if existential => Verdict::Violated(None, None),
        (None, Guarantee::Exact) => Verdict::Holds(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;

    struct Nowhere;

    impl Predicate for Nowhere {
        fn evaluate(&self, _: &dyn System, _: &mut Scratch, _: &Block, _: u64) -> Result<u64, Undefined> {
            Ok(0)
        }
    }

    /// `d3`: decided after three steps; `u1`: without a value after one; `d?`: decided, no trace.
    fn evidence(text: &str) -> Evidence {
        let witness = |word: &str, message: Option<&str>| {
            let trace = match word[1..].parse() {
                Ok(steps) => Ok(Trace::path(0, vec![Action(0); steps])),
                Err(_) => Err(Stop::Time),
            };
            Witness { trace, message: message.map(String::from) }
        };
        let mut found = Evidence::default();
        for word in text.split_whitespace() {
            match &word[..1] {
                "d" => found.decided = Some(witness(word, None)),
                _ => found.undefined = Some(witness(word, Some("no value"))),
            }
        }
        found
    }

    #[test]
    fn what_was_found_decides_and_what_was_not_needs_a_complete_run() {
        const EXACT: Guarantee = Guarantee::Exact;
        const LOSSY: Guarantee = Guarantee::Omission(0.5);
        let invariant = || Goal::Invariant(Box::new(Nowhere));
        let reachable = || Goal::Reachable(Box::new(Nowhere));
        let cases: [(Goal, &str, Option<Stop>, Guarantee, &str); 22] = [
            (invariant(), "", None, EXACT, "holds"),
            (invariant(), "", None, LOSSY, "no violation found"),
            (invariant(), "", Some(Stop::Time), EXACT, "unknown"),
            (invariant(), "", Some(Stop::Answered), EXACT, "unknown"),
            (Goal::DeadlockFree, "", None, EXACT, "holds"),
            (Goal::FaultFree, "", Some(Stop::Memory), LOSSY, "unknown"),
            (invariant(), "d2", Some(Stop::Time), LOSSY, "violated 2"),
            (invariant(), "d?", None, EXACT, "violated untraced"),
            (invariant(), "u1", Some(Stop::Time), EXACT, "violated 1 no value"),
            (invariant(), "d2 u1", None, EXACT, "violated 1 no value"),
            (invariant(), "d2 u2", None, EXACT, "violated 2"),
            (invariant(), "d? u2", None, EXACT, "violated 2 no value"),
            (invariant(), "d2 u?", None, EXACT, "violated 2"),
            (Goal::FaultFree, "d3 u2", None, EXACT, "violated 2 no value"),
            (reachable(), "", None, EXACT, "violated"),
            (reachable(), "", None, LOSSY, "unknown"),
            (reachable(), "", Some(Stop::Depth), EXACT, "unknown"),
            (reachable(), "d3 u1", Some(Stop::Time), LOSSY, "holds 3"),
            (reachable(), "d? u1", None, EXACT, "holds untraced"),
            (reachable(), "u1", None, EXACT, "violated 1 no value"),
            (reachable(), "u1", None, LOSSY, "unknown"),
            (reachable(), "u1", Some(Stop::Time), EXACT, "unknown"),
        ];
        for (goal, found, stopped_by, guarantee, expected) in cases {
            let property = Property { name: "p".into(), text: "p".into(), goal };
            let outcome = property.outcome(evidence(found), stopped_by, guarantee);
            let mut told = vec![outcome.verdict.word().to_string()];
            told.extend(outcome.verdict.trace().map(|trace| trace.len().to_string()));
            told.extend(outcome.untraced.map(|_| "untraced".into()));
            if let Verdict::Violated(_, Some(message)) = &outcome.verdict {
                told.push(message.clone());
            }
            assert_eq!(told.join(" "), expected, "{found:?}, {stopped_by:?}, {guarantee:?}");
        }
    }
}
