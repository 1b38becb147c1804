//! The checker: names, types, and everything that must be known statically.
//!
//! In: the syntax tree, and values for parameters. Out: a [`Net`](crate::Net), or findings. What stays true:
//! without findings the net is well-formed; names are declared before they are used; types, constants,
//! functions, places, transitions and propositions have separate namespaces.
//!
//! This file has the symbol tables, the scopes, and the short declarations. Types of expressions are in
//! [`roots`](super::roots), expressions in [`lower`](super::lower), functions, labels and transitions in
//! files of their own.

use super::fold::{fault_of, number};
use super::syntax::{self, ConstantDef, Definition, LtlPiece, Name, PropertyGoal, SubtypeDef, TypeDef, TypeShape};
use super::types::{BOOL, Class, INT, MOST_ELEMENTS, Types};
use crate::net::{self, ExprKind, FaultKind, FunctionId, Net, PlaceId, Predicate, Proposition, TypeId, Var};
use deltamark_core::Findings;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The maximum number of elements of constants and unrolled labels of a net.
const MOST_EXPANDED: u64 = 1 << 22;

/// The meaning of a name in scope.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A variable, and whether statements may assign to it.
    Variable(Var, Assign),
    /// A token of a place.
    Token(Var, PlaceId),
    /// A static value: the variable of an unrolled `for`.
    Known(i64),
}

/// Whether a variable can be assigned to, and if not what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assign {
    Free,
    Constant,
    Parameter,
    Iteration,
}

/// A name in scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalName<'t> {
    pub name: &'t str,
    pub of: TypeId,
    pub what: What,
}

/// A constant or a parameter of the net.
pub(crate) struct Constant {
    pub of: TypeId,
    pub value: net::Expr,
}

/// A function, as its callers see it.
pub(crate) struct Signature {
    pub id: FunctionId,
    pub parameters: Vec<TypeId>,
    pub result: TypeId,
    pub span: Span,
    pub has_body: bool,
}

/// What an expression may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Variables only.
    Basic,
    /// The marking too, and quantifiers.
    Marking,
}

pub(crate) struct Checker<'t, 'f> {
    pub findings: &'f mut Findings,
    pub types: Types,
    pub net: Net,
    pub type_names: HashMap<&'t str, TypeId>,
    pub constants: HashMap<&'t str, Constant>,
    /// The enumerations (roots) that have a constant of this name, with its value.
    pub enumerated: HashMap<&'t str, Vec<(TypeId, i32)>>,
    pub functions: HashMap<&'t str, Signature>,
    pub places: HashMap<&'t str, PlaceId>,
    pub transitions: BTreeSet<&'t str>,
    pub propositions: BTreeSet<&'t str>,
    /// Names in scope, the innermost last.
    pub locals: Vec<LocalName<'t>>,
    /// The next free variable of the current frame.
    pub frame: u32,
    pub sight: Sight,
    /// Names declared later, for advice.
    later: BTreeMap<&'t str, Span>,
    /// Names bound elsewhere in the current transition, and why they have no value here.
    pub elsewhere: BTreeMap<&'t str, &'static str>,
    /// Advice for a variable that nothing declares.
    pub advice: Option<&'static str>,
    /// Whether type mismatches are suppressed because the expected type is a guess.
    pub guessing: bool,
    /// Components of places whose type is undeclared, and therefore guessed.
    pub guessed: BTreeSet<(PlaceId, usize)>,
    overrides: BTreeMap<String, i64>,
    expanded: u64,
    /// The time spent so far on constants that call functions.
    pub evaluating: Duration,
}

impl<'t, 'f> Checker<'t, 'f> {
    pub fn new(overrides: BTreeMap<String, i64>, findings: &'f mut Findings) -> Self {
        let types = Types::new();
        let type_names = [("int", 0), ("nat", 1), ("short", 2), ("ushort", 3), ("bool", 4)];
        let enumerated = [("false", vec![(BOOL, 0)]), ("true", vec![(BOOL, 1)])];
        Checker {
            findings,
            types,
            net: Net::default(),
            type_names: type_names.map(|(name, id)| (name, TypeId(id))).into(),
            constants: HashMap::new(),
            enumerated: enumerated.into(),
            functions: HashMap::new(),
            places: HashMap::new(),
            transitions: BTreeSet::new(),
            propositions: BTreeSet::new(),
            locals: Vec::new(),
            frame: 0,
            sight: Sight::Basic,
            later: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            advice: None,
            guessing: false,
            guessed: BTreeSet::new(),
            overrides,
            expanded: 0,
            evaluating: Duration::ZERO,
        }
    }

    /// Checks a whole net. The result is valid if there are no findings.
    pub fn net(mut self, tree: &syntax::Net<'t>) -> Net {
        self.net.name = tree.name.text.into();
        for parameter in &tree.parameters {
            let name = parameter.name;
            let value = self.overrides.remove(name.text).unwrap_or(parameter.value);
            let Ok(small) = i32::try_from(value) else {
                self.error(name.span, format!("{value} is no value of `int`"));
                continue;
            };
            let constant = Constant { of: INT, value: net::Expr::int(small, name.span) };
            if self.constants.insert(name.text, constant).is_some() {
                self.twice("parameter", name);
            }
        }
        self.look_ahead(tree);
        for definition in &tree.definitions {
            self.definition(definition);
            if self.findings.is_full() {
                return self.net;
            }
        }
        let mut missing: Vec<(Span, String)> = self
            .functions
            .iter()
            .filter(|(_, signature)| !signature.has_body)
            .map(|(name, signature)| (signature.span, format!("function `{name}` has no body")))
            .collect();
        missing.sort_by_key(|(span, _)| span.start);
        for (span, message) in missing {
            self.error(span, message);
        }
        for property in &tree.properties {
            self.property(property);
        }
        for name in std::mem::take(&mut self.overrides).into_keys() {
            let known: Vec<&str> = tree.parameters.iter().map(|parameter| parameter.name.text).collect();
            self.findings.add(|| {
                let diagnostic = Diagnostic::new(format!("the net has no parameter or numeric constant `{name}`"));
                match did_you_mean(&name, known.iter().copied()) {
                    Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
                    None if known.is_empty() => diagnostic.help("the net has no parameters"),
                    None => diagnostic.help(format!("its parameters: {}", known.join(", "))),
                }
            });
        }
        if self.net.places.is_empty() && self.findings.is_empty() {
            self.findings.add(|| {
                Diagnostic::at(tree.name.span, "the net has no places")
                    .help("declare one: `place p { dom : epsilon; }`")
            });
        }
        self.net.types = self.types.lower();
        self.net
    }

    /// Collects all declared names, to distinguish use before declaration from a misspelt name.
    fn look_ahead(&mut self, tree: &syntax::Net<'t>) {
        for definition in &tree.definitions {
            let name = match definition {
                Definition::Type(definition) => {
                    if let TypeShape::Enum(names) = &definition.shape {
                        self.later.extend(names.iter().map(|name| (name.text, name.span)));
                    }
                    definition.name
                }
                Definition::Subtype(definition) => definition.name,
                Definition::Constant(definition) => definition.name,
                Definition::Function(definition) => definition.name,
                Definition::Place(definition) => definition.name,
                Definition::Transition(definition) => definition.name,
                Definition::Proposition(definition) => definition.name,
            };
            self.later.insert(name.text, name.span);
        }
    }

    fn definition(&mut self, definition: &Definition<'t>) {
        self.locals.clear();
        self.elsewhere.clear();
        self.advice = None;
        self.frame = 0;
        self.sight = Sight::Basic;
        self.guessing = false;
        match definition {
            Definition::Type(definition) => self.type_definition(definition),
            Definition::Subtype(definition) => self.subtype_definition(definition),
            Definition::Constant(definition) => self.constant_definition(definition),
            Definition::Function(definition) => self.function(definition),
            Definition::Place(definition) => self.place(definition),
            Definition::Transition(definition) => self.transition(definition),
            Definition::Proposition(definition) => {
                self.sight = Sight::Marking;
                let name = definition.name;
                let holds = self.lower(&definition.value, BOOL).expr;
                if !self.propositions.insert(name.text) {
                    self.twice("proposition", name);
                }
                self.net.propositions.push(Proposition { name: name.text.into(), holds, frame: self.frame });
            }
        }
    }

    // Types.

    fn type_definition(&mut self, definition: &TypeDef<'t>) {
        let name = definition.name;
        let before = self.findings.count();
        let id = match &definition.shape {
            TypeShape::Range(range) => {
                let low = self.static_number(&range.low);
                let high = self.static_number(&range.high);
                let (low, high) = self.ordered(low, high, range.span);
                self.types.discrete(name.text, None, Class::Range, low, high, None)
            }
            TypeShape::Mod(modulus) => {
                let value = self.static_number(modulus).unwrap_or(1);
                if value <= 0 {
                    self.error(modulus.span, format!("a modulus is positive; this is {value}"));
                }
                let modulus = i32::try_from(value.max(1)).unwrap_or(i32::MAX);
                self.types.discrete(name.text, None, Class::Mod(modulus), 0, i64::from(modulus) - 1, None)
            }
            TypeShape::Enum(names) => self.enumeration(name, names),
            TypeShape::Vector { index, element } => self.vector(name, index, *element, definition.span),
            TypeShape::Struct(fields) => {
                let mut seen = BTreeSet::new();
                let mut lowered = Vec::new();
                for &(type_name, field) in fields {
                    let of = self.type_called(type_name);
                    if !seen.insert(field.text) {
                        self.twice("field", field);
                    }
                    lowered.push((field.text.to_string(), of.unwrap_or(INT)));
                }
                self.types.composite(name.text, Class::Struct { fields: lowered })
            }
            TypeShape::List { index, element, capacity } => {
                let index = self.discrete_called(*index, "the index of a list");
                let element = self.type_called(*element).unwrap_or(INT);
                let capacity = self.container_capacity(capacity);
                self.types.composite(name.text, Class::List { index, element, capacity })
            }
            TypeShape::Set { element, capacity } => {
                let element = self.type_called(*element).unwrap_or(INT);
                let capacity = self.container_capacity(capacity);
                self.types.composite(name.text, Class::Set { element, capacity })
            }
        };
        if self.types.get(id).leaves > MOST_EXPANDED && self.findings.count() == before {
            let leaves = self.types.get(id).leaves;
            self.error(
                name.span,
                format!("a value of `{}` can be made of {leaves} numbers, which is too much", name.text),
            );
        }
        self.declare_type(name, id);
    }

    fn declare_type(&mut self, name: Name<'t>, id: TypeId) {
        if self.type_names.insert(name.text, id).is_some() {
            self.twice("type", name);
        }
    }

    /// The bounds of a range, if they are known and ordered; otherwise some that are.
    fn ordered(&mut self, low: Option<i64>, high: Option<i64>, span: Span) -> (i64, i64) {
        match (low, high) {
            (Some(low), Some(high)) if low > high => {
                self.error(span, format!("the range {low} .. {high} is empty"));
                (low, low)
            }
            (Some(low), Some(high)) => (low, high),
            (Some(low), None) => (low, i64::from(i32::MAX).max(low)),
            (None, high) => (high.unwrap_or(0).min(0), high.unwrap_or(i64::from(i32::MAX))),
        }
    }

    fn enumeration(&mut self, name: Name<'t>, names: &[Name<'t>]) -> TypeId {
        let id = self.types.enumeration(name.text, names.iter().map(|name| name.text.to_string()).collect());
        for (value, constant) in (0..).zip(names) {
            let all = self.enumerated.entry(constant.text).or_default();
            if all.iter().any(|&(of, _)| of == id) {
                self.twice("constant of the enumeration", *constant);
            } else {
                all.push((id, value));
            }
        }
        id
    }

    fn vector(&mut self, name: Name<'t>, index: &[Name<'t>], element: Name<'t>, span: Span) -> TypeId {
        let indices: Vec<TypeId> =
            index.iter().map(|index| self.discrete_called(*index, "an index of a vector")).collect();
        let element = self.type_called(element).unwrap_or(INT);
        let size = indices.iter().fold(1i64, |size, &index| size.saturating_mul(self.types.card(index)));
        if size > MOST_ELEMENTS {
            self.findings.add(|| {
                Diagnostic::at(span, format!("this vector has {size} elements; the most is {MOST_ELEMENTS}"))
                    .help("use an index type with fewer values")
            });
        }
        let size = usize::try_from(size.min(MOST_ELEMENTS)).unwrap_or(1);
        self.types.composite(name.text, Class::Vector { indices, element, size })
    }

    fn container_capacity(&mut self, capacity: &syntax::Expr<'t>) -> u32 {
        let value = self.static_number(capacity).unwrap_or(1);
        if !(1..=MOST_ELEMENTS).contains(&value) {
            self.error(capacity.span, format!("a capacity is from 1 to {MOST_ELEMENTS}; this is {value}"));
        }
        u32::try_from(value.clamp(1, MOST_ELEMENTS)).unwrap_or(1)
    }

    fn subtype_definition(&mut self, definition: &SubtypeDef<'t>) {
        let parent = self.discrete_called(definition.parent, "the parent of a subtype");
        let info = self.types.get(parent);
        let (mut low, mut high) = (info.low, info.high);
        if let Some(range) = &definition.range {
            let numeric = self.types.is_numeric(parent);
            let mut bound = |expr: &syntax::Expr<'t>| {
                if numeric { self.static_number(expr) } else { self.static_of(expr, parent) }
            };
            let (from, to) = (bound(&range.low), bound(&range.high));
            let outside = |bound: Option<i64>| bound.is_some_and(|bound| bound < low || bound > high);
            if outside(from) || outside(to) {
                let message = format!(
                    "`{}` is not a part of `{}`, whose values are {}",
                    definition.name.text,
                    self.types.name(parent),
                    self.shown_range(parent)
                );
                self.error(range.span, message);
            }
            (low, high) = self.ordered(from.or(Some(low)), to.or(Some(high)), range.span);
        }
        let id = self.types.subtype(definition.name.text, parent, low, high);
        self.declare_type(definition.name, id);
    }

    /// The values of a discrete type, for messages.
    pub fn shown_range(&self, of: TypeId) -> String {
        let info = self.types.get(of);
        let name = |value: i64| match info.class {
            Class::Enum => self.enum_name(of, value).to_string(),
            _ => value.to_string(),
        };
        format!("{} .. {}", name(info.low), name(info.high))
    }

    pub fn enum_name(&self, of: TypeId, value: i64) -> &str {
        let root = self.types.root(of);
        let found = self.enumerated.iter().find(|(_, all)| {
            all.iter().any(|&(enumeration, position)| enumeration == root && i64::from(position) == value)
        });
        found.map_or("?", |(name, _)| name)
    }

    /// The type of this name, or a finding.
    pub fn type_called(&mut self, name: Name<'t>) -> Option<TypeId> {
        if let Some(&id) = self.type_names.get(name.text) {
            return Some(id);
        }
        let known: Vec<&str> = self.type_names.keys().copied().collect();
        self.unknown("type", name.text, name.span, &known);
        None
    }

    fn discrete_called(&mut self, name: Name<'t>, what: &str) -> TypeId {
        match self.type_called(name) {
            Some(id) if self.types.is_discrete(id) => id,
            Some(_) => {
                let message = format!("{what} must be of a discrete type; `{}` is none", name.text);
                self.findings.add(|| {
                    Diagnostic::at(name.span, message).help("discrete types are range, mod, enum and their subtypes")
                });
                BOOL
            }
            None => BOOL,
        }
    }

    // Constants and static expressions.

    fn constant_definition(&mut self, definition: &ConstantDef<'t>) {
        let of = self.type_called(definition.type_name).unwrap_or(INT);
        let name = definition.name;
        let given = if self.types.is_numeric(of) { self.overrides.get(name.text).copied() } else { None };
        let value = match given {
            Some(value) if !self.constants.contains_key(name.text) => {
                self.overrides.remove(name.text);
                let info = self.types.get(of);
                match i32::try_from(value).ok().filter(|_| (info.low..=info.high).contains(&value)) {
                    Some(value) => net::Expr::int(value, name.span),
                    None => {
                        let message = format!("{value} is no value of `{}`", self.types.name(of));
                        self.error(name.span, message);
                        return;
                    }
                }
            }
            _ => {
                let before = self.findings.count();
                let value = self.coerce(&definition.value, of);
                if let Some(fault) = fault_of(&value).filter(|_| self.findings.count() == before) {
                    self.static_fault(definition.value.span, fault, Some(of));
                }
                value
            }
        };
        let value = self.evaluated(value);
        if self.constants.insert(name.text, Constant { of, value }).is_some() {
            self.twice("constant", name);
        }
    }

    /// Reports a fault of a constant expression.
    pub fn static_fault(&mut self, span: Span, fault: FaultKind, of: Option<TypeId>) {
        let message = match (fault, of) {
            (FaultKind::OutOfRange | FaultKind::Cast, Some(of)) if self.types.is_discrete(of) => {
                format!("this is no value of `{}`, whose values are {}", self.types.name(of), self.shown_range(of))
            }
            (FaultKind::DivisionByZero, _) => "this divides by zero".into(),
            (FaultKind::OutOfRange | FaultKind::Cast, _) => "a value here is out of its type's range".into(),
            (FaultKind::Index, _) => "there is no element with this index".into(),
            (FaultKind::ListOverflow | FaultKind::ContainerOverflow, _) => "there are more elements than fit".into(),
            (FaultKind::EmptyList, _) => "the list is empty".into(),
            _ => "this has no value".into(),
        };
        self.error(span, message);
    }

    /// A number of any numeric type that must be known statically.
    pub fn static_number(&mut self, expr: &syntax::Expr<'t>) -> Option<i64> {
        let roots = self.roots(expr).numeric(&self.types);
        let of = roots.one().unwrap_or(INT);
        self.static_of(expr, of)
    }

    /// A value of this discrete type (of its root) that must be known statically.
    pub fn static_of(&mut self, expr: &syntax::Expr<'t>, of: TypeId) -> Option<i64> {
        let before = self.findings.count();
        let lowered = self.lower(expr, self.types.root(of)).expr;
        if self.findings.count() > before {
            return None;
        }
        if let Some(value) = number(&lowered) {
            return Some(value);
        }
        match fault_of(&lowered) {
            Some(fault) => self.static_fault(expr.span, fault, None),
            None if is_known(&lowered) => self.error(expr.span, "the value does not fit in 32 bits"),
            None => self.findings.add(|| {
                Diagnostic::at(expr.span, "this must be known before the net runs")
                    .help("use numbers, constants and type attributes, without variables and calls")
            }),
        }
        None
    }

    /// Counts elements that are not written out in the text. False if there are too many.
    pub fn expand(&mut self, elements: u64, span: Span) -> bool {
        self.expanded = self.expanded.saturating_add(elements);
        let fits = self.expanded <= MOST_EXPANDED;
        if !fits {
            self.findings.add(|| {
                Diagnostic::at(span, "the values and labels written here have too many elements in all")
                    .help(format!("the most is {MOST_EXPANDED}"))
            });
        }
        fits
    }

    // Properties.

    fn property(&mut self, property: &syntax::Property<'t>) {
        let known: Vec<String> = self.net.propositions.iter().map(|known| known.name.clone()).collect();
        // In properties `deadlock` is a reserved word, whatever propositions are called.
        let find = |name: Name<'t>| match known.iter().position(|known| known == name.text) {
            _ if name.text == "deadlock" => Some(Predicate::Deadlock),
            Some(number) => Some(Predicate::Proposition(u32::try_from(number).unwrap_or(u32::MAX))),
            None => None,
        };
        let name = property.name;
        let known_already = self.net.properties.iter().any(|other| other.name == name.text);
        if known_already || self.net.temporal.iter().any(|(other, _)| other == name.text) {
            self.twice("property", name);
        }
        let used: Vec<Name<'t>> = match &property.goal {
            PropertyGoal::State { reject, accept } => [*reject].into_iter().chain(accept.iter().copied()).collect(),
            PropertyGoal::Ltl(pieces) => {
                let name = |piece: &LtlPiece<'t>| match piece {
                    LtlPiece::Name(name) => Some(*name),
                    LtlPiece::Text(_) => None,
                };
                pieces.iter().filter_map(name).collect()
            }
        };
        for &name in &used {
            if find(name).is_none() {
                self.findings.add(|| unknown_proposition(name, &known));
            }
        }
        match &property.goal {
            PropertyGoal::Ltl(pieces) => {
                let text = |piece: &LtlPiece<'t>| match piece {
                    LtlPiece::Text(text) => (*text).to_string(),
                    LtlPiece::Name(name) => find(*name).map_or(String::new(), |one| self.net.predicate_text(&one)),
                };
                let text = pieces.iter().map(text).collect();
                self.net.temporal.push((name.text.into(), text));
            }
            PropertyGoal::State { reject, accept } => {
                let accept: Option<Vec<Predicate>> = accept.iter().map(|name| find(*name)).collect();
                if let (Some(reject), Some(accept)) = (find(*reject), accept) {
                    self.net.properties.push(net::Property { name: name.text.into(), reject, accept });
                }
            }
        }
    }

    // Scopes.

    /// A new variable of the current frame.
    pub fn fresh(&mut self) -> Var {
        let var = Var(self.frame);
        self.frame += 1;
        var
    }

    /// The innermost name in scope.
    pub fn local(&self, name: &str) -> Option<LocalName<'t>> {
        self.locals.iter().rev().find(|local| local.name == name).copied()
    }

    // Findings.

    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        let message = message.into();
        self.findings.add(|| Diagnostic::at(span, message));
    }

    pub fn twice(&mut self, what: &str, name: Name<'t>) {
        self.findings.add(|| {
            Diagnostic::at(name.span, format!("there is already a {what} `{}`", name.text)).help("choose another name")
        });
    }

    /// Reports an undeclared name.
    pub fn unknown(&mut self, what: &str, name: &str, span: Span, known: &[&str]) {
        let later = self.later.get(name).is_some_and(|declared| declared.start > span.start);
        let elsewhere = self.elsewhere.get(name).copied();
        let advice = self.advice.filter(|_| what.starts_with("variable"));
        self.findings.add(|| {
            let diagnostic = Diagnostic::at(span, format!("there is no {what} `{name}`"));
            let mut known = known.to_vec();
            known.sort_unstable();
            match did_you_mean(name, known) {
                _ if elsewhere.is_some() => diagnostic.help(elsewhere.unwrap_or_default()),
                _ if later => diagnostic.help("it is declared further down; names are declared before they are used"),
                Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
                None => advice.into_iter().fold(diagnostic, Diagnostic::help),
            }
        });
    }
}

fn unknown_proposition(name: Name, known: &[String]) -> Diagnostic {
    let diagnostic = Diagnostic::at(name.span, format!("there is no proposition `{}`", name.text));
    match did_you_mean(name.text, known.iter().map(String::as_str).chain(["deadlock"])) {
        Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
        None => diagnostic.help("a property speaks of propositions of the net, or of `deadlock`"),
    }
}

/// Whether an expression is static.
fn is_known(expr: &net::Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) => true,
        ExprKind::Unary(_, of) | ExprKind::Wrap(of, _) | ExprKind::Check { of, .. } => is_known(of),
        ExprKind::Binary(_, left, right) => is_known(left) && is_known(right),
        _ => false,
    }
}

/// Checks the properties of a separate file and adds them to the net.
pub(crate) fn properties(net: &mut Net, tree: &[syntax::Property<'_>], findings: &mut Findings) {
    let mut checker = Checker::new(BTreeMap::new(), findings);
    checker.net = std::mem::take(net);
    for property in tree {
        checker.property(property);
    }
    *net = checker.net;
}
