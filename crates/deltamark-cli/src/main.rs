//! The `deltamark` command.
//!
//! In: the command line. Out: a report on standard output, everything else on standard
//! error, and an exit code. What stays true: exit codes are decided in [`exit`], and
//! with `--json` standard output holds one JSON object and nothing else.

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

/// Asks the operating system for memory less often and gives it back sooner.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let since = Instant::now();
    let arguments = args::Arguments::parse();
    match commands::run(arguments.command, since) {
        Ok(exit) => exit.code(),
        Err(failure) => {
            render::failure(&failure);
            failure.exit().code()
        }
    }
}
