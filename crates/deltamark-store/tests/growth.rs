//! Growing never needs a second copy: the most that is granted at one time stays close to
//! what is held at the end.

use deltamark_core::{Budget, Control, Guarantee, System};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_search::{SAMPLERS, Search, Task, run};
use deltamark_store::{CATALOGUE, StoreSpec, Traffic, build};
use deltamark_testkit::is_chosen_store;
use std::sync::Arc;

#[test]
fn growth_stays_within_three_tenths_of_the_final_size() {
    let nets = [("kanban", 4, 454_475), ("philosophers", 12, 531_441), ("database-managers", 10, 196_831)];
    for (family, size, states) in nets {
        let net = generate(family, size).expect("a known family");
        for info in CATALOGUE.iter().filter(|info| is_chosen_store(info.name)) {
            for &search in Search::ALL.iter().filter(|search| info.takes(search.order())) {
                let label = format!("{family} {size}, {}, {}", info.name, search.name());
                let system = NetSystem::new(net.clone());
                let mut control = Control::new();
                if info.name == "compact" {
                    // So little that the larger of its two samples, which it looks at before the run, is omitted.
                    control.budget = Arc::new(Budget::new(3 << 20));
                }
                let spec: StoreSpec = info.name.parse().expect("a name of the catalogue");
                let traffic = Traffic { samplers: SAMPLERS, ..search.order().into() };
                let store = build(&spec, &system, traffic, control.budget.clone()).expect("a store of the catalogue");
                let system: &dyn System = &system;
                let (store, control) = (store.as_ref(), &control);
                let task = Task { system, store, properties: &[], control, explore_all: true, observer: None };
                let outcome = run(search, task);
                match outcome.guarantee {
                    Guarantee::Exact => assert_eq!(outcome.statistics.states, states, "{label}"),
                    Guarantee::Omission(_) => assert!(states - outcome.statistics.states < 5, "{label}"),
                }
                let last = outcome.store_bytes.total() + outcome.statistics.frontier_peak_bytes;
                let peak = control.budget.peak();
                // Blocks and batches are counted too; they do not grow with the store.
                assert!(peak <= last * 13 / 10 + (2 << 20), "{label}: {peak} bytes at the peak, {last} at the end");
                println!("{label}: {peak} at the peak, {last} at the end");
            }
        }
    }
}
