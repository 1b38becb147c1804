//! Every command's output as a snapshot.
//!
//! Times, rates and sizes in memory are masked; all other figures are exact. To accept
//! a change, run the tests with `INSTA_UPDATE=always` and look at the difference.

mod common;

use common::{Run, folder, masked, run, run_with};
use std::path::Path;

fn shown(run: &Run, arguments: &str) -> String {
    format!(
        "$ deltamark {arguments}\nexit {}\n--- standard output\n{}--- standard error\n{}",
        run.exit,
        masked(&run.stdout),
        masked(&run.stderr)
    )
}

fn snapshot(name: &str, arguments: &str) {
    let list: Vec<&str> = arguments.split(' ').collect();
    insta::assert_snapshot!(name, shown(&run(&list), arguments));
}

#[test]
fn every_command_shows_what_it_found() {
    let cases = [
        ("check_deadlock", "check handover.net"),
        ("check_good", "check ring.net"),
        ("check_deadlock_dfs", "check handover.net --search dfs"),
        ("check_quiet", "check handover.net --quiet"),
        ("stats", "stats ring.net"),
        ("stores", "stores"),
        ("graph_dot", "graph handover.net -o - --to dot"),
        ("graph_aut", "graph handover.net -o - --to aut"),
        ("graph_json", "graph handover.net -o - --to json"),
        ("simulate_random", "simulate handover.net --random 9 --seed 1"),
        ("help", "--help"),
        ("help_check", "check -h"),
    ];
    for (name, arguments) in cases {
        snapshot(name, arguments);
    }
}

#[test]
fn a_store_that_may_miss_states_proves_nothing_and_says_so() {
    let cases = [
        ("lossy_good", "check ring.net --store compaction:bits=40"),
        ("lossy_quiet", "check ring.net --store bitstate:bits=20,hashes=4 --quiet"),
        ("lossy_violated", "check handover.net --store bitstate:bits=20"),
        ("lossy_stats", "stats ring.net --store compaction"),
        ("lossy_too_full", "check crowd.net --store bitstate:bits=13 --threads 1 --reduce off"),
        ("lossy_too_short", "check crowd.net --store compaction:bits=16 --quiet --threads 1 --reduce off"),
    ];
    for (name, arguments) in cases {
        snapshot(name, arguments);
    }
    // A goal that was not reached may still be reachable.
    let goal = run(&["check", "ring.net", "--reach", "false", "--store", "compaction"]);
    assert_eq!((goal.exit, goal.stdout.lines().next()), (3, Some("no answer  reachable: false")), "{}", goal.stderr);
}

#[test]
fn a_net_without_end_is_named_when_a_limit_ends_the_run() {
    let cases = [
        ("unbounded", "check grow.net --max-states 100000 --reduce off"),
        ("unbounded_dfs", "check grow.net --max-states 100000 --reduce off --search dfs"),
        ("unbounded_many", "check flood.net --max-states 100000 --reduce off --threads 1"),
        ("unbounded_unproved", "check inhibited.net --max-states 100000 --reduce off"),
        ("bounded_but_limited", "check ring.net --max-states 4"),
    ];
    for (name, arguments) in cases {
        snapshot(name, arguments);
    }
}

#[test]
fn properties_are_answered_in_their_order() {
    let arguments =
        ["check", "handover.net", "--invariant", "stock <= 2", "--reach", "busy >= 1", "--reach", "busy >= 2"];
    insta::assert_snapshot!("check_properties", shown(&run(&arguments), &arguments[1..].join(" ")));
}

#[test]
fn long_traces_are_cut_in_the_middle() {
    let arguments = ["check", "grow.net", "--reach", "heap >= 100"];
    let text = run(&arguments).stdout;
    assert!(text.contains("60 steps not shown; `--trace FILE` writes them all"), "{text}");
    assert!(text.contains("     20  add  heap: 19 → 20\n"), "{text}");
    assert!(text.contains("     81  add  heap: 80 → 81\n"), "{text}");
    assert!(!text.contains("heap: 20 → 21"), "{text}");
}

#[test]
fn a_coloured_trace_shows_what_changed() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/philosophers.lna").display().to_string();
    for unfold in ["yes", "no"] {
        let arguments = ["check", &model, "--reach", "chairs = 3", "--unfold", unfold];
        let text = run(&arguments).stdout;
        assert!(
            text.contains("      1  sit(p=0)  philosophers −1'(0,thinking) +1'(0,seated), chairs: 4 → 3\n"),
            "{text}"
        );
        // In JSON a step has its whole state, as ever.
        let json = run(&[&arguments[..], &["--json"]].concat()).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let state = &json["properties"][0]["trace"][1]["state"]["philosophers"];
        let whole = "1'(0,seated) ++ 1'(1,thinking) ++ 1'(2,thinking) ++ 1'(3,thinking) ++ 1'(4,thinking)";
        assert_eq!(state, whole, "{json}");
    }
    let walked = run(&["simulate", &model, "--random", "1", "--seed", "1"]).stdout;
    assert!(walked.contains("philosophers −1'(") && walked.contains("chairs: 4 → 3"), "{walked}");
}

#[test]
fn a_simulation_obeys_its_input() {
    let input =
        "1\nstate\nfinish\npath\nback\nback 9\nback\n7\ntak\nreset\nreset 3\nrandom 3\n\nhelp\nnonsense\nquit\n1\n";
    let run = run_with(&["simulate", "handover.net"], input);
    insta::assert_snapshot!("simulate", shown(&run, "simulate handover.net"));
}

#[test]
fn a_model_may_come_from_standard_input() {
    let net = "net x\npl a (1)\ntr t a -> a\n";
    let run = run_with(&["check", "-", "--format", "net", "--quiet"], net);
    assert_eq!((run.exit, run.stdout.as_str()), (0, "holds  deadlock-free: no reachable state is a deadlock\n"));
}

#[test]
fn files_are_written_whole_and_nothing_is_left_beside_them() {
    let folder = folder("files");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let graph = run(&["graph", "ring.net", "-o", &path("g.aut"), "--quiet"]);
    assert_eq!((graph.exit, graph.stderr.as_str()), (0, ""));
    let refused = run(&["graph", "ring.net", "-o", &path("h.dot"), "--max-states", "5"]);
    assert_eq!(refused.exit, 3);
    let net = run(&["generate", "philosophers", "3", "-o", &path("p.net")]);
    assert_eq!((net.exit, net.stderr.as_str()), (0, ""));
    assert_eq!(run(&["check", &path("p.net"), "--quiet"]).exit, 1);
    assert_eq!(run(&["man", "--dir", &path("man")]).exit, 0);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["g.aut", "man", "p.net"]);
    assert!(folder.join("man/deltamark-check.1").is_file() && folder.join("man/deltamark.1").is_file());
    let first = std::fs::read_to_string(folder.join("g.aut")).expect("the graph");
    assert!(first.starts_with("des (0, 9, 6)\n"), "{first}");
}

#[test]
fn shells_and_readers_of_manuals_are_served() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = run(&["completions", shell]);
        assert!(run.exit == 0 && run.stdout.contains("invariant"), "{shell}");
    }
    let man = run(&["man"]).stdout;
    assert!(man.contains(".TH deltamark 1") && man.contains("Exit codes"), "{man}");
}
