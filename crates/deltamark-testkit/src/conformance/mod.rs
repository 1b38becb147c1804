//! The suites that every system, store and search has to pass.
//!
//! In: what is to be tested. Out: nothing, or a panic that names the contract broken.

mod facts;
pub mod portable;
mod question;
pub mod search;
pub mod store;
mod storing;
pub mod system;
mod threads;
