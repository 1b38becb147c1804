//! A net that is being reduced.
//!
//! In: a net and what is to be kept. Out: what rules look at and change. What stays true: touches name places that are there; the users of a place are
//! the transitions that touch it; transitions are numbered as in the net, and new ones get new numbers; all work is counted.

use super::touch::{self, Touch};
use super::words::{Word, Words};
use super::{Kept, Rule};
use crate::Net;
use deltamark_core::{Control, Stop};

/// Places whose neighbours are tried again have at most this number of users; transitions likewise.
const FEW: usize = 16;

pub(super) struct DraftTransition {
    pub touches: Vec<Touch>,
    pub word: Word,
}

pub(super) struct Draft<'c> {
    pub initial: Vec<u64>,
    pub visible: Vec<bool>,
    pub transitions: Vec<Option<DraftTransition>>,
    pub words: Words,
    pub prefix: Vec<(Word, u64)>,
    pub completions: Vec<Vec<Word>>,
    pub rules: Vec<(Rule, u64)>,
    pub deadlocks: bool,
    present: Vec<bool>,
    /// May name transitions that are gone.
    users: Vec<Vec<u32>>,
    queue: std::collections::VecDeque<u32>,
    queued: Vec<bool>,
    changes: u64,
    work: u64,
    most_work: u64,
    pub control: &'c Control,
}

impl<'c> Draft<'c> {
    pub fn of(net: &Net, kept: &Kept, control: &'c Control) -> Result<Self, Stop> {
        let arcs: usize =
            net.transitions.iter().map(|transition| transition.inputs.len() + transition.outputs.len()).sum();
        control.ask_for((64 * arcs + 128 * (net.places.len() + net.transitions.len())) as u64)?;
        let places = net.places.len();
        let mut users = vec![Vec::new(); places];
        let mut transitions = Vec::with_capacity(net.transitions.len());
        for (number, transition) in net.transitions.iter().enumerate() {
            control.ask()?;
            let touches = touch::touches(net, transition);
            touches.iter().for_each(|touch| users[touch.place as usize].push(number as u32));
            transitions.push(Some(DraftTransition { touches, word: number as u32 }));
        }
        let mut visible = vec![false; places];
        kept.visible.iter().for_each(|&place| visible[place as usize] = true);
        Ok(Draft {
            initial: net.places.iter().map(|place| place.initial.into()).collect(),
            visible,
            words: Words::of(transitions.len()),
            transitions,
            prefix: Vec::new(),
            completions: Vec::new(),
            rules: Vec::new(),
            deadlocks: kept.deadlocks,
            present: vec![true; places],
            users,
            queue: (0..places as u32).collect(),
            queued: vec![true; places],
            changes: 0,
            work: 0,
            most_work: kept.work,
            control,
        })
    }

    /// How often something was changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether no work is left to spend.
    pub fn is_spent(&self) -> bool {
        self.work >= self.most_work
    }

    /// Counts work.
    pub fn spend(&mut self, entries: usize) -> Result<(), Stop> {
        self.work += 1 + entries as u64;
        self.control.ask()
    }

    /// Counts the use of a rule.
    pub fn used(&mut self, rule: Rule) {
        self.changes += 1;
        match self.rules.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, times)) => *times += 1,
            None => self.rules.push((rule, 1)),
        }
    }

    pub fn has_place(&self, place: u32) -> bool {
        self.present[place as usize]
    }

    pub fn places(&self) -> std::ops::Range<u32> {
        0..self.present.len() as u32
    }

    /// A transition that is there.
    pub fn touches(&self, transition: u32) -> &[Touch] {
        self.transitions[transition as usize].as_ref().map_or(&[], |transition| &transition.touches)
    }

    /// The transitions that touch a place.
    pub fn users(&mut self, place: u32) -> Result<Vec<u32>, Stop> {
        let mut users = std::mem::take(&mut self.users[place as usize]);
        users.retain(|&user| self.transitions[user as usize].is_some());
        self.spend(users.len())?;
        self.users[place as usize].clone_from(&users);
        Ok(users)
    }

    /// Whether some transition has an upper bound at a place.
    pub fn is_bounded_above(&mut self, place: u32) -> Result<bool, Stop> {
        let users = self.users(place)?;
        Ok(users.iter().any(|&user| self.touch(user, place).below.is_some()))
    }

    /// What a transition does at a place that it touches.
    pub fn touch(&self, transition: u32, place: u32) -> Touch {
        let touches = self.touches(transition);
        let at = touches.binary_search_by_key(&place, |touch| touch.place).expect("a user touches its place");
        touches[at]
    }

    /// The next place to try rules at, if any work is left.
    pub fn next_place(&mut self) -> Result<Option<u32>, Stop> {
        while let Some(place) = self.queue.pop_front() {
            self.queued[place as usize] = false;
            self.control.ask()?;
            if self.is_spent() {
                return Ok(None);
            }
            if self.present[place as usize] {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Has rules tried at all places once more.
    pub fn look_at_all(&mut self) {
        for place in 0..self.present.len() as u32 {
            self.look_at(place);
        }
    }

    fn look_at(&mut self, place: u32) {
        if self.present[place as usize] && !std::mem::replace(&mut self.queued[place as usize], true) {
            self.queue.push_back(place);
        }
    }

    /// Has rules tried near these places again.
    fn look_near(&mut self, touches: &[Touch]) {
        for touch in touches {
            self.look_at(touch.place);
            if self.users[touch.place as usize].len() > FEW {
                continue;
            }
            for index in 0..self.users[touch.place as usize].len() {
                let user = self.users[touch.place as usize][index] as usize;
                let Some(transition) = &self.transitions[user] else { continue };
                if transition.touches.len() <= FEW {
                    let places: Vec<u32> = transition.touches.iter().map(|touch| touch.place).collect();
                    self.work += places.len() as u64;
                    places.into_iter().for_each(|place| self.look_at(place));
                }
            }
        }
    }

    pub fn remove_transition(&mut self, transition: u32) {
        if let Some(gone) = self.transitions[transition as usize].take() {
            self.work += gone.touches.len() as u64;
            self.look_near(&gone.touches);
        }
    }

    pub fn add_transition(&mut self, touches: Vec<Touch>, word: Word) {
        let number = self.transitions.len() as u32;
        touches.iter().for_each(|touch| self.users[touch.place as usize].push(number));
        self.work += touches.len() as u64;
        self.transitions.push(Some(DraftTransition { touches: touches.clone(), word }));
        self.look_near(&touches);
    }

    /// Removes a place, and all that transitions do there.
    pub fn remove_place(&mut self, place: u32) -> Result<(), Stop> {
        debug_assert!(!self.visible[place as usize], "what is read stays");
        self.present[place as usize] = false;
        for user in self.users(place)? {
            if let Some(transition) = &mut self.transitions[user as usize] {
                transition.touches.retain(|touch| touch.place != place);
                let near: Vec<u32> = transition.touches.iter().map(|touch| touch.place).collect();
                self.work += near.len() as u64;
                if near.len() <= FEW {
                    near.into_iter().for_each(|place| self.look_at(place));
                }
            }
        }
        self.users[place as usize] = Vec::new();
        Ok(())
    }

    /// Changes what a transition does at a place, which leaves it free or not.
    pub fn set_touch(&mut self, transition: u32, new: Touch) {
        let Some(found) = &mut self.transitions[transition as usize] else { return };
        match found.touches.binary_search_by_key(&new.place, |touch| touch.place) {
            Ok(at) if new.is_free() && new.gain == 0 => {
                found.touches.remove(at);
                self.users[new.place as usize].retain(|&user| user != transition);
            }
            Ok(at) => found.touches[at] = new,
            Err(_) if new.is_free() && new.gain == 0 => {}
            Err(at) => {
                found.touches.insert(at, new);
                self.users[new.place as usize].push(transition);
            }
        }
        self.work += 1;
        self.look_at(new.place);
    }

    /// The transitions that are there.
    pub fn all_transitions(&self) -> Vec<u32> {
        (0..self.transitions.len() as u32).filter(|&number| self.transitions[number as usize].is_some()).collect()
    }
}
