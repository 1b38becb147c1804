//! Hashes of states, memoised by slot.
//!
//! In: a state. Out: the sum of what its places add to its hash. What stays true: an entry holds its whole key, slot and
//! value, and is of the layout in use, so what is memoised is what the tables of places would give.
//!
//! Neighbouring states share most of their slots, and a slot holds the markings of several places: one look at a small
//! table that stays in the cache replaces a look at the tables of all these places.

use deltamark_core::{Layout, Slot};

/// Log2 of the number of entries: 32 KiB a thread.
const ENTRIES: u32 = 11;

/// What a thread has memoised.
pub(crate) struct SlotHashes {
    /// The slot plus one and its value, and what its places add.
    entries: Vec<(u64, u64)>,
    /// The places in each slot.
    places: Vec<Vec<u32>>,
}

impl SlotHashes {
    /// Nothing memoised, for states of this layout.
    pub fn new(layout: &Layout) -> Self {
        let mut places = vec![Vec::new(); layout.slots];
        for (place, field) in (0..).zip(&layout.fields).filter(|(_, field)| field.bits() > 0) {
            places[field.slot() as usize].push(place);
        }
        SlotHashes { entries: vec![(0, 0); 1 << ENTRIES], places }
    }

    /// The sum over all places that take bits; `add` is what one adds in this state.
    #[inline]
    pub fn sum(&mut self, state: &[Slot], add: impl Fn(u32) -> u64) -> u64 {
        let mut sum = 0u64;
        for (slot, (&value, places)) in (1u64..).zip(state.iter().zip(&self.places)) {
            let key = slot << 32 | u64::from(value);
            let at = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENTRIES);
            let entry = &mut self.entries[at as usize];
            if entry.0 != key {
                *entry = (key, places.iter().fold(0, |sum, &place| sum.wrapping_add(add(place))));
            }
            sum = sum.wrapping_add(entry.1);
        }
        sum
    }
}
