//! Every search passes the suite for searches, with every kind of store.

use deltamark_core::Order;
use deltamark_search::{Probing, Search, Threads, run, run_on, run_probing};
use deltamark_testkit::check_search;

#[test]
fn breadth_first_search_conforms() {
    check_search(Order::Levels, |task| run(Search::Bfs, task));
}

#[test]
fn breadth_first_search_conforms_with_threads() {
    for count in [2, 3, 8] {
        // Every level is shared, however small.
        check_search(Order::Levels, |task| run_on(Threads { count, small: 0 }, Search::Bfs, task));
    }
}

#[test]
fn small_levels_are_expanded_by_one_thread_and_large_ones_by_all() {
    check_search(Order::Levels, |task| run_on(Threads { count: 3, small: 40 }, Search::Bfs, task));
}

#[test]
fn breadth_first_search_conforms_while_it_probes() {
    // Its traces need not be shortest, and its counts are those of levels all the same.
    check_search(Order::Any, |task| run_probing(Probing { first: 1 }, Threads::ONE, Search::Bfs, task));
    check_search(Order::Any, |task| {
        run_probing(Probing { first: 60 }, Threads { count: 3, small: 0 }, Search::Bfs, task)
    });
}

#[test]
fn depth_first_search_conforms() {
    check_search(Order::Any, |task| run(Search::Dfs, task));
}
