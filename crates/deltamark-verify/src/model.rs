//! What a certificate is checked against.
//!
//! In: the text of a model. Out: [`Model`]: states as lists of numbers, and the steps of each. What stays true: all of
//! it is computed from the text alone.

use crate::net::Net;
use crate::{pnml, tina};

/// A model that can be run, slowly.
pub(crate) trait Model {
    /// The number of variables of a state.
    fn variables(&self) -> usize;

    /// The name of a variable.
    fn variable_name(&self, number: usize) -> String;

    /// The name of a step.
    fn step_name(&self, number: u32) -> String;

    /// The initial state.
    fn initial(&self) -> Vec<i64>;

    /// Shows every step that can be taken in a state. An error ends it.
    fn steps(&self, state: &[i64], see: &mut dyn FnMut(Step<'_>) -> Result<(), String>) -> Result<(), String>;

    /// Whether a variable can have this value at all.
    fn can_hold(&self, value: i64) -> bool;

    /// The number of the variable of this name.
    fn variable(&self, name: &str) -> Result<u32, String>;

    /// The number of the transition of this name.
    fn transition(&self, name: &str) -> Result<u32, String>;

    /// Whether a transition can fire.
    fn fireable(&self, state: &[i64], transition: u32) -> bool;
}

/// A step.
pub(crate) struct Step<'a> {
    /// Its number.
    pub number: u32,
    /// The variables it changes and their new values; or what the model says is wrong with the step.
    pub changes: Result<&'a [(u32, i64)], &'a str>,
}

/// The languages that are read, by the names that certificates give them.
pub const LANGUAGES: [&str; 2] = ["pnml", "tina"];

/// The model in a text of this language.
pub(crate) fn read(language: &str, text: &[u8]) -> Result<Box<dyn Model>, String> {
    let text = match std::str::from_utf8(text) {
        _ if text.starts_with(&[0x1f, 0x8b]) || text.starts_with(b"PK\x03\x04") => {
            return Err("the model is packed: unpack it first".into());
        }
        Ok(text) => text,
        Err(_) => return Err("the model is not a text in UTF-8".into()),
    };
    let net = |net: Result<Net, String>| Ok(Box::new(net?.compiled()?) as Box<dyn Model>);
    match language {
        "pnml" => net(pnml::read(text)),
        "tina" => net(tina::read(text)),
        other => Err(format!("models in `{other}` are not read; those in {} are", LANGUAGES.join(", "))),
    }
}
