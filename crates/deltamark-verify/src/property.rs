//! A plain reader and evaluator of expressions over states.
//!
//! In: the text of an expression of the property language, and what names denote. Out: a tree; of a state its truth, or
//! that it has none there. What stays true: `and`, `or` and `implies` look at their right side only if the left one
//! does not decide; numbers are 64 bits wide, and where a sum does not fit, or a divisor is 0, there is no value;
//! nesting is bounded, so nothing overflows the stack.

use crate::model::Model;

/// A truth value.
#[derive(Debug)]
pub(crate) enum Truth {
    Constant(bool),
    Deadlock,
    Fireable(Vec<u32>),
    Compare(&'static str, Number, Number),
    Not(Box<Truth>),
    And(Vec<Truth>),
    Or(Vec<Truth>),
    Implies(Box<Truth>, Box<Truth>),
    Iff(Box<Truth>, Box<Truth>),
}

/// A number.
#[derive(Debug)]
pub(crate) enum Number {
    Constant(i64),
    Variable(u32),
    Sum(Vec<u32>),
    Negated(Box<Number>),
    Binary(char, Box<Number>, Box<Number>),
}

/// A state in which an expression is evaluated.
pub(crate) struct Moment<'a> {
    pub model: &'a dyn Model,
    pub state: &'a [i64],
    /// Whether it has no step.
    pub dead: bool,
}

impl Truth {
    /// Its value; `None` if it has none.
    pub fn value(&self, now: &Moment<'_>) -> Option<bool> {
        Some(match self {
            Truth::Constant(value) => *value,
            Truth::Deadlock => now.dead,
            Truth::Fireable(transitions) => transitions.iter().any(|&one| now.model.fireable(now.state, one)),
            Truth::Compare(sign, left, right) => {
                let (left, right) = (left.value(now)?, right.value(now)?);
                match *sign {
                    "=" => left == right,
                    "!=" => left != right,
                    "<" => left < right,
                    "<=" => left <= right,
                    ">" => left > right,
                    _ => left >= right,
                }
            }
            Truth::Not(inner) => !inner.value(now)?,
            Truth::And(parts) => {
                for part in parts {
                    if !part.value(now)? {
                        return Some(false);
                    }
                }
                true
            }
            Truth::Or(parts) => {
                for part in parts {
                    if part.value(now)? {
                        return Some(true);
                    }
                }
                false
            }
            Truth::Implies(left, right) => !left.value(now)? || right.value(now)?,
            Truth::Iff(left, right) => left.value(now)? == right.value(now)?,
        })
    }
}

impl Number {
    fn value(&self, now: &Moment<'_>) -> Option<i64> {
        match self {
            Number::Constant(value) => Some(*value),
            Number::Variable(variable) => Some(now.state[*variable as usize]),
            Number::Sum(all) => all.iter().try_fold(0i64, |sum, &one| sum.checked_add(now.state[one as usize])),
            Number::Negated(inner) => inner.value(now)?.checked_neg(),
            Number::Binary(operator, left, right) => {
                let (left, right) = (left.value(now)?, right.value(now)?);
                match operator {
                    '+' => left.checked_add(right),
                    '-' => left.checked_sub(right),
                    '*' => left.checked_mul(right),
                    '/' => left.checked_div(right),
                    _ => left.checked_rem(right),
                }
            }
        }
    }
}

/// Reads an expression that is true or false.
pub(crate) fn read(text: &str, model: &dyn Model) -> Result<Truth, String> {
    let mut reader = Reader { text, tokens: tokens(text)?, at: 0, depth: 0, chained: 0, model };
    let truth = reader.climb(IFF)?.truth()?;
    match reader.tokens.get(reader.at) {
        None => Ok(truth),
        Some(_) => Err(format!("`{}` is not expected", reader.word())),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Word,
    Quoted,
    Number,
    Sign,
}

/// Signs, the longer ones first.
const SIGNS: [&str; 28] = [
    "<->", "<=>", "->", "=>", "==", "!=", "<>", "<=", ">=", "&&", "||", "=", "<", ">", "!", "&", "|", "+", "-", "*",
    "/", "%", "(", ")", "[", "]", ",", ".",
];

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Tokens with their spans.
fn tokens(text: &str) -> Result<Vec<(Kind, usize, usize)>, String> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        let (start, rest) = (at, &text[at..]);
        let length = |end: Option<usize>| end.unwrap_or(rest.len());
        let kind = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '#' => {
                at += length(rest.find('\n'));
                continue;
            }
            c if is_word(c) => {
                at += length(rest.find(|c| !is_word(c)));
                if c.is_ascii_digit() { Kind::Number } else { Kind::Word }
            }
            '"' | '\'' => {
                let mut characters = rest.char_indices().skip(1);
                at += loop {
                    match characters.next() {
                        Some((_, '\\')) => drop(characters.next()),
                        Some((end, next)) if next == c => break end + 1,
                        Some((_, '\n')) | None => return Err("a quoted name has no end".into()),
                        Some(_) => {}
                    }
                };
                Kind::Quoted
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                at += sign.ok_or_else(|| format!("`{}` is no part of an expression", c.escape_debug()))?.len();
                Kind::Sign
            }
        };
        tokens.push((kind, start, at));
    }
    Ok(tokens)
}

enum Expression {
    Truth(Truth),
    Number(Number),
}

impl Expression {
    fn truth(self) -> Result<Truth, String> {
        match self {
            Expression::Truth(truth) => Ok(truth),
            Expression::Number(_) => Err("a number is there where a truth value is expected".into()),
        }
    }

    fn number(self) -> Result<Number, String> {
        match self {
            Expression::Number(number) => Ok(number),
            Expression::Truth(_) => Err("a truth value is there where a number is expected".into()),
        }
    }
}

// Levels of precedence, the loosest first.
const IFF: u32 = 0;
const IMPLIES: u32 = 1;
const OR: u32 = 2;
const AND: u32 = 3;
const NOT: u32 = 4;
const COMPARED: u32 = 5;
const SUM: u32 = 6;
const PRODUCT: u32 = 7;
const SIGNED: u32 = 8;

/// The most levels that call each other, and the longest chain of operators of one level.
const DEEPEST: usize = 2400;

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<(Kind, usize, usize)>,
    at: usize,
    depth: usize,
    chained: usize,
    model: &'a dyn Model,
}

impl<'a> Reader<'a> {
    /// The current token, empty at the end.
    fn word(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |&(_, start, end)| &self.text[start..end])
    }

    /// Takes the current token if it is one of these words or signs.
    fn take(&mut self, words: &[&'static str]) -> Option<&'static str> {
        // A quoted name has its quotes here, so it is none of them.
        let found = words.iter().copied().find(|word| *word == self.word())?;
        self.at += 1;
        Some(found)
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), String> {
        self.take(&[sign]).map(drop).ok_or_else(|| format!("`{sign}` is missing before `{}`", self.word()))
    }

    fn climb(&mut self, level: u32) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the expression nests too deep".into());
        }
        let found = self.level(level);
        self.depth -= 1;
        found
    }

    fn level(&mut self, level: u32) -> Result<Expression, String> {
        use Expression::{Number as N, Truth as T};
        match level {
            IFF => {
                let mut left = self.climb(IMPLIES)?;
                while self.take(&["iff", "<->", "<=>"]).is_some() {
                    left = T(Truth::Iff(left.truth()?.into(), self.climb(IMPLIES)?.truth()?.into()));
                    self.deeper()?;
                }
                Ok(left)
            }
            IMPLIES => {
                let left = self.climb(OR)?;
                if self.take(&["implies", "->", "=>"]).is_none() {
                    return Ok(left);
                }
                Ok(T(Truth::Implies(left.truth()?.into(), self.climb(IMPLIES)?.truth()?.into())))
            }
            OR | AND => {
                let words: &[&str] = if level == OR { &["or", "||", "|"] } else { &["and", "&&", "&"] };
                let first = self.climb(level + 1)?;
                if !words.contains(&self.word()) {
                    return Ok(first);
                }
                let mut parts = vec![first.truth()?];
                while self.take(words).is_some() {
                    parts.push(self.climb(level + 1)?.truth()?);
                }
                Ok(T(if level == OR { Truth::Or(parts) } else { Truth::And(parts) }))
            }
            NOT => match self.take(&["not", "!"]) {
                Some(_) => Ok(T(Truth::Not(self.climb(NOT)?.truth()?.into()))),
                None => self.climb(COMPARED),
            },
            COMPARED => {
                let left = self.climb(SUM)?;
                let Some(sign) = self.take(&["=", "==", "!=", "<>", "<=", ">=", "<", ">"]) else { return Ok(left) };
                let sign = match sign {
                    "==" => "=",
                    "<>" => "!=",
                    sign => sign,
                };
                Ok(T(Truth::Compare(sign, left.number()?, self.climb(SUM)?.number()?)))
            }
            SUM | PRODUCT => {
                let signs: &[&str] = if level == SUM { &["+", "-"] } else { &["*", "/", "%"] };
                let mut left = self.climb(level + 1)?;
                while let Some(sign) = self.take(signs) {
                    let sign = sign.chars().next().unwrap_or('+');
                    let right = self.climb(level + 1)?.number()?;
                    left = N(Number::Binary(sign, left.number()?.into(), right.into()));
                    self.deeper()?;
                }
                Ok(left)
            }
            SIGNED => match self.take(&["-"]) {
                // Without its sign the least number is none.
                Some(_) if self.word() == "9223372036854775808" => {
                    self.at += 1;
                    Ok(N(Number::Constant(i64::MIN)))
                }
                Some(_) => Ok(N(Number::Negated(self.climb(SIGNED)?.number()?.into()))),
                None => self.atom(),
            },
            _ => Err("there is no such level".into()),
        }
    }

    /// A chain makes the tree deeper, though no call.
    fn deeper(&mut self) -> Result<(), String> {
        self.chained += 1;
        if self.chained > DEEPEST { Err("the expression is too long".into()) } else { Ok(()) }
    }

    fn atom(&mut self) -> Result<Expression, String> {
        use Expression::{Number as N, Truth as T};
        if self.take(&["("]).is_some() {
            let inner = self.climb(IFF)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if let Some(word) = self.take(&["true", "false", "deadlock"]) {
            return Ok(T(if word == "deadlock" { Truth::Deadlock } else { Truth::Constant(word == "true") }));
        }
        let Some(&(kind, ..)) = self.tokens.get(self.at) else { return Err("the expression ends early".into()) };
        if kind == Kind::Number {
            let word = self.word();
            self.at += 1;
            return word.parse().map(|value| N(Number::Constant(value))).map_err(|_| format!("`{word}` is no number"));
        }
        let call = matches!(self.tokens.get(self.at + 1), Some(&(Kind::Sign, start, _)) if self.text[start..].starts_with('('));
        if let Some(function) = ["fireable", "tokens"].into_iter().find(|word| call && self.take(&[word]).is_some()) {
            self.expect("(")?;
            let mut names = vec![self.name()?];
            while self.take(&[","]).is_some() {
                names.push(self.name()?);
            }
            self.expect(")")?;
            if function == "fireable" {
                let all: Result<Vec<u32>, String> = names.iter().map(|name| self.model.transition(name)).collect();
                return Ok(T(Truth::Fireable(all?)));
            }
            let all: Result<Vec<u32>, String> = names.iter().map(|name| self.model.variable(name)).collect();
            return Ok(N(Number::Sum(all?)));
        }
        let name = self.name()?;
        self.model.variable(&name).map(|variable| N(Number::Variable(variable)))
    }

    /// A name, bare or in quotes.
    fn name(&mut self) -> Result<String, String> {
        let Some(&(kind, start, mut end)) = self.tokens.get(self.at) else { return Err("a name is missing".into()) };
        self.at += 1;
        const WORDS: [&str; 7] = ["true", "false", "deadlock", "not", "and", "or", "implies"];
        match kind {
            Kind::Quoted => return unquoted(&self.text[start + 1..end - 1]),
            Kind::Word if !WORDS.contains(&&self.text[start..end]) && &self.text[start..end] != "iff" => {}
            _ => return Err(format!("`{}` is no name", &self.text[start..end])),
        }
        // Parts of a name touch each other.
        let touching = |at: usize, end: usize| {
            let token = self.tokens.get(at).filter(|token| token.1 == end);
            token.map(|&(kind, start, end)| (kind, &self.text[start..end], end))
        };
        loop {
            let at = self.at;
            let first = touching(at, end);
            let second = first.and_then(|(.., end)| touching(at + 1, end));
            let third = second.and_then(|(.., end)| touching(at + 2, end));
            let parts = match (first, second, third) {
                (Some((_, "." | "->", _)), Some((Kind::Word | Kind::Number, _, last)), _) => (2, last),
                (Some((_, "[", _)), Some((Kind::Number, ..)), Some((_, "]", last))) => (3, last),
                _ => return Ok(self.text[start..end].into()),
            };
            (self.at, end) = (at + parts.0, parts.1);
        }
    }
}

fn unquoted(text: &str) -> Result<String, String> {
    let mut name = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        name.push(match c {
            '\\' => match characters.next() {
                Some(c @ ('"' | '\'' | '\\')) => c,
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                _ => return Err("a name holds `\\` before something that is no escape".into()),
            },
            c => c,
        });
    }
    Ok(name)
}
