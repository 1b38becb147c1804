//! Fires a block of up to 64 markings at once.
//!
//! In: a block of packed markings. Out: all their successors, with hashes. What stays true: nothing is allocated
//! per successor, and a step that would overflow a field is reported before anything of the batch is used.
//!
//! # The idea
//! The block is transposed into bit planes, so that one `and` decides a condition for 64 markings. Transitions are
//! then processed one after the other: the word of those markings that enable it is known, and the same few
//! additions are applied to each of them. Compared to processing the markings one by one this was two to four
//! times as fast.

use crate::compile::{Compiled, CompiledStep, StepGroup, Threshold};
use crate::planes::transpose;
use deltamark_core::layout::word;
use deltamark_core::sleep::SleepLists;
use deltamark_core::{Action, BLOCK, Batch, Block, Slot, Widen};
use std::sync::Arc;

/// A place whose field would overflow, and the count it would have.
pub(crate) type Overflow = (u32, u64);

/// Working memory of one thread.
pub(crate) struct Workspace {
    /// The net in the layout this thread has last seen.
    pub compiled: Arc<Compiled>,
    /// The serial of the block that the other fields belong to.
    loaded: Option<(u64, usize)>,
    /// The words of the block's states, state by state.
    words: Vec<u64>,
    hashes: [u64; BLOCK],
    truths: Vec<u64>,
    /// For each transition the states of the block in which it is skipped; empty if there are none.
    asleep: Vec<u64>,
    runs: Vec<(u32, u64)>,
    /// Whether what is skipped is left away, and so not counted.
    leaves_away: bool,
}

impl Workspace {
    pub fn new(compiled: Arc<Compiled>) -> Self {
        Workspace {
            compiled,
            loaded: None,
            words: Vec::new(),
            hashes: [0; BLOCK],
            truths: Vec::new(),
            asleep: Vec::new(),
            runs: Vec::new(),
            leaves_away: false,
        }
    }

    /// Adopts a new layout.
    pub fn refresh(&mut self, compiled: Arc<Compiled>) {
        self.compiled = compiled;
        self.loaded = None;
    }

    /// Computes words, hashes and truths of a block, unless they are loaded already.
    fn load(&mut self, block: &Block) {
        if self.loaded == Some(block.serial()) {
            return;
        }
        let compiled = &*self.compiled;
        let words = compiled.words;
        let slots = compiled.layout.slots;
        self.words.resize(words * BLOCK, 0);
        self.truths.resize(compiled.truths, 0);
        let states = block.states().slots().chunks_exact(slots);
        self.hashes[..block.len()].fill(compiled.base_hash);
        for index in 0..words {
            let planes: &mut [u64; 64] = (&mut self.truths[64 * index..64 * index + 64]).try_into().expect("64 planes");
            planes[block.len()..].fill(0);
            for (number, state) in states.clone().enumerate() {
                let value = word(state, index);
                planes[number] = value;
                self.words[number * words + index] = value;
                self.hashes[number] = self.hashes[number].wrapping_add(compiled.word_hash(index, value));
            }
            transpose(planes);
        }
        self.truths[compiled.always as usize] = u64::MAX;
        let (planes, thresholds) = self.truths.split_at_mut(64 * words + 1);
        for (truth, threshold) in thresholds.iter_mut().zip(&compiled.thresholds) {
            let Threshold { plane, bits, at_least: least, .. } = *threshold;
            *truth = at_least(&planes[plane as usize..][..usize::from(bits)], least);
        }
        self.loaded = Some(block.serial());
    }

    /// The block as bit planes, 64 a word of a state; states beyond the block read as zero.
    pub fn planes(&mut self, block: &Block) -> &[u64] {
        self.load(block);
        &self.truths[..64 * self.compiled.words]
    }

    /// Calls `visit` with every step that is enabled somewhere in the block, and the mask of states.
    #[inline]
    fn enabled<E>(&self, live: u64, mut visit: impl FnMut(&CompiledStep, u64) -> Result<(), E>) -> Result<(), E> {
        let compiled = &*self.compiled;
        let truths = &self.truths[..compiled.truths];
        let (mut live, mut outranked, mut priority) = (live, 0, u32::MAX);
        for group in &compiled.groups {
            if group.priority != priority {
                live &= !outranked;
                priority = group.priority;
            }
            let shared = live & (truths[group.condition.truth as usize] ^ group.condition.flip);
            if shared == 0 {
                continue;
            }
            for step in &compiled.steps[group.steps.start as usize..group.steps.end as usize] {
                let mut mask = shared;
                for condition in &compiled.conditions[step.conditions.start as usize..step.conditions.end as usize] {
                    mask &= truths[condition.truth as usize] ^ condition.flip;
                }
                if mask != 0 {
                    outranked |= mask;
                    visit(step, mask)?;
                }
            }
        }
        Ok(())
    }

    /// Where the conditions of a step hold, priorities aside.
    fn concession(&self, live: u64, group: &StepGroup, step: &CompiledStep) -> u64 {
        let conditions = &self.compiled.conditions[step.conditions.start as usize..step.conditions.end as usize];
        std::iter::once(&group.condition)
            .chain(conditions)
            .fold(live, |mask, condition| mask & (self.truths[condition.truth as usize] ^ condition.flip))
    }

    /// The states in which a step that is enabled at `mask` is fired.
    #[inline]
    fn awake(&self, step: &CompiledStep, mask: u64, out: &mut Batch) -> u64 {
        match self.asleep.get(step.transition as usize) {
            Some(&asleep) => {
                if self.leaves_away {
                    out.leave_away(mask & asleep);
                } else {
                    out.leave_out(mask & asleep);
                }
                mask & !asleep
            }
            None => mask,
        }
    }

    /// Whether firing `step` in the states of `mask` would overflow a field.
    #[inline]
    fn overflows(&self, step: &CompiledStep, mask: u64) -> bool {
        let overflows = &self.compiled.overflows[step.overflows.start as usize..step.overflows.end as usize];
        overflows.iter().any(|&truth| self.truths[truth as usize] & mask != 0)
    }

    /// Appends all successors of all states of `block`.
    pub fn expand(&mut self, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.asleep.clear();
        self.fire_all(block, out)
    }

    /// Appends the successors of all states of `block`, without those skipped.
    pub fn expand_awake(
        &mut self,
        sleep: &SleepLists,
        block: &Block,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        self.leaves_away = false;
        sleep.fill(arrivals, &mut self.runs, &mut self.asleep);
        self.fire_all(block, out)
    }

    /// Appends the successors of all states of `block` by the transitions that are chosen for them.
    pub fn expand_chosen(&mut self, block: &Block, chosen: &[u64], out: &mut Batch) -> Result<(), Widen> {
        self.leaves_away = true;
        self.asleep.clear();
        self.asleep.extend(chosen.iter().map(|chosen| !chosen));
        self.fire_all(block, out)
    }

    fn fire_all(&mut self, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.load(block);
        let live = block.mask();
        match self.compiled.layout.slots {
            1 => self.fire_narrow::<1, 1>(live, out),
            2 => self.fire_narrow::<1, 2>(live, out),
            3 => self.fire_narrow::<2, 3>(live, out),
            4 => self.fire_narrow::<2, 4>(live, out),
            5 => self.fire_narrow::<3, 5>(live, out),
            6 => self.fire_narrow::<3, 6>(live, out),
            7 => self.fire_narrow::<4, 7>(live, out),
            8 => self.fire_narrow::<4, 8>(live, out),
            _ => self.fire_wide(block, live, out),
        }
    }

    /// Fires with a constant number of words and slots.
    fn fire_narrow<const WORDS: usize, const SLOTS: usize>(&self, live: u64, out: &mut Batch) -> Result<(), Widen> {
        let (sources, _) = self.words.as_chunks::<WORDS>();
        let sources: &[[u64; WORDS]; BLOCK] = sources.try_into().expect("a block of words");
        self.enabled(live, |step, mask| {
            let mask = self.awake(step, mask, out);
            if mask == 0 {
                return Ok(());
            }
            if self.overflows(step, mask) {
                return Err(Widen);
            }
            let mut add = [0u64; WORDS];
            for change in &self.compiled.changes[step.changes.start as usize..step.changes.end as usize] {
                add[change.word as usize] = change.add;
            }
            let (slots, hashes) = out.grow(Action(step.transition), mask);
            let (targets, _) = slots.as_chunks_mut::<SLOTS>();
            let mut rest = mask;
            for (target, hash) in targets.iter_mut().zip(hashes) {
                let source = rest.trailing_zeros() as usize % BLOCK;
                rest &= rest - 1;
                *hash = self.hashes[source].wrapping_add(step.hash);
                for index in 0..WORDS {
                    let value = sources[source][index].wrapping_add(add[index]);
                    target[2 * index] = value as Slot;
                    if 2 * index + 1 < SLOTS {
                        target[2 * index + 1] = (value >> 32) as Slot;
                    }
                }
            }
            Ok(())
        })
    }

    /// Fires states of many slots: copies them and writes only what changes.
    fn fire_wide(&self, block: &Block, live: u64, out: &mut Batch) -> Result<(), Widen> {
        let width = self.compiled.layout.slots;
        let states = block.states().slots();
        self.enabled(live, |step, mask| {
            let mask = self.awake(step, mask, out);
            if mask == 0 || out.is_stopped() {
                return Ok(());
            }
            if self.overflows(step, mask) {
                return Err(Widen);
            }
            let changes = &self.compiled.changes[step.changes.start as usize..step.changes.end as usize];
            let (slots, hashes) = out.grow(Action(step.transition), mask);
            let mut rest = mask;
            for (target, hash) in slots.chunks_exact_mut(width).zip(hashes) {
                let source = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                *hash = self.hashes[source].wrapping_add(step.hash);
                target.copy_from_slice(&states[source * width..(source + 1) * width]);
                for change in changes {
                    apply(target, change.word as usize, change.add);
                }
            }
            Ok(())
        })
    }

    /// A word with a bit for each state of the block in which this transition can fire.
    pub fn fireable(&mut self, block: &Block, transition: u32) -> u64 {
        self.load(block);
        let Compiled { steps, groups, .. } = &*self.compiled;
        let Some(index) = steps.iter().position(|step| step.transition == transition) else { return 0 };
        let group = &groups[groups.partition_point(|group| group.steps.end as usize <= index)];
        let mut found = self.concession(block.mask(), group, &steps[index]);
        for above in groups.iter().take_while(|above| above.priority > group.priority) {
            for step in &steps[above.steps.start as usize..above.steps.end as usize] {
                found &= !self.concession(found, above, step);
            }
        }
        found
    }
}

/// Adds to one word of a packed state.
#[inline]
pub(crate) fn apply(state: &mut [Slot], index: usize, add: u64) {
    let value = word(state, index).wrapping_add(add);
    state[2 * index] = value as Slot;
    if let Some(high) = state.get_mut(2 * index + 1) {
        *high = (value >> 32) as Slot;
    }
}

/// Compares a field of all 64 states, given by its planes, with a constant that it can hold, lowest bit first: a set bit
/// of the constant requires the field's bit, a clear one is exceeded by it.
#[inline]
pub(crate) fn at_least(planes: &[u64], least: u64) -> u64 {
    let mut result = u64::MAX;
    for (bit, &plane) in planes.iter().enumerate() {
        result = if least >> bit & 1 == 1 { plane & result } else { plane | result };
    }
    result
}
