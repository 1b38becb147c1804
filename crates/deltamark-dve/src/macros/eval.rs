//! Numbers of macros: `eval(2*N-1)`.
//!
//! In: an expression without names. Out: its value, in 32 bits, or an error. The operators are m4's: those of C,
//! and `**`. No recursion: an operator stack.

/// The value of an expression.
pub(super) fn evaluate(text: &[u8]) -> Result<i32, String> {
    let mut values: Vec<i32> = Vec::new();
    let mut waiting: Vec<Operator> = Vec::new();
    let mut at = 0;
    // Whether a value or a prefix operator is expected next.
    let mut wanted = true;
    while at < text.len() {
        let byte = text[at];
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if wanted && byte.is_ascii_digit() {
            let (value, end) = literal(text, at)?;
            values.push(value);
            at = end;
            wanted = false;
        } else if wanted && b"+-~!(".contains(&byte) {
            waiting.push(match byte {
                b'(' => Operator::Open,
                _ => Operator::Prefix(byte),
            });
            at += 1;
        } else if !wanted && byte == b')' {
            loop {
                match waiting.pop() {
                    Some(Operator::Open) => break,
                    Some(operator) => apply(operator, &mut values)?,
                    None => return Err("has a `)` too many".into()),
                }
            }
            at += 1;
        } else if !wanted && let Some((name, level)) = infix(&text[at..]) {
            // `**` is right-associative, all others left-associative.
            while waiting.last().is_some_and(|top| top.level() > level || top.level() == level && name != "**") {
                let operator = waiting.pop().expect("there is one");
                apply(operator, &mut values)?;
            }
            waiting.push(Operator::Infix(name, level));
            at += name.len();
            wanted = true;
        } else {
            return Err("is no number".into());
        }
    }
    if wanted {
        return Err(if text.is_empty() { "is nothing".into() } else { "ends where a number should follow".into() });
    }
    while let Some(operator) = waiting.pop() {
        apply(operator, &mut values)?;
    }
    values.pop().ok_or_else(|| "is nothing".into())
}

#[derive(Clone, Copy)]
enum Operator {
    Open,
    Prefix(u8),
    Infix(&'static str, u8),
}

impl Operator {
    fn level(self) -> u8 {
        match self {
            Operator::Open => 0,
            Operator::Prefix(_) => 20,
            Operator::Infix(_, level) => level,
        }
    }
}

/// Operators, the longer names first, with their precedence.
const INFIX: &[(&str, u8)] = &[
    ("**", 12),
    ("<<", 9),
    (">>", 9),
    ("<=", 8),
    (">=", 8),
    ("==", 7),
    ("!=", 7),
    ("&&", 3),
    ("||", 2),
    ("*", 11),
    ("/", 11),
    ("%", 11),
    ("+", 10),
    ("-", 10),
    ("<", 8),
    (">", 8),
    ("=", 7),
    ("&", 6),
    ("^", 5),
    ("|", 4),
];

fn infix(text: &[u8]) -> Option<(&'static str, u8)> {
    INFIX.iter().copied().find(|(name, _)| text.starts_with(name.as_bytes()))
}

fn literal(text: &[u8], start: usize) -> Result<(i32, usize), String> {
    let end =
        text[start..].iter().position(|byte| !byte.is_ascii_alphanumeric()).map_or(text.len(), |length| start + length);
    let digits = std::str::from_utf8(&text[start..end]).map_err(|_| "is no number")?;
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    match u32::from_str_radix(digits, radix) {
        Ok(value) => Ok((value as i32, end)),
        Err(_) => Err("is no number of 32 bits".into()),
    }
}

fn apply(operator: Operator, values: &mut Vec<i32>) -> Result<(), String> {
    let mut pop = || values.pop().ok_or_else(|| "is no number".to_string());
    let value = match operator {
        Operator::Open => return Err("has a `(` that is never closed".into()),
        Operator::Prefix(prefix) => {
            let value = pop()?;
            match prefix {
                b'-' => value.wrapping_neg(),
                b'~' => !value,
                b'!' => i32::from(value == 0),
                _ => value,
            }
        }
        Operator::Infix(name, _) => {
            let (right, left) = (pop()?, pop()?);
            match name {
                "**" if right < 0 => return Err("has a negative exponent".into()),
                "**" => left.wrapping_pow(right as u32),
                "/" | "%" if right == 0 => return Err("divides by zero".into()),
                "/" => left.wrapping_div(right),
                "%" => left.wrapping_rem(right),
                "*" => left.wrapping_mul(right),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "<<" => left.wrapping_shl(right as u32),
                ">>" => left.wrapping_shr(right as u32),
                "<" => i32::from(left < right),
                "<=" => i32::from(left <= right),
                ">" => i32::from(left > right),
                ">=" => i32::from(left >= right),
                "==" | "=" => i32::from(left == right),
                "!=" => i32::from(left != right),
                "&" => left & right,
                "^" => left ^ right,
                "|" => left | right,
                "&&" => i32::from(left != 0 && right != 0),
                "||" => i32::from(left != 0 || right != 0),
                _ => return Err("is no number".into()),
            }
        }
    };
    values.push(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn expressions_have_the_values_of_m4() {
        let cases = [
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("2**3**2", 512),
            ("-2**2", 4),
            ("7-2-1", 4),
            ("-7/2", -3),
            ("-7%3", -1),
            ("1<<4|1", 17),
            ("!0", 1),
            ("~0", -1),
            ("3>2==1", 1),
            ("0x1f", 31),
            ("010", 8),
            ("0b101", 5),
            ("- - 3", 3),
            ("1 && 0 || 1", 1),
            ("6&3^1", 3),
            ("2147483647+1", i32::MIN),
            ("4 = 4", 1),
            (" 5 ", 5),
        ];
        for (text, value) in cases {
            assert_eq!(evaluate(text.as_bytes()), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_told() {
        let cases = [
            ("", "is nothing"),
            ("N-1", "is no number"),
            ("1/0", "divides by zero"),
            ("1+", "ends where a number should follow"),
            ("(1", "has a `(` that is never closed"),
            ("1)", "has a `)` too many"),
            ("1 2", "is no number"),
            ("99999999999", "is no number of 32 bits"),
            ("2**-1", "has a negative exponent"),
            ("()", "is no number"),
        ];
        for (text, message) in cases {
            assert_eq!(evaluate(text.as_bytes()), Err(message.into()), "{text}");
        }
    }
}
