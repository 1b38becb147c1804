//! States stored in full, temporarily or for the whole run.
//!
//! * `vectors`: all of them, numbered.
//! * `window`, `unpacked`: those of the current level and the next.
//! * `checkpoints`: some levels among many.
//! * `cache`: a few, by number.

pub(crate) mod cache;
pub(crate) mod checkpoints;
pub(crate) mod unpacked;
pub(crate) mod vectors;
pub(crate) mod window;
