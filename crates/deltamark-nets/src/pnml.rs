//! PNML, the XML format of ISO 15909-2, restricted to P/T nets.
//!
//! In: the text of a file. Out: a [`Net`] that [`Net::validate`] accepts, or up to twenty diagnostics, each with
//! its exact span. Pages may nest, reference nodes may chain; both are resolved. NUPN's declaration that the net
//! is safe is kept as a hint.
//!
//! Beyond the standard, because tools write it: `<type value="inhibitor"/>` (or `test`, `read`) in an arc,
//! `<value>` in place of `<text>`, a `<label>` for a transition, `<finalmarkings>`, files without namespace or net
//! type, and PIPE's immediate and timed transitions, which become priorities. TAPAAL's files use the same elements
//! and have a reader of their own. What stays true: what neither reader nor the list of harmless elements in
//! `known.rs` knows is refused by name.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::text::utf8;
use deltamark_core::{Control, Diagnostic, Findings, Span};
use roxmltree::Node;

use crate::build::{ArcKind, Builder};
use crate::known;
use crate::net::{Net, unique_names};
use crate::number::number;
use crate::{tapaal, xml};

/// Reads the one P/T net of a PNML file.
pub fn parse(text: &str) -> Result<Net, Vec<Diagnostic>> {
    parse_under(text, &Control::new())
}

/// Reads a net from bytes, which should be UTF-8 text.
pub fn parse_bytes(bytes: &[u8]) -> Result<Net, Vec<Diagnostic>> {
    parse(utf8(bytes)?)
}

/// The same, unless `control` stops it.
pub fn parse_under(text: &str, control: &Control) -> Result<Net, Vec<Diagnostic>> {
    let document = xml::open_under(text, control).map_err(|diagnostic| vec![diagnostic])?;
    let root = document.root_element();
    if tapaal::wrote(root) {
        return tapaal::parse(text, root, control);
    }
    let net = the_net(text, root).map_err(|diagnostic| vec![diagnostic])?;
    let mut reader = PnmlReader { text, findings: Findings::under(control), ..PnmlReader::default() };
    known::check(text, root, known::PNML, &mut reader.findings);
    reader.collect(net);
    reader.resolve_references();
    reader.connect();
    reader.final_markings();
    reader.finish(net)
}

/// The net element, if there is just one and it is a P/T net.
fn the_net<'a>(text: &str, root: Node<'a, 'a>) -> Result<Node<'a, 'a>, Diagnostic> {
    let root_span = xml::tag_span(text, root.range().start);
    if name_of(root) != "pnml" {
        let message = format!("this is XML, but not PNML: its outermost element is `{}`", name_of(root));
        return Err(Diagnostic::at(root_span, message).help("a PNML file starts with `<pnml>`"));
    }
    let nets: Vec<_> = elements(root).filter(|&child| name_of(child) == "net").collect();
    let &[net] = nets.as_slice() else {
        let (span, count) = match nets.get(1) {
            Some(second) => (xml::tag_span(text, second.range().start), nets.len().to_string()),
            None => (root_span, "no".into()),
        };
        let plural = if nets.len() == 1 { "" } else { "s" };
        let finding = Diagnostic::at(span, format!("the file holds {count} net{plural}, where one is expected"));
        return Err(if nets.len() > 1 { finding.help("put each net into a file of its own") } else { finding });
    };
    let Some(kind) = net.attribute_node("type") else { return Ok(net) };
    let (value, span) = (kind.value().trim(), Span::from(kind.range_value()));
    let short = value.rsplit(['/', '#']).next().unwrap_or(value).to_ascii_lowercase();
    let help = "P/T nets and symmetric nets are read";
    match short.as_str() {
        _ if value.eq_ignore_ascii_case("p/t net") => Ok(net),
        "ptnet" | "ptnetb" | "ptnet.pntd" | "ptnetb.pntd" => Ok(net),
        // Process mining tools declare this type for P/T nets.
        "pnmlcoremodel" => Ok(net),
        "symmetricnet" | "highlevelnet" | "pt-hlpng" | "hlpn" | "hlpng" => {
            Err(Diagnostic::at(span, format!("this is a coloured net (`{short}`), not a P/T net"))
                .help("it is read as `--format pnml` by whoever reads coloured nets too"))
        }
        _ if short.contains("time") || short.contains("tpn") => {
            Err(Diagnostic::at(span, format!("this is a timed net (`{short}`), not a P/T net")).help(help))
        }
        _ => Err(Diagnostic::at(span, format!("nets of type `{value}` are not known")).help(help)),
    }
}

/// A node of the net graph, by its index.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Place(u32),
    Transition(u32),
    /// A reference to another node; an index into the references.
    Reference(u32),
    /// An arc, a page: not an end of an arc.
    Other,
}

/// A reference node.
struct Reference<'a> {
    id: &'a str,
    of_place: bool,
    to: &'a str,
    span: Span,
    stage: Stage,
}

/// The state of resolving a reference.
#[derive(Clone, Copy)]
enum Stage {
    Fresh,
    /// Being followed: revisiting it closes a cycle.
    OnChain,
    /// Resolved; `None` if it is broken, which has been reported.
    Leads(Option<Target>),
}

/// The contents of the file, before they become a net.
#[derive(Default)]
struct PnmlReader<'a> {
    text: &'a str,
    findings: Findings,
    builder: Builder,
    ids: HashMap<&'a str, Target>,
    references: Vec<Reference<'a>>,
    arcs: Vec<Node<'a, 'a>>,
    /// Elements `finalmarkings`, resolved later as arcs are.
    finals: Vec<Node<'a, 'a>>,
    /// PIPE's attributes of each transition.
    firings: Vec<Firing<'a>>,
}

/// PIPE's attributes of a transition.
struct Firing<'a> {
    node: Node<'a, 'a>,
    timed: Option<bool>,
    priority: Option<u32>,
}

impl<'a> PnmlReader<'a> {
    /// Visits every page. Arcs are resolved later, since they may precede their nodes.
    fn collect(&mut self, net: Node<'a, 'a>) {
        let mut open = vec![elements(net)];
        while let Some(children) = open.last_mut() {
            let entry = size_of::<(&str, Target)>() + 1;
            if self.findings.is_full_for(self.ids.len(), self.ids.capacity(), entry) {
                return;
            }
            let Some(node) = children.next() else {
                open.pop();
                continue;
            };
            match name_of(node) {
                "page" => {
                    if let Some(id) = node.attribute("id") {
                        self.declare(node, id, Target::Other);
                    }
                    open.push(elements(node));
                }
                "place" => self.place(node),
                "transition" => self.transition(node),
                "referencePlace" | "referenceTransition" => self.reference(node),
                "arc" => self.arcs.push(node),
                "finalmarkings" => self.finals.push(node),
                "toolspecific" if node.attribute("tool") == Some("nupn") => {
                    let safe = elements(node)
                        .any(|part| name_of(part) == "structure" && part.attribute("safe") == Some("true"));
                    self.builder.net.declared_safe |= safe;
                }
                // Only elements that `known` calls harmless arrive here unrefused.
                _harmless => {}
            }
        }
    }

    fn place(&mut self, node: Node<'a, 'a>) {
        let Some(id) = self.id(node) else { return };
        let initial = child(node, "initialMarking").map_or(0, |marking| self.number(marking, "marking", 0));
        let place = self.builder.place(id, initial);
        self.builder.net.places[place as usize].name = self.name(node).unwrap_or_default();
        self.declare(node, id, Target::Place(place));
    }

    fn transition(&mut self, node: Node<'a, 'a>) {
        let Some(id) = self.id(node) else { return };
        let label = child(node, "label").and_then(|label| self.words(label));
        let timed = child(node, "timed").and_then(|timed| self.truth(timed));
        let priority = child(node, "priority").map(|priority| self.number(priority, "priority", 0));
        self.firings.push(Firing { node, timed, priority });
        let transition = self.builder.transition(id);
        let name = self.name(node).unwrap_or_default();
        let built = &mut self.builder.net.transitions[transition as usize];
        (built.name, built.label) = (name, label);
        self.declare(node, id, Target::Transition(transition));
    }

    fn reference(&mut self, node: Node<'a, 'a>) {
        let Some(id) = self.id(node) else { return };
        let Some(to) = self.attribute(node, "ref") else { return };
        let index = self.references.len() as u32;
        let of_place = name_of(node) == "referencePlace";
        self.references.push(Reference { id, of_place, to: to.0, span: to.1, stage: Stage::Fresh });
        self.declare(node, id, Target::Reference(index));
    }

    /// Follows every chain of references to its end, each link once.
    fn resolve_references(&mut self) {
        for first in 0..self.references.len() {
            let (mut chain, mut at) = (vec![], first);
            let end = loop {
                let link = &mut self.references[at];
                let (to, span) = (link.to, link.span);
                match link.stage {
                    Stage::Leads(end) => break end,
                    Stage::OnChain => {
                        self.findings
                            .add(|| Diagnostic::at(span, format!("the reference to `{to}` goes round in a circle")));
                        break None;
                    }
                    Stage::Fresh => link.stage = Stage::OnChain,
                }
                chain.push(at);
                match self.ids.get(to) {
                    Some(&Target::Reference(next)) => at = next as usize,
                    Some(&Target::Other) | None => {
                        self.nowhere("reference", to, span);
                        break None;
                    }
                    Some(&node) => break Some(node),
                }
            };
            for member in chain {
                let link = &mut self.references[member];
                link.stage = Stage::Leads(end);
                let fits = match end {
                    Some(Target::Place(_)) => link.of_place,
                    Some(_) => !link.of_place,
                    None => true,
                };
                if !fits {
                    let kind = if link.of_place { "place" } else { "transition" };
                    let message = format!("a reference to a {kind} leads to `{}`, which is none", link.to);
                    let span = link.span;
                    self.findings.add(|| Diagnostic::at(span, message));
                }
            }
        }
    }

    /// Turns arc elements into arcs of transitions.
    fn connect(&mut self) {
        for node in std::mem::take(&mut self.arcs) {
            let (held, room) = self.builder.arcs_held();
            if self.findings.is_full_for(held, room, Builder::ARC_BYTES) {
                return;
            }
            let (kind, weight) = (self.arc_kind(node), self.weight(node));
            let (source, target) = (self.end(node, "source"), self.end(node, "target"));
            let (Some(kind), Some(source), Some(target)) = (kind, source, target) else { continue };
            let (transition, place, kind) = match (source, target, kind) {
                (Target::Place(place), Target::Transition(transition), kind) => (transition, place, kind),
                (Target::Transition(transition), Target::Place(place), ArcKind::Input) => {
                    (transition, place, ArcKind::Output)
                }
                (Target::Transition(_), Target::Place(_), _) => {
                    self.refuse(node, "an inhibitor or read arc must lead from a place to a transition");
                    continue;
                }
                (Target::Place(_), ..) => {
                    self.refuse(node, "an arc leads from a place to a place");
                    continue;
                }
                _ => {
                    self.refuse(node, "an arc leads from a transition to a transition");
                    continue;
                }
            };
            if self.builder.arc(transition, place, kind, weight).is_err() {
                self.refuse(node, "the weights of the arcs between these two nodes add up to more than 4294967295");
            }
        }
    }

    /// Reads the final markings of the file: `<marking><place idref="p"><text>1</text></place></marking>`.
    fn final_markings(&mut self) {
        for marking in std::mem::take(&mut self.finals).into_iter().flat_map(elements) {
            let mut tokens = BTreeMap::new();
            for part in elements(marking) {
                let Some(end) = self.end(part, "idref") else { continue };
                let count = self.number(part, "marking", 0);
                match end {
                    Target::Place(place) if tokens.insert(place, count).is_none() => {}
                    Target::Place(_) => self.refuse(part, "a final marking names this place twice"),
                    _ => self.refuse(part, "a final marking gives tokens to a transition"),
                }
            }
            let tokens = tokens.into_iter().filter(|&(_, count)| count > 0).collect();
            self.builder.net.final_markings.push(tokens);
        }
    }

    /// The kind of an arc by its own attributes: [`ArcKind::Input`] means an ordinary one.
    fn arc_kind(&mut self, node: Node<'a, 'a>) -> Option<ArcKind> {
        let attribute = node.attribute_node("type").map(|a| (Cow::Borrowed(a.value()), Span::from(a.range_value())));
        let mut words: Vec<(Cow<'a, str>, Span)> = attribute.into_iter().collect();
        for child in elements(node).filter(|&child| matches!(name_of(child), "type" | "arctype")) {
            let value = child.attribute_node("value");
            words.extend(value.map(|value| (Cow::Borrowed(value.value()), Span::from(value.range_value()))));
            words.extend(label(self.text, child));
        }
        let mut kinds = Vec::new();
        for (word, span) in words {
            let kind = match word.trim().to_ascii_lowercase().as_str() {
                "" | "normal" => ArcKind::Input,
                "inhibitor" => ArcKind::Inhibitor,
                "test" | "read" => ArcKind::Read,
                _ => {
                    self.findings.add(|| {
                        Diagnostic::at(span, format!("arcs of type `{}` are not supported", word.trim()))
                            .help("known types are normal, inhibitor, test and read")
                    });
                    return None;
                }
            };
            if kinds.iter().any(|&other| other != kind) {
                self.findings.add(|| Diagnostic::at(span, "the arc has two types, which differ"));
                return None;
            }
            kinds.push(kind);
        }
        Some(kinds.first().copied().unwrap_or(ArcKind::Input))
    }

    fn weight(&mut self, node: Node<'a, 'a>) -> u32 {
        child(node, "inscription").map_or(1, |inscription| self.number(inscription, "weight", 1))
    }

    /// The node that an arc or a final marking names.
    fn end(&mut self, node: Node<'a, 'a>, attribute: &str) -> Option<Target> {
        let (id, span) = self.attribute(node, attribute)?;
        let what = if attribute == "idref" { "final marking" } else { "arc" };
        match self.ids.get(id) {
            Some(&Target::Reference(index)) => match self.references[index as usize].stage {
                Stage::Leads(end) => end,
                _ => None,
            },
            Some(Target::Other) | None => {
                self.nowhere(what, id, span);
                None
            }
            Some(&node) => Some(node),
        }
    }

    /// Reports that an id is not the id of a node.
    fn nowhere(&mut self, kind: &str, id: &str, span: Span) {
        let PnmlReader { findings, builder, references, .. } = self;
        findings.add(|| {
            let diagnostic = Diagnostic::at(span, format!("the {kind} leads nowhere: there is no node `{id}`"));
            // In the order of the file, so that of equally good suggestions the first is made.
            let places = builder.net.places.iter().map(|place| place.id.as_str());
            let transitions = builder.net.transitions.iter().map(|transition| transition.id.as_str());
            let nodes = places.chain(transitions).chain(references.iter().map(|reference| reference.id));
            match did_you_mean(id, nodes) {
                Some(known) => diagnostic.help(format!("did you mean `{known}`?")),
                None => diagnostic,
            }
        });
    }

    /// The net, with display names, or the diagnostics.
    fn finish(mut self, net: Node<'a, 'a>) -> Result<Net, Vec<Diagnostic>> {
        if self.findings.is_full() {
            return self.findings.or(self.builder.net);
        }
        let id = net.attribute("id").unwrap_or_default();
        self.builder.net.name = self.name(net).unwrap_or_else(|| tidy(id));
        let built = &mut self.builder.net;
        built.place_namesakes = unique_names(built.places.iter_mut().map(|place| (place.id.as_str(), &mut place.name)));
        built.transition_namesakes =
            unique_names(built.transitions.iter_mut().map(|transition| (transition.id.as_str(), &mut transition.name)));
        self.rank();
        if self.builder.net.places.is_empty() && self.findings.is_empty() {
            let span = xml::tag_span(self.text, net.range().start);
            self.findings.add(|| Diagnostic::at(span, "the net has no places"));
        }
        self.findings.or(self.builder.net)
    }

    /// Turns PIPE's attributes of transitions into priorities: immediate ones, by their own priority, precede
    /// timed ones. If all are alike, there are no priorities.
    fn rank(&mut self) {
        let firings = std::mem::take(&mut self.firings);
        let has = |timed: Option<bool>| firings.iter().any(|firing| firing.timed == timed);
        let (timed, immediate) = (has(Some(true)), has(Some(false)));
        if let Some(firing) = firings.iter().find(|firing| firing.timed.is_none()).filter(|_| timed || immediate) {
            self.refuse(firing.node, "this transition does not say whether it is timed, as others of the file do");
            return;
        }
        let differ = firings.windows(2).any(|pair| pair[0].priority != pair[1].priority);
        if !timed && !immediate && differ {
            let span =
                firings.iter().find_map(|firing| child(firing.node, "priority")).map_or(0..0, |node| node.range());
            self.findings.add(|| {
                Diagnostic::at(xml::tag_span(self.text, span.start), "priorities of transitions are not supported here")
                    .help("they are read as PIPE writes them, of transitions with `<timed>`")
            });
            return;
        }
        let rank = |firing: &Firing| match firing.timed {
            // PIPE's own default.
            Some(false) => 1 + u64::from(firing.priority.unwrap_or(1)),
            _ => 0,
        };
        let ranks: Vec<u64> = firings.iter().map(rank).collect();
        if ranks.windows(2).all(|pair| pair[0] == pair[1]) {
            return;
        }
        for ((transition, &rank), firing) in self.builder.net.transitions.iter_mut().zip(&ranks).zip(&firings) {
            let Ok(rank) = u32::try_from(rank) else {
                let span = xml::tag_span(self.text, firing.node.range().start);
                self.findings.add(|| Diagnostic::at(span, "the priority of this transition is too large"));
                return;
            };
            transition.priority = rank;
        }
        let immediate = firings.iter().filter(|firing| firing.timed == Some(false)).count();
        self.builder.net.notes.push(match firings.len() - immediate {
            0 => "transitions fire by their priorities; weights of the choice among equal ones are not looked at".into(),
            timed => format!(
                "{immediate} immediate transitions have priority over {timed} timed ones, by their priorities; rates are not looked at"
            ),
        });
    }

    /// The truth value in a label, reporting an invalid one.
    fn truth(&mut self, node: Node<'a, 'a>) -> Option<bool> {
        let (words, span) = label(self.text, node)?;
        match words.trim() {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                self.findings.add(|| Diagnostic::at(span, format!("`{other}` is neither `true` nor `false`")));
                None
            }
        }
    }

    /// Registers an id, which must be new.
    fn declare(&mut self, node: Node<'a, 'a>, id: &'a str, target: Target) {
        if self.ids.contains_key(id) {
            let span = node.attribute_node("id").map_or(0..0, |attribute| attribute.range_value());
            self.findings.add(|| Diagnostic::at(span, format!("the id `{id}` is used twice")));
        } else {
            self.ids.insert(id, target);
        }
    }

    /// The id of a node, which must be present and printable.
    fn id(&mut self, node: Node<'a, 'a>) -> Option<&'a str> {
        let (id, span) = self.attribute(node, "id")?;
        if id.trim().is_empty() || id.contains(char::is_control) {
            self.findings.add(|| Diagnostic::at(span, "an id must not be empty or contain control characters"));
            return None;
        }
        Some(id)
    }

    /// An attribute that must be present.
    fn attribute(&mut self, node: Node<'a, 'a>, name: &str) -> Option<(&'a str, Span)> {
        match node.attribute_node(name) {
            Some(attribute) => Some((attribute.value(), attribute.range_value().into())),
            None => {
                let span = xml::tag_span(self.text, node.range().start);
                let message = format!("this `{}` has no attribute `{name}`", name_of(node));
                self.findings.add(|| Diagnostic::at(span, message));
                None
            }
        }
    }

    /// The text of the `name` of an element, if there is any.
    fn name(&self, node: Node<'a, 'a>) -> Option<String> {
        child(node, "name").and_then(|name| self.words(name))
    }

    fn words(&self, node: Node<'a, 'a>) -> Option<String> {
        label(self.text, node).map(|(words, _)| tidy(&words)).filter(|words| !words.trim().is_empty())
    }

    /// The number in a label such as `initialMarking`, at least `least`; reports an invalid one.
    fn number(&mut self, node: Node<'a, 'a>, what: &str, least: u32) -> u32 {
        let Some((words, span)) = label(self.text, node) else { return least };
        // PIPE writes the class of tokens first, of which there is one.
        let words = words.trim();
        match number(words.strip_prefix("Default,").unwrap_or(words), what, least) {
            Ok(number) => number,
            Err((message, help)) => {
                self.findings.add(|| Diagnostic::at(span, message).help(help));
                least
            }
        }
    }

    fn refuse(&mut self, node: Node<'a, 'a>, message: &str) {
        let span = xml::tag_span(self.text, node.range().start);
        self.findings.add(|| Diagnostic::at(span, message));
    }
}

/// The text of a label, which is in its `text` (in older files: `value`), and the span of its first visible part
/// in the file. `None` if there is no such element.
pub fn label<'a>(text: &str, node: Node<'a, 'a>) -> Option<(Cow<'a, str>, Span)> {
    let holder = elements(node).find(|&child| matches!(name_of(child), "text" | "value"))?;
    let mut parts = holder.children().filter(Node::is_text);
    let Some(first) = parts.next() else {
        return Some((Cow::Borrowed(""), xml::tag_span(text, holder.range().start)));
    };
    let mut words = Cow::Borrowed(first.text().unwrap_or_default());
    for part in parts {
        words.to_mut().push_str(part.text().unwrap_or_default());
    }
    let source = first.range();
    let visible = text[source.clone()].trim();
    let start = source.start + text[source.clone()].find(visible).unwrap_or(0);
    Some((words, Span::new(start, start + visible.len())))
}

/// A name on one line: white space with a line break in it becomes one space, or is removed at the ends, since it
/// comes from the layout of the XML.
pub fn tidy(words: &str) -> String {
    if !words.contains(char::is_control) {
        return words.into();
    }
    words.split(|c: char| c.is_control()).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The name of an element, without its namespace.
pub fn name_of<'a>(node: Node<'a, 'a>) -> &'a str {
    node.tag_name().name()
}

/// The first child element of this name.
pub(crate) fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    elements(node).find(|&child| name_of(child) == name)
}

/// The child elements.
pub fn elements<'a>(node: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(Node::is_element)
}
