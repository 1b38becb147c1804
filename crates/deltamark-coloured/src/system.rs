//! A coloured net as a [`System`].
//!
//! In: a [`Net`]. Out: states and their successors. What stays true: a state holds for each place the number
//! of its marking; a number that outgrows its field makes the system request a wider layout. Threads see a
//! new layout at their next call, through a version number.
//!
//! ```text
//! state    [ 3 | 0 | 17 | 1 ]              numbers of markings, a few bits each
//!            │
//! place 0    └▶ marking 3 = 1'(0,1) ++ 1'(0,2)
//!
//! step     enabled actions of the state    bindings/bind.rs: a walk along the tokens
//!          for each place that changes     system/steps.rs: (marking 3, effect 5) ─▶ marking 8
//!          and the hash with it            linear in the tokens, so an action adds the same in every state
//! ```

pub(crate) mod layout;
mod portable;
pub(crate) mod sleep;
mod slot_hashes;
pub(crate) mod steps;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use deltamark_core::{
    Action, Batch, Block, Bytes, Control, Describe, Diagnostic, Exchange, Fired, Layout, Observe, Portable, Progress,
    Recoding, Reversible, Scratch, Slot, States, System, Undone, Widen, Width,
};

use deltamark_nets::Ahead;

use crate::bindings::bind::Binder;
use crate::bindings::reuse::{Reuse, Spot};
use crate::engine::{After, Engine};
use crate::net::{Fault, Net};
use crate::system::layout::{bits_for, fill, lay_out};
use crate::system::sleep::Sleep;
use crate::system::slot_hashes::SlotHashes;
use crate::system::steps::Steps;
use crate::tables::place::View;

/// The number of changes of an action that is a fault.
const FAULT: u32 = u32::MAX;
/// Added to the number of changes of an action that empties a place.
const RESETS: u32 = 1 << 31;
/// The changes that are listed between two polls of the control.
const CHANGES: usize = 256;
/// The maximum number of places that get unused bits.
const MOST_FILLED: usize = 64;

/// Fields that are widened early: see [`Ahead`].
struct Early {
    ahead: Ahead,
    /// The bits that each place has kept since it was widened early; 0 if it was not.
    least: Vec<u8>,
}

/// A coloured net that can be run.
pub struct ColouredSystem {
    pub(crate) engine: Engine,
    current: RwLock<Arc<Current>>,
    /// The slots of a state, and the version of the layout: outside the lock, because all threads read them
    /// all the time, and locking `current` writes to its cache line.
    slots: AtomicUsize,
    version: AtomicU64,
    /// Which fields are widened early.
    early: Mutex<Early>,
    /// Bytes of the threads' caches.
    thread_bytes: Arc<AtomicU64>,
    /// Their maximum: threads have ended when a report is made.
    most_thread_bytes: AtomicU64,
    /// Places that take bits, and what all others add to the hash of a state.
    changing: Vec<u32>,
    constant_hash: u64,
    /// For each place a bit for each marking that a survey has met.
    pub(crate) surveyed: Mutex<Vec<Vec<u64>>>,
}

/// The layout in use.
pub(crate) struct Current {
    pub layout: Layout,
    version: u64,
}

impl Current {
    /// The number of a place's marking in a state.
    #[inline]
    pub fn marking(&self, state: &[Slot], place: u32) -> u32 {
        self.layout.fields[place as usize].read_slot(state)
    }

    /// Appends the numbers of all markings of a state.
    #[inline]
    pub fn markings(&self, state: &[Slot], out: &mut Vec<u32>) {
        out.extend(self.layout.fields.iter().map(|field| field.read_slot(state)));
    }
}

/// Working memory of a thread.
pub(crate) struct ColouredWorkspace {
    pub current: Arc<Current>,
    pub binder: Binder,
    steps: Steps,
    slot_hashes: SlotHashes,
    sleep: Sleep,
    reuse: Reuse,
    /// The markings of the current states, one row a state.
    pub markings: Vec<u32>,
    /// The positions of their entries in the cache of bindings, one row a state.
    spots: Vec<Spot>,
    /// The enabled actions of the state expanded last.
    pub found: Vec<u32>,
    pub faults: Vec<(u32, Fault)>,
    target: Vec<Slot>,
    /// Steps that are to be taken: which state, which action, how many places it changes, and what it adds to the hash.
    todo: Vec<(u32, u32, u32, u64)>,
    /// The places that these change, in one list, and their effects.
    moves: Vec<(u32, u32)>,
    /// Places whose views the search for bindings needs in every state, and the views, one row a state.
    viewed: Vec<u32>,
    views: Vec<View>,
    counted: u64,
    /// Approximate bytes allocated since.
    grown: usize,
    thread_bytes: Arc<AtomicU64>,
}

impl Drop for ColouredWorkspace {
    fn drop(&mut self) {
        self.thread_bytes.fetch_sub(self.counted, Relaxed);
    }
}

/// One of several rows of equal length.
#[inline]
fn row_of<T>(rows: &[T], width: usize, row: usize) -> &[T] {
    &rows[row * width..(row + 1) * width]
}

impl ColouredSystem {
    /// Makes a net ready to run; `text` is what its spans point into.
    pub fn new(net: Net, text: &str) -> Result<Self, Vec<Diagnostic>> {
        Self::under(net, text, &Control::new())
    }

    /// The same, unless `control` stops it.
    pub fn under(net: Net, text: &str, control: &Control) -> Result<Self, Vec<Diagnostic>> {
        let engine = Engine::new(net, text, control)?;
        let bits: Vec<u8> = engine
            .changing()
            .into_iter()
            .zip(&engine.places)
            .map(|(changes, place)| if changes { bits_for(place.marking_count()) } else { 0 })
            .collect();
        let layout = lay_out(&bits, &engine.initial, 0);
        let (changing, constant): (Vec<u32>, Vec<u32>) =
            (0..bits.len() as u32).partition(|&place| bits[place as usize] > 0);
        let hash = |&place: &u32| engine.places[place as usize].marking_hash(engine.initial[place as usize]);
        let constant_hash = constant.iter().map(hash).fold(0, u64::wrapping_add);
        Ok(ColouredSystem {
            engine,
            slots: AtomicUsize::new(layout.slots),
            current: RwLock::new(Arc::new(Current { layout, version: 0 })),
            version: AtomicU64::new(0),
            early: Mutex::new(Early { ahead: Ahead::default(), least: vec![0; bits.len()] }),
            thread_bytes: Arc::new(AtomicU64::new(0)),
            most_thread_bytes: AtomicU64::new(0),
            changing,
            constant_hash,
            surveyed: Mutex::default(),
        })
    }

    /// The net.
    pub fn net(&self) -> &Net {
        &self.engine.net
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// This thread's working memory, updated to the current layout.
    #[inline]
    pub(crate) fn work<'s>(&self, scratch: &'s mut Scratch) -> &'s mut ColouredWorkspace {
        let work: &mut ColouredWorkspace = scratch.get();
        if work.current.version != self.version.load(Acquire) {
            work.current = self.current();
            work.slot_hashes = SlotHashes::new(&work.current.layout);
        }
        work
    }

    /// Places that take bits, in every run the same.
    pub(crate) fn changing(&self) -> &[u32] {
        &self.changing
    }

    /// Reads a state and finds its enabled actions, only those of the highest priority.
    pub(crate) fn look(&self, work: &mut ColouredWorkspace, state: &[Slot]) {
        work.markings.clear();
        work.spots.clear();
        work.current.markings(state, &mut work.markings);
        work.reuse.spots(&work.markings, &mut work.spots);
        self.view_all(work, 1);
        self.look_at(work, 0);
    }

    /// Views the places of all states that the search for bindings needs.
    fn view_all(&self, work: &mut ColouredWorkspace, count: usize) {
        let ColouredWorkspace { reuse, markings, viewed, views, .. } = work;
        viewed.clear();
        views.clear();
        if !reuse.searching(|places| viewed.extend_from_slice(places)) {
            return;
        }
        viewed.sort_unstable();
        viewed.dedup();
        let tables = &self.engine.places;
        for row in 0..count {
            let markings = row_of(markings, tables.len(), row);
            views.extend(viewed.iter().map(|&place| tables[place as usize].view(markings[place as usize])));
        }
        let mut touched = 0;
        for (number, &place) in viewed.iter().enumerate() {
            let table = &tables[place as usize];
            for view in views.iter().skip(number).step_by(viewed.len()).filter(|view| !view.exact) {
                touched ^= table.touch(*view);
            }
        }
        std::hint::black_box(touched);
    }

    /// Finds the enabled actions of state number `row`, which was read.
    fn look_at(&self, work: &mut ColouredWorkspace, row: usize) {
        let ColouredWorkspace { binder, reuse, markings, spots, found, faults, viewed, views, .. } = work;
        for (&place, &view) in viewed.iter().zip(row_of(views, viewed.len(), row)) {
            binder.put_view(place, view);
        }
        let markings = row_of(markings, self.engine.places.len(), row);
        let spots = row_of(spots, reuse.groups(), row);
        found.clear();
        faults.clear();
        reuse.enabled(&self.engine, binder, markings, spots, found, faults);
        if self.engine.prioritised {
            self.keep_urgent(markings, found, faults);
        }
    }

    fn keep_urgent(&self, markings: &[u32], found: &mut Vec<u32>, faults: &mut Vec<(u32, Fault)>) {
        let mut priorities = Vec::with_capacity(found.len());
        found.retain(|&action| match self.engine.priority(action, markings) {
            Ok(priority) => {
                priorities.push(priority);
                true
            }
            Err(fault) => {
                faults.push((self.engine.actions.get(action).transition(), fault));
                false
            }
        });
        if let Some(&most) = priorities.iter().max() {
            let mut priorities = priorities.iter();
            found.retain(|_| priorities.next() == Some(&most));
        }
    }

    /// Appends the successors of states, without those that sleep sets skip: `arrival` is the action that
    /// reached a state, [`Action::NONE`] skips nothing. The first state is number `first` of its block.
    ///
    /// Table entries are prefetched for all of the states, so that cache misses overlap.
    fn expand_all<'a>(
        &self,
        work: &mut ColouredWorkspace,
        count: usize,
        state: impl Fn(usize) -> &'a [Slot],
        first: usize,
        arrival: impl Fn(usize) -> Action,
        out: &mut Batch,
    ) -> Result<(), Widen> {
        self.engine.room.of(out.control());
        work.markings.clear();
        work.spots.clear();
        work.todo.clear();
        work.moves.clear();
        let places = self.engine.places.len();
        for row in 0..count {
            work.current.markings(state(row), &mut work.markings);
            work.reuse.spots(row_of(&work.markings, places, row), &mut work.spots);
        }
        self.view_all(work, count);
        if let Some(control) = out.control() {
            work.binder.watch(control);
            self.engine.values.limit(control);
        }
        let mut touched = 0;
        for row in 0..count {
            if out.is_stopped() {
                return Ok(());
            }
            out.begin(first + row);
            self.look_at(work, row);
            if let Some(stop) = work.binder.stopped() {
                // The bindings found are incomplete and must not be reused.
                work.binder = Binder::new(&self.engine);
                work.reuse = Reuse::new(&self.engine);
                out.halt(stop);
                return Ok(());
            }
            let ColouredWorkspace { steps, sleep, markings, found, faults, todo, moves, .. } = work;
            let markings = row_of(markings, places, row);
            for (transition, fault) in faults.drain(..) {
                if fault.kind.is_limit() {
                    out.cut_off(1 << out.current());
                    continue;
                }
                out.fault(None, self.engine.message(&fault, Some(transition)));
            }
            let arrival = arrival(row);
            let mut poll = moves.len() + CHANGES;
            for &number in found.iter() {
                // The list of all their changes may be larger than the successors.
                if moves.len() >= poll {
                    poll = moves.len() + CHANGES;
                    if out.is_stopped() {
                        return Ok(());
                    }
                }
                if sleep.skips(&self.engine, arrival, number, markings) {
                    out.leave_out(1 << out.current());
                    continue;
                }
                let action = self.engine.actions.get(number);
                if action.is_fault() {
                    todo.push((row as u32, number, FAULT, 0));
                    continue;
                }
                let before = moves.len();
                for (place, effect) in action.changes() {
                    touched ^= steps.touch(markings[place as usize], effect);
                    moves.push((place, effect));
                }
                let resets = if action.resets() { RESETS } else { 0 };
                todo.push((row as u32, number, (moves.len() - before) as u32 | resets, action.hash()));
            }
        }
        std::hint::black_box(touched);
        self.fire_all(work, count, state, first, out)
    }

    /// Takes the pending steps, in the order of states.
    fn fire_all<'a>(
        &self,
        work: &mut ColouredWorkspace,
        count: usize,
        state: impl Fn(usize) -> &'a [Slot],
        first: usize,
        out: &mut Batch,
    ) -> Result<(), Widen> {
        let ColouredWorkspace { current, steps, slot_hashes, markings, todo, moves, target, .. } = work;
        let (mut todo, mut moves) = (todo.iter().copied().peekable(), moves.as_slice());
        for row in 0..count {
            let source = state(row);
            let markings = row_of(markings, self.engine.places.len(), row);
            let add = |place: u32| self.engine.places[place as usize].marking_hash(markings[place as usize]);
            let hash = self.constant_hash.wrapping_add(slot_hashes.sum(source, add));
            out.begin(first + row);
            target.clear();
            target.extend_from_slice(source);
            'actions: while let Some((_, number, len, added)) = todo.next_if(|&(of, ..)| of as usize == row) {
                if out.is_stopped() {
                    break;
                }
                if len == FAULT && self.is_unknown(number) {
                    out.cut_off(1 << out.current());
                    continue;
                }
                if len == FAULT {
                    out.fault(Some(Action(number)), self.fault_of(number));
                    continue;
                }
                let changes;
                (changes, moves) = moves.split_at((len & !RESETS) as usize);
                target.copy_from_slice(source);
                let mut beyond = false;
                for &(place, effect) in changes {
                    let field = &current.layout.fields[place as usize];
                    let before = markings[place as usize];
                    match steps.after(&self.engine, place, before, effect) {
                        After::Marking(marking) if u64::from(marking) <= field.mask() => {
                            field.write_slot(target, marking);
                        }
                        After::Marking(_) => return Err(Widen),
                        // If another place exceeds its capacity, it is a fault.
                        After::Exceeded if self.engine.net.places[place as usize].capacity.is_none() => beyond = true,
                        After::Exceeded => {
                            out.fault(Some(Action(number)), self.engine.exceeded(place));
                            continue 'actions;
                        }
                        After::Impossible => unreachable!("what an enabled action takes is there"),
                    }
                }
                if beyond {
                    out.cut_off(1 << out.current());
                    continue;
                }
                // What is lost with a place's tokens is not known beforehand.
                let hash = if len & RESETS == 0 {
                    hash.wrapping_add(added)
                } else {
                    let add =
                        |place: u32| self.engine.places[place as usize].marking_hash(current.marking(target, place));
                    self.constant_hash.wrapping_add(slot_hashes.sum(target, add))
                };
                out.push_hashed(Action(number), target, hash);
            }
        }
        self.account(work);
        Ok(())
    }

    /// Whether the effect of an action is unknown, because its evaluation reached a bound.
    fn is_unknown(&self, action: u32) -> bool {
        self.engine.actions.fault(action).is_some_and(|fault| fault.kind.is_limit())
    }

    fn fault_of(&self, action: u32) -> String {
        let transition = self.engine.actions.get(action).transition();
        match self.engine.actions.fault(action) {
            Some(fault) => self.engine.message(&fault, Some(transition)),
            None => "a fault".into(),
        }
    }

    /// Updates the count of this thread's bytes, now and then.
    fn account(&self, work: &mut ColouredWorkspace) {
        let ColouredWorkspace { binder, steps, sleep, reuse, .. } = work;
        work.grown += binder.take_grown() + steps.take_grown() + sleep.take_grown() + reuse.take_grown();
        // Counting exactly visits everything.
        if work.grown as u64 > work.counted / 8 {
            work.grown = 0;
            let bytes = (binder.bytes() + steps.bytes() + sleep.bytes() + reuse.bytes()) as u64;
            let all = work.thread_bytes.fetch_add(bytes, Relaxed) + bytes;
            work.thread_bytes.fetch_sub(work.counted, Relaxed);
            self.most_thread_bytes.fetch_max(all - work.counted, Relaxed);
            work.counted = bytes;
        }
    }

    /// Whether an action is enabled in these markings, regardless of its result.
    fn can(&self, work: &mut ColouredWorkspace, state: &[Slot], action: u32) -> Result<bool, Fault> {
        let engine = &self.engine;
        work.markings.clear();
        work.current.markings(state, &mut work.markings);
        let known = engine.actions.get(action);
        let there = known.requirements().all(|(place, token, count)| {
            engine.places[place as usize].holds(work.markings[place as usize], token, count)
        });
        if !there || !engine.allowed(action, &work.markings, None)? {
            return Ok(false);
        }
        if engine.prioritised {
            self.look(work, state);
            return Ok(work.found.contains(&action));
        }
        Ok(true)
    }

    /// Writes the state before an action, if each of its local markings has occurred; returns what to add to
    /// the hash of the state after it.
    fn undo(&self, work: &mut ColouredWorkspace, target: &[Slot], action: u32, source: &mut [Slot]) -> Option<u64> {
        // A fault leads to no state.
        if self.engine.actions.get(action).is_fault() {
            return None;
        }
        source.copy_from_slice(target);
        let fields = &work.current.layout.fields;
        for (place, effect) in self.engine.actions.get(action).changes() {
            let field = &fields[place as usize];
            let after = field.read_slot(target);
            match work.steps.before(&self.engine, place, after, effect) {
                After::Marking(marking) if u64::from(marking) <= field.mask() => {
                    field.write_slot(source, marking);
                }
                _ => return None,
            }
        }
        (self.can(work, source, action) == Ok(true)).then(|| self.engine.actions.get(action).hash().wrapping_neg())
    }
}

impl System for ColouredSystem {
    fn width(&self) -> Width {
        Width::Fixed(self.slots.load(Acquire))
    }

    fn scratch(&self) -> Scratch {
        let current = self.current();
        Scratch::new(ColouredWorkspace {
            slot_hashes: SlotHashes::new(&current.layout),
            current,
            binder: Binder::new(&self.engine),
            steps: Steps::new(),
            sleep: Sleep::default(),
            reuse: Reuse::new(&self.engine),
            spots: Vec::new(),
            todo: Vec::new(),
            moves: Vec::new(),
            viewed: Vec::new(),
            views: Vec::new(),
            markings: Vec::new(),
            found: Vec::new(),
            faults: Vec::new(),
            target: Vec::new(),
            counted: 0,
            grown: 0,
            thread_bytes: Arc::clone(&self.thread_bytes),
        })
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let work = self.work(scratch);
        let mut state = Vec::new();
        work.current.layout.pack(self.engine.initial.iter().copied().map(i64::from), &mut state);
        let hash = System::hash(self, scratch, &state);
        out.push_hashed(Action(0), &state, hash);
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let work = self.work(scratch);
        let current = out.current();
        self.expand_all(work, 1, |_| source, current, |_| Action::NONE, out)
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        let work = self.work(scratch);
        self.expand_all(work, block.len(), |row| block.state(row), 0, |_| Action::NONE, out)
    }

    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        _: &deltamark_core::Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        let work = self.work(scratch);
        self.expand_all(work, block.len(), |row| block.state(row), 0, |index| arrivals[index], out)
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let work = self.work(scratch);
        if action.0 >= self.engine.actions.count() || self.can(work, source, action.0) != Ok(true) {
            return Ok(Fired::Disabled);
        }
        let known = self.engine.actions.get(action.0);
        // See `Batch::cut_off`.
        if known.is_fault() && self.is_unknown(action.0) {
            return Ok(Fired::Disabled);
        }
        if known.is_fault() {
            return Ok(Fired::Fault(self.fault_of(action.0)));
        }
        target.clear();
        target.extend_from_slice(source);
        let mut beyond = false;
        for (place, effect) in known.changes() {
            let field = &work.current.layout.fields[place as usize];
            match work.steps.after(&self.engine, place, field.read_slot(source), effect) {
                After::Marking(marking) if u64::from(marking) <= field.mask() => field.write_slot(target, marking),
                After::Marking(_) => return Err(Widen),
                // Beyond the counting range: see `Batch::cut_off`.
                After::Exceeded if self.engine.net.places[place as usize].capacity.is_none() => beyond = true,
                After::Exceeded => return Ok(Fired::Fault(self.engine.exceeded(place))),
                After::Impossible => return Ok(Fired::Disabled),
            }
        }
        Ok(if beyond { Fired::Disabled } else { Fired::Done })
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        let work = self.work(scratch);
        let ColouredWorkspace { current, steps, .. } = work;
        for (source, action) in sources.iter().zip(actions) {
            let target = targets.push_with(source.len());
            target.copy_from_slice(source);
            for (place, effect) in self.engine.actions.get(action.0).changes() {
                let field = &current.layout.fields[place as usize];
                match steps.after(&self.engine, place, field.read_slot(source), effect) {
                    After::Marking(marking) if u64::from(marking) <= field.mask() => field.write_slot(target, marking),
                    other => panic!("a step that was taken can be taken again: {other:?}"),
                }
            }
        }
        self.account(work);
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        let ColouredWorkspace { current, slot_hashes, .. } = self.work(scratch);
        let add = |place: u32| self.engine.places[place as usize].marking_hash(current.marking(state, place));
        self.constant_hash.wrapping_add(slot_hashes.sum(state, add))
    }

    fn widen(&self) -> Recoding {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let old = Arc::clone(&current);
        // Unused bits given to a place are not kept: others may need them now.
        let mut bits = vec![0; self.engine.places.len()];
        let (mut widened, mut outgrown) = (Vec::new(), Vec::new());
        for (number, (place, field)) in self.engine.places.iter().zip(&old.layout.fields).enumerate() {
            if field.bits() == 0 {
                continue;
            }
            bits[number] = bits_for(place.marking_count());
            if bits[number] > field.bits() {
                widened.push(self.engine.net.places[number].name.as_str());
                outgrown.push((number, field.bits()));
            } else if u64::from(place.marking_count()) * 8 > 7 << bits[number] {
                // It would outgrow the field soon, and recoding all states twice costs more than a bit.
                bits[number] = (bits[number] + 1).min(32);
            }
        }
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ahead: Vec<u8> =
            bits.iter().zip(&old.layout.fields).map(|(&bits, field)| bits.max(field.bits())).collect();
        let before = ahead.clone();
        early.ahead.widen(&mut ahead, &outgrown, 31);
        for (number, bits) in bits.iter_mut().enumerate() {
            if ahead[number] > before[number] {
                early.least[number] = ahead[number];
            }
            *bits = early.least[number].max(*bits);
        }
        drop(early);
        let reason = match widened.as_slice() {
            [one] => format!("the markings of place `{one}` outgrew their field"),
            [first, rest @ ..] => {
                format!("the markings of place `{first}` and {} others outgrew their fields", rest.len())
            }
            [] => "nothing outgrew its field".into(),
        };
        let mut order: Vec<usize> = (0..bits.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(self.engine.places[number].marking_count()));
        // Nets of very many places do not grow place by place.
        order.truncate(MOST_FILLED);
        let layout = fill(bits, &self.engine.initial, old.layout.slots, &order);
        let new = Arc::new(Current { layout, version: old.version + 1 });
        *current = Arc::clone(&new);
        self.slots.store(new.layout.slots, Release);
        self.version.store(new.version, Release);
        Recoding::between(&old.layout, &new.layout, reason)
    }

    fn tables(&self) -> Bytes {
        self.engine.bytes().with("remembered", self.most_thread_bytes.load(Relaxed))
    }

    fn table_bytes(&self) -> u64 {
        self.engine.meter.bytes() + self.thread_bytes.load(Relaxed)
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        if self.engine.resets { None } else { Some(self) }
    }

    fn exchange(&self) -> Option<&dyn Exchange> {
        if self.engine.prioritised { None } else { Some(self) }
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }

    fn progress(&self) -> Option<&dyn Progress> {
        Some(self)
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl Exchange for ColouredSystem {
    fn exchangeable(&self, a: Action, b: Action) -> bool {
        let [a, b] = [a, b].map(|action| self.engine.actions.get(action.0));
        sleep::exchangeable(&self.engine, a, b)
    }
}

impl Reversible for ColouredSystem {
    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        let work = self.work(scratch);
        source.clear();
        source.resize(target.len(), 0);
        action.0 < self.engine.actions.count() && self.undo(work, target, action.0, source).is_some()
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let hash = self.hash(scratch, target);
        let work = self.work(scratch);
        let mut source = vec![0; target.len()];
        for action in 0..self.engine.actions.count() {
            if out.is_stopped() {
                return;
            }
            if !self.engine.actions.get(action).is_fault()
                && let Some(moved) = self.undo(work, target, action, &mut source)
            {
                out.push_hashed(Action(action), &source, hash.wrapping_add(moved));
            }
        }
    }

    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        let work = self.work(scratch);
        let mut source = Vec::new();
        for (number, (target, &action)) in targets.iter().zip(actions).enumerate() {
            source.resize(target.len(), 0);
            if action.0 < self.engine.actions.count()
                && let Some(moved) = self.undo(work, target, action.0, &mut source)
            {
                out.states.push(&source);
                out.hashes.push(hashes[number].wrapping_add(moved));
                out.from.push(number as u32);
            }
        }
        self.account(work);
    }
}
