//! A run over the quotient of a system by a symmetry.
//!
//! In: a run over a store, and a symmetry of the system, or a net, whose automorphisms are found. Out: the outcome over the [quotient](deltamark_core::quotient), its traces
//! lifted. What stays true: every trace is a path of the system itself, and the state it ends in was seen to decide its property
//! there; where that fails, what is called a symmetry is none, and the run ends with an error instead of an answer.

use super::smaller::decides;
use super::store::OverStore;
use super::{Ran, Run};
use crate::check::CheckError;
use crate::reduction::{Reduction, SYMMETRY};
use deltamark_core::{Control, Quotient, Symmetry, System, Verdict, quotient};
use deltamark_nets::NetSystem;
use deltamark_nets::symmetry::NetSymmetry;

/// The states that are compared with their representatives before the run.
const PROBED: usize = 500;
/// How many arcs may be looked at to find the automorphisms of a net.
const WORK: u64 = 200_000_000;

/// A run over a store, over the quotient by a symmetry.
pub(crate) struct OverQuotient<'r, 's> {
    pub run: OverStore<'r>,
    pub symmetry: &'s dyn Symmetry,
    /// Who wanted it, or why: a clause.
    pub decided_by: String,
    /// What is known of the symmetry: what report calls rules, and how often each.
    pub rules: Vec<(&'static str, u64)>,
}

impl Run for OverQuotient<'_, '_> {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let properties = self.run.properties.clone();
        quotient::probe(system, self.symmetry, &properties, PROBED, control)
            .map_err(CheckError::Stopped)?
            .map_err(|wrong| CheckError::Asymmetric(wrong.0))?;
        let layer = Quotient::new(system, self.symmetry);
        let made = Box::new(self.run).make(&layer, control);
        if let Some(wrong) = layer.trouble() {
            return Err(CheckError::Asymmetric(wrong.into()));
        }
        let mut ran = made?;
        for (found, property) in ran.outcome.properties.iter_mut().zip(properties.iter()) {
            let (Verdict::Holds(trace) | Verdict::Violated(trace, _)) = &mut found.verdict else { continue };
            let Some(path) = trace else { continue };
            match layer.lift(path, control) {
                Ok(lifted) => *path = lifted.map_err(|wrong| CheckError::Asymmetric(wrong.0))?,
                Err(stop) => {
                    *trace = None;
                    found.untraced = Some(stop);
                    continue;
                }
            }
            match decides(system, property, path, control) {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => {
                    let what = "is not the same in a state and in its representative";
                    return Err(CheckError::Asymmetric(format!("`{}` {what}", property.name)));
                }
                Ok(Err(stop)) => {
                    *trace = None;
                    found.untraced = Some(stop);
                }
                Err(error) => return Err(CheckError::Replay { property: property.name.clone(), error }),
            }
        }
        let reduction = Reduction {
            kind: SYMMETRY,
            rules: self.rules,
            places: None,
            transitions: None,
            decides: false,
            decided_by: self.decided_by,
            keeps_deadlocks: false,
            keeps_distances: true,
        };
        Ok(Ran { reduction: Some(reduction), ..ran })
    }
}

/// A run over a store, over the quotient of a net by its automorphisms.
pub(crate) struct OverAutomorphisms<'r> {
    pub run: OverStore<'r>,
}

impl Run for OverAutomorphisms<'_> {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let refused = |why: String| CheckError::Misfit {
            message: format!("`--reduce symmetry` is not possible here: {why}"),
            help: "leave it out, or choose `--reduce off`".into(),
        };
        let net = system.as_any().and_then(|any| any.downcast_ref::<NetSystem>());
        // A layer over a net hands on the net's queries, and may have other steps.
        let Some(net) = net.filter(|net| std::ptr::addr_eq(system, std::ptr::from_ref(*net))) else {
            return Err(refused("this model is no P/T net".into()));
        };
        let found = NetSymmetry::new(net, &self.run.properties, WORK, control).map_err(CheckError::Stopped)?;
        let symmetry = found.map_err(refused)?;
        let rules = vec![("automorphisms", symmetry.automorphisms() as u64)];
        let run = OverQuotient { run: self.run, symmetry: &symmetry, decided_by: "the user".into(), rules };
        Box::new(run).make(system, control)
    }
}
