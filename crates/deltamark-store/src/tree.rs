//! # The idea
//! A state is cut into parts, these again, down to single slots; every part is kept once, as the
//! tuple of the numbers of its own parts. States that differ little share nearly everything: a
//! step that changes one slot adds one node a level, and most of these were there before.
//!
//! From Laarman, van de Pol and Weber, *Parallel Recursive State Compression for Free* (2011),
//! which is binary and incremental, and from Štill, *State space compression for the DIVINE model
//! checker* (2013), which has any arity, states of any length and cuts where the model says. What is done differently: tables grow by
//! themselves; nodes are shared by all positions and all lengths; roots are numbered in the
//! order found, so that a search needs no queue; a successor's tree is made from that of its
//! source, whose numbers are remembered from when it was recalled.
//!
//! # Layout in memory
//! ```text
//! state    [ 7 | 0 | 3 | 9 ]
//!             \ /     \ /
//! nodes     #12[7|0] #5[3|9]        one table for all (`dense.rs`), K words each
//!                 \   /
//! roots       #40[12|5]             position = StateId; K words, and one for the shape
//!                                   where states vary in length
//! ```
//! Which child is a slot and which a node follows from the shape (`shape.rs`), so a node may mean
//! different things in different places. A state of up to K slots is all root. Shapes of states
//! of one length are cut where the components of the first state begin; where lengths vary every
//! list of components has a shape, up to a number, beyond which the length alone decides.
//!
//! # Growth
//! Nodes and roots never move; their indexes are entered again from them, by all threads that come
//! to the gate meanwhile (`help.rs`).
//!
//! # Invariants
//! * I1: the shape says what a root's words mean, and equal states have equal shapes, so equal
//!   roots mean equal states and the other way round.
//! * I2: whoever inserts holds the gate shared, and both tables have room for what it may
//!   insert; growing and recoding hold the gate alone.
//! * I3: a number that is in a node or root was interned before.
//!
//! # When to choose it
//! When states are wide or vary in length. 4·K bytes for a root and 4.7 to 7.1 for its entry of
//! the index, whatever the width, and the same again for each node that is not shared.

use crate::apart::Apart;
use crate::bucket::Lanes;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::bucket::x86;
use crate::dense::{Dense, key_hash};
use crate::fields::SideFields;
use crate::help::Help;
use crate::index::BASELINE;
use crate::shape::{Child, Shape};
use deltamark_core::{
    Arrival, Batch, Block, Budget, Bytes, Fields, Guarantee, Insert, Recall, Recoding, Scratch, Slot, StateId, States,
    Store, System, Width,
};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Recursive sharing: nodes of `K` children, roots of `R` words.
struct Tree<'a, const K: usize, const R: usize> {
    system: &'a dyn System,
    budget: Arc<Budget>,
    /// Roots and nodes that room was set aside for and that are not finished (I2).
    pending: Apart<[AtomicU64; 2]>,
    /// In a box, so that threads that pass the gate do not take from each other what they read.
    gate: Apart<RwLock<Box<Tables<K, R>>>>,
    help: Help,
    fields: SideFields,
}

/// What changes only while the gate is held alone, but for shapes.
struct Tables<const K: usize, const R: usize> {
    /// Nothing, if the budget did not even allow the first bytes.
    both: Option<(Dense<R>, Dense<K>)>,
    shapes: Mutex<Shapes<K>>,
    /// How many layouts there were before.
    layout: u64,
}

/// The shapes that there are, by their numbers.
struct Shapes<const K: usize> {
    list: Vec<Arc<Shape<K>>>,
    /// By length and boundaries.
    numbers: HashMap<(usize, Vec<usize>), u32>,
    granted: u64,
}

/// Successors that are looked up together.
const GROUP: usize = 64;
/// Shapes that are told apart by their components; beyond that by their length only.
const SHAPES: usize = 1 << 12;
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

/// Working memory of a thread.
struct Working<const K: usize> {
    /// The layout that what follows is about.
    layout: u64,
    /// The shapes this thread has met.
    shapes: Vec<Arc<Shape<K>>>,
    boundaries: Vec<usize>,
    /// The states that were recalled last, and the numbers of their nodes, a row each.
    recalled: Vec<u64>,
    rows: Rows,
    /// The numbers of the nodes of a block's states, and of a group of their successors.
    sources: Rows,
    targets: Rows,
    /// For each successor of a group the number of its shape.
    target_shapes: Vec<u32>,
    /// Nodes that are to be looked up, by height: which successor, which node.
    changed: Vec<Vec<(u8, u32)>>,
    /// A bit for each node of a successor that is among them.
    marks: Vec<u64>,
}

/// Numbers of nodes, a row a state.
#[derive(Default)]
struct Rows {
    stride: usize,
    numbers: Vec<u32>,
}

impl Rows {
    fn reset(&mut self, rows: usize, stride: usize) {
        self.stride = stride;
        self.numbers.resize(rows * stride, 0);
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &[u32] {
        &self.numbers[row * self.stride..(row + 1) * self.stride]
    }

    #[inline(always)]
    fn row_mut(&mut self, row: usize) -> &mut [u32] {
        &mut self.numbers[row * self.stride..(row + 1) * self.stride]
    }
}

impl<const K: usize> Working<K> {
    fn new() -> Self {
        Working {
            layout: 0,
            shapes: Vec::new(),
            boundaries: Vec::new(),
            recalled: Vec::new(),
            rows: Rows::default(),
            sources: Rows::default(),
            targets: Rows::default(),
            target_shapes: Vec::new(),
            changed: Vec::new(),
            marks: Vec::new(),
        }
    }
}

/// The words of a node of a state.
#[inline(always)]
fn key<const K: usize>(children: &[Child; K], state: &[Slot], row: &[u32]) -> [u32; K] {
    children.map(|child| match child {
        Child::Slot(slot) => state[slot as usize],
        Child::Node(node) => row[node as usize],
        Child::None => 0,
    })
}

/// The words of a root: the number of its shape, where there is room for it, and its children.
#[inline(always)]
fn root_key<const K: usize, const R: usize>(shape: u32, children: [u32; K]) -> [u32; R] {
    let mut key = [shape; R];
    key[R - K..].copy_from_slice(&children);
    key
}

impl<'a, const K: usize, const R: usize> Tree<'a, K, R> {
    fn new(system: &'a dyn System, budget: Arc<Budget>) -> Self {
        let tables = Tables::new(system, system.width(), &budget);
        let (gate, fields) = (Apart(RwLock::new(Box::new(tables))), SideFields::new(&budget));
        Tree { system, budget, pending: Default::default(), gate, help: Help::default(), fields }
    }

    /// The tables, for all who do not change them. Who comes while they grow helps.
    fn shared(&self) -> RwLockReadGuard<'_, Box<Tables<K, R>>> {
        self.help.pass();
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Box<Tables<K, R>>> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets room aside for so many roots and nodes and hands out the tables, growing them first
    /// if need be (I2). Nothing, if the budget is spent.
    fn set_aside(&self, counts: [u64; 2]) -> Option<RwLockReadGuard<'_, Box<Tables<K, R>>>> {
        loop {
            let tables = self.shared();
            let (roots, nodes) = tables.both.as_ref()?;
            let more = [0, 1].map(|of| self.pending[of].fetch_add(counts[of], Ordering::AcqRel) + counts[of]);
            if roots.has_room(more[0]) && nodes.has_room(more[1]) {
                return Some(tables);
            }
            self.give_back(counts);
            drop(tables);
            let Some(_busy) = self.help.begin() else { continue };
            // Nobody is inserting while the gate is held alone, so nothing is pending.
            if !self.alone().make_room(counts, &self.budget, &self.help) {
                return None;
            }
        }
    }

    /// Says that what room was set aside for is finished.
    fn give_back(&self, counts: [u64; 2]) {
        for (pending, count) in self.pending.iter().zip(counts) {
            pending.fetch_sub(count, Ordering::AcqRel);
        }
    }

    /// Inserts a state for which no room could be set aside: it may be there, or its nodes.
    #[cold]
    fn insert_at_last(&self, state: &[Slot], shape: u32, of: &Shape<K>) -> Insert {
        let tables = self.shared();
        let Some((roots, _)) = &tables.both else { return Insert::Full };
        let Some(key) = tables.find_key(state, shape, of) else { return Insert::Full };
        if let Some(number) = roots.find(BASELINE, key) {
            return Insert::Seen(StateId::new(number.into()));
        }
        let more = self.pending[0].fetch_add(1, Ordering::AcqRel) + 1;
        let answer = if roots.has_room(more) { told(roots.intern(BASELINE, key, key_hash(key))) } else { Insert::Full };
        self.give_back([1, 0]);
        answer
    }
}

fn told((number, new): (u32, bool)) -> Insert {
    let id = StateId::new(number.into());
    if new { Insert::New(id) } else { Insert::Seen(id) }
}

impl<const K: usize, const R: usize> Tables<K, R> {
    fn new(system: &dyn System, width: Width, budget: &Arc<Budget>) -> Self {
        let shapes = Mutex::new(Shapes { list: Vec::new(), numbers: HashMap::new(), granted: 0 });
        let mut tables = Tables { both: None, shapes, layout: 0 };
        if let Some(roots) = Dense::new(budget) {
            match Dense::new(budget) {
                Some(nodes) => tables.both = Some((roots, nodes)),
                None => budget.release(roots.bytes()),
            }
        }
        if let Width::Fixed(slots) = width {
            let shapes = tables.shapes.get_mut().unwrap_or_else(PoisonError::into_inner);
            if shapes.add(slots, first_boundaries(system, width), budget).is_none() {
                tables.release(budget);
            }
        }
        tables
    }

    /// Gives everything back.
    fn release(&mut self, budget: &Budget) {
        if let Some((roots, nodes)) = self.both.take() {
            budget.release(roots.bytes() + nodes.bytes());
        }
        let shapes = self.shapes.get_mut().unwrap_or_else(PoisonError::into_inner);
        budget.release(shapes.granted);
        shapes.granted = 0;
    }

    fn len(&self) -> u64 {
        self.both.as_ref().map_or(0, |(roots, _)| roots.len())
    }

    /// Makes room for so many roots and nodes; nobody else uses the tables but to `help`. Says
    /// whether there was memory.
    fn make_room(&mut self, [more_roots, more_nodes]: [u64; 2], budget: &Budget, help: &Help) -> bool {
        let Some((roots, nodes)) = &mut self.both else { return false };
        (roots.has_room(more_roots) || roots.make_room(more_roots, budget, help))
            && (nodes.has_room(more_nodes) || nodes.make_room(more_nodes, budget, help))
    }

    /// Makes a thread forget what it knows of a layout before.
    #[inline(always)]
    fn refresh(&self, working: &mut Working<K>) {
        if working.layout != self.layout {
            *working = Working { layout: self.layout, ..Working::new() };
        }
    }

    /// The shape of this number, by way of those the thread knows.
    #[inline(always)]
    fn shape<'w>(&self, known: &'w mut Vec<Arc<Shape<K>>>, number: u32) -> &'w Arc<Shape<K>> {
        if number as usize >= known.len() {
            self.learn(known);
        }
        &known[number as usize]
    }

    #[cold]
    fn learn(&self, known: &mut Vec<Arc<Shape<K>>>) {
        known.clone_from(&self.shapes.lock().unwrap_or_else(PoisonError::into_inner).list);
    }

    /// The number of a state's shape; nothing, if there is no memory for a new one.
    #[inline(always)]
    fn shape_of(
        &self,
        system: &dyn System,
        budget: &Budget,
        boundaries: &mut Vec<usize>,
        state: &[Slot],
    ) -> Option<u32> {
        if R == K {
            return Some(0);
        }
        boundaries.clear();
        if let Some(components) = system.components() {
            components.boundaries(state, boundaries);
        }
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        shapes.number(state.len(), boundaries, budget)
    }

    /// The shape of a state whose shape may be new, without making one.
    fn known_shape(&self, system: &dyn System, state: &[Slot]) -> Option<(u32, Arc<Shape<K>>)> {
        let shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let number = if R == K {
            0
        } else {
            let mut boundaries = Vec::new();
            if let Some(components) = system.components() {
                components.boundaries(state, &mut boundaries);
            }
            shapes.find(state.len(), boundaries)?
        };
        Some((number, Arc::clone(shapes.list.get(number as usize)?)))
    }

    /// The root of a state all of whose nodes are there.
    fn find_key(&self, state: &[Slot], number: u32, shape: &Shape<K>) -> Option<[u32; R]> {
        let (_, nodes) = self.both.as_ref()?;
        let mut row = Vec::with_capacity(shape.inner());
        for children in &shape.nodes {
            row.push(nodes.find(BASELINE, key(children, state, &row))?);
        }
        Some(root_key(number, key(&shape.root, state, &row)))
    }

    /// The number of a state, and whether it is new. Room has been set aside (I2).
    fn intern(&self, state: &[Slot], number: u32, shape: &Shape<K>, row: &mut Vec<u32>) -> Option<(u32, bool)> {
        let (roots, nodes) = self.both.as_ref()?;
        row.clear();
        for children in &shape.nodes {
            let key = key(children, state, row);
            row.push(nodes.intern(BASELINE, key, key_hash(key)).0);
        }
        let key = root_key(number, key(&shape.root, state, row));
        Some(roots.intern(BASELINE, key, key_hash(key)))
    }

    /// The shape of the root of a state.
    #[inline(always)]
    fn root_shape(&self, number: u64) -> u32 {
        match &self.both {
            Some((roots, _)) if R > K => roots.get(number as u32)[0],
            _ => 0,
        }
    }

    /// Writes the slots of a state and the numbers of its nodes (I3).
    #[inline(always)]
    fn walk(&self, number: u64, shape: &Shape<K>, row: &mut [u32], state: &mut [Slot]) {
        let Some((roots, nodes)) = &self.both else { return };
        assert!(number < roots.len(), "#{number} is not one of {} states", roots.len());
        let mut put = |children: &[Child; K], words: &[u32], row: &mut [u32]| {
            for (child, &word) in children.iter().zip(words) {
                match *child {
                    Child::Slot(slot) => state[slot as usize] = word,
                    Child::Node(node) => row[node as usize] = word,
                    Child::None => {}
                }
            }
        };
        put(&shape.root, &roots.get(number as u32)[R - K..], row);
        for node in (0..shape.inner()).rev() {
            put(&shape.nodes[node], &nodes.get(row[node]), row);
        }
    }

    /// Appends states, and remembers the numbers of their nodes.
    fn recall(&self, working: &mut Working<K>, ids: impl ExactSizeIterator<Item = u64>, out: &mut States) {
        self.refresh(working);
        let Working { shapes, recalled, rows, .. } = working;
        recalled.clear();
        let count = ids.len();
        let remember = count <= deltamark_core::BLOCK;
        rows.reset(if remember { count } else { 1 }, rows.stride);
        for (index, number) in ids.enumerate() {
            let shape = self.shape(shapes, self.root_shape(number));
            if shape.inner() > rows.stride {
                // Wider rows: what was remembered of this call is forgotten.
                rows.reset(if remember { count } else { 1 }, shape.inner());
                recalled.iter_mut().for_each(|known| *known = u64::MAX);
            }
            let state = out.push_with(shape.slots);
            self.walk(number, shape, rows.row_mut(if remember { index } else { 0 }), state);
            if remember {
                recalled.push(number);
            }
        }
    }

    /// The first rounds for a group of successors: which nodes are to be looked up. Says how
    /// many there are; nothing, if there is no memory for a shape.
    fn compare(
        &self,
        system: &dyn System,
        budget: &Budget,
        working: &mut Working<K>,
        block: &Block,
        batch: &Batch,
        group: Range<usize>,
    ) -> Option<u64> {
        let Working { shapes, boundaries, sources, targets, target_shapes, changed, marks, .. } = working;
        target_shapes.clear();
        let (mut stride, mut height) = (0, 0);
        for index in group.clone() {
            let number = self.shape_of(system, budget, boundaries, batch.target(index))?;
            let shape = self.shape(shapes, number);
            stride = stride.max(shape.inner());
            height = height.max(shape.height());
            target_shapes.push(number);
        }
        targets.reset(group.len(), stride);
        if changed.len() < height {
            changed.resize(height, Vec::new());
        }
        changed.iter_mut().for_each(Vec::clear);
        let words = stride.div_ceil(64);
        let mut count = 0;
        for (at, index) in group.enumerate() {
            let shape = &shapes[target_shapes[at] as usize];
            let inner = shape.inner();
            if inner == 0 {
                continue;
            }
            let source = batch.source(index);
            let (from, to) = (block.state(source), batch.target(index));
            marks.clear();
            marks.resize(words, 0);
            let mut mark = |node: usize, height: usize| {
                let bit = 1 << (node % 64);
                let new = marks[node / 64] & bit == 0;
                marks[node / 64] |= bit;
                if new {
                    changed[height].push((at as u8, node as u32));
                    count += 1;
                }
                new
            };
            if self.root_shape(block.id(source).get()) == target_shapes[at] {
                targets.row_mut(at)[..inner].copy_from_slice(&sources.row(source)[..inner]);
                for slot in 0..shape.slots {
                    if from[slot] != to[slot] {
                        shape.climb(slot, &mut mark);
                    }
                }
            } else {
                (0..shape.slots).for_each(|slot| shape.climb(slot, &mut mark));
            }
        }
        Some(count)
    }

    /// The last rounds: looks up the nodes that changed, lowest first, and enters the roots. Room
    /// has been set aside (I2).
    #[inline(always)]
    fn enter<L: Lanes>(
        &self,
        lanes: L,
        working: &mut Working<K>,
        batch: &Batch,
        group: Range<usize>,
        out: &mut Vec<Insert>,
    ) {
        let Some((roots, nodes)) = &self.both else { return };
        let Working { shapes, targets, target_shapes, changed, .. } = working;
        let (mut keys, mut hashes) = ([[0; K]; GROUP], [0; GROUP]);
        for changed in changed.iter() {
            for part in changed.chunks(GROUP) {
                for (&(at, node), (held, hash)) in part.iter().zip(keys.iter_mut().zip(&mut hashes)) {
                    let at = usize::from(at);
                    let shape = &shapes[target_shapes[at] as usize];
                    *held = key(&shape.nodes[node as usize], batch.target(group.start + at), targets.row(at));
                    *hash = key_hash(*held);
                    nodes.prefetch(*hash);
                }
                for (&(at, node), (&held, &hash)) in part.iter().zip(keys.iter().zip(&hashes)) {
                    let (number, _) = nodes.intern(lanes, held, hash);
                    targets.row_mut(at.into())[node as usize] = number;
                }
            }
        }
        let mut keys = [[0; R]; GROUP];
        for (at, index) in group.clone().enumerate().take(GROUP) {
            let shape = &shapes[target_shapes[at] as usize];
            keys[at] = root_key(target_shapes[at], key(&shape.root, batch.target(index), targets.row(at)));
            hashes[at] = key_hash(keys[at]);
            roots.prefetch(hashes[at]);
        }
        let mut answers = [(0, false); GROUP];
        roots.intern_group(lanes, &keys[..group.len().min(GROUP)], &hashes, &mut answers);
        out.extend(answers[..group.len().min(GROUP)].iter().map(|&answer| told(answer)));
    }

    /// [`enter`](Self::enter) with the instructions of AVX-512.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn enter_avx512(
        &self,
        lanes: x86::Avx512,
        working: &mut Working<K>,
        batch: &Batch,
        group: Range<usize>,
        out: &mut Vec<Insert>,
    ) {
        self.enter(lanes, working, batch, group, out);
    }

    fn enter_detected(&self, working: &mut Working<K>, batch: &Batch, group: Range<usize>, out: &mut Vec<Insert>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { self.enter_avx512(avx512, working, batch, group, out) };
        }
        self.enter(BASELINE, working, batch, group, out);
    }

    /// The numbers of the nodes of a block's states, remembered or walked again.
    fn sources(&self, working: &mut Working<K>, block: &Block) {
        self.refresh(working);
        let Working { shapes, recalled, rows, sources, .. } = working;
        let mut stride = 0;
        for index in 0..block.len() {
            stride = stride.max(self.shape(shapes, self.root_shape(block.id(index).get())).inner());
        }
        sources.reset(block.len(), stride);
        let mut state = Vec::new();
        for index in 0..block.len() {
            let number = block.id(index).get();
            let shape = self.shape(shapes, self.root_shape(number));
            let inner = shape.inner();
            if inner == 0 {
                continue;
            }
            if recalled.get(index) == Some(&number) {
                sources.row_mut(index)[..inner].copy_from_slice(&rows.row(index)[..inner]);
            } else {
                state.resize(shape.slots, 0);
                self.walk(number, shape, sources.row_mut(index), &mut state);
            }
        }
    }

    /// The same states in another layout, under the same numbers.
    fn recoded(&self, system: &dyn System, recoding: &Recoding, budget: &Arc<Budget>) -> Option<Self> {
        let mut new = Tables::new(system, recoding.to, budget);
        new.layout = self.layout + 1;
        let (mut known, mut new_known) = (Vec::new(), Vec::new());
        let (mut state, mut translated, mut row) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..self.len() {
            let shape = self.shape(&mut known, self.root_shape(number));
            state.resize(shape.slots, 0);
            row.resize(shape.inner(), 0);
            self.walk(number, shape, &mut row, &mut state);
            recoding.translate(&state, &mut translated);
            let entered = new.enter_one(system, &translated, &mut new_known, budget);
            if entered != Some(number) {
                new.release(budget);
                return None;
            }
        }
        Some(new)
    }

    /// Adds a state that is not there; nobody else uses the tables. Gives its number, if there
    /// was memory.
    fn enter_one(
        &mut self,
        system: &dyn System,
        state: &[Slot],
        known: &mut Vec<Arc<Shape<K>>>,
        budget: &Budget,
    ) -> Option<u64> {
        self.both.as_ref()?;
        let number = self.shape_of(system, budget, &mut Vec::new(), state)?;
        let shape = Arc::clone(self.shape(known, number));
        if !self.make_room([1, shape.inner() as u64], budget, &Help::default()) {
            return None;
        }
        self.intern(state, number, &shape, &mut Vec::new()).map(|(number, _)| number.into())
    }
}

/// Where components of an initial state begin.
fn first_boundaries(system: &dyn System, width: Width) -> Vec<usize> {
    let mut boundaries = Vec::new();
    let mut batch = Batch::new(width);
    if let Some(components) = system.components()
        && system.initial(&mut system.scratch(), &mut batch).is_ok()
    {
        components.boundaries(batch.target(0), &mut boundaries);
    }
    boundaries
}

impl<const K: usize> Shapes<K> {
    /// What tells a shape from others: those beyond the first have no boundaries.
    fn name(&self, slots: usize, boundaries: Vec<usize>) -> (usize, Vec<usize>) {
        if self.list.len() < SHAPES || self.numbers.contains_key(&(slots, boundaries.clone())) {
            (slots, boundaries)
        } else {
            (slots, Vec::new())
        }
    }

    fn find(&self, slots: usize, boundaries: Vec<usize>) -> Option<u32> {
        self.numbers.get(&self.name(slots, boundaries)).copied()
    }

    /// The number of a shape, which is made if there is none. Nothing, if there is no memory.
    fn number(&mut self, slots: usize, boundaries: &[usize], budget: &Budget) -> Option<u32> {
        let (slots, boundaries) = self.name(slots, boundaries.to_vec());
        match self.numbers.get(&(slots, boundaries.clone())) {
            Some(&number) => Some(number),
            None => self.add(slots, boundaries, budget),
        }
    }

    fn add(&mut self, slots: usize, boundaries: Vec<usize>, budget: &Budget) -> Option<u32> {
        let bytes = Shape::<K>::bytes(slots) + (boundaries.len() * size_of::<usize>()) as u64;
        if !budget.request(bytes) {
            return None;
        }
        self.granted += bytes;
        let number = self.list.len() as u32;
        self.list.push(Arc::new(Shape::new(slots, &boundaries)));
        self.numbers.insert((slots, boundaries), number);
        Some(number)
    }
}

impl<const K: usize, const R: usize> Store for Tree<'_, K, R> {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], _hash: u64, _arrival: &Arrival<'_>) -> Insert {
        let working = scratch.get::<Working<K>>();
        self.shared().refresh(working);
        let Working { shapes, boundaries, targets, .. } = working;
        let (number, shape) = {
            let tables = self.shared();
            let Some(number) = tables.shape_of(self.system, &self.budget, boundaries, state) else {
                return Insert::Full;
            };
            if tables.both.is_none() {
                return Insert::Full;
            }
            (number, Arc::clone(tables.shape(shapes, number)))
        };
        assert_eq!(state.len(), shape.slots, "a state of a fixed-width system has its width");
        let counts = [1, shape.inner() as u64];
        let Some(tables) = self.set_aside(counts) else { return self.insert_at_last(state, number, &shape) };
        let interned = tables.intern(state, number, &shape, &mut targets.numbers);
        self.give_back(counts);
        interned.map_or(Insert::Full, told)
    }

    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        let working = scratch.get::<Working<K>>();
        if batch.is_empty() {
            return;
        }
        self.shared().sources(working, block);
        for start in (0..batch.len()).step_by(GROUP) {
            let working = scratch.get::<Working<K>>();
            let group = start..batch.len().min(start + GROUP);
            let compared = self.shared().compare(self.system, &self.budget, working, block, batch, group.clone());
            let counts = compared.map(|nodes| [group.len() as u64, nodes]);
            match counts.and_then(|counts| self.set_aside(counts)) {
                Some(tables) => {
                    tables.enter_detected(working, batch, group, out);
                    self.give_back(counts.unwrap_or_default());
                }
                None => {
                    // Not all of them would fit, but most may be there already.
                    for index in start..batch.len() {
                        let arrival = batch.arrival(block, index);
                        out.push(self.insert(scratch, batch.target(index), batch.hash(index), &arrival));
                        if out.last() == Some(&Insert::Full) {
                            return;
                        }
                    }
                    return;
                }
            }
        }
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], _hash: u64) -> Option<StateId> {
        let tables = self.shared();
        let (number, shape) = tables.known_shape(self.system, state)?;
        let key = tables.find_key(state, number, &shape)?;
        let (roots, _) = tables.both.as_ref()?;
        roots.find(BASELINE, key).map(|number| StateId::new(number.into()))
    }

    fn len(&self) -> u64 {
        self.shared().len()
    }

    fn bytes(&self) -> Bytes {
        let tables = self.shared();
        let mut bytes = Bytes::new();
        if let Some((roots, nodes)) = &tables.both {
            bytes.add("roots", roots.bytes());
            bytes.add("nodes", nodes.bytes());
        }
        let shapes = tables.shapes.lock().unwrap_or_else(PoisonError::into_inner).granted;
        bytes.add("shapes", shapes);
        let fields = self.fields.bytes();
        if fields > 0 {
            bytes.add("fields", fields);
        }
        bytes
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn scratch(&self) -> Scratch {
        self.help.enrol();
        Scratch::new(Working::<K>::new())
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn fields(&self) -> Option<&dyn Fields> {
        Some(&self.fields)
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut tables = self.alone();
        match tables.recoded(self.system, recoding, &self.budget) {
            Some(new) => {
                std::mem::replace(&mut **tables, new).release(&self.budget);
                true
            }
            None => false,
        }
    }
}

impl<const K: usize, const R: usize> Recall for Tree<'_, K, R> {
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        self.shared().recall(scratch.get(), ids.iter().map(|id| id.get()), out);
    }

    fn recall_range(&self, scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        let ids: Vec<u64> = ids.collect();
        self.shared().recall(scratch.get(), ids.into_iter(), out);
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl<const K: usize, const R: usize> Drop for Tree<'_, K, R> {
    fn drop(&mut self) {
        self.gate.get_mut().unwrap_or_else(PoisonError::into_inner).release(&self.budget);
    }
}
