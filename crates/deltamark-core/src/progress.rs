//! Progress measures.
//!
//! In: states. Out: a [`Rank`] for each, by which a sweep orders them. Invariant: a rank is a
//! function of the state alone. There is no other requirement: a poor measure costs a sweep memory
//! and time, never correctness.

use crate::{BLOCK, Block, Control, Kind, Observable, Scratch, Stop, System};

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
                let value = if observable.kind == Kind::Bool { i64::from(value == 1) } else { value };
                *rank += Rank::from(weight) * Rank::from(value);
            }
        }
    }

    fn gains(&self) -> Option<&[Rank]> {
        self.gains.as_deref()
    }
}

/// A system that provides progress measures.
pub trait Progress {
    /// Measures worth trying, the most promising first; none, if there is nothing that progresses. An error, if `control` has the
    /// search for them end.
    fn measures(&self, control: &Control) -> Result<Vec<Box<dyn Measure>>, Stop>;

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
