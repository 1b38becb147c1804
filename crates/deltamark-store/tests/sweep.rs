//! Sweeps over the window of layers: against the oracle, with measures good and bad.

use deltamark_core::{
    Action, Block, Budget, Control, Edge, Goal, Limits, Measure, Outcome, Predicate, Property, Rank, Recorder,
    Remember, Scratch, Stop, System, Verdict, Window, hash::mix, property::Undefined,
};
use deltamark_search::{SweepTask, Swept, run_sweep};
use deltamark_store::sweep::layers::Layers;
use deltamark_testkit::oracle::{Explored, explore};
use deltamark_testkit::random::RandomGraph;
use deltamark_testkit::systems::{Counters, Still, Workers};
use std::collections::HashMap;
use std::sync::Arc;

/// A measure that is a function of the state's hash, which outlives a recoding.
struct ByHash<F>(&'static str, F);

impl<F: Fn(u64) -> Rank + Send + Sync> Measure for ByHash<F> {
    fn text(&self) -> String {
        self.0.into()
    }

    fn ranks(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, out: &mut Vec<Rank>) {
        out.extend(block.states().iter().map(|state| (self.1)(system.hash(scratch, state))));
    }
}

/// Measures that know what they measure, and such as do not.
fn measures(system: &dyn System, expected: &Explored) -> Vec<Box<dyn Measure>> {
    let mut scratch = system.scratch();
    let hashes = expected.states.iter().map(|state| system.hash(&mut scratch, state));
    let distances: HashMap<u64, Rank> =
        hashes.zip(expected.distances.iter().map(|&distance| distance.into())).collect();
    let distances = Arc::new(distances);
    let closer = Arc::clone(&distances);
    let coarse = Arc::clone(&distances);
    vec![
        Box::new(ByHash("constant", |_| 7)),
        Box::new(ByHash("random", |hash| mix(hash).into())),
        Box::new(ByHash("random, coarse", |hash| Rank::from(mix(hash) % 3) - 1)),
        Box::new(ByHash("distance", move |hash| distances[&hash])),
        Box::new(ByHash("distance, decreasing", move |hash| -closer[&hash])),
        Box::new(ByHash("distance in fives", move |hash| coarse[&hash] / 5)),
    ]
}

type Fresh = fn() -> Box<dyn System>;

const SYSTEMS: &[(&str, Fresh)] = &[
    ("still", || Box::new(Still)),
    ("workers 2, 2, 2", || Box::new(Workers::new(2, 2, 2))),
    ("counters 3, 9", || Box::new(Counters::new(3, 9))),
    ("random 1", || Box::new(RandomGraph::new(1, 40))),
    ("random 2", || Box::new(RandomGraph::new(2, 300))),
    ("random 3", || Box::new(RandomGraph::new(3, 900))),
    ("random 4", || Box::new(RandomGraph::new(4, 900))),
    ("random 5", || Box::new(RandomGraph::new(5, 2000))),
];

/// The graph as it was handed over.
#[derive(Default)]
struct Graph {
    edges: Vec<Option<Vec<Edge>>>,
}

impl Recorder for Graph {
    fn record(&mut self, number: u64, edges: &[Edge]) -> Result<(), String> {
        let number = number as usize;
        if self.edges.len() <= number {
            self.edges.resize(number + 1, None);
        }
        assert!(self.edges[number].replace(edges.to_vec()).is_none(), "every number is recorded once");
        Ok(())
    }
}

fn sweep(
    system: &dyn System,
    measure: &dyn Measure,
    properties: &[Property],
    control: &Control,
    recorder: Option<&mut dyn Recorder>,
) -> (Outcome, Swept) {
    let budget = Arc::clone(&control.budget);
    let window = |remember: Remember| Box::new(Layers::new(system, &budget, remember)) as Box<dyn Window>;
    let task = SweepTask {
        system,
        window: &window,
        measure,
        properties,
        control,
        explore_all: true,
        observer: None,
        recorder: recorder.map(|recorder| recorder as &mut dyn Recorder),
    };
    let result = run_sweep(task);
    assert_eq!(control.budget.used(), 0, "all memory is given back");
    result
}

/// The state of each number, by following the edges from the initial states; each number stands
/// for one state, and its edges are all steps of that state: the graph is bisimilar to the real one.
fn states_of(system: &dyn System, expected: &Explored, graph: &Graph) -> Vec<usize> {
    let mut successors: Vec<Vec<(Action, usize)>> = vec![Vec::new(); expected.states.len()];
    for edge in &expected.edges {
        successors[edge.source].push((edge.action, edge.target));
    }
    successors.iter_mut().for_each(|list| list.sort_unstable());
    let mut of: Vec<Option<usize>> = vec![None; graph.edges.len()];
    let mut open: Vec<usize> = (0..expected.initial).collect();
    open.iter().for_each(|&number| of[number] = Some(number));
    while let Some(number) = open.pop() {
        let state = of[number].expect("it was reached");
        let edges = graph.edges[number].as_ref().expect("every number is recorded");
        let mut found: Vec<(Action, u64)> = edges.iter().map(|edge| (edge.action, edge.target)).collect();
        found.sort_unstable();
        assert_eq!(found.len(), successors[state].len(), "a number has all steps of its state");
        for (&(action, target), &(expected_action, expected_target)) in found.iter().zip(&successors[state]) {
            assert_eq!(action, expected_action);
            match of[target as usize] {
                None => {
                    of[target as usize] = Some(expected_target);
                    open.push(target as usize);
                }
                Some(known) => assert_eq!(known, expected_target, "a number stands for one state"),
            }
        }
    }
    let _ = system;
    of.into_iter().map(|state| state.expect("every number is reached")).collect()
}

#[test]
fn every_measure_ends_and_gives_a_graph_that_is_bisimilar() {
    for (name, fresh) in SYSTEMS {
        let oracle = fresh();
        let expected = explore(&*oracle);
        for measure in measures(&*oracle, &expected) {
            let label = format!("{name}, {}", measure.text());
            let mut graph = Graph::default();
            let control = Control::new();
            let (outcome, swept) = sweep(&*fresh(), &*measure, &[], &control, Some(&mut graph));
            assert_eq!(outcome.stopped_by, None, "{label}");
            assert_eq!(graph.edges.len() as u64, outcome.statistics.states, "{label}");
            assert_eq!(outcome.statistics.expanded, outcome.statistics.states, "{label}");
            let states = states_of(&*oracle, &expected, &graph);
            let mut seen = vec![0u64; expected.states.len()];
            states.iter().for_each(|&state| seen[state] += 1);
            assert!(seen.iter().all(|&count| count > 0), "{label}: every state has a number");
            let repeated = seen.iter().any(|&count| count > 1);
            assert!(!repeated || swept.unfolding, "{label}: an unfolding says so");
            assert!(seen.iter().all(|&count| count <= swept.sweeps), "{label}: once a sweep at most");
            let edges: u64 = graph.edges.iter().flatten().map(|edges| edges.len() as u64).sum();
            assert_eq!(edges, outcome.statistics.edges, "{label}");
            let dead = states.iter().filter(|state| expected.deadlocks.contains(state)).count() as u64;
            assert_eq!(outcome.statistics.deadlocks, dead, "{label}");
            if !swept.unfolding {
                assert_eq!(outcome.statistics.states, expected.states.len() as u64, "{label}");
                assert_eq!(outcome.statistics.edges, expected.edges.len() as u64, "{label}");
            }
            assert!(swept.peak_states <= outcome.statistics.states, "{label}");
            assert!(swept.peak_bytes <= control.budget.peak(), "{label}");
        }
    }
}

/// Whether a state has this hash.
struct Is(u64);

impl Predicate for Is {
    fn evaluate(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, _: u64) -> Result<u64, Undefined> {
        let bit = |(index, state)| u64::from(system.hash(scratch, state) == self.0) << index;
        Ok(block.states().iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit))
    }
}

#[test]
fn answers_and_traces_are_right_with_every_measure() {
    for (name, fresh) in SYSTEMS {
        let oracle = fresh();
        let expected = explore(&*oracle);
        let mut scratch = oracle.scratch();
        let hash = oracle.hash(&mut scratch, &expected.states[expected.states.len() - 1]);
        for measure in measures(&*oracle, &expected) {
            let label = format!("{name}, {}", measure.text());
            let property = |goal| Property { name: "p".into(), text: "p".into(), goal };
            let properties = [
                Property::deadlock_free(),
                Property::fault_free(),
                property(Goal::Reachable(Box::new(Is(hash)))),
                property(Goal::Reachable(Box::new(Is(!hash)))),
            ];
            let system = fresh();
            let (outcome, _) = sweep(&*system, &*measure, &properties, &Control::new(), None);
            let verdicts: Vec<&Verdict> = outcome.properties.iter().map(|property| &property.verdict).collect();
            let violated = |verdict: &Verdict| matches!(verdict, Verdict::Violated(Some(_), _));
            assert_eq!(violated(verdicts[0]), !expected.deadlocks.is_empty(), "{label}");
            assert_eq!(violated(verdicts[1]), !expected.faults.is_empty(), "{label}");
            assert!(matches!(verdicts[3], Verdict::Violated(None, None)), "{label}");
            let Verdict::Holds(Some(trace)) = verdicts[2] else { panic!("{label}: {:?}", verdicts[2]) };
            let replay = trace.replay(&*system).expect("a trace replays");
            let last = replay.states.last().expect("a trace has a state");
            assert_eq!(system.hash(&mut system.scratch(), last), hash, "{label}");
        }
    }
}

#[test]
fn limits_are_kept_to_and_told() {
    let system = RandomGraph::new(3, 900);
    let measure = ByHash("random", |hash| Rank::from(mix(hash) % 16));
    let properties = [Property { name: "p".into(), text: "p".into(), goal: Goal::Reachable(Box::new(Is(0))) }];
    for limit in [1, 2, 100, 1000] {
        let control = Control { limits: Limits { states: Some(limit), ..Limits::default() }, ..Control::new() };
        let (outcome, _) = sweep(&system, &measure, &properties, &control, None);
        assert_eq!(outcome.stopped_by, Some(Stop::States));
        assert!(outcome.statistics.states <= limit, "{}", outcome.statistics.states);
        assert!(matches!(outcome.properties[0].verdict, Verdict::Unknown));
    }
    for bytes in [100, 1000, 10_000] {
        let control = Control { budget: Arc::new(Budget::new(bytes)), ..Control::new() };
        let (outcome, _) = sweep(&system, &measure, &properties, &control, None);
        assert_eq!(outcome.stopped_by, Some(Stop::Memory), "{bytes}");
        assert!(matches!(outcome.properties[0].verdict, Verdict::Unknown));
    }
}

#[test]
fn a_recorder_that_fails_ends_the_run() {
    struct Broken;
    impl Recorder for Broken {
        fn record(&mut self, number: u64, _: &[Edge]) -> Result<(), String> {
            if number > 20 { Err("no room".into()) } else { Ok(()) }
        }
    }
    let measure = ByHash("constant", |_| 0);
    let (outcome, swept) = sweep(&RandomGraph::new(3, 900), &measure, &[], &Control::new(), Some(&mut Broken));
    assert_eq!(swept.unrecorded.as_deref(), Some("no room"));
    assert!(outcome.stopped_by.is_some());
}

/// Whether the numbers of a graph and the states of the real one are bisimilar, by another argument than [`states_of`]: both are thrown together,
/// and classes are refined by what leads where until nothing changes. Every initial number must then be in the class of the state it
/// stands for, and every class hold members of both.
mod refinement {
    use super::*;

    /// The class of each node, given its labelled edges: nodes are in one class if, and only if, they are bisimilar.
    fn classes(edges: &[Vec<(Action, usize)>]) -> Vec<usize> {
        let (mut class, mut count) = (vec![0; edges.len()], 1);
        loop {
            let mut numbers: HashMap<(usize, Vec<(Action, usize)>), usize> = HashMap::new();
            let refined: Vec<usize> = (0..edges.len())
                .map(|node| {
                    let mut leads: Vec<_> =
                        edges[node].iter().map(|&(action, target)| (action, class[target])).collect();
                    leads.sort_unstable();
                    leads.dedup();
                    let next = numbers.len();
                    *numbers.entry((class[node], leads)).or_insert(next)
                })
                .collect();
            if numbers.len() == count {
                return refined;
            }
            (class, count) = (refined, numbers.len());
        }
    }

    #[test]
    fn classes_are_those_of_bisimilarity() {
        // Two loops of different length, and one that ends.
        let edge = |action: u32, target: usize| (Action(action), target);
        let class = classes(&[vec![edge(1, 1)], vec![edge(1, 0)], vec![edge(1, 2)], vec![edge(1, 4)], vec![]]);
        assert!(class[0] == class[1] && class[1] == class[2]);
        assert!(class[0] != class[3] && class[3] != class[4] && class[0] != class[4]);
    }

    #[test]
    fn bad_measures_of_small_systems_give_bisimilar_graphs() {
        let mut unfoldings = 0;
        for seed in 0..60 {
            let system = RandomGraph::new(1000 + seed, 5 + seed as usize);
            let expected = explore(&system);
            for measure in measures(&system, &expected) {
                let label = format!("seed {seed}, {}", measure.text());
                let mut graph = Graph::default();
                let (_, swept) = sweep(&system, &*measure, &[], &Control::new(), Some(&mut graph));
                unfoldings += u32::from(swept.unfolding && graph.edges.len() > expected.states.len());
                let real = expected.states.len();
                let mut edges = vec![Vec::new(); real];
                expected.edges.iter().for_each(|edge| edges[edge.source].push((edge.action, edge.target)));
                edges.extend(graph.edges.iter().map(|recorded| {
                    let recorded = recorded.as_ref().expect("every number is recorded");
                    recorded.iter().map(|edge| (edge.action, real + edge.target as usize)).collect()
                }));
                let class = classes(&edges);
                for initial in 0..expected.initial {
                    assert_eq!(class[initial], class[real + initial], "{label}: initial state {initial}");
                }
                let sorted = |class: &[usize]| {
                    let mut class = class.to_vec();
                    class.sort_unstable();
                    class.dedup();
                    class
                };
                assert_eq!(sorted(&class[..real]), sorted(&class[real..]), "{label}");
            }
        }
        assert!(unfoldings > 60, "only {unfoldings} graphs hold states twice");
    }
}

/// Every measure of random nets, with all edges and with some skipped, against the dull explorer.
mod random_nets {
    use super::*;
    use deltamark_core::{Observable, Progress, Weighted};
    use deltamark_nets::NetSystem;
    use deltamark_testkit::random::bounded_nets;
    use proptest::prelude::*;

    /// The sum of these terms, with what each action adds to it.
    fn weighted(system: &NetSystem, terms: &[(Observable, i64)]) -> Box<dyn Measure> {
        let gains = system.gains_of(terms).expect("small numbers").into_iter().map(Rank::from).collect();
        let named = terms.iter().map(|&(observable, weight)| (format!("p{}", observable.index), observable, weight));
        Box::new(Weighted::new(named, Some(gains)))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        /// Transitions that would regress are taken out of the net, so most of what is left advances or stays, in all mixtures.
        #[test]
        fn what_a_monotone_sweep_leaves_out_is_not_missed(
            mut net in bounded_nets(10, 16),
            weights in proptest::collection::vec(-1i64..2, 10),
        ) {
            let terms: Vec<_> = (0..).zip(&weights).map(|(index, &weight)| {
                (deltamark_core::Observable { index, kind: deltamark_core::ObservableKind::Int }, weight)
            }).filter(|(observable, _)| (observable.index as usize) < net.places.len()).collect();
            let gain = |(place, count): &(u32, i64)| weights[*place as usize] * count;
            let kept = net.transitions.iter().filter(|t| net.effect(t).iter().map(gain).sum::<i64>() >= 0);
            net.transitions = kept.cloned().collect();
            let oracle = NetSystem::new(net.clone());
            let measure = weighted(&oracle, &terms);
            let expected = explore(&oracle);
            let (outcome, swept) = sweep(&NetSystem::new(net), &*measure, &[], &Control::new(), None);
            prop_assert!(outcome.complete() && !swept.unfolding && swept.sweeps == 1);
            prop_assert_eq!(outcome.statistics.states, expected.states.len() as u64);
            prop_assert_eq!(outcome.statistics.edges, expected.edges.len() as u64);
            prop_assert_eq!(outcome.statistics.deadlocks, expected.deadlocks.len() as u64);
        }

        #[test]
        fn agree(net in bounded_nets(7, 8), weights in proptest::collection::vec(-3i64..4, 7)) {
            let oracle = NetSystem::new(net.clone());
            let expected = explore(&oracle);
            let mut measures = deltamark_search::linear::measures(&oracle, &Control::new()).unwrap();
            let terms: Vec<_> = (0..).zip(weights).map(|(index, weight)| {
                (deltamark_core::Observable { index, kind: deltamark_core::ObservableKind::Int }, weight)
            }).filter(|(observable, _)| (observable.index as usize) < net.places.len()).collect();
            measures.push(weighted(&oracle, &terms));
            for measure in measures {
                let (outcome, swept) = sweep(&NetSystem::new(net.clone()), &*measure, &[], &Control::new(), None);
                prop_assert!(outcome.complete());
                let monotone = measure.directions().is_some_and(|directions| directions.regress == 0);
                prop_assert!(!monotone || !swept.unfolding);
                let mut graph = Graph::default();
                let (all, _) = sweep(&NetSystem::new(net.clone()), &*measure, &[], &Control::new(), Some(&mut graph));
                let states = states_of(&oracle, &expected, &graph);
                let mut seen = vec![false; expected.states.len()];
                states.iter().for_each(|&state| seen[state] = true);
                prop_assert!(seen.iter().all(|&seen| seen));
                if !swept.unfolding {
                    for outcome in [&outcome, &all] {
                        prop_assert_eq!(outcome.statistics.states, expected.states.len() as u64);
                        prop_assert_eq!(outcome.statistics.edges, expected.edges.len() as u64);
                        prop_assert_eq!(outcome.statistics.deadlocks, expected.deadlocks.len() as u64);
                    }
                }
            }
        }
    }
}
