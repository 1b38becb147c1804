//! Nets as systems: random nets against the naive explorer, the conformance suite for systems, and nets with known
//! results from outside.

use deltamark_core::{BLOCK, Batch, Block, Control, Limits, Property, Scratch, StateId, System};
use deltamark_nets::{Arc, Net, NetSystem, Place, Transition, generate::generate, pnml, tina};
use deltamark_search::{Observer, Search, Task, run};
use deltamark_testkit::conformance::system::check_system_up_to;
use deltamark_testkit::net_oracle::explore_net;
use deltamark_testkit::random::{bounded_nets, nets, with_priorities};
use deltamark_testkit::stores::ReferenceStore;
use deltamark_testkit::{check_portable, check_system};
use proptest::prelude::*;

/// The most tokens seen in each place and in a marking.
struct Most {
    places: Vec<u64>,
    marking: u64,
}

impl Observer for Most {
    fn expanded(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        _: &Batch,
        _: &[deltamark_core::Insert],
    ) {
        let observe = system.observe().expect("nets can be observed");
        let mut sums = [0; BLOCK];
        let mut values = [0; BLOCK];
        for (place, name) in observe.names().iter().enumerate() {
            observe.read_block(scratch, block, observe.resolve(name).expect("a place"), &mut values);
            for (sum, &value) in sums.iter_mut().zip(&values).take(block.len()) {
                *sum += value as u64;
                self.places[place] = self.places[place].max(value as u64);
            }
        }
        self.marking = self.marking.max(sums[..block.len()].iter().copied().max().unwrap_or(0));
    }
}

fn agrees(net: Net, search: Search) -> Result<(), TestCaseError> {
    let expected = explore_net(&net, 3000);
    if !expected.complete {
        return Ok(());
    }
    let mut most = Most { places: vec![0; net.places.len()], marking: 0 };
    let system = NetSystem::new(net);
    let control = Control::new();
    let store = ReferenceStore::new(control.budget.clone());
    let properties = [Property::deadlock_free()];
    let outcome = run(
        search,
        Task {
            system: &system,
            store: &store,
            properties: &properties,
            control: &control,
            explore_all: true,
            observer: Some(&mut most),
        },
    );
    let found = &outcome.statistics;
    prop_assert!(outcome.complete());
    prop_assert_eq!(found.states, expected.markings.len() as u64);
    prop_assert_eq!(found.edges, expected.edges);
    prop_assert_eq!(found.deadlocks, expected.deadlocks);
    prop_assert_eq!(&most.places, &expected.most_in_place);
    prop_assert_eq!(most.marking, expected.most_in_marking);
    if search == Search::Bfs {
        prop_assert_eq!(found.depth, expected.depth);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_nets_agree_with_the_dull_explorer(net in nets(6, 7)) {
        agrees(net, Search::Bfs)?;
    }

    #[test]
    fn random_bounded_nets_agree_with_the_dull_explorer(net in bounded_nets(7, 8)) {
        agrees(net.clone(), Search::Bfs)?;
        agrees(net, Search::Dfs)?;
    }

    #[test]
    fn random_nets_with_priorities_agree_with_the_dull_explorer(net in with_priorities(bounded_nets(7, 8))) {
        agrees(net.clone(), Search::Bfs)?;
        agrees(net, Search::Dfs)?;
    }

    /// The suite for systems checks firing, undoing and enabledness separately.
    #[test]
    fn random_nets_with_priorities_conform(net in with_priorities(nets(5, 6))) {
        check_system_up_to(&NetSystem::new(net), 300);
    }

    #[test]
    fn random_nets_conform(net in nets(5, 6)) {
        check_system_up_to(&NetSystem::new(net.clone()), 300);
        check_portable(|| NetSystem::new(net.clone()));
    }
}

#[test]
fn generated_nets_conform() {
    for (family, size) in [("philosophers", 5), ("kanban", 1), ("database-managers", 4)] {
        let system = || NetSystem::new(generate(family, size).expect("a family"));
        check_system(&system());
        check_portable(system);
    }
}

fn place(name: &str, initial: u32) -> Place {
    Place { id: name.into(), name: name.into(), initial }
}

fn arcs(list: &[(u32, u32)]) -> Vec<Arc> {
    list.iter().map(|&(place, weight)| Arc { place, weight }).collect()
}

/// Counts that grow far beyond those of the sample: fields widen repeatedly.
#[test]
fn fields_widen_exactly() {
    // `slow` gains a token only when `fuel` is burnt from a long chain, so short walks miss it.
    let step = |name: &str, inputs: &[(u32, u32)], outputs: &[(u32, u32)]| Transition {
        id: name.into(),
        name: name.into(),
        inputs: arcs(inputs),
        outputs: arcs(outputs),
        ..Transition::default()
    };
    for weight in [1, 3, 70_000, u32::MAX] {
        let net = Net {
            name: "burn".into(),
            places: vec![place("fuel", 60), place("ash", 0), place("heat", 0)],
            transitions: vec![step("burn", &[(0, 1)], &[(1, weight)]), step("warm", &[(0, 2)], &[(2, 1)])],
            declared_safe: true, // Untrue: a declaration is a hint, and must not matter.
            ..Net::default()
        };
        agrees(net.clone(), Search::Bfs).expect("the dull explorer's counts");
        agrees(net, Search::Dfs).expect("the dull explorer's counts");
    }
}

#[test]
fn a_net_without_end_is_stopped_by_the_limit() {
    let net = Net {
        name: "flood".into(),
        places: vec![place("spring", 1), place("lake", 0)],
        transitions: vec![Transition {
            id: "rain".into(),
            name: "rain".into(),
            reads: arcs(&[(0, 1)]),
            outputs: arcs(&[(1, 1)]),
            ..Transition::default()
        }],
        ..Net::default()
    };
    let system = NetSystem::new(net);
    let mut control = Control::new();
    control.limits = Limits { states: Some(100_000), ..Limits::default() };
    let store = ReferenceStore::new(control.budget.clone());
    let task =
        Task { system: &system, store: &store, properties: &[], control: &control, explore_all: true, observer: None };
    let outcome = run(Search::Bfs, task);
    assert_eq!(outcome.stopped_by, Some(deltamark_core::Stop::States));
    assert_eq!(outcome.statistics.states, 100_000);
}

#[test]
fn models_of_the_repository_conform() {
    for file in ["philosophers-5.pnml", "mutex.net", "producer-consumer.net"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(file);
        let Some(bytes) = std::fs::read(&path).ok() else { panic!("{} can be read", path.display()) };
        let parse = if file.ends_with(".net") { tina::parse_bytes } else { pnml::parse_bytes };
        check_system(&NetSystem::new(parse(&bytes).expect("a valid net")));
    }
}

/// Fields that outgrow their widths one after the other are widened together after a while: a run stays linear.
#[test]
fn widenings_are_few_however_many_places_outgrow_their_fields() {
    // The walks that estimate the widths begin like the search, so the places that grow come after a long path.
    let chain: String = (0..80).map(|i| format!("tr t{i} p{i} -> p{}\n", i + 1)).collect();
    let filled: String = (0..200).map(|i| format!("tr t{i} c{i} -> c{} p{i}*2\ntr u{i} x -> p{i}\n", i + 1)).collect();
    for (net, text) in [("chain", format!("pl p0 (2)\n{chain}")), ("filled", format!("pl c0 (1)\n{filled}"))] {
        let mut net_of = deltamark_nets::tina::parse(&text).unwrap_or_else(|found| panic!("{net}: {found:?}"));
        // Every field begins with one bit.
        net_of.declared_safe = true;
        let system = NetSystem::new(net_of);
        let widenings = deltamark_testkit::oracle::explore(&system).widenings;
        assert!((33..=42).contains(&widenings), "{net}: {widenings} widenings");
    }
}

/// Hashes are looked up byte by byte, by half bytes or bit by bit, as the number of words makes it quicker; those that
/// steps add up, those of lists and those of single states are equal all the same.
#[test]
fn hashes_agree_however_wide_states_are() {
    for (places, words) in [(20, 1..=1), (100, 2..=2), (700, 3..=16), (3_000, 17..=256), (20_000, 257..=400)] {
        // Half of the places are marked, so that words are full; the first eight tokens can move, the others cannot.
        let pair = |i: u32| match i < 8 {
            true => format!("tr t{i} a{i} -> b{i}\npl a{i} (1)\n"),
            false => format!("tr t{i} a{i} b{i} ->\npl a{i} (1)\n"),
        };
        let mut net = tina::parse(&(0..places / 2).map(pair).collect::<String>()).expect("a net");
        net.declared_safe = true;
        let system = NetSystem::new(net);
        let mut scratch = system.scratch();
        let (mut block, mut batch) = (Block::new(system.width()), Batch::new(system.width()));
        system.initial(&mut scratch, &mut batch).expect("the layout holds the initial marking");
        assert!(words.contains(&batch.target(0).len().div_ceil(2)), "{places}: {:?}", system.width());
        for _ in 0..3 {
            block.reset(system.width());
            for (number, state) in (0..).zip(batch.targets().iter().take(BLOCK)) {
                block.push(StateId::new(number), state);
            }
            batch.reset(system.width());
            system.expand(&mut scratch, &block, &mut batch).expect("a bit a place");
            let mut hashes = Vec::new();
            system.hashes(&mut scratch, batch.targets(), &mut hashes);
            assert_eq!(hashes, batch.hashes(), "{places}");
            let single: Vec<_> = batch.targets().iter().map(|state| system.hash(&mut scratch, state)).collect();
            assert_eq!(hashes, single, "{places}");
        }
    }
}
