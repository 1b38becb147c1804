//! Parser: statements of functions.
//!
//! In: the tokens of the parser, from the start of a statement. Out: a [`Statement`]. What stays true:
//! statements nest no deeper than the parser allows.

use super::parse::{Parsed, Parser};
use super::syntax::*;
use super::token::TokenKind;
use deltamark_core::{Diagnostic, Span};

impl<'t> Parser<'t, '_> {
    pub(super) fn statement(&mut self) -> Parsed<Statement<'t>> {
        self.enter()?;
        let start = self.cursor.here().start;
        let node = self.statement_node()?;
        self.depth -= 1;
        Ok(Statement { node, span: Span::new(start, self.cursor.last_end()) })
    }

    fn statement_node(&mut self) -> Parsed<StatementNode<'t>> {
        if self.sign("{").is_some() {
            return self.statement_block();
        }
        if self.cursor.ahead(0) == Some(TokenKind::Name) {
            let target = self.assigned()?;
            self.expect(":=")?;
            let value = self.expression()?;
            self.expect(";")?;
            return Ok(StatementNode::Assign(target, value));
        }
        let word = self.cursor.slice(0);
        if !matches!(word, "if" | "case" | "while" | "for" | "return" | "assert" | "print") {
            return self.missing("a statement");
        }
        self.cursor.at += 1;
        match word {
            "if" => {
                let condition = self.in_parentheses(Self::expression)?;
                let then = Box::new(self.statement()?);
                let otherwise = if self.keyword("else") { Some(Box::new(self.statement()?)) } else { None };
                Ok(StatementNode::If(condition, then, otherwise))
            }
            "case" => self.case(),
            "while" => {
                let condition = self.in_parentheses(Self::expression)?;
                Ok(StatementNode::While(condition, Box::new(self.statement()?)))
            }
            "for" => {
                let iterations = self.in_parentheses(Self::iterations)?;
                Ok(StatementNode::For(iterations, Box::new(self.statement()?)))
            }
            "return" => {
                let value = self.expression()?;
                self.expect(";")?;
                Ok(StatementNode::Return(value))
            }
            "assert" => {
                self.expect(":")?;
                let value = self.expression()?;
                self.expect(";")?;
                Ok(StatementNode::Assert(value))
            }
            _ => {
                let has_text = self.cursor.ahead(0) == Some(TokenKind::Text);
                self.cursor.at += usize::from(has_text);
                if !has_text || self.sign(",").is_some() {
                    self.expressions()?;
                }
                self.expect(";")?;
                Ok(StatementNode::Print)
            }
        }
    }

    fn in_parentheses<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.expect("(")?;
        let value = read(self)?;
        self.expect(")")?;
        Ok(value)
    }

    fn case(&mut self) -> Parsed<StatementNode<'t>> {
        let subject = self.in_parentheses(Self::expression)?;
        self.expect("{")?;
        let mut arms = Vec::new();
        let mut default = None;
        while self.sign("}").is_none() {
            let span = self.cursor.here();
            if self.keyword("default") {
                self.expect(":")?;
                default = Some(Box::new(self.statement()?));
                if self.cursor.slice(0) != "}" {
                    self.findings.add(|| Diagnostic::at(span, "`default` must be the last case"));
                }
                continue;
            }
            if self.cursor.slice(0) == ";" || self.cursor.peek().is_none() {
                return self.missing("a case, `default` or `}`");
            }
            let label = self.expression()?;
            self.expect(":")?;
            arms.push((label, self.statement()?));
        }
        Ok(StatementNode::Case { subject, arms, default })
    }

    fn statement_block(&mut self) -> Parsed<StatementNode<'t>> {
        let open = self.cursor.last_end();
        let before = self.findings.count();
        let mut locals = Vec::new();
        let mut statements = Vec::new();
        self.block(|parser| {
            let is_constant = parser.cursor.slice(0) == "constant";
            let declares =
                parser.cursor.ahead(0) == Some(TokenKind::Name) && parser.cursor.ahead(1) == Some(TokenKind::Name);
            if !is_constant && !declares {
                statements.push(parser.statement()?);
                return Ok(());
            }
            let span = parser.cursor.here();
            parser.cursor.at += usize::from(is_constant);
            let type_name = parser.name("a type")?;
            let name = parser.name("the name of the variable")?;
            let value = if parser.sign(":=").is_some() { Some(parser.expression()?) } else { None };
            parser.expect(";")?;
            if !statements.is_empty() {
                parser.findings.add(|| {
                    Diagnostic::at(span, "declarations stand before the statements of a block")
                        .help("move it to the head of the block, or open a block of its own")
                });
            }
            locals.push(Local { is_constant, type_name, name, value });
            Ok(())
        })?;
        if statements.is_empty() && self.findings.count() == before {
            let span = Span::new(open - 1, self.cursor.last_end());
            self.findings.add(|| Diagnostic::at(span, "a block needs at least one statement"));
        }
        Ok(StatementNode::Block(locals, statements))
    }
}
