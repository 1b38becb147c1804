//! `deltamark verify`.
//!
//! In: a certificate and its model. Out: what was checked, on standard output; exit code 0 if it is accepted, 1 if it is
//! rejected. What stays true: whether it is accepted is decided by `deltamark-verify` alone.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::print;
use crate::{signals, units};
use deltamark::control::{Control, steering};
use deltamark::memory;
use deltamark_verify::{Accepted, Limits, verify};
use std::fs;
use std::time::Instant;

/// Checks a certificate.
pub fn run(arguments: &args::Verify, since: Instant) -> Result<Exit, Failure> {
    let limits = arguments.limits.limits();
    let control = steering(&limits, &signals::cancel(), since);
    let limit = limits.memory.unwrap_or(u64::MAX);
    let left = || limit.saturating_sub(memory::resident().unwrap_or(0));
    let file = read(&arguments.certificate, left())?;
    // The tree of its XML takes several times its length.
    let text = read(&arguments.model, left() / 16)?;
    let stop = || control.stop_without_memory().map(|stop| format!("the check was stopped: {}", stop.word()));
    let result = verify(&file, &text, &Limits { memory: left(), whole: limit, stop: &stop });
    let (exit, why) = match &result {
        Ok(_) => (Exit::Good, None),
        Err(deltamark_verify::Failure::Rejected(why)) => (Exit::Violated, Some(why)),
        Err(deltamark_verify::Failure::Input(why)) => {
            let at = format!("`{}` cannot be checked against `{}`: {why}", arguments.certificate, arguments.model);
            return Err(Failure::new(at));
        }
        Err(deltamark_verify::Failure::Limit(why)) => return Err(Failure::new(why.clone()).no_answer()),
    };
    if arguments.json {
        return print_json(arguments, &result, &control).map(|()| exit);
    }
    print(&control, |out| match (&result, why) {
        (Ok(accepted), _) => write!(out, "{accepted}"),
        (Err(_), why) => writeln!(out, "rejected: {}", why.map_or("", String::as_str)),
    })?;
    Ok(exit)
}

/// The bytes of a file of at most this length.
fn read(path: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let unread = |error| Failure::new(format!("cannot read `{path}`: {error}"));
    let about = fs::metadata(path).map_err(unread)?;
    if about.is_dir() {
        return Err(Failure::new(format!("cannot read `{path}`: it is a folder")));
    }
    if about.len() > most {
        let size = units::show_bytes(about.len());
        return Err(Failure::new(format!("the memory limit leaves no room for `{path}`, which has {size}")).no_answer());
    }
    fs::read(path).map_err(unread)
}

fn print_json(
    arguments: &args::Verify,
    result: &Result<Accepted, deltamark_verify::Failure>,
    control: &Control,
) -> Result<(), Failure> {
    let accepted = result.as_ref().ok();
    let claims = accepted.map(|accepted| accepted.claims.as_slice()).unwrap_or_default();
    let claim = |claim: &deltamark_verify::CheckedClaim| {
        serde_json::json!({
            "name": claim.name,
            "kind": claim.kind,
            "text": claim.text,
            "ends": claim.ends,
            "verdict": if claim.holds { "holds" } else { "violated" },
            "path": claim.path,
        })
    };
    let value = serde_json::json!({
        "schema": deltamark::json::SCHEMA,
        "certificate": arguments.certificate,
        "model": arguments.model,
        "accepted": accepted.is_some(),
        "why": result.as_ref().err().map(ToString::to_string),
        "states": accepted.and_then(|accepted| accepted.states),
        "steps": accepted.map(|accepted| accepted.steps),
        "properties": claims.iter().map(claim).collect::<Vec<_>>(),
    });
    print(control, |out| writeln!(out, "{value}"))
}
