//! Progress measures.
//!
//! In: states. Out: a [`Rank`] for each, by which a sweep orders them. Invariant: a rank is a
//! function of the state alone. There is no other requirement: a poor measure costs a sweep memory
//! and time, never correctness.

use crate::{BLOCK, Block, Control, Observable, ObservableKind, Scratch, Stop, System};
use std::borrow::Cow;

/// The progress of a state.
pub type Rank = i128;

/// How the transitions of a model change the rank, as far as known statically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    /// Transitions that always increase the rank.
    pub advance: usize,
    /// Transitions that never change the rank.
    pub stay: usize,
    /// Transitions that decrease the rank, or may.
    pub regress: usize,
}

impl Directions {
    /// The number of transitions.
    pub fn total(self) -> usize {
        self.advance + self.stay + self.regress
    }
}

/// A progress measure.
pub trait Measure: Send + Sync {
    /// The measure as readable text.
    fn text(&self) -> String;

    /// Appends the rank of each state of a block, in order.
    fn ranks(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, out: &mut Vec<Rank>);

    /// What each action adds to the rank, by its number, if that does not depend on the source
    /// state. Ranks of successors are then computed by addition, and a search may rely on the gains
    /// in advance.
    fn gains(&self) -> Option<&[Rank]> {
        None
    }

    /// How the model's transitions change the rank, if known.
    fn directions(&self) -> Option<Directions> {
        let gains = self.gains()?;
        let count = |which: fn(&&Rank) -> bool| gains.iter().filter(which).count();
        Some(Directions {
            advance: count(|gain| **gain > 0),
            stay: count(|gain| **gain == 0),
            regress: count(|gain| **gain < 0),
        })
    }
}

/// A weighted sum of observables.
pub struct Weighted {
    terms: Vec<(Observable, i64)>,
    gains: Option<Vec<Rank>>,
    text: String,
}

impl Weighted {
    /// The sum of these terms, each with its readable name. `gains` is what each action adds to it,
    /// if known.
    pub fn new(terms: impl IntoIterator<Item = (String, Observable, i64)>, gains: Option<Vec<Rank>>) -> Self {
        let mut sum = Weighted { terms: Vec::new(), gains, text: String::new() };
        for (name, observable, weight) in terms {
            let sign = match (weight < 0, sum.text.is_empty()) {
                (true, true) => "-",
                (true, false) => " - ",
                (false, true) => "",
                (false, false) => " + ",
            };
            sum.text.push_str(sign);
            if weight.abs() != 1 {
                sum.text.push_str(&format!("{} * ", weight.abs()));
            }
            sum.text.push_str(&name);
            sum.terms.push((observable, weight));
        }
        sum
    }
}

impl Measure for Weighted {
    fn text(&self) -> String {
        self.text.clone()
    }

    fn ranks(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, out: &mut Vec<Rank>) {
        let start = out.len();
        out.resize(start + block.len(), 0);
        let Some(observe) = system.observe() else { return };
        let mut values = [0; BLOCK];
        for &(observable, weight) in &self.terms {
            observe.read_block(scratch, block, observable, &mut values);
            for (rank, &value) in out[start..].iter_mut().zip(&values) {
                // A truth value without a value counts as none.
                let value = if observable.kind == ObservableKind::Bool { i64::from(value == 1) } else { value };
                *rank += Rank::from(weight) * Rank::from(value);
            }
        }
    }

    fn gains(&self) -> Option<&[Rank]> {
        self.gains.as_deref()
    }
}

/// Counts, and how every action changes them.
pub struct Effects<'s> {
    /// The counts: each with its name in the property language.
    pub counts: Vec<(String, Observable)>,
    /// For each action, by its number, the counts it changes, ascending, and by how much.
    pub changes: Cow<'s, [Vec<(u32, i64)>]>,
    /// Estimates of how much it matters that an action increases a measure; each has a value for every action. Where
    /// not all can increase it, the action with the least value is given up.
    pub estimates: Vec<Vec<u64>>,
}

impl Effects<'_> {
    /// What each of these actions adds to the sum of the counts with these weights; `None` on overflow.
    pub fn gains(changes: &[Vec<(u32, i64)>], weights: &[i64]) -> Option<Vec<i64>> {
        let gain = |change: &Vec<(u32, i64)>| {
            change.iter().try_fold(0i64, |sum, &(count, by)| sum.checked_add(weights[count as usize].checked_mul(by)?))
        };
        changes.iter().map(gain).collect()
    }
}

/// What a system states of its progress. Measures are computed from it, for all languages.
pub trait Progress {
    /// Counts that every action changes by an amount of its own, whatever the state; `None` if actions are not
    /// numbered beforehand, or change nothing in this way. An error if `control` ends the run.
    fn effects(&self, _control: &Control) -> Result<Option<Effects<'_>>, Stop> {
        Ok(None)
    }

    /// Additional features for a measure learnt from a sample, beside all
    /// [names](crate::Observe::names): name and observable.
    fn features(&self) -> Vec<(String, Observable)> {
        Vec::new()
    }

    /// What each action, by its number, adds to a weighted sum of observables, if that does not
    /// depend on the state.
    fn gains_of(&self, _terms: &[(Observable, i64)]) -> Option<Vec<i64>> {
        None
    }
}
