//! The sweep-line method.
//!
//! # The idea
//! States are expanded in order of progress, and deleted as soon as all unexpanded states have
//! progressed further: if no edge regresses, they are not revisited. From S. Christensen, L.M.
//! Kristensen, T. Mailund, *A sweep-line method for state space exploration*, TACAS 2001. Regress
//! edges are handled as in L.M. Kristensen, T. Mailund, *A generalised sweep-line method for safety
//! properties*, FME 2002: their targets become persistent and are the roots of another sweep.
//! States are numbered as in T. Mailund, M. Westergaard, *Obtaining memory-efficient reachability
//! graph representations using the sweep-line method*, TACAS 2004.
//!
//! ```text
//! rank     0    1    2    3    4    5
//!          .    .    x    w    w    w        x expanded, w unexpanded, . deleted
//!                    │ line
//!               k◀───┼── regress edge        k persistent; root of the next sweep
//! ```
//!
//! # Requirements
//! A [`Window`] instead of a store, and a [`Measure`], which may be any function of the state.
//!
//! # Guarantees
//! *Termination.* Behind the line only persistent states are inserted. At or ahead of the line a
//! state is inserted at most once per sweep, as it is known until the line has passed, and the line
//! does not go back within a sweep. So a sweep expands every reachable state at most once, and the
//! persistent ones, of which there are no more than reachable states. Another sweep follows only if
//! a state became persistent; that happens at most as often as there are reachable states.
//!
//! *Completeness: every reachable state is expanded.* By induction along a path: initial states are
//! inserted; whenever a state is expanded each of its successors is known or gets inserted; and no
//! inserted state is deleted before it was expanded. So "holds" is reported only for a complete
//! run, and is correct.
//!
//! *With a monotonic measure, every state is expanded once*, and states, edges and deadlocks are
//! those of any other search: a deleted state has a lower rank than all unexpanded ones, and no
//! path leads back to it. With other measures states are revisited, renumbered and expanded again.
//! The counts are then those of an *unfolding*: each number represents one state, and its edges
//! lead to numbers that represent that state's successors, all of them; so the function from
//! numbers to states is a bisimulation, and properties of an unfolding are properties of the state
//! space, except for counts.
//!
//! Initial states are persistent, if they are few: many systems return to them, and would be
//! explored twice for one state.
//!
//! Traces are rarely shortest. A sweep records no back edges; a trace is found by a
//! [second run](crate::guided) in the same order, which ends as soon as it reaches the state.
//!
//! # Edges that are not followed
//! Where every action has a gain of its own and none is negative, edges may be skipped as in a search by levels
//! ([sleep sets](deltamark_core::sleep)): if `s` was reached from `p` by `a`, and `b` can be exchanged with `a`, the step `b` from `s` is
//! skipped, if `a` comes before `b`. There that rests on levels; here on ranks, and on levels within a rank.
//!
//! Let `r(t)` be the rank of a state, and `d(t)` the least number of steps without gain by which it
//! is reached from a target of an advancing step, or from an initial state. Three conditions are
//! enforced:
//!
//! 1. Actions that advance precede all others.
//! 2. A rank is *orderly* if none of its states was expanded before the line reached it. Its states
//!    are then expanded level by level: those that were present when the line arrived (all with
//!    `d = 0`, and no others, once all such are known to have been inserted), then their
//!    successors, and so on; a block never holds states of two levels.
//! 3. That `s` was reached by an `a` without gain counts only if the rank is orderly and `s` is of
//!    the level after that of `p`. That it was reached by an `a` that advances counts always.
//!
//! *Claim:* every reachable `t` is inserted; and in an orderly rank, in level `d(t)`. By induction
//! on `(r, d)`. Call a step to `t` tight if it advances and `d(t) = 0`, or if it has no gain and
//! leads from a state of the same rank whose `d` is smaller by one. If `t` is not initial, there is
//! a tight step from a reachable state; that state has a smaller `(r, d)`, so it is inserted and
//! expanded. Take of all tight steps the first in the order of actions, `b` from `s`. Suppose it is
//! skipped: `s` was reached by an `a` before `b` from an expanded `p`, there is an `s'` to which
//! `b` leads from `p`, and `a` leads from there to `t`.
//!
//! * If `a` advances, `d(t) = 0`. So `a` from `s'` is a tight step that precedes `b`: a
//!   contradiction.
//! * If `a` has no gain, neither has `b` (1). The rank is orderly and `p` is of the level before
//!   that of `s` (3), that is, `d(p) = d(s) - 1 = d(t) - 2` (by induction). So `d(s') <= d(t) - 1`,
//!   and as `a` leads from `s'` to `t`, `d(s') = d(t) - 1`: again a tight step that precedes `b`.
//!
//! So `t` is inserted when `s` is expanded, at the latest. In an orderly rank that is not before
//! level `d(t) - 1` is expanded, because no step leads to `t` from an earlier level; so `t` gets
//! into level `d(t)`. ∎

use crate::guided;
use crate::run::{Finding, Plan, Recode, Run};
use crate::{Observer, Task};
use deltamark_core::{
    Action, Arrival, BLOCK, Block, Bytes, Control, Edge, Entrants, Guarantee, Insert, Measure, Outcome, Property, Rank,
    Recoding, Recorder, Remember, Scratch, Sleep, Slot, Snapshot, StateId, Stop, Store, System, Widen, Window,
};

/// Up to this many initial states are kept for good.
const FEW: usize = 64;

/// Of this many states that are held one may be expanded ahead of the line.
const AHEAD: u64 = 128;

/// Ranks of more states than these, on the average, are kept orderly.
const LARGE: u64 = 4 * BLOCK as u64;

/// What to sweep.
pub struct SweepTask<'a> {
    /// The model.
    pub system: &'a dyn System,
    /// Makes an empty window.
    pub window: &'a dyn Fn(Remember) -> Box<dyn Window + 'a>,
    /// How far a state has come.
    pub measure: &'a dyn Measure,
    /// What is asked.
    pub properties: &'a [Property],
    /// Limits and listeners.
    pub control: &'a Control,
    /// Go on when every property has its answer.
    pub explore_all: bool,
    /// Who else wants to see the expanded states.
    pub observer: Option<&'a mut dyn Observer>,
    /// Who takes down the graph.
    pub recorder: Option<&'a mut dyn Recorder>,
}

/// What a sweep counted beside what every search counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How often the line went through.
    pub sweeps: u64,
    /// How many ranks it stopped at.
    pub ranks: u64,
    /// Edges that led behind the line.
    pub regress_edges: u64,
    /// States that were kept for good, without the initial ones.
    pub persistent: u64,
    /// The most states that were held at one time.
    pub peak_states: u64,
    /// The most bytes that they took.
    pub peak_bytes: u64,
    /// Whether states may have been numbered more than once.
    pub unfolding: bool,
    /// Why the graph could not be taken down, if it could not; the run ended then.
    pub unrecorded: Option<String>,
}

/// Sweeps.
///
/// # Panics
/// When a trace does not replay: a bug, which must not be taken for an answer.
pub fn run_sweep(task: SweepTask<'_>) -> (Outcome, Swept) {
    let SweepTask { system, window: make, measure, properties, control, explore_all, observer, recorder } = task;
    let mut ranking = Ranking::new(system, measure, observer.is_none() && recorder.is_none(), control);
    let remember = Remember { numbers: recorder.is_some(), actions: ranking.leaves_out() };
    let window = make(remember);
    let shown = WindowStore(&*window);
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let plan = Plan::new(Task { system, store: &shown, properties, control, explore_all, observer });
    let mut run = Run::new(plan);
    let mut sweep = Sweep::new(&*window, &mut ranking, recorder);
    let stop = sweep.explore(&mut run);
    let Sweep { swept, found, peak, numbers, .. } = sweep;
    run.statistics.depth = 0;
    // The window is empty for the second run: what it held may be needed there.
    if found.is_empty() {
        let outcome = run.finish(stop);
        return (finished(outcome, peak, numbers), swept);
    }
    window.clear();
    let elapsed = run.elapsed();
    let sought = found.iter().map(|found| found.state.as_slice()).collect();
    let traces = guided::traces(guided::Guided { system, make, ranking: &mut ranking, control, elapsed, sought });
    for (found, trace) in found.into_iter().zip(traces) {
        if run.wants(&found.finding) {
            run.answer(found.finding, trace, &found.state);
        }
    }
    let outcome = run.finish(stop);
    (finished(outcome, peak, numbers), swept)
}

/// The outcome of a run that numbered `numbers` states and held at most these bytes.
fn finished(mut outcome: Outcome, peak: Bytes, numbers: u64) -> Outcome {
    outcome.statistics.states = numbers;
    outcome.store_bytes = peak;
    outcome
}

/// A state for which a property has its answer.
struct AnsweredState {
    finding: Finding,
    state: Vec<Slot>,
}

/// The ranks of states, and which edges may be skipped.
pub(crate) struct Ranking<'a> {
    measure: &'a dyn Measure,
    pub gains: Option<&'a [Rank]>,
    /// How edges are skipped, if they are: actions that advance come first.
    sleep: Option<Sleep>,
    /// Whether every action is known to advance, so that no step leads to the line from there or from ahead.
    pub advances: bool,
    part: Option<Block>,
    /// The ranks of the batch that was looked at last.
    pub ranks: Vec<Rank>,
}

impl<'a> Ranking<'a> {
    pub fn new(system: &'a dyn System, measure: &'a dyn Measure, may_leave_out: bool, control: &Control) -> Self {
        let gains = measure.gains();
        let monotone = gains.filter(|gains| may_leave_out && gains.iter().all(|&gain| gain >= 0));
        let reordered = |gains: &[Rank]| {
            let first = |action: Action| gains.get(action.0 as usize).is_some_and(|&gain| gain > 0);
            Sleep::new(system, Some(&first), control).unwrap_or_default()
        };
        Ranking {
            measure,
            gains,
            sleep: monotone.and_then(reordered),
            advances: gains.is_some_and(|gains| gains.iter().all(|&gain| gain > 0)),
            part: None,
            ranks: Vec::new(),
        }
    }

    /// Whether edges are skipped.
    pub fn leaves_out(&self) -> bool {
        self.sleep.is_some()
    }

    /// Works out the ranks of the batch of a run, whose sources have these ranks; of initial states,
    /// without any.
    fn rank(&mut self, run: &mut Run<'_>, sources: Option<&[Rank]>) {
        self.ranks.clear();
        if let (Some(gains), Some(sources)) = (self.gains, sources) {
            let gain = |action: Action| gains.get(action.0 as usize).copied().unwrap_or(0);
            let (batch, ranks) = (&run.batch, &mut self.ranks);
            let sum = |index| sources[batch.source(index)].checked_add(gain(batch.action(index)));
            ranks.extend((0..batch.len()).map_while(sum));
            // A rank that wrapped round would say that an action regresses of which it is known that it advances.
            if ranks.len() < batch.len() {
                ranks.resize(batch.len(), Rank::MAX);
                run.end_at_count();
            }
            return;
        }
        let width = run.system.width();
        let part = self.part.get_or_insert_with(|| Block::new(width));
        for start in (0..run.batch.len()).step_by(BLOCK) {
            part.reset(width);
            for index in start..run.batch.len().min(start + BLOCK) {
                part.push(StateId::NAMELESS, run.batch.target(index));
            }
            self.measure.ranks(run.system, &mut run.system_scratch, part, &mut self.ranks);
        }
        assert_eq!(self.ranks.len(), run.batch.len(), "a rank for each state");
    }
}

/// Who looks on while states are numbered.
pub(crate) trait Witness {
    /// The batch of the run, whose sources have these numbers, was entered. Returns whether that was enough.
    fn entered(&mut self, run: &mut Run<'_>, initial: bool) -> Result<bool, Stop>;
}

/// A run of the line over all states.
pub(crate) struct Sweep<'s, 'a> {
    window: &'s dyn Window,
    ranking: &'s mut Ranking<'a>,
    recorder: Option<&'s mut (dyn Recorder + 'a)>,
    pub witness: Option<&'s mut dyn Witness>,
    found: Vec<AnsweredState>,
    arrivals: Vec<Action>,
    /// The ranks of the states of the block: how many there are of each, and that of each.
    parts: Vec<(Rank, usize)>,
    sources: Vec<Rank>,
    /// Ranks from this one on are orderly.
    orderly: Rank,
    edges: Edges,
    swept: Swept,
    /// How many states have a number.
    numbers: u64,
    /// What the window held when it held most, about.
    peak: Bytes,
}

impl<'s, 'a> Sweep<'s, 'a> {
    pub fn new(
        window: &'s dyn Window,
        ranking: &'s mut Ranking<'a>,
        recorder: Option<&'s mut (dyn Recorder + 'a)>,
    ) -> Self {
        Sweep {
            window,
            ranking,
            recorder,
            witness: None,
            found: Vec::new(),
            arrivals: Vec::new(),
            parts: Vec::new(),
            sources: Vec::new(),
            orderly: Rank::MIN,
            edges: Edges::new(),
            swept: Swept::default(),
            numbers: 0,
            peak: Bytes::new(),
        }
    }

    /// All sweeps.
    pub fn explore(&mut self, run: &mut Run<'_>) -> Option<Stop> {
        if let Err(stop) = self.begin(run) {
            return Some(stop);
        }
        let initial = self.window.kept();
        while let Some(first) = self.window.waiting(Rank::MIN) {
            self.swept.sweeps += 1;
            let result = self.sweep(run, first);
            self.swept.persistent = self.window.kept() - initial;
            self.swept.unfolding = self.swept.persistent > 0;
            if let Err(stop) = result {
                return Some(stop);
            }
        }
        None
    }

    /// Enters the initial states.
    fn begin(&mut self, run: &mut Run<'_>) -> Result<(), Stop> {
        loop {
            run.batch.reset(run.system.width());
            match run.system.initial(&mut run.system_scratch, &mut run.batch) {
                Ok(()) => break,
                Err(Widen) => self.widen(run)?,
            }
        }
        assert!(!run.batch.is_empty(), "a system has at least one initial state");
        self.ranking.rank(run, None);
        // What comes behind the line is kept for good.
        let few = run.batch.len() <= FEW;
        self.window.advance(if few { Rank::MAX } else { Rank::MIN }, false);
        run.block.reset(run.system.width());
        self.enter(run, true)
    }

    /// One sweep, from this rank on.
    fn sweep(&mut self, run: &mut Run<'_>, first: Rank) -> Result<(), Stop> {
        let mut next = Some(first);
        while let Some(line) = next {
            self.window.advance(line, self.ranking.advances);
            self.swept.ranks += 1;
            while self.block(run, line)? {}
            next = self.window.waiting(line);
        }
        self.window.advance(Rank::MAX, false);
        Ok(())
    }

    /// Fills the block with states that wait at the line. If these are few, those that wait next are
    /// expanded with them: a block that is nearly empty takes as long as a full one. Successors between the line and
    /// them are still ahead of the line, so nothing is lost by it.
    fn fill(&mut self, run: &mut Run<'_>, line: Rank) {
        run.block.reset(run.system.width());
        self.arrivals.clear();
        self.parts.clear();
        self.sources.clear();
        let most = run.block_size();
        // Not too many ahead of the line, for a window of a few states: they make it larger. None where ranks are large: they
        // would not be orderly any more, for a few states.
        let large = self.ranking.leaves_out() && !self.ranking.advances && self.numbers > LARGE * self.swept.ranks;
        let ahead = if large { 0 } else { most.min((self.window.len() / AHEAD) as usize) };
        let mut next = Some(line);
        while let Some(rank) = next {
            let before = run.block.len();
            let room = if before == 0 { most } else { ahead.saturating_sub(before) };
            self.window.fill(rank, room, &mut run.block, &mut self.arrivals);
            let count = run.block.len() - before;
            if count > 0 {
                self.parts.push((rank, count));
                self.sources.resize(run.block.len(), rank);
                if rank > line {
                    self.orderly = self.orderly.max(rank + 1);
                }
            }
            let full = run.block.len() >= ahead || self.parts.is_empty();
            next = if full { None } else { self.window.waiting(rank + 1) };
        }
        self.forget_arrivals();
    }

    /// Forgets of states of ranks that are not orderly how they were reached, if not by an action that advances.
    fn forget_arrivals(&mut self) {
        let Some(gains) = self.ranking.gains else { return };
        for (arrival, &rank) in self.arrivals.iter_mut().zip(&self.sources) {
            if rank < self.orderly && gains.get(arrival.0 as usize).is_none_or(|&gain| gain <= 0) {
                *arrival = Action::NONE;
            }
        }
    }

    /// Expands a block of states that wait, those at the line first. Returns whether there were any at the line.
    fn block(&mut self, run: &mut Run<'_>, line: Rank) -> Result<bool, Stop> {
        if !run.frontier_holds(self.edges.held_bytes()) {
            return Err(Stop::Memory);
        }
        let (window, numbers) = (self.window, self.numbers);
        let look = |run: &Run<'_>| Snapshot {
            states: numbers,
            frontier: numbers - run.statistics.expanded,
            store_bytes: Bytes::new().with("window", window.held_bytes()),
            ..run.snapshot()
        };
        if let Some(stop) = run.check(look) {
            return Err(stop);
        }
        loop {
            self.fill(run, line);
            if run.block.is_empty() {
                return Ok(false);
            }
            match self.expand(run) {
                Ok(()) => break,
                Err(Widen) => self.widen(run)?,
            }
        }
        if let Some(stop) = run.batch.stop() {
            return Err(stop);
        }
        // Before anything is entered: what is expanded is looked at, even if the run ends here.
        for finding in run.findings() {
            run.settle(&finding);
            self.found.push(AnsweredState { state: run.block.state(finding.state).to_vec(), finding });
        }
        self.ranking.rank(run, Some(&self.sources));
        self.swept.regress_edges += self.ranking.ranks.iter().filter(|&&rank| rank < line).count() as u64;
        self.enter(run, false)?;
        run.count();
        if let Some(recorder) = &mut self.recorder
            && let Err(why) = self.edges.record(run, &mut **recorder)
        {
            self.swept.unrecorded = Some(why);
            return Err(Stop::Cancelled);
        }
        self.parts.iter().for_each(|&(rank, count)| self.window.pass(rank, count));
        Ok(true)
    }

    fn expand(&mut self, run: &mut Run<'_>) -> Result<(), Widen> {
        match &self.ranking.sleep {
            Some(sleep) => run.expand_awake(sleep, &self.arrivals),
            None => run.expand(),
        }
    }

    /// Enters the states of the batch.
    fn enter(&mut self, run: &mut Run<'_>, initial: bool) -> Result<(), Stop> {
        run.answers.clear();
        let room = run.state_limit().map_or(u64::MAX, |limit| limit - self.numbers);
        // How an initial state was reached is no action.
        let actions = if initial { &[] } else { run.batch.actions() };
        let entrants =
            Entrants { states: run.batch.targets(), hashes: run.batch.hashes(), ranks: &self.ranking.ranks, actions };
        self.window.enter(entrants, room, &mut run.answers);
        self.numbers += run.answers.iter().filter(|answer| matches!(answer, Insert::New(_))).count() as u64;
        self.note_peak();
        if run.answers.contains(&Insert::Full) {
            return Err(Stop::Memory);
        }
        if run.answers.len() < run.batch.len() {
            return Err(Stop::States);
        }
        if let Some(witness) = &mut self.witness
            && witness.entered(run, initial)?
        {
            return Err(Stop::Answered);
        }
        Ok(())
    }

    fn note_peak(&mut self) {
        let bytes = self.window.held_bytes();
        self.swept.peak_states = self.swept.peak_states.max(self.window.len());
        if bytes > self.swept.peak_bytes {
            self.swept.peak_bytes = bytes;
            // Adding up the parts takes longer than entering a batch.
            if bytes > self.peak.total() + self.peak.total() / 64 {
                self.peak = self.window.bytes();
            }
        }
    }

    fn widen(&mut self, run: &mut Run<'_>) -> Result<(), Stop> {
        run.widen(&mut Findings(&mut self.found))
    }
}

/// States that were found, for a change of their layout.
struct Findings<'f>(&'f mut Vec<AnsweredState>);

impl Recode for Findings<'_> {
    fn recode(&mut self, recoding: &Recoding) {
        let mut state = Vec::new();
        for found in self.0.iter_mut() {
            recoding.translate(&found.state, &mut state);
            found.state.clone_from(&state);
        }
    }
}

/// The edges of a block, by source.
struct Edges {
    edges: Vec<Edge>,
    starts: [u32; BLOCK + 1],
}

impl Edges {
    fn new() -> Self {
        Edges { edges: Vec::new(), starts: [0; BLOCK + 1] }
    }

    fn held_bytes(&self) -> u64 {
        (self.edges.capacity() * size_of::<Edge>()) as u64
    }

    /// Hands the edges of a block over, state by state.
    fn record(&mut self, run: &Run<'_>, recorder: &mut dyn Recorder) -> Result<(), String> {
        let Run { batch, block, answers, .. } = run;
        self.starts = [0; BLOCK + 1];
        for index in 0..batch.len() {
            self.starts[batch.source(index) + 1] += 1;
        }
        for source in 0..BLOCK {
            self.starts[source + 1] += self.starts[source];
        }
        self.edges.clear();
        self.edges.resize(batch.len(), Edge { action: Action::NONE, target: 0 });
        let mut next = self.starts;
        for (index, answer) in answers.iter().enumerate() {
            let (Insert::New(id) | Insert::Seen(id)) = answer else { unreachable!("all were entered") };
            let place = &mut next[batch.source(index)];
            self.edges[*place as usize] = Edge { action: batch.action(index), target: id.get() };
            *place += 1;
        }
        let faulty = batch.faults().iter().fold(0u64, |mask, fault| mask | 1 << fault.source);
        for source in 0..block.len() {
            if faulty >> source & 1 == 1 {
                recorder.fault(block.id(source).get());
            }
            let edges = &self.edges[self.starts[source] as usize..self.starts[source + 1] as usize];
            recorder.record(block.id(source).get(), edges)?;
        }
        Ok(())
    }
}

/// A window as far as a run looks at a store.
pub(crate) struct WindowStore<'w>(pub &'w dyn Window);

impl Store for WindowStore<'_> {
    fn insert(&self, _: &mut Scratch, _: &[Slot], _: u64, _: &Arrival<'_>) -> Insert {
        unreachable!("a sweep enters states by their rank")
    }

    fn find(&self, _: &mut Scratch, _: &[Slot], _: u64) -> Option<StateId> {
        unreachable!("a sweep finds states by their rank")
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn bytes(&self) -> Bytes {
        Bytes::new()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        self.0.recode(recoding)
    }
}
