//! Path formulas as automata whose letters are sets of states.
//!
//! In: a path formula over state formulas. Out: an automaton, and for each of its guards the states in which it may be
//! passed. What stays true: each maximal part that is a state formula is one letter; letters that are true in all or in
//! no state are constants before the translation, and equal or complementary ones are one.

use super::sets::{Evaluator, StateSet};
use crate::automaton::{Automaton, NoAutomaton};
use crate::temporal::{Formula, FormulaId, Pool};
use deltamark_core::Stop;
use std::collections::HashMap;

/// An automaton over a graph.
pub(super) struct Translated {
    pub automaton: Automaton,
    /// The distinct guards, and for each transition of each state its guard.
    pub guards: Guards,
}

/// Where transitions can be taken.
pub(super) struct Guards {
    pub sets: Vec<StateSet>,
    pub of: Vec<Vec<u32>>,
}

/// The state formulas of a path formula.
struct Letters<'e, 'k> {
    evaluator: &'e mut Evaluator<'k>,
    sets: Vec<StateSet>,
}

impl Letters<'_, '_> {
    /// The formula of a set of states.
    fn letter(&mut self, pool: &mut Pool, set: StateSet) -> Result<FormulaId, Stop> {
        let StateSet::Some(new) = &set else { return Ok(pool.truth(matches!(set, StateSet::All))) };
        for (number, known) in self.sets.iter().enumerate() {
            let StateSet::Some(known) = known else { continue };
            if known.words() == new.words() {
                return Ok(pool.atom(number as u32));
            }
            // Complements differ in every word, so the comparison ends early where they are none.
            let words = known.words().len() - 1;
            let differ = known.words()[..words].iter().zip(new.words()).all(|(one, two)| *one == !two);
            if differ && known.count() + new.count() == known.len() && {
                let mut rest = known.try_clone().ok_or(Stop::Memory)?;
                rest.unite(new);
                rest.has_all()
            } {
                let atom = pool.atom(number as u32);
                return Ok(pool.not(atom));
            }
        }
        self.sets.push(set);
        Ok(pool.atom(self.sets.len() as u32 - 1))
    }

    /// A part of the formula, which is in `source`, over letters; `None` if its parts have to be looked at.
    fn part(&mut self, source: &Pool, pool: &mut Pool, id: FormulaId) -> Result<Option<FormulaId>, Stop> {
        if source.is_state(id) {
            let set = self.evaluator.states(id)?;
            return self.letter(pool, set).map(Some);
        }
        // All members that speak of one state are one letter.
        let of = source.get(id).clone();
        let (Formula::And(list) | Formula::Or(list)) = &of else { return Ok(None) };
        let (here, rest): (Vec<_>, Vec<_>) = list.iter().partition(|&&one| source.is_state(one));
        if here.len() < 2 {
            return Ok(None);
        }
        let conjunction = matches!(of, Formula::And(_));
        let inner = &mut self.evaluator.pool;
        let here = if conjunction { inner.and(here) } else { inner.or(here) };
        let set = self.evaluator.states(here)?;
        let mut parts = vec![self.letter(pool, set)?];
        for one in rest {
            parts.push(self.whole(source, pool, one)?);
        }
        Ok(Some(if conjunction { pool.and(parts) } else { pool.or(parts) }))
    }

    fn whole(&mut self, source: &Pool, pool: &mut Pool, id: FormulaId) -> Result<FormulaId, Stop> {
        pool.copy(source, id, &mut |pool, part| self.part(source, pool, part))
    }
}

impl Evaluator<'_> {
    /// The automaton of a path formula.
    pub(super) fn translate(&mut self, id: FormulaId) -> Result<Translated, Stop> {
        let control = self.control;
        let mut pool = Pool::new();
        let source = self.pool.clone();
        let mut letters = Letters { evaluator: self, sets: Vec::new() };
        let formula = letters.whole(&source, &mut pool, id)?;
        let sets = letters.sets;
        let automaton =
            Automaton::new(&mut pool, formula, sets.len() as u32, control).map_err(|error| match error {
                NoAutomaton::Stopped(stop) => stop,
                NoAutomaton::TooLarge => Stop::Count,
            })?;
        let mut guards = Guards { sets: Vec::new(), of: Vec::new() };
        let mut numbers: HashMap<(u64, u64), u32> = HashMap::new();
        for row in &automaton.states {
            let mut of = Vec::with_capacity(row.len());
            for one in row {
                let guard = (one.positive, one.negative);
                let number = match numbers.get(&guard) {
                    Some(&known) => known,
                    None => {
                        let mut all = StateSet::All;
                        for (letter, set) in sets.iter().enumerate() {
                            if guard.0 >> letter & 1 == 1 {
                                all = self.both(&all, set)?;
                            }
                            if guard.1 >> letter & 1 == 1 {
                                let not = self.complement(set)?;
                                all = self.both(&all, &not)?;
                            }
                        }
                        guards.sets.push(all);
                        numbers.insert(guard, guards.sets.len() as u32 - 1);
                        guards.sets.len() as u32 - 1
                    }
                };
                of.push(number);
            }
            guards.of.push(of);
        }
        Ok(Translated { automaton, guards })
    }
}
