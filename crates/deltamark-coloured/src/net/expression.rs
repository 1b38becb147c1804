//! Expressions, of labels, guards, functions and propositions.
//!
//! In: nothing. Out: the tree that front ends make and `expressions` evaluates. What stays true: names are resolved,
//! types are checked, and whatever the language checks at run time is an expression of its own.

use super::{FaultKind, FunctionId, PlaceId, TypeId, Value, Var};
use deltamark_core::{Diagnostic, Span};
use std::sync::Arc as Shared;

/// An expression and its span in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The operation and its operands.
    pub kind: ExprKind,
    /// The position that faults report.
    pub span: Span,
}

/// The kinds of expressions.
///
/// Integers are computed in 64 bits; overflow is a fault. The range of a type is checked only by
/// [`ExprKind::Check`]. Truth values are the integers 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Const(Value),
    /// The value of a variable.
    Var(Var),
    /// Component `index` (from 0) of the token that the variable of a [`Domain::Place`] denotes.
    Component {
        /// The variable.
        token: Var,
        /// The place of the token.
        place: PlaceId,
        /// Which component, from 0.
        index: u32,
    },

    /// An integer operation.
    Unary(Unary, Box<Expr>),
    /// An operation on two integers; `Eq` and `Ne` compare any two values of one type.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// The value itself if it is an integer from `low` to `high`, otherwise a fault.
    Check {
        /// The value.
        of: Box<Expr>,
        /// The least value allowed.
        low: i32,
        /// The largest value allowed.
        high: i32,
        /// The fault if the value is outside.
        fault: FaultKind,
    },
    /// The value modulo a positive number, never negative: `-1` modulo 5 is 4.
    Wrap(Box<Expr>, i32),
    /// The next (`by` = 1) or previous (`by` = -1) value from `low` to `high`, cyclically.
    Cycle {
        /// The value; one outside is first reduced modulo the number of values.
        of: Box<Expr>,
        /// The first value.
        low: i32,
        /// The last value.
        high: i32,
        /// The distance, forward or back.
        by: i32,
    },
    /// `if` condition `then` one `else` other; only one is evaluated.
    If(Box<Expr>, Box<Expr>, Box<Expr>),

    /// A structure or vector of these elements.
    Row(Vec<Expr>),
    /// A list of these elements; a fault if there are more than `capacity`.
    List(Vec<Expr>, u32),
    /// A set of these elements, which need not be distinct or in order.
    Set(Vec<Expr>, u32),
    /// Element number `index` (from 0) of a sequence; a fault of this kind if there is none. A front end
    /// subtracts the first value of the index type, and combines several indices into one number.
    Item {
        /// The structure, vector or list.
        of: Box<Expr>,
        /// Which element, from 0.
        index: Box<Expr>,
        /// The fault if there is none.
        fault: FaultKind,
    },
    /// The same sequence with element number `index` (from 0) replaced.
    Replace {
        /// The structure, vector or list.
        of: Box<Expr>,
        /// Which element, from 0.
        index: Box<Expr>,
        /// The new element.
        value: Box<Expr>,
        /// The fault if there is no such element.
        fault: FaultKind,
    },
    /// The elements `from` to `to` of a list (from 0, both included); empty if `to` is less
    /// than `from`.
    Slice {
        /// The list.
        of: Box<Expr>,
        /// The first element, from 0.
        from: Box<Expr>,
        /// The last element, from 0.
        to: Box<Expr>,
    },
    /// Concatenation of lists; a fault ([`FaultKind::ListOverflow`]) above `capacity`. A single element is
    /// written as a [`ExprKind::List`] of one.
    Concat(Box<Expr>, Box<Expr>, u32),
    /// Union of sets; a fault ([`FaultKind::ContainerOverflow`]) above `capacity`.
    Union(Box<Expr>, Box<Expr>, u32),
    /// Intersection of sets.
    Intersect(Box<Expr>, Box<Expr>),
    /// Difference of sets.
    Difference(Box<Expr>, Box<Expr>),
    /// Whether the first is an element of the second, a list or a set.
    In(Box<Expr>, Box<Expr>),
    /// Whether the first set is a subset of the second; with `true` a proper one.
    Subset(Box<Expr>, Box<Expr>, bool),
    /// The number of elements of a list or set.
    Size(Box<Expr>),
    /// The first or last element of a list, or all but one; faults on an empty list.
    End(End, Box<Expr>),

    /// The result of a function.
    Call(FunctionId, Vec<Expr>),
    /// A quantifier or a sum over one or more iterations.
    Fold {
        /// How the values are combined.
        fold: Fold,
        /// Nested, the first outermost. A domain may use the variables before it.
        iterations: Vec<Iteration>,
        /// The combinations that count; `None` for all.
        filter: Option<Box<Expr>>,
        /// The value of one combination. [`Fold::Exists`] and [`Fold::Count`] have none.
        body: Option<Box<Expr>>,
    },
    /// A value that the code of the front end computes.
    Host {
        /// The code.
        host: Host,
        /// Which of its expressions.
        number: u32,
        /// What it is given.
        arguments: Vec<Expr>,
        /// Whether it always has a value.
        total: bool,
    },
    /// The number of distinct tokens in a place.
    Distinct(PlaceId),
    /// The number of tokens in a place, with multiplicity.
    Total(PlaceId),
}

/// Code of a front end whose language has more than this one: higher-order functions, exceptions. It has no side
/// effects, and the same arguments give the same result.
pub trait HostCode: std::fmt::Debug + Send + Sync {
    /// The value of expression `number`; the error is the number of a message. Bounded in time and depth; of memory no
    /// more is taken than `room` grants, which is asked for bytes before they are allocated, and for none every few
    /// milliseconds: the run may have ended.
    fn eval(&self, number: u32, arguments: &[Value], room: &dyn Fn(u64) -> bool) -> Result<Value, u32>;
    /// A message, as a sentence without a full stop.
    fn message(&self, fault: u32) -> String;
    /// Prints a value of this type.
    fn print(&self, of: TypeId, value: &Value, out: &mut String);
    /// The text as an expression of the front end's language over markings; `None` if it is none. Then [`eval`](Self::eval)
    /// takes its number, and for each of its places the list of tokens.
    fn over_markings(&self, _text: &str) -> Option<Result<OverMarkings, Vec<Diagnostic>>> {
        None
    }
    /// Whether a failed evaluation reached a bound, so that the value is unknown.
    fn is_limit(&self, _fault: u32) -> bool {
        false
    }
}

/// An expression of the front end over the markings of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverMarkings {
    /// Which of the front end's expressions.
    pub number: u32,
    /// The places, in the order of the arguments.
    pub places: Vec<PlaceId>,
    /// Whether its value is a truth value, 0 or 1; otherwise it is a number.
    pub truth: bool,
}

/// Shared [`HostCode`]. Two are equal if they are one.
#[derive(Clone, Debug)]
pub struct Host(pub Shared<dyn HostCode>);

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }
}

/// Operations on one integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// Negation of a number.
    Neg,
    /// Negation of a truth value.
    Not,
}

/// Operations on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, truncated toward zero; division by zero is a fault.
    Div,
    /// Remainder, with the sign of the dividend; division by zero is a fault.
    Rem,
    /// Conjunction; the second operand is evaluated only if the first is true.
    And,
    /// Disjunction; the second operand is evaluated only if the first is false.
    Or,
    /// Equal, of values of any type.
    Eq,
    /// Not equal, of values of any type.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// The part of a list that [`ExprKind::End`] selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first element.
    First,
    /// The last element.
    Last,
    /// All but the last.
    Prefix,
    /// All but the first.
    Suffix,
    /// The number of the last element, from 0; a fault on an empty list.
    LastIndex,
}

/// How [`ExprKind::Fold`] combines the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Universal quantifier over the body.
    Forall,
    /// Whether any combination counts.
    Exists,
    /// The number of combinations that count.
    Count,
    /// The number of tokens with multiplicity. Exactly one iteration, over a place.
    Mult,
    /// The least value, or this one if there are none.
    Min(i32),
    /// The greatest value, or this one if there are none.
    Max(i32),
    /// The sum of all values; 0 if there are none.
    Sum,
    /// The product of all values; 1 if there are none.
    Product,
}

/// A variable that takes the values of a domain in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Iteration {
    /// The variable.
    pub variable: Var,
    /// Its values.
    pub domain: Domain,
}

/// The domain of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// Integers from the first to the second, both included; empty if the first is larger. A discrete type is
    /// written with constants.
    Range(Expr, Expr),
    /// The elements of a list or set, in order.
    Elements(Expr),
    /// The distinct tokens in a place; the variable may be used in [`ExprKind::Component`] only. Only in
    /// propositions, priorities and guards.
    Place(PlaceId),
}

impl Expr {
    /// An expression with its span.
    pub fn new(kind: ExprKind, span: Span) -> Self {
        Expr { kind, span }
    }

    /// An integer constant.
    pub fn int(number: i32, span: Span) -> Self {
        Expr::new(ExprKind::Const(Value::Int(number)), span)
    }
}

impl Expr {
    /// Calls `see` for this expression and all its subexpressions.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        see(self);
        match &self.kind {
            ExprKind::Const(_)
            | ExprKind::Var(_)
            | ExprKind::Component { .. }
            | ExprKind::Distinct(_)
            | ExprKind::Total(_) => {}
            ExprKind::Unary(_, of)
            | ExprKind::Check { of, .. }
            | ExprKind::Wrap(of, _)
            | ExprKind::Cycle { of, .. }
            | ExprKind::Size(of)
            | ExprKind::End(_, of) => of.visit(see),
            ExprKind::Binary(_, one, other)
            | ExprKind::Concat(one, other, _)
            | ExprKind::Union(one, other, _)
            | ExprKind::Intersect(one, other)
            | ExprKind::Difference(one, other)
            | ExprKind::In(one, other)
            | ExprKind::Subset(one, other, _)
            | ExprKind::Item { of: one, index: other, .. } => {
                one.visit(see);
                other.visit(see);
            }
            ExprKind::If(one, two, three)
            | ExprKind::Replace { of: one, index: two, value: three, .. }
            | ExprKind::Slice { of: one, from: two, to: three } => {
                one.visit(see);
                two.visit(see);
                three.visit(see);
            }
            ExprKind::Row(several)
            | ExprKind::List(several, _)
            | ExprKind::Set(several, _)
            | ExprKind::Host { arguments: several, .. }
            | ExprKind::Call(_, several) => {
                several.iter().for_each(|one| one.visit(see));
            }
            ExprKind::Fold { iterations, filter, body, .. } => {
                iterations.iter().for_each(|iteration| iteration.domain.visit(see));
                filter.iter().chain(body).for_each(|one| one.visit(see));
            }
        }
    }
}

impl Domain {
    /// Calls `see` for all its expressions and their subexpressions.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match self {
            Domain::Range(low, high) => {
                low.visit(see);
                high.visit(see);
            }
            Domain::Elements(of) => of.visit(see),
            Domain::Place(_) => {}
        }
    }
}
