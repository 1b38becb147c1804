//! The graph of a run and the values of atoms, recorded as it goes on.
//!
//! In: expanded blocks of a run over a store whose ids are numbers, in the order of these numbers. Out: a [`Kripke`].
//! What stays true: nothing is recorded that the budget has not granted; where there is no room, the run is ended, and
//! there is no graph.

use super::Questions;
use super::answer::{Answers, ByStore, answers};
use super::atoms::Lens;
use crate::check::CheckError;
use crate::run::Watcher;
use deltamark_core::{Batch, BitSet, Block, Control, Insert, Outcome, Scratch, Stop, Store, System};
use deltamark_logic::kripke::{Edges, Kripke};
use deltamark_search::Observer;
use deltamark_store::StoreSpec;
use std::sync::Arc;

/// A state in which an atom has no value, and why; `None` if it has one in all.
pub(crate) type Undefined = Option<(u32, String)>;

/// What is known of the atoms of a graph.
pub(crate) struct Values {
    pub sets: Vec<BitSet>,
    /// Of each atom a state in which it has no value, and why.
    pub undefined: Vec<Undefined>,
}

impl Values {
    pub fn new(atoms: usize, control: &Control) -> Result<Self, Stop> {
        let set = || BitSet::new(0, &control.budget).ok_or(Stop::Memory);
        Ok(Values {
            sets: (0..atoms).map(|_| set()).collect::<Result<_, _>>()?,
            undefined: (0..atoms).map(|_| None).collect(),
        })
    }

    /// Takes the values in a block whose states have consecutive numbers, or, if `Err`, no value in one of them.
    pub fn look(
        &mut self,
        lens: &mut Lens,
        questions: &Questions,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        known: (u64, Option<&Batch>),
    ) -> Result<(), Stop> {
        let Values { sets, undefined } = self;
        let first = block.id(0).get();
        let end = (0..block.len()).map(|index| block.id(index).get() + 1).max().unwrap_or(0);
        let in_order = end == first + block.len() as u64;
        let mut stop = Ok(());
        lens.look(&questions.atoms, system, scratch, block, known, |atom, value| match value {
            Ok(mask) => {
                let set = &mut sets[atom];
                if end > set.len() && !set.grow(end) {
                    stop = Err(Stop::Memory);
                } else if in_order {
                    let (word, shift) = (first / 64, first % 64);
                    set.insert_word(word, mask << shift);
                    if shift > 0 && mask >> (64 - shift) != 0 {
                        set.insert_word(word + 1, mask >> (64 - shift));
                    }
                } else {
                    let mut rest = mask;
                    while rest != 0 {
                        set.insert(block.id(rest.trailing_zeros() as usize).get());
                        rest &= rest - 1;
                    }
                }
            }
            Err(why) if why.limit => stop = Err(Stop::Count),
            Err(why) => {
                undefined[atom].get_or_insert_with(|| (block.id(why.state).get() as u32, why.message));
            }
        });
        stop
    }
}

/// Records a run.
pub(crate) struct KripkeLog {
    questions: Arc<Questions>,
    lens: Option<Lens>,
    values: Option<Values>,
    edges: Option<Edges>,
    initial: Vec<u32>,
    control: Control,
    failed: Option<Stop>,
    complete: bool,
    /// Whether paths are wanted: answers are then given while the store is there.
    traces: bool,
    /// How many threads evaluate formulas.
    threads: usize,
    answers: Option<Result<Answers, CheckError>>,
}

impl KripkeLog {
    /// A recorder that ends the run through the control's flag when it has no room.
    pub fn new(questions: Arc<Questions>, traces: bool, threads: usize, control: &Control) -> Self {
        KripkeLog {
            questions,
            lens: None,
            values: None,
            edges: None,
            initial: Vec::new(),
            control: control.clone(),
            failed: None,
            complete: false,
            traces,
            threads,
            answers: None,
        }
    }

    /// Why recording was given up.
    pub fn failed(&self) -> Option<Stop> {
        self.failed
    }

    /// The answers of a complete run, and why some are missing; `None` if it is not complete.
    pub fn answers(&mut self, system: &dyn System) -> Result<Option<Answers>, CheckError> {
        if let Some(answers) = self.answers.take() {
            return answers.map(Some);
        }
        match self.kripke() {
            Some((kripke, undefined)) => {
                let by = (self.threads, &self.control);
                answers(&self.questions, &kripke, &undefined, system, None, by).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The graph of a complete run, and where atoms have no value.
    pub fn kripke(&mut self) -> Option<(Kripke, Vec<Undefined>)> {
        if !self.complete {
            return None;
        }
        let (edges, Values { mut sets, undefined }) = (self.edges.take()?, self.values.take()?);
        // Where an atom without a value was met, its set is not asked for.
        for set in &mut sets {
            if set.len() < edges.states().into() && !set.grow(edges.states().into()) {
                self.failed = Some(Stop::Memory);
                return None;
            }
        }
        Some((Kripke { edges, initial: std::mem::take(&mut self.initial), atoms: sets }, undefined))
    }

    fn take(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
    ) -> Result<(), Stop> {
        let (Some(lens), Some(values), Some(edges)) = (&mut self.lens, &mut self.values, &mut self.edges) else {
            return Ok(());
        };
        assert!(
            (0..block.len()).all(|index| block.id(index).get() == u64::from(edges.states()) + index as u64),
            "one thread expands states in the order of their numbers"
        );
        let target = |(index, answer): (usize, &Insert)| match answer {
            Insert::New(id) | Insert::Seen(id) => Some((batch.source(index), id.get() as u32)),
            _ => None,
        };
        edges.append(block.len(), answers.iter().enumerate().filter_map(target))?;
        let dead = block.mask() & !batch.moved();
        values.look(lens, &self.questions, system, scratch, block, (dead, Some(batch)))
    }
}

impl Observer for KripkeLog {
    fn expanded(
        &mut self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        batch: &Batch,
        answers: &[Insert],
    ) {
        if self.failed.is_none()
            && let Err(stop) = self.take(system, scratch, block, batch, answers)
        {
            self.failed = Some(stop);
            self.control.cancel.cancel();
        }
    }
}

impl Watcher for KripkeLog {
    fn begin(&mut self, system: &dyn System, _: &StoreSpec, _: &dyn Store, _: &Control) -> Result<(), CheckError> {
        self.lens = Some(Lens::new(&self.questions.atoms, system));
        self.values = Some(Values::new(self.questions.atoms.list.len(), &self.control).map_err(CheckError::Stopped)?);
        self.edges = Some(Edges::new(&self.control.budget).map_err(CheckError::Stopped)?);
        Ok(())
    }

    fn end(&mut self, system: &dyn System, store: &dyn Store, outcome: &Outcome) {
        if !outcome.complete() || self.failed.is_some() {
            return;
        }
        let mut batch = Batch::new(system.width());
        let mut scratch = store.scratch();
        if system.initial(&mut system.scratch(), &mut batch).is_err() {
            return;
        }
        let found = (0..batch.len()).map(|index| store.find(&mut scratch, batch.target(index), batch.hash(index)));
        let Some(initial) = found.map(|id| id.map(|id| id.get() as u32)).collect::<Option<Vec<u32>>>() else { return };
        self.initial = initial;
        self.initial.dedup();
        self.complete = true;
        if self.traces
            && let Some((kripke, undefined)) = self.kripke()
        {
            let tracer = ByStore { system, store };
            let by = (self.threads, &self.control);
            self.answers = Some(answers(&self.questions, &kripke, &undefined, system, Some(&tracer), by));
        }
    }
}
