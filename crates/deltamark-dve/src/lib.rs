//! DVE, the language of the BEEM models.

mod arithmetic;
mod ast;
mod check;
mod code;
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
pub mod reference;
mod system;
mod token;

pub use system::DveSystem;

use deltamark_core::{Diagnostic, Span};
use ir::Program;

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
    let codes: Vec<layout::Code> =
        program.cells.iter().map(|cell| layout::plain(cell.allowed.0, cell.allowed.1)).collect();
    program.exprs = pool.into_exprs();
    layout::layout(&mut program, &codes);
    Ok(program)
}
