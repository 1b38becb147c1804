//! Symmetry of nets: on copies of random components that share resources, and on nets with answers from outside, the quotient by the net's
//! automorphisms gives the answers of the full run, at the same distances, whatever the store, the search and the number of threads.

use deltamark::nets::generate;
use deltamark::{Check, Reduce};
use deltamark_core::{Control, Property, Quotient, Slot, System};
use deltamark_nets::symmetry::NetSymmetry;
use deltamark_nets::{Arc, Net, NetSystem, Place, Transition};
use deltamark_search::Search;
use deltamark_store::{CATALOGUE, Need};
use deltamark_testkit::corpus::Corpus;
use deltamark_testkit::oracle::{explore, explore_up_to};
use deltamark_testkit::random::{Rng, bounded_nets};
use deltamark_testkit::{check_symmetry, check_system};
use proptest::prelude::*;
use std::collections::BTreeSet;

mod questions;
use questions::{nearest, questions, steps};

const WORK: u64 = 1 << 30;

/// Copies of a net, place `p` of copy `c` at `c * places + p`, and behind them resources that all of them use alike.
fn copies(component: &Net, count: usize, seed: u64) -> Net {
    let mut rng = Rng::new(seed);
    let places = component.places.len();
    let resources = 1 + rng.below(2);
    let first = count * places;
    let mut net = Net::default();
    for copy in 0..count {
        for place in &component.places {
            let name = format!("{}_{copy}", place.name);
            net.places.push(Place { id: name.clone(), name, initial: place.initial });
        }
    }
    for resource in 0..resources {
        let name = format!("resource{resource}");
        net.places.push(Place { id: name.clone(), name, initial: rng.below(3) as u32 });
    }
    for transition in &component.transitions {
        // The same for all copies: 0 takes, 1 gives, 2 reads, 3 inhibits.
        let shared: Vec<(usize, Arc)> = (0..resources)
            .filter_map(|resource| {
                let kind = rng.below(9);
                let arc = Arc { place: (first + resource) as u32, weight: 1 + u32::from(rng.below(4) == 0) };
                (kind < 4).then_some((kind, arc))
            })
            .collect();
        for copy in 0..count {
            let moved = |arcs: &[Arc], wanted: usize| {
                let own = arcs.iter().map(|arc| Arc { place: arc.place + (copy * places) as u32, ..*arc });
                own.chain(shared.iter().filter(|(kind, _)| *kind == wanted).map(|(_, arc)| *arc)).collect()
            };
            let name = format!("{}_{copy}", transition.name);
            net.transitions.push(Transition {
                id: name.clone(),
                name,
                inputs: moved(&transition.inputs, 0),
                outputs: moved(&transition.outputs, 1),
                reads: moved(&transition.reads, 2),
                inhibitors: moved(&transition.inhibitors, 3),
                label: None,
                priority: 0,
            });
        }
    }
    net
}

/// How many markings there are but for the order of copies: by sorting these.
fn orbits(system: &NetSystem, states: &[Vec<Slot>], places: usize, count: usize) -> usize {
    let sorted = |state: &Vec<Slot>| {
        let marking = system.marking(state);
        let (own, shared) = marking.split_at(places * count);
        let mut copies: Vec<&[u64]> = own.chunks(places).collect();
        copies.sort_unstable();
        (copies.concat(), shared.to_vec())
    };
    states.iter().map(sorted).collect::<BTreeSet<_>>().len()
}

fn symmetry<'n>(system: &'n NetSystem, properties: &[Property]) -> Result<NetSymmetry<'n>, String> {
    NetSymmetry::new(system, properties, WORK, &Control::new()).expect("no limit")
}

/// Sums over all copies, which may be exchanged; and a place of one copy, which keeps that where it is.
fn sums(system: &NetSystem, places: usize, count: usize, rng: &mut Rng) -> Vec<Property> {
    let observe = system.observe().expect("places have names");
    let names = observe.names();
    let of = |place: usize, copy: usize| deltamark_logic::quote(&names[copy * places + place]).to_string();
    let (one, two) = (rng.below(places), rng.below(places));
    let all = |join: &str, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<Vec<_>>().join(join);
    let texts = [
        format!("{} >= {}", all(" + ", &|copy| of(one, copy)), 1 + rng.below(4)),
        all(" or ", &|copy| format!("({} > {} + 1)", of(one, copy), of(two, copy))),
        all(" and ", &|copy| format!("({} != 1)", of(two, copy))),
    ];
    let property = |(number, text): (usize, &String)| {
        let parse = if number == 2 { deltamark_logic::invariant } else { deltamark_logic::reachable };
        parse(None, text, observe).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    };
    texts.iter().enumerate().map(property).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn copies_of_random_components_are_sorted(component in bounded_nets(3, 3), count in 2usize..5, seed in any::<u64>()) {
        let net = copies(&component, count, seed);
        let places = component.places.len();
        let system = NetSystem::new(net);
        let full = explore_up_to(&system, 1_500);
        prop_assume!(full.as_ref().is_some_and(|full| full.states.len() > 3));
        let full = full.expect("it was explored");
        // Copies whose own places never change are not worth exchanging: only resources change then.
        let own = |state: &Vec<Slot>| system.marking(state)[..places * count].to_vec();
        prop_assume!(full.states.iter().any(|state| own(state) != own(&full.states[0])));
        let mut properties = sums(&system, places, count, &mut Rng::new(seed));
        properties.push(Property::deadlock_free());
        let Ok(symmetry) = symmetry(&system, &properties) else { panic!("copies can be exchanged") };
        let (all, few) = check_symmetry(&system, &symmetry, &properties);
        prop_assert_eq!(all, full.states.len());
        let most = orbits(&system, &full.states, places, count);
        prop_assert!(few <= all && (few <= most || !symmetry.is_whole()), "{} of {} states, {} orbits", few, all, most);
        for property in &properties {
            let quotient = Quotient::new(&system, &symmetry);
            let found = nearest(&quotient, &explore(&quotient), property);
            prop_assert_eq!(found, nearest(&system, &full, property), "{}", property.text);
        }
    }

    #[test]
    fn random_questions_are_answered_alike(component in bounded_nets(3, 3), count in 2usize..4, seed in any::<u64>()) {
        let system = NetSystem::new(copies(&component, count, seed));
        let full = explore_up_to(&system, 800);
        prop_assume!(full.is_some());
        let full = full.expect("it was explored");
        let mut rng = Rng::new(seed);
        for _ in 0..4 {
            let properties = questions(&system, &mut rng);
            let expected: Vec<_> = properties.iter().map(|property| nearest(&system, &full, property)).collect();
            let Ok(symmetry) = symmetry(&system, &properties) else { continue };
            let quotient = Quotient::new(&system, &symmetry);
            let few = explore(&quotient);
            for (property, expected) in properties.iter().zip(expected) {
                prop_assert_eq!(nearest(&quotient, &few, property), expected, "{}", property.text);
            }
        }
    }
}

#[test]
fn every_store_search_and_number_of_threads_agrees() {
    let net = generate("philosophers", 6).expect("a net");
    let system = NetSystem::new(net);
    let full = Check::new(&system).deadlock_free().store("plain".parse().expect("a store")).run().expect("a report");
    let distance = steps(&full.answers[0].verdict);
    for info in CATALOGUE.iter().filter(|info| info.guarantee.starts_with("exact")) {
        for &search in Search::ALL.iter().filter(|search| info.takes(search.order())) {
            let threads: &[usize] = if info.threads && search == Search::Bfs { &[1, 2] } else { &[1] };
            for &threads in threads {
                let label = format!("{}, {search:?}, {threads} threads", info.name);
                let spec = info.name.parse().expect("a name of the catalogue");
                let check = Check::new(&system).deadlock_free().invariant("fork_1 <= 1").expect("an expression");
                let run = check.reduce(Reduce::Symmetry).store(spec).search(search).threads(threads).run();
                if info.needs.contains(&Need::Undo) {
                    let refusal = run.err().map(|error| error.to_string()).unwrap_or_default();
                    assert!(refusal.contains("undone"), "{label}: {refusal}");
                    continue;
                }
                let report = run.unwrap_or_else(|error| panic!("{label}: {error}"));
                let words: Vec<&str> = report.answers.iter().map(|answer| answer.verdict.word()).collect();
                assert_eq!(words, ["violated", "holds"], "{label}");
                assert!(report.reduction.as_ref().is_some_and(|reduction| reduction.kind == "symmetry"), "{label}");
                if search == Search::Bfs {
                    assert_eq!(steps(&report.answers[0].verdict), distance, "{label}");
                }
                // It was replayed in the net.
                assert!(report.answers[0].story.is_some(), "{label}");
            }
        }
    }
}

/// The states of a member of a family and of its quotient.
fn sizes(family: &str, n: u32) -> (usize, Result<usize, String>) {
    let system = NetSystem::new(generate(family, n).expect("a net"));
    let properties = [Property::deadlock_free()];
    let few = symmetry(&system, &properties).map(|symmetry| {
        let quotient = Quotient::new(&system, &symmetry);
        check_system(&quotient);
        explore(&quotient).states.len()
    });
    (explore(&system).states.len(), few)
}

#[test]
fn known_families_have_known_quotients() {
    // Orbits were counted by programs written apart: of philosophers under rotations and reflections, of kanban under the exchange of
    // cells 2 and 3. Of managers one is active or none, and it matters how many of the others are in each of three states.
    let cases = [
        ("philosophers", 5, (243, Ok(30))),
        ("philosophers", 7, (2_187, Ok(171))),
        ("kanban", 2, (4_600, Ok(2_800))),
        ("database-managers", 4, (109, Ok(11))),
        // Six of seven are exchanged: 720 permutations, and not 5,040. The seventh is active, or in one of three states, or all are idle.
        ("database-managers", 7, (5_104, Ok(28 + 3 * 21 + 1))),
    ];
    for (family, n, expected) in cases {
        assert_eq!(sizes(family, n), expected, "{family} {n}");
    }
}

#[test]
fn small_nets_of_the_corpus_keep_their_answers() {
    let Some(corpus) = Corpus::find("small_nets_of_the_corpus_keep_their_answers") else { return };
    let (mut reduced, mut factor) = (0, 0.0);
    for row in corpus.expected("pnml") {
        let small = row.number("states").is_some_and(|states| states <= 20_000);
        if row.text("kind") != Some("PT") || !small {
            continue;
        }
        let model = row.text("model").expect("every row names its model");
        let path = corpus.file("pnml", &format!("{model}.pnml"));
        let loaded = deltamark::load(&path.to_string_lossy(), None).unwrap_or_else(|error| panic!("{model}: {error}"));
        let Some(system) = loaded.system.as_any().and_then(|any| any.downcast_ref::<NetSystem>()) else { continue };
        let properties = [Property::deadlock_free()];
        let Ok(symmetry) = NetSymmetry::new(system, &properties, 5_000_000, &Control::new()).expect("no limit") else {
            continue;
        };
        let run = |check: Check<'_>| {
            let check = check.deadlock_free().store("plain".parse().expect("a store")).threads(1);
            check.run().unwrap_or_else(|error| panic!("{model}: {error}"))
        };
        let full = run(Check::new(system));
        let few = run(Check::new(system).symmetry(&symmetry));
        let [one, other] = [&full, &few].map(|report| {
            let verdict = &report.answers[0].verdict;
            (verdict.word(), steps(verdict))
        });
        assert_eq!(one, other, "{model}");
        let (all, few) = (full.statistics.states, few.statistics.states);
        println!("{model}: {all} states, {few} with {} automorphisms", symmetry.automorphisms());
        assert!(few <= all, "{model}");
        (reduced, factor) = (reduced + 1, factor + (all as f64 / few as f64).ln());
    }
    println!("{reduced} nets have automorphisms: geometric mean {:.1}", (factor / f64::from(reduced)).exp());
    assert!(reduced > 5);
}

#[test]
fn what_is_asked_of_one_place_keeps_it_where_it_is() {
    let system = NetSystem::new(generate("philosophers", 4).expect("a net"));
    let observe = system.observe().expect("places have names");
    let automorphisms = |text: &str| {
        let property =
            deltamark_logic::reachable(None, text, observe).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        symmetry(&system, &[property]).map_or(0, |symmetry| symmetry.automorphisms())
    };
    let all = automorphisms("fork_1 + fork_2 + fork_3 + fork_4 = 2");
    assert!(all >= 3, "{all} automorphisms");
    assert_eq!(automorphisms("fork_1 + fork_2 + fork_3 + 2 * fork_4 = 2"), automorphisms("fork_4 = 1"));
    assert_eq!(automorphisms("fork_1 = 0 and fork_2 = 0 and fork_3 = 0 and fork_4 = 0"), all);
    assert!(automorphisms("fork_4 = 1") < all);
}

#[test]
fn other_models_are_refused() {
    let system = NetSystem::new(deltamark_nets::tina::parse("pl a (1)\ntr t a -> b\n").expect("a net"));
    let error = Check::new(&system).deadlock_free().reduce(Reduce::Symmetry).run().err().map(|error| error.to_string());
    let why = "`--reduce symmetry` is not possible here: no automorphism of the net was found that keeps what is asked";
    assert_eq!(error.as_deref(), Some(why));
}
