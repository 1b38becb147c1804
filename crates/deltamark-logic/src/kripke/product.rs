//! The product of a graph and an automaton, and its accepting components.
//!
//! J.-M. Couvreur, *On-the-fly Verification of Linear Temporal Logic*, FM 1999. In: edges between states, an automaton,
//! the states in which its transitions can be taken. Out: whether some path from given states is accepted, with a
//! lasso; or all states from which one is. What stays true: the search is depth-first over pairs `state * q + automaton
//! state` and ends, where one answer suffices, as soon as the edges seen so far close an accepting component. Four
//! bytes a pair, and some more for those on the current path.

use super::edges::Edges;
use super::letters::Guards;
use super::sets::StateSet;
use super::vector::Counted;
use super::{Pulse, make_room, set};
use crate::automaton::Automaton;
use deltamark_core::{Control, Stop};

/// A pair whose component is closed, and from which nothing accepting can be reached, or something.
const BAD: u32 = u32::MAX;
const GOOD: u32 = u32::MAX - 1;

/// A transition of the automaton.
struct Move {
    guard: usize,
    to: u32,
    accepting: u64,
}

/// A product.
pub(super) struct Product<'a> {
    edges: &'a Edges,
    guards: &'a [StateSet],
    moves: Vec<Vec<Move>>,
    /// Whether an automaton state accepts whatever follows.
    accepts: Vec<bool>,
    /// All acceptance sets.
    all: u64,
    initial: u32,
}

/// A pair on the current path, and which of its successors comes next.
#[derive(Clone, Copy, Default)]
struct Frame {
    state: u32,
    /// The automaton's state.
    at: u32,
    /// The number of a transition, and of an edge.
    transition: u32,
    edge: u32,
    good: bool,
}

/// A component that may still grow.
#[derive(Clone, Copy, Default)]
struct Root {
    number: u32,
    /// The acceptance sets inside, and of the transition that led to it.
    inside: u64,
    incoming: u64,
    accepting: bool,
}

/// What a search knows.
struct Search {
    /// The place of each pair in the search; 0 for new ones.
    numbers: Counted<u32>,
    live: Counted<u32>,
    frames: Counted<Frame>,
    roots: Counted<Root>,
    next: u32,
}

/// Where a search found an accepting component.
enum Accepted {
    /// All pairs with numbers from this one on.
    From(u32),
    /// From this pair on everything is accepted.
    Pair(u32),
}

/// States, and the place to which the last one leads back; `None` where it has no edges and repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lasso {
    pub states: Vec<u32>,
    pub back: Option<usize>,
}

impl<'a> Product<'a> {
    pub fn new(edges: &'a Edges, automaton: &Automaton, guards: &'a Guards) -> Self {
        let moves = automaton.states.iter().zip(&guards.of).map(|(row, guards)| {
            let one = |(one, &guard): (&crate::automaton::Transition, &u32)| Move {
                guard: guard as usize,
                to: one.to,
                accepting: one.accepting,
            };
            row.iter().zip(guards).map(one).collect()
        });
        Product {
            edges,
            guards: &guards.sets,
            moves: moves.collect(),
            accepts: (0..automaton.states.len() as u32).map(|state| automaton.accepts_all(state)).collect(),
            all: automaton.all_sets(),
            initial: automaton.initial,
        }
    }

    fn width(&self) -> u32 {
        self.moves.len() as u32
    }

    fn search(&self, control: &Control) -> Result<Search, Stop> {
        let pairs = u64::from(self.edges.states()) * u64::from(self.width());
        if pairs >= u64::from(GOOD) {
            return Err(Stop::Memory);
        }
        Ok(Search {
            numbers: Counted::zeroed(pairs as usize, &control.budget)?,
            live: Counted::new(&control.budget),
            frames: Counted::new(&control.budget),
            roots: Counted::new(&control.budget),
            next: 1,
        })
    }

    /// Whether some path from one of these states is accepted.
    pub fn accepts_from(&self, starts: &[u32], control: &Control) -> Result<bool, Stop> {
        if self.moves.is_empty() {
            return Ok(false);
        }
        Ok(self.first(&mut self.search(control)?, starts, control)?.is_some())
    }

    /// The first accepting component that is found from these states.
    fn first(&self, search: &mut Search, starts: &[u32], control: &Control) -> Result<Option<Accepted>, Stop> {
        let mut pulse = Pulse::new(control);
        for &start in starts {
            if let Some(found) = self.from::<false>(search, start, &mut pulse)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// All states from which some path is accepted.
    pub fn all_states(&self, control: &Control) -> Result<StateSet, Stop> {
        if self.moves.is_empty() {
            return Ok(StateSet::None);
        }
        let mut search = self.search(control)?;
        let mut found = set(self.edges.states(), control)?;
        let mut pulse = Pulse::new(control);
        for state in 0..self.edges.states() {
            self.from::<true>(&mut search, state, &mut pulse)?;
            if search.numbers[(state * self.width() + self.initial) as usize] == GOOD {
                found.insert(state.into());
            }
        }
        Ok(StateSet::of(found))
    }

    /// Searches from a state. If `ALL`, it goes on after an accepting component, and marks what leads to one.
    fn from<const ALL: bool>(
        &self,
        search: &mut Search,
        start: u32,
        pulse: &mut Pulse<'_>,
    ) -> Result<Option<Accepted>, Stop> {
        let width = self.width();
        let first = start * width + self.initial;
        if search.numbers[first as usize] != 0 {
            return Ok(None);
        }
        if self.accepts[self.initial as usize] {
            search.numbers[first as usize] = GOOD;
            return Ok(Some(Accepted::Pair(first)));
        }
        search.open(start, self.initial, first, 0)?;
        self.touch(search, start);
        while let Some(&Frame { state, at, mut transition, mut edge, .. }) = search.frames.last() {
            let own = [state];
            let row = match self.edges.of(state) {
                [] => &own[..],
                row => row,
            };
            let moves = &self.moves[at as usize];
            // The next successor that is new; the others are dealt with on the way.
            let mut new = None;
            let mut good = false;
            'moves: while let Some(one) = moves.get(transition as usize) {
                if edge == 0 && !self.guards[one.guard].contains(state) {
                    transition += 1;
                    continue;
                }
                while let Some(&target) = row.get(edge as usize) {
                    edge += 1;
                    let pair = target * width + one.to;
                    match search.numbers[pair as usize] {
                        BAD => {}
                        0 if self.accepts[one.to as usize] => {
                            search.numbers[pair as usize] = GOOD;
                            good = true;
                            if !ALL {
                                return Ok(Some(Accepted::Pair(pair)));
                            }
                        }
                        0 => {
                            new = Some((target, one, pair));
                            break 'moves;
                        }
                        GOOD => good = true,
                        number => {
                            let root = search.merge(number, one.accepting, self.all);
                            if root.accepting && !ALL {
                                return Ok(Some(Accepted::From(root.number)));
                            }
                        }
                    }
                }
                (transition, edge) = (transition + 1, 0);
            }
            if let Some(frame) = search.frames.last_mut() {
                (frame.transition, frame.edge) = (transition, edge);
                frame.good |= good;
            }
            pulse.beat()?;
            match new {
                Some((target, one, pair)) => {
                    search.open(target, one.to, pair, one.accepting)?;
                    self.touch(search, target);
                }
                None => search.close::<ALL>(width),
            }
        }
        Ok(None)
    }

    /// Loads what will be looked at for the successors of a state: all at once, so that the latencies overlap.
    #[inline]
    fn touch(&self, search: &Search, state: u32) {
        let width = self.width();
        let numbers = self.edges.of(state).iter().map(|&target| search.numbers[(target * width) as usize]);
        std::hint::black_box(numbers.fold(0, |all, number| all | number));
    }

    /// A path from one of these states that is accepted.
    pub fn lasso(&self, starts: &[u32], control: &Control) -> Result<Option<Lasso>, Stop> {
        if self.moves.is_empty() {
            return Ok(None);
        }
        let mut search = self.search(control)?;
        let Some(found) = self.first(&mut search, starts, control)? else { return Ok(None) };
        // Only the numbers are needed from here on.
        search.frames = Counted::new(&control.budget);
        search.live = Counted::new(&control.budget);
        let width = self.width();
        let goal = |pair: u32| match found {
            Accepted::From(least) => (least..GOOD).contains(&search.numbers[pair as usize]),
            Accepted::Pair(one) => pair == one,
        };
        let firsts: Vec<u32> = starts.iter().map(|start| start * width + self.initial).collect();
        let mut parents = Parents::new(self, control)?;
        let mut path = if let Some(&first) = firsts.iter().find(|&&first| goal(first)) {
            vec![first]
        } else {
            let Some(path) = parents.path(&firsts, |_| true, |step| goal(step.to), control)? else {
                unreachable!("the search came to this component along edges of the product")
            };
            path
        };
        let back = match found {
            Accepted::Pair(_) => None,
            Accepted::From(_) => {
                let entry = path.len() - 1;
                let home = path[entry];
                let mut missing = self.all;
                // One set after the other, each on a shortest way; then home.
                loop {
                    let at = path[path.len() - 1];
                    let wanted = |step: &Taken| match missing {
                        0 => step.to == home,
                        _ => step.accepting & missing != 0,
                    };
                    let Some(more) = parents.path(&[at], goal, wanted, control)? else {
                        unreachable!("an accepting component has a way from each pair to each acceptance set")
                    };
                    let closes = missing == 0;
                    make_room(&mut path, more.len(), control)?;
                    path.extend_from_slice(&more[1..]);
                    missing &= !parents.taken(&more);
                    if closes || (missing == 0 && path[path.len() - 1] == home) {
                        path.pop();
                        break Some(entry);
                    }
                }
            }
        };
        // The pairs become their states.
        path.iter_mut().for_each(|pair| *pair /= width);
        Ok(Some(self.closed(path, back, control)?))
    }

    /// The lasso of a path whose end repeats from `back` on, or from which every continuation is accepted.
    fn closed(&self, mut states: Vec<u32>, back: Option<usize>, control: &Control) -> Result<Lasso, Stop> {
        // What repeats for ever has no edge to show.
        if let Some(end) = states.iter().position(|&state| self.edges.of(state).is_empty()) {
            states.truncate(end + 1);
            return Ok(Lasso { states, back: None });
        }
        if back.is_some() {
            return Ok(Lasso { states, back });
        }
        let back = follow(self.edges, &StateSet::All, &mut states, control)?;
        Ok(Lasso { states, back })
    }
}

/// Goes on from the last of these states, inside a set that no path need leave, until a state repeats: its place. `None` if the path ends.
pub(super) fn follow(
    edges: &Edges,
    inside: &StateSet,
    states: &mut Vec<u32>,
    control: &Control,
) -> Result<Option<usize>, Stop> {
    let begin = states.len() - 1;
    let mut seen = set(edges.states(), control)?;
    seen.insert(states[begin].into());
    let mut pulse = Pulse::new(control);
    loop {
        pulse.beat()?;
        let Some(&next) = edges.of(states[states.len() - 1]).iter().find(|&&next| inside.contains(next)) else {
            return Ok(None);
        };
        if seen.contains(next.into()) {
            return Ok(states[begin..].iter().position(|&state| state == next).map(|place| begin + place));
        }
        seen.insert(next.into());
        make_room(states, 1, control)?;
        states.push(next);
    }
}

impl Search {
    fn open(&mut self, state: u32, at: u32, pair: u32, incoming: u64) -> Result<(), Stop> {
        self.numbers[pair as usize] = self.next;
        self.live.push(pair)?;
        self.frames.push(Frame { state, at, ..Frame::default() })?;
        self.roots.push(Root { number: self.next, inside: 0, incoming, accepting: false })?;
        self.next += 1;
        Ok(())
    }

    /// An edge back to the pair of this number: all components since are one.
    fn merge(&mut self, number: u32, accepting: u64, all: u64) -> Root {
        let mut sets = accepting;
        let mut good = false;
        let last = loop {
            let last = self.roots.len() - 1;
            let root = self.roots[last];
            if root.number <= number {
                break last;
            }
            sets |= root.inside | root.incoming;
            good |= root.accepting;
            self.roots.pop();
        };
        let root = &mut self.roots[last];
        root.inside |= sets;
        root.accepting |= good || root.inside == all;
        *root
    }

    /// All successors of the last pair were seen.
    fn close<const ALL: bool>(&mut self, width: u32) {
        let Some(frame) = self.frames.pop() else { return };
        let pair = frame.state * width + frame.at;
        let mut good = frame.good;
        if let Some(root) = self.roots.last().copied().filter(|root| root.number == self.numbers[pair as usize]) {
            self.roots.pop();
            good |= root.accepting;
            while let Some(member) = self.live.pop() {
                self.numbers[member as usize] = if good { GOOD } else { BAD };
                if member == pair {
                    break;
                }
            }
        }
        if ALL
            && good
            && let Some(caller) = self.frames.last_mut()
        {
            caller.good = true;
        }
    }
}

/// A step of the product.
struct Taken {
    to: u32,
    accepting: u64,
}

/// Shortest paths in a product.
struct Parents<'p, 'a> {
    product: &'p Product<'a>,
    /// Of each pair the one before it, counted from 1.
    before: Counted<u32>,
    seen: Counted<u32>,
}

impl<'p, 'a> Parents<'p, 'a> {
    fn new(product: &'p Product<'a>, control: &Control) -> Result<Self, Stop> {
        let pairs = product.edges.states() as usize * product.moves.len();
        let before = Counted::zeroed(pairs, &control.budget)?;
        Ok(Parents { product, before, seen: Counted::new(&control.budget) })
    }

    fn steps(&self, pair: u32, mut see: impl FnMut(Taken) -> bool) {
        let (product, width) = (self.product, self.product.width());
        let (state, at) = (pair / width, pair % width);
        let own = [state];
        let row = match product.edges.of(state) {
            [] => &own[..],
            row => row,
        };
        for one in product.moves[at as usize].iter().filter(|one| product.guards[one.guard].contains(state)) {
            for &target in row {
                if see(Taken { to: target * width + one.to, accepting: one.accepting }) {
                    return;
                }
            }
        }
    }

    /// A shortest path of at least one step from one of these pairs, through pairs that are `inside`, whose last step is
    /// `wanted`.
    fn path(
        &mut self,
        firsts: &[u32],
        inside: impl Fn(u32) -> bool,
        wanted: impl Fn(&Taken) -> bool,
        control: &Control,
    ) -> Result<Option<Vec<u32>>, Stop> {
        for &pair in self.seen.iter() {
            self.before[pair as usize] = 0;
        }
        self.seen.clear();
        for &first in firsts {
            if self.before[first as usize] == 0 {
                self.before[first as usize] = first + 1;
                self.seen.push(first)?;
            }
        }
        let mut pulse = Pulse::new(control);
        let mut next = 0;
        while let Some(&pair) = self.seen.get(next) {
            pulse.beat()?;
            next += 1;
            let mut last = None;
            let mut new = Vec::new();
            self.steps(pair, |step| {
                if !inside(step.to) {
                    return false;
                }
                if wanted(&step) {
                    last = Some(step.to);
                    return true;
                }
                new.push(step.to);
                false
            });
            if let Some(last) = last {
                let mut path = vec![last, pair];
                let mut at = pair;
                while self.before[at as usize] != at + 1 {
                    at = self.before[at as usize] - 1;
                    make_room(&mut path, 1, control)?;
                    path.push(at);
                }
                path.reverse();
                return Ok(Some(path));
            }
            for to in new {
                if self.before[to as usize] == 0 {
                    self.before[to as usize] = pair + 1;
                    self.seen.push(to)?;
                }
            }
        }
        Ok(None)
    }

    /// The acceptance sets that the steps of a path can be in.
    fn taken(&self, path: &[u32]) -> u64 {
        let mut sets = 0;
        for pair in path.windows(2) {
            self.steps(pair[0], |step| {
                sets |= if step.to == pair[1] { step.accepting } else { 0 };
                false
            });
        }
        sets
    }
}
