//! Shared by the tests: a naive explorer, and helpers for short tables.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::HashSet;
use std::path::PathBuf;

use deltamark_core::Diagnostic;
use deltamark_core::diagnostic::line_column;
use deltamark_nets::{Net, Transition};

/// The size of a state space.
#[derive(Debug, PartialEq, Eq)]
pub struct Counts {
    pub states: usize,
    pub edges: usize,
    pub deadlocks: usize,
}

/// Explores a net naively.
pub fn explore(net: &Net) -> Counts {
    let initial: Vec<u32> = net.places.iter().map(|place| place.initial).collect();
    let (mut seen, mut waiting) = (HashSet::from([initial.clone()]), vec![initial]);
    let mut counts = Counts { states: 0, edges: 0, deadlocks: 0 };
    while let Some(marking) = waiting.pop() {
        let enabled = net.transitions.iter().filter(|transition| fire(transition, &marking).is_some());
        let highest = enabled.map(|transition| transition.priority).max();
        let ranked = net.transitions.iter().filter(|transition| Some(transition.priority) == highest);
        let successors: Vec<_> = ranked.filter_map(|transition| fire(transition, &marking)).collect();
        counts.states += 1;
        counts.edges += successors.len();
        counts.deadlocks += usize::from(successors.is_empty());
        waiting.extend(successors.into_iter().filter(|successor| seen.insert(successor.clone())));
    }
    counts
}

fn fire(transition: &Transition, marking: &[u32]) -> Option<Vec<u32>> {
    let holds = |place: u32| marking[place as usize];
    let enabled = transition.inputs.iter().chain(&transition.reads).all(|arc| holds(arc.place) >= arc.weight)
        && transition.inhibitors.iter().all(|arc| holds(arc.place) < arc.weight);
    let mut successor = marking.to_vec();
    enabled.then(|| {
        transition.inputs.iter().for_each(|arc| successor[arc.place as usize] -= arc.weight);
        transition.outputs.iter().for_each(|arc| successor[arc.place as usize] += arc.weight);
        successor
    })
}

/// A diagnostic as "line:column message".
pub fn shown(text: &str, diagnostic: &Diagnostic) -> String {
    let span = diagnostic.span.expect("it has a place");
    assert!(span.start <= span.end && span.end <= text.len(), "{span:?} is outside of the text: {diagnostic:?}");
    assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{diagnostic:?}");
    let (line, column) = line_column(text, span.start);
    format!("{line}:{column} {}", diagnostic.message)
}

/// Every diagnostic as "line:column message".
pub fn complaints(text: &str, result: Result<Net, Vec<Diagnostic>>) -> Vec<String> {
    match result {
        Ok(net) => panic!("accepted as {net:?}:\n{text}"),
        Err(diagnostics) => diagnostics.iter().map(|diagnostic| shown(text, diagnostic)).collect(),
    }
}

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of models with known answers, if it is there.
pub fn shared_models() -> Option<PathBuf> {
    let folder = std::env::var_os("DELTAMARK_MODELS").map_or_else(|| root().join("../shared/models"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    // The test runner names a thread after its test.
    let test = std::thread::current().name().unwrap_or("a test of nets").to_string();
    deltamark_testkit::corpus::skipped(&test, "no models from outside (DELTAMARK_MODELS)");
    None
}
