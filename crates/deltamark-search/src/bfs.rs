//! Breadth-first search.
//!
//! # What it needs
//! A store of any kind. What the frontier holds depends on what the store can do:
//!
//! | the store | the frontier | a trace comes from |
//! |---|---|---|
//! | numbers states 0, 1, 2 … and recalls them, or those of the level in hand | two numbers: the level is a range of ids | the store, or walking back through the levels |
//! | recalls states by ids of its own | ids, packed | a log of back edges, a few bytes a state |
//! | does not recall states | full states | the same log |
//!
//! # What it guarantees
//! Every reachable state is expanded once (with an exact store), level by level, so traces
//! are shortest and `depth` is the largest distance. Counts do not depend on the store.

use crate::Task;
use crate::arrivals::Arrivals;
use crate::log::Log;
use crate::numbers::Numbers;
use crate::path::Levels;
use crate::run::{Recode, Run, Step};
use deltamark_core::{
    Action, BLOCK, Guarantee, Independence, Insert, Outcome, Recall, Recoding, Slot, Snapshot, StateId, States, Stop,
    Trace, Widen,
};

/// States found and not yet expanded: the rest of a level, and the next one.
enum Queue<'a> {
    /// Ids are numbered in the order found: `next..end` is the rest of the level.
    Range {
        recall: &'a dyn Recall,
        next: u64,
        end: u64,
    },
    Ids {
        recall: &'a dyn Recall,
        level: Numbers,
        next: usize,
        later: Numbers,
    },
    States {
        level: States,
        next: usize,
        later: States,
    },
}

struct Frontier<'a> {
    queue: Queue<'a>,
    /// Ids at which levels begin, for `Queue::Range`.
    starts: Numbers,
    /// Back edges, for the others.
    log: Log,
    /// How the states of the level were reached, if the system knows what can be left out then.
    independence: Option<(&'a dyn Independence, Arrivals)>,
    /// States found before the level in hand, and before the one under construction.
    before_hand: u64,
    found: u64,
    /// The actions by which the states of the block were reached.
    arrivals: Vec<Action>,
    /// The number, in the order found, of the next state to expand.
    taken: u64,
}

impl<'a> Frontier<'a> {
    fn new(run: &Run<'a>) -> Self {
        let (recall, width) = (run.store.recall(), run.system.width());
        let queue = match recall {
            Some(recall) if recall.sequential() => Queue::Range { recall, next: 0, end: 0 },
            Some(recall) => Queue::Ids { recall, level: Numbers::new(), next: 0, later: Numbers::new() },
            None => Queue::States { level: States::new(width), next: 0, later: States::new(width) },
        };
        // A store that takes states for others may lose the one that would have yielded a successor,
        // and an observer wants to see all of them.
        let independence =
            run.system.independence().filter(|_| !run.observed() && matches!(run.store.guarantee(), Guarantee::Exact));
        let independence = independence.map(|known| (known, Arrivals::new(run.system.action_count())));
        Frontier {
            queue,
            starts: Numbers::new(),
            log: Log::default(),
            independence,
            before_hand: 0,
            found: 0,
            arrivals: Vec::new(),
            taken: 0,
        }
    }

    /// Notes how state `place` of the level under construction was reached.
    fn arrive(&mut self, place: u64, action: Action) {
        if let Some((_, arrivals)) = &mut self.independence {
            arrivals.set(place, action);
        }
    }

    /// Notes a new state; `parent` is its parent's number in the order found.
    fn push(&mut self, id: StateId, state: &[Slot], parent: u64, action: Action) {
        match &mut self.queue {
            Queue::Range { .. } => return,
            Queue::Ids { later, .. } => later.push(id.get()),
            Queue::States { later, .. } => later.push(state),
        }
        self.log.push(parent, action);
    }

    /// Notes how the new states of a batch were reached; there were `before` states before it.
    fn note_arrivals(&mut self, run: &Run<'_>, before: u64) {
        let Some((_, arrivals)) = &mut self.independence else { return };
        let in_order = matches!(self.queue, Queue::Range { .. });
        let mut place = before - self.found;
        for (answer, &action) in run.answers.iter().zip(run.batch.actions()) {
            match answer {
                Insert::New(id) if in_order => arrivals.set(id.get() - self.found, action),
                Insert::New(_) => {
                    arrivals.set(place, action);
                    place += 1;
                }
                Insert::Seen(id) if in_order && id.get() >= self.found && *id != StateId::NAMELESS => {
                    arrivals.lower(id.get() - self.found, action);
                }
                _ => {}
            }
        }
    }

    /// Goes on to the next level, of which `len` is the end. Says whether it has states.
    fn next_level(&mut self, len: u64) -> bool {
        self.before_hand = self.found;
        self.found = len;
        if let Some((_, arrivals)) = &mut self.independence {
            arrivals.next_level();
        }
        match &mut self.queue {
            Queue::Range { next, end, .. } => {
                *end = len;
                self.starts.push(*next);
                *next < *end
            }
            Queue::Ids { level, next, later, .. } => {
                std::mem::swap(level, later);
                later.truncate(0);
                *next = 0;
                level.len() > 0
            }
            Queue::States { level, next, later } => {
                std::mem::swap(level, later);
                later.clear();
                *next = 0;
                !level.is_empty()
            }
        }
    }

    /// Fills the run's block with the next states of the level, `most` at most.
    fn take(&mut self, run: &mut Run<'_>, most: usize) -> bool {
        let count = match &mut self.queue {
            Queue::Range { next, end, .. } => {
                let count = (*end - *next).min(most as u64) as usize;
                *next += count as u64;
                count
            }
            Queue::Ids { level, next, .. } => {
                let count = (level.len() - *next).min(most);
                *next += count;
                count
            }
            Queue::States { level, next, .. } => {
                let count = (level.len() - *next).min(most);
                *next += count;
                count
            }
        };
        self.taken += count as u64;
        self.fill(run, count);
        count > 0
    }

    /// Fills the run's block with the `count` states that were taken last.
    fn fill(&self, run: &mut Run<'_>, count: usize) {
        run.block.reset(run.system.width());
        match &self.queue {
            Queue::Range { recall, next, .. } => {
                let range = *next - count as u64..*next;
                let ids = range.clone().map(StateId::new);
                run.block.fill(ids, |_, states| recall.recall_range(&mut run.store_scratch, range, states));
            }
            Queue::Ids { recall, level, next, .. } => {
                let ids = (*next - count..*next).map(|index| StateId::new(level.get(index)));
                run.block.fill(ids, |ids, states| recall.recall(&mut run.store_scratch, ids, states));
            }
            Queue::States { level, next, .. } => {
                for index in *next - count..*next {
                    run.block.push(StateId::NAMELESS, level.get(index));
                }
            }
        }
    }

    /// Fills the batch with the successors of the block, which was taken last.
    fn expand(&mut self, run: &mut Run<'_>, leave_out: bool) -> Result<(), Widen> {
        let Some((independence, arrivals)) = self.independence.as_ref().filter(|_| leave_out) else {
            return run.expand();
        };
        let end = self.taken - self.before_hand;
        self.arrivals.clear();
        self.arrivals.extend((end - run.block.len() as u64..end).map(|place| arrivals.get(place)));
        run.expand_level(*independence, &self.arrivals)
    }

    /// Asks the budget for room for the successors of a batch, where they are kept in full.
    fn may_take(&self, run: &mut Run<'_>) -> bool {
        // Ids are few bytes in small pieces: they are counted when there are more.
        let Queue::States { later, .. } = &self.queue else { return true };
        let more = run.batch.len();
        let growth = later.growth(more, run.batch.targets().slots().len()) + self.log.growth(more);
        growth == 0 || run.frontier_holds(self.held_bytes() + growth)
    }

    fn held_bytes(&self) -> u64 {
        let queue = match &self.queue {
            Queue::Range { .. } => 0,
            Queue::Ids { level, later, .. } => level.held_bytes() + later.held_bytes(),
            Queue::States { level, later, .. } => level.held_bytes() + later.held_bytes(),
        };
        let arrivals = self.independence.as_ref().map_or(0, |(_, arrivals)| arrivals.held_bytes());
        queue + self.log.held_bytes() + self.starts.held_bytes() + arrivals
    }

    /// A shortest path to state `index` of the block.
    fn path(&self, run: &mut Run<'_>, index: usize) -> Trace {
        if let Queue::Range { recall, .. } = self.queue {
            if let Some(trace) = run.store.path(&mut run.store_scratch, run.block.id(index)) {
                return trace;
            }
            let levels = Levels { system: run.system, store: run.store, recall, starts: &self.starts };
            return levels.path(run.block.id(index));
        }
        let mut number = self.taken - run.block.len() as u64 + index as u64;
        let mut actions = Vec::new();
        loop {
            let (parent, action) = self.log.entry(number);
            if parent == number {
                actions.reverse();
                return Trace { initial: action.0, actions, ends_in_fault: false };
            }
            actions.push(action);
            number = parent;
        }
    }
}

impl Recode for Frontier<'_> {
    fn recode(&mut self, recoding: &Recoding) {
        if let Queue::States { level, later, .. } = &mut self.queue {
            recoding.translate_all(level);
            recoding.translate_all(later);
        }
    }
}

/// Searches breadth-first.
pub(crate) fn run(task: Task<'_>) -> Outcome {
    let mut run = Run::new(task);
    let mut frontier = Frontier::new(&run);
    let stop = levels(&mut run, &mut frontier);
    run.finish(stop)
}

fn levels(run: &mut Run<'_>, frontier: &mut Frontier<'_>) -> Option<Stop> {
    let mut roots = Vec::new();
    let begun = run.begin(frontier, &mut roots);
    for (number, root) in roots.iter().enumerate() {
        frontier.push(root.id, &root.state, number as u64, root.action);
        frontier.arrive(number as u64, Action::NONE);
    }
    if let Step::Stop(stop) = begun {
        return Some(stop);
    }
    let mut depth = 0;
    loop {
        if !run.store.end_level() {
            return Some(Stop::Memory);
        }
        if !frontier.next_level(run.statistics.states) {
            return None;
        }
        run.statistics.depth = depth;
        let stop = if depth < run.depth_limit() { level(run, frontier) } else { last_level(run, frontier) };
        if stop.is_some() {
            return stop;
        }
        depth += 1;
    }
}

/// Expands a level.
fn level(run: &mut Run<'_>, frontier: &mut Frontier<'_>) -> Option<Stop> {
    loop {
        if let Some(stop) = pause(run, frontier) {
            return Some(stop);
        }
        let most = run.block_size();
        if !frontier.take(run, most) {
            return None;
        }
        if let Step::Stop(stop) = expand(run, frontier, true) {
            return Some(stop);
        }
        // Before anything is inserted: what is expanded is looked at, even if the run ends here.
        answer(run, frontier);
        if !frontier.may_take(run) {
            return Some(Stop::Memory);
        }
        let before = run.statistics.states;
        let step = run.insert();
        run.statistics.states = run.store.len();
        frontier.note_arrivals(run, before);
        if !matches!(frontier.queue, Queue::Range { .. }) {
            let first = frontier.taken - run.block.len() as u64;
            for (index, answer) in run.answers.iter().enumerate() {
                if let Insert::New(id) = answer {
                    let parent = first + run.batch.source(index) as u64;
                    frontier.push(*id, run.batch.target(index), parent, run.batch.action(index));
                }
            }
        }
        if let Step::Stop(stop) = step {
            return Some(stop);
        }
        run.count();
    }
}

/// Looks at the states of the last level that the depth limit allows. Their successors are
/// not inserted; if all of them are known already, the search is complete all the same.
fn last_level(run: &mut Run<'_>, frontier: &mut Frontier<'_>) -> Option<Stop> {
    let mut beyond = false;
    loop {
        if let Some(stop) = pause(run, frontier) {
            return Some(stop);
        }
        if !frontier.take(run, BLOCK) {
            return beyond.then_some(Stop::Depth);
        }
        if let Step::Stop(stop) = expand(run, frontier, false) {
            return Some(stop);
        }
        answer(run, frontier);
        run.answers.clear();
        for index in 0..run.batch.len() {
            let (state, hash) = (run.batch.target(index), run.batch.hash(index));
            match run.store.find(&mut run.store_scratch, state, hash) {
                Some(id) => run.answers.push(Insert::Seen(id)),
                None => beyond = true,
            }
        }
        if run.answers.len() == run.batch.len() {
            run.count();
        }
    }
}

fn expand(run: &mut Run<'_>, frontier: &mut Frontier<'_>, leave_out: bool) -> Step {
    let count = run.block.len();
    while let Err(widen) = frontier.expand(run, leave_out) {
        if let Step::Stop(stop) = run.widen(widen, frontier) {
            return Step::Stop(stop);
        }
        frontier.fill(run, count);
    }
    Step::Done
}

fn answer(run: &mut Run<'_>, frontier: &Frontier<'_>) {
    for finding in run.findings() {
        let trace = frontier.path(run, finding.state);
        let state = run.block.state(finding.state).to_vec();
        run.answer(finding, trace, &state);
    }
}

/// Whether to end: limits, cancellation, answers.
fn pause(run: &mut Run<'_>, frontier: &Frontier<'_>) -> Option<Stop> {
    let bytes = frontier.held_bytes();
    if !run.frontier_holds(bytes) {
        return Some(Stop::Memory);
    }
    let found = run.statistics.states;
    run.check(|run| Snapshot {
        frontier: found - frontier.taken,
        frontier_bytes: bytes + run.store.frontier_bytes(),
        ..run.snapshot()
    })
}
