//! `deltamark generate`.
//!
//! In: a family of models and a number. Out: a model file.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::write_file;
use deltamark::core::diagnostic::did_you_mean;
use deltamark::load::Format;
use deltamark::nets::generate::{FAMILIES, generate};
use deltamark::nets::write::{to_pnml, to_tina};
use std::path::Path;

/// Writes a model.
pub fn run(arguments: &args::Generate) -> Result<Exit, Failure> {
    let name = arguments.family.as_str();
    if !FAMILIES.iter().any(|family| family.name == name) {
        let known: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        let advice = match did_you_mean(name, known.iter().copied()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("known families: {}", known.join(", ")),
        };
        return Err(Failure::new(format!("there is no family `{name}`")).help(advice));
    }
    let write = format(arguments)?;
    let net = generate(name, arguments.n).map_err(|wrong| {
        let failure = Failure::new(wrong.message);
        wrong.help.into_iter().fold(failure, Failure::help)
    })?;
    write_file(&arguments.output, |out| out.write_all(write(&net).as_bytes()))?;
    Ok(Exit::Good)
}

type Writer = fn(&deltamark::nets::Net) -> String;

fn format(arguments: &args::Generate) -> Result<Writer, Failure> {
    let path = &arguments.output;
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    let name = match &arguments.format {
        Some(name) => name,
        None if path == "-" => "pnml",
        None => ending.unwrap_or_default(),
    };
    match Format::by_name(name).map(|format| format.name) {
        Some("pnml") => Ok(to_pnml),
        Some("tina") => Ok(to_tina),
        _ if arguments.format.is_some() => {
            Err(Failure::new(format!("nets cannot be written as `{name}`")).help("formats to write: pnml, tina"))
        }
        _ => Err(Failure::new(format!("the name `{path}` does not tell the format to write"))
            .help("let it end in .pnml or .net, or add `--format pnml` or `--format tina`")),
    }
}
