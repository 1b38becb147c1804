//! The `deltamark` command.
//!
//! In: the command line. Out: a report on standard output, everything else on standard
//! error, and an exit code. What stays true: exit codes are decided in [`exit`], and
//! with `--json` standard output holds one JSON object and nothing else.

mod allocator;
mod args;
mod commands;
mod exit;
mod output;
mod progress;
mod render;
mod text;
mod units;

use clap::Parser;
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: allocator::Reserving = allocator::Reserving::new();

fn main() -> ExitCode {
    let since = Instant::now();
    ALLOCATOR.keep_back();
    let ran = match args::Arguments::try_parse() {
        Ok(arguments) => commands::run(arguments.command, since),
        Err(error) => Err(args::explained(&error).unwrap_or_else(|| error.exit())),
    };
    match ran {
        Ok(exit) => exit.code(),
        Err(failure) => {
            render::failure(&failure);
            failure.exit().code()
        }
    }
}
