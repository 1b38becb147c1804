//! CPN Tools' models: `.cpn` files with CPN ML, compiled to coloured nets.
//!
//! ```text
//! XML ─file─▶ pages, texts ─flatten─▶ instances ─┐
//!              declarations ─parse─▶ tree ─infer─┴─lower─▶ Net ─▶ deltamark_coloured
//!                                      types, code └─────▶ host: what the net calls
//! ```
//!
//! In: the bytes of a file, values for `val`s, initial markings. Out: a [`Net`], or diagnostics that point into the file
//! and name page and element. What stays true: nothing is read but the file, and what `beside` returns; no text makes this crate panic, overflow
//! the stack or take memory out of proportion; what is not supported (time, random functions, references that are written,
//! code with outputs) is refused by name.
//!
//! | file | what |
//! |---|---|
//! | `known` | names that are read, harmless or refused; references |
//! | `file`, `flatten` | XML, page instances, ports and fusion sets |
//! | `lexer`, `syntax`, `parse` | CPN ML |
//! | `types`, `infer` | types, and code with resolved names |
//! | `values`, `eval`, `basis`, `colours` | values, functions, colour sets |
//! | `lower`, `host` | the net, and the code that it calls |
//! | `marks` | expressions over markings, for properties |

mod basis;
mod colours;
mod eval;
mod file;
mod flatten;
mod host;
mod infer;
mod known;
mod lexer;
mod lower;
mod marks;
mod parse;
mod syntax;
mod types;
mod values;

use deltamark_coloured::Net;
use deltamark_core::{Control, Diagnostic, Findings};

/// The maximum length of a file in bytes.
pub const MAX_LENGTH: usize = 1 << 26;

/// Reads a file beside the model by the name that `use` gives; the error is why it cannot, as a sentence without a full
/// stop.
pub type Beside<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Reads a model, and the files that it uses. Each of `parameters` replaces the value of a `val`, each of `markings` the initial marking of a place.
pub fn parse_beside(
    text: &str,
    parameters: &[(String, String)],
    markings: &[(String, String)],
    beside: Beside<'_>,
    control: &Control,
) -> Result<Net, Vec<Diagnostic>> {
    if text.len() > MAX_LENGTH {
        return Err(vec![Diagnostic::new(format!("the file is longer than {MAX_LENGTH} bytes"))]);
    }
    let document = deltamark_nets::xml::open_under(text, control)?;
    let mut findings = Findings::under(control);
    known::check(text, document.root_element(), &mut findings);
    findings.or(())?;
    let file = file::read(document.root_element())?;
    let net = lower::Lowering::new(text, parameters, beside, control).net(&file, markings)?;
    if net.places.is_empty() {
        return Err(vec![Diagnostic::new("the net has no places").help("a net needs a place to have a state")]);
    }
    Ok(net)
}

/// Reads a model that uses no other files.
pub fn parse_under(
    text: &str,
    parameters: &[(String, String)],
    markings: &[(String, String)],
    control: &Control,
) -> Result<Net, Vec<Diagnostic>> {
    let none = |_: &str| Err("other files are read only if the model is a file".into());
    parse_beside(text, parameters, markings, &none, control)
}
