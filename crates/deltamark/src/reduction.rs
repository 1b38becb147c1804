//! What is asked of reductions, and what they did.
//!
//! In: the user's choice. Out: what a report says. What stays true: figures of a reduced run are those of the reduced
//! system, never of the model; verdicts are those of the model. Lengths of shortest traces are too, unless [distances](Reduction::keeps_distances) are lost.

use std::fmt;
use std::str::FromStr;

/// Whether a run may leave states away that its properties do not need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduce {
    /// It explores every state.
    #[default]
    Off,
    /// It decides by the first states, once they have shown to be many.
    Auto,
    /// By stubborn sets, which must be possible.
    Stubborn,
    /// By a smaller net, which must be possible.
    Structure,
    /// By stubborn sets of a smaller net, as far as both are possible.
    All,
    /// By the automorphisms of a net, of which there must be some.
    Symmetry,
}

impl Reduce {
    /// All of them.
    pub const ALL: &[Reduce] =
        &[Reduce::Auto, Reduce::Off, Reduce::Stubborn, Reduce::Structure, Reduce::All, Reduce::Symmetry];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Off => "off",
            Reduce::Auto => "auto",
            Reduce::Stubborn => "stubborn",
            Reduce::Structure => "structure",
            Reduce::All => "all",
            Reduce::Symmetry => SYMMETRY,
        }
    }

    /// Whether the user insists on it.
    pub fn is_demanded(self) -> bool {
        !matches!(self, Reduce::Off | Reduce::Auto)
    }
}

impl fmt::Display for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Reduce {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Reduce::ALL.iter().copied().find(|reduce| reduce.name() == text);
        known.ok_or_else(|| "it is `auto`, `off`, `stubborn`, `structure`, `all` or `symmetry`".into())
    }
}

/// What was left away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// By what: `stubborn`, `structure`, `all` for both, or `symmetry`.
    pub kind: &'static str,
    /// The rules that were used, and how often each; stubborn sets, which are chosen in every state, once.
    pub rules: Vec<(&'static str, u64)>,
    /// The places of the net before and after, if it was made smaller.
    pub places: Option<(usize, usize)>,
    /// Its transitions.
    pub transitions: Option<(usize, usize)>,
    /// Whether nothing that could change was left, so that the initial state decides.
    pub decides: bool,
    /// Who decided to reduce, and why: a clause.
    pub decided_by: String,
    /// Whether the number of deadlocks is that of the model.
    pub keeps_deadlocks: bool,
    /// Whether shortest traces are those of the model.
    pub keeps_distances: bool,
}

impl Reduction {
    /// What was done: a clause.
    pub fn summary(&self) -> String {
        let structure = self.places.zip(self.transitions).map(|((places, fewer), (transitions, less))| {
            let rules = self.rules.iter().filter(|(rule, _)| *rule != STUBBORN);
            let rules: Vec<String> = rules.map(|(rule, times)| format!("{rule} ({times})")).collect();
            let sizes = format!("from {places} places and {transitions} transitions to {fewer} and {less}");
            format!("{sizes} by {}", rules.join(", "))
        });
        match structure {
            None if self.kind == SYMMETRY => {
                let of = self.rules.iter().map(|(rule, times)| format!(" ({rule}: {times})"));
                format!("by symmetry{}: states that are alike but for a symmetry are one", of.collect::<String>())
            }
            None => "by stubborn sets".into(),
            Some(structure) if self.decides => format!("{structure}: nothing is left to explore"),
            Some(structure) if self.kind == "all" => format!("{structure}; and by stubborn sets"),
            Some(structure) => structure,
        }
    }
}

/// The name of stubborn sets among rules.
pub(crate) const STUBBORN: &str = "stubborn";

/// The kind of a reduction that explores a quotient.
pub(crate) const SYMMETRY: &str = "symmetry";
