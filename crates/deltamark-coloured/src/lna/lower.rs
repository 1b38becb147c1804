//! Lowers expressions of the syntax tree to expressions of the net.
//!
//! In: an expression, and the root type that its context requires. Out: an expression of the net with every
//! check that the language requires, and the interval of its values. What stays true: a check is omitted only
//! if the interval proves that it cannot fail; an error is reported once, at its position.
//!
//! Values are checked on arrival: in a token, an argument, a variable, a result, an element
//! ([`Checker::coerce`]). In between, numbers of a range type may leave the range; those of a modular type
//! are reduced by every operation.
//!
//! Lists, sets, vectors, structures and quantifiers are in [`composite`](super::composite).

use super::check::{Checker, LocalName, Sight, What};
use super::fold::folded;
use super::roots::Roots;
use super::syntax::{Binary, Expr, Name, Node, Unary};
use super::types::{BOOL, Class, INT};
use crate::net::{self, ExprKind, FaultKind, TypeId, Value};
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};

/// A lowered expression.
pub(crate) struct Typed {
    pub expr: net::Expr,
    /// The least value. Meaningless for structured values.
    pub low: i64,
    /// The greatest value.
    pub high: i64,
}

/// An operation on two operands.
type OfTwo<'e, 't> = (Binary, &'e Expr<'t>, &'e Expr<'t>);

impl Typed {
    pub fn new(kind: ExprKind, span: Span, low: i64, high: i64) -> Self {
        let expr = folded(kind, span);
        match super::fold::number(&expr) {
            Some(value) => Typed { expr, low: value, high: value },
            None => Typed { expr, low, high },
        }
    }

    pub fn int(value: i64, span: Span) -> Self {
        let small = i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX });
        Typed { expr: net::Expr::int(small, span), low: value, high: value }
    }

    /// A placeholder for an error that has been reported.
    fn wrong(span: Span) -> Self {
        Typed { expr: net::Expr::int(0, span), low: i64::MIN, high: i64::MAX }
    }
}

impl<'t> Checker<'t, '_> {
    /// Lowers an expression to a value of exactly this type, with a check if it may be outside.
    pub fn coerce(&mut self, expr: &Expr<'t>, of: TypeId) -> net::Expr {
        let typed = self.lower(expr, self.types.root(of));
        self.checked(typed, of, FaultKind::OutOfRange).expr
    }

    /// The same value, with a check if it may be outside the type.
    pub fn checked(&mut self, typed: Typed, of: TypeId, fault: FaultKind) -> Typed {
        let info = self.types.get(of);
        if !self.types.is_discrete(of) || (info.low <= typed.low && typed.high <= info.high) {
            return typed;
        }
        let (low, high) = (info.low, info.high);
        let small = |value: i64| i32::try_from(value).unwrap_or(0);
        let span = typed.expr.span;
        let kind = ExprKind::Check { of: Box::new(typed.expr), low: small(low), high: small(high), fault };
        Typed::new(kind, span, low, high)
    }

    /// Lowers an expression whose type the context leaves open, if `fits` accepts it.
    pub fn lower_open(
        &mut self,
        expr: &Expr<'t>,
        what: &str,
        fits: impl Fn(&Class) -> bool,
    ) -> Option<(Typed, TypeId)> {
        let roots = self.roots(expr);
        let fitting = roots.clone().only(|root| fits(self.types.class(root)));
        if let Some(root) = fitting.one() {
            return Some((self.lower(expr, root), root));
        }
        self.report_open(expr, &roots, &fitting, what);
        None
    }

    /// Reports the errors inside an expression that has no type, or whose type is unknown.
    pub(super) fn report_within(&mut self, expr: &Expr<'t>, roots: &Roots) {
        match &expr.node {
            Node::Binary(operator, left, right) if roots.is_none() => {
                self.not_of_two(expr, (*operator, left, right), INT);
            }
            Node::Unary(operator, of) if roots.is_none() => {
                self.not_of(expr, operator.sign(), of, INT);
            }
            Node::Struct(_) | Node::Vector(_) | Node::Container(_) | Node::Empty if roots.is_none() => {
                let message = format!("no type of the net has {} like this", literal(&expr.node));
                self.error(expr.span, message);
            }
            Node::Quantified(quantifier, _, _, Some(body)) if roots.is_none() => {
                self.error(body.span, format!("`{}` takes numbers", quantifier.word()));
            }
            _ if roots.is_none() || *roots == Roots::Any => {
                let guessing = std::mem::replace(&mut self.guessing, true);
                self.lower(expr, INT);
                self.guessing = guessing;
            }
            _ => {}
        }
    }

    /// The same for two operands, of which at least one contains an error.
    fn report_operands(&mut self, expr: &Expr<'t>, operands: [(&Expr<'t>, &Roots); 2]) {
        let before = self.findings.count();
        for (operand, roots) in operands {
            self.report_within(operand, roots);
        }
        if self.findings.count() == before {
            self.error(expr.span, "the type of this is not clear");
        }
    }

    /// Reports why an expression has no unique type.
    fn report_open(&mut self, expr: &Expr<'t>, roots: &Roots, fitting: &Roots, what: &str) {
        let before = self.findings.count();
        self.report_within(expr, roots);
        if self.findings.count() > before || self.findings.is_full() {
            return;
        }
        let message = match fitting {
            Roots::Only(list) if list.is_empty() => format!("expected {what}, found {}", self.shown(expr, roots)),
            Roots::Only(list) => {
                let names: Vec<String> = list.iter().map(|&root| format!("`{}`", self.types.name(root))).collect();
                format!("the type is not clear: it can be {}", names.join(" or "))
            }
            _ => "the type is not clear".into(),
        };
        self.findings.add(|| {
            let diagnostic = Diagnostic::at(expr.span, message);
            if fitting.is_none() { diagnostic } else { diagnostic.help("say which by a cast: `T(…)`") }
        });
    }

    /// A description of an expression, for messages.
    fn shown(&self, expr: &Expr<'t>, roots: &Roots) -> String {
        let declared = match &expr.node {
            Node::Name(name) => match self.local(name) {
                Some(local) => Some(local.of),
                None => self.constants.get(name).map(|constant| constant.of),
            },
            Node::Call(name, _) => match self.functions.get(name.text) {
                Some(signature) => Some(signature.result),
                None => self.type_names.get(name.text).copied(),
            },
            Node::Component(name, number) => self.component_type(name.text, *number),
            _ => None,
        };
        match (declared, roots) {
            (Some(of), _) => format!("`{}`", self.types.name(of)),
            (None, Roots::Numeric) => "a number".into(),
            (None, Roots::Only(list)) if list.len() == 1 => format!("`{}`", self.types.name(list[0])),
            (None, Roots::Only(list)) if !list.is_empty() => "a value of several types".into(),
            _ => literal(&expr.node).into(),
        }
    }

    /// Reports an expression that is not of the expected type.
    pub fn mismatch(&mut self, expr: &Expr<'t>, want: TypeId) -> Typed {
        if !self.guessing {
            let roots = self.roots(expr);
            let found = self.shown(expr, &roots);
            let message = format!("expected `{}`, found {found}", self.types.name(want));
            let castable = self.types.is_numeric(want) && !roots.clone().numeric(&self.types).is_none();
            let name = self.types.name(want).to_string();
            self.findings.add(|| {
                let diagnostic = Diagnostic::at(expr.span, message);
                if castable { diagnostic.help(format!("convert it: `{name}(…)`")) } else { diagnostic }
            });
        }
        Typed::wrong(expr.span)
    }

    /// Lowers an expression to a value of this root type.
    pub fn lower(&mut self, expr: &Expr<'t>, want: TypeId) -> Typed {
        let span = expr.span;
        match &expr.node {
            Node::Number(value) => match *self.types.class(want) {
                _ if *value > i64::from(i32::MAX) => {
                    self.error(span, format!("`{value}` is too large; numbers go up to {}", i32::MAX));
                    Typed::wrong(span)
                }
                Class::Range => Typed::int(*value, span),
                Class::Mod(modulus) => Typed::int(value.rem_euclid(i64::from(modulus)), span),
                _ => self.mismatch(expr, want),
            },
            Node::Name(name) => self.lower_name(expr, name, want),
            Node::Call(name, arguments) => self.lower_call(expr, *name, arguments, want),
            Node::Binary(operator, left, right) => self.lower_binary(expr, (*operator, left, right), want),
            Node::Unary(operator, of) => self.lower_unary(expr, *operator, of, want),
            Node::Conditional(parts) => {
                let condition = self.lower(&parts[0], BOOL);
                let then = self.lower(&parts[1], want);
                let otherwise = self.lower(&parts[2], want);
                let (low, high) = (then.low.min(otherwise.low), then.high.max(otherwise.high));
                // A branch that is statically taken is the value; the other one was checked all the same.
                if let Some(known) = super::fold::number(&condition.expr) {
                    return if known != 0 { then } else { otherwise };
                }
                let kind = ExprKind::If(Box::new(condition.expr), Box::new(then.expr), Box::new(otherwise.expr));
                Typed::new(kind, span, low, high)
            }
            Node::Component(name, number) => self.lower_component(expr, *name, *number, want),
            _ => self.lower_composite(expr, want),
        }
    }

    /// A value of a declared type, if its root is the expected one.
    pub fn of_type(&mut self, expr: &Expr<'t>, kind: ExprKind, of: TypeId, want: TypeId) -> Typed {
        if self.types.root(of) != want {
            return self.mismatch(expr, want);
        }
        let info = self.types.get(of);
        Typed::new(kind, expr.span, info.low, info.high)
    }

    fn lower_name(&mut self, expr: &Expr<'t>, name: &'t str, want: TypeId) -> Typed {
        let span = expr.span;
        if let Some(LocalName { of, what, .. }) = self.local(name) {
            return match what {
                What::Variable(var, _) => self.of_type(expr, ExprKind::Var(var), of, want),
                What::Known(value) => {
                    let value = i32::try_from(value).unwrap_or(0);
                    self.of_type(expr, ExprKind::Const(Value::Int(value)), of, want)
                }
                What::Token(..) => {
                    self.findings.add(|| {
                        Diagnostic::at(span, format!("`{name}` is a token, not a value"))
                            .help(format!("write `{name}->1` for its first component"))
                    });
                    Typed::wrong(span)
                }
            };
        }
        if let Some(constant) = self.constants.get(name) {
            let (of, value) = (constant.of, constant.value.kind.clone());
            if let ExprKind::Const(Value::Seq(_)) = &value {
                let leaves = self.types.get(of).leaves;
                self.expand(leaves, span);
            }
            return self.of_type(expr, value, of, want);
        }
        if let Some(all) = self.enumerated.get(name) {
            return match all.iter().find(|&&(root, _)| root == want) {
                Some(&(_, value)) => Typed::int(i64::from(value), span),
                None => self.mismatch(expr, want),
            };
        }
        self.unknown_value(name, span);
        Typed::wrong(span)
    }

    fn unknown_value(&mut self, name: &'t str, span: Span) {
        let mut known: Vec<&str> = self.locals.iter().map(|local| local.name).collect();
        known.extend(self.constants.keys().copied());
        known.extend(self.enumerated.keys().copied());
        if self.places.contains_key(name) && did_you_mean(name, known.iter().copied()).is_none() {
            self.findings.add(|| {
                Diagnostic::at(span, format!("`{name}` is a place, not a value"))
                    .help(format!("write `{name}'card` for the number of its distinct tokens"))
            });
            return;
        }
        if self.type_names.contains_key(name) {
            self.error(span, format!("`{name}` is a type, not a value"));
            return;
        }
        if self.functions.contains_key(name) {
            self.findings.add(|| {
                Diagnostic::at(span, format!("`{name}` is a function, not a value"))
                    .help(format!("call it: `{name}(…)`"))
            });
            return;
        }
        self.unknown("variable, constant or enumeration value", name, span, &known);
    }

    /// A call, or a cast.
    fn lower_call(&mut self, expr: &Expr<'t>, name: Name<'t>, arguments: &[Expr<'t>], want: TypeId) -> Typed {
        let span = expr.span;
        if let Some(signature) = self.functions.get(name.text) {
            let (id, result, parameters) = (signature.id, signature.result, signature.parameters.clone());
            if parameters.len() != arguments.len() {
                let message = format!(
                    "function `{}` takes {}, not {}",
                    name.text,
                    counted(parameters.len(), "argument"),
                    arguments.len()
                );
                self.error(span, message);
                return Typed::wrong(span);
            }
            let arguments = arguments.iter().zip(parameters).map(|(argument, of)| self.coerce(argument, of)).collect();
            return self.of_type(expr, ExprKind::Call(id, arguments), result, want);
        }
        let Some(&to) = self.type_names.get(name.text) else {
            let mut known: Vec<&str> = self.functions.keys().copied().collect();
            known.extend(self.type_names.keys().copied());
            self.unknown("function or type", name.text, name.span, &known);
            return Typed::wrong(span);
        };
        let [argument] = arguments else {
            self.error(span, format!("a cast to `{}` takes one value, not {}", name.text, arguments.len()));
            return Typed::wrong(span);
        };
        self.lower_cast(expr, argument, to, want)
    }

    fn lower_cast(&mut self, expr: &Expr<'t>, argument: &Expr<'t>, to: TypeId, want: TypeId) -> Typed {
        let root = self.types.root(to);
        if root != want {
            return self.mismatch(expr, want);
        }
        let roots = self.roots(argument);
        let from = match &roots {
            // An untyped literal is a plain number, so that `m3(5)` fails as a cast.
            Roots::Numeric if self.types.is_numeric(root) => INT,
            Roots::Any => root,
            // It has no type at all, so it is reported as a value of this one.
            roots if roots.is_none() => root,
            roots if roots.has(root, &self.types) => root,
            roots if self.types.is_numeric(root) => match roots.clone().numeric(&self.types).one() {
                Some(from) => from,
                None => return self.no_cast(argument, &roots.clone(), to),
            },
            roots => return self.no_cast(argument, &roots.clone(), to),
        };
        let typed = self.lower(argument, from);
        let (low, high) = (typed.low, typed.high);
        let mut typed = self.checked(typed, to, FaultKind::Cast);
        // An inserted check reports the cast; without one the value keeps its own span.
        if (typed.low, typed.high) != (low, high) {
            typed.expr.span = expr.span;
        }
        typed
    }

    fn no_cast(&mut self, argument: &Expr<'t>, roots: &Roots, to: TypeId) -> Typed {
        let message = format!("{} cannot be cast to `{}`", self.shown(argument, roots), self.types.name(to));
        self.findings.add(|| {
            Diagnostic::at(argument.span, message)
                .help("numbers of all types can be cast to each other, other values only within their own type")
        });
        Typed::wrong(argument.span)
    }

    /// A number of this numeric root type that results from an operation.
    pub fn numeric(&mut self, kind: ExprKind, span: Span, low: i64, high: i64, root: TypeId) -> Typed {
        let typed = Typed::new(kind, span, low, high);
        match *self.types.class(root) {
            Class::Mod(modulus) if typed.low < 0 || typed.high >= i64::from(modulus) => {
                Typed::new(ExprKind::Wrap(Box::new(typed.expr), modulus), span, 0, i64::from(modulus) - 1)
            }
            _ => typed,
        }
    }

    fn lower_unary(&mut self, expr: &Expr<'t>, operator: Unary, of: &Expr<'t>, want: TypeId) -> Typed {
        let span = expr.span;
        match operator {
            Unary::Not if want == BOOL => {
                let of = self.lower(of, BOOL);
                Typed::new(ExprKind::Unary(net::Unary::Not, Box::new(of.expr)), span, 0, 1)
            }
            Unary::Minus | Unary::Plus if self.types.is_numeric(want) => {
                // The smallest number is the negation of a number that does not fit itself.
                if operator == Unary::Minus && matches!(of.node, Node::Number(value) if value == 1 << 31) {
                    let smallest = ExprKind::Const(Value::Int(i32::MIN));
                    return self.numeric(smallest, span, i64::from(i32::MIN), i64::from(i32::MIN), want);
                }
                let of = self.lower(of, want);
                if operator == Unary::Plus {
                    return of;
                }
                let (low, high) = (of.high.saturating_neg(), of.low.saturating_neg());
                self.numeric(ExprKind::Unary(net::Unary::Neg, Box::new(of.expr)), span, low, high, want)
            }
            Unary::Succ | Unary::Pred if self.types.is_discrete(want) => {
                let by = if operator == Unary::Succ { 1 } else { -1 };
                let of = self.lower(of, want);
                let info = self.types.get(want);
                let (low, high) = (info.low, info.high);
                if matches!(info.class, Class::Range) {
                    let one = Box::new(net::Expr::int(by, span));
                    let by = i64::from(by);
                    let kind = ExprKind::Binary(net::Binary::Add, Box::new(of.expr), one);
                    return Typed::new(kind, span, of.low.saturating_add(by), of.high.saturating_add(by));
                }
                let small = |value: i64| i32::try_from(value).unwrap_or(0);
                let kind = ExprKind::Cycle { of: Box::new(of.expr), low: small(low), high: small(high), by };
                Typed::new(kind, span, low, high)
            }
            _ => self.not_of(expr, operator.sign(), of, want),
        }
    }

    /// Reports an operator whose result or operand types do not match.
    fn not_of(&mut self, expr: &Expr<'t>, sign: &str, of: &Expr<'t>, want: TypeId) -> Typed {
        let roots = self.roots(expr);
        if roots.is_none() {
            let operand = self.roots(of);
            let message = format!("`{sign}` does not apply to {}", self.shown(of, &operand));
            self.error(expr.span, message);
            return Typed::wrong(expr.span);
        }
        self.mismatch(expr, want)
    }

    fn lower_binary(&mut self, expr: &Expr<'t>, (operator, left, right): OfTwo<'_, 't>, want: TypeId) -> Typed {
        let span = expr.span;
        match operator {
            Binary::And | Binary::Or if want == BOOL => {
                let sign = if operator == Binary::And { net::Binary::And } else { net::Binary::Or };
                let left = self.lower(left, BOOL);
                let right = self.lower(right, BOOL);
                Typed::new(ExprKind::Binary(sign, Box::new(left.expr), Box::new(right.expr)), span, 0, 1)
            }
            Binary::Equal | Binary::Differ | Binary::Less | Binary::AtMost | Binary::More | Binary::AtLeast
                if want == BOOL =>
            {
                self.lower_comparison(expr, operator, left, right)
            }
            Binary::In if want == BOOL => self.lower_membership(span, left, right),
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder
                if self.types.is_numeric(want) =>
            {
                let left = self.lower(left, want);
                let right = self.lower(right, want);
                self.arithmetic(operator, left, right, span, want)
            }
            Binary::And | Binary::Or | Binary::Subtract if matches!(self.types.class(want), Class::Set { .. }) => {
                self.lower_set(span, operator, left, right, want)
            }
            Binary::Concatenate if matches!(self.types.class(want), Class::List { .. }) => {
                self.lower_concatenation(span, left, right, want)
            }
            _ => self.not_of_two(expr, (operator, left, right), want),
        }
    }

    fn arithmetic(&mut self, operator: Binary, left: Typed, right: Typed, span: Span, root: TypeId) -> Typed {
        let (a, b) = ((left.low, left.high), (right.low, right.high));
        let largest = |(low, high): (i64, i64)| low.saturating_abs().max(high.saturating_abs());
        let (sign, low, high) = match operator {
            Binary::Add => (net::Binary::Add, a.0.saturating_add(b.0), a.1.saturating_add(b.1)),
            Binary::Subtract => (net::Binary::Sub, a.0.saturating_sub(b.1), a.1.saturating_sub(b.0)),
            Binary::Multiply => {
                let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(x, y)| x.saturating_mul(y));
                let low = corners.into_iter().fold(i64::MAX, i64::min);
                (net::Binary::Mul, low, corners.into_iter().fold(i64::MIN, i64::max))
            }
            Binary::Divide => {
                let least = if a.0 >= 0 && b.0 >= 0 { 0 } else { -largest(a) };
                (net::Binary::Div, least, largest(a))
            }
            _ => {
                // A remainder is at most the dividend, and less than the divisor.
                let most = largest(a).min(largest(b).saturating_sub(1)).max(0);
                (net::Binary::Rem, if a.0 >= 0 { 0 } else { -most }, if a.1 <= 0 { 0 } else { most })
            }
        };
        let kind = ExprKind::Binary(sign, Box::new(left.expr), Box::new(right.expr));
        self.numeric(kind, span, low, high, root)
    }

    fn lower_comparison(&mut self, expr: &Expr<'t>, operator: Binary, left: &Expr<'t>, right: &Expr<'t>) -> Typed {
        let span = expr.span;
        let is_order = !matches!(operator, Binary::Equal | Binary::Differ);
        let (one, other) = (self.roots(left), self.roots(right));
        let both = one.clone().and(other.clone(), &self.types);
        let ordered = |root: TypeId| {
            !is_order || self.types.is_discrete(root) || matches!(self.types.class(root), Class::Set { .. })
        };
        let fitting = both.clone().only(ordered);
        let Some(root) = fitting.one() else {
            let unclear = |roots: &Roots| *roots == Roots::Any || roots.is_none();
            if both == Roots::Any || (fitting.is_none() && (unclear(&one) || unclear(&other))) {
                self.report_operands(expr, [(left, &one), (right, &other)]);
            } else if both.is_none() {
                let (found, other_found) = (self.shown(left, &one), self.shown(right, &other));
                let numeric = !one.numeric(&self.types).is_none() && !other.numeric(&self.types).is_none();
                self.findings.add(|| {
                    let message =
                        format!("`{}` compares values of one type, not {found} and {other_found}", operator.sign());
                    let diagnostic = Diagnostic::at(span, message);
                    if numeric { diagnostic.help("convert one of them by a cast: `T(…)`") } else { diagnostic }
                });
            } else if fitting.is_none() {
                let found = self.shown(left, &one);
                self.error(span, format!("values of {found} have no order, so `{}` means nothing", operator.sign()));
            } else {
                self.report_open(left, &both, &fitting, "a value");
            }
            return Typed::wrong(span);
        };
        let left = Box::new(self.lower(left, root).expr);
        let right = Box::new(self.lower(right, root).expr);
        let is_set = is_order && !self.types.is_discrete(root);
        let kind = match operator {
            Binary::Equal => ExprKind::Binary(net::Binary::Eq, left, right),
            Binary::Differ => ExprKind::Binary(net::Binary::Ne, left, right),
            Binary::Less if is_set => ExprKind::Subset(left, right, true),
            Binary::AtMost if is_set => ExprKind::Subset(left, right, false),
            Binary::More if is_set => ExprKind::Subset(right, left, true),
            _ if is_set => ExprKind::Subset(right, left, false),
            Binary::Less => ExprKind::Binary(net::Binary::Lt, left, right),
            Binary::AtMost => ExprKind::Binary(net::Binary::Le, left, right),
            Binary::More => ExprKind::Binary(net::Binary::Gt, left, right),
            _ => ExprKind::Binary(net::Binary::Ge, left, right),
        };
        Typed::new(kind, span, 0, 1)
    }

    fn not_of_two(&mut self, expr: &Expr<'t>, (operator, left, right): OfTwo<'_, 't>, want: TypeId) -> Typed {
        let roots = self.roots(expr);
        if !roots.is_none() {
            return self.mismatch(expr, want);
        }
        let (one, other) = (self.roots(left), self.roots(right));
        if [&one, &other].into_iter().any(|roots| *roots == Roots::Any || roots.is_none()) {
            self.report_operands(expr, [(left, &one), (right, &other)]);
            return Typed::wrong(expr.span);
        }
        let message = format!(
            "`{}` does not apply to {} and {}",
            operator.sign(),
            self.shown(left, &one),
            self.shown(right, &other)
        );
        let of = |class: fn(&Class) -> bool| {
            [&one, &other].into_iter().any(|roots| roots.one().is_some_and(|root| class(self.types.class(root))))
        };
        let (set, list) =
            (of(|class| matches!(class, Class::Set { .. })), of(|class| matches!(class, Class::List { .. })));
        let numeric = !one.numeric(&self.types).is_none() && !other.numeric(&self.types).is_none();
        let help = if numeric {
            Some("convert one of them by a cast: `T(…)`")
        } else if set {
            Some("the union of sets is `a or b`, the intersection `a and b`, the difference `a - b`")
        } else if list {
            Some("lists are joined by `a & b`; either may be an element")
        } else {
            None
        };
        self.findings.add(|| {
            let diagnostic = Diagnostic::at(expr.span, message);
            help.into_iter().fold(diagnostic, |diagnostic, help| diagnostic.help(help))
        });
        Typed::wrong(expr.span)
    }

    fn lower_component(&mut self, expr: &Expr<'t>, name: Name<'t>, number: u32, want: TypeId) -> Typed {
        let span = expr.span;
        match self.local(name.text).map(|local| local.what) {
            Some(What::Token(token, place)) => {
                let Some(of) = self.component_type(name.text, number) else {
                    let known = &self.net.places[place.0 as usize];
                    let message = format!(
                        "tokens of `{}` have {}; there is none of number {number}",
                        known.name,
                        counted(known.domain.len(), "component")
                    );
                    self.error(span, message);
                    return Typed::wrong(span);
                };
                self.of_type(expr, ExprKind::Component { token, place, index: number - 1 }, of, want)
            }
            Some(_) => {
                self.error(span, format!("`{}` is a value, not a token of a place", name.text));
                Typed::wrong(span)
            }
            None if self.places.contains_key(name.text) => {
                let place = name.text;
                self.findings.add(|| {
                    Diagnostic::at(name.span, format!("`{place}` is a place, not a token"))
                        .help(format!("go over its tokens: `exists (x in {place} | x->1 = …)`"))
                });
                Typed::wrong(span)
            }
            None => {
                self.unknown("token", name.text, name.span, &[]);
                Typed::wrong(span)
            }
        }
    }

    /// Whether the marking may be read here; a finding if not.
    pub fn may_look(&mut self, span: Span, what: &str) -> bool {
        let may = self.sight == Sight::Marking;
        if !may {
            self.findings.add(|| {
                Diagnostic::at(span, format!("{what} cannot be used here"))
                    .help("only propositions and priorities look at the marking or use quantifiers")
            });
        }
        may
    }

    /// A placeholder for an error that has been reported.
    pub fn wrong(&self, span: Span) -> Typed {
        Typed::wrong(span)
    }
}

/// A description of an expression that fits no type.
fn literal(node: &Node<'_>) -> &'static str {
    match node {
        Node::Struct(_) => "a structure",
        Node::Vector(_) => "a vector",
        Node::Container(_) | Node::Empty => "a list or set",
        _ => "something else",
    }
}

/// A count with its noun: `1 argument`, `2 arguments`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
