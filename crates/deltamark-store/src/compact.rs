//! # The idea
//! A state is cut into two halves, each half is kept once and numbered 0, 1, 2 …, and a state is
//! a pair of such numbers. If the cut is good, few halves make many states, and most pairs of
//! halves are states: then one bit a pair says which. Where pairs are sparse, a quotiented set
//! takes over, which keeps of a pair only what its place does not say.
//!
//! From Laarman, van de Pol and Weber, *Parallel Recursive State Compression for Free* (2011),
//! and Laarman's compact tree (*Optimal Compression of Combinatorial State Vectors*, 2019). What
//! is done differently: halves are sets of bits and not of slots, chosen by a short sample of the
//! system (`sample.rs`, `cuts.rs`); every position of the tree has a table of its own, so that
//! numbers are dense and a bitmap of pairs is possible; all tables grow by themselves; and roots
//! need not be numbered: the id of a state is the code of its pair.
//!
//! # Layout in memory
//! ```text
//! state      [ 0110 1001 1100 … ]         some bits go left, the others right
//!               ╱          ╲
//! halves   left #3        right #5        a table each (`dense.rs`), 13 bytes an entry;
//!               ╲          ╱              halves of more than 64 bits are trees themselves
//! root      code(3,5) = 0b100111          bits of both, in turn (`code.rs`): the id
//!               │
//! roots      bit 39 of a bitmap in tiles (`tiles.rs`), or an entry of a set (`pairs.rs`)
//! ```
//!
//! # Ids and frontier
//! Ids are codes and leave gaps, so a search keeps queues of them. That costs as many bits as
//! codes have for the states of two levels, where numbers in the order found would cost as many
//! for every state: those of the whole store, several times what it takes now. For the same reason
//! no back edges are kept: how a state was reached is found out by a second search (`retrace.rs`).
//!
//! # Insertion
//! Successors differ little from their source, whose numbers follow from its id: only leaves
//! that changed are looked up, and only nodes above them. A batch goes position by position,
//! so that look-ups overlap.
//!
//! # Growth
//! Halves and tiles never move; indexes are entered again from the halves; the quotiented set
//! is rearranged in place. A layout that changes leads to a new tree from all states, one by one;
//! old ids are kept in a side table (`past.rs`). Layouts seldom change once the sample is taken.
//!
//! # Invariants
//! * I1: every bit of a state is in exactly one leaf, so equal pairs mean equal states.
//! * I2: whoever inserts holds the gate shared, and every table has room for what it may insert;
//!   growing and recoding hold the gate alone.
//! * I3: a number that is in a key, and a pair that is a root, was interned before.
//!
//! # When to choose it
//! When states are of fixed width and made of parts that move on their own, as nets are: far
//! below a byte a state at best. Where a half is nearly the whole state, 10 to 20 bytes.

use crate::bucket::Lanes;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::bucket::x86;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::code::Bmi2;
use crate::code::{Pick, Portable, decode, encode, fits};
use crate::cuts::cuts;
use crate::dense::{Dense, pair, word};
use crate::index::BASELINE;
use crate::past::Past;
use crate::plan::Plan;
use crate::retrace::retrace;
use crate::roots::Roots;
use crate::sample;
use crate::tiles::Added;
use deltamark_core::{
    Arrival, BLOCK, Batch, Block, Budget, Bytes, Guarantee, Insert, Recall, Recoding, Scratch, Slot, StateId, States,
    Store, System, Trace, Width,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Pairs of halves.
pub struct Compact<'a> {
    system: &'a dyn System,
    budget: Arc<Budget>,
    len: AtomicU64,
    /// Insertions that room was set aside for and that are not finished (I2).
    pending: AtomicU64,
    gate: RwLock<Tables>,
}

/// What changes only while the gate is held alone.
struct Tables {
    plan: Plan,
    /// One for each position; none, if the budget did not even allow the first.
    halves: Vec<Dense<2>>,
    roots: Option<Roots>,
    past: Past,
}

/// Successors that are looked up together: enough to hide the way to memory.
const GROUP: usize = 128;
/// States of its own that a new tree is made by.
const OWN_SAMPLE: u64 = 4096;

/// Working memory of a thread.
struct Working {
    /// For each position the numbers of the block's states.
    parents: Vec<u32>,
    /// For each position the numbers of a group.
    numbers: Vec<u32>,
    /// For each leaf, where there are many, those of a group that differ from their sources.
    differing: Vec<Vec<u8>>,
}

/// From this many leaves on, what differs is looked for word by word and not leaf by leaf.
const MANY_LEAVES: usize = 5;

impl<'a> Compact<'a> {
    /// An empty store for the states of `system`, within `budget`; nothing, if they vary in
    /// width. Looks at the system for a moment.
    pub fn new(system: &'a dyn System, budget: Arc<Budget>) -> Option<Self> {
        let Width::Fixed(slots) = system.width() else { return None };
        let cost = sample::cost(slots);
        // Without the memory for a sample, states are cut without one.
        let granted = budget.request(cost);
        let states = if granted { sample::sample(system) } else { States::new(system.width()) };
        let plan = Plan::new(&cuts(&states, slots), slots);
        drop(states);
        if granted {
            budget.release(cost);
        }
        Some(Self::with_plan(system, plan, budget))
    }

    fn with_plan(system: &'a dyn System, plan: Plan, budget: Arc<Budget>) -> Self {
        let gate = RwLock::new(Tables::new(plan, &budget));
        Compact { system, budget, len: AtomicU64::new(0), pending: AtomicU64::new(0), gate }
    }

    fn shared(&self) -> RwLockReadGuard<'_, Tables> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Tables> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets room aside for `states` more states and hands out the tables, growing them first
    /// if need be (I2). Nothing, if the budget is spent.
    fn set_aside(&self, states: u64) -> Option<RwLockReadGuard<'_, Tables>> {
        loop {
            let tables = self.shared();
            let more = self.pending.fetch_add(states, Ordering::AcqRel) + states;
            if tables.have_room(more) {
                return Some(tables);
            }
            self.pending.fetch_sub(states, Ordering::AcqRel);
            drop(tables);
            // Nobody is inserting while the gate is held alone, so nothing is pending.
            if !self.alone().make_room(states, self.len(), &self.budget) {
                return None;
            }
        }
    }

    /// Inserts a state for which no room could be set aside: it may be there, or its halves.
    #[cold]
    fn insert_at_last(&self, state: &[Slot]) -> Insert {
        let tables = self.shared();
        let (Some(code), Some(roots)) = (tables.find_code(state), &tables.roots) else { return Insert::Full };
        if roots.contains(code) {
            return Insert::Seen(tables.id(code));
        }
        let more = self.pending.fetch_add(1, Ordering::AcqRel) + 1;
        let added = if roots.has_room(more, tables.limit(0)) { roots.insert(code) } else { Added::Full };
        self.pending.fetch_sub(1, Ordering::AcqRel);
        self.answer(&tables, code, added)
    }

    fn answer(&self, tables: &Tables, code: u64, added: Added) -> Insert {
        match added {
            Added::New => {
                self.len.fetch_add(1, Ordering::AcqRel);
                Insert::New(tables.id(code))
            }
            Added::Seen => Insert::Seen(tables.id(code)),
            Added::Full => Insert::Full,
        }
    }
}

impl Tables {
    fn new(plan: Plan, budget: &Arc<Budget>) -> Self {
        let mut tables = Tables { plan, halves: Vec::new(), roots: Roots::new(budget), past: Past::default() };
        for _ in 0..tables.plan.positions() {
            match Dense::new(budget) {
                Some(table) => tables.halves.push(table),
                None => {
                    // A budget too small even for this leaves no room at all.
                    tables.release(budget);
                    break;
                }
            }
        }
        tables
    }

    /// Gives everything back.
    fn release(&mut self, budget: &Arc<Budget>) {
        let halves: u64 = self.halves.drain(..).map(|table| table.bytes()).sum();
        budget.release(halves);
        self.roots = None;
        self.past.release(budget);
    }

    fn id(&self, code: u64) -> StateId {
        StateId::new(self.past.id(code))
    }

    /// How many numbers the two halves have.
    fn sides(&self) -> (u64, u64) {
        (self.halves[self.plan.left].len(), self.halves[self.plan.right].len())
    }

    /// What codes stay below when `more` states come.
    fn limit(&self, more: u64) -> u64 {
        let (left, right) = self.sides();
        let most = |count: u64| ((count + more).max(1).next_power_of_two() - 1).min(u64::from(u32::MAX)) as u32;
        encode(self.plan.skew, most(left), most(right)) + 1
    }

    fn have_room(&self, more: u64) -> bool {
        let Some(roots) = &self.roots else { return false };
        self.halves.iter().all(|table| table.has_room(more)) && roots.has_room(more, self.limit(more))
    }

    /// Makes room for `more` states, `len` being there.
    fn make_room(&mut self, more: u64, len: u64, budget: &Arc<Budget>) -> bool {
        if self.roots.is_none() {
            return false;
        }
        let (left, right) = self.sides();
        if !fits(self.plan.skew, left + more, right + more) {
            return false;
        }
        let limit = self.limit(more);
        let Some(roots) = &mut self.roots else { return false };
        self.halves.iter_mut().all(|table| table.has_room(more) || table.make_room(more, budget))
            && (roots.has_room(more, limit) || roots.make_room(more, limit, len, left * right, budget))
    }

    /// The code of a state all of whose nodes are there.
    fn find_code(&self, state: &[Slot]) -> Option<u64> {
        self.roots.as_ref()?;
        let mut numbers: Vec<u32> = Vec::with_capacity(self.plan.positions());
        for (position, table) in self.halves.iter().enumerate() {
            let key = if position < self.plan.leaves() {
                self.plan.key(Portable, position, state)
            } else {
                self.key_of(position, |child| numbers[child])
            };
            numbers.push(table.find(BASELINE, pair(key))?);
        }
        Some(encode(self.plan.skew, numbers[self.plan.left], numbers[self.plan.right]))
    }

    /// The key of an inner node.
    #[inline(always)]
    fn key_of(&self, position: usize, number: impl Fn(usize) -> u32) -> u64 {
        let (left, right) = self.plan.children(position);
        u64::from(number(left)) | u64::from(number(right)) << 32
    }

    /// The code of a state, whose nodes are interned. Room has been set aside (I2).
    fn intern(&self, numbers: &mut Vec<u32>, state: &[Slot]) -> u64 {
        numbers.clear();
        for (position, table) in self.halves.iter().enumerate() {
            let key = if position < self.plan.leaves() {
                self.plan.key(Portable, position, state)
            } else {
                self.key_of(position, |child| numbers[child])
            };
            numbers.push(table.intern(BASELINE, pair(key), Dense::hash(pair(key))).0);
        }
        encode(self.plan.skew, numbers[self.plan.left], numbers[self.plan.right])
    }

    /// Writes the numbers of all nodes of a state to every `stride`-th place of `out`.
    #[inline(always)]
    fn walk(&self, code: u64, stride: usize, out: &mut [u32]) {
        let (left, right) = decode(self.plan.skew, code);
        out[self.plan.left * stride] = left;
        out[self.plan.right * stride] = right;
        for position in (self.plan.leaves()..self.plan.positions()).rev() {
            let [first, second] = self.halves[position].get(out[position * stride]);
            let (left, right) = self.plan.children(position);
            out[left * stride] = first;
            out[right * stride] = second;
        }
    }

    /// Appends states.
    #[inline(always)]
    fn recall<P: Pick>(&self, pick: P, codes: impl Iterator<Item = u64>, numbers: &mut Vec<u32>, out: &mut States) {
        numbers.resize(self.plan.positions(), 0);
        for code in codes {
            self.walk(code, 1, numbers);
            let state = out.push_with(self.plan.slots());
            state.fill(0);
            for (leaf, &number) in numbers[..self.plan.leaves()].iter().enumerate() {
                self.plan.place(pick, leaf, word(self.halves[leaf].get(number)), state);
            }
        }
    }

    /// Inserts the successors of a batch from number `start` on, `count` of them, up to the
    /// first that finds no room. Room for their halves has been set aside (I2).
    ///
    /// In rounds: for each leaf, then for each node, those that changed are looked up together;
    /// the others have the numbers of their sources.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn insert_group<L: Lanes, P: Pick>(
        &self,
        (lanes, pick): (L, P),
        roots: &Roots,
        working: &mut Working,
        block: &Block,
        batch: &Batch,
        (start, count): (usize, usize),
        out: &mut Vec<Insert>,
    ) -> u64 {
        let (plan, count) = (&self.plan, count.min(GROUP));
        let Working { parents, numbers, differing } = working;
        let many = plan.leaves() >= MANY_LEAVES;
        if many {
            differing.resize(plan.leaves(), Vec::new());
            differing.iter_mut().for_each(Vec::clear);
            for slot in 0..count {
                let source = block.state(batch.source(start + slot));
                plan.each_differing(source, batch.target(start + slot), |leaf| {
                    if differing[leaf].last() != Some(&(slot as u8)) {
                        differing[leaf].push(slot as u8);
                    }
                });
            }
        }
        let mut keys = [0u64; GROUP];
        let mut mixed = [0u64; GROUP];
        let mut changed = [0u8; GROUP];
        for position in 0..plan.positions() {
            let table = &self.halves[position];
            let inherited = &parents[position * BLOCK..(position + 1) * BLOCK];
            let mut changes = 0;
            if position < plan.leaves() {
                let own = &mut numbers[position * GROUP..(position + 1) * GROUP];
                for slot in 0..count {
                    own[slot] = inherited[batch.source(start + slot) % BLOCK];
                }
                if many {
                    changes = differing[position].len();
                    changed[..changes].copy_from_slice(&differing[position]);
                } else {
                    for slot in 0..count {
                        let source = block.state(batch.source(start + slot));
                        changed[changes % GROUP] = slot as u8;
                        changes += usize::from(plan.differ(position, source, batch.target(start + slot)));
                    }
                }
                for &slot in &changed[..changes] {
                    let slot = slot as usize % GROUP;
                    keys[slot] = plan.key(pick, position, batch.target(start + slot));
                }
            } else {
                let (left, right) = plan.children(position);
                let (below, own) = numbers.split_at_mut(position * GROUP);
                let (lefts, rights) = (&below[left * GROUP..][..GROUP], &below[right * GROUP..][..GROUP]);
                let (old_lefts, old_rights) = (&parents[left * BLOCK..][..BLOCK], &parents[right * BLOCK..][..BLOCK]);
                for slot in 0..count {
                    let source = batch.source(start + slot) % BLOCK;
                    own[slot] = inherited[source];
                    changed[changes % GROUP] = slot as u8;
                    changes += usize::from(lefts[slot] != old_lefts[source] || rights[slot] != old_rights[source]);
                    keys[slot] = u64::from(lefts[slot]) | u64::from(rights[slot]) << 32;
                }
            }
            for &slot in &changed[..changes] {
                let slot = slot as usize % GROUP;
                mixed[slot] = Dense::hash(pair(keys[slot]));
                table.prefetch(mixed[slot]);
            }
            let own = &mut numbers[position * GROUP..(position + 1) * GROUP];
            for &slot in &changed[..changes] {
                let slot = slot as usize % GROUP;
                own[slot] = table.intern(lanes, pair(keys[slot]), mixed[slot]).0;
            }
        }
        let codes = &mut keys;
        for slot in 0..count {
            let (left, right) = (numbers[plan.left * GROUP + slot], numbers[plan.right * GROUP + slot]);
            codes[slot] = encode(plan.skew, left, right);
            roots.prefetch(codes[slot]);
        }
        let mut new = 0;
        for &code in &codes[..count] {
            match roots.insert(code) {
                Added::New => {
                    new += 1;
                    out.push(Insert::New(self.id(code)));
                }
                Added::Seen => out.push(Insert::Seen(self.id(code))),
                Added::Full => {
                    out.push(Insert::Full);
                    break;
                }
            }
        }
        new
    }

    /// [`insert_group`](Self::insert_group) with the instructions of AVX-512.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[allow(clippy::too_many_arguments)]
    unsafe fn insert_avx512(
        &self,
        ways: (x86::Avx512, Bmi2),
        roots: &Roots,
        working: &mut Working,
        block: &Block,
        batch: &Batch,
        range: (usize, usize),
        out: &mut Vec<Insert>,
    ) -> u64 {
        self.insert_group(ways, roots, working, block, batch, range, out)
    }

    /// [`insert_group`](Self::insert_group) with the instructions of AVX2.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    #[allow(clippy::too_many_arguments)]
    unsafe fn insert_avx2(
        &self,
        ways: (x86::Avx2, Bmi2),
        roots: &Roots,
        working: &mut Working,
        block: &Block,
        batch: &Batch,
        range: (usize, usize),
        out: &mut Vec<Insert>,
    ) -> u64 {
        self.insert_group(ways, roots, working, block, batch, range, out)
    }

    fn insert_detected(
        &self,
        working: &mut Working,
        block: &Block,
        batch: &Batch,
        range: (usize, usize),
        out: &mut Vec<Insert>,
    ) -> u64 {
        let Some(roots) = &self.roots else { return 0 };
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let (Some(avx512), Some(bmi2)) = (x86::Avx512::detect(), Bmi2::detect()) {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { self.insert_avx512((avx512, bmi2), roots, working, block, batch, range, out) };
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let (Some(avx2), Some(bmi2)) = (x86::Avx2::detect(), Bmi2::detect()) {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { self.insert_avx2((avx2, bmi2), roots, working, block, batch, range, out) };
        }
        self.insert_group((BASELINE, Portable), roots, working, block, batch, range, out)
    }

    /// [`recall`](Self::recall) with the instructions of BMI2.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "bmi1,bmi2")]
    unsafe fn recall_bmi2(
        &self,
        pick: Bmi2,
        codes: impl Iterator<Item = u64>,
        numbers: &mut Vec<u32>,
        out: &mut States,
    ) {
        self.recall(pick, codes, numbers, out);
    }

    fn recall_detected(&self, codes: impl Iterator<Item = u64>, numbers: &mut Vec<u32>, out: &mut States) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(bmi2) = Bmi2::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { self.recall_bmi2(bmi2, codes, numbers, out) };
        }
        self.recall(Portable, codes, numbers, out);
    }

    /// Appends the state of one code, in no hurry.
    fn state(&self, code: u64, out: &mut States) {
        self.recall(Portable, std::iter::once(code), &mut Vec::new(), out);
    }

    /// The tree of the same states in another layout.
    fn recoded(&self, recoding: &Recoding, len: u64, budget: &Arc<Budget>) -> Option<Tables> {
        let Width::Fixed(slots) = recoding.to else { return None };
        let cost = sample::cost(slots);
        if !budget.request(cost) {
            return None;
        }
        // The states that are there are the sample, or some of them.
        let mut old = States::new(recoding.from);
        let every = len.div_ceil(OWN_SAMPLE).max(1);
        let mut number = 0;
        self.each(|code| {
            if number % every == 0 {
                self.state(code, &mut old);
            }
            number += 1;
            true
        });
        recoding.translate_all(&mut old);
        let plan = Plan::new(&cuts(&old, slots), slots);
        drop(old);
        budget.release(cost);
        let mut new = Tables::new(plan, budget);
        if !budget.request(Past::cost(len)) {
            new.release(budget);
            return None;
        }
        let (mut pairs, mut base) = (Vec::with_capacity(len as usize), 0);
        let (mut state, mut translated, mut numbers) = (States::new(recoding.from), Vec::new(), Vec::new());
        let entered = self.each(|code| {
            state.clear();
            self.state(code, &mut state);
            recoding.translate(state.get(0), &mut translated);
            if !new.have_room(1) && !new.make_room(1, pairs.len() as u64, budget) {
                return false;
            }
            let Some(roots) = &new.roots else { return false };
            let new_code = new.intern(&mut numbers, &translated);
            let id = self.past.id(code);
            base = base.max(id + 1);
            pairs.push((id, new_code));
            roots.insert(new_code) == Added::New
        });
        if !entered {
            new.release(budget);
            budget.release(Past::cost(len));
            return None;
        }
        new.past = Past::new(pairs, base);
        Some(new)
    }

    /// Calls `visit` with the code of every state; nobody else uses the tables.
    fn each(&self, visit: impl FnMut(u64) -> bool) -> bool {
        self.roots.as_ref().is_none_or(|roots| roots.each(visit))
    }
}

impl Store for Compact<'_> {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], _hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let Some(tables) = self.set_aside(1) else { return self.insert_at_last(state) };
        assert_eq!(state.len(), tables.plan.slots(), "a state of a fixed-width system has its width");
        let code = tables.intern(&mut scratch.get::<Working>().numbers, state);
        let added = tables.roots.as_ref().map_or(Added::Full, |roots| roots.insert(code));
        self.pending.fetch_sub(1, Ordering::AcqRel);
        self.answer(&tables, code, added)
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let mut walked = false;
        for start in (0..batch.len()).step_by(GROUP) {
            let count = GROUP.min(batch.len() - start);
            let Some(tables) = self.set_aside(count as u64) else {
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
                    let code = tables.past.code(block.id(source).get());
                    tables.walk(code, BLOCK, &mut working.parents[source..]);
                }
            }
            working.numbers.resize(tables.plan.positions() * GROUP, 0);
            let new = tables.insert_detected(working, block, batch, (start, count), out);
            self.len.fetch_add(new, Ordering::AcqRel);
            self.pending.fetch_sub(count as u64, Ordering::AcqRel);
            if out.last() == Some(&Insert::Full) {
                return;
            }
        }
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], _hash: u64) -> Option<StateId> {
        let tables = self.shared();
        let code = tables.find_code(state)?;
        tables.roots.as_ref()?.contains(code).then(|| tables.id(code))
    }

    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn bytes(&self) -> Bytes {
        let tables = self.shared();
        let mut bytes = tables.roots.as_ref().map_or(Bytes::new(), Roots::bytes);
        let (mut halves, mut inner) = (0, 0);
        for (position, table) in tables.halves.iter().enumerate() {
            if position == tables.plan.left || position == tables.plan.right {
                halves += table.bytes();
            } else {
                inner += table.bytes();
            }
        }
        bytes.add("halves", halves);
        if inner > 0 {
            bytes.add("inner", inner);
        }
        if tables.past.bytes() > 0 {
            bytes.add("old ids", tables.past.bytes());
        }
        bytes
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(Working { parents: Vec::new(), numbers: Vec::new(), differing: Vec::new() })
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn path(&self, scratch: &mut Scratch, id: StateId) -> Option<Trace> {
        let mut state = States::new(self.system.width());
        Recall::recall(self, scratch, &[id], &mut state);
        let plan = self.shared().plan.clone();
        let twin = Compact::with_plan(self.system, plan, Arc::clone(&self.budget));
        retrace(self.system, &twin, &self.budget, state.get(0))
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut tables = self.alone();
        match tables.recoded(recoding, self.len(), &self.budget) {
            Some(new) => {
                let mut old = std::mem::replace(&mut *tables, new);
                old.release(&self.budget);
                true
            }
            None => false,
        }
    }
}

impl Recall for Compact<'_> {
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let tables = self.shared();
        let numbers = &mut scratch.get::<Working>().numbers;
        tables.recall_detected(ids.iter().map(|id| tables.past.code(id.get())), numbers, out);
    }

    fn sequential(&self) -> bool {
        false
    }

    fn retraces(&self) -> bool {
        true
    }
}

impl Drop for Compact<'_> {
    fn drop(&mut self) {
        let tables = self.gate.get_mut().unwrap_or_else(PoisonError::into_inner);
        tables.release(&self.budget);
    }
}
