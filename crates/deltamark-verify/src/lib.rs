//! Checks certificates: that what Deltamark answered about a model is so.
//!
//! In: the bytes of a certificate, and the text of its model. Out: [`Accepted`], what was checked; or a [`Failure`]. What
//! stays true: nothing that a certificate says is believed. Whatever bytes it consists of, it is accepted only if its
//! claims are true of the model, as this crate reads it; and nothing here panics, recurses without bound, or takes more
//! memory than it was given.
//!
//! # What is checked
//! A certificate holds a set of states, and for each property a claim that rests on the set or on a path.
//!
//! * The set: the initial state is in it, and every step of every state in it leads into it. So it holds all reachable
//!   states, perhaps more. A claim about all reachable states (that there is no deadlock and no fault, that an invariant is
//!   true, that a goal is true nowhere) is checked in each state of the set.
//! * A path: it begins in the initial state, a step leads from each of its states to the next, and the last state, or
//!   a step from it, is what is claimed: a deadlock, a fault, a state in which an invariant is not true, or one in which
//!   a goal is.
//!
//! States of the set that cannot be reached do no harm: were a claim false in one of them, the certificate would be
//! rejected although the answer may be right; never the other way round.
//!
//! # What is trusted
//! This crate, with its own readers of models and of expressions, and its own steps, which share no code with the rest of
//! Deltamark; of other people's code the checksum (`crc32fast`), the standard library and the compiler.

mod certificate;
mod check;
mod model;
mod net;
mod pnml;
mod property;
mod states;
mod tina;
mod xml;

pub use certificate::{MAGIC, VERSION};
pub use model::LANGUAGES;

use certificate::Unread;

/// How far a check may go.
pub struct Limits<'a> {
    /// The most bytes that the claims and the states take.
    pub memory: u64,
    /// The whole limit, of which `memory` is left, for messages.
    pub whole: u64,
    /// Whether to stop, which is asked often.
    pub stop: &'a dyn Fn() -> Option<String>,
}

/// What was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The language of the model.
    pub language: String,
    /// The states of the set, each counted once; `None` if no claim rests on a set.
    pub states: Option<u64>,
    /// The steps that were taken, from states of the set and along paths.
    pub steps: u64,
    /// The claims, in order.
    pub claims: Vec<CheckedClaim>,
}

/// A claim that was found to be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedClaim {
    /// Whether the property holds; it is violated otherwise.
    pub holds: bool,
    /// The word for what was asked: `deadlock-free`, `fault-free`, `invariant` or `reachable`.
    pub kind: &'static str,
    /// The name of the property.
    pub name: String,
    /// What was asked, as it was evaluated: an expression, or nothing.
    pub text: String,
    /// Expressions of which one is true where a deadlock is a right end.
    pub ends: Vec<String>,
    /// The steps of the path that shows it; `None` if the states do.
    pub path: Option<u64>,
}

impl std::fmt::Display for Accepted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "accepted")?;
        for claim in &self.claims {
            let verdict = if claim.holds { "holds" } else { "violated" };
            write!(f, "  {verdict}  {}", claim.kind)?;
            if !claim.text.is_empty() {
                write!(f, ": {}", claim.text)?;
            }
            if claim.name != claim.text && claim.name != claim.kind {
                write!(f, " (`{}`)", claim.name)?;
            }
            for end in &claim.ends {
                write!(f, ", unless {end}")?;
            }
            match claim.path {
                Some(steps) => writeln!(f, ": shown by a path of {steps} steps")?,
                None => writeln!(f, ": in every state of the set")?,
            }
        }
        writeln!(f, "checked")?;
        if let Some(states) = self.states {
            writeln!(f, "  the initial state is in a set of {states} states, and every step of each leads into it")?;
        }
        writeln!(f, "  {} steps were taken", self.steps)?;
        let language = &self.language;
        writeln!(f, "trusted")?;
        writeln!(f, "  the reader of `{language}`, the steps and the expressions of deltamark-verify; its compiler")
    }
}

/// Why a certificate was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It is wrong: what, and where.
    Rejected(String),
    /// It is no certificate, or the model cannot be read.
    Input(String),
    /// A limit was reached before all was checked.
    Limit(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Rejected(why) | Failure::Input(why) | Failure::Limit(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Failure {}

/// The hash of a model's text in certificates: 64-bit FNV-1a. It tells a wrong file from the right one, and nothing rests
/// on it.
pub fn text_hash(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Whether a model in this language, by the name that certificates give it, is read: otherwise why not.
pub fn reads(language: &str, text: &[u8]) -> Result<(), String> {
    model::read(language, text).map(drop).map_err(|why| plain(&why))
}

/// A message that shows what it says: on one line, and not long.
fn plain(message: &str) -> String {
    const MOST: usize = 1000;
    let mut shown = String::new();
    for c in message.chars() {
        if shown.len() > MOST {
            return shown + "…";
        }
        match certificate::disguises(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

/// Checks a certificate against the text of a model.
pub fn verify(file: &[u8], text: &[u8], limits: &Limits<'_>) -> Result<Accepted, Failure> {
    // What is quoted comes from files.
    checked(file, text, limits).map_err(|failure| match failure {
        Failure::Rejected(why) => Failure::Rejected(plain(&why)),
        Failure::Input(why) => Failure::Input(plain(&why)),
        Failure::Limit(why) => Failure::Limit(plain(&why)),
    })
}

fn checked(file: &[u8], text: &[u8], limits: &Limits<'_>) -> Result<Accepted, Failure> {
    let rejected = check::unreadable;
    let mut bytes = certificate::body(file).map_err(|unread| match unread {
        Unread::Other(why) => Failure::Input(format!("the file is no certificate that is read: {why}")),
        Unread::Damaged(why) => rejected(why),
    })?;
    let head = certificate::head(&mut bytes).map_err(rejected)?;
    if head.text != (text.len() as u64, text_hash(text)) {
        return Err(Failure::Rejected("the certificate is of another model, or of another version of its text".into()));
    }
    if let Some((option, value)) = head.options.first() {
        return Err(Failure::Input(format!("a model with the option {option}={value} is not read")));
    }
    let model = model::read(head.language, text).map_err(|why| Failure::Input(format!("the model: {why}")))?;
    check::check(&head, bytes, model.as_ref(), limits)
}
