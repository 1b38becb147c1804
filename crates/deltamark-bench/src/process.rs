//! Runs of `once`, each in a process of its own.
//!
//! In: a net, a store, a search, and a time limit. Out: the measurements, or why there are none. What stays true:
//! a run that takes too long is killed, and does not affect the others.

use crate::once::Record;
use std::fmt;
use std::io::Write;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Why there is no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// It could not be run: there is no such net, the store does not work for it, no memory.
    Refused(String),
    /// It ran with wrong counts.
    Wrong(String),
    /// It crashed or printed no record.
    Broken(String),
    /// It did not end in time.
    Late(Duration),
}

/// Exit code of a run that was refused.
const REFUSED: u8 = 2;
/// Exit code of a run with a wrong result.
const WRONG: u8 = 1;

impl Failure {
    /// Its exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Refused(_) | Failure::Late(_) => REFUSED,
            Failure::Wrong(_) | Failure::Broken(_) => WRONG,
        })
    }

    /// Its entry in a table.
    pub fn word(&self) -> String {
        match self {
            Failure::Refused(_) => "refused".into(),
            Failure::Wrong(_) => "WRONG".into(),
            Failure::Broken(_) => "BROKEN".into(),
            Failure::Late(limit) => format!("not done in {} s", limit.as_secs_f64()),
        }
    }

    /// Whether it is a bug of ours, which must not go unnoticed.
    pub fn is_fault(&self) -> bool {
        matches!(self, Failure::Wrong(_) | Failure::Broken(_))
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Refused(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(message) | Failure::Wrong(message) | Failure::Broken(message) => f.write_str(message),
            Failure::Late(_) => f.write_str(&self.word()),
        }
    }
}

/// Runs one net in a process of its own, with further arguments.
pub fn measure(
    net: &str,
    store: &str,
    search: &str,
    more: &[&str],
    limit: Option<Duration>,
) -> Result<Record, Failure> {
    let broken = |error: std::io::Error| Failure::Broken(error.to_string());
    let program = std::env::current_exe().map_err(broken)?;
    // It prints one line, so the pipe cannot fill up while it is not read.
    let mut child = Command::new(program)
        .args(["once", net, "--store", store, "--search", search])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(broken)?;
    if let Some(limit) = limit
        && !ends_within(&mut child, limit).map_err(broken)?
    {
        child.kill().and_then(|()| child.wait()).map_err(broken)?;
        return Err(Failure::Late(limit));
    }
    let output = child.wait_with_output().map_err(broken)?;
    if output.status.success() {
        return serde_json::from_slice(&output.stdout).map_err(|error| Failure::Broken(error.to_string()));
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("error: ").to_string();
    Err(match output.status.code() {
        Some(code) if code == i32::from(REFUSED) => Failure::Refused(message),
        Some(code) if code == i32::from(WRONG) => Failure::Wrong(message),
        _ => Failure::Broken(format!("{} {message}", output.status)),
    })
}

/// Waits for at most `limit`; returns whether it has ended.
fn ends_within(child: &mut Child, limit: Duration) -> std::io::Result<bool> {
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() >= limit {
            return Ok(false);
        }
        sleep(Duration::from_millis(5).min(limit));
    }
    Ok(true)
}

/// Appends a line to the history.
pub fn append(path: &str, record: &Record) -> Result<(), String> {
    let line = serde_json::to_string(record).map_err(|error| error.to_string())?;
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{line}")).map_err(|error| format!("{path}: {error}"))
}

/// The records of the history. Lines of earlier versions, which recorded less, are skipped.
pub fn history(path: &str) -> Result<Vec<Record>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_takes_too_long_is_noticed() {
        let mut child = Command::new("sleep").arg("20").spawn().expect("sleep");
        assert!(!ends_within(&mut child, Duration::from_millis(30)).expect("waiting"));
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert!(ends_within(&mut child, Duration::ZERO).expect("waiting"));
    }
}
