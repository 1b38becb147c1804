//! Batched insertion into `tree`: the successors of a block, a group at a time, bottom-up, so that
//! look-ups overlap.
//!
//! In: a block of sources whose node numbers are known or looked up again, and a batch of their
//! successors. Out: whether each is new. Invariant: only nodes above changed slots are looked up;
//! the others have the numbers of their sources.

use super::tables::{More, TreeTables, key, root_key};
use super::{GROUP, told};
use crate::tables::bucket::Lanes;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::dense::key_hash;
use crate::tables::index::BASELINE;
use crate::threads::reserve::Room;
use crate::tree::shape::TreeShape;
use deltamark_core::{Batch, Block, Budget, Insert, System};
use std::ops::Range;
use std::sync::Arc;

/// Working memory of a thread.
pub(super) struct Working<const K: usize> {
    /// The layout that what follows is about.
    pub layout: u64,
    pub room: Room<2>,
    /// Whether many of the roots and of the nodes that it entered last were new, so that lines are fetched
    /// for writing.
    pub expects_new: [bool; 2],
    /// The shapes this thread has met.
    pub shapes: Vec<Arc<TreeShape<K>>>,
    pub boundaries: Vec<usize>,
    /// The states that were recalled last, and the numbers of their nodes, a row each.
    pub recalled: Vec<u64>,
    pub rows: Rows,
    /// The numbers of the nodes of a block's states, and of a group of their successors.
    pub sources: Rows,
    pub targets: Rows,
    /// For each successor of a group the number of its shape.
    pub target_shapes: Vec<u32>,
    /// Nodes that are to be looked up, by height: which successor, which node.
    pub changed: Vec<Vec<(u8, u32)>>,
    /// A bit for each node of a successor that is among them.
    pub marks: Vec<u64>,
}

/// Numbers of nodes, a row a state.
#[derive(Default)]
pub(super) struct Rows {
    pub stride: usize,
    pub numbers: Vec<u32>,
}

impl Rows {
    pub fn reset(&mut self, rows: usize, stride: usize) {
        self.stride = stride;
        self.numbers.resize(rows * stride, 0);
    }

    #[inline(always)]
    pub fn row(&self, row: usize) -> &[u32] {
        &self.numbers[row * self.stride..(row + 1) * self.stride]
    }

    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [u32] {
        &mut self.numbers[row * self.stride..(row + 1) * self.stride]
    }
}

impl<const K: usize> Working<K> {
    pub fn new() -> Self {
        Working {
            layout: 0,
            room: Room::default(),
            expects_new: [false; 2],
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

impl<const K: usize, const R: usize> TreeTables<K, R> {
    /// The first rounds for a group of successors: which nodes are to be looked up. Returns how
    /// many there are and what they are made of; nothing, if there is no memory for a shape.
    pub fn compare(
        &self,
        system: &dyn System,
        budget: &Budget,
        working: &mut Working<K>,
        block: &Block,
        batch: &Batch,
        group: Range<usize>,
    ) -> Option<More<K>> {
        let Working { shapes, boundaries, sources, targets, target_shapes, changed, marks, .. } = working;
        target_shapes.clear();
        let (mut stride, mut height) = (0, 0);
        let mut more = More::new([group.len() as u64, 0]);
        if R == K {
            let shape = self.shape(shapes, 0);
            (stride, height) = (shape.inner(), shape.height());
            if stride == 0 {
                for index in group {
                    for (bits, &value) in more.slots[0].iter_mut().zip(batch.target(index)) {
                        *bits |= value;
                    }
                }
                return Some(more);
            }
            target_shapes.resize(group.len(), 0);
        } else {
            for index in group.clone() {
                let number = self.shape_of(system, budget, boundaries, batch.target(index))?;
                let shape = self.shape(shapes, number);
                stride = stride.max(shape.inner());
                height = height.max(shape.height());
                target_shapes.push(number);
                more.shape = more.shape.max(number);
            }
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
                        more.note(shape, slot, to[slot]);
                        shape.climb(slot, &mut mark);
                    }
                }
            } else {
                for (slot, &value) in to.iter().enumerate() {
                    more.note(shape, slot, value);
                    shape.climb(slot, &mut mark);
                }
            }
        }
        more.counts[1] = count;
        Some(more)
    }

    /// The last rounds: looks up the nodes that changed, lowest first, and enters the roots. Room
    /// has been set aside (I2). Returns how many roots and nodes are new.
    #[inline(always)]
    fn enter<L: Lanes>(
        &self,
        lanes: L,
        working: &mut Working<K>,
        batch: &Batch,
        group: Range<usize>,
        out: &mut Vec<Insert>,
    ) -> [u64; 2] {
        let mut new = [0; 2];
        let Some((roots, nodes)) = &self.both else { return new };
        let Working { shapes, targets, target_shapes, changed, expects_new, .. } = working;
        let (mut keys, mut hashes) = ([[0; K]; GROUP], [0; GROUP]);
        let mut answers = [(0, false); GROUP];
        for changed in changed.iter() {
            for part in changed.chunks(GROUP) {
                for (&(at, node), (held, hash)) in part.iter().zip(keys.iter_mut().zip(&mut hashes)) {
                    let at = usize::from(at);
                    let shape = &shapes[target_shapes[at] as usize];
                    *held = key(&shape.nodes[node as usize], batch.target(group.start + at), targets.row(at));
                    *hash = key_hash(*held);
                    nodes.prefetch(*hash, expects_new[1]);
                }
                nodes.intern_group(lanes, &keys[..part.len().min(GROUP)], &hashes, &mut answers);
                for (&(at, node), &(number, is_new)) in part.iter().zip(&answers) {
                    targets.row_mut(at.into())[node as usize] = number;
                    new[1] += u64::from(is_new);
                }
            }
        }
        let mut keys = [[0; R]; GROUP];
        for (at, index) in group.clone().enumerate().take(GROUP) {
            let number = if R == K { 0 } else { target_shapes[at] };
            let shape = &shapes[number as usize];
            keys[at] = root_key(number, key(&shape.root, batch.target(index), targets.row(at)));
            hashes[at] = key_hash(keys[at]);
            roots.prefetch(hashes[at], expects_new[0]);
        }
        roots.intern_group(lanes, &keys[..group.len().min(GROUP)], &hashes, &mut answers);
        let answers = &answers[..group.len().min(GROUP)];
        new[0] = answers.iter().filter(|(_, is_new)| *is_new).count() as u64;
        out.extend(answers.iter().map(|&answer| told(answer)));
        new
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
    ) -> [u64; 2] {
        self.enter(lanes, working, batch, group, out)
    }

    pub fn enter_detected(
        &self,
        working: &mut Working<K>,
        batch: &Batch,
        group: Range<usize>,
        out: &mut Vec<Insert>,
    ) -> [u64; 2] {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(avx512) = x86::Avx512::detect() {
            // SAFETY: `detect` found that the processor has these instructions.
            return unsafe { self.enter_avx512(avx512, working, batch, group, out) };
        }
        self.enter(BASELINE, working, batch, group, out)
    }

    /// The numbers of the nodes of a block's states, cached, or walked again.
    pub fn sources(&self, working: &mut Working<K>, block: &Block) {
        self.refresh(working);
        let Working { shapes, recalled, rows, sources, .. } = working;
        if R == K && self.shape(shapes, 0).inner() == 0 {
            return;
        }
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
}
