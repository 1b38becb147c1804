//! Formulas of which only the value in the initial states is needed.
//!
//! In: a formula. Out: whether it is true in all initial states. What stays true: the search goes forwards from the
//! initial states, so it sees what they lead to and ends at the first state that decides; only what is below a second
//! temporal operator is evaluated as a set ([`super::sets`]), and a set that is known already is looked up.

use super::letters::Translated;
use super::product::Product;
use super::sets::{Evaluator, StateSet};
use super::vector::Counted;
use super::{Pulse, set};
use crate::temporal::{Formula, FormulaId};
use deltamark_core::{BitSet, Stop};

impl Evaluator<'_> {
    /// Whether a state formula is true in all initial states.
    pub fn holds(&mut self, id: FormulaId) -> Result<bool, Stop> {
        for state in self.kripke.initial.clone() {
            if !self.is_true(id, state)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a state formula is true in a state.
    pub(super) fn is_true(&mut self, id: FormulaId, state: u32) -> Result<bool, Stop> {
        match self.pool.get(id).clone() {
            Formula::And(list) => {
                for one in self.cheapest_first(&list) {
                    if !self.is_true(one, state)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Formula::Or(list) => {
                for one in self.cheapest_first(&list) {
                    if self.is_true(one, state)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Formula::Exists(path) => self.exists_from(path, &[state]),
            Formula::All(path) => {
                let negation = self.pool.not(path);
                Ok(!self.exists_from(negation, &[state])?)
            }
            _ => Ok(self.states(id)?.contains(state)),
        }
    }

    /// Whether some path from one of these states satisfies a formula.
    fn exists_from(&mut self, id: FormulaId, starts: &[u32]) -> Result<bool, Stop> {
        if self.is_simple(id) || self.is_known(id) || starts.len() > self.kripke.states() as usize / 8 {
            let set = self.exists(id)?;
            return Ok(starts.iter().any(|&start| set.contains(start)));
        }
        match self.pool.get(id).clone() {
            Formula::Or(list) => {
                for one in self.cheapest_first(&list) {
                    if self.exists_from(one, starts)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Formula::And(list) if !self.pool.is_state(id) => {
                let (here, rest) = self.parted(&list);
                let mut kept = Vec::new();
                for &start in starts {
                    if self.is_true(here, start)? {
                        kept.push(start);
                    }
                }
                match rest[..] {
                    _ if kept.is_empty() => Ok(false),
                    [one] => self.exists_from(one, &kept),
                    _ => {
                        let rest = self.pool.and(rest);
                        self.accepted_from(rest, &kept)
                    }
                }
            }
            Formula::Next(inner) => {
                let mut targets: Vec<u32> = Vec::new();
                for &start in starts {
                    match self.kripke.edges.of(start) {
                        [] => targets.push(start),
                        row => targets.extend(row),
                    }
                }
                targets.sort_unstable();
                targets.dedup();
                self.exists_from(inner, &targets)
            }
            Formula::Until(through, goal) if self.pool.is_state(through) => {
                let goals = self.exists(goal)?;
                let through = self.states(through)?;
                self.leads(starts, &through, &goals)
            }
            Formula::Release(end, inside) if self.pool.is_state(end) && self.pool.is_state(inside) => {
                let inside = self.states(inside)?;
                let ends = self.states(end)?;
                let ends = self.both(&ends, &inside)?;
                Ok(self.leads(starts, &inside, &ends)? || self.stays(starts, &inside)?)
            }
            Formula::Until(..) | Formula::Release(..) => self.accepted_from(id, starts),
            _ => {
                for &start in starts {
                    if self.is_true(id, start)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Whether a formula has no temporal operator.
    fn is_simple(&self, id: FormulaId) -> bool {
        match self.pool.get(id) {
            Formula::Truth(_) | Formula::Literal(..) => true,
            Formula::And(list) | Formula::Or(list) => list.iter().all(|&one| self.is_simple(one)),
            _ => false,
        }
    }

    fn accepted_from(&mut self, id: FormulaId, starts: &[u32]) -> Result<bool, Stop> {
        let Translated { automaton, guards } = self.translate(id)?;
        Product::new(&self.kripke.edges, &automaton, &guards).accepts_from(starts, self.control)
    }

    /// Whether a path through states of one set leads from one of these states to one of the other.
    fn leads(&self, starts: &[u32], through: &StateSet, goals: &StateSet) -> Result<bool, Stop> {
        if matches!(goals, StateSet::None) {
            return Ok(false);
        }
        if starts.iter().any(|&start| goals.contains(start)) {
            return Ok(true);
        }
        // Every state can be reached from the initial ones.
        if matches!(through, StateSet::All) && self.kripke.initial.iter().all(|first| starts.contains(first)) {
            return Ok(true);
        }
        let edges = &self.kripke.edges;
        let mut open = self.unseen(through)?;
        let mut waiting: Counted<u32> = Counted::new(&self.control.budget);
        for &start in starts.iter().filter(|&&start| through.contains(start)) {
            open.remove(start.into());
            waiting.push(start)?;
        }
        let mut pulse = Pulse::new(self.control);
        while let Some(state) = waiting.pop() {
            pulse.beat()?;
            for &target in edges.of(state) {
                if goals.contains(target) {
                    return Ok(true);
                }
                if open.contains(target.into()) {
                    open.remove(target.into());
                    waiting.push(target)?;
                }
            }
        }
        Ok(false)
    }

    /// Whether some path from one of these states stays inside a set for ever, or until it ends.
    fn stays(&self, starts: &[u32], inside: &StateSet) -> Result<bool, Stop> {
        if !matches!(inside, StateSet::Some(_)) {
            return Ok(matches!(inside, StateSet::All));
        }
        let edges = &self.kripke.edges;
        let mut open = self.unseen(inside)?;
        // The states of the current path: an edge to one of them closes a cycle.
        let mut current = set(self.kripke.states(), self.control)?;
        let mut calls: Counted<(u32, u32)> = Counted::new(&self.control.budget);
        let mut pulse = Pulse::new(self.control);
        for &start in starts.iter().filter(|&&start| inside.contains(start)) {
            if !open.contains(start.into()) {
                continue;
            }
            let mut next = Some(start);
            loop {
                pulse.beat()?;
                if let Some(state) = next.take() {
                    if edges.of(state).is_empty() {
                        return Ok(true);
                    }
                    open.remove(state.into());
                    current.insert(state.into());
                    calls.push((state, 0))?;
                }
                let Some(call) = calls.last_mut() else { break };
                let (state, row) = (call.0, edges.of(call.0));
                while let Some(&target) = row.get(call.1 as usize) {
                    call.1 += 1;
                    if current.contains(target.into()) {
                        return Ok(true);
                    }
                    if open.contains(target.into()) {
                        next = Some(target);
                        break;
                    }
                }
                if next.is_none() {
                    current.remove(state.into());
                    calls.pop();
                }
            }
        }
        Ok(false)
    }

    /// A set of states that are still to be seen.
    fn unseen(&self, states: &StateSet) -> Result<BitSet, Stop> {
        if let StateSet::Some(states) = states {
            return states.try_clone().ok_or(Stop::Memory);
        }
        let mut all = set(self.kripke.states(), self.control)?;
        if matches!(states, StateSet::All) {
            all.fill();
        }
        Ok(all)
    }
}
