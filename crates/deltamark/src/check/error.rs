//! Why a run could not be made, or its result not be reported.
//!
//! In: what was found to be wrong. Out: a sentence. What stays true: every refusal is a [`CheckError`].

use crate::load::Source;
use deltamark_core::{Diagnostic, ReplayError, Stop};
use deltamark_store::SpecError;
use std::fmt;

/// Why a run could not be made, or its result not be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    /// The store cannot be made.
    Store(SpecError),
    /// What was chosen does not run with several threads.
    Threads(String),
    /// What was chosen does not go with a sweep, or a sweep not with the model.
    Sweep {
        /// Why.
        message: String,
        /// What to do; empty, if there is nothing.
        help: String,
    },
    /// The memory limit is below what the process holds before the search begins.
    MemoryTooSmall {
        /// The limit.
        limit: u64,
        /// What the process holds.
        held: u64,
        /// The smallest limit that leaves room to search.
        least: u64,
    },
    /// What was asked does not go with the model, or with what else was asked.
    Misfit {
        /// Why.
        message: String,
        /// What to do.
        help: String,
    },
    /// The process may map so little memory more that not even the smallest tables fit.
    AddressSpaceTooSmall {
        /// The limit.
        limit: u64,
        /// What is mapped.
        mapped: u64,
    },
    /// A property is wrong.
    Property {
        /// Its text.
        source: Source,
        /// What is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The graph cannot be written or walked: a sentence.
    Graph(String),
    /// The memory limit has no room for what a walk over the graph needs: a sentence.
    GraphTooLarge(String),
    /// The run had to end before there was anything to report.
    Stopped(Stop),
    /// What is called a symmetry is none, or a property is not symmetric: how that was found out.
    Asymmetric(String),
    /// A trace could not be replayed: a bug of Deltamark or of the system.
    Replay {
        /// The property it belongs to.
        property: String,
        /// What went wrong.
        error: ReplayError,
    },
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::Store(error) => error.fmt(f),
            CheckError::Threads(message)
            | CheckError::Graph(message)
            | CheckError::GraphTooLarge(message)
            | CheckError::Sweep { message, .. }
            | CheckError::Misfit { message, .. } => f.write_str(message),
            CheckError::MemoryTooSmall { limit, held, least } => write!(
                f,
                "a memory limit of {limit} bytes leaves no room to search: the process holds {held} bytes \
                 with the model loaded; at least {least} bytes are needed"
            ),
            CheckError::AddressSpaceTooSmall { limit, mapped } => write!(
                f,
                "the address space of this process is limited to {limit} bytes, of which {mapped} are in use \
                 with the model loaded: that leaves no room to search"
            ),
            CheckError::Property { source, diagnostics } => {
                for (index, diagnostic) in diagnostics.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{}: {}", source.name, diagnostic.message)?;
                }
                Ok(())
            }
            CheckError::Asymmetric(why) => write!(f, "this is no symmetry of what is asked: {why}"),
            CheckError::Stopped(stop) => f.write_str(match stop {
                Stop::Memory => "the memory limit was reached",
                Stop::Time => "the time limit was reached",
                _ => "the run was ended",
            }),
            CheckError::Replay { property, error } => {
                write!(f, "the trace of `{property}` does not replay ({error}), so its answer is not to be trusted")
            }
        }
    }
}

impl std::error::Error for CheckError {}
