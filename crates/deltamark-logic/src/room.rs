//! The memory that reading takes.
//!
//! In: the text of an expression or a formula. Out: a bound on the bytes that its tokens, its tree and its program take
//! while it is read, and until it is dropped. What stays true: the bound grows with the number of tokens, so that a short
//! text never fails for it.

use crate::token::Token;
use logos::Logos;

/// Bytes for a token: itself, its nodes in the tree, its operations. Measured: up to 155 for expressions and 235 for
/// formulas, whose atoms and patterns hold copies of the tree.
const TOKEN: u64 = 256;
/// Copies of a name, which may be as long as the text.
const COPIES: u64 = 8;

/// A bound on the bytes that reading this text takes.
pub fn room(text: &str) -> u64 {
    Token::lexer(text).count() as u64 * TOKEN + COPIES * text.len() as u64
}
