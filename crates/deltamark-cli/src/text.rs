//! Reports for people.
//!
//! In: a [`Report`], perhaps with a survey. Out: text: the verdicts first, then the traces, then the
//! statistics. What stays true: a report fits on a few screens whatever the model; what is omitted is
//! mentioned, and where to find it.

use crate::multiset;
use crate::output::{Colour, Look, wrap};
use crate::units::{show_bytes, show_count, show_counted, show_duration};
use comfy_table::{CellAlignment, Table};
use deltamark::auto::{StoreChoice, Trial};
use deltamark::condensed::ComponentsReport;
use deltamark::memory::AddressSpace;
use deltamark::report::{Answer, GraphContents, PropertyKind, Report};
use deltamark::stats::Survey;
use deltamark::store::Guarantee;
use deltamark::story::{Change, StateWords, Story, StoryStep};
use deltamark::sweep::SweepReport;
use deltamark::{Again, Condensed, Route, RouteKind, Stop, Value, Verdict};
use std::collections::HashMap;
use std::fmt::Write;

/// Traces of more steps than this are cut in the middle.
const STEPS: usize = 60;
/// The number of steps that a cut trace shows at either end.
const ENDS: usize = 20;
/// Lists of more places or names than this are cut.
const ROWS: usize = 40;
/// Figures per state (bytes, time) are shown from this many states on: for fewer they only measure a nearly
/// empty table.
const FEW: u64 = 1000;

/// The line of one answer.
pub fn answer(answer: &Answer, look: &Look) -> String {
    let (colour, tick, word) = match &answer.verdict {
        Verdict::Holds(_) => (Colour::Green, "✓ ", "holds"),
        Verdict::Violated(..) => (Colour::Red, "✗ ", "violated"),
        Verdict::NoViolationFound(_) => (Colour::Yellow, "? ", "no violation found"),
        // An unknown verdict is no answer either.
        _ => (Colour::Yellow, "? ", "no answer"),
    };
    let mark = look.paint(colour, &format!("{}{word}", if look.ticks { tick } else { "" }));
    let property = match (answer.kind, &answer.name, &answer.text) {
        (PropertyKind::Invariant | PropertyKind::Reachable, name, text) if name == text => {
            format!("{}: {text}", answer.kind.word())
        }
        (PropertyKind::Invariant | PropertyKind::Reachable, name, text) => {
            format!("{name}: {} {text}", answer.kind.word())
        }
        (PropertyKind::Other(kind), name, text) if name == text => format!("{kind}: {text}"),
        (_, name, text) => format!("{name}: {text}"),
    };
    let doubt = match answer.verdict {
        Verdict::NoViolationFound(probability) => {
            format!(" ({})", missed(probability))
        }
        _ => String::new(),
    };
    format!("{mark}  {property}{doubt}\n")
}

/// The probability that a state was missed.
fn missed(probability: f64) -> String {
    let shown = match probability {
        p if p >= 0.999_5 => "nearly 1".into(),
        p if p >= 0.01 => format!("{p:.2}"),
        p => format!("{p:.1e}"),
    };
    format!("a state was missed with probability {shown}")
}

/// A report of `check`.
pub fn report(report: &Report, memory_given: bool, look: &Look) -> String {
    let mut out: String = report.answers.iter().map(|found| answer(found, look)).collect();
    let mut named: HashMap<&str, usize> = HashMap::new();
    report.answers.iter().for_each(|found| *named.entry(found.name.as_str()).or_default() += 1);
    for found in &report.answers {
        let label = if named[found.name.as_str()] > 1 {
            format!("{} ({})", found.name, found.text)
        } else {
            found.name.clone()
        };
        trace(&mut out, found, &label, report.is_shortest(), look);
    }
    out.push('\n');
    ending(&mut out, report, memory_given, look);
    if report.stopped_while.is_some() {
        return out.trim_start().into();
    }
    checkpoints(&mut out, report, look);
    for note in &report.notes {
        let _ = writeln!(out, "{}", wrap(&format!("Note: {note}."), "", look.width));
    }
    summary(&mut out, report, look);
    choice(&mut out, report, look);
    sweep(&mut out, report, look);
    out
}

/// The evidence of an answer: the trace, or why there is none.
fn trace(out: &mut String, answer: &Answer, label: &str, shortest: bool, look: &Look) {
    let violated = matches!(answer.verdict, Verdict::Violated(..));
    let Some(story) = &answer.story else {
        if let Some(stop) = answer.untraced {
            let why = match stop {
                Stop::Time => "the time limit was reached before its trace was found",
                Stop::Cancelled => "you ended the run before its trace was found",
                _ => "the memory limit left no room to find its trace",
            };
            let found = if violated { "violated" } else { "reached" };
            let message = answer.message().map_or(String::new(), |message| format!(" ({message})"));
            let _ = writeln!(out, "\n{}", wrap(&format!("{label}: {found}{message}; {why}"), "", look.width));
            return;
        }
        match &answer.verdict {
            Verdict::Violated(_, Some(message)) => _ = writeln!(out, "\n{label}: {message}"),
            Verdict::Violated(_, None) => _ = writeln!(out, "\n{label}: no reachable state makes it true"),
            _ => {}
        }
        return;
    };
    let temporal = matches!(answer.kind, PropertyKind::Other(_));
    let kind = if shortest && !answer.probed && !temporal { "a shortest path" } else { "a path" };
    let done = match (violated, temporal) {
        (true, _) => "violated",
        (false, true) => "shown",
        (false, false) => "reached",
    };
    let steps = |count: usize| show_counted(count as u64, "step");
    let title = match (story.len(), story.cycle()) {
        (count, Some(0)) => format!("{done} by a cycle of {}", steps(count)),
        (count, Some(start)) => {
            format!("{done} by a path of {} into a cycle of {}", steps(start), steps(count - start))
        }
        (0, None) => format!("{done} in the initial state"),
        (count, None) => format!("{done} by {kind} of {}", steps(count)),
    };
    let _ = writeln!(out, "\n{}", look.paint(Colour::Bold, &format!("{label}: {title}")));
    path(out, story, look);
    if let Some(message) = answer.message().filter(|_| story.fault().is_none()) {
        let _ = writeln!(out, "{}", wrap(message, "  ", look.width));
    }
}

fn path(out: &mut String, story: &Story, look: &Look) {
    let count = story.len();
    let shown = |index: usize| count <= STEPS || index < ENDS || index >= count - ENDS;
    let digits = count.to_string().len().max(5);
    let lengths =
        story.walk().enumerate().filter(|(index, _)| shown(*index)).map(|(_, step)| step.action.chars().count());
    let width = lengths.max().unwrap_or(0).min(32);
    let mut walk = story.walk();
    row(out, &format!("  {:>digits$}  ", "start"), &state(&walk.state()), look);
    for (index, step) in walk.by_ref().enumerate() {
        if story.cycle() == Some(index) {
            let repeated = match count - index {
                1 => format!("step {count} repeats"),
                _ => format!("steps {} to {count} repeat", index + 1),
            };
            let _ = writeln!(out, "  {:>digits$}  the cycle begins here: {repeated} for ever", "");
        }
        if shown(index) {
            let head = format!("  {:>digits$}  {:width$}  ", index + 1, step.action);
            row(out, &head, &changes(story, &step, look), look);
        } else if index == ENDS {
            let hidden = show_counted((count - 2 * ENDS) as u64, "step");
            let _ = writeln!(out, "  {:>digits$}  {hidden} not shown; `--trace FILE` writes them all", "…");
        }
    }
    if count > 0 && story.fault().is_none() {
        row(out, &format!("  {:>digits$}  ", "end"), &state(&walk.state()), look);
    }
}

fn state(words: &StateWords<'_>) -> Vec<String> {
    if words.is_empty() {
        return vec!["everything is empty".into()];
    }
    let one = |(name, value): &(&str, &Value)| format!("{name}: {}", multiset::shown(value));
    let mut list: Vec<String> = words.iter().take(ROWS).map(one).collect();
    if words.len() > ROWS {
        list.push(format!("and {} more", words.len() - ROWS));
    }
    list
}

fn changes(story: &Story, step: &StoryStep<'_>, look: &Look) -> Vec<String> {
    if let Some(fault) = &step.fault {
        return vec![look.paint(Colour::Red, &format!("fault: {fault}"))];
    }
    if step.changes.is_empty() {
        return vec!["changes nothing".into()];
    }
    let value = |value: Option<&'_ Value>| value.unwrap_or(story.rest()).clone();
    let one = |change: &Change<'_>| changed(change.name, &value(change.before), &value(change.after), look);
    step.changes.iter().map(one).collect()
}

/// The change of a variable: its old and its new value, or what was removed from a multiset and added.
pub fn changed(name: &str, before: &Value, after: &Value, look: &Look) -> String {
    multiset::change(name, before, after, look).unwrap_or_else(|| format!("{name}: {before} {} {after}", look.arrow))
}

/// A heading and its list, wrapped so that the list stays in its column.
pub fn row(out: &mut String, head: &str, list: &[String], look: &Look) {
    let indent = head.chars().count();
    let mut line = indent;
    out.push_str(head);
    for (index, item) in list.iter().enumerate() {
        let length = item.chars().count() + 2;
        if index > 0 && line + length > look.width {
            // A long head leaves room beside what follows below it.
            let indent = indent.min(look.width / 2);
            let _ = write!(out, ",\n{}", " ".repeat(indent));
            line = indent;
        } else if index > 0 {
            out.push_str(", ");
        }
        line += length;
        out.push_str(item);
    }
    out.push('\n');
}

/// Why a run was stopped before there was anything to search.
pub fn stopped(report: &Report) -> String {
    let why = match report.stopped_by {
        Some(Stop::Memory) => spent(report).unwrap_or_else(|| {
            let limit = report.memory_limit.map(show_bytes).unwrap_or_default();
            format!("the memory limit of {limit} was reached")
        }),
        Some(Stop::Time) => "the time limit was reached".into(),
        _ => "you ended the run".into(),
    };
    let what = match report.stopped_while {
        Some("unfolding") => "unfolding the model",
        Some("properties") => "reading the properties",
        Some("measuring") => "looking for a progress measure",
        Some("preparing") if report.resumed.is_some() => "reading the checkpoint",
        Some("preparing") => "preparing the search",
        _ => "loading the model",
    };
    format!("{why} while {what}")
}

/// That the address space is what ran out, if it has a limit below that on memory.
fn spent(report: &Report) -> Option<String> {
    let space =
        AddressSpace::of_this_process().filter(|space| report.memory_limit.is_none_or(|most| space.limit < most))?;
    Some(format!("the address space, which `ulimit -v` limits to {}, was used up", show_bytes(space.limit)))
}

/// Why the run was stopped, and what to try.
fn ending(out: &mut String, report: &Report, memory_given: bool, look: &Look) {
    let Some(stop) = report.stopped_by else { return };
    let statistics = &report.statistics;
    let limit = report.memory_limit.map(show_bytes).unwrap_or_default();
    let (why, advice) = match stop {
        Stop::Answered => return,
        Stop::Memory if memory_given => (format!("the memory limit of {limit} was reached"), "a larger `--memory`"),
        Stop::Memory => (
            format!("the memory limit of {limit}, nine tenths of what was available, was reached"),
            "a machine with more memory",
        ),
        Stop::Time => ("the time limit was reached".into(), "a larger `--time`"),
        Stop::States => ("the limit on the number of states was reached".into(), "a larger `--max-states`"),
        Stop::Depth => ("there are states beyond the limit on the depth".into(), "a larger `--depth`"),
        Stop::Count => (
            "a number grew beyond what is counted (4294967295 tokens of a colour, 9223372036854775807 in a net \
             without colours), there are more values to pick from than are tried, or an expression takes more \
             than 50 million steps, nests its calls too deeply, or needs more memory than is left"
                .into(),
            if report.model.format == "pnml" { "`--unfold yes`, if the net is a coloured one" } else { "" },
        ),
        Stop::Cancelled => ("you asked for it".into(), ""),
        other => (format!("the run ended early ({})", other.word()), ""),
    };
    let (why, advice) = match (spent(report), report.stopped_while) {
        (Some(spent), None) if stop == Stop::Memory => (spent, "a larger `ulimit -v`"),
        (Some(_), Some(_)) if stop == Stop::Memory => (stopped(report), "a larger `ulimit -v`"),
        (_, Some(_)) => (stopped(report), advice),
        (_, None) => (why, advice),
    };
    let open = statistics.states.saturating_sub(statistics.expanded);
    let _ = writeln!(
        out,
        "{}",
        wrap(
            &format!(
                "{} early: {why}. {} {} found, {} of them not expanded yet.",
                look.paint(Colour::Yellow, "Stopped"),
                show_counted(statistics.states, "state"),
                if statistics.states == 1 { "was" } else { "were" },
                show_count(open)
            ),
            "",
            look.width
        )
    );
    if let Some(growth) = &report.growth {
        let _ = writeln!(out, "{}", wrap(&format!("Note: {}.", growth.sentence), "", look.width));
    }
    if report.growth.as_ref().is_some_and(|growth| growth.proved) {
        let depth =
            if stop == Stop::Depth { "a larger `--depth` looks further" } else { "`--depth N` searches a part" };
        let advice = format!(
            "No limit lets such a search come to its end: bound the net, or be content with a part of it ({depth})."
        );
        let _ = writeln!(out, "{}", wrap(&advice, "", look.width));
        return;
    }
    let mut try_next = vec![advice];
    if report.growth.is_some() {
        try_next.insert(0, "bounding the net");
    }
    // The graph of formulas is over one store, and in one order.
    let on_graph = report.route.as_ref().is_some_and(|route| route.kind == RouteKind::Graph);
    if stop == Stop::Memory && report.stopped_while.is_none() {
        try_next.push(if on_graph {
            "`check --route fly`, which visits only what a formula needs, over any `--store`"
        } else {
            "another `--store` (`deltamark stores` lists them)"
        });
    }
    // A checkpoint that was too large for the store it was to be read into.
    let named = &report.store;
    if stop == Stop::Memory
        && report.stopped_while == Some("preparing")
        && report.resumed.is_some()
        && !named.is_auto()
        && named.to_string() != "compact"
    {
        try_next.push("`--store compact`, which takes less");
    }
    let open_ended = matches!(stop, Stop::Memory | Stop::Time | Stop::States) && !on_graph;
    if open_ended
        && report.search.is_shortest()
        && report.overall() == deltamark::Overall::NoAnswer
        && !report.answers.is_empty()
    {
        try_next.push("`--search dfs`, which finds deep errors sooner");
    }
    try_next.retain(|advice| !advice.is_empty());
    if !try_next.is_empty() {
        let _ = writeln!(out, "{}", wrap(&format!("To get further, try {}.", try_next.join("; or ")), "", look.width));
    }
}

/// Which checkpoint the run went on from, and how to go on with it.
fn checkpoints(out: &mut String, report: &Report, look: &Look) {
    let states = |count| show_counted(count, "state");
    if let Some(resumed) = &report.resumed {
        let told = format!("Went on from `{}`, which holds {}.", resumed.from, states(resumed.states));
        let _ = writeln!(out, "{}", wrap(&told, "", look.width));
    }
    let Some(checkpoint) = report.checkpoint.as_ref() else { return };
    let ended = report.stopped_by.is_some_and(|stop| !matches!(stop, Stop::Answered | Stop::Count))
        || report.answers.iter().any(|answer| answer.untraced.is_some());
    if let Some(newest) = checkpoint.newest.filter(|_| ended) {
        let told = format!(
            "`deltamark resume {}` goes on from a checkpoint of {}, {} of them not expanded yet.",
            checkpoint.directory,
            states(newest.states),
            show_count(newest.states.saturating_sub(newest.expanded))
        );
        let _ = writeln!(out, "{}", wrap(&told, "", look.width));
    }
}

/// Statistics of a written graph.
pub fn written(path: &str, contents: &GraphContents) -> String {
    format!(
        "{} and {} written to `{path}`: {}, {:.2} bits an edge",
        show_counted(contents.states, "state"),
        show_counted(contents.edges, "edge"),
        show_bytes(contents.bytes),
        contents.bits_per_edge()
    )
}

/// The header of a graph file.
pub fn graph(graph: &Condensed) -> String {
    let (meta, contents) = (graph.graph.meta(), graph.contents());
    let mut out = String::new();
    let mut figure = |name: &str, value: String| _ = writeln!(out, "{name:<26}{value}");
    let options: String = meta.model.options.iter().map(|(name, value)| format!(" --{name} {value}")).collect();
    // The contents of a file are printed as text, whatever they are.
    let words = format!("{} ({}){options}", meta.model.path, meta.model.format);
    figure("model", crate::render::printable(&words));
    figure("states", show_count(meta.states));
    figure("edges", show_count(meta.edges));
    figure("states without edges", show_count(meta.ends));
    figure("bytes", show_count(contents.bytes));
    figure("bits an edge", format!("{:.2}", contents.bits_per_edge()));
    if meta.unfolding {
        figure("kind", "an unfolding of the real graph, bisimilar to it".into());
    }
    out
}

/// How formulas of temporal logic were answered.
pub fn route(route: &Route) -> String {
    let way = match route.kind {
        RouteKind::Fly => "on the fly, in the product of the model and an automaton",
        _ => "on the graph of all states",
    };
    format!("formulas were answered {way}: {}\n", route.why)
}

/// The components of a graph.
pub fn components(found: &ComponentsReport) -> String {
    let mut out = String::new();
    let mut figure = |name: &str, value: String| _ = writeln!(out, "{name:<26}{value}");
    figure("components", show_count(found.count));
    figure("  single states", format!("{} (without an edge to themselves)", show_count(found.trivial)));
    figure("  that no edge leaves", show_count(found.bottom));
    figure("  states of the largest", show_count(found.largest));
    let home = match (found.home_states, found.initial_is_home) {
        (None, _) => "not known: the graph is an unfolding, of which several components may be one".into(),
        (Some(0), _) => "none: no state can be reached from all others".into(),
        (Some(count), Some(true)) => format!("{}, the initial state among them", show_count(count)),
        (Some(count), _) => format!("{}, the initial state not among them", show_count(count)),
    };
    figure("home states", home);
    out
}

/// The statistics of a run.
fn summary(out: &mut String, report: &Report, look: &Look) {
    let statistics = &report.statistics;
    let extent = match (report.stopped_by, report.guarantee) {
        (None, Guarantee::Exact) => "all explored".into(),
        (None, Guarantee::Omission(probability)) => format!("{}; all others explored", missed(probability)),
        (Some(Stop::Answered), _) => "ended when every property had its answer".into(),
        (Some(_), _) => "not all explored".to_string(),
    };
    let extent = match statistics.again {
        Again::Counted(0) => extent,
        Again::Counted(again) => format!("{extent}, {} again that had been forgotten", show_counted(again, "state")),
        Again::Unknown => format!("{extent}; states that had been forgotten may be counted several times"),
    };
    let mut found = format!("{}, {}", show_counted(statistics.states, "state"), show_counted(statistics.edges, "edge"));
    if report.reduction.is_some() {
        found += " of the reduced system";
    }
    if report.is_of_products() {
        found += " of the product with an automaton";
    } else if report.reduction.as_ref().is_none_or(|reduction| reduction.keeps_deadlocks) {
        let _ = write!(found, ", {}", show_counted(statistics.deadlocks, "deadlock"));
    }
    // A sweep has no distances, and a reduced system not all of them.
    if report.sweep.is_none() && report.reduction.is_none() && !report.is_of_products() {
        let _ = write!(found, ", depth {}", show_count(statistics.depth));
    }
    let mut counts = format!("{found}; {extent}; {}", show_duration(report.total_time));
    let mut memory = format!("store {}: ", report.store);
    if statistics.states >= FEW {
        let _ = write!(counts, " ({} states/s)", show_count(report.states_per_second().round() as u64));
        let _ = write!(memory, "{:.1} bytes a state, ", report.bytes_per_state());
    }
    let _ = write!(
        memory,
        "{} in all; frontier at most {}",
        show_bytes(report.store_bytes.total()),
        show_bytes(statistics.frontier_peak_bytes),
    );
    if report.tables.total() > 0 {
        let _ = write!(memory, "; tables of the model {}", show_bytes(report.tables.total()));
    }
    if let Some(peak) = report.peak_resident {
        let _ = write!(memory, "; process at most {}", show_bytes(peak));
    }
    if let Some(reduction) = &report.reduction {
        let line = format!("reduced {} ({})", reduction.summary(), reduction.decided_by);
        let _ = writeln!(out, "{}", if look.terminal { wrap(&line, "", look.width) } else { line });
    }
    // Scripts take figures from these lines by their position, so they are wrapped for people only.
    for line in [counts, memory] {
        let line = if look.terminal { wrap(&line, "", look.width) } else { line };
        let _ = writeln!(out, "{line}");
    }
}

/// Why this store was chosen, if there was a choice.
fn choice(out: &mut String, report: &Report, look: &Look) {
    // A run that keeps checkpoints may have moved to another store.
    let moved = |choice: &StoreChoice| report.checkpoint.is_some() && choice.store.name != "plain";
    let told = report.choice.as_ref().filter(|choice| !choice.trials.is_empty() || moved(choice));
    let Some(choice) = told else { return };
    let _ = writeln!(out, "{}", wrap(&format!("{} was chosen: {}", choice.store, choice.why), "", look.width));
}

/// The trials before a store was chosen, as a table.
pub fn trials(choice: &StoreChoice) -> String {
    if choice.trials.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(["store", "bytes a state", "states a second", "time of plain", "room for states", "memory lasts"]);
    let speed = |trial: &Trial| trial.taken.as_ref().ok().map(|taken| taken.states_per_second);
    let yardstick = choice.trials.first().and_then(speed);
    for trial in &choice.trials {
        let cells = match &trial.taken {
            Err(reason) => [reason.clone(), String::new(), String::new(), String::new(), String::new()],
            Ok(taken) => [
                format!("{:.2}", taken.bytes_per_state),
                show_count(taken.states_per_second.round() as u64),
                yardstick.map_or(String::new(), |plain| format!("{:.2}", plain / taken.states_per_second)),
                taken.room.map_or("no limit".into(), |room| show_count(room as u64)),
                taken.lasts().map_or("no limit".into(), show_duration),
            ],
        };
        let chosen = if trial.store == choice.store { " *" } else { "" };
        table.add_row(std::iter::once(format!("{}{chosen}", trial.store)).chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    // The first row is the run that came before the trials.
    let states = choice.trials.iter().skip(1).filter_map(|trial| Some(trial.taken.as_ref().ok()?.states)).max();
    let states = show_counted(states.unwrap_or(0), "state");
    format!("\nTried on the first {states}, plain on all it found; frontiers come on top; * was chosen.\n{table}\n")
}

/// The maximum number of characters shown of a measure.
const MEASURE: usize = 160;

fn shown_measure(measure: &str, all: bool) -> String {
    match measure.char_indices().nth(MEASURE) {
        Some((end, _)) if !all => format!("{}…", &measure[..end]),
        _ => measure.into(),
    }
}

/// A measure's figures before a run.
pub fn measure(report: &SweepReport, all: bool, look: &Look) -> String {
    let mut out = String::new();
    let mut figure = |name: &str, value: String| _ = writeln!(out, "{name:<26}{value}");
    figure("progress measure", shown_measure(&report.measure, all));
    figure("  found", if report.automatic { "automatically".into() } else { "given".to_string() });
    if let Some(directions) = report.directions {
        let of = |count: usize| format!("{} of {}", show_count(count as u64), show_count(directions.total() as u64));
        figure("transitions that advance", of(directions.advance));
        figure("transitions that stay", of(directions.stay));
        figure("transitions that regress", of(directions.regress));
    }
    let Some(trial) = report.trial else { return out };
    figure(if trial.complete { "states, all of them" } else { "states of the sample" }, show_count(trial.states));
    figure("  held at once, at most", format!("{} ({:.1} %)", show_count(trial.peak), 100.0 * trial.share()));
    figure("  edges that regress", format!("{} of {}", show_count(trial.regress_edges), show_count(trial.edges)));
    figure("  sweeps", show_count(trial.sweeps));
    let advice = if trial.is_useful() {
        "`--search sweep` explores with it, `--progress EXPR` with another.".to_string()
    } else {
        "This measure is of little use: a sweep would hold nearly all states at once. A better one can be given with \
         `--progress EXPR`, or the model has nothing that progresses."
            .to_string()
    };
    let _ = writeln!(out, "\n{}", wrap(&advice, "", look.width));
    out
}

/// The statistics of a sweep.
fn sweep(out: &mut String, report: &Report, look: &Look) {
    let Some(sweep) = &report.sweep else { return };
    let Some(swept) = &sweep.swept else { return };
    let states = report.statistics.states;
    let mut text = format!(
        "sweep by `{}`: {}, at most {} states held at once ({:.1} % of {}), {}; {} behind the line, {} kept for good",
        shown_measure(&sweep.measure, false),
        show_counted(swept.sweeps, "sweep"),
        show_count(swept.peak_states),
        100.0 * swept.peak_states as f64 / states.max(1) as f64,
        show_count(states),
        show_bytes(swept.peak_bytes),
        show_counted(swept.regress_edges, "edge"),
        show_counted(swept.persistent, "state"),
    );
    if swept.unfolding {
        text.push_str(
            ". States that were met again after they had been forgotten are counted again: these are the counts of an \
             unfolding, and there may be fewer states, edges and deadlocks",
        );
    }
    let _ = writeln!(out, "{}", wrap(&text, "", look.width));
}

/// A report of `stats`.
pub fn stats(report: &Report, survey: &Survey, all: bool, memory_given: bool, look: &Look) -> String {
    let mut out = String::new();
    let statistics = &report.statistics;
    let so_far = if report.stopped_by.is_some() { " (so far)" } else { "" };
    let mut figure = |name: &str, value: String| _ = writeln!(out, "{name:<26}{value}");
    figure("states", show_count(statistics.states) + so_far);
    figure("edges", show_count(statistics.edges) + so_far);
    figure("deadlocks", show_count(statistics.deadlocks) + so_far);
    if report.sweep.is_none() {
        figure(
            if report.search.is_shortest() { "depth" } else { "longest path searched" },
            show_count(statistics.depth) + so_far,
        );
    }
    if let (Some(place), Some(marking)) = (survey.max_tokens_in_place, survey.max_tokens_in_marking) {
        figure("most tokens in a place", place.to_string() + so_far);
        figure("most tokens in a marking", marking.to_string() + so_far);
    }
    if statistics.states >= FEW {
        let each = |bytes: u64| format!("{:.2}", bytes as f64 / statistics.states as f64);
        figure("bytes a state", format!("{:.2} in store {}", report.bytes_per_state(), report.store));
        for (part, bytes) in report.store_bytes.parts() {
            figure(&format!("  {part}"), each(*bytes));
        }
        if report.tables.total() > 0 {
            figure("tables of the model", format!("{} bytes a state", each(report.tables.total())));
            for (part, bytes) in report.tables.parts() {
                figure(&format!("  {part}"), each(*bytes));
            }
        }
    }
    if let Some(dead) = &survey.dead_transitions {
        figure("transitions never fired", show_count(dead.len() as u64) + so_far);
        let shown = if all { dead.len() } else { ROWS };
        let mut names: Vec<String> = dead.iter().take(shown).cloned().collect();
        if dead.len() > shown {
            names.push(format!("and {} more (`--all` shows them)", dead.len() - shown));
        }
        if !names.is_empty() {
            row(&mut out, "  ", &names, look);
        }
    }
    bounds(&mut out, survey, all);
    token_bounds(&mut out, survey, multiset::Notation::of(report.model.format), all);
    out.push('\n');
    ending(&mut out, report, memory_given, look);
    summary(&mut out, report, look);
    choice(&mut out, report, look);
    sweep(&mut out, report, look);
    out
}

/// The largest count of each token in each place, as multisets.
fn token_bounds(out: &mut String, survey: &Survey, notation: multiset::Notation, all: bool) {
    let multiset::Notation { times, plus } = notation;
    if survey.token_bounds.is_empty() {
        return;
    }
    let shown = if all { survey.token_bounds.len() } else { survey.token_bounds.len().min(ROWS) };
    let lengths = survey.token_bounds[..shown].iter().map(|(name, _)| name.chars().count());
    let width = lengths.max().unwrap_or(0).clamp("place".len(), 60);
    let _ = writeln!(out, "\n{:width$}  most of each token", "place");
    for (name, tokens) in &survey.token_bounds[..shown] {
        let few = if all { tokens.len() } else { tokens.len().min(ROWS) };
        let mut row: Vec<String> = tokens[..few].iter().map(|(token, most)| format!("{most}{times}{token}")).collect();
        if few < tokens.len() {
            row.push(format!("{} more (`--all` shows them)", tokens.len() - few));
        }
        let _ = writeln!(out, "{name:width$}  {}", if row.is_empty() { "none".into() } else { row.join(plus) });
    }
    if shown < survey.token_bounds.len() {
        let _ = writeln!(out, "and {} more (`--all` shows them)", survey.token_bounds.len() - shown);
    }
}

fn bounds(out: &mut String, survey: &Survey, all: bool) {
    if survey.bounds.is_empty() {
        return;
    }
    let shown = if all { survey.bounds.len() } else { survey.bounds.len().min(ROWS) };
    let head = if survey.max_tokens_in_place.is_some() { "place" } else { "variable" };
    let lengths = survey.bounds[..shown].iter().map(|(name, _)| name.chars().count());
    let width = lengths.max().unwrap_or(0).clamp(head.len(), 60);
    let _ = writeln!(out, "\n{head:width$}  {:>10}  {:>10}", "least", "most");
    for (name, bound) in &survey.bounds[..shown] {
        let _ = writeln!(out, "{name:width$}  {:>10}  {:>10}", bound.least, bound.most);
    }
    if shown < survey.bounds.len() {
        let _ = writeln!(out, "and {} more (`--all` shows them)", survey.bounds.len() - shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark::load::{Format, LoadOptions, parse};
    use deltamark::system::{Action, Trace};

    #[test]
    fn a_lasso_says_where_its_cycle_begins() {
        let text = b"pl a (1)\ntr begin a -> b\ntr there b -> c\ntr back c -> b\n";
        let format = Format::by_name("tina").expect("a format");
        let net = parse("net", format, text, &LoadOptions::default()).unwrap_or_else(|wrong| panic!("{wrong}"));
        // The path is there to be shown; what it is to show does not matter here.
        let shown = |actions: &[u32], start: Option<usize>| {
            let actions = actions.iter().copied().map(Action).collect();
            let trace = start.map_or(Trace::path(0, Vec::clone(&actions)), |start| Trace::lasso(0, actions, start));
            let story = Some(Story::tell(net.system.as_ref(), &trace).expect("it replays"));
            let (name, text) = ("p".to_string(), "p".to_string());
            let verdict = Verdict::Violated(Some(trace), None);
            let answer =
                Answer { kind: PropertyKind::Invariant, name, text, verdict, story, untraced: None, probed: false };
            let mut out = String::new();
            super::trace(&mut out, &answer, "p", true, &Look::plain());
            out
        };
        let lasso = "
p: violated by a path of 1 step into a cycle of 2 steps
  start  a: 1
      1  begin  a: 1 → 0, b: 0 → 1
         the cycle begins here: steps 2 to 3 repeat for ever
      2  there  b: 1 → 0, c: 0 → 1
      3  back   b: 0 → 1, c: 1 → 0
    end  b: 1
";
        assert_eq!(shown(&[0, 1, 2], Some(1)), lasso);
        assert!(!shown(&[0, 1, 2], None).contains("cycle"));
        // A cycle whose first step is among those not shown is reported all the same.
        let long: Vec<u32> = std::iter::once(0).chain([1, 2].into_iter().cycle().take(2 * STEPS)).collect();
        let told = shown(&long, Some(STEPS + 1));
        let expected = format!("the cycle begins here: steps {} to {} repeat for ever", STEPS + 2, 2 * STEPS + 1);
        assert!(told.contains(&expected), "{told}");
    }
}
