//! Evaluating a measure by a sweep over a sample.
//!
//! In: a system and measures. Out: for each, the share of a sample of the state space that a sweep
//! would hold at once. Invariant: the sample is the first states of a breadth-first search, the
//! same for all measures; for a small system it is the whole state space, and the figures are those
//! of the actual run.

use crate::{learn, linear};
use deltamark_core::{
    BLOCK, Batch, Block, Budget, Control, Measure, Observable, ObservableKind, Rank, Scratch, StateId, States, Stop,
    System, Widen,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The first states of a system and the steps among them.
pub struct Sample {
    states: States,
    /// Where the steps of each state begin in `targets`; one more than states.
    starts: Vec<u32>,
    targets: Vec<u32>,
    initial: u32,
    /// Whether these are all states.
    pub complete: bool,
    /// Goes back when the sample is dropped.
    memory: Memory,
}

/// What the budget granted for a sample, or for what is made of it.
pub(crate) struct Memory {
    budget: Arc<Budget>,
    granted: u64,
}

impl Memory {
    /// Whether there is room for this many bytes in all. A little more is asked for at a time than is needed.
    pub(crate) fn holds(&mut self, bytes: u64) -> bool {
        let missing = bytes.saturating_sub(self.granted).next_multiple_of(ASKED);
        if !self.budget.request(missing) {
            return false;
        }
        self.granted += missing;
        true
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.budget.release(self.granted);
    }
}

/// What a sweep over a sample came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// States of the sample.
    pub states: u64,
    /// Whether the sample is the whole state space.
    pub complete: bool,
    /// The most states that were held at once.
    pub peak: u64,
    /// States that were expanded, some of them perhaps several times.
    pub expanded: u64,
    /// How often the line went through.
    pub sweeps: u64,
    /// Steps of the sample that lead to a lower rank.
    pub regress_edges: u64,
    /// Steps of the sample.
    pub edges: u64,
}

impl Trial {
    /// The share of the states that were held at once.
    pub fn share(&self) -> f64 {
        self.peak as f64 / self.states.max(1) as f64
    }

    /// The smaller, the better: memory first, then time.
    pub fn cost(&self) -> f64 {
        self.share() * (self.expanded as f64 / self.states.max(1) as f64).sqrt()
    }

    /// Whether it is worth to sweep: a fifth of the states at least need not be held.
    pub fn is_useful(&self) -> bool {
        self.share() <= 0.8
    }
}

/// The most slots of all states of a sample, and the most steps: it takes some tens of megabytes at most.
const MOST_SLOTS: usize = 2 << 20;
const MOST_STEPS: usize = 4 << 20;
/// Bytes that are asked for at once.
const ASKED: u64 = 1 << 14;
/// What a state takes beside its slots: where its steps begin; while states are sampled, the table of those that are known; and
/// in a trial its rank, its place in a layer, and whether it is held.
const BESIDE: u64 = 96;

impl Sample {
    /// Nothing granted yet, of the budget that the sample has.
    pub(crate) fn more_memory(&self) -> Memory {
        Memory { budget: Arc::clone(&self.memory.budget), granted: 0 }
    }

    /// How many states there are.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// At most about `most` states of a system, and no more than the budget of `control` has room for; an error, if the run must end.
    pub fn new(system: &dyn System, most: usize, control: &Control) -> Result<Self, Stop> {
        loop {
            match Self::attempt(system, most, control) {
                Ok(sample) => return sample,
                // The layout changes; what was sampled is void.
                Err(Widen) => drop(system.widen()),
            }
        }
    }

    fn attempt(system: &dyn System, most: usize, control: &Control) -> Result<Result<Self, Stop>, Widen> {
        let mut memory = Memory { budget: Arc::clone(&control.budget), granted: 0 };
        let width = system.width();
        let mut scratch = system.scratch();
        let (mut block, mut batch) = (Block::new(width), Batch::new(width).under(control));
        let mut states = States::new(width);
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        system.initial(&mut scratch, &mut batch)?;
        // Slots are there twice: in the sample, and in the table of those that are known.
        let bytes = |states: &States, steps: usize| {
            8 * states.slots().len() as u64 + BESIDE * states.len() as u64 + 4 * steps as u64
        };
        let mut enter = |state: &[u32], states: &mut States, room: bool| {
            let next = states.len() as u32;
            match known.get(state) {
                Some(&number) => Some(number),
                None if !room || states.len() >= most || states.slots().len() > MOST_SLOTS => None,
                None => {
                    known.insert(state.to_vec(), next);
                    states.push(state);
                    Some(next)
                }
            }
        };
        let mut complete = true;
        for index in 0..batch.len() {
            // One state at least, whatever the budget has.
            let room = index == 0 || memory.holds(bytes(&states, 0));
            complete &= enter(batch.target(index), &mut states, room).is_some();
        }
        let initial = states.len() as u32;
        let (mut starts, mut targets) = (vec![0], Vec::new());
        let mut next = 0;
        while next < states.len() {
            block.reset(width);
            block.push(StateId::NAMELESS, states.get(next));
            batch.reset(width);
            system.expand(&mut scratch, &block, &mut batch)?;
            if let Some(stop) = batch.stop().or_else(|| control.check().err()) {
                return Ok(Err(stop));
            }
            // As if all were new, and as much again because rows grow by doubling.
            let slots = batch.targets().slots().len() as u64;
            let more = 8 * slots + (BESIDE + 4) * batch.len() as u64;
            let room = memory.holds(2 * (bytes(&states, targets.len()) + more));
            for index in 0..batch.len() {
                match enter(batch.target(index), &mut states, room) {
                    Some(number) if targets.len() < MOST_STEPS => targets.push(number),
                    _ => complete = false,
                }
            }
            starts.push(targets.len() as u32);
            next += 1;
        }
        Ok(Ok(Sample { states, starts, targets, initial, complete, memory }))
    }

    /// Sweeps over the sample. Gives up, with what it has, after expanding every state many times; with an error, if the run must end.
    pub fn trial(&self, system: &dyn System, measure: &dyn Measure, control: &Control) -> Result<Trial, Stop> {
        const MOST: u64 = 6;
        let count = self.states.len();
        let ranks = self.ranks(system, measure, control)?;
        let edges_of =
            |state: u32| &self.targets[self.starts[state as usize] as usize..self.starts[state as usize + 1] as usize];
        let mut trial = Trial {
            states: count as u64,
            complete: self.complete,
            peak: 0,
            expanded: 0,
            sweeps: 0,
            regress_edges: 0,
            edges: self.targets.len() as u64,
        };
        for state in 0..count as u32 {
            control.ask()?;
            let regresses = |&&target: &&u32| ranks[target as usize] < ranks[state as usize];
            trial.regress_edges += edges_of(state).iter().filter(regresses).count() as u64;
        }
        let mut kept = vec![false; count];
        let mut held = vec![false; count];
        let mut layers: BTreeMap<Rank, Vec<u32>> = BTreeMap::new();
        let mut roots: Vec<u32> = (0..self.initial).collect();
        let mut len = roots.len() as u64;
        roots.iter().for_each(|&root| (kept[root as usize], held[root as usize]) = (true, true));
        while !roots.is_empty() && trial.expanded < MOST * count as u64 {
            trial.sweeps += 1;
            for root in std::mem::take(&mut roots) {
                layers.entry(ranks[root as usize]).or_default().push(root);
            }
            while let Some((line, mut layer)) = layers.pop_first() {
                let mut next = 0;
                while next < layer.len() {
                    control.ask()?;
                    for &target in edges_of(layer[next]) {
                        if std::mem::replace(&mut held[target as usize], true) {
                            continue;
                        }
                        len += 1;
                        let rank = ranks[target as usize];
                        if rank < line {
                            kept[target as usize] = true;
                            roots.push(target);
                        } else if rank == line {
                            layer.push(target);
                        } else {
                            layers.entry(rank).or_default().push(target);
                        }
                    }
                    next += 1;
                }
                trial.peak = trial.peak.max(len);
                trial.expanded += layer.len() as u64;
                for state in layer {
                    if !kept[state as usize] {
                        held[state as usize] = false;
                        len -= 1;
                    }
                }
            }
        }
        if !roots.is_empty() {
            // No end is in sight: as bad as can be.
            trial.peak = trial.states;
        }
        Ok(trial)
    }

    fn ranks(&self, system: &dyn System, measure: &dyn Measure, control: &Control) -> Result<Vec<Rank>, Stop> {
        let mut ranks = Vec::with_capacity(self.states.len());
        let rank = |scratch: &mut Scratch, block: &Block| measure.ranks(system, scratch, block, &mut ranks);
        self.blocks(system, self.states.len(), control, rank)?;
        Ok(ranks)
    }

    /// The value of an observable in each of the first `count` states.
    pub(crate) fn values(
        &self,
        system: &dyn System,
        observable: Observable,
        count: usize,
        control: &Control,
    ) -> Result<Vec<i64>, Stop> {
        let mut all = Vec::with_capacity(count);
        let Some(observe) = system.observe() else { return Ok(vec![0; count]) };
        let mut values = [0; BLOCK];
        self.blocks(system, count, control, |scratch, block| {
            observe.read_block(scratch, block, observable, &mut values);
            // As `Learnt` reads it.
            let read =
                |&value: &i64| if observable.kind == ObservableKind::Bool { i64::from(value == 1) } else { value };
            all.extend(values[..block.len()].iter().map(read));
        })?;
        Ok(all)
    }

    /// All steps among the first `count` states: source and target.
    pub(crate) fn edges(&self, count: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = (0..count).flat_map(|source| {
            let steps = self.starts[source] as usize..self.starts[source + 1] as usize;
            self.targets[steps].iter().map(move |&target| (source, target as usize))
        });
        all.filter(move |&(_, target)| target < count)
    }

    /// Shows the first `count` states, a block at a time.
    fn blocks(
        &self,
        system: &dyn System,
        count: usize,
        control: &Control,
        mut show: impl FnMut(&mut Scratch, &Block),
    ) -> Result<(), Stop> {
        let mut scratch = system.scratch();
        let mut block = Block::new(system.width());
        for start in (0..count).step_by(BLOCK) {
            block.reset(system.width());
            for index in start..count.min(start + BLOCK) {
                block.push(StateId::NAMELESS, self.states.get(index));
            }
            control.check()?;
            show(&mut scratch, &block);
        }
        Ok(())
    }
}

/// A measure, and how well it did.
pub type Tried = (Box<dyn Measure>, Trial);

/// The best of the measures that the system proposes and of those that a sample of about `most` states suggests, or of as many as
/// the budget of `control` has room for. An error, if the run must end before.
pub fn best(system: &dyn System, most: usize, control: &Control) -> Result<Option<Tried>, Stop> {
    let sample = Sample::new(system, most, control)?;
    let mut measures = linear::measures(system, control)?;
    if measures.is_empty() {
        measures = learn::learnt(system, &sample, control)?;
    }
    let mut trials = Vec::with_capacity(measures.len());
    for measure in measures {
        let trial = sample.trial(system, &*measure, control)?;
        trials.push((measure, trial));
    }
    Ok(trials.into_iter().min_by(|(_, one), (_, other)| one.cost().total_cmp(&other.cost())))
}
