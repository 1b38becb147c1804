//! Searches for accepting cycles on random graphs, against components found by definition.

use deltamark_core::{
    Action, Batch, Budget, Control, Describe, Fired, Property, Scratch, Slot, Stop, System, Value, Verdict, Widen,
    Width,
};
use deltamark_search::{Acceptance, Accepted, Task, Threads, run_accepting, run_cndfs, run_owcty};
use deltamark_testkit::random::Rng;
use deltamark_testkit::stores::KINDS;

/// A graph whose edges have an action each.
struct Given {
    /// Of each state its edges: action and target.
    edges: Vec<Vec<(u32, u32)>>,
    /// Of each action the sets that it is in.
    sets: Vec<u64>,
    all: u64,
}

impl Given {
    /// Edges lead on, and few of them back; few are in a set, so that either answer is common.
    fn random(seed: u64) -> Self {
        let mut random = Rng::new(seed);
        let count = 1 + random.below(if seed.is_multiple_of(4) { 900 } else { 40 });
        let (sets, back, rare) = (random.below(4) as u32, 1 + random.below(60), 1 + random.below(8));
        let hub = random.below(3) == 0;
        let mut graph = Given { edges: vec![Vec::new(); count], sets: Vec::new(), all: (1 << sets) - 1 };
        for state in 0..count {
            for place in 0..1 + random.below(3) {
                let target = match random.below(back) {
                    0 => random.below(state + 1),
                    // Many edges into one state.
                    1 if hub => count / 2,
                    _ if place == 0 => state + 1,
                    _ => state + 1 + random.below(30),
                };
                if target < count {
                    let number = graph.sets.len() as u32;
                    graph.edges[state].push((number, target as u32));
                    let bits = (0..sets).filter(|_| random.below(rare) == 0).fold(0, |bits, set| bits | 1 << set);
                    graph.sets.push(bits);
                }
            }
        }
        graph
    }

    /// How many states can be reached, and how many edges they have.
    fn counts(&self) -> (u64, u64) {
        let (mut seen, mut waiting) = (vec![false; self.edges.len()], vec![0]);
        seen[0] = true;
        let mut counts = (0, 0);
        while let Some(state) = waiting.pop() {
            counts = (counts.0 + 1, counts.1 + self.edges[state].len() as u64);
            for &(_, target) in &self.edges[state] {
                if !std::mem::replace(&mut seen[target as usize], true) {
                    waiting.push(target as usize);
                }
            }
        }
        counts
    }

    /// Whether some state that can be reached is on a cycle with an edge of each set.
    fn is_accepting(&self) -> bool {
        let reach = |from: usize| {
            let (mut seen, mut waiting) = (vec![false; self.edges.len()], vec![from]);
            while let Some(state) = waiting.pop() {
                for &(_, target) in &self.edges[state] {
                    if !std::mem::replace(&mut seen[target as usize], true) {
                        waiting.push(target as usize);
                    }
                }
            }
            seen
        };
        let mut reached = reach(0);
        reached[0] = true;
        let from: Vec<Vec<bool>> = (0..self.edges.len()).map(reach).collect();
        (0..self.edges.len()).filter(|&state| reached[state] && from[state][state]).any(|state| {
            let inside = |other: usize| from[state][other] && from[other][state];
            let mut taken = 0;
            for (source, row) in self.edges.iter().enumerate().filter(|(source, _)| inside(*source)) {
                let _ = source;
                row.iter().filter(|edge| inside(edge.1 as usize)).for_each(|edge| taken |= self.sets[edge.0 as usize]);
            }
            taken == self.all
        })
    }
}

impl System for Given {
    fn width(&self) -> Width {
        Width::Fixed(1)
    }

    fn initial(&self, _: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push(Action(0), &[0]);
        Ok(())
    }

    fn successors(&self, _: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        self.edges[source[0] as usize].iter().for_each(|&(action, target)| out.push(Action(action), &[target]));
        Ok(())
    }

    fn fire(&self, _: &mut Scratch, source: &[Slot], action: Action, to: &mut Vec<Slot>) -> Result<Fired, Widen> {
        to.clear();
        let edge = self.edges[source[0] as usize].iter().find(|edge| edge.0 == action.0);
        to.extend(edge.map(|edge| edge.1));
        Ok(if edge.is_some() { Fired::Done } else { Fired::Disabled })
    }

    fn describe(&self) -> &dyn Describe {
        self
    }
}

impl Describe for Given {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        vec![("number".into(), Value::Int(state[0].into()))]
    }

    fn action(&self, _: &[Slot], action: Action) -> String {
        format!("edge {}", action.0)
    }
}

/// A search for accepting cycles.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Depth-first by one thread.
    Components,
    /// Depth-first by this many threads.
    Nested(usize),
    /// In passes by this many threads.
    Passes(usize),
}

/// Searches a graph over a store of this kind.
fn searched(graph: &Given, kind: &str, way: Way, limit: u64) -> Accepted {
    let control = Control { budget: Budget::new(limit).into(), ..Control::new() };
    let make = KINDS.iter().find(|(name, _)| *name == kind).expect("a kind of stores").1;
    let store = make(graph, control.budget.clone());
    let properties: &[Property] = &[Property::fault_free()];
    let task =
        Task { system: graph, store: &*store, properties, control: &control, explore_all: false, observer: None };
    let of = |action: Action| graph.sets[action.0 as usize];
    // What an automaton could tell: some states without edges are on no cycle.
    let recurs = |state: &[Slot]| !graph.edges[state[0] as usize].is_empty();
    let acceptance = Acceptance { all: graph.all, of: &of, recurs: &recurs, fairness: None };
    match way {
        Way::Components => run_accepting(task, &acceptance),
        Way::Nested(count) => run_cndfs(task, &acceptance, Threads { count, small: 0 }),
        Way::Passes(count) => run_owcty(task, &acceptance, Threads { count, small: 0 }),
    }
}

#[test]
fn cycles_are_found_where_there_are_some() {
    let mut found = [0; 2];
    for seed in 0..200 {
        let graph = Given::random(seed);
        let expected = graph.is_accepting();
        found[usize::from(expected)] += 1;
        for kind in ["reference", "scattered"] {
            use Way::{Components, Nested, Passes};
            for way in [Components, Nested(1), Nested(2), Nested(5), Passes(1), Passes(3)] {
                let told = format!("seed {seed} over {kind}: {way:?}");
                let Accepted { outcome, lasso } = searched(&graph, kind, way, u64::MAX);
                let stop = if expected { Some(Stop::Answered) } else { None };
                assert_eq!(outcome.stopped_by, stop, "{told}");
                assert_eq!(lasso.is_some(), expected, "{told}");
                if !expected {
                    let (states, edges) = graph.counts();
                    let counted = &outcome.statistics;
                    assert_eq!((counted.states, counted.expanded, counted.edges), (states, states, edges), "{told}");
                }
                if let Some(lasso) = lasso {
                    let lasso = lasso.expect("memory");
                    let cycle = &lasso.actions[lasso.cycle().expect("a cycle")..];
                    let taken = cycle.iter().fold(0, |sets, action| sets | graph.sets[action.0 as usize]);
                    assert_eq!(taken & graph.all, graph.all, "{told}");
                }
            }
        }
    }
    assert!(found.iter().all(|&count| count > 40), "{found:?}");
}

#[test]
fn searches_by_several_threads_end_at_the_limit_on_memory_and_answer_nothing_then() {
    for way in [Way::Passes(2), Way::Nested(2)] {
        let graph = Given::random(4);
        let whole = searched(&graph, "reference", way, u64::MAX);
        let (mut full, mut whole_again) = (0, 0);
        for limit in (0..400_000).step_by(1_000) {
            let Accepted { outcome, lasso } = searched(&graph, "reference", way, limit);
            match outcome.stopped_by {
                Some(Stop::Memory) => {
                    let unknown = matches!(outcome.properties[0].verdict, Verdict::Unknown);
                    assert!(lasso.is_none() && unknown, "{way:?}, {limit}");
                    full += 1;
                }
                stop => {
                    let found = (whole.outcome.stopped_by, whole.lasso.is_some());
                    assert_eq!((stop, lasso.is_some()), found, "{way:?}, {limit}");
                    whole_again += 1;
                }
            }
        }
        assert!(full > 10 && whole_again > 10, "{way:?}: {full} {whole_again}");
    }
}

#[test]
#[ignore = "minutes; run by scripts/long"]
fn searches_by_several_threads_find_cycles_on_very_many_graphs() {
    for seed in 1_000..6_000 {
        let graph = Given::random(seed);
        let expected = graph.is_accepting();
        for way in [Way::Nested(2), Way::Nested(4), Way::Passes(2)] {
            let Accepted { outcome, lasso } = searched(&graph, "scattered", way, u64::MAX);
            let stop = if expected { Some(Stop::Answered) } else { None };
            assert_eq!((outcome.stopped_by, lasso.is_some()), (stop, expected), "seed {seed}: {way:?}");
        }
    }
}
