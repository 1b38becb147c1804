//! Says at the end of `cargo test` what was skipped, and how to have it run.
//!
//! The test runner shows nothing of tests that pass, and a test that is skipped passes. This one runs without it, so what it
//! prints is seen; it never fails. The packages are tested in the order of their names, so this comes near the end.

use deltamark_testkit::Corpus;
use std::process::Command;

fn main() {
    // Asked for a list of tests, or for some of them by name, it has nothing to say.
    if std::env::args().len() > 1 {
        return;
    }
    let folder = Corpus::folder();
    if !folder.is_dir() {
        println!(
            "\nSKIPPED: tests that need models from outside: there is no folder {}.\n         \
             Set DELTAMARK_MODELS to the folder of models to run them; CONTRIBUTING.md says what it holds.\n         \
             Lines above that begin with SKIPPED name these tests.",
            folder.display()
        );
    }
    if Command::new("cc").arg("--version").output().is_err() {
        println!("\nSKIPPED: tests that build a shared library: there is no C compiler `cc`.");
    }
}
