//! Lexer.
//!
//! In: the text of a net or of a property file. Out: its tokens with their spans; a finding for every piece
//! that is no token. What stays true: tokens are in order, do not overlap, and are never empty.
//!
//! `<(` and `)>` are two tokens each: the parser decides which one opens or closes a tuple. So `a <(b)` is a
//! comparison, which Helena takes for the start of a tuple.

use deltamark_core::Findings;
use deltamark_core::{Diagnostic, Span};
use logos::Logos;

/// Words that cannot be names.
pub(crate) const RESERVED: [&str; 51] = [
    "and",
    "assert",
    "capacity",
    "card",
    "case",
    "constant",
    "default",
    "description",
    "dom",
    "else",
    "empty",
    "enum",
    "epsilon",
    "exists",
    "for",
    "forall",
    "function",
    "guard",
    "if",
    "import",
    "in",
    "inhibit",
    "init",
    "let",
    "list",
    "max",
    "min",
    "mod",
    "mult",
    "not",
    "of",
    "or",
    "out",
    "pick",
    "place",
    "pred",
    "print",
    "priority",
    "product",
    "proposition",
    "range",
    "return",
    "safe",
    "set",
    "struct",
    "subtype",
    "succ",
    "sum",
    "transition",
    "type",
    "vector",
];

/// Reserved words after `vector` in alphabetical order.
pub(crate) const RESERVED_TOO: [&str; 2] = ["while", "with"];

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0B\x0C\u{FEFF}]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*[^*]*\*+([^/*][^*]*\*+)*/")]
enum Raw {
    #[regex(r"[A-Za-z][A-Za-z0-9_]*")]
    Word,
    /// Looks like a name and is none.
    #[regex(r"[_\p{XID_Start}][\p{XID_Continue}]*", priority = 1)]
    Foreign,
    /// Digits, with any letters attached by mistake.
    #[regex(r"[0-9][A-Za-z0-9_]*")]
    Number,
    #[regex(r#""[^"]*""#)]
    Text,
    #[regex(r#""[^"]*"#)]
    OpenText,
    #[regex(r"/\*", |lexer| lexer.bump(lexer.remainder().len()))]
    OpenComment,
    #[token("->")]
    #[token("..")]
    #[token("::")]
    #[token(":=")]
    #[token("!=")]
    #[token("<=")]
    #[token(">=")]
    #[regex(r"[;(){}\[\].:,+\-*/%=<>?'|&]")]
    Sign,
}

/// The kind of a token. Its text is found through its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name that a modeller may choose.
    Name,
    /// A reserved word.
    Keyword,
    /// Digits.
    Number,
    /// A text in quotes.
    Text,
    /// A sign or a pair of signs.
    Sign,
}

/// Whether a word is reserved.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok() || RESERVED_TOO.contains(&word)
}

/// The tokens of a text.
pub(crate) fn tokens(text: &str, findings: &mut Findings) -> Vec<(TokenKind, Span)> {
    let mut tokens = Vec::new();
    for (raw, range) in Raw::lexer(text).spanned() {
        let span = Span::from(range.clone());
        let slice = &text[range];
        let kind = match raw {
            Ok(Raw::Word) if is_reserved(slice) => TokenKind::Keyword,
            Ok(Raw::Word) => TokenKind::Name,
            Ok(Raw::Number) if slice.bytes().all(|byte| byte.is_ascii_digit()) => TokenKind::Number,
            Ok(Raw::Text) => TokenKind::Text,
            Ok(Raw::Sign) => TokenKind::Sign,
            Ok(Raw::Number) => {
                findings.add(|| {
                    Diagnostic::at(span, format!("`{}` is neither a number nor a name", shortened(slice)))
                        .help("a name begins with a letter")
                });
                TokenKind::Name
            }
            Ok(Raw::Foreign) => {
                findings.add(|| {
                    Diagnostic::at(span, format!("`{}` is not a name", shortened(slice)))
                        .help("a name begins with one of the letters a to z or A to Z; letters, digits and `_` follow")
                });
                TokenKind::Name
            }
            Ok(Raw::OpenText) => {
                let line = slice.lines().next().unwrap_or_default();
                let span = Span::new(span.start, span.start + line.len());
                findings.add(|| Diagnostic::at(span, "the text in quotes has no end").label("no closing \""));
                break;
            }
            Ok(Raw::OpenComment) => {
                findings.add(|| {
                    Diagnostic::at(Span::new(span.start, span.start + 2), "the comment has no end")
                        .label("no closing */")
                });
                break;
            }
            Err(()) => {
                findings.add(|| foreign(text, span));
                continue;
            }
        };
        tokens.push((kind, span));
        if findings.is_full() {
            break;
        }
    }
    tokens
}

/// Reports a piece that is no token. Symbols of other languages are translated.
fn foreign(text: &str, span: Span) -> Diagnostic {
    let spellings = [
        ("≤", "<="),
        ("≥", ">="),
        ("≠", "!="),
        ("∧", "and"),
        ("∨", "or"),
        ("¬", "not"),
        ("!", "not"),
        ("×", "*"),
        ("−", "-"),
        ("→", "->"),
    ];
    let rest = &text[span.start..];
    let diagnostic = Diagnostic::at(
        span,
        format!("`{}` does not belong to the language", shortened(&text[span.range()]).escape_debug()),
    );
    if rest.starts_with('#') {
        return diagnostic.help("a directive such as `#ifdef` takes a line of its own");
    }
    match spellings.into_iter().find(|(symbol, _)| rest.starts_with(symbol)) {
        Some((_, spelling)) => diagnostic.help(format!("write `{spelling}`")),
        None => diagnostic,
    }
}

/// A text shortened to fit in a message.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
        let mut findings = Findings::default();
        let found = tokens(text, &mut findings).iter().map(|&(kind, span)| (kind, &text[span.range()])).collect();
        assert!(findings.is_empty(), "{text}");
        found
    }

    #[test]
    fn reserved_words_are_in_order() {
        assert!(RESERVED.is_sorted() && is_reserved("and") && is_reserved("vector") && is_reserved("with"));
        assert!(!is_reserved("true") && !is_reserved("state"));
    }

    #[test]
    fn the_longest_sign_is_taken() {
        use TokenKind::{Keyword, Name, Number, Sign, Text};
        let cases: &[(&str, &[(TokenKind, &str)])] = &[
            ("x'size", &[(Name, "x"), (Sign, "'"), (Name, "size")]),
            ("1..3", &[(Number, "1"), (Sign, ".."), (Number, "3")]),
            ("a->1", &[(Name, "a"), (Sign, "->"), (Number, "1")]),
            (
                "a:=b::c:d",
                &[(Name, "a"), (Sign, ":="), (Name, "b"), (Sign, "::"), (Name, "c"), (Sign, ":"), (Name, "d")],
            ),
            ("<(x)>", &[(Sign, "<"), (Sign, "("), (Name, "x"), (Sign, ")"), (Sign, ">")]),
            ("mod % /* a * / **/ // b\n\"c\nd\"", &[(Keyword, "mod"), (Sign, "%"), (Text, "\"c\nd\"")]),
            ("a/b", &[(Name, "a"), (Sign, "/"), (Name, "b")]),
        ];
        for &(text, expected) in cases {
            assert_eq!(kinds(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_token_is_told() {
        let cases = [
            ("a $ b", "`$` does not belong to the language"),
            ("12ab", "`12ab` is neither a number nor a name"),
            ("_x", "`_x` is not a name"),
            ("é", "`é` is not a name"),
            ("\"abc", "the text in quotes has no end"),
            ("a /* b", "the comment has no end"),
            ("a # b", "`#` does not belong to the language"),
        ];
        for (text, message) in cases {
            let mut findings = Findings::default();
            tokens(text, &mut findings);
            assert_eq!(findings.or(()).expect_err(text)[0].message, message, "{text}");
        }
    }
}
