//! Formulas answered on an explicit graph: a Kripke structure.
//!
//! In: the edges between numbered states and, for each atom, the states in which it is true ([`Kripke`]); formulas of
//! CTL*, of which CTL and LTL are parts ([`Pool`](crate::temporal::Pool)). Out: whether a formula is true in all initial
//! states, and a path that shows it ([`Evaluator`]). What stays true: states are numbers, and nothing here knows how
//! they came about; all memory in proportion to the graph was granted by the budget.
//!
//! ```text
//! formula ─┬─ sets        state formulas: a bit for each state, each distinct one once
//!          │    ├─ steps        EX, E U, EG: forward and backward edges
//!          │    └─ order        EF, E GF: strongly connected components, found once
//!          ├─ letters     other path formulas: an automaton whose letters are sets
//!          │    └─ product      reachable accepting components
//!          ├─ initial     the same where only the initial states matter: forwards, and no further than needed
//!          └─ witness     a path that shows the answer
//! formula ─── size        whether it is too large, before there is a graph
//! ```
//!
//! An evaluator belongs to a thread; several of them share what they have evaluated (`shared`).
//!
//! A state without edges repeats for ever ([`temporal`](crate::temporal) explains why that serves CTL too).

mod edges;
mod initial;
mod letters;
mod order;
mod product;
mod sets;
mod shared;
mod size;
mod steps;
mod vector;
mod witness;

pub use edges::Edges;
pub use sets::{Evaluator, StateSet};
pub use size::is_too_large;
pub use vector::Counted;
pub use witness::NumberedPath;

use deltamark_core::{BitSet, Control, Stop};

/// A graph with the values of atoms.
pub struct Kripke {
    /// The edges between states.
    pub edges: Edges,
    /// The numbers of the initial states; at least one.
    pub initial: Vec<u32>,
    /// Of each atom the states in which it is true.
    pub atoms: Vec<BitSet>,
}

impl Kripke {
    /// The number of states.
    pub fn states(&self) -> u32 {
        self.edges.states()
    }
}

/// An empty set of `count` states.
fn set(count: u32, control: &Control) -> Result<BitSet, Stop> {
    BitSet::new(count.into(), &control.budget).ok_or(Stop::Memory)
}

/// Makes room for `more` states on a path. Paths leave with the answers, so the budget holds no grant for them.
#[inline]
fn make_room(path: &mut Vec<u32>, more: usize, control: &Control) -> Result<(), Stop> {
    if path.capacity() - path.len() >= more {
        return Ok(());
    }
    let wanted = more.max(path.capacity() / 4).max(64);
    control.ask_for((wanted * size_of::<u32>()) as u64)?;
    path.reserve_exact(wanted);
    Ok(())
}

/// Polls a control once in many steps.
struct Pulse<'c> {
    control: &'c Control,
    steps: u32,
}

impl<'c> Pulse<'c> {
    fn new(control: &'c Control) -> Self {
        Pulse { control, steps: 0 }
    }

    #[inline]
    fn beat(&mut self) -> Result<(), Stop> {
        const EVERY: u32 = 1 << 10;
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(EVERY) { self.control.ask() } else { Ok(()) }
    }
}
