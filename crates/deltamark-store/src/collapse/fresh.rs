//! The most recent states, in full, until they are packed.
//!
//! In: states, numbered by all threads. Out: state number `i`. Invariants: memory is allocated for
//! the whole room; a written state is not written again before all are cleared.
//!
//! ```text
//! number    0 … packed │ first … first + room
//!           tuples     │ fresh: vector 0 is number `first`
//! ```

use crate::states::vectors::{LONGEST, Vectors};
use deltamark_core::{Budget, States, Width};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// States, in full.
pub(super) struct Fresh {
    pub vectors: Vectors,
    /// The number of the first.
    pub first: u64,
    /// How many there may be, from the first on, and how many slots they may have in all, where
    /// their width varies.
    room: [u64; 2],
    /// Bytes the budget has granted for that.
    granted: u64,
}

impl Fresh {
    /// None, and no room for any.
    pub fn new(width: Width, first: u64) -> Self {
        Fresh { vectors: Vectors::new(width), first, room: [0; 2], granted: 0 }
    }

    /// The bytes granted.
    pub fn bytes(&self) -> u64 {
        self.granted
    }

    /// Slots in use, where the width of states varies.
    pub fn slots(&self) -> u64 {
        match &self.vectors {
            Vectors::Fixed(_) => 0,
            Vectors::Varying { used, .. } => used.load(Relaxed),
        }
    }

    /// Whether there is room for all states up to this number, and for this many slots in all.
    #[inline]
    pub fn has_room(&self, [numbers, slots]: [u64; 2]) -> bool {
        numbers <= self.first + self.room[0] && slots <= self.room[1]
    }

    /// Makes room for all states up to this number, and for this many slots in all; and if there is
    /// memory for it, for `ahead` states. Nobody else uses it.
    #[must_use]
    pub fn make_room(&mut self, [numbers, slots]: [u64; 2], ahead: u64, budget: &Budget) -> bool {
        let states = numbers - self.first;
        let many = states.max(ahead);
        let mean = slots.div_ceil(states.max(1));
        // All slots are in one chunk, so none are lost at the end of one.
        let most = self.vectors.most_slots().min(LONGEST as u64);
        let grown = [[many, (many * mean).max(slots).min(most)], [states, slots]].into_iter().any(|room| {
            let room = [room[0].max(self.room[0]), room[1].max(self.room[1])];
            room[1] <= most && self.extend(room, budget)
        });
        grown && self.has_room([numbers, slots])
    }

    fn extend(&mut self, room: [u64; 2], budget: &Budget) -> bool {
        let bytes = match &self.vectors {
            Vectors::Fixed(arena) => room[0] * arena.item() as u64 * 4,
            Vectors::Varying { .. } => room[0] * 8 + room[1] * 4,
        };
        let more = bytes - self.granted;
        if !budget.request(more) {
            return false;
        }
        // From the first on, whatever is in use.
        let addresses = match &self.vectors {
            Vectors::Fixed(arena) => arena.extend(room[0]),
            // One of no slots has an address too, behind all others.
            Vectors::Varying { places, slots, .. } => places.extend(room[0]) && slots.extend(room[1] + 1),
        };
        if !addresses {
            budget.release(more);
            return false;
        }
        self.granted = bytes;
        self.room = room;
        true
    }

    /// Forgets all states; the next one has this number. Nobody else uses it.
    pub fn clear(&mut self, first: u64) {
        self.vectors.clear();
        self.first = first;
    }

    /// Appends states.
    ///
    /// # Safety
    /// As for [`Vectors::get`], for each of them.
    pub unsafe fn read(&self, numbers: Range<u64>, out: &mut States) {
        assert!(self.first <= numbers.start, "{numbers:?} are not fresh: these begin with {}", self.first);
        let end = numbers.end - self.first;
        let mut next = numbers.start - self.first;
        while next < end {
            let before = out.len();
            // SAFETY: the caller's promise.
            unsafe { self.vectors.read(next..end, out) };
            next += (out.len() - before) as u64;
        }
    }
}
