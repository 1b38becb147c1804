//! Property files of the Model Checking Contest.
//!
//! In: XML, and the model's observables. Out: formulas over shared atoms; of `UpperBounds` the places. What stays true:
//! places and transitions are looked up by id; each distinct id is looked up once, and nothing goes through the
//! property language, so its limits on texts do not matter; whatever is not known is refused by name ([`shape`]), so
//! that nothing is skipped in silence.
//!
//! The meaning is that of <https://mcc.lip6.fr>: `is-fireable` of several transitions is that some of them can fire (in
//! a coloured net, with some binding), `tokens-count` of several places their sum. Which logic a formula belongs to,
//! which decides what a deadlock means, follows from its id; one whose id names neither is one of CTL, unless it has
//! temporal operators without path quantifiers.

mod shape;

use super::atoms::Atom;
use super::{Question, Questions};
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Control, Diagnostic, Findings, Observable, Observe, Span};
use deltamark_logic::temporal::{FormulaId, Logic};
use deltamark_nets::xml;
use roxmltree::Node;
use std::collections::{HashMap, HashSet};

/// Whether a text is XML rather than properties in our language.
pub(crate) fn is_contest(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

/// Places of which the largest sum of tokens is asked.
pub(crate) struct Bound {
    pub name: String,
    pub places: Vec<Observable>,
}

/// Reads a file; formulas are added to `questions`, and bounds returned.
pub(crate) fn read(
    text: &str,
    observe: &dyn Observe,
    questions: &mut Questions,
    control: &Control,
) -> Result<Vec<Bound>, Vec<Diagnostic>> {
    let document = xml::open_under(text, control).map_err(|wrong| vec![wrong])?;
    let mut reader = Reader {
        text,
        observe,
        questions,
        findings: Findings::under(control),
        places: HashMap::new(),
        transitions: HashMap::new(),
        ids: HashSet::new(),
        logic: Logic::Ctl,
    };
    let mut bounds = Vec::new();
    let root = document.root_element();
    if root.tag_name().name() != "property-set" {
        let message =
            format!("the file begins with <{}>, and one with properties with <property-set>", root.tag_name().name());
        return Err(vec![Diagnostic::at(xml::tag_span(text, root.range().start), message)]);
    }
    shape::check(text, root, control)?;
    if !root.children().any(|child| child.is_element()) {
        return Err(vec![Diagnostic::at(xml::tag_span(text, root.range().start), "this file holds no property")]);
    }
    for property in root.children().filter(Node::is_element) {
        control.check()?;
        if property.tag_name().name() != "property" {
            reader.unknown(property);
            continue;
        }
        bounds.extend(reader.property(property));
        if reader.findings.is_full() {
            break;
        }
    }
    reader.findings.or(bounds)
}

struct Reader<'a, 'q> {
    text: &'a str,
    observe: &'a dyn Observe,
    questions: &'q mut Questions,
    findings: Findings,
    /// Ids that were looked up; `None` for unknown ones.
    places: HashMap<&'a str, Option<Observable>>,
    transitions: HashMap<&'a str, Option<Observable>>,
    /// Those of the properties so far.
    ids: HashSet<&'a str>,
    /// That of the current property.
    logic: Logic,
}

/// A sum of places and a number.
type Sum = (Vec<(Observable, i64)>, i64);

fn elements<'d>(node: Node<'d, 'd>) -> impl Iterator<Item = Node<'d, 'd>> {
    node.children().filter(Node::is_element)
}

fn content<'d>(node: Node<'d, 'd>) -> &'d str {
    node.text().unwrap_or("").trim()
}

impl<'a> Reader<'a, '_> {
    fn wrong(&mut self, node: Node<'a, 'a>, message: impl Into<String>) {
        let span = xml::tag_span(self.text, node.range().start);
        let message = message.into();
        self.findings.add(|| Diagnostic::at(span, message));
    }

    fn unknown(&mut self, node: Node<'a, 'a>) {
        self.wrong(node, format!("<{}> is not known here", node.tag_name().name()));
    }

    fn property(&mut self, node: Node<'a, 'a>) -> Option<Bound> {
        let (mut id, mut formula) = (None, None);
        for part in elements(node) {
            match part.tag_name().name() {
                "id" => id = Some(content(part)),
                "formula" => formula = Some(part),
                // Text for people, and hints of the generator for tools.
                "description" | "tags" => {}
                _ => self.unknown(part),
            }
        }
        let (Some(id), Some(formula)) = (id, formula) else {
            self.wrong(node, "a property has an <id> and a <formula>");
            return None;
        };
        let inner = self.only(formula)?;
        if !self.ids.insert(id) {
            self.wrong(node, format!("there are two properties called `{id}`"));
            return None;
        }
        if inner.tag_name().name() == "place-bound" {
            let places = self.places_of(inner);
            return Some(Bound { name: id.into(), places });
        }
        self.logic = logic_of(id, inner);
        let on_top = self.logic == Logic::Ltl && inner.tag_name().name() == "all-paths";
        let inner = if on_top { self.only(inner)? } else { inner };
        let root = self.formula(inner, false)?;
        let root = if self.logic == Logic::Ltl { self.questions.pool.all(root) } else { root };
        if !self.questions.pool.is_state(root) {
            self.wrong(inner, "a temporal operator has no path quantifier around it");
            return None;
        }
        self.questions.list.push(Question {
            name: id.into(),
            text: id.into(),
            logic: self.logic,
            root,
            automaton: None,
        });
        None
    }

    /// The only element inside another one.
    fn only(&mut self, node: Node<'a, 'a>) -> Option<Node<'a, 'a>> {
        let mut inside = elements(node);
        match (inside.next(), inside.next()) {
            (Some(one), None) => Some(one),
            _ => {
                self.wrong(node, format!("<{}> has exactly one element inside", node.tag_name().name()));
                None
            }
        }
    }

    fn operand(&mut self, node: Node<'a, 'a>, strong: bool) -> Option<FormulaId> {
        let inner = self.only(node)?;
        self.formula(inner, strong)
    }

    /// A formula; `strong` says whether `X` needs a next state, see [`deltamark_logic::temporal`].
    fn formula(&mut self, node: Node<'a, 'a>, strong: bool) -> Option<FormulaId> {
        if self.findings.is_full() {
            return None;
        }
        Some(match node.tag_name().name() {
            "all-paths" | "exists-path" if self.logic == Logic::Ltl => {
                self.wrong(node, "a formula of LTL has one path quantifier, <all-paths>, on top");
                return None;
            }
            "all-paths" => {
                let inner = self.operand(node, false)?;
                self.questions.pool.all(inner)
            }
            "exists-path" => {
                let inner = self.operand(node, true)?;
                self.questions.pool.exists(inner)
            }
            "next" => {
                let inner = self.operand(node, strong)?;
                let pool = &mut self.questions.pool;
                match (self.logic, strong) {
                    (Logic::Ltl, _) => pool.next(inner),
                    (Logic::Ctl, true) => pool.strong_next(inner),
                    (Logic::Ctl, false) => pool.weak_next(inner),
                }
            }
            "finally" => {
                let inner = self.operand(node, strong)?;
                self.questions.pool.finally(inner)
            }
            "globally" => {
                let inner = self.operand(node, strong)?;
                self.questions.pool.always(inner)
            }
            "until" => {
                let (mut before, mut reach) = (None, None);
                for part in elements(node) {
                    match part.tag_name().name() {
                        "before" => before = self.operand(part, strong),
                        "reach" => reach = self.operand(part, strong),
                        _ => self.unknown(part),
                    }
                }
                let (Some(before), Some(reach)) = (before, reach) else {
                    self.wrong(node, "<until> has <before> and <reach> inside");
                    return None;
                };
                self.questions.pool.until(before, reach)
            }
            "negation" => {
                let inner = self.operand(node, !strong)?;
                self.questions.pool.not(inner)
            }
            "conjunction" | "disjunction" => {
                let mut list = Vec::new();
                for part in elements(node) {
                    list.push(self.formula(part, strong)?);
                }
                match node.tag_name().name() {
                    "conjunction" => self.questions.pool.and(list),
                    _ => self.questions.pool.or(list),
                }
            }
            "is-fireable" => {
                let mut transitions = self.transitions_of(node);
                transitions.sort_unstable_by_key(|transition| transition.index);
                transitions.dedup();
                let atom = self.questions.atoms.add(Atom::Fireable(transitions));
                self.questions.pool.atom(atom)
            }
            "integer-le" => self.comparison(node)?,
            _ => {
                self.unknown(node);
                return None;
            }
        })
    }

    fn comparison(&mut self, node: Node<'a, 'a>) -> Option<FormulaId> {
        let mut sides = Vec::new();
        for part in elements(node) {
            sides.push(self.sum(part)?);
        }
        let Ok([left, right]) = <[Sum; 2]>::try_from(sides) else {
            self.wrong(node, "<integer-le> has exactly two elements inside");
            return None;
        };
        let mut factors: HashMap<Observable, i64> = HashMap::new();
        left.0.iter().for_each(|&(place, factor)| *factors.entry(place).or_default() += factor);
        right.0.iter().for_each(|&(place, factor)| *factors.entry(place).or_default() -= factor);
        let mut terms: Vec<(Observable, i64)> = factors.into_iter().filter(|&(_, factor)| factor != 0).collect();
        terms.sort_unstable_by_key(|(place, _)| place.index);
        let most = right.1 - left.1;
        let pool = &mut self.questions.pool;
        Some(match terms.first() {
            None => pool.truth(0 <= most),
            // One of an atom and its negation stands for both: -s <= m is not (s <= -m - 1).
            Some(&(_, factor)) if factor < 0 => {
                let negated = terms.into_iter().map(|(place, factor)| (place, -factor)).collect();
                let atom = self.questions.atoms.add(Atom::AtMost(negated, -most - 1));
                let atom = pool.atom(atom);
                pool.not(atom)
            }
            Some(_) => {
                let atom = self.questions.atoms.add(Atom::AtMost(terms, most));
                pool.atom(atom)
            }
        })
    }

    fn sum(&mut self, node: Node<'a, 'a>) -> Option<Sum> {
        match node.tag_name().name() {
            "tokens-count" => Some((self.places_of(node).into_iter().map(|place| (place, 1)).collect(), 0)),
            "integer-constant" => match content(node).parse::<i32>() {
                Ok(number) => Some((Vec::new(), number.into())),
                Err(_) => {
                    self.wrong(node, format!("`{}` is no number of 32 bits", content(node)));
                    None
                }
            },
            _ => {
                self.unknown(node);
                None
            }
        }
    }

    fn places_of(&mut self, node: Node<'a, 'a>) -> Vec<Observable> {
        let mut found = Vec::new();
        for part in elements(node) {
            if part.tag_name().name() != "place" {
                self.unknown(part);
                continue;
            }
            let id = content(part);
            let observe = self.observe;
            match *self.places.entry(id).or_insert_with(|| observe.resolve_id(id)) {
                Some(place) => found.push(place),
                None => self.nothing(part, id, "place", observe.names()),
            }
        }
        found
    }

    fn transitions_of(&mut self, node: Node<'a, 'a>) -> Vec<Observable> {
        let mut found = Vec::new();
        for part in elements(node) {
            if part.tag_name().name() != "transition" {
                self.unknown(part);
                continue;
            }
            let id = content(part);
            let observe = self.observe;
            match *self.transitions.entry(id).or_insert_with(|| observe.fireable_id(id)) {
                Some(transition) => found.push(transition),
                None => self.nothing(part, id, "transition", observe.action_names()),
            }
        }
        found
    }

    fn nothing(&mut self, node: Node<'a, 'a>, id: &str, what: &str, known: Vec<String>) {
        let range = node.range();
        let help = did_you_mean(id, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
        self.findings.add(|| {
            let finding =
                Diagnostic::at(Span::new(range.start, range.end), format!("the model has no {what} of the id `{id}`"));
            match help {
                Some(help) => finding.help(help),
                None => finding,
            }
        });
    }
}

/// The logic of a formula.
fn logic_of(id: &str, formula: Node<'_, '_>) -> Logic {
    if id.contains("LTL") {
        return Logic::Ltl;
    }
    if id.contains("CTL") {
        return Logic::Ctl;
    }
    let quantified = |node: &Node<'_, '_>| {
        let name = node.parent().map(|parent| parent.tag_name().name());
        matches!(name, Some("all-paths" | "exists-path"))
    };
    let temporal = |node: &Node<'_, '_>| matches!(node.tag_name().name(), "next" | "finally" | "globally" | "until");
    let on_top = formula.tag_name().name() == "all-paths";
    let other = |node: Node<'_, '_>| matches!(node.tag_name().name(), "all-paths" | "exists-path");
    let nested = formula.descendants().skip(1).any(other);
    let bare = formula.descendants().filter(temporal).any(|node| !quantified(&node));
    if on_top && !nested && bare { Logic::Ltl } else { Logic::Ctl }
}
