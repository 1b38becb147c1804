//! `deltamark graph`.
//!
//! In: a model. Out: its whole state space as a file that other tools read.

use super::cancel_on_interrupt;
use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{keep_inputs, write_file};
use crate::progress::Live;
use crate::units::{show_bytes, show_count, show_counted};
use deltamark::core::Stop;
use deltamark::graph::{Graph, GraphError, GraphFormat};
use std::path::Path;

/// Writes the graph.
pub fn run(arguments: &args::Graph) -> Result<Exit, Failure> {
    let format = format(arguments)?;
    keep_inputs(&arguments.output, &[("the model", &arguments.model.model)])?;
    let model = arguments.model.load(arguments.limits.memory)?;
    let limits = arguments.limits.limits();
    let memory = limits.memory.map(show_bytes).unwrap_or_default();
    let most = arguments.max_states.unwrap_or(format.max_states());
    let live = Live::new(arguments.quiet, false, limits.memory);
    let explored = Graph::explore(&model, most, limits, cancel_on_interrupt(), live.clone());
    live.clear();
    let graph = explored.map_err(|error| refusal(error, format, &memory))?;
    write_file(&arguments.output, |out| graph.write(format, out))?;
    if !arguments.quiet && arguments.output != "-" {
        let size = (show_counted(graph.states() as u64, "state"), show_counted(graph.edges() as u64, "edge"));
        eprintln!("{} and {} written to {}", size.0, size.1, arguments.output);
    }
    Ok(Exit::Good)
}

fn format(arguments: &args::Graph) -> Result<GraphFormat, Failure> {
    let path = &arguments.output;
    let name = match &arguments.to {
        Some(name) => Some(name.as_str()),
        None => Path::new(path).extension().and_then(|ending| ending.to_str()),
    };
    name.and_then(GraphFormat::by_name).ok_or_else(|| {
        let known = "dot (Graphviz), aut (Aldebaran), json";
        match (&arguments.to, name) {
            (Some(name), _) => {
                Failure::new(format!("there is no graph format `{name}`")).help(format!("known formats: {known}"))
            }
            (None, _) if path == "-" => Failure::new("standard output has no name that would tell the graph's format")
                .help(format!("add `--to NAME`; known formats: {known}")),
            (None, _) => Failure::new(format!("the name `{path}` does not tell the graph's format"))
                .help(format!("let it end in .dot, .aut or .json, or add `--to NAME`; known formats: {known}")),
        }
    })
}

fn refusal(error: GraphError, format: GraphFormat, memory: &str) -> Failure {
    match error {
        GraphError::TooManyStates(limit) => {
            let advice = match format {
                GraphFormat::Dot => {
                    "no picture of so many is readable; `--max-states N` allows more, .aut and .json go further, and `deltamark stats` gives figures"
                }
                GraphFormat::Aut | GraphFormat::Json => "`--max-states N` allows more; `deltamark stats` gives figures",
            };
            let message =
                format!("the state space has more than {} states, so no graph was written", show_count(limit));
            Failure::new(message).help(advice).no_answer()
        }
        GraphError::Stopped(stop, states) => {
            let why = match stop {
                Stop::Memory => format!("the memory limit of {memory} was reached"),
                Stop::Time => "the time limit was reached".into(),
                Stop::Cancelled => "you stopped the run".into(),
                Stop::Answered | Stop::States | Stop::Depth => "the run ended early".into(),
            };
            let message = format!("{why} after {}, so no graph was written", show_counted(states, "state"));
            Failure::new(message).no_answer()
        }
        GraphError::Check(error) => error.into(),
    }
}
