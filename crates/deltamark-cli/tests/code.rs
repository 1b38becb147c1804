//! Code runs only if the user gives `--format so` in that very command. The library here marks that it was
//! loaded: its constructor writes a file, before any function of it is called.

mod common;

use common::{folder, run_in};
use deltamark_graph::graph::forge;
use std::path::Path;
use std::process::Command;

/// Builds the example with a constructor that makes a file `loaded` in the current folder; returns whether
/// there is a compiler.
fn build(folder: &Path, name: &str) -> bool {
    let so = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deltamark-so");
    let ring = std::fs::read_to_string(so.join("examples/ring.c")).expect("the example");
    let mark = "#include <stdio.h>\n__attribute__((constructor)) static void mark(void) {\n  \
                FILE *file = fopen(\"loaded\", \"w\");\n  if (file) fclose(file);\n}\n";
    std::fs::write(folder.join("marked.c"), format!("{ring}\n{mark}")).expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-shared", "-fPIC", "-o", name, "marked.c", "-I"]).arg(so.join("include"));
    match cc.current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(_) => {
            deltamark_testkit::corpus::skipped("code.rs", "there is no C compiler `cc`");
            false
        }
    }
}

/// Whether the library was loaded since the last call.
fn loaded(folder: &Path) -> bool {
    std::fs::remove_file(folder.join("loaded")).is_ok()
}

#[test]
fn a_graph_never_has_code_run_that_the_user_did_not_name() {
    let folder = folder("code");
    if !build(&folder, "ring.so") {
        return;
    }
    // A library is selected by `--format so`, whatever its file is called.
    for model in ["ring.so", "./ring.so"] {
        let run = run_in(&folder, &["check", model, "-q"], "");
        assert_eq!((run.exit, loaded(&folder)), (2, false), "{}", run.stderr);
        assert!(run.stderr.contains("add `--format so`"), "{}", run.stderr);
    }
    let made = run_in(&folder, &["graph", "ring.so", "--format", "so", "-o", "ring.dmg"], "");
    assert_eq!((made.exit, loaded(&folder)), (0, true), "{}", made.stderr);
    let honest = std::fs::read(folder.join("ring.dmg")).expect("a graph");
    std::fs::write(folder.join("net.net"), "tr t p -> q\npl p (1)\n").expect("a net");
    assert_eq!(run_in(&folder, &["graph", "net.net", "-o", "net.dmg"], "").exit, 0);
    let net = std::fs::read(folder.join("net.dmg")).expect("a graph");
    let library = folder.join("ring.so").display().to_string();
    // The graph of the library itself, and graphs of a net that claim the library, with and without its hash.
    let forged = |path: &str| forge(&net, |meta| (meta.model.path, meta.model.format) = (path.into(), "so".into()));
    let mut id = None;
    forge(&honest, |meta| id = Some(meta.model.clone())).expect("a graph");
    let id = id.expect("a model");
    let graphs = [
        honest.clone(),
        forged("ring.so").expect("a graph"),
        forged(&library).expect("a graph"),
        forged("../code/ring.so").expect("a graph"),
        forge(&net, |meta| meta.model = id.clone()).expect("a graph"),
    ];
    for (number, bytes) in graphs.iter().enumerate() {
        std::fs::write(folder.join("g.dmg"), bytes).expect("a file");
        let questions: &[&[&str]] = &[
            &[],
            &["--deadlock"],
            &["--stats"],
            &["--components"],
            &["--json"],
            &["-o", "x.dot"],
            &["--model", "ring.so"],
            &["--model", "ring.so", "--deadlock"],
        ];
        for question in questions {
            let run = run_in(&folder, &[&["graph", "g.dmg"], *question].concat(), "");
            assert_eq!((run.exit, loaded(&folder)), (2, false), "graph {number}, {question:?}: {}", run.stderr);
            assert!(run.stderr.contains("which is code") && run.stderr.contains("--format so"), "{}", run.stderr);
        }
    }
    // Selected by the user, it runs: if it is the library that the graph was made from.
    std::fs::write(folder.join("g.dmg"), &honest).expect("a file");
    let named = run_in(&folder, &["graph", "g.dmg", "--format", "so", "--deadlock", "-q"], "");
    assert_eq!((named.exit, loaded(&folder)), (0, true), "{}{}", named.stdout, named.stderr);
    std::fs::write(folder.join("g.dmg"), forged("ring.so").expect("a graph")).expect("a file");
    let other = run_in(&folder, &["graph", "g.dmg", "--format", "so", "--deadlock"], "");
    assert_eq!((other.exit, loaded(&folder)), (2, false), "{}", other.stderr);
    assert!(other.stderr.contains("belongs to another text"), "{}", other.stderr);
}
