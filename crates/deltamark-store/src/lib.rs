//! The stores: sets of visited states, interchangeable behind [`deltamark_core::Store`].
//!
//! In: a [`StoreSpec`], usually from the command line, and a system. Out: a store.
//! What stays true: stores name no language and no search; one technique a file.

mod arena;
mod bits;
pub mod bitstate;
mod bucket;
mod catalogue;
pub mod collapse;
pub mod compaction;
mod index;
mod intern;
pub mod plain;
mod quotient;
mod region;
mod tuples;
mod vectors;

pub use catalogue::{CATALOGUE, OptionInfo, SpecError, StoreInfo, StoreSpec, build};
