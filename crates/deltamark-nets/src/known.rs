//! The elements and attributes known in an XML file of a P/T net, and their treatment.
//!
//! In: a document, and the table of its dialect. Out: a diagnostic for each element, attribute or stray text that
//! the table does not list, or lists as refused. What stays true: a reader that checks here first drops nothing
//! silently. Everything below `pnml` is *used*, or *harmless* for the reason given, or refused by name.

use std::collections::{HashMap, HashSet};

use deltamark_core::Diagnostic;
use deltamark_core::diagnostic::did_you_mean;
use roxmltree::Node;

use crate::pnml::{elements, label, name_of};
use crate::xml;
use deltamark_core::Findings;

/// The treatment of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Read. Elements may occur any number of times.
    Used,
    /// Read; an element that has two of them is refused.
    Once,
    /// Skipped with everything in it, for this reason. A part of a net in it is refused.
    Harmless(&'static str),
    /// Skipped whatever is in it, for this reason.
    Question(&'static str),
    /// Skipped if it has one of these values, for this reason; otherwise refused.
    Only(&'static [&'static str], &'static str),
    /// Skipped if it is empty; otherwise refused for this reason.
    Empty(&'static str),
    /// Refused, with this message.
    Refused(&'static str),
}

use Role::{Empty, Harmless, Once, Only, Question, Refused, Used};

/// A row of a table: the elements it can be in, its name (attributes begin with `@`), and its role.
pub(crate) type KnownRow = (&'static [&'static str], &'static str, Role);

const COLOURS: &str = "coloured tokens do not belong in a P/T net";
const DATA: &str = "this is a data Petri net: guards and variables are not supported";
const TIMED: &str = "timed transitions are not supported";
const DRAWING: &str = "where and how it is drawn";
const STOCHASTIC: &str = "stochastic nets are not supported: how firing times are distributed is not looked at";

/// Elements that contain a text.
const LABELS: &[&str] = &["name", "initialMarking", "inscription", "label", "type", "arctype", "timed", "priority"];
/// Elements that contain nodes and arcs.
const HOLDERS: &[&str] = &["net", "page"];
const REFERENCES: &[&str] = &["referencePlace", "referenceTransition"];
const NODES: &[&str] = &["place", "transition", "arc", "referencePlace", "referenceTransition"];

/// Standard PNML, and the extensions of PIPE, WoPeD, ProM, pm4py and TINA.
pub(crate) const PNML: &[KnownRow] = &[
    (&["pnml"], "net", Used),
    (&["net"], "@type", Used),
    (&["net"], "@id", Used),
    (&["page"], "@id", Harmless("nothing refers to a page")),
    (&["net"], "name", Once),
    (&["page"], "name", Harmless("pages are gone from the net")),
    (HOLDERS, "page", Used),
    (HOLDERS, "place", Used),
    (HOLDERS, "transition", Used),
    (HOLDERS, "arc", Used),
    (HOLDERS, "referencePlace", Used),
    (HOLDERS, "referenceTransition", Used),
    (HOLDERS, "graphics", Harmless(DRAWING)),
    (HOLDERS, "labels", Harmless("PIPE: notes in the drawing")),
    (HOLDERS, "declaration", Empty("declarations of colours do not belong in a P/T net")),
    (&["net"], "token", Once),
    (&["token"], "@id", Only(&["Default"], "PIPE: the only class of tokens, so they have no colours")),
    (&["token"], "@enabled", Harmless("PIPE: whether the editor adds tokens of this class")),
    (&["token"], "@red", Harmless(DRAWING)),
    (&["token"], "@green", Harmless(DRAWING)),
    (&["token"], "@blue", Harmless(DRAWING)),
    (&["net"], "definition", Harmless("PIPE: a parameter that only rates use")),
    (&["net"], "stategroup", Harmless("PIPE: a set of states for its own analysis")),
    (&["net"], "variables", Refused(DATA)),
    (&["net"], "finalmarkings", Used),
    (&["finalmarkings"], "marking", Used),
    (&["marking"], "place", Used),
    (&["marking/place"], "@idref", Used),
    (&["marking/place"], "text", Once),
    (&["place", "transition", "referencePlace", "referenceTransition"], "@id", Used),
    (&["arc"], "@id", Harmless("nothing refers to an arc, so that its id may even be there twice")),
    (&["place", "transition"], "name", Once),
    (&["arc", "referencePlace", "referenceTransition"], "name", Harmless("a name for people that no property can use")),
    (NODES, "graphics", Harmless(DRAWING)),
    (REFERENCES, "@ref", Used),
    (&["place"], "initialMarking", Once),
    (&["place"], "hlinitialMarking", Refused(COLOURS)),
    (&["place"], "type", Refused("types of tokens do not belong in a P/T net")),
    (&["place"], "capacity", Only(&["0", "Default,0"], "PIPE: 0 stands for no limit")),
    (
        &["place"],
        "@initialMarking",
        Refused("in PNML a marking is written `<initialMarking><text>1</text></initialMarking>`"),
    ),
    (&["transition"], "label", Once),
    (&["transition"], "timed", Once),
    (&["transition"], "priority", Once),
    (&["transition"], "rate", Harmless("PIPE: how soon it fires, or how probably, but not whether it can")),
    (&["transition"], "infiniteServer", Harmless("PIPE: how often it fires at a time, which only speeds it up")),
    (&["transition"], "orientation", Harmless(DRAWING)),
    (&["transition"], "delay", Refused(TIMED)),
    (&["transition"], "interval", Refused(TIMED)),
    (&["transition"], "condition", Refused("conditions on colours do not belong in a P/T net")),
    (&["transition"], "@guard", Refused(DATA)),
    (&["transition"], "readVariable", Refused(DATA)),
    (&["transition"], "writeVariable", Refused(DATA)),
    (&["arc"], "@source", Used),
    (&["arc"], "@target", Used),
    (&["arc"], "@type", Used),
    (&["arc"], "type", Once),
    (&["arc"], "arctype", Once),
    (&["type", "arctype"], "@value", Used),
    (&["arc"], "inscription", Once),
    (&["arc"], "hlinscription", Refused("expressions over colours do not belong in a P/T net")),
    (&["arc"], "@weight", Refused("in PNML a weight is written `<inscription><text>2</text></inscription>`")),
    (&["arc"], "arcpath", Harmless(DRAWING)),
    (&["arc"], "tagged", Only(&["false"], "PIPE: no token is followed on its way")),
    (LABELS, "text", Once),
    (LABELS, "value", Once),
    (LABELS, "graphics", Harmless(DRAWING)),
];

const PLACED: &[&str] = &["place", "transition", "arc", "labels"];
pub(crate) const ARCS: &[&str] = &["arc", "inputArc", "outputArc", "inhibitorArc", "transportArc"];
const SHARED: &[&str] = &["place", "shared-place"];
const STEPS: &[&str] = &["transition", "shared-transition"];
const TAPAAL_COLOURS: &str = "this is a coloured net of TAPAAL; only its nets without colours are read";
const GAME: &str = "nobody plays against anybody";

/// TAPAAL's files (`.tapn`, older ones `.xml`), and those of its engines.
pub(crate) const TAPAAL: &[KnownRow] = &[
    (&["pnml"], "net", Used),
    (&["pnml"], "shared-place", Used),
    (&["pnml"], "shared-transition", Used),
    (&["pnml"], "constant", Used),
    (&["constant"], "@name", Used),
    (&["constant"], "@value", Used),
    (&["pnml"], "query", Question("a question, not the net; the report says that it was not read")),
    (&["pnml"], "k-bound", Harmless("how many tokens TAPAAL's search allows; here fields widen as they need")),
    (&["pnml"], "feature", Used),
    (&["feature"], "@isTimed", Harmless("each interval and each invariant is looked at")),
    (&["feature"], "@isColored", Only(&["false"], "no colours")),
    (&["feature"], "@isGame", Only(&["false"], GAME)),
    (&["feature"], "@isStochastic", Only(&["false"], "no distributions")),
    (&["pnml"], "declaration", Refused(TAPAAL_COLOURS)),
    (&["net"], "@id", Used),
    (&["net"], "@type", Used),
    (&["net"], "@active", Used),
    (&["net"], "place", Used),
    (&["net"], "transition", Used),
    (&["net"], "arc", Used),
    (&["net"], "inputArc", Used),
    (&["net"], "outputArc", Used),
    (&["net"], "inhibitorArc", Used),
    (&["net"], "transportArc", Used),
    (&["net"], "labels", Harmless("notes in the drawing")),
    (&["place", "transition"], "@id", Used),
    (SHARED, "@name", Used),
    (SHARED, "@initialMarking", Used),
    (SHARED, "@invariant", Only(&["< inf", "<inf"], "tokens may get as old as they like")),
    (SHARED, "type", Refused(TAPAAL_COLOURS)),
    (SHARED, "hlinitialMarking", Refused(TAPAAL_COLOURS)),
    (SHARED, "colorinvariant", Refused(TAPAAL_COLOURS)),
    (PLACED, "@positionX", Harmless(DRAWING)),
    (PLACED, "@positionY", Harmless(DRAWING)),
    (PLACED, "@nameOffsetX", Harmless(DRAWING)),
    (PLACED, "@nameOffsetY", Harmless(DRAWING)),
    (PLACED, "@markingOffsetX", Harmless(DRAWING)),
    (PLACED, "@markingOffsetY", Harmless(DRAWING)),
    (PLACED, "@displayName", Harmless(DRAWING)),
    (STEPS, "@name", Used),
    (STEPS, "@urgent", Harmless("time may not pass while it can fire: without time that says nothing")),
    (STEPS, "@player", Only(&["0"], GAME)),
    (STEPS, "@distribution", Refused(STOCHASTIC)),
    (STEPS, "@weight", Refused(STOCHASTIC)),
    (STEPS, "@firingMode", Refused(STOCHASTIC)),
    (&["transition"], "@priority", Used),
    (&["transition"], "@timed", Used),
    (&["transition"], "@infiniteServer", Harmless("left from PIPE's format; TAPAAL does not look at it")),
    (&["transition"], "@angle", Harmless(DRAWING)),
    (ARCS, "@id", Harmless("nothing refers to an arc, so that its id may even be there twice")),
    (ARCS, "@source", Used),
    (ARCS, "@target", Used),
    (ARCS, "@inscription", Used),
    (ARCS, "@weight", Used),
    (&["arc"], "@type", Used),
    (&["arc"], "@transportID", Used),
    (&["transportArc"], "@transition", Used),
    (ARCS, "inscription", Once),
    (&["inscription"], "value", Once),
    (&["inscription"], "text", Once),
    (&["arc"], "arcpath", Harmless(DRAWING)),
    (ARCS, "hlinscription", Refused(TAPAAL_COLOURS)),
    (ARCS, "colorinterval", Refused(TAPAAL_COLOURS)),
];

/// The contents of a tool's `toolspecific`.
enum Tool {
    /// Its declaration that the net is safe is used as a hint.
    Nupn,
    /// Decoration as long as it contains only these elements (`None`: any), and why.
    Decoration(Option<&'static [&'static str]>, &'static str),
    /// Part of the net, which is not supported.
    Semantics(&'static str),
}

/// The known tools. Others may keep time, priorities or kinds of arcs there.
const TOOLS: &[(&str, Tool)] = &[
    ("nupn", Tool::Nupn),
    ("ProM", Tool::Decoration(Some(&[]), "numbers of nodes and names of activities")),
    ("org.pnml.tool", Tool::Decoration(Some(&["tokengraphics"]), DRAWING)),
    ("org.pnml.tool.text", Tool::Decoration(None, "notes of the sample files of ISO/IEC 15909-2")),
    ("org.pnml.tools.epnk.diagraminfo", Tool::Decoration(None, DRAWING)),
    (
        "WoPeD",
        Tool::Decoration(
            Some(WOPED),
            "WoPeD writes the transitions of its operators out; the rest is for its simulation",
        ),
    ),
    ("StochasticPetriNet", Tool::Semantics(STOCHASTIC)),
    ("Yasper", Tool::Semantics("Yasper's roles, emitters and collectors are not supported")),
];

const WOPED: &[&str] = &[
    "operator",
    "trigger",
    "transitionResource",
    "time",
    "timeUnit",
    "orientation",
    "probability",
    "displayProbabilityOn",
    "displayProbabilityPosition",
    "bounds",
    "scale",
    "treeWidth",
    "treeWidthRight",
    "treeHeightOverview",
    "treePanelVisible",
    "overviewPanelVisible",
    "verticalLayout",
    "resources",
    "simulations",
    "partnerLinks",
    "variables",
    "description",
];

/// Attributes of `toolspecific`. The contents are identified by the tool's name.
const TOOL_ATTRIBUTES: &[&str] = &["tool", "version", "localNodeID", "activity"];

/// The namespace of `xsi:schemaLocation` and `xsi:type`.
const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema-instance";
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// Reports everything below `root` that a reader of this dialect would not understand.
pub(crate) fn check(text: &str, root: Node<'_, '_>, table: &[KnownRow], findings: &mut Findings) {
    let rows =
        table.iter().flat_map(|(parents, name, role)| parents.iter().map(move |parent| ((*parent, *name), *role)));
    let mut checker = Checker { text, rows: rows.collect(), table, findings };
    let mut open = vec![(root, name_of(root))];
    while let Some((node, context)) = open.pop() {
        if checker.findings.is_full() {
            return;
        }
        checker.element(node, context, &mut open);
    }
}

struct Checker<'t> {
    text: &'t str,
    rows: HashMap<(&'t str, &'t str), Role>,
    table: &'t [KnownRow],
    findings: &'t mut Findings,
}

impl Checker<'_> {
    /// Checks the contents of an element; used children are pushed to `open`.
    fn element<'a>(&mut self, node: Node<'a, 'a>, context: &'a str, open: &mut Vec<(Node<'a, 'a>, &'a str)>) {
        self.attributes(node, context);
        let mut seen = HashSet::new();
        let mut texts = 0;
        for child in node.children() {
            // An element may have very many children, each with an error.
            if self.findings.is_full() {
                return;
            }
            if child.is_text() && !matches!(context, "text" | "value") {
                self.stray(child, context);
            }
            if !child.is_element() {
                continue;
            }
            let name = name_of(child);
            if xml::is_foreign(child) {
                let namespace = child.tag_name().namespace().unwrap_or_default();
                self.refuse(child, format!("`{name}` is of another namespace than `{}`: {namespace:?}", name_of(node)));
                continue;
            }
            if name == "toolspecific" {
                self.tool(child);
                continue;
            }
            texts += usize::from(matches!(name, "text" | "value"));
            let role = self.rows.get(&(context, name)).copied();
            if role == Some(Once) && (!seen.insert(name) || texts > 1) {
                self.refuse(child, format!("`{name}` is there twice, where one is expected"));
                continue;
            }
            match role {
                Some(Used | Once) => {
                    let context = if (context, name) == ("marking", "place") { "marking/place" } else { name };
                    open.push((child, context));
                }
                Some(Harmless(_)) => self.skip(child),
                Some(Question(_)) => {}
                Some(Only(values, reason)) => {
                    let words = label(self.text, child).map(|(words, _)| words).unwrap_or_default();
                    if !values.contains(&words.trim()) {
                        self.refuse(child, other_value(name, words.trim(), values, reason));
                    }
                }
                Some(Empty(reason)) => {
                    if child.descendants().any(|part| part != child && (part.is_element() || part.is_text())) {
                        self.refuse(child, reason.into());
                    }
                }
                Some(Refused(reason)) => self.refuse(child, reason.into()),
                None => {
                    let span = xml::tag_span(self.text, child.range().start);
                    let help = self.close(context, name, false);
                    self.findings.add(|| {
                        Diagnostic::at(span, format!("`{name}` is not known in `{}`", name_of(node))).help(help)
                    });
                }
            }
        }
    }

    fn attributes(&mut self, node: Node<'_, '_>, context: &str) {
        for attribute in node.attributes() {
            let name = attribute.name();
            let known = match attribute.namespace() {
                // The location of the schema and the treatment of white space; but not the type of an element.
                Some(SCHEMA) if name != "type" => continue,
                Some(XML) => continue,
                Some(_) => None,
                None => self.rows.get(&(context, format!("@{name}").as_str())).copied(),
            };
            let message = match known {
                Some(Used | Once | Harmless(_) | Question(_)) => continue,
                Some(Only(values, _)) if values.contains(&attribute.value().trim()) => continue,
                Some(Only(values, reason)) => other_value(name, attribute.value().trim(), values, reason),
                Some(Refused(reason) | Empty(reason)) => reason.into(),
                None => format!("the attribute `{name}` is not known in `{}`", name_of(node)),
            };
            let help = if known.is_none() { Some(self.close(context, name, true)) } else { None };
            self.findings.add(|| {
                let diagnostic = Diagnostic::at(attribute.range(), message);
                match help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                }
            });
        }
    }

    /// Text between elements has no meaning in any tool, so it must be an error.
    fn stray(&mut self, node: Node<'_, '_>, context: &str) {
        let range = node.range();
        let words = self.text[range.clone()].trim();
        if node.text().unwrap_or_default().trim().is_empty() || words.is_empty() {
            return;
        }
        let start = range.start + self.text[range].find(words).unwrap_or(0);
        let first = words.chars().take(40).collect::<String>();
        self.findings.add(|| {
            Diagnostic::at(start..start + words.len(), format!("text has no meaning in `{context}`: {first:?}"))
                .help("the text of a label is written in an element `text`")
        });
    }

    /// Refuses a part of the net in an element that is skipped.
    fn skip<'a>(&mut self, node: Node<'a, 'a>) {
        if let Some(part) = xml::part_of_net(node) {
            self.refuse(part, format!("`{}` has no meaning in `{}`", name_of(part), name_of(node)));
        }
    }

    fn tool<'a>(&mut self, node: Node<'a, 'a>) {
        let tool = node.attribute("tool").unwrap_or_default();
        for attribute in node.attributes().filter(|attribute| !TOOL_ATTRIBUTES.contains(&attribute.name())) {
            let message = format!("the attribute `{}` is not known in `toolspecific`", attribute.name());
            self.findings.add(|| Diagnostic::at(attribute.range(), message));
        }
        match TOOLS.iter().find(|(name, _)| *name == tool).map(|(_, tool)| tool) {
            Some(Tool::Nupn) => {}
            Some(Tool::Decoration(known, reason)) => {
                self.skip(node);
                let is_known = |part: Node<'_, '_>| known.is_none_or(|known| known.contains(&name_of(part)));
                for part in elements(node).filter(|&part| !is_known(part)) {
                    if self.findings.is_full() {
                        return;
                    }
                    let message = format!("`{}` is not known in what {tool} keeps here ({reason})", name_of(part));
                    self.refuse(part, message);
                }
            }
            Some(Tool::Semantics(reason)) => self.refuse(node, (*reason).into()),
            None => {
                let span = xml::tag_span(self.text, node.range().start);
                self.findings.add(|| {
                    let message = format!("what the tool `{tool}` keeps in `toolspecific` is not known");
                    Diagnostic::at(span, message)
                        .help("it may be time, priorities or kinds of arcs; if it changes nothing, remove the element")
                });
            }
        }
    }

    /// Advice on an unknown name: perhaps it is misspelt.
    fn close(&self, context: &str, name: &str, attribute: bool) -> String {
        let here = self.table.iter().filter(|(parents, ..)| parents.contains(&context));
        let names = here.map(|(_, name, _)| *name).filter(|name| name.starts_with('@') == attribute);
        match did_you_mean(name, names.map(|name| name.trim_start_matches('@'))) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "it may change what the net does; if it does not, remove it".into(),
        }
    }

    fn refuse(&mut self, node: Node<'_, '_>, message: String) {
        let span = xml::tag_span(self.text, node.range().start);
        self.findings.add(|| Diagnostic::at(span, message));
    }
}

/// The message for a value that is not harmless.
fn other_value(name: &str, value: &str, values: &[&str], reason: &str) -> String {
    match name {
        "capacity" => "places with a capacity are not supported".into(),
        "invariant" => format!("the invariant `{value}` limits the age of tokens: timed nets are not supported"),
        "isColored" => TAPAAL_COLOURS.into(),
        "isGame" | "player" => "this is a game of TAPAAL, with two players; only nets without players are read".into(),
        "isStochastic" => STOCHASTIC.into(),
        "id" => format!("tokens of the class `{value}` are coloured; PIPE's nets are read with the class Default only"),
        _ => format!("`{name}` is supported with the value {} only ({reason})", values.join(" or ")),
    }
}

#[cfg(test)]
mod tests;
