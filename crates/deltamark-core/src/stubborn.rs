//! Stubborn sets: fewer states, the same answers.
//!
//! In: a system that states [facts](crate::facts), and the properties of a run. Out: a [layer](crate::layer) that follows in each state
//! only some of the actions that are enabled. What stays true: which actions these are depends on the state alone, so the
//! layer is a system like any other; deadlocks, if deadlock freedom is asked, and the nearest state that decides each property
//! are found, at the same distance.
//!
//! From Valmari, *The state explosion problem*, 1998; Schmidt, *Stubborn sets for standard properties*, 1999; Kristensen, Schmidt,
//! Valmari, *Question-guided stubborn set methods for state properties*, 2006; by conditions, as in Laarman, Pater, van de
//! Pol, Hansen, *Guard-based partial-order reduction*, 2014.
//!
//! # The sets
//! In a state `m` let `T` be a set of actions such that
//!
//! * D: if `t` of `T` is disabled, then for *one* condition that it needs and that does not hold, `T` has all actions that
//!   enable it;
//! * E: if `t` of `T` is enabled, `T` has all actions that need a condition that `t` disables, and all
//!   that write a variable that `t` reads or writes, or read one that it writes;
//! * K: for *key* actions, all actions that disable a condition that it needs.
//!
//! Sets in which every enabled member is a key are *strong*. *Weak* sets need one key at most; they are right only
//! where effects are additions (F7). In strong sets E and K leave out actions that exclude `t` (F8): such an action is never enabled where
//! `t` is.
//!
//! *Lemma.* Let `u1 … un` lead from `m = m0` to `mn`, and let `t = uk` be the first member of `T` among them. Then `t` is enabled
//! in `m`, and `t u1 … u(k-1)` leads from `m` to `mk`. Proof: were `t` disabled in `m`, the condition of D would have become
//! true before `mk-1`, by a `ui` that enables it (F2) and so is in `T`. *Strong:* `t` is enabled in `m0`. Where it is enabled in `mi-1`, so is `ui`, which
//! therefore does not exclude `t` (F1, F8); as it is not in `T`, by K it disables no condition of `t` (F3), and `t` is enabled in `mi` (F1): in all of `m0 … mk-1`. By E, as no `ui` excludes `t`, neither of `t` and `ui` writes what
//! the other reads or writes, so by F4, from `i = k-1` down to 1, `t` leads from `mi-1` to a state `si-1`; in which
//! `ui` is enabled, since `t` disables none of its conditions (E, F1, F3); and which it leaves to `si`, where `sk-1 = mk`. *Weak:* let
//! `si` be `mi` with the vector of `t` added. `ui` is enabled in `mi-1`; by E, `t` adds nothing, or something in the direction that
//! helps, to each component that `ui` compares (F7), so its conditions hold in `si-1` too, from where it leads to `si`. And `sk-1 = mk`. ∎
//!
//! *Theorem.* Let every path from `m` to a wanted state that is not `m` have a member of `T`, for the set `T` of every state `m`. Then
//! each wanted state is reached by enabled members alone, at its shortest distance. Proof: by induction on the length of a shortest
//! path; by the lemma its first member of `T` can be moved to its front. ∎ There is no need for a proviso on cycles.
//!
//! # What is wanted
//! * Deadlocks: `T` has an enabled key. If a path had no member of `T`, the key would be enabled at its end (K, F3). So
//!   *all* deadlocks are kept.
//! * A [formula](crate::Formula), in a state where it is false: of a conjunction, one false part; of a disjunction, all parts;
//!   of a comparison, all actions that change one of its terms in the direction of the number (F6); of a function that is not known, all that
//!   change what it depends on. No path makes it true without one of these. Where it is true, the nearest state is found. A part that may
//!   have no value makes the whole formula a function that is not known, since having none counts.
//! * Faults: all actions that may fail (F5) are in `T`. Where one is disabled, D holds of it. Where it is enabled, but no fault until some path has been
//!   gone, that path has a member of `T`: a step that disables it (K) or writes what it reads (E). As in the lemma, none before it excludes it.
//!   States that are faults by themselves: all actions that may break a state (F10) are in `T`, and no path from a state that is none to one that
//!   is goes without one of them.
//!
//! One set serves all properties, answered or not: what is wanted is the union.
//!
//! # Parts
//! Where the system states [facts about parts](crate::facts#parts) of actions, all of this is about parts. They are the actions of a system of the same
//! states and edges, which have other names (F9). What is followed are the actions whose enabled parts are members.
//!
//! # Whoever builds on steps that are not there
//! Steps outside of the sets are refused when they are fired or undone: `breadcrumb` takes it for proved that what was undone is a step of
//! the system. Sleep sets need an edge that the reduced system may not have, so no facts are handed on. Whether a
//! state is a deadlock is decided by all actions, not by those that are followed ([`Batch::leave_away`]).
//!
//! # How
//! A block of 64 states at a time: a word an action says in which of them it is a member, a work list holds the actions
//! whose words have grown. What one state's set is never depends on the others: the condition of D is the first, in
//! a fixed order, that does not hold, so a set is a least fixed point. Where effects are no additions it is the one that costs least:
//! an enabled action that is no member yet counts as many that are disabled. For deadlocks several keys are tried, each state's own, and the set with the
//! fewest enabled members is taken.

use crate::facts::{Change, Lists};
use crate::formula::Formula;
use crate::{
    Action, BLOCK, Batch, Block, Cancel, Control, Exchange, Facts, Fired, Goal, Layer, Observable, Portable, Property,
    Scratch, Sleep, Slot, StateId, States, Stop, System, Undone, Widen, sleep,
};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most entries of lists; more would take 128 MiB.
const MOST_ENTRIES: usize = 1 << 25;
/// The keys that are tried in each state, by default.
const KEYS: usize = 16;

/// What an enabled action that becomes a member costs, if a disabled one costs 1.
const FOLLOWED: u32 = 50;

/// Which members of a set nothing outside of it disables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strength {
    /// One, where effects are additions; all elsewhere.
    #[default]
    Weak,
    /// All that are enabled.
    Strong,
}

/// How sets are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Which members are keys.
    pub strength: Strength,
    /// How many keys are tried in a state, at least one.
    pub keys: usize,
    /// How many pairs of dependent actions there may be.
    pub pairs: usize,
}

impl Manner {
    /// Sets of this strength, the smallest for this number of keys.
    pub const fn new(strength: Strength, keys: usize) -> Self {
        Manner { strength, keys, pairs: MOST_ENTRIES }
    }
}

impl Default for Manner {
    fn default() -> Self {
        Manner::new(Strength::Weak, KEYS)
    }
}

/// How much work finding sets may take, and what ends the run when it has been done.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// The most entries of lists to look at.
    pub work: u64,
    /// Is set then.
    pub end: Cancel,
}

/// A formula of which the actions are known that may make it true. Parts come before their whole.
#[derive(Debug)]
enum Aim {
    All(Vec<usize>),
    Some(Vec<usize>),
    AtLeast { terms: Vec<(Observable, i64)>, least: i64, by: Vec<u32> },
    Is { observable: Observable, truth: bool, by: Vec<u32> },
    Deadlock(bool),
    Of { by: Vec<u32> },
}

/// A system of which only some actions are followed in each state.
pub struct Stubborn<'s> {
    inner: &'s dyn System,
    facts: Box<dyn Facts + 's>,
    /// The action that each part is a part of; empty if actions have no parts. All else is about parts.
    owners: Vec<u32>,
    /// The number of actions.
    whole: usize,
    /// For each action those that its being enabled takes with it: E, and K of strong sets.
    along: Lists,
    /// For each action those that being a key takes with it, beside these.
    keys: Lists,
    /// For each condition the actions that enable it.
    enabling: Lists,
    /// For each action its conditions, those first that fewest actions enable.
    needs: Lists,
    /// The actions that keys are taken from, first to last.
    order: Vec<u32>,
    aims: Vec<Aim>,
    /// The whole formulas among them.
    goals: Vec<usize>,
    /// The actions that may fail or break a state, if that is asked.
    failing: Vec<u32>,
    strong: bool,
    tries: usize,
    /// Entries of lists that were looked at.
    looked: AtomicU64,
    allowance: Option<Allowance>,
}

/// Builds lists of actions without repetitions.
struct Union {
    lists: Lists,
    row: Vec<u32>,
    seen: Vec<u32>,
    granted: usize,
    most: usize,
}

impl Union {
    fn new(actions: usize, most: usize) -> Self {
        Union { lists: Lists::default(), row: Vec::new(), seen: vec![u32::MAX; actions], granted: 1 << 14, most }
    }

    fn add(&mut self, to: u32, actions: &[u32]) {
        for &action in actions {
            if action != to && std::mem::replace(&mut self.seen[action as usize], to) != to {
                self.row.push(action);
            }
        }
    }

    /// Ends a list. Whether there is room for more.
    fn end(&mut self, control: &Control) -> Result<bool, Stop> {
        self.lists.push(&self.row);
        self.row.clear();
        let entries = self.lists.items().len();
        if entries > self.granted {
            self.granted = 2 * entries;
            control.ask_for(4 * self.granted as u64)?;
        }
        Ok(entries <= self.most)
    }
}

impl<'s> Stubborn<'s> {
    /// The system reduced for these properties; or, as a sentence without a full stop, why it cannot be.
    pub fn new(
        system: &'s dyn System,
        properties: &[Property],
        manner: Manner,
        control: &Control,
    ) -> Result<Result<Self, String>, Stop> {
        let unknown = || "what the actions of this model need and change is not stated before the run".to_string();
        let Some(facts) = system.refined_facts(control)? else { return Ok(Err(unknown())) };
        let has_parts = (0..facts.actions().len() as u32).any(|part| facts.action(part) != Action(part));
        let made = Self::over(system, facts, properties, manner, control)?;
        if made.is_ok() || !has_parts {
            return Ok(made);
        }
        let Some(facts) = system.facts(control)? else { return Ok(Err(unknown())) };
        Self::over(system, facts, properties, manner, control)
    }

    /// The same by these facts.
    fn over(
        system: &'s dyn System,
        facts: Box<dyn Facts + 's>,
        properties: &[Property],
        manner: Manner,
        control: &Control,
    ) -> Result<Result<Self, String>, Stop> {
        let actions = facts.actions();
        let count = actions.len();
        let strong = manner.strength == Strength::Strong || !facts.adds();
        // The lists that are turned round, the words of a block, and those of each thread.
        let listed = [&actions.needs, &actions.enables, &actions.disables, &actions.reads, &actions.writes];
        control.ask_for(listed.iter().map(|lists| 8 * lists.items().len() as u64).sum::<u64>() + 128 * count as u64)?;
        let by_action = |lists: &Lists, keys: u32| lists.inverted(keys, 0..count);
        let pinned: Vec<Vec<(u32, i64)>> = (0..if strong { count } else { 0 })
            .map(|action| actions.needs.row(action).iter().filter_map(|&condition| facts.pins(condition)).collect())
            .collect();
        let excludes = |one: u32, other: u32| {
            let [Some(one), Some(other)] = [one, other].map(|action| pinned.get(action as usize)) else { return false };
            one.iter().any(|(thing, value)| other.iter().any(|pin| pin.0 == *thing && pin.1 != *value))
        };
        let needing = by_action(&actions.needs, actions.conditions);
        let disabling = by_action(&actions.disables, actions.conditions);
        let enabling = by_action(&actions.enables, actions.conditions);
        let reading = by_action(&actions.reads, actions.variables);
        let writing = by_action(&actions.writes, actions.variables);
        let mut along = Union::new(count, manner.pairs);
        let mut keys = Union::new(count, manner.pairs);
        for action in 0..count as u32 {
            control.ask()?;
            let row = |lists: &'_ Lists| lists.row(action as usize).to_vec();
            for condition in row(&actions.disables) {
                along.add(action, needing.row(condition as usize));
            }
            for variable in row(&actions.writes) {
                along.add(action, reading.row(variable as usize));
                along.add(action, writing.row(variable as usize));
            }
            for variable in row(&actions.reads) {
                along.add(action, writing.row(variable as usize));
            }
            let keyed = if strong { &mut along } else { &mut keys };
            for condition in row(&actions.needs) {
                keyed.add(action, disabling.row(condition as usize));
            }
            along.row.retain(|&other| !excludes(action, other));
            if !(along.end(control)? && keys.end(control)?) {
                return Ok(Err("too many actions of this model depend on each other".into()));
            }
        }
        let (along, keys) = (along.lists, keys.lists);
        let mut needs = actions.needs.clone();
        let mut sorted = Lists::default();
        for action in 0..count {
            let mut row = needs.row(action).to_vec();
            row.sort_by_key(|&condition| {
                (facts.pins(condition).is_none(), enabling.row(condition as usize).len(), condition)
            });
            sorted.push(&row);
        }
        needs = sorted;
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by_key(|&action| (along.row(action as usize).len() + keys.row(action as usize).len(), action));
        let asks_faults = properties.iter().any(|property| matches!(property.goal, Goal::FaultFree));
        let may_fail = |action: &u32| actions.may_fail[*action as usize] || actions.may_break[*action as usize];
        let failing = (0..count as u32).filter(|action| asks_faults && may_fail(action)).collect();
        let (aims, goals, tries) = (Vec::new(), Vec::new(), manner.keys.max(1));
        let looked = AtomicU64::new(0);
        let mut owners: Vec<u32> = (0..count as u32).map(|part| facts.action(part).0).collect();
        if (0..).zip(&owners).all(|(part, &owner)| part == owner) {
            owners.clear();
        }
        let whole = system.action_count().map_or(count, |count| count as usize);
        let mut made = Stubborn {
            inner: system,
            facts,
            owners,
            whole,
            along,
            keys,
            enabling,
            needs,
            order,
            aims,
            goals,
            failing,
            strong,
            tries,
            looked,
            allowance: None,
        };
        for property in properties {
            let formula = match &property.goal {
                Goal::DeadlockFree => Some(Formula::Deadlock(true)),
                Goal::FaultFree => continue,
                Goal::Invariant(predicate) => predicate.formula(false),
                Goal::Reachable(predicate) => predicate.formula(true),
            };
            let Some(formula) = formula else {
                return Ok(Err(format!("it is not known what `{}` depends on", property.name)));
            };
            let goal = made.aim_at(made.defined(formula));
            made.goals.push(goal);
        }
        Ok(Ok(made))
    }

    /// Whether all deadlocks are kept, at their distances: some formula wants one in every state that is none.
    pub fn keeps_deadlocks(&self) -> bool {
        let wants = |goal: usize| matches!(self.aims[goal], Aim::Deadlock(true));
        self.goals.iter().any(|&goal| match &self.aims[goal] {
            // Its first part is false there.
            Aim::All(parts) => parts.first().is_some_and(|&first| wants(first)),
            _ => wants(goal),
        })
    }

    /// The same, which ends the run when the allowance is spent.
    #[must_use]
    pub fn with(mut self, allowance: Allowance) -> Self {
        self.looked = AtomicU64::new(0);
        self.allowance = Some(allowance);
        self
    }

    /// How many entries of lists were looked at so far: a measure of the work that does not depend on the machine.
    pub fn work(&self) -> u64 {
        self.looked.load(Relaxed)
    }

    /// The same formula; or, if one of its parts may have no value, a function of what it depends on.
    fn defined(&self, formula: Formula) -> Formula {
        let mut undefined = false;
        formula.each_atom(&mut |atom| {
            if let Formula::Is(observable, _) = atom {
                undefined |= self.facts.may_be_undefined(*observable);
            }
        });
        if undefined { formula.obscured() } else { formula }
    }

    /// The actions that may change an observable so that it increases, if `up`; decreases, if `down`.
    fn changing(&self, observable: Observable, up: bool, down: bool, by: &mut Vec<u32>) {
        match self.facts.changes(observable) {
            None => by.extend(0..self.facts.actions().len() as u32),
            Some(changes) => by.extend(changes.into_iter().filter_map(|(action, change)| {
                let counts = match change {
                    Change::Increases => up,
                    Change::Decreases => down,
                    Change::Either => true,
                };
                counts.then_some(action.0)
            })),
        }
    }

    /// Appends a formula, and returns its number.
    fn aim_at(&mut self, formula: Formula) -> usize {
        let mut by = Vec::new();
        let mut aim = match formula {
            Formula::All(parts) => Aim::All(parts.into_iter().map(|part| self.aim_at(part)).collect()),
            Formula::Some(parts) => Aim::Some(parts.into_iter().map(|part| self.aim_at(part)).collect()),
            Formula::AtLeast(terms, least) => {
                for &(observable, factor) in &terms {
                    self.changing(observable, factor > 0, factor < 0, &mut by);
                }
                Aim::AtLeast { terms, least, by: Vec::new() }
            }
            Formula::Is(observable, truth) => {
                self.changing(observable, truth, !truth, &mut by);
                Aim::Is { observable, truth, by: Vec::new() }
            }
            Formula::Deadlock(truth) => Aim::Deadlock(truth),
            Formula::Of(observables) => {
                observables.iter().for_each(|&observable| self.changing(observable, true, true, &mut by));
                Aim::Of { by: Vec::new() }
            }
        };
        by.sort_unstable();
        by.dedup();
        if let Aim::AtLeast { by: list, .. } | Aim::Is { by: list, .. } | Aim::Of { by: list } = &mut aim {
            *list = by;
        }
        self.aims.push(aim);
        self.aims.len() - 1
    }

    /// Finds the sets of the states of a block: `work.followed` and `work.moved`.
    fn choose(&self, work: &mut StubbornScratch, scratch: &mut Scratch, block: &Block) {
        let count = self.facts.actions().len();
        let live = block.mask();
        work.fit(count);
        self.facts.truths(scratch, block, &mut work.truths);
        let mut several = 0;
        for action in 0..count {
            let conditions = self.needs.row(action).iter();
            let enabled = conditions.fold(live, |word, &condition| word & work.truths[condition as usize]);
            several |= work.moved & enabled;
            work.moved |= enabled;
            work.enabled[action] = enabled;
        }
        for &action in &self.failing {
            work.add(action, live);
        }
        let keyless = self.pursue(work, scratch, block) & work.moved;
        self.close(work);
        work.looked += 4 * count as u64;
        if !self.facts.adds() {
            // Conditions were decided state by state.
            work.looked += 8 * u64::from(self.facts.actions().conditions) * block.len() as u64;
        }
        let StubbornScratch { member, enabled, chosen, best, .. } = work;
        let mut with_member = 0;
        for action in 0..count {
            let kept = member[action] & enabled[action];
            with_member |= kept;
            each_lane(kept, |lane| best.0[lane] += 1);
            chosen[action] = kept;
        }
        let mut wanting = if self.strong { keyless & !with_member } else { keyless };
        // Where one action is enabled it is the set of all actions that is taken.
        let alone = wanting & !several;
        if alone != 0 {
            chosen.iter_mut().zip(enabled.iter()).for_each(|(chosen, enabled)| *chosen |= enabled & alone);
            wanting &= several;
        }
        if wanting != 0 {
            self.try_keys(work, wanting);
        }
        if self.owners.is_empty() {
            std::mem::swap(&mut work.chosen, &mut work.followed);
        } else {
            work.followed.clear();
            work.followed.resize(self.whole, 0);
            for (&owner, lanes) in self.owners.iter().zip(&work.chosen) {
                work.followed[owner as usize] |= lanes;
            }
        }
        let more = std::mem::take(&mut work.looked);
        let looked = self.looked.fetch_add(more, Relaxed) + more;
        if let Some(allowance) = self.allowance.as_ref().filter(|allowance| looked > allowance.work) {
            allowance.end.cancel();
        }
    }

    /// Adds what the formulas want; returns the states in which a deadlock is wanted.
    fn pursue(&self, work: &mut StubbornScratch, scratch: &mut Scratch, block: &Block) -> u64 {
        let live = block.mask();
        let observe = self.inner.observe();
        let mut values = [0i64; BLOCK];
        let mut read = |observable: Observable, values: &mut [i64; BLOCK]| match observe {
            Some(observe) => observe.read_block(scratch, block, observable, values),
            None => unreachable!("a formula names observables of the system"),
        };
        let (mut satisfied, mut wanted) = (std::mem::take(&mut work.satisfied), std::mem::take(&mut work.wanted));
        satisfied.clear();
        for aim in &self.aims {
            let truth = match aim {
                Aim::All(parts) => parts.iter().fold(live, |word, &part| word & satisfied[part]),
                Aim::Some(parts) => parts.iter().fold(0, |word, &part| word | satisfied[part]),
                Aim::AtLeast { terms, least, .. } => {
                    let mut sums = [0i128; BLOCK];
                    for &(observable, factor) in terms {
                        read(observable, &mut values);
                        let products = values.iter().map(|&value| i128::from(value) * i128::from(factor));
                        sums.iter_mut().zip(products).take(block.len()).for_each(|(sum, product)| *sum += product);
                    }
                    lanes_where(block.len(), |lane| sums[lane] >= i128::from(*least))
                }
                Aim::Is { observable, truth, .. } => {
                    read(*observable, &mut values);
                    lanes_where(block.len(), |lane| (values[lane] != 0) == *truth)
                }
                Aim::Deadlock(truth) => live & if *truth { !work.moved } else { work.moved },
                Aim::Of { .. } => 0,
            };
            satisfied.push(truth);
        }
        wanted.clear();
        wanted.resize(self.aims.len(), 0);
        self.goals.iter().for_each(|&goal| wanted[goal] = live);
        let mut keyless = 0;
        for (number, aim) in self.aims.iter().enumerate().rev() {
            let mut open = wanted[number] & !satisfied[number];
            match aim {
                Aim::All(parts) => {
                    for &part in parts {
                        wanted[part] = open & !satisfied[part];
                        open &= satisfied[part];
                    }
                }
                Aim::Some(parts) => parts.iter().for_each(|&part| wanted[part] = open),
                Aim::AtLeast { by, .. } | Aim::Is { by, .. } | Aim::Of { by } => {
                    by.iter().for_each(|&action| work.add(action, open));
                }
                Aim::Deadlock(true) => keyless |= open,
                // No path leads out of a deadlock.
                Aim::Deadlock(false) => {}
            }
        }
        (work.satisfied, work.wanted) = (satisfied, wanted);
        keyless
    }

    /// Closes the sets under D and E. In rounds, if a choice looks at what the members are: what a set has after a round does
    /// not depend on the other states of the block.
    fn close(&self, work: &mut StubbornScratch) {
        work.settled.clone_from(&work.member);
        while !work.grown.is_empty() {
            let mut round = std::mem::take(&mut work.round);
            // What grows in this round is looked at in the next, whatever else is to be looked at.
            for action in work.grown.drain(..) {
                round.push((action, std::mem::take(&mut work.growth[action as usize])));
                work.settled[action as usize] = work.member[action as usize];
            }
            for (action, lanes) in round.drain(..) {
                let enabled = lanes & work.enabled[action as usize];
                work.looked += 1;
                if enabled != 0 {
                    work.looked += self.along.row(action as usize).len() as u64;
                    for &other in self.along.row(action as usize) {
                        work.add(other, enabled);
                    }
                }
                let disabled = lanes & !enabled;
                if disabled != 0 && self.facts.adds() {
                    self.need_first(work, action, disabled);
                } else if disabled != 0 {
                    self.need_cheapest(work, action, disabled);
                }
            }
            work.round = round;
        }
    }

    /// Adds what enables the first condition of an action that does not hold.
    fn need_first(&self, work: &mut StubbornScratch, action: u32, mut disabled: u64) {
        for &condition in self.needs.row(action as usize) {
            let missing = disabled & !work.truths[condition as usize];
            disabled &= !missing;
            self.need(work, condition, missing);
            if disabled == 0 {
                break;
            }
        }
    }

    /// Adds what enables the condition of an action that does not hold and costs least: enabled actions that are no members yet, above all.
    fn need_cheapest(&self, work: &mut StubbornScratch, action: u32, disabled: u64) {
        let conditions = self.needs.row(action as usize);
        let (mut some, mut several) = (0, 0);
        for &condition in conditions {
            let missing = disabled & !work.truths[condition as usize];
            several |= some & missing;
            some |= missing;
        }
        for &condition in conditions {
            self.need(work, condition, some & !several & !work.truths[condition as usize]);
        }
        if several == 0 {
            return;
        }
        let mut least = LaneCounts([u32::MAX; BLOCK]);
        let mut choices = std::mem::take(&mut work.choices);
        for &condition in conditions {
            let missing = several & !work.truths[condition as usize];
            if missing == 0 {
                continue;
            }
            let mut costs = LaneCounts::default();
            work.looked += self.enabling.row(condition as usize).len() as u64;
            for &other in self.enabling.row(condition as usize) {
                let new = missing & !work.settled[other as usize];
                each_lane(new & work.enabled[other as usize], |lane| costs.0[lane] += FOLLOWED);
                each_lane(new & !work.enabled[other as usize], |lane| costs.0[lane] += 1);
            }
            let mut better = 0;
            each_lane(missing, |lane| better |= u64::from(costs.0[lane] < least.0[lane]) << lane);
            each_lane(better, |lane| least.0[lane] = costs.0[lane]);
            choices.iter_mut().for_each(|(_, lanes)| *lanes &= !better);
            choices.push((condition, better));
        }
        for (condition, lanes) in choices.drain(..) {
            self.need(work, condition, lanes);
        }
        work.choices = choices;
    }

    /// Adds what enables a condition in these states.
    fn need(&self, work: &mut StubbornScratch, condition: u32, lanes: u64) {
        if lanes != 0 {
            work.looked += self.enabling.row(condition as usize).len() as u64;
            for &other in self.enabling.row(condition as usize) {
                work.add(other, lanes);
            }
        }
    }

    /// Adds a key in each of these states, in which several actions are enabled, so that few are followed.
    fn try_keys(&self, work: &mut StubbornScratch, wanting: u64) {
        work.base.clone_from(&work.member);
        work.untried.clone_from(&work.enabled);
        let based = work.best;
        each_lane(wanting, |lane| work.best.0[lane] = u32::MAX);
        let StubbornScratch { touched, is_touched, .. } = &mut *work;
        touched.drain(..).for_each(|action| is_touched[action as usize] = false);
        let mut open = wanting;
        for _ in 0..self.tries {
            let mut keyless = open;
            for &action in &self.order {
                let lanes = work.untried[action as usize] & keyless;
                if lanes != 0 {
                    work.untried[action as usize] &= !lanes;
                    keyless &= !lanes;
                    work.add(action, lanes);
                    for &other in self.keys.row(action as usize) {
                        work.add(other, lanes);
                    }
                    if keyless == 0 {
                        break;
                    }
                }
            }
            open &= !keyless;
            if open == 0 {
                break;
            }
            self.close(work);
            let StubbornScratch { member, base, enabled, chosen, best, touched, is_touched, .. } = &mut *work;
            let mut counts = based;
            for &action in touched.iter() {
                let action = action as usize;
                each_lane(member[action] & !base[action] & enabled[action], |lane| counts.0[lane] += 1);
            }
            let better = open & lanes_where(BLOCK, |lane| counts.0[lane] < best.0[lane]);
            if better != 0 {
                for (chosen, (base, enabled)) in chosen.iter_mut().zip(base.iter().zip(enabled.iter())) {
                    *chosen = *chosen & !better | base & enabled & better;
                }
                each_lane(better, |lane| best.0[lane] = counts.0[lane]);
            }
            for action in touched.drain(..).map(|action| action as usize) {
                chosen[action] |= member[action] & enabled[action] & better;
                member[action] = base[action];
                is_touched[action] = false;
            }
            // Nothing is smaller than one.
            open &= !lanes_where(BLOCK, |lane| best.0[lane] <= 1);
        }
    }

    /// The states of a list in which the action of the same index is followed, a bit each, 64 at a time.
    fn followed(
        &self,
        scratch: &mut Scratch,
        states: &States,
        range: std::ops::Range<usize>,
        action: impl Fn(usize) -> Action,
    ) -> Vec<bool> {
        let mut kept = Vec::with_capacity(range.len());
        let mut block = Block::new(Layer::width(self));
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + BLOCK);
            block.reset(Layer::width(self));
            (start..end).for_each(|index| block.push(StateId::NAMELESS, states.get(index)));
            with_work(|work| {
                self.choose(work, scratch, &block);
                kept.extend((start..end).map(|index| work.has(index - start, action(index))));
            });
            start = end;
        }
        kept
    }

    fn follows(&self, scratch: &mut Scratch, source: &[Slot], action: Action) -> bool {
        let mut states = States::new(Layer::width(self));
        states.push(source);
        self.followed(scratch, &states, 0..1, |_| action)[0]
    }
}

impl Layer for Stubborn<'_> {
    fn inner(&self) -> &dyn System {
        self.inner
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let current = out.current();
        let mut block = Block::new(Layer::width(self));
        block.push(StateId::NAMELESS, source);
        let mut single = Batch::new(Layer::width(self));
        if let Some(control) = out.control() {
            single = single.under(control);
        }
        Layer::expand(self, scratch, &block, &mut single)?;
        if let Some(stop) = single.stop() {
            out.halt(stop);
            return Ok(());
        }
        for index in 0..single.len() {
            out.push_hashed(single.action(index), single.target(index), single.hash(index));
        }
        for fault in single.faults() {
            out.fault(fault.action, fault.message.clone());
        }
        out.cut_off(single.cut_off_sources() << current);
        out.leave_away(single.moved() << current);
        Ok(())
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        with_work(|work| {
            self.choose(work, scratch, block);
            self.inner.expand_chosen(scratch, block, &work.followed, out)?;
            out.leave_away(work.moved);
            Ok(())
        })
    }

    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        sleep: &Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        sleep::expand_then_skip(self, scratch, block, sleep, arrivals, out)
    }

    fn expand_chosen(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        chosen: &[u64],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        Layer::expand(self, scratch, block, out)?;
        out.keep_where(|source, action| chosen[action.0 as usize] >> source & 1 == 1);
        Ok(())
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let fired = self.inner.fire(scratch, source, action, target)?;
        Ok(if fired == Fired::Done && !self.follows(scratch, source, action) { Fired::Disabled } else { fired })
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

    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        let undone = self.inner.reversible().is_some_and(|inner| inner.unfire(scratch, target, action, source));
        undone && self.follows(scratch, source, action)
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let Some(inner) = self.inner.reversible() else { return };
        let mut all = Batch::new(Layer::width(self));
        if let Some(control) = out.control() {
            all = all.under(control);
        }
        inner.predecessors(scratch, target, &mut all);
        if let Some(stop) = all.stop() {
            return out.halt(stop);
        }
        let kept = self.followed(scratch, all.targets(), 0..all.len(), |index| all.action(index));
        for index in (0..all.len()).filter(|&index| kept[index]) {
            out.push_hashed(all.action(index), all.target(index), all.hash(index));
        }
    }

    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        let Some(inner) = self.inner.reversible() else { return };
        let before = out.from.len();
        inner.unfire_each(scratch, targets, hashes, actions, out);
        let from = &out.from;
        let kept = self.followed(scratch, &out.states, before..from.len(), |index| actions[from[index] as usize]);
        let stays = |index: usize| index < before || kept[index - before];
        out.states.retain(stays);
        let mut index = 0..;
        out.hashes.retain(|_| index.next().is_some_and(stays));
        let mut index = 0..;
        out.from.retain(|_| index.next().is_some_and(stays));
    }
}

/// Working memory of one thread. A scratch of the layer's own would keep the system below from using its own.
#[derive(Default)]
struct StubbornScratch {
    /// For each condition the states in which it holds.
    truths: Vec<u64>,
    /// For each action the states in which it is enabled, is a member, is one but has not been looked at, is followed.
    enabled: Vec<u64>,
    member: Vec<u64>,
    growth: Vec<u64>,
    chosen: Vec<u64>,
    /// The same of whole actions.
    followed: Vec<u64>,
    /// For each action the states in which it was a member before this round.
    settled: Vec<u64>,
    /// The actions that are looked at in this round, with the states in which they are new.
    round: Vec<(u32, u64)>,
    /// Conditions with the states in which each is the cheapest so far.
    choices: Vec<(u32, u64)>,
    /// Actions that have not been looked at in some state.
    grown: Vec<u32>,
    /// Members before a key was tried, and keys not tried yet.
    base: Vec<u64>,
    untried: Vec<u64>,
    /// Actions whose members have changed since.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// For each state how many actions are followed.
    best: LaneCounts,
    /// The states in which some action is enabled.
    moved: u64,
    /// Entries of lists that were looked at.
    looked: u64,
    /// For each formula the states in which it is true, and those in which it is to become true.
    satisfied: Vec<u64>,
    wanted: Vec<u64>,
}

/// A number for each state of a block.
#[derive(Clone, Copy)]
struct LaneCounts([u32; BLOCK]);

impl Default for LaneCounts {
    fn default() -> Self {
        LaneCounts([0; BLOCK])
    }
}

impl StubbornScratch {
    fn fit(&mut self, actions: usize) {
        for words in [&mut self.enabled, &mut self.member, &mut self.growth, &mut self.chosen] {
            words.clear();
            words.resize(actions, 0);
        }
        self.is_touched.clear();
        self.is_touched.resize(actions, false);
        self.grown.clear();
        self.touched.clear();
        (self.best, self.moved) = (LaneCounts::default(), 0);
    }

    #[inline]
    fn add(&mut self, action: u32, lanes: u64) {
        let index = action as usize;
        let new = lanes & !self.member[index];
        if new == 0 {
            return;
        }
        self.member[index] |= new;
        if self.growth[index] == 0 {
            self.grown.push(action);
        }
        self.growth[index] |= new;
        if !self.is_touched[index] {
            self.is_touched[index] = true;
            self.touched.push(action);
        }
    }

    fn has(&self, lane: usize, action: Action) -> bool {
        self.followed.get(action.0 as usize).is_some_and(|word| word >> lane & 1 == 1)
    }
}

thread_local! {
    static WORK: Cell<Option<Box<StubbornScratch>>> = const { Cell::new(None) };
}

/// Lends the working memory of this thread.
fn with_work<T>(run: impl FnOnce(&mut StubbornScratch) -> T) -> T {
    let mut work = WORK.take().unwrap_or_default();
    let result = run(&mut work);
    WORK.set(Some(work));
    result
}

#[inline]
fn each_lane(mut lanes: u64, mut see: impl FnMut(usize)) {
    while lanes != 0 {
        see(lanes.trailing_zeros() as usize % BLOCK);
        lanes &= lanes - 1;
    }
}

fn lanes_where(count: usize, test: impl Fn(usize) -> bool) -> u64 {
    (0..count).fold(0, |word, lane| word | u64::from(test(lane)) << lane)
}
