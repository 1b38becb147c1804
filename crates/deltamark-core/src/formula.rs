//! State predicates whose structure is known.
//!
//! In: what a predicate says of itself ([`Predicate::formula`](crate::Predicate::formula)). Out: a formula in negation
//! normal form, over observables. What stays true: whether a formula is satisfied depends on the observables that it
//! names, and on whether the state is a deadlock, alone.

use crate::Observable;

/// A formula over observables; negations have been pushed into its atoms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// All of these are true.
    All(Vec<Formula>),
    /// One of these is true.
    Some(Vec<Formula>),
    /// The sum of `factor · observable` is at least a number. The sum does not overflow 64 bits in any state, or
    /// the predicate has no value there.
    AtLeast(Vec<(Observable, i64)>, i64),
    /// A truth value is this one.
    Is(Observable, bool),
    /// The state is a deadlock, or is none.
    Deadlock(bool),
    /// Some function of these observables, which may also have no value.
    Of(Vec<Observable>),
}

impl Formula {
    /// What is always true, or never.
    pub fn constant(truth: bool) -> Self {
        if truth { Formula::All(Vec::new()) } else { Formula::Some(Vec::new()) }
    }

    /// Its negation.
    #[must_use]
    pub fn negated(self) -> Self {
        let all = |parts: Vec<Formula>| parts.into_iter().map(Formula::negated).collect();
        match self {
            Formula::All(parts) => Formula::Some(all(parts)),
            Formula::Some(parts) => Formula::All(all(parts)),
            // Below `least` is at most `least - 1`.
            Formula::AtLeast(terms, least) => match least.checked_neg().and_then(|least| least.checked_add(1)) {
                Some(least) => {
                    let terms = terms.into_iter().map(|(observable, factor)| (observable, factor.saturating_neg()));
                    Formula::AtLeast(terms.collect(), least)
                }
                None => Formula::Of(terms.into_iter().map(|term| term.0).collect()),
            },
            Formula::Is(observable, truth) => Formula::Is(observable, !truth),
            Formula::Deadlock(truth) => Formula::Deadlock(!truth),
            Formula::Of(observables) => Formula::Of(observables),
        }
    }

    /// A function of what the formula depends on, of which nothing else is known.
    #[must_use]
    pub fn obscured(self) -> Self {
        let (mut observables, mut deadlock) = (Vec::new(), false);
        self.each_atom(&mut |atom| match atom {
            Formula::AtLeast(terms, _) => observables.extend(terms.iter().map(|term| term.0)),
            Formula::Is(observable, _) => observables.push(*observable),
            Formula::Of(of) => observables.extend(of),
            Formula::Deadlock(_) => deadlock = true,
            Formula::All(_) | Formula::Some(_) => {}
        });
        observables.sort_unstable_by_key(|observable| observable.index);
        observables.dedup();
        match deadlock {
            // A path changes whether its state is a deadlock only by ending in one.
            true => Formula::Some(vec![Formula::Of(observables), Formula::Deadlock(true)]),
            false => Formula::Of(observables),
        }
    }

    /// Calls `see` with all its atoms.
    pub fn each_atom<'f>(&'f self, see: &mut dyn FnMut(&'f Formula)) {
        match self {
            Formula::All(parts) | Formula::Some(parts) => parts.iter().for_each(|part| part.each_atom(see)),
            atom => see(atom),
        }
    }
}
