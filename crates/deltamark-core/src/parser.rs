//! What the hand-written parsers of all languages share: a position in a list of tokens, and the
//! loop that reads operators by precedence.
//!
//! In: the tokens of a text. Out: the next one, its text and its place. Invariant: no access leaves
//! the list.

use crate::Span;

/// A position in the tokens of a text.
#[derive(Clone, Debug)]
pub struct Cursor<'t, T> {
    /// The text.
    pub text: &'t str,
    /// Its tokens, in order.
    pub tokens: Vec<(T, Span)>,
    /// The position of the next token.
    pub at: usize,
    /// Where something is missing that the text ends without.
    end: usize,
}

impl<'t, T: Copy> Cursor<'t, T> {
    /// The first of these tokens. What is missing at the end is missing behind the last of them.
    pub fn new(text: &'t str, tokens: Vec<(T, Span)>) -> Self {
        let end = tokens.last().map_or(0, |(_, span)| span.end);
        Cursor { text, tokens, at: 0, end }
    }

    /// The same, where what is missing at the end is missing at `end`.
    pub fn ending_at(self, end: usize) -> Self {
        Cursor { end, ..self }
    }

    /// The next token.
    pub fn peek(&self) -> Option<T> {
        self.ahead(0)
    }

    /// The token `count` behind the next one.
    pub fn ahead(&self, count: usize) -> Option<T> {
        self.tokens.get(self.at + count).map(|&(token, _)| token)
    }

    /// The text of the token `count` behind the next one; empty behind the last.
    pub fn slice(&self, count: usize) -> &'t str {
        self.tokens.get(self.at + count).map_or("", |(_, span)| &self.text[span.range()])
    }

    /// The place of the next token, or of what is missing at the end.
    pub fn here(&self) -> Span {
        self.tokens.get(self.at).map_or(Span::at(self.end), |&(_, span)| span)
    }

    /// Where the token before the next one ends.
    pub fn last_end(&self) -> usize {
        let before = self.at.min(self.tokens.len()).checked_sub(1);
        before.map_or(0, |before| self.tokens[before].1.end)
    }

    /// Passes the next token if it is this one.
    pub fn take(&mut self, token: T) -> bool
    where
        T: PartialEq,
    {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }
}

/// Operators between operands, read by climbing their levels of precedence (V. Pratt, *Top down
/// operator precedence*, 1973).
pub trait Pratt {
    /// How tightly an operator binds; more is tighter.
    type Level: Copy + PartialOrd;
    /// An operator between operands.
    type Operator;
    /// An expression.
    type Expr;
    /// Why reading cannot go on.
    type Error;

    /// Counts one more level of nesting, or reports that it is too deep.
    fn nest(&mut self) -> Result<(), Self::Error>;

    /// Counts a level off again.
    fn unnest(&mut self);

    /// Reads an operand of operators of at least this level.
    fn operand(&mut self, least: Self::Level) -> Result<Self::Expr, Self::Error>;

    /// The operator that is next, if one is, and its level.
    fn operator(&self) -> Option<(Self::Level, Self::Operator)>;

    /// Reads on from the left operand of an operator that is next.
    fn extend(
        &mut self,
        left: Self::Expr,
        level: Self::Level,
        operator: Self::Operator,
    ) -> Result<Self::Expr, Self::Error>;

    /// Reads operands joined by operators of at least this level.
    fn climb(&mut self, least: Self::Level) -> Result<Self::Expr, Self::Error> {
        self.nest()?;
        let mut read = self.operand(least);
        while read.is_ok()
            && let Some((level, operator)) = self.operator().filter(|&(level, _)| level >= least)
        {
            read = read.and_then(|left| self.extend(left, level, operator));
        }
        self.unnest();
        read
    }
}
