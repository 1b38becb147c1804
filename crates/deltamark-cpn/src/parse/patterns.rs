//! Patterns and types.

use super::{Parsed, Parser, RESERVED, chained, infix};
use crate::lexer::{Word, wrong};
use crate::syntax::*;

impl Parser {
    pub(super) fn pattern(&mut self) -> Parsed<Pat> {
        self.deeper(|parser| {
            let at = parser.at();
            let first = parser.pattern_application()?;
            let mut pattern = first;
            if parser.take("::") {
                let rest = parser.pattern()?;
                pattern = Pat { kind: PatKind::Cons(Box::new(pattern), Box::new(rest)), at };
            }
            let mut levels = 0;
            while parser.take(":") {
                chained(&mut levels, at, "operators")?;
                pattern = Pat { kind: PatKind::Typed(Box::new(pattern), parser.type_exp()?), at };
            }
            if parser.take("as") {
                let inner = parser.pattern()?;
                let (name, inner) = match pattern.kind {
                    PatKind::Name(name) => (name, inner),
                    PatKind::Typed(of, as_type) => match of.kind {
                        PatKind::Name(name) => (name, Pat { kind: PatKind::Typed(Box::new(inner), as_type), at }),
                        _ => return wrong(at, "`as` follows a variable"),
                    },
                    _ => return wrong(at, "`as` follows a variable"),
                };
                pattern = Pat { kind: PatKind::As(name, Box::new(inner)), at };
            }
            Ok(pattern)
        })
    }

    pub(super) fn pattern_application(&mut self) -> Parsed<Pat> {
        let at = self.at();
        let Some(first) = self.pattern_atom()? else {
            return wrong(at, format!("expected a pattern, found {}", self.shown()));
        };
        let PatKind::Name(name) = &first.kind else { return Ok(first) };
        match self.pattern_atom()? {
            Some(argument) => Ok(Pat { kind: PatKind::Apply(name.clone(), Box::new(argument)), at }),
            None => Ok(first),
        }
    }

    pub(super) fn pattern_atom(&mut self) -> Parsed<Option<Pat>> {
        let at = self.at();
        let kind = match self.word().clone() {
            Word::Int(number) => {
                self.next();
                PatKind::Int(number)
            }
            Word::Str(text) => {
                self.next();
                PatKind::Str(text)
            }
            Word::Char(letter) => {
                self.next();
                PatKind::Char(letter)
            }
            Word::Name(name) if name == "op" => {
                self.next();
                PatKind::Name(self.name()?)
            }
            Word::Name(name) if !RESERVED.contains(&name.as_str()) && infix(&name).is_none() => {
                self.next();
                PatKind::Name(name)
            }
            Word::Sign(sign) => match sign.as_str() {
                "_" => {
                    self.next();
                    PatKind::Wild
                }
                "(" => {
                    self.next();
                    let mut items = self.patterns(")")?;
                    if items.len() == 1 {
                        return Ok(Some(items.remove(0)));
                    }
                    PatKind::Tuple(items)
                }
                "[" => {
                    self.next();
                    PatKind::List(self.patterns("]")?)
                }
                "{" => {
                    self.next();
                    self.record_pattern()?
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(Pat { kind, at }))
    }

    pub(super) fn patterns(&mut self, close: &str) -> Parsed<Vec<Pat>> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(self.pattern()?);
            if !self.take(",") {
                break;
            }
        }
        self.need(close)?;
        Ok(items)
    }

    pub(super) fn record_pattern(&mut self) -> Parsed<PatKind> {
        let (mut fields, mut open) = (Vec::new(), false);
        if !self.take("}") {
            loop {
                if self.take("...") {
                    open = true;
                    break;
                }
                let at = self.at();
                let label = self.label()?;
                let pattern = if self.take("=") {
                    self.pattern()?
                } else {
                    let mut pattern = Pat { kind: PatKind::Name(label.clone()), at };
                    if self.take(":") {
                        pattern = Pat { kind: PatKind::Typed(Box::new(pattern), self.type_exp()?), at };
                    }
                    if self.take("as") {
                        pattern = Pat { kind: PatKind::As(label.clone(), Box::new(self.pattern()?)), at };
                    }
                    pattern
                };
                fields.push((label, pattern));
                if !self.take(",") {
                    break;
                }
            }
            self.need("}")?;
        }
        Ok(PatKind::Record(fields, open))
    }

    pub fn type_exp(&mut self) -> Parsed<TypeExp> {
        self.deeper(|parser| {
            let mut items = vec![parser.type_atom()?];
            while parser.take("*") {
                items.push(parser.type_atom()?);
            }
            let left = if items.len() == 1 { items.remove(0) } else { TypeExp::Tuple(items) };
            if parser.take("->") {
                return Ok(TypeExp::Arrow(Box::new(left), Box::new(parser.type_exp()?)));
            }
            Ok(left)
        })
    }

    pub(super) fn type_atom(&mut self) -> Parsed<TypeExp> {
        let at = self.at();
        let mut of = match self.next() {
            Word::TypeVar(name) => TypeExp::Var(name),
            Word::Name(name) if !RESERVED.contains(&name.as_str()) => TypeExp::Name(name, Vec::new(), at),
            Word::Sign(sign) if sign == "(" => {
                let mut items = vec![self.type_exp()?];
                while self.take(",") {
                    items.push(self.type_exp()?);
                }
                self.need(")")?;
                if items.len() == 1 {
                    items.remove(0)
                } else {
                    let name = self.name()?;
                    TypeExp::Name(name, items, at)
                }
            }
            Word::Sign(sign) if sign == "{" => {
                let mut fields = Vec::new();
                loop {
                    let label = self.label()?;
                    self.need(":")?;
                    fields.push((label, self.type_exp()?));
                    if !self.take(",") {
                        break;
                    }
                }
                self.need("}")?;
                TypeExp::Record(fields)
            }
            _ => return wrong(at, "expected a type"),
        };
        let mut levels = 0;
        while let Word::Name(name) = self.word().clone() {
            if RESERVED.contains(&name.as_str()) {
                break;
            }
            let at = self.at();
            chained(&mut levels, at, "operators")?;
            self.next();
            of = TypeExp::Name(name, vec![of], at);
        }
        Ok(of)
    }
}
