//! `deltamark stats`.
//!
//! In: a model. Out: its state space in figures, on standard output.

use super::explored_as;
use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{Look, keep_inputs, print};
use crate::{render, text};
use deltamark::Check;
use deltamark::stats::Stats;
use std::time::Instant;

/// Explores everything.
pub fn run(arguments: &args::Stats, since: Instant) -> Result<Exit, Failure> {
    let say = &arguments.say;
    if let Some(graph) = &arguments.explore.graph {
        keep_inputs(graph, &[("the model", &arguments.model.model)])?;
    }
    let model = arguments.model.load(arguments.explore.memory())?;
    let (check, live) = explored_as(Check::loaded(&model), &arguments.explore, say, since);
    let result = check.stats();
    live.clear();
    let stats = result?;
    if let Some(warning) = &stats.report.warning {
        render::warning(warning);
    }
    super::check::tell_of_graph(&stats.report, say);
    show(&stats, arguments.all, arguments.explore.memory().is_some(), say)
}

/// Shows figures.
pub(super) fn show(stats: &Stats, all: bool, memory_given: bool, say: &args::Say) -> Result<Exit, Failure> {
    print(|out| {
        if say.json {
            stats.write_json(out)?;
            writeln!(out)
        } else {
            let shown = text::stats(&stats.report, &stats.survey, all, memory_given, &Look::stdout());
            out.write_all(shown.as_bytes())
        }
    })?;
    Ok(stats.report.overall().into())
}
