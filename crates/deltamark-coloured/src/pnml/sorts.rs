//! Sorts, variables and constants that a symmetric net declares.
//!
//! In: `declaration` elements. Out: for each sort a row of discrete types, for each constant its
//! type and value. What stays true: a sort that uses itself is refused, so rows are finite; and rows are short,
//! because products of products may not grow beyond a limit.

use std::collections::HashMap;
use std::sync::Arc as Shared;

use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};
use deltamark_nets::findings::Findings;
use deltamark_nets::pnml::{elements, name_of};
use deltamark_nets::xml;
use roxmltree::Node;

use crate::net::{Shape, Type, TypeId};

/// The most components a product may have.
const MOST_COMPONENTS: usize = 256;
/// The most values an enumeration or range may have.
const MOST_VALUES: i64 = 1 << 24;

/// What a net declares.
#[derive(Default)]
pub(super) struct Declarations<'a> {
    pub types: Vec<Type>,
    sorts: HashMap<&'a str, Node<'a, 'a>>,
    rows: HashMap<&'a str, Vec<TypeId>>,
    /// Sorts that are being read: meeting one again closes a circle.
    open: Vec<&'a str>,
    /// Names and rows of variables.
    pub variables: HashMap<&'a str, (String, Vec<TypeId>)>,
    /// Constants of enumerations, and elements of partitions.
    pub constants: HashMap<&'a str, (TypeId, i32)>,
    /// For each partition the sort it is of, and for each of its values the element it belongs to.
    pub partitions: HashMap<&'a str, (TypeId, Vec<i32>)>,
    pub boolean: Option<TypeId>,
}

/// What is said of an id that nothing has.
pub(super) fn unknown<'i>(span: Span, what: &str, id: &str, known: impl Iterator<Item = &'i str>) -> Diagnostic {
    let diagnostic = Diagnostic::at(span, format!("there is no {what} `{id}`"));
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

    /// A row of sorts by their names: `(Site, Message)`; `dot` for none.
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
        for &node in &all {
            match (name_of(node), node.attribute("id")) {
                ("namedsort", Some(id)) if self.sorts.insert(id, node).is_some() => {
                    refuse(node, format!("the sort `{id}` is declared twice"), findings);
                }
                ("namedoperator" | "arbitrarysort" | "unparsed", _) => {
                    refuse(node, format!("a `{}` does not belong in a symmetric net", name_of(node)), findings);
                }
                _ => {}
            }
        }
        let named = all.iter().filter(|node| name_of(**node) == "namedsort");
        for id in named.filter_map(|node| node.attribute("id")) {
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

    /// The row of a sort that has a name.
    fn row(&mut self, text: &str, id: &'a str, span: Span, findings: &mut Findings) -> Option<Vec<TypeId>> {
        if let Some(row) = self.rows.get(id) {
            return Some(row.clone());
        }
        let Some(&node) = self.sorts.get(id) else {
            if self.partitions.contains_key(id) {
                return Some(vec![self.partitions[id].0]);
            }
            findings.add(|| unknown(span, "sort", id, self.sort_ids()));
            return None;
        };
        if self.open.contains(&id) {
            findings.add(|| Diagnostic::at(span, format!("the sort `{id}` is made of itself")));
            return None;
        }
        let Some(structure) = elements(node).next() else {
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

    /// The row of a sort that has a name, once all are read.
    pub fn row_of(&self, id: &str) -> Option<Vec<TypeId>> {
        self.rows.get(id).cloned().or_else(|| self.partitions.get(id).map(|&(of, _)| vec![of]))
    }

    /// The row of the sort that an element stands for.
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
                    let Some(id) = constant.attribute("id") else { continue };
                    let shown = constant.attribute("name").filter(|name| !name.trim().is_empty()).unwrap_or(id);
                    if self.constants.insert(id, (of, names.len() as i32)).is_some() {
                        findings.add(|| Diagnostic::at(span, format!("the constant `{id}` is declared twice")));
                    }
                    names.push(shown.chars().filter(|c| !c.is_control()).collect::<String>());
                }
                if names.is_empty() {
                    findings.add(|| Diagnostic::at(span, "an enumeration has no values"));
                    return None;
                }
                let high = names.len() as i32 - 1;
                self.add(name, 0, high, Some(names.into()))
            }
            "finiteintrange" => {
                let bound = |name: &str| node.attribute(name).and_then(|value| value.trim().parse::<i32>().ok());
                match (bound("start"), bound("end")) {
                    (Some(low), Some(high)) if low <= high && i64::from(high) - i64::from(low) < MOST_VALUES => {
                        // The same range is the same sort wherever it stands.
                        let same = |known: &Type| known.shape == Shape::Discrete { low, high, names: None };
                        match self.types.iter().position(same) {
                            Some(known) => Some(vec![TypeId(known as u32)]),
                            None => self.add(name, low, high, None),
                        }
                    }
                    _ => {
                        findings.add(|| Diagnostic::at(span, "the bounds of this range make no sense"));
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
        self.types.push(Type { name: name.into(), shape: Shape::Discrete { low, high, names } });
        Some(vec![TypeId(self.types.len() as u32 - 1)])
    }

    /// The type of truth values.
    pub fn boolean(&mut self) -> TypeId {
        match self.boolean {
            Some(known) => known,
            None => {
                let names: Shared<[String]> = ["false".to_string(), "true".to_string()].into();
                let shape = Shape::Discrete { low: 0, high: 1, names: Some(names) };
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
        let Shape::Discrete { low, high, .. } = self.types[of.0 as usize].shape else { return };
        let mut member = vec![-1; (i64::from(high) - i64::from(low) + 1) as usize];
        let mut names = Vec::new();
        let own = TypeId(self.types.len() as u32);
        for element in elements(node).filter(|&child| name_of(child) == "partitionelement") {
            let number = names.len() as i32;
            let id = element.attribute("id").unwrap_or_default();
            names.push(element.attribute("name").unwrap_or(id).chars().filter(|c| !c.is_control()).collect());
            self.constants.insert(id, (own, number));
            for value in elements(element) {
                let known = value.attribute("declaration").and_then(|id| self.constants.get(id)).copied();
                let known = known.or_else(|| {
                    let value = value.attribute("value")?.trim().parse::<i32>().ok()?;
                    Some((of, value))
                });
                match known {
                    Some((sort, value)) if sort == of && (low..=high).contains(&value) => {
                        member[(i64::from(value) - i64::from(low)) as usize] = number;
                    }
                    _ => {
                        let span = xml::tag_span(text, value.range().start);
                        findings.add(|| Diagnostic::at(span, "this is no value of the sort that is partitioned"));
                    }
                }
            }
        }
        if names.is_empty() {
            findings.add(|| Diagnostic::at(span, "a partition has no elements"));
            return;
        }
        let high = names.len() as i32 - 1;
        let names: Vec<String> = names;
        self.types.push(Type { name: id.into(), shape: Shape::Discrete { low: 0, high, names: Some(names.into()) } });
        self.partitions.insert(id, (own, member));
    }
}
