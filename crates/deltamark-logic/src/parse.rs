//! Parser.
//!
//! In: the text of an expression. Out: an [`Expr`], or diagnostics with spans. What stays true: recursion is no
//! deeper than [`MAX_DEPTH`], so no text overflows the stack, and neither does dropping, printing or checking the
//! result.
//!
//! Levels of precedence are climbed by [`Pratt`]; chains of one operator are read in a loop.

use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::parser::{Cursor, Pratt};
use deltamark_core::{Diagnostic, Findings, Span};

use crate::ast::{Arithmetic, Expr, Level, Name, Node, PathOperator, PathQuantifier, UntilOperator};
use crate::pattern::{self, Pattern, Scope};
use crate::token::{self, Token};

/// The maximum depth of expressions.
pub const MAX_DEPTH: usize = 250;

/// The maximum length of an expression in bytes.
pub const MAX_LENGTH: usize = 1 << 20;

/// The operators of temporal logics that are words. They are ordinary names unless an operand follows.
const TEMPORAL: [&str; 13] = ["A", "E", "G", "F", "X", "AG", "EF", "AF", "EG", "AX", "EX", "GF", "FG"];

/// The alternative to temporal formulas.
const EITHER: &str =
    "an expression speaks of one state; it can be an invariant (true in all reachable states) or a goal to reach";

/// Parses an expression. Names are not resolved: that takes a model.
pub fn parse(text: &str) -> Result<Expr, Vec<Diagnostic>> {
    parse_as(text, false)
}

/// Parses a formula of temporal logic: an expression, with temporal operators and path quantifiers anywhere.
pub fn parse_temporal(text: &str) -> Result<Expr, Vec<Diagnostic>> {
    parse_as(text, true)
}

fn parse_as(text: &str, temporal: bool) -> Result<Expr, Vec<Diagnostic>> {
    if text.len() > MAX_LENGTH {
        return Err(vec![Diagnostic::new(format!(
            "the expression is {} bytes long; at most {MAX_LENGTH} are accepted",
            text.len()
        ))]);
    }
    let tokens = token::tokens(text)?;
    if tokens.is_empty() {
        return Err(vec![
            Diagnostic::at(Span::new(0, text.len()), "the expression is empty")
                .help("an expression reads like `p >= 1 and not deadlock`"),
        ]);
    }
    let cursor = Cursor::new(text, tokens);
    let mut parser = Parser { cursor, depth: 0, findings: Findings::default(), temporal, within: false };
    // Where reading stopped, there is a finding.
    let expr = parser.whole().unwrap_or(Expr { node: Node::Deadlock, span: Span::at(0) });
    parser.findings.or_as_found(expr)
}

/// Parsing cannot continue; the finding has been recorded.
struct Stop;

type Parsed<T> = Result<T, Stop>;

struct Parser<'t> {
    cursor: Cursor<'t, Token>,
    /// How many calls of `climb` are under way.
    depth: usize,
    findings: Findings,
    /// Whether the letters of temporal logic are operators.
    temporal: bool,
    /// Whether this is inside of a pattern.
    within: bool,
}

impl Pratt for Parser<'_> {
    type Level = Level;
    type Operator = ();
    type Expr = Expr;
    type Error = Stop;

    fn nest(&mut self) -> Parsed<()> {
        if self.depth >= MAX_DEPTH {
            return self.stop(
                Diagnostic::at(self.cursor.here(), format!("the expression nests deeper than {MAX_DEPTH} levels"))
                    .help("remove parentheses, or split it into several properties"),
            );
        }
        self.depth += 1;
        Ok(())
    }

    fn unnest(&mut self) {
        self.depth -= 1;
    }

    fn operand(&mut self, least: Level) -> Parsed<Expr> {
        self.prefix(least)
    }

    fn operator(&self) -> Option<(Level, ())> {
        let level = if self.until().is_some() { Some(Level::Until) } else { self.cursor.peek().and_then(Token::level) };
        level.map(|level| (level, ()))
    }

    fn extend(&mut self, left: Expr, level: Level, (): ()) -> Parsed<Expr> {
        match level {
            Level::Implies => {
                self.cursor.at += 1;
                let right = self.climb(Level::Implies)?;
                Ok(join(left, right, |left, right| Node::Implies(left.into(), right.into())))
            }
            Level::Until => {
                let Some(operator) = self.until() else { return self.unexpected("an operator") };
                self.cursor.at += 1;
                let right = self.climb(Level::Until)?;
                Ok(join(left, right, |left, right| Node::Until(operator, left.into(), right.into())))
            }
            Level::Compare => self.comparison(left),
            Level::Sum | Level::Product => self.arithmetic(left, level),
            _ => self.junction(left, level),
        }
    }
}

impl Parser<'_> {
    fn whole(&mut self) -> Parsed<Expr> {
        let expr = self.climb(Level::Iff)?;
        match self.cursor.peek() {
            None => Ok(expr),
            Some(Token::Close) => self.stop(
                Diagnostic::at(self.cursor.here(), "this parenthesis closes nothing")
                    .help("remove it, or open one further left"),
            ),
            Some(_) => self.unexpected("an operator or the end"),
        }
    }

    /// Reads on from the first operand of `a and b and c`, or the like.
    fn junction(&mut self, first: Expr, level: Level) -> Parsed<Expr> {
        let start = first.span.start;
        let mut list = vec![first];
        while self.cursor.peek().and_then(Token::level) == Some(level) {
            self.cursor.at += 1;
            list.push(self.climb(level.tighter())?);
        }
        let node = match level {
            Level::And => Node::And(list),
            Level::Or => Node::Or(list),
            _ => Node::Iff(list),
        };
        Ok(Expr { node, span: Span::new(start, self.cursor.last_end()) })
    }

    /// Continues after the first operand of `a + b - c` or `a * b / c`.
    fn arithmetic(&mut self, first: Expr, level: Level) -> Parsed<Expr> {
        let start = first.span.start;
        let mut rest = Vec::new();
        while let Some(Token::Arithmetic(operator)) = self.cursor.peek().filter(|token| token.level() == Some(level)) {
            self.cursor.at += 1;
            rest.push((operator, self.climb(level.tighter())?));
        }
        Ok(Expr { node: Node::Arithmetic(first.into(), rest), span: Span::new(start, self.cursor.last_end()) })
    }

    /// Continues after the left side of a comparison. A chain of them is refused because people and programming
    /// languages disagree on its meaning.
    fn comparison(&mut self, left: Expr) -> Parsed<Expr> {
        let start = left.span.start;
        let mut sides = vec![left];
        let mut operators = Vec::new();
        while let Some(Token::Compare(comparison)) = self.cursor.peek() {
            operators.push((comparison, self.cursor.here()));
            self.cursor.at += 1;
            sides.push(self.climb(Level::Sum)?);
        }
        if let Some(&(_, second)) = operators.get(1) {
            let pieces: Vec<String> = operators
                .iter()
                .zip(sides.windows(2))
                .map(|(&(_, operator), pair)| {
                    let slice = |span: Span| &self.cursor.text[span.range()];
                    format!("{} {} {}", slice(pair[0].span), slice(operator), slice(pair[1].span))
                })
                .collect();
            self.findings.add(|| {
                Diagnostic::at(second, "comparisons cannot be chained")
                    .help(format!("write `{}`", shortened(&pieces.join(" and "))))
            });
        }
        let mut sides = sides.into_iter();
        let (Some(&(comparison, _)), Some(left), Some(right)) = (operators.first(), sides.next(), sides.next()) else {
            return self.unexpected("a comparison");
        };
        let node = Node::Compare(comparison, left.into(), right.into());
        Ok(Expr { node, span: Span::new(start, self.cursor.last_end()) })
    }

    /// The operator between formulas that is next.
    fn until(&self) -> Option<UntilOperator> {
        let bare = self.temporal && self.cursor.peek() == Some(Token::Word);
        UntilOperator::by_symbol(self.slice(self.cursor.at)).filter(|_| bare)
    }

    /// The temporal operators and path quantifiers that are next, as letters, and how many tokens they take.
    fn prefix_letters(&self) -> Option<(String, usize)> {
        if !self.temporal {
            return None;
        }
        if self.is_box(self.cursor.at) {
            let is_always = self.slice(self.cursor.at) == "[";
            return Some(if is_always { ("G".into(), 2) } else { ("F".into(), 1) });
        }
        let word = self.slice(self.cursor.at);
        let alone = token::name_length(self.cursor.text, &self.cursor.tokens[self.cursor.at..]) == Some(1);
        let letters = alone && word.bytes().all(|letter| b"AEFGX".contains(&letter));
        (letters && self.cursor.peek() == Some(Token::Word)).then(|| (word.to_string(), 1))
    }

    /// Reads prefix temporal operators and their operand.
    fn temporal_prefix(&mut self, letters: &str, tokens: usize, min: Level) -> Parsed<Expr> {
        let span = self.cursor.here();
        if min > Level::Not {
            self.findings.add(|| {
                Diagnostic::at(span, format!("`{letters}` needs parentheses here"))
                    .help(format!("write `({letters} …)`; if it is a name, put it in quotes: \"{letters}\""))
            });
        }
        self.cursor.at += tokens;
        let begins = match self.cursor.peek() {
            None => false,
            Some(Token::OpenIndex) => true,
            Some(Token::Compare(_)) => self.is_box(self.cursor.at),
            Some(Token::Arithmetic(operator)) => operator == Arithmetic::Subtract,
            Some(Token::Word) => self.until().is_none(),
            Some(token) => token.level().is_none() && !matches!(token, Token::Close | Token::Comma | Token::CloseIndex),
        };
        if !begins {
            return self.stop(
                Diagnostic::at(span, format!("`{letters}` is a temporal operator, and no formula follows it"))
                    .help(format!("write `{letters} p`; if it is a name, put it in quotes: \"{letters}\"")),
            );
        }
        let quantified = letters.ends_with(['A', 'E']);
        let mut expr = if quantified && self.cursor.peek() == Some(Token::OpenIndex) && !self.is_box(self.cursor.at) {
            // As in A[p U q].
            let open = self.cursor.here();
            self.cursor.at += 1;
            let inner = self.climb(Level::Iff)?;
            if !self.cursor.take(Token::CloseIndex) {
                return match self.cursor.peek() {
                    None => self.stop(
                        Diagnostic::at(open, "this bracket is never closed").help("put a `]` where it should end"),
                    ),
                    Some(_) => self.unexpected("an operator or `]`"),
                };
            }
            inner
        } else {
            self.climb(min.max(Level::Not))?
        };
        let end = self.cursor.last_end();
        for (index, letter) in letters.char_indices().rev() {
            let inner = Box::new(expr);
            let node = match letter {
                'A' => Node::Paths(PathQuantifier::All, inner),
                'E' => Node::Paths(PathQuantifier::Exists, inner),
                'X' => Node::Along(PathOperator::Next, inner),
                'F' => Node::Along(PathOperator::Finally, inner),
                _ => Node::Along(PathOperator::Globally, inner),
            };
            expr = Expr { node, span: Span::new(span.start + index, end) };
        }
        Ok(expr)
    }

    /// Parses an operand: an atom after any number of `not` and `-`.
    fn prefix(&mut self, min: Level) -> Parsed<Expr> {
        let start = self.cursor.here().start;
        if let Some((letters, tokens)) = self.prefix_letters() {
            // Every letter is a level of its own.
            let deeper = letters.len() - 1;
            if self.depth + deeper >= MAX_DEPTH {
                return self.stop(
                    Diagnostic::at(self.cursor.here(), format!("the expression nests deeper than {MAX_DEPTH} levels"))
                        .help("remove parentheses, or split it into several properties"),
                );
            }
            self.depth += deeper;
            let read = self.temporal_prefix(&letters, tokens, min);
            self.depth -= deeper;
            return read;
        }
        if let Some(operator) = self.until() {
            let (span, symbol) = (self.cursor.here(), operator.symbol());
            return self.stop(
                Diagnostic::at(span, format!("`{symbol}` stands between two formulas, and none is to its left"))
                    .help(format!("write `p {symbol} q`; if it is a name, put it in quotes: \"{symbol}\"")),
            );
        }
        match self.cursor.peek() {
            Some(Token::Not) => {
                if min > Level::Not {
                    let span = self.cursor.here();
                    let word = &self.cursor.text[span.range()];
                    self.findings.add(|| {
                        Diagnostic::at(span, format!("`{word}` needs parentheses here"))
                            .help(format!("write `({word} …)`"))
                    });
                }
                self.cursor.at += 1;
                let inner = self.climb(min.max(Level::Not))?;
                Ok(Expr { node: Node::Not(inner.into()), span: Span::new(start, self.cursor.last_end()) })
            }
            Some(Token::Arithmetic(Arithmetic::Subtract)) => {
                self.cursor.at += 1;
                if self.cursor.peek() == Some(Token::Number) {
                    return self.number(start, true);
                }
                let inner = self.climb(Level::Sign)?;
                Ok(Expr { node: Node::Negate(inner.into()), span: Span::new(start, self.cursor.last_end()) })
            }
            _ => self.atom(),
        }
    }

    fn atom(&mut self) -> Parsed<Expr> {
        let span = self.cursor.here();
        let node = match self.cursor.peek() {
            Some(Token::Truth(truth)) => Node::Truth(truth),
            Some(Token::Deadlock) => Node::Deadlock,
            Some(Token::Number) => return self.number(span.start, false),
            Some(Token::Open) => {
                self.cursor.at += 1;
                let inner = self.climb(Level::Iff)?;
                self.close(span)?;
                // The parentheses belong to the place, so that a caret covers them.
                return Ok(Expr { node: inner.node, span: Span::new(span.start, self.cursor.last_end()) });
            }
            Some(Token::Word) if self.temporal && self.is_word("initial") => Node::Initial,
            Some(Token::Word) if self.cursor.ahead(1) == Some(Token::Open) => {
                return self.call();
            }
            Some(Token::Word | Token::Quoted) => {
                let name = self.name()?;
                let span = name.span;
                return Ok(Expr { node: Node::Name(name), span });
            }
            _ => return self.unexpected("a name, a number, `not` or `(`"),
        };
        self.cursor.at += 1;
        Ok(Expr { node, span })
    }

    /// Parses a number whose sign, if any, has been consumed.
    fn number(&mut self, start: usize, negative: bool) -> Parsed<Expr> {
        let span = self.cursor.here();
        let digits = &self.cursor.text[span.range()];
        let touches_fraction = matches!(
            self.cursor.tokens.get(self.cursor.at + 1..self.cursor.at + 3),
            Some([(Token::Dot, dot), (Token::Number, _)]) if dot.start == span.end
        );
        if let Some(letter) = digits.find(|character: char| !character.is_ascii_digit()) {
            return self.stop(
                Diagnostic::at(span, format!("`{}` is no number", shortened(digits)))
                    .label(format!("`{}` begins the part that is no digit", first_character(&digits[letter..])))
                    .help(format!("if it is a name, put it in quotes: {}", shortened(&token::quote(digits)))),
            );
        }
        if touches_fraction {
            let end = self.cursor.tokens[self.cursor.at + 2].1.end;
            return self.stop(Diagnostic::at(Span::new(span.start, end), "numbers here are whole numbers"));
        }
        let signed = if negative { format!("-{digits}") } else { digits.to_string() };
        let Ok(number) = signed.parse() else {
            return self.stop(Diagnostic::at(Span::new(start, span.end), "the number is too large").help(format!(
                "numbers lie between {} and {}",
                i64::MIN,
                i64::MAX
            )));
        };
        self.cursor.at += 1;
        Ok(Expr { node: Node::Number(number), span: Span::new(start, span.end) })
    }

    /// Reads `fireable(…)` or `tokens(…)`.
    fn call(&mut self) -> Parsed<Expr> {
        let span = self.cursor.here();
        if let Some(pattern) = Pattern::by_name(self.slice(self.cursor.at)).filter(|_| self.temporal) {
            return self.pattern(pattern);
        }
        let function: fn(Vec<Name>) -> Node = match &self.cursor.text[span.range()] {
            "fireable" => Node::Fireable,
            "tokens" => Node::Tokens,
            other if TEMPORAL.contains(&other) => {
                let finding = self.temporal(self.cursor.at);
                return self.stop(finding);
            }
            other => {
                let finding = Diagnostic::at(span, format!("there is no function `{}`", shortened(other)));
                let patterns = Pattern::NAMES.iter().map(|(name, _)| *name).filter(|_| self.temporal);
                let help = match did_you_mean(other, token::FUNCTIONS.iter().copied().chain(patterns)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    _ if self.temporal => format!(
                        "the functions are `fireable(transition, …)` and `tokens(place, …)`, the patterns {}",
                        Pattern::NAMES.map(|(_, pattern)| format!("`{}`", pattern.form())).join(", ")
                    ),
                    _ => "the functions are `fireable(transition, …)` and `tokens(place, …)`".to_string(),
                };
                return self.stop(finding.help(help));
            }
        };
        let open = self.cursor.tokens[self.cursor.at + 1].1;
        self.cursor.at += 2;
        let mut names = vec![self.name()?];
        while self.cursor.peek() == Some(Token::Comma) {
            self.cursor.at += 1;
            names.push(self.name()?);
        }
        self.close(open)?;
        Ok(Expr { node: function(names), span: Span::new(span.start, self.cursor.last_end()) })
    }

    /// Reads a pattern and its scope.
    fn pattern(&mut self, pattern: Pattern) -> Parsed<Expr> {
        let (span, form) = (self.cursor.here(), pattern.form());
        if self.within {
            return self.stop(
                Diagnostic::at(span, "patterns cannot be part of patterns")
                    .help("write the inner one as a formula, or ask for each"),
            );
        }
        if self.depth + pattern::HEIGHT > MAX_DEPTH {
            return self.stop(
                Diagnostic::at(span, format!("the expression nests deeper than {MAX_DEPTH} levels"))
                    .help("remove parentheses, or split it into several properties"),
            );
        }
        let open = self.cursor.tokens[self.cursor.at + 1].1;
        self.cursor.at += 2;
        self.within = true;
        self.depth += pattern::HEIGHT;
        let mut list = vec![self.climb(Level::Iff)?];
        while self.cursor.peek() == Some(Token::Comma) {
            self.cursor.at += 1;
            list.push(self.climb(Level::Iff)?);
        }
        self.close(open)?;
        if list.len() != pattern.operands() {
            let wrong = Span::new(span.start, self.cursor.last_end());
            let count = list.len();
            return self.stop(
                Diagnostic::at(wrong, format!("the pattern has {count} of {} formulas", pattern.operands()))
                    .help(format!("write `{form}`")),
            );
        }
        let scope = self.scope()?;
        self.depth -= pattern::HEIGHT;
        self.within = false;
        Ok(pattern::expanded(pattern, &list, &scope, Span::new(span.start, self.cursor.last_end())))
    }

    /// Reads where a pattern must be true.
    fn scope(&mut self) -> Parsed<Scope> {
        let word = if self.cursor.peek() == Some(Token::Word) {
            self.slice(self.cursor.at).to_string()
        } else {
            String::new()
        };
        if !["globally", "before", "after", "between"].contains(&word.as_str()) {
            return Ok(Scope::Globally);
        }
        self.cursor.at += 1;
        if word == "globally" {
            return Ok(Scope::Globally);
        }
        let first = self.climb(Level::Not)?;
        match word.as_str() {
            "before" => Ok(Scope::Before(first)),
            "after" if self.slice(self.cursor.at) == "until" => {
                self.cursor.at += 1;
                Ok(Scope::AfterUntil(first, self.climb(Level::Not)?))
            }
            "after" => Ok(Scope::After(first)),
            _ if self.cursor.take(Token::And) => Ok(Scope::Between(first, self.climb(Level::Not)?)),
            _ => self.unexpected("`and`, as in `between q and r`"),
        }
    }

    /// Reads a name, bare or quoted.
    fn name(&mut self) -> Parsed<Name> {
        let span = self.cursor.here();
        match self.cursor.peek() {
            Some(Token::Quoted) => {
                self.cursor.at += 1;
                match token::unquote(self.cursor.text, span) {
                    Ok(text) => Ok(Name { text, span }),
                    Err(finding) => self.stop(finding),
                }
            }
            Some(Token::Word) => {
                self.cursor.at +=
                    token::name_length(self.cursor.text, &self.cursor.tokens[self.cursor.at..]).unwrap_or(1);
                let span = Span::new(span.start, self.cursor.last_end());
                Ok(Name { text: self.cursor.text[span.range()].to_string(), span })
            }
            Some(
                Token::Truth(_) | Token::Deadlock | Token::Not | Token::And | Token::Or | Token::Implies | Token::Iff,
            ) if self.cursor.text[span.range()].starts_with(char::is_alphabetic) => {
                let word = &self.cursor.text[span.range()];
                self.stop(
                    Diagnostic::at(span, format!("`{word}` is a word of the language, not a name"))
                        .help(format!("if it is a name, put it in quotes: \"{word}\"")),
                )
            }
            _ => self.unexpected("a name"),
        }
    }

    fn close(&mut self, open: Span) -> Parsed<()> {
        match self.cursor.peek() {
            Some(Token::Close) => {
                self.cursor.at += 1;
                Ok(())
            }
            None => self
                .stop(Diagnostic::at(open, "this parenthesis is never closed").help("put a `)` where it should end")),
            Some(_) => self.unexpected("an operator or `)`"),
        }
    }

    #[cold]
    fn stop<T>(&mut self, finding: Diagnostic) -> Parsed<T> {
        self.findings.add(|| finding);
        Err(Stop)
    }

    #[cold]
    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        if let Some(first) = self.temporal_operator().filter(|_| !self.temporal) {
            let finding = self.temporal(first);
            return self.stop(finding);
        }
        let span = self.cursor.here();
        let slice = &self.cursor.text[span.range()];
        let found = if slice.is_empty() { "the end".to_string() } else { format!("`{}`", shortened(slice)) };
        let mut finding = Diagnostic::at(span, format!("expected {expected}, found {found}"));
        finding.help = self.advice(slice);
        self.stop(finding)
    }

    /// Whether the next token is this word, and not the beginning of a longer name.
    fn is_word(&self, word: &str) -> bool {
        self.slice(self.cursor.at) == word
            && token::name_length(self.cursor.text, &self.cursor.tokens[self.cursor.at..]) == Some(1)
    }

    fn slice(&self, at: usize) -> &str {
        self.cursor.tokens.get(at).map_or("", |(_, span)| &self.cursor.text[span.range()])
    }

    fn is_function(&self, at: usize) -> bool {
        token::FUNCTIONS.contains(&self.slice(at))
    }

    /// The position of a temporal operator that stops the parser here: a word such as `AG` directly followed by an
    /// operand, or `[]` or `<>` with none before it.
    fn temporal_operator(&self) -> Option<usize> {
        let before = self.cursor.at.checked_sub(1);
        let begins_operand = match self.cursor.peek() {
            Some(Token::OpenIndex) => self.cursor.ahead(1).is_some_and(|token| token != Token::Number),
            Some(Token::Word | Token::Quoted | Token::Number | Token::Truth(_) | Token::Deadlock | Token::Not) => true,
            _ => false,
        };
        if begins_operand && before.is_some_and(|before| TEMPORAL.contains(&self.slice(before))) {
            return before;
        }
        let fresh = match before.map(|before| self.cursor.tokens[before].0) {
            None | Some(Token::Open | Token::Not) => true,
            Some(token) => token.level().is_some_and(|level| level < Level::Not),
        };
        (fresh && self.is_box(self.cursor.at)).then_some(self.cursor.at)
    }

    /// Whether there is `[]` or `<>`.
    fn is_box(&self, at: usize) -> bool {
        self.slice(at) == "<>" || (self.slice(at) == "[" && self.slice(at + 1) == "]")
    }

    /// The diagnostic for a temporal operator.
    fn temporal(&self, first: usize) -> Diagnostic {
        // The operand begins after all consecutive operators.
        let mut next = first;
        while TEMPORAL.contains(&self.slice(next)) || self.is_box(next) {
            next += if self.slice(next) == "[" { 2 } else { 1 };
        }
        let span = Span::new(self.cursor.tokens[first].1.start, self.cursor.tokens[next - 1].1.end);
        let operators = self.cursor.text[span.range()].to_string();
        let rest = self.cursor.tokens.get(next).map_or("", |(_, operand)| self.cursor.text[operand.start..].trim());
        let rest = if rest.is_empty() { "p <= 1".to_string() } else { shortened(rest) };
        let help = match operators.as_str() {
            _ if first > 0 => EITHER.to_string(),
            "AG" | "G" | "[]" => {
                format!("an invariant already speaks of all reachable states: write `{rest}`")
            }
            "EF" | "F" | "<>" => {
                format!("a reach property already asks for some reachable state: write `{rest}` there")
            }
            _ => EITHER.to_string(),
        };
        Diagnostic::at(span, "temporal formulas are not available").help(help)
    }

    /// Advice on an unexpected token.
    fn advice(&self, slice: &str) -> Option<String> {
        const WORDS: [&str; 8] = ["and", "or", "not", "implies", "iff", "true", "false", "deadlock"];
        let before = self.cursor.at.checked_sub(1).map(|before| self.cursor.tokens[before]);
        let (token, span) = *self.cursor.tokens.get(self.cursor.at)?;
        let touches = before.is_some_and(|(_, before)| before.end == span.start);
        match (before.map(|(token, _)| token), token) {
            (Some(Token::Compare(_)), Token::Compare(_)) if touches => {
                Some("the comparisons are = != < <= > >=".to_string())
            }
            (Some(Token::Word), Token::Word | Token::Quoted) if self.is_function(self.cursor.at - 1) => {
                let function = &self.cursor.text[self.cursor.tokens[self.cursor.at - 1].1.range()];
                let length = token::name_length(self.cursor.text, &self.cursor.tokens[self.cursor.at..]).unwrap_or(1);
                let name = &self.cursor.text[span.start..self.cursor.tokens[self.cursor.at + length - 1].1.end];
                Some(format!("write `{function}({})`", shortened(name)))
            }
            (_, Token::OpenIndex | Token::CloseIndex | Token::Dot) => {
                Some("a name such as `a[0]` or `P.x` is written without spaces, or in quotes: \"a[0]\"".to_string())
            }
            (_, Token::Word) => WORDS
                .iter()
                .find(|word| word.eq_ignore_ascii_case(slice))
                .map(|word| format!("write `{word}` in small letters"))
                .or_else(|| Some("a name with spaces is written in quotes: \"any name\"".to_string())),
            _ => None,
        }
    }
}

fn join(left: Expr, right: Expr, node: impl FnOnce(Expr, Expr) -> Node) -> Expr {
    let span = Span::new(left.span.start, right.span.end);
    Expr { node: node(left, right), span }
}

fn first_character(text: &str) -> &str {
    text.char_indices().nth(1).map_or(text, |(end, _)| &text[..end])
}

/// A text shortened for a message: on one line and not too long.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short = String::new();
    for word in text.split_whitespace() {
        if !short.is_empty() {
            short.push(' ');
        }
        short.extend(word.chars().take(LONGEST + 1));
        if short.chars().count() > LONGEST {
            return short.chars().take(LONGEST - 1).chain(['…']).collect();
        }
    }
    short
}
