//! Property files.
//!
//! In: the text of a file with a sequence of properties. Out: the properties, or all diagnostics, with spans in
//! the file.
//!
//! ```text
//! # A comment; empty lines are ignored.
//! invariant mutex: critical_1 + critical_2 <= 1
//! reach both wait: waiting_1 = 1
//!                  and waiting_2 = 1
//! invariant: p >= 0            # a property without a name is named by its text
//! ltl served: G (waiting_1 -> F critical_1)
//! ctl: AG EF initial
//! deadlock-free
//! ```
//!
//! What stays true: a property begins at the left margin of a line and includes the indented lines below it; names
//! of properties are unique within the file.

use std::collections::HashSet;

use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Control, Diagnostic, Findings, Observe, Property, Span};

use crate::PropertyKind;
use crate::parse::shortened;
use crate::room::room;
use crate::temporal::{Logic, Temporal};

/// The maximum length of a property file in bytes.
pub const MAX_FILE_LENGTH: usize = 1 << 24;

/// What a file asks.
pub enum Asked {
    /// A property of single states.
    State(Property),
    /// A formula of temporal logic; without a name of its own it is named by its text.
    Temporal(String, Temporal),
}

/// Reads a property file.
pub fn parse_file(text: &str, observe: &dyn Observe) -> Result<Vec<Asked>, Vec<Diagnostic>> {
    parse_file_under(text, observe, &Control::new())
}

/// The same, unless `control` stops it. Properties are short, so it is polled between two.
pub fn parse_file_under(text: &str, observe: &dyn Observe, control: &Control) -> Result<Vec<Asked>, Vec<Diagnostic>> {
    if text.len() > MAX_FILE_LENGTH {
        return Err(vec![Diagnostic::new(format!(
            "the file is {} bytes long; at most {MAX_FILE_LENGTH} are accepted",
            text.len()
        ))]);
    }
    let mut findings = Findings::default();
    let mut properties = Vec::new();
    let mut names = HashSet::new();
    for entry in entries(text, &mut findings) {
        if findings.is_full() {
            break;
        }
        control.check()?;
        control.ask_for(room(&text[entry.range()]))?;
        match read(text, entry, observe) {
            Ok((name, property)) => {
                if let Some((name, span)) = name
                    && !names.insert(name)
                {
                    findings.add(|| {
                        Diagnostic::at(span, format!("there are two properties called `{}`", shortened(name)))
                            .help("give each property a name of its own")
                    });
                }
                properties.push(property);
            }
            Err(wrong) => wrong.into_iter().for_each(|finding| findings.add(|| finding)),
        }
    }
    findings.or_as_found(properties)
}

/// The pieces of the text that each hold one property.
fn entries(text: &str, findings: &mut Findings) -> Vec<Span> {
    let mut entries: Vec<Span> = Vec::new();
    let mut start = 0;
    let mut lost = false;
    for line in text.split_inclusive('\n') {
        let (from, to) = (start, start + line.len());
        start = to;
        // Some editors write a byte order mark before the first line.
        let from = if from == 0 && line.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { from };
        let content = text[from..to].trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let indented = text[from..to].starts_with(char::is_whitespace);
        match entries.last_mut() {
            Some(entry) if indented => entry.end = to,
            None if indented => {
                if !lost {
                    let at = from + text[from..to].find(content).unwrap_or(0);
                    findings.add(|| {
                        Diagnostic::at(Span::new(at, at + content.len()), "this line continues nothing")
                            .help("a property begins at the left edge; indented lines continue it")
                    });
                }
                lost = true;
            }
            _ => entries.push(Span::new(from, to)),
        }
    }
    entries
}

/// A property's name, if the file gives it one, and its span.
type Given<'t> = Option<(&'t str, Span)>;

/// Reads one property.
fn read<'t>(text: &'t str, entry: Span, observe: &dyn Observe) -> Result<(Given<'t>, Asked), Vec<Diagnostic>> {
    let body = &text[entry.range()];
    let word_length = body.find(|c: char| c.is_whitespace() || c == ':' || c == '#').unwrap_or(body.len());
    let word = &body[..word_length];
    let word_end = entry.start + word_length;
    let kind = match word {
        "invariant" => Ok(PropertyKind::Invariant),
        "reach" => Ok(PropertyKind::Reachable),
        "ltl" => Err(Logic::Ltl),
        "ctl" => Err(Logic::Ctl),
        "deadlock-free" => {
            let read = deadlock_free(text, Span::new(word_end, entry.end));
            return read.map(|(given, property)| (given, Asked::State(property))).map_err(|finding| vec![finding]);
        }
        _ => return Err(vec![unknown(word, Span::new(entry.start, word_end))]),
    };
    // The name and its colon are on the first line.
    let head = body[word_length..].lines().next().unwrap_or("");
    let Some(colon) = head.find([':', '"', '\'', '#']).filter(|&at| head[at..].starts_with(':')) else {
        return Err(vec![
            Diagnostic::at(Span::at(word_end), format!("a `:` is missing behind `{word}`"))
                .help(format!("write `{word} NAME: EXPRESSION` or `{word}: EXPRESSION`")),
        ]);
    };
    let given = name(text, Span::new(word_end, word_end + colon)).map_err(|finding| vec![finding])?;
    let start = word_end + colon + 1;
    let expression = text[start..entry.end].trim_end();
    let name = given.map(|(name, _)| name.to_string());
    let asked = match kind {
        Ok(kind) => kind.property(name, expression, observe).map(Asked::State),
        Err(logic) => Temporal::new(logic, expression, observe)
            .map(|formula| Asked::Temporal(name.unwrap_or_else(|| shortened(&formula.text)), formula)),
    };
    match asked {
        Ok(asked) => Ok((given, asked)),
        Err(findings) => {
            Err(findings.into_iter().map(|finding| moved(finding, start, start + expression.len())).collect())
        }
    }
}

/// The name at `place`, which may be blank.
fn name(text: &str, place: Span) -> Result<Given<'_>, Diagnostic> {
    let around = &text[place.range()];
    let name = around.trim();
    if name.is_empty() {
        return Ok(None);
    }
    let start = place.start + (around.len() - around.trim_start().len());
    match name.char_indices().find(|&(_, character)| "<>=()[]&|!\\\"'".contains(character) || character.is_control()) {
        None => Ok(Some((name, Span::new(start, start + name.len())))),
        Some((at, wrong)) => Err(Diagnostic::at(
            Span::new(start + at, start + at + wrong.len_utf8()),
            format!("`{}` cannot be part of a property's name", wrong.escape_debug()),
        )
        .help("a name is plain words; an expression stands behind a `:`")),
    }
}

/// Parses the rest after `deadlock-free`.
fn deadlock_free(text: &str, rest: Span) -> Result<(Given<'_>, Property), Diagnostic> {
    let body = &text[rest.range()];
    let line_length = body.find('\n').unwrap_or(body.len());
    let place = Span::new(rest.start, rest.start + body[..line_length].find('#').unwrap_or(line_length));
    if let Some(colon) = text[place.range()].find(':') {
        let at = place.start + colon;
        return Err(Diagnostic::at(Span::new(at, at + 1), "`deadlock-free` takes no expression")
            .help("write `deadlock-free` or `deadlock-free NAME`"));
    }
    let below = &body[line_length..];
    if let Some(more) = below.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')) {
        let at = rest.start + line_length + below.find(more).unwrap_or(0);
        return Err(Diagnostic::at(
            Span::new(at, at + more.len()),
            "`deadlock-free` does not go on over several lines",
        )
        .help("a property of its own begins at the left edge"));
    }
    let given = name(text, place)?;
    let mut property = Property::deadlock_free();
    if let Some((name, _)) = given {
        property.name = name.to_string();
    }
    Ok((given, property))
}

fn unknown(word: &str, span: Span) -> Diagnostic {
    match word.to_ascii_lowercase().as_str() {
        logic @ ("ltl" | "ctl") => Diagnostic::at(span, format!("a property cannot begin with `{}`", shortened(word)))
            .help(format!("write `{logic}`, in small letters")),
        lower => {
            let finding = Diagnostic::at(span, format!("a property cannot begin with `{}`", shortened(word)));
            let near = match lower {
                "reachable" | "reachability" | "ef" => Some("reach"),
                "ag" | "always" => Some("invariant"),
                "deadlock" => Some("deadlock-free"),
                _ if word.len() > 40 => None,
                _ => did_you_mean(word, ["invariant", "reach", "ltl", "ctl", "deadlock-free"]),
            };
            finding.help(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "properties begin with `invariant`, `reach`, `ltl`, `ctl` or `deadlock-free`; indented lines \
                         continue the property above"
                    .to_string(),
            })
        }
    }
}

/// A finding about an expression as a finding about its file.
fn moved(mut finding: Diagnostic, start: usize, end: usize) -> Diagnostic {
    finding.span = Some(match finding.span {
        Some(span) => Span::new(start + span.start, start + span.end),
        None => Span::new(start, end),
    });
    finding
}
