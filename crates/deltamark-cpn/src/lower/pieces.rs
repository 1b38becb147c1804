//! Parts of the net before the host exists, and how they become parts of the net.

use super::*;
use crate::parse::balanced;

#[derive(Clone, Debug)]
pub(super) enum Piece {
    Var(usize),
    Const(Value),
    Row(Vec<Piece>),
    Cons(Box<Piece>, Box<Piece>),
    /// Expression of the host, and its variables.
    Host(u32, Vec<usize>),
}

#[derive(Clone, Debug)]
pub(super) struct PieceTerm {
    pub factor: i64,
    pub token: Piece,
    pub spread: bool,
}

/// The source of a variable that no token gives.
pub(super) enum PickFrom {
    All(Vec<Value>),
    Host(u32, Vec<usize>),
}

pub(super) struct FlatPlace {
    pub name: String,
    pub id: String,
    pub of: u32,
    pub initial: Vec<PieceTerm>,
    pub span: Span,
}

pub(super) struct FlatTransition {
    pub name: String,
    pub id: String,
    pub variables: Vec<(String, u32, Option<PickFrom>)>,
    pub inputs: Vec<(u32, Vec<PieceTerm>, Span)>,
    pub outputs: Vec<(u32, Vec<PieceTerm>, Span)>,
    /// Conjuncts of the guard, and whether they always have a value.
    pub tests: Vec<(Piece, bool)>,
    /// Places that must be empty.
    pub empty: Vec<u32>,
    /// Places that are emptied.
    pub resets: Vec<u32>,
    pub priority: i64,
    pub span: Span,
    pub guard_span: Span,
}

impl Piece {
    /// The variables that a token with this form gives, and those that must be known.
    pub(super) fn variables(&self, gives: &mut BTreeSet<usize>, needs: &mut BTreeSet<usize>) {
        match self {
            Piece::Var(var) => drop(gives.insert(*var)),
            Piece::Const(_) => {}
            Piece::Row(parts) => parts.iter().for_each(|part| part.variables(gives, needs)),
            Piece::Cons(head, tail) => {
                head.variables(gives, needs);
                tail.variables(gives, needs);
            }
            Piece::Host(_, used) => needs.extend(used),
        }
    }

    pub(super) fn build(&self, host: &Host, span: Span, total: bool) -> Expr {
        let var = |var: usize| Expr::new(ExprKind::Var(Var(var as u32)), span);
        let kind = match self {
            Piece::Var(number) => return var(*number),
            Piece::Const(value) => ExprKind::Const(value.clone()),
            Piece::Row(parts) => ExprKind::Row(parts.iter().map(|part| part.build(host, span, total)).collect()),
            Piece::Cons(head, tail) => {
                let head = Expr::new(ExprKind::List(vec![head.build(host, span, total)], u32::MAX), span);
                ExprKind::Concat(Box::new(head), Box::new(tail.build(host, span, total)), u32::MAX)
            }
            Piece::Host(number, used) => ExprKind::Host {
                host: host.clone(),
                number: *number,
                arguments: used.iter().map(|&used| var(used)).collect(),
                total,
            },
        };
        Expr::new(kind, span)
    }
}

pub(super) fn build_term(term: &PieceTerm, host: &Host, span: Span) -> Term {
    Term {
        iterations: Vec::new(),
        condition: None,
        factor: term.factor,
        token: vec![term.token.build(host, span, false)],
        spread: term.spread,
        span,
    }
}

impl FlatTransition {
    pub(super) fn new() -> Self {
        FlatTransition {
            name: String::new(),
            id: String::new(),
            variables: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            tests: Vec::new(),
            empty: Vec::new(),
            resets: Vec::new(),
            priority: 0,
            span: Span::at(0),
            guard_span: Span::at(0),
        }
    }

    pub(super) fn build(self, host: &Host, prioritised: bool) -> Transition {
        let span = self.guard_span;
        let arcs = |arcs: &[(u32, Vec<PieceTerm>, Span)]| -> Vec<Arc> {
            let arc = |(place, terms, span): &(u32, Vec<PieceTerm>, Span)| Arc {
                place: PlaceId(*place),
                label: terms.iter().map(|term| build_term(term, host, *span)).collect(),
            };
            arcs.iter().map(arc).collect()
        };
        let mut tests: Vec<Expr> = self.tests.iter().map(|(piece, total)| piece.build(host, span, *total)).collect();
        for &place in &self.empty {
            let total = Expr::new(ExprKind::Total(PlaceId(place)), span);
            let zero = Expr::int(0, span);
            tests.push(Expr::new(ExprKind::Binary(Binary::Eq, Box::new(total), Box::new(zero)), span));
        }
        // A tree of little height: there can be very many conjuncts.
        let both = |one, other| Expr::new(ExprKind::Binary(Binary::And, Box::new(one), Box::new(other)), span);
        let guard = balanced(tests, &both);
        let variable = |(name, of, from): &(String, u32, Option<PickFrom>)| {
            let elements = |expr: Expr| Role::Pick(Domain::Elements(expr));
            let role = match from {
                None => Role::Bound,
                Some(PickFrom::All(all)) => elements(Expr::new(ExprKind::Const(Value::Seq(all.clone())), span)),
                Some(PickFrom::Host(number, used)) => {
                    elements(Piece::Host(*number, used.clone()).build(host, span, false))
                }
            };
            Variable { name: name.clone(), of: TypeId(*of), role }
        };
        let variables: Vec<Variable> = self.variables.iter().map(variable).collect();
        Transition {
            name: self.name,
            frame: variables.len() as u32,
            variables,
            inputs: arcs(&self.inputs),
            outputs: arcs(&self.outputs),
            inhibitors: Vec::new(),
            resets: self.resets.into_iter().map(PlaceId).collect(),
            guard,
            priority: prioritised.then(|| Expr::int(-self.priority as i32, self.span)),
            description: None,
            span: self.span,
        }
    }
}
