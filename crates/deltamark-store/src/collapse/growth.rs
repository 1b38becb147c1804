//! How the tables of `collapse` grow: fresh states are packed, and the index is made larger.
//!
//! In: the number of states to make room for. Out: room, or failure if the budget refuses.
//! Invariant: one thread grows at a time; it holds the gate exclusively, and its helpers have left
//! before it opens the gate.

use super::Collapse;
use super::fresh::Fresh;
use super::tables::{CollapseTables, read};
use crate::tables::index::Index;
use crate::threads::cooperate::Help;
use crate::threads::gate::Shared;
use crate::threads::reserve::Room;
use deltamark_core::{States, System, Width, hash::mix};
use std::ops::Range;

/// Of all states one in this many may be fresh, and of all bytes one in this many may be theirs: each takes
/// its memory twice.
const ONE_IN: u64 = 64;
const BYTE_IN: u64 = 32;
/// The fewest, if they take no more than this many bytes, and, for each thread, the most that may be.
const FEWEST: u64 = if cfg!(miri) { 8 } else { 256 };
const FEW_BYTES: u64 = 1 << 15;
const MOST: u64 = 1 << 14;
/// States that are packed together, and the bytes they take: fewer, if they are wide.
const TOGETHER: u64 = 1024;
const TOGETHER_BYTES: u64 = 1 << 17;

impl Collapse<'_> {
    /// Sets room aside for this many more states and slots (those only where the width of states varies), and hands
    /// out the tables, growing them first if need be (I3). `None` if the budget is spent.
    pub(super) fn set_aside(&self, room: &mut Room<2>, wanted: [u64; 2]) -> Option<Shared<'_, CollapseTables>> {
        loop {
            let tables = self.gate.shared();
            let missing = room.missing(tables.growth, wanted, || self.lens(&tables));
            if missing == [0; 2] {
                return Some(tables);
            }
            let promised = self.promises.add(missing);
            if promised[0] <= tables.index.room && tables.fresh.has_room(promised) {
                room.add(missing);
                return Some(tables);
            }
            self.promises.withdraw(missing);
            drop(tables);
            let Some((_busy, mut tables)) = self.gate.grow() else { continue };
            if tables.lost {
                return None;
            }
            tables.growth.number += 1;
            tables.pack(self.system, self.count(), &self.gate.help);
            let lens = self.lens(&tables);
            self.promises.void(lens);
            // For all threads, so that they do not come here in turn.
            let each = tables.growth.ahead(wanted, lens);
            let all = each.map(|each| each * self.gate.help.threads() as u64);
            if tables.growth.tight || !self.make_room(&mut tables, lens, all) {
                tables.growth.tight = true;
                if !self.make_room(&mut tables, lens, wanted) {
                    return None;
                }
            }
        }
    }

    /// How many states there are, and how many slots fresh ones have.
    fn lens(&self, tables: &CollapseTables) -> [u64; 2] {
        [self.count(), tables.fresh.slots()]
    }

    /// Makes room for this many more states and slots than these.
    fn make_room(&self, tables: &mut CollapseTables, lens: [u64; 2], more: [u64; 2]) -> bool {
        let wanted = [lens[0] + more[0], lens[1] + more[1]];
        let held = tables.tuples.bytes().total() + Index::bytes(tables.index.buckets);
        let each = match tables.width {
            Width::Fixed(slots) => slots as u64 * 4,
            Width::Varies => 8 + more[1].div_ceil(more[0].max(1)) * 4,
        };
        let few = (FEW_BYTES / each.max(1)).clamp(1, FEWEST);
        let many = (held / BYTE_IN / each.max(1)).min(lens[0] / ONE_IN);
        let ahead = many.clamp(few, MOST * self.gate.help.threads() as u64);
        tables.index.buckets > 0
            && tables.fresh.make_room(wanted, ahead, &self.budget)
            && (wanted[0] <= tables.index.room || self.grow_index(tables, lens[0], wanted[0]))
    }

    /// Replaces the index by one with room for `wanted` numbers.
    #[cold]
    fn grow_index(&self, tables: &mut CollapseTables, len: u64, wanted: u64) -> bool {
        if self.budget.is_over() {
            return false;
        }
        let old = tables.index.buckets;
        for buckets in tables.index.next_sizes(wanted).into_iter().flatten() {
            if !self.budget.request(Index::bytes(buckets) - Index::bytes(old)) {
                continue;
            }
            if !tables.index.resize(buckets) {
                self.budget.release(Index::bytes(buckets) - Index::bytes(old));
            }
            let filled = self.enter_all(tables, len);
            return filled && wanted <= tables.index.room;
        }
        // No memory to grow: fill the last entries instead.
        tables.index.fill_up();
        wanted <= tables.index.room
    }

    /// Enters every state into an empty index; `false` if the run is over before that is done.
    fn enter_all(&self, tables: &mut CollapseTables, len: u64) -> bool {
        let CollapseTables { tuples, fresh, index, width, .. } = tables;
        let (system, width, tuples, fresh): (_, _, _, &Fresh) = (self.system, *width, &*tuples, fresh);
        index.fill(len, &self.budget, &self.gate.help, || {
            let (mut scratch, mut states) = (system.scratch(), States::new(width));
            move |numbers: Range<u64>, hashes: &mut Vec<u64>| {
                states.clear();
                // SAFETY: the gate is held alone, so nobody inserts, and all numbers below `len` are written.
                unsafe { read(tuples, fresh, numbers, &mut states) };
                system.hashes(&mut scratch, &states, hashes);
                hashes.iter_mut().for_each(|hash| *hash = mix(*hash));
            }
        })
    }
}

impl CollapseTables {
    /// Packs fresh states, of which there are this many together with those that are packed. Where there is no memory
    /// for one, it stays as it is, and so do those behind it.
    fn pack(&mut self, system: &dyn System, len: u64, help: &Help) {
        let CollapseTables { tuples, fresh, width, .. } = self;
        let mut states = States::new(*width);
        let slots = match *width {
            Width::Fixed(slots) => slots as u64,
            Width::Varies => fresh.slots() / (len - fresh.first).max(1),
        };
        let together = (TOGETHER_BYTES / (4 * slots).max(1)).clamp(8, TOGETHER);
        while tuples.len() < len {
            let numbers = tuples.len()..len.min(tuples.len() + together);
            states.clear();
            // SAFETY: the gate is held alone, so nobody inserts, and all numbers below `len` are written.
            unsafe { fresh.read(numbers, &mut states) };
            if tuples.append(system, &states, help) < states.len() {
                return;
            }
        }
        fresh.clear(len);
    }
}
