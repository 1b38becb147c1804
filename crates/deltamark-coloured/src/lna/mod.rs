//! Helena's language: nets in files ending in `.lna`, properties in `NAME.prop.lna` beside them.
//!
//! ```text
//! text ─preprocess─▶ text ─token─▶ tokens ─parse─▶ syntax tree ─check─▶ Net
//! ```
//!
//! In: the text of a net, values for its parameters, perhaps the text of a property file. Out: a [`Net`], or
//! diagnostics that point into the text. What stays true: no text makes this module panic, overflow the
//! stack, or take time or memory out of proportion; parameters apply to everything static, including
//! capacities and factors.
//!
//! | file | what |
//! |---|---|
//! | `preprocess` | `#ifdef` and the other directives |
//! | `token` | words, numbers, signs |
//! | `syntax` | the tree |
//! | `parse`, `declarations`, `statements`, `expressions` | the parser |
//! | `check` | names, declarations, constants |
//! | `types`, `roots` | types, and which ones an expression can have |
//! | `lower`, `composite`, `fold` | lowering of expressions |
//! | `functions`, `labels`, `transitions` | lowering of what their names say |
//!
//! The language is that of Helena 2.3 (S. Evangelista, *High level Petri nets analysis with Helena*, ICATPN
//! 2005). Where Helena has a bug, we implement the language; `docs/lna.md` has the list.

mod check;
mod composite;
mod declarations;
mod expressions;
mod fold;
mod functions;
mod labels;
mod lower;
mod parse;
mod preprocess;
mod roots;
mod statements;
mod syntax;
mod token;
mod transitions;
mod types;

use crate::Net;
use crate::net::{Expr, Place, Proposition};
use check::Checker;
use deltamark_core::Findings;
use deltamark_core::{Control, Diagnostic, Span, text::utf8};
use std::collections::BTreeMap;

/// The maximum length of a net in bytes.
pub const MAX_LENGTH: usize = 1 << 24;

/// Reads a net. Each of `parameters` gives a value to the parameter or numeric constant of that name; if the
/// net tests a symbol of that name by `#ifdef`, a value other than 0 defines it.
pub fn parse(bytes: &[u8], parameters: &[(String, String)]) -> Result<Net, Vec<Diagnostic>> {
    parse_under(bytes, parameters, &Control::new())
}

/// The same, unless `control` stops it.
pub fn parse_under(bytes: &[u8], parameters: &[(String, String)], control: &Control) -> Result<Net, Vec<Diagnostic>> {
    let text = utf8(bytes)?;
    if text.len() > MAX_LENGTH {
        return Err(vec![Diagnostic::new(format!("the net is longer than {MAX_LENGTH} bytes"))]);
    }
    let mut overrides = BTreeMap::new();
    for (name, value) in parameters {
        match value.trim().parse::<i32>() {
            Ok(number) => overrides.insert(name.clone(), i64::from(number)),
            Err(_) => {
                return Err(vec![
                    Diagnostic::new(format!("the parameter `{name}` takes a whole number, not `{value}`"))
                        .help("numbers go from -2147483648 to 2147483647"),
                ]);
            }
        };
    }
    let symbols: Vec<String> =
        overrides.iter().filter(|(_, value)| **value != 0).map(|(name, _)| name.clone()).collect();
    let mut findings = Findings::under(control);
    let preprocessed = preprocess::preprocess(text, &symbols, &mut findings);
    let tree = parse::net(&preprocessed.text, &mut findings);
    let Some(tree) = tree.filter(|_| findings.is_empty()) else {
        return Err(findings.or(()).err().unwrap_or_else(|| vec![Diagnostic::at(Span::at(0), "this is no net")]));
    };
    // A symbol that the text tests need not be a parameter as well.
    let declared = |name: &str| tree.parameters.iter().any(|parameter| parameter.name.text == name);
    overrides.retain(|name, _| declared(name) || !preprocessed.asked.contains(name));
    let net = Checker::new(overrides, &mut findings).net(&tree);
    findings.or(net)
}

/// Reads the properties of a separate file and adds them to the net.
pub fn parse_properties(net: &mut Net, bytes: &[u8]) -> Result<(), Vec<Diagnostic>> {
    let mut findings = Findings::default();
    with_properties(bytes, |tree| {
        check::properties(net, tree, &mut findings);
    })?;
    findings.or(())
}

/// The properties of a file: names with expressions, which must be true in all states, and names with formulas of LTL.
pub type PropertyTexts = (Vec<(String, String)>, Vec<(String, String)>);

/// Reads a property file for a net of which only these names are known.
pub fn property_texts(
    bytes: &[u8],
    propositions: &[String],
    places: &[String],
) -> Result<PropertyTexts, Vec<Diagnostic>> {
    let mut net = Net::default();
    net.propositions.extend(propositions.iter().map(|name| Proposition {
        name: name.clone(),
        holds: Expr::int(1, Span::at(0)),
        frame: 0,
    }));
    let place = |name: &String| Place {
        name: name.clone(),
        domain: Vec::new(),
        initial: Vec::new(),
        frame: 0,
        capacity: None,
        span: Span::at(0),
    };
    net.places.extend(places.iter().map(place));
    let mut findings = Findings::default();
    with_properties(bytes, |tree| check::properties(&mut net, tree, &mut findings))?;
    findings.or((net.property_texts(), std::mem::take(&mut net.temporal)))
}

/// Parses a property file and passes its tree on.
fn with_properties(bytes: &[u8], take: impl FnOnce(&[syntax::Property<'_>])) -> Result<(), Vec<Diagnostic>> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    let text = utf8(bytes)?;
    if text.len() > MAX_LENGTH {
        return Err(vec![Diagnostic::new(format!("the file is longer than {MAX_LENGTH} bytes"))]);
    }
    let mut findings = Findings::default();
    let preprocessed = preprocess::preprocess(text, &[], &mut findings);
    let tree = parse::properties(&preprocessed.text, &mut findings);
    findings.or(())?;
    take(&tree);
    Ok(())
}
