//! What a symmetry promises.
//!
//! In: a system, what is called a symmetry of it, and properties. Out: how many states the system and the quotient have, or a panic that
//! names the promise broken and the states. What stays true: *all* reachable states are compared with their representatives, so the
//! promise holds on this instance, whatever it is on larger ones. They are compared by what they decide, now and after any steps.

use crate::conformance::system::check_system;
use crate::oracle::{Explored, explore_up_to};
use deltamark_core::{
    Batch, Block, Control, Goal, Property, Quotient, Slot, StateId, Symmetry, System, Trace, Unnamed, Widen,
};
use std::collections::{BTreeMap, HashMap};

/// The most states of an instance.
const MOST: usize = 20_000;

/// Compares all states of a system with their representatives, which must be the same for all that are alike, and paths of the quotient with those of the system. Returns the numbers of states of both.
pub fn check_symmetry(system: &dyn System, symmetry: &dyn Symmetry, properties: &[Property]) -> (usize, usize) {
    let quotient = Quotient::new(system, symmetry);
    let few = explore_up_to(&quotient, MOST).expect("the quotient of an instance to be checked has few states");
    if let Some(trouble) = quotient.trouble() {
        panic!("a representative can be named of every state: {trouble}");
    }
    let all = explore_up_to(system, MOST).expect("an instance to be checked has few states");
    // Both layouts are the last one now, in which all these states fit.
    let few = if few.widenings > 0 || all.widenings > 0 { explored(&quotient) } else { few };
    let all = explored_again(system, all);
    let represented = all.states.iter().map(|state| representative(system, symmetry, state));
    let states = all.states.iter().cloned().chain(represented).chain(few.states.iter().cloned()).collect();
    let check = SymmetryCheck { system, symmetry, all, classes: classes(system, properties, states) };
    check.states();
    check.orbits(&few);
    check.paths(&quotient, &few);
    check_system(&quotient);
    (check.all.states.len(), few.states.len())
}

fn explored(system: &dyn System) -> Explored {
    explore_up_to(system, usize::MAX).expect("no system has so many states")
}

fn explored_again(system: &dyn System, first: Explored) -> Explored {
    if first.widenings > 0 { explored(system) } else { first }
}

struct SymmetryCheck<'s> {
    system: &'s dyn System,
    symmetry: &'s dyn Symmetry,
    all: Explored,
    /// Of each reachable state, each representative, and all that follow them, the class of those that are alike.
    classes: HashMap<Vec<Slot>, usize>,
}

/// What a state decides: how many of its steps are faults, whether it is one, and of each property whether it is decided and whether it is
/// undefined there.
type Label = (usize, usize, Vec<(u64, u64)>);

fn representative(system: &dyn System, symmetry: &dyn Symmetry, state: &[Slot]) -> Vec<Slot> {
    let mut found = state.to_vec();
    match symmetry.canonise(&mut system.scratch(), &mut found) {
        Ok(()) => found,
        Err(Unnamed::Widen) => panic!("the layout holds {state:?} and all that follows, and not its representative"),
        Err(Unnamed::Wrong(why)) => panic!("a representative can be named of {state:?}: {why}"),
    }
}

/// The label of a state, and its successors, with repetitions.
fn look(system: &dyn System, properties: &[Property], state: &[Slot]) -> (Label, Vec<Vec<Slot>>) {
    let mut scratch = system.scratch();
    let (mut block, mut batch) = (Block::new(system.width()), Batch::new(system.width()));
    block.push(StateId::NAMELESS, state);
    let expanded: Result<(), Widen> = system.expand(&mut scratch, &block, &mut batch);
    expanded.expect("the layout holds the successors of a representative");
    let dead = block.mask() & !batch.moved();
    let decided = properties.iter().filter(|property| !matches!(property.goal, Goal::FaultFree)).map(|property| {
        let found = property.goal.look(system, &mut scratch, &block, dead, batch.faults());
        (found.states & 1, found.undefined & 1)
    });
    let of_steps = batch.faults().iter().filter(|fault| fault.action.is_some()).count();
    let label = (of_steps, batch.faults().len() - of_steps, decided.collect());
    (label, batch.targets().iter().map(<[Slot]>::to_vec).collect())
}

/// The classes of states that decide the same now and after any number of steps, as many ways to each: by refining, until nothing changes.
fn classes(system: &dyn System, properties: &[Property], mut states: Vec<Vec<Slot>>) -> HashMap<Vec<Slot>, usize> {
    let mut numbers: HashMap<Vec<Slot>, usize> = HashMap::new();
    states.retain(|state| {
        let number = numbers.len();
        numbers.insert(state.clone(), number).is_none_or(|before| {
            numbers.insert(state.clone(), before);
            false
        })
    });
    let (mut labels, mut edges): (Vec<Label>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    while labels.len() < states.len() {
        let (label, successors) = look(system, properties, &states[labels.len()]);
        labels.push(label);
        let number = |state: Vec<Slot>| {
            let next = numbers.len();
            *numbers.entry(state).or_insert_with_key(|state| {
                states.push(state.clone());
                next
            })
        };
        edges.push(successors.into_iter().map(number).collect());
    }
    let mut classes = numbered(labels);
    loop {
        let seen = edges.iter().enumerate().map(|(state, edges)| {
            let mut next: Vec<usize> = edges.iter().map(|&target| classes[target]).collect();
            next.sort_unstable();
            (classes[state], next)
        });
        let finer = numbered(seen.collect());
        if finer.iter().max() == classes.iter().max() {
            return states.into_iter().zip(finer).collect();
        }
        classes = finer;
    }
}

/// Equal things get equal numbers, from 0 on.
fn numbered<T: Ord>(things: Vec<T>) -> Vec<usize> {
    let mut numbers: BTreeMap<&T, usize> = BTreeMap::new();
    let number = |thing| {
        let next = numbers.len();
        *numbers.entry(thing).or_insert(next)
    };
    things.iter().map(number).collect()
}

impl SymmetryCheck<'_> {
    fn representative(&self, state: &[Slot]) -> Vec<Slot> {
        representative(self.system, self.symmetry, state)
    }

    fn states(&self) {
        for state in &self.all.states {
            let representative = self.representative(state);
            assert_eq!(representative, self.representative(state), "the representative depends on {state:?} alone");
            let again = self.representative(&representative);
            assert_eq!(again, representative, "a representative is its own representative, here that of {state:?}");
            let shown = [state, &representative].map(|state| self.system.describe().state(state));
            let [one, other] = [state, &representative].map(|state| self.classes[state]);
            assert_eq!(one, other, "a state is like its representative: {shown:?}");
        }
    }

    /// Where the representatives are the states of the quotient, it finds them at the least distance of those they stand for. (It may have others
    /// of the same orbits, where those are not all named alike.)
    fn orbits(&self, few: &Explored) {
        let mut distances: BTreeMap<Vec<Slot>, u64> = BTreeMap::new();
        for (state, &distance) in self.all.states.iter().zip(&self.all.distances) {
            let least = distances.entry(self.representative(state)).or_insert(distance);
            *least = distance.min(*least);
        }
        let found: BTreeMap<Vec<Slot>, u64> = few.states.iter().cloned().zip(few.distances.iter().copied()).collect();
        if found.keys().eq(distances.keys()) {
            assert_eq!(found, distances, "the quotient finds states at the distance of the nearest that is like them");
        }
    }

    /// A path to each state of the quotient is one of the system, to a state like it.
    fn paths(&self, quotient: &Quotient<'_>, few: &Explored) {
        let mut to: Vec<Option<Trace>> = vec![None; few.states.len()];
        let mut batch = Batch::new(self.system.width());
        quotient_initial(quotient, &mut batch);
        for index in 0..batch.len() {
            let number = few.numbers[batch.target(index)];
            to[number].get_or_insert(Trace::path(index as u32, Vec::new()));
        }
        for edge in &few.edges {
            let Some(path) = to[edge.source].clone() else { panic!("edges come in the order of their sources") };
            to[edge.target].get_or_insert_with(|| {
                Trace::path(path.initial, path.actions.iter().copied().chain([edge.action]).collect())
            });
        }
        // Some hundred of them, the last ones too.
        let step = (few.states.len() / 300).max(1);
        for (number, path) in to.iter().enumerate().rev().step_by(step) {
            let path = path.as_ref().expect("every state was reached");
            let lifted = quotient.lift(path, &Control::new()).expect("no limit");
            let lifted = lifted.unwrap_or_else(|wrong| panic!("a path of the quotient is one of the system: {wrong}"));
            assert_eq!(lifted.len(), path.len(), "a path has as many steps in the system as in the quotient");
            let replay = lifted.replay(self.system).unwrap_or_else(|wrong| panic!("a lifted path replays: {wrong}"));
            let last = replay.states.last().expect("a path has a first state");
            let state = &few.states[number];
            assert_eq!(self.classes[last], self.classes[state], "a lifted path leads to a state like {state:?}");
        }
    }
}

fn quotient_initial(quotient: &Quotient<'_>, batch: &mut Batch) {
    let system: &dyn System = quotient;
    system.initial(&mut system.scratch(), batch).expect("the layout holds the initial states");
}
