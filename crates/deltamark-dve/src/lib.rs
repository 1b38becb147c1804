//! DVE, the language of the BEEM models.

mod arithmetic;
mod ast;
mod check;
mod choice;
mod code;
mod dump;
pub mod engine;
pub mod interpreter;
pub mod ir;
mod layout;
mod lower;
pub mod macros;
mod names;
#[cfg(feature = "native")]
pub mod native;
mod parse;
mod pool;
mod range;
pub mod reference;
mod system;
mod token;
mod values;

pub use choice::EngineChoice;
pub use dump::Dump;
pub use system::DveSystem;

use deltamark_core::{Diagnostic, Span};
use ir::{Place, Program};

/// No more findings than this are reported at once: nobody reads on.
const MAX_FINDINGS: usize = 20;

/// The longest text that is read.
pub const MAX_LENGTH: usize = 1 << 26;

/// Reads, checks and compiles a model.
pub fn parse(bytes: &[u8]) -> Result<Program, Vec<Diagnostic>> {
    let text = deltamark_core::text::utf8(bytes)?;
    if text.len() > MAX_LENGTH {
        return Err(vec![Diagnostic::at(Span::at(0), format!("the model is longer than {MAX_LENGTH} bytes"))]);
    }
    let (model, findings) = parse::parse(text);
    if !findings.is_empty() {
        return Err(findings);
    }
    let (mut program, pool) = check::check(text, &model)?;
    program.exprs = pool.into_exprs();
    let codes = range::narrow(&mut program);
    layout::layout(&mut program, &codes);
    Ok(program)
}

/// Expands macros with these parameters, then reads, checks and compiles the model. All places, in diagnostics and
/// in the program, are those of the text with macros.
pub fn parse_macros(bytes: &[u8], parameters: &[(String, String)]) -> Result<Program, Vec<Diagnostic>> {
    let expanded = macros::expand(bytes, parameters)?;
    let mut program = parse(expanded.text.as_bytes()).map_err(|findings| expanded.explain(findings))?;
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    let replace = |place: &mut Place| {
        place.span = expanded.origin(place.span);
        place.line = ends.partition_point(|&end| end < place.span.start) as u32 + 1;
    };
    let Program { processes, transitions, monitor, .. } = &mut program;
    let monitored = monitor.iter_mut().flat_map(|monitor| &mut monitor.transitions);
    transitions.iter_mut().chain(monitored).for_each(|transition| replace(&mut transition.place));
    let asserts = processes.iter_mut().flat_map(|process| &mut process.locations).flat_map(|one| &mut one.asserts);
    asserts.for_each(|(_, place)| replace(place));
    Ok(program)
}
