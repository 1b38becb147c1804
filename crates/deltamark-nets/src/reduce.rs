//! Structural reduction: a smaller net that answers the same question.
//!
//! In: a net, and what is asked: which places a property reads, whether deadlocks matter. Out: a reduced net, the word of original
//! transitions that each of its transitions stands for, and a [layer](ReducedSystem) through which the original's observables are
//! read. What stays true is the theorem below; and whoever shows a trace has it [expanded](ReducedNet::expanded) and replayed
//! in the original net, where a wrong rule shows as a step that cannot happen or a last state that is not what was looked for.
//!
//! From Berthelot, *Checking properties of nets using transformations*, 1985; Haddad, Pradat-Peyre, *New efficient
//! Petri nets reductions for parallel programs verification*, 2006; Bønneland, Dyhr, Jensen, Johannsen, Srba, *Stubborn
//! versus structural reductions for Petri nets*, 2019. Every rule here has its proof at its head.
//!
//! # What a rule keeps
//! A place is *visible* if the question reads it. The *view* of a marking is its counts of visible places. A rule turns a net
//! `N` into `N'`, which has all visible places of `N`. Each transition of `N'` has a *word*, transitions of `N`.
//!
//! * K1: if `m'` is reachable in `N'`, a marking of the same view is reachable in `N`, by the words of the path (after a prefix).
//! * K2: if `m` is reachable in `N`, a marking of the same view is reachable in `N'`.
//! * K3, if deadlocks matter: K1 and K2 hold of deadlocks alone, too; where `m'` is none, neither is the marking of K1. The deadlock of K1 may
//!   be reached by the words and then a *completion*: transitions that are fired as often as possible.
//!
//! *Theorem.* Let a formula be over visible places, and monotone in "is a deadlock". It is satisfied in a reachable marking of `N` if and
//! only if it is in one of `N'`. Proof: K1 to K3, for each rule applied; where a marking of `N` is no deadlock and that of K2 is
//! one, the formula is satisfied there too, since it is monotone. ∎ Distances are not kept, nor the numbers of states, edges and deadlocks.
//!
//! # The rules
//! | rule | keeps | file |
//! |---|---|---|
//! | transitions that can never fire | all states | `dead` |
//! | places that never change | all states | `constant` |
//! | places that say the same as another one | all states | `equal_places` |
//! | transitions with the effect of another one, and more conditions | all states | `equal_transitions` |
//! | places that nothing looks at | views, deadlocks | `sink` |
//! | a transition follows at once | views, deadlocks | `post` |
//! | a transition precedes at the last moment | views, deadlocks | `pre` |
//! | what no visible place depends on | views | `relevant` |
//! | parts that nobody sees and that come to rest | views, deadlocks | `rest` |
//! | a transition that can always fire | that there is no deadlock | `always` |
//!
//! # Cost
//! Rules are tried at places that a change has touched, from a queue. All of it is under a limit of work, an amount of entries looked at; what has
//! been done until then stays right. Nets with priorities are left alone.

mod always;
mod constant;
mod dead;
mod draft;
mod equal_places;
mod equal_transitions;
mod parts;
mod post;
mod pre;
mod relevant;
mod rest;
mod sink;
mod touch;
mod view;
mod words;

use crate::{Arc, Net, Place, Transition};
use deltamark_core::{Action, Control, Stop};
use draft::Draft;
pub use view::ReducedSystem;
use words::{Word, Words};

/// What a reduction is to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The places whose counts are read.
    pub visible: Vec<u32>,
    /// Whether deadlocks matter.
    pub deadlocks: bool,
    /// The most entries of lists to look at.
    pub work: u64,
}

/// What was done, and to which net it led.
#[derive(Clone, Debug)]
pub struct ReducedNet {
    /// The reduced net.
    pub net: Net,
    /// For each place of the original its number in the reduced net.
    pub places: Vec<Option<u32>>,
    /// The names of the rules that were used, each once, and how often.
    pub rules: Vec<(&'static str, u64)>,
    words: Words,
    /// For each transition its word.
    word_of: Vec<Word>,
    /// What is fired before everything else.
    prefix: Vec<(Word, u64)>,
    /// What is fired as often as possible where a path ends in a deadlock, the last group first.
    completions: Vec<Vec<Word>>,
    deadlocks: bool,
}

/// The name of a rule, once for each of its files.
pub(crate) type Rule = &'static str;

/// The rules that keep every state.
pub const KEEP_STATES: &[&str] = &["dead transitions", "constant places", "equal places", "equal transitions"];

/// Reduces a net; `None` if nothing was found to reduce, or the net has priorities.
pub fn reduce(net: &Net, kept: &Kept, control: &Control) -> Result<Option<ReducedNet>, Stop> {
    if net.has_priorities() {
        return Ok(None);
    }
    let mut draft = Draft::of(net, kept, control)?;
    loop {
        let before = draft.changes();
        dead::apply(&mut draft)?;
        constant::apply(&mut draft)?;
        if draft.deadlocks {
            always::apply(&mut draft)?;
            rest::apply(&mut draft)?;
        } else {
            relevant::apply(&mut draft)?;
        }
        equal_places::apply(&mut draft)?;
        equal_transitions::apply(&mut draft)?;
        while let Some(place) = draft.next_place()? {
            if !sink::apply(&mut draft, place)? && !post::apply(&mut draft, place)? {
                pre::apply(&mut draft, place)?;
            }
        }
        if draft.changes() == before || draft.is_spent() {
            break;
        }
        draft.look_at_all();
    }
    Ok(if draft.changes() == 0 { None } else { Some(finished(net, draft)) })
}

/// The reduced net as data.
fn finished(net: &Net, draft: Draft<'_>) -> ReducedNet {
    let mut places = vec![None; net.places.len()];
    let mut kept = Vec::new();
    for (number, place) in net.places.iter().enumerate() {
        if draft.has_place(number as u32) {
            places[number] = Some(kept.len() as u32);
            let initial = u32::try_from(draft.initial[number]).expect("counts stay in range");
            kept.push(Place { initial, ..place.clone() });
        }
    }
    // A net has a place.
    if kept.is_empty() {
        kept.push(Place { id: "none".into(), name: "none".into(), initial: 0 });
    }
    let (mut transitions, mut word_of) = (Vec::new(), Vec::new());
    for (number, transition) in draft.transitions.iter().enumerate() {
        let Some(transition) = transition else { continue };
        let name = match net.transitions.get(number) {
            Some(original) => original.name.clone(),
            None => format!("{} and more, {number}", net.transitions[draft.words.first(transition.word) as usize].name),
        };
        let mut arcs = Transition { id: name.clone(), name, ..Transition::default() };
        for touch in &transition.touches {
            let place = places[touch.place as usize].expect("a place that is touched is kept");
            let arc = |weight: u64| Arc { place, weight: u32::try_from(weight).expect("weights stay in range") };
            let (need, gain) = (touch.need, touch.gain);
            let (condition, given) = match gain {
                ..0 => (&mut arcs.inputs, need.saturating_add_signed(gain)),
                0.. => (&mut arcs.reads, gain as u64),
            };
            if need > 0 {
                condition.push(arc(need));
            }
            if given > 0 {
                arcs.outputs.push(arc(given));
            }
            if let Some(below) = touch.below {
                arcs.inhibitors.push(arc(below));
            }
        }
        transitions.push(arcs);
        word_of.push(transition.word);
    }
    unique_names(&mut transitions);
    let Draft { words, prefix, completions, rules, deadlocks, .. } = draft;
    let reduced = Net { name: net.name.clone(), places: kept, transitions, ..Net::default() };
    ReducedNet { net: reduced, places, rules, words, word_of, prefix, completions, deadlocks }
}

/// Names of composed transitions may clash with those of others.
fn unique_names(transitions: &mut [Transition]) {
    let mut seen = std::collections::HashSet::new();
    for (number, transition) in transitions.iter_mut().enumerate() {
        while !seen.insert(transition.name.clone()) {
            transition.name = format!("{} ({number})", transition.name);
            transition.id = transition.name.clone();
        }
    }
}

/// Adds the gains of a transition to a marking, `times` times.
fn fire(net: &Net, marking: &mut [i64], action: Action, times: i64) {
    let Transition { inputs, outputs, .. } = &net.transitions[action.0 as usize];
    inputs.iter().for_each(|arc| marking[arc.place as usize] -= times * i64::from(arc.weight));
    outputs.iter().for_each(|arc| marking[arc.place as usize] += times * i64::from(arc.weight));
}

/// Fires a word, if all of it can be fired.
fn attempt(net: &Net, marking: &mut [i64], word: &[Action]) -> bool {
    for (number, &action) in word.iter().enumerate() {
        if !net.transitions[action.0 as usize].enabled(|place| marking[place as usize] as u64) {
            word[..number].iter().for_each(|&action| fire(net, marking, action, -1));
            return false;
        }
        fire(net, marking, action, 1);
    }
    true
}

impl ReducedNet {
    /// The path of the original net that a path of the reduced one stands for.
    pub fn expanded(&self, net: &Net, path: &[Action], control: &Control) -> Result<Vec<Action>, Stop> {
        let mut actions = Vec::new();
        for &(word, times) in &self.prefix {
            for _ in 0..times {
                self.words.spell(word, &mut actions, control)?;
            }
        }
        for action in path {
            self.words.spell(self.word_of[action.0 as usize], &mut actions, control)?;
        }
        if self.deadlocks && !self.completions.is_empty() {
            self.complete(net, &mut actions, control)?;
        }
        Ok(actions)
    }

    /// Appends the completions.
    fn complete(&self, net: &Net, actions: &mut Vec<Action>, control: &Control) -> Result<(), Stop> {
        let mut marking: Vec<i64> = net.places.iter().map(|place| place.initial.into()).collect();
        actions.iter().for_each(|&action| fire(net, &mut marking, action, 1));
        for group in self.completions.iter().rev() {
            let mut moved = true;
            while std::mem::take(&mut moved) {
                for &word in group {
                    let mut spelt = Vec::new();
                    self.words.spell(word, &mut spelt, control)?;
                    while attempt(net, &mut marking, &spelt) {
                        moved = true;
                        control.ask()?;
                        actions.extend(&spelt);
                        words::ask_for(actions, control)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether nothing is left that could change the marking: the question is decided by the initial marking.
    pub fn is_decided(&self) -> bool {
        let moves = |transition: &Transition| !self.net.effect(transition).is_empty();
        !self.net.transitions.iter().any(moves)
    }
}
