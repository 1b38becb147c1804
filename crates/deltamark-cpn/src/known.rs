//! The elements and attributes of a file, and that references lead somewhere.
//!
//! In: the document. Out: a finding for every element, attribute and text that the reader would drop, for every id that two
//! nodes have, and for every reference that leads nowhere. What stays true: everything in a file is read, is *harmless* for
//! the reason given, or is refused by name; so a misspelt name never drops a part of the net.

use std::collections::HashSet;

use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Findings, Span};
use deltamark_nets::xml;
use roxmltree::Node;

/// The contents of an element that is read.
struct KnownElement {
    name: &'static str,
    /// Its parents, if the name means different things; empty if it means the same everywhere.
    within: &'static [&'static str],
    /// Attributes that are read.
    read: &'static [&'static str],
    /// Attributes without effect.
    harmless: &'static [&'static str],
    /// Elements that may occur once.
    once: &'static [&'static str],
    /// Elements that may occur any number of times.
    many: &'static [&'static str],
}

const fn element(
    name: &'static str,
    read: &'static [&'static str],
    harmless: &'static [&'static str],
    once: &'static [&'static str],
    many: &'static [&'static str],
) -> KnownElement {
    KnownElement { name, within: &[], read, harmless, once, many }
}

const DRAWING: &str = "where and how something is drawn";

/// Elements without effect, with everything in them; the elements they may be in (empty: any), and why.
const HARMLESS: &[(&str, &[&str], &str)] = &[
    ("generator", &["workspaceElements"], "the program that wrote the file"),
    ("instances", &["cpnet"], "instances of pages follow from the substitution transitions"),
    ("options", &["cpnet"], "settings of the simulator"),
    ("binders", &["cpnet"], "open windows"),
    ("monitorblock", &["cpnet"], "what a simulation logs, and when it ends"),
    ("IndexNode", &["cpnet"], "the tree beside the workspace"),
    ("group", &["cpnet", "page"], DRAWING),
    ("constraints", &["page"], DRAWING),
    ("hguideline", &["page"], DRAWING),
    ("vguideline", &["page"], DRAWING),
    ("Aux", &["page"], "a note"),
    ("aux", &["page"], "a note"),
    ("aux-conn", &["page"], "a line between notes"),
    ("ssnode", &["page"], "a node of a drawn state space"),
    ("ssarc", &["page"], "an edge of a drawn state space"),
    ("modeattr", &["page"], "how Design/CPN simulates the page"),
    ("winattr", &["page"], DRAWING),
    ("text", &["page", "arc"], "a note: a page has its name in `pageattr`, an arc its inscription in `annot`"),
    ("port", &["place"], "which way tokens go, which arcs say; what it is assigned to is in `portsock`"),
    ("token", &["place"], "where the simulator shows tokens"),
    ("marking", &["place"], "where the simulator shows tokens"),
    ("id", &["type"], "the colour set, as `text` says too"),
    ("binding", &["trans"], "where the simulator shows bindings"),
    ("subpageinfo", &["subst"], "the name of the subpage for people"),
    ("structure", &["annot", "initmark"], "the parts of the text"),
    ("layout", &["ml", "color", "var", "globref", "use"], "how the declaration is shown"),
    ("declare", &["color"], "functions of the colour set, which are there anyway"),
    ("posattr", &[], DRAWING),
    ("fillattr", &[], DRAWING),
    ("lineattr", &[], DRAWING),
    ("textattr", &[], DRAWING),
    ("arrowattr", &[], DRAWING),
    ("regattr", &[], DRAWING),
    ("bendpoint", &[], DRAWING),
    ("flags", &[], DRAWING),
    ("label", &[], DRAWING),
    ("layering", &[], DRAWING),
    ("box", &[], DRAWING),
    ("ellipse", &[], DRAWING),
];

/// Elements that nets consist of; none is in a harmless one.
const OF_NETS: &[&str] = &["page", "place", "trans", "arc", "globbox", "color", "subst", "initmark", "annot", "cond"];

const LABEL: &[&str] = &["text"];
const DECLARATIONS: &[&str] = &["block", "ml", "color", "var", "globref", "use", "errordecl"];
const NOTHING: &[&str] = &[];

/// The elements that are read.
const KNOWN: &[KnownElement] = &[
    element("workspaceElements", &[], &[], &["cpnet"], &[]),
    element("cpnet", &[], &[], &[], &["globbox", "page", "fusion"]),
    element("globbox", &[], &["id"], &[], DECLARATIONS),
    element("block", &[], &["id"], &["id"], DECLARATIONS),
    element("ml", &[], &["id"], &[], &[]),
    element("errordecl", &[], &["id"], &[], &[]),
    element("use", &[], &["id"], &[], &["id", "ml"]),
    element("globref", &[], &["id"], &["id", "ml"], &[]),
    element("var", &[], &["id"], &["type"], &["id"]),
    KnownElement { within: &["var", "unionfield"], ..element("type", &[], &[], &["id"], &[]) },
    element(
        "color",
        &[],
        &["id"],
        &["id", "timed"],
        &[
            "unit", "bool", "int", "intinf", "real", "time", "string", "enum", "index", "product", "record", "list",
            "union", "subset", "alias",
        ],
    ),
    element("timed", &[], &[], &[], &[]),
    element("unit", &[], &[], &["id", "with"], &[]),
    element("bool", &[], &[], &["with"], &["id"]),
    element("int", &[], &[], &["with"], &["ml"]),
    element("intinf", &[], &[], &["with"], &["ml"]),
    element("real", &[], &[], &["with"], &["ml"]),
    KnownElement { within: &["color"], ..element("time", &[], &[], &[], &[]) },
    element("string", &[], &[], &["with", "and"], &["ml"]),
    element("enum", &[], &[], &[], &["id"]),
    element("index", &[], &[], &["id"], &["ml"]),
    element("product", &[], &[], &[], &["id"]),
    element("record", &[], &[], &[], &["recordfield"]),
    element("recordfield", &[], &[], &[], &["id"]),
    element("list", &[], &[], &["id", "with"], &["ml"]),
    element("union", &[], &[], &[], &["unionfield"]),
    element("unionfield", &[], &[], &["id", "type"], &[]),
    element("subset", &[], &[], &["id", "by", "with"], &[]),
    element("alias", &[], &[], &["id"], &[]),
    element("with", &[], &[], &[], &["id", "ml"]),
    element("and", &[], &[], &[], &["ml"]),
    element("by", &[], &[], &["ml"], &[]),
    element("id", &[], &[], &[], &[]),
    element("page", &["id"], &[], &["pageattr"], &["place", "trans", "arc", "mult"]),
    element("pageattr", &["name"], &[], &[], &[]),
    element("mult", &["insts"], &[], &[], &[]),
    element("place", &["id"], &[], &["text", "type", "initmark", "fusioninfo"], &[]),
    element("type", &[], &["id"], LABEL, &[]),
    element("initmark", &[], &["id"], LABEL, &[]),
    element("fusioninfo", &["name"], &["id"], &[], &[]),
    element("trans", &["id"], &["explicit"], &["text", "cond", "time", "code", "priority", "channel", "subst"], &[]),
    element("cond", &[], &["id"], LABEL, &[]),
    element("time", &[], &["id"], LABEL, &[]),
    element("code", &[], &["id"], LABEL, &[]),
    element("priority", &[], &["id"], LABEL, &[]),
    element("channel", &[], &["id"], LABEL, &[]),
    element("subst", &["subpage", "portsock"], &[], &[], &[]),
    element("arc", &["orientation"], &["id", "order"], &["transend", "placeend", "annot"], &[]),
    element("transend", &["idref"], &["endpoint"], &[], &[]),
    element("placeend", &["idref"], &["endpoint"], &[], &[]),
    element("annot", &[], &["id"], LABEL, &[]),
    element("text", &[], &["tool", "version"], &[], &[]),
    element("fusion", &[], &["id", "name"], &[], &["fusion_elm"]),
    element("fusion_elm", &["idref"], &[], &[], &[]),
];

/// Elements whose text is read.
const TEXTS: &[&str] = &["text", "ml", "errordecl", "id"];

fn name_of<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}

fn parent_of<'a>(node: Node<'a, 'a>) -> &'a str {
    node.parent_element().map_or("", name_of)
}

fn row(node: Node<'_, '_>) -> Option<&'static KnownElement> {
    let around = parent_of(node);
    let fits = |row: &&KnownElement| row.within.is_empty() || row.within.contains(&around);
    KNOWN.iter().filter(|row| row.name == name_of(node)).find(fits)
}

fn is_harmless(name: &str, around: &str) -> bool {
    HARMLESS.iter().any(|(known, within, _)| *known == name && (within.is_empty() || within.contains(&around)))
}

/// Refuses what the reader would drop.
pub(crate) fn check<'a>(text: &'a str, root: Node<'a, 'a>, findings: &mut Findings) {
    if name_of(root) != "workspaceElements" {
        let message = format!("`{}` is no file of CPN Tools: `workspaceElements` is expected", name_of(root));
        return findings.add(|| Diagnostic::at(xml::tag_span(text, root.range().start), message));
    }
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if findings.is_full() {
            return;
        }
        // An element without a row was refused at its parent.
        if let Some(row) = row(node) {
            attributes(node, row, findings);
            words(text, node, findings);
            children(text, node, row, &mut open, findings);
        }
    }
    references(text, root, findings);
}

fn attributes(node: Node<'_, '_>, row: &KnownElement, findings: &mut Findings) {
    // Attributes with a prefix are of another vocabulary.
    for attribute in node.attributes().filter(|attribute| attribute.namespace().is_none()) {
        let name = attribute.name();
        if !row.read.contains(&name) && !row.harmless.contains(&name) {
            let range = attribute.range_qname();
            let known = row.read.iter().chain(row.harmless).copied();
            findings.add(|| {
                let message = format!("`{name}` is no attribute of `{}`", row.name);
                advised(Diagnostic::at(Span::new(range.start, range.end), message), name, known)
            });
        }
    }
}

/// Texts where none is read, and those of which one part would be.
fn words(text: &str, node: Node<'_, '_>, findings: &mut Findings) {
    let says = |child: &Node<'_, '_>| child.is_text() && child.text().is_some_and(|words| !words.trim().is_empty());
    let most = usize::from(TEXTS.contains(&name_of(node)));
    if let Some(words) = node.children().filter(says).nth(most) {
        let range = words.range();
        let name = name_of(node);
        let message = if most == 0 {
            format!("text has no meaning in `{name}`: {:?}", text[range.clone()].trim())
        } else {
            format!("the text in `{name}` is in two parts; only one would be read")
        };
        findings.add(|| Diagnostic::at(Span::new(range.start, range.end), message));
    }
}

fn children<'a>(
    text: &str,
    node: Node<'a, 'a>,
    row: &KnownElement,
    open: &mut Vec<Node<'a, 'a>>,
    findings: &mut Findings,
) {
    let mut seen = NOTHING.to_vec();
    for child in node.children().filter(Node::is_element) {
        if findings.is_full() {
            return;
        }
        let name = name_of(child);
        let span = xml::tag_span(text, child.range().start);
        let wrong = if xml::is_foreign(child) {
            Some(format!("`{name}` is of another namespace than `{}`", row.name))
        } else if row.once.iter().chain(row.many).any(|known| *known == name) {
            let twice = row.once.contains(&name) && seen.contains(&name);
            open.push(child);
            row.once.iter().filter(|known| **known == name).for_each(|known| seen.push(known));
            twice.then(|| format!("`{name}` is there twice, where one is expected"))
        } else if is_harmless(name, row.name) {
            let part = child.descendants().skip(1).find(|part| part.is_element() && OF_NETS.contains(&name_of(*part)));
            part.map(|part| format!("`{}` has no meaning in `{name}`", name_of(part)))
        } else {
            let known = row.once.iter().chain(row.many).copied();
            let diagnostic = Diagnostic::at(span, format!("`{name}` is not known in `{}`", row.name));
            findings.add(|| advised(diagnostic, name, known));
            None
        };
        if let Some(message) = wrong {
            findings.add(|| Diagnostic::at(span, message));
        }
    }
}

fn advised<'k>(diagnostic: Diagnostic, name: &str, known: impl Iterator<Item = &'k str> + Clone) -> Diagnostic {
    match did_you_mean(name, known) {
        Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
        None => diagnostic.help("remove it from a copy of the file if it changes nothing"),
    }
}

/// Ids and what refers to them.
fn references(text: &str, root: Node<'_, '_>, findings: &mut Findings) {
    let of_name = |name: &'static str| root.descendants().filter(move |node| node.has_tag_name(name));
    let mut wrong = |node: Node<'_, '_>, message: String| {
        let span = xml::tag_span(text, node.range().start);
        findings.add(|| Diagnostic::at(span, message));
    };
    let mut ids = HashSet::new();
    for node in of_name("page").chain(of_name("place")).chain(of_name("trans")) {
        match node.attribute("id") {
            None => wrong(node, format!("this `{}` has no `id`", name_of(node))),
            Some(id) if !ids.insert(id) => wrong(node, format!("another node has the id `{id}`")),
            Some(_) => {}
        }
    }
    for page in of_name("page") {
        let nodes = |name: &'static str| -> HashSet<&str> {
            page.children().filter(|node| node.has_tag_name(name)).filter_map(|node| node.attribute("id")).collect()
        };
        let (places, transitions) = (nodes("place"), nodes("trans"));
        for arc in page.children().filter(|node| node.has_tag_name("arc")) {
            for (end, nodes) in [("transend", &transitions), ("placeend", &places)] {
                let end = arc.children().find(|child| child.has_tag_name(end)).and_then(|end| end.attribute("idref"));
                if !end.is_some_and(|end| nodes.contains(end)) {
                    wrong(arc, format!("the arc leads nowhere: the page has no node `{}`", end.unwrap_or_default()));
                }
            }
        }
    }
    // A fusion set may have members that are gone: CPN Tools leaves them, and others name their set themselves.
    for subst in of_name("subst") {
        let pairs = subst.attribute("portsock").unwrap_or_default();
        let pair = |pair: &str| pair.trim().strip_prefix('(').is_some_and(|pair| pair.matches(',').count() == 1);
        let (closed, rest) = pairs.rsplit_once(')').unwrap_or(("", pairs));
        if !rest.trim().is_empty() || pairs.contains(')') && !closed.split(')').all(pair) {
            wrong(subst, format!("`portsock` is not a list of pairs `(port,socket)`: `{pairs}`"));
        }
    }
    for mult in of_name("mult").filter(|mult| !matches!(mult.attribute("insts"), Some("0" | "1"))) {
        wrong(mult, "several instances of a page that is no subpage are not supported".into());
    }
}
