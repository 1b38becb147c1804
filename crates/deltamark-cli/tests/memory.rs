//! Exhausted memory: address space that runs out, and limits checked by the kernel's own figure.
//!
//! A sample of both is run always; `scripts/long` runs the whole, in release mode.
#![cfg(target_os = "linux")]

mod common;

use common::{folder, run};
use deltamark::store::{CATALOGUE, Order, StoreInfo};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const MIB: u64 = 1 << 20;
/// By how much a process may exceed its limit.
const TOLERANCE: u64 = 4 * MIB;

/// A run to be made.
#[derive(Clone, Debug)]
struct Case {
    command: &'static str,
    /// The model and what belongs to it, and the number of its states.
    model: Vec<String>,
    states: u64,
    store: &'static str,
    search: &'static str,
    threads: usize,
    /// The time limit of the run.
    time: &'static str,
}

impl Case {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![self.command.to_string()];
        arguments.extend(self.model.clone());
        arguments.extend(["--search", self.search, "--json", "--time", self.time].map(String::from));
        arguments.extend(["--threads".into(), self.threads.to_string()]);
        if self.command == "check" {
            arguments.extend(["--invariant", "true"].map(String::from));
        }
        if self.search != "sweep" {
            // The default array of `bitstate` is larger than all limits here.
            let store = if self.store == "bitstate" { "bitstate:bits=24" } else { self.store };
            arguments.extend(["--store".into(), store.into()]);
        }
        arguments
    }

    fn is_exact(&self) -> bool {
        !matches!(self.store, "compaction" | "bitstate")
    }
}

/// A model with its states.
type Model = (Vec<String>, u64);

/// Every store with every search and number of threads that it supports.
fn matrix(command: &'static str, (model, states): &Model, threads: &[usize], time: &'static str) -> Vec<Case> {
    let case = |store, search, threads| {
        let model = model.clone();
        Case { command, model, states: *states, store, search, threads, time }
    };
    let mut cases = vec![case("auto", "sweep", 1), case("auto", "dfs", 1)];
    cases.extend(threads.iter().map(|&threads| case("auto", "bfs", threads)));
    for info in CATALOGUE {
        let StoreInfo { name, threads: several, .. } = info;
        if info.takes(Order::Any) {
            cases.push(case(name, "dfs", 1));
        }
        cases.extend(threads.iter().filter(|&&count| count == 1 || *several).map(|&count| case(name, "bfs", count)));
    }
    cases
}

/// A generated net, and its states.
fn kanban(folder: &Path, size: u32) -> Model {
    let path = folder.join(format!("kanban-{size}.pnml")).to_string_lossy().into_owned();
    let made = run(&["generate", "kanban", &size.to_string(), "-o", &path]);
    assert_eq!(made.exit, 0, "{}", made.stderr);
    let states = [1, 160, 4600, 58_400, 454_475, 2_546_432, 11_261_376];
    (vec![path], states[size as usize])
}

/// One of the project's own models with these options.
fn model(name: &str, states: u64, options: &[&str]) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    let options = options.iter().map(|option| option.to_string());
    (std::iter::once(path.to_string_lossy().into_owned()).chain(options).collect(), states)
}

fn made(mut command: Command) -> Output {
    command.output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs with an address space of this many kibibytes, and checks how the run ends; returns its exit code, if
/// the process could be started at all.
fn ends_honestly(case: &Case, kibibytes: u64) -> Option<i32> {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v $0; exec \"$@\"", &kibibytes.to_string(), env!("CARGO_BIN_EXE_deltamark")]);
    let output = made({
        command.args(case.arguments()).env_remove("RUST_BACKTRACE");
        command
    });
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let label = format!("ulimit -v {kibibytes}, {case:?}: {:?}\n{stdout}{stderr}", output.status);
    let code = output.status.code().unwrap_or_else(|| panic!("{label}"));
    // The loader found no room for the libraries: nothing of ours has run.
    if code == 127 && stderr.contains("error while loading shared libraries") {
        return None;
    }
    match code {
        0 if case.is_exact() && case.search != "sweep" => {
            let report: Value = serde_json::from_str(&stdout).expect("a report");
            assert_eq!(report["states"], case.states, "{label}");
        }
        0 | 1 => {}
        2 => {
            let why = ["leaves no room", "address space", "no progress measure", "memory"];
            assert!(stdout.is_empty() && why.iter().any(|why| stderr.contains(why)), "{label}");
        }
        3 if stdout.is_empty() => assert!(stderr.contains("the system has no memory for"), "{label}"),
        3 => {
            let report: Value = serde_json::from_str(&stdout).expect("a report");
            let lossy = !case.is_exact() && report["complete"] == true;
            assert!(lossy || report["stopped_by"] == "memory", "{label}");
            assert!(report["states"].as_u64() <= Some(case.states) || case.search == "sweep", "{label}");
        }
        _ => panic!("{label}"),
    }
    Some(code)
}

#[test]
fn address_space_that_runs_out_ends_a_run_with_a_report() {
    let net = kanban(&folder("address-space"), 3);
    // Eight threads whose stacks just fit had none for their signal handlers, and the process was aborted.
    let coloured = model("telephones.lna", 3625, &["--param", "N=4", "--unfold", "no"]);
    let case = |(model, states): &Model, store, search, threads| {
        let model = model.clone();
        Case { command: "check", model, states: *states, store, search, threads, time: "60s" }
    };
    let cases: [(Case, &[u64]); 7] = [
        (case(&net, "plain", "bfs", 1), &[22_000, 26_000]),
        (case(&net, "auto", "bfs", 2), &[26_000, 90_000]),
        (case(&net, "compact", "bfs", 8), &[26_000, 40_000]),
        (case(&net, "difference", "dfs", 1), &[26_000]),
        (case(&net, "delta", "bfs", 1), &[26_000]),
        (case(&net, "auto", "sweep", 1), &[28_000]),
        (case(&coloured, "collapse", "bfs", 8), &[38_000, 39_000, 40_000, 41_000, 42_000]),
    ];
    for (case, sizes) in cases {
        assert!(sizes.iter().filter_map(|&size| ends_honestly(&case, size)).count() >= 1, "{case:?}");
    }
    // Plenty is enough.
    assert_eq!(ends_honestly(&case(&net, "plain", "bfs", 2), 400_000), Some(0));
}

#[test]
fn fewer_threads_than_asked_for_are_said() {
    let net = kanban(&folder("fewer-threads"), 1).0.remove(0);
    for (kibibytes, fewer) in [("40000", true), ("4000000", false)] {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v $0; exec \"$@\"", kibibytes, env!("CARGO_BIN_EXE_deltamark")]);
        let output = made({
            command.args(["check", &net, "--threads", "8", "--verbose"]);
            command
        });
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert_eq!(stderr.contains(" of 8 threads: the address space has no room for more"), fewer, "{stderr}");
    }
}

#[test]
fn a_graph_too_large_for_the_limit_leaves_the_question_open() {
    let folder = folder("large-graph");
    let net = kanban(&folder, 3).0.remove(0);
    let graph = folder.join("kanban.dmg").to_string_lossy().into_owned();
    let written = run(&["check", &net, "--graph", &graph, "--quiet"]);
    assert_eq!(written.exit, 0, "{}", written.stderr);
    let questions: Vec<String> = (0..1500).flat_map(|_| ["--reach".into(), "false".into()]).collect();
    let mut arguments = vec!["graph", &graph, "--memory", "20MiB"];
    arguments.extend(questions.iter().map(String::as_str));
    let walked = run(&arguments);
    assert_eq!((walked.exit, walked.stdout.as_str()), (3, ""), "{}", walked.stderr);
    assert!(walked.stderr.contains("the memory limit leaves no room"), "{}", walked.stderr);
    assert!(walked.stderr.contains("give a larger `--memory`"), "{}", walked.stderr);
}

/// Makes all runs, two at a time.
fn in_pairs<C: Sync, R: Send>(cases: &[C], run: impl Fn(&C) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Relaxed)) {
            done.push(run(case));
        }
        done
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut done = work();
        done.extend(other.join().expect("all runs of the other thread are well"));
        done
    })
}

#[test]
#[ignore = "a minute; run by scripts/long"]
fn address_space_of_every_size_ends_every_store_honestly() {
    let folder = folder("address-spaces");
    let (net, smaller) = (kanban(&folder, 4), kanban(&folder, 3));
    let coloured = model("telephones.lna", 3625, &["--param", "N=4", "--unfold", "no"]);
    let mut cases = matrix("check", &net, &[1, 2], "60s");
    // Stores that reconstruct states take long depth-first.
    cases.retain(|case| case.search == "bfs");
    cases.extend(matrix("check", &smaller, &[1], "60s").into_iter().filter(|case| case.search != "bfs"));
    cases.extend(matrix("check", &coloured, &[1, 8], "60s"));
    let sizes = [21_000, 25_000, 28_000, 32_000, 38_000, 40_000, 42_000, 55_000, 90_000, 200_000];
    let runs: Vec<(&Case, u64)> = cases.iter().flat_map(|case| sizes.map(|size| (case, size))).collect();
    let mut ended = [0; 4];
    for code in in_pairs(&runs, |(case, size)| ends_honestly(case, *size)).into_iter().flatten() {
        ended[code as usize] += 1;
    }
    println!("exit codes 0 to 3: {ended:?}");
    assert!(ended[0] > 100 && ended[3] > 20, "{ended:?}");
}

/// Runs within a limit, and checks the peak resident size according to the kernel. Returns by how much it
/// exceeds the limit; `None` if the limit was refused.
fn keeps_within(case: &Case, mebibytes: u64) -> Option<i64> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deltamark"));
    command.args(case.arguments()).args(["--memory", &format!("{mebibytes}MiB")]);
    let output = made(command);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let label = format!("{mebibytes} MiB, {case:?}: {:?}\n{stdout}{stderr}", output.status);
    match output.status.code() {
        Some(2) => {
            let why = ["leaves no room", "no progress measure", "is more than", "choose another store"];
            assert!(why.iter().any(|why| stderr.contains(why)), "{label}");
            None
        }
        Some(0 | 1 | 3) => {
            let report: Value = serde_json::from_str(&stdout).expect("a report");
            let peak = report["peak_rss_bytes"].as_u64().expect("what the kernel says");
            assert!(peak <= mebibytes * MIB + TOLERANCE, "{peak} bytes: {label}");
            Some(peak as i64 - (mebibytes * MIB) as i64)
        }
        _ => panic!("{label}"),
    }
}

/// A model in each language, each of more states than the smallest limits have room for.
fn languages(folder: &Path) -> Vec<Model> {
    vec![
        kanban(folder, 5),
        model("telephones.lna", 55_168, &["--param", "N=5", "--unfold", "no"]),
        model("telephones.lna", 55_168, &["--param", "N=5", "--unfold", "yes"]),
        model("anderson.mdve", 0, &["--param", "N=5", "--engine", "native"]),
        model("anderson.mdve", 0, &["--param", "N=5", "--engine", "interpreter"]),
    ]
}

#[test]
fn a_limit_on_memory_is_kept_by_the_kernels_figure() {
    let folder = folder("peaks");
    let mut kept = 0;
    for (number, (model, states)) in languages(&folder).into_iter().enumerate() {
        let case = |command, store, search, threads| {
            let model = model.clone();
            Case { command, model, states, store, search, threads, time: "400ms" }
        };
        let cases = [
            (case("check", "compact", "bfs", 8), 24),
            (case("stats", "auto", "bfs", 1), 20),
            (case("check", ["plain", "auto", "tree", "delta", "collapse"][number], "bfs", 1), 20),
        ];
        for (case, limit) in cases {
            kept += usize::from(keeps_within(&case, limit).is_some());
        }
    }
    assert!(kept >= 10, "the limit was taken by most: {kept}");
}

#[test]
#[ignore = "two minutes; run by scripts/long"]
fn every_limit_is_kept_by_every_store_search_and_language() {
    let limits = [16, 20, 24, 32, 64];
    let mut runs: Vec<(Case, u64)> = Vec::new();
    for (number, language) in languages(&folder("all-peaks")).iter().enumerate() {
        for (command, threads) in [("check", &[1, 2, 8][..]), ("stats", &[1])] {
            // Each store, search and number of threads is run with each limit, in one of the languages.
            for (place, case) in matrix(command, language, threads, "1s").into_iter().enumerate() {
                let hard = case.store == "compact" && case.threads == 8;
                runs.extend(hard.then(|| (case.clone(), 24)));
                runs.push((case, limits[(number + place) % limits.len()]));
            }
        }
    }
    let kept = in_pairs(&runs, |(case, limit)| Some((keeps_within(case, *limit)?, format!("{limit} MiB, {case:?}"))));
    let mut worst: Vec<(i64, String)> = kept.into_iter().flatten().collect();
    worst.sort_unstable_by_key(|(above, _)| -above);
    println!("{} runs; those that came closest:", worst.len());
    worst.iter().take(10).for_each(|(above, case)| println!("{:+.1} MiB {case}", *above as f64 / MIB as f64));
    assert!(worst.len() > 200, "{}", worst.len());
}

#[test]
fn a_limit_that_is_too_small_is_refused_with_one_that_works() {
    let net = kanban(&folder("too-small"), 3).0.remove(0);
    let refused = run(&["check", &net, "--memory", "8MiB"]);
    assert_eq!((refused.exit, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
    let least = refused.stderr.split("--memory ").nth(1).and_then(|rest| rest.split('`').next()).expect("advice");
    let taken = run(&["check", &net, "--memory", least]);
    assert_eq!(taken.exit, 0, "{least}: {}{}", taken.stdout, taken.stderr);
}
