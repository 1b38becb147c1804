//! The syntax tree.
//!
//! In: tokens. Out: these types. What stays true: every name and expression has a span; an expression is no deeper
//! than [`MAX_DEPTH`](crate::parse::MAX_DEPTH), so that no walk over it can overflow the stack.

use crate::ir::{Binary, Type, Unary};
use deltamark_core::Span;

/// A name and its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'t> {
    pub text: &'t str,
    pub span: Span,
}

/// An expression and its span.
#[derive(Clone, Debug)]
pub(crate) struct Expr<'t> {
    pub node: Node<'t>,
    pub span: Span,
    /// The height of its tree.
    pub depth: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Node<'t> {
    Number(i32),
    Name(Name<'t>),
    Index(Name<'t>, Box<Expr<'t>>),
    /// `P.q`; boxed, because two names would make every node larger.
    At(Box<(Name<'t>, Name<'t>)>),
    /// `P->x` or `P->a[e]`
    Of(Box<(Name<'t>, Name<'t>, Option<Expr<'t>>)>),
    Unary(Unary, Box<Expr<'t>>),
    Binary(Operator, Box<Expr<'t>>, Box<Expr<'t>>),
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Imply,
    Or,
    And,
    Divide,
    Remainder,
    Plain(Binary),
}

/// The target of an assignment.
#[derive(Clone, Debug)]
pub(crate) struct Lvalue<'t> {
    pub name: Name<'t>,
    pub index: Option<Expr<'t>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Initial<'t> {
    None,
    One(Expr<'t>),
    List(Vec<Expr<'t>>, Span),
}

/// A variable or constant.
#[derive(Clone, Debug)]
pub(crate) struct Declaration<'t> {
    pub constant: bool,
    pub kind: Type,
    pub name: Name<'t>,
    pub size: Option<Expr<'t>>,
    pub initial: Initial<'t>,
}

#[derive(Clone, Debug)]
pub(crate) struct Channel<'t> {
    pub name: Name<'t>,
    pub types: Option<Vec<Type>>,
    pub size: Option<Expr<'t>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Sync<'t> {
    Send(Name<'t>, Vec<Expr<'t>>),
    Receive(Name<'t>, Vec<Lvalue<'t>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Transition<'t> {
    pub from: Name<'t>,
    pub to: Name<'t>,
    /// All must hold.
    pub guards: Vec<Expr<'t>>,
    pub sync: Option<Sync<'t>>,
    pub effects: Vec<(Lvalue<'t>, Expr<'t>)>,
    pub span: Span,
}

/// A pair of sets of an acceptance condition.
pub(crate) type SetPair<'t> = (Vec<Name<'t>>, Vec<Name<'t>>);

#[derive(Clone, Debug, Default)]
pub(crate) enum Accept<'t> {
    #[default]
    None,
    Buchi(Vec<Name<'t>>),
    Generalised(Vec<Vec<Name<'t>>>),
    Muller(Vec<Vec<Name<'t>>>),
    Rabin(Vec<SetPair<'t>>),
    Streett(Vec<SetPair<'t>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Process<'t> {
    pub name: Name<'t>,
    pub declarations: Vec<Declaration<'t>>,
    pub states: Vec<Name<'t>>,
    pub init: Option<Name<'t>>,
    pub commit: Vec<Name<'t>>,
    pub accept: Accept<'t>,
    pub asserts: Vec<(Name<'t>, Expr<'t>)>,
    pub transitions: Vec<Transition<'t>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model<'t> {
    pub declarations: Vec<Declaration<'t>>,
    pub channels: Vec<Channel<'t>>,
    pub processes: Vec<Process<'t>>,
    pub synchronous: bool,
    pub property: Option<Name<'t>>,
}
