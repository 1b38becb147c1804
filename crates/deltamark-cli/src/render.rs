//! Errors as people see them.
//!
//! In: a [`Failure`]. Out: text on standard error, with file, line, column and a caret if there is a span.
//! What stays true: whatever the input is, an error takes at most a screenful: long lines are cut around the
//! span, long lists end in a count.

use crate::exit::Failure;
use crate::output::{Look, tell};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use deltamark::diagnostic::{Diagnostic, MOST_DIAGNOSTICS, line_column};
use deltamark::load::Source;

/// The maximum number of characters shown of a line.
const LINE: usize = 120;
/// The maximum number of errors shown of one text.
const ERRORS: usize = 10;
/// The maximum number of characters of one message: names from a hostile file can be of any length.
const MESSAGE: usize = 600;

/// Shows a failure on standard error.
pub fn failure(failure: &Failure) {
    if !matches!(failure, Failure::Unread) {
        tell(told(failure, &renderer()));
    }
}

/// Shows a remark on standard error.
pub fn note(message: &str) {
    tell(renderer().render(&[Group::with_title(Level::NOTE.primary_title(shortened(message)))]));
}

/// Shows what weakens an answer.
pub fn warning(message: &str) {
    tell(renderer().render(&[Group::with_title(Level::WARNING.primary_title(shortened(message)))]));
}

fn renderer() -> Renderer {
    let look = Look::stderr();
    if look.colour() { Renderer::styled() } else { Renderer::plain() }.term_width(look.width.max(LINE + 20))
}

fn told(failure: &Failure, renderer: &Renderer) -> String {
    match failure {
        Failure::Plain { message, help, .. } => renderer.render(&[titled(message, help.as_deref())]),
        Failure::Unread => String::new(),
        Failure::Stopped(report) => renderer.render(&[titled(&crate::text::stopped(report), None)]),
        Failure::Text { source, diagnostics } => {
            let shown = diagnostics.iter().take(ERRORS).map(|diagnostic| one(source, diagnostic, renderer));
            let mut texts: Vec<String> = shown.collect();
            if diagnostics.len() > ERRORS {
                // Parsers give up at some number, so there may be more than they found.
                let least = if diagnostics.len() >= MOST_DIAGNOSTICS { "at least " } else { "" };
                let more = format!("and {least}{} more in `{}`", diagnostics.len() - ERRORS, source.name);
                texts.push(renderer.render(&[titled(&more, None)]));
            }
            texts.join("\n\n")
        }
    }
}

fn titled<'a>(message: &str, help: Option<&str>) -> Group<'a> {
    let group = Group::with_title(Level::ERROR.primary_title(shortened(message)));
    help.into_iter().fold(group, |group, help| group.element(Level::HELP.message(shortened(help))))
}

fn one(source: &Source, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
    let mut group = Group::with_title(Level::ERROR.primary_title(shortened(&diagnostic.message)));
    let cut = diagnostic.span.map(|span| Cut::new(&source.text, span.start, span.end));
    group = match &cut {
        Some(cut) => {
            let mut mark = AnnotationKind::Primary.span(cut.start..cut.end);
            if let Some(label) = &diagnostic.label {
                mark = mark.label(shortened(label));
            }
            group.element(Snippet::source(&cut.text).path(source.name.as_str()).line_start(cut.line).annotation(mark))
        }
        None => group.element(Origin::path(source.name.as_str())),
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(shortened(help)));
    }
    let text = renderer.render(&[group]);
    match cut {
        // The renderer counts columns in what it is given; in a line that was cut in front the true column is
        // another.
        Some(cut) => {
            let place = |column| format!("{}:{}:{column}", source.name, cut.line);
            text.replacen(&place(cut.text[..cut.start].chars().count() + 1), &place(cut.column), 1)
        }
        None => text,
    }
}

/// The line a span begins in, cut to a window around the span.
struct Cut {
    line: usize,
    column: usize,
    text: String,
    start: usize,
    end: usize,
}

impl Cut {
    fn new(text: &str, start: usize, end: usize) -> Self {
        let boundary = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (boundary(start), boundary(end.max(start)));
        let (line, column) = line_column(text, start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        let end = end.min(line_end).max(start);
        let before = &text[line_start..start];
        let marked = &text[start..end];
        let after = text[end..line_end].trim_end_matches('\r');
        // A third of the window precedes the span, for context.
        let (head, cut_head) = last(before, LINE / 3);
        let (middle, cut_middle) = first(marked, LINE / 2);
        let (tail, cut_tail) = first(
            if cut_middle { "" } else { after },
            LINE.saturating_sub(head.chars().count() + middle.chars().count()),
        );
        let mut shown = String::new();
        if cut_head {
            shown.push('…');
        }
        shown.push_str(&printable(head));
        let from = shown.len();
        shown.push_str(&printable(middle));
        let to = shown.len();
        shown.push_str(&printable(tail));
        if cut_middle || cut_tail {
            shown.push('…');
        }
        Cut { line, column, text: shown, start: from, end: to }
    }
}

/// The first `count` characters, and whether more were there.
fn first(text: &str, count: usize) -> (&str, bool) {
    match text.char_indices().nth(count) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// The last `count` characters, and whether more were there.
fn last(text: &str, count: usize) -> (&str, bool) {
    match text.char_indices().rev().nth(count) {
        Some((before, character)) => (&text[before + character.len_utf8()..], true),
        None => (text, false),
    }
}

/// The text with control characters replaced, so that a file cannot control the terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

fn shortened(message: &str) -> String {
    let clean: String =
        message.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).take(MESSAGE + 1).collect();
    match first(&clean, MESSAGE) {
        (start, true) => format!("{start}…"),
        (all, false) => all.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, start: usize, end: usize) -> (usize, usize, String) {
        let cut = Cut::new(text, start, end);
        (
            cut.line,
            cut.column,
            format!("{}[{}]{}", &cut.text[..cut.start], &cut.text[cut.start..cut.end], &cut.text[cut.end..]),
        )
    }

    #[test]
    fn a_place_is_shown_within_its_line() {
        let cases = [
            ("ab\ncd ef\ngh", 6, 8, (2, 4, "cd [ef]")),
            ("ab\ncd", 0, 5, (1, 1, "[ab]")),
            ("ab", 2, 2, (1, 3, "ab[]")),
            ("", 0, 0, (1, 1, "[]")),
            ("a\tb\u{7}", 2, 3, (1, 3, "a [b]\u{fffd}")),
            ("ab", 77, 99, (1, 3, "ab[]")),
            ("çd", 1, 2, (1, 1, "[ç]d")),
        ];
        for (text, start, end, (line, column, expected)) in cases {
            let (start, end) = if text == "çd" { (0, 2) } else { (start, end) };
            assert_eq!(shown(text, start, end), (line, column, expected.to_string()), "{text:?}");
        }
    }

    #[test]
    fn a_line_of_ten_megabytes_takes_one_line() {
        let text = "x".repeat(10 << 20);
        let (line, column, cut) = shown(&text, 5 << 20, (5 << 20) + 3);
        assert_eq!((line, column), (1, (5 << 20) + 1));
        assert!(cut.starts_with('…') && cut.ends_with('…') && cut.contains("[xxx]"), "{cut}");
        assert!(cut.chars().count() < LINE + 10);
        let source = Source { name: "x.pnml".into(), text };
        let diagnostic = Diagnostic::at(0..10 << 20, "x".repeat(100_000)).label("y".repeat(100_000)).help("z");
        assert!(one(&source, &diagnostic, &Renderer::plain()).len() < 3000);
    }
}
