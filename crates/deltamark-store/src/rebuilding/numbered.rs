//! A store of numbered states most of which are rebuilt on demand: the common part of the stores
//! `delta` and `comback`.
//!
//! In: states and how they were reached. Out: whether each is new, and its number. Invariant: a
//! state is reported as a duplicate only after comparison with a full state, or after a walk that
//! ends in one.
//!
//! ```text
//! state ─hash─▶ table ─▶ numbers ─┬─ in the window: compare
//!                                 └─ older: walk back, all of a batch together (rebuild.rs)
//! ```
//! # A batch
//! 1. The table returns candidates. Those in the window (the current level, the previous one and
//!    the next, which contain most duplicates) are compared at once.
//! 2. The others are confirmed together.
//! 3. The rest is new; equal successors are merged into the first. In level order they are numbered
//!    by source, so that parents never decrease. Room for all of them is made first; if that fails,
//!    states are inserted one by one, in the order of the batch, until the first that finds no
//!    room.
//!
//! # Memory
//! Everything but working memory was granted by the budget. Of the window, the current level and
//! the next one count as frontier; the previous level only saves time, counts as part of the store,
//! and is dropped when memory runs short.

mod batch;
mod forget;

pub(crate) use forget::Forget;

use crate::rebuilding::spanning::{Exception, Exceptions, From, NONE, Spanning};
use crate::rebuilding::walk::{Candidates, Coded, Rebuilder, WalkScratch, piece};
use crate::states::cache::Cache;
use crate::states::checkpoints::Checkpoints;
use crate::states::together;
use crate::states::window::Window;
use crate::tables::quotient::Quotient;
use deltamark_core::packed::bits_of;
use deltamark_core::{
    Action, Arrival, Attached, Batch, Block, Budget, Bytes, Control, Guarantee, Ids, Insert, Order, Recall, Recoding,
    Scratch, Slot, StateId, States, Stop, Store, System, Trace, Width, hash::mix,
};
use forget::Strata;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which states are kept in full beside the initial ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// Every n-th level; in any order, those that would take this many steps to rebuild.
    Every(u64),
    /// As many levels as an eighth of a byte for each state allows, and more where walks are long; half a byte
    /// where steps cannot be undone, and in any order.
    Share,
    /// None.
    Never,
}

/// How a store of this kind works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// Bits of the hash that the table distinguishes.
    pub signature: u32,
    /// Whether these become more as states do.
    pub grows: bool,
    /// Which states are kept in full.
    pub full: Full,
    /// Whether candidates are checked by undoing steps, where that is possible.
    pub backward: bool,
    /// Whether back edges are pointed to parents with shorter chains.
    pub shorten: bool,
    /// Whether the current levels are kept in full, in level order.
    pub window: bool,
    /// Whether states are given back by their number.
    pub recalls: bool,
    /// Whether the candidates of a batch are confirmed together.
    pub together: bool,
    /// How many full states are cached.
    pub cache: u64,
    /// How many bits of an action are stored; 0 for all.
    pub action_bits: u32,
    /// Which states may be forgotten, in level order.
    pub forget: Forget,
}

impl Config {
    /// How a store works that says nothing else.
    pub const USUAL: Config = Config {
        signature: 24,
        grows: true,
        full: Full::Share,
        backward: true,
        shorten: false,
        window: true,
        recalls: true,
        together: true,
        cache: 0,
        action_bits: 0,
        forget: Forget::Never,
    };
}

/// The most bits a signature has: as many again are left for numbers.
pub(crate) const MOST_SIGNATURE: u32 = 32;
/// By how many bits a signature grows when there are a quarter more states than it has values.
const SIGNATURE_STEP: u32 = 2;
/// Where walks take more steps back than this for each state of a level, more levels are kept in full …
const LONG_WALKS: u64 = 4;
/// … as long as everything stays below this many hundredths of a byte a state.
const MOST_BYTES: u64 = 590;
/// No answer yet.
const OPEN: u64 = u64::MAX;

/// A store of numbered states.
pub(crate) struct Numbered<'a> {
    recalls: bool,
    forgets: bool,
    inner: Mutex<NumberedTables<'a>>,
    attached: Attached,
}

struct NumberedTables<'a> {
    config: Config,
    budget: Arc<Budget>,
    rebuilder: Rebuilder<'a>,
    /// How many levels have ended.
    level: u64,
    /// Levels from the last one kept in full to the current one.
    since_kept: u64,
    /// The number of the first state of the level under construction.
    level_start: u64,
    /// The number of the first state of the current level.
    hand_start: u64,
    /// Bytes of the window that hold the level before the current one.
    before_bytes: u64,
    /// Set when the table was lost for lack of memory: nothing more goes in.
    lost: bool,
    batch: Lookup,
    /// The levels, if some may be forgotten.
    strata: Option<Strata>,
}

/// Working memory of a batch.
struct Lookup {
    mixed: Vec<u64>,
    /// New successors that are equal to an earlier one, and that one.
    copies: Vec<(u32, u32)>,
    /// For each successor the number that it has, or [`OPEN`].
    numbers: Vec<u64>,
    heads: Vec<u32>,
    near: Vec<(u32, u64)>,
    far: Vec<(u32, u64)>,
    confirmed: Vec<(u32, u64)>,
    who: Vec<u32>,
    new: Vec<u32>,
    found: Vec<bool>,
    parents: Vec<u64>,
    chains: Vec<u64>,
    candidates: Candidates,
    one: Candidates,
}

impl<'a> Numbered<'a> {
    /// An empty store. States kept in full go to `base`, if there is one.
    pub fn new(
        config: Config,
        system: &'a dyn System,
        order: Order,
        base: Option<Box<dyn Store + 'a>>,
        budget: Arc<Budget>,
    ) -> Self {
        let width = system.width();
        let window = (order == Order::Levels && config.window).then(|| Window::new(width, &budget));
        let coded = (config.action_bits > 0).then(|| Coded {
            bits: config.action_bits,
            choices: Exceptions::new(&budget),
            // It only asks for memory: it must not end in the middle of a walk.
            batch: Batch::new(width).under(&Control { budget: Arc::clone(&budget), ..Control::new() }),
        });
        let rebuilder = Rebuilder {
            system,
            reversible: system.reversible().filter(|_| config.backward && coded.is_none()),
            scratch: system.scratch(),
            order,
            tree: Spanning::new(order, &budget),
            kept: base.map_or_else(|| Checkpoints::own(width, &budget), |base| Checkpoints::in_store(base, &budget)),
            window,
            cache: Cache::new(config.cache, &budget),
            table: Quotient::new(config.signature, 1, Arc::clone(&budget)),
            coded,
            work: WalkScratch::new(width),
        };
        let batch = Lookup {
            mixed: Vec::new(),
            copies: Vec::new(),
            numbers: Vec::new(),
            heads: Vec::new(),
            near: Vec::new(),
            far: Vec::new(),
            confirmed: Vec::new(),
            who: Vec::new(),
            new: Vec::new(),
            found: Vec::new(),
            parents: Vec::new(),
            chains: Vec::new(),
            candidates: Candidates::new(width),
            one: Candidates::new(width),
        };
        let attached = Attached::new(Ids::Dense, &budget);
        let strata = Strata::new(config.forget, &budget);
        debug_assert!(strata.is_none() || order == Order::Levels, "levels are forgotten");
        let forgets = strata.is_some();
        let inner = NumberedTables {
            config,
            strata,
            budget,
            rebuilder,
            level: 0,
            since_kept: 0,
            level_start: 0,
            hand_start: 0,
            before_bytes: 0,
            lost: false,
            batch,
        };
        Numbered { recalls: config.recalls, forgets, inner: Mutex::new(inner), attached }
    }

    fn lock(&self) -> MutexGuard<'_, NumberedTables<'a>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NumberedTables<'_> {
    fn len(&self) -> u64 {
        self.rebuilder.tree.len()
    }

    /// The number of a state that is there.
    fn find(&mut self, state: &[Slot], hash: u64) -> Option<u64> {
        let NumberedTables { rebuilder, batch, config, .. } = self;
        let Lookup { far, candidates, found, one, .. } = batch;
        far.clear();
        rebuilder.table.probe(mix(hash), |number| far.push((0, number)));
        if let Some(window) = &rebuilder.window {
            let near = far.iter().find(|near| near.1 >= window.numbers().start && window.get(near.1) == state);
            if let Some(near) = near {
                return Some(near.1);
            }
            let start = window.numbers().start;
            far.retain(|far| far.1 < start);
        }
        for piece in far.chunks(piece(rebuilder.system.width())) {
            candidates.reset(rebuilder.system.width());
            for &(_, number) in piece {
                candidates.push(state, hash, number);
            }
            confirm(rebuilder, config.together, candidates, one, found);
            if let Some(index) = found.iter().position(|&found| found) {
                let number = candidates.numbers[index];
                rebuilder.cache.put(number, state);
                return Some(number);
            }
        }
        None
    }

    /// Makes room for `more` states of `slots` slots in all.
    fn reserve(&mut self, more: u64, slots: u64, most_parent: u64, most_action: Action) -> bool {
        let len = self.len();
        let payload = bits_of((len + more - 1).max(1));
        if self.lost || payload + MOST_SIGNATURE > 64 {
            return false;
        }
        let crowded = (len + more) * 4 > 5 << self.config.signature;
        if self.config.grows && self.config.signature < MOST_SIGNATURE && crowded && !self.has_forgotten() {
            self.sign_again();
        }
        if self.reserve_parts(more, slots, most_parent, most_action, payload) {
            return true;
        }
        // The level before the current one only saves time.
        if self.before_bytes > 0 {
            self.forget_before();
            if self.reserve_parts(more, slots, most_parent, most_action, payload) {
                return true;
            }
        }
        while self.forget_some() {
            if self.reserve_parts(more, slots, most_parent, most_action, payload) {
                return true;
            }
        }
        false
    }

    /// Lets go of the level before the current one.
    fn forget_before(&mut self) {
        if let Some(window) = &mut self.rebuilder.window {
            window.forget(self.hand_start);
        }
        self.before_bytes = 0;
    }

    fn reserve_parts(&mut self, more: u64, slots: u64, most_parent: u64, most_action: Action, payload: u32) -> bool {
        let rebuilder = &mut self.rebuilder;
        let in_full = rebuilder.window.as_mut().is_none_or(|window| window.reserve(more, slots));
        // In any order the place of a state kept in full is where its parent would be.
        in_full
            && rebuilder.tree.reserve(more, most_parent.max(rebuilder.kept.len() + more), most_action)
            && rebuilder.table.reserve_surely(more, payload.max(rebuilder.table.payload_bits()))
    }

    /// Replaces the table by one of longer signatures. The table is a function of the states: the
    /// old one is given up first, so that there are never two, and all states are rebuilt once.
    #[cold]
    fn sign_again(&mut self) {
        let len = self.len();
        let old = self.config.signature;
        let new = (old + SIGNATURE_STEP).min(MOST_SIGNATURE);
        // A little more than what the longer signatures take.
        let more = len * u64::from(new - old) / 8 * 3 / 2;
        if !self.budget.request(more) {
            return;
        }
        self.budget.release(more);
        for signature in [new, old] {
            let budget = Arc::clone(&self.budget);
            self.rebuilder.table = Quotient::new(1, 1, Arc::clone(&budget));
            self.rebuilder.table = Quotient::new(signature, bits_of(len.max(1)), budget);
            if self.rebuilder.table.reserve(len, bits_of(len.max(1))) && self.sign_all() {
                self.config.signature = signature;
                return;
            }
        }
        // The budget was shared, and somebody else was quicker.
        self.lost = true;
    }

    fn sign_all(&mut self) -> bool {
        /// States that are rebuilt together.
        const PIECE: usize = 8192;
        /// How many lines are fetched before they are needed.
        const AHEAD: usize = 24;
        let NumberedTables { rebuilder, .. } = self;
        let len = rebuilder.tree.len();
        let mut states = States::new(rebuilder.system.width());
        let (mut numbers, mut hashes) = (Vec::new(), Vec::new());
        let piece = together(rebuilder.system.width(), PIECE);
        for start in (0..len).step_by(piece) {
            numbers.clear();
            numbers.extend(start..len.min(start + piece as u64));
            states.clear();
            hashes.clear();
            rebuilder.rebuild(&numbers, &mut states);
            rebuilder.system.hashes(&mut rebuilder.scratch, &states, &mut hashes);
            for (index, (&number, &hash)) in numbers.iter().zip(&hashes).enumerate() {
                if let Some(&later) = hashes.get(index + AHEAD) {
                    rebuilder.table.prefetch(mix(later));
                }
                if !rebuilder.table.insert(mix(hash), number) {
                    return false;
                }
            }
        }
        true
    }

    /// Steps after which a state is kept in full, in any order.
    fn chain_limit(&self) -> u64 {
        match (self.config.full, self.rebuilder.system.width()) {
            (Full::Every(steps), _) => steps,
            (Full::Share, Width::Fixed(slots)) => (8 * slots as u64).max(8),
            (Full::Share, Width::Varies) => 64,
            (Full::Never, _) => u64::MAX,
        }
    }

    /// Appends a state that is new, for which room was made. `chain` is the number of steps
    /// by which its parent is rebuilt, at most. `false` means that it had to be kept in full
    /// and found no room; then nothing has changed.
    fn append(&mut self, state: &[Slot], hash: u64, parent: u64, arrival: &Arrival<'_>, chain: u64) -> bool {
        let number = self.len();
        let limit = self.chain_limit();
        debug_assert!(
            self.rebuilder.table.len() == number || self.has_forgotten(),
            "every state that is not forgotten is in the table once"
        );
        let rebuilder = &mut self.rebuilder;
        let stored = rebuilder.coded.as_ref().map_or(arrival.action, |coded| coded.code(arrival.action));
        let from = match rebuilder.order {
            Order::Any if parent == NONE || chain.saturating_add(1) >= limit => {
                match rebuilder.kept.keep(state, hash, arrival) {
                    Some(place) => From::Kept(place),
                    None => return false,
                }
            }
            Order::Levels if parent == NONE && !rebuilder.kept.keep_number(number, state, hash, arrival) => {
                return false;
            }
            _ => From::Parent(parent),
        };
        let entered = rebuilder.table.insert(mix(hash), number);
        assert!(entered, "room was made for it");
        rebuilder.tree.push(from, if parent == NONE { arrival.action } else { stored });
        if let Some(window) = &mut rebuilder.window {
            window.push(state);
        }
        rebuilder.cache.put(number, state);
        true
    }

    /// Inserts one state.
    fn insert(&mut self, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert {
        if let Some(number) = self.find(state, hash) {
            if let Some((id, source)) = arrival.parent
                && let Some(parent) = self.parent_number(id, source)
            {
                self.shorten(number, parent, arrival.action);
            }
            return Insert::Seen(StateId::new(number));
        }
        self.insert_new(state, hash, arrival)
    }

    /// The number of a parent; searches that hold states and not numbers do not say it.
    fn parent_number(&mut self, id: StateId, state: &[Slot]) -> Option<u64> {
        if id != StateId::NAMELESS {
            return Some(id.get());
        }
        let hash = self.rebuilder.system.hash(&mut self.rebuilder.scratch, state);
        self.find(state, hash)
    }

    /// Inserts one state that is new.
    fn insert_new(&mut self, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert {
        if self.rebuilder.coded.is_some() && self.budget.is_over() {
            return Insert::Full;
        }
        let parent = match arrival.parent {
            None => NONE,
            Some((id, source)) => self.parent_number(id, source).expect("a parent is in the store"),
        };
        let chain = if parent == NONE || self.rebuilder.order == Order::Levels {
            0
        } else {
            self.rebuilder.chain(parent, self.chain_limit())
        };
        let most_parent = if parent == NONE { 0 } else { parent };
        let number = self.len();
        let alone = match arrival.parent {
            Some((_, source)) => self.told_apart(number, source, state, hash, arrival.action),
            None => true,
        };
        if !(alone || self.choose(number, arrival.action))
            || !self.reserve(1, state.len() as u64, most_parent, arrival.action)
            || !self.append(state, hash, parent, arrival, chain)
        {
            return Insert::Full;
        }
        Insert::New(StateId::new(number))
    }

    /// Whether signature and code distinguish the state that is about to get this number from all other
    /// successors of its parent, and no note was left by one that did not get in.
    fn told_apart(&mut self, number: u64, source: &[Slot], state: &[Slot], hash: u64, action: Action) -> bool {
        let Rebuilder { system, scratch, coded, table, .. } = &mut self.rebuilder;
        let Some(coded) = coded else { return true };
        if coded.choices.get(number).is_some() {
            return false;
        }
        coded.batch.reset(system.width());
        // Where there is no memory to find out, the whole action is noted.
        if system.successors(scratch, source, &mut coded.batch).is_err() || coded.batch.stop().is_some() {
            return false;
        }
        let batch = &coded.batch;
        (0..batch.len()).all(|index| {
            coded.code(batch.action(index)) != coded.code(action)
                || table.key(mix(batch.hash(index))) != table.key(mix(hash))
                || batch.target(index) == state
        })
    }

    /// Notes the whole action of a state that is about to get this number.
    fn choose(&mut self, number: u64, action: Action) -> bool {
        let Some(coded) = &mut self.rebuilder.coded else { return true };
        if !coded.choices.reserve(1) {
            return false;
        }
        coded.choices.put(Exception { number, parent: NONE, action: action.0, first: true });
        true
    }

    /// Points a revisited state to a parent with a shorter chain.
    fn shorten(&mut self, number: u64, parent: u64, action: Action) {
        if self.may_shorten() && (self.rebuilder.order == Order::Any || number < self.level_start) {
            self.rebuilder.shorten(number, parent, action);
        }
    }

    /// Whether chains are to be shortened now. In level order something is gained only next to a
    /// level kept in full, and each gain costs an exception: there are few of them.
    fn may_shorten(&self) -> bool {
        let worth = match self.rebuilder.order {
            Order::Any => true,
            Order::Levels => self.since_kept <= 1 && (self.rebuilder.tree.exceptions() + 1) * 256 <= self.len(),
        };
        self.config.shorten && worth && self.rebuilder.coded.is_none()
    }

    /// Ends a level: decides whether it is kept in full, and lets go of the one before. Returns whether there is memory for that.
    fn end_level(&mut self) -> bool {
        let numbers = self.level_start..self.len();
        let states = numbers.end - numbers.start;
        let taken = self.rebuilder.taken();
        let keeps = match (self.config.full, self.rebuilder.system.width()) {
            _ if self.level == 0 => true,
            (Full::Every(levels), _) => self.level.is_multiple_of(levels),
            (Full::Share, width) => {
                let slots = if let Width::Fixed(slots) = width { slots as u64 } else { 16 };
                // Steps forwards cost more than steps back, so walks are to be shorter.
                let part = if self.rebuilder.reversible.is_some() { 8 } else { 2 };
                let kept = (self.rebuilder.kept.len() + states) * slots * 4;
                let (parents, actions) = self.rebuilder.tree.bytes();
                let all = self.rebuilder.table.bytes() + parents + actions + kept;
                let bearable = all <= numbers.end * MOST_BYTES / 100;
                kept <= numbers.end / part || bearable && taken > LONG_WALKS * states
            }
            (Full::Never, _) => false,
        };
        // Initial states were kept when they came.
        if keeps && self.level > 0 {
            self.keep_level(numbers.clone());
        }
        self.since_kept = if keeps { 0 } else { self.since_kept + 1 };
        if let Some(window) = &mut self.rebuilder.window {
            window.forget(self.hand_start);
            self.before_bytes = window.bytes_before(numbers.start);
        }
        self.hand_start = numbers.start;
        self.level_start = numbers.end;
        self.level += 1;
        self.begin_stratum(numbers.start)
    }

    /// Keeps states in full, as many as the budget has room for: with fewer, chains are longer, and
    /// nothing else changes.
    fn keep_level(&mut self, numbers: Range<u64>) {
        const PIECE: usize = 1024;
        let rebuilder = &mut self.rebuilder;
        let piece = together(rebuilder.system.width(), PIECE);
        let mut states = States::new(rebuilder.system.width());
        let (mut list, mut hashes) = (Vec::new(), Vec::new());
        let arrival = Arrival { parent: None, action: Action(0) };
        for start in numbers.clone().step_by(piece) {
            list.clear();
            list.extend(start..numbers.end.min(start + piece as u64));
            states.clear();
            hashes.clear();
            rebuilder.rebuild(&list, &mut states);
            rebuilder.system.hashes(&mut rebuilder.scratch, &states, &mut hashes);
            for ((&number, state), &hash) in list.iter().zip(states.iter()).zip(&hashes) {
                if !rebuilder.kept.keep_number(number, state, hash, &arrival) {
                    return;
                }
            }
        }
    }

    fn recall(&mut self, numbers: &[u64], out: &mut States) {
        let len = self.len();
        for number in numbers {
            assert!(*number < len, "#{number} is not one of {len} states");
        }
        self.rebuilder.rebuild(numbers, out);
    }
}

/// Confirms candidates, all together or one by one.
fn confirm(
    rebuilder: &mut Rebuilder<'_>,
    together: bool,
    candidates: &Candidates,
    one: &mut Candidates,
    found: &mut Vec<bool>,
) {
    if together || candidates.len() < 2 {
        rebuilder.confirm(candidates, found);
        return;
    }
    let mut all = Vec::with_capacity(candidates.len());
    for index in 0..candidates.len() {
        one.reset(rebuilder.system.width());
        one.push(candidates.states.get(index), candidates.hashes[index], candidates.numbers[index]);
        rebuilder.confirm(one, found);
        all.push(found[0]);
    }
    *found = all;
}

impl Store for Numbered<'_> {
    fn insert(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert {
        self.lock().insert(state, hash, arrival)
    }

    fn insert_batch(&self, _scratch: &mut Scratch, block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        self.lock().insert_batch(block, batch, out);
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        self.lock().find(state, hash).map(StateId::new)
    }

    fn len(&self) -> u64 {
        self.lock().len()
    }

    fn bytes(&self) -> Bytes {
        let inner = self.lock();
        let Rebuilder { tree, kept, cache, table, coded, .. } = &inner.rebuilder;
        let (parents, actions) = tree.bytes();
        let choices = coded.as_ref().map_or(0, |coded| coded.choices.held_bytes());
        let mut bytes =
            Bytes::new().with("table", table.bytes()).with("parents", parents).with("actions", actions + choices);
        bytes.merge(&kept.bytes());
        self.attached.counted(bytes.with("cache", cache.bytes()).with("level before", inner.before_bytes))
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn recall(&self) -> Option<&dyn Recall> {
        if self.recalls { Some(self) } else { None }
    }

    fn attached(&self) -> Option<&Attached> {
        // A state would have a value for each of its numbers.
        (!self.forgets).then_some(&self.attached)
    }

    fn forgets(&self) -> bool {
        self.forgets
    }

    fn has_forgotten(&self) -> bool {
        self.lock().has_forgotten()
    }

    fn repeated(&self, ids: u64, control: &Control, show: &mut dyn FnMut(&States) -> Result<(), Stop>) -> Option<u64> {
        self.lock().repeated(ids, control, show)
    }

    fn end_level(&self) -> bool {
        self.lock().end_level()
    }

    fn frontier_bytes(&self) -> u64 {
        let inner = self.lock();
        inner.rebuilder.window.as_ref().map_or(0, Window::bytes) - inner.before_bytes
    }

    fn path(&self, _scratch: &mut Scratch, id: StateId, _control: &Control) -> Option<Trace> {
        let inner = self.lock();
        let Rebuilder { tree, coded, .. } = &inner.rebuilder;
        if coded.is_some() {
            return None;
        }
        let mut actions = Vec::new();
        let mut number = id.get();
        loop {
            let (parent, action) = tree.first_edge(number)?;
            if parent == NONE {
                actions.reverse();
                return Some(Trace::path(action.0, actions));
            }
            actions.push(action);
            number = parent;
        }
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let mut inner = self.lock();
        inner.forget_before();
        let NumberedTables { rebuilder, budget, .. } = &mut *inner;
        rebuilder.cache.clear();
        rebuilder.kept.recode(recoding)
            && rebuilder.window.as_mut().is_none_or(|window| window.recode(recoding, budget))
    }
}

impl Recall for Numbered<'_> {
    fn recall(&self, _scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let numbers: Vec<u64> = ids.iter().map(|id| id.get()).collect();
        self.lock().recall(&numbers, out);
    }

    fn recall_range(&self, _scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        let mut inner = self.lock();
        if let Some(window) = &inner.rebuilder.window
            && ids.start >= window.numbers().start
            && ids.end <= window.numbers().end
        {
            window.read(ids, out);
            return;
        }
        let numbers: Vec<u64> = ids.collect();
        inner.recall(&numbers, out);
    }

    fn sequential(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Control;
    use deltamark_search::{Search, Task, run};
    use deltamark_testkit::systems::Counters;
    use deltamark_testkit::{RandomGraph, explore};

    #[test]
    fn signatures_grow_with_the_states_and_nothing_gets_lost() {
        const STATES: usize = if cfg!(miri) { 16 } else { 3000 };
        let systems: [fn() -> Box<dyn System>; 3] = [
            || Box::new(if cfg!(miri) { Counters::new(2, 4) } else { Counters::new(5, 6) }),
            || Box::new(RandomGraph::of_width(5, Width::Fixed(2), STATES)),
            || Box::new(RandomGraph::of_width(7, Width::Varies, STATES)),
        ];
        let searches = if cfg!(miri) { &[Search::Bfs][..] } else { Search::ALL };
        for fresh in systems {
            let all = explore(&*fresh());
            for &search in searches {
                for full in [Full::Every(4), Full::Share, Full::Never].into_iter().take(if cfg!(miri) { 1 } else { 3 })
                {
                    let system = fresh();
                    let control = Control::new();
                    let config = Config { signature: 3, full, shorten: true, ..Config::USUAL };
                    let store = Numbered::new(config, &*system, search.order(), None, control.budget.clone());
                    let task = Task {
                        system: &*system,
                        store: &store,
                        properties: &[],
                        control: &control,
                        explore_all: true,
                        observer: None,
                    };
                    let outcome = run(search, task);
                    let found = (outcome.statistics.states, outcome.statistics.edges);
                    assert_eq!(found, (all.states.len() as u64, all.edges.len() as u64));
                    let signature = store.lock().config.signature;
                    assert!(4 * found.0 <= 5 << signature && signature <= 16, "{signature} bits");
                }
            }
        }
    }

    #[test]
    fn walks_back_tell_the_path() {
        let system = RandomGraph::of_width(5, Width::Fixed(2), if cfg!(miri) { 24 } else { 500 });
        let control = Control::new();
        let config = Config { full: Full::Every(3), shorten: true, ..Config::USUAL };
        let store = Numbered::new(config, &system, Order::Levels, None, control.budget.clone());
        let system: &dyn System = &system;
        let task =
            Task { system, store: &store, properties: &[], control: &control, explore_all: true, observer: None };
        let states = run(Search::Bfs, task).statistics.states;
        let all = explore(system);
        let mut scratch = store.scratch();
        for number in 0..states {
            let trace = store
                .path(&mut scratch, StateId::new(number), &Control::new())
                .expect("in level order every path is known");
            let mut state = States::new(system.width());
            Recall::recall(&store, &mut scratch, &[StateId::new(number)], &mut state);
            let replay = trace.replay(system).expect("a path can be walked");
            assert_eq!(replay.states.last().map(Vec::as_slice), Some(state.get(0)));
            assert_eq!(trace.len() as u64, all.distances[all.numbers[state.get(0)]], "paths are shortest");
        }
    }
}
