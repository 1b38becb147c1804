//! Running a model step by step.
//!
//! In: a system and the choice of steps. Out: the present state, what can happen in
//! it, and what each step changed. What stays true: the history holds every state from
//! the initial one to the present one, in the layout the system has now.

use crate::story::changes;
use deltamark_core::{Action, Batch, Slot, System, Value, Widen};

/// Something that can happen in the present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// What the model says of it, when it is a fault and leads to no state.
    pub fault: Option<String>,
    action: Option<Action>,
    target: Vec<Slot>,
}

/// A run of a model by hand or by chance.
pub struct Simulator<'a> {
    system: &'a dyn System,
    initials: Vec<Vec<Slot>>,
    history: Vec<Vec<Slot>>,
    /// The steps taken: one less than there are states.
    steps: Vec<String>,
    choices: Vec<Choice>,
}

impl<'a> Simulator<'a> {
    /// A run in the first initial state.
    pub fn new(system: &'a dyn System) -> Self {
        let initials = loop {
            let mut batch = Batch::new(system.width());
            match system.initial(&mut system.scratch(), &mut batch) {
                Ok(()) => break batch.targets().iter().map(<[Slot]>::to_vec).collect::<Vec<_>>(),
                Err(Widen) => drop(system.widen()),
            }
        };
        let mut simulator = Simulator { system, initials, history: Vec::new(), steps: Vec::new(), choices: Vec::new() };
        simulator.reset(0);
        simulator
    }

    /// How many initial states there are.
    pub fn initial_count(&self) -> usize {
        self.initials.len()
    }

    /// Goes to an initial state, by its number from 0, and returns whether there is one.
    pub fn reset(&mut self, number: usize) -> bool {
        let Some(state) = self.initials.get(number) else { return false };
        self.history = vec![state.clone()];
        self.steps.clear();
        self.look();
        true
    }

    /// The present state in words.
    pub fn state(&self) -> Vec<(String, Value)> {
        self.system.describe().state(self.present())
    }

    /// The steps taken from the initial state.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// What can happen now, in the order of the model.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// Takes the choice of this number, from 0, and returns what changed: name, before,
    /// after. Nothing happens, and `None` comes back, when there is no such choice or
    /// it is a fault.
    pub fn take(&mut self, number: usize) -> Option<Vec<(String, Value, Value)>> {
        let choice = self.choices.get(number).filter(|choice| choice.fault.is_none())?.clone();
        let told = changes(self.system, self.present(), &choice.target);
        self.history.push(choice.target);
        self.steps.push(choice.name);
        self.look();
        Some(told)
    }

    /// Takes back the last step and returns its name, if there was one.
    pub fn back(&mut self) -> Option<String> {
        let step = self.steps.pop()?;
        self.history.pop();
        self.look();
        Some(step)
    }

    fn present(&self) -> &[Slot] {
        // `reset` fills the history before anybody asks, and `back` leaves one state.
        self.history.last().map_or(&[], Vec::as_slice)
    }

    /// Works out what can happen in the present state.
    fn look(&mut self) {
        let batch = loop {
            let mut batch = Batch::new(self.system.width());
            batch.begin(0);
            match self.system.successors(&mut self.system.scratch(), self.present(), &mut batch) {
                Ok(()) => break batch,
                Err(Widen) => {
                    let recoding = self.system.widen();
                    let mut translated = Vec::new();
                    for state in self.initials.iter_mut().chain(&mut self.history) {
                        recoding.translate(state, &mut translated);
                        std::mem::swap(state, &mut translated);
                    }
                }
            }
        };
        let describe = self.system.describe();
        let name = |action| describe.action(self.present(), action);
        let steps = (0..batch.len()).map(|index| Choice {
            name: name(batch.action(index)),
            fault: None,
            action: Some(batch.action(index)),
            target: batch.target(index).to_vec(),
        });
        let beyond = (batch.cut_off_sources() != 0).then(|| Choice {
            name: "a step".into(),
            fault: Some("its effect is beyond what is counted or evaluated".into()),
            action: None,
            target: Vec::new(),
        });
        let faults = batch.faults().iter().map(|fault| Choice {
            name: fault.action.map_or_else(|| "the state itself".into(), name),
            fault: Some(fault.message.clone()),
            action: fault.action,
            target: Vec::new(),
        });
        let mut choices: Vec<Choice> = steps.chain(faults).chain(beyond).collect();
        choices.sort_by_key(|choice| choice.action);
        self.choices = choices;
    }
}

/// Numbers by chance, the same for the same seed on every machine (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Numbers that follow from this seed.
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// A number below `bound`, which is above 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        ((u128::from(word) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_repeatable_and_reaches_every_number() {
        let draw = |seed| {
            let mut chance = Chance::new(seed);
            (0..100).map(|_| chance.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((0..7).all(|number| draw(3).contains(&number)));
    }
}
