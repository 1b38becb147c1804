//! The letters of an automaton that reads the states of a model: formulas of single states.
//!
//! In: a formula of LTL over atoms. Out: its negation over letters, and the value of each letter in a block of states,
//! from those of its atoms. What stays true: each maximal part without temporal operators is one letter, and a part and
//! its negation are the same one.

use super::super::Questions;
use super::super::atoms::Atom;
use deltamark_logic::temporal::{END, Formula, FormulaId, INITIAL, Pool};
use std::convert::Infallible;

/// Formulas of single states, numbered.
pub(crate) struct Letters {
    pool: Pool,
    pub list: Vec<FormulaId>,
    /// The atoms that the formula speaks of.
    pub atoms: Vec<usize>,
    pub asks_initial: bool,
    /// Whether some letter asks whether a state has steps.
    pub asks_ends: bool,
}

impl Letters {
    /// The negation of a formula of LTL, over letters.
    pub fn of_negation(questions: &Questions, root: FormulaId) -> (Letters, Pool, FormulaId) {
        let atoms: Vec<usize> = questions.atoms_of(root).into_iter().map(|atom| atom as usize).collect();
        let of_ends = |&atom: &usize| match &questions.atoms.list[atom] {
            Atom::Expression(one) => one.asks_deadlock(),
            Atom::Deadlock => true,
            _ => false,
        };
        let mut letters = Letters {
            pool: questions.pool.clone(),
            list: Vec::new(),
            asks_initial: questions.mentions(root, INITIAL),
            asks_ends: questions.mentions(root, END) || atoms.iter().any(of_ends),
            atoms,
        };
        let path = match *letters.pool.get(root) {
            Formula::All(path) => path,
            _ => root,
        };
        let negation = letters.pool.not(path);
        let (source, mut pool) = (letters.pool.clone(), Pool::new());
        let whole = letters.whole(&source, &mut pool, negation);
        (letters, pool, whole)
    }

    /// The atoms of a formula as letters, in their order.
    pub fn of_atoms(questions: &Questions, root: FormulaId) -> Letters {
        let mut pool = questions.pool.clone();
        let numbers = questions.atoms_of(root);
        let list = numbers.iter().map(|&atom| pool.atom(atom)).collect();
        let atoms = numbers.into_iter().map(|atom| atom as usize).collect();
        Letters { pool, list, atoms, asks_initial: false, asks_ends: false }
    }

    fn letter(&mut self, pool: &mut Pool, id: FormulaId) -> FormulaId {
        if let Formula::Truth(truth) = *self.pool.get(id) {
            return pool.truth(truth);
        }
        let opposite = self.pool.not(id);
        let known = self.list.iter().position(|&one| one == id || one == opposite);
        let number = known.unwrap_or(self.list.len());
        if known.is_none() {
            self.list.push(id);
        }
        let atom = pool.atom(number as u32);
        if self.list[number] == id { atom } else { pool.not(atom) }
    }

    /// A part of the formula, which is in `source`, over letters; `None` if its parts have to be looked at.
    fn part(&mut self, source: &Pool, pool: &mut Pool, id: FormulaId) -> Option<FormulaId> {
        if source.is_state(id) {
            return Some(self.letter(pool, id));
        }
        // All members that speak of one state are one letter.
        let of = source.get(id).clone();
        let (Formula::And(list) | Formula::Or(list)) = &of else { return None };
        let (here, rest): (Vec<_>, Vec<_>) = list.iter().partition(|&&one| source.is_state(one));
        if here.len() < 2 {
            return None;
        }
        let conjunction = matches!(of, Formula::And(_));
        let here = if conjunction { self.pool.and(here) } else { self.pool.or(here) };
        let mut parts = vec![self.letter(pool, here)];
        for one in rest {
            parts.push(self.whole(source, pool, one));
        }
        Some(if conjunction { pool.and(parts) } else { pool.or(parts) })
    }

    fn whole(&mut self, source: &Pool, pool: &mut Pool, id: FormulaId) -> FormulaId {
        let copied = pool.copy(source, id, &mut |pool, part| Ok::<_, Infallible>(self.part(source, pool, part)));
        let Ok(whole) = copied;
        whole
    }

    /// The states of a block in which a letter is true: `all` are its states, `atoms` those in which each atom is.
    pub fn value(&self, letter: usize, all: u64, atoms: &[u64], initial: u64, ends: u64) -> u64 {
        self.truth(self.list[letter], all, &|atom| match atom {
            INITIAL => initial,
            END => ends,
            _ => atoms[atom as usize],
        })
    }

    fn truth(&self, id: FormulaId, all: u64, atom: &dyn Fn(u32) -> u64) -> u64 {
        match self.pool.get(id) {
            Formula::Truth(truth) => all * u64::from(*truth),
            Formula::Literal(number, positive) => all & if *positive { atom(*number) } else { !atom(*number) },
            Formula::And(list) => list.iter().fold(all, |mask, &one| mask & self.truth(one, all, atom)),
            Formula::Or(list) => list.iter().fold(0, |mask, &one| mask | self.truth(one, all, atom)),
            _ => unreachable!("a letter speaks of one state"),
        }
    }
}
