//! The models of the BEEM database: all compile, within limits of time and width; small ones agree in full, state
//! by state, with the naive reference. Larger ones are explored by the tests of the façade, where the stores are.

use deltamark_dve::reference::{self, Outcome};
use deltamark_dve::{DveSystem, parse};
use deltamark_testkit::Corpus;
use deltamark_testkit::conformance::system::check_system_up_to;
use deltamark_testkit::oracle::explore;
use std::time::Instant;

/// Reads all models with at most this many states.
fn models(test: &str, most: u64) -> Vec<(String, Vec<u8>, u64, u64)> {
    let Some(corpus) = Corpus::find(test) else { return Vec::new() };
    let rows = corpus.expected("dve").into_iter().filter(|row| row.number("states").is_some_and(|count| count <= most));
    let read = |row: deltamark_testkit::corpus::Row| {
        let model = row.text("model").expect("every row names its model").to_string();
        let bytes = std::fs::read(corpus.file("dve", &format!("{model}.dve"))).expect("a model");
        (model, bytes, row.number("states").unwrap_or(0), row.number("edges").unwrap_or(0))
    };
    rows.map(read).collect()
}

#[test]
fn all_models_compile_to_narrow_states() {
    let (mut slots, mut bits, mut count) = (0, 0, 0);
    for (model, bytes, ..) in models("all_models_compile_to_narrow_states", u64::MAX) {
        let started = Instant::now();
        let program = parse(&bytes).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}"));
        let width: u32 = program.state_cells().iter().map(|cell| u32::from(cell.field.bits())).sum();
        let typed: u32 =
            program.state_cells().iter().map(|cell| 32 - (cell.allowed.1 - cell.allowed.0).leading_zeros()).sum();
        println!(
            "{model}: {width} bits of {typed} in {} slots, cut at {:?}, {} actions, {:?}",
            program.slots,
            program.boundaries,
            program.action_count,
            started.elapsed()
        );
        assert!(program.slots as u32 <= width.div_ceil(32) + 1, "{model}: {width} bits in {} slots", program.slots);
        (slots, bits, count) = (slots + program.slots, bits + width, count + 1);
    }
    if count > 0 {
        println!("{count} models: {slots} slots, {bits} bits");
    }
}

#[test]
fn small_models_agree_with_the_reference_step_by_step() {
    for (model, bytes, states, edges) in models("small_models_agree_with_the_reference_step_by_step", 1_500) {
        let system = DveSystem::new(parse(&bytes).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}")));
        let explored = explore(&system);
        assert_eq!((explored.states.len() as u64, explored.edges.len() as u64), (states, edges), "{model}");
        let program = system.program();
        for (source, state) in explored.states.iter().enumerate() {
            let values = reference::unpack(program, state);
            let mut steps: Vec<(u32, Vec<i32>)> = Vec::new();
            for action in 0..program.action_count {
                match reference::step(program, &values, action) {
                    Outcome::Done(target) => steps.push((action, target)),
                    Outcome::Disabled => {}
                    Outcome::Fault(why) => panic!("{model}: {why}"),
                }
            }
            let mut found: Vec<(u32, Vec<i32>)> = explored
                .edges
                .iter()
                .filter(|edge| edge.source == source)
                .map(|edge| (edge.action.0, reference::unpack(program, &explored.states[edge.target])))
                .collect();
            found.sort();
            assert_eq!(found, steps, "{model}, state {source}");
        }
    }
}

#[test]
fn models_keep_what_every_system_promises() {
    for (model, bytes, ..) in models("models_keep_what_every_system_promises", 60_000) {
        println!("{model}");
        check_system_up_to(&DveSystem::new(parse(&bytes).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}"))), 150);
    }
}
