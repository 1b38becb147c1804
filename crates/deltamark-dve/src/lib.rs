//! DVE, the language of the BEEM models.

mod arithmetic;
mod ast;
mod check;
mod code;
mod dump;
pub mod engine;
pub mod interpreter;
pub mod ir;
mod layout;
mod lower;
mod names;
mod parse;
mod pool;
mod range;
pub mod reference;
mod system;
mod token;
mod values;

pub use dump::Dump;
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
    program.exprs = pool.into_exprs();
    let codes = range::narrow(&mut program);
    layout::layout(&mut program, &codes);
    Ok(program)
}
