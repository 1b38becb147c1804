//! What is asked of reductions, and what they did.
//!
//! In: the user's choice. Out: what a report says. What stays true: figures of a reduced run are those of the reduced
//! system, never of the model; verdicts, and lengths of shortest traces, are those of the model.

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
}

impl Reduce {
    /// All of them.
    pub const ALL: &[Reduce] = &[Reduce::Auto, Reduce::Off, Reduce::Stubborn];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Off => "off",
            Reduce::Auto => "auto",
            Reduce::Stubborn => "stubborn",
        }
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
        known.ok_or_else(|| match text {
            "structure" | "all" => format!("structural reduction (`{text}`) is not part of this version"),
            _ => "it is `auto`, `off` or `stubborn`".into(),
        })
    }
}

/// What was left away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// By what: `stubborn`.
    pub kind: &'static str,
    /// Who decided it, and why: a clause.
    pub decided_by: String,
    /// Whether the number of deadlocks is that of the model.
    pub keeps_deadlocks: bool,
}
