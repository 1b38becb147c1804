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
            arguments.extend(["--invariant", "true", "--reduce", "off"].map(String::from));
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
fn an_address_space_that_runs_out_is_called_by_its_name() {
    let net = kanban(&folder("address-space"), 5).0.remove(0);
    for (asked, advice) in
        [(["--reach", "card_1 = 9"], "another `--store`"), (["--ctl", "AG card_1 < 9"], "`check --route fly`")]
    {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 60000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_deltamark"), "check", &net]);
        let output = made({
            command.args(asked).args(["--reduce", "off", "--store", "plain", "--shortest", "--threads", "1"]);
            command
        });
        let stdout = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(3), "{stdout}");
        for words in ["the address space, which `ulimit -v` limits to", "a larger `ulimit -v`", advice] {
            assert!(stdout.contains(words), "{words}: {stdout}");
        }
    }
}

#[test]
fn fewer_threads_than_asked_for_are_said() {
    let net = kanban(&folder("fewer-threads"), 1).0.remove(0);
    for (kibibytes, fewer) in [("40000", true), ("4000000", false)] {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v $0; exec \"$@\"", kibibytes, env!("CARGO_BIN_EXE_deltamark")]);
        let output = made({
            command.args(["check", &net, "--threads", "8", "--verbose", "--reduce", "off"]);
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
    // Their sets of states are megabytes above the limit, and the process without them megabytes below it: what is
    // resident of the command when it begins differs from machine to machine.
    let questions: Vec<String> = (0..3000).flat_map(|_| ["--reach".into(), "false".into()]).collect();
    let mut arguments = vec!["graph", &graph, "--memory", "24MiB"];
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
        model("alternating-bit.cpn", 402_097, &["--param", "capacity=9"]),
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
            (case("check", ["plain", "auto", "tree", "difference", "delta", "collapse"][number], "bfs", 1), 20),
        ];
        for (case, limit) in cases {
            kept += usize::from(keeps_within(&case, limit).is_some());
        }
    }
    assert!(kept >= 10, "the limit was taken by most: {kept}");
}

#[test]
fn a_store_with_short_signatures_keeps_its_limits() {
    // With a signature of one bit every state is a candidate for every successor of a batch. All of them were listed
    // before one was confirmed: 179 MiB under a limit of 20, and the clock was not read.
    let (model, states) = kanban(&folder("short-signatures"), 5);
    for search in ["dfs", "bfs"] {
        let model = model.clone();
        let store = "comback:signature=1";
        let case = Case { command: "check", model, states, store, search, threads: 1, time: "1s" };
        assert!(keeps_within(&case, 20).is_some(), "{case:?}: the limit was taken");
    }
}

#[test]
fn caches_that_a_store_fills_keep_the_limit() {
    // A store that takes steps again has no control to ask: its cache of local steps doubled to 8 MiB, 25 under 20.
    let (model, states) = model("telephones.lna", 55_168, &["--param", "N=5", "--unfold", "no"]);
    let case = Case { command: "stats", model, states, store: "comback", search: "dfs", threads: 1, time: "3s" };
    assert!(keeps_within(&case, 20).is_some(), "{case:?}: the limit was taken");
}

/// A net with a step from each pair of many pairs of places to another: a state takes a kilobyte, has thousands of
/// successors, and the layout widens again and again.
fn wide(folder: &Path, places: u64) -> Model {
    let mut random = 12345u64;
    let mut place = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % places
    };
    let mut text = String::from("net wide\n");
    for number in 0..places {
        text += &format!("pl p{number} ({})\n", (number + 1) % 2);
    }
    for number in 0..2 * places {
        text += &format!("tr t{number} p{} p{} -> p{} p{}\n", place(), place(), place(), place());
    }
    let path = folder.join("wide.net").to_string_lossy().into_owned();
    std::fs::write(&path, text).expect("the net is written");
    (vec![path], 0)
}

#[test]
fn wide_states_keep_their_limits() {
    // Old and new states were both there when a layout widened (87 MiB under 64), and walks copied whole batches (79).
    let (model, states) = wide(&folder("wide-states"), 6000);
    for store in ["plain", "breadcrumb", "comback", "difference", "auto"] {
        let model = model.clone();
        let case = Case { command: "check", model, states, store, search: "bfs", threads: 1, time: "2s" };
        assert!(keeps_within(&case, 64).is_some(), "{case:?}: the limit was taken");
    }
}

#[test]
fn learning_where_to_cut_wide_states_keeps_the_limit() {
    // The relations of a thousand places took 18 MiB that nobody had asked for: 34 MiB under 24.
    let mut text = String::from("net cycles\n");
    for cycle in 0..330 {
        for place in 0..3 {
            let next = (place + 1) % 3;
            text += &format!("pl p{cycle}_{place} ({})\n", u8::from(place == 0));
            text += &format!("tr t{cycle}_{place} p{cycle}_{place} -> p{cycle}_{next}\n");
        }
    }
    let path = folder("cycles").join("cycles.net").to_string_lossy().into_owned();
    std::fs::write(&path, text).expect("the net is written");
    for limit in [24, 36] {
        let model = vec![path.clone()];
        let case = Case { command: "stats", model, states: 0, store: "compact", search: "bfs", threads: 1, time: "3s" };
        assert!(keeps_within(&case, limit).is_some(), "{case:?}: the limit was taken");
    }
}

#[test]
fn evaluations_of_cpn_ml_ask_for_memory() {
    // A list that doubles with every step took 251 MiB under 40, and one in an initial marking likewise.
    let net = |initial: &str, arc: &str| {
        format!(
            "<workspaceElements><generator tool='CPN Tools' version='4.0.1' format='6'/><cpnet><globbox>\
             <ml id='a'>colset I = int;</ml><ml id='b'>colset L = list I;</ml><ml id='c'>var l: L;</ml></globbox><page id='g'><pageattr name='top'/>\
             <place id='p'><text>P</text><type><text>L</text></type><initmark><text>{initial}</text></initmark></place>\
             <trans id='t'><text>T</text></trans><arc id='x' orientation='PtoT'><transend idref='t'/><placeend idref='p'/>\
             <annot><text>l</text></annot></arc><arc id='y' orientation='TtoP'><transend idref='t'/><placeend idref='p'/>\
             <annot><text>{arc}</text></annot></arc></page><instances><instance id='i' page='g'/></instances></cpnet>\
             </workspaceElements>"
        )
    };
    let folder = folder("cpn-ml");
    let cases = [("doubles", net("1`[1]", "l^^l")), ("large", net("1`List.tabulate(3000000, fn i =&gt; i)", "l"))];
    for (name, text) in cases {
        let path = folder.join(format!("{name}.cpn")).to_string_lossy().into_owned();
        std::fs::write(&path, text).expect("the net is written");
        let done = run(&["check", &path, "--memory", "40MiB", "--time", "60s", "--json"]);
        let report: Value =
            serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
        assert_eq!(done.exit, 3, "{name}: {report}");
        let peak = report["peak_rss_bytes"].as_u64().expect("what the kernel says");
        assert!(peak <= 40 * MIB + TOLERANCE, "{name}: {report}");
    }
}

#[test]
#[ignore = "half a minute; run by scripts/long"]
fn paths_of_a_million_states_keep_their_limits() {
    // A binary counter: one path through all its states. A lasso along it took 90 MiB under 80.
    const BITS: usize = 20;
    let mut text = String::from("net counter\n");
    let all = |letter: char, bits: usize| (0..bits).map(|bit| format!("{letter}{bit} ")).collect::<String>();
    for bit in 0..BITS {
        text += &format!("pl z{bit} (1)\npl o{bit} (0)\n");
        text += &format!("tr t{bit} z{bit} {} -> o{bit} {}\n", all('o', bit), all('z', bit));
    }
    text += &format!("tr wrap {} -> {}\n", all('o', BITS), all('z', BITS));
    let path = folder("counter").join("counter.net").to_string_lossy().into_owned();
    std::fs::write(&path, text).expect("the net is written");
    for (question, formula) in [("--ctl", "AF AG (o1 = 1)"), ("--ltl", "F G (o3 = 1)")] {
        for mebibytes in [60, 70, 80, 90] {
            let limit = format!("{mebibytes}MiB");
            let done = run(&["check", &path, question, formula, "--memory", &limit, "--time", "5m", "--json"]);
            let report: Value = serde_json::from_str(&done.stdout).expect("a report");
            let peak = report["peak_rss_bytes"].as_u64().expect("what the kernel says");
            assert!(peak <= mebibytes * MIB + TOLERANCE, "{formula}, {limit}: {report}");
        }
    }
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
    let refused = run(&["check", &net, "--memory", "8MiB", "--reduce", "off"]);
    assert_eq!((refused.exit, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
    let least = refused.stderr.split("--memory ").nth(1).and_then(|rest| rest.split('`').next()).expect("advice");
    let taken = run(&["check", &net, "--memory", least, "--reduce", "off"]);
    assert_eq!(taken.exit, 0, "{least}: {}{}", taken.stdout, taken.stderr);
}
