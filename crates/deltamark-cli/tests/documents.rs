//! The documents are true: commands print what is shown, tables are complete, files exist.
//!
//! In a block marked `console` every line that begins with `$ deltamark ` is run in the
//! root of the repository, and what it prints, on standard error first, must be what
//! follows it. Times, rates and sizes in memory are masked as in the snapshots.

mod common;

use common::{masked, run, run_in};
use std::path::{Path, PathBuf};

const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/dve.md",
    "docs/formats.md",
    "docs/json.md",
    "docs/lna.md",
    "docs/properties.md",
    "docs/reproduce.md",
    "docs/stores.md",
    "docs/study.md",
    "docs/sweep.md",
    "docs/threads.md",
    "docs/trees.md",
    "docs/workflow.md",
    "models/README.md",
    "fuzz/README.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

/// The blocks of a document that are marked with this word.
fn blocks<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    text.split("\n```").skip(1).step_by(2).filter_map(move |block| {
        let (head, body) = block.split_once('\n')?;
        (head == mark).then_some(body)
    })
}

/// Splits a line of a shell, with single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_string)),
            _ => words.push(part.into()),
        }
    }
    words
}

#[test]
fn commands_in_documents_print_what_is_shown() {
    let mut count = 0;
    for document in DOCUMENTS {
        let text = read(document);
        for block in blocks(&text, "console") {
            for session in format!("\n{}", block.trim_end()).split("\n$ ").skip(1) {
                let (command, shown) = session.split_once('\n').unwrap_or((session, ""));
                let Some(arguments) = command.strip_prefix("deltamark ") else { continue };
                let arguments = words(arguments);
                let ran = run_in(&root(), &arguments.iter().map(String::as_str).collect::<Vec<_>>(), "");
                let printed = format!("{}{}", ran.stderr, ran.stdout);
                assert_eq!(
                    masked(printed.trim_end()),
                    masked(shown.trim_end()),
                    "{document} shows something else for `{command}` (left: what it prints now)"
                );
                count += 1;
            }
        }
    }
    assert!(count >= 3, "the examples were found: {count}");
}

#[test]
fn the_readme_lists_every_store_and_every_command() {
    let readme = read("README.md");
    let stores: serde_json::Value = serde_json::from_str(&run(&["stores", "--json"]).stdout).expect("JSON");
    for store in stores["stores"].as_array().expect("a list") {
        let row = format!("| `{}` |", store["name"].as_str().expect("a name"));
        assert!(readme.contains(&row), "the table of stores in README.md lacks a row that begins with {row}");
    }
    let help = run(&["--help"]).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"check"), "{commands:?}");
    for command in commands.iter().filter(|command| **command != "help") {
        assert!(readme.contains(&format!("| `{command}")), "the table of commands in README.md lacks `{command}`");
    }
}

#[test]
fn the_page_on_formats_lists_every_format() {
    let page = read("docs/formats.md");
    for format in deltamark::load::FORMATS {
        let row = match format.extensions {
            [] => format!("| `{}` | none", format.name),
            endings => format!("| `{}` | `.{}` |", format.name, endings.join("`, `.")),
        };
        assert!(page.contains(&row), "the table in docs/formats.md lacks a row that begins with {row}");
    }
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let example = read("crates/deltamark/examples/mutex.rs");
    let readme = read("README.md");
    let shown = blocks(&readme, "rust").next().expect("a block of Rust");
    assert_eq!(shown.trim_end(), example.trim_end(), "README.md shows crates/deltamark/examples/mutex.rs");
}

#[test]
fn the_readme_gives_two_commands_and_ci_runs_the_second() {
    let readme = read("README.md");
    let commands: Vec<&str> = blocks(&readme, "sh").next().expect("a block of commands").trim_end().lines().collect();
    let &[main, tests] = commands.as_slice() else { panic!("two commands, not {commands:?}") };
    assert!(main.starts_with("cargo run --release -p deltamark-cli -- check models/"), "{main}");
    let ci = read(".ci/run");
    assert!(ci.lines().any(|line| line.trim() == tests), ".ci/run must have a line that is exactly `{tests}`");
}

#[test]
fn no_placeholder_is_left_in_a_document() {
    // A figure still to be measured is written `@@what@@`.
    for document in DOCUMENTS {
        for (index, line) in read(document).lines().enumerate() {
            assert!(!line.contains("@@"), "{document}:{} has a placeholder: {line}", index + 1);
        }
    }
}

/// Targets of links: `[text](target)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Files of the repository that a text names in backquotes.
fn named_files(text: &str) -> impl Iterator<Item = &str> {
    let folders = ["crates/", "docs/", "models/", "fuzz/", ".ci/"];
    let is_path = move |word: &&str| folders.iter().any(|folder| word.starts_with(folder));
    // Placeholders are written in capitals: `crates/deltamark-LANGUAGE/src/lib.rs`.
    let is_real = |word: &&str| !word.contains([' ', '…', '*', '<']) && !word.contains(char::is_uppercase);
    text.split('`').skip(1).step_by(2).filter(is_path).filter(is_real)
}

#[test]
fn links_and_file_names_in_documents_lead_somewhere() {
    for document in DOCUMENTS {
        let text = read(document);
        let folder = root().join(document).parent().expect("a folder").to_path_buf();
        for target in links(&text).filter(|target| !target.starts_with("http") && !target.starts_with('#')) {
            let file = target.split('#').next().unwrap_or(target);
            assert!(folder.join(file).exists(), "{document} links to {target}, which does not exist");
        }
        let prose: String = text.split("```").step_by(2).collect();
        for file in named_files(&prose) {
            let made = ["fuzz/corpus", "fuzz/artifacts", "fuzz/target"].iter().any(|made| file.starts_with(made));
            assert!(made || root().join(file).exists(), "{document} names {file}, which does not exist");
        }
    }
}
