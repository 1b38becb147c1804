//! Progress measures for the sweep-line method: which one, and what became of it.
//!
//! In: a system and what the user said about progress. Out: a measure and a [`SweepReport`]. What stays true: a measure
//! that nobody gave was tried on a sample first, and what came of that is reported. The run itself is in `run/sweep.rs`.

use crate::check::CheckError;
use crate::control::control;
use crate::load::Source;
use deltamark_core::{Cancel, Control, Directions, Limits, Measure, Silent, System};
use deltamark_search::Swept;
use deltamark_search::trial::{Sample, Trial};
use std::sync::Arc;
use std::time::Instant;

/// States of the sample on which measures are tried.
pub const SAMPLE: usize = 20_000;

/// The word that asks for a measure to be found.
pub const AUTO: &str = "auto";

/// A measure, and what is known of it before the run.
pub struct FoundMeasure {
    /// The measure.
    pub measure: Box<dyn Measure>,
    /// Whether it was found, and not given.
    pub automatic: bool,
    /// What a sweep over a sample came to.
    pub trial: Trial,
}

/// What is known of a measure, and of a sweep by it.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// The measure as people read it.
    pub measure: String,
    /// Whether it was found, and not given.
    pub automatic: bool,
    /// In which direction the model's transitions lead, where that is known.
    pub directions: Option<Directions>,
    /// What a sweep over a sample came to, if one was made.
    pub trial: Option<Trial>,
    /// What the sweep counted; `None` if none was made.
    pub swept: Option<Swept>,
}

impl SweepReport {
    /// What is known before a run.
    pub fn new(found: &FoundMeasure) -> Self {
        SweepReport {
            measure: found.measure.text(),
            automatic: found.automatic,
            directions: found.measure.directions(),
            trial: Some(found.trial),
            swept: None,
        }
    }
}

/// Reads a measure that the user gave, if `control` lets it; `name` is how errors call it.
pub fn given(system: &dyn System, name: &str, text: &str, control: &Control) -> Result<Box<dyn Measure>, CheckError> {
    control.ask_for(deltamark_logic::room(text)).map_err(CheckError::Stopped)?;
    deltamark_logic::measure(text, system).map_err(|diagnostics| CheckError::Property {
        source: Source { name: name.into(), text: text.into() },
        diagnostics,
    })
}

/// The measure that was given, or the best of those that the system proposes; tried on a sample, within these limits of a run that
/// began at `since`.
pub fn find(
    system: &dyn System,
    given: Option<Box<dyn Measure>>,
    limits: Limits,
    cancel: Cancel,
    since: Instant,
) -> Result<FoundMeasure, CheckError> {
    let (control, _) = control(limits, cancel, Arc::new(Silent), since)?;
    find_within(system, given, &control)
}

pub(crate) fn find_within(
    system: &dyn System,
    given: Option<Box<dyn Measure>>,
    control: &Control,
) -> Result<FoundMeasure, CheckError> {
    let none = |message: &str| CheckError::Sweep {
        message: message.into(),
        help: "give one with `--progress EXPR`: a number that most steps of the model increase or leave as it is, \
               for instance `--progress 'sent + received'`"
            .into(),
    };
    if let Some(measure) = given {
        let sample = Sample::new(system, SAMPLE, control).map_err(CheckError::Stopped)?;
        let trial = sample.trial(system, &*measure, control).map_err(CheckError::Stopped)?;
        return Ok(FoundMeasure { measure, automatic: false, trial });
    }
    if system.progress().is_none() && system.observe().is_none() {
        return Err(none("no progress measure is known for models of this kind"));
    }
    match deltamark_search::trial::best(system, SAMPLE, control).map_err(CheckError::Stopped)? {
        Some((measure, trial)) => Ok(FoundMeasure { measure, automatic: true, trial }),
        None => Err(none("no progress measure was found for this model: nothing in it progresses")),
    }
}
