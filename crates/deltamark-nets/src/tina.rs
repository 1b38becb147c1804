//! The textual format of the TINA toolbox, `.net`, restricted to P/T nets.
//!
//! In: the text of a file. Out: a [`Net`] that [`Net::validate`] accepts, or up to twenty diagnostics, each with
//! its exact span. The format, from TINA's manual:
//!
//! ```text
//! net NAME
//! tr NAME [: LABEL] [INTERVAL] [PLACE[ARC]… -> PLACE[*N]…]
//! pl NAME [: LABEL] [(MARKING)] [TRANSITION[*N]… -> TRANSITION[ARC]…]
//! lb NAME LABEL        nt NAME 0|1 TEXT        pr NAME… <|> NAME…
//! ARC: *N takes, ?N reads, ?-N inhibits, !N and !-N stop a clock
//! N, MARKING: digits, then perhaps K, M, G, T, P or E for 10^3 … 10^18
//! ```
//! The net is the superposition of its declarations: a node may be declared several times and its arcs and tokens
//! add up; of several labels the last counts. Nodes are declared implicitly by use. Places and transitions have
//! separate namespaces.
//!
//! What stays true: what would change the behaviour of the net and is not supported (time, priorities,
//! stopwatches) is refused, never skipped. Stricter than TINA in one respect: a declaration that continues in the
//! next line must be indented there, so that a misspelt keyword does not silently become a place.

mod tokens;

use std::collections::HashMap;

use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::text::utf8;
use deltamark_core::{Control, Diagnostic, Findings, Span};

use crate::build::{ArcKind, Builder};
use crate::net::Net;
use crate::number::number;
use tokens::{Indent, KEYWORDS, Token, TokenKind};

/// Whether a name needs no braces in TINA: an ASCII word that is no keyword and no number.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii() && tokens::is_name(c))
        && !KEYWORDS.contains(&name)
}

/// Reads a net in TINA's textual format.
pub fn parse(text: &str) -> Result<Net, Vec<Diagnostic>> {
    parse_under(text, &Control::new())
}

/// Reads a net from bytes, which should be UTF-8 text.
pub fn parse_bytes(bytes: &[u8]) -> Result<Net, Vec<Diagnostic>> {
    parse(utf8(bytes)?)
}

/// The same, unless `control` stops it.
pub fn parse_under(text: &str, control: &Control) -> Result<Net, Vec<Diagnostic>> {
    let inner = text.trim_start_matches('\u{FEFF}').trim_start();
    if inner.starts_with('<') {
        let start = text.len() - inner.len();
        let finding = Diagnostic::at(start..start + 1, "this looks like PNML (XML), not like a TINA net");
        return Err(vec![finding.help("read it with `--format pnml`, or let its name end in .pnml")]);
    }
    let mut findings = Findings::under(control);
    let tokens = tokens::tokens(text, &mut findings);
    let mut reader = TinaReader { tokens: &tokens, end: text.trim_end().len(), findings, ..TinaReader::default() };
    while reader.at < tokens.len() && !reader.is_full() {
        if let Err(diagnostic) = reader.declaration() {
            reader.findings.add(|| *diagnostic);
            reader.skip();
        }
    }
    reader.finish()
}

/// An error that ends a declaration; parsing resumes at the next. Boxed, so that the success case stays small.
type Stuck = Box<Diagnostic>;

fn stuck<T>(span: Span, message: impl Into<String>) -> Result<T, Stuck> {
    Err(Box::new(Diagnostic::at(span, message)))
}

/// The contents of the file, before they become a net.
#[derive(Default)]
struct TinaReader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    /// The end of the text.
    end: usize,
    findings: Findings,
    builder: Builder,
    places: HashMap<String, u32>,
    transitions: HashMap<String, u32>,
    /// Labels in the order of the text.
    labels: Vec<(Labelled, String)>,
}

/// The node of a label.
enum Labelled {
    Transition(u32),
    /// A node of either kind, which may be declared later.
    Named(String, Span),
}

/// The side of an arrow.
#[derive(Clone, Copy, PartialEq)]
enum ArrowSide {
    Left,
    Right,
}

impl<'a> TinaReader<'_, 'a> {
    /// Whether parsing must end, also because there is no memory for a table that is about to grow.
    fn is_full(&self) -> bool {
        let entry = size_of::<(String, u32)>() + 1;
        let (arcs, room) = self.builder.arcs_held();
        self.findings.is_full_for(arcs, room, Builder::ARC_BYTES)
            || self.findings.is_full_for(self.places.len(), self.places.capacity(), entry)
            || self.findings.is_full_for(self.transitions.len(), self.transitions.capacity(), entry)
    }

    fn declaration(&mut self) -> Result<(), Stuck> {
        let token = &self.tokens[self.at];
        let TokenKind::Keyword(keyword) = token.kind else { return self.no_declaration() };
        let span = token.span;
        self.at += 1;
        match keyword {
            "net" => self.builder.net.name = self.name("the net's name")?.0,
            "tr" => self.transition()?,
            "pl" => self.place()?,
            "lb" => {
                let (node, span) = self.name("the name of a place or transition")?;
                let label = self.words("a label")?.0;
                self.labels.push((Labelled::Named(node, span), label));
            }
            "nt" => self.note()?,
            _ => {
                self.priorities()?;
                let span = Span::new(span.start, self.tokens[self.at - 1].span.end);
                self.findings.add(|| Diagnostic::at(span, "priorities between transitions are not supported"));
            }
        }
        match self.peek() {
            None | Some(Token { kind: TokenKind::Keyword(_), .. }) => Ok(()),
            // Reported as a line that starts no declaration.
            Some(Token { opens: Some(Indent::Margin), .. }) => Ok(()),
            Some(token) => stuck(token.span, format!("{} is not expected here", shown(token))),
        }
    }

    fn no_declaration(&mut self) -> Result<(), Stuck> {
        let token = &self.tokens[self.at];
        // Consumed, or the parser would loop for ever.
        self.at += 1;
        let word = match &token.kind {
            TokenKind::Plain(word) => did_you_mean(word, KEYWORDS),
            _ => None,
        };
        let help = match word {
            Some(keyword) => format!("did you mean `{keyword}`?"),
            None => format!(
                "a declaration starts with one of {}; a line that continues the one above must be indented",
                KEYWORDS.join(", ")
            ),
        };
        let message = format!("no declaration starts with {}", shown(token));
        Err(Box::new(Diagnostic::at(token.span, message).help(help)))
    }

    /// Skips to the next declaration at the start of a line.
    fn skip(&mut self) {
        let starts = |token: &Token| match token.kind {
            TokenKind::Keyword(_) => token.opens.is_some(),
            _ => token.opens == Some(Indent::Margin),
        };
        self.at += self.tokens[self.at..].iter().position(starts).unwrap_or(self.tokens.len() - self.at);
    }

    fn transition(&mut self) -> Result<(), Stuck> {
        let name = self.name("the name of a transition")?.0;
        let transition = self.transition_called(name);
        if let Some(label) = self.label()? {
            self.labels.push((Labelled::Transition(transition), label));
        }
        self.interval()?;
        self.arcs(ArrowSide::Left, |reader, name, kind, weight| {
            let place = reader.place_called(name);
            reader.builder.arc(transition, place, kind, weight).is_ok()
        })
    }

    fn place(&mut self) -> Result<(), Stuck> {
        let (name, span) = self.name("the name of a place")?;
        let place = self.place_called(name);
        // Only transitions show a label anywhere, so a place's is parsed and dropped.
        self.label()?;
        if self.sign("(").is_some() {
            let (marking, _) = self.number("marking", 0)?;
            self.expect(")")?;
            let initial = &mut self.builder.net.places[place as usize].initial;
            match initial.checked_add(marking) {
                Some(sum) => *initial = sum,
                None => {
                    let message = "the markings given for this place add up to more than 4294967295";
                    self.findings.add(|| Diagnostic::at(span, message));
                }
            }
        }
        self.arcs(ArrowSide::Right, |reader, name, kind, weight| {
            let transition = reader.transition_called(name);
            reader.builder.arc(transition, place, kind, weight).is_ok()
        })
    }

    /// A note is for people. Any braced text is accepted, also on several lines.
    fn note(&mut self) -> Result<(), Stuck> {
        self.name("the name of a note")?;
        match self.peek() {
            Some(Token { kind: TokenKind::Plain("0" | "1"), .. }) => self.at += 1,
            _ => return self.missing("`0` or `1`"),
        }
        match self.peek() {
            Some(Token { kind: TokenKind::Plain(_) | TokenKind::Quoted(_), .. }) => self.at += 1,
            _ => return self.missing("the text of a note"),
        }
        Ok(())
    }

    /// Parses priorities in order to refuse them as a whole.
    fn priorities(&mut self) -> Result<(), Stuck> {
        self.name("the name of a transition")?;
        let relation = ["<", ">"];
        loop {
            if relation.iter().any(|sign| self.sign(sign).is_some()) {
                break;
            }
            if !self.at_name() {
                return self.missing("`<` or `>`");
            }
            self.name("the name of a transition")?;
        }
        self.name("the name of a transition")?;
        while self.at_name() {
            self.name("the name of a transition")?;
        }
        Ok(())
    }

    fn label(&mut self) -> Result<Option<String>, Stuck> {
        match self.sign(":") {
            Some(_) => Ok(Some(self.words("a label")?.0)),
            None => Ok(None),
        }
    }

    /// Accepts the interval of an untimed transition, `[0,w[`, and refuses others.
    fn interval(&mut self) -> Result<(), Stuck> {
        let Some((from, open)) = self.sign("[").map(|s| (s, false)).or_else(|| self.sign("]").map(|s| (s, true)))
        else {
            return Ok(());
        };
        let earliest = self.bound()?;
        self.expect(",")?;
        let latest = self.bound()?;
        let Some(to) = self.sign("[").or_else(|| self.sign("]")) else { return self.missing("`[` or `]`") };
        for bound in [earliest, latest] {
            let is_bound = bound == "w" || bound.bytes().all(|byte| byte.is_ascii_digit());
            if !is_bound {
                return stuck(Span::new(from.start, to.end), format!("`{bound}` is not a bound of a time interval"));
            }
        }
        let untimed = !open && earliest.bytes().all(|digit| digit == b'0') && latest == "w";
        if !untimed {
            self.findings.add(|| {
                Diagnostic::at(Span::new(from.start, to.end), "timed transitions are not supported")
                    .help("remove the interval, or write [0,w[, to look at the net without time")
            });
        }
        Ok(())
    }

    fn bound(&mut self) -> Result<&'a str, Stuck> {
        let Some(&Token { kind: TokenKind::Plain(word), .. }) = self.peek() else {
            return self.missing("a bound of a time interval");
        };
        self.at += 1;
        Ok(word)
    }

    /// The two sides of an arrow, if there is one. On the `taking` side arcs lead from place to transition. `add`
    /// takes a name, a kind and a weight, and returns whether the sum still fits.
    fn arcs(
        &mut self,
        taking: ArrowSide,
        mut add: impl FnMut(&mut Self, String, ArcKind, u32) -> bool,
    ) -> Result<(), Stuck> {
        let mut side = ArrowSide::Left;
        let begin = self.at;
        loop {
            if let Some(span) = self.sign("->") {
                if side == ArrowSide::Right {
                    return stuck(span, "a declaration has only one `->`");
                }
                side = ArrowSide::Right;
                continue;
            }
            if !self.at_name() {
                break;
            }
            let (name, span) = self.name("a name")?;
            let Some((kind, weight, end)) = self.arc(side == taking)? else { continue };
            let kind = if side == taking { kind } else { ArcKind::Output };
            if !add(self, name, kind, weight) {
                let message = "the weights of the arcs between these two nodes add up to more than 4294967295";
                self.findings.add(|| Diagnostic::at(span.start..end, message));
            }
        }
        if side == ArrowSide::Left && self.at > begin {
            return self.missing("`->`");
        }
        Ok(())
    }

    /// The kind and weight of an arc and where it ends; `None` if it has been refused.
    fn arc(&mut self, from_place: bool) -> Result<Option<(ArcKind, u32, usize)>, Stuck> {
        let end = self.tokens[self.at - 1].span.end;
        let Some(&Token { kind: TokenKind::Sign(sign), span, .. }) = self.peek() else {
            return Ok(Some((ArcKind::Input, 1, end)));
        };
        let kind = match sign {
            "*" => Some(ArcKind::Input),
            "?" => Some(ArcKind::Read),
            "?-" => Some(ArcKind::Inhibitor),
            "!" | "!-" => None,
            _ => return Ok(Some((ArcKind::Input, 1, end))),
        };
        self.at += 1;
        let (weight, number) = self.number("weight", 1)?;
        let span = Span::new(span.start, number.end);
        match kind {
            None => self.findings.add(|| Diagnostic::at(span, "stopwatch arcs are not supported")),
            Some(ArcKind::Read | ArcKind::Inhibitor) if !from_place => {
                let message = "a read or inhibitor arc must lead from a place to a transition";
                self.findings.add(|| Diagnostic::at(span, message));
            }
            Some(kind) => return Ok(Some((kind, weight, span.end))),
        }
        Ok(None)
    }

    /// A weight or marking with its multiplier, and its span.
    fn number(&mut self, what: &str, least: u32) -> Result<(u32, Span), Stuck> {
        let minus = self.sign("-");
        let Some(&Token { kind: TokenKind::Plain(word), span, .. }) = self.peek() else {
            return self.missing(&format!("a {what}"));
        };
        self.at += 1;
        let span = Span::new(minus.map_or(span.start, |minus| minus.start), span.end);
        let digits = word.trim_end_matches(['K', 'M', 'G', 'T', 'P', 'E']);
        let zeros = match &word[digits.len()..] {
            "" => "",
            "K" => "000",
            "M" => "000000",
            // From here on even 1 may be too large; more zeros would not change that.
            "G" => "000000000",
            "T" | "P" | "E" => "000000000000",
            _ => return stuck(span, format!("`{word}` is not a whole number")),
        };
        let sign = if minus.is_some() { "-" } else { "" };
        let value = if zeros.is_empty() {
            number(&format!("{sign}{word}"), what, least)
        } else {
            number(&format!("{sign}{digits}{zeros}"), what, least)
                .map_err(|(message, help)| (message.replace(&format!("{digits}{zeros}"), word), help))
        };
        match value {
            Ok(value) => Ok((value, span)),
            Err((message, help)) => {
                self.findings.add(|| Diagnostic::at(span, message).help(help));
                Ok((least, span))
            }
        }
    }

    /// A name, plain or in braces.
    fn name(&mut self, what: &str) -> Result<(String, Span), Stuck> {
        let (name, span) = self.words(what)?;
        if name.is_empty() {
            self.findings.add(|| Diagnostic::at(span, format!("{what} must not be empty")));
        }
        Ok((name, span))
    }

    /// A name or label, plain or in braces; a label may be empty.
    fn words(&mut self, what: &str) -> Result<(String, Span), Stuck> {
        let Some(token) = self.peek().filter(|token| token.opens != Some(Indent::Margin)) else {
            return self.missing(what);
        };
        let (words, span) = match &token.kind {
            TokenKind::Plain(word) => ((*word).to_string(), token.span),
            TokenKind::Quoted(words) => (words.clone().into_owned(), token.span),
            _ => return self.missing(what),
        };
        self.at += 1;
        if words.contains(char::is_control) {
            self.findings
                .add(|| Diagnostic::at(span, format!("{what} must not contain line breaks or control characters")));
        }
        Ok((words, span))
    }

    /// Whether a name continues this declaration.
    fn at_name(&self) -> bool {
        let inside = |token: &&Token| token.opens != Some(Indent::Margin);
        matches!(self.peek().filter(inside), Some(Token { kind: TokenKind::Plain(_) | TokenKind::Quoted(_), .. }))
    }

    /// Consumes this sign if it is next, and returns its span.
    fn sign(&mut self, sign: &str) -> Option<Span> {
        let token = self.tokens.get(self.at).filter(|token| token.kind == TokenKind::Sign(sign))?;
        self.at += 1;
        Some(token.span)
    }

    fn expect(&mut self, sign: &str) -> Result<Span, Stuck> {
        match self.sign(sign) {
            Some(span) => Ok(span),
            None => self.missing(&format!("`{sign}`")),
        }
    }

    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at)
    }

    /// Reports what was expected instead of the next token. If it is missing at the end of a line it is reported
    /// there, not at the start of the next.
    fn missing<T>(&self, what: &str) -> Result<T, Stuck> {
        let before = self.at.checked_sub(1).map(|before| self.tokens[before].span.end);
        match self.peek() {
            Some(token) if token.opens.is_none() => {
                let diagnostic = Diagnostic::at(token.span, format!("expected {what}, found {}", shown(token)));
                Err(Box::new(match token.kind {
                    TokenKind::Keyword(word) => {
                        diagnostic.help(format!("to use the keyword as a name, write {{{word}}}"))
                    }
                    _ => diagnostic,
                }))
            }
            _ => stuck(Span::at(before.unwrap_or(self.end)), format!("expected {what}, but the line ends")),
        }
    }
    fn place_called(&mut self, name: String) -> u32 {
        *self.places.entry(name).or_insert_with_key(|name| self.builder.place(name, 0))
    }

    fn transition_called(&mut self, name: String) -> u32 {
        *self.transitions.entry(name).or_insert_with_key(|name| self.builder.transition(name))
    }

    fn finish(mut self) -> Result<Net, Vec<Diagnostic>> {
        if self.findings.is_full() {
            return self.findings.or(self.builder.net);
        }
        for (node, label) in self.labels {
            let label = (!label.is_empty()).then_some(label);
            match node {
                Labelled::Transition(transition) => self.builder.net.transitions[transition as usize].label = label,
                Labelled::Named(name, span) => match self.transitions.get(&name) {
                    Some(&transition) => self.builder.net.transitions[transition as usize].label = label,
                    None if self.places.contains_key(&name) => {}
                    None => self.findings.add(|| {
                        Diagnostic::at(span, format!("there is no place or transition `{name}` to give a label to"))
                    }),
                },
            }
        }
        if self.builder.net.places.is_empty() && self.findings.is_empty() {
            self.findings.add(|| Diagnostic::at(Span::at(0), "the net has no places"));
        }
        self.findings.or(self.builder.net)
    }
}

/// A token for a message.
fn shown(token: &Token) -> String {
    match &token.kind {
        TokenKind::Keyword(word) | TokenKind::Plain(word) | TokenKind::Sign(word) => format!("`{word}`"),
        TokenKind::Quoted(name) => format!("the name `{{{}}}`", name.escape_debug()),
    }
}
