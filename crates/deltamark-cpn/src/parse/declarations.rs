//! Declarations, and colour sets as text.

use super::{Parsed, Parser, chained};
use crate::lexer::{Word, wrong};
use crate::syntax::*;

impl Parser {
    /// Declarations, as many as there are.
    pub(super) fn decs(&mut self) -> Parsed<Vec<Dec>> {
        let mut decs = Vec::new();
        loop {
            while self.take(";") {}
            let at = self.at();
            let Word::Name(word) = self.word().clone() else { return Ok(decs) };
            self.one_more(at)?;
            match word.as_str() {
                "val" => {
                    self.next();
                    if self.take("rec") {
                        decs.push(self.recursive()?);
                        continue;
                    }
                    let mut bindings = Vec::new();
                    loop {
                        if !bindings.is_empty() {
                            self.one_more(at)?;
                        }
                        let pattern = self.pattern()?;
                        self.need("=")?;
                        bindings.push((pattern, self.exp()?));
                        if !self.take("and") {
                            break;
                        }
                    }
                    decs.push(Dec::Val(bindings));
                }
                "fun" => {
                    self.next();
                    let mut functions = Vec::new();
                    loop {
                        let mut clauses = Vec::new();
                        self.take("|");
                        loop {
                            clauses.push(self.clause()?);
                            if !self.take("|") {
                                break;
                            }
                        }
                        functions.push(clauses);
                        if !self.take("and") {
                            break;
                        }
                    }
                    decs.push(Dec::Fun(functions));
                }
                "exception" => {
                    self.next();
                    loop {
                        let name = self.name()?;
                        let of = if self.take("of") { Some(self.type_exp()?) } else { None };
                        decs.push(Dec::Exception(name, of));
                        if !self.take("and") {
                            break;
                        }
                    }
                }
                "local" => {
                    self.next();
                    let inner = self.deeper(Self::decs)?;
                    self.need("in")?;
                    let outer = self.deeper(Self::decs)?;
                    self.need("end")?;
                    decs.push(Dec::Local(inner, outer));
                }
                "type" => {
                    self.next();
                    let parameters = self.type_parameters()?;
                    let name = self.name()?;
                    self.need("=")?;
                    decs.push(Dec::Type(parameters, name, self.type_exp()?));
                }
                "datatype" => {
                    self.next();
                    let mut all = vec![self.data_spec()?];
                    while self.take("and") {
                        all.push(self.data_spec()?);
                    }
                    decs.push(Dec::Datatype(all));
                }
                "use" => {
                    self.next();
                    let at = self.at();
                    match self.next() {
                        Word::Str(path) => decs.push(Dec::Use(path, at)),
                        _ => return wrong(at, "`use` is followed by the name of a file as a string"),
                    }
                }
                "globref" => {
                    self.next();
                    let name = self.name()?;
                    self.need("=")?;
                    decs.push(Dec::Globref(name, self.exp()?));
                }
                "var" => {
                    self.next();
                    let mut names = Vec::new();
                    loop {
                        let at = self.at();
                        names.push((self.name()?, at));
                        if !self.take(",") {
                            break;
                        }
                    }
                    self.need(":")?;
                    let of = self.name()?;
                    decs.push(Dec::Vars { names, of, at });
                }
                "colset" | "color" => {
                    self.next();
                    let name = self.name()?;
                    self.need("=")?;
                    let spec = self.colour()?;
                    let mut timed = self.take("timed");
                    let mut declared = Vec::new();
                    if self.take("declare") {
                        while let Word::Name(word) = self.word().clone() {
                            self.next();
                            declared.push(word);
                            if !self.take(",") {
                                break;
                            }
                        }
                        timed |= self.take("timed");
                    }
                    decs.push(Dec::Colour { name, spec, timed, declared, at });
                }
                "structure" | "open" | "infix" | "infixr" | "nonfix" | "abstype" | "functor" | "signature" => {
                    return wrong(at, format!("`{word}` is not supported"));
                }
                _ => return Ok(decs),
            }
        }
    }

    /// `val rec f = fn …`: the same as `fun`.
    fn recursive(&mut self) -> Parsed<Dec> {
        let mut functions = Vec::new();
        loop {
            let at = self.at();
            let name = self.name()?;
            self.need("=")?;
            let body = self.exp()?;
            let ExpKind::Fn(rules) = body.kind else {
                return wrong(body.at, "`val rec` declares a function, written with `fn`");
            };
            let clause = |(pattern, body): (Pat, Exp)| Clause {
                name: name.clone(),
                patterns: vec![pattern],
                result: None,
                body,
                at,
            };
            functions.push(rules.into_iter().map(clause).collect());
            if !self.take("and") {
                return Ok(Dec::Fun(functions));
            }
        }
    }

    /// `'a`, or `('a, 'b)`, or nothing.
    fn type_parameters(&mut self) -> Parsed<Vec<String>> {
        let mut names = Vec::new();
        if let Word::TypeVar(name) = self.word().clone() {
            self.next();
            names.push(name);
        } else if self.take("(") {
            loop {
                let at = self.at();
                match self.next() {
                    Word::TypeVar(name) => names.push(name),
                    _ => return wrong(at, "expected a type variable"),
                }
                if !self.take(",") {
                    break;
                }
            }
            self.need(")")?;
        }
        Ok(names)
    }

    fn data_spec(&mut self) -> Parsed<DataSpec> {
        let parameters = self.type_parameters()?;
        let name = self.name()?;
        self.need("=")?;
        let mut alternatives = Vec::new();
        loop {
            let con = self.name()?;
            alternatives.push((con, if self.take("of") { Some(self.type_exp()?) } else { None }));
            if !self.take("|") {
                return Ok(DataSpec { parameters, name, alternatives });
            }
        }
    }

    pub(super) fn clause(&mut self) -> Parsed<Clause> {
        let at = self.at();
        self.take("op");
        let name = self.name()?;
        let mut patterns = Vec::new();
        let mut levels = 0;
        while let Some(pattern) = self.pattern_atom()? {
            chained(&mut levels, at, "arguments")?;
            patterns.push(pattern);
        }
        if patterns.is_empty() {
            return wrong(self.at(), format!("the function `{name}` has no arguments"));
        }
        let result = if self.take(":") { Some(self.type_exp()?) } else { None };
        self.need("=")?;
        Ok(Clause { name, patterns, result, body: self.exp()?, at })
    }

    pub(super) fn range(&mut self) -> Parsed<(Exp, Exp)> {
        let low = self.operators(0)?;
        self.need("..")?;
        Ok((low, self.operators(0)?))
    }

    pub(super) fn colour(&mut self) -> Parsed<ColourSpec> {
        let at = self.at();
        if self.take("with") {
            let mut names = vec![self.name()?];
            while self.take("|") {
                names.push(self.name()?);
            }
            return Ok(ColourSpec::Enum(names));
        }
        let kind = self.name()?;
        let several = |parser: &mut Self, sign: &str| -> Parsed<Vec<String>> {
            let mut names = vec![parser.name()?];
            while parser.take(sign) {
                names.push(parser.name()?);
            }
            Ok(names)
        };
        Ok(match kind.as_str() {
            "unit" => ColourSpec::Unit(if self.take("with") { Some(self.name()?) } else { None }),
            "bool" => ColourSpec::Bool(if self.take("with") {
                self.need("(")?;
                let no = self.name()?;
                self.need(",")?;
                let yes = self.name()?;
                self.need(")")?;
                Some((no, yes))
            } else {
                None
            }),
            "int" => ColourSpec::Int(if self.take("with") { Some(self.range()?) } else { None }),
            "string" => {
                let range = if self.take("with") {
                    let (low, high) = self.range()?;
                    Some(Box::new((low, high, if self.take("and") { Some(self.range()?) } else { None })))
                } else {
                    None
                };
                ColourSpec::Str(range)
            }
            "real" | "time" | "intinf" => {
                while !self.is(";") && !self.at_end() {
                    self.next();
                }
                ColourSpec::Other(kind)
            }
            "index" => {
                let name = self.name()?;
                self.need("with")?;
                let (low, high) = self.range()?;
                ColourSpec::Index(name, low, high)
            }
            "product" => ColourSpec::Product(several(self, "*")?),
            "record" => {
                let mut fields = Vec::new();
                loop {
                    let label = self.label()?;
                    self.need(":")?;
                    fields.push((label, self.name()?));
                    if !self.take("*") && !self.take("+") {
                        break;
                    }
                }
                ColourSpec::Record(fields)
            }
            "list" => {
                let of = self.name()?;
                ColourSpec::List(of, if self.take("with") { Some(self.range()?) } else { None })
            }
            "union" => {
                let mut alternatives = Vec::new();
                loop {
                    let name = self.name()?;
                    let of = if self.take(":") { Some(self.name()?) } else { None };
                    alternatives.push((name, of));
                    if !self.take("+") {
                        break;
                    }
                }
                ColourSpec::Union(alternatives)
            }
            "subset" => {
                let of = self.name()?;
                if self.take("by") {
                    ColourSpec::SubsetBy(of, self.exp()?)
                } else if self.take("with") {
                    ColourSpec::SubsetWith(of, self.exp()?)
                } else {
                    return wrong(at, "a subset is declared with `by` or `with`");
                }
            }
            _ => ColourSpec::Alias(kind),
        })
    }
}
