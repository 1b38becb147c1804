//! The contract of systems.
//!
//! In: a system. Out: nothing, or a panic that names the promise broken and the state. What stays true: only
//! reachable states are used, up to a number; every way to compute the same (one state, a block, one action,
//! backwards, in another layout) must agree.

use super::{facts, portable};
use crate::random::Rng;
use crate::wrappers::PoorHash;
use deltamark_core::{
    Action, BLOCK, Batch, Block, Bound, Control, Fired, Observable, ObservableKind, Observe, Recoding, Scratch, Sleep,
    Slot, StateId, States, System, Undone, Width,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Checks a system on its first 1,500 states.
pub fn check_system(system: &dyn System) {
    check_system_up_to(system, 1_500);
}

/// Checks a system on its first `most` states.
pub fn check_system_up_to(system: &dyn System, most: usize) {
    checked(system, most).hashes_apart();
}

/// Checks on its first 1,500 states a system whose hash may be arbitrarily poor.
pub fn check_poor_system(system: &PoorHash) {
    checked(system, 1_500);
}

/// Checks everything but the quality of the hash.
fn checked(system: &dyn System, most: usize) -> SystemCheck<'_> {
    let reached = reach(system, most);
    let check = SystemCheck { system, reached };
    check.initial_states();
    check.successors();
    check.blocks();
    check.hashes();
    check.firing();
    check.firing_many();
    check.reversing();
    check.reversing_many();
    facts::check_facts(system, &check.reached);
    check.skipping();
    check.components();
    check.description();
    check.observables();
    portable::check_bytes(system, &check.reached.states);
    check
}

/// A step reported by a system: action, target, hash.
pub(super) type ReportedEdge = (Action, Vec<Slot>, u64);
/// A fault reported by a system.
pub(super) type Wrong = (Option<Action>, String);

/// States that were expanded, with their steps.
#[derive(Clone)]
pub(super) struct Reached {
    pub states: Vec<Vec<Slot>>,
    pub edges: Vec<Vec<ReportedEdge>>,
    pub faults: Vec<Vec<Wrong>>,
    /// All actions that occur.
    actions: BTreeSet<Action>,
}

/// Explores, checking each recoding on the way; afterwards the layout in use holds all
/// states reached and their successors.
pub(super) fn reach(system: &dyn System, most: usize) -> Reached {
    'restart: loop {
        let mut scratch = system.scratch();
        let mut batch = Batch::new(system.width());
        let mut states: Vec<Vec<Slot>> = Vec::new();
        let mut seen: HashSet<Vec<Slot>> = HashSet::new();
        if system.initial(&mut scratch, &mut batch).is_err() {
            check_recoding(system, &states);
            continue 'restart;
        }
        let mut add = |state: &[Slot], states: &mut Vec<Vec<Slot>>| {
            if seen.insert(state.to_vec()) {
                states.push(state.to_vec());
            }
        };
        (0..batch.len()).for_each(|index| add(batch.target(index), &mut states));
        let mut reached =
            Reached { states: Vec::new(), edges: Vec::new(), faults: Vec::new(), actions: BTreeSet::new() };
        let mut next = 0;
        while next < states.len() && next < most {
            batch.reset(system.width());
            if system.successors(&mut scratch, &states[next], &mut batch).is_err() {
                check_recoding(system, &states);
                continue 'restart;
            }
            (0..batch.len()).for_each(|index| add(batch.target(index), &mut states));
            reached.actions.extend(batch.actions());
            reached.actions.extend(batch.faults().iter().filter_map(|fault| fault.action));
            reached.edges.push(edges_of(&batch, 0));
            reached.faults.push(faults_of(&batch, 0));
            next += 1;
        }
        states.truncate(next);
        reached.states = states;
        return reached;
    }
}

/// Lets the system widen, and checks these states in the new layout.
fn check_recoding(system: &dyn System, states: &[Vec<Slot>]) {
    let mut scratch = system.scratch();
    let hashes: Vec<u64> = states.iter().map(|state| system.hash(&mut scratch, state)).collect();
    let before = system.width();
    let recoding: Recoding = system.widen();
    assert_eq!(recoding.from, before, "a recoding starts from the width in use");
    assert_eq!(recoding.to, system.width(), "a recoding leads to the width in use from then on");
    assert!(!recoding.reason.is_empty() && !recoding.reason.contains('\n'), "a recoding has a reason of one line");
    portable::check_written(&recoding, states);
    let mut scratch = system.scratch();
    let mut seen = HashSet::new();
    for (old, hash) in states.iter().zip(hashes) {
        let mut new = vec![7; 3];
        recoding.translate(old, &mut new);
        assert!(new.len() >= old.len(), "no state gets shorter by a recoding: {old:?} became {new:?}");
        check_width(system, &new);
        assert_eq!(system.hash(&mut scratch, &new), hash, "a hash outlives a recoding: {old:?} became {new:?}");
        assert!(seen.insert(new), "a recoding is injective: {old:?} became what another state became");
    }
}

pub(super) fn check_width(system: &dyn System, state: &[Slot]) {
    if let Width::Fixed(width) = system.width() {
        assert_eq!(state.len(), width, "a state of a fixed-width system has its width: {state:?}");
    }
}

fn edges_of(batch: &Batch, source: usize) -> Vec<ReportedEdge> {
    let from_source = (0..batch.len()).filter(|&index| batch.source(index) == source);
    from_source.map(|index| (batch.action(index), batch.target(index).to_vec(), batch.hash(index))).collect()
}

pub(super) fn faults_of(batch: &Batch, source: usize) -> Vec<Wrong> {
    let from_source = batch.faults().iter().filter(|fault| usize::from(fault.source) == source);
    from_source.map(|fault| (fault.action, fault.message.clone())).collect()
}

pub(super) fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

pub(super) const FITS: &str = "a layout that held a state's successors before holds them again";

struct SystemCheck<'a> {
    system: &'a dyn System,
    reached: Reached,
}

impl SystemCheck<'_> {
    /// The states reached, with their numbers.
    fn states(&self) -> impl Iterator<Item = (usize, &[Slot])> {
        self.reached.states.iter().map(Vec::as_slice).enumerate()
    }

    fn initial_states(&self) {
        let mut first = Batch::new(self.system.width());
        self.system.initial(&mut self.system.scratch(), &mut first).expect(FITS);
        let mut second = Batch::new(self.system.width());
        self.system.initial(&mut self.system.scratch(), &mut second).expect(FITS);
        assert!(!first.is_empty(), "a system has at least one initial state");
        assert_eq!(edges_of(&first, 0), edges_of(&second, 0), "initial states are always the same");
        let numbers: Vec<Action> = (0..first.len() as u32).map(Action).collect();
        assert_eq!(first.actions(), numbers, "initial states have actions 0, 1, 2 …");
    }

    fn successors(&self) {
        // Backwards and with one scratch, so that stale caches in a scratch would show.
        let mut scratch = self.system.scratch();
        for (number, state) in self.states().collect::<Vec<_>>().into_iter().rev() {
            let mut batch = Batch::new(self.system.width());
            self.system.successors(&mut scratch, state, &mut batch).expect(FITS);
            assert_eq!(edges_of(&batch, 0), self.reached.edges[number], "successors depend on {state:?} alone");
            assert_eq!(faults_of(&batch, 0), self.reached.faults[number], "faults depend on {state:?} alone");
            let mut actions = HashSet::new();
            for (action, target, _) in &self.reached.edges[number] {
                check_width(self.system, target);
                assert!(actions.insert(*action), "{action:?} names exactly one successor of {state:?}");
            }
            for action in self.reached.faults[number].iter().filter_map(|fault| fault.0) {
                assert!(actions.insert(action), "{action:?} of {state:?} is a fault or a step, and one only");
            }
            if let Some(count) = self.system.action_count() {
                assert!(actions.iter().all(|action| action.0 < count), "actions of {state:?} are below {count}");
            }
        }
    }

    fn blocks(&self) {
        let mut rng = Rng::new(1);
        let mut scratch = self.system.scratch();
        let (mut block, mut batch) = (Block::new(self.system.width()), Batch::new(self.system.width()));
        let mut order: Vec<usize> = (0..self.reached.states.len()).collect();
        for round in 0..2 {
            let mut rest = order.as_slice();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(1 + rng.below(BLOCK)));
                rest = later;
                block.reset(self.system.width());
                batch.reset(self.system.width());
                now.iter().for_each(|&number| block.push(StateId::new(number as u64), &self.reached.states[number]));
                self.system.expand(&mut scratch, &block, &mut batch).expect(FITS);
                self.block_agrees(now, &batch);
            }
            // In order first, where neighbours are similar; then at random.
            if round == 0 {
                rng.shuffle(&mut order);
            }
        }
    }

    fn block_agrees(&self, numbers: &[usize], batch: &Batch) {
        let mut moved = 0u64;
        for (index, &number) in numbers.iter().enumerate() {
            let state = &self.reached.states[number];
            let (edges, faults) = (&self.reached.edges[number], &self.reached.faults[number]);
            assert_eq!(
                sorted(edges_of(batch, index)),
                sorted(edges.clone()),
                "a block gives the successors of each of its states, here of {state:?}"
            );
            assert_eq!(
                sorted(faults_of(batch, index)),
                sorted(faults.clone()),
                "a block gives the faults of each of its states, here of {state:?}"
            );
            moved |= u64::from(!edges.is_empty() || !faults.is_empty()) << index;
        }
        let sources_exist = (0..batch.len()).all(|index| batch.source(index) < numbers.len());
        assert!(sources_exist, "every successor comes from a state of the block");
        assert_eq!(batch.moved(), moved, "a batch knows which of its states moved");
    }

    fn hashes(&self) {
        let mut scratch = self.system.scratch();
        let mut list = States::new(self.system.width());
        self.reached.states.iter().for_each(|state| list.push(state));
        let mut hashes = vec![42];
        self.system.hashes(&mut scratch, &list, &mut hashes);
        assert_eq!(hashes.len(), list.len() + 1, "hashes of many states are appended, one for each");
        let mut known: HashMap<&[Slot], u64> = HashMap::new();
        for (number, state) in self.states() {
            let hash = self.system.hash(&mut scratch, state);
            assert_eq!(hashes[number + 1], hash, "the hash of {state:?} is the same alone and among many");
            known.insert(state, hash);
        }
        for (_, target, hash) in self.reached.edges.iter().flatten() {
            let expected = known.get(target.as_slice()).copied();
            let expected = expected.unwrap_or_else(|| self.system.hash(&mut scratch, target));
            assert_eq!(*hash, expected, "a batch carries the hash of {target:?}");
        }
    }

    fn hashes_apart(&self) {
        let mut scratch = self.system.scratch();
        let mut first: HashMap<u64, &[Slot]> = HashMap::new();
        let mut alike = None;
        for (_, state) in self.states() {
            if let Some(other) = first.insert(self.system.hash(&mut scratch, state), state) {
                alike.get_or_insert((other, state));
            }
        }
        let (hashes, states) = (first.len(), self.reached.states.len());
        let Some((one, other)) = alike.filter(|_| hashes * 100 < states * 99) else { return };
        panic!(
            "hashes of different states are nearly always different, and these {states} have {hashes}: {one:?} and \
             {other:?} have the same"
        );
    }

    fn firing(&self) {
        let mut rng = Rng::new(2);
        let mut scratch = self.system.scratch();
        let mut target = vec![9; 9];
        let candidates: Vec<Action> = self.reached.actions.iter().copied().collect();
        for (number, state) in self.states() {
            let (edges, faults) = (&self.reached.edges[number], &self.reached.faults[number]);
            for (action, expected, _) in edges {
                let fired = self.system.fire(&mut scratch, state, *action, &mut target).expect(FITS);
                assert_eq!(fired, Fired::Done, "{action:?} can be fired in {state:?}, as successors say");
                assert_eq!(&target, expected, "firing {action:?} in {state:?} leads where successors say");
            }
            for (action, message) in faults.iter().filter_map(|(action, message)| Some(((*action)?, message))) {
                let fired = self.system.fire(&mut scratch, state, action, &mut target).expect(FITS);
                assert_eq!(fired, Fired::Fault(message.clone()), "{action:?} is a fault in {state:?}");
            }
            for _ in 0..candidates.len().min(16) {
                let action = candidates[rng.below(candidates.len())];
                let known = edges.iter().any(|edge| edge.0 == action) || faults.iter().any(|f| f.0 == Some(action));
                if !known {
                    let fired = self.system.fire(&mut scratch, state, action, &mut target);
                    assert_eq!(fired, Ok(Fired::Disabled), "{action:?} cannot happen in {state:?}");
                }
            }
        }
    }

    fn reversing(&self) {
        let Some(reversible) = self.system.reversible() else { return };
        let mut rng = Rng::new(3);
        let mut scratch = self.system.scratch();
        let candidates: Vec<Action> = self.reached.actions.iter().copied().collect();
        let (mut source, mut target) = (vec![9; 9], Vec::new());
        for (number, state) in self.states() {
            for (action, to, _) in &self.reached.edges[number] {
                assert!(reversible.unfire(&mut scratch, to, *action, &mut source), "{action:?} to {to:?} is undone");
                assert_eq!(source, state, "undoing {action:?} from {to:?} leads back");
                let mut batch = Batch::new(self.system.width());
                reversible.predecessors(&mut scratch, to, &mut batch);
                let found = edges_of(&batch, 0).iter().any(|edge| edge.0 == *action && edge.1 == state);
                assert!(found, "predecessors of {to:?} contain {state:?} by {action:?}");
            }
            let mut batch = Batch::new(self.system.width());
            reversible.predecessors(&mut scratch, state, &mut batch);
            for (action, from, hash) in edges_of(&batch, 0) {
                let fired = self.system.fire(&mut scratch, &from, action, &mut target);
                assert_eq!(fired, Ok(Fired::Done), "a predecessor {from:?} of {state:?} can move by {action:?}");
                assert_eq!(target, state, "a predecessor {from:?} leads by {action:?} to where it was asked for");
                assert_eq!(hash, self.system.hash(&mut scratch, &from), "predecessors carry the hash of {from:?}");
            }
            for _ in 0..candidates.len().min(8) {
                let action = candidates[rng.below(candidates.len())];
                if reversible.unfire(&mut scratch, state, action, &mut source) {
                    let fired = self.system.fire(&mut scratch, &source, action, &mut target);
                    assert_eq!(fired, Ok(Fired::Done), "{action:?} undone from {state:?} can be done from {source:?}");
                    assert_eq!(target, state, "{action:?} undone from {state:?} and done again leads back");
                }
            }
        }
    }

    fn firing_many(&self) {
        let mut scratch = self.system.scratch();
        let mut steps: Vec<(&[Slot], &ReportedEdge)> = Vec::new();
        for (number, state) in self.states() {
            steps.extend(self.reached.edges[number].iter().map(|edge| (state, edge)));
        }
        // No two neighbours are alike.
        Rng::new(4).shuffle(&mut steps);
        let (mut sources, mut targets) = (States::new(self.system.width()), States::new(self.system.width()));
        for some in steps.chunks(700) {
            sources.clear();
            targets.clear();
            targets.push(some[0].0);
            some.iter().for_each(|(source, _)| sources.push(source));
            let actions: Vec<Action> = some.iter().map(|(_, edge)| edge.0).collect();
            self.system.fire_each(&mut scratch, &sources, &actions, &mut targets);
            assert_eq!(targets.len(), some.len() + 1, "targets of many steps are appended, one for each");
            assert_eq!(targets.get(0), some[0].0, "firing many steps leaves alone what was there");
            for (number, (source, (action, expected, _))) in some.iter().enumerate() {
                let target = targets.get(number + 1);
                assert_eq!(target, expected, "{action:?} in {source:?} leads to the same alone and among many");
            }
        }
    }

    fn reversing_many(&self) {
        let Some(reversible) = self.system.reversible() else { return };
        let mut rng = Rng::new(5);
        let mut scratch = self.system.scratch();
        let candidates: Vec<Action> = self.reached.actions.iter().copied().collect();
        let mut steps: Vec<(Vec<Slot>, Action)> = Vec::new();
        for (number, state) in self.states() {
            steps.extend(self.reached.edges[number].iter().map(|edge| (edge.1.clone(), edge.0)));
            // Many of these cannot be undone.
            let some = candidates.len().min(4);
            steps.extend((0..some).map(|_| (state.to_vec(), candidates[rng.below(candidates.len())])));
        }
        rng.shuffle(&mut steps);
        let width = self.system.width();
        let (mut targets, mut out) = (States::new(width), Undone::new(width));
        let mut source = Vec::new();
        for some in steps.chunks(700) {
            targets.clear();
            some.iter().for_each(|(target, _)| targets.push(target));
            let actions: Vec<Action> = some.iter().map(|(_, action)| *action).collect();
            let mut hashes = Vec::new();
            self.system.hashes(&mut scratch, &targets, &mut hashes);
            out.reset(width);
            out.states.push(&some[0].0);
            out.hashes.push(hashes[0]);
            out.from.push(0);
            reversible.unfire_each(&mut scratch, &targets, &hashes, &actions, &mut out);
            let lengths = [out.states.len(), out.hashes.len(), out.from.len()];
            assert!(lengths.iter().all(|&length| length == lengths[0]), "each source has a hash and a target");
            assert_eq!(out.states.get(0), some[0].0, "undoing many steps leaves alone what was there");
            let mut next = 1;
            for (number, (target, action)) in some.iter().enumerate() {
                let found = out.from.get(next) == Some(&(number as u32));
                let alone = reversible.unfire(&mut scratch, target, *action, &mut source);
                assert_eq!(found, alone, "{action:?} to {target:?} is undone among many if it is undone alone");
                if found {
                    let (state, hash) = (out.states.get(next), out.hashes[next]);
                    assert_eq!(state, source, "undoing {action:?} from {target:?} gives the same alone and among many");
                    let expected = self.system.hash(&mut scratch, &source);
                    assert_eq!(hash, expected, "sources of many steps carry the hash of {source:?}");
                    next += 1;
                }
            }
            assert_eq!(next, out.from.len(), "undoing many steps gives no source twice");
        }
    }

    /// Proceeds level by level, and gives the system for each state one of the actions that reach it from the
    /// level before, chosen at random: no state of the next level may be missing.
    fn skipping(&self) {
        let sleep = Sleep::new(self.system, None, &Control::new()).expect("no limit");
        let Some(sleep) = sleep else { return };
        let numbers: HashMap<&[Slot], usize> = self.states().map(|(number, state)| (state, number)).collect();
        let mut first = Batch::new(self.system.width());
        self.system.initial(&mut self.system.scratch(), &mut first).expect(FITS);
        for seed in 0..4 {
            let mut rng = Rng::new(seed);
            let (mut scratch, mut batch) = (self.system.scratch(), Batch::new(self.system.width()));
            let mut block = Block::new(self.system.width());
            let mut found: HashSet<Vec<Slot>> = first.targets().iter().map(<[Slot]>::to_vec).collect();
            let mut level: Vec<(usize, Action)> =
                found.iter().filter_map(|state| Some((*numbers.get(&state[..])?, Action::NONE))).collect();
            // Only levels of which every state was expanded.
            while !level.is_empty() {
                // All actions that reach each state of the next level.
                let mut ways: HashMap<&[Slot], Vec<Action>> = HashMap::new();
                for (action, target, _) in level.iter().flat_map(|&(number, _)| &self.reached.edges[number]) {
                    if !found.contains(target) {
                        ways.entry(target).or_default().push(*action);
                    }
                }
                let mut missing: HashSet<&[Slot]> = ways.keys().copied().collect();
                let mut rest = level.as_slice();
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(rest.len().min(1 + rng.below(BLOCK)));
                    rest = later;
                    block.reset(self.system.width());
                    for &(number, _) in now {
                        block.push(StateId::new(number as u64), &self.reached.states[number]);
                    }
                    let arrivals: Vec<Action> = now.iter().map(|&(_, action)| action).collect();
                    batch.reset(self.system.width());
                    self.system.expand_awake(&mut scratch, &block, &sleep, &arrivals, &mut batch).expect(FITS);
                    let mut all = 0;
                    for (source, &(number, _)) in now.iter().enumerate() {
                        let edges = &self.reached.edges[number];
                        all += edges.len() as u64;
                        let moves = !edges.is_empty() || !self.reached.faults[number].is_empty();
                        assert_eq!(batch.moved() >> source & 1 == 1, moves, "what is skipped is a step all the same");
                        for edge in edges_of(&batch, source) {
                            assert!(edges.contains(&edge), "what is not skipped is a successor");
                            missing.remove(&edge.1[..]);
                        }
                    }
                    assert_eq!(batch.len() as u64 + batch.left_out(), all, "what is skipped is counted");
                }
                assert!(missing.is_empty(), "every state of the next level is a successor: {missing:?} are not");
                let next = ways.iter().map(|(state, ways)| Some((*numbers.get(state)?, ways[rng.below(ways.len())])));
                let next: Option<Vec<_>> = next.collect();
                found.extend(ways.keys().map(|state| state.to_vec()));
                level = next.unwrap_or_default();
                level.sort_unstable();
            }
        }
    }

    fn components(&self) {
        let Some(components) = self.system.components() else { return };
        for (_, state) in self.states() {
            let mut boundaries = Vec::new();
            components.boundaries(state, &mut boundaries);
            let start = if state.is_empty() { None } else { Some(&0) };
            assert_eq!(boundaries.first(), start, "the first component of {state:?} begins at 0");
            assert!(boundaries.windows(2).all(|pair| pair[0] < pair[1]), "boundaries of {state:?} ascend");
            assert!(boundaries.iter().all(|&slot| slot < state.len()), "boundaries of {state:?} lie within it");
        }
    }

    fn description(&self) {
        let describe = self.system.describe();
        let mut shown = HashSet::new();
        for (number, state) in self.states() {
            let variables = describe.state(state);
            let names: HashSet<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names.len(), variables.len(), "each variable of {state:?} is shown once: {variables:?}");
            // A variable at rest may be omitted, so it is ignored in the comparison.
            let moved = variables.into_iter().filter(|(_, value)| *value != describe.rest());
            let text: Vec<String> = moved.map(|(name, value)| format!("{name}={value}")).collect();
            assert!(shown.insert(text.join("\n")), "different states look different, {state:?} does not: {text:?}");
            for (action, _, _) in &self.reached.edges[number] {
                assert!(!describe.action(state, *action).is_empty(), "{action:?} has a name in {state:?}");
            }
        }
    }

    fn observables(&self) {
        let Some(observe) = self.system.observe() else { return };
        let mut named: Vec<(String, Observable)> = Vec::new();
        for name in observe.names().into_iter().take(100) {
            let Some(found) = observe.resolve(&name) else { panic!("the name `{name}` is known and resolves") };
            named.push((name, found));
        }
        for name in observe.action_names().into_iter().take(100) {
            let Some(found) = observe.fireable(&name) else { panic!("the action `{name}` is known and resolves") };
            assert_eq!(found.kind, ObservableKind::Bool, "whether `{name}` can fire is a truth value");
            named.push((name, found));
        }
        let absent = "no such name\u{1}";
        assert!(observe.resolve(absent).is_none() && observe.fireable(absent).is_none(), "an unknown name is unknown");
        let mut scratch: Scratch = self.system.scratch();
        let mut block = Block::new(self.system.width());
        for group in self.reached.states.chunks(BLOCK).take(8) {
            block.reset(self.system.width());
            group.iter().for_each(|state| block.push(StateId::NAMELESS, state));
            for (name, observable) in &named {
                let mut values = [-77; BLOCK];
                observe.read_block(&mut scratch, &block, *observable, &mut values);
                for (state, &value) in group.iter().zip(&values) {
                    let alone = observe.read(&mut scratch, state, *observable);
                    assert_eq!(value, alone, "`{name}` is the same in a block and alone, in {state:?}");
                    let in_range = observable.kind == ObservableKind::Int || (0..=1).contains(&value);
                    assert!(in_range, "the truth value `{name}` is 0 or 1, not {value}");
                }
            }
            surveyed(observe, &mut scratch, &block, group, &named);
        }
    }
}

/// A survey of a block agrees with reading the states one by one.
fn surveyed(
    observe: &dyn Observe,
    scratch: &mut Scratch,
    block: &Block,
    states: &[Vec<Slot>],
    named: &[(String, Observable)],
) {
    let observables: Vec<Observable> = named.iter().map(|(_, observable)| *observable).collect();
    // A bound that is wider than the block's values stays unchanged.
    let before = |index: usize| if index.is_multiple_of(2) { Bound::NONE } else { Bound { least: 0, most: 1 } };
    let mut bounds: Vec<Bound> = (0..named.len()).map(before).collect();
    let most = observe.survey_block(scratch, block, &observables, &mut bounds);
    let mut sums = vec![0i64; states.len()];
    for (index, (name, observable)) in named.iter().enumerate() {
        let mut bound = before(index);
        for (state, sum) in states.iter().zip(&mut sums) {
            let value = observe.read(scratch, state, *observable);
            bound.widen(value);
            *sum = sum.saturating_add(value);
        }
        assert_eq!(bounds[index], bound, "a survey of a block gives the bounds of `{name}`");
    }
    assert_eq!(Some(most), sums.into_iter().max(), "a survey of a block gives the largest sum");
}
