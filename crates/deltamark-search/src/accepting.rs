//! A search for an accepting cycle: whether some infinite path takes transitions of every acceptance set for ever.
//!
//! J.-M. Couvreur, *On-the-fly Verification of Linear Temporal Logic*, FM 1999; the refinement to generalised acceptance
//! on transitions is from J.-M. Couvreur, A. Duret-Lutz, D. Poitrenaud, *On-the-fly Emptiness Checks for Generalized
//! Büchi Automata*, SPIN 2005. In: a task whose system is a product with an automaton, and the acceptance sets that
//! each action is in. Out: the outcome, and a lasso, if there is an accepting cycle.
//!
//! # Requirements
//! A store that recalls any state by its id and attaches values to states ([`Store::attached`]), and takes states in any
//! order.
//!
//! # Guarantees
//! With an exact store: if the search ends without a limit and without a lasso, no path is accepted. It ends as soon as
//! the edges seen so far close an accepting component. The lasso has been replayed, closes, and its cycle takes a
//! transition of each set.
//!
//! # The search
//! ```text
//! live     [ a b c d e f g ]     visited states of components that may still grow, in the order of their visit
//! roots      ^a  ^c    ^f        where such a component begins, with the sets on its inner edges
//! frames     ^a  ^c ^d ^f        the path: states whose successors are not all dealt with …
//! pending  [ h | i j |   | k ]   … and those successors that were new when the state was expanded
//! ```
//! A state's value is 0 before its visit, then its place in `live` and 1, and [`CLOSED`] once its component is complete
//! without being accepting. All edges of a state are looked at when it is expanded: one to a live state joins all
//! components from there on, so cycles are found early and only new successors wait. Everything here is packed in as few
//! bits as it needs; a visited state costs four bytes beside the store.
//!
//! With [fairness](crate::fair) a component is looked at once it is complete, and its edges are held in memory then.

use crate::Task;
use crate::fair::{Component, FairPath, Fairness};
use crate::path::{initial_number, leading_to};
use crate::run::{Plan, Recode, Run};
use deltamark_core::{
    Action, Control, Grant, Insert, Numbers, Outcome, Recall, Recoding, Slot, Snapshot, StateId, Stop, Store, System,
    Trace, Values, Widen,
};
use std::collections::{HashMap, VecDeque};

/// Which infinite paths are accepted: those that take actions of every set infinitely often.
pub struct Acceptance<'a> {
    /// All acceptance sets, as bits; 0 accepts every infinite path.
    pub all: u64,
    /// The sets that an action is in.
    pub of: &'a (dyn Fn(Action) -> u64 + Sync),
    /// Whether a state may be on an accepting cycle, as far as the automaton alone shows.
    pub recurs: &'a (dyn Fn(&[Slot]) -> bool + Sync),
    /// Which of these paths count; all of them, if there is none.
    pub fairness: Option<Fairness<'a>>,
}

impl Acceptance<'_> {
    /// Replays a lasso.
    ///
    /// # Panics
    /// When it does not replay, or its cycle takes no action of some set.
    pub(crate) fn replay(&self, trace: &Trace, system: &dyn System, control: &Control) -> Result<(), Stop> {
        let followed = trace.follow(system, |_, _| control.stop_without_memory().map_or(Ok(()), Err));
        followed.unwrap_or_else(|error| panic!("a trace replays: {error}"))?;
        let start = trace.cycle().expect("it is a lasso");
        let taken = trace.actions[start..].iter().fold(0, |sets, &action| sets | (self.of)(action));
        assert_eq!(taken & self.all, self.all, "the cycle takes an action of every set");
        Ok(())
    }
}

/// What a search for an accepting cycle found.
pub struct Accepted {
    /// Counts, why it ended, and the outcomes of the task's properties.
    pub outcome: Outcome,
    /// A lasso whose cycle is accepting, if there is one; or why it could not be put together.
    pub lasso: Option<Result<Trace, Stop>>,
}

/// The value of a state of a component that is complete.
const CLOSED: u64 = u32::MAX as u64;

/// Why a store cannot serve this search, if it cannot.
pub fn unfit(store: &dyn Store) -> Option<&'static str> {
    match (store.recall(), store.attached()) {
        (None, _) => Some("it does not recall states"),
        (Some(recall), _) if !recall.whole() => Some("it recalls the current level alone"),
        (_, None) => Some("it has no ids of states"),
        _ => None,
    }
}

/// Searches for an accepting cycle, by one thread.
///
/// # Panics
/// If the store is [unfit], and when a trace does not replay: a bug of the search, the store or the system.
pub fn run_accepting<'a>(task: Task<'a>, acceptance: &'a Acceptance<'a>) -> Accepted {
    let (Some(recall), Some(attached)) = (task.store.recall(), task.store.attached()) else {
        panic!("a store that serves this search recalls states and attaches values to them")
    };
    let mut search = CycleSearch::new(task, recall, attached.values(32), acceptance, None);
    let found = search.explore();
    let lasso = matches!(found, Err(SearchEnd::Accepting)).then(|| search.lasso());
    let stopped_by = match found {
        Ok(()) => None,
        Err(SearchEnd::Accepting) => Some(Stop::Answered),
        Err(SearchEnd::Stop(stop)) => Some(stop),
    };
    Accepted { outcome: search.run.finish(stopped_by), lasso }
}

/// A path from a state into an accepting cycle.
pub(crate) struct Among {
    pub root: StateId,
    pub actions: Vec<Action>,
    /// Where the cycle begins.
    pub start: usize,
}

/// An accepting cycle among states of a store that is full, where there is one: what is looked at are these members
/// alone, which are also where it begins.
///
/// # Panics
/// If there is none, and as [`run_accepting`].
pub(crate) fn among<'a>(
    task: Task<'a>,
    acceptance: &'a Acceptance<'a>,
    is_member: &'a dyn Fn(StateId) -> bool,
    members: &mut dyn Iterator<Item = StateId>,
) -> Result<Among, Stop> {
    let (Some(recall), Some(attached)) = (task.store.recall(), task.store.attached()) else {
        panic!("a store that serves this search recalls states and attaches values to them")
    };
    let mut search = CycleSearch::new(task, recall, attached.values(32), acceptance, Some(is_member));
    for id in members {
        match search.explore_from(id) {
            Ok(()) => {}
            Err(SearchEnd::Accepting) => {
                let (actions, start) = search.steps()?;
                return Ok(Among { root: id, actions, start });
            }
            Err(SearchEnd::Stop(stop)) => return Err(stop),
        }
    }
    panic!("some cycle among the members is accepting")
}

/// Why a search ends before everything was seen.
enum SearchEnd {
    Accepting,
    Stop(Stop),
}

impl From<Stop> for SearchEnd {
    fn from(stop: Stop) -> Self {
        SearchEnd::Stop(stop)
    }
}

/// Collections of acceptance sets, numbered: few occur.
#[derive(Default)]
struct Interned {
    list: Vec<u64>,
    numbers: HashMap<u64, u64>,
}

impl Interned {
    fn number(&mut self, sets: u64) -> u64 {
        // Mostly one of the first: no hash is computed for it.
        if let Some(known) = self.list.iter().take(8).position(|&one| one == sets) {
            return known as u64;
        }
        if let Some(&known) = self.numbers.get(&sets) {
            return known;
        }
        let number = self.list.len() as u64;
        self.list.push(sets);
        self.numbers.insert(sets, number);
        number
    }

    fn get(&self, number: u64) -> u64 {
        self.list[number as usize]
    }
}

struct CycleSearch<'a> {
    run: Run<'a>,
    recall: &'a dyn Recall,
    values: Values,
    acceptance: &'a Acceptance<'a>,
    /// If the store is full, the states that are looked at.
    is_member: Option<&'a dyn Fn(StateId) -> bool>,
    sets: Interned,
    /// Ids.
    live: Numbers,
    /// Of each component its first place in `live`, the sets inside, and those of the edge that led to it.
    roots: [Numbers; 3],
    /// Of each state of the path its place in `live`, and where its pending successors begin.
    frames: [Numbers; 2],
    /// Ids, and the sets of the edge.
    pending: [Numbers; 2],
    /// A fair cycle of the last component.
    found: Option<FairPath>,
}

/// What the search holds are ids, which stay the same.
pub(crate) struct Ids;

impl Recode for Ids {
    fn recode(&mut self, _: &Recoding) {}
}

/// Removes the last number.
pub(crate) fn pop(numbers: &mut Numbers) -> Option<u64> {
    let last = numbers.last()?;
    numbers.truncate(numbers.len() - 1);
    Some(last)
}

impl<'a> CycleSearch<'a> {
    fn new(
        task: Task<'a>,
        recall: &'a dyn Recall,
        values: Values,
        acceptance: &'a Acceptance<'a>,
        is_member: Option<&'a dyn Fn(StateId) -> bool>,
    ) -> Self {
        CycleSearch {
            run: Run::new(Plan::new(task)),
            recall,
            values,
            acceptance,
            is_member,
            sets: Interned::default(),
            live: Numbers::new(),
            roots: std::array::from_fn(|_| Numbers::new()),
            frames: std::array::from_fn(|_| Numbers::new()),
            pending: std::array::from_fn(|_| Numbers::new()),
            found: None,
        }
    }

    fn explore(&mut self) -> Result<(), SearchEnd> {
        let mut roots = Vec::new();
        self.run.begin(&mut Ids, &mut roots)?;
        roots.into_iter().try_for_each(|root| self.explore_from(root.id))
    }

    fn explore_from(&mut self, id: StateId) -> Result<(), SearchEnd> {
        if self.values.get(id) != 0 {
            return Ok(());
        }
        self.visit(id, 0)?;
        self.descend()
    }

    /// Goes on until the path is empty.
    fn descend(&mut self) -> Result<(), SearchEnd> {
        while let (Some(place), Some(begin)) = (self.frames[0].last(), self.frames[1].last()) {
            if self.pending[0].len() as u64 > begin {
                let (Some(id), Some(sets)) = (pop(&mut self.pending[0]), pop(&mut self.pending[1])) else {
                    unreachable!("both have one entry for each successor")
                };
                let (id, sets) = (StateId::new(id), self.sets.get(sets));
                match self.values.get(id) {
                    0 => self.visit(id, sets)?,
                    CLOSED => {}
                    live => self.join(live - 1, sets)?,
                }
                continue;
            }
            if self.roots[0].last() == Some(place) {
                self.look_for_fair_cycle(place)?;
                self.roots.iter_mut().for_each(|list| list.truncate(list.len() - 1));
                for member in place..self.live.len() as u64 {
                    // It has a value, so this takes no memory.
                    self.values.set(StateId::new(self.live.get(member as usize)), CLOSED);
                }
                self.live.truncate(place as usize);
            }
            self.frames.iter_mut().for_each(|list| list.truncate(list.len() - 1));
        }
        Ok(())
    }

    /// The component that begins at this place is complete: if fairness is asked for, is one of its cycles fair?
    fn look_for_fair_cycle(&mut self, place: u64) -> Result<(), SearchEnd> {
        let Some(fairness) = &self.acceptance.fairness else { return Ok(()) };
        let inside = self.roots[1].last().map_or(0, |number| self.sets.get(number));
        if inside != self.acceptance.all {
            return Ok(());
        }
        let control = self.run.control();
        let mut component = Component::new(fairness, control);
        for member in place..self.live.len() as u64 {
            control.ask()?;
            let id = StateId::new(self.live.get(member as usize));
            self.expand(id).expect("successors that were stored fit the layout");
            self.run.batch.stop().map_or(Ok(()), Err)?;
            let Run { batch, store, store_scratch, .. } = &mut self.run;
            let inside = (0..batch.len()).filter_map(|index| {
                let id = store.find(store_scratch, batch.target(index), batch.hash(index))?;
                // Whatever is live from there on is in this component, which is the last one.
                let value = self.values.get(id);
                let is_inside = value != CLOSED && value > place;
                let action = batch.action(index);
                is_inside
                    .then(|| ((value - 1 - place) as u32, action, (self.acceptance.of)(action) & self.acceptance.all))
            });
            component.push(fairness, batch.actions(), inside)?;
        }
        self.found = component.fair_cycle(self.acceptance, control)?;
        if self.found.is_some() { Err(SearchEnd::Accepting) } else { Ok(()) }
    }

    /// A state comes onto the path, by an edge that is in these sets.
    fn visit(&mut self, id: StateId, sets: u64) -> Result<(), SearchEnd> {
        let place = self.live.len() as u64;
        if place + 1 >= CLOSED {
            return Err(SearchEnd::Stop(Stop::Memory));
        }
        let (none, incoming) = (self.sets.number(0), self.sets.number(sets));
        self.live.push(id.get());
        for (list, number) in self.roots.iter_mut().zip([place, none, incoming]) {
            list.push(number);
        }
        for (list, number) in self.frames.iter_mut().zip([place, self.pending[0].len() as u64]) {
            list.push(number);
        }
        if self.values.set(id, place + 1).is_none() {
            return Err(SearchEnd::Stop(self.run.control().stop_when_full()));
        }
        let depth = self.frames[0].len() as u64 - 1;
        self.run.statistics.depth = self.run.statistics.depth.max(depth);
        self.poll(depth)?;
        while self.expand(id).is_err() {
            self.run.widen(&mut Ids)?;
        }
        if let Some(stop) = self.run.batch.stop() {
            return Err(SearchEnd::Stop(stop));
        }
        let findings = self.run.findings();
        if !findings.is_empty() {
            for finding in findings {
                let trace = self.path(self.frames[0].len()).ok();
                self.expand(id).expect("successors that fitted the layout still do");
                let state = self.run.block.state(0).to_vec();
                self.run.answer(finding, trace, &state);
            }
        }
        if !self.may_wait() {
            return Err(SearchEnd::Stop(Stop::Memory));
        }
        self.know_successors()?;
        for index in (0..self.run.batch.len()).rev() {
            let (Insert::New(target) | Insert::Seen(target)) = self.run.answers[index] else { continue };
            if self.is_member.is_some_and(|is_member| !is_member(target)) {
                continue;
            }
            let sets = (self.acceptance.of)(self.run.batch.action(index)) & self.acceptance.all;
            match self.values.get(target) {
                0 => {
                    let number = self.sets.number(sets);
                    self.pending[0].push(target.get());
                    self.pending[1].push(number);
                }
                CLOSED => {}
                live => self.join(live - 1, sets)?,
            }
        }
        Ok(())
    }

    /// Inserts the successors, or looks them up if the store is full.
    fn know_successors(&mut self) -> Result<(), Stop> {
        if self.is_member.is_none() {
            let inserted = self.run.insert();
            let new = self.run.answers.iter().filter(|one| matches!(one, Insert::New(_)));
            self.run.statistics.states += new.count() as u64;
            inserted?;
            self.run.count();
            return Ok(());
        }
        let Run { batch, store, store_scratch, answers, .. } = &mut self.run;
        answers.clear();
        answers.extend((0..batch.len()).map(|index| {
            let found = store.find(store_scratch, batch.target(index), batch.hash(index));
            Insert::Seen(found.expect("every successor of a state was stored"))
        }));
        Ok(())
    }

    /// An edge leads back to a state at this place: all from there on are one component.
    fn join(&mut self, place: u64, sets: u64) -> Result<(), SearchEnd> {
        let mut inside = sets;
        loop {
            let Some(first) = self.roots[0].last() else { unreachable!("a live state is in some component") };
            let own = self.roots[1].last().map_or(0, |number| self.sets.get(number));
            let incoming = self.roots[2].last().map_or(0, |number| self.sets.get(number));
            inside |= own;
            if first <= place {
                let number = self.sets.number(inside);
                self.roots[1].truncate(self.roots[1].len() - 1);
                self.roots[1].push(number);
                break;
            }
            inside |= incoming;
            self.roots.iter_mut().for_each(|list| list.truncate(list.len() - 1));
        }
        let ends = inside == self.acceptance.all && self.acceptance.fairness.is_none();
        if ends { Err(SearchEnd::Accepting) } else { Ok(()) }
    }

    fn held_bytes(&self) -> u64 {
        let lists = self.roots.iter().chain(&self.frames).chain(&self.pending).chain([&self.live]);
        lists.map(Numbers::held_bytes).sum()
    }

    fn poll(&mut self, depth: u64) -> Result<(), SearchEnd> {
        let bytes = self.held_bytes();
        if !self.run.frontier_holds(bytes) {
            return Err(SearchEnd::Stop(Stop::Memory));
        }
        let waiting = self.pending[0].len() as u64 + depth;
        let snapshot = |run: &Run<'_>| Snapshot { frontier: waiting, frontier_bytes: bytes, ..run.snapshot() };
        self.run.check(snapshot).map_or(Ok(()), |stop| Err(SearchEnd::Stop(stop)))
    }

    /// Asks the budget for room for the successors of a batch, and for the next state of the path.
    fn may_wait(&mut self) -> bool {
        let (more, states) = (self.run.batch.len(), self.run.store.len());
        let ids = states + more as u64;
        let mut growth = self.pending[0].growth(more, ids) + self.pending[1].growth(more, self.sets.list.len() as u64);
        for list in self.roots.iter().chain(&self.frames).chain([&self.live]) {
            growth += list.growth(1, ids);
        }
        growth == 0 || self.run.frontier_holds(self.held_bytes() + growth)
    }

    /// Expands a state alone.
    fn expand(&mut self, id: StateId) -> Result<(), Widen> {
        let CycleSearch { run, recall, .. } = self;
        run.block.reset(run.system.width());
        run.block.fill([id], |ids, states| recall.recall(&mut run.store_scratch, ids, states));
        run.expand()
    }

    /// The state at a place of the path.
    fn state(&mut self, frame: usize) -> Vec<Slot> {
        let id = StateId::new(self.live.get(self.frames[0].get(frame) as usize));
        let CycleSearch { run, recall, .. } = self;
        let mut states = deltamark_core::States::new(run.system.width());
        recall.recall(&mut run.store_scratch, &[id], &mut states);
        states.get(0).to_vec()
    }

    /// The first `frames` states of the path, as a trace. Uses the run's block and batch.
    fn path(&mut self, frames: usize) -> Result<Trace, Stop> {
        let first = self.state(0);
        let initial = initial_number(self.run.system, &mut self.run.system_scratch, &first);
        Ok(Trace::path(initial, self.actions(frames)?))
    }

    /// The actions between the first `frames` states of the path.
    fn actions(&mut self, frames: usize) -> Result<Vec<Action>, Stop> {
        let mut actions = Vec::with_capacity(frames);
        for frame in 1..frames {
            self.run.control().stop_without_memory().map_or(Ok(()), Err)?;
            let target = self.state(frame);
            let source = StateId::new(self.live.get(self.frames[0].get(frame - 1) as usize));
            self.expand(source).expect("successors that were stored fit the layout");
            self.run.batch.stop().map_or(Ok(()), Err)?;
            let (_, action) = leading_to(&self.run.batch, &target).expect("each state of a path leads to the next");
            actions.push(action);
        }
        Ok(actions)
    }

    /// The lasso to the component that turned out to be accepting.
    fn lasso(&mut self) -> Result<Trace, Stop> {
        let first = self.state(0);
        let initial = initial_number(self.run.system, &mut self.run.system_scratch, &first);
        let (actions, start) = self.steps()?;
        let trace = Trace::lasso(initial, actions, start);
        self.acceptance.replay(&trace, self.run.system, self.run.control())?;
        Ok(trace)
    }

    /// The path to the component that turned out to be accepting, and a cycle in it, which begins at the second result.
    fn steps(&mut self) -> Result<(Vec<Action>, usize), Stop> {
        let Some(place) = self.roots[0].last() else { unreachable!("the last component is the accepting one") };
        let frames = (0..self.frames[0].len()).find(|&frame| self.frames[0].get(frame) == place);
        let Some(frame) = frames else { unreachable!("the first state of a component is on the path") };
        let mut actions = self.actions(frame + 1)?;
        let start = match self.found.take() {
            Some((path, cycle)) => {
                actions.extend(path);
                let start = actions.len();
                actions.extend(cycle);
                start
            }
            None => {
                let start = actions.len();
                self.cycle(place, &mut actions)?;
                start
            }
        };
        Ok((actions, start))
    }

    /// Appends a cycle from the first state of a component to itself, inside, with an edge of each set: from edge to
    /// edge by breadth-first searches.
    fn cycle(&mut self, place: u64, actions: &mut Vec<Action>) -> Result<(), Stop> {
        let start = self.live.get(place as usize);
        let (mut current, mut missing) = (start, self.acceptance.all);
        let mut first = true;
        while first || missing != 0 || current != start {
            let (path, end, taken) = self.next_edge(place, current, (missing == 0).then_some(start), missing)?;
            actions.extend(path);
            missing &= !taken;
            (current, first) = (end, false);
        }
        Ok(())
    }

    /// The shortest path inside a component to an edge that is in a missing set, or leads to `goal`; where it ends, and
    /// the sets of its edges.
    fn next_edge(
        &mut self,
        place: u64,
        from: u64,
        goal: Option<u64>,
        missing: u64,
    ) -> Result<(Vec<Action>, u64, u64), Stop> {
        /// What an entry of the map and of the queue takes, about.
        const ENTRY: u64 = 64;
        let control: &Control = self.run.control();
        let mut grant = Grant::new(&control.budget);
        let mut came: HashMap<u64, (u64, Action)> = HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(source) = queue.pop_front() {
            control.stop_without_memory().map_or(Ok(()), Err)?;
            self.expand(StateId::new(source)).expect("successors that were stored fit the layout");
            self.run.batch.stop().map_or(Ok(()), Err)?;
            for index in 0..self.run.batch.len() {
                let (target, action) = (self.run.batch.target(index), self.run.batch.action(index));
                let hash = self.run.batch.hash(index);
                let Some(id) = self.run.store.find(&mut self.run.store_scratch, target, hash) else { continue };
                let value = self.values.get(id);
                if value == 0 || value == CLOSED || value - 1 < place {
                    continue;
                }
                let id = id.get();
                if (self.acceptance.of)(action) & missing != 0 || goal == Some(id) {
                    let mut path = vec![action];
                    let mut at = source;
                    while at != from {
                        let (before, action) = came[&at];
                        path.push(action);
                        at = before;
                    }
                    path.reverse();
                    let taken = path.iter().fold(0, |sets, &action| sets | (self.acceptance.of)(action));
                    return Ok((path, id, taken));
                }
                if id != from && !came.contains_key(&id) {
                    if !grant.ask(ENTRY) {
                        return Err(Stop::Memory);
                    }
                    came.insert(id, (source, action));
                    queue.push_back(id);
                }
            }
        }
        unreachable!("inside a component every state leads to every edge")
    }
}
