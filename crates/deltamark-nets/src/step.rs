//! Fires and undoes single steps, each in its own marking.
//!
//! In: markings, and for each of them a transition. Out: the markings after it, or before it. What stays true:
//! nothing is allocated and no place is processed alone; a step is refused exactly if the definition refuses it.
//!
//! # The idea
//! [Firing a block](crate::fire) shares its work among markings that take the same transition. Stores that
//! reconstruct states have thousands of markings, each with another one. A transition is therefore compiled to two
//! constants a word: what it takes (`inputs`, each weight shifted to its field) and what it gives (`outputs`).
//! Then
//!
//! ```text
//!   do      word - takes + gives         undo     word - gives + takes
//!
//!   word    [ 3 | 0 | 1 |  5 ]           fields of any width; no field crosses a word
//!   minus   [ 1 | 0 | 1 |  0 ]           no borrow may leave a field: the tokens are present
//!   plus    [ 0 | 1 | 0 | 11 ]           no carry may leave a field: the layout holds the sum
//!   tops    [ ^ | ^ | ^ |  ^ ]           the highest bit of each field
//! ```
//!
//! and one mask decides for all fields of a word at once (Warren, *Hacker's Delight*, 2-13: the borrow and the
//! carry out of every bit, from operands and result). A borrow that leaves a field corrupts the next one, but then
//! the step is refused anyway.
//!
//! Undoing need not check the inputs: source = target - outputs + inputs, so a source whose counts were not
//! negative before the inputs were added has at least the inputs.
//!
//! # What is decided at compile time
//! Weights that a field cannot hold, and arcs at places that take no bits, are decided when the constants are
//! computed ([`Flags`]). Read arcs and inhibitor arcs that remain open, and priorities of other transitions, are
//! left to the definition, after the constants have agreed.

use crate::{Net, Transition};
use deltamark_core::hash::coefficient;
use deltamark_core::layout::word;
use deltamark_core::{Action, Control, Layout, Slot, States, Stop, Undone};
use std::ops::Range;

/// Properties of a transition in this layout beyond its constants.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    /// No marking of this layout enables it.
    never: bool,
    /// What it gives does not fit, so no marking of this layout comes from it.
    outgrows: bool,
    /// It has arcs that the constants do not cover, or others have priority over it.
    special: bool,
}

/// What a transition takes from and gives to one word.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    word: u32,
    takes: u64,
    gives: u64,
    /// The highest bit of every field of the word.
    tops: u64,
}

/// A transition for states of many words: only the words it touches.
#[derive(Clone, Debug)]
struct Entry {
    /// A range of [`Steps::exchanges`].
    exchanges: Range<u32>,
    /// Its addition to the hash.
    hash: u64,
    flags: Flags,
}

/// A transition for states of few words: all of them.
#[derive(Clone, Copy, Debug)]
struct Row<const WORDS: usize> {
    takes: [u64; WORDS],
    gives: [u64; WORDS],
    hash: u64,
    flags: Flags,
}

/// The rows of all transitions, where states have few words.
#[derive(Debug)]
enum TransitionRows {
    One(Vec<Row<1>>),
    Two(Vec<Row<2>>),
    Three(Vec<Row<3>>),
    Four(Vec<Row<4>>),
    None,
}

/// The decision on a single step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is enabled, and the layout holds the result.
    Fits,
    /// It is disabled.
    Disabled,
    /// The constants do not decide, or the result does not fit: use the definition.
    Open,
}

/// All transitions of a net as constants, for one layout.
#[derive(Debug)]
pub(crate) struct Steps {
    slots: usize,
    entries: Vec<Entry>,
    exchanges: Vec<Exchange>,
    /// The highest bit of every field, word by word.
    tops: Vec<u64>,
    rows: TransitionRows,
}

/// `value - minus + plus`, and a mask that is not zero if a field underflows or overflows.
#[inline(always)]
fn exchange(value: u64, minus: u64, plus: u64, tops: u64) -> (u64, u64) {
    let less = value.wrapping_sub(minus);
    let more = less.wrapping_add(plus);
    (more, (borrows(value, minus, less) | carries(less, plus, more)) & tops)
}

/// The borrow out of every bit of `less = value - minus`.
#[inline(always)]
fn borrows(value: u64, minus: u64, less: u64) -> u64 {
    (!value & minus) | (!(value ^ minus) & less)
}

/// The carry out of every bit of `more = value + plus`.
#[inline(always)]
fn carries(value: u64, plus: u64, more: u64) -> u64 {
    (value & plus) | ((value | plus) & !more)
}

impl Steps {
    /// The bytes of its lists.
    pub fn bytes(&self) -> u64 {
        let rows = match &self.rows {
            TransitionRows::One(rows) => size_of_val(&rows[..]),
            TransitionRows::Two(rows) => size_of_val(&rows[..]),
            TransitionRows::Three(rows) => size_of_val(&rows[..]),
            TransitionRows::Four(rows) => size_of_val(&rows[..]),
            TransitionRows::None => 0,
        };
        let lists = size_of_val(&self.entries[..]) + size_of_val(&self.exchanges[..]) + size_of_val(&self.tops[..]);
        (lists + rows) as u64
    }

    /// The constants of all transitions in this layout, unless `control` stops it.
    pub fn under(net: &Net, layout: &Layout, control: &Control) -> Result<Self, Stop> {
        let mut tops = vec![0; layout.words()];
        for field in layout.fields.iter().filter(|field| field.bits() > 0) {
            tops[field.word() as usize] |= 1 << (field.word_shift() + field.bits() - 1);
        }
        let mut steps =
            Steps { slots: layout.slots, entries: Vec::new(), exchanges: Vec::new(), tops, rows: TransitionRows::None };
        let highest = net.transitions.iter().map(|transition| transition.priority).max();
        for transition in &net.transitions {
            control.ask()?;
            steps.add(layout, transition, Some(transition.priority) < highest);
        }
        steps.rows = match layout.words() {
            1 => TransitionRows::One(steps.rows()),
            2 => TransitionRows::Two(steps.rows()),
            3 => TransitionRows::Three(steps.rows()),
            4 => TransitionRows::Four(steps.rows()),
            _ => TransitionRows::None,
        };
        Ok(steps)
    }

    fn add(&mut self, layout: &Layout, transition: &Transition, outranked: bool) {
        let mut flags = Flags { special: outranked, ..Flags::default() };
        let mut hash = 0u64;
        let mut exchanges: Vec<Exchange> = Vec::new();
        let arcs = transition.inputs.iter().map(|arc| (arc, false));
        for (arc, gives) in arcs.chain(transition.outputs.iter().map(|arc| (arc, true))) {
            let (field, weight) = (layout.fields[arc.place as usize], u64::from(arc.weight));
            let change = coefficient(u64::from(arc.place)).wrapping_mul(weight);
            hash = if gives { hash.wrapping_add(change) } else { hash.wrapping_sub(change) };
            if weight > field.most() as u64 {
                *(if gives { &mut flags.outgrows } else { &mut flags.never }) = true;
            } else if field.bits() > 0 {
                let (tops, amount) = (self.tops[field.word() as usize], weight << field.word_shift());
                let (takes, gives) = if gives { (0, amount) } else { (amount, 0) };
                exchanges.push(Exchange { word: field.word(), takes, gives, tops });
            }
        }
        exchanges.sort_unstable_by_key(|exchange| exchange.word);
        exchanges.dedup_by(|next, kept| {
            let same = next.word == kept.word;
            if same {
                kept.takes |= next.takes;
                kept.gives |= next.gives;
            }
            same
        });
        for arc in &transition.reads {
            let (field, weight) = (layout.fields[arc.place as usize], u64::from(arc.weight));
            flags.never |= weight > field.most() as u64;
            // What the inputs need anyway needs no second look.
            let found = exchanges.binary_search_by_key(&field.word(), |exchange| exchange.word);
            let taken = found.is_ok_and(|index| field.of_word(exchanges[index].takes) >= weight);
            flags.special |= field.bits() > 0 && !taken;
        }
        for arc in &transition.inhibitors {
            let field = layout.fields[arc.place as usize];
            let open = u64::from(arc.weight) <= field.most() as u64;
            flags.never |= open && field.bits() == 0;
            flags.special |= open && field.bits() > 0;
        }
        let start = self.exchanges.len() as u32;
        self.exchanges.extend(exchanges);
        self.entries.push(Entry { exchanges: start..self.exchanges.len() as u32, hash, flags });
    }

    fn rows<const WORDS: usize>(&self) -> Vec<Row<WORDS>> {
        let row = |entry: &Entry| {
            let mut row = Row { takes: [0; WORDS], gives: [0; WORDS], hash: entry.hash, flags: entry.flags };
            for exchange in self.exchanges_of(entry) {
                row.takes[exchange.word as usize] = exchange.takes;
                row.gives[exchange.word as usize] = exchange.gives;
            }
            row
        };
        self.entries.iter().map(row).collect()
    }

    #[inline]
    fn exchanges_of(&self, entry: &Entry) -> &[Exchange] {
        &self.exchanges[entry.exchanges.start as usize..entry.exchanges.end as usize]
    }

    /// The addition of this transition to the hash.
    #[inline]
    pub fn hash(&self, transition: usize) -> u64 {
        self.entries[transition].hash
    }

    /// Whether this transition has conditions that are left to the definition.
    #[inline]
    pub fn special(&self, transition: usize) -> bool {
        self.entries[transition].flags.special
    }

    /// Whether a transition is enabled, as far as the constants decide.
    #[inline]
    pub fn can_do(&self, source: &[Slot], transition: usize) -> Verdict {
        let Some(entry) = self.entries.get(transition).filter(|entry| !entry.flags.never) else {
            return Verdict::Disabled;
        };
        let (mut short, mut over) = (0, 0);
        for &Exchange { word: index, takes, gives, tops } in self.exchanges_of(entry) {
            let value = word(source, index as usize);
            let less = value.wrapping_sub(takes);
            short |= borrows(value, takes, less) & tops;
            over |= carries(less, gives, less.wrapping_add(gives)) & tops;
        }
        if short != 0 {
            Verdict::Disabled
        } else if over != 0 || entry.flags.outgrows || entry.flags.special {
            Verdict::Open
        } else {
            Verdict::Fits
        }
    }

    /// Whether the constants allow a transition to be undone.
    #[inline]
    pub fn can_undo(&self, target: &[Slot], transition: usize) -> bool {
        let Some(entry) = self.entries.get(transition).filter(|entry| !entry.flags.never && !entry.flags.outgrows)
        else {
            return false;
        };
        self.exchanges_of(entry).iter().all(|&Exchange { word: index, takes, gives, tops }| {
            exchange(word(target, index as usize), gives, takes, tops).1 == 0
        })
    }

    /// Turns the source of a transition into its target.
    #[inline]
    pub fn do_in(&self, state: &mut [Slot], transition: usize) {
        for exchange in self.exchanges_of(&self.entries[transition]) {
            crate::fire::apply(state, exchange.word as usize, exchange.gives.wrapping_sub(exchange.takes));
        }
    }

    /// Turns the target of a transition into its source.
    #[inline]
    pub fn undo_in(&self, state: &mut [Slot], transition: usize) {
        for exchange in self.exchanges_of(&self.entries[transition]) {
            crate::fire::apply(state, exchange.word as usize, exchange.takes.wrapping_sub(exchange.gives));
        }
    }

    /// Appends for each source the marking after its transition. All these steps are enabled; `enabled` is the
    /// definition, evaluated in debug builds only.
    pub fn do_each(
        &self,
        sources: &States,
        actions: &[Action],
        targets: &mut States,
        enabled: impl Fn(usize, &[Slot]) -> bool,
    ) {
        assert_eq!(sources.len(), actions.len(), "each source has its action");
        let (from, to) = (sources.slots(), targets.grow(actions.len()));
        assert_eq!(from.len(), to.len(), "sources and targets have the same width");
        if cfg!(debug_assertions) {
            for (source, action) in sources.iter().zip(actions) {
                assert!(enabled(action.0 as usize, source), "a step that was taken can be taken again: {action:?}");
            }
        }
        let taken = match (&self.rows, self.slots) {
            (TransitionRows::One(rows), 1) => self.do_narrow::<1, 1>(rows, from, actions, to),
            (TransitionRows::One(rows), _) => self.do_narrow::<1, 2>(rows, from, actions, to),
            (TransitionRows::Two(rows), 3) => self.do_narrow::<2, 3>(rows, from, actions, to),
            (TransitionRows::Two(rows), _) => self.do_narrow::<2, 4>(rows, from, actions, to),
            (TransitionRows::Three(rows), 5) => self.do_narrow::<3, 5>(rows, from, actions, to),
            (TransitionRows::Three(rows), _) => self.do_narrow::<3, 6>(rows, from, actions, to),
            (TransitionRows::Four(rows), 7) => self.do_narrow::<4, 7>(rows, from, actions, to),
            (TransitionRows::Four(rows), _) => self.do_narrow::<4, 8>(rows, from, actions, to),
            (TransitionRows::None, _) => self.do_wide(from, actions, to),
        };
        assert!(taken, "a step that was taken can be taken again");
    }

    /// Fires steps with a constant number of words and slots; returns whether all of them fit.
    fn do_narrow<const WORDS: usize, const SLOTS: usize>(
        &self,
        rows: &[Row<WORDS>],
        from: &[Slot],
        actions: &[Action],
        to: &mut [Slot],
    ) -> bool {
        let tops: [u64; WORDS] = std::array::from_fn(|index| self.tops[index]);
        let mut refused = 0;
        let (from, _) = from.as_chunks::<SLOTS>();
        let (to, _) = to.as_chunks_mut::<SLOTS>();
        for ((source, target), action) in from.iter().zip(to).zip(actions) {
            let row = &rows[action.0 as usize];
            for (index, &tops) in tops.iter().enumerate() {
                let value = load::<SLOTS>(source, index);
                let (value, out) = exchange(value, row.takes[index], row.gives[index], tops);
                refused |= out;
                save::<SLOTS>(target, index, value);
            }
            refused |= u64::from(row.flags.never | row.flags.outgrows);
        }
        refused == 0
    }

    /// Fires steps in states of many slots: copies them and writes only what changes.
    fn do_wide(&self, from: &[Slot], actions: &[Action], to: &mut [Slot]) -> bool {
        let mut refused = false;
        for ((source, target), action) in
            from.chunks_exact(self.slots).zip(to.chunks_exact_mut(self.slots)).zip(actions)
        {
            let entry = &self.entries[action.0 as usize];
            refused |= entry.flags.never | entry.flags.outgrows;
            target.copy_from_slice(source);
            for &Exchange { word: index, takes, gives, tops } in self.exchanges_of(entry) {
                let (value, out) = exchange(word(source, index as usize), takes, gives, tops);
                refused |= out != 0;
                write(target, index as usize, value);
            }
        }
        !refused
    }

    /// Undoes in each target its transition, and appends the sources that exist; `enabled` is the definition,
    /// evaluated where the constants do not decide.
    pub fn undo_each(
        &self,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
        enabled: impl Fn(usize, &[Slot]) -> bool,
    ) {
        assert!(targets.len() == actions.len() && hashes.len() == actions.len(), "each target has its hash and action");
        let first = out.states.len();
        out.hashes.resize(first + actions.len(), 0);
        out.from.resize(first + actions.len(), 0);
        let asked = ToUndo { slots: targets.slots(), hashes, actions };
        let given = Given {
            slots: out.states.grow(actions.len()),
            hashes: &mut out.hashes[first..],
            from: &mut out.from[first..],
        };
        assert_eq!(asked.slots.len(), given.slots.len(), "targets and sources have the same width");
        let found = match (&self.rows, self.slots) {
            (TransitionRows::One(rows), 1) => self.undo_narrow::<1, 1>(rows, asked, given, enabled),
            (TransitionRows::One(rows), _) => self.undo_narrow::<1, 2>(rows, asked, given, enabled),
            (TransitionRows::Two(rows), 3) => self.undo_narrow::<2, 3>(rows, asked, given, enabled),
            (TransitionRows::Two(rows), _) => self.undo_narrow::<2, 4>(rows, asked, given, enabled),
            (TransitionRows::Three(rows), 5) => self.undo_narrow::<3, 5>(rows, asked, given, enabled),
            (TransitionRows::Three(rows), _) => self.undo_narrow::<3, 6>(rows, asked, given, enabled),
            (TransitionRows::Four(rows), 7) => self.undo_narrow::<4, 7>(rows, asked, given, enabled),
            (TransitionRows::Four(rows), _) => self.undo_narrow::<4, 8>(rows, asked, given, enabled),
            (TransitionRows::None, _) => self.undo_wide(asked, given, enabled),
        };
        out.states.truncate(first + found);
        out.hashes.truncate(first + found);
        out.from.truncate(first + found);
    }

    /// Undoes steps with a constant number of words and slots; returns the number of sources.
    ///
    /// Each source is written where the next one belongs, whether it exists or not, and is overwritten if it does
    /// not: whether a step can be undone is hard to predict.
    fn undo_narrow<const WORDS: usize, const SLOTS: usize>(
        &self,
        rows: &[Row<WORDS>],
        asked: ToUndo<'_>,
        given: Given<'_>,
        enabled: impl Fn(usize, &[Slot]) -> bool,
    ) -> usize {
        let tops: [u64; WORDS] = std::array::from_fn(|index| self.tops[index]);
        let Given { slots, hashes, from } = given;
        let (targets, _) = asked.slots.as_chunks::<SLOTS>();
        let (sources, _) = slots.as_chunks_mut::<SLOTS>();
        let mut found = 0;
        for (number, ((target, hash), action)) in targets.iter().zip(asked.hashes).zip(asked.actions).enumerate() {
            let Some(row) = rows.get(action.0 as usize) else { continue };
            let mut refused = u64::from(row.flags.never | row.flags.outgrows);
            let mut source = [0; SLOTS];
            for (index, &tops) in tops.iter().enumerate() {
                let value = load::<SLOTS>(target, index);
                let (value, out) = exchange(value, row.gives[index], row.takes[index], tops);
                refused |= out;
                save::<SLOTS>(&mut source, index, value);
            }
            if row.flags.special {
                refused |= u64::from(!(refused == 0 && enabled(action.0 as usize, &source)));
            }
            sources[found] = source;
            hashes[found] = hash.wrapping_sub(row.hash);
            from[found] = number as u32;
            found += usize::from(refused == 0);
        }
        found
    }

    /// Undoes steps in states of many slots: checks what changes before it copies.
    fn undo_wide(&self, asked: ToUndo<'_>, given: Given<'_>, enabled: impl Fn(usize, &[Slot]) -> bool) -> usize {
        let mut found = 0;
        let targets = asked.slots.chunks_exact(self.slots);
        for (number, ((target, hash), action)) in targets.zip(asked.hashes).zip(asked.actions).enumerate() {
            let transition = action.0 as usize;
            if !self.can_undo(target, transition) {
                continue;
            }
            let source = &mut given.slots[found * self.slots..(found + 1) * self.slots];
            source.copy_from_slice(target);
            self.undo_in(source, transition);
            let entry = &self.entries[transition];
            if entry.flags.special && !enabled(transition, source) {
                continue;
            }
            given.hashes[found] = hash.wrapping_sub(entry.hash);
            given.from[found] = number as u32;
            found += 1;
        }
        found
    }
}

/// Steps to undo.
struct ToUndo<'a> {
    slots: &'a [Slot],
    hashes: &'a [u64],
    actions: &'a [Action],
}

/// Room for as many sources.
struct Given<'a> {
    slots: &'a mut [Slot],
    hashes: &'a mut [u64],
    from: &'a mut [u32],
}

/// Word `index` of a state of constant width.
#[inline(always)]
fn load<const SLOTS: usize>(state: &[Slot; SLOTS], index: usize) -> u64 {
    let high = if 2 * index + 1 < SLOTS { u64::from(state[2 * index + 1]) << 32 } else { 0 };
    u64::from(state[2 * index]) | high
}

/// Writes word `index` of a state of constant width.
#[inline(always)]
fn save<const SLOTS: usize>(state: &mut [Slot; SLOTS], index: usize, value: u64) {
    state[2 * index] = value as Slot;
    if 2 * index + 1 < SLOTS {
        state[2 * index + 1] = (value >> 32) as Slot;
    }
}

/// Writes word `index` of a state; the upper half of the last one may be missing.
#[inline]
fn write(state: &mut [Slot], index: usize, value: u64) {
    state[2 * index] = value as Slot;
    if let Some(high) = state.get_mut(2 * index + 1) {
        *high = (value >> 32) as Slot;
    }
}

#[cfg(test)]
mod tests;
