//! P/T nets, fired one transition after the other.
//!
//! In: a net, and a state: the tokens of each place, in the order of the file. Out: the transitions that are enabled,
//! with the counts that each changes. What stays true: counts are 64 bits wide and every sum is checked.

use crate::model::{Model, Step};
use std::collections::HashMap;

/// A place.
#[derive(Debug)]
pub(crate) struct Place {
    pub id: String,
    pub name: String,
    pub initial: u32,
}

/// A transition, with its arcs as the file gives them: places and weights.
#[derive(Debug, Default)]
pub(crate) struct Transition {
    pub id: String,
    pub name: String,
    pub inputs: Vec<(u32, u32)>,
    pub outputs: Vec<(u32, u32)>,
    pub reads: Vec<(u32, u32)>,
    pub inhibitors: Vec<(u32, u32)>,
    /// What must be there: the sum of the inputs of a place, and each read.
    needs: Vec<(u32, i64)>,
    /// What firing adds to each place it changes.
    effect: Vec<(u32, i64)>,
}

/// A net.
#[derive(Debug, Default)]
pub(crate) struct Net {
    pub places: Vec<Place>,
    pub transitions: Vec<Transition>,
    place_names: Names,
    transition_names: Names,
}

impl Net {
    /// Adds a place, and returns its number.
    pub fn place(&mut self, id: &str, name: &str, initial: u32) -> u32 {
        self.places.push(Place { id: id.into(), name: name.into(), initial });
        self.places.len() as u32 - 1
    }

    /// Adds a transition, and returns its number.
    pub fn transition(&mut self, id: &str, name: &str) -> u32 {
        self.transitions.push(Transition { id: id.into(), name: name.into(), ..Transition::default() });
        self.transitions.len() as u32 - 1
    }

    /// The same net, ready to be run.
    pub fn compiled(mut self) -> Result<Net, String> {
        if self.places.is_empty() {
            return Err("the net has no places".into());
        }
        self.place_names = names(self.places.iter().map(|place| (place.id.as_str(), place.name.as_str())));
        self.transition_names = names(self.transitions.iter().map(|one| (one.id.as_str(), one.name.as_str())));
        for transition in &mut self.transitions {
            let inputs = sums(&transition.inputs);
            transition.effect = sums(&transition.outputs);
            transition.effect.extend(inputs.iter().map(|&(place, weight)| (place, -weight)));
            let mut effect = added(std::mem::take(&mut transition.effect));
            effect.retain(|&(_, gain)| gain != 0);
            transition.effect = effect;
            transition.needs = inputs;
            transition.needs.extend(transition.reads.iter().map(|&(place, weight)| (place, i64::from(weight))));
        }
        Ok(self)
    }

    fn enabled(&self, state: &[i64], transition: &Transition) -> bool {
        transition.needs.iter().all(|&(place, weight)| state[place as usize] >= weight)
            && transition.inhibitors.iter().all(|&(place, weight)| state[place as usize] < i64::from(weight))
    }
}

/// The sum of the weights of each place, ascending.
fn sums(arcs: &[(u32, u32)]) -> Vec<(u32, i64)> {
    added(arcs.iter().map(|&(place, weight)| (place, i64::from(weight))).collect())
}

/// The numbers of each place added up, ascending.
fn added(mut all: Vec<(u32, i64)>) -> Vec<(u32, i64)> {
    all.sort_unstable();
    let mut sums: Vec<(u32, i64)> = Vec::new();
    for (place, number) in all {
        match sums.last_mut() {
            Some(last) if last.0 == place => last.1 += number,
            _ => sums.push((place, number)),
        }
    }
    sums
}

/// Whose name or id each word is.
type Names = HashMap<String, Vec<u32>>;

/// The names and ids of nodes.
fn names<'a>(nodes: impl Iterator<Item = (&'a str, &'a str)>) -> Names {
    let mut names = Names::new();
    for (number, (id, name)) in (0..).zip(nodes) {
        for word in [id, name] {
            let known = names.entry(word.into()).or_default();
            if known.last() != Some(&number) {
                known.push(number);
            }
        }
    }
    names
}

/// The one node whose name or id this is.
fn the_one(what: &str, word: &str, names: &Names) -> Result<u32, String> {
    match names.get(word).map(Vec::as_slice) {
        Some(&[one]) => Ok(one),
        Some(_) => Err(format!("the net has several {what}s `{word}`")),
        None => Err(format!("the net has no {what} `{word}`")),
    }
}

impl Model for Net {
    fn variables(&self) -> usize {
        self.places.len()
    }

    fn variable_name(&self, number: usize) -> String {
        self.places[number].name.clone()
    }

    fn step_name(&self, number: u32) -> String {
        self.transitions[number as usize].name.clone()
    }

    fn initial(&self) -> Vec<i64> {
        self.places.iter().map(|place| i64::from(place.initial)).collect()
    }

    fn steps(&self, state: &[i64], see: &mut dyn FnMut(Step<'_>) -> Result<(), String>) -> Result<(), String> {
        let mut changes = Vec::new();
        for (number, transition) in (0..).zip(&self.transitions) {
            if !self.enabled(state, transition) {
                continue;
            }
            changes.clear();
            for &(place, gain) in &transition.effect {
                let Some(count) = state[place as usize].checked_add(gain) else {
                    return Err(format!("`{}` makes a count too large for 64 bits", transition.name));
                };
                changes.push((place, count));
            }
            see(Step { number, changes: Ok(&changes) })?;
        }
        Ok(())
    }

    fn can_hold(&self, value: i64) -> bool {
        value >= 0
    }

    fn variable(&self, name: &str) -> Result<u32, String> {
        the_one("place", name, &self.place_names)
    }

    fn transition(&self, name: &str) -> Result<u32, String> {
        the_one("transition", name, &self.transition_names)
    }

    fn fireable(&self, state: &[i64], transition: u32) -> bool {
        self.enabled(state, &self.transitions[transition as usize])
    }
}
