//! Certificates on the command line.
//!
//! In: models of the tests' folder. Out: what `check --certificate` and `verify` print, and their exit codes.

mod common;

use common::run;
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("deltamark-certificate-{}-{name}", std::process::id()))
}

/// A run of the command with the path of a certificate in place of `@`: its exit code, and all that it printed.
fn ran(arguments: &[&str], certificate: &str) -> (i32, String) {
    let arguments: Vec<&str> = arguments.iter().map(|one| if *one == "@" { certificate } else { one }).collect();
    let run = run(&arguments);
    (run.exit, run.stderr + &run.stdout)
}

#[test]
fn a_certificate_is_written_and_checked() {
    let file = path("good");
    let at = file.to_string_lossy().into_owned();
    let questions = ["check", "ring.net", "--deadlock", "--reach", "false", "--certificate", "@"];
    let (exit, said) = ran(&questions, &at);
    assert!(exit == 1 && said.contains("certifies 2 answers"), "{exit}: {said}");
    let (exit, said) = ran(&["verify", "@", "ring.net"], &at);
    assert!(exit == 0 && said.starts_with("accepted\n") && said.contains("deadlock-free: in every state"), "{said}");
    let (exit, said) = ran(&["verify", "@", "ring.net", "--json"], &at);
    let value: serde_json::Value = serde_json::from_str(&said).expect("one object");
    assert!(exit == 0 && value["accepted"] == true && value["properties"][1]["verdict"] == "violated", "{said}");
    // Another model, another file, no file, no room.
    let (exit, said) = ran(&["verify", "@", "handover.net"], &at);
    assert!(exit == 1 && said.contains("rejected: the certificate is of another model"), "{said}");
    assert_eq!(ran(&["verify", "ring.net", "ring.net"], &at).0, 2);
    assert_eq!(ran(&["verify", "@", "nowhere.net"], &at).0, 2);
    assert_eq!(ran(&["verify", "@", "ring.net", "--memory", "1KiB"], &at).0, 3);
    let mut bytes = std::fs::read(&file).expect("the certificate");
    let last = bytes.len() - 1;
    bytes[last / 2] ^= 4;
    std::fs::write(&file, &bytes).expect("a folder for it");
    let (exit, said) = ran(&["verify", "@", "ring.net"], &at);
    assert!(exit == 1 && said.contains("checksum"), "{said}");
    let _ = std::fs::remove_file(&file);
}

/// With a limit on the length of files nothing can be written, as on a full disk.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_is_reported_once() {
    let file = path("full");
    let command = format!(
        "trap '' XFSZ; ulimit -f 0; exec '{}' check ring.net --deadlock --reach false --certificate '{}'",
        env!("CARGO_BIN_EXE_deltamark"),
        file.display()
    );
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let output = std::process::Command::new("sh").args(["-c", &command]).current_dir(data).output().expect("a shell");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("cannot write").count(), 1, "{said}");
    assert!(!file.exists());
}

#[test]
fn what_is_not_certified_is_said_and_the_run_goes_on() {
    let file = path("none");
    let at = file.to_string_lossy().into_owned();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["check", "ring.net", "--store", "compaction", "--certificate", "@"], 3, "the store may have missed states"),
        (&["check", "ring.net", "--max-states", "2", "--deadlock", "--certificate", "@"], 3, "it has no answer"),
        (
            &["check", "ring.net", "--ltl", "G true", "--certificate", "@"],
            0,
            "it asks for more than single states show",
        ),
        (&["check", "ring.net", "--reduce", "stubborn", "--certificate", "@"], 2, "leaves states away"),
        (&["check", "ring.net", "--soundness", "--certificate", "@"], 2, "soundness"),
        (&["check", "ring.net", "--certificate", "-"], 2, "is written to a file"),
    ];
    for (arguments, expected, words) in cases {
        let (exit, said) = ran(arguments, &at);
        assert!(exit == expected && said.contains(words), "{arguments:?}: {exit}: {said}");
        assert!(!file.exists(), "{arguments:?}");
    }
    let (_, said) = ran(&["check", "ring.net", "--store", "compaction", "--certificate", "@", "--json"], &at);
    let report = said.lines().last().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let certificate = &report.expect("one object")["certificate"];
    assert_eq!(certificate["written"], false, "{said}");
    assert_eq!(certificate["uncertified"][0]["why"], "the store may have missed states", "{said}");
}
