//! `deltamark stats`.
//!
//! In: a model. Out: its state space in figures, on standard output.

use super::cancel_on_interrupt;
use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{Look, print};
use crate::progress::Live;
use crate::text;
use deltamark::Check;
use std::time::Instant;

/// Explores everything.
pub fn run(arguments: &args::Stats, since: Instant) -> Result<Exit, Failure> {
    let say = &arguments.say;
    let model = arguments.model.load(arguments.explore.memory())?;
    let limits = arguments.explore.limits();
    let live = Live::new(say.quiet, say.verbose, limits.memory);
    let result = Check::loaded(&model)
        .store(arguments.explore.store.clone())
        .search(arguments.explore.search())
        .limits(limits)
        .cancel(cancel_on_interrupt())
        .listener(live.clone())
        .since(since)
        .stats();
    live.clear();
    let stats = result?;
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
