//! Stubborn sets: on random nets and random DVE models, and on nets with answers from outside, a reduced run finds the
//! same deadlocks and the same nearest states as a full one, at the same distances, whatever the store, the search
//! and the number of threads.

use deltamark::Reduce;
use deltamark_core::{Control, Goal, Manner, Outcome, Property, Slot, Strength, Stubborn, System};
use deltamark_dve::DveSystem;
use deltamark_nets::{Net, NetSystem};
use deltamark_search::{Search, Task, Threads, run_on};
use deltamark_store::{CATALOGUE, Need, StoreSpec, build};
use deltamark_testkit::check_system;
use deltamark_testkit::corpus::Corpus;
use deltamark_testkit::oracle::{Explored, explore, explore_up_to};
use deltamark_testkit::random::{Rng, bounded_nets};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

mod questions;
use questions::{beside, nearest, questions, steps};

const MANNERS: [Manner; 5] = [
    Manner::new(Strength::Weak, 1),
    Manner::new(Strength::Weak, 4),
    Manner::new(Strength::Weak, usize::MAX),
    Manner::new(Strength::Strong, 1),
    Manner::new(Strength::Strong, 16),
];

fn reduced<'s>(system: &'s dyn System, properties: &[Property], manner: Manner) -> Stubborn<'s> {
    Stubborn::new(system, properties, manner, &Control::new()).expect("no limit").expect("facts")
}

/// The deadlocks with their distances.
fn deadlocks(explored: &Explored) -> BTreeMap<&[Slot], u64> {
    explored.deadlocks.iter().map(|&number| (&*explored.states[number], explored.distances[number])).collect()
}

fn search(system: &dyn System, spec: &str, search: Search, threads: usize, properties: &[Property]) -> Outcome {
    let control = Control::new();
    let spec: StoreSpec = spec.parse().expect("a store");
    let traffic = deltamark_store::Traffic {
        order: search.order(),
        threads,
        samplers: deltamark_search::SAMPLERS,
        control: control.clone(),
    };
    let store = build(&spec, system, traffic, Arc::clone(&control.budget)).expect("a store");
    let task = Task { system, store: &*store, properties, control: &control, explore_all: true, observer: None };
    run_on(Threads { count: threads, small: 0 }, search, task)
}

/// Compares a system with what is left of it, for deadlocks and for random questions.
fn compare(system: &dyn System, seed: u64) -> (usize, usize) {
    let Some(full) = explore_up_to(system, 3_000) else { return (0, 0) };
    let deadlock = [Property::deadlock_free(), Property::fault_free()];
    let mut left = 0;
    for manner in MANNERS {
        let layer = reduced(system, &deadlock[..1], manner);
        let found = explore(&layer);
        assert_eq!(deadlocks(&found), deadlocks(&full), "{manner:?}");
        left = found.states.len();
        let faults = explore(&reduced(system, &deadlock[1..], manner));
        assert_eq!(faults.nearest_fault(), full.nearest_fault(), "{manner:?}");
    }
    let mut rng = Rng::new(seed);
    for _ in 0..4 {
        let properties = questions(system, &mut rng);
        let expected: Vec<_> = properties.iter().map(|property| nearest(system, &full, property)).collect();
        for manner in MANNERS {
            let layer = reduced(system, &properties, manner);
            let outcome = search(&layer, "plain", Search::Bfs, 1, &properties);
            for ((property, &expected), found) in properties.iter().zip(&expected).zip(&outcome.properties) {
                // A goal that has no value somewhere, and is true nowhere, is refuted by that state.
                if expected.is_some() || !matches!(property.goal, Goal::Reachable(_)) {
                    assert_eq!(steps(&found.verdict), expected, "{}, {manner:?}", property.text);
                } else {
                    assert_eq!(found.verdict.word(), "violated", "{}, {manner:?}", property.text);
                }
            }
        }
    }
    (full.states.len(), left)
}

fn net_system(net: &Net) -> NetSystem {
    NetSystem::new(net.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_nets_keep_deadlocks_and_goals(net in bounded_nets(6, 8), seed in any::<u64>()) {
        compare(&net_system(&net), seed);
    }

    #[test]
    fn random_nets_of_several_parts_keep_deadlocks_and_goals(
        one in bounded_nets(3, 4), two in bounded_nets(3, 4), seed in any::<u64>(),
    ) {
        compare(&net_system(&beside(one, two, seed)), seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_layer_is_a_system_like_any_other(one in bounded_nets(3, 3), two in bounded_nets(3, 3), seed in any::<u64>()) {
        let system = net_system(&beside(one, two, seed));
        prop_assume!(explore_up_to(&system, 300).is_some());
        for manner in [MANNERS[1], MANNERS[4]] {
            check_system(&reduced(&system, &[Property::deadlock_free()], manner));
        }
        // Without keys there may be states that have successors of which none is followed.
        let mut properties = questions(&system, &mut Rng::new(seed));
        properties.push(Property::deadlock_free());
        check_system(&reduced(&system, &properties, Manner::default()));
    }

    #[test]
    fn every_store_search_and_number_of_threads_agrees(
        one in bounded_nets(4, 6), two in bounded_nets(4, 6), seed in any::<u64>(),
    ) {
        let system = net_system(&beside(one, two, seed));
        let full = explore_up_to(&system, 3_000);
        prop_assume!(full.as_ref().is_some_and(|full| full.states.len() > 6));
        let full = full.expect("it was explored");
        let properties = [Property::deadlock_free()];
        let layer = reduced(&system, &properties, Manner::default());
        let expected = explore(&layer);
        let mut specs: Vec<String> = (1..=4).map(|bits| format!("breadcrumb:tag={bits}")).collect();
        specs.extend(CATALOGUE.iter().filter(|info| info.guarantee.starts_with("exact")).map(|info| info.name.into()));
        for spec in specs {
            let name = spec.split(':').next().unwrap_or_default();
            let info = CATALOGUE.iter().find(|info| info.name == name).expect("a name of the catalogue");
            for &order in Search::ALL {
                if order == Search::Dfs && info.needs.contains(&Need::Levels) {
                    continue;
                }
                let threads: &[usize] = if info.threads && order == Search::Bfs { &[1, 2] } else { &[1] };
                for &threads in threads {
                    let outcome = search(&layer, &spec, order, threads, &properties);
                    let label = format!("{spec}, {order:?}, {threads} threads");
                    prop_assert_eq!(outcome.statistics.states, expected.states.len() as u64, "{}", label);
                    prop_assert_eq!(outcome.statistics.edges, expected.edges.len() as u64, "{}", label);
                    prop_assert_eq!(outcome.statistics.deadlocks, full.deadlocks.len() as u64, "{}", label);
                    if order == Search::Bfs {
                        prop_assert_eq!(steps(&outcome.properties[0].verdict), full.nearest_deadlock(), "{}", label);
                    }
                }
            }
        }
    }
}

/// A random DVE model: processes with own and shared variables, guards, assertions, and steps that may be faults.
fn dve(seed: u64) -> String {
    use std::fmt::Write;
    let mut rng = Rng::new(seed);
    let processes = 2 + rng.below(2);
    let mut text = String::from("byte a = 0;\nbyte b = 1;\nint c = 0;\nbyte d[2];\nchannel q;\n");
    let shared = ["a", "b", "c", "d[0]", "d[1]"];
    for process in 0..processes {
        let locations = 2 + rng.below(3);
        let names: Vec<String> = (0..locations).map(|number| format!("s{number}")).collect();
        write!(text, "process P{process} {{\nbyte x = 0;\nstate {};\ninit s0;\n", names.join(", ")).expect("text");
        if rng.below(4) == 0 {
            let (location, read, value) = (rng.below(locations), shared[rng.below(shared.len())], rng.below(3));
            writeln!(text, "assert s{location}: {read} != {value};").expect("text");
        }
        text.push_str("trans\n");
        let count = 2 + rng.below(4);
        for number in 0..count {
            let pick = |rng: &mut Rng| if rng.below(2) == 0 { "x" } else { shared[rng.below(shared.len())] };
            let mut guards = Vec::new();
            for _ in 0..rng.below(3) {
                let operator = ["==", "<", "!=", ">="][rng.below(4)];
                let compared = if rng.below(4) == 0 { "d[x % 2]" } else { pick(&mut rng) };
                guards.push(format!("{compared} {operator} {}", rng.below(3)));
            }
            let (from, to) = (rng.below(locations), rng.below(locations));
            write!(text, "  s{from} -> s{to} {{ ").expect("text");
            if !guards.is_empty() {
                write!(text, "guard {}; ", guards.join(" and ")).expect("text");
            }
            if rng.below(5) == 0 {
                write!(text, "sync q{}; ", ["!", "?"][process % 2]).expect("text");
            }
            let target = match rng.below(6) {
                0 => "d[x % 2]",
                1 if rng.below(3) == 0 => "d[x]",
                _ => pick(&mut rng),
            };
            let value = match rng.below(8) {
                0 => format!("({} + 1) % 3", pick(&mut rng)),
                1 => pick(&mut rng).to_string(),
                2 if rng.below(3) == 0 => format!("2 / {}", pick(&mut rng)),
                3 if rng.below(3) == 0 => format!("d[{}] % 3", pick(&mut rng)),
                4 => "d[(x + 1) % 2]".to_string(),
                5 => "x + 1".to_string(),
                _ => rng.below(3).to_string(),
            };
            let end = if number + 1 == count { ";\n}\n" } else { ",\n" };
            write!(text, "effect {target} = {value}; }}{end}").expect("text");
        }
    }
    text.push_str("system async;\n");
    text
}

#[test]
fn random_dve_models_keep_deadlocks_faults_and_goals() {
    let (mut all, mut left, mut faulty) = (0, 0, 0);
    for seed in 0..300 {
        let text = dve(seed);
        let program = deltamark_dve::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error:?}"));
        let system = DveSystem::new(program);
        let (full, reduced) = compare(&system, seed);
        (all, left) = (all + full, left + reduced);
        faulty += usize::from(full > 0 && !explore(&system).faults.is_empty());
    }
    assert!(left * 10 < all * 9, "{left} of {all} states are left");
    assert!(faulty > 20, "{faulty} models have faults");
}

/// An assertion that fails is no step, and nothing disables what leads there: the sets were closed without it.
#[test]
fn assertions_fail_at_their_distances() {
    let text = "byte y = 0;
        process A { state p, q; init p; trans p -> q { }, q -> p { }; }
        process B { state r, s, t; init r; assert t: y == 0; trans r -> s { }, s -> t { }; }
        process C { state u, v; init u; trans u -> v { effect y = 1; }; }
        system async;";
    let system = DveSystem::new(deltamark_dve::parse(text.as_bytes()).expect("a model"));
    assert_eq!(explore(&system).nearest_fault(), Some(3));
    compare(&system, 0);
}

/// Compares runs over the models of a part of the corpus, and prints how many states are left.
fn corpus(test: &str, part: &str, ending: &str, most: u64) {
    let Some(corpus) = Corpus::find(test) else { return };
    let mut factors = Vec::new();
    for row in corpus.expected(part) {
        let small = row.number("states").is_some_and(|states| states <= most);
        if row.text("kind").is_some_and(|kind| kind != "PT") || !small {
            continue;
        }
        let model = row.text("model").expect("every row names its model");
        let path = corpus.file(part, &format!("{model}.{ending}"));
        let loaded = deltamark::load(&path.to_string_lossy(), None).unwrap_or_else(|error| panic!("{model}: {error}"));
        let system = loaded.system.as_ref();
        let properties = [Property::deadlock_free()];
        let Ok(layer) = Stubborn::new(system, &properties, Manner::default(), &Control::new()).expect("no limit")
        else {
            println!("{model}: no stubborn sets");
            continue;
        };
        let full = search(system, "plain", Search::Bfs, 1, &properties);
        let reduced = search(&layer, "plain", Search::Bfs, 1, &properties);
        assert_eq!(reduced.statistics.deadlocks, full.statistics.deadlocks, "{model}");
        let [few, all] = [&reduced, &full].map(|outcome| &outcome.properties[0].verdict);
        assert_eq!((few.word(), steps(few)), (all.word(), steps(all)), "{model}");
        let factor = full.statistics.states as f64 / reduced.statistics.states as f64;
        println!("{model}: {} of {} states, {factor:.1} times", reduced.statistics.states, full.statistics.states);
        factors.push(factor);
    }
    factors.sort_by(f64::total_cmp);
    let mean = factors.iter().map(|factor| factor.ln()).sum::<f64>() / factors.len() as f64;
    let twice = factors.iter().filter(|factor| **factor >= 2.0).count();
    let median = factors[factors.len() / 2];
    println!("{} models: median {median:.2}, geometric mean {:.2}, {twice} twice and more", factors.len(), mean.exp());
}

#[test]
fn small_nets_keep_their_deadlocks() {
    corpus("small_nets_keep_their_deadlocks", "pnml", "pnml", 10_000);
}

#[test]
#[ignore = "takes minutes; part of the long run"]
fn nets_keep_their_deadlocks() {
    corpus("nets_keep_their_deadlocks", "pnml", "pnml", 1_000_000);
}

#[test]
fn small_dve_models_keep_their_deadlocks() {
    corpus("small_dve_models_keep_their_deadlocks", "dve", "dve", 5_000);
}

#[test]
#[ignore = "takes a minute; part of the long run"]
fn dve_models_keep_their_deadlocks() {
    corpus("dve_models_keep_their_deadlocks", "dve", "dve", 300_000);
}

#[test]
fn a_check_says_what_was_reduced_and_answers_the_same() {
    for (family, size, large) in [("philosophers", 4, false), ("philosophers", 10, true), ("kanban", 3, true)] {
        let net = deltamark_nets::generate::generate(family, size).expect("a family");
        let system = NetSystem::new(net);
        let run = |reduce| deltamark::Check::new(&system).deadlock_free().reduce(reduce).run().expect("a run");
        let [off, auto, stubborn] = [Reduce::Off, Reduce::Auto, Reduce::Stubborn].map(run);
        assert!(off.reduction.is_none() && stubborn.reduction.is_some(), "{family} {size}");
        assert!(large || auto.reduction.is_none(), "{family} {size} is small");
        for report in [&auto, &stubborn] {
            let [one, two] = [&off, report].map(|report| &report.answers[0].verdict);
            assert_eq!((one.word(), steps(one)), (two.word(), steps(two)), "{family} {size}");
            assert_eq!(report.to_json().contains("\"reduction\""), report.reduction.is_some());
        }
        assert!(stubborn.statistics.states < off.statistics.states, "{family} {size}");
    }
}
