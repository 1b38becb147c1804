//! # The idea
//! A step changes little, so a state is stored as its difference from its predecessor; every δ-th
//! state on a path is stored in full, so chains of differences are short. To compare a candidate
//! with a stored state, the changes of the stored chain are undone on the candidate, one by one,
//! and the result is compared with the full state at the end.
//!
//! From A. Mukherjee, Z. Tari, P. Bertok, *Memory efficient state-space analysis in software
//! model-checking*, ACSC 2010: their sequential algorithm. Kept: differences, δ, and that equality
//! is decided on states, never on their encodings. Different here:
//! * They hash into lists and, where a list gets long, hash again by a second function. We have one
//!   growing table (`quotient.rs`): no list gets long.
//! * They store new values; we store increments, in few bits (`patch.rs`), and full states relative
//!   to the first state. A repeated list of changes is stored once (`lists.rs`): if an action adds
//!   the same everywhere, a state takes a byte or two for it.
//! * A predecessor takes about a byte instead of a pointer.
//! * No stored state is expanded for a comparison: undoing changes on the candidate costs the same
//!   for any width, except for one comparison at the end. Candidates of a batch are walked back
//!   together to hide memory latency; two that reach the same record with the same state are
//!   merged.
//! * Level by level, the current level and the next one are held in full, because most duplicates
//!   are there.
//!
//! # Layout in memory
//! ```text
//! index    tag|7  tag|2 …                           hash -> number
//! lists    a: slot 3 +1   b: slot 5 -1, slot 6 +1   …
//! journal  #0 whole  #1 (0, a)  #2 (0, b)  #3 (1, b)  #4 (1: slot 2 +70) …
//! levels   [7|0|3] [7|1|3] …                        in full; frontier, given back
//! ```
//! See `journal.rs` for how a number leads to its record, and
//! `difference/record.rs` for what a record holds.
//!
//! # Growth
//! The journal never moves; the index grows in place in small steps. Only a new layout takes a
//! second copy: all records are rewritten, in the order of their numbers, within the budget.
//!
//! # Invariants
//! * I1: state `n` has record `n`; its predecessor has a smaller number; so every chain ends in a
//!   full state, after at most δ - 1 steps.
//! * I2: the index contains exactly the numbers of all records.
//! * I3: numbers from the current level on are in the levels too, in level order.
//!
//! # When to choose it
//! For wide states of which a step changes little: 200 slots take 12 bytes instead of 806, in less
//! than twice the time of `plain`. It requires nothing of the system: no undoing, no replaying of
//! actions. A look-up that hits an old state takes δ / 2 steps back on average, so narrow states,
//! which `plain` compares almost for free, take several times as long.

mod expand;
mod journal;
mod lists;
mod patch;
mod record;

use crate::difference::expand::ExpandedPath;
use crate::difference::journal::{Journal, JournalSpot};
use crate::difference::record::{Back, Coder, RecordKind, Written};
use crate::states::unpacked::Unpacked;
use crate::tables::bucket::prefetch;
use crate::tables::quotient::Quotient;
use deltamark_core::packed::bits_of;
use deltamark_core::{
    Arrival, Attached, BLOCK, Batch, Block, Budget, Bytes, Guarantee, Ids, Insert, Order, Recall, Recoding, Scratch,
    Slot, StateId, States, Store, System, Width, hash::mix,
};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits of the hash that distinguish states in the index: one look-up in 2^28 / states meets
/// another state's number and walks back in vain.
const KEY_BITS: u32 = 28;
/// Successors that are looked up together.
const GROUP: usize = 256;
/// No number.
const NONE: u64 = u64::MAX;

/// States as differences from their predecessors.
pub struct Difference {
    tables: Mutex<DifferenceTables>,
    attached: Attached,
}

struct DifferenceTables {
    budget: Arc<Budget>,
    /// Every n-th state of a path is whole.
    every: u64,
    width: Width,
    index: Quotient<128>,
    journal: Journal,
    coder: Coder,
    /// Bytes of records of whole states.
    whole_bytes: u64,
    /// The level being expanded and the one under construction, if states come by levels.
    levels: Option<[Unpacked; 2]>,
    /// The number of the level under construction.
    level: u64,
    /// How often the layout has changed.
    layout: u64,
}

/// What a thread keeps from call to call.
#[derive(Default)]
struct DifferenceScratch {
    /// The layout of the states it has expanded.
    layout: u64,
    path: ExpandedPath,
    /// A state being taken back.
    state: Vec<Slot>,
    record: Vec<u8>,
    other: Vec<u8>,
    walks: Vec<WalkBack>,
    /// Those of them that are under way.
    active: Vec<u16>,
    /// States being taken back together.
    states: Vec<Vec<Slot>>,
    /// Successors that were not found: source and index in one word.
    fresh: Vec<u64>,
    /// The number of the first state that the current batch has brought, and which successors
    /// got the numbers from there on.
    first: u64,
    new: Vec<u32>,
}

/// A state being taken back. Its slots are those of the same place among `states`.
#[derive(Clone, Copy)]
struct WalkBack {
    /// Which successor of the batch it is.
    index: usize,
    /// The number it may have.
    number: u64,
    /// The state it has reached.
    at: u64,
    spot: JournalSpot,
    end: WalkEnd,
}

/// How a walk ended.
#[derive(Clone, Copy)]
enum WalkEnd {
    /// At a whole state, which was the current one, or at a difference.
    Same(bool),
    /// It met another walk at the same state: both end alike.
    With(u16),
}

/// Where walks meet: for each number modulo its size the walk that is there.
type Meeting = [u16; 1024];

impl DifferenceTables {
    fn len(&self) -> u64 {
        self.journal.len()
    }

    /// The state of this number, if it is held in full (I3).
    #[inline(always)]
    fn unpacked(&self, number: u64) -> Option<&[Slot]> {
        let [hand, next] = self.levels.as_ref()?;
        if number >= next.numbers().start {
            Some(next.get(number))
        } else if number >= hand.numbers().start {
            Some(hand.get(number))
        } else {
            None
        }
    }

    /// Asks for what a comparison with this number reads first.
    #[inline(always)]
    fn prefetch(&self, number: u64) {
        if let Some([hand, next]) = &self.levels
            && number >= hand.numbers().start
        {
            let level = if number >= next.numbers().start { next } else { hand };
            let address = level.address(number);
            prefetch(address);
            prefetch(address.wrapping_add(16));
        } else {
            prefetch(self.journal.place_address(number));
        }
    }

    /// Whether the state of this number is this one.
    fn same(&self, number: u64, state: &[Slot], batch: Option<&Batch>, work: &mut DifferenceScratch) -> bool {
        if let Some(held) = self.unpacked(number) {
            return held == state;
        }
        // What the batch itself has brought is still there.
        if let Some(batch) = batch
            && let Some(&index) = number.checked_sub(work.first).and_then(|new| work.new.get(new as usize))
        {
            return batch.target(index as usize) == state;
        }
        let taken = &mut work.state;
        taken.clear();
        taken.extend_from_slice(state);
        let mut at = number;
        loop {
            let record = self.journal.get(at);
            match self.coder.back(record, taken) {
                Back::To(parent) => {
                    assert!(parent < at, "I1: a predecessor has a smaller number");
                    at = parent;
                }
                Back::Whole => return self.coder.is_whole(record, taken),
                Back::Differs => return false,
            }
        }
    }

    /// The number of a state that is there.
    fn search(&self, mixed: u64, state: &[Slot], batch: Option<&Batch>, work: &mut DifferenceScratch) -> Option<u64> {
        let mut found = None;
        self.index.probe(mixed, |number| {
            if found.is_none() && self.same(number, state, batch, work) {
                found = Some(number);
            }
        });
        found
    }

    /// How many differences are between this state and a whole one.
    fn chain(&self, number: u64) -> u64 {
        let (mut at, mut steps) = (number, 0);
        while let RecordKind::Difference(parent) = Coder::kind(self.journal.get(at)) {
            assert!(parent < at, "I1: a predecessor has a smaller number");
            at = parent;
            steps += 1;
        }
        steps
    }

    /// Whether a successor of this state, of which the chain may be known, is to be whole.
    fn is_due(&self, parent: u64, chain: &mut Option<u64>) -> bool {
        let steps = match self.levels {
            Some(_) => self.level,
            None => 1 + *chain.get_or_insert_with(|| self.chain(parent)),
        };
        steps.is_multiple_of(self.every)
    }

    /// Inserts a state, perhaps of a batch. `chain` is that of its parent, once it is known.
    fn insert(
        &mut self,
        mixed: u64,
        state: &[Slot],
        batch: Option<&Batch>,
        parent: Option<(u64, &[Slot])>,
        chain: &mut Option<u64>,
        work: &mut DifferenceScratch,
    ) -> Insert {
        if let Some(number) = self.search(mixed, state, batch, work) {
            return Insert::Seen(StateId::new(number));
        }
        let number = self.len();
        if number == 0 && !self.begin(state) {
            return Insert::Full;
        }
        if let Width::Fixed(width) = self.width {
            assert_eq!(state.len(), width, "a state of a fixed-width system has its width");
        }
        let base = self.journal.base().unwrap_or(parent.map_or(number, |parent| parent.0));
        let near = parent.filter(|&(parent, _)| !self.is_due(parent, chain));
        let Written { kind, marked } = self.coder.write(number, state, near, base, &mut work.record, &mut work.other);
        let bits = bits_of(number).max(1);
        let room = bits + KEY_BITS <= u64::BITS
            && self.journal.reserve(work.record.len(), &self.budget)
            && self.levels.as_mut().is_none_or(|[_, next]| next.reserve(state.len(), &self.budget))
            && self.index.reserve(1, bits)
            && self.index.insert(mixed, number);
        if !room {
            return Insert::Full;
        }
        self.journal.push(&work.record, marked, base);
        if kind == RecordKind::Whole {
            self.whole_bytes += work.record.len() as u64;
        }
        if let Some([_, next]) = &mut self.levels {
            next.push(state);
        }
        Insert::New(StateId::new(number))
    }

    /// Makes the first state the one that whole states are compared with.
    fn begin(&mut self, state: &[Slot]) -> bool {
        let held = self.coder.reference.len() as u64 * 4;
        if !self.budget.request(state.len() as u64 * 4) {
            return false;
        }
        self.budget.release(held);
        self.coder.reference = state.to_vec();
        true
    }

    /// Looks up all successors of a batch and notes those that were not found.
    ///
    /// In groups: fetch the lines of the index; read them and fetch what the first number under
    /// each key leads to; compare with states held in full; walk the others back together.
    fn look_up(&self, batch: &Batch, answers: &mut [Insert], work: &mut DifferenceScratch) {
        let mut mixed = [0; GROUP];
        let mut guesses = [NONE; GROUP];
        work.fresh.clear();
        for start in (0..batch.len()).step_by(GROUP) {
            let count = GROUP.min(batch.len() - start);
            for (mixed, &hash) in mixed.iter_mut().zip(&batch.hashes()[start..start + count]) {
                *mixed = mix(hash);
                self.index.prefetch(*mixed);
            }
            for (guess, &mixed) in guesses.iter_mut().zip(&mixed[..count]) {
                *guess = NONE;
                self.index.probe(mixed, |number| *guess = number);
                if *guess != NONE {
                    self.prefetch(*guess);
                }
            }
            work.walks.clear();
            for (offset, &number) in guesses[..count].iter().enumerate() {
                let index = start + offset;
                if number == NONE {
                    work.fresh.push(fresh(batch, index));
                } else if let Some(held) = self.unpacked(number) {
                    if held == batch.target(index) {
                        answers[index] = Insert::Seen(StateId::new(number));
                    } else {
                        work.fresh.push(fresh(batch, index));
                    }
                } else {
                    let place = work.walks.len();
                    let spot = self.journal.spot(number);
                    prefetch(self.journal.record_address(spot));
                    work.walks.push(WalkBack { index, number, at: number, spot, end: WalkEnd::Same(false) });
                    if work.states.len() <= place {
                        work.states.push(Vec::new());
                    }
                    work.states[place].clear();
                    work.states[place].extend_from_slice(batch.target(index));
                }
            }
            self.walk_back(batch, answers, work);
        }
    }

    /// Walks states back in step and writes what is found. Successors of one block have common
    /// ancestors a few steps back, so most walks meet another before they come to a whole state.
    fn walk_back(&self, batch: &Batch, answers: &mut [Insert], work: &mut DifferenceScratch) {
        let DifferenceScratch { walks, states, active, fresh: not_found, .. } = work;
        active.clear();
        active.extend(0..walks.len() as u16);
        let mut meeting: Meeting = [0; 1024];
        while !active.is_empty() {
            active.retain(|&number| {
                let walk = &mut walks[number as usize];
                let state = &mut states[number as usize];
                let record = self.journal.at(walk.spot);
                match self.coder.back(record, state) {
                    Back::To(parent) => {
                        assert!(parent < walk.at, "I1: a predecessor has a smaller number");
                        walk.at = parent;
                        prefetch(self.journal.place_address(parent));
                        true
                    }
                    Back::Whole => {
                        walk.end = WalkEnd::Same(self.coder.is_whole(record, state));
                        false
                    }
                    Back::Differs => false,
                }
            });
            for &number in active.iter() {
                meeting[walks[number as usize].at as usize % 1024] = number;
            }
            active.retain(|&number| {
                let at = walks[number as usize].at;
                let other = meeting[at as usize % 1024];
                if other != number
                    && walks[other as usize].at == at
                    && states[other as usize] == states[number as usize]
                {
                    walks[number as usize].end = WalkEnd::With(other);
                    return false;
                }
                let spot = self.journal.spot(at);
                prefetch(self.journal.record_address(spot));
                walks[number as usize].spot = spot;
                true
            });
        }
        for walk in walks.iter() {
            let mut end = walk.end;
            let same = loop {
                match end {
                    WalkEnd::Same(same) => break same,
                    WalkEnd::With(other) => end = walks[other as usize].end,
                }
            };
            if same {
                answers[walk.index] = Insert::Seen(StateId::new(walk.number));
            } else {
                not_found.push(fresh(batch, walk.index));
            }
        }
    }

    /// Inserts the successors of a block.
    fn insert_batch(&mut self, block: &Block, batch: &Batch, out: &mut Vec<Insert>, work: &mut DifferenceScratch) {
        let first = out.len();
        out.resize(first + batch.len(), Insert::Full);
        let answers = &mut out[first..];
        self.look_up(batch, answers, work);
        // By source, so that predecessors ascend with the numbers and take few bytes.
        let mut fresh = std::mem::take(&mut work.fresh);
        fresh.sort_unstable();
        let mut chains = [None; BLOCK];
        let mut full = false;
        work.first = self.len();
        work.new.clear();
        for &word in &fresh {
            let index = (word & u64::from(u32::MAX)) as usize;
            let source = batch.source(index);
            let (mixed, target) = (mix(batch.hash(index)), batch.target(index));
            answers[index] = if full {
                // What finds no room is reported; what is there needs none.
                self.search(mixed, target, Some(batch), work)
                    .map_or(Insert::Full, |number| Insert::Seen(StateId::new(number)))
            } else {
                let parent = (block.id(source).get(), block.state(source));
                self.insert(mixed, target, Some(batch), Some(parent), &mut chains[source], work)
            };
            match answers[index] {
                Insert::New(_) => work.new.push(index as u32),
                Insert::Seen(_) => {}
                Insert::Full => full = true,
            }
        }
        work.fresh = fresh;
    }

    /// Appends the state of this number to `out`.
    fn recall(&self, number: u64, work: &mut DifferenceScratch, out: &mut States) {
        assert!(number < self.len(), "#{number} is not one of {} states", self.len());
        match self.unpacked(number) {
            Some(held) => out.push(held),
            None => out.push(work.path(self.layout).expand(&self.journal, &self.coder, number)),
        }
    }

    /// Writes all records again, in another layout. `false` means that there is no room.
    fn rewrite(&mut self, recoding: &Recoding) -> bool {
        let mut reference = Vec::new();
        if !self.coder.reference.is_empty() {
            recoding.translate(&self.coder.reference, &mut reference);
        }
        let reference_bytes = reference.len() as u64 * 4;
        if !self.budget.request(reference_bytes) {
            return false;
        }
        let mut coder = Coder::new(recoding.to, reference, Arc::clone(&self.budget));
        let mut journal = Journal::new();
        let mut whole_bytes = 0;
        let (mut path, mut record, mut other) = (ExpandedPath::default(), Vec::new(), Vec::new());
        let (mut state, mut parent, mut parent_number) = (Vec::new(), Vec::new(), NONE);
        for number in 0..self.len() {
            let kind = Coder::kind(self.journal.get(number));
            if let RecordKind::Difference(number) = kind
                && number != parent_number
            {
                recoding.translate(path.expand(&self.journal, &self.coder, number), &mut parent);
                parent_number = number;
            }
            recoding.translate(path.expand(&self.journal, &self.coder, number), &mut state);
            let near = (kind != RecordKind::Whole).then_some((parent_number, &parent[..]));
            let base = journal.base().unwrap_or(near.map_or(number, |near| near.0));
            let Written { kind, marked } = coder.write(number, &state, near, base, &mut record, &mut other);
            if kind == RecordKind::Whole {
                whole_bytes += record.len() as u64;
            }
            if self.budget.is_over_at(number) || !journal.reserve(record.len(), &self.budget) {
                self.budget.release(journal.granted() + reference_bytes);
                return false;
            }
            journal.push(&record, marked, base);
        }
        self.budget.release(self.journal.granted() + self.coder.reference.len() as u64 * 4);
        self.journal = journal;
        self.coder = coder;
        self.whole_bytes = whole_bytes;
        self.width = recoding.to;
        self.layout += 1;
        true
    }
}

/// Source and index of a successor in one word.
fn fresh(batch: &Batch, index: usize) -> u64 {
    (batch.source(index) as u64) << 32 | index as u64
}

impl DifferenceScratch {
    /// The path, empty if it was expanded in another layout.
    fn path(&mut self, layout: u64) -> &mut ExpandedPath {
        if self.layout != layout {
            self.layout = layout;
            self.path.clear();
        }
        &mut self.path
    }
}

impl Difference {
    /// An empty store for the states of `system` that come in this order, within `budget`. Every
    /// `every`-th state of a path is whole.
    pub fn new(system: &dyn System, order: Order, every: u64, budget: Arc<Budget>) -> Self {
        let (width, attached) = (system.width(), Attached::new(Ids::Dense, &budget));
        let levels = (order == Order::Levels).then(|| [Unpacked::new(width, 0), Unpacked::new(width, 0)]);
        let tables = DifferenceTables {
            index: Quotient::new(KEY_BITS, 1, Arc::clone(&budget)),
            every: every.max(1),
            width,
            journal: Journal::new(),
            coder: Coder::new(width, Vec::new(), Arc::clone(&budget)),
            whole_bytes: 0,
            levels,
            level: 0,
            layout: 0,
            budget,
        };
        Difference { tables: Mutex::new(tables), attached }
    }

    fn tables(&self) -> MutexGuard<'_, DifferenceTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Difference {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert {
        let parent = arrival.parent.map(|(id, state)| (id.get(), state));
        self.tables().insert(mix(hash), state, None, parent, &mut None, scratch.get())
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        self.tables().insert_batch(block, batch, out, scratch.get());
    }

    fn find(&self, scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        self.tables().search(mix(hash), state, None, scratch.get()).map(StateId::new)
    }

    fn len(&self) -> u64 {
        self.tables().len()
    }

    fn bytes(&self) -> Bytes {
        let tables = self.tables();
        let [records, places, reserve] = tables.journal.bytes();
        let bytes = Bytes::new()
            .with("differences", records - tables.whole_bytes)
            .with("lists", tables.coder.lists.granted())
            .with("whole", tables.whole_bytes + tables.coder.reference.len() as u64 * 4)
            .with("places", places)
            .with("index", tables.index.bytes())
            .with("reserve", reserve);
        self.attached.counted(bytes)
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn attached(&self) -> Option<&Attached> {
        Some(&self.attached)
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(DifferenceScratch::default())
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn end_level(&self) -> bool {
        let tables = &mut *self.tables();
        tables.level += 1;
        let len = tables.len();
        if let Some(levels) = &mut tables.levels {
            levels.swap(0, 1);
            let expected = levels[0].granted();
            levels[1].clear(tables.width, len, expected, &tables.budget);
        }
        true
    }

    fn frontier_bytes(&self) -> u64 {
        self.tables().levels.iter().flatten().map(Unpacked::granted).sum()
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let tables = &mut *self.tables();
        if !tables.rewrite(recoding) {
            return false;
        }
        // Numbers stay, and so do hashes: the index is as true as before.
        tables.levels.iter_mut().flatten().all(|level| level.recode(recoding, &tables.budget))
    }
}

impl Recall for Difference {
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let tables = self.tables();
        ids.iter().for_each(|id| tables.recall(id.get(), scratch.get(), out));
    }

    fn recall_range(&self, scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        let tables = self.tables();
        if let Some([hand, _]) = &tables.levels
            && ids.start >= hand.numbers().start
            && ids.end <= hand.numbers().end
        {
            return hand.read(ids, out);
        }
        ids.for_each(|number| tables.recall(number, scratch.get(), out));
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl Drop for Difference {
    fn drop(&mut self) {
        let tables = self.tables.get_mut().unwrap_or_else(PoisonError::into_inner);
        let levels: u64 = tables.levels.iter().flatten().map(Unpacked::granted).sum();
        tables.budget.release(tables.journal.granted() + levels + tables.coder.reference.len() as u64 * 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Action;
    use deltamark_testkit::systems::Cells;
    use deltamark_testkit::{Explored, explore};

    /// Small enough for Miri: 2⁵ states.
    fn cells() -> Cells {
        if cfg!(miri) { Cells::new(20, 2) } else { Cells::new(70, 4) }
    }

    /// A store with all states of a system, each reached from the first that leads to it.
    fn filled(system: &Cells, order: Order, every: u64) -> (Difference, Explored) {
        let store = Difference::new(system, order, every, Arc::new(Budget::unlimited()));
        let all = explore(system);
        let (mut scratch, mut system_scratch) = (store.scratch(), system.scratch());
        let mut parents = vec![None; all.states.len()];
        for edge in all.edges.iter().rev().filter(|edge| edge.source < edge.target) {
            parents[edge.target] = Some(edge.source);
        }
        for (number, state) in all.states.iter().enumerate() {
            if number > 0 && all.distances[number] > all.distances[number - 1] {
                assert!(store.end_level());
            }
            let parent = parents[number].map(|parent| (StateId::new(parent as u64), &all.states[parent][..]));
            let hash = system.hash(&mut system_scratch, state);
            let answer = store.insert(&mut scratch, state, hash, &Arrival { parent, action: Action(0) });
            assert_eq!(answer, Insert::New(StateId::new(number as u64)));
        }
        (store, all)
    }

    #[test]
    fn chains_are_shorter_than_delta_and_some_reach_it() {
        for order in [Order::Levels, Order::Any] {
            for every in [1, 2, if cfg!(miri) { 5 } else { 7 }] {
                let (store, _) = filled(&cells(), order, every);
                let tables = store.tables();
                let longest = (0..tables.len()).map(|number| tables.chain(number)).max();
                assert_eq!(longest, Some(every - 1), "I1, {order:?}");
            }
        }
    }

    #[test]
    fn states_come_back_one_by_one_in_stretches_and_across_levels() {
        for every in [3, 200] {
            let (store, all) = filled(&cells(), Order::Levels, every);
            let recall = Store::recall(&store).expect("it recalls");
            for stretch in [1, 7, 64, 1024] {
                let mut scratch = store.scratch();
                let mut states = States::new(cells().width());
                for start in (0..all.states.len()).step_by(stretch) {
                    let end = all.states.len().min(start + stretch);
                    recall.recall_range(&mut scratch, start as u64..end as u64, &mut states);
                }
                assert!(states.iter().eq(all.states.iter().map(Vec::as_slice)), "{stretch}");
            }
        }
    }
}
