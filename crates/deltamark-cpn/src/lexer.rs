//! The words of CPN ML.
//!
//! In: a text. Out: tokens with their byte positions, or what is wrong. As in Standard ML, symbolic names are matched as
//! long as possible, comments nest, and `'` is a letter.

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Word {
    /// A name, reserved words included; qualified names are one word.
    Name(String),
    /// A type variable.
    TypeVar(String),
    /// A symbolic name, or one of `( ) [ ] { } , ; _ ...`.
    Sign(String),
    Int(i64),
    /// A number with a point, which is refused where it is used.
    Real(String),
    Str(String),
    Char(char),
    /// The end of the text.
    End,
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wrong {
    pub at: usize,
    pub message: String,
    pub help: Option<String>,
}

impl Wrong {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Wrong { at, message: message.into(), help: None }
    }

    /// The same with advice, if there is some.
    pub fn advise(self, help: Option<String>) -> Self {
        Wrong { help: help.or(self.help), ..self }
    }
}

pub(crate) fn wrong<T>(at: usize, message: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::new(at, message))
}

const SYMBOLIC: &str = "!%&$#+-/:<=>?@\\~`^|*";

/// The tokens of a text, the last of which is the end.
pub(crate) fn words(text: &str) -> Result<Vec<(Word, usize)>, Wrong> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let at = |i: usize| chars.get(i).map_or('\0', |&(_, c)| c);
    let mut out = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let (pos, c) = chars[i];
        if c.is_whitespace() || c == '\u{feff}' {
            i += 1;
        } else if c == '(' && at(i + 1) == '*' {
            let mut depth = 1;
            i += 2;
            while depth > 0 {
                if i >= chars.len() {
                    return wrong(pos, "this comment does not end");
                }
                match (at(i), at(i + 1)) {
                    ('(', '*') => (depth, i) = (depth + 1, i + 2),
                    ('*', ')') => (depth, i) = (depth - 1, i + 2),
                    _ => i += 1,
                }
            }
        } else if c.is_alphabetic() || c == '\'' {
            let letter = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
            let mut name = String::new();
            loop {
                while letter(at(i)) {
                    name.push(at(i));
                    i += 1;
                }
                if at(i) == '.' && at(i + 1).is_alphabetic() {
                    name.push('.');
                    i += 1;
                } else {
                    break;
                }
            }
            out.push((if c == '\'' { Word::TypeVar(name) } else { Word::Name(name) }, pos));
        } else if c.is_ascii_digit() || c == '~' && at(i + 1).is_ascii_digit() {
            let negative = c == '~';
            i += usize::from(negative);
            let hex = at(i) == '0' && at(i + 1) == 'x';
            i += if hex { 2 } else { 0 };
            let mut number: i64 = 0;
            let start = i;
            while at(i).is_digit(if hex { 16 } else { 10 }) {
                let digit = i64::from(at(i).to_digit(16).unwrap_or(0));
                number = number.saturating_mul(if hex { 16 } else { 10 }).saturating_add(digit);
                i += 1;
            }
            if i == start {
                return wrong(pos, "digits are missing");
            }
            let real =
                at(i) == '.' && at(i + 1).is_ascii_digit() || matches!(at(i), 'e' | 'E') && at(i + 1).is_ascii_digit();
            if real {
                while at(i).is_ascii_digit() || at(i) == '.' && at(i + 1).is_ascii_digit() {
                    i += 1;
                }
                if matches!(at(i), 'e' | 'E') && (at(i + 1).is_ascii_digit() || at(i + 1) == '~') {
                    i += 2;
                    while at(i).is_ascii_digit() {
                        i += 1;
                    }
                }
                let end = chars.get(i).map_or(text.len(), |&(at, _)| at);
                out.push((Word::Real(text[pos..end].into()), pos));
                continue;
            }
            if number > 1 << 30 || number == 1 << 30 && !negative {
                return wrong(pos, "this number is outside -1073741824 to 1073741823");
            }
            out.push((Word::Int(if negative { -number } else { number }), pos));
        } else if c == '"' || c == '#' && at(i + 1) == '"' {
            let single = c == '#';
            i += if single { 2 } else { 1 };
            let mut string = String::new();
            loop {
                match at(i) {
                    _ if i >= chars.len() => return wrong(pos, "this string does not end"),
                    '"' => break,
                    '\n' => return wrong(pos, "this string does not end on its line"),
                    '\\' => {
                        i += 1;
                        match at(i) {
                            'n' => string.push('\n'),
                            't' => string.push('\t'),
                            'r' => string.push('\r'),
                            '\\' => string.push('\\'),
                            '"' => string.push('"'),
                            d if d.is_ascii_digit() => {
                                let code: String = (0..3).map(|k| at(i + k)).collect();
                                let Ok(code) = code.parse::<u8>() else {
                                    return wrong(chars[i].0, "an escape is `\\` and three digits up to 255");
                                };
                                string.push(char::from(code));
                                i += 2;
                            }
                            w if w.is_whitespace() => {
                                while at(i).is_whitespace() {
                                    i += 1;
                                }
                                if at(i) != '\\' {
                                    return wrong(pos, "a gap in a string ends with `\\`");
                                }
                            }
                            _ => return wrong(pos, "this escape in a string is unknown"),
                        }
                        i += 1;
                    }
                    other => {
                        string.push(other);
                        i += 1;
                    }
                }
            }
            i += 1;
            if single {
                let mut letters = string.chars();
                match (letters.next(), letters.next()) {
                    (Some(letter), None) => out.push((Word::Char(letter), pos)),
                    _ => return wrong(pos, "a character is one letter"),
                }
            } else {
                out.push((Word::Str(string), pos));
            }
        } else if SYMBOLIC.contains(c) {
            let mut sign = String::new();
            while SYMBOLIC.contains(at(i)) && i < chars.len() && !(at(i) == '#' && at(i + 1) == '"' && !sign.is_empty())
            {
                // `~` before a digit begins a number, unless it continues a symbolic name.
                sign.push(at(i));
                i += 1;
            }
            out.push((Word::Sign(sign), pos));
        } else if c == '.' && at(i + 1) == '.' && at(i + 2) == '.' {
            out.push((Word::Sign("...".into()), pos));
            i += 3;
        } else if c == '.' && at(i + 1) == '.' {
            out.push((Word::Sign("..".into()), pos));
            i += 2;
        } else if "()[]{},;_".contains(c) {
            out.push((Word::Sign(c.to_string()), pos));
            i += 1;
        } else {
            return wrong(pos, format!("`{c}` means nothing here"));
        }
    }
    out.push((Word::End, text.len()));
    Ok(out)
}
