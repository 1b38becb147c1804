//! Which elements and attributes the reader of symmetric nets knows.
//!
//! In: the document. Out: a finding for every element, attribute and text that nothing would read. What stays
//! true: everything in a file is used by the reader, is listed in [`HARMLESS`] or [`DECORATION`] with the
//! reason why it has no effect, or is refused by name. So a misspelt name never drops a part of the net.

use deltamark_core::Findings;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};
use deltamark_nets::pnml::{elements, name_of};
use deltamark_nets::xml;
use roxmltree::Node;

/// Elements without effect, wherever they are, with everything in them; and why.
pub(super) const HARMLESS: &[(&str, &str)] =
    &[("graphics", "positions, colours and fonts of a drawing (ISO/IEC 15909-2, 7.1.3)")];

/// Tools whose `toolspecific` elements have no effect, and why.
pub(super) const DECORATION: &[(&str, &str)] = &[
    ("nupn", "how places are grouped into units, which follows from the net"),
    ("org.pnml.tool", "where tokens are drawn: the example of ISO/IEC 15909-2"),
    ("org.pnml.tools.epnk.diagraminfo", "how ePNK shows the diagram"),
];

/// Namespaces whose attributes concern the XML and not the net.
const ABOUT_XML: [&str; 2] = ["http://www.w3.org/XML/1998/namespace", "http://www.w3.org/2001/XMLSchema-instance"];

/// Elements with text for people.
const TEXTS: [&str; 2] = ["text", "value"];

/// The contents allowed in an element.
pub(super) struct Known {
    pub element: &'static str,
    /// Its parents, if it means different things; empty if it means the same everywhere.
    pub within: &'static [&'static str],
    pub attributes: &'static [&'static str],
    /// Elements that may occur once.
    pub once: &'static [&'static str],
    pub content: Content,
}

/// Further contents of an element.
pub(super) enum Content {
    /// Any number of these.
    Many(&'static [&'static str]),
    /// One of these, and one in all.
    OneOf(&'static [&'static str]),
    /// Sorts or terms, any number: their reader refuses unknown ones.
    Terms,
    /// The same, but at most one; a second one would not be read.
    Term,
}

use Content::{Many, OneOf, Term, Terms};

const NOTHING: Content = Many(&[]);
const NODES: &[&str] = &["declaration", "page", "place", "transition", "referencePlace", "referenceTransition", "arc"];
const ENUMERATIONS: &[&str] = &["cyclicenumeration", "finiteenumeration"];
const NUMBERS: &[&str] = &["positive", "natural", "integer"];

const fn known(
    element: &'static str,
    attributes: &'static [&'static str],
    once: &'static [&'static str],
    content: Content,
) -> Known {
    Known { element, within: &[], attributes, once, content }
}

const fn within(
    within: &'static [&'static str],
    element: &'static str,
    attributes: &'static [&'static str],
    once: &'static [&'static str],
    content: Content,
) -> Known {
    Known { element, within, attributes, once, content }
}

/// All elements that are read. Some are read only to be refused with a reason: `capacity`, `delay`, `namedoperator`.
pub(super) const KNOWN: &[Known] = &[
    known("pnml", &[], &[], Many(&["net"])),
    known("net", &["id", "type"], &["name"], Many(NODES)),
    known("page", &["id"], &["name"], Many(NODES)),
    known("place", &["id"], &["name", "type", "hlinitialMarking"], Many(&["capacity", "initialMarking"])),
    known("transition", &["id"], &["name", "condition"], Many(&["delay", "interval"])),
    known("referencePlace", &["id", "ref"], &["name"], NOTHING),
    known("referenceTransition", &["id", "ref"], &["name"], NOTHING),
    known(
        "arc",
        &["id", "source", "target", "type"],
        &["name", "hlinscription", "type", "arctype"],
        Many(&["inscription"]),
    ),
    // Labels.
    known("name", &[], &[], OneOf(&TEXTS)),
    known("hlinitialMarking", &[], &["text", "structure"], NOTHING),
    known("hlinscription", &[], &["text", "structure"], NOTHING),
    known("condition", &[], &["text", "structure"], NOTHING),
    known("declaration", &[], &["text", "structure"], NOTHING),
    within(&["place"], "type", &[], &["text", "structure"], NOTHING),
    within(&["arc"], "type", &["value"], &[], OneOf(&TEXTS)),
    known("arctype", &["value"], &[], OneOf(&TEXTS)),
    known("text", &[], &[], NOTHING),
    known("value", &[], &[], NOTHING),
    within(&["declaration"], "structure", &[], &["declarations"], NOTHING),
    known("structure", &[], &[], Terms),
    // Declarations.
    known("declarations", &[], &[], Terms),
    known("namedsort", &["id", "name"], &[], Term),
    known("variabledecl", &["id", "name"], &[], Term),
    known("partition", &["id", "name"], &["usersort"], Many(&["partitionelement"])),
    known("partitionelement", &["id", "name"], &[], Many(&["useroperator", "finiteintrangeconstant"])),
    // Sorts.
    known("dot", &[], &[], NOTHING),
    known("bool", &[], &[], NOTHING),
    known("usersort", &["declaration"], &[], NOTHING),
    known("productsort", &[], &[], Terms),
    known("cyclicenumeration", &[], &[], Many(&["feconstant"])),
    known("finiteenumeration", &[], &[], Many(&["feconstant"])),
    within(ENUMERATIONS, "feconstant", &["id", "name"], &[], NOTHING),
    known("finiteintrange", &["start", "end"], &[], NOTHING),
    // Terms.
    known("feconstant", &["id", "declaration"], &[], NOTHING),
    known("useroperator", &["declaration"], &[], NOTHING),
    known("variable", &["refvariable"], &[], NOTHING),
    known("dotconstant", &[], &[], NOTHING),
    known("booleanconstant", &["value"], &[], Many(&["bool"])),
    known("numberconstant", &["value"], &[], OneOf(NUMBERS)),
    known("positive", &[], &[], NOTHING),
    known("natural", &[], &[], NOTHING),
    known("integer", &[], &[], NOTHING),
    known("finiteintrangeconstant", &["value"], &["finiteintrange"], NOTHING),
    known("all", &[], &[], Term),
    known("empty", &[], &[], OneOf(&["usersort", "dot"])),
    known("subterm", &[], &[], Terms),
    known("partitionelementof", &["refpartition"], &[], Terms),
    known("add", &[], &[], Terms),
    known("subtract", &[], &[], Terms),
    known("numberof", &[], &[], Terms),
    known("scalarproduct", &[], &[], Terms),
    known("tuple", &[], &[], Terms),
    known("successor", &[], &[], Terms),
    known("predecessor", &[], &[], Terms),
    known("and", &[], &[], Terms),
    known("or", &[], &[], Terms),
    known("not", &[], &[], Terms),
    known("imply", &[], &[], Terms),
    known("equality", &[], &[], Terms),
    known("inequality", &[], &[], Terms),
    known("lessthan", &[], &[], Terms),
    known("lt", &[], &[], Terms),
    known("ltp", &[], &[], Terms),
    known("lessthanorequal", &[], &[], Terms),
    known("leq", &[], &[], Terms),
    known("greaterthan", &[], &[], Terms),
    known("gt", &[], &[], Terms),
    known("gtp", &[], &[], Terms),
    known("greaterthanorequal", &[], &[], Terms),
    known("geq", &[], &[], Terms),
];

/// Refuses whatever in the document nothing reads.
pub(super) fn refuse_others<'a>(text: &str, root: Node<'a, 'a>, findings: &mut Findings) {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if findings.is_full() {
            return;
        }
        // An element without a row has been refused at its parent, or is refused by the reader of terms.
        if let Some(row) = row(node) {
            attributes(text, node, row, findings);
            children(text, node, row, &mut open, findings);
        }
    }
}

/// Whether some element or attribute that is read has this name.
pub(super) fn is_known(name: &str) -> bool {
    is_harmless(name) || KNOWN.iter().any(|row| row.element == name || row.attributes.contains(&name))
}

/// Whether an element has no effect, given that it was not refused.
pub(super) fn is_harmless(element: &str) -> bool {
    element == "toolspecific" || HARMLESS.iter().any(|(harmless, _)| *harmless == element)
}

fn row(node: Node<'_, '_>) -> Option<&'static Known> {
    let around = node.parent_element().map_or("", |parent| parent.tag_name().name());
    let fits = |row: &&Known| row.within.is_empty() || row.within.contains(&around);
    KNOWN.iter().filter(|row| row.element == node.tag_name().name()).find(fits)
}

fn attributes(text: &str, node: Node<'_, '_>, row: &Known, findings: &mut Findings) {
    let about_net = |namespace: Option<&str>| namespace.is_none_or(|namespace| !ABOUT_XML.contains(&namespace));
    for attribute in node.attributes().filter(|attribute| about_net(attribute.namespace())) {
        let name = attribute.name();
        if !row.attributes.contains(&name) {
            let range = attribute.range_qname();
            findings.add(|| {
                let message = format!("`{name}` is no attribute of `{}`", row.element);
                let span = Span::new(range.start, range.end);
                advised(Diagnostic::at(span, message), name, row.attributes.iter().copied(), "attributes")
            });
        }
    }
    // Punctuation alone has no meaning: nets of the Model Checking Contest have a `$` left over between
    // elements.
    let says_something = |words: &str| words.contains(char::is_alphanumeric);
    if !TEXTS.contains(&row.element)
        && let Some(words) = node.children().find(|child| child.is_text() && child.text().is_some_and(says_something))
    {
        let range = words.range();
        let visible = text[range.clone()].trim();
        let start = range.start + text[range].find(visible).unwrap_or(0);
        findings.add(|| {
            let message = format!("there is text in `{}`, which nothing reads", row.element);
            Diagnostic::at(Span::new(start, start + visible.len()), message)
                .help("terms are elements in `<structure>`; names are in `<text>`")
        });
    }
}

fn children<'a>(text: &str, node: Node<'a, 'a>, row: &Known, open: &mut Vec<Node<'a, 'a>>, findings: &mut Findings) {
    let mut seen: Vec<&str> = Vec::new();
    let mut terms = 0;
    for child in elements(node) {
        if findings.is_full() {
            return;
        }
        let name = name_of(child);
        let span = xml::tag_span(text, child.range().start);
        if xml::is_foreign(child) {
            let namespace = child.tag_name().namespace().unwrap_or_default();
            let message = format!("`{name}` is of another namespace than `{}`: {namespace:?}", row.element);
            findings.add(|| Diagnostic::at(span, message));
            continue;
        }
        if is_harmless(name) {
            if let Some(part) = xml::part_of_net(child) {
                let span = xml::tag_span(text, part.range().start);
                let message = format!("`{}` has no meaning in `{name}`", name_of(part));
                findings.add(|| Diagnostic::at(span, message));
            }
            if name == "toolspecific" {
                decoration(child, span, findings);
            }
            continue;
        }
        let (others, at_most_one) = match row.content {
            Many(others) => (Some(others), false),
            OneOf(others) => (Some(others), true),
            Terms => (None, false),
            Term => (None, true),
        };
        if row.once.contains(&name) {
            if seen.contains(&name) {
                let message = format!("a second `{name}` in this `{}`, and one is read", row.element);
                findings.add(|| Diagnostic::at(span, message));
            }
            seen.push(name);
        } else if others.is_none_or(|others| others.contains(&name)) {
            terms += 1;
            if at_most_one && terms == 2 {
                let message = format!("a second element in this `{}`, and one is read", row.element);
                findings.add(|| Diagnostic::at(span, message));
            }
        } else {
            findings.add(|| {
                let message = format!("`{name}` is not known in `{}`", row.element);
                let known = row.once.iter().chain(others.unwrap_or_default()).copied();
                advised(Diagnostic::at(span, message), name, known, "elements")
            });
            continue;
        }
        open.push(child);
    }
}

/// Refuses tool-specific contents, unless the tool is known not to affect behaviour.
fn decoration(node: Node<'_, '_>, span: Span, findings: &mut Findings) {
    let tool = node.attribute("tool").unwrap_or_default();
    if !DECORATION.iter().any(|(known, _)| *known == tool) {
        findings.add(|| {
            Diagnostic::at(span, format!("it is not known what `toolspecific` of `{tool}` means for the net"))
                .help("remove the element if it changes nothing")
        });
    }
}

/// A finding with a similar name, or all names.
fn advised<'k>(
    diagnostic: Diagnostic,
    name: &str,
    known: impl Iterator<Item = &'k str> + Clone,
    what: &str,
) -> Diagnostic {
    match did_you_mean(name, known.clone()) {
        Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
        None => {
            let known: Vec<String> = known.map(|known| format!("`{known}`")).collect();
            let list = if known.is_empty() { "none".into() } else { known.join(", ") };
            diagnostic.help(format!("{what} that are known here: {list}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name of the table but those that are read only to be refused, in a file that is read; so the
    /// table lists nothing that the reader does not know.
    #[test]
    fn what_is_known_is_read() {
        const TEXT: &str = include_str!("../../../../fuzz/seeds/coloured/complete.pnml");
        assert!(super::super::parse(TEXT).is_ok());
        let document = xml::open(TEXT).expect("it is XML");
        let elements: Vec<&str> = document.descendants().filter(Node::is_element).map(name_of).collect();
        let synonyms =
            ["value", "arctype", "empty", "integer", "scalarproduct", "lt", "ltp", "leq", "gt", "gtp", "geq"];
        let compared = ["lessthanorequal", "greaterthan"];
        for row in KNOWN.iter().filter(|row| !synonyms.contains(&row.element) && !compared.contains(&row.element)) {
            assert!(elements.contains(&row.element), "`{}` is in the table and not in the file", row.element);
        }
        for name in HARMLESS.iter().map(|(name, _)| *name).chain(["toolspecific"]) {
            assert!(elements.contains(&name), "`{name}`");
        }
    }
}
