//! Runs the command in the folder of test data.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run of the command did.
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
    let mut child = Command::new(env!("CARGO_BIN_EXE_deltamark"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that ends without reading closes the pipe, which is its right.
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
#[allow(dead_code)] // Not every test file writes files.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder to write to");
    folder
}
