//! A run that is looked at as it goes.
//!
//! In: a system, and a function that is called at given numbers of expanded states. Out: a layer whose runs are those of the system. What stays true: what is expanded does not
//! change, and is counted once; while the function runs no other state is expanded by this layer, so the numbers of states at which it is called depend on counts alone.
//! It must leave the system alone, which is in use: other threads are in the middle of blocks in its present layout.

use deltamark_core::{Action, Batch, Block, Layer, Scratch, Sleep, System, Widen};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// Is given the number of states that were expanded; returns at which number it is to be called again.
type Look<'s> = Box<dyn FnMut(u64) -> u64 + Send + 's>;

/// A system whose expanded states are counted.
pub(crate) struct Paced<'s> {
    inner: &'s dyn System,
    expanded: AtomicU64,
    next: AtomicU64,
    look: Mutex<Look<'s>>,
}

impl<'s> Paced<'s> {
    /// The system; `look` is called when `first` states were expanded.
    pub fn new(inner: &'s dyn System, first: u64, look: impl FnMut(u64) -> u64 + Send + 's) -> Self {
        Paced { inner, expanded: AtomicU64::new(0), next: AtomicU64::new(first), look: Mutex::new(Box::new(look)) }
    }

    fn count(&self, more: usize) {
        let expanded = self.expanded.fetch_add(more as u64, SeqCst) + more as u64;
        if expanded < self.next.load(SeqCst) {
            return;
        }
        // Whoever comes meanwhile waits here.
        let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.next.load(SeqCst);
        if expanded >= next {
            self.next.store(look(next).max(next.saturating_add(1)), SeqCst);
        }
    }
}

impl Layer for Paced<'_> {
    fn inner(&self) -> &dyn System {
        self.inner
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.inner.expand(scratch, block, out)?;
        self.count(block.len());
        Ok(())
    }

    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        sleep: &Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        self.inner.expand_awake(scratch, block, sleep, arrivals, out)?;
        self.count(block.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Check;
    use deltamark_nets::{NetSystem, generate};

    #[test]
    fn it_is_called_at_these_numbers_whatever_the_number_of_threads() {
        let system = NetSystem::new(generate::generate("kanban", 3).expect("a family"));
        for threads in [1, 2] {
            let mut seen = Vec::new();
            let paced = Paced::new(&system, 1_000, |count| {
                seen.push(count);
                if count > 30_000 { u64::MAX } else { 2 * count }
            });
            let report = Check::new(&paced).threads(threads).explore_all(true).run().expect("a run");
            assert_eq!((report.statistics.states, report.statistics.expanded), (58_400, 58_400));
            drop(paced);
            assert_eq!(seen, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000], "{threads} threads");
        }
    }
}
