//! A trace with the model's own states and actions.
//!
//! In: a replayed trace. Out: a [`Path`] of values, to be inspected or printed.

use crate::pack::Pack;
use std::fmt::{self, Debug};

/// A trace of a model: states of type `S` and actions of type `A`, as values.
///
/// ```
/// # use deltamark::{Model, Step};
/// # struct Doubling;
/// # impl Model for Doubling {
/// #     type State = (u8,);
/// #     type Action = Happens;
/// #     fn initial(&self) -> Vec<(u8,)> { vec![(1,)] }
/// #     fn actions(&self, _: &(u8,), actions: &mut Vec<Happens>) {
/// #         actions.extend([Happens::Double, Happens::Add(3)]);
/// #     }
/// #     fn next(&self, state: &mut (u8,), action: Happens) -> Step {
/// #         let next = match action {
/// #             Happens::Double => state.0.checked_mul(2),
/// #             Happens::Add(number) => state.0.checked_add(number),
/// #         };
/// #         state.0 = next.unwrap_or(state.0);
/// #         next.is_some().into()
/// #     }
/// # }
/// #[derive(Debug, PartialEq)]
/// enum Happens {
///     Double,
///     Add(u8),
/// }
/// # let report = deltamark::check(Doubling).reachable("ten", |state| state.0 == 10).run()?;
/// let path = report.trace("ten").expect("a goal that is reached has a trace");
/// let actions: Vec<&Happens> = path.actions().collect();
/// assert_eq!(actions, [&Happens::Double, &Happens::Add(3), &Happens::Double]);
/// assert_eq!((path.initial.0, path.last().0), (1, 10));
/// # Ok::<(), deltamark::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<S, A> {
    /// The initial state.
    pub initial: S,
    /// The actions, each with the state after it.
    pub steps: Vec<(A, S)>,
    /// The last action and the model's message, if that action is a fault.
    pub fault: Option<(A, String)>,
    /// The number of steps before the cycle, if the last state is the one after these.
    pub cycle: Option<usize>,
}

impl<S, A> Path<S, A> {
    /// The last state.
    pub fn last(&self) -> &S {
        self.steps.last().map_or(&self.initial, |(_, state)| state)
    }

    /// The actions, first to last, including one that is a fault.
    pub fn actions(&self) -> impl Iterator<Item = &A> {
        self.steps.iter().map(|(action, _)| action).chain(self.fault.iter().map(|(action, _)| action))
    }

    /// The states, first to last.
    pub fn states(&self) -> impl Iterator<Item = &S> {
        std::iter::once(&self.initial).chain(self.steps.iter().map(|(_, state)| state))
    }
}

impl<S: Pack, A: Debug> fmt::Display for Path<S, A> {
    /// The initial state in full, then each action with what it changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = self.initial.fields();
        write!(f, "  initially")?;
        before.iter().try_for_each(|(name, value)| write!(f, "  {name} = {value}"))?;
        writeln!(f)?;
        for (index, (action, state)) in self.steps.iter().enumerate() {
            let after = state.fields();
            if self.cycle == Some(index) {
                writeln!(f, "       the cycle begins here")?;
            }
            write!(f, "  {:>3}. {action:?}", index + 1)?;
            for changed in after.iter().filter(|field| !before.contains(field)) {
                write!(f, "  {} = {}", changed.0, changed.1)?;
            }
            writeln!(f)?;
            before = after;
        }
        if let Some((action, message)) = &self.fault {
            writeln!(f, "  {:>3}. {action:?}  fault: {message}", self.steps.len() + 1)?;
        }
        Ok(())
    }
}
