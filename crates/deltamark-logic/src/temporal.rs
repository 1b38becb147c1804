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
//! state repeats, if `X a` is taken for `(not end) and X a` in CTL: from the last position of a finite path on, all
//! suffixes are equal, so there `a U b` is `b` in both readings, and by induction every other operator agrees too.

mod lasso;
mod pool;

pub use lasso::holds_on_lasso;
pub use pool::{Formula, FormulaId, Pool};

use crate::ast::{Expr, Node, PathOperator, PathQuantifier, UntilOperator};
use crate::check::compile_expr;
use crate::parse::{parse_temporal, shortened};
use crate::program::Compiled;
use deltamark_core::{Diagnostic, Findings, Kind, Observe, Predicate, Span};

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
    pub atoms: Vec<Box<dyn Predicate>>,
}

impl Temporal {
    /// Reads a formula over the observables of a model.
    pub fn new(logic: Logic, text: &str, observe: &dyn Observe) -> Result<Self, Vec<Diagnostic>> {
        let expr = parse_temporal(text)?;
        let mut atoms: Vec<Box<dyn Predicate>> = Vec::new();
        let (pool, root) = lower(logic, text, &expr, |part| {
            let compiled: Compiled = compile_expr(Kind::Bool, text, part, observe)?;
            atoms.push(Box::new(compiled));
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
    atom: &'a mut dyn FnMut(&Expr) -> Result<(), Vec<Diagnostic>>,
}

impl Lowering<'_> {
    fn path(&mut self, expr: &Expr) -> FormulaId {
        let joins = matches!(
            expr.node,
            Node::Truth(_) | Node::Not(_) | Node::And(_) | Node::Or(_) | Node::Implies(..) | Node::Iff(_)
        );
        if !is_temporal(expr) && !(self.split && joins) {
            return self.leaf(expr);
        }
        match &expr.node {
            Node::Truth(truth) => self.pool.truth(*truth),
            Node::Initial => self.pool.atom(INITIAL),
            Node::Not(inner) => {
                let inner = self.path(inner);
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
                let list: Vec<FormulaId> = list.iter().map(|one| self.path(one)).collect();
                let first = list[0];
                list[1..].iter().fold(first, |left, &right| self.pool.iff(left, right))
            }
            Node::Implies(left, right) => {
                let (left, right) = (self.path(left), self.path(right));
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
                let inner = self.path(inner);
                match quantifier {
                    PathQuantifier::All => self.pool.all(inner),
                    PathQuantifier::Exists => self.pool.exists(inner),
                }
            }
            // A comparison with temporal operators inside: reported by the checker.
            _ => self.leaf(expr),
        }
    }

    fn along(&mut self, operator: PathOperator, inner: FormulaId) -> FormulaId {
        match operator {
            PathOperator::Next if self.logic == Logic::Ctl => self.pool.strong_next(inner),
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
    /// `X a` of CTL: there is a next state, and `a` from there on.
    pub fn strong_next(&mut self, inner: FormulaId) -> FormulaId {
        let end = self.atom(END);
        let (goes_on, next) = (self.not(end), self.next(inner));
        self.and([goes_on, next])
    }
}
