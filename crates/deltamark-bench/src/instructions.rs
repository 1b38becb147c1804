//! Instructions per edge.
//!
//! In: two sizes of the same family of nets. Out: the instructions that each further edge takes, counted by
//! valgrind: independent of the load of the machine, so that the cost of a change is measurable. Start-up cancels
//! out, because the smaller net is subtracted.
//!
//! Valgrind does not support AVX-512: the count is that of the AVX2 path.

use crate::once::Record;
use std::process::Command;

/// What to count.
#[derive(clap::Args)]
pub struct InstructionsOptions {
    /// The store
    #[arg(long, default_value = "plain")]
    store: String,
    /// The search
    #[arg(long, default_value = "bfs")]
    search: String,
}

const PAIRS: &[(&str, &str)] =
    &[("kanban-2", "kanban-3"), ("philosophers-7", "philosophers-9"), ("database-managers-6", "database-managers-8")];

/// Counts and prints.
pub fn run(options: &InstructionsOptions) -> Result<(), String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Err("this needs valgrind (Debian: `apt-get install valgrind`)".into());
    }
    println!("{:<24}{:>10}{:>20}", "net", "edges", "instructions/edge");
    for (small, large) in PAIRS {
        let (before, few) = count(options, small)?;
        let (after, many) = count(options, large)?;
        let each = (after - before) as f64 / (many.edges - few.edges) as f64;
        println!("{large:<24}{:>10}{each:>20.1}", many.edges);
    }
    Ok(())
}

fn count(options: &InstructionsOptions, net: &str) -> Result<(u64, Record), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["once", net, "--store", &options.store, "--search", &options.search])
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    let counted = counted.ok_or_else(|| format!("valgrind says:\n{text}"))?;
    let record = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok((counted, record))
}
