//! The certificate of a `check`.
//!
//! In: a report. Out: notes on standard error, about what is certified and what is not. What stays true: no certificate is
//! written that `deltamark verify` could not read the model of.

use crate::args;
use crate::exit::Failure;
use crate::output::try_output;
use crate::{render, units};
use deltamark::{Report, memory};
use std::fs;
use std::path::Path;

/// The most answers without a certificate that are listed.
const LISTED: usize = 10;

/// Refuses what does not go with a certificate, before anything runs.
pub fn refuse(path: &str, arguments: &args::Check) -> Result<(), Failure> {
    let target = Path::new(path);
    if path == "-" || (target.exists() && !target.is_file()) {
        return Err(Failure::new(format!("a certificate is written to a file, and `{path}` is none")));
    }
    if arguments.soundness {
        return Err(Failure::new("soundness is a question about paths, which a certificate does not show")
            .help("leave `--soundness` or `--certificate` out"));
    }
    if arguments.reduce.is_demanded() {
        let what = format!("`--reduce {}` leaves states away, and a certificate shows all", arguments.reduce);
        return Err(Failure::new(what).help("leave one of them out"));
    }
    try_output(path)
}

/// Why `verify` could not read the model, if it could not.
pub fn unread(arguments: &args::Check, format: &str, memory: Option<u64>) -> Option<String> {
    /// Bytes that the tree of a text takes for each of its bytes, at most.
    const TREE: u64 = 16;
    let path = &arguments.model.model;
    if path == "-" {
        return Some("the model does not come from a file".into());
    }
    if !deltamark_verify::LANGUAGES.contains(&format) {
        let known = deltamark_verify::LANGUAGES.join(", ");
        return Some(format!("`verify` reads models in {known}, and this one is in {format}"));
    }
    let length = fs::metadata(path).map_or(0, |about| about.len());
    if memory.is_some_and(|limit| length * TREE > limit.saturating_sub(memory::resident().unwrap_or(0))) {
        return Some("the memory limit leaves no room to see whether `verify` reads the model".into());
    }
    let read = fs::read(path).map_err(|error| error.to_string());
    let read = read.and_then(|text| deltamark_verify::reads(format, &text));
    read.err().map(|why| format!("`verify` does not read this model: {why}"))
}

/// Reports on a certificate that was to be written.
pub fn tell(report: &Report, say: &args::Say) {
    let Some(certificate) = &report.certificate else { return };
    // What failed is an error of its own, once the answers are shown.
    let uncertified = || certificate.uncertified.iter().filter(|(_, why)| certificate.failed.as_ref() != Some(why));
    for (name, why) in uncertified().take(LISTED) {
        render::warning(&format!("no certificate for `{}`: {why}", render::printable(name)));
    }
    if let more @ 1.. = uncertified().count().saturating_sub(LISTED) {
        render::warning(&format!("no certificate for {}", units::show_counted(more as u64, "more answer")));
    }
    let path = &certificate.path;
    match &certificate.contents {
        Some(contents) if !say.quiet => {
            let mut what = units::show_counted(contents.claims, "answer");
            if let Some(states) = contents.states {
                what += &format!(" and {}", units::show_counted(states, "state"));
            }
            let size = units::show_bytes(contents.bytes);
            render::note(&format!("`{path}` certifies {what} in {size}: `deltamark verify` checks it"));
        }
        None if certificate.failed.is_none() => {
            let why = if report.answers.is_empty() { ": there is no answer" } else { "" };
            render::warning(&format!("no certificate was written to `{path}`{why}"));
        }
        _ => {}
    }
}

/// Fails if the file is at fault that there is no certificate. The answers are valid, and were shown before.
pub fn must_be_writable(report: &Report) -> Result<(), Failure> {
    match report.certificate.as_ref().and_then(|certificate| certificate.failed.as_ref()) {
        Some(why) => Err(Failure::new(why.clone())),
        None => Ok(()),
    }
}
