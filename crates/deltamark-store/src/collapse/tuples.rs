//! Bit-packed tuples of indices: the memory of `collapse`.
//!
//! In: states, appended. Out: state number `i`, and whether it equals a given state. Invariants: a
//! written tuple is never rewritten except for the last few (I2), so widening needs no second copy;
//! every byte was granted by the budget first.
//!
//! # Layout in memory
//! ```text
//! state       [ 7 | 0 | 3 | 9 ]         cut into components, here of one slot
//! run 5       tuple = 3 bits, 1 bit, 12 bits, 2 bits; from state 70,000 on
//! tuples      … 011 0 000000001110 01 | 100 1 … one bit behind the other
//!                │  └ the slot itself
//!                └ number of the value 7 in the table of the first component
//! ```
//! States are written in *runs* of one layout. When an index needs more bits than its field has, a
//! new run with wider fields begins; written runs are unchanged.
//!
//! # What is interned
//! A component is either stored inline, in as many bits as its slots have needed so far, or
//! interned. All are inline at first; after about a thousand states each is tried. Periodically,
//! over a window of states, the bits it takes when interned, including the growth of its table, are
//! compared with those it would take inline. If they are more, and the total loss exceeds a
//! twentieth of the size of `plain`, its table is frozen; the next trial is at four times as many
//! states. So a component that hardly repeats costs a few per cent at most.
//!
//! # States of varying width
//! The number of components varies, and so does the length of each; all positions share one table.
//! A tuple begins with the number of components; an inline component begins with its length. Tuples
//! are byte-aligned, with an offset of four bytes per state.
//!
//! # Invariants
//! * I1: a state is decoded by the run it was written in and by tables that only grow, so its
//!   decoding never changes.
//! * I2: only the last run is ever rewritten, wider, and only while its tuples take less than
//!   sixteen times the size of its layout. So layouts are a small part of the total.

mod append;

use crate::integers::bits::{Bits, peek};
use crate::memory::arena::Arena;
use crate::tables::bucket::prefetch;
use crate::tables::intern::InternTable;
use crate::threads::claim::GROUP;
use deltamark_core::packed::bits_of;
use deltamark_core::{Budget, Bytes, Slot, StateId, States, System, Width};
use std::ops::Range;
use std::sync::Arc;

/// For every n-th state: in which run the first of them is.
const PAGE: u64 = if cfg!(miri) { 1 << 6 } else { 1 << 12 };
/// The first states are kept as they are: tables would not pay for themselves.
#[cfg(not(miri))]
const FIRST_TRIAL: u64 = 1 << 10;
#[cfg(miri)]
const FIRST_TRIAL: u64 = 1 << 4;
/// The bits that a new value costs in the index of its table, about.
const ENTRY_BITS: u64 = 48;
/// Positions of states of varying width that have a field of their own.
const POSITIONS: usize = 32;
/// Slots in a component of a state of varying width whose system names no components.
const PART: usize = 2;
/// No table: the field holds the slot itself.
const RAW: u32 = u32::MAX;
/// Bytes for a component of states of fixed width, beside its values: its place, its trial, its table with the list of
/// its chunks, and its column while states are appended.
const COMPONENT: usize = size_of::<usize>() + size_of::<Trial>() + size_of::<InternTable>() + 224;

/// A field of a tuple.
#[derive(Clone, Copy)]
struct Field {
    /// Where it begins in a tuple of fixed width; for one of varying width that is kept as it
    /// is, the bits of its length.
    offset: u32,
    /// As many low ones as it has bits.
    mask: u32,
    /// The slot at which its component begins.
    slot: u32,
    /// The table that interns it, or [`RAW`].
    table: u32,
    /// The values of that table, if they are single slots and all that the mask lets through
    /// are contiguous; otherwise null.
    values: *const Slot,
}

// SAFETY: `values` leads to values of a table that lives as long as the tuples and that are
// never written again.
unsafe impl Send for Field {}
// SAFETY: as above; nothing is written through it.
unsafe impl Sync for Field {}

/// States of the last run that are compared together, each with the tuple of a number.
pub(crate) struct TupleGroup<'t> {
    tuples: &'t Tuples,
    run: &'t LayoutRun,
    len: usize,
    /// The first byte of each tuple, and the bit of it at which the tuple begins.
    addresses: [*const u8; GROUP],
    shifts: [u32; GROUP],
    /// Which state each is compared with.
    which: [u8; GROUP],
}

impl<'t> TupleGroup<'t> {
    /// An empty group. `None` if there is no run, or for states of varying width.
    #[inline(always)]
    pub fn new(tuples: &'t Tuples) -> Option<Self> {
        let run = tuples.runs.last()?;
        if tuples.starts.is_some() {
            return None;
        }
        let (addresses, shifts, which) = ([std::ptr::null(); GROUP], [0; GROUP], [0; GROUP]);
        Some(TupleGroup { tuples, run, len: 0, addresses, shifts, which })
    }

    /// Takes in the tuple of this number, for state `which`, and asks for it to be fetched.
    /// `false` means that it is none of the last run, or cannot be read at once.
    #[inline(always)]
    pub fn push(&mut self, number: u64, which: usize) -> bool {
        if number < self.run.first {
            return false;
        }
        let at = self.run.start + (number - self.run.first) * u64::from(self.run.stride);
        let address = self.tuples.bits.window(at, self.run.stride);
        if address.is_null() || self.len == GROUP {
            return false;
        }
        prefetch(address);
        self.addresses[self.len] = address;
        self.shifts[self.len] = (at % 8) as u32;
        self.which[self.len] = which as u8;
        self.len += 1;
        true
    }

    /// Compares each tuple with its state, number `which` of `slots`, and calls `different`
    /// with those that are not the same.
    ///
    /// Field by field and not tuple by tuple, so that the compiler makes vector code of it.
    #[inline(always)]
    pub fn compare(&self, slots: &[Slot], mut different: impl FnMut(usize)) {
        let Width::Fixed(width) = self.tuples.width else { unreachable!("a group is of fixed width") };
        let len = self.len.min(GROUP);
        let mut starts = [0u32; GROUP];
        let mut differences = [0u32; GROUP];
        let mut most = 0;
        for (start, &which) in starts.iter_mut().zip(&self.which[..len]) {
            *start = u32::from(which) * width as u32;
            most = most.max(*start);
        }
        assert!(most as usize + width <= slots.len() && width < 1 << 24);
        for field in &self.run.fields {
            let (offset, mask, slot) = (field.offset, field.mask, field.slot as usize);
            assert!(slot < width);
            if field.table == RAW {
                for index in 0..len {
                    // SAFETY: `push` has looked for the window of a tuple of this run. Each
                    // state has `width` slots from its start on, and this slot is below that.
                    differences[index] |= unsafe {
                        peek(self.addresses[index], offset + self.shifts[index], mask)
                            ^ slots.get_unchecked(starts[index] as usize + slot)
                    };
                }
            } else if !field.values.is_null() {
                for index in 0..len {
                    // SAFETY: as above; and the number is one of a value of this table that
                    // the mask lets through.
                    differences[index] |= unsafe {
                        let code = peek(self.addresses[index], offset + self.shifts[index], mask);
                        field.values.add(code as usize).read() ^ slots.get_unchecked(starts[index] as usize + slot)
                    };
                }
            } else {
                let table = &self.tuples.tables[field.table as usize];
                for index in 0..len {
                    // SAFETY: as above.
                    let code = unsafe { peek(self.addresses[index], offset + self.shifts[index], mask) };
                    let same = slots[starts[index] as usize + slot..].starts_with(table.get(code));
                    differences[index] |= u32::from(!same);
                }
            }
        }
        for (&difference, &which) in differences.iter().zip(&self.which[..len]) {
            if difference != 0 {
                different(which as usize);
            }
        }
    }
}

/// States of one layout.
struct LayoutRun {
    /// The number of its first state, and where its tuple begins.
    first: u64,
    start: u64,
    /// Bits of a tuple; for states of varying width, bits of the number of components.
    stride: u32,
    fields: Box<[Field]>,
}

/// Whether a component is interned, and how well it goes.
#[derive(Clone, Copy)]
struct Trial {
    interning: bool,
    /// The window began with this many states, and ends with these.
    since: u64,
    until: u64,
    /// New values in the window.
    misses: u64,
    /// Bits spent in the window, and those it would have taken as it is: counted for states
    /// of varying width only, where both depend on the state.
    spent: u64,
    raw: u64,
    /// Bits that interning has saved so far, less those it has cost.
    balance: i64,
}

/// States as tuples.
pub(crate) struct Tuples {
    budget: Arc<Budget>,
    width: Width,
    /// Where each component of a state of fixed width begins; empty before the first state.
    cuts: Vec<usize>,
    trials: Vec<Trial>,
    tables: Vec<InternTable>,
    runs: Vec<LayoutRun>,
    /// The run of the first state of each page.
    pages: Vec<u32>,
    /// Bytes granted for components, runs, their fields and pages.
    layouts: u64,
    bits: Bits,
    /// For states of varying width: where the tuple of each begins, in bytes from the first
    /// of its page; and where the first of each page begins.
    starts: Option<(Arena, Vec<u64>)>,
    len: u64,
    next_review: u64,
    /// Whether the current run is not as the trials ask for.
    stale: bool,
    /// All bits that were ever set in each slot (or position).
    seen: Vec<Slot>,
    /// Working memory.
    codes: Vec<u32>,
    boundaries: Vec<usize>,
}

fn mask(bits: u32) -> u32 {
    ((1u64 << bits) - 1) as u32
}

/// There was no memory.
pub(crate) struct NoRoom;

impl Tuples {
    /// No states, of this width.
    pub fn new(width: Width, budget: Arc<Budget>) -> Self {
        Tuples {
            budget,
            width,
            cuts: Vec::new(),
            trials: Vec::new(),
            tables: Vec::new(),
            runs: Vec::new(),
            pages: Vec::new(),
            layouts: 0,
            bits: Bits::default(),
            starts: (width == Width::Varies).then(|| (Arena::new(1), Vec::new())),
            len: 0,
            next_review: FIRST_TRIAL,
            stale: true,
            seen: Vec::new(),
            codes: Vec::new(),
            boundaries: Vec::new(),
        }
    }

    /// How many states there are.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes held, by part.
    pub fn bytes(&self) -> Bytes {
        let (used, reserve) = self.bits.bytes();
        Bytes::new()
            .with("tuples", used + self.granted_starts())
            .with("components", self.tables.iter().map(InternTable::bytes).sum())
            .with("layouts", self.layouts)
            .with("reserve", reserve)
    }

    /// Bytes granted for the starts of tuples: a page of them at a time.
    fn granted_starts(&self) -> u64 {
        self.starts.as_ref().map_or(0, |(_, pages)| pages.len() as u64 * PAGE * 4)
    }

    /// Gives back what the states before this one take and no other needs.
    pub fn release_before(&mut self, number: u64) {
        let at = self.start(self.run(number), number);
        self.bits.release_before(at, &self.budget);
    }

    /// The run of a state.
    #[inline(always)]
    fn run(&self, number: u64) -> &LayoutRun {
        &self.runs[self.run_number(number)]
    }

    #[inline(always)]
    fn run_number(&self, number: u64) -> usize {
        let last = self.runs.len() - 1;
        if self.runs[last].first <= number {
            return last;
        }
        self.earlier_run(number)
    }

    fn earlier_run(&self, number: u64) -> usize {
        let mut at = self.pages[(number / PAGE) as usize] as usize;
        if self.runs.get(at + 1).is_some_and(|next| next.first <= number) {
            at += self.runs[at + 1..].partition_point(|run| run.first <= number);
        }
        at
    }

    /// Where the tuple of a state begins.
    #[inline(always)]
    fn start(&self, run: &LayoutRun, number: u64) -> u64 {
        match &self.starts {
            None => run.start + (number - run.first) * u64::from(run.stride),
            Some((starts, pages)) => {
                assert!(number < self.len, "state {number} of {}", self.len);
                // SAFETY: `add` has written the start of every state below `len`.
                let start = unsafe { starts.address(number).read() };
                (pages[(number / PAGE) as usize] + u64::from(start)) * 8
            }
        }
    }

    /// Whether the state of this number is `state`.
    #[inline(always)]
    pub fn same(&self, number: u64, state: &[Slot]) -> bool {
        let run = self.run(number);
        let at = self.start(run, number);
        let address = if self.starts.is_none() { self.bits.window(at, run.stride) } else { std::ptr::null() };
        if address.is_null() {
            return self.same_slowly(run, at, state);
        }
        for field in &run.fields {
            // SAFETY: the window of a tuple of this run.
            let code = unsafe { peek(address, field.offset + (at % 8) as u32, field.mask) };
            let slots = &state[field.slot as usize..];
            let same = if field.table == RAW {
                slots[0] == code
            } else {
                slots.starts_with(self.tables[field.table as usize].get(code))
            };
            if !same {
                return false;
            }
        }
        true
    }

    /// The same for a tuple of varying width, or that crosses the end of a chunk.
    #[cold]
    #[inline(never)]
    fn same_slowly(&self, run: &LayoutRun, at: u64, state: &[Slot]) -> bool {
        let mut rest = state;
        let all = self.decode(run, at, &mut |slots: &[Slot]| match rest.strip_prefix(slots) {
            Some(behind) => {
                rest = behind;
                true
            }
            None => false,
        });
        all && rest.is_empty()
    }

    /// Appends the states of these numbers, which are of fixed width, to `out`.
    pub fn read_range(&self, numbers: Range<u64>, out: &mut States) {
        assert!(numbers.end <= self.len, "{numbers:?} are not among {} states", self.len);
        let Width::Fixed(width) = self.width else { unreachable!("states of fixed width") };
        let count = numbers.end.saturating_sub(numbers.start) as usize;
        let slots = out.grow(count);
        let mut run = numbers.clone().next().map_or(0, |first| self.run_number(first));
        for (index, number) in numbers.enumerate() {
            let state = &mut slots[index * width..(index + 1) * width];
            while self.runs.get(run + 1).is_some_and(|next| next.first <= number) {
                run += 1;
            }
            let run = &self.runs[run];
            let at = self.start(run, number);
            let address = self.bits.window(at, run.stride);
            if address.is_null() {
                let mut rest = &mut *state;
                self.decode(run, at, &mut |slots: &[Slot]| {
                    let (place, behind) = std::mem::take(&mut rest).split_at_mut(slots.len());
                    place.copy_from_slice(slots);
                    rest = behind;
                    true
                });
                continue;
            }
            for field in &run.fields {
                // SAFETY: the window of a tuple of this run.
                let code = unsafe { peek(address, field.offset + (at % 8) as u32, field.mask) };
                let slot = field.slot as usize;
                state[slot] = if !field.values.is_null() {
                    // SAFETY: the number of a value of this table that the mask lets through.
                    unsafe { field.values.add(code as usize).read() }
                } else if field.table == RAW {
                    code
                } else {
                    let value = self.tables[field.table as usize].get(code);
                    state[slot..slot + value.len()].copy_from_slice(value);
                    continue;
                };
            }
        }
    }

    /// Appends the slots of state `number` to `out`.
    pub fn read(&self, number: u64, out: &mut Vec<Slot>) {
        assert!(number < self.len, "{:?} is not one of {} states", StateId::new(number), self.len);
        let run = self.run(number);
        self.decode(run, self.start(run, number), &mut |slots: &[Slot]| {
            out.extend_from_slice(slots);
            true
        });
    }

    /// Gives `take` the slots of a tuple, piece by piece, as long as it says `true`.
    #[inline(always)]
    fn decode(&self, run: &LayoutRun, at: u64, take: &mut impl FnMut(&[Slot]) -> bool) -> bool {
        if self.starts.is_none() {
            return run.fields.iter().all(|field| {
                let code = self.bits.read(at + u64::from(field.offset), field.mask);
                if field.table == RAW { take(&[code]) } else { take(self.tables[field.table as usize].get(code)) }
            });
        }
        let mut at = at;
        let mut next = |mask: u32| {
            let number = self.bits.read(at, mask);
            at += u64::from(mask.count_ones());
            number
        };
        for position in 0..next(mask(run.stride)) as usize {
            let field = run.fields[position.min(run.fields.len() - 1)];
            let whole = if field.table == RAW {
                (0..next(mask(field.offset))).all(|_| take(&[next(field.mask)]))
            } else {
                take(self.tables[field.table as usize].get(next(field.mask)))
            };
            if !whole {
                return false;
            }
        }
        true
    }

    /// Notes in which run the state that comes next is, if it begins a page.
    fn turn_page(&mut self) -> Result<(), NoRoom> {
        if self.len == self.pages.len() as u64 * PAGE {
            let run = self.runs.len() as u32 - 1;
            push(&mut self.pages, run, &mut self.layouts, &self.budget)?;
        }
        Ok(())
    }

    /// Asks for what layouts take.
    fn ask(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if !self.budget.request(bytes as u64) {
            return Err(NoRoom);
        }
        self.layouts += bytes as u64;
        Ok(())
    }

    /// Gives back what a layout of `count` fields takes.
    fn give_back_fields(&mut self, count: usize) {
        let bytes = (count * size_of::<Field>()) as u64;
        self.layouts -= bytes;
        self.budget.release(bytes);
    }

    /// Begins a run of this layout, which was granted, with the state that comes next.
    fn begin(&mut self, fields: Vec<Field>, stride: u32) -> Result<(), NoRoom> {
        let count = fields.len();
        let run = LayoutRun { first: self.len, start: self.bits.len(), stride, fields: fields.into() };
        let begun = push(&mut self.runs, run, &mut self.layouts, &self.budget);
        if begun.is_err() {
            self.give_back_fields(count);
        }
        begun
    }

    // States of fixed width.

    fn cut_len(&self, cut: usize) -> usize {
        let Width::Fixed(width) = self.width else { unreachable!("cuts are for states of fixed width") };
        self.cuts.get(cut + 1).copied().unwrap_or(width) - self.cuts[cut]
    }

    /// The fields that `trials` and what was seen so far ask for, which are granted, and the bits of a tuple.
    fn layout(&mut self) -> Result<(Vec<Field>, u32), NoRoom> {
        let fields_of = |cut: usize| if self.trials[cut].interning { 1 } else { self.cut_len(cut) };
        let count: usize = (0..self.cuts.len()).map(fields_of).sum();
        self.ask(count * size_of::<Field>())?;
        let mut fields = Vec::with_capacity(count);
        let mut offset = 0;
        let mut put = |slot: usize, table: u32, bits: u32| {
            let values = self.tables.get(table as usize).map_or(std::ptr::null(), |table| table.singles(mask(bits)));
            fields.push(Field { offset, mask: mask(bits), slot: slot as u32, table, values });
            offset += bits;
        };
        for (cut, &slot) in self.cuts.iter().enumerate() {
            if self.trials[cut].interning {
                put(slot, cut as u32, bits_of(self.tables[cut].len().saturating_sub(1)));
            } else {
                (slot..slot + self.cut_len(cut)).for_each(|slot| put(slot, RAW, bits_of(self.seen[slot])));
            }
        }
        Ok((fields, offset))
    }

    /// Decides for each component whether it is interned from now on, and begins a run.
    fn review_fixed(&mut self, system: &dyn System, state: &[Slot]) -> Result<(), NoRoom> {
        if self.cuts.is_empty() {
            // The components of the first state cut all others: where they are only matters
            // for how well it works.
            match system.components() {
                Some(components) => components.boundaries(state, &mut self.cuts),
                None => self.cuts.extend(0..state.len()),
            }
            if let Err(NoRoom) = self.ask(self.cuts.len() * COMPONENT + size_of_val(state)) {
                self.cuts = Vec::new();
                return Err(NoRoom);
            }
            self.tables = (0..self.cuts.len()).map(|cut| InternTable::new(Width::Fixed(self.cut_len(cut)))).collect();
            // The whole state as one component would be a table beside the table.
            let until = if self.cuts.len() > 1 { FIRST_TRIAL } else { u64::MAX };
            self.trials = vec![
                Trial { interning: false, since: 0, until, misses: 0, spent: 0, raw: 0, balance: 0 };
                self.cuts.len()
            ];
            self.seen = vec![0; state.len()];
        }
        self.see(state);
        // A twentieth of what `plain` would take, with its index, for each its share.
        let allowance = self.len * (state.len() as u64 * 32 + ENTRY_BITS) / 20 / self.cuts.len().max(1) as u64;
        for cut in 0..self.cuts.len() {
            if self.trials[cut].until > self.len {
                continue;
            }
            let slots = self.cuts[cut]..self.cuts[cut] + self.cut_len(cut);
            let trial = &mut self.trials[cut];
            if trial.interning {
                let states = self.len - trial.since;
                let value_bits = slots.len() as u64 * 32 + ENTRY_BITS;
                let number_bits = u64::from(bits_of(self.tables[cut].len()));
                trial.spent = trial.misses * value_bits + states * number_bits;
                trial.raw = states * slots.map(|slot| u64::from(bits_of(self.seen[slot]))).sum::<u64>();
            }
            self.stale |= trial.next(self.len, allowance);
            if !trial.interning {
                self.tables[cut].close(&self.budget);
            } else if !self.tables[cut].open(&self.budget) {
                trial.interning = false;
            }
        }
        self.next_review = self.trials.iter().map(|trial| trial.until).min().unwrap_or(u64::MAX);
        if self.stale {
            let (fields, stride) = self.layout()?;
            self.begin(fields, stride)?;
            self.stale = false;
        }
        Ok(())
    }

    fn see(&mut self, state: &[Slot]) {
        self.seen.iter_mut().zip(state).for_each(|(seen, slot)| *seen |= slot);
    }

    /// Widens the fields, so that what the tables hold and these states fit.
    #[cold]
    fn widen_fixed(&mut self, states: &[Slot]) -> Result<(), NoRoom> {
        let width = self.seen.len();
        states.chunks_exact(width).for_each(|state| self.see(state));
        let (fields, stride) = self.layout()?;
        let run = self.runs.last().expect("a run was begun");
        let count = self.len - run.first;
        let (old_bits, layout_bits) = (count * u64::from(run.stride), (fields.len() * size_of::<Field>() * 8) as u64);
        let more = count * u64::from(stride) - old_bits;
        if count == 0 || (old_bits < 16 * layout_bits && self.bits.reserve(more, &self.budget)) {
            self.rewrite(fields, stride, count, more);
            return Ok(());
        }
        self.begin(fields, stride)
    }

    /// Writes the last run again, in wider fields (I2). From the last tuple to the first: none
    /// is overwritten before it is read.
    fn rewrite(&mut self, fields: Vec<Field>, stride: u32, count: u64, more: u64) {
        let run = self.runs.last_mut().expect("a run was begun");
        self.bits.skip(more);
        let mut codes = Vec::with_capacity(fields.len());
        for tuple in (0..count).rev() {
            let old = run.start + tuple * u64::from(run.stride);
            codes.clear();
            codes.extend(run.fields.iter().map(|field| self.bits.read(old + u64::from(field.offset), field.mask)));
            for (field, &code) in fields.iter().zip(&codes) {
                let at = run.start + tuple * u64::from(stride) + u64::from(field.offset);
                self.bits.write(at, code.into(), field.mask.count_ones());
            }
        }
        let before = std::mem::replace(&mut run.fields, fields.into()).len();
        run.stride = stride;
        self.give_back_fields(before);
    }

    // States of varying width.

    fn add_varying(&mut self, system: &dyn System, state: &[Slot]) -> Result<(), NoRoom> {
        self.boundaries.clear();
        match system.components() {
            Some(components) => components.boundaries(state, &mut self.boundaries),
            None => self.boundaries.extend((0..state.len()).step_by(PART)),
        }
        let mut boundaries = std::mem::take(&mut self.boundaries);
        boundaries.push(state.len());
        let added = self.add_parts(state, &boundaries);
        self.boundaries = boundaries;
        added
    }

    /// Appends a state of varying width whose components are between these boundaries.
    fn add_parts(&mut self, state: &[Slot], boundaries: &[usize]) -> Result<(), NoRoom> {
        let parts = || boundaries.windows(2).map(|pair| &state[pair[0]..pair[1]]);
        self.review_varying(boundaries.len() - 1)?;
        self.codes.clear();
        let mut needed = 32;
        for (position, part) in parts().enumerate() {
            let position = position.min(POSITIONS - 1);
            part.iter().for_each(|slot| self.seen[position] |= slot);
            let code = if self.trials[position].interning {
                let (number, new) = self.tables[0].intern(part, &self.budget).ok_or(NoRoom)?;
                self.trials[position].spent += if new { (part.len() as u64 * 4 + 8) * 8 + ENTRY_BITS } else { 0 };
                number
            } else {
                part.len() as u32
            };
            self.codes.push(code);
            needed += 64 + part.len() as u64 * 32;
        }
        let count = self.codes.len() as u32;
        if !self.fits(count) {
            let fields = self.layout_varying(count);
            self.ask(fields.len() * size_of::<Field>())?;
            self.begin(fields, bits_of(count).next_multiple_of(4))?;
        }
        let padding = self.bits.len().next_multiple_of(8) - self.bits.len();
        if !self.bits.reserve(needed + padding, &self.budget) {
            return Err(NoRoom);
        }
        self.place(self.bits.len().div_ceil(8))?;
        self.turn_page()?;
        self.bits.skip(padding);
        let run = self.runs.last().expect("a run was begun");
        self.bits.push(count, run.stride);
        for (position, (part, &code)) in parts().zip(&self.codes).enumerate() {
            let field = run.fields[position.min(run.fields.len() - 1)];
            let trial = &mut self.trials[position.min(POSITIONS - 1)];
            let slot_bits = bits_of(self.seen[position.min(POSITIONS - 1)]).next_multiple_of(8);
            trial.raw += u64::from(field.offset) + part.len() as u64 * u64::from(slot_bits);
            if field.table == RAW {
                self.bits.push(code, field.offset);
                part.iter().for_each(|&slot| self.bits.push(slot, field.mask.count_ones()));
            } else {
                self.bits.push(code, field.mask.count_ones());
                trial.spent += u64::from(field.mask.count_ones());
            }
        }
        self.len += 1;
        Ok(())
    }

    /// Notes where the tuple of the state that comes next begins.
    fn place(&mut self, byte: u64) -> Result<(), NoRoom> {
        let (starts, pages) = self.starts.as_mut().expect("states of varying width");
        if self.len == pages.len() as u64 * PAGE {
            if !self.budget.request(PAGE * 4) {
                return Err(NoRoom);
            }
            if !starts.extend(self.len + PAGE) || push(pages, byte, &mut self.layouts, &self.budget).is_err() {
                self.budget.release(PAGE * 4);
                return Err(NoRoom);
            }
        }
        let start = byte - pages[(self.len / PAGE) as usize];
        // A page of states that takes four gigabytes is more than this store was made for.
        let start = u32::try_from(start).map_err(|_| NoRoom)?;
        // SAFETY: the arena was extended for this state, and `&mut self`.
        unsafe { starts.address(self.len).write(start) };
        Ok(())
    }

    /// Whether the current run holds a tuple of these codes, as many as are asked for.
    fn fits(&self, count: u32) -> bool {
        let Some(run) = self.runs.last() else { return false };
        let enough = run.fields.len() >= POSITIONS.min(count as usize) && count & !mask(run.stride) == 0;
        enough
            && self.codes.iter().enumerate().all(|(position, &code)| {
                let position = position.min(POSITIONS - 1);
                let field = run.fields[position];
                let raw = field.table == RAW;
                raw != self.trials[position].interning
                    && code & !(if raw { mask(field.offset) } else { field.mask }) == 0
                    && (!raw || self.seen[position] & !field.mask == 0)
            })
    }

    /// The fields for tuples of these codes, as many as are asked for. Widths come in steps, so
    /// that there are few layouts.
    fn layout_varying(&self, count: u32) -> Vec<Field> {
        let old = self.runs.last().map_or(&[][..], |run| &run.fields);
        let positions = POSITIONS.min(count as usize).max(old.len());
        let field = |position: usize| {
            let codes = self.codes.iter().skip(position);
            // The last position represents all behind it.
            let largest =
                codes.take(if position + 1 == POSITIONS { usize::MAX } else { 1 }).max().copied().unwrap_or(0);
            let before = old.get(position).filter(|field| field.table == RAW).map_or(0, |field| field.offset);
            if self.trials[position].interning {
                let bits = bits_of(self.tables[0].len()).next_multiple_of(2);
                Field { offset: before, mask: mask(bits.min(32)), slot: 0, table: 0, values: std::ptr::null() }
            } else {
                let bits = bits_of(self.seen[position]).next_multiple_of(8);
                Field {
                    offset: bits_of(largest).max(before),
                    mask: mask(bits),
                    slot: 0,
                    table: RAW,
                    values: std::ptr::null(),
                }
            }
        };
        (0..positions).map(field).collect()
    }

    /// Decides for each position whether it is interned from now on.
    fn review_varying(&mut self, count: usize) -> Result<(), NoRoom> {
        if self.tables.is_empty() {
            self.tables.push(InternTable::new(Width::Varies));
        }
        let positions = count.min(POSITIONS);
        if positions > self.trials.len() {
            let until = self.len.max(FIRST_TRIAL);
            let trial = Trial { interning: false, since: 0, until, misses: 0, spent: 0, raw: 0, balance: 0 };
            self.trials.resize(positions, trial);
            self.seen.resize(positions, 0);
            self.next_review = self.next_review.min(until);
        }
        if self.len >= self.next_review {
            for trial in &mut self.trials {
                if trial.until <= self.len {
                    let allowance = trial.raw / 20;
                    trial.next(self.len, allowance);
                }
            }
            self.next_review = self.trials.iter().map(|trial| trial.until).min().unwrap_or(u64::MAX);
            // All share the table, so it is closed only when nobody uses it.
            if self.trials.iter().all(|trial| !trial.interning) {
                self.tables[0].close(&self.budget);
            } else if !self.tables[0].open(&self.budget) {
                self.trials.iter_mut().for_each(|trial| trial.interning = false);
            }
        }
        Ok(())
    }
}

impl Trial {
    /// Ends a window: goes on as before, or changes. Returns whether it changed. Tables cost most
    /// at first and may pay later, so `allowance` bits may be lost before interning ends.
    fn next(&mut self, len: u64, allowance: u64) -> bool {
        let before = self.interning;
        let gain = self.raw as i64 - self.spent as i64;
        self.balance += gain;
        self.interning = !before || gain > 0 || self.balance + allowance as i64 > 0;
        self.since = len;
        self.until = if self.interning { len + len / 16 + 1 } else { len * 4 };
        (self.misses, self.spent, self.raw) = (0, 0, 0);
        before != self.interning
    }
}

impl Drop for Tuples {
    fn drop(&mut self) {
        self.bits.clear(&self.budget);
        self.tables.iter_mut().for_each(|table| table.clear(&self.budget));
        self.budget.release(self.layouts + self.granted_starts());
    }
}

/// Appends to a list whose memory the budget grants.
fn push<T>(list: &mut Vec<T>, item: T, granted: &mut u64, budget: &Budget) -> Result<(), NoRoom> {
    if list.len() == list.capacity() {
        let more = list.len().max(4);
        let bytes = (more * size_of::<T>()) as u64;
        if !budget.request(bytes) {
            return Err(NoRoom);
        }
        *granted += bytes;
        list.reserve_exact(more);
    }
    list.push(item);
    Ok(())
}
