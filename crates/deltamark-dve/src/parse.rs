//! Parser: declarations, processes and transitions.
//!
//! In: the text of a model. Out: the syntax tree, and diagnostics with their spans. What stays true: after an
//! error parsing resumes at a synchronising token (the end of the declaration, of the section, of the transition),
//! so that several errors are reported at once; recursion is no deeper than [`MAX_NESTING`], and no expression
//! deeper than [`MAX_DEPTH`]. Expressions are parsed in `expression.rs`.

use crate::ast::{Accept, Channel, Declaration, Expr, Initial, Lvalue, Model, Name, Node, Process, Sync, Transition};
use crate::ir::Type;
use crate::token::{self, Token};
use deltamark_core::parser::Cursor;
use deltamark_core::{Control, Diagnostic, Findings, Span};

/// The maximum nesting of parentheses, indices and signs.
pub const MAX_NESTING: usize = 400;

/// The maximum depth of an expression. A chain `a + b + c` has a level for each sign.
pub const MAX_DEPTH: u32 = 1000;

/// Parsing cannot continue here; the diagnostic has been recorded.
pub(crate) struct Stop;

pub(crate) type Parsed<T> = Result<T, Stop>;

/// Reads a model, as far as `control` lets it.
pub(crate) fn parse<'t>(text: &'t str, control: &Control) -> Result<Model<'t>, Vec<Diagnostic>> {
    let mut findings = Findings::under(control);
    let cursor = Cursor::new(text, token::tokens(text, &mut findings)).ending_at(text.trim_end().len());
    let mut parser = Parser { cursor, nesting: 0, in_body: false, findings, model: Model::default() };
    if parser.findings.is_empty() {
        parser.model();
    }
    parser.findings.or_as_found(parser.model)
}

pub(crate) struct Parser<'t> {
    pub cursor: Cursor<'t, Token>,
    /// How many operands are being read within each other.
    pub nesting: usize,
    /// Whether the `{` of the current transition has been consumed.
    in_body: bool,
    findings: Findings,
    model: Model<'t>,
}

/// Synchronising tokens, at which parsing resumes after an error.
const SECTIONS: &[Token] =
    &[Token::State, Token::Init, Token::Commit, Token::Accept, Token::Assert, Token::Trans, Token::Close];
const DECLARATIONS: &[Token] = &[Token::Byte, Token::Int, Token::Const, Token::Channel];

impl<'t> Parser<'t> {
    fn wrong(&mut self, diagnostic: Diagnostic) {
        self.findings.add(|| diagnostic);
    }

    pub fn stop<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.wrong(diagnostic);
        Err(Stop)
    }

    fn found(&self) -> String {
        match self.cursor.peek() {
            None => "the end of the file".into(),
            Some(Token::Word | Token::Number) => format!("`{}`", &self.cursor.text[self.cursor.here().range()]),
            Some(_) => {
                let word = &self.cursor.text[self.cursor.here().range()];
                let keyword = word.starts_with(|first: char| first.is_ascii_alphabetic());
                if keyword { format!("the keyword `{word}`") } else { format!("`{word}`") }
            }
        }
    }

    pub fn unexpected<T>(&mut self, wanted: &str) -> Parsed<T> {
        let diagnostic = Diagnostic::at(self.cursor.here(), format!("expected {wanted}, found {}", self.found()));
        self.stop(diagnostic)
    }

    pub fn expect(&mut self, token: Token, wanted: &str) -> Parsed<()> {
        if self.cursor.take(token) { Ok(()) } else { self.unexpected(wanted) }
    }

    /// The `;` after something that began at token `start`.
    fn semicolon(&mut self, what: &str) -> Parsed<()> {
        if self.cursor.take(Token::Semicolon) {
            return Ok(());
        }
        let diagnostic = match self.cursor.peek() {
            Some(Token::Assign) => Diagnostic::at(self.cursor.here(), "`=` assigns, and cannot stand here")
                .help("compare with `==`; assignments stand behind `effect`"),
            Some(Token::Send) => Diagnostic::at(self.cursor.here(), "`!` cannot stand here")
                .help("`!` only marks a send; negation is written `not`, inequality `!=`"),
            _ => {
                let place = Span::at(self.cursor.last_end());
                Diagnostic::at(place, format!("expected `;` behind {what}, found {}", self.found()))
            }
        };
        self.stop(diagnostic)
    }

    /// Skips past the next `;`, or to one of these tokens, whichever comes first. A body in braces is skipped
    /// whole.
    fn recover(&mut self, marks: &[&[Token]]) {
        let mut open = 0;
        while let Some(token) = self.cursor.peek() {
            if open == 0 && marks.iter().any(|marks| marks.contains(&token)) {
                return;
            }
            if matches!(token, Token::Process | Token::System) {
                return;
            }
            self.cursor.at += 1;
            match token {
                Token::Open => open += 1,
                Token::Close if open > 0 => open -= 1,
                Token::Semicolon if open == 0 => return,
                _ => {}
            }
        }
    }

    fn model(&mut self) {
        let mut system = None;
        while let Some(token) = self.cursor.peek() {
            if self.findings.is_full() {
                return;
            }
            let start = self.cursor.at;
            let result = match token {
                Token::Byte | Token::Int | Token::Const => {
                    let mut list = std::mem::take(&mut self.model.declarations);
                    let result = self.declaration(&mut list);
                    self.model.declarations = list;
                    result
                }
                Token::Channel => self.channels(),
                Token::Process => self.process(),
                Token::System => {
                    let result = self.system();
                    system = Some(start);
                    if result.is_ok() && self.cursor.at < self.cursor.tokens.len() {
                        let place = self.cursor.here();
                        self.wrong(
                            Diagnostic::at(place, format!("{} stands behind the `system` line", self.found()))
                                .help("the `system` line is the last of a model"),
                        );
                        return;
                    }
                    result
                }
                _ => self.unexpected("a declaration, `process` or `system`"),
            };
            if result.is_err() {
                self.cursor.at = self.cursor.at.max(start + 1);
                self.recover(&[DECLARATIONS]);
            }
        }
        if system.is_none() && !self.findings.is_full() {
            let place = self.cursor.here();
            self.wrong(
                Diagnostic::at(place, "the model has no `system` line")
                    .help("end it with `system async;` or `system sync;`"),
            );
        }
    }

    pub fn name(&mut self, what: &str) -> Parsed<Name<'t>> {
        let span = self.cursor.here();
        if self.cursor.take(Token::Word) {
            return Ok(Name { text: &self.cursor.text[span.range()], span });
        }
        let keyword = self.cursor.text[span.range()].starts_with(|first: char| first.is_ascii_alphabetic());
        let diagnostic = Diagnostic::at(span, format!("expected {what}, found {}", self.found()));
        let help = "this word is part of the language and cannot be a name";
        let keyword = keyword && self.cursor.peek() != Some(Token::Number);
        self.stop(if keyword { diagnostic.help(help) } else { diagnostic })
    }

    fn names(&mut self, what: &str) -> Parsed<Vec<Name<'t>>> {
        let mut names = vec![self.name(what)?];
        while self.cursor.take(Token::Comma) {
            names.push(self.name(what)?);
        }
        Ok(names)
    }

    fn kind(&mut self) -> Parsed<Type> {
        match self.cursor.peek() {
            Some(Token::Byte) => {
                self.cursor.at += 1;
                Ok(Type::Byte)
            }
            Some(Token::Int) => {
                self.cursor.at += 1;
                Ok(Type::Int)
            }
            _ => self.unexpected("`byte` or `int`"),
        }
    }

    fn declaration(&mut self, list: &mut Vec<Declaration<'t>>) -> Parsed<()> {
        let constant = self.cursor.take(Token::Const);
        let kind = self.kind()?;
        loop {
            let name = self.name("the name of a variable")?;
            let size = self.size()?;
            let initial = if !self.cursor.take(Token::Assign) {
                Initial::None
            } else if self.cursor.peek() == Some(Token::Open) {
                let start = self.cursor.here().start;
                self.cursor.at += 1;
                let mut values = vec![self.expression()?];
                while self.cursor.take(Token::Comma) {
                    values.push(self.expression()?);
                }
                self.expect(Token::Close, "`,` or `}` in the list of values")?;
                Initial::List(values, Span::new(start, self.cursor.last_end()))
            } else {
                Initial::One(self.expression()?)
            };
            list.push(Declaration { constant, kind, name, size, initial });
            if !self.cursor.take(Token::Comma) {
                break;
            }
        }
        self.semicolon("the declaration")
    }

    pub fn size(&mut self) -> Parsed<Option<Expr<'t>>> {
        if !self.cursor.take(Token::OpenIndex) {
            return Ok(None);
        }
        let size = self.expression()?;
        self.expect(Token::CloseIndex, "`]` behind the size")?;
        Ok(Some(size))
    }

    fn channels(&mut self) -> Parsed<()> {
        self.cursor.at += 1;
        let types = if self.cursor.take(Token::Open) {
            let mut types = vec![self.kind()?];
            while self.cursor.take(Token::Comma) {
                types.push(self.kind()?);
            }
            self.expect(Token::Close, "`,` or `}` in the list of types")?;
            Some(types)
        } else {
            None
        };
        loop {
            let name = self.name("the name of a channel")?;
            let size = self.size()?;
            if types.is_some() && size.is_none() {
                let diagnostic = Diagnostic::at(name.span, format!("the typed channel `{}` has no size", name.text))
                    .help(format!("write `{0}[0]` for one without a buffer, `{0}[4]` for one that holds 4", name.text));
                self.wrong(diagnostic);
            }
            self.model.channels.push(Channel { name, types: types.clone(), size });
            if !self.cursor.take(Token::Comma) {
                break;
            }
        }
        self.semicolon("the channels")
    }

    fn system(&mut self) -> Parsed<()> {
        self.cursor.at += 1;
        match self.cursor.peek() {
            Some(Token::Async) => self.cursor.at += 1,
            Some(Token::Sync) => {
                self.cursor.at += 1;
                self.model.synchronous = true;
            }
            _ => return self.unexpected("`async` or `sync`"),
        }
        if self.cursor.take(Token::Property) {
            self.model.property = Some(self.name("the name of the property process")?);
        }
        self.semicolon("the `system` line")
    }

    fn process(&mut self) -> Parsed<()> {
        self.cursor.at += 1;
        let name = self.name("the name of a process")?;
        if self.cursor.peek() == Some(Token::OpenRound) {
            let place = self.cursor.here();
            self.wrong(
                Diagnostic::at(place, "processes with parameters are not part of the language here")
                    .help("write the process once for each instance, or use macros (`.mdve`)"),
            );
            self.recover(&[&[Token::Open]]);
        }
        self.expect(Token::Open, "`{` behind the name of the process")?;
        let mut process = Process {
            name,
            declarations: Vec::new(),
            states: Vec::new(),
            init: None,
            commit: Vec::new(),
            accept: Accept::None,
            asserts: Vec::new(),
            transitions: Vec::new(),
        };
        let mut seen: Vec<Token> = Vec::new();
        loop {
            if self.findings.is_full() {
                break;
            }
            let Some(token) = self.cursor.peek() else {
                let diagnostic = Diagnostic::at(self.cursor.here(), "the model ends inside a process")
                    .help(format!("close process `{}` with `}}`", name.text));
                self.wrong(diagnostic);
                break;
            };
            if SECTIONS.contains(&token) && seen.contains(&token) {
                let word = &self.cursor.text[self.cursor.here().range()];
                let diagnostic =
                    Diagnostic::at(self.cursor.here(), format!("process `{}` has a second `{word}`", name.text))
                        .help(format!("put all of it behind one `{word}`"));
                self.wrong(diagnostic);
            }
            seen.push(token);
            let start = self.cursor.at;
            let result = match token {
                Token::Close => {
                    self.cursor.at += 1;
                    break;
                }
                Token::Byte | Token::Int | Token::Const => self.declaration(&mut process.declarations),
                Token::Channel => {
                    let place = self.cursor.here();
                    self.stop(
                        Diagnostic::at(place, "channels are declared outside of processes")
                            .help("move the declaration in front of the first process"),
                    )
                }
                Token::Process | Token::System => {
                    let place = self.cursor.here();
                    self.wrong(
                        Diagnostic::at(place, format!("process `{}` is not closed", name.text))
                            .help("write `}` in front of this"),
                    );
                    break;
                }
                _ => self.section(&mut process),
            };
            if result.is_err() {
                self.cursor.at = self.cursor.at.max(start + 1);
                self.recover(&[SECTIONS, DECLARATIONS]);
            }
        }
        self.model.processes.push(process);
        Ok(())
    }

    fn section(&mut self, process: &mut Process<'t>) -> Parsed<()> {
        let token = self.cursor.peek();
        self.cursor.at += 1;
        match token {
            Some(Token::State) => process.states.extend(self.names("the name of a state")?),
            Some(Token::Init) => process.init = Some(self.name("the name of the initial state")?),
            Some(Token::Commit) => process.commit.extend(self.names("the name of a state")?),
            Some(Token::Accept) => process.accept = self.accept()?,
            Some(Token::Assert) => loop {
                let state = self.name("the name of a state")?;
                self.expect(Token::Colon, "`:` behind the state")?;
                process.asserts.push((state, self.expression()?));
                if !self.cursor.take(Token::Comma) {
                    break;
                }
            },
            Some(Token::Trans) => return self.transitions(process),
            _ => {
                self.cursor.at -= 1;
                return self.unexpected("a declaration, `state`, `init`, `commit`, `accept`, `assert`, `trans` or `}`");
            }
        }
        self.semicolon("this")
    }

    fn accept(&mut self) -> Parsed<Accept<'t>> {
        let kind = self.cursor.peek();
        match kind {
            Some(Token::Genbuchi | Token::Muller) => {
                self.cursor.at += 1;
                let mut sets = Vec::new();
                loop {
                    self.expect(Token::OpenRound, "`(` in front of a set of states")?;
                    sets.push(self.set(Token::CloseRound)?);
                    self.expect(Token::CloseRound, "`)` behind the set of states")?;
                    if !self.cursor.take(Token::Comma) {
                        break;
                    }
                }
                Ok(if kind == Some(Token::Muller) { Accept::Muller(sets) } else { Accept::Generalised(sets) })
            }
            Some(Token::Rabin | Token::Streett) => {
                self.cursor.at += 1;
                let mut pairs = Vec::new();
                loop {
                    self.expect(Token::OpenRound, "`(` in front of a pair of sets")?;
                    let first = self.set(Token::Semicolon)?;
                    self.expect(Token::Semicolon, "`;` between the two sets of states")?;
                    let second = self.set(Token::CloseRound)?;
                    self.expect(Token::CloseRound, "`)` behind the pair of sets")?;
                    pairs.push((first, second));
                    if !self.cursor.take(Token::Comma) {
                        break;
                    }
                }
                Ok(if kind == Some(Token::Rabin) { Accept::Rabin(pairs) } else { Accept::Streett(pairs) })
            }
            _ => {
                self.cursor.take(Token::Buchi);
                Ok(Accept::Buchi(self.names("the name of a state")?))
            }
        }
    }

    fn set(&mut self, end: Token) -> Parsed<Vec<Name<'t>>> {
        if self.cursor.peek() == Some(end) { Ok(Vec::new()) } else { self.names("the name of a state") }
    }

    fn transitions(&mut self, process: &mut Process<'t>) -> Parsed<()> {
        let mut before: Option<Name<'t>> = None;
        // A lone `;` or `}` ends an empty list.
        if self.cursor.take(Token::Semicolon) {
            return Ok(());
        }
        loop {
            match self.transition(before) {
                Ok(transition) => {
                    before = Some(transition.from);
                    process.transitions.push(transition);
                }
                Err(Stop) => {
                    if self.findings.is_full() || !self.skip_transition() {
                        return Err(Stop);
                    }
                }
            }
            if !self.cursor.take(Token::Comma) {
                break;
            }
        }
        if matches!(self.cursor.peek(), Some(Token::Word | Token::Arrow)) {
            let place = Span::at(self.cursor.last_end());
            self.wrong(Diagnostic::at(place, "expected `,` between transitions, or `;` behind the last"));
            // Most likely the comma was forgotten: what follows is read too.
            return self.transitions(process);
        }
        self.semicolon("the transitions")
    }

    /// Skips past the body of a transition that could not be parsed; returns whether more may follow.
    fn skip_transition(&mut self) -> bool {
        let mut open = usize::from(self.in_body);
        while let Some(token) = self.cursor.peek() {
            match token {
                Token::Open => open += 1,
                Token::Close if open == 0 => return false,
                Token::Close => {
                    open -= 1;
                    if open == 0 {
                        self.cursor.at += 1;
                        return matches!(
                            self.cursor.peek(),
                            Some(Token::Comma | Token::Semicolon | Token::Word | Token::Arrow)
                        );
                    }
                }
                Token::Process | Token::System | Token::Trans => return false,
                _ => {}
            }
            self.cursor.at += 1;
        }
        false
    }

    fn transition(&mut self, before: Option<Name<'t>>) -> Parsed<Transition<'t>> {
        self.in_body = false;
        let start = self.cursor.here().start;
        let from = if self.cursor.peek() == Some(Token::Arrow) {
            let Some(before) = before else {
                let place = self.cursor.here();
                return self.stop(
                    Diagnostic::at(place, "the first transition has no state in front of `->`")
                        .help("only a later one may leave it out: it then starts where the one before it starts"),
                );
            };
            before
        } else {
            self.name("a transition `from -> to { … }`")?
        };
        self.expect(Token::Arrow, "`->` in the transition")?;
        let to = self.name("the state that the transition leads to")?;
        self.expect(Token::Open, "`{` in front of guard, sync and effect")?;
        self.in_body = true;
        let mut transition =
            Transition { from, to, guards: Vec::new(), sync: None, effects: Vec::new(), span: Span::at(start) };
        let mut stage = 0;
        while !self.cursor.take(Token::Close) {
            let (place, token) = (self.cursor.here(), self.cursor.peek());
            let (number, what) = match token {
                Some(Token::Guard) => (1, "guard"),
                Some(Token::Sync) => (2, "sync"),
                Some(Token::Effect) => (3, "effect"),
                _ => return self.unexpected("`guard`, `sync`, `effect` or `}`"),
            };
            if number <= stage {
                let message = if number == stage { "comes twice" } else { "comes too late" };
                let diagnostic = Diagnostic::at(place, format!("`{what}` {message}"))
                    .help("a transition has one `guard`, one `sync` and one `effect` at most, in this order");
                return self.stop(diagnostic);
            }
            stage = number;
            self.cursor.at += 1;
            match number {
                1 => {
                    transition.guards.push(self.expression()?);
                    while self.cursor.take(Token::Comma) {
                        transition.guards.push(self.expression()?);
                    }
                }
                2 => transition.sync = Some(self.sync()?),
                _ => loop {
                    transition.effects.push(self.assignment()?);
                    if !self.cursor.take(Token::Comma) {
                        break;
                    }
                },
            }
            self.semicolon(&format!("`{what}`"))?;
        }
        transition.span = Span::new(start, self.cursor.last_end());
        Ok(transition)
    }

    fn sync(&mut self) -> Parsed<Sync<'t>> {
        let channel = self.name("the name of a channel")?;
        let send = match self.cursor.peek() {
            Some(Token::Send) => true,
            Some(Token::Receive) => false,
            Some(Token::Differ) => {
                let place = self.cursor.here();
                return self.stop(
                    Diagnostic::at(place, "expected `!` or `?` behind the channel, found `!=`")
                        .help("put a blank between `!` and `=`, or leave the `=` out"),
                );
            }
            _ => return self.unexpected("`!` or `?` behind the channel"),
        };
        self.cursor.at += 1;
        let mut values = Vec::new();
        if self.cursor.take(Token::Open) {
            loop {
                values.push(self.expression()?);
                if !self.cursor.take(Token::Comma) {
                    break;
                }
            }
            self.expect(Token::Close, "`,` or `}` in the list of values")?;
        } else if self.cursor.peek() != Some(Token::Semicolon) {
            values.push(self.expression()?);
        }
        if send {
            return Ok(Sync::Send(channel, values));
        }
        let mut targets = Vec::with_capacity(values.len());
        for value in values {
            targets.push(match value.node {
                Node::Name(name) if name.span == value.span => Lvalue { name, index: None },
                Node::Index(name, index) if name.span.start == value.span.start => Lvalue { name, index: Some(*index) },
                _ => {
                    return self.stop(
                        Diagnostic::at(value.span, "a value is received into a variable or an element of an array")
                            .help("compare what was received in the guard of the next transition"),
                    );
                }
            });
        }
        Ok(Sync::Receive(channel, targets))
    }

    fn assignment(&mut self) -> Parsed<(Lvalue<'t>, Expr<'t>)> {
        let name = self.name("a variable to assign")?;
        let index = self.size()?;
        match self.cursor.peek() {
            Some(Token::Assign) => self.cursor.at += 1,
            Some(Token::Equal) => {
                let place = self.cursor.here();
                return self.stop(Diagnostic::at(place, "`==` compares").help("assign with `=`"));
            }
            _ => return self.unexpected("`=` behind the variable"),
        }
        Ok((Lvalue { name, index }, self.expression()?))
    }
}
