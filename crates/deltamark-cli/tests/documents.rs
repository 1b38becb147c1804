//! The documents are true: commands print what is shown, tables are complete, files exist.
//!
//! In a block marked `console` every line that begins with `$ deltamark ` is run in the
//! root of the repository, and what it prints, on standard error first, must be what
//! follows it. Times, rates and sizes in memory are masked as in the snapshots.
//!
//! A block marked `rust PATH` shows lines of that file, so that what is shown is compiled. A line `…`
//! stands for lines that are not shown.

mod common;

use common::{masked, run, run_in};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

/// All documents of the repository.
fn documents() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["", "docs/", "models/", "fuzz/"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
            if name.ends_with(".md") {
                found.push(format!("{folder}{name}"));
            }
        }
    }
    found.sort();
    assert!(found.iter().any(|name| name == "README.md") && found.len() > 15, "{found:?}");
    found
}

/// The marks and contents of the blocks of code in a document, without their indentation.
fn code(text: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut indent = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), indent) {
            (Some(mark), None) => {
                indent = Some(line.len() - line.trim_start().len());
                found.push((mark, String::new()));
            }
            (Some(_), Some(_)) => indent = None,
            (None, Some(indent)) => {
                let line = line.get(indent..).unwrap_or(line.trim_start());
                let (_, block) = found.last_mut().expect("a block has begun");
                *block += line;
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    assert_eq!(indent, None, "every block has its end");
    found
}

/// The blocks of a document that are marked with this word.
fn blocks(text: &str, mark: &str) -> Vec<String> {
    code(text).into_iter().filter(|(found, _)| *found == mark).map(|(_, block)| block).collect()
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
    for document in &documents() {
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
    let shown = blocks(&readme, "rust");
    assert_eq!(shown[0].trim_end(), example.trim_end(), "README.md shows crates/deltamark/examples/mutex.rs");
}

/// Lines without what they are all indented by.
fn flush(lines: &[&str]) -> Vec<String> {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.iter().map(|line| line.get(least..).unwrap_or_default().trim_end().to_string()).collect()
}

/// Whether these lines are in a text, one after the other, at any indentation; from which line on to look, and where they
/// end.
fn position(text: &[&str], lines: &[&str], from: usize) -> Option<usize> {
    let wanted = flush(lines);
    let fits = |&start: &usize| flush(&text[start..start + lines.len()]) == wanted;
    (from..(text.len() + 1).saturating_sub(lines.len())).find(fits).map(|start| start + lines.len())
}

#[test]
fn code_that_documents_show_is_code_of_the_repository() {
    let mut count = 0;
    for document in &documents() {
        for (mark, block) in code(&read(document)) {
            let Some(path) = mark.strip_prefix("rust") else { continue };
            // The README has a test of its own.
            if document == "README.md" {
                continue;
            }
            let path = path.trim();
            assert!(!path.is_empty(), "{document}: a block of Rust names its file: ```rust PATH");
            let source = read(path);
            let source: Vec<&str> = source.lines().collect();
            let shown: Vec<&str> = block.trim_end().lines().collect();
            let mut from = 0;
            for piece in shown.split(|line| line.trim() == "…") {
                from = position(&source, piece, from).unwrap_or_else(|| {
                    panic!("{document} shows what is not in {path}, from line {from} on:\n{}", piece.join("\n"))
                });
            }
            count += 1;
        }
    }
    assert!(count >= 10, "the blocks were found: {count}");
}

#[test]
fn what_is_shown_is_found_at_any_indentation_and_not_if_it_differs() {
    let text = ["fn f() {", "    let a = 1;", "", "    a + 1", "}"];
    assert_eq!(position(&text, &["let a = 1;", "", "a + 1"], 0), Some(4));
    assert_eq!(position(&text, &["  a + 1", "}"], 0), None);
    assert_eq!(position(&text, &["    a + 1", "}"], 0), Some(5));
    assert_eq!(position(&text, &["let a = 2;"], 0), None);
    assert_eq!(position(&text, &["let a = 1;"], 2), None);
}

#[test]
fn documents_wrap_at_a_hundred_columns() {
    for document in &documents() {
        let text = read(document);
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let prose = !fenced && !line.starts_with('|') && line.contains(' ');
            // A word or a link that is longer by itself cannot be broken.
            let words = line.trim_start().trim_start_matches("- ").contains(' ');
            let long = prose && words && line.chars().count() > 100;
            assert!(!long, "{document}:{} has more than 100 columns: {line}", number + 1);
        }
    }
}

#[test]
fn the_readme_gives_two_commands_and_ci_runs_the_second() {
    let readme = read("README.md");
    let blocks = blocks(&readme, "sh");
    let commands: Vec<&str> = blocks[0].lines().collect();
    let &[main, tests] = commands.as_slice() else { panic!("two commands, not {commands:?}") };
    assert!(main.starts_with("cargo run --release -p deltamark-cli -- check models/"), "{main}");
    let ci = read(".ci/run");
    assert!(ci.lines().any(|line| line.trim() == tests), ".ci/run must have a line that is exactly `{tests}`");
}

#[test]
fn no_placeholder_is_left_in_a_document() {
    // A figure that is still to be measured is written `@@what@@`.
    for document in &documents() {
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

/// Sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn sources_that_documents_name_exist() {
    let mut known = Vec::new();
    sources(&root().join("crates"), &mut known);
    for document in &documents() {
        let text = read(document);
        let prose: String = text.split("```").step_by(2).collect();
        for word in prose.split('`').skip(1).step_by(2) {
            let is_source = word.ends_with(".rs") && !word.contains([' ', '*']) && !word.contains(char::is_uppercase);
            let exists = known.iter().any(|path| path.ends_with(word)) || root().join(word).exists();
            assert!(!is_source || exists, "{document} names {word}, which does not exist");
        }
    }
}

#[test]
fn links_and_file_names_in_documents_lead_somewhere() {
    for document in &documents() {
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
