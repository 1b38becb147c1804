//! Untimed nets of TAPAAL: the files of its editor (`.tapn`, older ones `.xml`) and those of its engines.
//!
//! In: XML whose root element is `pnml`, but whose places and arcs have in attributes what PNML has in elements.
//! Out: a [`Net`], or diagnostics. From <https://www.tapaal.net>; the formats are documented only by its files.
//!
//! Several nets are *components* of one: places and transitions with the name of a shared one are identified with
//! it. What stays true: time is refused wherever it could matter. The interval `[0,inf)` and the invariant `< inf`
//! are no restrictions; so a transport arc takes a token here and adds one there (its two halves must pair), and
//! urgency has no effect. Queries are not read, which the net's notes mention, as they mention which components
//! are inactive.

use std::collections::{BTreeMap, HashMap};

use deltamark_core::{Control, Diagnostic, Span};
use roxmltree::Node;

use crate::build::{ArcKind, Builder};
use crate::known::{self, ARCS};
use crate::net::{Net, unique_names};
use crate::number::number;
use crate::pnml::{child, elements, label, name_of, tidy};
use crate::xml;
use deltamark_core::Findings;

/// Whether TAPAAL wrote this: it uses attributes that PNML does not have.
pub(crate) fn wrote(root: Node<'_, '_>) -> bool {
    const OWN: &[&str] = &["shared-place", "shared-transition", "constant", "k-bound", "feature", "query"];
    let own_arc = |name: &str| matches!(name, "inputArc" | "outputArc" | "inhibitorArc" | "transportArc");
    let own_node = |node: Node<'_, '_>| {
        let name = name_of(node);
        own_arc(name) || (name == "place" && ["initialMarking", "invariant"].iter().any(|&own| node.has_attribute(own)))
    };
    name_of(root) == "pnml"
        && elements(root).any(|part| {
            OWN.contains(&name_of(part))
                || name_of(part) == "net" && (part.has_attribute("active") || elements(part).any(own_node))
        })
}

/// Reads the composition of the active nets.
pub(crate) fn parse<'a>(text: &'a str, root: Node<'a, 'a>, control: &Control) -> Result<Net, Vec<Diagnostic>> {
    let mut reader = TapaalReader { text, findings: Findings::under(control), ..TapaalReader::default() };
    known::check(text, root, known::TAPAAL, &mut reader.findings);
    reader.shared(root);
    let nets = elements(root).filter(|&part| name_of(part) == "net");
    let (on, off): (Vec<_>, Vec<_>) = nets.partition(|net| net.attribute("active") != Some("false"));
    reader.components = on.len();
    for &net in &on {
        reader.component(net);
    }
    reader.tell(root, &off);
    reader.finish(root, on.first().and_then(|net| net.attribute("id")))
}

/// A node of the composed net.
#[derive(Clone, Copy, PartialEq)]
enum NodeId {
    Place(u32),
    Transition(u32),
}

/// The value of an attribute, and its span.
type Value<'a> = (&'a str, Span);

#[derive(Default)]
struct TapaalReader<'a> {
    text: &'a str,
    findings: Findings,
    builder: Builder,
    constants: HashMap<&'a str, &'a str>,
    /// Shared places and transitions, by name.
    shared: HashMap<&'a str, NodeId>,
    /// The number of composed components.
    components: usize,
    /// The value of `priority` and of `timed` that all transitions have.
    firing: Option<(Option<&'a str>, Option<&'a str>)>,
    /// The halves of transport arcs of the current component, by transition and number.
    halves: BTreeMap<(u32, &'a str), Vec<Half<'a>>>,
}

/// An arc of type `transport`: the one from a place to a transition or the one from there to a place.
struct Half<'a> {
    arc: Node<'a, 'a>,
    enters: bool,
    weight: u32,
}

impl<'a> TapaalReader<'a> {
    fn shared(&mut self, root: Node<'a, 'a>) {
        for part in elements(root) {
            let kind = name_of(part);
            if kind == "constant" {
                if let (Some((name, span)), Some((value, _))) =
                    (self.attribute(part, "name"), self.attribute(part, "value"))
                    && self.constants.insert(name, value).is_some()
                {
                    self.findings.add(|| Diagnostic::at(span, format!("the constant `{name}` is there twice")));
                }
                continue;
            }
            if kind != "shared-place" && kind != "shared-transition" {
                continue;
            }
            let Some((name, span)) = self.name(part, "name") else { continue };
            let end = if kind == "shared-place" {
                let initial = self.marking(part);
                NodeId::Place(self.builder.place(name, initial))
            } else {
                NodeId::Transition(self.builder.transition(name))
            };
            if self.shared.insert(name, end).is_some() {
                self.findings.add(|| Diagnostic::at(span, format!("two shared nodes are called `{name}`")));
            }
        }
    }

    fn component(&mut self, net: Node<'a, 'a>) {
        if let Some(kind) = net.attribute_node("type")
            && !matches!(kind.value().trim(), "P/T net" | "http://www.pnml.org/version-2009/grammar/ptnet")
        {
            let message = format!("nets of type `{}` are not known", kind.value());
            self.findings
                .add(|| Diagnostic::at(kind.range_value(), message).help("TAPAAL's nets have the type `P/T net`"));
        }
        if let Some(active) = net.attribute_node("active").filter(|active| active.value() != "true") {
            self.findings.add(|| Diagnostic::at(active.range_value(), "a net is active, `true`, or not, `false`"));
        }
        let component = net.attribute("id").unwrap_or_default();
        let mut nodes: HashMap<&'a str, NodeId> = HashMap::new();
        for node in elements(net).filter(|&node| matches!(name_of(node), "place" | "transition")) {
            let Some((id, span)) = self.name(node, "id") else { continue };
            let name = node.attribute("name").unwrap_or(id);
            if let Some(end) = self.node(node, component, id, name)
                && nodes.insert(id, end).is_some()
            {
                self.findings.add(|| Diagnostic::at(span, format!("the id `{id}` is used twice")));
            }
        }
        for arc in elements(net).filter(|&node| ARCS.contains(&name_of(node))) {
            if self.findings.is_full() {
                return;
            }
            self.arc(arc, &nodes);
        }
        // A refused half would cause a second diagnostic for the other.
        if self.findings.is_empty() {
            self.pair_transports();
        }
    }

    /// Records one half of a transport arc, if the arc is one. Others have no number.
    fn half(&mut self, arc: Node<'a, 'a>, transition: u32, enters: bool, weight: u32) {
        let suffix = arc.attribute_node("inscription").and_then(|inscription| {
            let (_, number) = inscription.value().split_once(':')?;
            Some((number.trim(), Span::from(inscription.range_value())))
        });
        let attribute = arc.attribute_node("transportID").map(|id| (id.value().trim(), Span::from(id.range_value())));
        let is_transport = name_of(arc) == "arc" && arc.attribute("type") == Some("transport");
        match (is_transport, suffix, attribute) {
            (false, None, None) => {}
            (false, Some((_, span)), _) | (false, None, Some((_, span))) => {
                let message = "this arc has the number of a transport arc, but is of another type";
                self.findings
                    .add(|| Diagnostic::at(span, message).help("make its type `transport`, or remove the number"));
            }
            (true, None, None) => self.refuse(
                arc,
                "this transport arc has no number (`transportID`, or `:1` after its interval), so that nothing says \
                 which other half belongs to it",
            ),
            (true, Some((suffix, _)), Some((id, span))) if suffix != id => {
                let message = format!("this transport arc has two numbers, `{suffix}` after its interval and `{id}`");
                self.findings.add(|| Diagnostic::at(span, message));
            }
            (true, suffix, attribute) => {
                let number = attribute.or(suffix).map(|(number, _)| number).unwrap_or_default();
                self.halves.entry((transition, number)).or_default().push(Half { arc, enters, weight });
            }
        }
    }

    /// Refuses transport arcs whose halves do not pair: one enters the transition and one leaves it, with the same
    /// number and the same weight, so that each token taken is put somewhere.
    fn pair_transports(&mut self) {
        let halves = std::mem::take(&mut self.halves);
        for ((_, number), halves) in halves {
            match halves.as_slice() {
                [one, other] if one.enters != other.enters && one.weight == other.weight => {}
                [one, other] if one.enters != other.enters => {
                    let message = format!(
                        "the two halves of transport arc {number} have different weights, {} and {}",
                        one.weight, other.weight
                    );
                    self.refuse(other.arc, &message);
                }
                [one] => {
                    let (here, there) = if one.enters { ("enters", "leaves") } else { ("leaves", "enters") };
                    let message = format!(
                        "this half of transport arc {number} {here} a transition, but none of that number {there} it"
                    );
                    self.refuse(one.arc, &message);
                }
                _ => {
                    let message = format!(
                        "the number {number} has more than one transport arc of this transition, so that nothing says which belong together"
                    );
                    if let Some(last) = halves.last() {
                        self.refuse(last.arc, &message);
                    }
                }
            }
        }
    }

    /// Adds a place or a transition, unless it is a shared one.
    fn node(&mut self, node: Node<'a, 'a>, component: &str, id: &'a str, name: &'a str) -> Option<NodeId> {
        let is_place = name_of(node) == "place";
        if let Some(&end) = self.shared.get(name) {
            if matches!(end, NodeId::Place(_)) != is_place {
                self.refuse(node, "the shared node of this name is of the other kind");
                return None;
            }
            if let NodeId::Place(place) = end {
                let (here, there) = (self.marking(node), self.builder.net.places[place as usize].initial);
                if node.has_attribute("initialMarking") && here != there {
                    self.refuse(node, "the marking of this shared place differs from what the shared place says");
                }
            }
            return Some(end);
        }
        let full = if self.components > 1 { tidy(&format!("{component}.{name}")) } else { id.to_string() };
        Some(if is_place {
            let initial = self.marking(node);
            let place = self.builder.place(full, initial);
            self.builder.net.places[place as usize].name = tidy(name);
            NodeId::Place(place)
        } else {
            self.firing(node);
            let transition = self.builder.transition(full);
            self.builder.net.transitions[transition as usize].name = tidy(name);
            NodeId::Transition(transition)
        })
    }

    /// PIPE's `priority` and `timed`, which TAPAAL writes without a meaning: they are all alike.
    fn firing(&mut self, node: Node<'a, 'a>) {
        let firing = (node.attribute("priority"), node.attribute("timed"));
        if *self.firing.get_or_insert(firing) != firing {
            self.refuse(
                node,
                "priorities of transitions are not supported in files of TAPAAL, and this one differs from others",
            );
        }
    }

    fn arc(&mut self, arc: Node<'a, 'a>, nodes: &HashMap<&'a str, NodeId>) {
        let kind = match (name_of(arc), arc.attribute("type").unwrap_or("timed")) {
            ("inhibitorArc", _) | ("arc", "tapnInhibitor" | "inhibitor") => ArcKind::Inhibitor,
            ("inputArc" | "outputArc" | "transportArc", _) | ("arc", "timed" | "normal" | "transport") => {
                ArcKind::Input
            }
            (_, other) => {
                let message = format!("arcs of type `{other}` are not supported");
                self.refuse(arc, &message);
                return;
            }
        };
        let Some(weight) = self.weight(arc) else { return };
        let (source, target) = (self.end(arc, "source", nodes), self.end(arc, "target", nodes));
        let (Some(source), Some(target)) = (source, target) else { return };
        if name_of(arc) == "transportArc" {
            let Some(transition) = self.end(arc, "transition", nodes) else { return };
            match (source, transition, target) {
                (NodeId::Place(from), NodeId::Transition(transition), NodeId::Place(to)) => {
                    self.half(arc, transition, true, weight);
                    self.connect(arc, transition, from, ArcKind::Input, weight);
                    self.connect(arc, transition, to, ArcKind::Output, weight);
                }
                _ => self.refuse(arc, "a transport arc leads from a place through a transition to a place"),
            }
            return;
        }
        match (source, target, name_of(arc), kind) {
            (NodeId::Place(place), NodeId::Transition(transition), "arc" | "inputArc" | "inhibitorArc", kind) => {
                self.half(arc, transition, true, weight);
                self.connect(arc, transition, place, kind, weight);
            }
            (NodeId::Transition(transition), NodeId::Place(place), "arc" | "outputArc", ArcKind::Input) => {
                self.half(arc, transition, false, weight);
                self.connect(arc, transition, place, ArcKind::Output, weight);
            }
            _ => self.refuse(arc, "this arc does not lead from where to where its kind does"),
        }
    }

    fn connect(&mut self, arc: Node<'a, 'a>, transition: u32, place: u32, kind: ArcKind, weight: u32) {
        if self.builder.arc(transition, place, kind, weight).is_err() {
            self.refuse(arc, "the weights of the arcs between these two nodes add up to more than 4294967295");
        }
    }

    /// The weight of an untimed arc. The attribute `inscription` holds an interval, or for arcs to places the 1
    /// that PIPE had there, and perhaps after a colon the transport arc it belongs to.
    fn weight(&mut self, arc: Node<'a, 'a>) -> Option<u32> {
        let attribute =
            arc.attribute_node("weight").map(|weight| (weight.value().trim(), Span::from(weight.range_value())));
        let inner = child(arc, "inscription").and_then(|inner| label(self.text, inner));
        let given = match (attribute, inner) {
            (Some(_), Some((_, span))) => {
                self.findings.add(|| Diagnostic::at(span, "the weight of this arc is there twice"));
                return None;
            }
            (Some((words, span)), None) => Some((words.to_string(), span)),
            (None, Some((words, span))) => Some((words.trim().to_string(), span)),
            (None, None) => None,
        };
        if let Some(inscription) = arc.attribute_node("inscription") {
            let words = inscription.value().trim();
            let interval = words.split_once(':').map_or(words, |(interval, _)| interval).trim();
            let is_weight = interval == "1" || given.as_ref().is_some_and(|(given, _)| given == interval);
            if !is_weight && !self.says_nothing(interval) {
                let message = format!("the arc has the time interval `{words}`: timed nets are not supported");
                self.findings.add(|| {
                    Diagnostic::at(inscription.range_value(), message)
                        .help("nets are read whose intervals are all `[0,inf)`")
                });
                return None;
            }
        }
        let Some((words, span)) = given else { return Some(1) };
        let words = self.constants.get(words.as_str()).map_or(words.as_str(), |value| value.trim());
        match number(words, "weight", 1) {
            Ok(weight) => Some(weight),
            Err((message, help)) => {
                self.findings.add(|| Diagnostic::at(span, message).help(help));
                None
            }
        }
    }

    /// Whether every token's age is in this interval.
    fn says_nothing(&self, interval: &str) -> bool {
        let inner = interval.strip_prefix('[').and_then(|rest| rest.strip_suffix(')'));
        let Some((from, to)) = inner.and_then(|inner| inner.split_once(',')) else { return false };
        let from = self.constants.get(from.trim()).map_or(from, |value| value);
        from.trim() == "0" && to.trim() == "inf"
    }

    fn end(&mut self, arc: Node<'a, 'a>, attribute: &str, nodes: &HashMap<&'a str, NodeId>) -> Option<NodeId> {
        let (id, span) = self.attribute(arc, attribute)?;
        let end = nodes.get(id).copied();
        if end.is_none() {
            self.findings.add(|| Diagnostic::at(span, format!("the arc leads nowhere: there is no node `{id}`")));
        }
        end
    }

    fn marking(&mut self, place: Node<'a, 'a>) -> u32 {
        let Some(marking) = place.attribute_node("initialMarking") else { return 0 };
        match number(marking.value().trim(), "marking", 0) {
            Ok(tokens) => tokens,
            Err((message, help)) => {
                self.findings.add(|| Diagnostic::at(marking.range_value(), message).help(help));
                0
            }
        }
    }

    /// Notes what of the file is not part of the net.
    fn tell(&mut self, root: Node<'a, 'a>, off: &[Node<'a, 'a>]) {
        let queries = elements(root).filter(|&part| name_of(part) == "query").count();
        if queries > 0 {
            let plural = if queries == 1 { "query" } else { "queries" };
            self.builder
                .net
                .notes
                .push(format!("{queries} {plural} of the file not read; ask with `--invariant`, `--reach`"));
        }
        if !off.is_empty() {
            let names: Vec<&str> = off.iter().map(|net| net.attribute("id").unwrap_or("?")).collect();
            self.builder.net.notes.push(format!("left out as the file says, because not active: {}", names.join(", ")));
        }
    }

    fn finish(mut self, root: Node<'a, 'a>, name: Option<&str>) -> Result<Net, Vec<Diagnostic>> {
        let net = &mut self.builder.net;
        // TAPAAL composes the active components; nodes without arcs are omitted there too.
        let bare = |one: &crate::Transition| {
            [&one.inputs, &one.outputs, &one.reads, &one.inhibitors].iter().all(|arcs| arcs.is_empty())
        };
        let names: Vec<String> = net.transitions.iter().filter(|&one| bare(one)).map(|one| one.id.clone()).collect();
        if !names.is_empty() {
            net.transitions.retain(|one| !bare(one));
            net.notes.push(format!("left out, as TAPAAL does, because no arc leads to them: {}", names.join(", ")));
        }
        net.name = tidy(name.unwrap_or_default());
        for ids in [
            net.places.iter().map(|place| &place.id).collect::<Vec<_>>(),
            net.transitions.iter().map(|transition| &transition.id).collect(),
        ] {
            let mut seen = std::collections::HashSet::new();
            if let Some(twice) = ids.into_iter().find(|id| !seen.insert(id.as_str())) {
                let message = format!("two nodes are called `{twice}` when the components are put together");
                self.findings.add(|| Diagnostic::at(xml::tag_span(self.text, root.range().start), message));
            }
        }
        net.place_namesakes = unique_names(net.places.iter_mut().map(|place| (place.id.as_str(), &mut place.name)));
        net.transition_namesakes =
            unique_names(net.transitions.iter_mut().map(|transition| (transition.id.as_str(), &mut transition.name)));
        if net.places.is_empty() && self.findings.is_empty() {
            let span = xml::tag_span(self.text, root.range().start);
            self.findings.add(|| Diagnostic::at(span, "the net has no places"));
        }
        self.findings.or(self.builder.net)
    }

    /// An attribute that is a printable name.
    fn name(&mut self, node: Node<'a, 'a>, attribute: &str) -> Option<Value<'a>> {
        let (name, span) = self.attribute(node, attribute)?;
        if name.trim().is_empty() || name.contains(char::is_control) {
            self.findings.add(|| Diagnostic::at(span, "a name must not be empty or contain control characters"));
            return None;
        }
        Some((name, span))
    }

    fn attribute(&mut self, node: Node<'a, 'a>, name: &str) -> Option<Value<'a>> {
        let found = node.attribute_node(name).map(|found| (found.value(), Span::from(found.range_value())));
        if found.is_none() {
            let message = format!("this `{}` has no attribute `{name}`", name_of(node));
            self.refuse(node, &message);
        }
        found
    }

    fn refuse(&mut self, node: Node<'a, 'a>, message: &str) {
        let span = xml::tag_span(self.text, node.range().start);
        self.findings.add(|| Diagnostic::at(span, message));
    }
}
