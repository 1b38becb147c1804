//! A run over a reduced system, or over the whole one, if that is the better choice.
//!
//! In: a run over a store. Out: its outcome, over the system reduced by [stubborn sets](deltamark_core::stubborn), over a
//! [smaller net](deltamark_nets::reduce), over both, or over the whole system. What stays
//! true: the outcome is that of one search over one system, from its beginning to its end; what is decided is decided by
//! counts, not by time, so the same run decides the same again; whoever replays a trace does so in the whole system.
//!
//! How `auto` decides is in `deciding.rs`.

mod deciding;

use super::store::OverStore;
use super::{Ran, Run};
use crate::check::CheckError;
use crate::reduction::{Reduce, Reduction, STUBBORN};
use crate::run::smaller::Smaller;
use deltamark_core::{Control, Manner, Property, Stubborn, System};
use deltamark_search::Search;
use deltamark_store::StoreSpec;
use std::sync::Arc;

/// The most entries of lists that a structural reduction looks at where somebody has asked for it.
const DEMANDED_WORK: u64 = 200_000_000;

/// A run over a store that may be reduced. Nobody watches it and no graph is written.
pub(crate) struct Reduced {
    properties: Arc<[Property]>,
    store: StoreSpec,
    search: Search,
    threads: Option<usize>,
    explain: bool,
    explore_all: bool,
    /// Whether what is explored in the end may be probed.
    probes: bool,
    reduce: Reduce,
    /// Whether traces must be shortest.
    shortest: bool,
}

/// A system that may take the place of the whole one.
#[derive(Clone, Copy)]
struct Candidate<'s> {
    smaller: Option<&'s Smaller<'s>>,
    stubborn: bool,
}

impl Reduced {
    /// This run, which nobody watches, reduced as is said.
    pub fn new(run: OverStore<'static>, reduce: Reduce, shortest: bool) -> Self {
        let OverStore { properties, store, search, threads, explain, explore_all, probes, .. } = run;
        Reduced { properties, store, search, threads, explain, explore_all, probes, reduce, shortest }
    }

    /// The run once more, or a sample of it.
    fn again(&self, sample: bool) -> Box<OverStore<'static>> {
        Box::new(OverStore {
            properties: Arc::clone(&self.properties),
            threads: self.threads,
            explain: self.explain,
            explore_all: self.explore_all,
            probes: self.probes && !sample,
            sample,
            ..OverStore::new(self.store.clone(), self.search)
        })
    }

    /// A run over a candidate; or, as a sentence without a full stop, why there is none.
    fn over(
        &self,
        candidate: &Candidate<'_>,
        whole: &dyn System,
        decided_by: String,
        control: &Control,
    ) -> Result<Result<Ran, String>, CheckError> {
        let base: &dyn System = candidate.smaller.map_or(whole, |smaller| &smaller.system);
        let (mut ran, mut keeps_deadlocks) = (None, true);
        if candidate.stubborn {
            let made = Stubborn::new(base, &self.properties, self.manner(), control);
            let layer = match made.map_err(CheckError::Stopped)? {
                Ok(layer) => layer,
                Err(why) => return Ok(Err(why)),
            };
            keeps_deadlocks = layer.keeps_deadlocks();
            ran = Some(self.again(false).make(&layer, control)?);
        }
        let ran = match ran {
            Some(ran) => ran,
            None => self.again(false).make(base, control)?,
        };
        self.reported(ran, candidate, whole, keeps_deadlocks, decided_by, control).map(Ok)
    }

    /// How stubborn sets are found.
    fn manner(&self) -> Manner {
        match self.reduce {
            Reduce::Auto => Manner { pairs: deciding::PAIRS, ..Manner::default() },
            _ => Manner::default(),
        }
    }

    /// A run over a candidate as one of the whole system.
    fn reported(
        &self,
        mut ran: Ran,
        candidate: &Candidate<'_>,
        whole: &dyn System,
        keeps_deadlocks: bool,
        decided_by: String,
        control: &Control,
    ) -> Result<Ran, CheckError> {
        let mut reduction = Reduction {
            kind: STUBBORN,
            rules: Vec::new(),
            places: None,
            transitions: None,
            decides: false,
            decided_by,
            keeps_deadlocks: keeps_deadlocks && candidate.smaller.is_none(),
            keeps_distances: candidate.smaller.is_none(),
        };
        if let Some(smaller) = candidate.smaller {
            smaller.tell(&mut ran.outcome, whole, &self.properties, control)?;
            smaller.describe(&mut reduction);
            if reduction.decides {
                reduction.decided_by = "the reduction alone".into();
            }
            reduction.kind = if candidate.stubborn { "all" } else { "structure" };
        }
        if candidate.stubborn {
            reduction.rules.push((STUBBORN, 1));
        }
        Ok(Ran { reduction: Some(reduction), ..ran })
    }

    /// The smaller net, if there is one that keeps what is asked; or, as a sentence without a full stop, why there is none.
    fn smaller<'s>(
        &self,
        system: &'s dyn System,
        work: u64,
        control: &Control,
    ) -> Result<Result<Smaller<'s>, String>, CheckError> {
        if self.shortest {
            return Ok(Err("a smaller net does not keep the lengths of shortest traces".into()));
        }
        if control.limits.depth.is_some() {
            return Ok(Err("a smaller net does not keep distances, which `--depth` limits".into()));
        }
        Smaller::of(system, &self.properties, work, control).map_err(CheckError::Stopped)
    }
}

impl Run for Reduced {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        if self.reduce == Reduce::Auto {
            return self.decide(system, control);
        }
        let refused = |why: String| CheckError::Misfit {
            message: format!("`--reduce {}` is not possible here: {why}", self.reduce),
            help: "leave it out, or choose `--reduce off`".into(),
        };
        let by = || "the user".to_string();
        let stubborn = Candidate { smaller: None, stubborn: true };
        if self.reduce == Reduce::Stubborn {
            return self.over(&stubborn, system, by(), control)?.map_err(refused);
        }
        let smaller = self.smaller(system, DEMANDED_WORK, control)?;
        let structure = |stubborn| smaller.as_ref().map(|smaller| Candidate { smaller: Some(smaller), stubborn });
        if self.reduce == Reduce::Structure {
            return match structure(false) {
                Ok(candidate) => self.over(&candidate, system, by(), control)?.map_err(refused),
                Err(why) => Err(refused(why.clone())),
            };
        }
        let mut why = String::new();
        for candidate in [structure(true).ok(), Some(stubborn), structure(false).ok()].into_iter().flatten() {
            match self.over(&candidate, system, by(), control)? {
                Ok(ran) => return Ok(ran),
                Err(refusal) => why = refusal,
            }
        }
        Err(refused(why))
    }
}
