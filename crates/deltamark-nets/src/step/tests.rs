//! Single steps in fields of all widths, against the definition on plain vectors.

use super::*;
use crate::{Arc, Place};
use deltamark_core::Width;
use deltamark_core::hash::mix;

/// Random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 += 1;
        mix(mix(self.0)) % end
    }

    /// Up to two places with weights around what their fields can hold.
    fn arcs(&mut self, layout: &Layout, places: &[usize], most: u64) -> Vec<Arc> {
        let mut arcs: Vec<Arc> = Vec::new();
        for _ in 0..self.below(most + 1) {
            let place = places[self.below(places.len() as u64) as usize] as u32;
            let limit = layout.fields[place as usize].most() as u64;
            let weight = [1, 2, limit, limit.saturating_sub(1), limit + 1][self.below(5) as usize];
            let weight = weight.clamp(1, u64::from(u32::MAX)) as u32;
            if arcs.iter().all(|arc| arc.place != place) {
                arcs.push(Arc { place, weight });
            }
        }
        arcs
    }

    /// A count at or near a bound of its field, or anywhere.
    fn count(&mut self, limit: u64) -> u64 {
        [0, 1, limit, limit - limit.min(1), self.below(limit + 1)][self.below(5) as usize].min(limit)
    }
}

/// Widths of fields, by what they test.
const WIDTHS: &[&[u8]] = &[
    &[1],
    &[1, 1, 1, 1],
    &[3, 1, 2, 3],
    &[0, 2, 0, 3, 1],
    &[31, 1, 32],
    &[63],
    &[63, 1, 2],
    &[40, 24, 33, 31],
    &[1, 63, 63, 2, 5],
    &[33, 33, 33, 7],
    &[32, 32, 32, 32, 32, 32, 32],
    &[60, 60, 60, 60, 60, 60, 3],
    &[5; 90],
];

/// A net whose places have fields of these widths, and its layout. Places without bits
/// are read, or taken from and given back to.
fn random(bits: &[u8], chance: &mut Chance) -> (Net, Layout) {
    let constants: Vec<u64> = bits.iter().map(|_| chance.below(4)).collect();
    let sizes =
        bits.iter().zip(&constants).map(|(&bits, &constant)| (bits, if bits == 0 { constant as i64 } else { 0 }));
    let layout = Layout::in_words(sizes);
    let (still, moving): (Vec<usize>, Vec<usize>) = (0..bits.len()).partition(|&place| bits[place] == 0);
    let all: Vec<usize> = (0..bits.len()).collect();
    let transitions = (0..12).map(|number| {
        let mut transition = Transition {
            name: format!("t{number}"),
            inputs: chance.arcs(&layout, &moving, 3),
            outputs: chance.arcs(&layout, &moving, 3),
            ..Transition::default()
        };
        if number % 4 == 1 {
            transition.reads = chance.arcs(&layout, &all, 2);
        }
        if number % 4 == 2 {
            transition.inhibitors = chance.arcs(&layout, &all, 2);
        }
        if number % 3 == 0 && !still.is_empty() {
            let loops = chance.arcs(&layout, &still, 1);
            transition.inputs.extend(&loops);
            transition.outputs.extend(&loops);
        }
        transition
    });
    let transitions = transitions.collect();
    let place = |(number, &initial): (usize, &u64)| Place {
        id: format!("p{number}"),
        name: format!("p{number}"),
        initial: initial as u32,
    };
    let places = constants.iter().enumerate().map(place).collect();
    (Net { places, transitions, ..Net::default() }, layout)
}

/// The definition's decision on a step.
#[derive(Debug, PartialEq)]
enum Said {
    To(Vec<u64>),
    TooLarge,
    No,
}

fn enabled(transition: &Transition, marking: &[u64]) -> bool {
    let enough = |arc: &Arc| marking[arc.place as usize] >= u64::from(arc.weight);
    transition.inputs.iter().all(enough)
        && transition.reads.iter().all(enough)
        && !transition.inhibitors.iter().any(enough)
}

fn moved(marking: &[u64], minus: &[Arc], plus: &[Arc], layout: &Layout) -> Said {
    let mut next = marking.to_vec();
    for arc in minus {
        let Some(rest) = next[arc.place as usize].checked_sub(arc.weight.into()) else { return Said::No };
        next[arc.place as usize] = rest;
    }
    plus.iter().for_each(|arc| next[arc.place as usize] += u64::from(arc.weight));
    let fits = next.iter().zip(&layout.fields).all(|(&count, field)| count <= field.most() as u64);
    if fits { Said::To(next) } else { Said::TooLarge }
}

fn done(marking: &[u64], transition: &Transition, layout: &Layout) -> Said {
    if !enabled(transition, marking) {
        return Said::No;
    }
    moved(marking, &transition.inputs, &transition.outputs, layout)
}

fn undone(marking: &[u64], transition: &Transition, layout: &Layout) -> Option<Vec<u64>> {
    match moved(marking, &transition.outputs, &transition.inputs, layout) {
        Said::To(source) if enabled(transition, &source) => Some(source),
        _ => None,
    }
}

fn hash(marking: &[u64]) -> u64 {
    let terms = marking.iter().enumerate().map(|(place, count)| coefficient(place as u64).wrapping_mul(*count));
    terms.fold(0, u64::wrapping_add)
}

/// Steps in random markings, one at a time and many together, agree with the definition; returns how many were
/// enabled, overflowed, and could be undone.
fn agrees(bits: &[u8], seed: u64) -> [usize; 3] {
    let mut chance = Chance(mix(seed));
    let (net, layout) = random(bits, &mut chance);
    let steps = Steps::under(&net, &layout, &Control::new()).expect("nobody asks it to stop");
    let by_definition = |number: usize, state: &[Slot]| {
        net.transitions[number].enabled(|place| layout.fields[place as usize].read(state) as u64)
    };
    let width = Width::Fixed(layout.slots);
    let (mut sources, mut doable, mut expected) = (States::new(width), Vec::new(), States::new(width));
    let (mut all, mut hashes, mut actions, mut undoable) = (States::new(width), Vec::new(), Vec::new(), Vec::new());
    let mut counts = [0; 3];
    let (mut state, mut other) = (Vec::new(), Vec::new());
    for _ in 0..150 {
        let marking: Vec<u64> = layout.fields.iter().map(|field| chance.count(field.most() as u64)).collect();
        let marking: Vec<u64> = marking
            .iter()
            .zip(&layout.fields)
            .map(|(&count, field)| if field.bits() == 0 { field.least() as u64 } else { count })
            .collect();
        layout.pack(marking.iter().map(|&count| count as i64), &mut state);
        for (number, transition) in net.transitions.iter().enumerate() {
            let action = Action(number as u32);
            let said = done(&marking, transition, &layout);
            let verdict = match steps.can_do(&state, number) {
                Verdict::Open if !by_definition(number, &state) => Verdict::Disabled,
                verdict => verdict,
            };
            match &said {
                Said::To(next) => {
                    // An open verdict about a step that fits comes from special arcs only.
                    assert!(verdict == Verdict::Fits || verdict == Verdict::Open && steps.special(number));
                    layout.pack(next.iter().map(|&count| count as i64), &mut other);
                    sources.push(&state);
                    doable.push(action);
                    expected.push(&other);
                    let mut target = state.clone();
                    steps.do_in(&mut target, number);
                    assert_eq!(target, other, "{bits:?} {transition:?} in {marking:?}");
                    assert_eq!(hash(next), hash(&marking).wrapping_add(steps.hash(number)));
                    counts[0] += 1;
                }
                Said::TooLarge => {
                    assert_eq!(verdict, Verdict::Open, "{bits:?} {transition:?} in {marking:?}");
                    counts[1] += 1;
                }
                Said::No => assert_eq!(verdict, Verdict::Disabled, "{bits:?} {transition:?} in {marking:?}"),
            }
            if let Some(source) = undone(&marking, transition, &layout) {
                assert!(steps.can_undo(&state, number), "{bits:?} {transition:?} to {marking:?}");
                layout.pack(source.iter().map(|&count| count as i64), &mut other);
                undoable.push((other.clone(), hash(&source), all.len() as u32));
                counts[2] += 1;
            }
            all.push(&state);
            hashes.push(hash(&marking));
            actions.push(action);
        }
        // A transition that the net does not have.
        all.push(&state);
        hashes.push(0);
        actions.push(Action(net.transitions.len() as u32 + chance.below(3) as u32));
    }
    let mut targets = States::new(width);
    steps.do_each(&sources, &doable, &mut targets, by_definition);
    assert_eq!(targets.slots(), expected.slots(), "{bits:?}");
    let mut out = Undone::new(width);
    steps.undo_each(&all, &hashes, &actions, &mut out, by_definition);
    let found: Vec<_> = (0..out.states.len())
        .map(|index| (out.states.get(index).to_vec(), out.hashes[index], out.from[index]))
        .collect();
    assert_eq!(found, undoable, "{bits:?}");
    counts
}

#[test]
fn steps_agree_with_the_definition_in_fields_of_all_widths() {
    for bits in WIDTHS {
        let mut sums = [0; 3];
        for seed in 0..25 {
            let counts = agrees(bits, seed);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        assert!(sums.iter().all(|&sum| sum > 100), "{bits:?}: {sums:?}");
    }
}

#[test]
fn many_steps_of_which_one_cannot_be_taken_are_refused() {
    let layout = Layout::in_words([(2, 0); 2]);
    let arcs = |place| vec![Arc { place, weight: 1 }];
    let transition = Transition { inputs: arcs(0), outputs: arcs(1), ..Transition::default() };
    let place = Place { id: String::new(), name: String::new(), initial: 0 };
    let net = Net { places: vec![place; 2], transitions: vec![transition], ..Net::default() };
    let steps = Steps::under(&net, &layout, &Control::new()).expect("nobody asks it to stop");
    // One, three and no tokens in the first place, with room; then no room in the second.
    for (state, possible) in [(0b0001, true), (0b0111, true), (0b0100, false), (0b1101, false)] {
        let mut sources = States::new(Width::Fixed(1));
        let mut targets = sources.clone();
        [0b0010, state, 0b0010].iter().for_each(|&state| sources.push(&[state]));
        let run = || steps.do_each(&sources, &[Action(0); 3], &mut targets, |_, _| true);
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
        assert_eq!(refused, !possible, "{state:b}");
    }
}
