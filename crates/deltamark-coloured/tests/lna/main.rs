//! Helena's language: what every construct means, what is refused and how, what goes wrong at
//! run time, and models of others and of our own.

mod constructs;
mod corpus;
mod diagnostics;
mod documents;
mod expressions;
mod faults;
mod models;
mod robust;

use std::sync::Arc;

use deltamark_coloured::ColouredSystem;
use deltamark_coloured::lna::parse;
use deltamark_core::diagnostic::line_column;
use deltamark_core::{Budget, Cancel, Control, Diagnostic, Limits, Property, Silent, System, Verdict};
use deltamark_search::{Search, Task, run};

/// What an exploration finds.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// How many states.
    pub states: u64,
    /// How many steps.
    pub edges: u64,
    /// How many states without a step.
    pub deadlocks: u64,
    /// The fault that is met first, and how many steps lead to it.
    pub fault: Option<(String, usize)>,
}

/// Parameters from `N=5,K=2`.
pub fn parameters(text: &str) -> Vec<(String, String)> {
    text.split(',').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

/// A net that is right, ready to run.
pub fn system(text: &str, given: &str) -> ColouredSystem {
    let shown = |diagnostics: Vec<Diagnostic>| -> ColouredSystem {
        panic!("refused: {:#?}\n{text}", complaints_of(text, &diagnostics))
    };
    match parse(text.as_bytes(), &parameters(given)) {
        Ok(net) => {
            assert_eq!(net.validate(), Ok(()));
            ColouredSystem::new(net, text).unwrap_or_else(shown)
        }
        Err(diagnostics) => shown(diagnostics),
    }
}

/// Explores a net with the parameters given.
pub fn explore(text: &str, given: &str) -> Found {
    explore_system(&system(text, given))
}

/// Explores a system.
pub fn explore_system(system: &dyn System) -> Found {
    let budget = Arc::new(Budget::unlimited());
    let spec = "plain".parse().expect("a store");
    let store = deltamark_store::build(&spec, system, Search::Bfs.order(), budget.clone()).expect("a store");
    let limits = Limits::default();
    let control = Control { limits, cancel: Cancel::new(), listener: Arc::new(Silent), budget, resident: || None };
    let properties = [Property::fault_free()];
    let outcome = run(
        Search::Bfs,
        Task {
            system,
            store: store.as_ref(),
            properties: &properties,
            control: &control,
            explore_all: true,
            observer: None,
        },
    );
    let fault = match &outcome.properties[0].verdict {
        Verdict::Violated(trace, message) => {
            let steps = trace.as_ref().map_or(0, |trace| trace.actions.len());
            Some((message.clone().unwrap_or_default(), steps))
        }
        _ => None,
    };
    let statistics = outcome.statistics;
    Found { states: statistics.states, edges: statistics.edges, deadlocks: statistics.deadlocks, fault }
}

/// Diagnostics as "line:column message (help)".
pub fn complaints_of(text: &str, diagnostics: &[Diagnostic]) -> Vec<String> {
    let shown = |diagnostic: &Diagnostic| {
        let place = diagnostic.span.map_or(String::new(), |span| {
            assert!(span.start <= span.end && span.end <= text.len(), "{diagnostic:?}");
            let (line, column) = line_column(text, span.start);
            format!("{line}:{column} ")
        });
        let help = diagnostic.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
        format!("{place}{}{help}", diagnostic.message)
    };
    diagnostics.iter().map(shown).collect()
}

/// What is wrong with a net that is refused.
pub fn complaints(text: &str) -> Vec<String> {
    match parse(text.as_bytes(), &[]) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(diagnostics) => complaints_of(text, &diagnostics),
    }
}
