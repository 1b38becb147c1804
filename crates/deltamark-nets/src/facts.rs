//! What transitions need and change.
//!
//! In: a net. Out: [`Facts`]. What stays true: a condition is a place with at least, or with fewer than, a
//! number of tokens; a transition needs one an arc. Effects are additions, which commute, so no
//! transition writes a variable; and none is ever a fault.
//!
//! Nets with priorities state nothing: whether a transition can fire depends there on all transitions
//! of higher priority, so that almost any transition may enable or disable it. Nor do nets with places
//! that many transitions compare with many different weights: the lists would outgrow the net.

use crate::fire::at_least;
use crate::{NetSystem, Transition};
use deltamark_core::facts::Form;
use deltamark_core::{Action, ActionFact, ActionFacts, Block, Change, Control, Facts, Observable, Scratch, Slot, Stop};

/// The maximum average number of conditions that a transition may enable or disable.
const MOST_CHANGED: usize = 1024;

/// `count >= weight` of a place, or its negation. Ordered by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TokenCondition {
    place: u32,
    /// Whether there must be fewer tokens than the weight.
    below: bool,
    weight: u32,
}

/// The conditions that a transition needs.
fn needs(transition: &Transition) -> impl Iterator<Item = TokenCondition> {
    let arcs = transition.inputs.iter().chain(&transition.reads).map(|arc| (arc, false));
    arcs.chain(transition.inhibitors.iter().map(|arc| (arc, true))).map(|(arc, below)| TokenCondition {
        place: arc.place,
        below,
        weight: arc.weight,
    })
}

/// The facts of a net.
pub(crate) struct NetFacts<'n> {
    system: &'n NetSystem,
    conditions: Vec<TokenCondition>,
    actions: ActionFacts,
}

impl<'n> NetFacts<'n> {
    /// The facts about a net; `None` if it states none.
    pub fn new(system: &'n NetSystem, control: &Control) -> Result<Option<Self>, Stop> {
        if system.net().has_priorities() {
            return Ok(None);
        }
        let transitions = &system.net().transitions;
        let mut conditions = Vec::new();
        for transition in transitions {
            control.ask()?;
            conditions.extend(needs(transition));
        }
        // About as much again for the lists.
        control.ask_for(4 * size_of_val(conditions.as_slice()) as u64)?;
        conditions.sort_unstable();
        conditions.dedup();
        let mut actions = ActionFacts::new(conditions.len() as u32, 0);
        let mut fact = ActionFact::default();
        for (transition, effect) in transitions.iter().zip(system.changes()) {
            control.ask()?;
            fact.clear();
            let number = |condition| conditions.partition_point(|&other| other < condition) as u32;
            fact.needs.extend(needs(transition).map(number));
            for &(place, gain) in effect {
                let first = conditions.partition_point(|condition| condition.place < place);
                let of_place = conditions[first..].iter().take_while(|condition| condition.place == place);
                for (condition, TokenCondition { below, .. }) in (first as u32..).zip(of_place) {
                    if (gain > 0) != *below { &mut fact.enables } else { &mut fact.disables }.push(condition);
                }
            }
            actions.push(&mut fact);
            let changed = actions.enables.items().len() + actions.disables.items().len();
            if changed > MOST_CHANGED * transitions.len() {
                return Ok(None);
            }
        }
        Ok(Some(NetFacts { system, conditions, actions }))
    }
}

impl Facts for NetFacts<'_> {
    fn actions(&self) -> &ActionFacts {
        &self.actions
    }

    fn holds(&self, scratch: &mut Scratch, state: &[Slot], condition: u32) -> bool {
        let TokenCondition { place, below, weight } = self.conditions[condition as usize];
        (self.system.count(scratch, state, place) >= u64::from(weight)) != below
    }

    fn truths(&self, scratch: &mut Scratch, block: &Block, out: &mut Vec<u64>) {
        let (compiled, planes) = self.system.planes_of(scratch, block);
        let layout = &compiled.layout;
        out.clear();
        out.extend(self.conditions.iter().map(|condition| {
            let field = layout.fields[condition.place as usize];
            let first = 64 * field.word() as usize + usize::from(field.word_shift());
            let reached = match field.bits() {
                0 if field.least() as u64 >= u64::from(condition.weight) => u64::MAX,
                bits if u64::from(condition.weight) > field.mask() || bits == 0 => 0,
                bits => at_least(&planes[first..first + usize::from(bits)], condition.weight.into()),
            };
            if condition.below { !reached } else { reached }
        }));
    }

    fn adds(&self) -> bool {
        true
    }

    fn changes(&self, observable: Observable) -> Option<Vec<(Action, Change)>> {
        if let Some(transition) = self.system.transition_of(observable) {
            return Some(self.actions.changes_of_enabled(Action(transition)));
        }
        let gains = self.system.changes().iter().map(|effect| effect.iter().find(|gain| gain.0 == observable.index));
        let change = |gain: i64| if gain > 0 { Change::Increases } else { Change::Decreases };
        Some((0..).zip(gains).filter_map(|(number, gain)| Some((Action(number), change(gain?.1)))).collect())
    }

    fn form(&self) -> Form {
        Form::Lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn lists_do_not_outgrow_the_net() {
        for (transitions, states) in [(1_000, true), (2_000, false)] {
            let mut text = String::from("pl p (1)\n");
            for number in 1..=transitions {
                writeln!(text, "tr t{number} p*{number} -> q").expect("a string grows");
            }
            let system = NetSystem::new(crate::tina::parse(&text).expect("a valid net"));
            let facts = NetFacts::new(&system, &Control::new()).expect("no limit");
            assert_eq!(facts.is_some(), states, "{transitions} weights at one place");
        }
    }
}
