//! Partitioned breadth-first search: every state has an owner.
//!
//! A parallel search without shared memory: each part has its own store and owns the states whose
//! hashes map to it; successors owned by another part are sent there, many edges at a time. This is
//! the partitioned visitor of DIVINE (V. Štill, *State Space Compression for the DiVinE Model
//! Checker*, 2013, section 3.1.2). Differences: levels are kept, so traces are shortest; an edge
//! carries its target and its action but not its source, because a path is found by backtracking.
//!
//! # Requirements
//! For each part a store that numbers its states 0, 1, 2 … and recalls them, and that does not use
//! parents: they are [nameless](StateId::NAMELESS).
//!
//! # Guarantees
//! As `bfs.rs`: counts do not depend on the number of parts. When memory runs out, edges of the
//! last blocks may be counted whose targets are in no store.
//!
//! # A round
//! ```text
//! part 0   expand own level ─ edges ▶ owner …  done ▶ all │ edges of others … │ report ▶ all
//! part 1   expand own level ─ edges ▶ owner …  done ▶ all │ edges of others … │ report ▶ all
//! ```
//! Messages from one part to another arrive in the order they were sent, so when a part has
//! received "done" from all others it has all states of the next level that it owns. It then
//! reports their number, and whether a layout must be widened or the run must end; all parts see
//! all reports and make the same decision. Nothing else is shared except flags that save time, the
//! limit on states, and a layout change, which in one process is made once for all.

use crate::Task;
use crate::frontier::Level;
use crate::path::{Levels, Past};
use crate::run::{Finding, Plan, Run};
use deltamark_core::{
    Action, Arrival, Batch, Block, Bytes, Control, Guarantee, Insert, Outcome, Property, Recoding, Slot, StateId, Stop,
    Store, System, Verdict, hash::mix,
};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, PoisonError, RwLock};
use std::thread::Builder;

/// Edges that are sent together.
const PARCEL: usize = 1024;

/// What to search, in parts.
pub struct Partitioned<'a> {
    /// The model.
    pub system: &'a dyn System,
    /// One store for each part, all empty and of the same kind, which numbers and recalls states.
    pub stores: &'a [&'a dyn Store],
    /// What is asked.
    pub properties: &'a [Property],
    /// Limits and listeners. The limit on states is for all parts together, and exact.
    pub control: &'a Control,
    /// Go on when every property has its answer.
    pub explore_all: bool,
}

/// The part that owns a state of this hash. Stores use other bits of it.
pub fn owner(hash: u64, parts: usize) -> usize {
    ((u128::from(mix(hash ^ 0x5851_f42d_4c95_7f2d)) * parts as u128) >> 64) as usize
}

/// What one part sends to another.
enum Message {
    /// States of the next level that the other owns, with the actions that led to them.
    Edges(Box<Batch>),
    /// No more edges in this round.
    Done,
    /// What a part has to say when it has all of a round.
    Report(Report),
}

/// What all parts must know of each other.
#[derive(Clone, Copy, Default)]
struct Report {
    /// Whether it has states of the next level, or some of this one that wait.
    more: bool,
    widen: bool,
    stop: Option<Stop>,
    /// Whether there are states beyond the depth limit.
    beyond: bool,
}

impl Report {
    fn join(self, other: Report) -> Report {
        Report {
            more: self.more | other.more,
            widen: self.widen | other.widen,
            stop: self.stop.or(other.stop),
            beyond: self.beyond | other.beyond,
        }
    }
}

/// A state that answers a property.
struct Candidate {
    finding: Finding,
    level: usize,
    state: Vec<Slot>,
}

/// What parts of one process share.
struct Common<'a> {
    /// For the limit on states, which is one for all parts.
    stores: &'a [&'a dyn Store],
    /// Somebody has a reason to end.
    hurry: AtomicBool,
    meet: Barrier,
    recoding: RwLock<Option<Recoding>>,
    /// A store had no room to change its layout.
    failed: AtomicBool,
}

impl Common<'_> {
    /// How many states all parts have found.
    fn found(&self) -> u64 {
        self.stores.iter().map(|store| store.len()).sum()
    }
}

/// One part.
struct Part<'a> {
    number: usize,
    run: Run<'a>,
    plan: Plan<'a>,
    control: &'a Control,
    level: Level,
    depth: usize,
    /// Whether this is the last level that the depth limit allows.
    last: bool,
    post: Vec<Sender<Message>>,
    inbox: Receiver<Message>,
    /// Messages of a round that others have begun and this part has not.
    early: VecDeque<Message>,
    /// Edges on their way, by their owner.
    outgoing: Vec<Batch>,
    /// Stands for the parents of edges that came.
    nameless: Block,
    arrivals: Vec<Action>,
    next: u64,
    again: Vec<Range<u64>>,
    candidates: Vec<Candidate>,
    report: Report,
}

/// Searches breadth-first in parts, each in a thread of its own.
///
/// # Panics
/// When there is no store, or one does not number its states and recall them; and as [`run`](crate::run).
pub fn run_partitioned(task: Partitioned<'_>) -> Outcome {
    let Partitioned { system, stores, properties, control, explore_all } = task;
    assert!(!stores.is_empty(), "a partitioned search has at least one part");
    let sequential = |store: &&dyn Store| store.recall().is_some_and(|recall| recall.sequential() && recall.whole());
    assert!(stores.iter().all(sequential), "stores of parts number their states and recall them");
    let plan =
        Plan::new(Task { system, store: stores[0], properties, control, explore_all, observer: None }).by_levels();
    let common = Common {
        stores,
        hurry: AtomicBool::new(false),
        meet: Barrier::new(stores.len()),
        recoding: RwLock::new(None),
        failed: AtomicBool::new(false),
    };
    let (post, inboxes): (Vec<_>, Vec<_>) = stores.iter().map(|_| channel()).unzip();
    let mut parts: Vec<Part> = inboxes
        .into_iter()
        .enumerate()
        .map(|(number, inbox)| Part::new(number, plan.with_store(stores[number]), control, post.clone(), inbox))
        .collect();
    drop(post);
    let mut stop = begin(&mut parts, control, &common);
    if stop.is_none() {
        stop = together(&mut parts, &common);
    }
    finish(parts, system, stores, stop)
}

/// Has each part search in a thread of its own. A part waits for all others, so none begins before all have a thread; where
/// the system has too few to give, the run ends for lack of memory.
fn together(parts: &mut [Part<'_>], common: &Common<'_>) -> Option<Stop> {
    std::thread::scope(|scope| {
        let mut waiting = Vec::new();
        for part in parts {
            let (begin, begun) = channel::<()>();
            let search = move || begun.recv().ok().and_then(|()| part.levels(common));
            // To drop the senders ends the threads that wait for them.
            let thread = Builder::new().name("part".into()).spawn_scoped(scope, search).ok();
            match thread {
                Some(thread) => waiting.push((begin, thread)),
                None => return Some(Stop::Memory),
            }
        }
        let (begins, threads): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        begins.iter().for_each(|begin| begin.send(()).expect("a part waits"));
        let stops: Vec<Option<Stop>> =
            threads.into_iter().map(|thread| thread.join().expect("a part of the search has failed")).collect();
        stops[0]
    })
}

/// Inserts the initial states, each into the store of its owner.
fn begin(parts: &mut [Part<'_>], control: &Control, common: &Common<'_>) -> Option<Stop> {
    let count = parts.len();
    let mut batch = Batch::new(parts[0].run.system.width());
    let run = &mut parts[0].run;
    while run.system.initial(&mut run.system_scratch, &mut batch).is_err() {
        run.widened();
        drop(run.system.widen());
        batch.reset(run.system.width());
    }
    for index in 0..batch.len() {
        let (state, hash) = (batch.target(index), batch.hash(index));
        let number = owner(hash, count);
        let Run { store, store_scratch, .. } = &mut parts[number].run;
        let full = control.limits.states.is_some_and(|limit| common.found() >= limit);
        if full && store.find(store_scratch, state, hash).is_none() {
            return Some(Stop::States);
        }
        let arrival = Arrival { parent: None, action: batch.action(index) };
        if store.insert(store_scratch, state, hash, &arrival) == Insert::Full {
            return Some(control.stop_when_full());
        }
    }
    None
}

/// The outcome of all parts together.
fn finish(parts: Vec<Part<'_>>, system: &dyn System, stores: &[&dyn Store], stop: Option<Stop>) -> Outcome {
    let mut candidates = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    let mut runs = Vec::new();
    for mut part in parts {
        candidates.append(&mut part.candidates);
        levels.push(part.level);
        runs.push(part.run);
    }
    let past = stores.iter().zip(&levels).map(|(&store, level)| Past { store, starts: level.starts() }).collect();
    let mut runs = runs.into_iter();
    let mut first = runs.next().expect("there is a part");
    let levels = Levels { system, past, owner, control: first.control() };
    let depth = first.statistics.depth;
    runs.for_each(|run| first.absorb(run));
    candidates.sort_by(|one, other| {
        let key = |candidate: &Candidate| (candidate.level, candidate.finding.is_step());
        key(one).cmp(&key(other)).then_with(|| one.state.cmp(&other.state))
    });
    for Candidate { finding, level, state } in candidates {
        if first.wants(&finding) {
            let trace = levels.path(level, state.clone());
            first.answer(finding, trace, &state);
        }
    }
    let mut outcome = first.finish(stop);
    outcome.statistics.depth = depth;
    outcome.statistics.states = stores.iter().map(|store| store.len()).sum();
    outcome.store_bytes = Bytes::new();
    let mut sure = 1.0;
    for store in stores {
        outcome.store_bytes.merge(&store.bytes());
        if let Guarantee::Omission(probability) = store.guarantee() {
            sure *= 1.0 - probability;
            outcome.guarantee = Guarantee::Omission(1.0 - sure);
        }
    }
    for property in &mut outcome.properties {
        if let (Verdict::NoViolationFound(probability), Guarantee::Omission(any)) =
            (&mut property.verdict, outcome.guarantee)
        {
            *probability = any;
        }
    }
    outcome
}

impl<'a> Part<'a> {
    fn new(
        number: usize,
        plan: Plan<'a>,
        control: &'a Control,
        post: Vec<Sender<Message>>,
        inbox: Receiver<Message>,
    ) -> Self {
        let (system, store) = (plan.system, plan.store);
        Part {
            number,
            run: Run::new(plan.clone()),
            control,
            level: Level::new(store, system, 1, plan.sleep().is_some()),
            depth: 0,
            last: false,
            outgoing: post.iter().map(|_| Batch::new(system.width())).collect(),
            post,
            inbox,
            early: VecDeque::new(),
            nameless: Block::new(system.width()),
            arrivals: Vec::new(),
            next: 0,
            again: Vec::new(),
            candidates: Vec::new(),
            report: Report::default(),
            plan,
        }
    }

    /// All levels.
    fn levels(&mut self, common: &Common<'_>) -> Option<Stop> {
        loop {
            self.level.advance(self.run.store.len(), &mut []);
            self.next = self.level.numbers().start;
            self.last = self.depth as u64 >= self.run.depth_limit();
            self.run.statistics.depth = self.depth as u64;
            let all = loop {
                let all = self.round(common);
                if all.stop.is_some() {
                    return all.stop;
                }
                if !all.widen {
                    break all;
                }
                if let Some(stop) = self.widen(common) {
                    return Some(stop);
                }
            };
            // A fault of a step has waited for a shorter trace in the same level.
            self.candidates.iter().for_each(|candidate| self.plan.settle(&candidate.finding));
            if all.beyond {
                return Some(Stop::Depth);
            }
            if !all.more || self.last {
                return None;
            }
            self.depth += 1;
        }
    }

    /// Expands the rest of the level, inserts what others send, and receives their reports.
    fn round(&mut self, common: &Common<'_>) -> Report {
        self.report = Report::default();
        let early: Vec<Message> = self.early.drain(..).collect();
        let mut done = 0;
        let mut reports = Vec::new();
        for message in early {
            self.take(message, common, &mut done, &mut reports);
        }
        while self.report.stop.is_none() && !self.report.widen && !common.hurry.load(Relaxed) {
            while let Ok(message) = self.inbox.try_recv() {
                self.take(message, common, &mut done, &mut reports);
            }
            self.report.stop = self.report.stop.or(self.check());
            if self.report.stop.is_some() {
                break;
            }
            let Some(numbers) = self.again.pop().or_else(|| self.claim()) else { break };
            self.block(numbers, common);
        }
        if self.report.stop.is_some() {
            common.hurry.store(true, Relaxed);
        }
        (0..self.post.len()).for_each(|to| self.send(to, common));
        self.tell(|| Message::Done);
        let others = self.post.len() - 1;
        while done < others {
            let message = self.inbox.recv().expect("all parts hold all ends");
            self.take(message, common, &mut done, &mut reports);
        }
        let waiting = !self.again.is_empty() || self.next < self.level.numbers().end;
        self.report.more = waiting || self.run.store.len() > self.level.numbers().end;
        let report = self.report;
        self.tell(|| Message::Report(report));
        let mut all = vec![report];
        all.append(&mut reports);
        while all.len() < self.post.len() {
            match self.inbox.recv().expect("all parts hold all ends") {
                Message::Report(report) => all.push(report),
                // Of a part that has heard all reports and has gone on.
                other => self.early.push_back(other),
            }
        }
        all.into_iter().fold(Report::default(), Report::join)
    }

    fn tell(&self, message: impl Fn() -> Message) {
        for (number, post) in self.post.iter().enumerate() {
            if number != self.number {
                // Who is gone has panicked, and all will know.
                let _ = post.send(message());
            }
        }
    }

    /// Takes a message of the current round.
    fn take(&mut self, message: Message, common: &Common<'_>, done: &mut usize, reports: &mut Vec<Report>) {
        match message {
            Message::Edges(edges) => {
                self.insert(&edges, common);
                self.control.budget.release(edges.held_bytes());
            }
            Message::Done => *done += 1,
            Message::Report(report) => reports.push(report),
        }
    }

    fn claim(&mut self) -> Option<Range<u64>> {
        let end = self.level.numbers().end;
        let start = self.next;
        self.next = end.min(start + self.run.block_size() as u64);
        (start < end).then_some(start..self.next)
    }

    fn check(&mut self) -> Option<Stop> {
        let bytes = self.level.shared_bytes() + self.outgoing.iter().map(Batch::held_bytes).sum::<u64>();
        if !self.run.frontier_holds(bytes) {
            return Some(Stop::Memory);
        }
        if self.number == 0 {
            return self.run.check(Run::snapshot);
        }
        match &self.plan {
            plan if plan.is_answered() => Some(Stop::Answered),
            plan if plan.is_cancelled() => Some(Stop::Cancelled),
            _ => None,
        }
    }

    /// Expands a block and sends its successors on their way.
    fn block(&mut self, numbers: Range<u64>, common: &Common<'_>) {
        self.level.fill(&mut self.run, numbers.clone());
        let expanded = match self.plan.sleep().filter(|_| !self.last) {
            Some(sleep) => {
                self.arrivals.clear();
                self.level.arrivals(numbers.clone(), &mut self.arrivals);
                self.run.expand_awake(sleep, &self.arrivals)
            }
            None => self.run.expand(),
        };
        if expanded.is_err() {
            self.again.push(numbers);
            self.report.widen = true;
            return;
        }
        if let Some(stop) = self.run.batch.stop() {
            self.again.push(numbers);
            self.report.stop = self.report.stop.or(Some(stop));
            return;
        }
        for finding in self.run.findings() {
            let state = self.run.block.state(finding.state).to_vec();
            if !finding.is_step() {
                self.plan.settle(&finding);
            } else if self.candidates.iter().any(|candidate| candidate.finding.is_alike(&finding)) {
                continue;
            }
            self.candidates.push(Candidate { finding, level: self.depth, state });
        }
        self.run.count();
        for index in 0..self.run.batch.len() {
            let batch = &self.run.batch;
            let (action, target, hash) = (batch.action(index), batch.target(index), batch.hash(index));
            let to = owner(hash, self.post.len());
            self.outgoing[to].push_hashed(action, target, hash);
            if self.outgoing[to].len() == PARCEL {
                self.send(to, common);
            }
        }
    }

    /// Sends the edges that wait for a part, or inserts those that are its own.
    fn send(&mut self, to: usize, common: &Common<'_>) {
        if self.outgoing[to].is_empty() {
            return;
        }
        let width = self.run.system.width();
        if to == self.number {
            let edges = std::mem::replace(&mut self.outgoing[to], Batch::new(width));
            self.insert(&edges, common);
            self.outgoing[to] = edges;
            self.outgoing[to].reset(width);
            return;
        }
        let edges = std::mem::replace(&mut self.outgoing[to], Batch::new(width));
        if self.control.budget.request(edges.held_bytes()) {
            let _ = self.post[to].send(Message::Edges(Box::new(edges)));
        } else {
            self.report.stop = self.report.stop.or(Some(Stop::Memory));
        }
    }

    /// Inserts states of the next level.
    fn insert(&mut self, edges: &Batch, common: &Common<'_>) {
        if self.last {
            let Run { store, store_scratch, .. } = &mut self.run;
            let known = |index| store.find(store_scratch, edges.target(index), edges.hash(index)).is_some();
            self.report.beyond |= !(0..edges.len()).all(known);
            return;
        }
        self.nameless.reset(self.run.system.width());
        self.nameless.push(StateId::NAMELESS, edges.target(0));
        self.run.answers.clear();
        let Run { store, store_scratch, answers, .. } = &mut self.run;
        if self.plan.quota.insert(|| common.found(), *store, store_scratch, (&self.nameless, edges), answers) {
            self.report.stop = self.report.stop.or(Some(Stop::States));
        }
        if answers.contains(&Insert::Full) {
            self.report.stop = self.report.stop.or(Some(self.control.stop_when_full()));
        }
        self.level.note_arrivals(0, &self.run.answers, edges.actions());
    }

    /// Changes the layout: once for the system, then for the store of each part.
    fn widen(&mut self, common: &Common<'_>) -> Option<Stop> {
        let hold = || common.recoding.write().unwrap_or_else(PoisonError::into_inner);
        common.meet.wait();
        if self.number == 0 {
            *hold() = Some(self.run.system.widen());
            self.run.widened();
        }
        common.meet.wait();
        let recoding = common.recoding.read().unwrap_or_else(PoisonError::into_inner);
        let recoded = recoding.as_ref().is_none_or(|recoding| self.run.store.recode(recoding));
        drop(recoding);
        common.failed.fetch_or(!recoded, Relaxed);
        let width = self.run.system.width();
        self.outgoing.iter_mut().for_each(|edges| edges.reset(width));
        // Candidates are of the old layout.
        let recoding = common.recoding.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(recoding) = recoding.as_ref() {
            for candidate in &mut self.candidates {
                let old = candidate.state.clone();
                recoding.translate(&old, &mut candidate.state);
            }
        }
        drop(recoding);
        common.meet.wait();
        common.failed.load(Relaxed).then(|| self.control.stop_when_full())
    }
}
