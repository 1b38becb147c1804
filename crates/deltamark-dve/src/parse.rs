//! Tokens into a model.
//!
//! In: the text of a model. Out: the model as it is written, and what is wrong with it and where. What
//! stays true: after a mistake reading goes on behind the next mark that makes sense (the end of the
//! declaration, of the section, of the transition), so that several mistakes are told at once; recursion is no
//! deeper than [`MAX_NESTING`], and no expression deeper than [`MAX_DEPTH`].
//!
//! Expressions are read by climbing the levels of precedence (Pratt 1973, *Top down operator precedence*).

use crate::MAX_FINDINGS;
use crate::ast::{
    Accept, Channel, Declaration, Expr, Initial, Lvalue, Model, Name, Node, Operator, Process, Sync, Transition,
};
use crate::ir::{Binary, Type, Unary};
use crate::token::{self, Token};
use deltamark_core::{Diagnostic, Span};

/// How deeply parentheses, indices and signs may nest.
pub const MAX_NESTING: usize = 400;

/// How many levels an expression may have. A chain `a + b + c` has one a sign.
pub const MAX_DEPTH: u32 = 1000;

/// Reading cannot go on here; the finding that says why has been recorded.
struct Stop;

type Parsed<T> = Result<T, Stop>;

/// Reads a model.
pub(crate) fn parse(text: &str) -> (Model<'_>, Vec<Diagnostic>) {
    let (tokens, findings) = token::tokens(text);
    let mut parser = Parser { text, tokens, at: 0, nesting: 0, in_body: false, findings, model: Model::default() };
    if parser.findings.is_empty() {
        parser.model();
    }
    (parser.model, parser.findings)
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token, Span)>,
    /// The next token.
    at: usize,
    /// How many operands are being read within each other.
    nesting: usize,
    /// Whether the `{` of the transition being read has been taken.
    in_body: bool,
    findings: Vec<Diagnostic>,
    model: Model<'t>,
}

/// Marks at which reading goes on after a mistake.
const SECTIONS: &[Token] =
    &[Token::State, Token::Init, Token::Commit, Token::Accept, Token::Assert, Token::Trans, Token::Close];
const DECLARATIONS: &[Token] = &[Token::Byte, Token::Int, Token::Const, Token::Channel];

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).map(|&(token, _)| token)
    }

    fn here(&self) -> Span {
        match self.tokens.get(self.at) {
            Some(&(_, span)) => span,
            None => Span::at(self.text.trim_end().len()),
        }
    }

    fn last_end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |last| self.tokens[last].1.end)
    }

    /// Takes the next token if it is this one.
    fn take(&mut self, token: Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn stop<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.findings.push(diagnostic);
        Err(Stop)
    }

    fn found(&self) -> String {
        match self.peek() {
            None => "the end of the file".into(),
            Some(Token::Word | Token::Number) => format!("`{}`", &self.text[self.here().range()]),
            Some(_) => {
                let word = &self.text[self.here().range()];
                let keyword = word.starts_with(|first: char| first.is_ascii_alphabetic());
                if keyword { format!("the keyword `{word}`") } else { format!("`{word}`") }
            }
        }
    }

    fn unexpected<T>(&mut self, wanted: &str) -> Parsed<T> {
        let diagnostic = Diagnostic::at(self.here(), format!("expected {wanted}, found {}", self.found()));
        self.stop(diagnostic)
    }

    fn expect(&mut self, token: Token, wanted: &str) -> Parsed<()> {
        if self.take(token) { Ok(()) } else { self.unexpected(wanted) }
    }

    /// The `;` behind something that began at token `start`.
    fn semicolon(&mut self, what: &str) -> Parsed<()> {
        if self.take(Token::Semicolon) {
            return Ok(());
        }
        let diagnostic = match self.peek() {
            Some(Token::Assign) => Diagnostic::at(self.here(), "`=` assigns, and cannot stand here")
                .help("compare with `==`; assignments stand behind `effect`"),
            Some(Token::Send) => Diagnostic::at(self.here(), "`!` cannot stand here")
                .help("`!` only marks a send; negation is written `not`, inequality `!=`"),
            _ => {
                let place = Span::at(self.last_end());
                Diagnostic::at(place, format!("expected `;` behind {what}, found {}", self.found()))
            }
        };
        self.stop(diagnostic)
    }

    /// Skips to behind the next `;`, or to one of these tokens, whichever comes first. A body in braces is skipped whole.
    fn recover(&mut self, marks: &[&[Token]]) {
        let mut open = 0;
        while let Some(token) = self.peek() {
            if open == 0 && marks.iter().any(|marks| marks.contains(&token)) {
                return;
            }
            if matches!(token, Token::Process | Token::System) {
                return;
            }
            self.at += 1;
            match token {
                Token::Open => open += 1,
                Token::Close if open > 0 => open -= 1,
                Token::Semicolon if open == 0 => return,
                _ => {}
            }
        }
    }

    fn full(&self) -> bool {
        self.findings.len() >= MAX_FINDINGS
    }

    fn model(&mut self) {
        let mut system = None;
        while let Some(token) = self.peek() {
            if self.full() {
                return;
            }
            let start = self.at;
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
                    if result.is_ok() && self.at < self.tokens.len() {
                        let place = self.here();
                        self.findings.push(
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
                self.at = self.at.max(start + 1);
                self.recover(&[DECLARATIONS]);
            }
        }
        if system.is_none() && !self.full() {
            let place = self.here();
            self.findings.push(
                Diagnostic::at(place, "the model has no `system` line")
                    .help("end it with `system async;` or `system sync;`"),
            );
        }
    }

    fn name(&mut self, what: &str) -> Parsed<Name<'t>> {
        let span = self.here();
        if self.take(Token::Word) {
            return Ok(Name { text: &self.text[span.range()], span });
        }
        let keyword = self.text[span.range()].starts_with(|first: char| first.is_ascii_alphabetic());
        let diagnostic = Diagnostic::at(span, format!("expected {what}, found {}", self.found()));
        let help = "this word is part of the language and cannot be a name";
        let keyword = keyword && self.peek() != Some(Token::Number);
        self.stop(if keyword { diagnostic.help(help) } else { diagnostic })
    }

    fn names(&mut self, what: &str) -> Parsed<Vec<Name<'t>>> {
        let mut names = vec![self.name(what)?];
        while self.take(Token::Comma) {
            names.push(self.name(what)?);
        }
        Ok(names)
    }

    fn kind(&mut self) -> Parsed<Type> {
        match self.peek() {
            Some(Token::Byte) => {
                self.at += 1;
                Ok(Type::Byte)
            }
            Some(Token::Int) => {
                self.at += 1;
                Ok(Type::Int)
            }
            _ => self.unexpected("`byte` or `int`"),
        }
    }

    fn declaration(&mut self, list: &mut Vec<Declaration<'t>>) -> Parsed<()> {
        let constant = self.take(Token::Const);
        let kind = self.kind()?;
        loop {
            let name = self.name("the name of a variable")?;
            let size = self.size()?;
            let initial = if !self.take(Token::Assign) {
                Initial::None
            } else if self.peek() == Some(Token::Open) {
                let start = self.here().start;
                self.at += 1;
                let mut values = vec![self.expression()?];
                while self.take(Token::Comma) {
                    values.push(self.expression()?);
                }
                self.expect(Token::Close, "`,` or `}` in the list of values")?;
                Initial::List(values, Span::new(start, self.last_end()))
            } else {
                Initial::One(self.expression()?)
            };
            list.push(Declaration { constant, kind, name, size, initial });
            if !self.take(Token::Comma) {
                break;
            }
        }
        self.semicolon("the declaration")
    }

    fn size(&mut self) -> Parsed<Option<Expr<'t>>> {
        if !self.take(Token::OpenIndex) {
            return Ok(None);
        }
        let size = self.expression()?;
        self.expect(Token::CloseIndex, "`]` behind the size")?;
        Ok(Some(size))
    }

    fn channels(&mut self) -> Parsed<()> {
        self.at += 1;
        let types = if self.take(Token::Open) {
            let mut types = vec![self.kind()?];
            while self.take(Token::Comma) {
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
                self.findings.push(diagnostic);
            }
            self.model.channels.push(Channel { name, types: types.clone(), size });
            if !self.take(Token::Comma) {
                break;
            }
        }
        self.semicolon("the channels")
    }

    fn system(&mut self) -> Parsed<()> {
        self.at += 1;
        match self.peek() {
            Some(Token::Async) => self.at += 1,
            Some(Token::Sync) => {
                self.at += 1;
                self.model.synchronous = true;
            }
            _ => return self.unexpected("`async` or `sync`"),
        }
        if self.take(Token::Property) {
            self.model.property = Some(self.name("the name of the property process")?);
        }
        self.semicolon("the `system` line")
    }

    fn process(&mut self) -> Parsed<()> {
        self.at += 1;
        let name = self.name("the name of a process")?;
        if self.peek() == Some(Token::OpenRound) {
            let place = self.here();
            self.findings.push(
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
            if self.full() {
                break;
            }
            let Some(token) = self.peek() else {
                let diagnostic = Diagnostic::at(self.here(), "the model ends inside a process")
                    .help(format!("close process `{}` with `}}`", name.text));
                self.findings.push(diagnostic);
                break;
            };
            if SECTIONS.contains(&token) && seen.contains(&token) {
                let word = &self.text[self.here().range()];
                let diagnostic = Diagnostic::at(self.here(), format!("process `{}` has a second `{word}`", name.text))
                    .help(format!("put all of it behind one `{word}`"));
                self.findings.push(diagnostic);
            }
            seen.push(token);
            let start = self.at;
            let result = match token {
                Token::Close => {
                    self.at += 1;
                    break;
                }
                Token::Byte | Token::Int | Token::Const => self.declaration(&mut process.declarations),
                Token::Channel => {
                    let place = self.here();
                    self.stop(
                        Diagnostic::at(place, "channels are declared outside of processes")
                            .help("move the declaration in front of the first process"),
                    )
                }
                Token::Process | Token::System => {
                    let place = self.here();
                    self.findings.push(
                        Diagnostic::at(place, format!("process `{}` is not closed", name.text))
                            .help("write `}` in front of this"),
                    );
                    break;
                }
                _ => self.section(&mut process),
            };
            if result.is_err() {
                self.at = self.at.max(start + 1);
                self.recover(&[SECTIONS, DECLARATIONS]);
            }
        }
        self.model.processes.push(process);
        Ok(())
    }

    fn section(&mut self, process: &mut Process<'t>) -> Parsed<()> {
        let token = self.peek();
        self.at += 1;
        match token {
            Some(Token::State) => process.states.extend(self.names("the name of a state")?),
            Some(Token::Init) => process.init = Some(self.name("the name of the initial state")?),
            Some(Token::Commit) => process.commit.extend(self.names("the name of a state")?),
            Some(Token::Accept) => process.accept = self.accept()?,
            Some(Token::Assert) => loop {
                let state = self.name("the name of a state")?;
                self.expect(Token::Colon, "`:` behind the state")?;
                process.asserts.push((state, self.expression()?));
                if !self.take(Token::Comma) {
                    break;
                }
            },
            Some(Token::Trans) => return self.transitions(process),
            _ => {
                self.at -= 1;
                return self.unexpected("a declaration, `state`, `init`, `commit`, `accept`, `assert`, `trans` or `}`");
            }
        }
        self.semicolon("this")
    }

    fn accept(&mut self) -> Parsed<Accept<'t>> {
        let kind = self.peek();
        match kind {
            Some(Token::Genbuchi | Token::Muller) => {
                self.at += 1;
                let mut sets = Vec::new();
                loop {
                    self.expect(Token::OpenRound, "`(` in front of a set of states")?;
                    sets.push(self.set(Token::CloseRound)?);
                    self.expect(Token::CloseRound, "`)` behind the set of states")?;
                    if !self.take(Token::Comma) {
                        break;
                    }
                }
                Ok(if kind == Some(Token::Muller) { Accept::Muller(sets) } else { Accept::Generalised(sets) })
            }
            Some(Token::Rabin | Token::Streett) => {
                self.at += 1;
                let mut pairs = Vec::new();
                loop {
                    self.expect(Token::OpenRound, "`(` in front of a pair of sets")?;
                    let first = self.set(Token::Semicolon)?;
                    self.expect(Token::Semicolon, "`;` between the two sets of states")?;
                    let second = self.set(Token::CloseRound)?;
                    self.expect(Token::CloseRound, "`)` behind the pair of sets")?;
                    pairs.push((first, second));
                    if !self.take(Token::Comma) {
                        break;
                    }
                }
                Ok(if kind == Some(Token::Rabin) { Accept::Rabin(pairs) } else { Accept::Streett(pairs) })
            }
            _ => {
                self.take(Token::Buchi);
                Ok(Accept::Buchi(self.names("the name of a state")?))
            }
        }
    }

    fn set(&mut self, end: Token) -> Parsed<Vec<Name<'t>>> {
        if self.peek() == Some(end) { Ok(Vec::new()) } else { self.names("the name of a state") }
    }

    fn transitions(&mut self, process: &mut Process<'t>) -> Parsed<()> {
        let mut before: Option<Name<'t>> = None;
        // A lone `;` or `}` ends an empty list.
        if self.take(Token::Semicolon) {
            return Ok(());
        }
        loop {
            match self.transition(before) {
                Ok(transition) => {
                    before = Some(transition.from);
                    process.transitions.push(transition);
                }
                Err(Stop) => {
                    if self.full() || !self.skip_transition() {
                        return Err(Stop);
                    }
                }
            }
            if !self.take(Token::Comma) {
                break;
            }
        }
        if matches!(self.peek(), Some(Token::Word | Token::Arrow)) {
            let place = Span::at(self.last_end());
            self.findings.push(Diagnostic::at(place, "expected `,` between transitions, or `;` behind the last"));
            // Most likely the comma was forgotten: what follows is read too.
            return self.transitions(process);
        }
        self.semicolon("the transitions")
    }

    /// Skips to behind the body of a transition that could not be read; says whether more may follow.
    fn skip_transition(&mut self) -> bool {
        let mut open = usize::from(self.in_body);
        while let Some(token) = self.peek() {
            match token {
                Token::Open => open += 1,
                Token::Close if open == 0 => return false,
                Token::Close => {
                    open -= 1;
                    if open == 0 {
                        self.at += 1;
                        return matches!(
                            self.peek(),
                            Some(Token::Comma | Token::Semicolon | Token::Word | Token::Arrow)
                        );
                    }
                }
                Token::Process | Token::System | Token::Trans => return false,
                _ => {}
            }
            self.at += 1;
        }
        false
    }

    fn transition(&mut self, before: Option<Name<'t>>) -> Parsed<Transition<'t>> {
        self.in_body = false;
        let start = self.here().start;
        let from = if self.peek() == Some(Token::Arrow) {
            let Some(before) = before else {
                let place = self.here();
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
        while !self.take(Token::Close) {
            let (place, token) = (self.here(), self.peek());
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
            self.at += 1;
            match number {
                1 => {
                    transition.guards.push(self.expression()?);
                    while self.take(Token::Comma) {
                        transition.guards.push(self.expression()?);
                    }
                }
                2 => transition.sync = Some(self.sync()?),
                _ => loop {
                    transition.effects.push(self.assignment()?);
                    if !self.take(Token::Comma) {
                        break;
                    }
                },
            }
            self.semicolon(&format!("`{what}`"))?;
        }
        transition.span = Span::new(start, self.last_end());
        Ok(transition)
    }

    fn sync(&mut self) -> Parsed<Sync<'t>> {
        let channel = self.name("the name of a channel")?;
        let send = match self.peek() {
            Some(Token::Send) => true,
            Some(Token::Receive) => false,
            Some(Token::Differ) => {
                let place = self.here();
                return self.stop(
                    Diagnostic::at(place, "expected `!` or `?` behind the channel, found `!=`")
                        .help("put a blank between `!` and `=`, or leave the `=` out"),
                );
            }
            _ => return self.unexpected("`!` or `?` behind the channel"),
        };
        self.at += 1;
        let mut values = Vec::new();
        if self.take(Token::Open) {
            loop {
                values.push(self.expression()?);
                if !self.take(Token::Comma) {
                    break;
                }
            }
            self.expect(Token::Close, "`,` or `}` in the list of values")?;
        } else if self.peek() != Some(Token::Semicolon) {
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
        match self.peek() {
            Some(Token::Assign) => self.at += 1,
            Some(Token::Equal) => {
                let place = self.here();
                return self.stop(Diagnostic::at(place, "`==` compares").help("assign with `=`"));
            }
            _ => return self.unexpected("`=` behind the variable"),
        }
        Ok((Lvalue { name, index }, self.expression()?))
    }

    fn expression(&mut self) -> Parsed<Expr<'t>> {
        self.climb(0)
    }

    /// Reads an expression whose operators bind at least as tightly as `min`.
    fn climb(&mut self, min: u8) -> Parsed<Expr<'t>> {
        if self.nesting >= MAX_NESTING {
            let place = self.here();
            return self.stop(Diagnostic::at(
                place,
                format!("parentheses, indices and signs nest deeper than {MAX_NESTING} levels"),
            ));
        }
        self.nesting += 1;
        let result = self.operators(min);
        self.nesting -= 1;
        result
    }

    fn operators(&mut self, min: u8) -> Parsed<Expr<'t>> {
        let mut left = self.operand()?;
        while let Some((level, operator)) = self.peek().and_then(level).filter(|&(level, _)| level >= min) {
            self.at += 1;
            let right = self.climb(level + 1)?;
            let depth = left.depth.max(right.depth) + 1;
            let span = Span::new(left.span.start, right.span.end);
            if depth > MAX_DEPTH {
                return self.stop(
                    Diagnostic::at(span, format!("the expression has more than {MAX_DEPTH} levels"))
                        .help("put parentheses around parts of it, so that a long chain becomes a tree"),
                );
            }
            left = Expr { node: Node::Binary(operator, left.into(), right.into()), span, depth };
        }
        Ok(left)
    }

    fn unary(&mut self, operator: Unary, start: usize) -> Parsed<Expr<'t>> {
        self.at += 1;
        // Tighter than all operators between two operands.
        let operand = self.climb(u8::MAX)?;
        let (span, depth) = (Span::new(start, operand.span.end), operand.depth + 1);
        Ok(Expr { node: Node::Unary(operator, operand.into()), span, depth })
    }

    fn operand(&mut self) -> Parsed<Expr<'t>> {
        let span = self.here();
        let number = |value| Ok(Expr { node: Node::Number(value), span, depth: 1 });
        match self.peek() {
            Some(Token::Number) => {
                self.at += 1;
                let text = &self.text[span.range()];
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
                self.at += 1;
                number(1)
            }
            Some(Token::False) => {
                self.at += 1;
                number(0)
            }
            Some(Token::Minus) => self.unary(Unary::Negate, span.start),
            Some(Token::Complement) => self.unary(Unary::Complement, span.start),
            Some(Token::Not) => self.unary(Unary::Not, span.start),
            Some(Token::OpenRound) => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(Token::CloseRound, "an operator or `)`")?;
                Ok(Expr { span: Span::new(span.start, self.last_end()), ..inner })
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
        let (node, depth) = match self.peek() {
            Some(Token::Dot) => {
                self.at += 1;
                (Node::At(name, self.name("the name of a state behind `.`")?), 1)
            }
            Some(Token::Arrow) => {
                self.at += 1;
                let variable = self.name("the name of a variable behind `->`")?;
                let index = self.size()?;
                let depth = index.as_ref().map_or(1, |index| index.depth + 1);
                (Node::Of(name, variable, index.map(Box::new)), depth)
            }
            _ => match self.size()? {
                Some(index) => {
                    let depth = index.depth + 1;
                    (Node::Index(name, index.into()), depth)
                }
                None => (Node::Name(name), 1),
            },
        };
        Ok(Expr { node, span: Span::new(start, self.last_end()), depth })
    }
}

/// How tightly an operator binds, and which it is. All group to the left.
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
