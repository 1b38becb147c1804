//! Orders the places of an unfolded net so that places that change together are adjacent.
//!
//! In: the hyperedges: for each transition the places it concerns, each once. Out: a permutation of the
//! places. What stays true: every place occurs once; a poor order costs memory and nothing else.
//!
//! # How
//! Recursive bisection: the places are cut in two so that few transitions concern both halves, and the halves
//! again, down to what fits in a slot. A cut is found as in C. M. Fiduccia and R. M. Mattheyses, *A
//! Linear-Time Heuristic for Improving Network Partitions* (1982): from several starts, places change sides
//! one by one, each time the one of largest gain, all of them once; the best cut of the pass starts the next.
//! A transition of many places has a small weight: it is cut anyway.
//!
//! ```text
//! start        one place, then repeatedly the place most strongly connected to those taken
//! moves        the best place of the larger side ─▶ the other; gains of its neighbours are updated
//! sizes        multiples of a slot, as the stores cut
//! ```

use deltamark_core::Control;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Places in a slot, one bit each.
pub(crate) const SLOT: usize = 32;
/// Starts of a cut.
const BEGINNINGS: usize = 4;
/// The maximum number of passes, in each of which every place changes sides once.
const PASSES: usize = 6;
/// The weight of a transition of two places; one of more places weighs less.
const WEIGHT: i64 = 5040;

/// The places in their new order. Each transition lists a place once. If `control` stops it, the rest keeps
/// its order.
pub(crate) fn arrange(places: usize, transitions: &[Vec<u32>], control: &Control) -> Vec<u32> {
    let mut order: Vec<u32> = (0..places as u32).collect();
    let transitions = transitions.iter().filter(|places| places.len() > 1).cloned().collect();
    cut(&mut order, transitions, &mut vec![0; places], control);
    order
}

/// The hypergraph to cut: some of the places, and the transitions that concern several of them.
struct Graph {
    /// The places of each transition, by position.
    edges: Vec<Vec<u32>>,
    weights: Vec<i64>,
    /// The transitions of each place.
    of: Vec<Vec<u32>>,
}

/// Reorders `places`; `transitions` holds those of them that each transition concerns. `on` is scratch for
/// the side of each place.
fn cut(places: &mut [u32], transitions: Vec<Vec<u32>>, on: &mut [u8], control: &Control) {
    let slots = places.len().div_ceil(SLOT);
    if slots < 2 || control.stop().is_some() {
        return;
    }
    let left = slots / 2 * SLOT;
    let graph = Graph::new(places, &transitions);
    let sides = graph.best(left, control);
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for (&place, &side) in places.iter().zip(&sides) {
        on[place as usize] = side;
        if side == 0 {
            one.push(place)
        } else {
            other.push(place)
        };
    }
    let split = |side: u8| -> Vec<Vec<u32>> {
        let keep = |places: &Vec<u32>| -> Vec<u32> {
            places.iter().copied().filter(|&place| on[place as usize] == side).collect()
        };
        transitions.iter().map(keep).filter(|places| places.len() > 1).collect()
    };
    let (of_one, of_other) = (split(0), split(1));
    drop(transitions);
    places[..one.len()].copy_from_slice(&one);
    places[one.len()..].copy_from_slice(&other);
    let (one, other) = places.split_at_mut(one.len());
    cut(one, of_one, on, control);
    cut(other, of_other, on, control);
}

impl Graph {
    /// The graph of these places.
    fn new(places: &[u32], transitions: &[Vec<u32>]) -> Self {
        let position: HashMap<u32, u32> = places.iter().copied().zip(0..).collect();
        let edges: Vec<Vec<u32>> =
            transitions.iter().map(|places| places.iter().map(|place| position[place]).collect()).collect();
        let weights = edges.iter().map(|places| (WEIGHT / (places.len() as i64 - 1).max(1)).max(1)).collect();
        let mut of = vec![Vec::new(); places.len()];
        for (number, places) in (0..).zip(&edges) {
            places.iter().for_each(|&place| of[place as usize].push(number));
        }
        Graph { edges, weights, of }
    }

    /// The side of each place in the best cut found, `left` of them on side 0.
    fn best(&self, left: usize, control: &Control) -> Vec<u8> {
        let places = self.of.len();
        let mut best: Option<(i64, Vec<u8>)> = None;
        for beginning in 0..=BEGINNINGS {
            let mut sides = match beginning.checked_sub(1) {
                // In their current order.
                None => (0..places).map(|at| u8::from(at >= left)).collect(),
                Some(number) => self.grown(number * (places - 1) / (BEGINNINGS - 1), left),
            };
            for _ in 0..PASSES {
                if control.stop().is_some() || !self.pass(&mut sides) {
                    break;
                }
            }
            let cost = self.cost(&sides);
            if best.as_ref().is_none_or(|(known, _)| cost < *known) {
                best = Some((cost, sides));
            }
        }
        best.map_or_else(Vec::new, |(_, sides)| sides)
    }

    /// A side grown from one place by repeatedly adding the place most strongly connected to it.
    fn grown(&self, first: usize, left: usize) -> Vec<u8> {
        let mut sides = vec![1; self.of.len()];
        // The connection of each place to those taken, as a fraction of its connections to all places.
        let all: Vec<i64> =
            self.of.iter().map(|edges| edges.iter().map(|&edge| self.degree(edge)).sum::<i64>().max(1)).collect();
        let mut known = vec![0i64; self.of.len()];
        let mut heap = BinaryHeap::from([(i64::MAX, Reverse(first as u32))]);
        let mut rest = (0..self.of.len()).cycle().skip(first);
        let mut taken = 0;
        while taken < left {
            let place = match heap.pop() {
                Some((_, Reverse(place))) => place as usize,
                // The remaining places are not connected to it.
                None => match rest.find(|&place| sides[place] == 1) {
                    Some(place) => place,
                    None => break,
                },
            };
            if sides[place] == 0 {
                continue;
            }
            sides[place] = 0;
            taken += 1;
            for &edge in &self.of[place] {
                for &other in &self.edges[edge as usize] {
                    let other = other as usize;
                    if sides[other] == 1 {
                        known[other] += self.weights[edge as usize];
                        // Stale entries are smaller, so they are popped later, when the place is already
                        // taken.
                        heap.push((known[other] * 1_000_000 / all[other], Reverse(other as u32)));
                    }
                }
            }
        }
        sides
    }

    fn degree(&self, edge: u32) -> i64 {
        self.weights[edge as usize] * (self.edges[edge as usize].len() as i64 - 1)
    }

    /// The total weight of the transitions that concern both sides.
    fn cost(&self, sides: &[u8]) -> i64 {
        let cut = |places: &Vec<u32>| places.iter().any(|&place| sides[place as usize] != sides[places[0] as usize]);
        self.edges.iter().zip(&self.weights).filter(|(places, _)| cut(places)).map(|(_, weight)| weight).sum()
    }

    /// Moves every place once to the other side, alternating between the sides, and keeps the best cut of the
    /// pass. Returns whether it improved.
    fn pass(&self, sides: &mut [u8]) -> bool {
        let mut counts: Vec<[u32; 2]> = vec![[0; 2]; self.edges.len()];
        for (count, places) in counts.iter_mut().zip(&self.edges) {
            places.iter().for_each(|&place| count[usize::from(sides[place as usize])] += 1);
        }
        let gain = |place: usize, sides: &[u8], counts: &[[u32; 2]]| -> i64 {
            let from = usize::from(sides[place]);
            let of = |&edge: &u32| {
                let count = counts[edge as usize];
                let weight = self.weights[edge as usize];
                i64::from(count[from] == 1) * weight - i64::from(count[1 - from] == 0) * weight
            };
            self.of[place].iter().map(of).sum()
        };
        let mut gains: Vec<i64> = (0..sides.len()).map(|place| gain(place, sides, &counts)).collect();
        let mut heaps = [BinaryHeap::new(), BinaryHeap::new()];
        for (place, &gain) in gains.iter().enumerate() {
            heaps[usize::from(sides[place])].push((gain, place as u32));
        }
        let mut moved: Vec<u32> = Vec::new();
        let mut locked = vec![false; sides.len()];
        let (mut sum, mut best, mut kept) = (0, 0, 0);
        // A pair at a time, so that sizes do not change.
        'pairs: loop {
            for from in [0, 1] {
                let place = loop {
                    let Some((known, place)) = heaps[from].pop() else { break 'pairs };
                    if !locked[place as usize] && known == gains[place as usize] {
                        break place as usize;
                    }
                };
                locked[place] = true;
                sum += gains[place];
                moved.push(place as u32);
                sides[place] = 1 - sides[place];
                for &edge in &self.of[place] {
                    let count = &mut counts[edge as usize];
                    let before = *count;
                    count[from] -= 1;
                    count[1 - from] += 1;
                    // Gains of the others change only if a side has one place of the transition, or had none.
                    if before[from] > 2 && before[1 - from] > 1 {
                        continue;
                    }
                    for &other in &self.edges[edge as usize] {
                        let other = other as usize;
                        if !locked[other] {
                            let new = gain(other, sides, &counts);
                            if new != gains[other] {
                                gains[other] = new;
                                heaps[usize::from(sides[other])].push((new, other as u32));
                            }
                        }
                    }
                }
            }
            if sum > best {
                (best, kept) = (sum, moved.len());
            }
        }
        for &place in &moved[kept..] {
            sides[place as usize] = 1 - sides[place as usize];
        }
        best > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_together_stands_together() {
        // Sites of 32 places, listed by place and not by site; rings within them, and a link from site to site.
        let (sites, each) = (8, 32);
        let number = |site: usize, place: usize| (place * sites + site) as u32;
        let mut transitions = Vec::new();
        for site in 0..sites {
            transitions.extend((0..each).map(|place| vec![number(site, place), number(site, (place + 1) % each)]));
            transitions.extend((0..each).map(|place| vec![number(site, place), number(site, (place + 7) % each)]));
            transitions.push(vec![number(site, 0), number((site + 1) % sites, 1)]);
        }
        let order = arrange(sites * each, &transitions, &Control::new());
        for slot in order.chunks(each) {
            assert!(slot.iter().all(|place| *place as usize % sites == slot[0] as usize % sites), "{slot:?}");
        }
    }

    #[test]
    fn every_place_is_there_once() {
        for places in [0, 1, 31, 32, 33, 64, 65, 100, 500] {
            // Some places are isolated.
            let transitions: Vec<Vec<u32>> =
                (0..places / 2).map(|at| vec![at, at + places / 2]).chain([vec![]]).collect();
            let mut order = arrange(places as usize, &transitions, &Control::new());
            order.sort_unstable();
            assert_eq!(order, (0..places).collect::<Vec<_>>());
        }
    }
}
