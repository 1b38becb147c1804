//! Properties whose verdicts the oracle knows.
//!
//! In: an explored system. Out: properties, each with the verdict a search must find. What stays true: a
//! state is identified by its hash, because its slots change when the layout widens.

use crate::oracle::Explored;
use deltamark_core::property::Undefined;
use deltamark_core::{Batch, Block, Goal, Predicate, Property, Scratch, Slot, System};

/// A property and its verdict.
pub struct Question {
    property: Property,
    check: Expected,
}

/// The expected verdict.
pub struct Expected {
    /// The distance of the nearest state that decides the question; `None` if there is none, so that the
    /// whole state space must be explored.
    pub distance: Option<u64>,
    /// Whether that state shows that the property holds.
    pub holds: bool,
    /// What the message must contain.
    pub message: &'static str,
    /// Whether a trace may end in this state, with this fault.
    pub ends: Box<Ends>,
}

/// Whether a trace may end in a state, with a fault.
pub type Ends = dyn Fn(&dyn System, &[Slot], Option<&str>) -> bool;

impl Question {
    /// Property and verdict separately.
    pub fn split(self) -> (Property, Expected) {
        (self.property, self.check)
    }
}

/// A predicate over hashes of states.
struct ByHash<F>(F);

impl<F: Fn(u64, bool) -> Result<bool, String> + Send + Sync> Predicate for ByHash<F> {
    fn evaluate(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, dead: u64) -> Result<u64, Undefined> {
        let mut word = 0;
        for (index, state) in block.states().iter().enumerate() {
            let value = (self.0)(system.hash(scratch, state), dead >> index & 1 == 1);
            word |= u64::from(value.map_err(|message| Undefined { state: index, message, limit: false })?) << index;
        }
        Ok(word)
    }
}

fn predicate(truth: impl Fn(u64, bool) -> Result<bool, String> + Send + Sync + 'static) -> Box<dyn Predicate> {
    Box::new(ByHash(truth))
}

fn property(name: &str, goal: Goal) -> Property {
    Property { name: name.into(), text: name.into(), goal }
}

/// The number of successors and of faults of a state.
fn moves(system: &dyn System, state: &[Slot]) -> (usize, usize) {
    let mut batch = Batch::new(system.width());
    let fits = system.successors(&mut system.scratch(), state, &mut batch);
    fits.expect("a state that was expanded before can be expanded again");
    (batch.len(), batch.faults().len())
}

fn is_dead(system: &dyn System, state: &[Slot], fault: Option<&str>) -> bool {
    moves(system, state) == (0, 0) && fault.is_none()
}

/// No deadlock, as a goal of the search.
pub fn deadlock_free(explored: &Explored) -> Question {
    let check = Expected { distance: explored.nearest_deadlock(), holds: false, message: "", ends: Box::new(is_dead) };
    Question { property: Property::deadlock_free(), check }
}

/// No deadlock, as a predicate.
pub fn never_dead(explored: &Explored) -> Question {
    let goal = Goal::Invariant(predicate(|_, dead| Ok(!dead)));
    Question { property: property("never dead", goal), check: deadlock_free(explored).check }
}

/// No fault.
pub fn fault_free(explored: &Explored) -> Question {
    let ends = |system: &dyn System, state: &[Slot], _: Option<&str>| moves(system, state).1 > 0;
    let check = Expected { distance: explored.nearest_fault(), holds: false, message: "", ends: Box::new(ends) };
    Question { property: Property::fault_free(), check }
}

/// An invariant that is true everywhere.
pub fn always() -> Question {
    let check = Expected { distance: None, holds: true, message: "", ends: Box::new(|_, _, _| false) };
    Question { property: property("always", Goal::Invariant(predicate(|_, _| Ok(true)))), check }
}

/// A goal that is reached nowhere.
pub fn nowhere() -> Question {
    let check = Expected { distance: None, holds: false, message: "", ends: Box::new(|_, _, _| false) };
    Question { property: property("nowhere", Goal::Reachable(predicate(|_, _| Ok(false)))), check }
}

/// Questions about the one state of this hash, at this distance: that it is reached, that
/// it is avoided, and a property that has no value there.
pub fn about(hash: u64, distance: u64) -> [Question; 3] {
    const WHY: &str = "no value in this very state";
    let check = |holds, message| Expected {
        distance: Some(distance),
        holds,
        message,
        ends: Box::new(move |system: &dyn System, state: &[Slot], fault: Option<&str>| {
            system.hash(&mut system.scratch(), state) == hash && fault.is_none()
        }),
    };
    let undefined = move |found, _| if found == hash { Err(WHY.to_string()) } else { Ok(true) };
    let named = |what: &str| format!("{what} at distance {distance}");
    [
        Question {
            property: property(&named("reach"), Goal::Reachable(predicate(move |found, _| Ok(found == hash)))),
            check: check(true, ""),
        },
        Question {
            property: property(&named("avoid"), Goal::Invariant(predicate(move |found, _| Ok(found != hash)))),
            check: check(false, ""),
        },
        Question {
            property: property(&named("undefined"), Goal::Invariant(predicate(undefined))),
            check: check(false, WHY),
        },
    ]
}
