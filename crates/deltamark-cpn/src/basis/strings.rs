//! Strings, characters, integers as text, and orders.
//!
//! In: the name and all arguments. Out: the value; `None` if the function is not here.

use std::cmp::Ordering;

use super::{EQUAL, GREATER, LESS, NONE, OPTION, SOME, SUBSCRIPT, less, text};
use crate::eval::{Evaluated, Halt, Machine, Val, list, raise};
use crate::values::Inner;

/// Name, number of arguments, type.
pub(super) const FUNCTIONS: &[(&str, usize, &str)] = &[
    ("String.sub", 1, "string * int -> char"),
    ("String.str", 1, "char -> string"),
    ("String.explode", 1, "string -> char list"),
    ("String.implode", 1, "char list -> string"),
    ("String.extract", 1, "string * int * int option -> string"),
    ("String.isSuffix", 2, "string -> string -> bool"),
    ("String.compare", 1, "string * string -> order"),
    ("String.map", 2, "(char -> char) -> string -> string"),
    ("String.translate", 2, "(char -> string) -> string -> string"),
    ("String.tokens", 2, "(char -> bool) -> string -> string list"),
    ("String.fields", 2, "(char -> bool) -> string -> string list"),
    ("String.concatWith", 2, "string -> string list -> string"),
    ("Char.ord", 1, "char -> int"),
    ("Char.compare", 1, "char * char -> order"),
    ("Char.isDigit", 1, "char -> bool"),
    ("Char.isAlpha", 1, "char -> bool"),
    ("Char.isAlphaNum", 1, "char -> bool"),
    ("Char.isUpper", 1, "char -> bool"),
    ("Char.isLower", 1, "char -> bool"),
    ("Char.isSpace", 1, "char -> bool"),
    ("Char.toUpper", 1, "char -> char"),
    ("Char.toLower", 1, "char -> char"),
    ("Int.compare", 1, "int * int -> order"),
    ("Int.sign", 1, "int -> int"),
    ("Int.fromString", 1, "string -> int option"),
    ("Bool.not", 1, "bool -> bool"),
    ("getOpt", 1, "'a option * 'a -> 'a"),
    ("Option.getOpt", 1, "'a option * 'a -> 'a"),
    ("Option.isSome", 1, "'a option -> bool"),
    ("Option.valOf", 1, "'a option -> 'a"),
    ("Option.map", 2, "('a -> 'b) -> 'a option -> 'b option"),
];

fn letter(value: &Val) -> char {
    if let Val::Char(letter) = value { *letter } else { '\0' }
}

fn some(value: Val) -> Val {
    Val::Con(SOME, Some(Inner::new(value)))
}

fn order(ordering: Ordering) -> Val {
    Val::Con(
        match ordering {
            Ordering::Less => LESS,
            Ordering::Equal => EQUAL,
            Ordering::Greater => GREATER,
        },
        None,
    )
}

/// The integer that a text begins with, after blanks, as `Int.fromString` reads it.
fn number(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix(['~', '-']) {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    // Too many digits saturate, and are out of range.
    if end == 0 { None } else { Some(sign * digits[..end].parse::<i64>().unwrap_or(i64::MAX)) }
}

pub(super) fn apply(machine: &mut Machine<'_>, name: &str, all: &[Val]) -> Option<Evaluated> {
    compute(machine, name, all.first()?, all.get(1)).transpose()
}

fn compute(machine: &mut Machine<'_>, name: &str, a: &Val, b: Option<&Val>) -> Result<Option<Val>, Halt> {
    let unit = Val::Unit;
    let b = b.unwrap_or(&unit);
    machine.make_text(a.text().len() + b.text().len())?;
    let c = letter(a);
    Ok(Some(match name {
        "String.sub" => {
            let at = usize::try_from(a.part(1).int()).ok();
            match at.and_then(|at| a.part(0).text().chars().nth(at)) {
                Some(letter) => Val::Char(letter),
                None => return raise(SUBSCRIPT),
            }
        }
        "String.str" => text(c.to_string()),
        "String.explode" => list(a.text().chars().map(Val::Char).collect()),
        "String.implode" => {
            machine.make(a.items().len())?;
            text(a.items().iter().map(letter).collect::<String>())
        }
        "String.extract" => {
            let letters: Vec<char> = a.part(0).text().chars().collect();
            machine.make_text(letters.len())?;
            let from = usize::try_from(a.part(1).int()).ok();
            let part = match a.part(2) {
                Val::Con(SOME, Some(len)) => {
                    let len = usize::try_from(len.int()).ok();
                    from.zip(len).and_then(|(from, len)| letters.get(from..from.checked_add(len)?))
                }
                _ => from.and_then(|from| letters.get(from..)),
            };
            match part {
                Some(part) => text(part.iter().collect::<String>()),
                None => return raise(SUBSCRIPT),
            }
        }
        "String.isSuffix" => Val::Bool(b.text().ends_with(a.text())),
        "String.compare" | "Int.compare" | "Char.compare" => order(less(&a.part(0), &a.part(1))),
        "String.map" | "String.translate" => {
            let mut out = String::new();
            for c in b.text().chars() {
                match machine.apply(a, Val::Char(c))? {
                    Val::Char(c) => out.push(c),
                    other => {
                        machine.make_text(other.text().len())?;
                        out.push_str(other.text());
                    }
                }
            }
            text(out)
        }
        "String.tokens" | "String.fields" => {
            let mut parts = vec![String::new()];
            for c in b.text().chars() {
                if machine.apply(a, Val::Char(c))?.truth() {
                    parts.push(String::new());
                } else if let Some(last) = parts.last_mut() {
                    last.push(c);
                }
            }
            parts.retain(|part| name == "String.fields" || !part.is_empty());
            list(parts.into_iter().map(text).collect())
        }
        "String.concatWith" => {
            let mut out = String::new();
            for (at, item) in b.items().iter().enumerate() {
                machine.make_text(item.text().len() + a.text().len())?;
                out.push_str(if at > 0 { a.text() } else { "" });
                out.push_str(item.text());
            }
            text(out)
        }
        "Char.ord" => Val::Int(i64::from(u32::from(c))),
        "Char.isDigit" => Val::Bool(c.is_ascii_digit()),
        "Char.isAlpha" => Val::Bool(c.is_ascii_alphabetic()),
        "Char.isAlphaNum" => Val::Bool(c.is_ascii_alphanumeric()),
        "Char.isUpper" => Val::Bool(c.is_ascii_uppercase()),
        "Char.isLower" => Val::Bool(c.is_ascii_lowercase()),
        "Char.isSpace" => Val::Bool(matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')),
        "Char.toUpper" => Val::Char(c.to_ascii_uppercase()),
        "Char.toLower" => Val::Char(c.to_ascii_lowercase()),
        "Int.sign" => Val::Int(a.int().signum()),
        "Int.fromString" => match number(a.text()) {
            Some(number) => some(super::int(number)?),
            None => Val::Con(NONE, None),
        },
        "Bool.not" => Val::Bool(!a.truth()),
        "getOpt" | "Option.getOpt" => match a.part(0) {
            Val::Con(SOME, Some(of)) => (*of).clone(),
            _ => a.part(1),
        },
        "Option.isSome" => Val::Bool(matches!(a, Val::Con(SOME, _))),
        "Option.valOf" => match a {
            Val::Con(SOME, Some(of)) => (**of).clone(),
            _ => return raise(OPTION),
        },
        "Option.map" => match b {
            Val::Con(SOME, Some(of)) => some(machine.apply(a, (**of).clone())?),
            _ => Val::Con(NONE, None),
        },
        _ => return Ok(None),
    }))
}
