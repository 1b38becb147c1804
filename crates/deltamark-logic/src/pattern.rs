//! Named patterns of temporal properties.
//!
//! M. B. Dwyer, G. S. Avrunin, J. C. Corbett, *Patterns in Property Specifications for Finite-State Verification*, ICSE
//! 1999, and the formulas of the page that belongs to it. In: a pattern, its operands, a scope. Out: a formula. What
//! stays true: the operands are not patterns themselves, so a formula is at most some six times as long as its text.
//!
//! A scope names segments of a path, and the pattern must be true in each:
//!
//! ```text
//!                    q     r        q  q     r        q
//! globally        [────────────────────────────────────────────▶
//! before r        [───────)
//! after q            [─────────────────────────────────────────▶
//! between             [───)         [────────)                      from each q on, also from the second one
//! after q until r     [───)         [────────)        [────────▶
//! ```
//!
//! A segment does not contain the state in which `r` ends it. If `r` never comes, `before` has no segment.
//!
//! Precedence and existence after `q` are `not q W (q and …)` here, so that they speak of the first `q`; the page has
//! `F (q and …)` for precedence, which any later `q` satisfies.

use crate::ast::{Expr, Node, PathOperator, UntilOperator};
use deltamark_core::Span;

/// What must be true in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// `p` is never true.
    Absence,
    /// `p` is true at least once.
    Existence,
    /// `p` is always true.
    Universality,
    /// `s` comes before the first `p`, or with it.
    Precedence,
    /// After each `p`, or with it, comes `s`.
    Response,
}

impl Pattern {
    /// All of them, by name.
    pub(crate) const NAMES: [(&'static str, Pattern); 5] = [
        ("absence", Pattern::Absence),
        ("existence", Pattern::Existence),
        ("universality", Pattern::Universality),
        ("precedence", Pattern::Precedence),
        ("response", Pattern::Response),
    ];

    /// The one of this name.
    pub(crate) fn by_name(name: &str) -> Option<Pattern> {
        Pattern::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, pattern)| pattern)
    }

    /// How it is written.
    pub(crate) fn form(self) -> &'static str {
        match self {
            Pattern::Absence => "absence(p)",
            Pattern::Existence => "existence(p)",
            Pattern::Universality => "universality(p)",
            Pattern::Precedence => "precedence(s, p)",
            Pattern::Response => "response(p, s)",
        }
    }

    /// The number of its operands.
    pub(crate) fn operands(self) -> usize {
        match self {
            Pattern::Absence | Pattern::Existence | Pattern::Universality => 1,
            Pattern::Precedence | Pattern::Response => 2,
        }
    }
}

/// Where it must be true.
pub(crate) enum Scope {
    Globally,
    Before(Expr),
    After(Expr),
    Between(Expr, Expr),
    AfterUntil(Expr, Expr),
}

/// How many levels an expansion is higher than its operands, at most.
pub(crate) const HEIGHT: usize = 10;

/// Makes formulas that have the place of the pattern.
#[derive(Clone, Copy)]
struct Maker(Span);

impl Maker {
    fn expr(self, node: Node) -> Expr {
        Expr { node, span: self.0 }
    }

    fn not(self, one: &Expr) -> Expr {
        self.expr(Node::Not(Box::new(one.clone())))
    }

    fn and<const N: usize>(self, list: [Expr; N]) -> Expr {
        self.expr(Node::And(list.into()))
    }

    fn or(self, one: &Expr, two: &Expr) -> Expr {
        self.expr(Node::Or(vec![one.clone(), two.clone()]))
    }

    fn implies(self, left: Expr, right: Expr) -> Expr {
        self.expr(Node::Implies(left.into(), right.into()))
    }

    fn always(self, one: Expr) -> Expr {
        self.expr(Node::Along(PathOperator::Globally, one.into()))
    }

    fn finally(self, one: &Expr) -> Expr {
        self.expr(Node::Along(PathOperator::Finally, Box::new(one.clone())))
    }

    fn until(self, operator: UntilOperator, left: Expr, right: &Expr) -> Expr {
        self.expr(Node::Until(operator, left.into(), Box::new(right.clone())))
    }

    /// The pattern from here on for ever.
    fn open(self, pattern: Pattern, list: &[Expr]) -> Expr {
        let p = &list[0];
        match pattern {
            Pattern::Absence => self.always(self.not(p)),
            Pattern::Existence => self.finally(p),
            Pattern::Universality => self.always(p.clone()),
            Pattern::Precedence => self.until(UntilOperator::Weak, self.not(&list[1]), p),
            Pattern::Response => self.always(self.implies(p.clone(), self.finally(&list[1]))),
        }
    }

    /// The pattern from here until `r`, which `operator` says whether it must come.
    fn closed(self, pattern: Pattern, list: &[Expr], operator: UntilOperator, r: &Expr) -> Expr {
        let p = &list[0];
        let not_r = self.not(r);
        match pattern {
            Pattern::Absence => self.until(operator, self.not(p), r),
            // Within the segment: before `r`, which may then come or not.
            Pattern::Existence => {
                // For a segment that need not end, `p` must come in any case.
                let operator = match operator {
                    UntilOperator::Weak => UntilOperator::Until,
                    _ => UntilOperator::Weak,
                };
                self.until(operator, not_r.clone(), &self.and([p.clone(), not_r]))
            }
            Pattern::Universality => self.until(operator, p.clone(), r),
            Pattern::Precedence => self.until(operator, self.not(&list[1]), &self.or(p, r)),
            Pattern::Response => {
                let answer = self.and([list[1].clone(), not_r.clone()]);
                let answered = self.until(UntilOperator::Until, not_r, &answer);
                self.until(operator, self.implies(p.clone(), answered), r)
            }
        }
    }
}

/// The formula of a pattern.
pub(crate) fn expanded(pattern: Pattern, list: &[Expr], scope: &Scope, span: Span) -> Expr {
    let make = Maker(span);
    match scope {
        Scope::Globally => make.open(pattern, list),
        Scope::Before(r) => make.implies(make.finally(r), make.closed(pattern, list, UntilOperator::Until, r)),
        Scope::After(q) => {
            let first = make.and([q.clone(), make.open(pattern, list)]);
            make.until(UntilOperator::Weak, make.not(q), &first)
        }
        Scope::Between(q, r) => {
            let begins = make.and([q.clone(), make.not(r), make.finally(r)]);
            make.always(make.implies(begins, make.closed(pattern, list, UntilOperator::Until, r)))
        }
        Scope::AfterUntil(q, r) => {
            let begins = make.and([q.clone(), make.not(r)]);
            make.always(make.implies(begins, make.closed(pattern, list, UntilOperator::Weak, r)))
        }
    }
}
