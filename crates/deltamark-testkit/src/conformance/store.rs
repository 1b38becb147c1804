//! What every store promises.
//!
//! In: a function that makes the store for a system within a budget. Out: nothing, or a
//! panic that names the system and the promise broken. What stays true: a state is
//! only ever inserted with an arrival that is true (its parent is in the store, under
//! that id), so stores that reconstruct states are tested like all others; and a store
//! that says it may omit states is only held to what it still promises.

use crate::conformance::storing::{End, Storing};
use crate::conformance::threads;
use crate::explore;
use crate::random::{RandomGraph, Rng};
use crate::systems::{Counters, Still, Workers};
use deltamark_core::{Budget, Guarantee, Order, Store, System, Width};
use std::sync::Arc;

/// Makes a store for a system, within a budget.
pub type Make<'m> = dyn for<'a> Fn(&'a dyn System, Arc<Budget>) -> Box<dyn Store + 'a> + Sync + 'm;

/// Checks a store that was made for states in this order on all systems of the kit: alone and
/// in batches, growing, with the budget forced low, over recodings, and from several threads;
/// where states come level by level, in batches and from one thread.
pub fn check_store(order: Order, make: impl for<'a> Fn(&'a dyn System, Arc<Budget>) -> Box<dyn Store + 'a> + Sync) {
    let make: &Make = &make;
    let ways = Way::of(order);
    empty(make);
    for (label, fresh) in small_systems() {
        all_of_it(make, ways, &label, &*fresh);
    }
    for (label, system) in middling_systems() {
        let held = growth(make, ways[0], &label, &*system);
        low_budgets(make, ways, &label, &*system, held);
    }
    recoding_without_room(make, ways[0]);
    if order == Order::Any {
        for (label, system) in threaded_systems() {
            threads::check(make, &label, &*system);
        }
    }
    // The longest last: what is wrong shows early.
    for (label, system) in large_systems() {
        let held = growth(make, ways[0], &label, &*system);
        one_budget(make, &label, &*system, held / 3, held, ways[ways.len() - 1]);
    }
}

type Named = (String, Box<dyn System>);

/// Makes a system anew, because a layout that has widened stays wide.
type Fresh = dyn Fn() -> Box<dyn System>;

fn small_systems() -> Vec<(String, Box<Fresh>)> {
    let mut systems: Vec<(String, Box<Fresh>)> = vec![
        ("still".into(), Box::new(|| Box::new(Still))),
        ("workers 2, 1, 1".into(), Box::new(|| Box::new(Workers::new(2, 1, 1)))),
        ("workers 3, 2, 1".into(), Box::new(|| Box::new(Workers::new(3, 2, 1)))),
        ("counters 3, 12".into(), Box::new(|| Box::new(Counters::new(3, 12)))),
        ("counters 12, 4".into(), Box::new(|| Box::new(Counters::new(12, 4)))),
    ];
    for seed in 0..6 {
        systems.push((format!("random graph {seed}"), Box::new(move || Box::new(RandomGraph::new(seed, 700)))));
    }
    systems
}

/// Systems with more than 100,000 states: one of fixed width, one of varying.
fn large_systems() -> Vec<Named> {
    let graph = |width| (format!("large graph, {width:?}"), Box::new(RandomGraph::of_width(1, width, 130_000)) as _);
    vec![graph(Width::Fixed(3)), graph(Width::Varies)]
}

/// Systems with some thousand states, of both kinds.
fn middling_systems() -> Vec<Named> {
    let graph = |width| (format!("graph, {width:?}"), Box::new(RandomGraph::of_width(2, width, 9_000)) as _);
    vec![graph(Width::Fixed(2)), graph(Width::Varies)]
}

fn threaded_systems() -> Vec<Named> {
    vec![
        ("workers 2, 3, 2".into(), Box::new(Workers::new(2, 3, 2))),
        ("counters 4, 12".into(), Box::new(Counters::new(4, 12))),
        ("random graph 11".into(), Box::new(RandomGraph::new(11, 8_000))),
    ]
}

/// A store in which nothing is.
fn empty(make: &Make) {
    let system = Workers::new(2, 1, 1);
    let storing = Storing::new(make, "empty store", &system, Budget::unlimited());
    storing.nothing_is_there();
    storing.dropped();
}

/// How states go in.
#[derive(Clone, Copy, Debug)]
enum Way {
    OneByOne,
    InBatches,
    ByLevels,
}

impl Way {
    /// The ways for a store that was made for this order.
    fn of(order: Order) -> &'static [Way] {
        match order {
            Order::Levels => &[Way::ByLevels],
            Order::Any => &[Way::OneByOne, Way::InBatches],
        }
    }

    fn explore(self, storing: &mut Storing<'_>, seed: u64) -> End {
        match self {
            Way::OneByOne => storing.one_by_one(&mut Rng::new(seed)),
            Way::InBatches => storing.in_batches(&mut Rng::new(seed)),
            Way::ByLevels => storing.by_levels(&mut Rng::new(seed)),
        }
    }
}

/// Everything goes in, in random order and in batches.
fn all_of_it(make: &Make, ways: &[Way], label: &str, fresh: &Fresh) {
    let expected = explore(&*fresh()).states.len();
    for (seed, way) in (0..4).zip(ways.iter().cycle()) {
        let system = fresh();
        let mut storing = Storing::new(make, label, &*system, Budget::unlimited());
        let end = way.explore(&mut storing, seed);
        storing.is_complete(end, expected);
        storing.dropped();
    }
}

/// Many states go in; gives the bytes held at the end, as far as the budget knows.
fn growth(make: &Make, way: Way, label: &str, system: &dyn System) -> u64 {
    let mut storing = Storing::new(make, label, system, Budget::unlimited());
    let end = way.explore(&mut storing, 5);
    storing.is_complete(end, explore(system).states.len());
    let held = storing.held();
    storing.dropped();
    held
}

/// With less memory than it takes, the store says so and loses nothing.
fn low_budgets(make: &Make, ways: &[Way], label: &str, system: &dyn System, held: u64) {
    for limit in [0, 1, 5_000, held / 8, held / 3] {
        for &way in ways {
            one_budget(make, label, system, limit, held, way);
        }
    }
}

fn one_budget(make: &Make, label: &str, system: &dyn System, limit: u64, held: u64, way: Way) {
    // A store that takes no memory from the budget cannot run out of it.
    if held == 0 {
        return;
    }
    let label = format!("{label} with {limit} of {held} bytes, {way:?}");
    let mut storing = Storing::new(make, &label, system, Budget::new(limit));
    let end = way.explore(&mut storing, limit);
    let must_end = limit <= held / 8 && storing.exact();
    assert!(!must_end || end == End::Full, "{label}: a store that gets an eighth of its memory is full");
    storing.check_all();
    // What comes after is answered as well: there may be room for small things.
    if !matches!(way, Way::ByLevels) {
        storing.some_more(&mut Rng::new(limit));
        storing.check_all();
    }
    storing.dropped();
}

/// A store that has no room to recode says so and keeps its count.
fn recoding_without_room(make: &Make, way: Way) {
    let system = Counters::new(12, 4);
    let mut storing = Storing::new(make, "counters 12, 4, again", &system, Budget::unlimited());
    way.explore(&mut storing, 7);
    let held_at_widening = storing.held_at_widening.clone();
    assert!(held_at_widening.len() > 1, "the system widens");
    storing.dropped();
    for limit in held_at_widening {
        let system = Counters::new(12, 4);
        let mut storing = Storing::new(make, "counters 12, 4, no room", &system, Budget::new(limit.max(1)));
        let end = way.explore(&mut storing, 7);
        // States in the old layout can no longer be looked up, so only counts are checked.
        if end != End::NotRecoded {
            storing.check_all();
        }
        storing.check_counts();
        storing.dropped();
    }
}

/// Whether this store's answers are exact.
pub(crate) fn is_exact(store: &dyn Store) -> bool {
    match store.guarantee() {
        Guarantee::Exact => true,
        Guarantee::Omission(chance) => {
            assert!((0.0..=1.0).contains(&chance), "a probability lies between 0 and 1, {chance} does not");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_systems_are_large() {
        for (label, system) in large_systems() {
            assert!(explore(&*system).states.len() > 100_000, "{label}");
        }
    }
}
