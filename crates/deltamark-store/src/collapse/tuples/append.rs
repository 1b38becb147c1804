//! Appending states of fixed width: a range at a time, component by component.
//!
//! In: a list of states. Out: as many of them as memory allows, in tuples. Invariant: a table is
//! used by one thread at a time, so components are distributed among the helpers, and no table
//! needs a lock.
//!
//! ```text
//! states   7 0 3 9 │ 7 0 4 9 │ 8 0 4 9 …        a stretch
//! codes    component 0: 0 0 1 …                 one thread
//!          component 2: 0 1 1 …                 another
//! tuples   0 0 0 9 │ 0 0 1 9 │ 1 0 1 9 …        one thread, when all have their codes
//! ```
//! Within a range no decisions are made: no trial ends, and a run begins only at its first state.

use super::{Field, NoRoom, PAGE, RAW, Tuples};
use crate::tables::intern::{InternTable, equal};
use crate::threads::cooperate::Help;
use deltamark_core::{Budget, Slot, States, System, Width};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The most states of a stretch, and codes of all its components.
const STRETCH: usize = 1024;
const CODES: usize = 1 << 15;
/// Values that are too few to be shared.
const FEW: usize = 512;

/// The values of one component in a stretch.
struct Column<'c> {
    field: Field,
    table: &'c mut InternTable,
    codes: &'c mut [u32],
    /// How many have codes: all, unless there was no memory.
    coded: usize,
    misses: u64,
}

impl Column<'_> {
    /// Finds the codes of all values.
    fn intern(&mut self, slots: &[Slot], width: usize, budget: &Budget) {
        let (start, item) = (self.field.slot as usize, self.table.item());
        let mut last: Option<(&[Slot], u32)> = None;
        for (state, code) in slots.chunks_exact(width).zip(&mut *self.codes) {
            let value = &state[start..start + item];
            // The next state is often much the same.
            let number = match last {
                Some((last, number)) if equal(last, value) => number,
                _ => {
                    let Some((number, new)) = self.table.intern(value, budget) else { return };
                    self.misses += u64::from(new);
                    number
                }
            };
            *code = number;
            last = Some((value, number));
            self.coded += 1;
        }
    }
}

impl Tuples {
    /// Appends states, and returns how many: all, unless there is no memory.
    pub fn append(&mut self, system: &dyn System, states: &States, help: &Help) -> usize {
        let Width::Fixed(width) = self.width else {
            return states.iter().take_while(|state| self.add_varying(system, state).is_ok()).count();
        };
        let mut done = 0;
        while done < states.len() {
            match self.append_stretch(system, &states.slots()[done * width..], states.len() - done, help) {
                Ok(more) => done += more,
                Err(NoRoom) => break,
            }
        }
        done
    }

    /// Appends some of `count` states, at least one, and returns how many.
    fn append_stretch(
        &mut self,
        system: &dyn System,
        slots: &[Slot],
        count: usize,
        help: &Help,
    ) -> Result<usize, NoRoom> {
        let Width::Fixed(width) = self.width else { unreachable!("states of fixed width") };
        if self.len >= self.next_review || self.stale {
            self.review_fixed(system, &slots[..width])?;
        }
        let fields = self.runs.last().map_or(0, |run| run.fields.len());
        let until = (self.next_review - self.len).min(PAGE - self.len % PAGE);
        let most = (CODES / fields.max(1)).clamp(1, STRETCH).min(usize::try_from(until).unwrap_or(STRETCH));
        let count = count.min(most.max(1));
        let mut codes = std::mem::take(&mut self.codes);
        codes.clear();
        codes.resize(fields * count, 0);
        let appended = self.intern_stretch(&slots[..width * count], count, &mut codes, help).and_then(|coded| {
            let count_of = |column: usize| &codes[column * count..column * count + coded];
            self.write_stretch(&slots[..width * coded], coded, count_of)
        });
        self.codes = codes;
        appended
    }

    /// Finds the codes of a stretch, column by column. Returns how many states have all of theirs.
    fn intern_stretch(
        &mut self,
        slots: &[Slot],
        count: usize,
        codes: &mut [u32],
        help: &Help,
    ) -> Result<usize, NoRoom> {
        let Width::Fixed(width) = self.width else { unreachable!("states of fixed width") };
        let run = self.runs.last().expect("a run was begun");
        let mut tables = self.tables.iter_mut().enumerate();
        let mut columns = Vec::new();
        for (field, codes) in run.fields.iter().zip(codes.chunks_mut(count)) {
            if field.table == RAW {
                let raw = slots[field.slot as usize..].iter().step_by(width);
                codes.iter_mut().zip(raw).for_each(|(code, &slot)| *code = slot);
                continue;
            }
            // Fields come in the order of their tables.
            let (_, table) = tables.find(|(number, _)| *number == field.table as usize).expect("a table for each");
            columns.push(Mutex::new(Column { field: *field, table, codes, coded: 0, misses: 0 }));
        }
        let next = AtomicUsize::new(0);
        let budget = &*self.budget;
        let job = || {
            while let Some(column) = columns.get(next.fetch_add(1, Relaxed)) {
                column.lock().unwrap_or_else(PoisonError::into_inner).intern(slots, width, budget);
            }
        };
        if columns.len() < 2 || columns.len() * count < FEW {
            job();
        } else {
            help.together(&job);
        }
        let mut coded = count;
        for column in columns {
            let column = column.into_inner().unwrap_or_else(PoisonError::into_inner);
            coded = coded.min(column.coded);
            if column.misses > 0 {
                self.trials[column.field.table as usize].misses += column.misses;
                let start = column.field.slot as usize;
                for state in slots.chunks_exact(width) {
                    let value = &state[start..start + column.table.item()];
                    self.seen[start..].iter_mut().zip(value).for_each(|(seen, slot)| *seen |= slot);
                }
            }
        }
        if coded == 0 { Err(NoRoom) } else { Ok(coded) }
    }

    /// Writes the tuples of states whose codes are known, as many as there is memory for.
    fn write_stretch<'c>(
        &mut self,
        slots: &[Slot],
        count: usize,
        codes: impl Fn(usize) -> &'c [u32],
    ) -> Result<usize, NoRoom> {
        let fits =
            |(column, field): (usize, &Field)| codes(column).iter().fold(0, |all, code| all | code) & !field.mask == 0;
        let run = self.runs.last().expect("a run was begun");
        if !run.fields.iter().enumerate().all(fits) {
            self.widen_fixed(slots)?;
        }
        self.turn_page()?;
        let run = self.runs.last().expect("a run was begun");
        let stride = u64::from(run.stride);
        let sizes = std::iter::successors(Some(count), |size| Some(size / 2).filter(|&size| size > 0));
        let reserved = sizes.into_iter().find(|&size| self.bits.reserve(stride * size as u64, &self.budget));
        let count = reserved.ok_or(NoRoom)?;
        for state in 0..count {
            // Put together in a word first: most fields are much shorter than that.
            let (mut word, mut filled) = (0u64, 0);
            for (column, field) in run.fields.iter().enumerate() {
                let bits = field.mask.count_ones();
                if filled + bits > 56 {
                    self.bits.push_long(word, filled);
                    (word, filled) = (0, 0);
                }
                word |= u64::from(codes(column)[state]) << filled;
                filled += bits;
            }
            self.bits.push_long(word, filled);
        }
        self.len += count as u64;
        Ok(count)
    }
}
