//! The symmetry of a net: of all markings that its automorphisms take to each other, one representative.
//!
//! In: a net's system, and the properties of a run. Out: a [`Symmetry`] for the quotient of the system. What stays true: a marking is only
//! ever replaced by its image under automorphisms that keep the initial marking and everything that is asked, so
//! it is a symmetry in the sense of [`quotient`](deltamark_core::quotient), S1 by the head of `automorphism.rs` and S2 because the
//! formula of each property is compared with its image.
//!
//! From Starke, *Reachability analysis of Petri nets using symmetries*, 1991; Schmidt, *How to calculate symmetries of Petri nets*, Acta
//! Informatica 2000. They take representatives from a strong generating set, and an orbit may have several; here all
//! automorphisms of a group are listed. Of those that were found as many are taken, one by one, as generate a group of at most
//! [`MOST_LISTED`]: a subgroup is a symmetry too, with more orbits.
//!
//! # The representative
//! Markings are compared place by place, in an order in which places that may be exchanged are contiguous. As long as some automorphism of the group makes the
//! marking less, it is applied. That ends, since there are finitely many images of a marking, and it ends in the least of them, since each is the image of
//! each other one: so it is the same for all of an orbit, as lifting traces needs it, and there are as many as orbits of that group.
//!
//! # Widening
//! The image of a reachable marking is reachable, so a field that it does not fit in would have been widened sooner or later: it is
//! noted, and the system widens now.

use crate::NetSystem;
use crate::automorphism::{Permutation, Tie, after, find};
use deltamark_core::hash::mix;
use deltamark_core::{Control, Formula, Goal, Observable, Property, Scratch, Slot, Stop, Symmetry, Unnamed};
use std::cmp::Ordering;
use std::collections::HashSet;

/// The most automorphisms of a group that is listed as a whole.
pub const MOST_LISTED: usize = 1_024;
/// The most automorphisms that generate one.
const MOST_GENERATORS: usize = 64;
/// The most places that the automorphisms of a group have, all together.
const MOST_MOVED: usize = 1 << 20;

/// A net's automorphisms, as a symmetry of its system.
pub struct NetSymmetry<'n> {
    system: &'n NetSystem,
    /// For each automorphism the places that it moves, each with the place whose count it gets, in the order in which markings are compared.
    moves: Vec<Vec<(u32, u32)>>,
    whole: bool,
}

impl<'n> NetSymmetry<'n> {
    /// The symmetry of a net that keeps all these properties; or, as a sentence without a full stop, why there is none. `work` is how many arcs may be looked
    /// at.
    pub fn new(
        system: &'n NetSystem,
        properties: &[Property],
        work: u64,
        control: &Control,
    ) -> Result<Result<Self, String>, Stop> {
        let net = system.net();
        if net.has_priorities() {
            return Ok(Err("some transitions of this net have priority over others".into()));
        }
        let mut colours = vec![0u64; net.places.len()];
        let (mut formulas, mut ties) = (Vec::new(), Vec::new());
        for property in properties {
            let (wanted, predicate) = match &property.goal {
                Goal::DeadlockFree | Goal::FaultFree => continue,
                Goal::Invariant(predicate) => (false, predicate),
                Goal::Reachable(predicate) => (true, predicate),
                _ => return Ok(Err(format!("it is not known what `{}` depends on", property.name))),
            };
            let Some(formula) = predicate.formula(wanted) else {
                return Ok(Err(format!("it is not known what `{}` depends on", property.name)));
            };
            tie(system, &formula, &mut colours, &mut ties);
            formulas.push(formula);
        }
        let before: Vec<String> = formulas.iter().map(|formula| written(formula, &|place| place)).collect();
        let keeps = |to: &[u32]| {
            let image = |formula| written(formula, &|place| to.get(place as usize).copied().unwrap_or(place));
            formulas.iter().map(image).eq(before.iter().cloned())
        };
        let found = find(net, &colours, &ties, &keeps, work, control)?;
        if found.automorphisms.is_empty() {
            return Ok(Err("no automorphism of the net was found that keeps what is asked".into()));
        }
        let (list, whole) = listed(found.automorphisms, control)?;
        if list.is_empty() {
            return Ok(Err("the automorphisms of the net that were found are too many".into()));
        }
        let mut moves = Vec::with_capacity(list.len());
        for to in list {
            control.ask_for(16 * to.len() as u64)?;
            let mut from = vec![0; to.len()];
            to.iter().enumerate().for_each(|(place, &to)| from[to as usize] = place as u32);
            let moved =
                found.order.iter().map(|&place| (place as u32, from[place])).filter(|(place, from)| place != from);
            moves.push(moved.collect());
        }
        Ok(Ok(NetSymmetry { system, moves, whole }))
    }

    /// How many automorphisms are tried on each marking.
    pub fn automorphisms(&self) -> usize {
        self.moves.len()
    }

    /// Whether they are all that those found generate.
    pub fn is_whole(&self) -> bool {
        self.whole
    }
}

/// Gives places other colours if a formula tells them apart by how it uses them, and returns those that it uses, each with how. Places that are used
/// together are tied.
fn tie(system: &NetSystem, formula: &Formula, colours: &mut [u64], ties: &mut Vec<Tie>) -> Vec<(u32, u64)> {
    let places = colours.len() as u32;
    // What is more than a sum of counts fixes all places that it depends on.
    let fix = |observables: &mut dyn Iterator<Item = Observable>, colours: &mut [u64]| {
        for place in observables.flat_map(|observable| system.places_of(observable)) {
            colours[place as usize] = mix(colours[place as usize] ^ mix(1 + u64::from(place)));
        }
        Vec::new()
    };
    let (kind, used): (u64, Vec<(u32, u64)>) = match formula {
        Formula::AtLeast(terms, least) if terms.iter().all(|term| term.0.index < places) => {
            let kind = mix(*least as u64 ^ mix(terms.len() as u64));
            let used = |&(observable, factor): &(Observable, i64)| (observable.index, mix(factor as u64 ^ kind));
            (kind, terms.iter().map(used).collect())
        }
        Formula::AtLeast(terms, _) => return fix(&mut terms.iter().map(|term| term.0), colours),
        Formula::Is(observable, _) => return fix(&mut std::iter::once(*observable), colours),
        Formula::Of(observables) => return fix(&mut observables.iter().copied(), colours),
        Formula::All(parts) | Formula::Some(parts) => {
            let used = parts.iter().flat_map(|part| tie(system, part, colours, ties)).collect();
            (mix((1 + u64::from(matches!(formula, Formula::All(_)))) ^ mix(parts.len() as u64)), used)
        }
        Formula::Deadlock(_) => return Vec::new(),
    };
    if !used.is_empty() {
        ties.push((kind, used.clone()));
    }
    used
}

/// A formula with its places mapped, such that it is written alike if it differs by the order of parts and terms alone. Transitions are not mapped: all places that
/// they depend on are fixed.
fn written(formula: &Formula, to: &dyn Fn(u32) -> u32) -> String {
    let parts = |name: &str, parts: &[Formula]| {
        let mut parts: Vec<String> = parts.iter().map(|part| written(part, to)).collect();
        parts.sort_unstable();
        format!("{name}({})", parts.join(" "))
    };
    match formula {
        Formula::All(all) => parts("all", all),
        Formula::Some(some) => parts("some", some),
        Formula::AtLeast(terms, least) => {
            let mut terms: Vec<(u32, i64)> = terms.iter().map(|term| (to(term.0.index), term.1)).collect();
            terms.sort_unstable();
            format!("{terms:?}>={least}")
        }
        other => format!("{other:?}"),
    }
}

/// The group that these generate, without the identity, or a part of it that is a group and small enough; and whether it is all.
fn listed(generators: Vec<Permutation>, control: &Control) -> Result<(Vec<Permutation>, bool), Stop> {
    let places = generators[0].len();
    let most = MOST_LISTED.min(MOST_MOVED / places.max(1)).max(2);
    // The list, the set in which new ones are looked up, and the list before.
    control.ask_for(12 * (most * places) as u64)?;
    let identity: Permutation = (0..places as u32).collect();
    let (mut group, mut used, mut whole) = (vec![identity], Vec::new(), true);
    for (number, generator) in generators.into_iter().enumerate() {
        if number == MOST_GENERATORS {
            return Ok((group.split_off(1), false));
        }
        used.push(generator);
        match generated(&group, &used, most, control)? {
            Some(larger) => group = larger,
            None => {
                used.pop();
                whole = false;
            }
        }
    }
    Ok((group.split_off(1), whole))
}

/// The group that these generate, which has this part, the identity first; `None` if there are more.
fn generated(
    part: &[Permutation],
    generators: &[Permutation],
    most: usize,
    control: &Control,
) -> Result<Option<Vec<Permutation>>, Stop> {
    let mut seen: HashSet<Permutation> = part.iter().cloned().collect();
    let mut list = part.to_vec();
    let mut next = 0;
    while next < list.len() {
        control.ask()?;
        for generator in generators {
            let made = after(&list[next], generator);
            if seen.insert(made.clone()) {
                if list.len() == most {
                    return Ok(None);
                }
                list.push(made);
            }
        }
        next += 1;
    }
    Ok(Some(list))
}

impl Symmetry for NetSymmetry<'_> {
    fn canonise(&self, scratch: &mut Scratch, state: &mut Vec<Slot>) -> Result<(), Unnamed> {
        let layout = &self.system.compiled_of(scratch).layout;
        let mut counts: Vec<i64> = layout.unpack(state).collect();
        let mut moved: Vec<i64> = Vec::new();
        let mut changed = false;
        loop {
            let mut less = false;
            for moves in &self.moves {
                let order = moves.iter().map(|&(place, from)| counts[from as usize].cmp(&counts[place as usize]));
                if order.into_iter().find(|order| order.is_ne()) == Some(Ordering::Less) {
                    moved.clear();
                    moved.extend(moves.iter().map(|&(_, from)| counts[from as usize]));
                    moves.iter().zip(&moved).for_each(|(&(place, _), &count)| counts[place as usize] = count);
                    less = true;
                }
            }
            changed |= less;
            if !less {
                break;
            }
        }
        if !changed {
            return Ok(());
        }
        let unfit = |(place, &count): (usize, &i64)| {
            (count > layout.fields[place].most()).then_some((place as u32, count as u64))
        };
        let overflows: Vec<(u32, u64)> = counts.iter().enumerate().filter_map(unfit).collect();
        if !overflows.is_empty() {
            self.system.note(overflows);
            return Err(Unnamed::Widen);
        }
        layout.pack(counts.into_iter(), state);
        Ok(())
    }
}
