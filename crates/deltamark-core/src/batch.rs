//! Blocks of source states and batches of their successors.
//!
//! In: a [`Block`] of up to [`BLOCK`] source states, assembled by a search. Out: a [`Batch`],
//! filled by a system and passed to a store as a whole. Invariant: both are reused from block to
//! block, so there is no allocation per successor.

use crate::{Action, Arrival, Control, Slot, StateId, States, Stop, Width, hash};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The maximum number of states of a block: one per bit of a `u64`, so a predicate over the states
/// of a block fits in one word.
pub const BLOCK: usize = 64;

/// Source states that are expanded together.
///
/// Not `Clone`: a copy that is filled differently would have the same [`serial`](Block::serial).
#[derive(Debug)]
pub struct Block {
    states: States,
    ids: Vec<StateId>,
    serial: u64,
}

impl Block {
    /// An empty block for states of this width.
    pub fn new(width: Width) -> Self {
        Block { states: States::new(width), ids: Vec::with_capacity(BLOCK), serial: next_serial() }
    }

    /// Empties the block for states of this width and gives it a new serial number.
    pub fn reset(&mut self, width: Width) {
        self.states.reset(width);
        self.ids.clear();
        self.serial = next_serial();
    }

    /// Appends a state and its id in the store.
    pub fn push(&mut self, id: StateId, state: &[Slot]) {
        debug_assert!(self.len() < BLOCK);
        self.states.push(state);
        self.ids.push(id);
    }

    /// Appends states by letting `fill` write them, one for each of `ids`.
    pub fn fill(&mut self, ids: impl IntoIterator<Item = StateId>, fill: impl FnOnce(&[StateId], &mut States)) {
        let start = self.ids.len();
        self.ids.extend(ids);
        debug_assert!(self.ids.len() <= BLOCK);
        fill(&self.ids[start..], &mut self.states);
        assert_eq!(self.states.len(), self.ids.len(), "one state for each id");
    }

    /// The number of states of the block.
    #[inline]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether the block holds no state.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// State number `index` of the block.
    #[inline]
    pub fn state(&self, index: usize) -> &[Slot] {
        self.states.get(index)
    }

    /// All states of the block.
    #[inline]
    pub fn states(&self) -> &States {
        &self.states
    }

    /// The store's id of state number `index`.
    #[inline]
    pub fn id(&self, index: usize) -> StateId {
        self.ids[index]
    }

    /// Identifies the current contents of this block among all blocks: a system may cache results
    /// about a block in its scratch as long as the serial is unchanged. Between two resets a block
    /// only grows, so its length completes its serial number.
    pub fn serial(&self) -> (u64, usize) {
        (self.serial, self.len())
    }

    /// A word with one bit set for each state of the block.
    #[inline]
    pub fn mask(&self) -> u64 {
        if self.len() == 64 { u64::MAX } else { (1 << self.len()) - 1 }
    }
}

/// Serial numbers that a thread takes at a time: threads would contend for the cache line of a counter
/// that each block increments.
const SERIALS: u64 = 1 << 16;

/// A number that no block had before.
fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static MINE: Cell<u64> = const { Cell::new(0) };
    }
    MINE.with(|mine| {
        let serial = match mine.get() {
            used if used.is_multiple_of(SERIALS) => NEXT.fetch_add(SERIALS, Relaxed),
            next => next,
        };
        mine.set(serial + 1);
        serial
    })
}

/// A step that the model itself declares wrong: division by zero, an index out of range, a failed
/// assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The index of its source state in the block.
    pub source: u8,
    /// The failing action; `None` if the state itself is wrong.
    pub action: Option<Action>,
    /// The reason, in the terms of the model.
    pub message: String,
}

/// Room for successors, for [`Batch::write`]: each has an entry in every slice.
pub struct Room<'a> {
    /// The slots of the targets, contiguous.
    pub targets: &'a mut [Slot],
    /// The index of each source state in the block.
    pub sources: &'a mut [u8],
    /// The actions.
    pub actions: &'a mut [Action],
    /// The state of the block that [`Batch::begin`] named.
    pub current: u8,
}

/// The successors of a block: for each its source, action, target and hash.
///
/// A batch [under](Batch::under) a control asks its budget before it grows, once it is large. If that is refused the batch is
/// [stopped](Batch::stop), and what is pushed from then on is lost.
///
/// Not `Clone`: what the budget has granted, it has granted once.
#[derive(Debug)]
pub struct Batch {
    targets: States,
    len: usize,
    /// These three may be longer than the batch: what was once there is used again.
    sources: Vec<u8>,
    actions: Vec<Action>,
    hashes: Vec<u64>,
    faults: Vec<Fault>,
    current: u8,
    moved: u64,
    left_out: u64,
    /// Who is asked whether to go on.
    control: Option<Control>,
    /// Bytes that its budget has granted.
    granted: u64,
    /// Calls until that is asked again.
    until_asked: u32,
    /// Why the batch is not complete.
    stop: Option<Stop>,
    cut_off: u64,
}

/// Bytes of a successor beside its target.
const LISTS: usize = size_of::<u8>() + size_of::<Action>() + size_of::<u64>();
/// Lists of fewer bytes grow without a question: whoever holds the batch counts them.
const SMALL: u64 = 1 << 18;
/// Lists of more bytes grow by an eighth instead of to the next power of two.
const LARGE: usize = 1 << 20;

/// How many calls of [`Batch::is_stopped`] pass from one look at clock and memory to the next.
const ASK_EVERY: u32 = 8;

impl Batch {
    /// An empty batch for states of this width.
    pub fn new(width: Width) -> Self {
        Batch {
            targets: States::new(width),
            len: 0,
            sources: Vec::new(),
            actions: Vec::new(),
            hashes: Vec::new(),
            faults: Vec::new(),
            current: 0,
            moved: 0,
            left_out: 0,
            control: None,
            granted: 0,
            until_asked: 0,
            stop: None,
            cut_off: 0,
        }
    }

    /// The same for a run that `control` may end, even during the expansion of a block.
    pub fn under(mut self, control: &Control) -> Self {
        self.control = Some(control.clone());
        self
    }

    /// Whether the run must end. A system that takes long to expand a block may then return early.
    /// The search discards the block: see [`stop`](Self::stop).
    #[inline]
    pub fn is_stopped(&mut self) -> bool {
        if self.until_asked > 0 {
            self.until_asked -= 1;
            return false;
        }
        self.until_asked = ASK_EVERY - 1;
        self.ask()
    }

    #[cold]
    fn ask(&mut self) -> bool {
        if let Some(control) = &self.control {
            self.stop = self.stop.or_else(|| control.check().err());
        }
        if self.stop.is_some() {
            // Whoever asks again gets the same answer.
            self.until_asked = 0;
        }
        self.stop.is_some()
    }

    /// Whether there is memory for this many bytes of a list that is filled beside the batch, such as one of faults; stops
    /// the batch if not.
    pub fn has_room_beside(&mut self, bytes: usize) -> bool {
        if bytes as u64 > SMALL
            && let Some(control) = &self.control
        {
            self.stop = self.stop.or_else(|| control.ask_for(bytes as u64).err());
            // Whoever asks again gets the same answer.
            self.until_asked = 0;
        }
        self.stop.is_none()
    }

    /// The control, for systems that poll it where the batch is not accessible.
    pub fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// Marks the block as incompletely expanded, for this reason.
    pub fn halt(&mut self, stop: Stop) {
        (self.stop, self.until_asked) = (Some(stop), 0);
    }

    /// Why the block was not expanded completely, if so: the contents of the batch must then not be
    /// used.
    pub fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// Empties the batch, keeping its memory, for states of this width.
    pub fn reset(&mut self, width: Width) {
        self.targets.reset(width);
        self.len = 0;
        self.faults.clear();
        self.current = 0;
        self.moved = 0;
        self.left_out = 0;
        self.stop = None;
        self.cut_off = 0;
    }

    /// Sets the source state, by its index in the block, of the successors pushed from now on.
    #[inline]
    pub fn begin(&mut self, source: usize) {
        debug_assert!(source < BLOCK);
        self.current = source as u8;
    }

    /// Records that these states have successors that the system cannot represent, because a count
    /// exceeds its range or an evaluation its bounds. The search ends there, with [`Stop::Count`]: neither fault nor deadlock.
    pub fn cut_off(&mut self, sources: u64) {
        self.moved |= sources;
        self.cut_off |= sources;
    }

    /// The states whose successors were [cut off](Self::cut_off).
    pub fn cut_off_sources(&self) -> u64 {
        self.cut_off
    }

    /// Appends a successor, for systems that do not override [`System::hash`](crate::System::hash).
    #[inline]
    pub fn push(&mut self, action: Action, target: &[Slot]) {
        self.push_hashed(action, target, hash::slots(target));
    }

    /// Appends a successor with its hash, which must equal its
    /// [`System::hash`](crate::System::hash).
    #[inline]
    pub fn push_hashed(&mut self, action: Action, target: &[Slot], hash: u64) {
        self.len += 1;
        if self.len > self.hashes.len() || !self.targets.has_room(target.len()) {
            self.enlarge(1, target.len());
        }
        let index = self.len - 1;
        self.targets.push(target);
        self.sources[index] = self.current;
        self.actions[index] = action;
        self.hashes[index] = hash;
        self.moved |= 1 << self.current;
    }

    /// Appends the successors under one action of all sources set in `sources`, for
    /// systems of fixed width that fire a block action by action. The caller fills
    /// the given slots and hashes, lowest source first.
    #[inline]
    pub fn grow(&mut self, action: Action, sources: u64) -> (&mut [Slot], &mut [u64]) {
        let count = sources.count_ones() as usize;
        self.len += count;
        // Room for successors is room for their targets, unless the width has changed since.
        if self.len > self.hashes.len() || !self.targets.has_room_for(count) {
            self.enlarge(count, 0);
        }
        let start = self.len - count;
        let mut rest = sources;
        for source in &mut self.sources[start..start + count] {
            *source = rest.trailing_zeros() as u8;
            rest &= rest.wrapping_sub(1);
        }
        self.actions[start..start + count].fill(action);
        self.moved |= sources;
        (self.targets.grow(count), &mut self.hashes[start..start + count])
    }

    /// Appends successors that `write` writes where they stay, for systems of fixed width. It is given
    /// room for `most` of them and returns how many it wrote, the first ones. They are hashed here,
    /// for systems that keep [`System::hash`](crate::System::hash) as it is provided. Where the budget has no such room, it is not
    /// called, and the batch is [stopped](Self::stop).
    #[inline]
    pub fn write(&mut self, most: usize, write: impl FnOnce(Room<'_>) -> usize) {
        let start = self.len;
        self.len += most;
        let fits = self.len <= self.hashes.len() && self.targets.has_room_for(most);
        if !fits && !self.is_granted(0) {
            // There may be far fewer than there should be room for, but nobody knows.
            self.len = start;
            return;
        }
        let room = Room {
            targets: self.targets.grow(most),
            sources: &mut self.sources[start..start + most],
            actions: &mut self.actions[start..start + most],
            current: self.current,
        };
        let count = write(room);
        assert!(count <= most, "no more than there is room for");
        self.len = start + count;
        self.targets.truncate(self.len);
        for &source in &self.sources[start..self.len] {
            self.moved |= 1 << (source % BLOCK as u8);
        }
        hash::all(&self.targets, start, &mut self.hashes[start..self.len]);
    }

    /// Makes room for `self.len` successors, the last `more` of which are to be written, and where their width varies for this many
    /// slots. If that is not granted, they are written over the first ones: nobody may use the batch now, and it does not grow whatever
    /// the system goes on to make.
    #[cold]
    fn enlarge(&mut self, more: usize, slots: usize) {
        if self.is_granted(slots) {
            return;
        }
        self.len = more;
        self.targets.clear();
        if self.len > self.hashes.len() {
            self.make_room(self.len);
        }
    }

    /// Makes room for `self.len` successors and some to spare, and where their width varies for this many slots more, if the budget
    /// grants it; stops the batch otherwise.
    #[cold]
    fn is_granted(&mut self, slots: usize) -> bool {
        let each = self.bytes_each();
        let spare = self.len.next_power_of_two().max(256);
        let room = if spare * each <= LARGE { spare } else { self.len + self.len / 8 };
        let bytes = (room.max(self.hashes.len()) * LISTS) as u64 + self.targets.bytes_with(room, slots);
        if bytes > SMALL
            && let Some(control) = &self.control
        {
            let more = bytes.saturating_sub(self.granted);
            if !control.budget.request(more) {
                self.stop = self.stop.or(Some(Stop::Memory));
                self.until_asked = 0;
                return false;
            }
            self.granted += more;
        }
        self.make_room(room);
        self.targets.make_room_for_slots(slots);
        true
    }

    /// Bytes of a successor; of its target only where all take the same.
    fn bytes_each(&self) -> usize {
        let target = if let Width::Fixed(slots) = self.targets.width() { slots * size_of::<Slot>() } else { 0 };
        target + LISTS
    }

    fn make_room(&mut self, room: usize) {
        fn extend<T: Copy>(list: &mut Vec<T>, room: usize, value: T) {
            list.reserve_exact(room.saturating_sub(list.len()));
            list.resize(room.max(list.len()), value);
        }
        extend(&mut self.sources, room, 0);
        extend(&mut self.actions, room, Action(0));
        extend(&mut self.hashes, room, 0);
        self.targets.make_room(room);
    }

    /// Records a fault of the current source.
    #[cold]
    pub fn fault(&mut self, action: Option<Action>, message: String) {
        self.moved |= 1 << self.current;
        self.faults.push(Fault { source: self.current, action, message });
    }

    /// Says that the sources set in `sources` have one successor more each, which is skipped: see
    /// [`sleep`](crate::sleep).
    #[inline]
    pub fn leave_out(&mut self, sources: u64) {
        self.left_out += u64::from(sources.count_ones());
        self.moved |= sources;
    }

    /// Counts `count` skipped successors of one source.
    #[inline]
    pub fn leave_out_of(&mut self, source: usize, count: u64) {
        debug_assert!(source < BLOCK);
        self.left_out += count;
        self.moved |= u64::from(count > 0) << source;
    }

    /// Removes the successors whose source and action satisfy `out` and counts them as skipped, as
    /// [`leave_out`](Self::leave_out) does; for systems that generate all successors first.
    pub fn leave_out_where(&mut self, out: impl FnMut(usize, Action) -> bool) {
        self.left_out += self.remove_where(out);
    }

    /// Says that these sources have successors that a reduction leaves away: they are no deadlocks. Nobody follows
    /// such an edge, so it is not counted, other than one that is [skipped](Self::leave_out).
    #[inline]
    pub fn leave_away(&mut self, sources: u64) {
        self.moved |= sources;
    }

    /// Keeps the successors whose source and action satisfy `keep`; the others are [left away](Self::leave_away).
    pub fn keep_where(&mut self, mut keep: impl FnMut(usize, Action) -> bool) {
        self.remove_where(|source, action| !keep(source, action));
    }

    /// Removes the successors and faults whose action does not satisfy `keep`, for a layer that
    /// forbids steps. Faults of states stay.
    pub fn retain(&mut self, mut keep: impl FnMut(Action) -> bool) {
        assert_eq!(self.left_out, 0, "which of the skipped successors would stay is not known");
        self.remove_where(|_, action| !keep(action));
        self.faults.retain(|fault| fault.action.is_none_or(&mut keep));
        let faulty = self.faults.iter().map(|fault| fault.source);
        let moved = self.sources[..self.len].iter().copied().chain(faulty);
        self.moved = moved.fold(self.cut_off, |moved, source| moved | 1 << source);
    }

    /// Removes the successors whose source and action satisfy `out`, and returns their number.
    fn remove_where(&mut self, mut out: impl FnMut(usize, Action) -> bool) -> u64 {
        let mut kept = 0;
        let Batch { targets, len, sources, actions, hashes, .. } = self;
        targets.retain(|index| {
            let stays = !out(sources[index] as usize, actions[index]);
            if stays {
                sources[kept] = sources[index];
                actions[kept] = actions[index];
                hashes[kept] = hashes[index];
                kept += 1;
            }
            stays
        });
        let removed = (*len - kept) as u64;
        self.len = kept;
        removed
    }

    /// Replaces the hashes of all successors from index `start` on, for a layer with its own hash.
    pub fn rehash(&mut self, start: usize, hash: impl Fn(u64) -> u64) {
        self.hashes[start..self.len].iter_mut().for_each(|old| *old = hash(*old));
    }

    /// The index in the block of the current source state.
    pub fn current(&self) -> usize {
        usize::from(self.current)
    }

    /// The number of skipped successors.
    #[inline]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The number of successors.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch holds no successor.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The index in the block of the source state of successor `index`.
    #[inline]
    pub fn source(&self, index: usize) -> usize {
        self.sources[..self.len][index] as usize
    }

    /// The action of successor `index`.
    #[inline]
    pub fn action(&self, index: usize) -> Action {
        self.actions()[index]
    }

    /// How successor `index` was reached, from a state of `block`.
    #[inline]
    pub fn arrival<'b>(&self, block: &'b Block, index: usize) -> Arrival<'b> {
        let source = self.source(index);
        Arrival { parent: Some((block.id(source), block.state(source))), action: self.action(index) }
    }

    /// The actions of all successors.
    #[inline]
    pub fn actions(&self) -> &[Action] {
        &self.actions[..self.len]
    }

    /// Successor `index` itself.
    #[inline]
    pub fn target(&self, index: usize) -> &[Slot] {
        self.targets.get(index)
    }

    /// All successors.
    #[inline]
    pub fn targets(&self) -> &States {
        &self.targets
    }

    /// The hash of successor `index`.
    #[inline]
    pub fn hash(&self, index: usize) -> u64 {
        self.hashes()[index]
    }

    /// The hashes of all successors.
    #[inline]
    pub fn hashes(&self) -> &[u64] {
        &self.hashes[..self.len]
    }

    /// The faults of the block.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// A word with a bit for each source that has a successor or a fault. The others are deadlocks.
    #[inline]
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Bytes that the budget of its control has granted to it.
    pub fn granted_bytes(&self) -> u64 {
        self.granted
    }

    /// The bytes this batch holds on to.
    pub fn held_bytes(&self) -> u64 {
        self.targets.held_bytes()
            + self.sources.capacity() as u64
            + (self.actions.capacity() * size_of::<Action>() + self.hashes.capacity() * size_of::<u64>()) as u64
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(control) = &self.control {
            control.budget.release(self.granted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Budget;
    use std::sync::Arc;

    /// A control with a budget of this many bytes.
    fn control(bytes: u64) -> Control {
        Control { budget: Arc::new(Budget::new(bytes)), ..Control::new() }
    }

    #[test]
    fn what_a_layer_forbids_is_gone_and_may_leave_a_deadlock() {
        let mut batch = Batch::new(Width::Fixed(1));
        for (source, actions) in [(0, [1, 2]), (1, [2, 2]), (3, [2, 4])] {
            batch.begin(source);
            actions.iter().for_each(|&action| batch.push(Action(action), &[action]));
        }
        batch.fault(Some(Action(2)), "forbidden".into());
        batch.begin(4);
        batch.fault(None, "of the state".into());
        batch.cut_off(1 << 5);
        batch.retain(|action| action != Action(2));
        assert_eq!(batch.actions(), [Action(1), Action(4)]);
        assert_eq!((batch.source(1), batch.target(1), batch.hash(1)), (3, &[4][..], hash::slots(&[4])));
        assert_eq!((batch.moved(), batch.faults().len(), batch.left_out()), (0b11_1001, 1, 0));
    }

    #[test]
    fn a_large_batch_asks_its_budget_before_it_grows_and_gives_back_what_it_had() {
        const WIDTH: usize = 1000;
        const LIMIT: u64 = 3 << 20;
        let state = [7; WIDTH];
        type Append = fn(&mut Batch, &[Slot]);
        let ways: [(&str, Append); 3] = [
            ("push", |batch, state| batch.push(Action(1), state)),
            ("grow", |batch, state| batch.grow(Action(1), 1).0.copy_from_slice(state)),
            ("write", |batch, state| {
                batch.write(1, |room| {
                    room.targets.copy_from_slice(state);
                    1
                });
            }),
        ];
        for (name, append) in ways {
            let control = control(LIMIT);
            let mut batch = Batch::new(Width::Fixed(WIDTH)).under(&control);
            for _ in 0..700 {
                append(&mut batch, &state);
            }
            assert_eq!((batch.len(), batch.stop()), (700, None), "{name}");
            assert_eq!(control.budget.used(), batch.granted_bytes(), "{name}");
            assert!(batch.held_bytes() <= batch.granted_bytes(), "{name}");
            // What 700 need, and an eighth.
            assert!(batch.held_bytes() <= 700 * 4013 * 9 / 8 + 4096, "{name}: {}", batch.held_bytes());
            for _ in 0..700 {
                append(&mut batch, &state);
            }
            assert_eq!(batch.stop(), Some(Stop::Memory), "{name}");
            assert!(batch.is_stopped() && batch.held_bytes() <= LIMIT, "{name}: {}", batch.held_bytes());
            // The next block may be smaller.
            batch.reset(Width::Fixed(WIDTH));
            append(&mut batch, &state);
            assert_eq!((batch.len(), batch.stop(), batch.target(0)), (1, None, &state[..]), "{name}");
            drop(batch);
            assert_eq!(control.budget.used(), 0, "{name}");
        }
    }

    #[test]
    fn targets_whose_width_varies_or_has_changed_are_asked_for() {
        const LIMIT: u64 = 3 << 20;
        for (before, width) in [(Width::Varies, Width::Varies), (Width::Fixed(1), Width::Fixed(1000))] {
            let control = control(LIMIT);
            let mut batch = Batch::new(before).under(&control);
            (0..3000).for_each(|number| batch.push(Action(number), &[number]));
            batch.reset(width);
            let mut pushed = 0;
            while batch.stop().is_none() {
                let held = batch.held_bytes();
                assert!(held <= batch.granted_bytes().max(SMALL), "{width:?}: {held} after {pushed}");
                batch.push(Action(1), &[7; 1000]);
                pushed += 1;
            }
            // It did not stop long before its limit.
            assert!((500..800).contains(&pushed), "{width:?}: {pushed}");
            (0..1000).for_each(|_| batch.push(Action(1), &[7; 1000]));
            assert!(batch.held_bytes() <= LIMIT, "{width:?}: {}", batch.held_bytes());
        }
    }

    #[test]
    fn small_batches_ask_nobody() {
        let control = control(0);
        let mut batch = Batch::new(Width::Fixed(2)).under(&control);
        (0..1000).for_each(|number| batch.push(Action(number), &[number, number]));
        assert_eq!((batch.len(), batch.stop(), batch.target(999)), (1000, None, &[999, 999][..]));
    }
}
