//! Nets that others wrote: they parse with the right number of nodes, or are refused for
//! the right reason.

mod common;

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use common::{explore, shared_models};
use deltamark_nets::{Net, generate, pnml};

/// Rows of a table as maps from column to value.
fn table(path: &std::path::Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(path).expect("the table is there");
    let mut lines = text.lines().map(|line| line.split('\t').map(String::from));
    let head: Vec<String> = lines.next().expect("a head").collect();
    lines.map(|line| head.iter().cloned().zip(line).collect()).collect()
}

#[test]
fn contest_nets_have_the_right_size() {
    let Some(folder) = shared_models() else { return };
    let (mut read, mut refused, mut safe) = (0, 0, 0);
    for row in table(&folder.join("pnml/expected.tsv")) {
        let model = &row["model"];
        let bytes = fs::read(folder.join(format!("pnml/{model}.pnml"))).expect("the model is there");
        match (row["kind"].as_str(), pnml::parse_bytes(&bytes)) {
            ("PT", Ok(net)) => {
                assert_eq!(net.places.len().to_string(), row["places"], "places of {model}");
                assert_eq!(net.transitions.len().to_string(), row["transitions"], "transitions of {model}");
                assert_eq!(net.validate(), Ok(()), "{model}");
                safe += usize::from(net.declared_safe);
                if net.declared_safe {
                    assert_eq!(row["max_tokens_in_place"], "1", "{model} is declared safe");
                }
                read += 1;
            }
            ("COL", Err(diagnostics)) => {
                assert_eq!(diagnostics.len(), 1, "{model}: {diagnostics:?}");
                assert_eq!(diagnostics[0].message, "this is a coloured net (`symmetricnet`), not a P/T net", "{model}");
                refused += 1;
            }
            (kind, result) => panic!("{model} is {kind} but gave {:?}", result.map(|net| net.name)),
        }
    }
    assert!(read > 0 && refused > 0 && safe > 0);
    println!("{read} P/T nets read ({safe} declared safe), {refused} coloured nets refused");
}

#[test]
fn small_contest_nets_have_the_right_state_space() {
    let Some(folder) = shared_models() else { return };
    let mut checked = 0;
    for row in table(&folder.join("pnml/expected.tsv")) {
        let small = row["states"].parse().is_ok_and(|states: usize| states <= 3000);
        if row["kind"] != "PT" || !small {
            continue;
        }
        let model = &row["model"];
        let bytes = fs::read(folder.join(format!("pnml/{model}.pnml"))).expect("the model is there");
        let counts = explore(&pnml::parse_bytes(&bytes).expect("it parses"));
        assert_eq!(counts.states.to_string(), row["states"], "states of {model}");
        assert_eq!(counts.edges.to_string(), row["edges"], "edges of {model}");
        assert_eq!(if counts.deadlocks > 0 { "y" } else { "n" }, row["deadlock"], "deadlock of {model}");
        checked += 1;
    }
    assert!(checked > 10, "only {checked}");
}

/// The number of arcs and tokens of each node, sorted, so that nets can be compared up to names and order.
fn shape(net: &Net) -> (Vec<[usize; 3]>, Vec<[usize; 2]>) {
    let mut places: Vec<_> = net.places.iter().map(|place| [place.initial as usize, 0, 0]).collect();
    for transition in &net.transitions {
        transition.inputs.iter().for_each(|arc| places[arc.place as usize][1] += arc.weight as usize);
        transition.outputs.iter().for_each(|arc| places[arc.place as usize][2] += arc.weight as usize);
    }
    let mut transitions: Vec<_> = net.transitions.iter().map(|t| [t.inputs.len(), t.outputs.len()]).collect();
    places.sort_unstable();
    transitions.sort_unstable();
    (places, transitions)
}

#[test]
fn generated_nets_agree_with_nets_from_outside() {
    let Some(folder) = shared_models() else { return };
    let read = |file: &str| pnml::parse_bytes(&fs::read(folder.join(file)).expect("it is there")).expect(file);
    let generated = |family, n| generate::generate(family, n).expect("a known family");
    for (file, family, n) in [
        ("pnml/Philosophers-PT-000005.pnml", "philosophers", 5),
        ("bench/philosophers-13.pnml", "philosophers", 13),
        ("bench/kanban-5.pnml", "kanban", 5),
        ("bench/database-managers-11.pnml", "database-managers", 11),
    ] {
        assert_eq!(shape(&read(file)), shape(&generated(family, n)), "{file}");
    }
    // Two cards in place of five are few enough for the naive explorer.
    let mut kanban = read("bench/kanban-5.pnml");
    kanban.places.iter_mut().for_each(|place| place.initial = place.initial.min(2));
    assert_eq!(explore(&kanban), explore(&generated("kanban", 2)));
    assert!(read("bench/swimming-2.pnml").validate().is_ok());
}

#[test]
fn five_megabytes_take_a_moment() {
    let net = generate::generate("philosophers", 6500).expect("a known family");
    let text = deltamark_nets::write::to_pnml(&net);
    assert!(text.len() > 5_000_000, "{}", text.len());
    let start = Instant::now();
    let read = deltamark_nets::pnml::parse(&text).expect("our own file");
    let seconds = start.elapsed().as_secs_f64();
    println!("{} bytes in {seconds:.3} s", text.len());
    assert_eq!(read.transitions.len(), net.transitions.len());
    // Far above what it takes on the busiest machine, far below what a step quadratic in the bytes would.
    assert!(seconds < 120.0, "{seconds} s");
}
