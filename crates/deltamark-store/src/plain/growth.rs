//! Cooperative growth of the tables of `plain`.
//!
//! In: the number of states to make room for. Out: room, or failure if the budget refuses.
//! Invariant: one thread grows at a time; it holds the gate exclusively, and its helpers have left
//! before it opens the gate (I3 of `plain.rs`, and `threads/cooperate.rs`).

use super::tables::PlainTables;
use super::{AHEAD, Plain, VECTOR_STEP};
use crate::tables::index::Index;
use deltamark_core::{States, hash::mix};
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Plain<'_> {
    /// Makes room for what is pending, or at least for `states` more states of `slots` slots in
    /// all, unless another thread is at it: then it helps. On `false` there is no room.
    pub(super) fn grow_or_help(&self, pending: u64, pending_slots: u64, states: u64, slots: u64) -> bool {
        let Some((_busy, mut tables)) = self.gate.grow() else { return true };
        let many = [(pending, pending_slots), (states, slots)];
        many.into_iter().any(|(states, slots)| self.grow(&mut tables, states, slots))
    }

    /// Makes room for `states` more states of `slots` slots in all.
    fn grow(&self, tables: &mut PlainTables, states: u64, slots: u64) -> bool {
        let len = self.len.0.load(Ordering::Acquire);
        let used = tables.vectors.used_bytes(len) + tables.vectors.needed_bytes(states, slots);
        let mut asked = 0;
        if used > tables.granted {
            // In large steps while there is plenty, by the page when there is not.
            let missing = used - tables.granted;
            let step = if used > VECTOR_STEP { VECTOR_STEP.max(used / AHEAD) } else { 4096 };
            let granted =
                [missing.next_multiple_of(step & !4095), missing].into_iter().find(|&bytes| self.budget.request(bytes));
            let Some(granted) = granted else { return false };
            asked = granted;
        }
        // All that is granted may be used without coming back here, so it must have addresses.
        let granted = tables.granted + asked;
        if !tables.vectors.extend(len, states, slots) || !tables.vectors.extend_to(len, granted) {
            self.budget.release(asked);
            return false;
        }
        tables.granted = granted;
        len + states <= tables.index.room || self.grow_index(tables, len + states)
    }

    /// Replaces the index by one with room for `wanted` numbers.
    fn grow_index(&self, tables: &mut PlainTables, wanted: u64) -> bool {
        let old = tables.index.buckets;
        if old == 0 || self.budget.is_over() {
            return false;
        }
        for buckets in tables.index.next_sizes(wanted).into_iter().flatten() {
            if !self.budget.request(Index::bytes(buckets) - Index::bytes(old)) {
                continue;
            }
            if !tables.index.resize(buckets) {
                self.budget.release(Index::bytes(buckets) - Index::bytes(old));
            }
            let filled = self.enter_all(tables);
            return filled && wanted <= tables.index.room;
        }
        // No memory to grow: fill the last entries instead.
        tables.index.fill_up();
        wanted <= tables.index.room
    }

    /// Enters every state into an empty index; `false` if the run is over before that is done.
    fn enter_all(&self, tables: &mut PlainTables) -> bool {
        let PlainTables { vectors, index, .. } = tables;
        let (system, vectors) = (self.system, &*vectors);
        index.fill(self.len.0.load(Ordering::Acquire), &self.budget, &self.gate.help, || {
            let (mut scratch, mut states) = (system.scratch(), States::new(system.width()));
            move |numbers: Range<u64>, hashes: &mut Vec<u64>| {
                states.clear();
                // Vectors are read in the order of memory; a stretch may cross the end of a chunk.
                while numbers.start + (states.len() as u64) < numbers.end {
                    // SAFETY: the gate is held alone, so nobody inserts, and all numbers below `len`
                    // are written.
                    unsafe { vectors.read(numbers.start + states.len() as u64..numbers.end, &mut states) };
                }
                system.hashes(&mut scratch, &states, hashes);
                hashes.iter_mut().for_each(|hash| *hash = mix(*hash));
            }
        })
    }
}
