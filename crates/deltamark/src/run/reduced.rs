//! A run over a reduced system, or over the whole one, if that is the better choice.
//!
//! In: a run over a store. Out: its outcome, over the system reduced by [stubborn sets](deltamark_core::stubborn) or not. What stays
//! true: the outcome is that of one search over one system, from its beginning to its end; what is decided is decided by
//! counts, not by time, so the same run decides the same again; whoever replays a trace does so in the whole system.
//!
//! # How `auto` decides
//! ```text
//!   the whole system, up to SAMPLE states ──── ended ────────────────────────► outcome
//!          │
//!   the reduced one, up to SAMPLE states ───── ended ────────────────────────► outcome
//!          │
//!          ├── follows few of the edges of a state: the reduced one ─────────► outcome
//!          └── otherwise: the whole one ─────────────────────────────────────► outcome
//! ```
//! So small models are explored as they are, and large ones lose the time of two samples at most. A reduced system never has
//! more states than the whole one, but takes longer for each: it is worth it where many edges are left away in each state, since what is
//! saved multiplies along paths.

use super::store::OverStore;
use super::{Ran, Run};
use crate::check::CheckError;
use crate::reduction::{Reduce, Reduction};
use deltamark_core::{Control, Limits, Manner, Silent, Stop, Stubborn, System};
use std::sync::Arc;

/// The most states of a sample.
const SAMPLE: u64 = 20_000;
/// The reduced system is taken if it follows at most this part of the edges of a state.
const FEW: f64 = 0.6;

/// A run over a store that may be reduced. Nobody watches it and no graph is written.
pub(crate) struct Reduced {
    pub run: OverStore<'static>,
    pub reduce: Reduce,
}

impl Reduced {
    /// The same run once more.
    fn again(&self) -> Box<OverStore<'static>> {
        let OverStore { properties, store, search, threads, explain, explore_all, .. } = &self.run;
        Box::new(OverStore {
            properties: Arc::clone(properties),
            threads: *threads,
            explain: *explain,
            explore_all: *explore_all,
            ..OverStore::new(store.clone(), *search)
        })
    }

    /// The run over the first states.
    fn sample(&self, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let limits = Limits { states: Some(SAMPLE), ..control.limits.clone() };
        self.again().make(system, &Control { limits, ..control.clone() })
    }

    fn over(&self, layer: &Stubborn<'_>, decided_by: String, control: &Control) -> Result<Ran, CheckError> {
        let ran = self.again().make(layer, control)?;
        Ok(told(ran, layer, decided_by))
    }

    fn decide(self, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        // A run of few states needs no decision.
        if control.limits.states.is_some_and(|most| most <= SAMPLE) {
            return self.again().make(system, control);
        }
        let full = self.sample(system, control)?;
        if full.outcome.stopped_by != Some(Stop::States) {
            return Ok(full);
        }
        let made = Stubborn::new(system, &self.run.properties, Manner::default(), control);
        let Ok(layer) = made.map_err(CheckError::Stopped)? else { return self.again().make(system, control) };
        let silent = Control { listener: Arc::new(Silent), ..control.clone() };
        let few = self.sample(&layer, &silent)?;
        if few.outcome.stopped_by != Some(Stop::States) {
            return Ok(told(few, &layer, format!("auto: the model has more than {SAMPLE} states")));
        }
        let edges = |ran: &Ran| ran.outcome.statistics.edges as f64 / ran.outcome.statistics.expanded.max(1) as f64;
        let (few, all) = (edges(&few), edges(&full));
        drop(full);
        if few > FEW * all {
            drop(layer);
            return self.again().make(system, control);
        }
        self.over(&layer, format!("auto: of {all:.1} edges of a state {few:.1} are followed"), control)
    }
}

fn told(ran: Ran, layer: &Stubborn<'_>, decided_by: String) -> Ran {
    let reduction = Reduction { kind: "stubborn", decided_by, keeps_deadlocks: layer.keeps_deadlocks() };
    Ran { reduction: Some(reduction), ..ran }
}

impl Run for Reduced {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        if self.reduce == Reduce::Auto {
            return self.decide(system, control);
        }
        let made = Stubborn::new(system, &self.run.properties, Manner::default(), control);
        match made.map_err(CheckError::Stopped)? {
            Ok(layer) => self.over(&layer, "the user".into(), control),
            Err(why) => Err(CheckError::Misfit {
                message: format!("`--reduce stubborn` is not possible here: {why}"),
                help: "leave it out, or choose `--reduce off`".into(),
            }),
        }
    }
}
