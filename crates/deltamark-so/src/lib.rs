//! Models in shared libraries.
//!
//! In: the path of a shared library that was built against `include/deltamark.h`, and parameters. Out: a
//! [`LibrarySystem`]. What stays true: code is loaded by [`load`] and by nothing else, so without an explicit
//! request none runs; a library that violates the interface, as far as that can be detected, is refused or
//! leads to a fault with a trace.
//!
//! The interface follows CESMI, by which DIVINE loads external models: the initial states, the successors by
//! a call for each, a state as text.
//!
//! # Actions
//! An action is the index of a successor among those of its source, including faults. So a library need not
//! invent numbers, and a step is repeated by computing the successors again.
//!
//! # Trust
//! A library is code with all rights of the process. Nothing here can protect against what it does to memory
//! that is not its own.

mod interface;
mod system;

pub use system::LibrarySystem;

use deltamark_core::Diagnostic;
use std::path::Path;

/// Loads the library at this path and calls it for its model.
///
/// The library's code runs from here on: call this only when the user has asked for it.
pub fn load(path: &Path, parameters: &[(String, String)]) -> Result<LibrarySystem, Vec<Diagnostic>> {
    LibrarySystem::open(path, parameters).map_err(Vec::from)
}
