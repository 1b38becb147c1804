//! What a sweep keeps instead of a store: states by rank, forgotten behind the line.
//!
//! * [`layers`]: all ranks, implementing [`deltamark_core::Window`].
//! * `layer`: the states of one rank.

mod layer;
pub mod layers;
