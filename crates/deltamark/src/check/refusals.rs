//! What does not go together, and how formulas are answered where there is a choice.
//!
//! In: a [`Check`]. Out: a refusal by name, or the way. What stays true: nothing is explored before all of this was
//! looked at.

use super::{Check, CheckError};
use crate::automaton::too_large;
use crate::load::Source;
use crate::memory::AddressSpace;
use crate::report::RouteKind;
use crate::run::store::NUMBERING;
use crate::run::sweep;
use crate::temporal::{Question, Questions};
use deltamark_core::Control;
use deltamark_logic::kripke::is_too_large;
use deltamark_logic::local::are_local;
use deltamark_logic::temporal::Logic;
use deltamark_search::{Search, Strategy, Threads};
use deltamark_store::{CATALOGUE, StoreInfo, StoreSpec};

impl Check<'_> {
    /// Refuses what does not go with formulas of temporal logic.
    pub(super) fn refuse_with_formulas(&self) -> Result<(), CheckError> {
        if self.fair.is_some() && (self.formulas.1.is_empty() || self.walked.is_some()) {
            let why =
                if self.walked.is_some() { "and the answers are to come from a graph" } else { "and none is asked" };
            return Err(CheckError::Misfit {
                message: format!("`--fair` restricts the paths of formulas of LTL in a search, {why}"),
                help: "leave `--fair` out, or add `--ltl`".into(),
            });
        }
        if self.formulas.1.is_empty() && self.route != RouteKind::Auto {
            return Err(CheckError::Misfit {
                message: "`--route` says how formulas of temporal logic are answered, and none is asked".into(),
                help: "leave it out, or add `--ltl`".into(),
            });
        }
        if self.formulas.1.is_empty() {
            return Ok(());
        }
        if self.route == RouteKind::Fly && self.walked.is_some() {
            return Err(CheckError::Misfit {
                message: "`--route fly` explores the model, and the answers are to come from a graph".into(),
                help: "leave it out".into(),
            });
        }
        let numbered = self.store.is_auto() || self.store.name == NUMBERING;
        let on_graph = self.walked.is_none() && self.way_of_formulas()?.0 != RouteKind::Fly;
        if self.walked.is_some_and(|(graph, _)| graph.graph.meta().unfolding) && self.formulas.0.asks_initial() {
            return Err(CheckError::Misfit {
                message:
                    "the graph is an unfolding, in which a state that is met again is another one, so it does not \
                          tell which are `initial`"
                        .into(),
                help: "ask it of the model, by `deltamark check`".into(),
            });
        }
        let mixed = [
            (on_graph && !numbered, "over `plain`, whose ids number the states", "leave out `--store`"),
            (on_graph && self.search != Search::Bfs, "after a search by `bfs`", "leave out `--search`"),
            (self.sweeps, "by a search over a store", "leave out `--search`"),
            (self.reduce.is_demanded(), "with all states", "leave out `--reduce`"),
            (self.limits.depth.is_some(), "with all states", "leave out `--depth`"),
        ];
        match mixed.into_iter().find(|(given, ..)| *given) {
            None => Ok(()),
            Some((_, how, help)) => Err(CheckError::Misfit {
                message: format!("formulas of temporal logic are answered {how}"),
                help: help.into(),
            }),
        }
    }

    /// Refuses what does not go with a quotient.
    pub(super) fn refuse_with_symmetry(&self, surveyed: bool) -> Result<(), CheckError> {
        let mixed = [
            (self.sweeps, "a sweep needs a progress measure, which a quotient does not have"),
            (surveyed, "what states have in common is asked of all states"),
            (self.graph.is_some() || self.walked.is_some(), "a graph is one of all states"),
            (!self.formulas.1.is_empty(), "formulas of temporal logic are answered on the graph of all states"),
            (self.reduce.is_demanded(), "another reduction may keep only some states of an orbit"),
        ];
        match mixed.into_iter().find(|(given, _)| *given) {
            None => Ok(()),
            Some((_, why)) => Err(CheckError::Misfit {
                message: format!("a symmetry does not go with this: {why}"),
                help: "leave one of them out".into(),
            }),
        }
    }

    /// Refuses what does not go with a certificate.
    pub(super) fn refuse_with_certificate(&self) -> Result<(), CheckError> {
        let mixed = [
            (self.reduce.is_demanded(), format!("`--reduce {}` leaves states away", self.reduce)),
            (self.symmetry.is_some(), "a quotient leaves states away".into()),
            (self.walked.is_some(), "the answers come from a graph".into()),
            (self.checkpoints.is_some(), "a run that goes on from a checkpoint meets only some of them".into()),
        ];
        match mixed.into_iter().find(|(given, _)| *given) {
            None => Ok(()),
            Some((_, why)) => Err(CheckError::Misfit {
                message: format!("a certificate is one of all states of the model, and {why}"),
                help: "leave one of them out".into(),
            }),
        }
    }

    /// Refuses what no checkpoint is kept of.
    pub(super) fn refuse_with_checkpoints(&self, surveyed: bool) -> Result<(), CheckError> {
        let reduced = self.reduce.is_demanded() || self.symmetry.is_some();
        let mixed = [
            (self.sweeps || self.search != Search::Bfs, "of a breadth-first search", "leave `--search` out"),
            (reduced, "of a run that reduces nothing", "leave `--reduce` out"),
            (!self.formulas.1.is_empty(), "of questions about single states", "leave formulas of temporal logic out"),
            (surveyed, "of questions about single states", "ask by `deltamark check`"),
            (self.graph.is_some() || self.walked.is_some(), "of a run that writes no graph", "leave `--graph` out"),
        ];
        match mixed.into_iter().find(|(given, ..)| *given) {
            None => Ok(()),
            Some((_, what, help)) => Err(CheckError::Misfit {
                message: format!("checkpoints are kept {what} only"),
                help: format!("{help}, or `--checkpoint`"),
            }),
        }
    }

    /// Refuses options that do not go with each other.
    pub(super) fn refuse_mixtures(&self) -> Result<(), CheckError> {
        if self.shortest && !self.strategy().is_shortest() {
            return Err(CheckError::Misfit {
                message: format!("the search `{}` does not find shortest traces", self.strategy().name()),
                help: "search with `--search bfs`, or leave `--shortest` out".into(),
            });
        }
        if self.shortest && StoreInfo::by_name(&self.store.name).is_some_and(|info| !info.is_exact()) {
            return Err(CheckError::Misfit {
                message: format!("`{}` may miss states, and with them shortest traces", self.store.name),
                help: "choose a store that misses none, or leave `--shortest` out".into(),
            });
        }
        if self.reduce.is_demanded() && (self.sweeps || self.explore_all) {
            let what = if self.sweeps { "a sweep" } else { "a run that is to explore every state" };
            return Err(CheckError::Misfit {
                message: format!("`--reduce {}` leaves states away, which {what} does not allow", self.reduce),
                help: "leave one of them out".into(),
            });
        }
        if self.sweeps {
            return sweep::refuse(&self.store, self.limits.depth);
        }
        if self.measure.is_some() || self.recorder.is_some() {
            let what = if self.measure.is_some() { "a progress measure is" } else { "numbered states are" };
            return Err(CheckError::Sweep {
                message: format!("{what} of no use to the search `{}`", self.search.name()),
                help: "add `--search sweep`, or leave it out".into(),
            });
        }
        Ok(())
    }

    /// Whether formulas of LTL go with the other choices.
    pub(super) fn may_ask_formulas(&self) -> bool {
        let whole = !self.sweeps
            && self.checkpoints.is_none()
            && self.graph.is_none()
            && !self.explore_all
            && self.limits.depth.is_none()
            && !self.reduce.is_demanded();
        let recalls = StoreInfo::by_name(&self.store.name).is_some_and(|info| info.recalls);
        // Fair cycles are searched for by one thread.
        whole && recalls && (self.fair.is_none() || self.threads.is_none_or(|threads| threads == 1))
    }

    /// How formulas of temporal logic are answered, and why so: [`RouteKind::Auto`] first on the fly, then on the graph.
    pub(super) fn way_of_formulas(&self) -> Result<(RouteKind, String), CheckError> {
        let questions = &self.formulas.0.list;
        let decided = |kind: RouteKind, why: &str| Ok((kind, why.to_string()));
        let branching = questions.iter().any(|question| question.logic != Logic::Ltl);
        // Looked at only where nothing else decides: there may be thousands.
        let flies = || {
            let branching = questions.iter().filter(|one| one.logic != Logic::Ltl).map(|one| one.root);
            are_local(&self.formulas.0.pool, branching)
        };
        if self.walked.is_some() || questions.is_empty() {
            return decided(RouteKind::Graph, "there is a graph");
        }
        let needs_graph = [
            (branching && self.fair.is_some(), "a formula of CTL is answered for all paths"),
            (branching && self.route == RouteKind::Auto, "a formula of CTL is answered on the graph of all states"),
            (
                branching && self.ordered && self.search == Search::Bfs,
                "a formula of CTL is evaluated depth-first while states are found, and `bfs` explores the graph",
            ),
            (
                branching && self.threads.is_some_and(|threads| threads > 1),
                "a formula of CTL is evaluated by one thread while states are found, and several share the graph",
            ),
            (
                branching && self.route == RouteKind::Fly && !flies(),
                "a formula of CTL* that needs an automaton is answered on the graph of all states",
            ),
            (self.graph.is_some(), "the graph is written anyway"),
            (self.explore_all, "every state is explored anyway"),
        ];
        let needs_graph = needs_graph.into_iter().find(|(is, _)| *is).map(|(_, why)| why);
        let needs_product = [
            (self.fair.is_some(), "fairness is asked for"),
            (questions.iter().any(|question| question.automaton.is_some()), "a property process is an automaton"),
            (
                !(self.store.is_auto() || self.store.name == NUMBERING),
                "the store does not number states in the order of search",
            ),
            (self.search != Search::Bfs, "the search was chosen"),
        ];
        let needs_product = needs_product.into_iter().find(|(is, _)| *is).map(|(_, why)| why);
        if let (true, Some(why)) = (self.fair.is_some(), needs_graph) {
            return Err(CheckError::Misfit {
                message: format!(
                    "`--fair` restricts the paths of formulas of LTL, which are then answered on the fly; {why}"
                ),
                help: "ask for one of them in a run of its own".into(),
            });
        }
        match (self.route, needs_graph, needs_product) {
            (RouteKind::Graph, None, Some(why))
                if self.fair.is_some() || questions.iter().any(|question| question.automaton.is_some()) =>
            {
                Err(CheckError::Misfit {
                    message: format!("`--route graph` is not possible: {why}"),
                    help: "leave it out".into(),
                })
            }
            (RouteKind::Fly, Some(why), _) => Err(CheckError::Misfit {
                message: format!("`--route fly` is not possible: {why}"),
                help: "leave it out".into(),
            }),
            (RouteKind::Fly | RouteKind::Graph, ..) => decided(self.route, "the user chose it"),
            (RouteKind::Auto, Some(why), _) => decided(RouteKind::Graph, why),
            (RouteKind::Auto, None, Some(why)) => decided(RouteKind::Fly, why),
            (RouteKind::Auto, None, None) if self.property_count() == 1 => {
                decided(RouteKind::Auto, "one formula of LTL is asked, and a few states decide it")
            }
            (RouteKind::Auto, None, None) => decided(RouteKind::Graph, "several properties share it"),
        }
    }
}

/// How many threads search, of those that were asked for or of those the machine runs at once; and
/// why they are not more, if store, search or the address space are the reason.
pub(super) fn thread_count(asked: Option<usize>, store: &StoreSpec, strategy: Strategy) -> (usize, Option<String>) {
    if let Some(reason) = one_thread_only(store, strategy) {
        return (1, Some(reason));
    }
    let wanted = asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    match AddressSpace::of_this_process() {
        Some(space) if space.threads() < wanted => {
            let count = space.threads();
            (count, Some(format!("searching with {count} of {wanted} threads: the address space has no room for more")))
        }
        _ => (wanted, None),
    }
}

/// What runs with one thread only, and what to choose instead.
fn one_thread_only(store: &StoreSpec, strategy: Strategy) -> Option<String> {
    if !strategy.shares_work() {
        let name = strategy.name();
        return Some(format!("the search `{name}` runs with one thread; several can share `--search bfs`"));
    }
    let info = StoreInfo::by_name(&store.name).filter(|info| !info.threads)?;
    let others: Vec<&str> = CATALOGUE.iter().filter(|info| info.threads).map(|info| info.name).collect();
    let (last, others) = others.split_last().expect("some store runs with several threads");
    let others = others.join(", ");
    Some(format!("the store `{}` runs with one thread; several can share {others} and {last}", info.name))
}

/// The threads to search with; an error, if several were asked for and cannot be.
pub(crate) fn threads(
    asked: Option<usize>,
    store: &StoreSpec,
    strategy: impl Into<Strategy>,
) -> Result<Threads, CheckError> {
    let strategy = strategy.into();
    match one_thread_only(store, strategy) {
        Some(reason) if asked.is_some_and(|asked| asked > 1) => Err(CheckError::Threads(reason)),
        _ => Ok(Threads::new(thread_count(asked, store, strategy).0)),
    }
}

/// Refuses formulas that are too large to be answered, before anything is explored for them.
pub(super) fn refuse_large(
    questions: &Questions,
    written: &[(usize, String)],
    control: &Control,
) -> Result<(), CheckError> {
    for (place, origin) in written {
        let Question { text, root, .. } = &questions.list[*place];
        // What is not known now, the run will find out.
        if is_too_large(&questions.pool, *root, control) == Ok(true) {
            let source = Source { name: origin.clone(), text: text.clone() };
            return Err(CheckError::Property { source, diagnostics: vec![too_large(text)] });
        }
    }
    Ok(())
}
