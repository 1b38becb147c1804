//! Caches the effects of actions on markings.
//!
//! In: a place's marking and an effect. Out: the marking after it. What stays true: a hit is what the engine
//! would compute; an evicted entry is computed again.
//!
//! ```text
//! line    [ block:32 marking:32 | after:32 × 14 ]        one cache line
//! ```
//!
//! Effects are numbered in blocks of one place each ([`BLOCK`]), and a line holds the results of all effects
//! of a block on one marking, as far as they were computed. The successors of a state use the same few
//! markings with many effects each, so they hit a few lines. The cache is direct-mapped: marking and block
//! determine the line, and a new line evicts the old. The table grows with its misses up to a fixed size, so
//! a thread uses a bounded amount of memory whatever the number of markings.

use crate::cache_room::CacheRoom;
use crate::engine::{After, Engine};
use crate::tables::actions::BLOCK;

/// Log2 of the initial number of lines.
const SMALLEST: u32 = 6;
/// Log2 of the maximum number of lines: 8 MiB.
const LARGEST: u32 = 17;
/// Encodes [`After::Exceeded`].
const EXCEEDED: u32 = u32::MAX;
/// Not computed yet.
const UNKNOWN: u32 = u32::MAX - 1;
/// Marks an effect that is undone.
const UNDO: u32 = 1 << 31;
/// An empty line: there is no such block.
const EMPTY: u64 = u64::MAX;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct EffectLine {
    tag: u64,
    after: [u32; BLOCK as usize],
}

const EMPTY_LINE: EffectLine = EffectLine { tag: EMPTY, after: [UNKNOWN; BLOCK as usize] };

/// The cache of a thread.
pub(crate) struct Steps {
    lines: Vec<EffectLine>,
    shift: u32,
    misses: usize,
    grown: usize,
}

#[inline]
fn tag(marking: u32, effect: u32) -> u64 {
    u64::from(effect >> 4) << 32 | u64::from(marking)
}

/// The shift that leaves enough bits of a hash to number the lines.
fn shift_for(lines: usize) -> u32 {
    64 - lines.ilog2()
}

impl Steps {
    /// An empty cache.
    pub fn new() -> Self {
        let lines = vec![EMPTY_LINE; 1 << SMALLEST];
        Steps { lines, shift: shift_for(1 << SMALLEST), misses: 0, grown: 1 }
    }

    #[inline]
    fn line(&self, tag: u64) -> usize {
        (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Loads the cached result of a marking and an effect, so that it is in the processor's cache when it is
    /// read; returns it so that the load is not optimised away.
    #[inline]
    pub fn touch(&self, marking: u32, effect: u32) -> u32 {
        self.lines[self.line(tag(marking, effect))].after[0]
    }

    /// The cached result, or [`UNKNOWN`].
    #[inline]
    fn find(&self, marking: u32, effect: u32) -> u32 {
        let tag = tag(marking, effect);
        let line = &self.lines[self.line(tag)];
        if line.tag == tag { line.after[(effect % 16) as usize] } else { UNKNOWN }
    }

    /// The marking of a place after an effect.
    #[inline]
    pub fn after(&mut self, engine: &Engine, place: u32, marking: u32, effect: u32) -> After {
        match self.find(marking, effect) {
            UNKNOWN => self.work_out(engine, place, marking, effect),
            EXCEEDED => After::Exceeded,
            after => After::Marking(after),
        }
    }

    /// The marking of a place before an effect, if it has ever occurred.
    #[inline]
    pub fn before(&mut self, engine: &Engine, place: u32, marking: u32, effect: u32) -> After {
        match self.find(marking, effect | UNDO) {
            UNKNOWN => self.work_out(engine, place, marking, effect | UNDO),
            before => After::Marking(before),
        }
    }

    #[cold]
    #[inline(never)]
    fn work_out(&mut self, engine: &Engine, place: u32, marking: u32, effect: u32) -> After {
        let undo = effect & UNDO != 0;
        let after = engine.after(place as usize, marking, effect & !UNDO, undo);
        let kept = match after {
            After::Marking(marking) => marking,
            After::Exceeded if !undo => EXCEEDED,
            // A marking not seen so far may occur later, so this is not cached.
            _ => return after,
        };
        let tag = tag(marking, effect);
        let at = self.line(tag);
        if self.lines[at].tag != tag {
            self.lines[at] = EffectLine { tag, ..EMPTY_LINE };
            self.misses += 1;
        }
        self.lines[at].after[(effect % 16) as usize] = kept;
        if self.misses > self.lines.len() / 2 && self.lines.len() < 1 << LARGEST {
            self.enlarge(&engine.room);
        }
        after
    }

    fn enlarge(&mut self, room: &CacheRoom) {
        self.misses = 0;
        // Without room it keeps its size.
        let Some(_lent) = room.lend(2 * self.bytes()) else { return };
        self.shift -= 1;
        let larger = vec![EMPTY_LINE; self.lines.len() * 2];
        for line in std::mem::replace(&mut self.lines, larger).into_iter().filter(|line| line.tag != EMPTY) {
            let at = self.line(line.tag);
            self.lines[at] = line;
        }
        self.grown += self.bytes();
    }

    /// Bytes allocated since the last call.
    pub fn take_grown(&mut self) -> usize {
        std::mem::take(&mut self.grown)
    }

    /// The bytes held.
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<EffectLine>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::{Budget, Control};
    use std::sync::Arc;

    #[test]
    fn it_grows_only_where_the_budget_has_room_for_both() {
        let mut steps = Steps::new();
        let bytes = steps.bytes() as u64;
        for (room, grows) in [(4 * bytes - 1, false), (4 * bytes, true)] {
            let control = Control { budget: Arc::new(Budget::new(room)), ..Control::new() };
            steps.enlarge(&CacheRoom::new(&control));
            assert_eq!(steps.bytes() as u64, if grows { 2 * bytes } else { bytes });
            assert_eq!((control.budget.used(), control.budget.peak()), (0, if grows { 4 * bytes } else { 0 }));
        }
    }
}
