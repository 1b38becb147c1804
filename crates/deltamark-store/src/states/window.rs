//! The states of the current level, the previous one and the next, in full, by number.
//!
//! In: states with ascending numbers; a lower bound on the numbers still needed, from time to time.
//! Out: the state of a number. Invariant: memory is freed chunk by chunk as soon as no state in it
//! is needed.
//!
//! # Layout in memory
//! ```text
//!           first
//! chunks   [ . . x x ]  [ x x x x ]  [ x x . . ]         2048 states each
//! ```
//! Chunks of fixed-width states have the exact size; for states of varying length a chunk also
//! holds their ends.

use crate::tables::bucket::prefetch;
use deltamark_core::{Budget, Grant, Recoding, Slot, States, Width};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// States in a chunk.
const CHUNK: u64 = 2048;

struct WindowChunk {
    slots: Vec<Slot>,
    /// Where each state ends, if the width varies.
    ends: Vec<u32>,
    granted: u64,
}

/// The latest states, in full.
pub(crate) struct Window {
    width: Width,
    chunks: VecDeque<WindowChunk>,
    /// The number of the first state of the first chunk, a multiple of 2048.
    base: u64,
    /// States before this number are gone.
    first: u64,
    end: u64,
    grant: Grant,
}

impl Window {
    /// An empty window for states of this width.
    pub fn new(width: Width, budget: &Arc<Budget>) -> Self {
        Window { width, chunks: VecDeque::new(), base: 0, first: 0, end: 0, grant: Grant::new(budget) }
    }

    /// The numbers in it.
    #[inline(always)]
    pub fn numbers(&self) -> Range<u64> {
        self.first..self.end
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.grant.bytes()
    }

    /// The bytes of chunks in which all states are before this number.
    pub fn bytes_before(&self, number: u64) -> u64 {
        let chunks = number.saturating_sub(self.base) / CHUNK;
        self.chunks.iter().take(chunks as usize).map(|chunk| chunk.granted).sum()
    }

    /// Makes room for `more` states of `slots` slots in all. `false` means that the budget has none.
    #[must_use]
    pub fn reserve(&mut self, more: u64, slots: u64) -> bool {
        let last = (self.end + more).div_ceil(CHUNK) * CHUNK;
        while self.base + (self.chunks.len() as u64) * CHUNK < last {
            let (slots, ends) = match self.width {
                Width::Fixed(width) => (CHUNK as usize * width, 0),
                Width::Varies => (0, CHUNK as usize),
            };
            let granted = (slots * size_of::<Slot>() + ends * 4 + size_of::<WindowChunk>()) as u64;
            if !self.grant.ask(granted) {
                return false;
            }
            self.chunks.push_back(WindowChunk {
                slots: Vec::with_capacity(slots),
                ends: Vec::with_capacity(ends),
                granted,
            });
        }
        if self.width == Width::Varies {
            // All of them may go to any of the chunks that are not full.
            let from = ((self.end - self.base) / CHUNK) as usize;
            for chunk in self.chunks.iter_mut().skip(from) {
                let missing = (chunk.slots.len() + slots as usize).saturating_sub(chunk.slots.capacity());
                if missing > 0 {
                    let missing = missing.max(chunk.slots.capacity() / 2);
                    let bytes = (missing * size_of::<Slot>()) as u64;
                    if !self.grant.ask(bytes) {
                        return false;
                    }
                    let wanted = chunk.slots.capacity() + missing;
                    chunk.slots.reserve_exact(wanted - chunk.slots.len());
                    chunk.granted += bytes;
                }
            }
        }
        true
    }

    /// Appends a state for which room was [made](Self::reserve).
    #[inline]
    pub fn push(&mut self, state: &[Slot]) {
        let chunk = &mut self.chunks[((self.end - self.base) / CHUNK) as usize];
        match self.width {
            Width::Fixed(width) => assert_eq!(width, state.len(), "a state of a fixed-width system has its width"),
            Width::Varies => chunk.ends.push((chunk.slots.len() + state.len()) as u32),
        }
        chunk.slots.extend_from_slice(state);
        self.end += 1;
    }

    /// The state of a number that is in the window.
    #[inline(always)]
    pub fn get(&self, number: u64) -> &[Slot] {
        debug_assert!(self.numbers().contains(&number));
        let index = number - self.base;
        let chunk = &self.chunks[(index / CHUNK) as usize];
        let within = (index % CHUNK) as usize;
        match self.width {
            Width::Fixed(width) => &chunk.slots[within * width..(within + 1) * width],
            Width::Varies => {
                let start = if within == 0 { 0 } else { chunk.ends[within - 1] as usize };
                &chunk.slots[start..chunk.ends[within] as usize]
            }
        }
    }

    /// Asks for the state of a number to be fetched.
    #[inline(always)]
    pub fn prefetch(&self, number: u64) {
        if let Width::Fixed(width) = self.width {
            let index = number - self.base;
            let chunk = &self.chunks[(index / CHUNK) as usize];
            prefetch(chunk.slots.as_ptr().wrapping_add((index % CHUNK) as usize * width));
        }
    }

    /// Appends the states of these numbers.
    pub fn read(&self, numbers: Range<u64>, out: &mut States) {
        for number in numbers {
            out.push(self.get(number));
        }
    }

    /// Lets go of all states before this number.
    pub fn forget(&mut self, first: u64) {
        self.first = first;
        while self.base + CHUNK <= first
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.base += CHUNK;
            self.grant.give_back(chunk.granted);
        }
    }

    /// Translates every state; `false` means that the budget has no room.
    #[must_use]
    pub fn recode(&mut self, recoding: &Recoding, budget: &Arc<Budget>) -> bool {
        let first = self.first;
        let mut new = Window::new(recoding.to, budget);
        (new.base, new.first, new.end) = (self.base, self.base, self.base);
        let mut state = Vec::new();
        while new.end < self.end {
            if new.end < first {
                // A place that nobody asks for, so that numbers agree.
                state.clear();
                state.resize(if let Width::Fixed(width) = recoding.to { width } else { 0 }, 0);
            } else {
                recoding.translate(self.get(new.end), &mut state);
            }
            if budget.is_over_at(new.end) || !new.reserve(1, state.len() as u64) {
                return false;
            }
            new.push(&state);
            // Old chunks go as new ones come.
            if new.end.is_multiple_of(CHUNK) {
                self.forget(first.max(new.end));
            }
        }
        new.first = first;
        *self = new;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    #[test]
    fn the_latest_states_are_there_and_memory_of_others_is_given_back() {
        let count = if cfg!(miri) { 400 } else { 20_000 };
        for width in [Width::Fixed(0), Width::Fixed(3), Width::Varies] {
            let budget = Arc::new(Budget::unlimited());
            let mut window = Window::new(width, &budget);
            let state = |number: u64| -> Vec<Slot> {
                let len = if let Width::Fixed(width) = width { width as u64 } else { mix(number) % 7 };
                (0..len).map(|slot| mix(number + slot) as Slot).collect()
            };
            let mut first = 0;
            for number in 0..count {
                let state = state(number);
                assert!(window.reserve(1, state.len() as u64));
                window.push(&state);
                if mix(number).is_multiple_of(count / 20) {
                    first += (number - first) / 2;
                    window.forget(first);
                }
            }
            assert_eq!(window.numbers(), first..count);
            assert!(window.numbers().all(|number| window.get(number) == state(number)));
            assert_eq!(window.bytes(), budget.used());
            window.forget(count);
            assert!(window.bytes() < 60_000);
        }
    }
}
