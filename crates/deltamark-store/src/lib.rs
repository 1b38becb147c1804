//! The stores: sets of visited states, interchangeable behind [`deltamark_core::Store`].
//!
//! In: a [`StoreSpec`], usually from the command line, and a system. Out: a store.
//! What stays true: stores name no language and no search; one technique a file.

mod arena;
pub mod breadcrumb;
mod bucket;
mod catalogue;
mod coder;
pub mod difference;
mod index;
mod journal;
mod lists;
mod patch;
mod path;
pub mod plain;
mod quotient;
mod region;
mod unpacked;
mod vectors;

pub use catalogue::{CATALOGUE, OptionInfo, SpecError, StoreInfo, StoreSpec, build};
