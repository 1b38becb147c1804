//! Constant folding.
//!
//! In: an expression of the net whose operands are folded already. Out: the same, or a constant if all its
//! operands are. What stays true: an expression that faults is kept, so that it is a fault only if the net
//! evaluates it; the value is the one computed at run time.

use crate::net::{Binary, End, Expr, ExprKind, FaultKind, Unary, Value};
use deltamark_core::Span;

/// An expression, folded to a constant if its operands are.
pub(crate) fn folded(kind: ExprKind, span: Span) -> Expr {
    match fold(&kind) {
        Some(Ok(value)) => Expr::new(ExprKind::Const(value), span),
        _ => Expr::new(kind, span),
    }
}

/// The fault of a constant expression, if that is why it has no value.
pub(crate) fn fault_of(expr: &Expr) -> Option<FaultKind> {
    fold(&expr.kind).and_then(Result::err)
}

fn constant(expr: &Expr) -> Option<&Value> {
    match &expr.kind {
        ExprKind::Const(value) => Some(value),
        _ => None,
    }
}

/// The number that an expression is known to be.
pub(crate) fn number(expr: &Expr) -> Option<i64> {
    constant(expr)?.int().map(i64::from)
}

fn sequence(expr: &Expr) -> Option<&[Value]> {
    match constant(expr)? {
        Value::Seq(items) => Some(items),
        Value::Int(_) => None,
    }
}

fn all(parts: &[Expr]) -> Option<Vec<Value>> {
    parts.iter().map(|part| constant(part).cloned()).collect()
}

fn truth(value: bool) -> Value {
    Value::Int(i32::from(value))
}

type Folded = Result<Value, FaultKind>;

/// A number as a value; `None` if it does not fit, which is reported at run time.
fn fits(value: Option<i64>) -> Option<Folded> {
    value.and_then(|value| i32::try_from(value).ok()).map(|value| Ok(Value::Int(value)))
}

/// The value of an operation on constants; `None` if an operand is not constant.
fn fold(kind: &ExprKind) -> Option<Folded> {
    match kind {
        ExprKind::Unary(Unary::Neg, of) => fits(number(of)?.checked_neg()),
        ExprKind::Unary(Unary::Not, of) => Some(Ok(truth(number(of)? == 0))),
        ExprKind::Binary(operator, left, right) => binary(*operator, left, right),
        ExprKind::Check { of, low, high, fault } => {
            let value = number(of)?;
            let inside = (i64::from(*low)..=i64::from(*high)).contains(&value);
            if inside { fits(Some(value)) } else { Some(Err(*fault)) }
        }
        ExprKind::Wrap(of, modulus) => fits(Some(number(of)?.rem_euclid(i64::from(*modulus)))),
        ExprKind::Cycle { of, low, high, by } => {
            let (low, size) = (i64::from(*low), i64::from(*high) - i64::from(*low) + 1);
            fits(Some((number(of)? - low + i64::from(*by)).rem_euclid(size) + low))
        }
        ExprKind::If(condition, then, otherwise) => {
            let taken = if number(condition)? != 0 { then } else { otherwise };
            constant(taken).cloned().map(Ok)
        }
        ExprKind::Row(parts) => all(parts).map(|parts| Ok(Value::Seq(parts))),
        ExprKind::List(parts, capacity) => Some(bounded(all(parts)?, *capacity, FaultKind::ContainerOverflow)),
        ExprKind::Set(parts, capacity) => Some(bounded(sorted(all(parts)?), *capacity, FaultKind::ContainerOverflow)),
        ExprKind::Item { of, index, fault } => {
            let (items, index) = (sequence(of)?, number(index)?);
            Some(usize::try_from(index).ok().and_then(|index| items.get(index).cloned()).ok_or(*fault))
        }
        ExprKind::Replace { of, index, value, fault } => {
            let (mut items, index, value) = (sequence(of)?.to_vec(), number(index)?, constant(value)?.clone());
            Some(match usize::try_from(index).ok().and_then(|index| items.get_mut(index)) {
                Some(item) => {
                    *item = value;
                    Ok(Value::Seq(items))
                }
                None => Err(*fault),
            })
        }
        ExprKind::Concat(left, right, capacity) => {
            let items = [sequence(left)?, sequence(right)?].concat();
            Some(bounded(items, *capacity, FaultKind::ListOverflow))
        }
        ExprKind::Union(left, right, capacity) => {
            let items = sorted([sequence(left)?, sequence(right)?].concat());
            Some(bounded(items, *capacity, FaultKind::ContainerOverflow))
        }
        ExprKind::Intersect(left, right) => {
            let (left, right) = (sequence(left)?, sequence(right)?);
            Some(Ok(Value::Seq(left.iter().filter(|item| right.binary_search(item).is_ok()).cloned().collect())))
        }
        ExprKind::Difference(left, right) => {
            let (left, right) = (sequence(left)?, sequence(right)?);
            Some(Ok(Value::Seq(left.iter().filter(|item| right.binary_search(item).is_err()).cloned().collect())))
        }
        ExprKind::In(item, of) => Some(Ok(truth(sequence(of)?.contains(constant(item)?)))),
        ExprKind::Subset(left, right, proper) => {
            let (left, right) = (sequence(left)?, sequence(right)?);
            let inside = left.iter().all(|item| right.binary_search(item).is_ok());
            Some(Ok(truth(inside && !(*proper && left.len() == right.len()))))
        }
        ExprKind::Size(of) => fits(i64::try_from(sequence(of)?.len()).ok()),
        ExprKind::End(end, of) => ending(*end, sequence(of)?),
        _ => None,
    }
}

fn binary(operator: Binary, left: &Expr, right: &Expr) -> Option<Folded> {
    match operator {
        Binary::Eq => return Some(Ok(truth(constant(left)? == constant(right)?))),
        Binary::Ne => return Some(Ok(truth(constant(left)? != constant(right)?))),
        // The right operand is irrelevant if the left one decides.
        Binary::And if number(left)? == 0 => return Some(Ok(truth(false))),
        Binary::Or if number(left)? != 0 => return Some(Ok(truth(true))),
        _ => {}
    }
    let (left, right) = (number(left)?, number(right)?);
    Some(match operator {
        Binary::Add => return fits(left.checked_add(right)),
        Binary::Sub => return fits(left.checked_sub(right)),
        Binary::Mul => return fits(left.checked_mul(right)),
        Binary::Div | Binary::Rem if right == 0 => Err(FaultKind::DivisionByZero),
        Binary::Div => return fits(left.checked_div(right)),
        Binary::Rem => return fits(left.checked_rem(right)),
        Binary::And | Binary::Or => Ok(truth(right != 0)),
        Binary::Eq => Ok(truth(left == right)),
        Binary::Ne => Ok(truth(left != right)),
        Binary::Lt => Ok(truth(left < right)),
        Binary::Le => Ok(truth(left <= right)),
        Binary::Gt => Ok(truth(left > right)),
        Binary::Ge => Ok(truth(left >= right)),
    })
}

fn ending(end: End, items: &[Value]) -> Option<Folded> {
    let Some((last, before)) = items.split_last() else { return Some(Err(FaultKind::EmptyList)) };
    Some(match end {
        End::First => Ok(items[0].clone()),
        End::Last => Ok(last.clone()),
        End::Prefix => Ok(Value::Seq(before.to_vec())),
        End::Suffix => Ok(Value::Seq(items[1..].to_vec())),
        End::LastIndex => return fits(i64::try_from(before.len()).ok()),
    })
}

fn sorted(mut items: Vec<Value>) -> Vec<Value> {
    items.sort_unstable();
    items.dedup();
    items
}

fn bounded(items: Vec<Value>, capacity: u32, fault: FaultKind) -> Folded {
    if items.len() > capacity as usize { Err(fault) } else { Ok(Value::Seq(items)) }
}
