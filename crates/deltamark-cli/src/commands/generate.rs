//! `deltamark generate`.
//!
//! In: a family of models and a number. Out: a model file.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::write_file;
use crate::signals;
use deltamark::load::Format;
use deltamark::nets::{Net, generate, to_pnml, to_tina};
use std::path::Path;

/// Writes a model.
pub fn run(arguments: &args::Generate) -> Result<Exit, Failure> {
    let family = arguments.family;
    let in_range = |n: &u32| (family.smallest..=family.largest).contains(n);
    let Some(n) = arguments.n.parse().ok().filter(in_range) else {
        let message = format!("`{}` is no {} for `{}`", arguments.n, family.parameter, family.name);
        let (smallest, largest) = (family.smallest, family.largest);
        return Err(Failure::new(message).help(format!("give a number from {smallest} to {largest}")));
    };
    let write = format(arguments)?;
    let net = generate(family.name, n).map_err(|wrong| {
        let failure = Failure::new(wrong.message);
        wrong.help.into_iter().fold(failure, Failure::help)
    })?;
    write_file(&arguments.output, &signals::control(), |out| out.write_all(write(&net).as_bytes()))?;
    Ok(Exit::Good)
}

type Writer = fn(&Net) -> String;

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
