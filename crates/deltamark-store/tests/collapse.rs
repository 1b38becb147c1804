//! What `collapse` claims beyond what every store promises: components of any kind work, and
//! it never takes much more than `plain`.

use deltamark_core::{Budget, Components, Control, Layer, Order, Slot, Store, System, Width};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_search::{Search, Task, run};
use deltamark_store::collapse::Collapse;
use deltamark_store::plain::Plain;
use deltamark_testkit::{RandomGraph, check_store};
use std::sync::Arc;

/// A system whose states have components.
struct Cut<'a> {
    system: &'a dyn System,
    /// Where a state of this length is cut.
    cuts: fn(usize) -> Vec<usize>,
}

impl Components for Cut<'_> {
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>) {
        out.extend((self.cuts)(state.len()));
    }
}

impl Layer for Cut<'_> {
    fn inner(&self) -> &dyn System {
        self.system
    }

    fn components(&self) -> Option<&dyn Components> {
        Some(self)
    }
}

#[test]
fn components_of_any_kind_conform() {
    let kinds: [fn(usize) -> Vec<usize>; 3] = [
        // In pairs; the whole state as one; the first slot and the rest.
        |len| (0..len).step_by(2).collect(),
        |len| (0..len.min(1)).collect(),
        |len| (0..len.min(2)).collect(),
    ];
    for cuts in kinds {
        check_store(Order::Any, |system, budget| {
            // A store keeps its system for as long as the tests like.
            let system = Box::leak(Box::new(Cut { system, cuts }));
            Box::new(Collapse::new(system, budget))
        });
    }
}

/// The states found by a search through all of them, and the bytes of the store then.
fn explored(system: &dyn System, store: &dyn Store, search: Search) -> (u64, u64) {
    let control = Control::new();
    let task = Task { system, store, properties: &[], control: &control, explore_all: true, observer: None };
    (run(search, task).statistics.states, store.bytes().total())
}

#[test]
fn it_never_takes_much_more_than_plain() {
    let net = |family, size| {
        let net = generate(family, size).expect("a known family");
        (format!("{family} {size}"), Box::new(NetSystem::new(net)) as Box<dyn System>)
    };
    // In random graphs nothing repeats: every slot of every state is as good as new.
    let graph = |width| (format!("graph {width:?}"), Box::new(RandomGraph::of_width(3, width, 60_000)) as _);
    let systems = [
        net("kanban", 4),
        net("philosophers", 11),
        net("database-managers", 9),
        graph(Width::Fixed(1)),
        graph(Width::Fixed(4)),
        graph(Width::Varies),
    ];
    for (label, system) in systems {
        for &search in Search::ALL {
            let budget = || Arc::new(Budget::unlimited());
            let (states, plain) = explored(&*system, &Plain::new(&*system, budget()), search);
            let (same, collapse) = explored(&*system, &Collapse::new(&*system, budget()), search);
            println!("{label}, {}: {states} states, {plain} and {collapse} bytes", search.name());
            assert_eq!(states, same, "{label}");
            assert!(collapse <= plain / 10 * 11, "{label}, {}: {collapse} bytes, plain {plain}", search.name());
        }
    }
}
