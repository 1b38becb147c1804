//! The states of one rank: a small hash table that is dropped whole.
//!
//! In: states with their hashes. Out: their positions, from 0 in the order of insertion.
//! Invariants: a position keeps its state until the layer is [cut](Layer::cut) or the front is
//! [let go](Layer::let_go); memory is requested before it is allocated.
//!
//! # Layout in memory
//! ```text
//! chunks   [4][4][ 8 ][   16   ] … [ 4096 ][ 4096 ] …       states in full, as they came
//!                 ▲
//! index    [ tag|place+1 … 16 entries ] [ … ] …              none for up to four states
//! ```
//! Chunks begin small because some measures give nearly every state its own rank. The index is that
//! of [`plain`](crate::plain): entries of 32 bits in buckets of a cache line, load factor at most
//! 0.85; it grows by doubling, later by half, and is refilled from the states. If the previous
//! layer was much larger, it grows by four.

use crate::memory::region::Region;
use crate::tables::bucket::{Bucket, LANES, Lanes, prefetch};
use crate::tables::index::{BASELINE, IndexView};
use deltamark_core::packed::bits_of;
use deltamark_core::state::same;
use deltamark_core::{Action, Grant, Recoding, Remember, Scratch, Slot, States, System, Width, hash::mix};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// States of the smallest chunk; as many are compared one by one, without an index.
const FIRST: u32 = 4;
/// States of the largest chunk.
const LARGEST: u32 = 4096;
/// Where chunks stop to double.
const DOUBLED: u32 = 2 * LARGEST;
/// From how many bytes on an index takes pages of its own.
const PAGES: u64 = if cfg!(miri) { 256 } else { 64 << 10 };
/// An index of fewer buckets doubles, a larger one grows by half.
const SMALL: u64 = 1 << 13;
/// From how many bytes on lines of an index are fetched before they are looked at: a smaller one
/// stays in the cache.
const FETCHED: u64 = 256 << 10;

/// The chunk of a place, and the place within it.
#[inline(always)]
fn locate(place: u32) -> (usize, usize) {
    if place < FIRST {
        (0, place as usize)
    } else if place < DOUBLED {
        let power = place.ilog2();
        (power as usize - 1, (place - (1 << power)) as usize)
    } else {
        let (chunk, within) = ((place - DOUBLED) / LARGEST, (place - DOUBLED) % LARGEST);
        (DOUBLED.ilog2() as usize - 1 + chunk as usize, within as usize)
    }
}

/// How many states a chunk takes.
fn capacity(chunk: usize) -> u32 {
    // Beyond ten doublings all are of the largest size.
    if chunk == 0 { FIRST } else { (FIRST << (chunk - 1).min(10)).min(LARGEST) }
}

/// Some states, contiguous, and what is kept of each.
#[derive(Default)]
struct LayerChunk {
    slots: Vec<Slot>,
    /// Where each state ends, if the width varies.
    ends: Vec<u32>,
    numbers: Vec<u64>,
    actions: Vec<Action>,
    granted: u64,
}

/// Buckets, from the allocator or on pages of their own.
enum Buckets {
    Few(Vec<Bucket>),
    Many(Region, u64),
}

impl Buckets {
    fn new(count: u64) -> Option<Self> {
        if count * (size_of::<Bucket>() as u64) < PAGES {
            let empty = || Bucket([const { AtomicU32::new(0) }; LANES]);
            return Some(Buckets::Few((0..count).map(|_| empty()).collect()));
        }
        Some(Buckets::Many(Region::zeroed(count as usize * size_of::<Bucket>())?, count))
    }

    #[inline(always)]
    fn all(&self) -> &[Bucket] {
        match self {
            Buckets::Few(buckets) => buckets,
            // SAFETY: the region was made for `count` buckets, is aligned to cache lines, and its
            // zeroes are valid entries; they are changed as atomics only.
            Buckets::Many(region, count) => unsafe {
                std::slice::from_raw_parts(region.as_ptr().cast(), *count as usize)
            },
        }
    }

    fn bytes(&self) -> u64 {
        size_of_val(self.all()) as u64
    }
}

/// What layers need to grow.
pub(crate) struct Means<'s, 'a> {
    pub system: &'a dyn System,
    pub scratch: &'s mut Scratch,
    pub grant: &'s mut Grant,
    pub remember: Remember,
    pub width: Width,
    pub buffer: &'s mut States,
    pub hashes: &'s mut Vec<u64>,
    /// How many states a layer may be expected to get.
    pub expected: u32,
}

/// What became of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    New,
    Seen(u32),
    /// It is not there, and may not be entered.
    Unknown,
    Full,
}

/// A state to be entered.
#[derive(Clone, Copy)]
pub(crate) struct Entrant<'e> {
    pub state: &'e [Slot],
    pub hash: u64,
    pub number: u64,
    pub action: Action,
}

/// The states of one rank.
#[derive(Default)]
pub(crate) struct Layer {
    len: u32,
    /// Places before this one are gone.
    first: u32,
    chunks: Vec<LayerChunk>,
    index: Option<Buckets>,
    number_bits: u32,
    /// How many places may be entered before the index must grow; no index is needed below.
    room: u64,
    /// Whether states are still looked for.
    open: bool,
}

impl Layer {
    /// No states.
    pub fn new() -> Self {
        Layer { room: u64::from(FIRST), open: true, ..Layer::default() }
    }

    /// How many states were entered and not cut off.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether states are still looked for.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// How many states it holds.
    pub fn held(&self) -> u32 {
        self.len - self.first
    }

    /// The bytes of chunks and of the index that were granted.
    pub fn granted(&self) -> (u64, u64) {
        (self.chunks.iter().map(|chunk| chunk.granted).sum(), self.index.as_ref().map_or(0, Buckets::bytes))
    }

    #[inline(always)]
    fn state(&self, width: Width, place: u32) -> &[Slot] {
        let (chunk, within) = locate(place);
        let chunk = &self.chunks[chunk];
        match width {
            Width::Fixed(width) => &chunk.slots[within * width..(within + 1) * width],
            Width::Varies => {
                let start = if within == 0 { 0 } else { chunk.ends[within - 1] as usize };
                &chunk.slots[start..chunk.ends[within] as usize]
            }
        }
    }

    /// The number of a state, if it is kept.
    #[inline]
    pub fn number(&self, place: u32) -> Option<u64> {
        let (chunk, within) = locate(place);
        self.chunks[chunk].numbers.get(within).copied()
    }

    /// How a state was reached, if that is kept.
    pub fn action(&self, place: u32) -> Option<Action> {
        let (chunk, within) = locate(place);
        self.chunks[chunk].actions.get(within).copied()
    }

    /// Notes that this action led to a state too, if that is kept.
    #[inline]
    pub fn arrive(&mut self, place: u32, action: Action) {
        let (chunk, within) = locate(place);
        if let Some(smallest) = self.chunks[chunk].actions.get_mut(within) {
            *smallest = Action(smallest.0.min(action.0));
        }
    }

    /// Appends the states of these places.
    pub fn read(&self, width: Width, places: std::ops::Range<u32>, out: &mut States) {
        for place in places {
            out.push(self.state(width, place));
        }
    }

    #[inline(always)]
    fn view(&self) -> Option<IndexView<'_>> {
        self.index.as_ref().map(|index| IndexView::over(index.all(), self.number_bits))
    }

    /// Asks for the line of the index that a state belongs to, if the index is large.
    #[inline(always)]
    pub fn fetch(&self, hash: u64) {
        if let Some(view) = self.view()
            && view.len() * size_of::<Bucket>() as u64 >= FETCHED
        {
            prefetch(view.bucket(view.home(mix(hash))));
        }
    }

    /// Asks for the first state that may be the one of this hash, if the index is large.
    #[inline(always)]
    pub fn fetch_state(&self, width: Width, hash: u64) {
        if let Some(view) = self.view()
            && view.len() * size_of::<Bucket>() as u64 >= FETCHED
            && let Width::Fixed(width) = width
        {
            let mixed = mix(hash);
            let bucket = view.bucket(view.home(mixed));
            let hits = BASELINE.hits(bucket, view.tag(mixed), view.mask);
            if hits != 0 {
                let entry = bucket.0[hits.trailing_zeros() as usize % LANES].load(Relaxed);
                let (chunk, within) = locate((entry & !view.mask) - 1);
                prefetch(self.chunks[chunk].slots.as_ptr().wrapping_add(within * width));
            }
        }
    }

    /// Enters a state, if it is not there and `may` says so.
    #[inline]
    pub fn enter(&mut self, entrant: Entrant<'_>, may: bool, means: &mut Means<'_, '_>) -> Entered {
        debug_assert!(self.open && self.first == 0, "states are looked for as long as all are there");
        let Entrant { state, hash, .. } = entrant;
        let mixed = mix(hash);
        let mut site = None;
        match self.view() {
            None => {
                for place in 0..self.len {
                    if same(self.state(means.width, place), state) {
                        return Entered::Seen(place);
                    }
                }
            }
            Some(view) => {
                let is_here = |place: u64| same(self.state(means.width, place as u32), state);
                match view.search(BASELINE, mixed, view.home(mixed), is_here) {
                    Ok(place) => return Entered::Seen(place as u32),
                    Err(free) => site = Some(free),
                }
            }
        }
        if !may {
            return Entered::Unknown;
        }
        if u64::from(self.len) == self.room {
            if !self.grow(means) {
                return Entered::Full;
            }
            site = None;
        }
        if !self.push(entrant, means) {
            return Entered::Full;
        }
        let place = self.len - 1;
        match (site, self.view()) {
            (Some((at, lane)), Some(view)) => view.settle(at, lane, mixed, place.into()),
            (None, Some(view)) => enter(view, mixed, place),
            (_, None) => {}
        }
        Entered::New
    }

    /// Appends a state. Returns whether there was memory for it.
    fn push(&mut self, entrant: Entrant<'_>, means: &mut Means<'_, '_>) -> bool {
        let (at, _) = locate(self.len);
        if at == self.chunks.len() {
            let count = capacity(at) as usize;
            let (slots, ends) = match means.width {
                Width::Fixed(width) => (count * width, 0),
                Width::Varies => (count.min(16), count),
            };
            let numbers = if means.remember.numbers { count } else { 0 };
            let actions = if means.remember.actions { count } else { 0 };
            let granted =
                (slots * 4 + ends * 4 + numbers * 8 + actions * size_of::<Action>() + size_of::<LayerChunk>()) as u64;
            if !means.grant.ask(granted) {
                return false;
            }
            self.chunks.push(LayerChunk {
                slots: Vec::with_capacity(slots),
                ends: Vec::with_capacity(ends),
                numbers: Vec::with_capacity(numbers),
                actions: Vec::with_capacity(actions),
                granted,
            });
        }
        let chunk = &mut self.chunks[at];
        match means.width {
            Width::Fixed(width) => {
                assert_eq!(width, entrant.state.len(), "a state of a fixed-width system has its width")
            }
            Width::Varies => {
                let missing = (chunk.slots.len() + entrant.state.len()).saturating_sub(chunk.slots.capacity());
                if missing > 0 {
                    let more = missing.max(chunk.slots.capacity() / 2);
                    // Growing copies, and both are there meanwhile.
                    let [old, more] = [chunk.slots.capacity(), more].map(|slots| slots as u64 * 4);
                    if !means.grant.ask(old + more) {
                        return false;
                    }
                    chunk.slots.reserve_exact((old + more) as usize / 4 - chunk.slots.len());
                    means.grant.give_back(old);
                    chunk.granted += more;
                }
                chunk.ends.push((chunk.slots.len() + entrant.state.len()) as u32);
            }
        }
        chunk.slots.extend_from_slice(entrant.state);
        if means.remember.numbers {
            chunk.numbers.push(entrant.number);
        }
        if means.remember.actions {
            chunk.actions.push(entrant.action);
        }
        self.len += 1;
        true
    }

    /// Gives the index its next size.
    fn grow(&mut self, means: &mut Means<'_, '_>) -> bool {
        let buckets = match self.index.as_ref().map(|index| index.all().len() as u64) {
            None => 1,
            // Entering all again is most of what growing costs.
            Some(buckets) if self.len < means.expected / 4 => 4 * buckets,
            Some(buckets) if buckets < SMALL => 2 * buckets,
            Some(buckets) => buckets + buckets / 2,
        };
        // The number bits of the largest index leave one for the tag.
        buckets < 1 << 27 && self.rebuild(buckets, means)
    }

    /// Gives the index this size and enters all states again.
    fn rebuild(&mut self, buckets: u64, means: &mut Means<'_, '_>) -> bool {
        let before = self.index.take().map_or(0, |index| index.bytes());
        let bytes = buckets * size_of::<Bucket>() as u64;
        means.grant.give_back(before);
        if !means.grant.ask(bytes) {
            self.open = false;
            return false;
        }
        let Some(index) = Buckets::new(buckets) else {
            means.grant.give_back(bytes);
            self.open = false;
            return false;
        };
        self.index = Some(index);
        self.number_bits = bits_of(buckets * LANES as u64 + 2);
        // A bucket alone can be filled to the last entry but one: an empty one ends every search.
        self.room = (buckets * LANES as u64 / 20 * 17).max(buckets * 13);
        let mut place = 0;
        while place < self.len {
            let end = self.len.min(place + 256);
            means.buffer.reset(means.width);
            means.hashes.clear();
            self.read(means.width, place..end, means.buffer);
            means.system.hashes(means.scratch, means.buffer, means.hashes);
            let view = self.view().expect("the index was just made");
            for (&hash, place) in means.hashes.iter().zip(place..) {
                enter(view, mix(hash), place);
            }
            place = end;
        }
        true
    }

    /// Drops the index: no state will be looked up any more.
    pub fn close(&mut self, grant: &mut Grant) {
        grant.give_back(self.index.take().map_or(0, |index| index.bytes()));
        self.open = false;
    }

    /// Lets go of the states before this place, as far as they fill chunks; of a closed layer.
    pub fn let_go(&mut self, first: u32, grant: &mut Grant) {
        debug_assert!(!self.open);
        while self.first < first {
            let (at, _) = locate(self.first);
            let end = self.first + capacity(at);
            if end > first {
                return;
            }
            grant.give_back(std::mem::take(&mut self.chunks[at]).granted);
            self.first = end.min(self.len);
        }
    }

    /// Forgets all states from this place on, and looks for the others again. Returns whether there
    /// was memory for a smaller index, which is so if there is no other use of the budget meanwhile.
    pub fn cut(&mut self, len: u32, means: &mut Means<'_, '_>) -> bool {
        debug_assert!(len == 0 || self.first == 0);
        (self.len, self.first) = (len, 0);
        let chunks = if len == 0 { 0 } else { locate(len - 1).0 + 1 };
        for chunk in self.chunks.drain(chunks..) {
            means.grant.give_back(chunk.granted);
        }
        if let Some(chunk) = self.chunks.last_mut() {
            let within = locate(len - 1).1 + 1;
            match means.width {
                Width::Fixed(width) => chunk.slots.truncate(within * width),
                Width::Varies => {
                    chunk.ends.truncate(within);
                    chunk.slots.truncate(chunk.ends.last().map_or(0, |&end| end as usize));
                }
            }
            chunk.numbers.truncate(within);
            chunk.actions.truncate(within);
        }
        means.grant.give_back(self.index.take().map_or(0, |index| index.bytes()));
        (self.open, self.room) = (true, u64::from(FIRST));
        if len <= FIRST {
            return true;
        }
        let mut buckets = 1;
        while (buckets * LANES as u64 / 20 * 17).max(buckets * 13) < u64::from(len) {
            buckets = if buckets < SMALL { 2 * buckets } else { buckets + buckets / 2 };
        }
        self.rebuild(buckets, means)
    }

    /// Translates every state, which changes no hash. Returns whether there was memory.
    pub fn recode(&mut self, recoding: &Recoding, means: &mut Means<'_, '_>) -> bool {
        let mut new = Layer { index: self.index.take(), ..Layer::new() };
        (new.number_bits, new.room, new.open) = (self.number_bits, self.room, self.open);
        let mut state = Vec::new();
        let mut done = true;
        for place in 0..self.len {
            // Places that were let go stay empty.
            if place < self.first {
                state.clear();
                state.resize(if let Width::Fixed(width) = recoding.to { width } else { 0 }, 0);
            } else {
                recoding.translate(self.state(recoding.from, place), &mut state);
            }
            let number = if place < self.first { None } else { self.number(place) };
            let action = if place < self.first { None } else { self.action(place) };
            let entrant =
                Entrant { state: &state, hash: 0, number: number.unwrap_or(0), action: action.unwrap_or(Action::NONE) };
            if means.grant.budget().is_over_at(place.into()) || !new.push(entrant, means) {
                done = false;
                break;
            }
            // Old chunks go as new ones come.
            let (at, within) = locate(place);
            if within + 1 == capacity(at) as usize {
                means.grant.give_back(std::mem::take(&mut self.chunks[at]).granted);
            }
        }
        for chunk in self.chunks.drain(..) {
            means.grant.give_back(chunk.granted);
        }
        let first = self.first;
        *self = new;
        if !self.open && done {
            self.let_go(first, means.grant);
        }
        done
    }
}

/// Enters a place that is not there.
#[inline]
fn enter(view: IndexView<'_>, mixed: u64, place: u32) {
    let entry = view.tag(mixed) | (place + 1);
    let mut at = view.home(mixed);
    loop {
        let empty = BASELINE.empty(view.bucket(at));
        if empty != 0 {
            view.bucket(at).0[empty.trailing_zeros() as usize % LANES].store(entry, Relaxed);
            return;
        }
        at = view.next(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Budget;
    use deltamark_testkit::RandomGraph;
    use std::sync::Arc;

    #[test]
    fn chunks_follow_each_other() {
        let mut chunk = 0;
        let mut start = 0;
        for place in 0..if cfg!(miri) { 17_000 } else { 1_000_000 } {
            if place == start + capacity(chunk) {
                start = place;
                chunk += 1;
            }
            assert_eq!(locate(place), (chunk, (place - start) as usize));
        }
    }

    #[test]
    fn states_are_seen_where_they_were_entered_until_they_are_cut_off() {
        let count: u32 = if cfg!(miri) { 60 } else { 20_000 };
        for width in [Width::Fixed(2), Width::Varies] {
            let system = RandomGraph::of_width(1, width, 2);
            let budget = Arc::new(Budget::unlimited());
            let (mut grant, mut layer) = (Grant::new(&budget), Layer::new());
            let state = |place: u32| match width {
                Width::Fixed(_) => vec![place, !place],
                Width::Varies => vec![place; 1 + place as usize % 4],
            };
            let mut means = Means {
                system: &system,
                scratch: &mut system.scratch(),
                grant: &mut grant,
                remember: Remember { numbers: true, actions: false },
                width,
                buffer: &mut States::new(width),
                hashes: &mut Vec::new(),
                expected: 0,
            };
            let enter = |layer: &mut Layer, means: &mut Means<'_, '_>, place: u32, may: bool| {
                let state = state(place);
                let hash = system.hash(means.scratch, &state);
                layer.enter(Entrant { state: &state, hash, number: place.into(), action: Action::NONE }, may, means)
            };
            for place in 0..count {
                assert_eq!(enter(&mut layer, &mut means, place, false), Entered::Unknown);
                assert_eq!(enter(&mut layer, &mut means, place, true), Entered::New);
                assert_eq!(enter(&mut layer, &mut means, place / 2, true), Entered::Seen(place / 2));
            }
            assert!(matches!(layer.index, Some(Buckets::Many(..))), "the index has grown to pages of its own");
            assert!(layer.cut(count / 2, &mut means));
            for place in 0..count {
                let expected = if place < count / 2 { Entered::Seen(place) } else { Entered::Unknown };
                assert_eq!(enter(&mut layer, &mut means, place, false), expected);
                assert_eq!(layer.number(place.min(layer.len() - 1)), Some(place.min(layer.len() - 1).into()));
            }
            let mut held = States::new(width);
            layer.read(width, 0..layer.len(), &mut held);
            assert!(held.iter().zip(0..).all(|(held, place)| held == state(place)));
            let (chunks, index) = layer.granted();
            assert_eq!(chunks + index, budget.used());
        }
    }
}
