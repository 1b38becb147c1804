//! TINA's lexer.
//!
//! In: text. Out: tokens with their spans. What stays true: tokens are in the order of the text, none of them is
//! empty, and comments are not among them.

use std::borrow::Cow;

use deltamark_core::{Diagnostic, Span};

use deltamark_core::Findings;

/// The words that start a declaration.
pub(super) const KEYWORDS: [&str; 6] = ["net", "tr", "pl", "lb", "nt", "pr"];

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// A word that starts a declaration.
    Keyword(&'a str),
    /// A word without braces: a name or a number.
    Plain(&'a str),
    /// A name in braces, with its escapes undone.
    Quoted(Cow<'a, str>),
    /// `->`, `?-`, `!-` or a single character.
    Sign(&'a str),
}

/// A token.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    /// Its kind.
    pub kind: TokenKind<'a>,
    /// Its span.
    pub span: Span,
    /// If it is the first on its line, whether it is at the margin or indented.
    pub opens: Option<Indent>,
}

/// The indentation of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Indent {
    Margin,
    Inside,
}

/// Splits a text. Characters that cannot be in any token are reported and dropped; when the list of reports is
/// full the rest is, which also bounds the search for missing braces.
pub(super) fn tokens<'a>(text: &'a str, findings: &mut Findings) -> Vec<Token<'a>> {
    let mut tokens = vec![];
    // A byte order mark is not part of the first word.
    let (mut at, mut opens) = (text.len() - text.trim_start_matches('\u{FEFF}').len(), Some(Indent::Margin));
    while let Some(c) = text[at..].chars().next().filter(|_| !findings.is_full()) {
        let start = at;
        at += c.len_utf8();
        let kind = match c {
            '\n' | '\r' => {
                opens = Some(Indent::Margin);
                continue;
            }
            c if c.is_whitespace() => {
                opens = opens.map(|_| Indent::Inside);
                continue;
            }
            '#' => {
                at += text[at..].find(['\n', '\r']).unwrap_or(text.len() - at);
                continue;
            }
            '{' => match quoted(text, start) {
                Some(length) => {
                    at = start + length;
                    TokenKind::Quoted(unescape(&text[start + 1..at - 1]))
                }
                None => {
                    findings.add(|| Diagnostic::at(start..start + 1, "this brace is never closed").help(QUOTING));
                    // Taken for a name up to the end of the line, so that what follows is still checked.
                    at += text[at..].find(['\n', '\r']).unwrap_or(text.len() - at);
                    TokenKind::Quoted(Cow::Borrowed(&text[start + 1..at]))
                }
            },
            c if is_name(c) => {
                at = start + text[start..].find(|c| !is_name(c)).unwrap_or(text.len() - start);
                let word = &text[start..at];
                if KEYWORDS.contains(&word) { TokenKind::Keyword(word) } else { TokenKind::Plain(word) }
            }
            '-' | '?' | '!' | '*' | ':' | '(' | ')' | '[' | ']' | ',' | '<' | '>' => {
                let next = text[at..].chars().next();
                if matches!((c, next), ('-', Some('>')) | ('?' | '!', Some('-'))) {
                    at += 1;
                }
                TokenKind::Sign(&text[start..at])
            }
            c => {
                // Printable characters are shown as they are in the text.
                let shown = if matches!(c, '"' | '\\') { c.to_string() } else { c.escape_debug().to_string() };
                findings.add(|| {
                    Diagnostic::at(start..at, format!("the character `{shown}` has no meaning here")).help(QUOTING)
                });
                continue;
            }
        };
        tokens.push(Token { kind, span: Span::new(start, at), opens: opens.take() });
    }
    tokens
}

/// Advice on writing unusual names.
pub(super) const QUOTING: &str =
    r"names with other characters than letters, digits, `_` and `'` stand in braces, with `\{`, `\}` and `\\` inside";

/// Whether an unbraced name may contain this character.
pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

/// The length of a braced name, including the braces, if it ends.
fn quoted(text: &str, start: usize) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text[start..].char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '}' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The text between braces, without the backslashes that escape a character. A backslash before any other
/// character is literal.
fn unescape(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut plain = String::with_capacity(inner.len());
    let mut characters = inner.chars().peekable();
    while let Some(c) = characters.next() {
        match characters.peek() {
            Some(&next @ ('{' | '}' | '\\')) if c == '\\' => {
                characters.next();
                plain.push(next);
            }
            _ => plain.push(c),
        }
    }
    Cow::Owned(plain)
}
