//! # The idea
//! A state is cut into parts, these again, down to single slots; every part is stored once, as the
//! tuple of the indices of its own parts. Similar states share nearly everything: a step that
//! changes one slot adds one node per tree level, and most of these exist already.
//!
//! From Laarman, van de Pol and Weber, *Parallel Recursive State Compression for Free* (2011),
//! which is binary and incremental, and from Štill, *State space compression for the DIVINE model
//! checker* (2013), with any arity, states of any length and cuts chosen by the model. Differences:
//! tables grow; nodes are shared by all positions and all lengths; roots are numbered in the order
//! of discovery, so a search needs no queue; a successor's tree is built incrementally from that of
//! its source, whose node numbers are cached when it is recalled.
//!
//! # Layout in memory
//! ```text
//! state    [ 7 | 0 | 3 | 9 ]
//!             \ /     \ /
//! nodes     #12[7|0] #5[3|9]        one table for all (`dense.rs`), K words each, in just
//!                 \   /              enough bits (`narrow.rs`)
//! roots       #40[12|5]             position = StateId; K words, and one for the shape
//!                                   where states vary in length
//! ```
//! A word takes as many bits as the current number of nodes needs, or the largest slot seen at its
//! position of a root or of a node.
//!
//! The shape (`shape.rs`) determines which child is a slot and which a node, so a node may have
//! different meanings at different positions. A state of up to K slots is a root only. Shapes of
//! states of one length are cut at the component boundaries of the first state; if lengths vary,
//! every list of components has a shape, up to a limit, beyond which the length alone decides.
//!
//! # Growth
//! Indexes are refilled from nodes and roots, by all threads that arrive at the gate meanwhile
//! (`threads/cooperate.rs`). Nodes and roots move only when a word gets longer, and in place: when
//! the number of nodes has doubled, or a slot has a larger value than any before.
//!
//! # Invariants
//! * I1: the shape determines the meaning of a root's words, and equal states have equal shapes, so
//!   roots are equal if and only if states are equal.
//! * I2: an inserting thread holds the gate shared, and both tables have room for its insertions,
//!   and words wide enough; growing and recoding hold the gate exclusively.
//! * I3: a number that occurs in a node or root was interned before.
//!
//! # When to choose it
//! When states are wide or vary in length. A root takes K node numbers, in as many bits as they
//! need, and 4.7 to 7.1 bytes for its index entry, regardless of width; and the same again for each
//! node that is not shared.

mod group;
mod shape;
mod tables;

use crate::tables::dense::key_hash;
use crate::tables::index::BASELINE;
use crate::threads::gate::{Gate, Shared};
use crate::threads::reserve::{Promises, Room};
use crate::tree::shape::TreeShape;
use deltamark_core::{
    Arrival, Attached, Batch, Block, Budget, Bytes, Guarantee, Ids, Image, Insert, Recall, Recoding, Scratch, Slot,
    StateId, States, Store, System, Width,
};
use group::Working;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use tables::{More, TreeTables};

/// Recursive sharing: nodes of `K` children, roots of `R` words.
struct Tree<'a, const K: usize, const R: usize> {
    system: &'a dyn System,
    budget: Arc<Budget>,
    /// Of roots and nodes (I2).
    promises: Promises<2>,
    gate: Gate<TreeTables<K, R>>,
    attached: Attached,
}

/// Successors that are looked up together.
const GROUP: usize = 64;
/// The arities there are, by their names.
pub(crate) const ARITIES: [(&str, u64); 4] = [("2", 2), ("3", 3), ("4", 4), ("8", 8)];

/// A store whose nodes have `arity` children, one of [`ARITIES`].
pub(crate) fn make<'a>(system: &'a dyn System, arity: u64, budget: Arc<Budget>) -> Option<Box<dyn Store + 'a>> {
    let fixed = matches!(system.width(), Width::Fixed(_));
    Some(match (arity, fixed) {
        (2, true) => Box::new(Tree::<2, 2>::new(system, budget)),
        (2, false) => Box::new(Tree::<2, 3>::new(system, budget)),
        (3, true) => Box::new(Tree::<3, 3>::new(system, budget)),
        (3, false) => Box::new(Tree::<3, 4>::new(system, budget)),
        (4, true) => Box::new(Tree::<4, 4>::new(system, budget)),
        (4, false) => Box::new(Tree::<4, 5>::new(system, budget)),
        (8, true) => Box::new(Tree::<8, 8>::new(system, budget)),
        (8, false) => Box::new(Tree::<8, 9>::new(system, budget)),
        _ => return None,
    })
}

impl<'a, const K: usize, const R: usize> Tree<'a, K, R> {
    fn new(system: &'a dyn System, budget: Arc<Budget>) -> Self {
        let tables = TreeTables::new(system, system.width(), &budget);
        let (gate, attached) = (Gate::new(tables), Attached::new(Ids::Dense, &budget));
        Tree { system, budget, promises: Promises::default(), gate, attached }
    }

    /// Sees to it that a thread has room set aside for roots and nodes in the tables, growing them first if
    /// need be (I2). `None` if the budget is spent.
    fn set_aside<'t>(
        &'t self,
        mut tables: Shared<'t, TreeTables<K, R>>,
        room: &mut Room<2>,
        more: &More<K>,
    ) -> Option<Shared<'t, TreeTables<K, R>>> {
        loop {
            tables.both.as_ref()?;
            let missing = room.missing(tables.growth, more.counts, || tables.lens());
            if missing == [0; 2] && tables.cover(more) {
                return Some(tables);
            }
            let (promised, lens) = (self.promises.add(missing), tables.lens());
            let counts = [0, 1].map(|of| promised[of].saturating_sub(lens[of]));
            if tables.have_room(&More { counts, ..*more }) {
                room.add(missing);
                return Some(tables);
            }
            self.promises.withdraw(missing);
            drop(tables);
            if let Some((_busy, mut tables)) = self.gate.grow() {
                tables.growth.number += 1;
                let lens = tables.lens();
                self.promises.void(lens);
                let (budget, help) = (&self.budget, &self.gate.help);
                // For all threads, so that they do not come here in turn.
                let threads = help.threads() as u64;
                let all = tables.growth.ahead(more.counts, lens).map(|count| count * threads);
                if tables.growth.tight || !tables.make_room(&More { counts: all, ..*more }, budget, help) {
                    tables.growth.tight = true;
                    if !tables.make_room(more, budget, help) {
                        return None;
                    }
                }
            }
            tables = self.gate.shared();
        }
    }

    /// Inserts a state for which no room could be set aside: it may be there, or its nodes.
    #[cold]
    fn insert_at_last(&self, state: &[Slot], shape: u32, of: &TreeShape<K>) -> Insert {
        let tables = self.gate.shared();
        let Some((roots, _)) = &tables.both else { return Insert::Full };
        let Some(key) = tables.find_key(state, shape, of) else { return Insert::Full };
        if let Some(number) = roots.find(BASELINE, key) {
            return Insert::Seen(StateId::new(number.into()));
        }
        let [promised, _] = self.promises.add([1, 0]);
        let fits = roots.has_room(promised.saturating_sub(roots.len()))
            && roots.keys.covers(key.map(|word| u64::from(word) + 1));
        let answer = if fits { told(roots.intern(BASELINE, key, key_hash(key))) } else { Insert::Full };
        if !matches!(answer, Insert::New(_)) {
            self.promises.withdraw([1, 0]);
        }
        answer
    }
}

fn told((number, new): (u32, bool)) -> Insert {
    let id = StateId::new(number.into());
    if new { Insert::New(id) } else { Insert::Seen(id) }
}

impl<const K: usize, const R: usize> Store for Tree<'_, K, R> {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], _hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let working = scratch.get::<Working<K>>();
        self.gate.shared().refresh(working);
        let Working { shapes, boundaries, targets, room, .. } = working;
        let (number, shape) = {
            let tables = self.gate.shared();
            let Some(number) = tables.shape_of(self.system, &self.budget, boundaries, state) else {
                return Insert::Full;
            };
            if tables.both.is_none() {
                return Insert::Full;
            }
            (number, Arc::clone(tables.shape(shapes, number)))
        };
        assert_eq!(state.len(), shape.slots, "a state of a fixed-width system has its width");
        let more = More::of(state, number, &shape);
        let Some(tables) = self.set_aside(self.gate.shared(), room, &more) else {
            return self.insert_at_last(state, number, &shape);
        };
        let mut new = [0; 2];
        let interned = tables.intern(state, number, &shape, &mut targets.numbers, &mut new);
        room.take(new);
        interned.map_or(Insert::Full, told)
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let working = scratch.get::<Working<K>>();
        if batch.is_empty() {
            return;
        }
        // The gate is passed once a batch, unless the tables grow.
        let mut tables = Some(self.gate.shared()).filter(|tables| tables.both.is_some());
        if let Some(tables) = &tables {
            tables.sources(working, block);
        }
        let (mut next, has_others) = (0, self.gate.help.has_others());
        while next < batch.len()
            && let Some(shared) = tables.take()
        {
            let group = next..batch.len().min(next + GROUP);
            let more = shared.compare(self.system, &self.budget, working, block, batch, group.clone());
            tables = more.and_then(|more| self.set_aside(shared, &mut working.room, &more));
            if let (Some(tables), Some(More { counts, .. })) = (&tables, more) {
                next = group.end;
                let new = tables.enter_detected(working, batch, group, out);
                working.room.take(new);
                // Of several threads each should take a line it will write to at once.
                let many = |of: usize| has_others && new[of] * 4 > counts[of];
                working.expects_new = [many(0), many(1)];
            }
        }
        if tables.is_some() {
            return;
        }
        // Not all of them would fit, but most may be there already.
        for index in next..batch.len() {
            let arrival = batch.arrival(block, index);
            out.push(self.insert(scratch, batch.target(index), batch.hash(index), &arrival));
            if out.last() == Some(&Insert::Full) {
                return;
            }
        }
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], _hash: u64) -> Option<StateId> {
        let tables = self.gate.shared();
        let (number, shape) = tables.known_shape(self.system, state)?;
        let key = tables.find_key(state, number, &shape)?;
        let (roots, _) = tables.both.as_ref()?;
        roots.find(BASELINE, key).map(|number| StateId::new(number.into()))
    }

    fn len(&self) -> u64 {
        self.gate.shared().len()
    }

    fn bytes(&self) -> Bytes {
        let tables = self.gate.shared();
        let mut bytes = Bytes::new();
        if let Some((roots, nodes)) = &tables.both {
            bytes.add("roots", roots.bytes());
            bytes.add("nodes", nodes.bytes());
        }
        let shapes = tables.shapes.lock().unwrap_or_else(PoisonError::into_inner).granted;
        bytes.add("shapes", shapes);
        self.attached.counted(bytes)
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn scratch(&self) -> Scratch {
        self.gate.help.enrol();
        Scratch::new(Working::<K>::new())
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn attached(&self) -> Option<&Attached> {
        Some(&self.attached)
    }

    fn image(&self) -> Image<'_> {
        Image::Numbered
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut tables = self.gate.alone();
        match tables.recoded(self.system, recoding, &self.budget) {
            Some(new) => {
                // Room that was set aside is void.
                self.promises.void(new.lens());
                std::mem::replace(&mut *tables, new).release(&self.budget);
                true
            }
            None => false,
        }
    }
}

impl<const K: usize, const R: usize> Recall for Tree<'_, K, R> {
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        self.gate.shared().recall(scratch.get(), ids.iter().map(|id| id.get()), out);
    }

    fn recall_range(&self, scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        let ids: Vec<u64> = ids.collect();
        self.gate.shared().recall(scratch.get(), ids.into_iter(), out);
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl<const K: usize, const R: usize> Drop for Tree<'_, K, R> {
    fn drop(&mut self) {
        self.gate.get_mut().release(&self.budget);
    }
}
