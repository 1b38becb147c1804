//! The suite for searches: it accepts a correct naive search, and rejects it once its outcomes are tampered
//! with.

use deltamark_core::Order;
use deltamark_core::{
    Action, Arrival, Batch, Block, Event, Goal, Guarantee, Insert, Outcome, PropertyOutcome, Slot, StateId, Statistics,
    Stop, Trace, Verdict,
};
use deltamark_search::Task;
use deltamark_testkit::check_search;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// A state found: itself, its store's id, its distance, and how it was reached.
struct Found {
    state: Vec<Slot>,
    id: StateId,
    distance: u64,
    parent: Option<usize>,
    action: Action,
}

/// A breadth-first search that keeps every state and its parent in a list.
struct Dull<'a> {
    task: Task<'a>,
    found: Vec<Found>,
    verdicts: Vec<Option<Verdict>>,
    statistics: Statistics,
}

fn search(task: Task<'_>) -> Outcome {
    let verdicts = task.properties.iter().map(|_| None).collect();
    let mut dull = Dull { task, found: Vec::new(), verdicts, statistics: Statistics::default() };
    let stopped_by = dull.explore().err();
    dull.outcome(stopped_by)
}

impl Dull<'_> {
    fn explore(&mut self) -> Result<(), Stop> {
        let (system, started) = (self.task.system, Instant::now());
        let control = self.task.control;
        let mut batch = Batch::new(system.width());
        while system.initial(&mut system.scratch(), &mut batch).is_err() {
            self.widen()?;
            batch.reset(system.width());
        }
        let nowhere = Block::new(system.width());
        self.insert(None, &nowhere, &batch)?;
        let mut next = 0;
        let mut beyond = false;
        while next < self.found.len() {
            let answered = !self.verdicts.is_empty() && self.verdicts.iter().all(Option::is_some);
            if answered && !self.task.explore_all {
                return Err(Stop::Answered);
            }
            if control.cancel.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            if control.limits.time.is_some_and(|limit| started.elapsed() >= limit) {
                return Err(Stop::Time);
            }
            let mut block = Block::new(system.width());
            block.push(self.found[next].id, &self.found[next].state);
            let mut batch = Batch::new(system.width());
            if system.expand(&mut system.scratch(), &block, &mut batch).is_err() {
                self.widen()?;
                continue;
            }
            self.answer(next, &block, &batch);
            self.statistics.depth = self.found[next].distance;
            if control.limits.depth.is_some_and(|limit| self.found[next].distance >= limit) {
                let mut scratch = self.task.store.scratch();
                let known =
                    |index| self.task.store.find(&mut scratch, batch.target(index), batch.hash(index)).is_some();
                beyond |= !(0..batch.len()).all(known);
            } else {
                self.insert(Some(next), &block, &batch)?;
            }
            self.statistics.expanded += 1;
            self.statistics.edges += batch.len() as u64;
            self.statistics.deadlocks += u64::from(batch.moved() == 0);
            next += 1;
        }
        if beyond { Err(Stop::Depth) } else { Ok(()) }
    }

    fn insert(&mut self, parent: Option<usize>, block: &Block, batch: &Batch) -> Result<(), Stop> {
        let store = self.task.store;
        let mut scratch = store.scratch();
        let mut answers = Vec::new();
        for index in 0..batch.len() {
            let (state, hash) = (batch.target(index), batch.hash(index));
            let full = self.task.control.limits.states.is_some_and(|limit| store.len() >= limit);
            if full && store.find(&mut scratch, state, hash).is_none() {
                return Err(Stop::States);
            }
            let source = parent.map(|_| (block.id(0), block.state(0)));
            let answer =
                store.insert(&mut scratch, state, hash, &Arrival { parent: source, action: batch.action(index) });
            answers.push(answer);
            match answer {
                Insert::New(id) => {
                    let distance = parent.map_or(0, |parent| self.found[parent].distance + 1);
                    self.found.push(Found { state: state.to_vec(), id, distance, parent, action: batch.action(index) });
                }
                Insert::Seen(_) => {}
                Insert::Full => return Err(Stop::Memory),
            }
        }
        if let (Some(observer), Some(_)) = (&mut self.task.observer, parent) {
            observer.expanded(self.task.system, &mut self.task.system.scratch(), block, batch, &answers);
        }
        Ok(())
    }

    fn widen(&mut self) -> Result<(), Stop> {
        let recoding = self.task.system.widen();
        self.statistics.widenings += 1;
        self.task.control.listener.event(&Event::Widened(&recoding.reason));
        if !self.task.store.recode(&recoding) {
            return Err(Stop::Memory);
        }
        for found in &mut self.found {
            let mut state = Vec::new();
            recoding.translate(&found.state, &mut state);
            found.state = state;
        }
        Ok(())
    }

    fn answer(&mut self, number: usize, block: &Block, batch: &Batch) {
        let system = self.task.system;
        let dead = u64::from(batch.moved() == 0);
        for (index, property) in self.task.properties.iter().enumerate() {
            if self.verdicts[index].is_some() {
                continue;
            }
            let mut trace = self.trace(number);
            let mut message = None;
            let hit = match &property.goal {
                Goal::DeadlockFree => dead == 1,
                Goal::FaultFree => {
                    if let Some(fault) = batch.faults().first() {
                        message = Some(fault.message.clone());
                        if let Some(action) = fault.action {
                            trace = trace.with_fault(action);
                        }
                    }
                    message.is_some()
                }
                Goal::Invariant(predicate) | Goal::Reachable(predicate) => {
                    match predicate.evaluate(system, &mut system.scratch(), block, dead) {
                        Ok(word) => (word == 1) == matches!(property.goal, Goal::Reachable(_)),
                        Err(undefined) => {
                            message = Some(undefined.message);
                            true
                        }
                    }
                }
                goal => panic!("this search does not know the goal `{}`", goal.word()),
            };
            if hit {
                let holds = matches!(property.goal, Goal::Reachable(_)) && message.is_none();
                let verdict = if holds { Verdict::Holds(Some(trace)) } else { Verdict::Violated(Some(trace), message) };
                self.task.control.listener.event(&Event::Answered(&property.name, verdict.word()));
                self.verdicts[index] = Some(verdict);
            }
        }
    }

    fn trace(&self, mut number: usize) -> Trace {
        let mut actions = Vec::new();
        while let Some(parent) = self.found[number].parent {
            actions.insert(0, self.found[number].action);
            number = parent;
        }
        Trace::path(self.found[number].action.0, actions)
    }

    fn outcome(mut self, stopped_by: Option<Stop>) -> Outcome {
        self.statistics.states = self.found.len() as u64;
        let guarantee = self.task.store.guarantee();
        let properties = self.task.properties.iter().zip(self.verdicts).map(|(property, verdict)| PropertyOutcome {
            name: property.name.clone(),
            text: property.text.clone(),
            untraced: None,
            probed: false,
            verdict: verdict.unwrap_or(match (stopped_by, guarantee, &property.goal) {
                (Some(_), _, _) | (None, Guarantee::Omission(_), Goal::Reachable(_)) => Verdict::Unknown,
                (None, Guarantee::Omission(chance), _) => Verdict::NoViolationFound(chance),
                (None, Guarantee::Exact, Goal::Reachable(_)) => Verdict::Violated(None, None),
                (None, Guarantee::Exact, _) => Verdict::Holds(None),
            }),
        });
        Outcome {
            properties: properties.collect(),
            stopped_by,
            statistics: self.statistics,
            store_bytes: self.task.store.bytes(),
            guarantee,
            warning: self.task.store.warning(),
        }
    }
}

#[test]
fn a_dull_search_passes() {
    check_search(Order::Levels, search);
}

#[test]
fn less_is_asked_of_a_search_that_promises_less() {
    check_search(Order::Any, search);
}

/// Makes an outcome wrong.
type Tamper = dyn Fn(&mut Outcome);

/// The suite's complaint about a search whose outcomes are tampered with.
fn complaint(tamper: &Tamper) -> Option<String> {
    let tampered = |task: Task<'_>| {
        let mut outcome = search(task);
        tamper(&mut outcome);
        outcome
    };
    let panic = catch_unwind(AssertUnwindSafe(|| check_search(Order::Levels, tampered))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default())
}

/// Replaces verdicts.
fn verdicts(outcome: &mut Outcome, replace: impl Fn(&Verdict) -> Option<Verdict>) {
    for property in &mut outcome.properties {
        if let Some(verdict) = replace(&property.verdict) {
            property.verdict = verdict;
        }
    }
}

/// Changes traces.
fn change_traces(outcome: &mut Outcome, change: impl Fn(&mut Trace)) {
    for property in &mut outcome.properties {
        if let Verdict::Holds(Some(trace)) | Verdict::Violated(Some(trace), _) = &mut property.verdict {
            change(trace);
        }
    }
}

#[test]
fn every_lie_is_found_and_named() {
    let cases: [(&str, &Tamper); 15] = [
        ("it finds all states", &|outcome| outcome.statistics.states -= u64::from(outcome.statistics.states > 9)),
        ("it counts all edges", &|outcome| outcome.statistics.edges += 1),
        ("it counts all deadlocks", &|outcome| outcome.statistics.deadlocks += 1),
        ("depth is the distance", &|outcome| outcome.statistics.depth += 1),
        ("it counts widenings", &|outcome| outcome.statistics.widenings = 0),
        ("without limits the run is complete", &|outcome| outcome.stopped_by = Some(Stop::Answered)),
        ("is complete", &|outcome| outcome.stopped_by = outcome.stopped_by.or(Some(Stop::Time))),
        ("a complete run knows the answer", &|outcome| {
            if outcome.stopped_by == Some(Stop::States) {
                outcome.stopped_by = None;
            }
        }),
        ("cannot say", &|outcome| {
            if outcome.stopped_by.is_some() {
                verdicts(outcome, |verdict| matches!(verdict, Verdict::Unknown).then_some(Verdict::Holds(None)));
            }
        }),
        ("holds is certain", &|outcome| {
            verdicts(outcome, |verdict| {
                matches!(verdict, Verdict::NoViolationFound(_)).then_some(Verdict::Holds(None))
            });
        }),
        ("there is something to find", &|outcome| {
            verdicts(outcome, |verdict| {
                matches!(verdict, Verdict::Violated(Some(_), _)).then_some(Verdict::Holds(None))
            });
        }),
        ("the message", &|outcome| {
            verdicts(outcome, |verdict| match verdict {
                Verdict::Violated(trace, Some(_)) => Some(Verdict::Violated(trace.clone(), None)),
                _ => None,
            });
        }),
        ("the trace", &|outcome| change_traces(outcome, |trace| trace.actions.truncate(2))),
        // The first system has one state and a loop, so this is a detour there.
        ("the trace is shortest", &|outcome| change_traces(outcome, |trace| trace.actions.insert(0, Action(0)))),
        ("the trace", &|outcome| change_traces(outcome, |trace| trace.initial = 0)),
    ];
    for (number, (expected, tamper)) in cases.into_iter().enumerate() {
        let complaint = complaint(tamper).unwrap_or_else(|| panic!("lie {number} ({expected}) was not found"));
        assert!(complaint.contains(expected), "lie {number}: {complaint}");
    }
}
