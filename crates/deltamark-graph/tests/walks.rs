//! Walks show every state of the graph under its number, whatever the system: states of any width, layouts that
//! widen, several initial states, steps that cannot be undone; with plenty of memory and with little.

use deltamark_core::{Block, Budget, Control, Edge, Recoding, Recorder, Scratch, Stop, System, Widen};
use deltamark_graph::walk::Ended;
use deltamark_graph::{About, Graph, Recording, Visitor, Walk, WalkError, Way};
use deltamark_testkit::systems::{Cells, Counters, Odometer, Stacks, Still, Workers};
use deltamark_testkit::{Explored, Forward, RandomGraph, explore};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A fresh system each time: layouts begin narrow again.
type Make = Box<dyn Fn() -> Box<dyn System>>;

fn systems() -> Vec<(&'static str, Make)> {
    fn make<S: System + 'static>(make: impl Fn() -> S + 'static) -> Make {
        Box::new(move || Box::new(make()))
    }
    let mut systems = vec![
        ("still", make(|| Still)),
        ("counters", make(|| Counters::new(4, 9))),
        ("counters, forwards", make(|| Forward::new(Box::new(Counters::new(4, 9))))),
        ("odometer", make(|| Odometer::new(&[5, 7, 4, 3], 3))),
        ("odometer, forwards", make(|| Forward::new(Box::new(Odometer::new(&[50, 7, 4], 3))))),
        ("stacks", make(|| Stacks::new(2, 3, 2))),
        ("stacks, forwards", make(|| Forward::new(Box::new(Stacks::new(2, 3, 2))))),
        ("workers", make(|| Workers::new(2, 2, 2))),
        ("cells", make(|| Cells::new(40, 3))),
    ];
    for seed in 0..20 {
        systems.push(("random", make(move || RandomGraph::new(seed, 200))));
    }
    systems
}

/// The graph of an exploration.
fn condensed(system: &dyn System, explored: &Explored) -> Graph {
    let mut recording = Recording::in_memory(Arc::new(Budget::unlimited()));
    let mut rows = vec![Vec::new(); explored.states.len()];
    for edge in &explored.edges {
        rows[edge.source].push(Edge { action: edge.action, target: edge.target as u64 });
    }
    for (number, row) in rows.iter().enumerate() {
        recording.record(number as u64, row).expect("room");
    }
    let mut batch = deltamark_core::Batch::new(system.width());
    system.initial(&mut system.scratch(), &mut batch).expect("a layout that held all states");
    let initial = (0..batch.len()).map(|index| explored.numbers[batch.target(index)] as u64).collect();
    recording.finish(About { initial, ..About::default() }).expect("a graph").0
}

/// Records the description of each state, and whether it has edges.
#[derive(Default)]
struct Notes<'a> {
    system: Option<&'a dyn System>,
    seen: BTreeMap<u64, (String, bool)>,
    widened: u64,
    most: usize,
}

impl Visitor for Notes<'_> {
    fn visit(&mut self, _: &mut Scratch, block: &Block, ends: u64) -> Result<bool, Widen> {
        let system = self.system.expect("a system");
        for (index, state) in block.states().iter().enumerate() {
            let words = format!("{:?}", system.describe().state(state));
            let end = ends >> index & 1 == 1;
            let before = self.seen.insert(block.id(index).get(), (words.clone(), end));
            assert!(before.is_none_or(|before| before == (words, end)), "a number is one state");
        }
        Ok(self.seen.len() < self.most)
    }

    fn widened(&mut self, _: &Recoding) {
        self.widened += 1;
    }
}

#[test]
fn every_state_is_shown_under_its_number() {
    for (name, make) in systems() {
        let system = make();
        let explored = explore(&*system);
        let graph = condensed(&*system, &explored);
        // Numbers of the file are those of the edges: found by walking along them by description.
        let mut expected: BTreeMap<String, u32> = BTreeMap::new();
        for state in &explored.states {
            *expected.entry(format!("{:?}", system.describe().state(state))).or_default() += 1;
        }
        let mut first: Option<BTreeMap<u64, (String, bool)>> = None;
        for way in [Way::Auto, Way::File, Way::Depth] {
            let fresh = make();
            let control = Control::new();
            let mut notes = Notes { system: Some(&*fresh), most: usize::MAX, ..Notes::default() };
            let mut walk = Walk::new(&graph, &*fresh, None, &control).expect("a walk");
            assert_eq!(walk.run(way, &mut notes), Ok(Ended::Whole), "{name}, {way:?}");
            assert!(walk.widenings() >= notes.widened, "{name}, {way:?}");
            assert_eq!(control.budget.used(), 0, "{name}, {way:?}");
            let mut found: BTreeMap<String, u32> = BTreeMap::new();
            notes.seen.values().for_each(|(words, _)| *found.entry(words.clone()).or_default() += 1);
            assert!(found == expected, "{name}, {way:?}: other states");
            let ends = notes.seen.values().filter(|(_, end)| *end).count() as u64;
            assert_eq!(ends, graph.meta().ends, "{name}, {way:?}");
            match &first {
                Some(first) => assert!(*first == notes.seen, "{name}: {way:?} numbers differently"),
                None => first = Some(notes.seen),
            }
        }
    }
}

#[test]
fn with_little_memory_the_walk_goes_depth_first_and_then_gives_up() {
    let system = Odometer::new(&[20, 20, 10], 5);
    let graph = condensed(&system, &explore(&system));
    let run = |way, bytes| {
        let control = Control { budget: Arc::new(Budget::new(bytes)), ..Control::new() };
        let mut notes = Notes { system: Some(&system), most: usize::MAX, ..Notes::default() };
        let ended = Walk::new(&graph, &system, None, &control).expect("a walk").run(way, &mut notes).expect("a walk");
        assert_eq!(control.budget.used(), 0);
        (ended, notes.seen.len())
    };
    // Depth first takes a bit a state and a piece of the stack.
    let little = 4000 / 8 + 8 + (8 << 14);
    let needs = (0..).map(|step| 500 + 500 * step).find(|&bytes| run(Way::File, bytes).0 == Ended::Whole);
    let needs: u64 = needs.expect("enough memory");
    assert_eq!(run(Way::Depth, little), (Ended::Whole, 4000));
    assert_eq!(run(Way::Auto, little.max(needs)), (Ended::Whole, 4000));
    assert_eq!(run(Way::File, needs - 1000).0, Ended::Stopped(Stop::Memory));
    assert_eq!(run(Way::Auto, 400).0, Ended::Stopped(Stop::Memory));
}

#[test]
fn a_walk_ends_when_it_is_told_to() {
    let system = Odometer::new(&[20, 20, 10], 5);
    let graph = condensed(&system, &explore(&system));
    for way in [Way::File, Way::Depth] {
        let control = Control::new();
        let mut notes = Notes { system: Some(&system), most: 100, ..Notes::default() };
        let mut walk = Walk::new(&graph, &system, None, &control).expect("a walk");
        assert_eq!(walk.run(way, &mut notes), Ok(Ended::Enough));
        control.cancel.cancel();
        let mut notes = Notes { system: Some(&system), most: usize::MAX, ..Notes::default() };
        assert_eq!(walk.run(way, &mut notes), Ok(Ended::Stopped(Stop::Cancelled)));
    }
}

#[test]
fn a_graph_of_another_system_is_noticed() {
    let system = Odometer::new(&[5, 7, 4, 3], 3);
    let graph = condensed(&system, &explore(&system));
    let other = Stacks::new(1, 2, 1);
    let control = Control::new();
    for way in Way::ALL {
        let mut notes = Notes { system: Some(&other), most: usize::MAX, ..Notes::default() };
        let run = Walk::new(&graph, &other, None, &control).and_then(|mut walk| walk.run(*way, &mut notes));
        assert!(matches!(run, Err(WalkError::Misfit(_))), "{way:?}: {run:?}");
    }
}
