//! Exit codes and failures.
//!
//! In: the result of a run. Out: the exit code. What stays true: this is the only place that has the numbers,
//! and they are the ones users' scripts rely on.

use deltamark::condensed::FileError;
use deltamark::diagnostic::Diagnostic;
use deltamark::load::Source;
use deltamark::{CheckError, CondensedError, LoadError, Overall, Report};
use std::process::ExitCode;

/// The exit of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All properties hold; or there were none and all went well.
    Good,
    /// At least one property is violated.
    Violated,
    /// The input or the command line is wrong.
    WrongInput,
    /// There is no answer: a limit was reached, a lossy store found nothing, or nobody has read it to the end.
    NoAnswer,
    /// A signal ended the process at once: what a shell reports for an interrupted process.
    Interrupted,
}

impl Exit {
    /// The number the shell sees.
    pub const fn number(self) -> u8 {
        match self {
            Exit::Good => 0,
            Exit::Violated => 1,
            Exit::WrongInput => 2,
            Exit::NoAnswer => 3,
            Exit::Interrupted => 130,
        }
    }

    /// The same, to return from `main`.
    pub fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

impl From<Overall> for Exit {
    fn from(overall: Overall) -> Self {
        match overall {
            Overall::Hold => Exit::Good,
            Overall::Violated => Exit::Violated,
            Overall::NoAnswer => Exit::NoAnswer,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// A sentence, and advice.
    Plain {
        /// What is wrong.
        message: String,
        /// Advice.
        help: Option<String>,
        /// The exit.
        exit: Exit,
    },
    /// Diagnostics of a text.
    Text {
        /// The text.
        source: Source,
        /// The diagnostics.
        diagnostics: Vec<Diagnostic>,
    },
    /// The run was stopped before there was a model to search.
    Stopped(Box<Report>),
    /// Whoever read standard output went away before all was written. They know.
    Unread,
}

impl Failure {
    /// An error in the user's input.
    pub fn new(message: impl Into<String>) -> Self {
        Failure::Plain { message: message.into(), help: None, exit: Exit::WrongInput }
    }

    /// The same with advice.
    pub fn help(mut self, advice: impl Into<String>) -> Self {
        if let Failure::Plain { help, .. } = &mut self {
            *help = Some(advice.into());
        }
        self
    }

    /// The same, but not the user's error: there is no answer.
    pub fn no_answer(mut self) -> Self {
        if let Failure::Plain { exit, .. } = &mut self {
            *exit = Exit::NoAnswer;
        }
        self
    }

    /// The exit.
    pub fn exit(&self) -> Exit {
        match self {
            Failure::Plain { exit, .. } => *exit,
            Failure::Text { .. } => Exit::WrongInput,
            Failure::Stopped(_) | Failure::Unread => Exit::NoAnswer,
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let message = error.to_string();
        match error {
            LoadError::Malformed { source, diagnostics } => Failure::Text { source, diagnostics },
            LoadError::UnknownFormat { help, .. } | LoadError::Meaningless { help, .. } => {
                Failure::new(message).help(help)
            }
            LoadError::Unreadable { help: Some(help), .. } => Failure::new(message).help(help),
            LoadError::Unreadable { .. } | LoadError::Changed { .. } => Failure::new(message),
            LoadError::Stopped { .. } => Failure::new(message).no_answer(),
            LoadError::TooBig { path, limit, unpacked } => {
                let path = if path == "-" { "standard input".into() } else { format!("`{path}`") };
                let unpacked = if unpacked { " once unpacked" } else { "" };
                Failure::new(format!(
                    "{path} is too big{unpacked}: at most {} are read",
                    crate::units::show_bytes(limit)
                ))
            }
            _ => Failure::new(message),
        }
    }
}

impl From<CondensedError> for Failure {
    fn from(error: CondensedError) -> Self {
        let message = error.to_string();
        match error {
            CondensedError::Model(error) => match Failure::from(error) {
                Failure::Plain { message, help: None, exit: Exit::WrongInput } => {
                    Failure::new(message).help("`--model FILE` tells where the model of the graph is now")
                }
                other => other,
            },
            CondensedError::Changed { .. } => {
                Failure::new(message).help("give the text it was made from with `--model FILE`, or make the graph anew")
            }
            CondensedError::Code { .. } => {
                Failure::new(message).help("add `--format so` if you know who built it, to have it loaded and run")
            }
            CondensedError::Gone { .. } => Failure::new(message).help("`--model FILE` tells where it is now"),
            CondensedError::File { error: FileError::Stopped(_), .. } => Failure::new(message).no_answer(),
            _ => Failure::new(message),
        }
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        let message = error.to_string();
        match error {
            CheckError::Property { source, diagnostics } => Failure::Text { source, diagnostics },
            CheckError::Store(_) => Failure::new(message),
            CheckError::Graph(_) | CheckError::Asymmetric(_) => Failure::new(message),
            CheckError::Stopped(_) => Failure::new(message).no_answer(),
            CheckError::GraphTooLarge(_) => Failure::new(message).help("give a larger `--memory`").no_answer(),
            CheckError::Threads(_) => Failure::new(message).help("leave `--threads` out, or choose another"),
            CheckError::Sweep { help, .. } if help.is_empty() => Failure::new(message).no_answer(),
            CheckError::Sweep { help, .. } | CheckError::Misfit { help, .. } => Failure::new(message).help(help),
            CheckError::MemoryTooSmall { limit, held, least } => {
                use crate::units::show_bytes;
                let margin = least.saturating_sub(held);
                // The memory of a process varies a little from run to run.
                let enough = (least + (1 << 19)).div_ceil(1 << 20);
                Failure::new(format!(
                    "a memory limit of {} leaves no room to search: with the model loaded the process holds {}, \
                     and a search needs {} more at the least",
                    show_bytes(limit),
                    show_bytes(held),
                    show_bytes(margin)
                ))
                .help(format!("give at least `--memory {enough}MiB`"))
            }
            CheckError::AddressSpaceTooSmall { limit, mapped } => {
                use crate::units::show_bytes;
                // Three quarters of the rest are available to the search.
                let enough = (mapped + (6 << 20)).div_ceil(1 << 20) << 10;
                Failure::new(format!(
                    "an address space of {} leaves no room to search: with the model loaded {} are in use",
                    show_bytes(limit),
                    show_bytes(mapped)
                ))
                .help(format!("give more, `ulimit -v {enough}` at the least"))
            }
            CheckError::Replay { .. } => Failure::new(message)
                .help("this is a bug in Deltamark; please report it together with the model")
                .no_answer(),
            _ => Failure::new(message).no_answer(),
        }
    }
}
