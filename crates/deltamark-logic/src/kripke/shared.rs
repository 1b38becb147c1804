//! What the evaluators of one graph share, each of which belongs to a thread.
//!
//! In: sets of states, edges backwards, components. Out: the same. What stays true: a value belongs to a formula that is
//! in the pool of every evaluator under the same id; edges backwards and components are computed once, and whoever needs
//! them meanwhile waits.

use super::edges::Edges;
use super::order::Order;
use super::sets::StateSet;
use crate::temporal::FormulaId;
use deltamark_core::Stop;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sets of states by what they are the value of.
type Known<K> = Mutex<HashMap<K, StateSet>>;
/// What is computed when it is needed.
type Late<T> = Mutex<Option<Arc<T>>>;

/// Shared by all evaluators of a graph.
pub(super) struct Shared {
    /// How many formulas, the first ones, all pools have in common.
    common: usize,
    atoms: Known<u32>,
    values: Known<FormulaId>,
    reverse: Late<Edges>,
    order: Late<Order>,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn late<T>(mutex: &Late<T>, make: impl FnOnce() -> Result<T, Stop>) -> Result<Arc<T>, Stop> {
    let mut held = hold(mutex);
    if let Some(known) = &*held {
        return Ok(Arc::clone(known));
    }
    let made = Arc::new(make()?);
    *held = Some(Arc::clone(&made));
    Ok(made)
}

impl Shared {
    /// Nothing is known yet.
    pub fn new(common: usize) -> Self {
        Shared {
            common,
            atoms: Mutex::default(),
            values: Mutex::default(),
            reverse: Mutex::default(),
            order: Mutex::default(),
        }
    }

    /// Whether all pools have this formula.
    pub fn is_common(&self, id: FormulaId) -> bool {
        (id.0 as usize) < self.common
    }

    pub fn atom(&self, atom: u32) -> Option<StateSet> {
        hold(&self.atoms).get(&atom).cloned()
    }

    pub fn keep_atom(&self, atom: u32, set: StateSet) {
        hold(&self.atoms).insert(atom, set);
    }

    pub fn value(&self, id: FormulaId) -> Option<StateSet> {
        hold(&self.values).get(&id).cloned()
    }

    pub fn keep(&self, id: FormulaId, set: StateSet) {
        hold(&self.values).insert(id, set);
    }

    /// Forgets the values of formulas.
    pub fn forget(&self) {
        hold(&self.values).clear();
    }

    pub fn reverse(&self, make: impl FnOnce() -> Result<Edges, Stop>) -> Result<Arc<Edges>, Stop> {
        late(&self.reverse, make)
    }

    pub fn order(&self, make: impl FnOnce() -> Result<Order, Stop>) -> Result<Arc<Order>, Stop> {
        late(&self.order, make)
    }
}
