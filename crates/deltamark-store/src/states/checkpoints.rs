//! Checkpoints: states stored in full, among many that are not.
//!
//! In: some states, by their numbers; in level order whole levels. Out: the position of a number
//! among them, if it has one, and the state of a position. Invariant: positions are 0, 1, 2 … in
//! the order of insertion.
//!
//! # Layout in memory
//! ```text
//! numbers   … 17 18 19 … 80 81 82 83 …        stretches of numbers that are kept
//! places       0  1  2    3  4  5  6          first number and first place of each, packed
//! states    contiguous vectors, or a store that numbers states 0, 1, 2 …
//! ```
//! In any order there are no ranges: the back edge of a state contains its position.

use crate::integers::packed::Packed;
use crate::states::vectors::Vectors;
use crate::tables::bucket::prefetch;
use deltamark_core::{Arrival, Budget, Bytes, Grant, Insert, Recoding, Scratch, Slot, StateId, States, Store, Width};
use std::ops::Range;
use std::sync::Arc;

/// Vectors are asked for in steps of this many bytes, when there are many.
const STEP: u64 = 64 << 10;

/// States kept in full.
pub(crate) struct Checkpoints<'a> {
    holder: Holder<'a>,
    len: u64,
    firsts: Packed,
    places: Packed,
    /// The number behind the last that is kept.
    end: u64,
}

enum Holder<'a> {
    /// Vectors alone: nobody looks a state up by what it is.
    Own(Vectors, Grant),
    /// A store that recalls states and numbers them in order.
    Base(Box<dyn Store + 'a>, Scratch),
}

/// The stretch that was met last and what follows it, so that numbers that are close to one
/// another are found without searching.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    numbers: Range<u64>,
    place: u64,
    end: u64,
}

impl Hint {
    /// Nothing met so far.
    pub fn new() -> Self {
        Hint { numbers: 0..0, place: 0, end: 0 }
    }
}

impl<'a> Checkpoints<'a> {
    /// No states; those to come are kept as vectors.
    pub fn own(width: Width, budget: &Arc<Budget>) -> Self {
        Self::new(Holder::Own(Vectors::new(width), Grant::new(budget)), budget)
    }

    /// No states; those to come are kept in this store, which recalls states.
    pub fn in_store(store: Box<dyn Store + 'a>, budget: &Arc<Budget>) -> Self {
        debug_assert!(store.recall().is_some_and(|recall| recall.sequential() && recall.whole()));
        let scratch = store.scratch();
        Self::new(Holder::Base(store, scratch), budget)
    }

    fn new(holder: Holder<'a>, budget: &Arc<Budget>) -> Self {
        Checkpoints { holder, len: 0, firsts: Packed::new(budget), places: Packed::new(budget), end: 0 }
    }

    /// How many states it holds.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes it holds, by part.
    pub fn bytes(&self) -> Bytes {
        let stretches = self.firsts.bytes() + self.places.bytes();
        let mut bytes = match &self.holder {
            Holder::Own(_, grant) => Bytes::new().with("kept in full", grant.bytes()),
            Holder::Base(store, _) => {
                let mut bytes = Bytes::new();
                for &(_, part) in store.bytes().parts() {
                    bytes.add("kept in full", part);
                }
                bytes
            }
        };
        bytes.add("kept in full", stretches);
        bytes
    }

    /// Keeps a state; returns at which place, if the budget has room.
    #[must_use]
    pub fn keep(&mut self, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Option<u64> {
        match &mut self.holder {
            Holder::Own(vectors, grant) => {
                vectors.check(state);
                let used = vectors.used_bytes(self.len) + vectors.needed_bytes(1, state.len() as u64);
                if used > grant.bytes() {
                    let missing = used - grant.bytes();
                    let step = if used > STEP { STEP } else { 512 };
                    if !grant.ask(missing.next_multiple_of(step)) && !grant.ask(missing) {
                        return None;
                    }
                }
                if !vectors.extend(self.len, 1, state.len() as u64) {
                    return None;
                }
                // SAFETY: the state was checked, the vectors were extended for this number, and
                // `&mut self` means that nobody else knows of it.
                unsafe { vectors.write(self.len, state) };
            }
            Holder::Base(store, scratch) => match store.insert(scratch, state, hash, arrival) {
                Insert::New(id) => assert_eq!(id, StateId::new(self.len), "a base store numbers states in order"),
                Insert::Seen(id) => unreachable!("a state is kept once, this one is {id:?} already"),
                Insert::Full => return None,
            },
        }
        self.len += 1;
        Some(self.len - 1)
    }

    /// Keeps the state of this number, which is larger than those kept before, in level order.
    #[must_use]
    pub fn keep_number(&mut self, number: u64, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> bool {
        let opens = self.len == 0 || self.end != number;
        if opens && !(self.firsts.reserve(1, number) && self.places.reserve(1, self.len)) {
            return false;
        }
        let Some(place) = self.keep(state, hash, arrival) else { return false };
        if opens {
            self.firsts.push(number);
            self.places.push(place);
        }
        self.end = number + 1;
        true
    }

    /// The place of a number, in level order.
    #[inline(always)]
    pub fn place(&self, hint: &mut Hint, number: u64) -> Option<u64> {
        if !hint.numbers.contains(&number) {
            self.search(hint, number);
        }
        let place = hint.place + (number - hint.numbers.start);
        (place < hint.end).then_some(place)
    }

    #[cold]
    fn search(&self, hint: &mut Hint, number: u64) {
        let stretch = self.firsts.partition_point(|first| first <= number);
        let at = |list: &Packed, index: u64, or: u64| if index < list.len() { list.get(index) } else { or };
        let numbers = if stretch == 0 { 0 } else { self.firsts.get(stretch - 1) }..at(&self.firsts, stretch, u64::MAX);
        *hint = match stretch {
            0 => Hint { numbers, place: 0, end: 0 },
            _ => Hint { numbers, place: self.places.get(stretch - 1), end: at(&self.places, stretch, self.len) },
        };
    }

    /// Appends the states of these places.
    pub fn states(&mut self, places: &[u64], out: &mut States) {
        match &mut self.holder {
            Holder::Own(vectors, _) => {
                for &place in places {
                    prefetch(vectors.hint(place));
                }
                for &place in places {
                    assert!(place < self.len);
                    // SAFETY: all places below `len` are written.
                    out.push(unsafe { vectors.get(place) });
                }
            }
            Holder::Base(store, scratch) => {
                let Some(recall) = store.recall() else { unreachable!("a base store recalls states") };
                let mut ids = [StateId::NAMELESS; 64];
                for places in places.chunks(64) {
                    for (id, &place) in ids.iter_mut().zip(places) {
                        *id = StateId::new(place);
                    }
                    recall.recall(scratch, &ids[..places.len()], out);
                }
            }
        }
    }

    /// Translates every state; `false` means that the budget has no room.
    #[must_use]
    pub fn recode(&mut self, recoding: &Recoding) -> bool {
        match &mut self.holder {
            Holder::Own(vectors, grant) => {
                let old = vectors.used_bytes(self.len);
                let new = match (recoding.from, recoding.to) {
                    (Width::Fixed(_), Width::Fixed(to)) => self.len * to as u64 * 4,
                    // How long each will be is known only when it is translated.
                    _ => 3 * old,
                };
                let more = new.saturating_sub(grant.bytes());
                // New pages are there before old ones are given back.
                let meanwhile = old.min(4 << 20);
                if !grant.ask(more + meanwhile) {
                    return false;
                }
                let recoded = vectors.recode(self.len, recoding, grant.budget());
                grant.give_back(if recoded { meanwhile } else { more + meanwhile });
                recoded
            }
            Holder::Base(store, _) => store.recode(recoding),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Action;

    #[test]
    fn numbers_are_found_in_their_stretches() {
        let budget = Arc::new(Budget::unlimited());
        let mut kept = Checkpoints::own(Width::Fixed(1), &budget);
        let most = if cfg!(miri) { 600 } else { 10_000 };
        let is_kept = |number: u64| number < 3 || number % 100 > 90 || (most / 2..most / 2 + 200).contains(&number);
        let arrival = Arrival { parent: None, action: Action(0) };
        for number in (0..most).filter(|&number| is_kept(number)) {
            assert!(kept.keep_number(number, &[number as Slot], 0, &arrival));
        }
        let mut hint = Hint::new();
        for step in 0..2 * most {
            let number = if step < most { step } else { deltamark_core::hash::mix(step) % most };
            let place = kept.place(&mut hint, number);
            assert_eq!(place.is_some(), is_kept(number), "{number}");
            if let Some(place) = place {
                let mut states = States::new(Width::Fixed(1));
                kept.states(&[place], &mut states);
                assert_eq!(states.get(0), [number as Slot]);
            }
        }
        assert_eq!(kept.bytes().total(), budget.used());
    }
}
