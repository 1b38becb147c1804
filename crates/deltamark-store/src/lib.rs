//! The stores: sets of visited states, interchangeable behind [`deltamark_core::Store`].
//!
//! In: a [`StoreSpec`], usually from the command line, and a system. Out: a store.
//! What stays true: stores name no language and no search; one technique a file.

mod arena;
pub mod breadcrumb;
mod bucket;
mod cache;
mod catalogue;
mod comback;
mod delta;
mod grant;
mod index;
mod kept;
mod numbered;
mod packed;
pub mod plain;
mod quotient;
mod rebuild;
mod region;
mod spanning;
mod unary;
mod vectors;
mod window;

pub use catalogue::{CATALOGUE, OptionInfo, SpecError, StoreInfo, StoreSpec, build};
