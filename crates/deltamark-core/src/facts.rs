//! What actions need and change.
//!
//! In: what a front end knows of its model before it runs. Out: statements about numbered actions,
//! from which reductions are computed: [sleep sets](crate::sleep), stubborn sets. What stays true: a
//! statement may be conservative, never wrong; `check_system` of the test kit compares each with what
//! happens.
//!
//! The form is that of guard-based partial-order reduction (Laarman, Pater, van de Pol, Hansen,
//! *Guard-based partial-order reduction*, STTT 2014): the guard of an action is a conjunction of
//! *conditions*, and it is stated of conditions, not of actions, what makes them true or false.
//!
//! ```text
//! action   needs      enables      disables        reads, writes
//!   t0     c0, c1     c2           c0, c1          –                a net: effects are additions
//!   P.1    c3 (at s)  c4 (at t)    c3, c5 (x==0)   reads y, writes x
//! ```
//!
//! Let `a` lead from `p` to `s`: a step, not a fault. An action is *enabled* where it is a step or a
//! fault.
//!
//! * F1: an action is enabled in a state if and only if all conditions that it needs hold there.
//! * F2: if a condition does not hold in `p` and holds in `s`, `a` is stated to enable it.
//! * F3: if a condition holds in `p` and not in `s`, `a` is stated to disable it.
//! * F4: let `b` lead from `s` to `t`, and let neither of `a` and `b` write a variable that the other reads
//!   or writes. If `b` is enabled in `p`, it leads to a state `s'`; if `a` is enabled in `s'`, it
//!   leads to `t`.
//! * F5: an action that is a fault anywhere is stated to be one that may fail.
//! * F6: if the value of an observable differs in `p` and `s`, `a` is stated to change it, in that
//!   direction.
//! * F7, of systems that say so: states are vectors of integers, an action adds the same vector
//!   everywhere, and a condition compares one component with a constant. An action is stated to enable
//!   or disable a condition if and only if it adds to that component in that direction. No action writes a variable or may
//!   fail.
//! * F8: where a condition holds that [pins](Facts::pins) something to a value, that has this value. So two that pin the same thing
//!   to different values never hold together; actions that need them *exclude* each other.
//! * F10: if `s` is a fault by itself (an assertion fails there) and `p` is none, `a` is stated to be one that may break a
//!   state.
//!
//! # Parts
//! *Refined* facts are about *parts* of actions, which are numbered as actions are elsewhere: what an action does may
//! depend on values that only it sees, such as the index of an array, and to state it for each value
//! apart is more exact. F1 to F8 and F10 hold with parts for actions, and so does:
//!
//! * F9: each part is a part of one action. In every state in which an action is enabled, exactly one of its parts is, which leads to where
//!   the action leads; where it is not, none is.
//!
//! A variable is whatever effects compete for; its numbers mean nothing else. Effects that commute
//! by nature, such as the additions of a net, name none. What can make an action a fault counts as read.

use crate::{Action, Block, Observable, Scratch, Slot};

/// What a system states about its actions, which are numbered from 0.
pub trait Facts: Send + Sync {
    /// What each action needs and changes.
    fn actions(&self) -> &ActionFacts;

    /// Whether a condition holds in a state.
    fn holds(&self, scratch: &mut Scratch, state: &[Slot], condition: u32) -> bool;

    /// The actions that may change the value of an observable, ascending; `None` if any may. An action
    /// that may do both, in different states, [changes](Change::Either) it.
    fn changes(&self, observable: Observable) -> Option<Vec<(Action, Change)>>;

    /// Writes a word for each condition, with a bit for each state of the block in which it holds. Override it where
    /// conditions are decided for a block at once: [stubborn sets](crate::stubborn) ask for every block.
    fn truths(&self, scratch: &mut Scratch, block: &Block, out: &mut Vec<u64>) {
        out.clear();
        out.resize(self.actions().conditions as usize, 0);
        for (condition, word) in (0..).zip(out) {
            for (lane, state) in block.states().iter().enumerate() {
                *word |= u64::from(self.holds(scratch, state, condition)) << lane;
            }
        }
    }

    /// Whether effects are additions (F7).
    fn adds(&self) -> bool {
        false
    }

    /// What a condition pins to which value (F8): a number that stands for the same thing in all conditions, and the value.
    fn pins(&self, _condition: u32) -> Option<(u32, i64)> {
        None
    }

    /// Whether an observable may be [undefined](crate::UNDEFINED) in some state.
    fn may_be_undefined(&self, _observable: Observable) -> bool {
        false
    }

    /// The action that a number stands for: itself, or, in refined facts, the one that it is a part of (F9).
    fn action(&self, number: u32) -> Action {
        Action(number)
    }

    /// The form in which [`System::expand_awake`](crate::System::expand_awake) reads sleep sets.
    fn form(&self) -> Form {
        Form::Rows
    }
}

/// What an action may do to a value. A truth value that becomes true increases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It never decreases by the action.
    Increases,
    /// It never increases by the action.
    Decreases,
    /// Nothing is known of the direction.
    Either,
}

impl Change {
    /// What an action may do that may do this, and that.
    pub fn or(self, other: Change) -> Change {
        if self == other { self } else { Change::Either }
    }

    /// What it may do to the negative of the value.
    pub fn negated(self) -> Change {
        match self {
            Change::Increases => Change::Decreases,
            Change::Decreases => Change::Increases,
            Change::Either => Change::Either,
        }
    }
}

/// Sorts by action, and joins what is stated of one action several times.
pub fn joined(mut changes: Vec<(Action, Change)>) -> Vec<(Action, Change)> {
    changes.sort_by_key(|change| change.0);
    changes.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.or(next.1);
        }
        same
    });
    changes
}

/// A form of sleep sets: see [`Sleep`](crate::Sleep).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lists of dependent actions, for many actions of which each depends on few.
    Lists,
    /// A row of bits an action.
    Rows,
}

/// What is stated of one action; each list in any order.
#[derive(Clone, Debug, Default)]
pub struct ActionFact {
    /// The conditions that it needs (F1).
    pub needs: Vec<u32>,
    /// The conditions that it may make true (F2).
    pub enables: Vec<u32>,
    /// The conditions that it may make false (F3).
    pub disables: Vec<u32>,
    /// The variables that its effect reads, and those that decide whether it is a fault (F4).
    pub reads: Vec<u32>,
    /// The variables that its effect writes (F4).
    pub writes: Vec<u32>,
    /// Whether it may be a fault (F5).
    pub may_fail: bool,
    /// Whether it may lead to a state that is a fault by itself, from one that is none (F10).
    pub may_break: bool,
}

impl ActionFact {
    /// Empties all lists, keeping their memory.
    pub fn clear(&mut self) {
        self.lists().into_iter().for_each(Vec::clear);
        (self.may_fail, self.may_break) = (false, false);
    }

    fn lists(&mut self) -> [&mut Vec<u32>; 5] {
        [&mut self.needs, &mut self.enables, &mut self.disables, &mut self.reads, &mut self.writes]
    }
}

/// What is stated of all actions.
#[derive(Clone, Debug, Default)]
pub struct ActionFacts {
    /// For each action the conditions that it needs.
    pub needs: Lists,
    /// For each action the conditions that it may make true.
    pub enables: Lists,
    /// For each action the conditions that it may make false.
    pub disables: Lists,
    /// For each action the variables that it reads.
    pub reads: Lists,
    /// For each action the variables that it writes.
    pub writes: Lists,
    /// For each action whether it may be a fault.
    pub may_fail: Vec<bool>,
    /// For each action whether it may break a state.
    pub may_break: Vec<bool>,
    /// The number of conditions.
    pub conditions: u32,
    /// The number of variables.
    pub variables: u32,
}

impl ActionFacts {
    /// Facts about no action yet, over conditions and variables of these numbers.
    pub fn new(conditions: u32, variables: u32) -> Self {
        ActionFacts { conditions, variables, ..ActionFacts::default() }
    }

    /// Appends what is stated of the next action, whose lists are sorted.
    pub fn push(&mut self, fact: &mut ActionFact) {
        for list in fact.lists() {
            list.sort_unstable();
            list.dedup();
        }
        debug_assert!(fact.needs.last().is_none_or(|&last| last < self.conditions));
        self.needs.push(&fact.needs);
        self.enables.push(&fact.enables);
        self.disables.push(&fact.disables);
        self.reads.push(&fact.reads);
        self.writes.push(&fact.writes);
        self.may_fail.push(fact.may_fail);
        self.may_break.push(fact.may_break);
    }

    /// The number of actions.
    pub fn len(&self) -> usize {
        self.may_fail.len()
    }

    /// Whether there is no action.
    pub fn is_empty(&self) -> bool {
        self.may_fail.is_empty()
    }

    /// Whether one of two actions writes a variable that the other reads or writes.
    pub fn compete(&self, one: Action, other: Action) -> bool {
        let meet = |one: &[u32], other: &[u32]| one.iter().any(|variable| other.binary_search(variable).is_ok());
        let [one, other] = [one, other].map(|action| action.0 as usize);
        let writes = |action| self.writes.row(action);
        meet(writes(one), writes(other))
            || meet(writes(one), self.reads.row(other))
            || meet(writes(other), self.reads.row(one))
    }

    /// The actions that may change whether `action` is enabled.
    pub fn changes_of_enabled(&self, action: Action) -> Vec<(Action, Change)> {
        let needs = self.needs.row(action.0 as usize);
        let meets = |list: &[u32]| list.iter().any(|condition| needs.binary_search(condition).is_ok());
        let mut changes = Vec::new();
        for other in 0..self.len() {
            for (lists, change) in [(&self.enables, Change::Increases), (&self.disables, Change::Decreases)] {
                if meets(lists.row(other)) {
                    changes.push((Action(other as u32), change));
                }
            }
        }
        joined(changes)
    }
}

/// Lists of numbers, contiguous in memory.
#[derive(Clone, Debug)]
pub struct Lists {
    /// Where each list begins, and the end of the last.
    starts: Vec<usize>,
    items: Vec<u32>,
}

impl Default for Lists {
    fn default() -> Self {
        Lists { starts: vec![0], items: Vec::new() }
    }
}

impl Lists {
    /// Appends a list.
    pub fn push(&mut self, list: &[u32]) {
        self.items.extend_from_slice(list);
        self.starts.push(self.items.len());
    }

    /// List number `index`.
    #[inline]
    pub fn row(&self, index: usize) -> &[u32] {
        &self.items[self.starts[index]..self.starts[index + 1]]
    }

    /// The number of lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All numbers, list after list.
    pub fn items(&self) -> &[u32] {
        &self.items
    }

    /// All numbers, to be replaced.
    pub fn items_mut(&mut self) -> &mut [u32] {
        &mut self.items
    }

    /// For each number below `count` the positions in `order` of the lists that contain it, ascending.
    pub fn inverted(&self, count: u32, order: impl Iterator<Item = usize> + Clone) -> Lists {
        let mut starts = vec![0; count as usize + 1];
        for &item in &self.items {
            starts[item as usize + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut items = vec![0; self.items.len()];
        for (position, list) in (0..).zip(order) {
            for &item in self.row(list) {
                let at = &mut next[item as usize];
                items[*at] = position;
                *at += 1;
            }
        }
        Lists { starts, items }
    }
}
