//! # The idea
//! The states of a sweep: those at or ahead of the line, by rank, and the persistent ones behind
//! it. There is one small hash table per rank (`sweep/layer.rs`), because the rank of a state
//! determines its table; when the line has passed, a table is dropped as a whole. From the
//! sweep-line method: S. Christensen, L.M. Kristensen, T. Mailund, *A sweep-line method for state
//! space exploration*, TACAS 2001; persistent states: L.M. Kristensen, T. Mailund, *A generalised
//! sweep-line method for safety properties*, FME 2002. Tables by rank instead of one that is
//! garbage collected, and the queue within them, are ours.
//!
//! # Layout in memory
//! ```text
//! rank      … 3            4                     5              8
//! states      k k          k x x x w w w         w w w          w
//!                              line  ▲ next                          k persistent, x expanded, w unexpanded
//! ```
//! A layer is its own queue: states are returned in the order of insertion, so all unexpanded
//! states are at its end. States become persistent when they are inserted behind the line, where a
//! layer holds only such states. So they are at its beginning, and deleting the others means
//! truncating the layer after them.
//!
//! # Invariants
//! * I1: a layer behind the line holds only persistent states.
//! * I2: in every layer the persistent states come first, then the expanded ones, then the
//!   unexpanded ones; but persistent states inserted behind the line are unexpanded as well, until
//!   the next sweep.
//! * I3: a closed layer has no persistent states, and nothing is inserted into it.
//!
//! # Cost
//! As `plain` for each state held: 4.7 to 9.4 bytes for the index, its slots, eight more bytes if
//! numbers are stored, four if actions are. A rank without states costs nothing.

use crate::sweep::layer::{Entered, Entrant, Layer, Means};
use deltamark_core::{
    Action, Block, Budget, Bytes, Entrants, Grant, Insert, Rank, Recoding, Remember, Scratch, StateId, States, System,
    Width, Window,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that a layer takes beside its states: itself and its place in the map of ranks.
const OVERHEAD: u64 = (size_of::<Ranked>() + 2 * size_of::<(Rank, u32)>()) as u64;
/// Ranks whose layers are found without the map.
const RECENT: usize = 64;
/// No layer.
const NONE: u32 = u32::MAX;

/// A layer and what is known of its states.
struct Ranked {
    rank: Rank,
    layer: Layer,
    /// How many of them, the first ones, are kept for good.
    kept: u32,
    /// The first that waits.
    next: u32,
    /// Where the level ends that is handed out: states from here on came since it was begun.
    level: u32,
}

struct LayerTables {
    scratch: Scratch,
    width: Width,
    remember: Remember,
    ranked: Vec<Ranked>,
    /// Entries of `ranked` that are not in use.
    unused: Vec<u32>,
    by_rank: BTreeMap<Rank, u32>,
    /// Layers that were looked up, by the low bits of their rank.
    recent: [(Rank, u32); RECENT],
    line: Rank,
    /// How many states are held.
    len: u64,
    kept: u64,
    numbers: u64,
    grant: Grant,
    buffer: States,
    hashes: Vec<u64>,
    /// How many states the layer had that was forgotten last.
    expected: u32,
    /// For each run of entrants of one rank: where it ends, and its layer.
    runs: Vec<(usize, u32)>,
}

/// The states of a sweep.
pub struct Layers<'a> {
    system: &'a dyn System,
    inner: Mutex<LayerTables>,
}

impl<'a> Layers<'a> {
    /// An empty window for the states of a system, within a budget. The line is behind everything.
    pub fn new(system: &'a dyn System, budget: &Arc<Budget>, remember: Remember) -> Self {
        let width = system.width();
        let inner = LayerTables {
            scratch: system.scratch(),
            width,
            remember,
            ranked: Vec::new(),
            unused: Vec::new(),
            by_rank: BTreeMap::new(),
            recent: [(0, NONE); RECENT],
            line: Rank::MIN,
            len: 0,
            kept: 0,
            numbers: 0,
            grant: Grant::new(budget),
            buffer: States::new(width),
            hashes: Vec::new(),
            expected: 0,
            runs: Vec::new(),
        };
        Layers { system, inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, LayerTables> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LayerTables {
    /// The layer of a rank, or [`NONE`].
    #[inline]
    fn find(&mut self, rank: Rank) -> u32 {
        let recent = &mut self.recent[rank as usize % RECENT];
        if recent.1 == NONE || recent.0 != rank {
            let Some(&number) = self.by_rank.get(&rank) else { return NONE };
            *recent = (rank, number);
        }
        recent.1
    }

    /// A new layer for a rank that has none.
    fn add(&mut self, rank: Rank) -> Option<u32> {
        if !self.grant.ask(OVERHEAD) {
            return None;
        }
        let ranked = Ranked { rank, layer: Layer::new(), kept: 0, next: 0, level: 0 };
        let number = match self.unused.pop() {
            Some(number) => {
                self.ranked[number as usize] = ranked;
                number
            }
            None => {
                self.ranked.push(ranked);
                self.ranked.len() as u32 - 1
            }
        };
        self.by_rank.insert(rank, number);
        Some(number)
    }

    /// A layer, and what it needs to grow.
    #[inline(always)]
    fn open<'s, 'a>(&'s mut self, system: &'a dyn System, number: u32) -> (&'s mut Ranked, Means<'s, 'a>) {
        let LayerTables { scratch, width, remember, ranked, grant, buffer, hashes, expected, .. } = self;
        let means =
            Means { system, scratch, grant, remember: *remember, width: *width, buffer, hashes, expected: *expected };
        (&mut ranked[number as usize], means)
    }

    /// Cuts a layer to what is kept of it, and drops it if that is nothing.
    fn cut(&mut self, system: &dyn System, number: u32) {
        let (ranked, mut means) = self.open(system, number);
        debug_assert!(ranked.next == ranked.layer.len(), "nothing is forgotten before it was handed out");
        let (held, len) = (ranked.layer.held(), ranked.layer.len());
        // A smaller index takes less than what was just given back.
        let cut = ranked.layer.cut(ranked.kept, &mut means);
        assert!(cut, "there is memory for less than what was there");
        (ranked.next, ranked.level) = (ranked.kept, ranked.kept);
        let (rank, kept) = (ranked.rank, ranked.kept);
        self.len -= u64::from(held - kept);
        self.expected = len;
        if kept == 0 {
            self.by_rank.remove(&rank);
            let recent = &mut self.recent[rank as usize % RECENT];
            if recent.0 == rank {
                recent.1 = NONE;
            }
            self.unused.push(number);
            self.grant.give_back(OVERHEAD);
        }
    }
}

impl Window for Layers<'_> {
    fn advance(&self, line: Rank, closed: bool) {
        let inner = &mut *self.inner();
        // Layers ahead of the old line and behind the new one; a new sweep begins further back.
        if line > inner.line {
            let passed = |(_, &number): (&Rank, &u32)| number;
            let behind: Vec<u32> = inner.by_rank.range(inner.line..line).map(passed).collect();
            for number in behind {
                let ranked = &inner.ranked[number as usize];
                if ranked.layer.len() > ranked.kept {
                    inner.cut(self.system, number);
                }
            }
        }
        inner.line = line;
        let number = inner.find(line);
        if closed && number != NONE {
            let (ranked, means) = inner.open(self.system, number);
            if ranked.kept == 0 {
                ranked.layer.close(means.grant);
            }
        }
    }

    fn enter(&self, entrants: Entrants<'_>, mut room: u64, out: &mut Vec<Insert>) {
        let inner = &mut *self.inner();
        let Entrants { states, hashes, ranks, actions } = entrants;
        let mut runs = std::mem::take(&mut inner.runs);
        runs.clear();
        let mut start = 0;
        while start < ranks.len() {
            let rank = ranks[start];
            let end = start + ranks[start..].iter().take_while(|&&other| other == rank).count();
            let number = inner.find(rank);
            if number != NONE {
                let layer = &inner.ranked[number as usize].layer;
                hashes[start..end].iter().for_each(|&hash| layer.fetch(hash));
            }
            runs.push((end, number));
            start = end;
        }
        let mut start = 0;
        for &(end, number) in &runs {
            if number != NONE {
                let layer = &inner.ranked[number as usize].layer;
                hashes[start..end].iter().for_each(|&hash| layer.fetch_state(inner.width, hash));
            }
            start = end;
        }
        let mut start = 0;
        'runs: for &(end, mut number) in &runs {
            let rank = ranks[start];
            if number == NONE {
                number = inner.find(rank);
            }
            if number == NONE {
                if room == 0 {
                    break;
                }
                match inner.add(rank) {
                    Some(added) => number = added,
                    None => {
                        out.push(Insert::Full);
                        break;
                    }
                }
            }
            let (behind, named) = (rank < inner.line, inner.remember.numbers);
            let (mut numbers, first) = (inner.numbers, inner.numbers);
            let (ranked, mut means) = inner.open(self.system, number);
            for (index, &hash) in (start..end).zip(&hashes[start..end]) {
                let action = actions.get(index).copied().unwrap_or(Action::NONE);
                let entrant = Entrant { state: states.get(index), hash, number: numbers, action };
                let answer = match ranked.layer.enter(entrant, room > 0, &mut means) {
                    Entered::New => {
                        room -= 1;
                        numbers += 1;
                        Insert::New(StateId::new(numbers - 1))
                    }
                    Entered::Seen(place) => {
                        if place >= ranked.level {
                            ranked.layer.arrive(place, action);
                        }
                        let number = || ranked.layer.number(place).expect("numbers are remembered");
                        Insert::Seen(if named { StateId::new(number()) } else { StateId::NAMELESS })
                    }
                    Entered::Unknown => {
                        start = usize::MAX;
                        break;
                    }
                    Entered::Full => Insert::Full,
                };
                out.push(answer);
                if answer == Insert::Full {
                    start = usize::MAX;
                    break;
                }
            }
            let new = numbers - first;
            if behind {
                debug_assert_eq!(u64::from(ranked.kept) + new, u64::from(ranked.layer.len()), "I1");
                ranked.kept = ranked.layer.len();
                inner.kept += new;
            }
            inner.numbers = numbers;
            inner.len += new;
            if start == usize::MAX {
                break 'runs;
            }
            start = end;
        }
        inner.runs = runs;
    }

    fn waiting(&self, from: Rank) -> Option<Rank> {
        let inner = self.inner();
        let waits = |&(_, &number): &(&Rank, &u32)| {
            let ranked = &inner.ranked[number as usize];
            ranked.next < ranked.layer.len()
        };
        inner.by_rank.range(from..).find(waits).map(|(&rank, _)| rank)
    }

    fn fill(&self, rank: Rank, most: usize, block: &mut Block, actions: &mut Vec<Action>) {
        let inner = &mut *self.inner();
        let number = inner.find(rank);
        if number == NONE {
            return;
        }
        let Ranked { layer, next, level, .. } = &mut inner.ranked[number as usize];
        if *next >= *level {
            *level = layer.len();
        }
        let end = if inner.remember.actions { *level } else { layer.len() };
        let places = *next..end.min(next.saturating_add(most as u32));
        let name = |place| StateId::new(layer.number(place).unwrap_or(StateId::NAMELESS.get()));
        block.fill(places.clone().map(name), |_, states| layer.read(inner.width, places.clone(), states));
        if inner.remember.actions {
            actions.extend(places.map(|place| layer.action(place).unwrap_or(Action::NONE)));
        }
    }

    fn pass(&self, rank: Rank, count: usize) {
        let inner = &mut *self.inner();
        let number = inner.find(rank);
        debug_assert!(number != NONE && rank >= inner.line);
        let ranked = &mut inner.ranked[number as usize];
        ranked.next += count as u32;
        debug_assert!(ranked.next <= ranked.layer.len());
        if !ranked.layer.is_open() {
            let held = ranked.layer.held();
            ranked.layer.let_go(ranked.next, &mut inner.grant);
            inner.len -= u64::from(held - ranked.layer.held());
        }
    }

    fn clear(&self) {
        let inner = &mut *self.inner();
        let bytes = inner.grant.bytes();
        inner.ranked.clear();
        inner.unused.clear();
        inner.by_rank.clear();
        inner.recent = [(0, NONE); RECENT];
        (inner.line, inner.len, inner.kept, inner.numbers) = (Rank::MIN, 0, 0, 0);
        inner.grant.give_back(bytes);
    }

    fn len(&self) -> u64 {
        self.inner().len
    }

    fn kept(&self) -> u64 {
        self.inner().kept
    }

    fn held_bytes(&self) -> u64 {
        self.inner().grant.bytes()
    }

    fn bytes(&self) -> Bytes {
        let inner = self.inner();
        let (mut states, mut index) = (0, 0);
        for &number in inner.by_rank.values() {
            let granted = inner.ranked[number as usize].layer.granted();
            states += granted.0;
            index += granted.1;
        }
        let layers = inner.by_rank.len() as u64 * OVERHEAD;
        Bytes::new().with("states", states).with("index", index).with("layers", layers)
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        let inner = &mut *self.inner();
        let numbers: Vec<u32> = inner.by_rank.values().copied().collect();
        inner.width = recoding.to;
        numbers.into_iter().all(|number| {
            let (ranked, mut means) = inner.open(self.system, number);
            ranked.layer.recode(recoding, &mut means)
        })
    }
}
