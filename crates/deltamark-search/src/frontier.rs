//! The frontier of a level-by-level search.
//!
//! In: for each new state the thread that found it, its id, and how it was reached. Out: the states
//! of the current level, by number, and a shortest path to each. Invariant: a level is read-only
//! while it is expanded, so all threads share it; discoveries go to per-thread lists, and at the
//! end of the level the concatenated lists are the next level.
//!
//! # What is kept
//! | the store | of a waiting state | a trace comes from |
//! |---|---|---|
//! | numbers states 0, 1, 2 … and recalls them, or those of the current level | nothing: the level is a range of ids | the store, or walking back through the levels |
//! | recalls states by ids of its own | its id, packed | logs of back edges, a few bytes a state; or a second search, if the store retraces |
//! | does not recall states | the state | the same logs |
//!
//! # Numbers
//! ```text
//! thread 0   a b c | f g        number of a state: in the order of
//! thread 1   d e   | h          the levels, then of the threads,
//! number     0 … 4 | 5 6 7      then as the thread found them
//! ```
//! Without logs, if the actions that led to states are needed, the order is a different one: that
//! of the blocks whose successors they are, as if one thread had found them all. (The first arrival
//! of a state is then mostly that of a single thread; with another order kanban 5 skips two thirds
//! of the edges it could.)
//!
//! A log entry refers to the parent by its number, which is known while the parent is expanded. A
//! thread's log is in its order of discovery; the numbers of these states are in a list of
//! segments, with one entry for each contiguous range of one log.
//!
//! # Actions that led to a state
//! A system with independent actions skips successors if it knows how a state was reached. If ids
//! are numbers, the actions are in lists by number (`arrivals.rs`); otherwise beside the ids or
//! states.

use crate::arrivals::Arrivals;
use crate::log::Log;
use crate::path::{Levels, Past};
use crate::retrace::retrace;
use crate::run::Run;
use deltamark_core::{Action, Insert, Numbers, Recoding, Slot, StateId, States, Store, System, Trace, Width};
use std::ops::Range;

/// States that wait, of one thread and one level.
pub(crate) enum WaitingStates {
    /// A range of ids.
    Sequential,
    Ids(Numbers),
    States(States),
}

impl WaitingStates {
    fn new(store: &dyn Store, width: Width) -> Self {
        match store.recall() {
            Some(recall) if recall.sequential() => WaitingStates::Sequential,
            Some(_) => WaitingStates::Ids(Numbers::new()),
            None => WaitingStates::States(States::new(width)),
        }
    }

    fn len(&self) -> u64 {
        match self {
            WaitingStates::Sequential => 0,
            WaitingStates::Ids(ids) => ids.len() as u64,
            WaitingStates::States(states) => states.len() as u64,
        }
    }

    fn clear(&mut self) {
        match self {
            WaitingStates::Sequential => {}
            WaitingStates::Ids(ids) => ids.truncate(0),
            WaitingStates::States(states) => states.clear(),
        }
    }

    fn held_bytes(&self) -> u64 {
        match self {
            WaitingStates::Sequential => 0,
            WaitingStates::Ids(ids) => ids.held_bytes(),
            WaitingStates::States(states) => states.held_bytes(),
        }
    }

    fn recode(&mut self, recoding: &Recoding) {
        if let WaitingStates::States(states) = self {
            recoding.translate_all(states);
        }
    }
}

/// What a thread has found of the next level.
pub(crate) struct Later {
    list: WaitingStates,
    /// The action that led to each, plus one, if it is wanted.
    actions: Option<Numbers>,
    /// How it was reached, and all that the thread found before; `None` if the store retraces.
    log: Option<Log>,
    /// Of each block the number of its first state, and how many the list has after it; where the
    /// order matters.
    marks: Option<Vec<Mark>>,
}

/// The end of what was found by expanding a block.
#[derive(Clone, Copy)]
struct Mark {
    block: u64,
    end: u64,
}

impl Later {
    /// Empty lists of one thread of several; `arrivals` is whether the actions that led to
    /// states are wanted.
    pub fn new(store: &dyn Store, width: Width, threads: usize, arrivals: bool) -> Self {
        let list = WaitingStates::new(store, width);
        let actions = (arrivals && !matches!(list, WaitingStates::Sequential)).then(Numbers::new);
        let retraced = store.recall().is_some_and(|recall| recall.retraces());
        let marks = (threads > 1 && retraced && actions.is_some()).then(Vec::new);
        Later { list, actions, log: (!retraced).then(Log::default), marks }
    }

    /// Whether new states must be reported to it.
    pub fn is_needed(&self) -> bool {
        !matches!(self.list, WaitingStates::Sequential)
    }

    /// Notes a new state; `parent` is its parent's number, and its own for an initial state.
    pub fn push(&mut self, id: StateId, state: &[Slot], parent: u64, action: Action) {
        match &mut self.list {
            WaitingStates::Sequential => return,
            WaitingStates::Ids(ids) => ids.push(id.get()),
            WaitingStates::States(states) => states.push(state),
        }
        if let Some(log) = &mut self.log {
            log.push(parent, action);
        }
    }

    /// Notes the action that led to the state that was pushed last, if that is wanted.
    pub fn arrive(&mut self, action: Action) {
        if let Some(actions) = &mut self.actions {
            actions.push(u64::from(action.0.wrapping_add(1)));
        }
    }

    /// Notes that all states of a block were pushed; `block` is the number of its first state.
    pub fn mark(&mut self, block: u64) {
        let end = self.list.len();
        if let Some(marks) = &mut self.marks
            && marks.last().map_or(0, |mark| mark.end) < end
        {
            marks.push(Mark { block, end });
        }
    }

    /// How many states it lists.
    pub fn len(&self) -> u64 {
        self.list.len()
    }

    /// Appends states that it lists by their ids.
    pub fn recall(&self, run: &mut Run<'_>, places: Range<u64>, out: &mut States) {
        if let WaitingStates::Ids(ids) = &self.list {
            let ids: Vec<StateId> = places.map(|index| StateId::new(ids.get(index as usize))).collect();
            let recall = run.store.recall().expect("a store that recalls goes on to do so");
            recall.recall(&mut run.store_scratch, &ids, out);
        }
    }

    pub fn held_bytes(&self) -> u64 {
        let actions = self.actions.as_ref().map_or(0, Numbers::held_bytes);
        let marks = self.marks.as_ref().map_or(0, Vec::capacity) * size_of::<Mark>();
        self.list.held_bytes() + actions + marks as u64 + self.log.as_ref().map_or(0, Log::held_bytes)
    }

    /// How many more bytes it will hold, at most, with the successors of a batch, where those
    /// are many: ids are few bytes in small pieces and are counted when they are there.
    pub fn growth(&self, run: &Run<'_>) -> u64 {
        let WaitingStates::States(states) = &self.list else { return 0 };
        let more = run.batch.len();
        let log = self.log.as_ref().map_or(0, |log| log.growth(more));
        states.growth(more, run.batch.targets().slots().len()) + log
    }

    pub fn recode(&mut self, recoding: &Recoding) {
        self.list.recode(recoding);
    }
}

/// Numbers whose back edges are in one log, contiguously.
#[derive(Clone, Copy)]
struct Segment {
    first: u64,
    thread: u32,
    /// The entry of the first in the log of this thread.
    entry: u64,
}

/// What a thread has found of the current level.
struct Part {
    list: WaitingStates,
    actions: Option<Numbers>,
}

/// Numbers of the current level that are in one part, contiguously.
struct LevelPiece {
    first: u64,
    thread: usize,
    /// The place of the first in the part.
    at: u64,
}

/// The current level.
pub(crate) struct Level {
    /// The numbers of its states.
    numbers: Range<u64>,
    /// What each thread has found.
    parts: Vec<Part>,
    /// Whether the order in which states are expanded matters.
    ordered: bool,
    /// Which number is where, where ids are no numbers.
    pieces: Vec<LevelPiece>,
    /// How states were reached, where ids are numbers and it is wanted.
    arrivals: Option<Arrivals>,
    /// The first number of each level, where ids are numbers.
    starts: Numbers,
    /// Where back edges are, where they are needed.
    segments: Vec<Segment>,
}

impl Level {
    /// A level before the first, for this many threads; `arrivals` is whether the actions that
    /// led to states are wanted.
    pub fn new(store: &dyn Store, system: &dyn System, threads: usize, arrivals: bool) -> Self {
        let part = |_| {
            let Later { list, actions, marks, .. } = Later::new(store, system.width(), threads, arrivals);
            (Part { list, actions }, marks.is_some())
        };
        let (parts, ordered): (Vec<Part>, Vec<bool>) = (0..threads).map(part).unzip();
        let ordered = ordered.contains(&true);
        let shared = arrivals && matches!(parts[0].list, WaitingStates::Sequential);
        let arrivals = shared.then(|| Arrivals::new(system.action_count(), threads));
        let (pieces, starts, segments) = (Vec::new(), Numbers::new(), Vec::new());
        Level { numbers: 0..0, parts, ordered, pieces, arrivals, starts, segments }
    }

    /// The numbers of its states.
    pub fn numbers(&self) -> Range<u64> {
        self.numbers.clone()
    }

    /// Goes on to the next level, which is what all threads have found; `len` is how many
    /// states there are now. Returns whether it has any.
    pub fn advance(&mut self, len: u64, found: &mut [Option<&mut Later>]) -> bool {
        let before = self.numbers.end - self.numbers.start;
        self.numbers.start = self.numbers.end;
        // The block that each stretch of a part comes from, the part, and where it is there.
        let mut stretches: Vec<(u64, usize, Range<u64>)> = Vec::new();
        let mut next = self.numbers.start;
        for (thread, (later, Part { list, actions })) in found.iter_mut().zip(&mut self.parts).enumerate() {
            // A thread that was not started has found nothing.
            let Some(later) = later else { continue };
            std::mem::swap(list, &mut later.list);
            later.list.clear();
            std::mem::swap(actions, &mut later.actions);
            if let Some(actions) = &mut later.actions {
                actions.truncate(0);
            }
            let count = list.len();
            match &mut later.marks {
                Some(marks) => {
                    let mut start = 0;
                    for Mark { block, end } in marks.drain(..) {
                        stretches.push((block, thread, start..end));
                        start = end;
                    }
                }
                None => stretches.push((0, thread, 0..count)),
            }
            if let (Some(log), 1..) = (&later.log, count) {
                let segment = Segment { first: next, thread: thread as u32, entry: log.len() - count };
                let follows = |last: &Segment| {
                    last.thread == segment.thread && last.entry + (segment.first - last.first) == segment.entry
                };
                if !self.segments.last().is_some_and(follows) {
                    self.segments.push(segment);
                }
            }
            next += count;
        }
        // Those of one block are of one thread, and in order.
        stretches.sort_by_key(|&(block, thread, _)| (block, thread));
        self.pieces.clear();
        for (_, thread, range) in stretches {
            let first = self.numbers.end;
            self.numbers.end += range.end - range.start;
            let follows = |last: &LevelPiece| last.thread == thread && last.at + (first - last.first) == range.start;
            if !range.is_empty() && !self.pieces.last().is_some_and(follows) {
                self.pieces.push(LevelPiece { first, thread, at: range.start });
            }
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.advance(before);
        }
        if matches!(self.parts[0].list, WaitingStates::Sequential) {
            self.numbers.end = len;
            self.starts.push(self.numbers.start);
        }
        !self.numbers.is_empty()
    }

    /// Takes the place of all levels before one that begins with this number: the next level is that one. `starts` has the
    /// first number of each of these levels, where ids are numbers.
    pub fn resume(&mut self, next: u64, starts: Numbers) {
        (self.numbers, self.starts) = (next..next, starts);
    }

    /// Appends states of the level, where the store recalls them.
    pub fn recall(&self, run: &mut Run<'_>, numbers: Range<u64>, out: &mut States) {
        let recall = run.store.recall().expect("a store that recalls goes on to do so");
        if let WaitingStates::Sequential = self.parts[0].list {
            return recall.recall_range(&mut run.store_scratch, numbers, out);
        }
        for (part, places) in self.places(numbers) {
            if let WaitingStates::Ids(ids) = &part.list {
                let ids: Vec<StateId> = places.map(|index| StateId::new(ids.get(index))).collect();
                recall.recall(&mut run.store_scratch, &ids, out);
            }
        }
    }

    /// Notes the action that led to a state of the next level, where ids are numbers and it is wanted.
    pub fn note_arrival(&self, place: u64, action: Action) {
        if let Some(arrivals) = &self.arrivals {
            arrivals.begin(0);
            arrivals.note(0, place, action);
        }
    }

    /// Whether the order in which states are expanded matters.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// The parts in which these states are, contiguously, and where they are there.
    fn places(&self, numbers: Range<u64>) -> impl Iterator<Item = (&Part, Range<usize>)> {
        let first = self.pieces.partition_point(|piece| piece.first <= numbers.start).saturating_sub(1);
        let ends = self.pieces[first..].iter().skip(1).map(|next| next.first).chain([self.numbers.end]);
        let overlapping = self.pieces[first..].iter().zip(ends).take_while(move |(piece, _)| piece.first < numbers.end);
        overlapping.map(move |(piece, end)| {
            let (start, end) = (numbers.start.max(piece.first), numbers.end.min(end));
            let place = |number: u64| (piece.at + (number - piece.first)) as usize;
            (&self.parts[piece.thread], place(start)..place(end))
        })
    }

    /// Fills the run's block with states of the level.
    pub fn fill(&self, run: &mut Run<'_>, numbers: Range<u64>) {
        run.block.reset(run.system.width());
        let recall = || run.store.recall().expect("a store that recalls goes on to do so");
        if let WaitingStates::Sequential = self.parts[0].list {
            let ids = numbers.clone().map(StateId::new);
            let scratch = &mut run.store_scratch;
            run.block.fill(ids, |_, states| recall().recall_range(scratch, numbers, states));
            return;
        }
        for (part, places) in self.places(numbers) {
            match &part.list {
                WaitingStates::Sequential => {}
                WaitingStates::Ids(ids) => {
                    let ids = places.map(|index| StateId::new(ids.get(index)));
                    let scratch = &mut run.store_scratch;
                    run.block.fill(ids, |ids, states| recall().recall(scratch, ids, states));
                }
                WaitingStates::States(states) => {
                    places.for_each(|index| run.block.push(StateId::NAMELESS, states.get(index)));
                }
            }
        }
    }

    /// Appends the actions that led to states of the level.
    pub fn arrivals(&self, numbers: Range<u64>, out: &mut Vec<Action>) {
        if let Some(arrivals) = &self.arrivals {
            out.extend(numbers.map(|number| arrivals.get(number - self.numbers.start)));
            return;
        }
        for (part, places) in self.places(numbers) {
            let action = |index: usize| part.actions.as_ref().map_or(0, |actions| actions.get(index));
            out.extend(places.map(|index| Action((action(index) as u32).wrapping_sub(1))));
        }
    }

    /// Notes how the successors of a batch were reached, new ones and those that are of the
    /// level under construction.
    pub fn note_arrivals(&self, thread: usize, answers: &[Insert], actions: &[Action]) {
        let Some(arrivals) = &self.arrivals else { return };
        arrivals.begin(thread);
        for (answer, &action) in answers.iter().zip(actions) {
            if let Insert::New(id) | Insert::Seen(id) = answer
                && id.get() >= self.numbers.end
                && *id != StateId::NAMELESS
            {
                arrivals.note(thread, id.get() - self.numbers.end, action);
            }
        }
    }

    /// The first number of each level, where ids are numbers.
    pub fn starts(&self) -> &Numbers {
        &self.starts
    }

    /// The bytes of what this thread has found of the level.
    pub fn part_bytes(&self, thread: usize) -> u64 {
        let Part { list, actions } = &self.parts[thread];
        list.held_bytes() + actions.as_ref().map_or(0, Numbers::held_bytes)
    }

    /// The bytes of what all threads share.
    pub fn shared_bytes(&self) -> u64 {
        let arrivals = self.arrivals.as_ref().map_or(0, Arrivals::held_bytes);
        let pieces = (self.pieces.capacity() * size_of::<LevelPiece>()) as u64;
        arrivals + pieces + self.starts.held_bytes() + (self.segments.capacity() * size_of::<Segment>()) as u64
    }

    pub fn recode(&mut self, recoding: &Recoding) {
        self.parts.iter_mut().for_each(|part| part.list.recode(recoding));
    }

    /// A shortest path to a state of this number and id; `found` is what each thread has found.
    /// `None` if the store should return it and has no memory to find it, or if the run must end before.
    pub fn path(
        &self,
        run: &mut Run<'_>,
        found: &[Option<&Later>],
        number: u64,
        id: StateId,
        state: &[Slot],
    ) -> Option<Trace> {
        if let WaitingStates::Sequential = self.parts[0].list {
            let control = run.control();
            if let Some(trace) = run.store.path(&mut run.store_scratch, id, control) {
                return Some(trace);
            }
            let past = vec![Past { store: run.store, starts: &self.starts }];
            let levels = Levels { system: run.system, past, owner: |_, _| 0, control };
            let level = self.starts.partition_point(|start| start <= id.get()) - 1;
            return levels.path(level, state.to_vec());
        }
        if run.store.recall().is_some_and(|recall| recall.retraces()) {
            return retrace(run, state, found.len());
        }
        let mut number = number;
        let mut actions = Vec::new();
        loop {
            let at = self.segments.partition_point(|segment| segment.first <= number) - 1;
            let Segment { first, thread, entry } = self.segments[at];
            let later = found[thread as usize].expect("a thread that has found states is there");
            let log = later.log.as_ref().expect("a store that does not retrace has a log beside it");
            let (parent, action) = log.entry(entry + (number - first));
            if parent == number {
                actions.reverse();
                return Some(Trace::path(action.0, actions));
            }
            actions.push(action);
            number = parent;
        }
    }
}
