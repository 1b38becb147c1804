//! Full state vectors, numbered in the order they come.
//!
//! In: states of fixed or varying width. Out: state number `i`. Invariant: a written vector does
//! not move until a recoding, so it can be read while others are added.
//!
//! To add states: `check` that they are not too long, request `needed_bytes` from the budget, `extend`, and `write` each.
//!
//! States are contiguous. States of varying width take eight more bytes each for offset (40 bits)
//! and length (24 bits).

use crate::memory::arena::Arena;
use deltamark_core::{Budget, Recoding, Slot, States, Width};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Full state vectors.
pub(crate) enum Vectors {
    /// All of one width.
    Fixed(Arena),
    /// Of any width: where they begin and how long they are; their slots; slots in use.
    Varying { places: Arena, slots: Arena, used: AtomicU64 },
}

/// The longest state of varying width: as many slots as a chunk holds, less one.
#[cfg(not(miri))]
pub(crate) const LONGEST: usize = (1 << 24) - 1;
#[cfg(miri)]
pub(crate) const LONGEST: usize = (1 << 8) - 1;

impl Vectors {
    pub fn new(width: Width) -> Self {
        match width {
            Width::Fixed(slots) => Vectors::Fixed(Arena::new(slots)),
            Width::Varies => {
                Vectors::Varying { places: Arena::new(2), slots: Arena::of_words(), used: AtomicU64::new(0) }
            }
        }
    }

    /// The most slots that states may have in all for which room is made at once, so that each of them
    /// fits into a chunk. It is a limit only where chunks are small because addresses are few.
    #[inline]
    pub fn most_slots(&self) -> u64 {
        match self {
            Vectors::Varying { slots, .. } if slots.chunk_items() <= LONGEST => slots.chunk_items() as u64 - 1,
            _ => u64::MAX,
        }
    }

    /// Bytes in use by `len` states.
    pub fn used_bytes(&self, len: u64) -> u64 {
        match self {
            Vectors::Fixed(arena) => len * arena.item() as u64 * 4,
            Vectors::Varying { used, .. } => len * 8 + used.load(Relaxed) * 4,
        }
    }

    /// The most bytes that `states` more states of `slots` slots in all will need.
    pub fn needed_bytes(&self, states: u64, slots: u64) -> u64 {
        match self {
            Vectors::Fixed(arena) => states * arena.item() as u64 * 4,
            // A state does not cross a chunk: as much as is left of one may be lost.
            Vectors::Varying { .. } => states * 8 + slots * 4 * 2,
        }
    }

    /// How many states of fixed width fit into this many bytes.
    pub fn fitting(&self, bytes: u64) -> u64 {
        match self {
            Vectors::Fixed(arena) => bytes / (arena.item() as u64 * 4).max(1),
            Vectors::Varying { .. } => 0,
        }
    }

    /// Makes sure that there are addresses for all that `bytes`, of which `len` states have
    /// used their part, can hold. Returns whether the system had the memory.
    #[must_use]
    pub fn extend_to(&self, len: u64, bytes: u64) -> bool {
        let free = bytes.saturating_sub(self.used_bytes(len));
        match self {
            Vectors::Fixed(_) => self.extend(len, self.fitting(free), 0),
            // Addresses cost nothing: for states of no slots, and for one of all slots.
            Vectors::Varying { .. } => self.address_all(len, free / 8, free / 4),
        }
    }

    /// Makes sure that there are addresses for `states` more than `len` states, of `slots`
    /// slots in all. Returns whether the system had the memory.
    #[must_use]
    pub fn extend(&self, len: u64, states: u64, slots: u64) -> bool {
        slots <= self.most_slots() && self.address_all(len, states, slots)
    }

    fn address_all(&self, len: u64, states: u64, slots: u64) -> bool {
        match self {
            Vectors::Fixed(arena) => arena.extend(len + states),
            Vectors::Varying { places, slots: arena, used } => {
                // A state that does not fit into the rest of a chunk skips to the next.
                let end = used.load(Relaxed) + slots;
                places.extend(len + states) && arena.extend(end + arena.contiguous(end) + slots)
            }
        }
    }

    /// Forgets all states and keeps their memory.
    pub fn clear(&mut self) {
        if let Vectors::Varying { used, .. } = self {
            *used.get_mut() = 0;
        }
    }

    /// The slots of state `index`.
    ///
    /// # Safety
    /// The state has been [written](Self::write), and the caller learned of its number
    /// after that (through an acquiring load of what the writer released).
    #[inline(always)]
    pub unsafe fn get(&self, index: u64) -> &[Slot] {
        match self {
            Vectors::Fixed(arena) => {
                // SAFETY: the caller's promise: the item was written and is no longer changed.
                unsafe { std::slice::from_raw_parts(arena.address(index), arena.item()) }
            }
            Vectors::Varying { places, slots, .. } => {
                // SAFETY: as above, for the eight bytes that say where the state is, and
                // then for the slots they name.
                unsafe {
                    let place: u64 = places.address(index).cast::<u64>().read();
                    std::slice::from_raw_parts(slots.address(place >> 24), (place & 0xff_ffff) as usize)
                }
            }
        }
    }

    /// Appends the states of `range` to `out`: at least the first, at most all.
    ///
    /// # Safety
    /// As for [`get`](Self::get), for each of them.
    pub unsafe fn read(&self, range: Range<u64>, out: &mut States) {
        match self {
            Vectors::Fixed(arena) => {
                let count = (range.end - range.start).min(arena.contiguous(range.start)) as usize;
                // SAFETY: the caller's promise; items up to the end of a chunk are
                // contiguous.
                let slots = unsafe { std::slice::from_raw_parts(arena.address(range.start), count * arena.item()) };
                out.grow(count).copy_from_slice(slots);
            }
            Vectors::Varying { .. } => {
                for number in range {
                    // SAFETY: the caller's promise.
                    out.push(unsafe { self.get(number) });
                }
            }
        }
    }

    /// The address to prefetch before state `index` is read.
    #[inline(always)]
    pub fn hint(&self, index: u64) -> *const u32 {
        match self {
            Vectors::Fixed(arena) => arena.address(index),
            Vectors::Varying { places, .. } => places.address(index),
        }
    }

    /// Makes sure that states can be written.
    ///
    /// # Panics
    /// When they have the wrong width or one is too long.
    #[inline(always)]
    pub fn check_all(&self, states: &States) {
        match self {
            Vectors::Fixed(arena) => {
                let width = Width::Fixed(arena.item());
                assert_eq!(states.width(), width, "states of a fixed-width system have its width");
            }
            Vectors::Varying { .. } => {
                assert_eq!(states.width(), Width::Varies, "states of a system whose width varies");
                let longest = states.iter().map(<[Slot]>::len).max().unwrap_or(0);
                assert!(longest <= LONGEST, "a state has at most {LONGEST} slots");
            }
        }
    }

    /// Makes sure that a state can be written.
    ///
    /// # Panics
    /// When it has the wrong width or is too long.
    #[inline(always)]
    pub fn check(&self, state: &[Slot]) {
        match self {
            Vectors::Fixed(arena) => {
                assert_eq!(state.len(), arena.item(), "a state of a fixed-width system has its width");
            }
            Vectors::Varying { .. } => assert!(state.len() <= LONGEST, "a state has at most {LONGEST} slots"),
        }
    }

    /// Writes state `index`, which has been [checked](Self::check).
    ///
    /// # Safety
    /// The state was [checked](Self::check), the vectors were [extended](Self::extend) for it,
    /// nobody else writes this number, and its number has not been published.
    #[inline(always)]
    pub unsafe fn write(&self, index: u64, state: &[Slot]) {
        match self {
            Vectors::Fixed(arena) => {
                debug_assert_eq!(state.len(), arena.item());
                // SAFETY: the item has an address of its own, and the state its width (the
                // caller's promises).
                unsafe { std::ptr::copy_nonoverlapping(state.as_ptr(), arena.address(index), state.len()) }
            }
            Vectors::Varying { places, slots, used } => {
                let start = claim(slots, used, state.len() as u64);
                let place = start << 24 | state.len() as u64;
                // SAFETY: `claim` gives every caller slots of its own, within one chunk, and
                // `extend` made sure that the chunk is there.
                unsafe {
                    std::ptr::copy_nonoverlapping(state.as_ptr(), slots.address(start), state.len());
                    places.address(index).cast::<u64>().write(place);
                }
            }
        }
    }

    /// Translates the first `len` states. Returns whether the system had the memory; if not,
    /// nothing has changed. `false` too if the run that `budget` is for is over: then the states are lost.
    #[must_use]
    pub fn recode(&mut self, len: u64, recoding: &Recoding, budget: &Budget) -> bool {
        if budget.is_over() {
            return false;
        }
        let mut buffer = Vec::new();
        let mut slots = 0;
        let mut goes_on = |translated: usize| {
            slots += translated;
            let asked = slots >= ASKED;
            slots = if asked { 0 } else { slots };
            !(asked && budget.is_over())
        };
        match (&mut *self, recoding.to) {
            (Vectors::Fixed(arena), Width::Fixed(width)) => arena.rewrite(width, len, |old, new| {
                recoding.translate(old, &mut buffer);
                new.copy_from_slice(&buffer);
                goes_on(buffer.len())
            }),
            _ => {
                let new = Vectors::new(recoding.to);
                for index in 0..len {
                    if !goes_on(buffer.len()) {
                        return false;
                    }
                    // SAFETY: the first `len` states have been written, and `&mut self` says
                    // that nobody writes now.
                    recoding.translate(unsafe { self.get(index) }, &mut buffer);
                    new.check(&buffer);
                    if !new.extend(index, 1, buffer.len() as u64) {
                        return false;
                    }
                    // SAFETY: the new vectors were extended for this state, and no other
                    // thread knows them.
                    unsafe { new.write(index, &buffer) };
                }
                *self = new;
                true
            }
        }
    }
}

/// Slots that are translated from one question whether to go on to the next.
const ASKED: usize = 1 << 18;

/// Takes `count` slots within one chunk; returns where they begin.
fn claim(slots: &Arena, used: &AtomicU64, count: u64) -> u64 {
    debug_assert!(count as usize <= LONGEST);
    let place = |start: u64| {
        let left = slots.contiguous(start);
        if left < count { start + left } else { start }
    };
    let before =
        used.fetch_update(Relaxed, Relaxed, |start| Some(place(start) + count)).expect("the update never refuses");
    place(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Field;
    use deltamark_core::hash::mix;

    fn state(number: u64, width: Width) -> Vec<Slot> {
        // Long enough for some to find no room in the rest of a chunk, which is small under Miri.
        let slots = if let Width::Fixed(slots) = width { slots as u64 } else { mix(number) % 23 };
        (0..slots).map(|slot| (number * 31 + slot) as Slot).collect()
    }

    /// States `range`, read in stretches.
    fn read(vectors: &Vectors, width: Width, range: Range<u64>) -> States {
        let mut states = States::new(width);
        while (states.len() as u64) < range.end - range.start {
            // SAFETY: the tests ask for states that were written, on the thread that has written them
            // or after it has ended.
            unsafe { vectors.read(range.start + states.len() as u64..range.end, &mut states) };
        }
        states
    }

    #[test]
    fn states_that_threads_write_come_back_also_recoded() {
        const THREADS: u64 = 3;
        let count: u64 = THREADS * if cfg!(miri) { 25 } else { 30_000 };
        for (from, to) in [(Width::Fixed(1), 3), (Width::Fixed(3), 3), (Width::Fixed(3), 1), (Width::Varies, 0)] {
            let mut vectors = Vectors::new(from);
            assert!(vectors.extend(0, count, (0..count).map(|number| state(number, from).len() as u64).sum()));
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let vectors = &vectors;
                    scope.spawn(move || {
                        for number in (thread..count).step_by(THREADS as usize) {
                            let state = state(number, from);
                            vectors.check(&state);
                            // SAFETY: it was checked, the vectors were extended for all, and no other
                            // thread has this number.
                            unsafe { vectors.write(number, &state) };
                            // SAFETY: this thread has just written it.
                            assert_eq!(unsafe { vectors.get(number) }, state);
                        }
                    });
                }
            });
            let states = read(&vectors, from, 0..count);
            assert!(states.iter().zip(0..).all(|(held, number)| held == state(number, from)), "{from:?}");
            let Width::Fixed(slots) = from else { continue };
            // The slots the other way round, as far as there are any; each one more than it was.
            let pairs = (0..slots.min(to) as u32)
                .map(|slot| (Field::new(slots as u32 - 1 - slot, 0, 32, 0), Field::new(slot, 0, 32, -1)));
            let recoding = Recoding::new(slots, to, String::new(), pairs);
            assert!(vectors.recode(count, &recoding, &Budget::unlimited()));
            let mut translated = Vec::new();
            for (held, number) in read(&vectors, recoding.to, 0..count).iter().zip(0..) {
                recoding.translate(&state(number, from), &mut translated);
                assert_eq!(held, translated, "{from:?} to {to:?}");
            }
        }
    }
}
