//! `deltamark resume`: runs that are killed, interrupted and limited, and go on.
//!
//! In: models of several languages. Out: nothing, or a panic with the command line. What stays true: whatever happened to a
//! run, what it comes to in the end is what one that was left alone comes to.

mod common;

use common::{Run, folder, run};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {} {}", run.stdout, run.stderr))
}

/// What must not depend on interruptions.
fn figures(report: &Value) -> String {
    let answers = report["properties"].as_array().expect("answers").iter().map(|answer| {
        let steps = answer["trace"].as_array().map(Vec::len);
        format!("{} {} {steps:?}", answer["name"], answer["verdict"])
    });
    let answers: Vec<String> = answers.collect();
    let counts =
        ["states", "edges", "deadlocks", "depth", "expanded", "complete", "stopped_by"].map(|name| &report[name]);
    format!("{counts:?} {answers:?}")
}

const MODELS: [(&str, &[&str]); 5] = [
    ("../../../../models/kanban-3.pnml", &[]),
    ("../../../../models/philosophers-5.pnml", &["--invariant", "true"]),
    ("../../../../models/peterson.dve", &[]),
    ("../../../../models/leader-election.lna", &["--unfold", "no"]),
    ("../../../../models/resources.cpn", &[]),
];
const STORES: [&str; 4] = ["plain", "tree", "collapse", "compact"];

/// Kills runs at random moments until one comes to its end.
fn survives(cycles: u64, seed: u64) {
    let mut random = seed;
    let mut below = move |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    let kept = folder(&format!("resume_killed_{seed}")).join("kept");
    let kept_name = kept.to_str().expect("a name").to_string();
    let mut killed = 0;
    for cycle in 0..cycles {
        let (model, options) = MODELS[below(MODELS.len() as u64) as usize];
        let mut asked = vec!["check", model, "--deadlock", "--search", "bfs", "--json"];
        asked.extend(options);
        let alone = run(&[&asked[..], &["--reduce", "off", "--threads", "1"]].concat());
        let expected = figures(&json(&alone));
        let _ = std::fs::remove_dir_all(&kept);
        // What `compact` kept, it alone goes on with; a model whose states vary in width is none for it.
        let varies = model.ends_with(".lna") || model.ends_with(".cpn");
        let compact = below(4) == 0 && !varies;
        for round in 0.. {
            let store = if compact { "compact" } else { STORES[below(3) as usize] };
            let threads = ["1", "2"][below(2) as usize];
            let begun = kept.is_dir()
                && std::fs::read_dir(&kept).expect("a folder").any(|entry| {
                    entry.expect("an entry").file_name().to_str().is_some_and(|name| name.ends_with(".checkpoint"))
                });
            let words: Vec<&str> = if begun {
                vec!["resume", &kept_name, "--json", "--store", store, "--threads", threads]
            } else {
                [&asked[..], &["--checkpoint", &kept_name, "--checkpoint-every", "0", "--store", store]].concat()
            };
            let mut child = Command::new(env!("CARGO_BIN_EXE_deltamark"))
                .args(&words)
                .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the command starts");
            // The longer it takes, the longer it is let be.
            std::thread::sleep(Duration::from_millis(1 + below(40) + 10 * round));
            killed += u32::from(child.kill().is_ok() && child.try_wait().expect("a child").is_none());
            let output = child.wait_with_output().expect("the command ends");
            let label = format!("cycle {cycle}, round {round}: {}", words.join(" "));
            let Some(exit) = output.status.code() else { continue };
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(exit, alone.exit, "{label}: {stderr}");
            let stdout = String::from_utf8(output.stdout).expect("output in UTF-8");
            assert_eq!(figures(&json(&Run { exit, stdout, stderr })), expected, "{label}");
            break;
        }
        let mut left: Vec<String> = std::fs::read_dir(&kept)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        left.retain(|name| name != "lock" && name != "model");
        let manifests = left.iter().filter(|name| name.ends_with(".checkpoint")).count();
        assert!((1..=2).contains(&manifests) && left.len() == 2 * manifests, "{left:?}");
    }
    assert!(killed as u64 >= cycles / 2, "{killed} of {cycles}");
}

#[test]
fn runs_that_are_killed_at_any_moment_go_on() {
    survives(12, 1);
}

#[test]
#[ignore = "minutes; run by scripts/long"]
fn a_thousand_runs_that_are_killed_at_any_moment_go_on() {
    survives(1_000, 2);
}

#[test]
fn a_run_that_reached_a_limit_says_how_to_go_on_and_does() {
    let kept = folder("resume_limit").join("kept");
    let kept = kept.to_str().expect("a name");
    let properties = Path::new(kept).with_file_name("some.prop");
    std::fs::write(&properties, "invariant never: true\n").expect("a file");
    let properties = properties.to_str().expect("a name").to_string();
    let model = MODELS[0].0;
    let asked =
        ["check", model, "--deadlock", "--properties", &properties, "--checkpoint", kept, "--max-states", "9000"];
    let first = run(&asked);
    assert_eq!(first.exit, 3, "{}", first.stderr);
    let advice = format!("`deltamark resume {kept}` goes on from a checkpoint");
    assert!(first.stdout.replace('\n', " ").contains(&advice), "{}", first.stdout);
    // Nothing that it needs is elsewhere.
    std::fs::remove_file(&properties).expect("a file");
    let again = run(&["resume", kept]);
    assert_eq!(again.exit, 3, "the limit is that of the run: {}", again.stderr);
    let last = run(&["resume", kept, "--max-states", "1000000", "--store", "tree", "--json"]);
    assert_eq!(last.exit, 0, "{}", last.stderr);
    let report = json(&last);
    assert_eq!(report["states"], 58_400);
    assert_eq!(report["model"]["path"], model);
    assert!(report["resumed"]["states"].as_u64().expect("states") > 1_000, "{report}");
    assert!(report["resumed"]["from"].as_str().expect("a file").ends_with(".checkpoint"), "{report}");
    assert_eq!(report["checkpoint"]["directory"], kept);
}

#[cfg(unix)]
#[test]
fn a_run_that_is_told_to_end_leaves_a_checkpoint() {
    let folder = folder("resume_told");
    let (net, kept) = (folder.join("net.pnml"), folder.join("kept"));
    let [net, kept] = [&net, &kept].map(|path| path.to_str().expect("a name"));
    assert_eq!(run(&["generate", "kanban", "4", "-o", net]).exit, 0);
    let words = ["check", net, "--deadlock", "--checkpoint", kept, "--store", "compact"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_deltamark"));
    let child = child.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts");
    // The first checkpoint is there, so the signal has somebody who listens.
    while !std::fs::exists(Path::new(kept).join("1.checkpoint")).expect("a folder") {
        std::thread::sleep(Duration::from_millis(1));
    }
    let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("`kill`");
    let exit = child.wait_with_output().expect("the command ends").status.code();
    assert!(told.success() && matches!(exit, Some(0 | 3)), "{exit:?}");
    let report = json(&run(&["resume", kept, "--json"]));
    assert_eq!((&report["states"], &report["edges"]), (&454_475.into(), &3_979_850.into()), "{report}");
    assert!(exit == Some(0) || report["resumed"]["states"].as_u64().expect("states") > 0, "{report}");
}

#[test]
fn a_run_whose_memory_is_full_goes_on_in_a_smaller_store() {
    let folder = folder("resume_smaller");
    let (net, kept) = (folder.join("net.pnml"), folder.join("kept"));
    let [net, kept] = [&net, &kept].map(|path| path.to_str().expect("a name"));
    assert_eq!(run(&["generate", "kanban", "5", "-o", net]).exit, 0);
    // In `plain` the states alone take more.
    let report = run(&["check", net, "--deadlock", "--checkpoint", kept, "--memory", "32MiB", "--json"]);
    let report = json(&report);
    assert_eq!(
        (&report["states"], &report["edges"], &report["depth"]),
        (&2_546_432.into(), &24_460_016.into(), &70.into())
    );
    assert_eq!((&report["store"]["name"], &report["complete"]), (&"compact".into(), &true.into()));
    let why = report["store"]["chosen"]["why"].as_str().expect("a reason");
    assert!(why.starts_with("plain was full at"), "{why}");
    // Whoever goes on does so in the store in which it was at last.
    let report = json(&run(&["resume", kept, "--json"]));
    assert_eq!((&report["states"], &report["store"]["name"]), (&2_546_432.into(), &"compact".into()));
}

#[test]
fn what_does_not_fit_into_the_first_store_is_read_into_a_smaller_one() {
    let folder = folder("resume_into_smaller");
    let net = folder.join("net.pnml");
    let net = net.to_str().expect("a name");
    assert_eq!(run(&["generate", "kanban", "5", "-o", net]).exit, 0);
    for (name, store) in [("chosen", None), ("named", Some("plain"))] {
        let kept = folder.join(name);
        let kept = kept.to_str().expect("a name");
        let mut words = vec!["check", net, "--deadlock", "--checkpoint", kept, "--max-states", "1500000"];
        words.extend(store.iter().flat_map(|store| ["--store", store]));
        assert_eq!(run(&words).exit, 3);
        let again = ["resume", kept, "--memory", "24MiB"];
        let text = run(&again);
        assert_eq!(text.exit, 3, "{}", text.stderr);
        let told = text.stdout.replace('\n', " ");
        if store.is_some() {
            assert!(told.contains("was reached while reading the checkpoint"), "{told}");
            assert!(told.contains("`--store compact`, which takes less"), "{told}");
        } else {
            assert!(told.contains("compact was chosen: plain has no room for what is in"), "{told}");
            assert!(told.contains("the limit on the number of states was reached"), "{told}");
        }
        // A limit that nothing fits is refused with the least that works, as by `check`.
        let refused = run(&["resume", kept, "--memory", "1MiB"]);
        assert_eq!(refused.exit, 2, "{} {}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("give at least `--memory"), "{}", refused.stderr);
        let refused = run(&["resume", kept, "--store", "bitstate"]);
        assert_eq!(refused.exit, 2, "{} {}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("or leave `--store` out"), "{}", refused.stderr);
        let refused = run(&["resume", kept, "--deadlock"]);
        assert_eq!(refused.exit, 2, "{} {}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("asks what the run was asked at first"), "{}", refused.stderr);
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let kept = folder("resume_refused").join("kept");
    let kept = kept.to_str().expect("a name");
    let model = MODELS[0].0;
    let cases: [(&[&str], &str); 8] = [
        (&["resume", kept], "there is no directory"),
        (&["check", model, "--checkpoint", kept, "--store", "breadcrumb"], "the store `breadcrumb` cannot keep"),
        (&["check", model, "--checkpoint", kept, "--search", "dfs"], "checkpoints are kept of a breadth-first search"),
        (&["check", model, "--checkpoint", kept, "--reduce", "stubborn"], "of a run that reduces nothing"),
        (&["check", model, "--checkpoint", kept, "--ltl", "G true"], "of questions about single states"),
        (&["check", model, "--checkpoint-every", "1m"], "--checkpoint <DIR>"),
        (&["check", "-", "--format", "pnml", "--checkpoint", kept], "standard input cannot be kept"),
        (&["check", model, "--checkpoint", "/dev/null/x"], "/dev/null/x"),
    ];
    for (words, expected) in cases {
        let refused = run(words);
        assert_eq!(refused.exit, 2, "{words:?}: {} {}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains(expected), "{words:?}: {}", refused.stderr);
        assert!(!Path::new(kept).exists(), "{words:?}: nothing is written");
    }
}
