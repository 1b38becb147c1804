//! Depth-first search.
//!
//! # What it needs
//! A store of any kind. The stack holds ids, packed, if the store recalls states by id, and
//! full states otherwise.
//!
//! # What it guarantees
//! Every reachable state is expanded once (with an exact store). States are inserted when
//! they are generated and expanded deepest first, so the path to a state is on the stack:
//! traces need no back edges, but they are seldom shortest. `depth` is the longest path
//! that was on the stack.
//!
//! # The stack
//! ```text
//! list    [ root | a b c | d e | f g h ]
//! frames   ^root     ^c    ^e            each frame: one expanded state …
//!                                        … followed by its new successors, still to do
//! ```
//! The last state of a frame's to-do is expanded where it stands: it becomes the head of
//! the next frame. So the list only grows and shrinks at its end, and the heads of the
//! frames are the path.

use crate::Task;
use crate::ids::Ids;
use crate::path::{initial_number, leading_to};
use crate::run::{Recode, Run, Step};
use deltamark_core::{Insert, Outcome, Recall, Recoding, Slot, Snapshot, StateId, States, Stop, Trace, Width};

/// The states on the stack.
enum List<'a> {
    Ids { recall: &'a dyn Recall, ids: Ids },
    States { states: States },
}

struct Stack<'a> {
    list: List<'a>,
    /// Where the heads of the frames stand in the list, ascending.
    heads: Vec<u64>,
}

impl<'a> Stack<'a> {
    fn new(recall: Option<&'a dyn Recall>, width: Width) -> Self {
        let list = match recall {
            Some(recall) => List::Ids { recall, ids: Ids::new() },
            None => List::States { states: States::new(width) },
        };
        Stack { list, heads: Vec::new() }
    }

    fn len(&self) -> usize {
        match &self.list {
            List::Ids { ids, .. } => ids.len(),
            List::States { states } => states.len(),
        }
    }

    fn push(&mut self, id: StateId, state: &[Slot]) {
        match &mut self.list {
            List::Ids { ids, .. } => ids.push(id),
            List::States { states } => states.push(state),
        }
    }

    /// Makes the last state the head of a new frame, leaving frames that are done. Says
    /// whether there is one.
    fn descend(&mut self) -> bool {
        // A head at the end of the list has nothing left to do.
        while let Some(&head) = self.heads.last()
            && head + 1 == self.len() as u64
        {
            self.heads.pop();
            self.truncate(head as usize);
        }
        let len = self.len() as u64;
        if len > 0 {
            self.heads.push(len - 1);
        }
        len > 0
    }

    fn truncate(&mut self, len: usize) {
        match &mut self.list {
            List::Ids { ids, .. } => ids.truncate(len),
            List::States { states } => states.truncate(len),
        }
    }

    /// Fills the run's block with the state at `position`.
    fn fill(&self, run: &mut Run<'_>, position: u64) {
        run.block.reset(run.system.width());
        match &self.list {
            List::Ids { recall, ids } => {
                let id = ids.get(position as usize);
                run.block.fill([id], |ids, states| recall.recall(&mut run.store_scratch, ids, states));
            }
            List::States { states } => run.block.push(StateId::NAMELESS, states.get(position as usize)),
        }
    }

    fn held_bytes(&self) -> u64 {
        let list = match &self.list {
            List::Ids { ids, .. } => ids.held_bytes(),
            List::States { states } => states.held_bytes(),
        };
        list + (self.heads.capacity() * size_of::<u64>()) as u64
    }

    /// The path that the heads of the frames are. Uses the run's block and batch.
    fn path(&self, run: &mut Run<'_>) -> Trace {
        let mut actions = Vec::new();
        self.fill(run, self.heads[0]);
        let initial = initial_number(run.system, &mut run.system_scratch, run.block.state(0));
        for &head in &self.heads[1..] {
            run.expand().expect("successors that were stored fit the layout");
            self.fill(run, head);
            let (_, action) = leading_to(&run.batch, run.block.state(0)).expect("heads are a path");
            actions.push(action);
        }
        Trace { initial, actions, ends_in_fault: false }
    }
}

impl Recode for Stack<'_> {
    fn recode(&mut self, recoding: &Recoding) {
        if let List::States { states } = &mut self.list {
            recoding.translate_all(states);
        }
    }
}

/// Searches depth-first.
pub(crate) fn run(task: Task<'_>) -> Outcome {
    let mut run = Run::new(task);
    let mut stack = Stack::new(run.store.recall(), run.system.width());
    let stop = explore(&mut run, &mut stack);
    run.frontier_holds(stack.held_bytes());
    run.finish(stop)
}

fn explore(run: &mut Run<'_>, stack: &mut Stack<'_>) -> Option<Stop> {
    let mut roots = Vec::new();
    let begun = run.begin(stack, &mut roots);
    for root in roots.iter().rev() {
        stack.push(root.id, &root.state);
    }
    if let Step::Stop(stop) = begun {
        return Some(stop);
    }
    let mut beyond = false;
    while stack.descend() {
        let depth = stack.heads.len() as u64 - 1;
        run.statistics.depth = run.statistics.depth.max(depth);
        let bytes = stack.held_bytes();
        run.frontier_holds(bytes);
        let waiting = stack.len() as u64;
        if let Some(stop) = run.check(|run| Snapshot { frontier: waiting, frontier_bytes: bytes, ..run.snapshot() }) {
            return Some(stop);
        }
        let head = stack.heads[stack.heads.len() - 1];
        stack.fill(run, head);
        while let Err(widen) = run.expand() {
            if let Step::Stop(stop) = run.widen(widen, stack) {
                return Some(stop);
            }
            stack.fill(run, head);
        }
        if depth >= run.depth_limit() {
            beyond |= last(run);
        } else {
            let step = run.insert();
            for (index, answer) in run.answers.iter().enumerate().rev() {
                if let Insert::New(id) = answer {
                    run.statistics.states += 1;
                    stack.push(*id, run.batch.target(index));
                }
            }
            if let Step::Stop(stop) = step {
                return Some(stop);
            }
            run.count();
        }
        for finding in run.findings() {
            let state = run.block.state(finding.state).to_vec();
            let trace = stack.path(run);
            run.answer(finding, trace, &state);
        }
    }
    beyond.then_some(Stop::Depth)
}

/// Looks at a state at the depth limit. Says whether one of its successors is unknown.
fn last(run: &mut Run<'_>) -> bool {
    run.answers.clear();
    for index in 0..run.batch.len() {
        let (state, hash) = (run.batch.target(index), run.batch.hash(index));
        if let Some(id) = run.store.find(&mut run.store_scratch, state, hash) {
            run.answers.push(Insert::Seen(id));
        }
    }
    let all = run.answers.len() == run.batch.len();
    if all {
        run.count();
    }
    !all
}
