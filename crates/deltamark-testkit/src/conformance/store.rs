//! The contract of stores.
//!
//! In: a function that makes the store for a system within a budget. Out: nothing, or a panic that names the
//! system and the promise broken. What stays true: a state is only ever inserted with a true arrival (its
//! parent is in the store, under that id), so stores that reconstruct states are tested like all others; and
//! a store that declares that it may omit states is only held to its remaining promises.

use crate::conformance::storing::{Storing, StoringEnd};
use crate::conformance::threads;
use crate::explore;
use crate::random::{RandomGraph, Rng};
use crate::systems::{Counters, Odometer, Stacks, Still, Workers};
use crate::wrappers::{Forward, PoorHash, Renamed};
use deltamark_core::{Budget, Guarantee, Order, Slot, Store, System, Width};
use std::sync::Arc;

/// Makes a store for a system, within a budget.
pub type Make<'m> = dyn for<'a> Fn(&'a dyn System, Arc<Budget>) -> Box<dyn Store + 'a> + Sync + 'm;

/// Checks a store made for states in this order on all systems of the kit: alone and in batches, growing,
/// with the budget forced low, over recodings, with hashes of few bits, and from several threads; for stores
/// made for levels, in batches and from one thread.
pub fn check_store(order: Order, make: impl for<'a> Fn(&'a dyn System, Arc<Budget>) -> Box<dyn Store + 'a> + Sync) {
    check(&make, order, Kit::all());
}

/// The same for a store that requires systems whose steps can be undone.
pub fn check_reversible_store(
    order: Order,
    make: impl for<'a> Fn(&'a dyn System, Arc<Budget>) -> Box<dyn Store + 'a> + Sync,
) {
    check(&make, order, Kit::reversible());
}

/// The same for a store that requires states of fixed width.
pub fn check_fixed_store(
    order: Order,
    make: impl for<'a> Fn(&'a dyn System, Arc<Budget>) -> Box<dyn Store + 'a> + Sync,
) {
    check(&make, order, Kit::fixed());
}

/// Checks a store made for any order on one system, from several threads at once, each of which inserts all
/// of its states: with unlimited memory, and with a quarter of what that takes.
pub fn check_threads(
    label: &str,
    system: &dyn System,
    make: impl for<'a> Fn(&'a dyn System, Arc<Budget>) -> Box<dyn Store + 'a> + Sync,
) {
    threads::check(&make, label, system);
}

fn check(make: &Make, order: Order, kit: Kit) {
    let ways = Way::of(order);
    empty(make);
    for (label, fresh) in kit.small {
        all_of_it(make, ways, &label, &*fresh);
    }
    for (label, system) in kit.middling {
        let held = growth(make, ways[0], &label, &*system);
        low_budgets(make, ways, &label, &*system, held);
        values_in_low_budgets(make, ways[0], &label, &*system, held);
    }
    recoding_without_room(make, ways[0]);
    if order == Order::Any {
        for (label, system) in kit.threaded {
            threads::check(make, &label, &*system);
        }
    }
    // The longest last: failures show early.
    for (label, system) in kit.large {
        let held = growth(make, ways[0], &label, &*system);
        one_budget(make, &label, &*system, held / 3, held, ways[ways.len() - 1]);
    }
}

type Named = (String, Box<dyn System>);

/// Creates a system anew, because a layout that has widened stays wide.
type Fresh = dyn Fn() -> Box<dyn System>;

/// The systems that a store is checked on.
struct Kit {
    /// Up to some hundred states each, most of them.
    small: Vec<(String, Box<Fresh>)>,
    /// Some thousand states: of fixed width and of varying.
    middling: Vec<Named>,
    threaded: Vec<Named>,
    /// More than 100,000 states, of fixed width and of varying.
    large: Vec<Named>,
}

impl Kit {
    fn all() -> Self {
        let mut middling = vec![graph(2, Width::Fixed(2), 9_000), graph(2, Width::Varies, 9_000)];
        middling.extend(undoable());
        Kit {
            small: small_systems(),
            middling,
            threaded: vec![
                ("workers 2, 3, 2".into(), Box::new(Workers::new(2, 3, 2))),
                ("counters 4, 12".into(), Box::new(Counters::new(4, 12))),
                ("random graph 11".into(), Box::new(RandomGraph::new(11, 8_000))),
            ],
            large: vec![graph(1, Width::Fixed(3), 130_000), graph(1, Width::Varies, 130_000)],
        }
    }

    /// Those of fixed width.
    fn fixed() -> Self {
        let mut kit = Kit::all();
        let fixed = |system: &dyn System| matches!(system.width(), Width::Fixed(_));
        kit.small.retain(|(_, fresh)| fixed(&*fresh()));
        for systems in [&mut kit.middling, &mut kit.threaded, &mut kit.large] {
            systems.retain(|(_, system)| fixed(&**system));
        }
        kit
    }

    /// Those whose steps can be undone.
    fn reversible() -> Self {
        let mut small = small_systems();
        small.retain(|(_, fresh)| fresh().reversible().is_some());
        Kit {
            small,
            middling: undoable(),
            threaded: vec![("counters 4, 12".into(), Box::new(Counters::new(4, 12))), loose(&[11, 12, 13])],
            large: vec![loose(&[47, 47, 48]), stacks(2, 5, 3)],
        }
    }
}

fn graph(seed: u64, width: Width, count: usize) -> Named {
    (format!("graph of {count}, {width:?}"), Box::new(RandomGraph::of_width(seed, width, count)))
}

fn loose(sizes: &[Slot]) -> Named {
    (format!("loose odometer {sizes:?}"), Box::new(Odometer::loose(sizes, 5)))
}

fn stacks(stacks: usize, height: usize, letters: Slot) -> Named {
    (format!("stacks {stacks}, {height}, {letters}"), Box::new(Stacks::new(stacks, height, letters)))
}

/// Some thousand states whose steps can be undone.
fn undoable() -> Vec<Named> {
    vec![loose(&[15, 14, 16]), stacks(3, 2, 3)]
}

fn small_systems() -> Vec<(String, Box<Fresh>)> {
    let mut systems: Vec<(String, Box<Fresh>)> = Vec::new();
    let mut add = |label: String, fresh: Box<Fresh>| systems.push((label, fresh));
    add("still".into(), Box::new(|| Box::new(Still)));
    add("workers 2, 1, 1".into(), Box::new(|| Box::new(Workers::new(2, 1, 1))));
    add("workers 3, 2, 1".into(), Box::new(|| Box::new(Workers::new(3, 2, 1))));
    add("counters 3, 12".into(), Box::new(|| Box::new(Counters::new(3, 12))));
    add("counters 12, 4".into(), Box::new(|| Box::new(Counters::new(12, 4))));
    add("odometer 11, 9, 8".into(), Box::new(|| Box::new(Odometer::new(&[11, 9, 8], 1))));
    add("stacks 2, 4, 2".into(), Box::new(|| Box::new(Stacks::new(2, 4, 2))));
    add("counters 3, 10, forward".into(), Box::new(|| Box::new(Forward::new(Box::new(Counters::new(3, 10))))));
    add("odometer, renamed".into(), Box::new(|| Box::new(Renamed::new(Box::new(Odometer::new(&[4, 5, 6], 3))))));
    for seed in 0..6 {
        add(format!("random graph {seed}"), Box::new(move || Box::new(RandomGraph::new(seed, 700))));
    }
    for seed in 0..3 {
        add(format!("random odometer {seed}"), Box::new(move || Box::new(Odometer::random(seed, 300))));
        add(format!("random stacks {seed}"), Box::new(move || Box::new(Stacks::random(seed, 300))));
        let hidden = move || Box::new(Forward::new(Box::new(Odometer::random(seed, 200)))) as Box<dyn System>;
        add(format!("random odometer {seed}, forward"), Box::new(hidden));
    }
    // If nearly all hashes are equal each look-up finds many states, so there are few.
    for (bits, most) in [(2, 100), (6, 400)] {
        let mut add_poor = |label: &str, inside: fn(usize) -> Box<dyn System>| {
            let fresh = move || Box::new(PoorHash::new(inside(most), bits)) as Box<dyn System>;
            add(format!("{label}, {most} states, hash of {bits} bits"), Box::new(fresh));
        };
        add_poor("workers", |most| Box::new(Workers::new(2, 1, if most > 200 { 2 } else { 1 })));
        add_poor("counters", |most| Box::new(Counters::new(3, if most > 200 { 10 } else { 5 })));
        add_poor("graph", |most| Box::new(RandomGraph::of_width(7, Width::Fixed(3), most)));
        add_poor("varying graph", |most| Box::new(RandomGraph::of_width(8, Width::Varies, most)));
        add_poor("odometer", |most| Box::new(Odometer::new(&[5, 4, most as u32 / 20], 3)));
        add_poor("stacks", |most| Box::new(Stacks::random(4, most)));
        add_poor("forward odometer", |most| {
            Box::new(Forward::new(Box::new(Odometer::new(&[4, 5, most as u32 / 20], 3))))
        });
    }
    systems
}

/// An empty store.
fn empty(make: &Make) {
    let system = Odometer::new(&[3, 3], 1);
    let storing = Storing::new(make, "empty store", &system, Budget::unlimited());
    storing.nothing_is_there();
    storing.dropped();
}

/// How states are inserted.
#[derive(Clone, Copy, Debug)]
enum Way {
    OneByOne,
    InBatches,
    ByLevels,
}

impl Way {
    /// The ways for a store made for this order.
    fn of(order: Order) -> &'static [Way] {
        match order {
            Order::Levels => &[Way::ByLevels],
            Order::Any => &[Way::OneByOne, Way::InBatches],
        }
    }

    fn explore(self, storing: &mut Storing<'_>, seed: u64) -> StoringEnd {
        match self {
            Way::OneByOne => storing.one_by_one(&mut Rng::new(seed)),
            Way::InBatches => storing.in_batches(&mut Rng::new(seed)),
            Way::ByLevels => storing.by_levels(&mut Rng::new(seed)),
        }
    }
}

/// Inserts everything, in random order and in batches.
fn all_of_it(make: &Make, ways: &[Way], label: &str, fresh: &Fresh) {
    let expected = explore(&*fresh()).states.len();
    for (seed, way) in (0..4).zip(ways.iter().cycle()) {
        let system = fresh();
        let mut storing = Storing::new(make, label, &*system, Budget::unlimited());
        if seed >= 2 {
            storing = storing.with_values();
        }
        let end = way.explore(&mut storing, seed);
        storing.is_complete(end, expected);
        storing.dropped();
    }
}

/// Inserts many states; returns the bytes held at the end, according to the budget.
fn growth(make: &Make, way: Way, label: &str, system: &dyn System) -> u64 {
    let mut storing = Storing::new(make, label, system, Budget::unlimited());
    let end = way.explore(&mut storing, 5);
    storing.is_complete(end, explore(system).states.len());
    let held = storing.held();
    storing.dropped();
    held
}

/// With too little memory, the store reports it and loses nothing.
fn low_budgets(make: &Make, ways: &[Way], label: &str, system: &dyn System, held: u64) {
    for limit in [0, 1, 5_000, held / 8, held / 3] {
        for &way in ways {
            one_budget(make, label, system, limit, held, way);
        }
    }
}

fn one_budget(make: &Make, label: &str, system: &dyn System, limit: u64, held: u64, way: Way) {
    // A store that takes no memory from the budget cannot exhaust it.
    if held == 0 {
        return;
    }
    let label = format!("{label} with {limit} of {held} bytes, {way:?}");
    let mut storing = Storing::new(make, &label, system, Budget::new(limit));
    let end = way.explore(&mut storing, limit);
    let must_end = limit <= held / 8 && storing.exact();
    assert!(!must_end || end == StoringEnd::Full, "{label}: a store that gets an eighth of its memory is full");
    storing.check_all();
    // Later insertions are answered as well: there may be room for small states.
    if !matches!(way, Way::ByLevels) {
        storing.some_more(&mut Rng::new(limit));
        storing.check_all();
    }
    storing.dropped();
}

/// Values for which there is no room are refused, and nothing is lost, neither values nor states.
fn values_in_low_budgets(make: &Make, way: Way, label: &str, system: &dyn System, held: u64) {
    for limit in [held / 3, held, 2 * held, u64::MAX] {
        let label = format!("{label} with values and {limit} of {held} bytes, {way:?}");
        let mut storing = Storing::new(make, &label, system, Budget::new(limit)).with_values();
        way.explore(&mut storing, limit);
        storing.check_all();
        storing.dropped();
    }
}

/// A store without memory to recode reports it and keeps its count.
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
        if limit % 2 == 0 {
            storing = storing.with_values();
        }
        let end = way.explore(&mut storing, 7);
        // States in the old layout can no longer be looked up, so only counts are checked.
        if end != StoringEnd::NotRecoded {
            storing.check_all();
        }
        storing.check_counts();
        storing.dropped();
    }
}

/// Whether this store is exact.
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
        for (label, system) in Kit::all().large.into_iter().chain(Kit::reversible().large) {
            assert!(explore(&*system).states.len() > 100_000, "{label}");
        }
    }

    #[test]
    fn reversible_systems_of_all_sizes_are_so() {
        let kit = Kit::reversible();
        assert!(kit.small.len() > 10);
        for (label, system) in kit.middling.iter().chain(&kit.threaded).chain(&kit.large) {
            assert!(system.reversible().is_some(), "{label}");
        }
    }
}
