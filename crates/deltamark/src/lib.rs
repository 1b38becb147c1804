//! Deltamark, the library: an explicit-state model checker whose point is memory.
//!
//! In: a model, from a file ([`load()`]) or as Rust code ([`Model`]), and questions about it.
//! Out: a report. Invariant: this crate alone names language, store and search together.
//!
//! | to | use |
//! |---|---|
//! | check a model written in Rust | [`Model`], [`check()`], [`ModelReport`] |
//! | of alike processes, explore one order only | [`Symmetric`], [`symmetry`] |
//! | check a model from a file | [`load()`], [`Check`], [`Report`] |
//! | choose how | [`StoreSpec`], [`Search`], [`Limits`], [`Cancel`], [`Listener`] |
//! | write a report for scripts | [`Report::to_json`], [`ModelReport::to_json`], [`json`] |
//! | walk through a model by hand, draw its graph, keep the graph | [`simulate`], [`graph`], [`condensed`] |
//! | implement a language or a reduction | [`system`] |
//!
//! # A model as Rust code
//! States are ordinary structs and enums. This is all it takes to check a
//! mutual-exclusion protocol, with any store, by one call:
//!
//! ```
#![doc = include_str!("../examples/mutex.rs")]
//! ```
//!
//! # A model from a file
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = deltamark::load("../../models/philosophers-5.pnml", None)?;
//! let report = deltamark::Check::loaded(&model).deadlock_free().run()?;
//! let trace = report.answers[0].story.as_ref().expect("philosophers can starve");
//! assert_eq!(trace.len(), 5);
//! # Ok(())
//! # }
//! ```

// The derived code names the crate by its name, within the crate too.
extern crate self as deltamark;

pub mod auto;
pub mod automaton;
pub mod certificate;
pub mod check;
pub mod checkpoint;
pub mod condensed;
pub mod control;
mod ends;
pub mod graph;
pub mod json;
pub mod load;
pub mod mcc;
pub mod memory;
pub mod model;
pub mod pack;
mod plan;
pub mod reduction;
pub mod report;
mod run;
pub mod simulate;
pub mod soundness;
pub mod space;
pub mod stats;
pub mod story;
pub mod sweep;
pub mod symmetry;
mod temporal;

pub use check::{Check, CheckError};
pub use condensed::{Condensed, CondensedError};
pub use control::{Cancel, Event, Limits, Listener, Snapshot, Stop};
pub use deltamark_core::{Again, Statistics, Value, Verdict};
pub use deltamark_dve::EngineChoice;
pub use deltamark_search::{Search, Strategy, Strength};
pub use deltamark_store::StoreSpec;
pub use load::{LoadError, LoadOptions, Loaded, ModelInfo, Unfold, load, load_under, load_with};
pub use model::{Model, ModelCheck, ModelError, ModelReport, ModelSystem, Path, Step, check};
pub use pack::Pack;
pub use reduction::{Reduce, Reduction};
pub use report::{Answer, Overall, PropertyKind, Report, Route, RouteKind};
pub use symmetry::Symmetric;
pub use temporal::fly::fairness::{By, Fair};

/// A system by hand: what it takes to write a language or a layer, and questions in terms of it.
pub mod system {
    pub use deltamark_core::hash;
    pub use deltamark_core::property::Undefined;
    pub use deltamark_core::{
        Action, Batch, Block, Describe, Facts, Fired, Goal, Layer, Observable, Observe, Predicate, Property, Quotient,
        Recoding, Reversible, Scratch, Slot, Symmetry, System, Trace, Unnamed, Value, Widen, Width,
    };
}

/// The stores: which there are, their options, and what they promise.
pub mod store {
    pub use deltamark_core::{Bytes, Guarantee, Order};
    pub use deltamark_store::{AUTO, CATALOGUE, Need, OptionInfo, SpecError, StoreInfo, StoreSpec};
}

/// Errors in a text, with their places.
pub mod diagnostic {
    pub use deltamark_core::diagnostic::{MOST_DIAGNOSTICS, did_you_mean, line_column};
    pub use deltamark_core::{Diagnostic, Span};
}

/// P/T nets as values: to build, to generate and to write them.
pub mod nets {
    pub use deltamark_nets::generate::{FAMILIES, Family, generate};
    pub use deltamark_nets::write::{to_pnml, to_tina};
    pub use deltamark_nets::{Arc, Net, NetSystem, Place, Transition};
}
