//! Helena's language: the semantics of every construct, what is refused and how, faults at run time, and
//! models of others and of our own.

mod constructs;
mod corpus;
mod diagnostics;
mod documents;
#[path = "../common/explore.rs"]
mod explored;
mod expressions;
mod faults;
mod functions;
mod guards;
mod models;
mod names;
mod robust;

use deltamark_coloured::lna::parse;
use deltamark_coloured::{ColouredSystem, UnfoldLimits, UnfoldedSystem};
use deltamark_core::Diagnostic;
use deltamark_core::diagnostic::line_column;
pub use explored::{Found, explore_system};

/// Parameters from `N=5,K=2`.
pub fn parameters(text: &str) -> Vec<(String, String)> {
    text.split(',').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

/// A valid net, ready to run.
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
    explore_system(&system(text, given), "plain")
}

/// Explores a valid net unfolded, if it can be.
pub fn unfolded(text: &str) -> Option<Found> {
    let net = parse(text.as_bytes(), &[]).ok()?;
    let system = UnfoldedSystem::new(net, text, UnfoldLimits::DEMANDED).ok()?;
    Some(explore_system(&system, "plain"))
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

/// The diagnostics of a net that is refused.
pub fn complaints(text: &str) -> Vec<String> {
    match parse(text.as_bytes(), &[]) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(diagnostics) => complaints_of(text, &diagnostics),
    }
}

/// The diagnostics of a net that is refused, by its text or once its initial marking is computed.
pub fn refused(text: &str) -> Vec<String> {
    let net = parse(text.as_bytes(), &[]);
    match net.and_then(|net| ColouredSystem::new(net, text)) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(diagnostics) => complaints_of(text, &diagnostics),
    }
}
