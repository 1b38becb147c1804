//! Expressions as text.
//!
//! In: an [`Expr`]. Out: text that [`parse`](crate::parse()) reads back as an equal expression, with as few
//! parentheses as possible.

use std::fmt::{self, Display, Formatter};

use crate::ast::{Expr, Level, Name, Node};
use crate::token::quote;

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(&self.text))
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::Truth(truth) => write!(f, "{truth}"),
            Node::Number(number) => write!(f, "{number}"),
            Node::Name(name) => write!(f, "{name}"),
            Node::Deadlock => f.write_str("deadlock"),
            Node::Fireable(names) => call(f, "fireable", names),
            Node::Tokens(names) => call(f, "tokens", names),
            Node::Not(inner) => {
                f.write_str("not ")?;
                operand(f, inner, Level::Not)
            }
            Node::Initial => f.write_str("initial"),
            Node::Along(operator, inner) => {
                write!(f, "{} ", operator.symbol())?;
                operand(f, inner, Level::Not)
            }
            Node::Paths(quantifier, inner) => {
                write!(f, "{} ", quantifier.symbol())?;
                operand(f, inner, Level::Not)
            }
            Node::Until(operator, left, right) => {
                operand(f, left, Level::Not)?;
                write!(f, " {} ", operator.symbol())?;
                operand(f, right, Level::Until)
            }
            Node::And(list) => joined(f, list, " and ", Level::And),
            Node::Or(list) => joined(f, list, " or ", Level::Or),
            Node::Iff(list) => joined(f, list, " iff ", Level::Iff),
            Node::Implies(left, right) => {
                operand(f, left, Level::Or)?;
                f.write_str(" implies ")?;
                operand(f, right, Level::Implies)
            }
            Node::Compare(comparison, left, right) => {
                operand(f, left, Level::Sum)?;
                write!(f, " {} ", comparison.symbol())?;
                operand(f, right, Level::Sum)
            }
            // `-5` is one literal, so the negation of 5 needs its parentheses. No others are added: the output
            // must not nest deeper than the input.
            Node::Negate(inner) if matches!(inner.node, Node::Number(0..)) => write!(f, "-({inner})"),
            Node::Negate(inner) => {
                f.write_str("-")?;
                operand(f, inner, Level::Sign)
            }
            Node::Arithmetic(first, rest) => {
                let level = self.node.level().tighter();
                operand(f, first, level)?;
                for (operator, right) in rest {
                    write!(f, " {} ", operator.symbol())?;
                    operand(f, right, level)?;
                }
                Ok(())
            }
        }
    }
}

/// Prints an operand, in parentheses unless it binds at least as tightly as `level`.
fn operand(f: &mut Formatter<'_>, expr: &Expr, level: Level) -> fmt::Result {
    if expr.node.level() >= level { write!(f, "{expr}") } else { write!(f, "({expr})") }
}

fn joined(f: &mut Formatter<'_>, list: &[Expr], operator: &str, level: Level) -> fmt::Result {
    for (index, expr) in list.iter().enumerate() {
        if index > 0 {
            f.write_str(operator)?;
        }
        operand(f, expr, level.tighter())?;
    }
    Ok(())
}

fn call(f: &mut Formatter<'_>, function: &str, names: &[Name]) -> fmt::Result {
    write!(f, "{function}(")?;
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{name}")?;
    }
    f.write_str(")")
}
