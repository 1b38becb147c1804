//! Cooperative growing and widening of a set, in place.
//!
//! In: a new shape, of at least as many lines. Out: every entry at its position in it. Invariants:
//! nothing is overwritten before it was read; no line is written by two threads at once.
//!
//! # Stages and pieces
//! ```text
//! old lines   0 … │ stage 3 │   stage 2   │      stage 1      │   read from the last to the first
//!                                         ╲                   ╲
//! new lines   0 …                    │    of stage 1             │   behind all that is not read
//! ```
//! The new homes of a line are at about the same relative position, never before it. A stage is a
//! number of lines such that all their new homes are past the stage, so its lines can be read in
//! any order. (If the number of lines is unchanged, all are one stage: a line's new home is its
//! own.) A stage is done in pieces, each by one thread. Writes of a piece that may conflict with
//! another piece, on the first line of its part and on the last two, are deferred to the end of the
//! stage.

use super::line::{COUNT, FOREIGN_SHIFT};
use super::numbers::Numbers;
use super::{PairsShape, Set};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::pair_code::Bmi2;
use crate::tables::quotient::shape::MOST_SLOTS;
use crate::threads::cooperate::Help;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Lines of a piece: 64 KiB.
const PIECE: u64 = if cfg!(miri) { 4 } else { 512 };

/// From one shape to another.
struct Rearrangement<'p, R: Numbers, const W: usize> {
    set: &'p Set<R, W>,
    old: PairsShape<R, W>,
}

impl<R: Numbers, const W: usize> Rearrangement<'_, R, W> {
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
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if Bmi2::detect().is_some() {
            // SAFETY: `detect` found that the processor has these instructions.
            return unsafe { self.piece_bmi2(lines, waiting) };
        }
        self.piece_with(lines, waiting);
    }

    /// [`piece_with`](Self::piece_with) the instructions of BMI2, which shift by any number of bits at once.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "bmi1,bmi2")]
    unsafe fn piece_bmi2(&self, lines: Range<u64>, waiting: &mut Vec<u64>) {
        self.piece_with(lines, waiting);
    }

    /// Lines are read from the last to the first, and what they hold comes together by new homes. A new line is
    /// written when no line to come can add to it, all entries at once.
    #[inline(always)]
    fn piece_with(&self, lines: Range<u64>, waiting: &mut Vec<u64>) {
        let Rearrangement { set, old } = self;
        let new = &set.shape;
        // An entry may go on to the line behind its home.
        let end = self.first_home(lines.end).saturating_sub(1).min(new.lines());
        let own = self.first_home(lines.start) + 1..end;
        // So many new lines an old one can lead to, and one of which not all is read.
        let lists = (new.lines().div_ceil(old.lines()) + 2).next_power_of_two();
        let mut gathered = vec![Vec::<u64>::with_capacity(MOST_SLOTS as usize); lists as usize];
        let mut written = own.end;
        let mut foreign = Vec::new();
        for at in lines.rev() {
            let mut put = |number: u64| {
                let (home, entry) = new.split(number);
                if own.contains(&home) {
                    gathered[(home & (lists - 1)) as usize].push(entry);
                } else {
                    waiting.push(number);
                }
            };
            foreign.drain(..).for_each(&mut put);
            let line = set.line(at);
            let first = line.0[0].load(Relaxed);
            if first & (COUNT | COUNT << FOREIGN_SHIFT) != 0 {
                for slot in 0..(first & COUNT) as u32 {
                    put(old.join(at, line.get(old, slot)));
                }
                for count in 0..(first >> FOREIGN_SHIFT & COUNT) as u32 {
                    foreign.push(old.join(at.wrapping_sub(1), line.get(old, old.slots - 1 - count)));
                }
                line.0.iter().for_each(|word| word.store(0, Relaxed));
            }
            // Lines to come have no new home behind the first of this one.
            let complete = (self.first_home(at) + 1).max(own.start);
            while written > complete {
                written -= 1;
                self.write(written, &mut gathered[(written & (lists - 1)) as usize]);
            }
        }
        while written > own.start {
            written -= 1;
            self.write(written, &mut gathered[(written & (lists - 1)) as usize]);
        }
        waiting.append(&mut foreign);
    }

    /// Writes a line with all entries that have their home there. What is foreign there comes later, from the
    /// line before.
    #[inline(always)]
    fn write(&self, home: u64, entries: &mut Vec<u64>) {
        let Rearrangement { set, .. } = self;
        let fitting = entries.len().min(set.shape.slots as usize);
        set.line(home).fill(&set.shape, &entries[..fitting], fitting < entries.len());
        for &entry in &entries[fitting..] {
            if !set.line(home + 1).add(&set.shape, true, entry) {
                set.insert_stashed(set.shape.join(home, entry), true);
            }
        }
        entries.clear();
    }
}

impl<R: Numbers, const W: usize> Set<R, W> {
    /// Puts every entry where it belongs in another shape, of at least as many lines. Returns
    /// whether there was memory.
    pub(super) fn rearrange(&mut self, shape: PairsShape<R, W>, help: &Help) -> bool {
        let old = self.shape;
        let more = shape.line_bytes() - old.line_bytes();
        if !self.budget.request(more) {
            return false;
        }
        if !self.lines.extend(shape.lines() + 1) {
            self.budget.release(more);
            return false;
        }
        self.granted += more;
        let stash = std::mem::take(self.stash.get_mut().unwrap_or_else(PoisonError::into_inner));
        self.budget.release(stash.granted);
        let mut waiting: Vec<u64> = stash.words().collect();
        drop(stash);
        self.shape = shape;
        let moving = Rearrangement { set: self, old };
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
            // All lines of the stage and behind it have been read, and from here on no later stage writes whole
            // lines. What belongs before waits on.
            let settled = start.max(moving.first_home(start).saturating_sub(1));
            waiting.retain(|&number| {
                let (home, entry) = self.shape.split(number);
                if home >= settled {
                    self.put_back(number, home, entry);
                }
                home < settled
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
