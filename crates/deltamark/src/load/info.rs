//! What is known of a model.
//!
//! In: a reader's results. Out: [`Loaded`], a system with its [`ModelInfo`], which reports show.

use deltamark_core::System;

/// What reports say about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The path of its file, as the user gave it; `None` for a model that is Rust code.
    pub path: Option<String>,
    /// The name of its format.
    pub format: &'static str,
    /// Its size: how many of what, for instance 5 `places` and 4 `transitions`.
    pub sizes: Vec<(&'static str, u64)>,
    /// Whether its steps can be faults; `None` if that is not known.
    pub can_fault: Option<bool>,
    /// Whether everything that properties can name is a count of tokens.
    pub counts_tokens: bool,
    /// How it is run, where there is a choice: a clause without a full stop.
    pub note: Option<String>,
    /// What of the file is read in a way that the user should know, or is not read: clauses without a full stop.
    pub remarks: Vec<String>,
    /// Invariants that came with it: name and expression. They are checked when no other property is asked for.
    pub properties: Vec<(String, String)>,
    /// Formulas of LTL that came with it: name and text. They are checked with these.
    pub formulas: Vec<(String, String)>,
    /// Its final markings: expressions, each true in exactly one of them. A deadlock there is a right end.
    pub final_markings: Vec<String>,
    /// Names of statements about its states that property files can use.
    pub propositions: Vec<String>,
    /// What identifies its text: its length and a checksum.
    pub text: Option<(u64, u64)>,
    /// What else it takes to load it alike, in words: names of options and their values.
    pub options: Vec<(String, String)>,
}

impl ModelInfo {
    /// What is known of a model that is Rust code.
    pub fn code() -> Self {
        ModelInfo {
            path: None,
            format: "rust",
            sizes: Vec::new(),
            can_fault: None,
            counts_tokens: false,
            note: None,
            properties: Vec::new(),
            formulas: Vec::new(),
            final_markings: Vec::new(),
            remarks: Vec::new(),
            propositions: Vec::new(),
            text: None,
            options: Vec::new(),
        }
    }
}

/// A model from a file, ready to be run.
pub struct Loaded {
    /// The model itself.
    pub system: Box<dyn System>,
    /// What reports say about it.
    pub info: ModelInfo,
}
