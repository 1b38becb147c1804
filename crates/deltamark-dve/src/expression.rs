//! Parser: expressions.
//!
//! In: tokens from the start of an expression. Out: the expression; the position is after it. What stays true:
//! recursion is no deeper than [`MAX_NESTING`], and no expression deeper than [`MAX_DEPTH`].
//!
//! Levels of precedence are climbed by [`Pratt`].

use crate::ast::{Expr, Node, Operator};
use crate::ir::{Binary, Unary};
use crate::parse::{MAX_DEPTH, MAX_NESTING, Parsed, Parser, Stop};
use crate::token::Token;
use deltamark_core::parser::Pratt;
use deltamark_core::{Diagnostic, Span};

impl<'t> Pratt for Parser<'t> {
    type Level = u8;
    type Operator = Operator;
    type Expr = Expr<'t>;
    type Error = Stop;

    fn nest(&mut self) -> Parsed<()> {
        if self.nesting >= MAX_NESTING {
            let place = self.cursor.here();
            return self.stop(Diagnostic::at(
                place,
                format!("parentheses, indices and signs nest deeper than {MAX_NESTING} levels"),
            ));
        }
        self.nesting += 1;
        Ok(())
    }

    fn unnest(&mut self) {
        self.nesting -= 1;
    }

    fn operand(&mut self, _: u8) -> Parsed<Expr<'t>> {
        self.atom()
    }

    fn operator(&self) -> Option<(u8, Operator)> {
        self.cursor.peek().and_then(level)
    }

    fn extend(&mut self, left: Expr<'t>, level: u8, operator: Operator) -> Parsed<Expr<'t>> {
        self.cursor.at += 1;
        let right = self.climb(level + 1)?;
        let depth = left.depth.max(right.depth) + 1;
        let span = Span::new(left.span.start, right.span.end);
        if depth > MAX_DEPTH {
            return self.stop(
                Diagnostic::at(span, format!("the expression has more than {MAX_DEPTH} levels"))
                    .help("put parentheses around parts of it, so that a long chain becomes a tree"),
            );
        }
        Ok(Expr { node: Node::Binary(operator, left.into(), right.into()), span, depth })
    }
}

impl<'t> Parser<'t> {
    /// Reads an expression.
    pub fn expression(&mut self) -> Parsed<Expr<'t>> {
        self.climb(0)
    }

    fn unary(&mut self, operator: Unary, start: usize) -> Parsed<Expr<'t>> {
        self.cursor.at += 1;
        // Tighter than all operators between two operands.
        let operand = self.climb(u8::MAX)?;
        let (span, depth) = (Span::new(start, operand.span.end), operand.depth + 1);
        Ok(Expr { node: Node::Unary(operator, operand.into()), span, depth })
    }

    fn atom(&mut self) -> Parsed<Expr<'t>> {
        let span = self.cursor.here();
        let number = |value| Ok(Expr { node: Node::Number(value), span, depth: 1 });
        match self.cursor.peek() {
            Some(Token::Number) => {
                self.cursor.at += 1;
                let text = &self.cursor.text[span.range()];
                match text.parse::<i32>() {
                    Ok(value) => number(value),
                    Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => self.stop(
                        Diagnostic::at(span, format!("the number {text} is too large"))
                            .help(format!("numbers go up to {}", i32::MAX)),
                    ),
                    Err(_) => self.stop(
                        Diagnostic::at(span, format!("`{text}` is neither a number nor a name"))
                            .help("a name begins with a letter or `_`"),
                    ),
                }
            }
            Some(Token::True) => {
                self.cursor.at += 1;
                number(1)
            }
            Some(Token::False) => {
                self.cursor.at += 1;
                number(0)
            }
            Some(Token::Minus) => self.unary(Unary::Negate, span.start),
            Some(Token::Complement) => self.unary(Unary::Complement, span.start),
            Some(Token::Not) => self.unary(Unary::Not, span.start),
            Some(Token::OpenRound) => {
                self.cursor.at += 1;
                let inner = self.expression()?;
                self.expect(Token::CloseRound, "an operator or `)`")?;
                Ok(Expr { span: Span::new(span.start, self.cursor.last_end()), ..inner })
            }
            Some(Token::Word) => self.reference(),
            Some(Token::Send) => {
                self.stop(Diagnostic::at(span, "`!` only marks a send").help("negation is written `not`"))
            }
            _ => self.unexpected("an expression"),
        }
    }

    fn reference(&mut self) -> Parsed<Expr<'t>> {
        let name = self.name("a name")?;
        let start = name.span.start;
        let (node, depth) = match self.cursor.peek() {
            Some(Token::Dot) => {
                self.cursor.at += 1;
                (Node::At((name, self.name("the name of a state behind `.`")?).into()), 1)
            }
            Some(Token::Arrow) => {
                self.cursor.at += 1;
                let variable = self.name("the name of a variable behind `->`")?;
                let index = self.size()?;
                let depth = index.as_ref().map_or(1, |index| index.depth + 1);
                (Node::Of((name, variable, index).into()), depth)
            }
            _ => match self.size()? {
                Some(index) => {
                    let depth = index.depth + 1;
                    (Node::Index(name, index.into()), depth)
                }
                None => (Node::Name(name), 1),
            },
        };
        Ok(Expr { node, span: Span::new(start, self.cursor.last_end()), depth })
    }
}

/// The precedence of an operator. All are left-associative.
fn level(token: Token) -> Option<(u8, Operator)> {
    use Operator::Plain;
    Some(match token {
        Token::Imply => (0, Operator::Imply),
        Token::Or => (1, Operator::Or),
        Token::And => (2, Operator::And),
        Token::BitOr => (3, Plain(Binary::BitOr)),
        Token::BitXor => (4, Plain(Binary::BitXor)),
        Token::BitAnd => (5, Plain(Binary::BitAnd)),
        Token::Equal => (6, Plain(Binary::Equal)),
        Token::Differ => (6, Plain(Binary::Differ)),
        Token::Less => (7, Plain(Binary::Less)),
        Token::AtMost => (7, Plain(Binary::AtMost)),
        Token::More => (7, Plain(Binary::More)),
        Token::AtLeast => (7, Plain(Binary::AtLeast)),
        Token::ShiftLeft => (8, Plain(Binary::ShiftLeft)),
        Token::ShiftRight => (8, Plain(Binary::ShiftRight)),
        Token::Plus => (9, Plain(Binary::Add)),
        Token::Minus => (9, Plain(Binary::Subtract)),
        Token::Times => (10, Plain(Binary::Multiply)),
        Token::Divide => (10, Operator::Divide),
        Token::Remainder => (10, Operator::Remainder),
        _ => return None,
    })
}
