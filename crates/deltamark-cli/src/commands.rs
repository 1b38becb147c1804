//! The commands, one a file.
//!
//! In: the arguments of a command. Out: its exit. What stays true: a command prints its result and returns;
//! it never ends the process itself.

mod automaton;
mod certificate;
mod check;
mod dump;
mod extras;
mod generate;
mod graph;
mod mcc;
mod reproduce;
mod resume;
mod simulate;
mod stats;
mod stores;
mod verify;

use crate::args::{self, Command};
use crate::exit::{Exit, Failure};
use crate::output::tell;
use crate::progress::Live;
use crate::signals;
use deltamark::control::{Control, steering};
use deltamark::load::{self, LoadError, ModelInfo};
use deltamark::sweep::AUTO;
use deltamark::{Check, Loaded, Strategy};
use std::sync::Arc;
use std::time::Instant;

/// The maximum length of a file with a measure.
const LARGEST_MEASURE: u64 = 1 << 20;

/// Runs a command that began at `since`.
pub fn run(command: Command, since: Instant) -> Result<Exit, Failure> {
    // Explorations poll the flag; others end when a signal comes.
    if !matches!(
        command,
        Command::Check(_)
            | Command::Resume(_)
            | Command::Stats(_)
            | Command::Verify(_)
            | Command::Automaton(_)
            | Command::Mcc(_)
            | Command::Graph(_)
            | Command::Reproduce(_)
    ) {
        signals::unwatched();
    }
    match command {
        Command::Check(arguments) => check::run(&arguments, since),
        Command::Verify(arguments) => verify::run(&arguments, since),
        Command::Resume(arguments) => resume::run(arguments, since),
        Command::Stats(arguments) => stats::run(&arguments, since),
        Command::Automaton(arguments) => automaton::run(&arguments, since),
        Command::Mcc(arguments) => mcc::run(&arguments, since),
        Command::Graph(arguments) => graph::run(&arguments, since),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Stores(arguments) => stores::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Completions(arguments) => extras::completions(&arguments),
        Command::Man(arguments) => extras::man(&arguments),
    }
}

/// The check with the progress measure of the command line, if there is one.
fn progressing<'a>(
    check: Check<'a>,
    model: &Loaded,
    explore: &args::Explore,
    since: Instant,
) -> Result<Check<'a>, Failure> {
    let named = match explore.search() {
        Strategy::Sweep => Some("`--search sweep`, which takes none".to_string()),
        _ if !explore.store.is_auto() => Some(format!("`--store {}`, which names one", explore.store)),
        _ => None,
    };
    if let Some(named) = named.filter(|_| explore.explain) {
        return Err(Failure::new(format!("`--explain` shows how a store is chosen; it cannot be used with {named}"))
            .help("leave one of them out"));
    }
    let Some(given) = explore.progress() else { return Ok(check) };
    if explore.search() != Strategy::Sweep {
        return Err(Failure::new(format!("`--progress` is of no use to the search `{}`", explore.search().name()))
            .help("add `--search sweep`, or leave `--progress` out"));
    }
    let control = steering(&explore.limits(), &signals::cancel(), since);
    match measure(given, &model.info, &control, since)? {
        Some((name, text)) => {
            let ended = |error| check::unread(error, &model.info, &control, since);
            check.reading_under(&control).progress(&name, &text).map_err(ended)
        }
        None => Ok(check),
    }
}

/// The name and the text of a measure; `None` if one is to be found.
fn measure(
    given: &str,
    info: &ModelInfo,
    control: &Control,
    since: Instant,
) -> Result<Option<(String, String)>, Failure> {
    if given == AUTO {
        return Ok(None);
    }
    let Some(path) = given.strip_prefix('@') else { return Ok(Some(("--progress".into(), given.into()))) };
    let bytes = match load::read_under(path, LARGEST_MEASURE, control) {
        Err(LoadError::Stopped { stop, .. }) => return Err(check::reading_ended(info, stop, control, since)),
        bytes => bytes?,
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some((path.into(), text))),
        Err(_) => Err(Failure::new(format!("`{path}` is not a text in UTF-8, so it holds no measure"))),
    }
}

/// The check with the options shared by `check` and `stats`: store, search, limits, Ctrl-C and a live line,
/// which is to be cleared when the run has ended.
fn explored_as<'a>(
    check: Check<'a>,
    explore: &args::Explore,
    say: &args::Say,
    since: Instant,
) -> (Check<'a>, Arc<Live>) {
    if let Some(note) = check.info().note.as_ref().filter(|_| say.verbose) {
        crate::render::note(note);
    }
    let limits = explore.limits();
    // If memory is short, threads share what they free.
    if explore.memory().is_some_and(|limit| limit < 256 << 20) {
        crate::allocator::one_arena();
    }
    let live = Live::new(say.quiet, say.verbose, limits.memory);
    let check = check
        .store(explore.store.clone())
        .explain(explore.explain)
        .limits(limits)
        .cancel(signals::cancel())
        .listener(live.clone())
        .since(since);
    let check = match explore.chosen_search() {
        Some(search) => check.search(search),
        None => check,
    };
    let check = match explore.threads() {
        Some(threads) => check.threads(threads),
        None => check,
    };
    let check = match &explore.graph {
        Some(path) => check.graph(path.as_str()),
        None => check,
    };
    if say.verbose {
        match check.thread_count() {
            (_, Some(reason)) => tell(reason),
            (1, None) => tell("searching with one thread"),
            (threads, None) => tell(format_args!("searching with {threads} threads")),
        }
    }
    (check, live)
}
