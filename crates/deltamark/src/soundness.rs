//! Soundness of workflow nets.
//!
//! From W. van der Aalst, *The Application of Petri Nets to Workflow Management*, 1998; the notions are distinguished in Van der Aalst
//! et al., *Soundness of workflow nets: classification, decidability, and analysis*, 2011. In: a P/T net that is a workflow net
//! (`deltamark_nets::workflow`). Out: a report with three answers:
//!
//! - *option to complete*: from every reachable marking a final marking can be reached;
//! - *proper completion*: whenever the sink is marked, the marking is final;
//! - *no dead transitions*: every transition fires in some reachable marking.
//!
//! A run records the edges between numbered markings, and marks a final one by an edge to itself under an action that the net does not
//! have. The option to complete is then a matter of numbers: going backwards from the final markings reaches all others, or
//! a shortest path leads to one that is not reached. What stays true: "holds" rests on a complete run over an exact store; what a
//! run that ended early has shown already (improper completion, a deadlock that is not final, a transition that fires) is reported.

use crate::check::{Check, CheckError, compiled};
use crate::condensed::EdgeLog;
use crate::control::control;
use crate::ends::{Ends, FinalStates};
use crate::plan::{Plan, Setting};
use crate::report::{PropertyKind, Report};
use crate::run::store::OverStore;
use crate::run::{Ran, Run, Watcher, growth};
use deltamark_core::property::Undefined;
use deltamark_core::{
    Action, BLOCK, Batch, Block, Control, Goal, Insert, Observable, Observe, Outcome, Predicate, Property,
    PropertyOutcome, Scratch, Stop, Store, System, Trace, Verdict,
};
use deltamark_graph::block::{STATES, Unpacked};
use deltamark_graph::{BitSet, FileError, Graph, Reverse, levels};
use deltamark_nets::workflow::Workflow;
use deltamark_nets::{Net, NetSystem};
use deltamark_search::Observer;
use deltamark_store::StoreSpec;
use std::sync::Arc;

/// The most names that a message lists.
const NAMES: usize = 100;

/// One token in a place and none elsewhere.
struct OnlyIn {
    place: Observable,
    others: Vec<Observable>,
}

impl Predicate for OnlyIn {
    fn evaluate(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, _: u64) -> Result<u64, Undefined> {
        let Some(observe) = system.observe() else { return Ok(0) };
        let mut values = [0; BLOCK];
        let mut with = |observable: Observable, count: i64| {
            observe.read_block(scratch, block, observable, &mut values);
            let lanes = values[..block.len()].iter().enumerate();
            lanes.fold(0u64, |mask, (lane, &value)| mask | u64::from(value == count) << lane)
        };
        let mut mask = with(self.place, 1);
        for &other in &self.others {
            if mask == 0 {
                break;
            }
            mask &= with(other, 0);
        }
        Ok(mask)
    }
}

/// Where the sink is empty, or the marking is final.
struct ProperlyCompleted {
    sink: Observable,
    finals: Ends,
}

impl Predicate for ProperlyCompleted {
    fn evaluate(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, dead: u64) -> Result<u64, Undefined> {
        let Some(observe) = system.observe() else { return Ok(block.mask()) };
        let mut values = [0; BLOCK];
        observe.read_block(scratch, block, self.sink, &mut values);
        let lanes = values[..block.len()].iter().enumerate();
        let marked = lanes.fold(0u64, |mask, (lane, &value)| mask | u64::from(value > 0) << lane);
        let finals = if marked == 0 { 0 } else { self.finals.true_in(system, scratch, block, dead, marked)? };
        Ok(block.mask() & !(marked & !finals))
    }
}

/// Records the edges of a run, and which markings are final and which transitions fire.
struct Marker {
    log: EdgeLog,
    finals: Ends,
    /// The action of the edge that a final marking has to itself.
    mark: Action,
    fired: Vec<bool>,
    undefined: Option<String>,
}

impl Observer for Marker {
    fn expanded(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
    ) {
        let dead = block.mask() & !batch.moved();
        let finals = match self.finals.true_in(system, scratch, block, dead, block.mask()) {
            Ok(finals) => finals,
            Err(undefined) => {
                self.undefined.get_or_insert(undefined.message);
                0
            }
        };
        batch.actions().iter().for_each(|action| self.fired[action.0 as usize] = true);
        self.log.expanded_with(block, batch, answers, |lane, edges, number| {
            if finals >> lane & 1 == 1 {
                edges.push(deltamark_core::Edge { action: self.mark, target: number });
            }
        });
    }
}

impl Watcher for Marker {
    fn begin(
        &mut self,
        system: &dyn System,
        spec: &StoreSpec,
        store: &dyn Store,
        control: &Control,
    ) -> Result<(), CheckError> {
        self.log.begin(system, spec, store, control).map_err(|_| {
            misfit(
                format!("soundness needs an exact store that tells which state is which; `{}` does not", spec.name),
                "`plain`, `collapse` and `tree` do",
            )
        })
    }

    fn end(&mut self, system: &dyn System, store: &dyn Store, outcome: &Outcome) {
        self.log.end(system, store, outcome);
    }
}

fn misfit(message: impl Into<String>, help: impl Into<String>) -> CheckError {
    CheckError::Misfit { message: message.into(), help: help.into() }
}

/// The question whose refutation is a list of names and no path.
const DEAD: &str = "no dead transitions";

/// What a run has shown of the option to complete.
enum Completion {
    Possible,
    /// A path to a marking from which no final one can be reached.
    Lost(Option<Trace>),
    /// There was no room or no time to find out.
    Stopped(Stop),
}

impl Check<'_> {
    /// Asks the three questions of soundness instead of properties. Expressions given as [final states](Self::ends_in) take the place of the
    /// marking with one token in the sink and none elsewhere.
    pub fn soundness(mut self) -> Result<Report, CheckError> {
        self.refuse_with_soundness()?;
        let Some(system) = self.system.as_any().and_then(|system| system.downcast_ref::<NetSystem>()) else {
            return Err(misfit("soundness is asked of P/T nets, and this model is none", "leave out `--soundness`"));
        };
        let net = system.net();
        let ends = Workflow::of(net).map_err(|wrong| {
            misfit(format!("this is no workflow net: {}", wrong.join("; ")), "soundness is defined for workflow nets")
        })?;
        let mut notes = self.info.remarks.clone();
        let restarted = restarted(net, ends, &mut notes)?;
        let system: &NetSystem = restarted.as_ref().unwrap_or(system);
        let by_the_book = self.finals.is_empty() && self.info.final_markings.is_empty();
        let finals = self.final_markings(system, ends, &mut notes)?;
        let (control, memory_limit) = control(self.limits, self.cancel, Arc::clone(&self.listener), self.since)?;
        let run = Soundness {
            net: system.net(),
            ends,
            sink: place(system, ends.sink)?,
            by_the_book,
            finals,
            search: OverStore {
                threads: self.threads,
                explore_all: true,
                numbered: Some("the graph of the markings takes the numbers that it gives"),
                ..OverStore::new(self.store, self.search)
            },
        };
        let setting = Setting { model: self.info, control, memory_limit, since: self.since, notes };
        Plan::single(system, vec![PropertyKind::Soundness; 3], run).make(setting)
    }

    fn refuse_with_soundness(&self) -> Result<(), CheckError> {
        let mixed = [
            (self.property_count() > 0, "other properties", "ask them in a run of their own"),
            (self.sweeps, "the search `sweep`", "leave out `--search`, or choose `dfs`"),
            (self.explain, "`--explain`", "soundness takes `plain`, unless another store is named"),
            (self.graph.is_some(), "`--graph`", "write the graph in a run of its own"),
            (self.checkpoints.is_some(), "`--checkpoint`", "leave it out"),
            (self.walked.is_some(), "a graph that was written before", "ask it of the model"),
        ];
        match mixed.into_iter().find(|(given, ..)| *given) {
            Some((_, what, help)) => Err(misfit(format!("soundness cannot be asked together with {what}"), help)),
            None => Ok(()),
        }
    }

    /// The expressions that were given, or those of the file, or one token in the sink.
    fn final_markings(
        &mut self,
        system: &NetSystem,
        ends: Workflow,
        notes: &mut Vec<String>,
    ) -> Result<Ends, CheckError> {
        let mut finals = std::mem::take(&mut self.finals);
        let given = !finals.is_empty();
        if !given {
            for text in &self.info.final_markings {
                finals.push(FinalStates {
                    text: text.clone(),
                    predicate: Box::new(compiled("the final marking of the file", text, system)?),
                });
            }
        }
        let by_file = !given && !finals.is_empty();
        if finals.is_empty() {
            let mut others = Vec::new();
            for number in (0..system.net().places.len()).filter(|&number| number != ends.sink) {
                others.push(place(system, number)?);
            }
            let text = format!("one token is in `{}` and none elsewhere", system.net().places[ends.sink].name);
            finals.push(FinalStates { text, predicate: Box::new(OnlyIn { place: place(system, ends.sink)?, others }) });
        }
        let finals = Ends(finals.into());
        let whence = if by_file { ", as the file says" } else { "" };
        notes.push(format!("a marking is final where {}{whence}", finals.text()));
        Ok(finals)
    }
}

/// A run that answers the three questions.
struct Soundness<'r> {
    net: &'r Net,
    ends: Workflow,
    /// The sink, as what expressions read.
    sink: Observable,
    /// Whether a marking is final where one token is in the sink and none elsewhere.
    by_the_book: bool,
    finals: Ends,
    search: OverStore<'r>,
}

impl Run for Soundness<'_> {
    fn make(self: Box<Self>, system: &dyn System, control: &Control) -> Result<Ran, CheckError> {
        let Soundness { net, ends, sink, by_the_book, finals, search } = *self;
        let asked = |name: &str, predicate: Box<dyn Predicate>| Property {
            name: name.into(),
            text: name.into(),
            goal: Goal::Invariant(predicate),
        };
        let properties = vec![
            asked("proper completion", Box::new(ProperlyCompleted { sink, finals: finals.clone() })),
            // Refutes the option to complete before the run is complete.
            asked("no deadlock elsewhere", Box::new(finals.clone())),
        ];
        let mut marker = Marker {
            log: EdgeLog::in_memory(control),
            finals,
            mark: Action(net.transitions.len() as u32),
            fired: vec![false; net.transitions.len()],
            undefined: None,
        };
        let search = OverStore { properties: properties.into(), watchers: vec![&mut marker], ..search };
        let mut ran = Box::new(search).make(system, control)?;
        let Marker { log, fired, undefined, mark, .. } = marker;
        if let Some(why) = undefined {
            return Err(misfit(
                format!("the expression of `--final` has no value in some marking: {why}"),
                "change it",
            ));
        }
        let mut stopped_by = ran.outcome.stopped_by;
        if log.failed() {
            stopped_by = Some(Stop::Memory);
        }
        let mut found = std::mem::take(&mut ran.outcome.properties);
        let (stuck, proper) = (found.pop(), found.pop());
        let verdict = |found: Option<PropertyOutcome>| found.map_or(Verdict::Unknown, |one| one.verdict);
        let proper = verdict(proper);
        let completion = if log.is_complete() && stopped_by.is_none() {
            Some(match log.into_graph(system) {
                Ok(graph) => match option_to_complete(&graph, mark, control) {
                    Err(FileError::Stopped(stop)) => Completion::Stopped(stop),
                    completion => completion.map_err(|error| CheckError::Graph(error.to_string()))?,
                },
                Err(_) => Completion::Stopped(control.stop_without_memory().unwrap_or(Stop::Memory)),
            })
        } else {
            None
        };
        let lost = || Some("from the last marking of this path no final marking can be reached".to_string());
        let option = match completion {
            Some(Completion::Possible) => Verdict::Holds(None),
            Some(Completion::Lost(trace)) => Verdict::Violated(trace, lost()),
            Some(Completion::Stopped(stop)) => {
                stopped_by = Some(stop);
                Verdict::Unknown
            }
            // Every transition of a workflow net adds a token or leaves one, and none takes from the sink: what is beside a
            // token there never vanishes.
            None => match (verdict(stuck), &proper) {
                (Verdict::Violated(trace, _), _) => Verdict::Violated(trace, lost()),
                (_, Verdict::Violated(trace, _)) if by_the_book => Verdict::Violated(trace.clone(), lost()),
                _ => Verdict::Unknown,
            },
        };
        let proper = match proper {
            Verdict::Violated(trace, message) => {
                let name = &net.places[ends.sink].name;
                let message = message.unwrap_or_else(|| format!("`{name}` is marked, and the marking is not final"));
                Verdict::Violated(trace, Some(message))
            }
            // A search that went to its end before room for the graph ran out has answered all the same.
            other => other,
        };
        let never: Vec<&str> = net
            .transitions
            .iter()
            .zip(&fired)
            .filter(|(_, fired)| !**fired)
            .map(|(one, _)| one.name.as_str())
            .collect();
        let alive = match (never.is_empty(), stopped_by) {
            (true, _) => Verdict::Holds(None),
            (false, None) => Verdict::Violated(None, Some(never_fire(&never))),
            (false, Some(_)) => Verdict::Unknown,
        };
        let questions = [
            ("option to complete", "from every reachable marking a final marking can be reached", option),
            ("proper completion", "whenever the sink is marked, the marking is final", proper),
            (DEAD, "every transition fires in some reachable marking", alive),
        ];
        let answer = |(name, text, verdict): (&str, &str, Verdict)| {
            let untraced = stopped_by.filter(|_| matches!(verdict, Verdict::Violated(None, _)) && name != DEAD);
            PropertyOutcome { name: name.into(), text: text.into(), verdict, untraced, probed: false }
        };
        ran.outcome.properties = questions.into_iter().map(answer).collect();
        ran.outcome.stopped_by = stopped_by;
        ran.growth = growth(system, stopped_by);
        Ok(ran)
    }
}

/// The net with one token in its source, if the file has none at all.
fn restarted(net: &Net, ends: Workflow, notes: &mut Vec<String>) -> Result<Option<NetSystem>, CheckError> {
    let source = &net.places[ends.source].name;
    let marked: Vec<String> = net
        .places
        .iter()
        .filter(|place| place.initial > 0)
        .map(|place| format!("`{}`: {}", place.name, place.initial))
        .collect();
    if marked.is_empty() {
        notes.push(format!("the file has no initial marking: one token in `{source}` is assumed"));
        let mut net = net.clone();
        net.places[ends.source].initial = 1;
        return Ok(Some(NetSystem::new(net)));
    }
    if marked.len() == 1 && net.places[ends.source].initial == 1 {
        return Ok(None);
    }
    let shown = marked.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    let more = if marked.len() > 8 { format!(" and {} more", marked.len() - 8) } else { String::new() };
    Err(misfit(
        format!(
            "a workflow net begins with one token in `{source}` and none elsewhere, and the file has {shown}{more}"
        ),
        format!("mark `{source}` alone; without any marking in the file that is assumed"),
    ))
}

fn place(system: &NetSystem, number: usize) -> Result<Observable, CheckError> {
    let name = &system.net().places[number].name;
    system.resolve(name).ok_or_else(|| misfit(format!("the place `{name}` cannot be observed"), "rename it"))
}

fn never_fire(names: &[&str]) -> String {
    let mut list: Vec<String> = names.iter().take(NAMES).map(|name| format!("`{name}`")).collect();
    if names.len() > NAMES {
        list.push(format!("and {} more (`deltamark stats --all` lists them)", names.len() - NAMES));
    }
    let verb = if names.len() == 1 { "fires" } else { "fire" };
    format!("never {verb}: {}", list.join(", "))
}

/// An error if the run must end.
fn go_on(control: &Control) -> Result<(), Stop> {
    control.stop_without_memory().map_or(Ok(()), Err)
}

/// Goes backwards from the final markings.
fn option_to_complete(graph: &Graph, mark: Action, control: &Control) -> Result<Completion, FileError> {
    let set = || BitSet::new(graph.states(), &control.budget).ok_or(FileError::Stopped(Stop::Memory));
    let mut reaching = set()?;
    let mut unpacked = Unpacked::default();
    for block in 0..graph.blocks() {
        go_on(control)?;
        graph.unpack(block, &mut unpacked)?;
        for (source, _) in unpacked.edges().iter().filter(|(_, edge)| edge.action == mark) {
            reaching.insert(block * STATES as u64 + u64::from(*source));
        }
    }
    Reverse::new(graph, control)?.close(&mut reaching, control)?;
    let mut lost = set()?;
    let mut any = false;
    // A block of a graph is a word of a set.
    for block in 0..graph.blocks() {
        go_on(control)?;
        let count = (graph.states() - block * STATES as u64).min(STATES as u64);
        let rest = u64::MAX >> (STATES as u64 - count) & !reaching.word(block);
        lost.insert_word(block, rest);
        any |= rest != 0;
    }
    if !any {
        return Ok(Completion::Possible);
    }
    // The answer is valid without a path, if there is neither memory nor time to find one.
    let path = match levels::path_to(graph, &lost, control) {
        Err(FileError::Stopped(_)) => None,
        path => path?,
    };
    let trace = |path: levels::Path| Trace::path(path.initial, path.actions);
    Ok(Completion::Lost(path.map(trace)))
}
