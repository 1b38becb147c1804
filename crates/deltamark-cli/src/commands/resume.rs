//! `deltamark resume`.
//!
//! In: a directory with checkpoints. Out: what `check` prints. What stays true: the run is the one that kept them, as its
//! command line says, over the files that it read; only what is given now differs.

use super::check::{self, Going};
use crate::args::{self, Arguments, Asked, Command};
use crate::exit::{Exit, Failure};
use crate::signals;
use clap::Parser;
use deltamark::checkpoint::{CheckpointError, Checkpoints};
use deltamark::control::steering;
use deltamark::{Limits, ModelInfo, Report};
use std::time::Instant;

/// Goes on.
pub fn run(arguments: args::Resume, since: Instant) -> Result<Exit, Failure> {
    let limits = arguments.limits();
    // Files are compared a buffer at a time; a limit on memory is judged once the model is loaded, as in any run.
    let control = steering(&Limits { memory: None, ..limits.clone() }, &signals::cancel(), since);
    let checkpoints = match Checkpoints::resume(&arguments.directory, arguments.older, &control) {
        Ok(checkpoints) => checkpoints,
        Err(CheckpointError::Stopped(stop)) => {
            let report = Report::before_search(ModelInfo::code(), "loading", stop, limits.memory, since);
            return check::show(&report, None, limits.memory.is_some(), &arguments.say, &control);
        }
        Err(error) => return Err(check::unkept(error)),
    };
    let words = std::iter::once("deltamark").chain(checkpoints.words().iter().map(String::as_str));
    let other =
        || Failure::new(format!("the checkpoints in `{}` are of no command that is known", arguments.directory));
    let Ok(Arguments { command: Command::Check(mut asked) }) = Arguments::try_parse_from(words) else {
        return Err(other());
    };
    let model = checkpoints.input("model").ok_or_else(other)?;
    let named = std::mem::replace(&mut asked.model.model, model);
    for file in &mut asked.asked.asked {
        if let Asked::File(path) = file {
            *path = checkpoints.input("properties").ok_or_else(other)?;
        }
    }
    let asked = arguments.asked_again(asked, checkpoints.store().parse().ok());
    let checkpoints = checkpoints.every(asked.checkpoint_every);
    check::go(&asked, Some(Going { checkpoints, named: Some(named) }), since)
}
