//! What `delta` and `comback` share: states that are rebuilt by firing along stored back edges.
//!
//! * `spanning`: parents and actions, about two bits a parent.
//! * `walk`: from a state back to one stored in full, and forward again.
//! * `numbered`: the store built on these.

pub(crate) mod numbered;
pub(crate) mod spanning;
mod walk;
