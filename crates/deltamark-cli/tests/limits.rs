//! Limits hold for the process, not only in its own accounting: memory, time, the number of states, and
//! Ctrl-C.
//!
//! `scripts/long` runs these tests in release mode too, where a search takes memory fastest.

mod common;

use common::{folder, run};
use serde_json::Value;
use std::path::Path;

const MIB: u64 = 1 << 20;
const SEARCHES: [&str; 2] = ["bfs", "dfs"];

/// A generated net in a file.
fn generated(folder: &Path, family: &str, size: u32) -> String {
    let path = folder.join(format!("{family}-{size}.pnml")).to_string_lossy().into_owned();
    let made = run(&["generate", family, &size.to_string(), "-o", &path]);
    assert_eq!(made.exit, 0, "{}", made.stderr);
    path
}

/// The report of a run, and its exit code.
/// All states are explored, so that there is something to limit.
fn report(arguments: &[&str]) -> (Value, i32) {
    let off: &[&str] = if arguments[0] == "check" { &["--reduce", "off"] } else { &[] };
    let run = run(&[arguments, off, &["--json"]].concat());
    let value = serde_json::from_str(&run.stdout);
    (value.unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{}{}", run.stdout, run.stderr)), run.exit)
}

fn number(report: &Value, path: &str) -> u64 {
    report.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} of {report}"))
}

/// Runs under a memory limit that is too small, and checks that the process kept it.
#[cfg(target_os = "linux")]
fn keeps_memory_limit(model: &str, search: &str, mebibytes: u64) -> Value {
    let label = format!("{search}, {mebibytes} MiB, {model}");
    let limit = format!("{mebibytes}MiB");
    // Close to the limit a table may grow in small steps, but the run must end, on a busy machine too.
    let limits = ["--memory", &limit, "--time", "10m"];
    let (report, exit) = report(&[&["check", model, "--store", "plain", "--search", search][..], &limits].concat());
    assert_eq!((exit, &report["stopped_by"]), (3, &"memory".into()), "{label}");
    assert_eq!(number(&report, "/memory_limit_bytes"), mebibytes * MIB, "{label}");
    let peak = number(&report, "/peak_rss_bytes");
    assert!(peak <= mebibytes * MIB, "{label}: the process held {peak} bytes");
    assert_eq!((&report["complete"], &report["properties"][0]["verdict"]), (&false.into(), &"unknown".into()));
    report
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_a_hard_limit() {
    let kanban = generated(&folder("memory"), "kanban", 6);
    for search in SEARCHES {
        let mut states = 0;
        for mebibytes in [30, 45, 60, 100, 130] {
            let report = keeps_memory_limit(&kanban, search, mebibytes);
            let more = number(&report, "/states");
            assert!(more > states, "{search}: {mebibytes} MiB give {more} states, less gave {states}");
            // A limit that is kept by stopping far below it would be useless.
            let (store, frontier) = (number(&report, "/store/bytes"), number(&report, "/frontier/peak_bytes"));
            assert!(store + frontier + 22 * MIB >= mebibytes * MIB * 3 / 4, "{search}, {mebibytes} MiB: {report}");
            states = more;
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_without_a_store_chooses_one_that_fits() {
    let kanban = generated(&folder("auto"), "kanban", 6);
    let (report, exit) = report(&["check", &kanban, "--memory", "40MiB"]);
    assert_eq!((exit, number(&report, "/states")), (0, 11_261_376), "{report}");
    assert!(number(&report, "/peak_rss_bytes") <= 40 * MIB, "{report}");
    assert_ne!(report["store"]["name"], "plain");
    let trials = report["store"]["chosen"]["trials"].as_array().expect("what was tried");
    assert!(trials.iter().any(|trial| trial["store"] == report["store"]["name"]), "{report}");
    assert!(report["store"]["chosen"]["why"].as_str().is_some_and(|why| why.contains("bytes a state")), "{report}");
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_a_hard_limit_for_layouts_that_widen_late() {
    // Most states are stored when the place `heap` begins to outgrow its field repeatedly.
    let mut net = String::from("net late\n");
    let all = |letter: &str| (0..16).map(|bit| format!("{letter}{bit} ")).collect::<String>();
    for bit in 0..16 {
        net += &format!("pl a{bit} (1)\ntr up{bit} a{bit} -> b{bit}\ntr down{bit} b{bit} -> a{bit}\n");
    }
    net += &format!("tr add {} -> {} heap*1000000007\n", all("b"), all("b"));
    let path = folder("late").join("late.net");
    std::fs::write(&path, net).expect("the net is written");
    for search in SEARCHES {
        for mebibytes in [24, 30, 60] {
            let report = keeps_memory_limit(&path.to_string_lossy(), search, mebibytes);
            assert!(number(&report, "/widenings") >= 2, "{search}, {mebibytes} MiB: {report}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_net_without_end_stops_at_its_memory_limit_and_is_named() {
    for search in SEARCHES {
        let report = keeps_memory_limit("grow.net", search, 60);
        let note =
            "the net is unbounded: place `heap` grows without end (firing add again and again adds tokens each time)";
        assert_eq!(report["notes"], serde_json::json!([note]), "{search}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_process_holds_little_more_than_is_accounted() {
    let folder = folder("accounting");
    for (family, size, states) in [("kanban", 5, 2_546_432), ("philosophers", 13, 1_594_323)] {
        let model = generated(&folder, family, size);
        for search in SEARCHES {
            let (report, exit) =
                report(&["check", &model, "--store", "plain", "--invariant", "true", "--search", search]);
            assert_eq!((exit, number(&report, "/states")), (0, states), "{model}, {search}");
            let accounted = number(&report, "/store/bytes") + number(&report, "/frontier/peak_bytes");
            let resident = number(&report, "/peak_rss_bytes");
            assert!(resident <= accounted * 115 / 100 + 15 * MIB, "{model}, {search}: {resident} against {accounted}");
        }
    }
}

#[test]
fn the_number_of_states_is_kept_exactly() {
    let kanban = generated(&folder("states"), "kanban", 3);
    let all = 58_400;
    for search in SEARCHES {
        for limit in [1, 2, 63, 64, 65, 1000, 12_345, all - 1, all, all + 1] {
            let arguments = ["check", &kanban, "--search", search, "--max-states", &limit.to_string()];
            let (report, exit) = report(&arguments);
            let expected = if limit < all { (limit, 3, Value::from("states")) } else { (all, 0, Value::Null) };
            assert_eq!((number(&report, "/states"), exit, report["stopped_by"].clone()), expected, "{arguments:?}");
        }
    }
}

#[test]
fn the_time_is_kept() {
    let philosophers = generated(&folder("time"), "philosophers", 30);
    for search in SEARCHES {
        let (report, exit) = report(&[
            "check",
            &philosophers,
            "--invariant",
            "true",
            "--search",
            search,
            "--time",
            "300ms",
            "--memory",
            "4GiB",
        ]);
        assert_eq!((exit, &report["stopped_by"]), (3, &"time".into()), "{search}");
        let seconds = report["seconds"]["total"].as_f64().expect("a number");
        // Growing a large table is not interrupted, and other tests run beside this one.
        assert!((0.3..5.0).contains(&seconds), "{search}: {seconds} seconds");
    }
}

/// Starts an endless run, interrupts it, and returns its exit code and both outputs.
#[cfg(unix)]
fn interrupted(arguments: &[&str]) -> (Option<i32>, String, String) {
    use std::process::{Command, Stdio};
    let child = Command::new(env!("CARGO_BIN_EXE_deltamark"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_gives_an_honest_report() {
    for command in ["check", "stats"] {
        for search in SEARCHES {
            let arguments =
                [command, "grow.net", "--store", "plain", "--search", search, "--time", "60s", "--memory", "1GiB"];
            let off: &[&str] = if command == "check" { &["--reduce", "off"] } else { &[] };
            let (exit, stdout, stderr) = interrupted(&[&arguments[..], off, &["--json"]].concat());
            assert_eq!(exit, Some(3), "{arguments:?}");
            let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
            assert_eq!((&report["stopped_by"], &report["complete"]), (&"cancelled".into(), &false.into()));
            let (states, expanded) = (number(&report, "/states"), number(&report, "/expanded"));
            // In this net each state has one successor.
            assert!(0 < expanded && expanded < states && states <= expanded + 1, "{arguments:?}: {states} {expanded}");
            assert_eq!(number(&report, "/edges"), expanded, "{arguments:?}");
            if command == "check" {
                assert_eq!(report["properties"][0]["verdict"], "unknown");
            }
            assert!(stderr.contains("once more to end at once"), "{stderr}");
        }
    }
    let (exit, stdout, _) = interrupted(&["check", "grow.net", "--memory", "1GiB", "--reduce", "off"]);
    assert_eq!(exit, Some(3));
    assert!(stdout.starts_with("no answer  deadlock-free") && stdout.contains("not all explored"), "{stdout}");
    assert!(stdout.contains("place `heap` grows without end"), "{stdout}");
}
