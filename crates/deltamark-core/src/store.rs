//! The set of visited states.
//!
//! In: states and how they were reached. Out: for each, whether it is new, and its id. Invariants:
//! a store is shared by all threads (`insert` takes `&self`); it grows automatically; it never
//! allocates memory that its [`Budget`](crate::Budget) refuses; a state that cannot be stored is
//! answered with [`Insert::Full`], so no state is lost.

use std::ops::Range;

use crate::{Action, Attached, Batch, Block, Bytes, Control, Recoding, Scratch, Slot, StateId, States, Stop, Trace};

/// The order in which states are inserted into a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Level by level (breadth-first): first the initial states, then their successors, and so on.
    /// The parents of a batch are of the previous level, in the order of discovery, and
    /// [`Store::end_level`] is called after each level.
    Levels,
    /// Any order in which parents precede their children.
    Any,
}

/// How a state was reached.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The predecessor; `None` for an initial state.
    pub parent: Option<(StateId, &'a [Slot])>,
    /// The action of the edge; for an initial state its index among them.
    pub action: Action,
}

/// The result of inserting a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insert {
    /// The state is new and now has this id.
    New(StateId),
    /// The state is a duplicate and has this id ([`StateId::NAMELESS`] if the store cannot return
    /// it).
    Seen(StateId),
    /// The state is new, and the budget has no room for it.
    Full,
}

/// What a verdict based on a store guarantees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Guarantee {
    /// Distinct states are never treated as equal.
    Exact,
    /// The probability that some state was missed in the run so far, as the store computes it: by
    /// a formula or an estimate that assumes random hashes. Each store documents its own.
    Omission(f64),
}

/// How the states of a store get into a checkpoint.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Image<'s> {
    /// They do not.
    None,
    /// They are written in the order of their ids, which are 0, 1, 2 …, and inserted in this order, without their
    /// parents, into an empty store that has an image: all of them can be recalled, at any time.
    Numbered,
    /// They are listed in any order, and so inserted; those of the current level are then found by what they hold.
    Listed(&'s dyn Listed),
}

/// A store that lists its states.
pub trait Listed {
    /// Shows every state once, in any order, until `show` returns `false`. Called while nobody inserts.
    fn list(&self, show: &mut dyn FnMut(&[Slot]) -> bool);
}

/// The set of visited states.
pub trait Store: Send + Sync {
    /// Inserts a state. `hash` must be its [`System::hash`](crate::System::hash).
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert;

    /// Inserts the successors of a block and appends an answer for each, in the order of the batch.
    /// After an [`Insert::Full`] the rest may be omitted.
    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        insert_one_by_one(self, scratch, block, batch, out);
    }

    /// The id of a stored state, `None` if it is absent. Stores without ids return
    /// [`StateId::NAMELESS`].
    fn find(&self, scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId>;

    /// The number of stored states.
    fn len(&self) -> u64;

    /// Whether it may forget states that were expanded, and take them for new when they are inserted again. Every state
    /// is taken for new at least once, so a search over such a store misses none; but ids, observers and counts may
    /// see a state several times.
    fn forgets(&self) -> bool {
        false
    }

    /// Whether it has done so.
    fn has_forgotten(&self) -> bool {
        false
    }

    /// Shows, for a store that [forgets](Self::forgets), the state of each of the first `ids` ids that has a smaller one
    /// as well. Returns the number of the last level in which a state was found for the first time; `None` if memory or,
    /// according to `control`, time does not suffice, or `show` ends it. Nothing can be inserted afterwards.
    fn repeated(
        &self,
        _ids: u64,
        _control: &Control,
        _show: &mut dyn FnMut(&States) -> Result<(), Stop>,
    ) -> Option<u64> {
        None
    }

    /// Whether the store is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes allocated, by part.
    fn bytes(&self) -> Bytes;

    /// What a verdict based on the store currently guarantees.
    fn guarantee(&self) -> Guarantee;

    /// A reason to doubt the guarantee, if there is one: a clause without a full stop.
    fn warning(&self) -> Option<String> {
        None
    }

    /// New working memory for one thread.
    fn scratch(&self) -> Scratch {
        Scratch::none()
    }

    /// `Some` if states can be recalled by id.
    fn recall(&self) -> Option<&dyn Recall> {
        None
    }

    /// `Some` if every state has an id, to which [values](crate::Values) can be attached.
    fn attached(&self) -> Option<&Attached> {
        None
    }

    /// Ends a level: the states inserted since the last call are the next level to be expanded. A
    /// level-by-level search calls it after the initial states and after each level; others never
    /// do. On `false` the budget had no room, and the run must end.
    #[must_use]
    fn end_level(&self) -> bool {
        true
    }

    /// Bytes held for states that are not expanded yet, and freed after their expansion. They count
    /// as frontier and are not part of [`bytes`](Self::bytes).
    fn frontier_bytes(&self) -> u64 {
        0
    }

    /// The path to a state of the current level; `None` if the store keeps no back edges, or if
    /// memory or, according to `control`, time does not suffice.
    fn path(&self, _scratch: &mut Scratch, _id: StateId, _control: &Control) -> Option<Trace> {
        None
    }

    /// An empty store of the same kind within the same budget, for a second search that records back
    /// edges: `Some` if the store [retraces](Recall::retraces).
    fn twin(&self) -> Option<Box<dyn Store + '_>> {
        None
    }

    /// How the states get into a checkpoint and back into an empty store of another run.
    fn image(&self) -> Image<'_> {
        Image::None
    }

    /// Translates every stored state; ids are unchanged. Called by one thread while no other uses
    /// the store. On `false` the budget had no room, and the store still holds its states in the
    /// old layout: it can only be counted and dropped.
    #[must_use]
    fn recode(&self, recoding: &Recoding) -> bool;
}

/// Inserts the successors of a block sequentially, up to the first that finds no room: the default
/// of [`Store::insert_batch`].
pub fn insert_one_by_one<S: Store + ?Sized>(
    store: &S,
    scratch: &mut Scratch,
    block: &Block,
    batch: &Batch,
    out: &mut Vec<Insert>,
) {
    for index in 0..batch.len() {
        let answer = store.insert(scratch, batch.target(index), batch.hash(index), &batch.arrival(block, index));
        out.push(answer);
        if answer == Insert::Full {
            return;
        }
    }
}

/// A store that recalls states by id.
pub trait Recall {
    /// Appends the states with these ids to `out`, in order.
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States);

    /// Appends the states with these consecutive ids to `out`, in order.
    fn recall_range(&self, scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        for id in ids {
            self.recall(scratch, &[StateId::new(id)], out);
        }
    }

    /// Whether ids are 0, 1, 2 …, so that the states inserted during a period are a range of ids
    /// and need no queue. Within a batch ids may be assigned in any order.
    fn sequential(&self) -> bool;

    /// Whether back edges would take more than the states, so that a search should not record them,
    /// but find a path by a second search, in a [twin](Store::twin) of the store. That may take as
    /// long as the search did, and needs some memory meanwhile.
    fn retraces(&self) -> bool {
        false
    }

    /// Whether every state can be recalled. If not, only those of the current level can; ids of
    /// others may be [`StateId::NAMELESS`], and [`Store::path`] returns how a state was reached.
    fn whole(&self) -> bool {
        true
    }
}
