//! The `deltamark` command.
//!
//! In: the command line. Out: a report on standard output, everything else on standard
//! error, and an exit code. What stays true: exit codes are decided in [`exit`], and
//! with `--json` standard output holds one JSON object and nothing else.

mod allocator;
mod args;
mod commands;
mod exit;
mod multiset;
mod offered;
mod output;
mod progress;
mod render;
mod signals;
mod stack;
mod text;
mod units;

use clap::Parser;
use exit::Exit;
use output::{Look, print};
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: allocator::Reserving = allocator::Reserving::new();

fn main() -> ExitCode {
    let since = Instant::now();
    if let Some(failure) = allocator::cramped() {
        render::failure(&failure);
        return failure.exit().code();
    }
    signals::install();
    ALLOCATOR.keep_back();
    stack::ample(|| command(since))
}

/// Does what the command line says.
fn command(since: Instant) -> ExitCode {
    let ran = match args::Arguments::try_parse() {
        Ok(arguments) => commands::run(arguments.command, since),
        // Help and the version, which the user asked for.
        Err(error) if !error.use_stderr() => {
            let text = error.render();
            let text = if Look::stdout().colour() { text.ansi().to_string() } else { text.to_string() };
            print(&signals::control(), |out| out.write_all(text.as_bytes())).map(|()| Exit::Good)
        }
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
