//! What a property file of the Model Checking Contest may consist of.
//!
//! In: a document. Out: a diagnostic for whatever would otherwise be skipped: an attribute, an element of another
//! namespace, text where elements belong and elements where text belongs, a second part where one is read. What stays
//! true: a file without findings holds nothing below `property-set` that the reader does not use, but descriptions and
//! tags, which are for people and for programs that make formulas.

use deltamark_core::{Control, Diagnostic, Findings, Span};
use deltamark_nets::xml;
use roxmltree::Node;

/// Elements that hold a text and nothing else.
const TEXTS: &[&str] = &["id", "place", "transition", "integer-constant"];
/// Elements that are skipped with all that is in them.
const SKIPPED: &[&str] = &["description", "tags"];
/// Elements that are read once in the element around them.
const ONCE: &[&str] = &["id", "formula", "before", "reach"];
/// Elements that mean nothing without an element inside. An empty sum or choice is a slip, not a question.
const FULL: &[&str] = &["conjunction", "disjunction", "is-fireable", "tokens-count", "place-bound"];

/// Finds what the reader would skip.
pub(super) fn check(text: &str, root: Node<'_, '_>, control: &Control) -> Result<(), Vec<Diagnostic>> {
    let mut checker = Checker { text, findings: Findings::under(control) };
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        control.check()?;
        if checker.findings.is_full() {
            break;
        }
        let name = node.tag_name().name();
        checker.element(node, name);
        if !TEXTS.contains(&name) && !SKIPPED.contains(&name) {
            // The first is the next, so that findings come in the order of the text.
            let before = waiting.len();
            waiting.extend(node.children().filter(Node::is_element));
            waiting[before..].reverse();
        }
    }
    checker.findings.or(())
}

struct Checker<'a> {
    text: &'a str,
    findings: Findings,
}

impl Checker<'_> {
    fn wrong(&mut self, node: Node<'_, '_>, message: String) {
        let span = xml::tag_span(self.text, node.range().start);
        self.findings.add(|| Diagnostic::at(span, message));
    }

    fn element(&mut self, node: Node<'_, '_>, name: &str) {
        if xml::is_foreign(node) {
            self.wrong(node, format!("<{name}> is of another namespace than the element around it"));
        }
        if SKIPPED.contains(&name) {
            return;
        }
        // An attribute with a prefix is of another vocabulary.
        for attribute in node.attributes().filter(|attribute| attribute.namespace().is_none()) {
            let range = attribute.range_qname();
            let message = format!("the attribute `{}` has no meaning in <{name}>", attribute.name());
            self.findings.add(|| Diagnostic::at(Span::new(range.start, range.end), message));
        }
        let is_text = TEXTS.contains(&name);
        let mut texts = 0;
        let mut empty = true;
        for child in node.children() {
            if child.is_element() {
                empty = false;
                if is_text {
                    self.wrong(child, format!("<{}> has no meaning in <{name}>", child.tag_name().name()));
                }
            } else if child.is_text() && child.text().is_some_and(|words| !words.trim().is_empty()) {
                texts += 1;
                if !is_text {
                    let range = child.range();
                    let message = format!("text has no meaning in <{name}>");
                    self.findings.add(|| Diagnostic::at(Span::new(range.start, range.end), message));
                }
            }
        }
        if is_text && texts != 1 {
            let what = if texts == 0 { "is empty" } else { "is in several parts, of which only one would be read" };
            self.wrong(node, format!("the text of <{name}> {what}"));
        }
        if FULL.contains(&name) && empty {
            self.wrong(node, format!("<{name}> has nothing inside"));
        }
        if ONCE.contains(&name) && node.prev_siblings().skip(1).any(|other| other.has_tag_name(node.tag_name())) {
            self.wrong(node, format!("<{name}> is there twice, where one is expected"));
        }
    }
}
