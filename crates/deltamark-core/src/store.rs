//! The set of visited states.
//!
//! In: states with the way they were reached. Out: for each, whether it is new, and its
//! id. What stays true: a store is shared by all threads (`insert` takes `&self`); it
//! grows by itself; it never takes memory that its [`Budget`](crate::Budget) refuses;
//! and what it cannot store it answers with [`Insert::Full`], so nothing gets lost.

use std::ops::Range;

use crate::{Action, Batch, Block, Bytes, Control, Recoding, Scratch, Slot, StateId, States, Trace};

/// In what order states reach a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Level by level: first the initial states, then everything one step from them, and so
    /// on. The parents of a batch are of the level before, in the order they were found, and
    /// [`Store::end_level`] is called after each level.
    Levels,
    /// Any order in which a parent comes before its children.
    Any,
}

/// How a state was reached.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The state it was reached from; nothing for an initial state.
    pub parent: Option<(StateId, &'a [Slot])>,
    /// The action that led to it; for an initial state its number among them.
    pub action: Action,
}

/// What became of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insert {
    /// It was not there and now is, under this id.
    New(StateId),
    /// It was there already, under this id ([`StateId::NAMELESS`] if the store cannot tell).
    Seen(StateId),
    /// It was not there, and the budget has no room for it.
    Full,
}

/// What an answer that rests on a store is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Guarantee {
    /// No state is ever taken for another.
    Exact,
    /// With this probability some state was missed in the run so far, as far as the store can
    /// tell: by a formula or an estimate that takes hashes as random. How it is worked out is
    /// for each store to say.
    Omission(f64),
}

/// The set of visited states.
pub trait Store: Send + Sync {
    /// Inserts a state. `hash` is what the system's `hash` gives for it.
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert;

    /// Inserts the successors of a block and appends an answer for each, in the order of the
    /// batch. After an [`Insert::Full`] the rest may be left out.
    fn insert_batch(&self, scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        insert_one_by_one(self, scratch, block, batch, out);
    }

    /// The id of a state that is there. Stores that cannot tell ids answer
    /// [`StateId::NAMELESS`].
    fn find(&self, scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId>;

    /// How many states are there.
    fn len(&self) -> u64;

    /// Whether no state is there.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes it holds, by part.
    fn bytes(&self) -> Bytes;

    /// What an answer that rests on it is worth now.
    fn guarantee(&self) -> Guarantee;

    /// What makes an answer that rests on it worth less than it seems, if anything: a clause
    /// without a full stop.
    fn warning(&self) -> Option<String> {
        None
    }

    /// New working memory for one thread.
    fn scratch(&self) -> Scratch {
        Scratch::none()
    }

    /// Whether it can give states back by their id.
    fn recall(&self) -> Option<&dyn Recall> {
        None
    }

    /// Whether small values can hang on its states.
    fn fields(&self) -> Option<&dyn Fields> {
        None
    }

    /// Ends a level: what was inserted since the last call is the level to be expanded next.
    /// A search that goes level by level calls it after the initial states and after each
    /// level; others never do. On `false` the budget had no room, and the run must end.
    #[must_use]
    fn end_level(&self) -> bool {
        true
    }

    /// Bytes it holds for states that are still to be expanded and that it will give back
    /// after that. They count as frontier and are not in [`bytes`](Self::bytes).
    fn frontier_bytes(&self) -> u64 {
        0
    }

    /// How a state of the level in hand was reached, if the store can tell without help, and if
    /// there is memory enough to find out, and time by the word of `control`.
    fn path(&self, _scratch: &mut Scratch, _id: StateId, _control: &Control) -> Option<Trace> {
        None
    }

    /// Translates every state it holds; ids stay. Called by one thread while no other
    /// uses the store. On `false` the budget had no room, and the store still holds its
    /// states in the old layout: it can be counted and dropped, nothing else.
    #[must_use]
    fn recode(&self, recoding: &Recoding) -> bool;
}

/// Inserts the successors of a block one after the other, up to the first that finds no room:
/// what [`Store::insert_batch`] does unless a store does better.
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

/// A store that gives states back by their id.
pub trait Recall {
    /// Appends the states of these ids to `out`, in order.
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States);

    /// Appends the states with these numbers to `out`, in order.
    fn recall_range(&self, scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        for id in ids {
            self.recall(scratch, &[StateId::new(id)], out);
        }
    }

    /// Whether ids are 0, 1, 2 …, so that everything inserted in a stretch of time is a
    /// range of ids and needs no queue. Within a batch they may be given in any order.
    fn sequential(&self) -> bool;

    /// Whether [`Store::path`] tells how any state was reached, so that a search need not take
    /// note of it. It may take as long as the search did, and needs some memory meanwhile.
    fn retraces(&self) -> bool {
        false
    }

    /// Whether every state can be given back. If not, only those of the level that is being
    /// expanded can; ids of others may be [`StateId::NAMELESS`], and [`Store::path`] tells how
    /// a state was reached.
    fn whole(&self) -> bool {
        true
    }
}

/// A field of the states of a store: see [`Fields::attach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldId(pub u32);

/// A store on whose states small values can hang: colours of a nested search, numbers of
/// components, counters. Several threads may use them at once.
pub trait Fields {
    /// A new field of this many bits, 1 to 32, which is 0 for all states there are and will be.
    fn attach(&self, bits: u32) -> Option<FieldId>;

    /// The value of a field.
    fn get(&self, field: FieldId, state: StateId) -> u32;

    /// Changes a value in one go, and gives what it was: `change` is given the value and says what
    /// it shall be, or nothing to leave it; it may be called again when others change it
    /// meanwhile. Nothing, if there is no memory for it.
    fn update(&self, field: FieldId, state: StateId, change: &mut dyn FnMut(u32) -> Option<u32>) -> Option<u32>;

    /// Sets a value, and gives what it was. Nothing, if there is no memory for it.
    fn set(&self, field: FieldId, state: StateId, value: u32) -> Option<u32> {
        self.update(field, state, &mut |_| Some(value))
    }
}
