//! Sorts, variables and constants that a symmetric net declares.
//!
//! In: `declaration` elements. Out: for each sort a tuple of discrete types, for each constant its type and
//! value. What stays true: a recursive sort is refused, so tuples are finite; and tuples are short, because
//! the size of products is limited.

use std::collections::HashMap;
use std::sync::Arc as Shared;

use deltamark_core::Findings;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};
use deltamark_nets::pnml::{elements, name_of};
use deltamark_nets::xml;
use roxmltree::Node;

use crate::net::{Type, TypeId, ValueShape};

/// The maximum number of components of a product.
const MOST_COMPONENTS: usize = 256;
/// The maximum number of values of an enumeration or range.
const MOST_VALUES: i64 = 1 << 24;
/// The maximum nesting of sorts.
const DEEPEST: usize = 200;
/// The part of a value that no element of a partition contains.
const NOWHERE: i32 = -1;

/// The declarations of a net.
#[derive(Default)]
pub(super) struct Declarations<'a> {
    pub types: Vec<Type>,
    sorts: HashMap<&'a str, Node<'a, 'a>>,
    rows: HashMap<&'a str, Vec<TypeId>>,
    /// Sorts that are being read, to detect cycles.
    open: Vec<&'a str>,
    /// Names and types of variables.
    pub variables: HashMap<&'a str, (String, Vec<TypeId>)>,
    /// Constants of enumerations, and elements of partitions.
    pub constants: HashMap<&'a str, (TypeId, i32)>,
    pub partitions: HashMap<&'a str, Partition>,
    pub boolean: Option<TypeId>,
}

/// A sort divided into parts.
pub(super) struct Partition {
    /// The sort of the parts.
    pub own: TypeId,
    /// The sort that is divided.
    pub of: TypeId,
    /// The part of each of its values.
    pub parts: Vec<i32>,
}

/// The diagnostic for an undeclared id.
pub(super) fn unknown<'i>(span: Span, what: &str, id: &str, known: impl Iterator<Item = &'i str>) -> Diagnostic {
    let diagnostic = Diagnostic::at(span, format!("there is no {what} `{id}`"));
    // Sorted, so that ties between suggestions are broken deterministically.
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    match did_you_mean(id, known) {
        Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
        None => diagnostic,
    }
}

impl<'a> Declarations<'a> {
    /// The ids of sorts.
    pub fn sort_ids(&self) -> impl Iterator<Item = &'a str> {
        self.sorts.keys().copied()
    }

    /// The names of a tuple of sorts: `(Site, Message)`; `dot` if it is empty.
    pub fn shown(&self, row: &[TypeId]) -> String {
        let names: Vec<&str> = row.iter().map(|of| self.types[of.0 as usize].name.as_str()).collect();
        match names.as_slice() {
            [] => "`dot`".into(),
            [one] => format!("`{one}`"),
            several => format!("`({})`", several.join(", ")),
        }
    }

    /// Takes in a `declaration` element.
    pub fn read(&mut self, text: &str, declaration: Node<'a, 'a>, findings: &mut Findings) {
        let all: Vec<Node<'a, 'a>> = declaration.descendants().filter(Node::is_element).collect();
        let refuse = |node: Node<'a, 'a>, message: String, findings: &mut Findings| {
            let span = xml::tag_span(text, node.range().start);
            findings.add(|| Diagnostic::at(span, message));
        };
        let places = all.iter().filter(|node| name_of(**node) == "declarations");
        for child in places.flat_map(|declarations| elements(*declarations)) {
            let known = ["namedsort", "partition", "variabledecl", "toolspecific"];
            let refused = ["namedoperator", "arbitrarysort", "unparsed"];
            if !known.contains(&name_of(child)) && !refused.contains(&name_of(child)) {
                let span = xml::tag_span(text, child.range().start);
                let message = format!("a `{}` cannot be declared", name_of(child));
                let help = format!("what can be: {}", known[..3].join(", "));
                findings.add(|| Diagnostic::at(span, message).help(help));
            }
        }
        for &node in &all {
            match (name_of(node), node.attribute("id")) {
                ("namedsort", None) => refuse(node, "this `namedsort` has no attribute `id`".into(), findings),
                ("namedsort", Some(id)) if self.sorts.contains_key(id) => {
                    refuse(node, format!("the sort `{id}` is declared twice"), findings);
                }
                ("namedsort", Some(id)) => drop(self.sorts.insert(id, node)),
                ("namedoperator" | "arbitrarysort" | "unparsed", _) => {
                    refuse(node, format!("a `{}` does not belong in a symmetric net", name_of(node)), findings);
                }
                _ => {}
            }
        }
        let named = all.iter().filter(|node| name_of(**node) == "namedsort");
        for id in named.filter_map(|node| node.attribute("id")) {
            if findings.is_full() {
                return;
            }
            self.row(text, id, Span::at(declaration.range().start), findings);
        }
        for &node in all.iter().filter(|node| name_of(**node) == "partition") {
            self.partition(text, node, findings);
        }
        for &node in all.iter().filter(|node| name_of(**node) == "variabledecl") {
            let sort = elements(node).next();
            let (Some(id), Some(sort)) = (node.attribute("id"), sort) else {
                refuse(node, "a variable needs an id and a sort".into(), findings);
                continue;
            };
            let name = node.attribute("name").filter(|name| !name.trim().is_empty()).unwrap_or(id);
            let name: String = name.chars().filter(|c| !c.is_control()).collect();
            if let Some(row) = self.sort_of(text, sort, findings)
                && self.variables.insert(id, (name, row)).is_some()
            {
                refuse(node, format!("the variable `{id}` is declared twice"), findings);
            }
        }
    }

    /// The types of a named sort.
    fn row(&mut self, text: &str, id: &'a str, span: Span, findings: &mut Findings) -> Option<Vec<TypeId>> {
        if let Some(row) = self.rows.get(id) {
            return Some(row.clone());
        }
        let Some(&node) = self.sorts.get(id) else {
            if self.partitions.contains_key(id) {
                return Some(vec![self.partitions[id].own]);
            }
            findings.add(|| unknown(span, "sort", id, self.sort_ids()));
            return None;
        };
        if self.open.contains(&id) || self.open.len() > DEEPEST {
            let circle = self.open.contains(&id);
            let what = if circle { "is made of itself" } else { "is made of sorts that are nested too deeply" };
            findings.add(|| Diagnostic::at(span, format!("the sort `{id}` {what}")));
            return None;
        }
        let Some(structure) = elements(node).next() else {
            let span = xml::tag_span(text, node.range().start);
            findings.add(|| Diagnostic::at(span, format!("the sort `{id}` says nothing about its values")));
            return None;
        };
        self.open.push(id);
        let name = node.attribute("name").filter(|name| !name.trim().is_empty()).unwrap_or(id);
        let row = self.anonymous(text, structure, name, findings);
        self.open.pop();
        let row = row?;
        self.rows.insert(id, row.clone());
        Some(row)
    }

    /// The types of a named sort, once all are read.
    pub fn row_of(&self, id: &str) -> Option<Vec<TypeId>> {
        self.rows.get(id).cloned().or_else(|| self.partitions.get(id).map(|partition| vec![partition.own]))
    }

    /// The types of the sort that an element denotes.
    pub fn sort_of(&mut self, text: &str, node: Node<'a, 'a>, findings: &mut Findings) -> Option<Vec<TypeId>> {
        self.anonymous(text, node, name_of(node), findings)
    }

    fn anonymous(
        &mut self,
        text: &str,
        node: Node<'a, 'a>,
        name: &str,
        findings: &mut Findings,
    ) -> Option<Vec<TypeId>> {
        let span = xml::tag_span(text, node.range().start);
        match name_of(node) {
            "dot" => Some(Vec::new()),
            "bool" => Some(vec![self.boolean()]),
            "usersort" => match node.attribute("declaration") {
                Some(id) => self.row(text, id, span, findings),
                None => {
                    findings.add(|| Diagnostic::at(span, "this `usersort` does not say which"));
                    None
                }
            },
            "productsort" => {
                let mut row = Vec::new();
                for part in elements(node) {
                    row.extend(self.sort_of(text, part, findings)?);
                    if row.len() > MOST_COMPONENTS {
                        let message = format!("a product has more than {MOST_COMPONENTS} components");
                        findings.add(|| Diagnostic::at(span, message));
                        return None;
                    }
                }
                Some(row)
            }
            "cyclicenumeration" | "finiteenumeration" => {
                let of = TypeId(self.types.len() as u32);
                let mut names = Vec::new();
                for constant in elements(node).filter(|&child| name_of(child) == "feconstant") {
                    let Some(id) = constant.attribute("id") else {
                        let span = xml::tag_span(text, constant.range().start);
                        findings.add(|| Diagnostic::at(span, "this `feconstant` has no attribute `id`"));
                        continue;
                    };
                    let shown = constant.attribute("name").filter(|name| !name.trim().is_empty()).unwrap_or(id);
                    if self.constants.contains_key(id) {
                        let span = xml::tag_span(text, constant.range().start);
                        findings.add(|| Diagnostic::at(span, format!("the constant `{id}` is declared twice")));
                        continue;
                    }
                    self.constants.insert(id, (of, names.len() as i32));
                    names.push(shown.chars().filter(|c| !c.is_control()).collect::<String>());
                }
                if names.is_empty() {
                    if !elements(node).any(|child| name_of(child) == "feconstant") {
                        findings.add(|| Diagnostic::at(span, "an enumeration has no values"));
                    }
                    return None;
                }
                let high = names.len() as i32 - 1;
                self.add(name, 0, high, Some(names.into()))
            }
            "finiteintrange" => {
                let bound = |name: &str| node.attribute(name).and_then(|value| value.trim().parse::<i32>().ok());
                match (bound("start"), bound("end")) {
                    (Some(low), Some(high)) if low <= high && i64::from(high) - i64::from(low) < MOST_VALUES => {
                        // Equal ranges are the same sort wherever they occur.
                        let same = |known: &Type| known.shape == ValueShape::Discrete { low, high, names: None };
                        match self.types.iter().position(same) {
                            Some(known) => Some(vec![TypeId(known as u32)]),
                            None => self.add(name, low, high, None),
                        }
                    }
                    (Some(low), Some(high)) if low <= high => {
                        let message = format!("this range has more than {MOST_VALUES} values");
                        findings.add(|| Diagnostic::at(span, message));
                        None
                    }
                    _ => {
                        let help = "`start` and `end` are numbers, and `start` is not larger";
                        findings.add(|| Diagnostic::at(span, "the bounds of this range make no sense").help(help));
                        None
                    }
                }
            }
            other => {
                findings.add(|| Diagnostic::at(span, format!("sorts of kind `{other}` are not supported")));
                None
            }
        }
    }

    fn add(&mut self, name: &str, low: i32, high: i32, names: Option<Shared<[String]>>) -> Option<Vec<TypeId>> {
        self.types.push(Type { name: name.into(), shape: ValueShape::Discrete { low, high, names } });
        Some(vec![TypeId(self.types.len() as u32 - 1)])
    }

    /// The type of truth values.
    pub fn boolean(&mut self) -> TypeId {
        match self.boolean {
            Some(known) => known,
            None => {
                let names: Shared<[String]> = ["false".to_string(), "true".to_string()].into();
                let shape = ValueShape::Discrete { low: 0, high: 1, names: Some(names) };
                self.types.push(Type { name: "bool".into(), shape });
                let id = TypeId(self.types.len() as u32 - 1);
                self.boolean = Some(id);
                id
            }
        }
    }

    fn partition(&mut self, text: &str, node: Node<'a, 'a>, findings: &mut Findings) {
        let span = xml::tag_span(text, node.range().start);
        let sort = elements(node).find(|&child| name_of(child) == "usersort");
        let row = sort.and_then(|sort| self.sort_of(text, sort, findings));
        let (Some(id), Some(&[of])) = (node.attribute("id"), row.as_deref()) else {
            findings.add(|| Diagnostic::at(span, "a partition needs an id and a sort of single values"));
            return;
        };
        let ValueShape::Discrete { low, high, .. } = self.types[of.0 as usize].shape else { return };
        let mut parts = vec![NOWHERE; (i64::from(high) - i64::from(low) + 1) as usize];
        let mut names: Vec<String> = Vec::new();
        let own = TypeId(self.types.len() as u32);
        for element in elements(node).filter(|&child| name_of(child) == "partitionelement") {
            let number = names.len() as i32;
            let span = xml::tag_span(text, element.range().start);
            let Some(id) = element.attribute("id") else {
                findings.add(|| Diagnostic::at(span, "this `partitionelement` has no attribute `id`"));
                continue;
            };
            names.push(element.attribute("name").unwrap_or(id).chars().filter(|c| !c.is_control()).collect());
            if self.constants.insert(id, (own, number)).is_some() {
                findings.add(|| Diagnostic::at(span, format!("the constant `{id}` is declared twice")));
            }
            for value in elements(element) {
                let span = xml::tag_span(text, value.range().start);
                let known = value.attribute("declaration").and_then(|id| self.constants.get(id)).copied();
                let known = known.or_else(|| {
                    let value = value.attribute("value")?.trim().parse::<i32>().ok()?;
                    Some((of, value))
                });
                let Some((_, value)) = known.filter(|&(sort, value)| sort == of && (low..=high).contains(&value))
                else {
                    findings.add(|| Diagnostic::at(span, "this is no value of the sort that is partitioned"));
                    continue;
                };
                let part = &mut parts[(i64::from(value) - i64::from(low)) as usize];
                if *part != NOWHERE {
                    findings.add(|| Diagnostic::at(span, "this value is in the partition twice"));
                }
                *part = number;
            }
        }
        if names.is_empty() {
            findings.add(|| Diagnostic::at(span, "a partition has no elements"));
            return;
        }
        if let Some(missing) = parts.iter().position(|&part| part == NOWHERE).filter(|_| findings.is_empty()) {
            let value = self.shown_value(of, i64::from(low) + missing as i64);
            let message = format!("no element of the partition has the value {value}");
            findings.add(|| Diagnostic::at(span, message).help("every value of the sort belongs to just one element"));
        }
        let high = names.len() as i32 - 1;
        self.types
            .push(Type { name: id.into(), shape: ValueShape::Discrete { low: 0, high, names: Some(names.into()) } });
        if self.partitions.insert(id, Partition { own, of, parts }).is_some() {
            findings.add(|| Diagnostic::at(span, format!("the partition `{id}` is declared twice")));
        }
    }

    /// A value of a sort, as files name it.
    fn shown_value(&self, of: TypeId, value: i64) -> String {
        match &self.types[of.0 as usize].shape {
            ValueShape::Discrete { low, names: Some(names), .. } => {
                let name = names.get((value - i64::from(*low)) as usize);
                format!("`{}`", name.map_or("", String::as_str))
            }
            _ => value.to_string(),
        }
    }
}
