//! Structural reduction: verdicts of runs over smaller nets are those of full runs, on random nets and on nets with answers from outside,
//! whatever the store, the search and the number of threads. Traces are replayed in the original, and end in a state that decides, by the product itself.

use deltamark::{Check, CheckError, Reduce, Report};
use deltamark_core::{Control, Property, System};
use deltamark_nets::reduce::{Kept, ReducedSystem, reduce};
use deltamark_nets::{Arc, Net, NetSystem, Place, Transition};
use deltamark_search::Search;
use deltamark_store::{CATALOGUE, Need, StoreSpec};
use deltamark_testkit::corpus::Corpus;
use deltamark_testkit::oracle::{explore, explore_up_to};
use deltamark_testkit::random::Rng;
use std::collections::BTreeMap;

mod questions;
use questions::{beside, nearest, questions, steps};

/// A random net of few arcs, in which much can be agglomerated: weights, read and inhibitor arcs are rare.
fn sparse(rng: &mut Rng) -> Net {
    let (places, transitions) = (3 + rng.below(6), 3 + rng.below(7));
    let plain = rng.below(3) > 0;
    let weight = |rng: &mut Rng| if rng.below(6) == 0 { 2 + rng.below(2) as u32 } else { 1 };
    let arcs = |rng: &mut Rng, most: usize| {
        let mut arcs: BTreeMap<u32, u32> = BTreeMap::new();
        for _ in 0..most {
            arcs.insert(rng.below(places) as u32, weight(rng));
        }
        arcs.into_iter().map(|(place, weight)| Arc { place, weight }).collect::<Vec<_>>()
    };
    let mut net = Net { name: "sparse".into(), ..Net::default() };
    for number in 0..places {
        let name = format!("p{number}");
        let initial = if rng.below(3) == 0 { 1 + rng.below(3) as u32 } else { 0 };
        net.places.push(Place { id: name.clone(), name, initial });
    }
    for number in 0..transitions {
        let name = format!("t{number}");
        let (takes, gives) = ([1, 1, 1, 2, 0][rng.below(5)], [1, 1, 1, 2, 0][rng.below(5)]);
        let mut transition = Transition { id: name.clone(), name, ..Transition::default() };
        transition.inputs = arcs(rng, takes);
        transition.outputs = arcs(rng, gives);
        if !plain && rng.below(5) == 0 {
            transition.reads = arcs(rng, 1);
        }
        if !plain && rng.below(5) == 0 {
            transition.inhibitors = arcs(rng, 1);
        }
        // Most are bounded.
        let mut left: u32 = transition.inputs.iter().map(|arc| arc.weight).sum();
        if rng.below(12) > 0 {
            for arc in &mut transition.outputs {
                arc.weight = arc.weight.min(left);
                left -= arc.weight;
            }
            transition.outputs.retain(|arc| arc.weight > 0);
        }
        net.transitions.push(transition);
    }
    net
}

/// A random Boolean network: variables, each of two places, that change as others say. What a variable asks when it is set mostly contradicts
/// what it asks when it is reset.
fn network(rng: &mut Rng) -> Net {
    let variables = 2 + rng.below(5);
    let mut net = Net { name: "network".into(), ..Net::default() };
    for number in 0..variables {
        for value in 0..2 {
            let name = format!("v{number}is{value}");
            let initial = u32::from(value == 0) * (1 + u32::from(rng.below(8) == 0));
            net.places.push(Place { id: name.clone(), name, initial });
        }
    }
    let arc = |place: usize| Arc { place: place as u32, weight: 1 };
    for variable in 0..variables {
        let mut by = vec![rng.below(variables), rng.below(variables)];
        by.dedup();
        let polarity = rng.below(2);
        for from in 0..2 {
            let name = format!("t{variable}from{from}");
            let mut transition = Transition { id: name.clone(), name, ..Transition::default() };
            transition.inputs.push(arc(2 * variable + from));
            transition.outputs.push(arc(2 * variable + 1 - from));
            for &other in by.iter().take(1 + rng.below(2)) {
                let noise = usize::from(rng.below(8) == 0);
                if other != variable {
                    let kind = if rng.below(6) == 0 { &mut transition.inhibitors } else { &mut transition.reads };
                    kind.push(arc(2 * other + (from ^ polarity ^ noise)));
                }
            }
            net.transitions.push(transition);
        }
    }
    net
}

fn asked(system: &dyn System, properties: Vec<Property>, reduce: Reduce) -> Result<Report, CheckError> {
    let check = Check::new(system).reduce(reduce).threads(1).store(StoreSpec::named("plain"));
    properties.into_iter().fold(check, Check::property).run()
}

/// Compares reduced runs with a look at all states; returns how many reduced runs there were.
fn compare(net: &Net, seed: u64, rules: &mut BTreeMap<&'static str, u64>) -> usize {
    let system = NetSystem::new(net.clone());
    let Some(full) = explore_up_to(&system, 2_000) else { return 0 };
    let mut rng = Rng::new(seed);
    let mut runs = 0;
    for round in 0..4 {
        let ask = |rng: &mut Rng| match round {
            0 => vec![Property::deadlock_free()],
            // A single question sees less of the net.
            1 => questions(&system, rng).into_iter().take(1).collect(),
            _ => questions(&system, rng),
        };
        let again = rng.number();
        let expected: Vec<bool> =
            ask(&mut Rng::new(again)).iter().map(|one| nearest(&system, &full, one).is_some()).collect();
        for reduce in [Reduce::Structure, Reduce::All] {
            let report = match asked(&system, ask(&mut Rng::new(again)), reduce) {
                Ok(report) => report,
                Err(CheckError::Misfit { .. }) => continue,
                Err(error) => panic!("seed {seed}, round {round}, {reduce}: {error}\n{net:?}"),
            };
            runs += 1;
            let off = asked(&system, ask(&mut Rng::new(again)), Reduce::Off).expect("a full run");
            for ((found, full), expected) in report.answers.iter().zip(&off.answers).zip(&expected) {
                let label =
                    format!("seed {seed}, round {round}, {reduce}, {}: {:?}\n{net:?}", found.text, report.reduction);
                assert_eq!(found.verdict.word(), full.verdict.word(), "{label}");
                // A goal that has no value somewhere, and is true nowhere, is refuted by a trace too.
                let shown = found.verdict.trace().is_some();
                assert_eq!(shown, full.verdict.trace().is_some(), "{label}");
                assert!(shown || !expected, "{label}");
            }
            for (rule, times) in report.reduction.expect("a reduced run says so").rules {
                *rules.entry(rule).or_default() += times;
            }
        }
    }
    runs
}

#[test]
fn random_nets_keep_their_answers() {
    let (mut rules, mut runs) = (BTreeMap::new(), 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let one = sparse(&mut rng);
        let net = if seed % 3 == 0 { beside(one, sparse(&mut rng), seed) } else { one };
        runs += compare(&net, seed, &mut rules);
        if seed % 3 == 1 {
            runs += compare(&network(&mut rng), seed, &mut rules);
        }
    }
    assert!(runs > 500, "{runs} reduced runs");
    for (rule, least) in [
        ("dead transitions", 5),
        ("constant places", 5),
        ("equal places", 5),
        ("equal transitions", 5),
        ("sink places", 5),
        ("post-agglomeration", 5),
        ("pre-agglomeration", 5),
        ("irrelevant parts", 5),
        ("parts that come to rest", 50),
        ("a transition that can always fire", 5),
    ] {
        let times = rules.get(rule).copied().unwrap_or_default();
        assert!(times >= least, "`{rule}` was used {times} times: {rules:?}");
    }
}

#[test]
#[ignore = "takes minutes; part of the long run"]
fn very_many_random_nets_keep_their_answers() {
    let mut rules = BTreeMap::new();
    for seed in 10_000..16_000 {
        let mut rng = Rng::new(seed);
        let one = sparse(&mut rng);
        let net = if seed % 3 == 0 { beside(one, sparse(&mut rng), seed) } else { one };
        compare(&net, seed, &mut rules);
        compare(&network(&mut rng), seed, &mut rules);
    }
    println!("{rules:?}");
}

#[test]
fn every_store_search_and_number_of_threads_agrees() {
    let mut runs = 0;
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let (one, two) = (sparse(&mut rng), sparse(&mut rng));
        let system = NetSystem::new(beside(one, two, seed));
        let Some(full) = explore_up_to(&system, 1_000).filter(|full| full.states.len() > 10) else { continue };
        let expected = if full.deadlocks.is_empty() { "holds" } else { "violated" };
        for info in CATALOGUE.iter().filter(|info| info.guarantee.starts_with("exact")) {
            for &search in Search::ALL {
                if search == Search::Dfs && info.needs.contains(&Need::Levels) {
                    continue;
                }
                let threads: &[usize] = if info.threads && search == Search::Bfs { &[1, 2] } else { &[1] };
                for &threads in threads {
                    for reduce in [Reduce::Structure, Reduce::All] {
                        let check = Check::new(&system).deadlock_free().reduce(reduce).threads(threads).search(search);
                        match check.store(StoreSpec::named(info.name)).run() {
                            Ok(report) => {
                                assert_eq!(report.answers[0].verdict.word(), expected, "{} {seed}", info.name)
                            }
                            Err(CheckError::Misfit { .. }) => continue,
                            Err(error) => panic!("{}: {error}", info.name),
                        }
                        runs += 1;
                    }
                }
            }
        }
    }
    assert!(runs > 200, "{runs} runs");
}

/// The rules that keep the reachable graph keep the number of states.
#[test]
fn what_sees_every_place_keeps_every_state() {
    for seed in 0..400 {
        let net = sparse(&mut Rng::new(seed));
        let system = NetSystem::new(net.clone());
        let Some(full) = explore_up_to(&system, 2_000) else { continue };
        let visible = (0..net.places.len() as u32).collect();
        let kept = Kept { visible, deadlocks: true, work: u64::MAX };
        let Some(reduced) = reduce(&net, &kept, &Control::new()).expect("no limit") else { continue };
        assert_eq!(reduced.places.iter().flatten().count(), net.places.len());
        let smaller = ReducedSystem::under(&net, reduced, &Control::new()).expect("no limit");
        let found = explore(&smaller);
        assert_eq!((found.states.len(), found.deadlocks.len()), (full.states.len(), full.deadlocks.len()), "{net:?}");
    }
}

#[test]
fn shortest_traces_are_asked_for_and_given() {
    let text = "pl a (1)\ntr one a -> b\ntr two b -> c\ntr three c -> d\ntr round d -> a\ntr end c -> e\n";
    let system = NetSystem::new(deltamark_nets::tina::parse(text).expect("a net"));
    let check = || Check::new(&system).deadlock_free();
    let reduced = check().reduce(Reduce::All).run().expect("a run");
    assert!(!reduced.is_shortest() && reduced.reduction.as_ref().is_some_and(|found| found.places.is_some()));
    assert_eq!(steps(&reduced.answers[0].verdict), Some(3));
    let shortest = check().reduce(Reduce::All).shortest(true).run().expect("a run");
    assert!(shortest.is_shortest() && shortest.reduction.is_some_and(|found| found.places.is_none()));
    let refused = [check().reduce(Reduce::Structure).shortest(true), check().search(Search::Dfs).shortest(true)];
    for check in refused {
        assert!(matches!(check.run(), Err(CheckError::Misfit { .. })));
    }
}

#[test]
fn small_models_are_explored_as_they_are_whatever_the_store() {
    let net = deltamark_nets::generate::generate("kanban", 1).expect("a family");
    let system = NetSystem::new(net);
    for store in ["plain", "compact", "tree", "breadcrumb"] {
        let check = Check::new(&system).deadlock_free().reduce(Reduce::Auto).store(StoreSpec::named(store));
        let report = check.run().expect("a run");
        assert!(report.reduction.is_none() && report.statistics.states == 160, "{store}: {:?}", report.reduction);
    }
}

#[test]
fn several_threads_decide_as_one_does() {
    let system = NetSystem::new(deltamark_nets::generate::generate("kanban", 3).expect("a family"));
    let run = |threads| {
        let check = Check::new(&system).deadlock_free().reduce(Reduce::Auto).threads(threads);
        let report = check.store(StoreSpec::named("plain")).run().expect("a run");
        (report.answers[0].verdict.word(), report.statistics.states, report.reduction)
    };
    let one = run(1);
    assert!(one.2.is_some(), "it is worth it");
    assert_eq!(one, run(2));
}

#[test]
fn a_question_that_reduction_decides_says_so() {
    let text = "pl a (1)\ntr one a -> b\ntr two b -> c\ntr stop c -> d\n";
    let system = NetSystem::new(deltamark_nets::tina::parse(text).expect("a net"));
    let report = Check::new(&system).deadlock_free().reduce(Reduce::Structure).run().expect("a run");
    assert_eq!((report.answers[0].verdict.word(), steps(&report.answers[0].verdict)), ("violated", Some(3)));
    assert!(report.reduction.as_ref().is_some_and(|found| found.decides), "{:?}", report.reduction);
    assert_eq!(report.statistics.states, 1);
    let json = report.to_json();
    assert!(json.contains("\"decided_by\":\"the reduction alone\"") && json.contains("\"deadlocks\":null"), "{json}");
}

/// Compares verdicts on nets of the corpus.
fn corpus(test: &str, most: u64) {
    let Some(corpus) = Corpus::find(test) else { return };
    let mut runs = 0;
    for row in corpus.expected("pnml") {
        let small = row.number("states").is_some_and(|states| states <= most);
        if row.text("kind") != Some("PT") || !small {
            continue;
        }
        let model = row.text("model").expect("every row names its model");
        let path = corpus.file("pnml", &format!("{model}.pnml"));
        let loaded = deltamark::load(&path.to_string_lossy(), None).unwrap_or_else(|error| panic!("{model}: {error}"));
        let system = loaded.system.as_ref();
        for round in 0..4 {
            let ask = || match round {
                0 => vec![Property::deadlock_free()],
                seed => questions(system, &mut Rng::new(seed)).into_iter().take(1).collect(),
            };
            let off = asked(system, ask(), Reduce::Off).expect("a full run");
            if let (0, Some(deadlock)) = (round, row.truth("deadlock")) {
                assert_eq!(off.answers[0].verdict.word() == "violated", deadlock, "{model}");
            }
            for reduce in [Reduce::Structure, Reduce::All, Reduce::Auto] {
                let report = match asked(system, ask(), reduce) {
                    Err(CheckError::Misfit { .. }) => continue,
                    report => report.unwrap_or_else(|error| panic!("{model}, {reduce}: {error}")),
                };
                runs += 1;
                let [found, full] = [&report, &off].map(|report| &report.answers[0]);
                assert_eq!(found.verdict.word(), full.verdict.word(), "{model}, {reduce}, {}", found.text);
                if report.is_shortest() {
                    assert_eq!(steps(&found.verdict), steps(&full.verdict), "{model}, {reduce}, {}", found.text);
                }
            }
        }
    }
    println!("{runs} runs");
}

#[test]
fn small_nets_keep_their_answers() {
    corpus("small_nets_keep_their_answers", 5_000);
}

#[test]
#[ignore = "takes minutes; part of the long run"]
fn nets_keep_their_answers() {
    corpus("nets_keep_their_answers", 1_000_000);
}
