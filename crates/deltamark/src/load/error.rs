//! Why a model could not be loaded.
//!
//! In: what a reader found wrong. Out: a [`LoadError`] with its [`Source`], so that the place can be
//! shown.

use deltamark_core::{Diagnostic, Stop};
use std::fmt;

/// A text that was read, kept so that what is wrong with it can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// How to call it: the file's path, or the option it comes from.
    pub name: String,
    /// The text, up to the first byte that is no UTF-8.
    pub text: String,
}

/// How a file of this name is called.
fn called(name: String) -> String {
    if name == "-" { "<stdin>".into() } else { name }
}

impl Source {
    /// A source from bytes that may not be text; `-` is the standard input.
    pub fn new(name: impl Into<String>, bytes: &[u8]) -> Self {
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        Source { name: called(name.into()), text: valid.into() }
    }

    /// The same without a second copy, unless the bytes are no text.
    pub fn of_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Source { name: called(name.into()), text },
            Err(error) => Source::new(name, error.as_bytes()),
        }
    }
}

/// Why a model could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable {
        /// Its path.
        path: String,
        /// Why, in the operating system's words.
        reason: String,
        /// What to do about it, where that is known.
        help: Option<String>,
    },
    /// The file is larger than what is read.
    TooBig {
        /// Its path.
        path: String,
        /// The most bytes that are read.
        limit: u64,
        /// Whether it is so after it was unpacked or decoded.
        unpacked: bool,
    },
    /// The file holds another text than it should.
    Changed {
        /// Its path.
        path: String,
    },
    /// Neither the name of the file nor `--format` gives the format.
    UnknownFormat {
        /// What is wrong, in a sentence.
        message: String,
        /// What to do about it.
        help: String,
    },
    /// An option that says nothing about a model of this format.
    Meaningless {
        /// What is wrong, in a sentence.
        message: String,
        /// What to do about it.
        help: String,
    },
    /// The text is wrong.
    Malformed {
        /// The text.
        source: Source,
        /// What is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The run had to end before the model was ready.
    Stopped {
        /// How reports call the model.
        path: String,
        /// The name of its format; `None` if that is not known yet.
        format: Option<&'static str>,
        /// What was being done: "loading" or "unfolding".
        phase: &'static str,
        /// Why.
        stop: Stop,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable { path, reason, .. } => write!(f, "cannot read {}: {reason}", shown(path)),
            LoadError::TooBig { path, limit, unpacked } => {
                let unpacked = if *unpacked { "unpacked, " } else { "" };
                write!(f, "{unpacked}{} is larger than {limit} bytes, the most that is read here", shown(path))
            }
            LoadError::Changed { path } => write!(f, "{} has changed", shown(path)),
            LoadError::UnknownFormat { message, .. } | LoadError::Meaningless { message, .. } => f.write_str(message),
            LoadError::Stopped { phase, stop, .. } => {
                let why = match stop {
                    Stop::Memory => "the memory limit was reached",
                    Stop::Time => "the time limit was reached",
                    _ => "the run was ended",
                };
                write!(f, "{why} while {phase} the model")
            }
            LoadError::Malformed { source, diagnostics } => {
                for (index, diagnostic) in diagnostics.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{}:", source.name)?;
                    if let Some(span) = diagnostic.span {
                        let (line, column) = deltamark_core::diagnostic::line_column(&source.text, span.start);
                        write!(f, "{line}:{column}:")?;
                    }
                    write!(f, " {}", diagnostic.message)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// How messages call a file.
pub(super) fn shown(path: &str) -> String {
    if path == "-" { "standard input".into() } else { format!("`{path}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_ends_where_text_ends() {
        assert_eq!(Source::new("x", b"ab\xffcd").text, "ab");
    }
}
