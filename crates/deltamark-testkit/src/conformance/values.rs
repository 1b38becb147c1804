//! Values attached to the states of a store, with a hash map beside them.
//!
//! In: a store, and the ids it gives. Out: panics where values and map disagree. What stays true:
//! the map holds what was set and not refused, under the ids of the store; a value that was refused
//! for lack of memory is what it was.

use crate::random::Rng;
use deltamark_core::{Budget, StateId, Store, Values};
use std::collections::HashMap;

/// Values of one width, and what they must be.
struct Column {
    bits: u32,
    values: Values,
    known: HashMap<StateId, u64>,
}

/// Values of several widths.
pub struct Hung {
    columns: Vec<Column>,
    rng: Rng,
}

impl Hung {
    /// Values for the states of this store, `None` if it does not name them all.
    pub fn new(label: &str, store: &dyn Store) -> Option<Self> {
        let names_all = store.recall().is_some_and(|recall| recall.whole());
        assert!(!names_all || store.attached().is_some(), "{label}: a store that recalls all states has values");
        let attached = store.attached()?;
        let column = |bits| Column { bits, values: attached.values(bits), known: HashMap::new() };
        Some(Hung { columns: [1, 3, 32, 64].map(column).into(), rng: Rng::new(7) })
    }

    /// Changes a value of a state, at random.
    pub fn touch(&mut self, label: &str, id: StateId, budget: &Budget) {
        let at = self.rng.below(self.columns.len());
        let Column { bits, values, known } = &mut self.columns[at];
        let old = known.get(&id).copied().unwrap_or(0);
        // Often small, so that 0 becomes another and another 0.
        let largest = if self.rng.below(2) == 0 { 1 } else { u64::MAX >> (64 - *bits) };
        let new = self.rng.number() & largest;
        let (found, kept) = match self.rng.below(4) {
            0 => (values.update(id, |value| Some(value ^ new)), old ^ new),
            1 => (values.compare_exchange(id, old ^ 1, new), old),
            2 => (values.compare_exchange(id, old, new), new),
            _ => (values.set(id, new), new),
        };
        match found {
            Some(found) => {
                assert_eq!(found, old, "{label}: the value of {bits} bits of {id:?} is as it was set");
                known.insert(id, kept);
            }
            None => assert_ne!(budget.limit(), u64::MAX, "{label}: without a limit no value is refused"),
        }
        assert_eq!(values.get(id), known.get(&id).copied().unwrap_or(0), "{label}: {id:?} has its new value");
    }

    /// Checks the values of these states.
    pub fn check<'i>(&self, label: &str, ids: impl Iterator<Item = &'i StateId>) {
        for &id in ids {
            for Column { bits, values, known } in &self.columns {
                let value = known.get(&id).copied().unwrap_or(0);
                assert_eq!(values.get(id), value, "{label}: {id:?} keeps its value of {bits} bits");
            }
        }
    }

    /// The bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.values.bytes()).sum()
    }
}
