//! A longer look at a system: states that a short search from the beginning meets.
//!
//! In: a system, and an empty store for its states. Out: some of the first million states, spread
//! evenly; nothing, if the system has fewer, for then a better cut would not save what the look
//! costs, or if it takes too long. What stays true: all memory is asked for before it is taken, and given back.
//!
//! Walks stay where a system spends most of its time. Of Anderson's lock (six processes, 18 million
//! states) 65,000 states from walks show halves of 2,000 and some 30,000 values, where the run meets 2,000 and
//! eight million; a search goes everywhere alike.

use crate::compact::Compact;
use crate::packed::Packed;
use deltamark_core::{
    Arrival, BLOCK, Batch, Block, Budget, Insert, Recall, Slot, StateId, States, Store, System, Width, hash,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// States that the search meets before it ends.
const SEARCHED: u64 = 1 << 20;
/// Of these about so many are kept, and no more bytes of them than this.
const KEPT: usize = 1 << 16;
const BYTES: usize = 8 << 20;
/// A system whose steps take long is not looked at for longer than this: nobody can end a run
/// before it has begun.
const LONGEST: Duration = Duration::from_secs(5);

/// The bytes of what is kept of states of this width, about, while it is taken and looked at.
pub(crate) fn cost(slots: usize) -> u64 {
    4 * (most(slots) * slots * size_of::<Slot>()) as u64
}

fn most(slots: usize) -> usize {
    (BYTES / (slots * size_of::<Slot>()).max(1)).clamp(BLOCK, KEPT)
}

/// Some of the first states of a system that has many, with the help of a store in which nothing
/// is.
pub(crate) fn search(system: &dyn System, store: &Compact<'_>, budget: &Arc<Budget>) -> Option<States> {
    let Width::Fixed(slots) = system.width() else { return None };
    let begin = Instant::now();
    let every = SEARCHED / most(slots) as u64;
    let mut kept = States::new(system.width());
    let mut later = Packed::new(budget);
    let (mut system_scratch, mut scratch) = (system.scratch(), store.scratch());
    let (mut block, mut batch) = (Block::new(system.width()), Batch::new(system.width()));
    let mut answers = Vec::new();
    system.initial(&mut system_scratch, &mut batch).ok()?;
    for index in 0..batch.len() {
        let arrival = Arrival { parent: None, action: batch.action(index) };
        answers.push(store.insert(&mut scratch, batch.target(index), batch.hash(index), &arrival));
    }
    note(&answers, &mut later)?;
    while store.len() < SEARCHED {
        let level = std::mem::replace(&mut later, Packed::new(budget));
        if level.len() == 0 {
            return None;
        }
        for start in (0..level.len()).step_by(BLOCK) {
            let ids = (start..level.len().min(start + BLOCK as u64)).map(|index| StateId::new(level.get(index)));
            block.reset(system.width());
            block.fill(ids, |ids, states| Recall::recall(store, &mut scratch, ids, states));
            batch.reset(system.width());
            system.expand(&mut system_scratch, &block, &mut batch).ok()?;
            answers.clear();
            store.insert_batch(&mut scratch, &block, &batch, &mut answers);
            note(&answers, &mut later)?;
            for (index, answer) in answers.iter().enumerate() {
                // By what they are and not by when they came: neighbours are alike.
                if matches!(answer, Insert::New(_)) && hash::mix(batch.hash(index)) % every == 0 {
                    kept.push(batch.target(index));
                }
            }
            if store.len() >= SEARCHED {
                break;
            }
            if begin.elapsed() > LONGEST {
                return None;
            }
        }
    }
    Some(kept)
}

/// Notes the ids of new states; nothing, if there is no memory for them.
fn note(answers: &[Insert], later: &mut Packed) -> Option<()> {
    for answer in answers {
        match answer {
            Insert::New(id) if later.reserve(1, id.get()) => later.push(id.get()),
            Insert::Seen(_) => {}
            _ => return None,
        }
    }
    Some(())
}
