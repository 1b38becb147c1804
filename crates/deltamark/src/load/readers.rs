//! The readers of the languages.
//!
//! In: a [`Text`]. Out: a [`Parsed`] model, or what is [`Wrong`]. Invariant: a reader asks the text's
//! control while it reads, so that a limit ends it. Each is named in a row of
//! [`FORMATS`](super::FORMATS).

use super::{LoadOptions, Unfold};
use deltamark_coloured::{ColouredSystem, NotUnfolded, UnfoldLimits, UnfoldedSystem};
use deltamark_core::{Control, Diagnostic, Limits, Stop, System};
use deltamark_dve::DveSystem;
use deltamark_nets::NetSystem;
use std::path::Path;

/// What a language gets to see.
pub(super) struct Text<'a> {
    /// The path of the file, or how reports call the text.
    pub name: &'a str,
    pub bytes: &'a [u8],
    /// The text of the file beside it.
    pub companion: Option<&'a [u8]>,
    pub options: &'a LoadOptions,
    pub control: &'a Control,
}

/// A model as its reader returns it.
pub(super) struct Parsed {
    pub system: Box<dyn System>,
    pub sizes: Vec<(&'static str, u64)>,
    /// What is to be said if the net has colours.
    pub coloured: Option<Coloured>,
    /// Where ending is right, as expressions.
    pub final_markings: Vec<String>,
    /// How the file was read.
    pub remarks: Vec<String>,
}

impl Parsed {
    /// A model with its sizes, under the words that reports use, and nothing else to say.
    pub fn new(system: impl System + 'static, sizes: Vec<(&'static str, u64)>) -> Self {
        Parsed { system: Box::new(system), sizes, coloured: None, final_markings: Vec::new(), remarks: Vec::new() }
    }
}

/// What is known of a coloured net.
pub(super) struct Coloured {
    pub can_fault: bool,
    pub note: String,
    pub properties: Vec<(String, String)>,
    pub formulas: Vec<(String, String)>,
    pub propositions: Vec<String>,
}

/// What is wrong with the texts of a model.
pub(super) struct Wrong {
    /// Whether it is the file beside the model.
    pub companion: bool,
    /// Whether it came up while the net was unfolded.
    pub unfolding: bool,
    pub diagnostics: Vec<Diagnostic>,
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

/// Processes in DVE.
pub(super) fn dve(text: &Text<'_>, program: deltamark_dve::ir::Program) -> Result<Parsed, Wrong> {
    /// What names, the tables of an engine and the first states of a search take for each number of a state,
    /// measured on an array of a million.
    const BYTES_A_CELL: u64 = 344;
    let sizes = vec![("processes", program.processes.len() as u64), ("transitions", program.transitions.len() as u64)];
    let file = Path::new(text.name).file_name().and_then(|name| name.to_str()).unwrap_or(text.name);
    text.control.ask_for(program.cells.len() as u64 * BYTES_A_CELL)?;
    let engine = text.options.engine.unwrap_or_default().engine(&program).map_err(|reason| {
        vec![Diagnostic::new(reason).help("`--engine interpreter` runs every model, and `--engine auto` chooses")]
    })?;
    let system = DveSystem::under(program, engine, text.control)?;
    let remarks = system.unasked();
    Ok(Parsed { remarks, ..Parsed::new(system.in_file(file), sizes) })
}

/// A net in Helena's language, with the properties in the file beside it.
pub(super) fn lna(text: &Text<'_>) -> Result<Parsed, Wrong> {
    let mut net = deltamark_coloured::lna::parse_under(text.bytes, &text.options.parameters, text.control)?;
    if let Some(bytes) = text.companion {
        deltamark_coloured::lna::parse_properties(&mut net, bytes)
            .map_err(|diagnostics| Wrong { companion: true, ..diagnostics.into() })?;
    }
    let words = std::str::from_utf8(text.bytes).unwrap_or_default();
    coloured(net, words, text)
}

/// A `.pnml` that declares a net with colours goes to those who run such nets.
pub(super) fn pnml(text: &Text<'_>) -> Result<Parsed, Wrong> {
    match deltamark_core::text::utf8(text.bytes) {
        Ok(words) if deltamark_coloured::pnml::is_coloured(words) => {
            coloured(deltamark_coloured::pnml::parse_under(words, text.control)?, words, text)
        }
        _ => net(deltamark_nets::pnml::parse_under, text),
    }
}

/// A net of CPN Tools. It runs as coloured unless the user asks for more, or its places have few values: most have colour sets
/// without bounds, and to find out which values can occur takes longer than it saves.
pub(super) fn cpn(text: &Text<'_>) -> Result<Parsed, Wrong> {
    let options = text.options;
    let words = deltamark_core::text::utf8(text.bytes).map_err(Vec::from)?;
    let (parameters, markings) = (&options.parameters, &options.markings);
    let used = |path: &str| beside(text, path);
    let net = deltamark_cpn::parse_beside(words, parameters, markings, &used, text.control)?;
    if options.unfold != Unfold::Auto || net.has_few_tokens(UnfoldLimits::AUTO.places as u64) {
        return coloured(net, words, text);
    }
    let sizes = vec![("places", net.places.len() as u64), ("transitions", net.transitions.len() as u64)];
    let coloured = Coloured {
        can_fault: net.can_fault(),
        note: format!("not unfolded: a colour set has more than {} values", UnfoldLimits::AUTO.places),
        properties: Vec::new(),
        formulas: Vec::new(),
        propositions: Vec::new(),
    };
    let system = ColouredSystem::under(net, words, text.control)?;
    Ok(Parsed { coloured: Some(coloured), ..Parsed::new(system, sizes) })
}

/// A file that a model names: one in its folder, or below.
fn beside(text: &Text<'_>, path: &str) -> Result<String, String> {
    /// The most bytes of such a file.
    const LONGEST: u64 = 1 << 20;
    let model = Path::new(text.name);
    if !model.is_file() {
        return Err("other files are read only if the model is a file".into());
    }
    let inside = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if path.is_empty() || !inside {
        return Err("only files in the folder of the model, or below it, are read".into());
    }
    let file = model.parent().unwrap_or(Path::new("")).join(path);
    let bytes =
        super::input::read_under(&file.to_string_lossy(), LONGEST, text.control).map_err(|error| error.to_string())?;
    deltamark_core::text::utf8(&bytes).map(str::to_string).map_err(|diagnostic| diagnostic.message)
}

/// A coloured net, run as such or unfolded.
fn coloured(net: deltamark_coloured::Net, words: &str, text: &Text<'_>) -> Result<Parsed, Wrong> {
    let (options, control) = (text.options, text.control);
    let sizes = vec![("places", net.places.len() as u64), ("transitions", net.transitions.len() as u64)];
    let can_fault = net.can_fault();
    let properties = net.property_texts();
    let formulas = net.temporal.clone();
    let propositions = net.propositions.iter().map(|proposition| proposition.name.clone()).collect();
    let parsed = |system, note: String| {
        let coloured = Coloured { can_fault, note, properties, formulas, propositions };
        Parsed { system, sizes, coloured: Some(coloured), final_markings: Vec::new(), remarks: Vec::new() }
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

/// A P/T net.
pub(super) fn net(
    parse: fn(&str, &Control) -> Result<deltamark_nets::Net, Vec<Diagnostic>>,
    text: &Text<'_>,
) -> Result<Parsed, Wrong> {
    let words = deltamark_core::text::utf8(text.bytes).map_err(Vec::from)?;
    let net = parse(words, text.control)?;
    let sizes = vec![("places", net.places.len() as u64), ("transitions", net.transitions.len() as u64)];
    let final_markings = net.final_markings.iter().map(|marking| exactly(&net, marking)).collect();
    let remarks = net.notes.clone();
    let system = NetSystem::under(net, text.control)?;
    Ok(Parsed { final_markings, remarks, ..Parsed::new(system, sizes) })
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

/// A model in a shared library.
pub(super) fn library(text: &Text<'_>) -> Result<Parsed, Wrong> {
    if text.name == "-" {
        return Err(vec![Diagnostic::new("a shared library is loaded from a file, not from standard input")].into());
    }
    let system = deltamark_so::load(Path::new(text.name), &text.options.parameters)?;
    let sizes = vec![("variables", deltamark_core::Observe::names(&system).len() as u64)];
    Ok(Parsed::new(system, sizes))
}
