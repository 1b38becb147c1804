//! The recipes of CONTRIBUTING.md for layers, a store and a language, as code that passes the suites.
//!
//! In: nothing. Out: a failure if a recipe does not work any more. Each file holds one whole part, as
//! short as it can be, and uses `deltamark-core` alone. The recipe for a search needs what the searches
//! share, and is in `crates/deltamark-search/src/recipe.rs`.

mod counting;
mod language;
mod layer;
mod store;
