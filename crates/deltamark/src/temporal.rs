//! Formulas of temporal logic, asked of a model.
//!
//! In: formulas, as text or from the files of the Model Checking Contest; a run that explores everything, or a graph
//! that was written before. Out: verdicts, with paths. What stays true: all formulas share one graph, and each distinct
//! atom is evaluated once in each state; a path is replayed in the model before it is shown, and that of a formula of
//! LTL is evaluated on the states of that replay, by definition and without an automaton.
//!
//! ```text
//! text ──────┐                ┌─ atoms    values in a block of states
//! contest ───┴─▶ Questions ───┤
//!                             ├─ record   edges and values of a run ───┬─▶ Kripke ──▶ answer ──▶ verdicts
//!                             └─ offline  the same of a graph in a file ┘
//! ```

pub(crate) mod answer;
pub(crate) mod atoms;
pub(crate) mod contest;
pub(crate) mod fly;
pub(crate) mod offline;
pub(crate) mod record;

use atoms::{Atom, Atoms};
use deltamark_dve::PropertyProcess;
use deltamark_logic::automaton::{Automaton, MAX_LETTERS, Transition};
use deltamark_logic::temporal::{END, Formula, FormulaId, INITIAL, Logic, Pool, Temporal};
use std::convert::Infallible;
use std::sync::Arc;

/// Whether a formula has neither temporal operators nor path quantifiers, and speaks of the current state alone.
pub(crate) fn simple(pool: &Pool, id: FormulaId) -> bool {
    match pool.get(id) {
        Formula::Literal(INITIAL, _) => false,
        Formula::Truth(_) | Formula::Literal(..) => true,
        Formula::And(list) | Formula::Or(list) => list.iter().all(|&one| simple(pool, one)),
        _ => false,
    }
}

/// A formula that is asked.
pub(crate) struct Question {
    pub name: String,
    pub text: String,
    pub logic: Logic,
    /// A state formula that must be true in all initial states.
    pub root: FormulaId,
    /// Instead of that formula, which is over its atoms, an automaton that must accept no path.
    pub automaton: Option<Arc<Automaton>>,
}

/// Formulas that share atoms.
#[derive(Default)]
pub(crate) struct Questions {
    pub atoms: Atoms,
    pub pool: Pool,
    pub list: Vec<Question>,
}

impl Questions {
    /// Adds a formula.
    pub fn add(&mut self, name: String, formula: Temporal) {
        let Temporal { text, logic, pool, root, atoms } = formula;
        let numbers: Vec<u32> = atoms.into_iter().map(|atom| self.atoms.add(Atom::Expression(atom))).collect();
        let copied = self.pool.copy(&pool, root, &mut |to, id| {
            Ok::<_, Infallible>(match *pool.get(id) {
                Formula::Literal(atom, positive) if atom != INITIAL && atom != END => {
                    let atom = to.atom(numbers[atom as usize]);
                    Some(if positive { atom } else { to.not(atom) })
                }
                _ => None,
            })
        });
        let Ok(root) = copied;
        self.list.push(Question { name, text, logic, root, automaton: None });
    }

    /// Adds a path formula that must be true on all paths, with its atoms.
    pub fn add_path(&mut self, name: String, text: String, (pool, path): (&Pool, FormulaId), atoms: Vec<Atom>) {
        let atoms: Vec<u32> = atoms.into_iter().map(|atom| self.atoms.add(atom)).collect();
        let copied = self.pool.copy(pool, path, &mut |to, id| {
            Ok::<_, Infallible>(match *pool.get(id) {
                Formula::Literal(atom, positive) if atom != INITIAL && atom != END => {
                    let atom = to.atom(atoms[atom as usize]);
                    Some(if positive { atom } else { to.not(atom) })
                }
                _ => None,
            })
        });
        let Ok(path) = copied;
        let root = self.pool.all(path);
        self.list.push(Question { name, text, logic: Logic::Ltl, root, automaton: None });
    }

    /// Adds a property process, which must accept no path; or says why it cannot be added: a clause.
    pub fn add_process(&mut self, process: PropertyProcess) -> Result<(), String> {
        let PropertyProcess { name, locations, initial, sets, transitions, guards } = process;
        let most = MAX_LETTERS as usize;
        if guards.len() > most || sets.len() > most {
            return Err(format!("it has more than {most} guards"));
        }
        let count = guards.len() as u32;
        let atoms: Vec<FormulaId> = (0..)
            .zip(guards)
            .map(|(number, guard): (usize, _)| {
                let may_fail = guard.may_fail;
                let name = format!("guard {number} of {name}");
                let atom = self.atoms.add(Atom::Predicate { name, predicate: Box::new(guard), may_fail });
                self.pool.atom(atom)
            })
            .collect();
        let mut states = vec![Vec::new(); locations as usize];
        for (from, to, guard) in transitions {
            let sets = (0..).zip(&sets).filter(|(_, set)| set.contains(&from));
            let accepting = sets.fold(0, |bits, (number, _): (u32, _)| bits | 1 << number);
            states[from as usize].push(Transition { to, positive: 1 << guard, negative: 0, accepting });
        }
        let automaton = Automaton { states, initial, sets: sets.len() as u32, atoms: count };
        let root = self.pool.and(atoms);
        let text = "no path is accepted by this property process".into();
        self.list.push(Question { name, text, logic: Logic::Ltl, root, automaton: Some(Arc::new(automaton)) });
        Ok(())
    }

    /// Whether some formula has the atom `initial`.
    pub fn asks_initial(&self) -> bool {
        self.list.iter().any(|question| self.mentions(question.root, INITIAL))
    }

    /// The atoms of a formula, by their numbers.
    pub fn atoms_of(&self, root: FormulaId) -> Vec<u32> {
        let mut found = self.literals_of(root);
        found.retain(|&atom| atom != INITIAL && atom != END);
        found
    }

    /// The number of distinct parts of a formula.
    pub fn parts_of(&self, root: FormulaId) -> usize {
        let mut count = 0;
        self.each_part(root, &mut |_| count += 1);
        count
    }

    /// Whether a formula has this atom.
    pub fn mentions(&self, root: FormulaId, atom: u32) -> bool {
        self.literals_of(root).contains(&atom)
    }

    fn literals_of(&self, root: FormulaId) -> Vec<u32> {
        let mut found = Vec::new();
        self.each_part(root, &mut |part| {
            if let Formula::Literal(atom, _) = part {
                found.push(*atom);
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Visits each distinct part of a formula.
    fn each_part(&self, root: FormulaId, see: &mut dyn FnMut(&Formula)) {
        let mut waiting = vec![root];
        let mut seen = std::collections::HashSet::new();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            let part = self.pool.get(id);
            see(part);
            match part {
                Formula::Truth(_) | Formula::Literal(..) => {}
                Formula::And(list) | Formula::Or(list) => waiting.extend_from_slice(list),
                Formula::Next(one) | Formula::Exists(one) | Formula::All(one) => waiting.push(*one),
                Formula::Until(one, two) | Formula::Release(one, two) => waiting.extend([*one, *two]),
            }
        }
    }
}
