//! Lowers structured values, attributes and quantifiers.
//!
//! In: expressions that construct, access or iterate over vectors, structures, lists, sets and markings. Out:
//! expressions of the net, where elements are numbered from 0. What stays true: an index is checked by the
//! operation that takes the element; of several indices each is checked separately.

use super::check::{Assign, Checker, LocalName, What};
use super::fold::folded;
use super::lower::{Typed, counted};
use super::roots::{Over, Roots, field_of, indexed, is_container};
use super::syntax::{Binary, Expr, Iteration, Name, Node, Quantifier};
use super::types::{BOOL, Class, INT};
use crate::net::{self, Domain, End, ExprKind, FaultKind, Fold, TypeId, Value};
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};

/// Attributes of types, of places, and of lists and sets.
const ATTRIBUTES: [&str; 14] = [
    "first",
    "last",
    "card",
    "mult",
    "size",
    "space",
    "full",
    "empty",
    "capacity",
    "prefix",
    "suffix",
    "first_index",
    "last_index",
    "last",
];

impl<'t> Checker<'t, '_> {
    pub(super) fn lower_composite(&mut self, expr: &Expr<'t>, want: TypeId) -> Typed {
        let span = expr.span;
        match &expr.node {
            Node::Struct(parts) => match self.types.class(want).clone() {
                Class::Struct { fields } if fields.len() == parts.len() => {
                    let parts = parts.iter().zip(&fields).map(|(part, (_, of))| self.coerce(part, *of)).collect();
                    structured(ExprKind::Row(parts), span)
                }
                Class::Struct { fields } => {
                    let message = format!(
                        "`{}` has {}, not {}",
                        self.types.name(want),
                        counted(fields.len(), "field"),
                        parts.len()
                    );
                    self.error(span, message);
                    self.wrong(span)
                }
                _ => self.not_this(expr, "a structure", want),
            },
            Node::Vector(parts) => match *self.types.class(want) {
                Class::Vector { element, size, .. } => self.vector_literal(span, parts, element, size, want),
                _ => self.not_this(expr, "a vector", want),
            },
            Node::Empty => match *self.types.class(want) {
                Class::List { .. } | Class::Set { .. } => structured(ExprKind::Const(Value::Seq(Vec::new())), span),
                _ => self.not_this(expr, "a list or set", want),
            },
            Node::Container(parts) => {
                let element = self.element_of(want);
                let class = self.types.class(want).clone();
                if !is_container(&class) {
                    return self.not_this(expr, "a list or set", want);
                }
                let parts = parts.iter().map(|part| self.coerce(part, element)).collect();
                match class {
                    Class::List { capacity, .. } => structured(ExprKind::List(parts, capacity), span),
                    Class::Set { capacity, .. } => structured(ExprKind::Set(parts, capacity), span),
                    _ => self.wrong(span),
                }
            }
            Node::Field(of, field) => self.lower_field(expr, of, *field, want),
            Node::FieldUpdate(of, field, value) => match field_of(self.types.class(want), field.text) {
                Some((position, field_type)) => {
                    let of = self.lower(of, want);
                    let value = self.coerce(value, field_type);
                    let index = net::Expr::int(i32::try_from(position).unwrap_or(0), field.span);
                    structured(replace(of.expr, index, value), span)
                }
                None => self.lower_field_of(expr, of, *field, want),
            },
            Node::Index(of, index) => self.lower_index(expr, of, index, want),
            Node::IndexUpdate(of, index, value) => match indexed(self.types.class(want), index.len()) {
                Some(element) => {
                    let of = self.lower(of, want);
                    let index = self.position(index, want, span);
                    let value = self.coerce(value, element);
                    structured(replace(of.expr, index, value), span)
                }
                None => self.lower_index_of(expr, of, index.len(), want),
            },
            Node::Slice(parts) => self.lower_slice(expr, parts, want),
            Node::Attribute(of, attribute) => self.lower_attribute(expr, of, *attribute, want),
            Node::Quantified(quantifier, iterations, filter, body) => {
                self.lower_quantified(expr, *quantifier, iterations, filter.as_deref(), body.as_deref(), want)
            }
            _ => self.wrong(span),
        }
    }

    fn not_this(&mut self, expr: &Expr<'t>, what: &str, want: TypeId) -> Typed {
        if !self.guessing {
            let message = format!("expected `{}`, found {what}", self.types.name(want));
            self.error(expr.span, message);
        }
        self.wrong(expr.span)
    }

    /// `[a, b]`: the last value fills the remaining elements.
    fn vector_literal(&mut self, span: Span, parts: &[Expr<'t>], element: TypeId, size: usize, of: TypeId) -> Typed {
        if parts.len() > size {
            let message = format!("`{}` has {}, not {}", self.types.name(of), counted(size, "element"), parts.len());
            self.error(span, message);
            return self.wrong(span);
        }
        let mut parts: Vec<net::Expr> = parts.iter().map(|part| self.coerce(part, element)).collect();
        let filled = (size - parts.len()) as u64;
        if let Some(last) = parts.last().cloned() {
            let mut nodes = self.types.get(element).leaves;
            last.visit(&mut |_| nodes += 1);
            if !self.expand(filled.saturating_mul(nodes), span) {
                return self.wrong(span);
            }
            parts.resize(size, last);
        }
        structured(ExprKind::Row(parts), span)
    }

    fn lower_field(&mut self, expr: &Expr<'t>, of: &Expr<'t>, field: Name<'t>, want: TypeId) -> Typed {
        let roots = self.roots(of);
        let fits = |root: TypeId| {
            field_of(self.types.class(root), field.text).is_some_and(|(_, of)| self.types.root(of) == want)
        };
        if let Some(root) = roots.clone().only(fits).one().filter(|&root| fits(root)) {
            let found = field_of(self.types.class(root), field.text);
            let base = self.lower(of, root);
            let (position, field_type) = found.unwrap_or((0, INT));
            let index = net::Expr::int(i32::try_from(position).unwrap_or(0), field.span);
            return self.of_type(expr, item(base.expr, index), field_type, want);
        }
        self.lower_field_of(expr, of, field, want)
    }

    /// Reports why a field, or a structure with a replaced value, is not of the expected type.
    fn lower_field_of(&mut self, expr: &Expr<'t>, of: &Expr<'t>, field: Name<'t>, want: TypeId) -> Typed {
        match self.without(expr, of, want, |class| field_of(class, field.text).is_some()) {
            Ok(root) => self.no_field(of, field, root),
            Err(told) => told,
        }
    }

    /// Reports a value that lacks a part, by its type; or what is wrong before that: the value itself, or a
    /// part of another type than expected.
    fn without(
        &mut self,
        expr: &Expr<'t>,
        of: &Expr<'t>,
        want: TypeId,
        has_part: impl Fn(&Class) -> bool,
    ) -> Result<TypeId, Typed> {
        let roots = self.roots(of);
        if roots == Roots::Any {
            return Err(self.lower(of, INT));
        }
        if !roots.clone().only(|root| has_part(self.types.class(root))).is_none() {
            return Err(self.mismatch(expr, want));
        }
        let before = self.findings.count();
        self.report_within(of, &roots);
        if self.findings.count() > before {
            return Err(self.wrong(of.span));
        }
        Ok(roots.one().unwrap_or(INT))
    }

    fn no_field(&mut self, of: &Expr<'t>, field: Name<'t>, root: TypeId) -> Typed {
        match self.types.class(root) {
            Class::Struct { fields } => {
                let known: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
                let message = format!("`{}` has no field `{}`", self.types.name(root), field.text);
                self.findings.add(|| {
                    let diagnostic = Diagnostic::at(field.span, message);
                    match did_you_mean(field.text, known.iter().map(String::as_str)) {
                        Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
                        None => diagnostic.help(format!("its fields: {}", known.join(", "))),
                    }
                });
            }
            _ => {
                let message = format!("`{}` is not a structure, so it has no fields", self.types.name(root));
                self.error(of.span, message);
            }
        }
        self.wrong(of.span)
    }

    fn lower_index(&mut self, expr: &Expr<'t>, of: &Expr<'t>, index: &[Expr<'t>], want: TypeId) -> Typed {
        let roots = self.roots(of);
        let fits = |root: TypeId| {
            indexed(self.types.class(root), index.len()).is_some_and(|element| self.types.root(element) == want)
        };
        if let Some(root) = roots.clone().only(fits).one().filter(|&root| fits(root)) {
            let element = indexed(self.types.class(root), index.len()).unwrap_or(INT);
            let base = self.lower(of, root);
            let position = self.position(index, root, expr.span);
            return self.of_type(expr, item(base.expr, position), element, want);
        }
        self.lower_index_of(expr, of, index.len(), want)
    }

    /// Reports why an element, or a value with a replaced element, is not of the expected type.
    fn lower_index_of(&mut self, expr: &Expr<'t>, of: &Expr<'t>, count: usize, want: TypeId) -> Typed {
        match self.without(expr, of, want, |class| indexed(class, count).is_some()) {
            Ok(root) => self.not_indexed(of, count, root),
            Err(told) => told,
        }
    }

    fn not_indexed(&mut self, of: &Expr<'t>, count: usize, root: TypeId) -> Typed {
        let name = self.types.name(root);
        let message = match self.types.class(root) {
            Class::Vector { indices, .. } => {
                format!("`{name}` takes {}, not {count}", counted(indices.len(), "index").replace("indexs", "indices"))
            }
            Class::List { .. } => format!("`{name}` takes 1 index, not {count}"),
            _ => format!("`{name}` is neither a vector nor a list, so it has no elements to pick"),
        };
        self.error(of.span, message);
        self.wrong(of.span)
    }

    /// The number, from 0, of the element that the indices of a vector or list select.
    pub(super) fn position(&mut self, index: &[Expr<'t>], root: TypeId, span: Span) -> net::Expr {
        let types: Vec<TypeId> = match self.types.class(root) {
            Class::Vector { indices, .. } => indices.clone(),
            Class::List { index, .. } => vec![*index],
            _ => return net::Expr::int(0, span),
        };
        let mut position: Option<Typed> = None;
        for (part, &of) in index.iter().zip(&types) {
            let mut typed = self.lower(part, self.types.root(of));
            if types.len() > 1 {
                typed = self.checked(typed, of, FaultKind::Index);
            }
            let (first, card) = (self.types.get(of).low, self.types.card(of));
            let offset = shifted(typed, -first);
            position = Some(match position {
                None => offset,
                Some(before) => {
                    let times = operation(net::Binary::Mul, before.expr, small(card, span), span);
                    operation(net::Binary::Add, times.expr, offset.expr, span)
                }
            });
        }
        position.map_or(net::Expr::int(0, span), |position| position.expr)
    }

    fn lower_slice(&mut self, expr: &Expr<'t>, parts: &[Expr<'t>; 3], want: TypeId) -> Typed {
        let Class::List { index, .. } = *self.types.class(want) else {
            let roots = self.roots(&parts[0]);
            return match roots {
                Roots::Any => self.lower(&parts[0], INT),
                _ => self.not_this(expr, "a slice of a list", want),
            };
        };
        let first = self.types.get(index).low;
        let of = self.lower(&parts[0], want);
        let mut bound = |part: &Expr<'t>| {
            let typed = self.lower(part, self.types.root(index));
            Box::new(shifted(typed, -first).expr)
        };
        let (from, to) = (bound(&parts[1]), bound(&parts[2]));
        structured(ExprKind::Slice { of: Box::new(of.expr), from, to }, expr.span)
    }

    // Operators on lists and sets.

    /// An operand that is a value of the container type, or an element of it.
    fn operand(
        &mut self,
        part: &Expr<'t>,
        root: TypeId,
        single: impl FnOnce(Vec<net::Expr>) -> ExprKind,
    ) -> Box<net::Expr> {
        let element = self.element_of(root);
        let roots = self.roots(part);
        let is_element = !roots.has(root, &self.types) && roots.has(self.types.root(element), &self.types);
        if is_element {
            let value = self.coerce(part, element);
            return Box::new(folded(single(vec![value]), part.span));
        }
        Box::new(self.lower(part, root).expr)
    }

    pub(super) fn lower_set(
        &mut self,
        span: Span,
        operator: Binary,
        left: &Expr<'t>,
        right: &Expr<'t>,
        root: TypeId,
    ) -> Typed {
        let Class::Set { capacity, .. } = *self.types.class(root) else { return self.wrong(span) };
        let left = if operator == Binary::Subtract {
            Box::new(self.lower(left, root).expr)
        } else {
            self.operand(left, root, |one| ExprKind::Set(one, capacity))
        };
        let right = self.operand(right, root, |one| ExprKind::Set(one, capacity));
        structured(
            match operator {
                Binary::Or => ExprKind::Union(left, right, capacity),
                Binary::And => ExprKind::Intersect(left, right),
                _ => ExprKind::Difference(left, right),
            },
            span,
        )
    }

    pub(super) fn lower_concatenation(&mut self, span: Span, left: &Expr<'t>, right: &Expr<'t>, root: TypeId) -> Typed {
        let Class::List { capacity, .. } = *self.types.class(root) else { return self.wrong(span) };
        let left = self.operand(left, root, |one| ExprKind::List(one, capacity));
        let right = self.operand(right, root, |one| ExprKind::List(one, capacity));
        structured(ExprKind::Concat(left, right, capacity), span)
    }

    pub(super) fn lower_membership(&mut self, span: Span, left: &Expr<'t>, right: &Expr<'t>) -> Typed {
        let element_roots = self.roots(left);
        let containers = self.roots(right).only(|root| {
            is_container(self.types.class(root))
                && element_roots.has(self.types.root(self.element_of(root)), &self.types)
        });
        let root = match containers.one() {
            Some(root) if is_container(self.types.class(root)) => root,
            _ => match self.lower_open(right, "a list or set", is_container) {
                Some((_, root)) => root,
                None => return self.wrong(span),
            },
        };
        let element = self.element_of(root);
        // No check: a value outside the element's type is in no such container.
        let left = self.lower(left, self.types.root(element));
        let right = self.lower(right, root);
        Typed::new(ExprKind::In(Box::new(left.expr), Box::new(right.expr)), span, 0, 1)
    }

    // Attributes.

    fn lower_attribute(&mut self, expr: &Expr<'t>, of: &Expr<'t>, attribute: Name<'t>, want: TypeId) -> Typed {
        let span = expr.span;
        if let Node::Name(name) = of.node {
            if let Some(&place) = self.places.get(name).filter(|_| matches!(attribute.text, "card" | "mult")) {
                if !self.may_look(span, &format!("the attribute `'{}` of a place", attribute.text)) {
                    return self.wrong(span);
                }
                let kind = if attribute.text == "card" { ExprKind::Distinct(place) } else { ExprKind::Total(place) };
                return self.count(expr, kind, want);
            }
            if let Some(&id) = self.type_names.get(name) {
                let is_variable = self.local(name).is_some() || self.constants.contains_key(name);
                if matches!(attribute.text, "first" | "last" | "card") {
                    return self.type_attribute(expr, id, attribute, want);
                }
                if !is_variable {
                    let message = format!("a type has no attribute `{}`", attribute.text);
                    self.findings.add(|| {
                        Diagnostic::at(attribute.span, message).help("a type has `'first`, `'last` and `'card`")
                    });
                    return self.wrong(span);
                }
            }
        }
        self.container_attribute(expr, of, attribute, want)
    }

    fn type_attribute(&mut self, expr: &Expr<'t>, id: TypeId, attribute: Name<'t>, want: TypeId) -> Typed {
        let span = expr.span;
        if !self.types.is_discrete(id) {
            let message = format!("`{}` is not discrete, so it has no `'{}`", self.types.name(id), attribute.text);
            self.error(span, message);
            return self.wrong(span);
        }
        let info = self.types.get(id);
        let value = match attribute.text {
            "first" => info.low,
            "last" => info.high,
            _ => {
                let card = self.types.card(id);
                if !self.types.is_numeric(want) {
                    return self.mismatch(expr, want);
                }
                if card > i64::from(i32::MAX) {
                    let message = format!("`{}` has {card} values, more than an `int` can count", self.types.name(id));
                    self.error(span, message);
                    return self.wrong(span);
                }
                return self.numeric(ExprKind::Const(Value::Int(small_int(card))), span, card, card, want);
            }
        };
        self.of_type(expr, ExprKind::Const(Value::Int(small_int(value))), id, want)
    }

    /// A count, which may be of any numeric type.
    fn count(&mut self, expr: &Expr<'t>, kind: ExprKind, want: TypeId) -> Typed {
        if !self.types.is_numeric(want) {
            return self.mismatch(expr, want);
        }
        self.numeric(kind, expr.span, 0, i64::MAX, want)
    }

    fn container_attribute(&mut self, expr: &Expr<'t>, of: &Expr<'t>, attribute: Name<'t>, want: TypeId) -> Typed {
        let span = expr.span;
        let of_lists = matches!(attribute.text, "first" | "last" | "prefix" | "suffix" | "first_index" | "last_index");
        let of_containers = matches!(attribute.text, "size" | "space" | "full" | "empty" | "capacity");
        if let Node::Name(name) = of.node
            && matches!(attribute.text, "card" | "mult")
            && self.local(name).is_none()
            && !self.constants.contains_key(name)
            && !self.enumerated.contains_key(name)
        {
            let mut known: Vec<&str> = self.places.keys().copied().collect();
            known.extend(self.type_names.keys().copied());
            self.unknown("place or type", name, of.span, &known);
            return self.wrong(span);
        }
        if !of_lists && !of_containers {
            let message = format!("there is no attribute `{}`", attribute.text);
            let misused = matches!(attribute.text, "card" | "mult");
            self.findings.add(|| {
                let diagnostic = Diagnostic::at(attribute.span, message);
                match did_you_mean(attribute.text, ATTRIBUTES) {
                    _ if attribute.text == "length" => diagnostic.help("the number of elements is `'size`"),
                    _ if misused => diagnostic.help("only places and types have it; lists and sets have `'size`"),
                    Some(close) => diagnostic.help(format!("did you mean `'{close}`?")),
                    None => diagnostic,
                }
            });
            return self.wrong(span);
        }
        let (what, is): (&str, fn(&Class) -> bool) = if of_lists {
            ("a list", |class| matches!(class, Class::List { .. }))
        } else {
            ("a list or set", is_container)
        };
        // The context determines which of several list types is meant if the value is an element or a list.
        let roots = self.roots(of);
        let by_context = roots.clone().only(|root| match (attribute.text, self.types.class(root)) {
            ("prefix" | "suffix", class) => is(class) && root == want,
            ("first" | "last", Class::List { element, .. }) => self.types.root(*element) == want,
            (_, class) => is(class),
        });
        let root = match by_context.one().filter(|&root| is(self.types.class(root))) {
            Some(root) => root,
            None => match self.lower_open(of, what, is) {
                Some((_, root)) => root,
                None => return self.wrong(span),
            },
        };
        let list = Box::new(self.lower(of, root).expr);
        let (index, element, capacity) = match *self.types.class(root) {
            Class::List { index, element, capacity } => (index, element, capacity),
            Class::Set { element, capacity } => (INT, element, capacity),
            _ => return self.wrong(span),
        };
        let capacity = i64::from(capacity);
        let size = |list| Typed::new(ExprKind::Size(list), span, 0, capacity);
        match attribute.text {
            "size" => self.count(expr, ExprKind::Size(list), want),
            "capacity" => self.count(expr, ExprKind::Const(Value::Int(small_int(capacity))), want),
            "space" => {
                let kind =
                    ExprKind::Binary(net::Binary::Sub, Box::new(small(capacity, span)), Box::new(size(list).expr));
                self.count(expr, kind, want)
            }
            "full" | "empty" if want == BOOL => {
                let compared = if attribute.text == "full" { capacity } else { 0 };
                operation(net::Binary::Eq, size(list).expr, small(compared, span), span)
            }
            "first" => self.of_type(expr, ExprKind::End(End::First, list), element, want),
            "last" => self.of_type(expr, ExprKind::End(End::Last, list), element, want),
            "prefix" => self.of_type(expr, ExprKind::End(End::Prefix, list), root, want),
            "suffix" => self.of_type(expr, ExprKind::End(End::Suffix, list), root, want),
            "first_index" => {
                let first = small_int(self.types.get(index).low);
                self.of_type(expr, ExprKind::Const(Value::Int(first)), index, want)
            }
            "last_index" => {
                let first = self.types.get(index).low;
                let last = shifted(Typed::new(ExprKind::End(End::LastIndex, list), span, 0, capacity - 1), first);
                self.of_type(expr, last.expr.kind, index, want)
            }
            _ => self.mismatch(expr, want),
        }
    }

    // Quantifiers.

    fn lower_quantified(
        &mut self,
        expr: &Expr<'t>,
        quantifier: Quantifier,
        iterations: &[Iteration<'t>],
        filter: Option<&Expr<'t>>,
        body: Option<&Expr<'t>>,
        want: TypeId,
    ) -> Typed {
        let span = expr.span;
        if !self.may_look(span, &format!("`{}`", quantifier.word())) {
            return self.wrong(span);
        }
        let is_truth = matches!(quantifier, Quantifier::Forall | Quantifier::Exists);
        if is_truth != (want == BOOL) || !(is_truth || self.types.is_numeric(want)) {
            return self.mismatch(expr, want);
        }
        let depth = self.locals.len();
        let lowered: Option<Vec<net::Iteration>> =
            iterations.iter().map(|iteration| self.iteration(iteration)).collect();
        let filter = filter.map(|filter| Box::new(self.lower(filter, BOOL).expr));
        let body = body.map(|body| Box::new(self.lower(body, want).expr));
        self.locals.truncate(depth);
        let Some(iterations) = lowered else { return self.wrong(span) };
        let info = self.types.get(want);
        let (first, last) = (small_int(info.low), small_int(info.high));
        let fold = match quantifier {
            Quantifier::Forall => Fold::Forall,
            Quantifier::Exists => Fold::Exists,
            Quantifier::Card => Fold::Count,
            Quantifier::Mult => {
                if !matches!(&iterations[..], [net::Iteration { domain: Domain::Place(_), .. }]) {
                    self.error(span, "`mult` takes exactly one variable, over the tokens of a place");
                }
                Fold::Mult
            }
            Quantifier::Min => Fold::Min(last),
            Quantifier::Max => Fold::Max(first),
            Quantifier::Sum => Fold::Sum,
            Quantifier::Product => Fold::Product,
        };
        let kind = ExprKind::Fold { fold, iterations, filter, body };
        if is_truth {
            return Typed::new(kind, span, 0, 1);
        }
        self.numeric(kind, span, i64::MIN, i64::MAX, want)
    }

    /// Lowers an iteration and puts its variable in scope.
    pub(super) fn iteration(&mut self, iteration: &Iteration<'t>) -> Option<net::Iteration> {
        let (domain, of) = self.domain(iteration)?;
        let variable = self.fresh();
        let what = match domain {
            Domain::Place(place) => What::Token(variable, place),
            _ => What::Variable(variable, Assign::Iteration),
        };
        self.locals.push(LocalName { name: iteration.name.text, of, what });
        Some(net::Iteration { variable, domain })
    }

    /// The domain of an iteration, and the type of its variable.
    pub(super) fn domain(&mut self, iteration: &Iteration<'t>) -> Option<(Domain, TypeId)> {
        let span = iteration.domain.span;
        let over = self.over(iteration);
        if let (Some(range), Some(Over::Place(_) | Over::Container(_))) = (&iteration.range, over) {
            self.error(range.span, "only a type can be cut down to a range");
            return None;
        }
        match over {
            Some(Over::Type(id)) if !self.types.is_discrete(id) => {
                let message = format!("`{}` is not discrete, so its values cannot be listed", self.types.name(id));
                self.error(span, message);
                None
            }
            Some(Over::Type(id)) => {
                let info = self.types.get(id);
                let (first, last) = (info.low, info.high);
                let (low, high) = match &iteration.range {
                    None => (small(first, span), small(last, span)),
                    Some(range) => {
                        let root = self.types.root(id);
                        let low = self.lower(&range.low, root);
                        let high = self.lower(&range.high, root);
                        (at_least(low, first), at_most(high, last))
                    }
                };
                Some((Domain::Range(low, high), id))
            }
            Some(Over::Place(place)) => Some((Domain::Place(place), INT)),
            Some(Over::Container(root)) => {
                let of = self.lower(&iteration.domain, root);
                Some((Domain::Elements(of.expr), self.element_of(root)))
            }
            None => {
                let name = if let Node::Name(name) = iteration.domain.node { Some(name) } else { None };
                if name.is_some_and(|name| self.places.contains_key(name) && self.local(name).is_none()) {
                    self.may_look(span, "the tokens of a place");
                    return None;
                }
                let has = |name: &str| self.constants.contains_key(name) || self.enumerated.contains_key(name);
                if let Some(name) = name.filter(|name| self.local(name).is_none() && !has(name)) {
                    let mut known: Vec<&str> = self.type_names.keys().copied().collect();
                    known.extend(self.locals.iter().map(|local| local.name));
                    if self.sight == super::check::Sight::Marking {
                        known.extend(self.places.keys().copied());
                    }
                    self.unknown("type, place, list or set", name, span, &known);
                    return None;
                }
                self.lower_open(&iteration.domain, "a type, a list or a set", is_container);
                None
            }
        }
    }
}

fn structured(kind: ExprKind, span: Span) -> Typed {
    Typed { expr: folded(kind, span), low: i64::MIN, high: i64::MAX }
}

fn replace(of: net::Expr, index: net::Expr, value: net::Expr) -> ExprKind {
    ExprKind::Replace { of: Box::new(of), index: Box::new(index), value: Box::new(value), fault: FaultKind::Index }
}

fn item(of: net::Expr, index: net::Expr) -> ExprKind {
    ExprKind::Item { of: Box::new(of), index: Box::new(index), fault: FaultKind::Index }
}

/// The same as [`replace`], for statements.
pub(super) fn replaced(of: net::Expr, index: net::Expr, value: net::Expr, span: Span) -> net::Expr {
    folded(replace(of, index, value), span)
}

/// The same as [`item`], for statements.
pub(super) fn element(of: net::Expr, index: net::Expr, span: Span) -> net::Expr {
    folded(item(of, index), span)
}

pub(super) fn small_int(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}

fn small(value: i64, span: Span) -> net::Expr {
    net::Expr::int(small_int(value), span)
}

fn operation(operator: net::Binary, left: net::Expr, right: net::Expr, span: Span) -> Typed {
    let is_truth = operator == net::Binary::Eq;
    let (low, high) = if is_truth { (0, 1) } else { (i64::MIN, i64::MAX) };
    Typed::new(ExprKind::Binary(operator, Box::new(left), Box::new(right)), span, low, high)
}

/// A number plus a constant.
fn shifted(typed: Typed, by: i64) -> Typed {
    if by == 0 {
        return typed;
    }
    let span = typed.expr.span;
    // The first value of an index type may be the smallest number, whose negation fits in no constant.
    let (operator, amount) = if by > 0 { (net::Binary::Add, by) } else { (net::Binary::Sub, -by) };
    let half = i64::from(i32::MAX);
    if amount > half {
        let once = operation(operator, typed.expr, small(half, span), span);
        return operation(operator, once.expr, small(amount - half, span), span);
    }
    operation(operator, typed.expr, small(amount, span), span)
}

/// The larger of a bound and the first value of the type.
fn at_least(bound: Typed, first: i64) -> net::Expr {
    clamped(bound, first, net::Binary::Lt, |bound, first| bound.low >= first)
}

/// The smaller of a bound and the last value of the type.
fn at_most(bound: Typed, last: i64) -> net::Expr {
    clamped(bound, last, net::Binary::Gt, |bound, last| bound.high <= last)
}

fn clamped(bound: Typed, limit: i64, beyond: net::Binary, inside: impl Fn(&Typed, i64) -> bool) -> net::Expr {
    if inside(&bound, limit) {
        return bound.expr;
    }
    let span = bound.expr.span;
    let is_beyond = operation(beyond, bound.expr.clone(), small(limit, span), span).expr;
    folded(ExprKind::If(Box::new(is_beyond), Box::new(small(limit, span)), Box::new(bound.expr)), span)
}
