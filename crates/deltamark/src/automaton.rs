//! Formulas of linear temporal logic as automata, to look at.
//!
//! In: a formula over any names; each maximal part without temporal and Boolean operators is an atom. Out: the automaton
//! that accepts exactly the words on which it is true, as text.

use crate::check::CheckError;
use crate::load::Source;
use deltamark_core::{Control, Diagnostic, Span};
use deltamark_logic::automaton::{Automaton, NoAutomaton};
use deltamark_logic::temporal::path_formula;

/// How an automaton is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawing {
    /// For people.
    Text,
    /// The Hanoi Omega-Automata format.
    Hoa,
    /// For Graphviz.
    Dot,
}

/// The diagnostic for a formula that takes too large an automaton.
pub(crate) fn too_large(formula: &str) -> Diagnostic {
    let start = formula.len() - formula.trim_start().len();
    let message = "the formula is too large for an automaton: it has more than 64 atoms, or 64 untils, or too many \
                   ways to go on from a state, or nests too many `iff`";
    Diagnostic::at(Span::new(start, formula.trim_end().len()), message)
        .help("split it: the members of a conjunction can be asked one by one")
}

/// The automaton of a formula, as text.
pub fn automaton(formula: &str, drawing: Drawing, control: &Control) -> Result<String, CheckError> {
    let source = || Source { name: "the formula".into(), text: formula.into() };
    let wrong = |diagnostics| CheckError::Property { source: source(), diagnostics };
    control.ask_for(deltamark_logic::room(formula)).map_err(CheckError::Stopped)?;
    let (mut pool, root, atoms) = path_formula(formula).map_err(wrong)?;
    let automaton = Automaton::new(&mut pool, root, atoms.len() as u32, control).map_err(|error| match error {
        NoAutomaton::Stopped(stop) => CheckError::Stopped(stop),
        NoAutomaton::TooLarge => wrong(vec![too_large(formula)]),
    })?;
    let name = formula.trim();
    // A line for each transition, with its atoms and its sets.
    let line = 64 + atoms.iter().map(|atom| atom.len() + 8).sum::<usize>() + 8 * automaton.sets as usize;
    control.ask_for((line * automaton.transitions()) as u64).map_err(CheckError::Stopped)?;
    Ok(match drawing {
        Drawing::Text => automaton.drawing(&atoms),
        Drawing::Hoa => automaton.to_hoa(name, &atoms),
        Drawing::Dot => automaton.to_dot(name, &atoms),
    })
}
