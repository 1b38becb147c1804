//! Any bytes as a condensed graph, its checksums made right: a graph within its bounds, or an error. Never a panic, never a
//! loop that the file's length does not bound, never memory beyond the budget.
#![no_main]

use deltamark_core::Budget;
use deltamark_graph::block::Unpacked;
use deltamark_graph::graph::seal;
use deltamark_graph::{BitSet, Graph, Reverse, components, levels};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    seal(&mut bytes);
    let Ok(graph) = Graph::read(bytes) else { return };
    let budget = Arc::new(Budget::new(16 << 20));
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
    let _ = levels::depth(&graph, &budget);
    let _ = components(&graph, &budget);
    let _ = Reverse::new(&graph, &budget);
    if let Some(mut goals) = BitSet::new(graph.states(), &budget).filter(|_| graph.states() > 0) {
        goals.insert(graph.states() - 1);
        let _ = levels::path_to(&graph, &goals, &budget);
    }
    assert_eq!(budget.used(), 0);
});
