//! Checks the facts that a system states about its actions against its steps.
//!
//! In: a system, and states of it with their successors. Out: nothing, or a panic that names the statement
//! (F1 to F10 of [`deltamark_core::facts`]) and the step that refutes it. What stays true: statements are only
//! compared with steps that the system takes, so one that is never tried is not refuted.

use super::system::{FITS, Reached};
use crate::random::Rng;
use deltamark_core::{
    Action, ActionFacts, BLOCK, Block, Change, Control, Facts, Fired, Observable, Sleep, Slot, StateId, System,
    UNDEFINED,
};
use std::collections::{HashMap, HashSet};

/// The maximum number of states, and of edges of a state, that are checked.
const STATES: usize = 300;
const EDGES: usize = 12;
/// The approximate number of truth values of conditions that are read.
const TRUTHS: usize = 2_000_000;

/// Two consecutive steps: `a` from `p` to `s`, and `b` from there to `t`.
struct TwoSteps<'a> {
    p: usize,
    a: Action,
    b: Action,
    t: &'a [Slot],
}

/// Compares every statement with the states reached.
pub(super) fn check_facts(system: &dyn System, reached: &Reached) {
    let control = Control::new();
    let check = FactsCheck::new(system, reached);
    if let Some(facts) = system.facts(&control).expect("no limit") {
        let count = system.action_count().map(|count| count as usize);
        assert_eq!(Some(facts.actions().len()), count, "facts are stated of every action");
        check.all(&*facts);
    }
    if let Some(facts) = system.refined_facts(&control).expect("no limit")
        && (0..facts.actions().len() as u32).any(|part| facts.action(part) != Action(part))
    {
        FactsCheck::new(system, &by_parts(system, &*facts, reached)).all(&*facts);
    }
    if let Some(exchange) = system.exchange() {
        check.exchanging("actions that are said to be exchangeable are", |a, b| exchange.exchangeable(a, b));
    }
    if let Some(sleep) = Sleep::new(system, None, &control).expect("no limit") {
        check.exchanging("an action that is skipped could have come first", |a, b| sleep.skips(system, a, b));
    }
}

/// The same states, whose edges and faults name parts of actions (F9).
fn by_parts(system: &dyn System, facts: &dyn Facts, reached: &Reached) -> Reached {
    let actions = facts.actions();
    let mut scratch = system.scratch();
    let mut named = reached.clone();
    for (number, state) in reached.states.iter().enumerate() {
        let truths: Vec<bool> =
            (0..actions.conditions).map(|condition| facts.holds(&mut scratch, state, condition)).collect();
        let mut parts = HashMap::new();
        for part in 0..actions.len() {
            if actions.needs.row(part).iter().all(|&condition| truths[condition as usize]) {
                let action = facts.action(part as u32);
                let other = parts.insert(action, Action(part as u32));
                assert_eq!(other, None, "F9: one part of {action:?} is enabled in {state:?}");
            }
        }
        let part = |action: &Action| {
            *parts.get(action).unwrap_or_else(|| panic!("F9: a part of {action:?} is enabled in {state:?}"))
        };
        named.edges[number].iter_mut().for_each(|edge| edge.0 = part(&edge.0));
        named.faults[number].iter_mut().for_each(|fault| fault.0 = fault.0.as_ref().map(part));
    }
    named
}

struct FactsCheck<'a> {
    system: &'a dyn System,
    reached: &'a Reached,
    numbers: HashMap<&'a [Slot], usize>,
}

impl<'a> FactsCheck<'a> {
    fn new(system: &'a dyn System, reached: &'a Reached) -> Self {
        FactsCheck { system, reached, numbers: reached.states.iter().map(Vec::as_slice).zip(0..).collect() }
    }

    fn all(&self, facts: &dyn Facts) {
        if facts.adds() {
            self.additions(facts.actions());
        }
        self.conditions(facts);
        self.blocks(facts);
        self.competing(facts);
        self.faults(facts);
        self.observables(facts);
    }

    /// The numbers of some states, spread evenly.
    fn some_states(&self, most: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.reached.states.len();
        (0..count).step_by(count.div_ceil(most.max(1)).max(1))
    }

    /// Some edges of a state.
    fn some_edges(&self, state: usize, rng: &mut Rng) -> impl Iterator<Item = (Action, &'a [Slot])> + use<'a> {
        let mut edges: Vec<(Action, &[Slot])> =
            self.reached.edges[state].iter().map(|(action, target, _)| (*action, target.as_slice())).collect();
        rng.shuffle(&mut edges);
        edges.into_iter().take(EDGES)
    }

    fn some_paths(&self) -> Vec<TwoSteps<'a>> {
        let mut rng = Rng::new(5);
        let mut paths = Vec::new();
        for p in self.some_states(STATES) {
            for (a, s) in self.some_edges(p, &mut rng) {
                let Some(&s) = self.numbers.get(s) else { continue };
                paths.extend(self.some_edges(s, &mut rng).map(|(b, t)| TwoSteps { p, a, b, t }));
            }
        }
        paths
    }

    /// The target of an action.
    fn target(&self, state: usize, action: Action) -> Option<&'a [Slot]> {
        let edge = self.reached.edges[state].iter().find(|edge| edge.0 == action);
        edge.map(|(_, target, _)| target.as_slice())
    }

    /// F1, F2, F3 and F8.
    fn conditions(&self, facts: &dyn Facts) {
        let actions = facts.actions();
        let mut scratch = self.system.scratch();
        let mut truths = |state: &[Slot]| -> Vec<bool> {
            (0..actions.conditions).map(|condition| facts.holds(&mut scratch, state, condition)).collect()
        };
        let mut rng = Rng::new(4);
        let most = TRUTHS / EDGES / (actions.conditions as usize + 1);
        for number in self.some_states(most.clamp(20, STATES)) {
            let state = &self.reached.states[number];
            let before = truths(state);
            let mut pinned = HashMap::new();
            for condition in (0..actions.conditions).filter(|&condition| before[condition as usize]) {
                let Some((thing, value)) = facts.pins(condition) else { continue };
                let known = *pinned.entry(thing).or_insert(value);
                assert_eq!(known, value, "F8: {thing} has one value in {state:?}, whatever condition {condition} says");
            }
            let steps = self.reached.edges[number].iter().map(|edge| edge.0);
            let faults = self.reached.faults[number].iter().filter_map(|fault| fault.0);
            let enabled: HashSet<Action> = steps.chain(faults).collect();
            for action in 0..actions.len() {
                let holds = actions.needs.row(action).iter().all(|&condition| before[condition as usize]);
                let action = Action(action as u32);
                assert_eq!(
                    enabled.contains(&action),
                    holds,
                    "F1: {action:?} is enabled in {state:?} if and only if its conditions hold"
                );
            }
            for (action, target) in self.some_edges(number, &mut rng) {
                let row = action.0 as usize;
                for (condition, (before, after)) in (0..).zip(before.iter().zip(truths(target))) {
                    let (lists, text) = match (before, after) {
                        (false, true) => (&actions.enables, "F2: what becomes true is enabled"),
                        (true, false) => (&actions.disables, "F3: what becomes false is disabled"),
                        _ => continue,
                    };
                    let stated = lists.row(row).contains(&condition);
                    assert!(stated, "{text}: condition {condition} by {action:?} in {state:?}");
                }
            }
        }
    }

    /// Conditions decided for a block at once are those of its states.
    fn blocks(&self, facts: &dyn Facts) {
        let mut scratch = self.system.scratch();
        let mut block = Block::new(self.system.width());
        let numbers: Vec<usize> = self.some_states(BLOCK).take(BLOCK).collect();
        numbers.iter().for_each(|&number| block.push(StateId::NAMELESS, &self.reached.states[number]));
        let mut words = Vec::new();
        facts.truths(&mut scratch, &block, &mut words);
        assert_eq!(words.len(), facts.actions().conditions as usize, "there is a word for each condition");
        for (condition, word) in (0..).zip(words) {
            for (lane, &number) in numbers.iter().enumerate() {
                let state = &self.reached.states[number];
                let holds = facts.holds(&mut scratch, state, condition);
                assert_eq!(word >> lane & 1 == 1, holds, "condition {condition} of a block is that of {state:?}");
            }
        }
    }

    /// F7.
    fn additions(&self, actions: &ActionFacts) {
        for action in 0..actions.len() {
            let apart = actions.enables.row(action).iter().all(|one| !actions.disables.row(action).contains(one));
            assert!(apart, "F7: action {action} adds in one direction");
            let silent = actions.writes.row(action).is_empty() && !actions.may_fail[action];
            assert!(silent, "F7: action {action} writes no variable and does not fail");
        }
        let mut scratch = self.system.scratch();
        let mut target = Vec::new();
        for TwoSteps { p, a, b, t } in self.some_paths() {
            let Some(between) = self.target(p, b) else { continue };
            let fired = self.system.fire(&mut scratch, between, a, &mut target).expect(FITS);
            let same = fired == Fired::Disabled || fired == Fired::Done && target == t;
            assert!(same, "F7: additions commute, {a:?} and {b:?} in {:?}", self.reached.states[p]);
        }
    }

    /// F4.
    fn competing(&self, facts: &dyn Facts) {
        let mut scratch = self.system.scratch();
        let mut target = Vec::new();
        for TwoSteps { p, a, b, t } in self.some_paths() {
            let state = &self.reached.states[p];
            let faults = || self.reached.faults[p].iter().any(|fault| fault.0 == Some(b));
            if facts.actions().compete(a, b) {
                continue;
            }
            let Some(between) = self.target(p, b) else {
                assert!(!faults(), "F4: effects that do not compete commute, {a:?} and {b:?} in {state:?}");
                continue;
            };
            let needs = facts.actions().needs.row(a.0 as usize);
            if !needs.iter().all(|&condition| facts.holds(&mut scratch, between, condition)) {
                continue;
            }
            match self.system.fire(&mut scratch, between, facts.action(a.0), &mut target).expect(FITS) {
                Fired::Disabled => {}
                fired => assert!(
                    fired == Fired::Done && target == t,
                    "F4: effects that do not compete commute, {a:?} and {b:?} in {state:?}"
                ),
            }
        }
    }

    /// F5 and F10.
    fn faults(&self, facts: &dyn Facts) {
        let broken = |state: usize| self.reached.faults[state].iter().any(|fault| fault.0.is_none());
        for state in (0..self.reached.states.len()).filter(|&state| !broken(state)) {
            for (action, target, _) in &self.reached.edges[state] {
                let breaks = self.numbers.get(target.as_slice()).is_some_and(|&target| broken(target));
                let stated = facts.actions().may_break[action.0 as usize];
                assert!(stated || !breaks, "F10: {action:?} may break a state");
            }
        }
        for action in self.reached.faults.iter().flatten().filter_map(|fault| fault.0) {
            assert!(facts.actions().may_fail[action.0 as usize], "F5: {action:?} may fail");
        }
    }

    /// F6.
    fn observables(&self, facts: &dyn Facts) {
        let Some(observe) = self.system.observe() else { return };
        let names = observe.names().into_iter().take(60).filter_map(|name| Some((observe.resolve(&name)?, name)));
        let actions = observe.action_names().into_iter().take(60);
        let actions = actions.filter_map(|name| Some((observe.fireable(&name)?, name)));
        let stated = |(observable, name): (Observable, String)| {
            let changes: HashMap<Action, Change> = facts.changes(observable)?.into_iter().collect();
            Some((observable, name, changes))
        };
        let stated: Vec<_> = names.chain(actions).filter_map(stated).collect();
        let mut scratch = self.system.scratch();
        let mut rng = Rng::new(6);
        for number in self.some_states(STATES / 3) {
            let state = &self.reached.states[number];
            for (action, target) in self.some_edges(number, &mut rng).take(4) {
                for (observable, name, changes) in &stated {
                    let [before, after] = [state, target].map(|state| observe.read(&mut scratch, state, *observable));
                    let change = if before < after { Change::Increases } else { Change::Decreases };
                    let stated = [Some(change), Some(Change::Either)].contains(&changes.get(&action).copied());
                    let has_value = before != UNDEFINED && after != UNDEFINED;
                    assert!(has_value || facts.may_be_undefined(*observable), "`{name}` has a value, as stated");
                    assert!(before == after || stated, "F6: `{name}` changes from {before} to {after} by {action:?}");
                }
            }
        }
    }

    /// If `exchangeable` accepts two consecutive steps, taking them in the other order leads to the same state.
    fn exchanging(&self, promise: &str, mut exchangeable: impl FnMut(Action, Action) -> bool) {
        let mut scratch = self.system.scratch();
        let mut target = Vec::new();
        for TwoSteps { p, a, b, t } in self.some_paths() {
            if !exchangeable(a, b) {
                continue;
            }
            let between = self.target(p, b);
            let fired = between.map(|between| self.system.fire(&mut scratch, between, a, &mut target).expect(FITS));
            let same = fired == Some(Fired::Done) && target == t;
            assert!(same, "{promise}: {a:?} and {b:?} in {:?}", self.reached.states[p]);
        }
    }
}
