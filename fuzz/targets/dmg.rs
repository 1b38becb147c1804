//! Any bytes as a condensed graph, its checksums made right: a graph within its bounds, or an error. Never a panic, never a
//! loop that the file's length does not bound, never memory beyond the budget. Bytes that do not begin as a file does are taken
//! for changes to a good one, so that most inputs lead behind the head.
#![no_main]

use deltamark_core::{Block, Budget, Control, Scratch, System, Widen};
use deltamark_graph::block::Unpacked;
use deltamark_graph::graph::seal;
use deltamark_graph::meta::MAGIC;
use deltamark_graph::{BitSet, Graph, Reverse, Visitor, Walk, Way, components, levels};
use deltamark_nets::{NetSystem, pnml, tina};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

/// Good files, and the nets they belong to.
static GRAPHS: [&[u8]; 2] = [include_bytes!("../seeds/dmg/mutex.dmg"), include_bytes!("../seeds/dmg/philosophers.dmg")];
static NETS: LazyLock<[NetSystem; 2]> = LazyLock::new(|| {
    [
        NetSystem::new(tina::parse_bytes(include_bytes!("../../models/mutex.net")).expect("a net of ours")),
        NetSystem::new(pnml::parse_bytes(include_bytes!("../../models/philosophers-5.pnml")).expect("a net of ours")),
    ]
});

/// Looks at every state.
struct Looker;

impl Visitor for Looker {
    fn visit(&mut self, _: &mut Scratch, block: &Block, _: u64) -> Result<bool, Widen> {
        assert!(!block.is_empty());
        Ok(true)
    }
}

/// One of the good files with some bytes changed: place, place, value.
fn changed(bytes: &[u8]) -> Vec<u8> {
    let Some((first, changes)) = bytes.split_first() else { return Vec::new() };
    let mut file = GRAPHS[usize::from(*first) % GRAPHS.len()].to_vec();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % file.len();
        file[at] = change[2];
    }
    file
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = if bytes.starts_with(&MAGIC) { bytes.to_vec() } else { changed(bytes) };
    seal(&mut bytes);
    let Ok(graph) = Graph::read(bytes) else { return };
    let budget = Arc::new(Budget::new(16 << 20));
    let control = Control { budget: Arc::clone(&budget), ..Control::new() };
    let honest = graph.audit(&control).is_ok();
    let (mut row, mut unpacked) = (Vec::new(), Unpacked::default());
    for state in 0..graph.states().min(10_000) {
        if graph.edges(state, &mut row).is_ok() {
            assert!(row.iter().all(|edge| edge.target < graph.states() && edge.action.0 < graph.meta().actions));
        }
    }
    for block in 0..graph.blocks().min(1000) {
        let _ = graph.unpack(block, &mut unpacked);
    }
    let _ = graph.actions();
    let depth = levels::depth(&graph, &control);
    if let (true, Some(told), Ok(depth)) = (honest, graph.meta().depth, depth) {
        assert_eq!(told, depth);
    }
    let _ = components(&graph, &control);
    let _ = Reverse::new(&graph, &control);
    if let Some(mut goals) = BitSet::new(graph.states(), &budget).filter(|_| graph.states() > 0) {
        goals.insert(graph.states() - 1);
        let _ = levels::path_to(&graph, &goals, &control);
    }
    for system in NETS.iter() {
        for way in [Way::File, Way::Depth] {
            if let Ok(mut walk) = Walk::new(&graph, system as &dyn System, None, &control) {
                let _ = walk.run(way, &mut Looker);
            }
        }
    }
    drop(control);
    assert_eq!(budget.used(), 0);
});
