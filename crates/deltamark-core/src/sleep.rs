//! Sleep sets of a breadth-first search, by one step back.
//!
//! In: what a system states about its actions ([`Facts`](crate::Facts)), and an order of them. Out: the relation
//! "`b` is skipped in a state that was reached by `a`". What stays true: every state at distance
//! `d + 1` is still the successor, by an edge that is not skipped, of a state at distance `d`.
//!
//! From Godefroid, *Using partial orders to improve automatic verification methods*, CAV 1990. We
//! keep no sets with states: the action that first reached a state is all that a search records.
//!
//! # The idea
//! ```text
//!         p                level d - 1
//!     a  / \  b
//!       s   s'             level d
//!     b  \ /  a
//!         t
//! ```
//! `b` is *skipped* in a state reached by `a` if `a` comes before `b` in the order and
//!
//! * S1: `a` enables no condition that `b` needs;
//! * S2: `b` disables no condition that `a` needs;
//! * S3: neither writes a variable that the other reads or writes.
//!
//! *Lemma.* Let `a` lead from `p` to `s` and `b` from `s` to `t`, and let `b` be skipped there. Then `b`
//! leads from `p` to a state `s'`, and `a` from `s'` to `t`. Proof: all conditions of `b` hold in `s`
//! (F1), hence in `p` (S1, F2), so `b` is enabled in `p` (F1); by S3 and F4 it leads to a state `s'`.
//! All conditions of `a` hold in `p`, hence in `s'` (S2, F3), so `a` is enabled there, and leads to
//! `t` (F4). ∎
//!
//! *Theorem.* Let all states at distance `d` be expanded, each without the actions that are skipped
//! after some action that reached it from distance `d - 1`. Then every state `t` at distance `d + 1`
//! is among the successors. Proof: of all edges to `t` from states at distance `d` take one whose
//! action `b` comes first in the order; let `s` be its source. Suppose it is skipped. Then `s` was
//! reached from some `p` at distance `d - 1` by an `a` before `b`, and there is an `s'` as in the
//! lemma. Its distance is at most `d`, and as `t` is not nearer than `d + 1`, it is `d`. So `a` leads
//! to `t` from a state at distance `d`, and comes before `b`: a contradiction. ∎
//!
//! So levels, and with them shortest paths, are unchanged; skipped edges are counted all the same.
//! Only edges are skipped, never faults. The theorem rests on levels: depth-first search must follow
//! every edge. A sweep has a theorem of its own, which needs another order (`sweep.rs`).
//!
//! # Forms
//! Systems with few actions have a row of bits an action; those with many, a list of the later
//! actions that are *not* skipped, as long as lists are short; those whose actions are numbered while
//! they run are asked pair by pair ([`Exchange`](crate::Exchange)).

use crate::facts::{ActionFacts, Form, Lists};
use crate::{Action, Batch, Block, Control, Scratch, Stop, System, Widen};

/// The most dependent actions that are listed, an action. Systems with more have variables that most
/// of their actions use, so that few edges would be skipped.
const MOST_DEPENDENT: usize = 256;
/// More actions would take more than 8 MiB of rows.
const MOST_ROWS: usize = 8192;
/// The most comparisons that are spent on rows.
const MOST_COMPARED: usize = 1 << 28;

/// Which actions are skipped after which.
#[derive(Debug)]
pub enum Sleep {
    /// Lists of the actions that are not.
    Lists(SleepLists),
    /// Rows of bits.
    Rows(SleepRows),
    /// The system is asked of each two actions; those of larger numbers come later.
    Pairs,
}

impl Sleep {
    /// The relation for a system; `None` if it states nothing to build it from, or if nearly every action
    /// depends on nearly every other. Actions come in the order of their numbers, but those for which `first` returns true
    /// come before all others.
    pub fn new(
        system: &dyn System,
        first: Option<&dyn Fn(Action) -> bool>,
        control: &Control,
    ) -> Result<Option<Self>, Stop> {
        let Some(facts) = system.facts(control)? else {
            return Ok(system.exchange().filter(|_| first.is_none()).map(|_| Sleep::Pairs));
        };
        let order = first.map(|first| ActionOrder::new(facts.actions().len(), first));
        Ok(match facts.form() {
            Form::Lists => SleepLists::new(facts.actions(), order, control)?.map(Sleep::Lists),
            Form::Rows => SleepRows::new(facts.actions(), order, control)?.map(Sleep::Rows),
        })
    }

    /// Whether `action` is skipped in a state that `arrival` reached.
    pub fn skips<S: System + ?Sized>(&self, system: &S, arrival: Action, action: Action) -> bool {
        match self {
            Sleep::Lists(lists) => lists.skips(arrival, action),
            Sleep::Rows(rows) => rows.row(arrival)[action.0 as usize / 64] >> (action.0 % 64) & 1 == 1,
            Sleep::Pairs => {
                let asked = |system: &dyn crate::Exchange| system.exchangeable(arrival, action);
                arrival < action && system.exchange().is_some_and(asked)
            }
        }
    }
}

/// [`System::expand_awake`] by expanding everything first.
pub fn expand_then_skip<S: System + ?Sized>(
    system: &S,
    scratch: &mut Scratch,
    block: &Block,
    sleep: &Sleep,
    arrivals: &[Action],
    out: &mut Batch,
) -> Result<(), Widen> {
    system.expand(scratch, block, out)?;
    let skips =
        |source: usize, action| arrivals[source] != Action::NONE && sleep.skips(system, arrivals[source], action);
    out.leave_out_where(skips);
    Ok(())
}

/// An order of the actions.
#[derive(Debug)]
struct ActionOrder {
    /// The actions, first to last.
    actions: Vec<u32>,
    /// For each action its position among them.
    turns: Vec<u32>,
}

impl ActionOrder {
    fn new(count: usize, first: &dyn Fn(Action) -> bool) -> Self {
        let mut actions: Vec<u32> = (0..count as u32).collect();
        actions.sort_by_key(|&action| !first(Action(action)));
        let mut turns = vec![0; count];
        (0..).zip(&actions).for_each(|(turn, &action)| turns[action as usize] = turn);
        ActionOrder { actions, turns }
    }
}

/// Finds for each action the later ones that are not skipped after it. Actions are known by their turns.
struct Dependents<'f> {
    facts: &'f ActionFacts,
    /// For each condition the actions that need it, and those that may disable it.
    needed: Lists,
    disabled: Lists,
    /// For each variable the actions that read it, and those that write it.
    read: Lists,
    written: Lists,
    /// The last action that was found to depend on each.
    found_by: Vec<u32>,
    compared: usize,
}

impl<'f> Dependents<'f> {
    fn new(facts: &'f ActionFacts, order: Option<&ActionOrder>, control: &Control) -> Result<Self, Stop> {
        let invert = |lists: &Lists, count: u32| {
            control.ask_for(4 * lists.items().len() as u64 + 16 * u64::from(count))?;
            Ok(match order {
                None => lists.inverted(count, 0..facts.len()),
                Some(order) => lists.inverted(count, order.actions.iter().map(|&action| action as usize)),
            })
        };
        Ok(Dependents {
            facts,
            needed: invert(&facts.needs, facts.conditions)?,
            disabled: invert(&facts.disables, facts.conditions)?,
            read: invert(&facts.reads, facts.variables)?,
            written: invert(&facts.writes, facts.variables)?,
            found_by: vec![u32::MAX; facts.len()],
            compared: 0,
        })
    }

    /// Appends the turns of the actions after this one that are not skipped after it.
    fn append(&mut self, turn: u32, action: usize, out: &mut Vec<u32>) {
        let Dependents { facts, needed, disabled, read, written, found_by, compared } = self;
        let mut later = |known: &Lists, key: u32| {
            let list = known.row(key as usize);
            let list = &list[list.partition_point(|&other| other <= turn)..];
            *compared += list.len();
            for &other in list {
                if std::mem::replace(&mut found_by[other as usize], turn) != turn {
                    out.push(other);
                }
            }
        };
        facts.enables.row(action).iter().for_each(|&condition| later(needed, condition));
        facts.needs.row(action).iter().for_each(|&condition| later(disabled, condition));
        facts.writes.row(action).iter().for_each(|&variable| later(read, variable));
        facts.writes.row(action).iter().for_each(|&variable| later(written, variable));
        facts.reads.row(action).iter().for_each(|&variable| later(written, variable));
    }
}

/// For each action the later ones that are not skipped after it.
#[derive(Debug)]
pub struct SleepLists {
    /// The order of the actions, unless it is that of their numbers.
    order: Option<ActionOrder>,
    /// By turn; numbers of actions.
    dependent: Lists,
}

impl SleepLists {
    fn new(facts: &ActionFacts, order: Option<ActionOrder>, control: &Control) -> Result<Option<Self>, Stop> {
        let count = facts.len();
        let mut dependents = Dependents::new(facts, order.as_ref(), control)?;
        let (mut dependent, mut found) = (Lists::default(), Vec::new());
        for turn in 0..count {
            control.ask()?;
            let action = order.as_ref().map_or(turn, |order| order.actions[turn] as usize);
            found.clear();
            dependents.append(turn as u32, action, &mut found);
            dependent.push(&found);
            let listed = dependent.items().len();
            if dependents.compared > 4 * MOST_DEPENDENT * count || listed > MOST_DEPENDENT * count {
                return Ok(None);
            }
        }
        if let Some(order) = &order {
            dependent.items_mut().iter_mut().for_each(|turn| *turn = order.actions[*turn as usize]);
        }
        Ok(Some(SleepLists { order, dependent }))
    }

    fn skips(&self, arrival: Action, action: Action) -> bool {
        let turn = |action: Action| match &self.order {
            None => action.0 as usize,
            Some(order) => order.turns[action.0 as usize] as usize,
        };
        turn(arrival) < turn(action) && !self.dependent.row(turn(arrival)).contains(&action.0)
    }

    /// Writes to `asleep[b]`, for each action `b`, a word with a bit for each state of a block in which it is
    /// skipped: for systems that expand a block action by action. `arrivals` holds for each state the action that reached
    /// it; a number that no action has means none.
    pub fn fill(&self, arrivals: &[Action], runs: &mut Vec<(u32, u64)>, asleep: &mut Vec<u64>) {
        let count = self.dependent.len();
        runs.clear();
        for (index, &Action(action)) in arrivals.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.0 == action => run.1 |= 1 << index,
                _ => runs.push((action, 1 << index)),
            }
        }
        if let Some(order) = &self.order {
            runs.iter_mut().for_each(|run| run.0 = order.turns.get(run.0 as usize).copied().unwrap_or(u32::MAX));
        }
        runs.sort_unstable_by_key(|run| run.0);
        asleep.clear();
        let mut states = 0;
        match &self.order {
            None => {
                for &(turn, lanes) in runs.iter().take_while(|run| (run.0 as usize) < count) {
                    asleep.resize(turn as usize + 1, states);
                    states |= lanes;
                }
                asleep.resize(count, states);
            }
            Some(order) => {
                asleep.resize(count, 0);
                let mut begun = 0;
                let mut fill = |end: usize, states: u64| {
                    order.actions[begun..end].iter().for_each(|&later| asleep[later as usize] = states);
                    begun = end;
                };
                for &(turn, lanes) in runs.iter().take_while(|run| (run.0 as usize) < count) {
                    fill(turn as usize + 1, states);
                    states |= lanes;
                }
                fill(count, states);
            }
        }
        for &(turn, lanes) in runs.iter().take_while(|run| (run.0 as usize) < count) {
            for &later in self.dependent.row(turn as usize) {
                asleep[later as usize] &= !lanes;
            }
        }
    }
}

/// For each action a bit for each that is skipped after it.
#[derive(Debug)]
pub struct SleepRows {
    /// Words of a row.
    words: usize,
    /// A row an action, and one without any bit.
    rows: Vec<u64>,
}

impl SleepRows {
    fn new(facts: &ActionFacts, order: Option<ActionOrder>, control: &Control) -> Result<Option<Self>, Stop> {
        let count = facts.len();
        if !(1..=MOST_ROWS).contains(&count) {
            return Ok(None);
        }
        let words = count.div_ceil(64);
        control.ask_for(8 * (words * (count + 1)) as u64)?;
        let mut rows = vec![0u64; words * (count + 1)];
        let mut dependents = Dependents::new(facts, order.as_ref(), control)?;
        let mut later = vec![0u64; words];
        (0..count).for_each(|action| later[action / 64] |= 1 << (action % 64));
        let number = |turn: usize| order.as_ref().map_or(turn, |order| order.actions[turn] as usize);
        let mut found = Vec::new();
        for turn in 0..count {
            control.ask()?;
            let action = number(turn);
            later[action / 64] &= !(1 << (action % 64));
            found.clear();
            dependents.append(turn as u32, action, &mut found);
            let row = &mut rows[action * words..][..words];
            row.copy_from_slice(&later);
            for other in found.iter().map(|&other| number(other as usize)) {
                row[other / 64] &= !(1 << (other % 64));
            }
            if dependents.compared > MOST_COMPARED {
                return Ok(None);
            }
        }
        Ok(rows.iter().any(|&row| row != 0).then_some(SleepRows { words, rows }))
    }

    /// The actions that are skipped in a state that `arrival` reached: a bit each.
    #[inline]
    pub fn row(&self, arrival: Action) -> &[u64] {
        let row = if arrival == Action::NONE { self.rows.len() / self.words - 1 } else { arrival.0 as usize };
        &self.rows[row * self.words..][..self.words]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ActionFact;

    /// Facts about 150 actions, so that a row has several words, from a generator of numbers.
    fn facts() -> ActionFacts {
        let mut facts = ActionFacts::new(40, 30);
        let mut number = 12345u32;
        for _ in 0..150 {
            let mut fact = ActionFact::default();
            let mut draw = |list: &mut Vec<u32>, count: u32, below: u32| {
                for _ in 0..count {
                    number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    list.push((number >> 8) % below);
                }
            };
            draw(&mut fact.needs, 2, 40);
            draw(&mut fact.enables, 1, 40);
            draw(&mut fact.disables, 1, 40);
            draw(&mut fact.reads, 1, 30);
            draw(&mut fact.writes, 1, 30);
            facts.push(&mut fact);
        }
        facts
    }

    #[test]
    fn both_forms_are_the_relation_that_the_head_defines() {
        let facts = facts();
        let even = |action: Action| action.0.is_multiple_of(2);
        for first in [None, Some(&even as &dyn Fn(Action) -> bool)] {
            let order = || first.map(|first| ActionOrder::new(facts.len(), first));
            let control = Control::new();
            let lists = SleepLists::new(&facts, order(), &control).expect("no limit").expect("few depend on each");
            let rows = SleepRows::new(&facts, order(), &control).expect("no limit").expect("few depend on each");
            let (mut runs, mut asleep, mut skipped) = (Vec::new(), Vec::new(), 0);
            for a in (0..facts.len() as u32).map(Action) {
                lists.fill(&[Action::NONE, a], &mut runs, &mut asleep);
                for b in (0..facts.len() as u32).map(Action) {
                    let key = |action: Action| (first.is_some_and(|first| !first(action)), action.0);
                    let meet = |one: &Lists, other: &Lists| {
                        one.row(a.0 as usize).iter().any(|item| other.row(b.0 as usize).contains(item))
                    };
                    let expected = key(a) < key(b)
                        && !meet(&facts.enables, &facts.needs)
                        && !meet(&facts.needs, &facts.disables)
                        && !facts.compete(a, b);
                    assert_eq!(lists.skips(a, b), expected, "{a:?} and {b:?}");
                    assert_eq!(asleep[b.0 as usize], u64::from(expected) << 1, "{a:?} and {b:?}");
                    assert_eq!(rows.row(a)[b.0 as usize / 64] >> (b.0 % 64) & 1 == 1, expected, "{a:?} and {b:?}");
                    skipped += u32::from(expected);
                }
            }
            assert!(skipped > 5_000, "{skipped} pairs");
            assert!(rows.row(Action::NONE).iter().all(|&word| word == 0));
        }
    }
}
