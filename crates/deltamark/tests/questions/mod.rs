//! Random questions about systems, and their answers by looking at all states.

#![allow(dead_code)]

use deltamark_core::{Batch, Block, ObservableKind, Property, StateId, System, Verdict};
use deltamark_nets::Net;
use deltamark_testkit::oracle::Explored;
use deltamark_testkit::random::Rng;

/// The distance of the nearest state that decides a property, by looking at all.
pub fn nearest(system: &dyn System, full: &Explored, property: &Property) -> Option<u64> {
    let mut scratch = system.scratch();
    let mut block = Block::new(system.width());
    let mut batch = Batch::new(system.width());
    let mut found: Option<u64> = None;
    for (state, &distance) in full.states.iter().zip(&full.distances) {
        block.reset(system.width());
        block.push(StateId::NAMELESS, state);
        batch.reset(system.width());
        system.expand(&mut scratch, &block, &mut batch).expect("the layout fits");
        let dead = 1 & !batch.moved();
        let decided = property.goal.look(system, &mut scratch, &block, dead, batch.faults());
        let undefined = if property.goal.is_existential() { 0 } else { decided.undefined };
        if decided.states | undefined != 0 {
            // A fault is a step more.
            let far = distance + u64::from(decided.fault.is_some_and(|fault| fault.action.is_some()));
            found = Some(found.map_or(far, |found| found.min(far)));
        }
    }
    found
}

pub fn steps(verdict: &Verdict) -> Option<u64> {
    verdict.trace().map(|trace| trace.len() as u64)
}

/// A random state property over these names of numbers, and these truth values.
pub fn expression(rng: &mut Rng, names: &[String], truths: &[String], depth: usize) -> String {
    let pick = |rng: &mut Rng, list: &[String]| deltamark_logic::quote(&list[rng.below(list.len())]);
    match rng.below(if depth == 0 { 4 } else { 8 }) {
        0 if !truths.is_empty() => truths[rng.below(truths.len())].clone(),
        1 if rng.below(4) == 0 => "deadlock".into(),
        0..=2 => {
            let operator = ["=", "!=", "<", "<=", ">", ">="][rng.below(6)];
            let (name, number) = (pick(rng, names), rng.below(5));
            format!("{name} {operator} {number}")
        }
        3 => {
            let sign = ["+", "-", "+ 2 *"][rng.below(3)];
            let (one, two, three) = (pick(rng, names), pick(rng, names), pick(rng, names));
            let operator = [">=", "<", "="][rng.below(3)];
            format!("{one} {sign} {two} {operator} {three} + {}", rng.below(3))
        }
        4 => format!("not ({})", expression(rng, names, truths, depth - 1)),
        5 if rng.below(6) == 0 => format!("{} / {} > 1", pick(rng, names), pick(rng, names)),
        kind => {
            let operator = ["and", "or", "implies", "iff"][(kind + rng.below(3)) % 4];
            let part = |rng: &mut Rng| expression(rng, names, truths, depth - 1);
            format!("({}) {operator} ({})", part(rng), part(rng))
        }
    }
}

pub fn questions(system: &dyn System, rng: &mut Rng) -> Vec<Property> {
    let observe = system.observe().expect("names");
    let is_number = |name: &String| observe.resolve(name).is_some_and(|found| found.kind == ObservableKind::Int);
    let (names, truths): (Vec<String>, Vec<String>) = observe.names().into_iter().partition(is_number);
    let quoted = |name: &String| deltamark_logic::quote(name);
    let fireable = |name: &String| format!("fireable({})", deltamark_logic::quote(name));
    let actions = truths.iter().map(quoted).chain(observe.action_names().iter().map(fireable)).collect::<Vec<_>>();
    let mut properties = Vec::new();
    for number in 0..1 + rng.below(3) {
        let text = expression(rng, &names, &actions, 3);
        let parse = if number % 2 == 0 { deltamark_logic::reachable } else { deltamark_logic::invariant };
        properties.push(parse(None, &text, observe).unwrap_or_else(|error| panic!("{text}: {error:?}")));
    }
    match rng.below(4) {
        0 => properties.push(Property::deadlock_free()),
        1 => properties.push(Property::fault_free()),
        _ => {}
    }
    properties
}

/// Both nets side by side, joined at one place at most: parts that hardly depend on each other.
pub fn beside(mut one: Net, two: Net, seed: u64) -> Net {
    let shift = one.places.len() as u32 - u32::from(seed.is_multiple_of(2));
    let joined = one.places.len() as u32 - shift;
    for place in two.places.into_iter().skip(joined as usize) {
        let name = format!("second {}", place.name);
        one.places.push(deltamark_nets::Place { id: name.clone(), name, ..place });
    }
    for mut transition in two.transitions {
        for arcs in [&mut transition.inputs, &mut transition.outputs, &mut transition.reads, &mut transition.inhibitors]
        {
            arcs.iter_mut().for_each(|arc| arc.place += shift);
        }
        transition.name = format!("second {}", transition.name);
        transition.id = transition.name.clone();
        one.transitions.push(transition);
    }
    one
}
