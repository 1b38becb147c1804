//! Accepting cycles by breadth-first passes, without a depth-first order: for several threads, and for stores that
//! recall states quickly in the order of their discovery alone.
//!
//! I. Černá, R. Pelánek, *Distributed Explicit Fair Cycle Detection (Set Based Approach)*, SPIN 2003: one way catch them
//! young, after K. Fisler, R. Fraer, G. Kamhi, M. Y. Vardi, Z. Yang, TACAS 2001. In: a task whose system is a product
//! with an automaton, and the acceptance sets of its actions. Out: the outcome, and a lasso, if there is an accepting
//! cycle. Acceptance is generalised and on transitions; predecessors are counted, so that each state is removed in time
//! in proportion to its edges.
//!
//! # Requirements
//! As those of [`run_accepting`](crate::run_accepting), but the order of insertion is by levels. With several threads
//! the store must be one that several threads share.
//!
//! # Guarantees
//! With an exact store: if no limit ends it, it finds a lasso if and only if some path is accepted. All states are
//! explored first, so a violation is not found before the end; a fault ends the exploration as it does elsewhere.
//!
//! # The passes
//! ```text
//! S := all reachable states
//! repeat, for each acceptance set F in turn:
//!     S := the states of S that an edge of F inside S leads to, and what they lead to inside S
//!     S := S without the states that have no predecessor in S, until all have one
//! until S is empty, or no pass of a whole turn has removed a state
//! ```
//!
//! # Proof
//! All states of an accepting component stay in S. If no pass removes a state, every state of S can be reached inside S
//! from an edge of each set (or, without sets, has a predecessor): a path backwards through edges of all sets in turn
//! never ends, so S has a cycle with edges of all of them.
//!
//! # Layout in memory
//! A byte a state, and the ids of those in S in as few bits as they need:
//! ```text
//! value   [ predecessors in S: 5 | EXPANDED | REACHED | OUT ]     those above 30 are counted in a value of 32 bits
//! ```
//! The first pass is the exploration itself: it marks states `OUT` as it expands them, and those that are reached are
//! listed. Later `OUT` are those that are not in S. A state's expansion counts for its successors if and only if the
//! state is `REACHED` by then. One that is reached later is expanded a second time: whoever sets `REACHED` finds out by
//! the same atomic update whether it was `EXPANDED`. So where a state is [never](Acceptance::recurs) on an accepting
//! cycle, it is expanded once altogether.

use crate::accepting::{Acceptance, Accepted, Among, among};
use crate::stored::{Expander, IdList, block, blocks, path_to};
use crate::{Observer, Task, Threads, bfs};
use deltamark_core::{
    Action, BLOCK, Batch, Block, Control, Insert, Slot, StateId, Stop, Store, System, Trace, Values, Verdict,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

const OUT: u64 = 1;
const REACHED: u64 = 2;
const EXPANDED: u64 = 4;
const ONE: u64 = 8;
/// States that a thread lists by itself before it adds them to a list that the budget knows of.
const AT_ONCE: usize = 1 << 10;
/// The count from which on [`Passes::more`] has the rest.
const MANY: u64 = 31;

/// Searches for an accepting cycle.
///
/// # Panics
/// If the store is [unfit](crate::unfit), if there is fairness, and when a trace does not replay: a bug of the search,
/// the store or the system.
pub fn run_owcty(task: Task<'_>, acceptance: &Acceptance<'_>, threads: Threads) -> Accepted {
    assert!(acceptance.fairness.is_none(), "fair cycles are looked for in components");
    let Task { system, store, properties, control, explore_all, observer } = task;
    let attached = store.attached().expect("a store that serves this search gives states ids");
    let passes = Passes {
        system,
        store,
        control,
        all: acceptance.all,
        of: acceptance.of,
        recurs: acceptance.recurs,
        threads,
        values: attached.values(8),
        more: attached.values(32),
    };
    let turn = passes.turn();
    let first = Mutex::new(Found::new(control));
    let sink =
        |block: &Block, batch: &Batch, answers: &[Insert]| passes.explored(block, batch, answers, turn[0], &first);
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let task = Task { system, store, properties, control, explore_all, observer };
    let mut outcome = bfs::run_into(task, threads, &sink);
    if outcome.stopped_by.is_some() {
        return Accepted { outcome, lasso: None };
    }
    let lasso = match passes.fixpoint(&turn, first.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        Ok(members) if members.is_empty() => None,
        Ok(members) => Some(passes.lasso(&members, acceptance)),
        Err(stop) => {
            outcome.stopped_by = Some(stop);
            // What holds of all states that were explored is not yet what was asked.
            outcome.properties.iter_mut().for_each(|found| found.verdict = Verdict::Unknown);
            None
        }
    };
    outcome.store_bytes = store.bytes();
    if lasso.is_some() {
        outcome.stopped_by = Some(Stop::Answered);
    }
    Accepted { outcome, lasso }
}

struct Passes<'a> {
    system: &'a dyn System,
    store: &'a dyn Store,
    control: &'a Control,
    /// Those of the [`Acceptance`].
    all: u64,
    of: &'a (dyn Fn(Action) -> u64 + Sync),
    recurs: &'a (dyn Fn(&[Slot]) -> bool + Sync),
    threads: Threads,
    values: Values,
    more: Values,
}

/// What a thread has found: states to be expanded in the next round, and states that stay.
struct Found {
    next: IdList,
    kept: IdList,
}

impl Found {
    fn new(control: &Control) -> Self {
        Found { next: IdList::new(control), kept: IdList::new(control) }
    }
}

impl Passes<'_> {
    /// The acceptance sets one after the other. Without sets every edge is good enough.
    fn turn(&self) -> Vec<u64> {
        let all = self.all;
        if all == 0 { vec![0] } else { (0..64).map(|bit| 1 << bit).filter(|set| all & set != 0).collect() }
    }

    /// The states that stay, after an exploration with the first set of the turn.
    fn fixpoint(&self, turn: &[u64], first: Found) -> Result<IdList, Stop> {
        let Found { next: late, kept: mut members } = first;
        append(&mut members, self.reached(late, turn[0], true)?)?;
        members = self.trimmed(members)?;
        let mut unchanged = 0;
        for &set in turn.iter().cycle().skip(1) {
            if members.is_empty() || unchanged == turn.len() {
                break;
            }
            let before = members.len();
            self.reset(&members)?;
            members = self.reached(members, set, false)?;
            members = self.trimmed(members)?;
            unchanged = if members.len() == before { unchanged + 1 } else { 0 };
        }
        Ok(members)
    }

    /// The first pass over a block of the exploration. Most states do not recur, and most edges change nothing.
    fn explored(
        &self,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
        set: u64,
        first: &Mutex<Found>,
    ) -> Result<(), Stop> {
        let (mut late, mut kept) = (Vec::new(), Vec::new());
        let ids = (0..block.len()).map(|index| (block.id(index), block.state(index)));
        let (reached, recurs) = self.begin_sources(ids, true, &mut kept)?;
        if recurs != 0 {
            let (mut last, mut sets) = (Action::NONE, 0);
            for (index, answer) in answers.iter().enumerate() {
                let source = batch.source(index);
                if recurs >> source & 1 == 0 || !(self.recurs)(batch.target(index)) {
                    continue;
                }
                let (Insert::New(target) | Insert::Seen(target)) = *answer else {
                    unreachable!("blocks are passed on when all their successors are in the store")
                };
                // Successors by one action often come together.
                if batch.action(index) != last {
                    (last, sets) = (batch.action(index), (self.of)(batch.action(index)));
                }
                let counts = reached >> source & 1 == 1;
                if (counts || set == 0 || sets & set != 0) && self.mark(target, counts, true)? {
                    late.push(target);
                    if late.len() == AT_ONCE {
                        let mut found = first.lock().unwrap_or_else(PoisonError::into_inner);
                        late.drain(..).try_for_each(|id| found.next.push(id))?;
                    }
                }
            }
        }
        if !(late.is_empty() && kept.is_empty()) {
            let mut found = first.lock().unwrap_or_else(PoisonError::into_inner);
            kept.into_iter().try_for_each(|id| found.kept.push(id))?;
            late.into_iter().try_for_each(|id| found.next.push(id))?;
        }
        Ok(())
    }

    /// The states of a block are expanded: which of them are reached, which get listed, and which recur, as bits.
    fn begin_sources<'s>(
        &self,
        states: impl Iterator<Item = (StateId, &'s [Slot])>,
        is_first: bool,
        kept: &mut Vec<StateId>,
    ) -> Result<(u64, u64), Stop> {
        let (mut reached, mut recurring) = (0u64, 0u64);
        let new = if is_first { EXPANDED | OUT } else { EXPANDED };
        for (index, (id, state)) in states.enumerate() {
            let old = self.change(id, |value| (value & new != new).then_some(value | new))?;
            recurring |= u64::from(!is_first || (self.recurs)(state)) << index;
            if old & REACHED != 0 {
                reached |= 1 << index;
                kept.push(id);
            }
        }
        Ok((reached, recurring))
    }

    /// An edge inside marks its target, and counts for it or not. Whether the target was expanded before it was reached.
    fn mark(&self, target: StateId, counts: bool, is_first: bool) -> Result<bool, Stop> {
        let old = self.change(target, |value| {
            if !is_first && value & OUT != 0 {
                return None;
            }
            let mut new = value | REACHED;
            if counts && value / ONE < MANY {
                new += ONE;
            }
            (new != value).then_some(new)
        })?;
        let member = is_first || old & OUT == 0;
        if counts && member && old / ONE >= MANY - 1 {
            self.more.update(target, |more| Some(more + 1)).ok_or(Stop::Memory)?;
        }
        Ok(member && old & (REACHED | EXPANDED) == EXPANDED)
    }

    /// Prepares the values of members for the next pass.
    fn reset(&self, members: &IdList) -> Result<(), Stop> {
        for id in members.iter() {
            self.control.ask()?;
            // Both have values, so this takes no memory.
            if self.values.set(id, 0).is_some_and(|value| value / ONE == MANY) {
                self.more.set(id, 0);
            }
        }
        Ok(())
    }

    /// Which members an edge of this set inside leads to, and what they lead to. Counts their predecessors among them.
    /// In the first pass all states are members, and the list are those that were reached after they were expanded.
    fn reached(&self, list: IdList, set: u64, is_first: bool) -> Result<IdList, Stop> {
        self.rounds(list, |expander, found| {
            let Expander { block, batch, targets, .. } = expander;
            let mut kept = Vec::new();
            let ids = (0..block.len()).map(|index| (block.id(index), block.state(index)));
            let (reached, recurs) = self.begin_sources(ids, is_first, &mut kept)?;
            kept.into_iter().try_for_each(|id| found.kept.push(id))?;
            for (index, &target) in targets.iter().enumerate() {
                let source = batch.source(index);
                let counts = reached >> source & 1 == 1;
                let good = counts || set == 0 || (self.of)(batch.action(index)) & set != 0;
                let inside = recurs >> source & 1 == 1 && (!is_first || (self.recurs)(batch.target(index)));
                if good && inside && self.mark(target, counts, is_first)? {
                    found.next.push(target)?;
                }
            }
            Ok(())
        })
    }

    /// The members that are left when those without predecessors are removed, one after the other.
    fn trimmed(&self, members: IdList) -> Result<IdList, Stop> {
        let mut removed = IdList::new(self.control);
        for id in members.iter() {
            self.control.ask()?;
            if self.values.get(id) / ONE == 0 {
                self.change(id, |_| Some(OUT))?;
                removed.push(id)?;
            }
        }
        if removed.is_empty() {
            return Ok(members);
        }
        self.rounds(removed, |expander, found| {
            for &target in &expander.targets {
                if self.loses_last(target)? {
                    found.next.push(target)?;
                }
            }
            Ok(())
        })?;
        let mut left = IdList::new(self.control);
        for id in members.iter() {
            self.control.ask()?;
            if self.values.get(id) & REACHED != 0 {
                left.push(id)?;
            }
        }
        Ok(left)
    }

    /// A state has one predecessor less. Whether that was the last one of a member, which is removed then.
    fn loses_last(&self, id: StateId) -> Result<bool, Stop> {
        loop {
            let old = self.change(id, |value| match value / ONE {
                _ if value & REACHED == 0 => None,
                1 => Some(OUT),
                MANY => None,
                0 => unreachable!("each predecessor was counted, and is removed once"),
                _ => Some(value - ONE),
            })?;
            if old & REACHED == 0 || old / ONE < MANY {
                return Ok(old & REACHED != 0 && old / ONE == 1);
            }
            match self.more.update(id, |more| more.checked_sub(1)) {
                None => return Err(Stop::Memory),
                // The thread that took the last one is about to say so.
                Some(0) => std::hint::spin_loop(),
                Some(1) => {
                    self.change(id, |value| Some(value - ONE))?;
                    return Ok(false);
                }
                Some(_) => return Ok(false),
            }
        }
    }

    /// Changes a state's value atomically, and returns the one before.
    fn change(&self, id: StateId, change: impl FnMut(u64) -> Option<u64>) -> Result<u64, Stop> {
        self.values.update(id, change).ok_or_else(|| self.control.stop_when_full())
    }

    /// Expands the states of a list, and those found on the way, until there are none; what was kept.
    fn rounds(
        &self,
        list: IdList,
        look: impl Fn(&mut Expander<'_>, &mut Found) -> Result<(), Stop> + Sync,
    ) -> Result<IdList, Stop> {
        let mut kept = IdList::new(self.control);
        let mut list = list;
        while !list.is_empty() {
            let (next_block, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
            let work = || {
                let mut expander = Expander::new(self.system, self.store, self.control);
                let mut found = Found::new(self.control);
                let mut step = || -> Result<bool, Stop> {
                    let number = next_block.fetch_add(1, Relaxed);
                    if number >= blocks(&list) || failed.load(Relaxed) {
                        return Ok(false);
                    }
                    self.control.ask()?;
                    expander.expand(block(&list, number))?;
                    look(&mut expander, &mut found)?;
                    Ok(true)
                };
                loop {
                    match step() {
                        Ok(true) => {}
                        Ok(false) => return Ok(found),
                        Err(stop) => {
                            failed.store(true, Relaxed);
                            return Err(stop);
                        }
                    }
                }
            };
            let worth = if (list.len() as u64) < self.threads.small { 1 } else { blocks(&list) };
            let count = self.threads.count.min(worth).max(1);
            let parts: Vec<Result<Found, Stop>> = std::thread::scope(|scope| {
                let spawn = |number| {
                    let builder = std::thread::Builder::new().name(format!("owcty {number}"));
                    // A system that has no thread to give lets us go on with those we have.
                    builder.spawn_scoped(scope, work).ok()
                };
                let others: Vec<_> = (1..count).filter_map(spawn).collect();
                let own = work();
                let joined = others.into_iter().map(|other| other.join().expect("a thread that failed says why"));
                std::iter::once(own).chain(joined).collect()
            });
            let mut next = IdList::new(self.control);
            for part in parts {
                let Found { next: more, kept: stays } = part?;
                append(&mut next, more)?;
                append(&mut kept, stays)?;
            }
            list = next;
        }
        Ok(kept)
    }

    /// A lasso, one of which is among the states that stay.
    fn lasso(&self, members: &IdList, acceptance: &Acceptance<'_>) -> Result<Trace, Stop> {
        let is_member = |id: StateId| self.values.get(id) & OUT == 0;
        let task = Task {
            system: self.system,
            store: self.store,
            properties: &[],
            control: self.control,
            explore_all: true,
            observer: None,
        };
        let Among { root, actions, start } = among(task, acceptance, &is_member, &mut members.iter())?;
        let Trace { initial, actions: mut path, .. } = path_to(root, self.system, self.store, self.control)?;
        let start = path.len() + start;
        path.extend(actions);
        let trace = Trace::lasso(initial, path, start);
        acceptance.replay(&trace, self.system, self.control)?;
        Ok(trace)
    }
}

/// Appends a list to another one.
fn append(list: &mut IdList, more: IdList) -> Result<(), Stop> {
    if list.is_empty() {
        *list = more;
        return Ok(());
    }
    more.iter().try_for_each(|id| list.push(id))
}

const _: () = assert!(BLOCK <= 64, "a word has a bit for each state of a block");
