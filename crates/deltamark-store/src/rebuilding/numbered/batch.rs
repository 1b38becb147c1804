//! Batched look-up and insertion of the successors of a block.
//!
//! In: a block and its successors. Out: an answer for each. Invariant: room is made before anything
//! is inserted, and if that fails states are inserted one by one, in the order of the batch; see
//! the parent module for the steps.

use super::{Lookup, NumberedTables, OPEN, confirm};
use crate::rebuilding::walk::{piece, same};
use deltamark_core::{Action, Batch, Block, Insert, Order, StateId, hash::mix};

/// Candidates of the successors that are looked up together, about.
const MOST_CANDIDATES: u64 = 1 << 14;

impl NumberedTables<'_> {
    /// Inserts the successors of a block.
    pub(super) fn insert_batch(&mut self, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        if !self.look_up(batch) || !self.name_parents(block) {
            out.push(Insert::Full);
            return;
        }
        self.shorten_all(batch);
        let mut new = std::mem::take(&mut self.batch.new);
        self.tell_apart(batch, &mut new);
        if !new.is_empty() && !self.insert_all(block, batch, &mut new) {
            self.insert_in_order(block, batch, &new, out);
        } else {
            let Lookup { numbers, copies, .. } = &mut self.batch;
            for &(copy, first) in copies.iter() {
                numbers[copy as usize] = numbers[first as usize];
            }
            let start = out.len();
            out.extend(numbers.iter().map(|&number| Insert::Seen(StateId::new(number))));
            for &index in &new {
                out[start + index as usize] = Insert::New(StateId::new(numbers[index as usize]));
            }
        }
        self.batch.new = new;
    }

    /// Puts those successors that are not there into `new`, each once, in the order of the batch; others
    /// that are equal to one of them become copies.
    fn tell_apart(&mut self, batch: &Batch, new: &mut Vec<u32>) {
        let Lookup { mixed, numbers, heads, copies, .. } = &mut self.batch;
        new.clear();
        copies.clear();
        let open = numbers.iter().filter(|&&number| number == OPEN).count();
        // A table of the batch's own, twice as large as need be.
        let size = (2 * open).next_power_of_two().max(16);
        let shift = 64 - size.trailing_zeros();
        heads.clear();
        heads.resize(size, u32::MAX);
        for index in 0..numbers.len() {
            if numbers[index] != OPEN {
                continue;
            }
            let mut at = (mixed[index].wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize;
            loop {
                match heads[at] {
                    u32::MAX => {
                        heads[at] = index as u32;
                        new.push(index as u32);
                        break;
                    }
                    other
                        if mixed[other as usize] == mixed[index]
                            && same(batch.target(other as usize), batch.target(index)) =>
                    {
                        copies.push((index as u32, other));
                        break;
                    }
                    _ => at = (at + 1) & (size - 1),
                }
            }
        }
    }

    /// Finds the numbers of the successors that are there, and lists those found by a walk in `far`. `false` if the
    /// run must end before all are known.
    ///
    /// With a short signature most entries of the table are candidates for every successor. So successors are
    /// looked up in pieces with a bounded number of candidates, and these are confirmed in pieces as well.
    fn look_up(&mut self, batch: &Batch) -> bool {
        let NumberedTables { rebuilder, batch: lookup, config, budget, .. } = self;
        let Lookup { mixed, numbers, near, far, confirmed, who, found, candidates, one, .. } = lookup;
        mixed.clear();
        mixed.extend(batch.hashes().iter().map(|&hash| mix(hash)));
        numbers.clear();
        numbers.resize(batch.len(), OPEN);
        confirmed.clear();
        let window_start = rebuilder.window.as_ref().map_or(u64::MAX, |window| window.numbers().start);
        let expected = (rebuilder.table.len() >> config.signature).max(1);
        let together = (MOST_CANDIDATES / expected).max(1) as usize;
        let most = piece(rebuilder.system.width());
        for first in (0..batch.len()).step_by(together) {
            let last = batch.len().min(first + together);
            near.clear();
            far.clear();
            rebuilder.table.probe_each(&mixed[first..last], |index, number| {
                let index = (first + index) as u32;
                if number < window_start {
                    far.push((index, number));
                } else if let Some(window) = &rebuilder.window {
                    window.prefetch(number);
                    near.push((index, number));
                }
            });
            if let Some(window) = &rebuilder.window {
                for &(index, number) in near.iter() {
                    if same(window.get(number), batch.target(index as usize)) {
                        numbers[index as usize] = number;
                    }
                }
            }
            for piece in far.chunks(most) {
                if far.len() > most && budget.is_over() {
                    return false;
                }
                candidates.reset(rebuilder.system.width());
                who.clear();
                for &(index, number) in piece {
                    if numbers[index as usize] == OPEN {
                        candidates.push(batch.target(index as usize), batch.hash(index as usize), number);
                        who.push(index);
                    }
                }
                confirm(rebuilder, config.together, candidates, one, found);
                for (position, &index) in who.iter().enumerate() {
                    if found[position] {
                        let number = candidates.numbers[position];
                        numbers[index as usize] = number;
                        rebuilder.cache.put(number, batch.target(index as usize));
                        confirmed.push((index, number));
                    }
                }
            }
        }
        std::mem::swap(far, confirmed);
        true
    }

    /// Finds the numbers of the states of a block. `false` if the run must end before.
    fn name_parents(&mut self, block: &Block) -> bool {
        let mut parents = std::mem::take(&mut self.batch.parents);
        // What a look-up by state would overwrite.
        let far = std::mem::take(&mut self.batch.far);
        parents.clear();
        for index in 0..block.len() {
            if block.id(index) == StateId::NAMELESS && self.budget.is_over() {
                break;
            }
            let number = self.parent_number(block.id(index), block.state(index));
            parents.push(number.expect("what is expanded is in the store"));
        }
        let all = parents.len() == block.len();
        self.batch.parents = parents;
        self.batch.far = far;
        self.batch.chains.clear();
        self.batch.chains.resize(block.len(), OPEN);
        all
    }

    /// The steps by which state `source` of the block is rebuilt, at most; counted once a batch, and
    /// chains never become longer.
    fn chain_of(&mut self, source: usize) -> u64 {
        if self.rebuilder.order == Order::Levels {
            return 0;
        }
        if self.batch.chains[source] == OPEN {
            self.batch.chains[source] = self.rebuilder.chain(self.batch.parents[source], self.chain_limit());
        }
        self.batch.chains[source]
    }

    /// Looks for shorter chains for revisited states.
    fn shorten_all(&mut self, batch: &Batch) {
        if !self.may_shorten() {
            return;
        }
        let far = std::mem::take(&mut self.batch.far);
        for &(index, number) in &far {
            let source = batch.source(index as usize);
            let parent = self.batch.parents[source];
            let through = self.chain_of(source) + 1;
            // A cheap look first, from what is known of the source.
            if self.rebuilder.chain(number, through + 1) > through {
                self.shorten(number, parent, batch.action(index as usize));
            }
        }
        self.batch.far = far;
    }

    /// Inserts new states, in level order by source. `false` means that there is no room for
    /// all of them; then either none was inserted, or in any order those before the first OPEN one.
    fn insert_all(&mut self, block: &Block, batch: &Batch, new: &mut [u32]) -> bool {
        if self.rebuilder.order == Order::Levels {
            let parents = &self.batch.parents;
            new.sort_by_key(|&index| parents[batch.source(index as usize)]);
        }
        let slots = new.iter().map(|&index| batch.target(index as usize).len() as u64).sum();
        let action = new.iter().map(|&index| batch.action(index as usize)).max().unwrap_or(Action(0));
        let parent = new.iter().map(|&index| self.batch.parents[batch.source(index as usize)]).max().unwrap_or(0);
        if !self.choose_all(block, batch, new) || !self.reserve(new.len() as u64, slots, parent, action) {
            new.sort_unstable();
            return false;
        }
        for &index in new.iter() {
            let index = index as usize;
            let source = batch.source(index);
            let (parent, chain) = (self.batch.parents[source], self.chain_of(source));
            let number = self.len();
            let arrival = batch.arrival(block, index);
            if !self.append(batch.target(index), batch.hash(index), parent, &arrival, chain) {
                debug_assert_eq!(self.rebuilder.order, Order::Any, "in level order only initial states are kept here");
                return false;
            }
            self.batch.numbers[index] = number;
        }
        true
    }

    /// Notes the whole actions of those new states that code and signature do not distinguish.
    fn choose_all(&mut self, block: &Block, batch: &Batch, new: &[u32]) -> bool {
        if self.rebuilder.coded.is_none() {
            return true;
        }
        (self.len()..).zip(new).all(|(number, &index)| {
            // It expands the source again for each of its successors.
            if self.budget.is_over() {
                return false;
            }
            let index = index as usize;
            let source = block.state(batch.source(index));
            self.told_apart(number, source, batch.target(index), batch.hash(index), batch.action(index))
                || self.choose(number, batch.action(index))
        })
    }

    /// Inserts new states one by one in the order of the batch and answers for all, up to the
    /// first that finds no room.
    fn insert_in_order(&mut self, block: &Block, batch: &Batch, new: &[u32], out: &mut Vec<Insert>) {
        let mut new = new.iter().peekable();
        let mut copies = std::mem::take(&mut self.batch.copies).into_iter().peekable();
        for index in 0..batch.len() {
            if let Some((_, first)) = copies.next_if(|copy| copy.0 as usize == index) {
                out.push(Insert::Seen(StateId::new(self.batch.numbers[first as usize])));
                continue;
            }
            if new.next_if(|&&new| new as usize == index).is_none() {
                out.push(Insert::Seen(StateId::new(self.batch.numbers[index])));
                continue;
            }
            let known = self.batch.numbers[index];
            let answer = if known == OPEN {
                self.insert_new(batch.target(index), batch.hash(index), &batch.arrival(block, index))
            } else {
                Insert::New(StateId::new(known))
            };
            out.push(answer);
            match answer {
                Insert::New(id) => self.batch.numbers[index] = id.get(),
                _ => return,
            }
        }
    }
}
