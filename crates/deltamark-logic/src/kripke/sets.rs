//! State formulas as sets of states.
//!
//! In: a state formula of CTL*. Out: the states in which it is true. What stays true: each quantified formula is
//! evaluated once, whichever formulas it is part of; a set that is empty or full is known to be, and cuts short what it
//! is part of.
//!
//! # Laws
//! For a state formula `s` and path formulas `a`, `b`, whatever is in them:
//! `E (a or b) = E a or E b`, `E (s and a) = s and E a`, `E X a = EX E a`, `E (s U a) = E [s U E a]` (the part of a path
//! before a suffix is chosen independently of it). So a formula of CTL*, and the negation of one of LTL, is evaluated
//! as one of CTL as far as these laws go; what is left is a path formula for an automaton ([`super::letters`]).

use super::edges::Edges;
use super::letters::Translated;
use super::order::Order;
use super::product::Product;
use super::shared::Shared;
use super::{Kripke, set, steps};
use crate::temporal::{END, Formula, FormulaId, INITIAL, Pool};
use deltamark_core::{BitSet, Control, Stop};
use std::collections::HashMap;
use std::sync::Arc;

/// A set of states.
#[derive(Clone, Debug)]
pub enum StateSet {
    /// No state.
    None,
    /// Every state.
    All,
    /// Some states, and not all.
    Some(Arc<BitSet>),
}

impl StateSet {
    pub(super) fn of(set: BitSet) -> Self {
        if set.has_none() {
            StateSet::None
        } else if set.has_all() {
            StateSet::All
        } else {
            StateSet::Some(Arc::new(set))
        }
    }

    /// Whether a state is in it.
    #[inline]
    pub fn contains(&self, state: u32) -> bool {
        match self {
            StateSet::None => false,
            StateSet::All => true,
            StateSet::Some(set) => set.contains(state.into()),
        }
    }
}

/// Evaluates formulas on a graph, for one thread.
pub struct Evaluator<'k> {
    pub(super) kripke: &'k Kripke,
    pub(super) control: &'k Control,
    pub(super) pool: Pool,
    /// The values of path formulas under `E` that this evaluator alone has in its pool.
    values: HashMap<FormulaId, StateSet>,
    shared: Arc<Shared>,
}

impl<'k> Evaluator<'k> {
    /// An evaluator of formulas of this pool.
    pub fn new(kripke: &'k Kripke, pool: Pool, control: &'k Control) -> Self {
        let shared = Arc::new(Shared::new(pool.len()));
        Evaluator { kripke, control, pool, values: HashMap::new(), shared }
    }

    /// One for another thread, of the same formulas: what one of them has evaluated, all know.
    pub fn another(&self) -> Self {
        let Evaluator { kripke, control, pool, shared, .. } = self;
        Evaluator { kripke, control, pool: pool.clone(), values: HashMap::new(), shared: Arc::clone(shared) }
    }

    /// Forgets values, to make room: they are computed again when they are needed.
    pub fn forget(&mut self) {
        self.values.clear();
        self.shared.forget();
    }

    fn value(&self, id: FormulaId) -> Option<StateSet> {
        if self.shared.is_common(id) { self.shared.value(id) } else { self.values.get(&id).cloned() }
    }

    fn keep(&mut self, id: FormulaId, set: &StateSet) {
        if self.shared.is_common(id) {
            self.shared.keep(id, set.clone());
        } else {
            self.values.insert(id, set.clone());
        }
    }

    /// The states in which an atom is true.
    fn atom(&mut self, atom: u32) -> Result<StateSet, Stop> {
        if let Some(known) = self.shared.atom(atom) {
            return Ok(known);
        }
        let kripke = self.kripke;
        let mut found = set(kripke.states(), self.control)?;
        match atom {
            INITIAL => kripke.initial.iter().for_each(|&state| _ = found.insert(state.into())),
            END => {
                for state in (0..kripke.states()).filter(|&state| kripke.edges.of(state).is_empty()) {
                    found.insert(state.into());
                }
            }
            _ => found.unite(&kripke.atoms[atom as usize]),
        }
        let found = StateSet::of(found);
        self.shared.keep_atom(atom, found.clone());
        Ok(found)
    }

    /// The states in which a state formula is true.
    pub fn states(&mut self, id: FormulaId) -> Result<StateSet, Stop> {
        match self.pool.get(id).clone() {
            Formula::Truth(truth) => Ok(if truth { StateSet::All } else { StateSet::None }),
            Formula::Literal(atom, true) => self.atom(atom),
            Formula::Literal(atom, false) => {
                let atom = self.atom(atom)?;
                self.complement(&atom)
            }
            Formula::And(list) => {
                let mut all = StateSet::All;
                for one in self.cheapest_first(&list) {
                    if matches!(all, StateSet::None) {
                        break;
                    }
                    let one = self.states(one)?;
                    all = self.both(&all, &one)?;
                }
                Ok(all)
            }
            Formula::Or(list) => {
                let mut any = StateSet::None;
                for one in self.cheapest_first(&list) {
                    if matches!(any, StateSet::All) {
                        break;
                    }
                    let one = self.states(one)?;
                    any = self.either(&any, &one)?;
                }
                Ok(any)
            }
            Formula::Exists(path) => self.exists(path),
            Formula::All(path) => {
                let negation = self.pool.not(path);
                let some = self.exists(negation)?;
                self.complement(&some)
            }
            Formula::Next(_) | Formula::Until(..) | Formula::Release(..) => {
                unreachable!("a state formula has a quantifier before each temporal operator")
            }
        }
    }

    /// Whether the set of a path formula was evaluated before.
    pub(super) fn is_known(&self, id: FormulaId) -> bool {
        self.value(id).is_some()
    }

    /// Those without quantifiers first.
    pub(super) fn cheapest_first(&self, list: &[FormulaId]) -> Vec<FormulaId> {
        let mut list = list.to_vec();
        list.sort_by_key(|&one| match self.pool.get(one) {
            Formula::Truth(_) | Formula::Literal(..) => 0,
            _ => 1,
        });
        list
    }

    /// The states from which some path satisfies a formula.
    pub(super) fn exists(&mut self, id: FormulaId) -> Result<StateSet, Stop> {
        if self.pool.is_state(id) {
            return self.states(id);
        }
        if let Some(known) = self.value(id) {
            return Ok(known);
        }
        let found = match self.pool.get(id).clone() {
            Formula::Or(list) => {
                let mut any = StateSet::None;
                for one in self.cheapest_first(&list) {
                    if matches!(any, StateSet::All) {
                        break;
                    }
                    let one = self.exists(one)?;
                    any = self.either(&any, &one)?;
                }
                any
            }
            Formula::And(list) => {
                let (here, rest) = self.parted(&list);
                match self.states(here)? {
                    StateSet::None => StateSet::None,
                    here => {
                        let rest = match rest[..] {
                            [one] => self.exists(one)?,
                            _ => {
                                let rest = self.pool.and(rest);
                                self.by_automaton(rest)?
                            }
                        };
                        self.both(&here, &rest)?
                    }
                }
            }
            Formula::Next(inner) => match self.exists(inner)? {
                StateSet::Some(goals) => StateSet::of(steps::before(&self.kripke.edges, &goals, self.control)?),
                constant => constant,
            },
            Formula::Until(through, goal) if self.pool.is_state(through) => {
                let goals = self.exists(goal)?;
                match goals {
                    StateSet::Some(_) => {
                        let through = self.states(through)?;
                        self.until(&through, &goals)?
                    }
                    constant => constant,
                }
            }
            Formula::Release(end, inside) if self.pool.is_state(end) && self.pool.is_state(inside) => {
                let always = self.states(inside)?;
                let ends = self.states(end)?;
                let ends = self.both(&ends, &always)?;
                let ended = self.until(&always, &ends)?;
                let forever = self.always(&always)?;
                self.either(&ended, &forever)?
            }
            _ => match self.recurring(id) {
                Some(goal) => {
                    let goals = self.states(goal)?;
                    self.again_and_again(&goals)?
                }
                None => self.by_automaton(id)?,
            },
        };
        self.keep(id, &found);
        Ok(found)
    }

    /// The state formula `a`, if this is `G F a`.
    fn recurring(&mut self, id: FormulaId) -> Option<FormulaId> {
        let (yes, no) = (self.pool.truth(true), self.pool.truth(false));
        let Formula::Release(never, inner) = *self.pool.get(id) else { return None };
        let Formula::Until(always, goal) = *self.pool.get(inner) else { return None };
        (never == no && always == yes && self.pool.is_state(goal)).then_some(goal)
    }

    /// The members of a conjunction that speak of the first state, as one, and the others.
    pub(super) fn parted(&mut self, list: &[FormulaId]) -> (FormulaId, Vec<FormulaId>) {
        let (here, rest): (Vec<_>, Vec<_>) = list.iter().partition(|&&one| self.pool.is_state(one));
        (self.pool.and(here), rest)
    }

    pub(super) fn until(&mut self, through: &StateSet, goals: &StateSet) -> Result<StateSet, Stop> {
        let StateSet::Some(targets) = goals else { return Ok(goals.clone()) };
        Ok(match through {
            StateSet::None => goals.clone(),
            StateSet::All => {
                let (edges, control) = (&self.kripke.edges, self.control);
                self.order()?.reaching(edges, targets, control)?
            }
            StateSet::Some(through) => {
                let control = self.control;
                let reverse = self.reverse()?;
                StateSet::of(steps::until(&reverse, through, targets, control)?)
            }
        })
    }

    pub(super) fn always(&mut self, inside: &StateSet) -> Result<StateSet, Stop> {
        let StateSet::Some(states) = inside else { return Ok(inside.clone()) };
        let (edges, control) = (&self.kripke.edges, self.control);
        let reverse = self.reverse()?;
        Ok(StateSet::of(steps::always(edges, &reverse, states, control)?))
    }

    /// The states from which some path visits `goals` infinitely often: those that reach one on a cycle.
    fn again_and_again(&mut self, goals: &StateSet) -> Result<StateSet, Stop> {
        let StateSet::Some(states) = goals else { return Ok(goals.clone()) };
        let (edges, control) = (&self.kripke.edges, self.control);
        let order = self.order()?;
        let mut recurring = order.cyclic().try_clone().ok_or(Stop::Memory)?;
        recurring.intersect(states);
        order.reaching(edges, &recurring, control)
    }

    fn by_automaton(&mut self, id: FormulaId) -> Result<StateSet, Stop> {
        let Translated { automaton, guards } = self.translate(id)?;
        Product::new(&self.kripke.edges, &automaton, &guards).all_states(self.control)
    }

    fn order(&self) -> Result<Arc<Order>, Stop> {
        self.shared.order(|| Order::new(&self.kripke.edges, self.control))
    }

    fn reverse(&self) -> Result<Arc<Edges>, Stop> {
        self.shared.reverse(|| self.kripke.edges.reversed(self.control))
    }

    fn copy_of(set: &BitSet) -> Result<BitSet, Stop> {
        set.try_clone().ok_or(Stop::Memory)
    }

    pub(super) fn complement(&self, set: &StateSet) -> Result<StateSet, Stop> {
        Ok(match set {
            StateSet::None => StateSet::All,
            StateSet::All => StateSet::None,
            StateSet::Some(set) => {
                let mut copy = Self::copy_of(set)?;
                copy.complement();
                StateSet::Some(Arc::new(copy))
            }
        })
    }

    pub(super) fn both(&self, one: &StateSet, two: &StateSet) -> Result<StateSet, Stop> {
        Ok(match (one, two) {
            (StateSet::None, _) | (_, StateSet::None) => StateSet::None,
            (StateSet::All, other) | (other, StateSet::All) => other.clone(),
            (StateSet::Some(one), StateSet::Some(two)) => {
                let mut copy = Self::copy_of(one)?;
                copy.intersect(two);
                StateSet::of(copy)
            }
        })
    }

    pub(super) fn either(&self, one: &StateSet, two: &StateSet) -> Result<StateSet, Stop> {
        Ok(match (one, two) {
            (StateSet::All, _) | (_, StateSet::All) => StateSet::All,
            (StateSet::None, other) | (other, StateSet::None) => other.clone(),
            (StateSet::Some(one), StateSet::Some(two)) => {
                let mut copy = Self::copy_of(one)?;
                copy.unite(two);
                StateSet::of(copy)
            }
        })
    }
}
