//! The state space as figures.
//!
//! In: every expanded block of a run. Out: a [`Survey`]: the bounds of every place or
//! variable, the largest counts of tokens, the transitions that never happen. What
//! stays true: a survey speaks of expanded states, so of all reachable ones exactly
//! when the run was complete.

use crate::json;
use crate::report::Report;
use deltamark_coloured::{TokenSurvey, token_survey};
pub use deltamark_core::Bound;
use deltamark_core::{Action, Batch, Block, Insert, Observable, Observe, Scratch, System};
use std::io::{self, Write};

/// What was seen in the expanded states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The bounds of every place or variable, in the order of the model.
    pub bounds: Vec<(String, Bound)>,
    /// For coloured nets: for every place how often each token lay there at most.
    pub token_bounds: Vec<(String, Vec<(String, u64)>)>,
    /// For nets: the most tokens in one place.
    pub max_tokens_in_place: Option<i64>,
    /// For nets: the most tokens in one marking.
    pub max_tokens_in_marking: Option<i64>,
    /// The transitions that never happened, where the model's actions are its transitions or bindings of them.
    pub dead_transitions: Option<Vec<String>>,
}

/// A report with a survey.
pub struct Stats {
    /// What the run came to.
    pub report: Report,
    /// What was seen on the way.
    pub survey: Survey,
}

impl Stats {
    /// Writes both as one JSON object.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write_with_survey(&self.report, &self.survey, out)
    }

    /// Both as one JSON object.
    pub fn to_json(&self) -> String {
        json::text(|out| self.write_json(out))
    }
}

/// Watches a run and keeps what a survey needs.
pub(crate) struct Surveyor {
    /// The watched things: their names, themselves, and their bounds so far.
    names: Vec<String>,
    watched: Vec<Observable>,
    bounds: Vec<Bound>,
    /// Whether the watched things are places, whose sum means something.
    places: bool,
    most_in_marking: Option<i64>,
    happened: Vec<bool>,
    action_names: Option<Vec<String>>,
    /// Whether several actions have one name; how many actions there are is not known then.
    grouped: bool,
}

impl Surveyor {
    /// Watches all that properties could speak of; `places` says that those are places
    /// of a net.
    pub(crate) fn new(system: &dyn System, places: bool) -> Self {
        let observe = system.observe();
        let resolved = |observe: &dyn Observe| {
            let find = |name: String| observe.resolve(&name).map(|observable| (name, observable));
            observe.names().into_iter().filter_map(find).unzip()
        };
        let (names, watched): (Vec<String>, Vec<Observable>) = observe.map(resolved).unwrap_or_default();
        // Names and action numbers go together only when there are as many of both; in
        // a coloured net many actions belong to one transition. A system that does not
        // number its actions beforehand has no such list.
        let count = system.action_count().unwrap_or(0) as usize;
        let grouped = observe.is_some_and(Observe::groups_actions);
        let named = |names: &Vec<String>| grouped || system.action_count() == Some(names.len() as u32);
        let action_names = observe.map(Observe::action_names).filter(named);
        Surveyor {
            bounds: vec![Bound::NONE; watched.len()],
            names,
            watched,
            places,
            most_in_marking: None,
            happened: vec![false; count],
            action_names,
            grouped,
        }
    }

    /// Forgets what was seen.
    pub(crate) fn restart(&mut self, system: &dyn System) {
        *self = Surveyor::new(system, self.places);
    }

    /// Notes that an action happens.
    pub(crate) fn happens(&mut self, action: Action) {
        let number = action.0 as usize;
        if self.grouped && number >= self.happened.len() {
            self.happened.resize((number + 1).next_power_of_two(), false);
        }
        if let Some(happened) = self.happened.get_mut(number) {
            *happened = true;
        }
    }

    /// Looks at the states of a block.
    pub(crate) fn look(&mut self, system: &dyn System, scratch: &mut Scratch, block: &Block) {
        let Some(observe) = system.observe() else { return };
        if block.is_empty() {
            return;
        }
        let most = observe.survey_block(scratch, block, &self.watched, &mut self.bounds);
        self.most_in_marking = self.most_in_marking.max(Some(most));
        if let Some(survey) = token_survey(system) {
            survey.note_tokens(scratch, block);
        }
    }

    /// What was seen in the states of this system.
    pub(crate) fn survey(mut self, system: &dyn System) -> Survey {
        if let Some(observe) = system.observe().filter(|_| self.grouped) {
            let mut happened = vec![false; self.action_names.as_ref().map_or(0, Vec::len)];
            for (action, _) in (0..).map(Action).zip(&self.happened).filter(|(_, happened)| **happened) {
                happened[observe.name_of_action(action)] = true;
            }
            self.happened = happened;
        }
        let never = |names: Vec<String>| {
            names.into_iter().zip(&self.happened).filter(|(_, happened)| !**happened).map(|(name, _)| name).collect()
        };
        let seen = |(_, bound): &(String, Bound)| *bound != Bound::NONE;
        let bounds: Vec<(String, Bound)> = self.names.into_iter().zip(self.bounds).filter(seen).collect();
        let most_in_place = bounds.iter().map(|(_, bound)| bound.most).max();
        Survey {
            bounds,
            token_bounds: token_survey(system).map(TokenSurvey::token_bounds).unwrap_or_default(),
            max_tokens_in_place: most_in_place.filter(|_| self.places),
            max_tokens_in_marking: self.most_in_marking.filter(|_| self.places),
            dead_transitions: self.action_names.map(never),
        }
    }
}

impl deltamark_search::Observer for Surveyor {
    fn expanded(&mut self, system: &dyn System, scratch: &mut Scratch, block: &Block, batch: &Batch, _: &[Insert]) {
        self.expanded_last(system, scratch, block, batch);
    }

    fn expanded_last(&mut self, system: &dyn System, scratch: &mut Scratch, block: &Block, batch: &Batch) {
        batch.actions().iter().for_each(|&action| self.happens(action));
        self.look(system, scratch, block);
    }
}
