//! TINA's text cut into words and signs.
//!
//! In: text. Out: tokens with their place in it. What stays true: tokens follow each
//! other in the order of the text, none of them is empty, and comments are not among them.

use std::borrow::Cow;

use deltamark_core::{Diagnostic, Span};

use deltamark_core::Findings;

/// The words that start a declaration.
pub(super) const KEYWORDS: [&str; 6] = ["net", "tr", "pl", "lb", "nt", "pr"];

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'a> {
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
    /// What it is.
    pub kind: Kind<'a>,
    /// Where it is.
    pub span: Span,
    /// Where it starts if it is the first on its line: at the margin or further in.
    pub opens: Option<Indent>,
}

/// Where a line starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Indent {
    Margin,
    Inside,
}

/// Cuts a text. Characters that cannot be in any token are reported and left out; when
/// the list of reports is full the rest is, which also bounds the search for missing braces.
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
                    Kind::Quoted(unescape(&text[start + 1..at - 1]))
                }
                None => {
                    findings.add(|| Diagnostic::at(start..start + 1, "this brace is never closed").help(QUOTING));
                    // Taken for a name up to the end of the line, so that what follows is still checked.
                    at += text[at..].find(['\n', '\r']).unwrap_or(text.len() - at);
                    Kind::Quoted(Cow::Borrowed(&text[start + 1..at]))
                }
            },
            c if is_name(c) => {
                at = start + text[start..].find(|c| !is_name(c)).unwrap_or(text.len() - start);
                let word = &text[start..at];
                if KEYWORDS.contains(&word) { Kind::Keyword(word) } else { Kind::Plain(word) }
            }
            '-' | '?' | '!' | '*' | ':' | '(' | ')' | '[' | ']' | ',' | '<' | '>' => {
                let next = text[at..].chars().next();
                if matches!((c, next), ('-', Some('>')) | ('?' | '!', Some('-'))) {
                    at += 1;
                }
                Kind::Sign(&text[start..at])
            }
            c => {
                // What can be seen is shown as it stands in the text.
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

/// How to write unusual names.
pub(super) const QUOTING: &str =
    r"names with other characters than letters, digits, `_` and `'` stand in braces, with `\{`, `\}` and `\\` inside";

/// Whether a name may hold this character without braces.
pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

/// The length of a name in braces, with them, if it ends.
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

/// What is between braces, without the backslashes that protect a character. A backslash
/// before any other character stands for itself.
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
