//! Probes: a small share of a breadth-first run looks for errors that are deep.
//!
//! # The idea
//! A search by levels finds the nearest error, and finds none for hours if the nearest one is at a
//! distance of thirty steps in a wide state space. A walk that is stopped by nothing but a deadlock
//! is often in one after thirty steps. So from time to time, between two blocks of the main search,
//! the first thread leaves it and probes: it walks, by several policies, or searches depth-first,
//! with a table of hashes for memory. Mixing depth-first and heuristic searches into an exhaustive
//! one is what *swarm verification* does on many machines (Holzmann, Joshi, Groce 2008), and guided
//! walks are *directed model checking* (Edelkamp, Lluch Lafuente, Leue 2001).
//!
//! # What it may cost
//! Work is counted in successors, not in time, so that the same run probes in the same way. The
//! main search is interrupted when it has [`Probing::first`] states, and each time their number has doubled;
//! up to then all probes together have looked at one successor for each state, at most, where the
//! search itself has looked at two or more and inserted them. Memory is asked of the budget, and
//! given back at the end of each turn.
//!
//! # What it guarantees
//! Answers only: a state that decides a property, with the path to it, which is replayed as any
//! other. Store, frontier, layout and counts of the main search are not touched. What a probe does
//! not find means nothing, so two states of one hash may be taken for one, and a state whose
//! successors do not fit the layout is left alone: the main search widens it when it gets there.
//! Paths are not shortest.

use crate::Task;
use crate::run::Run;
use deltamark_core::{
    Action, Batch, Block, Fired, Formula, Goal, Grant, Observe, Scratch, Slot, StateId, States, System, Trace, hash,
};
use std::collections::HashSet;

/// The most steps of a walk.
const STEPS: usize = 1 << 16;
/// The most bytes that a probe holds.
const MOST_BYTES: u64 = 32 << 20;
/// The part of the budget that it holds, at most.
const PART: u64 = 16;
/// Successors that are expanded to see which has the fewest successors itself.
const LOOKED_AT: usize = 8;
/// Actions that are tested for being enabled in the time in which one successor is made.
const TESTS: u64 = 32;
/// Bytes of a number in a set of hashes, with its control byte and the room for growth.
const HASH_BYTES: u64 = 24;

/// When a breadth-first search begins to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// The states of the search at the first probe.
    pub first: u64,
}

impl Default for Probing {
    fn default() -> Self {
        Probing { first: 4096 }
    }
}

impl Probing {
    /// Probes for a run, unless it is none that may probe: what it looks for must be what a single state decides.
    pub(crate) fn begin(self, task: &Task<'_>) -> Option<Probes> {
        let small = task.control.limits.states.is_some_and(|most| most <= self.first);
        let asks = !task.properties.is_empty() && !task.explore_all && task.observer.is_none();
        (asks && !small).then_some(Probes { due: self.first, spent: 0, turns: 0, random: 0 })
    }
}

/// When to probe next, and how.
pub(crate) struct Probes {
    /// The number of states at which the next turn is due.
    due: u64,
    /// The work of all turns.
    spent: u64,
    turns: u64,
    random: u64,
}

/// How a walk chooses among the successors that it has not visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// The last one.
    Last,
    /// That of the smallest action above the one before: all processes move in turn.
    Turns,
    /// The one nearest to what decides a property, as far as that can be read off.
    Guided,
    /// Any.
    Random,
    /// That of the action which comes first in a random order.
    Ordered,
}

const POLICIES: [Policy; 5] = [Policy::Last, Policy::Turns, Policy::Guided, Policy::Random, Policy::Ordered];

/// What a walk is guided by.
enum Guide {
    /// A distance that observables give.
    Distance(Formula),
    /// The number of successors.
    FewSuccessors,
}

impl Probes {
    /// The number of states of the main search at which the next turn is due.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Takes a turn, when the main search has found `states` states. Uses the block and the batch of the run.
    pub fn turn(&mut self, run: &mut Run<'_>, states: u64) {
        self.due = states.saturating_mul(2).max(1);
        let allowed = states.saturating_sub(self.spent);
        let bytes = (run.control().budget.left() / PART).min(MOST_BYTES);
        let mut grant = Grant::new(&run.control().budget);
        if !grant.ask(bytes) {
            return;
        }
        let tests = run.system.action_count().map_or(0, u64::from) / TESTS;
        let mut probe = Probe {
            trial: Batch::new(run.system.width()).under(run.control()),
            run,
            bytes,
            left: allowed,
            tests,
            random: self.random,
            over: false,
        };
        match self.turns % 2 {
            0 => probe.walks(self.turns / 2),
            _ => probe.search_depth_first(self.turns > 1),
        }
        self.random = probe.random;
        self.spent += allowed - probe.left;
        self.turns += 1;
    }
}

/// One turn.
struct Probe<'p, 'a> {
    run: &'p mut Run<'a>,
    /// For successors of successors.
    trial: Batch,
    /// What it may hold.
    bytes: u64,
    /// The work that is left.
    left: u64,
    /// The work of testing all actions of one state.
    tests: u64,
    random: u64,
    /// Whether everything is answered, or the run must end.
    over: bool,
}

impl Probe<'_, '_> {
    fn draw(&mut self, below: usize) -> usize {
        self.random += 1;
        (hash::mix(self.random) % below.max(1) as u64) as usize
    }

    fn pay(&mut self, successors: usize) {
        self.left = self.left.saturating_sub(1 + self.tests + successors as u64);
    }

    /// The initial states, unless they do not fit the layout.
    fn initial(&mut self) -> Option<States> {
        self.run.batch.reset(self.run.system.width());
        self.run.system.initial(&mut self.run.system_scratch, &mut self.run.batch).ok()?;
        self.run.batch.stop().is_none().then(|| self.run.batch.targets().clone())
    }

    /// Expands a state and answers what it decides. Returns whether its successors are in the batch.
    fn visit(&mut self, state: &[Slot], path: impl FnOnce() -> Trace) -> bool {
        let run = &mut *self.run;
        if run.control().stop_without_memory().is_some() {
            self.over = true;
            return false;
        }
        run.block.reset(run.system.width());
        run.block.push(StateId::NAMELESS, state);
        run.batch.reset(run.system.width());
        let expanded = run.system.expand(&mut run.system_scratch, &run.block, &mut run.batch);
        if expanded.is_err() || run.batch.stop().is_some() || run.batch.cut_off_sources() != 0 {
            return false;
        }
        let findings = run.look().0;
        if !findings.is_empty() {
            let path = path();
            for finding in findings {
                run.answer_by_probe(finding, path.clone(), state);
            }
            self.over = run.is_answered();
        }
        let successors = self.run.batch.len();
        self.pay(successors);
        !self.over
    }

    /// Walks by one policy after the other; each may do half of the work that is left.
    fn walks(&mut self, turn: u64) {
        let Some(roots) = self.initial() else { return };
        let mut seen = HashSet::new();
        for number in 0..POLICIES.len() {
            let policy = POLICIES[(number + turn as usize) % POLICIES.len()];
            let leave = self.left / 2;
            // Policies without chance walk once; the others again, as long as there is work left.
            while self.left > leave && !self.over {
                self.walk(policy, &roots, &mut seen, leave);
                if policy == Policy::Last || policy == Policy::Turns {
                    break;
                }
            }
        }
    }

    /// Walks until there is no successor that the walk has not visited.
    fn walk(&mut self, policy: Policy, roots: &States, seen: &mut HashSet<u64>, leave: u64) {
        seen.clear();
        let initial = self.draw(roots.len());
        let mut state = roots.get(initial).to_vec();
        let mut actions: Vec<Action> = Vec::new();
        let guide = if policy == Policy::Guided { self.guide() } else { None };
        let order = self.draw(usize::MAX) as u64;
        let each = HASH_BYTES + size_of::<Action>() as u64;
        let most = (STEPS as u64).min(self.bytes / each).min(self.run.depth_limit()) as usize;
        loop {
            let path = || Trace::path(initial as u32, actions.clone());
            if !self.visit(&state, path) || self.left <= leave || actions.len() >= most {
                return;
            }
            let batch = &self.run.batch;
            let new: Vec<usize> = (0..batch.len()).filter(|&index| !seen.contains(&batch.hash(index))).collect();
            let Some(&last) = new.last() else { return };
            let by_action = |index: &usize| batch.action(*index).0;
            let chosen = match (policy, &guide) {
                (Policy::Last, _) => last,
                (Policy::Turns, _) => {
                    let before = actions.last().map_or(0, |action| action.0);
                    let next = new.iter().copied().filter(|index| by_action(index) > before).min_by_key(by_action);
                    next.or_else(|| new.iter().copied().min_by_key(by_action)).unwrap_or(last)
                }
                (Policy::Ordered, _) => {
                    let key = |index: &usize| hash::mix(order ^ u64::from(by_action(index)));
                    new.iter().copied().min_by_key(key).unwrap_or(last)
                }
                (Policy::Guided, Some(Guide::Distance(formula))) => self.nearest(formula, &new),
                (Policy::Guided, Some(Guide::FewSuccessors)) => self.most_blocked(&new),
                (Policy::Guided | Policy::Random, _) => new[self.draw(new.len())],
            };
            let batch = &self.run.batch;
            seen.insert(batch.hash(chosen));
            actions.push(batch.action(chosen));
            state.clear();
            state.extend_from_slice(batch.target(chosen));
        }
    }

    /// What leads to a property that is open, drawn among them.
    fn guide(&mut self) -> Option<Guide> {
        let draw = self.draw(usize::MAX);
        let goals: Vec<&Goal> = self.run.open_goals().collect();
        let formula = match goals.get(draw % goals.len().max(1))? {
            Goal::DeadlockFree => return Some(Guide::FewSuccessors),
            Goal::Invariant(predicate) => predicate.formula(false)?,
            Goal::Reachable(predicate) => predicate.formula(true)?,
            _ => return None,
        };
        let mut deadlock = false;
        formula.each_atom(&mut |atom| deadlock |= *atom == Formula::Deadlock(true));
        Some(if deadlock { Guide::FewSuccessors } else { Guide::Distance(formula) })
    }

    /// Of these successors one that is nearest to a state in which the formula is true.
    fn nearest(&mut self, formula: &Formula, new: &[usize]) -> usize {
        let first = self.draw(new.len());
        let run = &mut *self.run;
        let Some(observe) = run.system.observe() else { return new[first] };
        let mut best = (u64::MAX, new[first]);
        for index in new.iter().cycle().skip(first).take(new.len()) {
            let away = distance(formula, observe, &mut run.system_scratch, run.batch.target(*index));
            if away < best.0 {
                best = (away, *index);
            }
        }
        best.1
    }

    /// Of some of these successors one that has the fewest successors itself.
    fn most_blocked(&mut self, new: &[usize]) -> usize {
        let first = self.draw(new.len());
        let looked_at: Vec<usize> = new.iter().copied().cycle().skip(first).take(new.len().min(LOOKED_AT)).collect();
        let run = &mut *self.run;
        let mut block = Block::new(run.system.width());
        looked_at.iter().for_each(|&index| block.push(StateId::NAMELESS, run.batch.target(index)));
        self.trial.reset(run.system.width());
        let expanded = run.system.expand(&mut run.system_scratch, &block, &mut self.trial);
        if expanded.is_err() || self.trial.stop().is_some() {
            return looked_at[0];
        }
        let mut counts = vec![0_usize; looked_at.len()];
        (0..self.trial.len()).for_each(|index| counts[self.trial.source(index)] += 1);
        let successors = self.trial.len();
        self.pay(successors);
        counts.iter().zip(looked_at).min_by_key(|(count, _)| **count).map_or(new[first], |(_, index)| index)
    }

    /// Searches depth-first until the work is done, or the memory is full; `mixed`: successors in random order.
    fn search_depth_first(&mut self, mixed: bool) {
        let Some(roots) = self.initial() else { return };
        let mut path = ProbePath { initial: 0, states: States::new(self.run.system.width()), actions: Vec::new() };
        let mut seen = HashSet::new();
        // Of each state to do the length of the path to it, and its last action; of an initial one, its number.
        let mut to_do: Vec<(u32, u32)> = (0..roots.len() as u32).rev().map(|root| (0, root)).collect();
        let mut state = Vec::new();
        let most = self.run.depth_limit().min(u64::from(u32::MAX) - 1) as usize;
        while let Some((depth, action)) = to_do.pop() {
            if !path.lead(self.run.system, &mut self.run.system_scratch, &roots, (depth, action), &mut state) {
                continue;
            }
            let visited = self.visit(&state, || Trace::path(path.initial, path.actions.clone()));
            let held = seen.capacity() as u64 * HASH_BYTES + to_do.capacity() as u64 * 8 + path.held_bytes();
            if self.over || self.left == 0 || 2 * held > self.bytes {
                return;
            }
            if !visited || depth as usize >= most {
                continue;
            }
            let from = to_do.len();
            let batch = &self.run.batch;
            for index in 0..batch.len() {
                if seen.insert(batch.hash(index)) {
                    to_do.push((depth + 1, batch.action(index).0));
                }
            }
            if mixed {
                for last in (from + 1..to_do.len()).rev() {
                    let other = from + self.draw(last - from + 1);
                    to_do.swap(last, other);
                }
            }
        }
    }
}

/// The states on the path of a depth-first probe.
struct ProbePath {
    initial: u32,
    /// The initial one, and one for each action but the last.
    states: States,
    actions: Vec<Action>,
}

impl ProbePath {
    /// Goes back to the state at which the path to the next state branches off, and takes its last step. Returns whether
    /// that leads to a state.
    fn lead(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        roots: &States,
        (depth, action): (u32, u32),
        state: &mut Vec<Slot>,
    ) -> bool {
        let depth = depth as usize;
        self.states.truncate(depth);
        self.actions.truncate(depth.saturating_sub(1));
        state.clear();
        if depth == 0 {
            self.initial = action;
            state.extend_from_slice(roots.get(action as usize));
        } else {
            let source = self.states.get(depth - 1).to_vec();
            if !matches!(system.fire(scratch, &source, Action(action), state), Ok(Fired::Done)) {
                return false;
            }
            self.actions.push(Action(action));
        }
        self.states.push(state);
        true
    }

    fn held_bytes(&self) -> u64 {
        self.states.held_bytes() + (self.actions.capacity() * size_of::<Action>()) as u64
    }
}

/// How far a formula is from being true in a state: the numbers that are missing from its conjuncts, as a number of
/// doublings, so that no conjunct outweighs the others. 0 where it is true.
fn distance(formula: &Formula, observe: &dyn Observe, scratch: &mut Scratch, state: &[Slot]) -> u64 {
    let of = |part: &Formula| distance(part, observe, scratch, state);
    match formula {
        Formula::All(parts) => parts.iter().map(of).fold(0, u64::saturating_add),
        Formula::Some(parts) => parts.iter().map(of).min().unwrap_or(u64::MAX),
        Formula::AtLeast(terms, least) => {
            let sum = terms.iter().fold(0_i128, |sum, (observable, factor)| {
                sum + i128::from(observe.read(scratch, state, *observable)) * i128::from(*factor)
            });
            let missing = (i128::from(*least) - sum).max(0);
            // Numbers up to sixteen count one by one.
            if missing <= 16 { missing as u64 } else { 12 + u64::from(128 - missing.leading_zeros()) }
        }
        Formula::Is(observable, truth) => u64::from(observe.read(scratch, state, *observable) != i64::from(*truth)),
        // Nothing is known of how far it is.
        Formula::Deadlock(_) | Formula::Of(_) => 1,
    }
}
