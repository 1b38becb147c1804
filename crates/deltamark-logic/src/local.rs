//! Formulas of CTL evaluated locally: in one state, while the states that it leads to are found.
//!
//! In: a formula, and a graph whose states are expanded when they are asked for ([`OnDemand`]). Out: whether the formula
//! is true in a state, and a path that shows it ([`Local`]). What stays true: a state is expanded only if the answer may
//! depend on it; each quantified part is evaluated once in each state; all memory in proportion to the states was
//! granted by the budget.
//!
//! B. Vergauwen, J. Lewi, *A linear local model checking algorithm for CTL*, CONCUR 1993. The dependency graphs of
//! X. Liu, S. Smolka, *Simple Linear-Time Algorithms for Minimal Fixed Points*, ICALP 1998, do the same with backward
//! edges, and give early answers too; here a depth-first search keeps what is undecided on Tarjan's stack instead.
//!
//! # The search
//! For `E (p U q)` in a state: depth-first through states with `p`, until one with `q` is found, which is the answer. A
//! component that is complete without one is false. When one is found, *all states of components that are not complete*
//! are true: each leads to a state of the current path, and so to the end of it. For `E (q R p)` the same, where what is
//! looked for is also a cycle, or an end, inside `p`. So no state is looked at twice for one part of a formula.
//!
//! # Which formulas
//! Those that the laws of [`crate::kripke`] take apart into CTL. Others need an automaton and are [refused](Local::new).

use crate::kripke::NumberedPath;
use crate::temporal::{END, Formula, FormulaId, INITIAL, Pool};
use deltamark_core::{BitSet, Control, Grant, Stop};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// A graph whose states are expanded when they are asked for. A state without successors repeats for ever.
pub trait OnDemand {
    /// Successor `index` of a state; `None` if it has no more.
    fn successor(&mut self, state: u32, index: usize) -> Result<Option<u32>, Stop>;
    /// Whether an atom is true in a state.
    fn atom(&mut self, atom: u32, state: u32) -> Result<bool, Stop>;
    /// Whether a state is initial.
    fn is_initial(&self, state: u32) -> bool;
    /// The number of states found so far.
    fn states(&self) -> u32;
}

/// A part of a formula, by its number.
type Part = usize;

/// A state formula of CTL. `E` is before each operator.
enum Node {
    Truth(bool),
    Atom(u32),
    Not(Part),
    And(Vec<Part>),
    Or(Vec<Part>),
    Next(Part),
    Until {
        through: Part,
        goal: Part,
    },
    /// `end R inside`.
    Release {
        end: Part,
        inside: Part,
    },
}

/// Of each state whether a part is true in it, as far as it is known.
struct Memo {
    known: BitSet,
    truth: BitSet,
}

/// Evaluates a formula.
pub struct Local<'a> {
    nodes: Rc<[Node]>,
    root: Part,
    memos: Vec<Memo>,
    space: &'a mut dyn OnDemand,
    control: &'a Control,
}

/// Takes a formula apart.
struct Compiler {
    pool: Pool,
    nodes: Vec<Node>,
    states: HashMap<FormulaId, Part>,
    paths: HashMap<FormulaId, Part>,
}

impl Compiler {
    fn push(&mut self, node: Node) -> Part {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// A state formula; `None` if some part needs an automaton.
    fn state(&mut self, id: FormulaId) -> Option<Part> {
        if let Some(&known) = self.states.get(&id) {
            return Some(known);
        }
        let node = match self.pool.get(id).clone() {
            Formula::Truth(truth) => Node::Truth(truth),
            Formula::Literal(atom, true) => Node::Atom(atom),
            Formula::Literal(_, false) => {
                let positive = self.pool.not(id);
                Node::Not(self.state(positive)?)
            }
            Formula::And(list) => Node::And(self.cheapest_first(&list)?),
            Formula::Or(list) => Node::Or(self.cheapest_first(&list)?),
            Formula::Exists(path) => {
                let part = self.exists(path)?;
                self.states.insert(id, part);
                return Some(part);
            }
            Formula::All(path) => {
                let negation = self.pool.not(path);
                Node::Not(self.exists(negation)?)
            }
            Formula::Next(_) | Formula::Until(..) | Formula::Release(..) => return None,
        };
        let part = self.push(node);
        self.states.insert(id, part);
        Some(part)
    }

    /// Those without quantifiers first.
    fn cheapest_first(&mut self, list: &[FormulaId]) -> Option<Vec<Part>> {
        let mut list = list.to_vec();
        list.sort_by_key(|&one| matches!(self.pool.get(one), Formula::Exists(_) | Formula::All(_)));
        list.into_iter().map(|one| self.state(one)).collect()
    }

    /// `E` before a path formula.
    fn exists(&mut self, id: FormulaId) -> Option<Part> {
        if self.pool.is_state(id) {
            return self.state(id);
        }
        if let Some(&known) = self.paths.get(&id) {
            return Some(known);
        }
        let node = match self.pool.get(id).clone() {
            Formula::Or(list) => Node::Or(list.iter().map(|&one| self.exists(one)).collect::<Option<_>>()?),
            Formula::And(list) => {
                let (here, rest): (Vec<_>, Vec<_>) = list.iter().partition(|&&one| self.pool.is_state(one));
                let [rest] = rest[..] else { return None };
                let mut parts = self.cheapest_first(&here)?;
                parts.push(self.exists(rest)?);
                Node::And(parts)
            }
            Formula::Next(inner) => Node::Next(self.exists(inner)?),
            Formula::Until(through, goal) if self.pool.is_state(through) => {
                Node::Until { through: self.state(through)?, goal: self.exists(goal)? }
            }
            Formula::Release(end, inside) if self.pool.is_state(end) && self.pool.is_state(inside) => {
                Node::Release { end: self.state(end)?, inside: self.state(inside)? }
            }
            _ => return None,
        };
        let part = self.push(node);
        self.paths.insert(id, part);
        Some(part)
    }
}

fn compiler(pool: &Pool) -> Compiler {
    Compiler { pool: pool.clone(), nodes: Vec::new(), states: HashMap::new(), paths: HashMap::new() }
}

fn compile(pool: &Pool, root: FormulaId) -> Option<(Vec<Node>, Part)> {
    let mut compiler = compiler(pool);
    let root = compiler.state(root)?;
    Some((compiler.nodes, root))
}

/// Whether these state formulas can be evaluated locally, each of them.
pub fn are_local(pool: &Pool, mut roots: impl Iterator<Item = FormulaId>) -> bool {
    let mut compiler = compiler(pool);
    roots.all(|root| compiler.state(root).is_some())
}

/// What a look at a state says of a search.
enum Look {
    /// The formula is true here, so it is on all of the path.
    True,
    False,
    /// It depends on the successors.
    Open,
}

/// The states of a search that are undecided.
#[derive(Default)]
struct Undecided {
    /// In the order of their visit.
    live: Vec<u32>,
    /// Of each the place of the earliest one that is known to be reached from it.
    low: HashMap<u32, usize>,
    /// The path: a state, its place in `live`, and its next successor.
    path: Vec<(u32, usize, usize)>,
}

impl<'a> Local<'a> {
    /// For a state formula of this pool; `None` unless it [is local](are_local).
    pub fn new(
        pool: &Pool,
        root: FormulaId,
        space: &'a mut dyn OnDemand,
        control: &'a Control,
    ) -> Result<Option<Self>, Stop> {
        let Some((nodes, root)) = compile(pool, root) else { return Ok(None) };
        let empty = || BitSet::new(0, &control.budget).ok_or(Stop::Memory);
        let memos = nodes.iter().map(|_| Ok(Memo { known: empty()?, truth: empty()? })).collect::<Result<_, Stop>>()?;
        Ok(Some(Local { nodes: nodes.into(), root, memos, space, control }))
    }

    /// Whether the formula is true in a state.
    pub fn holds(&mut self, state: u32) -> Result<bool, Stop> {
        self.is_true(self.root, state)
    }

    fn known(&self, part: Part, state: u32) -> Option<bool> {
        let Memo { known, truth } = &self.memos[part];
        let state = u64::from(state);
        (state < known.len() && known.contains(state)).then(|| truth.contains(state))
    }

    fn keep(&mut self, part: Part, state: u32, value: bool) -> Result<(), Stop> {
        let Memo { known, truth } = &mut self.memos[part];
        let state = u64::from(state);
        if state >= known.len() {
            let len = u64::from(self.space.states()).max(state + 1).next_power_of_two();
            if !known.grow(len) || !truth.grow(len) {
                return Err(Stop::Memory);
            }
        }
        known.insert(state);
        if value {
            truth.insert(state);
        }
        Ok(())
    }

    fn is_true(&mut self, part: Part, state: u32) -> Result<bool, Stop> {
        let nodes = Rc::clone(&self.nodes);
        match &nodes[part] {
            Node::Truth(truth) => return Ok(*truth),
            Node::Not(inner) => return Ok(!self.is_true(*inner, state)?),
            Node::And(list) => {
                for &one in list {
                    if !self.is_true(one, state)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            Node::Or(list) => {
                for &one in list {
                    if self.is_true(one, state)? {
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
            Node::Atom(INITIAL) => return Ok(self.space.is_initial(state)),
            Node::Atom(END) => return Ok(self.space.successor(state, 0)?.is_none()),
            Node::Atom(_) | Node::Next(_) | Node::Until { .. } | Node::Release { .. } => {}
        }
        if let Some(known) = self.known(part, state) {
            return Ok(known);
        }
        let found = match &nodes[part] {
            Node::Atom(atom) => self.space.atom(*atom, state)?,
            Node::Next(inner) => self.next(*inner, state)?.is_some(),
            _ => return self.search(part, state),
        };
        self.keep(part, state, found)?;
        Ok(found)
    }

    /// A successor in which a formula is true.
    fn next(&mut self, part: Part, state: u32) -> Result<Option<u32>, Stop> {
        for index in 0.. {
            let target = match self.space.successor(state, index)? {
                None if index == 0 => return Ok(self.is_true(part, state)?.then_some(state)),
                None => break,
                Some(target) => target,
            };
            if self.is_true(part, target)? {
                return Ok(Some(target));
            }
        }
        Ok(None)
    }

    /// What is known of `U` or `R` in a state without a search.
    fn look(&mut self, part: Part, state: u32) -> Result<Look, Stop> {
        if let Some(known) = self.known(part, state) {
            return Ok(if known { Look::True } else { Look::False });
        }
        let nodes = Rc::clone(&self.nodes);
        let found = match nodes[part] {
            Node::Until { through, goal } => match self.is_true(goal, state)? {
                true => Look::True,
                false if self.is_true(through, state)? => Look::Open,
                false => Look::False,
            },
            Node::Release { end, inside } => match self.is_true(inside, state)? {
                false => Look::False,
                true if self.is_true(end, state)? || self.space.successor(state, 0)?.is_none() => Look::True,
                true => Look::Open,
            },
            _ => unreachable!("only these are searched for"),
        };
        match found {
            Look::True => self.keep(part, state, true)?,
            Look::False => self.keep(part, state, false)?,
            Look::Open => {}
        }
        Ok(found)
    }

    /// Evaluates `U` or `R` in a state.
    fn search(&mut self, part: Part, start: u32) -> Result<bool, Stop> {
        /// What a state on the stacks takes, about.
        const ENTRY: u64 = 80;
        match self.look(part, start)? {
            Look::True => return Ok(true),
            Look::False => return Ok(false),
            Look::Open => {}
        }
        // For `R` a cycle is as good as a goal.
        let ends_in_cycle = matches!(self.nodes[part], Node::Release { .. });
        let mut grant = Grant::new(&self.control.budget);
        let mut undecided = Undecided::default();
        let mut new = Some(start);
        loop {
            self.control.ask()?;
            if let Some(state) = new.take() {
                if !grant.ask(ENTRY) {
                    return Err(Stop::Memory);
                }
                let place = undecided.live.len();
                undecided.live.push(state);
                undecided.low.insert(state, place);
                undecided.path.push((state, place, 0));
            }
            let Some((state, place, index)) = undecided.path.last_mut() else { return Ok(false) };
            let (state, place) = (*state, *place);
            let successor = self.space.successor(state, *index)?;
            *index += 1;
            let Some(target) = successor else {
                undecided.path.pop();
                let low = undecided.low[&state];
                if low == place {
                    for member in undecided.live.split_off(place) {
                        undecided.low.remove(&member);
                        self.keep(part, member, false)?;
                    }
                } else if let Some((caller, ..)) = undecided.path.last()
                    && let Some(known) = undecided.low.get_mut(caller)
                {
                    *known = low.min(*known);
                }
                continue;
            };
            let is_found = match undecided.low.get(&target) {
                Some(_) if ends_in_cycle => true,
                Some(&low) => {
                    if let Some(known) = undecided.low.get_mut(&state) {
                        *known = low.min(*known);
                    }
                    false
                }
                None => match self.look(part, target)? {
                    Look::True => true,
                    Look::False => false,
                    Look::Open => {
                        new = Some(target);
                        false
                    }
                },
            };
            if is_found {
                for state in undecided.live {
                    self.keep(part, state, true)?;
                }
                return Ok(true);
            }
        }
    }

    /// A path from a state that shows why the formula has its value there, as far as one path goes; `None` if none shows it.
    pub fn witness(&mut self, state: u32, holds: bool) -> Result<Option<NumberedPath>, Stop> {
        let mut path = NumberedPath { states: vec![state], back: None };
        Ok(self.show(self.root, holds, &mut path)?.then_some(path))
    }

    /// Extends a path from its last state by one that shows the value of a part; returns whether there is one.
    fn show(&mut self, part: Part, value: bool, path: &mut NumberedPath) -> Result<bool, Stop> {
        let last = path.states[path.states.len() - 1];
        let nodes = Rc::clone(&self.nodes);
        match &nodes[part] {
            Node::Truth(_) | Node::Atom(_) => Ok(false),
            Node::Not(inner) => self.show(*inner, !value, path),
            Node::And(list) | Node::Or(list) => {
                for &one in list {
                    if self.is_true(one, last)? == value && self.show(one, value, path)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ if !value => Ok(false),
            Node::Next(inner) => {
                // A state that repeats has no step to show.
                if self.space.successor(last, 0)?.is_none() {
                    return Ok(false);
                }
                let Some(next) = self.next(*inner, last)? else { return Ok(false) };
                path.states.push(next);
                self.show(*inner, true, path)?;
                Ok(true)
            }
            Node::Until { through, goal } => {
                self.go(*through, *goal, path)?;
                self.show(*goal, true, path)?;
                Ok(true)
            }
            Node::Release { end, .. } => {
                // Where it is true without an end, it is true in some successor.
                let mut places: HashMap<u32, usize> = HashMap::new();
                loop {
                    self.control.ask()?;
                    let at = path.states[path.states.len() - 1];
                    if self.is_true(*end, at)? || self.space.successor(at, 0)?.is_none() {
                        return Ok(true);
                    }
                    places.insert(at, path.states.len() - 1);
                    let next = self.next(part, at)?;
                    let next = next.expect("what is true for ever is true in a successor");
                    if let Some(&place) = places.get(&next) {
                        path.back = Some(place);
                        return Ok(true);
                    }
                    self.control.ask_for(ENTRIES)?;
                    path.states.push(next);
                }
            }
        }
    }

    /// Extends a path by a shortest one through states of one kind to one of another, which there is.
    fn go(&mut self, through: Part, goal: Part, path: &mut NumberedPath) -> Result<(), Stop> {
        let first = path.states[path.states.len() - 1];
        if self.is_true(goal, first)? {
            return Ok(());
        }
        let mut before: HashMap<u32, u32> = HashMap::from([(first, first)]);
        let mut waiting = VecDeque::from([first]);
        while let Some(state) = waiting.pop_front() {
            self.control.ask_for(ENTRIES)?;
            let mut index = 0;
            while let Some(target) = self.space.successor(state, index)? {
                index += 1;
                if before.contains_key(&target) {
                    continue;
                }
                before.insert(target, state);
                if self.is_true(goal, target)? {
                    let (begin, mut at) = (path.states.len(), target);
                    while at != first {
                        path.states.push(at);
                        at = before[&at];
                    }
                    path.states[begin..].reverse();
                    return Ok(());
                }
                if self.is_true(through, target)? {
                    waiting.push_back(target);
                }
            }
        }
        unreachable!("what is shown is true")
    }
}

/// What a state of a path and its entries in maps may take.
const ENTRIES: u64 = 1 << 12;
