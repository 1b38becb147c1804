//! Remembers what effects do to markings.
//!
//! In: a place's marking and an effect. Out: the marking that comes of it. What stays true: an
//! answer that is remembered is the answer that working it out would give; what is forgotten is worked
//! out again.
//!
//! ```text
//! line   [ effect | marking | after | – ] × 4     one line of the processor's cache
//! ```
//!
//! A table of lines, each with the four pairs last met there. It grows with its misses up to a fixed size, so
//! it costs a thread a bounded amount of memory whatever the number of markings.

use crate::engine::{After, Engine};

/// Log2 of the lines at the beginning.
const SMALLEST: u32 = 6;
/// Log2 of the most lines: 8 MiB.
const LARGEST: u32 = 17;
const WAYS: usize = 4;
/// What stands for [`After::Exceeded`].
const EXCEEDED: u32 = u32::MAX;
/// Marks an effect that is undone.
const UNDO: u32 = 1 << 31;

type Line = [[u32; 4]; WAYS];

/// What a thread remembers.
pub(crate) struct Steps {
    lines: Vec<Line>,
    shift: u32,
    misses: usize,
}

impl Steps {
    /// Nothing remembered.
    pub fn new() -> Self {
        Steps { lines: vec![[[u32::MAX; 4]; WAYS]; 1 << SMALLEST], shift: 32 - SMALLEST, misses: 0 }
    }

    #[inline]
    fn line(&self, effect: u32, marking: u32) -> usize {
        let mixed = (effect.wrapping_mul(0x9e37_79b1) ^ marking.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0xc2b2_ae35);
        ((mixed ^ (mixed >> 15)).wrapping_mul(0x27d4_eb2f) >> self.shift) as usize
    }

    /// What a place holds after an effect.
    #[inline]
    pub fn after(&mut self, engine: &Engine, place: u32, marking: u32, effect: u32) -> After {
        let at = self.line(effect, marking);
        for entry in &self.lines[at] {
            if entry[0] == effect && entry[1] == marking {
                return if entry[2] == EXCEEDED { After::Exceeded } else { After::Marking(entry[2]) };
            }
        }
        self.work_out(engine, place, marking, effect, at)
    }

    /// What a place held before an effect, if it has ever held that.
    #[inline]
    pub fn before(&mut self, engine: &Engine, place: u32, marking: u32, effect: u32) -> After {
        let effect = effect | UNDO;
        let at = self.line(effect, marking);
        for entry in &self.lines[at] {
            if entry[0] == effect && entry[1] == marking {
                return After::Marking(entry[2]);
            }
        }
        self.work_out(engine, place, marking, effect, at)
    }

    #[cold]
    #[inline(never)]
    fn work_out(&mut self, engine: &Engine, place: u32, marking: u32, effect: u32, at: usize) -> After {
        let undo = effect & UNDO != 0;
        let after = engine.after(place as usize, marking, effect & !UNDO, undo);
        let kept = match after {
            After::Marking(marking) => marking,
            After::Exceeded if !undo => EXCEEDED,
            // A marking that nobody has seen may be seen later, so this is not remembered.
            _ => return after,
        };
        let line = &mut self.lines[at];
        line.copy_within(0..WAYS - 1, 1);
        line[0] = [effect, marking, kept, 0];
        self.misses += 1;
        if self.misses > self.lines.len() * WAYS / 2 {
            self.misses = 0;
            self.enlarge();
        }
        after
    }

    fn enlarge(&mut self) {
        if self.lines.len() >= 1 << LARGEST {
            return;
        }
        self.shift -= 1;
        let larger = vec![[[u32::MAX; 4]; WAYS]; self.lines.len() * 2];
        for line in std::mem::replace(&mut self.lines, larger) {
            for entry in line.into_iter().rev().filter(|entry| entry[0] != u32::MAX) {
                let at = self.line(entry[0], entry[1]);
                self.lines[at].copy_within(0..WAYS - 1, 1);
                self.lines[at][0] = entry;
            }
        }
    }

    /// The bytes held.
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }
}
