//! Reference stores, one of each kind that a search may use.
//!
//! In: states. Out: answers that are correct by construction. What stays true: all but [`LossyStore`] hold
//! every state in full in a hash map under a lock; they request a fixed sum per state from the budget, so
//! that exhausting memory can be tested.

use deltamark_core::{
    Arrival, Attached, Budget, Bytes, Guarantee, Ids, Insert, Recall, Recoding, Scratch, Slot, StateId, States, Store,
    System,
};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// All kinds of stores, by name: each maker makes one within a budget.
pub const KINDS: &[(&str, Maker)] = &[
    ("reference", |_, budget| Box::new(ReferenceStore::new(budget))),
    ("scattered", |_, budget| Box::new(ScatteredStore::new(budget))),
    ("retracing", |_, budget| Box::new(RetracingStore::new(budget))),
    ("forgetful", |_, budget| Box::new(ForgetfulStore::new(budget))),
    ("lossy", |_, budget| Box::new(LossyStore::new(budget, 40))),
];

/// Makes a store for a system.
pub type Maker = for<'a> fn(&'a dyn System, Arc<Budget>) -> Box<dyn Store + 'a>;

/// The nominal bytes of one state: its slots, and a sum for the rest.
fn cost(state: &[Slot]) -> u64 {
    (size_of_val(state) + 48) as u64
}

/// States in order of arrival, and the number of each.
struct Table {
    numbers: HashMap<Vec<Slot>, usize>,
    states: Vec<Vec<Slot>>,
    bytes: u64,
}

/// A table under a lock, within a budget.
struct Shared {
    table: Mutex<Table>,
    attached: Attached,
    budget: Arc<Budget>,
}

enum Added {
    New(usize),
    Seen(usize),
    Full,
}

impl Shared {
    fn new(ids: Ids, budget: Arc<Budget>) -> Self {
        let table = Table { numbers: HashMap::new(), states: Vec::new(), bytes: 0 };
        Shared { table: Mutex::new(table), attached: Attached::new(ids, &budget), budget }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no thread panics while it holds a reference store")
    }

    fn add(&self, state: &[Slot]) -> Added {
        let mut table = self.lock();
        if let Some(&number) = table.numbers.get(state) {
            return Added::Seen(number);
        }
        if !self.budget.request(cost(state)) {
            return Added::Full;
        }
        let number = table.states.len();
        table.bytes += cost(state);
        table.numbers.insert(state.to_vec(), number);
        table.states.push(state.to_vec());
        Added::New(number)
    }

    fn find(&self, state: &[Slot]) -> Option<usize> {
        self.lock().numbers.get(state).copied()
    }

    fn get(&self, number: usize) -> Vec<Slot> {
        self.lock().states[number].clone()
    }

    fn len(&self) -> u64 {
        self.lock().states.len() as u64
    }

    fn bytes(&self) -> Bytes {
        self.attached.counted(Bytes::new().with("states", self.lock().bytes))
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut table = self.lock();
        let mut new = Vec::new();
        // The old and the new states are held side by side for a while. So memory for all new ones is
        // requested before the first is kept, and that of the old ones returned afterwards.
        let mut bytes = 0;
        for old in &table.states {
            recoding.translate(old, &mut new);
            bytes += cost(&new);
        }
        if !self.budget.request(bytes) {
            return false;
        }
        let mut numbers = HashMap::new();
        let mut states = Vec::new();
        for (number, old) in table.states.iter().enumerate() {
            recoding.translate(old, &mut new);
            numbers.insert(new.clone(), number);
            states.push(new.clone());
        }
        let old = std::mem::replace(&mut *table, Table { numbers, states, bytes });
        self.budget.release(old.bytes);
        true
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.budget.release(self.lock().bytes);
    }
}

/// Exact, recalls, and numbers states 0, 1, 2 … in the order of insertion.
pub struct ReferenceStore(Shared);

/// Exact and recalls, but ids have gaps and follow no order.
pub struct ScatteredStore(Shared);

/// The same, and wants paths to be found by a second search.
pub struct RetracingStore(Shared);

/// Exact, but has no ids and recalls nothing.
pub struct ForgetfulStore(Shared);

impl ReferenceStore {
    /// An empty store within this budget.
    pub fn new(budget: Arc<Budget>) -> Self {
        ReferenceStore(Shared::new(Ids::Dense, budget))
    }
}

impl ScatteredStore {
    /// An empty store within this budget.
    pub fn new(budget: Arc<Budget>) -> Self {
        ScatteredStore(Shared::new(Ids::Sparse, budget))
    }
}

impl RetracingStore {
    /// An empty store within this budget.
    pub fn new(budget: Arc<Budget>) -> Self {
        RetracingStore(Shared::new(Ids::Sparse, budget))
    }
}

impl ForgetfulStore {
    /// An empty store within this budget.
    pub fn new(budget: Arc<Budget>) -> Self {
        ForgetfulStore(Shared::new(Ids::Dense, budget))
    }
}

/// How a kind of store numbers its states.
trait Naming {
    fn id(number: usize) -> StateId;
    fn number(id: StateId) -> usize;
    const SEQUENTIAL: bool;
    const RECALLS: bool;
    const RETRACES: bool = false;
}

impl Naming for ReferenceStore {
    fn id(number: usize) -> StateId {
        StateId::new(number as u64)
    }

    fn number(id: StateId) -> usize {
        id.index()
    }

    const SEQUENTIAL: bool = true;
    const RECALLS: bool = true;
}

impl Naming for ScatteredStore {
    fn id(number: usize) -> StateId {
        // Swaps neighbours in groups of 64 and leaves two gaps after each number.
        StateId::new((number as u64 ^ 0x2a) * 3 + 1)
    }

    fn number(id: StateId) -> usize {
        (((id.get() - 1) / 3) ^ 0x2a) as usize
    }

    const SEQUENTIAL: bool = false;
    const RECALLS: bool = true;
}

impl Naming for RetracingStore {
    fn id(number: usize) -> StateId {
        ScatteredStore::id(number)
    }

    fn number(id: StateId) -> usize {
        ScatteredStore::number(id)
    }

    const SEQUENTIAL: bool = false;
    const RECALLS: bool = true;
    const RETRACES: bool = true;
}

impl Naming for ForgetfulStore {
    fn id(_number: usize) -> StateId {
        StateId::NAMELESS
    }

    fn number(_id: StateId) -> usize {
        unreachable!("a store that does not recall is not asked to")
    }

    const SEQUENTIAL: bool = false;
    const RECALLS: bool = false;
}

macro_rules! exact_stores {
    ($($store:ty),*) => {$(
        impl Store for $store {
            fn insert(&self, _: &mut Scratch, state: &[Slot], _hash: u64, _: &Arrival<'_>) -> Insert {
                match self.0.add(state) {
                    Added::New(number) => Insert::New(Self::id(number)),
                    Added::Seen(number) => Insert::Seen(Self::id(number)),
                    Added::Full => Insert::Full,
                }
            }

            fn find(&self, _: &mut Scratch, state: &[Slot], _hash: u64) -> Option<StateId> {
                self.0.find(state).map(Self::id)
            }

            fn len(&self) -> u64 {
                self.0.len()
            }

            fn bytes(&self) -> Bytes {
                self.0.bytes()
            }

            fn guarantee(&self) -> Guarantee {
                Guarantee::Exact
            }

            fn recall(&self) -> Option<&dyn Recall> {
                Self::RECALLS.then_some(self)
            }

            fn attached(&self) -> Option<&Attached> {
                Self::RECALLS.then_some(&self.0.attached)
            }

            fn twin(&self) -> Option<Box<dyn Store + '_>> {
                Self::RETRACES.then(|| Box::new(ScatteredStore::new(Arc::clone(&self.0.budget))) as _)
            }

            fn recode(&self, recoding: &Recoding) -> bool {
                self.0.recode(recoding)
            }
        }

        impl Recall for $store {
            fn recall(&self, _: &mut Scratch, ids: &[StateId], out: &mut States) {
                for &id in ids {
                    out.push(&self.0.get(Self::number(id)));
                }
            }

            fn sequential(&self) -> bool {
                Self::SEQUENTIAL
            }

            fn retraces(&self) -> bool {
                Self::RETRACES
            }
        }
    )*};
}

exact_stores!(ReferenceStore, ScatteredStore, RetracingStore, ForgetfulStore);

/// Hash compaction: keeps some bits of the hash of each state and nothing else, so it may confuse two states
/// and declares it.
pub struct LossyStore {
    signatures: Mutex<HashSet<u64>>,
    budget: Arc<Budget>,
    bits: u32,
}

/// The nominal bytes of a signature.
const SIGNATURE: u64 = 16;

impl LossyStore {
    /// An empty store within this budget that keeps `bits` bits of each hash.
    pub fn new(budget: Arc<Budget>, bits: u32) -> Self {
        assert!((1..64).contains(&bits), "some bits of 64");
        LossyStore { signatures: Mutex::new(HashSet::new()), budget, bits }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.signatures.lock().expect("no thread panics while it holds a reference store")
    }

    fn signature(&self, hash: u64) -> u64 {
        deltamark_core::hash::mix(hash) & ((1 << self.bits) - 1)
    }
}

impl Store for LossyStore {
    fn insert(&self, _: &mut Scratch, _state: &[Slot], hash: u64, _: &Arrival<'_>) -> Insert {
        let mut signatures = self.lock();
        if signatures.contains(&self.signature(hash)) {
            Insert::Seen(StateId::NAMELESS)
        } else if !self.budget.request(SIGNATURE) {
            Insert::Full
        } else {
            signatures.insert(self.signature(hash));
            Insert::New(StateId::NAMELESS)
        }
    }

    fn find(&self, _: &mut Scratch, _state: &[Slot], hash: u64) -> Option<StateId> {
        self.lock().contains(&self.signature(hash)).then_some(StateId::NAMELESS)
    }

    fn len(&self) -> u64 {
        self.lock().len() as u64
    }

    fn bytes(&self) -> Bytes {
        Bytes::new().with("signatures", self.len() * SIGNATURE)
    }

    fn guarantee(&self) -> Guarantee {
        // The probability that any two of n signatures are equal is at most the number of pairs times the
        // probability for one pair.
        let n = self.len() as f64;
        Guarantee::Omission((n * (n - 1.0) / 2.0 / 2f64.powi(self.bits as i32)).min(1.0))
    }

    fn recode(&self, _recoding: &Recoding) -> bool {
        // Hashes survive a recoding.
        true
    }
}

impl Drop for LossyStore {
    fn drop(&mut self) {
        self.budget.release(self.len() * SIGNATURE);
    }
}

/// Whether tests over all stores include this one: all of them, or the one that `DELTAMARK_STORE` names, for the author
/// of a store who does not want to wait for the others.
pub fn is_chosen_store(name: &str) -> bool {
    std::env::var("DELTAMARK_STORE").map_or(true, |chosen| chosen == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::{Action, Field};

    #[test]
    fn recoding_asks_for_the_whole_second_copy_and_gives_back_the_first() {
        let (old, new) = (cost(&[0]), cost(&[0, 0]));
        for (limit, fits) in [(2 * (old + new), true), (2 * (old + new) - 1, false)] {
            let budget = Arc::new(Budget::new(limit));
            let store = ReferenceStore::new(budget.clone());
            for state in [[1], [2]] {
                let arrival = Arrival { parent: None, action: Action(0) };
                assert!(matches!(store.insert(&mut Scratch::none(), &state, 0, &arrival), Insert::New(_)));
            }
            let [from, to] = [0, 1].map(|slot| Field::new(slot, 0, 32, 0));
            let recoding = Recoding::new(1, 2, "wider".into(), [(from, to)]);
            assert_eq!(store.recode(&recoding), fits);
            assert_eq!(budget.used(), if fits { 2 * new } else { 2 * old });
            drop(store);
            assert_eq!(budget.used(), 0);
        }
    }
}
