//! From a file to a model that can be run.
//!
//! In: a path, and perhaps the name of a format. Out: a [`Loaded`], or a [`LoadError`] that reports
//! what is wrong, where, and what to do. Invariant: one table, [`FORMATS`], lists the languages.
//!
//! ```text
//! path ─input─▶ bytes ─unpack: gzip, zip, encodings─▶ text ─format─▶ reader of a language ─▶ Loaded
//!                                        by option, by ending, or by its words: recognise
//! ```

mod error;
mod format;
mod info;
mod input;
mod options;
mod readers;
mod recognise;
mod unpack;
mod watched;

pub use error::{LoadError, Source};
pub use format::{FORMATS, Format};
pub use info::{Loaded, ModelInfo};
pub use input::{read, read_under};
pub use options::{LoadOptions, Unfold};

use deltamark_core::{Control, Diagnostic, Stop};
use error::shown;
use format::{by_content, no_format_of, no_such_format};
use readers::{Coloured, Parsed, Text, Wrong};
use recognise::GREATSPN;
use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use unpack::{Failed, unpack};
use watched::watched;

/// The largest file that [`load`] reads.
pub const LARGEST_FILE: u64 = 1 << 30;

/// Loads the model in a file, which may be compressed with gzip or zip; `-` is the standard input.
/// The format, unless one is given, is that of the file's name, or else what its content looks like.
///
/// ```
/// use deltamark::{LoadError, load};
///
/// let model = load("../../models/kanban-3.pnml", None)?;
/// assert_eq!((model.info.format, model.info.sizes[0]), ("pnml", ("places", 16)));
///
/// let missing = load("../../models/kanban-3.pmnl", None).err().expect("there is no such file");
/// assert!(matches!(missing, LoadError::Unreadable { .. }), "{missing}");
/// # Ok::<(), LoadError>(())
/// ```
pub fn load(path: &str, format: Option<&str>) -> Result<Loaded, LoadError> {
    load_with(path, &LoadOptions { format: format.map(str::to_string), ..LoadOptions::default() })
}

/// The same, with all that can be said about it.
pub fn load_with(path: &str, options: &LoadOptions) -> Result<Loaded, LoadError> {
    load_under(path, options, &Control::new())
}

/// The same, as far as `control` lets it. See [`steering`](crate::control::steering).
pub fn load_under(path: &str, options: &LoadOptions, control: &Control) -> Result<Loaded, LoadError> {
    load_if(path, options, None, control)
}

/// The same, if the file holds the text of this length and [checksum](deltamark_graph::text_hash). That is compared before
/// the text is parsed, and before a shared library is loaded.
pub fn load_same(path: &str, options: &LoadOptions, text: (u64, u64), control: &Control) -> Result<Loaded, LoadError> {
    load_if(path, options, Some(text), control)
}

fn load_if(
    path: &str,
    options: &LoadOptions,
    text: Option<(u64, u64)>,
    control: &Control,
) -> Result<Loaded, LoadError> {
    // A wrong format is reported before the file is touched, a missing file before its
    // name's ending: each is what the user most likely has to mend.
    let format = options.format.as_deref();
    let named = format.map(|name| Format::by_name(name).ok_or_else(|| no_such_format(name))).transpose()?;
    let limit = options.limit.min(LARGEST_FILE);
    let packed = read_under(path, limit, control)?;
    let checksum = text_of(&packed, control).map_err(|stop| LoadError::Stopped {
        path: path.into(),
        format: named.map(|format| format.name),
        phase: "loading",
        stop,
    })?;
    if text.is_some_and(|text| text != checksum) {
        return Err(LoadError::Changed { path: path.into() });
    }
    // A library is loaded from its file, as it is.
    if let Some(format) = named.filter(|format| format.is_code()) {
        let text = Text { name: path, bytes: &packed, companion: None, options, control };
        return parsed(&text, format, checksum, None, || (format.parse)(&text));
    }
    let unpacked = unpack(&packed, path, limit, control).map_err(|failed| match failed {
        Failed::TooBig => LoadError::TooBig { path: path.into(), limit, unpacked: true },
        Failed::Stopped(stop) => LoadError::Stopped { path: path.into(), format: None, phase: "loading", stop },
        Failed::Wrong(diagnostic) => {
            LoadError::Malformed { source: Source::new(path, &packed), diagnostics: vec![diagnostic] }
        }
    })?;
    let inner = unpacked.name;
    let inner = Path::new(&inner);
    let owned = match unpacked.bytes {
        Cow::Owned(bytes) => Some(bytes),
        Cow::Borrowed(_) => None,
    };
    let bytes = Arc::new(owned.unwrap_or(packed));
    let format = match (named, Format::by_path(inner)) {
        (Some(format), _) => format,
        // Two languages share this ending, of which we read one.
        (None, Some(format)) if format.name == "tina" && bytes.starts_with(GREATSPN) => {
            by_content(path, inner, &bytes).unwrap_or(Ok(format))?
        }
        (None, Some(format)) => format,
        (None, None) if bytes.iter().all(u8::is_ascii_whitespace) => {
            let diagnostics = vec![Diagnostic::at(deltamark_core::Span::at(0), "the file is empty")];
            return Err(LoadError::Malformed { source: Source::new(path, &bytes), diagnostics });
        }
        (None, None) => by_content(path, inner, &bytes).unwrap_or_else(|| Err(no_format_of(path, inner)))?,
    };
    let companion = format.companion.filter(|_| path != "-").map(|ending| Path::new(path).with_extension(ending));
    let companion = companion.filter(|path| path.is_file()).map(|path| path.display().to_string());
    let companion = match companion {
        Some(path) => {
            let bytes = read_under(&path, options.limit.min(LARGEST_FILE), control)?;
            Some((path, Arc::new(bytes)))
        }
        None => None,
    };
    let beside = companion.as_ref().map(|(_, bytes)| &bytes[..]);
    let text = Text { name: path, bytes: &bytes, companion: beside, options, control };
    let name = companion.as_ref().map(|(name, _)| name.as_str());
    if bytes.len() < ALONE {
        parsed(&text, format, checksum, name, || (format.parse)(&text))
    } else {
        let beside = companion.as_ref().map(|(_, bytes)| Arc::clone(bytes));
        parsed(&text, format, checksum, name, || parse_alone(path, format, &bytes, beside, options, control))
    }
}

/// Loads the model in a text of this format; `name` is how reports call it.
pub fn parse(name: &str, format: &'static Format, bytes: &[u8], options: &LoadOptions) -> Result<Loaded, LoadError> {
    let text = Text { name, bytes, companion: None, options, control: &Control::new() };
    let checksum = (bytes.len() as u64, deltamark_graph::text_hash([bytes]));
    parsed(&text, format, checksum, None, || (format.parse)(&text))
}

/// What identifies a text: its length and a checksum.
fn text_of(bytes: &[u8], control: &Control) -> Result<(u64, u64), Stop> {
    // The checksum of a GiB takes more than a second.
    const PIECE: usize = 1 << 16;
    let mut asked = Ok(());
    let pieces = bytes.chunks(PIECE).take_while(|_| {
        asked = control.check();
        asked.is_ok()
    });
    let hash = deltamark_graph::text_hash(pieces);
    asked.map(|()| (bytes.len() as u64, hash))
}

/// Texts from this length on are parsed by a thread of their own, so that the run can end while a step takes long that does not poll:
/// the XML parser takes half a second and half a GiB for 100 MiB.
const ALONE: usize = 1 << 20;

/// Parses, and leaves the parser to itself when the run must end.
fn parse_alone(
    name: &str,
    format: &'static Format,
    bytes: &Arc<Vec<u8>>,
    companion: Option<Arc<Vec<u8>>>,
    options: &LoadOptions,
    control: &Control,
) -> Result<Parsed, Wrong> {
    let (name, bytes, options, inner) = (name.to_string(), Arc::clone(bytes), options.clone(), control.clone());
    let parse = move || {
        let companion = companion.as_ref().map(|bytes| &bytes[..]);
        (format.parse)(&Text { name: &name, bytes: &bytes, companion, options: &options, control: &inner })
    };
    watched(control, parse).unwrap_or_else(|stop| Err(Vec::<Diagnostic>::from(stop).into()))
}

/// The first name that is given a second time.
fn twice(given: &[(String, String)]) -> Option<&str> {
    let mut names = HashSet::new();
    given.iter().map(|(name, _)| name.as_str()).find(|name| !names.insert(*name))
}

/// The model that `parse` makes of a text, or what is wrong with it. `checksum` is that of the file, which
/// another run can compare, packed as it is; `companion` is the name of the file beside it.
fn parsed(
    text: &Text<'_>,
    format: &'static Format,
    checksum: (u64, u64),
    companion: Option<&str>,
    parse: impl FnOnce() -> Result<Parsed, Wrong>,
) -> Result<Loaded, LoadError> {
    let &Text { name, bytes, options, .. } = text;
    if let Some((parameter, value)) = options.parameters.first().filter(|_| !format.parameters) {
        return Err(LoadError::Meaningless {
            message: format!("{} has no parameters, so `{parameter}={value}` means nothing to it", shown(name)),
            help: "leave the parameter out".into(),
        });
    }
    if let Some((place, _)) = options.markings.first().filter(|_| format.name != "cpn") {
        return Err(LoadError::Meaningless {
            message: format!("the marking of `{place}` can be replaced in models of CPN Tools only"),
            help: "leave `--marking` out, and change the initial marking in the file".into(),
        });
    }
    for (option, given) in [("--param", &options.parameters), ("--marking", &options.markings)] {
        if let Some(name) = twice(given) {
            return Err(LoadError::Meaningless {
                message: format!("`{option}` gives `{name}` two values"),
                help: "leave one of them out".into(),
            });
        }
    }
    if let Some(engine) = options.engine.filter(|_| !format.engines) {
        return Err(LoadError::Meaningless {
            message: format!(
                "models in `{}` are run in one way only, so `--engine {engine}` means nothing to {}",
                format.name,
                shown(name)
            ),
            help: "leave the option out".into(),
        });
    }
    match parse() {
        Ok(Parsed { coloured: None, .. }) if options.unfold != Unfold::Auto => Err(LoadError::Meaningless {
            message: format!("{} has no colours, so there is nothing to unfold", shown(name)),
            help: "leave out `--unfold`".into(),
        }),
        Ok(Parsed { system, sizes, coloured, final_markings, remarks }) => {
            let can_fault = coloured.as_ref().map_or(format.can_fault, |coloured| coloured.can_fault);
            let info = ModelInfo {
                path: Some(name.into()),
                format: format.name,
                sizes,
                can_fault: Some(can_fault),
                counts_tokens: format.counts_tokens,
                final_markings,
                remarks,
                text: Some(checksum),
                options: options.words(),
                ..ModelInfo::code()
            };
            let info = match coloured {
                None => info,
                Some(Coloured { note, properties, formulas, propositions, .. }) => {
                    ModelInfo { note: Some(note), properties, formulas, propositions, ..info }
                }
            };
            Ok(Loaded { system, info })
        }
        Err(Wrong { companion: beside, unfolding, diagnostics }) => {
            if let Some(stop) = diagnostics.iter().find_map(|diagnostic| diagnostic.stop) {
                let phase = if unfolding { "unfolding" } else { "loading" };
                return Err(LoadError::Stopped { path: name.into(), format: Some(format.name), phase, stop });
            }
            let (name, bytes) = companion.zip(text.companion).filter(|_| beside).unwrap_or((name, bytes));
            Err(LoadError::Malformed { source: Source::new(name, bytes), diagnostics })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_markings_become_expressions() {
        let text = b"<pnml><net id='n'><place id='p'/><place id='not'/><place id='r'/><finalmarkings>\
            <marking><place idref='r'><text>2</text></place></marking><marking/></finalmarkings></net></pnml>";
        let pnml = Format::by_name("pnml").expect("a format");
        let loaded = parse("x", pnml, text, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let expected = ["p = 0 and \"not\" = 0 and r = 2", "p = 0 and \"not\" = 0 and r = 0"];
        assert_eq!(loaded.info.final_markings, expected);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let message = |path: &str, format| load(path, format).err().map(|error| error.to_string()).unwrap_or_default();
        let cases = [
            ("no/such.pnml", None, "cannot read `no/such.pnml`: there is no such file"),
            ("src", None, "cannot read `src`: it is a folder"),
            ("src/lib.rs", None, "the ending `.rs` of `src/lib.rs` belongs to no known format, nor do its words"),
            ("src/lib.rs", Some("pmnl"), "there is no format `pmnl`"),
        ];
        for (path, format, expected) in cases {
            assert_eq!(message(path, format), expected);
        }
        let options = LoadOptions { format: Some("net".into()), limit: 3, ..LoadOptions::default() };
        assert!(matches!(load_with("src/lib.rs", &options), Err(LoadError::TooBig { limit: 3, .. })));
    }

    #[test]
    fn very_many_mistakes_are_told_in_short_and_soon_in_every_language() {
        use deltamark_core::diagnostic::MOST_DIAGNOSTICS;
        const MANY: usize = 50_000;
        let lines = |line: &dyn Fn(usize) -> String| (0..MANY).map(line).collect::<String>();
        let processes = |inner: String| format!("process P {{ {inner} }}\nsystem async;\n");
        let names = lines(&|number| format!("byte name{number};\n"));
        let unknown = lines(&|number| format!("s -> s {{ effect nome{number} = 1; }},\n"));
        let coloured = "<pnml><net id='n' type='http://www.pnml.org/version-2009/grammar/symmetricnet'>";
        let cases: Vec<(&str, String)> = vec![
            ("pnml", format!("{coloured}{}</net></pnml>", "<plaice/>".repeat(MANY))),
            ("pnml", format!("{coloured}<page id='g'>{}</page></net></pnml>", "<place hue='1'/>".repeat(MANY))),
            ("tina", lines(&|number| format!("zz {number}\n"))),
            ("tina", lines(&|number| format!("tr t{number} [1,2] p -> q\n"))),
            ("lna", "n { plaice p { dom : epsilon; } }".replace("plaice", &"plaice ".repeat(MANY))),
            ("lna", format!("n {{ {} }}", lines(&|number| format!("place p{number} {{ dom : t{number}; }}\n")))),
            ("dve", lines(&|number| format!("bite x{number};\n"))),
            ("dve", processes(format!("state s; init s; trans {} s -> s {{}};", lines(&|_| "s -> x {}, ".into())))),
            ("dve", names + &processes(format!("state s; init s; trans {unknown} s -> s {{}};"))),
            ("mdve", lines(&|number| format!("bite x{number};\n"))),
        ];
        for (format, text) in cases {
            let began = std::time::Instant::now();
            let format = Format::by_name(format).expect("a format");
            let start: String = text.chars().take(100).collect();
            match parse("x", format, text.as_bytes(), &LoadOptions::default()) {
                Err(LoadError::Malformed { diagnostics, .. }) => {
                    assert!((1..=MOST_DIAGNOSTICS).contains(&diagnostics.len()), "{}: {start}", diagnostics.len());
                }
                other => panic!("{start}: {:?}", other.err()),
            }
            assert!(began.elapsed().as_secs() < 20, "{:?}: {start}", began.elapsed());
        }
    }
}
