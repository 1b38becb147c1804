//! Models in shared libraries.
//!
//! In: the path of a shared library that was built against `include/deltamark.h`, and parameters.
//! Out: a [`LibrarySystem`]. What stays true: code is loaded by [`load`] and by nothing else, so
//! whoever does not ask for it runs none; a library that does not keep to the interface, as far
//! as can be seen from here, is refused or leads to a fault with a trace.
//!
//! The interface is in the manner of CESMI, by which DIVINE takes models from outside: the initial
//! states, the successors by a call for each, a state as text.
//!
//! # Actions
//! An action is the number of a successor among those of its source, faults counted. So a library
//! need not invent numbers, and a step is repeated by asking for the successors again.
//!
//! # Trust
//! A library is code with all rights of the process. What it does to memory that is not its own,
//! nothing here can mend.

mod interface;
mod system;

pub use system::LibrarySystem;

use deltamark_core::Diagnostic;
use std::path::Path;

/// Loads the library at this path and asks it for its model.
///
/// The library's code runs from here on: call this only when the user has asked for it.
pub fn load(path: &Path, parameters: &[(String, String)]) -> Result<LibrarySystem, Vec<Diagnostic>> {
    LibrarySystem::open(path, parameters).map_err(Vec::from)
}
