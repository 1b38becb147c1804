//! Actions, and what they do to places: numbered tables that all threads share.
//!
//! In: a transition and a binding, with what it requires and changes. Out: numbers. What
//! stays true: an action is a (transition, binding) pair, so that with its source it names one
//! successor; equal pairs have equal numbers.
//!
//! ```text
//! action   [ transition | flags | changes | requirements | inhibitors | ceilings | bound | priority:64 | hash:64 ]
//!          [ place effect ]…         what happens to places that change
//!          [ place token count ]…    what must be there
//!          [ place token count ]…    what blocks it, if all of them are there
//!          [ place token count ]…    where any of them is there, it fills a place beyond its capacity
//!          [ code:64 ]…              values of the variables
//! effect   [ place | hash:64 | token gain … ]  ascending by token; gain is signed and not 0
//!          [ place | hash:64 | RESET 0 | token gain … ]  of a place that is emptied before
//! ```
//! Effects are numbered in blocks of [`BLOCK`], each of one place; numbers of a block begin at a multiple of 16.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use deltamark_core::hash::mix;

use crate::net::Fault;
use crate::tables::chunks::{Chunks, Index, Meter};
use crate::tables::values::Code;

/// Words before the lists of an action.
const HEAD: usize = 11;
const FAULT: u32 = 1;
const LATE: u32 = 2;
const RESETS: u32 = 4;
/// The token that marks an effect that empties the place: greater than any token, so it is first by position, not by
/// value.
pub(crate) const RESET: u32 = u32::MAX;

/// A place, a token and how often.
pub(crate) type Claim = (u32, u32, u32);

/// The data of an action that gets a number.
#[derive(Default)]
pub(crate) struct NewAction<'a> {
    pub transition: u32,
    pub binding: &'a [Code],
    pub requirements: &'a [Claim],
    /// Place and effect.
    pub changes: &'a [(u32, u32)],
    pub inhibitors: &'a [Claim],
    pub ceilings: &'a [Claim],
    pub priority: i64,
    /// What it adds to the hash of a state.
    pub hash: u64,
    /// Whether inhibitors, guard or priority must be worked out in each state.
    pub late: bool,
    /// Whether it empties a place.
    pub resets: bool,
    pub fault: Option<Fault>,
}

/// All actions so far.
pub(crate) struct Actions {
    starts: Chunks<AtomicU32>,
    words: Chunks<AtomicU32>,
    count: AtomicU32,
    growing: Mutex<Growing>,
    faults: Mutex<Vec<(u32, Fault)>>,
}

struct Growing {
    used: usize,
    index: Index,
    words: Vec<u32>,
}

impl Actions {
    /// No actions yet.
    pub fn new(meter: &Meter) -> Self {
        Actions {
            starts: Chunks::new(meter),
            words: Chunks::new(meter),
            count: AtomicU32::new(0),
            growing: Mutex::new(Growing { used: 0, index: Index::new(meter), words: Vec::new() }),
            faults: Mutex::default(),
        }
    }

    /// The number of actions.
    pub fn count(&self) -> u32 {
        self.count.load(Relaxed)
    }

    /// The number of an action; `None` if the pair has none.
    pub fn find(&self, transition: u32, binding: &[Code]) -> Option<u32> {
        let growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        growing.index.find(key(transition, binding), |known| self.is(known, transition, binding))
    }

    /// The number of an action, assigned now unless it has one.
    pub fn add(&self, new: &NewAction<'_>) -> u32 {
        let hash = key(new.transition, new.binding);
        let mut growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let Growing { used, index, words } = &mut *growing;
        if let Some(known) = index.find(hash, |known| self.is(known, new.transition, new.binding)) {
            return known;
        }
        let number = self.count.load(Relaxed);
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(new.fault.is_some(), FAULT) | flag(new.late, LATE) | flag(new.resets, RESETS);
        words.clear();
        words.extend([new.transition, flags, new.changes.len() as u32, new.requirements.len() as u32]);
        words.extend([new.inhibitors.len() as u32, new.ceilings.len() as u32, new.binding.len() as u32]);
        words.extend(halves(new.priority as u64));
        words.extend(halves(new.hash));
        debug_assert_eq!(words.len(), HEAD);
        words.extend(new.changes.iter().flat_map(|&(place, effect)| [place, effect]));
        for claims in [new.requirements, new.inhibitors, new.ceilings] {
            words.extend(claims.iter().flat_map(|&(place, token, count)| [place, token, count]));
        }
        words.extend(new.binding.iter().flat_map(|&code| halves(code as u64)));
        let start = self.words.room(*used, words.len()).expect("memory ends before the actions");
        for (word, &value) in self.words.slice(start, words.len()).iter().zip(words.iter()) {
            word.store(value, Relaxed);
        }
        *used = start + words.len();
        self.starts.room(number as usize, 1).expect("memory ends before the actions");
        self.starts.at(number as usize).store(start as u32, Relaxed);
        if let Some(fault) = &new.fault {
            self.faults.lock().unwrap_or_else(PoisonError::into_inner).push((number, fault.clone()));
        }
        index.add(hash, number, |known| {
            let known = self.get(known);
            key(known.transition(), &known.binding().collect::<Vec<_>>())
        });
        self.count.store(number + 1, Relaxed);
        number
    }

    fn is(&self, action: u32, transition: u32, binding: &[Code]) -> bool {
        let action = self.get(action);
        action.transition() == transition && action.binding().eq(binding.iter().copied())
    }

    /// The action of this number.
    #[inline]
    pub fn get(&self, number: u32) -> ActionRef<'_> {
        ActionRef { words: self.words.rest(self.starts.get(number as usize) as usize) }
    }

    /// The fault, if this action is one.
    pub fn fault(&self, action: u32) -> Option<Fault> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.iter().find(|(known, _)| *known == action).map(|(_, fault)| fault.clone())
    }

    /// The bytes the table holds.
    pub fn bytes(&self) -> u64 {
        let index = self.growing.lock().unwrap_or_else(PoisonError::into_inner).index.bytes();
        self.starts.bytes() + self.words.bytes() + index
    }
}

fn key(transition: u32, binding: &[Code]) -> u64 {
    binding.iter().fold(mix(u64::from(transition) + 1), |hash, &code| mix(hash.rotate_left(7) ^ code as u64))
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// One action of the table: its words, and the rest of their chunk.
#[derive(Clone, Copy)]
pub(crate) struct ActionRef<'a> {
    words: &'a [AtomicU32],
}

impl<'a> ActionRef<'a> {
    #[inline]
    fn word(self, at: usize) -> u32 {
        self.words[at].load(Relaxed)
    }

    #[inline]
    fn long(self, at: usize) -> u64 {
        u64::from(self.word(at)) | u64::from(self.word(at + 1)) << 32
    }

    /// Its transition.
    #[inline]
    pub fn transition(self) -> u32 {
        self.word(0)
    }

    /// Whether it is a fault in every state.
    #[inline]
    pub fn is_fault(self) -> bool {
        self.word(1) & FAULT != 0
    }

    /// Whether guard, inhibitors or priority must be evaluated in each state.
    #[inline]
    pub fn is_late(self) -> bool {
        self.word(1) & LATE != 0
    }

    /// Whether it empties a place: what it adds to the hash of a state depends on the state, and it cannot be undone.
    #[inline]
    pub fn resets(self) -> bool {
        self.word(1) & RESETS != 0
    }

    /// Its priority, where that does not depend on the state.
    pub fn priority(self) -> i64 {
        self.long(7) as i64
    }

    /// What it adds to the hash of a state, unless it [resets](Self::resets) a place.
    #[inline]
    pub fn hash(self) -> u64 {
        self.long(9)
    }

    /// Where the lists begin: requirements, inhibitors, ceilings, binding.
    fn starts(self) -> [usize; 4] {
        let [changes, requirements, inhibitors, ceilings] = [2, 3, 4, 5].map(|at| self.word(at) as usize);
        let first = HEAD + 2 * changes;
        let second = first + 3 * requirements;
        let third = second + 3 * inhibitors;
        [first, second, third, third + 3 * ceilings]
    }

    fn claims(self, from: usize, to: usize) -> impl Iterator<Item = Claim> + 'a {
        let load = |word: &AtomicU32| word.load(Relaxed);
        self.words[from..to].chunks_exact(3).map(move |claim| (load(&claim[0]), load(&claim[1]), load(&claim[2])))
    }

    /// The places it changes, each with its effect.
    #[inline]
    pub fn changes(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let pairs = self.words[HEAD..HEAD + 2 * self.word(2) as usize].chunks_exact(2);
        pairs.map(|pair| (pair[0].load(Relaxed), pair[1].load(Relaxed)))
    }

    /// The tokens it requires.
    pub fn requirements(self) -> impl Iterator<Item = Claim> + 'a {
        let [from, to, ..] = self.starts();
        self.claims(from, to)
    }

    /// Whether there are any inhibitors whose tokens are known.
    #[inline]
    pub fn inhibited(self) -> bool {
        self.word(4) > 0
    }

    /// The tokens that disable it if all are present.
    pub fn inhibitors(self) -> impl Iterator<Item = Claim> + 'a {
        let [_, from, to, _] = self.starts();
        self.claims(from, to)
    }

    /// The tokens any one of which, if present, makes a place exceed its capacity; one with count 0 always
    /// is.
    pub fn ceilings(self) -> impl Iterator<Item = Claim> + 'a {
        let [_, _, from, to] = self.starts();
        self.claims(from, to)
    }

    /// The values of the variables.
    pub fn binding(self) -> impl Iterator<Item = Code> + 'a {
        let from = self.starts()[3];
        (0..self.word(6) as usize).map(move |number| self.long(from + 2 * number) as Code)
    }
}

/// Words before the tokens of an effect.
const EFFECT_HEAD: usize = 3;

/// Effects in a block: their numbers differ only in the lowest four bits.
pub(crate) const BLOCK: u32 = 14;

/// The effects of actions on places, each distinct effect once.
pub(crate) struct Effects {
    heads: Chunks<AtomicU64>,
    words: Chunks<AtomicU32>,
    growing: Mutex<GrowingEffects>,
}

struct GrowingEffects {
    /// The number of blocks.
    blocks: u32,
    /// The number of a place's next effect, unless its block is full.
    next: HashMap<u32, u32>,
    used: usize,
    index: Index,
}

impl Effects {
    /// No effects yet.
    pub fn new(meter: &Meter) -> Self {
        let growing = GrowingEffects { blocks: 0, next: HashMap::new(), used: 0, index: Index::new(meter) };
        Effects { heads: Chunks::new(meter), words: Chunks::new(meter), growing: Mutex::new(growing) }
    }

    /// The number of an effect on a place: tokens in ascending order, each with its gain. `added` is what
    /// that adds to the hash of a state.
    pub fn add(&self, place: u32, gains: &[(u32, i32)], added: u64) -> u32 {
        let hash_of = |place: u32, gains: &mut dyn Iterator<Item = (u32, i32)>| {
            let start = mix(u64::from(place) + 1);
            gains.fold(start, |hash: u64, (token, gain)| mix(hash ^ (u64::from(token) | u64::from(gain as u32) << 32)))
        };
        let hash = hash_of(place, &mut gains.iter().copied());
        let mut growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |known: u32| self.words(known)[0].load(Relaxed) == place && self.get(known).eq(gains.iter().copied());
        if let Some(known) = growing.index.find(hash, same) {
            return known;
        }
        let number = match growing.next.get(&place) {
            Some(&next) if next % 16 < BLOCK => next,
            _ => {
                growing.blocks += 1;
                assert!(growing.blocks < 1 << 27, "memory ends before the effects");
                (growing.blocks - 1) * 16
            }
        };
        growing.next.insert(place, number + 1);
        let len = EFFECT_HEAD + 2 * gains.len();
        let start = self.words.room(growing.used, len).expect("memory ends before the effects");
        let words = gains.iter().flat_map(|&(token, gain)| [token, gain as u32]);
        let head = std::iter::once(place).chain(halves(added));
        for (slot, word) in self.words.slice(start, len).iter().zip(head.chain(words)) {
            slot.store(word, Relaxed);
        }
        growing.used = start + len;
        self.heads.room(number as usize, 1).expect("memory ends before the effects");
        self.heads.at(number as usize).store((start as u64) << 28 | len as u64, Relaxed);
        growing.index.add(hash, number, |known| hash_of(self.words(known)[0].load(Relaxed), &mut self.get(known)));
        number
    }

    fn words(&self, effect: u32) -> &[AtomicU32] {
        let head = self.heads.get(effect as usize);
        self.words.slice((head >> 28) as usize, (head & ((1 << 28) - 1)) as usize)
    }

    /// Tokens and gains of an effect.
    pub fn get(&self, effect: u32) -> impl Iterator<Item = (u32, i32)> + '_ {
        let pairs = self.words(effect)[EFFECT_HEAD..].chunks_exact(2);
        pairs.map(|pair| (pair[0].load(Relaxed), pair[1].load(Relaxed) as i32))
    }

    /// What an effect adds to the hash of a state.
    pub fn hash(&self, effect: u32) -> u64 {
        let words = self.words(effect);
        u64::from(words[1].load(Relaxed)) | u64::from(words[2].load(Relaxed)) << 32
    }

    /// The bytes the table holds.
    pub fn bytes(&self) -> u64 {
        let growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let index = growing.index.bytes() + 9 * growing.next.capacity() as u64;
        self.heads.bytes() + self.words.bytes() + index
    }
}
