//! Concurrency tests of every kind of store, small enough for Miri.
//!
//! In: a row of the catalogue, and small systems. Out: a panic if two threads got contradictory
//! answers. Tables grow several times meanwhile, while threads use them. Miri, which detects races
//! and invalid pointers, is some ten thousand times slower: under it systems have some dozen
//! states, and tables begin with a few entries.
//!
//! The whole suite, on large systems, is in `tests/conformance.rs`.

use crate::bitstate::Bitstate;
use crate::{StoreSpec, build};
use deltamark_core::{Order, System, Width};
use deltamark_testkit::systems::{Odometer, Stacks};
use deltamark_testkit::{RandomGraph, check_threads};

/// So many states, and a few under Miri.
const fn states(many: usize, few: usize) -> usize {
    if cfg!(miri) { few } else { many }
}

/// States of this width at random.
fn graph(width: Width) -> RandomGraph {
    RandomGraph::of_width(3, width, states(4_000, 24))
}

/// States of fixed width that fall into components, and whose steps can be undone.
fn wheels() -> Odometer {
    Odometer::loose(if cfg!(miri) { &[4, 2, 3] } else { &[15, 14, 16] }, 5)
}

/// The same of varying width.
fn stacks() -> Stacks {
    if cfg!(miri) { Stacks::new(2, 1, 4) } else { Stacks::new(2, 4, 2) }
}

fn check(store: &str, system: &dyn System) {
    let spec: StoreSpec = store.parse().expect("a row of the catalogue");
    check_threads(store, system, |system, budget| build(&spec, system, Order::Any, budget).expect("a store"));
}

#[test]
fn plain() {
    check("plain", &graph(Width::Fixed(3)));
    check("plain", &graph(Width::Fixed(5)));
    check("plain", &graph(Width::Varies));
}

#[test]
fn collapse() {
    check("collapse", &graph(Width::Fixed(3)));
    check("collapse", &stacks());
}

#[test]
fn tree() {
    check("tree", &graph(Width::Fixed(3)));
    check("tree:arity=3", &graph(Width::Varies));
}

#[test]
fn compact() {
    check("compact", &graph(Width::Fixed(3)));
}

#[test]
fn difference() {
    check("difference", &wheels());
    check("difference", &stacks());
}

#[test]
fn delta() {
    check("delta:k=3", &wheels());
}

#[test]
fn comback() {
    // Signatures that several states share, and not too many: each of them is rebuilt.
    check(if cfg!(miri) { "comback:signature=4" } else { "comback:signature=10" }, &wheels());
}

#[test]
fn compaction() {
    // Both lengths of lines.
    check("compaction:bits=32", &graph(Width::Fixed(2)));
    check("compaction:bits=40", &graph(Width::Fixed(2)));
    check("compaction:bits=64", &graph(Width::Fixed(2)));
}

#[test]
fn bitstate() {
    // `build` refuses one that does not get its array.
    let system = graph(Width::Fixed(2));
    check_threads("bitstate", &system, |_, budget| Box::new(Bitstate::new(13, 3, budget)));
}
