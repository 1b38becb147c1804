//! The walks of a batch: their nodes, the steps between them, and the levels proved.
//!
//! In: states and undone steps. Out: for each state the smallest level that was proved. Invariant:
//! a proof at a node holds for every node it was reached from, plus one level per step.

use crate::tables::bucket::prefetch;
use deltamark_core::{Action, Budget, Slot, States, Width, hash::mix, state::same};

/// Steps back that are to be tried.
#[derive(Default)]
pub(super) struct StepsBack {
    pub list: Vec<StepBack>,
}

/// A step back from a place.
#[derive(Clone, Copy)]
pub(super) struct StepBack {
    pub place: u32,
    pub action: Action,
    /// The code of the crumb it is from.
    pub code: u8,
}

impl StepsBack {
    pub fn reset(&mut self) {
        self.list.clear();
    }

    #[inline(always)]
    pub fn push(&mut self, place: u32, action: Action, code: u8) {
        self.list.push(StepBack { place, action, code });
    }
}

/// States to be looked up in full, with their hashes and places.
pub(super) struct FullLookups {
    pub states: States,
    pub hashes: Vec<u64>,
    pub places: Vec<u32>,
}

impl FullLookups {
    pub fn reset(&mut self, width: Width) {
        self.states.reset(width);
        self.hashes.clear();
        self.places.clear();
    }

    /// Fetches the states of the places that were listed.
    pub fn fetch(&mut self, walks: &Walks) {
        self.states.gather(&walks.states, &self.places);
        self.hashes.extend(self.places.iter().map(|&place| walks.hashes[place as usize]));
    }
}

/// Places to be looked up in the table.
#[derive(Default)]
pub(super) struct Probes {
    pub mixed: Vec<u64>,
    pub places: Vec<u32>,
}

impl Probes {
    pub fn reset(&mut self) {
        self.mixed.clear();
        self.places.clear();
    }

    #[inline(always)]
    pub fn push(&mut self, mixed: u64, place: u32) {
        self.mixed.push(mixed);
        self.places.push(place);
    }
}

/// No place.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Which states of a list were met before.
#[derive(Default)]
pub(super) struct Visited(Vec<u32>);

impl Visited {
    /// Forgets everything; room for `count` states.
    pub fn reset(&mut self, count: usize) {
        self.0.clear();
        self.0.resize((2 * count).next_power_of_two(), 0);
    }

    /// The state equal to this one that claimed first, or the state itself. States are identified by
    /// their numbers, which `same` compares.
    #[inline(always)]
    pub fn claim(&mut self, mixed: u64, number: u32, same: impl Fn(u32) -> bool) -> u32 {
        let mask = self.0.len() - 1;
        let mut at = mixed as usize & mask;
        loop {
            match self.0[at].checked_sub(1) {
                None => {
                    self.0[at] = number + 1;
                    return number;
                }
                Some(earlier) if same(earlier) => return earlier,
                Some(_) => at = (at + 1) & mask,
            }
        }
    }
}

/// The states that the walks of a batch have reached, and from where.
pub(super) struct Walks {
    pub states: States,
    pub hashes: Vec<u64>,
    /// The code that a crumb of each should have, if its level is not kept in full.
    pub codes: Vec<u8>,
    /// The smallest level that was proved for each, or [`UNPROVED`].
    pub proved: Vec<u64>,
    /// For each the last of its origins plus one: the places one step further up.
    pub last: Vec<u32>,
    /// Origins: a place, and the origin before it plus one.
    pub origins: Vec<(u32, u32)>,
    pub open: Vec<(u32, u64)>,
}

/// No level.
pub(super) const UNPROVED: u64 = u64::MAX;

impl Walks {
    pub fn new(width: Width) -> Self {
        let (hashes, codes, proved, last) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Walks { states: States::new(width), hashes, codes, proved, last, origins: Vec::new(), open: Vec::new() }
    }

    pub fn reset(&mut self, width: Width) {
        self.states.reset(width);
        self.hashes.clear();
        self.codes.clear();
        self.proved.clear();
        self.last.clear();
        self.origins.clear();
    }

    /// Adds a place.
    #[inline(always)]
    pub fn add(&mut self, state: &[Slot], hash: u64, code: u8) {
        self.states.push(state);
        self.hashes.push(hash);
        self.codes.push(code);
        self.proved.push(UNPROVED);
        self.last.push(0);
    }

    /// Whether a place is this state, expecting this code.
    #[inline(always)]
    pub fn is(&self, place: u32, state: &[Slot], hash: u64, code: u8) -> bool {
        let at = place as usize;
        self.hashes[at] == hash && self.codes[at] == code && same(self.states.get(at), state)
    }

    /// Records that a step back from `origin` leads to `place`.
    #[inline(always)]
    pub fn link(&mut self, place: u32, origin: u32) {
        self.origins.push((origin, self.last[place as usize]));
        self.last[place as usize] = self.origins.len() as u32;
    }

    /// Notes that a place is at this level at most, and what follows for those above it.
    pub fn prove(&mut self, place: u32, level: u64, recent: &mut Recent) {
        self.open.push((place, level));
        while let Some((place, level)) = self.open.pop() {
            let at = place as usize;
            if self.proved[at] <= level {
                continue;
            }
            self.proved[at] = level;
            recent.remember(self.states.get(at), mix(self.hashes[at]), level);
            let mut origin = self.last[at];
            while origin != 0 {
                let (above, next) = self.origins[origin as usize - 1];
                self.open.push((above, level + 1));
                origin = next;
            }
        }
    }
}

/// States that were proved to have been visited not long ago, in full, one for each value of
/// some bits of the hash. What is proved stays true, so nothing here gets stale.
pub(super) struct Recent {
    /// Slots an entry takes: its level plus one, or 0 if there is none, and the state.
    pub entry: usize,
    pub entries: usize,
    pub slots: Vec<Slot>,
}

impl Recent {
    pub fn new() -> Self {
        Recent { entry: 0, entries: 0, slots: Vec::new() }
    }

    pub fn held(&self) -> u64 {
        (self.slots.capacity() * size_of::<Slot>()) as u64
    }

    /// Forgets everything and holds nothing.
    pub fn forget(&mut self, budget: &Budget) {
        budget.release(self.held());
        *self = Recent::new();
    }

    /// Forgets everything and makes room for states of this width in at most this many bytes.
    /// States of varying width are not cached.
    pub fn resize(&mut self, width: Width, bytes: u64, budget: &Budget) {
        let Width::Fixed(slots) = width else { return };
        let entry = slots + 1;
        let most = bytes / (entry * size_of::<Slot>()) as u64;
        let entries = if most < 64 { 0 } else { 1 << most.ilog2() };
        if (entry, entries) == (self.entry, self.entries) {
            return;
        }
        self.forget(budget);
        if budget.request((entries * entry * size_of::<Slot>()) as u64) {
            *self = Recent { entry, entries, slots: vec![0; entries * entry] };
        }
    }

    #[inline(always)]
    pub fn place(&self, mixed: u64) -> usize {
        (mixed as usize & (self.entries - 1)) * self.entry
    }

    #[inline(always)]
    pub fn prefetch(&self, mixed: u64) {
        if self.entries > 0 {
            prefetch(&self.slots[self.place(mixed)]);
        }
    }

    #[inline(always)]
    pub fn remember(&mut self, state: &[Slot], mixed: u64, level: u64) {
        if self.entries > 0 {
            let at = self.place(mixed);
            let entry = &mut self.slots[at..at + self.entry];
            // A level that takes more than 32 bits is not cached.
            entry[0] = u32::try_from(level + 1).unwrap_or(0);
            entry[1..].iter_mut().zip(state).for_each(|(slot, &value)| *slot = value);
        }
    }

    /// The level that was proved for this state, or [`UNPROVED`].
    #[inline(always)]
    pub fn level(&self, state: &[Slot], mixed: u64) -> u64 {
        if self.entries == 0 {
            return UNPROVED;
        }
        let at = self.place(mixed);
        let entry = &self.slots[at..at + self.entry];
        if entry[0] != 0 && same(&entry[1..], state) { u64::from(entry[0]) - 1 } else { UNPROVED }
    }
}
