//! Measures Deltamark.
//!
//! In: a list of nets, stores and searches. Out: a table for people and one line of JSON a run, appended to
//! `bench-history.jsonl`. What stays true: every run is a process of its own, so that its resident size is its
//! own; counts are compared with the known ones, so that a fast wrong run is not shown as a result.
//!
//! ```text
//! cargo run --release -p deltamark-bench -- table            about a minute
//! cargo run --release -p deltamark-bench -- table --long     nets of up to 44 million states too
//! cargo run --release -p deltamark-bench -- stores           every store against `plain`, half an hour
//! cargo run --release -p deltamark-bench -- even             every store on every model: where each is worst
//! cargo run --release -p deltamark-bench -- dve              models in DVE: native code, interpreter, SPIN
//! cargo run --release -p deltamark-bench -- tools            SPIN and rumur beside us, where they are installed
//! cargo run --release -p deltamark-bench -- threads          one thread, two, two parts: ten minutes
//! cargo run --release -p deltamark-bench -- sweep            sweeps: what they hold at once, and their time
//! cargo run --release -p deltamark-bench -- reduce           reductions: states and time by question
//! cargo run --release -p deltamark-bench -- instructions     needs valgrind
//! ```

mod dve;
mod even;
mod instructions;
mod nets;
mod once;
mod process;
mod reduce;
mod stores;
mod sweep;
mod table;
mod threads;
mod tools;

use clap::{Parser, Subcommand};
use process::Failure;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Measures Deltamark", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a list of nets and prints a table
    Table(table::TableOptions),
    /// Runs every store next to `plain` and prints a table for each net
    Stores(stores::StoresOptions),
    /// Runs every store on every model of the outside corpus and prints where each is worst
    Even(even::EvenOptions),
    /// Runs models in DVE by native code and by the interpreter, and SPIN beside them
    Dve(dve::DveOptions),
    /// Runs SPIN and rumur, where they are installed, and Deltamark on the same systems
    Tools(tools::ToolsOptions),
    /// Sweeps over nets with the measure that is found for each, and prints a table
    Sweep(sweep::SweepOptions),
    /// Runs nets with one thread, with several that share a store, and in parts
    Threads(threads::ThreadsOptions),
    /// Asks P/T nets of the outside corpus questions, by each kind of reduction
    Reduce(reduce::ReduceOptions),
    /// Asks one question of one net and prints one line of JSON
    Question(reduce::QuestionOptions),
    /// Counts instructions per edge on small nets, with valgrind
    Instructions(instructions::InstructionsOptions),
    /// Runs one net once and prints one line of JSON
    Once(once::OnceOptions),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Table(options) => table::run(&options).map_err(Failure::Refused),
        Command::Stores(options) => stores::run(&options),
        Command::Even(options) => even::run(&options),
        Command::Dve(options) => dve::run(&options),
        Command::Tools(options) => tools::run(&options),
        Command::Sweep(options) => sweep::run_all(&options),
        Command::Threads(options) => threads::run(&options),
        Command::Reduce(options) => reduce::run(&options),
        Command::Question(options) => reduce::single(&options),
        Command::Instructions(options) => instructions::run(&options).map_err(Failure::Refused),
        Command::Once(options) => once::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.code()
        }
    }
}
