//! Declarations: those of the file in document order, and those of files that `use` names.
//!
//! In: a [`File`]. Out: names in the [`Model`]. What cannot be supported is refused where it is used: functions for
//! monitors and logs are often not for us. Colour sets, types and variables must be right.

use deltamark_core::diagnostic::line_column;

use super::*;
use crate::file::advised;
use crate::syntax::Dec;

/// The maximum nesting of files that name each other.
const DEEPEST_USE: u32 = 8;

/// Where a text of declarations is.
struct Origin<'t> {
    text: &'t Inscription,
    /// The name of the file that `use` names; `None` for the model.
    path: Option<&'t str>,
    depth: u32,
}

impl Origin<'_> {
    /// Line and column of a position of the text.
    fn position(&self, source: &str, at: usize) -> String {
        match self.path {
            None => {
                let (line, column) = line_column(source, self.text.span(source, at).start);
                format!("line {line}, column {column}")
            }
            Some(path) => {
                let (line, column) = line_column(&self.text.text, at.min(self.text.text.len()));
                format!("line {line}, column {column} of `{path}`")
            }
        }
    }
}

impl Lowering<'_> {
    pub(super) fn declare(&mut self, file: &File) {
        for declaration in &file.declarations {
            if self.model.room.refused().is_some() {
                return;
            }
            match declaration {
                Declaration::Known(decs, text) => {
                    if let Err(wrong) = self.model.declare(decs) {
                        self.wrong(text, "the declarations", &wrong);
                    }
                }
                Declaration::Refused(why, span) => self.refuse(*span, why.clone()),
                Declaration::Text(text) => self.declare_text(&Origin { text, path: None, depth: 0 }),
                Declaration::Use(path, text) => self.use_file(path, &Origin { text, path: None, depth: 0 }, 0),
            }
        }
        let unused: Vec<String> =
            self.model.parameters.iter().filter(|known| !known.2).map(|known| known.0.clone()).collect();
        for name in unused {
            self.findings.add(|| {
                Diagnostic::new(format!("the model has no `val {name}` that `--param {name}=…` could change"))
                    .help("initial markings are changed with `--marking PLACE=EXPR`")
            });
        }
    }

    fn wrong_at(&mut self, origin: &Origin<'_>, wrong: &Wrong) {
        match origin.path {
            None => self.wrong(origin.text, "the declarations", wrong),
            Some(_) => {
                let message = format!("{}, in {}", wrong.message, origin.position(self.source, wrong.at));
                let diagnostic = advised(Diagnostic::new(message), wrong);
                self.findings.add(|| diagnostic);
            }
        }
    }

    fn declare_text(&mut self, origin: &Origin<'_>) {
        let decs = match Parser::declarations(&origin.text.text) {
            Ok(decs) => decs,
            Err(wrong) => return self.wrong_at(origin, &wrong),
        };
        for dec in decs {
            if self.findings.is_full() || self.model.room.refused().is_some() {
                return;
            }
            if let Dec::Use(path, at) = &dec {
                self.use_file(path, origin, *at);
                continue;
            }
            let one = std::slice::from_ref(&dec);
            let Err(wrong) = self.model.declare(one) else { continue };
            if matches!(dec, Dec::Val(_) | Dec::Fun(_) | Dec::Globref(..) | Dec::Local(..)) {
                // What uses a name that cannot be used has the same reason: a chain of them is as long as its first.
                let why = match wrong.message.split_once(" cannot be used: ") {
                    Some((_, reason)) => reason.to_string(),
                    None => format!("{} ({})", wrong.message, origin.position(self.source, wrong.at)),
                };
                self.model.refuse(one, &why);
            } else {
                self.wrong_at(origin, &wrong);
            }
        }
    }

    fn use_file(&mut self, path: &str, origin: &Origin<'_>, at: usize) {
        let refuse = |lowering: &mut Self, message: String| {
            lowering.wrong_at(origin, &Wrong::new(at, message));
        };
        if origin.depth >= DEEPEST_USE {
            return refuse(self, format!("`use \"{path}\"`: more than {DEEPEST_USE} files name each other"));
        }
        match (self.beside)(path) {
            Ok(text) => {
                let text = Inscription { end: text.len(), start: 0, text };
                self.declare_text(&Origin { text: &text, path: Some(path), depth: origin.depth + 1 });
            }
            Err(why) => refuse(self, format!("`use \"{path}\"`: {why}")),
        }
    }
}
