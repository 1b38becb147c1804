//! Parser: the outline of a file, error recovery and shared helpers.
//!
//! In: the text of a net or of a property file, preprocessed. Out: a [`Net`] or properties; errors go to the
//! findings. What stays true: recursion is at most [`MAX_DEPTH`] deep; every loop consumes at least one token
//! per iteration.
//!
//! A hand-written recursive-descent parser. If a piece cannot be parsed, the error is recorded and parsing
//! resumes after the next `;` of the same block, or at the next declaration, so that one error hides few
//! others. Declarations, statements and expressions have files of their own.

use super::syntax::*;
use super::token::{TokenKind, is_reserved, shortened, tokens};
use deltamark_core::Findings;
use deltamark_core::parser::Cursor;
use deltamark_core::{Diagnostic, Span};

/// A piece cannot be parsed; the finding has been recorded.
pub(super) struct Stuck;

pub(super) type Parsed<T> = Result<T, Stuck>;

/// Words that begin a declaration and occur nowhere else.
const LANDMARKS: [&str; 5] = ["place", "transition", "proposition", "subtype", "import"];

/// Words that begin a declaration.
pub(super) const DECLARATIONS: [&str; 8] =
    ["type", "subtype", "constant", "function", "place", "transition", "proposition", "import"];

/// Parses a net. `None` if not even its outline could be parsed.
pub(crate) fn net<'t>(text: &'t str, findings: &mut Findings) -> Option<Net<'t>> {
    Parser::new(text, findings).net().ok()
}

/// Reads a property file.
pub(crate) fn properties<'t>(text: &'t str, findings: &mut Findings) -> Vec<Property<'t>> {
    Parser::new(text, findings).property_file()
}

pub(super) struct Parser<'t, 'f> {
    pub(super) cursor: Cursor<'t, TokenKind>,
    /// How many calls that may nest are under way.
    pub(super) depth: usize,
    pub(super) findings: &'f mut Findings,
}

impl<'t, 'f> Parser<'t, 'f> {
    fn new(text: &'t str, findings: &'f mut Findings) -> Self {
        let tokens = tokens(text, findings);
        Parser { cursor: Cursor::new(text, tokens), depth: 0, findings }
    }

    // The outline of a file.

    fn net(mut self) -> Parsed<Net<'t>> {
        let name = self.name("the name of the net")?;
        let mut parameters = Vec::new();
        if self.sign("(").is_some() {
            loop {
                if parameters.is_empty() && self.cursor.slice(0) == ")" {
                    let help = "a net without parameters has no parentheses";
                    return self.unexpected("the name of a parameter", Some(help.into()));
                }
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
        if self.sign("{").is_none() {
            let help = self
                .cursor
                .ahead(0)
                .map(|_| "a net is its name, its parameters and its body: `ring (N := 3) { … }`".into());
            return self.unexpected("`{`", help);
        }
        let mut net = Net { name, parameters, definitions: Vec::new(), properties: Vec::new() };
        loop {
            if self.findings.is_full() {
                return Ok(net);
            }
            if self.sign("}").is_some() {
                break;
            }
            if self.cursor.peek().is_none() {
                let _: Parsed<()> = self.missing("`}` at the end of the net");
                return Ok(net);
            }
            let begin = self.cursor.at;
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
        } else if self.cursor.peek().is_some() {
            let _: Parsed<()> = self.missing("the end of the file");
        }
        Ok(net)
    }

    fn property_file(&mut self) -> Vec<Property<'t>> {
        let mut found = Vec::new();
        while self.cursor.peek().is_some() && !self.findings.is_full() {
            let begin = self.cursor.at;
            match self.property() {
                Ok(property) => found.push(property),
                Err(Stuck) => {
                    self.cursor.at = self.cursor.at.max(begin + 1);
                    while self.cursor.peek().is_some() && !self.at_property() {
                        self.cursor.at += 1;
                    }
                }
            }
        }
        found
    }

    fn at_property(&self) -> bool {
        matches!(self.cursor.slice(0), "state" | "ltl") && self.cursor.slice(1) == "property"
    }

    fn property(&mut self) -> Parsed<Property<'t>> {
        if !self.at_property() {
            return self.missing("`state property` or `ltl property`");
        }
        let is_state = self.cursor.slice(0) == "state";
        self.cursor.at += 2;
        let name = self.name("the name of the property")?;
        self.expect(":")?;
        let goal = if is_state { self.state_property()? } else { self.ltl_property()? };
        Ok(Property { name, goal })
    }

    fn state_property(&mut self) -> Parsed<PropertyGoal<'t>> {
        if self.cursor.slice(0) != "reject" {
            return self.missing("`reject`");
        }
        self.cursor.at += 1;
        let reject = self.name("a proposition or `deadlock`")?;
        self.expect(";")?;
        let mut accept = Vec::new();
        while self.cursor.slice(0) == "accept" {
            self.cursor.at += 1;
            accept.push(self.name("a proposition or `deadlock`")?);
            self.expect(";")?;
        }
        Ok(PropertyGoal::State { reject, accept })
    }

    /// Parses a formula of linear temporal logic, by precedence and without recursion: operands wait in one stack,
    /// operators in another. What comes out has the parentheses of the property language.
    fn ltl_property(&mut self) -> Parsed<PropertyGoal<'t>> {
        let mut reading = LtlReading::default();
        loop {
            // An operand, behind any number of prefixes.
            let here = self.cursor.here();
            let prefix = if self.signs(&["[", "]"]) {
                Some("G")
            } else if self.signs(&["<", ">"]) {
                Some("F")
            } else {
                self.keyword("not").then_some("not")
            };
            let opens = prefix.is_none() && self.sign("(").is_some();
            if prefix.is_some() || opens {
                reading.operators.push(prefix.map_or(LtlOperator::Open, LtlOperator::Prefix));
                if reading.operators.len() > LTL_DEPTH {
                    self.findings
                        .add(|| Diagnostic::at(here, format!("the formula nests deeper than {LTL_DEPTH} levels")));
                    return Err(Stuck);
                }
                continue;
            }
            let name = self.name("a proposition, `not`, `[]`, `<>` or `(`")?;
            reading.operand(match name.text {
                "true" => LtlPiece::Text("true"),
                "false" => LtlPiece::Text("false"),
                _ => LtlPiece::Name(name),
            });
            while reading.is_open() && self.sign(")").is_some() {
                reading.close();
            }
            let operator = if self.keyword("or") {
                Some((0, " or "))
            } else if self.keyword("and") {
                Some((1, " and "))
            } else if self.signs(&["=", ">"]) {
                Some((2, " implies "))
            } else if self.signs(&["<=", ">"]) {
                Some((3, " iff "))
            } else if self.cursor.slice(0) == "until" {
                self.cursor.at += 1;
                Some((4, " U "))
            } else {
                None
            };
            if let Some((level, word)) = operator {
                reading.reduce(level);
                reading.operators.push(LtlOperator::Binary(level, word));
                continue;
            }
            if reading.is_open() {
                return self.missing("`)` or an operator");
            }
            self.expect(";")?;
            reading.reduce(0);
            return Ok(PropertyGoal::Ltl(reading.operands.pop().unwrap_or_default().0));
        }
    }

    /// Consumes these signs if they are next and adjacent.
    pub(super) fn signs(&mut self, signs: &[&str]) -> bool {
        let found = self.touching(signs);
        if found {
            self.cursor.at += signs.len();
        }
        found
    }

    /// Whether these signs are next and adjacent.
    pub(super) fn touching(&self, signs: &[&str]) -> bool {
        (0..signs.len()).all(|index| {
            self.cursor.tokens.get(self.cursor.at + index).is_some_and(|&(kind, span)| {
                kind == TokenKind::Sign
                    && &self.cursor.text[span.range()] == signs[index]
                    && (index == 0 || self.cursor.tokens[self.cursor.at + index - 1].1.end == span.start)
            })
        })
    }

    // Iterations.

    pub(super) fn iterations(&mut self) -> Parsed<Vec<Iteration<'t>>> {
        self.list(",", Self::iteration)
    }

    pub(super) fn iteration(&mut self) -> Parsed<Iteration<'t>> {
        let name = self.name("the name of a variable")?;
        self.expect_keyword("in")?;
        let domain = self.expression()?;
        let range = self.optional_range()?;
        Ok(Iteration { name, domain, range })
    }

    // Pieces.

    /// Parses pieces up to and including `}`. After an error it resumes after the next `;`.
    pub(super) fn block(&mut self, mut piece: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        while self.sign("}").is_none() {
            if self.cursor.peek().is_none() || self.at_landmark() {
                return self.missing("`}`");
            }
            let (begin, depth) = (self.cursor.at, self.depth);
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

    /// Whether a declaration begins here that cannot occur inside a block.
    fn at_landmark(&self) -> bool {
        LANDMARKS.contains(&self.cursor.slice(0)) && self.cursor.ahead(1).is_some_and(|kind| kind != TokenKind::Sign)
    }

    /// Skips to where the next piece of a block may begin: after a `;` or a nested block, or before the `}`
    /// that ends it. False if the block seems to have ended.
    fn recover_inside(&mut self, begin: usize) -> bool {
        let stuck = self.cursor.at.max(begin);
        self.cursor.at = begin;
        let mut open = 0usize;
        while self.cursor.peek().is_some() && !(self.cursor.at > begin && self.at_landmark()) {
            let passed = self.cursor.at >= stuck;
            match self.cursor.slice(0) {
                "{" => open += 1,
                "}" if open == 0 => return true,
                "}" => {
                    open -= 1;
                    if open == 0 && passed {
                        self.cursor.at += 1;
                        return true;
                    }
                }
                ";" if open == 0 && passed => {
                    self.cursor.at += 1;
                    return true;
                }
                _ => {}
            }
            self.cursor.at += 1;
        }
        false
    }

    /// Skips to where the next declaration may begin.
    fn recover_outside(&mut self, begin: usize) {
        self.depth = 0;
        let stuck = self.cursor.at.max(begin + 1);
        self.cursor.at = begin + 1;
        let mut open = 0usize;
        while self.cursor.peek().is_some() {
            let word = self.cursor.slice(0);
            if self.cursor.at >= stuck && (self.at_landmark() || (open == 0 && DECLARATIONS.contains(&word))) {
                return;
            }
            match word {
                "{" => open += 1,
                "}" if open == 0 && self.cursor.at >= stuck => return,
                "}" => open = open.saturating_sub(1),
                _ => {}
            }
            self.cursor.at += 1;
        }
    }

    /// Enters a level of recursion; the caller leaves it again.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        if self.depth >= MAX_DEPTH {
            return self.too_deep(self.cursor.here());
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
        if self.cursor.ahead(0) == Some(TokenKind::Name) {
            let name = Name { text: self.cursor.slice(0), span: self.cursor.here() };
            self.cursor.at += 1;
            return Ok(name);
        }
        let word = self.cursor.slice(0);
        let help = (is_reserved(word)).then(|| format!("`{word}` is reserved; choose another name"));
        self.unexpected(what, help)
    }

    pub(super) fn quoted(&mut self) -> Parsed<Name<'t>> {
        if self.cursor.ahead(0) != Some(TokenKind::Text) {
            return self.missing("a text in quotes");
        }
        let (slice, span) = (self.cursor.slice(0), self.cursor.here());
        self.cursor.at += 1;
        Ok(Name { text: &slice[1..slice.len() - 1], span })
    }

    /// A literal. The largest is the smallest `int` without its sign.
    pub(super) fn number(&mut self, what: &str) -> Parsed<i64> {
        if self.cursor.ahead(0) != Some(TokenKind::Number) {
            return self.missing(what);
        }
        let (digits, span) = (self.cursor.slice(0), self.cursor.here());
        self.cursor.at += 1;
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

    /// Consumes this sign if it is next, and returns its span.
    pub(super) fn sign(&mut self, sign: &str) -> Option<Span> {
        if self.cursor.slice(0) != sign || self.cursor.ahead(0) != Some(TokenKind::Sign) {
            return None;
        }
        let span = self.cursor.here();
        self.cursor.at += 1;
        Some(span)
    }

    /// Consumes this reserved word if it is next.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        let found = self.cursor.slice(0) == word;
        self.cursor.at += usize::from(found);
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

    pub(super) fn stuck<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.findings.add(|| diagnostic);
        Err(Stuck)
    }

    pub(super) fn missing<T>(&mut self, what: &str) -> Parsed<T> {
        self.unexpected(what, None)
    }

    /// Reports what was expected instead of the next token. A missing `;` at the end of a line is reported
    /// there, not at the start of the next.
    pub(super) fn unexpected<T>(&mut self, what: &str, help: Option<String>) -> Parsed<T> {
        let end = self.cursor.last_end();
        let diagnostic = match self.cursor.peek() {
            None => Diagnostic::at(Span::at(end), format!("expected {what}, but the file ends")),
            Some(_) => {
                let found = format!("expected {what}, found `{}`", shortened(self.cursor.slice(0)));
                let gap = &self.cursor.text[end..self.cursor.here().start];
                if matches!(what, "`;`" | "`)`" | "`]`") && gap.contains('\n') {
                    Diagnostic::at(Span::at(end), found)
                } else {
                    Diagnostic::at(self.cursor.here(), found)
                }
            }
        };
        let help = help.or_else(|| self.touching(&["|", "|"]).then(|| "the operator is written `or`".into()));
        self.stuck(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        })
    }
}

/// How many prefixes and parentheses may be around a part of a formula.
const LTL_DEPTH: usize = 100;

/// An operator that waits for its last operand.
enum LtlOperator {
    Open,
    Prefix(&'static str),
    Binary(u8, &'static str),
}

/// A formula that is being read.
#[derive(Default)]
struct LtlReading<'t> {
    operators: Vec<LtlOperator>,
    /// Each with the chain that it is, if it is one of `and` or `or`, to which further operands can be appended.
    operands: Vec<(Vec<LtlPiece<'t>>, Option<&'static str>)>,
}

impl<'t> LtlReading<'t> {
    fn is_open(&self) -> bool {
        self.operators.iter().any(|one| matches!(one, LtlOperator::Open))
    }

    fn operand(&mut self, piece: LtlPiece<'t>) {
        self.operands.push((vec![piece], None));
        self.prefixes();
    }

    /// Applies the prefixes before the last operand, which bind tightest.
    fn prefixes(&mut self) {
        while let Some(LtlOperator::Prefix(word)) = self.operators.last() {
            let (word, (inner, _)) = (*word, self.operands.pop().unwrap_or_default());
            self.operators.pop();
            let mut whole = vec![LtlPiece::Text(word), LtlPiece::Text(" (")];
            whole.extend(inner);
            whole.push(LtlPiece::Text(")"));
            self.operands.push((whole, None));
        }
    }

    /// Ends the innermost parenthesis.
    fn close(&mut self) {
        self.reduce(0);
        self.operators.pop();
        self.prefixes();
    }

    /// Joins operands by the operators that bind at least as tight as this level.
    fn reduce(&mut self, level: u8) {
        while let Some(LtlOperator::Binary(own, word)) = self.operators.last()
            && *own >= level
        {
            let (word, chains) = (*word, *own <= 1);
            self.operators.pop();
            let (right, _) = self.operands.pop().unwrap_or_default();
            let (left, chain) = self.operands.pop().unwrap_or_default();
            let bracketed = |inner: Vec<LtlPiece<'t>>| {
                let mut whole = vec![LtlPiece::Text("(")];
                whole.extend(inner);
                whole.push(LtlPiece::Text(")"));
                whole
            };
            let mut whole = if chains && chain == Some(word) { left } else { bracketed(left) };
            whole.push(LtlPiece::Text(word));
            whole.extend(bracketed(right));
            self.operands.push((whole, chains.then_some(word)));
        }
    }
}
