//! Formulas of temporal logic.
//!
//! In: the text of a formula, and the observables of the model. Out: a [`Temporal`]: a formula in a [`Pool`], whose atoms
//! are predicates of single states; or diagnostics. What stays true: every maximal part without temporal operators is
//! one atom, so expressions keep their meaning, short-circuit evaluation included.
//!
//! # What a deadlock means
//! As in the Model Checking Contest. For [`Logic::Ltl`] the last state of a finite path repeats for ever. For
//! [`Logic::Ctl`] paths are maximal and may be finite: `X a` is false at the end of one, so `EX a` is false and
//! `AX a` true in a deadlock, and `EG a` and `AF a` mean `a` there. Both are the same graph in which the last
//! state repeats, if in CTL `X a` under `E` is taken for `(not end) and X a`, and under `A`, its dual, for
//! `end or X a`; under a negation the other way round, so that `E (not X a)` is `E (X (not a))`, as it is on infinite
//! paths. From the last position of a finite path on, all suffixes are equal, so there `a U b` is `b` in both
//! readings, and by induction every other operator agrees too.

mod lasso;
mod pool;

pub use lasso::holds_on_lasso;
pub use pool::{Formula, FormulaId, Pool};

use crate::ast::{Expr, Node, PathOperator, PathQuantifier, UntilOperator};
use crate::check::compile_expr;
use crate::parse::{parse_temporal, shortened};
use crate::program::Compiled;
use deltamark_core::{Diagnostic, Findings, ObservableKind, Observe, Span};
use std::collections::HashMap;

/// Which formulas are accepted, and what a deadlock means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    /// A path formula, which must be true on all paths.
    Ltl,
    /// A state formula; path formulas are under quantifiers (CTL*, of which CTL is a part).
    Ctl,
}

impl Logic {
    /// The word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Logic::Ltl => "ltl",
            Logic::Ctl => "ctl",
        }
    }
}

/// The most atoms of a formula.
pub const MAX_ATOMS: usize = 1000;

/// The atom that is true in initial states.
pub const INITIAL: u32 = u32::MAX;
/// The atom that is true in states without successors.
pub const END: u32 = u32::MAX - 1;

/// A formula over the states of a model.
pub struct Temporal {
    /// As the user wrote it.
    pub text: String,
    /// Its logic.
    pub logic: Logic,
    /// Where the formula is.
    pub pool: Pool,
    /// The formula of states that must be true in all initial states.
    pub root: FormulaId,
    /// The atoms `0..`.
    pub atoms: Vec<Compiled>,
}

impl Temporal {
    /// Reads a formula over the observables of a model.
    pub fn new(logic: Logic, text: &str, observe: &dyn Observe) -> Result<Self, Vec<Diagnostic>> {
        let expr = parse_temporal(text)?;
        let mut atoms: Vec<Compiled> = Vec::new();
        let (pool, root) = lower(logic, text, &expr, |part| {
            atoms.push(compile_expr(ObservableKind::Bool, text, part, observe)?);
            Ok(())
        })?;
        let written = text.trim();
        let text = if written.contains('\n') { expr.to_string() } else { written.to_string() };
        Ok(Temporal { text, logic, pool, root, atoms })
    }
}

/// A path formula over atoms that need no model: each maximal part without temporal operators is one. Out: the formula,
/// and the atoms as text.
pub fn path_formula(text: &str) -> Result<(Pool, FormulaId, Vec<String>), Vec<Diagnostic>> {
    let expr = parse_temporal(text)?;
    let mut findings = Findings::default();
    let (mut pool, mut atoms) = (Pool::new(), Vec::new());
    let mut lowering = Lowering {
        logic: Logic::Ltl,
        text,
        pool: &mut pool,
        findings: &mut findings,
        atoms: Vec::new(),
        split: true,
        strong: false,
        equalities: HashMap::new(),
        atom: &mut |part: &Expr| {
            atoms.push(part.to_string());
            Ok(())
        },
    };
    let root = lowering.path(&expr);
    findings.or(())?;
    Ok((pool, root, atoms))
}

fn lower(
    logic: Logic,
    text: &str,
    expr: &Expr,
    mut atom: impl FnMut(&Expr) -> Result<(), Vec<Diagnostic>>,
) -> Result<(Pool, FormulaId), Vec<Diagnostic>> {
    let mut findings = Findings::default();
    let mut pool = Pool::new();
    let mut lowering = Lowering {
        logic,
        text,
        pool: &mut pool,
        findings: &mut findings,
        atoms: Vec::new(),
        split: false,
        strong: false,
        equalities: HashMap::new(),
        atom: &mut atom,
    };
    let root = match logic {
        Logic::Ltl => {
            let path = lowering.path(expr);
            lowering.pool.all(path)
        }
        Logic::Ctl => {
            let root = lowering.path(expr);
            if findings.is_empty() && !pool.is_state(root) {
                lowering_unquantified(&mut findings, expr, text);
            }
            root
        }
    };
    findings.or(())?;
    Ok((pool, root))
}

/// Reports a path formula where a state formula is needed.
fn lowering_unquantified(findings: &mut Findings, expr: &Expr, text: &str) {
    // The quantifier that was meant for more, as in `A p U q`.
    if let Node::Until(operator, left, right) = &expr.node
        && let Node::Paths(quantifier, inner) = &left.node
    {
        let (quantifier, operator) = (quantifier.symbol(), operator.symbol());
        let piece = |expr: &Expr| text.get(expr.span.range()).unwrap_or("").to_string();
        let meant = format!("{quantifier} ({} {operator} {})", piece(inner), piece(right));
        findings.add(|| {
            Diagnostic::at(expr.span, format!("`{quantifier}` binds tighter than `{operator}`"))
                .help(format!("write `{}`", shortened(&meant)))
        });
        return;
    }
    let piece = shortened(text.get(expr.span.range()).unwrap_or(""));
    findings.add(|| {
        Diagnostic::at(expr.span, "this speaks of one path; in CTL a path quantifier says of which")
            .help(format!("write `A ({piece})` or `E ({piece})`, or ask it by `--ltl`"))
    });
}

/// Whether some part of an expression speaks of more than the values in a state.
fn is_temporal(expr: &Expr) -> bool {
    match &expr.node {
        Node::Initial | Node::Along(..) | Node::Until(..) | Node::Paths(..) => true,
        Node::Truth(_) | Node::Number(_) | Node::Name(_) | Node::Deadlock | Node::Fireable(_) | Node::Tokens(_) => {
            false
        }
        Node::Not(inner) | Node::Negate(inner) => is_temporal(inner),
        Node::And(list) | Node::Or(list) | Node::Iff(list) => list.iter().any(is_temporal),
        Node::Implies(left, right) | Node::Compare(_, left, right) => is_temporal(left) || is_temporal(right),
        Node::Arithmetic(first, rest) => is_temporal(first) || rest.iter().any(|(_, one)| is_temporal(one)),
    }
}

struct Lowering<'a> {
    logic: Logic,
    text: &'a str,
    pool: &'a mut Pool,
    findings: &'a mut Findings,
    /// The atoms so far.
    atoms: Vec<Expr>,
    /// Whether Boolean operators are part of the formula, not of its atoms.
    split: bool,
    /// Whether `X` needs a next state: under `E`, or under `A` and a negation.
    strong: bool,
    /// The formulas of `iff`, by place and by whether `X` needs a next state.
    equalities: HashMap<(*const Expr, bool), FormulaId>,
    atom: &'a mut dyn FnMut(&Expr) -> Result<(), Vec<Diagnostic>>,
}

impl Lowering<'_> {
    fn path(&mut self, expr: &Expr) -> FormulaId {
        let joins = matches!(
            expr.node,
            Node::Truth(_) | Node::Not(_) | Node::And(_) | Node::Or(_) | Node::Implies(..) | Node::Iff(_)
        );
        if !(is_temporal(expr) || self.split && joins) {
            return self.leaf(expr);
        }
        match &expr.node {
            Node::Truth(truth) => self.pool.truth(*truth),
            Node::Initial => self.pool.atom(INITIAL),
            Node::Not(inner) => {
                let inner = self.negated(inner);
                self.pool.not(inner)
            }
            Node::And(list) => {
                let list: Vec<FormulaId> = list.iter().map(|one| self.path(one)).collect();
                self.pool.and(list)
            }
            Node::Or(list) => {
                let list: Vec<FormulaId> = list.iter().map(|one| self.path(one)).collect();
                self.pool.or(list)
            }
            Node::Iff(list) => {
                // Each part is taken twice, so one in another would double the work with every level.
                let place = (std::ptr::from_ref(expr), self.strong);
                if let Some(&known) = self.equalities.get(&place) {
                    return known;
                }
                // Each part as it is and for its negation, which differ where there is an `X`.
                let list: Vec<_> = list.iter().map(|one| (self.path(one), self.negated(one))).collect();
                let equal = |left: (FormulaId, FormulaId), right: &(FormulaId, FormulaId)| {
                    (self.pool.same(left, *right), self.pool.same((left.1, left.0), (right.1, right.0)))
                };
                let all = list[1..].iter().fold(list[0], equal).0;
                self.equalities.insert(place, all);
                all
            }
            Node::Implies(left, right) => {
                let (left, right) = (self.negated(left), self.path(right));
                let left = self.pool.not(left);
                self.pool.or([left, right])
            }
            Node::Along(operator, inner) => {
                let inner = self.path(inner);
                self.along(*operator, inner)
            }
            Node::Until(operator, left, right) => {
                let (left, right) = (self.path(left), self.path(right));
                match operator {
                    UntilOperator::Until => self.pool.until(left, right),
                    UntilOperator::Release => self.pool.release(left, right),
                    UntilOperator::Weak => {
                        let either = self.pool.or([left, right]);
                        self.pool.release(right, either)
                    }
                    UntilOperator::Strong => {
                        let both = self.pool.and([left, right]);
                        self.pool.until(right, both)
                    }
                }
            }
            Node::Paths(quantifier, inner) => {
                if self.logic == Logic::Ltl {
                    let span = Span::new(expr.span.start, expr.span.start + 1);
                    let symbol = quantifier.symbol();
                    self.findings.add(|| {
                        Diagnostic::at(span, format!("`{symbol}` is a path quantifier, and an LTL formula has none"))
                            .help(format!(
                                "it is true on all paths anyway; `--ctl` takes quantifiers. If it is a name, put it in \
                                 quotes: \"{symbol}\""
                            ))
                    });
                }
                let around = std::mem::replace(&mut self.strong, matches!(quantifier, PathQuantifier::Exists));
                let inner = self.path(inner);
                self.strong = around;
                match quantifier {
                    PathQuantifier::All => self.pool.all(inner),
                    PathQuantifier::Exists => self.pool.exists(inner),
                }
            }
            // A comparison with temporal operators inside: reported by the checker.
            _ => self.leaf(expr),
        }
    }

    /// A part that will be negated.
    fn negated(&mut self, expr: &Expr) -> FormulaId {
        self.strong = !self.strong;
        let path = self.path(expr);
        self.strong = !self.strong;
        path
    }

    fn along(&mut self, operator: PathOperator, inner: FormulaId) -> FormulaId {
        match operator {
            PathOperator::Next if self.logic == Logic::Ctl && self.strong => self.pool.strong_next(inner),
            PathOperator::Next if self.logic == Logic::Ctl => self.pool.weak_next(inner),
            PathOperator::Next => self.pool.next(inner),
            PathOperator::Finally => self.pool.finally(inner),
            PathOperator::Globally => self.pool.always(inner),
        }
    }

    fn leaf(&mut self, expr: &Expr) -> FormulaId {
        let known = self.atoms.iter().position(|atom| atom == expr);
        let number = known.unwrap_or(self.atoms.len());
        if number >= MAX_ATOMS {
            let finding = || Diagnostic::at(expr.span, format!("the formula has more than {MAX_ATOMS} atoms"));
            self.findings.add(finding);
            return self.pool.truth(true);
        }
        if known.is_none() {
            let inside = Expr { node: expr.node.clone(), span: expr.span };
            self.atoms.push(inside);
            if let Err(wrong) = (self.atom)(expr) {
                wrong.into_iter().for_each(|finding| self.findings.add(|| finding));
            }
            debug_assert!(expr.span.end <= self.text.len());
        }
        self.pool.atom(number as u32)
    }
}

impl Pool {
    /// Whether two formulas are equal, each given as it is and for its negation.
    fn same(&mut self, left: (FormulaId, FormulaId), right: (FormulaId, FormulaId)) -> FormulaId {
        let negations = [self.not(left.1), self.not(right.1)];
        let (both, neither) = (self.and([left.0, right.0]), self.and(negations));
        self.or([both, neither])
    }

    /// There is no next state, or `a` holds from there on.
    pub fn weak_next(&mut self, inner: FormulaId) -> FormulaId {
        let (end, next) = (self.atom(END), self.next(inner));
        self.or([end, next])
    }

    /// There is a next state, and `a` holds from there on.
    pub fn strong_next(&mut self, inner: FormulaId) -> FormulaId {
        let end = self.atom(END);
        let (goes_on, next) = (self.not(end), self.next(inner));
        self.and([goes_on, next])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two texts that mean the same have the same formula, in one pool.
    #[test]
    fn next_needs_a_next_state_where_a_path_is_asked_for() {
        let rows = [
            ("E X p", "E (!end & X p)"),
            ("A X p", "A (end | X p)"),
            ("E not X p", "E (!end & X !p)"),
            ("A (X p implies q)", "A (end | X !p | q)"),
            ("A (X p and E X q)", "A ((end | X p) & E (!end & X q))"),
            ("E (X p iff q)", "E (((!end & X p) & q) | ((!end & X !p) & !q))"),
        ];
        for (text, expected) in rows {
            let expr = parse_temporal(text).expect(text);
            let (mut pool, root) = lower(Logic::Ctl, text, &expr, |_| Ok(())).expect(text);
            // As its author would write it, by hand.
            let atom = |name: &str| if name == "end" { END } else { u32::from(name == "q" && text.contains('p')) };
            let mut parts = Plain { text: expected.as_bytes(), pool: &mut pool, atom: &atom };
            let by_hand = parts.either();
            assert_eq!(root, by_hand, "{text}: {expected}");
        }
    }

    /// Reads formulas of `A E X & | !`, names and parentheses, without any rule about ends.
    struct Plain<'p> {
        text: &'p [u8],
        pool: &'p mut Pool,
        atom: &'p dyn Fn(&str) -> u32,
    }

    impl Plain<'_> {
        fn next(&mut self) -> Option<u8> {
            while self.text.first() == Some(&b' ') {
                self.text = &self.text[1..];
            }
            self.text.first().copied()
        }

        fn take(&mut self, sign: u8) -> bool {
            let found = self.next() == Some(sign);
            self.text = &self.text[usize::from(found)..];
            found
        }

        fn either(&mut self) -> FormulaId {
            let mut list = vec![self.both()];
            while self.take(b'|') {
                list.push(self.both());
            }
            self.pool.or(list)
        }

        fn both(&mut self) -> FormulaId {
            let mut list = vec![self.single()];
            while self.take(b'&') {
                list.push(self.single());
            }
            self.pool.and(list)
        }

        fn single(&mut self) -> FormulaId {
            if self.take(b'!') {
                let inner = self.single();
                self.pool.not(inner)
            } else if self.take(b'A') {
                let inner = self.single();
                self.pool.all(inner)
            } else if self.take(b'E') {
                let inner = self.single();
                self.pool.exists(inner)
            } else if self.take(b'X') {
                let inner = self.single();
                self.pool.next(inner)
            } else if self.take(b'(') {
                let inner = self.either();
                assert!(self.take(b')'));
                inner
            } else {
                self.next();
                let length = self.text.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
                let (name, rest) = self.text.split_at(length);
                let name = std::str::from_utf8(name).expect("ASCII");
                self.text = rest;
                self.pool.atom((self.atom)(name))
            }
        }
    }
}
