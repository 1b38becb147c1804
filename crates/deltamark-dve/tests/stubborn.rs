//! Stubborn sets of the corpus: what is followed in a state depends on that state alone, and deadlocks keep their
//! distances.

use deltamark_core::{BLOCK, Batch, Block, Control, Manner, Property, Slot, StateId, Stubborn, System};
use deltamark_dve::{DveSystem, parse};
use deltamark_testkit::Corpus;
use deltamark_testkit::oracle::{Explored, explore_up_to};
use std::collections::BTreeMap;

/// The deadlocks with their distances.
fn deadlocks(explored: &Explored) -> BTreeMap<&[Slot], u64> {
    explored.deadlocks.iter().map(|&number| (&*explored.states[number], explored.distances[number])).collect()
}

#[test]
fn states_in_blocks_have_the_sets_that_they_have_alone() {
    let Some(corpus) = Corpus::find("states_in_blocks_have_the_sets_that_they_have_alone") else { return };
    for row in corpus.expected("dve") {
        let (Some(model), Some(0..=5_000)) = (row.text("model"), row.number("states")) else { continue };
        let bytes = std::fs::read(corpus.file("dve", &format!("{model}.dve"))).expect("a model");
        let system = DveSystem::new(parse(&bytes).unwrap_or_else(|wrong| panic!("{model}: {wrong:?}")));
        let made = Stubborn::new(&system, &[Property::deadlock_free()], Manner::default(), &Control::new());
        let layer = made.expect("no limit").expect("facts");
        let layer: &dyn System = &layer;
        let [full, few] = [&system, layer].map(|system| explore_up_to(system, 5_000).expect("it is small"));
        assert_eq!(deadlocks(&few), deadlocks(&full), "{model}");
        let mut scratch = layer.scratch();
        for states in few.states.chunks(BLOCK) {
            let (mut block, mut together) = (Block::new(layer.width()), Batch::new(layer.width()));
            states.iter().for_each(|state| block.push(StateId::NAMELESS, state));
            layer.expand(&mut scratch, &block, &mut together).expect("states of one width");
            let mut apart = Batch::new(layer.width());
            for state in states {
                layer.successors(&mut scratch, state, &mut apart).expect("states of one width");
            }
            let of = |batch: &Batch| -> Vec<_> { (0..batch.len()).map(|index| batch.action(index)).collect() };
            let [mut together, mut apart] = [&together, &apart].map(of);
            together.sort_unstable();
            apart.sort_unstable();
            assert_eq!(together, apart, "{model}");
        }
    }
}
