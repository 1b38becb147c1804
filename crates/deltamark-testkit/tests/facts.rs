//! The suite for facts: it accepts what is right and refutes what is wrong.

use deltamark_core::{
    Action, ActionFact, ActionFacts, Batch, Block, Change, Control, Describe, Exchange, Facts, Fired, Observable,
    ObservableKind, Observe, Scratch, Slot, Stop, System, UNDEFINED, Value, Widen, Width,
};
use deltamark_testkit::check_system;
use std::panic::catch_unwind;

/// The wrong statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    Nothing,
    NeedUnstated,
    WrongTruth,
    EnablingUnstated,
    DisablingUnstated,
    WriteUnstated,
    ReadUnstated,
    FaultUnstated,
    BreakUnstated,
    ChangeUnstated,
    WrongDirection,
    ActionMissing,
    /// Effects are said to be additions.
    Additions,
    /// The same, and no action is said to write or to fail.
    SilentAdditions,
    /// The same, and none in two directions.
    OneWayAdditions,
    /// A truth of a block is not that of its states.
    WrongBlock,
    /// Conditions that hold together are said to be about different values of the same thing.
    WrongPin,
    /// Two actions that are enabled together are said to be parts of one.
    PartsTogether,
    /// No part of an action is stated.
    PartMissing,
    /// An observable has no value, which is not stated.
    NoValue,
    /// No facts, and nothing can be exchanged.
    OnlyPairs,
    /// No facts, and everything can be exchanged.
    EveryPair,
}

/// Three variables, of which the third is 2 after being cleared.
///
/// ```text
/// 0: x < 3 → x += 1     2: y == 0 → y = 1     4: z = y         5: z == 1 and x == 3 → fault
/// 1: x > 0 → x -= 1     3: y == 1 → y = 0     6: z != 2 → z = 2
/// ```
/// A state in which z is 2 is a fault by itself.
struct Toy(Flaw);

const ACTIONS: u32 = 7;

/// `x < 3`, `x > 0`, `y == 0`, `y == 1`, `z == 1`, `x == 3`, `z != 2`
fn condition(state: &[Slot], number: u32) -> bool {
    let [x, y, z] = state else { panic!("three slots") };
    [*x < 3, *x > 0, *y == 0, *y == 1, *z == 1, *x == 3, *z != 2][number as usize]
}

const NEEDS: [&[u32]; ACTIONS as usize] = [&[0], &[1], &[2], &[3], &[], &[4, 5], &[6]];

impl System for Toy {
    fn width(&self) -> Width {
        Width::Fixed(3)
    }

    fn initial(&self, _: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push(Action(0), &[0, 0, 0]);
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let mut target = Vec::new();
        if source[2] == 2 {
            out.fault(None, "z is 2".into());
        }
        for action in (0..ACTIONS).map(Action) {
            match self.fire(scratch, source, action, &mut target)? {
                Fired::Done => out.push(action, &target),
                Fired::Disabled => {}
                Fired::Fault(why) => out.fault(Some(action), why),
            }
        }
        Ok(())
    }

    fn fire(&self, _: &mut Scratch, source: &[Slot], action: Action, to: &mut Vec<Slot>) -> Result<Fired, Widen> {
        if !NEEDS[action.0 as usize].iter().all(|&number| condition(source, number)) {
            return Ok(Fired::Disabled);
        }
        to.clear();
        to.extend_from_slice(source);
        match action.0 {
            0 => to[0] += 1,
            1 => to[0] -= 1,
            2 => to[1] = 1,
            3 => to[1] = 0,
            4 => to[2] = to[1],
            5 => return Ok(Fired::Fault("x is 3".into())),
            _ => to[2] = 2,
        }
        Ok(Fired::Done)
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }

    fn action_count(&self) -> Option<u32> {
        Some(ACTIONS)
    }

    fn facts(&self, _: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        if matches!(self.0, Flaw::OnlyPairs | Flaw::EveryPair) {
            return Ok(None);
        }
        let unless = |flaw: Flaw, list: &[u32]| if self.0 == flaw { Vec::new() } else { list.to_vec() };
        let fact = |enables: Vec<u32>, disables: Vec<u32>, reads: Vec<u32>, writes: Vec<u32>| ActionFact {
            enables,
            disables,
            reads,
            writes,
            ..ActionFact::default()
        };
        let mut stated = vec![
            fact(unless(Flaw::EnablingUnstated, &[1, 5]), vec![0], vec![], vec![]),
            fact(vec![0], unless(Flaw::DisablingUnstated, &[1, 5]), vec![], vec![]),
            fact(vec![3], vec![2], vec![], vec![0]),
            fact(vec![2], vec![3], vec![], vec![0]),
            fact(vec![4, 6], vec![4], unless(Flaw::ReadUnstated, &[0]), vec![1]),
            ActionFact { may_fail: self.0 != Flaw::FaultUnstated, ..ActionFact::default() },
            ActionFact {
                may_break: self.0 != Flaw::BreakUnstated,
                ..fact(vec![], vec![4, 6], vec![], unless(Flaw::WriteUnstated, &[1]))
            },
        ];
        let mut actions = ActionFacts::new(7, 2);
        if self.0 == Flaw::ActionMissing {
            stated.pop();
        }
        if matches!(self.0, Flaw::SilentAdditions | Flaw::OneWayAdditions) {
            for fact in &mut stated {
                (fact.writes, fact.may_fail) = (Vec::new(), false);
            }
        }
        if self.0 == Flaw::OneWayAdditions {
            stated[4].disables.clear();
        }
        for (fact, needs) in stated.iter_mut().zip(NEEDS) {
            fact.needs = needs.to_vec();
            if self.0 == Flaw::NeedUnstated {
                fact.needs.retain(|&condition| condition != 2);
            }
            actions.push(fact);
        }
        Ok(Some(Box::new(ToyFacts { flaw: self.0, actions, refined: false })))
    }

    fn refined_facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        if !matches!(self.0, Flaw::PartsTogether | Flaw::PartMissing) {
            return self.facts(control);
        }
        let actions = self.facts(control)?.expect("facts").actions().clone();
        Ok(Some(Box::new(ToyFacts { flaw: self.0, actions, refined: true })))
    }

    fn exchange(&self) -> Option<&dyn Exchange> {
        matches!(self.0, Flaw::OnlyPairs | Flaw::EveryPair).then_some(self)
    }
}

impl Exchange for Toy {
    fn exchangeable(&self, a: Action, b: Action) -> bool {
        let apart = a.0 / 2 == 0 && (2..5).contains(&b.0);
        apart || self.0 == Flaw::EveryPair
    }
}

struct ToyFacts {
    flaw: Flaw,
    actions: ActionFacts,
    refined: bool,
}

impl Facts for ToyFacts {
    fn actions(&self) -> &ActionFacts {
        &self.actions
    }

    fn holds(&self, _: &mut Scratch, state: &[Slot], number: u32) -> bool {
        condition(state, number) != (self.flaw == Flaw::WrongTruth && number == 0)
    }

    fn truths(&self, scratch: &mut Scratch, block: &Block, out: &mut Vec<u64>) {
        out.clear();
        for number in 0..self.actions.conditions {
            let holds = block.states().iter().map(|state| self.holds(scratch, state, number));
            out.push((0..).zip(holds).fold(0, |word, (lane, holds)| word | u64::from(holds) << lane));
        }
        out[0] ^= u64::from(self.flaw == Flaw::WrongBlock);
    }

    fn pins(&self, condition: u32) -> Option<(u32, i64)> {
        match condition {
            2 => Some((1, 0)),
            3 => Some((1, 1)),
            5 => Some((0, 3)),
            1 if self.flaw == Flaw::WrongPin => Some((0, 1)),
            _ => None,
        }
    }

    fn action(&self, number: u32) -> Action {
        match (self.flaw, number) {
            (Flaw::PartsTogether, 1) if self.refined => Action(0),
            (Flaw::PartMissing, 0) if self.refined => Action(5),
            _ => Action(number),
        }
    }

    fn adds(&self) -> bool {
        matches!(self.flaw, Flaw::Additions | Flaw::SilentAdditions | Flaw::OneWayAdditions)
    }

    fn changes(&self, observable: Observable) -> Option<Vec<(Action, Change)>> {
        let turned = |change: Change| if self.flaw == Flaw::WrongDirection { change.negated() } else { change };
        let mut changes = match observable.index {
            0 => vec![(Action(0), Change::Increases), (Action(1), Change::Decreases)],
            1 => vec![(Action(2), turned(Change::Increases)), (Action(3), Change::Decreases)],
            _ => vec![(Action(4), Change::Either), (Action(6), Change::Increases)],
        };
        if self.flaw == Flaw::ChangeUnstated && observable.index == 0 {
            changes.pop();
        }
        Some(changes)
    }
}

impl Observe for Toy {
    fn resolve(&self, name: &str) -> Option<Observable> {
        let index = self.names().iter().position(|known| known == name)? as u32;
        Some(Observable { index, kind: ObservableKind::Int })
    }

    fn fireable(&self, _: &str) -> Option<Observable> {
        None
    }

    fn names(&self) -> Vec<String> {
        ["x", "y", "z"].map(String::from).to_vec()
    }

    fn action_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&self, _: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let value = state[observable.index as usize].into();
        if self.0 == Flaw::NoValue && value == 2 { UNDEFINED } else { value }
    }
}

impl Describe for Toy {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        self.names().into_iter().zip(state.iter().map(|&slot| Value::Int(slot.into()))).collect()
    }

    fn action(&self, _: &[Slot], action: Action) -> String {
        format!("action {}", action.0)
    }
}

#[test]
fn every_wrong_statement_is_refuted_and_named() {
    let cases = [
        (Flaw::Nothing, ""),
        (Flaw::OnlyPairs, ""),
        (Flaw::NeedUnstated, "F1"),
        (Flaw::WrongTruth, "F1"),
        (Flaw::EnablingUnstated, "F2"),
        (Flaw::DisablingUnstated, "F3"),
        (Flaw::WriteUnstated, "F4"),
        (Flaw::ReadUnstated, "F4"),
        (Flaw::FaultUnstated, "F5"),
        (Flaw::BreakUnstated, "F10: Action(6)"),
        (Flaw::ChangeUnstated, "F6: `x`"),
        (Flaw::WrongDirection, "F6: `y`"),
        (Flaw::ActionMissing, "facts are stated of every action"),
        (Flaw::Additions, "F7: action 2 writes no variable"),
        (Flaw::SilentAdditions, "F7: action 4 adds in one direction"),
        (Flaw::OneWayAdditions, "F7: additions commute"),
        (Flaw::WrongBlock, "condition 0 of a block"),
        (Flaw::WrongPin, "F8: 0 has one value"),
        (Flaw::PartsTogether, "F9: one part of Action(0)"),
        (Flaw::PartMissing, "F9: a part of Action(0)"),
        (Flaw::NoValue, "` has a value, as stated"),
        (Flaw::EveryPair, "actions that are said to be exchangeable are"),
    ];
    for (flaw, expected) in cases {
        let complaint = match catch_unwind(|| check_system(&Toy(flaw))) {
            Ok(()) => String::new(),
            Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic without words".into()),
        };
        assert_eq!(complaint.is_empty(), expected.is_empty(), "{flaw:?}: {complaint}");
        assert!(complaint.contains(expected), "{flaw:?}: {complaint}");
    }
}
