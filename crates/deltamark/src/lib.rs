//! Deltamark, the library: an explicit-state model checker whose point is memory.
//!
//! # A model as Rust code
//! States are ordinary structs and enums. This is all it takes to check a
//! mutual-exclusion protocol, with any store, by one call:
//!
//! ```
#![doc = include_str!("../examples/mutex.rs")]
//! ```

// The derived code names the crate by its name, within the crate too.
extern crate self as deltamark;

pub mod model;
pub mod pack;

pub use model::{Model, ModelCheck, ModelError, ModelReport, ModelSystem, Path, Step, check};
pub use pack::Pack;
