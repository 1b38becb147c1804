//! The stores: sets of visited states, interchangeable behind [`deltamark_core::Store`].
//!
//! In: a [`StoreSpec`], usually from the command line, and a system. Out: a store.
//! What stays true: stores name no language and no search; one technique a file.

mod arena;
pub mod breadcrumb;
mod bucket;
mod cache;
mod catalogue;
mod coder;
mod comback;
mod delta;
pub mod difference;
mod grant;
mod index;
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
mod unary;
mod unpacked;
mod vectors;
mod window;

pub use catalogue::{CATALOGUE, OptionInfo, SpecError, StoreInfo, StoreSpec, build};
