//! Remembers what effects do to markings.
//!
//! In: a place's marking and an effect. Out: the marking that comes of it. What stays true: an
//! answer that is remembered is the answer that working it out would give; what is forgotten is worked
//! out again.
//!
//! ```text
//! line    [ effect:32 marking:32 ] × 4  [ after:32 ] × 4       in one line of the processor's cache
//! region  8 lines: by the marking and its place; the line in it by the effect
//! ```
//!
//! A state's successors ask for the same few markings with many effects each, so they find what they ask
//! for in a few regions. A line keeps the four pairs last met there. The table grows with its misses up to a fixed
//! size, so it costs a thread a bounded amount of memory whatever the number of markings.

use crate::engine::{After, Engine};

/// Log2 of the lines at the beginning.
const SMALLEST: u32 = 6;
/// Log2 of the most lines: 8 MiB.
const LARGEST: u32 = 17;
/// Log2 of the lines of a region.
const REGION: u32 = 3;
const WAYS: usize = 4;
/// What stands for [`After::Exceeded`].
const EXCEEDED: u32 = u32::MAX;
/// Marks an effect that is undone.
const UNDO: u32 = 1 << 31;
/// No pair: there is no such effect.
const EMPTY: u64 = u64::MAX;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    pairs: [u64; WAYS],
    after: [u32; WAYS],
}

const EMPTY_LINE: Line = Line { pairs: [EMPTY; WAYS], after: [0; WAYS] };

/// What a thread remembers.
pub(crate) struct Steps {
    lines: Vec<Line>,
    shift: u32,
    misses: usize,
    grown: usize,
}

#[inline]
fn pair(marking: u32, effect: u32) -> u64 {
    u64::from(effect) << 32 | u64::from(marking)
}

impl Steps {
    /// Nothing remembered.
    pub fn new() -> Self {
        Steps { lines: vec![EMPTY_LINE; 1 << SMALLEST], shift: 64 - (SMALLEST - REGION), misses: 0, grown: 1 }
    }

    #[inline]
    fn line(&self, place: u32, marking: u32, effect: u32) -> usize {
        let region = (u64::from(marking) | u64::from(place) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        (region as usize) << REGION | (effect ^ effect >> 28) as usize & ((1 << REGION) - 1)
    }

    /// What is remembered of a pair, if it is.
    #[inline]
    fn find(&self, at: usize, pair: u64) -> Option<u32> {
        let line = &self.lines[at];
        // Without a branch for each way: which one it is cannot be foreseen.
        let (mut found, mut after) = (0, 0);
        for (&known, &kept) in line.pairs.iter().zip(&line.after) {
            let same = u32::from(known == pair);
            found |= same;
            after |= kept & same.wrapping_neg();
        }
        (found != 0).then_some(after)
    }

    /// What a place holds after an effect.
    #[inline]
    pub fn after(&mut self, engine: &Engine, place: u32, marking: u32, effect: u32) -> After {
        let at = self.line(place, marking, effect);
        match self.find(at, pair(marking, effect)) {
            Some(EXCEEDED) => After::Exceeded,
            Some(after) => After::Marking(after),
            None => self.work_out(engine, place, marking, effect, at),
        }
    }

    /// What a place held before an effect, if it has ever held that.
    #[inline]
    pub fn before(&mut self, engine: &Engine, place: u32, marking: u32, effect: u32) -> After {
        let at = self.line(place, marking, effect | UNDO);
        match self.find(at, pair(marking, effect | UNDO)) {
            Some(before) => After::Marking(before),
            None => self.work_out(engine, place, marking, effect | UNDO, at),
        }
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
        put(&mut self.lines[at], pair(marking, effect), kept);
        self.misses += 1;
        if self.misses > self.lines.len() * WAYS / 2 && self.lines.len() < 1 << LARGEST {
            // What was there is worked out again when it is asked for: places are not kept in lines.
            self.misses = 0;
            self.shift -= 1;
            self.lines = vec![EMPTY_LINE; self.lines.len() * 2];
            self.grown += self.bytes();
        }
        after
    }

    /// Bytes taken since the last call.
    pub fn take_grown(&mut self) -> usize {
        std::mem::take(&mut self.grown)
    }

    /// The bytes held.
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }
}

/// Puts a pair first and forgets the last.
fn put(line: &mut Line, pair: u64, after: u32) {
    line.pairs.copy_within(0..WAYS - 1, 1);
    line.after.copy_within(0..WAYS - 1, 1);
    line.pairs[0] = pair;
    line.after[0] = after;
}
