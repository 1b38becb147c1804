//! # The idea
//! Stores every state in full, packed, in the order of discovery, with an index: a hash table of
//! 32-bit entries from states to their numbers. It is the baseline of every ratio we print, so it
//! is heavily optimised: buckets of one cache line compared with vector instructions, batched
//! look-ups with prefetching, huge pages.
//!
//! # Layout in memory
//! ```text
//! vectors   #0 [7|0|3] #1 [7|1|3] #2 [6|1|3] …         width × 4 bytes a state
//!                          ▲
//! index     bucket  [ tag|1  tag|0  tag|2  0  0 … ]    16 entries × 4 bytes, 0 = empty
//! ```
//! An entry holds the number plus one in its low bits, as many as the capacity of the index needs,
//! and bits of the hash above them, the tag. Entries of a full bucket overflow into the next one
//! (linear probing).
//!
//! # Growth
//! Vectors never move. The index is a function of the vectors: when it is full it is enlarged,
//! cleared and refilled, so growing never needs a second copy of anything. An index of half a
//! megabyte and more grows by half, which keeps its load factor between 0.57 and 0.85. (Growth by a
//! quarter was tried: .5 bytes per state less, and 15 per cent slower.) Refilling is a fifth of the
//! time of a run, so threads that arrive at the gate meanwhile help, a range of numbers at a time
//! (`growth.rs`, `threads/cooperate.rs`).
//!
//! # Invariants
//! * I1: a number is in the index exactly once, in the first bucket from its hash on that had an
//!   empty entry at insertion; a bucket with an empty entry ends every search.
//! * I2: an entry whose number is all ones is being written: its vector is incomplete. A thread
//!   that finds one with its own tag waits; see `threads/claim.rs`, which is why two threads never
//!   insert the same state twice.
//! * I3: an inserting thread holds the gate shared, and room for its insertions is reserved;
//!   growing and recoding hold the gate exclusively, helpers included.
//!
//! # When to choose it
//! Whenever the run fits into memory. 4.7 to 7.1 bytes per state for the index; a look-up touches
//! one line of the index, sometimes the next, and one vector.

mod growth;
pub(crate) mod shape;
mod tables;

use crate::states::vectors::Vectors;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
pub(crate) use crate::tables::entrance::NONE;
use crate::tables::index::{BASELINE, Index};
use crate::threads::gate::{Gate, Shared};
use deltamark_core::{
    Apart, Arrival, Attached, Batch, Block, Budget, Bytes, Guarantee, Ids, Image, Insert, Recall, Recoding, Scratch,
    Slot, StateId, States, Store, System, Width, hash::mix, store::insert_one_by_one,
};
use shape::AnyWidth;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tables::PlainTables;

/// Full packed vectors with an index.
pub struct Plain<'a> {
    system: &'a dyn System,
    budget: Arc<Budget>,
    len: Apart<AtomicU64>,
    /// Insertions that room was set aside for and that are not finished (I3): states, and, where
    /// their width varies, slots.
    pending: Apart<[AtomicU64; 2]>,
    gate: Gate<PlainTables>,
    attached: Attached,
}

/// How far vectors that are rewritten may run ahead of the pages that are given back.
const REWRITE_AHEAD: u64 = 4 << 20;
/// Vectors are asked for in steps of this many bytes, or of this fraction of those that are there: threads wait for
/// each other meanwhile.
const VECTOR_STEP: u64 = 256 << 10;
const AHEAD: u64 = 128;
/// An emptied store keeps an index of up to this many bytes: to clear it takes less time than to map another.
const KEPT_INDEX: u64 = 64 << 10;

impl<'a> Plain<'a> {
    /// An empty store for the states of `system`, within `budget`.
    ///
    /// # Panics
    /// When the operating system refuses the first few kilobytes.
    pub fn new(system: &'a dyn System, budget: Arc<Budget>) -> Self {
        Self::for_about(0, system, budget)
    }

    /// The same, with an index for about as many states, if the budget allows it.
    pub(crate) fn for_about(states: u64, system: &'a dyn System, budget: Arc<Budget>) -> Self {
        let buckets = Some(Index::buckets_for(states)).filter(|&buckets| Index::bytes(buckets) < budget.limit() / 16);
        let buckets = buckets.unwrap_or(Index::FEWEST);
        let index = Index::new(buckets).expect("a few kilobytes");
        let expects_new = AtomicBool::new(false);
        let mut tables = PlainTables { vectors: Vectors::new(system.width()), granted: 0, index, expects_new };
        // States of no slots never ask for memory, but need an address.
        if system.width() == Width::Fixed(0) {
            assert!(tables.vectors.extend(0, 1, 0), "one page");
        }
        // A budget too small even for this leaves no room at all: the first state is `Full`.
        if !budget.request(Index::bytes(buckets)) {
            tables.index.room = 0;
            tables.index.buckets = 0;
        }
        Plain {
            system,
            attached: Attached::new(Ids::Dense, &budget),
            budget,
            len: Apart(AtomicU64::new(0)),
            pending: Apart([AtomicU64::new(0), AtomicU64::new(0)]),
            gate: Gate::new(tables),
        }
    }

    /// Forgets all states and keeps the memory for others. If it is much, or has no room for `about` states,
    /// nothing is changed, and the answer is `false`: a store of the right size is to take its place.
    #[must_use]
    pub(crate) fn clear(&mut self, about: u64) -> bool {
        let mut guard = self.gate.alone();
        let tables = &mut *guard;
        let bytes = Index::bytes(tables.index.buckets);
        let few = tables.granted <= VECTOR_STEP && bytes <= KEPT_INDEX;
        if !few || bytes < Index::bytes(Index::buckets_for(about)) {
            return false;
        }
        tables.vectors.clear();
        tables.index.clear();
        self.len.0.store(0, Ordering::Release);
        true
    }

    /// Sets room aside for `states` more states of `slots` slots in all and hands out the
    /// tables, growing them first if need be (I3). `None` if the budget is spent.
    fn set_aside(&self, states: u64, slots: u64) -> Option<Shared<'_, PlainTables>> {
        loop {
            let guard = self.gate.shared();
            let tables = &*guard;
            // First added, then compared with what is there: of two threads one sees the other.
            let pending = self.pending.0[0].fetch_add(states, Ordering::AcqRel) + states;
            let pending_slots = match tables.vectors {
                Vectors::Fixed(_) => 0,
                Vectors::Varying { .. } => self.pending.0[1].fetch_add(slots, Ordering::AcqRel) + slots,
            };
            let len = self.len.0.load(Ordering::Acquire);
            let bytes = tables.vectors.used_bytes(len) + tables.vectors.needed_bytes(pending, pending_slots);
            if len + pending <= tables.index.room
                && bytes <= tables.granted
                && (pending_slots == 0 || slots <= tables.vectors.most_slots())
            {
                return Some(guard);
            }
            self.done(tables, states, slots);
            drop(guard);
            if !self.grow_or_help(pending, pending_slots, states, slots) {
                return None;
            }
        }
    }

    /// Ends an insertion for which room was set aside.
    fn done(&self, tables: &PlainTables, states: u64, slots: u64) {
        self.pending.0[0].fetch_sub(states, Ordering::AcqRel);
        if let Vectors::Varying { .. } = tables.vectors {
            self.pending.0[1].fetch_sub(slots, Ordering::AcqRel);
        }
    }

    /// Appends for each state its number, or [`NONE`] if it is not there.
    pub(crate) fn find_each(&self, states: &States, hashes: &[u64], out: &mut Vec<u64>) {
        assert_eq!(states.len(), hashes.len(), "one hash for each state");
        let guard = self.gate.shared();
        let tables = &*guard;
        if self.len() == 0 {
            out.resize(out.len() + hashes.len(), NONE);
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` found that the processor has these instructions.
            unsafe { tables.find_avx512(avx512, states, hashes, out) };
            return;
        }
        tables.find_shaped(BASELINE, states, hashes, out);
    }

    /// Inserts many states and appends an answer for each; or nothing at all, and then it says
    /// `false`, if there is no room for all of them.
    pub(crate) fn insert_each(&self, states: &States, hashes: &[u64], out: &mut Vec<Insert>) -> bool {
        let (count, slots) = (states.len() as u64, states.slots().len() as u64);
        let Some(guard) = self.set_aside(count, slots) else { return false };
        let first = out.len();
        self.insert_into(&guard, states, hashes, out);
        self.done(&guard, count, slots);
        if self.gate.help.has_others() {
            // Of several threads each should take a line it will write to at once.
            let new = out[first..].iter().filter(|answer| matches!(answer, Insert::New(_))).count();
            let many = new * 4 > states.len();
            if states.len() >= 32 && guard.expects_new.load(Ordering::Relaxed) != many {
                guard.expects_new.store(many, Ordering::Relaxed);
            }
        }
        true
    }

    fn insert_into(&self, tables: &PlainTables, states: &States, hashes: &[u64], out: &mut Vec<Insert>) {
        let len = &self.len.0;
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` found that the processor has these instructions.
            unsafe { tables.insert_avx512(avx512, len, states, hashes, out) };
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx2) = x86::Avx2::detect() {
            // SAFETY: `detect` found that the processor has these instructions.
            unsafe { tables.insert_avx2(avx2, len, states, hashes, out) };
            return;
        }
        tables.insert_shaped(BASELINE, len, states, hashes, out);
    }

    fn find_mixed(&self, state: &[Slot], mixed: u64) -> Option<StateId> {
        let guard = self.gate.shared();
        if guard.index.buckets == 0 {
            return None;
        }
        guard.search(BASELINE, AnyWidth, mixed, state).map(StateId::new)
    }
}

/// Working memory of a thread: one state at a time as a list.
struct Single {
    state: States,
    answers: Vec<Insert>,
}

impl Store for Plain<'_> {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let single: &mut Single = scratch.get();
        single.state.reset(self.system.width());
        single.state.push(state);
        single.answers.clear();
        if self.insert_each(&single.state, &[hash], &mut single.answers) {
            return single.answers[0];
        }
        match self.find_mixed(state, mix(hash)) {
            Some(id) => Insert::Seen(id),
            None => Insert::Full,
        }
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        if !self.insert_each(batch.targets(), batch.hashes(), out) {
            // Not all of them would fit, but most may be there already.
            insert_one_by_one(self, scratch, block, batch, out);
        }
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        self.find_mixed(state, mix(hash))
    }

    fn len(&self) -> u64 {
        self.len.0.load(Ordering::Acquire)
    }

    fn bytes(&self) -> Bytes {
        let guard = self.gate.shared();
        let tables = &*guard;
        let used = tables.vectors.used_bytes(self.len());
        let bytes = Bytes::new()
            .with("vectors", used)
            .with("index", Index::bytes(tables.index.buckets))
            .with("reserve", tables.granted.saturating_sub(used));
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
        Scratch::new(Single { state: States::new(self.system.width()), answers: Vec::new() })
    }

    fn image(&self) -> Image<'_> {
        Image::Numbered
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut guard = self.gate.alone();
        let tables = &mut *guard;
        let len = self.len();
        let old = tables.vectors.used_bytes(len);
        let new = match (recoding.from, recoding.to) {
            (Width::Fixed(_), Width::Fixed(to)) => len * to as u64 * 4,
            // How long each will be is known only when it is translated: both are there.
            _ => 3 * old,
        };
        let more = new.saturating_sub(tables.granted);
        // New pages, which may be large ones, are there before old ones are given back.
        let meanwhile = old.min(REWRITE_AHEAD);
        if !self.budget.request(more + meanwhile) {
            return false;
        }
        let recoded = tables.vectors.recode(len, recoding, &self.budget);
        self.budget.release(if recoded { meanwhile } else { more + meanwhile });
        if !recoded {
            return false;
        }
        tables.granted += more;
        // What is granted and not used has addresses in the new layout too, or is given back (I3).
        if !tables.vectors.extend_to(len, tables.granted) {
            let used = tables.vectors.used_bytes(len);
            self.budget.release(tables.granted - used);
            tables.granted = used;
        }
        // Numbers stay, and so do hashes: the index is as true as before.
        true
    }
}

impl Recall for Plain<'_> {
    fn recall(&self, _scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let guard = self.gate.shared();
        let (tables, len) = (&*guard, self.len());
        for id in ids {
            assert!(id.get() < len, "{id:?} is not one of {len} states");
            // SAFETY: the caller has the id from an insertion that has finished, so its
            // vector was written before.
            out.push(unsafe { tables.vectors.get(id.get()) });
        }
    }

    fn recall_range(&self, _scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        let guard = self.gate.shared();
        let (tables, len) = (&*guard, self.len());
        assert!(ids.end <= len, "{ids:?} are not among {len} states");
        let mut next = ids.start;
        while next < ids.end {
            let before = out.len();
            // SAFETY: as above.
            unsafe { tables.vectors.read(next..ids.end, out) };
            next += (out.len() - before) as u64;
        }
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl Drop for Plain<'_> {
    fn drop(&mut self) {
        let tables = self.gate.get_mut();
        self.budget.release(tables.granted + Index::bytes(tables.index.buckets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::{Action, Field};
    use deltamark_testkit::RandomGraph;
    use deltamark_testkit::systems::Still;

    const ROOT: Arrival<'static> = Arrival { parent: None, action: Action(0) };

    /// State `number` of these tests.
    fn state(number: u64) -> [Slot; 2] {
        [number as Slot, !(number as Slot)]
    }

    /// All states hash to few values, so that buckets overflow and tags collide (I1).
    fn poor_hash(number: u64) -> u64 {
        number % 5
    }

    #[test]
    fn states_of_the_same_hash_are_kept_apart() {
        let system = RandomGraph::of_width(1, Width::Fixed(2), 2);
        // As many as the index holds: growing would enter them by the system's hash.
        let plain = Plain::for_about(100, &system, Arc::new(Budget::unlimited()));
        let mut scratch = plain.scratch();
        for round in 0..2 {
            for number in 0..100 {
                let answer = plain.insert(&mut scratch, &state(number), poor_hash(number), &ROOT);
                let id = StateId::new(number);
                assert_eq!(answer, if round == 0 { Insert::New(id) } else { Insert::Seen(id) });
            }
        }
        assert_eq!(plain.find(&mut scratch, &state(100), poor_hash(100)), None);
    }

    #[test]
    fn states_of_all_widths_are_found_recalled_and_recoded() {
        let count = if cfg!(miri) { 40 } else { 10_000 };
        let fixed = [1, 2, 3, 4, 5, 8].map(Width::Fixed);
        for width in fixed.into_iter().chain([Width::Varies]) {
            let system = RandomGraph::of_width(1, width, 2);
            let plain = Plain::new(&system, Arc::new(Budget::unlimited()));
            let mut scratch = plain.scratch();
            let states = |numbers: Range<u64>| {
                let (mut states, mut hashes) = (States::new(width), Vec::new());
                for number in numbers {
                    let slots = if let Width::Fixed(slots) = width { slots } else { 1 + number as usize % 5 };
                    states.push(&vec![number as Slot; slots]);
                }
                system.hashes(&mut system.scratch(), &states, &mut hashes);
                (states, hashes)
            };
            // Batches of which half is there already.
            for start in (0..count).step_by(10) {
                let (batch, hashes) = states(start / 2..start + 10);
                let mut answers = Vec::new();
                assert!(plain.insert_each(&batch, &hashes, &mut answers));
                for (answer, number) in answers.into_iter().zip(start / 2..) {
                    let id = StateId::new(number);
                    assert_eq!(answer, if number < start { Insert::Seen(id) } else { Insert::New(id) }, "{width:?}");
                }
            }
            let (all, hashes) = states(0..count + 3);
            let mut found = Vec::new();
            plain.find_each(&all, &hashes, &mut found);
            assert!(found.iter().zip(0..).all(|(&found, number)| found == if number < count { number } else { NONE }));
            let recalled = |scratch: &mut Scratch, width: Width| {
                let mut recalled = States::new(width);
                plain.recall_range(scratch, 0..count, &mut recalled);
                recalled
            };
            assert!(recalled(&mut scratch, width).iter().eq(all.iter().take(count as usize)));
            let Width::Fixed(slots) = width else { continue };
            let whole = |slot| Field::new(slot, 0, 32, 0);
            let same = (0..slots as u32).map(|slot| (whole(slot), whole(slot)));
            let pairs = same.chain([(Field::constant(77), whole(slots as u32))]);
            assert!(plain.recode(&Recoding::new(slots, slots + 1, String::new(), pairs)));
            for (held, old) in recalled(&mut scratch, Width::Fixed(slots + 1)).iter().zip(all.iter()) {
                assert_eq!(held.split_last(), Some((&77, old)));
            }
        }
    }

    #[test]
    fn a_state_of_no_slots_is_one_state() {
        let plain = Plain::new(&Still, Arc::new(Budget::unlimited()));
        let mut scratch = plain.scratch();
        assert_eq!(plain.find(&mut scratch, &[], 3), None);
        assert_eq!(plain.insert(&mut scratch, &[], 3, &ROOT), Insert::New(StateId::new(0)));
        assert_eq!(plain.insert(&mut scratch, &[], 3, &ROOT), Insert::Seen(StateId::new(0)));
        let mut recalled = States::new(Width::Fixed(0));
        Recall::recall(&plain, &mut scratch, &[StateId::new(0)], &mut recalled);
        assert_eq!((recalled.len(), recalled.get(0)), (1, &[][..]));
    }

    #[test]
    fn threads_never_enter_a_state_twice() {
        // Two threads start together and run in loose step: they meet at every state.
        let states = if cfg!(miri) { 60 } else { 200_000 };
        let system = RandomGraph::of_width(1, Width::Fixed(2), 2);
        let plain = Plain::new(&system, Arc::new(Budget::unlimited()));
        let begin = std::sync::Barrier::new(3);
        let insert_all = |start: u64| {
            begin.wait();
            let (mut system_scratch, mut scratch) = (system.scratch(), plain.scratch());
            let mut new = 0;
            for step in 0..states {
                let state = state((start + step * 7) % states);
                let hash = system.hash(&mut system_scratch, &state);
                match plain.insert(&mut scratch, &state, hash, &ROOT) {
                    Insert::New(_) => new += 1,
                    Insert::Seen(id) => {
                        let mut recalled = States::new(Width::Fixed(2));
                        Recall::recall(&plain, &mut scratch, &[id], &mut recalled);
                        assert_eq!(recalled.get(0), state);
                    }
                    Insert::Full => panic!("there is no limit"),
                }
            }
            new
        };
        let new: u64 = std::thread::scope(|scope| {
            let insert_all = &insert_all;
            let threads: Vec<_> = (0..3).map(|start| scope.spawn(move || insert_all(start / 2 * 11))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!((new, plain.len()), (states, states));
    }

    #[test]
    fn what_is_held_is_what_the_budget_granted() {
        let budget = Arc::new(Budget::unlimited());
        let system = RandomGraph::of_width(1, Width::Fixed(2), 2);
        let plain = Plain::new(&system, Arc::clone(&budget));
        let (mut system_scratch, mut scratch) = (system.scratch(), plain.scratch());
        for number in 0..if cfg!(miri) { 300 } else { 300_000 } {
            let hash = system.hash(&mut system_scratch, &state(number));
            plain.insert(&mut scratch, &state(number), hash, &ROOT);
            if number % 1000 == 0 {
                assert_eq!(plain.bytes().total(), budget.used());
            }
        }
        assert_eq!(budget.peak(), budget.used(), "growing never holds more than the result");
        drop(plain);
        assert_eq!(budget.used(), 0);
    }
}
