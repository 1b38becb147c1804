//! Tables of values, tokens, markings and bindings are included in the memory budget of a run.

use std::sync::Arc;

use deltamark_coloured::{ColouredSystem, lna};
use deltamark_core::{Budget, Control, Property, Stop, System};
use deltamark_search::{Search, Task, run};

/// Every state has a list of its own, and every step a binding of its own: the store is the smallest part.
const LISTS: &str = "lists (N := 9) {
   type digit : range 0 .. N;
   type digits : list[nat] of digit with capacity 40;
   place p { dom : digits; init : <( |0| )>; }
   transition append {
      in { p : <( l )>; }
      out { p : <( l & d )>; }
      pick { d in digit; }
      guard : l'size < 39;
   }
}";

/// Fields that outgrow their widths one after the other are widened together after a while: a run stays linear.
#[test]
fn widenings_are_few_however_many_places_outgrow_their_fields() {
    const PLACES: usize = 150;
    let places: String = (1..PLACES).map(|number| format!("place p{number} {{ dom : colour; }}\n")).collect();
    let step = |number: usize| {
        let next = number + 1;
        format!("transition t{number} {{ in {{ p{number} : <( x )>; }} out {{ p{next} : <( x )>; }} }}\n")
    };
    let steps: String = (0..PLACES - 1).map(step).collect();
    let text = format!(
        "chain (N := 1) {{ type colour : range 0 .. N;
         place p0 {{ dom : colour; init : for (c in colour) <( c )>; }}\n{places}{steps} }}"
    );
    let system = ColouredSystem::new(lna::parse(text.as_bytes(), &[]).expect("a net"), &text).expect("a system");
    let explored = deltamark_testkit::oracle::explore(&system);
    assert_eq!(explored.states.len(), PLACES * PLACES);
    assert!((21..=60).contains(&explored.widenings), "{} widenings", explored.widenings);
}

#[test]
fn a_run_ends_when_its_tables_have_taken_what_it_may_take() {
    let net = lna::parse(LISTS.as_bytes(), &[]).expect("a net");
    for (search, limit) in [(Search::Bfs, 6 << 20), (Search::Bfs, 24 << 20), (Search::Dfs, 6 << 20)] {
        let system = ColouredSystem::new(net.clone(), LISTS).expect("a system");
        let before = system.tables().total();
        let budget = Arc::new(Budget::new(limit));
        let spec = "plain".parse().expect("a store");
        let store = deltamark_store::build(&spec, &system, search.order(), budget.clone()).expect("a store");
        let control = Control { budget: budget.clone(), ..Control::new() };
        let task = Task {
            system: &system,
            store: store.as_ref(),
            properties: &[Property::fault_free()],
            control: &control,
            explore_all: true,
            observer: None,
        };
        let outcome = run(search, task);
        assert_eq!(outcome.stopped_by, Some(Stop::Memory));
        assert!(outcome.statistics.states > 1000);
        let tables = system.tables().total() - before;
        // Vectors grow by a fifth, indexes by half.
        assert!(tables > limit / 2 && tables < limit + limit / 2, "{tables} of {limit}");
        // The rest is what the store and the tables hold.
        let kept = budget.used() - store.bytes().total() - store.frontier_bytes();
        assert!(kept > limit / 4 && kept <= tables, "{kept} of {tables}");
    }
}
