//! Paths that show why a formula is true or false.
//!
//! In: a formula whose value in the initial states is known. Out: a path by numbers, or a lasso, as far as one path
//! goes: into the operand of an operator that one path decides (`E`, or the negation of `A`), and from its end on into
//! that of the next. What stays true: of a negated formula of LTL it is a path that satisfies the negation, the whole
//! of it.

use super::letters::Translated;
use super::product::{Lasso, Product, follow};
use super::sets::{Evaluator, StateSet};
use super::vector::Counted;
use super::{Pulse, make_room, set};
use crate::temporal::{Formula, FormulaId};
use deltamark_core::Stop;

/// A path by numbers of states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedPath {
    /// The states, from an initial one on.
    pub states: Vec<u32>,
    /// The place of the state to which an edge leads back from the last one, if it is a lasso.
    pub back: Option<usize>,
}

impl Evaluator<'_> {
    /// A path that satisfies a path formula from an initial state, as a whole: a lasso, or a path into a state without
    /// edges.
    pub fn lasso(&mut self, path: FormulaId) -> Result<Option<NumberedPath>, Stop> {
        let starts = self.kripke.initial.clone();
        Ok(self.lasso_from(path, &starts)?.map(|Lasso { states, back }| NumberedPath { states, back }))
    }

    /// A path on which a formula of LTL is false, which is a path formula under `A`, if it has temporal operators at all.
    pub fn counterexample(&mut self, root: FormulaId) -> Result<Option<NumberedPath>, Stop> {
        let path = match *self.pool.get(root) {
            Formula::All(path) => path,
            _ => root,
        };
        let negation = self.pool.not(path);
        self.lasso(negation)
    }

    /// A shortest path to a state.
    pub fn path_to(&self, state: u32) -> Result<NumberedPath, Stop> {
        let mut only = set(self.kripke.states(), self.control)?;
        only.insert(state.into());
        let goals = StateSet::of(only);
        for &first in &self.kripke.initial {
            let mut path = NumberedPath { states: vec![first], back: None };
            if self.go(&StateSet::All, &goals, &mut path)? {
                return Ok(path);
            }
        }
        unreachable!("every state can be reached from an initial one")
    }

    fn lasso_from(&mut self, path: FormulaId, starts: &[u32]) -> Result<Option<Lasso>, Stop> {
        let Translated { automaton, guards } = self.translate(path)?;
        Product::new(&self.kripke.edges, &automaton, &guards).lasso(starts, self.control)
    }

    /// A path that shows why a state formula has its value in the initial states; `None` if no path shows it.
    pub fn witness(&mut self, id: FormulaId, holds: bool) -> Result<Option<NumberedPath>, Stop> {
        let shown = if holds { id } else { self.pool.not(id) };
        for state in self.kripke.initial.clone() {
            if !self.is_true(shown, state)? {
                continue;
            }
            let mut path = NumberedPath { states: vec![state], back: None };
            if self.show_state(shown, &mut path)? {
                return Ok(Some(path));
            }
            return Ok(None);
        }
        Ok(None)
    }

    /// Extends a path from its last state, where a state formula is true; returns whether that is shown by a path.
    fn show_state(&mut self, id: FormulaId, path: &mut NumberedPath) -> Result<bool, Stop> {
        let last = path.states[path.states.len() - 1];
        match self.pool.get(id).clone() {
            Formula::Exists(inner) => self.show(inner, path),
            Formula::And(list) | Formula::Or(list) => {
                for one in list {
                    if self.is_true(one, last)? && self.show_state(one, path)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Extends a path from its last state, from which some path satisfies a formula, by such a path.
    fn show(&mut self, id: FormulaId, path: &mut NumberedPath) -> Result<bool, Stop> {
        if self.pool.is_state(id) {
            return self.show_state(id, path);
        }
        let last = path.states[path.states.len() - 1];
        match self.pool.get(id).clone() {
            Formula::Or(list) => {
                for one in list {
                    if self.exists(one)?.contains(last) {
                        return self.show(one, path);
                    }
                }
                Ok(false)
            }
            Formula::And(list) => {
                let (_, rest) = self.parted(&list);
                match rest[..] {
                    [one] => self.show(one, path),
                    _ => {
                        let rest = self.pool.and(rest);
                        self.show_lasso(rest, path)
                    }
                }
            }
            Formula::Next(inner) => {
                let goals = self.exists(inner)?;
                let Some(&next) = self.kripke.edges.of(last).iter().find(|&&next| goals.contains(next)) else {
                    return Ok(false);
                };
                path.states.push(next);
                self.show(inner, path)?;
                Ok(true)
            }
            Formula::Until(through, goal) if self.pool.is_state(through) => {
                let goals = self.exists(goal)?;
                let through = self.states(through)?;
                let there = self.go(&through, &goals, path)?;
                debug_assert!(there, "what is shown is true");
                self.show(goal, path)?;
                Ok(true)
            }
            Formula::Release(end, inside) if self.pool.is_state(end) && self.pool.is_state(inside) => {
                let inside = self.states(inside)?;
                let ends = self.states(end)?;
                let ends = self.both(&ends, &inside)?;
                if self.go(&inside, &ends, path)? {
                    return Ok(true);
                }
                let forever = self.always(&inside)?;
                path.back = follow(&self.kripke.edges, &forever, &mut path.states, self.control)?;
                Ok(true)
            }
            _ => self.show_lasso(id, path),
        }
    }

    fn show_lasso(&mut self, id: FormulaId, path: &mut NumberedPath) -> Result<bool, Stop> {
        let before = path.states.len() - 1;
        let last = path.states[before];
        let Some(Lasso { states, back }) = self.lasso_from(id, &[last])? else { return Ok(false) };
        make_room(&mut path.states, states.len(), self.control)?;
        path.states.extend_from_slice(&states[1..]);
        path.back = back.map(|back| before + back);
        Ok(true)
    }

    /// Extends a path by a shortest one through a set to another, if there is one.
    fn go(&self, through: &StateSet, goals: &StateSet, path: &mut NumberedPath) -> Result<bool, Stop> {
        let first = path.states[path.states.len() - 1];
        if goals.contains(first) {
            return Ok(true);
        }
        let (edges, control) = (&self.kripke.edges, self.control);
        // Of each state the one before it, counted from 1.
        let mut before: Counted<u32> = Counted::zeroed(edges.states() as usize, &control.budget)?;
        let mut seen: Counted<u32> = Counted::new(&control.budget);
        seen.push(first)?;
        before[first as usize] = first + 1;
        let (mut next, mut pulse) = (0, Pulse::new(control));
        while let Some(&state) = seen.get(next) {
            pulse.beat()?;
            next += 1;
            for &target in edges.of(state) {
                if before[target as usize] != 0 {
                    continue;
                }
                before[target as usize] = state + 1;
                if goals.contains(target) {
                    let (begin, mut at) = (path.states.len(), target);
                    while at != first {
                        make_room(&mut path.states, 1, control)?;
                        path.states.push(at);
                        at = before[at as usize] - 1;
                    }
                    path.states[begin..].reverse();
                    return Ok(true);
                }
                if through.contains(target) {
                    seen.push(target)?;
                }
            }
        }
        Ok(false)
    }
}
