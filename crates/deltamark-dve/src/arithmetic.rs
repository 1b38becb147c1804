//! The arithmetic of the language.
//!
//! In: operands. Out: the result, or `None` for a fault. What stays true: this is the only definition of the
//! language's arithmetic; folding, the interpreter and the messages of faults all use it.

use crate::ir::{Binary, Unary};

/// An operator with one operand.
#[inline]
pub fn unary(operator: Unary, operand: i32) -> i32 {
    match operator {
        Unary::Negate => operand.wrapping_neg(),
        Unary::Complement => !operand,
        Unary::Not => i32::from(operand == 0),
    }
}

/// An operator with two operands that needs both and cannot fail.
#[inline]
pub fn binary(operator: Binary, left: i32, right: i32) -> i32 {
    match operator {
        Binary::Add => left.wrapping_add(right),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::Multiply => left.wrapping_mul(right),
        Binary::ShiftLeft => left.wrapping_shl(right as u32),
        Binary::ShiftRight => left.wrapping_shr(right as u32),
        Binary::BitAnd => left & right,
        Binary::BitOr => left | right,
        Binary::BitXor => left ^ right,
        Binary::Equal => i32::from(left == right),
        Binary::Differ => i32::from(left != right),
        Binary::Less => i32::from(left < right),
        Binary::AtMost => i32::from(left <= right),
        Binary::More => i32::from(left > right),
        Binary::AtLeast => i32::from(left >= right),
    }
}

/// Quotient or remainder; `None` if the divisor is zero.
#[inline]
pub fn divide(remainder: bool, left: i32, right: i32) -> Option<i32> {
    match (right, remainder) {
        (0, _) => None,
        (_, false) => Some(left.wrapping_div(right)),
        (_, true) => Some(left.wrapping_rem(right)),
    }
}
