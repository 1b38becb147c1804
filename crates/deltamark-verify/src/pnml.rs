//! A plain reader of PNML, for P/T nets.
//!
//! In: text. Out: a [`Net`], places and transitions in the order of the document; or the first thing that is wrong, or
//! not understood, with its line. What stays true: an element or attribute inside the net is read, is known to say
//! nothing of its behaviour, or is refused by name. Read as well, because tools write it: arcs of type `inhibitor`,
//! `read` and `test`, `<value>` in place of `<text>`.

use crate::net::Net;
use crate::xml::{self, Element};
use std::collections::HashMap;

/// What an id denotes.
#[derive(Clone, Copy, PartialEq)]
enum Node {
    Place(u32),
    Transition(u32),
    /// The number of the element of a reference.
    Reference(usize),
}

struct Reader {
    elements: Vec<Element>,
    net: Net,
    nodes: HashMap<String, Node>,
    arcs: Vec<usize>,
}

/// The elements with everything in them that say nothing of the behaviour of a net.
const DRAWN: &[&str] = &["graphics", "name", "toolspecific"];
/// The tools whose own elements say nothing of it either.
const TOOLS: &[&str] = &["nupn", "ProM", "WoPeD", "org.pnml.tool", "org.pnml.tool.text"];
const NET_TYPES: &[&str] = &["ptnet", "ptnetb", "ptnet.pntd", "ptnetb.pntd", "pnmlcoremodel", "t net"];

/// Reads the one net of a file.
pub(crate) fn read(text: &str) -> Result<Net, String> {
    let elements = xml::read(text)?;
    let root = &elements[0];
    let nets: Vec<usize> = root.children.iter().copied().filter(|&child| elements[child].name == "net").collect();
    let &[net] = nets.as_slice() else {
        return Err(format!("there are {} nets in `{}`, where one is expected", nets.len(), root.name));
    };
    if root.name != "pnml" || root.children.len() > 1 {
        return Err("the file holds something else than `pnml` with one net".into());
    }
    let kind = elements[net].attribute("type").map(|kind| kind.trim().to_ascii_lowercase());
    if let Some(kind) = &kind
        && !NET_TYPES.contains(&kind.rsplit(['/', '#']).next().unwrap_or(kind))
    {
        return Err(format!("nets of type `{kind}` are not read"));
    }
    let mut reader = Reader { elements, net: Net::default(), nodes: HashMap::new(), arcs: Vec::new() };
    reader.nodes(net)?;
    for arc in std::mem::take(&mut reader.arcs) {
        reader.arc(arc)?;
    }
    Ok(reader.net)
}

impl Reader {
    /// Reads the nodes of a net and of its pages, and collects the arcs.
    fn nodes(&mut self, net: usize) -> Result<(), String> {
        self.knows(net, &["id", "type"], &["page", "place", "transition", "arc"])?;
        let mut open: Vec<usize> = self.elements[net].children.iter().rev().copied().collect();
        while let Some(number) = open.pop() {
            let element = &self.elements[number];
            match element.name.as_str() {
                "page" => {
                    self.knows(number, &["id"], &[])?;
                    open.extend(self.elements[number].children.iter().rev());
                }
                "place" => {
                    self.knows(number, &["id"], &["initialMarking"])?;
                    let initial = self.number(number, "initialMarking", 0)?;
                    let (id, name) = self.id_and_name(number)?;
                    let place = self.net.place(&id, &name, initial);
                    self.declare(number, id, Node::Place(place))?;
                }
                "transition" => {
                    self.knows(number, &["id"], &["label"])?;
                    let (id, name) = self.id_and_name(number)?;
                    let transition = self.net.transition(&id, &name);
                    self.declare(number, id, Node::Transition(transition))?;
                }
                "referencePlace" | "referenceTransition" => {
                    self.knows(number, &["id", "ref"], &[])?;
                    let (id, _) = self.id_and_name(number)?;
                    self.declare(number, id, Node::Reference(number))?;
                }
                "arc" => self.arcs.push(number),
                "name" | "graphics" | "finalmarkings" => {}
                "toolspecific" => self.tool(number)?,
                other => return Err(format!("line {}: `{other}` is not read", element.line)),
            }
        }
        Ok(())
    }

    /// Refuses attributes and children that are not known of a node or an arc. Pages and nets look at their children
    /// themselves.
    fn knows(&self, number: usize, attributes: &[&str], children: &[&str]) -> Result<(), String> {
        let element = &self.elements[number];
        let is_namespace = |name: &str| name == "xmlns" || name.starts_with("xmlns:") || name.starts_with("xml:");
        let unknown = element.attributes.iter().find(|(name, _)| !attributes.contains(&name.as_str()));
        if let Some((name, _)) = unknown.filter(|(name, _)| !is_namespace(name)) {
            return Err(format!("line {}: the attribute `{name}` of `{}` is not read", element.line, element.name));
        }
        if matches!(element.name.as_str(), "net" | "page") {
            return Ok(());
        }
        for &child in &element.children {
            let inner = &self.elements[child];
            if inner.name == "toolspecific" {
                self.tool(child)?;
            } else if !children.contains(&inner.name.as_str()) && !DRAWN.contains(&inner.name.as_str()) {
                return Err(format!("line {}: `{}` of `{}` is not read", inner.line, inner.name, element.name));
            }
        }
        match element.text.trim() {
            "" => Ok(()),
            words => Err(format!("line {}: `{words}` is not read", element.line)),
        }
    }

    fn tool(&self, number: usize) -> Result<(), String> {
        let element = &self.elements[number];
        let tool = element.attribute("tool").unwrap_or_default();
        match TOOLS.contains(&tool) {
            true => Ok(()),
            false => Err(format!("line {}: what the tool `{tool}` says of the net is not read", element.line)),
        }
    }

    /// The child of this name, of which there is at most one.
    fn child(&self, number: usize, name: &str) -> Result<Option<usize>, String> {
        let element = &self.elements[number];
        let mut found = element.children.iter().copied().filter(|&child| self.elements[child].name == name);
        match (found.next(), found.next()) {
            (one, None) => Ok(one),
            _ => Err(format!("line {}: `{}` has two elements `{name}`", element.line, element.name)),
        }
    }

    /// The words in the `text` of a label.
    fn words(&self, label: usize) -> Result<Option<&str>, String> {
        let text = match self.child(label, "text")? {
            None => self.child(label, "value")?,
            text => text,
        };
        Ok(text.map(|text| self.elements[text].text.as_str()))
    }

    fn id_and_name(&self, number: usize) -> Result<(String, String), String> {
        let element = &self.elements[number];
        let id = element.attribute("id").filter(|id| !id.trim().is_empty());
        let id = id.ok_or_else(|| format!("line {}: this `{}` has no id", element.line, element.name))?;
        let name = match self.child(number, "name")? {
            Some(name) => tidy(self.words(name)?.unwrap_or_default()),
            None => String::new(),
        };
        Ok((id.into(), if name.trim().is_empty() { id.into() } else { name }))
    }

    fn declare(&mut self, number: usize, id: String, node: Node) -> Result<(), String> {
        match self.nodes.insert(id, node) {
            None => Ok(()),
            Some(_) => Err(format!("line {}: this id is there twice", self.elements[number].line)),
        }
    }

    /// The number in a label of an element; `absent` if there is none.
    fn number(&self, number: usize, label: &str, absent: u32) -> Result<u32, String> {
        let Some(label) = self.child(number, label)? else { return Ok(absent) };
        let Some(words) = self.words(label)? else { return Ok(absent) };
        let words = words.trim();
        let digits = words.strip_prefix("Default,").unwrap_or(words);
        let digits = digits.strip_prefix('+').unwrap_or(digits);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = digits.parse::<u32>().ok().filter(|_| is_number);
        value.ok_or_else(|| format!("line {}: `{words}` is no number that is read", self.elements[label].line))
    }

    /// The node that an id leads to, along references.
    fn node(&self, arc: usize, attribute: &str) -> Result<Node, String> {
        let line = self.elements[arc].line;
        let mut id = self.elements[arc].attribute(attribute).unwrap_or_default();
        for _ in 0..=self.nodes.len() {
            match self.nodes.get(id) {
                None => return Err(format!("line {line}: there is no node `{id}`")),
                Some(&Node::Reference(number)) => {
                    let reference = &self.elements[number];
                    id = reference.attribute("ref").unwrap_or_default();
                    let of_place = reference.name == "referencePlace";
                    match self.nodes.get(id) {
                        Some(Node::Place(_)) if !of_place => {}
                        Some(Node::Transition(_)) if of_place => {}
                        _ => continue,
                    }
                    return Err(format!("line {}: this reference leads to something else", reference.line));
                }
                Some(&node) => return Ok(node),
            }
        }
        Err(format!("line {line}: the references go round in a circle"))
    }

    fn arc(&mut self, number: usize) -> Result<(), String> {
        self.knows(number, &["id", "source", "target", "type"], &["inscription", "type", "arctype"])?;
        let line = self.elements[number].line;
        let weight = self.number(number, "inscription", 1)?;
        if weight == 0 {
            return Err(format!("line {line}: an arc has weight 0"));
        }
        let mut kinds: Vec<String> = self.elements[number].attribute("type").map(String::from).into_iter().collect();
        for label in ["type", "arctype"] {
            if let Some(label) = self.child(number, label)? {
                kinds.extend(self.elements[label].attribute("value").map(String::from));
                kinds.extend(self.words(label)?.map(String::from));
            }
        }
        let kinds: Vec<String> = kinds.iter().map(|kind| kind.trim().to_ascii_lowercase()).collect();
        if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("line {line}: the arc has two types"));
        }
        let kind = kinds.first().map_or("normal", String::as_str);
        let (source, target) = (self.node(number, "source")?, self.node(number, "target")?);
        let transitions = &mut self.net.transitions;
        let (list, place) = match (source, target, kind) {
            (Node::Place(place), Node::Transition(to), "normal" | "") => (&mut transitions[to as usize].inputs, place),
            (Node::Place(place), Node::Transition(to), "inhibitor") => {
                (&mut transitions[to as usize].inhibitors, place)
            }
            (Node::Place(place), Node::Transition(to), "read" | "test") => (&mut transitions[to as usize].reads, place),
            (Node::Transition(from), Node::Place(place), "normal" | "") => {
                (&mut transitions[from as usize].outputs, place)
            }
            _ => return Err(format!("line {line}: an arc of type `{kind}` between these nodes is not read")),
        };
        list.push((place, weight));
        Ok(())
    }
}

/// A name on one line: line breaks and the blanks around them come from the layout of the XML.
fn tidy(words: &str) -> String {
    if !words.contains(char::is_control) {
        return words.into();
    }
    words.split(char::is_control).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
