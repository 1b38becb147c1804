//! The tables of `tree`: roots, nodes and shapes, and how they grow.
//!
//! In: states, and numbers of states. Out: each from the other. Invariants: those of
//! [`tree`](super); a thread's cache of shapes is cleared when the layout changes.

use super::group::Working;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::dense::{DenseTable, Keys, key_hash};
use crate::tables::index::BASELINE;
use crate::tables::narrow::NarrowKeys;
use crate::threads::cooperate::Help;
use crate::threads::reserve::Growth;
use crate::tree::shape::{Child, TreeShape};
use deltamark_core::{BLOCK, Batch, Budget, Recoding, Slot, States, System, Width};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of roots that are given back together when states are entered into another tree.
const RELEASED: u64 = 1 << 15;
/// Shapes that are distinguished by their components; beyond that by their length only.
const SHAPES: usize = 1 << 12;

/// What changes only while the gate is held alone, but for shapes.
pub(super) struct TreeTables<const K: usize, const R: usize> {
    /// `None` if the budget did not even allow the first bytes.
    pub both: Option<(DenseTable<R, NarrowKeys<R>>, DenseTable<K, NarrowKeys<K>>)>,
    pub shapes: Mutex<Shapes<K>>,
    /// Which children of a root, and of a node, may be nodes.
    above_nodes: [[bool; K]; 2],
    /// How many layouts there were before.
    pub layout: u64,
    pub growth: Growth,
}

/// The shapes that there are, by their numbers.
pub(super) struct Shapes<const K: usize> {
    list: Vec<Arc<TreeShape<K>>>,
    /// By length and boundaries.
    numbers: HashMap<(usize, Vec<usize>), u32>,
    pub granted: u64,
}

/// What is to be added to the tables: how many roots and nodes, and what their words are below.
#[derive(Clone, Copy)]
pub(super) struct More<const K: usize> {
    pub counts: [u64; 2],
    /// For each child of a root, and of a node, all bits of the slots that will be there.
    pub slots: [[Slot; K]; 2],
    /// The number of the last shape among them.
    pub shape: u32,
}

impl<const K: usize> More<K> {
    /// So many roots and nodes, of which nothing else is known.
    pub fn new(counts: [u64; 2]) -> Self {
        More { counts, slots: [[0; K]; 2], shape: 0 }
    }

    /// One state, and all of its nodes.
    pub fn of(state: &[Slot], number: u32, shape: &TreeShape<K>) -> Self {
        let mut more = More { shape: number, ..More::new([1, shape.inner() as u64]) };
        for (slot, &value) in state.iter().enumerate() {
            more.note(shape, slot, value);
        }
        more
    }

    /// Notes what a slot will be.
    #[inline(always)]
    pub fn note(&mut self, shape: &TreeShape<K>, slot: usize, value: Slot) {
        let (in_root, child) = shape.place(slot);
        self.slots[usize::from(!in_root)][child % K] |= value;
    }
}

/// The words of a node of a state.
#[inline(always)]
pub(super) fn key<const K: usize>(children: &[Child; K], state: &[Slot], row: &[u32]) -> [u32; K] {
    children.map(|child| match child {
        Child::Slot(slot) => state[slot as usize],
        Child::Node(node) => row[node as usize],
        Child::None => 0,
    })
}

/// The words of a root: the number of its shape, where there is room for it, and its children.
#[inline(always)]
pub(super) fn root_key<W: Copy, const K: usize, const R: usize>(shape: W, children: [W; K]) -> [W; R] {
    let mut key = [shape; R];
    key[R - K..].copy_from_slice(&children);
    key
}

impl<const K: usize, const R: usize> TreeTables<K, R> {
    pub fn new(system: &dyn System, width: Width, budget: &Arc<Budget>) -> Self {
        let shapes = Mutex::new(Shapes { list: Vec::new(), numbers: HashMap::new(), granted: 0 });
        let mut tables =
            TreeTables { both: None, shapes, above_nodes: [[true; K]; 2], layout: 0, growth: Growth::default() };
        if let Some(roots) = DenseTable::new(budget) {
            match DenseTable::new(budget) {
                Some(nodes) => tables.both = Some((roots, nodes)),
                None => budget.release(roots.bytes()),
            }
        }
        if let Width::Fixed(slots) = width {
            let shapes = tables.shapes.get_mut().unwrap_or_else(PoisonError::into_inner);
            match shapes.add(slots, first_boundaries(system, width), budget) {
                Some(number) => tables.above_nodes = shapes.list[number as usize].above_nodes(),
                None => tables.release(budget),
            }
        }
        tables
    }

    /// Gives everything back.
    pub fn release(&mut self, budget: &Budget) {
        if let Some((roots, nodes)) = self.both.take() {
            budget.release(roots.bytes() + nodes.bytes());
        }
        let shapes = self.shapes.get_mut().unwrap_or_else(PoisonError::into_inner);
        budget.release(shapes.granted);
        shapes.granted = 0;
    }

    pub fn len(&self) -> u64 {
        self.both.as_ref().map_or(0, |(roots, _)| roots.len())
    }

    /// How many roots and nodes there are.
    pub fn lens(&self) -> [u64; 2] {
        self.both.as_ref().map_or([0; 2], |(roots, nodes)| [roots.len(), nodes.len()])
    }

    /// What all words of roots and of nodes are below, when these have come.
    #[inline]
    fn below(&self, more: &More<K>) -> ([u64; R], [u64; K]) {
        let nodes = self.both.as_ref().map_or(0, |(_, nodes)| nodes.len()) + more.counts[1];
        let [root, node] = [0, 1].map(|of| {
            std::array::from_fn(|child| {
                let numbers = if self.above_nodes[of][child] { nodes } else { 0 };
                numbers.max(u64::from(more.slots[of][child]) + 1)
            })
        });
        (root_key(u64::from(more.shape) + 1, root), node)
    }

    /// Whether words are wide enough for slots of these. (For numbers of nodes they are, if room was set aside.)
    #[inline]
    pub fn cover(&self, more: &More<K>) -> bool {
        let Some((roots, nodes)) = &self.both else { return false };
        let [root, node] = more.slots.map(|slots| slots.map(|slot| u64::from(slot) + 1));
        roots.keys.covers(root_key(u64::from(more.shape) + 1, root)) && nodes.keys.covers(node)
    }

    /// Whether there is room for them.
    #[inline]
    pub fn have_room(&self, more: &More<K>) -> bool {
        let Some((roots, nodes)) = &self.both else { return false };
        let (root, node) = self.below(more);
        roots.has_room(more.counts[0])
            && nodes.has_room(more.counts[1])
            && roots.keys.covers(root)
            && nodes.keys.covers(node)
    }

    /// Makes room for them; nobody else uses the tables but to `help`. Returns whether there was memory.
    pub fn make_room(&mut self, more: &More<K>, budget: &Budget, help: &Help) -> bool {
        let (root, node) = self.below(more);
        let Some((roots, nodes)) = &mut self.both else { return false };
        roots.keep(root, more.counts[0], budget, help) && nodes.keep(node, more.counts[1], budget, help)
    }

    /// Makes a thread forget what it knows of a layout before.
    #[inline(always)]
    pub fn refresh(&self, working: &mut Working<K>) {
        if working.layout != self.layout {
            *working = Working { layout: self.layout, ..Working::new() };
        }
    }

    /// The shape of this number, by way of those the thread knows.
    #[inline(always)]
    pub fn shape<'w>(&self, known: &'w mut Vec<Arc<TreeShape<K>>>, number: u32) -> &'w Arc<TreeShape<K>> {
        if number as usize >= known.len() {
            self.learn(known);
        }
        &known[number as usize]
    }

    #[cold]
    fn learn(&self, known: &mut Vec<Arc<TreeShape<K>>>) {
        known.clone_from(&self.shapes.lock().unwrap_or_else(PoisonError::into_inner).list);
    }

    /// The number of a state's shape; nothing, if there is no memory for a new one.
    #[inline(always)]
    pub fn shape_of(
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
    pub fn known_shape(&self, system: &dyn System, state: &[Slot]) -> Option<(u32, Arc<TreeShape<K>>)> {
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
    pub fn find_key(&self, state: &[Slot], number: u32, shape: &TreeShape<K>) -> Option<[u32; R]> {
        let (_, nodes) = self.both.as_ref()?;
        let mut row = Vec::with_capacity(shape.inner());
        for children in &shape.nodes {
            row.push(nodes.find(BASELINE, key(children, state, &row))?);
        }
        Some(root_key(number, key(&shape.root, state, &row)))
    }

    /// The number of a state, and whether it is new. Room has been set aside (I2); counts the roots and nodes that are
    /// new.
    pub fn intern(
        &self,
        state: &[Slot],
        number: u32,
        shape: &TreeShape<K>,
        row: &mut Vec<u32>,
        new: &mut [u64; 2],
    ) -> Option<(u32, bool)> {
        let (roots, nodes) = self.both.as_ref()?;
        row.clear();
        for children in &shape.nodes {
            let key = key(children, state, row);
            let (number, is_new) = nodes.intern(BASELINE, key, key_hash(key));
            row.push(number);
            new[1] += u64::from(is_new);
        }
        let key = root_key(number, key(&shape.root, state, row));
        let (number, is_new) = roots.intern(BASELINE, key, key_hash(key));
        new[0] += u64::from(is_new);
        Some((number, is_new))
    }

    /// The shape of the root of a state.
    #[inline(always)]
    pub fn root_shape(&self, number: u64) -> u32 {
        match &self.both {
            Some((roots, _)) if R > K => roots.get(number as u32)[0],
            _ => 0,
        }
    }

    /// Writes the slots of a state and the numbers of its nodes (I3).
    #[inline(always)]
    pub fn walk(&self, number: u64, shape: &TreeShape<K>, row: &mut [u32], state: &mut [Slot]) {
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

    /// Appends states, and caches the numbers of their nodes.
    pub fn recall(&self, working: &mut Working<K>, ids: impl ExactSizeIterator<Item = u64>, out: &mut States) {
        self.refresh(working);
        let count = ids.len();
        let remember = count <= BLOCK;
        if R == K && remember {
            working.recalled.clear();
            working.recalled.extend(ids);
            return self.recall_block_detected(working, out);
        }
        let Working { shapes, recalled, rows, .. } = working;
        recalled.clear();
        rows.reset(if remember { count } else { 1 }, rows.stride);
        for (index, number) in ids.enumerate() {
            let shape = self.shape(shapes, self.root_shape(number));
            if shape.inner() > rows.stride {
                // Wider rows: what this call cached is dropped.
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

    /// Appends the states that are to be recalled, all of one shape: a node of all of them, and
    /// another, so that look-ups overlap.
    #[inline(always)]
    fn recall_block(&self, working: &mut Working<K>, out: &mut States) {
        let Some((roots, nodes)) = &self.both else { return };
        let Working { shapes, recalled, rows, .. } = working;
        let shape = self.shape(shapes, 0);
        let (slots, inner) = (shape.slots, shape.inner());
        rows.reset(recalled.len(), inner);
        let states = out.grow(recalled.len());
        let mut put = |at: usize, children: &[Child; K], words: &[u32], row: &mut [u32]| {
            for (child, &word) in children.iter().zip(words) {
                match *child {
                    Child::Slot(slot) => states[at * slots + slot as usize] = word,
                    Child::Node(node) => {
                        row[node as usize] = word;
                        nodes.keys.prefetch(word);
                    }
                    Child::None => {}
                }
            }
        };
        for (at, &number) in recalled.iter().enumerate() {
            assert!(number < roots.len(), "#{number} is not one of {} states", roots.len());
            put(at, &shape.root, &roots.get(number as u32)[R - K..], rows.row_mut(at));
        }
        for (node, children) in shape.nodes.iter().enumerate().rev() {
            for at in 0..recalled.len() {
                let row = rows.row_mut(at);
                put(at, children, &nodes.get(row[node]), row);
            }
        }
    }

    /// [`recall_block`](Self::recall_block) with the instructions of AVX2 and its time.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn recall_block_avx2(&self, working: &mut Working<K>, out: &mut States) {
        self.recall_block(working, out);
    }

    fn recall_block_detected(&self, working: &mut Working<K>, out: &mut States) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if x86::Avx2::detect().is_some() {
            // SAFETY: `detect` found that the processor has these instructions.
            return unsafe { self.recall_block_avx2(working, out) };
        }
        self.recall_block(working, out);
    }

    /// The same states in another layout, under the same numbers. `None` if there is no memory:
    /// then these can be counted and dropped.
    ///
    /// Both trees are never there in full: the indexes of this one are given back first, then its
    /// roots, as they are entered into the other.
    pub fn recoded(&mut self, system: &dyn System, recoding: &Recoding, budget: &Arc<Budget>) -> Option<Self> {
        let mut new = TreeTables::new(system, recoding.to, budget);
        (new.layout, new.growth.number) = (self.layout + 1, self.growth.number + 1);
        let (mut known, mut new_known) = (Vec::new(), Vec::new());
        let (mut state, mut translated, mut row) = (Vec::new(), Vec::new(), Vec::new());
        if let Some((roots, nodes)) = &mut self.both {
            roots.shed_index(budget);
            nodes.shed_index(budget);
        }
        for number in 0..self.len() {
            if budget.is_over_at(number) {
                new.release(budget);
                return None;
            }
            if number % RELEASED == 0
                && let Some((roots, _)) = &mut self.both
            {
                roots.keys.release_before(number, budget);
            }
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
        known: &mut Vec<Arc<TreeShape<K>>>,
        budget: &Budget,
    ) -> Option<u64> {
        self.both.as_ref()?;
        let number = self.shape_of(system, budget, &mut Vec::new(), state)?;
        let shape = Arc::clone(self.shape(known, number));
        let more = More::of(state, number, &shape);
        if !self.have_room(&more) && !self.make_room(&more, budget, &Help::default()) {
            return None;
        }
        self.intern(state, number, &shape, &mut Vec::new(), &mut [0; 2]).map(|(number, _)| number.into())
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
    /// What distinguishes a shape from others: those beyond the first have no boundaries.
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

    /// The number of a shape, which is made if there is none. `None` if there is no memory.
    fn number(&mut self, slots: usize, boundaries: &[usize], budget: &Budget) -> Option<u32> {
        let (slots, boundaries) = self.name(slots, boundaries.to_vec());
        match self.numbers.get(&(slots, boundaries.clone())) {
            Some(&number) => Some(number),
            None => self.add(slots, boundaries, budget),
        }
    }

    fn add(&mut self, slots: usize, boundaries: Vec<usize>, budget: &Budget) -> Option<u32> {
        let bytes = TreeShape::<K>::bytes(slots) + (boundaries.len() * size_of::<usize>()) as u64;
        if !budget.request(bytes) {
            return None;
        }
        self.granted += bytes;
        let number = self.list.len() as u32;
        self.list.push(Arc::new(TreeShape::new(slots, &boundaries)));
        self.numbers.insert((slots, boundaries), number);
        Some(number)
    }
}
