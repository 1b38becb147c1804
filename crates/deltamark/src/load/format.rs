//! The languages that models can be written in, and how the one of a file is found.
//!
//! In: a name, a path or the first bytes of a file. Out: a [`Format`], or why there is none.
//! Invariant: one table, [`FORMATS`], lists the languages; whoever adds one adds a row.

use super::LoadError;
use super::error::shown;
use super::readers::{Parsed, Text, Wrong, cpn, dve, library, lna, net, pnml};
use super::recognise::{Recognised, by_ending, recognise};
use deltamark_core::diagnostic::did_you_mean;
use std::path::Path;

/// A language that models can be written in.
pub struct Format {
    /// Its name, for `--format` and reports.
    pub name: &'static str,
    /// The endings of its files' names.
    pub extensions: &'static [&'static str],
    /// What it is, in a few words.
    pub help: &'static str,
    /// Whether a step of such a model can be a fault (a division by zero, say).
    pub can_fault: bool,
    /// Whether everything that properties can name is a count of tokens, so that `stats` may add them up.
    pub counts_tokens: bool,
    /// Whether its models can have parameters.
    pub parameters: bool,
    /// Whether its models can be run by different engines.
    pub engines: bool,
    /// The ending of a file beside the model, in place of the model's own, that is read with it if it is there.
    pub companion: Option<&'static str>,
    pub(super) parse: fn(&Text<'_>) -> Result<Parsed, Wrong>,
}

/// All languages there are.
pub static FORMATS: &[Format] = &[
    Format {
        name: "pnml",
        extensions: &["pnml", "tapn"],
        help: "P/T nets and symmetric (coloured) nets in PNML, the XML format of ISO/IEC 15909-2, and nets of TAPAAL without time",
        can_fault: false,
        counts_tokens: true,
        parameters: false,
        engines: false,
        companion: None,
        parse: pnml,
    },
    Format {
        name: "tina",
        extensions: &["net"],
        help: "P/T nets in the text format of TINA",
        can_fault: false,
        counts_tokens: true,
        parameters: false,
        engines: false,
        companion: None,
        parse: |text| net(deltamark_nets::tina::parse_under, text),
    },
    Format {
        name: "lna",
        extensions: &["lna"],
        help: "coloured nets in the language of Helena; properties are read from NAME.prop.lna beside NAME.lna",
        can_fault: true,
        counts_tokens: true,
        parameters: true,
        engines: false,
        companion: Some("prop.lna"),
        parse: lna,
    },
    Format {
        name: "cpn",
        extensions: &["cpn"],
        help: "coloured nets of CPN Tools with CPN ML, without time",
        can_fault: true,
        counts_tokens: true,
        parameters: true,
        engines: false,
        companion: None,
        parse: cpn,
    },
    Format {
        name: "dve",
        extensions: &["dve"],
        help: "processes in DVE, the language of DIVINE and of the BEEM models",
        can_fault: true,
        counts_tokens: false,
        parameters: false,
        engines: true,
        companion: None,
        parse: |text| dve(text, deltamark_dve::parse_under(text.bytes, text.control)?),
    },
    Format {
        name: "mdve",
        extensions: &["mdve"],
        help: "DVE with macros and parameters, as BEEM's sources are written",
        can_fault: true,
        counts_tokens: false,
        parameters: true,
        engines: true,
        companion: None,
        parse: |text| dve(text, deltamark_dve::parse_macros_under(text.bytes, &text.options.parameters, text.control)?),
    },
    // No file's name asks for this one: code is run only when the user says so.
    Format {
        name: "so",
        extensions: &[],
        help: "models in a shared library, which is loaded and run (see deltamark.h); only with `--format so`",
        can_fault: true,
        counts_tokens: false,
        parameters: true,
        engines: false,
        companion: None,
        parse: library,
    },
];

impl Format {
    /// The format of this name. The ending of its files' names is understood too.
    pub fn by_name(name: &str) -> Option<&'static Format> {
        let name = name.strip_prefix('.').unwrap_or(name).to_ascii_lowercase();
        FORMATS.iter().find(|format| format.name == name || format.extensions.contains(&name.as_str()))
    }

    /// Whether loading such a model runs code that it brings along, so that nobody but the user may ask for it.
    pub fn is_code(&self) -> bool {
        self.name == "so"
    }

    /// The format of a file's name, by its ending.
    pub fn of_path(path: &str) -> Option<&'static Format> {
        Self::by_path(Path::new(path))
    }

    pub(super) fn by_path(path: &Path) -> Option<&'static Format> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        FORMATS.iter().find(|format| format.extensions.contains(&ending.as_str()))
    }

    /// The formats and their endings, for messages: `pnml (.pnml), tina (.net)`.
    pub fn list() -> String {
        let one = |format: &Format| match format.extensions {
            [] => format.name.to_string(),
            endings => format!("{} (.{})", format.name, endings.join(", .")),
        };
        FORMATS.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// There is no such format.
pub(super) fn no_such_format(name: &str) -> LoadError {
    let known = FORMATS.iter().flat_map(|format| [format.name].into_iter().chain(format.extensions.iter().copied()));
    let help = match did_you_mean(name, known) {
        Some(close) => format!("did you mean `{close}`? Known formats: {}", Format::list()),
        None => format!("known formats: {}", Format::list()),
    };
    LoadError::UnknownFormat { message: format!("there is no format `{name}`"), help }
}

/// The format that the content of the file is recognised as, or why it cannot be read; `None` if it is not recognised.
pub(super) fn by_content(path: &str, inner: &Path, bytes: &[u8]) -> Option<Result<&'static Format, LoadError>> {
    let ending = inner.extension().and_then(|ending| ending.to_str());
    match recognise(bytes).or_else(|| by_ending(ending?))? {
        Recognised::Ours(name) => Format::by_name(name).map(Ok),
        Recognised::Foreign(foreign) => {
            let message = format!("{} is {}, which is not read", shown(path), foreign.what);
            Some(Err(LoadError::UnknownFormat { message, help: foreign.help.into() }))
        }
    }
}

/// Neither the name nor the content of the file identifies its format.
pub(super) fn no_format_of(path: &str, inner: &Path) -> LoadError {
    let message = match inner.extension().and_then(|ending| ending.to_str()) {
        _ if path == "-" => "what comes from standard input is in no format that is known by its words".to_string(),
        Some(ending) => format!("the ending `.{ending}` of `{path}` belongs to no known format, nor do its words"),
        None => format!("neither the name `{path}` nor the words of the file tell its format"),
    };
    LoadError::UnknownFormat { message, help: format!("add `--format NAME`; known formats: {}", Format::list()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_name_and_by_ending() {
        let cases = [("pnml", "pnml"), ("PNML", "pnml"), ("tina", "tina"), ("net", "tina"), (".net", "tina")];
        for (name, expected) in cases {
            assert_eq!(Format::by_name(name).map(|format| format.name), Some(expected), "{name}");
        }
        assert!(Format::by_name("xml").is_none());
        assert_eq!(Format::by_path(Path::new("a/b.NET")).map(|format| format.name), Some("tina"));
        assert!(Format::by_path(Path::new("net")).is_none());
        // Code is loaded by the option alone, whatever the file is called.
        assert!(Format::by_path(Path::new("model.so")).is_none());
        assert_eq!(Format::by_name("so").map(|format| format.name), Some("so"));
    }

    #[test]
    fn names_of_formats_and_their_endings_are_unique() {
        let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        names.extend(FORMATS.iter().flat_map(|format| format.extensions));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        // A format may be called like its own ending.
        let same = FORMATS.iter().filter(|format| format.extensions.contains(&format.name)).count();
        assert_eq!(names.len(), count - same);
    }
}
