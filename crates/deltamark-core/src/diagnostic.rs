//! Errors in an input: what, where, and how to fix them.
//!
//! In: errors found by a parser or checker. Out: plain data, rendered by the user interface.
//! Invariant: a span is within the text it refers to.

use crate::Stop;
use std::ops::Range;

/// The most diagnostics that a reader collects of one text. A list of this length means that there may be more.
pub const MOST_DIAGNOSTICS: usize = 20;

/// A piece of a text, as byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to but not including `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }

    /// An empty span at this offset.
    pub fn at(offset: usize) -> Self {
        Span { start: offset, end: offset }
    }

    /// As a range for slicing.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Span { start: range.start, end: range.end }
    }
}

/// An error in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The error, in one sentence without a full stop.
    pub message: String,
    /// Its position in the text, if it has one.
    pub span: Option<Span>,
    /// A short label for that position.
    pub label: Option<String>,
    /// How to fix it.
    pub help: Option<String>,
    /// Set if this is no error: reading was stopped, for this reason.
    pub stop: Option<Stop>,
}

impl Diagnostic {
    /// An error without a position.
    pub fn new(message: impl Into<String>) -> Self {
        Diagnostic { message: message.into(), span: None, label: None, help: None, stop: None }
    }

    /// An error at a position.
    pub fn at(span: impl Into<Span>, message: impl Into<String>) -> Self {
        Diagnostic { span: Some(span.into()), ..Self::new(message) }
    }

    /// The same with a label for the position.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The same with a hint.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Lets `?` propagate one error where several are possible.
impl From<Diagnostic> for Vec<Diagnostic> {
    fn from(diagnostic: Diagnostic) -> Self {
        vec![diagnostic]
    }
}

/// A stopped reader propagates this like an error, so that `?` works.
impl From<Stop> for Diagnostic {
    fn from(stop: Stop) -> Self {
        Diagnostic { stop: Some(stop), ..Diagnostic::new(format!("reading was ended ({})", stop.word())) }
    }
}

/// The same where several errors are possible.
impl From<Stop> for Vec<Diagnostic> {
    fn from(stop: Stop) -> Self {
        vec![stop.into()]
    }
}

/// Line and column, both from 1, of a byte offset. Columns count characters; an offset inside a
/// character counts as its start, one past the text as its end.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The known name closest to a misspelt one, if any is close enough to suggest.
pub fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = wrong.chars().count();
    let allowed = ((length + 1) / 3).min(length.saturating_sub(1));
    known
        .into_iter()
        .map(|name| (distance(&wrong.to_lowercase(), &name.to_lowercase(), allowed), name))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words, or more than
/// `limit` as soon as that is certain.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_diagnostic_passes_for_several() {
        fn several() -> Result<(), Vec<Diagnostic>> {
            Err(Diagnostic::new("wrong"))?;
            Ok(())
        }
        assert_eq!(several(), Err(vec![Diagnostic::new("wrong")]));
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "ab\nçd\n";
        assert_eq!(line_column(text, 0), (1, 1));
        assert_eq!(line_column(text, 3), (2, 1));
        assert_eq!(line_column(text, 4), (2, 1));
        assert_eq!(line_column(text, 5), (2, 2));
        assert_eq!(line_column(text, 99), (3, 1));
    }

    #[test]
    fn suggestions_are_close_or_absent() {
        let names = ["idle_1", "waiting", "eating"];
        assert_eq!(did_you_mean("iddle_1", names), Some("idle_1"));
        assert_eq!(did_you_mean("Eatnig", names), Some("eating"));
        assert_eq!(did_you_mean("thinking", names), None);
        assert_eq!(did_you_mean("x", ["y"]), None);
        assert_eq!(did_you_mean("plane", ["plain"]), Some("plain"));
    }
}
