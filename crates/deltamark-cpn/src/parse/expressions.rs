//! Expressions: precedence climbing over the infix operators, atoms, rules.

use super::{ASSOCIATIVE, DEEPEST, Parsed, Parser, RESERVED, balanced, chained, infix};
use crate::lexer::{Word, wrong};
use crate::syntax::*;

impl Parser {
    pub(super) fn exp(&mut self) -> Parsed<Exp> {
        self.deeper(Self::exp_inner)
    }

    pub(super) fn exp_inner(&mut self) -> Parsed<Exp> {
        let at = self.at();
        let kind = match self.word() {
            Word::Name(word) => match word.as_str() {
                "raise" => {
                    self.next();
                    ExpKind::Raise(Box::new(self.exp()?))
                }
                "if" => {
                    self.next();
                    let condition = self.exp()?;
                    self.need("then")?;
                    let one = self.exp()?;
                    self.need("else")?;
                    ExpKind::If(Box::new(condition), Box::new(one), Box::new(self.exp()?))
                }
                "case" => {
                    self.next();
                    let of = self.exp()?;
                    self.need("of")?;
                    ExpKind::Case(Box::new(of), self.rules()?)
                }
                "fn" => {
                    self.next();
                    ExpKind::Fn(self.rules()?)
                }
                "while" => {
                    self.next();
                    self.exp()?;
                    self.need("do")?;
                    self.exp()?;
                    ExpKind::Refused("`while` is not supported: it needs references that are written".into())
                }
                _ => return self.handled(),
            },
            _ => return self.handled(),
        };
        Ok(Exp { kind, at })
    }

    pub(super) fn rules(&mut self) -> Parsed<Vec<(Pat, Exp)>> {
        let mut rules = Vec::new();
        self.take("|");
        loop {
            let pattern = self.pattern()?;
            self.need("=>")?;
            rules.push((pattern, self.exp()?));
            if !self.take("|") {
                return Ok(rules);
            }
        }
    }

    pub(super) fn handled(&mut self) -> Parsed<Exp> {
        let (mut exp, mut levels) = (self.or()?, 0);
        while self.is("handle") {
            let at = self.at();
            chained(&mut levels, at, "operators")?;
            self.next();
            exp = Exp { kind: ExpKind::Handle(Box::new(exp), self.rules()?), at };
        }
        Ok(exp)
    }

    pub(super) fn or(&mut self) -> Parsed<Exp> {
        let mut parts = vec![self.and()?];
        while self.take("orelse") {
            parts.push(self.tail(Self::and)?);
        }
        let join = |one: Exp, other: Exp| {
            let at = other.at;
            Exp { kind: ExpKind::Or(Box::new(one), Box::new(other)), at }
        };
        balanced(parts, &join).map_or_else(|| wrong(self.at(), "expected an expression"), Ok)
    }

    pub(super) fn and(&mut self) -> Parsed<Exp> {
        let mut parts = vec![self.typed()?];
        while self.take("andalso") {
            parts.push(self.tail(Self::typed)?);
        }
        let join = |one: Exp, other: Exp| {
            let at = other.at;
            Exp { kind: ExpKind::And(Box::new(one), Box::new(other)), at }
        };
        balanced(parts, &join).map_or_else(|| wrong(self.at(), "expected an expression"), Ok)
    }

    /// The right operand of an operator, which may be an `if`, `case`, `fn` or `raise`.
    pub(super) fn tail(&mut self, parse: fn(&mut Self) -> Parsed<Exp>) -> Parsed<Exp> {
        if ["if", "case", "fn", "raise"].iter().any(|word| self.is(word)) { self.exp() } else { parse(self) }
    }

    pub(super) fn typed(&mut self) -> Parsed<Exp> {
        let (mut exp, mut levels) = (self.operators(0)?, 0);
        while self.is(":") {
            let at = self.at();
            chained(&mut levels, at, "operators")?;
            self.next();
            exp = Exp { kind: ExpKind::Typed(Box::new(exp), self.type_exp()?), at };
        }
        Ok(exp)
    }

    pub(super) fn operator(&self) -> Option<(String, u8, bool)> {
        match self.word() {
            Word::Name(name) | Word::Sign(name) => infix(name).map(|(level, right)| (name.clone(), level, right)),
            _ => None,
        }
    }

    pub(super) fn operators(&mut self, least: u8) -> Parsed<Exp> {
        let (mut left, mut levels) = (self.application()?, 0);
        while let Some((name, level, right)) = self.operator().filter(|(_, level, _)| *level >= least) {
            let at = self.at();
            chained(&mut levels, at, "operators")?;
            let mut parts = vec![left];
            loop {
                self.next();
                parts.push(self.deeper(|parser| {
                    let starts = ["if", "case", "fn", "raise"].iter().any(|word| parser.is(word));
                    if starts { parser.exp() } else { parser.operators(if right { level } else { level + 1 }) }
                })?);
                if !ASSOCIATIVE.contains(&name.as_str()) || !self.is(&name) {
                    break;
                }
            }
            let join = |one: Exp, other: Exp| {
                let pair = Exp { kind: ExpKind::Tuple(vec![one, other]), at };
                let name = Exp { kind: ExpKind::Name(name.clone()), at };
                Exp { kind: ExpKind::App(Box::new(name), Box::new(pair)), at }
            };
            left = match balanced(parts, &join) {
                Some(joined) => joined,
                None => return wrong(at, "expected an expression"),
            };
        }
        Ok(left)
    }

    pub(super) fn application(&mut self) -> Parsed<Exp> {
        let Some(mut exp) = self.atom()? else {
            return wrong(self.at(), format!("expected an expression, found {}", self.shown()));
        };
        let mut arguments = 0;
        loop {
            let at = self.at();
            let Some(argument) = self.atom()? else { return Ok(exp) };
            arguments += 1;
            if arguments > DEEPEST {
                return wrong(at, "a function is applied to too many arguments");
            }
            exp = Exp { kind: ExpKind::App(Box::new(exp), Box::new(argument)), at };
        }
    }

    pub(super) fn label(&mut self) -> Parsed<String> {
        match self.next() {
            Word::Name(name) => Ok(name),
            Word::Int(number) if number > 0 => Ok(number.to_string()),
            _ => wrong(self.at(), "expected the name of a field"),
        }
    }

    /// Something that can stand as an argument.
    pub(super) fn atom(&mut self) -> Parsed<Option<Exp>> {
        let at = self.at();
        let kind = match self.word().clone() {
            Word::Int(number) => {
                self.next();
                ExpKind::Int(number)
            }
            Word::Real(text) => {
                self.next();
                ExpKind::Refused(format!("`{text}`: numbers with a point are not supported"))
            }
            Word::Str(text) => {
                self.next();
                ExpKind::Str(text)
            }
            Word::Char(letter) => {
                self.next();
                ExpKind::Char(letter)
            }
            Word::Name(name) => match name.as_str() {
                "let" => {
                    self.next();
                    // Declarations of a `let` nest, with all those around them.
                    let (levels, inside) = (self.lets, std::mem::replace(&mut self.inside, true));
                    let decs = self.deeper(Self::decs)?;
                    self.need("in")?;
                    let body = self.sequence("end")?;
                    (self.lets, self.inside) = (levels, inside);
                    ExpKind::Let(decs, Box::new(body))
                }
                "op" => {
                    self.next();
                    match self.next() {
                        Word::Name(name) | Word::Sign(name) => ExpKind::Name(name),
                        _ => return wrong(at, "`op` is followed by an operator"),
                    }
                }
                _ if RESERVED.contains(&name.as_str()) || infix(&name).is_some() => return Ok(None),
                _ => {
                    self.next();
                    ExpKind::Name(name)
                }
            },
            Word::Sign(sign) => match sign.as_str() {
                "(" => {
                    self.next();
                    return Ok(Some(self.deeper(|parser| parser.parenthesis(at))?));
                }
                "[" => {
                    self.next();
                    let mut items = Vec::new();
                    if !self.take("]") {
                        loop {
                            items.push(self.exp()?);
                            if !self.take(",") {
                                break;
                            }
                        }
                        self.need("]")?;
                    }
                    ExpKind::List(items)
                }
                "{" => {
                    self.next();
                    let mut fields = Vec::new();
                    if !self.take("}") {
                        loop {
                            let label = self.label()?;
                            self.need("=")?;
                            fields.push((label, self.exp()?));
                            if !self.take(",") {
                                break;
                            }
                        }
                        self.need("}")?;
                    }
                    ExpKind::Record(fields)
                }
                "#" => {
                    self.next();
                    ExpKind::Select(self.label()?)
                }
                "~" | "!" => {
                    self.next();
                    ExpKind::Name(sign)
                }
                _ => return Ok(None),
            },
            Word::TypeVar(_) | Word::End => return Ok(None),
        };
        Ok(Some(Exp { kind, at }))
    }

    /// Expressions separated by `;` up to a closing word.
    pub(super) fn sequence(&mut self, close: &str) -> Parsed<Exp> {
        let at = self.at();
        let mut items = vec![self.exp()?];
        while self.take(";") {
            if self.is(close) {
                break;
            }
            items.push(self.exp()?);
        }
        self.need(close)?;
        Ok(if items.len() == 1 { items.remove(0) } else { Exp { kind: ExpKind::Seq(items), at } })
    }

    pub(super) fn parenthesis(&mut self, at: usize) -> Parsed<Exp> {
        if self.take(")") {
            return Ok(Exp { kind: ExpKind::Tuple(Vec::new()), at });
        }
        let mut items = vec![self.exp()?];
        if self.is(";") {
            while self.take(";") {
                items.push(self.exp()?);
            }
            self.need(")")?;
            return Ok(Exp { kind: ExpKind::Seq(items), at });
        }
        while self.take(",") {
            items.push(self.exp()?);
        }
        self.need(")")?;
        Ok(if items.len() == 1 { items.remove(0) } else { Exp { kind: ExpKind::Tuple(items), at } })
    }
}
