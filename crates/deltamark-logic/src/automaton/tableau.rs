//! From formulas to automata: the tableau.
//!
//! J.-M. Couvreur, *On-the-fly Verification of Linear Temporal Logic*, FM 1999. A state is a formula that is still to
//! be fulfilled; its transitions are the cubes of the formula unfolded by one step. An until that is postponed is
//! *promised* by the transition; there is one acceptance set for each until, of the transitions that do not promise it:
//! a run that promises an until from some point on for ever is not accepting.
//!
//! States are sets of formulas and are *not* simplified: `a R X F b` implies `F b`, but to drop `F b` from the set
//! `{a R X F b, F b}` would drop its promise with it, and the run that stays there for ever would be accepting although
//! `b` never comes.
//!
//! In: a formula. Out: an automaton, not reduced. What stays true: the transitions of a formula `f` are a disjunction
//! equivalent to `f`, each a cube of literals and a conjunction of formulas from the next state on.

use super::{Automaton, MAX_LETTERS, NoAutomaton, Transition};
use crate::temporal::{Formula, FormulaId, Pool};
use deltamark_core::{Control, Stop};
use std::collections::HashMap;

/// A disjunct of a formula unfolded by one step.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unfolded {
    positive: u64,
    negative: u64,
    promised: u64,
    /// What must hold from the next state on; sorted.
    next: Vec<FormulaId>,
}

impl Unfolded {
    /// Both, if they do not contradict each other.
    fn and(&self, other: &Unfolded) -> Option<Unfolded> {
        let (positive, negative) = (self.positive | other.positive, self.negative | other.negative);
        if positive & negative != 0 {
            return None;
        }
        let mut next = [&self.next[..], &other.next[..]].concat();
        next.sort_unstable();
        next.dedup();
        Some(Unfolded { positive, negative, promised: self.promised | other.promised, next })
    }

    /// Whether it demands no more than `other`.
    fn is_weaker(&self, other: &Unfolded) -> bool {
        self.positive & !other.positive == 0
            && self.negative & !other.negative == 0
            && self.promised & !other.promised == 0
            && self.next.iter().all(|one| other.next.binary_search(one).is_ok())
    }
}

/// The most disjuncts of one formula: with more it is too large.
const MOST: usize = 1 << 14;

struct Tableau<'a> {
    pool: &'a mut Pool,
    control: &'a Control,
    unfolded: HashMap<FormulaId, Vec<Unfolded>>,
    untils: HashMap<FormulaId, u32>,
    atoms: u32,
}

/// The automaton of a formula over atoms `0..atoms`, or of its first `most` states.
pub(super) fn automaton(
    pool: &mut Pool,
    formula: FormulaId,
    atoms: u32,
    most: usize,
    control: &Control,
) -> Result<Automaton, NoAutomaton> {
    if atoms > MAX_LETTERS {
        return Err(NoAutomaton::TooLarge);
    }
    let mut tableau = Tableau { pool, control, unfolded: HashMap::new(), untils: HashMap::new(), atoms };
    let initial = tableau.parts(formula);
    let mut numbers: HashMap<Vec<FormulaId>, u32> = HashMap::from([(initial.clone(), 0)]);
    let mut order = vec![initial];
    let mut states: Vec<Vec<Transition>> = Vec::new();
    let mut granted = Granted { control, bytes: 0 };
    while states.len() < order.len().min(most) {
        control.ask()?;
        let unfolded = tableau.unfold_all(&order[states.len()])?;
        granted.more((unfolded.len() * size_of::<Transition>() + 64) as u64)?;
        let mut row = Vec::with_capacity(unfolded.len());
        for one in unfolded {
            let Unfolded { positive, negative, promised, next } = one;
            let to = match numbers.get(&next) {
                Some(&known) => known,
                None => {
                    granted.more((next.len() * 8 + 128) as u64)?;
                    numbers.insert(next.clone(), order.len() as u32);
                    order.push(next);
                    order.len() as u32 - 1
                }
            };
            // Promises for now; the sets are known when all untils are.
            row.push(Transition { to, positive, negative, accepting: promised });
        }
        joined(&mut row);
        states.push(row);
    }
    let sets = tableau.untils.len() as u32;
    let mut automaton = Automaton { states, initial: 0, sets, atoms };
    let all = automaton.all_sets();
    automaton.states.iter_mut().flatten().for_each(|one| one.accepting = all & !one.accepting);
    Ok(automaton)
}

/// Bytes that are given back at the end: the automaton is small beside what it is used for.
struct Granted<'a> {
    control: &'a Control,
    bytes: u64,
}

impl Granted<'_> {
    fn more(&mut self, bytes: u64) -> Result<(), Stop> {
        if !self.control.budget.request(bytes) {
            return Err(Stop::Memory);
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        self.control.budget.release(self.bytes);
    }
}

/// Joins transitions that differ in the sign of one atom, and drops those that others cover.
fn joined(row: &mut Vec<Transition>) {
    row.sort_unstable();
    row.dedup();
    let mut changed = row.len() <= 200;
    while changed {
        changed = false;
        'search: for one in 0..row.len() {
            for two in one + 1..row.len() {
                let (a, b) = (row[one], row[two]);
                if a.to != b.to || a.accepting != b.accepting {
                    continue;
                }
                let differ = (a.positive & b.negative) | (a.negative & b.positive);
                let same = |x: u64, y: u64| x & !differ == y & !differ;
                if differ.count_ones() == 1 && same(a.positive, b.positive) && same(a.negative, b.negative) {
                    row[one].positive &= !differ;
                    row[one].negative &= !differ;
                    row.swap_remove(two);
                    changed = true;
                    break 'search;
                }
                if a.covers(&b) || b.covers(&a) {
                    let drop = if a.covers(&b) { two } else { one };
                    row.swap_remove(drop);
                    changed = true;
                    break 'search;
                }
            }
        }
    }
}

impl Tableau<'_> {
    /// The formulas of which this one is the conjunction.
    fn parts(&self, id: FormulaId) -> Vec<FormulaId> {
        match self.pool.get(id) {
            Formula::And(list) => list.to_vec(),
            Formula::Truth(true) => Vec::new(),
            _ => vec![id],
        }
    }

    /// A conjunction, unfolded by one step.
    fn unfold_all(&mut self, list: &[FormulaId]) -> Result<Vec<Unfolded>, NoAutomaton> {
        let mut all = vec![Unfolded { positive: 0, negative: 0, promised: 0, next: Vec::new() }];
        for &part in list {
            let part = self.unfold(part)?;
            all = self.both(&all, &part)?;
        }
        Ok(all)
    }

    /// The formula as a disjunction, unfolded by one step.
    fn unfold(&mut self, id: FormulaId) -> Result<Vec<Unfolded>, NoAutomaton> {
        if let Some(known) = self.unfolded.get(&id) {
            return Ok(known.clone());
        }
        let empty = Unfolded { positive: 0, negative: 0, promised: 0, next: Vec::new() };
        let found = match self.pool.get(id).clone() {
            Formula::Truth(true) => vec![empty],
            Formula::Truth(false) => Vec::new(),
            Formula::Literal(atom, _) if atom >= self.atoms => return Err(NoAutomaton::TooLarge),
            Formula::Literal(atom, true) => vec![Unfolded { positive: 1 << atom, ..empty }],
            Formula::Literal(atom, false) => vec![Unfolded { negative: 1 << atom, ..empty }],
            Formula::And(list) => self.unfold_all(&list)?,
            Formula::Or(list) => {
                let mut all = Vec::new();
                for part in list {
                    all.extend(self.unfold(part)?);
                }
                self.strongest(all)?
            }
            Formula::Next(inner) => {
                vec![Unfolded { next: self.parts(inner), ..empty }]
            }
            Formula::Until(left, right) => {
                let number = self.untils.len() as u32;
                let number = *self.untils.entry(id).or_insert(number);
                if number >= MAX_LETTERS {
                    return Err(NoAutomaton::TooLarge);
                }
                let postponed = Unfolded { promised: 1 << number, next: vec![id], ..empty };
                let left = self.unfold(left)?;
                let mut all = self.unfold(right)?;
                all.extend(self.both(&left, &[postponed])?);
                self.strongest(all)?
            }
            Formula::Release(left, right) => {
                let again = Unfolded { next: vec![id], ..empty };
                let (left, right) = (self.unfold(left)?, self.unfold(right)?);
                let mut all = self.both(&left, &right)?;
                all.extend(self.both(&right, &[again])?);
                self.strongest(all)?
            }
            Formula::Exists(_) | Formula::All(_) => return Err(NoAutomaton::TooLarge),
        };
        self.unfolded.insert(id, found.clone());
        Ok(found)
    }

    fn both(&self, one: &[Unfolded], two: &[Unfolded]) -> Result<Vec<Unfolded>, NoAutomaton> {
        if one.len().saturating_mul(two.len()) > MOST * 4 {
            return Err(NoAutomaton::TooLarge);
        }
        let pairs = one.iter().flat_map(|a| two.iter().filter_map(|b| a.and(b)));
        self.strongest(pairs.collect())
    }

    /// Drops disjuncts that demand more than another.
    fn strongest(&self, mut all: Vec<Unfolded>) -> Result<Vec<Unfolded>, NoAutomaton> {
        self.control.ask()?;
        if all.len() > MOST {
            return Err(NoAutomaton::TooLarge);
        }
        all.sort_by_key(|one| (one.next.len(), one.positive.count_ones() + one.negative.count_ones()));
        let mut kept: Vec<Unfolded> = Vec::with_capacity(all.len());
        for one in all {
            self.control.ask()?;
            if !kept.iter().any(|other| other.is_weaker(&one)) {
                kept.retain(|other| !one.is_weaker(other));
                kept.push(one);
            }
        }
        Ok(kept)
    }
}
