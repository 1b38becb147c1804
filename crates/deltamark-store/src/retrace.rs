//! How a state was reached, found out by a second search.
//!
//! In: a system and one of its reachable states. Out: a shortest path to it. What stays true:
//! nothing had to be stored for it; every byte that the second search takes is granted by the
//! budget, and given back.
//!
//! A store whose ids do not follow the order in which states were found would need a back edge a
//! state to tell how one was reached: one to three bytes, more than `compact` takes for the state.
//! Violations end most runs, so it is cheaper to search once more, up to that state, and to
//! take notes this time: about a byte a state (see `spanning.rs`).

use crate::compact::Compact;
use crate::packed::Packed;
use crate::spanning::{From, NONE, Spanning};
use deltamark_core::{
    Action, Arrival, BLOCK, Batch, Block, Budget, Insert, Order, Recall, Slot, StateId, Store, System, Trace,
};
use std::sync::Arc;

/// A shortest path to a state, with the help of a store in which nothing is; nothing, if there
/// is no memory to find it.
pub(crate) fn retrace(system: &dyn System, store: &Compact<'_>, budget: &Arc<Budget>, state: &[Slot]) -> Option<Trace> {
    let mut notes = Notes { edges: Spanning::new(Order::Levels, budget), later: Packed::new(budget) };
    let (mut system_scratch, mut scratch) = (system.scratch(), store.scratch());
    let (mut block, mut batch) = (Block::new(system.width()), Batch::new(system.width()));
    let mut answers = Vec::new();
    system.initial(&mut system_scratch, &mut batch).ok()?;
    for index in 0..batch.len() {
        let action = batch.action(index);
        let arrival = Arrival { parent: None, action };
        let answer = store.insert(&mut scratch, batch.target(index), batch.hash(index), &arrival);
        notes.take(answer, NONE, action)?;
        if batch.target(index) == state {
            return Some(Trace { initial: action.0, actions: Vec::new(), ends_in_fault: false });
        }
    }
    let mut first = 0;
    loop {
        let level = std::mem::replace(&mut notes.later, Packed::new(budget));
        if level.len() == 0 {
            return None;
        }
        for start in (0..level.len()).step_by(BLOCK) {
            let ids = (start..level.len().min(start + BLOCK as u64)).map(|index| StateId::new(level.get(index)));
            block.reset(system.width());
            block.fill(ids, |ids, states| Recall::recall(store, &mut scratch, ids, states));
            batch.reset(system.width());
            match system.independence() {
                // What other states yield is left out, as in the search before.
                Some(independence) => {
                    let numbers = first + start..first + start + block.len() as u64;
                    let arrivals: Vec<Action> = numbers.map(|number| notes.arrival(number)).collect();
                    independence.expand_level(&mut system_scratch, &block, &arrivals, &mut batch).ok()?;
                }
                None => system.expand(&mut system_scratch, &block, &mut batch).ok()?,
            }
            answers.clear();
            store.insert_batch(&mut scratch, &block, &batch, &mut answers);
            // Parents in ascending order: so they take two bits each.
            let mut order: Vec<usize> =
                (0..answers.len()).filter(|&index| !matches!(answers[index], Insert::Seen(_))).collect();
            order.sort_by_key(|&index| batch.source(index));
            for index in order {
                notes.take(answers[index], first + start + batch.source(index) as u64, batch.action(index))?;
                if batch.target(index) == state {
                    return Some(notes.path());
                }
            }
        }
        first += level.len();
    }
}

/// What the second search takes note of.
struct Notes {
    /// For each state, in the order found, how it was reached.
    edges: Spanning,
    /// The ids of the next level.
    later: Packed,
}

impl Notes {
    /// Notes a state; nothing, if there is no memory for it.
    fn take(&mut self, answer: Insert, parent: u64, action: Action) -> Option<()> {
        let id = match answer {
            Insert::New(id) => id,
            Insert::Seen(_) => return Some(()),
            Insert::Full => return None,
        };
        let most_parent = if parent == NONE { 0 } else { parent };
        if !self.edges.reserve(1, most_parent, action) || !self.later.reserve(1, id.get()) {
            return None;
        }
        self.edges.push(From::Parent(parent), action);
        self.later.push(id.get());
        Some(())
    }

    /// The action by which a state was reached.
    fn arrival(&self, number: u64) -> Action {
        match self.edges.first_edge(number) {
            Some((parent, action)) if parent != NONE => action,
            _ => Action::NONE,
        }
    }

    /// The path to the state that came last.
    fn path(&self) -> Trace {
        let mut actions = Vec::new();
        let mut number = self.edges.len() - 1;
        loop {
            let (parent, action) = self.edges.first_edge(number).expect("edges in level order are kept");
            if parent == NONE {
                actions.reverse();
                return Trace { initial: action.0, actions, ends_in_fault: false };
            }
            actions.push(action);
            number = parent;
        }
    }
}
