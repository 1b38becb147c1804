//! Multisets of tokens in reports.
//!
//! In: values such as `1'(1,idle) ++ 2'(3,busy)`, as coloured nets have them, or in the notation of CPN Tools. Out: what a
//! step removed and added (`−1'(1,idle) +1'(1,busy)`), and the first tokens of a large one. What stays true: a value that is
//! no multiset is left to the caller; lists end in a count, so that a place of a million tokens takes a line
//! or two.

use crate::output::Look;
use deltamark::Value;
use std::collections::HashMap;

/// The maximum number of distinct tokens shown of a place.
const TOKENS: usize = 12;

/// How multisets are written.
#[derive(Clone, Copy)]
pub struct Notation {
    /// Between a multiplicity and its token.
    pub times: char,
    /// Between tokens.
    pub plus: &'static str,
}

const PLAIN: Notation = Notation { times: '\'', plus: " ++ " };
const CPN_TOOLS: Notation = Notation { times: '`', plus: "++" };

impl Notation {
    /// That of models in this format.
    pub fn of(format: &str) -> Self {
        if format == "cpn" { CPN_TOOLS } else { PLAIN }
    }
}

/// Tokens and their multiplicities, in order; `None` for a value that is no multiset. An empty place is shown
/// as 0.
fn tokens(value: &Value) -> Option<(Vec<(&str, u64)>, Notation)> {
    let text = match value {
        Value::Int(0) => return Some((Vec::new(), PLAIN)),
        Value::Int(_) => return None,
        Value::Text(text) => text,
    };
    let after = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let notation = if after.starts_with(CPN_TOOLS.times) { CPN_TOOLS } else { PLAIN };
    let one = |item: &'_ str| -> Option<(usize, u64)> {
        let (count, _) = item.split_once(notation.times)?;
        Some((count.len() + notation.times.len_utf8(), count.parse().ok()?))
    };
    let items = if after.starts_with(CPN_TOOLS.times) { summands(text) } else { text.split(PLAIN.plus).collect() };
    let list = items.into_iter().map(|item| one(item).map(|(at, count)| (&item[at..], count)));
    Some((list.collect::<Option<Vec<_>>>()?, notation))
}

/// The summands of a multiset in the notation of CPN Tools: signs inside of strings do not count.
fn summands(text: &str) -> Vec<&str> {
    let (mut items, mut start) = (Vec::new(), 0);
    let (mut inside, mut escaped) = (false, false);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            '+' if !inside && text[at..].starts_with(CPN_TOOLS.plus) => {
                items.push(&text[start..at]);
                start = at + CPN_TOOLS.plus.len();
                letters.next();
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items
}

/// The change of a place, if its tokens have values.
pub fn change(name: &str, before: &Value, after: &Value, look: &Look) -> Option<String> {
    if matches!((before, after), (Value::Int(_), Value::Int(_))) {
        return None;
    }
    let ((old, first), (new, second)) = (tokens(before)?, tokens(after)?);
    // An empty multiset is written alike in both.
    let times = if old.is_empty() { second.times } else { first.times };
    let counts = |list: &[(&str, u64)]| -> HashMap<String, u64> {
        list.iter().map(|&(token, count)| (token.to_string(), count)).collect()
    };
    let (had, has) = (counts(&old), counts(&new));
    let taken = old.iter().filter_map(|&(token, count)| {
        let less = count.checked_sub(has.get(token).copied().unwrap_or(0)).filter(|&less| less > 0)?;
        Some(format!("{}{less}{times}{token}", look.minus))
    });
    let put = new.iter().filter_map(|&(token, count)| {
        let more = count.checked_sub(had.get(token).copied().unwrap_or(0)).filter(|&more| more > 0)?;
        Some(format!("+{more}{times}{token}"))
    });
    let all: Vec<String> = taken.chain(put).collect();
    let more = match all.len().saturating_sub(TOKENS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{name} {}{more}", all[..all.len().min(TOKENS)].join(" ")))
}

/// A value, abbreviated if it is a large multiset.
pub fn shown(value: &Value) -> String {
    let whole = value.to_string();
    match tokens(value) {
        Some((list, Notation { times, plus })) if list.len() > TOKENS => {
            let first: Vec<String> =
                list[..TOKENS].iter().map(|(token, count)| format!("{count}{times}{token}")).collect();
            format!("{}{plus}… ({} more)", first.join(plus), list.len() - TOKENS)
        }
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        text.parse().map_or_else(|_| Value::Text(text.into()), Value::Int)
    }

    #[test]
    fn a_change_is_what_was_taken_and_what_was_put() {
        let cases = [
            ("1'1 ++ 1'2", "1'2", Some("p −1'1")),
            ("1'1", "0", Some("p −1'1")),
            ("0", "1'1", Some("p +1'1")),
            ("3'(1,idle) ++ 1'(2,busy)", "1'(1,idle) ++ 4'(2,busy)", Some("p −2'(1,idle) +3'(2,busy)")),
            ("1'(0,thinking)", "1'(0,seated)", Some("p −1'(0,thinking) +1'(0,seated)")),
            // As CPN Tools writes them; strings hold any sign.
            ("1`1++1`2", "1`2", Some("p −1`1")),
            ("0", "2`e", Some("p +2`e")),
            ("1`\"++1`\"++1`\"a\\\"++\"", "1`\"++1`\"", Some("p −1`\"a\\\"++\"")),
            // A place without values, a variable of DVE, a text of a library.
            ("4", "3", None),
            ("0", "1", None),
            ("idle", "busy", None),
            ("it's", "1'1", None),
        ];
        for (before, after, expected) in cases {
            let found = change("p", &value(before), &value(after), &Look::stdout());
            assert_eq!(found.as_deref(), expected, "{before} to {after}");
        }
    }

    #[test]
    fn a_large_multiset_takes_a_line() {
        let many = (0..1000).map(|token| format!("1'{token}")).collect::<Vec<_>>().join(" ++ ");
        let cut = shown(&value(&many));
        assert!(cut.starts_with("1'0 ++ 1'1 ++ ") && cut.ends_with("1'11 ++ … (988 more)"), "{cut}");
        let gone = change("p", &value(&many), &value("0"), &Look::stdout()).expect("a multiset");
        assert!(gone.starts_with("p −1'0 −1'1 ") && gone.ends_with("−1'11 and 988 more"), "{gone}");
        assert_eq!(shown(&value("1'1 ++ 2'2")), "1'1 ++ 2'2");
        assert_eq!(shown(&value("7")), "7");
        let cut = shown(&value(&many.replace('\'', "`").replace(' ', "")));
        assert!(cut.starts_with("1`0++1`1++") && cut.ends_with("1`11++… (988 more)"), "{cut}");
    }
}
