//! How a set of pairs grows or widens in place, by all threads that are there.
//!
//! In: another shape, of at least as many lines. Out: every entry where it belongs in it. What
//! stays true: nothing is written over that was not read; no line is written to by two threads
//! at once.
//!
//! # Stages and pieces
//! ```text
//! old lines   0 … │ stage 3 │   stage 2   │      stage 1      │   read from the last to the first
//!                                         ╲                   ╲
//! new lines   0 …                    │    of stage 1             │   behind all that is not read
//! ```
//! A line's new homes are about as far along as it was, never before it. A stage is so many lines
//! that all their new homes lie behind the stage, so its lines can be read in any order. (Where
//! there are no more lines than before, all are one stage: a line's new home is its own.) A
//! stage is done in pieces, each by one thread. What a piece would write where another may write
//! too, on the first line of its part and on the last two, waits for the end of the stage.

use super::line::{COUNT, FOREIGN_SHIFT};
use super::{Pairs, Shape};
use crate::help::Help;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Lines of a piece: 64 KiB.
const PIECE: u64 = if cfg!(miri) { 4 } else { 512 };

/// From one shape to another.
struct Move<'p> {
    set: &'p Pairs,
    old: Shape,
}

impl Move<'_> {
    /// The first line that can be home to what had its home in this line.
    fn first_home(&self, line: u64) -> u64 {
        (u128::from(line) * u128::from(self.set.shape.lines()) / u128::from(self.old.lines())) as u64
    }

    /// Where the stage begins that ends here.
    fn stage(&self, end: u64) -> u64 {
        let (from, to) = (u128::from(self.old.lines()), u128::from(self.set.shape.lines()));
        if from == to { 0 } else { (u128::from(end - 1) * from).div_ceil(to) as u64 }
    }

    /// Moves what these lines hold, but for what is left to the end of the stage.
    fn piece(&self, lines: Range<u64>, waiting: &mut Vec<u64>) {
        let Move { set, old } = self;
        // An entry may go on to the line behind its home.
        let own = self.first_home(lines.start) + 1..self.first_home(lines.end).saturating_sub(1);
        let (mut numbers, mut foreign) = (Vec::new(), Vec::new());
        for at in lines.rev() {
            numbers.clear();
            numbers.append(&mut foreign);
            let line = set.line(at);
            let first = line.0[0].load(Relaxed);
            for slot in 0..(first & COUNT) as u32 {
                numbers.push(old.join(at, line.get(old, slot)));
            }
            for count in 0..(first >> FOREIGN_SHIFT & COUNT) as u32 {
                foreign.push(old.join(at.wrapping_sub(1), line.get(old, old.slots - 1 - count)));
            }
            line.0.iter().for_each(|word| word.store(0, Relaxed));
            for &number in &numbers {
                let (home, entry) = set.shape.split(number);
                if own.contains(&home) {
                    set.put_back(number, home, entry);
                } else {
                    waiting.push(number);
                }
            }
        }
        waiting.append(&mut foreign);
    }
}

impl Pairs {
    /// Puts every entry where it belongs in another shape, of at least as many lines. Says
    /// whether there was memory.
    pub(super) fn rearrange(&mut self, shape: Shape, help: &Help) -> bool {
        let old = self.shape;
        let more = shape.bytes() - old.bytes();
        if !self.budget.request(more) {
            return false;
        }
        if !self.lines.extend(shape.lines() + 1) {
            self.budget.release(more);
            return false;
        }
        self.granted += more;
        let stash = &mut self.stash.get_mut().unwrap_or_else(PoisonError::into_inner).0;
        stash.len = 0;
        let stashed = stash.table.iter_mut().filter(|held| **held != 0).map(|held| std::mem::take(held) - 1);
        let mut waiting: Vec<u64> = stashed.collect();
        self.shape = shape;
        let moving = Move { set: self, old };
        // One behind the last line: foreign entries of the last one.
        let mut end = old.lines() + 1;
        while end > 0 {
            let start = moving.stage(end);
            let (next, found) = (AtomicU64::new(start), Mutex::new(&mut waiting));
            let work = || {
                let mut waiting = Vec::new();
                while next.load(Relaxed) < end {
                    let first = next.fetch_add(PIECE, Relaxed);
                    if first < end {
                        moving.piece(first..end.min(first + PIECE), &mut waiting);
                    }
                }
                found.lock().unwrap_or_else(PoisonError::into_inner).append(&mut waiting);
            };
            if end - start > PIECE {
                help.together(&work)
            } else {
                work()
            }
            // All lines of the stage and behind it have been read. What belongs before waits on.
            waiting.retain(|&number| {
                let (home, entry) = self.shape.split(number);
                if home >= start {
                    self.put_back(number, home, entry);
                }
                home < start
            });
            end = start;
        }
        true
    }

    /// Enters a number that was there before; nobody else writes to its home or the line behind
    /// it.
    fn put_back(&self, number: u64, home: u64, entry: u64) {
        if !self.line(home).add(&self.shape, false, entry) && !self.line(home + 1).add(&self.shape, true, entry) {
            self.insert_stashed(number, true);
        }
    }
}
