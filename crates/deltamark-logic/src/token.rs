//! Lexer.
//!
//! In: the text of an expression. Out: its tokens with their spans, or a diagnostic for every piece that is no
//! token. What stays true: tokens are in order, do not overlap, and are never empty.

use deltamark_core::{Diagnostic, Findings, Span};
use logos::Logos;

use crate::ast::{Arithmetic, Comparison, Level};

/// A token of the property language. Its text is found through its span.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"\s+")]
#[logos(skip(r"#[^\n]*", allow_greedy = true))]
pub(crate) enum Token {
    #[token("true", |_| true)]
    #[token("false", |_| false)]
    Truth(bool),
    #[token("deadlock")]
    Deadlock,
    #[token("not")]
    #[token("!")]
    Not,
    #[token("and")]
    #[token("&&")]
    #[token("&")]
    And,
    #[token("or")]
    #[token("||")]
    #[token("|")]
    Or,
    #[token("implies")]
    #[token("=>")]
    Implies,
    /// Separate from the other spellings because it may also join two words to a name.
    #[token("->")]
    Arrow,
    #[token("iff")]
    #[token("<->")]
    #[token("<=>")]
    Iff,
    #[token("=", |_| Comparison::Equal)]
    #[token("==", |_| Comparison::Equal)]
    #[token("!=", |_| Comparison::Differ)]
    #[token("<>", |_| Comparison::Differ)]
    #[token("<", |_| Comparison::Less)]
    #[token("<=", |_| Comparison::AtMost)]
    #[token(">", |_| Comparison::More)]
    #[token(">=", |_| Comparison::AtLeast)]
    Compare(Comparison),
    #[token("+", |_| Arithmetic::Add)]
    #[token("-", |_| Arithmetic::Subtract)]
    #[token("*", |_| Arithmetic::Multiply)]
    #[token("/", |_| Arithmetic::Divide)]
    #[token("%", |_| Arithmetic::Remainder)]
    Arithmetic(Arithmetic),
    #[token("(")]
    Open,
    #[token(")")]
    Close,
    #[token("[")]
    OpenIndex,
    #[token("]")]
    CloseIndex,
    #[token(",")]
    Comma,
    #[token(".")]
    Dot,
    /// Digits, with any letters attached by mistake.
    #[regex(r"[0-9][\p{XID_Continue}]*")]
    Number,
    #[regex(r"[\p{XID_Start}_][\p{XID_Continue}]*")]
    Word,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    #[regex(r"'([^'\\\n]|\\[^\n])*'")]
    Quoted,
    #[regex(r#""([^"\\\n]|\\[^\n])*"#)]
    #[regex(r"'([^'\\\n]|\\[^\n])*")]
    Unterminated,
}

impl Token {
    /// Its precedence as a binary operator, if it can be one.
    pub(crate) fn level(self) -> Option<Level> {
        match self {
            Token::Iff => Some(Level::Iff),
            Token::Implies | Token::Arrow => Some(Level::Implies),
            Token::Or => Some(Level::Or),
            Token::And => Some(Level::And),
            Token::Compare(_) => Some(Level::Compare),
            Token::Arithmetic(operator) => Some(operator.level()),
            _ => None,
        }
    }
}

/// The tokens of a text.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, Vec<Diagnostic>> {
    let mut tokens = Vec::new();
    let mut findings = Findings::default();
    for (token, range) in Token::lexer(text).spanned() {
        let span = Span::from(range.clone());
        match token {
            Ok(Token::Unterminated) => findings.add(|| unterminated(text, span)),
            Ok(token) => tokens.push((token, span)),
            Err(()) => findings.add(|| foreign(text, span)),
        }
        if findings.is_full() {
            break;
        }
    }
    findings.or_as_found(tokens)
}

/// Reports a piece that is no token. Symbols of mathematics and of other languages are translated.
fn foreign(text: &str, span: Span) -> Diagnostic {
    let rest = &text[span.start..];
    let symbols = [
        ("≤", "<="),
        ("⩽", "<="),
        ("≥", ">="),
        ("⩾", ">="),
        ("≠", "!="),
        ("∧", "and"),
        ("∨", "or"),
        ("¬", "not"),
        ("→", "->"),
        ("⇒", "=>"),
        ("↔", "<->"),
        ("⇔", "<=>"),
        ("×", "*"),
        ("·", "*"),
        ("−", "-"),
        (":=", "="),
        ("~", "not"),
    ];
    if let Some((symbol, spelling)) = symbols.into_iter().find(|(symbol, _)| rest.starts_with(symbol)) {
        let span = Span::new(span.start, span.start + symbol.len());
        return Diagnostic::at(span, format!("`{symbol}` is not part of the language"))
            .help(format!("write `{spelling}`"));
    }
    Diagnostic::at(span, format!("`{}` does not belong in an expression", text[span.range()].escape_debug()))
        .help("a name with unusual characters can be written in quotes: \"any name\"")
}

fn unterminated(text: &str, span: Span) -> Diagnostic {
    let quote = &text[span.start..=span.start];
    Diagnostic::at(span, "the quoted name has no end")
        .label(format!("no closing {quote} on this line"))
        .help("inside quotes, write a line break as \\n, a quote as \\\" and a backslash as \\\\")
}

/// The name that a quoted token denotes.
pub(crate) fn unquote(text: &str, span: Span) -> Result<String, Diagnostic> {
    let inner = &text[span.start + 1..span.end - 1];
    let mut name = String::with_capacity(inner.len());
    let mut characters = inner.char_indices();
    while let Some((offset, character)) = characters.next() {
        if character != '\\' {
            name.push(character);
            continue;
        }
        let escaped = characters.next().map_or('\\', |(_, escaped)| escaped);
        name.push(match escaped {
            '"' | '\'' | '\\' => escaped,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            other => {
                let start = span.start + 1 + offset;
                return Err(Diagnostic::at(
                    Span::new(start, start + 1 + other.len_utf8()),
                    format!("`\\{}` is no escape", other.escape_debug()),
                )
                .help("write a backslash as \\\\; the escapes are \\\" \\' \\\\ \\n \\r \\t"));
            }
        });
    }
    Ok(name)
}

/// A name in the syntax of the language: bare if that reads back as the same name, else quoted.
pub fn quote(name: &str) -> String {
    if is_bare(name) {
        return name.to_string();
    }
    let mut quoted = String::with_capacity(name.len() + 2);
    quoted.push('"');
    for character in name.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Words that are functions before a parenthesis.
pub(crate) const FUNCTIONS: [&str; 2] = ["fireable", "tokens"];

/// Whether a name needs no quotes.
fn is_bare(name: &str) -> bool {
    // Names that could be taken for something else in some context stay quoted.
    if FUNCTIONS.contains(&name) {
        return false;
    }
    let Ok(tokens) = tokens(name) else {
        return false;
    };
    name_length(name, &tokens) == Some(tokens.len())
        && tokens.first().is_some_and(|(_, span)| span.start == 0)
        && tokens.last().is_some_and(|(_, span)| span.end == name.len())
}

/// The number of these tokens, from the first, that make up one bare name.
pub(crate) fn name_length(text: &str, tokens: &[(Token, Span)]) -> Option<usize> {
    let mut length = match tokens.first() {
        Some((Token::Word, _)) => 1,
        _ => return None,
    };
    loop {
        let rest = &tokens[length - 1..];
        let touching = |count: usize| rest.windows(2).take(count).all(|pair| pair[0].1.end == pair[1].1.start);
        let kind = |index: usize| rest.get(index).map(|(token, _)| *token);
        length += match (kind(1), kind(2), kind(3)) {
            // After a dot, any word and any number is part of a name, even `P.not`.
            (Some(Token::Dot), Some(_), _) if touching(2) && is_wordlike(&text[rest[2].1.range()]) => 2,
            (Some(Token::Arrow), Some(Token::Word | Token::Number), _) if touching(2) => 2,
            (Some(Token::OpenIndex), Some(Token::Number), Some(Token::CloseIndex)) if touching(3) => 3,
            _ => return Some(length),
        };
    }
}

fn is_wordlike(text: &str) -> bool {
    text.starts_with(|character: char| character == '_' || character.is_alphanumeric())
}
