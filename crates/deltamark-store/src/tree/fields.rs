//! Small values attached to states: marks and counters of search algorithms.
//!
//! In: the number of a state, which field, and a value of a few bits. Out: the value. Invariants:
//! unset fields are 0; several threads may read and write concurrently, without torn values; memory
//! is allocated when a value of a range of states is first set.
//!
//! # Layout in memory
//! ```text
//! field 1   stretch 0 [ v v v … ]  stretch 1 [ v v v … ]     2^16 states each
//! ```
//! Values take 1, 2, 4, 8, 16 or 32 bits, so none crosses a word.

use crate::memory::region::Region;
use deltamark_core::{Budget, FieldId, Fields};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// States of a stretch, as a power of two.
const STRETCH: u32 = 16;

/// The values of one field.
struct Column {
    /// Bits of a value.
    bits: u32,
    /// Those in which a value was set.
    stretches: Vec<Option<Region>>,
}

/// Values that hang on numbered states.
pub(crate) struct SideFields {
    budget: Arc<Budget>,
    columns: RwLock<Vec<Column>>,
}

impl Column {
    fn stretch_bytes(&self) -> u64 {
        (u64::from(self.bits) << STRETCH) / 8
    }

    /// The word that holds a value, and where in it.
    fn word(&self, state: u64) -> Option<(&AtomicU64, u32)> {
        let region = self.stretches.get((state >> STRETCH) as usize)?.as_ref()?;
        let bit = (state & ((1 << STRETCH) - 1)) * u64::from(self.bits);
        let words = region.as_ptr().cast::<AtomicU64>();
        // SAFETY: the region holds a value for each state of the stretch, so this word is within
        // it; it is aligned, and used as atomics only.
        Some((unsafe { &*words.add((bit / 64) as usize) }, (bit % 64) as u32))
    }
}

impl SideFields {
    /// No fields.
    pub fn new(budget: &Arc<Budget>) -> Self {
        SideFields { budget: Arc::clone(budget), columns: RwLock::new(Vec::new()) }
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        let columns = self.columns.read().unwrap_or_else(PoisonError::into_inner);
        columns.iter().map(|column| column.stretches.iter().flatten().count() as u64 * column.stretch_bytes()).sum()
    }

    /// Makes the stretch of a state.
    fn make(&self, field: FieldId, state: u64) -> bool {
        let mut columns = self.columns.write().unwrap_or_else(PoisonError::into_inner);
        let column = &mut columns[field.0 as usize];
        let at = (state >> STRETCH) as usize;
        if column.stretches.len() <= at {
            column.stretches.resize_with(at + 1, || None);
        }
        if column.stretches[at].is_none() {
            let bytes = column.stretch_bytes();
            if !self.budget.request(bytes) {
                return false;
            }
            column.stretches[at] = Region::zeroed(bytes as usize);
            if column.stretches[at].is_none() {
                self.budget.release(bytes);
            }
        }
        column.stretches[at].is_some()
    }
}

impl Fields for SideFields {
    fn attach(&self, bits: u32) -> Option<FieldId> {
        if !(1..=32).contains(&bits) {
            return None;
        }
        let mut columns = self.columns.write().unwrap_or_else(PoisonError::into_inner);
        columns.push(Column { bits: bits.next_power_of_two(), stretches: Vec::new() });
        Some(FieldId(columns.len() as u32 - 1))
    }

    fn get(&self, field: FieldId, state: deltamark_core::StateId) -> u32 {
        let columns = self.columns.read().unwrap_or_else(PoisonError::into_inner);
        let column = &columns[field.0 as usize];
        let mask = (1u64 << column.bits) - 1;
        column.word(state.get()).map_or(0, |(word, shift)| (word.load(Ordering::Acquire) >> shift & mask) as u32)
    }

    fn update(
        &self,
        field: FieldId,
        state: deltamark_core::StateId,
        change: &mut dyn FnMut(u32) -> Option<u32>,
    ) -> Option<u32> {
        loop {
            {
                let columns = self.columns.read().unwrap_or_else(PoisonError::into_inner);
                let column = &columns[field.0 as usize];
                if let Some((word, shift)) = column.word(state.get()) {
                    let mask = ((1u64 << column.bits) - 1) << shift;
                    let changed = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
                        let new = change(((held & mask) >> shift) as u32)?;
                        Some(held & !mask | u64::from(new) << shift & mask)
                    });
                    let (Ok(held) | Err(held)) = changed;
                    return Some(((held & mask) >> shift) as u32);
                }
            }
            if !self.make(field, state.get()) {
                return None;
            }
        }
    }
}

impl Drop for SideFields {
    fn drop(&mut self) {
        self.budget.release(self.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::StateId;

    #[test]
    fn values_come_back_and_are_zero_at_first() {
        let budget = Arc::new(Budget::unlimited());
        let fields = SideFields::new(&budget);
        let widths = [1, 3, 8, 17, 32];
        let ids = widths.map(|bits| fields.attach(bits).expect("few bits"));
        let value = |state: u64, bits: u32| (state.wrapping_mul(0x9e37_79b9) as u32) & (u32::MAX >> (32 - bits));
        let states = [0, 1, 63, 64, 65_535, 65_536, 1_000_000];
        for state in states {
            for (&bits, &field) in widths.iter().zip(&ids) {
                assert_eq!(fields.get(field, StateId::new(state)), 0);
                assert_eq!(fields.set(field, StateId::new(state), value(state, bits)), Some(0));
            }
        }
        for state in states {
            for (&bits, &field) in widths.iter().zip(&ids) {
                assert_eq!(fields.get(field, StateId::new(state)), value(state, bits), "{state}, {bits} bits");
            }
        }
        assert_eq!((fields.attach(0), fields.attach(33)), (None, None));
        assert_eq!(fields.bytes(), budget.used());
        drop(fields);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn of_several_threads_one_sets_a_mark_first() {
        let fields = SideFields::new(&Arc::new(Budget::unlimited()));
        let mark = fields.attach(1).expect("one bit");
        let states = if cfg!(miri) { 20 } else { 20_000 };
        let first: usize = std::thread::scope(|scope| {
            let set = || (0..states).filter(|&state| fields.set(mark, StateId::new(state), 1) == Some(0)).count();
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(set)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!(first as u64, states);
    }

    #[test]
    fn a_spent_budget_is_told() {
        let fields = SideFields::new(&Arc::new(Budget::new(100)));
        let field = fields.attach(2).expect("two bits");
        assert_eq!(fields.set(field, StateId::new(5), 3), None);
        assert_eq!(fields.get(field, StateId::new(5)), 0);
    }
}
