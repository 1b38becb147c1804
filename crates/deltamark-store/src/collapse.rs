//! # The idea
//! States consist of components (processes, channels, groups of places), and a component takes few
//! values compared with the whole state. So each value is stored once, in a table for its
//! component, and a state is the tuple of its indices, in as many bits as they need. After SPIN's
//! COLLAPSE (G. J. Holzmann, *State Compression in SPIN: Recursive Indexing and Compression
//! Training Runs*, 1997) and the collapsing scheme of Evangelista and Pradat-Peyre's work on
//! Δ-markings. Differences: fields are as wide as the tables currently need and widen without a
//! copy; a component whose values hardly repeat is stored inline; no table size must be given; and
//! a state is not looked up component by component, but by its own hash, and compared with the
//! tuple, so only new states touch the tables.
//!
//! # Layout in memory
//! ```text
//! components  #0 [7] [6] [12] …   #1 [0|3] [1|3] …     one table a component
//!                 └──────┐  ┌──────────┘
//! tuples      #0 (0,0) #1 (0,1) #2 (1,1) …             bits, one tuple after the other
//!                         ▲
//! index       bucket [ tag|1  tag|0  tag|2  0 … ]      as in `plain`
//! ```
//! Component boundaries are those of the system; without any, each slot is a component. Layout and
//! widening of tuples: see `tuples.rs`; the tables: see `intern.rs`.
//!
//! # Threads
//! A new state is stored in full first, so several threads can insert states as in `plain`. When
//! these fresh states are one in 64 of all, or take one in 32 of all bytes, or are some thousand
//! per thread, the gate is closed and they are packed into tuples (`collapse/growth.rs`). States
//! that cannot be packed for lack of memory stay fresh.
//!
//! # Growth
//! Tuples and values never move. When the index is full it is refilled from the decoded tuples, as
//! in `plain`, by all threads.
//!
//! # Invariants
//! * I1: states are numbered 0, 1, 2 …; the first of them are tuples, the others fresh.
//! * I2: a number is in the index exactly once, in the first bucket from its hash on that had an
//!   empty entry at insertion; a bucket with an empty entry ends every search. An entry is settled
//!   after its state was written.
//! * I3: an inserting thread has reserved room in the index and among the fresh states, so it never
//!   grows them. Tuples change only under the exclusive gate.
//!
//! # When to choose it
//! When states are wide, or consist of repeating components, and must be recalled at once: at most
//! 80 per cent of `plain`'s memory on the nets we measured, index included, in 1.3 to 2.3 times its
//! time; 4 per cent for states of 200 slots, in three times its time. If nothing repeats, it packs
//! the slots as tightly as their values allow.

mod fresh;
mod growth;
mod tables;
mod tuples;

use crate::collapse::tuples::Tuples;
use crate::tables::index::Index;
use crate::threads::gate::Gate;
use crate::threads::reserve::{Growth, Promises, Room};
use deltamark_core::{
    Apart, Arrival, Attached, Batch, Block, Budget, Bytes, Guarantee, Ids, Image, Insert, Recall, Recoding, Scratch,
    Slot, StateId, States, Store, System, Width, hash::mix,
};
use fresh::Fresh;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tables::{CollapseTables, Successors, read};

/// Components interned, a state as the tuple of their numbers.
pub struct Collapse<'a> {
    system: &'a dyn System,
    budget: Arc<Budget>,
    len: Apart<AtomicU64>,
    /// Of states, and of slots of fresh states of varying width (I3).
    promises: Promises<2>,
    gate: Gate<CollapseTables>,
    attached: Attached,
}

/// Working memory of a thread.
struct CollapseScratch {
    room: Room<2>,
    /// Whether many of its last successors were new.
    expects_new: bool,
    /// One state at a time as a list.
    single: States,
    answers: Vec<Insert>,
}

/// Successors for which room is set aside together, and the bytes they take: fewer, if they are wide.
const TOGETHER: usize = if cfg!(miri) { 8 } else { 256 };
const TOGETHER_BYTES: usize = 1 << 15;
/// The index begins with this many buckets.
const BUCKETS: u64 = Index::FEWEST;
/// States that are recoded together, before the memory of the old ones is given back.
const PIECE: u64 = 1 << 10;

impl<'a> Collapse<'a> {
    /// An empty store for the states of `system`, within `budget`.
    ///
    /// # Panics
    /// When the operating system refuses the first few kilobytes.
    pub fn new(system: &'a dyn System, budget: Arc<Budget>) -> Self {
        let mut index = Index::new(BUCKETS).expect("a few kilobytes");
        // A budget too small even for this leaves no room at all: the first state is `Full`.
        if !budget.request(Index::bytes(BUCKETS)) {
            index.room = 0;
            index.buckets = 0;
        }
        let width = system.width();
        let tuples = Tuples::new(width, Arc::clone(&budget));
        let tables = CollapseTables {
            tuples,
            fresh: Fresh::new(width, 0),
            index,
            width,
            growth: Growth::default(),
            lost: false,
        };
        let (gate, attached) = (Gate::new(tables), Attached::new(Ids::Dense, &budget));
        Collapse { system, budget, len: Apart::default(), promises: Promises::default(), gate, attached }
    }

    /// How many states there are.
    fn count(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Inserts the successors of a range, and returns whether there was room for all of them.
    fn insert_range(
        &self,
        room: &mut Room<2>,
        expects_new: &mut bool,
        (states, hashes): (&States, &[u64]),
        range: Range<usize>,
        out: &mut Vec<Insert>,
    ) -> bool {
        let varies = states.width() == Width::Varies;
        let slots = |index: usize| if varies { states.get(index).len() as u64 } else { 0 };
        let count = range.len() as u64;
        let Some(tables) = self.set_aside(room, [count, if varies { range.clone().map(slots).sum() } else { 0 }])
        else {
            return false;
        };
        if range.start == 0 {
            tables.fresh.vectors.check_all(states);
        }
        let first = out.len();
        let successors = Successors { states, hashes, len: &self.len, expects_new: *expects_new };
        let new = tables.insert_detected(successors, range.clone(), out);
        let is_new = |(answer, _): &(&Insert, usize)| matches!(answer, Insert::New(_));
        let new_slots = match varies {
            true => out[first..].iter().zip(range).filter(is_new).map(|(_, index)| slots(index)).sum(),
            false => 0,
        };
        room.take([new, new_slots]);
        // Of several threads each should take a line it will write to at once.
        *expects_new = new * 4 > count && self.gate.help.has_others();
        true
    }
}

impl Store for Collapse<'_> {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let find = || self.gate.shared().search(mix(hash), state).map(|number| Insert::Seen(StateId::new(number)));
        // Where memory is short it takes long to find out that there is none for a state that may be there.
        let tight = self.gate.shared().growth.tight;
        if let Some(seen) = tight.then(find).flatten() {
            return seen;
        }
        let CollapseScratch { room, expects_new, single, answers } = scratch.get();
        single.reset(self.system.width());
        single.push(state);
        answers.clear();
        match self.insert_range(room, expects_new, (single, &[hash]), 0..1, answers) {
            true => answers[0],
            // Another thread may have been quicker.
            false => find().unwrap_or(Insert::Full),
        }
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let each = 4 * batch.targets().slots().len() / batch.len().max(1);
        let together = (TOGETHER_BYTES / each.max(1)).clamp(8, TOGETHER);
        for start in (0..batch.len()).step_by(together) {
            let CollapseScratch { room, expects_new, .. } = scratch.get();
            let range = start..batch.len().min(start + together);
            if self.insert_range(room, expects_new, (batch.targets(), batch.hashes()), range, out) {
                continue;
            }
            // Not all of them would fit, but most may be there already.
            for index in start..batch.len() {
                let (state, hash) = (batch.target(index), batch.hash(index));
                out.push(self.insert(scratch, state, hash, &batch.arrival(block, index)));
                if out.last() == Some(&Insert::Full) {
                    return;
                }
            }
            return;
        }
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        self.gate.shared().search(mix(hash), state).map(StateId::new)
    }

    fn len(&self) -> u64 {
        self.count()
    }

    fn bytes(&self) -> Bytes {
        let tables = self.gate.shared();
        let bytes =
            tables.tuples.bytes().with("fresh", tables.fresh.bytes()).with("index", Index::bytes(tables.index.buckets));
        self.attached.counted(bytes)
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn attached(&self) -> Option<&Attached> {
        Some(&self.attached)
    }

    fn scratch(&self) -> Scratch {
        self.gate.help.enrol();
        let single = States::new(self.system.width());
        Scratch::new(CollapseScratch { room: Room::default(), expects_new: false, single, answers: Vec::new() })
    }

    fn image(&self) -> Image<'_> {
        Image::Numbered
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut tables = self.gate.alone();
        let (tables, len) = (&mut *tables, self.count());
        // What was interned in the old layout means nothing in the new: all is built again, and
        // the memory of the old tuples is given back as it goes.
        let mut old = std::mem::replace(&mut tables.tuples, Tuples::new(recoding.to, Arc::clone(&self.budget)));
        let fresh = std::mem::replace(&mut tables.fresh, Fresh::new(recoding.to, len));
        tables.width = recoding.to;
        // Room that was set aside is void.
        tables.growth.number += 1;
        self.promises.void([len, 0]);
        let (mut before, mut number) = (States::new(recoding.from), 0);
        let mut recoded = true;
        while recoded && number < len {
            if self.budget.is_over() {
                recoded = false;
                break;
            }
            let end = len.min(number + PIECE);
            before.reset(recoding.from);
            // SAFETY: the gate is held alone, so nobody inserts, and all numbers below `len` are written.
            unsafe { read(&old, &fresh, number..end, &mut before) };
            recoding.translate_all(&mut before);
            recoded = tables.tuples.append(self.system, &before, &self.gate.help) == before.len();
            number = end;
            if number < old.len() {
                old.release_before(number);
            }
        }
        // Numbers stay, and so do hashes: the index is as true as before.
        self.budget.release(fresh.bytes());
        tables.lost = !recoded;
        recoded
    }
}

impl Recall for Collapse<'_> {
    fn recall(&self, _scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let (tables, len) = (self.gate.shared(), self.count());
        for id in ids {
            assert!(id.get() < len, "{id:?} is not one of {len} states");
            // SAFETY: the caller has the id from an insertion that has ended.
            unsafe { read(&tables.tuples, &tables.fresh, id.get()..id.get() + 1, out) };
        }
    }

    fn recall_range(&self, _scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        let (tables, len) = (self.gate.shared(), self.count());
        assert!(ids.end <= len, "{ids:?} are not among {len} states");
        // SAFETY: the caller has the ids from insertions that have ended.
        unsafe { read(&tables.tuples, &tables.fresh, ids, out) };
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl Drop for Collapse<'_> {
    fn drop(&mut self) {
        let tables = self.gate.get_mut();
        self.budget.release(Index::bytes(tables.index.buckets) + tables.fresh.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::{Action, Components, Describe, Field, Value, Widen};

    /// Components of one slot, of one, and of two or more; steps are none of its business.
    struct Parts(Width);

    impl Parts {
        /// Few values, as many as there are states, and few pairs.
        fn state(&self, number: u64) -> Vec<Slot> {
            let number = number as Slot;
            // So few that interning pays after a hundred states.
            let few = number % if cfg!(miri) { 2 } else { 7 };
            let mut state = vec![few << 20, number * 3, few << 9, few % 3];
            if self.0 == Width::Varies {
                state.resize(4 + number as usize % 4, few);
            }
            state
        }
    }

    impl System for Parts {
        fn width(&self) -> Width {
            self.0
        }

        fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
            out.push_hashed(Action(0), &self.state(0), 0);
            Ok(())
        }

        fn successors(&self, _scratch: &mut Scratch, _source: &[Slot], _out: &mut Batch) -> Result<(), Widen> {
            Ok(())
        }

        /// Of what another layout has too.
        fn hash(&self, _scratch: &mut Scratch, state: &[Slot]) -> u64 {
            state[1].into()
        }

        fn components(&self) -> Option<&dyn Components> {
            Some(self)
        }

        fn describe(&self) -> &dyn Describe {
            self
        }
    }

    impl Components for Parts {
        fn boundaries(&self, _state: &[Slot], out: &mut Vec<usize>) {
            out.extend([0, 1, 2]);
        }
    }

    impl Describe for Parts {
        fn state(&self, _state: &[Slot]) -> Vec<(String, Value)> {
            Vec::new()
        }

        fn action(&self, _source: &[Slot], _action: Action) -> String {
            String::new()
        }
    }

    /// Adds `more` slots of 9 to states of `slots` slots.
    fn with_nines(slots: u32, more: u32) -> Recoding {
        let whole = |slot| Field::new(slot, 0, 32, 0);
        let same = (0..slots).map(|slot| (whole(slot), whole(slot)));
        let nines = (slots..slots + more).map(|slot| (Field::constant(9), whole(slot)));
        Recoding::new(slots as usize, (slots + more) as usize, String::new(), same.chain(nines))
    }

    #[test]
    fn states_come_back_whatever_is_interned() {
        let count: u64 = if cfg!(miri) { 100 } else { 30_000 };
        for width in [Width::Fixed(4), Width::Varies] {
            let system = Parts(width);
            let budget = Arc::new(Budget::unlimited());
            let store = Collapse::new(&system, Arc::clone(&budget));
            let mut scratch = store.scratch();
            let mut next = 0;
            for start in (0..=count).step_by(10) {
                // Some of an early run, some of the last, new ones but at the end; at the beginning some twice.
                let numbers = (start / 2..start / 2 + 5).chain(start.saturating_sub(15)..count.min(start + 10));
                let (mut block, mut batch, mut answers) = (Block::new(width), Batch::new(width), Vec::new());
                block.push(StateId::new(0), &system.state(0));
                numbers.clone().for_each(|number| batch.push_hashed(Action(0), &system.state(number), number * 3));
                store.insert_batch(&mut scratch, &block, &batch, &mut answers);
                for (answer, number) in answers.into_iter().zip(numbers) {
                    let id = StateId::new(number);
                    assert_eq!(answer, if number < next { Insert::Seen(id) } else { Insert::New(id) });
                    next = next.max(number + 1);
                }
            }
            assert!(store.bytes().parts().iter().any(|&(part, bytes)| part == "components" && bytes > 0));
            assert_eq!(store.bytes().total(), budget.used());
            let mut all = States::new(width);
            store.recall_range(&mut scratch, 0..count, &mut all);
            for (held, number) in all.iter().zip(0..) {
                assert_eq!(held, system.state(number));
                assert_eq!(store.find(&mut scratch, held, number * 3), Some(StateId::new(number)));
                // Another state of the same hash.
                let other = [&[1], &held[1..]].concat();
                assert_eq!(store.find(&mut scratch, &other, number * 3), None);
            }
            if width == Width::Varies {
                continue;
            }
            assert!(store.recode(&with_nines(4, 1)));
            let mut again = States::new(Width::Fixed(5));
            store.recall_range(&mut scratch, 0..count, &mut again);
            assert!(again.iter().eq(all.iter().map(|state| [state, &[9]].concat())));
        }
    }

    #[test]
    fn what_cannot_be_packed_stays_and_is_found() {
        const ROOT: Arrival<'static> = Arrival { parent: None, action: Action(0) };
        for width in [Width::Fixed(4), Width::Varies] {
            for limit in if cfg!(miri) { [900, 1500, 2000] } else { [9_000, 40_000, 300_000] } {
                let (system, budget) = (Parts(width), Arc::new(Budget::new(limit)));
                let store = Collapse::new(&system, Arc::clone(&budget));
                let mut scratch = store.scratch();
                let mut insert = |number| store.insert(&mut scratch, &system.state(number), number * 3, &ROOT);
                let added = (0..).find(|&number| insert(number) == Insert::Full).expect("memory ends");
                assert!((0..added).all(|number| insert(number) == Insert::Seen(StateId::new(number))), "{limit}");
                assert_eq!(insert(added), Insert::Full);
                assert_eq!((store.len(), store.bytes().total()), (added, budget.used()), "{limit}");
                let mut all = States::new(width);
                store.recall_range(&mut scratch, 0..added, &mut all);
                assert!(all.iter().eq((0..added).map(|number| system.state(number))), "{limit}");
                let tables = store.gate.shared();
                assert!(added > 0 && tables.tuples.len() <= added && tables.fresh.first <= tables.tuples.len());
            }
        }
    }

    #[test]
    fn after_a_recoding_without_memory_nothing_leads_to_what_is_gone() {
        const ROOT: Arrival<'static> = Arrival { parent: None, action: Action(0) };
        let count: u64 = if cfg!(miri) { 30 } else { 3000 };
        let (system, budget) = (Parts(Width::Fixed(4)), Arc::new(Budget::unlimited()));
        let store = Collapse::new(&system, Arc::clone(&budget));
        let mut scratch = store.scratch();
        let mut insert = |number| store.insert(&mut scratch, &system.state(number), number * 3, &ROOT);
        assert!((0..count).all(|number| insert(number) == Insert::New(StateId::new(number))));
        // All that is left is taken.
        assert!(budget.request(budget.limit() - budget.used()));
        assert!(!store.recode(&with_nines(4, 60)));
        assert!((0..count).all(|number| insert(number) == Insert::Full));
        assert!(store.bytes().total() > 0);
    }
}
