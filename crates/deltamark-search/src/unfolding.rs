//! States expanded when they are asked for, in any order.
//!
//! In: a task, and questions for the successors of states by number. Out: their numbers. What stays true: a state is
//! expanded once, when it is first asked for, and its successors are inserted into the store then; limits hold as in any
//! search; all memory was granted by the budget: four bytes an edge, and eight a state.

use crate::Task;
use crate::run::{Plan, Recode, Run};
use deltamark_core::{Block, Grant, Insert, Outcome, Recall, Recoding, Scratch, StateId, Stop, Store, System};

/// Why a store cannot serve, if it cannot.
pub fn unfit_for_unfolding(store: &dyn Store) -> Option<&'static str> {
    match store.recall() {
        None => Some("it does not recall states"),
        Some(recall) if !recall.whole() => Some("it recalls the current level alone"),
        Some(recall) if !recall.sequential() => Some("it does not number states one after the other"),
        Some(_) => None,
    }
}

/// Where the successors of a state are, and how many.
#[derive(Clone, Copy)]
struct Row {
    begin: u32,
    len: u32,
}

/// The row of a state that was not expanded.
const UNKNOWN: Row = Row { begin: 0, len: u32::MAX };
/// That of one without successors that is no deadlock: it has a fault.
const FAULTY: Row = Row { begin: u32::MAX, len: 0 };

/// What has been expanded so far.
pub struct Unfolding<'a> {
    run: Run<'a>,
    recall: &'a dyn Recall,
    rows: Vec<Row>,
    targets: Vec<u32>,
    grant: Grant,
}

/// What is held are numbers, which stay the same.
struct Numbered;

impl Recode for Numbered {
    fn recode(&mut self, _: &Recoding) {}
}

/// Appends to a list that the budget knows of.
fn push<T>(list: &mut Vec<T>, item: T, grant: &mut Grant) -> Result<(), Stop> {
    if list.len() == list.capacity() {
        let more = (list.capacity() / 2).max(64);
        if !grant.ask((more * size_of::<T>()) as u64) {
            return Err(Stop::Memory);
        }
        list.reserve_exact(more);
    }
    list.push(item);
    Ok(())
}

impl<'a> Unfolding<'a> {
    /// Nothing is expanded yet.
    ///
    /// # Panics
    /// If the store is [unfit](unfit_for_unfolding).
    pub fn new(task: Task<'a>) -> Self {
        let grant = Grant::new(&task.control.budget);
        let recall = task.store.recall().filter(|recall| recall.sequential()).expect("a store that numbers states");
        Unfolding { run: Run::new(Plan::new(task)), recall, rows: Vec::new(), targets: Vec::new(), grant }
    }

    /// Inserts the initial states; their numbers.
    pub fn begin(&mut self) -> Result<Vec<u32>, Stop> {
        let mut roots = Vec::new();
        self.run.begin(&mut Numbered, &mut roots)?;
        Ok(roots.iter().map(|root| root.id.get() as u32).collect())
    }

    /// The number of states found.
    pub fn states(&self) -> u64 {
        self.run.store.len()
    }

    /// Successor `index` of a state; `None` if it has no more.
    pub fn successor(&mut self, state: u32, index: usize) -> Result<Option<u32>, Stop> {
        let Row { begin, len } = self.row(state)?;
        Ok((index < len as usize).then(|| self.targets[begin as usize + index]))
    }

    /// Looks at a state, which is the only one of the block; the last argument is whether it is a deadlock.
    pub fn look<T>(
        &mut self,
        state: u32,
        look: impl FnOnce(&dyn System, &mut Scratch, &Block, bool) -> T,
    ) -> Result<T, Stop> {
        let row = self.row(state)?;
        let dead = row.len == 0 && row.begin != FAULTY.begin;
        self.fill(state);
        let Run { system, system_scratch, block, .. } = &mut self.run;
        Ok(look(*system, system_scratch, block, dead))
    }

    fn fill(&mut self, state: u32) {
        let Unfolding { run, recall, .. } = self;
        run.block.reset(run.system.width());
        run.block.fill([StateId::new(state.into())], |ids, states| recall.recall(&mut run.store_scratch, ids, states));
    }

    fn row(&mut self, state: u32) -> Result<Row, Stop> {
        if let Some(&row) = self.rows.get(state as usize)
            && row.len != UNKNOWN.len
        {
            return Ok(row);
        }
        loop {
            self.fill(state);
            if self.run.expand().is_ok() {
                break;
            }
            self.run.widen(&mut Numbered)?;
        }
        if let Some(stop) = self.run.batch.stop() {
            return Err(stop);
        }
        if !self.run.holds(0) {
            return Err(Stop::Memory);
        }
        if let Some(stop) = self.run.check(|run| run.snapshot()) {
            return Err(stop);
        }
        let inserted = self.run.insert();
        self.run.statistics.states +=
            self.run.answers.iter().filter(|one| matches!(one, Insert::New(_))).count() as u64;
        inserted?;
        self.run.count();
        let begin = self.targets.len() as u32;
        for answer in &self.run.answers {
            let (Insert::New(id) | Insert::Seen(id)) = answer else { continue };
            if id.get() >= u64::from(u32::MAX) || self.targets.len() >= u32::MAX as usize - 1 {
                return Err(Stop::Memory);
            }
            push(&mut self.targets, id.get() as u32, &mut self.grant)?;
        }
        while self.rows.len() <= state as usize {
            push(&mut self.rows, UNKNOWN, &mut self.grant)?;
        }
        let row = match self.targets.len() as u32 - begin {
            0 if self.run.dead() == 0 => FAULTY,
            len => Row { begin, len },
        };
        self.rows[state as usize] = row;
        Ok(row)
    }

    /// The outcome of a run that ended for this reason.
    pub fn finish(self, stopped_by: Stop) -> Outcome {
        self.run.finish(Some(stopped_by))
    }
}
