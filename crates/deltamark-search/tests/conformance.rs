//! Every search passes the suite for searches, with every kind of store.

use deltamark_core::Order;
use deltamark_search::{Search, run};
use deltamark_testkit::check_search;

#[test]
fn breadth_first_search_conforms() {
    check_search(Order::Levels, |task| run(Search::Bfs, task));
}

#[test]
fn depth_first_search_conforms() {
    check_search(Order::Any, |task| run(Search::Dfs, task));
}
