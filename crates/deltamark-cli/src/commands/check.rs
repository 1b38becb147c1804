//! `deltamark check`.
//!
//! In: a model and properties. Out: the verdicts, on standard output.

use super::{certificate, explored_as, progressing};
use crate::args::{self, Asked};
use crate::exit::{Exit, Failure};
use crate::output::{Look, companion, keep_inputs, print, print_aside, tell, try_output, write_file};
use crate::{render, signals, text};
use deltamark::checkpoint::{CheckpointError, CheckpointReport, Checkpoints, InputFile};
use deltamark::control::{Control, Stop, steering};
use deltamark::diagnostic::{Diagnostic, Span};
use deltamark::graph::GraphFormat;
use deltamark::load::{self, LARGEST_FILE, LoadError, ModelInfo, Source};
use deltamark::{Check, CheckError, Loaded, Report};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

const PROPERTIES_HELP: &str = "a property file is text with lines like `invariant mutex: critical_1 + critical_2 <= 1`, \
                               `reach full: buffer >= 3` or `deadlock-free`";

/// Checks.
pub fn run(arguments: &args::Check, since: Instant) -> Result<Exit, Failure> {
    let Some(directory) = &arguments.checkpoint else { return go(arguments, None, since) };
    let input = |role: &'static str, path: &str| InputFile { role, path: path.into() };
    let model = &arguments.model.model;
    let mut inputs = vec![input("model", model)];
    inputs.extend(companion(model).iter().map(|path| input("model", path)));
    inputs.extend(arguments.asked.file().map(|path| input("properties", path)));
    let words = std::env::args().skip(1).collect();
    let checkpoints = Checkpoints::new(directory, arguments.checkpoint_every, words, inputs).map_err(unkept)?;
    go(arguments, Some(Going { checkpoints, named: None }), since)
}

/// A run that keeps checkpoints.
pub(super) struct Going {
    pub checkpoints: Checkpoints,
    /// How reports call the model, if the run goes on from a checkpoint.
    pub named: Option<String>,
}

/// What was wrong with checkpoints.
pub(super) fn unkept(error: CheckpointError) -> Failure {
    match error {
        CheckpointError::Unusable { message, help } if help.is_empty() => Failure::new(message),
        CheckpointError::Unusable { message, help } => Failure::new(message).help(help),
        stopped => Failure::new(stopped.to_string()),
    }
}

/// Checks, and keeps checkpoints or goes on from one.
pub(super) fn go(arguments: &args::Check, mut going: Option<Going>, since: Instant) -> Result<Exit, Failure> {
    refuse_mixtures(
        &arguments.model.model,
        &arguments.asked,
        &[arguments.trace.as_deref(), arguments.explore.graph.as_deref(), arguments.certificate.as_deref()],
        arguments.say.json,
    )?;
    if let Some(path) = &arguments.certificate {
        certificate::refuse(path, arguments)?;
    }
    refuse_drawings(arguments.explore.graph.as_deref())?;
    if arguments.soundness && arguments.reduce.is_demanded() {
        let what =
            format!("soundness is a question about all states, and `--reduce {}` leaves some away", arguments.reduce);
        return Err(Failure::new(what).help("leave one of them out"));
    }
    let say = &arguments.say;
    let memory = arguments.explore.memory();
    let control = steering(&arguments.explore.limits(), &signals::cancel(), since);
    let model = match arguments.model.load(&arguments.explore.limits(), memory, since) {
        Err(Failure::Stopped(report)) => {
            return show(&report, arguments.trace.as_deref(), memory.is_some(), say, &control);
        }
        loaded => loaded?,
    };
    let model = match going.as_mut().and_then(|going| going.named.take()) {
        Some(named) => Loaded { info: ModelInfo { path: Some(named), ..model.info }, ..model },
        None => model,
    };
    let check = progressing(Check::loaded(&model), &model, &arguments.explore, since)
        .and_then(|check| with_properties(check, &model, &arguments.asked, &control, since));
    let check = match check {
        Err(Failure::Stopped(report)) => {
            return show(&report, arguments.trace.as_deref(), memory.is_some(), say, &control);
        }
        check => check?,
    };
    let check = match arguments.fair {
        Some(fair) => check.fair(fair),
        None => check,
    };
    let check = check
        .reduce(arguments.reduce)
        .shortest(arguments.shortest)
        .route(arguments.route)
        .probes(arguments.explore.probes());
    let check = match &arguments.certificate {
        Some(path) => check.certificate(path, certificate::unread(arguments, model.info.format, memory)),
        None => check,
    };
    let check = match &mut going {
        Some(Going { checkpoints, .. }) => check.checkpoints(checkpoints),
        None => check,
    };
    let (check, live) = explored_as(check, &arguments.explore, say, since);
    let result = if arguments.soundness { check.soundness() } else { check.run() };
    live.clear();
    let report = result?;
    let exit = show(&report, arguments.trace.as_deref(), memory.is_some(), say, &control)?;
    let aside = arguments.trace.as_deref() == Some("-");
    explain(&report, arguments.explore.explain && !say.json, aside, &control)?;
    certificate::must_be_writable(&report)?;
    Ok(exit)
}

/// Shows a report, and writes its traces.
pub(super) fn show(
    report: &Report,
    trace: Option<&str>,
    memory_given: bool,
    say: &args::Say,
    control: &Control,
) -> Result<Exit, Failure> {
    if let Some(warning) = &report.warning {
        render::warning(warning);
    }
    if let Some(CheckpointReport { directory, trouble: Some(trouble), .. }) = &report.checkpoint {
        render::warning(&format!("the last checkpoint could not be written to `{directory}`: {trouble}"));
    }
    // There are no answers that could say so.
    if say.quiet && !say.json && report.stopped_while.is_some() {
        tell(text::report(report, memory_given, &Look::stderr()).trim_end());
    }
    tell_of_graph(report, say);
    certificate::tell(report, say);
    // Traces on standard output are for a program; the report goes to standard error.
    let aside = trace == Some("-");
    let look = if aside { Look::stderr() } else { Look::stdout() };
    let write = |out: &mut dyn Write| {
        if say.json {
            report.write_json(out)?;
            writeln!(out)
        } else if say.quiet {
            report.answers.iter().try_for_each(|answer| out.write_all(text::answer(answer, &look).as_bytes()))
        } else {
            out.write_all(text::report(report, memory_given, &look).as_bytes())
        }
    };
    let printed = if aside { print_aside(control, write) } else { print(control, write) };
    // After the verdicts, which must not be lost if the disk is full.
    if let Some(path) = trace {
        write_file(path, control, |out| report.write_traces(out))?;
        if !say.quiet && report.answers.iter().all(|answer| answer.story.is_none()) {
            render::note(&format!("no answer comes with a trace, so {} holds none", shown_output(path)));
        }
    }
    printed?;
    graph_must_be_writable(report)?;
    Ok(report.overall().into())
}

/// Fails if the file of a graph is at fault that it was not written. The answers are valid, and were shown before.
pub(super) fn graph_must_be_writable(report: &Report) -> Result<(), Failure> {
    match report.graph.as_ref().and_then(|graph| graph.unwritten.as_ref()) {
        Some(unwritten) if !unwritten.room => Err(Failure::new(unwritten.why.clone())),
        _ => Ok(()),
    }
}

/// Shows how the store was chosen, if requested. In JSON it is in the object.
pub(super) fn explain(report: &Report, wanted: bool, aside: bool, control: &Control) -> Result<(), Failure> {
    if !wanted {
        return Ok(());
    }
    let told = report.route.iter().map(text::route).chain(report.choice.iter().map(text::trials)).collect::<String>();
    let write = |out: &mut dyn Write| out.write_all(told.as_bytes());
    if aside { print_aside(control, write) } else { print(control, write) }
}

/// Reports on a graph that was to be written.
pub(super) fn tell_of_graph(report: &Report, say: &args::Say) {
    let Some(graph) = report.graph.as_ref().filter(|graph| !graph.walked) else { return };
    match &graph.contents {
        None => match &graph.unwritten {
            // An error of its own, once the answers are shown.
            Some(unwritten) if !unwritten.room => {}
            Some(unwritten) => {
                render::warning(&format!("no graph was written to `{}`: {}", graph.path, unwritten.why));
            }
            None if report.stopped_by.is_none() => {
                render::warning(&format!("the run had to end before the graph was written to `{}`", graph.path));
            }
            None => render::warning(&format!("the run was not complete, so no graph was written to `{}`", graph.path)),
        },
        Some(contents) if !say.quiet => render::note(&text::written(&graph.path, contents)),
        Some(_) => {}
    }
}

/// Refuses files that would collide. Of the outputs the first is for traces.
pub(super) fn refuse_mixtures(
    model: &str,
    asked: &args::Properties,
    outputs: &[Option<&str>],
    json: bool,
) -> Result<(), Failure> {
    let properties = asked.file();
    if model == "-" && properties == Some("-") {
        return Err(Failure::new("the model and the properties cannot both come from standard input")
            .help("put one of them into a file"));
    }
    if outputs[0] == Some("-") && json {
        return Err(Failure::new("`--trace -` cannot be used with `--json`: the traces are already in it")
            .help("leave `--trace` out, or give it a file"));
    }
    let beside = companion(model);
    let mut inputs = vec![("the model", model)];
    inputs.extend(properties.map(|path| ("the property file", path)));
    inputs.extend(beside.as_deref().map(|path| ("the property file beside the model", path)));
    keep_inputs(outputs, &inputs)?;
    outputs[0].map_or(Ok(()), try_output)
}

/// `--graph` writes condensed graphs only.
pub(super) fn refuse_drawings(graph: Option<&str>) -> Result<(), Failure> {
    let Some(path) = graph else { return Ok(()) };
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    match ending.filter(|ending| GraphFormat::by_name(ending).is_some()) {
        Some(ending) => Err(Failure::new(format!(
            "`--graph` writes a condensed graph, and `{path}` is called .{ending}"
        ))
        .help(format!("let its name end in .dmg; `deltamark graph MODEL -o FILE.{ending}` writes the other format"))),
        None => Ok(()),
    }
}

fn shown_output(path: &str) -> String {
    if path == "-" { "standard output".into() } else { format!("`{path}`") }
}

/// A run that was stopped while properties or a measure were read.
pub(super) fn reading_ended(info: &ModelInfo, stop: Stop, control: &Control, since: Instant) -> Failure {
    let report = Report::before_search(info.clone(), "properties", stop, control.limits.memory, since);
    Failure::Stopped(Box::new(report))
}

/// What was wrong with a text, or that a limit ended its reading.
pub(super) fn unread(error: CheckError, info: &ModelInfo, control: &Control, since: Instant) -> Failure {
    match error {
        CheckError::Stopped(stop) => reading_ended(info, stop, control, since),
        error => error.into(),
    }
}

/// Adds the properties of the command line, in its order; all errors are reported.
pub(super) fn with_properties<'a>(
    check: Check<'a>,
    model: &Loaded,
    arguments: &args::Properties,
    control: &Control,
    since: Instant,
) -> Result<Check<'a>, Failure> {
    let ended = |error| unread(error, &model.info, control, since);
    let mut check = check.reading_under(control);
    for asked in &arguments.asked {
        check = match asked {
            Asked::Deadlock => Ok(check.deadlock_free()),
            Asked::Invariant(text) => check.invariant(text).map_err(ended),
            Asked::Reach(text) => check.reachable(text).map_err(ended),
            Asked::Ltl(text) => check.ltl(text).map_err(ended),
            Asked::Ctl(text) => check.ctl(text).map_err(ended),
            Asked::File(path) => with_file(check, model, path, control, since),
        }?;
    }
    for text in &arguments.finals {
        check = check.ends_in(text).map_err(ended)?;
    }
    Ok(check)
}

/// Adds the properties of a file.
fn with_file<'a>(
    check: Check<'a>,
    model: &Loaded,
    path: &str,
    control: &Control,
    since: Instant,
) -> Result<Check<'a>, Failure> {
    let ended = |error| unread(error, &model.info, control, since);
    let bytes = match load::read_under(path, LARGEST_FILE, control) {
        Err(LoadError::Stopped { stop, .. }) => return Err(reading_ended(&model.info, stop, control, since)),
        bytes => bytes?,
    };
    let length = bytes.len();
    let source = Source::of_bytes(path, bytes);
    let wrong = |message: &str, place: usize| {
        let diagnostic = Diagnostic::at(Span::at(place), message).help(PROPERTIES_HELP);
        Failure::Text { source: source.clone(), diagnostics: vec![diagnostic] }
    };
    // A zero byte is valid UTF-8, but no text has one.
    let text = source.text.find('\0').unwrap_or(source.text.len());
    if text < length {
        return Err(wrong("this is not a text in UTF-8, so it holds no properties", text));
    }
    if path.ends_with(".prop.lna") {
        // Here temporal formulas were asked for, so that they are refused.
        return check.helena_properties(&source.name, &source.text).map_err(ended);
    }
    let before = check.property_count();
    let check = check.properties(&source.name, &source.text).map_err(ended)?;
    if check.property_count() == before {
        return Err(wrong("this file holds no property", 0));
    }
    Ok(check)
}
