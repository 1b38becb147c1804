//! The states of one level in full, while it is the current level.
//!
//! In: states with consecutive numbers. Out: the same by number. Invariants: every byte is
//! requested from the budget first; memory is reused for the next level, and freed when levels get
//! much smaller.

use crate::states::vectors::Vectors;
use deltamark_core::{Budget, Recoding, Slot, States, Width};
use std::ops::Range;

/// Memory is asked for in steps of at least this many bytes.
const STEP: u64 = 4 << 10;
/// How much is kept for the next level whatever its size.
const KEEP: u64 = 1 << 20;

/// States with consecutive numbers.
pub(crate) struct Unpacked {
    vectors: Vectors,
    numbers: Range<u64>,
    /// How many states have an address.
    addressed: u64,
    /// Bytes that the budget granted.
    granted: u64,
}

impl Unpacked {
    /// No states, of this width; the first will have the number `start`.
    pub fn new(width: Width, start: u64) -> Self {
        Unpacked { vectors: Vectors::new(width), numbers: start..start, addressed: 0, granted: 0 }
    }

    /// The numbers of its states.
    #[inline(always)]
    pub fn numbers(&self) -> Range<u64> {
        self.numbers.clone()
    }

    /// Bytes that the budget granted.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    fn len(&self) -> u64 {
        self.numbers.end - self.numbers.start
    }

    /// Makes sure that a state can be [pushed](Self::push). `false` means that there is no room.
    #[must_use]
    #[inline]
    pub fn reserve(&mut self, slots: usize, budget: &Budget) -> bool {
        let len = self.len();
        let needed = self.vectors.used_bytes(len) + self.vectors.needed_bytes(1, slots as u64);
        if needed <= self.granted && len < self.addressed {
            return true;
        }
        self.extend(needed, slots, budget)
    }

    #[cold]
    fn extend(&mut self, needed: u64, slots: usize, budget: &Budget) -> bool {
        if needed > self.granted {
            let missing = needed - self.granted;
            let step = (needed / 16).clamp(STEP, KEEP);
            let asked = [missing.next_multiple_of(step), missing].into_iter().find(|&bytes| budget.request(bytes));
            let Some(asked) = asked else { return false };
            self.granted += asked;
        }
        let len = self.len();
        let ahead = self.vectors.fitting(self.granted).saturating_sub(len).max(1);
        let extended = self.vectors.extend(len, ahead, slots as u64);
        // Slots of states of varying width are addressed for this state alone.
        let fixed = matches!(self.vectors, Vectors::Fixed(_));
        self.addressed = if extended { len + if fixed { ahead } else { 1 } } else { len };
        extended
    }

    /// Appends a state, for which room was [reserved](Self::reserve).
    #[inline(always)]
    pub fn push(&mut self, state: &[Slot]) {
        assert!(self.len() < self.addressed, "room was reserved");
        self.vectors.check(state);
        // SAFETY: the state was checked, there is an address for it, and `&mut self` means that
        // nobody else writes or reads.
        unsafe { self.vectors.write(self.len(), state) };
        self.numbers.end += 1;
        if matches!(self.vectors, Vectors::Varying { .. }) {
            self.addressed = self.len();
        }
    }

    /// The state of one of its numbers.
    #[inline(always)]
    pub fn get(&self, number: u64) -> &[Slot] {
        assert!(self.numbers.contains(&number), "a state of this level");
        // SAFETY: states of all its numbers were written, and `&self` means that nobody writes.
        unsafe { self.vectors.get(number - self.numbers.start) }
    }

    /// The address of the state of one of its numbers, to prefetch it.
    #[inline(always)]
    pub fn address(&self, number: u64) -> *const u32 {
        self.vectors.hint(number - self.numbers.start)
    }

    /// Appends the states of these numbers to `out`.
    pub fn read(&self, numbers: Range<u64>, out: &mut States) {
        assert!(numbers.start >= self.numbers.start && numbers.end <= self.numbers.end, "states of this level");
        let mut next = numbers.start - self.numbers.start;
        let end = numbers.end - self.numbers.start;
        while next < end {
            let before = out.len();
            // SAFETY: as in `get`.
            unsafe { self.vectors.read(next..end, out) };
            next += (out.len() - before) as u64;
        }
    }

    /// Forgets its states; the next will have the number `start`. Memory is kept for a level
    /// of about `expected` bytes.
    pub fn clear(&mut self, width: Width, start: u64, expected: u64, budget: &Budget) {
        if self.granted > 2 * expected + KEEP {
            budget.release(self.granted);
            *self = Unpacked::new(width, start);
        } else {
            self.vectors.clear();
            self.numbers = start..start;
        }
    }

    /// Translates its states. `false` means that there is no room; the states may then be gone.
    #[must_use]
    pub fn recode(&mut self, recoding: &Recoding, budget: &Budget) -> bool {
        let old = self.vectors.used_bytes(self.len());
        let new = match (recoding.from, recoding.to) {
            (Width::Fixed(_), Width::Fixed(to)) => self.len() * to as u64 * 4,
            _ => 3 * old,
        };
        // The old ones are there until the new ones are.
        let more = new.saturating_sub(self.granted);
        if !budget.request(more + old) {
            return false;
        }
        let recoded = self.vectors.recode(self.len(), recoding, budget);
        budget.release(old);
        self.granted += more;
        self.addressed = self.len();
        recoded
    }
}
