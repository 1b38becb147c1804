//! `deltamark stats`.
//!
//! In: a model. Out: its state space in figures, on standard output.

use super::check::refuse_drawings;
use super::{explored_as, measure, progressing};
use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{Look, companion, keep_inputs, print};
use crate::progress::Live;
use crate::units::show_bytes;
use crate::{render, signals, text};
use deltamark::control::{Control, Limits, steering};
use deltamark::graph::{Graph, GraphError};
use deltamark::space::SpaceReport;
use deltamark::stats::Stats;
use deltamark::sweep::{self, SweepReport};
use deltamark::{Check, CheckError, Loaded, Report, Strategy, json};
use std::time::Instant;

/// Explores everything.
pub fn run(arguments: &args::Stats, since: Instant) -> Result<Exit, Failure> {
    let say = &arguments.say;
    let (path, graph) = (&arguments.model.model, arguments.explore.graph.as_deref());
    let beside = companion(path);
    let mut inputs = vec![("the model", path.as_str())];
    inputs.extend(beside.as_deref().map(|path| ("the property file beside the model", path)));
    keep_inputs(&[graph], &inputs)?;
    refuse_drawings(graph)?;
    let memory = arguments.explore.memory();
    let control = steering(&arguments.explore.limits(), &signals::cancel(), since);
    let model = match arguments.model.load(&arguments.explore.limits(), memory, since) {
        Err(Failure::Stopped(report)) => return super::check::show(&report, None, memory.is_some(), say, &control),
        loaded => loaded?,
    };
    if arguments.report {
        return reported(&model, arguments, since);
    }
    if let Some(given) = arguments.explore.progress().filter(|_| arguments.explore.search() != Strategy::Sweep) {
        return measured(&model, given, arguments, since);
    }
    let check = match progressing(Check::loaded(&model), &model, &arguments.explore, since) {
        Err(Failure::Stopped(report)) => return super::check::show(&report, None, memory.is_some(), say, &control),
        check => check?,
    };
    let (check, live) = explored_as(check, &arguments.explore, say, since);
    let result = check.stats();
    live.clear();
    let stats = result?;
    if let Some(warning) = &stats.report.warning {
        render::warning(warning);
    }
    super::check::tell_of_graph(&stats.report, say);
    let exit = show(&stats, arguments.all, arguments.explore.memory().is_some(), say, &control)?;
    super::check::explain(&stats.report, arguments.explore.explain && !say.json, false, &control)?;
    super::check::graph_must_be_writable(&stats.report)?;
    Ok(exit)
}

/// Shows figures.
pub(super) fn show(
    stats: &Stats,
    all: bool,
    memory_given: bool,
    say: &args::Say,
    control: &Control,
) -> Result<Exit, Failure> {
    print(control, |out| {
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

/// The most markings of a report unless the user asks for more.
const REPORTED: u64 = 10_000_000;

/// Shows the report of a whole state space.
fn reported(model: &Loaded, arguments: &args::Stats, since: Instant) -> Result<Exit, Failure> {
    let (given, say) = (arguments.explore.limits(), &arguments.say);
    let limits = Limits { time: given.time.map(|time| time.saturating_sub(since.elapsed())), ..given };
    let control = steering(&limits, &signals::cancel(), since);
    let memory = limits.memory.map(show_bytes).unwrap_or_default();
    let refused = |error| {
        super::graph::refused(
            error,
            "`--max-states N` allows more",
            &memory,
            "so there is no report: it speaks of all states",
        )
    };
    let live = Live::new(say.quiet, say.verbose, limits.memory);
    let most = limits.states.unwrap_or(REPORTED);
    let explored = Graph::explore(model, most, limits, signals::cancel(), live.clone());
    live.clear();
    let graph = explored.map_err(refused)?;
    let report = SpaceReport::new(&graph, &control)
        .map_err(|stop| refused(GraphError::Stopped(stop, graph.states() as u64)))?
        .ok_or_else(|| Failure::new("this model names no transitions, so there is nothing to report of them"))?;
    print(&control, |out| out.write_all(report.text().as_bytes()))?;
    Ok(Exit::Good)
}

/// Evaluates a measure, without the long run.
fn measured(model: &Loaded, given: &str, arguments: &args::Stats, since: Instant) -> Result<Exit, Failure> {
    let (limits, cancel) = (arguments.explore.limits(), signals::cancel());
    let control = steering(&limits, &cancel, since);
    let system = model.system.as_ref();
    let given = match measure(given, &model.info, &control, since)? {
        Some((name, text)) => {
            let ended = |error| super::check::unread(error, &model.info, &control, since);
            Some(sweep::given(system, &name, &text, &control).map_err(ended)?)
        }
        None => None,
    };
    let found = match sweep::find(system, given, limits, cancel, since) {
        Err(CheckError::Stopped(stop)) => {
            let info = model.info.clone();
            let report = Report::before_search(info, "measuring", stop, control.limits.memory, since);
            return super::check::show(&report, None, arguments.explore.memory().is_some(), &arguments.say, &control);
        }
        found => found?,
    };
    let report = SweepReport::new(&found);
    print(&control, |out| {
        if arguments.say.json {
            json::write_measure(&model.info, &report, out)?;
            writeln!(out)
        } else {
            out.write_all(text::measure(&report, arguments.all, &Look::stdout()).as_bytes())
        }
    })?;
    Ok(Exit::Good)
}
