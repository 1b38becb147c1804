//! Tokens into a syntax tree: files, declarations and statements.
//!
//! In: the text of a net or of a property file, preprocessed. Out: a [`Net`] or properties;
//! what is wrong goes to the findings. What stays true: recursion is no deeper than
//! [`MAX_DEPTH`]; every loop passes at least one token a round.
//!
//! A hand-written descent. Where a piece cannot be read, the finding is recorded and reading
//! goes on behind the next `;` of the same block, or at the next declaration, so that one
//! mistake hides few others. Expressions are in [`expressions`](super::expressions).

use super::findings::Findings;
use super::syntax::*;
use super::token::{Kind, Token, is_reserved, shortened, tokens};
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};

/// Reading of a piece cannot go on; the finding that says why has been recorded.
pub(super) struct Stuck;

pub(super) type Parsed<T> = Result<T, Stuck>;

/// Words that begin a declaration and stand nowhere else.
const LANDMARKS: [&str; 5] = ["place", "transition", "proposition", "subtype", "import"];

/// Words that begin a declaration.
const DECLARATIONS: [&str; 8] =
    ["type", "subtype", "constant", "function", "place", "transition", "proposition", "import"];

/// Reads a net. None when not even its frame could be read.
pub(crate) fn net<'t>(text: &'t str, findings: &mut Findings) -> Option<Net<'t>> {
    Parser::new(text, findings).net().ok()
}

/// Reads a property file.
pub(crate) fn properties<'t>(text: &'t str, findings: &mut Findings) -> Vec<Property<'t>> {
    Parser::new(text, findings).property_file()
}

pub(super) struct Parser<'t, 'f> {
    pub(super) text: &'t str,
    tokens: Vec<Token>,
    /// The next token.
    pub(super) at: usize,
    /// How many calls that may nest are under way.
    pub(super) depth: usize,
    pub(super) findings: &'f mut Findings,
}

impl<'t, 'f> Parser<'t, 'f> {
    fn new(text: &'t str, findings: &'f mut Findings) -> Self {
        let tokens = tokens(text, findings);
        Parser { text, tokens, at: 0, depth: 0, findings }
    }

    // The frame of a file.

    fn net(mut self) -> Parsed<Net<'t>> {
        let name = self.name("the name of the net")?;
        let mut parameters = Vec::new();
        if self.sign("(").is_some() {
            loop {
                let name = self.name("the name of a parameter")?;
                self.expect(":=")?;
                let minus = self.sign("-").is_some();
                let value = self.number("the value of the parameter")?;
                parameters.push(Parameter { name, value: if minus { -value } else { value } });
                if self.sign(",").is_none() {
                    break;
                }
            }
            self.expect(")")?;
        }
        self.expect("{")?;
        let mut net = Net { name, parameters, definitions: Vec::new(), properties: Vec::new() };
        loop {
            if self.findings.is_full() {
                return Ok(net);
            }
            if self.sign("}").is_some() {
                break;
            }
            if self.peek().is_none() {
                let _: Parsed<()> = self.missing("`}` at the end of the net");
                return Ok(net);
            }
            let begin = self.at;
            if self.at_property() {
                match self.property() {
                    Ok(property) => net.properties.push(property),
                    Err(Stuck) => self.recover_outside(begin),
                }
                continue;
            }
            match self.definition() {
                Ok(definition) => net.definitions.push(definition),
                Err(Stuck) => self.recover_outside(begin),
            }
        }
        if self.at_property() {
            net.properties.extend(self.property_file());
        } else if self.peek().is_some() {
            let _: Parsed<()> = self.missing("the end of the file");
        }
        Ok(net)
    }

    fn property_file(&mut self) -> Vec<Property<'t>> {
        let mut found = Vec::new();
        while self.peek().is_some() && !self.findings.is_full() {
            let begin = self.at;
            match self.property() {
                Ok(property) => found.push(property),
                Err(Stuck) => {
                    self.at = self.at.max(begin + 1);
                    while self.peek().is_some() && !self.at_property() {
                        self.at += 1;
                    }
                }
            }
        }
        found
    }

    fn at_property(&self) -> bool {
        matches!(self.slice(0), "state" | "ltl") && self.slice(1) == "property"
    }

    fn property(&mut self) -> Parsed<Property<'t>> {
        if !self.at_property() {
            return self.missing("`state property` or `ltl property`");
        }
        let is_state = self.slice(0) == "state";
        self.at += 2;
        let name = self.name("the name of the property")?;
        self.expect(":")?;
        let goal = if is_state { self.state_property()? } else { self.ltl_property()? };
        Ok(Property { name, goal })
    }

    fn state_property(&mut self) -> Parsed<PropertyGoal<'t>> {
        if self.slice(0) != "reject" {
            return self.missing("`reject`");
        }
        self.at += 1;
        let reject = self.name("a proposition or `deadlock`")?;
        self.expect(";")?;
        let mut accept = Vec::new();
        while self.slice(0) == "accept" {
            self.at += 1;
            accept.push(self.name("a proposition or `deadlock`")?);
            self.expect(";")?;
        }
        Ok(PropertyGoal::State { reject, accept })
    }

    /// Reads a formula of linear temporal logic. Which operator binds tighter is of no
    /// interest as long as formulas are refused; operands and operators take turns.
    fn ltl_property(&mut self) -> Parsed<PropertyGoal<'t>> {
        let mut names = Vec::new();
        let mut open = Vec::new();
        loop {
            // An operand, behind any number of prefixes.
            let here = self.here();
            if self.signs(&["[", "]"]) || self.signs(&["<", ">"]) || self.keyword("not") {
                continue;
            }
            if self.sign("(").is_some() {
                open.push(here);
                continue;
            }
            let name = self.name("a proposition, `not`, `[]`, `<>` or `(`")?;
            if !matches!(name.text, "true" | "false") {
                names.push(name);
            }
            while !open.is_empty() && self.sign(")").is_some() {
                open.pop();
            }
            let is_operator = self.keyword("or")
                || self.keyword("and")
                || self.signs(&["=", ">"])
                || self.signs(&["<=", ">"])
                || (self.slice(0) == "until" && {
                    self.at += 1;
                    true
                });
            if is_operator {
                continue;
            }
            if !open.is_empty() {
                return self.missing("`)` or an operator");
            }
            self.expect(";")?;
            return Ok(PropertyGoal::Ltl(names));
        }
    }

    /// Passes these signs if they are next and touch each other.
    pub(super) fn signs(&mut self, signs: &[&str]) -> bool {
        let found = self.touching(signs);
        if found {
            self.at += signs.len();
        }
        found
    }

    /// Whether these signs are next and touch each other.
    pub(super) fn touching(&self, signs: &[&str]) -> bool {
        (0..signs.len()).all(|index| {
            self.tokens.get(self.at + index).is_some_and(|token| {
                token.kind == Kind::Sign
                    && &self.text[token.span.range()] == signs[index]
                    && (index == 0 || self.tokens[self.at + index - 1].span.end == token.span.start)
            })
        })
    }

    // Declarations.

    fn definition(&mut self) -> Parsed<Definition<'t>> {
        let start = self.here().start;
        let word = self.slice(0);
        if !DECLARATIONS.contains(&word) {
            let help = did_you_mean(word, DECLARATIONS).map(|close| format!("did you mean `{close}`?"));
            return self.unexpected("a declaration", help);
        }
        self.at += 1;
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
        let word = self.slice(0);
        let shape = match word {
            "range" => TypeShape::Range(self.range()?),
            "mod" | "%" => {
                self.at += 1;
                TypeShape::Mod(self.expression()?)
            }
            "enum" => {
                self.at += 1;
                self.expect("(")?;
                let constants = self.list(",", |parser| parser.name("a constant of the enumeration"))?;
                self.expect(")")?;
                TypeShape::Enum(constants)
            }
            "vector" => {
                self.at += 1;
                self.expect("[")?;
                let index = self.list(",", |parser| parser.name("the type of an index"))?;
                self.expect("]")?;
                self.expect_keyword("of")?;
                TypeShape::Vector { index, element: self.name("the type of the elements")? }
            }
            "struct" => {
                self.at += 1;
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
                self.at += 1;
                self.expect("[")?;
                let index = self.name("the type of the index")?;
                self.expect("]")?;
                self.expect_keyword("of")?;
                let element = self.name("the type of the elements")?;
                TypeShape::List { index, element, capacity: self.with_capacity()? }
            }
            "set" => {
                self.at += 1;
                self.expect_keyword("of")?;
                let element = self.name("the type of the elements")?;
                TypeShape::Set { element, capacity: self.with_capacity()? }
            }
            _ => {
                let words = ["range", "mod", "enum", "vector", "struct", "list", "set"];
                let help = match did_you_mean(word, words) {
                    Some(close) => format!("did you mean `{close}`?"),
                    None if self.kind(0) == Some(Kind::Name) => {
                        format!("for a type with the values of `{word}`, write `subtype {} : {word};`", name.text)
                    }
                    None => "a type is one of range, mod, enum, vector, struct, list and set".into(),
                };
                return self.unexpected("a type definition", Some(help));
            }
        };
        let span = Span::new(start, self.last_end());
        self.expect(";")?;
        Ok(TypeDef { name, shape, span })
    }

    fn with_capacity(&mut self) -> Parsed<Expr<'t>> {
        self.expect_keyword("with")?;
        self.expect_keyword("capacity")?;
        self.expression()
    }

    fn range(&mut self) -> Parsed<Range<'t>> {
        let start = self.here().start;
        self.expect_keyword("range")?;
        let low = self.expression()?;
        self.expect("..")?;
        let high = self.expression()?;
        Ok(Range { low, high, span: Span::new(start, self.last_end()) })
    }

    fn optional_range(&mut self) -> Parsed<Option<Range<'t>>> {
        if self.slice(0) == "range" { self.range().map(Some) } else { Ok(None) }
    }

    fn subtype_definition(&mut self) -> Parsed<SubtypeDef<'t>> {
        let name = self.name("the name of the subtype")?;
        self.expect(":")?;
        let parent = self.name("the type that it is a part of")?;
        let range = self.optional_range()?;
        self.expect(";")?;
        Ok(SubtypeDef { name, parent, range })
    }

    /// `T x := e;`, behind `constant` or inside `let`.
    fn constant_definition(&mut self, what: &str) -> Parsed<ConstantDef<'t>> {
        let type_name = self.name(what)?;
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
        let span = Span::new(start, self.last_end());
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
        self.block(|parser| {
            let span = parser.here();
            let word = parser.slice(0);
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
            parser.at += 1;
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
        if !has_domain {
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
            let span = parser.here();
            let word = parser.slice(0);
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
            parser.at += 1;
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
            arcs.push(Arc { place, label, span: Span::new(place.span.start, parser.last_end()) });
            parser.expect(";").map(|_| ())
        })
    }

    fn label(&mut self) -> Parsed<Label<'t>> {
        self.list("+", Self::tuple)
    }

    fn tuple(&mut self) -> Parsed<Tuple<'t>> {
        let start = self.here().start;
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
            if matches!(self.slice(0), ";" | "}" | "for" | "if" | "") {
                return self.missing("`<(` or `epsilon`");
            }
            factor = Some(self.factor()?);
            if self.slice(0) != "*" {
                let help = (self.slice(0) == "+" || self.slice(0) == "-")
                    .then(|| "a factor that is a sum stands in parentheses: `(N - 1) * <( x )>`".to_string());
                return self.unexpected("`*`", help);
            }
            self.at += 1;
        }
        let components = if self.keyword("epsilon") {
            None
        } else if self.signs(&["<", "("]) {
            let components = self.expressions()?;
            if !self.signs(&[")", ">"]) {
                return self.missing("`,` or `)>`");
            }
            Some(components)
        } else {
            return self.missing("`<(` or `epsilon`");
        };
        Ok(Tuple { iterations, condition, factor, components, span: Span::new(start, self.last_end()) })
    }

    /// Whether the tuple itself begins `ahead` tokens further on.
    pub(super) fn at_tuple(&self, ahead: usize) -> bool {
        self.slice(ahead) == "epsilon" || (self.slice(ahead) == "<" && self.slice(ahead + 1) == "(")
    }

    // Statements.

    fn statement(&mut self) -> Parsed<Statement<'t>> {
        self.enter()?;
        let start = self.here().start;
        let node = self.statement_node()?;
        self.depth -= 1;
        Ok(Statement { node, span: Span::new(start, self.last_end()) })
    }

    fn statement_node(&mut self) -> Parsed<StatementNode<'t>> {
        if self.sign("{").is_some() {
            return self.statement_block();
        }
        if self.kind(0) == Some(Kind::Name) {
            let target = self.assigned()?;
            self.expect(":=")?;
            let value = self.expression()?;
            self.expect(";")?;
            return Ok(StatementNode::Assign(target, value));
        }
        let word = self.slice(0);
        if !matches!(word, "if" | "case" | "while" | "for" | "return" | "assert" | "print") {
            return self.missing("a statement");
        }
        self.at += 1;
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
                let has_text = self.kind(0) == Some(Kind::Text);
                self.at += usize::from(has_text);
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
            let span = self.here();
            if self.keyword("default") {
                self.expect(":")?;
                default = Some(Box::new(self.statement()?));
                if self.slice(0) != "}" {
                    self.findings.add(|| Diagnostic::at(span, "`default` must be the last case"));
                }
                continue;
            }
            if self.slice(0) == ";" || self.peek().is_none() {
                return self.missing("a case, `default` or `}`");
            }
            let label = self.expression()?;
            self.expect(":")?;
            arms.push((label, self.statement()?));
        }
        Ok(StatementNode::Case { subject, arms, default })
    }

    fn statement_block(&mut self) -> Parsed<StatementNode<'t>> {
        let open = self.last_end();
        let mut locals = Vec::new();
        let mut statements = Vec::new();
        self.block(|parser| {
            let is_constant = parser.slice(0) == "constant";
            if !is_constant && !(parser.kind(0) == Some(Kind::Name) && parser.kind(1) == Some(Kind::Name)) {
                statements.push(parser.statement()?);
                return Ok(());
            }
            let span = parser.here();
            parser.at += usize::from(is_constant);
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
        if statements.is_empty() {
            let span = Span::new(open - 1, self.last_end());
            self.findings.add(|| Diagnostic::at(span, "a block needs at least one statement"));
        }
        Ok(StatementNode::Block(locals, statements))
    }

    // Iterations.

    pub(super) fn iterations(&mut self) -> Parsed<Vec<Iteration<'t>>> {
        self.list(",", Self::iteration)
    }

    fn iteration(&mut self) -> Parsed<Iteration<'t>> {
        let name = self.name("the name of a variable")?;
        self.expect_keyword("in")?;
        let domain = self.expression()?;
        let range = self.optional_range()?;
        Ok(Iteration { name, domain, range })
    }

    // Pieces.

    /// Reads pieces up to and including `}`. After a wrong one it goes on behind the next `;`.
    fn block(&mut self, mut piece: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        while self.sign("}").is_none() {
            if self.peek().is_none() || self.at_landmark() {
                return self.missing("`}`");
            }
            let (begin, depth) = (self.at, self.depth);
            if piece(self).is_err() {
                self.depth = depth;
                if self.findings.is_full() || !self.recover_inside(begin) {
                    return Err(Stuck);
                }
            }
        }
        Ok(())
    }

    pub(super) fn list<T>(&mut self, separator: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.sign(separator).is_some() {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Whether a declaration begins here that can begin nowhere but outside.
    fn at_landmark(&self) -> bool {
        LANDMARKS.contains(&self.slice(0)) && self.kind(1).is_some_and(|kind| kind != Kind::Sign)
    }

    /// Goes to where the next piece of a block may begin: behind a `;` or a block of its own, or
    /// before the `}` that ends it. False when the block seems to have ended.
    fn recover_inside(&mut self, begin: usize) -> bool {
        let stuck = self.at.max(begin);
        self.at = begin;
        let mut open = 0usize;
        while self.peek().is_some() && !(self.at > begin && self.at_landmark()) {
            let passed = self.at >= stuck;
            match self.slice(0) {
                "{" => open += 1,
                "}" if open == 0 => return true,
                "}" => {
                    open -= 1;
                    if open == 0 && passed {
                        self.at += 1;
                        return true;
                    }
                }
                ";" if open == 0 && passed => {
                    self.at += 1;
                    return true;
                }
                _ => {}
            }
            self.at += 1;
        }
        false
    }

    /// Goes to where the next declaration may begin.
    fn recover_outside(&mut self, begin: usize) {
        self.depth = 0;
        let stuck = self.at.max(begin + 1);
        self.at = begin + 1;
        let mut open = 0usize;
        while self.peek().is_some() {
            let word = self.slice(0);
            if self.at >= stuck && (self.at_landmark() || (open == 0 && DECLARATIONS.contains(&word))) {
                return;
            }
            match word {
                "{" => open += 1,
                "}" if open == 0 && self.at >= stuck => return,
                "}" => open = open.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Counts one level of nesting; whoever calls it counts it off again.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        if self.depth >= MAX_DEPTH {
            return self.too_deep(self.here());
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn too_deep<T>(&mut self, span: Span) -> Parsed<T> {
        self.stuck(
            Diagnostic::at(span, format!("this nests deeper than {MAX_DEPTH} levels"))
                .help("name a part of it: a constant, a `let` variable or a function"),
        )
    }

    pub(super) fn name(&mut self, what: &str) -> Parsed<Name<'t>> {
        if self.kind(0) == Some(Kind::Name) {
            let name = Name { text: self.slice(0), span: self.here() };
            self.at += 1;
            return Ok(name);
        }
        let word = self.slice(0);
        let help = (is_reserved(word)).then(|| format!("`{word}` is reserved; choose another name"));
        self.unexpected(what, help)
    }

    fn quoted(&mut self) -> Parsed<Name<'t>> {
        if self.kind(0) != Some(Kind::Text) {
            return self.missing("a text in quotes");
        }
        let (slice, span) = (self.slice(0), self.here());
        self.at += 1;
        Ok(Name { text: &slice[1..slice.len() - 1], span })
    }

    /// A literal. The largest is the smallest `int` without its sign.
    pub(super) fn number(&mut self, what: &str) -> Parsed<i64> {
        if self.kind(0) != Some(Kind::Number) {
            return self.missing(what);
        }
        let (digits, span) = (self.slice(0), self.here());
        self.at += 1;
        match digits.parse::<i64>() {
            Ok(value) if value <= 1 << 31 => Ok(value),
            _ => {
                self.findings.add(|| {
                    Diagnostic::at(span, format!("`{}` is too large", shortened(digits)))
                        .help("numbers go up to 2147483647")
                });
                Ok(0)
            }
        }
    }

    /// Passes this sign if it is next, and says where it was.
    pub(super) fn sign(&mut self, sign: &str) -> Option<Span> {
        if self.slice(0) != sign || self.kind(0) != Some(Kind::Sign) {
            return None;
        }
        let span = self.here();
        self.at += 1;
        Some(span)
    }

    /// Passes this reserved word if it is next.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        let found = self.slice(0) == word;
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Parsed<Span> {
        match self.sign(sign) {
            Some(span) => Ok(span),
            None => self.missing(&format!("`{sign}`")),
        }
    }

    pub(super) fn expect_keyword(&mut self, word: &str) -> Parsed<()> {
        if self.keyword(word) { Ok(()) } else { self.missing(&format!("`{word}`")) }
    }

    pub(super) fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    pub(super) fn kind(&self, ahead: usize) -> Option<Kind> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    /// The text of a token further on; nothing behind the end.
    pub(super) fn slice(&self, ahead: usize) -> &'t str {
        self.tokens.get(self.at + ahead).map_or("", |token| &self.text[token.span.range()])
    }

    pub(super) fn here(&self) -> Span {
        self.peek().map_or(Span::at(self.last_end()), |token| token.span)
    }

    pub(super) fn last_end(&self) -> usize {
        let before = self.at.min(self.tokens.len()).checked_sub(1);
        before.map_or(0, |before| self.tokens[before].span.end)
    }

    pub(super) fn stuck<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.findings.add(|| diagnostic);
        Err(Stuck)
    }

    pub(super) fn missing<T>(&mut self, what: &str) -> Parsed<T> {
        self.unexpected(what, None)
    }

    /// Something is expected where something else or nothing is. A `;` that is missing at the
    /// end of a line is missed there, not at the start of the next.
    pub(super) fn unexpected<T>(&mut self, what: &str, help: Option<String>) -> Parsed<T> {
        let end = self.last_end();
        let diagnostic = match self.peek() {
            None => Diagnostic::at(Span::at(end), format!("expected {what}, but the file ends")),
            Some(token) => {
                let found = format!("expected {what}, found `{}`", shortened(self.slice(0)));
                let gap = &self.text[end..token.span.start];
                if matches!(what, "`;`" | "`)`" | "`]`") && gap.contains('\n') {
                    Diagnostic::at(Span::at(end), found)
                } else {
                    Diagnostic::at(token.span, found)
                }
            }
        };
        self.stuck(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        })
    }
}
