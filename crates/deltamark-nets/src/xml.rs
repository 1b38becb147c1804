//! Opens XML from outside without being hurt by it.
//!
//! In: text. Out: a document tree, or the first thing wrong with it and where.
//! What stays true, and why a scan goes before the real parser, which does not see to it:
//!
//! * no entity is ever expanded: a file that declares any is refused, so ten lines cannot
//!   become gigabytes and nothing outside the file is named;
//! * elements nest at most `DEEPEST` deep, so that whoever walks the tree may recurse;
//! * an element has at most `MOST_ATTRIBUTES` attributes and a document at most
//!   `MOST_PREFIXES` namespace prefixes, since the parser compares each with each.
//!
//! The scan agrees with the parser up to the first place where the XML is malformed;
//! there the parser stops, so what the scan thinks of the rest does not matter.

use std::collections::HashSet;

use deltamark_core::{Control, Diagnostic, Span};
use roxmltree::{Document, Error, Node, ParsingOptions, TextPos};

/// How deep elements may nest.
const DEEPEST: usize = 1000;
/// How many attributes an element may have.
const MOST_ATTRIBUTES: usize = 256;
/// How many namespace prefixes a document may declare.
const MOST_PREFIXES: usize = 64;
/// How many nodes the tree may have: elements, texts and comments.
const MOST_NODES: u32 = 32 << 20;

/// Bytes of the tree for each element and each text, and for each attribute, about.
const NODE: u64 = 80;
const ATTRIBUTE: u64 = 72;

/// An attribute of so many bytes is long: it is asked for memory for all copies that readers make of it at once.
const LONG: u64 = 1 << 16;
/// How many copies that may be: an identifier of 20 MiB made a process hold 166 MiB.
const COPIES: u64 = 7;

/// Elements that nets consist of, in every dialect.
const OF_NETS: &[&str] = &[
    "net",
    "page",
    "place",
    "transition",
    "arc",
    "inputArc",
    "outputArc",
    "inhibitorArc",
    "transportArc",
    "referencePlace",
    "referenceTransition",
    "initialMarking",
    "hlinitialMarking",
    "inscription",
    "hlinscription",
    "condition",
    "interval",
    "finalmarkings",
];

/// The first element below `skipped` that nets consist of. A reader that skips a drawing or what a
/// tool keeps for itself asks this first: a part of the net must not be lost with it.
pub fn part_of_net<'a>(skipped: Node<'a, 'a>) -> Option<Node<'a, 'a>> {
    skipped.descendants().skip(1).find(|part| part.is_element() && OF_NETS.contains(&part.tag_name().name()))
}

/// Whether an element is of another XML namespace than the element around it. Its name then means
/// something else, whatever it is.
pub fn is_foreign(node: Node<'_, '_>) -> bool {
    node.parent_element().is_some_and(|parent| parent.tag_name().namespace() != node.tag_name().namespace())
}

/// Parses a document.
pub fn open(text: &str) -> Result<Document<'_>, Diagnostic> {
    open_under(text, &Control::new())
}

/// The same, as far as `control` lets it.
pub fn open_under<'a>(text: &'a str, control: &Control) -> Result<Document<'a>, Diagnostic> {
    let inner = text.trim_start_matches('\u{FEFF}').trim_start();
    if !inner.is_empty() && !inner.starts_with('<') {
        let start = text.len() - inner.len();
        let finding = Diagnostic::at(Span::at(start), "this is not XML: it does not start with `<`");
        return Err(finding.help("is it a TINA net? Then read it with `--format tina`, or let its name end in .net"));
    }
    let long = scan(text, control)?;
    if control.limits.memory.is_some() {
        let cost = |pair: &[u8]| match pair {
            [b'<', next] if *next != b'/' => NODE,
            [b'>', next] if *next != b'<' => NODE,
            [b'=', _] => ATTRIBUTE,
            _ => 0,
        };
        let tree: u64 = text.as_bytes().windows(2).map(cost).sum();
        control.ask_for(tree + COPIES * long)?;
    }
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| explain(text, &error))
}

/// Refuses what would cost the parser more than the text is long. Gives the bytes of all attributes that are [`LONG`].
fn scan(text: &str, control: &Control) -> Result<u64, Diagnostic> {
    let bytes = text.as_bytes();
    let mut prefixes = HashSet::new();
    let (mut depth, mut at, mut long) = (0_usize, 0, 0);
    while let Some(found) = find(bytes, at, b"<") {
        control.ask()?;
        let rest = &bytes[found..];
        let end = if rest.starts_with(b"<!--") {
            find(bytes, found + 4, b"-->").map(|end| end + 3)
        } else if rest.starts_with(b"<![CDATA[") {
            find(bytes, found + 9, b"]]>").map(|end| end + 3)
        } else if rest.starts_with(b"<?") {
            find(bytes, found + 2, b"?>").map(|end| end + 2)
        } else if rest.starts_with(b"<!") {
            document_type(bytes, found)?
        } else if rest.starts_with(b"</") {
            depth = depth.saturating_sub(1);
            find(bytes, found, b">").map(|end| end + 1)
        } else {
            let end = tag(text, found, &mut prefixes, &mut long)?;
            if end.is_some_and(|end| bytes[end - 2] != b'/') {
                depth += 1;
                if depth > DEEPEST {
                    let message = format!("elements are nested more than {DEEPEST} deep");
                    return Err(Diagnostic::at(tag_span(text, found), message));
                }
            }
            end
        };
        let Some(end) = end else { break };
        at = end;
    }
    Ok(long)
}

/// The byte behind a start tag, if it ends. Quoted `>` do not end it. Adds to `long` the bytes of its long attributes.
fn tag<'a>(
    text: &'a str,
    start: usize,
    prefixes: &mut HashSet<&'a [u8]>,
    long: &mut u64,
) -> Result<Option<usize>, Diagnostic> {
    let bytes = text.as_bytes();
    let (mut attributes, mut at) = (0, start + 1);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'>' => return Ok(Some(at + 1)),
            b'"' | b'\'' => {
                attributes += 1;
                if attributes > MOST_ATTRIBUTES {
                    let message = format!("an element has more than {MOST_ATTRIBUTES} attributes");
                    return Err(Diagnostic::at(tag_span(text, start), message));
                }
                match find(bytes, at + 1, &[byte]) {
                    Some(end) => {
                        *long += Some((end - at) as u64).filter(|length| *length >= LONG).unwrap_or(0);
                        at = end;
                    }
                    None => return Ok(None),
                }
            }
            b'x' if bytes[at..].starts_with(b"xmlns:") => {
                let name = at + 6;
                let length = bytes[name..].iter().take_while(|byte| !b"= \t\r\n\"'>".contains(byte)).count();
                prefixes.insert(&bytes[name..name + length]);
                if prefixes.len() > MOST_PREFIXES {
                    let message = format!("the document declares more than {MOST_PREFIXES} namespace prefixes");
                    return Err(Diagnostic::at(at..name + length, message));
                }
                at = name + length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(None)
}

/// The byte behind a document type that merely names one. Declarations of its own are refused.
fn document_type(bytes: &[u8], start: usize) -> Result<Option<usize>, Diagnostic> {
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'>' => return Ok(Some(at + 1)),
            b'"' | b'\'' => match find(bytes, at + 1, &[byte]) {
                Some(end) => at = end,
                None => return Ok(None),
            },
            b'[' => {
                let help = "write the text itself in place of the entity, and remove the declarations";
                return Err(match find(bytes, at, b"<!ENTITY") {
                    Some(entity) => {
                        Diagnostic::at(entity..entity + 8, "the file declares an XML entity; entities are not expanded")
                            .help(help)
                    }
                    None => Diagnostic::at(at..at + 1, "the file has declarations inside its document type")
                        .help("remove everything between the brackets"),
                });
            }
            _ => {}
        }
        at += 1;
    }
    Ok(None)
}

/// Where `needle` stands next, from `from` on.
fn find(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    let (&first, rest) = needle.split_first()?;
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == first)?;
        if bytes[at + 1..].starts_with(rest) {
            return Some(at);
        }
        at += 1;
    }
}

/// The `<name` of a tag that starts at `start`.
pub fn tag_span(text: &str, start: usize) -> Span {
    let name = text[start..].find(|c: char| c.is_whitespace() || c == '>' || c == '/');
    Span::new(start, start + name.unwrap_or(text.len() - start))
}

/// What the parser says, in our words, and where it is.
fn explain(text: &str, error: &Error) -> Diagnostic {
    let end = Span::at(text.trim_end().len());
    let here = Span::at(offset(text, error.pos()));
    match error {
        Error::NoRootNode if !has_tag(text) => {
            Diagnostic::at(Span::at(0), "this is not XML: there is no element in it")
        }
        Error::NoRootNode | Error::UnclosedRootNode | Error::UnexpectedEndOfStream => {
            Diagnostic::at(end, "the XML ends before its elements are closed").help("the file may be cut off")
        }
        Error::UnexpectedCloseTag(expected, actual, _) => {
            Diagnostic::at(here, format!("`</{actual}>` closes an element that was opened as `<{expected}>`"))
        }
        Error::UnknownEntityReference(name, _) => Diagnostic::at(here, format!("the entity `&{name};` is not known"))
            .help("write `&amp;` for the character `&`"),
        Error::MalformedEntityReference(_) => {
            Diagnostic::at(here, "a bare `&` has no meaning in XML").help("write `&amp;`")
        }
        Error::DuplicatedAttribute(name, _) => {
            Diagnostic::at(here, format!("the attribute `{name}` stands twice in one element"))
        }
        Error::NodesLimitReached => {
            Diagnostic::new(format!("the document is too large: more than {MOST_NODES} elements and texts"))
        }
        Error::UnknownToken(_) if text[..here.start].trim_end().ends_with("</pnml>") => {
            Diagnostic::at(here, "something is left after `</pnml>`, where the file should end")
                .help("two files may have been joined; remove what does not belong here")
        }
        other => {
            // The library ends its sentences with " at line:column", which the span says better.
            let said = other.to_string();
            let place = format!(" at {}", other.pos());
            Diagnostic::at(here, format!("malformed XML: {}", said.strip_suffix(&place).unwrap_or(&said)))
        }
    }
}

/// Whether an element at least begins.
fn has_tag(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0] == b'<' && pair[1].is_ascii_alphabetic())
}

/// The byte offset of a row and column, both counted from 1, columns in characters.
fn offset(text: &str, pos: TextPos) -> usize {
    let row = (pos.row as usize).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(row).map(str::len).sum();
    let line = &text[start..];
    line.char_indices().nth((pos.col as usize).saturating_sub(1)).map_or(text.len(), |(at, _)| start + at)
}
