//! Runs the command in the folder of test data, or in another.
#![allow(dead_code)] // Not every test file uses everything.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a run of the command.
pub struct Run {
    /// The exit code.
    pub exit: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs the command with these arguments, and this on its standard input.
pub fn run_with(arguments: &[&str], input: &str) -> Run {
    run_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), arguments, input)
}

/// The same in another folder.
pub fn run_in(folder: &Path, arguments: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_deltamark"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command may end without reading, which closes the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes| String::from_utf8(bytes).expect("output in UTF-8");
    Run { exit: output.status.code().expect("an exit code"), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs the command with these arguments.
pub fn run(arguments: &[&str]) -> Run {
    run_with(arguments, "")
}

/// A folder for files that a test writes, empty at the beginning.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder to write to");
    folder
}

/// Masks what differs from run to run, or from store to store.
pub fn masked(text: &str) -> String {
    let mut out = String::new();
    let mut parts = false;
    for line in text.lines() {
        // How far a stopped run came depends on the search.
        let early = line.contains(" 1 deadlock, ") || line.contains("; ended when");
        let line = if early {
            "[how far it came, and in what time]".into()
        } else if let Some((counts, figures)) = line.split_once(" explored; ") {
            format!("{counts} explored; {}", digits(figures))
        } else if line.starts_with("store ") || line.starts_with("bytes a state") {
            digits(line)
        } else {
            line.into()
        };
        // The parts of a store follow its bytes and are indented.
        parts = line.starts_with("bytes a state") || (parts && line.starts_with("  "));
        if !(parts && line.starts_with("  ")) {
            out += &line;
            out.push('\n');
        }
    }
    out
}

/// Every number, with its unit of bytes, as `#`.
fn digits(text: &str) -> String {
    let mut out = String::new();
    let mut number = false;
    for c in text.chars() {
        let more = c.is_ascii_digit() || (number && matches!(c, '.' | ','));
        match (number, more) {
            (false, true) => out.push('#'),
            (_, false) => out.push(c),
            (true, true) => {}
        }
        number = more;
    }
    for unit in ["# B", "# KiB", "# MiB", "# GiB"] {
        out = out.replace(unit, "# bytes");
    }
    out
}
