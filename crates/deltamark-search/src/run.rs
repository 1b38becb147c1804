//! The common part of all searches: verdicts, counts, limits, and the widening of layouts.
//!
//! In: a task. Out: an outcome. Invariants: a block is expanded, inserted and counted as a whole or
//! not at all; layouts are widened between blocks, in the system, the store and the frontier at
//! once.
//!
//! A parallel search has a [`Run`] for each thread, all of one [`Plan`]. The first one decides
//! verdicts, checks the clock and reports; at the end it [absorbs](Run::absorb) the counts of the
//! others.

use crate::quota::Quota;
use crate::{Observer, Task};
use deltamark_core::{
    Action, Again, Arrival, BLOCK, Batch, Block, Control, Event, Evidence, Goal, Grant, Guarantee, Insert, Outcome,
    Property, Recoding, Scratch, Sleep, Slot, Snapshot, StateId, States, Statistics, Stop, Store, System, Trace, Widen,
    Width, Witness, budget,
};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many successors a block should yield at most, about: so that a batch of narrow states
/// stays in the second cache. Not tuned.
const SUCCESSORS: u64 = 4096;
/// How often the clock is looked at, in blocks.
const CHECK_EVERY: u32 = 64;
/// How often the process's memory is looked at, where it has a limit: in this time a
/// search takes a megabyte or so.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often listeners are notified.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// A state for which a property has its answer.
pub(crate) struct Finding {
    /// Which property.
    property: usize,
    /// Which state of the block.
    pub state: usize,
    /// The action that is a fault, if that is what was found.
    fault: Option<Action>,
    /// What the trace alone does not say.
    message: Option<String>,
}

impl Finding {
    /// Whether its trace ends in a step that is a fault, one more than lead to the state.
    pub fn is_step(&self) -> bool {
        self.fault.is_some()
    }

    /// Whether it answers the same property with a trace of the same length, if in the same level.
    pub fn is_alike(&self, other: &Finding) -> bool {
        self.property == other.property && self.is_step() == other.is_step()
    }
}

/// An initial state that is in the store.
pub(crate) struct Root {
    pub id: StateId,
    pub state: Vec<Slot>,
    /// Its number among the initial states.
    pub action: Action,
}

/// Takes a block that was expanded, its edges, and what became of each target. All threads call it, at once.
pub(crate) type EdgeSink<'a> = dyn Fn(&Block, &Batch, &[Insert]) -> Result<(), Stop> + Sync + 'a;

/// What all threads of a run have in common.
#[derive(Clone)]
pub(crate) struct Plan<'a> {
    pub system: &'a dyn System,
    pub store: &'a dyn Store,
    properties: &'a [Property],
    control: &'a Control,
    explore_all: bool,
    observer: Option<Arc<Mutex<&'a mut dyn Observer>>>,
    /// Who takes the edges of blocks from all threads at once.
    sink: Option<&'a EdgeSink<'a>>,
    /// For each property what has been found: [`ANSWERED`], [`UNDEFINED`], [`STEP`].
    settled: Arc<[AtomicU8]>,
    pub quota: Arc<Quota>,
    sleep: Option<Arc<Sleep>>,
    /// Whether a successor was [cut off](Batch::cut_off).
    cut_off: Arc<AtomicBool>,
}

/// A property has its answer.
const ANSWERED: u8 = 1;
/// A goal had no value somewhere.
const UNDEFINED: u8 = 2;
/// A step is a fault; a state of the same level may be one too, and have the shorter trace.
const STEP: u8 = 4;

impl<'a> Plan<'a> {
    pub fn new(task: Task<'a>) -> Self {
        let Task { system, store, properties, control, explore_all, observer } = task;
        // Earlier runs under the same budget may have left memory with the allocator.
        if let Some(resident) = (control.resident)() {
            control.budget.observe(resident);
        }
        Plan {
            sleep: None,
            system,
            store,
            properties,
            control,
            explore_all,
            observer: observer.map(|observer| Arc::new(Mutex::new(observer))),
            sink: None,
            settled: properties.iter().map(|_| AtomicU8::new(0)).collect(),
            quota: Arc::new(Quota::new(control.limits.states)),
            cut_off: Arc::new(AtomicBool::new(false)),
        }
    }

    /// The same with another store.
    pub fn with_store(&self, store: &'a dyn Store) -> Self {
        Plan { store, ..self.clone() }
    }

    /// The same with somebody who takes all edges.
    pub fn into_sink(self, sink: &'a EdgeSink<'a>) -> Self {
        Plan { sink: Some(sink), ..self }
    }

    /// The same for a search by levels, which skips edges by [sleep sets](deltamark_core::sleep) where the system has them. A
    /// store that takes states for others may lose the one whose edge is followed instead, and observers and sinks want
    /// all edges. If the run must end meanwhile, its first check finds out.
    pub fn by_levels(mut self) -> Self {
        if self.observer.is_none() && self.sink.is_none() && matches!(self.store.guarantee(), Guarantee::Exact) {
            self.sleep = Sleep::new(self.system, None, self.control).unwrap_or_default().map(Arc::new);
        }
        self
    }

    /// Which edges are skipped.
    pub fn sleep(&self) -> Option<&Sleep> {
        self.sleep.as_deref()
    }

    fn is_settled(&self, property: usize, what: u8) -> bool {
        self.settled[property].load(Relaxed) & what != 0
    }

    /// Whether every property has its answer, so that the run may end.
    pub fn is_answered(&self) -> bool {
        let answered = (0..self.properties.len()).all(|property| self.is_settled(property, ANSWERED));
        answered && !self.properties.is_empty() && !self.explore_all
    }

    /// Whether every property has its answer, or will have it at the end of the level, so that
    /// nothing more needs to be inserted. An observer wants to see whole levels all the same.
    pub fn is_found(&self) -> bool {
        let found = (0..self.properties.len()).all(|property| self.is_settled(property, ANSWERED | STEP));
        found && !self.properties.is_empty() && !self.explore_all && self.observer.is_none()
    }

    /// Publishes to all threads what was found in a level that is being expanded.
    pub fn note(&self, finding: &Finding) {
        if finding.is_step() {
            self.settled[finding.property].fetch_or(STEP, Relaxed);
        } else {
            self.settle(finding);
        }
    }

    /// Notes for all threads that this is not looked for any more.
    pub fn settle(&self, finding: &Finding) {
        let what = if self.is_open(finding) { UNDEFINED } else { ANSWERED };
        self.settled[finding.property].fetch_or(what, Relaxed);
    }

    /// Whether the property may still be decided by another state: a goal had no value in this one.
    fn is_open(&self, finding: &Finding) -> bool {
        self.properties[finding.property].goal.is_existential() && finding.message.is_some()
    }

    /// Whether the user asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.control.cancel.is_cancelled()
    }
}

/// The state of a run, or of one thread of it.
pub(crate) struct Run<'a> {
    pub system: &'a dyn System,
    pub store: &'a dyn Store,
    plan: Plan<'a>,
    /// Working memory of this thread.
    pub system_scratch: Scratch,
    pub store_scratch: Scratch,
    pub block: Block,
    pub batch: Batch,
    pub answers: Vec<Insert>,
    /// What was found about each property.
    evidence: Vec<Evidence>,
    pub statistics: Statistics,
    started: Instant,
    /// When the process's memory was looked at.
    looked: Option<Duration>,
    told: Duration,
    until_check: u32,
    /// Bytes of the frontier and the batch that the budget has granted.
    working_granted: u64,
}

impl<'a> Run<'a> {
    pub fn new(plan: Plan<'a>) -> Self {
        let Plan { system, store, properties, .. } = plan;
        let batch = Batch::new(system.width()).under(plan.control);
        Run {
            system,
            store,
            plan,
            evidence: vec![Evidence::default(); properties.len()],
            system_scratch: system.scratch(),
            store_scratch: store.scratch(),
            block: Block::new(system.width()),
            batch,
            answers: Vec::new(),
            statistics: Statistics::default(),
            started: Instant::now(),
            looked: None,
            told: Duration::ZERO,
            // The first block looks: a limit that is reached at once is noticed at once.
            until_check: 0,
            working_granted: 0,
        }
    }

    /// How many states to expand together: full blocks, unless states have so many
    /// successors that a batch would leave the cache, or are so wide that it would take too much of the budget.
    pub fn block_size(&self) -> usize {
        let fan_out = self.statistics.edges / self.statistics.expanded.max(1) + 1;
        let in_cache = (SUCCESSORS / fan_out).clamp(8, BLOCK as u64);
        let slots = match self.system.width() {
            Width::Fixed(slots) => slots as u64,
            Width::Varies => self.block.states().slots().len() as u64 / self.block.len().max(1) as u64,
        };
        // What states to come may have, as far as that is known: all actions before any was seen, later twice of what the
        // last ones had.
        let last = self.batch.len() as u64 / self.block.len().max(1) as u64;
        let fan_out = match self.statistics.expanded {
            0 => self.system.action_count().map_or(fan_out, u64::from),
            _ => 2 * fan_out.max(last),
        };
        let most = (self.plan.control.budget.limit() / 32).clamp(1 << 18, 1 << 25);
        in_cache.min(most / (fan_out * (4 * slots + 16)).max(1)).max(1) as usize
    }

    /// The most depth that is looked at.
    pub fn depth_limit(&self) -> u64 {
        self.plan.control.limits.depth.unwrap_or(u64::MAX)
    }

    /// The most states that may be found.
    pub fn state_limit(&self) -> Option<u64> {
        self.plan.control.limits.states
    }

    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes that this is not looked for any more, before its answer is recorded.
    pub fn settle(&self, finding: &Finding) {
        self.plan.settle(finding);
    }

    /// Inserts the initial states and appends those that are new.
    pub fn begin(&mut self, frontier: &mut dyn Recode, roots: &mut Vec<Root>) -> Result<(), Stop> {
        loop {
            self.batch.reset(self.system.width());
            match self.system.initial(&mut self.system_scratch, &mut self.batch) {
                Ok(()) => break,
                Err(Widen) => self.widen(frontier)?,
            }
        }
        assert!(!self.batch.is_empty(), "a system has at least one initial state");
        for number in 0..self.batch.len() {
            let action = self.batch.action(number);
            let (state, hash) = (self.batch.target(number), self.batch.hash(number));
            let full = self.plan.control.limits.states.is_some_and(|limit| self.store.len() >= limit);
            if full && self.store.find(&mut self.store_scratch, state, hash).is_none() {
                return Err(Stop::States);
            }
            match self.store.insert(&mut self.store_scratch, state, hash, &Arrival { parent: None, action }) {
                Insert::New(id) => {
                    self.statistics.states += 1;
                    roots.push(Root { id, state: state.to_vec(), action });
                }
                Insert::Seen(_) => {}
                Insert::Full => return Err(self.plan.control.stop_when_full()),
            }
        }
        Ok(())
    }

    /// Fills the batch with the successors of the block, unless the layout must be widened
    /// first; the block must then be filled again in the new layout.
    pub fn expand(&mut self) -> Result<(), Widen> {
        self.batch.reset(self.system.width());
        self.system.expand(&mut self.system_scratch, &self.block, &mut self.batch)?;
        self.note_cut_off();
        Ok(())
    }

    fn note_cut_off(&self) {
        if self.batch.cut_off_sources() != 0 {
            self.end_at_count();
        }
    }

    /// Ends the run at the next check: a number grew beyond what is counted.
    pub fn end_at_count(&self) {
        self.plan.cut_off.store(true, Relaxed);
    }

    /// The same without the edges that are skipped where `arrivals` reached the states of the block.
    pub fn expand_awake(&mut self, sleep: &Sleep, arrivals: &[Action]) -> Result<(), Widen> {
        self.batch.reset(self.system.width());
        self.system.expand_awake(&mut self.system_scratch, &self.block, sleep, arrivals, &mut self.batch)?;
        self.note_cut_off();
        Ok(())
    }

    /// Counts a change of the layout.
    pub fn widened(&mut self) {
        self.statistics.widenings += 1;
    }

    /// Widens the layout of the system, the store and the frontier.
    pub fn widen(&mut self, frontier: &mut dyn Recode) -> Result<(), Stop> {
        // Returned at the end: what the new layout takes in place of the old one is resident by then, and observed.
        let mut grant = Grant::new(&self.plan.control.budget);
        if !grant.ask(self.system.widening_bytes()) {
            return Err(self.plan.control.stop_when_full());
        }
        let recoding = self.system.widen();
        self.statistics.widenings += 1;
        self.plan.control.listener.event(&Event::Widened(&recoding.reason));
        if !self.store.recode(&recoding) {
            return Err(self.plan.control.stop_when_full());
        }
        frontier.recode(&recoding);
        Ok(())
    }

    /// Inserts the batch, exactly up to the limit on states. An error if not all of it is in the store.
    pub fn insert(&mut self) -> Result<(), Stop> {
        self.make_room_for_answers(self.batch.len())?;
        let Run { store, plan, store_scratch, block, batch, answers, .. } = self;
        if plan.quota.insert(|| store.len(), *store, store_scratch, (block, batch), answers) {
            return Err(Stop::States);
        }
        // A store that takes a batch in an order of its own may find no room for one in the middle.
        if self.answers.contains(&Insert::Full) {
            return Err(self.plan.control.stop_when_full());
        }
        assert_eq!(
            self.answers.len(),
            self.batch.len(),
            "a store answers for every successor, or says that it is full"
        );
        Ok(())
    }

    /// Empties the list of answers, and asks for room for this many where they are very many.
    pub fn make_room_for_answers(&mut self, count: usize) -> Result<(), Stop> {
        /// Fewer are counted once they are there.
        const FEW: usize = 1 << 14;
        self.answers.clear();
        let more = count.saturating_sub(self.answers.capacity());
        if more == 0 || count < FEW {
            return Ok(());
        }
        let bytes = (more * size_of::<Insert>()) as u64;
        if !self.plan.control.budget.request(bytes) {
            return Err(self.plan.control.stop_when_full());
        }
        self.working_granted += bytes;
        self.answers.reserve_exact(count);
        Ok(())
    }

    /// Counts the block and shows it to the observer. Call when all its successors are in
    /// the store, or known.
    pub fn count(&mut self) {
        self.tally();
        if let Some(observer) = &self.plan.observer {
            let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
            observer.expanded(self.system, &mut self.system_scratch, &self.block, &self.batch, &self.answers);
        }
    }

    /// Passes the edges of the block on to the sink, if there is one. Call when all its successors are in the store.
    pub fn pass_on(&mut self) -> Result<(), Stop> {
        self.plan.sink.map_or(Ok(()), |sink| sink(&self.block, &self.batch, &self.answers))
    }

    /// Counts a block at the depth limit without inserting its successors. Returns whether one of them
    /// is not in the store, so that there are states beyond the limit.
    pub fn count_at_depth_limit(&mut self) -> bool {
        self.answers.clear();
        for index in 0..self.batch.len() {
            let (state, hash) = (self.batch.target(index), self.batch.hash(index));
            if let Some(id) = self.store.find(&mut self.store_scratch, state, hash) {
                self.answers.push(Insert::Seen(id));
            }
        }
        let all = self.answers.len() == self.batch.len();
        if all {
            self.count();
        } else {
            self.count_last();
        }
        !all
    }

    /// Counts a block some of whose successors are not in the store, as at the depth limit, and shows it to the observer.
    pub fn count_last(&mut self) {
        self.tally();
        if let Some(observer) = &self.plan.observer {
            let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
            observer.expanded_last(self.system, &mut self.system_scratch, &self.block, &self.batch);
        }
    }

    /// Counts the block, whose successors need not be known.
    pub fn tally(&mut self) {
        self.statistics.expanded += self.block.len() as u64;
        self.statistics.edges += self.batch.len() as u64 + self.batch.left_out();
        self.statistics.left_out += self.batch.left_out();
        self.statistics.deadlocks += u64::from(self.dead().count_ones());
    }

    /// A word with a bit for each state of the block that has no successor.
    pub fn dead(&self) -> u64 {
        self.block.mask() & !self.batch.moved()
    }

    /// The properties that this block answers. Call after [`expand`](Self::expand).
    pub fn findings(&mut self) -> Vec<Finding> {
        let (findings, unknown) = self.look();
        if unknown {
            self.end_at_count();
        }
        findings
    }

    /// The same, and whether some evaluation reached a bound, so that the run must end.
    pub fn look(&mut self) -> (Vec<Finding>, bool) {
        let dead = self.dead();
        let mut findings = Vec::new();
        let mut unknown = false;
        for (property, question) in self.plan.properties.iter().enumerate() {
            if self.plan.is_settled(property, ANSWERED) {
                continue;
            }
            let at = |state: usize| Finding { property, state, fault: None, message: None };
            let goal = &question.goal;
            let decided = goal.look(self.system, &mut self.system_scratch, &self.block, dead, self.batch.faults());
            if let Some(fault) = decided.fault {
                let message = Some(fault.message.clone());
                findings.push(Finding { fault: fault.action, message, ..at(fault.source.into()) });
                continue;
            }
            unknown |= decided.unknown;
            if let Some(undefined) = decided.why {
                let message = format!("the property has no value here: {}", undefined.message);
                // A goal may still be reached elsewhere, so the search goes on; only the first state
                // without a value is kept for the end.
                if !(goal.is_existential() && self.plan.is_settled(property, UNDEFINED)) {
                    findings.push(Finding { message: Some(message), ..at(undefined.state) });
                }
                if !goal.is_existential() {
                    continue;
                }
            }
            if decided.states != 0 {
                findings.push(at(decided.states.trailing_zeros() as usize));
            }
        }
        (findings, unknown)
    }

    /// The goals that have no answer yet.
    pub fn open_goals(&self) -> impl Iterator<Item = &'a Goal> {
        let open = |property: &usize| !self.plan.is_settled(*property, ANSWERED);
        (0..self.plan.properties.len()).filter(open).map(|property| &self.plan.properties[property].goal)
    }

    /// Whether every property has its answer, so that the run may end.
    pub fn is_answered(&self) -> bool {
        self.plan.is_answered()
    }

    /// Records the answer that a [probe](crate::probe) found, unless there is one.
    ///
    /// # Panics
    /// When the trace does not replay to that state.
    pub fn answer_by_probe(&mut self, finding: Finding, trace: Trace, state: &[u32]) {
        if self.wants(&finding) {
            let property = finding.property;
            self.answer(finding, Some(trace), state);
            self.evidence[property].probed = true;
        }
    }

    /// Whether the property of a finding has its answer.
    pub fn is_settled(&self, finding: &Finding) -> bool {
        self.plan.is_settled(finding.property, ANSWERED)
    }

    /// Whether a finding would say something new.
    pub fn wants(&self, finding: &Finding) -> bool {
        let Evidence { decided, undefined, .. } = &self.evidence[finding.property];
        decided.is_none() && !(self.plan.is_open(finding) && undefined.is_some())
    }

    /// What was found about each property.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Why some property was decided without the trace that shows it, if one was.
    pub fn untraced(&self) -> Option<Stop> {
        let witnesses = self.evidence.iter().flat_map(|found| [&found.decided, &found.undefined]);
        witnesses.flatten().find_map(|witness| witness.trace.as_ref().err().copied())
    }

    /// Goes on from what another run had counted and found.
    pub fn go_on(&mut self, statistics: Statistics, evidence: Vec<Evidence>) {
        for (property, found) in evidence.iter().enumerate() {
            let what = [(found.decided.is_some(), ANSWERED), (found.undefined.is_some(), UNDEFINED)];
            what.iter().filter(|(is, _)| *is).for_each(|(_, what)| {
                self.plan.settled[property].fetch_or(*what, Relaxed);
            });
        }
        (self.statistics, self.evidence) = (statistics, evidence);
    }

    /// The properties that are asked.
    pub fn properties(&self) -> &'a [Property] {
        self.plan.properties
    }

    /// What steers the run.
    pub fn control(&self) -> &'a Control {
        self.plan.control
    }

    /// Records an answer, with the trace that leads to its state, if there was memory and time to find it.
    ///
    /// # Panics
    /// When the trace does not replay to that state.
    pub fn answer(&mut self, finding: Finding, trace: Option<Trace>, state: &[u32]) {
        let control = self.plan.control;
        let trace = trace.map(|trace| match finding.fault {
            Some(fault) => trace.with_fault(fault),
            None => trace,
        });
        let replayed = trace.filter(|trace| {
            let mut end = Vec::new();
            let followed = trace.follow(self.system, |_, state| {
                end.clear();
                end.extend_from_slice(state);
                control.stop_without_memory().map_or(Ok(()), Err)
            });
            match followed {
                Ok(Ok(_)) => assert_eq!(end, state, "a trace ends where it should"),
                // What was not replayed to its end is not shown.
                Ok(Err(_)) => return false,
                Err(error) => panic!("a trace replays: {error}"),
            }
            true
        });
        self.plan.settle(&finding);
        let trace = replayed.ok_or_else(|| control.stop_without_memory().unwrap_or(Stop::Memory));
        let (is_open, evidence) = (self.plan.is_open(&finding), &mut self.evidence[finding.property]);
        let witness = Some(Witness { trace, message: finding.message });
        if is_open {
            evidence.undefined = witness;
            return;
        }
        evidence.decided = witness;
        let Property { name, goal, .. } = &self.plan.properties[finding.property];
        control.listener.event(&Event::Answered(name, goal.decided(None, None).word()));
    }

    /// Whether the run should end now, and why. Call once a block.
    pub fn check(&mut self, snapshot: impl FnOnce(&Self) -> Snapshot) -> Option<Stop> {
        if self.plan.is_answered() {
            return Some(Stop::Answered);
        }
        self.check_limits(snapshot)
    }

    /// The same, for a run that does not end in the middle of a level because it has its answers.
    pub fn check_limits(&mut self, snapshot: impl FnOnce(&Self) -> Snapshot) -> Option<Stop> {
        if self.plan.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        if self.plan.cut_off.load(Relaxed) {
            return Some(Stop::Count);
        }
        // A system cannot refuse to number a value in the midst of a step, so its tables are asked for once
        // a block, right after they have grown.
        if budget::ran_out() || !self.plan.control.budget.tables(self.plan.system.table_bytes()) {
            return Some(Stop::Memory);
        }
        if self.until_check > 0 {
            self.until_check -= 1;
            return None;
        }
        self.until_check = CHECK_EVERY;
        let now = Instant::now();
        let elapsed = now.duration_since(self.started);
        let control = self.plan.control;
        if control.limits.time.is_some_and(|limit| elapsed >= limit) || control.deadline.is_some_and(|end| now >= end) {
            return Some(Stop::Time);
        }
        if let Some(limit) = self.plan.control.limits.memory
            && self.looked.is_none_or(|looked| elapsed - looked >= LOOK_EVERY)
        {
            self.looked = Some(elapsed);
            if let Some(resident) = (self.plan.control.resident)() {
                if resident > limit {
                    return Some(Stop::Memory);
                }
                self.plan.control.budget.observe(resident);
            }
        }
        if elapsed - self.told >= TELL_EVERY {
            self.told = elapsed;
            let resident_bytes = (self.plan.control.resident)();
            let snapshot = Snapshot { resident_bytes, elapsed, ..snapshot(self) };
            self.plan.control.listener.event(&Event::Progress(&snapshot));
        }
        None
    }

    /// A snapshot but for the frontier.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            states: self.store.len(),
            edges: self.statistics.edges,
            depth: self.statistics.depth,
            store_bytes: self.store.bytes(),
            ..Snapshot::default()
        }
    }

    /// Has the budget count what the frontier and the batch hold. Returns whether it is granted.
    /// What the store holds of the frontier, it has asked for itself.
    #[must_use]
    pub fn frontier_holds(&mut self, bytes: u64) -> bool {
        self.frontier_peak(bytes);
        self.holds(bytes)
    }

    /// Notes what the frontier holds, of all threads together.
    pub fn frontier_peak(&mut self, bytes: u64) {
        let frontier = bytes + self.store.frontier_bytes();
        self.statistics.frontier_peak_bytes = self.statistics.frontier_peak_bytes.max(frontier);
    }

    /// Has the budget count what this thread holds: its part of the frontier, and its batch.
    #[must_use]
    pub fn holds(&mut self, bytes: u64) -> bool {
        let asked_by_itself = self.batch.granted_bytes();
        let batch = self.batch.held_bytes().saturating_sub(asked_by_itself)
            + (self.answers.capacity() * size_of::<Insert>()) as u64;
        let more = (bytes + batch).saturating_sub(self.working_granted);
        let granted = more == 0 || self.plan.control.budget.request(more);
        if granted {
            self.working_granted += more;
        }
        granted
    }

    /// Takes in what another thread of this run has counted and found; what it held is gone.
    pub fn absorb(&mut self, other: Run<'_>) {
        for (own, others) in self.evidence.iter_mut().zip(other.evidence) {
            own.decided = own.decided.take().or(others.decided);
            own.undefined = own.undefined.take().or(others.undefined);
            own.probed |= others.probed;
        }
        self.statistics.depth = self.statistics.depth.max(other.statistics.depth);
        self.statistics.expanded += other.statistics.expanded;
        self.statistics.edges += other.statistics.edges;
        self.statistics.left_out += other.statistics.left_out;
        self.statistics.deadlocks += other.statistics.deadlocks;
        self.plan.control.budget.release(other.working_granted);
    }

    /// Counts states once that the store had forgotten and that were expanded again: they are expanded once more, and
    /// what that adds is taken off. Only if all states of the store were expanded, in whole levels.
    #[cold]
    fn count_once(&mut self) {
        let counted = std::mem::take(&mut self.statistics);
        let (states, store, control) = (counted.states, self.store, self.plan.control);
        let depth = (counted.expanded == states)
            .then(|| store.repeated(states, control, &mut |states| self.tally_all(states)))
            .flatten();
        let repeated = std::mem::replace(&mut self.statistics, counted);
        let Some(depth) = depth else {
            self.statistics.again = Again::Unknown;
            return;
        };
        self.statistics.states -= repeated.expanded;
        self.statistics.expanded -= repeated.expanded;
        self.statistics.edges -= repeated.edges;
        self.statistics.deadlocks -= repeated.deadlocks;
        self.statistics.depth = depth;
        self.statistics.again = Again::Counted(repeated.expanded);
    }

    /// Expands and counts states, no more.
    fn tally_all(&mut self, states: &States) -> Result<(), Stop> {
        let mut at = 0;
        while at < states.len() {
            self.plan.control.ask()?;
            let end = states.len().min(at + self.block_size());
            self.block.reset(self.system.width());
            (at..end).for_each(|index| self.block.push(StateId::NAMELESS, states.get(index)));
            // They were expanded before, so no layout is too narrow.
            self.expand().map_err(|Widen| Stop::Memory)?;
            if let Some(stop) = self.batch.stop() {
                return Err(stop);
            }
            self.tally();
            at = end;
        }
        Ok(())
    }

    /// The outcome of a run that ended for this reason; nothing means that every reachable
    /// state was expanded.
    pub fn finish(self, stopped_by: Option<Stop>) -> Outcome {
        let states = self.store.len();
        self.finish_with(states, stopped_by)
    }

    /// The same, where only the first `states` of those found count.
    pub fn finish_with(mut self, states: u64, stopped_by: Option<Stop>) -> Outcome {
        let stopped_by = stopped_by.or(self.plan.cut_off.load(Relaxed).then_some(Stop::Count));
        self.plan.control.budget.release(self.working_granted);
        let store_bytes = self.store.bytes();
        self.statistics.states = states;
        if self.store.has_forgotten() {
            self.count_once();
        }
        // What was there before is the time of the runs that this one goes on from.
        self.statistics.search_time += self.started.elapsed();
        let guarantee = self.store.guarantee();
        let found = self.plan.properties.iter().zip(self.evidence);
        Outcome {
            properties: found.map(|(property, found)| property.outcome(found, stopped_by, guarantee)).collect(),
            stopped_by,
            statistics: self.statistics,
            store_bytes,
            guarantee,
            warning: self.store.warning(),
        }
    }
}

/// What must follow when the layout changes.
pub(crate) trait Recode {
    fn recode(&mut self, recoding: &Recoding);
}
