//! Automata on infinite words.
//!
//! In: a path formula ([`Pool`]). Out: an [`Automaton`] that accepts exactly the words on which it is true:
//! nondeterministic, with generalised Büchi acceptance on transitions (TGBA). What stays true: it has one initial
//! state; every state accepts some word; a run is accepting if for each acceptance set it takes transitions of the set
//! infinitely often, so without sets every infinite run is.
//!
//! ```text
//! formula ─tableau─▶ Automaton ─components─▶ dead states cut, acceptance only where it counts
//!                                └─simulation─▶ states merged, redundant transitions dropped
//! ```

mod components;
mod show;
mod simulation;
mod tableau;

use crate::temporal::{FormulaId, Pool};
use deltamark_core::{Control, Stop};

/// The most atoms, and the most acceptance sets, of an automaton.
pub const MAX_LETTERS: u32 = 64;

/// A transition: what must be true in the current state, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transition {
    /// The next state.
    pub to: u32,
    /// A bit for each atom that must be true.
    pub positive: u64,
    /// A bit for each atom that must be false.
    pub negative: u64,
    /// A bit for each acceptance set that it is in.
    pub accepting: u64,
}

impl Transition {
    /// Whether it can be taken where exactly the atoms of `letter` are true.
    #[inline]
    pub fn matches(&self, letter: u64) -> bool {
        self.positive & !letter == 0 && self.negative & letter == 0
    }

    /// Whether it can be taken wherever `other` can.
    fn covers(&self, other: &Transition) -> bool {
        self.positive & !other.positive == 0 && self.negative & !other.negative == 0
    }
}

/// An automaton on infinite words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automaton {
    /// The transitions of each state.
    pub states: Vec<Vec<Transition>>,
    /// The initial state.
    pub initial: u32,
    /// The number of acceptance sets.
    pub sets: u32,
    /// The number of atoms.
    pub atoms: u32,
}

/// Why there is no automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAutomaton {
    /// The formula has more than [`MAX_LETTERS`] atoms or untils, too many ways to go on from a state, or a path
    /// quantifier.
    TooLarge,
    /// A limit was reached.
    Stopped(Stop),
}

impl From<Stop> for NoAutomaton {
    fn from(stop: Stop) -> Self {
        NoAutomaton::Stopped(stop)
    }
}

/// What an automaton is by its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It accepts nothing.
    Empty,
    /// Every infinite run is accepting.
    Safety,
    /// Accepting runs end in a state that accepts every word.
    Terminal,
    /// Each component is accepting as a whole or not at all.
    Weak,
    /// None of these.
    General,
}

impl Shape {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Shape::Empty => "empty",
            Shape::Safety => "safety",
            Shape::Terminal => "terminal",
            Shape::Weak => "weak",
            Shape::General => "general",
        }
    }
}

/// The most states after which an automaton is not tried further.
const TRIED: usize = 1 << 12;

impl Automaton {
    /// Whether a formula is found to be too large when its first states are translated.
    pub fn is_too_large(pool: &mut Pool, formula: FormulaId, atoms: u32, control: &Control) -> Result<bool, Stop> {
        match tableau::automaton(pool, formula, atoms, TRIED, control) {
            Ok(_) => Ok(false),
            Err(NoAutomaton::TooLarge) => Ok(true),
            Err(NoAutomaton::Stopped(stop)) => Err(stop),
        }
    }

    /// Translates a path formula over atoms `0..atoms`.
    pub fn new(pool: &mut Pool, formula: FormulaId, atoms: u32, control: &Control) -> Result<Self, NoAutomaton> {
        let mut automaton = tableau::automaton(pool, formula, atoms, usize::MAX, control)?;
        loop {
            let before = automaton.size();
            automaton.keep_useful();
            automaton.limit_acceptance();
            automaton.merge_similar(control)?;
            automaton.keep_useful();
            if automaton.size() == before {
                return Ok(automaton);
            }
        }
    }

    fn size(&self) -> (usize, usize, u32) {
        (self.states.len(), self.states.iter().map(Vec::len).sum(), self.sets)
    }

    /// All acceptance sets, as bits.
    pub fn all_sets(&self) -> u64 {
        if self.sets == 64 { u64::MAX } else { (1 << self.sets) - 1 }
    }

    /// Whether it accepts no word.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Whether a state accepts every word for the simple reason that it can stay there.
    pub fn accepts_all(&self, state: u32) -> bool {
        let all = self.all_sets();
        self.states[state as usize]
            .iter()
            .any(|one| one.to == state && one.positive | one.negative == 0 && one.accepting == all)
    }

    /// Whether it accepts the word of these letters, after the last of which that at `back` follows.
    pub fn accepts_lasso(&self, letters: &[u64], back: usize) -> bool {
        if self.is_empty() || back >= letters.len() {
            return false;
        }
        let count = letters.len();
        let mut product = Automaton {
            states: vec![Vec::new(); self.states.len() * count],
            initial: self.initial * count as u32,
            sets: self.sets,
            atoms: 0,
        };
        for (state, transitions) in self.states.iter().enumerate() {
            for (position, &letter) in letters.iter().enumerate() {
                let next = if position + 1 < count { position + 1 } else { back };
                let matching = transitions.iter().filter(|one| one.matches(letter));
                product.states[state * count + position].extend(matching.map(|one| Transition {
                    to: one.to * count as u32 + next as u32,
                    positive: 0,
                    negative: 0,
                    accepting: one.accepting,
                }));
            }
        }
        product.keep_useful();
        !product.is_empty()
    }
}
