//! Rebuilding states from their back edges.
//!
//! In: numbers of states, or candidates for certain numbers. Out: the states, or whether they are
//! equal. Invariant: an answer depends only on states stored in full and on steps of the system, so
//! it is exact, whichever hash suggested the number.
//!
//! # Forwards
//! ```text
//! round 0   17 18 25 26           numbers asked for, ascending, each once
//! round 1    9  9 12 13           their parents: equal ones merge
//! round 2    4  …  6  6           … until all are kept in full
//! ```
//! Then down again: the states of a round are the successors of those of the round above, fired as
//! a batch. Close numbers have common ancestors, which are rebuilt once.
//!
//! # Backwards
//! If actions can be undone, whether a state `s` is number `n` is checked without rebuilding number
//! `n`: undo the action of `n` in `s`, continue with the result and the parent of `n`, down to a
//! number stored in full, and compare there. Undoing is a function: the predecessor of `s` under an
//! action is unique if it exists, and the action leads from it back to `s`. So the two ways agree:
//! `s` is number `n` if and only if all actions can be undone and the result is the stored state.
//! All candidates walk together, one step per round; those whose action cannot be undone are
//! dropped; those that reach one number with equal states are merged. (Evangelista and
//! Pradat-Peyre, *Memory efficient state space storage in explicit software model checking*, 2005,
//! undo one candidate at a time; Westergaard and others, *The ComBack method*, 2007, name it
//! variant 3.)
//!
//! In level order parents never decrease, so a sorted round stays sorted, and merging only compares
//! neighbours. Otherwise each round is sorted.

use crate::rebuilding::spanning::{Exceptions, From, NONE, Spanning};
use crate::states::cache::Cache;
use crate::states::checkpoints::{Checkpoints, Hint};
use crate::states::together;
use crate::states::window::Window;
use crate::tables::quotient::Quotient;
use deltamark_core::{
    Action, Batch, Fired, Order, Reversible, Scratch, Slot, States, System, Undone, Width, hash::mix,
};

/// Candidates that walk together: enough to hide memory latency and to meet often.
const PIECE: usize = 4096;
/// How many candidates of this width walk together.
pub(crate) fn piece(width: Width) -> usize {
    together(width, PIECE)
}

/// States that are thought to have certain numbers.
pub(crate) struct Candidates {
    pub states: States,
    pub hashes: Vec<u64>,
    pub numbers: Vec<u64>,
}

impl Candidates {
    pub fn new(width: Width) -> Self {
        Candidates { states: States::new(width), hashes: Vec::new(), numbers: Vec::new() }
    }

    pub fn reset(&mut self, width: Width) {
        self.states.reset(width);
        self.hashes.clear();
        self.numbers.clear();
    }

    pub fn push(&mut self, state: &[Slot], hash: u64, number: u64) {
        self.states.push(state);
        self.hashes.push(hash);
        self.numbers.push(number);
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }
}

/// What states are rebuilt from.
pub(crate) struct Rebuilder<'a> {
    pub system: &'a dyn System,
    /// Whether steps are undone; if not, states are built forwards and compared.
    pub reversible: Option<&'a dyn Reversible>,
    pub scratch: Scratch,
    pub order: Order,
    pub tree: Spanning,
    pub kept: Checkpoints<'a>,
    /// In level order the two current levels, unless they are to be rebuilt too.
    pub window: Option<Window>,
    pub cache: Cache,
    /// From hashes to numbers.
    pub table: Quotient<128>,
    /// Set when the tree holds only some bits of each action.
    pub coded: Option<Coded>,
    pub work: WalkScratch,
}

/// What is needed where a back edge holds only some bits of its action: see `comback.rs`.
pub(crate) struct Coded {
    /// How many bits.
    pub bits: u32,
    /// Whole actions of the states that the bits and the signature do not distinguish from a sibling.
    pub choices: Exceptions,
    pub batch: Batch,
}

impl Coded {
    /// What of an action is stored.
    pub fn code(&self, action: Action) -> Action {
        Action(action.0 & ((1u64 << self.bits) - 1) as u32)
    }
}

/// Where a number is in full.
#[derive(Clone, Copy)]
enum Anchor {
    Window,
    Kept(u64),
    Cached,
}

/// Working memory.
pub(crate) struct WalkScratch {
    // Walking back.
    states: States,
    hashes: Vec<u64>,
    numbers: Vec<u64>,
    who: Vec<u32>,
    /// The candidate whose fate a candidate shares.
    alias: Vec<u32>,
    undone: Undone,
    parents: Vec<u64>,
    actions: Vec<Action>,
    sorted: Vec<(u64, u32)>,
    stay: Vec<u32>,
    next_hashes: Vec<u64>,
    next_numbers: Vec<u64>,
    next_who: Vec<u32>,
    arrived: Vec<u32>,
    places: Vec<u64>,
    full: States,
    /// Steps that were taken back.
    taken: u64,
    // Building forwards.
    rounds: Vec<Round>,
    above: States,
    sources: States,
    rebuilt: States,
}

/// One round of climbing.
#[derive(Default)]
struct Round {
    numbers: Vec<u64>,
    /// Those that are in full somewhere, with their place in `numbers`.
    anchors: Vec<(u32, Anchor)>,
    /// The others: place in `numbers`, action, and place of the parent in the next round.
    steps: Vec<u32>,
    actions: Vec<Action>,
    parents: Vec<u32>,
    /// For each of `numbers` where its state is among those of the round.
    slots: Vec<u32>,
}

impl WalkScratch {
    pub fn new(width: Width) -> Self {
        WalkScratch {
            states: States::new(width),
            hashes: Vec::new(),
            numbers: Vec::new(),
            who: Vec::new(),
            alias: Vec::new(),
            undone: Undone::new(width),
            parents: Vec::new(),
            actions: Vec::new(),
            sorted: Vec::new(),
            stay: Vec::new(),
            next_hashes: Vec::new(),
            next_numbers: Vec::new(),
            next_who: Vec::new(),
            arrived: Vec::new(),
            places: Vec::new(),
            full: States::new(width),
            taken: 0,
            rounds: Vec::new(),
            above: States::new(width),
            sources: States::new(width),
            rebuilt: States::new(width),
        }
    }
}

/// Whether two states are equal: in place for narrow ones, where a call would cost more than
/// the comparison.
#[inline(always)]
pub(crate) fn same(a: &[Slot], b: &[Slot]) -> bool {
    if a.len() != b.len() || a.len() > 8 {
        return a == b;
    }
    a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// Where a number is in full, if it is.
#[inline(always)]
fn anchor(
    order: Order,
    tree: &Spanning,
    kept: &Checkpoints<'_>,
    window: &Option<Window>,
    cache: &Cache,
    hint: &mut Hint,
    number: u64,
) -> Option<Anchor> {
    if let Some(window) = window
        && number >= window.numbers().start
    {
        return Some(Anchor::Window);
    }
    let place = match order {
        Order::Levels => kept.place(hint, number),
        Order::Any => match tree.edge(number).0 {
            From::Kept(place) => Some(place),
            From::Parent(_) => None,
        },
    };
    match place {
        Some(place) => Some(Anchor::Kept(place)),
        None => cache.get(number).map(|_| Anchor::Cached),
    }
}

impl Rebuilder<'_> {
    /// How many steps were taken back since this was asked last.
    pub fn taken(&mut self) -> u64 {
        std::mem::take(&mut self.work.taken)
    }

    /// Whether each candidate is what its number says; answers replace what `found` held.
    pub fn confirm(&mut self, candidates: &Candidates, found: &mut Vec<bool>) {
        found.clear();
        found.resize(candidates.len(), false);
        let piece = piece(self.system.width());
        for start in (0..candidates.len()).step_by(piece) {
            let end = candidates.len().min(start + piece);
            match self.reversible {
                Some(reversible) => self.confirm_backwards(reversible, candidates, start..end, found),
                None => self.confirm_forwards(candidates, start..end, found),
            }
        }
    }

    fn confirm_forwards(&mut self, candidates: &Candidates, range: std::ops::Range<usize>, found: &mut [bool]) {
        let mut states = std::mem::replace(&mut self.work.rebuilt, States::new(Width::Fixed(0)));
        states.reset(self.system.width());
        self.rebuild(&candidates.numbers[range.clone()], &mut states);
        for (state, index) in states.iter().zip(range) {
            found[index] = state == candidates.states.get(index);
        }
        self.work.rebuilt = states;
    }

    fn confirm_backwards(
        &mut self,
        reversible: &dyn Reversible,
        candidates: &Candidates,
        range: std::ops::Range<usize>,
        found: &mut [bool],
    ) {
        let width = self.system.width();
        let Rebuilder { scratch, order, tree, kept, window, cache, work, .. } = self;
        let WalkScratch {
            states,
            hashes,
            numbers,
            who,
            alias,
            undone,
            parents,
            actions,
            sorted,
            stay,
            next_hashes,
            next_numbers,
            next_who,
            arrived,
            places,
            full,
            above,
            taken,
            ..
        } = work;
        let first = range.start;
        alias.clear();
        alias.extend(0..range.len() as u32);
        sorted.clear();
        sorted.extend(range.clone().map(|index| (candidates.numbers[index], (index - first) as u32)));
        sorted.sort_unstable();
        states.reset(width);
        hashes.clear();
        numbers.clear();
        who.clear();
        for &(number, index) in sorted.iter() {
            states.push(candidates.states.get(first + index as usize));
            hashes.push(candidates.hashes[first + index as usize]);
            numbers.push(number);
            who.push(index);
        }
        let mut hint = Hint::new();
        loop {
            let in_order = numbers.is_sorted();
            sorted.clear();
            sorted.extend(numbers.iter().zip(0..).map(|(&number, index)| (number, index)));
            if !in_order {
                sorted.sort_unstable();
            }
            stay.clear();
            arrived.clear();
            places.clear();
            for &(number, index) in sorted.iter() {
                let index = index as usize;
                match anchor(*order, tree, kept, window, cache, &mut hint, number) {
                    Some(Anchor::Kept(place)) => {
                        arrived.push(index as u32);
                        places.push(place);
                    }
                    Some(Anchor::Window) => {
                        let same = window.as_ref().is_some_and(|window| same(window.get(number), states.get(index)));
                        found[first + who[index] as usize] = same;
                    }
                    Some(Anchor::Cached) => {
                        found[first + who[index] as usize] = cache.get(number) == Some(states.get(index));
                    }
                    None => match stay.last() {
                        Some(&last)
                            if numbers[last as usize] == number
                                && hashes[last as usize] == hashes[index]
                                && same(states.get(last as usize), states.get(index)) =>
                        {
                            alias[who[index] as usize] = who[last as usize];
                        }
                        _ => stay.push(index as u32),
                    },
                }
            }
            if !arrived.is_empty() {
                full.reset(width);
                kept.states(places, full);
                for (&index, state) in arrived.iter().zip(full.iter()) {
                    found[first + who[index as usize] as usize] = same(state, states.get(index as usize));
                }
            }
            if stay.is_empty() {
                break;
            }
            if stay.len() < numbers.len() || !in_order {
                above.reset(width);
                next_hashes.clear();
                next_numbers.clear();
                next_who.clear();
                for &index in stay.iter() {
                    let index = index as usize;
                    above.push(states.get(index));
                    next_hashes.push(hashes[index]);
                    next_numbers.push(numbers[index]);
                    next_who.push(who[index]);
                }
                std::mem::swap(states, above);
                std::mem::swap(hashes, next_hashes);
                std::mem::swap(numbers, next_numbers);
                std::mem::swap(who, next_who);
            }
            parents.clear();
            actions.clear();
            tree.edges(numbers, parents, actions);
            *taken += numbers.len() as u64;
            undone.reset(width);
            reversible.unfire_each(scratch, states, hashes, actions, undone);
            std::mem::swap(states, &mut undone.states);
            std::mem::swap(hashes, &mut undone.hashes);
            // Those that go on keep their order, so what is read has not been overwritten.
            for (index, &from) in undone.from.iter().enumerate() {
                numbers[index] = parents[from as usize];
                who[index] = who[from as usize];
            }
            numbers.truncate(undone.from.len());
            who.truncate(undone.from.len());
        }
        for candidate in 0..range.len() {
            let mut root = candidate;
            while alias[root] as usize != root {
                root = alias[root] as usize;
            }
            found[first + candidate] = found[first + root];
        }
    }

    /// Appends the states of these numbers, in order.
    pub fn rebuild(&mut self, numbers: &[u64], out: &mut States) {
        if numbers.is_empty() {
            return;
        }
        let mut rounds = std::mem::take(&mut self.work.rounds);
        let deepest = self.climb(numbers, &mut rounds);
        for depth in (0..=deepest).rev() {
            let (below, above) = rounds.split_at_mut(depth + 1);
            self.descend(&mut below[depth], above.first().filter(|_| depth < deepest));
        }
        // The first round is sorted and holds each number once.
        for number in numbers {
            let at = rounds[0].numbers.partition_point(|held| held < number);
            out.push(self.work.above.get(rounds[0].slots[at] as usize));
        }
        self.work.rounds = rounds;
    }

    /// Climbs from these numbers until all ancestors are in full; returns in which round that is.
    fn climb(&mut self, numbers: &[u64], rounds: &mut Vec<Round>) -> usize {
        let Rebuilder { order, tree, kept, window, cache, work, .. } = self;
        let WalkScratch { parents, sorted, next_numbers: unknown, .. } = work;
        let mut hint = Hint::new();
        if rounds.is_empty() {
            rounds.push(Round::default());
        }
        let list = &mut rounds[0].numbers;
        list.clear();
        list.extend_from_slice(numbers);
        if !list.is_sorted() {
            list.sort_unstable();
        }
        list.dedup();
        let mut depth = 0;
        loop {
            let round = &mut rounds[depth];
            round.anchors.clear();
            round.steps.clear();
            round.actions.clear();
            round.parents.clear();
            unknown.clear();
            for (index, &number) in round.numbers.iter().enumerate() {
                match anchor(*order, tree, kept, window, cache, &mut hint, number) {
                    Some(anchor) => round.anchors.push((index as u32, anchor)),
                    None => {
                        round.steps.push(index as u32);
                        unknown.push(number);
                    }
                }
            }
            if round.steps.is_empty() {
                return depth;
            }
            parents.clear();
            tree.edges(unknown, parents, &mut round.actions);
            if rounds.len() == depth + 1 {
                rounds.push(Round::default());
            }
            let (below, above) = rounds.split_at_mut(depth + 1);
            let (round, above) = (&mut below[depth], &mut above[0].numbers);
            above.clear();
            if parents.is_sorted() {
                for &parent in parents.iter() {
                    if above.last() != Some(&parent) {
                        above.push(parent);
                    }
                    round.parents.push(above.len() as u32 - 1);
                }
            } else {
                sorted.clear();
                sorted.extend(parents.iter().zip(0..).map(|(&parent, index)| (parent, index)));
                sorted.sort_unstable();
                round.parents.resize(parents.len(), 0);
                for &(parent, index) in sorted.iter() {
                    if above.last() != Some(&parent) {
                        above.push(parent);
                    }
                    round.parents[index as usize] = above.len() as u32 - 1;
                }
            }
            debug_assert!(above.last() != Some(&NONE), "initial states are kept in full");
            depth += 1;
        }
    }

    /// Builds the states of a round into `work.above`, from those of the round above, which are
    /// there.
    fn descend(&mut self, round: &mut Round, above: Option<&Round>) {
        let width = self.system.width();
        let Rebuilder { system, scratch, kept, window, cache, table, coded, work, .. } = self;
        let WalkScratch { above: held, states, sources, places, full, .. } = work;
        states.reset(width);
        round.slots.clear();
        round.slots.resize(round.numbers.len(), 0);
        if let Some(above) = above {
            sources.reset(width);
            for &parent in &round.parents {
                sources.push(held.get(above.slots[parent as usize] as usize));
            }
            match coded {
                None => system.fire_each(scratch, sources, &round.actions, states),
                Some(coded) => {
                    for (index, source) in sources.iter().enumerate() {
                        let number = round.numbers[round.steps[index] as usize];
                        coded.step(*system, scratch, table, source, number, round.actions[index], states);
                    }
                }
            }
            for (slot, &index) in round.steps.iter().enumerate() {
                round.slots[index as usize] = slot as u32;
            }
        }
        places.clear();
        for &(_, anchor) in &round.anchors {
            if let Anchor::Kept(place) = anchor {
                places.push(place);
            }
        }
        full.reset(width);
        kept.states(places, full);
        let mut from_kept = 0;
        for &(index, anchor) in &round.anchors {
            let number = round.numbers[index as usize];
            round.slots[index as usize] = states.len() as u32;
            match (anchor, &*window) {
                (Anchor::Window, Some(window)) => states.push(window.get(number)),
                (Anchor::Kept(_), _) => {
                    states.push(full.get(from_kept));
                    from_kept += 1;
                }
                _ => states.push(cache.get(number).expect("what was there when climbing is there")),
            }
        }
        std::mem::swap(states, held);
    }

    /// How many steps are between a state and the one kept in full that it is rebuilt from: at
    /// most `most`.
    pub fn chain(&self, number: u64, most: u64) -> u64 {
        let mut hint = Hint::new();
        let (mut at, mut steps) = (number, 0);
        while steps < most {
            if self.order == Order::Levels && self.kept.place(&mut hint, at).is_some() {
                break;
            }
            match self.tree.edge(at).0 {
                From::Kept(_) | From::Parent(NONE) => break,
                From::Parent(parent) => at = parent,
            }
            steps += 1;
        }
        steps
    }

    /// Points a state to another parent, if it is rebuilt in fewer steps that way. Both lengths
    /// are counted here and now: the new parent's chain is the shorter one, so the state is
    /// not on it, and no cycle comes about.
    pub fn shorten(&mut self, number: u64, parent: u64, action: Action) {
        let through = self.chain(parent, u64::MAX) + 1;
        if through < self.chain(number, through + 1) {
            // Without memory the longer way stays.
            let _ = self.tree.repoint(number, parent, action);
        }
    }
}

impl Coded {
    /// Appends the state of this number, a successor of `source` by an action of this code.
    #[allow(clippy::too_many_arguments)]
    fn step(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        table: &Quotient<128>,
        source: &[Slot],
        number: u64,
        code: Action,
        out: &mut States,
    ) {
        if let Some(choice) = self.choices.get(number) {
            let mut target = Vec::new();
            let fired = system.fire(scratch, source, Action(choice.action), &mut target);
            assert_eq!(fired, Ok(Fired::Done), "a step that was taken can be taken again");
            return out.push(&target);
        }
        self.batch.reset(system.width());
        let mut done = system.successors(scratch, source, &mut self.batch);
        if self.batch.stop().is_some() {
            // There was memory for them when the state was inserted, unless the layout has widened since.
            self.batch = Batch::new(system.width());
            done = system.successors(scratch, source, &mut self.batch);
        }
        assert!(done.is_ok(), "a step that was taken can be taken again");
        let found = (0..self.batch.len()).find(|&index| {
            let mut is_number = false;
            if self.code(self.batch.action(index)) == code {
                table.probe(mix(self.batch.hash(index)), |payload| is_number |= payload == number);
            }
            is_number
        });
        let index = found.expect("a step that was taken can be taken again");
        out.push(self.batch.target(index));
    }
}
