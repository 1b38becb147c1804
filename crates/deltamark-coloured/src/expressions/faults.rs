//! Which expressions cannot fault: interval analysis.
//!
//! In: an expression, and the types of its variables. Out: whether its evaluation may fault. What stays true:
//! sound, not complete: `false` means that it never faults.
//!
//! Integers are tracked by intervals, so that `x + 1` cannot overflow and `v[x]` has an element if `x` takes
//! only values of the vector's index type. A variable has a value of its type.

use crate::expressions::drafts::bounded;
use crate::net::{Binary, Expr, ExprKind, Type, TypeId, Unary, Value, ValueShape, Variable};

/// The types of the variables.
#[derive(Clone, Copy)]
pub(crate) struct Faults<'a> {
    /// All types of the net.
    pub types: &'a [Type],
    /// The first variables of the frame.
    pub variables: &'a [Variable],
}

/// The least and the greatest value.
type Interval = (i64, i64);

const ANY: Interval = (i32::MIN as i64, i32::MAX as i64);

impl Faults<'_> {
    /// Whether evaluation may fault.
    pub fn possible(self, expression: &Expr) -> bool {
        let mut found = false;
        expression.visit(&mut |part| found |= self.of_part(part));
        found
    }

    /// Whether an expression may fault whose operands do not.
    fn of_part(self, part: &Expr) -> bool {
        match &part.kind {
            ExprKind::Const(_)
            | ExprKind::Var(_)
            | ExprKind::Wrap(..)
            | ExprKind::Cycle { .. }
            | ExprKind::If(..)
            | ExprKind::In(..)
            | ExprKind::Subset(..)
            | ExprKind::Size(_)
            | ExprKind::Row(_)
            | ExprKind::Intersect(..)
            | ExprKind::Difference(..)
            | ExprKind::Unary(Unary::Not, _) => false,
            ExprKind::Unary(Unary::Neg, _) => self.interval(part).is_none(),
            ExprKind::Binary(op, _, other) => match op {
                Binary::Add | Binary::Sub | Binary::Mul => self.interval(part).is_none(),
                Binary::Div | Binary::Rem => self.interval(other).is_none_or(|(low, high)| low <= 0 && high >= 0),
                _ => false,
            },
            ExprKind::Item { of, index, .. } => {
                let length = match &of.kind {
                    ExprKind::Const(Value::Seq(elements)) => i64::try_from(elements.len()).ok(),
                    _ => self.shape(of).and_then(|of| self.length(of)),
                };
                let index = self.interval(index);
                !matches!((length, index), (Some(length), Some((low, high))) if 0 <= low && high < length)
            }
            ExprKind::Check { of, low, high, .. } => {
                self.interval(of).is_none_or(|(least, most)| least < i64::from(*low) || most > i64::from(*high))
            }
            ExprKind::Host { total, .. } => !total,
            _ => true,
        }
    }

    /// The interval of an expression; `None` if it may overflow.
    fn interval(self, expression: &Expr) -> Option<Interval> {
        let of = |values: [Option<i64>; 4]| -> Option<Interval> {
            let [a, b, c, d] = values;
            let all = [a?, b?, c?, d?];
            Some((all.into_iter().min()?, all.into_iter().max()?))
        };
        let (low, high) = match &expression.kind {
            ExprKind::Const(Value::Int(number)) => (i64::from(*number), i64::from(*number)),
            ExprKind::Var(_) => self.shape(expression).and_then(|of| self.bounds(of)).unwrap_or(ANY),
            ExprKind::Item { .. } => self.shape(expression).and_then(|of| self.bounds(of)).unwrap_or(ANY),
            ExprKind::Unary(Unary::Neg, inner) => {
                let (low, high) = self.interval(inner)?;
                (high.checked_neg()?, low.checked_neg()?)
            }
            ExprKind::Binary(op, one, other) => {
                let compares = !matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Rem);
                if compares {
                    return Some((0, 1));
                }
                let (a, b) = (self.interval(one)?, self.interval(other)?);
                match op {
                    Binary::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
                    Binary::Sub => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
                    Binary::Mul => of([(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(x, y)| x.checked_mul(y)))?,
                    // The absolute values of quotient and remainder are at most that of the dividend.
                    _ => {
                        let most = a.0.checked_abs()?.max(a.1.checked_abs()?);
                        (-most, most)
                    }
                }
            }
            ExprKind::Wrap(_, modulus) => (0, i64::from(*modulus) - 1),
            ExprKind::Cycle { low, high, .. } | ExprKind::Check { low, high, .. } => {
                (i64::from(*low), i64::from(*high))
            }
            ExprKind::If(_, one, other) => {
                let (a, b) = (self.interval(one)?, self.interval(other)?);
                (a.0.min(b.0), a.1.max(b.1))
            }
            ExprKind::Fold { .. } | ExprKind::Distinct(_) | ExprKind::Total(_) => return None,
            _ => ANY,
        };
        bounded(Some(low)).zip(bounded(Some(high)))
    }

    /// The type of a variable, or of a part of one.
    fn shape(self, expression: &Expr) -> Option<TypeId> {
        match &expression.kind {
            ExprKind::Var(var) => Some(self.variables.get(var.0 as usize)?.of),
            ExprKind::Item { of, index, .. } => match &self.types[self.shape(of)?.0 as usize].shape {
                ValueShape::Vector { element, .. } | ValueShape::List { element, .. } => Some(*element),
                ValueShape::Struct { fields } => {
                    let (least, most) = self.interval(index)?;
                    if least != most {
                        return None;
                    }
                    fields.get(usize::try_from(least).ok()?).map(|(_, of)| *of)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn bounds(self, of: TypeId) -> Option<Interval> {
        match self.types[of.0 as usize].shape {
            ValueShape::Discrete { low, high, .. } => Some((i64::from(low), i64::from(high))),
            _ => None,
        }
    }

    /// The least number of elements of a value of this type.
    fn length(self, of: TypeId) -> Option<i64> {
        match &self.types[of.0 as usize].shape {
            ValueShape::Struct { fields } => i64::try_from(fields.len()).ok(),
            ValueShape::Vector { indices, .. } => indices.iter().try_fold(1i64, |size, &index| {
                let (low, high) = self.bounds(index)?;
                size.checked_mul(high - low + 1)
            }),
            _ => None,
        }
    }
}
