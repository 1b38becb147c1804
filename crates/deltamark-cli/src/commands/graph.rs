//! `deltamark graph`.
//!
//! In: a model, or a graph written before. Out: its whole state space as a file; or verdicts, statistics and
//! drawings from the graph, without exploring again.

use super::check::{refuse_mixtures, show, tell_of_graph, with_properties};
use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{companion, keep_inputs, print, tell, write_file};
use crate::progress::Live;
use crate::units::{show_bytes, show_count, show_counted};
use crate::{render, signals, text};
use deltamark::condensed::OpenOptions;
use deltamark::control::{Control, Limits, Stop, steering};
use deltamark::graph::{Graph, GraphError, GraphFormat};
use deltamark::load::LARGEST_FILE;
use deltamark::{Check, Condensed};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The kind of output.
enum Output {
    /// A file for other tools.
    Drawing(GraphFormat),
    /// A condensed graph.
    Condensed,
}

/// Writes a graph, or uses one.
pub fn run(arguments: &args::Graph, since: Instant) -> Result<Exit, Failure> {
    if arguments.is_condensed() { use_graph(arguments, since) } else { make_graph(arguments, since) }
}

fn live(arguments: &args::Graph, limits: &Limits) -> Arc<Live> {
    Live::new(arguments.say.quiet, arguments.say.verbose, limits.memory)
}

/// Explores a model and writes its graph.
fn make_graph(arguments: &args::Graph, since: Instant) -> Result<Exit, Failure> {
    let only = [
        ("--stats", arguments.stats),
        ("--components", arguments.components),
        ("--model", arguments.model_path.is_some()),
        ("--walk", arguments.walk.is_some()),
        ("--all", arguments.all),
        ("--trace", arguments.trace.is_some()),
        ("--json", arguments.say.json),
    ];
    if let Some((option, _)) = only.iter().find(|(_, given)| *given) {
        return Err(Failure::new(format!("`{option}` belongs to a graph that was written before, a FILE.dmg"))
            .help("`deltamark graph MODEL -o FILE.dmg` writes one"));
    }
    if !arguments.asked.is_empty() {
        return Err(Failure::new("properties are checked of a graph that was written before, a FILE.dmg").help(
            "of a model `deltamark check` checks them, and with `--graph FILE.dmg` it writes the graph as well",
        ));
    }
    let Some(output) = &arguments.output else {
        return Err(
            Failure::new("there is no file to write the graph to").help("add `--output FILE`, or `-o FILE` for short")
        );
    };
    let format = format(arguments, output)?;
    let beside = companion(&arguments.model.model);
    let mut inputs = vec![("the model", arguments.model.model.as_str())];
    inputs.extend(beside.as_deref().map(|path| ("the property file beside the model", path)));
    keep_inputs(&[Some(output)], &inputs)?;
    let limits = arguments.limits.limits();
    let model = arguments.model.load(&limits, arguments.limits.memory, since)?;
    let live = live(arguments, &limits);
    let Output::Drawing(format) = format else {
        let limits = Limits { states: arguments.max_states, ..limits };
        let check = Check::loaded(&model).limits(limits).cancel(signals::cancel()).listener(live.clone());
        let stats = check.graph(output.as_str()).since(since).explore();
        live.clear();
        let report = stats?;
        if let Some(stop) = report.stopped_by {
            let error = match stop {
                Stop::States => GraphError::TooManyStates(arguments.max_states.unwrap_or(0)),
                other => GraphError::Stopped(other, report.statistics.states),
            };
            let memory = report.memory_limit.map(show_bytes).unwrap_or_default();
            return Err(refusal(error, "`--max-states N` allows more", &memory));
        }
        if let Some(unwritten) = report.graph.as_ref().and_then(|graph| graph.unwritten.as_ref()) {
            let failure = Failure::new(unwritten.why.clone());
            return Err(if unwritten.room { failure.help("give a larger `--memory`").no_answer() } else { failure });
        }
        tell_of_graph(&report, &arguments.say);
        return Ok(Exit::Good);
    };
    let memory = limits.memory.map(show_bytes).unwrap_or_default();
    let most = arguments.max_states.unwrap_or(format.max_states());
    let control = steering(&limits, &signals::cancel(), since);
    let explored = Graph::explore(&model, most, left(limits, since), signals::cancel(), live.clone());
    live.clear();
    let graph = explored.map_err(|error| refusal(error, advice(format, arguments.max_states), &memory))?;
    draw(&graph, format, output, arguments.say.quiet, &control)
}

/// The remaining limits, in a run that began at `since`.
fn left(limits: Limits, since: Instant) -> Limits {
    Limits { time: limits.time.map(|time| time.saturating_sub(since.elapsed())), ..limits }
}

fn draw(graph: &Graph<'_>, format: GraphFormat, output: &str, quiet: bool, control: &Control) -> Result<Exit, Failure> {
    let states = graph.states() as u64;
    write_file(output, control, |out| graph.write(format, &mut Watched { out, control })).map_err(|failure| {
        match control.stop_without_memory() {
            Some(stop) => refusal(GraphError::Stopped(stop, states), "", ""),
            None => failure,
        }
    })?;
    if !quiet && output != "-" {
        let size = (show_counted(graph.states() as u64, "state"), show_counted(graph.edges() as u64, "edge"));
        tell(format_args!("{} and {} written to {output}", size.0, size.1));
    }
    Ok(Exit::Good)
}

/// Answers from a graph written before.
fn use_graph(arguments: &args::Graph, since: Instant) -> Result<Exit, Failure> {
    let (path, say) = (&arguments.model.model, &arguments.say);
    refuse_what_the_graph_knows(arguments)?;
    let outputs = [arguments.trace.as_deref(), arguments.output.as_deref()];
    refuse_mixtures(path, &arguments.asked, &outputs, say.json)?;
    let wanted = [!arguments.asked.is_empty(), arguments.stats, arguments.components, arguments.output.is_some()];
    if wanted.iter().filter(|wanted| **wanted).count() > 1 && say.json {
        return Err(Failure::new("with `--json` one thing is asked at a time, because one object is printed")
            .help("run the command several times; the graph is read quickly"));
    }
    if arguments.trace.is_some() && arguments.asked.is_empty() {
        return Err(Failure::new("`--trace` writes the traces of properties, and none is asked for"));
    }
    let limit = arguments.limits.memory.unwrap_or(LARGEST_FILE).max(4 << 20);
    let asked =
        OpenOptions { model: arguments.model_path.clone(), format: arguments.model.format.clone(), limit: Some(limit) };
    let limits = arguments.limits.limits();
    let cancel = signals::cancel();
    let control = steering(&limits, &cancel, since);
    let condensed = Condensed::open_under(path, &asked, &control)?;
    if let Some(model) = &condensed.model.info.path {
        let beside = companion(model);
        let mut inputs = vec![("the model of the graph", model.as_str())];
        inputs.extend(beside.as_deref().map(|path| ("the property file beside the model", path)));
        keep_inputs(&outputs, &inputs)?;
    }
    if let Some(read) = condensed.led_away().filter(|_| arguments.model_path.is_none() && !say.quiet) {
        render::note(&format!("the model was read from `{read}`, where `{path}` says it is"));
    }
    let way = arguments.walk.unwrap_or_default();
    let given = arguments.limits.memory.is_some();
    let check = || {
        let live = live(arguments, &limits);
        let check = Check::along(&condensed, way).limits(limits.clone()).cancel(cancel.clone());
        (check.listener(live.clone()).since(since), live)
    };
    let mut exit = Exit::Good;
    if !arguments.asked.is_empty() {
        let (check, live) = check();
        let check = match with_properties(check, &condensed.model, &arguments.asked, &control, since) {
            Err(Failure::Stopped(report)) => return show(&report, arguments.trace.as_deref(), given, say, &control),
            check => check?,
        };
        let report = check.run();
        live.clear();
        exit = show(&report?, arguments.trace.as_deref(), given, say, &control)?;
    }
    if arguments.stats {
        let (check, live) = check();
        let stats = check.stats();
        live.clear();
        let shown = super::stats::show(&stats?, arguments.all, given, say, &control)?;
        exit = if exit == Exit::Good { shown } else { exit };
    }
    if arguments.components {
        let components = condensed.components(left(limits.clone(), since), cancel.clone())?;
        print(&control, |out| {
            if say.json {
                components.write_json(out)?;
                writeln!(out)
            } else {
                out.write_all(text::components(&components).as_bytes())
            }
        })?;
    }
    if let Some(output) = &arguments.output {
        let Output::Drawing(format) = format(arguments, output)? else {
            return Err(Failure::new("the graph is a .dmg already").help("copy the file instead"));
        };
        let memory = limits.memory.map(show_bytes).unwrap_or_default();
        let most = arguments.max_states.unwrap_or(format.max_states());
        let live = live(arguments, &limits);
        let rebuilt = Graph::rebuild(&condensed, most, left(limits, since), cancel, live.clone());
        live.clear();
        let graph = rebuilt.map_err(|error| refusal(error, advice(format, arguments.max_states), &memory))?;
        draw(&graph, format, output, say.quiet, &control)?;
    } else if !wanted.contains(&true) {
        print(&control, |out| {
            if say.json {
                condensed.write_json(out)?;
                writeln!(out)
            } else {
                out.write_all(text::graph(&condensed).as_bytes())
            }
        })?;
    }
    Ok(exit)
}

/// A graph records how its model is loaded.
fn refuse_what_the_graph_knows(arguments: &args::Graph) -> Result<(), Failure> {
    let model = &arguments.model;
    let given = [
        ("--param", !model.param.is_empty()),
        ("--marking", !model.marking.is_empty()),
        ("--unfold", model.unfold != deltamark::Unfold::Auto),
        ("--engine", model.engine.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(Failure::new(format!("the graph knows how its model is loaded, so `{option}` cannot be used"))
                .help("leave the option out"))
        }
        None => Ok(()),
    }
}

fn format(arguments: &args::Graph, path: &str) -> Result<Output, Failure> {
    let name = match &arguments.to {
        Some(name) => Some(name.as_str()),
        None => Path::new(path).extension().and_then(|ending| ending.to_str()),
    };
    if name.is_some_and(|name| name.eq_ignore_ascii_case("dmg")) {
        if path == "-" {
            return Err(Failure::new("a condensed graph is written to a file, not to standard output"));
        }
        return Ok(Output::Condensed);
    }
    let drawing = name.and_then(GraphFormat::by_name).map(Output::Drawing);
    drawing.ok_or_else(|| {
        let known = "dmg (condensed), dot (Graphviz), aut (Aldebaran), json";
        match (&arguments.to, name) {
            (Some(name), _) => {
                Failure::new(format!("there is no graph format `{name}`")).help(format!("known formats: {known}"))
            }
            (None, _) if path == "-" => Failure::new("standard output has no name that would tell the graph's format")
                .help(format!("add `--to NAME`; known formats: {known}")),
            (None, _) => Failure::new(format!("the name `{path}` does not tell the graph's format"))
                .help(format!("let it end in .dmg, .dot, .aut or .json, or add `--to NAME`; known formats: {known}")),
        }
    })
}

fn advice(format: GraphFormat, given: Option<u64>) -> &'static str {
    match format {
        GraphFormat::Dot if given.is_none() => {
            "no picture of so many is readable; `--max-states N` allows more, .aut and .json go further, and `deltamark stats` gives figures"
        }
        _ => "`--max-states N` allows more; `deltamark stats` gives figures",
    }
}

/// A writer that fails when the run is stopped.
struct Watched<'a> {
    out: &'a mut dyn Write,
    control: &'a Control,
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.control.ask() {
            Err(Stop::Time | Stop::Cancelled) => Err(io::Error::other("the run must end")),
            _ => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn refusal(error: GraphError, advice: &str, memory: &str) -> Failure {
    refused(error, advice, memory, "so no graph was written")
}

/// Why there is no graph, and what follows.
pub(super) fn refused(error: GraphError, advice: &str, memory: &str, so: &str) -> Failure {
    match error {
        GraphError::TooManyStates(limit) => {
            let message = format!("the state space has more than {} states, {so}", show_count(limit));
            Failure::new(message).help(advice).no_answer()
        }
        GraphError::Stopped(stop, states) => {
            let why = match stop {
                Stop::Memory => format!("the memory limit of {memory} was reached"),
                Stop::Time => "the time limit was reached".into(),
                Stop::Count => {
                    "a number grew beyond what is counted, or an expression takes too long to evaluate".into()
                }
                Stop::Cancelled => "you stopped the run".into(),
                _ => "the run ended early".into(),
            };
            let message = format!("{why} after {}, {so}", show_counted(states, "state"));
            Failure::new(message).no_answer()
        }
        GraphError::Check(error) => error.into(),
        other => Failure::new(other.to_string()).no_answer(),
    }
}
