//! Limits and signals in every phase of a run, as a user sees them: the exit code, the report, what is left
//! in the folder. Bounds on time are generous, for a busy machine: where a limit did not hold it took
//! minutes, or for ever.

#![cfg(target_os = "linux")]

mod common;

use common::{folder, run};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// By how much memory may exceed its limit.
const SLACK: u64 = 4 * MIB;
/// By how much time may, here.
const PATIENCE: Duration = Duration::from_secs(20);
/// The threads of the runs whose processor time is checked.
const THREADS: u64 = 2;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deltamark"));
    command.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Exit code, standard output and standard error.
fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A ring of this many places, in TINA's format or in PNML.
fn ring(places: usize, pnml: bool) -> String {
    let mut text = String::new();
    if pnml {
        text += r#"<pnml><net id="n" type="http://www.pnml.org/version-2009/grammar/ptnet"><page id="g">"#;
        for n in 0..places {
            let marking = if n == 0 { "<initialMarking><text>1</text></initialMarking>" } else { "" };
            let next = (n + 1) % places;
            let _ = write!(text, r#"<place id="p{n}">{marking}</place><transition id="t{n}"/>"#);
            let _ = write!(
                text,
                r#"<arc id="a{n}" source="p{n}" target="t{n}"/><arc id="b{n}" source="t{n}" target="p{next}"/>"#
            );
        }
        text += "</page></net></pnml>";
    } else {
        for n in 0..places {
            let _ = writeln!(text, "pl p{n} ({})\ntr t{n} p{n} -> p{}", u8::from(n == 0), (n + 1) % places);
        }
    }
    text
}

/// Processes that all send to each other, and an array.
fn many_processes(count: usize) -> String {
    let mut text = String::from("channel c; byte x[200000];\n");
    for n in 0..count {
        let way = if n % 2 == 0 { "c!" } else { "c?" };
        let _ =
            writeln!(text, "process P{n} {{ state a, b; init a; trans a -> b {{ sync {way}; effect x[{n}] = 1; }}; }}");
    }
    text + "system async;\n"
}

/// A net of CPN Tools with 500 places. Each of its initial markings takes this expression, and so does the guard for each
/// of 2,000 tokens: a few tenths of a second if it is `SLOW`.
fn slow_code(marking: &str, guard: &str) -> String {
    let places: String = (0..500)
        .map(|number| {
            format!(
                "<place id='p{number}'><text>P{number}</text><type><text>I</text></type>\
                 <initmark><text>{marking}</text></initmark></place>"
            )
        })
        .collect();
    format!(
        "<workspaceElements><generator tool='CPN Tools' version='4.0.1' format='6'/><cpnet><globbox>\
         <ml id='a'>colset I = int; var n : I; fun spin 0 = 0 | spin k = spin (k-1);</ml><ml id='b'>fun slow k = foldl \
         (fn (i, a) =&gt; a + spin 100) 0 (List.tabulate (10000, fn i =&gt; i));</ml></globbox><page id='g'>\
         <pageattr name='top'/>{places}<place id='q'><text>Q</text><type><text>I</text></type><initmark>\
         <text>List.tabulate (2000, fn i =&gt; i)</text></initmark></place><trans id='t'><text>T</text><cond>\
         <text>{guard}</text></cond></trans><arc id='x' orientation='PtoT'><transend idref='t'/>\
         <placeend idref='q'/><annot><text>n</text></annot></arc></page><instances><instance id='i' page='g'/>\
         </instances></cpnet></workspaceElements>"
    )
}

#[test]
fn a_limit_that_is_reached_while_a_model_is_loaded_ends_the_run_with_a_report() {
    let folder = folder("loading");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the model is written");
        path.to_string_lossy().into_owned()
    };
    let net = write("ring.net", ring(100_000, false));
    let pnml = write("ring.pnml", ring(60_000, true));
    let dve = write("many.dve", many_processes(3000));
    let cpn = write("slow.cpn", slow_code("1`(slow 0)", ""));
    let own = |name: &str| format!("{}/../../models/{name}", env!("CARGO_MANIFEST_DIR"));
    let (sieve, philosophers) = (own("sieve.lna"), own("philosophers.lna"));
    // The model, its options, and the expected limit and phase.
    let cases: &[(&str, &[&str], &str, &str)] = &[
        (&net, &["--memory", "32MiB"], "memory", "loading"),
        (&pnml, &["--memory", "40MiB"], "memory", "loading"),
        (&dve, &["--memory", "24MiB"], "memory", "loading"),
        (&cpn, &["--time", "500ms"], "time", "loading"),
        (&sieve, &["--unfold", "yes", "--memory", "24MiB"], "memory", "unfolding"),
        (&sieve, &["--unfold", "yes", "--time", "500ms"], "time", "unfolding"),
        (&philosophers, &["--param", "N=20000", "--unfold", "yes", "--time", "500ms"], "time", "unfolding"),
    ];
    for &(model, options, by, phase) in cases {
        let label = format!("{model} {options:?}");
        let began = Instant::now();
        let done = run(&[&["check", model, "--json"], options].concat());
        let report: Value = serde_json::from_str(&done.stdout)
            .unwrap_or_else(|error| panic!("{label}: {error}\n{}{}", done.stdout, done.stderr));
        assert_eq!(done.exit, 3, "{label}: {report}");
        assert_eq!((&report["stopped_by"], &report["stopped_while"]), (&by.into(), &phase.into()), "{label}");
        assert_eq!((&report["complete"], &report["states"]), (&false.into(), &0.into()), "{label}");
        assert!(began.elapsed() < PATIENCE, "{label}: {:?}", began.elapsed());
        if by == "memory" {
            let (limit, peak) = (report["memory_limit_bytes"].as_u64(), report["peak_rss_bytes"].as_u64());
            assert!(peak <= limit.map(|limit| limit + SLACK), "{label}: {report}");
        }
    }
    let told = run(&["check", &net, "--memory", "32MiB"]);
    let said = "Stopped early: the memory limit of 32 MiB was reached while loading the model.";
    assert!(told.exit == 3 && told.stdout.contains(said), "{}{}", told.stdout, told.stderr);
    let graph = folder.join("ring.dot").to_string_lossy().into_owned();
    let told = run(&["graph", &net, "--memory", "32MiB", "-o", &graph]);
    let said = "the memory limit of 32 MiB was reached while loading the model";
    assert!(told.exit == 3 && told.stderr.contains(said), "{}{}", told.stdout, told.stderr);
}

#[test]
fn a_state_with_very_many_successors_keeps_nobody_beyond_the_limits() {
    let philosophers = format!("{}/../../models/philosophers.lna", env!("CARGO_MANIFEST_DIR"));
    for (limits, by) in [(["--time", "1s"], "time"), (["--memory", "40MiB"], "memory")] {
        let began = Instant::now();
        let arguments = [
            "check",
            &philosophers,
            "--param",
            "N=10000",
            "--unfold",
            "no",
            "--deadlock",
            "--json",
            limits[0],
            limits[1],
        ];
        let done = run(&arguments);
        let report: Value =
            serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
        assert_eq!((done.exit, &report["stopped_by"]), (3, &by.into()), "{report}");
        assert!(began.elapsed() < PATIENCE, "{by}: {:?}", began.elapsed());
        if by == "memory" {
            assert!(report["peak_rss_bytes"].as_u64() <= Some(40 * MIB + SLACK), "{report}");
        }
    }
}

/// Independent processes, so that a state has as many successors as there are processes.
fn independent_processes(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        let _ = writeln!(
            text,
            "process P{n} {{ byte v; state a, b, c; init a; trans a -> b {{ effect v = v + 1; }}, b -> c {{ guard v > 0; \
             effect v = 0; }}, c -> a {{ }}; }}"
        );
    }
    text + "system async;\n"
}

/// The same with transitions.
fn independent_transitions(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "pl a{n} (1)\npl b{n} (0)\ntr t{n} a{n} -> b{n}");
        text
    })
}

/// A coloured net with one transition with two arcs for each of `count` places.
fn many_arcs(count: usize) -> String {
    let mut text = String::from("wide {\n type v : mod 3;\n");
    for n in 0..count {
        let _ = writeln!(text, " place p{n} {{ dom : v; init : <( 0 )> + <( 1 )>; }}\n place q{n} {{ dom : v; }}");
    }
    let arcs = |name: &str| (0..count).map(|n| format!("{name}{n} : <( x )>; ")).collect::<String>();
    let _ = writeln!(text, " transition t {{ in {{ {} }} out {{ {} }} }}\n}}", arcs("p"), arcs("q"));
    text
}

/// Runs `check`, and returns by how much the peak of memory exceeds the limit, according to the kernel.
fn bytes_above_limit(arguments: &[&str]) -> u64 {
    let done = run(&[&["check", "--json", "--reduce", "off"], arguments].concat());
    assert_eq!(done.exit, 3, "{arguments:?}: {}{}", done.stdout, done.stderr);
    let report: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    let [peak, limit] = ["peak_rss_bytes", "memory_limit_bytes"].map(|name| report[name].as_u64().expect("a figure"));
    peak.saturating_sub(limit)
}

#[test]
fn wide_models_keep_to_their_memory() {
    let folder = folder("wide");
    let array = "byte x[700000]; process P { state a; init a; trans a -> a { effect x[x[0]] = 1; }; } system async;";
    let buffer = "channel {int} c[700000]; process P { state a; init a; trans a -> a { sync c!1; }; } system async;";
    // One state with two million successors: the store's answers to them took 24 MiB more.
    let synchronous: String = (0..1500)
        .map(|n| format!("process P{n} {{ state s; init s; trans s -> s {{ sync c!; }}, s -> s {{ sync c?; }}; }}\n"))
        .collect();
    let synchronous = format!("channel c;\n{synchronous}system async;\n");
    let cases: [(&str, String, &[&str]); 7] = [
        (
            "synchronous.dve",
            synchronous,
            &["--memory", "100MiB", "--store", "plain", "--search", "bfs", "--threads", "1"],
        ),
        ("array.dve", array.into(), &["--memory", "200MiB"]),
        ("buffer.dve", buffer.into(), &["--memory", "24MiB"]),
        ("processes.dve", independent_processes(3000), &["--memory", "64MiB", "--threads", "8", "--store", "plain"]),
        ("transitions.net", independent_transitions(5000), &["--memory", "32MiB", "--store", "plain"]),
        ("arcs.lna", many_arcs(2500), &["--memory", "32MiB", "--unfold", "no"]),
        ("arcs.lna", many_arcs(2500), &["--memory", "32MiB", "--unfold", "yes"]),
    ];
    for (name, text, options) in cases {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the model is written");
        let path = path.to_string_lossy().into_owned();
        let above = bytes_above_limit(&[&[path.as_str(), "--time", "20s"], options].concat());
        assert!(above <= SLACK, "{name} {options:?}: {above} bytes above its limit");
    }
}

#[test]
#[ignore = "takes minutes; scripts/long runs it"]
fn wide_models_keep_to_their_memory_in_every_store() {
    let folder = folder("wide-stores");
    let models = [
        ("processes.dve", independent_processes(4000)),
        ("talking.dve", many_processes(1500)),
        ("transitions.net", independent_transitions(5000)),
    ];
    let stores = ["plain", "compact", "tree", "collapse", "delta", "comback", "difference", "breadcrumb", "auto"];
    for (name, text) in models {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the model is written");
        let path = path.to_string_lossy().into_owned();
        for store in stores {
            for (search, threads) in [("bfs", "1"), ("bfs", "8"), ("dfs", "1")] {
                let mut arguments =
                    vec!["check", "--json", &path, "--memory", "64MiB", "--time", "2s", "--store", store];
                arguments.extend(["--search", search, "--threads", threads]);
                // Not every store supports every model, search and number of threads.
                if run(&arguments).exit == 2 {
                    continue;
                }
                let above = bytes_above_limit(&arguments[2..]);
                assert!(above <= SLACK, "{arguments:?}: {above} bytes above its limit");
            }
        }
    }
}

#[test]
fn nobody_waits_for_a_model_that_does_not_come() {
    let fifo = folder("pipe").join("model.net").to_string_lossy().into_owned();
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    for model in ["-", fifo.as_str()] {
        let began = Instant::now();
        let mut child = command(&["check", model, "--format", "tina", "--time", "300ms", "--json"]);
        let child = child.stdin(Stdio::piped()).spawn().expect("the command starts");
        let (exit, stdout, stderr) = ended_with_open_input(child);
        assert_eq!(exit, Some(3), "{model}: {stderr}");
        assert!(stdout.contains(r#""stopped_by":"time""#), "{model}: {stdout}");
        assert!(began.elapsed() < PATIENCE, "{model}: {:?}", began.elapsed());
    }
    // What does arrive is read.
    let mut child =
        command(&["check", "-", "--format", "tina"]).stdin(Stdio::piped()).spawn().expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(ring(10, false).as_bytes()).expect("the model is read");
    assert_eq!(ended(child).0, Some(0));
}

/// The same as [`ended`], with standard input open all the while.
fn ended_with_open_input(mut child: Child) -> (Option<i32>, String, String) {
    let input = child.stdin.take();
    let done = ended(child);
    drop(input);
    done
}

#[test]
fn nothing_that_is_read_written_or_looked_for_keeps_a_run_beyond_its_limits() {
    let folder = folder("beside");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the file is written");
        path.to_string_lossy().into_owned()
    };
    let fifo = folder.join("fifo").to_string_lossy().into_owned();
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    let net = write("ring.net", ring(10, false));
    let independent: String = (0..1000).map(|n| format!("pl p{n} (1)\ntr t{n} p{n} -> q{n}\n")).collect();
    let independent = write("independent.net", independent);
    let head = r#"<pnml><net id="n" type="http://www.pnml.org/version-2009/grammar/ptnet"><page id="g">"#;
    let page = |inside: String| format!("{head}{inside}</page></net></pnml>");
    let long = write("long.pnml", page(format!(r#"<place id="{}"/>"#, "x".repeat(20 << 20))));
    let wide = write("wide.pnml", page("<toolspecific/>".repeat(1_000_000)));
    let properties: String = (0..200_000).map(|n| format!("invariant x{n}: p0 + {n} >= 0\n")).collect();
    let properties = write("many.prop", properties);
    let measure = format!("@{fifo}");
    // The model, its options, and the expected limit and phase.
    let cases: &[(&str, &[&str], &str, &str)] = &[
        (&net, &["--properties", &fifo, "--time", "300ms"], "time", "properties"),
        (&net, &["--search", "sweep", "--progress", &measure, "--time", "300ms"], "time", "properties"),
        (&net, &["--properties", &properties, "--time", "50ms"], "time", "properties"),
        (&independent, &["--search", "sweep", "--time", "500ms"], "time", "measuring"),
        (&long, &["--memory", "64MiB"], "memory", "loading"),
        (&wide, &["--memory", "64MiB"], "memory", "loading"),
        (&wide, &["--time", "100ms"], "time", "loading"),
    ];
    for &(model, options, by, phase) in cases {
        let label = format!("{model} {options:?}");
        let began = Instant::now();
        let done = run(&[&["check", model, "--json"], options].concat());
        let report: Value = serde_json::from_str(&done.stdout)
            .unwrap_or_else(|error| panic!("{label}: {error}\n{}{}", done.stdout, done.stderr));
        assert_eq!(done.exit, 3, "{label}: {report}");
        assert_eq!((&report["stopped_by"], &report["stopped_while"]), (&by.into(), &phase.into()), "{label}");
        assert!(began.elapsed() < PATIENCE, "{label}: {:?}", began.elapsed());
        if by == "memory" {
            assert!(report["peak_rss_bytes"].as_u64() <= Some(64 * MIB + SLACK), "{label}: {report}");
        }
    }
    // The analysis after a run: places that grow.
    let large = write("large.net", ring(60_000, false));
    let done = run(&["check", &large, "--json", "--max-states", "5", "--memory", "150MiB", "--threads", "1"]);
    let report: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
    assert_eq!((done.exit, &report["stopped_by"]), (3, &"states".into()), "{report}");
    assert!(report["peak_rss_bytes"].as_u64() <= Some(150 * MIB + SLACK), "{report}");
    // The verdicts are printed, and a missing reader of the trace is not waited for.
    let began = Instant::now();
    let done = run(&["check", &net, "--reach", "p1 = 1", "--trace", &fifo, "--time", "300ms"]);
    assert_eq!(done.exit, 3, "{}{}", done.stdout, done.stderr);
    assert!(
        done.stdout.contains("p1 = 1") && done.stderr.contains("nobody reads it"),
        "{}{}",
        done.stdout,
        done.stderr
    );
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    // A graph written before: whatever is asked of it.
    let graph = folder.join("ring.dmg").to_string_lossy().into_owned();
    assert_eq!(run(&["check", &net, "--deadlock", "--graph", &graph]).exit, 0);
    for asked in [&["--components"][..], &["--stats"], &["--deadlock"]] {
        let done = run(&[&["graph", &graph, "--time", "1ms"], asked].concat());
        assert!(done.exit == 3 && done.stderr.contains("time limit"), "{asked:?}: {}{}", done.stdout, done.stderr);
    }
}

#[test]
fn every_signal_ends_a_run_with_its_report() {
    for name in ["INT", "TERM", "HUP"] {
        let arguments = ["check", "grow.net", "--memory", "1GiB", "--time", "120s", "--json", "--reduce", "off"];
        let child = command(&arguments).spawn().expect("the command starts");
        std::thread::sleep(Duration::from_millis(300));
        signal(&child, name);
        let (exit, stdout, stderr) = ended(child);
        assert_eq!(exit, Some(3), "{name}: {stderr}");
        assert!(stdout.contains(r#""stopped_by":"cancelled""#), "{name}: {stdout}");
        assert!(stderr.contains("once more to end at once"), "{name}: {stderr}");
    }
    // While there is no input yet, and in a command that polls no flag.
    for (arguments, expected) in [(["check", "-", "--format", "tina"], 3), (["dump", "-", "--format", "dve"], 130)] {
        let mut child = command(&arguments).stdin(Stdio::piped()).spawn().expect("the command starts");
        std::thread::sleep(Duration::from_millis(300));
        signal(&child, "TERM");
        let input = child.stdin.take();
        let (exit, _, stderr) = ended(child);
        drop(input);
        assert_eq!(exit, Some(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn nothing_half_written_is_left_behind() {
    let folder = folder("parts");
    let graph = folder.join("grow.dmg").to_string_lossy().into_owned();
    let left = || -> Vec<String> {
        let names = std::fs::read_dir(&folder).expect("the folder is there");
        names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    // A run that is asked to end, and one that is killed at once.
    for (signals, expected) in [(1, Some(3)), (2, Some(130))] {
        let arguments = ["check", "grow.net", "--memory", "1GiB", "--time", "120s", "--graph", &graph];
        let mut child = command(&arguments).spawn().expect("the command starts");
        let began = Instant::now();
        while left().is_empty() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(left().iter().any(|name| name.ends_with(".part")), "{:?}", left());
        if signals == 2 {
            // Stopped, so that it cannot end between the two.
            signal(&child, "STOP");
            signal(&child, "INT");
            signal(&child, "TERM");
            signal(&child, "CONT");
            let exit = child.wait().expect("the command ends").code();
            // The run may have ended by itself after the first.
            assert!(exit == expected || exit == Some(3), "{exit:?}");
        } else {
            signal(&child, "TERM");
            assert_eq!(ended(child).0, expected);
        }
        assert_eq!(left(), [""; 0], "after {signals} signals");
    }
}

#[test]
fn an_output_that_nobody_reads_does_not_outlast_the_run() {
    let folder = folder("unread");
    let net = folder.join("philosophers.net").to_string_lossy().into_owned();
    assert_eq!(run(&["generate", "philosophers", "8", "-o", &net]).exit, 0);
    for (limit, name) in [("10m", Some("TERM")), ("5s", None)] {
        let arguments = ["graph", &net, "-o", "-", "--to", "dot", "--max-states", "100000", "--time", limit];
        let mut child = command(&arguments).spawn().expect("the command starts");
        let began = Instant::now();
        if let Some(name) = name {
            std::thread::sleep(Duration::from_secs(3));
            signal(&child, name);
        }
        while child.try_wait().expect("it can be asked").is_none() {
            assert!(began.elapsed() < 2 * PATIENCE, "it waits for a reader for ever: {name:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let (exit, _, stderr) = ended(child);
        assert_eq!(exit, Some(3), "{name:?}: {stderr}");
    }
}

#[test]
fn who_reads_slowly_gets_all() {
    // A net whose text is larger than what a pipe holds.
    const LARGE: [&str; 5] = ["generate", "philosophers", "20000", "--format", "tina"];
    let arguments = [&LARGE[..], &["-o", "-"]].concat();
    let mut child = command(&arguments).spawn().expect("the command starts");
    std::thread::sleep(Duration::from_millis(1500));
    let mut output = child.stdout.take().expect("a pipe");
    let mut first = [0; 4096];
    output.read_exact(&mut first).expect("a page");
    std::thread::sleep(Duration::from_millis(1500));
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).expect("the rest");
    let (exit, _, stderr) = ended(child);
    assert_eq!(exit, Some(0), "{stderr}");
    let folder = folder("slowly");
    let net = folder.join("all.net").to_string_lossy().into_owned();
    assert_eq!(run(&[&LARGE[..], &["-o", &net]].concat()).exit, 0);
    let all = std::fs::read(&net).expect("the file");
    assert!(all.len() > 2 << 20, "{} bytes are few", all.len());
    assert!(all == [&first[..], &rest].concat(), "what was read is not what a file holds");
}

#[test]
fn an_answer_that_was_not_read_is_none() {
    // Standard output and standard error go to the same reader, who reads one byte.
    let script = format!(
        "{} stats philosophers.net --all --verbose 2>&1 | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_deltamark")
    );
    let folder = folder("away");
    let net = folder.join("philosophers.net").to_string_lossy().into_owned();
    assert_eq!(run(&["generate", "philosophers", "8", "-o", &net]).exit, 0);
    let mut child = Command::new("bash").args(["-c", &script]).current_dir(&folder).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().expect("bash runs");
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("an exit code");
    child.wait().expect("bash ends");
    // Neither a panic (101) nor a signal, nor what a complete answer ends with.
    assert_eq!(said.trim(), "3");
}

/// The processor time of all children that have ended, in steps of a hundredth of a second.
fn used_by_children() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").expect("the kernel says so");
    // The second field is a name in parentheses, which may contain anything.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = fields[13..15].iter().map(|field| field.parse::<u64>().expect("a number"));
    Duration::from_millis(10 * ticks.sum::<u64>())
}

#[test]
#[ignore = "takes a minute; scripts/long runs it"]
fn limits_hold_over_kinds_of_models_and_limits() {
    let folder = folder("matrix");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the model is written");
        path.to_string_lossy().into_owned()
    };
    let own = |name: &str| format!("{}/../../models/{name}", env!("CARGO_MANIFEST_DIR"));
    let deep = format!("<pnml>{}{}</pnml>", "<page>".repeat(300_000), "</page>".repeat(300_000));
    let models: Vec<(String, Vec<&str>)> = vec![
        (write("ring.net", ring(1_000_000, false)), vec![]),
        (write("ring.pnml", ring(500_000, true)), vec![]),
        (write("deep.pnml", deep), vec![]),
        (write("many.dve", many_processes(4000)), vec![]),
        (write("processes.dve", independent_processes(10_000)), vec![]),
        (write("transitions.net", independent_transitions(10_000)), vec![]),
        (write("arcs.lna", many_arcs(5000)), vec!["--unfold", "no"]),
        (
            write(
                "array.dve",
                "byte x[1000000]; process P { state a; init a; trans a -> a { effect x[x[0]] = 1; }; } system async;"
                    .into(),
            ),
            vec![],
        ),
        (write("initially.cpn", slow_code("1`(slow 0)", "")), vec![]),
        (write("guard.cpn", slow_code("", "slow n &gt;= 0")), vec![]),
        (write("guard-unfolded.cpn", slow_code("", "slow n &gt;= 0")), vec!["--unfold", "yes"]),
        (own("sieve.lna"), vec!["--unfold", "yes"]),
        (own("philosophers.lna"), vec!["--param", "N=60000"]),
        (own("telephones.lna"), vec!["--param", "N=200"]),
    ];
    for (model, options) in &models {
        for limits in [["--memory", "24MiB"], ["--memory", "64MiB"], ["--memory", "200MiB"], ["--time", "1s"]] {
            let both = if limits[0] == "--memory" { ["--time", "3s"] } else { ["--memory", "2GiB"] };
            let label = format!("{model} {options:?} {limits:?}");
            let (began, used) = (Instant::now(), used_by_children());
            let done = run(&[&["check", model, "--json", "--threads", "2"], &options[..], &limits, &both].concat());
            let limit = if limits[0] == "--time" { 1 } else { 3 };
            // On a busy machine wall-clock time includes others' work, so processor time counts; the clock
            // detects a run that hangs.
            let used = used_by_children() - used;
            assert!(used < Duration::from_secs(THREADS * limit + 5), "{label}: {used:?} of the processor");
            assert!(began.elapsed() < Duration::from_secs(limit) + 5 * PATIENCE, "{label}: {:?}", began.elapsed());
            // Refused (the file itself, or the model loaded, leaves no room), stopped by a limit, or done.
            if done.exit == 2 {
                continue;
            }
            let report: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{label}: {error}"));
            let (limit, peak) = (report["memory_limit_bytes"].as_u64(), report["peak_rss_bytes"].as_u64());
            assert!(peak <= limit.map(|limit| limit + SLACK), "{label}: {peak:?}");
        }
    }
}

#[test]
fn very_long_names_are_shown() {
    let folder = folder("long-names");
    let path = folder.join("long.net").to_string_lossy().into_owned();
    let (step, place) = ("t".repeat(65_535), "p".repeat(70_000));
    std::fs::write(&path, format!("tr {step} {place} -> q r s t u v w x y z\npl {place} (1)\n")).expect("a net");
    for arguments in [&["check", &path][..], &["stats", &path, "--report"], &["simulate", &path, "--random", "1"]] {
        let done = run(arguments);
        assert!(done.exit < 2 && done.stdout.contains(&place), "{arguments:?}: {}", done.stderr);
    }
}
