//! The walk in file order.
//!
//! In: blocks in sequence. Out: their states. What stays true: when a block is shown all its states were reached,
//! from earlier blocks or from within; a state is fired once.
//!
//! # Layout in memory
//! ```text
//! reached   one bit a state: it waits in a page, or was shown
//! pages     one for each block with waiting states:  [ state 0 | state 1 | … | state 63 ]
//! ```

use super::{Blocked, Ended, Visitor, Walk, WalkError};
use crate::block::{STATES, Unpacked};
use deltamark_core::BitSet;
use deltamark_core::{Block, Budget, Recoding, Slot, StateId, Widen, Width};
use std::sync::Arc;

/// The waiting states of one block.
enum Page {
    /// States of one width, each at its index.
    Fixed(Vec<Slot>),
    Varies(Vec<Vec<Slot>>),
}

/// All waiting states.
struct Window {
    width: Width,
    pages: Vec<Option<Page>>,
    free: Vec<Page>,
    budget: Arc<Budget>,
    granted: u64,
}

impl Window {
    fn new(blocks: u64, width: Width, budget: &Arc<Budget>) -> Option<Self> {
        let bytes = blocks * size_of::<Option<Page>>() as u64;
        if !budget.request(bytes) {
            return None;
        }
        let pages = (0..blocks).map(|_| None).collect();
        Some(Window { width, pages, free: Vec::new(), budget: Arc::clone(budget), granted: bytes })
    }

    fn request(&mut self, bytes: u64) -> Result<(), Blocked> {
        if !self.budget.request(bytes) {
            return Err(Blocked::Memory);
        }
        self.granted += bytes;
        Ok(())
    }

    /// Puts a state into its page.
    #[inline]
    fn put(&mut self, number: u64, state: &[Slot]) -> Result<(), Blocked> {
        let (block, place) = ((number / STATES as u64) as usize, (number % STATES as u64) as usize);
        if self.pages[block].is_none() {
            let page = self.page()?;
            self.pages[block] = Some(page);
        }
        match &mut self.pages[block] {
            Some(Page::Fixed(slots)) => slots[place * state.len()..(place + 1) * state.len()].copy_from_slice(state),
            Some(Page::Varies(states)) => {
                let more = state.len().saturating_sub(states[place].capacity());
                states[place].clear();
                states[place].extend_from_slice(state);
                if more > 0 {
                    self.request(4 * more as u64)?;
                }
            }
            None => {}
        }
        Ok(())
    }

    #[cold]
    fn page(&mut self) -> Result<Page, Blocked> {
        if let Some(page) = self.free.pop() {
            return Ok(page);
        }
        match self.width {
            Width::Fixed(width) => {
                self.request((STATES * width * size_of::<Slot>()) as u64)?;
                Ok(Page::Fixed(vec![0; STATES * width]))
            }
            Width::Varies => {
                self.request((STATES * size_of::<Vec<Slot>>()) as u64)?;
                Ok(Page::Varies(vec![Vec::new(); STATES]))
            }
        }
    }

    /// A waiting state.
    #[inline]
    fn get(&self, block: u64, place: usize) -> &[Slot] {
        match (&self.pages[block as usize], self.width) {
            (Some(Page::Fixed(slots)), Width::Fixed(width)) => &slots[place * width..(place + 1) * width],
            (Some(Page::Varies(states)), _) => &states[place],
            _ => &[],
        }
    }

    /// Fills a block with the first states of a page.
    fn fill(&self, number: u64, count: usize, block: &mut Block) {
        let ids = (0..count as u64).map(|place| StateId::new(number * STATES as u64 + place));
        block.reset(self.width);
        block.fill(ids, |_, states| match (&self.pages[number as usize], self.width) {
            (Some(Page::Fixed(slots)), Width::Fixed(width)) => {
                states.grow(count).copy_from_slice(&slots[..count * width]);
            }
            _ => (0..count).for_each(|place| states.push(self.get(number, place))),
        });
    }

    /// Frees a page whose states were shown.
    fn pass(&mut self, block: u64) {
        if let Some(page) = self.pages[block as usize].take() {
            self.free.push(page);
        }
    }

    /// Recodes all waiting states; `reached` marks which slots of a page hold one.
    fn recode(&mut self, recoding: &Recoding, reached: &BitSet) -> Result<(), Blocked> {
        let (from, to) = (self.width, recoding.to);
        self.width = to;
        self.free.clear();
        let mut state = Vec::new();
        for number in 0..self.pages.len() {
            let Some(old) = self.pages[number].take() else { continue };
            let mut new = self.page()?;
            let mut rest = reached.word(number as u64);
            while rest != 0 {
                let place = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let source = match (&old, from) {
                    (Page::Fixed(slots), Width::Fixed(width)) => &slots[place * width..(place + 1) * width],
                    (Page::Varies(states), _) => &states[place][..],
                    _ => &[],
                };
                recoding.translate(source, &mut state);
                match (&mut new, to) {
                    (Page::Fixed(slots), Width::Fixed(width)) => {
                        slots[place * width..(place + 1) * width].copy_from_slice(&state);
                    }
                    (Page::Varies(states), _) => states[place].clone_from(&state),
                    _ => {}
                }
            }
            self.pages[number] = Some(new);
        }
        Ok(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.budget.release(self.granted);
    }
}

/// Walks.
pub(super) fn run(walk: &mut Walk<'_>, visitor: &mut dyn Visitor) -> Result<Ended, Blocked> {
    let graph = walk.graph;
    let budget = &walk.control.budget;
    let mut reached = BitSet::new(graph.states(), budget).ok_or(Blocked::Memory)?;
    let mut scratch = walk.system.scratch();
    let initial = walk.initial(&mut scratch)?;
    let mut window = Window::new(graph.blocks(), walk.system.width(), budget).ok_or(Blocked::Memory)?;
    place_initial(walk, &initial, &mut window, &mut reached)?;
    let mut unpacked = Unpacked::default();
    let mut block = Block::new(walk.system.width());
    let mut target = Vec::new();
    for number in 0..graph.blocks() {
        let count = (graph.states() - number * STATES as u64).min(STATES as u64) as usize;
        let all = if count == STATES { u64::MAX } else { (1 << count) - 1 };
        graph.unpack(number, &mut unpacked)?;
        let mut fired = 0;
        // States of this block may be reached from others of it: repeat until nothing is left to fire.
        while reached.word(number) & !fired != 0 {
            let ready = reached.word(number) & !fired;
            for &(source, edge) in unpacked.edges() {
                if ready >> source & 1 == 0 || reached.contains(edge.target) {
                    continue;
                }
                loop {
                    let from = window.get(number, source as usize);
                    match walk.fire(&mut scratch, from, edge.action, &mut target)? {
                        Ok(()) => break,
                        Err(Widen) => widen(walk, &mut window, &reached, visitor)?,
                    }
                }
                window.put(edge.target, &target)?;
                reached.insert(edge.target);
            }
            fired |= ready;
        }
        if reached.word(number) != all {
            return Err(Blocked::Order);
        }
        loop {
            window.fill(number, count, &mut block);
            match visitor.visit(&mut scratch, &block, all & !unpacked.moved()) {
                Ok(true) => break,
                Ok(false) => {
                    walk.note_peak(window.granted);
                    return Ok(Ended::Enough);
                }
                Err(Widen) => widen(walk, &mut window, &reached, visitor)?,
            }
        }
        window.pass(number);
        if let Some(stop) = walk.check(&block) {
            walk.note_peak(window.granted);
            return Ok(Ended::Stopped(stop));
        }
    }
    walk.note_peak(window.granted);
    Ok(Ended::Whole)
}

/// Puts the initial states at their numbers in the graph.
fn place_initial(
    walk: &Walk<'_>,
    initial: &deltamark_core::Batch,
    window: &mut Window,
    reached: &mut BitSet,
) -> Result<(), Blocked> {
    let numbers = &walk.graph.meta().initial;
    if numbers.len() != initial.len() {
        return Err(WalkError::Misfit("it has other initial states than the model".into()).into());
    }
    for (index, &number) in numbers.iter().enumerate() {
        window.put(number, initial.target(index))?;
        reached.insert(number);
    }
    Ok(())
}

#[cold]
fn widen(walk: &mut Walk<'_>, window: &mut Window, reached: &BitSet, visitor: &mut dyn Visitor) -> Result<(), Blocked> {
    let recoding = walk.system.widen();
    walk.widenings += 1;
    visitor.widened(&recoding);
    window.recode(&recoding, reached)
}
