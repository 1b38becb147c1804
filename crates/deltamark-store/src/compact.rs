//! # The idea
//! A state is cut into two halves, each half is stored once and numbered 0, 1, 2 …, and a state is
//! a pair of such numbers. With a good cut, few halves form many states, and most pairs are states:
//! one bit per pair records which. If pairs are sparse, a quotient set is used instead, which
//! stores only the remainder of a pair.
//!
//! From Laarman, van de Pol and Weber, *Parallel Recursive State Compression for Free* (2011), and
//! Laarman's compact tree (*Optimal Compression of Combinatorial State Vectors*, 2019).
//! Differences: halves are sets of bits and not of slots, chosen from a short sample of the system
//! (`compact/cuts.rs`); every position of the tree has its own table, so
//! numbers are dense and a bitmap of pairs is possible; all tables grow; and roots need no numbers:
//! the id of a state is the code of its pair.
//!
//! # Layout in memory
//! ```text
//! state      [ 0110 1001 1100 … ]         some bits go left, the others right
//!               ╱          ╲
//! halves   left #3        right #5        a table each (`dense.rs`), 13 bytes an entry; halves of
//!               ╲          ╱              more than 64 bits are trees, inner nodes narrow (`narrow.rs`)
//! root      code(3,5) = 0b100111          bits of both, in turn (`tables/pair_code.rs`): the id
//!               │
//! roots      bit 39 of a bitmap in tiles (`tiles.rs`), or an entry of a set (`pairs.rs`)
//! ```
//!
//! # Ids and frontier
//! Ids are codes and sparse, so a search keeps queues of them. That costs the bits of a code for
//! the states of two levels; numbers in order of discovery would cost as much for every state,
//! several times the size of the store. For the same reason no back edges are stored: a search finds
//! paths by a second search, in a twin of the store.
//!
//! # Insertion
//! Successors differ little from their source, whose node numbers follow from its id: only changed
//! leaves are looked up, and only nodes above them. A batch is processed position by position, so
//! that look-ups overlap.
//!
//! # Growth
//! Halves and tiles never move; indexes are refilled from the halves; the quotient set is
//! rearranged in place. A layout change inserts all states into a new tree, one by one, while the
//! old one is freed; old ids are decoded by `past.rs`. Layouts rarely change after the sample.
//!
//! # Invariants
//! * I1: every bit of a state is in exactly one leaf, so equal pairs mean equal states.
//! * I2: an inserting thread holds the gate shared, and every table has room for its insertions;
//!   growing and recoding hold the gate exclusively. Only a new state takes an entry in a table,
//!   and at most one per table.
//! * I3: a number that occurs in a key, and a pair that is a root, was interned before.
//!
//! # When to choose it
//! When states are of fixed width and consist of independent parts, as in nets: far below a byte
//! per state at best. If a half is nearly the whole state, 10 to 20 bytes.

mod cuts;
mod group;
mod past;
mod plan;
mod roots;
mod tables;

use crate::catalogue::Traffic;
use crate::compact::cuts::{Cuts, best_cuts, bytes_of_relations, cuts_while};
use crate::compact::plan::Plan;
use crate::tables::tiles::Added;
use crate::threads::gate::{Gate, Shared};
use crate::threads::reserve::{Promises, Room};
use deltamark_core::{
    Apart, Arrival, Attached, BLOCK, Batch, Block, Budget, Bytes, Guarantee, Ids, Image, Insert, Listed, Recall,
    Recoding, Sampler, Scratch, Slot, StateId, States, Store, System, Width,
};
use group::InsertGroup;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use tables::CompactTables;

/// Pairs of halves.
pub struct Compact {
    budget: Arc<Budget>,
    len: Apart<AtomicU64>,
    /// Of states (I2).
    promises: Promises<1>,
    gate: Gate<CompactTables>,
    attached: Attached,
    /// Whether a search is to find paths in a twin; not if it is one.
    retraces: bool,
}

/// Successors that are looked up together: enough to hide memory latency.
const GROUP: usize = 128;
/// Groups for which room is set aside together.
const TOGETHER: usize = 4;

/// Working memory of a thread.
#[derive(Default)]
struct Working {
    room: Room<1>,
    /// Whether many of its last successors were new, so that lines are fetched for writing.
    expects_new: bool,
    /// For each position the numbers of the block's states.
    parents: Vec<u32>,
    /// For each position the numbers of a group.
    numbers: Vec<u32>,
    /// For each leaf, where there are many, those of a group that differ from their sources.
    differing: Vec<Vec<u8>>,
}

/// From this many leaves on, what differs is looked for word by word and not leaf by leaf.
const MANY_LEAVES: usize = 5;

impl Compact {
    /// An empty store for the states of `system`, within `budget`; nothing, if they vary in
    /// width. Looks at the system for a moment, with two of the threads.
    pub fn new(system: &dyn System, budget: Arc<Budget>, traffic: &Traffic) -> Option<Self> {
        let Width::Fixed(slots) = system.width() else { return None };
        // Samples for which there is no memory are left out; without any, states are cut anyhow.
        let cost = |sampler: &dyn Sampler| sampler.cost(slots) + bytes_of_relations(slots);
        let granted = traffic.samplers.iter().filter(|sampler| budget.request(cost(**sampler)));
        let granted: Vec<&dyn Sampler> = granted.copied().collect();
        let look = |sampler: &&dyn Sampler| {
            let sample = sampler.sample(system, &traffic.control);
            let goes_on = || traffic.control.stop_without_memory().is_none();
            let cuts = cuts_while(&sample, slots, &goes_on);
            (sample, cuts)
        };
        let looks: Vec<(States, Cuts)> = match &granted[..] {
            [one, other] if traffic.threads > 1 => std::thread::scope(|scope| {
                // A system that has no thread to give lets us do both.
                let spawned = Builder::new().name("sample".into()).spawn_scoped(scope, || look(other));
                let one = look(one);
                let other = match spawned {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    Err(_) => look(other),
                };
                vec![one, other]
            }),
            granted => granted.iter().map(look).collect(),
        };
        let plan = Plan::new(&best_cuts(looks, slots), slots);
        granted.iter().for_each(|sampler| budget.release(cost(*sampler)));
        Some(Self::with_plan(plan, budget))
    }

    fn with_plan(plan: Plan, budget: Arc<Budget>) -> Self {
        let (gate, attached) = (Gate::new(CompactTables::new(plan, &budget)), Attached::new(Ids::Sparse, &budget));
        Compact { budget, len: Apart::default(), promises: Promises::default(), gate, attached, retraces: true }
    }

    /// Sets room aside for `states` more states and hands out the tables, growing them first
    /// if need be (I2). `None` if the budget is spent.
    fn set_aside(&self, room: &mut Room<1>, states: u64) -> Option<Shared<'_, CompactTables>> {
        loop {
            let tables = self.gate.shared();
            let missing = room.missing(tables.growth, [states], || [self.len()]);
            if missing == [0] {
                return Some(tables);
            }
            let ([promised], len) = (self.promises.add(missing), self.len());
            if tables.have_room(promised.saturating_sub(len), len) {
                room.add(missing);
                return Some(tables);
            }
            self.promises.withdraw(missing);
            drop(tables);
            let Some((_busy, mut tables)) = self.gate.grow() else { continue };
            tables.growth.number += 1;
            let (len, help) = (self.len(), &self.gate.help);
            self.promises.void([len]);
            // For all threads, so that they do not come here in turn.
            let [each] = tables.growth.ahead([states], [len]);
            if tables.growth.tight || !tables.make_room(each * help.threads() as u64, len, &self.budget, help) {
                tables.growth.tight = true;
                if !tables.make_room(states, len, &self.budget, help) {
                    return None;
                }
            }
        }
    }

    /// Counts states that are new, and takes them from the room that was set aside.
    fn count(&self, working: &mut Working, new: u64) {
        if new > 0 {
            working.room.take([new]);
            self.len.fetch_add(new, Ordering::AcqRel);
        }
    }

    /// Inserts a state for which no room could be set aside: it may be there, or its halves.
    #[cold]
    fn insert_at_last(&self, state: &[Slot]) -> Insert {
        let tables = self.gate.shared();
        let (Some(code), Some(roots)) = (tables.find_code(state), &tables.roots) else { return Insert::Full };
        if roots.contains(code) {
            return Insert::Seen(tables.past.seen_id(code));
        }
        let [promised] = self.promises.add([1]);
        let added = if roots.has_room(promised, tables.reach(0)) { roots.insert(code) } else { Added::Full };
        if added == Added::New {
            self.len.fetch_add(1, Ordering::AcqRel);
        } else {
            self.promises.withdraw([1]);
        }
        answer(&tables, code, added)
    }
}

fn answer(tables: &CompactTables, code: u64, added: Added) -> Insert {
    match added {
        Added::New => Insert::New(tables.past.new_id(code)),
        Added::Seen => Insert::Seen(tables.past.seen_id(code)),
        Added::Full => Insert::Full,
    }
}

impl Store for Compact {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], _hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let working = scratch.get::<Working>();
        let Some(tables) = self.set_aside(&mut working.room, 1) else { return self.insert_at_last(state) };
        assert_eq!(state.len(), tables.plan.slots(), "a state of a fixed-width system has its width");
        let code = tables.intern(&mut working.numbers, state);
        let Some((code, roots)) = code.zip(tables.roots.as_ref()) else { return Insert::Full };
        let added = roots.insert(code);
        match added {
            Added::New => self.count(working, 1),
            Added::Seen => {}
            // Halves without a root have used it.
            Added::Full => working.room.take([1]),
        }
        answer(&tables, code, added)
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let mut walked = false;
        for start in (0..batch.len()).step_by(TOGETHER * GROUP) {
            let end = batch.len().min(start + TOGETHER * GROUP);
            let Some(tables) = self.set_aside(&mut scratch.get::<Working>().room, (end - start) as u64) else {
                // Not all of them would fit, but most may be there already.
                for index in start..batch.len() {
                    out.push(self.insert(scratch, batch.target(index), 0, &batch.arrival(block, index)));
                    if out.last() == Some(&Insert::Full) {
                        return;
                    }
                }
                return;
            };
            let working = scratch.get::<Working>();
            if !walked {
                walked = true;
                assert_eq!(batch.targets().width(), Width::Fixed(tables.plan.slots()), "successors have their width");
                working.parents.resize(tables.plan.positions() * BLOCK, 0);
                for source in 0..block.len() {
                    let code = tables.code_of(block.id(source), block.state(source));
                    tables.walk(code, BLOCK, &mut working.parents[source..]);
                }
            }
            working.numbers.resize(tables.plan.positions() * GROUP, 0);
            let (mut new, expects_new) = (0, working.expects_new);
            for first in (start..end).step_by(GROUP) {
                let Some(roots) = &tables.roots else { break };
                let range = first..end.min(first + GROUP);
                new += InsertGroup { tables: &tables, roots, working, block, batch, range, out, expects_new }.insert();
                if out.last() == Some(&Insert::Full) {
                    break;
                }
            }
            self.count(working, new);
            // Of several threads each should take a line it will write to at once.
            working.expects_new = new * 4 > (end - start) as u64 && self.gate.help.has_others();
            if out.last() == Some(&Insert::Full) {
                // Halves without a root have used it.
                working.room.forget();
                return;
            }
        }
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], _hash: u64) -> Option<StateId> {
        let tables = self.gate.shared();
        let code = tables.find_code(state)?;
        tables.roots.as_ref()?.contains(code).then(|| tables.past.seen_id(code))
    }

    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn bytes(&self) -> Bytes {
        self.attached.counted(self.gate.shared().bytes())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn scratch(&self) -> Scratch {
        self.gate.help.enrol();
        Scratch::new(Working::default())
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn attached(&self) -> Option<&Attached> {
        Some(&self.attached).filter(|_| self.gate.shared().past.names_all())
    }

    fn twin(&self) -> Option<Box<dyn Store + '_>> {
        let plan = self.gate.shared().plan.clone();
        let mut twin = Compact::with_plan(plan, Arc::clone(&self.budget));
        twin.retraces = false;
        Some(Box::new(twin))
    }

    fn end_level(&self) -> bool {
        if self.gate.shared().past.is_waiting() {
            self.gate.alone().past.end_level(&self.budget);
        }
        true
    }

    fn image(&self) -> Image<'_> {
        Image::Listed(self)
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut tables = self.gate.alone();
        // Room that was set aside is void.
        self.promises.void([self.len()]);
        tables.recode(recoding, self.len(), self.attached.in_use(), &self.budget)
    }
}

impl Recall for Compact {
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let tables = self.gate.shared();
        let numbers = &mut scratch.get::<Working>().numbers;
        tables.recall_ids(ids, numbers, out);
    }

    fn sequential(&self) -> bool {
        false
    }

    fn retraces(&self) -> bool {
        self.retraces
    }
}

impl Listed for Compact {
    fn list(&self, show: &mut dyn FnMut(&[Slot]) -> bool) {
        let tables = self.gate.shared();
        let mut state = States::new(Width::Fixed(tables.plan.slots()));
        let Some(roots) = &tables.roots else { return };
        roots.each(|code| {
            state.clear();
            tables.state(code, &mut state);
            show(state.get(0))
        });
    }
}

impl Drop for Compact {
    fn drop(&mut self) {
        let tables = self.gate.get_mut();
        tables.release(&self.budget);
    }
}
