//! DVE, the language of DIVINE and of the BEEM models.
//!
//! In: the text of a model. Out: a [`Program`], and with it a [`DveSystem`]; or diagnostics, several at once, each
//! with its span. What stays true: no text makes this crate panic, overflow the stack or take memory out of
//! proportion.
//!
//! ```text
//! text ─token─▶ tokens ─parse─▶ ast ─check, lower─▶ Program ─range─▶ narrower, simpler ─layout─▶ fields
//!                                                                                                  │
//!                              names: Describe, Observe ◀── DveSystem ◀── Engine: interpreter ◀────┘
//! ```
//!
//! | file | what |
//! |---|---|
//! | `token`, `ast`, `parse`, `expression` | lexer, syntax tree, parser |
//! | `check`, `lower` | name resolution; lowering of expressions and transitions |
//! | `pool`, `arithmetic` | hash-consed expressions, folded; what operators do |
//! | [`ir`] | the intermediate representation, with its invariants |
//! | `range`, `moment`, `values`, `simplify` | abstract interpretation: which numbers each cell can hold, and what follows |
//! | `layout` | the position of each cell in the state |
//! | [`engine`], [`interpreter`], `code` | computing successors |
//! | [`reference`](mod@reference) | the same, slow and plain: the oracle, and the messages of faults |
//! | `system`, `names`, `dump` | the system, its names, its properties, its dump |
//!
//! The language and where we differ from other tools: `docs/dve.md`.
//!
//! ```
//! let text = "byte x; process P { state a; init a; trans a -> a { guard x < 3; effect x = x + 1; }; } system async;";
//! let system = deltamark_dve::DveSystem::new(deltamark_dve::parse(text.as_bytes()).unwrap());
//! assert_eq!(system.program().cells[0].field.bits(), 2);
//! ```

mod arithmetic;
mod ast;
mod check;
mod choice;
mod code;
mod dump;
pub mod engine;
mod expression;
mod facts;
pub mod interpreter;
pub mod ir;
mod layout;
mod lower;
pub mod macros;
mod moment;
mod names;
#[cfg(feature = "native")]
pub mod native;
mod parse;
mod parts;
mod pool;
mod portable;
mod property;
mod range;
pub mod reference;
mod simplify;
mod system;
mod token;
mod values;

pub use choice::EngineChoice;
pub use dump::Dump;
pub use property::{PropertyGuard, PropertyProcess};
pub use system::DveSystem;

use deltamark_core::{Control, Diagnostic, Span};
use ir::{Program, TextPlace};

/// The maximum length of a text.
pub const MAX_LENGTH: usize = 1 << 26;

/// Reads, checks and compiles a model.
pub fn parse(bytes: &[u8]) -> Result<Program, Vec<Diagnostic>> {
    parse_under(bytes, &Control::new())
}

/// Approximate bytes of tokens and syntax tree for each byte of a dense text.
const TREE: u64 = 24;

/// The same, unless `control` stops it.
pub fn parse_under(bytes: &[u8], control: &Control) -> Result<Program, Vec<Diagnostic>> {
    let text = deltamark_core::text::utf8(bytes)?;
    if text.len() > MAX_LENGTH {
        return Err(vec![Diagnostic::at(Span::at(0), format!("the model is longer than {MAX_LENGTH} bytes"))]);
    }
    // A text of some kilobytes takes no memory worth asking for.
    control.ask_for(if text.len() < 1 << 16 { 0 } else { text.len() as u64 * TREE })?;
    let model = parse::parse(text, control)?;
    let (mut program, pool) = check::check(text, &model, control)?;
    program.exprs = pool.into_exprs();
    let codes = range::narrow(&mut program, control)?;
    control.ask_for(0)?;
    layout::layout(&mut program, &codes, control)?;
    Ok(program)
}

/// Expands macros with these parameters, then parses, checks and compiles the model. All positions, in diagnostics
/// and in the program, are those of the text with macros.
pub fn parse_macros(bytes: &[u8], parameters: &[(String, String)]) -> Result<Program, Vec<Diagnostic>> {
    parse_macros_under(bytes, parameters, &Control::new())
}

/// The same, unless `control` stops it.
pub fn parse_macros_under(
    bytes: &[u8],
    parameters: &[(String, String)],
    control: &Control,
) -> Result<Program, Vec<Diagnostic>> {
    let expanded = macros::expand_under(bytes, parameters, control)?;
    let program = parse_under(expanded.text.as_bytes(), control);
    let mut program = program.map_err(|findings| expanded.explain(findings))?;
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    let replace = |place: &mut TextPlace| {
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
