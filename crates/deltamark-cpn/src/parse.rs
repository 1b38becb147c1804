//! The parser of CPN ML.
//!
//! In: the text of an inscription or of declarations. Out: the syntax tree, or the first error and its position. What stays
//! true: nesting is bounded, so no text overflows the stack.

use crate::lexer::{Word, Wrong, words, wrong};
use crate::syntax::*;

/// The maximum nesting of expressions, patterns and types.
const DEEPEST: u32 = 120;

/// Strength and whether it groups to the right.
fn infix(name: &str) -> Option<(u8, bool)> {
    Some(match name {
        "@" => (9, false),
        "`" => (8, false),
        "*" | "/" | "div" | "mod" | "**" | "//" | "%" | "@+" | "@++" => (7, false),
        "+" | "-" | "^" | "++" | "--" | "+++" => (6, false),
        "::" => (5, true),
        "^^" => (5, false),
        "=" | "<>" | "<" | ">" | "<=" | ">=" => (4, false),
        "==" | "<><>" | "!=" | "<<" | ">>" | "<<=" | ">>=" | ":=" | "o" => (3, false),
        _ => return None,
    })
}

const RESERVED: &[&str] = &[
    "val",
    "fun",
    "fn",
    "let",
    "in",
    "end",
    "local",
    "case",
    "of",
    "if",
    "then",
    "else",
    "andalso",
    "orelse",
    "op",
    "raise",
    "handle",
    "exception",
    "datatype",
    "type",
    "and",
    "as",
    "rec",
    "with",
    "structure",
    "open",
    "infix",
    "infixr",
    "nonfix",
    "colset",
    "color",
    "var",
    "globref",
    "abstype",
    "eqtype",
    "functor",
    "sig",
    "signature",
    "struct",
    "withtype",
    "declare",
    "timed",
    "do",
    "while",
    "include",
    "sharing",
    "where",
];

/// The parser of one text.
pub(crate) struct Parser {
    words: Vec<(Word, usize)>,
    here: usize,
    depth: u32,
}

type Parsed<T> = Result<T, Wrong>;

impl Parser {
    pub fn new(text: &str) -> Parsed<Self> {
        Ok(Parser { words: words(text)?, here: 0, depth: 0 })
    }

    /// The expression of an inscription; `None` if the text is blank.
    pub fn inscription(text: &str) -> Parsed<Option<Exp>> {
        let mut parser = Parser::new(text)?;
        while parser.take(";") {}
        if parser.at_end() {
            return Ok(None);
        }
        let exp = parser.exp()?;
        while parser.take(";") {}
        parser.end()?;
        Ok(Some(exp))
    }

    /// All declarations of a text.
    pub fn declarations(text: &str) -> Parsed<Vec<Dec>> {
        let mut parser = Parser::new(text)?;
        let decs = parser.decs()?;
        parser.end()?;
        Ok(decs)
    }

    fn word(&self) -> &Word {
        &self.words[self.here].0
    }

    pub fn at(&self) -> usize {
        self.words[self.here].1
    }

    pub fn at_end(&self) -> bool {
        *self.word() == Word::End
    }

    pub fn end(&self) -> Parsed<()> {
        if self.at_end() { Ok(()) } else { wrong(self.at(), format!("{} is not expected here", self.shown())) }
    }

    fn shown(&self) -> String {
        match self.word() {
            Word::Name(name) | Word::TypeVar(name) | Word::Sign(name) => format!("`{name}`"),
            Word::Int(number) => format!("`{number}`"),
            Word::Str(_) => "a string".into(),
            Word::Char(_) => "a character".into(),
            Word::End => "the end of the text".into(),
        }
    }

    fn next(&mut self) -> Word {
        let word = self.word().clone();
        if self.here + 1 < self.words.len() {
            self.here += 1;
        }
        word
    }

    fn is(&self, text: &str) -> bool {
        matches!(self.word(), Word::Name(word) | Word::Sign(word) if word == text)
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.next();
        }
        found
    }

    fn need(&mut self, text: &str) -> Parsed<()> {
        if self.take(text) { Ok(()) } else { wrong(self.at(), format!("expected `{text}`, found {}", self.shown())) }
    }

    fn name(&mut self) -> Parsed<String> {
        match self.word().clone() {
            Word::Name(name) if !RESERVED.contains(&name.as_str()) => {
                self.next();
                Ok(name)
            }
            _ => wrong(self.at(), format!("expected a name, found {}", self.shown())),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST {
            return wrong(self.at(), "this is nested too deeply");
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn exp(&mut self) -> Parsed<Exp> {
        self.deeper(Self::exp_inner)
    }

    fn exp_inner(&mut self) -> Parsed<Exp> {
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
                "while" => return wrong(at, "`while` is not supported: it needs references that are written"),
                _ => return self.handled(),
            },
            _ => return self.handled(),
        };
        Ok(Exp { kind, at })
    }

    fn rules(&mut self) -> Parsed<Vec<(Pat, Exp)>> {
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

    fn handled(&mut self) -> Parsed<Exp> {
        let mut exp = self.or()?;
        while self.is("handle") {
            let at = self.at();
            self.next();
            exp = Exp { kind: ExpKind::Handle(Box::new(exp), self.rules()?), at };
        }
        Ok(exp)
    }

    fn or(&mut self) -> Parsed<Exp> {
        let mut exp = self.and()?;
        while self.is("orelse") {
            let at = self.at();
            self.next();
            exp = Exp { kind: ExpKind::Or(Box::new(exp), Box::new(self.tail(Self::and)?)), at };
        }
        Ok(exp)
    }

    fn and(&mut self) -> Parsed<Exp> {
        let mut exp = self.typed()?;
        while self.is("andalso") {
            let at = self.at();
            self.next();
            exp = Exp { kind: ExpKind::And(Box::new(exp), Box::new(self.tail(Self::typed)?)), at };
        }
        Ok(exp)
    }

    /// The right operand of an operator, which may be an `if`, `case`, `fn` or `raise`.
    fn tail(&mut self, parse: fn(&mut Self) -> Parsed<Exp>) -> Parsed<Exp> {
        if ["if", "case", "fn", "raise"].iter().any(|word| self.is(word)) { self.exp() } else { parse(self) }
    }

    fn typed(&mut self) -> Parsed<Exp> {
        let mut exp = self.operators(0)?;
        while self.is(":") {
            let at = self.at();
            self.next();
            exp = Exp { kind: ExpKind::Typed(Box::new(exp), self.type_exp()?), at };
        }
        Ok(exp)
    }

    fn operator(&self) -> Option<(String, u8, bool)> {
        match self.word() {
            Word::Name(name) | Word::Sign(name) => infix(name).map(|(level, right)| (name.clone(), level, right)),
            _ => None,
        }
    }

    fn operators(&mut self, least: u8) -> Parsed<Exp> {
        let mut left = self.application()?;
        while let Some((name, level, right)) = self.operator().filter(|(_, level, _)| *level >= least) {
            let at = self.at();
            self.next();
            let other = self.deeper(|parser| {
                let starts = ["if", "case", "fn", "raise"].iter().any(|word| parser.is(word));
                if starts { parser.exp() } else { parser.operators(if right { level } else { level + 1 }) }
            })?;
            let pair = Exp { kind: ExpKind::Tuple(vec![left, other]), at };
            let name = Exp { kind: ExpKind::Name(name), at };
            left = Exp { kind: ExpKind::App(Box::new(name), Box::new(pair)), at };
        }
        Ok(left)
    }

    fn application(&mut self) -> Parsed<Exp> {
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

    fn label(&mut self) -> Parsed<String> {
        match self.next() {
            Word::Name(name) => Ok(name),
            Word::Int(number) if number > 0 => Ok(number.to_string()),
            _ => wrong(self.at(), "expected the name of a field"),
        }
    }

    /// Something that can stand as an argument.
    fn atom(&mut self) -> Parsed<Option<Exp>> {
        let at = self.at();
        let kind = match self.word().clone() {
            Word::Int(number) => {
                self.next();
                ExpKind::Int(number)
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
                    let decs = self.deeper(Self::decs)?;
                    self.need("in")?;
                    let body = self.sequence("end")?;
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
    fn sequence(&mut self, close: &str) -> Parsed<Exp> {
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

    fn parenthesis(&mut self, at: usize) -> Parsed<Exp> {
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

    fn pattern(&mut self) -> Parsed<Pat> {
        self.deeper(|parser| {
            let at = parser.at();
            let first = parser.pattern_application()?;
            let mut pattern = first;
            if parser.take("::") {
                let rest = parser.pattern()?;
                pattern = Pat { kind: PatKind::Cons(Box::new(pattern), Box::new(rest)), at };
            }
            while parser.take(":") {
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

    fn pattern_application(&mut self) -> Parsed<Pat> {
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

    fn pattern_atom(&mut self) -> Parsed<Option<Pat>> {
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

    fn patterns(&mut self, close: &str) -> Parsed<Vec<Pat>> {
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

    fn record_pattern(&mut self) -> Parsed<PatKind> {
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

    fn type_atom(&mut self) -> Parsed<TypeExp> {
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
        while let Word::Name(name) = self.word().clone() {
            if RESERVED.contains(&name.as_str()) {
                break;
            }
            let at = self.at();
            self.next();
            of = TypeExp::Name(name, vec![of], at);
        }
        Ok(of)
    }

    /// Declarations, as many as there are.
    fn decs(&mut self) -> Parsed<Vec<Dec>> {
        let mut decs = Vec::new();
        loop {
            while self.take(";") {}
            let at = self.at();
            let Word::Name(word) = self.word().clone() else { return Ok(decs) };
            match word.as_str() {
                "val" => {
                    self.next();
                    if self.take("rec") {
                        return wrong(at, "`val rec` is not supported; write `fun`");
                    }
                    let mut bindings = Vec::new();
                    loop {
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
                    let name = self.name()?;
                    self.need("=")?;
                    decs.push(Dec::Type(name, self.type_exp()?));
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
                    if self.take("declare") {
                        while !self.is(";") && !self.at_end() {
                            self.next();
                        }
                    }
                    let timed = self.take("timed");
                    decs.push(Dec::Colour { name, spec, timed, at });
                }
                "datatype" | "structure" | "open" | "infix" | "infixr" | "nonfix" | "abstype" | "functor"
                | "signature" => {
                    return wrong(at, format!("`{word}` is not supported"));
                }
                _ => return Ok(decs),
            }
        }
    }

    fn clause(&mut self) -> Parsed<Clause> {
        let at = self.at();
        self.take("op");
        let name = self.name()?;
        let mut patterns = Vec::new();
        while let Some(pattern) = self.pattern_atom()? {
            patterns.push(pattern);
        }
        if patterns.is_empty() {
            return wrong(self.at(), format!("the function `{name}` has no arguments"));
        }
        let result = if self.take(":") { Some(self.type_exp()?) } else { None };
        self.need("=")?;
        Ok(Clause { name, patterns, result, body: self.exp()?, at })
    }

    fn range(&mut self) -> Parsed<(Exp, Exp)> {
        let low = self.operators(0)?;
        self.need("..")?;
        Ok((low, self.operators(0)?))
    }

    fn colour(&mut self) -> Parsed<ColourSpec> {
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
                let with = self.take("with");
                while with && !self.is(";") && !self.at_end() {
                    self.next();
                }
                ColourSpec::Str(with)
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
