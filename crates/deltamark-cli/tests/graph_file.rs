//! `deltamark graph FILE.dmg`: its output, its exit codes, and what is refused.

mod common;

use common::{folder, run_in};
use deltamark_graph::graph::forge;
use std::path::Path;

const RING: &str = "tr t1 p -> q\ntr t2 q -> r\ntr t3 r -> p\ntr stop r -> s\npl p (2)\n";

/// A folder with a net and its graph.
fn prepared(test: &str) -> std::path::PathBuf {
    let folder = folder(test);
    std::fs::write(folder.join("ring.net"), RING).expect("a file");
    let run = run_in(&folder, &["graph", "ring.net", "-o", "ring.dmg"], "");
    assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    assert!(run.stderr.contains("10 states and 16 edges written to `ring.dmg`"), "{}", run.stderr);
    folder
}

fn json(folder: &Path, arguments: &[&str]) -> (i32, serde_json::Value) {
    let run = run_in(folder, arguments, "");
    let value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}{}", run.stdout, run.stderr));
    (run.exit, value)
}

#[test]
fn a_graph_answers_as_check_does() {
    let folder = prepared("graph_answers");
    let cases: &[(&[&str], i32)] = &[
        (&["--deadlock"], 1),
        (&["--invariant", "p + q + r + s = 2"], 0),
        (&["--invariant", "s < 2"], 1),
        (&["--reach", "s = 2"], 0),
        (&["--reach", "s = 3"], 1),
        (&["--invariant", "deadlock implies s = 2", "--reach", "fireable(stop)"], 0),
    ];
    for (asked, exit) in cases {
        let (from_model, expected) = json(&folder, &[&["check", "ring.net", "--json"], *asked].concat());
        for walk in ["auto", "file", "depth"] {
            let arguments = [&["graph", "ring.dmg", "--json", "--walk", walk], *asked].concat();
            let (from_graph, found) = json(&folder, &arguments);
            assert_eq!((from_model, from_graph), (*exit, *exit), "{asked:?}");
            assert_eq!(found["search"], "graph");
            assert_eq!((&found["states"], &found["deadlocks"]), (&serde_json::json!(10), &serde_json::json!(1)));
            let verdicts = |value: &serde_json::Value| -> Vec<(String, usize)> {
                let list = value["properties"].as_array().expect("a list").iter();
                list.map(|one| (one["verdict"].to_string(), one["trace"].as_array().map_or(0, Vec::len))).collect()
            };
            assert_eq!(verdicts(&found), verdicts(&expected), "{asked:?}, {walk}");
        }
    }
}

#[test]
fn figures_and_components_are_told() {
    let folder = prepared("graph_figures");
    let (exit, components) = json(&folder, &["graph", "ring.dmg", "--components", "--json"]);
    assert_eq!(exit, 0);
    let figure = |name: &str| components[name].as_u64();
    assert_eq!((figure("components"), figure("bottom"), figure("home_states")), (Some(3), Some(1), Some(1)));
    assert_eq!(components["initial_is_home"], false);
    let from_model = run_in(&folder, &["stats", "ring.net"], "").stdout;
    let from_graph = run_in(&folder, &["graph", "ring.dmg", "--stats"], "").stdout;
    let figures = |text: &str| -> Vec<String> {
        let own = |line: &&str| !line.contains("store") && !line.contains("bytes") && !line.starts_with("  ");
        text.lines().filter(own).filter(|line| !line.contains("explored")).map(String::from).collect()
    };
    assert_eq!(figures(&from_graph), figures(&from_model));
    let told = run_in(&folder, &["graph", "ring.dmg"], "").stdout;
    assert!(told.contains("ring.net (tina)") && told.contains("states without edges      1"), "{told}");
    let drawn = run_in(&folder, &["graph", "ring.dmg", "-o", "-", "--to", "aut"], "");
    assert!(drawn.stdout.starts_with("des (0, 16, 10)"), "{}", drawn.stdout);
}

#[test]
fn check_and_stats_write_graphs_too() {
    let folder = prepared("graph_beside");
    let run = run_in(&folder, &["check", "ring.net", "--deadlock", "--graph", "a.dmg", "--quiet"], "");
    assert_eq!(run.exit, 1);
    let run = run_in(&folder, &["stats", "ring.net", "--graph", "b.dmg"], "");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let read = |name: &str| std::fs::read(folder.join(name)).expect("a graph");
    assert!(read("a.dmg") == read("ring.dmg") && read("b.dmg") == read("ring.dmg"), "the same file each time");
    let run = run_in(&folder, &["check", "ring.net", "--max-states", "5", "--graph", "c.dmg"], "");
    assert_eq!(run.exit, 3);
    assert!(run.stderr.contains("no graph was written to `c.dmg`"), "{}", run.stderr);
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 4);
}

#[test]
fn what_is_wrong_is_told_in_a_sentence_and_by_the_exit_code() {
    let folder = prepared("graph_errors");
    std::fs::write(folder.join("other.net"), RING.replace("(2)", "(3)")).expect("a file");
    std::fs::write(folder.join("text.dmg"), "this is a text, and a rather long one").expect("a file");
    let cases: &[(&[&str], &str)] = &[
        (&["graph", "none.dmg"], "cannot read `none.dmg`: there is no such file"),
        (&["graph", "text.dmg"], "`text.dmg` cannot be used: it is no graph written by Deltamark"),
        (&["graph", "ring.dmg", "--model", "other.net"], "belongs to another text than `other.net` holds now"),
        (&["graph", "ring.dmg", "--model", "gone.net"], "cannot read `gone.net`: there is no such file"),
        (&["graph", "ring.dmg", "--param", "N=3"], "the graph knows how its model is loaded"),
        (&["graph", "ring.dmg", "--invariant", "nothing > 0"], "the model has nothing called `nothing`"),
        (&["graph", "ring.dmg", "--walk", "sideways"], "write auto, file or depth"),
        (&["graph", "ring.dmg", "-o", "copy.dmg"], "the graph is a .dmg already"),
        (&["graph", "ring.dmg", "-o", "ring.dmg", "--to", "dot"], "would be overwritten"),
        (&["graph", "ring.dmg", "-o", "ring.net", "--to", "dot"], "`ring.net` is the model of the graph itself"),
        (&["graph", "ring.dmg", "--deadlock", "--trace", "ring.net"], "`ring.net` is the model of the graph itself"),
        (
            &["graph", "ring.dmg", "--deadlock", "--trace", "x.json", "-o", "./x.json"],
            "two outputs would be written to `./x.json`",
        ),
        (&["check", "ring.net", "--graph", "x.dmg", "--trace", "x.dmg"], "two outputs would be written to `x.dmg`"),
        (&["check", "ring.net", "--graph", "x.dot"], "let its name end in .dmg; `deltamark graph MODEL -o FILE.dot`"),
        (&["stats", "ring.net", "--graph", "x.json"], "`--graph` writes a condensed graph"),
        (&["graph", "ring.dmg", "--stats", "--components", "--json"], "one thing is asked at a time"),
        (&["graph", "ring.dmg", "--trace", "x.json"], "none is asked for"),
        (&["graph", "ring.net"], "there is no file to write the graph to"),
        (&["graph", "ring.net", "--stats", "-o", "x.dot"], "`--stats` belongs to a graph that was written before"),
        (
            &["graph", "ring.net", "--deadlock", "-o", "x.dot"],
            "properties are checked of a graph that was written before",
        ),
        (&["graph", "ring.net", "-o", "-", "--to", "dmg"], "is written to a file, not to standard output"),
        (&["check", "ring.net", "--graph", "ring.net"], "would be overwritten"),
        (&["check", "ring.net", "--graph", "no/such/folder.dmg"], "its folder does not exist"),
        (&["check", "ring.net", "--graph", "x.dmg", "--store", "bitstate"], "does not tell which state is which"),
    ];
    let run = run_in(&folder, &["graph", "ring.net", "--max-states", "1", "-o", "-", "--to", "dot"], "");
    assert!(!run.stderr.contains("no picture"), "a limit that the user set: {}", run.stderr);
    for (arguments, message) in cases {
        let run = run_in(&folder, arguments, "");
        assert_eq!(run.exit, 2, "{arguments:?}: {}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
        assert_eq!(std::fs::read_to_string(folder.join("ring.net")).expect("the model"), RING, "{arguments:?}");
    }
}

#[test]
fn the_user_is_told_where_a_graph_leads_to() {
    let folder = prepared("graph_leads");
    let away = folder.join("away");
    std::fs::create_dir_all(&away).expect("a folder");
    std::fs::write(away.join("far.net"), RING).expect("a file");
    let bytes = std::fs::read(folder.join("ring.dmg")).expect("a graph");
    let far = away.join("far.net").display().to_string();
    let cases = [
        ("ring.net", None),
        ("away/far.net", None),
        (far.as_str(), Some(format!("the model was read from `{far}`, where `led.dmg` says it is"))),
        (
            "../graph_leads/away/far.net",
            Some("the model was read from `../graph_leads/away/far.net`, where `led.dmg` says it is".to_string()),
        ),
    ];
    for (path, told) in cases {
        let led = forge(&bytes, |meta| meta.model.path = path.into()).expect("a graph");
        std::fs::write(folder.join("led.dmg"), led).expect("a file");
        let run = run_in(&folder, &["graph", "led.dmg", "--deadlock"], "");
        assert_eq!(run.exit, 1, "{path}: {}", run.stderr);
        match told {
            Some(told) => assert!(run.stderr.contains(&told), "{path}: {}", run.stderr),
            None => assert_eq!(run.stderr, "", "{path}"),
        }
        let quiet = run_in(&folder, &["graph", "led.dmg", "--deadlock", "-q"], "");
        assert_eq!((quiet.exit, quiet.stderr.as_str()), (1, ""), "{path}");
    }
    // The contents of a file do not control the terminal.
    let escaped =
        forge(&bytes, |meta| meta.model.options = vec![("param".into(), "a\u{1b}[2J=1".into())]).expect("a graph");
    std::fs::write(folder.join("led.dmg"), escaped).expect("a file");
    let run = run_in(&folder, &["graph", "led.dmg"], "");
    assert!(run.exit == 2 && !run.stderr.contains('\u{1b}'), "{}", run.stderr);
}

#[test]
fn a_damaged_graph_is_refused_by_the_command() {
    let folder = prepared("graph_damaged");
    let bytes = std::fs::read(folder.join("ring.dmg")).expect("a graph");
    // The library's tests flip every byte; here some of each part.
    for at in (0..bytes.len()).step_by(bytes.len() / 12) {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x20;
        std::fs::write(folder.join("wrong.dmg"), wrong).expect("a file");
        let run = run_in(&folder, &["graph", "wrong.dmg", "--deadlock", "--model", "ring.net"], "");
        assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "byte {at}: {}", run.stderr);
        assert!(run.stderr.contains("`wrong.dmg` cannot be used"), "byte {at}: {}", run.stderr);
        std::fs::write(folder.join("wrong.dmg"), &bytes[..at]).expect("a file");
        let run = run_in(&folder, &["graph", "wrong.dmg", "--deadlock", "--model", "ring.net"], "");
        assert_eq!(run.exit, 2, "cut at {at}: {}", run.stderr);
    }
}
