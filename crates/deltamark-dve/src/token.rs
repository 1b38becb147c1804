//! Lexer.
//!
//! In: the text of a model. Out: its tokens with their spans, and a diagnostic for every piece that is no token.
//! What stays true: tokens are in order, do not overlap, and are never empty.

use deltamark_core::{Diagnostic, Findings, Span};
use logos::{Filter, Lexer, Logos};

/// A token of DVE. Its text is found through its span.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\u{c}]+")]
#[logos(skip r"\\[ \t\r]*\n")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
pub(crate) enum Token {
    #[token("guard")]
    Guard,
    #[token("sync")]
    Sync,
    #[token("async")]
    Async,
    #[token("effect")]
    Effect,
    #[token("process")]
    Process,
    #[token("state")]
    State,
    #[token("init")]
    Init,
    #[token("accept")]
    Accept,
    #[token("commit")]
    Commit,
    #[token("trans")]
    Trans,
    #[token("system")]
    System,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("and")]
    #[token("&&")]
    And,
    #[token("or")]
    #[token("||")]
    Or,
    #[token("not")]
    Not,
    #[token("imply")]
    Imply,
    #[token("int")]
    Int,
    #[token("byte")]
    Byte,
    #[token("const")]
    Const,
    #[token("channel")]
    Channel,
    #[token("property")]
    Property,
    #[token("buchi")]
    Buchi,
    #[token("genbuchi")]
    Genbuchi,
    #[token("streett")]
    Streett,
    #[token("rabin")]
    Rabin,
    #[token("muller")]
    Muller,
    #[token("assert")]
    Assert,
    #[token("{")]
    Open,
    #[token("}")]
    Close,
    #[token("(")]
    OpenRound,
    #[token(")")]
    CloseRound,
    #[token("[")]
    OpenIndex,
    #[token("]")]
    CloseIndex,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("->")]
    Arrow,
    #[token("=")]
    Assign,
    #[token("!")]
    Send,
    #[token("?")]
    Receive,
    #[token("==")]
    Equal,
    #[token("!=")]
    Differ,
    #[token("<")]
    Less,
    #[token("<=")]
    AtMost,
    #[token(">")]
    More,
    #[token(">=")]
    AtLeast,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Times,
    #[token("/")]
    Divide,
    #[token("%")]
    Remainder,
    #[token("&")]
    BitAnd,
    #[token("|")]
    BitOr,
    #[token("^")]
    BitXor,
    #[token("~")]
    Complement,
    /// Digits, with any letters attached by mistake.
    #[regex(r"[0-9][A-Za-z0-9_$#]*")]
    Number,
    #[regex(r"[A-Za-z_][A-Za-z0-9_$#]*")]
    Word,
    /// An unterminated comment; a terminated one is skipped.
    #[token("/*", comment)]
    Unterminated,
}

/// Skips a comment to its end. `//` inside it hides the rest of its line, even `*/`: so does the language's
/// reference implementation.
fn comment(lexer: &mut Lexer<'_, Token>) -> Filter<()> {
    let rest = lexer.remainder().as_bytes();
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'*', b'/', ..] => {
                lexer.bump(at + 2);
                return Filter::Skip;
            }
            [b'/', b'/', ..] => at += rest[at..].iter().position(|&byte| byte == b'\n').unwrap_or(rest.len() - at),
            _ => at += 1,
        }
    }
    lexer.bump(rest.len());
    Filter::Emit(())
}

/// The tokens of a text; what is no token goes to the findings.
pub(crate) fn tokens(text: &str, findings: &mut Findings) -> Vec<(Token, Span)> {
    let mut tokens = Vec::with_capacity(text.len() / 4);
    for (token, range) in Token::lexer(text).spanned() {
        let span = Span::from(range);
        match token {
            Ok(Token::Unterminated) => findings.add(|| unterminated(text, span)),
            Ok(token) => tokens.push((token, span)),
            Err(()) => findings.add(|| foreign(text, span)),
        }
        if findings.is_full() {
            break;
        }
    }
    tokens
}

fn unterminated(text: &str, span: Span) -> Diagnostic {
    let help = if text[span.range()].contains("*/") {
        "inside a comment, `//` hides the rest of its line, also the `*/` on it"
    } else {
        "write `*/` where it ends"
    };
    Diagnostic::at(Span::new(span.start, span.start + 2), "this comment has no end").help(help)
}

fn foreign(text: &str, span: Span) -> Diagnostic {
    let piece = &text[span.range()];
    let diagnostic = Diagnostic::at(span, format!("`{}` does not belong in a model", piece.escape_debug()));
    match piece {
        "`" | "'" => diagnostic.help("if the model uses macros, its name should end in `.mdve`"),
        "\"" => diagnostic.help("DVE has no strings"),
        _ => diagnostic,
    }
}
