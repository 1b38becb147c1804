//! Deltamark, the library: an explicit-state model checker whose point is memory.
//!
//! In: a model, from a file ([`load()`]) or as Rust code ([`Model`]), and questions about it.
//! Out: a report. What stays true: this crate re-exports the parts and joins them; it alone
//! names language, store and search together.
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

pub mod auto;
pub mod check;
pub mod condensed;
mod ends;
pub mod graph;
mod input;
pub mod json;
pub mod load;
pub mod memory;
pub mod model;
pub mod pack;
mod plan;
mod recognise;
pub mod report;
mod run;
pub mod simulate;
pub mod soundness;
pub mod stats;
pub mod story;
pub mod sweep;
mod unpack;
mod watched;

pub use check::{Check, CheckError};
pub use condensed::{Condensed, CondensedError};
pub use deltamark_dve::EngineChoice;
pub use load::{LoadError, LoadOptions, Loaded, ModelInfo, Unfold, load, load_under, load_with};
pub use model::{Model, ModelCheck, ModelError, ModelReport, ModelSystem, Path, Step, check};
pub use pack::Pack;
pub use report::{Answer, Kind, Overall, Report};

pub use deltamark_coloured as coloured;
pub use deltamark_core as core;
pub use deltamark_dve as dve;
pub use deltamark_graph as condensed_graph;
pub use deltamark_logic as logic;
pub use deltamark_nets as nets;
pub use deltamark_search as search;
pub use deltamark_store as store;
