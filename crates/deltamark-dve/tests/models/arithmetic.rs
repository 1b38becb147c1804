//! Operators of DVE by plain 64-bit arithmetic, truncated to 32 bits: for oracles, apart from the crate.

fn cut(value: i64) -> i32 {
    value as u64 as u32 as i32
}

/// The value of an operator with one operand.
pub fn unary(operator: &str, operand: i32) -> i32 {
    let operand = i64::from(operand);
    match operator {
        "-" => cut(-operand),
        "~" => cut(-operand - 1),
        _ => (operand == 0).into(),
    }
}

/// The value that the left operand decides alone: the right one is then not evaluated.
pub fn decided(operator: &str, left: i32) -> Option<i32> {
    match (operator, left != 0) {
        ("and" | "&&", false) => Some(0),
        ("or" | "||", true) | ("imply", false) => Some(1),
        _ => None,
    }
}

/// The value of an operator with two operands, where the left one does not decide it; `None` for a division by zero.
pub fn binary(operator: &str, left: i32, right: i32) -> Option<i32> {
    let (left, right) = (i64::from(left), i64::from(right));
    Some(match operator {
        "imply" | "or" | "||" | "and" | "&&" => i32::from(right != 0),
        "|" => cut(left | right),
        "^" => cut(left ^ right),
        "&" => cut(left & right),
        "==" => i32::from(left == right),
        "!=" => i32::from(left != right),
        "<" => i32::from(left < right),
        "<=" => i32::from(left <= right),
        ">" => i32::from(left > right),
        ">=" => i32::from(left >= right),
        "<<" => cut(left << (right & 31)),
        ">>" => cut(left >> (right & 31)),
        "+" => cut(left + right),
        "-" => cut(left - right),
        "*" => cut(left.wrapping_mul(right)),
        "/" | "%" if right == 0 => return None,
        "/" => cut(left / right),
        "%" => cut(left % right),
        other => unreachable!("{other} is no operator"),
    })
}
