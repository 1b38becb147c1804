//! `deltamark stats`.
//!
//! In: a model. Out: its state space in figures, on standard output.

use super::explored_as;
use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{Look, print};
use crate::{render, text};
use deltamark::Check;
use std::time::Instant;

/// Explores everything.
pub fn run(arguments: &args::Stats, since: Instant) -> Result<Exit, Failure> {
    let say = &arguments.say;
    let model = arguments.model.load(arguments.explore.memory())?;
    let (check, live) = explored_as(Check::loaded(&model), &arguments.explore, say, since);
    let result = check.stats();
    live.clear();
    let stats = result?;
    if let Some(warning) = &stats.report.warning {
        render::warning(warning);
    }
    print(|out| {
        if say.json {
            stats.write_json(out)?;
            writeln!(out)
        } else {
            let given = arguments.explore.memory().is_some();
            let shown = text::stats(&stats.report, &stats.survey, arguments.all, given, &Look::stdout());
            out.write_all(shown.as_bytes())
        }
    })?;
    Ok(stats.report.overall().into())
}
