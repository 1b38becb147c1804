//! Reports at the end of `cargo test` what was skipped, and how to have it run.
//!
//! The test runner shows nothing of tests that pass, and a test that is skipped passes. This one runs without
//! it, so its output is seen; it never fails. Packages and their tests run in the order of their names, so
//! this one is the last but for the doc tests.

use deltamark_testkit::Corpus;
use std::process::Command;

fn main() {
    // If tests are listed, or selected by name, it prints nothing.
    if std::env::args().len() > 1 {
        return;
    }
    if !Corpus::folder().is_dir() {
        let place = match std::env::var_os("DELTAMARK_MODELS") {
            Some(named) => format!("DELTAMARK_MODELS names `{}`, and there is no such folder", named.display()),
            None => "there is no folder ../shared/models, and DELTAMARK_MODELS is not set".into(),
        };
        println!(
            "\nSKIPPED: tests that need models from outside: {place}.\n         \
             Set DELTAMARK_MODELS to the folder of models to run them; CONTRIBUTING.md says what it holds.\n         \
             Lines above that begin with SKIPPED name these tests."
        );
    }
    if Command::new("cc").arg("--version").output().is_err() {
        println!("\nSKIPPED: tests that build a shared library: there is no C compiler `cc`.");
    }
}
