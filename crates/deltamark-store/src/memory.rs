//! Memory that never moves.
//!
//! ```text
//! arena ── items that never move ──▶ region ── pages of the operating system
//! ```

pub(crate) mod arena;
pub(crate) mod region;
