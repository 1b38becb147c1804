//! The spanning tree: for each state its back edge, the parent and the action that leads from it.
//!
//! In: states in the order of their numbers, each with its parent and its action. Out: the back
//! edges of any of them, many at a time. Invariant: following parents ends in a state stored in
//! full.
//!
//! # Layout in memory
//! ```text
//! level order   parents    never decrease: unary, about 2 bits a state (see unary.rs)
//!               actions    packed, as many bits as they need
//!               exceptions number, parent, action: the few edges that are not as the lists say
//! any order     parents    packed: the parent's number and a 0, or
//!                          the place of the state among those kept in full and a 1
//!               actions    packed
//! ```
//! # Edges that change
//! The parent of an edge may change later. In level order that is an exception, and the lists still
//! hold the edge of the first discovery, so a shortest path can be reported. A state inserted out
//! of order (its parent is smaller than the previous one) is an exception too; the lists then
//! repeat the previous parent.
//!
//! # Invariants
//! * I1: there is an edge for each number below `len`.
//! * I2: when the parent of an edge changes, the state is not among the new parent's ancestors.

use crate::integers::packed::Packed;
use crate::integers::unary::Unary;
use deltamark_core::{Action, Budget, Grant, Order, hash::mix};
use std::sync::Arc;

/// The parent of an initial state.
pub(crate) const NONE: u64 = u64::MAX;

/// Back edges.
pub(crate) struct Spanning {
    parents: Parents,
    actions: Packed,
}

enum Parents {
    /// The parent plus one, so that initial states have 0.
    Levels(Unary, Exceptions),
    Any(Packed),
}

/// Where a state comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// From the parent of this number.
    Parent(u64),
    /// It is kept in full at this place (only in [`Order::Any`]).
    Kept(u64),
}

impl Spanning {
    /// No states.
    pub fn new(order: Order, budget: &Arc<Budget>) -> Self {
        let parents = match order {
            Order::Levels => Parents::Levels(Unary::new(budget), Exceptions::new(budget)),
            Order::Any => Parents::Any(Packed::new(budget)),
        };
        Spanning { parents, actions: Packed::new(budget) }
    }

    /// How many states there are.
    pub fn len(&self) -> u64 {
        self.actions.len()
    }

    /// The bytes of parents (with exceptions) and of actions.
    pub fn bytes(&self) -> (u64, u64) {
        let parents = match &self.parents {
            Parents::Levels(unary, exceptions) => unary.bytes() + exceptions.held_bytes(),
            Parents::Any(parents) => parents.bytes(),
        };
        (parents, self.actions.bytes())
    }

    /// How many edges are exceptions.
    pub fn exceptions(&self) -> u64 {
        match &self.parents {
            Parents::Levels(_, exceptions) => exceptions.len as u64,
            Parents::Any(_) => 0,
        }
    }

    /// Makes room for `more` states with parents below `len`, `most_parent` the largest, and
    /// actions of at most `most_action`; in any order also for places among those kept in full.
    #[must_use]
    pub fn reserve(&mut self, more: u64, most_parent: u64, most_action: Action) -> bool {
        let parents = match &mut self.parents {
            Parents::Levels(unary, exceptions) => unary.reserve(more, most_parent + 1) && exceptions.reserve(1),
            Parents::Any(parents) => parents.reserve(more, 2 * most_parent + 1),
        };
        parents && self.actions.reserve(more, most_action.0.into())
    }

    /// Appends a state for which room was [made](Self::reserve): one at a time if it comes out of
    /// order, because an exception needs room as well.
    pub fn push(&mut self, from: From, action: Action) {
        let number = self.actions.len();
        self.actions.push(action.0.into());
        match (&mut self.parents, from) {
            (Parents::Levels(unary, exceptions), From::Parent(parent)) => {
                let value = parent.wrapping_add(1);
                if value < unary.last() {
                    unary.push(unary.last());
                    exceptions.put(Exception { number, parent, action: action.0, first: true });
                } else {
                    unary.push(value);
                }
            }
            (Parents::Any(parents), From::Parent(parent)) => parents.push(parent << 1),
            (Parents::Any(parents), From::Kept(place)) => parents.push(place << 1 | 1),
            (Parents::Levels(..), From::Kept(_)) => unreachable!("in level order whole levels are kept"),
        }
    }

    /// Where a state comes from now, and by which action.
    #[inline(always)]
    pub fn edge(&self, number: u64) -> (From, Action) {
        match &self.parents {
            Parents::Levels(unary, exceptions) => {
                if exceptions.len > 0
                    && let Some(exception) = exceptions.get(number)
                {
                    return (From::Parent(exception.parent), Action(exception.action));
                }
                (From::Parent(unary.get(number).wrapping_sub(1)), self.action(number))
            }
            Parents::Any(parents) => {
                let value = parents.get(number);
                let from = if value & 1 == 1 { From::Kept(value >> 1) } else { From::Parent(value >> 1) };
                (from, self.action(number))
            }
        }
    }

    #[inline(always)]
    fn action(&self, number: u64) -> Action {
        Action(self.actions.get(number) as u32)
    }

    /// The edge by which a state was found first, in level order. The parent of an initial state
    /// is [`NONE`], and its action its number among them.
    pub fn first_edge(&self, number: u64) -> Option<(u64, Action)> {
        let Parents::Levels(unary, exceptions) = &self.parents else { return None };
        match exceptions.get(number) {
            Some(exception) if exception.first => Some((exception.parent, Action(exception.action))),
            _ => Some((unary.get(number).wrapping_sub(1), self.action(number))),
        }
    }

    /// Appends the parents and actions of states that have a parent.
    pub fn edges(&self, numbers: &[u64], parents: &mut Vec<u64>, actions: &mut Vec<Action>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has these instructions.
            unsafe { self.edges_popcnt(numbers, parents, actions) };
            return;
        }
        self.edges_of(numbers, parents, actions);
    }

    /// [`edges`](Self::edges) with the instruction that counts ones.
    ///
    /// # Safety
    /// The processor has it.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "popcnt")]
    unsafe fn edges_popcnt(&self, numbers: &[u64], parents: &mut Vec<u64>, actions: &mut Vec<Action>) {
        self.edges_of(numbers, parents, actions);
    }

    #[inline(always)]
    fn edges_of(&self, numbers: &[u64], parents: &mut Vec<u64>, actions: &mut Vec<Action>) {
        // A few wait for memory no longer than it takes to ask for it beforehand.
        let ahead = if numbers.len() < 4 { &[] } else { numbers };
        for &number in ahead {
            self.actions.prefetch(number);
            match &self.parents {
                Parents::Levels(unary, _) => unary.prefetch(number),
                Parents::Any(parents) => parents.prefetch(number),
            }
        }
        for &number in numbers {
            let (from, action) = self.edge(number);
            let From::Parent(parent) = from else { unreachable!("a walk ends where a state is kept in full") };
            parents.push(parent);
            actions.push(action);
        }
    }

    /// Points the edge of a state to another parent (I2). `false` means that the budget has no
    /// room for that, or that the edge is as it came out of order, and stays.
    #[must_use]
    pub fn repoint(&mut self, number: u64, parent: u64, action: Action) -> bool {
        match &mut self.parents {
            Parents::Levels(_, exceptions) => {
                if exceptions.get(number).is_some_and(|exception| exception.first) || !exceptions.reserve(1) {
                    return false;
                }
                exceptions.put(Exception { number, parent, action: action.0, first: false });
                true
            }
            // The action first: it may not fit, and then nothing has changed; one that is wider
            // than needed does no harm.
            Parents::Any(parents) => {
                let old = self.actions.get(number);
                if !self.actions.set(number, action.0.into()) {
                    return false;
                }
                let granted = parents.set(number, parent << 1);
                if !granted {
                    let restored = self.actions.set(number, old);
                    debug_assert!(restored, "what was there fits");
                }
                granted
            }
        }
    }
}

/// An edge that is not as the lists say.
#[derive(Clone, Copy)]
pub(crate) struct Exception {
    /// The state.
    pub number: u64,
    /// Its parent.
    pub parent: u64,
    /// The action that leads to it.
    pub action: u32,
    /// Whether it is the edge by which the state was found first.
    pub first: bool,
}

/// Few edges, in an open-addressing table.
pub(crate) struct Exceptions {
    slots: Box<[Option<Exception>]>,
    len: usize,
    grant: Grant,
}

impl Exceptions {
    /// None.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Exceptions { slots: Box::new([]), len: 0, grant: Grant::new(budget) }
    }

    /// The bytes it holds.
    pub fn held_bytes(&self) -> u64 {
        self.grant.bytes()
    }

    fn bytes(slots: usize) -> u64 {
        (slots * size_of::<Option<Exception>>()) as u64
    }

    /// Makes room for `more`.
    #[must_use]
    pub fn reserve(&mut self, more: usize) -> bool {
        if (self.len + more) * 4 <= self.slots.len() * 3 {
            return true;
        }
        let slots = ((self.len + more) * 4 / 3 + 1).next_power_of_two().max(8);
        if !self.grant.ask(Self::bytes(slots)) {
            return false;
        }
        let old = std::mem::replace(&mut self.slots, vec![None; slots].into_boxed_slice());
        self.len = 0;
        for exception in old.iter().flatten() {
            self.put(*exception);
        }
        self.grant.give_back(Self::bytes(old.len()));
        true
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = mix(number) as usize & mask;
        while self.slots[at].is_some_and(|held| held.number != number) {
            at = (at + 1) & mask;
        }
        at
    }

    /// Enters one for which room was [made](Self::reserve), in place of one of the same number.
    pub fn put(&mut self, exception: Exception) {
        let at = self.slot(exception.number);
        self.len += usize::from(self.slots[at].is_none());
        self.slots[at] = Some(exception);
    }

    /// The exception of this number.
    #[inline]
    pub fn get(&self, number: u64) -> Option<Exception> {
        if self.len == 0 { None } else { self.slots[self.slot(number)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(from: From) -> u64 {
        match from {
            From::Parent(parent) => parent,
            From::Kept(place) => panic!("kept at {place}"),
        }
    }

    #[test]
    fn edges_in_level_order_come_back_also_when_some_come_out_of_order_and_some_change() {
        let count: u64 = if cfg!(miri) { 700 } else { 20_000 };
        let budget = Arc::new(Budget::unlimited());
        let mut tree = Spanning::new(Order::Levels, &budget);
        let mut model: Vec<(u64, Action)> = Vec::new();
        let mut first: Vec<(u64, Action)> = Vec::new();
        let mut last = 0;
        for number in 0..count {
            let action = Action((mix(number) % 70) as u32);
            last = (last + mix(!number) % 3).min(number.saturating_sub(1));
            // First initial states; now and then a parent that is smaller than the one before.
            let parent = match number {
                0..3 => NONE,
                _ if number > 100 && number % 97 == 0 => last / 2,
                _ => last,
            };
            assert!(tree.reserve(1, if parent == NONE { 0 } else { parent }, action));
            tree.push(From::Parent(parent), action);
            model.push((parent, action));
            first.push((parent, action));
            if number > 100 && number % 31 == 0 {
                let changed = (mix(number) % number).max(3);
                if tree.repoint(changed, number, Action(500)) {
                    model[changed as usize] = (number, Action(500));
                }
            }
        }
        let numbers: Vec<u64> = (0..count).collect();
        let (mut parents, mut actions) = (Vec::new(), Vec::new());
        tree.edges(&numbers, &mut parents, &mut actions);
        let edges: Vec<(u64, Action)> = parents.into_iter().zip(actions).collect();
        assert_eq!(edges, model);
        assert!((0..count).all(|number| tree.first_edge(number) == Some(first[number as usize])));
        assert!(tree.exceptions() > count / 40);
        assert_eq!(tree.bytes().0 + tree.bytes().1, budget.used());
    }

    #[test]
    fn edges_in_any_order_come_back_and_change() {
        let count: u64 = if cfg!(miri) { 500 } else { 10_000 };
        let budget = Arc::new(Budget::unlimited());
        let mut tree = Spanning::new(Order::Any, &budget);
        assert!(tree.reserve(1, 0, Action(0)));
        tree.push(From::Kept(0), Action(0));
        for number in 1..count {
            let from = if number % 10 == 0 { From::Kept(number / 10) } else { From::Parent(mix(number) % number) };
            assert!(tree.reserve(1, number, Action(number as u32 % 9)));
            tree.push(from, Action(number as u32 % 9));
        }
        for number in 1..count {
            let from = if number % 10 == 0 { From::Kept(number / 10) } else { From::Parent(mix(number) % number) };
            assert_eq!(tree.edge(number), (from, Action(number as u32 % 9)));
        }
        assert!(tree.repoint(234, count - 1, Action(1 << 20)));
        assert_eq!(tree.edge(234), (From::Parent(count - 1), Action(1 << 20)));
        assert_eq!(parent(tree.edge(233).0), mix(233) % 233);
        assert_eq!(tree.len(), count);
        assert_eq!(tree.bytes().0 + tree.bytes().1, budget.used());
    }
}
