//! The stores: sets of visited states, interchangeable behind [`deltamark_core::Store`].
//!
//! In: a [`StoreSpec`], usually from the command line, and a system. Out: a store.
//! What stays true: stores name no language and no search; one technique a file.

mod arena;
mod bits;
pub mod bitstate;
pub mod breadcrumb;
mod bucket;
mod cache;
mod catalogue;
mod coder;
pub mod collapse;
mod comback;
pub mod compaction;
mod delta;
pub mod difference;
mod grant;
mod index;
mod intern;
mod journal;
mod kept;
mod lists;
mod numbered;
mod packed;
mod patch;
mod path;
pub mod plain;
mod quotient;
mod rebuild;
mod region;
mod spanning;
mod tuples;
mod unary;
mod unpacked;
mod vectors;
mod window;

pub use catalogue::{CATALOGUE, Need, OptionInfo, SpecError, StoreInfo, StoreSpec, build};
