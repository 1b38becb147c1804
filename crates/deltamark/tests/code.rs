//! A model that is Rust code, through the façade: faults, several initial states, and
//! states without names that properties could speak of.

use deltamark::graph::{Graph, GraphFormat};
use deltamark::simulate::Simulator;
use deltamark::story::Story;
use deltamark::{Check, CheckError, Loaded, ModelInfo, Overall, Report};
use deltamark_core::{Action, Batch, Describe, Limits, Scratch, Slot, System, Value, Verdict, Widen, Width};
use std::sync::Arc;

/// Counts down from 2 or 3 by one or two at a time; a number below zero is a fault.
struct Countdown {
    faulty: bool,
}

impl System for Countdown {
    fn width(&self) -> Width {
        Width::Fixed(1)
    }

    fn initial(&self, _: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push(Action(0), &[2]);
        out.push(Action(1), &[3]);
        Ok(())
    }

    fn successors(&self, _: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        for step in [1, 2] {
            match source[0].checked_sub(step) {
                Some(rest) => out.push(Action(step), &[rest]),
                None if self.faulty && source[0] == 1 => out.fault(Some(Action(step)), "below zero".into()),
                None => {}
            }
        }
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }
}

impl Describe for Countdown {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        vec![("left".into(), Value::Int(state[0].into()))]
    }

    fn action(&self, _: &[Slot], action: Action) -> String {
        format!("minus {}", action.0)
    }
}

fn check(system: &dyn System) -> Result<Report, CheckError> {
    Check::new(system).run()
}

fn verdicts(faulty: bool) -> Vec<(String, &'static str)> {
    let report = check(&Countdown { faulty }).expect("a report");
    report.answers.iter().map(|answer| (answer.name.clone(), answer.verdict.word())).collect()
}

#[test]
fn faults_are_reported_where_there_are_any() {
    assert_eq!(verdicts(false), [("deadlock-free".into(), "violated")]);
    assert_eq!(verdicts(true), [("deadlock-free".into(), "violated"), ("fault-free".into(), "violated")]);
}

#[test]
fn a_fault_is_told_with_its_trace() {
    let report = check(&Countdown { faulty: true }).expect("a report");
    let fault = &report.answers[1];
    assert!(matches!(&fault.verdict, Verdict::Violated(Some(_), Some(message)) if message == "below zero"));
    let story: &Story = fault.story.as_ref().expect("a story");
    let last = story.walk().last().expect("a step");
    assert_eq!((last.action, last.fault), ("minus 2", Some("below zero")));
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).expect("JSON");
    let trace = json["properties"][1]["trace"].as_array().expect("a list");
    assert_eq!(trace.len(), story.len() + 1);
    let expected = serde_json::json!({"action": "minus 2", "state": null, "fault": "below zero"});
    assert_eq!(trace.last(), Some(&expected));
    assert_eq!(json["model"], serde_json::json!({"path": null, "format": "rust"}));
}

#[test]
fn a_property_about_a_model_without_names_is_refused() {
    let system = Countdown { faulty: false };
    let error = Check::new(&system).invariant("left >= 0").err().expect("an error");
    assert!(matches!(error, CheckError::Property { .. }));
    assert_eq!(error.to_string(), "--invariant: this model has no names that a property could speak of");
}

#[test]
fn stats_explore_everything_and_ask_nothing() {
    let stats = Check::new(&Countdown { faulty: false }).stats().expect("figures");
    assert_eq!((stats.report.statistics.states, stats.report.statistics.edges), (4, 5));
    assert_eq!(stats.report.overall(), Overall::Hold);
    assert!(stats.report.answers.is_empty() && stats.survey.bounds.is_empty());
    assert_eq!(stats.survey.max_tokens_in_marking, None);
    assert_eq!(stats.survey.dead_transitions, None);
}

#[test]
fn too_little_memory_is_refused_and_the_advice_is_enough() {
    let system = Countdown { faulty: false };
    let run = |memory| Check::new(&system).limits(Limits { memory: Some(memory), ..Limits::default() }).run();
    match run(1 << 20) {
        Err(CheckError::MemoryTooSmall { limit, held, least }) => {
            assert!(limit == 1 << 20 && held > limit && least > held);
            // Other tests of this process may take memory meanwhile.
            assert!(run(least + (16 << 20)).is_ok());
        }
        other => assert!(deltamark::memory::resident().is_none(), "{:?}", other.is_ok()),
    }
}

#[test]
fn a_graph_has_all_initial_states() {
    let model = Loaded { system: Box::new(Countdown { faulty: false }), info: ModelInfo::code() };
    let explore =
        |most| Graph::explore(&model, most, Limits::default(), Default::default(), Arc::new(deltamark_core::Silent));
    let graph = explore(4).expect("a graph");
    let mut text = Vec::new();
    graph.write(GraphFormat::Aut, &mut text).expect("memory to write to");
    let text = String::from_utf8(text).expect("text");
    // One more state leads to both, because the format has room for one only.
    assert!(text.starts_with("des (4, 7, 5)\n(4, i, 0)\n(4, i, 1)\n"), "{text}");
    assert!(text.contains("\n(1, \"minus 1\", 0)\n"), "{text}");
    assert!(explore(3).is_err());
}

#[test]
fn a_simulation_goes_forth_and_back_between_initial_states() {
    let system = Countdown { faulty: true };
    let mut run = Simulator::new(&system);
    assert_eq!(run.initial_count(), 2);
    let changed = |before, after| Some(vec![("left".to_string(), Value::Int(before), Value::Int(after))]);
    assert_eq!(run.take(0), changed(2, 1));
    let choices: Vec<(&str, bool)> =
        run.choices().iter().map(|choice| (choice.name.as_str(), choice.fault.is_some())).collect();
    assert_eq!(choices, [("minus 1", false), ("minus 2", true)]);
    assert_eq!(run.take(1), None);
    assert_eq!(run.take(0), changed(1, 0));
    assert!(run.choices().is_empty());
    assert_eq!(run.back().as_deref(), Some("minus 1"));
    assert!(run.reset(1) && !run.reset(2));
    assert_eq!(run.state(), [("left".to_string(), Value::Int(3))]);
    assert_eq!(run.back(), None);
}
