//! CPN Tools' models: `.cpn` files with CPN ML, compiled to coloured nets.
//!
//! ```text
//! XML ─file─▶ pages, texts ─flatten─▶ instances ─┐
//!              declarations ─parse─▶ tree ─infer─┴─lower─▶ Net ─▶ deltamark_coloured
//!                                      types, code └─────▶ host: what the net calls
//! ```
//!
//! In: the bytes of a file, values for `val`s, initial markings. Out: a [`Net`], or diagnostics that point into the file
//! and name page and element. What stays true: nothing outside the file is read; no text makes this crate panic, overflow
//! the stack or take memory out of proportion; what is not supported (time, random functions, references that are written,
//! reset arcs) is refused by name.
//!
//! | file | what |
//! |---|---|
//! | `file`, `flatten` | XML, page instances, ports and fusion sets |
//! | `lexer`, `syntax`, `parse` | CPN ML |
//! | `types`, `infer` | types, and code with resolved names |
//! | `eval`, `basis`, `colours` | values, functions, colour sets |
//! | `lower`, `host` | the net, and the code that it calls |

mod basis;
mod colours;
mod eval;
mod file;
mod flatten;
mod host;
mod infer;
mod lexer;
mod lower;
mod parse;
mod syntax;
mod types;

use deltamark_coloured::Net;
use deltamark_core::{Control, Diagnostic};

/// The maximum length of a file in bytes.
pub const MAX_LENGTH: usize = 1 << 26;

/// Reads a model. Each of `parameters` replaces the value of a `val`, each of `markings` the initial marking of a place.
pub fn parse_under(
    text: &str,
    parameters: &[(String, String)],
    markings: &[(String, String)],
    control: &Control,
) -> Result<Net, Vec<Diagnostic>> {
    if text.len() > MAX_LENGTH {
        return Err(vec![Diagnostic::new(format!("the file is longer than {MAX_LENGTH} bytes"))]);
    }
    let document = deltamark_nets::xml::open_under(text, control)?;
    let file = file::read(document.root_element())?;
    lower::Lowering::new(text, parameters, control).net(&file, markings)
}
