//! The parser of CPN ML.
//!
//! In: the text of an inscription or of declarations. Out: the syntax tree, or the first error and its position. What stays
//! true: nesting is bounded, so no text overflows the stack.

mod declarations;
mod expressions;
mod patterns;

use crate::lexer::{Word, Wrong, words, wrong};
use crate::syntax::{Dec, Exp};

/// The maximum nesting of expressions, patterns and types.
const DEEPEST: u32 = 120;

/// The maximum number of operators that group to one side, one after the other: each is a level of the tree.
const MOST_CHAINED: u32 = 200;

/// Operators of which `(a . b) . c` is `a . (b . c)`, with the same evaluations in the same order. Long sums of them become
/// trees of little height.
const ASSOCIATIVE: &[&str] = &["++", "^^", "^"];

/// Joins operands of an associative operator in order, to a tree of little height.
pub(crate) fn balanced<T>(mut parts: Vec<T>, join: &dyn Fn(T, T) -> T) -> Option<T> {
    while parts.len() > 1 {
        let mut rest = parts.into_iter();
        let mut joined = Vec::new();
        while let Some(one) = rest.next() {
            joined.push(match rest.next() {
                Some(other) => join(one, other),
                None => one,
            });
        }
        parts = joined;
    }
    parts.pop()
}

/// Counts one more level of a chain of `what`.
fn chained(levels: &mut u32, at: usize, what: &str) -> Parsed<()> {
    *levels += 1;
    if *levels > MOST_CHAINED {
        return wrong(at, format!("this has more than {MOST_CHAINED} {what} in a row"));
    }
    Ok(())
}

/// Strength and whether it groups to the right.
pub(crate) fn infix(name: &str) -> Option<(u8, bool)> {
    Some(match name {
        "@" => (9, false),
        "`" => (8, false),
        "*" | "/" | "div" | "mod" | "**" | "//" | "%" | "@+" | "@++" => (7, false),
        "+" | "-" | "^" | "++" | "--" | "+++" => (6, false),
        "::" => (5, true),
        "^^" => (5, false),
        "=" | "<>" | "<" | ">" | "<=" | ">=" => (4, false),
        "==" | "<><>" | "!=" | "<<" | ">>" | "<<=" | ">>=" | ":=" | "o" => (3, false),
        _ => return None,
    })
}

const RESERVED: &[&str] = &[
    "val",
    "fun",
    "fn",
    "let",
    "in",
    "end",
    "local",
    "case",
    "of",
    "if",
    "then",
    "else",
    "andalso",
    "orelse",
    "op",
    "raise",
    "handle",
    "exception",
    "datatype",
    "type",
    "and",
    "as",
    "rec",
    "with",
    "structure",
    "open",
    "infix",
    "infixr",
    "nonfix",
    "colset",
    "color",
    "var",
    "globref",
    "abstype",
    "eqtype",
    "functor",
    "sig",
    "signature",
    "struct",
    "withtype",
    "declare",
    "timed",
    "do",
    "while",
    "include",
    "sharing",
    "where",
];

/// The parser of one text.
pub(crate) struct Parser {
    words: Vec<(Word, usize)>,
    here: usize,
    depth: u32,
    /// Whether what is read is inside of a `let`, and how many declarations of such are around it.
    inside: bool,
    lets: u32,
}

type Parsed<T> = Result<T, Wrong>;

impl Parser {
    pub fn new(text: &str) -> Parsed<Self> {
        Ok(Parser { words: words(text)?, here: 0, depth: 0, inside: false, lets: 0 })
    }

    /// The expression of an inscription; `None` if the text is blank.
    pub fn inscription(text: &str) -> Parsed<Option<Exp>> {
        let mut parser = Parser::new(text)?;
        while parser.take(";") {}
        if parser.at_end() {
            return Ok(None);
        }
        let exp = parser.exp()?;
        while parser.take(";") {}
        parser.end()?;
        Ok(Some(exp))
    }

    /// All declarations of a text.
    pub fn declarations(text: &str) -> Parsed<Vec<Dec>> {
        let mut parser = Parser::new(text)?;
        let decs = parser.decs()?;
        parser.end()?;
        Ok(decs)
    }

    fn word(&self) -> &Word {
        &self.words[self.here].0
    }

    pub fn at(&self) -> usize {
        self.words[self.here].1
    }

    pub fn at_end(&self) -> bool {
        *self.word() == Word::End
    }

    pub fn end(&self) -> Parsed<()> {
        if self.at_end() {
            return Ok(());
        }
        let several = matches!(self.word(), Word::Sign(sign) if sign.len() > 1 && infix(sign).is_none());
        let help = "neighbouring signs are read as one name; put blanks or parentheses between them";
        let wrong = Wrong::new(self.at(), format!("{} is not expected here", self.shown()));
        Err(wrong.advise(several.then(|| help.into())))
    }

    fn shown(&self) -> String {
        match self.word() {
            Word::Sign(sign) if sign.contains('`') => format!("\"{sign}\""),
            Word::Name(name) | Word::TypeVar(name) | Word::Sign(name) => format!("`{name}`"),
            Word::Int(number) => format!("`{number}`"),
            Word::Real(text) => format!("`{text}`"),
            Word::Str(_) => "a string".into(),
            Word::Char(_) => "a character".into(),
            Word::End => "the end of the text".into(),
        }
    }

    fn next(&mut self) -> Word {
        let word = self.word().clone();
        if self.here + 1 < self.words.len() {
            self.here += 1;
        }
        word
    }

    fn is(&self, text: &str) -> bool {
        matches!(self.word(), Word::Name(word) | Word::Sign(word) if word == text)
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.next();
        }
        found
    }

    fn need(&mut self, text: &str) -> Parsed<()> {
        if self.take(text) { Ok(()) } else { wrong(self.at(), format!("expected `{text}`, found {}", self.shown())) }
    }

    fn name(&mut self) -> Parsed<String> {
        match self.word().clone() {
            Word::Name(name) if !RESERVED.contains(&name.as_str()) => {
                self.next();
                Ok(name)
            }
            _ => wrong(self.at(), format!("expected a name, found {}", self.shown())),
        }
    }

    /// Counts one more declaration, if it is inside of a `let`.
    fn one_more(&mut self, at: usize) -> Parsed<()> {
        if self.inside { chained(&mut self.lets, at, "declarations") } else { Ok(()) }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST {
            return wrong(self.at(), "this is nested too deeply");
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }
}
