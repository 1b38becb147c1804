//! The window of a sweep instead of a store: states by rank, deleted behind the line.
//!
//! * [`layers`]: all ranks, implementing [`deltamark_core::Window`].
//! * `layer`: the states of one rank.

mod layer;
pub mod layers;
