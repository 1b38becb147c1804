//! Stratified caching: forgetting states of some levels.
//!
//! In: how many of every `k` levels may be forgotten, and when. Out: room in the table; and, when the run has ended, which states
//! have several numbers.
//!
//! From Geldenhuys, *State caching reconsidered*, SPIN 2004: depths are strata, some of which are kept for good and
//! others not, so that redundant exploration ends at the next one that is kept. Evangelista and Pradat-Peyre propose it for
//! Δ-markings (*Memory efficient state space storage in explicit software model checking*, SPIN 2005, section 5), and the order:
//! first the levels before those in full, `k-1`, `2k-1` …, then those before them. They forget markings that no other
//! points to; here back edges stay, a byte or so a state, so every level but those in full may go, depth-first search is not
//! needed, traces are known, and what was explored again can be counted.
//!
//! # What is forgotten
//! ```text
//! level     0   1   2   3   4   5   6   7   8 …        k = 4
//! table     ■   ■   □   □   ■   ■   □   □   ■          two strata of four are forgotten,
//! edges     ■   ■   ■   ■   ■   ■   ■   ■   ■          but for the current level and the next
//! ```
//! An entry of the table is what answers that a state is there: four of the five or six bytes of a state.
//!
//! # Invariants
//! * I1: a state is only forgotten when it was expanded: its level is before the current one.
//! * I2: levels whose number is a multiple of `k` are never forgotten.
//!
//! # What follows
//! *Nothing is missed*: a state at distance `d` from the initial ones is new in level `d`, because it was not
//! inserted before, and its level is expanded (I1). So levels have the states they would have, beside some that are there again: shortest
//! traces stay shortest. Sleep sets remain right: their proof speaks of the first time that a state is inserted, and of states by which it is
//! reached then, which are of the level before for the first time too.
//!
//! *It ends*: each level whose number is a multiple of `k` has a state that is in none of the earlier ones of these, or it is empty (I2).
//!
//! # Counting
//! States that have several numbers are found at the end by sorting hashes of all states, as many at a time as there is memory for;
//! states with equal hashes are rebuilt and compared.

use super::NumberedTables;
use crate::rebuilding::walk::Rebuilder;
use crate::states::together;
use crate::tables::quotient::Quotient;
use deltamark_core::{Budget, Control, Grant, States, Stop, hash::mix};
use std::sync::Arc;

/// Which states may be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forget {
    /// None.
    Never,
    /// When memory is short, of every `n` levels as few as suffice, but never all: at most `n - 1`.
    Short(u64),
    /// Of every `of` levels the last `levels`, as soon as that gives back a part of the table.
    Always { levels: u64, of: u64 },
}

/// Forgetting for lack of memory gives back at least this part of the table, as long as there are levels …
const PART: u64 = 16;
/// … and if there are none, this part: less would be found again at once.
const LEAST_PART: u64 = 64;
/// Entries that are sorted together take this part of the memory that is left, at least.
const PASSES: u32 = 8;
/// States that are rebuilt together.
const PIECE: usize = 8192;
/// The most states of one hash.
const ALIKE: usize = 1 << 12;

/// The levels of a store that forgets.
pub(super) struct Strata {
    forget: Forget,
    /// How many of every `of` levels may be forgotten now.
    classes: u64,
    levels: Vec<Stratum>,
    /// How many states are in levels that may be forgotten and have ended, where forgetting does not wait for memory to be short.
    waiting: u64,
    has_forgotten: bool,
    grant: Grant,
}

struct Stratum {
    /// The number of its first state.
    start: u64,
    is_gone: bool,
}

impl Strata {
    /// For a store that forgets.
    pub fn new(forget: Forget, budget: &Arc<Budget>) -> Option<Self> {
        let classes = match forget {
            Forget::Never => return None,
            Forget::Short(_) => 0,
            Forget::Always { levels, .. } => levels,
        };
        Some(Strata {
            forget,
            classes,
            levels: Vec::new(),
            waiting: 0,
            has_forgotten: false,
            grant: Grant::new(budget),
        })
    }

    /// Whether something was forgotten.
    pub fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }

    /// Notes a level that begins with this number. Whether there is memory for that.
    fn push(&mut self, start: u64) -> bool {
        if self.levels.len() == self.levels.capacity() {
            let more = self.levels.capacity().max(16);
            if !self.grant.ask((more * size_of::<Stratum>()) as u64) {
                return false;
            }
            self.levels.reserve_exact(more);
        }
        if let Some(ended) = self.levels.last()
            && self.may_go(self.levels.len() - 1)
        {
            self.waiting += start - ended.start;
        }
        self.levels.push(Stratum { start, is_gone: false });
        true
    }

    /// Whether the state of this number is forgotten.
    fn is_gone(&self, number: u64) -> bool {
        let level = self.levels.partition_point(|level| level.start <= number);
        level.checked_sub(1).is_some_and(|level| self.levels[level].is_gone)
    }

    /// How many states there are that may be forgotten now, of levels that end before this number.
    fn open(&self, before: u64) -> u64 {
        self.each_open(before).map(|level| self.levels[level + 1].start - self.levels[level].start).sum()
    }

    fn each_open(&self, before: u64) -> impl Iterator<Item = usize> {
        let ended = self.levels.partition_point(|level| level.start <= before).saturating_sub(1);
        (0..ended).filter(|&level| self.may_go(level))
    }

    fn may_go(&self, level: usize) -> bool {
        let of = match self.forget {
            Forget::Never => 1,
            Forget::Short(of) | Forget::Always { of, .. } => of,
        };
        !self.levels[level].is_gone && level as u64 % of >= of - self.classes
    }

    /// Has states forgotten of levels that end before this number: `least`, if there are as many. Returns whether any are.
    fn choose(&mut self, before: u64, least: u64, entries: u64) -> bool {
        let most = match self.forget {
            Forget::Short(of) => of - 1,
            _ => self.classes,
        };
        while self.open(before) < least && self.classes < most {
            self.classes += 1;
        }
        let enough = self.open(before) >= least.min(entries / LEAST_PART + 1);
        if enough {
            for level in self.each_open(before).collect::<Vec<_>>() {
                self.levels[level].is_gone = true;
            }
            self.has_forgotten = true;
            self.waiting = 0;
        }
        enough
    }

    /// The level of a state.
    fn level(&self, number: u64) -> u64 {
        self.levels.partition_point(|level| level.start <= number).saturating_sub(1) as u64
    }
}

impl NumberedTables<'_> {
    /// Whether something was forgotten.
    pub(super) fn has_forgotten(&self) -> bool {
        self.strata.as_ref().is_some_and(Strata::has_forgotten)
    }

    /// Makes room in the table for lack of memory. Returns whether there is some now.
    pub(super) fn forget_some(&mut self) -> bool {
        let entries = self.rebuilder.table.len();
        self.strata.as_ref().is_some_and(|strata| matches!(strata.forget, Forget::Short(_)))
            && self.forget(entries / PART + 1)
    }

    fn forget(&mut self, least: u64) -> bool {
        let Some(strata) = &mut self.strata else { return false };
        let chosen = strata.choose(self.hand_start, least, self.rebuilder.table.len());
        if chosen {
            self.rebuilder.table.retain(|number| !strata.is_gone(number));
        }
        chosen
    }

    /// Notes that a level begins with this number. Returns whether there is memory for that.
    pub(super) fn begin_stratum(&mut self, start: u64) -> bool {
        let Some(strata) = &mut self.strata else { return true };
        if !strata.push(start) {
            return false;
        }
        // As often as the table would be written anew if it grew.
        let least = self.rebuilder.table.len() / PART + 1;
        if matches!(strata.forget, Forget::Always { .. }) && strata.waiting >= least {
            self.forget(least);
        }
        true
    }

    /// See [`Store::repeated`](deltamark_core::Store::repeated).
    pub(super) fn repeated(
        &mut self,
        ids: u64,
        control: &Control,
        show: &mut dyn FnMut(&States) -> Result<(), Stop>,
    ) -> Option<u64> {
        // Nothing is inserted any more.
        self.lost = true;
        self.rebuilder.table = Quotient::new(1, 1, Arc::clone(&self.budget));
        let mut grant = Grant::new(&self.budget);
        let entries = |bits: u32| (ids >> bits) + (ids >> (bits + 2)) + 1024;
        let bits = (0..=PASSES).find(|&bits| grant.ask(entries(bits) * size_of::<(u64, u64)>() as u64))?;
        let mut hashed: Vec<(u64, u64)> = Vec::with_capacity(entries(bits) as usize);
        let mut last = 0;
        for part in 0..1u64 << bits {
            hashed.clear();
            let taken = |mixed: u64| bits == 0 || mixed >> (64 - bits) == part;
            self.hash_all(ids, control, |hash, number| {
                let fits = hashed.len() < hashed.capacity();
                if fits && taken(mix(hash)) {
                    hashed.push((hash, number));
                }
                fits
            })?;
            hashed.sort_unstable();
            last = last.max(compare(&mut self.rebuilder, &hashed, control, show)?);
        }
        self.strata.as_ref().map(|strata| strata.level(last))
    }

    /// The hashes of all states up to a number, as long as `see` goes on.
    fn hash_all(&mut self, ids: u64, control: &Control, mut see: impl FnMut(u64, u64) -> bool) -> Option<()> {
        let rebuilder = &mut self.rebuilder;
        let mut states = States::new(rebuilder.system.width());
        let (mut numbers, mut hashes) = (Vec::new(), Vec::new());
        let piece = together(rebuilder.system.width(), PIECE);
        for start in (0..ids).step_by(piece) {
            control.ask().ok()?;
            numbers.clear();
            numbers.extend(start..ids.min(start + piece as u64));
            states.clear();
            hashes.clear();
            rebuilder.rebuild(&numbers, &mut states);
            rebuilder.system.hashes(&mut rebuilder.scratch, &states, &mut hashes);
            if !hashes.iter().zip(&numbers).all(|(&hash, &number)| see(hash, number)) {
                return None;
            }
        }
        Some(())
    }
}

/// Shows the states that have several numbers, once for each but the first. Returns the largest number of a state that has no smaller one.
fn compare(
    rebuilder: &mut Rebuilder<'_>,
    hashed: &[(u64, u64)],
    control: &Control,
    show: &mut dyn FnMut(&States) -> Result<(), Stop>,
) -> Option<u64> {
    let width = rebuilder.system.width();
    let piece = together(width, PIECE);
    let (mut states, mut again) = (States::new(width), States::new(width));
    let mut numbers: Vec<u64> = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    let mut last = 0;
    let mut groups = hashed.chunk_by(|one, two| one.0 == two.0).peekable();
    while let Some(group) = groups.next() {
        if let [(_, number)] = group {
            last = last.max(*number);
        } else {
            if group.len() > ALIKE {
                return None;
            }
            numbers.extend(group.iter().map(|(_, number)| *number));
            ends.push(numbers.len());
        }
        if numbers.is_empty() || numbers.len() < piece && groups.peek().is_some() {
            continue;
        }
        control.ask().ok()?;
        states.clear();
        again.clear();
        rebuilder.rebuild(&numbers, &mut states);
        let mut start = 0;
        for end in ends.drain(..) {
            let mut first: Vec<usize> = Vec::new();
            // Numbers ascend.
            for (index, &number) in numbers.iter().enumerate().take(end).skip(start) {
                if first.iter().any(|&earlier| states.get(earlier) == states.get(index)) {
                    again.push(states.get(index));
                } else {
                    first.push(index);
                    last = last.max(number);
                }
            }
            start = end;
        }
        numbers.clear();
        show(&again).ok()?;
    }
    Some(last)
}
