//! The stores by name, with their options, for the command line and for reports.
//!
//! In: text such as `plain` or `delta:k=20,base=collapse`. Out: a store, or an error
//! that names what is known. What stays true: an option that is accepted has an effect.

use crate::plain::Plain;
use deltamark_core::{Budget, Store, System, diagnostic::did_you_mean};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What the user should know about a store.
#[derive(Debug)]
pub struct StoreInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// How it works, in a sentence or two.
    pub idea: &'static str,
    /// What its answers are worth.
    pub guarantee: &'static str,
    /// When to choose it.
    pub when: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
}

/// An option of a store.
#[derive(Debug)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// The value it has when not given.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// All stores there are.
pub static CATALOGUE: &[StoreInfo] = &[StoreInfo {
    name: "plain",
    idea: "Every state in full, packed, numbered in the order found; beside them an index of 4 bytes an entry.",
    guarantee: "exact",
    when: "The fastest, and the yardstick for the others. Choose it whenever the run fits into memory.",
    options: &[],
}];

/// A store by name, with options: `NAME[:option=value,…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSpec {
    /// Its name.
    pub name: String,
    /// The options given, in order.
    pub options: Vec<(String, String)>,
}

impl Default for StoreSpec {
    fn default() -> Self {
        StoreSpec { name: "plain".into(), options: Vec::new() }
    }
}

impl fmt::Display for StoreSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (name, value)) in self.options.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// Why a text names no store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

impl FromStr for StoreSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let Some(info) = CATALOGUE.iter().find(|info| info.name == name) else {
            let known: Vec<&str> = CATALOGUE.iter().map(|info| info.name).collect();
            let hint = match did_you_mean(name, known.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("known stores: {}", known.join(", ")),
            };
            return Err(SpecError(format!("there is no store `{name}`; {hint}")));
        };
        let mut options: Vec<(String, String)> = Vec::new();
        for option in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let Some((key, value)) = option.split_once('=') else {
                return Err(SpecError(format!("`{option}` is not an option of a store; write `{name}:option=value`")));
            };
            if !info.options.iter().any(|known| known.name == key) {
                let known: Vec<&str> = info.options.iter().map(|known| known.name).collect();
                return Err(SpecError(match known.as_slice() {
                    [] => format!("the store `{name}` has no options, so `{key}` means nothing to it"),
                    known => format!("the store `{name}` has no option `{key}`; it has: {}", known.join(", ")),
                }));
            }
            if options.iter().any(|(given, _)| given == key) {
                return Err(SpecError(format!("the option `{key}` of the store `{name}` is given twice")));
            }
            options.push((key.into(), value.into()));
        }
        Ok(StoreSpec { name: name.into(), options })
    }
}

/// Makes the store that `spec` describes, for this system and within this budget.
pub fn build<'a>(
    spec: &StoreSpec,
    system: &'a dyn System,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    match spec.name.as_str() {
        "plain" => Ok(Box::new(Plain::new(system, budget))),
        other => Err(SpecError(format!("there is no store `{other}`"))),
    }
}
