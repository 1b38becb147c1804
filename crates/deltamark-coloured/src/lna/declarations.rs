//! Parser: types, constants, functions, places, transitions and labels.
//!
//! In: the tokens of the parser, from the start of a declaration. Out: a [`Definition`]. What stays true: a
//! declaration with an error in one piece is still parsed to its end, to find further errors.

use super::parse::{DECLARATIONS, Parsed, Parser};
use super::syntax::*;
use super::token::TokenKind;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};

impl<'t> Parser<'t, '_> {
    pub(super) fn definition(&mut self) -> Parsed<Definition<'t>> {
        let start = self.cursor.here().start;
        let word = self.cursor.slice(0);
        if !DECLARATIONS.contains(&word) {
            let is_constant = self.cursor.ahead(0) == Some(TokenKind::Name)
                && self.cursor.ahead(1) == Some(TokenKind::Name)
                && self.cursor.slice(2) == ":=";
            let help = match did_you_mean(word, DECLARATIONS) {
                _ if is_constant => {
                    Some(format!("for a constant, write `constant {word} {} := …;`", self.cursor.slice(1)))
                }
                close => close.map(|close| format!("did you mean `{close}`?")),
            };
            return self.unexpected("a declaration", help);
        }
        self.cursor.at += 1;
        match word {
            "type" => self.type_definition(start).map(Definition::Type),
            "subtype" => self.subtype_definition().map(Definition::Subtype),
            "constant" => self.constant_definition("a type").map(Definition::Constant),
            "function" => self.function_definition(start, false).map(Definition::Function),
            "import" => {
                self.expect_keyword("function")?;
                self.function_definition(start, true).map(Definition::Function)
            }
            "place" => self.place_definition().map(Definition::Place),
            "transition" => self.transition_definition().map(Definition::Transition),
            _ => {
                let name = self.name("the name of the proposition")?;
                self.expect(":")?;
                let value = self.expression()?;
                self.expect(";")?;
                Ok(Definition::Proposition(PropositionDef { name, value }))
            }
        }
    }

    fn type_definition(&mut self, start: usize) -> Parsed<TypeDef<'t>> {
        let name = self.name("the name of the type")?;
        self.expect(":")?;
        let word = self.cursor.slice(0);
        let shape = match word {
            "range" => TypeShape::Range(self.range()?),
            "mod" | "%" => {
                self.cursor.at += 1;
                TypeShape::Mod(self.expression()?)
            }
            "enum" => {
                self.cursor.at += 1;
                self.expect("(")?;
                let constants = self.list(",", |parser| parser.name("a constant of the enumeration"))?;
                self.expect(")")?;
                TypeShape::Enum(constants)
            }
            "vector" => {
                self.cursor.at += 1;
                self.expect("[")?;
                let index = self.list(",", |parser| parser.name("the type of an index"))?;
                self.expect("]")?;
                self.expect_keyword("of")?;
                TypeShape::Vector { index, element: self.name("the type of the elements")? }
            }
            "struct" => {
                self.cursor.at += 1;
                self.expect("{")?;
                let mut fields = Vec::new();
                loop {
                    let type_name = self.name("the type of a field")?;
                    fields.push((type_name, self.name("the name of the field")?));
                    self.expect(";")?;
                    if self.sign("}").is_some() {
                        break;
                    }
                }
                TypeShape::Struct(fields)
            }
            "list" => {
                self.cursor.at += 1;
                self.expect("[")?;
                let index = self.name("the type of the index")?;
                self.expect("]")?;
                self.expect_keyword("of")?;
                let element = self.name("the type of the elements")?;
                TypeShape::List { index, element, capacity: self.with_capacity()? }
            }
            "set" => {
                self.cursor.at += 1;
                self.expect_keyword("of")?;
                let element = self.name("the type of the elements")?;
                TypeShape::Set { element, capacity: self.with_capacity()? }
            }
            _ => {
                let words = ["range", "mod", "enum", "vector", "struct", "list", "set"];
                let help = match did_you_mean(word, words) {
                    Some(close) => format!("did you mean `{close}`?"),
                    None if self.cursor.ahead(0) == Some(TokenKind::Name) => {
                        format!("for a type with the values of `{word}`, write `subtype {} : {word};`", name.text)
                    }
                    None => "a type is one of range, mod, enum, vector, struct, list and set".into(),
                };
                return self.unexpected("a type definition", Some(help));
            }
        };
        let span = Span::new(start, self.cursor.last_end());
        self.expect(";")?;
        Ok(TypeDef { name, shape, span })
    }

    fn with_capacity(&mut self) -> Parsed<Expr<'t>> {
        self.expect_keyword("with")?;
        self.expect_keyword("capacity")?;
        self.expression()
    }

    fn range(&mut self) -> Parsed<Range<'t>> {
        let start = self.cursor.here().start;
        self.expect_keyword("range")?;
        let low = self.expression()?;
        self.expect("..")?;
        let high = self.expression()?;
        Ok(Range { low, high, span: Span::new(start, self.cursor.last_end()) })
    }

    pub(super) fn optional_range(&mut self) -> Parsed<Option<Range<'t>>> {
        if self.cursor.slice(0) == "range" { self.range().map(Some) } else { Ok(None) }
    }

    fn subtype_definition(&mut self) -> Parsed<SubtypeDef<'t>> {
        let name = self.name("the name of the subtype")?;
        self.expect(":")?;
        let parent = self.name("the type that it is a part of")?;
        let range = self.optional_range()?;
        self.expect(";")?;
        Ok(SubtypeDef { name, parent, range })
    }

    /// `T x := e;`, after `constant` or inside `let`.
    fn constant_definition(&mut self, what: &str) -> Parsed<ConstantDef<'t>> {
        let type_name = self.name(what)?;
        if self.cursor.slice(0) == ":=" {
            let help = format!("its type stands before it: `int {} := …;`", type_name.text);
            return self.unexpected("a name", Some(help));
        }
        let name = self.name("a name")?;
        self.expect(":=")?;
        let value = self.expression()?;
        self.expect(";")?;
        Ok(ConstantDef { type_name, name, value })
    }

    fn function_definition(&mut self, start: usize, imported: bool) -> Parsed<FunctionDef<'t>> {
        let name = self.name("the name of the function")?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        if self.sign(")").is_none() {
            parameters = self.list(",", |parser| {
                Ok((parser.name("the type of a parameter")?, parser.name("the name of the parameter")?))
            })?;
            self.expect(")")?;
        }
        self.expect("->")?;
        let result = self.name("the type of the result")?;
        let span = Span::new(start, self.cursor.last_end());
        let body = if imported {
            self.expect(";")?;
            FunctionBody::Imported
        } else if self.sign(";").is_some() {
            FunctionBody::Prototype
        } else {
            FunctionBody::Statement(self.statement()?)
        };
        Ok(FunctionDef { name, parameters, result, body, span })
    }

    fn place_definition(&mut self) -> Parsed<PlaceDef<'t>> {
        let name = self.name("the name of the place")?;
        self.expect("{")?;
        let mut place = PlaceDef { name, domain: Vec::new(), initial: None, capacity: None, role: None };
        let mut has_domain = false;
        let before = self.findings.count();
        self.block(|parser| {
            let span = parser.cursor.here();
            let word = parser.cursor.slice(0);
            let repeated = match word {
                "dom" => has_domain,
                "init" => place.initial.is_some(),
                "capacity" => place.capacity.is_some(),
                "type" => place.role.is_some(),
                _ => {
                    let words = ["dom", "init", "capacity", "type"];
                    let close = did_you_mean(word, words).map(|close| format!("did you mean `{close}`?"));
                    return parser.unexpected("`dom`, `init`, `capacity`, `type` or `}`", close);
                }
            };
            if repeated {
                parser.findings.add(|| Diagnostic::at(span, format!("a place has only one `{word}`")));
            }
            parser.cursor.at += 1;
            parser.expect(":")?;
            match word {
                "dom" => {
                    has_domain = true;
                    if !parser.keyword("epsilon") {
                        place.domain = parser.list("*", |parser| parser.name("a type or `epsilon`"))?;
                    }
                }
                "init" => place.initial = Some(parser.label()?),
                "capacity" => place.capacity = Some(parser.expression()?),
                _ => place.role = Some(parser.name("the role of the place")?),
            }
            parser.expect(";").map(|_| ())
        })?;
        if !has_domain && self.findings.count() == before {
            self.findings.add(|| {
                Diagnostic::at(name.span, format!("place `{}` has no domain", name.text))
                    .help("write `dom: T;` or `dom: epsilon;`")
            });
        }
        Ok(place)
    }

    fn transition_definition(&mut self) -> Parsed<TransitionDef<'t>> {
        let name = self.name("the name of the transition")?;
        self.expect("{")?;
        let mut transition = TransitionDef {
            name,
            inputs: Vec::new(),
            outputs: Vec::new(),
            inhibitors: Vec::new(),
            picks: Vec::new(),
            lets: Vec::new(),
            guard: None,
            priority: None,
            description: None,
        };
        const SECTIONS: [&str; 5] = ["in", "out", "inhibit", "pick", "let"];
        const ATTRIBUTES: [&str; 4] = ["guard", "priority", "safe", "description"];
        let mut seen: Vec<&str> = Vec::new();
        self.block(|parser| {
            let span = parser.cursor.here();
            let word = parser.cursor.slice(0);
            if !SECTIONS.contains(&word) && !ATTRIBUTES.contains(&word) {
                let close = did_you_mean(word, SECTIONS.into_iter().chain(ATTRIBUTES));
                let help = close.map(|close| format!("did you mean `{close}`?"));
                return parser.unexpected("a section of the transition or `}`", help);
            }
            if seen.contains(&word) {
                parser.findings.add(|| Diagnostic::at(span, format!("a transition has only one `{word}`")));
            } else if let Some(order) = SECTIONS.iter().position(|section| *section == word) {
                let later = |other: &&&str| SECTIONS.iter().position(|section| section == *other) > Some(order);
                let attribute = |other: &&&str| ATTRIBUTES.contains(other);
                if let Some(other) = seen.iter().find(|other| later(other) || attribute(other)) {
                    parser.findings.add(|| {
                        Diagnostic::at(span, format!("`{word}` must stand before `{other}`"))
                            .help("the sections come in the order in, out, inhibit, pick, let; then guard and the rest")
                    });
                }
            }
            seen.push(word);
            parser.cursor.at += 1;
            parser.section(word, &mut transition)
        })?;
        for word in ["in", "out"] {
            if !seen.contains(&word) {
                self.findings.add(|| {
                    Diagnostic::at(name.span, format!("transition `{}` has no section `{word}`", name.text))
                        .help(format!("write `{word} {{ }}` if it has none of these arcs"))
                });
            }
        }
        Ok(transition)
    }

    fn section(&mut self, word: &str, transition: &mut TransitionDef<'t>) -> Parsed<()> {
        match word {
            "in" => self.arcs(&mut transition.inputs),
            "out" => self.arcs(&mut transition.outputs),
            "inhibit" => self.arcs(&mut transition.inhibitors),
            "pick" => {
                self.expect("{")?;
                self.block(|parser| {
                    transition.picks.push(parser.iteration()?);
                    parser.expect(";").map(|_| ())
                })
            }
            "let" => {
                self.expect("{")?;
                self.block(|parser| {
                    transition.lets.push(parser.constant_definition("the type of a variable or `}`")?);
                    Ok(())
                })
            }
            "safe" => self.expect(";").map(|_| ()),
            "description" => {
                self.expect(":")?;
                let text = self.quoted()?;
                let arguments = if self.sign(",").is_some() { self.expressions()? } else { Vec::new() };
                transition.description = Some((text, arguments));
                self.expect(";").map(|_| ())
            }
            _ => {
                self.expect(":")?;
                let value = Some(self.expression()?);
                if word == "guard" {
                    transition.guard = value;
                } else {
                    transition.priority = value;
                }
                self.expect(";").map(|_| ())
            }
        }
    }

    fn arcs(&mut self, arcs: &mut Vec<Arc<'t>>) -> Parsed<()> {
        self.expect("{")?;
        self.block(|parser| {
            let place = parser.name("a place or `}`")?;
            parser.expect(":")?;
            let label = parser.label()?;
            arcs.push(Arc { place, label, span: Span::new(place.span.start, parser.cursor.last_end()) });
            parser.expect(";").map(|_| ())
        })
    }

    fn label(&mut self) -> Parsed<Label<'t>> {
        self.list("+", Self::tuple)
    }

    fn tuple(&mut self) -> Parsed<Tuple<'t>> {
        let start = self.cursor.here().start;
        let mut iterations = Vec::new();
        if self.keyword("for") {
            self.expect("(")?;
            iterations = self.iterations()?;
            self.expect(")")?;
        }
        let mut condition = None;
        if self.keyword("if") {
            self.expect("(")?;
            condition = Some(self.expression()?);
            self.expect(")")?;
        }
        let mut factor = None;
        if !self.at_tuple(0) {
            if matches!(self.cursor.slice(0), ";" | "}" | "for" | "if" | "") {
                return self.missing("`<(` or `epsilon`");
            }
            if self.cursor.slice(0) == "<" {
                return self.unexpected("`<(`", Some("a token stands in `<(` and `)>`: `<( x )>`".into()));
            }
            factor = Some(self.factor()?);
            if self.cursor.slice(0) != "*" {
                let help = match self.cursor.slice(0) {
                    "+" | "-" => "a factor that is a sum stands in parentheses: `(N - 1) * <( x )>`",
                    _ => "a token stands in `<(` and `)>`: `<( x )>`, or `2 * <( x )>` for two of them",
                };
                return self.unexpected("`*`", Some(help.into()));
            }
            self.cursor.at += 1;
        }
        let components = if self.keyword("epsilon") {
            None
        } else if self.signs(&["<", "("]) {
            let components = self.expressions()?;
            if !self.signs(&[")", ">"]) {
                let apart = self.cursor.slice(0) == ")" && self.cursor.slice(1) == ">";
                let help = apart.then(|| "`)` and `>` stand together at the end of a token".into());
                return self.unexpected("`,` or `)>`", help);
            }
            Some(components)
        } else {
            return self.missing("`<(` or `epsilon`");
        };
        Ok(Tuple { iterations, condition, factor, components, span: Span::new(start, self.cursor.last_end()) })
    }

    /// Whether the tuple itself begins `ahead` tokens further on.
    pub(super) fn at_tuple(&self, ahead: usize) -> bool {
        self.cursor.slice(ahead) == "epsilon"
            || (self.cursor.slice(ahead) == "<" && self.cursor.slice(ahead + 1) == "(")
    }
}
