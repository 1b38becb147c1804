//! Graphs written and read back: every edge, the size, and damaged files.

use deltamark_core::{Action, Budget, Control, Edge, Recorder, Stop};
use deltamark_graph::block::Unpacked;
use deltamark_graph::graph::seal;
use deltamark_graph::{About, BitSet, FileError, Graph, ModelId, Recording, Reverse, components, levels};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// A graph in which every state is reachable from state 0: for each state its edges, by action.
type Plain = Vec<BTreeMap<u32, u64>>;

/// A random graph of at most `most` states.
fn graphs(most: usize) -> impl Strategy<Value = Plain> {
    let extra = prop::collection::vec((any::<u64>(), any::<u32>(), any::<u64>()), 0..4 * most);
    (1..most, 1u32..60, prop::collection::vec((any::<u64>(), any::<u32>()), most), extra, any::<bool>()).prop_map(
        |(states, actions, tree, extra, near)| {
            let mut graph: Plain = vec![BTreeMap::new(); states];
            for (child, &(parent, action)) in (1..states).zip(&tree) {
                let span = if near { child.min(5) } else { child };
                let parent = child - 1 - (parent as usize % span);
                let action = (0..).map(|more| action % actions + more).find(|a| !graph[parent].contains_key(a));
                graph[parent].insert(action.expect("an action that is free"), child as u64);
            }
            for (from, action, to) in extra {
                let from = from as usize % states;
                graph[from].entry(action % actions).or_insert(to % states as u64);
            }
            graph
        },
    )
}

/// Records a graph in the order given by `key`, under the numbers of the graph.
fn record(graph: &Plain, mut recording: Recording, key: impl Fn(u64) -> u64) -> (Graph, deltamark_graph::Written) {
    let mut order: Vec<u64> = (0..graph.len() as u64).collect();
    order.sort_by_key(|&number| key(number));
    for number in order {
        let edges =
            graph[number as usize].iter().rev().map(|(&action, &target)| Edge { action: Action(action), target });
        recording.record(number, &edges.collect::<Vec<_>>()).expect("room");
    }
    let model = ModelId { path: "a.net".into(), format: "tina".into(), ..ModelId::default() };
    recording.finish(About { initial: vec![0], model, ..About::default() }).expect("a graph")
}

fn memory() -> Recording {
    Recording::in_memory(Arc::new(Budget::unlimited()))
}

/// The numbers that breadth-first search gives, edges by action.
fn breadth_first(graph: &Plain) -> (Vec<u64>, u64) {
    let mut numbers = vec![u64::MAX; graph.len()];
    let (mut queue, mut next, mut depth) = (VecDeque::from([(0u64, 0u64)]), 1, 0);
    numbers[0] = 0;
    while let Some((state, level)) = queue.pop_front() {
        depth = level;
        for &target in graph[state as usize].values() {
            if numbers[target as usize] == u64::MAX {
                numbers[target as usize] = next;
                next += 1;
                queue.push_back((target, level + 1));
            }
        }
    }
    (numbers, depth)
}

/// All edges as the file has them, read state by state and block by block.
fn edges(graph: &Graph) -> BTreeSet<(u64, u32, u64)> {
    let mut found = BTreeSet::new();
    let mut row = Vec::new();
    for state in 0..graph.states() {
        graph.edges(state, &mut row).expect("edges");
        assert!(row.windows(2).all(|pair| pair[0].action < pair[1].action), "sorted by action");
        found.extend(row.iter().map(|edge| (state, edge.action.0, edge.target)));
    }
    let mut unpacked = Unpacked::default();
    let mut again = BTreeSet::new();
    for block in 0..graph.blocks() {
        graph.unpack(block, &mut unpacked).expect("a block");
        again.extend(
            unpacked.edges().iter().map(|(place, edge)| (64 * block + u64::from(*place), edge.action.0, edge.target)),
        );
    }
    assert!(found == again, "both ways of reading");
    found
}

fn renamed(graph: &Plain, numbers: &[u64]) -> BTreeSet<(u64, u32, u64)> {
    let row = |(from, row): (usize, &BTreeMap<u32, u64>)| {
        let to = |(&action, &target): (&u32, &u64)| (numbers[from], action, numbers[target as usize]);
        row.iter().map(to).collect::<Vec<_>>()
    };
    graph.iter().enumerate().flat_map(row).collect()
}

/// The states that can be reached from each.
fn reachable(graph: &Plain) -> Vec<BTreeSet<u64>> {
    let from = |start: usize| {
        let mut seen = BTreeSet::from([start as u64]);
        let mut stack = vec![start as u64];
        while let Some(state) = stack.pop() {
            stack.extend(graph[state as usize].values().filter(|&&target| seen.insert(target)));
        }
        seen
    };
    (0..graph.len()).map(from).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn graphs_come_back_numbered_breadth_first(graph in graphs(300), seed in any::<u64>()) {
        let (read, written) = record(&graph, memory(), |number| deltamark_core::hash::mix(number ^ seed));
        let (numbers, depth) = breadth_first(&graph);
        prop_assert_eq!(edges(&read), renamed(&graph, &numbers));
        prop_assert_eq!(read.meta().initial.clone(), vec![0]);
        prop_assert_eq!(read.meta().depth, Some(depth));
        prop_assert_eq!(read.meta().ends, graph.iter().filter(|row| row.is_empty()).count() as u64);
        prop_assert_eq!(written.bytes, read.bytes());
        prop_assert!(written.packed <= written.allowance() + 16, "{:?}, allowed {}", written, written.allowance());
    }

    #[test]
    fn paths_components_and_sources_are_those_of_a_dull_search(graph in graphs(60), goal in any::<u64>()) {
        let (read, _) = record(&graph, memory(), |number| number);
        let budget = Arc::new(Budget::unlimited());
        let control = Control { budget: Arc::clone(&budget), ..Control::new() };
        let (numbers, _) = breadth_first(&graph);
        let all = reachable(&graph);
        // A shortest path.
        let goal = numbers[goal as usize % graph.len()];
        let mut goals = BitSet::new(read.states(), &budget).expect("memory");
        goals.insert(goal);
        let path = levels::path_to(&read, &goals, &control).expect("a graph").expect("a path");
        let mut at = 0;
        let mut row = Vec::new();
        for action in &path.actions {
            read.edges(at, &mut row).expect("edges");
            at = row.iter().find(|edge| edge.action == *action).expect("the path's edge").target;
        }
        prop_assert_eq!((at, path.end), (goal, goal));
        // Components: states that reach each other.
        let mut classes: Vec<BTreeSet<u64>> = (0..graph.len())
            .map(|state| all[state].iter().copied().filter(|&other| all[other as usize].contains(&(state as u64))).collect())
            .collect();
        classes.sort();
        classes.dedup();
        let found = components(&read, &control).expect("components");
        prop_assert_eq!(found.count, classes.len() as u64);
        prop_assert_eq!(found.largest, classes.iter().map(BTreeSet::len).max().unwrap_or(0) as u64);
        let bottom: Vec<_> = classes.iter().filter(|class| class.iter().all(|&state| all[state as usize] == **class)).collect();
        prop_assert_eq!(found.bottom, bottom.len() as u64);
        let in_bottom: BTreeSet<u64> = bottom.iter().flat_map(|class| class.iter().map(|&state| numbers[state as usize])).collect();
        prop_assert_eq!(found.in_bottom.iter().collect::<BTreeSet<_>>(), in_bottom);
        let trivial = classes.iter().filter(|class| {
            class.len() == 1 && class.iter().all(|&state| graph[state as usize].values().all(|&target| target != state))
        });
        prop_assert_eq!(found.trivial, trivial.count() as u64);
        // Reverse edges.
        let reverse = Reverse::new(&read, &control).expect("memory");
        let turned: Vec<(u64, u64)> = (0..read.states()).flat_map(|to| reverse.sources(to).map(move |from| (from, to))).collect();
        let mut expected: Vec<(u64, u64)> = edges(&read).into_iter().map(|(from, _, to)| (from, to)).collect();
        let mut sorted = turned.clone();
        sorted.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(sorted, expected);
        reverse.close(&mut goals, &control).expect("memory");
        let leading: BTreeSet<u64> = (0..graph.len())
            .filter(|&state| all[state].iter().any(|&other| numbers[other as usize] == goal))
            .map(|state| numbers[state])
            .collect();
        prop_assert_eq!(goals.iter().collect::<BTreeSet<_>>(), leading);
        drop((goals, found, reverse));
        prop_assert_eq!(budget.used(), 0);
    }

    #[test]
    fn files_that_no_writer_made_lead_to_errors_and_nowhere_else(
        graph in graphs(150),
        changes in prop::collection::vec((any::<u32>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = bytes_of(&graph);
        for (at, value) in changes {
            let at = at as usize % bytes.len();
            bytes[at] = value;
        }
        seal(&mut bytes);
        use_all(bytes);
    }
}

/// The bytes of the file of a graph.
fn bytes_of(graph: &Plain) -> Vec<u8> {
    let path = file("bytes");
    let recording = Recording::to_file(&path, Arc::new(Budget::unlimited())).expect("a file");
    record(graph, recording, |number| number);
    let bytes = std::fs::read(&path).expect("the file");
    std::fs::remove_file(&path).expect("the file");
    bytes
}

/// Uses a file, possibly invalid, in every way; nothing may panic or take long.
fn use_all(bytes: Vec<u8>) {
    let budget = Arc::new(Budget::new(64 << 20));
    let control = Control { budget: Arc::clone(&budget), ..Control::new() };
    let Ok(graph) = Graph::read(bytes) else { return };
    let mut row = Vec::new();
    let mut unpacked = Unpacked::default();
    for state in 0..graph.states().min(1000) {
        let _ = graph.edges(state, &mut row);
    }
    for block in 0..graph.blocks().min(1000) {
        let _ = graph.unpack(block, &mut unpacked);
    }
    let _ = levels::depth(&graph, &control);
    let _ = components(&graph, &control);
    let _ = Reverse::new(&graph, &control);
    if let Some(mut goals) = BitSet::new(graph.states(), &budget) {
        goals.insert(graph.states() - 1);
        let _ = levels::path_to(&graph, &goals, &control);
    }
}

fn file(name: &str) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("graph-files").join(thread);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder.join(format!("{name}.dmg"))
}

/// A graph like that of a small net: a grid with a back edge.
fn grid(side: u64) -> Plain {
    let state = |x: u64, y: u64| x * side + y;
    let mut graph: Plain = vec![BTreeMap::new(); (side * side) as usize];
    for (x, y) in (0..side * side).map(|number| (number / side, number % side)) {
        let row = &mut graph[state(x, y) as usize];
        if x + 1 < side {
            row.insert(0, state(x + 1, y));
        }
        if y + 1 < side {
            row.insert(1, state(x, y + 1));
        }
        if x > 0 && y > 0 {
            row.insert(2, state(x - 1, y - 1));
        }
    }
    graph
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    let bytes = bytes_of(&grid(13));
    assert!(Graph::read(bytes.clone()).is_ok());
    for at in 0..bytes.len() {
        for flip in [0x01, 0x10, 0x80, 0xff] {
            let mut wrong = bytes.clone();
            wrong[at] ^= flip;
            assert!(Graph::read(wrong).is_err(), "byte {at} ^ {flip:#x}");
        }
        assert!(Graph::read(bytes[..at].to_vec()).is_err(), "cut at {at}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(Graph::read(longer).is_err());
}

#[test]
fn every_flipped_byte_with_right_checksums_is_an_error_or_another_graph() {
    let bytes = bytes_of(&grid(9));
    for at in 16..bytes.len() {
        for flip in [0x01, 0x08, 0x80, 0xff] {
            let mut wrong = bytes.clone();
            wrong[at] ^= flip;
            seal(&mut wrong);
            use_all(wrong);
        }
    }
}

#[test]
fn without_memory_for_new_numbers_those_of_the_recording_stay() {
    let graph = grid(30);
    let path = file("as-recorded");
    // The buffers, one chunk of the order, and next to nothing else.
    let budget = Arc::new(Budget::new((1 << 19) + 8192 + 64 * 64));
    let recording = Recording::to_file(&path, Arc::clone(&budget)).expect("a file");
    let turned = |number: u64| 1000 - number;
    let (read, written) = record(&graph, recording, turned);
    let numbers: Vec<u64> = (0..900).map(|number| 899 - number).collect();
    assert!(edges(&read) == renamed(&graph, &numbers), "numbers are places in the recording");
    assert_eq!((read.meta().initial.clone(), read.meta().depth, read.meta().levels), (vec![899], None, false));
    assert!(written.packed <= written.allowance(), "{written:?}");
    assert_eq!(levels::depth(&read, &Control::new()), Ok(58));
    assert_eq!(budget.used(), 0);
}

#[test]
fn every_pass_ends_when_the_run_must() {
    let path = file("ended");
    record(&grid(30), Recording::to_file(&path, Arc::new(Budget::unlimited())).expect("a file"), |number| number);
    let control = Control::new();
    let graph = Graph::open(&path, &control).expect("a graph");
    // Recorded backwards in little memory, so that its levels have to be computed.
    let budget = Arc::new(Budget::new((1 << 19) + 8192 + 64 * 64));
    let unordered = file("ended-unordered");
    let (unordered, _) =
        record(&grid(30), Recording::to_file(&unordered, budget).expect("a file"), |number| 1000 - number);
    let mut goals = BitSet::new(900, &control.budget).expect("memory");
    goals.insert(graph.states() - 1);
    let mut first = BitSet::new(900, &control.budget).expect("memory");
    first.insert(0);
    let reverse = Reverse::new(&graph, &control).expect("memory");
    control.cancel.cancel();
    let passes: [(&str, Result<(), FileError>); 8] = [
        ("opening", Graph::open(&path, &control).map(drop)),
        ("audit", graph.audit(&control)),
        ("depth", levels::depth(&unordered, &control).map(drop)),
        ("path", levels::path_to(&graph, &goals, &control).map(drop)),
        ("path without levels", levels::path_to(&unordered, &first, &control).map(drop)),
        ("components", components(&graph, &control).map(drop)),
        ("reverse", Reverse::new(&graph, &control).map(drop)),
        ("closure", reverse.close(&mut goals, &control)),
    ];
    for (pass, ended) in passes {
        assert_eq!(ended, Err(FileError::Stopped(Stop::Cancelled)), "{pass}");
    }
    std::fs::remove_file(&path).expect("the file");
    // A run that is stopped leaves no file.
    let recording = Recording::to_file(&path, Arc::new(Budget::unlimited())).expect("a file").under(&control);
    assert!(recording.finish(About::default()).is_err());
    assert!(!path.exists());
}

#[test]
fn what_cannot_be_written_is_told_and_leaves_nothing_behind() {
    let folder = file("x").parent().expect("a folder").join("empty");
    std::fs::create_dir_all(&folder).expect("a folder");
    let budget = || Arc::new(Budget::unlimited());
    let message = |path: PathBuf| Recording::to_file(&path, budget()).err().map_or(String::new(), |error| error.why);
    assert!(message(folder.join("none/a.dmg")).contains("its folder does not exist"));
    assert!(message(folder.clone()).contains("it is a folder"));
    // Abandoned, recorded twice, or with a gap: nothing is left.
    let path = folder.join("a.dmg");
    let mut recording = Recording::to_file(&path, budget()).expect("a file");
    recording.record(0, &[]).expect("room");
    assert!(recording.record(0, &[]).is_err());
    drop(recording);
    let mut recording = Recording::to_file(&path, budget()).expect("a file");
    recording.record(1, &[]).expect("room");
    assert!(recording.finish(About { initial: vec![1], ..About::default() }).is_err());
    let mut recording = Recording::to_file(&path, budget()).expect("a file");
    recording.record(0, &[Edge { action: Action(0), target: 7 }]).expect("room");
    assert!(recording.finish(About { initial: vec![0], ..About::default() }).is_err());
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 0);
    let no_memory =
        Recording::to_file(&path, Arc::new(Budget::new(1000))).err().map_or(String::new(), |error| error.why);
    assert!(no_memory.contains("memory limit"));
}

#[test]
fn other_files_and_other_versions_are_told_apart() {
    let message = |bytes: &[u8]| Graph::read(bytes.to_vec()).err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(message(b"<pnml/>, and so on, and so on"), "it is no graph written by Deltamark");
    assert_eq!(message(b""), "it is no graph written by Deltamark");
    let mut newer = bytes_of(&grid(3));
    newer[8] = 9;
    assert_eq!(message(&newer), "it is written in version 9 of the format; this program reads version 2");
    assert_eq!(message(&bytes_of(&grid(3))[..10]), "the file is damaged: it ends in its head");
}
