//! Hash-consed expressions with constant folding.
//!
//! In: operators and operands. Out: numbers of expressions. What stays true: I1 to I3 of the [intermediate
//! representation](crate::ir). Folding loses no fault: an operand that may fault is never dropped, unless
//! short-circuiting drops it.

use crate::arithmetic;
use crate::ir::{Binary, Expr, ExprId, Unary};
use std::collections::HashMap;

/// Expressions under construction.
#[derive(Default)]
pub(crate) struct Pool {
    exprs: Vec<Expr>,
    /// Whether each may fault.
    faulty: Vec<bool>,
    known: HashMap<Expr, ExprId>,
}

impl Pool {
    pub fn into_exprs(self) -> Vec<Expr> {
        self.exprs
    }

    pub fn get(&self, id: ExprId) -> Expr {
        self.exprs[id.0 as usize]
    }

    /// The number of the expression, unfolded.
    pub fn add(&mut self, expr: Expr) -> ExprId {
        if let Some(&id) = self.known.get(&expr) {
            return id;
        }
        let id = ExprId(self.exprs.len() as u32);
        let faulty = match expr {
            Expr::Const(_) | Expr::Cell(_) => false,
            Expr::Element { index, checked, .. } | Expr::Lookup { index, checked, .. } => checked || self.faulty(index),
            Expr::Unary(_, operand) => self.faulty(operand),
            Expr::Divide { left, right, checked, .. } => checked || self.faulty(left) || self.faulty(right),
            Expr::Binary(_, left, right) | Expr::And(left, right) | Expr::Or(left, right) => {
                self.faulty(left) || self.faulty(right)
            }
        };
        self.exprs.push(expr);
        self.faulty.push(faulty);
        self.known.insert(expr, id);
        id
    }

    /// Whether its evaluation may fault.
    pub fn faulty(&self, id: ExprId) -> bool {
        self.faulty[id.0 as usize]
    }

    pub fn constant(&mut self, value: i32) -> ExprId {
        self.add(Expr::Const(value))
    }

    /// Its value, if that is known.
    pub fn value(&self, id: ExprId) -> Option<i32> {
        match self.get(id) {
            Expr::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is always 0 or 1.
    fn is_truth(&self, id: ExprId) -> bool {
        use Binary::{AtLeast, AtMost, Differ, Equal, Less, More};
        match self.get(id) {
            Expr::Const(value) => value == 0 || value == 1,
            Expr::And(..) | Expr::Or(..) | Expr::Unary(Unary::Not, _) => true,
            Expr::Binary(operator, ..) => matches!(operator, Equal | Differ | Less | AtMost | More | AtLeast),
            _ => false,
        }
    }

    /// 1 if it is non-zero, else 0.
    pub fn truth(&mut self, id: ExprId) -> ExprId {
        if self.is_truth(id) {
            return id;
        }
        let zero = self.constant(0);
        self.binary(Binary::Differ, id, zero)
    }

    pub fn unary(&mut self, operator: Unary, operand: ExprId) -> ExprId {
        if let Some(value) = self.value(operand) {
            return self.constant(arithmetic::unary(operator, value));
        }
        if operator == Unary::Not
            && let Expr::Binary(comparison, left, right) = self.get(operand)
            && let Some(opposite) = opposite(comparison)
        {
            return self.add(Expr::Binary(opposite, left, right));
        }
        self.add(Expr::Unary(operator, operand))
    }

    pub fn binary(&mut self, operator: Binary, left: ExprId, right: ExprId) -> ExprId {
        if let (Some(left), Some(right)) = (self.value(left), self.value(right)) {
            return self.constant(arithmetic::binary(operator, left, right));
        }
        // A truth value compared with 0 or 1 is itself or its negation.
        if let (Binary::Equal | Binary::Differ, Some(value @ (0 | 1))) = (operator, self.value(right))
            && self.is_truth(left)
        {
            let same = (operator == Binary::Equal) == (value == 1);
            return if same { left } else { self.unary(Unary::Not, left) };
        }
        self.add(Expr::Binary(operator, left, right))
    }

    pub fn divide(&mut self, remainder: bool, left: ExprId, right: ExprId, checked: bool) -> ExprId {
        let divisor = self.value(right);
        if let (Some(left), Some(right)) = (self.value(left), divisor)
            && let Some(value) = arithmetic::divide(remainder, left, right)
        {
            return self.constant(value);
        }
        let checked = checked && divisor.is_none_or(|divisor| divisor == 0);
        self.add(Expr::Divide { remainder, left, right, checked })
    }

    pub fn and(&mut self, left: ExprId, right: ExprId) -> ExprId {
        match (self.value(left), self.value(right)) {
            (Some(0), _) => left,
            (Some(_), _) => self.truth(right),
            (None, Some(0)) if !self.faulty(left) => right,
            (None, Some(value)) if value != 0 => self.truth(left),
            _ if left == right => self.truth(left),
            _ => self.add(Expr::And(left, right)),
        }
    }

    pub fn or(&mut self, left: ExprId, right: ExprId) -> ExprId {
        match (self.value(left), self.value(right)) {
            (Some(0), _) => self.truth(right),
            (Some(_), _) => self.constant(1),
            (None, Some(0)) => self.truth(left),
            (None, Some(_)) if !self.faulty(left) => self.constant(1),
            _ if left == right => self.truth(left),
            _ => self.add(Expr::Or(left, right)),
        }
    }
}

/// The negated comparison.
pub(crate) fn opposite(comparison: Binary) -> Option<Binary> {
    Some(match comparison {
        Binary::Equal => Binary::Differ,
        Binary::Differ => Binary::Equal,
        Binary::Less => Binary::AtLeast,
        Binary::AtLeast => Binary::Less,
        Binary::More => Binary::AtMost,
        Binary::AtMost => Binary::More,
        _ => return None,
    })
}
