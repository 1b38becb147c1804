//! The preprocessor: `#define`, `#undef`, `#ifdef`, `#ifndef`, `#else`, `#endif`.
//!
//! In: the text of a net and the symbols defined from outside. Out: a text of the same length in which
//! directives and excluded text are blanks. What stays true: every byte that is kept has the same offset, and
//! line breaks stay, so that spans in the one text are spans in the other.
//!
//! A directive takes a line of its own. Nothing is expanded: symbols are defined or not. Inside a comment or
//! a string a `#` is no directive. Excluded text need not consist of tokens. Conditions nest, also inside
//! excluded text: there Helena loses the nesting depth at an `#else`, and we do not.

use deltamark_core::Findings;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};
use std::collections::BTreeSet;

const DIRECTIVES: [&str; 6] = ["define", "undef", "ifdef", "ifndef", "else", "endif"];

/// A text without its directives.
pub(crate) struct Preprocessed {
    /// The text, as long as the original.
    pub text: String,
    /// The symbols that some condition tests.
    pub asked: BTreeSet<String>,
}

/// A condition that is open.
struct Condition {
    span: Span,
    /// Whether the surrounding text is kept.
    outer: bool,
    /// Whether its current branch is kept, provided that the surrounding text is.
    holds: bool,
    has_else: bool,
}

/// The state of the scan at the end of a line that is kept.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Code,
    Comment,
    Text,
}

/// Executes the directives of a text.
pub(crate) fn preprocess(text: &str, symbols: &[String], findings: &mut Findings) -> Preprocessed {
    let mut defined: BTreeSet<String> = symbols.iter().cloned().collect();
    let mut asked = BTreeSet::new();
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<Condition> = Vec::new();
    let mut within = Within::Code;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let keeps = open.last().is_none_or(|condition| condition.outer && condition.holds);
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        match line[indent..].strip_prefix('#').filter(|_| within == Within::Code) {
            Some(directive) => {
                let span = Span::new(start + indent, start + indent + 1 + directive.trim_end().len());
                let mut step =
                    DirectiveStep { span, keeps, defined: &mut defined, asked: &mut asked, open: &mut open, findings };
                step.take(directive);
                blank(line, &mut out);
            }
            None if keeps => {
                within = scan(line, within);
                out.push_str(line);
            }
            None => blank(line, &mut out),
        }
        start += line.len();
    }
    for condition in open {
        findings.add(|| Diagnostic::at(condition.span, "this condition has no `#endif`"));
    }
    Preprocessed { text: out, asked }
}

/// As many blanks as the line has bytes, and its line break.
fn blank(line: &str, out: &mut String) {
    out.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
}

/// The state of the scan after a line that is kept.
fn scan(line: &str, mut within: Within) -> Within {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let two = bytes.get(at..at + 2);
        match within {
            Within::Code if two == Some(b"//") => break,
            Within::Code if two == Some(b"/*") => {
                within = Within::Comment;
                at += 1;
            }
            Within::Code if bytes[at] == b'"' => within = Within::Text,
            Within::Text if bytes[at] == b'"' => within = Within::Code,
            Within::Comment if two == Some(b"*/") => {
                within = Within::Code;
                at += 1;
            }
            _ => {}
        }
        at += 1;
    }
    within
}

/// The execution of one directive.
struct DirectiveStep<'s> {
    span: Span,
    keeps: bool,
    defined: &'s mut BTreeSet<String>,
    asked: &'s mut BTreeSet<String>,
    open: &'s mut Vec<Condition>,
    findings: &'s mut Findings,
}

impl DirectiveStep<'_> {
    fn take(&mut self, directive: &str) {
        let directive = directive.split("//").next().unwrap_or_default();
        let directive = directive.split("/*").next().unwrap_or_default();
        let span = self.span;
        let wide = directive.starts_with([' ', '\t']);
        let mut words = directive.split_ascii_whitespace();
        let word = words.next().unwrap_or_default();
        let symbol = words.next();
        if let Some(more) = words.next() {
            self.findings.add(|| Diagnostic::at(span, format!("`#{word}` takes one symbol; `{more}` is too much")));
        }
        let branches = matches!(word, "ifdef" | "ifndef" | "else" | "endif");
        if !self.keeps && !branches {
            return;
        }
        if wide && DIRECTIVES.contains(&word) {
            self.findings
                .add(|| Diagnostic::at(span, "a directive has no blank behind `#`").help(format!("write `#{word}`")));
        }
        match word {
            "define" | "undef" | "ifdef" | "ifndef" => {
                let name = symbol.unwrap_or_default();
                if !is_symbol(name) {
                    self.findings.add(|| Diagnostic::at(span, format!("`#{word}` needs a symbol")));
                }
                self.with_symbol(word, name);
            }
            "else" | "endif" => {
                if let Some(symbol) = symbol {
                    // Many repeat the symbol after `#endif`; that is at best a comment.
                    self.findings.add(|| {
                        Diagnostic::at(span, format!("`#{word}` takes no symbol"))
                            .help(format!("write `#{word} // {symbol}`"))
                    });
                }
                self.branch(word);
            }
            "include" => self
                .findings
                .add(|| Diagnostic::at(span, "`#include` is not supported").help("put the text of that file here")),
            _ => self.findings.add(|| {
                let diagnostic = Diagnostic::at(span, format!("`#{word}` is no directive"));
                match did_you_mean(word, DIRECTIVES) {
                    Some(close) => diagnostic.help(format!("did you mean `#{close}`?")),
                    None => diagnostic.help("the directives are #define, #undef, #ifdef, #ifndef, #else and #endif"),
                }
            }),
        }
    }

    fn with_symbol(&mut self, word: &str, name: &str) {
        match word {
            "define" => {
                self.defined.insert(name.into());
            }
            "undef" => {
                self.defined.remove(name);
            }
            _ => {
                self.asked.insert(name.into());
                let holds = self.defined.contains(name) == (word == "ifdef");
                self.open.push(Condition { span: self.span, outer: self.keeps, holds, has_else: false });
            }
        }
    }

    fn branch(&mut self, word: &str) {
        let span = self.span;
        let Some(condition) = self.open.last_mut() else {
            self.findings.add(|| Diagnostic::at(span, format!("`#{word}` without `#ifdef` or `#ifndef`")));
            return;
        };
        if word == "endif" {
            self.open.pop();
        } else if condition.has_else {
            self.findings.add(|| Diagnostic::at(span, "a condition has only one `#else`"));
        } else {
            condition.has_else = true;
            condition.holds = !condition.holds;
        }
    }
}

fn is_symbol(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that is kept, with blanks collapsed.
    fn left(text: &str, symbols: &[&str]) -> String {
        let symbols: Vec<String> = symbols.iter().map(ToString::to_string).collect();
        let mut findings = Findings::default();
        let done = preprocess(text, &symbols, &mut findings);
        assert!(findings.is_empty(), "{text}");
        assert_eq!(done.text.len(), text.len());
        done.text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn conditions_keep_and_leave_out() {
        let nested = "#ifdef A\na\n#ifdef B\nb\n#else\nc\n#endif\nd\n#else\ne\n#endif\nf";
        let cases: &[(&str, &[&str], &str)] = &[
            ("a\nb", &[], "a b"),
            ("#ifdef S\na\n#else\nb\n#endif", &["S"], "a"),
            ("#ifdef S\na\n#else\nb\n#endif", &[], "b"),
            ("#ifndef S\na\n#endif\nc", &["S"], "c"),
            ("#define S\n#ifdef S\na\n#endif", &[], "a"),
            ("#define S\n#undef S\n#ifdef S\na\n#endif", &[], ""),
            ("#ifdef X\n#define S\n#endif\n#ifdef S\na\n#endif", &[], ""),
            (nested, &["A", "B"], "a b d f"),
            (nested, &["A"], "a c d f"),
            // Here Helena would leave the excluded text at the inner `#else`.
            (nested, &[], "e f"),
            (nested, &["B"], "e f"),
            ("#ifdef X\n \" ' ${ never tokens\n#endif\na", &[], "a"),
            ("/*\n#ifdef X\n*/ a", &[], "/* #ifdef X */ a"),
            ("// \" /*\n#ifdef X\nb\n#endif", &["X"], "// \" /* b"),
            ("  #ifdef X // why\nb\n  #endif /* X */", &["X"], "b"),
        ];
        for &(text, symbols, expected) in cases {
            assert_eq!(left(text, symbols), expected, "{text:?} with {symbols:?}");
        }
    }

    #[test]
    fn wrong_directives_are_told() {
        let cases = [
            ("#ifdef A\n", "this condition has no `#endif`"),
            ("#endif\n", "`#endif` without `#ifdef` or `#ifndef`"),
            ("#else\n", "`#else` without `#ifdef` or `#ifndef`"),
            ("#ifdef A\n#else\n#else\n#endif", "a condition has only one `#else`"),
            ("#ifdef\n#endif", "`#ifdef` needs a symbol"),
            ("#define 1x", "`#define` needs a symbol"),
            ("#define a b", "`#define` takes one symbol; `b` is too much"),
            ("#ifdfe A", "`#ifdfe` is no directive"),
            ("# define A", "a directive has no blank behind `#`"),
            ("#include other.lna", "`#include` is not supported"),
            ("#ifdef A\n#endif A", "`#endif` takes no symbol"),
        ];
        for (text, message) in cases {
            let mut findings = Findings::default();
            preprocess(text, &[], &mut findings);
            let found = findings.or(()).expect_err(text);
            assert_eq!(found[0].message, message, "{text}");
        }
    }
}
