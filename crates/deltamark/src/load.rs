//! From a file to a model that can be run.
//!
//! In: a path, and perhaps the name of a format. Out: a [`Loaded`], or a [`LoadError`]
//! that says what is wrong, where, and what to do. What stays true: one table,
//! [`FORMATS`], knows which languages there are; whoever adds a language adds a row.

pub use crate::input::{read, read_under};
use crate::recognise::{GREATSPN, Recognised, by_ending, recognise};
use crate::unpack::{Failed, unpack};
use crate::watched::watched;
use deltamark_coloured::{ColouredSystem, NotUnfolded, UnfoldLimits, UnfoldedSystem};
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Control, Diagnostic, Limits, Stop, System};
use deltamark_dve::{DveSystem, EngineChoice};
use deltamark_nets::NetSystem;
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The largest file that [`load`] reads.
pub const LARGEST_FILE: u64 = 1 << 30;

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
    parse: fn(&Text<'_>) -> Result<Parsed, Wrong>,
}

/// What is wrong with the texts of a model.
struct Wrong {
    /// Whether it is the file beside the model.
    companion: bool,
    /// Whether it came up while the net was unfolded.
    unfolding: bool,
    diagnostics: Vec<Diagnostic>,
}

impl From<Vec<Diagnostic>> for Wrong {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Wrong { companion: false, unfolding: false, diagnostics }
    }
}

impl From<Stop> for Wrong {
    fn from(stop: Stop) -> Self {
        Vec::from(stop).into()
    }
}

/// How to load a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// The name of its format; nothing if the file's name or its words tell it.
    pub format: Option<String>,
    /// Values of its parameters, by name. A later one of the same name counts.
    pub parameters: Vec<(String, String)>,
    /// What makes successors, where there is a choice.
    pub engine: Option<EngineChoice>,
    /// Whether a coloured net runs as the P/T net it unfolds to.
    pub unfold: Unfold,
    /// The most bytes to read.
    pub limit: u64,
}

/// Whether a coloured net runs as the P/T net it unfolds to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfold {
    /// If that is possible and small.
    #[default]
    Auto,
    /// Always; a net that cannot be unfolded is refused.
    Yes,
    /// Never.
    No,
}

impl std::str::FromStr for Unfold {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "auto" => Ok(Unfold::Auto),
            "yes" => Ok(Unfold::Yes),
            "no" => Ok(Unfold::No),
            _ => Err("write yes, no or auto".into()),
        }
    }
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { format: None, parameters: Vec::new(), unfold: Unfold::Auto, engine: None, limit: LARGEST_FILE }
    }
}

impl LoadOptions {
    /// What makes a difference to the model, in words that [`with_words`](Self::with_words) understands. The format is not
    /// among them: it is known of every model.
    fn words(&self) -> Vec<(String, String)> {
        let mut words: Vec<(String, String)> = Vec::new();
        let parameter = |(name, value): &(String, String)| ("param".into(), format!("{name}={value}"));
        words.extend(self.parameters.iter().map(parameter));
        words.extend(match self.unfold {
            Unfold::Auto => None,
            Unfold::Yes => Some(("unfold".into(), "yes".into())),
            Unfold::No => Some(("unfold".into(), "no".into())),
        });
        words.extend(self.engine.map(|engine| ("engine".into(), engine.to_string())));
        words
    }

    /// Adds options that were put into words; nothing, if one is not known.
    pub fn with_words(mut self, words: &[(String, String)]) -> Option<Self> {
        for (name, value) in words {
            match name.as_str() {
                "param" => {
                    let (name, value) = value.split_once('=')?;
                    self.parameters.push((name.into(), value.into()));
                }
                "unfold" => self.unfold = value.parse().ok()?,
                "engine" => self.engine = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        Some(self)
    }
}

/// What a language gets to see.
struct Text<'a> {
    /// The path of the file, or how reports call the text.
    name: &'a str,
    bytes: &'a [u8],
    /// The text of the file beside it.
    companion: Option<&'a [u8]>,
    options: &'a LoadOptions,
    control: &'a Control,
}

struct Parsed {
    system: Box<dyn System>,
    sizes: Vec<(&'static str, u64)>,
    /// What is to be said if the net has colours.
    coloured: Option<Coloured>,
    /// Where ending is right, as expressions.
    final_markings: Vec<String>,
    /// How the file was read.
    remarks: Vec<String>,
}

/// What is known of a coloured net.
struct Coloured {
    can_fault: bool,
    note: String,
    properties: Vec<(String, String)>,
    propositions: Vec<String>,
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

fn dve(text: &Text<'_>, program: deltamark_dve::ir::Program) -> Result<Parsed, Wrong> {
    /// What names and the tables of an engine take for each number of a state, about.
    const BYTES_A_CELL: u64 = 160;
    let sizes = vec![("processes", program.processes.len() as u64), ("transitions", program.transitions.len() as u64)];
    let file = Path::new(text.name).file_name().and_then(|name| name.to_str()).unwrap_or(text.name);
    text.control.ask_for(program.cells.len() as u64 * BYTES_A_CELL)?;
    let system = DveSystem::run_by(program, text.options.engine.unwrap_or_default()).map_err(|reason| {
        vec![Diagnostic::new(reason).help("`--engine interpreter` runs every model, and `--engine auto` chooses")]
    })?;
    let remarks = system.unasked();
    Ok(Parsed { system: Box::new(system.in_file(file)), sizes, coloured: None, final_markings: Vec::new(), remarks })
}

/// A net in Helena's language, with the properties in the file beside it.
fn lna(text: &Text<'_>) -> Result<Parsed, Wrong> {
    let mut net = deltamark_coloured::lna::parse_under(text.bytes, &text.options.parameters, text.control)?;
    if let Some(bytes) = text.companion {
        deltamark_coloured::lna::parse_properties(&mut net, bytes)
            .map_err(|diagnostics| Wrong { companion: true, ..diagnostics.into() })?;
    }
    let words = std::str::from_utf8(text.bytes).unwrap_or_default();
    coloured(net, words, text)
}

/// A `.pnml` that declares a net with colours goes to those who run such nets.
fn pnml(text: &Text<'_>) -> Result<Parsed, Wrong> {
    match deltamark_core::text::utf8(text.bytes) {
        Ok(words) if deltamark_coloured::pnml::is_coloured(words) => {
            coloured(deltamark_coloured::pnml::parse_under(words, text.control)?, words, text)
        }
        _ => net(deltamark_nets::pnml::parse_under, text),
    }
}

/// A coloured net, run as such or unfolded.
fn coloured(net: deltamark_coloured::Net, words: &str, text: &Text<'_>) -> Result<Parsed, Wrong> {
    let (options, control) = (text.options, text.control);
    let sizes = vec![("places", net.places.len() as u64), ("transitions", net.transitions.len() as u64)];
    let can_fault = net.can_fault();
    let properties = net.property_texts();
    let temporal = net.temporal.iter();
    let remarks = temporal.map(|name| format!("`{name}` asks for temporal logic, which this version does not check"));
    let remarks: Vec<String> = remarks.collect();
    let propositions = net.propositions.iter().map(|proposition| proposition.name.clone()).collect();
    let parsed = |system, note: String| {
        let coloured = Coloured { can_fault, note, properties, propositions };
        Parsed { system, sizes, coloured: Some(coloured), final_markings: Vec::new(), remarks }
    };
    let limits = match options.unfold {
        Unfold::No => {
            return Ok(parsed(
                Box::new(ColouredSystem::under(net, words, control)?),
                "not unfolded, as asked for".into(),
            ));
        }
        Unfold::Auto => UnfoldLimits::AUTO,
        Unfold::Yes => UnfoldLimits::DEMANDED,
    };
    match UnfoldedSystem::under(net.clone(), words, limits, &unfolding(options.unfold, control)) {
        Ok(system) => {
            let (places, transitions) = (system.net().places.len(), system.net().transitions.len());
            let note = format!("unfolded to a P/T net of {places} places and {transitions} transitions");
            Ok(parsed(Box::new(system), note))
        }
        Err(NotUnfolded::Wrong(diagnostics)) => Err(diagnostics.into()),
        Err(NotUnfolded::Stopped(Stop::Memory)) if options.unfold == Unfold::Auto => {
            let system = ColouredSystem::under(net, words, control)?;
            Ok(parsed(Box::new(system), "not unfolded: the memory limit leaves too little room".into()))
        }
        Err(NotUnfolded::Stopped(stop)) => Err(Wrong { unfolding: true, ..stop.into() }),
        Err(NotUnfolded::Refused(why)) if options.unfold == Unfold::Yes => {
            let diagnostic = Diagnostic::new(format!("the net cannot be unfolded: {why}"));
            let diagnostic = diagnostic.help("leave out `--unfold yes`; the net then runs as coloured");
            Err(vec![diagnostic].into())
        }
        Err(NotUnfolded::Refused(why)) => {
            Ok(parsed(Box::new(ColouredSystem::under(net, words, control)?), format!("not unfolded: {why}")))
        }
    }
}

/// What steers the unfolding. One that nobody asked for takes half of the memory there is at most, so that enough is left to run
/// the net as it is: memory that was given back stays with the process.
fn unfolding(wanted: Unfold, control: &Control) -> Control {
    let memory = match (wanted, control.limits.memory, (control.resident)()) {
        (Unfold::Auto, Some(limit), Some(held)) => Some(held + limit.saturating_sub(held) / 2),
        (_, limit, _) => limit,
    };
    Control { limits: Limits { memory, ..control.limits.clone() }, ..control.clone() }
}

fn net(
    parse: fn(&str, &Control) -> Result<deltamark_nets::Net, Vec<Diagnostic>>,
    text: &Text<'_>,
) -> Result<Parsed, Wrong> {
    let words = deltamark_core::text::utf8(text.bytes).map_err(Vec::from)?;
    let net = parse(words, text.control)?;
    let sizes = vec![("places", net.places.len() as u64), ("transitions", net.transitions.len() as u64)];
    let final_markings = net.final_markings.iter().map(|marking| exactly(&net, marking)).collect();
    let remarks = net.notes.clone();
    let system = Box::new(NetSystem::under(net, text.control)?);
    Ok(Parsed { system, sizes, coloured: None, final_markings, remarks })
}

/// An expression that is true in this marking and in no other. Counts are compared one by one, since
/// a sum of them could leave the range of numbers.
fn exactly(net: &deltamark_nets::Net, marking: &[(u32, u32)]) -> String {
    let mut marked = marking.iter().peekable();
    let place = |(index, place): (u32, &deltamark_nets::Place)| {
        let tokens = marked.next_if(|&&(marked, _)| marked == index).map_or(0, |&(_, tokens)| tokens);
        format!("{} = {tokens}", deltamark_logic::quote(&place.name))
    };
    (0..).zip(&net.places).map(place).collect::<Vec<_>>().join(" and ")
}

fn library(text: &Text<'_>) -> Result<Parsed, Wrong> {
    if text.name == "-" {
        return Err(vec![Diagnostic::new("a shared library is loaded from a file, not from standard input")].into());
    }
    let system = deltamark_so::load(Path::new(text.name), &text.options.parameters)?;
    let sizes = vec![("variables", deltamark_core::Observe::names(&system).len() as u64)];
    Ok(Parsed { system: Box::new(system), sizes, coloured: None, final_markings: Vec::new(), remarks: Vec::new() })
}

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

    /// The format that a file's name tells.
    pub fn of_path(path: &str) -> Option<&'static Format> {
        Self::by_path(Path::new(path))
    }

    fn by_path(path: &Path) -> Option<&'static Format> {
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

/// What reports say about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The path of its file, as the user gave it; nothing for a model that is Rust code.
    pub path: Option<String>,
    /// The name of its format.
    pub format: &'static str,
    /// Its size: how many of what, for instance 5 `places` and 4 `transitions`.
    pub sizes: Vec<(&'static str, u64)>,
    /// Whether its steps can be faults; nothing when that is not known.
    pub can_fault: Option<bool>,
    /// Whether everything that properties can name is a count of tokens.
    pub counts_tokens: bool,
    /// How it is run, where there is a choice: a clause without a full stop.
    pub note: Option<String>,
    /// What of the file is read in a way that the user should know, or is not read: clauses without a full stop.
    pub remarks: Vec<String>,
    /// Invariants that came with it: name and expression. They are checked when no other property is asked for.
    pub properties: Vec<(String, String)>,
    /// Its final markings: expressions, each true in exactly one of them. A deadlock there is a right end.
    pub final_markings: Vec<String>,
    /// Names of statements about its states that property files can use.
    pub propositions: Vec<String>,
    /// What tells its text from others: how many bytes, and a checksum.
    pub text: Option<(u64, u64)>,
    /// What else it takes to load it alike, in words: names of options and their values.
    pub options: Vec<(String, String)>,
}

impl ModelInfo {
    /// What is known of a model that is Rust code.
    pub fn code() -> Self {
        ModelInfo {
            path: None,
            format: "rust",
            sizes: Vec::new(),
            can_fault: None,
            counts_tokens: false,
            note: None,
            properties: Vec::new(),
            final_markings: Vec::new(),
            remarks: Vec::new(),
            propositions: Vec::new(),
            text: None,
            options: Vec::new(),
        }
    }
}

/// A model from a file, ready to be run.
pub struct Loaded {
    /// The model itself.
    pub system: Box<dyn System>,
    /// What reports say about it.
    pub info: ModelInfo,
}

/// A text that was read, kept so that what is wrong with it can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// How to call it: the file's path, or the option it comes from.
    pub name: String,
    /// The text, up to the first byte that is no UTF-8.
    pub text: String,
}

impl Source {
    /// A source from bytes that may not be text; `-` stands for the standard input.
    pub fn new(name: impl Into<String>, bytes: &[u8]) -> Self {
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        let name = name.into();
        let name = if name == "-" { "<stdin>".into() } else { name };
        Source { name, text: valid.into() }
    }
}

/// Why a model could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable {
        /// Its path.
        path: String,
        /// Why, in the operating system's words.
        reason: String,
        /// What to do about it, where that is known.
        help: Option<String>,
    },
    /// The file is larger than what is read.
    TooBig {
        /// Its path.
        path: String,
        /// The most bytes that are read.
        limit: u64,
        /// Whether it is so after it was unpacked or decoded.
        unpacked: bool,
    },
    /// The file holds another text than it should.
    Changed {
        /// Its path.
        path: String,
    },
    /// Neither the name of the file nor `--format` tells the format.
    UnknownFormat {
        /// What is wrong, in a sentence.
        message: String,
        /// What to do about it.
        help: String,
    },
    /// An option that says nothing about a model of this format.
    Meaningless {
        /// What is wrong, in a sentence.
        message: String,
        /// What to do about it.
        help: String,
    },
    /// The text is wrong.
    Malformed {
        /// The text.
        source: Source,
        /// What is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The run had to end before the model was ready.
    Stopped {
        /// How reports call the model.
        path: String,
        /// The name of its format; nothing where that is not known yet.
        format: Option<&'static str>,
        /// What was being done: "loading" or "unfolding".
        phase: &'static str,
        /// Why.
        stop: Stop,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable { path, reason, .. } => write!(f, "cannot read {}: {reason}", shown(path)),
            LoadError::TooBig { path, limit, unpacked } => {
                let unpacked = if *unpacked { "unpacked, " } else { "" };
                write!(f, "{unpacked}{} is larger than {limit} bytes, the most that is read here", shown(path))
            }
            LoadError::Changed { path } => write!(f, "{} has changed", shown(path)),
            LoadError::UnknownFormat { message, .. } | LoadError::Meaningless { message, .. } => f.write_str(message),
            LoadError::Stopped { phase, stop, .. } => {
                let why = match stop {
                    Stop::Memory => "the memory limit was reached",
                    Stop::Time => "the time limit was reached",
                    _ => "the run was ended",
                };
                write!(f, "{why} while {phase} the model")
            }
            LoadError::Malformed { source, diagnostics } => {
                for (index, diagnostic) in diagnostics.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{}:", source.name)?;
                    if let Some(span) = diagnostic.span {
                        let (line, column) = deltamark_core::diagnostic::line_column(&source.text, span.start);
                        write!(f, "{line}:{column}:")?;
                    }
                    write!(f, " {}", diagnostic.message)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for LoadError {}

fn shown(path: &str) -> String {
    if path == "-" { "standard input".into() } else { format!("`{path}`") }
}

/// Loads the model in a file, which may be packed with gzip or zip; `-` stands for the standard input. The format, unless one is
/// given, is that of the file's name, or else what its words look like.
pub fn load(path: &str, format: Option<&str>) -> Result<Loaded, LoadError> {
    load_with(path, &LoadOptions { format: format.map(str::to_string), ..LoadOptions::default() })
}

/// The same, with all that can be said about it.
pub fn load_with(path: &str, options: &LoadOptions) -> Result<Loaded, LoadError> {
    load_under(path, options, &Control::new())
}

/// The same, as far as `control` lets it. See [`steering`](crate::check::steering).
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
    // A wrong format is told before the file is touched, a missing file before its
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

/// What tells a text from others: its length and a checksum.
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

/// Texts from this length on are parsed by a thread of their own, so that the run can end while a step takes long that asks nobody:
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
                Some(Coloured { note, properties, propositions, .. }) => {
                    ModelInfo { note: Some(note), properties, propositions, ..info }
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

fn no_such_format(name: &str) -> LoadError {
    let known = FORMATS.iter().flat_map(|format| [format.name].into_iter().chain(format.extensions.iter().copied()));
    let help = match did_you_mean(name, known) {
        Some(close) => format!("did you mean `{close}`? Known formats: {}", Format::list()),
        None => format!("known formats: {}", Format::list()),
    };
    LoadError::UnknownFormat { message: format!("there is no format `{name}`"), help }
}

/// The format that the words of the file tell, or why it cannot be read; `None` if they tell nothing.
fn by_content(path: &str, inner: &Path, bytes: &[u8]) -> Option<Result<&'static Format, LoadError>> {
    let ending = inner.extension().and_then(|ending| ending.to_str());
    match recognise(bytes).or_else(|| by_ending(ending?))? {
        Recognised::Ours(name) => Format::by_name(name).map(Ok),
        Recognised::Foreign(foreign) => {
            let message = format!("{} is {}, which is not read", shown(path), foreign.what);
            Some(Err(LoadError::UnknownFormat { message, help: foreign.help.into() }))
        }
    }
}

fn no_format_of(path: &str, inner: &Path) -> LoadError {
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
    fn a_source_ends_where_text_ends() {
        assert_eq!(Source::new("x", b"ab\xffcd").text, "ab");
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
