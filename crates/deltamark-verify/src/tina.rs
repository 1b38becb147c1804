//! A plain reader of TINA's textual format, `.net`, for P/T nets.
//!
//! In: text. Out: a [`Net`], places and transitions in the order in which the text first names them; or the first thing
//! that is wrong, or not understood, with its line. What stays true: time, priorities and stopwatches are refused; a
//! node that is declared several times has the arcs and tokens of all its declarations.

use crate::net::Net;
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    /// A word without braces.
    Word(&'a str),
    /// A name in braces.
    Quoted(String),
    Sign(&'a str),
}

const KEYWORDS: [&str; 6] = ["net", "tr", "pl", "lb", "nt", "pr"];

struct Reader<'a> {
    /// Tokens, each with its line, and whether it begins at the margin.
    tokens: Vec<(Token<'a>, usize, bool)>,
    at: usize,
    net: Net,
    places: HashMap<String, u32>,
    transitions: HashMap<String, u32>,
}

/// Reads a net.
pub(crate) fn read(text: &str) -> Result<Net, String> {
    let tokens = tokens(text.trim_start_matches('\u{FEFF}'))?;
    let mut reader = Reader { tokens, at: 0, net: Net::default(), places: HashMap::new(), transitions: HashMap::new() };
    while reader.at < reader.tokens.len() {
        let line = reader.tokens[reader.at].1;
        reader.declaration().map_err(|what| format!("line {line}: {what}"))?;
    }
    Ok(reader.net)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

fn tokens(text: &str) -> Result<Vec<(Token<'_>, usize, bool)>, String> {
    let (mut tokens, mut at, mut line, mut margin) = (Vec::new(), 0, 1, true);
    while let Some(c) = text[at..].chars().next() {
        let (start, rest) = (at, &text[at..]);
        at += c.len_utf8();
        let token = match c {
            '\n' | '\r' => {
                line += usize::from(c == '\n');
                margin = true;
                continue;
            }
            c if c.is_whitespace() => {
                margin = false;
                continue;
            }
            '#' => {
                at = start + rest.find(['\n', '\r']).unwrap_or(rest.len());
                continue;
            }
            '{' => {
                let (name, length) = quoted(rest).ok_or_else(|| format!("line {line}: this brace is never closed"))?;
                at = start + length;
                Token::Quoted(name)
            }
            c if is_name(c) => {
                at = start + rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                Token::Word(&text[start..at])
            }
            '-' | '?' | '!' | '*' | ':' | '(' | ')' | '[' | ']' | ',' | '<' | '>' => {
                at += usize::from(["->", "?-", "!-"].iter().any(|sign| rest.starts_with(sign)));
                Token::Sign(&text[start..at])
            }
            c => return Err(format!("line {line}: `{}` has no meaning here", c.escape_debug())),
        };
        tokens.push((token, line, margin));
        line += text[start..at].matches('\n').count();
        margin = false;
    }
    Ok(tokens)
}

/// A name in braces at the start of a text, and its length there.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        match (c, characters.peek()) {
            ('\\', Some(&(_, next @ ('{' | '}' | '\\')))) => {
                name.push(next);
                characters.next();
            }
            ('}', _) => return Some((name, at + 1)),
            (c, _) => name.push(c),
        }
    }
    None
}

impl Reader<'_> {
    fn declaration(&mut self) -> Result<(), String> {
        let keyword = match self.tokens[self.at] {
            (Token::Word(word), ..) if KEYWORDS.contains(&word) => word,
            _ => return Err("no declaration starts like this".into()),
        };
        self.at += 1;
        match keyword {
            "net" => drop(self.name()?),
            "tr" => {
                let name = self.name()?;
                let transition = self.transition(&name);
                self.label()?;
                self.interval()?;
                self.arcs(true, transition)?;
            }
            "pl" => {
                let name = self.name()?;
                let place = self.place(&name);
                self.label()?;
                if self.sign("(") {
                    let more = self.number(0)?;
                    let initial = &mut self.net.places[place as usize].initial;
                    *initial = initial.checked_add(more).ok_or("the marking is too large")?;
                    self.expect(")")?;
                }
                self.arcs(false, place)?;
            }
            "lb" | "nt" => {
                self.name()?;
                self.name()?;
                if keyword == "nt" {
                    self.name()?;
                }
            }
            _ => return Err("priorities are not read".into()),
        }
        match self.tokens.get(self.at) {
            Some((Token::Word(word), ..)) if KEYWORDS.contains(word) => Ok(()),
            None => Ok(()),
            Some((token, ..)) => Err(format!("{token:?} is not expected")),
        }
    }

    /// A word or a name in braces that belongs to this declaration.
    fn name(&mut self) -> Result<String, String> {
        let name = match self.tokens.get(self.at) {
            Some((Token::Word(word), _, false)) if !KEYWORDS.contains(word) => (*word).to_string(),
            Some((Token::Quoted(name), _, false)) => name.clone(),
            _ => return Err("a name is missing".into()),
        };
        self.at += 1;
        Ok(name)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some((Token::Sign(found), ..)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { Err(format!("`{sign}` is missing")) }
    }

    fn label(&mut self) -> Result<(), String> {
        if self.sign(":") {
            self.name()?;
        }
        Ok(())
    }

    /// Time in which anything may happen is no time.
    fn interval(&mut self) -> Result<(), String> {
        if self.sign("]") {
            return Err("timed transitions are not read".into());
        }
        if self.sign("[") {
            let zero = self.name()?.bytes().all(|digit| digit == b'0');
            self.expect(",")?;
            let without_end = self.name()? == "w";
            if !(self.sign("[") || self.sign("]")) || !zero || !without_end {
                return Err("timed transitions are not read".into());
            }
        }
        Ok(())
    }

    /// The arcs of a node on both sides of an arrow.
    fn arcs(&mut self, of_transition: bool, node: u32) -> Result<(), String> {
        let (mut right, mut any) = (false, false);
        loop {
            if self.sign("->") {
                if right {
                    return Err("there is a second `->`".into());
                }
                right = true;
                continue;
            }
            let Ok(name) = self.name() else { break };
            any = true;
            let takes = right != of_transition;
            let (transition, place) =
                if of_transition { (node, self.place(&name)) } else { (self.transition(&name), node) };
            let kind = ["*", "?-", "?", "!-", "!"].into_iter().find(|sign| self.sign(sign));
            let weight = if kind.is_some() { self.number(1)? } else { 1 };
            let transition = &mut self.net.transitions[transition as usize];
            let list = match (kind, takes) {
                (None | Some("*"), true) => &mut transition.inputs,
                (None | Some("*"), false) => &mut transition.outputs,
                (Some("?"), true) => &mut transition.reads,
                (Some("?-"), true) => &mut transition.inhibitors,
                _ => return Err(format!("this arc of `{name}` is not read")),
            };
            list.push((place, weight));
        }
        if any && !right { Err("`->` is missing".into()) } else { Ok(()) }
    }

    /// A number with its multiplier.
    fn number(&mut self, least: u32) -> Result<u32, String> {
        let word = self.name()?;
        let digits = word.trim_end_matches(['K', 'M', 'G', 'T', 'P', 'E']);
        let factor = match &word[digits.len()..] {
            "" => 1,
            "K" => 1000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            _ => 0,
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = digits.parse::<u64>().ok().and_then(|digits| digits.checked_mul(factor));
        let value = value.filter(|_| is_number && factor > 0).and_then(|value| u32::try_from(value).ok());
        value.filter(|&value| value >= least).ok_or_else(|| format!("`{word}` is no number that is read"))
    }

    fn place(&mut self, name: &str) -> u32 {
        match self.places.get(name) {
            Some(&place) => place,
            None => *self.places.entry(name.into()).or_insert(self.net.place(name, name, 0)),
        }
    }

    fn transition(&mut self, name: &str) -> u32 {
        match self.transitions.get(name) {
            Some(&transition) => transition,
            None => *self.transitions.entry(name.into()).or_insert(self.net.transition(name, name)),
        }
    }
}
