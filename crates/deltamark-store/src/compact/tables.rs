//! The tables of `compact`: leaves, inner nodes and roots, and how they grow.
//!
//! In: states, and codes of states. Out: each from the other. Invariants: children precede parents,
//! so a pass over all positions visits every number after its constituents; those of
//! [`compact`](super).

use super::past::Past;
use crate::compact::cuts::{bytes_of_relations, cuts};
use crate::compact::plan::Plan;
use crate::compact::roots::Roots;
use crate::tables::dense::{Dense, key_hash, pair, word};
use crate::tables::index::BASELINE;
use crate::tables::narrow::Nodes;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::pair_code::Bmi2;
use crate::tables::pair_code::{Pick, Portable, Reach, decode, encode, fits};
use crate::tables::tiles::Added;
use crate::threads::cooperate::Help;
use crate::threads::reserve::Growth;
use deltamark_core::{Budget, Bytes, Recoding, Slot, StateId, States, Width};
use std::sync::Arc;

/// States of its own that a new tree is made by.
const OWN_SAMPLE: u64 = 4096;

/// What changes only while the gate is held alone.
pub(crate) struct CompactTables {
    pub plan: Plan,
    /// One for each leaf, and one for each position behind those; none, if the budget did not
    /// even allow the first.
    pub leaves: Vec<Dense<2>>,
    pub nodes: Vec<Nodes>,
    pub roots: Option<Roots>,
    pub past: Past,
    pub growth: Growth,
}

impl CompactTables {
    pub fn new(plan: Plan, budget: &Arc<Budget>) -> Self {
        let (leaves, nodes, roots) = (Vec::new(), Vec::new(), Roots::new(budget));
        let mut tables = CompactTables { plan, leaves, nodes, roots, past: Past::default(), growth: Growth::default() };
        for position in 0..tables.plan.positions() {
            let added = if position < tables.plan.leaves() {
                Dense::new(budget).map(|table| tables.leaves.push(table))
            } else {
                Nodes::new(budget).map(|table| tables.nodes.push(table))
            };
            if added.is_none() || budget.is_over_at(position as u64) {
                // A budget too small even for this leaves no room at all, and nor does a run that is over: states of
                // very many slots have very many tables.
                tables.release(budget);
                break;
            }
        }
        tables
    }

    /// Gives everything back.
    pub fn release(&mut self, budget: &Arc<Budget>) {
        let leaves: u64 = self.leaves.drain(..).map(|table| table.bytes()).sum();
        let nodes: u64 = self.nodes.drain(..).map(|table| table.bytes()).sum();
        budget.release(leaves + nodes);
        self.roots = None;
        self.past.release(budget);
    }

    /// The bytes of everything, by part.
    pub fn bytes(&self) -> Bytes {
        let mut bytes = self.roots.as_ref().map_or(Bytes::new(), Roots::bytes);
        let (mut halves, mut inner) = (0, 0);
        let tables = self.leaves.iter().map(Dense::bytes).chain(self.nodes.iter().map(Nodes::bytes));
        for (position, table) in tables.enumerate() {
            if position == self.plan.left || position == self.plan.right {
                halves += table;
            } else {
                inner += table;
            }
        }
        bytes.add("halves", halves);
        if inner > 0 {
            bytes.add("inner", inner);
        }
        if self.past.bytes() > 0 {
            bytes.add("old ids", self.past.bytes());
        }
        bytes
    }

    /// How many numbers a position has.
    #[inline]
    fn count(&self, position: usize) -> u64 {
        match position.checked_sub(self.leaves.len()) {
            None => self.leaves[position].len(),
            Some(node) => self.nodes[node].len(),
        }
    }

    /// How many numbers the two halves have.
    fn sides(&self) -> (u64, u64) {
        (self.count(self.plan.left), self.count(self.plan.right))
    }

    /// How many numbers the children of an inner node have.
    #[inline]
    fn below(&self, node: usize) -> (u64, u64) {
        let (left, right) = self.plan.children(self.leaves.len() + node);
        (self.count(left), self.count(right))
    }

    /// How far codes go when `more` states come.
    pub fn reach(&self, more: u64) -> Reach {
        let (left, right) = self.sides();
        Reach::new(self.plan.skew, left + more, right + more)
    }

    /// Whether there is room for `more` states, `len` being there.
    pub fn have_room(&self, more: u64, len: u64) -> bool {
        let Some(roots) = &self.roots else { return false };
        let covered = |(node, table): (usize, &Nodes)| {
            let (lefts, rights) = self.below(node);
            table.has_room(more) && table.keys.covers([lefts + more, rights + more])
        };
        self.leaves.iter().all(|table| table.has_room(more))
            && self.nodes.iter().enumerate().all(covered)
            && roots.has_room(len + more, self.reach(more))
    }

    /// Makes room for `more` states, `len` being there; nobody else uses the tables but to `help`.
    pub fn make_room(&mut self, more: u64, len: u64, budget: &Arc<Budget>, help: &Help) -> bool {
        if self.roots.is_none() {
            return false;
        }
        let (left, right) = self.sides();
        if !fits(self.plan.skew, left + more, right + more) {
            return false;
        }
        for node in 0..self.nodes.len() {
            let (lefts, rights) = self.below(node);
            let table = &mut self.nodes[node];
            let len = table.len();
            let below = [lefts + more, rights + more];
            let wide = table.keys.covers(below) || table.keys.widen(below, len, budget);
            if !wide || !table.has_room(more) && !table.make_room(more, budget, help) {
                return false;
            }
        }
        let reach = self.reach(more);
        let Some(roots) = &mut self.roots else { return false };
        self.leaves.iter_mut().all(|table| table.has_room(more) || table.make_room(more, budget, help))
            && (roots.has_room(len + more, reach) || roots.make_room(len + more, reach, left * right, budget, help))
    }

    /// The code of a state, whose numbers `leaf` and `node` give for a position and a key;
    /// nothing, if one has none.
    #[inline(always)]
    fn code(
        &self,
        numbers: &mut Vec<u32>,
        state: &[Slot],
        leaf: impl Fn(&Dense<2>, [u32; 2]) -> Option<u32>,
        node: impl Fn(&Nodes, [u32; 2]) -> Option<u32>,
    ) -> Option<u64> {
        numbers.clear();
        for (position, table) in self.leaves.iter().enumerate() {
            numbers.push(leaf(table, pair(self.plan.key(Portable, position, state)))?);
        }
        for (position, table) in (self.leaves.len()..).zip(&self.nodes) {
            let (left, right) = self.plan.children(position);
            numbers.push(node(table, [numbers[left], numbers[right]])?);
        }
        Some(encode(self.plan.skew, numbers[self.plan.left], numbers[self.plan.right]))
    }

    /// The code of a state all of whose nodes are there.
    pub fn find_code(&self, state: &[Slot]) -> Option<u64> {
        self.roots.as_ref()?;
        let (leaf, node) =
            (|table: &Dense<2>, key| table.find(BASELINE, key), |table: &Nodes, key| table.find(BASELINE, key));
        self.code(&mut Vec::with_capacity(self.plan.positions()), state, leaf, node)
    }

    /// The code of a state, whose nodes are interned. Room has been set aside (I2).
    pub fn intern(&self, numbers: &mut Vec<u32>, state: &[Slot]) -> Option<u64> {
        let leaf = |table: &Dense<2>, key| Some(table.intern(BASELINE, key, key_hash(key)).0);
        let node = |table: &Nodes, key| Some(table.intern(BASELINE, key, key_hash(key)).0);
        self.code(numbers, state, leaf, node)
    }

    /// Writes the numbers of all nodes of a state to every `stride`-th place of `out`.
    #[inline(always)]
    pub fn walk(&self, code: u64, stride: usize, out: &mut [u32]) {
        let (left, right) = decode(self.plan.skew, code);
        out[self.plan.left * stride] = left;
        out[self.plan.right * stride] = right;
        for (node, table) in self.nodes.iter().enumerate().rev() {
            let position = self.leaves.len() + node;
            let [first, second] = table.get(out[position * stride]);
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
            for (leaf, (table, &number)) in self.leaves.iter().zip(numbers.iter()).enumerate() {
                self.plan.place(pick, leaf, word(table.get(number)), state);
            }
        }
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

    /// Appends the states of these ids.
    pub fn recall_ids(&self, ids: &[StateId], numbers: &mut Vec<u32>, out: &mut States) {
        let mut rest = ids;
        loop {
            // All of them, unless the layout has changed late.
            let known = rest.iter().take_while(|&&id| self.past.code(id).is_some()).count();
            let codes = rest[..known].iter().filter_map(|&id| self.past.code(id));
            self.recall_detected(codes, numbers, out);
            let Some(&old) = rest.get(known) else { return };
            out.push(&self.past.state(old));
            rest = &rest[known + 1..];
        }
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
    pub fn state(&self, code: u64, out: &mut States) {
        self.recall(Portable, std::iter::once(code), &mut Vec::new(), out);
    }

    /// Appends the state of one id, in no hurry.
    pub fn state_of(&self, id: StateId, out: &mut States) {
        match self.past.code(id) {
            Some(code) => self.state(code, out),
            None => out.push(&self.past.state(id)),
        }
    }

    /// The code of a state that is there, by its id.
    #[inline(always)]
    pub fn code_of(&self, id: StateId, state: &[Slot]) -> u64 {
        let code = self.past.code(id).or_else(|| self.find_code(state));
        code.expect("a state that is expanded is there")
    }

    /// Puts a tree of the same states in another layout in its place, and keeps the ids of all, if they are few or the ids
    /// `are_used`. On `false` there was no memory; some roots may be gone then.
    pub fn recode(&mut self, recoding: &Recoding, len: u64, are_used: bool, budget: &Arc<Budget>) -> bool {
        let Some(plan) = self.new_plan(recoding, len, budget) else { return false };
        let keeps_ids = Past::keeps_ids(len) || are_used && self.past.names_all();
        if keeps_ids && !budget.request(Past::cost(len)) {
            return false;
        }
        let mut new = CompactTables::new(plan, budget);
        let (mut pairs, mut entered, mut base) = (Vec::new(), 0, 0);
        let (mut state, mut translated, mut numbers) = (States::new(recoding.from), Vec::new(), Vec::new());
        let mut enter = |old: &CompactTables, code| {
            state.clear();
            old.state(code, &mut state);
            recoding.translate(state.get(0), &mut translated);
            if budget.is_over_at(entered) {
                return false;
            }
            if !new.have_room(1, entered) && !new.make_room(1, entered, budget, &Help::default()) {
                return false;
            }
            let (Some(roots), Some(new_code)) = (&new.roots, new.intern(&mut numbers, &translated)) else {
                return false;
            };
            if keeps_ids {
                let id = old.past.seen_id(code).get();
                base = base.max(id + 1);
                pairs.push((id, new_code));
            }
            entered += 1;
            roots.insert(new_code) == Added::New
        };
        let done = match self.roots.take() {
            // There is a second copy of the roots, so that they are there whatever happens.
            Some(roots) if keeps_ids => {
                let done = roots.each(|code| enter(self, code));
                self.roots = Some(roots);
                done
            }
            Some(mut roots) => {
                let done = roots.drain(|code| enter(self, code));
                self.roots = Some(roots).filter(|_| !done);
                done
            }
            None => true,
        };
        if !done {
            new.release(budget);
            if keeps_ids {
                budget.release(Past::cost(len));
            }
            return false;
        }
        // Room that was set aside is void.
        new.growth.number = self.growth.number + 1;
        if keeps_ids {
            new.past = Past::kept(pairs, base);
            self.release(budget);
            *self = new;
        } else {
            let former = std::mem::replace(self, new);
            self.past = Past::former(former, recoding.clone());
        }
        true
    }

    /// Where states are cut in another layout, by some that are there; nothing, if there is no memory to find out.
    fn new_plan(&self, recoding: &Recoding, len: u64, budget: &Arc<Budget>) -> Option<Plan> {
        let Width::Fixed(slots) = recoding.to else { return None };
        // The states, and what it takes to look at them.
        let cost = 3 * len.min(OWN_SAMPLE) * (slots * size_of::<Slot>()) as u64 + bytes_of_relations(slots);
        if !budget.request(cost) {
            return None;
        }
        let mut old = States::new(recoding.from);
        let every = len.div_ceil(OWN_SAMPLE).max(1);
        let mut number = 0;
        self.roots.as_ref()?.each(|code| {
            if number % every == 0 {
                self.state(code, &mut old);
            }
            number += 1;
            true
        });
        recoding.translate_all(&mut old);
        let plan = Plan::new(&cuts(&old, slots), slots);
        budget.release(cost);
        Some(plan)
    }
}
