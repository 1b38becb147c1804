//! Depth-first search.
//!
//! # Requirements
//! Any store. The stack holds packed ids, if the store recalls states by id, and full states
//! otherwise.
//!
//! # Guarantees
//! Every reachable state is expanded once (with an exact store). States are inserted when they are
//! generated and expanded deepest first, so the path to a state is on the stack: traces need no
//! back edges, but are rarely shortest. `depth` is the longest path that was on the stack.
//!
//! # The stack
//! ```text
//! list    [ r | a b c d | e f g | h i ]
//! frames   ^r       ^c,d     ^g         each frame: a few expanded states …
//!                                       … followed by their new successors, still to do
//! ```
//! The last states of a frame's to-do list, up to a block of them, are expanded together in place:
//! they become the head of the next frame. So the list only grows and shrinks at its end. Expanding
//! blocks instead of single states is three to four times as fast; the cost is that a path is known
//! only up to its block: which state of a head leads to the next is found by expanding the head
//! again, when a trace is needed.

use crate::Task;
use crate::path::{initial_number, leading_to};
use crate::run::{Plan, Recode, Run};
use deltamark_core::{
    BLOCK, Insert, Numbers, Outcome, Recall, Recoding, Slot, Snapshot, StateId, States, Stop, Trace, Width,
};

/// The states on the stack.
enum StackStates<'a> {
    Ids { recall: &'a dyn Recall, ids: Numbers },
    States { states: States },
}

/// The expanded states of a frame: where they begin in the list, and how many they are.
#[derive(Clone, Copy)]
struct Head {
    start: usize,
    len: u8,
}

impl Head {
    fn end(self) -> usize {
        self.start + usize::from(self.len)
    }

    /// As one number: a head has 1 to [`BLOCK`] states.
    fn number(self) -> u64 {
        (self.start * BLOCK + usize::from(self.len) - 1) as u64
    }

    fn from_number(number: u64) -> Self {
        let number = number as usize;
        Head { start: number / BLOCK, len: (number % BLOCK) as u8 + 1 }
    }
}

struct Stack<'a> {
    list: StackStates<'a>,
    /// The [numbers](Head::number) of the heads of the frames, ascending.
    heads: Numbers,
}

impl<'a> Stack<'a> {
    fn new(recall: Option<&'a dyn Recall>, width: Width) -> Self {
        let list = match recall {
            Some(recall) => StackStates::Ids { recall, ids: Numbers::new() },
            None => StackStates::States { states: States::new(width) },
        };
        Stack { list, heads: Numbers::new() }
    }

    fn len(&self) -> usize {
        match &self.list {
            StackStates::Ids { ids, .. } => ids.len(),
            StackStates::States { states } => states.len(),
        }
    }

    fn push(&mut self, id: StateId, state: &[Slot]) {
        match &mut self.list {
            StackStates::Ids { ids, .. } => ids.push(id.get()),
            StackStates::States { states } => states.push(state),
        }
    }

    /// Asks the budget for room for the successors of a batch.
    fn may_take(&self, run: &mut Run<'_>) -> bool {
        let more = run.batch.len();
        let growth = match &self.list {
            StackStates::Ids { ids, .. } => ids.growth(more, run.store.len() + more as u64),
            StackStates::States { states } => states.growth(more, run.batch.targets().slots().len()),
        };
        growth == 0 || run.frontier_holds(self.held_bytes() + growth)
    }

    /// The head of the last frame.
    fn head(&self) -> Option<Head> {
        self.heads.last().map(Head::from_number)
    }

    /// Makes the last states to do, `most` at most, the head of a new frame, leaving frames
    /// that are done. `None` if no state is left.
    fn descend(&mut self, most: usize) -> Option<Head> {
        while let Some(head) = self.head()
            && head.end() == self.len()
        {
            self.heads.truncate(self.heads.len() - 1);
            self.truncate(head.start);
        }
        let to_do = self.len() - self.head().map_or(0, Head::end);
        let len = to_do.min(most);
        let head = Head { start: self.len() - len, len: len as u8 };
        if len > 0 {
            self.heads.push(head.number());
        }
        (len > 0).then_some(head)
    }

    fn truncate(&mut self, len: usize) {
        match &mut self.list {
            StackStates::Ids { ids, .. } => ids.truncate(len),
            StackStates::States { states } => states.truncate(len),
        }
    }

    /// Fills the run's block with the states of a head.
    fn fill(&self, run: &mut Run<'_>, head: Head) {
        run.block.reset(run.system.width());
        let positions = head.start..head.end();
        match &self.list {
            StackStates::Ids { recall, ids } => {
                let ids = positions.map(|position| StateId::new(ids.get(position)));
                run.block.fill(ids, |ids, states| recall.recall(&mut run.store_scratch, ids, states));
            }
            StackStates::States { states } => {
                for position in positions {
                    run.block.push(StateId::NAMELESS, states.get(position));
                }
            }
        }
    }

    fn held_bytes(&self) -> u64 {
        let list = match &self.list {
            StackStates::Ids { ids, .. } => ids.held_bytes(),
            StackStates::States { states } => states.held_bytes(),
        };
        list + self.heads.held_bytes()
    }

    /// The path that leads through the heads to a state of the last one. Uses the run's
    /// block and batch, and leaves the last head in the block. `None` if the run must end before it is found.
    fn path(&self, run: &mut Run<'_>, state: &[Slot]) -> Option<Trace> {
        let mut state = state.to_vec();
        let mut actions = Vec::new();
        let last = self.heads.len() - 1;
        for frame in (0..last).rev() {
            if run.control().stop_without_memory().is_some() {
                break;
            }
            self.fill(run, Head::from_number(self.heads.get(frame)));
            run.expand().expect("successors that were stored fit the layout");
            let (source, action) = leading_to(&run.batch, &state).expect("a head leads to the next");
            actions.push(action);
            state.clear();
            state.extend_from_slice(run.block.state(source));
        }
        actions.reverse();
        self.fill(run, Head::from_number(self.heads.get(last)));
        if actions.len() < last {
            return None;
        }
        let initial = initial_number(run.system, &mut run.system_scratch, &state);
        Some(Trace::path(initial, actions))
    }
}

impl Recode for Stack<'_> {
    fn recode(&mut self, recoding: &Recoding) {
        if let StackStates::States { states } = &mut self.list {
            recoding.translate_all(states);
        }
    }
}

/// Searches depth-first.
pub(crate) fn run(task: Task<'_>) -> Outcome {
    let mut run = Run::new(Plan::new(task));
    let mut stack = Stack::new(run.store.recall(), run.system.width());
    let stop = explore(&mut run, &mut stack);
    run.finish(stop)
}

fn explore(run: &mut Run<'_>, stack: &mut Stack<'_>) -> Option<Stop> {
    let mut roots = Vec::new();
    let begun = run.begin(stack, &mut roots);
    for root in roots.iter().rev() {
        stack.push(root.id, &root.state);
    }
    if let Err(stop) = begun {
        return Some(stop);
    }
    let mut beyond = false;
    while let Some(head) = stack.descend(run.block_size()) {
        let depth = stack.heads.len() as u64 - 1;
        run.statistics.depth = run.statistics.depth.max(depth);
        let bytes = stack.held_bytes();
        if !run.frontier_holds(bytes) {
            return Some(Stop::Memory);
        }
        let waiting = stack.len() as u64;
        if let Some(stop) = run.check(|run| Snapshot { frontier: waiting, frontier_bytes: bytes, ..run.snapshot() }) {
            return Some(stop);
        }
        stack.fill(run, head);
        while run.expand().is_err() {
            if let Err(stop) = run.widen(stack) {
                return Some(stop);
            }
            stack.fill(run, head);
        }
        if let Some(stop) = run.batch.stop() {
            return Some(stop);
        }
        // Before anything is inserted: what is expanded is looked at, even if the run ends here.
        let findings = run.findings();
        let answered = !findings.is_empty();
        for finding in findings {
            let state = run.block.state(finding.state).to_vec();
            let trace = stack.path(run, &state);
            run.answer(finding, trace, &state);
        }
        if answered {
            // Finding the path has used the batch.
            run.expand().expect("successors that fitted the layout still do");
        }
        if depth >= run.depth_limit() {
            beyond |= run.count_at_depth_limit();
        } else {
            if !stack.may_take(run) {
                return Some(Stop::Memory);
            }
            let step = run.insert();
            for (index, answer) in run.answers.iter().enumerate().rev() {
                if let Insert::New(id) = answer {
                    run.statistics.states += 1;
                    stack.push(*id, run.batch.target(index));
                }
            }
            if let Err(stop) = step {
                return Some(stop);
            }
            run.count();
        }
    }
    beyond.then_some(Stop::Depth)
}
