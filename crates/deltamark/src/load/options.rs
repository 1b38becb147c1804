//! How a model is loaded.
//!
//! In: what the user asked for. Out: [`LoadOptions`]. Invariant: whatever makes a difference to the
//! model can be written as words and read back, so that a file can record how its model was loaded.

use super::LARGEST_FILE;
use deltamark_dve::EngineChoice;

/// How to load a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// The name of its format; `None` if the file's name or its content gives it.
    pub format: Option<String>,
    /// Values of its parameters, by name. A later one of the same name counts.
    pub parameters: Vec<(String, String)>,
    /// Initial markings of places, by name, in the language of the model. A later one of the same name counts.
    pub markings: Vec<(String, String)>,
    /// What makes successors, where there is a choice.
    pub engine: Option<EngineChoice>,
    /// Whether a coloured net runs as the P/T net it unfolds to.
    pub unfold: Unfold,
    /// The most bytes to read.
    pub limit: u64,
}

/// Whether a coloured net runs as the P/T net it unfolds to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfold {
    /// If that is possible and small.
    #[default]
    Auto,
    /// Always; a net that cannot be unfolded is refused.
    Yes,
    /// Never.
    No,
}

impl std::str::FromStr for Unfold {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "auto" => Ok(Unfold::Auto),
            "yes" => Ok(Unfold::Yes),
            "no" => Ok(Unfold::No),
            _ => Err("write yes, no or auto".into()),
        }
    }
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            format: None,
            parameters: Vec::new(),
            markings: Vec::new(),
            unfold: Unfold::Auto,
            engine: None,
            limit: LARGEST_FILE,
        }
    }
}

impl LoadOptions {
    /// What makes a difference to the model, in words that [`with_words`](Self::with_words) reads. The format is not
    /// among them: it is known of every model.
    pub(super) fn words(&self) -> Vec<(String, String)> {
        let mut words: Vec<(String, String)> = Vec::new();
        let parameter = |(name, value): &(String, String)| ("param".into(), format!("{name}={value}"));
        words.extend(self.parameters.iter().map(parameter));
        let marking = |(name, value): &(String, String)| ("marking".into(), format!("{name}={value}"));
        words.extend(self.markings.iter().map(marking));
        words.extend(match self.unfold {
            Unfold::Auto => None,
            Unfold::Yes => Some(("unfold".into(), "yes".into())),
            Unfold::No => Some(("unfold".into(), "no".into())),
        });
        words.extend(self.engine.map(|engine| ("engine".into(), engine.to_string())));
        words
    }

    /// Adds options that were put into words; `None` if one is not known.
    pub fn with_words(mut self, words: &[(String, String)]) -> Option<Self> {
        for (name, value) in words {
            match name.as_str() {
                "param" => {
                    let (name, value) = value.split_once('=')?;
                    self.parameters.push((name.into(), value.into()));
                }
                "marking" => {
                    let (name, value) = value.split_once('=')?;
                    self.markings.push((name.into(), value.into()));
                }
                "unfold" => self.unfold = value.parse().ok()?,
                "engine" => self.engine = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        Some(self)
    }
}
