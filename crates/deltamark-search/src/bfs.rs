//! Breadth-first search, by one thread or several.
//!
//! # Requirements
//! For one thread, any store. For several, a store with concurrent insertion that does not depend
//! on the order of the parents of a level. The frontier: see `frontier.rs`.
//!
//! # Guarantees
//! Every reachable state is expanded once (with an exact store), level by level, so traces are
//! shortest and `depth` is the largest distance. Counts depend neither on the store nor on the
//! number of threads; which of several states answers a property may, but not its distance. A run
//! that has all answers completes the level without inserting anything: its counts are those of all
//! states up to this distance, and of all edges that leave them. (If a limit ends the run, the
//! number of states depends on timing.)
//!
//! # The loop
//! ```text
//!            ┌──────── threads: claim a block, expand, insert, count ────────┐
//! level ─────┤                                                               ├── pause
//!            └───────────────────────────────────────────────────────────────┘     │
//!   next level ◀── end of the level ◀── answers, wider layouts, limits ◀───────────┘
//! ```
//! A level is divided into a contiguous range per thread. Threads claim blocks of their own range
//! by an atomic addition, and then steal from others. All threads pause at the end of the level,
//! and earlier if one of them has encountered a layout that must be widened, or a limit. In a pause
//! only the first thread works; everything that affects several threads happens there. A block that
//! must wait for a wider layout is kept and expanded after the pause, so blocks are expanded,
//! inserted and counted once, as a whole.
//!
//! Small levels are not worth waking other threads: the first thread expands them alone, and the
//! others are not started before the first large level.

use crate::checkpoint::{self, Keeper, Keeping, LevelStart, Rest, Unresumed};
use crate::crew::Crew;
use crate::frontier::{Later, Level};
use crate::path::leading_to;
use crate::probe::{Probes, Probing};
use crate::run::{EdgeSink, Finding, Plan, Recode, Root, Run};
use crate::{Task, Threads};
use deltamark_core::{Action, Apart, Insert, Outcome, Recoding, Slot, Snapshot, StateId, Statistics, Stop, Trace};
use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{Builder, Scope};

/// Levels of this many states are interrupted for probes.
const LONG: u64 = 1 << 11;
/// Blocks that are claimed together where the order matters.
const TOGETHER: u64 = 16;

/// A state that answers a property.
struct Candidate {
    finding: Finding,
    number: u64,
    id: StateId,
    state: Vec<Slot>,
}

/// One thread of the search.
struct Worker<'a> {
    run: Run<'a>,
    later: Later,
    /// The actions by which the states of the block were reached.
    arrivals: Vec<Action>,
    candidates: Vec<Candidate>,
    /// States that were claimed together, but for those that were expanded.
    claimed: Range<u64>,
    /// Blocks that wait for a wider layout.
    again: Vec<Range<u64>>,
    /// Why the run must end.
    stop: Option<Stop>,
}

impl<'a> Worker<'a> {
    /// One of several threads.
    fn new(plan: &Plan<'a>, threads: usize) -> Self {
        let run = Run::new(plan.clone());
        let later = Later::new(run.store, run.system.width(), threads, plan.sleep().is_some());
        Worker {
            run,
            later,
            arrivals: Vec::new(),
            candidates: Vec::new(),
            claimed: 0..0,
            again: Vec::new(),
            stop: None,
        }
    }
}

/// What a thread has counted, for those who look at the progress.
#[derive(Default)]
struct ThreadCounts {
    expanded: AtomicU64,
    edges: AtomicU64,
}

/// States of the level that nobody has taken.
#[derive(Default)]
struct Stretch {
    next: AtomicU64,
    /// Changes in pauses only.
    end: AtomicU64,
}

impl Stretch {
    fn left(&self) -> u64 {
        self.end.load(Relaxed).saturating_sub(self.next.load(Relaxed))
    }

    /// Takes the next states, `most` at most.
    fn take(&self, most: u64) -> Option<Range<u64>> {
        let end = self.end.load(Relaxed);
        // Looked at first, so that the number does not run away.
        if self.next.load(Relaxed) >= end {
            return None;
        }
        let start = self.next.fetch_add(most, Relaxed);
        (start < end).then(|| start..end.min(start + most))
    }
}

/// What all threads share.
struct LevelSearch<'a> {
    plan: Plan<'a>,
    /// Written in pauses only.
    level: RwLock<Level>,
    /// Each is held by its thread, and by the first one in pauses. Made when first needed. Apart, because a
    /// thread writes to its own with every successor.
    workers: Vec<Apart<Mutex<Option<Worker<'a>>>>>,
    counts: Vec<Apart<ThreadCounts>>,
    /// What is left of the level, a stretch for each thread.
    stretches: Vec<Apart<Stretch>>,
    /// Whether all should pause. Read once a block by all.
    pause: Apart<AtomicBool>,
    /// Whether a layout is too narrow.
    widen: AtomicBool,
    /// Whether this is the last level that the depth limit allows.
    last: AtomicBool,
    /// Whether there are states beyond it.
    beyond: AtomicBool,
    /// Whether the first thread is the only one at work.
    alone: AtomicBool,
    /// The number of states at which a level is interrupted for a probe.
    probe_at: AtomicU64,
    crew: Crew,
    sought: Option<Sought<'a>>,
}

/// A state to which a path is looked for: one of the level after the last that the depth limit allows.
struct Sought<'a> {
    state: &'a [Slot],
    /// An edge that leads to it.
    edge: Mutex<Option<ClosingEdge>>,
}

/// An edge, by its source.
struct ClosingEdge {
    number: u64,
    id: StateId,
    source: Vec<Slot>,
    action: Action,
}

type Hold<'s, 'a> = MutexGuard<'s, Option<Worker<'a>>>;

/// Searches breadth-first.
pub(crate) fn run(task: Task<'_>, threads: Threads) -> Outcome {
    search(Plan::new(task), threads, Purpose::default()).0
}

/// The same for a sink that takes the edges of all blocks. The store must recall states by their ids.
pub(crate) fn run_into<'a>(task: Task<'a>, threads: Threads, sink: &'a EdgeSink<'a>) -> Outcome {
    search(Plan::new(task).into_sink(sink), threads, Purpose::default()).0
}

/// The same, with [probes](crate::probe).
pub(crate) fn run_probing(task: Task<'_>, threads: Threads, probing: Probing) -> Outcome {
    let probes = probing.begin(&task);
    search(Plan::new(task), threads, Purpose { probes, ..Purpose::default() }).0
}

/// The same, with [checkpoints](crate::checkpoint).
pub(crate) fn run_kept(task: Task<'_>, threads: Threads, keeping: Keeping<'_>) -> Result<Outcome, Unresumed> {
    assert!(task.observer.is_none(), "what an observer has seen is in no checkpoint");
    assert_eq!(Keeping::unfit(task.system, task.store), None, "who keeps checkpoints asks beforehand");
    let (outcome, _, unresumed) = search(Plan::new(task), threads, Purpose { keeping, ..Purpose::default() });
    unresumed.map_or(Ok(outcome), Err)
}

/// A shortest path to a state of the level after the last that the depth limit allows; `None` if the run
/// must end before it is found.
pub(crate) fn path_to<'a>(state: &'a [Slot], task: Task<'a>, threads: Threads) -> Option<Trace> {
    let sought = Some(Sought { state, edge: Mutex::new(None) });
    search(Plan::new(task), threads, Purpose { sought, ..Purpose::default() }).1
}

/// What a search does beside visiting all states.
#[derive(Default)]
struct Purpose<'a, 'k> {
    sought: Option<Sought<'a>>,
    probes: Option<Probes>,
    keeping: Keeping<'k>,
}

/// Searches. The second result is the path to what was sought, the third why the search did not begin.
fn search<'a>(
    plan: Plan<'a>,
    threads: Threads,
    Purpose { sought, probes, keeping }: Purpose<'a, '_>,
) -> (Outcome, Option<Trace>, Option<Unresumed>) {
    let plan = plan.by_levels();
    let count = threads.count.max(1);
    let level = Level::new(plan.store, plan.system, count, plan.sleep().is_some());
    let search = LevelSearch {
        level: RwLock::new(level),
        workers: (0..count).map(|_| Apart(Mutex::new(None))).collect(),
        counts: (0..count).map(|_| Apart::default()).collect(),
        stretches: (0..count).map(|_| Apart::default()).collect(),
        pause: Apart::default(),
        widen: AtomicBool::new(false),
        last: AtomicBool::new(false),
        beyond: AtomicBool::new(false),
        alone: AtomicBool::new(true),
        probe_at: AtomicU64::new(u64::MAX),
        crew: Crew::default(),
        sought,
        plan,
    };
    *search.hold(0) = Some(Worker::new(&search.plan, count));
    let Keeping { keeper, from } = keeping;
    let (stop, trace, unresumed) = std::thread::scope(|scope| {
        let _dismissal = search.crew.dismissal();
        let checkpoints = keeper.map(|keeper| Checkpoints { keeper, start: None, kept: None });
        let mut coordinator =
            Coordinator { search: &search, scope, small: threads.small, helpers: None, probes, checkpoints };
        let begun = match from {
            Some(from) => coordinator.resume(from).map(|rest| Ok((rest.depth, Some((rest, from))))),
            None => Ok(coordinator.begin().map(|()| (0, None))),
        };
        let begun = begun.and_then(|begun| {
            begun.map_or_else(|stop| Ok(Some(stop)), |(depth, rest)| coordinator.levels(depth, rest))
        });
        let (stop, unresumed) = match begun {
            Ok(stop) => (stop, None),
            Err(unresumed) => (Some(Stop::Cancelled), Some(unresumed)),
        };
        coordinator.note_peak();
        if unresumed.is_none() {
            coordinator.keep_at_end(stop);
        }
        (stop, coordinator.path_to_sought(), unresumed)
    });
    let level = search.level.into_inner().unwrap_or_else(PoisonError::into_inner).numbers();
    let mut workers = search.workers.into_iter().filter_map(|worker| {
        let worker: Option<Worker> = worker.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        worker.map(|worker| worker.run)
    });
    let mut first = workers.next().expect("the first thread has worked");
    workers.for_each(|other| first.absorb(other));
    let outcome = match stop {
        // Those of the next level that were found on the way do not count.
        Some(Stop::Answered) => first.finish_with(level.end, stop),
        _ => first.finish(stop),
    };
    (outcome, trace, unresumed)
}

impl<'a> LevelSearch<'a> {
    fn hold(&self, thread: usize) -> Hold<'_, 'a> {
        self.workers[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expands blocks of the level until there is none or all should pause.
    fn work(&self, thread: usize) {
        let level = self.level.read().unwrap_or_else(PoisonError::into_inner);
        let mut worker = self.hold(thread);
        let worker = worker.get_or_insert_with(|| Worker::new(&self.plan, self.workers.len()));
        loop {
            // First, so that a limit is noticed even if others are quicker all the time.
            let stop = self.check(&level, thread, worker);
            if stop.is_some() {
                self.stop(worker, stop);
                return;
            }
            if self.pause.load(Relaxed) {
                return;
            }
            let Some(numbers) = worker.again.pop().or_else(|| self.claim(&level, thread, worker)) else { return };
            if let Err(stop) = self.block(&level, thread, worker, numbers) {
                self.stop(worker, Some(stop));
                return;
            }
            let statistics = &worker.run.statistics;
            self.counts[thread].expanded.store(statistics.expanded, Relaxed);
            self.counts[thread].edges.store(statistics.edges, Relaxed);
        }
    }

    fn stop(&self, worker: &mut Worker<'_>, stop: Option<Stop>) {
        worker.stop = stop;
        self.pause.store(true, Relaxed);
    }

    /// The next states of the level: a block, or less where the level is small for this many
    /// threads. Of the thread's own stretch, as long as there are any, so that threads do not all
    /// write one counter. (With two of them that hardly matters: see docs/threads.md.)
    ///
    /// Where the order matters, several blocks are claimed together: what a state and its
    /// neighbours in the level lead to is mostly the same, and is then found by one thread, in
    /// order.
    fn claim(&self, level: &Level, thread: usize, worker: &mut Worker<'_>) -> Option<Range<u64>> {
        let numbers = level.numbers();
        let block = worker.run.block_size() as u64;
        let (mut most, mut together) = (block, if level.is_ordered() { TOGETHER * block } else { block });
        if !self.alone.load(Relaxed) {
            let threads = self.workers.len() as u64;
            most = most.min(((numbers.end - numbers.start) / (4 * threads)).max(1));
            // Less and less towards the end of the level, so that nobody waits long for the others.
            together = if together > block { together.min((self.left() / threads).max(most)) } else { most };
        }
        let claimed = &mut worker.claimed;
        if claimed.is_empty() {
            let (others, own) = self.stretches.split_at(thread);
            *claimed = own.iter().chain(others).find_map(|stretch| stretch.take(together))?;
        }
        let end = claimed.end.min(claimed.start + most);
        Some(std::mem::replace(&mut claimed.start, end)..end)
    }

    /// Divides a level among the threads; where the order matters, all take from one stretch.
    fn divide(&self, level: &Level) {
        let numbers = level.numbers();
        let (count, len) = (self.stretches.len() as u64, numbers.end - numbers.start);
        let count = if level.is_ordered() { 1 } else { count };
        for (number, stretch) in (0..count).zip(&self.stretches) {
            let bound = |number: u64| numbers.start + (u128::from(len) * u128::from(number) / u128::from(count)) as u64;
            stretch.next.store(bound(number), Relaxed);
            stretch.end.store(bound(number + 1), Relaxed);
        }
    }

    /// How many states of the level nobody has taken.
    fn left(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.left()).sum()
    }

    /// Whether to end: limits, cancellation.
    fn check(&self, level: &Level, thread: usize, worker: &mut Worker<'_>) -> Option<Stop> {
        let bytes = level.part_bytes(thread) + worker.later.held_bytes();
        if thread > 0 {
            // The first thread looks at the clock.
            return match &self.plan {
                _ if !worker.run.holds(bytes) => Some(Stop::Memory),
                plan if plan.is_cancelled() => Some(Stop::Cancelled),
                _ => None,
            };
        }
        if !worker.run.holds(bytes + level.shared_bytes()) {
            return Some(Stop::Memory);
        }
        if worker.run.store.len() >= self.probe_at.load(Relaxed) {
            self.pause.store(true, Relaxed);
        }
        worker.run.check_limits(|run| {
            let sum =
                |of: fn(&ThreadCounts) -> &AtomicU64| self.counts.iter().map(|counts| of(counts).load(Relaxed)).sum();
            let expanded: u64 = sum(|counts| &counts.expanded);
            let snapshot = run.snapshot();
            Snapshot {
                edges: sum(|counts| &counts.edges),
                frontier: snapshot.states.saturating_sub(expanded),
                // What other threads hold is known at the end of a level.
                frontier_bytes: run.statistics.frontier_peak_bytes.max(bytes + run.store.frontier_bytes()),
                ..snapshot
            }
        })
    }

    /// Expands a block, inserts its successors and counts it; or leaves it for later, if the
    /// layout must widen.
    fn block(&self, level: &Level, thread: usize, worker: &mut Worker<'_>, numbers: Range<u64>) -> Result<(), Stop> {
        let Worker { run, arrivals, again, .. } = worker;
        let last = self.last.load(Relaxed);
        level.fill(run, numbers.clone());
        let expanded = match self.plan.sleep().filter(|_| !last) {
            Some(sleep) => {
                arrivals.clear();
                level.arrivals(numbers.clone(), arrivals);
                run.expand_awake(sleep, arrivals)
            }
            None => run.expand(),
        };
        if expanded.is_err() {
            again.push(numbers);
            self.widen.store(true, Relaxed);
            self.pause.store(true, Relaxed);
            return Ok(());
        }
        if let Some(stop) = run.batch.stop() {
            return Err(stop);
        }
        // Before anything is inserted: what is expanded is looked at, even if the run ends here.
        self.look(worker, numbers.start);
        let Worker { run, later, .. } = worker;
        if last {
            if let Some(sought) = &self.sought {
                return sought.look(run, numbers.start);
            }
            self.look_beyond(run);
            return Ok(());
        }
        if self.plan.is_found() {
            run.tally();
            return Ok(());
        }
        let growth = later.growth(run);
        if growth > 0 && !run.holds(level.part_bytes(thread) + later.held_bytes() + growth) {
            return Err(Stop::Memory);
        }
        let step = run.insert();
        level.note_arrivals(thread, &run.answers, run.batch.actions());
        if later.is_needed() {
            for (index, answer) in run.answers.iter().enumerate() {
                if let Insert::New(id) = answer {
                    let parent = numbers.start + run.batch.source(index) as u64;
                    later.push(*id, run.batch.target(index), parent, run.batch.action(index));
                    later.arrive(run.batch.action(index));
                }
            }
            later.mark(numbers.start);
        }
        if step.is_ok() {
            run.count();
            run.pass_on()?;
        }
        step
    }

    /// Notes the properties that the block answers.
    fn look(&self, worker: &mut Worker<'_>, first: u64) {
        for finding in worker.run.findings() {
            if finding.is_step() && worker.candidates.iter().any(|candidate| candidate.finding.is_alike(&finding)) {
                continue;
            }
            self.plan.note(&finding);
            let index = finding.state;
            worker.candidates.push(Candidate {
                number: first + index as u64,
                id: worker.run.block.id(index),
                state: worker.run.block.state(index).to_vec(),
                finding,
            });
        }
    }

    /// Looks whether the successors of a block of the last level that the depth limit allows
    /// are known. They are not inserted; if all are known, the search is complete all the same.
    fn look_beyond(&self, run: &mut Run<'_>) {
        run.answers.clear();
        for index in 0..run.batch.len() {
            let (state, hash) = (run.batch.target(index), run.batch.hash(index));
            match run.store.find(&mut run.store_scratch, state, hash) {
                Some(id) => run.answers.push(Insert::Seen(id)),
                None => self.beyond.store(true, Relaxed),
            }
        }
        if run.answers.len() == run.batch.len() {
            run.count();
        } else {
            run.count_last();
        }
    }
}

impl Sought<'_> {
    /// Looks whether a block, which begins with the state of this number, leads to the state.
    fn look(&self, run: &Run<'_>, first: u64) -> Result<(), Stop> {
        let Some((index, action)) = leading_to(&run.batch, self.state) else { return Ok(()) };
        let (number, id, source) = (first + index as u64, run.block.id(index), run.block.state(index).to_vec());
        *self.edge.lock().unwrap_or_else(PoisonError::into_inner) = Some(ClosingEdge { number, id, source, action });
        Err(Stop::Answered)
    }
}

/// Where checkpoints go.
struct Checkpoints<'k> {
    keeper: &'k mut dyn Keeper,
    /// The moment at which the current level began.
    start: Option<LevelStart>,
    /// The level at whose begin the last one was taken.
    kept: Option<u64>,
}

/// What the first thread does beside its work.
struct Coordinator<'s, 'e, 'a, 'k> {
    search: &'s LevelSearch<'a>,
    scope: &'s Scope<'s, 'e>,
    /// Levels of fewer states are expanded by the first thread alone.
    small: u64,
    /// How many other threads there are, once they were started.
    helpers: Option<u32>,
    /// What looks for deep errors meanwhile, if anything does.
    probes: Option<Probes>,
    checkpoints: Option<Checkpoints<'k>>,
}

impl<'s, 'a> Coordinator<'s, '_, 'a, '_> {
    /// All levels, from this one on, whose states were found. `rest` is what is left to read of a checkpoint.
    fn levels(&mut self, depth: u64, rest: Option<(Rest, &mut dyn Read)>) -> Result<Option<Stop>, Unresumed> {
        self.note_peak();
        if !self.search.plan.store.end_level() {
            return Ok(Some(Stop::Memory));
        }
        if !self.advance() {
            return Ok(None);
        }
        if let Some((rest, from)) = rest {
            self.in_pause(|level, found, run| checkpoint::read_rest(&rest, from, run, level, found))?;
        }
        Ok(self.expand(depth))
    }

    /// The level of this depth, which has begun, and all after it.
    fn expand(&mut self, mut depth: u64) -> Option<Stop> {
        loop {
            let last = self.in_pause(|_, _, run| {
                run.statistics.depth = depth;
                depth >= run.depth_limit()
            });
            self.search.last.store(last, Relaxed);
            self.keep_if_due();
            if self.probe() {
                return Some(Stop::Answered);
            }
            if let Some(stop) = self.level() {
                return Some(stop);
            }
            if self.search.beyond.load(Relaxed) {
                return Some(Stop::Depth);
            }
            if last {
                return None;
            }
            depth += 1;
            self.note_peak();
            if !self.search.plan.store.end_level() {
                return Some(Stop::Memory);
            }
            if !self.advance() {
                return None;
            }
        }
    }

    /// Calls `act` with the level, what all threads have found, and the run of the first.
    fn in_pause<T>(&self, act: impl FnOnce(&mut Level, &mut [Option<&mut Later>], &mut Run<'a>) -> T) -> T {
        let search = self.search;
        let mut level = search.level.write().unwrap_or_else(PoisonError::into_inner);
        let mut workers: Vec<Hold<'_, 'a>> = (0..search.workers.len()).map(|thread| search.hold(thread)).collect();
        let (first, others) = workers.split_at_mut(1);
        let Worker { run, later, .. } = first[0].as_mut().expect("the first thread is there");
        let mut found = vec![Some(later)];
        found.extend(others.iter_mut().map(|other| other.as_mut().map(|worker| &mut worker.later)));
        act(&mut level, &mut found, run)
    }

    /// Inserts the initial states.
    fn begin(&mut self) -> Result<(), Stop> {
        self.in_pause(|level, found, run| {
            let mut roots: Vec<Root> = Vec::new();
            let step = run.begin(&mut Frontier { level, found }, &mut roots);
            let later = found[0].as_mut().expect("the first thread is there");
            for (number, root) in roots.iter().enumerate() {
                later.push(root.id, &root.state, number as u64, root.action);
                later.arrive(Action::NONE);
            }
            later.mark(0);
            step
        })
    }

    /// Reads a checkpoint instead.
    fn resume(&self, from: &mut dyn Read) -> Result<Rest, Unresumed> {
        self.in_pause(|level, found, run| checkpoint::read(from, run, level, found))
    }

    /// Notes that a level begins, and takes a checkpoint of this moment, if one is due.
    fn keep_if_due(&mut self) {
        let Some(mut checkpoints) = self.checkpoints.take() else { return };
        let statistics = self.counted();
        checkpoints.start = Some(self.in_pause(|_, _, run| LevelStart::new(run, statistics)));
        if checkpoints.keeper.is_due() {
            self.keep(&mut checkpoints);
        }
        self.checkpoints = Some(checkpoints);
    }

    /// Takes a checkpoint of the moment at which the current level began, if a limit or the user ended the run there, or
    /// kept it from finding a trace.
    fn keep_at_end(&mut self, stop: Option<Stop>) {
        let stop = self.in_pause(|_, _, run| run.untraced()).or(stop);
        let ended = matches!(stop, Some(Stop::Memory | Stop::Time | Stop::States | Stop::Depth | Stop::Cancelled));
        if let Some(mut checkpoints) = self.checkpoints.take().filter(|_| ended) {
            self.keep(&mut checkpoints);
        }
    }

    fn keep(&self, checkpoints: &mut Checkpoints<'_>) {
        let Checkpoints { keeper, start: Some(start), kept: last } = checkpoints else { return };
        self.in_pause(|level, found, run| {
            let kept = start.kept(level);
            if last.replace(kept.depth) != Some(kept.depth) {
                keeper.keep(kept, &mut |out| checkpoint::write(out, run, level, found, start));
            }
        });
    }

    /// What all threads have counted.
    fn counted(&self) -> Statistics {
        let mut counted = self.in_pause(|_, _, run| run.statistics.clone());
        for worker in &self.search.workers[1..] {
            let worker = worker.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(Statistics { expanded, edges, left_out, deadlocks, .. }) =
                worker.as_ref().map(|worker| &worker.run.statistics)
            else {
                continue;
            };
            counted.expanded += expanded;
            counted.edges += edges;
            counted.left_out += left_out;
            counted.deadlocks += deadlocks;
        }
        counted
    }

    /// Notes what the frontier holds. Neither the threads nor the store give anything of it back
    /// before the end of a level, so then it is the most.
    fn note_peak(&self) {
        self.in_pause(|level, found, run| {
            let lists: u64 = found.iter().flatten().map(|later| later.held_bytes()).sum();
            let parts: u64 = (0..found.len()).map(|thread| level.part_bytes(thread)).sum();
            run.frontier_peak(lists + parts + level.shared_bytes());
        });
    }

    /// Goes on to the next level. Returns whether there is one.
    fn advance(&mut self) -> bool {
        self.in_pause(|level, found, run| {
            let more = level.advance(run.store.len(), found);
            self.search.divide(level);
            more
        })
    }

    /// Expands a level, with as many pauses as are needed.
    fn level(&mut self) -> Option<Stop> {
        let search = self.search;
        loop {
            search.pause.store(false, Relaxed);
            let helpers = if search.left() < self.small { 0 } else { self.helpers() };
            search.alone.store(helpers == 0, Relaxed);
            if helpers == 0 {
                search.work(0);
            } else {
                search.crew.together(helpers, || search.work(0));
            }
            let mut stop = None;
            let mut candidates = Vec::new();
            let mut again = Vec::new();
            for worker in &search.workers {
                if let Some(worker) = worker.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                    stop = stop.or(worker.stop.take());
                    candidates.append(&mut worker.candidates);
                    again.append(&mut worker.again);
                    // Whoever goes on after the pause may be another thread.
                    let claimed = std::mem::take(&mut worker.claimed);
                    let size = worker.run.block_size();
                    again.extend(claimed.clone().step_by(size).map(|at| at..claimed.end.min(at + size as u64)));
                }
            }
            self.answer(candidates);
            let at_end = again.is_empty() && search.left() == 0;
            if stop.is_none() && search.widen.swap(false, Relaxed) {
                stop = self.widen();
            }
            // What was decided without a trace would stay so in every checkpoint to come.
            if self.checkpoints.is_some() {
                stop = stop.or_else(|| self.in_pause(|_, _, run| run.untraced()));
            }
            if stop.is_none() && !at_end && self.probe() {
                return Some(Stop::Answered);
            }
            // A run that has its answers does not need the rest of the level.
            if search.plan.is_answered() && (at_end || stop.is_some()) {
                return Some(Stop::Answered);
            }
            if stop.is_some() {
                return stop;
            }
            if at_end {
                return None;
            }
            // The first thread is there in every round.
            search.hold(0).as_mut().expect("the first thread is there").again = again;
        }
    }

    /// Starts the other threads, if there are any that run, and returns how many they are.
    fn helpers(&mut self) -> u32 {
        let search = self.search;
        *self.helpers.get_or_insert_with(|| {
            (1..search.workers.len()).fold(0, |started, thread| {
                let help = move || search.crew.help(|| search.work(thread));
                // A system that has no thread to give lets us go on with those we have.
                let spawned = Builder::new().name(format!("search {thread}")).spawn_scoped(self.scope, help);
                started + u32::from(spawned.is_ok())
            })
        })
    }

    /// Answers what was found, each property once: the shortest trace, then the smallest number.
    fn answer(&self, mut candidates: Vec<Candidate>) {
        if candidates.is_empty() {
            return;
        }
        candidates.sort_by_key(|candidate| (candidate.finding.is_step(), candidate.number));
        self.in_pause(|level, found, run| {
            let found: Vec<Option<&Later>> = found.iter().map(|later| later.as_deref()).collect();
            for Candidate { finding, number, id, state } in candidates {
                if run.wants(&finding) {
                    let trace = level.path(run, &found, number, id, &state);
                    run.answer(finding, trace, &state);
                }
            }
        });
    }

    /// The path to the state that is looked for, if it was found.
    fn path_to_sought(&self) -> Option<Trace> {
        let edge = self.search.sought.as_ref()?.edge.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ClosingEdge { number, id, source, action } = edge?;
        let mut trace = self.in_pause(|level, found, run| {
            let found: Vec<Option<&Later>> = found.iter().map(|later| later.as_deref()).collect();
            level.path(run, &found, number, id, &source)
        })?;
        trace.actions.push(action);
        Some(trace)
    }

    /// Probes, if it is time to. Returns whether every property has its answer then.
    fn probe(&mut self) -> bool {
        let Some(mut probes) = self.probes.take() else { return false };
        let answered = self.in_pause(|level, _, run| {
            let states = run.store.len();
            if states >= probes.due() && !run.is_answered() {
                probes.turn(run, states);
            }
            let numbers = level.numbers();
            let long = numbers.end - numbers.start >= LONG;
            self.search.probe_at.store(if long { probes.due() } else { u64::MAX }, Relaxed);
            run.is_answered()
        });
        self.probes = Some(probes);
        answered
    }

    fn widen(&self) -> Option<Stop> {
        self.in_pause(|level, found, run| run.widen(&mut Frontier { level, found }).err())
    }
}

/// All states that wait, for a change of their layout.
pub(crate) struct Frontier<'f, 'l> {
    pub level: &'f mut Level,
    pub found: &'f mut [Option<&'l mut Later>],
}

impl Recode for Frontier<'_, '_> {
    fn recode(&mut self, recoding: &Recoding) {
        self.level.recode(recoding);
        self.found.iter_mut().flatten().for_each(|later| later.recode(recoding));
    }
}
