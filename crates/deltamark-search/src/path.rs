//! Backtracking from a state to an initial state.
//!
//! In: one or several stores whose ids are numbered level by level, and where each level begins.
//! Out: a shortest path to any of their states. Nothing is stored for it. If actions can be undone,
//! a predecessor is found by undoing each action and looking up the result; otherwise the previous
//! level is expanded again until it generates the state, which costs at most the time of one more
//! search.

use deltamark_core::{
    Action, BLOCK, Batch, Block, Control, Numbers, Reversible, Scratch, Slot, StateId, States, Store, System, Trace,
};
use std::ops::Range;

/// A store, or one of several that share the states.
pub(crate) struct Past<'a> {
    pub store: &'a dyn Store,
    /// The first id of each level up to that of the state.
    pub starts: &'a Numbers,
}

impl Past<'_> {
    /// The ids of a level before the last.
    fn level(&self, level: usize) -> Range<u64> {
        self.starts.get(level)..self.starts.get(level + 1)
    }

    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], states: &mut States) {
        self.store.recall().expect("ids are numbers of states that are recalled").recall(scratch, ids, states);
    }
}

/// What is needed to walk back.
pub(crate) struct Levels<'a> {
    pub system: &'a dyn System,
    /// Where states are.
    pub past: Vec<Past<'a>>,
    /// Which of these a state is in, by its hash.
    pub owner: fn(u64, usize) -> usize,
    /// Who is asked whether there is time to go on.
    pub control: &'a Control,
}

impl Levels<'_> {
    /// A shortest path to a state of this level; `None` if the run must end before it is found.
    pub fn path(&self, level: usize, state: Vec<Slot>) -> Option<Trace> {
        let mut scratch = self.system.scratch();
        let mut store_scratches: Vec<Scratch> = self.past.iter().map(|past| past.store.scratch()).collect();
        let mut state = state;
        let mut actions = Vec::new();
        for level in (0..level).rev() {
            if self.control.stop_without_memory().is_some() {
                return None;
            }
            let undone = match self.system.reversible() {
                Some(reversible) => self.undo(reversible, &mut scratch, &mut store_scratches, &state, level)?,
                None => None,
            };
            let (past, parent, action) =
                undone.or_else(|| self.redo(&mut scratch, &mut store_scratches, &state, level))?;
            actions.push(action);
            let mut states = States::new(self.system.width());
            self.past[past].recall(&mut store_scratches[past], &[parent], &mut states);
            state = states.get(0).to_vec();
        }
        actions.reverse();
        Some(Trace::path(initial_number(self.system, &mut scratch, &state), actions))
    }

    /// The predecessor with the smallest id in a level, by undoing steps; `None` if the run must end before it is
    /// known whether there is one.
    fn undo(
        &self,
        reversible: &dyn Reversible,
        scratch: &mut Scratch,
        store_scratches: &mut [Scratch],
        state: &[Slot],
        level: usize,
    ) -> Option<Option<(usize, StateId, Action)>> {
        let mut batch = Batch::new(self.system.width()).under(self.control);
        reversible.predecessors(scratch, state, &mut batch);
        if batch.stop().is_some() {
            return None;
        }
        let found = (0..batch.len())
            .filter_map(|index| {
                let number = (self.owner)(batch.hash(index), self.past.len());
                let past = &self.past[number];
                let id = past.store.find(&mut store_scratches[number], batch.target(index), batch.hash(index))?;
                past.level(level).contains(&id.get()).then_some((number, id, batch.action(index)))
            })
            .min();
        Some(found)
    }

    /// The predecessor with the smallest id in a level, by expanding them all, unless the run must end.
    fn redo(
        &self,
        scratch: &mut Scratch,
        store_scratches: &mut [Scratch],
        state: &[Slot],
        level: usize,
    ) -> Option<(usize, StateId, Action)> {
        let mut block = Block::new(self.system.width());
        let mut batch = Batch::new(self.system.width()).under(self.control);
        for (number, past) in self.past.iter().enumerate() {
            let range = past.level(level);
            for start in range.clone().step_by(BLOCK) {
                if self.control.stop_without_memory().is_some() {
                    return None;
                }
                let ids = start..range.end.min(start + BLOCK as u64);
                block.reset(self.system.width());
                let scratch_of_past = &mut store_scratches[number];
                block.fill(ids.map(StateId::new), |ids, states| past.recall(scratch_of_past, ids, states));
                batch.reset(self.system.width());
                self.system.expand(scratch, &block, &mut batch).expect("successors that were stored fit the layout");
                if batch.stop().is_some() {
                    return None;
                }
                if let Some((source, action)) = leading_to(&batch, state) {
                    return Some((number, block.id(source), action));
                }
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
