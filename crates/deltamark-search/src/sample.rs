//! Sampling a system before the run: by random walks, and by an unordered search.
//!
//! In: a system. Out: some thousand distinct states of it that fit the current layout. Invariant:
//! sampling is deterministic for a system and layout, and does not change the layout.
//!
//! # Walks
//! A block of walkers advances together, each to a random successor; occasionally, and from a
//! deadlock, to a previously sampled state, so that a terminal component does not absorb them all.
//! Only some steps are sampled, because neighbours on a walk are similar. Walks rather than the
//! first levels of a search: those only cover the start of a run.
//!
//! # Unordered search
//! Walks stay where a system spends most of its time, and rarely visit the rare states that make up
//! most of the state space. A search visits every state once. This one alternates between the most
//! recent state, which leads far away, and a random frontier state, and ends after some hundred
//! thousand states; the sample takes them at regular intervals.
//!
//! Neither is always better, so a store is given [both](SAMPLERS).

use deltamark_core::{BLOCK, Batch, Block, Control, Sampler, Slot, StateId, States, System, Width, hash};
use std::collections::HashSet;

/// States that a sample has at most.
#[cfg(not(miri))]
const MOST: usize = 8192;
#[cfg(miri)]
const MOST: usize = 64;
/// Steps from one state that is kept to the next.
const STRIDE: usize = 3;
/// One in this many steps leads back to a state that was kept.
const LENGTH: u64 = 16;
/// Rounds without a new state after which the system is taken as small.
const IDLE: usize = 32;
/// Bytes that a sample takes at most.
const BYTES: usize = 4 << 20;

/// States that a search finds at most, in all and for each slot of a state: narrow states are soon known.
#[cfg(not(miri))]
const FOUND: usize = 1 << 18;
#[cfg(miri)]
const FOUND: usize = 128;
const FOUND_A_SLOT: usize = 1 << 15;
/// The bytes of all of them at most.
const FOUND_BYTES: usize = 8 << 20;
/// Bytes beside a state: a place in the list of those that wait, and in a table of hashes.
const BESIDE: usize = 16;

/// Both ways to sample a system.
pub static SAMPLERS: &[&dyn Sampler] = &[&RandomWalks, &UnorderedSearch];

/// By random walks.
struct RandomWalks;

impl Sampler for RandomWalks {
    fn cost(&self, slots: usize) -> u64 {
        3 * (most(slots) * slots * size_of::<Slot>()) as u64
    }

    fn sample(&self, system: &dyn System, control: &Control) -> States {
        walks(system, control)
    }
}

/// By a search without order.
struct UnorderedSearch;

impl Sampler for UnorderedSearch {
    fn cost(&self, slots: usize) -> u64 {
        RandomWalks.cost(slots).max((found(slots) * (slots * size_of::<Slot>() + BESIDE)) as u64)
    }

    fn sample(&self, system: &dyn System, control: &Control) -> States {
        search(system, control)
    }
}

fn found(slots: usize) -> usize {
    let room = FOUND_BYTES / (slots * size_of::<Slot>()).max(1);
    room.min(slots * FOUND_A_SLOT).clamp(BLOCK, FOUND)
}

/// States of a system, all different, by a search without order.
fn search(system: &dyn System, control: &Control) -> States {
    let Width::Fixed(slots @ 1..) = system.width() else { return States::new(system.width()) };
    let mut search = Scattered {
        system,
        scratch: system.scratch(),
        slots,
        // Nothing grows on the way, so that there is never a second copy.
        found: Vec::with_capacity(found(slots) * slots),
        hashes: HashSet::with_capacity(found(slots)),
        waiting: Vec::with_capacity(found(slots)),
        random: 0,
        batch: Batch::new(system.width()).under(control),
    };
    search.go(found(slots));
    // An odd number, so that it does not go in step with blocks.
    let every = search.len().div_ceil(most(slots)) | 1;
    let mut kept = States::new(system.width());
    search.found.chunks_exact(slots).step_by(every).for_each(|state| kept.push(state));
    kept
}

struct Scattered<'a> {
    system: &'a dyn System,
    scratch: deltamark_core::Scratch,
    slots: usize,
    /// One state behind the other.
    found: Vec<Slot>,
    /// Half of the hash of each: a state that is taken for another is no loss.
    hashes: HashSet<u32>,
    /// Numbers of states that are not expanded yet.
    waiting: Vec<u32>,
    random: u64,
    batch: Batch,
}

impl Scattered<'_> {
    fn go(&mut self, most: usize) {
        let mut batch = std::mem::replace(&mut self.batch, Batch::new(self.system.width()));
        if self.system.initial(&mut self.scratch, &mut batch).is_err() {
            return;
        }
        self.take(&batch, most);
        let mut block = Block::new(self.system.width());
        let mut together = 1;
        while !self.waiting.is_empty() && self.len() < most {
            block.reset(self.system.width());
            while block.len() < together && !self.waiting.is_empty() {
                self.random += 1;
                let draw = hash::mix(self.random) as usize;
                let last = self.waiting.len() - 1;
                let number =
                    self.waiting.swap_remove(if draw.is_multiple_of(2) { last } else { (draw >> 1) % (last + 1) });
                let start = number as usize * self.slots;
                block.push(StateId::NAMELESS, &self.found[start..start + self.slots]);
            }
            batch.reset(self.system.width());
            // Where the layout ends, so does the search: there are enough others.
            if self.system.expand(&mut self.scratch, &block, &mut batch).is_err() || batch.is_stopped() {
                return;
            }
            together = expanded_together(self.slots, batch.len() / block.len().max(1));
            self.take(&batch, most);
        }
    }

    fn len(&self) -> usize {
        self.found.len() / self.slots
    }

    fn take(&mut self, batch: &Batch, most: usize) {
        for index in 0..batch.len().min(most - self.len()) {
            if self.hashes.insert((batch.hash(index) >> 32) as u32) {
                self.waiting.push(self.len() as u32);
                self.found.extend_from_slice(batch.target(index));
            }
        }
    }
}

/// How many states to expand together, where one of them had this many successors: a batch of wide states with very many
/// successors each would take more memory than the sample itself.
fn expanded_together(slots: usize, successors: usize) -> usize {
    const BATCH: usize = 8 << 20;
    (BATCH / (2 * (successors + 1) * (slots * size_of::<Slot>() + 16))).clamp(1, BLOCK)
}

fn most(slots: usize) -> usize {
    (BYTES / (slots * size_of::<Slot>()).max(1)).clamp(BLOCK, MOST)
}

/// States of a system, all different, by walks.
fn walks(system: &dyn System, control: &Control) -> States {
    let mut walk = SampleWalk {
        system,
        scratch: system.scratch(),
        kept: States::new(system.width()),
        seen: HashSet::new(),
        block: Block::new(system.width()),
        batch: Batch::new(system.width()).under(control),
        control,
        random: 0,
    };
    walk.go(most(if let Width::Fixed(slots) = system.width() { slots } else { 1 }));
    walk.kept
}

struct SampleWalk<'a> {
    system: &'a dyn System,
    scratch: deltamark_core::Scratch,
    kept: States,
    /// The hashes of what is kept.
    seen: HashSet<u64>,
    block: Block,
    batch: Batch,
    control: &'a Control,
    random: u64,
}

impl SampleWalk<'_> {
    fn go(&mut self, most: usize) {
        let mut walkers = self.begin();
        if walkers.is_empty() {
            return;
        }
        let mut idle = 0;
        // Walks may find little that is new; this many steps are tried.
        for step in 0..3 * STRIDE * most / BLOCK {
            walkers = self.step(&walkers);
            if self.batch.is_stopped() {
                return;
            }
            if step % STRIDE == 0 {
                let before = self.kept.len();
                for index in 0..walkers.len() {
                    self.keep(walkers.get(index));
                }
                idle = if self.kept.len() == before { idle + 1 } else { 0 };
            }
            if self.kept.len() >= most || idle >= IDLE {
                return;
            }
        }
    }

    /// Walkers at the initial states; none, if the layout cannot even hold these.
    fn begin(&mut self) -> States {
        let mut walkers = States::new(self.system.width());
        self.batch.reset(self.system.width());
        if self.system.initial(&mut self.scratch, &mut self.batch).is_err() {
            return walkers;
        }
        let first = self.batch.target(0).to_vec();
        let mut successors = Batch::new(self.system.width()).under(self.control);
        let found = self.system.successors(&mut self.scratch, &first, &mut successors).map_or(1, |()| successors.len());
        // Whoever has no memory for the successors of one state has none for those of several.
        if successors.stop().is_some() {
            return walkers;
        }
        let count = expanded_together(first.len(), found);
        for index in 0..count {
            walkers.push(self.batch.target(index % self.batch.len()));
        }
        for index in 0..self.batch.len().min(count) {
            self.keep(walkers.get(index));
        }
        walkers
    }

    /// Moves every walker on.
    fn step(&mut self, walkers: &States) -> States {
        self.block.reset(self.system.width());
        for state in walkers.iter() {
            self.block.push(StateId::NAMELESS, state);
        }
        self.batch.reset(self.system.width());
        if self.system.expand(&mut self.scratch, &self.block, &mut self.batch).is_err() {
            // A walk needs a wider layout: only the others go on.
            self.batch.reset(self.system.width());
            let mut alone = Batch::new(self.system.width()).under(self.control);
            for (walker, state) in walkers.iter().enumerate() {
                alone.reset(self.system.width());
                let taken = self.system.successors(&mut self.scratch, state, &mut alone);
                if let Some(stop) = alone.stop() {
                    self.batch.halt(stop);
                    break;
                }
                if taken.is_ok() {
                    self.batch.begin(walker);
                    for index in 0..alone.len() {
                        self.batch.push_hashed(alone.action(index), alone.target(index), alone.hash(index));
                    }
                }
            }
        }
        // For each walker one of its successors, all alike: the last of those drawn stays.
        let mut chosen: [Option<usize>; BLOCK] = [None; BLOCK];
        let mut counts = [0u64; BLOCK];
        for index in 0..self.batch.len() {
            let source = self.batch.source(index);
            counts[source] += 1;
            if self.draw(counts[source]) == 0 {
                chosen[source] = Some(index);
            }
        }
        let mut next = States::new(self.system.width());
        for chosen in &chosen[..walkers.len()] {
            match chosen {
                Some(index) if self.draw(LENGTH) != 0 => next.push(self.batch.target(*index)),
                _ => {
                    let index = self.draw(self.kept.len() as u64) as usize;
                    next.push(self.kept.get(index));
                }
            }
        }
        next
    }

    /// A number below `count`.
    fn draw(&mut self, count: u64) -> u64 {
        self.random += 1;
        hash::mix(self.random) % count
    }

    fn keep(&mut self, state: &[Slot]) {
        if self.seen.insert(self.system.hash(&mut self.scratch, state)) {
            self.kept.push(state);
        }
    }
}
