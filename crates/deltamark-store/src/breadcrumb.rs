//! # The idea
//! A visited state is represented only by a crumb: a few bits of its hash, its level modulo three,
//! and the action that first led to it. No vector, no number, no parent. Membership is decided by
//! backtracking: undo the action of a matching crumb, look up the predecessor in the same table,
//! undo its action, and so on, down to a level whose states are stored in full. For systems with
//! reversible actions, searched level by level.
//!
//! # Layout in memory
//! ```text
//! table     [ rest of the key | code | action ] …      13 to 30 bits a crumb, see `quotient`
//!             code: level mod 3, or 3 if the level is kept in full
//! anchors   the levels kept in full, the first among them   a `plain` store
//! next      the level under construction, in full           the frontier:
//! now       the level that is being expanded, in full       two `plain` stores
//! near      a few levels before it, in full, for speed      as many `plain` stores
//! ```
//!
//! # Why it is exact
//! Let `d` be the current level: the table holds a crumb of every state at distance at most `d`,
//! `next` holds the states at distance `d+1` found so far. A successor `s` of a state of level `d`
//! has distance at most `d+1`.
//!
//! * `s` is in `next`: it is compared in full there. Duplicate.
//! * A *walk* from `s` is a sequence of undone actions that ends in a state of an anchor level `L`,
//!   compared in full there. Undone actions are edges of the system, whatever crumbs suggested
//!   them; so a walk of `n` steps proves that the distance of `s` is at most `L+n`. If `L+n <= d`,
//!   `s` was visited, because all states at that distance are in the table. A walk with `L+n > d`
//!   proves nothing and does not count.
//! * If `s` was visited at a level `j <= d`, there is such a walk, and it is found: `s` has a
//!   crumb, under its own key, whose action leads back to the state from which `s` was first
//!   discovered, at level `j-1`, and so on; the codes along it are those of levels `j, j-1, …`; it
//!   ends at the first anchor level `L`, after `n = j-L` steps, so `L+n = j <= d`. All crumbs under
//!   a key with a matching code are tried, so this one is.
//! * So if `s` is not in `next` and has no walk, it was not visited: it is new. The crumbs of level
//!   `d+1` are written only when the level is complete: before that, a walk through them would
//!   prove a distance of `d+1`, which is inconclusive.
//!
//! Hash bits and codes only select the walks to try. With fewer of them more walks fail; no answer
//! changes.
//!
//! # Paths
//! A path to a state is a walk down to level 0 in which every code matches its level, found in the
//! same way by trying crumbs depth-first.
//!
//! # Growth
//! The table grows by at most a quarter, in place. Each doubling consumes one of the hash bits of
//! the crumbs, because there are no states to hash again. When too few bits would remain, and too
//! many walks would fail, the table is frozen and a second one is started, with longer keys;
//! look-ups then search both. With `tag` bits at a million states that happens at a million times
//! `2^(tag-4)`.
//!
//! # When to choose it
//! When actions can be undone and `plain` does not fit: 2.5 to 4.5 bytes per state, regardless of
//! width. Look-ups of states in older levels cost a walk, so it takes up to four times the time of
//! `plain`. The frontier is stored in full; on state spaces with few large levels it dominates.

mod level;
mod path;
mod search;
mod walks;

use crate::plain::{NONE, Plain};
use crate::states::together;
use crate::tables::quotient::{MOST_KEY_BITS as LONGEST_KEY, Quotient};
use deltamark_core::packed::bits_of;
use deltamark_core::{
    Action, Arrival, Batch, Block, Budget, Bytes, Control, Guarantee, Insert, Recall, Recoding, Reversible, Scratch,
    Slot, StateId, States, Store, System, Trace, Undone, Width, hash::mix,
};
use level::Level;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use walks::{FullLookups, Probes, Recent, StepsBack, UNPROVED, Visited, Walks};

/// Bits of a crumb that hold its code.
const CODE_BITS: u32 = 2;
/// The code of states whose level is kept in full.
const ANCHOR: u8 = 3;
/// The table distinguishes lines by this many bits of the key when it holds a million crumbs.
const MILLION: u32 = 15;
/// With fewer bits of hash a crumb, a new table is begun.
const LEAST_TAG: u32 = 4;
/// The keys of a new table are longer by this.
const LONGER: u32 = 8;
/// One part in this many of the table's bytes is spent on recent states.
const RECENT_SHARE: u64 = 12;
/// With levels chosen by the store: this many hundredths of a byte a state go to anchors.
const ANCHOR_SHARE: u64 = 40;
/// Where walks take more steps back than this for each state of a level, more levels become anchors …
const LONG_WALKS: u64 = 4;
/// … as long as crumbs and anchors stay below this many hundredths of a byte a state.
const MOST_BYTES: u64 = 375;

/// Which levels are kept in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchors {
    /// Every level of which this is a divisor.
    Every(u64),
    /// As many as about half a byte a state pays for, and more where walks are long.
    Auto,
}

/// Crumbs that lead back to states kept in full.
pub struct Breadcrumb<'a> {
    system: &'a dyn System,
    reversible: &'a dyn Reversible,
    budget: Arc<Budget>,
    which: Anchors,
    /// How many levels before the current one are there in full.
    near: usize,
    key_bits: u32,
    least_tag: u32,
    inner: Mutex<BreadcrumbTables<'a>>,
}

struct BreadcrumbTables<'a> {
    /// The crumbs; all but the last table are complete.
    tables: Vec<Quotient>,
    action_bits: u32,
    anchors: Plain<'a>,
    /// The anchor levels: the level, and the number of its first state among the anchors.
    anchor_levels: Vec<(u64, u64)>,
    /// The numbers of the initial states, as the system counts them.
    roots: Vec<u32>,
    now: Level<'a>,
    next: Level<'a>,
    /// Levels before the current one, the last first.
    near: VecDeque<Level<'a>>,
    /// How many levels have ended; the one that is being expanded is the last of them.
    ended: u64,
    /// Steps that walks have taken back since the last level ended.
    steps: u64,
    /// The most steps from a state back to an anchor.
    longest: u64,
    recent: Recent,
    work: BreadcrumbScratch,
}

/// What is used again from batch to batch.
struct BreadcrumbScratch {
    scratch: Scratch,
    /// For each state its number in `next`, or nothing.
    found: Vec<u64>,
    visited: Visited,
    /// Places in the batch of states that are in doubt, ascending; their numbers here are
    /// their numbers among the places of the walks.
    leaders: Vec<u32>,
    places: Vec<u32>,
    walks: Walks,
    steps: StepsBack,
    undone: Undone,
    asked: FullLookups,
    actions: Vec<Action>,
    probes: Probes,
    numbers: Vec<u64>,
    fresh: States,
    fresh_hashes: Vec<u64>,
    answers: Vec<Insert>,
}

/// The code and the action of a crumb.
#[inline(always)]
fn unpack(payload: u64) -> (u8, Action) {
    (payload as u8 & ((1 << CODE_BITS) - 1), Action((payload >> CODE_BITS) as u32))
}

impl<'a> Breadcrumb<'a> {
    /// An empty store for the states of `system`, within `budget`, whose crumbs keep `tag` bits
    /// of hash at a million states. `None` if steps of the system cannot be undone.
    pub fn new(system: &'a dyn System, which: Anchors, near: usize, tag: u32, budget: Arc<Budget>) -> Option<Self> {
        Self::with_key(system, which, near, (tag + MILLION, LEAST_TAG), budget)
    }

    /// With keys of this many bits, and at least this many left to a crumb.
    fn with_key(
        system: &'a dyn System,
        which: Anchors,
        near: usize,
        (key_bits, least_tag): (u32, u32),
        budget: Arc<Budget>,
    ) -> Option<Self> {
        let reversible = system.reversible()?;
        let width = system.width();
        let action_bits = bits_of(system.action_count().unwrap_or(1).saturating_sub(1));
        let level = |first| Level::new(0, first, system, &budget);
        let inner = BreadcrumbTables {
            tables: vec![Quotient::new(key_bits, CODE_BITS + action_bits, Arc::clone(&budget))],
            action_bits,
            anchors: Plain::new(system, Arc::clone(&budget)),
            anchor_levels: Vec::new(),
            roots: Vec::new(),
            now: level(0),
            next: level(0),
            near: VecDeque::new(),
            ended: 0,
            steps: 0,
            longest: 0,
            recent: Recent::new(),
            work: BreadcrumbScratch::new(system.scratch(), width),
        };
        Some(Breadcrumb { system, reversible, budget, which, near, key_bits, least_tag, inner: Mutex::new(inner) })
    }

    fn lock(&self) -> MutexGuard<'_, BreadcrumbTables<'a>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts states and appends an answer for each, up to the first that finds no room.
    fn insert_all(&self, states: &States, hashes: &[u64], action: impl Fn(usize) -> Action, out: &mut Vec<Insert>) {
        let inner = &mut *self.lock();
        let piece = together(states.width(), usize::MAX);
        if states.len() <= piece {
            self.insert_piece(inner, states, hashes, &action, out);
            return;
        }
        // Walks copy what they look for, several times, and ask nobody for that. A batch of wide states is as good as
        // several.
        let mut some = States::new(states.width());
        let all: Vec<u32> = (0..states.len() as u32).collect();
        for (number, places) in all.chunks(piece).enumerate() {
            let first = number * piece;
            some.reset(states.width());
            some.gather(states, places);
            let hashes = &hashes[first..first + places.len()];
            self.insert_piece(inner, &some, hashes, &|index| action(first + index), out);
            if out.last() == Some(&Insert::Full) {
                return;
            }
        }
    }

    fn insert_piece(
        &self,
        inner: &mut BreadcrumbTables<'_>,
        states: &States,
        hashes: &[u64],
        action: &dyn Fn(usize) -> Action,
        out: &mut Vec<Insert>,
    ) {
        inner.search(self, states, hashes);
        let BreadcrumbTables { work, next, .. } = inner;
        // What is still in doubt is new.
        work.fresh.reset(states.width());
        work.fresh_hashes.clear();
        let unproved = work.leaders.iter().zip(&work.walks.proved).filter(|&(_, &level)| level == UNPROVED);
        work.places.clear();
        work.places.extend(unproved.map(|(&leader, _)| leader));
        work.fresh.gather(states, &work.places);
        work.fresh_hashes.extend(work.places.iter().map(|&leader| hashes[leader as usize]));
        work.answers.clear();
        next.insert(&work.fresh, &work.fresh_hashes, &self.budget, &mut work.answers);
        let mut fresh = work.answers.iter();
        let mut leaders = work.leaders.iter().zip(&work.walks.proved).peekable();
        for index in 0..states.len() {
            let leader = leaders.next_if(|&(&leader, _)| leader as usize == index);
            if leader.is_none_or(|(_, &level)| level != UNPROVED) {
                out.push(Insert::Seen(StateId::NAMELESS));
                continue;
            }
            match fresh.next() {
                Some(&Insert::New(number)) => {
                    next.actions.push(action(index).0);
                    out.push(Insert::New(StateId::new(next.first + number.get())));
                }
                // A duplicate within the batch.
                Some(Insert::Seen(_)) => out.push(Insert::Seen(StateId::NAMELESS)),
                Some(Insert::Full) | None => {
                    out.push(Insert::Full);
                    return;
                }
            }
        }
    }
}

impl BreadcrumbScratch {
    fn new(scratch: Scratch, width: Width) -> Self {
        BreadcrumbScratch {
            scratch,
            found: Vec::new(),
            visited: Visited::default(),
            leaders: Vec::new(),
            places: Vec::new(),
            walks: Walks::new(width),
            steps: StepsBack::default(),
            undone: Undone::new(width),
            asked: FullLookups { states: States::new(width), hashes: Vec::new(), places: Vec::new() },
            actions: Vec::new(),
            probes: Probes::default(),
            numbers: Vec::new(),
            fresh: States::new(width),
            fresh_hashes: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Lists the states that were not found: the first places of walks. A duplicate
    /// within the batch is rare, and walks that meet go on as one anyway.
    fn list_leaders(&mut self, states: &States, hashes: &[u64]) {
        let BreadcrumbScratch { found, leaders, walks, .. } = self;
        leaders.clear();
        leaders.extend((0..states.len() as u32).filter(|&index| found[index as usize] == NONE));
        walks.reset(states.width());
        walks.states.gather(states, leaders);
        walks.hashes.extend(leaders.iter().map(|&leader| hashes[leader as usize]));
        walks.proved.resize(leaders.len(), UNPROVED);
        walks.codes.resize(leaders.len(), ANCHOR);
        walks.last.resize(leaders.len(), 0);
    }
}

impl<'a> BreadcrumbTables<'a> {
    fn len(&self) -> u64 {
        self.next.first + self.next.len()
    }

    /// Whether to keep the level under construction in full.
    fn is_anchor(&self, which: Anchors, width: Width) -> bool {
        match which {
            Anchors::Every(k) => self.ended.is_multiple_of(k),
            Anchors::Auto => {
                let slots = match width {
                    Width::Fixed(slots) => slots as u64,
                    Width::Varies => 16,
                };
                let kept = (self.anchors.len() + self.next.len()) * (slots * 4 + 6);
                let few = kept <= self.len() * ANCHOR_SHARE / 100;
                let bearable = self.table_bytes() + kept <= self.len() * MOST_BYTES / 100;
                self.ended == 0 || few || bearable && self.steps > LONG_WALKS * self.next.len()
            }
        }
    }

    /// Makes room for crumbs.
    fn reserve(&mut self, store: &Breadcrumb<'_>, count: u64) -> bool {
        let bits = CODE_BITS + self.action_bits;
        let tables = self.tables.len() as u32;
        let last = self.tables.last_mut().expect("at least one table");
        // Actions that outgrow their field widen the crumbs of the last table; the others have none.
        if last.len() > 0 && last.remainder_bits(count, bits) < store.least_tag {
            // Actions that are not known beforehand may take 32 bits one day.
            let actions = store.system.action_count().map_or(32, |_| self.action_bits);
            let most = LONGEST_KEY.min(64 - CODE_BITS - actions);
            let key_bits = (store.key_bits + LONGER * tables).min(most);
            self.tables.push(Quotient::new(key_bits, bits, Arc::clone(&store.budget)));
        }
        self.tables.last_mut().expect("at least one table").reserve(count, bits)
    }

    /// The bytes of all tables.
    fn table_bytes(&self) -> u64 {
        self.tables.iter().map(Quotient::bytes).sum()
    }

    /// Ends the level under construction. `false` means that there is no room.
    fn end_level(&mut self, store: &Breadcrumb<'a>) -> bool {
        /// States that are entered together.
        const STRETCH: u64 = 256;
        let count = self.next.len();
        let largest = self.next.actions.iter().copied().max().unwrap_or(0);
        self.action_bits = self.action_bits.max(bits_of(largest));
        if !self.reserve(store, count) {
            return false;
        }
        let anchor = self.is_anchor(store.which, store.system.width());
        self.steps = 0;
        let code = if anchor { ANCHOR } else { (self.ended % 3) as u8 };
        let first = self.anchors.len();
        let BreadcrumbScratch { scratch, fresh, fresh_hashes, answers, .. } = &mut self.work;
        let mut start = 0;
        while start < count {
            fresh.reset(store.system.width());
            fresh_hashes.clear();
            self.next.states.recall_range(&mut Scratch::none(), start..count.min(start + STRETCH), fresh);
            store.system.hashes(scratch, fresh, fresh_hashes);
            let table = self.tables.last_mut().expect("at least one table");
            for &hash in fresh_hashes.iter() {
                table.prefetch(mix(hash));
            }
            for (&hash, &action) in fresh_hashes.iter().zip(&self.next.actions[start as usize..]) {
                // The initial states are identified by their number among the anchors.
                let action = if self.ended == 0 { 0 } else { action };
                if !table.insert(mix(hash), u64::from(action) << CODE_BITS | u64::from(code)) {
                    return false;
                }
            }
            answers.clear();
            if anchor && !self.anchors.insert_each(fresh, fresh_hashes, answers) {
                return false;
            }
            start += fresh.len() as u64;
        }
        if self.ended == 0 {
            self.roots.clone_from(&self.next.actions);
        }
        if anchor {
            self.anchor_levels.push((self.ended, first));
        }
        let last = self.anchor_levels.last().map_or(0, |&(level, _)| level);
        self.longest = self.longest.max(self.ended - last);
        self.ended += 1;
        self.rotate(store, count);
        self.recent.resize(store.system.width(), self.table_bytes() / RECENT_SHARE, &store.budget);
        true
    }

    /// Passes from level to level: the one that has ended is expanded next, and the one before is near. The memory of
    /// the one that is not needed any more becomes that of the level under construction: to map memory takes longer
    /// than to go through a level of few states.
    fn rotate(&mut self, store: &Breadcrumb<'a>, count: u64) {
        // The first of all is the empty one before the initial states. Behind the last level
        // nothing is asked for any more.
        let near = if count == 0 { 0 } else { store.near.min(self.ended as usize - 1) };
        let first = self.next.first + count;
        let new = || Level::new(count, first, store.system, &store.budget);
        std::mem::swap(&mut self.now, &mut self.next);
        // Now `next` is the level that was expanded.
        if near > 0 {
            self.next.drop_actions(&store.budget);
            let mut spare = None;
            while self.near.len() >= near {
                spare = self.near.pop_back();
            }
            let following = spare.and_then(|mut level| level.reuse(count, first).then_some(level));
            self.near.push_front(std::mem::replace(&mut self.next, following.unwrap_or_else(new)));
        } else {
            self.near.clear();
            if !self.next.reuse(count, first) {
                self.next.drop_actions(&store.budget);
                self.next = new();
            }
        }
    }
}

/// The code of a level that has ended.
fn code(anchor_levels: &[(u64, u64)], level: u64) -> u8 {
    let kept = anchor_levels.binary_search_by_key(&level, |&(level, _)| level).is_ok();
    if kept { ANCHOR } else { (level % 3) as u8 }
}

/// The level of an anchor.
fn level_of(levels: &[(u64, u64)], number: u64) -> u64 {
    levels[levels.partition_point(|&(_, first)| first <= number) - 1].0
}

impl Store for Breadcrumb<'_> {
    fn insert(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert {
        let mut states = States::new(self.system.width());
        states.push(state);
        let mut answers = Vec::with_capacity(1);
        self.insert_all(&states, &[hash], |_| arrival.action, &mut answers);
        answers[0]
    }

    fn insert_batch(&self, _scratch: &mut Scratch, _block: &Block, batch: &Batch, out: &mut Vec<Insert>) {
        self.insert_all(batch.targets(), batch.hashes(), |index| batch.action(index), out);
    }

    fn find(&self, _scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        let mut states = States::new(self.system.width());
        states.push(state);
        let inner = &mut *self.lock();
        inner.search(self, &states, &[hash]);
        let work = &inner.work;
        (work.leaders.is_empty() || work.walks.proved[0] != UNPROVED).then_some(StateId::NAMELESS)
    }

    fn len(&self) -> u64 {
        self.lock().len()
    }

    fn bytes(&self) -> Bytes {
        let inner = self.lock();
        Bytes::new()
            .with("table", inner.table_bytes())
            .with("anchors", inner.anchors.bytes().total())
            .with("recent", inner.recent.held())
            .with("near", inner.near.iter().map(Level::bytes).sum())
    }

    fn frontier_bytes(&self) -> u64 {
        let inner = self.lock();
        inner.now.bytes() + inner.next.bytes()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn end_level(&self) -> bool {
        self.lock().end_level(self)
    }

    fn path(&self, _scratch: &mut Scratch, id: StateId, control: &Control) -> Option<Trace> {
        let inner = self.lock();
        let path = inner.path(self, id.get() - inner.now.first, control);
        let path = path.map(|path| path.expect("a state of the level in hand has a walk down to an initial state"));
        path.ok()
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let inner = &mut *self.lock();
        // Crumbs are of hashes and actions, which a layout does not change.
        let near = inner.near.iter().map(|level| &level.states);
        let mut full = [&inner.anchors, &inner.now.states, &inner.next.states].into_iter().chain(near);
        let recoded = full.all(|states| states.recode(recoding));
        // What was cached in the old layout may read as another state in the new one.
        inner.recent.forget(&self.budget);
        inner.recent.resize(recoding.to, inner.table_bytes() / RECENT_SHARE, &self.budget);
        recoded
    }
}

impl Recall for Breadcrumb<'_> {
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let inner = self.lock();
        for id in ids {
            let number = id.get() - inner.now.first;
            inner.now.states.recall_range(scratch, number..number + 1, out);
        }
    }

    fn recall_range(&self, scratch: &mut Scratch, ids: Range<u64>, out: &mut States) {
        let inner = self.lock();
        inner.now.states.recall_range(scratch, ids.start - inner.now.first..ids.end - inner.now.first, out);
    }

    fn sequential(&self) -> bool {
        true
    }

    fn whole(&self) -> bool {
        false
    }
}

impl Drop for Breadcrumb<'_> {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.budget.release(inner.now.granted + inner.next.granted + inner.recent.held());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::{Control, Order, Property, Verdict};
    use deltamark_search::{Search, Task, run};
    use deltamark_testkit::systems::{Counters, Odometer, Stacks};
    use deltamark_testkit::{check_reversible_store, explore};

    /// The suite for stores. Keys of 14 bits leave tags of two bits in its large systems.
    #[test]
    #[cfg_attr(miri, ignore = "the whole suite takes hours there")]
    fn it_conforms_with_long_and_short_tags() {
        let cases = [(14, Anchors::Every(3), 0), (28, Anchors::Every(1), 2), (28, Anchors::Auto, 1)];
        for (key_bits, which, near) in cases {
            check_reversible_store(Order::Levels, |system, budget| {
                Box::new(Breadcrumb::with_key(system, which, near, (key_bits, 2), budget).expect("steps can be undone"))
            });
        }
    }

    /// Sixty thousand levels of one state took twenty times the time of `plain`.
    #[test]
    #[cfg(not(miri))]
    fn narrow_levels_share_their_memory() {
        use crate::memory::region::MAPPED;
        for near in [0, 1, 3] {
            let mapped = [300, 3000].map(|levels| {
                let system = Counters::new(1, levels);
                let control = Control::new();
                let store = Breadcrumb::new(&system, Anchors::Every(7), near, 12, control.budget.clone());
                let store = store.expect("steps can be undone");
                let before = MAPPED.get();
                let task = Task {
                    system: &system,
                    store: &store,
                    properties: &[],
                    control: &control,
                    explore_all: true,
                    observer: None,
                };
                let outcome = run(Search::Bfs, task);
                assert!(outcome.statistics.depth + 1 >= u64::from(levels), "{} levels", outcome.statistics.depth);
                MAPPED.get() - before
            });
            // The table grows and the counter widens, each a few times; it was three regions for each level.
            assert!(mapped[0] < 200 && mapped[1] < mapped[0] + 100, "near {near}: {mapped:?}");
        }
    }

    /// States, edges and a shortest path to every deadlock, with tags of two bits.
    #[test]
    fn it_agrees_with_the_oracle() {
        let (seeds, most) = if cfg!(miri) { (3, 12) } else { (18, 1500) };
        for seed in 0..seeds {
            let fresh: Box<dyn Fn() -> Box<dyn System>> = match seed % 3 {
                0 => Box::new(move || {
                    Box::new(Counters::new(3 + seed as usize % 5, if cfg!(miri) { 2 } else { 4 + seed as u32 / 3 }))
                }),
                1 => Box::new(move || Box::new(Stacks::random(seed, most))),
                _ => Box::new(move || Box::new(Odometer::random(seed, most))),
            };
            let oracle = fresh();
            let expected = explore(&*oracle);
            for (key_bits, least, which, near) in
                [(8, 2, Anchors::Every(3), 0), (9, 1, Anchors::Every(5), 1), (11, 6, Anchors::Auto, 3)]
            {
                let system = fresh();
                let control = Control::new();
                let store = Breadcrumb::with_key(&*system, which, near, (key_bits, least), control.budget.clone());
                let store = store.expect("steps can be undone");
                let properties = [Property::deadlock_free()];
                let task = Task {
                    system: &*system,
                    store: &store,
                    properties: &properties,
                    control: &control,
                    explore_all: true,
                    observer: None,
                };
                let outcome = run(Search::Bfs, task);
                let found = &outcome.statistics;
                let label = format!("seed {seed}, {key_bits} bits, at least {least}, {which:?}, near {near}");
                assert_eq!(found.states, expected.states.len() as u64, "{label}");
                assert_eq!(found.edges, expected.edges.len() as u64, "{label}");
                assert_eq!(found.deadlocks, expected.deadlocks.len() as u64, "{label}");
                assert_eq!(found.depth, expected.depth(), "{label}");
                match &outcome.properties[0].verdict {
                    Verdict::Violated(Some(trace), _) => {
                        let steps = trace.actions.len() as u64;
                        assert_eq!(Some(steps), expected.nearest_deadlock(), "{label}: the path is shortest");
                    }
                    verdict => assert!(expected.deadlocks.is_empty(), "{label}: {verdict:?}"),
                }
            }
        }
    }
}
