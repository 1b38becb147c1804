//! The conformance suites for systems, stores and searches.
//!
//! In: an implementation. Out: nothing, or a panic that names the contract broken.

mod facts;
pub mod portable;
mod question;
pub mod search;
pub mod store;
mod storing;
pub mod symmetry;
pub mod system;
mod threads;
mod values;
