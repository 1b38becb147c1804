//! The depth-first walk, with one current state.
//!
//! In: the edges of states, one at a time. Out: the states, in the order they are first visited. What stays true:
//! the current state is that of the number on top of the stack.
//!
//! # Layout in memory
//! ```text
//! visited   one bit a state
//! stack     [ number: 40 | next edge: 24 ]   one a state on the path from an initial one
//! kept      every 64th state of the stack, and those above the last of them     if steps cannot be undone
//! ```

use super::{Blocked, Ended, Visitor, Walk, WalkError};
use crate::trail::Trail;
use deltamark_core::BitSet;
use deltamark_core::{BLOCK, Block, Budget, Edge, Recoding, Scratch, Slot, StateId, States, Widen, Width};
use std::sync::Arc;

/// Bits of the next edge in an entry of the stack.
const EDGE_BITS: u32 = 24;
/// One of this many states on the stack is kept.
const KEPT: usize = 64;
/// Entries of a segment of the stack.
const PIECE: usize = 1 << 14;

/// A segmented stack of words, within the budget.
struct Stack {
    pieces: Vec<Vec<u64>>,
    len: usize,
    budget: Arc<Budget>,
}

impl Stack {
    fn push(&mut self, word: u64) -> Result<(), Blocked> {
        if self.len == self.pieces.len() * PIECE {
            if !self.budget.request(8 * PIECE as u64) {
                return Err(Blocked::Memory);
            }
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        self.pieces[self.len / PIECE].push(word);
        self.len += 1;
        Ok(())
    }

    fn pop(&mut self) {
        self.len -= 1;
        self.pieces[self.len / PIECE].pop();
    }

    fn get(&self, index: usize) -> u64 {
        self.pieces[index / PIECE][index % PIECE]
    }

    fn top(&mut self) -> Option<&mut u64> {
        let last = self.len.checked_sub(1)?;
        self.pieces[last / PIECE].last_mut()
    }

    fn bytes(&self) -> u64 {
        8 * (self.pieces.len() * PIECE) as u64
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.budget.release(self.bytes());
    }
}

/// States of the stack, if steps cannot be undone.
struct Kept {
    /// Those at depths 0, 64, 128 …
    pillars: States,
    /// Those from the last pillar on.
    recent: States,
    budget: Arc<Budget>,
    granted: u64,
}

impl Kept {
    fn new(width: Width, budget: &Arc<Budget>) -> Self {
        Kept { pillars: States::new(width), recent: States::new(width), budget: Arc::clone(budget), granted: 0 }
    }

    fn account(&mut self) -> Result<(), Blocked> {
        let held = self.pillars.held_bytes() + self.recent.held_bytes();
        if held > self.granted {
            if !self.budget.request(held - self.granted) {
                return Err(Blocked::Memory);
            }
            self.granted = held;
        }
        Ok(())
    }

    /// Sets the state at depth `place` of the stack.
    fn push(&mut self, place: usize, state: &[Slot]) -> Result<(), Blocked> {
        if place.is_multiple_of(KEPT) {
            // Leftovers of a walk from another initial state.
            self.pillars.truncate(place / KEPT);
            self.pillars.push(state);
            self.recent.clear();
        }
        self.recent.push(state);
        self.account()
    }

    fn recode(&mut self, recoding: &Recoding) -> Result<(), Blocked> {
        recoding.translate_all(&mut self.pillars);
        recoding.translate_all(&mut self.recent);
        self.account()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.budget.release(self.granted);
    }
}

/// A walk in progress.
struct Descent<'w, 'a, 'v> {
    walk: &'w mut Walk<'a>,
    visitor: &'v mut dyn Visitor,
    scratch: Scratch,
    stack: Stack,
    kept: Option<Kept>,
    /// The current state.
    state: Vec<Slot>,
    spare: Vec<Slot>,
    edges: Vec<Edge>,
    trail: Trail<'a>,
    block: Block,
    ends: u64,
}

/// Walks.
pub(super) fn run(walk: &mut Walk<'_>, visitor: &mut dyn Visitor) -> Result<Ended, Blocked> {
    let graph = walk.graph;
    let budget = Arc::clone(&walk.control.budget);
    let mut visited = BitSet::new(graph.states(), &budget).ok_or(Blocked::Memory)?;
    let mut scratch = walk.system.scratch();
    let initial = walk.initial(&mut scratch)?;
    if graph.states() >> (64 - EDGE_BITS) != 0 || initial.len() != graph.meta().initial.len() {
        return Err(WalkError::Misfit("it has other initial states than the model".into()).into());
    }
    let width = walk.system.width();
    let reversible = walk.system.reversible().is_some();
    let mut descent = Descent {
        scratch,
        stack: Stack { pieces: Vec::new(), len: 0, budget: Arc::clone(&budget) },
        kept: (!reversible).then(|| Kept::new(width, &budget)),
        state: Vec::new(),
        spare: Vec::new(),
        edges: Vec::new(),
        trail: Trail::new(graph),
        block: Block::new(width),
        ends: 0,
        walk,
        visitor,
    };
    for (index, &number) in graph.meta().initial.iter().enumerate() {
        if !visited.insert(number) {
            continue;
        }
        descent.begin(index)?;
        if let Some(ended) = descent.tree(number, &mut visited)? {
            return Ok(ended);
        }
    }
    let last = descent.show()?;
    let peak = descent.stack.bytes() + descent.kept.as_ref().map_or(0, |kept| kept.granted);
    descent.walk.note_peak(peak);
    if visited.count() != graph.states() {
        return Err(Blocked::Order);
    }
    Ok(last.unwrap_or(Ended::Whole))
}

impl Descent<'_, '_, '_> {
    /// Makes an initial state the current one; the layout may have changed since the last.
    fn begin(&mut self, index: usize) -> Result<(), Blocked> {
        let initial = self.walk.initial(&mut self.scratch)?;
        self.state.clear();
        self.state.extend_from_slice(initial.target(index));
        Ok(())
    }

    /// Visits all unvisited states reachable from the current one.
    fn tree(&mut self, root: u64, visited: &mut BitSet) -> Result<Option<Ended>, Blocked> {
        if let Some(ended) = self.enter(root)? {
            return Ok(Some(ended));
        }
        while let Some(top) = self.stack.top() {
            let (number, edge) = (*top >> EDGE_BITS, (*top & ((1 << EDGE_BITS) - 1)) as usize);
            let found = (edge..self.edges.len()).find(|&edge| !visited.contains(self.edges[edge].target));
            let Some(edge) = found else {
                self.stack.pop();
                if self.stack.len > 0 {
                    self.back()?;
                }
                continue;
            };
            *top = number << EDGE_BITS | (edge as u64 + 1);
            if edge as u64 + 1 >= 1 << EDGE_BITS {
                return Err(WalkError::Misfit("a state has too many edges to be walked depth first".into()).into());
            }
            let Edge { action, target } = self.edges[edge];
            loop {
                match self.walk.fire(&mut self.scratch, &self.state, action, &mut self.spare)? {
                    Ok(()) => break,
                    Err(Widen) => self.widen()?,
                }
            }
            std::mem::swap(&mut self.state, &mut self.spare);
            visited.insert(target);
            self.trail.down(self.stack.len as u64 - 1, number, target, &mut self.edges)?;
            if let Some(ended) = self.enter_with_edges(target)? {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    fn enter(&mut self, number: u64) -> Result<Option<Ended>, Blocked> {
        self.walk.graph.edges(number, &mut self.edges)?;
        self.enter_with_edges(number)
    }

    /// The current state is this one, visited for the first time.
    fn enter_with_edges(&mut self, number: u64) -> Result<Option<Ended>, Blocked> {
        if let Some(kept) = &mut self.kept {
            kept.push(self.stack.len, &self.state)?;
        }
        self.stack.push(number << EDGE_BITS)?;
        self.ends |= u64::from(self.edges.is_empty()) << self.block.len();
        self.block.push(StateId::new(number), &self.state);
        if self.block.len() == BLOCK { self.show() } else { Ok(None) }
    }

    /// Backtracks to the state that is now on top of the stack.
    fn back(&mut self) -> Result<(), Blocked> {
        let place = self.stack.len - 1;
        let top = self.stack.get(place);
        let (number, edge) = (top >> EDGE_BITS, (top & ((1 << EDGE_BITS) - 1)) as usize);
        self.trail.back(place as u64, number, &mut self.edges)?;
        let wrong = || Blocked::from(WalkError::Misfit("a step cannot be undone".into()));
        if self.kept.is_some() {
            return self.back_to_kept(place);
        }
        let taken = edge.checked_sub(1).and_then(|edge| self.edges.get(edge)).ok_or_else(wrong)?;
        let action = self.walk.action(taken.action);
        let reversible = self.walk.system.reversible().ok_or_else(wrong)?;
        if !reversible.unfire(&mut self.scratch, &self.state, action, &mut self.spare) {
            return Err(wrong());
        }
        std::mem::swap(&mut self.state, &mut self.spare);
        Ok(())
    }

    /// The same if steps cannot be undone.
    fn back_to_kept(&mut self, place: usize) -> Result<(), Blocked> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        // The last state of `recent` is the one that was left.
        let recent = kept.recent.len();
        kept.recent.truncate(recent.saturating_sub(1));
        if kept.recent.is_empty() {
            // It was a pillar: replay from the one before it.
            kept.pillars.truncate(place / KEPT + 1);
            let first = place - place % KEPT;
            kept.recent.push(kept.pillars.get(place / KEPT));
            let mut steps = Vec::with_capacity(KEPT);
            let mut edges = Vec::new();
            for place in first..place {
                let entry = self.stack.get(place);
                self.walk.graph.edges(entry >> EDGE_BITS, &mut edges)?;
                let taken = ((entry & ((1 << EDGE_BITS) - 1)) as usize).checked_sub(1).and_then(|edge| edges.get(edge));
                steps.push(taken.ok_or(Blocked::Order)?.action);
            }
            for action in steps {
                let Some(kept) = &mut self.kept else { break };
                let source = kept.recent.get(kept.recent.len() - 1);
                // It was fired before, so it fits the layout.
                let fired = self.walk.fire(&mut self.scratch, source, action, &mut self.spare)?;
                fired.map_err(|Widen| WalkError::Misfit("a step ends differently when taken again".into()))?;
                kept.recent.push(&self.spare);
            }
        }
        let Some(kept) = &mut self.kept else { return Ok(()) };
        self.state.clear();
        self.state.extend_from_slice(kept.recent.get(kept.recent.len() - 1));
        kept.account()
    }

    /// Shows the states visited since the last call.
    fn show(&mut self) -> Result<Option<Ended>, Blocked> {
        if self.block.is_empty() {
            return Ok(None);
        }
        loop {
            match self.visitor.visit(&mut self.scratch, &self.block, self.ends) {
                Ok(true) => break,
                Ok(false) => return Ok(Some(Ended::Enough)),
                Err(Widen) => self.widen()?,
            }
        }
        let stop = self.walk.check(&self.block);
        self.block.reset(self.walk.system.width());
        self.ends = 0;
        Ok(stop.map(Ended::Stopped))
    }

    #[cold]
    fn widen(&mut self) -> Result<(), Blocked> {
        let recoding = self.walk.system.widen();
        self.walk.widenings += 1;
        self.visitor.widened(&recoding);
        let mut block = Block::new(recoding.to);
        for index in 0..self.block.len() {
            recoding.translate(self.block.state(index), &mut self.spare);
            block.push(self.block.id(index), &self.spare);
        }
        self.block = block;
        recoding.translate(&self.state, &mut self.spare);
        std::mem::swap(&mut self.state, &mut self.spare);
        self.kept.as_mut().map_or(Ok(()), |kept| kept.recode(&recoding))
    }
}
