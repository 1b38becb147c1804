//! The product of a system and an automaton: the same system, whose states carry the automaton's state.
//!
//! In: a system, and an automaton whose letters are formulas of single states. Out: a system, so every store takes its
//! states and every search explores it. What stays true: a path of the product is a path of the system below, read by
//! the automaton; a state without successors below repeats for ever, by a step of its own; an action determines which
//! transition of the automaton was taken, and so the acceptance sets.
//!
//! ```text
//! state     [ state of the system below | q ]          one slot more: the state of the automaton
//! action    (action below + 1) · moves + move          0 in place of the first part: the last state repeats
//! ```
//!
//! A *move* is all transitions of the automaton with the same ends and the same acceptance sets. It can be taken where
//! one of them can: they differ in their guards alone.
//!
//! # States that decide
//! A state from which on the automaton accepts everything is a *fault* of the product, [`ACCEPTED`], and has no
//! successors: a search for faults finds it, by any store.
//!
//! # Atoms without a value
//! A formula with an atom that has no value in some reachable state is violated. In the product such a state is a
//! fault, and has no successors. The automaton need not follow all paths, so where atoms may lack a value it gets a
//! further initial state, which repeats on every letter and is in no acceptance set: with it the product reaches every
//! state of the system. If no acceptance sets were asked for, one is added that all other transitions are in.

use super::super::Questions;
use super::super::atoms::Lens;
use super::letters::Letters;
use deltamark_core::{
    Action, Batch, Block, Components, Control, Exchange, Facts, Fired, Layer, Observe, Portable, Progress, Recoding,
    Reversible, Scratch, Slot, StateId, States, Stop, System, Value, Widen, Width, hash::mix,
};
use deltamark_logic::automaton::{Automaton, Transition};
use std::sync::Arc;

/// What the product says of a state from which on everything is accepted.
pub(crate) const ACCEPTED: &str = "whatever follows, the formula is false";

#[cfg(test)]
mod tests;

/// Transitions with the same ends and acceptance sets.
struct Move {
    from: u32,
    to: u32,
    accepting: u64,
    /// What must be true and what false, for one of them at least.
    guards: Vec<(u64, u64)>,
}

/// A product.
pub(crate) struct Product<'s> {
    inner: &'s dyn System,
    questions: Arc<Questions>,
    letters: Letters,
    /// Ordered by the state in which they begin.
    moves: Vec<Move>,
    /// Of each state of the automaton where its moves begin, and where the last ones end.
    begins: Vec<usize>,
    initial: Vec<u32>,
    all: u64,
    /// The states of the automaton that accept whatever follows.
    accepts: Vec<bool>,
    /// Those that an accepting cycle may visit.
    recurring: Vec<bool>,
}

/// Working memory of a thread.
struct Working {
    inner: Scratch,
    block: Block,
    batch: Batch,
    lens: Lens,
    /// Of each atom the states of the block in which it is true; of each letter; of each move.
    atoms: Vec<u64>,
    letters: Vec<u64>,
    moves: Vec<u64>,
    /// Of each state of the automaton the lanes that are in it; the moves that some lane takes, and which.
    at: Vec<u64>,
    taken: Vec<(usize, u64)>,
    /// Of each state of the product its lane in the block below, ascending, and the state of the automaton.
    lanes: Vec<(u8, u32)>,
    target: Vec<Slot>,
    many: Many,
}

/// States below of many states of the product.
struct Many {
    sources: States,
    targets: States,
    actions: Vec<Action>,
    hashes: Vec<u64>,
}

/// The states of a block in which some atom has no value, each with the reason.
type WithoutValue = Vec<(u8, String)>;

/// The state of the system below, and that of the automaton.
fn split(state: &[Slot]) -> (&[Slot], u32) {
    let (&at, below) = state.split_last().expect("a state ends in that of the automaton");
    (below, at)
}

/// The hash of a state, from that of the system below.
fn joined(hash: u64, at: u32) -> u64 {
    mix(hash.wrapping_add(u64::from(at)))
}

impl<'s> Product<'s> {
    /// The product with an automaton over `letters`. `covers` is whether every state of the system must be reached.
    pub fn new(
        inner: &'s dyn System,
        questions: &Arc<Questions>,
        letters: Letters,
        automaton: &Automaton,
        covers: bool,
    ) -> Self {
        let mut states = automaton.states.clone();
        let mut initial = if automaton.is_empty() { Vec::new() } else { vec![automaton.initial] };
        let mut accepts: Vec<bool> = (0..states.len() as u32).map(|state| automaton.accepts_all(state)).collect();
        states.iter_mut().zip(&accepts).filter(|(_, accepts)| **accepts).for_each(|(row, _)| row.clear());
        let mut all = automaton.all_sets();
        if covers || states.is_empty() {
            if all == 0 {
                all = 1;
                states.iter_mut().flatten().for_each(|one| one.accepting = 1);
            }
            initial.push(states.len() as u32);
            let to = states.len() as u32;
            let stay = Transition { to, positive: 0, negative: 0, accepting: 0 };
            // An automaton that accepts nothing needs no product: where nothing is to be covered, there is one state.
            states.push(if covers { vec![stay] } else { Vec::new() });
            accepts.push(false);
        }
        let whole = Automaton { states, initial: automaton.initial, sets: all.count_ones(), atoms: automaton.atoms };
        let recurring = whole.recurring();
        let (mut moves, mut begins): (Vec<Move>, _) = (Vec::new(), vec![0]);
        for (from, row) in (0..).zip(&whole.states) {
            let begin = moves.len();
            for one in row {
                let guard = (one.positive, one.negative);
                let same = |other: &&mut Move| other.to == one.to && other.accepting == one.accepting;
                match moves[begin..].iter_mut().find(same) {
                    Some(known) => known.guards.push(guard),
                    None => moves.push(Move { from, to: one.to, accepting: one.accepting, guards: vec![guard] }),
                }
            }
            begins.push(moves.len());
        }
        let questions = Arc::clone(questions);
        Product { inner, questions, letters, moves, begins, initial, all, accepts, recurring }
    }

    /// All acceptance sets.
    pub fn all_sets(&self) -> u64 {
        self.all
    }

    /// The acceptance sets that an action is in.
    pub fn sets(&self, action: Action) -> u64 {
        self.moves[self.decoded(action).1].accepting
    }

    /// Whether an accepting cycle may visit a state, as far as the automaton alone shows.
    pub fn recurs(&self, state: &[Slot]) -> bool {
        self.recurring[split(state).1 as usize]
    }

    /// The number of an initial state of the product, below.
    pub fn initial_below(&self, number: u32) -> u32 {
        number / self.initial.len() as u32
    }

    /// What an action does below; `None` where the last state repeats.
    pub fn below(&self, action: Action) -> Option<Action> {
        self.decoded(action).0
    }

    fn encoded(&self, below: Option<Action>, one: usize) -> Option<Action> {
        let first = below.map_or(0, |action| u64::from(action.0) + 1);
        let number = first * self.moves.len() as u64 + one as u64;
        u32::try_from(number).ok().filter(|&number| number != Action::NONE.0).map(Action)
    }

    fn decoded(&self, action: Action) -> (Option<Action>, usize) {
        let count = self.moves.len().max(1) as u32;
        ((action.0 / count).checked_sub(1).map(Action), (action.0 % count) as usize)
    }

    /// Which moves can be taken in the states of the block below, `dead` of which have neither steps nor faults and
    /// `ends` no steps; and where an atom has no value.
    fn look(&self, working: &mut Working, dead: u64, ends: u64, expanded: bool) -> Result<WithoutValue, End> {
        let Working { inner, block, batch, lens, atoms, letters, moves, .. } = working;
        let (mut failed, mut stop) = (Vec::new(), None);
        let known = (dead, expanded.then_some(&*batch));
        lens.look(&self.questions.atoms, self.inner, inner, block, known, |atom, value| match value {
            Ok(mask) => atoms[atom] = mask,
            Err(why) if why.limit => stop = Some(Stop::Count),
            Err(_) => failed.push(atom),
        });
        if let Some(stop) = stop {
            return Err(End::Stop(stop));
        }
        let without = self.one_by_one(inner, block, dead, &failed, atoms)?;
        let mut initial = 0;
        if self.letters.asks_initial {
            let mut first = Batch::new(self.inner.width());
            self.inner.initial(inner, &mut first)?;
            for (lane, state) in block.states().iter().enumerate() {
                initial |= u64::from(first.targets().iter().any(|other| other == state)) << lane;
            }
        }
        letters.clear();
        letters.extend(
            (0..self.letters.list.len()).map(|letter| self.letters.value(letter, block.mask(), atoms, initial, ends)),
        );
        moves.clear();
        moves.extend(self.moves.iter().map(|one| {
            let passed = |&(positive, negative): &(u64, u64)| {
                let mut mask = block.mask();
                for (letter, &truths) in letters.iter().enumerate() {
                    mask &= if positive >> letter & 1 == 1 { truths } else { u64::MAX };
                    mask &= if negative >> letter & 1 == 1 { !truths } else { u64::MAX };
                }
                mask
            };
            one.guards.iter().fold(0, |mask, guard| mask | passed(guard))
        }));
        Ok(without)
    }

    /// The values of atoms that have none in some state of the block.
    fn one_by_one(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        dead: u64,
        failed: &[usize],
        atoms: &mut [u64],
    ) -> Result<WithoutValue, End> {
        let mut without: WithoutValue = Vec::new();
        let mut single = Block::new(self.inner.width());
        for &atom in failed {
            atoms[atom] = 0;
            for (lane, state) in block.states().iter().enumerate() {
                single.reset(self.inner.width());
                single.push(StateId::new(0), state);
                match self.questions.atoms.list[atom].value(self.inner, scratch, &single, dead >> lane & 1) {
                    Ok(value) => atoms[atom] |= (value & 1) << lane,
                    Err(why) if why.limit => return Err(End::Stop(Stop::Count)),
                    Err(why) => without.push((lane as u8, why.message)),
                }
            }
        }
        Ok(without)
    }
}

/// Why a block was not looked at.
enum End {
    Stop(Stop),
    Widen,
}

impl From<Widen> for End {
    fn from(_: Widen) -> Self {
        End::Widen
    }
}

/// Describes an end.
fn ended(end: End, out: &mut Batch) -> Result<(), Widen> {
    match end {
        End::Widen => Err(Widen),
        End::Stop(stop) => {
            out.halt(stop);
            Ok(())
        }
    }
}

impl Working {
    fn begin(&mut self, width: Width, control: Option<&Control>) {
        self.block.reset(width);
        self.lanes.clear();
        match control {
            Some(control) if self.batch.control().is_none() => self.batch = Batch::new(width).under(control),
            _ => self.batch.reset(width),
        }
    }
}

impl Layer for Product<'_> {
    fn inner(&self) -> &dyn System {
        self.inner
    }

    fn width(&self) -> Width {
        match self.inner.width() {
            Width::Fixed(slots) => Width::Fixed(slots + 1),
            Width::Varies => Width::Varies,
        }
    }

    fn scratch(&self) -> Scratch {
        let width = self.inner.width();
        Scratch::new(Working {
            inner: self.inner.scratch(),
            block: Block::new(width),
            batch: Batch::new(width),
            lens: Lens::of(&self.questions.atoms, self.inner, &self.letters.atoms),
            atoms: vec![0; self.questions.atoms.list.len()],
            letters: Vec::new(),
            moves: Vec::new(),
            at: Vec::new(),
            taken: Vec::new(),
            lanes: Vec::new(),
            target: Vec::new(),
            many: Many {
                sources: States::new(width),
                targets: States::new(width),
                actions: Vec::new(),
                hashes: Vec::new(),
            },
        })
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let working: &mut Working = scratch.get();
        working.begin(self.inner.width(), out.control());
        let Working { inner, batch, target, .. } = working;
        self.inner.initial(inner, batch)?;
        if let Some(stop) = batch.stop() {
            out.halt(stop);
            return Ok(());
        }
        let mut number = 0;
        for index in 0..batch.len() {
            for &at in &self.initial {
                target.clear();
                target.extend_from_slice(batch.target(index));
                target.push(at);
                out.push_hashed(Action(number), target, joined(batch.hash(index), at));
                number += 1;
            }
        }
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let first = out.current();
        let mut block = Block::new(Layer::width(self));
        block.push(StateId::NAMELESS, source);
        self.expand_from(scratch, &block, first, out)
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.expand_from(scratch, block, 0, out)
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let (state, at) = split(source);
        let (below, one) = self.decoded(action);
        if self.moves.get(one).is_none_or(|one| one.from != at) {
            return Ok(Fired::Disabled);
        }
        let Some(step) = below.filter(|_| !self.letters.asks_ends) else {
            // Whether the state has steps at all must be known.
            let mut batch = Batch::new(Layer::width(self));
            Layer::successors(self, scratch, source, &mut batch)?;
            let Some(index) = batch.actions().iter().position(|&found| found == action) else {
                return Ok(Fired::Disabled);
            };
            target.clear();
            target.extend_from_slice(batch.target(index));
            return Ok(Fired::Done);
        };
        let working: &mut Working = scratch.get();
        working.begin(self.inner.width(), None);
        working.block.push(StateId::NAMELESS, state);
        match self.look(working, 0, 0, false) {
            Ok(without) if without.is_empty() && working.moves[one] & 1 == 1 => {}
            Ok(_) | Err(End::Stop(_)) => return Ok(Fired::Disabled),
            Err(End::Widen) => return Err(Widen),
        }
        Ok(match self.inner.fire(&mut working.inner, state, step, target)? {
            Fired::Done => {
                target.push(self.moves[one].to);
                Fired::Done
            }
            _ => Fired::Disabled,
        })
    }

    /// What was taken before needs no look at atoms.
    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        let working: &mut Working = scratch.get();
        let Working { inner, many: Many { sources: moving, targets: moved, actions: steps, .. }, target, .. } = working;
        moving.reset(self.inner.width());
        moved.reset(self.inner.width());
        steps.clear();
        for (source, &action) in sources.iter().zip(actions) {
            let (state, at) = split(source);
            let (below, one) = self.decoded(action);
            assert!(self.moves[one].from == at, "a step that was taken can be taken again");
            if let Some(below) = below {
                moving.push(state);
                steps.push(below);
            }
        }
        self.inner.fire_each(inner, moving, steps, moved);
        let mut moved = moved.iter();
        for (source, &action) in sources.iter().zip(actions) {
            let (below, one) = self.decoded(action);
            let state = below.map_or(Some(split(source).0), |_| moved.next());
            target.clear();
            target.extend_from_slice(state.expect("a system fires each step"));
            target.push(self.moves[one].to);
            targets.push(target);
        }
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        let (state, at) = split(state);
        let working: &mut Working = scratch.get();
        joined(self.inner.hash(&mut working.inner, state), at)
    }

    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        let working: &mut Working = scratch.get();
        let Working { inner, many: Many { sources, hashes, .. }, .. } = working;
        sources.reset(self.inner.width());
        states.iter().for_each(|state| sources.push(split(state).0));
        hashes.clear();
        self.inner.hashes(inner, sources, hashes);
        out.extend(states.iter().zip(hashes).map(|(state, hash)| joined(*hash, split(state).1)));
    }

    fn widen(&self) -> Recoding {
        self.inner.widen().with_tail(1)
    }

    fn action_count(&self) -> Option<u32> {
        let count = (u64::from(self.inner.action_count()?) + 1) * self.moves.len() as u64;
        u32::try_from(count).ok()
    }

    fn describe_state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let (state, at) = split(state);
        let mut values = self.inner.describe().state(state);
        values.push(("automaton".into(), Value::Int(at.into())));
        values
    }

    fn describe_action(&self, source: &[Slot], action: Action) -> String {
        match self.below(action) {
            Some(below) => self.inner.describe().action(split(source).0, below),
            None => "the state repeats".into(),
        }
    }

    fn components(&self) -> Option<&dyn Components> {
        self.inner.components().map(|_| self as &dyn Components)
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        None
    }

    fn portable(&self) -> Option<&dyn Portable> {
        None
    }

    fn facts(&self, _: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(None)
    }

    fn exchange(&self) -> Option<&dyn Exchange> {
        None
    }

    fn progress(&self) -> Option<&dyn Progress> {
        None
    }

    fn observe(&self) -> Option<&dyn Observe> {
        None
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

impl Components for Product<'_> {
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>) {
        let (state, _) = split(state);
        self.inner.components().expect("as the system below").boundaries(state, out);
        out.push(state.len());
    }
}

impl Product<'_> {
    /// Appends the successors of a block, whose first state is number `first` of the batch.
    fn expand_from(&self, scratch: &mut Scratch, block: &Block, first: usize, out: &mut Batch) -> Result<(), Widen> {
        let working: &mut Working = scratch.get();
        working.begin(self.inner.width(), out.control());
        for state in block.states().iter() {
            let (state, at) = split(state);
            // Neighbours are often the same state below.
            let lanes = working.block.len();
            if lanes == 0 || working.block.state(lanes - 1) != state {
                working.block.push(StateId::NAMELESS, state);
            }
            working.lanes.push((working.block.len() as u8 - 1, at));
        }
        self.inner.expand(&mut working.inner, &working.block, &mut working.batch)?;
        if let Some(stop) = working.batch.stop() {
            out.halt(stop);
            return Ok(());
        }
        let batch = &working.batch;
        let cut_off = batch.cut_off_sources();
        let mut moving = batch.moved() & !cut_off;
        if !batch.faults().is_empty() {
            moving = 0;
            (0..batch.len()).for_each(|index| moving |= 1 << batch.source(index));
        }
        let dead = working.block.mask() & !batch.moved();
        let ends = working.block.mask() & !moving & !cut_off;
        let without = match self.look(working, dead, ends, true) {
            Ok(without) => without,
            Err(end) => return ended(end, out),
        };
        let Working { lanes, block: inner_block, .. } = &*working;
        for (index, _) in lanes.iter().enumerate().filter(|(_, one)| self.accepts[one.1 as usize]) {
            out.begin(first + index);
            out.fault(None, ACCEPTED.into());
        }
        let mut faulty = 0u64;
        for (lane, message) in without {
            if faulty >> lane & 1 == 0 {
                let here = |one: &(u8, u32)| one.0 == lane && !self.accepts[one.1 as usize];
                for (index, _) in lanes.iter().enumerate().filter(|(_, one)| here(one)) {
                    out.begin(first + index);
                    out.fault(None, format!("the property has no value here: {message}"));
                }
            }
            faulty |= 1 << lane;
        }
        if cut_off != 0 {
            let sources = lanes.iter().enumerate().filter(|(_, one)| cut_off >> one.0 & 1 == 1);
            out.cut_off(sources.fold(0, |mask, (index, _)| mask | 1 << (first + index)));
        }
        // Where no two states of the block are one below, the lanes below are those of the block.
        let alone = lanes.len() == inner_block.len();
        match self.inner.width() {
            Width::Fixed(slots) if alone => self.runs_of_steps(working, slots, (first, !faulty), out),
            _ => self.steps(working, (first, !faulty), out),
        }
        let mut rest = ends & !faulty;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let Working { inner, block, moves, lanes, target, .. } = working;
            let state = block.state(lane);
            let hash = self.inner.hash(inner, state);
            self.step((lane, moves, lanes, first), (None, state, hash), target, out);
        }
        Ok(())
    }

    /// Appends the successors by one step below, of all states of the product in this lane; `None` is the step by which
    /// the last state repeats.
    fn step(
        &self,
        (lane, moves, lanes, first): (usize, &[u64], &[(u8, u32)], usize),
        (below, state, hash): (Option<Action>, &[Slot], u64),
        target: &mut Vec<Slot>,
        out: &mut Batch,
    ) {
        let begin = lanes.partition_point(|one| usize::from(one.0) < lane);
        for (index, &(_, at)) in lanes.iter().enumerate().skip(begin).take_while(|(_, one)| usize::from(one.0) == lane)
        {
            let (begin, end) = (self.begins[at as usize], self.begins[at as usize + 1]);
            for (one, mask) in moves.iter().enumerate().take(end).skip(begin) {
                if mask >> lane & 1 == 0 {
                    continue;
                }
                let Some(action) = self.encoded(below, one) else {
                    out.halt(Stop::Count);
                    return;
                };
                target.clear();
                target.extend_from_slice(state);
                target.push(self.moves[one].to);
                out.begin(first + index);
                out.push_hashed(action, target, joined(hash, self.moves[one].to));
            }
        }
    }

    /// Appends the successors of a block, one by one, but for those of states that repeat.
    fn steps(&self, working: &mut Working, (first, live): (usize, u64), out: &mut Batch) {
        let Working { batch, moves, lanes, target, .. } = working;
        for index in 0..batch.len() {
            let lane = batch.source(index);
            if live >> lane & 1 == 1 {
                let below = (Some(batch.action(index)), batch.target(index), batch.hash(index));
                self.step((lane, moves, lanes, first), below, target, out);
            }
        }
    }

    /// The same where the lanes below are those of the block: systems fire a block action by action, so what one action
    /// and one move lead to is appended together.
    fn runs_of_steps(&self, working: &mut Working, slots: usize, (first, live): (usize, u64), out: &mut Batch) {
        let Working { batch, moves, lanes, at, taken, .. } = working;
        at.clear();
        at.resize(self.begins.len() - 1, 0);
        for &(lane, state) in &*lanes {
            at[state as usize] |= 1 << lane & live;
        }
        taken.clear();
        let moves = self.moves.iter().zip(moves).enumerate();
        taken.extend(moves.filter_map(|(number, (one, mask))| match *mask & at[one.from as usize] {
            0 => None,
            mask => Some((number, mask)),
        }));
        let mut index = 0;
        while index < batch.len() {
            let (begin, action, mut sources) = (index, batch.action(index), 0u64);
            while index < batch.len() && batch.action(index) == action && sources >> batch.source(index) == 0 {
                sources |= 1 << batch.source(index);
                index += 1;
            }
            for &(number, mask) in &*taken {
                let by_move = sources & mask;
                if by_move == 0 {
                    continue;
                }
                let Some(encoded) = self.encoded(Some(action), number) else {
                    out.halt(Stop::Count);
                    return;
                };
                let to = self.moves[number].to;
                let (targets, hashes) = out.grow(encoded, by_move << first);
                let mut room = targets.chunks_exact_mut(slots + 1).zip(hashes);
                for step in (begin..index).filter(|&step| by_move >> batch.source(step) & 1 == 1) {
                    let Some((target, hash)) = room.next() else { unreachable!("there is room for each source") };
                    target[..slots].copy_from_slice(batch.target(step));
                    target[slots] = to;
                    *hash = joined(batch.hash(step), to);
                }
            }
        }
    }
}
