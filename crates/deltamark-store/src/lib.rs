//! The stores: sets of visited states, interchangeable behind [`deltamark_core::Store`].
//!
//! In: a [`StoreSpec`], usually from the command line, and a system. Out: a store.
//! What stays true: stores name no language and no search; one technique a file.

mod arena;
mod bits;
pub mod bitstate;
pub mod breadcrumb;
mod bucket;
mod catalogue;
mod coder;
pub mod collapse;
pub mod compaction;
pub mod difference;
mod index;
mod intern;
mod journal;
mod lists;
mod patch;
mod path;
pub mod plain;
mod quotient;
mod region;
mod tuples;
mod unpacked;
mod vectors;

pub use catalogue::{CATALOGUE, Need, OptionInfo, SpecError, StoreInfo, StoreSpec, build};
