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
//! * I2: `granted` is what the budget has granted for the states of the table; it is released with the table.

use deltamark_core::{
    Arrival, Attached, Budget, Bytes, Grant, Guarantee, Ids, Insert, Recall, Recoding, Scratch, Slot, StateId, States,
    Store,
};
use std::collections::HashMap;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Every state in full.
pub struct Mapped {
    table: RwLock<Table>,
    attached: Attached,
    budget: Arc<Budget>,
}

struct Table {
    numbers: HashMap<Vec<Slot>, u64>,
    states: Vec<Vec<Slot>>,
    granted: Grant,
}

impl Table {
    fn new(budget: &Arc<Budget>) -> Self {
        Table { numbers: HashMap::new(), states: Vec::new(), granted: Grant::new(budget) }
    }

    /// Adds a state that is not there yet; `None` if the budget does not grant it.
    fn push(&mut self, state: &[Slot]) -> Option<StateId> {
        // Before anything is allocated (I2).
        if !self.granted.ask(cost(state)) {
            return None;
        }
        let number = self.states.len() as u64;
        self.numbers.insert(state.to_vec(), number);
        self.states.push(state.to_vec());
        Some(StateId::new(number))
    }
}

/// What a state is charged: its slots twice, and the entries that lead to them.
fn cost(state: &[Slot]) -> u64 {
    2 * size_of_val(state) as u64 + 128
}

impl Mapped {
    /// An empty store within this budget.
    pub fn new(budget: Arc<Budget>) -> Self {
        let table = RwLock::new(Table::new(&budget));
        Mapped { table, attached: Attached::new(Ids::Dense, &budget), budget }
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
        table.push(state).map_or(Insert::Full, Insert::New)
    }

    fn find(&self, _: &mut Scratch, state: &[Slot], _hash: u64) -> Option<StateId> {
        self.read().numbers.get(state).map(|&number| StateId::new(number))
    }

    fn len(&self) -> u64 {
        self.read().states.len() as u64
    }

    fn bytes(&self) -> Bytes {
        self.attached.counted(Bytes::new().with("states", self.read().granted.bytes()))
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
        // Beside the old one, so that nothing is changed if it is given up.
        let mut new = Table::new(&self.budget);
        for (number, old) in (0..).zip(&table.states) {
            recoding.translate(old, &mut state);
            if self.budget.is_over_at(number) || new.push(&state).is_none() {
                return false;
            }
        }
        *table = new;
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
