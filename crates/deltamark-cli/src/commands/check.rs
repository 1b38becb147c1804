//! `deltamark check`.
//!
//! In: a model and properties. Out: the answers, on standard output.

use super::cancel_on_interrupt;
use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{Look, print, write_file};
use crate::progress::Live;
use crate::{render, text};
use deltamark::load::{self, LARGEST_FILE, Source};
use deltamark::{Check, LoadError};
use std::time::Instant;

/// Checks.
pub fn run(arguments: &args::Check, since: Instant) -> Result<Exit, Failure> {
    refuse_temporal(arguments)?;
    let say = &arguments.say;
    let model = arguments.model.load(arguments.explore.memory())?;
    let check = with_properties(Check::loaded(&model), arguments)?;
    let limits = arguments.explore.limits();
    let live = Live::new(say.quiet, say.verbose, limits.memory);
    let result = check
        .store(arguments.explore.store.clone())
        .search(arguments.explore.search())
        .limits(limits)
        .cancel(cancel_on_interrupt())
        .listener(live.clone())
        .since(since)
        .run();
    live.clear();
    let report = result?;
    if let Some(path) = &arguments.trace {
        write_file(path, |out| report.write_traces(out))?;
        if report.answers.iter().all(|answer| answer.story.is_none()) {
            render::note(&format!("no answer comes with a trace, so `{path}` holds none"));
        }
    }
    let look = Look::stdout();
    print(|out| {
        if say.json {
            report.write_json(out)?;
            writeln!(out)
        } else if say.quiet {
            report.answers.iter().try_for_each(|answer| out.write_all(text::answer(answer, &look).as_bytes()))
        } else {
            out.write_all(text::report(&report, arguments.explore.memory().is_some(), &look).as_bytes())
        }
    })?;
    Ok(report.overall().into())
}

fn refuse_temporal(arguments: &args::Check) -> Result<(), Failure> {
    for (option, given) in [("--ltl", &arguments.ltl), ("--ctl", &arguments.ctl)] {
        if !given.is_empty() {
            let message = format!("this version checks no temporal formulas, so `{option}` cannot be used");
            return Err(Failure::new(message)
                .help("what concerns single states can be asked with `--invariant`, `--reach` and `--deadlock`"));
        }
    }
    Ok(())
}

/// Adds the properties of the command line; what is wrong with any of them is told.
fn with_properties<'a>(mut check: Check<'a>, arguments: &args::Check) -> Result<Check<'a>, Failure> {
    if arguments.deadlock {
        check = check.deadlock_free();
    }
    for text in &arguments.invariant {
        check = check.invariant(text)?;
    }
    for text in &arguments.reach {
        check = check.reachable(text)?;
    }
    if let Some(path) = &arguments.properties {
        let bytes = load::read(path, LARGEST_FILE)?;
        let source = Source::new(path.as_str(), &bytes);
        if source.text.len() < bytes.len() {
            return Err(Failure::new(format!("`{path}` is not a text in UTF-8")));
        }
        let before = check.property_count();
        check = check.properties(path, &source.text)?;
        if check.property_count() == before {
            return Err(LoadError::Malformed {
                source,
                diagnostics: vec![deltamark::core::Diagnostic::new("this file holds no property")],
            }
            .into());
        }
    }
    Ok(check)
}
