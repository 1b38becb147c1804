//! Symmetric nets in PNML, the XML format of ISO/IEC 15909-2.
//!
//! In: the text of a file. Out: a [`Net`], or up to twenty diagnostics, each with its span. Pages may nest
//! and reference nodes may chain; both are resolved. What stays true: nothing is skipped silently; `known`
//! lists what is read and what has no effect, and refuses the rest by name.
//!
//! Sorts become tuples of discrete types: `dot` the empty tuple, a product the concatenation of its parts. A
//! variable of a product sort becomes a variable for each part. Successor and predecessor are cyclic on every
//! sort.

mod known;
mod sorts;
mod terms;

use std::collections::{HashMap, HashSet};

use deltamark_core::Findings;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Control, Diagnostic, Span};
use deltamark_nets::pnml::{elements, label, name_of, tidy};
use deltamark_nets::{unique_names, xml};
use roxmltree::Node;

use crate::net::{Arc, Net, Place, PlaceId, Role, Transition, Variable};
use sorts::Declarations;
use terms::Terms;

/// The names of coloured net types in files.
const COLOURED: [&str; 5] = ["symmetricnet", "highlevelnet", "pt-hlpng", "hlpng", "hlpn"];

/// Whether the text is PNML of a coloured net, by the type of its first `net` element.
pub fn is_coloured(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("<net") {
        rest = &rest[at + 4..];
        if rest.starts_with(char::is_whitespace) {
            let tag = &rest[..rest.find('>').unwrap_or(rest.len())];
            return tag.split(['"', '\'']).any(is_coloured_type);
        }
    }
    false
}

/// Whether some element or attribute that is read has this name, for tests that use others.
pub fn is_known(name: &str) -> bool {
    known::is_known(name)
}

/// Whether a net's type is coloured, by the last part of the address.
fn is_coloured_type(address: &str) -> bool {
    let last = address.trim().rsplit(['/', '#']).next().unwrap_or_default();
    COLOURED.iter().any(|kind| last.eq_ignore_ascii_case(kind))
}

/// Reads the one symmetric net of a PNML file.
pub fn parse(text: &str) -> Result<Net, Vec<Diagnostic>> {
    parse_under(text, &Control::new())
}

/// The same, unless `control` stops it.
pub fn parse_under(text: &str, control: &Control) -> Result<Net, Vec<Diagnostic>> {
    let document = xml::open_under(text, control).map_err(|diagnostic| vec![diagnostic])?;
    let root = document.root_element();
    if name_of(root) != "pnml" {
        let span = xml::tag_span(text, root.range().start);
        let message = format!("this is XML, but not PNML: its outermost element is `{}`", name_of(root));
        return Err(Diagnostic::at(span, message).help("a PNML file starts with `<pnml>`").into());
    }
    let nets: Vec<Node<'_, '_>> = elements(root).filter(|&child| name_of(child) == "net").collect();
    let &[net] = nets.as_slice() else {
        let span = xml::tag_span(text, nets.get(1).map_or(root, |second| *second).range().start);
        let message = format!("the file holds {} nets, where one is expected", nets.len());
        let finding = Diagnostic::at(span, message);
        return Err(if nets.len() > 1 { finding.help("put each net into a file of its own") } else { finding }.into());
    };
    let mut reader = Reader { text, findings: Findings::under(control), ..Reader::default() };
    known::refuse_others(text, root, &mut reader.findings);
    if !net.attribute("type").is_some_and(is_coloured_type) {
        reader.refuse(net, "this `net` has no type of a net with colours");
    }
    let mut nodes = Vec::new();
    collect(net, &mut nodes);
    let declarations = nodes.iter().filter(|node| name_of(**node) == "declaration");
    for declaration in declarations.copied().collect::<Vec<_>>() {
        reader.declarations.read(text, declaration, &mut reader.findings);
    }
    for &node in &nodes {
        control.ask()?;
        match name_of(node) {
            "place" => reader.place(node),
            "transition" => reader.transition(node),
            "referencePlace" | "referenceTransition" => reader.reference(node),
            // Read before, or once all nodes are known.
            "declaration" | "arc" | "name" => {}
            other => debug_assert!(known::is_harmless(other) || !reader.findings.is_empty(), "{other} is refused"),
        }
    }
    reader.resolve_references();
    for &node in nodes.iter().filter(|node| name_of(**node) == "arc") {
        control.ask()?;
        reader.connect(node);
    }
    reader.finish(net)
}

/// All elements of the net, with pages replaced by their elements.
fn collect<'a>(net: Node<'a, 'a>, nodes: &mut Vec<Node<'a, 'a>>) {
    let mut open = vec![net];
    while let Some(page) = open.pop() {
        for child in elements(page) {
            if name_of(child) == "page" {
                open.push(child);
            } else {
                nodes.push(child);
            }
        }
    }
}

/// The referent of an id.
#[derive(Clone, Copy)]
enum Target<'a> {
    Place(usize),
    Transition(usize),
    Reference { to: &'a str, of_place: bool },
}

/// The contents of the file, before they become a net.
#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    findings: Findings,
    declarations: Declarations<'a>,
    net: Net,
    ids: HashMap<&'a str, Target<'a>>,
    place_ids: Vec<String>,
    /// Places with an invalid sort.
    unsorted: HashSet<usize>,
    transitions: Vec<Node<'a, 'a>>,
    references: Vec<Node<'a, 'a>>,
    /// The targets of references, if they have any.
    ends: HashMap<&'a str, Option<Target<'a>>>,
    /// The arcs of each transition: the arc, the place, and the direction.
    arcs: Vec<Vec<(Node<'a, 'a>, usize, Direction)>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Input,
    Output,
    Test,
}

impl<'a> Reader<'a> {
    fn span(&self, node: Node<'a, 'a>) -> Span {
        xml::tag_span(self.text, node.range().start)
    }

    fn refuse(&mut self, node: Node<'a, 'a>, message: impl Into<String>) {
        let span = self.span(node);
        self.findings.add(|| Diagnostic::at(span, message));
    }

    /// The id of a node, which must be present and unique.
    fn declare(&mut self, node: Node<'a, 'a>, target: Target<'a>) -> Option<&'a str> {
        let Some(id) = node.attribute("id").filter(|id| !id.trim().is_empty() && !id.contains(char::is_control)) else {
            self.refuse(node, format!("this `{}` has no id that can be shown", name_of(node)));
            return None;
        };
        if self.ids.insert(id, target).is_some() {
            self.refuse(node, format!("the id `{id}` is used twice"));
        }
        Some(id)
    }

    fn name(&self, node: Node<'a, 'a>) -> String {
        let name = elements(node).find(|&child| name_of(child) == "name");
        let words = name.and_then(|name| label(self.text, name)).map(|(words, _)| tidy(&words));
        words.filter(|words| !words.trim().is_empty()).unwrap_or_default()
    }

    /// The one element in the `structure` of a label; `None` if the label is empty. Text alone is for people,
    /// and is not read: if there is nothing else, the label would be lost silently.
    fn structure(&mut self, node: Node<'a, 'a>) -> Result<Option<Node<'a, 'a>>, ()> {
        let structure = elements(node).find(|&child| name_of(child) == "structure");
        let inside: Vec<Node<'a, 'a>> = structure.map(|structure| elements(structure).collect()).unwrap_or_default();
        match inside.as_slice() {
            &[one] => Ok(Some(one)),
            [] if label(self.text, node).is_none_or(|(words, _)| words.trim().is_empty()) => Ok(None),
            [] => {
                let span = self.span(node);
                let message = format!("this `{}` has nothing in a `structure`", name_of(node));
                let help = "the `text` of a label is for people; what counts is a term in `<structure>`";
                self.findings.add(|| Diagnostic::at(span, message).help(help));
                Err(())
            }
            [_, second, ..] => {
                self.refuse(*second, format!("the `structure` of this `{}` holds more than one term", name_of(node)));
                Err(())
            }
        }
    }

    fn place(&mut self, node: Node<'a, 'a>) {
        let number = self.net.places.len();
        let Some(id) = self.declare(node, Target::Place(number)) else { return };
        let child = |name: &str| elements(node).find(|&child| name_of(child) == name);
        let sort = child("type").map(|sort| self.structure(sort));
        let domain = match sort {
            Some(Ok(Some(sort))) => self.declarations.sort_of(self.text, sort, &mut self.findings),
            Some(Err(())) => None,
            Some(Ok(None)) | None => Some(Vec::new()),
        };
        if domain.is_none() {
            self.unsorted.insert(number);
        }
        let known = domain.is_some();
        let domain = domain.unwrap_or_default();
        if child("capacity").is_some() {
            self.refuse(node, "places with a capacity are not supported");
        }
        let marking = child("hlinitialMarking").and_then(|marking| self.structure(marking).ok().flatten());
        let mut terms = Terms::new(self.text, &self.declarations);
        let initial = match marking {
            Some(marking) if known => terms.label(marking, &domain, &mut self.findings),
            _ => Vec::new(),
        };
        let frame = terms.frame;
        if child("initialMarking").is_some() {
            self.refuse(node, "a place of a coloured net has its tokens in `hlinitialMarking`");
        }
        self.place_ids.push(id.into());
        self.net.places.push(Place {
            name: self.name(node),
            domain,
            initial,
            frame,
            capacity: None,
            span: self.span(node),
        });
    }

    fn transition(&mut self, node: Node<'a, 'a>) {
        if self.declare(node, Target::Transition(self.transitions.len())).is_some() {
            self.transitions.push(node);
            self.arcs.push(Vec::new());
        }
    }

    fn reference(&mut self, node: Node<'a, 'a>) {
        match node.attribute("ref") {
            Some(to) => {
                let of_place = name_of(node) == "referencePlace";
                if self.declare(node, Target::Reference { to, of_place }).is_some() {
                    self.references.push(node);
                }
            }
            None => self.refuse(node, "a reference has no attribute `ref`"),
        }
    }

    /// Follows every reference to its target, which its id then denotes.
    fn resolve_references(&mut self) {
        let mut ends: HashMap<&'a str, Option<Target<'a>>> = HashMap::new();
        let mut walked = HashSet::new();
        for node in std::mem::take(&mut self.references) {
            let Some(first) = node.attribute("id") else { continue };
            let (mut chain, mut id) = (Vec::new(), first);
            let end = loop {
                match self.ids.get(id) {
                    Some(&Target::Reference { to, .. }) => match ends.get(id) {
                        Some(&end) => break end,
                        None if walked.insert(id) => {
                            chain.push(id);
                            id = to;
                        }
                        // Revisited before its target is known: a cycle.
                        None => {
                            self.refuse(node, format!("the reference to `{id}` goes round in a circle"));
                            break None;
                        }
                    },
                    Some(&end) => break Some(end),
                    None => {
                        self.nowhere(node, "reference", id);
                        break None;
                    }
                }
            };
            if let (Some(end), Some(Target::Reference { of_place, .. })) = (end, self.ids.get(first))
                && *of_place != matches!(end, Target::Place(_))
            {
                let kind = if *of_place { "place" } else { "transition" };
                let message = format!("this reference to a {kind} leads to `{id}`, which is none");
                self.refuse(node, message);
            }
            ends.extend(chain.into_iter().map(|id| (id, end)));
        }
        self.ends = ends;
    }

    /// Reports that an id is not that of a node.
    fn nowhere(&mut self, node: Node<'a, 'a>, kind: &str, id: &str) {
        let span = self.span(node);
        let ids = &self.ids;
        self.findings.add(|| {
            let diagnostic = Diagnostic::at(span, format!("the {kind} leads nowhere: there is no node `{id}`"));
            // Sorted, so that ties between suggestions are broken deterministically.
            let mut known: Vec<&str> = ids.keys().copied().collect();
            known.sort_unstable();
            match did_you_mean(id, known) {
                Some(known) => diagnostic.help(format!("did you mean `{known}`?")),
                None => diagnostic,
            }
        });
    }

    /// The node at one end of an arc, references followed.
    fn end(&mut self, arc: Node<'a, 'a>, attribute: &str) -> Option<Target<'a>> {
        let Some(id) = arc.attribute(attribute) else {
            self.refuse(arc, format!("this `arc` has no attribute `{attribute}`"));
            return None;
        };
        match self.ids.get(id) {
            // If it leads to no node, that has been reported.
            Some(Target::Reference { .. }) => self.ends.get(id).copied().flatten(),
            Some(&target) => Some(target),
            None => {
                self.nowhere(arc, "arc", id);
                None
            }
        }
    }

    fn connect(&mut self, arc: Node<'a, 'a>) {
        let mut test = false;
        let attribute = arc.attribute("type").map(str::to_owned);
        let children = elements(arc).filter(|&child| matches!(name_of(child), "type" | "arctype"));
        let children = children.flat_map(|child| {
            let value = child.attribute("value").map(str::to_owned);
            value.into_iter().chain(label(self.text, child).map(|(words, _)| words.into_owned()))
        });
        for words in attribute.into_iter().chain(children).collect::<Vec<_>>() {
            match words.trim().to_ascii_lowercase().as_str() {
                "" | "normal" => {}
                "test" | "read" => test = true,
                other => {
                    let span = self.span(arc);
                    let message = format!("symmetric nets have no arcs of type `{other}`");
                    self.findings.add(|| {
                        Diagnostic::at(span, message)
                            .help("ISO/IEC 15909-2 has inhibitor and reset arcs in no kind of coloured net; arcs are normal, test or read")
                    });
                    return;
                }
            }
        }
        if let Some(inscription) = elements(arc).find(|&child| name_of(child) == "inscription") {
            self.refuse(inscription, "an arc of a coloured net has its tokens in `hlinscription`");
        }
        let (Some(source), Some(target)) = (self.end(arc, "source"), self.end(arc, "target")) else { return };
        match (source, target) {
            (Target::Place(place), Target::Transition(transition)) => {
                let direction = if test { Direction::Test } else { Direction::Input };
                self.arcs[transition].push((arc, place, direction));
            }
            (Target::Transition(_), Target::Place(_)) if test => {
                self.refuse(arc, "a test arc leads from a place to a transition");
            }
            (Target::Transition(transition), Target::Place(place)) => {
                self.arcs[transition].push((arc, place, Direction::Output));
            }
            (Target::Place(_), _) => self.refuse(arc, "an arc leads from a place to a place"),
            _ => self.refuse(arc, "an arc leads from a transition to a transition"),
        }
    }

    fn build_transition(&mut self, number: usize) -> Transition {
        let node = self.transitions[number];
        let arcs = std::mem::take(&mut self.arcs[number]);
        for child in elements(node).filter(|&child| matches!(name_of(child), "delay" | "interval")) {
            self.refuse(child, "timed transitions are not supported");
        }
        let condition = elements(node).find(|&child| name_of(child) == "condition");
        let condition = condition.and_then(|condition| self.structure(condition).ok().flatten());
        let inscription = |arc: Node<'a, 'a>| elements(arc).find(|&child| name_of(child) == "hlinscription");
        let inscribed: Vec<Result<Option<Node<'a, 'a>>, ()>> = arcs
            .iter()
            .map(|&(arc, _, _)| inscription(arc).map_or(Ok(None), |inscription| self.structure(inscription)))
            .collect();
        let mut terms = Terms::new(self.text, &self.declarations);
        let all = inscribed.iter().copied().flatten().flatten().chain(condition);
        for part in all {
            terms.declare_variables(part, &mut self.findings);
        }
        let mut built = Transition {
            name: self.name(node),
            variables: Vec::new(),
            frame: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            inhibitors: Vec::new(),
            resets: Vec::new(),
            guard: condition.and_then(|condition| terms.truth(condition, &mut self.findings)),
            priority: None,
            description: None,
            span: self.span(node),
        };
        // A test arc becomes a loop, which claims its tokens. That is the same as a condition only
        // where the transition takes nothing else from the place.
        let mut taking: HashMap<usize, usize> = HashMap::new();
        for &(_, place, _) in arcs.iter().filter(|(_, _, direction)| *direction != Direction::Output) {
            *taking.entry(place).or_default() += 1;
        }
        for &(arc, place, direction) in &arcs {
            if direction == Direction::Test && taking[&place] > 1 {
                let span = self.span(arc);
                let message = "a test arc beside another arc from the same place is not supported in coloured nets";
                let help =
                    "if the transition needs the tokens of both arcs, use a normal arc and one back to the place";
                self.findings.add(|| Diagnostic::at(span, message).help(help));
            }
        }
        // An invalid sort of a place has been reported once.
        for (inscribed, (arc, place, direction)) in inscribed.into_iter().zip(arcs) {
            let Ok(inscribed) = inscribed else { continue };
            if self.unsorted.contains(&place) {
                continue;
            }
            let domain = &self.net.places[place].domain;
            let label = match inscribed {
                Some(inscription) => terms.label(inscription, domain, &mut self.findings),
                None if domain.is_empty() => terms.dot(self.span(arc)),
                None => {
                    let span = self.span(arc);
                    let message = "this arc has no inscription, and its place has coloured tokens";
                    self.findings.add(|| Diagnostic::at(span, message));
                    continue;
                }
            };
            let arc = Arc { place: PlaceId(place as u32), label };
            match direction {
                Direction::Input => built.inputs.push(arc),
                Direction::Output => built.outputs.push(arc),
                Direction::Test => {
                    built.inputs.push(arc.clone());
                    built.outputs.push(arc);
                }
            }
        }
        built.frame = terms.frame;
        let variable = |(name, of)| Variable { name, of, role: Role::Bound };
        built.variables = terms.variables.into_iter().map(variable).collect();
        built
    }

    fn finish(mut self, net: Node<'a, 'a>) -> Result<Net, Vec<Diagnostic>> {
        let transitions = (0..self.transitions.len()).map(|number| self.build_transition(number)).collect();
        self.net.transitions = transitions;
        self.net.types = std::mem::take(&mut self.declarations.types);
        let name = self.name(net);
        self.net.name = if name.is_empty() { tidy(net.attribute("id").unwrap_or_default()) } else { name };
        let places = self.net.places.iter_mut().zip(&self.place_ids);
        unique_names(places.map(|(place, id)| (id.as_str(), &mut place.name)));
        let ids: Vec<String> =
            self.transitions.iter().map(|node| node.attribute("id").unwrap_or_default().to_owned()).collect();
        let transitions = self.net.transitions.iter_mut().zip(&ids);
        unique_names(transitions.map(|(transition, id)| (id.as_str(), &mut transition.name)));
        self.net.place_ids = std::mem::take(&mut self.place_ids);
        self.net.transition_ids = ids;
        if self.net.places.is_empty() && self.findings.is_empty() {
            self.refuse(net, "the net has no places");
        }
        self.findings.or(self.net)
    }
}
