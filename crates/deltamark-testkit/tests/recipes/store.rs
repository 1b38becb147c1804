//! A store: every state in full, in a hash map behind a lock.
//!
//! # Layout in memory
//! ```text
//! states    [ state 0 | state 1 | state 2 | … ]      number = StateId
//! numbers   state ─▶ number                          the same states as keys
//! ```
//!
//! # Invariants
//! * I1: `numbers[states[n]] == n`, so an id is the number of a state in the order of insertion.
//! * I2: `bytes` is what the budget has granted for the states of the table.

use deltamark_core::{
    Arrival, Attached, Budget, Bytes, Guarantee, Ids, Insert, Recall, Recoding, Scratch, Slot, StateId, States, Store,
};
use std::collections::HashMap;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Every state in full.
pub struct Mapped {
    table: RwLock<Table>,
    attached: Attached,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct Table {
    numbers: HashMap<Vec<Slot>, u64>,
    states: Vec<Vec<Slot>>,
    bytes: u64,
}

impl Table {
    fn push(&mut self, state: Vec<Slot>) -> StateId {
        let number = self.states.len() as u64;
        self.bytes += cost(&state);
        self.numbers.insert(state.clone(), number);
        self.states.push(state);
        StateId::new(number)
    }
}

/// What a state is charged: its slots twice, and the entries that lead to them.
fn cost(state: &[Slot]) -> u64 {
    2 * size_of_val(state) as u64 + 128
}

impl Mapped {
    /// An empty store within this budget.
    pub fn new(budget: Arc<Budget>) -> Self {
        Mapped { table: RwLock::default(), attached: Attached::new(Ids::Dense, &budget), budget }
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().expect("no thread panics while it holds the table")
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().expect("no thread panics while it holds the table")
    }
}

impl Store for Mapped {
    fn insert(&self, _: &mut Scratch, state: &[Slot], _hash: u64, _: &Arrival<'_>) -> Insert {
        let mut table = self.write();
        if let Some(&number) = table.numbers.get(state) {
            return Insert::Seen(StateId::new(number));
        }
        // Before anything is allocated (I2).
        if !self.budget.request(cost(state)) {
            return Insert::Full;
        }
        Insert::New(table.push(state.to_vec()))
    }

    fn find(&self, _: &mut Scratch, state: &[Slot], _hash: u64) -> Option<StateId> {
        self.read().numbers.get(state).map(|&number| StateId::new(number))
    }

    fn len(&self) -> u64 {
        self.read().states.len() as u64
    }

    fn bytes(&self) -> Bytes {
        self.attached.counted(Bytes::new().with("states", self.read().bytes))
    }

    fn attached(&self) -> Option<&Attached> {
        Some(&self.attached)
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut table = self.write();
        let mut state = Vec::new();
        // Old and new states exist side by side, so all new ones are requested before the first is kept.
        let request = table.states.iter().map(|old| {
            recoding.translate(old, &mut state);
            cost(&state)
        });
        if !self.budget.request(request.sum()) {
            return false;
        }
        let mut new = Table::default();
        for old in &table.states {
            recoding.translate(old, &mut state);
            new.push(state.clone());
        }
        let old = std::mem::replace(&mut *table, new);
        self.budget.release(old.bytes);
        true
    }
}

impl Recall for Mapped {
    fn recall(&self, _: &mut Scratch, ids: &[StateId], out: &mut States) {
        let table = self.read();
        ids.iter().for_each(|id| out.push(&table.states[id.index()]));
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.budget.release(self.read().bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Order;
    use deltamark_testkit::check_store;

    #[test]
    fn the_store_passes_the_suite() {
        for order in [Order::Any, Order::Levels] {
            check_store(order, |_, budget| Box::new(Mapped::new(budget)));
        }
    }
}
