//! Many steps at once on nets whose layout widens in between: against the definition.

use deltamark_core::{Action, Batch, Scratch, Slot, States, System, Undone};
use deltamark_nets::{Net, NetSystem, Transition};
use deltamark_testkit::net_oracle::fire;
use deltamark_testkit::random::nets;
use proptest::prelude::*;
use std::collections::HashMap;

/// The one marking from which the transition leads here, if its counts fit in fields of
/// these widths.
fn unfire(transition: &Transition, marking: &[u64], bits: &[u8]) -> Option<Vec<u64>> {
    let mut source = marking.to_vec();
    for arc in &transition.outputs {
        let count = &mut source[arc.place as usize];
        *count = count.checked_sub(arc.weight.into())?;
    }
    transition.inputs.iter().for_each(|arc| source[arc.place as usize] += u64::from(arc.weight));
    let fits = source.iter().zip(bits).all(|(&count, &bits)| bits == 0 || count >> bits == 0);
    (fits && fire(transition, &source).as_deref() == Some(marking)).then_some(source)
}

/// Compares all steps from and to these states with the definition.
fn agrees(system: &NetSystem, scratch: &mut Scratch, states: &[Vec<Slot>]) {
    let (net, bits, width) = (system.net(), system.field_bits(), system.width());
    let reversible = system.reversible().expect("nets are reversible");
    let (mut sources, mut forward, mut expected) = (States::new(width), Vec::new(), Vec::new());
    let (mut targets, mut backward, mut hashes, mut origins) = (States::new(width), Vec::new(), Vec::new(), Vec::new());
    for state in states {
        let marking = system.marking(state);
        for (number, transition) in net.transitions.iter().enumerate() {
            let next = fire(transition, &marking);
            let fits = |next: &Vec<u64>| next.iter().zip(&bits).all(|(&count, &bits)| bits == 0 || count >> bits == 0);
            if let Some(next) = next.filter(fits) {
                sources.push(state);
                forward.push(Action(number as u32));
                expected.push(next);
            }
            if let Some(source) = unfire(transition, &marking, &bits) {
                origins.push((source, targets.len() as u32));
            }
            targets.push(state);
            backward.push(Action(number as u32));
        }
    }
    let mut found = States::new(width);
    system.fire_each(scratch, &sources, &forward, &mut found);
    assert_eq!(found.iter().map(|state| system.marking(state)).collect::<Vec<_>>(), expected);
    system.hashes(scratch, &targets, &mut hashes);
    let mut undone = Undone::new(width);
    reversible.unfire_each(scratch, &targets, &hashes, &backward, &mut undone);
    let found: Vec<_> = undone.states.iter().map(|state| system.marking(state)).zip(undone.from.clone()).collect();
    assert_eq!(found, origins);
    let mut again = Vec::new();
    system.hashes(scratch, &undone.states, &mut again);
    assert_eq!(undone.hashes, again);
}

/// Explores with one scratch, and compares before and after each widening; returns the number of widenings.
fn explored(mut net: Net, most: usize) -> usize {
    // Untrue: fields then begin as narrow as the initial marking allows.
    net.declared_safe = true;
    let system = NetSystem::new(net);
    let mut scratch = system.scratch();
    let mut batch = Batch::new(system.width());
    system.initial(&mut scratch, &mut batch).expect("the layout holds the initial marking");
    let mut states = vec![batch.target(0).to_vec()];
    let mut numbers = HashMap::from([(states[0].clone(), 0)]);
    let (mut next, mut widenings) = (0, 0);
    while next < states.len() && states.len() < most {
        batch.reset(system.width());
        if system.successors(&mut scratch, &states[next], &mut batch).is_err() {
            agrees(&system, &mut scratch, &states);
            let recoding = system.widen();
            widenings += 1;
            for state in &mut states {
                let old = state.clone();
                recoding.translate(&old, state);
            }
            numbers = states.iter().cloned().enumerate().map(|(number, state)| (state, number)).collect();
            agrees(&system, &mut scratch, &states);
            continue;
        }
        for index in 0..batch.len() {
            let target = batch.target(index).to_vec();
            if !numbers.contains_key(&target) {
                numbers.insert(target.clone(), states.len());
                states.push(target);
            }
        }
        next += 1;
    }
    agrees(&system, &mut scratch, &states);
    widenings
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn many_steps_agree_with_the_definition(net in nets(6, 7)) {
        explored(net, 150);
    }

    /// Many places that change, so that states take several words.
    #[test]
    fn many_steps_in_wide_states_agree_with_the_definition(net in nets(60, 60)) {
        explored(net, 60);
    }
}

#[test]
fn layouts_widen_from_one_slot_to_many() {
    // A step adds nearly 2^32 tokens: fields widen from one bit to more than 32.
    let places = 12;
    let text: String =
        (0..places).map(|place| format!("tr t{place} p{place} -> p{place}*3000000000\npl p{place} (1)\n")).collect();
    let net = deltamark_nets::tina::parse(&text).expect("a valid net");
    assert!(explored(net, 400) > 1);
}
