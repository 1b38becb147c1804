//! The interface of engines.
//!
//! In: a [`Program`] and a source state. Out: its successors, written into a batch. What stays true: engines
//! differ in speed only. All return the same steps with the same actions, the same faults and the same targets;
//! the [interpreter](crate::interpreter) is the reference for the others.
//!
//! An engine does nothing else: names, properties, assertions, the initial state and messages of faults are up to
//! [`DveSystem`](crate::DveSystem), which owns the engine.

use crate::ir::Program;
use deltamark_core::{Action, Batch, Block, Scratch, Slot};

/// The result of one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The target has been written.
    Done,
    /// The action is not enabled in this source.
    Disabled,
    /// It is enabled and a fault; what was written is invalid.
    Fault,
}

/// Computes successors.
pub trait Engine: Send + Sync {
    /// Its name, for reports.
    fn name(&self) -> &'static str;

    /// New working memory for one thread; [`successors`](Self::successors) and the others are called with it.
    fn scratch(&self, program: &Program) -> Scratch;

    /// Appends all successors of `source` to the batch, in an order that depends on the source alone, with the
    /// hash of [`hash::slots`](deltamark_core::hash::slots), and to `faults` the actions that are faults.
    fn successors(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        source: &[Slot],
        out: &mut Batch,
        faults: &mut Vec<Action>,
    );

    /// Appends the successors of a whole block, and for each action that is a fault the index of its source in the
    /// block and the action. Worth overriding if many states are faster together.
    fn expand(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        block: &Block,
        out: &mut Batch,
        faults: &mut Vec<(usize, Action)>,
    ) {
        let mut wrong = Vec::new();
        for (index, state) in block.states().iter().enumerate() {
            out.begin(index);
            self.successors(program, scratch, state, out, &mut wrong);
            add_faults(faults, wrong.drain(..).map(|action| (index, action)), out);
        }
    }

    /// The same, but skips sleeping successors: those whose action has its bit set in the set `asleep` of their
    /// source. The batch counts them.
    fn expand_awake(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        block: &Block,
        asleep: &[&[u64]],
        out: &mut Batch,
        faults: &mut Vec<(usize, Action)>,
    ) {
        self.expand(program, scratch, block, out, faults);
        out.leave_out_where(|source, action| asleep[source][action.0 as usize / 64] >> (action.0 % 64) & 1 == 1);
    }

    /// Writes to `target`, which has the width of a state, the successor of `source` under `action`.
    fn fire(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut [Slot],
    ) -> Taken;
}

/// Appends the faults of a block, of which there may be as many as steps, if there is memory for them.
pub(crate) fn add_faults<T>(faults: &mut Vec<T>, more: impl ExactSizeIterator<Item = T>, out: &mut Batch) {
    let missing = (faults.len() + more.len()).saturating_sub(faults.capacity());
    if missing == 0 || out.has_room_beside((faults.len() + more.len()) * size_of::<T>()) {
        faults.extend(more);
    }
}
