//! A run by the sweep-line method.
//!
//! In: properties, and a measure if the user gave one. Out: the outcome of the sweep, and what is to be
//! said of it. What stays true: a measure that nobody gave was tried on a sample first.

use super::{GraphTarget, Ran, Run, growth};
use crate::check::CheckError;
use crate::sweep::{SweepReport, find_within};
use deltamark_core::{Batch, Control, Measure, Property, Recorder, Remember, System, Window};
use deltamark_search::{Observer, Strategy, SweepTask, run_sweep};
use deltamark_store::StoreSpec;
use deltamark_store::sweep::layers::Layers;

/// A sweep.
pub(crate) struct BySweep<'r> {
    pub properties: Vec<Property>,
    pub measure: Option<Box<dyn Measure>>,
    /// Whether it goes on when every property has its answer.
    pub explore_all: bool,
    pub observer: Option<&'r mut dyn Observer>,
    pub recorder: Option<&'r mut dyn Recorder>,
    /// Where the graph goes.
    pub graph: Option<GraphTarget>,
}

/// Refuses what a sweep cannot do.
pub(crate) fn refuse(store: &StoreSpec, depth: Option<u64>) -> Result<(), CheckError> {
    let wrong = |message: String, help: &str| Err(CheckError::Sweep { message, help: help.into() });
    if !store.is_auto() {
        return wrong(
            format!(
                "the search `sweep` keeps the states at hand in full, so the store `{}` cannot be used with it",
                store.name
            ),
            "leave `--store` out, or choose `--search bfs`",
        );
    }
    if depth.is_some() {
        return wrong(
            "the search `sweep` knows no distances, so the depth cannot be limited".into(),
            "leave `--depth` out, or choose `--search bfs`",
        );
    }
    Ok(())
}

impl Run for BySweep<'_> {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let BySweep { properties, measure, explore_all, observer, recorder, graph } = *self;
        // What tables hold now, the process holds beside its budget.
        let _ = control.budget.tables(system.table_bytes());
        let mut log = graph.as_ref().map(|graph| graph.log(control)).transpose()?;
        if log.is_some() && recorder.is_some() {
            return Err(CheckError::Graph("a graph is recorded once".into()));
        }
        let recorder = match log.as_mut() {
            Some(log) => Some(log as &mut dyn Recorder),
            None => recorder.map(|recorder| recorder as &mut dyn Recorder),
        };
        // A measure that was given needs no trial.
        let (measure, mut report) = match measure {
            Some(measure) => {
                let (text, directions) = (measure.text(), measure.directions());
                (measure, SweepReport { measure: text, automatic: false, directions, trial: None, swept: None })
            }
            None => {
                let found = find_within(system, None, control)?;
                let report = SweepReport::new(&found);
                (found.measure, report)
            }
        };
        let window = |remember: Remember| Box::new(Layers::new(system, &control.budget, remember)) as Box<dyn Window>;
        let (outcome, swept) = run_sweep(SweepTask {
            system,
            window: &window,
            measure: &*measure,
            properties: &properties,
            control,
            explore_all,
            observer: observer.map(|observer| observer as &mut dyn Observer),
            recorder,
        });
        if let Some(why) = &swept.unrecorded {
            return Err(CheckError::Sweep { message: why.clone(), help: String::new() });
        }
        let graph = match (graph, log) {
            (Some(graph), Some(mut log)) => {
                if outcome.complete() {
                    log.complete(first_numbers(system));
                }
                Some(graph.finish(log, system, false, swept.unfolding))
            }
            _ => None,
        };
        report.swept = Some(swept);
        Ok(Ran {
            growth: growth(system, outcome.stopped_by),
            outcome,
            // What it holds, it holds in full.
            store: StoreSpec::named("plain"),
            choice: None,
            search: Strategy::Sweep,
            sweep: Some(report),
            reduction: None,
            graph,
            route: None,
        })
    }
}

/// The numbers of the initial states where they are given as states are found: equal ones have one.
fn first_numbers(system: &dyn System) -> Vec<u64> {
    let mut batch = Batch::new(system.width());
    while system.initial(&mut system.scratch(), &mut batch).is_err() {
        drop(system.widen());
        batch.reset(system.width());
    }
    let mut firsts: Vec<usize> = Vec::new();
    let number = |index: usize| {
        let known = firsts.iter().position(|&first| batch.target(first) == batch.target(index));
        known.unwrap_or_else(|| {
            firsts.push(index);
            firsts.len() - 1
        }) as u64
    };
    (0..batch.len()).map(number).collect()
}
