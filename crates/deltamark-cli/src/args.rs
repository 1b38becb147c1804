//! The command line.
//!
//! In: arguments. Out: plain data. What stays true: an option that is accepted has its effect; one that
//! belongs to the contract but not to this version is refused in a sentence, never ignored.

use crate::exit::Failure;
use crate::{offered, units};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use deltamark::condensed::Way;
use deltamark::load::{Format, LARGEST_FILE};
use deltamark::nets::{FAMILIES, Family};
use deltamark::{EngineChoice, Limits, LoadError, LoadOptions, Report, Stop, StoreSpec, Strategy, Unfold};
use deltamark_reproduce::Paper;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Explores every state a model can reach and answers questions about them, in little memory.
#[derive(Parser, Debug)]
#[command(name = "deltamark", version, max_term_width = 100)]
#[command(after_help = EXITS)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXITS: &str = "Exit codes: 0 all properties hold; 1 one is violated; 2 the input or the command line is wrong; \
                     3 no answer (a limit was reached, or a lossy store found nothing).";

const CHECK_HELP: &str = "\
Examples:
  deltamark check net.pnml
  deltamark check net.pnml --invariant 'buffer <= 3' --reach 'full == 1 && empty == 0'
  deltamark check net.net --deadlock --memory 4GiB --time 10m --json

Exit codes: 0 all properties hold; 1 one is violated; 2 the input or the command line is wrong; \
3 no answer (a limit was reached, or a lossy store found nothing).";

const VERIFY_HELP: &str = "\
Example:
  deltamark check net.pnml --invariant 'buffer <= 3' --certificate buffer.cert
  deltamark verify buffer.cert net.pnml

Exit codes: 0 the certificate is accepted; 1 it is rejected; 2 the input or the command line is wrong; \
3 a limit was reached.";

const RESUME_HELP: &str = "\
Examples:
  deltamark check net.pnml --checkpoint kept --time 1h
  deltamark resume kept
  deltamark resume kept --memory 16GiB --store compact

All that is not given is as it was in the run that kept the checkpoints.";

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check properties of a model; without any, look for deadlocks and faults
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Check a certificate that `check --certificate` wrote, by code of its own
    #[command(after_help = VERIFY_HELP)]
    Verify(Verify),
    /// Go on with a run of `check` that kept checkpoints
    #[command(after_help = RESUME_HELP)]
    Resume(Resume),
    /// Explore everything and show the state space in figures
    Stats(Stats),
    /// Answer an examination of the Model Checking Contest, in the contest's own lines
    Mcc(Mcc),
    /// Show the automaton of a formula of linear temporal logic
    Automaton(Automaton),
    /// Write the state space as a graph, or answer questions from one that was written
    Graph(Graph),
    /// Step through a model, by hand or at random
    Simulate(Simulate),
    /// Print what a model was compiled to
    Dump(Dump),
    /// Write a model of a family that has a parameter
    Generate(Generate),
    /// List the stores and their options
    Stores(Stores),
    /// Measure the tables of a paper again, and show them beside what was published
    Reproduce(Reproduce),
    /// Print completions for a shell
    Completions(Completions),
    /// Print the manual page
    Man(Man),
}

/// The model.
#[derive(Args, Debug)]
pub struct Model {
    /// File with the model; `-` for standard input
    pub model: String,
    /// Format of the model [default: by the ending of its file]
    #[arg(long, value_name = "NAME", long_help = formats_help(), hide_possible_values = true, value_parser = offered::formats())]
    pub format: Option<String>,
    /// Value of a parameter of the model, for instance N=5; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub param: Vec<(String, String)>,
    /// Initial marking of a place of a net of CPN Tools, for instance "Top'Limit 1=2`e"; may be given several times
    #[arg(long, value_name = "PLACE=EXPR", value_parser = parameter)]
    pub marking: Vec<(String, String)>,
    /// Run a coloured net as the P/T net it unfolds to: yes, no, or auto, which does so if it is small
    #[arg(long, value_name = "yes|no|auto", default_value = "auto", hide_default_value = true, hide_possible_values = true, value_parser = offered::unfoldings())]
    pub unfold: Unfold,
    /// Engine that computes successors, for models in DVE: auto, native or interpreter [default: auto]
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = offered::engines())]
    pub engine: Option<EngineChoice>,
}

fn formats_help() -> String {
    format!("Format of the model, if the ending of its file does not tell it: {}", Format::list())
}

/// An expression. It may begin with a minus, but not like an option: then the expression was forgotten.
fn expression(text: &str) -> Result<String, String> {
    match text.strip_prefix("--") {
        Some(word) if word.starts_with(|c: char| c.is_ascii_alphabetic()) => Err(format!(
            "an expression is expected, and `{text}` looks like an option; put parentheses around it if it is none"
        )),
        _ => Ok(text.into()),
    }
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    match split {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE, for instance N=5".into()),
    }
}

impl Model {
    /// Loads the model, for a run that began at `since` under these limits; `memory` is the user's limit, if
    /// given.
    pub fn load(&self, limits: &Limits, memory: Option<u64>, since: Instant) -> Result<deltamark::Loaded, Failure> {
        // A process holds more than this before it reads anything, so a limit below it is refused later, when
        // the limit that would suffice is known.
        const SMALLEST: u64 = 4 << 20;
        let limit = memory.unwrap_or(u64::MAX).max(SMALLEST);
        let options = LoadOptions {
            format: self.format.clone(),
            parameters: self.param.clone(),
            markings: self.marking.clone(),
            unfold: self.unfold,
            engine: self.engine,
            limit,
        };
        // A limit below this is refused once the model is loaded, with the least that works.
        const FLOOR: u64 = 16 << 20;
        let loading = Limits { memory: limits.memory.map(|memory| memory.max(FLOOR)), ..limits.clone() };
        let control = deltamark::control::steering(&loading, &crate::signals::cancel(), since);
        let loaded = deltamark::load_under(&self.model, &options, &control);
        let loaded = loaded.map_err(|error| match error {
            // No room for the file itself, let alone for the model.
            LoadError::TooBig { path, .. } if limit < LARGEST_FILE => {
                LoadError::Stopped { path, format: None, phase: "loading", stop: Stop::Memory }
            }
            error => error,
        });
        let stopped = loaded.as_ref().err().and_then(|error| Report::of_loading(error, control.limits.memory, since));
        if let Some(report) = stopped {
            return Err(Failure::Stopped(Box::new(report)));
        }
        Ok(loaded?)
    }
}

/// Arguments of `dump`.
#[derive(Args, Debug)]
pub struct Dump {
    #[command(flatten)]
    pub model: Model,
}

/// How to explore.
#[derive(Args, Debug)]
pub struct Explore {
    /// Where visited states are kept; `deltamark stores` lists all with their options
    #[arg(long, value_name = "NAME[:OPTION=VALUE,…]", default_value_t, hide_possible_values = true, value_parser = offered::stores())]
    pub store: StoreSpec,
    /// Show what `--store auto` tries and why it chooses as it does
    #[arg(long, conflicts_with = "quiet")]
    pub explain: bool,
    /// Order in which states are visited; bfs gives shortest traces, sweep forgets states behind a line. If it is not
    /// given, check also looks aside for errors that are deep [default: bfs]
    #[arg(long, value_name = "NAME", value_parser = offered::searches())]
    search: Option<Strategy>,
    /// Progress measure of a sweep: a number such as 'sent + received', several such as '(round, sent)', @FILE, or auto, which finds one [default: auto]
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, value_parser = expression)]
    progress: Option<String>,
    /// Number of threads that search [default: as many as the machine runs at once]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    threads: Option<usize>,
    /// Write the graph of all states to a file, which `deltamark graph FILE.dmg` answers further questions from
    #[arg(long, value_name = "FILE.dmg")]
    pub graph: Option<String>,
    #[command(flatten)]
    limits: LimitOptions,
    /// Stop after this many states
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = units::count, help_heading = "Limits")]
    max_states: Option<u64>,
    /// Look no further than this many steps from an initial state
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = units::steps, help_heading = "Limits")]
    depth: Option<u64>,
}

/// Limits that every exploration has.
#[derive(Args, Debug)]
pub struct LimitOptions {
    /// Most memory the process may hold: 4GiB, 512MB, 2G [default: nine tenths of what is available]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = units::size, help_heading = "Limits")]
    pub memory: Option<u64>,
    /// Longest time for all that is done, loading included: 90s, 10m, 1h30m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = units::duration, help_heading = "Limits")]
    pub time: Option<Duration>,
}

impl LimitOptions {
    /// As the library takes them.
    pub fn limits(&self) -> Limits {
        let memory = self.memory.or_else(deltamark::memory::default_limit);
        Limits { memory, time: self.time, ..Limits::default() }
    }
}

impl Explore {
    /// The order in which states are visited.
    pub fn search(&self) -> Strategy {
        self.search.unwrap_or_default()
    }

    /// The order that the user chose.
    pub fn chosen_search(&self) -> Option<Strategy> {
        self.search
    }

    /// Whether probes may look for deep errors: the user has asked for no order.
    pub fn probes(&self) -> bool {
        self.search.is_none()
    }

    /// The user's progress measure.
    pub fn progress(&self) -> Option<&str> {
        self.progress.as_deref()
    }

    /// The number of threads the user gave.
    pub fn threads(&self) -> Option<usize> {
        self.threads
    }

    /// The limits, the memory limit filled in.
    pub fn limits(&self) -> Limits {
        Limits { states: self.max_states, depth: self.depth, ..self.limits.limits() }
    }

    /// The memory limit the user gave.
    pub fn memory(&self) -> Option<u64> {
        self.limits.memory
    }
}

/// The maximum number of threads.
const MOST_THREADS: usize = 1024;

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a number of threads")),
        Ok(number) if number > MOST_THREADS => Err(format!("at most {MOST_THREADS} threads can be asked for")),
        Ok(number) => Ok(number),
    }
}

/// How to report.
#[derive(Args, Debug)]
pub struct Say {
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print the answers only: no figures, notes or progress. Warnings and errors stay
    #[arg(short, long)]
    pub quiet: bool,
    /// Show more while searching: answers as they come, changes of the states' layout
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// What to check, in the order of the command line.
#[derive(Debug)]
pub struct Properties {
    /// The properties in question.
    pub asked: Vec<Asked>,
    /// Final states, in which a run may end.
    pub finals: Vec<String>,
}

/// One question.
#[derive(Debug)]
pub enum Asked {
    Deadlock,
    Invariant(String),
    Reach(String),
    Ltl(String),
    Ctl(String),
    /// All questions of a file.
    File(String),
}

/// The options for that, as clap sees them.
#[derive(Args, Debug)]
struct PropertyOptions {
    /// Check that every reachable state has a successor
    #[arg(long, help_heading = "Properties")]
    deadlock: bool,
    /// Check that an expression is true in every reachable state
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, value_parser = expression, help_heading = "Properties")]
    invariant: Vec<String>,
    /// Check that an expression is true in some reachable state
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, value_parser = expression, help_heading = "Properties")]
    reach: Vec<String>,
    /// Check that a formula of linear temporal logic is true on all paths
    #[arg(long, value_name = "FORMULA", allow_hyphen_values = true, value_parser = expression, help_heading = "Properties")]
    ltl: Vec<String>,
    /// Check that a formula of branching temporal logic (CTL, CTL*) is true in the initial states
    #[arg(long, value_name = "FORMULA", allow_hyphen_values = true, value_parser = expression, help_heading = "Properties")]
    ctl: Vec<String>,
    /// Check all properties of a file
    #[arg(long, value_name = "FILE", help_heading = "Properties")]
    properties: Option<String>,
    /// Say where a run may end: a deadlock where this is true is no violation; may be given several times
    #[arg(long = "final", value_name = "EXPR", allow_hyphen_values = true, help_heading = "Properties")]
    finals: Vec<String>,
}

/// Options have an order on the command line; the data made of them does not.
impl FromArgMatches for Properties {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let options = PropertyOptions::from_arg_matches(matches)?;
        let places = |option: &str| matches.indices_of(option).into_iter().flatten();
        let mut asked: Vec<(usize, Asked)> = Vec::new();
        asked.extend(places("deadlock").take(usize::from(options.deadlock)).map(|place| (place, Asked::Deadlock)));
        asked.extend(places("invariant").zip(options.invariant.into_iter().map(Asked::Invariant)));
        asked.extend(places("reach").zip(options.reach.into_iter().map(Asked::Reach)));
        asked.extend(places("ltl").zip(options.ltl.into_iter().map(Asked::Ltl)));
        asked.extend(places("ctl").zip(options.ctl.into_iter().map(Asked::Ctl)));
        asked.extend(places("properties").zip(options.properties.into_iter().map(Asked::File)));
        asked.sort_by_key(|&(place, _)| place);
        Ok(Properties { asked: asked.into_iter().map(|(_, asked)| asked).collect(), finals: options.finals })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Properties {
    fn augment_args(command: clap::Command) -> clap::Command {
        PropertyOptions::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        PropertyOptions::augment_args_for_update(command)
    }
}

impl Properties {
    /// Whether there are no properties.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.finals.is_empty()
    }

    /// The property file.
    pub fn file(&self) -> Option<&str> {
        self.asked.iter().find_map(|asked| match asked {
            Asked::File(path) => Some(path.as_str()),
            _ => None,
        })
    }
}

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct Check {
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub asked: Properties,
    /// Ask whether a workflow net is sound: option to complete, proper completion, no dead transitions
    #[arg(long, help_heading = "Properties")]
    pub soundness: bool,
    #[command(flatten)]
    pub explore: Explore,
    /// Leave states away that the properties do not need: off, stubborn, structure, all, symmetry, or auto, which
    /// decides when there are many
    #[arg(long, value_name = "NAME", default_value_t = deltamark::Reduce::Auto)]
    pub reduce: deltamark::Reduce,
    /// How formulas of temporal logic are answered: graph, which explores all states first, fly, which does not, or
    /// auto: a single formula of LTL first on the fly, several on the graph
    #[arg(long, value_name = "NAME", default_value_t = deltamark::RouteKind::Auto)]
    pub route: deltamark::RouteKind,
    /// Have formulas of LTL speak of fair paths alone: weak, strong; to each process (DVE) or transition:
    /// weak:process, strong:transition
    #[arg(long, value_name = "NAME")]
    pub fair: Option<deltamark::Fair>,
    /// Show shortest traces: nothing is reduced that does not keep their lengths
    #[arg(long)]
    pub shortest: bool,
    /// Write the traces to a file, as JSON
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Write a certificate of the answers to a file, which `deltamark verify` checks: nothing is reduced or probed
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<String>,
    /// Keep checkpoints in a directory, from which `deltamark resume DIR` goes on; nothing is reduced then
    #[arg(long, value_name = "DIR", help_heading = "Checkpoints")]
    pub checkpoint: Option<String>,
    /// Time from one checkpoint to the next, at the end of a level; 0 means every level [default: 10m]
    #[arg(long, value_name = "DURATION", requires = "checkpoint", value_parser = units::interval, help_heading = "Checkpoints")]
    pub checkpoint_every: Option<Duration>,
    #[command(flatten)]
    pub say: Say,
}

/// Arguments of `verify`.
#[derive(Args, Debug)]
pub struct Verify {
    /// The certificate
    pub certificate: String,
    /// The model that it is of
    pub model: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub limits: LimitOptions,
}

/// Arguments of `resume`.
#[derive(Args, Debug)]
pub struct Resume {
    /// Directory with the checkpoints
    #[arg(value_name = "DIR")]
    pub directory: String,
    /// Go on from the checkpoint before the last one
    #[arg(long)]
    pub older: bool,
    /// Keep visited states in this store from now on
    #[arg(long, value_name = "NAME[:OPTION=VALUE,…]", hide_possible_values = true, value_parser = offered::stores())]
    store: Option<StoreSpec>,
    /// Number of threads that search
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    threads: Option<usize>,
    #[command(flatten)]
    limits: LimitOptions,
    /// Stop after this many states, those of the checkpoint included
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = units::count, help_heading = "Limits")]
    max_states: Option<u64>,
    /// Look no further than this many steps from an initial state
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = units::steps, help_heading = "Limits")]
    depth: Option<u64>,
    /// Time from one checkpoint to the next; 0 means the end of every level
    #[arg(long, value_name = "DURATION", value_parser = units::interval)]
    checkpoint_every: Option<Duration>,
    #[command(flatten)]
    pub say: Say,
}

impl Resume {
    /// The limits that were given.
    pub fn limits(&self) -> Limits {
        self.limits.limits()
    }

    /// What the run was asked, but for what is given now; `store` is the one in which it was at last.
    pub fn asked_again(self, mut check: Check, store: Option<StoreSpec>) -> Check {
        let explore = &mut check.explore;
        explore.store = self.store.or(store).unwrap_or(std::mem::take(&mut explore.store));
        explore.threads = self.threads.or(explore.threads);
        explore.limits.memory = self.limits.memory.or(explore.limits.memory);
        explore.limits.time = self.limits.time.or(explore.limits.time);
        explore.max_states = self.max_states.or(explore.max_states);
        explore.depth = self.depth.or(explore.depth);
        Check { checkpoint_every: self.checkpoint_every.or(check.checkpoint_every), say: self.say, ..check }
    }
}

/// A better diagnostic for some wrong command lines than the option alone gives: a property given to a
/// command that checks none, a name that is no text.
pub fn explained(error: &clap::Error) -> Option<Failure> {
    if error.kind() == ErrorKind::InvalidUtf8 {
        return Some(Failure::new("an argument is not a text in UTF-8: the name of a file, perhaps").help(
            "rename the file; a model may also come from standard input: `deltamark check - --format NAME < FILE`",
        ));
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let known = ["--deadlock", "--invariant", "--reach", "--ltl", "--ctl", "--properties", "--final", "--soundness"]
        .contains(&option.as_str());
    let resumes = std::env::args_os().nth(1).is_some_and(|word| word == "resume");
    (error.kind() == ErrorKind::UnknownArgument && known).then(|| {
        if resumes {
            let message = format!("`resume` asks what the run was asked at first, so `{option}` cannot be used");
            return Failure::new(message).help("a run that asks more begins with `deltamark check`");
        }
        Failure::new(format!("this command checks no properties, so `{option}` cannot be used"))
            .help("properties belong to `deltamark check`")
    })
}

/// Arguments of `automaton`.
#[derive(Args, Debug)]
pub struct Automaton {
    /// The formula; what has neither temporal nor Boolean operators is an atom, whatever its names are
    #[arg(allow_hyphen_values = true, value_parser = expression)]
    pub formula: String,
    /// Write it in the Hanoi Omega-Automata format
    #[arg(long)]
    pub hoa: bool,
    /// Write it for Graphviz
    #[arg(long, conflicts_with = "hoa")]
    pub dot: bool,
    #[command(flatten)]
    pub limits: LimitOptions,
}

/// Arguments of `mcc`.
#[derive(Args, Debug)]
pub struct Mcc {
    /// File with the net
    pub model: String,
    /// The examination, for instance StateSpace or LTLFireability
    pub examination: String,
    /// File with the formulas [default: the one of the examination's name beside the model]
    #[arg(long, value_name = "FILE.xml")]
    pub properties: Option<String>,
    #[command(flatten)]
    pub limits: LimitOptions,
}

/// Arguments of `stats`.
#[derive(Args, Debug)]
pub struct Stats {
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub explore: Explore,
    /// Show every row of long tables
    #[arg(long)]
    pub all: bool,
    /// Report as CPN Tools does: bounds, home and dead markings, live transitions, fairness
    #[arg(long, conflicts_with_all = ["json", "all", "graph", "progress", "depth"])]
    pub report: bool,
    #[command(flatten)]
    pub say: Say,
}

/// Arguments of `graph`. The model may be a graph that was written before.
#[derive(Args, Debug)]
#[command(after_help = GRAPH_HELP)]
pub struct Graph {
    #[command(flatten)]
    pub model: Model,
    /// File to write: its ending .dmg, .dot, .aut or .json tells the format; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// Format to write: dmg, dot, aut or json [default: by the file's ending]
    #[arg(long, value_name = "NAME", requires = "output", hide_possible_values = true, value_parser = offered::graph_formats())]
    pub to: Option<String>,
    /// Refuse beyond this many states [default: 10000 for dot, 1000000 for aut and json, none for dmg]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = units::count, requires = "output")]
    pub max_states: Option<u64>,
    #[command(flatten)]
    pub asked: Properties,
    /// Show the state space in figures, as `deltamark stats` does
    #[arg(long, help_heading = "With a FILE.dmg instead of a model")]
    pub stats: bool,
    /// Find the strongly connected components, and whether there are home states
    #[arg(long, help_heading = "With a FILE.dmg instead of a model")]
    pub components: bool,
    /// Where the model of the graph is now [default: beside the graph, or where it was]
    #[arg(long = "model", value_name = "PATH", id = "model-path", help_heading = "With a FILE.dmg instead of a model")]
    pub model_path: Option<String>,
    /// How states are rebuilt: in the order of the file, depth first (in less memory), or auto [default: auto]
    #[arg(long, value_name = "auto|file|depth", hide_possible_values = true, value_parser = offered::walks(), help_heading = "With a FILE.dmg instead of a model")]
    pub walk: Option<Way>,
    /// Show every row of long tables
    #[arg(long, help_heading = "With a FILE.dmg instead of a model")]
    pub all: bool,
    /// Write the traces to a file, as JSON
    #[arg(long, value_name = "FILE", help_heading = "With a FILE.dmg instead of a model")]
    pub trace: Option<String>,
    #[command(flatten)]
    pub limits: LimitOptions,
    #[command(flatten)]
    pub say: Say,
}

impl Graph {
    /// Whether the input is a condensed graph and not a model. With a format it may be a model of an odd
    /// name; then its first bytes decide.
    pub fn is_condensed(&self) -> bool {
        let path = std::path::Path::new(&self.model.model);
        let called = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("dmg"));
        called && (self.model.format.is_none() || deltamark::condensed::is_graph(path))
    }
}

const GRAPH_HELP: &str = "\
Examples:
  deltamark graph net.pnml -o net.dot                  a picture
  deltamark graph net.pnml -o net.dmg                  the condensed graph
  deltamark graph net.dmg --invariant 'buffer <= 3'    from the graph, without exploring
  deltamark graph net.dmg --stats --components
  deltamark graph net.dmg -o net.aut

Exit codes: 0 all properties hold; 1 one is violated; 2 the input or the command line is wrong; \
3 no answer (a limit was reached).";

/// Arguments of `simulate`.
#[derive(Args, Debug)]
pub struct Simulate {
    #[command(flatten)]
    pub model: Model,
    /// Take this many random steps instead of asking
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = units::steps)]
    pub random: Option<u64>,
    /// Seed of the random steps: the same seed takes the same steps [default: from the clock; it is printed]
    #[arg(long, value_name = "S", requires = "random", allow_hyphen_values = true, value_parser = units::seed)]
    pub seed: Option<u64>,
}

/// Arguments of `reproduce`.
#[derive(Args, Debug)]
#[command(after_help = papers_help())]
pub struct Reproduce {
    /// The paper, called by its method
    #[arg(hide_possible_values = true, value_parser = offered::papers())]
    pub paper: &'static Paper,
    /// Run small instances, about a minute of them; this is the default
    #[arg(long)]
    pub quick: bool,
    /// Run the sizes of the paper, for up to half an hour
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,
    /// Folder with models that do not come with Deltamark: `tree` needs those of BEEM
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// Folder to write report.html, report.json and the pictures to [default: reproduce-PAPER]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

fn papers_help() -> String {
    let wide = Paper::ALL.iter().map(|paper| paper.name.len()).max().unwrap_or(0);
    let lines = Paper::ALL.iter().map(|paper| format!("  {:wide$}  {}\n", paper.name, paper.about));
    format!("Papers:\n{}", lines.collect::<String>())
}

/// Arguments of `generate`.
#[derive(Args, Debug)]
#[command(after_help = families_help())]
pub struct Generate {
    /// Family of models
    #[arg(hide_possible_values = true, value_parser = offered::families())]
    pub family: &'static Family,
    /// Its parameter, a number
    #[arg(allow_negative_numbers = true)]
    pub n: String,
    /// File to write: its ending .pnml or .net tells the format; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: String,
    /// Format to write: pnml or tina [default: by the file's ending]
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = offered::net_formats())]
    pub format: Option<String>,
}

fn families_help() -> String {
    let width = FAMILIES.iter().map(|family| family.name.len()).max().unwrap_or(0);
    // Wrapped lines lose their column, so they are kept short.
    let line = |family: &Family| {
        let about = family.about.replace("; ", &format!(";\n  {:width$}  ", ""));
        format!("\n  {:width$}  {about};\n  {:width$}  N: {}", family.name, "", family.parameter)
    };
    let lines = FAMILIES.iter().map(line);
    format!("Families:{}", lines.collect::<String>())
}

/// Arguments of `stores`.
#[derive(Args, Debug)]
pub struct Stores {
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Write one page for each command into this folder instead
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_help_of_graph_names_the_limits_there_are() {
        use deltamark::graph::GraphFormat;
        assert_eq!(
            [GraphFormat::Dot, GraphFormat::Aut, GraphFormat::Json].map(GraphFormat::max_states),
            [10_000, 1_000_000, 1_000_000]
        );
    }
}
