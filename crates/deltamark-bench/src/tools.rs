//! Other tools on the same systems, measured at the same time.
//!
//! In: systems that are written in several languages: `NAME.mdve` for us, `NAME.pml` for SPIN, `NAME.m` for rumur.
//! Out: a table of processor time and resident size. What stays true: a tool that is not installed, or that fails,
//! is reported and skipped; a tool with other counts of states or transitions than ours is reported too, because
//! then it did not do the same work.
//!
//! ```text
//! cargo run --release -p deltamark-bench -- tools
//! cargo run --release -p deltamark-bench -- tools --systems my/folder
//! ```
//!
//! SPIN is compiled by `cc -O2`, with exact storage, no reduction, no stop at errors; `-o2` keeps it from clearing
//! dead variables, which other tools do not do either. rumur runs with one thread and without symmetry reduction,
//! compiled by `cc -O3`. Their time is that of the search alone; generating and compiling code is shown
//! separately. Ours is the whole process, including native code.

use crate::once::Record;
use crate::process::{Failure, append, measure};
use comfy_table::{CellAlignment, Table};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(clap::Args)]
pub struct ToolsOptions {
    /// A folder with the same systems as `NAME.mdve`, `NAME.pml` and `NAME.m`
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/systems"))]
    systems: PathBuf,
    /// Our stores
    #[arg(long, value_delimiter = ',', default_value = "plain,compact")]
    stores: Vec<String>,
    /// Runs of each of ours, of which the quickest is shown
    #[arg(long, default_value_t = 2)]
    repeat: u32,
    /// Where one line of JSON a run of ours is appended
    #[arg(long, default_value = "bench-history.jsonl")]
    history: String,
}

/// The counts of a tool, and its cost.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub states: u64,
    pub transitions: u64,
    /// Processor time of the search.
    pub seconds: f64,
    /// Wall-clock time to generate and compile the code.
    pub making: f64,
    /// The peak resident size.
    pub resident: Option<u64>,
}

/// Measures.
pub fn run(options: &ToolsOptions) -> Result<(), Failure> {
    let mut names: Vec<String> = fs::read_dir(&options.systems)
        .map_err(|error| Failure::Refused(format!("{}: {error}", options.systems.display())))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".mdve").map(str::to_string))
        .collect();
    names.sort();
    if names.is_empty() {
        return Err(Failure::Refused(format!("{} holds no `NAME.mdve`", options.systems.display())));
    }
    let mut table = Table::new();
    table.set_header([
        "system",
        "tool",
        "states",
        "edges",
        "seconds",
        "M states/s",
        "bytes/state",
        "time",
        "compiling s",
    ]);
    for name in &names {
        let file = |ending: &str| options.systems.join(format!("{name}.{ending}"));
        let mut yardstick = None;
        for store in &options.stores {
            let record = best(options, &file("mdve"), store)?;
            let reading = Reading {
                states: record.states,
                transitions: record.edges,
                seconds: record.time(),
                making: 0.0,
                resident: record.resident_bytes,
            };
            let first = *yardstick.get_or_insert(reading);
            row(&mut table, name, &format!("deltamark {store}"), &reading, &first);
        }
        let Some(first) = yardstick else { continue };
        type Tool = fn(&Path) -> Result<Reading, String>;
        let others: [(&str, &str, Tool); 2] = [("SPIN", "pml", spin), ("rumur", "m", rumur)];
        for (tool, ending, run) in others {
            let source = file(ending);
            match run(&source) {
                Err(why) => eprintln!("SKIPPED: {tool} on {name}: {why}"),
                Ok(reading) => {
                    if (reading.states, reading.transitions) != (first.states, first.transitions) {
                        let Reading { states, transitions, .. } = reading;
                        eprintln!("{tool} on {name}: {states} states and {transitions} transitions, not the same work");
                    }
                    row(&mut table, name, tool, &reading, &first);
                }
            }
        }
    }
    table.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    println!(
        "{table}\nbytes: of the whole process, SPIN's with the table and the stack it is given (`-w24 -m10000000`); time: in times of the \
         first row of a system"
    );
    Ok(())
}

fn row(table: &mut Table, name: &str, tool: &str, reading: &Reading, first: &Reading) {
    let states = reading.states.max(1) as f64;
    table.add_row([
        name.to_string(),
        tool.to_string(),
        reading.states.to_string(),
        reading.transitions.to_string(),
        format!("{:.2}", reading.seconds),
        format!("{:.2}", states / reading.seconds.max(1e-6) / 1e6),
        reading.resident.map_or("-".into(), |bytes| format!("{:.1}", bytes as f64 / states)),
        format!("{:.1}", reading.seconds / first.seconds.max(1e-6)),
        if reading.making > 0.0 { format!("{:.1}", reading.making) } else { "-".into() },
    ]);
}

/// The fastest of several runs of ours.
fn best(options: &ToolsOptions, model: &Path, store: &str) -> Result<Record, Failure> {
    let mut quickest: Option<Record> = None;
    for _ in 0..options.repeat.max(1) {
        let record = measure(&format!("dve:{}", model.display()), store, "bfs", &[], None)?;
        append(&options.history, &record)?;
        if quickest.as_ref().is_none_or(|best| record.time() < best.time()) {
            quickest = Some(record);
        }
    }
    quickest.ok_or_else(|| Failure::Broken("nothing was run".into()))
}

/// Runs SPIN on a Promela source.
pub fn spin(source: &Path) -> Result<Reading, String> {
    in_folder(source, |place, source| {
        let began = Instant::now();
        run_in(place, "spin", &["-o2", "-a", source])?;
        run_in(place, "cc", &["-O2", "-w", "-DNOREDUCE", "-DSAFETY", "-DMEMLIM=16000", "-o", "pan", "pan.c"])?;
        let making = began.elapsed().as_secs_f64();
        let run = watched(place, "./pan", &["-m10000000", "-w24", "-A", "-E", "-c0", "-n"])?;
        if run.text.contains("max search depth too small") || run.text.contains("out of memory") {
            return Err("it did not come to its end".into());
        }
        let (states, transitions) = spin_counts(&run.text).ok_or("what it printed is not understood")?;
        // It counts the arrival in the initial state as one.
        let transitions = transitions.saturating_sub(1);
        Ok(Reading { states, transitions, seconds: run.seconds, making, resident: run.resident })
    })
}

/// Runs rumur on a Murphi source.
fn rumur(source: &Path) -> Result<Reading, String> {
    in_folder(source, |place, source| {
        let began = Instant::now();
        let options =
            ["--symmetry-reduction", "off", "--deadlock-detection", "off", "--threads", "1", "--color", "off"];
        run_in(place, "rumur", &[&options[..], &["--output", "checker.c", source]].concat())?;
        // A double-word compare-and-swap, if the processor has one.
        let wide = if cfg!(target_arch = "x86_64") { "-mcx16" } else { "-w" };
        run_in(place, "cc", &["-O3", "-w", "-std=c11", wide, "-o", "checker", "checker.c", "-lpthread"])?;
        let making = began.elapsed().as_secs_f64();
        let run = watched(place, "./checker", &[])?;
        let (states, transitions) = rumur_counts(&run.text).ok_or("what it printed is not understood")?;
        Ok(Reading { states, transitions, seconds: run.seconds, making, resident: run.resident })
    })
}

/// The states and transitions that `pan` reports.
fn spin_counts(text: &str) -> Option<(u64, u64)> {
    let number = |words: &str| {
        let line = text.lines().find(|line| line.contains(words))?;
        line.split_whitespace().next()?.parse::<f64>().ok().map(|count| count as u64)
    };
    Some((number("states, stored")?, number("transitions (= stored+matched)")?))
}

/// The final counts of rumur's checker: `12 states, 34 rules fired in 5s.`
fn rumur_counts(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().rfind(|line| line.contains("rules fired in"))?;
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    let counts = (numbers.next()?, numbers.next()?);
    text.contains("No error found").then_some(counts)
}

/// Runs `act` in a temporary folder.
fn in_folder<T>(source: &Path, act: impl FnOnce(&Path, &str) -> Result<T, String>) -> Result<T, String> {
    let source = source.canonicalize().map_err(|error| error.to_string())?;
    let name = source.file_name().and_then(|name| name.to_str()).ok_or("its path is no text")?;
    let place = std::env::temp_dir().join(format!("deltamark-bench-{}-{name}", std::process::id()));
    fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let result = act(&place, source.to_str().ok_or("its path is no text")?);
    let _ = fs::remove_dir_all(&place);
    result
}

fn run_in(place: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).current_dir(place).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {}", output.status)) }
}

/// The output and cost of a process.
struct Watched {
    text: String,
    seconds: f64,
    resident: Option<u64>,
}

/// Runs a program that was built in this folder, and samples its cost: from time to time its memory, and in the
/// end, before it is reaped, its processor time.
fn watched(place: &Path, program: &str, arguments: &[&str]) -> Result<Watched, String> {
    let wrong = |error: std::io::Error| format!("{program}: {error}");
    let output = place.join("printed");
    let began = Instant::now();
    let mut child = Command::new(place.join(program))
        .args(arguments)
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&output).map_err(wrong)?)
        .stderr(Stdio::null())
        .spawn()
        .map_err(wrong)?;
    let (mut resident, mut seconds) = (None, None);
    while !has_ended(&mut child, &mut seconds, &mut resident).map_err(wrong)? {
        std::thread::sleep(Duration::from_millis(5));
    }
    let elapsed = began.elapsed().as_secs_f64();
    let status = child.wait().map_err(wrong)?;
    if !status.success() {
        return Err(format!("{program}: {status}"));
    }
    let text = String::from_utf8_lossy(&fs::read(&output).map_err(wrong)?).into_owned();
    Ok(Watched { text, seconds: seconds.unwrap_or(elapsed), resident })
}

/// Whether a process has ended; records its processor time and its peak memory so far, if the system reports them.
/// A process that has ended and was not waited for still reports its time.
fn has_ended(child: &mut Child, seconds: &mut Option<f64>, resident: &mut Option<u64>) -> std::io::Result<bool> {
    let folder = PathBuf::from(format!("/proc/{}", child.id()));
    let Ok(stat) = fs::read_to_string(folder.join("stat")) else { return Ok(child.try_wait()?.is_some()) };
    // The name is in parentheses and may contain anything; after it come the letter of the process's state, and as
    // the 12th and 13th word its time in hundredths of a second.
    let words: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
    *seconds = ticks(11).zip(ticks(12)).map(|(user, system)| (user + system) / 100.0).or(*seconds);
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    *resident = peak.map(|kibibytes| kibibytes << 10).or(*resident);
    Ok(words.first() == Some(&"Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_tools_print_is_understood() {
        let text = "(Spin Version 6.5.2 -- 6 December 2019)\n   124704 states, stored\n   274434 states, matched\n   \
                    399138 transitions (= stored+matched)\n";
        assert_eq!(spin_counts(text), Some((124_704, 399_138)));
        assert_eq!(spin_counts("error: max search depth too small"), None);
        let text =
            "10000 states, 3 rules fired in 1s\nStatus:\n\n\tNo error found.\n\n\t12 states, 34 rules fired in 5s.\n";
        assert_eq!(rumur_counts(text), Some((12, 34)));
        assert_eq!(rumur_counts("Result:\n\n\tInvariant failed.\n\n\t12 states, 34 rules fired in 5s.\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_is_watched_to_its_end() {
        let place = std::env::temp_dir().join(format!("deltamark-bench-{}-watched", std::process::id()));
        fs::create_dir_all(&place).expect("a folder");
        let run = watched(&place, "/bin/sh", &["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done"]);
        let run = run.expect("it runs");
        assert_eq!(run.text, "done\n");
        assert!(run.seconds > 0.0 && run.resident.is_some_and(|bytes| bytes > 100_000));
        assert!(watched(&place, "/bin/false", &[]).is_err());
        fs::remove_dir_all(&place).expect("it was there");
    }
}
