//! How far a state has come.
//!
//! In: states. Out: a [`Rank`] for each, by which a sweep orders them. What stays true: a rank is
//! a function of the state alone. Nothing else is asked of a measure: a poor one costs a
//! sweep memory and time, never an answer.

use crate::{BLOCK, Block, Control, Kind, Observable, Scratch, Stop, System};

/// How far a state has come, as a number.
pub type Rank = i128;

/// In which direction the steps of a model lead, as far as that is known before they are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    /// Transitions that always lead to a higher rank.
    pub advance: usize,
    /// Transitions that never change the rank.
    pub stay: usize,
    /// Transitions that lead to a lower rank, or may.
    pub regress: usize,
}

impl Directions {
    /// How many transitions there are.
    pub fn total(self) -> usize {
        self.advance + self.stay + self.regress
    }
}

/// A progress measure.
pub trait Measure: Send + Sync {
    /// The measure as people read it.
    fn text(&self) -> String;

    /// Appends the rank of each state of a block, in order.
    fn ranks(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, out: &mut Vec<Rank>);

    /// What each action adds to the rank, by its number, if that does not depend on the state it
    /// is taken in. Ranks of successors are then additions, and a search may rely on what it knows
    /// of the actions beforehand.
    fn gains(&self) -> Option<&[Rank]> {
        None
    }

    /// In which direction the model's transitions lead, where that is known.
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

/// The measure that is a sum of observables, each with a weight.
pub struct Weighted {
    terms: Vec<(Observable, i64)>,
    gains: Option<Vec<Rank>>,
    text: String,
}

impl Weighted {
    /// The sum of these terms, each with its name as people write it. `gains` is what each action adds to it, where
    /// that is known.
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

/// A system that knows measures of its own progress.
pub trait Progress {
    /// Measures worth trying, the most promising first; none, if there is nothing that progresses. An error, if `control` has the
    /// search for them end.
    fn measures(&self, control: &Control) -> Result<Vec<Box<dyn Measure>>, Stop>;

    /// What a measure that is learnt from a sample may look at, beside all [names](crate::Observe::names): how it is called, and
    /// itself.
    fn features(&self) -> Vec<(String, Observable)> {
        Vec::new()
    }

    /// What each action, by its number, adds to a sum of observables, each with a factor, if that does not depend on the state.
    fn gains_of(&self, _terms: &[(Observable, i64)]) -> Option<Vec<i64>> {
        None
    }
}
