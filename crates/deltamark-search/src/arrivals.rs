//! The action by which each state of a level was reached.
//!
//! In: actions, by the position of a state in its level, in any order and from any thread. Out: the
//! smallest action recorded for a state, while its level is expanded: this one allows most edges to
//! be skipped. Invariants: an action takes one, two or four bytes, as the largest needs; pieces are
//! never copied, and those of an expanded level are reused for the next but one.
//!
//! # Layout in memory
//! ```text
//! segment 0 [piece]   segment 1 [piece piece]   segment 2 [piece piece piece piece] …
//! piece     4096 entries; 0 = none, otherwise the largest number less the action
//! ```
//! So the smallest action is the largest entry, and unwritten memory means none.
//!
//! Each of up to four threads has its own list, and the largest entry of all counts; more threads
//! share these lists. With one list for two threads, cache-line contention took a sixth of the
//! time.

use deltamark_core::{Action, Apart};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Actions in a piece.
const PIECE: usize = 1 << 12;
/// Enough for 2^44 states.
const SEGMENTS: usize = 32;
/// The most lists of a level.
const LISTS: usize = 4;

/// Entries of one width.
enum ArrivalPiece {
    One(Box<[AtomicU8]>),
    Two(Box<[AtomicU16]>),
    Four(Box<[AtomicU32]>),
}

impl ArrivalPiece {
    fn new(each: usize) -> Self {
        match each {
            1 => ArrivalPiece::One((0..PIECE).map(|_| AtomicU8::new(0)).collect()),
            2 => ArrivalPiece::Two((0..PIECE).map(|_| AtomicU16::new(0)).collect()),
            _ => ArrivalPiece::Four((0..PIECE).map(|_| AtomicU32::new(0)).collect()),
        }
    }

    #[inline]
    fn get(&self, at: usize) -> u32 {
        match self {
            ArrivalPiece::One(entries) => entries[at].load(Relaxed).into(),
            ArrivalPiece::Two(entries) => entries[at].load(Relaxed).into(),
            ArrivalPiece::Four(entries) => entries[at].load(Relaxed),
        }
    }

    /// Raises an entry, which others may be raising too unless it is said that none is. Then it is written
    /// whatever it was: whether it is larger cannot be foreseen, and a processor that guesses wrong has to
    /// wait for its line before it can go on to the next.
    #[inline]
    fn raise(&self, at: usize, value: u32, alone: bool) {
        let before = self.get(at);
        match self {
            ArrivalPiece::One(entries) if alone => entries[at].store(before.max(value) as u8, Relaxed),
            ArrivalPiece::Two(entries) if alone => entries[at].store(before.max(value) as u16, Relaxed),
            ArrivalPiece::Four(entries) if alone => entries[at].store(before.max(value), Relaxed),
            _ if before >= value => {}
            ArrivalPiece::One(entries) => drop(entries[at].fetch_max(value as u8, Relaxed)),
            ArrivalPiece::Two(entries) => drop(entries[at].fetch_max(value as u16, Relaxed)),
            ArrivalPiece::Four(entries) => drop(entries[at].fetch_max(value, Relaxed)),
        }
    }

    /// Empties the first entries.
    fn clear(&self, count: usize) {
        match self {
            ArrivalPiece::One(entries) => entries[..count].iter().for_each(|entry| entry.store(0, Relaxed)),
            ArrivalPiece::Two(entries) => entries[..count].iter().for_each(|entry| entry.store(0, Relaxed)),
            ArrivalPiece::Four(entries) => entries[..count].iter().for_each(|entry| entry.store(0, Relaxed)),
        }
    }
}

/// The actions of one level.
#[derive(Default)]
struct Actions {
    segments: [OnceLock<Box<[OnceLock<ArrivalPiece>]>>; SEGMENTS],
    /// Bytes of all segments and pieces.
    held: AtomicU64,
    /// How many entries are still those of a level before. As long as there are any, nothing else was noted.
    stale: AtomicU64,
}

/// Where the entry of a state is: the segment, the piece of it, the place there.
#[inline]
fn locate(place: u64) -> (usize, usize, usize) {
    let number = place as usize / PIECE + 1;
    let segment = number.ilog2() as usize;
    (segment, number - (1 << segment), place as usize % PIECE)
}

impl Actions {
    #[inline]
    fn piece(&self, segment: usize, piece: usize) -> Option<&ArrivalPiece> {
        self.segments[segment].get()?[piece].get()
    }

    /// Empties the entries of a level before. No more than these: levels can be tiny, and many.
    #[cold]
    fn clear(&self) {
        let len = self.stale.load(Relaxed);
        for start in (0..len).step_by(PIECE) {
            let (segment, piece, _) = locate(start);
            if let Some(found) = self.piece(segment, piece) {
                found.clear((len - start).min(PIECE as u64) as usize);
            }
        }
        self.stale.store(0, Relaxed);
    }

    #[cold]
    fn make(&self, segment: usize, piece: usize, each: usize) -> &ArrivalPiece {
        let pieces = self.segments[segment].get_or_init(|| {
            let pieces: Box<[OnceLock<ArrivalPiece>]> = (0..1 << segment).map(|_| OnceLock::new()).collect();
            self.held.fetch_add(size_of_val(&*pieces) as u64, Relaxed);
            pieces
        });
        pieces[piece].get_or_init(|| {
            self.held.fetch_add((PIECE * each) as u64, Relaxed);
            ArrivalPiece::new(each)
        })
    }
}

/// The actions of the current level and of the one under construction, as threads have noted them.
pub(crate) struct Arrivals {
    /// Bytes an action takes.
    each: usize,
    threads: usize,
    hand: Vec<Apart<Actions>>,
    later: Vec<Apart<Actions>>,
}

impl Arrivals {
    /// For actions below `count`, if that is known, and this many threads.
    pub fn new(count: Option<u32>, threads: usize) -> Self {
        // One value of an entry means none.
        let each = match count {
            Some(0..=0xff) => 1,
            Some(0..=0xffff) => 2,
            _ => 4,
        };
        let lists = || (0..threads.min(LISTS)).map(|_| Apart::default()).collect();
        Arrivals { each, threads, hand: lists(), later: lists() }
    }

    fn largest(&self) -> u32 {
        u32::MAX >> (32 - 8 * self.each)
    }

    /// Prepares a thread to note actions of the level under construction. A list that a thread has for
    /// itself is emptied here and not by another one, which would take its lines away.
    #[inline]
    pub fn begin(&self, thread: usize) {
        let list = &self.later[thread % self.later.len()];
        if list.stale.load(Relaxed) > 0 {
            list.clear();
        }
    }

    /// Notes that this action leads to state `place` of the level under construction. The thread has begun.
    #[inline]
    pub fn note(&self, thread: usize, place: u64, action: Action) {
        if action == Action::NONE {
            return;
        }
        let (segment, piece, at) = locate(place);
        let list = &self.later[thread % self.later.len()];
        let found = list.piece(segment, piece).unwrap_or_else(|| list.make(segment, piece, self.each));
        found.raise(at, self.largest() - action.0, self.threads == self.later.len());
    }

    /// The action that led to state `place` of the current level.
    #[inline]
    pub fn get(&self, place: u64) -> Action {
        let (segment, piece, at) = locate(place);
        let entry = |list: &Apart<Actions>| match list.stale.load(Relaxed) {
            0 => list.piece(segment, piece).map_or(0, |piece| piece.get(at)),
            _ => 0,
        };
        match self.hand.iter().map(entry).max() {
            None | Some(0) => Action::NONE,
            Some(entry) => Action(self.largest() - entry),
        }
    }

    /// Goes on to the next level; the current one had `len` states.
    pub fn advance(&mut self, len: u64) {
        std::mem::swap(&mut self.hand, &mut self.later);
        for list in &mut self.later {
            // Those of a level before that are there still are as many as they were.
            let stale = list.stale.get_mut();
            *stale = len.max(*stale);
            if self.threads > LISTS {
                list.clear();
            }
        }
    }

    /// The bytes it holds.
    pub fn held_bytes(&self) -> u64 {
        self.hand.iter().chain(&self.later).map(|list| list.held.load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_led_to_a_state_is_told_while_its_level_is_in_hand() {
        for count in [Some(255), Some(256), Some(65_535), Some(65_536), None] {
            let mut arrivals = Arrivals::new(count, 2);
            let action = |level: u64, place: u64| match (level + place) % 7 {
                0 => Action::NONE,
                rest => Action((count.unwrap_or(u32::MAX) - 1).wrapping_sub(rest as u32)),
            };
            let lengths = [1, 5_000, 100, 19_000, 3, 19_000, 5_000, 2, 7, 19_000];
            for (level, &len) in (0..).zip(&lengths) {
                // Some levels are expanded by one thread alone.
                let threads = if level % 3 == 0 { 1 } else { 2 };
                (0..threads).for_each(|thread| arrivals.begin(thread as usize));
                (0..len).rev().for_each(|place| arrivals.note((place % threads) as usize, place, action(level, place)));
                arrivals.advance(if level == 0 { 0 } else { lengths[level as usize - 1] });
                assert!((0..len).all(|place| arrivals.get(place) == action(level, place)), "level {level}");
                assert_eq!(arrivals.get(len), Action::NONE, "level {level}");
            }
            assert!(arrivals.held_bytes() >= 10 * (PIECE * arrivals.each) as u64);
        }
    }

    #[test]
    fn of_several_actions_the_smallest_is_kept_whoever_tells_it() {
        let states = if cfg!(miri) { 20 } else { 20_000 };
        for threads in [1, 3, 4, 9] {
            let mut arrivals = Arrivals::new(Some(100), threads);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let arrivals = &arrivals;
                    scope.spawn(move || {
                        arrivals.begin(thread);
                        for place in 0..states {
                            arrivals.note(thread, place, Action((place as u32 * 7 + thread as u32 * 31) % 100));
                        }
                    });
                }
            });
            arrivals.advance(0);
            for place in 0..states {
                let smallest = (0..threads as u32).map(|thread| (place as u32 * 7 + thread * 31) % 100).min();
                assert_eq!(Some(arrivals.get(place).0), smallest, "{place}, {threads} threads");
            }
        }
    }
}
