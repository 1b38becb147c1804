//! The atoms of formulas, and their values in a block of states.
//!
//! In: atoms; blocks of states, where a search expanded them with their successors. Out: a word for each atom. What
//! stays true: equal atoms are one; each number that several atoms read is read once in a block; which transitions can
//! fire is taken from the steps of the block where there are such, since testing a coloured transition again would
//! mean to bind it again.

use deltamark_core::property::Undefined;
use deltamark_core::{Action, BLOCK, Batch, Block, Observable, Predicate, Scratch, System};
use deltamark_logic::temporal::{END, Formula, FormulaId, INITIAL, Pool};
use deltamark_logic::{Compiled, Meaning};
use std::collections::HashMap;
use std::sync::Arc;

/// An atom.
pub(crate) enum Atom {
    /// An expression in the property language.
    Expression(Compiled),
    /// A sum of numbers with factors, which is at most this.
    AtMost(Vec<(Observable, i64)>, i64),
    /// Some of these transitions can fire.
    Fireable(Vec<Observable>),
    /// A predicate, by the name that formulas have for it.
    Predicate {
        name: String,
        predicate: Box<dyn Predicate>,
        /// Whether it may have no value in some state.
        may_fail: bool,
    },
    /// No step is possible.
    Deadlock,
}

impl Atom {
    /// Its value in the states of a block, by reading all it speaks of.
    pub fn value(
        &self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        dead: u64,
    ) -> Result<u64, Undefined> {
        Ok(match self {
            Atom::Expression(compiled) => compiled.evaluate(system, scratch, block, dead)?,
            Atom::Predicate { predicate, .. } => predicate.evaluate(system, scratch, block, dead)?,
            Atom::Deadlock => dead,
            Atom::AtMost(terms, most) => {
                let Some(observe) = system.observe() else { return Ok(0) };
                let mut values = vec![[0; BLOCK]; terms.len()];
                for (&(observable, _), values) in terms.iter().zip(&mut values) {
                    observe.read_block(scratch, block, observable, values);
                }
                let terms = values.iter().zip(terms).map(|(values, &(_, factor))| (values, factor));
                block.mask() & at_most(terms, *most)
            }
            Atom::Fireable(transitions) => {
                transitions.iter().fold(0, |mask, &transition| mask | can_fire(system, scratch, block, transition))
            }
        })
    }
}

#[derive(PartialEq, Eq, Hash)]
enum AtomKey {
    Expression(Meaning),
    AtMost(Vec<(Observable, i64)>, i64),
    Fireable(Vec<Observable>),
    Predicate(String),
    Deadlock,
}

/// Distinct atoms, by number.
#[derive(Default)]
pub(crate) struct Atoms {
    pub list: Vec<Atom>,
    numbers: HashMap<AtomKey, u32>,
}

impl Atoms {
    /// The number of an atom.
    pub fn add(&mut self, atom: Atom) -> u32 {
        let key = match &atom {
            Atom::Expression(compiled) => AtomKey::Expression(compiled.meaning()),
            Atom::AtMost(terms, most) => AtomKey::AtMost(terms.clone(), *most),
            Atom::Fireable(transitions) => AtomKey::Fireable(transitions.clone()),
            Atom::Predicate { name, .. } => AtomKey::Predicate(name.clone()),
            Atom::Deadlock => AtomKey::Deadlock,
        };
        *self.numbers.entry(key).or_insert_with(|| {
            self.list.push(atom);
            self.list.len() as u32 - 1
        })
    }
}

/// Evaluates atoms in blocks of states.
pub(crate) struct Lens {
    /// The atoms that are evaluated.
    wanted: Vec<usize>,
    /// What atoms read, each once, and the values in the current block.
    reads: Vec<Observable>,
    values: Vec<[i64; BLOCK]>,
    /// Of each atom that is a sum, what it reads by place in `reads`.
    sums: Vec<Vec<(usize, i64)>>,
    /// Of each transition the number of its name; empty if no atom asks for one, or steps have no names.
    names: HashMap<Observable, usize>,
    /// By the number of a name, the states of the current block in which such a step begins.
    steps: Vec<u64>,
}

impl Lens {
    /// Evaluates all atoms.
    pub fn new(atoms: &Atoms, system: &dyn System) -> Self {
        let all: Vec<usize> = (0..atoms.list.len()).collect();
        Lens::of(atoms, system, &all)
    }

    /// Evaluates these atoms.
    pub fn of(atoms: &Atoms, system: &dyn System, wanted: &[usize]) -> Self {
        let mut lens = Lens {
            wanted: wanted.to_vec(),
            reads: Vec::new(),
            values: Vec::new(),
            sums: Vec::new(),
            names: HashMap::new(),
            steps: Vec::new(),
        };
        let mut places: HashMap<Observable, usize> = HashMap::new();
        for (number, atom) in atoms.list.iter().enumerate() {
            let terms = match atom {
                Atom::AtMost(terms, _) if wanted.contains(&number) => &terms[..],
                _ => &[],
            };
            let term = |&(observable, factor): &(Observable, i64)| {
                let place = *places.entry(observable).or_insert_with(|| {
                    lens.reads.push(observable);
                    lens.reads.len() - 1
                });
                (place, factor)
            };
            lens.sums.push(terms.iter().map(term).collect());
        }
        lens.values = vec![[0; BLOCK]; lens.reads.len()];
        let asks_steps = |&number: &usize| matches!(atoms.list[number], Atom::Fireable(_));
        if let Some(observe) = system.observe().filter(|_| wanted.iter().any(asks_steps)) {
            let names = observe.action_names();
            if observe.groups_actions() || system.action_count() == Some(names.len() as u32) {
                lens.steps = vec![0; names.len()];
                let known = names.iter().enumerate().filter_map(|(at, name)| Some((observe.fireable(name)?, at)));
                lens.names = known.collect();
            }
        }
        lens
    }

    /// The values of all atoms in a block; `dead` has a bit for each state without successors, `batch` the successors,
    /// where they are known.
    pub fn look(
        &mut self,
        atoms: &Atoms,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        (dead, batch): (u64, Option<&Batch>),
        mut see: impl FnMut(usize, Result<u64, Undefined>),
    ) {
        // Where nothing can be observed, no atom reads anything.
        let observe = system.observe();
        for (&observable, values) in self.reads.iter().zip(&mut self.values) {
            if let Some(observe) = observe {
                observe.read_block(scratch, block, observable, values);
            }
        }
        // A step that is a fault is no step, and yet its transition can fire.
        let batch = batch.filter(|batch| !self.names.is_empty() && batch.faults().is_empty());
        if let (Some(batch), Some(observe)) = (batch, observe) {
            self.steps.fill(0);
            let (mut last, mut name) = (Action::NONE, 0);
            for (index, &action) in batch.actions().iter().enumerate() {
                // Steps of one transition often come together.
                if action != last {
                    (last, name) = (action, observe.name_of_action(action));
                }
                self.steps[name] |= 1 << batch.source(index);
            }
        }
        for &number in &self.wanted {
            let value = match &atoms.list[number] {
                Atom::Expression(compiled) => compiled.evaluate(system, scratch, block, dead),
                Atom::Predicate { predicate, .. } => predicate.evaluate(system, scratch, block, dead),
                Atom::Deadlock => Ok(dead),
                Atom::AtMost(_, most) => Ok(self.at_most(&self.sums[number], *most) & block.mask()),
                Atom::Fireable(transitions) => {
                    let mut mask = 0;
                    for transition in transitions {
                        match (batch, self.names.get(transition)) {
                            (Some(_), Some(&name)) => mask |= self.steps[name],
                            _ => mask |= can_fire(system, scratch, block, *transition),
                        }
                    }
                    Ok(mask)
                }
            };
            see(number, value);
        }
    }

    fn at_most(&self, terms: &[(usize, i64)], most: i64) -> u64 {
        at_most(terms.iter().map(|&(place, factor)| (&self.values[place], factor)), most)
    }
}

/// The states in which a sum is at most this.
fn at_most<'v>(terms: impl Iterator<Item = (&'v [i64; BLOCK], i64)>, most: i64) -> u64 {
    let mut sums = [0i64; BLOCK];
    for (values, factor) in terms {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.wrapping_add(value.wrapping_mul(factor));
        }
    }
    sums.iter().enumerate().fold(0, |mask, (lane, &sum)| mask | u64::from(sum <= most) << lane)
}

fn can_fire(system: &dyn System, scratch: &mut Scratch, block: &Block, transition: Observable) -> u64 {
    let Some(observe) = system.observe() else { return 0 };
    let mut values = [0; BLOCK];
    observe.read_block(scratch, block, transition, &mut values);
    let lanes = values[..block.len()].iter().enumerate();
    lanes.fold(0, |mask, (lane, &value)| mask | u64::from(value == 1) << lane)
}

/// A formula without temporal operators, as a predicate of its own.
pub(crate) struct StateFormula {
    pub atoms: Arc<Atoms>,
    pub pool: Arc<Pool>,
    pub root: FormulaId,
}

impl StateFormula {
    fn value(
        &self,
        id: FormulaId,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        dead: u64,
    ) -> Result<u64, Undefined> {
        Ok(match self.pool.get(id) {
            Formula::Truth(true) => block.mask(),
            Formula::Truth(false) => 0,
            Formula::Literal(END, positive) => block.mask() & if *positive { dead } else { !dead },
            Formula::Literal(INITIAL, _) => unreachable!("`initial` is an atom of formulas on graphs alone"),
            Formula::Literal(atom, positive) => {
                let value = self.atoms.list[*atom as usize].value(system, scratch, block, dead)?;
                block.mask() & if *positive { value } else { !value }
            }
            Formula::And(list) => {
                let mut all = block.mask();
                for &one in list {
                    if all == 0 {
                        break;
                    }
                    all &= self.value(one, system, scratch, block, dead)?;
                }
                all
            }
            Formula::Or(list) => {
                let mut any = 0;
                for &one in list {
                    if any == block.mask() {
                        break;
                    }
                    any |= self.value(one, system, scratch, block, dead)?;
                }
                any
            }
            _ => unreachable!("a state formula without quantifiers has no temporal operator"),
        })
    }
}

impl Predicate for StateFormula {
    fn evaluate(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, dead: u64) -> Result<u64, Undefined> {
        self.value(self.root, system, scratch, block, dead)
    }
}
