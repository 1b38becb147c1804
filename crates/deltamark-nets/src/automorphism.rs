//! Automorphisms of a net: permutations of its places that are the same net again.
//!
//! In: a net, a colour for each place, what ties places together, and what else must be kept. Out: some automorphisms that keep the initial marking. What stays
//! true: each of them was compared with the net, arc by arc, so how it was found needs no proof; that some are not found costs
//! states and nothing else.
//!
//! A permutation `σ` of the places is an *automorphism* if it takes the multiset of transitions (inputs, outputs, read and inhibitor arcs with
//! weights, and the priority) to itself, and each place to one of the same initial count. `σ` then takes each marking `m` to the marking
//! `σ(m)` with `σ(m)(σ(p)) = m(p)`, enabled transitions to enabled ones, steps to steps, and the initial marking to itself. So it is a
//! symmetry in the sense of [`quotient`](deltamark_core::quotient) (S1), whose representatives are reachable: `σ(m)` is where the image of a
//! path to `m` leads.
//!
//! # How they are found
//! By colour refinement (Weisfeiler and Leman 1968; as in McKay, Piperno, *Practical graph isomorphism II*, JSC 2014) of the graph of
//! places and transitions, in two copies. For two places `p` and `q` of one colour, `p` of the first copy and `q` of the second get a colour of
//! their own, and both copies are refined in step; if their colours differ, no automorphism takes `p` to `q`. Components are mostly
//! exchanged in pairs, so at first `q` and `p` get one too. Then all places that have the same colour in both copies are kept where they
//! are, if that is possible, which makes permutations that move as little as can be. What is left is mapped place by place, without
//! backtracking. The work is bounded.

use crate::{Net, Transition};
use deltamark_core::hash::mix;
use deltamark_core::{Control, Stop};
use std::collections::HashMap;

/// Where each place goes.
pub(crate) type Permutation = Vec<u32>;

/// Places that belong together, each with how it does, and how all of them do: beside transitions, what else a permutation may have to
/// keep.
pub(crate) type Tie = (u64, Vec<(u32, u64)>);
/// Arcs of a node: the other node, and a label.
type Ends = Vec<Vec<(u32, u64)>>;
/// What makes a transition: its priority, and its arcs, sorted.
type Signature = (u32, [Vec<(u32, u32)>; 4]);

/// The net as a graph.
struct Graph<'n> {
    net: &'n Net,
    of_places: Ends,
    of_transitions: Ends,
    /// How many transitions are alike.
    signatures: HashMap<Signature, u32>,
    /// The arcs that may still be looked at.
    work: u64,
    control: &'n Control,
}

/// A colour for each node.
#[derive(Clone)]
struct Colouring {
    places: Vec<u64>,
    transitions: Vec<u64>,
}

fn arcs(transition: &Transition) -> [&[crate::Arc]; 4] {
    [&transition.inputs, &transition.outputs, &transition.reads, &transition.inhibitors]
}

fn arcs_of(transition: &Transition) -> usize {
    arcs(transition).into_iter().map(<[crate::Arc]>::len).sum()
}

fn signature(transition: &Transition, to: impl Fn(u32) -> u32) -> Signature {
    let arcs = arcs(transition).map(|arcs| {
        let mut arcs: Vec<(u32, u32)> = arcs.iter().map(|arc| (to(arc.place), arc.weight)).collect();
        arcs.sort_unstable();
        arcs
    });
    (transition.priority, arcs)
}

impl<'n> Graph<'n> {
    fn new(net: &'n Net, ties: &[Tie], work: u64, control: &'n Control) -> Self {
        let mut of_places: Ends = vec![Vec::new(); net.places.len()];
        let mut of_transitions: Ends = vec![Vec::new(); net.transitions.len()];
        let mut signatures = HashMap::new();
        for (number, transition) in net.transitions.iter().enumerate() {
            for (kind, arcs) in arcs(transition).into_iter().enumerate() {
                for arc in arcs {
                    let label = mix((kind as u64) << 32 | u64::from(arc.weight));
                    of_places[arc.place as usize].push((number as u32, label));
                    of_transitions[number].push((arc.place, label));
                }
            }
            *signatures.entry(signature(transition, |place| place)).or_insert(0) += 1;
        }
        for (number, (_, tied)) in (net.transitions.len() as u32..).zip(ties) {
            tied.iter().for_each(|&(place, label)| of_places[place as usize].push((number, label)));
            of_transitions.push(tied.clone());
        }
        Graph { net, of_places, of_transitions, signatures, work, control }
    }

    /// One round; `None` if too much work was done, or the run must end.
    fn round(&mut self, colours: &mut Colouring) -> Option<()> {
        if self.control.ask().is_err() {
            self.work = 0;
        }
        let sum = |of: &Vec<(u32, u64)>, others: &[u64]| {
            of.iter().fold(0u64, |sum, &(other, label)| sum.wrapping_add(mix(label ^ others[other as usize])))
        };
        let mut arcs = 0;
        for (colour, of) in colours.transitions.iter_mut().zip(&self.of_transitions) {
            *colour = mix(*colour ^ sum(of, &colours.places).rotate_left(17));
            arcs += of.len() as u64;
        }
        for (colour, of) in colours.places.iter_mut().zip(&self.of_places) {
            *colour = mix(*colour ^ sum(of, &colours.transitions).rotate_left(17));
        }
        let work = self.work.checked_sub(2 * arcs + colours.places.len() as u64);
        self.work = work.unwrap_or(0);
        work.map(drop)
    }

    /// Refines two colourings in step. Whether they are alike; `None` if too much work was done.
    fn refine(&mut self, one: &mut Colouring, other: &mut Colouring) -> Option<bool> {
        let mut count = 0;
        loop {
            let [first, second] = [&*one, &*other].map(|colours| sorted(&colours.places));
            if first != second {
                return Some(false);
            }
            let now = distinct(&first);
            if now == count || now == first.len() {
                // Once more, since transitions may distinguish what places do not.
                let [first, second] = [&*one, &*other].map(|colours| sorted(&colours.transitions));
                return Some(now == self.net.places.len() || first == second);
            }
            count = now;
            self.round(one)?;
            self.round(other)?;
        }
    }

    /// A permutation that takes `from` to `to`, and `to` back, if it is to `exchange` them; `None` if none was found.
    fn search(&mut self, base: &Colouring, from: usize, to: usize, exchange: bool) -> Option<Permutation> {
        let (mut one, mut other) = (base.clone(), base.clone());
        mark(&mut one, from, 1);
        mark(&mut other, to, 1);
        if exchange {
            mark(&mut one, to, 2);
            mark(&mut other, from, 2);
        }
        if !self.refine(&mut one, &mut other)? {
            return None;
        }
        // All that can stay.
        let (mut kept, mut also) = (one.clone(), other.clone());
        for place in 0..one.places.len() {
            if one.places[place] == other.places[place] {
                mark(&mut kept, place, 3 + place as u64);
                mark(&mut also, place, 3 + place as u64);
            }
        }
        if self.refine(&mut kept, &mut also)? {
            (one, other) = (kept, also);
        }
        loop {
            let order = by_colour(&one.places);
            let class = order.chunk_by(|&a, &b| one.places[a] == one.places[b]).find(|class| class.len() > 1);
            let Some(&place) = class.and_then(|class| class.first()) else { break };
            let same = |candidate: usize| other.places[candidate] == one.places[place];
            let target = if same(place) { Some(place) } else { (0..other.places.len()).find(|&place| same(place)) };
            mark(&mut one, place, 1);
            mark(&mut other, target?, 1);
            if !self.refine(&mut one, &mut other)? {
                return None;
            }
        }
        let targets: HashMap<u64, u32> = (0..).zip(&other.places).map(|(place, &colour)| (colour, place)).collect();
        let found: Option<Permutation> = one.places.iter().map(|colour| targets.get(colour).copied()).collect();
        found.filter(|found| self.is_automorphism(found))
    }

    /// Whether it is one: this does not rely on how it was found.
    fn is_automorphism(&self, to: &[u32]) -> bool {
        let mut hit = vec![false; to.len()];
        let permutes = to.iter().all(|&place| !std::mem::replace(&mut hit[place as usize], true));
        let initial = |place: usize| self.net.places[place].initial;
        // A permutation of places takes different transitions to different ones, so it suffices to compare how many there are of each.
        permutes
            && (0..to.len()).all(|place| initial(place) == initial(to[place] as usize))
            && self.net.transitions.iter().all(|transition| {
                let moved = arcs(transition).into_iter().flatten().any(|arc| to[arc.place as usize] != arc.place);
                let count = |signature: Signature| self.signatures.get(&signature);
                !moved
                    || count(signature(transition, |place| to[place as usize]))
                        == count(signature(transition, |place| place))
            })
    }
}

fn mark(colours: &mut Colouring, place: usize, mark: u64) {
    colours.places[place] = mix(colours.places[place] ^ mix(mark));
}

fn sorted(colours: &[u64]) -> Vec<u64> {
    let mut sorted = colours.to_vec();
    sorted.sort_unstable();
    sorted
}

fn distinct(sorted: &[u64]) -> usize {
    sorted.chunk_by(|one, other| one == other).count()
}

/// The places of each colour contiguous, in their own order.
pub(crate) fn by_colour(colours: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..colours.len()).collect();
    order.sort_by_key(|&place| colours[place]);
    order
}

/// Some automorphisms, and the order of places in which those that some of them may exchange are contiguous.
pub(crate) struct Found {
    pub automorphisms: Vec<Permutation>,
    pub order: Vec<usize>,
}

/// Looks for automorphisms of a net that take places to places of the same colour and that `keeps` accepts.
/// `work` is how many arcs may be looked at.
pub(crate) fn find(
    net: &Net,
    colours: &[u64],
    ties: &[Tie],
    keeps: &dyn Fn(&[u32]) -> bool,
    work: u64,
    control: &Control,
) -> Result<Found, Stop> {
    let tied = ties.iter().map(|(_, tied)| tied.len()).sum::<usize>();
    let arcs = net.transitions.iter().map(arcs_of).sum::<usize>() + tied;
    // Ends of both sides and signatures; and the colourings.
    control.ask_for(64 * arcs as u64 + 256 * (net.places.len() + net.transitions.len()) as u64)?;
    let mut graph = Graph::new(net, ties, work, control);
    let places = net.places.iter().zip(colours).map(|(place, &colour)| mix(colour ^ mix(place.initial.into())));
    let transitions = net.transitions.iter().map(|transition| mix(transition.priority.into()));
    let transitions = transitions.chain(ties.iter().map(|(kind, _)| mix(kind ^ 0x71e)));
    let mut base = Colouring { places: places.collect(), transitions: transitions.collect() };
    let mut copy = base.clone();
    let mut automorphisms: Vec<Permutation> = Vec::new();
    let refined = graph.refine(&mut base, &mut copy);
    let order = by_colour(&base.places);
    control.ask()?;
    if refined.is_none() {
        return Ok(Found { automorphisms, order });
    }
    let mut changing = vec![false; net.places.len()];
    for transition in &net.transitions {
        net.effect(transition).iter().for_each(|&(place, _)| changing[place as usize] = true);
    }
    // Each place is as far as is known in the orbit of the one that it leads to. Those with the same arcs have the same counts always, so
    // nothing is gained by exchanging them. (A permutation takes such places to others in their order.)
    let mut orbit: Vec<usize> = (0..net.places.len()).collect();
    let mut alike: HashMap<_, usize> = HashMap::new();
    for (place, of) in graph.of_places.iter().enumerate() {
        orbit[place] = *alike.entry((base.places[place], of.as_slice())).or_insert(place);
    }
    drop(alike);
    'classes: for class in order.chunk_by(|&one, &other| base.places[one] == base.places[other]) {
        // Where nothing happens, nothing is gained.
        if !changing[class[0]] {
            continue;
        }
        for (number, &to) in class.iter().enumerate() {
            for &from in &class[..number] {
                control.ask()?;
                if root(&orbit, from) == root(&orbit, to) {
                    break;
                }
                // Of each orbit one is tried.
                if root(&orbit, from) != from {
                    continue;
                }
                if graph.work == 0 {
                    break 'classes;
                }
                let found = [true, false].into_iter().find_map(|exchange| graph.search(&base, from, to, exchange));
                let Some(found) = found.filter(|found| keeps(found)) else { continue };
                for (place, &to) in found.iter().enumerate() {
                    let (one, other) = (root(&orbit, place), root(&orbit, to as usize));
                    orbit[one.max(other)] = one.min(other);
                }
                control.ask_for(8 * found.len() as u64)?;
                automorphisms.push(found);
            }
        }
    }
    Ok(Found { automorphisms, order })
}

fn root(orbit: &[usize], mut place: usize) -> usize {
    while orbit[place] != place {
        place = orbit[place];
    }
    place
}

/// The permutation that does first `one`, then `other`.
pub(crate) fn after(one: &[u32], other: &[u32]) -> Permutation {
    one.iter().map(|&place| other[place as usize]).collect()
}
