//! A look at a system before a run.
//!
//! In: a system. Out: some of its states, for a store that learns from them how states are best
//! kept. Stores contain no search, so whoever makes a store hands in the searches that it may use.

use crate::{Control, States, System};

/// A way to sample the states of a system.
pub trait Sampler: Sync {
    /// The bytes that a sample of states of this many slots takes, about, while it is taken and
    /// looked at. Whoever wants one requests them from the budget.
    fn cost(&self, slots: usize) -> u64;

    /// Some distinct reachable states that fit the current layout, which is not changed; fewer, or
    /// none, if the run must end. Always the same for the same system and layout.
    fn sample(&self, system: &dyn System, control: &Control) -> States;
}
