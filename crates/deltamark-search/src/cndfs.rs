//! A search for an accepting cycle by several threads, each depth-first.
//!
//! S. Evangelista, A. Laarman, L. Petrucci, J. van de Pol, *Improved Multi-Core Nested Depth-First Search*, ATVA 2012.
//! In: a task whose system is a product with an automaton, and the acceptance sets that each action is in. Out: the
//! outcome, and a lasso, if there is an accepting cycle. The paper's acceptance is on states, by one set; here it is
//! generalised and on transitions.
//!
//! # Requirements
//! As those of [`run_accepting`](crate::run_accepting); the store takes insertions of several threads at once, in any
//! order, and recalls a state as soon as an insertion has returned its id.
//!
//! # Guarantees
//! With an exact store: if the search ends without a limit and without a lasso, no path is accepted. It ends when a
//! thread has found a cycle, or all have nothing more to visit. The lasso has been replayed, closes, and its cycle takes a
//! transition of each set. Which cycle is found depends on timing; whether there is one does not. States and edges are
//! counted once, whoever visits them.
//!
//! # Nodes
//! The acceptance sets are waited for in turn. A *node* is a state and a *level*, the number of sets that have been seen
//! since the last turn. An edge that is in the sets `i`, `i + 1` … takes level `i` beyond them; one that is beyond the
//! last begins a turn at level 0 and is *accepting*. A path is accepted if and only if it has infinitely many accepting
//! edges: each turn takes an edge of every set, and while all sets are met infinitely often, no level is kept for ever.
//! Without sets every edge is accepting. Edges between states that [never](Acceptance::recurs) are on an accepting cycle
//! do not count as accepting.
//!
//! The paper marks nodes, so each node `s` with accepting edges is given a second one, its *half* `s⁺`:
//! ```text
//!        ┌─▶ t          s keeps all its edges, accepting or not, and leads to s⁺ as its last successor;
//!     s ─┼─▶ u          s⁺ has the accepting edges of s, and is the accepting node of the paper
//!        └─▶ s⁺ ─▶ u
//! ```
//! A path with infinitely many halves takes infinitely many accepting edges, and one that takes infinitely many can take
//! them through halves; so the paper's theorem for this graph is the guarantee above. When `s⁺` is visited, all its
//! successors have been looked at already, as those of `s`; so a half needs no visit of its own.
//!
//! # The search
//! ```text
//! blue(s):  s.cyan := true                          red(s):  R := R ∪ {s}
//!           for t in shuffled successors of s:               for t in successors of s:
//!               if t is neither cyan nor blue: blue(t)           if t is cyan: report a cycle
//!           if s has a half that is not blue:                    if t is neither in R nor red: red(t)
//!               s⁺.blue := true; R := {}; red(s⁺)            (s ∈ R has its half in R, unless that is red)
//!               await the other halves in R to be red
//!               all in R become red
//!           s.blue := true; s.cyan := false
//! ```
//! Cyan and membership in R belong to a thread, blue and red are shared. The paper proves that nothing waits for ever and
//! that no cycle is missed because other threads colour states: a half that somebody's red search has met becomes red
//! only after its own red search, so what is red is never on a cycle with a half whose red search is still to come. An
//! accepting edge to a cyan node closes a cycle at once.
//!
//! # Layout in memory
//! ```text
//! shared value, one a level     [ BLUE | RED | half BLUE | half RED ]
//! value of a thread, the same   [ CYAN | IN_R ]
//! and one bit a state           [ counted ]
//! ```
//! With one acceptance set and two threads that is a byte and a bit a state; and what is on each thread's stacks.
//!
//! # Layouts that widen
//! States are recalled, expanded and inserted under a lock that the threads share. One that meets a layout that is too
//! narrow takes the lock alone, widens system and store, and all expand their states anew by their ids.

use crate::accepting::{Acceptance, Accepted, Among, Ids, among, pop};
use crate::path::{initial_number, leading_to};
use crate::run::{Finding, Plan, Run};
use crate::{Task, Threads};
use deltamark_core::{
    Action, Control, Grant, Insert, Numbers, Recall, Slot, Snapshot, StateId, States, Stop, Store, System, Trace,
    Values, Widen,
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, RwLock};

const BLUE: u64 = 1;
const RED: u64 = 2;
const HALF_BLUE: u64 = 4;
const HALF_RED: u64 = 8;

const CYAN: u64 = 1;
const IN_R: u64 = 2;

/// Searches for an accepting cycle, by several threads.
///
/// # Panics
/// If the store is [unfit](crate::unfit), if there is fairness, and when a trace does not replay: a bug of the search,
/// the store or the system.
pub fn run_cndfs<'a>(task: Task<'a>, acceptance: &'a Acceptance<'a>, threads: Threads) -> Accepted {
    assert!(acceptance.fairness.is_none(), "fair cycles are looked for in components");
    let Task { system, store, control, .. } = task;
    let attached = store.attached().expect("a store that serves this search gives states ids");
    let sets: Vec<u64> = (0..64).map(|bit| 1 << bit).filter(|set| acceptance.all & set != 0).collect();
    let levels = sets.len().max(1);
    let colours = Colours {
        sets,
        shared: (0..levels).map(|_| attached.values(4)).collect(),
        counted: attached.values(1),
        gate: RwLock::new(0),
        answering: Mutex::new(()),
        over: AtomicBool::new(false),
        end: Mutex::new(None),
    };
    let plan = Plan::new(task);
    let count = threads.count.max(1);
    let worker = |number: usize| Worker {
        number,
        run: Run::new(plan.clone()),
        colours: &colours,
        own: (0..levels).map(|_| attached.values(2)).collect(),
        of: acceptance.of,
        recurs: acceptance.recurs,
        blue: NodePath::default(),
        red: NodePath::default(),
        reds: NodeList::default(),
        halves: NodeList::default(),
        turn: 0,
        wide: (Grant::new(&control.budget), 0),
    };
    let mut first = worker(0);
    let mut roots = Vec::new();
    if let Err(stop) = first.run.begin(&mut Ids, &mut roots) {
        return Accepted { outcome: first.run.finish(Some(stop)), lasso: None };
    }
    let roots: Vec<StateId> = roots.into_iter().map(|root| root.id).collect();
    let others = std::thread::scope(|scope| {
        let (roots, worker) = (&roots, &worker);
        let spawn = |number: usize| {
            let builder = std::thread::Builder::new().name(format!("cndfs {number}"));
            let work = move || {
                let mut worker = worker(number);
                worker.work(roots);
                worker
            };
            // A system that has no thread to give lets us go on with those we have.
            builder.spawn_scoped(scope, work).ok()
        };
        let others: Vec<_> = (1..count).filter_map(spawn).collect();
        first.work(roots);
        // The first thread looks at the clock until all are done.
        let mut rounds = 0;
        while others.iter().any(|other| !other.is_finished()) {
            if let Err(end) = first.poll() {
                colours.end(end);
                break;
            }
            pause(rounds);
            rounds += 1;
        }
        others.into_iter().map(|other| other.join().expect("a thread that failed says why")).collect::<Vec<_>>()
    });
    let end = colours.end.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut workers: Vec<Worker<'_, '_>> = std::iter::once(first).chain(others).collect();
    let (stop, lasso) = match end {
        Some(End::Cycle { number, to }) => {
            let place = workers.iter().position(|worker| worker.number == number).expect("who found it is there");
            (Some(Stop::Answered), Some(workers[place].lasso(to, acceptance, (system, store, control))))
        }
        Some(End::Stop(stop)) => (Some(stop), None),
        // All have visited everything. One alone does not suffice: what it has skipped may be on the path of another.
        Some(End::Other) | None => (None, None),
    };
    let mut rest = workers.into_iter().map(|worker| worker.run);
    let mut run = rest.next().expect("the first thread has worked");
    rest.for_each(|other| run.absorb(other));
    Accepted { outcome: run.finish(stop), lasso }
}

fn recall(store: &dyn Store) -> &dyn Recall {
    store.recall().expect("a store that serves this search recalls states")
}

/// Why a thread ends before it has visited everything.
enum End {
    /// Another thread has said why.
    Other,
    /// This thread's paths, and an edge from their end back to this place of the blue one, close a cycle.
    Cycle {
        number: usize,
        to: usize,
    },
    Stop(Stop),
}

/// What all threads share.
struct Colours {
    /// The acceptance sets in their order.
    sets: Vec<u64>,
    /// By level.
    shared: Vec<Values>,
    /// Whether a state was expanded and counted.
    counted: Values,
    /// How often the layout was widened.
    gate: RwLock<u64>,
    /// Held by who records the answer of a property.
    answering: Mutex<()>,
    /// Whether there is an end.
    over: AtomicBool,
    end: Mutex<Option<End>>,
}

impl Colours {
    /// All threads end, unless they do already.
    fn end(&self, why: End) {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.over.store(true, Relaxed);
    }
}

/// A state and a level.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node {
    id: StateId,
    level: usize,
}

/// Nodes, in as few bits as they need.
#[derive(Default)]
struct NodeList {
    ids: Numbers,
    levels: Numbers,
}

impl NodeList {
    fn push(&mut self, node: Node) {
        self.ids.push(node.id.get());
        self.levels.push(node.level as u64);
    }

    fn pop(&mut self) -> Option<Node> {
        let (id, level) = (pop(&mut self.ids)?, pop(&mut self.levels)?);
        Some(Node { id: StateId::new(id), level: level as usize })
    }

    fn get(&self, place: usize) -> Node {
        Node { id: StateId::new(self.ids.get(place)), level: self.levels.get(place) as usize }
    }

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn held_bytes(&self) -> u64 {
        self.ids.held_bytes() + self.levels.held_bytes()
    }

    fn growth(&self, more: usize, largest: u64, levels: u64) -> u64 {
        self.ids.growth(more, largest) + self.levels.growth(more, levels)
    }
}

/// A path of a depth-first search: its nodes, and for each the successors that are still to be looked at.
#[derive(Default)]
struct NodePath {
    nodes: NodeList,
    /// Of each node where its successors begin in `pending`, and whether it has a half.
    begins: Numbers,
    halves: Numbers,
    pending: NodeList,
}

impl NodePath {
    fn push(&mut self, node: Node) {
        self.nodes.push(node);
        self.begins.push(self.pending.len() as u64);
        self.halves.push(0);
    }

    /// The last node gets a half.
    fn mark_half(&mut self) {
        pop(&mut self.halves);
        self.halves.push(1);
    }

    /// The next successor of the last node, if there is one.
    fn next(&mut self) -> Option<Node> {
        let begin = self.begins.last()?;
        if self.pending.len() as u64 > begin { self.pending.pop() } else { None }
    }

    /// Removes the last node; returns it, and whether it has a half.
    fn pop(&mut self) -> Option<(Node, bool)> {
        pop(&mut self.begins);
        let half = pop(&mut self.halves) == Some(1);
        Some((self.nodes.pop()?, half))
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn held_bytes(&self) -> u64 {
        let lists = self.begins.held_bytes() + self.halves.held_bytes();
        lists + self.nodes.held_bytes() + self.pending.held_bytes()
    }

    /// The bytes that a node more takes, with this many successors.
    fn growth(&self, more: usize, ids: u64, levels: u64) -> u64 {
        let waiting = (self.pending.len() + more) as u64;
        let node = self.nodes.growth(1, ids, levels) + self.begins.growth(1, waiting) + self.halves.growth(1, 1);
        node + self.pending.growth(more, ids, levels)
    }
}

/// One thread.
struct Worker<'c, 'a> {
    number: usize,
    run: Run<'a>,
    colours: &'c Colours,
    /// By level.
    own: Vec<Values>,
    /// Those of the [`Acceptance`].
    of: &'a (dyn Fn(Action) -> u64 + Sync),
    recurs: &'a (dyn Fn(&[Slot]) -> bool + Sync),
    blue: NodePath,
    red: NodePath,
    /// R: its nodes, and those of them whose half is in it.
    reds: NodeList,
    halves: NodeList,
    /// How many nodes were visited, for the order of successors.
    turn: u64,
    /// Room for this many successors of one node.
    wide: (Grant, usize),
}

/// Gives other threads time.
fn pause(rounds: u32) {
    match rounds {
        0..64 => std::hint::spin_loop(),
        64..256 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}

/// A successor of a node that was expanded.
struct Edge {
    to: Node,
    accepting: bool,
}

impl<'a> Worker<'_, 'a> {
    /// Searches until there is an end.
    fn work(&mut self, roots: &[StateId]) {
        let searched = roots.iter().try_for_each(|&id| {
            let root = Node { id, level: 0 };
            if self.is_open(root) { self.search(root) } else { Ok(()) }
        });
        if let Err(end) = searched {
            self.colours.end(end);
        }
    }

    /// What others have made of a node.
    fn shared(&self, node: Node) -> u64 {
        self.colours.shared[node.level].get(node.id)
    }

    fn own(&self, node: Node) -> u64 {
        self.own[node.level].get(node.id)
    }

    /// Adds to the colours that all threads see; returns those before.
    fn share(&self, node: Node, colours: u64) -> Result<u64, End> {
        let add = |old: u64| (old & colours != colours).then_some(old | colours);
        self.colours.shared[node.level].update(node.id, add).ok_or_else(|| self.full())
    }

    fn set_own(&self, node: Node, value: u64) -> Result<(), End> {
        self.own[node.level].set(node.id, value).map(drop).ok_or_else(|| self.full())
    }

    fn full(&self) -> End {
        End::Stop(self.run.control().stop_when_full())
    }

    /// Whether the blue search has to visit a node.
    fn is_open(&self, node: Node) -> bool {
        self.own(node) & CYAN == 0 && self.shared(node) & BLUE == 0
    }

    /// The blue search from a root.
    fn search(&mut self, root: Node) -> Result<(), End> {
        self.visit(root)?;
        while self.blue.len() > 0 {
            if let Some(next) = self.blue.next() {
                if self.is_open(next) {
                    self.visit(next)?;
                }
                continue;
            }
            let last = self.blue.len() - 1;
            let (node, half) = (self.blue.nodes.get(last), self.blue.halves.get(last) == 1);
            if half && self.share(node, HALF_BLUE)? & HALF_BLUE == 0 {
                self.search_red(node)?;
            }
            self.share(node, BLUE)?;
            self.set_own(node, 0)?;
            self.blue.pop();
        }
        Ok(())
    }

    /// A node comes onto the blue path.
    fn visit(&mut self, node: Node) -> Result<(), End> {
        self.set_own(node, CYAN)?;
        self.blue.push(node);
        let depth = self.blue.len() as u64 - 1;
        self.run.statistics.depth = self.run.statistics.depth.max(depth);
        self.poll()?;
        let mut edges = self.edges(node, true)?;
        self.make_room(edges.len())?;
        self.shuffle(&mut edges);
        if edges.iter().any(|edge| edge.accepting) {
            self.blue.mark_half();
        }
        for Edge { to, accepting } in edges {
            if self.own(to) & CYAN != 0 {
                if accepting {
                    return Err(self.cycle(to));
                }
            } else if self.shared(to) & BLUE == 0 {
                self.blue.pending.push(to);
            }
        }
        Ok(())
    }

    /// The red search from a node's half, and what it leaves.
    fn search_red(&mut self, seed: Node) -> Result<(), End> {
        let edges = self.edges(seed, false)?;
        self.make_room(edges.len())?;
        self.red.push(seed);
        for Edge { to, .. } in edges.into_iter().filter(|edge| edge.accepting) {
            self.look_red(to)?;
        }
        while self.red.len() > 0 {
            let Some(next) = self.red.next() else {
                self.red.pop();
                continue;
            };
            if self.own(next) & IN_R != 0 || self.shared(next) & RED != 0 {
                continue;
            }
            self.red.push(next);
            self.poll()?;
            let edges = self.edges(next, false)?;
            self.make_room(edges.len())?;
            self.set_own(next, IN_R)?;
            self.reds.push(next);
            if edges.iter().any(|edge| edge.accepting) && self.shared(next) & HALF_RED == 0 {
                self.halves.push(next);
            }
            for Edge { to, .. } in edges {
                self.look_red(to)?;
            }
        }
        while let Some(other) = self.halves.pop() {
            let mut rounds = 0;
            while self.shared(other) & HALF_RED == 0 {
                self.wait(rounds)?;
                rounds += 1;
            }
        }
        while let Some(node) = self.reds.pop() {
            self.share(node, RED)?;
            self.set_own(node, 0)?;
        }
        self.share(seed, HALF_RED)?;
        Ok(())
    }

    /// The red search has an edge to a node.
    fn look_red(&mut self, to: Node) -> Result<(), End> {
        let own = self.own(to);
        if own & CYAN != 0 {
            return Err(self.cycle(to));
        }
        if own & IN_R == 0 && self.shared(to) & RED == 0 {
            self.red.pending.push(to);
        }
        Ok(())
    }

    /// An edge to a node of the blue path closes an accepting cycle.
    fn cycle(&self, to: Node) -> End {
        let place = (0..self.blue.len()).find(|&place| self.blue.nodes.get(place) == to);
        End::Cycle { number: self.number, to: place.expect("a cyan node is on the path") }
    }

    /// Waits a moment for another thread.
    fn wait(&self, rounds: u32) -> Result<(), End> {
        if self.colours.over.load(Relaxed) {
            return Err(End::Other);
        }
        self.run.control().ask().map_err(End::Stop)?;
        pause(rounds);
        Ok(())
    }

    /// Whether the search goes on.
    fn poll(&mut self) -> Result<(), End> {
        if self.colours.over.load(Relaxed) {
            // Whoever ended it has said why.
            return Err(End::Other);
        }
        let bytes = self.held_bytes();
        if !self.run.frontier_holds(bytes) {
            return Err(End::Stop(Stop::Memory));
        }
        if self.number > 0 {
            // The first thread looks at the clock.
            return if self.run.is_answered() { Err(End::Stop(Stop::Answered)) } else { Ok(()) };
        }
        let waiting = (self.blue.pending.len() + self.blue.len()) as u64;
        let snapshot = |run: &Run<'_>| Snapshot { frontier: waiting, frontier_bytes: bytes, ..run.snapshot() };
        self.run.check(snapshot).map_or(Ok(()), |stop| Err(End::Stop(stop)))
    }

    fn held_bytes(&self) -> u64 {
        self.blue.held_bytes() + self.red.held_bytes() + self.reds.held_bytes() + self.halves.held_bytes()
    }

    /// Asks the budget for room for a node and its successors.
    fn make_room(&mut self, more: usize) -> Result<(), End> {
        let ids = self.run.store.len() + more as u64;
        let levels = self.own.len() as u64;
        let mut growth = self.blue.growth(more, ids, levels) + self.red.growth(more, ids, levels);
        growth += self.reds.growth(1, ids, levels) + self.halves.growth(1, ids, levels);
        let granted = growth == 0 || self.run.frontier_holds(self.held_bytes() + growth);
        if granted { Ok(()) } else { Err(End::Stop(Stop::Memory)) }
    }

    /// The successors of a node, which are in the store then. The blue search looks at properties too.
    fn edges(&mut self, node: Node, is_blue: bool) -> Result<Vec<Edge>, End> {
        let colours = self.colours;
        let mut gate = colours.gate.read().unwrap_or_else(PoisonError::into_inner);
        while self.expand(node.id).is_err() {
            let widened = *gate;
            drop(gate);
            self.widen(widened)?;
            gate = colours.gate.read().unwrap_or_else(PoisonError::into_inner);
        }
        self.run.batch.stop().map_or(Ok(()), |stop| Err(End::Stop(stop)))?;
        if is_blue {
            let findings = self.run.findings();
            if !findings.is_empty() {
                self.answer(findings, node.id);
            }
        }
        self.run.insert().map_err(End::Stop)?;
        if colours.counted.update(node.id, |counted| (counted == 0).then_some(1)).ok_or_else(|| self.full())? == 0 {
            self.run.tally();
        }
        let (grant, room) = &mut self.wide;
        let more = self.run.answers.len().saturating_sub(*room);
        if more > 0 {
            if !grant.ask((more * size_of::<Edge>()) as u64) {
                return Err(End::Stop(Stop::Memory));
            }
            *room += more;
        }
        let Run { batch, answers, block, .. } = &self.run;
        let recurs = (self.recurs)(block.state(0));
        let edge = |(index, answer): (usize, &Insert)| {
            let (Insert::New(id) | Insert::Seen(id)) = *answer else {
                unreachable!("what was inserted as a whole has ids")
            };
            let (level, turns) = self.moved((self.of)(batch.action(index)), node.level);
            let accepting = turns && recurs && (self.recurs)(batch.target(index));
            Edge { to: Node { id, level }, accepting }
        };
        Ok(answers.iter().enumerate().map(edge).collect())
    }

    /// The level behind an edge that is in these sets, and whether it ends a turn.
    fn moved(&self, sets: u64, level: usize) -> (usize, bool) {
        let order = &self.colours.sets;
        let beyond = (level..order.len()).find(|&level| sets & order[level] == 0);
        beyond.map_or((0, true), |level| (level, false))
    }

    /// Fills the batch with the successors of a state. The gate is open.
    fn expand(&mut self, id: StateId) -> Result<(), Widen> {
        let Run { system, store, store_scratch, block, .. } = &mut self.run;
        block.reset(system.width());
        block.fill([id], |ids, states| recall(*store).recall(store_scratch, ids, states));
        self.run.expand()
    }

    /// Widens the layout, unless another thread has since it was widened this often.
    fn widen(&mut self, widened: u64) -> Result<(), End> {
        let mut gate = self.colours.gate.write().unwrap_or_else(PoisonError::into_inner);
        if *gate == widened {
            self.run.widen(&mut Ids).map_err(End::Stop)?;
            *gate += 1;
        }
        Ok(())
    }

    /// Records the answers to properties that the current block gives. The gate is open.
    fn answer(&mut self, findings: Vec<Finding>, id: StateId) {
        let _guard = self.colours.answering.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in findings {
            if self.run.is_settled(&finding) {
                continue;
            }
            let trace = self.path(self.blue.len()).ok();
            self.expand(id).expect("successors that fitted the layout still do");
            let state = self.run.block.state(0).to_vec();
            self.run.answer(finding, trace, &state);
        }
    }

    /// Another order for each thread and node, so that threads part.
    fn shuffle(&mut self, edges: &mut [Edge]) {
        self.turn += 1;
        if self.number == 0 {
            // As depth-first by one thread: the last that waits is taken first.
            edges.reverse();
            return;
        }
        let mut random = deltamark_core::hash::mix(self.turn << 8 | self.number as u64);
        for place in (1..edges.len()).rev() {
            random = deltamark_core::hash::mix(random);
            edges.swap(place, (random % (place as u64 + 1)) as usize);
        }
    }

    fn state(&mut self, id: StateId) -> Vec<Slot> {
        let Run { system, store, store_scratch, .. } = &mut self.run;
        let mut states = States::new(system.width());
        recall(*store).recall(store_scratch, &[id], &mut states);
        states.get(0).to_vec()
    }

    /// The first `len` nodes of the blue path, as a trace. Uses the run's block and batch.
    fn path(&mut self, len: usize) -> Result<Trace, Stop> {
        let first = self.state(self.blue.nodes.get(0).id);
        let initial = initial_number(self.run.system, &mut self.run.system_scratch, &first);
        let mut actions: Vec<Action> = Vec::with_capacity(len);
        for place in 1..len {
            self.run.control().stop_without_memory().map_or(Ok(()), Err)?;
            let target = self.state(self.blue.nodes.get(place).id);
            self.expand(self.blue.nodes.get(place - 1).id).expect("successors that were stored fit the layout");
            self.run.batch.stop().map_or(Ok(()), Err)?;
            let (_, action) = leading_to(&self.run.batch, &target).expect("each state of a path leads to the next");
            actions.push(action);
        }
        Ok(Trace::path(initial, actions))
    }

    /// The lasso whose cycle is on the paths, from this place on. No other thread works any more.
    fn lasso(
        &mut self,
        to: usize,
        acceptance: &'a Acceptance<'a>,
        (system, store, control): (&'a dyn System, &'a dyn Store, &'a Control),
    ) -> Result<Trace, Stop> {
        let members = store.attached().expect("a store that serves this search gives states ids").values(1);
        let on_cycle = (to..self.blue.len()).map(|place| self.blue.nodes.get(place));
        for node in on_cycle.chain((0..self.red.len()).map(|place| self.red.nodes.get(place))) {
            members.set(node.id, 1).ok_or(Stop::Memory)?;
        }
        let Trace { initial, actions: mut path, .. } = self.path(to + 1)?;
        let start = path.len();
        let task = Task { system, store, properties: &[], control, explore_all: true, observer: None };
        let is_member = |id: StateId| members.get(id) == 1;
        let mut from = std::iter::once(self.blue.nodes.get(to).id);
        let Among { actions, start: inside, .. } = among(task, acceptance, &is_member, &mut from)?;
        path.extend(actions);
        let trace = Trace::lasso(initial, path, start + inside);
        acceptance.replay(&trace, system, control)?;
        Ok(trace)
    }
}
