//! The stores: sets of visited states, interchangeable behind [`deltamark_core::Store`].
//!
//! In: a [`StoreSpec`], usually from the command line, a system, the insertion order of states, and
//! a budget. Out: a store. Invariants: stores name no language and no search; one technique per
//! file; the table [`CATALOGUE`] lists them all.
//!
//! # The stores
//! | store | keeps of a state | built on |
//! |---|---|---|
//! | [`plain`] | all of it | `states::vectors`, `tables::index` |
//! | [`collapse`] | the numbers of its components | `collapse::tuples`, `tables::intern`, `tables::index` |
//! | `tree` | the numbers of its parts, recursively | `tables::dense`, `tree::shape` |
//! | [`compact`] | its pair of halves, as a bit or a few | `compact::cuts`, `tables::dense`, `tables::tiles`, `tables::pairs` |
//! | [`difference`] | what changed since its predecessor | `difference::journal`, `tables::quotient` |
//! | `delta` | predecessor and action | `rebuilding`, with `plain` or `collapse` for levels kept in full |
//! | `comback` | signature, predecessor and action | `rebuilding` |
//! | [`breadcrumb`] | bits of hash, level modulo three, action | `tables::quotient`, and `plain` for levels kept in full |
//! | [`compaction`] | a signature; may miss states | `tables::pairs` |
//! | [`bitstate`] | bits set in an array; may miss states | `memory::region` |
//!
//! # The folders
//! A store is a file of its own name; what only it uses is in the folder of that name. Shared:
//!
//! | folder | what it holds |
//! |---|---|
//! | `memory` | pages of the operating system, arenas, grants of the budget |
//! | `threads` | claims, the gate, cooperative growth, reservations |
//! | `tables` | hash tables, quotient tables, dense tables |
//! | `integers` | sequences of integers in few bits |
//! | `states` | states kept in full |
//! | `rebuilding` | what `delta` and `comback` share |
//! | [`sweep`] | what a sweep keeps instead of a store |

pub mod bitstate;
pub mod breadcrumb;
mod catalogue;
pub mod collapse;
mod comback;
pub mod compact;
pub mod compaction;
mod delta;
pub mod difference;
mod integers;
mod memory;
pub mod plain;
mod rebuilding;
mod states;
pub mod sweep;
mod tables;
mod threads;
mod tree;

pub use catalogue::{AUTO, CATALOGUE, Need, OptionInfo, SpecError, StoreInfo, StoreSpec, Traffic, build};
