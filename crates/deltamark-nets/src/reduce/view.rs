//! A reduced net, seen through the original's observables.
//!
//! In: a reduced net and the original. Out: a [layer](Layer) over the reduced net's system. What stays true: an observable of the original has the value that it has in the
//! markings of the original of the same view. One that a removed place decides reads as an empty place: no question that the net was reduced for depends on it.

use super::ReducedNet;
use crate::{Net, NetSystem, Transition};
use deltamark_core::facts::{Form, joined};
use deltamark_core::{
    Action, ActionFacts, BLOCK, Block, Change, Control, Facts, Layer, Observable, ObservableKind, Progress, Scratch,
    Slot, Stop, System,
};
use std::any::Any;

/// A reduced net that runs, with the observables of the original.
pub struct ReducedSystem<'n> {
    inner: NetSystem,
    original: &'n Net,
    reduced: ReducedNet,
}

/// What an observable of the original is.
enum Read<'n> {
    /// The tokens of a place, by its number in the reduced net.
    Place(Option<u32>),
    /// Whether a transition can fire.
    Fires(&'n Transition),
}

impl<'n> ReducedSystem<'n> {
    /// Prepares a reduced net to run, unless `control` stops it.
    pub fn under(original: &'n Net, reduced: ReducedNet, control: &Control) -> Result<Self, Stop> {
        let inner = NetSystem::under(reduced.net.clone(), control)?;
        Ok(ReducedSystem { inner, original, reduced })
    }

    /// The reduced net, and what it stands for.
    pub fn reduced(&self) -> &ReducedNet {
        &self.reduced
    }

    fn place(&self, place: u32) -> Option<Observable> {
        self.reduced.places[place as usize].map(NetSystem::tokens)
    }

    fn meaning(&self, observable: Observable) -> Read<'n> {
        match observable.index.checked_sub(self.original.places.len() as u32) {
            None => Read::Place(self.reduced.places[observable.index as usize]),
            Some(transition) => Read::Fires(&self.original.transitions[transition as usize]),
        }
    }
}

impl Layer for ReducedSystem<'_> {
    fn inner(&self) -> &dyn System {
        &self.inner
    }

    fn facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        let inner = self.inner.facts(control)?;
        Ok(inner.map(|inner| Box::new(ViewFacts { system: self, inner }) as Box<dyn Facts + '_>))
    }

    fn progress(&self) -> Option<&dyn Progress> {
        None
    }

    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    fn resolve(&self, name: &str) -> Option<Observable> {
        let number = |place: u32| self.reduced.places.iter().position(|&kept| kept == Some(place));
        let found = self.inner.observe()?.resolve(name)?;
        number(found.index).map(|index| Observable { index: index as u32, kind: ObservableKind::Int })
    }

    fn fireable(&self, _: &str) -> Option<Observable> {
        None
    }

    fn action_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn names(&self) -> Vec<String> {
        let kept = self.original.places.iter().zip(&self.reduced.places).filter(|(_, kept)| kept.is_some());
        kept.map(|(place, _)| place.name.clone()).collect()
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let mut tokens = |place: Option<u32>| place.map_or(0, |place| self.inner.count(scratch, state, place) as i64);
        match self.meaning(observable) {
            Read::Place(place) => tokens(place),
            Read::Fires(transition) => {
                let mut holds =
                    |place: u32, weight: u32| tokens(self.reduced.places[place as usize]) >= i64::from(weight);
                let enough = transition.inputs.iter().chain(&transition.reads).all(|arc| holds(arc.place, arc.weight));
                i64::from(enough && !transition.inhibitors.iter().any(|arc| holds(arc.place, arc.weight)))
            }
        }
    }

    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; BLOCK]) {
        let inner = self.inner.observe().expect("nets have observables");
        match self.meaning(observable) {
            Read::Place(Some(place)) => inner.read_block(scratch, block, NetSystem::tokens(place), out),
            Read::Place(None) => out.fill(0),
            Read::Fires(_) => {
                for (value, state) in out.iter_mut().zip(block.states().iter()) {
                    *value = Layer::read(self, scratch, state, observable);
                }
            }
        }
    }

    fn survey_block(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        observables: &[Observable],
        bounds: &mut [deltamark_core::Bound],
    ) -> i64 {
        let read = |observable, values: &mut _| Layer::read_block(self, scratch, block, observable, values);
        deltamark_core::survey_by_reading(block.len(), observables, bounds, read)
    }
}

/// The facts of the reduced net, with the original's observables.
struct ViewFacts<'s> {
    system: &'s ReducedSystem<'s>,
    inner: Box<dyn Facts + 's>,
}

impl ViewFacts<'_> {
    fn changes_of(&self, place: u32) -> Option<Vec<(Action, Change)>> {
        self.system.place(place).map_or_else(|| Some(Vec::new()), |place| self.inner.changes(place))
    }
}

impl Facts for ViewFacts<'_> {
    fn actions(&self) -> &ActionFacts {
        self.inner.actions()
    }

    fn holds(&self, scratch: &mut Scratch, state: &[Slot], condition: u32) -> bool {
        self.inner.holds(scratch, state, condition)
    }

    fn truths(&self, scratch: &mut Scratch, block: &Block, out: &mut Vec<u64>) {
        self.inner.truths(scratch, block, out);
    }

    fn adds(&self) -> bool {
        self.inner.adds()
    }

    fn changes(&self, observable: Observable) -> Option<Vec<(Action, Change)>> {
        let transition = match self.system.meaning(observable) {
            Read::Place(_) => return self.changes_of(observable.index),
            Read::Fires(transition) => transition,
        };
        let mut changes = Vec::new();
        for arc in transition.inputs.iter().chain(&transition.reads) {
            changes.extend(self.changes_of(arc.place)?);
        }
        for arc in &transition.inhibitors {
            changes.extend(self.changes_of(arc.place)?.into_iter().map(|(action, change)| (action, change.negated())));
        }
        Some(joined(changes))
    }

    fn form(&self) -> Form {
        self.inner.form()
    }
}
