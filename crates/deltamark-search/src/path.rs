//! From a state back to an initial one.
//!
//! In: a store whose ids are numbered level by level, and where each level begins. Out: a
//! shortest path to any of its states. What stays true: nothing was stored for it. Where
//! steps can be undone, a predecessor is found by undoing each step and looking the result
//! up; elsewhere the level before is expanded again until it yields the state, which costs
//! at most the time of one more search.

use crate::numbers::Numbers;
use deltamark_core::{
    Action, BLOCK, Batch, Block, Recall, Reversible, Scratch, Slot, StateId, States, Store, System, Trace,
};

/// What is needed to walk back.
pub(crate) struct Levels<'a> {
    pub system: &'a dyn System,
    pub store: &'a dyn Store,
    pub recall: &'a dyn Recall,
    /// The first id of each level up to that of the state.
    pub starts: &'a Numbers,
}

impl Levels<'_> {
    /// A shortest path to the state of this id.
    pub fn path(&self, id: StateId) -> Trace {
        let mut scratch = self.system.scratch();
        let mut store_scratch = self.store.scratch();
        let mut level = self.starts.partition_point(|start| start <= id.get()) - 1;
        let mut state = self.state(&mut store_scratch, id);
        let mut actions = Vec::new();
        while level > 0 {
            let range = self.starts.get(level - 1)..self.starts.get(level);
            let (parent, action) = self
                .system
                .reversible()
                .and_then(|reversible| self.undo(reversible, &mut scratch, &mut store_scratch, &state, &range))
                .unwrap_or_else(|| self.redo(&mut scratch, &mut store_scratch, &state, range));
            actions.push(action);
            state = self.state(&mut store_scratch, parent);
            level -= 1;
        }
        actions.reverse();
        Trace { initial: initial_number(self.system, &mut scratch, &state), actions, ends_in_fault: false }
    }

    fn state(&self, scratch: &mut Scratch, id: StateId) -> Vec<Slot> {
        let mut states = States::new(self.system.width());
        self.recall.recall(scratch, &[id], &mut states);
        states.get(0).to_vec()
    }

    /// The predecessor with the smallest id in `range`, by undoing steps.
    fn undo(
        &self,
        reversible: &dyn Reversible,
        scratch: &mut Scratch,
        store_scratch: &mut Scratch,
        state: &[Slot],
        range: &std::ops::Range<u64>,
    ) -> Option<(StateId, Action)> {
        let mut batch = Batch::new(self.system.width());
        reversible.predecessors(scratch, state, &mut batch);
        (0..batch.len())
            .filter_map(|index| {
                let id = self.store.find(store_scratch, batch.target(index), batch.hash(index))?;
                range.contains(&id.get()).then_some((id, batch.action(index)))
            })
            .min_by_key(|&(id, action)| (id, action))
    }

    /// The predecessor with the smallest id in `range`, by expanding them all.
    fn redo(
        &self,
        scratch: &mut Scratch,
        store_scratch: &mut Scratch,
        state: &[Slot],
        range: std::ops::Range<u64>,
    ) -> (StateId, Action) {
        let mut block = Block::new(self.system.width());
        let mut batch = Batch::new(self.system.width());
        for start in range.clone().step_by(BLOCK) {
            let ids = start..range.end.min(start + BLOCK as u64);
            block.reset(self.system.width());
            block.fill(ids.map(StateId::new), |ids, states| self.recall.recall(store_scratch, ids, states));
            batch.reset(self.system.width());
            self.system.expand(scratch, &block, &mut batch).expect("successors that were stored fit the layout");
            if let Some((source, action)) = leading_to(&batch, state) {
                return (block.id(source), action);
            }
        }
        panic!("a state of a level has a predecessor in the level before");
    }
}

/// The first source of the batch, and its first action, that lead to `state`.
pub(crate) fn leading_to(batch: &Batch, state: &[Slot]) -> Option<(usize, Action)> {
    (0..batch.len())
        .filter(|&index| batch.target(index) == state)
        .map(|index| (batch.source(index), batch.action(index)))
        .min()
}

/// The number of an initial state among the initial states.
pub(crate) fn initial_number(system: &dyn System, scratch: &mut Scratch, state: &[Slot]) -> u32 {
    let mut batch = Batch::new(system.width());
    system.initial(scratch, &mut batch).expect("initial states that were stored fit the layout");
    let number = (0..batch.len()).find(|&number| batch.target(number) == state);
    number.expect("a path begins in an initial state") as u32
}
